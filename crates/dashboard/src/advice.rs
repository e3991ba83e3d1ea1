//! What a reason means for many services at once, and the next step, in plain words.

use crate::findings::Severity;

/// How a reason is told.
pub(crate) struct Telling {
    /// The reason's fixed word.
    pub(crate) reason: &'static str,
    pub(crate) severity: Severity,
    /// After `1 service`.
    pub(crate) one: &'static str,
    /// After `2 services`.
    pub(crate) many: &'static str,
    pub(crate) next_step: &'static str,
}

/// What is said of a reason that is not in the table, because the controller is newer than this page.
const OTHER: Telling = Telling {
    reason: "",
    severity: Severity::Warning,
    one: "is held back",
    many: "are held back",
    next_step: "Open one of them to see why.",
};

const TELLINGS: &[Telling] = &[
    Telling {
        reason: "QuotaExceeded",
        severity: Severity::Trouble,
        one: "waits for quota",
        many: "wait for quota",
        next_step: "Ask for a higher limit of what the message names, or delete what is not needed. They are tried again by themselves, and at once when the Service changes.",
    },
    Telling {
        reason: "Forbidden",
        severity: Severity::Trouble,
        one: "is denied by Azure",
        many: "are denied by Azure",
        next_step: "Read the message. If the credential is not accepted, renew or correct it; otherwise grant the permission that it names, or lift the lock or policy. `sluice doctor` tests both.",
    },
    Telling {
        reason: "InternalError",
        severity: Severity::Trouble,
        one: "is set aside because of a bug in Sluice",
        many: "are set aside because of a bug in Sluice",
        next_step: "Nothing was done for them, and the others are not affected. Please report it with the log.",
    },
    Telling {
        reason: "Conflict",
        severity: Severity::Trouble,
        one: "is blocked by a resource that is not ours",
        many: "are blocked by resources that are not ours",
        next_step: "Rename or remove what stands in the way, or claim it with `sluice adopt`.",
    },
    Telling {
        reason: "KubernetesRefused",
        severity: Severity::Trouble,
        one: "waits because Kubernetes refuses our write",
        many: "wait because Kubernetes refuses our writes",
        next_step: "Look for a webhook or a missing permission; the message names it.",
    },
    Telling {
        reason: "Refused",
        severity: Severity::Trouble,
        one: "is refused by Azure",
        many: "are refused by Azure",
        next_step: "Read what Azure answered. If it makes no sense, report it with the correlation id in the log.",
    },
    Telling {
        reason: "GatewayUnavailable",
        severity: Severity::Trouble,
        one: "waits for the service gateway",
        many: "wait for the service gateway",
        next_step: "Run `sluice doctor`: it says whether the gateway is missing, not attached, or another cluster's.",
    },
    Telling {
        reason: "InvalidSpec",
        severity: Severity::Trouble,
        one: "asks for what cannot be",
        many: "ask for what cannot be",
        next_step: "Change the Service or pod as the message says; nothing is tried before that.",
    },
    Telling {
        reason: "PortUnresolved",
        severity: Severity::Warning,
        one: "has a named port that cannot be resolved",
        many: "have named ports that cannot be resolved",
        next_step: "Give all ready pods a container port of the name that the targetPort asks for.",
    },
    Telling {
        reason: "AzureUnavailable",
        severity: Severity::Warning,
        one: "waits for Azure, which does not answer, answers with errors, or has not finished",
        many: "wait for Azure, which does not answer, answers with errors, or has not finished",
        next_step: "Look at Azure's status and at the network. They are tried again for ever, and need no restart.",
    },
    Telling {
        reason: "Draining",
        severity: Severity::Warning,
        one: "cannot be deleted because addresses in Azure still refer to it",
        many: "cannot be deleted because addresses in Azure still refer to them",
        next_step: "Open it to see which addresses. They are removed first, and nothing is deleted before.",
    },
    Telling {
        reason: "Provisioning",
        severity: Severity::Warning,
        one: "has been in creation for over 5 minutes",
        many: "have been in creation for over 5 minutes",
        next_step: "Open one to see what it waits for.",
    },
    Telling {
        reason: "Updating",
        severity: Severity::Warning,
        one: "has differed from what is wanted for over 5 minutes",
        many: "have differed from what is wanted for over 5 minutes",
        next_step: "Traffic goes on meanwhile. Open one to see what it waits for.",
    },
    Telling {
        reason: "Deleting",
        severity: Severity::Warning,
        one: "has been in deletion for over 5 minutes",
        many: "have been in deletion for over 5 minutes",
        next_step: "Open one to see what it waits for.",
    },
    Telling {
        reason: "Throttled",
        severity: Severity::Note,
        one: "waits because Azure asked for a pause or the call budget is used up",
        many: "wait because Azure asked for a pause or the call budget is used up",
        next_step: "Nothing has to be done; it goes on by itself.",
    },
];

/// How a reason is told.
pub(crate) fn telling(reason: &str) -> &'static Telling {
    TELLINGS.iter().find(|telling| telling.reason == reason).unwrap_or(&OTHER)
}

#[cfg(test)]
mod tests {
    use sluice_model::reason::Reason;

    use super::*;

    #[test]
    fn every_reason_that_can_hold_something_back_is_told_in_its_own_words() {
        for reason in Reason::ALL {
            let is_ordinary = matches!(
                reason,
                // The brake is told once for all.
                Reason::Provisioned | Reason::MassDeletionHeld
            );
            assert_eq!(telling(reason.word()).reason.is_empty(), is_ordinary, "{reason}");
        }
    }

    #[test]
    fn every_next_step_is_a_sentence() {
        for telling in TELLINGS {
            let step = telling.next_step;
            assert!(step.ends_with('.') && step.starts_with(char::is_uppercase), "{step}");
        }
    }
}
