//! When to ask how an operation stands.
//!
//! The first poll comes when half of the operations of its kind are over, the second when
//! nearly all are, later ones at growing intervals. Both times are learned from the last few.
//! An operation that is found finished at its first poll may have been so for a while: it
//! counts as a little shorter than was expected of it, so that the first poll moves forward
//! until half of the operations are not yet over; when many in a row were, as much shorter.
//!
//! What keeps polls away (an outage, a pause, the lease) says nothing about operations, so nothing
//! is learned from it: polls that told nothing do not count, and neither does a gap that was
//! longer than planned.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::time::Duration;

use sluice_model::call::{Body, Method, Request};
use sluice_model::{Failure, FailureClass, Time};

use crate::answer::Watch;
use crate::config::{Config, PollSchedule};

/// Operations that take about as long as each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    PublicIp,
    LoadBalancer,
    NatGateway,
    Gateway,
    Delete,
    GatewayCall,
    Other,
}

const KINDS: usize = 7;

impl Kind {
    fn of(request: &Request) -> Kind {
        match (request.method, &request.body) {
            (Method::Delete, _) => Kind::Delete,
            (Method::UpdateServices | Method::UpdateLocations, _) => Kind::GatewayCall,
            (_, Body::PublicIp(_)) => Kind::PublicIp,
            (_, Body::LoadBalancer(_)) => Kind::LoadBalancer,
            (_, Body::NatGateway(_)) => Kind::NatGateway,
            (_, Body::Gateway(_) | Body::GatewayAsRead(_)) => Kind::Gateway,
            _ => Kind::Other,
        }
    }
}

/// How long operations usually take.
pub(crate) struct Habits {
    schedule: PollSchedule,
    resource_limit: Duration,
    gateway_limit: Duration,
    kinds: [Learned; KINDS],
}

/// What is known about one kind.
#[derive(Clone, Default)]
struct Learned {
    guess_ms: u64,
    /// The last few durations, newest last.
    took_ms: VecDeque<u64>,
    /// How many in a row were over at their first poll.
    first_in_a_row: u32,
}

/// How many durations are remembered, and how many it takes to believe them.
const REMEMBERED_MAX: usize = 15;
const BELIEVED_MIN: usize = 3;

impl Learned {
    /// When half of the operations are over, and when nearly all are.
    fn usual_ms(&self) -> (u64, u64) {
        if self.took_ms.len() < BELIEVED_MIN {
            return (self.guess_ms, self.guess_ms);
        }
        let mut sorted: Vec<u64> = self.took_ms.iter().copied().collect();
        sorted.sort_unstable();
        let at = |permille: usize| sorted.get(sorted.len() * permille / 1_000).copied();
        let median = at(500).unwrap_or(self.guess_ms);
        (median, at(900).unwrap_or(median))
    }

    /// What an operation that was over at its first poll counts as. While the first poll is where
    /// it should be, every second one is, so a long row says that it is far too late.
    fn shorter_ms(&self, expected_ms: u64) -> u64 {
        match self.first_in_a_row {
            0..=4 => expected_ms / 16 * 15,
            5..=9 => expected_ms / 4 * 3,
            _ => expected_ms / 2,
        }
    }

    fn remember(&mut self, took_ms: u64) {
        self.took_ms.push_back(took_ms.clamp(MEDIAN_MIN_MS, MEDIAN_MAX_MS));
        if self.took_ms.len() > REMEMBERED_MAX {
            self.took_ms.pop_front();
        }
    }
}

/// The median is not learned beyond these.
const MEDIAN_MIN_MS: u64 = 20;
const MEDIAN_MAX_MS: u64 = 300_000;

impl Habits {
    pub(crate) fn new(config: &Config) -> Habits {
        let first = &config.poll;
        let mut kinds: [Learned; KINDS] = Default::default();
        for (kind, guess) in [
            (Kind::PublicIp, first.public_ip),
            (Kind::LoadBalancer, first.carrier),
            (Kind::NatGateway, first.carrier),
            (Kind::Gateway, first.gateway),
            (Kind::Delete, first.delete),
            (Kind::GatewayCall, first.gateway_call),
            (Kind::Other, first.gateway_call),
        ] {
            // Until something is known, the first question comes no later than any other.
            let guess = guess.min(first.interval_max);
            kinds[kind as usize].guess_ms = millis(guess).clamp(MEDIAN_MIN_MS, MEDIAN_MAX_MS);
        }
        Habits {
            schedule: config.poll.clone(),
            resource_limit: config.resource_operation_limit,
            gateway_limit: config.gateway_operation_limit,
            kinds,
        }
    }

