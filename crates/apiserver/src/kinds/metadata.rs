//! What must be right in the metadata of every kind.

use serde_json::{Value, json};

use super::words::{label_1123, label_value, path_segment, qualified_name, subdomain_1123};
use super::{Kind, NAMESPACE, SERVICE};
use crate::refusal::Cause;
use crate::store::late_finalizers;
use crate::value::{at, list, text};

/// Finalizers without a domain that Kubernetes knows.
const STANDARD_FINALIZERS: [&str; 3] = ["kubernetes", "orphan", "foregroundDeletion"];
/// The most that all annotations may weigh.
const ANNOTATION_BYTES_MAX: usize = 256 * 1024;

/// Everything that is wrong with an object's metadata.
pub(crate) fn check(kind: &Kind, new: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut causes = Vec::new();
    if old.is_none() {
        names(kind, new, &mut causes);
    }
    labels("metadata.labels", at(new, &["metadata", "labels"]), &mut causes);
    annotations("metadata.annotations", at(new, &["metadata", "annotations"]), &mut causes);
    owners(new, &mut causes);
    finalizers(new, &mut causes);
    let late = old.map(|old| late_finalizers(old, new)).unwrap_or_default();
    if !late.is_empty() {
        let why = format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers \
             []string{{{}}}",
            late.iter().map(|it| format!("{it:?}")).collect::<Vec<_>>().join(", ")
        );
        // The real server says it twice.
        causes.extend([0, 1].map(|_| Cause::forbidden("metadata.finalizers", &why)));
    }
    causes
}

fn names(kind: &Kind, new: &Value, causes: &mut Vec<Cause>) {
    let rule = |name: &str| -> Vec<String> {
        if *kind == NAMESPACE && name.contains('.') {
            return vec!["must not contain dots".to_owned()];
        }
        match kind.group {
            "rbac.authorization.k8s.io" => path_segment(name),
            _ if *kind == NAMESPACE || *kind == SERVICE => label_1123(name),
            _ => subdomain_1123(name),
        }
    };
    let stem = text(new, &["metadata", "generateName"]);
    if !stem.is_empty() {
        // What follows the stem makes its end good.
        let problems = rule(stem.trim_end_matches('-'));
        causes.extend(problems.iter().map(|why| Cause::invalid("metadata.generateName", &json!(stem), why)));
    }
    let name = text(new, &["metadata", "name"]);
    causes.extend(rule(name).iter().map(|why| Cause::invalid("metadata.name", &json!(name), why)));
}

/// Everything that is wrong with labels, wherever they stand.
pub(crate) fn labels(field: &str, labels: &Value, causes: &mut Vec<Cause>) {
    for (key, value) in labels.as_object().into_iter().flatten() {
        let problems = qualified_name(key);
        let problems = problems.iter().map(|why| why.replacen("a qualified name", "a valid label key", 1));
        causes.extend(problems.map(|why| Cause::invalid(field, &json!(key), &why)));
        let value_text = value.as_str().unwrap_or("");
        causes.extend(label_value(value_text).iter().map(|why| Cause::invalid(field, value, why)));
    }
}

/// Everything that is wrong with annotations.
pub(crate) fn annotations(field: &str, annotations: &Value, causes: &mut Vec<Cause>) {
    let mut weight = 0usize;
    for (key, value) in annotations.as_object().into_iter().flatten() {
        let lower = key.to_lowercase();
        causes.extend(qualified_name(&lower).iter().map(|why| Cause::invalid(field, &json!(key), why)));
        weight += key.len() + value.as_str().map_or(0, str::len);
    }
    if weight > ANNOTATION_BYTES_MAX {
        causes.push(Cause {
            reason: "FieldValueTooLong",
            field: field.to_owned(),
            message: format!("Too long: may not be more than {ANNOTATION_BYTES_MAX} bytes"),
        });
    }
}

fn owners(new: &Value, causes: &mut Vec<Cause>) {
    let owners = list(new, &["metadata", "ownerReferences"]);
    for owner in owners {
        for (field, why) in [
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ] {
            if text(owner, &[field]).is_empty() {
                causes.push(Cause::invalid(format!("metadata.ownerReferences.{field}"), &json!(""), why));
            }
        }
    }
    let controllers: Vec<&Value> = owners.iter().filter(|it| it["controller"] == json!(true)).collect();
    if let [first, second, ..] = controllers.as_slice() {
        let why = format!(
            "Only one reference can have Controller set to true. Found \"true\" in references for {}/{} and \
             {}/{}",
            text(first, &["kind"]),
            text(first, &["name"]),
            text(second, &["kind"]),
            text(second, &["name"])
        );
        let all = json!(owners);
        causes.push(Cause::invalid("metadata.ownerReferences", &all, &why));
    }
}

fn finalizers(new: &Value, causes: &mut Vec<Cause>) {
    for (index, finalizer) in list(new, &["metadata", "finalizers"]).iter().enumerate() {
        let name = finalizer.as_str().unwrap_or("");
        let field = format!("metadata.finalizers[{index}]");
        let problems = qualified_name(name);
        if !problems.is_empty() {
            causes.extend(problems.iter().map(|why| Cause::invalid(field.clone(), finalizer, why)));
        } else if !name.contains('/') && !STANDARD_FINALIZERS.contains(&name) {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            causes.push(Cause::invalid(field, finalizer, why));
        }
    }
}
