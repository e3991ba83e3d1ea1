//! What has to change in a Service's status so that it says what we know; pure.
//!
//! Two lists and the annotations, none of them ours alone. Of `loadBalancer.ingress` we own the entry with our IP, of
//! `conditions` the two types that bear our names; everything else keeps its place and its fields,
//! also those that we have never heard of.

use std::net::IpAddr;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Map, Value, json};
use sluice_model::ObjectName;
use sluice_model::address::parse_ip;
use sluice_model::kube::{Condition, ConditionKind};
use sluice_model::reason::Reason;

use crate::convert::published_message;
use crate::strings::{PUBLISHED_IP, condition_type};

const OURS: [ConditionKind; 2] = [ConditionKind::Provisioning, ConditionKind::Serving];

/// The operations of a JSON patch; none when the status is as it should be.
pub(super) fn operations(
    service: &Value,
    name: &ObjectName,
    ingress: Option<IpAddr>,
    retract: Option<IpAddr>,
    conditions: &[Condition],
    now: Timestamp,
) -> Vec<Value> {
    let mut changes = Vec::new();
    let before = list(&service["status"]["loadBalancer"]["ingress"]);
    let after = entries(before, ingress, retract);
    if after != before {
        change(&mut changes, service, &["status", "loadBalancer", "ingress"], after);
    }
    let before = list(&service["status"]["conditions"]);
    let after = merged((service, name), before, ingress, conditions, now);
    if after != before {
        change(&mut changes, service, &["status", "conditions"], after);
    }
    changes
}

/// The operation that makes the annotation name the published IP; none if it does. An annotation that names another
/// entry of the list stays, because only Azure can tell whether that entry is ours.
pub(super) fn annotation_operation(
    service: &Value,
    ingress: Option<IpAddr>,
    retract: Option<IpAddr>,
) -> Option<Value> {
    let annotations = &service["metadata"]["annotations"];
    let path = format!("/metadata/annotations/{}", PUBLISHED_IP.replace('/', "~1"));
    let before = annotations[PUBLISHED_IP].as_str();
    let entries = entries(list(&service["status"]["loadBalancer"]["ingress"]), ingress, retract);
    let is_listed = before.is_some_and(|ip| entries.iter().any(|entry| entry["ip"] == ip));
    match (before, ingress.map(|ip| ip.to_string())) {
        (before, after) if before == after.as_deref() => None,
        (_, None) if is_listed => None,
        (_, None) => Some(json!({"op": "remove", "path": path})),
        (_, Some(ip)) if annotations.is_object() => Some(json!({"op": "add", "path": path, "value": ip})),
        (_, Some(ip)) => {
            Some(json!({"op": "add", "path": "/metadata/annotations", "value": {PUBLISHED_IP: ip}}))
        }
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Sets a list, with whatever has to stand around it; an empty one is taken away.
fn change(changes: &mut Vec<Value>, service: &Value, path: &[&str], list: Vec<Value>) {
    let pointer = format!("/{}", path.join("/"));
    if list.is_empty() {
        changes.push(json!({"op": "remove", "path": pointer}));
        return;
    }
    for depth in 1..path.len() {
        let parent = format!("/{}", path[..depth].join("/"));
        let made = changes.iter().any(|operation| operation["path"] == parent);
        if !service.pointer(&parent).is_some_and(Value::is_object) && !made {
            changes.push(json!({"op": "add", "path": parent, "value": {}}));
        }
    }
    changes.push(json!({"op": "add", "path": pointer, "value": list}));
}

/// The ingress entries with our IP and without the one that is ours no longer.
fn entries(before: &[Value], ingress: Option<IpAddr>, retract: Option<IpAddr>) -> Vec<Value> {
    let address = |entry: &Value| entry["ip"].as_str().and_then(|text| parse_ip(text).ok());
    let retract = retract.filter(|ip| Some(*ip) != ingress);
    let mut after: Vec<Value> = Vec::with_capacity(before.len() + 1);
    let mut is_there = false;
    for entry in before {
        match address(entry) {
            Some(ip) if Some(ip) == retract => {}
            Some(ip) if Some(ip) == ingress => {
                let mut entry = entry.clone();
                entry["ipMode"] = json!("VIP");
                after.push(entry);
                is_there = true;
            }
            _ => after.push(entry.clone()),
        }
    }
    if let Some(ip) = ingress.filter(|_| !is_there) {
        after.push(json!({"ip": ip.to_string(), "ipMode": "VIP"}));
    }
    after
}

/// All conditions, ours as given.
fn merged(
    service: (&Value, &ObjectName),
    before: &[Value],
    ingress: Option<IpAddr>,
    conditions: &[Condition],
    now: Timestamp,
) -> Vec<Value> {
    let kind_of =
        |condition: &Value| OURS.into_iter().find(|kind| condition["type"] == condition_type(*kind));
    let wanted = |kind| conditions.iter().find(move |condition| condition.kind == kind);
    let mut after = Vec::with_capacity(before.len() + OURS.len());
    let mut written = Vec::with_capacity(OURS.len());
    for old in before {
        match kind_of(old) {
            None => after.push(old.clone()),
            Some(kind) => {
                let Some(condition) = wanted(kind).filter(|_| !written.contains(&kind)) else { continue };
                after.push(put(Some(old), service, condition, ingress, now));
                written.push(kind);
            }
        }
    }
    for kind in OURS.into_iter().filter(|kind| !written.contains(kind)) {
        if let Some(condition) = wanted(kind) {
            after.push(put(None, service, condition, ingress, now));
        }
    }
    after
}

/// One condition of ours; the time stays while the status stays.
fn put(
    old: Option<&Value>,
    (service, name): (&Value, &ObjectName),
    condition: &Condition,
    ingress: Option<IpAddr>,
    now: Timestamp,
) -> Value {
    let status = if condition.holds { "True" } else { "False" };
    let since = old
        .filter(|old| old["status"] == status)
        .map(|old| old["lastTransitionTime"].clone())
        .filter(Value::is_string)
        .unwrap_or_else(|| json!(Time(now)));
    let mut fields = Map::new();
    fields.insert("type".into(), condition_type(condition.kind).into());
    fields.insert("status".into(), status.into());
    fields.insert("lastTransitionTime".into(), since);
    fields.insert("reason".into(), condition.reason.word().into());
    fields.insert("message".into(), message(name, condition, ingress).into());
    // Services have no generation up to Kubernetes 1.36; where they have one, it is said.
    if let Some(generation) = service["metadata"]["generation"].as_i64() {
        fields.insert("observedGeneration".into(), generation.into());
    }
    Value::Object(fields)
}

/// The message, from the table of reasons if it has no details. `LoadBalancerServing` also says which IP is published: version 0.1 reads it
/// there.
fn message(name: &ObjectName, condition: &Condition, ingress: Option<IpAddr>) -> String {
    let why = match &*condition.message {
        "" => condition.reason.message(condition.concern, Some(name), None),
        message => message.to_owned(),
    };
    match ingress.filter(|_| condition.kind == ConditionKind::Serving) {
        Some(ip) if condition.reason == Reason::Provisioned => published_message(ip),
        Some(ip) => format!("{} {why}", published_message(ip)),
        None => why,
    }
}

#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;
