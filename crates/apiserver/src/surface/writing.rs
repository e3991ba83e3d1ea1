//! Requests that change something.

use std::sync::Arc;

use http::header::CONTENT_TYPE;
use http::{Method, Response};
use serde_json::{Value, json};

use super::answer::{self, Content};
use super::route::Target;
use super::serve::{Asked, warned};
use super::{listing, shape};
use crate::kinds::{self, Kind, NAMESPACE, NEW_EVENT, POD, Sub};
use crate::patch::{self, Patch};
use crate::protobuf;
use crate::refusal::{Cause, Refusal};
use crate::schema::decode::{Strictness, decode};
use crate::store::{Deletion, Propagation, Selection, Write};
use crate::value::{at, list, now, number, object, text};

/// Makes an object.
pub(crate) fn create(asked: &Asked<'_>, target: &Target) -> Result<Response<Content>, Refusal> {
    let (body, warnings) = asked.object(target.kind)?;
    let namespace = home(target, &body);
    let body = shape::taken(target.kind, body);
    let object =
        asked.surface.store.create(shape::stored(target.kind), &namespace, body, &asked.write(None)?)?;
    Ok(warned(listing::one(asked, target, 201, &object), &warnings))
}

/// The namespace of the path; without one, that of the object.
fn home(target: &Target, body: &Value) -> String {
    match &target.namespace {
        Some(namespace) => namespace.clone(),
        None if target.kind.namespaced => text(body, &["metadata", "namespace"]).to_owned(),
        None => String::new(),
    }
}

/// Replaces an object, or its status.
pub(crate) fn update(
    asked: &Asked<'_>,
    target: &Target,
    name: &str,
    sub: Option<Sub>,
) -> Result<Response<Content>, Refusal> {
    let (body, warnings) = asked.object(target.kind)?;
    let said = shape::said_name(&body);
    if said != name {
        return Err(misnamed(said, name));
    }
    let body = shape::taken(target.kind, body);
    let namespace = target.namespace.as_deref().unwrap_or("");
    let store = &asked.surface.store;
    let object = store.update(shape::stored(target.kind), namespace, name, body, &asked.write(sub)?)?;
    Ok(warned(listing::one(asked, target, 200, &object), &warnings))
}

fn misnamed(said: &str, name: &str) -> Refusal {
    if said.is_empty() {
        return Refusal::bad_request(format!(
            "the name of the object ({name} based on URL) was undeterminable: name must be provided"
        ));
    }
    Refusal::bad_request(format!(
        "the name of the object ({said}) does not match the name on the URL ({name})"
    ))
}

/// Patches an object, or its status.
pub(crate) fn patch(
    asked: &Asked<'_>,
    target: &Target,
    name: &str,
    sub: Option<Sub>,
) -> Result<Response<Content>, Refusal> {
    let patch = asked.patch(target.kind)?;
    let namespace = target.namespace.as_deref().unwrap_or("");
    let (store, write) = (&asked.surface.store, asked.write(sub)?);
    if *target.kind == NEW_EVENT {
        let stored = shape::stored(target.kind);
        let mut warnings = Vec::new();
        let object = store.modify(stored, namespace, name, &write, |old| {
            let shown = shape::shown(target.kind, &Arc::new(old.clone()));
            let mut new = patch::run(target.kind, &shown, &patch, &write)?.object;
            warnings = patch::decoded(target.kind, &mut new, write.strictness)?;
            Ok(shape::taken(target.kind, new))
        })?;
        return Ok(warned(listing::one(asked, target, 200, &object), &warnings));
    }
    if let Some(said) = renames(&patch).filter(|said| said != name) {
        return Err(misnamed(&said, name));
    }
    let written = store.patch(target.kind, namespace, name, &patch, &write)?;
    let code = if written.is_new { 201 } else { 200 };
    Ok(warned(listing::one(asked, target, code, &written.object), &written.warnings))
}

/// The name that a patch gives.
fn renames(patch: &Patch) -> Option<String> {
    let (Patch::Merge(value) | Patch::Strategic(value) | Patch::Apply { configuration: value, .. }) = patch
    else {
        return None;
    };
    at(value, &["metadata", "name"]).as_str().map(ToOwned::to_owned)
}

/// Namespaces that stay.
const IMMORTAL: [&str; 3] = ["default", "kube-public", "kube-system"];

