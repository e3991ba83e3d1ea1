//! When to ask how an operation stands.
//!
//! The first poll comes when half of the operations of its kind are over, later ones at
//! growing intervals. What that time is gets learned: an operation that is found finished
//! at its first poll makes the next first poll a little earlier, one that is not a little
//! later, so that it settles where both are equally frequent.

use core::time::Duration;

use sluice_model::Time;
use sluice_model::call::{Body, Method, Request};

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
    median_ms: [u64; KINDS],
}

/// The median is not learned beyond these.
const MEDIAN_MIN_MS: u64 = 20;
const MEDIAN_MAX_MS: u64 = 300_000;

impl Habits {
    pub(crate) fn new(config: &Config) -> Habits {
        let first = &config.poll;
        let mut median_ms = [0; KINDS];
        for (kind, guess) in [
            (Kind::PublicIp, first.public_ip),
            (Kind::LoadBalancer, first.carrier),
            (Kind::NatGateway, first.carrier),
            (Kind::Gateway, first.gateway),
            (Kind::Delete, first.delete),
            (Kind::GatewayCall, first.gateway_call),
            (Kind::Other, first.gateway_call),
        ] {
            median_ms[kind as usize] = millis(guess).clamp(MEDIAN_MIN_MS, MEDIAN_MAX_MS);
        }
        Habits {
            schedule: config.poll.clone(),
            resource_limit: config.resource_operation_limit,
            gateway_limit: config.gateway_operation_limit,
            median_ms,
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
        let median = Duration::from_millis(self.median_ms[kind as usize]);
        let limit = if kind == Kind::GatewayCall { self.gateway_limit } else { self.resource_limit };
        let slow = median.saturating_mul(self.schedule.slow_factor.max(1));
        let earliest = now + retry_after.unwrap_or(Duration::ZERO);
        Operation {
            watch,
            began,
            limit_at: began + limit,
            slow_at: Some(began + slow),
            next_poll: earliest.max(began + median),
            interval: (median / 8).max(self.schedule.interval_min),
            polls: 0,
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

    /// The operation is over; `at_first_poll` if it was so when it was first asked.
    pub(crate) fn learn(&mut self, operation: &Operation, now: Time) {
        let median = &mut self.median_ms[operation.kind as usize];
        let step = (*median / 16).max(1);
        let learned = if operation.polls == 0 {
            *median - step
        } else {
            // A world that became much slower is followed faster.
            let took = millis(now.since(operation.began));
            *median + step.max(took.saturating_sub(*median) / 8)
        };
        *median = learned.clamp(MEDIAN_MIN_MS, MEDIAN_MAX_MS);
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
    kind: Kind,
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
