//! What a Deployment says of itself: how many pods, how many of them serve, and whether it gets on.

use std::sync::Arc;

use serde_json::{Value, json};

use super::View;
use super::rolling::max_unavailable;
use super::sets::replicas;
use crate::controllers::machine::Change;
use crate::controllers::object::{condition, conditions_of};
use crate::kinds::{DEPLOYMENT, Sub};
use crate::value::{at, fields, name_of, now, number, remove};

/// Sets a condition as the last of all, unless it says the same already.
pub(super) fn replaced_condition(status: &mut Value, mut told: Value) {
    let conditions = conditions_of(status);
    let old = conditions.iter().position(|it| it["type"] == told["type"]);
    let time = json!(now());
    told["lastUpdateTime"] = time.clone();
    told["lastTransitionTime"] = time;
    if let Some(place) = old {
        let old = conditions.remove(place);
        if old["status"] == told["status"] {
            if old["reason"] == told["reason"] && old["message"] == told["message"] {
                conditions.insert(place, old);
                return;
            }
            told["lastTransitionTime"] = old["lastTransitionTime"].clone();
        }
    }
    conditions.push(told);
}

struct Counts {
    replicas: i64,
    updated: i64,
    ready: i64,
    available: i64,
    unavailable: i64,
    terminating: i64,
}

impl Counts {
    fn of(view: &View, newest: Option<&Arc<Value>>) -> Counts {
        let sum = |name: &str| -> i64 {
            view.sets.iter().map(|set| number(set, &["status", name]).unwrap_or(0)).sum()
        };
        let available = sum("availableReplicas");
        let wanted: i64 = view.sets.iter().map(|set| replicas(set)).sum();
        Counts {
            replicas: sum("replicas"),
            updated: newest.and_then(|set| number(set, &["status", "replicas"])).unwrap_or(0),
            ready: sum("readyReplicas"),
            available,
            unavailable: (wanted - available).max(0),
            terminating: sum("terminatingReplicas"),
        }
    }

    fn said(status: &Value) -> Counts {
        let said = |name: &str| number(status, &[name]).unwrap_or(0);
        Counts {
            replicas: said("replicas"),
            updated: said("updatedReplicas"),
            ready: said("readyReplicas"),
            available: said("availableReplicas"),
            unavailable: said("unavailableReplicas"),
            terminating: said("terminatingReplicas"),
        }
    }

    fn are_complete(&self, wanted: i64) -> bool {
        self.updated == wanted && self.replicas == wanted && self.available == wanted
    }
}

/// Whether all pods are of the present template and available.
pub(super) fn is_complete(view: &View) -> bool {
    Counts::of(view, view.newest()).are_complete(view.wanted())
}

/// The write that makes it say what is; none if it does.
pub(super) fn changes(view: &View, newest: Option<&Arc<Value>>) -> Vec<Change> {
    let mut deployment = (*view.deployment).clone();
    let before = Counts::said(at(&view.deployment, &["status"]));
    let counts = Counts::of(view, newest);
    let mut status = at(&deployment, &["status"]).clone();
    fields(&mut status);
    for (name, count) in [
        ("replicas", counts.replicas),
        ("updatedReplicas", counts.updated),
        ("readyReplicas", counts.ready),
        ("availableReplicas", counts.available),
        ("unavailableReplicas", counts.unavailable),
    ] {
        if count > 0 {
            status[name] = json!(count);
        } else {
            remove(&mut status, name);
        }
    }
    status["terminatingReplicas"] = json!(counts.terminating);
    if let Some(generation) = number(&deployment, &["metadata", "generation"]) {
        status["observedGeneration"] = json!(generation);
    }
    let is_enough = counts.available >= view.wanted() - max_unavailable(view);
    let told = if is_enough {
        json!({"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable",
            "message": "Deployment has minimum availability."})
    } else {
        json!({"type": "Available", "status": "False", "reason": "MinimumReplicasUnavailable",
            "message": "Deployment does not have minimum availability."})
    };
    replaced_condition(&mut status, told);
    if let Some(told) = progress(view, newest, &before, &counts) {
        replaced_condition(&mut status, told);
    }
    fields(&mut deployment).insert("status".to_owned(), status);
    if deployment == *view.deployment {
        return Vec::new();
    }
    vec![Change::Put { kind: &DEPLOYMENT, sub: Some(Sub::Status), object: deployment }]
}

fn progress(view: &View, newest: Option<&Arc<Value>>, before: &Counts, counts: &Counts) -> Option<Value> {
    if view.is_paused() {
        return None;
    }
    let name = name_of(newest?);
    let said = condition(&view.deployment, "Progressing").map(|it| it["reason"].clone());
    let is_told = counts.replicas == counts.updated && said.is_some_and(|it| it == "NewReplicaSetAvailable");
    if is_told {
        return None;
    }
    if counts.are_complete(view.wanted()) {
        let message = format!("ReplicaSet \"{name}\" has successfully progressed.");
        return Some(json!({"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable",
            "message": message}));
    }
    let moves = counts.updated > before.updated
        || counts.replicas - counts.updated < before.replicas - before.updated
        || counts.ready > before.ready
        || counts.available > before.available;
    moves.then(|| {
        json!({"type": "Progressing", "status": "True", "reason": "ReplicaSetUpdated",
            "message": format!("ReplicaSet \"{name}\" is progressing.")})
    })
}
