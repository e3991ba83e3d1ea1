//! Kinds that are shown otherwise than they are stored: the events of `events.k8s.io`.

use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use crate::kinds::{EVENT, Kind, NEW_EVENT};
use crate::refusal::Refusal;
use crate::value::{at, remove, text};

/// The kind under which the objects of a kind are stored.
pub(crate) fn stored(kind: &'static Kind) -> &'static Kind {
    if *kind == NEW_EVENT { &EVENT } else { kind }
}

/// A stored object as one of this kind.
pub(crate) fn shown(kind: &Kind, object: &Arc<Value>) -> Arc<Value> {
    if *kind == NEW_EVENT { Arc::new(new_event(object)) } else { object.clone() }
}

/// An object that came in, as it is stored.
pub(crate) fn taken(kind: &Kind, object: Value) -> Value {
    if *kind == NEW_EVENT { core_event(object) } else { object }
}

/// A refusal that names the kind that was asked for.
pub(crate) fn renamed(refusal: Refusal, kind: &Kind, name: &str) -> Refusal {
    if *kind == NEW_EVENT && refusal.code == 404 { Refusal::not_found(kind, name) } else { refusal }
}

/// Fields with other names in the two groups: core, events.k8s.io.
const NAMES: [(&str, &str); 6] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];
const REPORTER: (&str, &str) = ("reportingComponent", "reportingController");

fn new_event(core: &Value) -> Value {
    let mut event = core.clone();
    for (old, new) in NAMES.iter().chain([&REPORTER]) {
        if let Some(value) = remove(&mut event, old) {
            event[*new] = value;
        }
    }
    for field in ["reportingController", "reportingInstance"] {
        if text(&event, &[field]).is_empty() {
            remove(&mut event, field);
        }
    }
    event["apiVersion"] = json!(NEW_EVENT.api_version());
    event
}

fn core_event(new: Value) -> Value {
    let mut event = new;
    for (old, new) in NAMES.iter().chain([&REPORTER]) {
        if let Some(value) = remove(&mut event, new) {
            event[*old] = value;
        }
    }
    event["apiVersion"] = json!("v1");
    event
}

/// An object without its `kind` and `apiVersion`, as items of lists are; no copy is made.
pub(crate) struct Typeless<'a>(pub(crate) &'a Value);

impl Serialize for Typeless<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = self.0.as_object().into_iter().flatten();
        serializer.collect_map(fields.filter(|(name, _)| !matches!(name.as_str(), "kind" | "apiVersion")))
    }
}

/// The same, as an object of its own.
pub(crate) fn without_type(object: &Value) -> Value {
    let fields = object.as_object().into_iter().flatten();
    let rest: Map<String, Value> = fields
        .filter(|(name, _)| !matches!(name.as_str(), "kind" | "apiVersion"))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    Value::Object(rest)
}

/// An object with nothing but its metadata.
pub(crate) fn metadata_only(object: &Value) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": at(object, &["metadata"])})
}

/// The name in an object's own words, for messages.
pub(crate) fn said_name(object: &Value) -> &str {
    text(object, &["metadata", "name"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_two_shapes_and_nothing_is_lost_between_them() {
        let core = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"},
            "involvedObject": {"kind": "Pod", "name": "p"}, "message": "m", "reason": "r", "count": 2,
            "source": {"component": "c"}, "reportingComponent": "x", "firstTimestamp": "t"});
        let new = new_event(&core);
        assert_eq!((&new["note"], &new["regarding"]["name"]), (&json!("m"), &json!("p")));
        assert_eq!((&new["deprecatedCount"], &new["reportingController"]), (&json!(2), &json!("x")));
        assert_eq!(core_event(new), core);
    }
}
