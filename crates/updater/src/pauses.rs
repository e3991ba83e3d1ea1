//! Which calls Azure has throttled, and until when.
//!
//! A 429 shuts every gate of its bucket, because Azure counts both lanes as one; a 429 of the
//! network provider, whose window has writes and deletes in it, shuts those too. Without a length it
//! lasts a second, and twice as long each time until a call comes through. One that is only about
//! another operation on the same resource says nothing about the budget and does not come here.
//!
//! A pause of more than 15 minutes is probed: every 15 minutes one call passes, and Azure ends the pause by accepting it.

use core::time::Duration;

use sluice_model::Time;
use sluice_model::call::{Answer, Bucket, Reply};
use sluice_model::event::{PAUSE_PROBE_INTERVAL, ThrottledCalls};
use sluice_model::seeded::{Bug, Seeded};

use crate::budget::Gate;
use crate::config::Config;

/// Longer pauses are reported.
const REPORTED: Duration = Duration::from_secs(60);

/// A wait that Azure asked for.
#[derive(Clone, Copy, Default)]
pub(crate) struct Pause {
    began: Time,
    pub(crate) until: Time,
    /// When one call may pass although the pause is not over.
    probe_at: Time,
}

impl Pause {
    /// Azure asks for a wait. Returns how much longer than before the pause is.
    pub(crate) fn extend(&mut self, now: Time, wait: Duration) -> Duration {
        let before = self.until.max(now);
        if self.until <= now {
            self.began = now;
        }
        self.until = self.until.max(now + wait);
        self.probe_at = now + PAUSE_PROBE_INTERVAL;
        self.until.since(before)
    }

    /// When the next call may pass.
    pub(crate) fn opens_at(&self) -> Time {
        self.until.min(self.probe_at)
    }

    /// A call is sent: in a pause that is the probe.
    pub(crate) fn sent(&mut self, now: Time) {
        if now < self.until {
            self.probe_at = now + PAUSE_PROBE_INTERVAL;
        }
    }

    /// Azure accepted a call. One that was sent in the pause ends it; others were sent before.
    pub(crate) fn accepted(&mut self, now: Time, sent_at: Time) {
        if sent_at > self.began {
            self.until = self.until.min(now);
        }
    }
}

/// Whether an answer shows that Azure no longer throttles the call. A 401 may come before calls are counted.
pub(crate) fn is_accepted(reply: &Reply) -> bool {
    matches!(reply, Reply::Answered(Answer { status, .. }) if *status < 500 && !matches!(status, 401 | 408 | 429))
}

/// The pauses that Azure asked for.
#[derive(Clone)]
pub(crate) struct Pauses {
    /// By [`ThrottledCalls`].
    all: [Row; 4],
    first: Duration,
    max: Duration,
    seeded: Seeded,
}

/// Pauses of the same calls.
#[derive(Clone, Copy, Default)]
struct Row {
    pause: Pause,
    /// How many came in a row; those without a length grow with it.
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

/// What became of a 429.
pub(crate) struct Begun {
    /// For how much longer than before the gates are shut.
    pub(crate) longer: Duration,
    /// What is to be reported.
    pub(crate) report: Option<(ThrottledCalls, Duration)>,
}

impl Pauses {
    pub(crate) fn new(config: &Config, seeded: Seeded) -> Pauses {
        let all = [Row::default(); 4];
        Pauses { all, first: config.pause_first, max: config.pause_max, seeded }
    }

    /// Until when Azure wants nothing more through this gate.
    pub(crate) fn until(&self, gate: Gate) -> Time {
        self.of(gate).map(|row| row.pause.until).max().unwrap_or_default()
    }

    /// When the next call may pass this gate: at the end of its pause, or to probe it.
    pub(crate) fn opens_at(&self, gate: Gate) -> Time {
        self.of(gate).map(|row| row.pause.opens_at()).max().unwrap_or_default()
    }

    /// Azure answered 429.
    pub(crate) fn begin(&mut self, now: Time, asked: &Throttled, jitter_permille: u32) -> Begun {
        let calls = match asked.gate.bucket() {
            Bucket::Reads => ThrottledCalls::Reads,
            _ if asked.in_window => ThrottledCalls::WritesAndDeletes,
            Bucket::Writes => ThrottledCalls::Writes,
            Bucket::Deletes => ThrottledCalls::Deletes,
        };
        let before = self.all[calls as usize];
        // Calls that were on the wire together come back together; that is one pause, not many.
        let is_new = before.in_a_row == 0 || asked.sent_at >= before.pause.until;
        let in_a_row = if is_new { before.in_a_row.saturating_add(1) } else { before.in_a_row };
        let wait = if self.seeded.has(Bug::IgnoreRetryAfter) {
            Duration::from_millis(100)
        } else {
            asked.wait.unwrap_or_else(|| self.grown(in_a_row, jitter_permille))
        };
        let row = &mut self.all[calls as usize];
        row.in_a_row = in_a_row;
        let longer = row.pause.extend(now, wait);
        Begun { longer, report: (longer > REPORTED).then_some((calls, wait)) }
    }

    /// How long the so-manieth pause in a row lasts when Azure does not say.
    fn grown(&self, in_a_row: u32, jitter_permille: u32) -> Duration {
        let doublings = in_a_row.saturating_sub(1).min(16);
        let grown = self.first.saturating_mul(1 << doublings).min(self.max);
        grown.saturating_add(grown / 4 * jitter_permille.min(1_000) / 1_000)
    }

    /// A call is sent through this gate.
    pub(crate) fn sent(&mut self, now: Time, gate: Gate) {
        for calls in throttled_with(gate) {
            self.all[*calls as usize].pause.sent(now);
        }
    }

    /// A call through this gate was answered, and not with a 429.
    pub(crate) fn answered(&mut self, now: Time, gate: Gate, sent_at: Time, accepted: bool) {
        for calls in throttled_with(gate) {
            let row = &mut self.all[*calls as usize];
            if accepted {
                row.pause.accepted(now, sent_at);
            }
            if row.pause.until <= now {
                row.in_a_row = 0;
            }
        }
    }

    fn of(&self, gate: Gate) -> impl Iterator<Item = &Row> {
        throttled_with(gate).iter().map(|calls| &self.all[*calls as usize])
    }
}

/// Whose pauses shut this gate.
const fn throttled_with(gate: Gate) -> &'static [ThrottledCalls] {
    match gate.bucket() {
        Bucket::Reads => &[ThrottledCalls::Reads],
        Bucket::Writes => &[ThrottledCalls::Writes, ThrottledCalls::WritesAndDeletes],
        Bucket::Deletes => &[ThrottledCalls::Deletes, ThrottledCalls::WritesAndDeletes],
    }
}
