//! How many calls may be made, and when the next one.
//!
//! Azure counts twice: a token bucket per subscription, and a window of five minutes per
//! resource provider. We take our share of each. Calls pass one of four gates. The two
//! write gates are lanes: each owns a part of the writes and borrows only what the other
//! lets overflow, so that neither can eat what the other is about to need.
//!
//! ```text
//!                     token buckets              windows of 5 min
//! Reads ─────────────▶ reads                      reads
//! ServiceWrites ──┬──▶ writes, 70 % ◀─overflow─▶  writes, 70 % ◀─overflow─▶ ┐
//! LocationWrites ─┼──▶ writes, 30 % ◀─overflow─▶  writes, 30 % ◀─overflow─▶ ┤ writes
//! Deletes ────────┴──▶ deletes                    (as service writes)       ┘
//! ```
//!
//! A 429 shuts every gate of its bucket, because Azure counts both lanes as one. When it is
//! only about another operation on the same resource, it shuts its own gate.
//!
//! There is no ordering here: who goes first through a gate is decided by whoever asks.

use core::time::Duration;

use sluice_model::Time;
use sluice_model::call::{Bucket, Method};
use sluice_model::seeded::{Bug, Seeded};

use crate::config::Config;
use crate::tokens::{Tokens, Window};

/// What a call must pass.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Gate {
    Reads,
    ServiceWrites,
    LocationWrites,
    Deletes,
}

impl Gate {
    pub(crate) const ALL: [Gate; 4] = [Gate::Reads, Gate::ServiceWrites, Gate::LocationWrites, Gate::Deletes];

    pub(crate) const fn of(method: Method) -> Gate {
        match method {
            Method::UpdateLocations => Gate::LocationWrites,
            _ => match method.bucket() {
                Bucket::Reads => Gate::Reads,
                Bucket::Writes => Gate::ServiceWrites,
                Bucket::Deletes => Gate::Deletes,
            },
        }
    }

    /// The gates that Azure counts together with this one.
    const fn siblings(self) -> &'static [Gate] {
        match self {
            Gate::Reads => &[Gate::Reads],
            Gate::ServiceWrites | Gate::LocationWrites => &[Gate::ServiceWrites, Gate::LocationWrites],
            Gate::Deletes => &[Gate::Deletes],
        }
    }

    const fn lane(self) -> Option<usize> {
        match self {
            Gate::Reads => None,
            Gate::ServiceWrites | Gate::Deletes => Some(SERVICES),
            Gate::LocationWrites => Some(LOCATIONS),
        }
    }
}

const SERVICES: usize = 0;
const LOCATIONS: usize = 1;

/// The share of every bucket and window, and the pauses that Azure asked for.
pub(crate) struct Budget {
    reads: Tokens,
    deletes: Tokens,
    /// The writes' bucket, cut in two lanes.
    writes: [Tokens; 2],
    reads_window: Window,
    writes_window: Window,
    lanes: [Lane; 2],
    pauses: [Pause; 4],
    share_permille: u32,
    lane_permille: [u32; 2],
    pause_first: Duration,
    pause_max: Duration,
    seeded: Seeded,
}

/// A lane's part of the writes' window.
struct Lane {
    /// What it may use by right.
    own: Window,
    /// Fills as fast as the lane may go on for ever; what it lets overflow, the other may borrow.
    pace: Tokens,
    /// What the other has let overflow lately.
    borrowed: Tokens,
}

/// A gate that Azure shut.
#[derive(Clone, Copy, Default)]
struct Pause {
    began: Time,
    until: Time,
    /// How many pauses without a length came in a row.
    in_a_row: u32,
}

impl Budget {
    pub(crate) fn new(config: &Config, seeded: Seeded) -> Budget {
        let share = config.share_permille.min(1_000);
        let locations = config.location_lane_permille.min(1_000);
        let lane_permille = [1_000 - locations, locations];
        let window = |limit| Window::new(limit, config.window);
        let writes_limit = part(config.writes_per_window, share);
        Budget {
            reads: Tokens::share_of(config.reads, share, 1_000),
            deletes: Tokens::share_of(config.deletes, share, 1_000),
            writes: lane_permille.map(|lane| Tokens::share_of(config.writes, share, lane)),
            reads_window: window(part(config.reads_per_window, share)),
            writes_window: window(writes_limit),
            lanes: lane_permille.map(|lane| {
                let own = part(writes_limit, lane);
                // burst + borrowed + pace × window = own share: whatever is borrowed, the
                // lane that lent it can still go at its pace.
                let burst = (own / 12).max(1);
                Lane {
                    own: window(own),
                    pace: Tokens::per(burst, own.saturating_sub(2 * burst).max(1), config.window),
                    borrowed: Tokens::empty(burst),
                }
            }),
            pauses: [Pause::default(); 4],
            share_permille: share,
            lane_permille,
            pause_first: config.pause_first,
            pause_max: config.pause_max,
            seeded,
        }
    }

    /// Pays for one call, or says when to ask again.
    pub(crate) fn take(&mut self, now: Time, gate: Gate) -> Result<(), Time> {
        self.refill(now);
        let at = self.earliest(now, gate, 1);
        if at > now {
            return Err(at);
        }
        match gate {
            Gate::Reads => self.reads.take(),
            Gate::Deletes => self.deletes.take(),
            Gate::ServiceWrites => self.writes[SERVICES].take(),
            Gate::LocationWrites => self.writes[LOCATIONS].take(),
        }
        match gate.lane() {
            None => self.reads_window.count(now),
            Some(lane) => {
                self.writes_window.count(now);
                let lane = &mut self.lanes[lane];
                lane.pace.take();
                if lane.own.room() > 0 {
                    lane.own.count(now);
                } else {
                    lane.borrowed.take();
                }
            }
        }
        Ok(())
    }

