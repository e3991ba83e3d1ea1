//! The two ways in which Azure counts calls: a bucket that refills, and a sliding window.

use alloc::collections::VecDeque;
use core::time::Duration;

use sluice_model::Time;

use crate::config::BucketSize;

/// One token. Tokens are kept in millionths, so that slow rates need no fractions.
const ONE: u64 = 1_000_000;

/// A lane keeps one in so many of its calls for itself, whatever the other lane needs.
pub(crate) const KEPT_BACK: u32 = 12;

/// A bucket of tokens.
#[derive(Clone, Debug)]
pub(crate) struct Tokens {
    level: u64,
    cap: u64,
    /// What another bucket cannot borrow.
    kept: u64,
    /// Millionths per millisecond.
    rate: u64,
    at: Time,
}

impl Tokens {
    /// A share of one of Azure's buckets, of which a lane owns a part. Holds at least one token.
    pub(crate) fn share_of(size: BucketSize, share_permille: u32, lane_permille: u32) -> Tokens {
        let permille = u64::from(share_permille) * u64::from(lane_permille);
        // A part of a token is no call: the burst is rounded down to whole ones.
        let burst = u64::from(size.burst) * permille / 1_000_000;
        let cap = burst.max(1).saturating_mul(ONE);
        let kept = (burst / u64::from(KEPT_BACK)).max(1).saturating_mul(ONE);
        let rate = u64::from(size.per_second).saturating_mul(permille) / 1_000;
        Tokens { level: cap, cap, kept, rate, at: Time::ZERO }
    }

    /// Lets time pass; returns what did not fit.
    pub(crate) fn refill(&mut self, now: Time) -> u64 {
        let passed_ms = now.as_millis().saturating_sub(self.at.as_millis());
        self.at = self.at.max(now);
        let full = self.level.saturating_add(passed_ms.saturating_mul(self.rate));
        self.level = full.min(self.cap);
        full - self.level
    }

    pub(crate) fn add(&mut self, millionths: u64) {
        self.level = self.level.saturating_add(millionths).min(self.cap);
    }

    pub(crate) fn take(&mut self) {
        self.level = self.level.saturating_sub(ONE);
    }

    /// Takes a token, and from `lender` what is missing of one.
    pub(crate) fn take_or_borrow(&mut self, lender: &mut Tokens) {
        let missing = ONE.saturating_sub(self.level);
        lender.level = lender.level.saturating_sub(missing);
        self.take();
    }

    pub(crate) fn at_most(&mut self, tokens: u32) {
        self.level = self.level.min(u64::from(tokens) * ONE);
    }

    pub(crate) fn set(&mut self, tokens: u32) {
        self.level = (u64::from(tokens) * ONE).min(self.cap);
    }

    /// How many whole tokens there are.
    pub(crate) fn whole(&self, now: Time) -> u32 {
        u32::try_from(self.level_at(now) / ONE).unwrap_or(u32::MAX)
    }

    /// How many whole tokens it can hold.
    pub(crate) fn most(&self) -> u32 {
        u32::try_from(self.cap / ONE).unwrap_or(u32::MAX)
    }

    /// When there will be so many tokens if none are taken, with those that `lender` does not keep for itself.
    pub(crate) fn earliest(&self, now: Time, tokens: u32, lender: Option<&Tokens>) -> Time {
        let lent = lender.map_or(0, |it| it.level_at(now).saturating_sub(it.kept));
        let missing = (u64::from(tokens) * ONE).saturating_sub(self.level_at(now).saturating_add(lent));
        if missing == 0 {
            return now;
        }
        let alone_ms = ceil_div(missing, self.rate);
        let Some(lender) = lender.filter(|it| it.rate > 0) else { return after(now, alone_ms) };
        let lends_after_ms = ceil_div(lender.kept.saturating_sub(lender.level_at(now)), lender.rate);
        if alone_ms <= lends_after_ms {
            return after(now, alone_ms);
        }
        let left = missing.saturating_sub(self.rate.saturating_mul(lends_after_ms));
        let together_ms = ceil_div(left, self.rate.saturating_add(lender.rate));
        after(now, lends_after_ms.saturating_add(together_ms))
    }

    fn level_at(&self, now: Time) -> u64 {
        let passed_ms = now.as_millis().saturating_sub(self.at.as_millis());
        self.level.saturating_add(passed_ms.saturating_mul(self.rate)).min(self.cap)
    }
}

fn after(now: Time, ms: u64) -> Time {
    Time::from_millis(now.as_millis().saturating_add(ms))
}

