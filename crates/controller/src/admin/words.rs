//! The engine's records in the words of the views.
//!
//! Every enum of the engine is matched without a catch-all, so that whoever adds a variant is asked
//! for its sentence here.

use sluice_engine::explain::Moment;
use sluice_engine::{Explanation, ServiceView, State, WaitsFor};
use sluice_model::ServiceKey;
use sluice_model::kube::{Concern, Kind};
use sluice_model::plan::Intent;
use sluice_model::reason::Reason;
use sluice_view as view;
use sluice_view::overview::WatchLine;
use sluice_view::{Addresses, EgressStatus, Progress, ServiceStatus, Status, Wait, WaitKind};

use super::almanac::Today;
use super::api::Found;
use super::{done, sentences};

/// What is said of a service whose deletion is held.
const HELD: &str =
    "The mass-deletion guard holds this deletion: too many gateway services would be deleted at once.";

/// One service as people see it.
pub(super) fn status(today: &Today<'_>, seen: &ServiceView) -> Status {
    let progress = progress(today, seen);
    match &seen.key {
        ServiceKey::Inbound(uid) => Status::Service(ServiceStatus {
            namespace: seen.object.as_ref().map(|object| object.namespace.to_string()),
            name: seen.object.as_ref().map(|object| object.name.to_string()),
            uid: uid.to_string(),
            progress,
        }),
        ServiceKey::Outbound(egress) => Status::Egress(EgressStatus {
            name: egress.as_str().into(),
            is_default: egress.is_default(),
            pods: seen.pods as u64,
            progress,
        }),
    }
}

fn progress(today: &Today<'_>, seen: &ServiceView) -> Progress {
    let hold = seen.hold.as_ref();
    let invalid = seen.invalid.as_ref();
    let trouble = seen.trouble.as_ref().map(|it| view::Why::new(it.reason, it.text.as_str()));
    Progress {
        state: state(seen.state),
        since: today.since(seen.since),
        desired: seen.wanted,
        live: seen.live,
        operation: seen.operation.map(|id| id.to_string()),
        attempts: seen.attempts,
        last_attempt: seen.last_attempt.map(|at| today.since(at)),
        next_retry: hold.and_then(|hold| today.due(hold.until)),
        parked: invalid.is_some() || hold.is_some_and(|hold| hold.parked),
        trouble: seen.trouble.is_some(),
        why: trouble.or_else(|| hold.map(|hold| view::Why::new(hold.reason, hold.text.as_str()))),
        last_failure: seen.last_failure.as_ref().map(|failure| view::LastFailure {
            at: today.since(failure.at),
            step: failure.step.into(),
            code: failure.code.to_string(),
            message: failure.text.clone(),
        }),
        public_ip: seen.public_ip,
        addresses: Addresses {
            desired: seen.addresses_wanted.into(),
            buffered: seen.addresses_buffered.into(),
            programmed: seen.addresses_programmed.into(),
            mapped: seen.addresses_mapped.into(),
            unplaceable: seen.addresses_unplaceable.into(),
            quarantined: seen.addresses_quarantined.into(),
        },
        held: seen
            .held
            .as_ref()
            .map(|held| view::Held { name: held.name.clone(), fingerprint: held.fingerprint.to_string() }),
    }
}

/// One service, and why it is where it is.
pub(super) fn explanation(
    today: &Today<'_>,
    found: &Found,
    leads: bool,
    watches: &[WatchLine],
) -> view::Explanation {
    let seen = &found.explanation;
    let mut waits_for: Vec<Wait> = Vec::new();
    if !leads {
        waits_for.push(Wait { kind: WaitKind::Leadership, sentence: sentences::STANDBY.into(), until: None });
    }
    for watch in watches {
        if let Some(trouble) = &watch.trouble {
            let kind = &watch.kind;
            let sentence = format!(
                "The watch on {kind} is failing: {} Changes to {kind} are not processed until the watch recovers.",
                sentences::ended(trouble)
            );
            waits_for.push(Wait { kind: WaitKind::KubernetesLists, sentence, until: None });
        }
    }
    waits_for.extend(seen.waits_for.iter().map(|wait| waits(today, wait)));
    let status = status(today, &seen.view);
    view::Explanation {
        summary: sentences::summary(&status, &waits_for),
        what_to_do: to_do(seen),
        timeline: seen.timeline.iter().map(|(at, moment)| happening(today.since(*at), moment)).collect(),
        plan: found.pages.plan.as_ref().map(|plan| done::operation(today, plan)),
        calls: found.pages.calls.iter().map(|call| done::call(today, call)).collect(),
        events: found.pages.notices.iter().map(|note| done::told(today, note)).collect(),
        status,
        waits_for,
    }
}

/// The advice for everything that is in the way, each once.
fn to_do(seen: &Explanation) -> Vec<String> {
    let trouble = seen.view.trouble.iter().map(|it| (it.reason, it.concern, it.is_about_credential));
    let failed = seen.view.last_failure.as_ref().map(|failure| failure.is_about_credential);
    let held = seen.view.hold.iter().map(|hold| (hold.reason, Concern::Resources, failed));
    let mut reasons: Vec<(Reason, Concern, Option<bool>)> = trouble.chain(held).collect();
    for wait in &seen.waits_for {
        match wait {
            WaitsFor::MassDeletionConsent => {
                reasons.push((Reason::MassDeletionHeld, Concern::Resources, None));
            }
            WaitsFor::Gateway => reasons.push((Reason::GatewayUnavailable, Concern::Resources, None)),
            _ => {}
        }
    }
    let mut advice = Vec::new();
    for (reason, concern, is_about_credential) in reasons {
        if let Some(text) = sentences::advice(reason, concern, is_about_credential)
            && !advice.iter().any(|known: &String| known.starts_with(text))
        {
            let code = reason.code();
            advice.push(match text.contains(code) {
                true => text.to_owned(),
                false => format!("{text} See `sluice explain {code}`."),
            });
        }
    }
    advice
}

