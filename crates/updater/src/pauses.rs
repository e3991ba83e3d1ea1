//! Which gates Azure has shut, and until when.
//!
//! A 429 shuts every gate of its bucket, because Azure counts both lanes as one; a 429 of the
//! network provider, whose window has writes and deletes in it, shuts those too. Without a length it
//! lasts a second, and twice as long each time until a call comes through. One that is only about
//! another operation on the same resource says nothing about the budget and does not come here.

use core::time::Duration;

use sluice_model::Time;
use sluice_model::call::Bucket;
use sluice_model::seeded::{Bug, Seeded};

use crate::budget::Gate;
use crate::config::Config;

/// The pauses that Azure asked for.
#[derive(Clone)]
pub(crate) struct Pauses {
    by_gate: [Pause; 4],
    first: Duration,
    max: Duration,
    seeded: Seeded,
}

/// A gate that Azure shut.
#[derive(Clone, Copy, Default)]
struct Pause {
    until: Time,
    /// How many pauses came in a row; those without a length grow with it.
    in_a_row: u32,
}

/// What a 429 says.
pub(crate) struct Throttled {
    /// The gate of the call that it answers, and when that was sent.
    pub(crate) gate: Gate,
    pub(crate) sent_at: Time,
    /// The window is full, and not only the bucket empty.
    pub(crate) in_window: bool,
    /// For how long, if it says so.
    pub(crate) wait: Option<Duration>,
}

impl Pauses {
    pub(crate) fn new(config: &Config, seeded: Seeded) -> Pauses {
        let by_gate = [Pause::default(); 4];
        Pauses { by_gate, first: config.pause_first, max: config.pause_max, seeded }
    }

    /// Until when Azure wants nothing more through this gate.
    pub(crate) fn until(&self, gate: Gate) -> Time {
        self.by_gate[gate as usize].until
    }

    /// Azure answered 429. Returns for how much longer than before the gates are shut.
    pub(crate) fn begin(&mut self, now: Time, asked: &Throttled, jitter_permille: u32) -> Duration {
        let before = self.by_gate[asked.gate as usize];
        // Calls that were on the wire together come back together; that is one pause, not many.
        let is_new = before.in_a_row == 0 || asked.sent_at >= before.until;
        let in_a_row = if is_new { before.in_a_row.saturating_add(1) } else { before.in_a_row };
        let wait = if self.seeded.has(Bug::IgnoreRetryAfter) {
            Duration::from_millis(100)
        } else {
            asked.wait.unwrap_or_else(|| self.grown(in_a_row, jitter_permille))
        };
        let until = now + wait;
        for gate in siblings(asked.gate, asked.in_window) {
            let pause = &mut self.by_gate[*gate as usize];
            pause.in_a_row = pause.in_a_row.max(in_a_row);
            pause.until = pause.until.max(until);
        }
        until.since(before.until.max(now))
    }

    /// How long the so-manieth pause in a row lasts when Azure does not say.
    fn grown(&self, in_a_row: u32, jitter_permille: u32) -> Duration {
        let doublings = in_a_row.saturating_sub(1).min(16);
        let grown = self.first.saturating_mul(1 << doublings).min(self.max);
        grown.saturating_add(grown / 4 * jitter_permille.min(1_000) / 1_000)
    }

    /// Azure took a call through this gate.
    pub(crate) fn taken(&mut self, now: Time, gate: Gate) {
        let pause = &mut self.by_gate[gate as usize];
        if pause.until <= now {
            pause.in_a_row = 0;
        }
    }
}

/// The gates that Azure counts together with this one, in the bucket or in the window.
const fn siblings(gate: Gate, in_window: bool) -> &'static [Gate] {
    match (gate.bucket(), in_window) {
        (Bucket::Reads, _) => &[Gate::Reads],
        (Bucket::Writes | Bucket::Deletes, true) => {
            &[Gate::ServiceWrites, Gate::LocationWrites, Gate::Deletes]
        }
        (Bucket::Writes, false) => &[Gate::ServiceWrites, Gate::LocationWrites],
        (Bucket::Deletes, false) => &[Gate::Deletes],
    }
}
