//! When what failed is tried again: waits, parks, and what ends them.

use alloc::collections::BTreeMap;
use alloc::string::String;
use core::time::Duration;

use sluice_model::reason::Reason;
use sluice_model::seeded::{Bug, Seeded};
use sluice_model::{Failure, FailureClass, Step, Time};

use crate::config::Retry;

/// A service's next attempt waits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hold {
    /// When it is tried again.
    pub until: Time,
    /// A park is long and told to people; a wait is short.
    pub parked: bool,
    /// Why, in one word.
    pub reason: Reason,
    /// Why, in a sentence.
    pub text: String,
}

/// How often it has failed, since it last succeeded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Attempts {
    /// In this burst.
    pub(crate) burst: u32,
    /// In all.
    pub(crate) total: u32,
    /// Parks in a row for a quota, a permission and a refusal: what one of them has grown to says nothing
    /// about the others.
    pub(crate) parks: [u32; 3],
    /// Refusals in a row.
    pub(crate) refusals: u32,
}

impl Attempts {
    /// Counts a failure and says how long to wait.
    pub(crate) fn hold(
        &mut self,
        now: Time,
        retry: &Retry,
        jitter: &mut Jitter,
        failure: &Failure,
        seeded: Seeded,
    ) -> Hold {
        use alloc::string::ToString;
        self.total = self.total.saturating_add(1);
        let text = failure.to_string();
        let parked = |until, reason| Hold { until, parked: true, reason, text: text.clone() };
        if seeded.has(Bug::GiveUpAfterThree) && self.total >= 3 {
            return parked(Time::NEVER, Reason::AzureUnavailable);
        }
        let mut park = |attempts: &mut Attempts, (first, longest): (Duration, Duration), reason| {
            let parks = match reason {
                Reason::QuotaExceeded => Some(&mut attempts.parks[0]),
                Reason::Forbidden => Some(&mut attempts.parks[1]),
                Reason::Rejected => Some(&mut attempts.parks[2]),
                _ => None,
            };
            let before = parks.map_or(0, |parks| core::mem::replace(parks, parks.saturating_add(1)));
            let span = doubled(first, before).min(longest);
            attempts.burst = 0;
            let until = if seeded.has(Bug::ParkForever) { Time::NEVER } else { now + jitter.around(span) };
            parked(until, reason)
        };
        match failure.class {
            FailureClass::Quota => park(self, retry.quota_park, Reason::QuotaExceeded),
            FailureClass::Forbidden => park(self, retry.forbidden_park, Reason::Forbidden),
            FailureClass::Rejected => {
                self.refusals = self.refusals.saturating_add(1);
                if self.refusals > 1 {
                    return park(self, retry.quota_park, Reason::Rejected);
                }
                let until = now + jitter.around(retry.backoff_min);
                Hold { until, parked: false, reason: Reason::Rejected, text }
            }
            FailureClass::Throttled => {
                // Nobody's fault, so it does not count as an attempt.
                self.total = self.total.saturating_sub(1);
                let until = now + failure.retry_after.unwrap_or(retry.backoff_min).max(retry.backoff_min);
                Hold { until, parked: false, reason: Reason::Throttled, text }
            }
            _ => {
                self.burst = self.burst.saturating_add(1);
                if self.burst >= retry.attempts_max {
                    return park(self, (retry.burst_park, retry.burst_park), Reason::AzureUnavailable);
                }
                let span = doubled(retry.backoff_min, self.burst - 1).min(retry.backoff_max);
                Hold {
                    until: now + jitter.around(span),
                    parked: false,
                    reason: Reason::AzureUnavailable,
                    text,
                }
            }
        }
    }
}

/// A kind of step that has failed for this long without a success is in an outage.
const OUTAGE_MIN: Duration = Duration::from_secs(60);

/// After an outage the services that waited for it are retried within this time, not all at once.
pub(crate) const OUTAGE_SPREAD: Duration = Duration::from_secs(10);

/// Which kinds of steps have only failed lately, whatever the service. A kind is the step's word.
#[derive(Debug, Default)]
pub(crate) struct Outages {
    /// The first transient failure since the last success.
    failing_since: BTreeMap<&'static str, Time>,
}

impl Outages {
    pub(crate) fn failed(&mut self, now: Time, step: &Step) {
        self.failing_since.entry(step.word()).or_insert(now);
    }

    /// The kinds of steps whose outage ends with the success of this one. A write also proves that reads work: in a
    /// complete outage a service gets stuck at the read that follows a failed write.
    pub(crate) fn succeeded(&mut self, now: Time, step: &Step) -> impl Iterator<Item = &'static str> + use<> {
        let read = match step {
            Step::PutPublicIp { .. } | Step::DeletePublicIp(_) => "read-public-ip",
            Step::PutLoadBalancer { .. } | Step::DeleteLoadBalancer(_) => "read-load-balancer",
            Step::PutNatGateway { .. } | Step::DeleteNatGateway(_) => "read-nat-gateway",
            Step::Register(_) | Step::Clear(_) | Step::Unregister(_) => "read-registration",
            _ => "",
        };
        let mut is_over = |kind: &&'static str| {
            self.failing_since.remove(kind).is_some_and(|since| now.since(since) >= OUTAGE_MIN)
        };
        [step.word(), read].map(|kind| Some(kind).filter(&mut is_over)).into_iter().flatten()
    }
}

fn doubled(span: Duration, times: u32) -> Duration {
    span.saturating_mul(1u32 << times.min(20))
}

/// A small seeded generator, so that many services do not retry in step and a run can be replayed.
#[derive(Clone, Debug)]
pub(crate) struct Jitter(u64);

impl Jitter {
    pub(crate) fn new(seed: u64) -> Jitter {
        Jitter(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// The span, up to a fifth shorter or longer.
    pub(crate) fn around(&mut self, span: Duration) -> Duration {
        let ms = u64::try_from(span.as_millis()).unwrap_or(u64::MAX / 4).min(u64::MAX / 4);
        let fifth = ms / 5;
        Duration::from_millis(ms - fifth + self.next() % (2 * fifth + 1))
    }

    /// Any time up to the span.
    pub(crate) fn within(&mut self, span: Duration) -> Duration {
        let ms = u64::try_from(span.as_millis()).unwrap_or(u64::MAX - 1).min(u64::MAX - 1);
        Duration::from_millis(self.next() % (ms + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How long each failure in a row is waited for, in minutes, jitter aside.
    fn waits(classes: &[FailureClass]) -> std::vec::Vec<u64> {
        let (retry, mut jitter, mut attempts) = (Retry::default(), Jitter::new(1), Attempts::default());
        let mut wait = |class: &FailureClass| {
            let failure = Failure::of(*class, "Code", "text");
            let hold = attempts.hold(Time::ZERO, &retry, &mut jitter, &failure, Seeded::NONE);
            hold.until.since(Time::ZERO).as_secs()
        };
        classes.iter().map(|class| (wait(class) + 120) / 300 * 5).collect()
    }

    #[test]
    fn a_park_grows_by_its_own_kind_and_by_no_other() {
        use FailureClass::{Forbidden, Quota};
        assert_eq!(waits(&[Quota, Quota]), [10, 20]);
        assert_eq!(waits(&[Forbidden, Forbidden]), [5, 10]);
        assert_eq!(waits(&[Quota, Quota, Forbidden]), [10, 20, 5]);
    }
}
