//! When the sync may send: one batch at a time, and pauses after failures.
//!
//! The lane is never parked. It backs off from one second to half a minute for ever. The first change in an outage
//! ends a backoff early, later ones do not: under churn every change would otherwise be a failing call. A pause that
//! Azure asked for is never ended early.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use sluice_model::event::Wait;
use sluice_model::{Failure, Time};

use super::bisect::Group;
use super::notice::AddressNotice;
use super::place::{PlaceId, Spot};
use super::sets::SetId;
use super::{Addresses, Limits};
use crate::failure_row::FailureRow;

/// One entry on its way; the list is held.
#[derive(Clone, Copy)]
pub(super) struct Sent {
    pub(super) spot: Spot,
    pub(super) set: SetId,
    /// Since when it has been news; [`Time::NEVER`]: it is not, and only goes with the others.
    pub(super) since: Time,
}

/// The batch in flight.
pub(super) struct Flight {
    pub(super) sent: Vec<Sent>,
    pub(super) places: Vec<PlaceId>,
    /// Locations without addresses that are removed by the way.
    pub(super) hollow: Vec<PlaceId>,
    /// The suspects that it tries, if it is one of those.
    pub(super) group: Option<Group>,
    pub(super) began: Time,
    /// Until when it waits before it is sent, and for what.
    pub(super) held: Option<(Time, Wait)>,
}

/// What one batch wrote, remembered for listings that do not show it yet.
pub(super) struct Written {
    pub(super) at: Time,
    pub(super) spots: Box<[Spot]>,
    pub(super) places: Box<[PlaceId]>,
}

/// Pauses and the memory of recent writes.
pub(super) struct Lane {
    /// The pause that a change may end.
    backoff_until: Time,
    /// The pause that Azure asked for.
    throttled_until: Time,
    failures_in_a_row: u32,
    /// A change has ended a backoff since the last answer.
    hurried: bool,
    /// The requests that failed since one was last answered as it should be.
    pub(super) failing: Option<FailureRow>,
    /// A request of this process has been answered as it should be.
    pub(super) has_answered: bool,
    random: u64,
    pub(super) written: VecDeque<Written>,
    /// The newest write that is no longer remembered.
    pub(super) forgotten_until: Option<Time>,
}

impl Lane {
    pub(super) fn new(seed: u64) -> Lane {
        Lane {
            backoff_until: Time::ZERO,
            throttled_until: Time::ZERO,
            failures_in_a_row: 0,
            hurried: false,
            failing: None,
            has_answered: false,
            random: seed,
            written: VecDeque::new(),
            forgotten_until: None,
        }
    }

    /// The end of the pause, if there is one.
    pub(super) fn paused_until(&self) -> Time {
        self.backoff_until.max(self.throttled_until)
    }

    /// Half of the span, and up to as much again at random, so that many do not come back at once.
    fn jittered(&mut self, span: Duration) -> Duration {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        let half_ms = u64::try_from(span.as_millis() / 2).unwrap_or(u64::MAX);
        Duration::from_millis(half_ms.saturating_add(mixed % half_ms.saturating_add(1)))
    }

    /// Azure answered, so the next failure is the first again.
    pub(super) fn answered(&mut self) {
        self.failures_in_a_row = 0;
        self.hurried = false;
        self.backoff_until = Time::ZERO;
        self.failing = None;
        self.has_answered = true;
    }

    /// Waits as long as Azure asks; nobody's fault, so it is not counted.
    pub(super) fn throttle(&mut self, now: Time, wait: Duration) {
        self.throttled_until = self.throttled_until.max(now + wait);
    }

    /// Waits a little longer than last time; says how many failures there have been in a row.
    fn back_off(&mut self, now: Time, limits: &Limits) -> u32 {
        self.failures_in_a_row = self.failures_in_a_row.saturating_add(1);
        let doublings = (self.failures_in_a_row - 1).min(16);
        let span = limits.backoff_min.saturating_mul(1 << doublings).min(limits.backoff_max);
        self.backoff_until = now + self.jittered(span);
        self.failures_in_a_row
    }
}

impl Addresses {
    /// Ends a backoff early, once per outage: something new is to be sent, or a deletion waits.
    ///
    /// Changes of slices, pods, nodes and readiness do this by themselves. A pause that Azure asked for stays.
    pub fn hurry(&mut self) {
        if self.lane.backoff_until > self.now && !self.lane.hurried {
            self.lane.hurried = true;
            self.lane.backoff_until = Time::ZERO;
        }
    }

    /// The next moment at which [`Addresses::next_batch`] may give something; `None` if only an event can
    /// change that.
    pub fn wake_at(&self) -> Option<Time> {
        if self.flight.is_some() {
            return None;
        }
        let waits = !self.ring.is_empty() || !self.hollow.is_empty() || self.bisect.is_pending();
        let work = waits.then_some(self.now);
        let due = [work, self.bisect.retry_at()].into_iter().flatten().min()?;
        Some(due.max(self.lane.paused_until()))
    }

    /// Takes notice of the time; it never goes back.
    pub(crate) fn advance(&mut self, now: Time) {
        self.now = self.now.max(now);
        while self.lane.written.front().is_some_and(|old| old.at + self.limits.writes_remembered < self.now) {
            self.forget_oldest_write();
        }
    }

    pub(super) fn fail(&mut self, failure: &Failure) {
        self.totals.failures += 1;
        let failures = self.lane.back_off(self.now, &self.limits);
        if let Some(wait) = failure.retry_after {
            self.lane.throttle(self.now, wait);
        }
        if failures == self.limits.failures_reported {
            self.notify(AddressNotice::LaneFailing { failures, failure: failure.clone() });
        }
    }

    /// Remembers what a batch wrote, or may have written.
    pub(super) fn remember_write(&mut self, spots: Box<[Spot]>, places: Vec<PlaceId>) {
        for spot in &spots {
            self.addrs.share(self.places[spot.place].family, spot.addr);
        }
        for &place in &places {
            self.places[place].recent += 1;
        }
        self.lane.written.push_back(Written { at: self.now, spots, places: places.into() });
    }

    fn forget_oldest_write(&mut self) {
        let Some(old) = self.lane.written.pop_front() else { return };
        self.lane.forgotten_until = Some(old.at);
        for spot in old.spots {
            self.addrs.drop(self.places[spot.place].family, spot.addr);
        }
        for place in old.places {
            self.places[place].recent -= 1;
            self.places.forget_if_unused(place);
        }
    }
}
