//! The locations, and what Azure has at each.
//!
//! A place is one location IP: of a node, or found in Azure, or both. For each address that Azure has
//! there, or that is wanted there and not yet sent, the place has an [`Entry`]: 32 bits with the list of
//! services in Azure and a few flags. Everything rarer (an unknown outcome, quarantine) stands beside it
//! under the same key.

use alloc::vec::Vec;
use core::net::IpAddr;

use sluice_model::Family;

use super::Map;
use super::nodes::NodeId;
use super::sets::SetId;
use super::slab::{Slab, key};
use super::table::{Table, Value};
use super::wide::Addr;

key!(
    /// One location.
    pub(super) PlaceId
);

/// One address at one location: the unit that is compared, sent and settled.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Spot {
    pub(super) place: PlaceId,
    pub(super) addr: Addr,
}

/// What Azure has for an address, and how the entry stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entry(u32);

impl Value for Entry {
    const VACANT: Entry = Entry(u32::MAX);
}

impl Entry {
    /// It is in the queue of a service: the two sides may differ.
    pub(super) const QUEUED: u32 = 1 << 31;
    /// It is in the batch in flight.
    pub(super) const IN_FLIGHT: u32 = 1 << 30;
    /// Something changed while it was in flight.
    pub(super) const CHANGED: u32 = 1 << 29;
    /// It has an [`super::odd::Odd`] record.
    pub(super) const ODD: u32 = 1 << 28;
    /// The listing being read shows it.
    pub(super) const SEEN: u32 = 1 << 27;
    const SET: u32 = Entry::SEEN - 1;

    /// Azure has nothing.
    pub(super) const ABSENT: Entry = Entry(0);

    pub(super) const fn actual(self) -> SetId {
        SetId(self.0 & Entry::SET)
    }

    pub(super) const fn with_actual(self, set: SetId) -> Entry {
        Entry(self.0 & !Entry::SET | set.0 & Entry::SET)
    }

    pub(super) const fn is(self, flag: u32) -> bool {
        self.0 & flag != 0
    }

    pub(super) fn set(&mut self, flag: u32) {
        self.0 |= flag;
    }

    pub(super) fn clear(&mut self, flag: u32) {
        self.0 &= !flag;
    }
}

/// One location.
pub(super) struct Place {
    pub(super) ip: IpAddr,
    pub(super) family: Family,
    /// The node that has this address.
    pub(super) node: Option<NodeId>,
    /// More nodes that have it, by mistake; then all count.
    more_nodes: Vec<NodeId>,
    pub(super) entries: Table<Addr, Entry>,
    /// Entries whose outcome is unknown.
    pub(super) either: u32,
    /// Recent batches that wrote here.
    pub(super) recent: u32,
    /// The last batch that wrote here, and where in it this location stands.
    pub(super) batch: u32,
    pub(super) batch_at: u32,
    /// A listing showed it without addresses; it is to be removed.
    pub(super) hollow: bool,
}

impl Place {
    /// The nodes that are here.
    pub(super) fn nodes(&self) -> impl Iterator<Item = NodeId> {
        self.node.into_iter().chain(self.more_nodes.iter().copied())
    }

    /// Whether entries of unknown outcome stand here and no node does any more.
    pub(super) fn is_lost(&self) -> bool {
        self.node.is_none() && self.either > 0
    }

    /// The only node that is here, if there is no other.
    pub(super) fn only_node(&self) -> Option<NodeId> {
        self.node.filter(|_| self.more_nodes.is_empty())
    }
}

/// All locations.
pub(super) struct Places {
    slab: Slab<PlaceId, Place>,
    by_ip: Map<IpAddr, PlaceId>,
    /// Places without a node that have entries of unknown outcome.
    lost: usize,
}

impl Places {
    pub(super) fn new() -> Places {
        Places { slab: Slab::new(), by_ip: Map::default(), lost: 0 }
    }

    pub(super) fn find(&self, ip: IpAddr) -> Option<PlaceId> {
        self.by_ip.get(&ip).copied()
    }

    pub(super) fn find_or_add(&mut self, ip: IpAddr) -> PlaceId {
        if let Some(place) = self.find(ip) {
            return place;
        }
        let place = self.slab.insert(Place {
            ip,
            family: Family::of(ip),
            node: None,
            more_nodes: Vec::new(),
            entries: Table::default(),
            either: 0,
            recent: 0,
            batch: 0,
            batch_at: 0,
            hollow: false,
        });
        self.by_ip.insert(ip, place);
        place
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (PlaceId, &Place)> {
        self.slab.iter()
    }

    pub(super) fn get(&self, place: PlaceId) -> Option<&Place> {
        self.slab.get(place)
    }

    pub(super) fn is_there(&self, place: PlaceId) -> bool {
        self.slab.get(place).is_some()
    }

    pub(super) fn keys(&self) -> Vec<PlaceId> {
        self.slab.keys()
    }

    pub(super) fn entry(&self, spot: Spot) -> Option<Entry> {
        self.slab.get(spot.place)?.entries.get(spot.addr)
    }

    pub(super) fn entry_mut(&mut self, spot: Spot) -> Option<&mut Entry> {
        self.slab.get_mut(spot.place)?.entries.get_mut(spot.addr)
    }

    pub(super) fn join(&mut self, place: PlaceId, node: NodeId) {
        self.change(place, |record| match record.node {
            None => record.node = Some(node),
            Some(_) => record.more_nodes.push(node),
        });
    }

    pub(super) fn leave(&mut self, place: PlaceId, node: NodeId) {
        self.change(place, |record| {
            record.more_nodes.retain(|&other| other != node);
            if record.node == Some(node) {
                record.node = record.more_nodes.pop();
            }
        });
    }

    /// An entry's outcome became unknown, or known again.
    pub(super) fn count_either(&mut self, place: PlaceId, unknown: bool) {
        self.change(place, |record| {
            record.either = if unknown { record.either + 1 } else { record.either.saturating_sub(1) };
        });
    }

    /// Changes what decides whether a place is lost, and keeps count.
    fn change(&mut self, place: PlaceId, change: impl FnOnce(&mut Place)) {
        let record = &mut self.slab[place];
        let was = record.is_lost();
        change(record);
        match (was, record.is_lost()) {
            (false, true) => self.lost += 1,
            (true, false) => self.lost = self.lost.saturating_sub(1),
            _ => {}
        }
    }

    /// Whether entries of unknown outcome stand where no node is any more.
    pub(super) fn any_lost(&self) -> bool {
        self.lost > 0
    }

    pub(super) fn lost(&self) -> usize {
        self.lost
    }

    /// Forgets a place that neither a node nor Azure has.
    pub(super) fn forget_if_unused(&mut self, place: PlaceId) {
        let record = &self.slab[place];
        if record.node.is_none() && record.entries.is_empty() && record.recent == 0 && !record.hollow {
            self.by_ip.remove(&record.ip);
            self.slab.remove(place);
        }
    }
}

impl core::ops::Index<PlaceId> for Places {
    type Output = Place;
    fn index(&self, place: PlaceId) -> &Place {
        &self.slab[place]
    }
}

impl core::ops::IndexMut<PlaceId> for Places {
    fn index_mut(&mut self, place: PlaceId) -> &mut Place {
        &mut self.slab[place]
    }
}
