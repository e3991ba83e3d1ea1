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
    /// How long Azure asked us to wait, in a header or in the text of a pause. Never nothing: "at
    /// once", or a date that has passed, is as good as no word.
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
    Rejected,
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
        FailureClass::Rejected,
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
            FailureClass::Rejected => "rejected",
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

    /// Whether another operation on the same resource is in the way; others are not affected.
    pub fn is_another_operation(&self) -> bool {
        is_another_operation(&self.code)
    }

    /// Whether it is the resource manager's bucket that is empty, and not a provider that has had enough.
    pub fn is_bucket_empty(&self) -> bool {
        is_bucket_empty(&self.code)
    }

    /// Whether Azure does not accept the credential itself: it has expired, or is for another tenant or audience. No
    /// role assignment helps then.
    pub fn is_about_credential(&self) -> bool {
        let named = || CREDENTIAL_CODES.iter().any(|code| self.code.eq_ignore_ascii_case(code));
        self.class == FailureClass::Forbidden && (self.status == 401 || named())
    }

    /// Whether Azure itself said so. What others on the way answer says nothing about the resource.
    pub fn is_azures(&self) -> bool {
        self.status != 0 && !self.code.starts_with(UNWORDED)
    }

    fn in_answer(answer: &Answer) -> Option<Failure> {
        let in_header = answer.retry_after.filter(|wait| !wait.is_zero());
        let failed = |error: &ArmError| {
            let class = classify(answer.status, &error.code, &error.message, in_header);
            // Other texts have numbers of seconds in them too, and do not mean a wait.
            let says_wait = class == FailureClass::Throttled || is_another_operation(&error.code);
            let in_text = if says_wait { wait_in_text(&error.message) } else { None };
            Failure {
                class,
                status: answer.status,
                code: error.code.clone(),
                message: error.message.clone(),
                retry_after: in_header.or(in_text),
            }
        };
        match &answer.payload {
            Payload::Error(error) => Some(failed(error)),
            Payload::Operation(OperationState::Failed(error) | OperationState::Canceled(error)) => {
                let mut failure = failed(error);
                // A failed operation is over and has no status of its own; only a code that says so
                // is final, and a pause would only be one before asking again how it failed.
                let is_over = match failure.class {
                    FailureClass::Rejected => !is_final_code(&error.code),
                    FailureClass::Throttled => true,
                    _ => false,
                };
                if is_over {
                    failure.class = FailureClass::Transient;
                }
                Some(failure)
            }
            _ if (200..300).contains(&answer.status) => None,
            _ => Some(failed(&ArmError {
                code: alloc::format!("{UNWORDED}{}", answer.status).into(),
                message: match answer.status {
                    300..=399 => "the answer is a redirect, which is not followed",
                    413 => "the request is larger than Azure takes",
                    _ => "the answer had no ARM error in its body",
                }
                .into(),
            })),
        }
    }
}

/// How the code begins that we give to a refusal without an ARM error.
const UNWORDED: &str = "Http";

/// How a failure is shown that is about the credential.
const CREDENTIAL_NOT_ACCEPTED: &str = "credential not accepted";

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let class = if self.is_about_credential() { CREDENTIAL_NOT_ACCEPTED } else { self.class.word() };
        write!(f, "{} ({class}): {}", self.code, self.message)
    }
}

