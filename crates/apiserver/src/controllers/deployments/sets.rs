//! The ReplicaSets of a Deployment: which is of which template, their revisions, and their sizes.

use std::sync::Arc;

use serde_json::{Value, json};

use super::View;
use super::status::replaced_condition;
use crate::controllers::machine::{Change, Told};
use crate::controllers::object::{condition, controller_of, is_going, managing_reference, taken};
use crate::kinds::{DEPLOYMENT, REPLICA_SET, Sub};
use crate::store::Deletion;
use crate::value::{at, metadata, name_of, namespace_of, number, object, remove, text};

/// The label that tells the sets of a Deployment apart.
pub(super) const HASH: &str = "pod-template-hash";
pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
const HISTORY: &str = "deployment.kubernetes.io/revision-history";
const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
const MOST: &str = "deployment.kubernetes.io/max-replicas";
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The letters of hashes in names: without vowels, so that no word comes out.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

pub(super) fn replicas(set: &Value) -> i64 {
    number(set, &["spec", "replicas"]).unwrap_or(0)
}

pub(super) fn available(set: &Value) -> i64 {
    number(set, &["status", "availableReplicas"]).unwrap_or(0)
}

pub(super) fn is_of_template(set: &Value, template: &Value) -> bool {
    let mut own = at(set, &["spec", "template"]).clone();
    remove(object(metadata(&mut own), "labels"), HASH);
    let mut template = template.clone();
    remove(object(metadata(&mut template), "labels"), HASH);
    own == template
}

/// Sets that an earlier Deployment left are taken over, with their pods.
pub(super) fn adopted(view: &View) -> Vec<Change> {
    let orphans = view.sets.iter().filter(|set| controller_of(set).is_none());
    orphans.map(|set| taken(&REPLICA_SET, set, &view.deployment)).collect()
}

/// A short name for a template: 32 bits of FNV-1a in the letters of names.
fn hash(template: &Value) -> String {
    let text = template.to_string();
    let sum =
        text.bytes().fold(0x811c_9dc5_u32, |sum, byte| (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    sum.to_string().bytes().map(|byte| char::from(LETTERS[usize::from(byte) % LETTERS.len()])).collect()
}

fn annotation<'a>(object: &'a Value, name: &str) -> &'a str {
    text(object, &["metadata", "annotations", name])
}

pub(super) fn revision(object: &Value) -> i64 {
    annotation(object, REVISION).parse().unwrap_or(0)
}

/// Whether the number of replicas was changed since the sets were sized.
pub(super) fn is_scaling(view: &View) -> bool {
    let active = view.sets.iter().filter(|set| replicas(set) > 0);
    active
        .map(|set| annotation(set, DESIRED))
        .any(|desired| desired.parse::<i64>().is_ok_and(|desired| desired != view.wanted()))
}

/// The set of the present template is made, or marked as the newest; `None` when nothing is to be done.
pub(super) fn newest_made_or_marked(view: &View) -> Option<Vec<Change>> {
    let next = view.older().map(|set| revision(set)).max().unwrap_or(0).saturating_add(1);
    let Some(newest) = view.newest() else {
        if !view.is_rolling() && super::rolling::old_pods_are_there(view) {
            return None;
        }
        return Some(made(view, next));
    };
    let mut set = (**newest).clone();
    mark(view, &mut set, next);
    if set != **newest {
        return Some(vec![Change::Put { kind: &REPLICA_SET, sub: None, object: set }]);
    }
    let marked = with_revision(view, revision(newest));
    if marked.is_some() {
        return marked;
    }
    if condition(&view.deployment, "Progressing").is_none() {
        let message = format!("Found new replica set \"{}\"", name_of(newest));
        return Some(vec![progress(view, "FoundNewReplicaSet", message)]);
    }
    None
}

fn with_revision(view: &View, revision: i64) -> Option<Vec<Change>> {
    let mut deployment = (*view.deployment).clone();
    object(metadata(&mut deployment), "annotations")[REVISION] = json!(revision.to_string());
    let is_new = deployment != *view.deployment;
    is_new.then(|| vec![Change::Put { kind: &DEPLOYMENT, sub: None, object: deployment }])
}

fn progress(view: &View, reason: &str, message: String) -> Change {
    let mut deployment = (*view.deployment).clone();
    let told = json!({"type": "Progressing", "status": "True", "reason": reason, "message": message});
    replaced_condition(object(&mut deployment, "status"), told);
    Change::Put { kind: &DEPLOYMENT, sub: Some(Sub::Status), object: deployment }
}

