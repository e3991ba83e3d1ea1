//! The reasons: one row for each, from which conditions, event pages, advice and the index of error pages are made.
//!
//! A new reason is a variant, a row in [`Reason::row`] and a page in `docs/reference/errors/`.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use core::fmt;

use crate::key::ObjectName;
use crate::kube::Concern;

/// A reason, as conditions, events, metrics and explanations show it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Reason {
    /// Its Azure resources are being created.
    Provisioning,
    /// Azure matches the desired state.
    Provisioned,
    /// Its Azure resources are being changed.
    Updating,
    /// Its addresses are being removed before its Azure resources are deleted.
    Draining,
    /// Its Azure resources are being deleted.
    Deleting,
    /// The endpoints do not define the same number for a named port.
    PortUnresolved,
    /// Azure answered 429, or the call budget is used up.
    Throttled,
    /// A quota of the subscription is used up.
    QuotaExceeded,
    /// Azure does not accept the credential, or a role, lock or policy denies the request.
    Forbidden,
    /// A Service or pod uses what Sluice does not support.
    InvalidSpec,
    /// An unmanaged Azure resource has the required name, or blocks a deletion.
    Conflict,
    /// Azure rejected a request, and no other reason fits.
    Rejected,
    /// Azure does not answer, answers with errors, or does not complete an operation.
    AzureUnavailable,
    /// A bug: an invariant check failed.
    InternalError,
    /// The API server rejects a write, or does not answer it.
    KubernetesRejected,
    /// The mass-deletion guard holds a deletion.
    MassDeletionHeld,
    /// The gateway or its subnet cannot be used.
    GatewayUnavailable,
}

/// How bad a reason is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Severity {
    /// Normal work; trouble only if it lasts.
    Status,
    /// A delay that ends without a change by a person.
    Note,
    /// A failure that can end without a change by a person.
    Warning,
    /// A failure that a person has to resolve.
    Problem,
}

/// Everything that is said about a reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row {
    /// The fixed word: `reason` of conditions and events, and the label of metrics.
    pub label: &'static str,
    /// The code, for which `sluice explain CODE` prints a page. A code is never given to another reason.
    pub code: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// What it means, where no detail is known: a sentence, and the first one of its page.
    pub meaning: &'static str,
    /// What happened, with `{}` for the detail; no final period. [`Reason::summary`] fills it in.
    pub specific: &'static str,
    /// What several gateway services have in common, after `3 services`; no final period.
    pub group: &'static str,
    /// What does not work meanwhile, and what does.
    pub impact: &'static str,
    /// What to do: an imperative sentence, or `None.`
    pub action: &'static str,
}

impl Reason {
    /// Every reason, for tables and tests.
    pub const ALL: [Reason; 17] = [
        Reason::Provisioning,
        Reason::Provisioned,
        Reason::Updating,
        Reason::Draining,
        Reason::Deleting,
        Reason::PortUnresolved,
        Reason::Throttled,
        Reason::QuotaExceeded,
        Reason::Forbidden,
        Reason::InvalidSpec,
        Reason::Conflict,
        Reason::Rejected,
        Reason::AzureUnavailable,
        Reason::InternalError,
        Reason::KubernetesRejected,
        Reason::MassDeletionHeld,
        Reason::GatewayUnavailable,
    ];

