//! Recounts the calls of one process: S12.
//!
//! Three token buckets and two windows of five minutes, counted again from the requests that were
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
    /// By bucket; the last is of writes and deletes together.
    pauses: [Pause; 4],
    /// By bucket and resource: another operation is in the way there.
    busy: BTreeMap<About, Pause>,
    /// When a running operation may be polled again.
    poll_at: BTreeMap<ArmId, Time>,
    /// What was asked for, by the operation that Azure began for it.
    operations: BTreeMap<ArmId, About>,
}

/// A longer pause may be probed with one call per so long.
const PROBE_EVERY: Duration = Duration::from_secs(15 * 60);

/// A wait that Azure asked for.
#[derive(Clone, Debug, Default)]
struct Pause {
    until: Time,
    /// When Azure last asked for it, or a call last probed it.
    touched: Time,
    /// The last probe.
    probe: Option<Request>,
}

impl Pause {
    fn asked(&mut self, now: Time, wait: Duration) {
        self.until = self.until.max(now + wait);
        self.touched = now;
    }

    /// A call is begun. Returns how much too early, if it is no probe.
    fn begin(&mut self, now: Time, request: &Request) -> Option<Duration> {
        if now >= self.until {
            return None;
        }
        if now.since(self.touched) < PROBE_EVERY {
            return Some(self.until.since(now));
        }
        (self.touched, self.probe) = (now, Some(request.clone()));
        None
    }