/// Deletes an object.
pub(crate) fn delete(asked: &Asked<'_>, target: &Target, name: &str) -> Result<Response<Content>, Refusal> {
    let namespace = target.namespace.as_deref().unwrap_or("");
    let deletion = asked.deletion()?;
    if *target.kind == NAMESPACE && IMMORTAL.contains(&name) {
        return Err(Refusal::forbidden(&NAMESPACE, name, "this namespace may not be deleted"));
    }
    let deleted = asked.surface.store.delete(shape::stored(target.kind), namespace, name, &deletion);
    let deleted = deleted.map_err(|refusal| shape::renamed(refusal, target.kind, name))?;
    if !deleted.is_gone || target.kind.returns_deleted {
        return Ok(listing::one(asked, target, 200, &deleted.object));
    }
    let mut details = json!({"name": name, "kind": target.kind.resource,
        "uid": text(&deleted.object, &["metadata", "uid"])});
    if !target.kind.group.is_empty() {
        details["group"] = json!(target.kind.group);
    }
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
        "details": details});
    Ok(answer::json(200, &status))
}

/// Deletes all objects of a selection; answers with those.
pub(crate) fn delete_collection(asked: &Asked<'_>, target: &Target) -> Result<Response<Content>, Refusal> {
    let query = &asked.query;
    let selection = Selection::parse(target.kind, query.text("labelSelector"), query.text("fieldSelector"))?;
    let (store, stored) = (&asked.surface.store, shape::stored(target.kind));
    let deletion = asked.deletion()?;
    let listed = store.list(stored, target.namespace.as_deref(), &selection);
    let mut items = Vec::new();
    for object in &listed.items {
        let (namespace, name) = crate::store::key_of(object);
        match store.delete(stored, namespace, name, &deletion) {
            Ok(deleted) => items.push(shape::without_type(&shape::shown(target.kind, &deleted.object))),
            Err(refusal) if refusal.code == 404 => {}
            Err(refusal) => return Err(refusal),
        }
    }
    let list = json!({"kind": format!("{}List", target.kind.kind), "apiVersion": target.kind.api_version(),
        "metadata": {"resourceVersion": store.version().to_string()}, "items": items});
    Ok(answer::json(200, &list))
}

/// A request to a part of an object.
pub(crate) fn part(asked: &Asked<'_>, target: &Target, word: &str) -> Result<Response<Content>, Refusal> {
    let name = target.name.as_deref().unwrap_or("");
    let Some(sub) = target.kind.subresources.iter().copied().find(|sub| sub.word() == word) else {
        let what = format!("{}/{word}", target.kind.qualified());
        return Err(Refusal::not_in_the_playground(&what));
    };
    match (asked.method, sub) {
        (&Method::GET, Sub::Status) => listing::get(asked, target, name),
        (&Method::PUT, Sub::Status | Sub::Finalize) => update(asked, target, name, Some(sub)),
        (&Method::PATCH, Sub::Status) => patch(asked, target, name, Some(sub)),
        (&Method::GET | &Method::PUT | &Method::PATCH, Sub::Scale) => scale(asked, target, name),
        (&Method::POST, Sub::Binding) => bind(asked, target, name),
        _ => Err(Refusal::method_not_allowed()),
    }
}

/// How many, as an object of its own.
fn scale_of(object: &Value) -> Value {
    let meta = at(object, &["metadata"]);
    let mut selector: Vec<String> = at(object, &["spec", "selector", "matchLabels"])
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or("")))
        .collect();
    selector.sort();
    // Go leaves a zero out here.
    let spec = match number(object, &["spec", "replicas"]).unwrap_or(0) {
        0 => json!({}),
        replicas => json!({"replicas": replicas}),
    };
    json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1",
        "metadata": {"name": meta["name"], "namespace": meta["namespace"], "uid": meta["uid"],
            "resourceVersion": meta["resourceVersion"], "creationTimestamp": meta["creationTimestamp"]},
        "spec": spec,
        "status": {"replicas": number(object, &["status", "replicas"]).unwrap_or(0),
            "selector": selector.join(",")},
    })
}

/// What becomes of an object.
type Change = Box<dyn FnOnce(&Value) -> Result<Value, Refusal>>;

fn scale(asked: &Asked<'_>, target: &Target, name: &str) -> Result<Response<Content>, Refusal> {
    let namespace = target.namespace.as_deref().unwrap_or("");
    let store = &asked.surface.store;
    if *asked.method == Method::GET {
        let scale = Arc::new(scale_of(&*store.get(target.kind, namespace, name)?));
        return Ok(listing::one(asked, target, 200, &scale));
    }
    let wanted: Change = if *asked.method == Method::PUT {
        let body = asked.json()?;
        Box::new(move |_| Ok(body))
    } else {
        let patch = asked.patch(target.kind)?;
        if matches!(patch, Patch::Apply { .. }) {
            return Err(Refusal::not_in_the_playground("apply of a scale"));
        }
        let write = asked.write(None)?;
        let kind = target.kind;
        Box::new(move |scale| Ok(patch::run(kind, scale, &patch, &write)?.object))
    };
    // The part is written, and counts as a write of the whole.
    let object = store.modify(target.kind, namespace, name, &asked.write(Some(Sub::Scale))?, |old| {
        let scale = wanted(&scale_of(old))?;
        let version = text(&scale, &["metadata", "resourceVersion"]);
        if !version.is_empty() && version != text(old, &["metadata", "resourceVersion"]) {
            let why =
                "the object has been modified; please apply your changes to the latest version and try again";
            return Err(Refusal::conflict(target.kind, name, why));
        }
        let replicas = wanted_replicas(&scale)?;
        if replicas < 0 {
            return Err(negative_scale(name, replicas));
        }
        let mut new = old.clone();
        object(&mut new, "spec")["replicas"] = json!(replicas);
        Ok(new)
    })?;
    Ok(listing::one(asked, target, 200, &Arc::new(scale_of(&object))))
}