    /// Its row.
    pub const fn row(self) -> &'static Row {
        match self {
            Reason::Provisioning => &Row {
                label: "Provisioning",
                code: "SGW0001",
                severity: Severity::Status,
                meaning: "The Azure resources are being created.",
                specific: "Creating Azure resources: {}",
                group: "in creation for over 5 min",
                impact: "The Service has no public IP yet, or the egress has no NAT gateway yet. Addresses of pods are buffered.",
                action: "None.",
            },
            Reason::Provisioned => &Row {
                label: "Provisioned",
                code: "SGW0002",
                severity: Severity::Status,
                meaning: "The Azure resources match the desired state.",
                specific: "{}",
                group: "in sync",
                impact: "None.",
                action: "None.",
            },
            Reason::Updating => &Row {
                label: "Updating",
                code: "SGW0003",
                severity: Severity::Status,
                meaning: "The Azure resources are being changed.",
                specific: "Updating Azure resources: {}",
                group: "different from the desired state for over 5 min",
                impact: "Traffic continues with the last configuration.",
                action: "None.",
            },
            Reason::Draining => &Row {
                label: "Draining",
                code: "SGW0004",
                severity: Severity::Status,
                meaning: "The addresses are being removed before the Azure resources are deleted.",
                specific: "{}",
                group: "waiting for addresses to be removed before deletion",
                impact: "No Azure resource is deleted before its last address is removed.",
                action: "Run `sluice status --trouble` if the number of addresses does not fall.",
            },
            Reason::Deleting => &Row {
                label: "Deleting",
                code: "SGW0005",
                severity: Severity::Status,
                meaning: "The Azure resources are being deleted.",
                specific: "Deleting Azure resources: {}",
                group: "in deletion for over 5 min",
                impact: "The Service or egress no longer carries traffic.",
                action: "None.",
            },
            Reason::PortUnresolved => &Row {
                label: "PortUnresolved",
                code: "SGW0006",
                severity: Severity::Warning,
                meaning: "The ready endpoints of the Service do not define the same number for a named `targetPort`.",
                specific: "{}",
                group: "with an unresolved named port",
                impact: "A new load balancer is not created. A live load balancer keeps the last resolved port.",
                action: "Define the port name with the same number on all ready pods, or use a number as `targetPort`.",
            },
            Reason::Throttled => &Row {
                label: "Throttled",
                code: "SGW0007",
                severity: Severity::Note,
                meaning: "Azure throttles calls (429), or Sluice has used up its own call budget.",
                specific: "Throttled: {}",
                group: "delayed by throttling or the call budget",
                impact: "Changes are delayed. Existing traffic is not affected.",
                action: "None. Sluice continues when the pause is over.",
            },
            Reason::QuotaExceeded => &Row {
                label: "QuotaExceeded",
                code: "SGW0008",
                severity: Severity::Problem,
                meaning: "Azure did not create a resource because a quota of the subscription is used up.",
                specific: "Azure quota used up: {}",
                group: "waiting for Azure quota",
                impact: "A new Service gets no public IP, or a new egress gets no NAT gateway. Existing Services and egresses keep working.",
                action: "Request a higher limit for the quota that Azure names, or delete unused resources. Sluice retries later, or as soon as the Service changes.",
            },
            Reason::Forbidden => &Row {
                label: "Forbidden",
                code: "SGW0009",
                severity: Severity::Problem,
                meaning: "Azure did not accept the credential, or a role, lock, policy or subscription setting denies the request.",
                specific: "Azure denied the request: {}",
                group: "denied by Azure",
                impact: "The change is not made. Existing load balancers and NAT gateways keep working.",
                action: "Run `sluice doctor` to see whether the credential or a permission is the cause. Then renew the credential, grant the action that Azure names to the identity of Sluice, or remove the lock or policy.",
            },
            Reason::InvalidSpec => &Row {
                label: "InvalidSpec",
                code: "SGW0010",
                severity: Severity::Problem,
                meaning: "A Service or pod has a field, annotation or label that Sluice does not support, or a node has no usable IP.",
                specific: "{}",
                group: "with an unsupported spec",
                impact: "A new Service gets no load balancer, and a new egress gets no NAT gateway. A live Service keeps its last configuration.",
                action: "Correct the named field, annotation, label or node, or raise `sluice.egress.max`.",
            },
            Reason::Conflict => &Row {
                label: "Conflict",
                code: "SGW0011",
                severity: Severity::Problem,
                meaning: "An unmanaged Azure resource has the required name, or blocks the deletion of a Service.",
                specific: "{}",
                group: "blocked by an unmanaged Azure resource",
                impact: "Sluice does not change the unmanaged resource. Until the conflict is resolved, the Service or egress is neither updated nor deleted.",
                action: "Delete the unmanaged resource, or claim it as `sluice explain SGW0011` describes.",
            },
            Reason::Rejected => &Row {
                label: "Rejected",
                code: "SGW0012",
                severity: Severity::Problem,
                meaning: "Azure rejected the same request twice (400, 413 or 422), or rejects some addresses.",
                specific: "Azure rejected the request: {}",
                group: "rejected by Azure",
                impact: "The change is not made. The last configuration stays. Rejected addresses get no traffic.",
                action: "Correct what the error of Azure names. If the request is valid, report it with the correlation ID; `sluice explain SGW0012` says how to get it.",
            },
            Reason::AzureUnavailable => &Row {
                label: "AzureUnavailable",
                code: "SGW0013",
                severity: Severity::Warning,
                meaning: "Azure does not answer, answers with errors, or does not complete an operation.",
                specific: "Azure did not complete the request: {}",
                group: "waiting because Azure does not complete a request",
                impact: "Changes are delayed. Existing load balancers and NAT gateways keep working.",
                action: "Check the error of Azure; if it names no cause, check Azure Service Health and the network between the controller and Azure. Sluice retries until it succeeds.",
            },
            Reason::InternalError => &Row {
                label: "InternalError",
                code: "SGW0014",
                severity: Severity::Problem,
                meaning: "A bug in Sluice: an invariant check failed.",
                specific: "Internal error: an invariant check failed: {}",
                group: "suspended because of a bug in Sluice",
                impact: "Sluice makes no change for this gateway service. All others are processed as usual.",
                action: "Report the bug with the output of `sluice explain` and the log.",
            },
            Reason::KubernetesRejected => &Row {
                label: "KubernetesRejected",
                code: "SGW0015",
                severity: Severity::Problem,
                meaning: "The API server rejects or does not answer a write to the finalizers or the status of a Service.",
                specific: "The API server rejected a write: {}",
                group: "waiting because the API server rejects a write",
                impact: "Traffic is not affected. The finalizer, the public IP or the conditions can be missing or out of date.",
                action: "Exempt the service account of Sluice from the webhook or policy, or apply the ClusterRole again. Sluice retries.",
            },
            Reason::MassDeletionHeld => &Row {
                label: "MassDeletionHeld",
                code: "SGW0016",
                severity: Severity::Problem,
                meaning: "The mass-deletion guard holds the deletion of many gateway services that no Kubernetes object needs any more.",
                specific: "{}",
                group: "held by the mass-deletion guard",
                impact: "The held gateway services are not deleted and keep working. Other deletions continue.",
                action: "Review `sluice plan`. If the deletions are intended, run `sluice allow-deletion`.",
            },
            Reason::GatewayUnavailable => &Row {
                label: "GatewayUnavailable",
                code: "SGW0017",
                severity: Severity::Problem,
                meaning: "The gateway or its subnet is missing, not attached, owned by another cluster, or cannot be created.",
                specific: "{}",
                group: "waiting for the gateway",
                impact: "Sluice makes no change for any gateway service. Existing resources keep their configuration.",
                action: "Run `sluice doctor` to see what is wrong with the gateway.",
            },
        }
    }

    /// The word.
    pub const fn word(self) -> &'static str {
        self.row().label
    }

    /// The reason with this word. Conditions that 0.1 wrote have two older words.
    pub fn from_word(word: &str) -> Option<Reason> {
        match word {
            "Refused" => Some(Reason::Rejected),
            "KubernetesRefused" => Some(Reason::KubernetesRejected),
            _ => Reason::ALL.into_iter().find(|reason| reason.word() == word),
        }
    }

    /// The code, for which `sluice explain` has a page.
    pub const fn code(self) -> &'static str {
        self.row().code
    }

    /// What happened: a sentence with the detail, or the meaning where no detail is known.
    pub fn summary(self, detail: Option<&str>) -> String {
        let row = self.row();
        match detail.map(str::trim_end).filter(|detail| !detail.is_empty()) {
            Some(detail) => ended(&row.specific.replacen("{}", detail, 1)),
            None => row.meaning.to_owned(),
        }
    }

    /// What to do about it; none if there is nothing to do.
    pub fn advice(self) -> Option<&'static str> {
        self.advice_for(Concern::Resources, None)
    }

    /// The same, where more is known: about addresses whose node has no IP, and whether the credential or a permission
    /// is the cause of a denial.
    pub fn advice_for(self, concern: Concern, is_about_credential: Option<bool>) -> Option<&'static str> {
        match (self, concern, is_about_credential) {
            (Reason::Forbidden, _, Some(true)) => Some(RENEW_CREDENTIAL),
            (Reason::Forbidden, _, Some(false)) => Some(GRANT_ACTION),
            (Reason::InvalidSpec, Concern::Addresses, _) => Some(CORRECT_NODE),
            _ => Some(self.row().action).filter(|action| !action.starts_with("None.")),
        }
    }

    /// The message of a condition: what is concerned, what happened, what to do, and the commands that show more. A detail
    /// is cut so that the rest stays whole.
    pub fn message(self, concern: Concern, service: Option<&ObjectName>, detail: Option<&str>) -> String {
        let concerned = concern.sentence().map_or_else(String::new, |sentence| format!("{sentence} "));
        let mut steps = self.steps(concern, service, false);
        let others = concerned.len() + steps.len() + self.row().specific.len().max(NO_NODE_IP.len() + 1);
        let room = MESSAGE_MAX.saturating_sub(others);
        if detail.is_some_and(|detail| detail.len() <= room && self.says_what_to_do(concern, detail)) {
            steps = self.steps(concern, service, true);
        }
        let detail = detail.map(|detail| cut(detail, room));
        let what = match ((self, concern), detail) {
            ((Reason::InvalidSpec, Concern::Addresses), None) => NO_NODE_IP.to_owned(),
            ((Reason::InvalidSpec, Concern::Addresses), Some(detail)) => {
                format!("{NO_NODE_IP} {}", ended(&detail))
            }
            (_, detail) => self.summary(detail.as_deref()),
        };
        format!("{concerned}{what}{steps}")
    }

    /// What to do and where to read more, after the sentence about what happened.
    fn steps(self, concern: Concern, service: Option<&ObjectName>, is_said: bool) -> String {
        let advice = self.advice_for(concern, None).filter(|_| self.row().severity != Severity::Status);
        let Some(advice) = advice else { return String::new() };
        let code = self.code();
        let mut steps = if is_said { String::new() } else { format!(" {advice}") };
        let page = match steps.contains(code) {
            true => String::new(),
            false => format!("`sluice explain {code}`"),
        };
        let and = if page.is_empty() { "" } else { " and " };
        let details = service
            .map(|service| format!(" Details: `sluice explain service/{service}`{and}{page}."))
            .filter(|details| STEPS_MAX >= steps.len() + details.len());
        match details {
            Some(details) => steps.push_str(&details),
            None if page.is_empty() => {}
            None => steps.push_str(&format!(" See {page}.")),
        }
        steps
    }

    /// Whether a detail says what to do. Those of Sluice do; those of Azure, of endpoints and of nodes do not, unless they
    /// name a command.
    fn says_what_to_do(self, concern: Concern, detail: &str) -> bool {
        let is_of_others = matches!(self, Reason::PortUnresolved | Reason::GatewayUnavailable);
        let is_of_node = self == Reason::InvalidSpec && concern == Concern::Addresses;
        self.row().specific == "{}" && !is_of_others && !is_of_node || names_a_command(detail)
    }

    /// The note of an event about a failure: what happened, and the first step; no final period.
    pub fn note(self, detail: &str, is_about_credential: bool) -> String {
        let advice = self
            .advice_for(Concern::Resources, Some(is_about_credential))
            .filter(|_| !self.says_what_to_do(Concern::Resources, detail));
        let summary = self.summary(Some(detail));
        let note = match advice.and_then(|advice| advice.split(". ").next()) {
            Some(step) => format!("{summary} {step}"),
            None => summary,
        };
        note.trim_end_matches('.').to_owned()
    }

    /// Whether a condition of a Service can have it. A rejected status write cannot report itself in the status, so
    /// that is only an event.
    pub const fn stands_in_conditions(self) -> bool {
        !matches!(self, Reason::KubernetesRejected)
    }
}

