//! A Deployment has a ReplicaSet for its template, and moves its pods there from the older ones.
//!
//! One step at a time: what a step changed is seen at the next look, so that each is decided by what is there.

mod rolling;
mod sets;
mod status;

use std::sync::Arc;

use serde_json::Value;

use super::machine::{Change, Controller, Key, Work};
use super::object::{controller_of, is_going, is_managed_by, key, managed_by};
use crate::kinds::{DEPLOYMENT, Kind, POD, REPLICA_SET};
use crate::store::{Selection, Store, What};
use crate::value::{at, number, text};

pub(super) struct Deployments;

impl Controller for Deployments {
    const NAME: &'static str = "deployment-controller";

    fn follows(&self) -> Vec<&'static Kind> {
        vec![&DEPLOYMENT, &REPLICA_SET, &POD]
    }

    fn concerns(&mut self, store: &Store, kind: &'static Kind, what: What, object: &Value) -> Vec<Key> {
        if *kind == DEPLOYMENT {
            return vec![key(object)];
        }
        if *kind == REPLICA_SET {
            return managed_by(object, "Deployment").into_iter().collect();
        }
        // A Deployment that recreates waits until the last old pod is gone.
        if what != What::Deleted {
            return Vec::new();
        }
        let set = managed_by(object, "ReplicaSet")
            .and_then(|(namespace, name)| store.get(&REPLICA_SET, &namespace, &name).ok());
        set.and_then(|set| managed_by(&set, "Deployment")).into_iter().collect()
    }

    fn look(&mut self, store: &Store, (namespace, name): &Key) -> Work {
        let Ok(deployment) = store.get(&DEPLOYMENT, namespace, name) else { return Work::default() };
        let selection = Selection::of_label_selector(at(&deployment, &["spec", "selector"]));
        let mut sets = store.list(&REPLICA_SET, Some(namespace), &selection).items;
        sets.retain(|set| {
            is_managed_by(set, &deployment) || (controller_of(set).is_none() && !is_going(set))
        });
        sets.sort_by_key(|set| (text(set, &["metadata", "creationTimestamp"]).to_owned(), key(set)));
        let pods = store.list(&POD, Some(namespace), &selection).items;
        reconcile(&View { deployment, sets, pods }).into()
    }
}

pub(super) struct View {
    deployment: Arc<Value>,
    /// Its own, and those that nobody manages and it selects; the oldest first.
    sets: Vec<Arc<Value>>,
    /// Those that its selector selects.
    pods: Vec<Arc<Value>>,
}

impl View {
    fn wanted(&self) -> i64 {
        number(&self.deployment, &["spec", "replicas"]).unwrap_or(1)
    }

    fn is_rolling(&self) -> bool {
        text(&self.deployment, &["spec", "strategy", "type"]) != "Recreate"
    }

    fn is_paused(&self) -> bool {
        at(&self.deployment, &["spec", "paused"]) == true
    }

    /// The set of the present template.
    fn newest(&self) -> Option<&Arc<Value>> {
        let template = at(&self.deployment, &["spec", "template"]);
        self.sets.iter().find(|set| sets::is_of_template(set, template))
    }

    /// The others, the oldest first.
    fn older(&self) -> impl Iterator<Item = &Arc<Value>> {
        let newest = self.newest().map(|set| key(set));
        self.sets.iter().filter(move |set| Some(key(set)) != newest)
    }
}

fn reconcile(view: &View) -> Vec<Change> {
    if is_going(&view.deployment) {
        return status::changes(view, None);
    }
    let orphans = sets::adopted(view);
    if !orphans.is_empty() {
        return orphans;
    }
    if let Some(changes) = sets::pause_told(view) {
        return changes;
    }
    let step = if sets::is_scaling(view) || view.is_paused() {
        rolling::scale(view)
    } else {
        sets::newest_made_or_marked(view)
            .or_else(|| if view.is_rolling() { rolling::roll(view) } else { rolling::recreate(view) })
    };
    match step {
        Some(changes) => changes,
        None => {
            let told = status::changes(view, view.newest());
            if told.is_empty() { sets::forgotten(view) } else { told }
        }
    }
}

#[cfg(test)]
mod tests;
