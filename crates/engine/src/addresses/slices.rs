//! The EndpointSlices: a snapshot of each, and what changes between two of them.
//!
//! A service's addresses are the union over its slices. An endpoint counts when it is ready; when no
//! endpoint of the whole service is ready, those that are serving and terminating count, as kube-proxy has
//! it. Endpoints are kept sorted, 8 bytes each, so that an update is a walk along both versions and costs
//! the slice, not the service; only when the service gains its first or loses its last ready endpoint
//! are its other slices looked at.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::mem::take;

use sluice_model::address::is_routable;
use sluice_model::kube::{Protocol, Slice, SliceOwner, SlicePort};
use sluice_model::seeded::Bug;
use sluice_model::{Family, ObjectName, Uid};

use super::nodes::NodeId;
use super::notice::{AddressNotice, Sample};
use super::services::ServiceIndex;
use super::slab::{Slab, key};
use super::wanted::Wish;
use super::wide::Addr;
use super::{Addresses, Map, side};

key!(
    /// One slice.
    pub(super) SliceId
);
key!(
    /// One owner of slices.
    pub(super) OwnerId
);

/// Whose slices these are, as the slices say it.
///
/// A slice belongs to a Service of its own namespace, so the namespace is part of every key. By UID alone,
/// whoever may write slices in one namespace could put pods behind a Service of another.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum OwnerKey {
    /// By owner reference: the namespace and the Service's UID.
    Uid(Arc<str>, Uid),
    /// By label.
    Name(ObjectName),
}

/// What the slices say about a port of a service.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PortResolution {
    /// No slice with counting endpoints has it.
    Unresolved,
    /// All counting endpoints have it here.
    Agreed(u16),
    /// They do not agree.
    Disagree,
}

/// One endpoint: its address, its node and whether it counts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Point {
    pub(super) addr: Addr,
    node_and_flags: u32,
}

impl Point {
    const READY: u32 = 1 << 31;
    const LAST_RESORT: u32 = 1 << 30;

    pub(super) fn node(self) -> NodeId {
        NodeId(self.node_and_flags & (Point::LAST_RESORT - 1))
    }

    pub(super) fn is_ready(self) -> bool {
        self.node_and_flags & Point::READY != 0
    }

    /// Whether it counts, given whether any endpoint of the service is ready.
    pub(super) fn counts(self, any_ready: bool) -> bool {
        if any_ready { self.is_ready() } else { self.node_and_flags & Point::LAST_RESORT != 0 }
    }

    fn key(self) -> (Addr, NodeId) {
        (self.addr, self.node())
    }
}

/// The endpoints of a slice by family, each sorted.
pub(super) type Points = [Box<[Point]>; 2];

fn ready_in(points: &Points) -> u32 {
    let ready = points.iter().flatten().filter(|point| point.is_ready()).count();
    u32::try_from(ready).unwrap_or(u32::MAX)
}

/// One slice.
pub(super) struct Snapshot {
    name: ObjectName,
    pub(super) owner: OwnerId,
    pub(super) ports: Box<[SlicePort]>,
    pub(super) points: Points,
    /// Its unusable addresses, while no service of ours has the slice.
    unusable: Option<Box<Sample<Arc<str>>>>,
    /// Its unusable addresses were reported.
    warned: bool,
}

/// One owner of slices.
pub(super) struct Owner {
    key: OwnerKey,
    pub(super) service: Option<ServiceIndex>,
    pub(super) slices: Vec<SliceId>,
}

/// All slices and their owners.
pub(super) struct Slices {
    pub(super) slab: Slab<SliceId, Snapshot>,
    by_name: Map<ObjectName, SliceId>,
    pub(super) owners: Slab<OwnerId, Owner>,
    by_key: Map<OwnerKey, OwnerId>,
    /// Room for the changes of one update.
    changes: Vec<(Wish, bool)>,
}

impl Slices {
    pub(super) fn new() -> Slices {
        Slices {
            slab: Slab::new(),
            by_name: Map::default(),
            owners: Slab::new(),
            by_key: Map::default(),
            changes: Vec::new(),
        }
    }

