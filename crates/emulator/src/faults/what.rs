//! What can happen to a request, and who carries it out.
//!
//! Some of it the model of the cloud knows by itself; the rest is done by the front, around or in
//! place of the model's answer.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sluice_cloud::Fault;

/// One thing that happens to a request.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "fault", rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub(crate) enum What {
    /// It is refused and nothing is done. All refusals that have a word of their own become this.
    Refuse {
        status: u16,
        code: String,
        message: String,
        /// Real seconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after: Option<u64>,
        /// The word that it was asked for with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        word: Option<String>,
    },
    /// 401, as if the token had just expired.
    Unauthorized {},
    /// It takes longer, in real milliseconds.
    Latency {
        #[serde(default)]
        before_ms: u64,
        #[serde(default)]
        after_ms: u64,
    },
    /// It is never answered.
    Hang {
        #[serde(default)]
        when: When,
    },
    /// It breaks off without an answer.
    Reset {
        #[serde(default)]
        when: When,
        #[serde(default)]
        scope: Scope,
    },
    /// It is carried out and breaks off; the same as `reset` after it.
    NoAnswer {},
    /// It is answered as if it had been carried out, but it has not.
    NotApplied {},
    /// Its operation never ends.
    NeverEnds {},
    /// Its operation fails.
    Fails {
        #[serde(default = "internal_error")]
        code: String,
    },
    /// Its operation is canceled.
    Canceled {},
    /// Its operation succeeds, but the resource is `Failed`.
    ProvisioningFails {},
    /// Reads show the state before it for so many emulated milliseconds, at most 10,000.
    Lag { ms: u64 },
    /// A page of a list ends after so many items.
    ShortPage { items: usize },
    /// A page of a list fails.
    FailPage {},
    /// Its operation takes so many times as long.
    SlowBy { factor: u32 },
    /// The answer has a word in it that nobody knows.
    UnknownEnum {},
    /// The answer has a field in it that nobody knows.
    UnknownField {},
    /// It answers 200 with an error in the body, and nothing is done.
    ErrorIn200 {},
    /// A gateway POST is carried out at once, whatever the API version.
    AtOnce {},
    /// The answer is no JSON.
    MalformedJson {},
    /// A page of some proxy comes back; nothing is done.
    HtmlPage {
        #[serde(default = "bad_gateway")]
        status: u16,
    },
    /// The answer breaks off in the middle.
    TruncatedBody {},
    /// The answer is as large as this, filled up with spaces.
    HugeBody {
        #[serde(default = "ten_megabytes")]
        bytes: usize,
    },
    /// It is sent elsewhere; by default to the same path without TLS.
    Redirect {
        #[serde(default = "temporary_redirect")]
        status: u16,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<String>,
    },
    /// The answer says that it is something else.
    WrongContentType {
        #[serde(default = "plain_text")]
        content_type: String,
    },
}

/// On which side of the work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum When {
    /// Nothing is done.
    #[default]
    Before,
    /// All is done.
    After,
}

/// What breaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Scope {
    /// This request alone, where the protocol can do that: HTTP/1 has nothing but connections.
    #[default]
    Request,
    /// The connection, with every other request on it.
    Connection,
}

/// How it ends without an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// It breaks off.
    Reset(Scope),
    /// Nothing happens any more.
    Hang,
}

/// Refusals with a word of their own: word, status, code, text.
const REFUSALS: [(&str, u16, &str, &str); 13] = [
    ("throttled", 429, "SubscriptionRequestsThrottled", "Number of requests exceeded the limit."),
    (
        "anotherOperation",
        429,
        "RetryableErrorDueToAnotherOperation",
        "Operation 0 is updating resource. The call can be retried in 5 seconds.",
    ),
    ("conflict", 409, "AnotherOperationInProgress", "Another operation on this resource is in progress."),
    ("preconditionFailed", 412, "PreconditionFailed", "Precondition failed: the etag does not match."),
    ("serverError", 500, "InternalServerError", "An error occurred."),
    ("unavailable", 503, "ServiceUnavailable", "The service is temporarily unavailable."),
    (
        "forbidden",
        403,
        "AuthorizationFailed",
        "The client does not have authorization to perform this action over this scope.",
    ),
    ("quotaExceeded", 400, "QuotaExceeded", "The quota of this resource is used up."),
    ("locked", 409, "ScopeLocked", "The scope cannot perform this operation because it is locked."),
    ("disallowed", 403, "RequestDisallowedByPolicy", "The resource was disallowed by policy."),
    ("tooLarge", 413, "RequestEntityTooLarge", "The request is too large."),
    (
        "unknownApiVersion",
        400,
        "NoRegisteredProviderFound",
        "No registered resource provider found for this location and API version.",
    ),
    ("notFound", 404, "ResourceNotFound", "The resource was not found."),
];

