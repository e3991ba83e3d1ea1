//! What is wanted: who wants which address on which node, and how that compares with Azure.
//!
//! Slices and pods come here one address at a time. A list of services per (node, address) says who wants
//! it at least once; the few who want it more than once (an address in two slices of one Service) are
//! counted beside it.

use alloc::vec::Vec;

use hashbrown::hash_map::Entry as MapEntry;
use sluice_model::Family;
use sluice_model::seeded::Bug;

use super::nodes::NodeId;
use super::place::{Entry, Spot};
use super::services::{Mode, ServiceIndex};
use super::sets::SetId;
use super::wide::Addr;
use super::{Addresses, side};

/// One wish of one service, for wishes that are made more than once.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Wish {
    pub(super) node: NodeId,
    pub(super) family: Family,
    pub(super) addr: Addr,
    pub(super) service: ServiceIndex,
}

/// The ready services that want an address at a place.
pub(super) enum Effective {
    /// A list that exists.
    Known(SetId),
    /// A list that nobody holds yet; sorted, and not empty.
    Members(Vec<ServiceIndex>),
}

impl Addresses {
    /// A service wants an address on a node, once more.
    pub(super) fn want(&mut self, wish: Wish) {
        let Wish { node, family, addr, service } = wish;
        let record = &mut self.nodes[node];
        let wanted = &mut record.wanted[side(family)];
        match wanted.get_mut(addr) {
            None => wanted.insert_another(addr, self.sets.solo(service, &mut self.services)),
            Some(set) => {
                let old = *set;
                if self.sets.contains(old, service) {
                    *self.repeated.entry(wish).or_insert(0) += 1;
                    return;
                }
                *set = self.sets.with(old, service, &mut self.services);
                self.sets.drop(old, &mut self.services);
            }
        }
        let place = record.place[side(family)];
        self.services.recount(service);
        if self.services[service].wanted == 0 && !self.services[service].is_ready() {
            // From now on addresses wait for it.
            self.services.touch(service);
        }
        let counts = &mut self.services[service];
        counts.wanted += 1;
        self.totals.wanted += 1;
        self.totals.buffered += usize::from(counts.open && !counts.is_ready());
        match place {
            Some(place) => self.check(Spot { place, addr }),
            None => {
                self.services.count_unplaceable(service, self.now);
                self.warn_of_family(node, family);
            }
        }
    }

    /// A service wants an address on a node once less.
    pub(super) fn unwant(&mut self, wish: Wish) {
        let Wish { node, family, addr, service } = wish;
        if !self.repeated.is_empty()
            && let MapEntry::Occupied(mut again) = self.repeated.entry(wish)
        {
            *again.get_mut() -= 1;
            if *again.get() == 0 {
                again.remove();
            }
            return;
        }
        let record = &mut self.nodes[node];
        let Some(set) = record.wanted[side(family)].get_mut(addr) else { return };
        let old = *set;
        if !self.sets.contains(old, service) {
            return;
        }
        let place = record.place[side(family)];
        self.services.recount(service);
        if self.services[service].wanted == 1 && !self.services[service].is_ready() {
            self.services.touch(service);
        }
        let counts = &mut self.services[service];
        counts.wanted -= 1;
        counts.unplaceable -= u32::from(place.is_none());
        self.totals.wanted -= 1;
        self.totals.buffered -= usize::from(counts.open && !counts.is_ready());
        *set = self.sets.without(old, service, &mut self.services);
        if *set == SetId::EMPTY {
            record.wanted[side(family)].remove(addr);
        }
        // The entry in Azure may still need the list, so it is compared before the list is given up.
        if let Some(place) = place {
            self.check(Spot { place, addr });
        }
        self.sets.drop(old, &mut self.services);
    }

    /// The services that an address should have at a place: the ready ones that want it, and those that keep
    /// what Azure may have for them.
    pub(super) fn effective(&self, spot: Spot) -> Effective {
        self.effective_of(spot, self.places.entry(spot))
    }

    /// As [`Addresses::effective`], for those who have looked at the entry.
    pub(super) fn effective_of(&self, spot: Spot, entry: Option<Entry>) -> Effective {
        let wanted = self.wanted_by_the_ready(spot);
        if !self.may_keep(entry) {
            return wanted;
        }
        let mut kept = self.kept(spot, entry).peekable();
        if kept.peek().is_none() {
            return wanted;
        }
        let mut members: Vec<ServiceIndex> = self.effective_members(&wanted).into();
        let kept: Vec<ServiceIndex> = kept.collect();
        // An address has one egress: an unmanaged one that has it already, or else the one whose pod has it now, and
        // only then one that is frozen.
        let is_outbound = |service: &ServiceIndex| self.services[*service].outbound;
        let held = kept.iter().any(|service| is_outbound(service) && self.services[*service].is_unmanaged());
        if held && !self.seeded.has(Bug::TakeAddressOfOthers) {
            members.retain(|service| !is_outbound(service));
        }
        let taken = members.iter().any(is_outbound);
        members.extend(kept.into_iter().filter(|service| !(taken && is_outbound(service))));
        members.sort_unstable();
        members.dedup();
        Effective::Members(members)
    }

    /// Whether any service may keep an address; nearly always there is none, and this says so quickly.
    fn may_keep(&self, entry: Option<Entry>) -> bool {
        let Some(entry) = entry else { return false };
        let keeps = |service: &ServiceIndex| {
            matches!(self.services[*service].mode, Mode::Waiting | Mode::Frozen | Mode::Unmanaged)
        };
        entry.is(Entry::ODD) || self.sets.members(entry.actual()).iter().any(keeps)
    }

