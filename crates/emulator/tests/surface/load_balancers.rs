//! Load balancers: their parts, and what of them is not emulated.

use serde_json::{Value, json};

use crate::stage::*;

#[test]
fn the_parts_of_a_load_balancer_refer_to_each_other() {
    let mut stage = Stage::new();
    stage.load_balancer("web");
    let id = stage.id("loadBalancers/web");
    let read = stage.get("loadBalancers/web").body;
    let etag = &read["etag"];
    let properties = &read["properties"];
    let rule_id = format!("{id}/loadBalancingRules/rule-tcp-80");
    assert_eq!(
        properties["loadBalancingRules"],
        json!([{
            "name": "rule-tcp-80",
            "id": rule_id,
            "etag": etag,
            "type": "Microsoft.Network/loadBalancers/loadBalancingRules",
            "properties": {
                "provisioningState": "Succeeded",
                "frontendIPConfiguration": { "id": format!("{id}/frontendIPConfigurations/frontend") },
                "frontendPort": 80,
                "backendPort": 8080,
                "enableFloatingIP": false,
                "idleTimeoutInMinutes": 4,
                "protocol": "Tcp",
                "enableTcpReset": false,
                "disableOutboundSnat": false,
                "loadDistribution": "Default",
                "backendAddressPool": { "id": format!("{id}/backendAddressPools/web") },
                "backendAddressPools": [{ "id": format!("{id}/backendAddressPools/web") }],
            },
        }])
    );
    let users = json!([{ "id": rule_id }]);
    assert_eq!(properties["frontendIPConfigurations"][0]["properties"]["loadBalancingRules"], users);
    assert_eq!(properties["backendAddressPools"][0]["properties"]["loadBalancingRules"], users);
    assert_eq!(properties["scope"], "Public");
}

