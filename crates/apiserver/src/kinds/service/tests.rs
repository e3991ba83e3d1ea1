//! Stories of services, with the answers of the real server.

use serde_json::{Value, json};

use crate::kinds::SERVICE;
use crate::store::tests::{created, refused, store};
use crate::store::{Store, Write};
use crate::value::{at, list, number, text};

fn service(name: &str, spec: Value) -> Value {
    json!({"metadata": {"name": name}, "spec": spec})
}

fn patched(store: &Store, name: &str, spec: Value) -> Value {
    let done = store.modify(&SERVICE, "default", name, &Write::by("test"), |old| {
        let mut new = old.clone();
        json_patch::merge(&mut new, &json!({"spec": spec}));
        Ok(new)
    });
    done.unwrap().as_ref().clone()
}

#[test]
fn a_load_balancer_gets_addresses_ports_and_defaults_as_on_the_real_server() {
    let store = store();
    let made =
        created(&store, &SERVICE, service("lb", json!({"type": "LoadBalancer", "ports": [{"port": 80}]})));
    let spec = &made["spec"];
    assert!(text(spec, &["clusterIP"]).starts_with("10.96."), "{spec}");
    assert_eq!(spec["clusterIPs"], json!([spec["clusterIP"]]));
    assert_eq!(spec["ipFamilies"], json!(["IPv4"]));
    for (field, expected) in [
        ("ipFamilyPolicy", json!("SingleStack")),
        ("sessionAffinity", json!("None")),
        ("externalTrafficPolicy", json!("Cluster")),
        ("internalTrafficPolicy", json!("Cluster")),
        ("allocateLoadBalancerNodePorts", json!(true)),
    ] {
        assert_eq!(spec[field], expected, "{field}");
    }
    let port = &spec["ports"][0];
    assert_eq!((&port["protocol"], &port["targetPort"]), (&json!("TCP"), &json!(80)));
    assert!((30_000..=32_767).contains(&number(port, &["nodePort"]).unwrap()));
    assert_eq!(made["status"], json!({"loadBalancer": {}}));
}

#[test]
fn what_the_type_needs_comes_and_goes_with_the_type() {
    let store = store();
    created(&store, &SERVICE, service("a", json!({"type": "LoadBalancer", "ports": [{"port": 80}]})));
    let as_cluster_ip = patched(&store, "a", json!({"type": "ClusterIP"}));
    let spec = &as_cluster_ip["spec"];
    for gone in ["allocateLoadBalancerNodePorts", "externalTrafficPolicy"] {
        assert!(spec.get(gone).is_none(), "{gone}");
    }
    assert!(spec["ports"][0].get("nodePort").is_none());
    let as_name = patched(&store, "a", json!({"type": "ExternalName", "externalName": "a.b"}));
    for gone in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"] {
        assert!(as_name["spec"].get(gone).is_none(), "{gone}");
    }
    let back = patched(&store, "a", json!({"type": "NodePort"}));
    assert!(text(&back["spec"], &["clusterIP"]).starts_with("10.96."));
    assert!(number(&back["spec"]["ports"][0], &["nodePort"]).is_some());
}

#[test]
fn node_ports_are_not_given_out_where_nobody_wants_them() {
    let store = store();
    let spec = json!({"type": "LoadBalancer", "externalTrafficPolicy": "Local",
        "allocateLoadBalancerNodePorts": false, "ports": [{"port": 80}]});
    let made = created(&store, &SERVICE, service("local", spec));
    assert!(made["spec"]["ports"][0].get("nodePort").is_none());
    assert!(number(&made, &["spec", "healthCheckNodePort"]).is_some());
    let now = patched(&store, "local", json!({"externalTrafficPolicy": "Cluster"}));
    assert!(now["spec"].get("healthCheckNodePort").is_none());
    let now = patched(&store, "local", json!({"allocateLoadBalancerNodePorts": true}));
    assert!(number(&now["spec"]["ports"][0], &["nodePort"]).is_some());
}

