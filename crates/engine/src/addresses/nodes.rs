//! The nodes: where they are, and which addresses are wanted on each.
//!
//! A node exists here as soon as anything names it; what names an unknown node waits on its record. The
//! location of a family is the smallest InternalIP of the Node object, or, while there is no Node object,
//! the smallest host IP that a pod on it reports. It is a level: the same objects give the same location,
//! in whatever order they came. An endpoint without a node waits on the node without a name, for ever.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hash::BuildHasher;
use core::net::IpAddr;

use foldhash::fast::FixedState;
use sluice_model::Family;
use sluice_model::address::is_routable;
use sluice_model::kube::NodeObject;
use sluice_model::seeded::Bug;

use super::notice::AddressNotice;
use super::place::{PlaceId, Spot};
use super::sets::SetId;
use super::slab::{Slab, key};
use super::table::{Fingerprint, Table, Value};
use super::wide::Addr;
use super::{Addresses, side};

key!(
    /// One node.
    pub(super) NodeId
);

impl Value for NodeId {
    const VACANT: NodeId = NodeId(u32::MAX);
}

/// One node.
pub(super) struct Node {
    pub(super) name: Arc<str>,
    /// The smallest InternalIP per family, while there is a Node object.
    pub(super) object: Option<[Option<IpAddr>; 2]>,
    /// What pods say about their host, with how many say it; sorted.
    pub(super) hosts: Vec<(IpAddr, u32)>,
    /// Where its addresses of each family are.
    pub(super) place: [Option<PlaceId>; 2],
    /// The services that want each address, ready or not.
    pub(super) wanted: [Table<Addr, SetId>; 2],
    /// Endpoints and pods that name it.
    pub(super) holders: u32,
    /// It was said that it lacks an address of the family.
    warned: [bool; 2],
}

impl Node {
    /// The location that its addresses of a family should have.
    pub(super) fn location(&self, family: Family) -> Option<IpAddr> {
        match &self.object {
            Some(ips) => ips[side(family)],
            None => self.hosts.iter().map(|&(ip, _)| ip).find(|&ip| Family::of(ip) == family),
        }
    }
}

/// All nodes.
pub(super) struct Nodes {
    pub(super) slab: Slab<NodeId, Node>,
    pub(super) index: Table<Fingerprint, NodeId>,
    hasher: FixedState,
}

impl Nodes {
    pub(super) fn new() -> Nodes {
        Nodes { slab: Slab::new(), index: Table::default(), hasher: FixedState::default() }
    }

    pub(super) fn fingerprint(&self, name: &str) -> Fingerprint {
        Fingerprint::of(self.hasher.hash_one(name))
    }

    pub(super) fn find(&self, name: &str) -> Option<NodeId> {
        self.index.find(self.fingerprint(name), |node| &*self.slab[node].name == name)
    }

    pub(super) fn find_or_add(&mut self, name: &str) -> NodeId {
        if let Some(node) = self.find(name) {
            return node;
        }
        let node = self.slab.insert(Node {
            name: name.into(),
            object: None,
            hosts: Vec::new(),
            place: [None; 2],
            wanted: Default::default(),
            holders: 0,
            warned: [false; 2],
        });
        self.index.insert_another(self.fingerprint(name), node);
        node
    }

    /// Forgets a node that neither an object nor anything else names.
    pub(super) fn forget_if_unused(&mut self, node: NodeId) {
        let record = &self.slab[node];
        if record.object.is_some() || record.holders > 0 {
            return;
        }
        self.index.remove_meant(self.fingerprint(&record.name), |other| other == node);
        self.slab.remove(node);
    }
}

impl core::ops::Index<NodeId> for Nodes {
    type Output = Node;
    fn index(&self, node: NodeId) -> &Node {
        &self.slab[node]
    }
}

impl core::ops::IndexMut<NodeId> for Nodes {
    fn index_mut(&mut self, node: NodeId) -> &mut Node {
        &mut self.slab[node]
    }
}

/// The smallest usable address of each family.
fn smallest(ips: &[IpAddr]) -> [Option<IpAddr>; 2] {
    Family::ALL.map(|family| {
        let usable = ips.iter().map(IpAddr::to_canonical).filter(|&ip| is_routable(ip));
        usable.filter(|&ip| Family::of(ip) == family).min()
    })
}