impl What {
    /// Reads what is left of a rule.
    pub(super) fn parse(mut fields: Map<String, Value>) -> Result<What, String> {
        let word = match fields.get("fault") {
            Some(Value::String(word)) => word.clone(),
            _ => {
                return Err(format!(
                    "the field \"fault\" is missing; expected one of {}",
                    words().join(", ")
                ));
            }
        };
        let refusal = REFUSALS.iter().find(|(it, ..)| *it == word);
        if let Some((word, status, code, message)) = refusal {
            fields.insert("fault".into(), "refuse".into());
            fields.insert("word".into(), json!(word));
            fields.entry("status").or_insert_with(|| json!(status));
            fields.entry("code").or_insert_with(|| json!(code));
            fields.entry("message").or_insert_with(|| json!(message));
        } else if word == "refuse" {
            fields.entry("code").or_insert_with(|| json!("Refused"));
            fields.entry("message").or_insert_with(|| json!("The request was rejected by a fault rule."));
        } else if !words().contains(&word.as_str()) {
            return Err(format!("unknown fault {word:?}; expected one of {}", words().join(", ")));
        }
        let given = fields.keys().cloned().collect::<Vec<_>>().join(", ");
        let what: What = serde_json::from_value(Value::Object(fields))
            .map_err(|problem| format!("fault {word:?}: {problem} (given: {given})"))?;
        what.check().map_err(|problem| format!("fault {word:?}: {problem}"))?;
        Ok(what)
    }

    fn check(&self) -> Result<(), String> {
        match self {
            What::Refuse { status, .. } if !(400..=599).contains(status) => {
                Err(format!("status {status} is not between 400 and 599"))
            }
            What::HtmlPage { status } if !(200..=599).contains(status) => {
                Err(format!("status {status} is not between 200 and 599"))
            }
            What::Redirect { status, .. } if !(300..=399).contains(status) => {
                Err(format!("status {status} is not between 300 and 399"))
            }
            What::HugeBody { bytes } if *bytes > 256 << 20 => Err("bytes is larger than 256 MiB".into()),
            What::WrongContentType { content_type } if !content_type.is_ascii() => {
                Err("contentType is not ASCII".into())
            }
            _ => Ok(()),
        }
    }

    /// The word that a rule asks for it with.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            What::Refuse { word, .. } => {
                let known = REFUSALS.iter().find(|(it, ..)| word.as_deref() == Some(*it));
                known.map_or("refuse", |(it, ..)| it)
            }
            What::Unauthorized {} => "unauthorized",
            What::Latency { .. } => "latency",
            What::Hang { .. } => "hang",
            What::Reset { .. } => "reset",
            What::NoAnswer {} => "noAnswer",
            What::NotApplied {} => "notApplied",
            What::NeverEnds {} => "neverEnds",
            What::Fails { .. } => "fails",
            What::Canceled {} => "canceled",
            What::ProvisioningFails {} => "provisioningFails",
            What::Lag { .. } => "lag",
            What::ShortPage { .. } => "shortPage",
            What::FailPage {} => "failPage",
            What::SlowBy { .. } => "slowBy",
            What::UnknownEnum {} => "unknownEnum",
            What::UnknownField {} => "unknownField",
            What::ErrorIn200 {} => "errorIn200",
            What::AtOnce {} => "atOnce",
            What::MalformedJson {} => "malformedJson",
            What::HtmlPage { .. } => "htmlPage",
            What::TruncatedBody {} => "truncatedBody",
            What::HugeBody { .. } => "hugeBody",
            What::Redirect { .. } => "redirect",
            What::WrongContentType { .. } => "wrongContentType",
        }
    }

    /// What the model is told.
    pub(crate) fn model(&self) -> Option<Fault> {
        Some(match self {
            What::Refuse { status, code, message, retry_after, .. } => Fault::Refuse {
                status: *status,
                code: code.as_str().into(),
                message: message.as_str().into(),
                retry_after: retry_after.map(Duration::from_secs),
            },
            What::NotApplied {} => Fault::AnsweredButNotApplied,
            What::NeverEnds {} => Fault::OperationNeverEnds,
            What::Fails { code } => Fault::OperationFails { code: code.as_str().into() },
            What::Canceled {} => Fault::OperationCanceled,
            What::ProvisioningFails {} => Fault::ProvisioningFails,
            What::Lag { ms } => Fault::LaggingReads { duration: Duration::from_millis(*ms) },
            What::ShortPage { items } => Fault::ShortPage { items: *items },
            What::FailPage {} => Fault::FailPage,
            What::SlowBy { factor } => Fault::SlowBy(*factor),
            What::UnknownEnum {} => Fault::UnknownEnum,
            What::ErrorIn200 {} => Fault::ErrorIn200,
            What::AtOnce {} => Fault::AnsweredAtOnce,
            _ => return None,
        })
    }

    /// How it ends, if nothing comes back, and on which side of the work.
    pub(crate) fn end(&self) -> Option<(When, End)> {
        match self {
            What::Hang { when } => Some((*when, End::Hang)),
            What::Reset { when, scope } => Some((*when, End::Reset(*scope))),
            What::NoAnswer {} => Some((When::After, End::Reset(Scope::Request))),
            _ => None,
        }
    }

    pub(super) fn show(&self) -> Value {
        let mut shown = serde_json::to_value(self).unwrap_or(Value::Null);
        if let Some(fields) = shown.as_object_mut() {
            fields.remove("word");
            fields.insert("fault".into(), self.word().into());
        }
        shown
    }
}

