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
//! A 429 shuts gates whatever the buckets hold; that is the business of [`crate::pauses`].
//!
//! There is no ordering here: who goes first through a gate is decided by whoever asks.

use core::time::Duration;

use sluice_model::Time;
use sluice_model::call::{Bucket, Method};
use sluice_model::seeded::{Bug, Seeded};

use crate::config::Config;
use crate::pauses::Pauses;
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

    /// Where Azure counts what goes through it.
    pub(crate) const fn bucket(self) -> Bucket {
        match self {
            Gate::Reads => Bucket::Reads,
            Gate::ServiceWrites | Gate::LocationWrites => Bucket::Writes,
            Gate::Deletes => Bucket::Deletes,
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
#[derive(Clone)]
pub(crate) struct Budget {
    reads: Tokens,
    deletes: Tokens,
    /// The writes' bucket, cut in two lanes.
    writes: [Tokens; 2],
    reads_window: Window,
    writes_window: Window,
    lanes: [Lane; 2],
    pub(crate) pauses: Pauses,
    share_permille: u32,
    lane_permille: [u32; 2],
    gather_locations: Duration,
    seeded: Seeded,
}

/// A lane's part of the writes' window.
#[derive(Clone)]
struct Lane {
    /// What it may use by right.
    own: Window,
    /// Fills as fast as the lane may go on for ever; what it lets overflow, the other may borrow.
    pace: Tokens,
    /// What the other has let overflow lately.
    borrowed: Tokens,
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
            pauses: Pauses::new(config, seeded),
            share_permille: share,
            lane_permille,
            gather_locations: config.gather_locations_under_pressure,
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
                // What was borrowed goes first: it overflows again, and what is one's own stays.
                if lane.borrowed.whole(now) > 0 {
                    lane.borrowed.take();
                } else {
                    lane.own.count(now);
                }
            }
        }
        Ok(())
    }

    /// When `calls` calls could be made at once; `now` if they could already. Exact for one
    /// call, an estimate for more.
    pub(crate) fn earliest(&self, now: Time, gate: Gate, calls: u32) -> Time {
        let paused = self.pauses.until(gate);
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

    /// When the locations may send again without outrunning their own share. The more of theirs
    /// the services have used, the longer addresses gather, since every call is one that could
    /// be lent.
    pub(crate) fn next_location(&mut self, now: Time) -> Time {
        self.refill(now);
        let paced = if self.seeded.has(Bug::NoBudget) {
            now
        } else {
            self.lanes[LOCATIONS].pace.earliest(now, 1, None)
        };
        let pressed = now + self.gather_locations * self.lanes[SERVICES].own.used_permille() / 1_000;
        paced.max(pressed).max(self.earliest(now, Gate::LocationWrites, 1))
    }

    /// How many calls the gate's bucket would allow at once.
    pub(crate) fn tokens(&self, now: Time, gate: Gate) -> u32 {
        match gate {
            Gate::Reads => self.reads.whole(now),
            Gate::Deletes => self.deletes.whole(now),
            Gate::ServiceWrites => self.writes[SERVICES].whole(now),
            Gate::LocationWrites => self.writes[LOCATIONS].whole(now),
        }
    }

    /// How many it would allow after a rest.
    pub(crate) fn tokens_max(&self, gate: Gate) -> u32 {
        match gate {
            Gate::Reads => self.reads.most(),
            Gate::Deletes => self.deletes.most(),
            Gate::ServiceWrites => self.writes[SERVICES].most(),
            Gate::LocationWrites => self.writes[LOCATIONS].most(),
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

    /// Reads and writes in their windows.
    pub(crate) fn in_windows(&self) -> (u32, u32) {
        (self.reads_window.used(), self.writes_window.used())
    }

    /// Reads and writes that fit into their windows.
    pub(crate) fn in_windows_max(&self) -> (u32, u32) {
        (self.reads_window.limit(), self.writes_window.limit())
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

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use proptest::prelude::*;
    use sluice_model::seeded::Seeded;

    use super::*;

    fn budget(config: &Config) -> Budget {
        Budget::new(config, Seeded::NONE)
    }

    /// Takes as much as the gate gives, in steps of 100 ms, and says when.
    fn drain(budget: &mut Budget, gate: Gate, from_s: u64, to_s: u64) -> Vec<u64> {
        let mut taken = Vec::new();
        for ms in (from_s * 1_000..to_s * 1_000).step_by(100) {
            while budget.take(Time::from_millis(ms), gate).is_ok() {
                taken.push(ms);
            }
        }
        taken
    }

    #[test]
    fn a_lane_alone_has_its_own_share_at_once_and_borrows_the_rest_as_it_overflows() {
        let mut budget = budget(&Config::default());
        let taken = drain(&mut budget, Gate::ServiceWrites, 0, 300);
        // 70 % of 800 by right, and what the locations' lane lets overflow.
        assert!((560 + 150..=800).contains(&taken.len()), "{}", taken.len());
        assert_eq!(taken.iter().filter(|ms| **ms == 0).count(), 112);
    }

    #[test]
    fn a_lane_that_was_idle_finds_its_pace_untouched_whatever_the_other_did() {
        for idle_s in [1, 17, 60, 150, 299, 300, 450, 900] {
            let mut budget = budget(&Config::default());
            drain(&mut budget, Gate::ServiceWrites, 0, idle_s);
            let mut now_ms = idle_s * 1_000;
            for call in 0..400 {
                let now = Time::from_millis(now_ms);
                // Both want all they can get; the services are first every time.
                while budget.take(now, Gate::ServiceWrites).is_ok() {}
                assert_eq!(budget.take(now, Gate::LocationWrites), Ok(()), "call {call} at {now_ms} ms");
                now_ms = budget.next_location(now).as_millis().max(now_ms + 100);
            }
        }
    }

    #[test]
    fn the_locations_pace_stays_within_their_share() {
        for (permille, limit) in [(300, 240), (50, 40)] {
            let config = Config { location_lane_permille: permille, ..Config::default() };
            let mut budget = budget(&config);
            let (mut now, mut calls) = (Time::ZERO, Vec::new());
            while now < Time::from_millis(900_000) {
                if budget.take(now, Gate::LocationWrites).is_ok() {
                    calls.push(now.as_millis());
                }
                now = budget.next_location(now).max(now + Duration::from_millis(50));
            }
            let busiest = most_in_a_window(&calls, 300_000);
            assert!(busiest <= limit && busiest > limit * 8 / 10, "{busiest} of {limit}");
        }
    }

    #[test]
    fn a_lane_that_needs_a_little_more_than_its_share_gets_it_without_ever_standing_still() {
        // 2.4 a second for twenty minutes: 720 in a window, where 560 are its own.
        let mut budget = budget(&Config::default());
        let (mut due_ms, mut longest_ms) = (0, 0);
        for call in 0..2_880_u64 {
            due_ms = due_ms.max(call * 1_000 * 10 / 24);
            let mut at = Time::from_millis(due_ms);
            while let Err(later) = budget.take(at, Gate::ServiceWrites) {
                at = later;
            }
            longest_ms = longest_ms.max(at.as_millis() - due_ms);
        }
        assert!(longest_ms <= 1_000, "stood still for {longest_ms} ms");
    }

    #[test]
    fn addresses_gather_longer_the_more_of_their_share_the_services_have_used() {
        let mut budget = budget(&Config::default());
        let mut waits = Vec::new();
        for _ in 0..4 {
            let now = Time::from_millis(20_000);
            waits.push(budget.next_location(now).since(now).as_millis());
            // The bucket gives only 112 at once, the window counts on.
            for _ in 0..112 {
                budget.lanes[SERVICES].own.count(now);
            }
        }
        assert_eq!(waits, [0, 600, 1_200, 1_800]);
    }

    #[test]
    fn deletes_count_as_writes_of_the_services_in_the_window() {
        let config =
            Config { deletes: crate::BucketSize { burst: 10_000, per_second: 10 }, ..Config::default() };
        let mut budget = budget(&config);
        let taken = drain(&mut budget, Gate::Deletes, 0, 1).len();
        assert!((560..600).contains(&taken), "{taken}");
        assert!(budget.take(Time::from_millis(1_000), Gate::ServiceWrites).is_err());
        assert!(budget.take(Time::from_millis(1_000), Gate::LocationWrites).is_ok());
    }

    #[test]
    fn a_share_of_nothing_gives_nothing_and_breaks_nothing() {
        let config = Config {
            share_permille: 0,
            location_lane_permille: 5_000,
            window: Duration::ZERO,
            writes: crate::BucketSize { burst: 0, per_second: 0 },
            ..Config::default()
        };
        let mut budget = budget(&config);
        for gate in Gate::ALL {
            assert_eq!(budget.take(Time::ZERO, gate), Err(Time::NEVER), "{gate:?}");
        }
    }

    fn most_in_a_window(calls_ms: &[u64], window_ms: u64) -> usize {
        let mut first = 0;
        let mut most = 0;
        for (last, ms) in calls_ms.iter().enumerate() {
            while calls_ms[first] + window_ms <= *ms {
                first += 1;
            }
            most = most.max(last + 1 - first);
        }
        most
    }

    proptest! {
        /// Whoever asks whenever for whatever: our share holds in every window, and a refusal
        /// names a moment at which there is something to get.
        #[test]
        fn no_window_sees_more_than_our_share(asks in prop::collection::vec((0usize..4, 0u64..4_000, 1u32..60), 1..400)) {
            let config = Config::default();
            let mut budget = budget(&config);
            let mut now_ms = 0;
            let mut made: [Vec<u64>; 4] = Default::default();
            for (gate, wait_ms, calls) in asks {
                let gate = Gate::ALL[gate];
                now_ms += wait_ms;
                for _ in 0..calls {
                    match budget.take(Time::from_millis(now_ms), gate) {
                        Ok(()) => made[gate as usize].push(now_ms),
                        Err(at) => {
                            prop_assert!(at > Time::from_millis(now_ms) && at < Time::NEVER);
                            let mut later = budget.clone();
                            later.refill(at);
                            let again = later.earliest(at, gate, 1);
                            prop_assert!(again <= at, "{gate:?} {now_ms}: {at:?}, then {again:?}");
                            break;
                        }
                    }
                }
            }
            let mut writes: Vec<u64> = Vec::new();
            for gate in [Gate::ServiceWrites, Gate::LocationWrites, Gate::Deletes] {
                writes.extend(&made[gate as usize]);
            }
            writes.sort_unstable();
            prop_assert!(most_in_a_window(&writes, 300_000) <= 800);
            prop_assert!(most_in_a_window(&made[Gate::Reads as usize], 300_000) <= 8_000);
            let mut puts = [made[1].clone(), made[2].clone()].concat();
            puts.sort_unstable();
            for (calls, burst, per_s) in [(&puts, 160, 8), (&made[0], 200, 20), (&made[3], 160, 8)] {
                for span_s in [1, 5, 30] {
                    let most = most_in_a_window(calls, span_s * 1_000) as u64;
                    prop_assert!(most <= burst + per_s * span_s, "{most} in {span_s} s");
                }
            }
        }
    }
}
