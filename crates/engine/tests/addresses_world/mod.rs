//! A small cluster and a small Azure, kept the naive way, beside the real thing.

#![allow(dead_code, reason = "each test file uses a part of it")]

pub(crate) mod scene;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use sluice_engine::addresses::{Addresses, Limits, Mode, OwnerKey, ServiceIndex, Trust};
use sluice_model::address::is_routable;
use sluice_model::azure::{AddressUpdate, Location, LocationUpdate};
use sluice_model::kube::{NodeObject, Phase, PodObject, Slice, SliceOwner};
use sluice_model::seeded::Seeded;
use sluice_model::{Failure, FailureClass, Family, ObjectName, Time, Uid};

/// What Azure has, or should have: (location, address) and the identities.
pub(crate) type Mappings = BTreeMap<(IpAddr, IpAddr), BTreeSet<String>>;

/// How a request ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    Success,
    Transient,
    Throttled,
    UnknownApplied,
    UnknownLost,
}

/// Everything at once.
pub(crate) struct World {
    pub(crate) addresses: Addresses,
    pub(crate) limits: Limits,
    pub(crate) now: Time,
    pub(crate) services: Vec<(String, ServiceIndex, Mode)>,
    pub(crate) binds: BTreeMap<OwnerKey, usize>,
    pub(crate) slices: BTreeMap<ObjectName, Slice>,
    pub(crate) pods: BTreeMap<Uid, (PodObject, usize)>,
    pub(crate) nodes: BTreeMap<Arc<str>, NodeObject>,
    pub(crate) azure: Mappings,
    /// Azure refuses to bind these addresses.
    pub(crate) poison: BTreeSet<IpAddr>,
    /// Azure refuses to touch these addresses one by one, even to unbind them.
    pub(crate) sticky: BTreeSet<IpAddr>,
    /// Azure refuses to bind an address at two locations, or to move it in one request.
    pub(crate) one_location_each: bool,
    /// Azure does not know these services.
    pub(crate) unregistered: BTreeSet<String>,
    pub(crate) in_flight: Option<Vec<LocationUpdate>>,
    pub(crate) calls: usize,
    /// Somebody else wrote to Azure, so we cannot know what is there.
    pub(crate) tampered: bool,
}

pub(crate) fn ip(text: &str) -> IpAddr {
    sluice_model::address::parse_ip(text).expect("tests write addresses")
}

pub(crate) fn failure(class: FailureClass) -> Failure {
    Failure::of(class, "Test", "a failure of the test")
}

impl World {
    pub(crate) fn new(limits: Limits, identities: &[&str]) -> World {
        World::with_bug(limits, identities, Seeded::NONE)
    }

    pub(crate) fn with_bug(limits: Limits, identities: &[&str], seeded: Seeded) -> World {
        let mut addresses = Addresses::new(limits, 7, seeded);
        let services =
            identities.iter().map(|&name| (name.to_string(), addresses.open(name), Mode::Draining)).collect();
        World {
            addresses,
            limits,
            now: Time::from_millis(1_000_000),
            services,
            binds: BTreeMap::new(),
            slices: BTreeMap::new(),
            pods: BTreeMap::new(),
            nodes: BTreeMap::new(),
            azure: Mappings::new(),
            poison: BTreeSet::new(),
            sticky: BTreeSet::new(),
            one_location_each: false,
            unregistered: BTreeSet::new(),
            in_flight: None,
            calls: 0,
            tampered: false,
        }
    }

    pub(crate) fn index(&self, service: usize) -> ServiceIndex {
        self.services[service].1
    }

    pub(crate) fn wait(&mut self, span: Duration) {
        self.now = self.now + span;
    }

    pub(crate) fn set_ready(&mut self, service: usize, ready: bool) {
        self.set_mode(service, if ready { Mode::Ready } else { Mode::Draining });
    }

    pub(crate) fn set_mode(&mut self, service: usize, mode: Mode) {
        self.services[service].2 = mode;
        self.addresses.set_mode(self.services[service].1, mode);
    }

