//! What the engine has counted: plain data from which metrics are made.

use core::time::Duration;

use sluice_model::FailureClass;
use sluice_model::reason::Reason;

use crate::state::{State, Trigger};

/// Counts since the engine was made, and the histograms behind the duration metrics.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Counters {
    /// How often each trigger met each state.
    pub cells: [[u64; Trigger::COUNT]; State::COUNT],
    /// Plans handed to the service updater.
    pub plans_started: u64,
    /// Plans that came to their end.
    pub plans_succeeded: u64,
    /// Plans that failed, whatever the class.
    pub plans_failed: u64,
    /// Creations that failed.
    pub creations_failed: u64,
    /// How long services took from being wanted to being `Created`.
    pub creations: Histogram,
    /// How long services took from being unwanted to being forgotten.
    pub deletions: Histogram,
    /// How long location syncs took.
    pub syncs: Histogram,
    /// How long endpoints waited for their service, measured from the first that waited.
    pub endpoint_buffer: Histogram,
    /// How long pods waited for their egress, measured from the first that waited.
    pub pod_buffer: Histogram,
    /// Addresses of pods whose egress became ready, without those whose node has no address of the family.
    pub pod_promotions: u64,
    /// Addresses of pods that cannot be sent although their egress is ready: their node had no address of the family
    /// when the egress became ready, or Azure refuses them.
    pub pod_promotion_failures: u64,
    /// Plans that failed, by class, in the order of [`FailureClass::ALL`].
    pub failures: [u64; FailureClass::ALL.len()],
    /// How long wanted services were other than wanted: from the change to the end of the operation that
    /// made them right.
    pub services_programmed: Histogram,
    /// How long addresses were other than wanted: from the change, or from the first of their service that
    /// waited, to Azure's confirmation.
    pub addresses_programmed: Histogram,
    /// Parks.
    pub parks: u64,
    /// Differences that two listings agreed on.
    pub drift_found: u64,
    /// Those of them that are right again.
    pub drift_repaired: u64,
    /// Orphans whose teardown was begun.
    pub orphans_found: u64,
    /// Orphans of which nothing is left.
    pub orphans_removed: u64,
    /// Inputs that were not acted on.
    pub refusals: u64,
    /// Invariants that would have been broken.
    pub internal_errors: u64,
}

impl Default for Counters {
    fn default() -> Counters {
        Counters {
            cells: [[0; Trigger::COUNT]; State::COUNT],
            plans_started: 0,
            plans_succeeded: 0,
            plans_failed: 0,
            creations_failed: 0,
            creations: Histogram::default(),
            deletions: Histogram::default(),
            syncs: Histogram::default(),
            endpoint_buffer: Histogram::default(),
            pod_buffer: Histogram::default(),
            pod_promotions: 0,
            pod_promotion_failures: 0,
            failures: [0; FailureClass::ALL.len()],
            services_programmed: Histogram::default(),
            addresses_programmed: Histogram::default(),
            parks: 0,
            drift_found: 0,
            drift_repaired: 0,
            orphans_found: 0,
            orphans_removed: 0,
            refusals: 0,
            internal_errors: 0,
        }
    }
}

/// The upper bounds of a [`Histogram`]'s buckets, in milliseconds; the last bucket has none.
///
/// A creation takes 10 to 30 s, so there are more of them there.
pub const BUCKET_BOUNDS_MS: [u64; 15] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 15_000, 20_000, 30_000, 45_000, 60_000, 120_000, 300_000,
    900_000,
];

/// How long things took: a histogram as plain data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Histogram {
    /// How many took at most as long as each bound, and longer than the one before.
    pub buckets: [u64; BUCKET_BOUNDS_MS.len() + 1],
    /// How many.
    pub count: u64,
    /// How long, together.
    pub sum_ms: u64,
}

impl Histogram {
    /// Counts so many things that took this long each.
    pub(crate) fn add(&mut self, span: Duration, times: u64) {
        let ms = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        let at = BUCKET_BOUNDS_MS.iter().position(|bound| ms <= *bound).unwrap_or(BUCKET_BOUNDS_MS.len());
        if let Some(bucket) = self.buckets.get_mut(at) {
            *bucket = bucket.saturating_add(times);
        }
        self.count = self.count.saturating_add(times);
        self.sum_ms = self.sum_ms.saturating_add(ms.saturating_mul(times));
    }
}

/// How things stand now: the gauges, worked out when they are asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Gauges {
    /// Endpoints that are wanted by known services which are not ready.
    pub buffered_endpoints: u64,
    /// The same for the addresses of egress pods.
    pub buffered_pods: u64,
    /// Addresses that services should have, without those of services that are rejected or being deleted.
    pub addresses_wanted: u64,
    /// Services that are on their way out.
    pub pending_deletions: u64,
    /// Plans in flight, whether they work or wait.
    pub operations_active: u64,
    /// Services whose next attempt is parked.
    pub parked: u64,
    /// Addresses that Azure refuses.
    pub quarantined_addresses: u64,
    /// Registrations that are unwanted and not provably ours.
    pub unclaimed: u64,
    /// (location, address) pairs that are kept for services of others.
    pub kept_for_others: u64,
    /// Services by direction (inbound, outbound) and state, in the order of [`State::ALL`].
    pub states: [[u64; State::COUNT]; 2],
    /// Services that wait for long, or for a mended spec, by reason in the order of [`Reason::ALL`].
    pub parked_for: [u64; Reason::ALL.len()],
    /// Services in trouble, by reason in the order of [`Reason::ALL`].
    pub trouble: [u64; Reason::ALL.len()],
    /// Services whose teardown the brake holds.
    pub held: u64,
    /// Services that the initial sync has not brought to rest yet.
    pub initial_sync_left: u64,
}
