//! What went wrong, grouped by what one can do next.

use alloc::sync::Arc;
use core::fmt;
use core::time::Duration;

use crate::call::{Answer, ArmError, OperationState, Payload, Reply};

/// Why a call or a step did not succeed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// What one can do next.
    pub class: FailureClass,
    /// The HTTP status; 0 when there was no answer.
    pub status: u16,
    /// Azure's code, or a word of ours when there is none.
    pub code: Arc<str>,
    /// Azure's text.
    pub message: Arc<str>,
    /// How long Azure asked us to wait.
    pub retry_after: Option<Duration>,
}

/// What one can do next.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FailureClass {
    /// Try again a little later.
    Transient,
    /// Wait as long as asked; slows the whole lane and is nobody's fault.
    Throttled,
    /// A quota is used up; only people can help, so look again seldom.
    Quota,
    /// Permission, lock or policy; likewise.
    Forbidden,
    /// Azure does not like the request and nothing explains why.
    Refused,
    /// Addresses are still mapped to the service that should go.
    StillMapped,
    /// Something else uses the resource that should go.
    InUse,
    /// It is not there. Success for a deletion, and an answer for a read.
    NotFound,
    /// Nobody knows whether it happened; look first.
    Unknown,
}

impl FailureClass {
    /// Every class, for tables and tests.
    pub const ALL: [FailureClass; 9] = [
        FailureClass::Transient,
        FailureClass::Throttled,
        FailureClass::Quota,
        FailureClass::Forbidden,
        FailureClass::Refused,
        FailureClass::StillMapped,
        FailureClass::InUse,
        FailureClass::NotFound,
        FailureClass::Unknown,
    ];

    /// A fixed word for metrics and traces.
    pub const fn word(self) -> &'static str {
        match self {
            FailureClass::Transient => "transient",
            FailureClass::Throttled => "throttled",
            FailureClass::Quota => "quota",
            FailureClass::Forbidden => "forbidden",
            FailureClass::Refused => "refused",
            FailureClass::StillMapped => "still-mapped",
            FailureClass::InUse => "in-use",
            FailureClass::NotFound => "not-found",
            FailureClass::Unknown => "unknown",
        }
    }
}

impl Failure {
    /// A failure that Azure did not word.
    pub fn of(class: FailureClass, code: &str, message: &str) -> Failure {
        Failure { class, status: 0, code: code.into(), message: message.into(), retry_after: None }
    }

    /// What a reply says: `None` when it is a success or an operation that still runs.
    ///
    /// An ARM error in the body decides whatever the status, and so does the state inside a poll.
    pub fn in_reply(reply: &Reply) -> Option<Failure> {
        match reply {
            Reply::Answered(answer) => Failure::in_answer(answer),
            Reply::NotSent(why) => Some(Failure::of(FailureClass::Transient, "NotSent", why)),
            Reply::Lost(why) => Some(Failure::of(FailureClass::Unknown, "NoAnswer", why)),
        }
    }

    fn in_answer(answer: &Answer) -> Option<Failure> {
        let failed = |error: &ArmError| Failure {
            class: classify(answer.status, &error.code, &error.message, answer.retry_after),
            status: answer.status,
            code: error.code.clone(),
            message: error.message.clone(),
            retry_after: answer.retry_after.or_else(|| wait_in_text(&error.message)),
        };
        match &answer.payload {
            Payload::Error(error) => Some(failed(error)),
            Payload::Operation(OperationState::Failed(error) | OperationState::Canceled(error)) => {
                let mut failure = failed(error);
                // A failed operation is over and has no status of its own; only a code that says so is final.
                if failure.class == FailureClass::Refused && !is_final_code(&error.code) {
                    failure.class = FailureClass::Transient;
                }
                Some(failure)
            }
            _ if (200..300).contains(&answer.status) => None,
            _ => Some(failed(&ArmError {
                code: alloc::format!("Http{}", answer.status).into(),
                message: "the answer had no ARM error in its body".into(),
            })),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.code, self.class.word(), self.message)
    }
}

