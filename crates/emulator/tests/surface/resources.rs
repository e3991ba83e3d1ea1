//! Writing, reading and tagging resources of every kind.

use serde_json::{Value, json};

use crate::stage::*;

/// One of each kind, in an order in which they can be made.
fn one_of_each(stage: &mut Stage) -> Vec<String> {
    stage.load_balancer("web");
    stage.nat_gateway("blue");
    stage.services(json!([stage.inbound("web"), stage.outbound("blue")]));
    let subnet = json!({
        "properties": {
            "addressPrefix": "10.0.0.0/24",
            "serviceGateway": { "id": stage.id("serviceGateways/gw") },
        },
    });
    stage.done(stage.put("virtualNetworks/vnet/subnets/pods", subnet));
    [
        "publicIPAddresses/web-pip",
        "publicIPAddresses/blue-pip",
        "loadBalancers/web",
        "natGateways/blue",
        "serviceGateways/gw",
        "virtualNetworks/vnet",
        "virtualNetworks/vnet/subnets/pods",
    ]
    .map(str::to_owned)
    .into()
}

fn without(mut document: Value, names: &[&str]) -> Value {
    fn strip(value: &mut Value, names: &[&str]) {
        match value {
            Value::Object(map) => {
                map.retain(|key, _| !names.contains(&key.as_str()));
                map.values_mut().for_each(|value| strip(value, names));
            }
            Value::Array(values) => values.iter_mut().for_each(|value| strip(value, names)),
            _ => {}
        }
    }
    strip(&mut document, names);
    document
}

#[test]
fn what_was_read_can_be_written_back_and_nothing_changes() {
    let mut stage = Stage::new();
    for tail in one_of_each(&mut stage) {
        let before = stage.get(&tail).body;
        let answer = stage.send(stage.put(&tail, before.clone()));
        assert!(matches!(answer.status, 200 | 201), "{tail}: {answer:?}");
        assert_eq!(answer.state(), "Succeeded", "{tail}: nothing has changed, so nothing takes time");
        let after = stage.get(&tail).body;
        assert_eq!(without(after, &["etag"]), without(before, &["etag"]), "{tail}");
    }
}

#[test]
fn a_real_change_is_updating_first_and_succeeded_later() {
    let mut stage = Stage::new();
    for (tail, field, value) in [
        ("publicIPAddresses/web-pip", "idleTimeoutInMinutes", json!(17)),
        ("natGateways/blue", "idleTimeoutInMinutes", json!(17)),
        ("loadBalancers/web", "mode", json!("Advanced")),
        ("virtualNetworks/vnet", "flowTimeoutInMinutes", json!(10)),
        ("virtualNetworks/vnet/subnets/pods", "defaultOutboundAccess", json!(false)),
        ("serviceGateways/gw", "fieldOfTomorrow", json!({ "a": [1, null] })),
    ] {
        one_of_each(&mut stage);
        let mut body = stage.get(tail).body;
        body["properties"][field] = value.clone();
        let answer = stage.send(stage.put(tail, body));
        assert_eq!(answer.state(), "Updating", "{tail}: {answer:?}");
        let url = answer.header("azure-asyncoperation").unwrap().to_owned();
        assert_eq!(stage.follow(&url).body, json!({ "status": "InProgress" }), "{tail}");
        assert_eq!(stage.finish(&answer), json!({ "status": "Succeeded" }), "{tail}");
        let read = stage.get(tail);
        assert_eq!(read.state(), "Succeeded", "{tail}");
        assert_eq!(read.body["properties"][field], value, "{tail}");
        stage = Stage::new();
    }
}

#[test]
fn what_is_left_out_of_a_put_stays_and_null_takes_it_away() {
    let mut stage = Stage::new();
    stage.nat_gateway("blue");
    let bare = json!({ "location": "eastus", "sku": { "name": "StandardV2" }, "properties": {} });
    stage.done(stage.put("natGateways/blue", bare.clone()));
    let read = stage.get("natGateways/blue").body;
    assert_eq!(read["properties"]["serviceGateway"]["id"], stage.id("serviceGateways/gw"));
    assert_eq!(read["properties"]["publicIpAddresses"].as_array().map(Vec::len), Some(1));

    let mut cleared = bare;
    cleared["properties"] = json!({ "serviceGateway": null });
    stage.done(stage.put("natGateways/blue", cleared));
    let read = stage.get("natGateways/blue").body;
    assert_eq!(read["properties"].get("serviceGateway"), None);
    assert_eq!(read["properties"]["publicIpAddresses"].as_array().map(Vec::len), Some(1));
}

