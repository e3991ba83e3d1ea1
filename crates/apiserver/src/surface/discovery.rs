//! What is served, told to clients that ask: the old way, a page for each group, and the new, all in one.

use http::Response;
use http::header::{CONTENT_TYPE, HeaderValue, VARY};
use serde_json::{Value, json};

use super::answer::{self, Content};
use super::negotiate::Form;
use crate::kinds::{KINDS, Kind, Sub};

/// The version of Kubernetes that is played.
pub(crate) const VERSION: &str = "v1.36.3";
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// `/version`.
pub(crate) fn version() -> Value {
    json!({
        "major": "1", "minor": "36",
        "emulationMajor": "1", "emulationMinor": "36",
        "minCompatibilityMajor": "1", "minCompatibilityMinor": "35",
        "gitVersion": VERSION, "gitCommit": "", "gitTreeState": "", "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none", "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })
}

/// `/`.
pub(crate) fn root() -> Value {
    let mut paths = vec!["/api".to_owned(), "/api/v1".to_owned(), "/apis".to_owned()];
    for (group, version) in groups_and_versions() {
        paths.extend([format!("/apis/{group}"), format!("/apis/{group}/{version}")]);
    }
    paths.extend(["/healthz", "/livez", "/openapi/v3", "/readyz", "/version"].map(ToOwned::to_owned));
    json!({"paths": paths})
}

/// Groups with a name, in the order of the table.
pub(crate) fn groups_and_versions() -> Vec<(&'static str, &'static str)> {
    let mut found = Vec::new();
    for kind in KINDS.iter().filter(|kind| !kind.group.is_empty()) {
        let one = (kind.group, kind.version);
        if !found.contains(&one) {
            found.push(one);
        }
    }
    found
}

/// `/api`.
pub(crate) fn core(form: &Form) -> Response<Content> {
    if *form == Form::Discovery {
        return aggregated(&[("", "v1")]);
    }
    answer::json(
        200,
        &json!({"kind": "APIVersions", "versions": ["v1"],
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1"}]}),
    )
}

/// `/apis`.
pub(crate) fn groups(form: &Form) -> Response<Content> {
    if *form == Form::Discovery {
        return aggregated(&groups_and_versions());
    }
    let groups: Vec<Value> = groups_and_versions().iter().map(|(name, _)| bare_group(name)).collect();
    answer::json(200, &json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}))
}

fn bare_group(name: &str) -> Value {
    let versions: Vec<Value> = groups_and_versions()
        .iter()
        .filter(|(group, _)| *group == name)
        .map(|(group, version)| json!({"groupVersion": format!("{group}/{version}"), "version": version}))
        .collect();
    json!({"name": name, "preferredVersion": versions.first(), "versions": versions})
}

/// `/apis/apps`.
pub(crate) fn group(name: &str) -> Value {
    let mut group = bare_group(name);
    group["kind"] = json!("APIGroup");
    group["apiVersion"] = json!("v1");
    group
}

/// `/api/v1` or `/apis/apps/v1`.
pub(crate) fn resources(group: &str, version: &str) -> Value {
    let mut resources = Vec::new();
    for kind in of(group, version) {
        let mut row = json!({"name": kind.resource, "singularName": kind.singular, "namespaced": kind.namespaced,
            "kind": kind.kind, "verbs": kind.verbs, "storageVersionHash": ""});
        if !kind.short_names.is_empty() {
            row["shortNames"] = json!(kind.short_names);
        }
        if !kind.categories.is_empty() {
            row["categories"] = json!(kind.categories);
        }
        resources.push(row);
        for sub in kind.subresources {
            let (sub_group, sub_version, sub_kind) = kind_of_part(kind, *sub);
            let mut row = json!({"name": format!("{}/{}", kind.resource, sub.word()), "singularName": "",
                "namespaced": kind.namespaced, "kind": sub_kind, "verbs": sub.verbs()});
            if *sub == Sub::Scale {
                row["group"] = json!(sub_group);
                row["version"] = json!(sub_version);
            }
            resources.push(row);
        }
    }
    let group_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources})
}

fn of(group: &str, version: &str) -> impl Iterator<Item = &'static Kind> {
    KINDS.iter().copied().filter(move |kind| kind.group == group && kind.version == version)
}

fn kind_of_part(kind: &Kind, sub: Sub) -> (&'static str, &'static str, &'static str) {
    match sub {
        Sub::Scale => ("autoscaling", "v1", "Scale"),
        Sub::Binding => ("", "v1", "Binding"),
        Sub::Status | Sub::Finalize => (kind.group, kind.version, kind.kind),
    }
}

fn aggregated(groups: &[(&'static str, &'static str)]) -> Response<Content> {
    let items: Vec<Value> = groups
        .iter()
        .map(|(group, version)| {
            let meta = if group.is_empty() { json!({}) } else { json!({"name": group}) };
            let resources: Vec<Value> = of(group, version).map(discovered).collect();
            json!({"metadata": meta,
                "versions": [{"version": version, "resources": resources, "freshness": "Current"}]})
        })
        .collect();
    let list = json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {},
        "items": items});
    let mut answer = answer::json(200, &list);
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(AGGREGATED));
    answer.headers_mut().insert(VARY, HeaderValue::from_static("Accept"));
    answer
}

fn discovered(kind: &'static Kind) -> Value {
    let type_of = |(group, version, name): (&str, &str, &str)| json!({"group": group, "version": version, "kind": name});
    let scope = if kind.namespaced { "Namespaced" } else { "Cluster" };
    let mut row = json!({"resource": kind.resource, "singularResource": kind.singular, "scope": scope,
        "responseKind": type_of((kind.group, kind.version, kind.kind)), "verbs": kind.verbs});
    if !kind.short_names.is_empty() {
        row["shortNames"] = json!(kind.short_names);
    }
    if !kind.categories.is_empty() {
        row["categories"] = json!(kind.categories);
    }
    if !kind.subresources.is_empty() {
        let parts: Vec<Value> = kind
            .subresources
            .iter()
            .map(|sub| {
                json!({"subresource": sub.word(), "responseKind": type_of(kind_of_part(kind, *sub)),
                    "verbs": sub.verbs()})
            })
            .collect();
        row["subresources"] = Value::Array(parts);
    }
    row
}
