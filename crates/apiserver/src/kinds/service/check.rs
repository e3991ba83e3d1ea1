//! What may not be in a service.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::{Value, json};

use super::{is_reached_from_outside, kind_of, needs_cluster_ip, needs_health_port};
use crate::kinds::metadata::labels;
use crate::kinds::words::{label_1123, port_name, port_number, qualified_name, subdomain_1123};
use crate::refusal::Cause;
use crate::value::{at, is_empty, list, number, text};

/// Everything that is wrong with a service.
pub(crate) fn check(service: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut causes = Vec::new();
    let spec = at(service, &["spec"]);
    let is_headless = text(spec, &["clusterIP"]) == "None";
    match kind_of(service) {
        "LoadBalancer" | "NodePort" if is_headless => {
            let why = format!("may not be set to 'None' for {} services", kind_of(service));
            causes.push(Cause::invalid("spec.clusterIPs[0]", &json!("None"), &why));
        }
        "ExternalName" => external_name(spec, &mut causes),
        _ => {}
    }
    if list(spec, &["ports"]).is_empty() && !is_headless && kind_of(service) != "ExternalName" {
        causes.push(Cause::required("spec.ports", ""));
    }
    ports(spec, &mut causes);
    labels("spec.selector", at(spec, &["selector"]), &mut causes);
    one_of(spec, "sessionAffinity", &["ClientIP", "None"], &mut causes);
    let timeout = ["sessionAffinityConfig", "clientIP", "timeoutSeconds"];
    if let Some(seconds) = number(spec, &timeout).filter(|seconds| !(1..=86_400).contains(seconds)) {
        let field = format!("spec.{}", timeout.join("."));
        let why = "must be greater than 0 and less than 86400";
        causes.push(Cause::invalid(field, &json!(seconds), why));
    }
    for (index, ip) in list(spec, &["externalIPs"]).iter().enumerate() {
        let field = format!("spec.externalIPs[{index}]");
        match ip.as_str().unwrap_or("").parse::<IpAddr>() {
            Err(_) => {
                let why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
                causes.push(Cause::invalid(field, ip, why));
            }
            Ok(it) if it.is_loopback() => {
                let why = "may not be in the loopback range (127.0.0.0/8, ::1/128)";
                causes.push(Cause::invalid(field, ip, why));
            }
            Ok(_) => {}
        }
    }
    one_of(spec, "type", &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"], &mut causes);
    load_balancer(service, &mut causes);
    policies(service, &mut causes);
    if let Some(old) = old {
        addresses(service, old, &mut causes);
        unchangeable(service, old, &mut causes);
    }
    causes
}

fn external_name(spec: &Value, causes: &mut Vec<Cause>) {
    let name = text(spec, &["externalName"]);
    if name.is_empty() {
        causes.push(Cause::required("spec.externalName", ""));
    } else {
        let problems = subdomain_1123(name.trim_end_matches('.'));
        causes.extend(problems.iter().map(|why| Cause::invalid("spec.externalName", &json!(name), why)));
    }
    if !is_empty(at(spec, &["clusterIPs"])) || !is_empty(at(spec, &["clusterIP"])) {
        causes.push(Cause::forbidden("spec.clusterIPs", "may not be set when `type` is 'ExternalName'"));
    }
}

fn ports(spec: &Value, causes: &mut Vec<Cause>) {
    let ports = list(spec, &["ports"]);
    let mut names: BTreeSet<&str> = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let field = |name: &str| format!("spec.ports[{index}].{name}");
        let name = text(port, &["name"]);
        if name.is_empty() {
            if ports.len() > 1 {
                causes.push(Cause::required(field("name"), ""));
            }
        } else {
            let problems = label_1123(name);
            causes.extend(problems.iter().map(|why| Cause::invalid(field("name"), &json!(name), why)));
            if problems.is_empty() && !names.insert(name) {
                causes.push(Cause::duplicate(field("name"), &json!(name)));
            }
        }
        let own = number(port, &["port"]).unwrap_or(0);
        if let Some(why) = port_number(own) {
            causes.push(Cause::invalid(field("port"), &json!(own), why));
        }
        let protocol = at(port, &["protocol"]);
        if !["SCTP", "TCP", "UDP"].contains(&protocol.as_str().unwrap_or("")) {
            causes.push(Cause::unsupported(field("protocol"), protocol, &["SCTP", "TCP", "UDP"]));
        }
        match at(port, &["targetPort"]) {
            Value::String(target) => {
                let problems = port_name(target);
                causes.extend(
                    problems.iter().map(|why| Cause::invalid(field("targetPort"), &json!(target), why)),
                );
            }
            target => {
                if let Some(why) = port_number(target.as_i64().unwrap_or(0)) {
                    causes.push(Cause::invalid(field("targetPort"), target, why));
                }
            }
        }
        let app = text(port, &["appProtocol"]);
        if !app.is_empty() {
            let problems = qualified_name(app);
            causes.extend(problems.iter().map(|why| Cause::invalid(field("appProtocol"), &json!(app), why)));
        }
        if text(spec, &["type"]) == "ClusterIP" && number(port, &["nodePort"]).is_some() {
            causes.push(Cause::forbidden(field("nodePort"), "may not be used when `type` is 'ClusterIP'"));
        }
    }
    for (index, port) in ports.iter().enumerate() {
        let twin =
            ports[..index].iter().any(|it| it["port"] == port["port"] && it["protocol"] == port["protocol"]);
        if twin {
            // Go shows the fields in their own order.
            let message = format!(
                "Duplicate value: {{\"Name\":\"\",\"Protocol\":{},\"AppProtocol\":null,\"Port\":{},\
                 \"TargetPort\":0,\"NodePort\":0}}",
                port["protocol"], port["port"]
            );
            let field = format!("spec.ports[{index}]");
            causes.push(Cause { reason: "FieldValueDuplicate", field, message });
        }
        let node_port = number(port, &["nodePort"]);
        let shared = ports[..index].iter().any(|it| {
            node_port.is_some()
                && number(it, &["nodePort"]) == node_port
                && it["protocol"] == port["protocol"]
        });
        if shared {
            causes.push(Cause::duplicate(format!("spec.ports[{index}].nodePort"), &json!(node_port)));
        }
    }
}