#[test]
fn what_is_left_out_of_a_put_of_a_gateway_is_gone_and_what_was_read_is_kept() {
    let mut stage = Stage::new();
    let mut wide = network();
    wide["properties"]["addressSpace"]["addressPrefixes"] = json!(["10.0.0.0/16", "fd00::/48"]);
    wide["properties"]["subnets"] =
        json!([{ "name": "pods", "properties": { "addressPrefixes": ["10.0.0.0/24", "fd00::/64"] } }]);
    stage.done(stage.put("virtualNetworks/vnet", wide));
    let mut theirs = gateway("vnet", "pods");
    theirs["zones"] = json!(["1", "3"]);
    theirs["tags"] = json!({ "team": "network" });
    theirs["properties"]["fieldOfTomorrow"] = json!(7);
    theirs["properties"]["routeTargetAddressV6"] = theirs["properties"]["routeTargetAddress"].clone();
    stage.done(stage.put("serviceGateways/gw", theirs));
    let foreign = |body: &Value| {
        let properties = &body["properties"];
        let fields = ["routeTargetAddressV6", "fieldOfTomorrow"].map(|it| properties.get(it).is_some());
        (body.get("zones").is_some(), body.get("tags").is_some(), fields)
    };
    let read = stage.get("serviceGateways/gw").body;
    assert_eq!(foreign(&read), (true, true, [true, true]));
    stage.done(stage.put("serviceGateways/gw", read));
    let read = stage.get("serviceGateways/gw").body;
    assert_eq!(foreign(&read), (true, true, [true, true]));
    stage.done(stage.put("serviceGateways/gw", gateway("vnet", "pods")));
    let read = stage.get("serviceGateways/gw").body;
    assert_eq!(foreign(&read), (false, false, [false, false]));
    assert_eq!(read["properties"]["routeTargetAddress"]["privateIPAddress"], "10.0.0.4");
}

#[test]
fn a_public_ip_says_who_uses_it() {
    let mut stage = Stage::new();
    one_of_each(&mut stage);
    let web = stage.get("publicIPAddresses/web-pip").body;
    let frontend = stage.id("loadBalancers/web/frontendIPConfigurations/frontend");
    assert_eq!(web["properties"]["ipConfiguration"], json!({ "id": frontend }));
    let blue = stage.get("publicIPAddresses/blue-pip").body;
    assert_eq!(blue["properties"]["natGateway"], json!({ "id": stage.id("natGateways/blue") }));
    assert_eq!(blue["properties"].get("ipConfiguration"), None);
}

#[test]
fn an_address_comes_from_the_range_and_only_when_it_is_ready() {
    let mut stage = Stage::new();
    for (version, head) in [("IPv4", "198.18."), ("IPv6", "2001:db8:")] {
        let tail = format!("publicIPAddresses/ip-{version}");
        let answer = stage.send(stage.put(&tail, public_ip(version)));
        assert_eq!((answer.status, answer.state()), (201, "Updating"));
        assert_eq!(answer.body["properties"].get("ipAddress"), None);
        stage.finish(&answer);
        let read = stage.get(&tail).body;
        assert!(read["properties"]["ipAddress"].as_str().unwrap().starts_with(head), "{read}");
        assert_eq!(read["properties"]["publicIPAddressVersion"], version);
    }
}

#[test]
fn ids_differ_by_everything_but_case_and_keep_their_first_spelling() {
    let mut stage = Stage::new();
    stage.public_ip("Web-PIP");
    let first = stage.id("publicIPAddresses/Web-PIP");
    let path = first.to_ascii_uppercase().replace("/SUBSCRIPTIONS/", "/subscriptions/");
    let path = format!("{path}?api-version={OLD}");
    let answer = stage.get_path(&path);
    assert_eq!((answer.status, answer.body["id"].as_str()), (200, Some(first.as_str())));
    let again = stage.request("PUT", &path, Some(public_ip("IPv4")));
    let answer = stage.send(again);
    assert_eq!((answer.status, answer.body["id"].as_str()), (200, Some(first.as_str())));
    assert_eq!(stage.get("publicIPAddresses").body["value"].as_array().map(Vec::len), Some(1));
}

