//! Whether what is desired cannot be sent: for how long, and to whom it matters. Computed from the state, not from events.

use alloc::collections::BTreeSet;
use core::fmt;
use core::time::Duration;

use sluice_model::event::Wait;
use sluice_model::reason::Reason;
use sluice_model::{Family, Time};

use super::place::Spot;
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
    /// It is not sent, because Azure asked for a pause.
    Paused,
    /// It is not sent, because our call budget is used up.
    OverBudget,
}

impl LaneTrouble<'_> {
    /// Why, in one word.
    pub const fn reason(&self) -> Reason {
        match self {
            LaneTrouble::Failing(row) => row.reason,
            LaneTrouble::Slow => Reason::AzureUnavailable,
            LaneTrouble::Paused | LaneTrouble::OverBudget => Reason::Throttled,
        }
    }
}

/// Why an address has no location.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MissingPlace<'a> {
    /// Its endpoint names no node.
    NoNode,
    /// There is no such Node.
    UnknownNode(&'a str),
    /// The Node has no address of the family.
    NoAddress(&'a str, Family),
}

impl fmt::Display for MissingPlace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MissingPlace::NoNode => f.write_str("An endpoint has no nodeName"),
            MissingPlace::UnknownNode(name) => write!(f, "Node {name} does not exist"),
            MissingPlace::NoAddress(name, family) => write!(f, "Node {name} has no {family} InternalIP"),
        }
    }
}

impl Addresses {
    /// What keeps addresses from being sent for longer than ordinary work takes.
    pub fn lane_trouble(&self) -> Option<LaneTrouble<'_>> {
        match (&self.lane.failing, &self.flight) {
            (Some(row), _) if self.now >= row.since + FAILING_SHOWN => Some(LaneTrouble::Failing(row)),
            (_, Some(flight)) if self.now >= flight.began + SLOW_SHOWN => {
                Some(match flight.held.filter(|(until, _)| self.now < *until + SLOW_SHOWN) {
                    Some((_, Wait::Budget { .. })) => LaneTrouble::OverBudget,
                    Some(_) => LaneTrouble::Paused,
                    None => LaneTrouble::Slow,
                })
            }
            _ => None,
        }
    }

    /// When that would begin if nothing else happens.
    pub fn lane_trouble_at(&self) -> Option<Time> {
        let failing = self.lane.failing.as_ref().map(|row| row.since + FAILING_SHOWN);
        let slow = self.flight.as_ref().map(|flight| flight.began + SLOW_SHOWN);
        let sent = self.flight.as_ref().and_then(|flight| flight.held).map(|(until, _)| until + SLOW_SHOWN);
        [failing, slow, sent].into_iter().flatten().filter(|at| *at > self.now).min()
    }

    /// The update in flight waits before it is sent. Of several waits, the one that ends last counts.
    pub fn hold_flight(&mut self, wait: Wait) {
        if let (Some(flight), Some(until)) = (&mut self.flight, wait.until())
            && flight.held.is_none_or(|(before, _)| until > before)
        {
            flight.held = Some((until, wait));
        }
    }

    /// Whether an address update of this process has been answered as it should be.
    pub fn has_sent(&self) -> bool {
        self.lane.has_answered
    }

    /// Whether something that a ready service wants, or does not want any more, is not in Azure yet. Costs nothing.
    pub fn is_behind(&self, service: ServiceIndex) -> bool {
        self.services.get(service).is_some_and(|record| {
            let placed = record.wanted - record.unplaceable.min(record.wanted);
            let is_in_flight = record.mapped != record.programmed;
            let differs = !record.queue.is_empty() || is_in_flight || record.programmed != placed;
            record.mode == Mode::Ready && differs
        })
    }

    /// How many of the pairs that a service wants are known to be mapped to it in Azure. After a rollout, Azure can have
    /// as many as are wanted, and none of these. Costs what the service wants, and nothing while it is not behind.
    pub fn programmed_of_wanted(&self, service: ServiceIndex) -> u32 {
        if !self.is_behind(service) {
            return self.programmed(service);
        }
        let is_known = |spot: &Spot| {
            let entry = self.places.is_there(spot.place).then(|| self.places.entry(*spot)).flatten();
            entry.is_some_and(|entry| self.sets.contains(entry.actual(), service))
        };
        let known: BTreeSet<Spot> = self.spots_of(service).into_iter().filter(is_known).collect();
        u32::try_from(known.len()).unwrap_or(u32::MAX)
    }

    /// Since when addresses of a ready service have waited for an address of their node. Costs nothing.
    pub fn unplaceable_since(&self, service: ServiceIndex) -> Option<Time> {
        let record = self.services.get(service)?;
        (record.mode == Mode::Ready && record.unplaceable > 0).then_some(record.unplaceable_since)
    }

    /// A node that such an address waits for. Costs what the service wants, at most.
    pub fn missing_place(&self, service: ServiceIndex) -> Option<MissingPlace<'_>> {
        let record = self.services.get(service)?;
        let any_ready = record.ready_endpoints > 0;
        let slices = record.owners.iter().flat_map(|&owner| &self.slices.owners[owner].slices);
        let points = slices.flat_map(|&slice| {
            let points = &self.slices.slab[slice].points;
            Family::ALL.into_iter().flat_map(move |family| {
                let counting = points[side(family)].iter().filter(move |point| point.counts(any_ready));
                counting.map(move |point| (point.node(), family))
            })
        });
        let pods = record.pods.iter().flat_map(|&pod| {
            let pod = &self.pods.slab[pod];
            Family::ALL
                .into_iter()
                .filter(|&family| pod.ip(family).is_some())
                .map(|family| (pod.node, family))
        });
        let without =
            points.chain(pods).filter(|&(node, family)| self.nodes[node].place[side(family)].is_none());
        // The order of slices changes, and the message of a condition should not change with it.
        let (node, family) = without.min_by_key(|&(node, family)| (&self.nodes[node].name, family))?;
        let node = &self.nodes[node];
        Some(match (&*node.name, &node.object) {
            ("", _) => MissingPlace::NoNode,
            (name, None) => MissingPlace::UnknownNode(name),
            (name, Some(_)) => MissingPlace::NoAddress(name, family),
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
