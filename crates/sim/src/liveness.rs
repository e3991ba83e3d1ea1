//! The liveness properties L1-L8, judged once faults have stopped.
//!
//! The end of a run has four parts: a probe while one object is in trouble (L7), time to converge
//! (L1-L5), a long quiet stretch without a write (L6), and the count of writes (L8). What must be
//! there is read off the cluster by an oracle that shares no code with the engine; what is there,
//! off Azure's own state.
//!
//! Excused, because history decides and not the objects: a Service whose present spec is refused or
//! whose named port is unresolved keeps whatever it had; a NAT gateway keeps an IPv6 address when
//! the last IPv6 node has gone.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use sluice_engine::DefaultOutbound;
use sluice_model::azure::{ArmId, Provisioning, Tags};
use sluice_model::effect::Listable;
use sluice_model::reason::Reason;
use sluice_model::{EgressName, Family, ServiceKey, Uid};

use crate::cluster::objects::{OUR_FINALIZER, ServiceRecord, Stored, is_tagged_for};
use crate::cluster::oracle::{Desired, Inbound};
use crate::names::{Invariant, Violation};
use crate::world::World;

/// A difference between what must be there and what is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// The property that it breaks if it stays.
    pub property: Invariant,
    /// What differs.
    pub what: String,
}

impl Difference {
    fn of(property: Invariant, what: impl Into<String>) -> Difference {
        Difference { property, what: what.into() }
    }
}

impl From<Difference> for Violation {
    fn from(difference: Difference) -> Violation {
        Violation::of(difference.property, difference.what)
    }
}

/// What must be there now.
pub fn desired(world: &World) -> Desired {
    let gateway = world.scope.gateway_id();
    let live: BTreeSet<Uid> = world
        .cloud
        .state()
        .registrations(&gateway)
        .filter(|registration| !registration.pools.is_empty())
        .filter_map(|registration| Uid::parse(&registration.name).ok())
        .collect();
    world.cluster.desired(&live)
}

/// **L1**, **L2**, **L5**: everything that must be there is, exactly so, and nothing else of ours.
pub fn compare(world: &World) -> Result<(), Difference> {
    let desired = desired(world);
    foundation(world)?;
    for (uid, inbound) in &desired.inbound {
        if let Inbound::Served { family, rules } = inbound
            && !is_blocked(world, *uid)?
        {
            served(world, *uid, *family, rules)?;
        }
    }
    let ipv6_nodes = world.cluster.nodes().any(|node| {
        node.body.ips.iter().any(|ip| sluice_model::address::parse_ip(ip).is_ok_and(|ip| ip.is_ipv6()))
    });
    for egress in desired.outbound.keys() {
        if let Ok(name) = EgressName::parse(egress) {
            outbound(world, &ServiceKey::Outbound(name), ipv6_nodes)?;
        }
    }
    if world.default_outbound() == DefaultOutbound::Ensure {
        outbound(world, &ServiceKey::Outbound(EgressName::default_outbound()), ipv6_nodes)?;
    }
    nothing_else(world, &desired)?;
    nothing_of_rejected_creations(world, &desired)?;
    nothing_left_behind(world)?;
    addresses(world, &desired)?;
    services(world, &desired)
}

/// The gateway is there, sound and claimed, and the subnet attached.
pub fn foundation(world: &World) -> Result<(), Difference> {
    let state = world.cloud.state();
    let id = world.scope.gateway_id();
    let gateway = state.gateways.get(&id);
    let claimed = gateway.is_some_and(|gateway| world.scope.owns(&gateway.meta.tags));
    let sound = gateway.is_some_and(|gateway| gateway.meta.provisioning != Provisioning::Failed);
    let attached = state
        .subnets
        .get(&world.scope.subnet_id())
        .is_some_and(|subnet| subnet.gateway.as_ref() == Some(&id));
    if claimed && sound && attached {
        return Ok(());
    }
    let text = format!("gateway claimed: {claimed}, sound: {sound}, subnet attached: {attached}");
    Err(Difference::of(Invariant::L1, text))
}