    pub(crate) fn close_and_open(&mut self, service: usize) {
        self.addresses.close(self.services[service].1);
        let named = self.binds.values().any(|&bound| bound == service)
            || self.pods.values().any(|&(_, egress)| egress == service);
        let index = self.addresses.open(&self.services[service].0);
        assert!(!named || index == self.services[service].1, "a service that is mentioned keeps its number");
        self.services[service].1 = index;
        // What was still mapped to it was taken for somebody else's; the lifecycle decides again.
        self.set_mode(service, Mode::Draining);
    }

    pub(crate) fn bind(&mut self, owner: OwnerKey, service: Option<usize>) {
        let index = service.map(|service| self.services[service].1);
        self.addresses.bind(owner.clone(), index);
        match service {
            Some(service) => self.binds.insert(owner, service),
            None => self.binds.remove(&owner),
        };
    }

    pub(crate) fn apply_slice(&mut self, slice: Slice) {
        self.addresses.apply_slice(&slice);
        self.slices.insert(slice.name.clone(), slice);
    }

    pub(crate) fn remove_slice(&mut self, name: &ObjectName) {
        self.addresses.remove_slice(name);
        self.slices.remove(name);
    }

    pub(crate) fn apply_pod(&mut self, pod: PodObject, egress: Option<usize>) {
        self.addresses.apply_pod(&pod, egress.map(|service| self.services[service].1));
        match egress {
            Some(egress) if pod.phase != Phase::Finished => self.pods.insert(pod.uid, (pod, egress)),
            _ => self.pods.remove(&pod.uid),
        };
    }

    pub(crate) fn remove_pod(&mut self, uid: Uid) {
        self.addresses.remove_pod(uid);
        self.pods.remove(&uid);
    }

    pub(crate) fn apply_node(&mut self, node: NodeObject) {
        self.addresses.apply_node(&node);
        self.nodes.insert(Arc::clone(&node.name), node);
    }

    pub(crate) fn remove_node(&mut self, name: &str) {
        self.addresses.remove_node(name);
        self.nodes.remove(name);
    }

    /// Where an address on a node belongs, the naive way.
    pub(crate) fn location(&self, node: Option<&str>, family: Family) -> Option<IpAddr> {
        let name = node.filter(|name| !name.is_empty())?;
        let ips: Vec<IpAddr> = match self.nodes.get(name) {
            Some(node) => node.internal_ips.clone(),
            None => {
                let on_it = self.pods.values().filter(|(pod, _)| pod.node.as_deref() == Some(name));
                on_it
                    .flat_map(|(pod, _)| Family::ALL.map(|family| first(&pod.host_ips, family)))
                    .flatten()
                    .collect()
            }
        };
        ips.into_iter().filter(|&ip| is_routable(ip) && Family::of(ip) == family).min()
    }

    /// Everything that should be in Azure, the naive way.
    pub(crate) fn desired(&self) -> Mappings {
        let mut desired = Mappings::new();
        let mut want = |location: Option<IpAddr>, address: IpAddr, service: usize| {
            let (name, _, mode) = &self.services[service];
            if let Some(location) = location
                && *mode == Mode::Ready
            {
                desired.entry((location, address)).or_default().insert(name.clone());
            }
        };
        for service in 0..self.services.len() {
            let own: Vec<_> =
                self.slices.values().filter(|slice| self.owner_of(slice) == Some(service)).collect();
            let endpoints: Vec<_> = own
                .iter()
                .flat_map(|slice| &slice.endpoints)
                .filter(|end| is_routable(end.address))
                .collect();
            let any_ready = endpoints.iter().any(|end| end.ready);
            for end in endpoints {
                if if any_ready { end.ready } else { end.serving && end.terminating } {
                    let location = self.location(end.node.as_deref(), Family::of(end.address));
                    want(location, end.address, service);
                }
            }
        }
        let mut owners: BTreeMap<IpAddr, &(PodObject, usize)> = BTreeMap::new();
        let rank = |(pod, _): &(PodObject, usize)| (!pod.terminating, pod.created, pod.uid);
        for entry in self.pods.values().filter(|(pod, _)| !pod.host_network) {
            for address in Family::ALL.into_iter().filter_map(|family| first(&entry.0.ips, family)) {
                let owner = owners.entry(address).or_insert(entry);
                if rank(entry) > rank(owner) {
                    *owner = entry;
                }
            }
        }
        for (address, (pod, egress)) in owners {
            want(self.location(pod.node.as_deref(), Family::of(address)), address, *egress);
        }
        desired
    }

