//! What controllers ask of every object: who owns it, whether it goes, its conditions.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::machine::{Change, Key};
use crate::kinds::Kind;
use crate::store::Store;
use crate::value::{at, fields, list, metadata, name_of, namespace_of, now, text};

/// Namespace and name.
pub(super) fn key(object: &Value) -> Key {
    (namespace_of(object).to_owned(), name_of(object).to_owned())
}

/// `metadata.uid`.
pub(super) fn uid(object: &Value) -> &str {
    text(object, &["metadata", "uid"])
}

/// Whether it is being deleted.
pub(super) fn is_going(object: &Value) -> bool {
    at(object, &["metadata", "deletionTimestamp"]).is_string()
}

/// The reference to the one that manages it.
pub(super) fn controller_of(object: &Value) -> Option<&Value> {
    list(object, &["metadata", "ownerReferences"]).iter().find(|it| it["controller"] == true)
}

/// The key of the one that manages it, if that is of this kind.
pub(super) fn managed_by(object: &Value, kind: &str) -> Option<Key> {
    let owner = controller_of(object).filter(|owner| owner["kind"] == kind)?;
    Some((namespace_of(object).to_owned(), text(owner, &["name"]).to_owned()))
}

/// Whether this one manages it.
pub(super) fn is_managed_by(object: &Value, owner: &Value) -> bool {
    controller_of(object).is_some_and(|it| text(it, &["uid"]) == uid(owner))
}

/// The reference by which an owner manages an object.
pub(super) fn managing_reference(owner: &Value) -> Value {
    json!({
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": name_of(owner), "uid": uid(owner),
        "controller": true, "blockOwnerDeletion": true,
    })
}

/// An object that has an owner now.
pub(super) fn taken(kind: &'static Kind, object: &Value, owner: &Value) -> Change {
    let mut object = object.clone();
    let mut owners = list(&object, &["metadata", "ownerReferences"]).to_vec();
    owners.push(managing_reference(owner));
    metadata(&mut object)["ownerReferences"] = Value::Array(owners);
    Change::Put { kind, sub: None, object }
}

/// An object without some of its owners.
pub(super) fn without_owners(
    kind: &'static Kind,
    object: &Value,
    gone: impl Fn(usize, &Value) -> bool,
) -> Change {
    let owners = list(object, &["metadata", "ownerReferences"]).iter().enumerate();
    let left: Vec<Value> =
        owners.filter(|(place, owner)| !gone(*place, owner)).map(|(_, owner)| owner.clone()).collect();
    let mut object = object.clone();
    metadata(&mut object)["ownerReferences"] = json!(left);
    Change::Put { kind, sub: None, object }
}

/// The objects of a kind that an owner manages and does not select any more: all but those that it selects.
pub(super) fn strays(
    store: &Store,
    kind: &'static Kind,
    owner: &Value,
    selected: &[Arc<Value>],
) -> Vec<Arc<Value>> {
    let selected: HashSet<&str> = selected.iter().map(|it| name_of(it)).collect();
    let owned = store.owned_by(uid(owner)).into_iter();
    let lost = owned.filter(|(of, _, name)| *of == kind && !selected.contains(name.as_str()));
    let lost = lost.filter_map(|(_, namespace, name)| store.get(kind, &namespace, &name).ok());
    lost.filter(|it| is_managed_by(it, owner) && !is_going(it)).collect()
}

/// Such objects, each without its owner: they are somebody else's, or nobody's.
pub(super) fn released(kind: &'static Kind, strays: &[Arc<Value>], owner: &Value) -> Vec<Change> {
    let release = |it: &Arc<Value>| without_owners(kind, it, |_, of| text(of, &["uid"]) == uid(owner));
    strays.iter().map(release).collect()
}

/// How an event names an object.
pub(super) fn reference_to(object: &Value) -> Value {
    let mut reference = json!({
        "apiVersion": object["apiVersion"], "kind": object["kind"], "name": name_of(object),
        "uid": uid(object), "resourceVersion": at(object, &["metadata", "resourceVersion"]),
    });
    if !namespace_of(object).is_empty() {
        reference["namespace"] = json!(namespace_of(object));
    }
    reference
}

/// A condition of its status.
pub(super) fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    list(object, &["status", "conditions"]).iter().find(|it| it["type"] == kind)
}

/// Whether a condition is true.
pub(super) fn holds(object: &Value, kind: &str) -> bool {
    condition(object, kind).is_some_and(|it| it["status"] == "True")
}

/// Sets a condition of a status in its place; the time of the last transition stays while its status does.
pub(super) fn set_condition(status: &mut Value, mut condition: Value) {
    let conditions = conditions_of(status);
    let found = conditions.iter().position(|it| it["type"] == condition["type"]);
    let time = found
        .filter(|place| conditions[*place]["status"] == condition["status"])
        .map_or_else(|| json!(now()), |place| conditions[place]["lastTransitionTime"].clone());
    condition["lastTransitionTime"] = time;
    match found {
        Some(place) => conditions[place] = condition,
        None => conditions.push(condition),
    }
}

/// The conditions of a status, to be changed.
pub(super) fn conditions_of(status: &mut Value) -> &mut Vec<Value> {
    let conditions = fields(status).entry("conditions").or_insert_with(|| json!([]));
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    conditions.as_array_mut().expect("it was just made a list")
}
