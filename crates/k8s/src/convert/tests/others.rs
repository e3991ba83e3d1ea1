//! EndpointSlices, Nodes and pods.

use std::sync::Arc;

use sluice_model::Uid;
use sluice_model::kube::{Endpoint, NodeObject, Phase, PodObject, Protocol, Slice, SliceOwner, SlicePort};

use super::*;

fn read_slice(with: Value) -> Slice {
    let base = json!({"metadata": metadata(), "addressType": "IPv4"});
    slice(&serde_json::from_value(overlaid(base, with)).unwrap(), &mut Words::default()).unwrap()
}

fn read_node(with: Value) -> NodeObject {
    let base = json!({"metadata": {"name": "node-a", "uid": UID, "resourceVersion": "7"}});
    node(&serde_json::from_value(overlaid(base, with)).unwrap(), &mut Words::default()).unwrap()
}

fn read_pod(with: Value) -> PodObject {
    let label = json!({"labels": {"kubernetes.azure.com/service-egress-gateway": "Blue"}});
    let base = json!({"metadata": overlaid(metadata(), label)});
    pod(&serde_json::from_value(overlaid(base, with)).unwrap(), &mut Words::default()).unwrap()
}

fn addresses_of(slice: &Slice) -> Vec<IpAddr> {
    slice.endpoints.iter().map(|it| it.address).collect()
}

#[test]
fn the_health_of_an_endpoint_has_the_defaults_of_kubernetes() {
    let health = |conditions: Value| {
        let slice = read_slice(json!({"endpoints": [{"addresses": ["10.0.0.4"], "conditions": conditions}]}));
        let Endpoint { ready, serving, terminating, .. } = slice.endpoints[0];
        (ready, serving, terminating)
    };
    assert_eq!(health(json!(null)), (true, true, false));
    assert_eq!(health(json!({"ready": null, "serving": null})), (true, true, false));
    assert_eq!(health(json!({"ready": false})), (false, false, false));
    assert_eq!(health(json!({"ready": false, "serving": true, "terminating": true})), (false, true, true));
}

#[test]
fn addresses_get_one_spelling_and_those_of_another_family_are_malformed() {
    let v6 = read_slice(json!({"addressType": "IPv6", "endpoints": [
        {"addresses": ["2001:DB8:0:0:0:0:0:1"]}, {"addresses": ["2001:db8::1"]},
        {"addresses": ["10.0.0.4"]}, {"addresses": ["::ffff:10.0.0.4"]}, {"addresses": ["fe80::1%eth0"]}]}));
    assert_eq!(addresses_of(&v6), ips(&["2001:db8::1", "2001:db8::1"]));
    let malformed: Vec<&str> = v6.malformed.iter().map(|text| &**text).collect();
    assert_eq!(malformed, ["10.0.0.4", "::ffff:10.0.0.4", "fe80::1%eth0"]);

    let v4 = read_slice(json!({"endpoints": [
        {"addresses": ["10.0.0.4", "10.0.0.5"]}, {"addresses": ["ten"]}, {"addresses": []}, {"addresses": null}]}));
    assert_eq!(addresses_of(&v4), ips(&["10.0.0.4"]), "only the first address of an endpoint has a meaning");
    assert_eq!(v4.malformed, [Arc::from("ten")]);
}

#[test]
fn a_slice_of_names_has_only_malformed_addresses() {
    for kind in [json!("FQDN"), json!("Carrier pigeon"), json!(null)] {
        let slice = read_slice(json!({"addressType": kind, "endpoints": [{"addresses": ["10.0.0.4"]}]}));
        assert!(slice.endpoints.is_empty(), "{kind}");
        assert_eq!(slice.malformed, [Arc::from("10.0.0.4")], "{kind}");
    }
}

#[test]
fn a_slice_belongs_to_the_service_that_owns_it_or_else_to_the_one_it_names() {
    let other = "0a1b2c3d-0000-4000-8000-000000000001";
    let service = |uid: &str, controller: bool| json!({"apiVersion": "v1", "kind": "Service", "name": "web", "uid": uid, "controller": controller});
    let labelled = json!({"labels": {"kubernetes.io/service-name": "by-label"}});
    let owner = |references: Value| {
        let meta = overlaid(labelled.clone(), json!({"ownerReferences": references}));
        read_slice(json!({"metadata": meta})).owner
    };
    let uid = SliceOwner::Uid(Uid::parse(UID).unwrap());
    let by_label = SliceOwner::Name("by-label".into());
    assert_eq!(owner(json!([service(UID, true)])), uid);
    assert_eq!(owner(json!([service(other, false), service(UID, true)])), uid, "the controller comes first");
    assert_eq!(owner(json!([service(UID, false)])), uid);
    assert_eq!(owner(json!([])), by_label);
    assert_eq!(
        owner(json!([{"apiVersion": "v1", "kind": "Endpoints", "uid": UID, "controller": true}])),
        by_label
    );
    let knative = json!([{"apiVersion": "serving.knative.dev/v1", "kind": "Service", "uid": UID}]);
    assert_eq!(owner(knative), by_label, "others have a kind called Service too");
    assert_eq!(owner(json!([service("not-a-uid", true)])), by_label);
    assert_eq!(read_slice(json!({})).owner, SliceOwner::Nobody);
}

