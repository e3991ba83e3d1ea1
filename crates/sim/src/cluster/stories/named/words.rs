//! Short words for long actions, so that stories read like stories.
//!
//! Objects are written `namespace/name`, endpoints `address@node` or `address@node!health`.

use std::net::IpAddr;
use std::sync::Arc;

use sluice_model::ObjectName;
use sluice_model::address::Family;
use sluice_model::kube::{Phase, Protocol, ServicePort, SlicePort, TargetPort};

use super::super::action::{Oddity, OthersHave, OwnerBy, SliceDraft, TagChange, Tagged, UserAction};
use crate::cluster::objects::{AddressType, EndpointRecord, Health, PodRecord, ServiceRecord};

pub(super) fn object(text: &str) -> ObjectName {
    let (namespace, name) = text.split_once('/').unwrap_or(("default", text));
    ObjectName::new(namespace, name)
}

fn texts(words: &str) -> Vec<Arc<str>> {
    words.split_whitespace().map(Arc::from).collect()
}

/// Nodes `node-a` to `node-d` at 10.0.0.1-4 and fd01::1-4.
pub(super) fn standard_node(letter: char) -> UserAction {
    node(&format!("node-{letter}"), &standard_ips(letter))
}

fn standard_ips(letter: char) -> String {
    let number = u32::from(letter).saturating_sub(u32::from('a')) + 1;
    format!("10.0.0.{number} fd01::{number}")
}

pub(super) fn node(name: &str, ips: &str) -> UserAction {
    UserAction::PutNode { node: name.into(), ips: texts(ips) }
}

pub(super) fn delete_node(name: &str) -> UserAction {
    UserAction::DeleteNode { node: name.into() }
}

pub(super) fn tcp(port: u16, target: u16) -> ServicePort {
    port_of(Protocol::Tcp, port, TargetPort::Number(target))
}

pub(super) fn udp(port: u16, target: u16) -> ServicePort {
    port_of(Protocol::Udp, port, TargetPort::Number(target))
}

pub(super) fn sctp(port: u16, target: u16) -> ServicePort {
    port_of(Protocol::Sctp, port, TargetPort::Number(target))
}

pub(super) fn named_port(port: u16, target: &str) -> ServicePort {
    port_of(Protocol::Tcp, port, TargetPort::Name(target.into()))
}

fn port_of(protocol: Protocol, port: u16, target: TargetPort) -> ServicePort {
    ServicePort { name: format!("{}-{port}", protocol.word()).into(), protocol, port, target }
}

pub(super) fn service(name: &str, ports: &[ServicePort]) -> UserAction {
    UserAction::CreateService { service: object(name), record: ServiceRecord::balanced(ports.to_vec()) }
}

/// A `ClusterIP` that others serve all the same, until it becomes a `LoadBalancer`.
pub(super) fn served_by_others(name: &str, ports: &[ServicePort]) -> UserAction {
    let record = ServiceRecord { balanced: false, ..ServiceRecord::balanced(ports.to_vec()) };
    UserAction::CreateServedByOthers { service: object(name), record, parts: OthersHave::Everything }
}

pub(super) fn service_v6(name: &str, ports: &[ServicePort]) -> UserAction {
    let mut record = ServiceRecord::balanced(ports.to_vec());
    record.spec.families = vec![Family::V6];
    UserAction::CreateService { service: object(name), record }
}

pub(super) fn cluster_ip_service(name: &str, ports: &[ServicePort]) -> UserAction {
    let record = ServiceRecord { balanced: false, ..ServiceRecord::balanced(ports.to_vec()) };
    UserAction::CreateService { service: object(name), record }
}

pub(super) fn service_of_class(name: &str, class: &str, ports: &[ServicePort]) -> UserAction {
    let mut record = ServiceRecord::balanced(ports.to_vec());
    record.class = Some(class.into());
    UserAction::CreateService { service: object(name), record }
}

pub(super) fn ports(name: &str, ports: &[ServicePort]) -> UserAction {
    UserAction::SetPorts { service: object(name), ports: ports.to_vec() }
}

pub(super) fn idle(name: &str, minutes: &str) -> UserAction {
    UserAction::SetIdleTimeout { service: object(name), minutes: Some(minutes.into()) }
}

