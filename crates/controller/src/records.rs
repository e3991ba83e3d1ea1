//! What the loop did, one record per effect: what, for whom, why, how long, and how it ended.
//!
//! The log line is made from it here. Effects that people would want to know of at night are
//! `info`, failures `warn`, everything else `debug`.

use std::collections::BTreeMap;

use sluice_model::effect::{Cause, KubeOutcome};
use sluice_model::plan::Intent;
use sluice_model::{Action, Effect, EffectId, FailureClass, Outcome, Time};

/// Effects whose end is awaited.
#[derive(Debug, Default)]
pub(crate) struct Records {
    open: BTreeMap<EffectId, Begun>,
}

#[derive(Debug)]
struct Begun {
    at: Time,
    what: String,
    cause: Cause,
    /// A person would want to know.
    loud: bool,
}

impl Records {
    /// An effect begins.
    pub(crate) fn begun(&mut self, now: Time, effect: &Effect) {
        let (what, loud) = match &effect.action {
            Action::RunPlan(plan) => (plan.to_string(), plan.intent != Intent::Inspect),
            Action::SyncLocations(updates) => {
                let addresses: usize = updates.iter().map(|update| update.addresses.len()).sum();
                (format!("sync {addresses} addresses at {} locations", updates.len()), false)
            }
            Action::List(what) => (format!("list {}", what.word()), false),
            Action::AddFinalizer(object) => (format!("add finalizer to {}", object.name), false),
            Action::RemoveFinalizer(object) => (format!("remove finalizer from {}", object.name), true),
            Action::WriteStatus { object, ingress, .. } => match ingress {
                Some(ip) => (format!("write status of {}: {ip}", object.name), false),
                None => (format!("write status of {}", object.name), false),
            },
            Action::ConfirmGone(object) => (format!("confirm that {} is gone", object.name), false),
            Action::ResumePlan(_) | Action::Relist(_) | Action::Notify(_) => return,
        };
        tracing::debug!(effect = %effect.id, cause = effect.cause.words(), "{what}");
        self.open.insert(effect.id, Begun { at: now, what, cause: effect.cause.clone(), loud });
    }

    /// An effect has ended.
    pub(crate) fn ended(&mut self, now: Time, id: EffectId, outcome: &Outcome) {
        let Some(Begun { at, what, cause, loud }) = self.open.remove(&id) else { return };
        let took_ms = u64::try_from(now.since(at).as_millis()).unwrap_or(u64::MAX);
        let cause = cause.words();
        match failure(outcome) {
            Some(why) => tracing::warn!(effect = %id, took_ms, cause, "{what}: {why}"),
            None if loud => tracing::info!(effect = %id, took_ms, cause, "{what}: done"),
            None => tracing::debug!(effect = %id, took_ms, cause, "{what}: done"),
        }
    }
}

fn failure(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Plan(report) => report
            .failure
            .as_ref()
            .map(|failure| format!("failed after {} steps: {failure}", report.done.len())),
        Outcome::Locations { failure, .. } => failure.as_ref().map(ToString::to_string),
        // Before there is a gateway there is nothing to list in it.
        Outcome::Listed { result: Err(failure), .. } if failure.class == FailureClass::NotFound => None,
        Outcome::Listed { result, .. } => result.as_ref().err().map(ToString::to_string),
        // An object that has gone needs nothing any more, and the watch will say so.
        Outcome::Kube(KubeOutcome::Done | KubeOutcome::Gone) | Outcome::Existence(_) => None,
        Outcome::Kube(KubeOutcome::Conflict) => Some("the object has changed meanwhile".into()),
        Outcome::Kube(KubeOutcome::Refused(why)) => Some(format!("refused: {why}")),
        Outcome::Kube(KubeOutcome::Unavailable) => Some("the API server did not answer".into()),
    }
}