/// `Forbidden`, where Azure does not accept the credential itself.
const RENEW_CREDENTIAL: &str = "Renew or correct the credential: check that it has not expired, and that its tenant and audience are those of the subscription. Run `sluice doctor` to test it.";

/// `Forbidden`, where the credential is accepted.
const GRANT_ACTION: &str = "Grant the action that Azure names to the identity of Sluice, or remove the lock or policy. Run `sluice doctor` to check the permissions.";

/// `InvalidSpec` of addresses: not the Service has to be changed.
const CORRECT_NODE: &str = "Correct the Node or the EndpointSlice. Other addresses are not affected.";

/// The meaning of `InvalidSpec` for addresses.
const NO_NODE_IP: &str = "Their nodes are unknown or have no InternalIP of their IP family.";

/// The bytes that the message of a condition may have: 1 KiB with the sentence about the published IP.
const MESSAGE_MAX: usize = 960;

/// The bytes of it that remain for what to do and where to read more.
const STEPS_MAX: usize = 600;

/// The verbs with which an action may begin.
const VERBS: [&str; 23] = [
    "Add", "Apply", "Attach", "Change", "Check", "Correct", "Create", "Define", "Delete", "Detach", "Exempt",
    "Grant", "Look", "Raise", "Remove", "Renew", "Report", "Request", "Review", "Run", "Set", "Update",
    "Use",
];

