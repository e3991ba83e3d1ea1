//! What there is in the cloud.
//!
//! Everything can be read by whoever judges the truth, and is written in this crate only. Resources go in
//! and out through [`State::write`] and registrations through [`State::register`], which keep account of
//! who names whom and of how many there are: nobody has to look through everything to know whether one
//! resource is in use or one more is allowed.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Bound;

use sluice_model::azure::{
    ArmId, ETag, Gateway, LoadBalancer, Location, Meta, NatGateway, Provisioning, PublicIp, Registration,
    Subnet,
};

use crate::contents::{Contents, count_down, lower};
use crate::place::{Kind, lies_in};

/// What there is in the cloud.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct State {
    /// The resource groups.
    pub groups: BTreeSet<ArmId>,
    /// The virtual networks.
    pub virtual_networks: BTreeMap<ArmId, ETag>,
    /// Their subnets.
    pub subnets: BTreeMap<ArmId, Subnet>,
    /// The public IPs.
    pub public_ips: BTreeMap<ArmId, PublicIp>,
    /// The load balancers.
    pub load_balancers: BTreeMap<ArmId, LoadBalancer>,
    /// The NAT gateways.
    pub nat_gateways: BTreeMap<ArmId, NatGateway>,
    /// The service gateways.
    pub gateways: BTreeMap<ArmId, Gateway>,
    /// What each service gateway knows.
    pub contents: BTreeMap<ArmId, Contents>,
    /// Who names each resource or backend pool, and how often.
    users: BTreeMap<ArmId, BTreeMap<ArmId, usize>>,
    /// How many there are of a kind in a subscription.
    counts: BTreeMap<(Kind, Arc<str>), usize>,
    /// The networks and subnets that are not `Succeeded`; they have no [`Meta`] to say it in.
    unsettled: BTreeMap<ArmId, Provisioning>,
}

/// What goes in and out through [`State::write`].
pub(crate) trait Stored: Sized {
    /// Under which it is counted; subnets are not.
    const KIND: Option<Kind>;
    fn all(state: &mut State) -> &mut BTreeMap<ArmId, Self>;
    /// What it names.
    fn targets(&self) -> Vec<ArmId>;
}

impl Stored for PublicIp {
    const KIND: Option<Kind> = Some(Kind::PublicIp);
    fn all(state: &mut State) -> &mut BTreeMap<ArmId, PublicIp> {
        &mut state.public_ips
    }
    fn targets(&self) -> Vec<ArmId> {
        Vec::new()
    }
}

impl Stored for LoadBalancer {
    const KIND: Option<Kind> = Some(Kind::LoadBalancer);
    fn all(state: &mut State) -> &mut BTreeMap<ArmId, LoadBalancer> {
        &mut state.load_balancers
    }
    fn targets(&self) -> Vec<ArmId> {
        self.public_ip.iter().cloned().collect()
    }
}

impl Stored for NatGateway {
    const KIND: Option<Kind> = Some(Kind::NatGateway);
    fn all(state: &mut State) -> &mut BTreeMap<ArmId, NatGateway> {
        &mut state.nat_gateways
    }
    fn targets(&self) -> Vec<ArmId> {
        self.public_ips.iter().chain(&self.public_ips_v6).chain(&self.gateway).cloned().collect()
    }
}

impl Stored for Gateway {
    const KIND: Option<Kind> = Some(Kind::Gateway);
    fn all(state: &mut State) -> &mut BTreeMap<ArmId, Gateway> {
        &mut state.gateways
    }
    fn targets(&self) -> Vec<ArmId> {
        [&self.virtual_network, &self.route_target_subnet].into_iter().cloned().collect()
    }
}

impl Stored for Subnet {
    const KIND: Option<Kind> = None;
    fn all(state: &mut State) -> &mut BTreeMap<ArmId, Subnet> {
        &mut state.subnets
    }
    fn targets(&self) -> Vec<ArmId> {
        self.gateway.iter().cloned().collect()
    }
}

impl State {
    /// The services that a gateway has registered, by name.
    pub fn registrations(&self, gateway: &ArmId) -> impl Iterator<Item = &Registration> {
        self.contents.get(gateway).into_iter().flat_map(Contents::registrations)
    }

    /// One registered service.
    pub fn registration(&self, gateway: &ArmId, name: &str) -> Option<&Registration> {
        self.contents.get(gateway)?.registration(name)
    }

    /// The locations of a gateway, by address.
    pub fn locations(&self, gateway: &ArmId) -> impl Iterator<Item = Location> {
        self.contents.get(gateway).into_iter().flat_map(Contents::locations)
    }