    /// An operation that began when its request was sent.
    pub(crate) fn operation(
        &self,
        request: &Request,
        watch: Watch,
        began: Time,
        now: Time,
        retry_after: Option<Duration>,
    ) -> Operation {
        let kind = Kind::of(request);
        let (median, most) = self.kinds[kind as usize].usual_ms();
        // What took unusually long the last few times should not make everybody wait.
        let second_after = Duration::from_millis((most - median).min(median / 4));
        let median = Duration::from_millis(median);
        let limit = if kind == Kind::GatewayCall { self.gateway_limit } else { self.resource_limit };
        let slow = median.saturating_mul(self.schedule.slow_factor.max(1));
        let earliest = now + retry_after.unwrap_or(Duration::ZERO);
        Operation {
            watch,
            began,
            limit_at: began + limit,
            slow_at: Some(began + slow),
            next_poll: earliest.max(began + median),
            second_after,
            interval: (median / 16).max(self.schedule.interval_min),
            ran: None,
            trouble: None,
            expected: median,
            kind,
        }
    }

    /// The operation was polled and still runs.
    pub(crate) fn rest(&self, operation: &mut Operation, now: Time, retry_after: Option<Duration>) {
        let gap = self.ask_again(operation, now, retry_after);
        operation.ran = Some((now, gap));
    }

    /// The operation was polled and nobody could tell: asks again, and is none the wiser.
    pub(crate) fn look_again(&self, operation: &mut Operation, now: Time, retry_after: Option<Duration>) {
        self.ask_again(operation, now, retry_after);
    }

    /// Sets the time of the next poll; returns how long it would wait by itself.
    fn ask_again(&self, operation: &mut Operation, now: Time, retry_after: Option<Duration>) -> Duration {
        let (min, max) = (self.schedule.interval_min, self.schedule.interval_max);
        let interval = operation.interval.clamp(min, max.max(min));
        let second = core::mem::take(&mut operation.second_after);
        let wait = if second > interval {
            second
        } else {
            operation.interval = interval.saturating_mul(self.schedule.growth_permille.max(1_000)) / 1_000;
            interval
        };
        operation.next_poll = now + wait.max(retry_after.unwrap_or(Duration::ZERO));
        wait
    }

    /// The operation is over, as a poll that was sent at `asked_at` has just shown.
    pub(crate) fn learn(&mut self, operation: &Operation, asked_at: Time) {
        let known = &mut self.kinds[operation.kind as usize];
        if let Some((ran_at, gap)) = operation.ran {
            known.first_in_a_row = 0;
            // Some time since it was last seen running; half of it is the best guess.
            let since = asked_at.since(ran_at).min(gap);
            return known.remember(millis(ran_at.since(operation.began) + since / 2));
        }
        let late = asked_at.since(operation.began).saturating_sub(operation.expected);
        if late <= (operation.expected / 4).max(self.schedule.interval_min) {
            known.first_in_a_row = known.first_in_a_row.saturating_add(1);
            known.remember(known.shorter_ms(millis(operation.expected)));
        }
    }
}

/// Something that Azure works on.
#[derive(Debug)]
pub(crate) struct Operation {
    pub(crate) watch: Watch,
    pub(crate) began: Time,
    /// When nobody waits for it any longer.
    pub(crate) limit_at: Time,
    /// When it has become slow; `None` when that has been said.
    pub(crate) slow_at: Option<Time>,
    pub(crate) next_poll: Time,
    /// How long after the first poll nearly all of its kind are over; nothing once it was polled.
    second_after: Duration,
    interval: Duration,
    /// When a poll last showed it running, and how long after that the next was planned.
    ran: Option<(Time, Duration)>,
    /// Why the last poll showed nothing, if it did not.
    pub(crate) trouble: Option<Failure>,
    /// What its kind's median was when it began.
    expected: Duration,
    kind: Kind,
}

