//! The EndpointSlices of every Service with a selector: which pods serve it, at which ports.
//!
//! Endpoints stay in the slice where they are, new ones fill the slices that have room, and a slice that
//! became empty is used again or goes. A Service without endpoints has one empty slice.

mod endpoints;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::{Value, json};

use self::endpoints::{Endpoint, Family, Ports, desired};
use super::machine::{Change, Controller, Key, Work};
use super::object::{is_going, key, managing_reference};
use crate::kinds::{ENDPOINT_SLICE, Kind, NODE, POD, SERVICE};
use crate::store::{Deletion, Selection, Store, What};
use crate::value::{at, fields, list, metadata, name_of, namespace_of, now, remove, text};

/// How many endpoints a slice has at most.
const MOST: usize = 100;
const SERVICE_NAME: &str = "kubernetes.io/service-name";
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
const MANAGER: &str = "endpointslice-controller.k8s.io";
const HEADLESS: &str = "service.kubernetes.io/headless";
const TRIGGERED: &str = "endpoints.kubernetes.io/last-change-trigger-time";

#[derive(Default)]
pub(super) struct Slices {
    /// The Services that a pod served when it was last seen: those that it leaves must hear of it.
    served: HashMap<Key, BTreeSet<Key>>,
}

impl Controller for Slices {
    const NAME: &'static str = "endpointslice-controller";

    fn follows(&self) -> Vec<&'static Kind> {
        vec![&SERVICE, &POD, &ENDPOINT_SLICE]
    }

    fn concerns(&mut self, store: &Store, kind: &'static Kind, what: What, object: &Value) -> Vec<Key> {
        if *kind == SERVICE {
            return vec![key(object)];
        }
        if *kind == ENDPOINT_SLICE {
            let is_ours = text(object, &["metadata", "labels", MANAGED_BY]) == MANAGER;
            let service = text(object, &["metadata", "labels", SERVICE_NAME]);
            let found = is_ours.then(|| (namespace_of(object).to_owned(), service.to_owned()));
            return found.into_iter().collect();
        }
        let mut concerned = self.served.remove(&key(object)).unwrap_or_default();
        if what != What::Deleted {
            let services = store.list(&SERVICE, Some(namespace_of(object)), &Selection::default()).items;
            let serves = services.iter().filter(|service| selects(service, object));
            let serves: BTreeSet<Key> = serves.map(|service| key(service)).collect();
            concerned.extend(serves.iter().cloned());
            if !serves.is_empty() {
                self.served.insert(key(object), serves);
            }
        }
        concerned.into_iter().collect()
    }

    fn look(&mut self, store: &Store, (namespace, name): &Key) -> Work {
        // The slices of a Service that is gone go as its dependents.
        let Ok(service) = store.get(&SERVICE, namespace, name) else { return Work::default() };
        let selector = json!({"matchLabels": at(&service, &["spec", "selector"])});
        let pods = store.list(&POD, Some(namespace), &Selection::of_label_selector(&selector)).items;
        let pods: Vec<Arc<Value>> = pods.into_iter().filter(|pod| selects(&service, pod)).collect();
        for pod in &pods {
            self.served.entry(key(pod)).or_default().insert(key(&service));
        }
        let of_service = json!({"matchLabels": {SERVICE_NAME: name}});
        let of_service = Selection::of_label_selector(&of_service);
        let slices = store.list(&ENDPOINT_SLICE, Some(namespace), &of_service).items;
        let is_of = |slice: &Value| {
            text(slice, &["metadata", "labels", SERVICE_NAME]) == name
                && text(slice, &["metadata", "labels", MANAGED_BY]) == MANAGER
                && !is_going(slice)
        };
        let slices = slices.into_iter().filter(|slice| is_of(slice)).collect();
        let nodes: BTreeSet<&str> = pods.iter().map(|pod| text(pod, &["spec", "nodeName"])).collect();
        let zones = nodes.into_iter().filter_map(|node| {
            let found = store.get(&NODE, "", node).ok()?;
            let zone = text(&found, &["metadata", "labels", "topology.kubernetes.io/zone"]);
            (!zone.is_empty()).then(|| (node.to_owned(), zone.to_owned()))
        });
        let zones = zones.collect();
        reconcile(&View { service, pods, slices, zones }).into()
    }
}

fn selects(service: &Value, pod: &Value) -> bool {
    let Some(selector) = at(service, &["spec", "selector"]).as_object().filter(|it| !it.is_empty()) else {
        return false;
    };
    selector.iter().all(|(label, value)| at(pod, &["metadata", "labels", label]) == value)
}

struct View {
    service: Arc<Value>,
    /// Those that it selects.
    pods: Vec<Arc<Value>>,
    /// Its own.
    slices: Vec<Arc<Value>>,
    /// Of the nodes of its pods.
    zones: BTreeMap<String, String>,
}

