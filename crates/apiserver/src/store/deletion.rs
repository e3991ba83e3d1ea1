//! What a deletion does: at once, with a grace period, or when the finalizers are gone.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::kinds::{Kind, NAMESPACE, POD};
use crate::refusal::Refusal;
use crate::value::{at, list, metadata, name_of, number, object, seconds_from_now, text};

/// What becomes of the objects that it owns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Propagation {
    /// They go after it.
    #[default]
    Background,
    /// They go before it.
    Foreground,
    /// They stay.
    Orphan,
}

impl Propagation {
    fn finalizer(self) -> Option<&'static str> {
        match self {
            Propagation::Background => None,
            Propagation::Foreground => Some("foregroundDeletion"),
            Propagation::Orphan => Some("orphan"),
        }
    }
}

/// How to delete.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Deletion {
    /// How long it may take to go; for pods.
    pub grace: Option<i64>,
    /// It must have this UID.
    pub uid: Option<String>,
    /// It must have this version.
    pub version: Option<String>,
    /// What becomes of what it owns.
    pub propagation: Propagation,
    /// Everything but the last step.
    pub dry_run: bool,
}

impl Deletion {
    /// At once, whatever grace it has.
    pub fn at_once() -> Deletion {
        Deletion { grace: Some(0), ..Deletion::default() }
    }
}

/// A deletion that was done, or has begun.
#[derive(Clone, Debug)]
pub struct Deleted {
    /// The object, as it was last or as it waits.
    pub object: Arc<Value>,
    /// Whether it is gone.
    pub is_gone: bool,
}

/// One step of a deletion.
pub(super) struct Step {
    pub(super) object: Value,
    pub(super) is_last: bool,
    pub(super) changes_nothing: bool,
}

pub(super) fn step(kind: &Kind, old: &Value, deletion: &Deletion) -> Result<Step, Refusal> {
    let name = name_of(old);
    let uid = text(old, &["metadata", "uid"]);
    if let Some(wanted) = deletion.uid.as_deref().filter(|wanted| *wanted != uid) {
        let why = format!(
            "the UID in the precondition ({wanted}) does not match the UID in record ({uid}). The object might \
             have been deleted and then recreated"
        );
        return Err(unmet(kind, name, &why));
    }
    let version = text(old, &["metadata", "resourceVersion"]);
    if let Some(wanted) = deletion.version.as_deref().filter(|wanted| *wanted != version) {
        let why = format!(
            "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record \
             ({version}). The object might have been modified"
        );
        return Err(unmet(kind, name, &why));
    }
    let grace = grace(kind, old, deletion.grace);
    let mut new = old.clone();
    if let Some(finalizer) = deletion.propagation.finalizer() {
        let has = list(old, &["metadata", "finalizers"]).iter().any(|it| it == finalizer);
        if !has {
            let mut all = list(old, &["metadata", "finalizers"]).to_vec();
            all.push(json!(finalizer));
            metadata(&mut new)["finalizers"] = Value::Array(all);
        }
    }
    let is_going = at(old, &["metadata", "deletionTimestamp"]).is_string();
    let had = number(old, &["metadata", "deletionGracePeriodSeconds"]);
    if !is_going || had.is_some_and(|had| grace < had) {
        let stamp = seconds_from_now(grace);
        let metadata = metadata(&mut new);
        metadata["deletionTimestamp"] = json!(stamp);
        if *kind != NAMESPACE {
            metadata["deletionGracePeriodSeconds"] = json!(grace);
        }
        if !is_going && let Some(generation) = metadata.get("generation").and_then(Value::as_i64) {
            metadata["generation"] = json!(generation + 1);
        }
        if *kind == NAMESPACE {
            object(&mut new, "status")["phase"] = json!("Terminating");
        }
    }
    let is_last = is_due(kind, &new);
    if is_last {
        // Gone at once, it was never seen waiting.
        if !is_going && list(old, &["metadata", "finalizers"]).is_empty() {
            new = old.clone();
        }
    }
    let changes_nothing = !is_last && new == *old;
    Ok(Step { object: new, is_last, changes_nothing })
}

/// A precondition that does not hold; here the real server names the kind, not the resource.
fn unmet(kind: &Kind, name: &str, why: &str) -> Refusal {
    let mut refusal = Refusal::conflict(kind, name, why);
    refusal.message = format!("Operation cannot be fulfilled on {} \"{name}\": {why}", kind.kind);
    refusal.details.insert("kind".into(), json!(kind.kind));
    refusal
}

/// Whether an object that is being deleted may go now.
pub(super) fn is_due(kind: &Kind, object: &Value) -> bool {
    at(object, &["metadata", "deletionTimestamp"]).is_string()
        && list(object, &["metadata", "finalizers"]).is_empty()
        && (*kind != POD || number(object, &["metadata", "deletionGracePeriodSeconds"]).unwrap_or(0) == 0)
        && (*kind != NAMESPACE || list(object, &["spec", "finalizers"]).is_empty())
}

/// Only pods have a grace period, and only while something of them may run.
fn grace(kind: &Kind, old: &Value, asked: Option<i64>) -> i64 {
    if *kind != POD {
        return 0;
    }
    let is_over = matches!(text(old, &["status", "phase"]), "Succeeded" | "Failed");
    if is_over || text(old, &["spec", "nodeName"]).is_empty() {
        return 0;
    }
    let own = number(old, &["spec", "terminationGracePeriodSeconds"]).unwrap_or(30);
    asked.unwrap_or(own).max(0)
}