/// The size that a scale wants; none is zero, as in Go.
fn wanted_replicas(scale: &Value) -> Result<i32, Refusal> {
    let cannot = |why: &str| {
        Refusal::bad_request(format!("Scale in version \"v1\" cannot be handled as a Scale: {why}"))
    };
    if !scale.is_object() {
        return Err(cannot("the object provided is not a JSON object"));
    }
    let said = at(scale, &["spec", "replicas"]);
    let is_said = !said.is_null();
    let read = said.as_i64().and_then(|it| i32::try_from(it).ok());
    read.or((!is_said).then_some(0)).ok_or_else(|| {
        cannot(&format!(
            "json: cannot unmarshal {said} into Go struct field ScaleSpec.spec.replicas of type int32"
        ))
    })
}

fn negative_scale(name: &str, replicas: i32) -> Refusal {
    let message = format!("Invalid value: {replicas}: must be greater than or equal to 0");
    let cause = json!({"reason": "FieldValueInvalid", "message": message, "field": "spec.replicas"});
    let mut refusal = Refusal::new(
        422,
        "Invalid",
        format!("Scale.autoscaling \"{name}\" is invalid: spec.replicas: {message}"),
    );
    for (field, value) in [("name", json!(name)), ("group", json!("autoscaling")), ("kind", json!("Scale"))] {
        refusal.details.insert(field.into(), value);
    }
    refusal.details.insert("causes".into(), json!([cause]));
    refusal
}

/// Gives a pod its node.
fn bind(asked: &Asked<'_>, target: &Target, name: &str) -> Result<Response<Content>, Refusal> {
    let body = asked.json()?;
    if text(&body, &["metadata", "name"]) != name {
        return Err(Refusal::bad_request("name in URL does not match name in Binding object"));
    }
    let node = text(&body, &["target", "name"]).to_owned();
    let namespace = target.namespace.as_deref().unwrap_or("");
    asked.surface.store.modify(&POD, namespace, name, &asked.write(Some(Sub::Binding))?, |old| {
        let has = text(old, &["spec", "nodeName"]);
        if !has.is_empty() {
            let why = format!("pod {name} is already assigned to node \"{has}\"");
            let mut refusal = Refusal::conflict(&POD, name, &why);
            refusal.message = refusal.message.replacen("pods", "pods/binding", 1);
            refusal.details.insert("kind".into(), json!("pods/binding"));
            return Err(refusal);
        }
        let mut new = old.clone();
        object(&mut new, "spec")["nodeName"] = json!(node);
        let mut conditions = list(old, &["status", "conditions"]).to_vec();
        conditions.retain(|it| it["type"] != "PodScheduled");
        conditions.push(json!({"type": "PodScheduled", "status": "True", "lastTransitionTime": now()}));
        object(&mut new, "status")["conditions"] = Value::Array(conditions);
        Ok(new)
    })?;
    Ok(answer::json(
        201,
        &json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}),
    ))
}

/// What kubectl sends where it knows the types.
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

