//! Whose request is it, and may it come in?
//!
//! One host serves what Azure spreads over several: the directory, the metadata services and the
//! resource manager. Paths tell them apart, and so does `/_emulator/`, which Azure does not have. Only
//! the resource manager asks for a token.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue, WWW_AUTHENTICATE};
use http::request::Parts;
use http::uri::Authority;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::timeout;

use crate::answers::arm_error;
use crate::dates::unix_now;
use crate::doors::Caller;
use crate::managed_identity;
use crate::metadata;
use crate::oauth::{self, Directory};
use crate::options::Credentials;
use crate::tokens::{Denied, Tokens};
use crate::wire::Content;
use crate::world::Shared;

/// A body that is too large is read this many times further before we answer: who is still writing
/// would otherwise see a broken connection and never the reason.
const PATIENCE: usize = 8;

/// What stands between the doors and the world.
pub(crate) struct Front {
    pub(crate) world: Shared,
    pub(crate) tokens: Arc<Tokens>,
    pub(crate) credentials: Credentials,
    pub(crate) body_bytes_max: usize,
    pub(crate) body_time: Duration,
}

/// Why there is no body.
enum NoBody {
    TooLarge(usize),
    TooSlow,
    Broken,
}

impl Front {
    /// Answers one request. It may also never return, when a fault says so.
    pub(crate) async fn serve(
        self: Arc<Self>,
        caller: Caller,
        request: Request<Incoming>,
    ) -> Response<Content> {
        let (parts, body) = request.into_parts();
        let origin = origin(&caller, &parts);
        let body = match self.read(body).await {
            Ok(body) => body,
            Err(problem) => return problem.answer(self.body_bytes_max).map(Content::whole),
        };
        let request = Request::from_parts(parts, body);
        self.route(&request, &origin).map(Content::whole)
    }

    fn route(&self, request: &Request<Bytes>, origin: &str) -> Response<Bytes> {
        let path = request.uri().path();
        let query = request.uri().query().unwrap_or("");
        if let Some(host) = managed_identity::host(path) {
            let headers = request.headers();
            return managed_identity::answer(
                &self.tokens,
                unix_now(),
                host,
                request.method(),
                query,
                headers,
            )
            .0;
        }
        if path == "/metadata/instance" {
            return managed_identity::instance(query, request.headers());
        }
        if path == "/metadata/endpoints" {
            return metadata::answer(query, origin);
        }
        if let Some(page) = oauth::page(path) {
            let (tokens, credentials) = (&*self.tokens, &self.credentials);
            let directory = Directory { tokens, credentials, now: unix_now(), origin };
            let content_type = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
            return directory.answer(request.method(), page, content_type, request.body()).0;
        }
        let authorization = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        match self.tokens.principal(unix_now(), authorization, origin) {
            Ok(_) => {
                let answer = self.world.lock().handle(request, origin, None);
                answer.unwrap_or_else(|| {
                    arm_error(StatusCode::INTERNAL_SERVER_ERROR, "InternalServerError", "No answer was made.")
                })
            }
            Err(denied) => unauthorized(&denied, origin),
        }
    }

    async fn read(&self, mut body: Incoming) -> Result<Bytes, NoBody> {
        let reading = async {
            let mut bytes = BytesMut::new();
            let mut seen = 0usize;
            while let Some(frame) = body.frame().await {
                let Ok(data) = frame.map_err(|_| NoBody::Broken)?.into_data() else { continue };
                seen = seen.saturating_add(data.len());
                if seen > self.body_bytes_max.saturating_mul(PATIENCE) {
                    break;
                }
                if seen <= self.body_bytes_max {
                    bytes.extend_from_slice(&data);
                }
            }
            if seen > self.body_bytes_max { Err(NoBody::TooLarge(seen)) } else { Ok(bytes.freeze()) }
        };
        timeout(self.body_time, reading).await.unwrap_or(Err(NoBody::TooSlow))
    }
}

impl NoBody {
    fn answer(&self, most: usize) -> Response<Bytes> {
        match self {
            NoBody::TooLarge(bytes) => {
                let message = format!("The request has {bytes} bytes or more; at most {most} are allowed.");
                arm_error(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", &message)
            }
            NoBody::TooSlow => {
                let message = "The body of the request took too long to arrive.";
                arm_error(StatusCode::REQUEST_TIMEOUT, "RequestTimeout", message)
            }
            NoBody::Broken => {
                let message = "The body of the request could not be read to its end.";
                arm_error(StatusCode::BAD_REQUEST, "InvalidRequestContent", message)
            }
        }
    }
}

/// Scheme, host and port as the client sees them; ours, if it did not say.
fn origin(caller: &Caller, parts: &Parts) -> String {
    let host = parts.headers.get(HOST).and_then(|host| host.to_str().ok());
    let named = (parts.uri.authority().cloned()).or_else(|| Authority::try_from(host?).ok());
    match named {
        // Who puts user names into a host name wants to be sent elsewhere.
        Some(authority) if !authority.as_str().contains('@') => format!("{}://{authority}", caller.scheme),
        _ => format!("{}://{}", caller.scheme, caller.local),
    }
}

fn unauthorized(denied: &Denied, origin: &str) -> Response<Bytes> {
    let mut answer = arm_error(StatusCode::UNAUTHORIZED, denied.code(), &denied.to_string());
    let challenge = format!(
        r#"Bearer authorization_uri="{origin}/common", error="invalid_token", error_description="{}""#,
        denied.code()
    );
    if let Ok(challenge) = HeaderValue::from_str(&challenge) {
        answer.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    }
    answer
}
