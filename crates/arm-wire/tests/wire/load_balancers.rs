//! Load balancers that are answered: ours, and what others made of them.

use serde_json::{Value, json};
use sluice_model::azure::*;
use sluice_model::call::*;
use sluice_model::kube::Protocol;

use crate::support::*;

#[test]
fn a_load_balancer_is_read_however_it_was_made() {
    let part = |id: &str| format!("{NETWORK}/loadBalancers/web/{id}");
    let body = resource(
        "loadBalancers/web",
        json!({
            "provisioningState": "Updating",
            "frontendIPConfigurations": [
                {"name": "internal", "properties": {"privateIPAddress": "10.0.0.9"}},
                {"name": "public", "properties": {"publicIPAddress": {"id": format!("{NETWORK}/publicIPAddresses/p")}}},
            ],
            "backendAddressPools": [{"name": "web"}, {"id": part("backendAddressPools/other")}],
            "loadBalancingRules": [
                {"name": "rule-tcp-80", "properties": {
                    "protocol": "Tcp", "frontendPort": 80, "backendPort": 8080, "idleTimeoutInMinutes": 15,
                    "enableTcpReset": true, "probe": {"id": part("probes/p")}}},
                {"name": "ha", "properties": {"protocol": "All", "frontendPort": 0, "backendPort": 0}},
                {"name": "strange", "properties": {"protocol": "Udp", "frontendPort": 99_999, "backendPort": -1,
                    "idleTimeoutInMinutes": 1_000}},
                {"name": "bare"},
            ],
            "probes": [{"name": "p"}],
        }),
    );
    let rule = |protocol, frontend_port, backend_port, idle_timeout_minutes| Rule {
        protocol,
        frontend_port,
        backend_port,
        idle_timeout_minutes,
    };
    assert_eq!(
        payload(&get("loadBalancers/web"), 200, &body.to_string()),
        Payload::LoadBalancer(LoadBalancer {
            meta: Meta { provisioning: Provisioning::Updating, ..meta("loadBalancers/web") },
            public_ip: Some(id("publicIPAddresses/p")),
            pools: vec!["web".into(), "other".into()],
            rules: vec![
                rule(Protocol::Tcp, 80, 8080, 15),
                rule(Protocol::Sctp, 0, 0, 4),
                rule(Protocol::Udp, 65_535, 0, 255),
                rule(Protocol::Sctp, 0, 0, 4),
            ],
            edited: true,
        })
    );
}

/// What we would write, as Azure answers it, with this changed.
fn answered(change: impl FnOnce(&mut Value)) -> LoadBalancer {
    let rule = |protocol, frontend_port, backend_port| Rule {
        protocol,
        frontend_port,
        backend_port,
        idle_timeout_minutes: 4,
    };
    let ours = Body::LoadBalancer(LoadBalancerBody {
        public_ip: id("publicIPAddresses/web-pip"),
        rules: vec![rule(Protocol::Tcp, 80, 8080), rule(Protocol::Udp, 53, 5353)],
        tags: Tags::new(),
    });
    let mut document = body(&Request::with(Method::Put, id("loadBalancers/Web"), ours));
    document["id"] = json!(id("loadBalancers/web").as_str());
    let of_udp = &mut document["properties"]["loadBalancingRules"][1]["properties"];
    of_udp["enableTcpReset"] = json!(false);
    of_udp["loadDistribution"] = json!("Default");
    change(&mut document["properties"]);
    match payload(&get("loadBalancers/web"), 200, &document.to_string()) {
        Payload::LoadBalancer(found) => found,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_we_write_ourselves_is_not_edited() {
    let untouched = answered(|_| ());
    assert!(!untouched.edited);
    type Change = fn(&mut Value);
    let as_good: [Change; 5] = [
        |it| it["frontendIPConfigurations"][0]["name"] = json!("FRONTEND"),
        |it| {
            let pool = format!("{NETWORK}/loadBalancers/web/backendAddressPools/WEB");
            it["loadBalancingRules"][0]["properties"]["backendAddressPool"]["id"] = json!(pool);
        },
        // What is missing says nothing.
        |it| it["loadBalancingRules"][0]["properties"]["enableTcpReset"] = json!(null),
        |it| it["loadBalancingRules"][1]["properties"]["enableFloatingIP"] = json!(null),
        |it| it["loadBalancingRules"][0]["properties"]["frontendIPConfiguration"] = json!(null),
    ];
    for (at, change) in as_good.into_iter().enumerate() {
        assert_eq!(answered(change), untouched, "{at}");
    }
}

#[test]
fn what_somebody_changed_of_what_we_write_is_edited_and_the_rest_is_read_as_ever() {
    type Change = fn(&mut Value);
    let elsewhere: [Change; 6] = [
        |it| it["loadBalancingRules"][0]["properties"]["enableFloatingIP"] = json!(true),
        |it| it["loadBalancingRules"][1]["properties"]["enableFloatingIP"] = json!(true),
        |it| it["loadBalancingRules"][0]["properties"]["enableTcpReset"] = json!(false),
        |it| {
            let pool = format!("{NETWORK}/loadBalancers/web/backendAddressPools/other");
            it["loadBalancingRules"][1]["properties"]["backendAddressPool"]["id"] = json!(pool);
        },
        |it| {
            let frontend = format!("{NETWORK}/loadBalancers/web/frontendIPConfigurations/second");
            it["loadBalancingRules"][0]["properties"]["frontendIPConfiguration"]["id"] = json!(frontend);
        },
        |it| {
            let second = json!({"name": "second", "properties": {"privateIPAddress": "10.0.0.9"}});
            it["frontendIPConfigurations"].as_array_mut().unwrap().push(second);
        },
    ];
    let untouched = answered(|_| ());
    for (at, change) in elsewhere.into_iter().enumerate() {
        assert_eq!(answered(change), LoadBalancer { edited: true, ..untouched.clone() }, "{at}");
    }
}