impl Asked<'_> {
    fn write(&self, sub: Option<Sub>) -> Result<Write, Refusal> {
        Ok(Write { manager: self.manager(), dry_run: self.dry_run()?, sub, strictness: self.strictness()? })
    }

    /// The body as JSON, which it may have become on the way here.
    pub(crate) fn json(&self) -> Result<Value, Refusal> {
        let media = self.header(CONTENT_TYPE.as_str()).split(';').next().unwrap_or("").trim();
        match media {
            "" | "application/json" => parsed(&self.body),
            PROTOBUF => protobuf::decode(&self.body).map_err(|why| Refusal::bad_request(why.to_string())),
            _ => Err(unsupported(media, "application/json, application/vnd.kubernetes.protobuf")),
        }
    }

    /// The body as an object of a kind, and what to warn of.
    fn object(&self, kind: &Kind) -> Result<(Value, Vec<String>), Refusal> {
        let mut body = self.json()?;
        typed(kind, &body)?;
        let warnings = decode(kind, &mut body, self.strictness()?)?;
        Ok((body, warnings))
    }

    /// What to do about unknown fields.
    fn strictness(&self) -> Result<Strictness, Refusal> {
        match self.query.text("fieldValidation") {
            "" | "Warn" => Ok(Strictness::Warn),
            "Ignore" => Ok(Strictness::Ignore),
            "Strict" => Ok(Strictness::Strict),
            other => {
                let supported = ["", "Ignore", "Strict", "Warn"];
                let cause = Cause::unsupported("fieldValidation", &json!(other), &supported);
                Err(Refusal::invalid_options(self.options(), &cause))
            }
        }
    }

    fn patch(&self, kind: &Kind) -> Result<Patch, Refusal> {
        let media = self.header(CONTENT_TYPE.as_str()).split(';').next().unwrap_or("").trim();
        let patch = match media {
            "application/json-patch+json" => Patch::Json(parsed(&self.body)?),
            "application/merge-patch+json" => Patch::Merge(parsed(&self.body)?),
            "application/strategic-merge-patch+json" => Patch::Strategic(parsed(&self.body)?),
            "application/apply-patch+yaml" | "application/apply-patch+json" => {
                let configuration = parsed(&self.body)?;
                if text(&configuration, &["kind"]).is_empty()
                    || text(&configuration, &["apiVersion"]).is_empty()
                {
                    return Err(Refusal::bad_request("invalid object type: /, Kind="));
                }
                typed(kind, &configuration)?;
                if self.query.text("fieldManager").is_empty() {
                    let cause = Cause::required("fieldManager", "is required for apply patch");
                    return Err(Refusal::invalid_options("PatchOptions", &cause));
                }
                Patch::Apply { configuration, force: self.query.flag("force") }
            }
            other => {
                let accepted = "application/json-patch+json, application/merge-patch+json, \
                                application/strategic-merge-patch+json, application/apply-patch+yaml";
                return Err(unsupported(other, accepted));
            }
        };
        Ok(patch)
    }

    /// How to delete: from the body, or from the query.
    fn deletion(&self) -> Result<Deletion, Refusal> {
        let body = if self.body.is_empty() { Value::Null } else { self.json()? };
        let said = |name: &str| match self.query.text(name) {
            "" => text(&body, &[name]).to_owned(),
            value => value.to_owned(),
        };
        let grace = match self.query.number("gracePeriodSeconds")? {
            Some(grace) => i64::try_from(grace).ok(),
            None => number(&body, &["gracePeriodSeconds"]),
        };
        let propagation = match said("propagationPolicy").as_str() {
            "Foreground" => Propagation::Foreground,
            "Orphan" => Propagation::Orphan,
            "" | "Background" => match at(&body, &["orphanDependents"]) {
                Value::Bool(true) => Propagation::Orphan,
                _ => Propagation::Background,
            },
            other => {
                let supported = ["Foreground", "Background", "Orphan", "nil"];
                let cause = Cause::unsupported("propagationPolicy", &json!(other), &supported);
                return Err(Refusal::invalid_options("DeleteOptions", &cause));
            }
        };
        let precondition = |name: &str| at(&body, &["preconditions", name]).as_str().map(ToOwned::to_owned);
        let dry_run = self.dry_run()? || at(&body, &["dryRun"]).as_array().is_some_and(|it| !it.is_empty());
        Ok(Deletion {
            grace,
            uid: precondition("uid"),
            version: precondition("resourceVersion"),
            propagation,
            dry_run,
        })
    }
}

fn unsupported(media: &str, accepted: &str) -> Refusal {
    let message = format!(
        "the body of the request was in an unknown format ({media}) - accepted media types include: {accepted}"
    );
    Refusal::new(415, "UnsupportedMediaType", message)
}

fn parsed(body: &[u8]) -> Result<Value, Refusal> {
    serde_json::from_slice(body)
        .map_err(|problem| Refusal::bad_request(format!("error decoding the body as JSON: {problem}")))
}

/// Whether an object says that it is of this kind, or says nothing.
fn typed(kind: &Kind, body: &Value) -> Result<(), Refusal> {
    let (version, name) = (text(body, &["apiVersion"]), text(body, &["kind"]));
    let is_other =
        (!version.is_empty() && version != kind.api_version()) || (!name.is_empty() && name != kind.kind);
    if !is_other {
        return Ok(());
    }
    let why = if kinds::of_object(version, name).is_some() {
        let inside = if kind.group.is_empty() { "core" } else { kind.group.split('.').next().unwrap_or("") };
        format!("converting (v1.{name}) to ({inside}.{}): unknown conversion", kind.kind)
    } else {
        format!(
            "no kind \"{name}\" is registered for version \"{version}\" in scheme \"pkg/runtime/scheme.go:111\""
        )
    };
    Err(Refusal::bad_request(format!(
        "{name} in version \"{}\" cannot be handled as a {}: {why}",
        kind.version, kind.kind
    )))
}