#[test]
fn a_slice_that_is_being_deleted_belongs_to_nobody() {
    let references = json!([{"apiVersion": "v1", "kind": "Service", "name": "web", "uid": UID}]);
    let labels = json!({"kubernetes.io/service-name": "web"});
    for meta in [json!({"ownerReferences": references}), json!({"labels": labels})] {
        assert_ne!(read_slice(json!({"metadata": meta})).owner, SliceOwner::Nobody);
        let deleting = overlaid(meta, json!({"deletionTimestamp": "2026-11-16T00:00:09Z"}));
        assert_eq!(read_slice(json!({"metadata": deleting})).owner, SliceOwner::Nobody);
    }
}

#[test]
fn the_ports_of_a_slice_are_read_and_odd_ones_name_nothing() {
    let slice = read_slice(json!({"ports": [
        {"name": "http", "protocol": "TCP", "port": 8080}, {"name": null, "port": null},
        {"name": "dns", "protocol": "UDP", "port": 53}, {"name": "odd", "protocol": "QUIC", "port": 1},
        {"name": "huge", "port": 70000}, {"name": "none", "port": 0}]}));
    let port = |name: &str, protocol, port| SlicePort { name: name.into(), protocol, port };
    assert_eq!(
        slice.ports,
        [
            port("http", Protocol::Tcp, Some(8080)),
            port("", Protocol::Tcp, None),
            port("dns", Protocol::Udp, Some(53))
        ]
    );
}

#[test]
fn the_node_of_an_endpoint_may_be_unknown() {
    let slice = read_slice(json!({"endpoints": [
        {"addresses": ["10.0.0.4"], "nodeName": "node-a"}, {"addresses": ["10.0.0.5"]},
        {"addresses": ["10.0.0.6"], "nodeName": ""}]}));
    let nodes: Vec<Option<&str>> = slice.endpoints.iter().map(|it| it.node.as_deref()).collect();
    assert_eq!(nodes, [Some("node-a"), None, None]);
}

#[test]
fn only_internal_addresses_of_a_node_count() {
    let node = read_node(json!({"status": {"addresses": [
        {"type": "Hostname", "address": "node-a"}, {"type": "ExternalIP", "address": "20.0.0.1"},
        {"type": "InternalIP", "address": "10.0.0.1"}, {"type": "InternalIP", "address": "FD00::1"},
        {"type": "InternalIP", "address": "soon"}, {"type": "InternalIP"}]}}));
    assert_eq!((&*node.name, node.version), ("node-a", 7));
    assert_eq!(node.internal_ips, ips(&["10.0.0.1", "fd00::1"]));
    assert!(read_node(json!({})).internal_ips.is_empty());
}

#[test]
fn a_pod_is_read_whole() {
    let all = read_pod(json!({
        "metadata": {"creationTimestamp": "2026-11-16T00:00:01Z", "deletionTimestamp": "2026-11-16T00:00:09Z"},
        "spec": {"nodeName": "node-a", "hostNetwork": true, "containers": [{"name": "x", "env": []}]},
        "status": {"phase": "Running", "podIP": "10.0.1.4", "podIPs": [{"ip": "10.0.1.4"}, {"ip": "FD00::4"}],
            "hostIP": "10.0.0.1", "hostIPs": [{"ip": "10.0.0.1"}]},
    }));
    let expected = PodObject {
        uid: Uid::parse(UID).unwrap(),
        name: sluice_model::ObjectName::new("shop", "web"),
        version: 41,
        egress: Some("Blue".into()),
        node: Some("node-a".into()),
        ips: ips(&["10.0.1.4", "fd00::4"]),
        host_ips: ips(&["10.0.0.1"]),
        phase: Phase::Running,
        terminating: true,
        host_network: true,
        created: 1_794_787_201,
    };
    assert_eq!(all, expected);
}

#[test]
fn a_pod_that_has_hardly_begun_is_read_too() {
    let young = read_pod(json!({"status": {"phase": "Pending"}}));
    assert_eq!((young.phase, young.created, young.terminating), (Phase::Pending, 0, false));
    assert!(young.ips.is_empty() && young.host_ips.is_empty() && young.node.is_none());
    let single = read_pod(json!({"status": {"podIP": "10.0.1.4", "hostIP": "10.0.0.1"}}));
    assert_eq!((single.ips, single.host_ips), (ips(&["10.0.1.4"]), ips(&["10.0.0.1"])));
    let unlabelled = read_pod(json!({"metadata": {"labels": null}}));
    assert_eq!(unlabelled.egress, None);
}

#[test]
fn only_a_pod_that_says_so_has_ended() {
    let phase = |word: Value| read_pod(json!({"status": {"phase": word}})).phase;
    assert_eq!(phase(json!("Succeeded")), Phase::Finished);
    assert_eq!(phase(json!("Failed")), Phase::Finished);
    assert_eq!(phase(json!("Running")), Phase::Running);
    assert_eq!(phase(json!("Unknown")), Phase::Running);
    assert_eq!(phase(json!(null)), Phase::Pending);
}

#[test]
fn odd_times_and_addresses_cost_a_pod_nothing_else() {
    let odd = read_pod(json!({"metadata": {"creationTimestamp": "yesterday"},
        "status": {"podIPs": [{"ip": "10.0.1"}, {}, {"ip": "10.0.1.4"}]}}));
    assert_eq!((odd.created, odd.ips), (0, ips(&["10.0.1.4"])));
}