#[test]
fn a_put_replaces_the_whole_load_balancer() {
    let mut stage = Stage::new();
    stage.load_balancer("web");
    let id = stage.id("loadBalancers/web");
    let mut body = stage.load_balancer_body("web");
    body["tags"] = json!({ "a": "1" });
    body["properties"]["loadBalancingRules"] =
        json!([rule(&id, "web", "Udp", 53, 5353), rule(&id, "web", "Tcp", 53, 5353)]);
    stage.done(stage.put("loadBalancers/web", body));
    let names = |body: &Value| -> Vec<String> {
        let rules = body["properties"]["loadBalancingRules"].as_array().unwrap().iter();
        rules.map(|rule| rule["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&stage.get("loadBalancers/web").body), ["rule-udp-53", "rule-tcp-53"]);
    let mut body = stage.load_balancer_body("web");
    body["properties"]["loadBalancingRules"].take();
    stage.done(stage.put("loadBalancers/web", body));
    let read = stage.get("loadBalancers/web").body;
    assert_eq!((names(&read).len(), read.get("tags")), (0, None), "what is left out vanishes");
}

#[test]
fn what_a_load_balancer_has_beyond_the_model_is_refused_by_name() {
    let mut stage = Stage::new();
    stage.load_balancer("web");
    let id = stage.id("loadBalancers/web");
    let before = stage.get("loadBalancers/web").body;
    let private = json!({ "name": "frontend", "properties": { "subnet": { "id": stage.id("virtualNetworks/vnet/subnets/pods") } } });
    let second = before["properties"]["frontendIPConfigurations"][0].clone();
    let mut probed = rule(&id, "web", "Tcp", 80, 8080);
    probed["properties"]["probe"] = json!({ "id": format!("{id}/probes/p") });
    for (path, value, named) in [
        ("/properties/probes", json!([{ "name": "p" }]), "properties.probes"),
        ("/properties/inboundNatRules", json!([{ "name": "r" }]), "properties.inboundNatRules"),
        ("/properties/outboundRules", json!([{ "name": "r" }]), "properties.outboundRules"),
        ("/properties/inboundNatPools", json!([{ "name": "r" }]), "properties.inboundNatPools"),
        (
            "/properties/frontendIPConfigurations",
            json!([private]),
            "properties.frontendIPConfigurations[0].properties.subnet",
        ),
        (
            "/properties/frontendIPConfigurations",
            json!([second, second]),
            "properties.frontendIPConfigurations",
        ),
        (
            "/properties/loadBalancingRules",
            json!([probed]),
            "properties.loadBalancingRules[0].properties.probe",
        ),
        (
            "/properties/loadBalancingRules/0/properties/protocol",
            json!("All"),
            "properties.loadBalancingRules[0].properties.protocol",
        ),
        ("/properties/scope", json!("Private"), "properties.scope"),
        ("/sku/tier", json!("Global"), "sku.tier"),
        (
            "/properties/backendAddressPools/0/properties/loadBalancerBackendAddresses",
            json!([{ "name": "a" }]),
            "properties.backendAddressPools[0].properties.loadBalancerBackendAddresses",
        ),
    ] {
        let mut body = before.clone();
        *body.pointer_mut(path).unwrap() = value;
        let answer = stage.send(stage.put("loadBalancers/web", body));
        assert_eq!(answer.refusal(), (400, "NotSupportedByEmulator"), "{path}");
        let message = answer.body["error"]["message"].as_str().unwrap();
        assert!(message.starts_with(&format!("'{named}'")), "{message}");
        assert_eq!(stage.get("loadBalancers/web").body, before, "{path}");
    }
    let mut body = stage.load_balancer_body("web");
    body["sku"]["name"] = json!("Basic");
    assert_eq!(stage.send(stage.put("loadBalancers/new", body)).refusal(), (400, "NotSupportedByEmulator"));
}

#[test]
fn rules_must_lead_from_its_own_frontend_to_its_own_pool() {
    let mut stage = Stage::new();
    stage.load_balancer("web");
    stage.load_balancer("other");
    let (id, other) = (stage.id("loadBalancers/web"), stage.id("loadBalancers/other"));
    let of = |rules: Value| {
        let mut body = stage.load_balancer_body("web");
        body["properties"]["loadBalancingRules"] = rules;
        stage.put("loadBalancers/web", body)
    };
    let twins = json!([rule(&id, "web", "Tcp", 80, 8080), rule(&id, "web", "Tcp", 80, 8081)]);
    let same_backend = json!([rule(&id, "web", "Tcp", 80, 8080), rule(&id, "web", "Tcp", 81, 8080)]);
    let requests = [
        (of(json!([rule(&other, "other", "Tcp", 80, 8080)])), "InvalidResourceReference"),
        (of(json!([rule(&id, "nope", "Tcp", 80, 8080)])), "InvalidResourceReference"),
        (of(json!([rule(&id, "web", "Tcp", 65_535, 8080)])), "InvalidRequestFormat"),
        (of(json!([rule(&id, "web", "Tcp", 0, 8080)])), "InvalidRequestFormat"),
        (of(twins), "DuplicateResourceName"),
        (of(same_backend), "RulesUseSameBackendPortProtocolAndPool"),
    ];
    for (request, code) in requests {
        assert_eq!(stage.send(request).refusal(), (400, code));
    }
}

#[test]
fn the_spelling_of_the_sku_matters_and_it_cannot_change() {
    let mut stage = Stage::new();
    stage.load_balancer("web");
    for (name, code) in [("service", "InvalidRequestFormat"), ("Standard", "PropertyCannotBeChanged")] {
        let mut body = stage.load_balancer_body("web");
        body["sku"]["name"] = json!(name);
        assert_eq!(stage.send(stage.put("loadBalancers/web", body)).refusal(), (400, code), "{name}");
    }
}

#[test]
fn a_load_balancer_needs_a_public_ip_of_its_region_that_is_free_and_not_basic() {
    let mut stage = Stage::new();
    stage.load_balancer("web");
    let mut west = public_ip("IPv4");
    west["location"] = json!("westus");
    stage.done(stage.put("publicIPAddresses/west", west));
    stage.done(stage.put("publicIPAddresses/basic", json!({ "location": "eastus" })));
    for (ip, code) in [
        ("publicIPAddresses/nope", "InvalidResourceReference"),
        ("publicIPAddresses/west", "InvalidResourceReference"),
        ("publicIPAddresses/basic", "PublicIPAndLBSkuDoNotMatch"),
        ("publicIPAddresses/web-pip", "PublicIPAddressInUse"),
    ] {
        let mut body = stage.load_balancer_body("new");
        body["properties"]["loadBalancingRules"] = json!([]);
        body["properties"]["frontendIPConfigurations"][0]["properties"]["publicIPAddress"]["id"] =
            json!(stage.id(ip));
        assert_eq!(stage.send(stage.put("loadBalancers/new", body)).refusal(), (400, code), "{ip}");
    }
}

#[test]
fn the_order_of_rules_and_the_names_that_a_client_gave_stay() {
    let mut stage = Stage::new();
    stage.public_ip("web-pip");
    let id = stage.id("loadBalancers/web");
    let mut body = stage.load_balancer_body("web");
    let mut named = rule(&id, "web", "Udp", 9, 9);
    named["name"] = json!("Discard");
    named["properties"]["enableConnectionTracking"] = json!(true);
    named["properties"]["loadDistribution"] = json!("sourceip");
    body["properties"]["loadBalancingRules"] = json!([named, rule(&id, "web", "Tcp", 1, 1)]);
    stage.done(stage.put("loadBalancers/web", body));
    let rules = stage.get("loadBalancers/web").body["properties"]["loadBalancingRules"].clone();
    assert_eq!((&rules[0]["name"], &rules[1]["name"]), (&json!("Discard"), &json!("rule-tcp-1")));
    assert_eq!(rules[0]["properties"]["enableConnectionTracking"], true);
    assert_eq!(rules[0]["properties"]["loadDistribution"], "SourceIP");
}
