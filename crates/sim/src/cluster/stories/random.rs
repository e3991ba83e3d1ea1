//! Dice: one plausible action at a time, from small pools.
//!
//! The pools are small on purpose, so that names, addresses and labels are used again and again:
//! successors with the same name, reused IPs, labels that come back, slices that overlap.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use sluice_model::ObjectName;
use sluice_model::address::Family;
use sluice_model::kube::{FamilyPolicy, Phase, Protocol, ServicePort, SlicePort, TargetPort};

use super::action::{Oddity, OthersHave, OwnerBy, SliceDraft, TagChange, Tagged, UserAction};
use crate::cluster::Cluster;
use crate::cluster::objects::{
    AddressType, EndpointRecord, FOREIGN_FINALIZER, Health, INHERITED_FINALIZER, PodRecord, ServiceRecord,
    Stored,
};
use crate::rng::Rng;

const SERVICES: [(&str, &str); 5] =
    [("shop", "web"), ("shop", "api"), ("blog", "web"), ("blog", "feed"), ("ops", "dns")];
const NAMESPACES: [&str; 3] = ["shop", "blog", "ops"];
const NODES: [&str; 4] = ["node-a", "node-b", "node-c", "node-d"];
/// The last ones are refused: reserved, shaped like a UUID, empty.
const LABELS: [&str; 9] = [
    "blue",
    "blue",
    "green",
    "green",
    "red",
    "Blue",
    "default-natgw",
    "0a1b2c3d-0000-4000-8000-00000000000f",
    "",
];
const ADDRESSES: u64 = 12;
const PODS: u64 = 3;

/// Something that somebody might do now.
pub fn random_action(rng: &mut Rng, cluster: &Cluster) -> UserAction {
    // A cluster without nodes is dull, so the nodes come first most of the time.
    if cluster.nodes().count() < 2 && rng.chance(700) {
        return put_node(rng);
    }
    match rng.below(1000) {
        0..200 => service_comes_or_goes(rng, cluster),
        200..360 => service_changes(rng, cluster),
        360..600 => slice_action(rng, cluster),
        600..660 => node_action(rng),
        660..965 => pod_action(rng, cluster),
        965..975 => retag(rng),
        975..980 => UserAction::DropNamespace { namespace: any(rng, &NAMESPACES).into() },
        980..990 => UserAction::CollectGarbage,
        _ => UserAction::CompactHistory,
    }
}

/// Services that another controller has served so far, in whole or in part, some of them still its own.
pub fn taken_over(rng: &mut Rng) -> Vec<UserAction> {
    let mut actions = Vec::new();
    for (namespace, name) in SERVICES.iter().take(usize::try_from(rng.between(1, 4)).unwrap_or(1)) {
        let service = ObjectName::new(*namespace, *name);
        let parts = match rng.below(8) {
            0 => OthersHave::Unregistered,
            1 => OthersHave::PublicIp,
            2 => OthersHave::Registration,
            _ => OthersHave::Everything,
        };
        let record = any_record(rng);
        let finalizer = INHERITED_FINALIZER.into();
        actions.push(UserAction::CreateServedByOthers { service: service.clone(), record, parts });
        if rng.chance(500) {
            actions.push(UserAction::HoldService { service, finalizer });
        }
    }
    actions
}

fn retag(rng: &mut Rng) -> UserAction {
    let (part, change) = any_of(
        rng,
        &[
            (Tagged::PublicIp, TagChange::LoseOurs),
            (Tagged::PublicIp, TagChange::GainTheirs),
            (Tagged::LoadBalancer, TagChange::GainTheirs),
            (Tagged::LoadBalancer, TagChange::LoseOurs),
        ],
    );
    UserAction::Retag { service: any_service(rng), part, change }
}

fn any_of<T: Copy, const N: usize>(rng: &mut Rng, from: &[T; N]) -> T {
    rng.pick(from).copied().unwrap_or(from[0])
}

fn any<T: Copy + Default>(rng: &mut Rng, from: &[T]) -> T {
    rng.pick(from).copied().unwrap_or_default()
}

fn any_service(rng: &mut Rng) -> ObjectName {
    let (namespace, name) = any(rng, &SERVICES);
    ObjectName::new(namespace, name)
}

fn any_protocol(rng: &mut Rng) -> Protocol {
    if rng.chance(700) { Protocol::Tcp } else { Protocol::Udp }
}

