//! The columns of `kubectl get`, kind by kind, and what stands in them.

mod age;
mod apps;
mod nodes;
mod pods;
mod services;

use serde_json::{Value, json};

use crate::kinds::{
    CLUSTER_ROLE, CLUSTER_ROLE_BINDING, CONFIG_MAP, DEPLOYMENT, ENDPOINT_SLICE, ENDPOINTS, EVENT, Kind,
    LEASE, NAMESPACE, NEW_EVENT, NODE, POD, REPLICA_SET, ROLE, ROLE_BINDING, SECRET, SERVICE,
    SERVICE_ACCOUNT,
};
use crate::value::{at, list, name_of, number, text};
use age::{age, since};

/// A column.
pub(super) struct Column {
    name: &'static str,
    is_number: bool,
    /// Only with `-o wide`.
    is_wide: bool,
}

const fn text_column(name: &'static str) -> Column {
    Column { name, is_number: false, is_wide: false }
}

const fn number_column(name: &'static str) -> Column {
    Column { name, is_number: true, is_wide: false }
}

const fn wide(name: &'static str) -> Column {
    Column { name, is_number: false, is_wide: true }
}

const NAME: Column = text_column("Name");
const AGE: Column = text_column("Age");

impl Column {
    /// As a table defines it.
    pub(super) fn defined(&self) -> Value {
        json!({
            "name": self.name,
            "type": if self.is_number { "integer" } else { "string" },
            "format": if self.name == NAME.name { "name" } else { "" },
            "description": "",
            "priority": i32::from(self.is_wide),
        })
    }
}

/// The columns of a kind.
pub(super) fn of(kind: &Kind) -> Vec<Column> {
    match kind {
        kind if *kind == POD => pods::columns(),
        kind if *kind == SERVICE => services::columns(),
        kind if *kind == ENDPOINT_SLICE => services::slice_columns(),
        kind if *kind == ENDPOINTS => vec![NAME, text_column("Endpoints"), AGE],
        kind if *kind == NODE => nodes::columns(),
        kind if *kind == DEPLOYMENT => apps::deployment_columns(),
        kind if *kind == REPLICA_SET => apps::replica_set_columns(),
        kind if *kind == NAMESPACE => vec![NAME, text_column("Status"), AGE],
        kind if *kind == CONFIG_MAP => vec![NAME, number_column("Data"), AGE],
        kind if *kind == SECRET => vec![NAME, text_column("Type"), number_column("Data"), AGE],
        kind if *kind == SERVICE_ACCOUNT => vec![NAME, AGE],
        kind if *kind == LEASE => vec![NAME, text_column("Holder"), AGE],
        kind if *kind == EVENT || *kind == NEW_EVENT => event_columns(),
        kind if *kind == ROLE || *kind == CLUSTER_ROLE => vec![NAME, text_column("Created At")],
        kind if *kind == ROLE_BINDING || *kind == CLUSTER_ROLE_BINDING => {
            vec![NAME, text_column("Role"), AGE, wide("Users"), wide("Groups"), wide("ServiceAccounts")]
        }
        _ => vec![NAME, text_column("Created At")],
    }
}

/// What an object has in them.
pub(super) fn cells(kind: &Kind, object: &Value) -> Vec<Value> {
    let name = json!(name_of(object));
    match kind {
        kind if *kind == POD => pods::cells(object),
        kind if *kind == SERVICE => services::cells(object),
        kind if *kind == ENDPOINT_SLICE => services::slice_cells(object),
        kind if *kind == ENDPOINTS => vec![name, json!(services::endpoints(object)), age(object)],
        kind if *kind == NODE => nodes::cells(object),
        kind if *kind == DEPLOYMENT => apps::deployment_cells(object),
        kind if *kind == REPLICA_SET => apps::replica_set_cells(object),
        kind if *kind == NAMESPACE => vec![name, json!(text(object, &["status", "phase"])), age(object)],
        kind if *kind == CONFIG_MAP => {
            vec![name, json!(size(object, "data") + size(object, "binaryData")), age(object)]
        }
        kind if *kind == SECRET => {
            vec![name, json!(text(object, &["type"])), json!(size(object, "data")), age(object)]
        }
        kind if *kind == SERVICE_ACCOUNT => vec![name, age(object)],
        kind if *kind == LEASE => {
            vec![name, json!(text(object, &["spec", "holderIdentity"])), age(object)]
        }
        kind if *kind == EVENT || *kind == NEW_EVENT => event_cells(object),
        kind if *kind == ROLE_BINDING || *kind == CLUSTER_ROLE_BINDING => binding_cells(object),
        _ => vec![name, at(object, &["metadata", "creationTimestamp"]).clone()],
    }
}

