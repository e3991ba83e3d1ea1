//! Reads ahead: asks memory for many things at once before they are needed one by one.
//!
//! In a big cluster a change costs what the memory takes to answer, and each answer leads to the next
//! question: the index to the record, the record to the table. Nothing here changes or decides anything.
//! These functions only go over the same ground first, all questions of one kind side by side, so that the
//! processor has them answered together instead of one after the other.

use alloc::vec::Vec;
use core::hint::black_box;
use core::net::IpAddr;

use sluice_model::{Family, Uid};

use super::nodes::NodeId;
use super::place::{PlaceId, Spot};
use super::pods::PodId;
use super::wide::Addr;
use super::{Addresses, side};

impl Addresses {
    /// Entries that will be compared.
    pub(super) fn ahead_of_spots(&self, spots: &[Spot]) {
        let mut seen = 0;
        for spot in spots {
            seen ^= self.places.get(spot.place).map_or(0, |place| place.batch);
        }
        for spot in spots {
            let Some(place) = self.places.get(spot.place) else { continue };
            place.entries.touch(spot.addr);
            seen ^= place.node.and_then(|node| self.nodes.slab.get(node)).map_or(0, |node| node.holders);
        }
        for spot in spots {
            let Some(place) = self.places.get(spot.place) else { continue };
            if let Some(node) = place.node.and_then(|node| self.nodes.slab.get(node)) {
                node.wanted[side(place.family)].touch(spot.addr);
            }
        }
        black_box(seen);
    }

    /// Which nodes these names probably mean; whoever uses a guess compares the name.
    pub(super) fn guess_nodes<'a>(&self, names: impl Iterator<Item = &'a str>) -> Vec<Option<NodeId>> {
        let nodes = &self.nodes;
        let guesses: Vec<Option<NodeId>> =
            names.map(|name| nodes.index.get(nodes.fingerprint(name))).collect();
        for &node in &guesses {
            self.touch_node(node);
        }
        guesses
    }

    /// A pod that came, changed or goes, with the node and the addresses that it has now.
    pub(super) fn ahead_of_pod(&self, uid: Uid, node_name: Option<&str>, ips: &[IpAddr]) {
        let (pods, nodes) = (&self.pods, &self.nodes);
        let fingerprint = pods.fingerprint(uid);
        pods.index.touch(fingerprint);
        let named = node_name.map(|name| nodes.fingerprint(name));
        if let Some(named) = named {
            nodes.index.touch(named);
        }
        for &ip in ips {
            if let IpAddr::V4(v4) = ip {
                pods.owner[side(Family::V4)].touch(Addr(v4.to_bits()));
            }
        }
        let pod = pods.index.get(fingerprint);
        let node = named.and_then(|named| nodes.index.get(named));
        self.touch_pod(pod);
        self.touch_node(node);
        let mut place = node.and_then(|node| nodes.slab.get(node)?.place[side(Family::V4)]);
        if let Some(pod) = pod.and_then(|pod| pods.slab.get(pod)) {
            if let Some(service) = self.services.get(pod.service) {
                self.touch_pod(service.pods.last().copied());
                black_box(service.queue.len());
            }
            if node.is_none() {
                self.touch_node(Some(pod.node));
                place = nodes.slab.get(pod.node).and_then(|node| node.place[side(Family::V4)]);
            }
            if let Some(addr) = pod.ip(Family::V4) {
                pods.owner[side(Family::V4)].touch(addr);
                self.touch_spot(pod.node, place, addr);
            }
        }
        for &ip in ips {
            if let (IpAddr::V4(v4), Some(node)) = (ip, node) {
                self.touch_spot(node, place, Addr(v4.to_bits()));
            }
        }
    }

    fn touch_pod(&self, pod: Option<PodId>) {
        black_box(pod.and_then(|pod| self.pods.slab.get(pod)).map(|pod| pod.service));
    }

    fn touch_node(&self, node: Option<NodeId>) {
        if let Some(node) = node.and_then(|node| self.nodes.slab.get(node)) {
            black_box((node.holders, node.name.as_bytes().first().copied()));
        }
    }

    fn touch_spot(&self, node: NodeId, place: Option<PlaceId>, addr: Addr) {
        if let Some(place) = place.and_then(|place| self.places.get(place)) {
            place.entries.touch(addr);
        }
        if let Some(node) = self.nodes.slab.get(node) {
            node.wanted[side(Family::V4)].touch(addr);
        }
    }
}