    /// When `calls` calls could be made at once; `now` if they could already. Exact for one
    /// call, an estimate for more.
    pub(crate) fn earliest(&self, now: Time, gate: Gate, calls: u32) -> Time {
        let paused = self.pauses[gate as usize].until;
        if self.seeded.has(Bug::NoBudget) {
            return now.max(paused);
        }
        let bucket = match gate {
            Gate::Reads => self.reads.earliest(now, calls, None),
            Gate::Deletes => self.deletes.earliest(now, calls, None),
            Gate::ServiceWrites => self.writes[SERVICES].earliest(now, calls, Some(&self.writes[LOCATIONS])),
            Gate::LocationWrites => self.writes[LOCATIONS].earliest(now, calls, Some(&self.writes[SERVICES])),
        };
        let window = match gate.lane() {
            None => self.reads_window.earliest(now, calls),
            Some(lane) => self.writes_window.earliest(now, calls).max(self.in_lane(now, lane, calls)),
        };
        now.max(paused).max(bucket).max(window)
    }

    /// When the lane's part of the window has room, its own or borrowed.
    fn in_lane(&self, now: Time, lane: usize, calls: u32) -> Time {
        let (mine, other) = (&self.lanes[lane], &self.lanes[1 - lane]);
        let (own_room, lent) = (mine.own.room(), mine.borrowed.whole(now));
        if own_room.saturating_add(lent) >= calls {
            return now;
        }
        let by_right = mine.own.earliest(now, calls.saturating_sub(lent).max(1));
        let by_loan = mine.borrowed.earliest(now, calls.saturating_sub(own_room).max(1), Some(&other.pace));
        by_right.min(by_loan)
    }

    /// When the locations may send again without outrunning their own share.
    pub(crate) fn next_location(&mut self, now: Time) -> Time {
        self.refill(now);
        let lane = &self.lanes[LOCATIONS];
        let paced = if self.seeded.has(Bug::NoBudget) { now } else { lane.pace.earliest(now, 1, None) };
        paced.max(self.earliest(now, Gate::LocationWrites, 1))
    }

    /// Until when Azure wants nothing more through this gate.
    pub(crate) fn paused_until(&self, gate: Gate) -> Time {
        self.pauses[gate as usize].until
    }

    /// Azure answered 429 to a call sent at `sent_at`. Returns for how much longer than before
    /// the gates are shut.
    pub(crate) fn pause(
        &mut self,
        now: Time,
        gate: Gate,
        wait: Option<Duration>,
        sent_at: Time,
        one_resource: bool,
        jitter_permille: u32,
    ) -> Duration {
        let before = self.pauses[gate as usize];
        let wait = if self.seeded.has(Bug::IgnoreRetryAfter) {
            Duration::from_millis(100)
        } else {
            wait.unwrap_or_else(|| {
                let doublings = before.in_a_row.min(16);
                let grown = self.pause_first.saturating_mul(1 << doublings).min(self.pause_max);
                grown.saturating_add(grown / 4 * jitter_permille.min(1_000) / 1_000)
            })
        };
        let until = now + wait;
        let gates = if one_resource { core::slice::from_ref(&gate) } else { gate.siblings() };
        for gate in gates {
            let pause = &mut self.pauses[*gate as usize];
            // Calls that were on the wire together come back together; that is one pause, not many.
            if pause.in_a_row == 0 || sent_at >= pause.began {
                pause.in_a_row = pause.in_a_row.saturating_add(1);
                pause.began = now;
            }
            pause.until = pause.until.max(until);
        }
        until.since(before.until.max(now))
    }

    /// Azure took a call through this gate.
    pub(crate) fn answered(&mut self, now: Time, gate: Gate) {
        let pause = &mut self.pauses[gate as usize];
        if pause.until <= now {
            pause.in_a_row = 0;
        }
    }

    /// Azure says how much is left in a bucket: if that is less than we think, others use it too.
    pub(crate) fn believe(&mut self, now: Time, gate: Gate, remaining: u32) {
        self.refill(now);
        let ours = part(remaining, self.share_permille);
        match gate {
            Gate::Reads => self.reads.at_most(ours),
            Gate::Deletes => self.deletes.at_most(ours),
            Gate::ServiceWrites | Gate::LocationWrites => {
                for (tokens, lane) in self.writes.iter_mut().zip(self.lane_permille) {
                    tokens.at_most(part(ours, lane));
                }
            }
        }
    }

    /// Lets time pass.
    pub(crate) fn refill(&mut self, now: Time) {
        self.reads.refill(now);
        self.deletes.refill(now);
        spill(&mut self.writes, now);
        self.reads_window.forget(now);
        self.writes_window.forget(now);
        let [services, locations] = &mut self.lanes;
        services.own.forget(now);
        locations.own.forget(now);
        let (left_by_services, left_by_locations) = (services.pace.refill(now), locations.pace.refill(now));
        services.borrowed.add(left_by_locations);
        locations.borrowed.add(left_by_services);
    }
}

/// Refills two buckets; what one cannot hold goes to the other.
fn spill([a, b]: &mut [Tokens; 2], now: Time) {
    let (from_a, from_b) = (a.refill(now), b.refill(now));
    a.add(from_b);
    b.add(from_a);
}

/// A part of a limit, in whole calls.
fn part(limit: u32, permille: u32) -> u32 {
    let part = u64::from(limit) * u64::from(permille) / 1_000;
    u32::try_from(part).unwrap_or(u32::MAX)
}
