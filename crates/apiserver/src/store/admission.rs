//! What every write goes through before it counts: metadata, defaults, checks, owners of fields.

use serde_json::{Value, json};

use super::Write;
use super::state::State;
use crate::kinds::{
    DEPLOYMENT, Kind, LEASE, NAMESPACE, NODE, POD, REPLICA_SET, SERVICE, Sub, metadata as checks, pod,
    service,
};
use crate::patch::managed;
use crate::refusal::{Cause, Refusal};
use crate::value::{
    at, drop_nulls, fields, is_empty, list, metadata, name_of, namespace_of, now, number, object, remove,
    set_or_remove, text,
};

/// Letters of generated names; those of Kubernetes, without vowels that make words.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// What only the server writes.
const SERVER_SET: [&str; 6] =
    ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generation"];

/// What an update comes to.
#[derive(Debug)]
pub(super) enum Admitted {
    /// Nothing changes.
    Same,
    /// It becomes this.
    Changed(Value),
}

/// An object as it comes in, made ready to be written. `managed` are the owners of its fields, if known.
pub(super) fn create(
    state: &mut State,
    kind: &Kind,
    namespace: &str,
    mut new: Value,
    write: &Write,
    managed: Option<Value>,
) -> Result<Value, Refusal> {
    drop_nulls(&mut new);
    identify(kind, namespace, &mut new)?;
    if !text(&new, &["metadata", "resourceVersion"]).is_empty() {
        let message = "resourceVersion should not be set on objects to be created";
        return Err(Refusal::new(500, "", message));
    }
    let meta = metadata(&mut new);
    for field in SERVER_SET {
        remove(meta, field);
    }
    remove(meta, "resourceVersion");
    remove(meta, "managedFields");
    if kind.has(Sub::Status) {
        fields(&mut new).insert("status".into(), json!({}));
    }
    (kind.default)(&mut new);
    if *kind == POD {
        topology(state, &mut new);
    }
    drop_empty_metadata(&mut new);
    let managed = managed.or_else(|| managed::after_create(kind, &new, write));
    (kind.admit)(&mut new);

    let meta = metadata(&mut new);
    if text(meta, &["name"]).is_empty() {
        let stem = text(meta, &["generateName"]).to_owned();
        if stem.is_empty() {
            let cause = Cause::required("metadata.name", "name or generateName is required");
            return Err(Refusal::invalid(kind, "", &[cause]));
        }
        meta["name"] = json!(generated(kind, state, namespace, &stem));
    }
    let name = name_of(&new).to_owned();
    if kind.namespaced {
        let Some(home) = state.namespace(namespace) else {
            return Err(Refusal::not_found(&NAMESPACE, namespace));
        };
        if at(&home, &["metadata", "deletionTimestamp"]).is_string() {
            let why = format!(
                "unable to create new content in namespace {namespace} because it is being terminated"
            );
            let mut refusal = Refusal::forbidden(kind, &name, &why);
            let cause = json!({"reason": "NamespaceTerminating",
                "message": format!("namespace {namespace} is being terminated"), "field": "metadata.namespace"});
            refusal.details.insert("causes".into(), json!([cause]));
            return Err(refusal);
        }
    }
    if *kind == SERVICE {
        service::allocate(&mut state.addresses, &mut new, None)
            .map_err(|causes| Refusal::invalid(kind, &name, &causes))?;
    }
    let mut causes = checks::check(kind, &new, None);
    causes.extend((kind.check)(&new, None));
    if !causes.is_empty() {
        return Err(Refusal::invalid(kind, &name, &causes));
    }
    if state.find(kind, namespace, &name).is_some() {
        return Err(Refusal::already_exists(kind, &name));
    }
    let meta = metadata(&mut new);
    meta["uid"] = json!(uuid::Uuid::new_v4().to_string());
    meta["creationTimestamp"] = json!(now());
    if kind.generations {
        meta["generation"] = json!(1);
    }
    set_or_remove(meta, "managedFields", managed);
    Ok(new)
}

