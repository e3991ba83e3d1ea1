//! A namespace that is deleted takes with it what is in it, and goes last.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::machine::{Change, Controller, Key, Work};
use super::object::{is_going, set_condition};
use crate::kinds::{KINDS, Kind, NAMESPACE, Sub};
use crate::store::{Deletion, Propagation, Store, What};
use crate::value::{list, name_of, namespace_of, object};

pub(super) struct Namespaces;

impl Controller for Namespaces {
    const NAME: &'static str = "kube-controller-manager";

    fn follows(&self) -> Vec<&'static Kind> {
        KINDS
            .iter()
            .copied()
            .filter(|kind| **kind == NAMESPACE || kind.namespaced && kind.allows("list"))
            .collect()
    }

    fn concerns(&mut self, store: &Store, kind: &'static Kind, _: What, object: &Value) -> Vec<Key> {
        let name = if *kind == NAMESPACE { name_of(object) } else { namespace_of(object) };
        let goes = store.get(&NAMESPACE, "", name).is_ok_and(|it| is_going(&it));
        if goes { vec![(String::new(), name.to_owned())] } else { Vec::new() }
    }

    fn look(&mut self, store: &Store, (_, name): &Key) -> Work {
        let Ok(namespace) = store.get(&NAMESPACE, "", name) else { return Work::default() };
        let content = store.in_namespace(name).into_iter();
        let content = content
            .filter_map(|(kind, object)| store.get(kind, name, &object).ok().map(|object| (kind, object)))
            .collect();
        reconcile(&View { namespace, content }).into()
    }
}

struct View {
    namespace: Arc<Value>,
    content: Vec<(&'static Kind, Arc<Value>)>,
}

fn reconcile(view: &View) -> Vec<Change> {
    let is_ours = list(&view.namespace, &["spec", "finalizers"]).iter().any(|it| it == "kubernetes");
    if !is_going(&view.namespace) || !is_ours {
        return Vec::new();
    }
    if view.content.is_empty() {
        let mut namespace = (*view.namespace).clone();
        object(&mut namespace, "spec")["finalizers"] = json!([]);
        return vec![Change::Put { kind: &NAMESPACE, sub: Some(Sub::Finalize), object: namespace }];
    }
    let staying = view.content.iter().filter(|(_, object)| !is_going(object));
    let mut changes: Vec<Change> = staying
        .map(|(kind, object)| Change::Delete {
            kind,
            object: object.clone(),
            deletion: Deletion { propagation: Propagation::Background, ..Deletion::default() },
        })
        .collect();
    // What is said is what remains after the deletions; they are seen at the next look.
    if changes.is_empty() {
        let mut namespace = (*view.namespace).clone();
        conditions(object(&mut namespace, "status"), &view.content);
        if namespace != *view.namespace {
            changes.push(Change::Put { kind: &NAMESPACE, sub: Some(Sub::Status), object: namespace });
        }
    }
    changes
}

fn conditions(status: &mut Value, content: &[(&'static Kind, Arc<Value>)]) {
    let mut remaining: BTreeMap<String, usize> = BTreeMap::new();
    let mut finalizers: BTreeMap<String, usize> = BTreeMap::new();
    for (kind, object) in content {
        *remaining.entry(format!("{}.{}", kind.resource, kind.group)).or_default() += 1;
        for finalizer in list(object, &["metadata", "finalizers"]).iter().filter_map(Value::as_str) {
            *finalizers.entry(finalizer.to_owned()).or_default() += 1;
        }
    }
    let counted = |counts: &BTreeMap<String, usize>, verb: &str| {
        let parts = counts.iter().map(|(what, count)| format!("{what} {verb} {count} resource instances"));
        parts.collect::<Vec<_>>().join(", ")
    };
    let mut say = |kind: &str, is: bool, reason: &str, message: String| {
        let is = if is { "True" } else { "False" };
        set_condition(status, json!({"type": kind, "status": is, "reason": reason, "message": message}));
    };
    let discovered = "All resources successfully discovered";
    say("NamespaceDeletionDiscoveryFailure", false, "ResourcesDiscovered", discovered.to_owned());
    let parsed = "All legacy kube types successfully parsed";
    say("NamespaceDeletionGroupVersionParsingFailure", false, "ParsedGroupVersions", parsed.to_owned());
    let deleted = "All content successfully deleted, may be waiting on finalization";
    say("NamespaceDeletionContentFailure", false, "ContentDeleted", deleted.to_owned());
    let remain = format!("Some resources are remaining: {}", counted(&remaining, "has"));
    say("NamespaceContentRemaining", true, "SomeResourcesRemain", remain);
    if finalizers.is_empty() {
        let none = "All content-preserving finalizers finished";
        say("NamespaceFinalizersRemaining", false, "ContentHasNoFinalizers", none.to_owned());
    } else {
        let left = counted(&finalizers, "in");
        let message = format!("Some content in the namespace has finalizers remaining: {left}");
        say("NamespaceFinalizersRemaining", true, "SomeFinalizersRemain", message);
    }
}
