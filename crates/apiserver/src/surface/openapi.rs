//! OpenAPI version 3: the index, and a document for each group and version.
//!
//! kubectl asks it whether the server checks fields by itself, how to merge lists, and what
//! `kubectl explain` shall print. All follows from the table of fields. Missing on purpose: the sentences
//! that describe fields, and OpenAPI version 2.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use bytes::Bytes;
use http::Response;
use http::header::{CACHE_CONTROL, HeaderValue};
use serde_json::{Map, Value, json};

use super::answer::{self, Content};
use super::discovery;
use crate::kinds::{KINDS, Kind};
use crate::refusal::Refusal;
use crate::schema::{Field, ListKind, Struct, Type, named};

/// A document, and a name for its content.
struct Document {
    bytes: Bytes,
    hash: String,
}

/// Answers with the index, or with one document.
pub(crate) fn answer(document: Option<&str>) -> Result<Response<Content>, Refusal> {
    let Some(name) = document else { return Ok(answer::json(200, &index())) };
    let document = documents().get(name).ok_or_else(Refusal::no_such_resource)?;
    let mut response = answer::typed(200, "application/json", document.bytes.clone());
    // Its address has the hash of its content.
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("public, immutable"));
    Ok(response)
}

fn index() -> Value {
    let paths: BTreeMap<&String, Value> = documents()
        .iter()
        .map(|(name, document)| {
            (name, json!({"serverRelativeURL": format!("/openapi/v3/{name}?hash={}", document.hash)}))
        })
        .collect();
    json!({"paths": paths})
}

fn documents() -> &'static BTreeMap<String, Document> {
    static DOCUMENTS: OnceLock<BTreeMap<String, Document>> = OnceLock::new();
    DOCUMENTS.get_or_init(|| {
        let mut groups = vec![("", "v1")];
        groups.extend(discovery::groups_and_versions());
        let made = groups.into_iter().map(|(group, version)| {
            let bytes = Bytes::from(document(group, version).to_string());
            let digest = ring::digest::digest(&ring::digest::SHA256, &bytes);
            let hash = digest.as_ref().iter().map(|byte| format!("{byte:02X}")).collect();
            (root(group, version), Document { bytes, hash })
        });
        made.collect()
    })
}