/// **L1**, where resources of others have the names that a Service needs: it cannot be served, and says so.
fn is_blocked(world: &World, uid: Uid) -> Result<bool, Difference> {
    if !is_in_the_way(world, uid) {
        return Ok(false);
    }
    let says_so = world.cluster.services().any(|service| {
        service.meta.uid == uid && service.body.conditions.iter().any(|it| it.reason == Reason::Conflict)
    });
    match says_so {
        true => Ok(true),
        false => Err(Difference::of(Invariant::S14, format!("{uid} is in conflict and does not say so"))),
    }
}

/// Whether a Service has a public IP without our tag that no load balancer uses, or a load balancer without our tag
/// that is not registered for it.
pub(crate) fn is_in_the_way(world: &World, uid: Uid) -> bool {
    let (state, scope) = (world.cloud.state(), &world.scope);
    let key = ServiceKey::Inbound(uid);
    let ip = state.public_ips.get(&scope.public_ip_id(&key, Family::V4));
    let lb = state.load_balancers.get(&scope.carrier_id(&key));
    let registration = state.registration(&scope.gateway_id(), &key.identity());
    ip.is_some_and(|ip| ip.used_by.is_none() && !scope.owns(&ip.meta.tags))
        || lb.is_some_and(|lb| !scope.owns(&lb.meta.tags))
            && registration.is_none_or(|it| it.pools.is_empty())
}

fn served(
    world: &World,
    uid: Uid,
    family: Family,
    rules: &[sluice_model::azure::Rule],
) -> Result<(), Difference> {
    let (state, scope) = (world.cloud.state(), &world.scope);
    let key = ServiceKey::Inbound(uid);
    let bad = |what: &str| Err(Difference::of(Invariant::L1, format!("{key}: {what}")));
    let ip_id = scope.public_ip_id(&key, family);
    let Some(ip) = state.public_ips.get(&ip_id) else { return bad("no public IP") };
    let Some(address) = ip.address.filter(|_| ip.family == family) else { return bad("no address") };
    let Some(lb) = state.load_balancers.get(&scope.carrier_id(&key)) else { return bad("no load balancer") };
    if !scope.owns(&lb.meta.tags) || !scope.owns(&ip.meta.tags) && !world.released.contains(&ip_id) {
        return bad("its resources do not carry our tag");
    }
    if lb.meta.provisioning != Provisioning::Succeeded || ip.meta.provisioning != Provisioning::Succeeded {
        return bad("its resources have not come through");
    }
    let mut there = lb.rules.clone();
    there.sort_unstable();
    if lb.edited {
        return bad("its load balancer is edited where no rule shows it");
    }
    if there != rules || lb.public_ip.as_ref() != Some(&ip_id) {
        return bad(&format!("its load balancer has {there:?}, wanted {rules:?}"));
    }
    let pool = scope.pool_id(&key);
    match state.registration(&scope.gateway_id(), &key.identity()) {
        Some(registration) if registration.pools == [pool] => {}
        _ => return bad("not registered with its pool"),
    }
    let Some(service) = world.cluster.services().find(|service| service.meta.uid == uid) else {
        return bad("no such Service");
    };
    if !service.meta.finalizers.contains(OUR_FINALIZER) {
        return bad("our finalizer is not on it");
    }
    if !service.body.ingress.contains(&address) {
        return bad(&format!("its status does not show {address}"));
    }
    Ok(())
}

fn outbound(world: &World, key: &ServiceKey, ipv6_nodes: bool) -> Result<(), Difference> {
    let (state, scope) = (world.cloud.state(), &world.scope);
    let bad = |what: &str| Err(Difference::of(Invariant::L1, format!("{key}: {what}")));
    let id = scope.carrier_id(key);
    let Some(nat) = state.nat_gateways.get(&id) else { return bad("no NAT gateway") };
    let v4 = scope.public_ip_id(key, Family::V4);
    let v6 = scope.public_ip_id(key, Family::V6);
    let has = |id: &ArmId| state.public_ips.get(id).is_some_and(|ip| ip.address.is_some());
    if nat.gateway.as_ref() != Some(&scope.gateway_id()) || nat.public_ips != [v4.clone()] || !has(&v4) {
        return bad("its NAT gateway is not as it should be");
    }
    let v6_fits = nat.public_ips_v6 == [v6.clone()] && has(&v6);
    if ipv6_nodes && !v6_fits {
        return bad("no IPv6 address although there are IPv6 nodes");
    }
    if !scope.owns(&nat.meta.tags) || nat.meta.provisioning != Provisioning::Succeeded {
        return bad("its NAT gateway is not ours or has not come through");
    }
    match state.registration(&scope.gateway_id(), &key.identity()) {
        Some(registration) if registration.nat_gateway.as_ref() == Some(&id) => Ok(()),
        _ => bad("not registered with its NAT gateway"),
    }
}

