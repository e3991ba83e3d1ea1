//! Deployments and ReplicaSets.

use serde_json::{Value, json};

use super::{AGE, Column, NAME, age, number_column, or_none, text_column, wide};
use crate::value::{at, list, name_of, number, text};

pub(super) fn deployment_columns() -> Vec<Column> {
    let own = [NAME, text_column("Ready"), number_column("Up-to-date"), number_column("Available"), AGE];
    own.into_iter().chain(template_columns()).collect()
}

pub(super) fn replica_set_columns() -> Vec<Column> {
    let own = [NAME, number_column("Desired"), number_column("Current"), number_column("Ready"), AGE];
    own.into_iter().chain(template_columns()).collect()
}

fn template_columns() -> [Column; 3] {
    [wide("Containers"), wide("Images"), wide("Selector")]
}

fn count(object: &Value, path: &[&str]) -> i64 {
    number(object, path).unwrap_or(0)
}

pub(super) fn deployment_cells(object: &Value) -> Vec<Value> {
    let ready =
        format!("{}/{}", count(object, &["status", "readyReplicas"]), count(object, &["spec", "replicas"]));
    let own = [
        json!(name_of(object)),
        json!(ready),
        json!(count(object, &["status", "updatedReplicas"])),
        json!(count(object, &["status", "availableReplicas"])),
        age(object),
    ];
    own.into_iter().chain(template_cells(object)).collect()
}

pub(super) fn replica_set_cells(object: &Value) -> Vec<Value> {
    let own = [
        json!(name_of(object)),
        json!(count(object, &["spec", "replicas"])),
        json!(count(object, &["status", "replicas"])),
        json!(count(object, &["status", "readyReplicas"])),
        age(object),
    ];
    own.into_iter().chain(template_cells(object)).collect()
}

fn template_cells(object: &Value) -> [Value; 3] {
    let containers = list(object, &["spec", "template", "spec", "containers"]);
    let all = |field: &str| {
        let said: Vec<&str> = containers.iter().map(|container| text(container, &[field])).collect();
        json!(said.join(","))
    };
    [all("name"), all("image"), json!(selector(at(object, &["spec", "selector"])))]
}

/// A selector as one types it.
pub(super) fn selector(selector: &Value) -> String {
    let labels = at(selector, &["matchLabels"]).as_object().into_iter().flatten();
    let mut parts: Vec<String> =
        labels.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or(""))).collect();
    for rule in list(selector, &["matchExpressions"]) {
        let key = text(rule, &["key"]);
        let values: Vec<&str> = list(rule, &["values"]).iter().filter_map(Value::as_str).collect();
        parts.push(match text(rule, &["operator"]) {
            "In" => format!("{key} in ({})", values.join(",")),
            "NotIn" => format!("{key} notin ({})", values.join(",")),
            "Exists" => key.to_owned(),
            _ => format!("!{key}"),
        });
    }
    parts.sort();
    or_none(&parts.join(","))
}