    /// Azure no longer throttles the probe, so the pause is over.
    fn accepted(&mut self, now: Time, request: &Request) {
        if self.probe.as_ref() == Some(request) {
            self.until = self.until.min(now);
            self.probe = None;
        }
    }
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
            pauses: Default::default(),
            busy: BTreeMap::new(),
            poll_at: BTreeMap::new(),
            operations: BTreeMap::new(),
        }
    }

    /// **S12**: never more calls than our share of each bucket and window; none before `Retry-After` is over.
    ///
    /// A pause shuts the bucket of the call that was throttled, and of the network provider's both
    /// writes and deletes; any other wait is about calls of that kind on that resource, and one inside a
    /// failed operation about calls like the one that began it. Excused: what was already on the wire
    /// when the pause arrived, the gateway's POST of the other kind, and the probe of a pause: one call when the
    /// last answer that asked for it, and the last probe, are 15 minutes ago. Once Azure accepts a probe the pause is
    /// over. A `Retry-After` on an answer about a running operation holds the polls of that operation.
    pub fn s12_begin(&mut self, now: Time, request: &Request) -> Result<(), Violation> {
        let bucket = request.method.bucket();
        let polled = self.poll_at.get(&request.target).filter(|_| request.method == Method::Poll);
        let mut early = polled.map(|at| at.since(now)).filter(|early| !early.is_zero());
        for pause in paused_with(bucket) {
            early = early.max(self.pauses[*pause].begin(now, request));
        }
        if let Some(pause) = self.busy.get_mut(&about(request)) {
            early = early.max(pause.begin(now, request));
        }
        if let Some(early) = early {
            let left = early.as_millis();
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
        let bucket = request.method.bucket();
        if let Reply::Answered(answer) = reply
            && answer.status < 500
            && !matches!(answer.status, 401 | 408 | 429)
        {
            for pause in paused_with(bucket) {
                self.pauses[*pause].accepted(now, request);
            }
        }
        let Some(failure) = Failure::in_reply(reply) else {
            if let Some(pause) = self.busy.get_mut(&about(request)) {
                pause.accepted(now, request);
            }
            return self.runs_on(now, request, reply);
        };
        let Some(wait) = failure.retry_after else { return };
        let busy =
            failure.code.starts_with("RetryableError") || &*failure.code == "AnotherOperationInProgress";
        if busy || failure.class != FailureClass::Throttled {
            let about = self.operation_failed(request, reply).unwrap_or_else(|| about(request));
            return self.busy.entry(about).or_default().asked(now, wait);
        }
        let by_network = &*failure.code == "TooManyRequests" && bucket != Bucket::Reads;
        self.pauses[if by_network { BY_NETWORK } else { bucket as usize }].asked(now, wait);
    }

    /// An answer about a running operation may say when to ask about it again.
    fn runs_on(&mut self, now: Time, request: &Request, reply: &Reply) {
        let Reply::Answered(Answer { retry_after: Some(wait), operation, .. }) = reply else { return };
        let polled = (request.method == Method::Poll).then_some(&request.target);
        if let Some(operation) = operation.as_ref().or(polled) {
            let known = self.poll_at.entry(operation.clone()).or_insert(Time::ZERO);
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

/// The pause of the network provider.
const BY_NETWORK: usize = 3;

/// The pauses that hold calls of this bucket.
fn paused_with(bucket: Bucket) -> &'static [usize] {
    match bucket {
        Bucket::Reads => &[Bucket::Reads as usize],
        Bucket::Writes => &[Bucket::Writes as usize, BY_NETWORK],
        Bucket::Deletes => &[Bucket::Deletes as usize, BY_NETWORK],
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

    const DAY: Duration = Duration::from_secs(86_400);
    const MINUTE: Duration = Duration::from_secs(60);

    fn delete() -> Request {
        Request::bare(Method::Delete, ArmId::new("/loadBalancers/web"))
    }

    fn throttled(wait: Duration) -> Reply {
        let error = ArmError { code: "TooManyRequests".into(), message: "".into() };
        Reply::Answered(Answer { retry_after: Some(wait), ..Answer::new(429, Payload::Error(error)) })
    }

    fn paused_for(wait: Duration) -> CallCount {
        let mut calls = CallCount::new(&Config::default());
        calls.answered(Time::ZERO, &commit(), &throttled(wait));
        calls
    }

    #[test]
    fn a_pause_of_a_day_may_be_probed_with_one_call_every_15_minutes() {
        let mut calls = paused_for(DAY);
        let early = |calls: &CallCount, at| calls.clone().s12_begin(at, &commit()).is_err();
        let mut at = Time::ZERO;
        for _ in 0..3 {
            assert!(early(&calls, at + MINUTE * 14));
            at = at + MINUTE * 15;
            calls.s12_begin(at, &commit()).expect("the probe");
            assert!(early(&calls, at), "one call only");
            assert!(calls.clone().s12_begin(at, &delete()).is_err(), "whatever its bucket");
        }
        calls.answered(at, &commit(), &throttled(DAY));
        assert!(early(&calls, at + MINUTE * 14));
    }

    #[test]
    fn a_shorter_pause_may_not_be_probed() {
        let mut calls = paused_for(MINUTE * 15);
        assert!(calls.s12_begin(Time::ZERO + (MINUTE * 15 - Duration::from_millis(1)), &commit()).is_err());
        assert!(calls.s12_begin(Time::ZERO + MINUTE * 15, &commit()).is_ok());
        assert!(calls.s12_begin(Time::ZERO + MINUTE * 15, &delete()).is_ok());
    }

    #[test]
    fn only_a_probe_that_azure_accepts_ends_the_pause() {
        let at = Time::ZERO + MINUTE * 15;
        let accepted = Reply::Answered(Answer::new(200, Payload::None));
        for (request, reply, ends) in [
            (commit(), accepted.clone(), true),
            (delete(), accepted, false),
            (commit(), Reply::lost(""), false),
            (commit(), Reply::Answered(Answer::new(503, Payload::None)), false),
            (commit(), throttled(MINUTE), false),
        ] {
            let mut calls = paused_for(DAY);
            calls.s12_begin(at, &commit()).expect("the probe");
            calls.answered(at, &request, &reply);
            assert_eq!(calls.s12_begin(at + MINUTE * 2, &delete()).is_ok(), ends, "{reply:?}");
        }
    }
}