fn one_of(spec: &Value, field: &str, supported: &[&str], causes: &mut Vec<Cause>) {
    let value = at(spec, &[field]);
    if value.as_str().is_some_and(|it| !supported.contains(&it)) {
        causes.push(Cause::unsupported(format!("spec.{field}"), value, supported));
    }
}

fn load_balancer(service: &Value, causes: &mut Vec<Cause>) {
    let spec = at(service, &["spec"]);
    let is_one = kind_of(service) == "LoadBalancer";
    let only = "may only be used when `type` is 'LoadBalancer'";
    let ranges = list(spec, &["loadBalancerSourceRanges"]);
    if !ranges.is_empty() && !is_one {
        causes.push(Cause::forbidden("spec.LoadBalancerSourceRanges", only));
    }
    for (index, range) in ranges.iter().enumerate() {
        if !is_cidr(range.as_str().unwrap_or("").trim()) {
            let why = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
            causes.push(Cause::invalid(format!("spec.LoadBalancerSourceRanges[{index}]"), range, why));
        }
    }
    if spec.get("allocateLoadBalancerNodePorts").is_some() && !is_one {
        causes.push(Cause::forbidden("spec.allocateLoadBalancerNodePorts", only));
    }
    if let Some(class) = spec.get("loadBalancerClass") {
        if is_one {
            let problems = qualified_name(class.as_str().unwrap_or(""));
            causes.extend(problems.iter().map(|why| Cause::invalid("spec.loadBalancerClass", class, why)));
        } else {
            causes.push(Cause::forbidden("spec.loadBalancerClass", only));
        }
    }
}

fn is_cidr(text: &str) -> bool {
    let Some((ip, bits)) = text.split_once('/') else { return false };
    let most = match ip.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    bits.parse::<u8>().is_ok_and(|bits| bits <= most)
}

fn policies(service: &Value, causes: &mut Vec<Cause>) {
    let spec = at(service, &["spec"]);
    if let Some(policy) = spec.get("externalTrafficPolicy") {
        if is_reached_from_outside(service) {
            one_of(spec, "externalTrafficPolicy", &["Cluster", "Local"], causes);
        } else {
            let why = "may only be set for externally-accessible services";
            causes.push(Cause::invalid("spec.externalTrafficPolicy", policy, why));
        }
    }
    if let Some(port) = spec.get("healthCheckNodePort").filter(|_| !needs_health_port(service)) {
        let why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
        causes.push(Cause::invalid("spec.healthCheckNodePort", port, why));
    }
    one_of(spec, "internalTrafficPolicy", &["Cluster", "Local"], causes);
    let near = ["PreferClose", "PreferSameZone", "PreferSameNode"];
    one_of(spec, "trafficDistribution", &near, causes);
}

/// The addresses that a controller publishes.
fn addresses(service: &Value, old: &Value, causes: &mut Vec<Cause>) {
    let path = ["status", "loadBalancer", "ingress"];
    let (has, had) = (list(service, &path), list(old, &path));
    if has == had {
        return;
    }
    if !has.is_empty() && kind_of(service) != "LoadBalancer" {
        let why = "may only be used when `spec.type` is 'LoadBalancer'";
        causes.push(Cause::forbidden(path.join("."), why));
    }
    for (index, ingress) in has.iter().enumerate() {
        let ip = text(ingress, &["ip"]);
        if !ip.is_empty() && ip.parse::<IpAddr>().is_err() {
            let field = format!("status.loadBalancer.ingress[{index}].ip");
            let why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
            causes.push(Cause::invalid(field, &json!(ip), why));
        }
    }
}

fn unchangeable(service: &Value, old: &Value, causes: &mut Vec<Cause>) {
    let (has, had) = (at(service, &["spec"]), at(old, &["spec"]));
    let changed = |field: &str| at(has, &[field]) != at(had, &[field]);
    if needs_cluster_ip(old) && needs_cluster_ip(service) && changed("clusterIPs") {
        causes.push(Cause::invalid(
            "spec.clusterIPs[0]",
            at(has, &["clusterIPs"]),
            "may not change once set",
        ));
    }
    if kind_of(old) == "LoadBalancer" && kind_of(service) == "LoadBalancer" && changed("loadBalancerClass") {
        let value = at(has, &["loadBalancerClass"]);
        causes.push(Cause::invalid("spec.loadBalancerClass", value, "may not change once set"));
    }
    if needs_health_port(old) && needs_health_port(service) && changed("healthCheckNodePort") {
        let why = "field is immutable";
        causes.push(Cause::invalid("spec.healthCheckNodePort", at(has, &["healthCheckNodePort"]), why));
    }
}