pub(super) fn no_idle(name: &str) -> UserAction {
    UserAction::SetIdleTimeout { service: object(name), minutes: None }
}

pub(super) fn odd(name: &str, oddity: Oddity, on: bool) -> UserAction {
    UserAction::SetOddity { service: object(name), oddity, on }
}

pub(super) fn load_balancer(name: &str) -> UserAction {
    UserAction::SetType { service: object(name), balanced: true }
}

pub(super) fn cluster_ip(name: &str) -> UserAction {
    UserAction::SetType { service: object(name), balanced: false }
}

pub(super) fn touch(name: &str) -> UserAction {
    UserAction::TouchService { service: object(name) }
}

pub(super) fn hold(name: &str, finalizer: &str) -> UserAction {
    UserAction::HoldService { service: object(name), finalizer: finalizer.into() }
}

pub(super) fn release(name: &str, finalizer: &str) -> UserAction {
    UserAction::ReleaseService { service: object(name), finalizer: finalizer.into() }
}

pub(super) fn retag(name: &str, part: Tagged, change: TagChange) -> UserAction {
    UserAction::Retag { service: object(name), part, change }
}

pub(super) fn tag_public_ip(name: &str, services: &str) -> UserAction {
    UserAction::TagPublicIp { name: name.into(), services: services.into() }
}

pub(super) fn delete_tagged_ip(name: &str) -> UserAction {
    UserAction::DeleteTaggedIp { name: name.into() }
}

/// Another controller binds an address on the node of this letter.
pub(super) fn others_bind(service: &str, letter: char, address: [u8; 4]) -> UserAction {
    let number = u32::from(letter).saturating_sub(u32::from('a')) + 1;
    let location = IpAddr::from([10, 0, 0, u8::try_from(number).unwrap_or(1)]);
    UserAction::OthersBind { service: service.into(), location, address: address.into() }
}

pub(super) fn delete_service(name: &str) -> UserAction {
    UserAction::DeleteService { service: object(name) }
}

pub(super) fn strip(name: &str) -> UserAction {
    UserAction::StripFinalizer { service: object(name) }
}

pub(super) fn wipe_status(name: &str) -> UserAction {
    UserAction::WipeStatus { service: object(name) }
}

pub(super) fn foreign_ingress(name: &str, ip: [u8; 4]) -> UserAction {
    UserAction::AddIngress { service: object(name), ip: ip.into() }
}

pub(super) fn drop_namespace(namespace: &str) -> UserAction {
    UserAction::DropNamespace { namespace: namespace.into() }
}

fn endpoint(text: &str) -> EndpointRecord {
    let (text, health) = match text.split_once('!') {
        Some((text, "draining")) => (text, Health::Draining),
        Some((text, "ended")) => (text, Health::Ended),
        Some((text, "unsaid")) => (text, Health::Unsaid),
        Some((text, _)) => (text, Health::NotReady),
        None => (text, Health::Ready),
    };
    let (address, node) = text.split_once('@').map_or((text, None), |(address, node)| (address, Some(node)));
    EndpointRecord { address: address.into(), node: node.map(Arc::from), health }
}

/// The slice `{service}-{number}` of the Service, owned by UID; IPv6 if its first address has a colon.
pub(super) fn slice(service: &str, number: u32, endpoints: &str) -> UserAction {
    slice_with(service, number, &[], endpoints)
}

/// The same with port numbers by port name.
pub(super) fn slice_with(service: &str, number: u32, ports: &[(&str, u16)], endpoints: &str) -> UserAction {
    let endpoints: Vec<EndpointRecord> = endpoints.split_whitespace().map(endpoint).collect();
    let v6 = endpoints.first().is_some_and(|first| first.address.contains(':'));
    let port = |&(name, number): &(&str, u16)| SlicePort {
        name: name.into(),
        protocol: Protocol::Tcp,
        port: Some(number),
    };
    UserAction::PutSlice {
        slice: slice_name(service, number),
        draft: SliceDraft {
            service: object(service),
            owner_by: OwnerBy::Uid,
            address_type: if v6 { AddressType::V6 } else { AddressType::V4 },
            ports: ports.iter().map(port).collect(),
            endpoints,
        },
    }
}

