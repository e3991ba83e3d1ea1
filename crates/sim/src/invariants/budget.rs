//! Recounts the calls of one process: S12.
//!
//! Three token buckets and two windows of five minutes, counted anew from the requests that were
//! begun; and the pauses that Azure asked for. It knows the configured sizes and nothing of how
//! the updaters keep to them.

use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};

use sluice_model::Time;
use sluice_model::azure::ArmId;
use sluice_model::call::{Answer, Bucket, Method, OperationState, Payload, Reply, Request};
use sluice_model::failure::{Failure, FailureClass};
use sluice_updater::{BucketSize, Config};

use crate::names::{Invariant, Violation};

/// The calls of one process.
#[derive(Clone, Debug)]
pub struct CallCount {
    config: Config,
    buckets: [Tokens; 3],
    reads: VecDeque<Time>,
    writes: VecDeque<Time>,
    /// By bucket.
    paused_until: [Time; 3],
    /// By bucket and resource: another operation is in the way there.
    busy_until: BTreeMap<About, Time>,
    /// What was asked for, by the operation that Azure began for it.
    operations: BTreeMap<ArmId, About>,
}

/// What a wait that is not about the budget holds: calls of one kind on one resource.
type About = (Bucket, ArmId);

/// A bucket in thousandths of a call.
#[derive(Clone, Copy, Debug)]
struct Tokens {
    level: i64,
    burst: i64,
    per_ms: i64,
    at: Option<Time>,
}

impl Tokens {
    /// In millionths, so that shares of small rates stay exact.
    fn new(size: BucketSize, share_permille: u32) -> Tokens {
        let burst = i64::from(size.burst) * i64::from(share_permille) * 1_000;
        Tokens {
            level: burst,
            burst,
            per_ms: i64::from(size.per_second) * i64::from(share_permille),
            at: None,
        }
    }

    fn take(&mut self, now: Time) -> bool {
        let elapsed = now.since(self.at.unwrap_or(now)).as_millis();
        let gained = i64::try_from(elapsed).unwrap_or(i64::MAX / 1_000_000).saturating_mul(self.per_ms);
        self.level = self.level.saturating_add(gained).min(self.burst) - 1_000_000;
        self.at = Some(now.max(self.at.unwrap_or(now)));
        // One call of grace: a bucket may be counted from the moment a call is paid or from the moment it leaves.
        self.level >= -1_000_000
    }
}

impl CallCount {
    /// Nothing has been sent.
    pub fn new(config: &Config) -> CallCount {
        let share = config.share_permille;
        CallCount {
            config: config.clone(),
            buckets: [config.reads, config.writes, config.deletes].map(|size| Tokens::new(size, share)),
            reads: VecDeque::new(),
            writes: VecDeque::new(),
            paused_until: [Time::ZERO; 3],
            busy_until: BTreeMap::new(),
            operations: BTreeMap::new(),
        }
    }

    /// **S12**: never more calls than our share of each bucket and window; none before `Retry-After` is over.
    ///
    /// A pause shuts the bucket of the call that was throttled, and of the network provider's both
    /// writes and deletes; any other wait is about calls of that kind on that resource, and one inside a
    /// failed operation about calls like the one that began it. Excused: what was already on the wire
    /// when the pause arrived, and the gateway's POST of the other kind. A `Retry-After` on an answer about a
    /// running operation holds the polls of that operation.
    pub fn s12_begin(&mut self, now: Time, request: &Request) -> Result<(), Violation> {
        let bucket = request.method.bucket();
        let busy = self.busy_until.get(&about(request)).copied().unwrap_or(Time::ZERO);
        let until = self.paused_until[bucket as usize].max(busy);
        if now < until {
            let left = until.since(now).as_millis();
            let text = format!("{:?} is begun {left} ms before Retry-After is over", request.method);
            return Err(Violation::of(Invariant::S12, text));
        }
        if !self.buckets[bucket as usize].take(now) {
            let text = format!("more {bucket:?} than our share of the bucket");
            return Err(Violation::of(Invariant::S12, text));
        }
        let (calls, limit) = match bucket {
            Bucket::Reads => (&mut self.reads, self.config.reads_per_window),
            Bucket::Writes | Bucket::Deletes => (&mut self.writes, self.config.writes_per_window),
        };
        calls.push_back(now);
        // A call that is exactly one window old has left it.
        while calls.front().is_some_and(|first| *first + self.config.window <= now) {
            calls.pop_front();
        }
        let share = u64::from(limit) * u64::from(self.config.share_permille) / 1_000;
        if calls.len() as u64 > share.max(1) {
            let text = format!("{} calls in one window, our share is {share}", calls.len());
            return Err(Violation::of(Invariant::S12, text));
        }
        Ok(())
    }