/// All words, for messages.
pub(crate) fn words() -> Vec<&'static str> {
    const OTHERS: [&str; 25] = [
        "refuse",
        "unauthorized",
        "latency",
        "hang",
        "reset",
        "noAnswer",
        "notApplied",
        "neverEnds",
        "fails",
        "canceled",
        "provisioningFails",
        "lag",
        "shortPage",
        "failPage",
        "slowBy",
        "unknownEnum",
        "unknownField",
        "errorIn200",
        "atOnce",
        "malformedJson",
        "htmlPage",
        "truncatedBody",
        "hugeBody",
        "redirect",
        "wrongContentType",
    ];
    OTHERS.into_iter().chain(REFUSALS.iter().map(|(it, ..)| *it)).collect()
}

fn internal_error() -> String {
    "InternalServerError".to_owned()
}

fn bad_gateway() -> u16 {
    502
}

fn ten_megabytes() -> usize {
    10 << 20
}

fn temporary_redirect() -> u16 {
    307
}

fn plain_text() -> String {
    "text/plain".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn what(value: Value) -> What {
        let Value::Object(fields) = value else { panic!("{value}") };
        What::parse(fields).unwrap()
    }

    #[test]
    fn every_word_is_read_and_shown_again() {
        for word in words() {
            let given = match word {
                "refuse" => json!({"fault": word, "status": 500}),
                "lag" => json!({"fault": word, "ms": 1}),
                "shortPage" => json!({"fault": word, "items": 1}),
                "slowBy" => json!({"fault": word, "factor": 2}),
                _ => json!({"fault": word}),
            };
            let read = what(given);
            assert_eq!(read.word(), word);
            let Value::Object(shown) = read.show() else { panic!("{word}") };
            assert_eq!(shown["fault"], word);
            // What is shown can be given back as it is.
            assert_eq!(What::parse(shown).unwrap(), read, "{word}");
        }
    }

    #[test]
    fn every_fault_of_the_model_can_be_said() {
        let refused = |given: Value| match what(given).model() {
            Some(Fault::Refuse { status, code, retry_after, .. }) => (status, code.to_string(), retry_after),
            other => panic!("{other:?}"),
        };
        assert_eq!(
            refused(json!({"fault": "throttled", "retryAfter": 3})),
            (429, "SubscriptionRequestsThrottled".to_owned(), Some(Duration::from_secs(3)))
        );
        assert_eq!(
            refused(json!({"fault": "refuse", "status": 418, "code": "Teapot"})),
            (418, "Teapot".to_owned(), None)
        );
        for (given, expected) in [
            (json!({"fault": "notApplied"}), Fault::AnsweredButNotApplied),
            (json!({"fault": "neverEnds"}), Fault::OperationNeverEnds),
            (json!({"fault": "fails", "code": "X"}), Fault::OperationFails { code: "X".into() }),
            (json!({"fault": "canceled"}), Fault::OperationCanceled),
            (json!({"fault": "provisioningFails"}), Fault::ProvisioningFails),
            (json!({"fault": "lag", "ms": 7}), Fault::LaggingReads { duration: Duration::from_millis(7) }),
            (json!({"fault": "shortPage", "items": 0}), Fault::ShortPage { items: 0 }),
            (json!({"fault": "failPage"}), Fault::FailPage),
            (json!({"fault": "slowBy", "factor": 50}), Fault::SlowBy(50)),
            (json!({"fault": "unknownEnum"}), Fault::UnknownEnum),
            (json!({"fault": "errorIn200"}), Fault::ErrorIn200),
            (json!({"fault": "atOnce"}), Fault::AnsweredAtOnce),
        ] {
            assert_eq!(what(given.clone()).model(), Some(expected), "{given}");
        }
        // What the model calls lost or not sent is done to the connection itself.
        for (given, expected) in [
            (json!({"fault": "noAnswer"}), (When::After, End::Reset(Scope::Request))),
            (json!({"fault": "reset"}), (When::Before, End::Reset(Scope::Request))),
            (json!({"fault": "reset", "scope": "connection"}), (When::Before, End::Reset(Scope::Connection))),
            (json!({"fault": "hang", "when": "after"}), (When::After, End::Hang)),
        ] {
            assert_eq!(what(given.clone()).end(), Some(expected), "{given}");
        }
    }
}