fn any_ports(rng: &mut Rng) -> Vec<ServicePort> {
    let count = rng.between(1, 3);
    let mut ports: Vec<ServicePort> = Vec::new();
    for _ in 0..count {
        let protocol = if rng.chance(20) { Protocol::Sctp } else { any_protocol(rng) };
        let port = if rng.chance(20) { 65535 } else { any(rng, &[80, 443, 53, 8080]) };
        // The API server refuses the same port and protocol twice, so nobody asks for that.
        if ports.iter().any(|other| other.protocol == protocol && other.port == port) {
            continue;
        }
        let target = if rng.chance(200) {
            TargetPort::Name("main".into())
        } else {
            TargetPort::Number(any(rng, &[8080, 8443, 5353, 9090, 9091]))
        };
        let name = format!("{}-{port}", protocol.word()).into();
        ports.push(ServicePort { name, protocol, port, target });
    }
    ports
}

fn service_comes_or_goes(rng: &mut Rng, cluster: &Cluster) -> UserAction {
    let service = any_service(rng);
    let Some(stored) = cluster.service(&service) else {
        return UserAction::CreateService { service, record: any_record(rng) };
    };
    // Who holds a Service lets it go in the end.
    let held = stored.meta.finalizers.contains(FOREIGN_FINALIZER);
    if held && stored.meta.deletion_seconds.is_some() && rng.chance(700) {
        return UserAction::ReleaseService { service, finalizer: FOREIGN_FINALIZER.into() };
    }
    let finalizer: Arc<str> = any(rng, &[FOREIGN_FINALIZER, INHERITED_FINALIZER]).into();
    match rng.below(20) {
        0..9 => UserAction::DeleteService { service },
        9..11 => UserAction::HoldService { service, finalizer },
        11..15 => UserAction::ReleaseService { service, finalizer },
        15..17 => UserAction::StripFinalizer { service },
        17 => UserAction::WipeStatus { service },
        _ => UserAction::AddIngress { service, ip: IpAddr::V4(Ipv4Addr::new(203, 0, 113, 7)) },
    }
}

fn any_record(rng: &mut Rng) -> ServiceRecord {
    let mut record = ServiceRecord::balanced(any_ports(rng));
    record.balanced = rng.chance(900);
    if record.balanced && rng.chance(50) {
        record.class = Some("example.com/other".into());
    }
    record.spec.families = match rng.below(12) {
        0 => vec![Family::V6],
        1 => vec![Family::V4, Family::V6],
        2..6 => vec![Family::V4],
        _ => Vec::new(),
    };
    if record.spec.families.len() > 1 {
        record.spec.family_policy = FamilyPolicy::RequireDualStack;
    }
    if rng.chance(200) {
        record.spec.idle_timeout = any_idle_timeout(rng);
    }
    record
}

fn any_idle_timeout(rng: &mut Rng) -> Option<Arc<str>> {
    let text = any(rng, &["4", "15", "30", "30", "20", "3", "31", "ten", "", "4.5", "-4"]);
    Some(text.into()).filter(|_| rng.chance(800))
}

fn service_changes(rng: &mut Rng, cluster: &Cluster) -> UserAction {
    let there: Vec<_> = cluster.services().map(|stored| &stored.meta.name).collect();
    let Some(service) = rng.pick(&there).map(|name| (*name).clone()) else {
        return service_comes_or_goes(rng, cluster);
    };
    match rng.below(12) {
        0..4 => UserAction::SetPorts { service, ports: any_ports(rng) },
        4..6 => UserAction::SetIdleTimeout { service, minutes: any_idle_timeout(rng) },
        6..9 => UserAction::SetType { service, balanced: rng.chance(650) },
        9 => UserAction::TouchService { service },
        _ => {
            let oddity = rng.pick(&Oddity::ALL).copied().unwrap_or(Oddity::Internal);
            // Taken back more often than asked for, or every Service would end up refused.
            UserAction::SetOddity { service, oddity, on: rng.chance(350) }
        }
    }
}

/// The address of a pod or endpoint, now and then in an odd spelling.
fn any_address(rng: &mut Rng, family: Family) -> Arc<str> {
    let number = 4 + rng.below(ADDRESSES);
    let odd = rng.chance(100);
    match (family, odd) {
        (Family::V4, false) => format!("10.244.0.{number}").into(),
        (Family::V4, true) => format!("::ffff:10.244.0.{number}").into(),
        (Family::V6, false) => format!("fd00::{number:x}").into(),
        (Family::V6, true) => format!("FD00:0:0:0:0:0:0:{number:04X}").into(),
    }
}