    fn owner(&mut self, key: OwnerKey) -> OwnerId {
        if let Some(&owner) = self.by_key.get(&key) {
            return owner;
        }
        let owner = self.owners.insert(Owner { key: key.clone(), service: None, slices: Vec::new() });
        self.by_key.insert(key, owner);
        owner
    }

    fn forget_owner_if_unused(&mut self, owner: OwnerId) {
        let record = &self.owners[owner];
        if record.service.is_none() && record.slices.is_empty() {
            self.by_key.remove(&record.key);
            self.owners.remove(owner);
        }
    }
}

impl Addresses {
    /// Says whose slices these are. `None`: not ours; their snapshots are kept and contribute nothing.
    ///
    /// Costs the owner's endpoints when the service changes.
    pub fn bind(&mut self, owner: OwnerKey, service: Option<ServiceIndex>) {
        let owner = self.with_seeded_bug(owner);
        let service = service.filter(|&service| self.services.get(service).is_some());
        if service.is_none() && !self.slices.by_key.contains_key(&owner) {
            return;
        }
        let owner = self.slices.owner(owner);
        let old = self.slices.owners[owner].service;
        if old == service {
            return;
        }
        // All leave empty-handed before any arrives, so that none counts for the one while it is the other's.
        let slices = self.slices.owners[owner].slices.clone();
        let mut luggage: Vec<(SliceId, Points)> = Vec::with_capacity(slices.len());
        for id in slices {
            let points = take(&mut self.slices.slab[id].points);
            self.contribute(id, &points);
            luggage.push((id, points));
        }
        self.slices.owners[owner].service = service;
        if let Some(old) = old {
            self.services[old].owners.retain(|&other| other != owner);
            self.services.touch(old);
        }
        if let Some(new) = service {
            self.services[new].owners.push(owner);
            self.services.touch(new);
        }
        for (id, points) in luggage {
            self.slices.slab[id].points = points;
            self.contribute(id, &Points::default());
            self.warn_of_unusable(id);
        }
        self.slices.forget_owner_if_unused(owner);
    }

    /// An EndpointSlice is as given. Costs the slice.
    pub fn apply_slice(&mut self, slice: &Slice) {
        let namespace = Arc::clone(&slice.name.namespace);
        let key = match &slice.owner {
            SliceOwner::Uid(uid) => self.with_seeded_bug(OwnerKey::Uid(namespace, *uid)),
            SliceOwner::Name(name) => OwnerKey::Name(ObjectName { namespace, name: Arc::clone(name) }),
            SliceOwner::Nobody => return self.remove_slice(&slice.name),
        };
        let owner = match self.slices.by_key.get(&key) {
            Some(&owner) => owner,
            None => self.slices.owner(key),
        };
        let found = self.slices.by_name.get(&slice.name).copied();
        let id = match found {
            Some(id) if self.slices.slab[id].owner == owner => id,
            Some(id) => {
                // It changed hands: gone from the one, new to the other.
                self.drop_slice(id);
                self.add_slice(&slice.name, owner)
            }
            None => self.add_slice(&slice.name, owner),
        };
        if self.seeded.has(Bug::LastSliceWins) {
            for other in self.slices.owners[owner].slices.clone() {
                if other != id {
                    self.replace_points(other, Points::default());
                }
            }
        }
        let mut unusable = Sample::new();
        for address in &slice.malformed {
            unusable.add(|| Arc::clone(address));
        }
        let points = self.points(slice, &mut unusable);
        let record = &mut self.slices.slab[id];
        if *record.ports != *slice.ports {
            record.ports = slice.ports.as_slice().into();
            if let Some(service) = self.slices.owners[owner].service {
                self.services.touch(service);
            }
        }
        record.warned &= unusable.count > 0;
        record.unusable = (unusable.count > 0 && !record.warned).then(|| Box::new(unusable));
        self.warn_of_unusable(id);
        self.replace_points(id, points);
    }

    /// Says once that addresses of a slice are unusable, if a service of ours has the slice.
    fn warn_of_unusable(&mut self, id: SliceId) {
        let record = &mut self.slices.slab[id];
        let Some(service) = self.slices.owners[record.owner].service else { return };
        let Some(addresses) = record.unusable.take() else { return };
        record.warned = true;
        let (service, slice) = (Arc::clone(self.services.identity(service)), record.name.clone());
        self.notify(AddressNotice::Malformed { service, slice, addresses: *addresses });
    }