fn waits(today: &Today<'_>, wait: &WaitsFor) -> Wait {
    let until = match wait {
        WaitsFor::Retry { at, .. } => today.due(*at),
        WaitsFor::Linger { until } => today.due(*until),
        _ => None,
    };
    let (kind, sentence) = match wait {
        WaitsFor::KubernetesLists(kinds) => {
            let kinds: Vec<&str> = kinds.iter().map(|kind| kind_word(*kind)).collect();
            (
                WaitKind::KubernetesLists,
                format!("Waiting for the first complete list of {} from the API server.", kinds.join(", ")),
            )
        }
        WaitsFor::AzureListing => (
            WaitKind::AzureListing,
            "Waiting for the first complete list of Azure resources; nothing is written before that.".into(),
        ),
        WaitsFor::Gateway => {
            (WaitKind::Gateway, "Waiting for the gateway: the gateway or its subnet is not ready.".into())
        }
        WaitsFor::Finalizer => {
            (WaitKind::Finalizer, "Waiting for the Sluice finalizer on the Service.".into())
        }
        WaitsFor::SpecChange(text) => {
            (WaitKind::SpecChange, format!("Waiting for a spec change: {}", sentences::ended(text)))
        }
        WaitsFor::Operation(id) => (WaitKind::Operation, format!("Operation {id} is in progress.")),
        WaitsFor::Slot => (
            WaitKind::Slot,
            "Waiting for a slot: all slots for operations (`sluice.concurrency`) are in use.".into(),
        ),
        WaitsFor::Retry { reason, .. } => {
            let when = until.as_ref().map_or("after the next change".into(), |due| match due.in_seconds {
                0 => "now".into(),
                seconds => format!("in {}", view::moment::span(seconds)),
            });
            (WaitKind::Retry, format!("Next attempt {when} ({reason})."))
        }
        WaitsFor::Addresses(1) => (
            WaitKind::Addresses,
            "Draining: 1 address is still in Azure; deletion starts when it is removed.".into(),
        ),
        WaitsFor::Addresses(many) => (
            WaitKind::Addresses,
            format!("Draining: {many} addresses are still in Azure; deletion starts when all are removed."),
        ),
        WaitsFor::ConfirmedAbsence => (
            WaitKind::ConfirmedAbsence,
            "Waiting for the API server to confirm that the object is deleted.".into(),
        ),
        WaitsFor::MassDeletionConsent => (WaitKind::MassDeletionConsent, HELD.into()),
        WaitsFor::Linger { .. } => {
            let when = until.as_ref().map_or("is disabled".into(), |due| {
                format!("follows in {} unless a pod uses it again", view::moment::span(due.in_seconds))
            });
            (WaitKind::Linger, format!("No pod uses this egress. Deletion {when}."))
        }
        WaitsFor::KubernetesWrite => (
            WaitKind::KubernetesWrite,
            "Waiting for the API server to accept an update of the object.".into(),
        ),
    };
    Wait { kind, sentence, until }
}

fn happening(at: view::Since, moment: &Moment) -> view::Happening {
    let bad = matches!(moment, Moment::Failed { .. } | Moment::Parked(_) | Moment::Invalid(_));
    let sentence = match moment {
        Moment::Moved { from, to, by } => format!("{from} → {to}: {}", sentences::trigger(*by)),
        Moment::Started { id, intent, steps } => {
            let s = if *steps == 1 { "" } else { "s" };
            format!("operation {id} started: {}, {steps} step{s}", intent_word(*intent))
        }
        Moment::Finished { id } => format!("operation {id} done"),
        Moment::Failed { id, step, code } => format!("operation {id} failed at {step}: {code}"),
        Moment::Parked(reason) => format!("parked: {reason} ({})", reason.code()),
        Moment::Invalid(reason) => format!("not served: {reason} ({})", reason.code()),
        Moment::Published(Some(ip)) => format!("public IP {ip} published"),
        Moment::Published(None) => "public IP removed from the status".into(),
    };
    view::Happening { at, sentence, bad }
}

pub(super) const fn intent_word(intent: Intent) -> &'static str {
    match intent {
        Intent::Provision => "provision",
        Intent::Update => "update",
        Intent::Deprovision => "deprovision",
        Intent::Inspect => "inspect",
        Intent::Adopt => "adopt",
    }
}

/// The state's word.
pub(crate) const fn state(state: State) -> view::State {
    match state {
        State::NotStarted => view::State::NotStarted,
        State::CreationInProgress => view::State::CreationInProgress,
        State::Created => view::State::Created,
        State::UpdateInProgress => view::State::UpdateInProgress,
        State::DeletionPending => view::State::DeletionPending,
        State::DeletionInProgress => view::State::DeletionInProgress,
    }
}

/// What a kind is called in URLs, metrics and sentences.
pub(crate) const fn kind_word(kind: Kind) -> &'static str {
    match kind {
        Kind::Service => "services",
        Kind::Slice => "endpointslices",
        Kind::Node => "nodes",
        Kind::Pod => "pods",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_views_have_the_engines_words_for_states() {
        for known in State::ALL {
            assert_eq!(state(known).word(), known.word());
        }
        assert_eq!(State::ALL.map(state), view::State::ALL);
    }
}
