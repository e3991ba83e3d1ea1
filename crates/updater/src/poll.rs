//! When to poll an operation.
//!
//! Nothing is known in advance. Until three operations of a kind have been seen, polls come 0.5 s after
//! the operation began and then at intervals that grow with its age, so that the end of an operation is
//! seen after at most 1.5 times its duration and 0.5 s.
//!
//! An operation that has ended leaves a span: it took longer than when it was last seen running, and no
//! longer than when it was found finished. It counts as the middle of its span. The first poll aims at the median of
//! the last few, the second at their 90th percentile.
//!
//! An operation that was found finished at its first poll was never seen running, and counts as a little shorter, so
//! that the first poll moves until half of the operations are not yet over. Several in a row say that the first
//! poll is far too late: the next one comes in the middle between the longest time that any was seen running and now.
//!
//! `Retry-After` is the earliest time of a poll. A poll that comes too early then costs the whole wait, so a
//! span that is narrow enough counts as its end.
//!
//! What keeps polls away (an outage, a pause, the lease) says nothing about operations, so nothing
//! is learned from it: polls without a result do not count, and neither does a gap that was
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

/// The last few operations of one kind, newest last.
#[derive(Default)]
struct Learned(VecDeque<Span>);

/// What polls have shown of one operation.
#[derive(Clone, Copy)]
struct Span {
    /// Its age when it was last seen running; 0 if never.
    running_ms: u64,
    /// Its age when it was found finished.
    finished_ms: u64,
    /// Its first poll came when it should, and not when `Retry-After` allowed it.
    is_aimed: bool,
}

/// When to poll the next operation of a kind.
struct Aim {
    first_ms: u64,
    second_ms: u64,
}

/// How many operations are remembered, and how many it takes to believe them.
const REMEMBERED_MAX: usize = 15;
const BELIEVED_MIN: usize = 3;

/// So many operations in a row that were over at their first poll say that it is far too late.
const TOO_LATE_MIN: usize = 3;
/// So many say that operations have become shorter, and what was seen of earlier ones is no longer true.
const SHORTER_MIN: usize = 8;

/// A span narrower than this part of its end is known well enough.
const NARROW: u64 = 8;

/// Aims are not learned beyond these.
const AIM_MIN_MS: u64 = 20;
const AIM_MAX_MS: u64 = 300_000;

impl Learned {
    fn remember(&mut self, span: Span) {
        self.0.push_back(span);
        if self.0.len() > REMEMBERED_MAX {
            self.0.pop_front();
        }
    }

    /// `None` until enough operations have been seen.
    fn aim(&self, retry_after_ms: u64) -> Option<Aim> {
        if self.0.len() < BELIEVED_MIN {
            return None;
        }
        let first_in_a_row = self.0.iter().rev().take_while(|it| it.running_ms == 0).count();
        let mut likely: Vec<(u64, u64)> =
            self.0.iter().map(|it| self.likely_ms(*it, first_in_a_row, retry_after_ms)).collect();
        let newest = likely.last().copied()?;
        likely.sort_unstable();
        let at = |permille: usize| likely.get(likely.len() * permille / 1_000).copied();
        let is_too_late = first_in_a_row >= TOO_LATE_MIN && retry_after_ms == 0;
        let (first, finished) = if is_too_late { newest } else { at(500)? };
        let (most, _) = at(900)?;
        // Operations that took unusually long should not delay the second poll of all others.
        let second = most.min(first.saturating_add(first / 3)).max(finished.min(first.saturating_mul(2)));
        Some(Aim {
            first_ms: first.clamp(AIM_MIN_MS, AIM_MAX_MS),
            second_ms: second.clamp(AIM_MIN_MS, AIM_MAX_MS),
        })
    }

    /// How long an operation probably took, and by when it was over.
    fn likely_ms(&self, span: Span, first_in_a_row: usize, retry_after_ms: u64) -> (u64, u64) {
        let Span { mut running_ms, mut finished_ms, is_aimed } = span;
        if running_ms == 0 {
            if is_aimed && retry_after_ms == 0 && first_in_a_row < TOO_LATE_MIN {
                return (finished_ms - finished_ms / 16, finished_ms);
            }
            // It was never seen running, so others say more about it. Where polls come late because Azure wants it
            // so, few are seen running at all.
            if retry_after_ms > 0 || first_in_a_row < SHORTER_MIN {
                let others = self.0.iter().map(|it| it.running_ms);
                running_ms = others.filter(|it| *it < finished_ms).max().unwrap_or(0);
            }
            let others = self.0.iter().map(|it| it.finished_ms);
            finished_ms = others.filter(|it| *it > running_ms).min().unwrap_or(finished_ms);
        }
        let width = finished_ms.saturating_sub(running_ms);
        let is_narrow = width <= retry_after_ms.min(finished_ms / NARROW);
        (if is_narrow { finished_ms } else { running_ms + width.div_ceil(2) }, finished_ms)
    }
}