/// An address is most often on the node that it was on before.
fn any_node_for(rng: &mut Rng, address: &str) -> Arc<str> {
    let home = address.bytes().last().map_or(0, usize::from) % NODES.len();
    if rng.chance(850) { NODES[home].into() } else { any(rng, &NODES).into() }
}

/// 1 for `node-a`, 2 for `node-b`.
fn number_of(node: &str) -> u8 {
    node.bytes().last().map_or(1, |letter| letter.saturating_sub(b'a').saturating_add(1))
}

fn node_ips(rng: &mut Rng, node: &str) -> Vec<Arc<str>> {
    let number = number_of(node);
    // A second address now and then: the smallest one is the location.
    let other = rng.chance(250).then(|| format!("10.0.1.{number}").into());
    let mut ips: Vec<Arc<str>> = vec![format!("10.0.0.{number}").into()];
    match rng.below(10) {
        0 => ips = vec![format!("fd01::{number}").into()],
        1..6 => ips.push(format!("fd01::{number}").into()),
        6 => ips.insert(0, format!("FD01:0::{number:04x}").into()),
        7 => ips = vec![format!("10.0.9.{number}").into()],
        _ => {}
    }
    ips.extend(other);
    ips
}

fn put_node(rng: &mut Rng) -> UserAction {
    let node = any(rng, &NODES);
    UserAction::PutNode { node: node.into(), ips: node_ips(rng, node) }
}

fn node_action(rng: &mut Rng) -> UserAction {
    if rng.chance(700) {
        return put_node(rng);
    }
    UserAction::DeleteNode { node: any(rng, &NODES).into() }
}

fn any_health(rng: &mut Rng) -> Health {
    if rng.chance(500) { Health::Ready } else { rng.pick(&Health::ALL).copied().unwrap_or(Health::Ready) }
}

fn any_endpoint(rng: &mut Rng, address_type: AddressType) -> EndpointRecord {
    let address: Arc<str> = match address_type {
        _ if rng.chance(15) => "10.244.0.300".into(),
        AddressType::V4 => any_address(rng, Family::V4),
        AddressType::V6 => any_address(rng, Family::V6),
        AddressType::Fqdn => "pod.example.com".into(),
    };
    let node = any_node_for(rng, &address);
    EndpointRecord { node: Some(node).filter(|_| rng.chance(950)), address, health: any_health(rng) }
}

fn any_slice_draft(rng: &mut Rng, cluster: &Cluster, service: &ObjectName) -> SliceDraft {
    let address_type = match rng.below(20) {
        0 => AddressType::Fqdn,
        1..5 => AddressType::V6,
        _ => AddressType::V4,
    };
    // All ports of the Service, the named ones mostly at the same number.
    let wanted = cluster.service(service).map_or(&[][..], |stored| &stored.body.spec.ports);
    let mut ports = Vec::new();
    for port in wanted {
        let number = match port.target {
            TargetPort::Number(number) => number,
            TargetPort::Name(_) if rng.chance(900) => 7000 + port.port % 100,
            TargetPort::Name(_) => 7999,
        };
        let number = if rng.chance(20) { None } else { Some(number) };
        if rng.chance(970) {
            ports.push(SlicePort { name: Arc::clone(&port.name), protocol: port.protocol, port: number });
        }
    }
    let mut endpoints: Vec<EndpointRecord> = Vec::new();
    for _ in 0..rng.below(5) {
        let endpoint = any_endpoint(rng, address_type);
        if !endpoints.iter().any(|other| other.address == endpoint.address) {
            endpoints.push(endpoint);
        }
    }
    let owner_by = match rng.below(20) {
        0 => OwnerBy::Nobody,
        1..5 => OwnerBy::Label,
        _ => OwnerBy::Uid,
    };
    SliceDraft { service: service.clone(), owner_by, address_type, ports, endpoints }
}

