//! Networks with their subnets.

use serde_json::{Value, json};

use crate::stage::*;

fn with_subnets(subnets: Value) -> Value {
    let mut body = network();
    body["properties"]["subnets"] = subnets;
    body
}

fn subnet(name: &str, prefix: &str) -> Value {
    json!({ "name": name, "properties": { "addressPrefix": prefix } })
}

fn names(stage: &mut Stage) -> Vec<String> {
    let list = stage.get("virtualNetworks/vnet/subnets").body;
    let all = list["value"].as_array().unwrap().iter();
    all.map(|subnet| subnet["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_network_that_is_written_with_subnets_has_those_and_no_others() {
    let mut stage = Stage::new();
    let body = with_subnets(json!([subnet("pods", "10.0.0.0/24"), subnet("a", "10.0.1.0/24")]));
    stage.done(stage.put("virtualNetworks/vnet", body));
    assert_eq!(names(&mut stage), ["a", "pods"]);
    // Without the field they stay.
    let mut body = network();
    body["properties"].as_object_mut().unwrap().remove("subnets");
    stage.done(stage.put("virtualNetworks/vnet", body));
    assert_eq!(names(&mut stage), ["a", "pods"]);
    let body = with_subnets(json!([subnet("pods", "10.0.0.0/24"), subnet("b", "10.0.1.0/24")]));
    stage.done(stage.put("virtualNetworks/vnet", body));
    assert_eq!(names(&mut stage), ["b", "pods"]);
}

#[test]
fn a_network_cannot_lose_a_subnet_that_is_in_use_and_then_nothing_of_it_happens() {
    let mut stage = Stage::new();
    let before = stage.get("virtualNetworks/vnet").body;
    let body = with_subnets(json!([subnet("a", "10.0.1.0/24")]));
    let answer = stage.send(stage.put("virtualNetworks/vnet", body));
    assert_eq!(answer.refusal(), (400, "InUseSubnetCannotBeDeleted"));
    stage.wait(60);
    assert_eq!(stage.get("virtualNetworks/vnet").body, before);
}

#[test]
fn ranges_must_be_ranges_and_fit() {
    let mut stage = Stage::new();
    for (prefix, code) in [
        ("10.0.9.0", "InvalidAddressPrefixFormat"),
        ("10.0.9.1/24", "InvalidCIDRNotation"),
        ("10.1.0.0/24", "NetcfgInvalidSubnet"),
        ("10.0.0.128/25", "NetcfgSubnetRangesOverlap"),
    ] {
        let alone = stage.put("virtualNetworks/vnet/subnets/new", subnet("new", prefix));
        assert_eq!(stage.send(alone).refusal(), (400, code), "{prefix}");
        let body = with_subnets(json!([subnet("pods", "10.0.0.0/24"), subnet("new", prefix)]));
        assert_eq!(stage.send(stage.put("virtualNetworks/vnet", body)).refusal(), (400, code), "{prefix}");
    }
    let mut small = network();
    small["properties"] = json!({ "addressSpace": { "addressPrefixes": ["10.7.0.0/16"] } });
    assert_eq!(stage.send(stage.put("virtualNetworks/vnet", small)).refusal(), (400, "NetcfgInvalidSubnet"));
    let none = json!({ "location": "eastus", "properties": {} });
    assert_eq!(stage.send(stage.put("virtualNetworks/new", none)).refusal(), (400, "MissingAddressSpace"));
    let moved = stage.put("virtualNetworks/vnet/subnets/pods", subnet("pods", "10.0.9.0/24"));
    assert_eq!(stage.send(moved).refusal(), (400, "InUseSubnetCannotBeUpdated"));
}

#[test]
fn the_gateway_of_a_subnet_stays_unless_it_is_taken_off() {
    let mut stage = Stage::new();
    let tail = "virtualNetworks/vnet/subnets/pods";
    let gateway = json!({ "id": stage.id("serviceGateways/gw") });
    let attached = json!({ "properties": { "addressPrefix": "10.0.0.0/24", "serviceGateway": gateway } });
    stage.done(stage.put(tail, attached));
    stage.done(stage.put(tail, subnet("pods", "10.0.0.0/24")));
    assert_eq!(stage.get(tail).body["properties"]["serviceGateway"], gateway);
    stage.done(stage.put("virtualNetworks/vnet", network()));
    assert_eq!(stage.get(tail).body["properties"]["serviceGateway"], gateway);
    let detached = json!({ "properties": { "addressPrefix": "10.0.0.0/24", "serviceGateway": null } });
    stage.done(stage.put(tail, detached));
    assert_eq!(stage.get(tail).body["properties"].get("serviceGateway"), None);
}

#[test]
fn what_networks_have_beyond_the_model_is_refused_by_name() {
    let mut stage = Stage::new();
    for (path, value) in [
        ("virtualNetworkPeerings", json!([{ "name": "p" }])),
        ("enableDdosProtection", json!(true)),
        ("ddosProtectionPlan", json!({ "id": "/subscriptions/s/x" })),
    ] {
        let mut body = network();
        body["properties"][path] = value;
        let answer = stage.send(stage.put("virtualNetworks/vnet", body));
        assert_eq!(answer.refusal(), (400, "NotSupportedByEmulator"), "{path}");
    }
    for field in ["networkSecurityGroup", "routeTable", "natGateway"] {
        let mut body = subnet("new", "10.0.1.0/24");
        body["properties"][field] = json!({ "id": "/subscriptions/s/x" });
        let answer = stage.send(stage.put("virtualNetworks/vnet/subnets/new", body));
        assert_eq!(answer.refusal(), (400, "NotSupportedByEmulator"), "{field}");
    }
}

#[test]
fn a_gateway_has_an_address_of_its_subnet() {
    let mut stage = Stage::new();
    let target = stage.get("serviceGateways/gw").body["properties"]["routeTargetAddress"].clone();
    assert_eq!(
        (&target["privateIPAddress"], &target["privateIPAllocationMethod"]),
        (&json!("10.0.0.4"), &json!("Dynamic"))
    );
    stage.done(stage.put("serviceGateways/gw2", gateway("vnet", "pods")));
    let second = stage.get("serviceGateways/gw2").body;
    assert_eq!(second["properties"]["routeTargetAddress"]["privateIPAddress"], "10.0.0.5");
    for (address, code) in [
        ("10.0.1.4", "PrivateIPAddressNotInSubnet"),
        ("10.0.0.3", "PrivateIPAddressInReservedRange"),
        ("10.0.0.255", "PrivateIPAddressInReservedRange"),
        ("10.0.0.4", "PrivateIPAddressIsAllocated"),
        ("fd00::4", "InvalidRequestFormat"),
        ("pods", "InvalidRequestFormat"),
    ] {
        let mut body = gateway("vnet", "pods");
        body["properties"]["routeTargetAddress"]["privateIPAddress"] = json!(address);
        let answer = stage.send(stage.put("serviceGateways/gw3", body));
        assert_eq!(answer.refusal(), (400, code), "{address}");
    }
}

#[test]
fn a_gateway_may_have_an_address_of_each_family() {
    let mut stage = Stage::new();
    let mut wide = network();
    wide["properties"]["addressSpace"]["addressPrefixes"] = json!(["10.0.0.0/16", "fd00::/48"]);
    wide["properties"]["subnets"] = json!([
        subnet("pods", "10.0.0.0/24"),
        { "name": "both", "properties": { "addressPrefixes": ["10.0.1.0/24", "fd00::/64"] } },
    ]);
    stage.done(stage.put("virtualNetworks/vnet", wide));
    let mut body = gateway("vnet", "both");
    body["properties"]["routeTargetAddressV6"] = body["properties"]["routeTargetAddress"].clone();
    stage.done(stage.put("serviceGateways/dual", body));
    let read = stage.get("serviceGateways/dual").body;
    assert_eq!(read["properties"]["routeTargetAddress"]["privateIPAddress"], "10.0.1.4");
    assert_eq!(read["properties"]["routeTargetAddressV6"]["privateIPAddress"], "fd00::4");
    let mut body = gateway("vnet", "both");
    body["properties"]["routeTargetAddressV6"] =
        json!({ "subnet": { "id": stage.id("virtualNetworks/vnet/subnets/nope") } });
    assert_eq!(
        stage.send(stage.put("serviceGateways/dual", body)).refusal(),
        (400, "InvalidResourceReference")
    );
}
