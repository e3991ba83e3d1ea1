//! What is known of one call afterwards: for metrics, for the log, for people.
//!
//! A record has no body, no query and no header but ids, so it may be kept and shown. One line
//! per call goes out as a `tracing` event of level debug; bodies only at level trace, cut to a
//! readable size and without anything that looks like a token.

use std::fmt;
use std::time::Duration;

use sluice_model::call::{Method, Request};

use crate::secret;

/// How much of a body a trace shows.
const SHOWN_BYTES_MAX: usize = 16 << 10;

/// One call, after it ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CallRecord {
    /// What was asked for: `get`, `list`, `put`, `patch-tags`, `delete`, `update-services`, `update-locations`, `poll`.
    pub method: &'static str,
    /// Of what: the collection's name in Azure, or `operation`.
    pub kind: &'static str,
    /// The path, without the query.
    pub path: String,
    /// How it ended.
    pub outcome: Outcome,
    /// How many bytes we sent as a body.
    pub bytes_sent: usize,
    /// How many bytes of body came back, unpacked.
    pub bytes_received: usize,
    /// How long it took, the wait for a token included.
    pub took: Duration,
    /// What is left in the bucket that paid.
    pub remaining: Option<u32>,
    /// How long Azure asked us to wait.
    pub retry_after: Option<Duration>,
    /// Our id of the call; Azure's support finds it by this one.
    pub client_request_id: String,
    /// Azure's id of the call.
    pub request_id: Option<String>,
    /// Azure's id of what the call belongs to.
    pub correlation_id: Option<String>,
}

/// How a call ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// With an answer of this status.
    Answered(u16),
    /// With this status and a body that cannot be understood.
    Unreadable(u16),
    /// It never left, for this reason.
    NotSent(&'static str),
    /// It left, and nobody knows; for this reason.
    Lost(&'static str),
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Answered(status) => write!(f, "{status}"),
            Outcome::Unreadable(status) => write!(f, "{status} unreadable"),
            Outcome::NotSent(word) => write!(f, "not sent: {word}"),
            Outcome::Lost(word) => write!(f, "lost: {word}"),
        }
    }
}

/// Who wants to know of every call. Called from inside `send`, so it must be quick.
pub trait Observer: Send + Sync {
    /// A call has ended.
    fn called(&self, record: &CallRecord);
}

impl<F: Fn(&CallRecord) + Send + Sync> Observer for F {
    fn called(&self, record: &CallRecord) {
        self(record);
    }
}

impl CallRecord {
    /// A call of which nothing is known yet.
    pub(crate) fn begun(method: &'static str, kind: &'static str, path: String) -> CallRecord {
        CallRecord {
            method,
            kind,
            path,
            outcome: Outcome::NotSent("unwritable"),
            bytes_sent: 0,
            bytes_received: 0,
            took: Duration::ZERO,
            remaining: None,
            retry_after: None,
            client_request_id: uuid::Uuid::new_v4().to_string(),
            request_id: None,
            correlation_id: None,
        }
    }

    /// One line for the log.
    pub(crate) fn log(&self) {
        tracing::debug!(
            method = self.method,
            kind = self.kind,
            path = self.path,
            outcome = %self.outcome,
            took_ms = u64::try_from(self.took.as_millis()).unwrap_or(u64::MAX),
            sent = self.bytes_sent,
            received = self.bytes_received,
            remaining = self.remaining,
            retry_after_s = self.retry_after.map(|wait| wait.as_secs()),
            client_request_id = self.client_request_id,
            request_id = self.request_id,
            correlation_id = self.correlation_id,
            "call to Azure"
        );
    }
}

/// The bodies of one call, for level trace.
pub(crate) fn log_body(direction: &'static str, client_request_id: &str, body: &[u8]) {
    if tracing::enabled!(tracing::Level::TRACE) {
        tracing::trace!(direction, client_request_id, body = shown(body), "body");
    }
}

fn shown(body: &[u8]) -> String {
    let cut = &body[..body.len().min(SHOWN_BYTES_MAX)];
    let text = secret::scrub(&String::from_utf8_lossy(cut), None);
    match body.len() - cut.len() {
        0 => text,
        more => format!("{text}… ({more} more bytes)"),
    }
}

/// The fixed word for a method.
pub(crate) const fn method_word(method: Method) -> &'static str {
    match method {
        Method::Get => "get",
        Method::List => "list",
        Method::Put => "put",
        Method::PatchTags => "patch-tags",
        Method::Delete => "delete",
        Method::UpdateServices => "update-services",
        Method::UpdateLocations => "update-locations",
        Method::Poll => "poll",
    }
}

/// The fixed word for what a request is about: the innermost collection in its target that we know.
pub(crate) fn kind_word(request: &Request) -> &'static str {
    const KINDS: [&str; 9] = [
        "addressLocations",
        "services",
        "serviceGateways",
        "natGateways",
        "loadBalancers",
        "publicIPAddresses",
        "subnets",
        "virtualNetworks",
        "resourceGroups",
    ];
    if request.method == Method::Poll {
        return "operation";
    }
    let known = |part: &str| KINDS.into_iter().find(|kind| part.eq_ignore_ascii_case(kind));
    request.target.as_str().rsplit('/').find_map(known).unwrap_or("other")
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_model::azure::ArmId;

    #[test]
    fn the_innermost_collection_is_the_kind() {
        let network = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network";
        for (method, target, kind) in [
            (Method::Put, "/publicIPAddresses/a-pip", "publicIPAddresses"),
            (Method::List, "/LOADBALANCERS", "loadBalancers"),
            (Method::List, "/serviceGateways/g/services", "services"),
            (Method::Get, "/virtualNetworks/v/subnets/s", "subnets"),
            (Method::UpdateServices, "/serviceGateways/g", "serviceGateways"),
            (Method::Poll, "/locations/w/operations/1", "operation"),
            (Method::Get, "", "resourceGroups"),
        ] {
            let request = Request::bare(method, ArmId::new(format!("{network}{target}")));
            assert_eq!(kind_word(&request), kind, "{target}");
        }
        assert_eq!(kind_word(&Request::bare(Method::Get, ArmId::new("/x"))), "other");
    }

    #[test]
    fn a_body_is_shown_cut_and_without_tokens() {
        let mut body = br#"{"t":"eyJh.eyJb.c"}"#.to_vec();
        assert_eq!(shown(&body), r#"{"t":"[redacted]"}"#);
        body.resize(SHOWN_BYTES_MAX + 5, b' ');
        assert!(shown(&body).ends_with("… (5 more bytes)"));
    }
}