impl Habits {
    pub(crate) fn new(config: &Config) -> Habits {
        Habits {
            schedule: config.poll.clone(),
            resource_limit: config.resource_operation_limit,
            gateway_limit: config.gateway_operation_limit,
            kinds: Default::default(),
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
        let PollSchedule { first, interval_min, interval_max, slow_factor, .. } = self.schedule;
        let retry_after = retry_after.unwrap_or(Duration::ZERO);
        let (first, second, interval) = match self.kinds[kind as usize].aim(millis(retry_after)) {
            Some(Aim { first_ms, second_ms }) => {
                let first = Duration::from_millis(first_ms);
                (first, Some(Duration::from_millis(second_ms)), (first / 8).max(interval_min))
            }
            // The interval that grows with the operation's age is shorter than any.
            None => (first.min(interval_max), None, Duration::MAX),
        };
        let limit = if kind == Kind::GatewayCall { self.gateway_limit } else { self.resource_limit };
        let slow = second.unwrap_or(interval_max).saturating_mul(slow_factor.max(1));
        let next_poll = (began + first).max(now + retry_after);
        let is_aimed = next_poll == began + first;
        Operation {
            watch,
            began,
            limit_at: began + limit,
            slow_at: Some(began + slow),
            next_poll,
            planned: next_poll,
            is_aimed,
            second_at: second.map(|second| began + second),
            interval,
            ran_at: None,
            trouble: None,
            kind,
        }
    }

    /// The operation was polled at `asked_at` and still runs.
    pub(crate) fn rest(
        &self,
        operation: &mut Operation,
        asked_at: Time,
        now: Time,
        retry_after: Option<Duration>,
    ) {
        self.ask_again(operation, asked_at, now, retry_after);
        operation.ran_at = Some(asked_at);
        operation.planned = operation.next_poll;
    }

    /// The operation was polled without a result: polls again, and learns nothing.
    pub(crate) fn look_again(&self, operation: &mut Operation, now: Time, retry_after: Option<Duration>) {
        self.ask_again(operation, now, now, retry_after);
    }

    /// Sets the time of the next poll.
    fn ask_again(&self, operation: &mut Operation, asked_at: Time, now: Time, retry_after: Option<Duration>) {
        let PollSchedule { first, interval_min, interval_max, growth_permille, .. } = self.schedule;
        let growth_permille = growth_permille.max(1_000);
        let age = asked_at.since(operation.began);
        let grown = first.saturating_add(age.saturating_mul(growth_permille - 1_000) / 1_000);
        let interval = operation.interval.min(grown).clamp(interval_min, interval_max.max(interval_min));
        let next = match operation.second_at.take() {
            Some(second) if second > asked_at + interval => second,
            _ => {
                operation.interval = operation.interval.saturating_mul(growth_permille) / 1_000;
                asked_at + interval
            }
        };
        // A slow answer is no reason to poll again at once.
        let earliest = now + retry_after.unwrap_or(Duration::ZERO).max(interval_min);
        operation.next_poll = next.max(earliest);
    }

    /// The operation is over, as a poll that was sent at `asked_at` has just shown.
    pub(crate) fn learn(&mut self, operation: &Operation, asked_at: Time) {
        let age = |at: Time| millis(at.since(operation.began));
        let late = asked_at.since(operation.planned);
        let was_kept_away =
            late > (operation.planned.since(operation.began) / 4).max(self.schedule.interval_min);
        let (running_ms, finished_ms) = match operation.ran_at {
            // It probably ended before the poll that did not come.
            Some(ran_at) if was_kept_away => (age(ran_at), age(operation.planned)),
            None if was_kept_away => return,
            ran_at => (ran_at.map_or(0, age), age(asked_at)),
        };
        self.kinds[operation.kind as usize].remember(Span {
            running_ms,
            finished_ms,
            is_aimed: operation.is_aimed,
        });
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
    /// When the next poll was planned after the last one that showed something.
    planned: Time,
    is_aimed: bool,
    /// When nearly all of its kind are over; `None` once it was polled, or if that is unknown.
    second_at: Option<Time>,
    interval: Duration,
    /// When a poll last showed it running.
    ran_at: Option<Time>,
    /// Why the last poll showed nothing, if it did not.
    pub(crate) trouble: Option<Failure>,
    kind: Kind,
}

impl Operation {
    /// Nobody waits for it any longer. If it could not even be watched, that is said too.
    pub(crate) fn overdue(&self) -> Failure {
        let limit_s = self.limit_at.since(self.began).as_secs();
        let mut text = format!("the operation did not finish within {limit_s} s; its outcome is unknown");
        if let Some(trouble) = &self.trouble {
            text.push_str("; the last poll failed: ");
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

    const BEGAN: Time = Time::from_millis(1_000);

    fn begin(habits: &Habits, retry_after: Option<Duration>) -> Operation {
        let body = Body::PublicIp(PublicIpBody { family: Family::V4, tags: Tags::new() });
        let put = Request::with(Method::Put, ArmId::new("/publicIPAddresses/web-pip"), body);
        habits.operation(&put, Watch::Operation(ArmId::new("/operations/1")), BEGAN, BEGAN, retry_after)
    }

    /// Polls an operation that takes so long while every answer has this `Retry-After`; says when.
    fn polls_of(habits: &mut Habits, took_ms: u64, retry_after_ms: u64) -> Vec<u64> {
        let retry_after = (retry_after_ms > 0).then(|| Duration::from_millis(retry_after_ms));
        let mut operation = begin(habits, retry_after);
        let mut polls = Vec::new();
        loop {
            let now = operation.next_poll;
            polls.push(millis(now.since(BEGAN)));
            if millis(now.since(BEGAN)) >= took_ms {
                habits.learn(&operation, now);
                return polls;
            }
            habits.rest(&mut operation, now, now, retry_after);
        }
    }

    /// How often an operation that takes so long is polled, and how much later its end is seen.
    fn follow(habits: &mut Habits, took_ms: u64) -> (usize, u64) {
        let polls = polls_of(habits, took_ms, 0);
        (polls.len(), polls.last().map_or(0, |last| last - took_ms))
    }

    /// Durations between these two, the same in every run.
    fn durations(from_ms: u64, to_ms: u64) -> impl Iterator<Item = u64> {
        let mut random = 1_u64;
        core::iter::from_fn(move || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            Some(from_ms + (random >> 33) % (to_ms - from_ms + 1))
        })
    }

    /// Follows a thousand; in thousandths: polls each, ended at the first poll, lateness over duration.
    fn follow_many(habits: &mut Habits, from_ms: u64, to_ms: u64) -> (usize, usize, u64) {
        let (mut polls, mut at_first, mut late, mut all) = (0, 0, 0, 0);
        for took in durations(from_ms, to_ms).take(1_000) {
            let (polled, lateness) = follow(habits, took);
            polls += polled;
            at_first += usize::from(polled == 1);
            late += lateness;
            all += took;
        }
        (polls, at_first, late * 1_000 / all)
    }

    #[test]
    fn without_knowledge_intervals_grow_by_half_up_to_the_longest() {
        let polls = polls_of(&mut Habits::new(&Config::default()), 30_000, 0);
        assert_eq!(polls, [500, 1_250, 2_375, 4_062, 6_593, 10_389, 16_083, 24_624, 34_624]);
    }

    #[test]
    fn without_knowledge_an_end_is_seen_after_1_5_times_its_duration_and_half_a_second() {
        for took in (10..60_000).step_by(10) {
            let (_, late) = follow(&mut Habits::new(&Config::default()), took);
            assert!(late <= took / 2 + 500, "{took} ms: seen {late} ms late");
        }
    }

    #[test]
    fn after_three_operations_polls_aim_at_their_median_and_90th_percentile() {
        let mut habits = Habits::new(&Config::default());
        for (running_ms, finished_ms) in [(1_900, 2_100), (2_900, 3_100), (3_300, 3_500)] {
            assert_eq!(polls_of(&mut habits, 1, 0).first(), Some(&500));
            habits.kinds[Kind::PublicIp as usize].0.pop_back();
            habits.kinds[Kind::PublicIp as usize].remember(Span { running_ms, finished_ms, is_aimed: true });
        }
        assert_eq!(polls_of(&mut habits, 3_300, 0), [3_000, 3_400]);
    }

    #[test]
    fn ends_at_the_first_poll_move_the_next_to_the_middle_of_what_is_unknown() {
        let mut habits = Habits::new(&Config::default());
        for _ in 0..3 {
            assert_eq!(polls_of(&mut habits, 4_200, 0).last_chunk(), Some(&[4_062, 6_593]));
        }
        for first in [5_328, 5_328, 5_328, 4_695, 4_379, 4_221] {
            assert_eq!(polls_of(&mut habits, 4_200, 0), [first]);
        }
        // Never seen running: the beginning is the last moment at which it is known to have run.
        let mut habits = Habits::new(&Config::default());
        for first in [500, 500, 500, 250, 125, 63] {
            assert_eq!(polls_of(&mut habits, 50, 0), [first]);
        }
    }

    #[test]
    fn half_end_before_the_first_poll_nearly_all_before_the_second_and_few_are_seen_late() {
        for (from_ms, to_ms) in [(2_000, 3_000), (5_000, 8_000), (1_000, 2_000), (300, 400), (20_000, 40_000)]
        {
            let mut habits = Habits::new(&Config::default());
            let (polls, at_first, late) = follow_many(&mut habits, from_ms, to_ms);
            let span = (from_ms, to_ms);
            assert!((400..=650).contains(&at_first), "{span:?}: {at_first} of 1000 ended at the first poll");
            assert!(polls <= 1_750, "{span:?}: {polls} polls for 1000 operations");
            assert!(late <= 175, "{span:?}: seen {late} thousandths late");
        }
    }

    /// How late ends are seen after ten operations, in thousandths of the best possible, less 0.1 s per operation.
    fn late_when_warm(from_ms: u64, to_ms: u64, retry_after_ms: u64) -> u64 {
        let mut habits = Habits::new(&Config::default());
        let (mut seen, mut best) = (0, 0);
        for (number, took) in durations(from_ms, to_ms).take(40).enumerate() {
            let polls = polls_of(&mut habits, took, retry_after_ms);
            if number >= 10 {
                seen += polls.last().map_or(0, |last| last.saturating_sub(100));
                best += took.max(retry_after_ms);
            }
        }
        seen.saturating_sub(best) * 1_000 / best
    }

    #[test]
    fn after_ten_operations_ends_are_seen_within_1_15_times_the_best() {
        for middle in (100..60_000).step_by(70) {
            for percent in [0, 5, 10] {
                let spread = middle * percent / 100;
                let late = late_when_warm(middle - spread, middle + spread, 0);
                assert!(late <= 150, "{middle} ms, spread {percent} %: {late} thousandths late");
            }
        }
    }

    #[test]
    fn a_poll_that_is_too_early_does_not_cost_another_retry_after_each_time() {
        for retry_after in [1_000, 5_000, 10_000] {
            for took in [300, 800, 2_000, 5_000, 10_000, 12_000, 20_000, 45_000] {
                let late = late_when_warm(took, took, retry_after);
                assert!(late <= 150, "{took} ms, Retry-After {retry_after} ms: {late} thousandths late");
            }
        }
    }

    #[test]
    fn the_first_poll_ever_comes_no_later_than_the_longest_interval() {
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
        assert!(late <= 750, "{late}");
    }

    #[test]
    fn an_end_seen_at_retry_after_says_only_that_the_operation_took_no_longer() {
        // Azure asks for ten seconds before each first poll; what takes three is over by then.
        let mut habits = Habits::new(&Config::default());
        for _ in 0..100 {
            assert_eq!(polls_of(&mut habits, 3_000, 10_000), [10_000]);
        }
        let late: Vec<u64> = (0..20).map(|_| follow(&mut habits, 3_000).1).collect();
        assert_eq!(late.first(), Some(&2_000), "the middle between nothing and ten seconds");
        assert!(late.iter().skip(2).all(|late| *late <= 750), "{late:?}");
    }

    #[test]
    fn when_operations_have_become_much_shorter_the_first_poll_follows_soon() {
        let mut habits = Habits::new(&Config::default());
        for _ in 0..15 {
            follow(&mut habits, 240_000);
        }
        let needed = (1..).find(|_| follow(&mut habits, 6_000).1 <= 3_500);
        assert!(needed.is_some_and(|operations| operations <= 16), "{needed:?}");
    }

    #[test]
    fn a_slow_answer_delays_no_poll_and_is_no_reason_for_one_at_once() {
        let habits = Habits::new(&Config::default());
        let mut operation = begin(&habits, None);
        let asked_at = operation.next_poll;
        habits.rest(&mut operation, asked_at, asked_at + Duration::from_millis(200), None);
        assert_eq!(millis(operation.next_poll.since(BEGAN)), 1_250);
        let asked_at = operation.next_poll;
        habits.rest(&mut operation, asked_at, asked_at + Duration::from_secs(5), None);
        assert_eq!(millis(operation.next_poll.since(BEGAN)), 1_250 + 5_000 + 100);
    }
}
