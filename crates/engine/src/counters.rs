//! What the engine has counted: plain data from which metrics are made.

use crate::state::{State, Trigger};

/// Counts since the engine was made, and the sums behind the duration metrics.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Counters {
    /// How often each trigger met each state.
    pub cells: [[u64; Trigger::COUNT]; State::COUNT],
    /// Events handled.
    pub events: u64,
    /// Effects asked for.
    pub effects: u64,
    /// Plans handed to the service updater.
    pub plans_started: u64,
    /// Plans that came to their end.
    pub plans_succeeded: u64,
    /// Plans that failed, whatever the class.
    pub plans_failed: u64,
    /// Creations that failed.
    pub creations_failed: u64,
    /// Services that became `Created` from nothing, and how long that took in all.
    pub creations: Durations,
    /// Services torn down, and how long that took in all.
    pub deletions: Durations,
    /// Location syncs, and how long they took in all.
    pub syncs: Durations,
    /// Parks.
    pub parks: u64,
    /// Differences that two listings agreed on.
    pub drift_found: u64,
    /// Orphans whose teardown was begun.
    pub orphans_found: u64,
    /// Inputs that were not acted on.
    pub refusals: u64,
    /// Invariants that would have been broken.
    pub internal_errors: u64,
}

impl Default for Counters {
    fn default() -> Counters {
        Counters {
            cells: [[0; Trigger::COUNT]; State::COUNT],
            events: 0,
            effects: 0,
            plans_started: 0,
            plans_succeeded: 0,
            plans_failed: 0,
            creations_failed: 0,
            creations: Durations::default(),
            deletions: Durations::default(),
            syncs: Durations::default(),
            parks: 0,
            drift_found: 0,
            orphans_found: 0,
            refusals: 0,
            internal_errors: 0,
        }
    }
}

/// A number of things and how long they took together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Durations {
    /// How many.
    pub count: u64,
    /// How long, together.
    pub sum_ms: u64,
}

impl Durations {
    pub(crate) fn add(&mut self, span: core::time::Duration) {
        self.count = self.count.saturating_add(1);
        self.sum_ms = self.sum_ms.saturating_add(u64::try_from(span.as_millis()).unwrap_or(u64::MAX));
    }
}