/// The class of a refusal: the code decides before the status.
fn classify(status: u16, code: &str, message: &str, retry_after: Option<Duration>) -> FailureClass {
    let is = |words: &[&str]| words.iter().any(|word| code.eq_ignore_ascii_case(word));
    let begins = |word: &str| begins(code, word);
    let ends = |word: &str| ends(code, word);
    if is_another_operation(code) {
        // It may arrive as a 429 with a wait; then it is a wait like any other.
        let waits = retry_after.is_some() || wait_in_text(message).is_some();
        return if status == 429 && waits { FailureClass::Throttled } else { FailureClass::Transient };
    }
    if is(&["InternalServerError", "ServiceUnavailable", "ServerBusy", "OperationTimedOut"]) && status != 429
    {
        return FailureClass::Transient;
    }
    // Azure uses this code for much; about a quota it says so in the text.
    let is_quota = is(&["OperationNotAllowed"]) && message.to_ascii_lowercase().contains("quota");
    if is_quota || ends("QuotaExceeded") || ends("LimitReached") {
        return FailureClass::Quota;
    }
    if is(&["TooManyRequests"]) || is_bucket_empty(code) {
        return FailureClass::Throttled;
    }
    if is(FORBIDDEN_CODES) {
        return FailureClass::Forbidden;
    }
    if is(&["ServiceWithOverlayMappingsCannotBeDeleted"]) {
        return FailureClass::StillMapped;
    }
    if is(&["PublicIPAddressCannotBeDeleted"]) || begins("InUse") {
        return FailureClass::InUse;
    }
    if is(&["ResourceNotFound", "NotFound"]) {
        return FailureClass::NotFound;
    }
    if is(&["ResourceGroupNotFound", "ParentResourceNotFound"]) || begins("PreconditionFailed") {
        return FailureClass::Transient;
    }
    match status {
        429 => FailureClass::Throttled,
        401 | 403 => FailureClass::Forbidden,
        404 if ends("NotFound") => FailureClass::NotFound,
        // Any other 404, and one without words even more, may be about something on the way and says
        // nothing about the resource. A deletion must not take it for success. A redirect likewise.
        300..=399 | 404 | 408 | 409 | 412 | 500..=599 => FailureClass::Transient,
        _ => FailureClass::Rejected,
    }
}

/// Whether Azure says that another operation on the same resource is in the way.
fn is_another_operation(code: &str) -> bool {
    begins(code, "RetryableError") || code.eq_ignore_ascii_case("AnotherOperationInProgress")
}

/// Whether the resource manager says that its bucket is empty: `SubscriptionRequestsThrottled` and the like.
fn is_bucket_empty(code: &str) -> bool {
    ends(code, "RequestsThrottled")
}

/// Whether a code begins so. Azure does not mind the case of its codes, so nobody does.
fn begins(code: &str, word: &str) -> bool {
    code.get(..word.len()).is_some_and(|it| it.eq_ignore_ascii_case(word))
}

fn ends(code: &str, word: &str) -> bool {
    let at = code.len().checked_sub(word.len());
    at.and_then(|at| code.get(at..)).is_some_and(|it| it.eq_ignore_ascii_case(word))
}

/// Who we are, what we may do, and what the subscription is set up for: only people can help,
/// whatever the status. Among them are codes that come as 404 and do not mean that a resource
/// is gone.
const FORBIDDEN_CODES: &[&str] = &[
    "AuthenticationFailed",
    "AuthorizationFailed",
    "DenyAssignmentAuthorizationFailed",
    "DisabledSubscription",
    "DisallowedProvider",
    "ExpiredAuthenticationToken",
    "InvalidApiVersionParameter",
    "InvalidAuthenticationInfo",
    "InvalidAuthenticationToken",
    "InvalidAuthenticationTokenTenant",
    "InvalidResourceNamespace",
    "InvalidResourceType",
    "InvalidSubscriptionId",
    "LinkedAuthorizationFailed",
    "MissingApiVersionParameter",
    "MissingSubscription",
    "MissingSubscriptionRegistration",
    "NoRegisteredProviderFound",
    "ReadOnlyDisabledSubscription",
    "RequestDisallowedByPolicy",
    "ScopeLocked",
    "SubscriptionNotFound",
    "SubscriptionNotRegistered",
];

/// Those of them that are about the credential, whatever the status.
const CREDENTIAL_CODES: &[&str] = &[
    "AuthenticationFailed",
    "ExpiredAuthenticationToken",
    "InvalidAuthenticationInfo",
    "InvalidAuthenticationToken",
    "InvalidAuthenticationTokenTenant",
];