/// **L2** and **L5**: nothing of ours is left that nobody wants.
fn nothing_else(world: &World, desired: &Desired) -> Result<(), Difference> {
    let (state, scope) = (world.cloud.state(), &world.scope);
    let wanted = |key: &ServiceKey| match key {
        ServiceKey::Inbound(uid) => desired.inbound.contains_key(uid),
        ServiceKey::Outbound(egress) => egress.is_default() || desired.outbound.contains_key(egress.as_str()),
    };
    let left = |kind: Listable, id: &ArmId, tags: &Tags| -> Result<(), Difference> {
        let identity = tags.get(sluice_model::names::IDENTITY_TAG);
        let key = identity.and_then(|identity| ServiceKey::from_identity(identity));
        if !scope.owns(tags) || key.is_some_and(|key| wanted(&key)) {
            return Ok(());
        }
        Err(Difference::of(
            Invariant::L5,
            format!("{} {} is ours and nobody wants it", kind.word(), id.name()),
        ))
    };
    for lb in state.load_balancers.values() {
        left(Listable::LoadBalancers, &lb.meta.id, &lb.meta.tags)?;
    }
    for nat in state.nat_gateways.values() {
        left(Listable::NatGateways, &nat.meta.id, &nat.meta.tags)?;
    }
    for ip in state.public_ips.values() {
        left(Listable::PublicIps, &ip.meta.id, &ip.meta.tags)?;
    }
    for registration in state.registrations(&scope.gateway_id()) {
        let key = ServiceKey::from_identity(&registration.name);
        if !world.is_of_others(&registration.name) && !key.is_some_and(|key| wanted(&key)) {
            let text = format!(
                "{} is registered and nobody wants it (pools {:?})",
                registration.name, registration.pools
            );
            return Err(Difference::of(Invariant::L2, text));
        }
    }
    Ok(())
}

/// **L5**: nothing is left of a Service that was rejected during its creation, as long as it is.
fn nothing_of_rejected_creations(world: &World, desired: &Desired) -> Result<(), Difference> {
    let (state, scope) = (world.cloud.state(), &world.scope);
    for uid in world.rejected_creations() {
        if !matches!(desired.inbound.get(&uid), Some(Inbound::Refused(_))) {
            continue;
        }
        let key = ServiceKey::Inbound(uid);
        let lb = state.load_balancers.get(&scope.carrier_id(&key)).map(|lb| &lb.meta.tags);
        let ip = state.public_ips.get(&scope.public_ip_id(&key, Family::V4)).map(|ip| &ip.meta.tags);
        if lb.into_iter().chain(ip).any(|tags| scope.owns(tags)) {
            let text = format!("{key} was rejected during its creation, and something of it is left");
            return Err(Difference::of(Invariant::L5, text));
        }
    }
    Ok(())
}

/// **L5**: nothing is left of a Service that we have served, whoever made it. Excused: a public IP that somebody
/// released, and a Service that was deleted without our finalizer.
fn nothing_left_behind(world: &World) -> Result<(), Difference> {
    let (state, scope) = (world.cloud.state(), &world.scope);
    let gone = |uid: &Uid| !world.cluster.services().any(|service| service.meta.uid == *uid);
    for uid in world.served().filter(|uid| !world.stripped.contains(uid) && gone(uid)) {
        let key = ServiceKey::Inbound(uid);
        let (lb, ip) = (scope.carrier_id(&key), scope.public_ip_id(&key, Family::V4));
        let left = state.public_ips.get(&ip);
        let ip_left = left.is_some_and(|it| scope.owns(&it.meta.tags) || !world.released.contains(&ip));
        let registered = state.registration(&scope.gateway_id(), &key.identity()).is_some();
        if state.load_balancers.contains_key(&lb) || ip_left || registered {
            let text = format!("{key} was served by us and is deleted, and something of it is left behind");
            return Err(Difference::of(Invariant::L5, text));
        }
    }
    Ok(())
}