    /// An answer may ask for a pause.
    pub fn answered(&mut self, now: Time, request: &Request, reply: &Reply) {
        if let Reply::Answered(Answer { operation: Some(operation), .. }) = reply {
            self.operations.insert(operation.clone(), about(request));
        }
        let Some(failure) = Failure::in_reply(reply) else { return self.runs_on(now, request, reply) };
        let Some(wait) = failure.retry_after else { return };
        let until = now + wait.min(Duration::from_secs(3_600));
        let bucket = request.method.bucket();
        let busy =
            failure.code.starts_with("RetryableError") || &*failure.code == "AnotherOperationInProgress";
        if busy || failure.class != FailureClass::Throttled {
            let about = self.operation_failed(request, reply).unwrap_or_else(|| about(request));
            let known = self.busy_until.entry(about).or_insert(Time::ZERO);
            *known = (*known).max(until);
            return;
        }
        let by_network = &*failure.code == "TooManyRequests" && bucket != Bucket::Reads;
        for other in [Bucket::Reads, Bucket::Writes, Bucket::Deletes] {
            if other == bucket || (by_network && other != Bucket::Reads) {
                let known = &mut self.paused_until[other as usize];
                *known = (*known).max(until);
            }
        }
    }

    /// An answer about a running operation may say when to ask about it again.
    fn runs_on(&mut self, now: Time, request: &Request, reply: &Reply) {
        let Reply::Answered(Answer { retry_after: Some(wait), operation, .. }) = reply else { return };
        let polled = (request.method == Method::Poll).then_some(&request.target);
        if let Some(operation) = operation.as_ref().or(polled) {
            let known = self.busy_until.entry((Bucket::Reads, operation.clone())).or_insert(Time::ZERO);
            *known = (*known).max(now + *wait);
        }
    }

    /// What was asked for, if this is the answer to a poll that says that it failed.
    fn operation_failed(&self, poll: &Request, reply: &Reply) -> Option<About> {
        let Reply::Answered(answer) = reply else { return None };
        match answer.payload {
            Payload::Operation(OperationState::Failed(_) | OperationState::Canceled(_)) => {
                self.operations.get(&poll.target).cloned()
            }
            _ => None,
        }
    }
}

/// What another operation can be in the way of. A gateway's two POSTs are not in each other's.
fn about(request: &Request) -> About {
    let target = match request.method {
        Method::UpdateServices => request.target.child("updateServices", ""),
        Method::UpdateLocations => request.target.child("updateAddressLocations", ""),
        _ => request.target.clone(),
    };
    (request.method.bucket(), target)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_model::call::{ArmError, Body};

    fn commit() -> Request {
        Request::with(Method::UpdateServices, ArmId::new("/serviceGateways/gw"), Body::Services(Vec::new()))
    }

    #[test]
    fn a_wait_inside_a_failed_operation_is_about_what_was_asked_for() {
        let mut calls = CallCount::new(&Config::default());
        let operation = ArmId::new("/operations/1");
        let accepted = Answer { operation: Some(operation.clone()), ..Answer::new(202, Payload::None) };
        calls.answered(Time::ZERO, &commit(), &Reply::Answered(accepted));
        let error = ArmError {
            code: "RetryableErrorDueToAnotherOperation".into(),
            message: "Another operation is running; retry after 20 seconds.".into(),
        };
        let failed = Answer::new(200, Payload::Operation(OperationState::Failed(error)));
        let poll = Request::bare(Method::Poll, operation);
        let told = Time::from_millis(2_000);
        calls.answered(told, &poll, &Reply::Answered(failed));
        assert!(calls.s12_begin(told + Duration::from_secs(19), &commit()).is_err());
        assert!(calls.s12_begin(told + Duration::from_secs(20), &commit()).is_ok());
    }
}
