//! How many calls may be made, and when the next one.
//!
//! Azure counts twice: a token bucket per subscription, and a window of five minutes per
//! resource provider. We take our share of each. Calls pass one of four gates. The two
//! write gates are lanes: each owns a part of the writes and may use what the other leaves. A lane never lends
//! all it has: of its bucket it keeps a twelfth, and of its window a twelfth and an even pace, so that a lane that
//! was idle goes on at once, whatever the other did.
//!
//! ```text
//!                     token buckets           windows of 5 min
//! Reads ─────────────▶ reads                   reads
//! ServiceWrites ──┬──▶ writes, 70 % ◀─ lend ─▶ writes, 70 % ◀─ lend ─▶ ┐
//! LocationWrites ─┼──▶ writes, 30 % ◀─ lend ─▶ writes, 30 % ◀─ lend ─▶ ┘
//! Deletes ────────┴──▶ deletes                 (as service writes)
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

/// A lane borrows first when it has used a third of its share of the window. A burst stays below that, and leaves
/// the other lane's share alone.
const BUSY_FROM: u32 = 3;
/// Locations are paced when half of their share of the window is used.
const PACED_FROM: u32 = 2;

/// The share of every bucket and window, and the pauses that Azure asked for.
#[derive(Clone)]
pub(crate) struct Budget {
    reads: Tokens,
    deletes: Tokens,
    /// The writes' bucket, cut in two lanes.
    writes: [Tokens; 2],
    reads_window: Window,
    /// The writes' window, cut in two lanes. A borrowed call is counted in the window of the lane that lent it.
    lanes: [Window; 2],
    /// When the last location call left that was not borrowed.
    location_at: Time,
    pub(crate) pauses: Pauses,
    share_permille: u32,
    lane_permille: [u32; 2],
    gather_locations: Duration,
    seeded: Seeded,
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
            lanes: lane_permille.map(|lane| window(part(writes_limit, lane))),
            location_at: Time::ZERO,
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
        self.pauses.sent(now, gate);
        let [services, locations] = &mut self.writes;
        match gate {
            Gate::Reads => self.reads.take(),
            Gate::Deletes => self.deletes.take(),
            Gate::ServiceWrites => services.take_or_borrow(locations),
            Gate::LocationWrites => locations.take_or_borrow(services),
        }
        match gate.lane() {
            None => self.reads_window.count(now),
            Some(lane) => self.count(now, lane),
        }
        Ok(())
    }

    /// Counts a write in the window of its lane, or of the one that lends. A busy lane borrows before it uses up
    /// what is its own: what it does not borrow now it cannot borrow later.
    fn count(&mut self, now: Time, lane: usize) {
        let (mine, other) = (&self.lanes[lane], &self.lanes[1 - lane]);
        let borrows = (mine.has_used_one_in(BUSY_FROM) && other.lends_at(now, 1) <= now) || mine.room() == 0;
        if lane == LOCATIONS && !borrows {
            self.location_at = now;
        }
        self.lanes[if borrows { 1 - lane } else { lane }].count(now);
    }

    /// When `calls` calls could be made at once; `now` if they could already. Exact for one
    /// call, an estimate for more.
    pub(crate) fn earliest(&self, now: Time, gate: Gate, calls: u32) -> Time {
        let paused = self.pauses.opens_at(gate);
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
            Some(lane) => self.in_lane(now, lane, calls),
        };
        now.max(paused).max(bucket).max(window)
    }

    /// When the lane's part of the window has room, its own or borrowed.
    fn in_lane(&self, now: Time, lane: usize, calls: u32) -> Time {
        let (mine, other) = (&self.lanes[lane], &self.lanes[1 - lane]);
        if mine.room() >= calls {
            return now;
        }
        let missing = calls.saturating_sub(mine.room());
        mine.earliest(now, calls).min(other.lends_at(now, missing))
    }

    /// When the locations may send again: at once while half of their share is unused, or while the services leave
    /// some of theirs. Otherwise what is left is spread evenly over the time until more becomes free, and the more
    /// of their share the services have used, the longer addresses gather, since every call could be lent.
    pub(crate) fn next_location(&mut self, now: Time) -> Time {
        self.refill(now);
        let allowed = self.earliest(now, Gate::LocationWrites, 1);
        let [services, locations] = &self.lanes;
        if !locations.has_used_one_in(PACED_FROM) || self.seeded.has(Bug::NoBudget) {
            return allowed;
        }
        let paced = self.location_at + locations.interval(now);
        let pressed = now + self.gather_locations * services.used_permille() / 1_000;
        allowed.max(paced.max(pressed).min(services.lends_at(now, 1)))
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
                let [services, locations] = &self.writes;
                if services.whole(now).saturating_add(locations.whole(now)) > ours {
                    for (tokens, lane) in self.writes.iter_mut().zip(self.lane_permille) {
                        tokens.set(part(ours, lane));
                    }
                }
            }
        }
    }

    /// Reads and writes in their windows.
    pub(crate) fn in_windows(&self) -> (u32, u32) {
        (self.reads_window.used(), self.lanes.iter().map(Window::used).sum())
    }

    /// Reads and writes that fit into their windows.
    pub(crate) fn in_windows_max(&self) -> (u32, u32) {
        (self.reads_window.limit(), self.lanes.iter().map(Window::limit).sum())
    }

    /// Lets time pass.
    pub(crate) fn refill(&mut self, now: Time) {
        self.reads.refill(now);
        self.deletes.refill(now);
        spill(&mut self.writes, now);
        self.reads_window.forget(now);
        for lane in &mut self.lanes {
            lane.forget(now);
        }
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
    fn a_lane_alone_borrows_all_but_a_twelfth_of_the_others_burst() {
        for (gate, all) in [(Gate::ServiceWrites, 160 - 4), (Gate::LocationWrites, 160 - 9)] {
            let taken = drain(&mut budget(&Config::default()), gate, 0, 300);
            assert_eq!(taken.iter().filter(|ms| **ms == 0).count(), all, "{gate:?}");
        }
    }

    #[test]
    fn a_lane_alone_has_its_share_of_the_window_and_most_of_the_others() {
        for gate in [Gate::ServiceWrites, Gate::LocationWrites] {
            let taken = drain(&mut budget(&Config::default()), gate, 0, 300).len();
            assert!((700..=800).contains(&taken), "{gate:?}: {taken}");
        }
    }

    #[test]
    fn services_that_were_idle_have_their_pace_whatever_the_locations_did() {
        for idle_s in [1, 17, 60, 150, 299, 300, 450, 900] {
            let mut budget = budget(&Config::default());
            drain(&mut budget, Gate::LocationWrites, 0, idle_s);
            for call in 0..600 {
                // A twelfth of the bucket at once, then 466 in five minutes.
                let now = Time::from_millis(idle_s * 1_000 + 650 * u64::saturating_sub(call, 8));
                while budget.take(now, Gate::LocationWrites).is_ok() {}
                assert_eq!(budget.take(now, Gate::ServiceWrites), Ok(()), "call {call}, {idle_s} s");
            }
        }
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
    fn locations_stay_within_their_share_while_services_need_theirs() {
        for (permille, limit) in [(300, 240), (50, 40)] {
            let config = Config { location_lane_permille: permille, ..Config::default() };
            let mut budget = budget(&config);
            let (mut now, mut calls) = (Time::ZERO, Vec::new());
            while now < Time::from_millis(900_000) {
                while budget.take(now, Gate::ServiceWrites).is_ok() {}
                if budget.take(now, Gate::LocationWrites).is_ok() {
                    calls.push(now.as_millis());
                }
                now = now + Duration::from_millis(50);
            }
            let busiest = most_in_a_window(&calls, 300_000);
            assert!(busiest <= limit && busiest > limit * 8 / 10, "{busiest} of {limit}");
        }
    }

    #[test]
    fn locations_that_are_paced_never_stand_still() {
        for share_permille in [800, 50] {
            let config = Config { share_permille, ..Config::default() };
            let limit = u64::from(part(part(1_000, share_permille), 300));
            let mut budget = budget(&config);
            let mut now = Time::ZERO;
            let mut longest_ms = 0;
            while now < Time::from_millis(1_200_000) {
                assert_eq!(budget.take(now, Gate::LocationWrites), Ok(()));
                let next = budget.next_location(now).max(now + Duration::from_millis(50));
                longest_ms = longest_ms.max(next.since(now).as_millis());
                now = next;
            }
            // Half of the share is spread over the window.
            assert!(longest_ms <= u128::from(300_000 / (limit / 2)) + 100, "{longest_ms} ms of {limit}");
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
    fn addresses_gather_the_longer_the_more_services_use_once_half_is_used() {
        let mut budget = budget(&Config::default());
        let now = Time::from_millis(20_000);
        let mut waits = Vec::new();
        for used in [0, 119, 1, 0, 0] {
            for _ in 0..used {
                budget.lanes[LOCATIONS].count(Time::ZERO);
            }
            // The bucket gives fewer at once, the window counts on.
            for _ in 0..112 {
                budget.lanes[SERVICES].count(now);
            }
            waits.push(budget.next_location(now).since(now).as_millis());
        }
        assert_eq!(waits, [0, 0, 1_800, 2_400, 3_000]);
    }

    #[test]
    fn deletes_count_as_writes_of_the_services_in_the_window() {
        let config =
            Config { deletes: crate::BucketSize { burst: 10_000, per_second: 10 }, ..Config::default() };
        let mut budget = budget(&config);
        let taken = drain(&mut budget, Gate::Deletes, 0, 1).len();
        assert!((560..600).contains(&taken), "{taken}");
        assert!(budget.take(Time::from_millis(950), Gate::ServiceWrites).is_err());
        assert!(budget.take(Time::from_millis(950), Gate::LocationWrites).is_ok());
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
