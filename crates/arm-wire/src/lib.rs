//! What goes over the wire: ARM's JSON, a request as HTTP parts, an HTTP answer as a reply.
//!
//! Two pure functions. [`write()`] turns a typed request into method, URL, `If-Match` and body, or
//! says why it must not leave. [`read()`] turns status, headers and body into a typed reply, and
//! never fails: what cannot be understood is a reply too.
//!
//! ```text
//! Request ──▶ write ──▶ HttpRequest ──▶ (somebody sends it) ──▶ HttpAnswer ──▶ read ──▶ Reply
//! ```
//!
//! How answers are read:
//!
//! - Unknown fields and unknown words never break anything; a missing field, `null` and an
//!   empty text are the same and get the mildest meaning. (A list that is missing or `null` where
//!   one was asked for is not empty: that would be the strongest statement of all.)
//! - The same cannot be said of a body that is not what was asked for: wrong types, half a
//!   document, an HTML page, another resource. With a 2xx that is [`Reply::Lost`]: something
//!   happened, and nobody can tell what. A list is understood as a whole or not at all, so that
//!   no part of it can pass for all of it.
//! - With any other status the answer is a refusal, and if it has no ARM error in its body, one
//!   is made up from the status, and says what came instead.
//!
//! Missing on purpose: sockets, clocks, tokens, retries, polling; what an answer *means* is the
//! updaters' business. So is a reader for writes: the emulator has its own JSON, so that the two
//! cannot agree on a mistake.
#![no_std]

extern crate alloc;

mod answer;
mod bodies;
mod date;
mod error;
mod excerpt;
mod headers;
mod place;
mod request;
mod url;

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use sluice_model::azure::ArmId;
use sluice_model::call::{Reply, Request};

/// What every request needs beside itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dialect {
    /// Scheme, host and port of the resource manager, without a slash at the end.
    pub endpoint: Arc<str>,
    /// `api-version` of Microsoft.Network.
    pub api_version: Arc<str>,
    /// The region that new resources are made in.
    pub region: Arc<str>,
    /// The virtual network that a registration names beside each backend pool; left out if unknown.
    pub virtual_network: Option<ArmId>,
}

/// A request as HTTP sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HttpRequest {
    /// `GET`, `PUT`, `PATCH`, `POST` or `DELETE`.
    pub method: &'static str,
    /// The absolute URL.
    pub url: String,
    /// `If-Match`, where there is one.
    pub if_match: Option<String>,
    /// The JSON body, where there is one.
    pub body: Option<Vec<u8>>,
}

/// An answer as HTTP gave it.
#[derive(Clone, Copy, Debug)]
pub struct HttpAnswer<'a> {
    /// The status.
    pub status: u16,
    /// Headers; names in any case, in the order in which they came.
    pub headers: &'a [(&'a str, &'a str)],
    /// The body.
    pub body: &'a [u8],
    /// The time here, since 1970, for `Retry-After` dates whose answer has no `Date`.
    pub unix_time: Duration,
}

/// Why a request cannot be written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unwritable(pub String);

impl fmt::Display for Unwritable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for Unwritable {}

/// Writes a request, or says why it must not leave: the body does not fit the target, or an
/// address that Azure gave points to another host, where our token must not go.
pub fn write(dialect: &Dialect, request: &Request) -> Result<HttpRequest, Unwritable> {
    request::write(dialect, request)
}

/// How long an answer asks us to wait: the `Retry-After` among these headers, in seconds or as a
/// date, capped at a day. For answers that are not the resource manager's; [`read()`] has it already.
pub fn retry_after(headers: &[(&str, &str)], unix_time: Duration) -> Option<Duration> {
    headers::Headers(headers).retry_after(unix_time)
}

/// Reads the answer to a request.
pub fn read(dialect: &Dialect, request: &Request, answer: HttpAnswer<'_>) -> Reply {
    answer::read(dialect, request, answer)
}