    /// The services that keep an address which Azure may have for them: the frozen ones, and those that wait
    /// and still want it.
    fn kept(&self, spot: Spot, entry: Option<Entry>) -> impl Iterator<Item = ServiceIndex> {
        let actual = self.sets.members(entry.map_or(SetId::EMPTY, Entry::actual));
        let odd = entry.filter(|entry| entry.is(Entry::ODD)).and_then(|_| self.odd.get(&spot));
        let either = odd.into_iter().flat_map(|odd| &odd.either).flat_map(|&set| self.sets.members(set));
        actual.iter().chain(either).copied().filter(move |&service| match self.services[service].mode {
            Mode::Ready | Mode::Draining => false,
            Mode::Unmanaged => !self.seeded.has(Bug::DrainOthers),
            Mode::Frozen => true,
            Mode::Waiting => self.is_wanted_by(spot, service),
        })
    }

    /// Whether a service, ready or not, wants an address at a place.
    pub(super) fn is_wanted_by(&self, spot: Spot, service: ServiceIndex) -> bool {
        let record = &self.places[spot.place];
        let sets =
            record.nodes().filter_map(|node| self.nodes[node].wanted[side(record.family)].get(spot.addr));
        sets.into_iter().any(|set| self.sets.contains(set, service))
    }

    /// Remembers an entry for the day on which the services that keep it are decided about.
    pub(super) fn note_kept(&mut self, spot: Spot, entry: Option<Entry>) {
        if self.may_keep(entry) {
            let kept: Vec<ServiceIndex> = self.kept(spot, entry).collect();
            self.note_held(spot, &kept);
            for service in kept {
                self.services[service].kept.insert(spot);
            }
        } else {
            self.held.remove(&spot);
        }
    }

    /// The ready services that want an address at a place, over all nodes that are there.
    fn wanted_by_the_ready(&self, spot: Spot) -> Effective {
        let record = &self.places[spot.place];
        let raw = |node: NodeId| self.nodes[node].wanted[side(record.family)].get(spot.addr);
        if let Some(node) = record.only_node() {
            return match raw(node) {
                Some(set) => self.ready_part(self.sets.members(set), Some(set)),
                None => Effective::Known(SetId::EMPTY),
            };
        }
        let sets = record.nodes().filter_map(raw);
        let mut members: Vec<ServiceIndex> =
            sets.flat_map(|set| self.sets.members(set).iter().copied()).collect();
        members.sort_unstable();
        members.dedup();
        self.ready_part(&members, None)
    }

    fn ready_part(&self, members: &[ServiceIndex], known_as: Option<SetId>) -> Effective {
        let is_ready = |service: &ServiceIndex| self.services[*service].is_ready();
        if let Some(set) = known_as
            && members.iter().all(is_ready)
        {
            return Effective::Known(set);
        }
        let ready: Vec<ServiceIndex> = members.iter().copied().filter(is_ready).collect();
        if ready.is_empty() { Effective::Known(SetId::EMPTY) } else { Effective::Members(ready) }
    }

    pub(super) fn effective_members<'a>(&'a self, effective: &'a Effective) -> &'a [ServiceIndex] {
        match effective {
            Effective::Known(set) => self.sets.members(*set),
            Effective::Members(members) => members,
        }
    }

    pub(super) fn is(&self, effective: &Effective, set: SetId) -> bool {
        match effective {
            Effective::Known(known) => *known == set,
            Effective::Members(members) => self.sets.members(set) == members.as_slice(),
        }
    }

    /// The list for what is wanted, held.
    pub(super) fn hold(&mut self, effective: &Effective) -> SetId {
        match effective {
            Effective::Known(set) => self.sets.share(*set),
            Effective::Members(members) => self.sets.hold(members, &mut self.services),
        }
    }

    /// Compares the two sides of an entry after something changed, and queues it if they may differ.
    pub(super) fn check(&mut self, spot: Spot) {
        if self.queue_if_needed(spot) {
            self.hurry();
        }
    }

    /// As [`Addresses::check`], for changes that are nobody's news; says whether there is something to send.
    pub(super) fn queue_if_needed(&mut self, spot: Spot) -> bool {
        if !self.places.is_there(spot.place) {
            // It went with its last entry.
            return false;
        }
        let entry = self.places.entry(spot);
        self.note_kept(spot, entry);
        let effective = self.effective_of(spot, entry);
        let Some(entry) = entry else {
            if self.is(&effective, SetId::EMPTY) {
                return false;
            }
            return self.enqueue_new(spot, &effective);
        };
        if entry.is(Entry::ODD) {
            self.count_rejected(spot);
        }
        if entry.is(Entry::IN_FLIGHT) {
            // Its end looks at it again.
            if let Some(entry) = self.places.entry_mut(spot) {
                entry.set(Entry::CHANGED);
            }
            return false;
        }
        if entry.is(Entry::QUEUED) {
            // Whoever takes it from the queue looks at it again; but it is news all the same.
            return true;
        }
        if entry.is(Entry::ODD) {
            return self.check_odd(spot, entry, &effective);
        }
        if self.is(&effective, entry.actual()) {
            self.forget_if_absent(spot);
            return false;
        }
        self.enqueue(spot, entry, &effective)
    }

    /// Drops an entry that says nothing.
    pub(super) fn forget_if_absent(&mut self, spot: Spot) {
        if self.places.entry(spot) != Some(Entry::ABSENT) {
            return;
        }
        let place = &mut self.places[spot.place];
        place.entries.remove(spot.addr);
        self.addrs.drop(place.family, spot.addr);
        if self.places[spot.place].node.is_none() {
            self.places.forget_if_unused(spot.place);
        }
    }
}
