//! Defaults and checks of the kinds that have few: config maps, secrets, nodes, slices, leases, events.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::words::{config_key, label_1123, port_number};
use crate::refusal::Cause;
use crate::value::{at, default_to, is_empty, list, namespace_of, number, object, remove, text};

/// Everything that is wrong with the keys of a config map.
pub(super) fn check_config_map(map: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut causes = keys(map, &["data", "binaryData"]);
    if let Some(old) = old {
        unchangeable(map, old, &["data", "binaryData"], &mut causes);
    }
    causes
}

/// A secret is opaque unless it says otherwise; what comes as text is kept as bytes.
pub(super) fn default_secret(secret: &mut Value) {
    use base64::Engine as _;
    default_to(secret, "type", "Opaque");
    if let Some(Value::Object(texts)) = remove(secret, "stringData") {
        let data = object(secret, "data");
        for (key, value) in texts {
            let bytes = value.as_str().unwrap_or("").as_bytes();
            data[key] = json!(base64::engine::general_purpose::STANDARD.encode(bytes));
        }
    }
}

/// Everything that is wrong with a secret.
pub(super) fn check_secret(secret: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut causes = keys(secret, &["data"]);
    if let Some(old) = old {
        if at(secret, &["type"]) != at(old, &["type"]) {
            causes.push(Cause::invalid("type", at(secret, &["type"]), "field is immutable"));
        }
        unchangeable(secret, old, &["data"], &mut causes);
    }
    causes
}

fn keys(object: &Value, fields: &[&str]) -> Vec<Cause> {
    let mut causes = Vec::new();
    for field in fields {
        for key in at(object, &[field]).as_object().into_iter().flat_map(|it| it.keys()) {
            let problems = config_key(key);
            causes.extend(
                problems.iter().map(|why| Cause::invalid(format!("{field}[{key}]"), &json!(key), why)),
            );
        }
    }
    causes
}

/// Who says `immutable` means it.
fn unchangeable(new: &Value, old: &Value, fields: &[&str], causes: &mut Vec<Cause>) {
    if at(old, &["immutable"]) != &json!(true) {
        return;
    }
    let why = "field is immutable when `immutable` is set";
    if at(new, &["immutable"]) != &json!(true) {
        causes.push(Cause::forbidden("immutable", why));
    }
    for field in fields {
        if at(new, &[field]) != at(old, &[field]) {
            causes.push(Cause::forbidden(*field, why));
        }
    }
}

/// The taint of a node of which nobody has said that it is ready.
const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// A node takes no pods while it is new.
pub(super) fn admit_node(node: &mut Value) {
    let spec = object(node, "spec");
    if !list(spec, &["taints"]).iter().any(|it| it["key"] == NOT_READY) {
        let mut taints = list(spec, &["taints"]).to_vec();
        taints.push(json!({"key": NOT_READY, "effect": "NoSchedule"}));
        spec["taints"] = Value::Array(taints);
    }
}

/// A node has its range of addresses twice, as one and as a list.
pub(super) fn default_node(node: &mut Value) {
    let spec = object(node, "spec");
    if is_empty(at(spec, &["podCIDRs"])) && !text(spec, &["podCIDR"]).is_empty() {
        spec["podCIDRs"] = json!([spec["podCIDR"]]);
    }
}

/// Everything that is wrong with a node.
pub(super) fn check_node(node: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut causes = Vec::new();
    for (index, range) in list(node, &["spec", "podCIDRs"]).iter().enumerate() {
        let is_one = range.as_str().and_then(|it| it.split_once('/')).is_some_and(|(ip, bits)| {
            ip.parse::<IpAddr>().is_ok() && bits.parse::<u8>().is_ok_and(|bits| bits <= 128)
        });
        if !is_one {
            let why = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
            causes.push(Cause::invalid(format!("spec.podCIDRs[{index}]"), range, why));
        }
    }
    for field in ["podCIDR", "providerID"] {
        if let Some(old) = old
            && !is_empty(at(old, &["spec", field]))
            && at(old, &["spec", field]) != at(node, &["spec", field])
        {
            let why = "node updates may only change labels, taints, or capacity (or configSource, if the \
                       DynamicKubeletConfig feature gate is enabled)";
            causes.push(Cause::forbidden("spec", why));
        }
    }
    causes
}