    /// An EndpointSlice is gone. Costs the slice.
    pub fn remove_slice(&mut self, name: &ObjectName) {
        if let Some(&id) = self.slices.by_name.get(name) {
            self.drop_slice(id);
        }
    }

    /// After a complete list: the slices that are not kept are gone.
    pub fn retain_slices(&mut self, keep: impl Fn(&ObjectName) -> bool) {
        let slices = self.slices.slab.iter();
        let gone: Vec<SliceId> = slices.filter(|(_, slice)| !keep(&slice.name)).map(|(id, _)| id).collect();
        for id in gone {
            self.drop_slice(id);
        }
    }

    /// Where a named port of a service leads, by the slices whose endpoints count. Costs those slices.
    pub fn port(&self, service: ServiceIndex, port_name: &str, protocol: Protocol) -> PortResolution {
        let Some(record) = self.services.get(service) else { return PortResolution::Unresolved };
        let any_ready = record.ready_endpoints > 0;
        let owners = record.owners.iter().flat_map(|&owner| &self.slices.owners[owner].slices);
        let counting = owners
            .map(|&slice| &self.slices.slab[slice])
            .filter(|slice| slice.points.iter().flatten().any(|point| point.counts(any_ready)));
        let mut found: Option<Option<u16>> = None;
        for slice in counting {
            let port = slice.ports.iter().find(|port| *port.name == *port_name && port.protocol == protocol);
            let port = port.and_then(|port| port.port);
            match found {
                None => found = Some(port),
                Some(other) if other == port => {}
                Some(_) => return PortResolution::Disagree,
            }
        }
        found.flatten().map_or(PortResolution::Unresolved, PortResolution::Agreed)
    }

    /// The key as given; with the seeded bug, the same UID in every namespace is one owner.
    fn with_seeded_bug(&self, key: OwnerKey) -> OwnerKey {
        match key {
            OwnerKey::Uid(_, uid) if self.seeded.has(Bug::SliceOfAnotherNamespace) => {
                OwnerKey::Uid("".into(), uid)
            }
            key => key,
        }
    }

    fn add_slice(&mut self, name: &ObjectName, owner: OwnerId) -> SliceId {
        let id = self.slices.slab.insert(Snapshot {
            name: name.clone(),
            owner,
            ports: Box::default(),
            points: Points::default(),
            unusable: None,
            warned: false,
        });
        self.slices.by_name.insert(name.clone(), id);
        self.slices.owners[owner].slices.push(id);
        id
    }

    fn drop_slice(&mut self, id: SliceId) {
        self.replace_points(id, Points::default());
        let Some(slice) = self.slices.slab.remove(id) else { return };
        self.slices.by_name.remove(&slice.name);
        self.slices.owners[slice.owner].slices.retain(|&other| other != id);
        self.slices.forget_owner_if_unused(slice.owner);
    }

    /// The endpoints in short form, sorted, each once. Their addresses are held, their nodes not yet.
    fn points(&mut self, slice: &Slice, unusable: &mut Sample<Arc<str>>) -> Points {
        let mut points: [Vec<Point>; 2] = [Vec::new(), Vec::new()];
        let names = slice.endpoints.iter().map(|endpoint| endpoint.node.as_deref().unwrap_or(""));
        let guesses = self.guess_nodes(names);
        for (endpoint, guess) in slice.endpoints.iter().zip(guesses) {
            let ip = endpoint.address.to_canonical();
            if !is_routable(ip) {
                unusable.add(|| alloc::format!("{ip}").into());
                continue;
            }
            let name = endpoint.node.as_deref().unwrap_or("");
            let node = match guess {
                Some(node) if *self.nodes[node].name == *name => node,
                _ => self.nodes.find_or_add(name),
            };
            let last_resort = endpoint.serving && endpoint.terminating;
            let ready = endpoint.ready || last_resort && self.seeded.has(Bug::CountTerminating);
            let flags =
                if ready { Point::READY } else { 0 } | if last_resort { Point::LAST_RESORT } else { 0 };
            let point = Point { addr: self.addrs.hold(ip), node_and_flags: node.0 | flags };
            let family = &mut points[side(Family::of(ip))];
            if family.is_empty() {
                family.reserve_exact(slice.endpoints.len());
            }
            family.push(point);
        }
        for family in Family::ALL {
            let points = &mut points[side(family)];
            points.sort_unstable_by_key(|point| point.key());
            let addrs = &mut self.addrs;
            points.dedup_by(|twin, kept| {
                let same = twin.key() == kept.key();
                if same {
                    kept.node_and_flags |= twin.node_and_flags;
                    addrs.drop(family, twin.addr);
                }
                same
            });
        }
        points.map(Vec::into_boxed_slice)
    }