/// The columns of a `scale`, which is a part of several kinds.
pub(super) fn scale() -> Vec<Column> {
    vec![NAME, number_column("Desired"), number_column("Available"), AGE]
}

/// What a `scale` has in them.
pub(super) fn scale_cells(scale: &Value) -> Vec<Value> {
    let count = |part: &str| json!(number(scale, &[part, "replicas"]).unwrap_or(0));
    vec![json!(name_of(scale)), count("spec"), count("status"), age(scale)]
}

fn size(object: &Value, field: &str) -> usize {
    at(object, &[field]).as_object().map_or(0, serde_json::Map::len)
}

fn event_columns() -> Vec<Column> {
    vec![
        text_column("Last Seen"),
        text_column("Type"),
        text_column("Reason"),
        text_column("Object"),
        wide("Subobject"),
        wide("Source"),
        text_column("Message"),
        wide("First Seen"),
        Column { name: "Count", is_number: true, is_wide: true },
        Column { name: "Name", is_number: false, is_wide: true },
    ]
}

fn event_cells(event: &Value) -> Vec<Value> {
    let said = |path: &[&str]| text(event, path).to_owned();
    let first = match text(event, &["firstTimestamp"]) {
        "" => since(text(event, &["eventTime"])),
        time => since(time),
    };
    let last = match (text(event, &["series", "lastObservedTime"]), text(event, &["lastTimestamp"])) {
        ("", "") => first.clone(),
        ("", time) | (time, _) => since(time),
    };
    // The newer words for the same.
    let about = if at(event, &["involvedObject"]).is_object() { "involvedObject" } else { "regarding" };
    let object = match (said(&[about, "kind"]).to_lowercase(), said(&[about, "name"])) {
        (kind, name) if name.is_empty() => kind,
        (kind, name) => format!("{kind}/{name}"),
    };
    let source = match (said(&["source", "component"]), said(&["source", "host"])) {
        (component, host) if host.is_empty() => component,
        (component, host) => format!("{component}, {host}"),
    };
    let source = if source.is_empty() { said(&["reportingComponent"]) } else { source };
    let message = if said(&["message"]).is_empty() { said(&["note"]) } else { said(&["message"]) };
    let count = number(event, &["series", "count"]).or(number(event, &["count"])).unwrap_or(0).max(1);
    vec![
        json!(last),
        json!(said(&["type"])),
        json!(said(&["reason"])),
        json!(object),
        json!(said(&[about, "fieldPath"])),
        json!(source),
        json!(message.trim()),
        json!(first),
        json!(count),
        json!(name_of(event)),
    ]
}

fn binding_cells(binding: &Value) -> Vec<Value> {
    let role = format!("{}/{}", text(binding, &["roleRef", "kind"]), text(binding, &["roleRef", "name"]));
    let subjects = |kind: &str| {
        let of_kind = list(binding, &["subjects"]).iter().filter(|it| it["kind"] == kind);
        let names = of_kind.map(|it| match text(it, &["namespace"]) {
            "" => text(it, &["name"]).to_owned(),
            namespace => format!("{namespace}/{}", text(it, &["name"])),
        });
        json!(names.collect::<Vec<_>>().join(", "))
    };
    let name = json!(name_of(binding));
    vec![name, json!(role), age(binding), subjects("User"), subjects("Group"), subjects("ServiceAccount")]
}

/// The first few, and how many more.
fn shortened(all: &[String], most: usize) -> String {
    match all.len() {
        0 => "<unset>".to_owned(),
        count if count > most => format!("{} + {} more...", all[..most].join(","), count - most),
        _ => all.join(","),
    }
}

/// A word for nothing.
fn or_none(text: &str) -> String {
    if text.is_empty() { "<none>".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests;