#[test]
fn tags_are_patched_on_everything_that_has_some() {
    let mut stage = Stage::new();
    one_of_each(&mut stage);
    for tail in [
        "publicIPAddresses/web-pip",
        "loadBalancers/web",
        "natGateways/blue",
        "serviceGateways/gw",
        "virtualNetworks/vnet",
        "",
    ] {
        let before = stage.get(tail).body;
        let answer = stage.patch(tail, json!({ "tags": { "a": "1", "b": "2" } }));
        assert_eq!((answer.status, &answer.body["tags"]), (200, &json!({ "a": "1", "b": "2" })), "{tail}");
        let answer = stage.patch(tail, json!({ "tags": { "a": "3" } }));
        assert_eq!(answer.body["tags"], json!({ "a": "3" }), "{tail}: a PATCH replaces all tags");
        let after = stage.get(tail).body;
        assert_eq!(after["tags"], json!({ "a": "3" }), "{tail}");
        assert_eq!(without(after, &["tags", "etag"]), without(before, &["tags", "etag"]), "{tail}");
        stage.patch(tail, json!({ "tags": {} }));
        assert_eq!(stage.get(tail).body.get("tags"), None, "{tail}: no tags are no field");
        let refused = stage.patch(tail, json!({ "tags": {}, "location": "eastus" }));
        assert_eq!(refused.refusal(), (400, "InvalidRequestContent"), "{tail}");
    }
}

#[test]
fn what_comes_again_after_its_deletion_is_another_one() {
    let mut stage = Stage::new();
    let mut body = public_ip("IPv4");
    body["properties"]["idleTimeoutInMinutes"] = json!(30);
    stage.done(stage.put("publicIPAddresses/web-pip", body));
    let first = stage.get("publicIPAddresses/web-pip").body;
    let answer = stage.delete("publicIPAddresses/web-pip");
    stage.finish(&answer);
    stage.public_ip("web-pip");
    let second = stage.get("publicIPAddresses/web-pip").body;
    assert_eq!(second["properties"]["idleTimeoutInMinutes"], 4, "nothing is left of the first one");
    assert_ne!(first["properties"]["resourceGuid"], second["properties"]["resourceGuid"]);
    assert_ne!(first["properties"]["ipAddress"], second["properties"]["ipAddress"]);
}

#[test]
fn a_version_that_is_not_the_newest_is_refused_with_both_of_them() {
    let mut stage = Stage::new();
    stage.public_ip("web-pip");
    let old = stage.get("publicIPAddresses/web-pip").header("etag").unwrap().to_owned();
    stage.patch("publicIPAddresses/web-pip", json!({ "tags": { "a": "1" } }));
    let with_etag = |stage: &Stage, method: &str, etag: &str| {
        let body = (method == "PUT").then(|| public_ip("IPv4"));
        let mut request = stage.request(method, &stage.path("publicIPAddresses/web-pip"), body);
        request.headers_mut().insert("if-match", etag.parse().unwrap());
        request
    };
    for method in ["PUT", "DELETE"] {
        let answer = stage.send(with_etag(&stage, method, &old));
        assert_eq!(answer.refusal(), (412, "PreconditionFailed"));
        let detail = &answer.body["error"]["details"][0];
        assert_eq!(detail["code"], "PreconditionFailedEtagMismatch");
        assert!(detail["message"].as_str().unwrap().contains(&old));
    }
    let new = stage.get("publicIPAddresses/web-pip").header("etag").unwrap().to_owned();
    let answer = stage.send(with_etag(&stage, "PUT", &new));
    assert_eq!(answer.status, 200);
    stage.wait(60);
    let answer = stage.send(with_etag(&stage, "DELETE", "*"));
    assert_eq!(answer.status, 202);
}

#[test]
fn if_none_match_makes_only_what_is_not_there() {
    let mut stage = Stage::new();
    let create = |stage: &Stage| {
        let mut request = stage.put("publicIPAddresses/web-pip", public_ip("IPv4"));
        request.headers_mut().insert("if-none-match", "*".parse().unwrap());
        request
    };
    assert_eq!(stage.send(create(&stage)).status, 201);
    assert_eq!(stage.send(create(&stage)).refusal(), (412, "PreconditionFailed"));
}

