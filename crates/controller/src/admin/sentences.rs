//! The sentences of explanations: what a state means, what moved a service, and what one can do.

use sluice_engine::Trigger;
use sluice_model::kube::Concern;
use sluice_model::reason::Reason;
use sluice_view::moment::span;
use sluice_view::{State, Status, Wait, WaitKind};

/// What a replica says that does not lead.
pub(super) const STANDBY: &str = "The replica that answers is on standby: it watches and does nothing.";

/// The whole in one sentence or two.
pub(super) fn summary(status: &Status, waits_for: &[Wait]) -> String {
    let progress = status.progress();
    let (title, age) = (status.title(), span(progress.since.age_seconds));
    let carrier = match status {
        Status::Service(_) => "load balancer",
        Status::Egress(_) => "NAT gateway",
    };
    let begun = match progress.state {
        State::NotStarted if progress.wanted => format!("{title} has no {carrier} yet, for {age}."),
        State::NotStarted => format!("{title} is not wanted, and nothing of it is known to be in Azure."),
        State::CreationInProgress => format!("The {carrier} of {title} is being made, for {age}."),
        State::Created if progress.parked => {
            format!("{title} is registered and stays as it is, for {age}; traffic goes on.")
        }
        State::Created if progress.trouble => format!("{title} is registered, for {age}, and in trouble."),
        State::Created if waits_for.is_empty() => {
            format!("{title} is registered and as wanted, for {age}. There is nothing to wait for.")
        }
        State::Created => format!("{title} is registered and as wanted, for {age}."),
        State::UpdateInProgress => {
            format!("{title} is live and differs from what is wanted, for {age}; traffic goes on meanwhile.")
        }
        State::DeletionPending if progress.wanted => {
            format!("What was made of {title} is being torn down, for {age}.")
        }
        State::DeletionPending => {
            format!("{title} is on its way out, for {age}: first its addresses are taken off.")
        }
        State::DeletionInProgress => format!("{title} is being deleted, for {age}."),
        State::Unknown => format!("{title} is in a state that this version does not know, for {age}."),
    };
    let attempts = match progress.attempts {
        0 => String::new(),
        1 => " The last attempt failed.".into(),
        many => format!(" The last {many} attempts failed."),
    };
    let standby = waits_for.iter().any(|wait| wait.kind == WaitKind::Leadership);
    let who = if standby { " This is what a standby knows; the leader knows more." } else { "" };
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
        Trigger::Wanted => "it is wanted",
        Trigger::Unwanted => "it is not wanted any more",
        Trigger::CreationStarted => "its creation was begun",
        Trigger::UpdateStarted => "its update was begun",
        Trigger::FoundInSync => "all is in Azure as wanted",
        Trigger::FoundDifferent => "Azure has it other than wanted",
        Trigger::FoundRejected => "its spec is rejected, so it stays as it is",
        Trigger::RejectedUnserved => "its spec was rejected before anybody was served",
        Trigger::SpecChanged => "what is wanted of it changed",
        Trigger::DriftFound => "two listings showed it changed by somebody else",
        Trigger::OperationSucceeded => "its operation succeeded",
        Trigger::OperationFailed => "its operation failed",
        Trigger::OutcomeUnknown => "nobody knows how its operation ended",
        Trigger::RetryDue => "its wait is over",
        Trigger::AddressesChanged => "its addresses changed",
        Trigger::Drained => "its last address has left Azure",
        Trigger::StillMapped => "Azure says that addresses still refer to it",
        Trigger::NothingLeft => "nothing of it is left in Azure",
        Trigger::GoneButWanted => "nothing of it is left in Azure, and it is wanted again",
    }
}

/// What one can do about a reason, and about a credential that Azure does not accept; nothing when it is no trouble.
pub(super) const fn advice(
    reason: Reason,
    concern: Concern,
    is_about_credential: bool,
) -> Option<&'static str> {
    match reason {
        Reason::Forbidden if is_about_credential => Some(
            "Check that the credential has not expired, that its tenant is that of the subscription, and that its token is for this cloud (the audience); `sluice doctor` tests it.",
        ),
        Reason::Provisioning | Reason::Provisioned | Reason::Updating | Reason::Deleting => None,
        Reason::Draining => Some(
            "Nothing has to be done unless it lasts: the addresses that the message names are removed first, and nothing is deleted before.",
        ),
        Reason::PortUnresolved => Some(
            "Give all ready pods of the Service a container port of the name that its targetPort asks for.",
        ),
        Reason::Throttled => Some(
            "Nothing has to be done: it waits for a pause that Azure asked for, or for the call budget, and goes on by itself.",
        ),
        Reason::QuotaExceeded => Some(
            "Raise the quota that the message names, or delete what is not needed; a change of the Service tries again at once.",
        ),
        Reason::Forbidden => {
            Some("Give the identity the permission that the message names, or lift the lock or policy.")
        }
        Reason::InvalidSpec if matches!(concern, Concern::Addresses) => {
            Some("Correct the Node or the EndpointSlice; other addresses do not wait for this.")
        }
        Reason::InvalidSpec => {
            Some("Change the Service or pod as the message says; nothing is tried before that.")
        }
        Reason::Conflict => {
            Some("Rename or remove the resource that stands in the way, or claim it with `sluice adopt`.")
        }
        Reason::Refused => Some(
            "Read what Azure answered; if it makes no sense, report it together with the correlation id in the log.",
        ),
        Reason::AzureUnavailable => Some(
            "Look at Azure's status and at the network; it is tried again for ever, and needs no restart.",
        ),
        Reason::InternalError => Some(
            "This is a bug of Sluice: nothing was done for this object, and the others are not affected. Please report it.",
        ),
        Reason::KubernetesRefused => Some(
            "Look for a webhook or a missing permission that refuses our patch of the Service; the message names it.",
        ),
        Reason::MassDeletionHeld => Some(
            "Compare `sluice plan` with what you expect; if the deletions are meant, run `sluice allow-deletion`.",
        ),
        Reason::GatewayUnavailable => Some(
            "Run `sluice doctor`: it says whether the gateway is missing, not attached, or another cluster's.",
        ),
    }
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
            [Concern::Resources, Concern::Addresses]
                .into_iter()
                .flat_map(move |concern| [advice(it, concern, false), advice(it, concern, true)])
        });
        for text in all.flatten() {
            assert!(text.ends_with('.') && text.starts_with(char::is_uppercase), "{text}");
        }
    }
}
