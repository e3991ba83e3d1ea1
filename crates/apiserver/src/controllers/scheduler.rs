//! Gives every pod a node: the ready one with the fewest pods, of those that its node selector allows.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::machine::{Change, Controller, Key, Told, Work};
use super::object::{condition, holds, is_going, key, set_condition};
use crate::kinds::{Kind, NODE, POD, Sub};
use crate::store::{Selection, Store, What};
use crate::value::{at, list, name_of, namespace_of, object, text};

pub(super) struct Scheduler;

impl Controller for Scheduler {
    const NAME: &'static str = "default-scheduler";

    fn follows(&self) -> Vec<&'static Kind> {
        vec![&NODE, &POD]
    }

    fn concerns(&mut self, store: &Store, kind: &'static Kind, what: What, object: &Value) -> Vec<Key> {
        if *kind == POD {
            let waits = what != What::Deleted && is_waiting(object);
            return if waits { vec![key(object)] } else { Vec::new() };
        }
        // A node that came or changed may be what some pods wait for.
        let pods = store.list(&POD, None, &Selection::default()).items;
        pods.iter().filter(|pod| is_waiting(pod)).map(|pod| key(pod)).collect()
    }

    fn look(&mut self, store: &Store, (namespace, name): &Key) -> Work {
        let Ok(pod) = store.get(&POD, namespace, name) else { return Work::default() };
        if !is_waiting(&pod) {
            return Work::default();
        }
        let nodes = store.list(&NODE, None, &Selection::default()).items;
        let pods = nodes.iter().map(|node| {
            let name = name_of(node);
            (name.to_owned(), store.count(&POD, &Selection::on_node(name)))
        });
        let pods = pods.collect();
        reconcile(&View { pod, nodes, pods }).into()
    }
}

fn is_waiting(pod: &Value) -> bool {
    text(pod, &["spec", "nodeName"]).is_empty()
        && !is_going(pod)
        && !matches!(text(pod, &["status", "phase"]), "Succeeded" | "Failed")
}

struct View {
    pod: Arc<Value>,
    nodes: Vec<Arc<Value>>,
    /// How many pods each node has.
    pods: BTreeMap<String, usize>,
}

fn reconcile(view: &View) -> Vec<Change> {
    let fits = view.nodes.iter().filter(|node| takes(node, &view.pod));
    let best = fits.min_by_key(|node| (view.pods.get(name_of(node)).copied().unwrap_or(0), name_of(node)));
    let mut pod = (*view.pod).clone();
    let Some(node) = best else {
        let message = format!("0/{} nodes are available.", view.nodes.len());
        let is_told = condition(&pod, "PodScheduled").is_some_and(|it| it["message"] == *message);
        if is_told {
            return Vec::new();
        }
        let told = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
            "message": message});
        set_condition(object(&mut pod, "status"), told);
        let told = Told { is_warning: true, ..Told::of(&view.pod, "FailedScheduling", message) };
        return vec![Change::Put { kind: &POD, sub: Some(Sub::Status), object: pod }, Change::Tell(told)];
    };
    let node = name_of(node);
    let message = format!("Successfully assigned {}/{} to {node}", namespace_of(&pod), name_of(&pod));
    object(&mut pod, "spec")["nodeName"] = json!(node);
    set_condition(object(&mut pod, "status"), json!({"type": "PodScheduled", "status": "True"}));
    let told = Told::of(&view.pod, "Scheduled", message);
    vec![Change::Put { kind: &POD, sub: Some(Sub::Binding), object: pod }, Change::Tell(told)]
}

fn takes(node: &Value, pod: &Value) -> bool {
    let mut wanted = at(pod, &["spec", "nodeSelector"]).as_object().into_iter().flatten();
    holds(node, "Ready")
        && at(node, &["spec", "unschedulable"]) != true
        && wanted.all(|(label, value)| at(node, &["metadata", "labels", label]) == value)
        && list(node, &["spec", "taints"]).iter().all(|taint| {
            text(taint, &["effect"]) == "PreferNoSchedule"
                || list(pod, &["spec", "tolerations"]).iter().any(|it| tolerates(it, taint))
        })
}

fn tolerates(toleration: &Value, taint: &Value) -> bool {
    let said = |field: &str| text(toleration, &[field]);
    (said("effect").is_empty() || toleration["effect"] == taint["effect"])
        && (said("key").is_empty() && said("operator") == "Exists" || toleration["key"] == taint["key"])
        && (said("operator") == "Exists" || said("value") == text(taint, &["value"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, zone: &str) -> Value {
        json!({"metadata": {"name": name, "labels": {"zone": zone}},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]}})
    }

    fn pod(node: &str) -> Value {
        json!({"metadata": {"name": "p", "namespace": "shop"}, "spec": {"nodeName": node}})
    }

    fn chosen(pod: Value, nodes: &[Value], pods: &[Value]) -> Option<String> {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for pod in pods {
            *counts.entry(text(pod, &["spec", "nodeName"]).to_owned()).or_default() += 1;
        }
        let nodes = nodes.iter().cloned().map(Arc::new).collect();
        let view = View { pod: Arc::new(pod), nodes, pods: counts };
        match &reconcile(&view)[..] {
            [Change::Put { sub: Some(Sub::Binding), object, .. }, Change::Tell(told)] => {
                assert_eq!(told.reason, "Scheduled");
                object["spec"]["nodeName"].as_str().map(ToOwned::to_owned)
            }
            [Change::Put { sub: Some(Sub::Status), .. }, Change::Tell(told)] => {
                assert_eq!((told.reason, told.is_warning), ("FailedScheduling", true));
                None
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_pod_goes_to_the_node_with_the_fewest_pods() {
        let nodes = [node("a", "1"), node("b", "2")];
        assert_eq!(chosen(pod(""), &nodes, &[pod("a"), pod("a"), pod("b")]).as_deref(), Some("b"));
        assert_eq!(chosen(pod(""), &nodes, &[]).as_deref(), Some("a"));
    }

    #[test]
    fn a_node_selector_a_cordon_and_a_taint_are_kept() {
        let mut wanting = pod("");
        wanting["spec"]["nodeSelector"] = json!({"zone": "2"});
        let mut nodes = [node("a", "1"), node("b", "2")];
        assert_eq!(chosen(wanting.clone(), &nodes, &[]).as_deref(), Some("b"));
        nodes[1]["spec"] = json!({"unschedulable": true});
        assert_eq!(chosen(wanting.clone(), &nodes, &[]), None);
        nodes[1]["spec"] = json!({"taints": [{"key": "k", "effect": "NoSchedule"}]});
        assert_eq!(chosen(wanting.clone(), &nodes, &[]), None);
        wanting["spec"]["tolerations"] = json!([{"key": "k", "operator": "Exists"}]);
        assert_eq!(chosen(wanting, &nodes, &[]).as_deref(), Some("b"));
    }

    #[test]
    fn a_node_that_is_not_ready_gets_nothing() {
        let mut unready = node("a", "1");
        unready["status"]["conditions"][0]["status"] = json!("Unknown");
        assert_eq!(chosen(pod(""), &[unready], &[]), None);
    }
}