impl Addresses {
    /// A Node is as given. Costs what is wanted on the node, if its location changes; else nothing.
    pub fn apply_node(&mut self, node: &NodeObject) {
        if node.name.is_empty() {
            return;
        }
        let id = self.nodes.find_or_add(&node.name);
        self.nodes[id].object = Some(smallest(&node.internal_ips));
        self.relocate(id);
    }

    /// A Node is gone: its addresses drain, unless pods that are still on it say where it is.
    pub fn remove_node(&mut self, name: &str) {
        let Some(id) = self.nodes.find(name) else { return };
        if self.nodes[id].object.take().is_some() {
            self.relocate(id);
            self.nodes.forget_if_unused(id);
        }
    }

    /// After a complete list: the Nodes that are not kept are gone.
    pub fn retain_nodes(&mut self, keep: impl Fn(&str) -> bool) {
        for id in self.nodes.slab.keys() {
            let node = &mut self.nodes[id];
            if node.object.is_some() && !keep(&node.name) {
                node.object = None;
                self.relocate(id);
                self.nodes.forget_if_unused(id);
            }
        }
    }

    /// A pod says, or no longer says, that its host has this address.
    pub(super) fn report_host(&mut self, node: NodeId, ip: IpAddr, says: bool) {
        let record = &mut self.nodes[node];
        if record.name.is_empty() {
            return;
        }
        match (record.hosts.binary_search_by_key(&ip, |&(host, _)| host), says) {
            (Ok(at), true) => record.hosts[at].1 += 1,
            (Err(at), true) => record.hosts.insert(at, (ip, 1)),
            (Ok(at), false) if record.hosts[at].1 > 1 => record.hosts[at].1 -= 1,
            (Ok(at), false) => {
                record.hosts.remove(at);
            }
            (Err(_), false) => {}
        }
        if record.object.is_none() {
            self.relocate(node);
        }
    }

    /// Moves what is wanted on a node to where the node is now.
    fn relocate(&mut self, node: NodeId) {
        for family in Family::ALL {
            let record = &self.nodes[node];
            let old = record.place[side(family)];
            let ip = record.location(family);
            if old.map(|place| self.places[place].ip) == ip {
                continue;
            }
            let new = ip.map(|ip| self.places.find_or_add(ip));
            self.nodes[node].place[side(family)] = new;
            if let Some(old) = old {
                self.places.leave(old, node);
                // Held, so that it stays while its entries are looked at one by one.
                self.places[old].recent += 1;
            }
            if let Some(new) = new {
                self.places.join(new, node);
                self.nodes[node].warned[side(family)] = false;
            }
            for addr in self.wanted_on(node, family) {
                if old.is_none() != new.is_none() {
                    self.count_unplaceable(node, family, addr, new.is_none());
                }
                // Both halves of a move enter the queue side by side, so that one batch takes both.
                if let Some(place) = old
                    && !self.seeded.has(Bug::NodeMoveForgetsOld)
                {
                    self.check(Spot { place, addr });
                }
                if let Some(place) = new {
                    self.check(Spot { place, addr });
                }
            }
            if new.is_none() && !self.nodes[node].wanted[side(family)].is_empty() {
                self.warn_of_family(node, family);
            }
            if let Some(old) = old {
                self.places[old].recent -= 1;
                self.places.forget_if_unused(old);
            }
        }
    }

    /// The addresses that are wanted on a node, sorted.
    fn wanted_on(&self, node: NodeId, family: Family) -> Vec<Addr> {
        let mut addrs: Vec<Addr> =
            self.nodes[node].wanted[side(family)].iter().map(|(addr, _)| addr).collect();
        match family {
            Family::V4 => addrs.sort_unstable(),
            Family::V6 => addrs.sort_unstable_by_key(|&addr| self.addrs.ip(family, addr)),
        }
        addrs
    }

    fn count_unplaceable(&mut self, node: NodeId, family: Family, addr: Addr, without: bool) {
        let Some(set) = self.nodes[node].wanted[side(family)].get(addr) else { return };
        for &service in self.sets.members(set) {
            match without {
                true => self.services.count_unplaceable(service, self.now),
                false => self.services.discount_unplaceable(service),
            }
        }
    }

    /// Says, once, that a node which is known has no address of a family that is wanted on it.
    pub(super) fn warn_of_family(&mut self, node: NodeId, family: Family) {
        let record = &mut self.nodes[node];
        if record.object.is_some() && !record.warned[side(family)] {
            record.warned[side(family)] = true;
            let node = Arc::clone(&record.name);
            self.notify(AddressNotice::FamilyMissing { node, family });
        }
    }
}
