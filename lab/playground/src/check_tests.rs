//! The comparison of a small cluster and its Azure, and of one difference at a time.

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
fn a_cluster_and_its_azure_that_match_have_no_differences() {
    assert_eq!(judged(|_, _| ()), Vec::<String>::new());
}

#[test]
fn each_difference_is_a_line() {
    type Change = fn(&mut Cluster, &mut Value);
    let mistakes: &[(Change, &str)] = &[
        (
            |_, azure| azure["publicIPAddresses"][0]["ipAddress"] = json!("20.9.9.9"),
            "Service default/web has the public IP 20.0.0.1 in its status and 20.9.9.9 in Azure",
        ),
        (|_, azure| azure["loadBalancers"] = json!([]), "load balancer u1 of Service default/web is missing"),
        (
            |_, azure| azure["loadBalancers"][0]["rules"][0]["backendPort"] = json!(81),
            "load balancer of Service default/web has the rules",
        ),
        (
            |_, azure| {
                azure["serviceGateways"][0]["services"] = json!([{"name": "u1"}, {"name": "default-natgw"}])
            },
            "registration blue is missing",
        ),
        (
            |_, azure| azure["serviceGateways"][0]["addressLocations"] = json!([]),
            "address 10.2.0.1 on node 10.1.0.4 is programmed for none; desired: default/web",
        ),
        (
            |cluster, _| cluster.slices.clear(),
            "address 10.2.0.1 on node 10.1.0.4 is programmed for default/web; desired: none",
        ),
        (|cluster, _| cluster.services.clear(), "load balancer u1 is not desired"),
        (|cluster, _| cluster.services.clear(), "public IP u1-pip is not desired"),
        (|cluster, _| cluster.pods.clear(), "NAT gateway blue is not desired"),
        (|_, azure| azure["serviceGateways"] = json!([]), "the service gateway is missing"),
        (
            |_, azure| {
                azure["operations"] = json!([{"work": "delete", "target": resource_id("natGateways", "x")}])
            },
            "Azure operation in progress: delete of natGateways/x",
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
fn a_service_that_changed_its_type_must_lose_finalizer_and_public_ip() {
    let lines = judged(|cluster, _| {
        cluster.services[0].spec.kind = "ClusterIP".to_owned();
    });
    assert!(lines[0].starts_with("Service default/web has a finalizer or a public IP but"), "{lines:#?}");
    assert!(lines.contains(&"load balancer u1 is not desired".to_owned()), "{lines:#?}");
}

#[test]
fn a_deployment_with_pods_that_are_not_ready_is_a_difference() {
    let lines = judged(|cluster, _| {
        cluster.deployments.push(object(json!({
            "metadata": {"name": "web", "generation": 2},
            "spec": {"replicas": 3, "selector": {}, "template": {}},
            "status": {"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 1},
        })));
    });
    assert_eq!(lines, ["Deployment web: 1 of 3 pods ready, 3 of 3 pods up to date"]);
}