#[test]
fn fields_that_nobody_knows_come_back_as_they_were_sent() {
    let mut stage = Stage::new();
    let mut body = public_ip("IPv4");
    body["properties"]["deleteOption"] = json!("Detach");
    body["properties"]["fieldOfTomorrow"] = json!({ "deep": [1, { "er": true }] });
    body["zones"] = json!(["1", "2"]);
    stage.done(stage.put("publicIPAddresses/web-pip", body.clone()));
    let read = stage.get("publicIPAddresses/web-pip").body;
    for field in ["deleteOption", "fieldOfTomorrow"] {
        assert_eq!(read["properties"][field], body["properties"][field]);
    }
    assert_eq!(read["zones"], body["zones"]);
}

#[test]
fn groups_are_made_found_tagged_listed_and_deleted() {
    let mut stage = Stage::new();
    let exists = |stage: &mut Stage, name: &str| {
        let path = format!("/subscriptions/{SUBSCRIPTION}/RESOURCEGROUPS/{name}");
        stage.send(stage.request("HEAD", &path, None)).status
    };
    assert_eq!((exists(&mut stage, "rg"), exists(&mut stage, "nope")), (204, 404));
    let list = stage.get_path(&format!("/subscriptions/{SUBSCRIPTION}/resourcegroups"));
    assert_eq!(list.body["value"][0]["name"], "rg");
    let again = stage.send(stage.put("", json!({ "location": "East US", "tags": { "a": "1" } })));
    assert_eq!((again.status, &again.body["tags"]), (200, &json!({ "a": "1" })));
    let moved = stage.send(stage.put("", json!({ "location": "westus" })));
    assert_eq!(moved.refusal(), (409, "InvalidResourceGroupLocation"));
    let deletion = stage.delete("");
    assert_eq!(deletion.status, 202);
    assert_eq!(stage.get("").state(), "Deleting");
    let location = deletion.header("location").unwrap().to_owned();
    let early = stage.follow(&location);
    assert_eq!((early.status, early.header("retry-after")), (202, Some("2")));
    stage.wait(60);
    assert_eq!(stage.follow(&location).status, 200);
    assert_eq!(stage.get("").refusal(), (404, "ResourceGroupNotFound"));
    assert_eq!(stage.get("serviceGateways/gw").refusal(), (404, "ResourceGroupNotFound"));
}

#[test]
fn a_group_that_comes_again_is_empty_and_has_no_old_tags() {
    let mut stage = Stage::new();
    stage.patch("", json!({ "tags": { "old": "1" } }));
    stage.patch("virtualNetworks/vnet", json!({ "tags": { "old": "1" } }));
    stage.delete("");
    stage.wait(60);
    stage.done(stage.put("", json!({ "location": "westeurope" })));
    assert_eq!(stage.get("").body.get("tags"), None);
    let body = json!({
        "location": "westeurope",
        "properties": { "addressSpace": { "addressPrefixes": ["10.9.0.0/16"] } },
    });
    stage.done(stage.put("virtualNetworks/vnet", body));
    let network = stage.get("virtualNetworks/vnet").body;
    assert_eq!((&network["properties"]["subnets"], network.get("tags")), (&json!([]), None));
}