/// The class of a refusal: the code decides before the status.
fn classify(status: u16, code: &str, message: &str, retry_after: Option<Duration>) -> FailureClass {
    let is = |words: &[&str]| words.iter().any(|word| code.eq_ignore_ascii_case(word));
    if is(&["AnotherOperationInProgress"]) || code.starts_with("RetryableError") {
        // It may arrive as a 429 with a wait; then it is a wait like any other.
        let waits = retry_after.is_some() || wait_in_text(message).is_some();
        return if status == 429 && waits { FailureClass::Throttled } else { FailureClass::Transient };
    }
    if is(&["InternalServerError", "ServiceUnavailable", "ServerBusy", "OperationTimedOut"]) && status != 429
    {
        return FailureClass::Transient;
    }
    if is(&["QuotaExceeded", "PublicIPCountLimitReached", "MaxPublicIpCountLimitReached"])
        || code.ends_with("LimitReached")
    {
        return FailureClass::Quota;
    }
    if is(&["AuthorizationFailed", "ScopeLocked", "RequestDisallowedByPolicy", "LinkedAuthorizationFailed"]) {
        return FailureClass::Forbidden;
    }
    if is(&["ServiceWithOverlayMappingsCannotBeDeleted"]) {
        return FailureClass::StillMapped;
    }
    if is(&["PublicIPAddressCannotBeDeleted"]) || code.starts_with("InUse") {
        return FailureClass::InUse;
    }
    if is(&["ResourceNotFound", "NotFound"]) {
        return FailureClass::NotFound;
    }
    match status {
        429 => FailureClass::Throttled,
        401 | 403 => FailureClass::Forbidden,
        404 if is(&["ResourceGroupNotFound", "ParentResourceNotFound"]) => FailureClass::Transient,
        404 => FailureClass::NotFound,
        408 | 409 | 412 | 500..=599 => FailureClass::Transient,
        _ => FailureClass::Refused,
    }
}

/// Codes after which a failed operation fails again unless somebody changes something.
fn is_final_code(code: &str) -> bool {
    code.starts_with("Invalid")
        || [
            "RulesUseSameBackendPortProtocolAndPool",
            "MultipleDefaultServicesNotAllowedInServiceGateway",
            "DuplicateLocationsInRequest",
            "IPv4LocationCannotContainIPv6Addresses",
            "IPv6LocationCannotContainIPv4Addresses",
        ]
        .iter()
        .any(|word| code.eq_ignore_ascii_case(word))
}

/// The wait that the Network resource provider puts into its message: "… after 17 seconds …".
pub fn wait_in_text(message: &str) -> Option<Duration> {
    let mut words = message.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let unit = words.peek().map(|next| next.trim_matches(|c: char| !c.is_ascii_alphabetic()));
        let Ok(number) = word.trim_matches(|c: char| !c.is_ascii_digit()).parse::<u64>() else { continue };
        match unit {
            Some("second" | "seconds" | "sec" | "s") => return Some(Duration::from_secs(number.min(86_400))),
            Some("minute" | "minutes" | "min") => return Some(Duration::from_secs(number.min(1_440) * 60)),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn class_of(status: u16, code: &str, message: &str) -> FailureClass {
        let error = ArmError { code: code.into(), message: message.into() };
        let answer = Answer::new(status, Payload::Error(error));
        Failure::in_reply(&Reply::Answered(answer)).unwrap().class
    }

    #[test]
    fn the_code_decides_before_the_status() {
        use FailureClass::*;
        for (status, code, class) in [
            (400, "ServiceWithOverlayMappingsCannotBeDeleted", StillMapped),
            (409, "ScopeLocked", Forbidden),
            (400, "QuotaExceeded", Quota),
            (400, "PublicIPCountLimitReached", Quota),
            (409, "AnotherOperationInProgress", Transient),
            (429, "RetryableErrorDueToAnotherOperation", Transient),
            (400, "PublicIPAddressCannotBeDeleted", InUse),
            (400, "InUseSubnetCannotBeDeleted", InUse),
            (404, "ResourceNotFound", NotFound),
            (404, "ResourceGroupNotFound", Transient),
            (412, "PreconditionFailed", Transient),
            (503, "ServerBusy", Transient),
            (413, "RequestEntityTooLarge", Refused),
            (422, "Anything", Refused),
            (429, "TooManyRequests", Throttled),
            (200, "InternalServerError", Transient),
        ] {
            assert_eq!(class_of(status, code, ""), class, "{status} {code}");
        }
    }

    #[test]
    fn another_operation_that_says_how_long_is_a_wait() {
        let text = "Another operation is in progress; please retry after 17 seconds.";
        assert_eq!(class_of(429, "RetryableErrorDueToAnotherOperation", text), FailureClass::Throttled);
        assert_eq!(wait_in_text(text), Some(Duration::from_secs(17)));
        assert_eq!(wait_in_text("retry in 2 minutes"), Some(Duration::from_secs(120)));
        assert_eq!(wait_in_text("code 17 and nothing else"), None);
    }

    #[test]
    fn a_polls_200_that_says_failed_is_a_failure() {
        let error = ArmError { code: "InternalServerError".into(), message: "".into() };
        let poll = Answer::new(200, Payload::Operation(OperationState::Failed(error)));
        let failure = Failure::in_reply(&Reply::Answered(poll)).unwrap();
        assert_eq!(failure.class, FailureClass::Transient);
        assert!(failure.to_string().starts_with("InternalServerError (transient)"));
    }

    #[test]
    fn success_and_operations_on_their_way_are_no_failures() {
        for payload in [Payload::None, Payload::Operation(OperationState::Running)] {
            assert_eq!(Failure::in_reply(&Reply::Answered(Answer::new(202, payload))), None);
        }
    }
}
