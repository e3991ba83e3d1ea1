//! Whether what is desired cannot be sent: for how long, and to whom it matters. Computed from the state, not from events.

use core::time::Duration;

use sluice_model::Time;

use super::services::{Mode, ServiceIndex};
use super::{Addresses, side};
use crate::failure_row::FailureRow;

/// Address updates that fail for so long are trouble; a shorter row of failures is ordinary.
const FAILING_SHOWN: Duration = Duration::from_secs(30);

/// An address update that takes so long is trouble; ordinary ones take seconds.
const SLOW_SHOWN: Duration = Duration::from_secs(60);

/// Why addresses are not sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LaneTrouble<'a> {
    /// The updates fail.
    Failing(&'a FailureRow),
    /// The update in flight does not end.
    Slow,
}

impl Addresses {
    /// What keeps addresses from being sent for longer than ordinary work takes.
    pub fn lane_trouble(&self) -> Option<LaneTrouble<'_>> {
        match (&self.lane.failing, &self.flight) {
            (Some(row), _) if self.now >= row.since + FAILING_SHOWN => Some(LaneTrouble::Failing(row)),
            (_, Some(flight)) if self.now >= flight.began + SLOW_SHOWN => Some(LaneTrouble::Slow),
            _ => None,
        }
    }

    /// When that would begin if nothing else happens.
    pub fn lane_trouble_at(&self) -> Option<Time> {
        let failing = self.lane.failing.as_ref().map(|row| row.since + FAILING_SHOWN);
        let slow = self.flight.as_ref().map(|flight| flight.began + SLOW_SHOWN);
        [failing, slow].into_iter().flatten().filter(|at| *at > self.now).min()
    }

    /// Whether an address update of this process has been answered as it should be.
    pub fn has_sent(&self) -> bool {
        self.lane.has_answered
    }

    /// Whether something that a ready service wants, or does not want any more, is not in Azure yet. Costs nothing.
    pub fn is_behind(&self, service: ServiceIndex) -> bool {
        self.services.get(service).is_some_and(|record| {
            let placed = record.wanted - record.unplaceable.min(record.wanted);
            record.mode == Mode::Ready && (!record.queue.is_empty() || record.programmed != placed)
        })
    }

    /// How many addresses of an egress an unmanaged egress has. Costs as much as there are such addresses.
    pub fn kept_from(&self, service: ServiceIndex) -> usize {
        let is_of = |spot: &super::place::Spot| {
            let side = side(self.places[spot.place].family);
            self.pods.owner[side].get(spot.addr).is_some_and(|pod| self.pods.slab[pod].service == service)
        };
        self.held.keys().filter(|spot| is_of(spot)).count()
    }
}
