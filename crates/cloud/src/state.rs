//! What there is in the cloud.
//!
//! Everything can be read by whoever judges the truth, and is written in this crate only. Two counts that
//! would be slow to take anew are kept beside the lists they follow from, each in one place.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::IpAddr;
use core::ops::Bound;

use sluice_model::azure::{
    AddressUpdate, ArmId, ETag, Gateway, LoadBalancer, Location, Meta, NatGateway, Provisioning, PublicIp,
    Registration, Subnet,
};

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
}

/// What a service gateway knows.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Contents {
    /// The registered services, by name in lower case.
    registrations: BTreeMap<Arc<str>, Registration>,
    /// The addresses with their services, by location. No set and no location is empty.
    locations: BTreeMap<IpAddr, BTreeMap<IpAddr, BTreeSet<Arc<str>>>>,
    /// How many addresses each service has.
    mapped: BTreeMap<Arc<str>, usize>,
    /// How many registrations name each load balancer or NAT gateway.
    carriers: BTreeMap<ArmId, usize>,
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

    /// Whether any gateway has this load balancer or NAT gateway in a registration.
    pub fn is_registered(&self, carrier: &ArmId) -> bool {
        self.contents.values().any(|contents| contents.carriers.contains_key(carrier))
    }

    /// Every reference there is: who names whom. Registrations count as their gateway's.
    pub fn references(&self) -> impl Iterator<Item = (&ArmId, &ArmId)> {
        let frontends =
            self.load_balancers.iter().flat_map(|(id, it)| it.public_ip.iter().map(move |ip| (id, ip)));
        let nat_gateways = self.nat_gateways.iter().flat_map(|(id, it)| {
            let named = it.public_ips.iter().chain(&it.public_ips_v6).chain(&it.gateway);
            named.map(move |target| (id, target))
        });
        let subnets =
            self.subnets.iter().flat_map(|(id, it)| it.gateway.iter().map(move |gateway| (id, gateway)));
        let gateways = (self.gateways.iter())
            .flat_map(|(id, it)| [(id, &it.virtual_network), (id, &it.route_target_subnet)]);
        let carriers =
            self.contents.iter().flat_map(|(id, it)| it.carriers.keys().map(move |carrier| (id, carrier)));
        frontends.chain(nat_gateways).chain(subnets).chain(gateways).chain(carriers)
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

    pub(crate) fn set_provisioning(&mut self, id: &ArmId, provisioning: Provisioning) {
        if let Some(meta) = self.meta_mut(id) {
            meta.provisioning = provisioning;
        }
    }

    pub(crate) fn etag(&self, id: &ArmId) -> Option<&ETag> {
        let meta = (self.public_ips.get(id).map(|it| &it.meta))
            .or_else(|| self.load_balancers.get(id).map(|it| &it.meta))
            .or_else(|| self.nat_gateways.get(id).map(|it| &it.meta))
            .or_else(|| self.gateways.get(id).map(|it| &it.meta));
        meta.map(|meta| &meta.etag)
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

impl Contents {
    /// The registered services, by name.
    pub fn registrations(&self) -> impl Iterator<Item = &Registration> {
        self.registrations.values()
    }

    /// One registered service; case does not matter.
    pub fn registration(&self, name: &str) -> Option<&Registration> {
        self.registrations.get(&lower(name))
    }

    /// The locations, by address.
    pub fn locations(&self) -> impl Iterator<Item = Location> {
        self.locations_after(None)
    }

    /// The registered services whose names come after this one.
    pub(crate) fn registrations_after(&self, name: Option<&str>) -> impl Iterator<Item = &Registration> {
        let from = name.map_or(Bound::Unbounded, |name| Bound::Excluded(lower(name)));
        self.registrations.range((from, Bound::Unbounded)).map(|(_, registration)| registration)
    }

    /// The locations that come after this one.
    pub(crate) fn locations_after(&self, location: Option<IpAddr>) -> impl Iterator<Item = Location> {
        let from = location.map_or(Bound::Unbounded, Bound::Excluded);
        self.locations.range((from, Bound::Unbounded)).map(|(&location, addresses)| Location {
            location,
            addresses: (addresses.iter())
                .map(|(&address, services)| AddressUpdate {
                    address,
                    services: services.iter().cloned().collect(),
                })
                .collect(),
        })
    }

    /// How many addresses name this service.
    pub fn mapped(&self, service: &str) -> usize {
        self.mapped.get(&lower(service)).copied().unwrap_or(0)
    }

    /// The services of one address at one location.
    pub fn services_of(&self, location: IpAddr, address: IpAddr) -> Vec<Arc<str>> {
        let services = self.locations.get(&location).and_then(|addresses| addresses.get(&address));
        services.into_iter().flatten().cloned().collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.registrations.is_empty() && self.locations.is_empty()
    }

    /// Writes a registration, or takes it away.
    pub(crate) fn register(&mut self, name: &str, registration: Option<Registration>) {
        let name = lower(name);
        let old = match registration {
            Some(new) => {
                for carrier in carriers(&new) {
                    *self.carriers.entry(carrier).or_default() += 1;
                }
                self.registrations.insert(name, new)
            }
            None => self.registrations.remove(&name),
        };
        for carrier in old.iter().flat_map(carriers) {
            count_down(&mut self.carriers, &carrier);
        }
    }

    /// Writes the services of one address; none of them unbinds it.
    pub(crate) fn bind<'a>(
        &mut self,
        location: IpAddr,
        address: IpAddr,
        services: impl Iterator<Item = &'a Arc<str>>,
    ) {
        let new: BTreeSet<Arc<str>> = services.map(|service| lower(service)).collect();
        for service in &new {
            *self.mapped.entry(Arc::clone(service)).or_default() += 1;
        }
        let addresses = self.locations.entry(location).or_default();
        let old = if new.is_empty() { addresses.remove(&address) } else { addresses.insert(address, new) };
        if addresses.is_empty() {
            self.locations.remove(&location);
        }
        for service in old.iter().flatten() {
            count_down(&mut self.mapped, service);
        }
    }

    /// Takes a service off all addresses.
    pub(crate) fn unmap(&mut self, service: &str) {
        let service = lower(service);
        let holds = |services: &BTreeSet<Arc<str>>| services.contains(&service);
        let bound: Vec<(IpAddr, IpAddr)> = (self.locations.iter())
            .flat_map(|(&location, all)| all.iter().map(move |(&address, it)| (location, address, it)))
            .filter(|(_, _, services)| holds(services))
            .map(|(location, address, _)| (location, address))
            .collect();
        for (location, address) in bound {
            let kept = self.services_of(location, address);
            self.bind(location, address, kept.iter().filter(|name| **name != service));
        }
    }

    /// Clears the registrations that name a load balancer or NAT gateway.
    pub(crate) fn forget_carrier(&mut self, carrier: &ArmId) {
        let named: Vec<Registration> = (self.registrations.values())
            .filter(|registration| carriers(registration).any(|named| named == *carrier))
            .cloned()
            .collect();
        for mut registration in named {
            registration.pools.retain(|pool| pool.parent("loadBalancers").as_ref() != Some(carrier));
            registration.nat_gateway.take_if(|nat_gateway| nat_gateway == carrier);
            let name = Arc::clone(&registration.name);
            self.register(&name, Some(registration));
        }
    }

    pub(crate) fn addresses_at(&self, location: IpAddr) -> Vec<IpAddr> {
        self.locations.get(&location).into_iter().flat_map(|addresses| addresses.keys().copied()).collect()
    }
}

/// The load balancers and the NAT gateway that a registration names.
fn carriers(registration: &Registration) -> impl Iterator<Item = ArmId> {
    let pools = registration.pools.iter().filter_map(|pool| pool.parent("loadBalancers"));
    pools.chain(registration.nat_gateway.clone())
}

fn count_down<K: Ord + Clone>(counts: &mut BTreeMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count = count.saturating_sub(1);
        if *count == 0 {
            counts.remove(key);
        }
    }
}

/// Names of services differ by everything but case.
pub(crate) fn lower(name: &str) -> Arc<str> {
    name.to_ascii_lowercase().into()
}
