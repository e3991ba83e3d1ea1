//! A ReplicaSet has as many pods as it wants: it makes them, takes some away, and counts them.

use std::cmp::Reverse;
use std::sync::Arc;

use serde_json::{Value, json};

use super::machine::{Change, Controller, Key, Told, Work};
use super::object::{
    controller_of, holds, is_going, is_managed_by, key, managed_by, managing_reference, released, strays,
    taken,
};
use crate::kinds::{Kind, POD, REPLICA_SET, Sub};
use crate::store::{Deletion, Selection, Store, What};
use crate::value::{at, fields, metadata, name_of, namespace_of, number, text};

/// So many pods are made or deleted at one look, as by the real one; their own changes bring the next. A wish
/// that was taken back is heeded then.
const BURST: usize = 500;

pub(super) struct ReplicaSets;

impl Controller for ReplicaSets {
    const NAME: &'static str = "replicaset-controller";

    fn follows(&self) -> Vec<&'static Kind> {
        vec![&REPLICA_SET, &POD]
    }

    fn concerns(&mut self, store: &Store, kind: &'static Kind, what: What, object: &Value) -> Vec<Key> {
        if *kind == REPLICA_SET {
            return vec![key(object)];
        }
        if controller_of(object).is_some() || what == What::Deleted {
            return managed_by(object, "ReplicaSet").into_iter().collect();
        }
        // An orphan may find somebody who takes it.
        let sets = store.list(&REPLICA_SET, Some(namespace_of(object)), &Selection::default());
        let takes = |set: &&Arc<Value>| {
            Selection::of_label_selector(at(set, &["spec", "selector"]))
                .matches_labels(at(object, &["metadata", "labels"]))
        };
        sets.items.iter().filter(takes).map(|set| key(set)).collect()
    }

    fn look(&mut self, store: &Store, (namespace, name): &Key) -> Work {
        let Ok(set) = store.get(&REPLICA_SET, namespace, name) else { return Work::default() };
        let selection = Selection::of_label_selector(at(&set, &["spec", "selector"]));
        let pods = store.list(&POD, Some(namespace), &selection).items;
        let strays = strays(store, &POD, &set, &pods);
        reconcile(&View { set, pods, strays }).into()
    }
}

struct View {
    set: Arc<Value>,
    /// Those that its selector selects.
    pods: Vec<Arc<Value>>,
    /// Its own that it does not select any more.
    strays: Vec<Arc<Value>>,
}

fn reconcile(view: &View) -> Vec<Change> {
    let set = &view.set;
    let is_over = |pod: &Value| matches!(text(pod, &["status", "phase"]), "Succeeded" | "Failed");
    let mut orphans: Vec<Change> = Vec::new();
    if !is_going(set) {
        let free =
            view.pods.iter().filter(|pod| controller_of(pod).is_none() && !is_going(pod) && !is_over(pod));
        orphans.extend(free.map(|pod| taken(&POD, pod, set)));
    }
    if !orphans.is_empty() {
        return orphans;
    }
    let own: Vec<&Arc<Value>> =
        view.pods.iter().filter(|pod| is_managed_by(pod, set) && !is_over(pod)).collect();
    let (going, mut active): (Vec<_>, Vec<_>) = own.into_iter().partition(|pod| is_going(pod));
    let wanted = usize::try_from(number(set, &["spec", "replicas"]).unwrap_or(1)).unwrap_or(0);
    let mut changes = Vec::new();
    if !is_going(set) {
        changes.extend(released(&POD, &view.strays, set));
    }
    let released = changes.len();
    if !is_going(set) {
        for _ in 0..wanted.saturating_sub(active.len()).min(BURST) {
            let told = Told::of(set, "SuccessfulCreate", "Created pod: {}");
            changes.push(Change::Create { kind: &POD, object: pod_of(set), told: Some(told) });
        }
        if active.len() > wanted {
            active.sort_by_key(|pod| worth(pod));
            for pod in active.drain(..(active.len() - wanted).min(BURST)) {
                let deletion = Deletion::default();
                changes.push(Change::Delete { kind: &POD, object: pod.clone(), deletion });
                let message = format!("Deleted pod: {}", name_of(pod));
                changes.push(Change::Tell(Told::of(set, "SuccessfulDelete", message)));
            }
        }
    }
    // The count is of what is there; what was just asked for is seen at the next look.
    if changes.len() == released {
        let mut new = (**set).clone();
        fields(&mut new).insert("status".to_owned(), status(set, &active, going.len()));
        if new != **set {
            changes.push(Change::Put { kind: &REPLICA_SET, sub: Some(Sub::Status), object: new });
        }
    }
    changes
}

/// What is worth least goes first: not placed, not running, not ready, cheap, young.
fn worth(pod: &Value) -> (bool, bool, bool, i64, Reverse<String>) {
    let cost = text(pod, &["metadata", "annotations", "controller.kubernetes.io/pod-deletion-cost"]);
    (
        !text(pod, &["spec", "nodeName"]).is_empty(),
        text(pod, &["status", "phase"]) == "Running",
        holds(pod, "Ready"),
        cost.parse().unwrap_or(0),
        Reverse(text(pod, &["metadata", "creationTimestamp"]).to_owned()),
    )
}

