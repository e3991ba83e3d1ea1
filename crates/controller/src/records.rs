//! What the loop did, one record per effect: what, for whom, why, how long, and how it ended.
//!
//! The log line is made from it here. Effects that people would want to know of at night are
//! `info`, failures `warn`, everything else `debug`. The journal keeps the last of it.

use std::collections::BTreeMap;

use sluice_model::effect::{Cause, Existence, KubeOutcome, Listable};
use sluice_model::plan::Intent;
use sluice_model::{Action, Effect, EffectId, FailureClass, Outcome, Time};
use sluice_updater::{StepEnd, StepNote};

use crate::journal::Journal;

/// Effects whose end is awaited.
#[derive(Debug, Default)]
pub(crate) struct Records {
    open: BTreeMap<EffectId, Begun>,
    /// For explanations.
    pub(crate) journal: Journal,
}

#[derive(Debug)]
struct Begun {
    at: Time,
    what: String,
    /// Whom it is for, by the name that people know; a plan itself knows only an identity.
    service: Option<String>,
    cause: Cause,
    /// A person would want to know.
    loud: bool,
    /// It lists what a gateway has, and there may be no gateway yet.
    in_gateway: bool,
}

/// How an effect ended, for people.
#[derive(PartialEq, Eq, Debug)]
enum End {
    Done,
    /// Not done, and nobody need worry.
    Nothing(String),
    Failed(String),
}

impl Records {
    /// An effect begins, for this service if it is for one.
    pub(crate) fn begun(&mut self, now: Time, effect: &Effect, service: Option<String>) {
        match &effect.action {
            Action::RunPlan(plan) => self.journal.planned(now, effect.id, effect.cause.words(), plan),
            Action::Notify(notice) => self.journal.told(now, notice),
            _ => {}
        }
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
            Action::ConfirmGone(object) => (format!("confirm deletion of {}", object.name), false),
            Action::ResumePlan(_) | Action::Relist(_) | Action::Notify(_) => return,
        };
        tracing::debug!(
            effect = %effect.id, service, cause = effect.cause.words(), operation = what, "operation started"
        );
        let in_gateway = matches!(effect.action, Action::List(Listable::Registrations | Listable::Locations));
        let begun = Begun { at: now, what, service, cause: effect.cause.clone(), loud, in_gateway };
        self.open.insert(effect.id, begun);
    }

    /// An effect has ended.
    pub(crate) fn ended(&mut self, now: Time, id: EffectId, outcome: &Outcome) {
        self.journal.ended(now, id, outcome);
        let Some(Begun { at, what: operation, service, cause, loud, in_gateway }) = self.open.remove(&id)
        else {
            return;
        };
        let took_ms = u64::try_from(now.since(at).as_millis()).unwrap_or(u64::MAX);
        let cause = cause.words();
        match End::of(outcome, in_gateway) {
            End::Failed(error) => {
                tracing::warn!(effect = %id, service, took_ms, cause, operation, error, "operation failed");
            }
            End::Nothing(result) => {
                tracing::debug!(effect = %id, service, took_ms, cause, operation, result, "operation done");
            }
            End::Done if loud => {
                tracing::info!(effect = %id, service, took_ms, cause, operation, "operation done");
            }
            End::Done => tracing::debug!(effect = %id, service, took_ms, cause, operation, "operation done"),
        }
    }

    /// A step of a plan has begun or ended: a line under the number of its effect, so that an operation
    /// can be followed call by call.
    pub(crate) fn step(&mut self, note: &StepNote) {
        self.journal.step(note);
        let StepNote { effect, number, of, step, end, .. } = note;
        let step = format!("{number}/{of} {step}");
        let begun = self.open.get(effect);
        let service = begun.and_then(|begun| begun.service.as_deref());
        let is_loud = begun.is_none_or(|begun| begun.loud);
        let Some(StepEnd { took, failure }) = end else {
            match is_loud {
                true => tracing::info!(%effect, service, step, "step started"),
                false => tracing::debug!(%effect, service, step, "step started"),
            }
            return;
        };
        let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        match failure {
            None if is_loud => tracing::info!(%effect, service, step, took_ms, "step done"),
            None => tracing::debug!(%effect, service, step, took_ms, "step done"),
            Some(error) => tracing::warn!(%effect, service, step, took_ms, %error, "step failed"),
        }
    }
}

impl End {
    fn of(outcome: &Outcome, in_gateway: bool) -> End {
        let why = match outcome {
            Outcome::Plan(report) => report
                .failure
                .as_ref()
                .map(|failure| format!("{failure} (steps done: {})", report.done.len())),
            Outcome::Locations { failure, .. } => failure.as_ref().map(ToString::to_string),
            Outcome::Listed { result: Err(failure), .. }
                if in_gateway && failure.class == FailureClass::NotFound =>
            {
                return End::Nothing(format!("nothing to list: {failure}"));
            }
            Outcome::Listed { result, .. } => result.as_ref().err().map(ToString::to_string),
            // An object that has gone needs nothing any more, and the watch will say so.
            Outcome::Kube(KubeOutcome::Done { .. } | KubeOutcome::Gone)
            | Outcome::Existence(Existence::Gone) => None,
            Outcome::Existence(Existence::Exists) => return End::Nothing("the object exists".into()),
            Outcome::Existence(Existence::Unclear) => Some("not known whether the object exists".into()),
            Outcome::Kube(KubeOutcome::Conflict) => Some("conflict: the object has changed".into()),
            Outcome::Kube(KubeOutcome::Refused(why)) => Some(format!("rejected: {why}")),
            Outcome::Kube(KubeOutcome::Unavailable) => Some("the API server did not answer".into()),
        };
        why.map_or(End::Done, End::Failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_model::Failure;

    #[test]
    fn only_a_service_that_is_gone_is_confirmed_to_be() {
        let of = |existence| End::of(&Outcome::Existence(existence), false);
        assert_eq!(of(Existence::Gone), End::Done);
        assert_eq!(of(Existence::Exists), End::Nothing("the object exists".into()));
        assert_eq!(of(Existence::Unclear), End::Failed("not known whether the object exists".into()));
    }

    #[test]
    fn a_list_that_was_not_found_is_never_done_and_no_worry_only_where_there_is_no_gateway_yet() {
        let missing = Failure::of(FailureClass::NotFound, "ResourceNotFound", "there is no such thing");
        let outcome = Outcome::Listed { began: Time::ZERO, result: Err(missing.clone()) };
        assert_eq!(End::of(&outcome, true), End::Nothing(format!("nothing to list: {missing}")));
        assert_eq!(End::of(&outcome, false), End::Failed(missing.to_string()));

        let broken = Failure::of(FailureClass::Transient, "ServerBusy", "later");
        let outcome = Outcome::Listed { began: Time::ZERO, result: Err(broken.clone()) };
        for in_gateway in [true, false] {
            assert_eq!(End::of(&outcome, in_gateway), End::Failed(broken.to_string()));
        }
    }
}
