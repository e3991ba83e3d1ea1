//! Services of others in our gateway: what they register and bind, and that it stays.

use core::time::Duration;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use sluice_cloud::Tamper;
use sluice_model::azure::{
    AddressUpdate, ArmId, Direction, LoadBalancerBody, NatGatewayBody, PublicIpBody, Registration,
};
use sluice_model::call::{Body, Request};
use sluice_model::{Family, Uid};

use super::{World, foreign_tags};
use crate::names::{Invariant, Violation};

/// A binding of this age is in every listing that the controller may still use.
const KNOWN_AFTER: Duration = Duration::from_secs(60);

/// A binding of this age is in every listing on which a location may be replaced, which is at most 30 s old; the
/// request may be held for 5 s, and takes a moment to arrive.
const LISTED_AFTER: Duration = Duration::from_secs(37);

impl World {
    /// Registers a load balancer or NAT gateway of others with our gateway; says whether that was possible.
    pub(super) fn register_for_others(&mut self, name: &Arc<str>, carrier: &ArmId, inbound: bool) -> bool {
        let registration = Registration {
            name: Arc::clone(name),
            direction: if inbound { Direction::Inbound } else { Direction::Outbound },
            is_default: false,
            pools: inbound.then(|| carrier.child("backendAddressPools", name)).into_iter().collect(),
            nat_gateway: (!inbound).then(|| carrier.clone()),
        };
        let gateway = self.scope.gateway_id();
        let registered = self.cloud.tamper(self.now, Tamper::PutRegistration { gateway, registration });
        let answer = registered.status;
        self.trace.world(self.now, || format!("somebody registers {name}: {answer}"));
        answer == 200
    }

    /// Binds an address to a service of others, which is made and registered first if need be.
    pub(super) fn others_bind(&mut self, name: &Arc<str>, location: IpAddr, address: IpAddr) {
        let gateway = self.scope.gateway_id();
        if self.cloud.state().registration(&gateway, name).is_none() {
            let ip = self.scope.resource("publicIPAddresses", &format!("{name}-theirs"));
            let tags = foreign_tags();
            self.is_made(ip.clone(), Body::PublicIp(PublicIpBody { family: Family::V4, tags: tags.clone() }));
            let inbound = Uid::parse(name).is_ok();
            let (kind, body) = if inbound {
                (
                    "loadBalancers",
                    Body::LoadBalancer(LoadBalancerBody { public_ip: ip, rules: Vec::new(), tags }),
                )
            } else {
                let gateway = Some(gateway.clone());
                let nat = NatGatewayBody { gateway, public_ips: vec![ip], public_ips_v6: Vec::new(), tags };
                ("natGateways", Body::NatGateway(nat))
            };
            let carrier = self.scope.resource(kind, name);
            self.is_made(carrier.clone(), body);
            self.register_for_others(name, &carrier, inbound);
        }
        let here = self.cloud.state().locations(&gateway).find(|it| it.location == location);
        let entry = here.and_then(|it| it.addresses.into_iter().find(|it| it.address == address));
        let services = entry.map(|it| it.services).unwrap_or_default();
        self.bind_name(name, location, address, services);
    }

    /// Adds the name of a service of others to an entry.
    fn bind_name(&mut self, name: &Arc<str>, location: IpAddr, address: IpAddr, mut services: Vec<Arc<str>>) {
        if services.contains(name) {
            return;
        }
        services.push(Arc::clone(name));
        let gateway = self.scope.gateway_id();
        let change = Tamper::AddAddress { gateway, location, address, services };
        if self.cloud.tamper(self.now, change).status == 200 {
            self.trace.world(self.now, || format!("somebody binds {address} at {location} to {name}"));
            self.foreign_addresses.insert((location, address, Arc::clone(name)), self.now);
        }
    }

    /// A service of others that is registered already binds more addresses.
    pub(super) fn bind_again_for_others(&mut self) -> bool {
        let names: BTreeSet<Arc<str>> =
            self.foreign_addresses.keys().map(|(_, _, name)| Arc::clone(name)).collect();
        let names: Vec<Arc<str>> = names.into_iter().filter(|name| self.is_of_others(name)).collect();
        let Some(name) = self.chance.pick(&names).cloned() else { return false };
        self.bind_for_others(&name);
        true
    }