/// The ports of a slice are TCP and have a name, if an empty one.
pub(super) fn default_slice(slice: &mut Value) {
    for port in slice.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        default_to(port, "protocol", "TCP");
        if port.get("name").is_none() {
            port["name"] = json!("");
        }
    }
    // The real server says so where it has nothing.
    for name in ["endpoints", "ports"] {
        if slice.get(name).is_none() {
            slice[name] = Value::Null;
        }
    }
    for endpoint in slice.get_mut("endpoints").and_then(Value::as_array_mut).into_iter().flatten() {
        object(endpoint, "conditions");
    }
}

/// Everything that is wrong with a slice.
pub(super) fn check_slice(slice: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut causes = Vec::new();
    let family = at(slice, &["addressType"]);
    if is_empty(family) {
        causes.push(Cause::required("addressType", ""));
    } else if !["FQDN", "IPv4", "IPv6"].contains(&family.as_str().unwrap_or("")) {
        causes.push(Cause::unsupported("addressType", family, &["FQDN", "IPv4", "IPv6"]));
    }
    if let Some(old) = old
        && at(old, &["addressType"]) != family
    {
        causes.push(Cause::invalid("addressType", family, "field is immutable"));
    }
    for (index, port) in list(slice, &["ports"]).iter().enumerate() {
        let name = text(port, &["name"]);
        if !name.is_empty() {
            let place = format!("ports[{index}].name");
            causes.extend(label_1123(name).iter().map(|why| Cause::invalid(&*place, &json!(name), why)));
        }
        if let Some(own) = number(port, &["port"])
            && let Some(why) = port_number(own)
        {
            causes.push(Cause::invalid(format!("ports[{index}].port"), &json!(own), why));
        }
    }
    for (index, endpoint) in list(slice, &["endpoints"]).iter().enumerate() {
        let addresses = list(endpoint, &["addresses"]);
        if addresses.is_empty() {
            let place = format!("endpoints[{index}].addresses");
            causes.push(Cause::required(place, "must contain at least 1 address"));
        }
        for (number, address) in addresses.iter().enumerate() {
            let ip = address.as_str().unwrap_or("").parse::<IpAddr>();
            let place = format!("endpoints[{index}].addresses[{number}]");
            let why = match (text(slice, &["addressType"]), ip) {
                ("IPv4" | "IPv6", Err(_)) => "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
                ("IPv4", Ok(IpAddr::V6(_))) => "must be an IPv4 address",
                ("IPv6", Ok(IpAddr::V4(_))) => "must be an IPv6 address",
                _ => continue,
            };
            causes.push(Cause::invalid(place, address, why));
        }
    }
    causes
}

/// Everything that is wrong with a lease.
pub(super) fn check_lease(lease: &Value, _: Option<&Value>) -> Vec<Cause> {
    let mut causes = Vec::new();
    let spec = at(lease, &["spec"]);
    if let Some(seconds) = number(spec, &["leaseDurationSeconds"]).filter(|it| *it <= 0) {
        causes.push(Cause::invalid("spec.leaseDurationSeconds", &json!(seconds), "must be greater than 0"));
    }
    if let Some(count) = number(spec, &["leaseTransitions"]).filter(|it| *it < 0) {
        let why = "must be greater than or equal to 0";
        causes.push(Cause::invalid("spec.leaseTransitions", &json!(count), why));
    }
    causes
}

/// An event stands in the namespace of what it is about.
pub(super) fn check_event(event: &Value, _: Option<&Value>) -> Vec<Cause> {
    let about = text(event, &["involvedObject", "namespace"]);
    let home = namespace_of(event);
    let is_at_home = about == home || (about.is_empty() && home == "default");
    if is_at_home {
        return Vec::new();
    }
    let why = "does not match event.namespace";
    vec![Cause::invalid("involvedObject.namespace", &json!(about), why)]
}

/// Users and groups are those of the group of roles, unless they say otherwise.
pub(super) fn default_binding(binding: &mut Value) {
    const GROUP: &str = "rbac.authorization.k8s.io";
    default_to(object(binding, "roleRef"), "apiGroup", GROUP);
    for subject in binding.get_mut("subjects").and_then(Value::as_array_mut).into_iter().flatten() {
        if matches!(text(subject, &["kind"]), "User" | "Group") {
            default_to(subject, "apiGroup", GROUP);
        }
    }
}

/// An event always has these, empty or not.
pub(super) fn default_event(event: &mut Value) {
    for field in ["eventTime", "firstTimestamp", "lastTimestamp"] {
        if event.get(field).is_none() {
            event[field] = Value::Null;
        }
    }
    object(event, "involvedObject");
    object(event, "source");
    for field in ["reportingComponent", "reportingInstance"] {
        if event.get(field).is_none() {
            event[field] = json!("");
        }
    }
}
