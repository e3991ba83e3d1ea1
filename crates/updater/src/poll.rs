//! When to ask how an operation stands.
//!
//! The first poll comes when half of the operations of its kind are over, later ones at
//! growing intervals. That time is learned as the median of the last few. An operation that
//! is found finished at its first poll may have been so for a while: it counts as a little
//! shorter than was expected of it, so that the first poll moves forward until half of the
//! operations are not yet over.

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
            (_, Body::Gateway(_)) => Kind::Gateway,
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
}

/// How many durations are remembered, and how many it takes to believe them.
const REMEMBERED_MAX: usize = 15;
const BELIEVED_MIN: usize = 3;

impl Learned {
    fn median_ms(&self) -> u64 {
        if self.took_ms.len() < BELIEVED_MIN {
            return self.guess_ms;
        }
        let mut sorted: Vec<u64> = self.took_ms.iter().copied().collect();
        sorted.sort_unstable();
        sorted.get(sorted.len() / 2).copied().unwrap_or(self.guess_ms)
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
        let median = Duration::from_millis(self.kinds[kind as usize].median_ms());
        let limit = if kind == Kind::GatewayCall { self.gateway_limit } else { self.resource_limit };
        let slow = median.saturating_mul(self.schedule.slow_factor.max(1));
        let earliest = now + retry_after.unwrap_or(Duration::ZERO);
        Operation {
            watch,
            began,
            limit_at: began + limit,
            slow_at: Some(began + slow),
            next_poll: earliest.max(began + median),
            interval: (median / 16).max(self.schedule.interval_min),
            polls: 0,
            trouble: None,
            expected: median,
            kind,
        }
    }

    /// The operation was polled and still runs, or nobody could tell.
    pub(crate) fn rest(&self, operation: &mut Operation, now: Time, retry_after: Option<Duration>) {
        operation.polls = operation.polls.saturating_add(1);
        let wait = operation
            .interval
            .clamp(self.schedule.interval_min, self.schedule.interval_max.max(self.schedule.interval_min));
        operation.next_poll = now + wait.max(retry_after.unwrap_or(Duration::ZERO));
        operation.interval = wait.saturating_mul(self.schedule.growth_permille.max(1_000)) / 1_000;
    }

    /// The operation is over, and a poll has just shown it.
    pub(crate) fn learn(&mut self, operation: &Operation, now: Time) {
        let took_ms = if operation.polls == 0 {
            millis(operation.expected) / 16 * 15
        } else {
            millis(now.since(operation.began))
        };
        let known = &mut self.kinds[operation.kind as usize].took_ms;
        known.push_back(took_ms.clamp(MEDIAN_MIN_MS, MEDIAN_MAX_MS));
        if known.len() > REMEMBERED_MAX {
            known.pop_front();
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
    interval: Duration,
    /// Polls that did not show its end.
    polls: u32,
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