    /// Puts new endpoints into a slice and passes on what changed.
    fn replace_points(&mut self, id: SliceId, points: Points) {
        let old = core::mem::replace(&mut self.slices.slab[id].points, points);
        self.contribute(id, &old);
        let new = take(&mut self.slices.slab[id].points);
        // A node that an endpoint leaves may be one that another enters, so all enter first.
        let mut left = Vec::new();
        for family in Family::ALL {
            merge(&old[side(family)], &new[side(family)], |old, new| match (old, new) {
                (Some(old), None) => left.push(old.node()),
                (None, Some(new)) => self.nodes[new.node()].holders += 1,
                _ => {}
            });
        }
        for node in left {
            self.nodes[node].holders -= 1;
            self.nodes.forget_if_unused(node);
        }
        for point in &old[side(Family::V6)] {
            self.addrs.drop(Family::V6, point.addr);
        }
        self.slices.slab[id].points = new;
    }

    /// Passes on how the wishes of a slice's service change, from `old` to what the slice has now.
    fn contribute(&mut self, id: SliceId, old: &Points) {
        let owner = self.slices.slab[id].owner;
        let Some(service) = self.slices.owners[owner].service else { return };
        let new = take(&mut self.slices.slab[id].points);
        let record = &mut self.services[service];
        let any_before = record.ready_endpoints > 0;
        record.ready_endpoints = (record.ready_endpoints + ready_in(&new)).saturating_sub(ready_in(old));
        let any_after = record.ready_endpoints > 0;
        let mut changes = take(&mut self.slices.changes);
        for family in Family::ALL {
            merge(&old[side(family)], &new[side(family)], |old, new| {
                let was = old.is_some_and(|point| point.counts(any_before));
                let is = new.is_some_and(|point| point.counts(any_after));
                if was != is
                    && let Some(point) = old.or(new)
                {
                    changes.push((Wish { node: point.node(), family, addr: point.addr, service }, is));
                }
            });
        }
        self.slices.slab[id].points = new;
        if any_before != any_after {
            self.flip(service, id, any_after, &mut changes);
        }
        if !changes.is_empty() {
            self.services.touch(service);
        }
        for (wish, wanted) in changes.drain(..) {
            if wanted {
                self.want(wish);
            } else {
                self.unwant(wish);
            }
        }
        self.slices.changes = changes;
    }

    /// The other slices of a service that gained its first or lost its last ready endpoint.
    fn flip(&self, service: ServiceIndex, except: SliceId, any_ready: bool, changes: &mut Vec<(Wish, bool)>) {
        let owners = self.services[service].owners.iter();
        for &slice in owners.flat_map(|&owner| &self.slices.owners[owner].slices) {
            if slice == except {
                continue;
            }
            for family in Family::ALL {
                for point in &self.slices.slab[slice].points[side(family)] {
                    let (was, is) = (point.counts(!any_ready), point.counts(any_ready));
                    if was != is {
                        let wish = Wish { node: point.node(), family, addr: point.addr, service };
                        changes.push((wish, is));
                    }
                }
            }
        }
    }
}

/// Walks along two sorted lists; a point that is in both is given with both its versions.
fn merge(old: &[Point], new: &[Point], mut each: impl FnMut(Option<Point>, Option<Point>)) {
    let (mut old, mut new) = (old.iter().copied().peekable(), new.iter().copied().peekable());
    loop {
        let order = match (old.peek(), new.peek()) {
            (None, None) => return,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(old), Some(new)) => old.key().cmp(&new.key()),
        };
        let was = if order == Ordering::Greater { None } else { old.next() };
        let is = if order == Ordering::Less { None } else { new.next() };
        each(was, is);
    }
}