#[test]
fn what_somebody_else_made_is_shown_from_the_model_alone() {
    use sluice_cloud::Tamper;
    use sluice_model::address::Family;
    use sluice_model::azure::{ArmId, LoadBalancerBody, NatGatewayBody, PublicIpBody, Rule, Tags};
    use sluice_model::call::Body;
    use sluice_model::kube::Protocol;

    let mut stage = Stage::new();
    let id = |stage: &Stage, tail: &str| ArmId::new(stage.id(tail));
    let ip = |family| Body::PublicIp(PublicIpBody { family, tags: Tags::new() });
    let rule =
        Rule { protocol: Protocol::Udp, frontend_port: 53, backend_port: 5353, idle_timeout_minutes: 9 };
    let balancer = LoadBalancerBody {
        public_ip: id(&stage, "publicIPAddresses/x"),
        rules: vec![rule],
        tags: Tags::from([("whose".into(), "theirs".into())]),
    };
    let nat_gateway = NatGatewayBody {
        gateway: None,
        public_ips: vec![],
        public_ips_v6: vec![id(&stage, "publicIPAddresses/y")],
        tags: Tags::new(),
    };
    for (tail, body) in [
        ("publicIPAddresses/x", ip(Family::V4)),
        ("publicIPAddresses/y", ip(Family::V6)),
        ("loadBalancers/theirs", Body::LoadBalancer(balancer)),
        ("natGateways/theirs", Body::NatGateway(nat_gateway)),
    ] {
        let (now, id) = (stage.now, id(&stage, tail));
        assert!(stage.surface.cloud_mut().tamper(now, Tamper::Put { id, body }).status < 300, "{tail}");
    }
    let balancer = stage.get("loadBalancers/theirs").body;
    assert_eq!(balancer["sku"]["name"], "Service");
    assert_eq!(balancer["tags"], json!({ "whose": "theirs" }));
    let shown = &balancer["properties"]["loadBalancingRules"][0];
    assert_eq!((&shown["name"], &shown["properties"]["backendPort"]), (&json!("rule-udp-53"), &json!(5353)));
    assert_eq!(
        balancer["properties"]["backendAddressPools"][0]["properties"]["loadBalancingRules"],
        json!([{ "id": shown["id"] }])
    );
    assert_eq!(stage.get("publicIPAddresses/y").body["properties"]["publicIPAddressVersion"], "IPv6");
    let nat_gateway = stage.get("natGateways/theirs").body;
    assert_eq!(nat_gateway["properties"]["publicIpAddressesV6"][0]["id"], stage.id("publicIPAddresses/y"));

    // What was ours, is deleted, and comes again from them has nothing of ours.
    let mut body = public_ip("IPv4");
    body["properties"]["idleTimeoutInMinutes"] = json!(30);
    stage.done(stage.put("publicIPAddresses/z", body));
    let deletion = stage.delete("publicIPAddresses/z");
    stage.finish(&deletion);
    let (now, theirs) = (stage.now, id(&stage, "publicIPAddresses/z"));
    stage.surface.cloud_mut().tamper(now, Tamper::Put { id: theirs, body: ip(Family::V4) });
    assert_eq!(stage.get("publicIPAddresses/z").body["properties"]["idleTimeoutInMinutes"], 4);

    // What they take away is gone from whatever referred to it.
    let (now, ip) = (stage.now, id(&stage, "publicIPAddresses/x"));
    stage.surface.cloud_mut().tamper(now, Tamper::DeletePublicIp(ip));
    let balancer = stage.get("loadBalancers/theirs").body;
    assert_eq!(balancer["properties"]["frontendIPConfigurations"], json!([]));
}

#[test]
fn a_prepared_network_is_shown_with_its_subnet() {
    use sluice_model::names::Scope;
    let mut stage = Stage::empty(sluice_cloud::Config::default());
    let scope = Scope {
        subscription: SUBSCRIPTION.into(),
        resource_group: "rg".into(),
        network_resource_group: "rg".into(),
        virtual_network: "vnet".into(),
        subnet: "pods".into(),
        gateway: "gw".into(),
        cluster_id: "c".into(),
    };
    stage.surface.cloud_mut().prepare(sluice_model::Time::ZERO, &scope);
    let network = stage.get("virtualNetworks/vnet").body;
    assert_eq!(network["properties"]["addressSpace"], json!({ "addressPrefixes": ["10.0.0.0/16"] }));
    assert_eq!(network["properties"]["subnets"][0]["properties"]["addressPrefix"], "10.0.0.0/16");
    stage.done(stage.put("serviceGateways/gw", gateway("vnet", "pods")));
    let mut subnet = stage.get("virtualNetworks/vnet/subnets/pods").body;
    subnet["properties"]["serviceGateway"] = json!({ "id": stage.id("serviceGateways/gw") });
    stage.done(stage.put("virtualNetworks/vnet/subnets/pods", subnet));
    let subnet = stage.get("virtualNetworks/vnet/subnets/pods").body;
    assert_eq!(subnet["properties"]["serviceGateway"]["id"], stage.id("serviceGateways/gw"));
    assert_eq!(subnet["properties"]["addressPrefix"], "10.0.0.0/16");
}