fn made(view: &View, revision: i64) -> Vec<Change> {
    let deployment = &view.deployment;
    let mut template = at(deployment, &["spec", "template"]).clone();
    let hash = hash(&template);
    object(metadata(&mut template), "labels")[HASH] = json!(hash);
    let mut selector = at(deployment, &["spec", "selector"]).clone();
    object(&mut selector, "matchLabels")[HASH] = json!(hash);
    let mut set = json!({
        "metadata": {
            "name": format!("{}-{hash}", name_of(deployment)),
            "namespace": namespace_of(deployment),
            "labels": at(&template, &["metadata", "labels"]),
            "ownerReferences": [managing_reference(deployment)],
        },
        "spec": {"replicas": 0, "selector": selector, "template": template},
    });
    if let Some(seconds) = number(deployment, &["spec", "minReadySeconds"]).filter(|it| *it > 0) {
        set["spec"]["minReadySeconds"] = json!(seconds);
    }
    mark(view, &mut set, revision);
    let size = super::rolling::size_of_newest(view, 0);
    set["spec"]["replicas"] = json!(size);
    let name = name_of(&set).to_owned();
    let told = (size > 0).then(|| scaled_told(view, &name, 0, size));
    let mut changes = vec![Change::Create { kind: &REPLICA_SET, object: set, told }];
    changes.push(progress(view, "NewReplicaSetCreated", format!("Created new replica set \"{name}\"")));
    changes
}

/// Annotations of the Deployment, its revision, and what it was sized for.
fn mark(view: &View, set: &mut Value, revision: i64) {
    let old: i64 = self::revision(set);
    let inherited = at(&view.deployment, &["metadata", "annotations"]).as_object();
    let annotations = object(metadata(set), "annotations");
    let own = [REVISION, HISTORY, DESIRED, MOST, LAST_APPLIED];
    for (name, value) in inherited.into_iter().flatten().filter(|(name, _)| !own.contains(&name.as_str())) {
        annotations[name] = value.clone();
    }
    if old < revision {
        if old > 0 {
            let history = text(annotations, &[HISTORY]);
            let history = if history.is_empty() { old.to_string() } else { format!("{history},{old}") };
            annotations[HISTORY] = json!(history);
        }
        annotations[REVISION] = json!(revision.to_string());
    }
    if annotations.get(DESIRED).is_none() {
        size_marks(view, annotations);
    }
}

fn size_marks(view: &View, annotations: &mut Value) {
    annotations[DESIRED] = json!(view.wanted().to_string());
    let most = view.wanted() + super::rolling::max_surge(view);
    annotations[MOST] = json!(most.to_string());
}

fn scaled_told(view: &View, name: &str, from: i64, to: i64) -> Told {
    let way = if to > from { "up" } else { "down" };
    let message = format!("Scaled {way} replica set {name} from {from} to {to}");
    Told::of(&view.deployment, "ScalingReplicaSet", message)
}

/// A set with another size, and with the marks of what it was sized for. Nothing if it is so already.
pub(super) fn sized(view: &View, set: &Arc<Value>, to: i64) -> Vec<Change> {
    let mut new = (**set).clone();
    let from = replicas(set);
    object(&mut new, "spec")["replicas"] = json!(to);
    size_marks(view, object(metadata(&mut new), "annotations"));
    if new == **set {
        return Vec::new();
    }
    let mut changes = vec![Change::Put { kind: &REPLICA_SET, sub: None, object: new }];
    if from != to {
        changes.push(Change::Tell(scaled_told(view, name_of(set), from, to)));
    }
    changes
}

/// Old sets without pods that are more than are kept.
pub(super) fn forgotten(view: &View) -> Vec<Change> {
    let kept = number(&view.deployment, &["spec", "revisionHistoryLimit"]).unwrap_or(10);
    let kept = usize::try_from(kept).unwrap_or(usize::MAX);
    let is_empty = |set: &&Arc<Value>| {
        replicas(set) == 0 && number(set, &["status", "replicas"]).unwrap_or(0) == 0 && !is_going(set)
    };
    if !super::status::is_complete(view) {
        return Vec::new();
    }
    let mut old: Vec<&Arc<Value>> = view.older().filter(is_empty).collect();
    old.sort_by_key(|set| revision(set));
    let surplus = old.len().saturating_sub(kept);
    old.into_iter()
        .take(surplus)
        .map(|set| Change::Delete { kind: &REPLICA_SET, object: set.clone(), deletion: Deletion::default() })
        .collect()
}

/// That it was paused, or goes on, is said once.
pub(super) fn pause_told(view: &View) -> Option<Vec<Change>> {
    let progressing = condition(&view.deployment, "Progressing");
    let says_paused = progressing.is_some_and(|it| it["reason"] == "DeploymentPaused");
    let (reason, message) = match (view.is_paused(), says_paused) {
        (true, false) => ("DeploymentPaused", "Deployment is paused"),
        (false, true) => ("DeploymentResumed", "Deployment is resumed"),
        _ => return None,
    };
    let mut deployment = (*view.deployment).clone();
    let told = json!({"type": "Progressing", "status": "Unknown", "reason": reason, "message": message});
    replaced_condition(object(&mut deployment, "status"), told);
    Some(vec![Change::Put { kind: &DEPLOYMENT, sub: Some(Sub::Status), object: deployment }])
}