/// Codes after which a failed operation fails again unless somebody changes something.
fn is_final_code(code: &str) -> bool {
    begins(code, "Invalid")
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
            _ if number == 0 => {}
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
            // The wire page's list, in its order.
            (404, "ResourceNotFound", NotFound),
            (404, "ResourceGroupNotFound", Transient),
            (404, "NotFound", NotFound),
            (400, "ServiceWithOverlayMappingsCannotBeDeleted", StillMapped),
            (400, "MultipleDefaultServicesNotAllowedInServiceGateway", Rejected),
            (400, "RulesUseSameBackendPortProtocolAndPool", Rejected),
            (400, "DuplicateLocationsInRequest", Rejected),
            (400, "IPv4LocationCannotContainIPv6Addresses", Rejected),
            (400, "IPv6LocationCannotContainIPv4Addresses", Rejected),
            (400, "PublicIPAddressCannotBeDeleted", InUse),
            (400, "InUseSubnetCannotBeDeleted", InUse),
            (400, "QuotaExceeded", Quota),
            (400, "PublicIPCountLimitReached", Quota),
            (400, "MaxPublicIpCountLimitReached", Quota),
            (409, "AnotherOperationInProgress", Transient),
            (429, "RetryableErrorDueToAnotherOperation", Transient),
            (412, "PreconditionFailed", Transient),
            (412, "PreconditionFailedEtagMismatch", Transient),
            (403, "AuthorizationFailed", Forbidden),
            (409, "ScopeLocked", Forbidden),
            (403, "RequestDisallowedByPolicy", Forbidden),
            // The engine page's table.
            (408, "Anything", Transient),
            (503, "ServerBusy", Transient),
            (502, "Anything", Transient),
            (409, "Anything", Transient),
            (404, "ParentResourceNotFound", Transient),
            (429, "TooManyRequests", Throttled),
            (401, "Anything", Forbidden),
            (403, "Anything", Forbidden),
            (400, "Anything", Rejected),
            (422, "Anything", Rejected),
            (413, "RequestEntityTooLarge", Rejected),
            (200, "InternalServerError", Transient),
            // What they do not name.
            (404, "publicipaddressnotfound", NotFound),
            (404, "OperationNotFound", NotFound),
            (404, "MissingSubscription", Forbidden),
            (404, "InvalidResourceType", Forbidden),
            (404, "Anything", Transient),
            (404, "", Transient),
            (409, "subscriptionquotaexceeded", Quota),
            (429, "SubscriptionRequestsThrottled", Throttled),
            (503, "ResourceRequestsThrottled", Throttled),
            (401, "ExpiredAuthenticationToken", Forbidden),
            (400, "InvalidAuthenticationToken", Forbidden),
            (404, "SubscriptionNotFound", Forbidden),
            (409, "MissingSubscriptionRegistration", Forbidden),
            (400, "NoRegisteredProviderFound", Forbidden),
            (409, "OperationNotAllowed", Transient),
            (400, "", Rejected),
        ] {
            assert_eq!(class_of(status, code, ""), class, "{status} {code}");
        }
    }

    #[test]
    fn a_401_that_stays_is_a_matter_for_people_with_or_without_words() {
        let unworded = Answer::new(401, Payload::None);
        let failure = Failure::in_reply(&Reply::Answered(unworded)).unwrap();
        assert_eq!((failure.class, &*failure.code), (FailureClass::Forbidden, "Http401"));
        assert_eq!(
            class_of(401, "InvalidAuthenticationToken", "The token is gone."),
            FailureClass::Forbidden
        );
        // The first one never reaches us as an answer: the client says that it was not carried out.
        let first = Failure::in_reply(&Reply::not_sent("the token was refused")).unwrap();
        assert_eq!((first.class, &*first.message), (FailureClass::Transient, "the token was refused"));
    }

    #[test]
    fn a_credential_that_is_not_accepted_is_told_apart_from_a_missing_permission() {
        let said = |status, code: &str| {
            let error = ArmError { code: code.into(), message: "no".into() };
            let reply = Reply::Answered(Answer::new(status, Payload::Error(error)));
            let failure = Failure::in_reply(&reply).unwrap();
            (failure.is_about_credential(), failure.to_string())
        };
        for (status, code) in [
            (401, "Anything"),
            (401, "ExpiredAuthenticationToken"),
            (400, "invalidauthenticationtoken"),
            (403, "InvalidAuthenticationTokenTenant"),
        ] {
            assert_eq!(said(status, code), (true, alloc::format!("{code} (credential not accepted): no")));
        }
        for (status, code) in
            [(403, "AuthorizationFailed"), (409, "ScopeLocked"), (404, "SubscriptionNotFound")]
        {
            assert_eq!(said(status, code), (false, alloc::format!("{code} (forbidden): no")));
        }
        assert!(!said(503, "ServerBusy").0 && !said(429, "TooManyRequests").0);
        let unworded = Failure::in_reply(&Reply::Answered(Answer::new(401, Payload::None))).unwrap();
        assert!(unworded.is_about_credential());
    }

    #[test]
    fn a_quota_is_known_by_its_text_where_the_code_says_little() {
        let text = "Operation could not be completed as it results in exceeding approved Public IPs Quota.";
        for status in [400, 403, 409, 429] {
            assert_eq!(class_of(status, "OperationNotAllowed", text), FailureClass::Quota);
        }
        let other = "The operation is not allowed while the resource is updating.";
        assert_eq!(class_of(409, "OperationNotAllowed", other), FailureClass::Transient);
        assert_eq!(class_of(429, "OperationNotAllowed", other), FailureClass::Throttled);
    }

    #[test]
    fn an_answer_without_words_says_nothing_about_the_resource() {
        use FailureClass::*;
        for (status, class, word) in [
            (302, Transient, "redirect"),
            (307, Transient, "redirect"),
            (404, Transient, "no ARM error"),
            (413, Rejected, "larger"),
            (429, Throttled, "no ARM error"),
            (502, Transient, "no ARM error"),
        ] {
            let failure = Failure::in_reply(&Reply::Answered(Answer::new(status, Payload::None))).unwrap();
            assert_eq!((failure.class, failure.is_azures()), (class, false), "{status}");
            assert!(failure.message.contains(word), "{status}: {}", failure.message);
        }
    }

    #[test]
    fn an_operation_that_failed_for_lack_of_budget_is_over() {
        for code in ["TooManyRequests", "SubscriptionRequestsThrottled"] {
            let state = OperationState::Failed(ArmError { code: code.into(), message: "".into() });
            let poll = Answer::new(200, Payload::Operation(state));
            assert_eq!(Failure::in_reply(&Reply::Answered(poll)).unwrap().class, FailureClass::Transient);
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
    fn seconds_in_the_text_are_a_wait_only_where_a_wait_is_meant() {
        let wait_of = |status, code: &str, message: &str| {
            let error = ArmError { code: code.into(), message: message.into() };
            let reply = Reply::Answered(Answer::new(status, Payload::Error(error)));
            Failure::in_reply(&reply).unwrap().retry_after
        };
        let seconds = |s| Some(Duration::from_secs(s));
        assert_eq!(wait_of(429, "Anything", "Try again after '17' seconds."), seconds(17));
        assert_eq!(wait_of(409, "AnotherOperationInProgress", "Retry in 5 seconds."), seconds(5));
        assert_eq!(wait_of(400, "Anything", "The idle timeout must be 4 to 30 minutes."), None);
        assert_eq!(wait_of(500, "InternalServerError", "Timed out after 60 seconds."), None);
    }

    #[test]
    fn a_wait_of_nothing_is_no_wait() {
        let failure_of = |code: &str, message: &str| {
            let error = ArmError { code: code.into(), message: message.into() };
            let answer =
                Answer { retry_after: Some(Duration::ZERO), ..Answer::new(429, Payload::Error(error)) };
            let failure = Failure::in_reply(&Reply::Answered(answer)).unwrap();
            (failure.class, failure.retry_after)
        };
        let busy = "RetryableErrorDueToAnotherOperation";
        assert_eq!(failure_of("TooManyRequests", ""), (FailureClass::Throttled, None));
        assert_eq!(failure_of(busy, ""), (FailureClass::Transient, None));
        assert_eq!(failure_of(busy, "Retry after 0 seconds."), (FailureClass::Transient, None));
        // The text may know better.
        let text = "Please retry after 17 seconds.";
        assert_eq!(failure_of(busy, text), (FailureClass::Throttled, Some(Duration::from_secs(17))));
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