    /// Binds addresses to a service of others: of its own, on nodes of the cluster, or such as are bound already.
    pub(super) fn bind_for_others(&mut self, name: &Arc<str>) {
        let nodes = self.cluster.nodes().flat_map(|node| node.body.ips.clone());
        let mut locations: Vec<IpAddr> = nodes
            .filter_map(|text| sluice_model::address::parse_ip(&text).ok())
            .filter(|ip| Family::of(*ip) == Family::V4)
            .collect();
        locations.push(IpAddr::from([10, 0, 0, 78]));
        let gateway = self.scope.gateway_id();
        for number in 1..=2 {
            let state = self.cloud.state();
            let bound: Vec<(IpAddr, AddressUpdate)> = state
                .locations(&gateway)
                .flat_map(|it| it.addresses.into_iter().map(move |entry| (it.location, entry)))
                .filter(|(location, entry)| {
                    Family::of(*location) == Family::V4 && !entry.services.contains(name)
                })
                .collect();
            let shared = self.chance.pick(&bound).cloned().filter(|_| self.chance.chance(500));
            let (location, address, services) = match shared {
                Some((location, entry)) => {
                    // What we have there and do not know of yet costs a write more.
                    self.destroyed += 2;
                    (location, entry.address, entry.services)
                }
                None => {
                    let Some(location) = self.chance.pick(&locations).copied() else { return };
                    let octet = u8::try_from(self.foreigners * 2 + number).unwrap_or(u8::MAX);
                    (location, IpAddr::from([10, 244, 99, octet]), Vec::new())
                }
            };
            self.bind_name(name, location, address, services);
        }
    }

    /// Whether a registration refers to an unmanaged load balancer or NAT gateway.
    pub(crate) fn is_of_others(&self, name: &str) -> bool {
        let state = self.cloud.state();
        let Some(registration) = state.registration(&self.scope.gateway_id(), name) else { return false };
        let lb = registration.pools.iter().filter_map(|pool| {
            state.load_balancers.get(&pool.parent("loadBalancers")?).map(|lb| &lb.meta.tags)
        });
        let nat = registration.nat_gateway.iter().filter_map(|id| state.nat_gateways.get(id));
        lb.chain(nat.map(|nat| &nat.meta.tags)).any(|tags| !self.scope.owns(tags))
    }

    /// The addresses that egresses of others have, which no egress of ours gets.
    pub(crate) fn held_by_others(&self) -> BTreeSet<(IpAddr, IpAddr)> {
        let state = self.cloud.state();
        let gateway = self.scope.gateway_id();
        let is_egress = |name: &Arc<str>| {
            let registration = state.registration(&gateway, name);
            registration.is_some_and(|it| it.direction == Direction::Outbound) && self.is_of_others(name)
        };
        let entries =
            state.locations(&gateway).flat_map(|it| it.addresses.into_iter().map(move |e| (it.location, e)));
        entries
            .filter(|(_, entry)| entry.services.iter().any(is_egress))
            .map(|(location, entry)| (location, entry.address))
            .collect()
    }

    /// **S1** for addresses: no request removes the name of an unmanaged service from an address.
    ///
    /// A name counts if Azure has told the sender, or if the sender had to look and would have seen it: it stands
    /// beside a name of others that Azure has told it, or the request replaces or empties a whole location. Excused:
    /// what arrives from a dead sender.
    pub(super) fn others_keep_their_addresses(
        &self,
        slot: usize,
        request: &Request,
        late: bool,
    ) -> Result<(), Violation> {
        let Body::Locations(updates) = &request.body else { return Ok(()) };
        let gateway = self.scope.gateway_id();
        for ((location, address, name), since) in self.foreign_addresses.iter().filter(|_| !late) {
            let Some(update) = updates.iter().find(|update| update.location == *location) else { continue };
            let sent = update.addresses.iter().find(|it| it.address == *address);
            let mut there = self.cloud.state().locations(&gateway).filter(|it| it.location == *location);
            let there = there.find_map(|it| it.addresses.into_iter().find(|it| it.address == *address));
            let Some(there) = there.filter(|it| it.services.contains(name) && self.is_of_others(name)) else {
                continue;
            };
            let told = |name: &str| self.judge.is_told(slot, name, (*location, *address));
            let is_old = self.now > *since + KNOWN_AFTER;
            let taken = match sent {
                Some(entry) if entry.services.contains(name) => false,
                Some(_) => {
                    // A managed load balancer that has lost its tags looks like one of others, and is none.
                    let bound_by_others = |other: &Arc<str>| {
                        self.foreign_addresses.contains_key(&(*location, *address, Arc::clone(other)))
                    };
                    let mut others = there.services.iter().filter(|other| bound_by_others(other));
                    let beside = others.any(|other| self.is_of_others(other) && told(other));
                    told(name) || is_old && beside
                }
                None if update.full || update.addresses.is_empty() => {
                    told(name) || self.now > *since + LISTED_AFTER
                }
                None => false,
            };
            if taken {
                let text = format!("{address} at {location} is removed from {name}, which is unmanaged");
                return Err(Violation::of(Invariant::S1, text));
            }
        }
        Ok(())
    }
}
