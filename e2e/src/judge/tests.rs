//! The judge is judged: a small world in agreement, and everything that spoils it must be seen.

use serde_json::{Value, json};

use super::cluster::Cluster;
use super::{Contract, differences, found, wanted};
use crate::azure::{gateway_id, network_id, resource_id, subnet_id};

const UID: &str = "11111111-2222-4333-8444-555555555555";

/// Kubernetes and Azure in agreement: a Service with one pod, which also has an egress.
fn agreeing() -> (Value, Value) {
    let kubernetes = json!({
        "services": [{
            "metadata": {"namespace": "shop", "name": "web", "uid": UID, "finalizers": ["sluice.dev/cleanup"]},
            "spec": {
                "type": "LoadBalancer", "loadBalancerClass": "sluice.dev/e2e", "ipFamilies": ["IPv4"],
                "ports": [{"port": 80, "targetPort": 8080, "protocol": "TCP"}],
            },
            "status": {
                "loadBalancer": {"ingress": [{"ip": "198.18.0.1", "ipMode": "VIP"}]},
                "conditions": [
                    condition("LoadBalancerProvisioning", "False"),
                    condition("LoadBalancerServing", "True"),
                ],
            },
        }],
        "slices": [{
            "metadata": {"namespace": "shop", "name": "web-x", "labels": {"kubernetes.io/service-name": "web"}},
            "addressType": "IPv4",
            "endpoints": [{"addresses": ["10.1.0.1"], "nodeName": "a", "conditions": {"ready": true}}],
        }],
        "nodes": [{
            "metadata": {"name": "a"},
            "status": {"addresses": [
                {"type": "Hostname", "address": "a"},
                {"type": "InternalIP", "address": "10.0.0.9"},
                {"type": "InternalIP", "address": "10.0.0.5"},
            ]},
        }],
        "pods": [{
            "metadata": {
                "namespace": "shop", "name": "web-1", "uid": "p",
                "labels": {"kubernetes.azure.com/service-egress-gateway": "Blue"},
            },
            "spec": {"nodeName": "a", "containers": []},
            "status": {"phase": "Running", "podIPs": [{"ip": "10.1.0.1"}]},
        }],
    });
    let lb = resource_id("loadBalancers", UID);
    let frontend = format!("{lb}/frontendIPConfigurations/frontend");
    let pool = format!("{lb}/backendAddressPools/{UID}");
    let nat = resource_id("natGateways", "blue");
    let azure = json!({
        "subnets": [{"id": subnet_id(), "provisioningState": "Succeeded", "serviceGateway": gateway_id()}],
        "publicIPAddresses": [
            ip(&format!("{UID}-pip"), "198.18.0.1", &frontend, UID, "service/shop/web"),
            ip("blue-pip", "198.18.0.2", &nat, "blue", "egress/blue"),
        ],
        "loadBalancers": [{
            "id": lb, "provisioningState": "Succeeded", "tags": tags(UID, "service/shop/web"),
            "publicIPAddress": resource_id("publicIPAddresses", &format!("{UID}-pip")).to_uppercase(),
            "pools": [UID],
            "rules": [{"protocol": "Tcp", "frontendPort": 80, "backendPort": 8080, "idleTimeoutInMinutes": 4}],
        }],
        "natGateways": [{
            "id": nat, "provisioningState": "Succeeded", "tags": tags("blue", "egress/blue"),
            "serviceGateway": gateway_id(),
            "publicIpAddresses": [resource_id("publicIPAddresses", "blue-pip")],
            "publicIpAddressesV6": [],
        }],
        "serviceGateways": [{
            "id": gateway_id(), "provisioningState": "Succeeded",
            "tags": {"sluice-cluster": "e2e", "sluice-created": "true"},
            "virtualNetwork": network_id(),
            "services": [
                {"name": UID, "serviceType": "Inbound", "isDefault": false,
                 "loadBalancerBackendPools": [pool], "publicNatGatewayId": null},
                {"name": "blue", "serviceType": "Outbound", "isDefault": false,
                 "loadBalancerBackendPools": [], "publicNatGatewayId": nat},
            ],
            "addressLocations": [{
                "addressLocation": "10.0.0.5",
                "addresses": [{"address": "10.1.0.1", "services": ["blue", UID]}],
            }],
        }],
        "operations": [],
    });
    (kubernetes, azure)
}