    /// How many addresses of a gateway name this service.
    pub fn mapped(&self, gateway: &ArmId, service: &str) -> usize {
        self.contents.get(gateway).map_or(0, |contents| contents.mapped(service))
    }

    /// Whether any gateway has this load balancer, backend pool or NAT gateway in a registration.
    pub fn is_registered(&self, carrier: &ArmId) -> bool {
        // Nothing but a registration names any of them.
        self.users.contains_key(carrier)
    }

    /// Who names this resource or backend pool. Registrations count as their gateway's.
    pub fn users_of(&self, target: &ArmId) -> impl Iterator<Item = &ArmId> {
        self.users.get(target).into_iter().flat_map(BTreeMap::keys)
    }

    /// Every reference from one resource to another, read off the resources themselves: who names whom.
    pub fn references(&self) -> impl Iterator<Item = (ArmId, ArmId)> {
        fn of<T: Stored>(all: &BTreeMap<ArmId, T>) -> impl Iterator<Item = (ArmId, ArmId)> {
            all.iter().flat_map(|(id, it)| it.targets().into_iter().map(move |target| (id.clone(), target)))
        }
        let carriers = self.contents.iter().flat_map(|(gateway, contents)| {
            contents.registrations().flat_map(carriers).map(move |carrier| (gateway.clone(), carrier))
        });
        of(&self.load_balancers)
            .chain(of(&self.nat_gateways))
            .chain(of(&self.subnets))
            .chain(of(&self.gateways))
            .chain(carriers)
    }

    /// How many of a kind there are in a subscription.
    pub(crate) fn count(&self, kind: Kind, subscription: &str) -> usize {
        self.counts.get(&(kind, lower(subscription))).copied().unwrap_or(0)
    }

    /// Writes a resource, or takes it away; hands out the one before.
    pub(crate) fn write<T: Stored>(&mut self, id: &ArmId, new: Option<T>) -> Option<T> {
        let is_there = new.is_some();
        self.link(id, new.iter().flat_map(T::targets));
        let old = match new {
            Some(new) => T::all(self).insert(id.clone(), new),
            None => T::all(self).remove(id),
        };
        self.unlink(id, old.iter().flat_map(T::targets));
        if let Some(kind) = T::KIND {
            self.tally(kind, id, old.is_some(), is_there);
        } else if !is_there {
            self.unsettled.remove(id);
        }
        old
    }

    /// Writes a virtual network, or takes it away; its subnets are another matter.
    pub(crate) fn write_network(&mut self, id: &ArmId, etag: Option<ETag>) -> Option<ETag> {
        let is_there = etag.is_some();
        let old = match etag {
            Some(etag) => self.virtual_networks.insert(id.clone(), etag),
            None => {
                self.unsettled.remove(id);
                self.virtual_networks.remove(id)
            }
        };
        self.tally(Kind::VirtualNetwork, id, old.is_some(), is_there);
        old
    }

    /// Writes a registration, or takes it away.
    pub(crate) fn register(&mut self, gateway: &ArmId, name: &str, registration: Option<Registration>) {
        let Some(contents) = self.contents.get_mut(gateway) else { return };
        let comes: Vec<ArmId> = registration.iter().flat_map(named).collect();
        let old = contents.register(name, registration);
        self.link(gateway, comes.into_iter());
        self.unlink(gateway, old.iter().flat_map(named));
    }

    /// Clears the registrations that name a load balancer or NAT gateway.
    pub(crate) fn forget_carrier(&mut self, carrier: &ArmId) {
        let gateways: Vec<ArmId> = self.users_of(carrier).cloned().collect();
        for gateway in &gateways {
            let names_it = |it: &&Registration| carriers(it).any(|named| named == *carrier);
            let found: Vec<Registration> = self.registrations(gateway).filter(names_it).cloned().collect();
            for mut registration in found {
                registration.pools.retain(|pool| pool.parent("loadBalancers").as_ref() != Some(carrier));
                registration.nat_gateway.take_if(|nat_gateway| nat_gateway == carrier);
                let name = Arc::clone(&registration.name);
                self.register(gateway, &name, Some(registration));
            }
        }
    }

    /// Takes away all that a gateway knows.
    pub(crate) fn forget_contents(&mut self, gateway: &ArmId) {
        if let Some(contents) = self.contents.remove(gateway) {
            self.unlink(gateway, contents.registrations().flat_map(named));
        }
    }

    fn link(&mut self, by: &ArmId, targets: impl Iterator<Item = ArmId>) {
        for target in targets {
            *self.users.entry(target).or_default().entry(by.clone()).or_default() += 1;
        }
    }

    fn unlink(&mut self, by: &ArmId, targets: impl Iterator<Item = ArmId>) {
        for target in targets {
            let Some(users) = self.users.get_mut(&target) else { continue };
            count_down(users, by);
            if users.is_empty() {
                self.users.remove(&target);
            }
        }
    }