fn ceil_div(amount: u64, rate: u64) -> u64 {
    if rate == 0 { u64::MAX } else { amount.div_ceil(rate) }
}

/// Calls within the last span of time.
///
/// Calls are remembered per second and forgotten when the whole second is old enough, so the
/// limit holds in every span, wherever it begins.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    limit: u32,
    span_ms: u64,
    used: u32,
    /// The end of each second in which there were calls, and how many.
    seconds: VecDeque<(u64, u32)>,
}

impl Window {
    pub(crate) fn new(limit: u32, span: Duration) -> Window {
        let span_ms = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        Window { limit, span_ms, used: 0, seconds: VecDeque::new() }
    }

    pub(crate) fn room(&self) -> u32 {
        self.limit.saturating_sub(self.used)
    }

    pub(crate) fn limit(&self) -> u32 {
        self.limit
    }

    pub(crate) fn used(&self) -> u32 {
        self.used
    }

    /// How much of the limit is used up.
    pub(crate) fn used_permille(&self) -> u32 {
        let used = u64::from(self.used.min(self.limit)) * 1_000;
        u32::try_from(used.checked_div(u64::from(self.limit)).unwrap_or(1_000)).unwrap_or(1_000)
    }

    pub(crate) fn count(&mut self, now: Time) {
        let end = (now.as_millis() / 1_000).saturating_add(1).saturating_mul(1_000);
        self.used = self.used.saturating_add(1);
        match self.seconds.back_mut() {
            Some((last, calls)) if *last >= end => *calls = calls.saturating_add(1),
            _ => self.seconds.push_back((end, 1)),
        }
    }

    /// Forgets what is old enough.
    pub(crate) fn forget(&mut self, now: Time) {
        while let Some(&(end, calls)) = self.seconds.front() {
            if end.saturating_add(self.span_ms) > now.as_millis() {
                return;
            }
            self.used = self.used.saturating_sub(calls);
            self.seconds.pop_front();
        }
    }

    /// Whether at least one in so many calls of the limit is used up.
    pub(crate) fn has_used_one_in(&self, parts: u32) -> bool {
        self.used >= self.limit / parts.max(1)
    }

    /// When so many calls of another can be counted here and the owner still finds room for a burst, and from
    /// then on for an even pace.
    pub(crate) fn lends_at(&self, now: Time, calls: u32) -> Time {
        let burst = (self.limit / KEPT_BACK).max(1);
        let pace = u64::from(self.limit.saturating_sub(2 * burst));
        let needed = i64::from(calls.min(burst)) + i64::from(burst);
        if i64::from(self.limit) < needed {
            return Time::NEVER;
        }
        let mut spare = i64::from(self.room()) - needed;
        let mut at_ms = now.as_millis();
        for &(end, calls) in &self.seconds {
            let free_ms = end.saturating_add(self.span_ms);
            // What is spare now lasts for so long at the owner's pace; it has to last until more becomes free.
            let lasts_ms = u64::try_from(spare).ok().map(|spare| match pace {
                0 => u64::MAX,
                _ => spare.saturating_mul(self.span_ms) / pace,
            });
            at_ms = at_ms.max(free_ms.saturating_sub(lasts_ms.unwrap_or(0)));
            spare += i64::from(calls);
        }
        Time::from_millis(at_ms)
    }

    /// The shortest interval at which calls can go on for ever.
    pub(crate) fn interval(&self, now: Time) -> Duration {
        let mut room = u64::from(self.room());
        let mut longest_ms = 0;
        for &(end, calls) in &self.seconds {
            let free_in_ms = end.saturating_add(self.span_ms).saturating_sub(now.as_millis());
            longest_ms = longest_ms.max(free_in_ms.div_ceil(room.max(1)));
            room += u64::from(calls);
        }
        Duration::from_millis(longest_ms)
    }

    /// When there is room for so many calls; more than the limit never fit, so at most that many.
    pub(crate) fn earliest(&self, now: Time, calls: u32) -> Time {
        if self.limit == 0 {
            return Time::NEVER;
        }
        let mut in_the_way = self.used.saturating_add(calls.min(self.limit)).saturating_sub(self.limit);
        if in_the_way == 0 {
            return now;
        }
        for &(end, calls) in &self.seconds {
            in_the_way = in_the_way.saturating_sub(calls);
            if in_the_way == 0 {
                return now.max(Time::from_millis(end.saturating_add(self.span_ms)));
            }
        }
        now
    }
}
