//! Namespaces: a label with their own name, a finalizer of Kubernetes, and a phase.

use serde_json::{Value, json};

use crate::value::{default_to, is_empty, metadata, name_of, object};

pub(super) fn default(namespace: &mut Value) {
    let name = name_of(namespace).to_owned();
    if !name.is_empty() {
        object(metadata(namespace), "labels")["kubernetes.io/metadata.name"] = json!(name);
    }
    object(namespace, "spec");
    default_to(object(namespace, "status"), "phase", "Active");
}

/// Only the controller of namespaces takes this finalizer away.
pub(super) fn admit(namespace: &mut Value) {
    let spec = object(namespace, "spec");
    if spec.get("finalizers").is_none_or(is_empty) {
        spec["finalizers"] = json!(["kubernetes"]);
    }
}