/// An object as it shall be, made ready to replace what is there.
pub(super) fn update(
    state: &mut State,
    kind: &Kind,
    old: &Value,
    wanted: Value,
    write: &Write,
    managed: Option<Value>,
) -> Result<Admitted, Refusal> {
    let name = name_of(old);
    let mut new = wanted;
    drop_nulls(&mut new);
    identify(kind, namespace_of(old), &mut new)?;
    fresh_enough(kind, old, &new)?;
    let owners = said_owners(old, &new);
    keep_what_the_writer_may_not_change(kind, old, &mut new, write.sub);
    (kind.default)(&mut new);
    if *kind == POD && write.sub == Some(Sub::Binding) {
        topology(state, &mut new);
    }
    drop_empty_metadata(&mut new);

    // Before addresses are carried over or given out: nobody owns those.
    let managed = match managed {
        Some(managed) => Some(managed),
        None => owners.and_then(|owners| managed::after_update(kind, &owners, old, &new, write)),
    };
    if *kind == SERVICE {
        service::carry_over(old, &mut new);
    }
    if *kind == SERVICE && write.sub.is_none() {
        service::allocate(&mut state.addresses, &mut new, Some(old))
            .map_err(|causes| Refusal::invalid(kind, name, &causes))?;
    }
    let mut causes = checks::check(kind, &new, Some(old));
    causes.extend((kind.check)(&new, Some(old)));
    if !causes.is_empty() {
        return Err(Refusal::invalid(kind, name, &causes));
    }
    // Where a pod runs is no change of what it is.
    if kind.generations && write.sub != Some(Sub::Binding) && counts(old, &new) {
        let generation = number(old, &["metadata", "generation"]).unwrap_or(0);
        metadata(&mut new)["generation"] = json!(generation + 1);
    }
    set_or_remove(metadata(&mut new), "managedFields", managed);
    Ok(if managed::is_same_but_for_times(old, &new) { Admitted::Same } else { Admitted::Changed(new) })
}

/// A pod that gets a node gets its zone and region.
fn topology(state: &State, pod: &mut Value) {
    let node = state.find(&NODE, "", text(pod, &["spec", "nodeName"]));
    pod::label_with_topology(pod, node.as_deref());
}

/// The object whose owners of fields count: the writer may change them, or with an empty list forget them.
fn said_owners(old: &Value, new: &Value) -> Option<Value> {
    match at(new, &["metadata", "managedFields"]).as_array() {
        None => Some(old.clone()),
        Some(entries) if entries.is_empty() => None,
        Some(entries) => Some(json!({"metadata": {"managedFields": entries}})),
    }
}