impl Operation {
    /// Nobody waits for it any longer. If it could not even be watched, that is said too.
    pub(crate) fn overdue(&self) -> Failure {
        let limit_s = self.limit_at.since(self.began).as_secs();
        let mut text = format!("the operation has not ended within {limit_s} s, so its outcome is unknown");
        if let Some(trouble) = &self.trouble {
            text.push_str("; when last asked: ");
            text.push_str(&trouble.to_string());
        }
        Failure::of(FailureClass::Unknown, "OperationTimeout", &text)
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use sluice_model::azure::{ArmId, PublicIpBody, Tags};
    use sluice_model::{Family, Time};

    use super::*;

    fn put() -> Request {
        let body = Body::PublicIp(PublicIpBody { family: Family::V4, tags: Tags::new() });
        Request::with(Method::Put, ArmId::new("/publicIPAddresses/web-pip"), body)
    }

    /// Polls an operation that takes so long; says how often, and how much later its end was seen.
    fn follow(habits: &mut Habits, took_ms: u64) -> (u32, u64) {
        let began = Time::from_millis(1_000);
        let watch = Watch::Operation(ArmId::new("/operations/1"));
        let mut operation = habits.operation(&put(), watch, began, began, None);
        for polls in 1.. {
            let now = operation.next_poll;
            if millis(now.since(began)) >= took_ms {
                habits.learn(&operation, now);
                return (polls, millis(now.since(began)) - took_ms);
            }
            habits.rest(&mut operation, now, None);
        }
        unreachable!("it has ended")
    }

    /// The same for many; in thousandths: polls each, ended at the first poll, lateness over duration.
    fn follow_many(habits: &mut Habits, from_ms: u64, to_ms: u64) -> (u64, u64, u64) {
        let (mut polls, mut at_first, mut late, mut all) = (0, 0, 0, 0);
        let mut random = 1_u64;
        for _ in 0..1_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let took = from_ms + (random >> 33) % (to_ms - from_ms);
            let (polled, lateness) = follow(habits, took);
            polls += u64::from(polled);
            at_first += u64::from(polled == 1);
            late += lateness;
            all += took;
        }
        (polls, at_first, late * 1_000 / all)
    }

    #[test]
    fn half_end_before_the_first_poll_nearly_all_before_the_second_and_few_are_seen_late() {
        // The guess may be far off in either direction.
        for (from_ms, to_ms) in [(2_000, 3_000), (5_000, 8_000), (1_000, 2_000), (300, 400), (20_000, 40_000)]
        {
            let mut habits = Habits::new(&Config::default());
            follow_many(&mut habits, from_ms, to_ms);
            let (polls, at_first, late) = follow_many(&mut habits, from_ms, to_ms);
            let span = (from_ms, to_ms);
            assert!((400..=650).contains(&at_first), "{span:?}: {at_first} of 1000 ended at the first poll");
            assert!(polls <= 1_700, "{span:?}: {polls} polls for 1000 operations");
            assert!(late <= 150, "{span:?}: seen {late} thousandths late");
        }
    }

    #[test]
    fn the_first_question_ever_comes_no_later_than_the_longest_interval() {
        let mut config = Config::default();
        config.poll.interval_max = Duration::from_millis(300);
        let (polls, late) = follow(&mut Habits::new(&config), 50);
        assert_eq!((polls, late), (1, 250));
    }

    #[test]
    fn what_takes_ever_longer_is_asked_ever_more_seldom() {
        let mut habits = Habits::new(&Config::default());
        follow_many(&mut habits, 1_000, 2_000);
        let (polls, late) = follow(&mut habits, 900_000);
        assert!(polls <= 105, "{polls}");
        assert!(late <= 10_000, "{late}");
    }

    #[test]
    fn one_that_took_unusually_long_does_not_make_the_next_wait_for_its_second_poll() {
        let mut habits = Habits::new(&Config::default());
        follow_many(&mut habits, 2_000, 2_100);
        for _ in 0..3 {
            follow(&mut habits, 60_000);
        }
        let (_, late) = follow(&mut habits, 2_200);
        assert!(late <= 600, "{late}");
    }

    #[test]
    fn a_first_poll_that_came_late_does_not_say_that_the_operation_was_short() {
        // Azure asks for ten seconds before each first poll; what takes three is over by then.
        let mut habits = Habits::new(&Config::default());
        let began = Time::from_millis(1_000);
        for _ in 0..100 {
            let watch = Watch::Operation(ArmId::new("/operations/1"));
            let wait = Some(Duration::from_secs(10));
            let operation = habits.operation(&put(), watch, began, began, wait);
            habits.learn(&operation, operation.next_poll);
        }
        let watch = Watch::Operation(ArmId::new("/operations/1"));
        let operation = habits.operation(&put(), watch, began, began, None);
        assert_eq!(millis(operation.next_poll.since(began)), 2_500, "the first guess is as good as before");
    }

    #[test]
    fn when_operations_have_become_much_shorter_the_first_poll_follows_soon() {
        let mut habits = Habits::new(&Config::default());
        for _ in 0..15 {
            follow(&mut habits, 240_000);
        }
        let needed = (1..).find(|_| follow(&mut habits, 6_000).1 <= 6_000);
        assert!(needed.is_some_and(|operations| operations <= 60), "{needed:?}");
    }
}
