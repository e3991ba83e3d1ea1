//! Services: defaults, the addresses and ports that the server gives out, and what may not be.
//!
//! The real server gives out addresses first and checks afterwards; so do we, and nothing is booked
//! before the write is done. One family only: IPv4.

mod addresses;
mod check;

use serde_json::{Value, json};

pub(crate) use addresses::{Addresses, allocate};
pub(crate) use check::check;

use crate::value::{at, default_to, is_empty, list, number, object, remove, set_or_remove, text};

fn kind_of(service: &Value) -> &str {
    text(service, &["spec", "type"])
}

fn needs_cluster_ip(service: &Value) -> bool {
    matches!(kind_of(service), "ClusterIP" | "NodePort" | "LoadBalancer")
}

/// Whether its type has a use for ports of nodes, if it has some.
fn has_node_ports(service: &Value) -> bool {
    matches!(kind_of(service), "NodePort" | "LoadBalancer")
}

fn needs_node_ports(service: &Value) -> bool {
    match kind_of(service) {
        "NodePort" => true,
        "LoadBalancer" => at(service, &["spec", "allocateLoadBalancerNodePorts"]) != &json!(false),
        _ => false,
    }
}

fn needs_health_port(service: &Value) -> bool {
    kind_of(service) == "LoadBalancer" && text(service, &["spec", "externalTrafficPolicy"]) == "Local"
}

fn is_reached_from_outside(service: &Value) -> bool {
    match kind_of(service) {
        "NodePort" | "LoadBalancer" => true,
        "ClusterIP" => !list(service, &["spec", "externalIPs"]).is_empty(),
        _ => false,
    }
}

/// What the writer left out.
pub(super) fn default(service: &mut Value) {
    let spec = object(service, "spec");
    default_to(spec, "sessionAffinity", "None");
    default_to(spec, "type", "ClusterIP");
    match text(spec, &["sessionAffinity"]) {
        "None" => {
            remove(spec, "sessionAffinityConfig");
        }
        "ClientIP" if number(spec, &["sessionAffinityConfig", "clientIP", "timeoutSeconds"]).is_none() => {
            spec["sessionAffinityConfig"] = json!({"clientIP": {"timeoutSeconds": 10_800}});
        }
        _ => {}
    }
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        default_to(port, "protocol", "TCP");
        let target = at(port, &["targetPort"]);
        if is_empty(target) || *target == json!(0) {
            let own = port.get("port").cloned().unwrap_or(json!(0));
            port["targetPort"] = own;
        }
        if number(port, &["nodePort"]) == Some(0) {
            remove(port, "nodePort");
        }
    }
    for empty in ["clusterIP", "ports", "clusterIPs", "selector", "externalIPs", "loadBalancerSourceRanges"] {
        if spec.get(empty).is_some_and(is_empty) {
            remove(spec, empty);
        }
    }
    if number(spec, &["healthCheckNodePort"]) == Some(0) {
        remove(spec, "healthCheckNodePort");
    }
    if kind_of(service) == "LoadBalancer" {
        default_to(object(service, "spec"), "allocateLoadBalancerNodePorts", true);
    }
    if is_reached_from_outside(service) {
        default_to(object(service, "spec"), "externalTrafficPolicy", "Cluster");
    }
    if needs_cluster_ip(service) {
        default_to(object(service, "spec"), "internalTrafficPolicy", "Cluster");
    }
    let balancer = object(object(service, "status"), "loadBalancer");
    for ingress in balancer.get_mut("ingress").and_then(Value::as_array_mut).into_iter().flatten() {
        if !text(ingress, &["ip"]).is_empty() {
            default_to(ingress, "ipMode", "VIP");
        }
    }
}

/// What was given out stays as long as the type has a use for it, and goes with the type.
pub(crate) fn carry_over(old: &Value, new: &mut Value) {
    let had = at(old, &["spec"]);
    if kind_of(old) == "LoadBalancer" && kind_of(new) != "LoadBalancer" {
        object(new, "status")["loadBalancer"] = json!({});
    }
    let same = |new: &Value, field: &str| at(new, &["spec", field]) == at(had, &[field]);
    if needs_cluster_ip(old) && needs_cluster_ip(new) {
        let cleared_both = is_empty(at(new, &["spec", "clusterIP"]));
        let spec = object(new, "spec");
        if cleared_both {
            set_or_remove(spec, "clusterIP", had.get("clusterIP").cloned());
        }
        if text(spec, &["clusterIP"]) == text(had, &["clusterIP"]) {
            if is_empty(at(spec, &["clusterIPs"])) {
                set_or_remove(spec, "clusterIPs", had.get("clusterIPs").cloned());
            }
        } else if at(spec, &["clusterIPs"]) == at(had, &["clusterIPs"]) {
            spec["clusterIPs"] = json!([spec["clusterIP"]]);
        }
        for field in ["ipFamilies", "ipFamilyPolicy"] {
            if is_empty(at(spec, &[field])) {
                set_or_remove(spec, field, had.get(field).cloned());
            }
        }
    }
    if has_node_ports(old) && has_node_ports(new) {
        let before = list(old, &["spec", "ports"]);
        for port in ports_mut(new) {
            if number(port, &["nodePort"]).is_none() {
                let twin =
                    before.iter().find(|it| it["port"] == port["port"] && it["protocol"] == port["protocol"]);
                set_or_remove(port, "nodePort", twin.and_then(|it| it.get("nodePort").cloned()));
            }
        }
    }
    if needs_health_port(old) && needs_health_port(new) {
        let spec = object(new, "spec");
        if spec.get("healthCheckNodePort").is_none() {
            set_or_remove(spec, "healthCheckNodePort", had.get("healthCheckNodePort").cloned());
        }
    }
    drop_with_the_type(old, new, same);
}

fn drop_with_the_type(old: &Value, new: &mut Value, same: impl Fn(&Value, &str) -> bool) {
    let mut dropped = Vec::new();
    if needs_cluster_ip(old) && !needs_cluster_ip(new) {
        dropped.extend(["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"]);
    }
    if needs_health_port(old) && !needs_health_port(new) {
        dropped.push("healthCheckNodePort");
    }
    if kind_of(old) == "LoadBalancer" && kind_of(new) != "LoadBalancer" {
        dropped.extend(["allocateLoadBalancerNodePorts", "loadBalancerClass"]);
    }
    if is_reached_from_outside(old) && !is_reached_from_outside(new) {
        dropped.push("externalTrafficPolicy");
    }
    dropped.retain(|field| same(new, field));
    let had: Vec<Option<i64>> =
        list(old, &["spec", "ports"]).iter().map(|port| number(port, &["nodePort"])).collect();
    let has: Vec<Option<i64>> =
        list(new, &["spec", "ports"]).iter().map(|port| number(port, &["nodePort"])).collect();
    if has_node_ports(old) && !has_node_ports(new) && had == has {
        for port in ports_mut(new) {
            remove(port, "nodePort");
        }
    }
    let spec = object(new, "spec");
    for field in dropped {
        remove(spec, field);
    }
}

fn ports_mut(service: &mut Value) -> impl Iterator<Item = &mut Value> {
    object(service, "spec").get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten()
}

#[cfg(test)]
mod tests;