fn condition(kind: &str, status: &str) -> Value {
    json!({
        "type": kind, "status": status, "reason": "Provisioned", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    })
}

fn tags(identity: &str, owner: &str) -> Value {
    json!({"sluice-cluster": "e2e", "sluice-identity": identity, "sluice-owner": owner})
}

fn ip(name: &str, address: &str, user: &str, identity: &str, owner: &str) -> Value {
    json!({
        "id": resource_id("publicIPAddresses", name), "provisioningState": "Succeeded", "family": "IPv4",
        "ipAddress": address, "usedBy": user, "tags": tags(identity, owner),
    })
}

fn contract() -> Contract {
    Contract {
        class: Some("sluice.dev/e2e".into()),
        cluster_id: "e2e".into(),
        default_outbound: false,
        ..Contract::default()
    }
}

fn judged(kubernetes: &Value, azure: &Value, contract: &Contract) -> Vec<String> {
    let part = |name: &str| kubernetes[name].clone();
    let cluster = Cluster {
        services: serde_json::from_value(part("services")).unwrap(),
        slices: serde_json::from_value(part("slices")).unwrap(),
        nodes: serde_json::from_value(part("nodes")).unwrap(),
        pods: serde_json::from_value(part("pods")).unwrap(),
    };
    let found = found::paint(&cluster, contract, azure);
    let wanted = wanted::paint(&cluster, contract, &found);
    differences(&wanted, &found)
}

#[test]
fn a_world_in_agreement_has_no_difference() {
    let (kubernetes, azure) = agreeing();
    assert_eq!(judged(&kubernetes, &azure, &contract()), Vec::<String>::new());
}

#[test]
fn everything_that_spoils_azure_is_seen() {
    let spoils: &[(&str, Value)] = &[
        ("/loadBalancers/0/rules/0/backendPort", json!(8081)),
        ("/loadBalancers/0/rules/0/idleTimeoutInMinutes", json!(5)),
        ("/loadBalancers/0/rules", json!([])),
        ("/loadBalancers/0/tags/sluice-cluster", json!("other")),
        ("/loadBalancers/0/provisioningState", json!("Failed")),
        ("/loadBalancers", json!([])),
        ("/publicIPAddresses/0/usedBy", Value::Null),
        ("/publicIPAddresses/0/ipAddress", json!("198.18.0.9")),
        ("/publicIPAddresses/1/tags", json!({})),
        ("/natGateways/0/serviceGateway", Value::Null),
        ("/natGateways/0/publicIpAddresses", json!([])),
        ("/serviceGateways/0/services/0/loadBalancerBackendPools", json!([])),
        ("/serviceGateways/0/services/1/isDefault", json!(true)),
        ("/serviceGateways/0/services/1/publicNatGatewayId", Value::Null),
        ("/serviceGateways/0/addressLocations/0/addressLocation", json!("10.0.0.9")),
        ("/serviceGateways/0/addressLocations/0/addresses/0/services", json!([UID])),
        ("/serviceGateways/0/addressLocations/0/addresses", json!([])),
        ("/serviceGateways/0/addressLocations", json!([])),
        ("/subnets/0/serviceGateway", Value::Null),
    ];
    for (path, value) in spoils {
        let (kubernetes, mut azure) = agreeing();
        *azure.pointer_mut(path).unwrap() = value.clone();
        assert!(!judged(&kubernetes, &azure, &contract()).is_empty(), "{path} = {value} is not seen");
    }
}