    fn owner_of(&self, slice: &Slice) -> Option<usize> {
        let key = match &slice.owner {
            SliceOwner::Uid(uid) => OwnerKey::Uid(slice.name.namespace.clone(), *uid),
            SliceOwner::Name(name) => {
                OwnerKey::Name(ObjectName { namespace: slice.name.namespace.clone(), name: name.clone() })
            }
            SliceOwner::Nobody => return None,
        };
        self.binds.get(&key).copied()
    }

    /// Takes the next batch, if there is one, and checks its form.
    pub(crate) fn send(&mut self) -> bool {
        let Some(batch) = self.addresses.next_batch(self.now) else { return false };
        assert!(self.in_flight.is_none(), "two batches in flight");
        self.calls += 1;
        let mut locations = BTreeSet::new();
        let mut count = 0;
        for update in &batch {
            assert!(locations.insert(update.location), "a location twice: {batch:?}");
            let mut addresses = BTreeSet::new();
            for address in &update.addresses {
                assert!(addresses.insert(address.address), "an address twice: {batch:?}");
                assert_eq!(Family::of(address.address), Family::of(update.location), "mixed families");
                let services: BTreeSet<_> = address.services.iter().collect();
                assert_eq!(services.len(), address.services.len(), "a service twice: {batch:?}");
            }
            count += addresses.len();
        }
        assert!(!batch.is_empty(), "an empty batch");
        assert!(count <= self.limits.addresses_max, "too many addresses: {count}");
        self.in_flight = Some(batch);
        true
    }

    /// Ends the batch in flight. Azure refuses what it does not like, whatever end was meant for it.
    pub(crate) fn finish(&mut self, end: End) {
        let Some(batch) = self.in_flight.take() else {
            return self.addresses.finish(self.now, Some(&failure(FailureClass::Unknown)));
        };
        if self.refuses(&batch) {
            return self.addresses.finish(self.now, Some(&failure(FailureClass::Rejected)));
        }
        if matches!(end, End::Success | End::UnknownApplied) {
            apply(&mut self.azure, &batch);
        }
        let failure = match end {
            End::Success => None,
            End::Transient => Some(failure(FailureClass::Transient)),
            End::Throttled => Some(Failure {
                retry_after: Some(Duration::from_secs(7)),
                ..failure(FailureClass::Throttled)
            }),
            End::UnknownApplied | End::UnknownLost => Some(failure(FailureClass::Unknown)),
        };
        self.addresses.finish(self.now, failure.as_ref());
    }

    fn refuses(&self, batch: &[LocationUpdate]) -> bool {
        let each =
            || batch.iter().flat_map(|update| update.addresses.iter().map(move |address| (update, address)));
        let poisoned = each().any(|(update, address)| {
            self.poison.contains(&address.address) && !address.services.is_empty()
                || self.sticky.contains(&address.address) && !update.full
                || address.services.iter().any(|service| self.unregistered.contains(&**service))
        });
        let removed_sticky = batch.iter().any(|update| {
            let here = self.azure.keys().filter(|(location, _)| *location == update.location);
            !update.full
                && update.addresses.is_empty()
                && here.into_iter().any(|(_, ip)| self.sticky.contains(ip))
        });
        let moves = self.one_location_each
            && each().any(|(update, address)| {
                let elsewhere = |(location, ip): &(IpAddr, IpAddr)| {
                    *location != update.location && *ip == address.address
                };
                !address.services.is_empty() && self.azure.keys().any(elsewhere)
            });
        poisoned || removed_sticky || moves
    }