/// Type and place of an object are those of the path.
fn identify(kind: &Kind, namespace: &str, new: &mut Value) -> Result<(), Refusal> {
    if !new.is_object() {
        return Err(Refusal::bad_request("the object provided is not a JSON object"));
    }
    new["apiVersion"] = json!(kind.api_version());
    new["kind"] = json!(kind.kind);
    let meta = metadata(new);
    if !kind.namespaced {
        remove(meta, "namespace");
        return Ok(());
    }
    let said = text(meta, &["namespace"]);
    if !said.is_empty() && said != namespace {
        return Err(Refusal::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    meta["namespace"] = json!(namespace);
    Ok(())
}

/// Nobody has written since the writer looked.
fn fresh_enough(kind: &Kind, old: &Value, new: &Value) -> Result<(), Refusal> {
    let name = name_of(old);
    let (is, said) = (text(old, &["metadata", "uid"]), text(new, &["metadata", "uid"]));
    if !said.is_empty() && said != is {
        let place = [kind.resource, namespace_of(old), name].into_iter().filter(|it| !it.is_empty());
        let place = place.collect::<Vec<_>>().join("/");
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: /registry/{place}, ResourceVersion: 0, \
             AdditionalErrorMsg: Precondition failed: UID in precondition: {said}, UID in object meta: {is}"
        );
        return Err(Refusal::conflict(kind, name, &why));
    }
    let (is, said) =
        (text(old, &["metadata", "resourceVersion"]), text(new, &["metadata", "resourceVersion"]));
    if !said.is_empty() && said != is {
        let why =
            "the object has been modified; please apply your changes to the latest version and try again";
        return Err(Refusal::conflict(kind, name, why));
    }
    if said.is_empty() && *kind == LEASE {
        let cause = Cause::invalid("metadata.resourceVersion", &json!(0), "must be specified for an update");
        let mut refusal = Refusal::invalid(kind, name, &[cause]);
        // Here the real server names the resource, not the kind.
        refusal.message = refusal.message.replacen(kind.kind, kind.resource, 1);
        refusal.details.insert("kind".into(), json!(kind.resource));
        return Err(refusal);
    }
    Ok(())
}

fn keep_what_the_writer_may_not_change(kind: &Kind, old: &Value, new: &mut Value, sub: Option<Sub>) {
    match sub {
        Some(Sub::Status) => {
            let status = new.get("status").cloned();
            let mut meta = new.get("metadata").cloned().unwrap_or_default();
            if *kind == DEPLOYMENT || *kind == REPLICA_SET {
                set_or_remove(&mut meta, "labels", at(old, &["metadata"]).get("labels").cloned());
            }
            *new = old.clone();
            set_or_remove(new, "status", status);
            fields(new).insert("metadata".into(), meta);
        }
        Some(Sub::Finalize) => {
            let finalizers = at(new, &["spec"]).get("finalizers").cloned();
            *new = old.clone();
            set_or_remove(object(new, "spec"), "finalizers", finalizers);
        }
        None if kind.has(Sub::Status) => set_or_remove(new, "status", old.get("status").cloned()),
        None | Some(Sub::Scale | Sub::Binding) => {}
    }
    let meta = metadata(new);
    let was = at(old, &["metadata"]);
    for field in SERVER_SET {
        set_or_remove(meta, field, was.get(field).cloned());
    }
    for field in ["name", "namespace", "resourceVersion", "managedFields"] {
        set_or_remove(meta, field, was.get(field).cloned());
    }
    if *kind == NAMESPACE && sub.is_none() {
        // Only `finalize` takes these away.
        set_or_remove(new, "spec", old.get("spec").cloned());
    }
}

/// Whether a change is one of the generation: anything but metadata and status.
fn counts(old: &Value, new: &Value) -> bool {
    let essence = |object: &Value| {
        let mut it = object.as_object().cloned().unwrap_or_default();
        it.remove("metadata");
        it.remove("status");
        it
    };
    essence(old) != essence(new)
}

/// Empty labels, annotations, owners and finalizers are none.
fn drop_empty_metadata(new: &mut Value) {
    let meta = metadata(new);
    for field in ["labels", "annotations", "ownerReferences", "finalizers", "generateName"] {
        if meta.get(field).is_some_and(is_empty) {
            remove(meta, field);
        }
    }
}

fn generated(kind: &Kind, state: &State, namespace: &str, stem: &str) -> String {
    let stem: String = stem.chars().take(58).collect();
    loop {
        let random = uuid::Uuid::new_v4().into_bytes();
        let tail: String =
            random[..5].iter().map(|byte| char::from(LETTERS[usize::from(*byte) % LETTERS.len()])).collect();
        let name = format!("{stem}{tail}");
        if state.find(kind, namespace, &name).is_none() {
            return name;
        }
    }
}

/// Finalizers that are new in an object that is being deleted.
pub(crate) fn late_finalizers(old: &Value, new: &Value) -> Vec<String> {
    if !at(old, &["metadata", "deletionTimestamp"]).is_string() {
        return Vec::new();
    }
    let had = list(old, &["metadata", "finalizers"]);
    let late = list(new, &["metadata", "finalizers"]).iter().filter(|it| !had.contains(it));
    late.filter_map(|it| it.as_str().map(ToOwned::to_owned)).collect()
}
