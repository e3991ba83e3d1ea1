//! The gateway's services and address locations.

use serde_json::{Value, json};

use crate::stage::*;

const SERVICES: &str = "serviceGateways/gw/updateServices";
const LOCATIONS: &str = "serviceGateways/gw/updateAddressLocations";

fn registered(stage: &mut Stage) -> Vec<String> {
    let list = stage.get("serviceGateways/gw/services").body;
    list["value"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect()
}

fn bound(stage: &mut Stage) -> Value {
    stage.get("serviceGateways/gw/addressLocations").body["value"].clone()
}

#[test]
fn services_are_registered_read_changed_and_unregistered() {
    let mut stage = Stage::new();
    stage.load_balancer("web");
    stage.nat_gateway("blue");
    let answer = stage.post(SERVICES, json!({ "action": "PartialUpdate", "serviceRequests": [stage.inbound("web"), stage.outbound("blue")] }));
    assert_eq!((answer.status, &answer.body), (202, &Value::Null));
    assert_eq!(registered(&mut stage), [""; 0], "nothing is registered before the operation ends");
    assert_eq!(stage.finish(&answer), json!({ "status": "Succeeded" }));
    let location = answer.header("location").unwrap().to_owned();
    assert_eq!(stage.follow(&location).status, 204);
    let list = stage.get("serviceGateways/gw/services").body["value"].clone();
    let pool = stage.id("loadBalancers/web/backendAddressPools/web");
    assert_eq!(
        list,
        json!([
            {
                "name": "blue",
                "properties": {
                    "serviceType": "Outbound",
                    "isDefault": false,
                    "loadBalancerBackendPools": [],
                    "publicNatGatewayId": stage.id("natGateways/blue"),
                },
            },
            {
                "name": "web",
                "properties": {
                    "serviceType": "Inbound",
                    "isDefault": false,
                    "loadBalancerBackendPools": [{ "name": "web", "id": pool }],
                },
            },
        ])
    );
    assert_eq!(stage.get("serviceGateways/gw").body["properties"]["services"], list);
    // What a partial update leaves out stays.
    stage.services(json!([service("web", json!({ "isDefault": true }))]));
    let web = stage.get("serviceGateways/gw/services").body["value"][1].clone();
    assert_eq!(
        (&web["properties"]["isDefault"], &web["properties"]["loadBalancerBackendPools"][0]["id"]),
        (&json!(true), &json!(pool))
    );
    stage.services(json!([service("blue", json!({ "publicNatGatewayId": null }))]));
    let blue = stage.get("serviceGateways/gw/services").body["value"][0].clone();
    assert_eq!(blue["properties"].get("publicNatGatewayId"), None);
    stage.services(json!([unregister("WEB"), unregister("never")]));
    assert_eq!(registered(&mut stage), ["blue"]);
}

#[test]
fn a_full_update_of_services_leaves_exactly_those_that_it_names() {
    let mut stage = Stage::new();
    for name in ["a", "b", "c"] {
        stage.load_balancer(name);
    }
    stage.services(json!([stage.inbound("a"), stage.inbound("b")]));
    let full = json!({ "action": "FullUpdate", "serviceRequests": [stage.inbound("b"), stage.inbound("c")] });
    let answer = stage.post(SERVICES, full);
    assert_eq!(stage.finish(&answer), json!({ "status": "Succeeded" }));
    assert_eq!(registered(&mut stage), ["b", "c"]);
    // A service that would go and still has addresses refuses the whole.
    stage.locations(json!([at("10.1.0.4", &[("10.2.0.4", &["b"])])]));
    let answer = stage.post(SERVICES, json!({ "action": "FullUpdate", "serviceRequests": [] }));
    assert_eq!(answer.refusal(), (400, "ServiceWithOverlayMappingsCannotBeDeleted"));
    assert_eq!(registered(&mut stage), ["b", "c"]);
    // What a full update leaves out of a service is gone as well.
    stage.services(json!([service("b", json!({ "isDefault": true }))]));
    let bare = service("b", json!({ "serviceType": "Inbound" }));
    let answer = stage
        .post(SERVICES, json!({ "action": "FullUpdate", "serviceRequests": [bare, stage.inbound("c")] }));
    stage.finish(&answer);
    let read = stage.get("serviceGateways/gw/services").body["value"][0]["properties"].clone();
    assert_eq!((&read["isDefault"], &read["loadBalancerBackendPools"]), (&json!(false), &json!([])));
    // A list that was forgotten is not an empty one.
    let answer = stage.post(SERVICES, json!({ "action": "FullUpdate" }));
    assert_eq!(answer.refusal(), (400, "InvalidRequestFormat"));
}

#[test]
fn locations_are_bound_changed_and_unbound() {
    let mut stage = Stage::new();
    for name in ["a", "b"] {
        stage.load_balancer(name);
    }
    stage.services(json!([stage.inbound("a"), stage.inbound("b")]));
    stage.locations(json!([
        at("10.1.0.4", &[("10.2.0.4", &["a"]), ("10.2.0.5", &["b", "a"])]),
        at("fd00::1", &[("fd01::1", &["a"])]),
    ]));
    assert_eq!(
        bound(&mut stage),
        json!([
            {
                "addressLocation": "10.1.0.4",
                "addresses": [
                    { "address": "10.2.0.4", "services": ["a"] },
                    { "address": "10.2.0.5", "services": ["a", "b"] },
                ],
            },
            { "addressLocation": "fd00::1", "addresses": [{ "address": "fd01::1", "services": ["a"] }] },
        ])
    );
    // A full update of one location replaces its addresses; a partial one without any removes it.
    let mut full = at("10.1.0.4", &[("10.2.0.6", &["b"])]);
    full["addressUpdateAction"] = json!("FullUpdate");
    stage.locations(json!([full, at("fd00::1", &[])]));
    assert_eq!(
        bound(&mut stage),
        json!([{ "addressLocation": "10.1.0.4", "addresses": [{ "address": "10.2.0.6", "services": ["b"] }] }])
    );
    stage.locations(json!([at("10.1.0.4", &[("10.2.0.6", &[])])]));
    assert_eq!(bound(&mut stage), json!([]));
}

#[test]
fn a_full_update_of_locations_leaves_exactly_those_that_it_names() {
    let mut stage = Stage::new();
    stage.load_balancer("a");
    stage.services(json!([stage.inbound("a")]));
    stage.locations(json!([
        at("10.1.0.4", &[("10.2.0.4", &["a"]), ("10.2.0.5", &["a"])]),
        at("10.1.0.5", &[("10.2.0.6", &["a"])]),
    ]));
    let body =
        json!({ "action": "FullUpdate", "addressLocations": [at("10.1.0.4", &[("10.2.0.5", &["a"])])] });
    let answer = stage.post(LOCATIONS, body);
    stage.finish(&answer);
    assert_eq!(
        bound(&mut stage),
        json!([{ "addressLocation": "10.1.0.4", "addresses": [{ "address": "10.2.0.5", "services": ["a"] }] }])
    );
    let answer = stage.post(LOCATIONS, json!({ "action": "FullUpdate", "addressLocations": [] }));
    stage.finish(&answer);
    assert_eq!(bound(&mut stage), json!([]));
    assert_eq!(stage.post(LOCATIONS, json!({ "action": "FullUpdate" })).status, 400);
}

#[test]
fn both_posts_refuse_with_the_codes_of_the_contract() {
    let mut stage = Stage::new();
    for name in ["a", "b"] {
        stage.load_balancer(name);
    }
    stage.services(json!([stage.inbound("a"), stage.inbound("b")]));
    let default = |name: &str| service(name, json!({ "isDefault": true }));
    for (entries, code) in [
        (json!([default("a"), default("b")]), "MultipleDefaultServicesNotAllowedInServiceGateway"),
        (json!([unregister("a"), unregister("A")]), "DuplicateServicesInRequest"),
        (json!([stage.inbound("nope")]), "InvalidResourceReference"),
        (json!([service("new", json!({}))]), "InvalidRequestFormat"),
        (json!([{ "isDelete": false }]), "InvalidRequestFormat"),
        (json!([{ "isDelete": "no", "service": { "name": "a" } }]), "InvalidRequestFormat"),
        (json!([{ "service": { "properties": {} } }]), "InvalidRequestFormat"),
        (json!([service("new", json!({ "serviceType": "Sideways" }))]), "InvalidRequestFormat"),
        (json!([service("a/b", json!({ "serviceType": "Inbound" }))]), "InvalidResourceName"),
        (json!([service("a", json!({ "publicNatGatewayId": "x" }))]), "LinkedInvalidPropertyId"),
        (
            json!([service("a", json!({ "loadBalancerBackendPools": [{ "name": "a" }] }))]),
            "InvalidRequestFormat",
        ),
        (json!("all"), "InvalidRequestFormat"),
    ] {
        let body = json!({ "action": "PartialUpdate", "serviceRequests": entries });
        assert_eq!(stage.post(SERVICES, body.clone()).refusal(), (400, code), "{body}");
    }
    let at4 = || at("10.1.0.4", &[("10.2.0.4", &["a"])]);
    for (entries, code) in [
        (json!([at4(), at4()]), "DuplicateLocationsInRequest"),
        (json!([at("10.1.0.4", &[("fd00::1", &["a"])])]), "IPv4LocationCannotContainIPv6Addresses"),
        (json!([at("fd00::1", &[("10.2.0.4", &["a"])])]), "IPv6LocationCannotContainIPv4Addresses"),
        (json!([at("10.1.0.4", &[("10.2.0.4", &["nope"])])]), "ServiceNotFoundInServiceGateway"),
        (json!([at("node-a", &[])]), "InvalidAddress"),
        (json!([at("10.1.0.4", &[("10.2.0.04", &["a"])])]), "InvalidAddress"),
        (json!([{ "addresses": [] }]), "InvalidRequestFormat"),
        (
            json!([{ "addressLocation": "10.1.0.4", "addresses": [{ "address": "10.2.0.4", "services": [1] }] }]),
            "InvalidRequestFormat",
        ),
        (json!([{ "addressLocation": "10.1.0.4", "adresses": [] }]), "InvalidRequestFormat"),
        (json!([{ "addressLocation": "10.1.0.4", "addressUpdateAction": "Half" }]), "InvalidRequestFormat"),
    ] {
        let body = json!({ "action": "PartialUpdate", "addressLocations": entries });
        assert_eq!(stage.post(LOCATIONS, body.clone()).refusal(), (400, code), "{body}");
    }
    assert_eq!(bound(&mut stage), json!([]));
    for (tail, body) in
        [(SERVICES, json!({ "serviceRequest": [] })), (LOCATIONS, json!({ "action": "Update" }))]
    {
        assert_eq!(stage.post(tail, body).refusal(), (400, "InvalidRequestFormat"));
    }
}

#[test]
fn lists_that_are_null_are_empty_and_a_post_with_nothing_in_it_is_fine() {
    let mut stage = Stage::new();
    for body in
        [json!({ "action": "PartialUpdate", "serviceRequests": null }), json!({ "serviceRequests": [] })]
    {
        let answer = stage.post(SERVICES, body);
        assert_eq!(stage.finish(&answer), json!({ "status": "Succeeded" }));
    }
    stage.load_balancer("a");
    stage.services(json!([stage.inbound("a")]));
    stage.locations(json!([at("10.1.0.4", &[("10.2.0.4", &["a"])])]));
    let unbound = json!({ "address": "10.2.0.4", "services": null });
    stage.locations(json!([{ "addressLocation": "10.1.0.4", "addresses": [unbound] }]));
    assert_eq!(bound(&mut stage), json!([]));
}

#[test]
fn a_nat_gateway_is_registered_with_the_gateway_that_it_names() {
    let mut stage = Stage::new();
    stage.nat_gateway("blue");
    stage.done(stage.put("serviceGateways/other", gateway("vnet", "pods")));
    let body = json!({ "action": "PartialUpdate", "serviceRequests": [stage.outbound("blue")] });
    let answer = stage.post("serviceGateways/other/updateServices", body);
    assert_eq!(answer.refusal(), (400, "NatGatewayNotInServiceGateway"));
    stage.services(json!([stage.outbound("blue")]));
    let mut detached = stage.nat_gateway_body("blue");
    detached["properties"]["serviceGateway"] = json!(null);
    let answer = stage.send(stage.put("natGateways/blue", detached));
    assert_eq!(answer.refusal(), (400, "InUseNatGatewayCannotBeDetached"));
}

#[test]
fn a_nat_gateway_and_its_addresses_are_of_one_sku() {
    let mut stage = Stage::new();
    let mut standard = public_ip("IPv4");
    standard["sku"]["name"] = json!("Standard");
    stage.done(stage.put("publicIPAddresses/blue-pip", standard));
    let body = stage.nat_gateway_body("blue");
    let answer = stage.send(stage.put("natGateways/blue", body));
    assert_eq!(answer.refusal(), (400, "NatGatewayPublicIpAddressSkuMismatch"));
}