    fn tally(&mut self, kind: Kind, id: &ArmId, was_there: bool, is_there: bool) {
        let key = (kind, lower(id.segment("subscriptions").unwrap_or("")));
        match (was_there, is_there) {
            (false, true) => *self.counts.entry(key).or_default() += 1,
            (true, false) => count_down(&mut self.counts, &key),
            _ => {}
        }
    }

    /// The ids of all that lies in a group.
    pub(crate) fn inside(&self, group: &ArmId) -> Vec<ArmId> {
        let mut ids = Vec::new();
        ids.extend(below(&self.gateways, group).cloned());
        ids.extend(below(&self.load_balancers, group).cloned());
        ids.extend(below(&self.nat_gateways, group).cloned());
        ids.extend(below(&self.public_ips, group).cloned());
        ids.extend(below(&self.subnets, group).cloned());
        ids.extend(below(&self.virtual_networks, group).cloned());
        ids
    }

    /// The ids of the subnets of a network.
    pub(crate) fn subnets_of(&self, network: &ArmId) -> impl Iterator<Item = &ArmId> {
        below(&self.subnets, network)
    }

    /// What every resource has, of whatever kind it is. Networks, subnets and groups have none of it.
    pub(crate) fn meta_mut(&mut self, id: &ArmId) -> Option<&mut Meta> {
        if let Some(it) = self.public_ips.get_mut(id) {
            return Some(&mut it.meta);
        }
        if let Some(it) = self.load_balancers.get_mut(id) {
            return Some(&mut it.meta);
        }
        if let Some(it) = self.nat_gateways.get_mut(id) {
            return Some(&mut it.meta);
        }
        self.gateways.get_mut(id).map(|it| &mut it.meta)
    }

    fn meta(&self, id: &ArmId) -> Option<&Meta> {
        (self.public_ips.get(id).map(|it| &it.meta))
            .or_else(|| self.load_balancers.get(id).map(|it| &it.meta))
            .or_else(|| self.nat_gateways.get(id).map(|it| &it.meta))
            .or_else(|| self.gateways.get(id).map(|it| &it.meta))
    }

    /// Whether the last write of a resource, network or subnet has come through; `None` if it is not there.
    pub fn provisioning_of(&self, id: &ArmId) -> Option<Provisioning> {
        if let Some(meta) = self.meta(id) {
            return Some(meta.provisioning);
        }
        let is_there = self.subnets.contains_key(id) || self.virtual_networks.contains_key(id);
        is_there.then(|| self.unsettled.get(id).copied().unwrap_or_default())
    }

    pub(crate) fn set_provisioning(&mut self, id: &ArmId, provisioning: Provisioning) {
        if let Some(meta) = self.meta_mut(id) {
            meta.provisioning = provisioning;
        } else if provisioning == Provisioning::Succeeded {
            self.unsettled.remove(id);
        } else if self.subnets.contains_key(id) || self.virtual_networks.contains_key(id) {
            self.unsettled.insert(id.clone(), provisioning);
        }
    }

    pub(crate) fn etag(&self, id: &ArmId) -> Option<&ETag> {
        (self.meta(id).map(|meta| &meta.etag))
            .or_else(|| self.subnets.get(id).map(|it| &it.etag))
            .or_else(|| self.virtual_networks.get(id))
    }

    /// Writes down who uses a public IP; `None` when nobody does any more.
    pub(crate) fn set_user(&mut self, public_ip: &ArmId, user: Option<ArmId>) {
        if let Some(it) = self.public_ips.get_mut(public_ip) {
            it.used_by = user;
        }
    }
}

/// The ids below a scope; of one kind they are all in a row.
fn below<'a, T>(all: &'a BTreeMap<ArmId, T>, scope: &ArmId) -> impl Iterator<Item = &'a ArmId> {
    // With the slash, so that what only begins alike does not stand in between.
    let from = Bound::Included(ArmId::new(format!("{scope}/")));
    let scope = scope.clone();
    all.range((from, Bound::Unbounded)).map(|(id, _)| id).take_while(move |id| lies_in(id, &scope))
}

/// The load balancers and the NAT gateway that a registration names.
fn carriers(registration: &Registration) -> impl Iterator<Item = ArmId> {
    let pools = registration.pools.iter().filter_map(|pool| pool.parent("loadBalancers"));
    pools.chain(registration.nat_gateway.clone())
}

/// The same, and the backend pools themselves.
fn named(registration: &Registration) -> impl Iterator<Item = ArmId> {
    carriers(registration).chain(registration.pools.iter().cloned())
}
