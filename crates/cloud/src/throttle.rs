//! Counts calls, as the resource manager and the network provider do.
//!
//! Who asks too often is told when to come back and pays nothing for having asked.

use core::time::Duration;

use sluice_model::Time;
use sluice_model::call::Bucket;

use crate::config::{Buckets, Rate, Window};
use crate::refusal::Refusal;

/// What has been spent.
#[derive(Clone, Debug)]
pub(crate) struct Throttle {
    sizes: Buckets,
    reads: Level,
    writes: Level,
    deletes: Level,
    window: Spent,
}

/// What is in a bucket, in thousandths of a call.
#[derive(Clone, Copy, Debug)]
struct Level {
    thousandths: u64,
    at: Time,
}

#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    since: Option<Time>,
    reads: u32,
    writes: u32,
}

impl Throttle {
    pub(crate) fn new(sizes: Buckets) -> Throttle {
        let full = |rate: Rate| Level { thousandths: u64::from(rate.burst) * 1_000, at: Time::ZERO };
        Throttle {
            sizes,
            reads: full(sizes.reads),
            writes: full(sizes.writes),
            deletes: full(sizes.deletes),
            window: Spent::default(),
        }
    }

    /// Pays for one call, and says how many are left in its bucket.
    pub(crate) fn pay(
        &mut self,
        now: Time,
        bucket: Bucket,
        is_network: bool,
        subscription: &str,
    ) -> Result<u32, Refusal> {
        let (level, rate) = self.level(bucket);
        level.refill(now, rate);
        if level.thousandths < 1_000 {
            let missing = 1_000 - level.thousandths;
            let wait = missing.checked_div(u64::from(rate.per_second)).unwrap_or(3_600_000);
            let wait = whole_seconds(Duration::from_millis(wait));
            return Err(Refusal::throttled(bucket, subscription, wait));
        }
        if let (true, Some(size)) = (is_network, self.sizes.network) {
            self.window.pay(now, bucket, size)?;
        }
        let (level, _) = self.level(bucket);
        level.thousandths -= 1_000;
        Ok(level.whole())
    }

    /// How many calls are left in a bucket.
    pub(crate) fn left(&mut self, now: Time, bucket: Bucket) -> u32 {
        let (level, rate) = self.level(bucket);
        level.refill(now, rate);
        level.whole()
    }

    fn level(&mut self, bucket: Bucket) -> (&mut Level, Rate) {
        match bucket {
            Bucket::Reads => (&mut self.reads, self.sizes.reads),
            Bucket::Writes => (&mut self.writes, self.sizes.writes),
            Bucket::Deletes => (&mut self.deletes, self.sizes.deletes),
        }
    }
}

impl Level {
    fn whole(self) -> u32 {
        u32::try_from(self.thousandths / 1_000).unwrap_or(u32::MAX)
    }

    fn refill(&mut self, now: Time, rate: Rate) {
        let elapsed_ms = u64::try_from(now.since(self.at).as_millis()).unwrap_or(u64::MAX);
        // So many calls a second are as many thousandths of a call a millisecond.
        let gained = elapsed_ms.saturating_mul(u64::from(rate.per_second));
        self.thousandths = self.thousandths.saturating_add(gained).min(u64::from(rate.burst) * 1_000);
        self.at = self.at.max(now);
    }
}

impl Spent {
    fn pay(&mut self, now: Time, bucket: Bucket, size: Window) -> Result<(), Refusal> {
        let since = match self.since {
            Some(since) if now < since + size.length => since,
            _ => {
                *self = Spent { since: Some(now), ..Spent::default() };
                now
            }
        };
        let (spent, most) = match bucket {
            Bucket::Reads => (&mut self.reads, size.reads),
            Bucket::Writes | Bucket::Deletes => (&mut self.writes, size.writes),
        };
        if *spent >= most {
            return Err(Refusal::throttled_by_network(whole_seconds((since + size.length).since(now))));
        }
        *spent += 1;
        Ok(())
    }
}

/// Rounded up, at least one.
pub(crate) fn whole_seconds(wait: Duration) -> Duration {
    let up = u64::from(wait.subsec_nanos() > 0);
    Duration::from_secs(wait.as_secs().saturating_add(up).max(1))
}