/// Every address is mapped exactly where and to what it should be, those of others aside.
fn addresses(world: &World, desired: &Desired) -> Result<(), Difference> {
    let gateway = world.scope.gateway_id();
    let mut actual: BTreeMap<IpAddr, BTreeMap<IpAddr, Vec<Arc<str>>>> = BTreeMap::new();
    for location in world.cloud.state().locations(&gateway) {
        let entries = actual.entry(location.location).or_default();
        for entry in location.addresses {
            let mut services = entry.services;
            services.sort_unstable();
            entries.insert(entry.address, services);
        }
    }
    let mut wanted = desired.locations.clone();
    wanted.values_mut().flat_map(BTreeMap::values_mut).for_each(|services| services.sort_unstable());
    // A Service that is neither served nor live is left as it is; whether addresses are mapped to it is history.
    let mut left_alone = left_alone(world, desired);
    let registered = world.cloud.state().registrations(&gateway).map(|it| Arc::clone(&it.name));
    left_alone.extend(registered.filter(|name| world.is_of_others(name)));
    // No egress of ours gets an address that an egress of others has.
    let held = world.held_by_others();
    let is_egress = |name: &Arc<str>| Uid::parse(name).is_err();
    for side in [&mut actual, &mut wanted] {
        for (location, entries) in side.iter_mut() {
            for (address, services) in entries.iter_mut() {
                let is_held = held.contains(&(*location, *address));
                services.retain(|name| !(left_alone.contains(name) || is_held && is_egress(name)));
            }
            entries.retain(|_, services| !services.is_empty());
        }
        side.retain(|_, entries| !entries.is_empty());
    }
    if actual == wanted {
        return Ok(());
    }
    for (location, entries) in &wanted {
        for (address, services) in entries {
            let there = actual.get(location).and_then(|entries| entries.get(address));
            if there != Some(services) {
                let text = format!("{address}@{location} should be mapped to {services:?}, is to {there:?}");
                return Err(Difference::of(Invariant::L1, text));
            }
        }
    }
    for (location, entries) in &actual {
        for (address, services) in entries {
            if wanted.get(location).and_then(|entries| entries.get(address)).is_none() {
                let text = format!("{address}@{location} is mapped to {services:?} and should not be");
                return Err(Difference::of(Invariant::L1, text));
            }
        }
    }
    Err(Difference::of(Invariant::L1, "locations differ"))
}

/// The identities of Services whose spec is refused or unresolved and that the gateway does not serve.
fn left_alone(world: &World, desired: &Desired) -> BTreeSet<Arc<str>> {
    let gateway = world.scope.gateway_id();
    desired
        .inbound
        .iter()
        .filter(|(uid, inbound)| !matches!(inbound, Inbound::Served { .. }) || is_in_the_way(world, **uid))
        .map(|(uid, _)| Arc::from(uid.to_string()))
        .filter(|identity: &Arc<str>| {
            let registration = world.cloud.state().registration(&gateway, identity);
            registration.is_none_or(|registration| registration.pools.is_empty())
        })
        .collect()
}

/// What the Services themselves show: finalizers, deletions, IPs that are not theirs any more.
fn services(world: &World, desired: &Desired) -> Result<(), Difference> {
    for service in world.cluster.services() {
        let name = &service.meta.name;
        let wanted = desired.inbound.contains_key(&service.meta.uid);
        if !wanted && service.meta.finalizers.contains(OUR_FINALIZER) {
            return Err(Difference::of(Invariant::L2, format!("{name} is not wanted and has our finalizer")));
        }
        if !wanted && service.carries_inherited() {
            inherited(world, service)?;
        }
        let key = ServiceKey::Inbound(service.meta.uid);
        let own = world.cloud.state().public_ips.get(&world.scope.public_ip_id(&key, Family::V4));
        let own = own.and_then(|ip| ip.address).filter(|_| wanted);
        for ip in &service.body.ingress {
            if is_issued(*ip) && Some(*ip) != own {
                return Err(Difference::of(
                    Invariant::L1,
                    format!("{name} shows {ip}, which is not its own"),
                ));
            }
        }
    }
    Ok(())
}