    /// All that Azure has, as a listing shows it.
    pub(crate) fn listing(&self) -> Vec<Location> {
        let mut locations: Vec<Location> = Vec::new();
        for ((location, address), services) in &self.azure {
            let services = services.iter().map(|service| service.as_str().into()).collect();
            let address = AddressUpdate { address: *address, services };
            match locations.last_mut() {
                Some(last) if last.location == *location => last.addresses.push(address),
                _ => locations.push(Location { location: *location, addresses: vec![address] }),
            }
        }
        locations
    }

    pub(crate) fn list(&mut self, first: bool) -> usize {
        let listing = self.listing();
        let trust = if first { Trust::Baseline } else { Trust::Sweep };
        self.addresses.listed(self.now, self.now, &listing, trust)
    }

    /// Checks that nothing is counted wrong, and that the gate never opens too early.
    pub(crate) fn check(&self) {
        if let Err(difference) = self.addresses.recount() {
            panic!("{difference}");
        }
        if self.tampered {
            return;
        }
        for (name, index, _) in &self.services {
            let mapped = self.azure.values().filter(|services| services.contains(name)).count();
            assert!(
                self.addresses.mapped(*index) as usize >= mapped,
                "{name} has {mapped} and the gate says fewer"
            );
        }
    }

    /// Lets everything succeed until there is nothing left to do.
    pub(crate) fn settle(&mut self) {
        self.poison.clear();
        self.sticky.clear();
        self.one_location_each = false;
        self.unregistered.clear();
        self.finish(End::Success);
        for service in 0..self.services.len() {
            if matches!(self.services[service].2, Mode::Frozen | Mode::Waiting) {
                self.set_ready(service, false);
            }
        }
        // Long after the last write, a listing or two show what is really there.
        for _ in 0..3 {
            self.drain(5_000);
            self.wait(Duration::from_secs(600));
            self.list(false);
            for stranger in self.addresses.strangers() {
                self.addresses.set_mode(stranger, Mode::Draining);
            }
        }
        self.drain(5_000);
    }

    /// Sends and succeeds until nothing is left, waiting as told.
    pub(crate) fn drain(&mut self, calls_max: usize) {
        for _ in 0..calls_max {
            if self.send() {
                self.finish(End::Success);
                self.check();
            } else if let Some(at) = self.addresses.wake_at() {
                assert!(at > self.now, "woken for nothing");
                self.now = at;
            } else {
                return;
            }
        }
        panic!("still not done after {calls_max} calls");
    }

    /// Checks that Azure has exactly what is wanted.
    pub(crate) fn check_settled(&self) {
        assert_eq!(self.azure, self.desired());
        let totals = self.addresses.totals();
        assert_eq!((totals.dirty, totals.in_flight, totals.either, totals.quarantined), (0, 0, 0, 0));
        for (name, index, _) in &self.services {
            let mapped = self.azure.values().filter(|services| services.contains(name)).count();
            assert_eq!(self.addresses.mapped(*index) as usize, mapped, "{name}");
            assert_eq!(self.addresses.programmed(*index) as usize, mapped, "{name}");
        }
        self.check();
    }
}

fn first(ips: &[IpAddr], family: Family) -> Option<IpAddr> {
    ips.iter().copied().find(|&ip| is_routable(ip) && Family::of(ip) == family)
}

/// Does to Azure what a request says.
pub(crate) fn apply(azure: &mut Mappings, batch: &[LocationUpdate]) {
    for update in batch {
        if update.full || update.addresses.is_empty() {
            azure.retain(|(location, _), _| *location != update.location);
        }
        for address in &update.addresses {
            let services: BTreeSet<String> =
                address.services.iter().map(|service| service.to_string()).collect();
            if services.is_empty() {
                azure.remove(&(update.location, address.address));
            } else {
                azure.insert((update.location, address.address), services);
            }
        }
    }
}
