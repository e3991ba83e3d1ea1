//! The end of a run without everything that may differ between two runs: IPs, ETags, UIDs, times.
//!
//! Services are called by their names, so that two runs can be laid side by side.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use sluice_model::Uid;
use sluice_model::azure::Rule;

use crate::cluster::oracle::Inbound;
use crate::cluster::stories::UserAction;
use crate::liveness::{desired, is_in_the_way};
use crate::world::World;

/// The writes that a bare cluster costs: gateway, subnet, and the default outbound service.
pub const FOUNDATION_COST: u64 = 2 + 4;

/// The end of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Portrait {
    /// What people have left in the cluster.
    pub objects: BTreeSet<String>,
    /// Load balancers by the names of their Services, with their rules.
    balancers: BTreeMap<String, Vec<Rule>>,
    /// NAT gateways.
    nats: BTreeSet<String>,
    /// Registrations.
    registrations: BTreeSet<String>,
    /// Where which address is mapped to what.
    locations: BTreeMap<(IpAddr, IpAddr), BTreeSet<String>>,
    /// The addresses that egresses of others have.
    held: BTreeSet<(IpAddr, IpAddr)>,
}

impl Portrait {
    /// What the world looks like now, Services aside whose history decides.
    pub fn of(world: &World) -> Portrait {
        let desired = desired(world);
        let cluster = &world.cluster;
        let mut names: BTreeMap<Uid, String> = BTreeMap::new();
        let mut objects = BTreeSet::new();
        for service in cluster.services() {
            names.insert(service.meta.uid, service.meta.name.to_string());
            let deleting = service.meta.deletion_seconds.is_some();
            let body = &service.body;
            objects.insert(format!(
                "service {} {} {:?} {:?} deleting {deleting}",
                service.meta.name, body.balanced, body.class, body.spec
            ));
        }
        for uid in names.keys().filter(|uid| is_in_the_way(world, **uid)) {
            // When the load balancer of a released public IP went is history.
            objects.insert(format!("blocked {uid}"));
        }
        for slice in cluster.slices() {
            let owner = slice.body.owner.map(|uid| names.get(&uid).cloned());
            objects.insert(format!(
                "slice {} {owner:?} {:?} {:?} {:?}",
                slice.meta.name, slice.body.service_label, slice.body.ports, slice.body.endpoints
            ));
        }
        for node in cluster.nodes() {
            objects.insert(format!("node {} {:?}", node.meta.name, node.body.ips));
        }
        for pod in cluster.pods() {
            let gone = pod.meta.deletion_seconds.is_some();
            objects.insert(format!("pod {} {:?} {gone}", pod.meta.name, pod.body));
        }
        for (address, pod) in cluster.address_holders() {
            // Of several pods with one address the newest has it, and another order makes another the newest.
            objects.insert(format!("address {address} of {}", pod.meta.name));
        }
        let by_history: BTreeSet<String> = desired
            .inbound
            .iter()
            .filter(|(_, inbound)| !matches!(inbound, Inbound::Served { .. }))
            .map(|(uid, _)| uid.to_string())
            .collect();
        let called = |identity: &str| match Uid::parse(identity) {
            Ok(uid) => names.get(&uid).cloned().unwrap_or_else(|| identity.to_owned()),
            Err(_) => identity.to_owned(),
        };
        let state = world.cloud.state();
        let gateway = world.scope.gateway_id();
        let ours = |tags| world.scope.owns(tags);
        let held = world.held_by_others();
        let mut locations: BTreeMap<(IpAddr, IpAddr), BTreeSet<String>> = BTreeMap::new();
        for location in state.locations(&gateway) {
            for entry in location.addresses {
                let services: BTreeSet<String> = entry
                    .services
                    .iter()
                    .filter(|name| !by_history.contains(&***name) && !world.is_of_others(name))
                    .map(|name| called(name))
                    .collect();
                if !services.is_empty() {
                    locations.insert((location.location, entry.address), services);
                }
            }
        }
        Portrait {
            objects,
            balancers: state
                .load_balancers
                .values()
                .filter(|lb| ours(&lb.meta.tags) && !by_history.contains(lb.meta.id.name()))
                .map(|lb| {
                    let mut rules = lb.rules.clone();
                    rules.sort_unstable();
                    (called(lb.meta.id.name()), rules)
                })
                .collect(),
            nats: state
                .nat_gateways
                .values()
                .filter(|nat| ours(&nat.meta.tags))
                .map(|nat| nat.meta.id.name().to_owned())
                .collect(),
            registrations: state
                .registrations(&gateway)
                .filter(|registration| !by_history.contains(&*registration.name))
                .filter(|registration| !world.is_of_others(&registration.name))
                .map(|registration| called(&registration.name))
                .collect(),
            locations,
            held,
        }
    }

    /// What differs from another portrait, if anything does.
    pub fn difference(&self, other: &Portrait) -> Option<String> {
        if self.balancers != other.balancers {
            return Some(format!("load balancers {:?} / {:?}", self.balancers, other.balancers));
        }
        if self.nats != other.nats {
            return Some(format!("NAT gateways {:?} / {:?}", self.nats, other.nats));
        }
        if self.registrations != other.registrations {
            return Some(format!("registrations {:?} / {:?}", self.registrations, other.registrations));
        }
        // No egress of ours gets an address that an egress of others has.
        let held: BTreeSet<(IpAddr, IpAddr)> = self.held.union(&other.held).copied().collect();
        let compared = |portrait: &Portrait| {
            let mut locations = portrait.locations.clone();
            locations.retain(|at, _| !held.contains(at));
            locations
        };
        let (ours, theirs) = (compared(self), compared(other));
        if ours != theirs {
            return Some(format!("locations {ours:?} / {theirs:?}"));
        }
        None
    }
}

/// The writes that an action costs by itself, at the most: making a service takes three (address,
/// carrier, registration; an egress may need a second address), taking it down four or five, and
/// every change of an address one location call.
pub fn cost_of(action: &UserAction) -> u64 {
    match action {
        UserAction::CreateService { .. }
        | UserAction::CreateServedByOthers { .. }
        | UserAction::SetType { .. } => 4,
        UserAction::DeleteService { .. } | UserAction::StripFinalizer { .. } => 5,
        UserAction::SetPorts { .. } | UserAction::SetIdleTimeout { .. } | UserAction::SetOddity { .. } => 4,
        UserAction::DropNamespace { .. } => 40,
        // A node with or without IPv6 changes every egress, and moves every address on it.
        UserAction::PutNode { .. } | UserAction::DeleteNode { .. } => 16,
        UserAction::CreatePod { .. }
        | UserAction::LabelPod { .. }
        | UserAction::SetPhase { .. }
        | UserAction::DeletePod { .. } => 11,
        UserAction::PutSlice { .. }
        | UserAction::MoveEndpoint { .. }
        | UserAction::SetHealth { .. }
        | UserAction::DeleteSlice { .. }
        | UserAction::PlacePod { .. }
        | UserAction::ClearPodIps { .. }
        | UserAction::TerminatePod { .. }
        | UserAction::OthersBind { .. }
        | UserAction::CollectGarbage => 2,
        UserAction::TouchService { .. }
        | UserAction::HoldService { .. }
        | UserAction::ReleaseService { .. }
        | UserAction::WipeStatus { .. }
        | UserAction::AddIngress { .. }
        | UserAction::CompactHistory
        | UserAction::StopLeader
        | UserAction::AllowDeletion
        | UserAction::TagPublicIp { .. }
        | UserAction::DeleteTaggedIp { .. }
        | UserAction::Trouble(_)
        | UserAction::Retag { .. } => 0,
    }
}
