//! The sentences of explanations: what a state means, what moved a service, and what one can do.

use sluice_engine::Trigger;
use sluice_model::kube::Concern;
use sluice_model::reason::Reason;
use sluice_view::moment::span;
use sluice_view::{Addresses, State, Status, Wait, WaitKind};

/// What a replica says that does not lead.
pub(super) const STANDBY: &str =
    "The replica that answered is on standby: it watches Kubernetes and makes no changes.";

/// The whole in one sentence or two.
pub(super) fn summary(status: &Status, waits_for: &[Wait]) -> String {
    let progress = status.progress();
    let age = span(progress.since.age_seconds);
    let carrier = match status {
        Status::Service(_) => "load balancer",
        Status::Egress(_) => "NAT gateway",
    };
    let begun = match progress.state {
        State::NotStarted if progress.desired => format!("Pending for {age}: no {carrier} yet."),
        State::NotStarted => "Not desired, and no Azure resources are known.".into(),
        State::CreationInProgress => {
            format!("Creating for {age}: {carrier}, public IP and registration.")
        }
        State::Created if progress.parked => {
            format!("Registered for {age}. Updates are suspended; traffic continues.")
        }
        State::Created if progress.trouble => format!("Registered for {age}, not in sync."),
        State::Created if progress.addresses.programmed < progress.addresses.desired => {
            let Addresses { programmed, desired, .. } = progress.addresses;
            format!("Registered for {age}: {programmed} of {desired} addresses are programmed.")
        }
        State::Created if progress.why.is_some() || progress.attempts > 0 => format!("Registered for {age}."),
        State::Created => format!("In sync for {age}."),
        State::UpdateInProgress => {
            format!("Updating for {age}: Azure differs from the desired state. Traffic continues.")
        }
        State::DeletionPending if progress.desired => {
            format!("Deleting for {age}: removing the existing Azure resources.")
        }
        State::DeletionPending => {
            format!("Deleting for {age}: removing addresses from the gateway.")
        }
        State::DeletionInProgress => {
            format!("Deleting for {age}: addresses are removed, deleting the Azure resources.")
        }
        State::Unknown => format!("Unknown state for {age}."),
    };
    let attempts = match progress.attempts {
        0 => String::new(),
        1 => " The last attempt failed.".into(),
        many => format!(" The last {many} attempts failed."),
    };
    let standby = waits_for.iter().any(|wait| wait.kind == WaitKind::Leadership);
    let who =
        if standby { " This view is from a standby; ask the leader for the current state." } else { "" };
    match &progress.why {
        Some(why) => format!("{begun}{attempts} {} ({}): {}{who}", why.reason, why.code, ended(&why.message)),
        None => format!("{begun}{attempts}{who}"),
    }
}

/// A text with a full stop at its end.
pub(super) fn ended(text: &str) -> String {
    let text = text.trim_end();
    if text.ends_with(['.', '!', '?']) { text.into() } else { format!("{text}.") }
}

/// What moved a service.
pub(super) const fn trigger(by: Trigger) -> &'static str {
    match by {
        Trigger::Desired => "desired again",
        Trigger::NoLongerDesired => "no longer desired",
        Trigger::CreationStarted => "creation started",
        Trigger::UpdateStarted => "update started",
        Trigger::FoundInSync => "Azure matches the desired state",
        Trigger::FoundOutOfSync => "Azure differs from the desired state",
        Trigger::FoundRejected => "spec rejected; Azure resources left unchanged",
        Trigger::RejectedUnserved => "spec rejected before the first registration",
        Trigger::SpecChanged => "desired state changed",
        Trigger::DriftFound => "drift confirmed by two listings",
        Trigger::OperationSucceeded => "operation succeeded",
        Trigger::OperationFailed => "operation failed",
        Trigger::OutcomeUnknown => "operation outcome unknown; reading Azure",
        Trigger::RetryDue => "retry due",
        Trigger::AddressesChanged => "addresses changed",
        Trigger::Drained => "last address removed from Azure",
        Trigger::StillMapped => "Azure reports addresses that are still registered",
        Trigger::FullyDeleted => "all Azure resources deleted",
        Trigger::DeletedButDesired => "all Azure resources deleted; desired again",
    }
}

/// What to do about a reason, from the table of reasons; nothing when it needs no action.
pub(super) fn advice(
    reason: Reason,
    concern: Concern,
    is_about_credential: Option<bool>,
) -> Option<&'static str> {
    reason.advice_for(concern, is_about_credential)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_gets_one_full_stop_and_never_two() {
        assert_eq!(ended("no more"), "no more.");
        assert_eq!(ended("no more. "), "no more.");
        assert_eq!(ended("why?"), "why?");
    }

    #[test]
    fn every_advice_is_a_sentence() {
        let all = Reason::ALL.into_iter().flat_map(|it| {
            [Concern::Resources, Concern::Addresses].into_iter().flat_map(move |concern| {
                [None, Some(false), Some(true)].map(|about| advice(it, concern, about))
            })
        });
        for text in all.flatten() {
            assert!(text.ends_with('.') && text.starts_with(char::is_uppercase), "{text}");
        }
    }
}
