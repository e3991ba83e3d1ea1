//! What a reason means for many services at once, and the next step.
//!
//! The texts are those of the table of reasons in `sluice-model`; a test compares them.

use crate::findings::Severity;

/// What is said of a reason.
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

/// For a reason that is not in the table, because the controller is newer than this page.
const OTHER: Telling = Telling {
    reason: "",
    severity: Severity::Warning,
    one: "in trouble",
    many: "in trouble",
    next_step: "Open one to see why.",
};

/// For normal work that lasts.
const OPEN_ONE: &str = "Open one to see what it waits for.";

const TELLINGS: &[Telling] = &[
    Telling {
        reason: "Provisioning",
        severity: Severity::Warning,
        one: "in creation for over 5 min",
        many: "in creation for over 5 min",
        next_step: OPEN_ONE,
    },
    Telling {
        reason: "Updating",
        severity: Severity::Warning,
        one: "different from the desired state for over 5 min",
        many: "different from the desired state for over 5 min",
        next_step: OPEN_ONE,
    },
    Telling {
        reason: "Draining",
        severity: Severity::Warning,
        one: "waiting for addresses to be removed before deletion",
        many: "waiting for addresses to be removed before deletion",
        next_step: "Run `sluice status --trouble` if the number of addresses does not fall.",
    },
    Telling {
        reason: "Deleting",
        severity: Severity::Warning,
        one: "in deletion for over 5 min",
        many: "in deletion for over 5 min",
        next_step: OPEN_ONE,
    },
    Telling {
        reason: "PortUnresolved",
        severity: Severity::Warning,
        one: "with an unresolved named port",
        many: "with an unresolved named port",
        next_step: "Define the port name with the same number on all ready pods, or use a number as `targetPort`.",
    },
    Telling {
        reason: "Throttled",
        severity: Severity::Note,
        one: "delayed by throttling or the call budget",
        many: "delayed by throttling or the call budget",
        next_step: "Sluice continues when the pause is over.",
    },
    Telling {
        reason: "QuotaExceeded",
        severity: Severity::Trouble,
        one: "waiting for Azure quota",
        many: "waiting for Azure quota",
        next_step: "Request a higher limit for the quota that Azure names, or delete unused resources. Sluice retries later, or as soon as the Service changes.",
    },
    Telling {
        reason: "Forbidden",
        severity: Severity::Trouble,
        one: "denied by Azure",
        many: "denied by Azure",
        next_step: "Run `sluice doctor` to see whether the credential or a permission is the cause. Then renew the credential, grant the action that Azure names to the identity of Sluice, or remove the lock or policy.",
    },
    Telling {
        reason: "InvalidSpec",
        severity: Severity::Trouble,
        one: "with an unsupported spec",
        many: "with an unsupported spec",
        next_step: "Correct the named field, annotation, label or node, or raise `sluice.egress.max`.",
    },
    Telling {
        reason: "Conflict",
        severity: Severity::Trouble,
        one: "blocked by an unmanaged Azure resource",
        many: "blocked by an unmanaged Azure resource",
        next_step: "Delete the unmanaged resource, or claim it as `sluice explain SGW0011` describes.",
    },
    Telling {
        reason: "Rejected",
        severity: Severity::Trouble,
        one: "rejected by Azure",
        many: "rejected by Azure",
        next_step: "Correct what the error of Azure names. If the request is valid, report it with the correlation ID; `sluice explain SGW0012` says how to get it.",
    },
    Telling {
        reason: "AzureUnavailable",
        severity: Severity::Warning,
        one: "waiting because Azure does not complete a request",
        many: "waiting because Azure does not complete a request",
        next_step: "Check the error of Azure; if it names no cause, check Azure Service Health and the network between the controller and Azure. Sluice retries until it succeeds.",
    },
    Telling {
        reason: "InternalError",
        severity: Severity::Trouble,
        one: "suspended because of a bug in Sluice",
        many: "suspended because of a bug in Sluice",
        next_step: "Report the bug with the output of `sluice explain` and the log.",
    },
    Telling {
        reason: "KubernetesRejected",
        severity: Severity::Trouble,
        one: "waiting because the API server rejects a write",
        many: "waiting because the API server rejects a write",
        next_step: "Exempt the service account of Sluice from the webhook or policy, or apply the ClusterRole again. Sluice retries.",
    },
    Telling {
        reason: "GatewayUnavailable",
        severity: Severity::Trouble,
        one: "waiting for the gateway",
        many: "waiting for the gateway",
        next_step: "Run `sluice doctor` to see what is wrong with the gateway.",
    },
];

/// What is said of a reason.
pub(crate) fn telling(reason: &str) -> &'static Telling {
    TELLINGS.iter().find(|telling| telling.reason == reason).unwrap_or(&OTHER)
}

#[cfg(test)]
mod tests {
    use sluice_model::reason::{Reason, Severity as Grade};

    use super::*;

    #[test]
    fn every_reason_is_told_in_the_words_of_the_table() {
        for reason in Reason::ALL {
            let row = reason.row();
            let telling = telling(row.label);
            // What is in sync is not told, and the mass-deletion guard is told once for all.
            if matches!(reason, Reason::Provisioned | Reason::MassDeletionHeld) {
                assert!(telling.reason.is_empty(), "{reason}");
                continue;
            }
            assert_eq!((telling.one, telling.many), (row.group, row.group), "{reason}");
            let next_step = if row.action == "None." { OPEN_ONE } else { row.action };
            assert_eq!(telling.next_step, next_step.trim_start_matches("None. "), "{reason}");
            let severity = match row.severity {
                Grade::Status | Grade::Warning => Severity::Warning,
                Grade::Note => Severity::Note,
                Grade::Problem => Severity::Trouble,
            };
            assert_eq!(telling.severity, severity, "{reason}");
        }
    }
}