fn pod_of(set: &Value) -> Value {
    let mut pod = at(set, &["spec", "template"]).clone();
    let meta = metadata(&mut pod);
    meta["generateName"] = json!(format!("{}-", name_of(set)));
    meta["namespace"] = json!(namespace_of(set));
    meta["ownerReferences"] = json!([managing_reference(set)]);
    pod
}

fn status(set: &Value, active: &[&Arc<Value>], going: usize) -> Value {
    let count = |wanted: &dyn Fn(&Value) -> bool| active.iter().filter(|pod| wanted(pod)).count();
    let labels = at(set, &["spec", "template", "metadata", "labels"]);
    let fully = |pod: &Value| {
        let mut all = labels.as_object().into_iter().flatten();
        all.all(|(key, value)| at(pod, &["metadata", "labels", key]) == value)
    };
    let ready = count(&|pod| holds(pod, "Ready"));
    let mut status = json!({"replicas": active.len(), "terminatingReplicas": going});
    for (name, count) in
        [("fullyLabeledReplicas", count(&fully)), ("readyReplicas", ready), ("availableReplicas", ready)]
    {
        if count > 0 {
            status[name] = json!(count);
        }
    }
    if let Some(generation) = number(set, &["metadata", "generation"]) {
        status["observedGeneration"] = json!(generation);
    }
    if let Some(conditions) = at(set, &["status"]).get("conditions") {
        status["conditions"] = conditions.clone();
    }
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(replicas: usize) -> Arc<Value> {
        Arc::new(json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": {"name": "web-1", "namespace": "shop", "uid": "set", "generation": 1},
            "spec": {
                "replicas": replicas, "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web"}]}},
            },
        }))
    }

    fn pod(name: &str, node: &str, ready: bool) -> Arc<Value> {
        let conditions = json!([{"type": "Ready", "status": if ready { "True" } else { "False" }}]);
        Arc::new(json!({
            "metadata": {"name": name, "namespace": "shop", "labels": {"app": "web"}, "uid": name,
                "creationTimestamp": "2026-01-01T00:00:00Z", "ownerReferences": [managing_reference(&set(1))]},
            "spec": {"nodeName": node},
            "status": {"phase": if node.is_empty() { "Pending" } else { "Running" }, "conditions": conditions},
        }))
    }

    fn view(set: Arc<Value>, pods: Vec<Arc<Value>>) -> View {
        View { set, pods, strays: Vec::new() }
    }

    fn deleted(changes: &[Change]) -> Vec<&str> {
        let deleted = changes.iter().filter_map(|change| match change {
            Change::Delete { object, .. } => Some(name_of(object)),
            _ => None,
        });
        deleted.collect()
    }

    #[test]
    fn missing_pods_are_made_from_the_template_and_told() {
        let changes = reconcile(&view(set(3), vec![pod("a", "n", true)]));
        assert_eq!(changes.len(), 2);
        let Change::Create { object, told: Some(told), .. } = &changes[0] else { panic!("{changes:?}") };
        assert_eq!(object["metadata"]["generateName"], "web-1-");
        assert_eq!(object["metadata"]["labels"]["app"], "web");
        assert!(is_managed_by(object, &set(3)));
        assert_eq!(told.message, "Created pod: {}");
    }

    #[test]
    fn the_pods_that_are_worth_least_go_first() {
        let pods = vec![pod("ready", "n", true), pod("unready", "n", false), pod("unplaced", "", false)];
        let changes = reconcile(&view(set(1), pods));
        assert_eq!(deleted(&changes), ["unplaced", "unready"]);
    }

    #[test]
    fn a_wish_for_very_many_pods_more_or_less_is_heeded_in_bursts() {
        let changes = reconcile(&view(set(2_000_000), Vec::new()));
        assert_eq!(changes.len(), BURST);
        let pods = (0..BURST + 7).map(|number| pod(&number.to_string(), "n", true)).collect();
        assert_eq!(deleted(&reconcile(&view(set(0), pods))).len(), BURST);
    }

    #[test]
    fn pods_that_go_are_replaced_and_counted_apart() {
        let mut going = (*pod("a", "n", true)).clone();
        going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        let changes = reconcile(&view(set(1), vec![Arc::new(going.clone())]));
        assert!(matches!(changes[..], [Change::Create { .. }]), "{changes:?}");
        let changes = reconcile(&view(set(1), vec![Arc::new(going), pod("b", "n", true)]));
        let [Change::Put { object, .. }] = &changes[..] else { panic!("{changes:?}") };
        let expected = json!({"replicas": 1, "terminatingReplicas": 1, "fullyLabeledReplicas": 1,
            "readyReplicas": 1, "availableReplicas": 1, "observedGeneration": 1});
        assert_eq!(object["status"], expected);
    }

    #[test]
    fn a_set_that_goes_makes_no_pods() {
        let mut gone = (*set(3)).clone();
        gone["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        let changes = reconcile(&view(Arc::new(gone), Vec::new()));
        assert!(changes.iter().all(|it| matches!(it, Change::Put { .. })), "{changes:?}");
    }

    #[test]
    fn a_pod_without_an_owner_is_taken() {
        let mut free = (*pod("a", "n", true)).clone();
        free["metadata"]["ownerReferences"] = json!([]);
        let changes = reconcile(&view(set(1), vec![Arc::new(free)]));
        let [Change::Put { object, .. }] = &changes[..] else { panic!("{changes:?}") };
        assert!(is_managed_by(object, &set(1)));
    }
}
