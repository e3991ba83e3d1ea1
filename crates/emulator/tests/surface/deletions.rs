//! What stands in the way of a deletion.

use serde_json::json;

use crate::stage::*;

#[test]
fn what_is_used_cannot_be_deleted() {
    let mut stage = Stage::new();
    stage.load_balancer("web");
    stage.nat_gateway("blue");
    stage.services(json!([stage.inbound("web"), stage.outbound("blue")]));
    for (tail, code) in [
        ("publicIPAddresses/web-pip", "PublicIPAddressCannotBeDeleted"),
        ("publicIPAddresses/blue-pip", "PublicIPAddressCannotBeDeleted"),
        ("loadBalancers/web", "InUseLoadBalancerCannotBeDeleted"),
        ("natGateways/blue", "InUseNatGatewayCannotBeDeleted"),
        ("serviceGateways/gw", "InUseServiceGatewayCannotBeDeleted"),
        ("virtualNetworks/vnet/subnets/pods", "InUseSubnetCannotBeDeleted"),
        ("virtualNetworks/vnet", "InUseSubnetCannotBeDeleted"),
    ] {
        let answer = stage.delete(tail);
        assert_eq!(answer.refusal(), (400, code), "{tail}");
        assert_eq!(answer.body["error"]["details"], json!([]), "{tail}: the provider refuses it");
        assert_eq!(stage.get(tail).status, 200, "{tail}");
    }
}

#[test]
fn a_service_with_mapped_addresses_cannot_be_deleted() {
    let mut stage = Stage::new();
    stage.load_balancer("web");
    stage.services(json!([stage.inbound("web")]));
    stage.locations(json!([at("10.1.0.4", &[("10.2.0.4", &["web"])])]));
    let body = json!({ "action": "PartialUpdate", "serviceRequests": [unregister("web")] });
    let answer = stage.post("serviceGateways/gw/updateServices", body.clone());
    assert_eq!(answer.refusal(), (400, "ServiceWithOverlayMappingsCannotBeDeleted"));
    stage.locations(json!([at("10.1.0.4", &[("10.2.0.4", &[])])]));
    assert_eq!(stage.post("serviceGateways/gw/updateServices", body).status, 202);
}

#[test]
fn everything_can_be_taken_apart_in_the_right_order() {
    let mut stage = Stage::new();
    stage.load_balancer("web");
    stage.nat_gateway("blue");
    stage.services(json!([stage.inbound("web"), stage.outbound("blue")]));
    stage.services(json!([
        service("web", json!({ "loadBalancerBackendPools": [] })),
        service("blue", json!({ "publicNatGatewayId": null })),
    ]));
    let finish = |stage: &mut Stage, tail: &str| {
        let answer = stage.delete(tail);
        assert_eq!(answer.status, 202, "{tail}: {answer:?}");
        assert_eq!(stage.finish(&answer), json!({ "status": "Succeeded" }), "{tail}");
        let location = answer.header("location").unwrap().to_owned();
        assert_eq!(stage.follow(&location).status, 204, "{tail}");
        assert_eq!(stage.get(tail).status, 404, "{tail}");
        assert_eq!(stage.delete(tail).status, 204, "{tail}: what is not there is gone");
    };
    finish(&mut stage, "loadBalancers/web");
    let mut detached = stage.nat_gateway_body("blue");
    detached["properties"]["serviceGateway"] = json!(null);
    stage.done(stage.put("natGateways/blue", detached));
    stage.services(json!([unregister("web"), unregister("blue")]));
    for tail in [
        "natGateways/blue",
        "publicIPAddresses/blue-pip",
        "publicIPAddresses/web-pip",
        "serviceGateways/gw",
        "virtualNetworks/vnet/subnets/pods",
        "virtualNetworks/vnet",
    ] {
        finish(&mut stage, tail);
    }
}

#[test]
fn a_resource_on_its_way_out_says_so() {
    let mut stage = Stage::new();
    stage.public_ip("web-pip");
    stage.delete("publicIPAddresses/web-pip");
    assert_eq!(stage.get("publicIPAddresses/web-pip").state(), "Deleting");
    let answer = stage.send(stage.put("publicIPAddresses/web-pip", public_ip("IPv4")));
    assert_eq!(answer.status, 429, "{answer:?}");
}

#[test]
fn unknown_parents_are_not_found_in_azures_words() {
    let mut stage = Stage::new();
    let lost = stage.get_path(&stage.path("publicIPAddresses/x").replace("/rg/", "/nope/"));
    assert_eq!(lost.refusal(), (404, "ResourceGroupNotFound"));
    assert_eq!(lost.body["error"]["message"], "Resource group 'nope' could not be found.");
    assert_eq!(lost.header("x-ms-failure-cause"), Some("gateway"));
    let put = stage
        .put("virtualNetworks/nope/subnets/s", json!({ "properties": { "addressPrefix": "10.0.1.0/24" } }));
    assert_eq!(stage.send(put).refusal(), (404, "ParentResourceNotFound"));
    let lost = stage.get("virtualNetworks/nope/subnets/s");
    assert_eq!(lost.refusal(), (404, "ResourceNotFound"));
    assert_eq!(stage.get("virtualNetworks/vnet/subnets/nope").refusal(), (404, "NotFound"));
    for tail in ["services", "addressLocations"] {
        assert_eq!(stage.get(&format!("serviceGateways/nope/{tail}")).refusal(), (404, "ResourceNotFound"));
    }
    for tail in ["updateServices", "updateAddressLocations"] {
        let lost = stage.post(&format!("serviceGateways/nope/{tail}"), json!({ "nonsense": 1 }));
        assert_eq!(lost.refusal(), (404, "ResourceNotFound"), "{tail}");
    }
    let gone = stage.put("publicIPAddresses/x", public_ip("IPv4"));
    let uri = gone.uri().to_string().replace("/rg/", "/nope/");
    let mut gone = gone;
    *gone.uri_mut() = uri.parse().unwrap();
    assert_eq!(stage.send(gone).refusal(), (404, "ResourceGroupNotFound"));
}