#[test]
fn addresses_and_ports_are_given_out_once_and_come_back() {
    let store = store();
    let made = created(
        &store,
        &SERVICE,
        service("a", json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 30_080}]})),
    );
    let ip = at(&made, &["spec", "clusterIP"]).clone();
    let same_ip = service("b", json!({"clusterIP": ip, "ports": [{"port": 80}]}));
    assert!(refused(&store, &SERVICE, same_ip.clone()).contains("provided IP is already allocated"));
    let same_port = service("b", json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 30_080}]}));
    assert!(refused(&store, &SERVICE, same_port.clone()).contains("provided port is already allocated"));
    store.delete(&SERVICE, "default", "a", &Default::default()).unwrap();
    created(&store, &SERVICE, same_ip);
    let again = service("c", json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 30_080}]}));
    created(&store, &SERVICE, again);
}

#[test]
fn what_is_wrong_is_said_in_the_words_of_the_real_server() {
    let store = store();
    for (spec, expected) in [
        (json!({}), "Service \"x\" is invalid: spec.ports: Required value"),
        (
            json!({"ports": [{"port": 80}, {"port": 81}]}),
            "Service \"x\" is invalid: [spec.ports[0].name: Required value, spec.ports[1].name: Required value]",
        ),
        (
            json!({"ports": [{"port": 0}]}),
            "Service \"x\" is invalid: [spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, \
             inclusive, spec.ports[0].targetPort: Invalid value: 0: must be between 1 and 65535, inclusive]",
        ),
        (
            json!({"type": "Foo", "ports": [{"port": 80}]}),
            "Service \"x\" is invalid: spec.type: Unsupported value: \"Foo\": supported values: \"ClusterIP\", \
             \"ExternalName\", \"LoadBalancer\", \"NodePort\"",
        ),
        (
            json!({"clusterIP": "8.8.8.8", "ports": [{"port": 80}]}),
            "Service \"x\" is invalid: spec.clusterIPs: Invalid value: [\"8.8.8.8\"]: failed to allocate IP \
             8.8.8.8: the provided network does not match the current range",
        ),
        (
            json!({"type": "LoadBalancer", "ports": [{"port": 80, "nodePort": 80}]}),
            "Service \"x\" is invalid: spec.ports[0].nodePort: Invalid value: 80: provided port is not in the \
             valid range. The range of valid ports is 30000-32767",
        ),
    ] {
        assert_eq!(refused(&store, &SERVICE, service("x", spec)), expected);
    }
}

#[test]
fn a_cluster_ip_may_not_change_and_is_not_lost() {
    let store = store();
    let made = created(&store, &SERVICE, service("a", json!({"ports": [{"port": 80}]})));
    let refusal = store
        .modify(&SERVICE, "default", "a", &Write::by("test"), |old| {
            let mut new = old.clone();
            new["spec"]["clusterIP"] = json!("10.96.200.200");
            Ok(new)
        })
        .unwrap_err();
    assert!(refusal.message.ends_with("may not change once set"), "{refusal}");
    let without = patched(&store, "a", json!({"clusterIP": null, "clusterIPs": null}));
    assert_eq!(at(&without, &["spec", "clusterIP"]), at(&made, &["spec", "clusterIP"]));
    assert_eq!(list(&without, &["spec", "clusterIPs"]).len(), 1);
}

#[test]
fn a_service_that_is_no_load_balancer_any_more_has_no_address_outside() {
    let status = json!({"loadBalancer": {"ingress": [{"ip": "20.0.0.4"}]}});
    let old = json!({"spec": {"type": "LoadBalancer"}, "status": status});
    let mut new = json!({"spec": {"type": "ClusterIP"}, "status": status});
    super::carry_over(&old, &mut new);
    assert_eq!(new["status"], json!({"loadBalancer": {}}));
    let mut same = old.clone();
    super::carry_over(&old, &mut same);
    assert_eq!(same["status"], status);
}
