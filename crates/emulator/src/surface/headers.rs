//! The headers that every answer of the resource manager has.

use std::time::Duration;

use bytes::Bytes;
use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, Request, Response, StatusCode};
use serde_json::Value;
use sluice_model::Time;
use sluice_model::call::Bucket;

use super::document::guid;

/// An answer on its way out.
#[derive(Debug, Default)]
pub(crate) struct Out {
    pub(crate) status: u16,
    pub(crate) body: Option<Value>,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) retry_after: Option<Duration>,
    /// What is left in the bucket that paid, and which one that was; the gateway's refusals do not say.
    pub(crate) remaining: Option<(Bucket, Option<u32>)>,
    /// Whether the gateway refused it.
    pub(crate) by_gateway: bool,
}

impl Out {
    pub(crate) fn new(status: u16, body: Option<Value>) -> Out {
        Out { status, body, ..Out::default() }
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Out {
        self.headers.push((name, value.into()));
        self
    }
}

/// What is left when nobody counts, as in the recordings.
const fn plenty(bucket: Bucket) -> u32 {
    match bucket {
        Bucket::Reads => 16_499,
        Bucket::Writes | Bucket::Deletes => 11_999,
    }
}

/// Makes the answer to a request. `number` makes ids that no other answer has.
pub(crate) fn finish(out: Out, request: &Request<Bytes>, now: Time, number: u64) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = StatusCode::from_u16(out.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    for (name, value) in [
        ("cache-control", "no-cache"),
        ("pragma", "no-cache"),
        ("expires", "-1"),
        ("strict-transport-security", "max-age=31536000; includeSubDomains"),
        ("x-content-type-options", "nosniff"),
        ("x-cache", "CONFIG_NOCACHE"),
    ] {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    if out.by_gateway {
        headers.insert("x-ms-failure-cause", HeaderValue::from_static("gateway"));
    }
    if let Some((bucket, left)) = out.remaining {
        let (own, global) = match bucket {
            Bucket::Reads => ("reads", "global-reads"),
            Bucket::Writes => ("writes", "global-writes"),
            Bucket::Deletes => ("deletes", "global-deletes"),
        };
        for word in [own, global] {
            let value = left.unwrap_or(plenty(bucket)).to_string();
            put(headers, &format!("x-ms-ratelimit-remaining-subscription-{word}"), &value);
        }
    }
    if let Some(wait) = out.retry_after {
        put(headers, "retry-after", &wait.as_secs().to_string());
    }
    for (name, value) in &out.headers {
        put(headers, name, value);
    }
    identify(headers, request, now, number);
    if let Some(body) = out.body {
        headers.insert("content-type", HeaderValue::from_static("application/json; charset=utf-8"));
        *response.body_mut() = body.to_string().into();
    }
    response
}

/// Who asked, and which answer this is.
fn identify(headers: &mut HeaderMap, request: &Request<Bytes>, now: Time, number: u64) {
    let own = guid(&format!("request {number}"));
    let given = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
    put(headers, "x-ms-request-id", &own);
    put(headers, "x-ms-correlation-request-id", given("x-ms-correlation-request-id").unwrap_or(&own));
    let seconds = now.as_millis() / 1_000;
    let (hours, minutes, rest) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    let route = format!("EMULATOR:20010101T{hours:02}{minutes:02}{rest:02}Z:{own}");
    put(headers, "x-ms-routing-request-id", &route);
    let wants_its_own =
        given("x-ms-return-client-request-id").is_some_and(|it| it.eq_ignore_ascii_case("true"));
    if let Some(id) = given("x-ms-client-request-id").filter(|_| wants_its_own) {
        put(headers, "x-ms-client-request-id", id);
    }
}

/// Sets a header; what cannot stand in one is left out.
fn put(headers: &mut HeaderMap, name: &str, value: &str) {
    if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
        headers.insert(name, value);
    }
}