fn slice_action(rng: &mut Rng, cluster: &Cluster) -> UserAction {
    let service = any_service(rng);
    let slice_name =
        |number: u64| ObjectName::new(Arc::clone(&service.namespace), format!("{}-{number}", service.name));
    let slice = slice_name(rng.below(3));
    let filled: Vec<_> = cluster.slices().filter(|stored| !stored.body.endpoints.is_empty()).collect();
    let chosen = rng.pick(&filled).and_then(|stored| Some((stored, rng.pick(&stored.body.endpoints)?)));
    match (rng.below(20), chosen) {
        (0..4, Some((stored, endpoint))) => {
            let siblings: Vec<_> = cluster
                .slices()
                .filter(|other| {
                    other.meta.name != stored.meta.name
                        && other.meta.name.namespace == stored.meta.name.namespace
                        && other.body.service_label == stored.body.service_label
                        && other.body.address_type == stored.body.address_type
                })
                .collect();
            match rng.pick(&siblings) {
                Some(sibling) => UserAction::MoveEndpoint {
                    from: stored.meta.name.clone(),
                    to: sibling.meta.name.clone(),
                    address: Arc::clone(&endpoint.address),
                    add_first: rng.chance(500),
                },
                None => put_slice(rng, cluster, &service, slice),
            }
        }
        (4..11, Some((stored, endpoint))) => UserAction::SetHealth {
            slice: stored.meta.name.clone(),
            address: Arc::clone(&endpoint.address),
            health: any_health(rng),
        },
        (11..13, Some((stored, _))) => UserAction::DeleteSlice { slice: stored.meta.name.clone() },
        _ => put_slice(rng, cluster, &service, slice),
    }
}

fn put_slice(rng: &mut Rng, cluster: &Cluster, service: &ObjectName, mut slice: ObjectName) -> UserAction {
    // Nobody keeps a slice from naming a Service of another namespace.
    if rng.chance(100) {
        slice.namespace = any(rng, &NAMESPACES).into();
    }
    UserAction::PutSlice { slice, draft: any_slice_draft(rng, cluster, service) }
}

fn any_label(rng: &mut Rng) -> Arc<str> {
    any(rng, &LABELS).into()
}

/// Addresses for a pod: one family or two. An address that a running pod has is rarely given again.
fn any_pod_ips(rng: &mut Rng, cluster: &Cluster) -> Vec<Arc<str>> {
    let in_use = |ip: &Arc<str>| {
        cluster.pods().any(|stored| {
            stored.body.ips.contains(ip)
                && stored.body.phase != Phase::Finished
                && stored.meta.deletion_seconds.is_none()
        })
    };
    let families: &[Family] = match rng.below(10) {
        0 => &[Family::V6],
        1..4 => &[Family::V4, Family::V6],
        _ => &[Family::V4],
    };
    let mut ips = Vec::new();
    for family in families {
        let mut ip = any_address(rng, *family);
        for _ in 0..4 {
            if !in_use(&ip) || rng.chance(50) {
                break;
            }
            ip = any_address(rng, *family);
        }
        ips.push(ip);
    }
    ips
}

fn pod_action(rng: &mut Rng, cluster: &Cluster) -> UserAction {
    let pod = ObjectName::new(any(rng, &NAMESPACES), format!("job-{}", rng.below(PODS)));
    let Some(stored) = cluster.pod(&pod) else { return create_pod(rng, pod) };
    if stored.body.ips.is_empty() && stored.body.phase != Phase::Finished && rng.chance(600) {
        return place_pod(rng, cluster, pod, stored);
    }
    match rng.below(20) {
        0..9 => {
            let egress = Some(any_label(rng)).filter(|_| rng.chance(800));
            UserAction::LabelPod { pod, egress }
        }
        9..12 => UserAction::TerminatePod { pod },
        12..14 => UserAction::SetPhase { pod, phase: Phase::Finished },
        14..18 => UserAction::DeletePod { pod },
        18 if !stored.body.host_network => UserAction::ClearPodIps { pod },
        _ => place_pod(rng, cluster, pod, stored),
    }
}

fn create_pod(rng: &mut Rng, pod: ObjectName) -> UserAction {
    let record = PodRecord {
        egress: Some(any_label(rng)).filter(|_| rng.chance(930)),
        node: None,
        ips: Vec::new(),
        host_ips: Vec::new(),
        phase: Phase::Pending,
        host_network: rng.chance(60),
    };
    UserAction::CreatePod { pod, record }
}

fn place_pod(rng: &mut Rng, cluster: &Cluster, pod: ObjectName, stored: &Stored<PodRecord>) -> UserAction {
    let mut ips = any_pod_ips(rng, cluster);
    let node = match &stored.body.node {
        // A pod never changes its node.
        Some(node) => Arc::clone(node),
        None => any_node_for(rng, ips.first().map_or("", |ip| ip)),
    };
    let number = number_of(&node);
    let host_ips: Vec<Arc<str>> = vec![format!("10.0.0.{number}").into(), format!("fd01::{number}").into()];
    if stored.body.host_network {
        ips.clone_from(&host_ips);
    }
    UserAction::PlacePod { pod, node, ips, host_ips }
}
