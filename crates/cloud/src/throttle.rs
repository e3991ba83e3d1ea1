//! Counts calls, as the resource manager and the network provider do.
//!
//! Everybody has buckets of their own in every subscription. Who asks too often is told when to come back and
//! pays nothing for having asked.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use core::time::Duration;

use sluice_model::Time;
use sluice_model::call::Bucket;

use crate::config::{Buckets, Rate, Window};
use crate::refusal::Refusal;

/// How many accounts there are at most; who opens a further one lets go of those that are full again.
const ACCOUNTS_MAX: usize = 1_000;

/// What everybody has spent.
#[derive(Clone, Debug)]
pub(crate) struct Throttle {
    sizes: Buckets,
    accounts: BTreeMap<Account, Levels>,
}

/// Who pays, and where; a subscription in small letters, since ids differ by everything but case.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Account {
    payer: Arc<str>,
    subscription: String,
}

/// What is left to one payer in one subscription.
#[derive(Clone, Debug)]
struct Levels {
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
        Throttle { sizes, accounts: BTreeMap::new() }
    }

    /// Pays for one call, and says how many are left in its bucket.
    pub(crate) fn pay(
        &mut self,
        now: Time,
        payer: &Arc<str>,
        bucket: Bucket,
        is_network: bool,
        subscription: &str,
    ) -> Result<u32, Refusal> {
        self.levels(now, payer, subscription).pay(now, bucket, is_network, subscription)
    }

    /// How many calls are left in a bucket.
    pub(crate) fn left(&mut self, now: Time, payer: &Arc<str>, bucket: Bucket, subscription: &str) -> u32 {
        self.levels(now, payer, subscription).left(now, bucket)
    }

    fn levels(&mut self, now: Time, payer: &Arc<str>, subscription: &str) -> &mut Levels {
        let account = Account { payer: payer.clone(), subscription: subscription.to_ascii_lowercase() };
        if self.accounts.len() >= ACCOUNTS_MAX && !self.accounts.contains_key(&account) {
            self.close_some(now);
        }
        self.accounts.entry(account).or_insert_with(|| Levels::full(self.sizes))
    }

    /// Lets go of accounts that are as good as new, or else of the one that was quiet for the longest time.
    fn close_some(&mut self, now: Time) {
        self.accounts.retain(|_, levels| !levels.is_full(now));
        if self.accounts.len() < ACCOUNTS_MAX {
            return;
        }
        let quiet = self.accounts.iter().min_by_key(|(_, levels)| levels.touched());
        if let Some(account) = quiet.map(|(account, _)| account.clone()) {
            self.accounts.remove(&account);
        }
    }
}

impl Levels {
    fn full(sizes: Buckets) -> Levels {
        let full = |rate: Rate| Level { thousandths: u64::from(rate.burst) * 1_000, at: Time::ZERO };
        Levels {
            sizes,
            reads: full(sizes.reads),
            writes: full(sizes.writes),
            deletes: full(sizes.deletes),
            window: Spent::default(),
        }
    }

    fn pay(
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
            return Err(Refusal::throttled(bucket, subscription, Duration::from_millis(wait)));
        }
        let whole = level.whole();
        if let (true, Some(size)) = (is_network, self.sizes.network) {
            self.window.pay(now, bucket, size).map_err(|wait| Refusal::throttled_by_network(wait, whole))?;
        }
        let (level, _) = self.level(bucket);
        level.thousandths -= 1_000;
        Ok(level.whole())
    }

    fn left(&mut self, now: Time, bucket: Bucket) -> u32 {
        let (level, rate) = self.level(bucket);
        level.refill(now, rate);
        level.whole()
    }

    /// Whether nothing would be different had nobody ever paid.
    fn is_full(&mut self, now: Time) -> bool {
        let is_full = [Bucket::Reads, Bucket::Writes, Bucket::Deletes].into_iter().all(|bucket| {
            let left = self.left(now, bucket);
            left >= self.level(bucket).1.burst
        });
        let length = self.sizes.network.map_or(Duration::ZERO, |window| window.length);
        is_full && self.window.since.is_none_or(|since| since + length <= now)
    }

    /// When somebody last asked.
    fn touched(&self) -> Time {
        self.reads.at.max(self.writes.at).max(self.deletes.at)
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
    /// Counts one call, or says how long the window still is.
    fn pay(&mut self, now: Time, bucket: Bucket, size: Window) -> Result<(), Duration> {
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
            return Err((since + size.length).since(now));
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

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    fn pay(throttle: &mut Throttle, now: Time, payer: &str, subscription: &str) -> Option<u32> {
        throttle.pay(now, &payer.into(), Bucket::Writes, true, subscription).ok()
    }

    #[test]
    fn everybody_pays_for_themselves_in_every_subscription() {
        let sizes = Buckets { writes: Rate { burst: 1, per_second: 0 }, ..Buckets::default() };
        let mut throttle = Throttle::new(sizes);
        for (payer, subscription, left) in [
            ("a", "s", Some(0)),
            ("a", "S", None),
            ("b", "s", Some(0)),
            ("a", "t", Some(0)),
            ("b", "s", None),
        ] {
            assert_eq!(
                pay(&mut throttle, Time::ZERO, payer, subscription),
                left,
                "{payer} in {subscription}"
            );
        }
    }

    #[test]
    fn there_are_only_so_many_accounts_and_the_busy_ones_stay() {
        let mut throttle = Throttle::new(Buckets::default());
        let later = Time::from_millis(60_000);
        pay(&mut throttle, Time::ZERO, "early", "s");
        for number in 0..2 * ACCOUNTS_MAX {
            pay(&mut throttle, later, "many", &format!("{number}"));
            pay(&mut throttle, later, "busy", "s");
        }
        assert_eq!(throttle.accounts.len(), ACCOUNTS_MAX);
        assert!(throttle.accounts.keys().all(|account| *account.payer != *"early"));
        let new = Time::from_millis(3_600_000);
        pay(&mut throttle, new, "new", "s");
        assert_eq!(throttle.accounts.len(), 1);
    }
}