fn reconcile(view: &View) -> Vec<Change> {
    let service = &view.service;
    let has_selector = at(service, &["spec", "selector"]).as_object().is_some_and(|it| !it.is_empty());
    if !has_selector || text(service, &["spec", "type"]) == "ExternalName" {
        return Vec::new();
    }
    let families = endpoints::families(service);
    let mut changes = Vec::new();
    for family in &families {
        changes.extend(of_family(view, *family));
    }
    // Those of a family that the Service no longer has.
    let has = |slice: &Value| families.iter().any(|family| family.word() == text(slice, &["addressType"]));
    changes.extend(view.slices.iter().filter(|slice| !has(slice)).map(deleted));
    if is_going(service) {
        // The slices of a Service go with it, so no new ones are made.
        changes.retain(|change| !matches!(change, Change::Create { .. }));
    }
    changes
}

fn deleted(slice: &Arc<Value>) -> Change {
    Change::Delete { kind: &ENDPOINT_SLICE, object: slice.clone(), deletion: Deletion::default() }
}

/// One slice as it shall be: that of a name, or a new one.
struct Filled {
    old: Option<Arc<Value>>,
    ports: Ports,
    endpoints: Vec<Endpoint>,
}

fn of_family(view: &View, family: Family) -> Vec<Change> {
    let mut wanted = desired(&view.service, &view.pods, &view.zones, family);
    let mut filled: Vec<Filled> = Vec::new();
    let mut empty: Vec<Arc<Value>> = Vec::new();
    let own = view.slices.iter().filter(|slice| text(slice, &["addressType"]) == family.word());
    for slice in own {
        let ports = Ports::of_slice(slice);
        let mut kept = Vec::new();
        if let Some(group) = wanted.get_mut(&ports) {
            for old in list(slice, &["endpoints"]).iter().filter_map(Endpoint::pod_of) {
                kept.extend(group.remove(old));
            }
        }
        if kept.is_empty() {
            empty.push(slice.clone());
        } else {
            filled.push(Filled { old: Some(slice.clone()), ports, endpoints: kept });
        }
    }
    for (ports, rest) in wanted {
        let mut rest = rest.into_values().peekable();
        for slice in filled.iter_mut().filter(|slice| slice.ports == ports) {
            let room = MOST.saturating_sub(slice.endpoints.len());
            slice.endpoints.extend(rest.by_ref().take(room));
        }
        while rest.peek().is_some() {
            let endpoints = rest.by_ref().take(MOST).collect();
            filled.push(Filled { old: None, ports: ports.clone(), endpoints });
        }
    }
    if filled.is_empty() {
        filled.push(Filled { old: None, ports: Ports::none(), endpoints: Vec::new() });
    }
    // An empty slice is used again before a new one is made.
    empty.reverse();
    for slice in filled.iter_mut().filter(|slice| slice.old.is_none()) {
        slice.old = empty.pop();
    }
    let mut changes: Vec<Change> = filled.iter().filter_map(|slice| written(view, family, slice)).collect();
    changes.extend(empty.iter().map(deleted));
    changes
}

fn written(view: &View, family: Family, filled: &Filled) -> Option<Change> {
    let service = &view.service;
    let mut slice = match &filled.old {
        Some(old) => (**old).clone(),
        None => json!({
            "addressType": family.word(),
            "metadata": {
                "generateName": format!("{}-", name_of(service)),
                "namespace": namespace_of(service),
                "ownerReferences": [managing_reference(service)],
            },
        }),
    };
    metadata(&mut slice)["labels"] = labels(service);
    for (name, value) in
        [("endpoints", endpoints::as_json(&filled.endpoints)), ("ports", filled.ports.as_json())]
    {
        match value {
            Value::Null => drop(remove(&mut slice, name)),
            value => drop(fields(&mut slice).insert(name.to_owned(), value)),
        }
    }
    let triggered = |slice: &mut Value| {
        crate::value::object(metadata(slice), "annotations")[TRIGGERED] = json!(now());
    };
    match &filled.old {
        Some(old) if is_same(old, &slice) => None,
        Some(_) => {
            triggered(&mut slice);
            Some(Change::Put { kind: &ENDPOINT_SLICE, sub: None, object: slice })
        }
        None => {
            triggered(&mut slice);
            Some(Change::Create { kind: &ENDPOINT_SLICE, object: slice, told: None })
        }
    }
}

fn is_same(old: &Value, new: &Value) -> bool {
    at(old, &["metadata", "labels"]) == at(new, &["metadata", "labels"])
        && list(old, &["endpoints"]) == list(new, &["endpoints"])
        && list(old, &["ports"]) == list(new, &["ports"])
}

fn labels(service: &Value) -> Value {
    let mut labels = at(service, &["metadata", "labels"]).clone();
    fields(&mut labels);
    remove(&mut labels, HEADLESS);
    labels[SERVICE_NAME] = json!(name_of(service));
    labels[MANAGED_BY] = json!(MANAGER);
    if text(service, &["spec", "clusterIP"]) == "None" {
        labels[HEADLESS] = json!("");
    }
    labels
}

#[cfg(test)]
mod tests;
