//! Recounts the calls of one process: S12.
//!
//! Three token buckets and two windows of five minutes, counted anew from the requests that were
//! begun; and the pauses that Azure asked for. It knows the configured sizes and nothing of how
//! the updaters keep to them.

use core::time::Duration;
use std::collections::VecDeque;

use sluice_model::Time;
use sluice_model::call::{Bucket, Method, Reply, Request};
use sluice_model::failure::{Failure, FailureClass};
use sluice_updater::{BucketSize, Config};

use crate::names::{Invariant, Violation};

/// Who sends through the same gate: a pause for one resource's sake shuts only this.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Lane {
    Reads,
    Services,
    Locations,
    Deletes,
}

impl Lane {
    const ALL: [Lane; 4] = [Lane::Reads, Lane::Services, Lane::Locations, Lane::Deletes];

    const fn of(method: Method) -> Lane {
        match method {
            Method::UpdateLocations => Lane::Locations,
            _ => match method.bucket() {
                Bucket::Reads => Lane::Reads,
                Bucket::Writes => Lane::Services,
                Bucket::Deletes => Lane::Deletes,
            },
        }
    }

    const fn bucket(self) -> Bucket {
        match self {
            Lane::Reads => Bucket::Reads,
            Lane::Services | Lane::Locations => Bucket::Writes,
            Lane::Deletes => Bucket::Deletes,
        }
    }
}

/// The calls of one process.
#[derive(Clone, Debug)]
pub struct CallCount {
    config: Config,
    buckets: [Tokens; 3],
    reads: VecDeque<Time>,
    writes: VecDeque<Time>,
    paused_until: [Time; 4],
}

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
            paused_until: [Time::ZERO; 4],
        }
    }

    /// **S12**: never more calls than our share of each bucket and window; none before `Retry-After` is over.
    ///
    /// A pause shuts the bucket of the call that was throttled; when Azure speaks of another
    /// operation, only that lane. Excused: what was already on the wire when the pause arrived.
    pub fn s12_begin(&mut self, now: Time, request: &Request) -> Result<(), Violation> {
        let lane = Lane::of(request.method);
        let until = self.paused_until[lane as usize];
        if now < until {
            let left = until.since(now).as_millis();
            let text = format!("{:?} is begun {left} ms before Retry-After is over", request.method);
            return Err(Violation::of(Invariant::S12, text));
        }
        if !self.buckets[lane.bucket() as usize].take(now) {
            let text = format!("more {:?} than our share of the bucket", lane.bucket());
            return Err(Violation::of(Invariant::S12, text));
        }
        let (calls, limit) = match lane.bucket() {
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
    pub fn answered(&mut self, now: Time, method: Method, reply: &Reply) {
        let Some(failure) = Failure::in_reply(reply) else { return };
        let Some(wait) = failure.retry_after.filter(|_| failure.class == FailureClass::Throttled) else {
            return;
        };
        let wait = wait.min(Duration::from_secs(3_600));
        let lane = Lane::of(method);
        let one_resource =
            failure.code.starts_with("RetryableError") || &*failure.code == "AnotherOperationInProgress";
        for other in Lane::ALL {
            if other == lane || (!one_resource && other.bucket() == lane.bucket()) {
                let until = &mut self.paused_until[other as usize];
                *until = (*until).max(now + wait);
            }
        }
    }
}
