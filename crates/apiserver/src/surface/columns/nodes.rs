//! Nodes.

use serde_json::{Value, json};

use super::{AGE, Column, NAME, age, or_none, text_column, wide};
use crate::value::{at, list, name_of, text};

pub(super) fn columns() -> Vec<Column> {
    vec![
        NAME,
        text_column("Status"),
        text_column("Roles"),
        AGE,
        text_column("Version"),
        wide("Internal-IP"),
        wide("External-IP"),
        wide("OS-Image"),
        wide("Kernel-Version"),
        wide("Container-Runtime"),
    ]
}

pub(super) fn cells(node: &Value) -> Vec<Value> {
    let address = |kind: &str| {
        let found = list(node, &["status", "addresses"]).iter().find(|it| it["type"] == kind);
        or_none(found.map_or("", |it| text(it, &["address"])))
    };
    let info = |field: &str| match text(node, &["status", "nodeInfo", field]) {
        "" => "<unknown>".to_owned(),
        said => said.to_owned(),
    };
    let kernel = match text(node, &["status", "nodeInfo", "architecture"]) {
        "" => info("kernelVersion"),
        architecture => format!("{} ({architecture})", info("kernelVersion")),
    };
    vec![
        json!(name_of(node)),
        json!(status(node)),
        json!(roles(node)),
        age(node),
        json!(text(node, &["status", "nodeInfo", "kubeletVersion"])),
        json!(address("InternalIP")),
        json!(address("ExternalIP")),
        json!(info("osImage")),
        json!(kernel),
        json!(info("containerRuntimeVersion")),
    ]
}

fn status(node: &Value) -> String {
    let ready = list(node, &["status", "conditions"]).iter().find(|it| it["type"] == "Ready");
    let mut said = match ready.map(|it| text(it, &["status"])) {
        None => "Unknown",
        Some("True") => "Ready",
        Some(_) => "NotReady",
    }
    .to_owned();
    if at(node, &["spec", "unschedulable"]) == true {
        said.push_str(",SchedulingDisabled");
    }
    said
}

fn roles(node: &Value) -> String {
    let labels = at(node, &["metadata", "labels"]).as_object().into_iter().flatten();
    let roles = labels.filter_map(|(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
        Some(role) => Some(role),
        None if key == "kubernetes.io/role" => value.as_str(),
        None => None,
    });
    let mut roles: Vec<&str> = roles.filter(|role| !role.is_empty()).collect();
    roles.sort_unstable();
    or_none(&roles.join(","))
}
