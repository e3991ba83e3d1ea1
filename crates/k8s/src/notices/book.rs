//! What has been said lately, and how much more may be.

use std::collections::HashMap;

use k8s_openapi::jiff::{SignedDuration, Timestamp};

/// After so long without repetition an event is forgotten: the API server keeps them no longer either. Should
/// it, nothing is lost: it says that the event is there.
const FORGOTTEN_AFTER: SignedDuration = SignedDuration::from_hours(1);
/// Per subject: so many notices at once, then one in 30 s.
const SUBJECT_PACE: Pace = Pace { burst: 10.0, per_second: 1.0 / 30.0 };
/// For all subjects together: so many events at once, then 20 in a second.
const PACE: Pace = Pace { burst: 200.0, per_second: 20.0 };
/// Memories beyond so many are swept of what no longer matters.
pub(super) const REMEMBERED_MAX: usize = 4096;

/// An event that is there: how often it has been said, and when last.
#[derive(Clone, Copy)]
struct Said {
    count: u32,
    last: Timestamp,
}

/// The events that were written, by name, and what has been used of the paces.
#[derive(Default)]
pub(super) struct Book {
    said: HashMap<String, Said>,
    pub(super) subjects: HashMap<String, Bucket>,
    all: Bucket,
}

/// What may be done with a notice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Admission {
    Admitted,
    /// The first in a row about its subject that is held back.
    FirstHeldBack,
    HeldBack,
}

impl Book {
    /// Whether one more notice about a subject may be given.
    pub(super) fn admit(&mut self, subject: &str, now: Timestamp) -> Admission {
        self.sweep(now);
        let bucket = self.subjects.entry(subject.to_string()).or_default();
        let full = !bucket.has_one(SUBJECT_PACE, now);
        let was_full = std::mem::replace(&mut bucket.holds_back, full);
        match (full, was_full) {
            (true, true) => Admission::HeldBack,
            (true, false) => Admission::FirstHeldBack,
            (false, _) => {
                bucket.spend();
                Admission::Admitted
            }
        }
    }

    /// Whether an event may be written, and if so how often it has been said, as far as we know.
    pub(super) fn admit_event(&mut self, event: &str, now: Timestamp) -> Option<Option<u32>> {
        if !self.all.has_one(PACE, now) {
            return None;
        }
        self.all.spend();
        Some(self.said.get(event).filter(|said| said.is_recent(now)).map(|said| said.count))
    }

    pub(super) fn remember(&mut self, event: String, count: u32, now: Timestamp) {
        self.said.insert(event, Said { count, last: now });
    }

    /// Forgets what would make no difference; only when there is much.
    fn sweep(&mut self, now: Timestamp) {
        if self.said.len() > REMEMBERED_MAX {
            self.said.retain(|_, said| said.is_recent(now));
        }
        if self.subjects.len() > REMEMBERED_MAX {
            self.subjects.retain(|_, bucket| !bucket.is_full(SUBJECT_PACE, now));
        }
        // A storm over very many subjects: better a few more questions than memory without end.
        if self.said.len() > REMEMBERED_MAX {
            self.said.clear();
        }
        if self.subjects.len() > REMEMBERED_MAX {
            self.subjects.clear();
        }
    }
}

impl Said {
    fn is_recent(&self, now: Timestamp) -> bool {
        now.duration_since(self.last) < FORGOTTEN_AFTER
    }
}

/// How many at once, and how many in the long run.
#[derive(Clone, Copy)]
struct Pace {
    burst: f64,
    per_second: f64,
}

/// What has been used of a pace.
#[derive(Clone, Copy, Default)]
pub(super) struct Bucket {
    used: f64,
    /// The last notice was held back.
    holds_back: bool,
    at: Option<Timestamp>,
}

impl Bucket {
    fn has_one(&mut self, pace: Pace, now: Timestamp) -> bool {
        self.drain(pace, now);
        self.used + 1.0 <= pace.burst
    }

    fn spend(&mut self) {
        self.used += 1.0;
    }

    fn is_full(&mut self, pace: Pace, now: Timestamp) -> bool {
        self.drain(pace, now);
        self.used <= 0.0
    }

    /// A clock that goes back gives nothing and takes nothing.
    fn drain(&mut self, pace: Pace, now: Timestamp) {
        let passed = self.at.map_or(0.0, |at| now.duration_since(at).as_secs_f64().max(0.0));
        self.used = (self.used - passed * pace.per_second).max(0.0);
        self.at = Some(now);
    }
}
