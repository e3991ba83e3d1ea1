//! What goes over the wire: ARM's JSON, a request as HTTP parts, an HTTP answer as a reply.
//!
//! Pure functions: no socket, no clock.
#![no_std]

extern crate alloc;

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

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

/// Writes a request, or says why it must not leave (an address that Azure gave points elsewhere).
pub fn write(_dialect: &Dialect, _request: &Request) -> Result<HttpRequest, Unwritable> {
    Err(Unwritable(String::new()))
}

/// Reads the answer to a request.
pub fn read(_dialect: &Dialect, _request: &Request, _answer: HttpAnswer<'_>) -> Reply {
    Reply::lost("")
}