/// A slice drawn differently.
pub(super) fn redrawn(action: UserAction, redraw: impl FnOnce(&mut SliceDraft)) -> UserAction {
    match action {
        UserAction::PutSlice { slice, mut draft } => {
            redraw(&mut draft);
            UserAction::PutSlice { slice, draft }
        }
        other => other,
    }
}

/// A slice that names the same Service from another namespace.
pub(super) fn in_namespace(namespace: &str, action: UserAction) -> UserAction {
    match action {
        UserAction::PutSlice { slice, draft } => {
            UserAction::PutSlice { slice: ObjectName::new(namespace, slice.name), draft }
        }
        other => other,
    }
}

fn slice_name(service: &str, number: u32) -> ObjectName {
    let name = object(service);
    ObjectName::new(name.namespace, format!("{}-{number}", name.name))
}

pub(super) fn delete_slice(service: &str, number: u32) -> UserAction {
    UserAction::DeleteSlice { slice: slice_name(service, number) }
}

pub(super) fn move_endpoint(service: &str, from: u32, to: u32, address: &str, add_first: bool) -> UserAction {
    let (from, to) = (slice_name(service, from), slice_name(service, to));
    UserAction::MoveEndpoint { from, to, address: address.into(), add_first }
}

pub(super) fn health(service: &str, number: u32, address: &str, health: Health) -> UserAction {
    UserAction::SetHealth { slice: slice_name(service, number), address: address.into(), health }
}

/// A pod that has neither node nor address yet.
pub(super) fn pending_pod(name: &str, egress: &str) -> UserAction {
    UserAction::CreatePod { pod: object(name), record: pod_record(Some(egress.into())) }
}

/// A pod with a node and addresses.
pub(super) fn pod(name: &str, egress: &str, letter: char, ips: &str) -> UserAction {
    UserAction::CreatePod { pod: object(name), record: running(Some(egress.into()), letter, ips) }
}

/// A pod without the label.
pub(super) fn unlabelled_pod(name: &str, letter: char, ips: &str) -> UserAction {
    UserAction::CreatePod { pod: object(name), record: running(None, letter, ips) }
}

/// A pod that shares its node's network.
pub(super) fn host_network_pod(name: &str, egress: &str, letter: char) -> UserAction {
    let ips = standard_ips(letter);
    let record = PodRecord { host_network: true, ..running(Some(egress.into()), letter, &ips) };
    UserAction::CreatePod { pod: object(name), record }
}

fn pod_record(egress: Option<Arc<str>>) -> PodRecord {
    PodRecord {
        egress,
        node: None,
        ips: Vec::new(),
        host_ips: Vec::new(),
        phase: Phase::Pending,
        host_network: false,
    }
}

fn running(egress: Option<Arc<str>>, letter: char, ips: &str) -> PodRecord {
    PodRecord {
        node: Some(format!("node-{letter}").into()),
        ips: texts(ips),
        host_ips: texts(&standard_ips(letter)),
        phase: Phase::Running,
        ..pod_record(egress)
    }
}

pub(super) fn place(name: &str, letter: char, ips: &str) -> UserAction {
    UserAction::PlacePod {
        pod: object(name),
        node: format!("node-{letter}").into(),
        ips: texts(ips),
        host_ips: texts(&standard_ips(letter)),
    }
}

pub(super) fn lose_ips(name: &str) -> UserAction {
    UserAction::ClearPodIps { pod: object(name) }
}

pub(super) fn finish(name: &str) -> UserAction {
    UserAction::SetPhase { pod: object(name), phase: Phase::Finished }
}

pub(super) fn label(name: &str, egress: &str) -> UserAction {
    UserAction::LabelPod { pod: object(name), egress: Some(egress.into()) }
}

pub(super) fn unlabel(name: &str) -> UserAction {
    UserAction::LabelPod { pod: object(name), egress: None }
}

pub(super) fn terminate(name: &str) -> UserAction {
    UserAction::TerminatePod { pod: object(name) }
}

pub(super) fn delete_pod(name: &str) -> UserAction {
    UserAction::DeletePod { pod: object(name) }
}