/// **L2**: an inherited finalizer stays only where a resource of others is in the way, and the Service says so.
fn inherited(world: &World, service: &Stored<ServiceRecord>) -> Result<(), Difference> {
    let name = &service.meta.name;
    if !is_kept(world, service) {
        let text = format!("{name} has only an inherited finalizer, and nothing in Azure keeps it");
        return Err(Difference::of(Invariant::L2, text));
    }
    if !service.body.conditions.iter().any(|condition| condition.reason == Reason::Conflict) {
        let text = format!("{name} keeps its inherited finalizer and its conditions do not say so");
        return Err(Difference::of(Invariant::S14, text));
    }
    Ok(())
}

/// Whether a resource of others has the UID of a Service or is tagged for it.
fn is_kept(world: &World, service: &Stored<ServiceRecord>) -> bool {
    let (state, scope) = (world.cloud.state(), &world.scope);
    let key = ServiceKey::Inbound(service.meta.uid);
    let (carrier, ip) = (scope.carrier_id(&key), scope.public_ip_id(&key, Family::V4));
    state.load_balancers.get(&carrier).is_some_and(|lb| !scope.owns(&lb.meta.tags))
        || state
            .public_ips
            .values()
            .filter(|it| !scope.owns(&it.meta.tags))
            .any(|it| it.meta.id == ip || is_tagged_for(&it.meta.tags, &service.meta.name))
}

/// **L3** and **L4**: nothing waits any more, except for people.
///
/// A Service whose spec is refused or whose port is unresolved is held, and says so both in the
/// engine's view and in its own conditions. So is one whose inherited finalizer a resource of others keeps on.
pub fn nothing_waits(world: &World) -> Result<(), Difference> {
    for view in world.views() {
        let key = &view.key;
        let object = world.cluster.services().find(|it| ServiceKey::Inbound(it.meta.uid) == *key);
        // The resource in the way is read again every minute, so it may be held or looked at.
        let in_conflict = object
            .is_some_and(|object| object.body.conditions.iter().any(|it| it.reason == Reason::Conflict));
        let blocked = object.is_some_and(|object| is_in_the_way(world, object.meta.uid));
        let kept = object.is_some_and(|object| is_kept(world, object));
        if in_conflict && (if view.wanted { blocked } else { kept }) {
            continue;
        }
        if let Some(hold) = &view.hold {
            let text = format!("{key} is still held: {} {}", hold.reason, hold.text);
            return Err(Difference::of(Invariant::L3, text));
        }
        if view.operation.is_some() || !view.wanted {
            return Err(Difference::of(Invariant::L4, format!("{key} is {} and still works", view.state)));
        }
        if let (Some((reason, _)), ServiceKey::Inbound(uid)) = (&view.invalid, key) {
            let shown = world.cluster.services().any(|service| {
                service.meta.uid == *uid
                    && service.body.conditions.iter().any(|condition| condition.reason == *reason)
            });
            if !shown {
                let text = format!("{key} is held for {reason} and its conditions do not say so");
                return Err(Difference::of(Invariant::S14, text));
            }
        }
    }
    Ok(())
}

/// **S1**, in the end: what others made is there as they made it.
pub fn foreigners_untouched(world: &World) -> Result<(), Difference> {
    let state = world.cloud.state();
    for id in &world.foreign {
        let tags = state
            .public_ips
            .get(id)
            .map(|ip| &ip.meta.tags)
            .or_else(|| state.load_balancers.get(id).map(|lb| &lb.meta.tags))
            .or_else(|| state.nat_gateways.get(id).map(|nat| &nat.meta.tags));
        match tags {
            Some(tags) if !world.scope.owns(tags) => {}
            _ => {
                let text = format!("{} was somebody else's and is gone or claimed", id.name());
                return Err(Difference::of(Invariant::S1, text));
            }
        }
    }
    Ok(())
}

/// Whether Azure hands out such addresses.
fn is_issued(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(v4) => v4.octets()[0] == 198 && (v4.octets()[1] & 0xfe) == 18,
        IpAddr::V6(v6) => v6.segments()[0] == 0x2001 && v6.segments()[1] == 0x0db8,
    }
}
