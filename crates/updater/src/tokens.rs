//! The two ways in which Azure counts calls: a bucket that refills, and a sliding window.

use alloc::collections::VecDeque;
use core::time::Duration;

use sluice_model::Time;

use crate::config::BucketSize;

/// One token. Tokens are kept in millionths, so that slow rates need no fractions.
const ONE: u64 = 1_000_000;

/// A bucket of tokens.
#[derive(Clone, Debug)]
pub(crate) struct Tokens {
    level: u64,
    cap: u64,
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
        let rate = u64::from(size.per_second).saturating_mul(permille) / 1_000;
        Tokens { level: cap, cap, rate, at: Time::ZERO }
    }

    /// A bucket that holds `burst` and gets `calls` per `span`.
    pub(crate) fn per(burst: u32, calls: u32, span: Duration) -> Tokens {
        let span_ms = u64::try_from(span.as_millis()).unwrap_or(u64::MAX).max(1);
        let cap = u64::from(burst) * ONE;
        Tokens { level: cap, cap, rate: u64::from(calls) * ONE / span_ms, at: Time::ZERO }
    }

    /// A bucket that gets only what is added.
    pub(crate) fn empty(burst: u32) -> Tokens {
        Tokens { level: 0, cap: u64::from(burst) * ONE, rate: 0, at: Time::ZERO }
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

    pub(crate) fn at_most(&mut self, tokens: u32) {
        self.level = self.level.min(u64::from(tokens) * ONE);
    }

    /// How many whole tokens there are.
    pub(crate) fn whole(&self, now: Time) -> u32 {
        u32::try_from(self.level_at(now) / ONE).unwrap_or(u32::MAX)
    }

    /// How many whole tokens it can hold.
    pub(crate) fn most(&self) -> u32 {
        u32::try_from(self.cap / ONE).unwrap_or(u32::MAX)
    }

    /// When there will be so many tokens, if nobody takes any; what `other` cannot hold flows
    /// in here too.
    pub(crate) fn earliest(&self, now: Time, tokens: u32, other: Option<&Tokens>) -> Time {
        let missing = (u64::from(tokens) * ONE).saturating_sub(self.level_at(now));
        if missing == 0 {
            return now;
        }
        let alone_ms = ceil_div(missing, self.rate);
        let Some(other) = other.filter(|other| other.rate > 0) else { return after(now, alone_ms) };
        let other_full_ms = ceil_div(other.cap - other.level_at(now), other.rate);
        if alone_ms <= other_full_ms {
            return after(now, alone_ms);
        }
        let left = missing.saturating_sub(self.rate.saturating_mul(other_full_ms));
        let together_ms = ceil_div(left, self.rate.saturating_add(other.rate));
        after(now, other_full_ms.saturating_add(together_ms))
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