/// Whether a text says what to do: it has a command in backticks, or a sentence or clause that begins with a verb.
pub fn names_an_action(text: &str) -> bool {
    let is_action = |clause: &str| {
        let word = clause.trim_start().split([' ', '.']).next().unwrap_or_default();
        VERBS.iter().any(|verb| verb.eq_ignore_ascii_case(word))
    };
    names_a_command(text) || [". ", "; ", "… "].iter().any(|end| text.split(end).any(is_action))
}

/// Whether a text has a command in backticks.
fn names_a_command(text: &str) -> bool {
    let is_command = |span: &str| ["sluice ", "az ", "kubectl "].iter().any(|start| span.starts_with(start));
    text.split('`').skip(1).step_by(2).any(is_command)
}

/// A text that is not longer than that.
pub fn cut(text: &str, bytes: usize) -> String {
    match text.len() <= bytes {
        true => text.to_owned(),
        false => format!("{}…", &text[..text.floor_char_boundary(bytes.saturating_sub('…'.len_utf8()))]),
    }
}

/// A text with a period at its end.
fn ended(text: &str) -> String {
    if text.ends_with(['.', '!', '?', '…']) { text.to_owned() } else { format!("{text}.") }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;

    use super::*;

    const REFERENCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference");

    fn is_sentence(text: &str) -> bool {
        text.starts_with(char::is_uppercase) && text.ends_with('.') && !text.contains("  ")
    }

    #[test]
    fn every_reason_has_a_row_with_all_fields() {
        for reason in Reason::ALL {
            let row = reason.row();
            assert_eq!(row.label, format!("{reason:?}"));
            for text in [row.meaning, row.impact, row.action] {
                assert!(is_sentence(text), "{reason}: {text}");
            }
            assert_eq!(row.specific.matches("{}").count(), 1, "{reason}");
            assert!(!row.specific.ends_with('.') && !row.group.ends_with('.'), "{reason}");
            assert!(!row.group.is_empty(), "{reason}");
            for action in [row.action, RENEW_CREDENTIAL, GRANT_ACTION, CORRECT_NODE] {
                let verb = action.split([' ', '.']).next().unwrap_or_default();
                assert!(verb == "None" || VERBS.contains(&verb), "{reason}: {action}");
            }
            if row.severity >= Severity::Warning {
                assert!(reason.advice().is_some(), "{reason} needs an action");
            }
        }
    }

    #[test]
    fn codes_and_labels_are_unique() {
        let codes: BTreeSet<&str> = Reason::ALL.iter().map(|reason| reason.code()).collect();
        let labels: BTreeSet<&str> = Reason::ALL.iter().map(|reason| reason.word()).collect();
        assert_eq!((codes.len(), labels.len()), (Reason::ALL.len(), Reason::ALL.len()));
        assert!(codes.iter().all(|code| code.len() == 7 && code.starts_with("SGW0")), "{codes:?}");
    }

    #[test]
    fn a_summary_has_the_detail_and_one_period() {
        let quota = Reason::QuotaExceeded;
        assert_eq!(
            quota.summary(Some("LimitReached: no more. ")),
            "Azure quota used up: LimitReached: no more."
        );
        assert_eq!(Reason::InvalidSpec.summary(Some("Port 0 is invalid")), "Port 0 is invalid.");
        assert_eq!(quota.summary(Some(" ")), quota.row().meaning);
        // A detail of Azure may have braces of its own.
        assert_eq!(quota.summary(Some("{} {x}")), "Azure quota used up: {} {x}.");
    }

    #[test]
    fn a_message_has_the_concern_the_action_and_the_commands() {
        let of = |reason: Reason, concern| reason.message(concern, None, None);
        assert!(of(Reason::QuotaExceeded, Concern::Resources).ends_with(" See `sluice explain SGW0008`."));
        assert_eq!(of(Reason::Provisioned, Concern::Resources), Reason::Provisioned.row().meaning);
        for reason in Reason::ALL {
            for concern in Concern::ALL {
                let message = of(reason, concern);
                assert!(is_sentence(&message) && message.len() <= MESSAGE_MAX, "{reason}: {message}");
                assert!(message.starts_with(concern.sentence().unwrap_or_default()), "{message}");
                let has_action = reason.row().severity >= Severity::Warning;
                assert_eq!(
                    message.matches("`sluice explain SGW").count(),
                    usize::from(has_action),
                    "{message}"
                );
            }
        }
        let web = ObjectName::new("shop", "web");
        let message = Reason::QuotaExceeded.message(Concern::Resources, Some(&web), None);
        let commands = " Details: `sluice explain service/shop/web` and `sluice explain SGW0008`.";
        assert!(message.ends_with(commands), "{message}");
        assert!(!Reason::Provisioned.message(Concern::Resources, Some(&web), None).contains('`'));
    }

    #[test]
    fn a_message_has_the_detail_and_what_to_do_once() {
        let web = ObjectName::new("shop", "web");
        let of = |reason: Reason, concern, detail| reason.message(concern, Some(&web), Some(detail));
        let quota = of(Reason::QuotaExceeded, Concern::Resources, "LimitReached: no more.");
        assert!(quota.starts_with("Azure quota used up: LimitReached: no more. Request a higher"), "{quota}");
        let invalid = of(Reason::InvalidSpec, Concern::Resources, "Port 0 is invalid; set another");
        assert_eq!(
            invalid,
            "Port 0 is invalid; set another. Details: `sluice explain service/shop/web` and `sluice explain SGW0010`."
        );
        let node = of(Reason::InvalidSpec, Concern::Addresses, "Node n1 is unknown");
        let both = format!("{} {NO_NODE_IP} Node n1 is unknown. ", Concern::Addresses.sentence().unwrap());
        assert!(node.starts_with(&both) && node.contains(CORRECT_NODE), "{node}");
    }

    #[test]
    fn a_message_stays_within_its_limit() {
        let name = |length| ObjectName::new("n".repeat(length), "s".repeat(length));
        for reason in Reason::ALL {
            for concern in Concern::ALL {
                // Names of Kubernetes have at most 63 characters here; the limit must hold whatever comes.
                let message = reason.message(concern, Some(&name(63)), None);
                assert!(message.len() <= MESSAGE_MAX, "{message}");
                assert_eq!(message.contains("Details: "), reason.row().severity >= Severity::Warning);
                // A command that is cut off says nothing about what to do.
                let detail = format!("{}`az tag update`", "é".repeat(2_000));
                let message = reason.message(concern, Some(&name(63)), Some(&detail));
                let advice = reason.advice_for(concern, None).unwrap_or_default();
                assert!(message.contains(advice) || reason.row().severity < Severity::Warning, "{message}");
                assert!(message.len() <= MESSAGE_MAX && message.contains("é…"), "{message}");
                assert_eq!(message.contains("Details: "), reason.row().severity >= Severity::Warning);
                let message = reason.message(concern, Some(&name(500)), None);
                assert!(message.len() <= MESSAGE_MAX && !message.contains("Details: "), "{message}");
            }
        }
    }

    #[test]
    fn a_condition_of_a_failure_and_its_event_name_an_action() {
        let web = ObjectName::new("shop", "web");
        for reason in Reason::ALL.into_iter().filter(|reason| reason.row().severity >= Severity::Warning) {
            // Where the detail is all that is said, the engine's tests check that it names an action.
            let from_azure = "LimitReached: no more".to_owned() + &" of it".repeat(500);
            let detail_about =
                |concern| Some(&*from_azure).filter(|detail| !reason.says_what_to_do(concern, detail));
            for concern in Concern::ALL {
                let detail = detail_about(concern);
                for message in [None, detail].map(|detail| reason.message(concern, Some(&web), detail)) {
                    let (said, _) = message.split_once(" Details: ").unwrap();
                    assert!(names_an_action(said) && message.len() <= MESSAGE_MAX, "{reason}: {message}");
                }
            }
            let detail = detail_about(Concern::Resources);
            for note in detail.iter().flat_map(|detail| [true, false].map(|it| reason.note(detail, it))) {
                assert!(names_an_action(&note), "{reason}: {note}");
            }
        }
    }

    #[test]
    fn a_command_or_a_verb_at_the_start_of_a_clause_is_an_action() {
        for text in ["Run it", "A is B. Delete it", "Sluice retries; check 10.0.0.4", "A; see `az login`"] {
            assert!(names_an_action(text), "{text}");
        }
        for text in
            ["", "None.", "Sluice retries; it may run", "See `targetPort`", "Runs are rare", "a sluice b"]
        {
            assert!(!names_an_action(text), "{text}");
        }
    }

    #[test]
    fn a_note_has_the_first_step_and_no_period() {
        assert_eq!(
            Reason::QuotaExceeded.note("LimitReached: no more.", false),
            "Azure quota used up: LimitReached: no more. Request a higher limit for the quota that Azure names, or delete unused resources"
        );
        assert_eq!(Reason::Conflict.note("It exists. Delete it", false), "It exists. Delete it");
        let denied = Reason::Forbidden.note("Http401: no", true);
        assert!(denied.contains("no. Renew or correct the credential"), "{denied}");
        let denied = Reason::Forbidden.note("Http403: no", false);
        assert!(denied.contains("no. Grant the action"), "{denied}");
        // Azure may use backticks, too.
        assert!(Reason::Rejected.note("Http400: `x` is invalid", false).contains(". Correct what"));
        let told = "tagging x failed. To tag it yourself, run `az tag update`";
        assert_eq!(Reason::Forbidden.note(told, false), format!("Azure denied the request: {told}"));
    }

    #[test]
    fn every_page_begins_with_the_meaning_and_the_index_has_it() {
        let read = |page: &str| std::fs::read_to_string(format!("{REFERENCE}/{page}")).unwrap_or_default();
        let (index, conditions) = (read("error-codes.md"), read("conditions.md"));
        let (statuses, problems) = index.split_once("## Problems").unwrap_or_default();
        for reason in Reason::ALL {
            let Row { label, code, severity, meaning, .. } = *reason.row();
            let is_status = severity == Severity::Status;
            let file = if is_status { "conditions.md".to_owned() } else { format!("errors/{code}.md") };
            let (part, anchor) = if is_status {
                let section = format!("\n### {code}: {label}\n\n{meaning}\n");
                assert!(conditions.contains(&section), "docs/reference/conditions.md lacks {section}");
                (statuses, format!("#{}", format!("{code}-{label}").to_lowercase()))
            } else {
                let head = format!("# {code}: {label}\n\n## Meaning\n\n{meaning}\n");
                let page = read(&format!("errors/{code}.md"));
                assert!(
                    page.starts_with(&head),
                    "docs/reference/errors/{code}.md does not begin with {head}"
                );
                (problems, String::new())
            };
            let line = format!("| [{code}]({file}{anchor}) | `{label}` | {meaning} |\n");
            assert!(part.contains(&line), "docs/reference/error-codes.md lacks {line}");
        }
    }
}