fn root(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

fn document(group: &str, version: &str) -> Value {
    let mut paths = Map::new();
    let mut wanted = BTreeSet::new();
    for kind in KINDS.iter().filter(|kind| kind.group == group && kind.version == version) {
        wanted.insert(kind.schema);
        let scope = if kind.namespaced { "/namespaces/{namespace}" } else { "" };
        let all = format!("/{}{scope}/{}", root(group, version), kind.resource);
        paths.insert(format!("{all}/{{name}}"), named_path(kind));
        paths.insert(all, list_path(kind));
    }
    let mut schemas = Map::new();
    while let Some(name) = wanted.pop_first() {
        if schemas.contains_key(&full_name(name)) {
            continue;
        }
        let it = named(name);
        schemas.insert(full_name(name), schema(it, KINDS.iter().find(|kind| kind.schema == name).copied()));
        it.fields.values().for_each(|field| names(&field.of, &mut wanted));
    }
    json!({"openapi": "3.0.0", "info": {"title": "Kubernetes", "version": discovery::VERSION}, "paths": paths,
        "components": {"schemas": schemas}})
}

fn names(of: &Type, found: &mut BTreeSet<&'static str>) {
    match of {
        Type::Named(name) => {
            found.insert(name);
        }
        Type::List(of) | Type::Map(of) => names(of, found),
        _ => {}
    }
}

/// `core.v1.Pod` is `io.k8s.api.core.v1.Pod` to the world.
fn full_name(name: &str) -> String {
    match name.strip_prefix("meta.") {
        Some(rest) => format!("io.k8s.apimachinery.pkg.apis.meta.{rest}"),
        None => format!("io.k8s.api.{name}"),
    }
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{}", full_name(name))})
}

/// One way to use a path. Writes say that they check fields when asked to.
fn operation(kind: &Kind, action: &str) -> Value {
    let content = json!({"application/json": {"schema": reference(kind.schema)}});
    let parameter =
        |name: &str| json!({"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": true}});
    let mut operation = json!({
        "tags": [kind.resource],
        "operationId": format!("{action}-{}", kind.qualified()),
        "responses": {"200": {"description": "OK", "content": content}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
    });
    if matches!(action, "post" | "put" | "patch") {
        let parameters = ["dryRun", "fieldManager", "fieldValidation"].map(parameter);
        operation["parameters"] = json!(parameters);
        operation["requestBody"] =
            json!({"content": {"*/*": {"schema": reference(kind.schema)}}, "required": true});
    }
    operation
}

fn list_path(kind: &Kind) -> Value {
    let mut path = Map::new();
    for (verb, method, action) in [("list", "get", "list"), ("create", "post", "post")] {
        if kind.allows(verb) {
            path.insert(method.to_owned(), operation(kind, action));
        }
    }
    Value::Object(path)
}

fn named_path(kind: &Kind) -> Value {
    let mut path = Map::new();
    for (verb, method) in [("get", "get"), ("update", "put"), ("patch", "patch"), ("delete", "delete")] {
        if kind.allows(verb) {
            path.insert(method.to_owned(), operation(kind, method));
        }
    }
    Value::Object(path)
}

fn schema(it: &Struct, kind: Option<&Kind>) -> Value {
    let properties: Map<String, Value> =
        it.fields.values().map(|field| (field.name.to_owned(), property(field))).collect();
    let required: Vec<&str> =
        it.fields.values().filter(|field| field.is_required).map(|field| field.name).collect();
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    if it.is_atomic {
        schema["x-kubernetes-map-type"] = json!("atomic");
    }
    if let Some(kind) = kind {
        schema["x-kubernetes-group-version-kind"] =
            json!([{"group": kind.group, "version": kind.version, "kind": kind.kind}]);
    }
    schema
}

fn property(field: &Field) -> Value {
    let mut property = described(&field.of);
    if let (Type::Named(name), true) = (&field.of, field.is_always) {
        property = json!({"allOf": [reference(name)], "default": {}});
    }
    if let Some(default) = field.default {
        property["default"] = json!(default);
    }
    match &field.list {
        ListKind::Keyed(keys) => {
            property["x-kubernetes-list-type"] = json!("map");
            property["x-kubernetes-list-map-keys"] = json!(keys);
        }
        ListKind::Set => property["x-kubernetes-list-type"] = json!("set"),
        ListKind::Whole if matches!(field.of, Type::List(_)) => {
            property["x-kubernetes-list-type"] = json!("atomic");
        }
        ListKind::Whole => {}
    }
    if field.is_atomic {
        property["x-kubernetes-map-type"] = json!("atomic");
    }
    if let Some(key) = field.merge {
        property["x-kubernetes-patch-strategy"] =
            json!(if field.retains { "merge,retainKeys" } else { "merge" });
        if !key.is_empty() {
            property["x-kubernetes-patch-merge-key"] = json!(key);
        }
    } else if field.retains {
        property["x-kubernetes-patch-strategy"] = json!("retainKeys");
    }
    property
}

fn described(of: &Type) -> Value {
    match of {
        Type::Text(values) if values.is_empty() => json!({"type": "string"}),
        Type::Text(values) => json!({"type": "string", "enum": values}),
        Type::Integer(format) => json!({"type": "integer", "format": format}),
        Type::Number => json!({"type": "number", "format": "double"}),
        Type::Bool => json!({"type": "boolean"}),
        Type::Time | Type::MicroTime => json!({"type": "string", "format": "date-time"}),
        Type::Bytes => json!({"type": "string", "format": "byte"}),
        Type::IntOrText => {
            json!({"oneOf": [{"type": "integer"}, {"type": "string"}], "format": "int-or-string"})
        }
        Type::Quantity => json!({"oneOf": [{"type": "string"}, {"type": "number"}]}),
        Type::Any => json!({"type": "object"}),
        Type::Named(name) => json!({"allOf": [reference(name)]}),
        Type::List(of) => json!({"type": "array", "items": described(of)}),
        Type::Map(of) => json!({"type": "object", "additionalProperties": described(of)}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(name: &str) -> Value {
        serde_json::from_slice(&documents()[name].bytes).unwrap()
    }

    #[test]
    fn kubectl_finds_what_it_looks_for() {
        let index = index();
        let address = index["paths"]["apis/apps/v1"]["serverRelativeURL"].as_str().unwrap();
        assert!(address.starts_with("/openapi/v3/apis/apps/v1?hash="), "{address}");
        let core = told("api/v1");
        let patch = &core["paths"]["/api/v1/namespaces/{namespace}/services/{name}"]["patch"];
        assert_eq!(patch["x-kubernetes-group-version-kind"]["kind"], "Service");
        let parameters = patch["parameters"].as_array().unwrap();
        assert!(parameters.iter().any(|it| it["name"] == "fieldValidation"));
        let spec = &core["components"]["schemas"]["io.k8s.api.core.v1.ServiceSpec"]["properties"];
        assert_eq!(spec["ports"]["x-kubernetes-patch-merge-key"], "port");
        assert_eq!(spec["ports"]["x-kubernetes-list-map-keys"], json!(["port", "protocol"]));
    }

    #[test]
    fn every_reference_leads_somewhere() {
        for name in documents().keys() {
            let document = told(name);
            let schemas = document["components"]["schemas"].as_object().unwrap();
            let text = document.to_string();
            for part in text.split("#/components/schemas/").skip(1) {
                let target = part.split('"').next().unwrap();
                assert!(schemas.contains_key(target), "{name}: {target}");
            }
        }
    }
}
