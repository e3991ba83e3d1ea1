//! What the oracle says must exist.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use sluice_model::Uid;
use sluice_model::address::Family;
use sluice_model::annotations::INTERNAL;
use sluice_model::azure::Rule;
use sluice_model::kube::{FamilyPolicy, Phase, Protocol, ServicePort, ServiceSpec, SlicePort, TargetPort};

use super::{at, name, port, reference, with_web};
use crate::cluster::Cluster;
use crate::cluster::objects::{
    AddressType, EndpointRecord, FOREIGN_FINALIZER, Health, PodRecord, ServiceRecord, SliceRecord,
};
use crate::cluster::oracle::{Desired, Inbound};

fn rule(protocol: Protocol, frontend_port: u16, backend_port: u16, idle_timeout_minutes: u8) -> Rule {
    Rule { protocol, frontend_port, backend_port, idle_timeout_minutes }
}

/// Port numbers by port name.
type Said<'a> = &'a [(&'a str, Option<u16>)];

/// `address@node` with `!` for not ready and `~` for draining.
fn slice_of(uid: Uid, endpoints: &str, ports: Said<'_>) -> SliceRecord {
    let endpoint = |text: &str| {
        let health = match text.chars().last() {
            Some('!') => Health::NotReady,
            Some('~') => Health::Draining,
            _ => Health::Ready,
        };
        let (address, node) = text.trim_end_matches(['!', '~']).split_once('@').unwrap();
        EndpointRecord { address: address.into(), node: Some(node.into()), health }
    };
    let port = |&(name, port): &(&str, Option<u16>)| {
        let name: Arc<str> = name.into();
        SlicePort { name, protocol: Protocol::Tcp, port }
    };
    SliceRecord {
        address_type: AddressType::V4,
        owner: Some(uid),
        service_label: Some("web".into()),
        ports: ports.iter().map(port).collect(),
        endpoints: endpoints.split_whitespace().map(endpoint).collect(),
    }
}

fn pod(egress: &str, node: &str, ips: &[&str]) -> PodRecord {
    PodRecord {
        egress: Some(egress.into()),
        node: Some(node.into()),
        ips: ips.iter().map(|ip| Arc::from(*ip)).collect(),
        host_ips: vec!["10.9.9.9".into()],
        phase: Phase::Running,
        host_network: false,
    }
}

fn nodes(cluster: &mut Cluster) {
    cluster.put_node("node-a", &["10.0.0.1".into(), "fd01::1".into()]);
    cluster.put_node("node-b", &["10.0.0.20".into(), "10.0.0.3".into()]);
}

fn desired(cluster: &Cluster) -> Desired {
    cluster.desired(&BTreeSet::new())
}

/// `location address identity,identity` by line; UIDs as the last digits.
fn lines(desired: &Desired) -> Vec<String> {
    let short = |identity: &Arc<str>| {
        identity.rsplit('-').next().map_or("", |tail| tail.trim_start_matches('0')).to_string()
    };
    let mut lines = Vec::new();
    for (location, addresses) in &desired.locations {
        for (address, identities) in addresses {
            let who: Vec<_> = identities.iter().map(short).collect();
            lines.push(format!("{location} {address} {}", who.join(",")));
        }
    }
    lines
}

fn inbound_of(spec: impl FnOnce(&mut ServiceSpec)) -> Inbound {
    let (mut cluster, object) = with_web();
    cluster.edit_spec(&object.name, spec);
    desired(&cluster).inbound.remove(&object.uid).unwrap()
}

#[test]
fn a_plain_service_is_served_with_its_sorted_rules() {
    let served = inbound_of(|spec| {
        spec.ports =
            vec![port(Protocol::Udp, 53, 53), port(Protocol::Tcp, 443, 8443), port(Protocol::Tcp, 80, 53)];
        spec.idle_timeout = Some("30".into());
    });
    let rules = vec![
        rule(Protocol::Tcp, 80, 53, 30),
        rule(Protocol::Tcp, 443, 8443, 30),
        rule(Protocol::Udp, 53, 53, 30),
    ];
    assert_eq!(served, Inbound::Served { family: Family::V4, rules });
    let Inbound::Served { family, rules } = inbound_of(|spec| spec.families = vec![Family::V6]) else {
        panic!("not served");
    };
    assert_eq!((family, rules), (Family::V6, vec![rule(Protocol::Tcp, 80, 8080, 4)]));
    let preferred = inbound_of(|spec| {
        spec.families = vec![Family::V6, Family::V4];
        spec.family_policy = FamilyPolicy::PreferDualStack;
    });
    assert!(matches!(preferred, Inbound::Served { family: Family::V6, .. }), "the first of the two");
}

#[test]
fn every_refused_spec_is_refused() {
    type Change = fn(&mut ServiceSpec);
    let refused: [Change; 14] = [
        |spec| spec.rejected_annotations = vec![INTERNAL.into()],
        |spec| spec.family_policy = FamilyPolicy::RequireDualStack,
        |spec| spec.client_ip_affinity = true,
        |spec| spec.fixed_ip = true,
        |spec| spec.source_ranges = true,
        |spec| spec.families = vec![Family::V4, Family::V6],
        |spec| spec.idle_timeout = Some("3".into()),
        |spec| spec.idle_timeout = Some("31".into()),
        |spec| spec.idle_timeout = Some("ten".into()),
        |spec| spec.idle_timeout = Some("".into()),
        |spec| spec.idle_timeout = Some("4.5".into()),
        |spec| spec.ports = vec![port(Protocol::Sctp, 80, 8080)],
        |spec| spec.ports = vec![port(Protocol::Tcp, 65535, 8080)],
        |spec| spec.ports = vec![port(Protocol::Tcp, 80, 8080), port(Protocol::Tcp, 81, 8080)],
    ];
    for (at, change) in refused.into_iter().enumerate() {
        assert!(matches!(inbound_of(change), Inbound::Refused(_)), "case {at}");
    }
}

#[test]
fn what_is_not_ours_or_is_going_is_not_wanted() {
    let (mut cluster, object) = with_web();
    cluster.set_type(&object.name, false);
    assert!(desired(&cluster).inbound.is_empty());
    cluster.set_type(&object.name, true);
    assert_eq!(desired(&cluster).inbound.len(), 1);
    cluster.hold_service(&object.name, FOREIGN_FINALIZER);
    cluster.delete_service(&object.name);
    assert!(desired(&cluster).inbound.is_empty());
    let mut foreign = ServiceRecord::balanced(vec![port(Protocol::Tcp, 80, 8080)]);
    foreign.class = Some("example.com/other".into());
    cluster.create_service(&name("shop/other"), foreign);
    assert!(desired(&cluster).inbound.is_empty());
}

#[test]
fn a_named_port_is_what_all_counting_endpoints_say() {
    let (mut cluster, object) = with_web();
    let named = ServicePort { target: TargetPort::Name("http".into()), ..port(Protocol::Tcp, 80, 0) };
    cluster.edit_spec(&object.name, |spec| spec.ports = vec![named]);
    let mut said = |slices: &[(&str, Said<'_>)]| {
        for (number, (endpoints, ports)) in slices.iter().enumerate() {
            cluster.put_slice(&name(&format!("shop/web-{number}")), slice_of(object.uid, endpoints, ports));
        }
        desired(&cluster).inbound.remove(&object.uid).unwrap()
    };
    let served =
        |number| Inbound::Served { family: Family::V4, rules: vec![rule(Protocol::Tcp, 80, number, 4)] };
    let http = |number| [("tcp-80", Some(number))];
    assert_eq!(said(&[]), Inbound::PortUnresolved);
    assert_eq!(said(&[("10.244.0.4@node-a!", &http(8080))]), Inbound::PortUnresolved);
    assert_eq!(said(&[("10.244.0.4@node-a", &http(8080))]), served(8080));
    assert_eq!(
        said(&[("10.244.0.4@node-a", &http(8080)), ("10.244.0.5@node-a", &http(9090))]),
        Inbound::PortUnresolved
    );
    // Endpoints that do not count have no say.
    assert_eq!(
        said(&[("10.244.0.4@node-a~", &http(8080)), ("10.244.0.5@node-a", &http(9090))]),
        served(9090)
    );
    assert_eq!(
        said(&[("10.244.0.4@node-a", &[]), ("10.244.0.5@node-a", &http(9090))]),
        Inbound::PortUnresolved
    );
    assert_eq!(said(&[("10.244.0.4@node-a", &[("tcp-80", None)]), ("", &[])]), Inbound::PortUnresolved);
}

#[test]
fn named_ports_that_turn_out_equal_are_refused() {
    let (mut cluster, object) = with_web();
    let named = ServicePort { target: TargetPort::Name("http".into()), ..port(Protocol::Tcp, 80, 0) };
    cluster.edit_spec(&object.name, |spec| spec.ports = vec![named, port(Protocol::Tcp, 443, 8080)]);
    cluster.put_slice(
        &name("shop/web-0"),
        slice_of(object.uid, "10.244.0.4@node-a", &[("tcp-80", Some(8080)), ("tcp-443", Some(8080))]),
    );
    assert!(matches!(desired(&cluster).inbound[&object.uid], Inbound::Refused(_)));
}

#[test]
fn addresses_are_the_union_of_the_slices_at_the_smallest_node_address_of_their_family() {
    let (mut cluster, object) = with_web();
    nodes(&mut cluster);
    cluster.put_slice(&name("shop/web-0"), slice_of(object.uid, "10.244.0.4@node-a 10.244.0.5@node-b!", &[]));
    cluster.put_slice(
        &name("shop/web-1"),
        slice_of(
            object.uid,
            "::ffff:10.244.0.5@node-b 10.244.0.300@node-a 10.244.0.6@node-x 10.244.0.7@node-a~",
            &[],
        ),
    );
    assert_eq!(lines(&desired(&cluster)), ["10.0.0.1 10.244.0.4 1", "10.0.0.3 10.244.0.5 1"]);
}

#[test]
fn terminating_endpoints_count_only_when_none_is_ready_anywhere() {
    let (mut cluster, object) = with_web();
    nodes(&mut cluster);
    cluster
        .put_slice(&name("shop/web-0"), slice_of(object.uid, "10.244.0.4@node-a~ 10.244.0.5@node-a!", &[]));
    assert_eq!(lines(&desired(&cluster)), ["10.0.0.1 10.244.0.4 1"]);
    cluster.put_slice(&name("shop/web-1"), slice_of(object.uid, "10.244.0.6@node-a", &[]));
    assert_eq!(lines(&desired(&cluster)), ["10.0.0.1 10.244.0.6 1"]);
}

#[test]
fn a_slice_belongs_to_its_owner_reference_before_its_label() {
    let (mut cluster, object) = with_web();
    nodes(&mut cluster);
    let mut slice = slice_of(Uid::from_number(99), "10.244.0.4@node-a", &[]);
    cluster.put_slice(&name("shop/web-0"), slice.clone());
    assert!(lines(&desired(&cluster)).is_empty());
    slice.owner = Some(object.uid);
    cluster.put_slice(&name("blog/web-0"), slice.clone());
    assert!(lines(&desired(&cluster)).is_empty(), "an owner is in the slice's own namespace");
    slice.owner = None;
    cluster.put_slice(&name("blog/web-0"), slice.clone());
    assert!(lines(&desired(&cluster)).is_empty(), "a label means the slice's own namespace");
    cluster.put_slice(&name("shop/web-0"), slice);
    assert_eq!(lines(&desired(&cluster)), ["10.0.0.1 10.244.0.4 1"]);
    assert_eq!(object, reference(&cluster, "shop/web"));
}

#[test]
fn a_refused_service_has_addresses_only_while_it_is_live() {
    let (mut cluster, object) = with_web();
    nodes(&mut cluster);
    cluster.put_slice(&name("shop/web-0"), slice_of(object.uid, "10.244.0.4@node-a", &[]));
    cluster.edit_spec(&object.name, |spec| spec.rejected_annotations = vec![INTERNAL.into()]);
    assert!(lines(&desired(&cluster)).is_empty());
    assert_eq!(lines(&cluster.desired(&BTreeSet::from([object.uid]))), ["10.0.0.1 10.244.0.4 1"]);
}

#[test]
fn an_egress_is_wanted_by_its_unfinished_pods_with_or_without_an_address() {
    let mut cluster = Cluster::new();
    nodes(&mut cluster);
    let pending = PodRecord { phase: Phase::Pending, ips: Vec::new(), ..pod("Blue", "node-a", &[]) };
    cluster.create_pod(&name("ops/pending"), pending);
    cluster.create_pod(
        &name("ops/done"),
        PodRecord { phase: Phase::Finished, ..pod("green", "node-a", &["10.244.0.5"]) },
    );
    cluster.create_pod(
        &name("ops/host"),
        PodRecord { host_network: true, ..pod("red", "node-a", &["10.0.0.1"]) },
    );
    cluster.create_pod(&name("ops/both"), pod("blue", "node-a", &["10.244.0.4", "FD00:0:0::4"]));
    cluster.terminate_pod(&name("ops/both"));
    let wanted = desired(&cluster);
    assert_eq!(wanted.outbound.keys().map(|it| &**it).collect::<Vec<_>>(), ["blue"]);
    assert_eq!(wanted.outbound["blue"].len(), 2);
    assert_eq!(lines(&wanted), ["10.0.0.1 10.244.0.4 blue", "fd01::1 fd00::4 blue"]);
}

#[test]
fn labels_that_cannot_be_names_make_no_egress() {
    for label in
        ["", "default-natgw", "0a1b2c3d-0000-4000-8000-00000000000f", "-a", "a.", "a b", &"a".repeat(74)]
    {
        let mut cluster = Cluster::new();
        cluster.create_pod(&name("ops/job"), pod(label, "node-a", &["10.244.0.4"]));
        assert!(desired(&cluster).outbound.is_empty(), "{label:?}");
    }
    for label in ["a_", "a.b-c", "0", &"a".repeat(73)] {
        let mut cluster = Cluster::new();
        cluster.create_pod(&name("ops/job"), pod(label, "node-a", &["10.244.0.4"]));
        assert_eq!(desired(&cluster).outbound.len(), 1, "{label:?}");
    }
}

#[test]
fn one_address_belongs_to_the_newest_pod_that_is_not_terminating() {
    let mut cluster = Cluster::new();
    nodes(&mut cluster);
    let (old, new) = (name("ops/old"), name("ops/new"));
    cluster.create_pod(&old, pod("blue", "node-a", &["10.244.0.4"]));
    cluster.create_pod(&new, pod("green", "node-b", &["10.244.0.4"]));
    assert_eq!(
        lines(&desired(&cluster)),
        ["10.0.0.3 10.244.0.4 green"],
        "of the same second: the greater UID"
    );
    cluster.terminate_pod(&new);
    assert_eq!(lines(&desired(&cluster)), ["10.0.0.1 10.244.0.4 blue"]);
    cluster.terminate_pod(&old);
    assert_eq!(lines(&desired(&cluster)), ["10.0.0.3 10.244.0.4 green"]);
    cluster.delete_pod(&old);
    cluster.set_time(at(5));
    cluster.create_pod(&old, pod("blue", "node-a", &["10.244.0.4"]));
    assert_eq!(lines(&desired(&cluster)), ["10.0.0.1 10.244.0.4 blue"]);
    assert_eq!(desired(&cluster).outbound.len(), 2, "a pod without its address still wants its egress");
}

#[test]
fn a_pod_is_where_its_node_is_and_only_without_a_node_where_it_says() {
    let mut cluster = Cluster::new();
    cluster.create_pod(&name("ops/job"), pod("blue", "node-a", &["10.244.0.4", "fd00::4"]));
    assert_eq!(lines(&desired(&cluster)), ["10.9.9.9 10.244.0.4 blue"]);
    cluster.put_node("node-a", &["fd01::1".into()]);
    assert_eq!(
        lines(&desired(&cluster)),
        ["fd01::1 fd00::4 blue"],
        "a known node without that family is nowhere"
    );
}

#[test]
fn a_pod_that_is_backend_and_egress_is_one_entry_with_both() {
    let (mut cluster, object) = with_web();
    nodes(&mut cluster);
    cluster.put_slice(&name("shop/web-0"), slice_of(object.uid, "10.244.0.4@node-a", &[]));
    cluster.create_pod(&name("shop/job"), pod("blue", "node-a", &["10.244.0.4"]));
    let wanted = desired(&cluster);
    let location: IpAddr = "10.0.0.1".parse().unwrap();
    let address: IpAddr = "10.244.0.4".parse().unwrap();
    let identities = &wanted.locations[&location][&address];
    assert_eq!(identities.len(), 2);
    assert!(identities.is_sorted());
}
