//! Every number that the updaters go by, with its default and the reason for it.

use core::time::Duration;

/// The numbers. `Config::default()` is what the wire page says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// How many services ride in one `updateServices` call at most.
    pub commit_size_max: usize,
    /// How much longer registrations gather while the write budget binds.
    pub gather_under_pressure: Duration,
    /// How much longer addresses gather after a call when locations have used half of their share of the writes and
    /// services all of theirs; in proportion while services have used a part of it.
    pub gather_locations_under_pressure: Duration,
    /// How long an answer may take before the request counts as lost, should whoever sends it never
    /// say so. A little more than the sender's own limit of 60 s: that one knows the host, and whether
    /// the request ever left, so its words are better.
    pub answer_limit: Duration,
    /// How long the operation behind a PUT or DELETE may take; afterwards its outcome is unknown.
    pub resource_operation_limit: Duration,
    /// How long the operation behind a POST to the gateway may take.
    pub gateway_operation_limit: Duration,
    /// Our share of every bucket and window, so that others can work too.
    pub share_permille: u32,
    /// The locations' part of our share of the writes; the rest is for services.
    pub location_lane_permille: u32,
    /// Azure's bucket for reads.
    pub reads: BucketSize,
    /// Azure's bucket for writes.
    pub writes: BucketSize,
    /// Azure's bucket for deletes.
    pub deletes: BucketSize,
    /// The span in which Microsoft.Network counts.
    pub window: Duration,
    /// How many reads Microsoft.Network takes per window.
    pub reads_per_window: u32,
    /// How many writes and deletes together Microsoft.Network takes per window.
    pub writes_per_window: u32,
    /// The first pause after a 429 that does not say how long.
    pub pause_first: Duration,
    /// What that pause grows to.
    pub pause_max: Duration,
    /// How long "another operation is in progress" is waited for before it counts as a failure.
    pub busy_limit: Duration,
    /// A plan that would wait longer than this for the budget gives its slot back.
    pub budget_patience: Duration,
    /// How operations are polled.
    pub poll: PollSchedule,
    /// How often a page of a listing that fails for the moment is repeated.
    pub page_retries_max: u32,
    /// So long after a write a read may not show it yet.
    pub reads_lag_max: Duration,
    /// How often a public IP is read again after its PUT while the read lags behind.
    pub readback_retries_max: u32,
    /// The first wait before a page or a lagging read is repeated; it doubles.
    pub reread_wait_first: Duration,
    /// What that wait grows to.
    pub reread_wait_max: Duration,
    /// A listing with more pages than this is not plausible.
    pub pages_max: u32,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            commit_size_max: 100,
            gather_under_pressure: Duration::from_millis(250),
            gather_locations_under_pressure: Duration::from_secs(3),
            answer_limit: Duration::from_secs(65),
            resource_operation_limit: Duration::from_secs(15 * 60),
            gateway_operation_limit: Duration::from_secs(3 * 60),
            share_permille: 800,
            location_lane_permille: 300,
            reads: BucketSize { burst: 250, per_second: 25 },
            writes: BucketSize { burst: 200, per_second: 10 },
            deletes: BucketSize { burst: 200, per_second: 10 },
            window: Duration::from_secs(5 * 60),
            reads_per_window: 10_000,
            writes_per_window: 1_000,
            pause_first: Duration::from_secs(1),
            pause_max: Duration::from_secs(30),
            busy_limit: Duration::from_secs(2 * 60),
            // Another plan would wait for the same budget, so a slot is only given back when it is
            // long enough for a plan that needs another bucket to get somewhere.
            budget_patience: Duration::from_secs(5),
            poll: PollSchedule::default(),
            page_retries_max: 3,
            reads_lag_max: Duration::from_secs(30),
            // 0.5 + 1 + 2 + 4 + 4 s: a public IP shows its address at most 10 s after its PUT.
            readback_retries_max: 5,
            reread_wait_first: Duration::from_millis(500),
            reread_wait_max: Duration::from_secs(4),
            pages_max: 10_000,
        }
    }
}

/// One of Azure's token buckets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BucketSize {
    /// What it holds when full.
    pub burst: u32,
    /// What flows in.
    pub per_second: u32,
}

/// How operations are polled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PollSchedule {
    /// The first poll while the usual duration of such operations is unknown.
    pub first: Duration,
    /// The shortest time between two polls of one operation.
    pub interval_min: Duration,
    /// The longest.
    pub interval_max: Duration,
    /// By how much the time between two polls grows.
    pub growth_permille: u32,
    /// An operation that takes so many times as long as nearly all of its kind is slow; while that is unknown, so
    /// many times the longest interval.
    pub slow_factor: u32,
}

impl Default for PollSchedule {
    fn default() -> PollSchedule {
        PollSchedule {
            first: Duration::from_millis(500),
            interval_min: Duration::from_millis(100),
            interval_max: Duration::from_secs(10),
            growth_permille: 1_500,
            slow_factor: 3,
        }
    }
}
