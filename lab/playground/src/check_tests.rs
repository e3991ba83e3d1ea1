//! The check against two small worlds that agree, and one mistake at a time.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;
use crate::azure::resource_id;
use crate::kinds::{EndpointSlice, Node, Pod, Service};

fn object<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("an object of a test can be read")
}

fn azure() -> Value {
    let ip = |name: &str, address: &str| {
        json!({
            "id": resource_id("publicIPAddresses", name),
            "ipAddress": address,
            "provisioningState": "Succeeded",
        })
    };
    let nat = |name: &str| json!({"id": resource_id("natGateways", name), "provisioningState": "Succeeded"});
    json!({
        "operations": [],
        "publicIPAddresses": [ip("u1-pip", "20.0.0.1"), ip("blue-pip", "20.0.0.2"), ip("default-natgw-pip", "20.0.0.3")],
        "loadBalancers": [{
            "id": resource_id("loadBalancers", "u1"),
            "provisioningState": "Succeeded",
            "rules": [{"protocol": "Tcp", "frontendPort": 80, "backendPort": 8080}],
        }],
        "natGateways": [nat("blue"), nat("default-natgw")],
        "serviceGateways": [{
            "id": resource_id("serviceGateways", "servicegateway"),
            "services": [{"name": "u1"}, {"name": "blue"}, {"name": "default-natgw"}],
            "addressLocations": [{
                "addressLocation": "10.1.0.4",
                "addresses": [
                    {"address": "10.2.0.1", "services": ["u1"]},
                    {"address": "10.2.0.2", "services": ["blue"]},
                ],
            }],
        }],
    })
}

fn cluster() -> Cluster {
    let service: Service = object(json!({
        "metadata": {
            "namespace": "default", "name": "web", "uid": "u1", "finalizers": ["sluice.dev/cleanup"],
        },
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80, "targetPort": 8080}]},
        "status": {"loadBalancer": {"ingress": [{"ip": "20.0.0.1"}]}},
    }));
    let slice: EndpointSlice = object(json!({
        "metadata": {
            "namespace": "default", "name": "web-1", "labels": {"kubernetes.io/service-name": "web"},
        },
        "addressType": "IPv4",
        "endpoints": [
            {"addresses": ["10.2.0.1"], "nodeName": "n", "conditions": {"ready": true}},
            {"addresses": ["10.2.0.9"], "nodeName": "n", "conditions": {"ready": false}},
        ],
    }));
    let node: Node = object(json!({
        "metadata": {"name": "n"},
        "status": {"addresses": [{"type": "InternalIP", "address": "10.1.0.4"}]},
    }));
    let pod: Pod = object(json!({
        "metadata": {"namespace": "default", "name": "crawler", "labels": {(super::super::cluster::EGRESS_LABEL): "blue"}},
        "spec": {"nodeName": "n", "containers": []},
        "status": {"phase": "Running", "podIP": "10.2.0.2"},
    }));
    Cluster {
        services: vec![service],
        slices: vec![slice],
        nodes: vec![node],
        pods: vec![pod],
        deployments: vec![],
    }
}

fn judged(change: impl FnOnce(&mut Cluster, &mut Value)) -> Vec<String> {
    let (mut cluster, mut azure) = (cluster(), azure());
    change(&mut cluster, &mut azure);
    differences(&Seen { cluster, azure: State(azure) })
}

#[test]
fn two_worlds_that_agree_are_at_peace() {
    assert_eq!(judged(|_, _| ()), Vec::<String>::new());
}

#[test]
fn every_single_mistake_is_told_in_words() {
    type Change = fn(&mut Cluster, &mut Value);
    let mistakes: &[(Change, &str)] = &[
        (
            |_, azure| azure["publicIPAddresses"][0]["ipAddress"] = json!("20.9.9.9"),
            "Service default/web publishes 20.0.0.1 and its public IP is 20.9.9.9",
        ),
        (|_, azure| azure["loadBalancers"] = json!([]), "load balancer u1 of Service default/web is missing"),
        (
            |_, azure| azure["loadBalancers"][0]["rules"][0]["backendPort"] = json!(81),
            "the load balancer of default/web has the rules",
        ),
        (
            |_, azure| {
                azure["serviceGateways"][0]["services"] = json!([{"name": "u1"}, {"name": "default-natgw"}])
            },
            "registration blue is missing",
        ),
        (
            |_, azure| azure["serviceGateways"][0]["addressLocations"] = json!([]),
            "the gateway has 10.2.0.1 at node 10.1.0.4 for nothing, not for default/web",
        ),
        (
            |cluster, _| cluster.slices.clear(),
            "the gateway has 10.2.0.1 at node 10.1.0.4 for default/web, not for nothing",
        ),
        (|cluster, _| cluster.services.clear(), "load balancer u1 is left over"),
        (|cluster, _| cluster.services.clear(), "public IP u1-pip is left over"),
        (|cluster, _| cluster.pods.clear(), "NAT gateway blue is left over"),
        (|_, azure| azure["serviceGateways"] = json!([]), "there is no service gateway"),
        (
            |_, azure| {
                azure["operations"] = json!([{"work": "delete", "target": resource_id("natGateways", "x")}])
            },
            "Azure is still at work: delete of natGateways/x",
        ),
        (
            |cluster, _| cluster.services[0].metadata.finalizers.clear(),
            "Service default/web has no finalizer",
        ),
        (
            |_, azure| azure["natGateways"][0]["provisioningState"] = json!("Failed"),
            "NAT gateway blue is Failed",
        ),
    ];
    for (change, expected) in mistakes {
        let lines = judged(change);
        assert!(lines.iter().any(|line| line.starts_with(expected)), "{expected}: {lines:#?}");
    }
}

#[test]
fn a_service_that_is_no_load_balancer_any_more_must_be_free() {
    let lines = judged(|cluster, _| {
        cluster.services[0].spec.kind = "ClusterIP".to_owned();
    });
    assert!(
        lines[0].starts_with("Service default/web is no load balancer, and has a finalizer"),
        "{lines:#?}"
    );
    assert!(lines.contains(&"load balancer u1 is left over".to_owned()), "{lines:#?}");
}

#[test]
fn a_deployment_that_is_not_settled_is_no_peace() {
    let lines = judged(|cluster, _| {
        cluster.deployments.push(object(json!({
            "metadata": {"name": "web", "generation": 2},
            "spec": {"replicas": 3, "selector": {}, "template": {}},
            "status": {"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 1},
        })));
    });
    assert_eq!(lines, ["deployment web: 1 of 3 pods are ready, 3 of 3 are new"]);
}
