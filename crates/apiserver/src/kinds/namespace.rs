//! Namespaces: a label with their own name, a finalizer of Kubernetes, and a phase.

use serde_json::{Value, json};

use crate::value::{default_to, is_empty, metadata, name_of, object};

pub(super) fn default(namespace: &mut Value) {
    let name = name_of(namespace).to_owned();
    if !name.is_empty() {
        object(metadata(namespace), "labels")["kubernetes.io/metadata.name"] = json!(name);
    }
    let is_new = namespace["metadata"].get("uid").is_none();
    let spec = object(namespace, "spec");
    if is_new && spec.get("finalizers").is_none_or(is_empty) {
        spec["finalizers"] = json!(["kubernetes"]);
    }
    default_to(object(namespace, "status"), "phase", "Active");
}