#[test]
fn everything_that_spoils_kubernetes_is_seen() {
    let spoils: &[(&str, Value)] = &[
        ("/services/0/metadata/finalizers", json!([])),
        ("/services/0/status/loadBalancer/ingress", json!([])),
        ("/services/0/status/loadBalancer/ingress/0/ip", json!("198.18.0.7")),
        ("/services/0/status/loadBalancer/ingress/0/ipMode", json!("Proxy")),
        ("/services/0/status/conditions/1/status", json!("False")),
        ("/services/0/status/conditions/0/reason", json!("Updating")),
        ("/services/0/spec/type", json!("ClusterIP")),
        ("/services/0/spec/loadBalancerClass", json!("other")),
        ("/services/0/spec/ports/0/protocol", json!("UDP")),
        ("/services/0/spec/sessionAffinity", json!("ClientIP")),
        ("/services", json!([])),
        ("/slices/0/endpoints/0/conditions/ready", json!(false)),
        ("/slices/0/metadata/labels", json!({})),
        ("/nodes", json!([])),
        ("/nodes/0/status/addresses/2/address", json!("10.0.0.6")),
        ("/pods/0/status/phase", json!("Succeeded")),
        ("/pods/0/metadata/labels", json!({"kubernetes.azure.com/service-egress-gateway": "green"})),
        ("/pods/0/spec/hostNetwork", json!(true)),
        ("/pods", json!([])),
    ];
    for (path, value) in spoils {
        let (mut kubernetes, azure) = agreeing();
        match kubernetes.pointer_mut(path) {
            Some(place) => *place = value.clone(),
            None => {
                let (parent, field) = path.rsplit_once('/').unwrap();
                kubernetes.pointer_mut(parent).unwrap()[field] = value.clone();
            }
        }
        assert!(!judged(&kubernetes, &azure, &contract()).is_empty(), "{path} = {value} is not seen");
    }
}

#[test]
fn what_is_somebody_elses_is_in_no_picture() {
    let (kubernetes, mut azure) = agreeing();
    let theirs = ip("green-pip", "198.18.0.3", "", "green", "nobody");
    azure["publicIPAddresses"].as_array_mut().unwrap().push(theirs);
    assert_eq!(judged(&kubernetes, &azure, &contract()).len(), 1);
    let mut contract = contract();
    contract.exceptions.foreign.insert(wanted::lower(&resource_id("publicIPAddresses", "green-pip")));
    assert_eq!(judged(&kubernetes, &azure, &contract), Vec::<String>::new());
}

#[test]
fn endings_count_only_when_nobody_is_ready() {
    let (mut kubernetes, azure) = agreeing();
    let ending = json!({"ready": false, "serving": true, "terminating": true});
    kubernetes["slices"][0]["endpoints"][0]["conditions"] = ending.clone();
    assert_eq!(judged(&kubernetes, &azure, &contract()), Vec::<String>::new());
    let other = json!({"addresses": ["10.1.0.2"], "nodeName": "a", "conditions": {"ready": true}});
    kubernetes["slices"][0]["endpoints"].as_array_mut().unwrap().push(other);
    assert_eq!(judged(&kubernetes, &azure, &contract()).len(), 2);
}

#[test]
fn what_is_missing_left_over_or_different_is_named() {
    let picture = |rows: &[(&str, Value)]| {
        rows.iter().map(|(name, it)| (name.to_string(), it.clone())).collect::<super::Picture>()
    };
    let wanted = picture(&[("a", json!(1)), ("b", json!(2)), ("c", json!(3))]);
    let found = picture(&[("b", json!(2)), ("c", json!(4)), ("d", json!(5))]);
    let lines = differences(&wanted, &found);
    assert_eq!(lines.len(), 3, "{lines:?}");
    for (line, words) in lines.iter().zip(["a is missing", "c is\n", "d is left over"]) {
        assert!(line.starts_with(words), "{line}");
    }
    assert!(differences(&wanted, &wanted).is_empty());
}
