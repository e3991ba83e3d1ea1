//! Whose request is it, may it come in, and what goes wrong with it?
//!
//! One host serves what Azure spreads over several: the directory, the metadata services and the
//! resource manager. Paths tell them apart, and so does `/_emulator/`, which Azure does not have. Only
//! the resource manager asks for a token. Every request but those to the control API is in the request log
//! from its arrival on, and may be struck by a fault.

mod faulty;

use std::future::pending;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue, USER_AGENT, WWW_AUTHENTICATE};
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderMap, Request, Response, StatusCode, Version};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::{sleep, timeout};
use tracing::{debug, error};

use crate::answers::arm_error;
use crate::calls::{Described, describe};
use crate::control;
use crate::dates::unix_now;
use crate::doors::{Caller, told};
use crate::faults::{End, Facts, Scope, Strike, What, When};
use crate::managed_identity;
use crate::metadata;
use crate::oauth::{self, Directory};
use crate::options::Credentials;
use crate::request_log::{Entry, Moment, Outcome, cut};
use crate::surface::Handled;
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

/// Which part of the emulator a path leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Area<'a> {
    Identity(managed_identity::Host),
    Instance,
    Endpoints,
    Directory(oauth::Page<'a>),
    Arm,
}

/// A request that may come in, and what is known of it.
#[derive(Clone, Copy)]
struct Asked<'a> {
    request: &'a Request<Bytes>,
    area: Area<'a>,
    described: &'a Described,
    principal: Option<&'a str>,
    origin: &'a str,
}

/// A fault ends a request without an answer.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("a fault ends the request here")]
pub(crate) struct BrokenOff;

/// Why there is no body.
enum NoBody {
    TooLarge(usize),
    TooSlow,
    Broken,
}

/// A request in the log; says so if it goes without an answer.
struct Ticket<'a> {
    front: &'a Front,
    number: u64,
    is_answered: bool,
}

impl Front {
    /// Answers one request. It may also never return, when a fault says so. `Err`: this request breaks off, and
    /// no other on its connection.
    pub(crate) async fn serve(
        self: Arc<Self>,
        caller: Caller,
        request: Request<Incoming>,
    ) -> Result<Response<Content>, BrokenOff> {
        let (parts, body) = request.into_parts();
        let arrived = self.world.lock().clock.moment();
        let body = self.read(body).await;
        if is_control(parts.uri.path()) {
            let answer = match body {
                Ok(body) => control::answer(&self.world, &Request::from_parts(parts, body)),
                Err(problem) => problem.answer(self.body_bytes_max),
            };
            return Ok(answer.map(Content::whole));
        }
        let (origin, path) = (origin(&caller, &parts), parts.uri.path().to_owned());
        let area = Area::of(&path);
        let described = if area == Area::Arm { describe(&parts.method, &path) } else { Described::default() };
        let principal = match area {
            Area::Arm => {
                let authorization = text(&parts.headers, AUTHORIZATION.as_str());
                self.tokens.principal(unix_now(), authorization, &origin).map(Some)
            }
            _ => Ok(None),
        };
        let entry = Entry {
            arrived,
            area: area.word(),
            method: parts.method.to_string(),
            path: path.clone(),
            query: parts.uri.query().unwrap_or("").to_owned(),
            call: described.call,
            kind: described.kind,
            name: described.name.clone(),
            principal: principal.as_ref().ok().cloned().flatten(),
            client_request_id: text(&parts.headers, "x-ms-client-request-id").map(ToOwned::to_owned),
            user_agent: text(&parts.headers, USER_AGENT.as_str()).map(ToOwned::to_owned),
            ..Entry::default()
        };
        // Who asks for a token sends a secret; nobody needs to read that again.
        let kept = body.as_ref().ok().filter(|_| area == Area::Arm);
        let ticket = self.enter(entry, kept);
        let (principal, body) = match (principal, body) {
            (Ok(principal), Ok(body)) => (principal, body),
            (Err(denied), _) => {
                return Ok(ticket.answer(unauthorized(&denied, &origin), None).map(Content::whole));
            }
            (_, Err(problem)) => {
                return Ok(ticket.answer(problem.answer(self.body_bytes_max), None).map(Content::whole));
            }
        };
        let request = &Request::from_parts(parts, body);
        let (described, principal, origin) = (&described, principal.as_deref(), origin.as_str());
        let asked = Asked { request, area, described, principal, origin };
        self.strike_and_serve(ticket, &caller, &asked).await
    }

    async fn strike_and_serve(
        &self,
        ticket: Ticket<'_>,
        caller: &Caller,
        asked: &Asked<'_>,
    ) -> Result<Response<Content>, BrokenOff> {
        let Asked { request, area, described, principal, origin } = *asked;
        let Strike { before, after, what } = self.world.lock().faults.strike(&Facts {
            area: area.word(),
            method: request.method().as_str(),
            path: request.uri().path(),
            call: described.call,
            kind: described.kind,
            name: described.name.as_deref(),
            principal,
        });
        if let Some((rule, what)) = &what {
            debug!(rule, fault = what.word(), path = request.uri().path(), "a fault strikes");
            ticket.note(|entry| entry.fault = Some((*rule, what.word())));
        }
        wait(before).await;
        let what = what.map(|(_, what)| what);
        if let Some((when, end)) = what.as_ref().and_then(What::end) {
            if when == When::After {
                self.carry_out(&ticket, asked, what.as_ref());
                wait(after).await;
            }
            return Err(ticket.end(end, request.version(), caller).await);
        }
        let instead =
            what.as_ref().and_then(|what| faulty::instead(what, request, origin, area == Area::Arm));
        let answer = instead.unwrap_or_else(|| self.carry_out(&ticket, asked, what.as_ref()));
        wait(after).await;
        let (answer, is_whole) = faulty::changed(answer, what.as_ref());
        let answer =
            ticket.answer(answer, described.name.as_deref().filter(|_| described.call == Some("Poll")));
        Ok(if is_whole { answer.map(Content::whole) } else { answer.map(Content::broken_off) })
    }

    /// Does what the request asks for.
    fn carry_out(&self, ticket: &Ticket<'_>, asked: &Asked<'_>, what: Option<&What>) -> Response<Bytes> {
        let Asked { request, area, origin, principal, .. } = *asked;
        let query = request.uri().query().unwrap_or("");
        match area {
            Area::Identity(host) => {
                let (method, headers) = (request.method(), request.headers());
                let (answer, client) =
                    managed_identity::answer(&self.tokens, unix_now(), host, method, query, headers);
                ticket.note_client(client);
                answer
            }
            Area::Instance => managed_identity::instance(query, request.headers()),
            Area::Endpoints => metadata::answer(query, origin),
            Area::Directory(page) => {
                let (tokens, credentials) = (&*self.tokens, &self.credentials);
                let directory = Directory { tokens, credentials, now: unix_now(), origin };
                let content_type = text(request.headers(), CONTENT_TYPE.as_str());
                let (answer, client) = directory.answer(request.method(), page, content_type, request.body());
                ticket.note_client(client);
                answer
            }
            Area::Arm => self.ask_the_cloud(ticket, principal.unwrap_or(""), request, origin, what),
        }
    }

    fn ask_the_cloud(
        &self,
        ticket: &Ticket<'_>,
        principal: &str,
        request: &Request<Bytes>,
        origin: &str,
        what: Option<&What>,
    ) -> Response<Bytes> {
        let failed = |code: &str, message: &str| arm_error(StatusCode::INTERNAL_SERVER_ERROR, code, message);
        // A mistake of ours must not take the connection, let alone the process, with it.
        let handled =
            catch_unwind(AssertUnwindSafe(|| self.world.lock().handle(principal, request, origin, what)));
        match handled {
            Ok(Ok(Handled { answer, call, .. })) => {
                if let Some(call) = call {
                    ticket.note(|entry| entry.kind = Some(call.kind));
                }
                answer.unwrap_or_else(|| failed("InternalServerError", "The emulator made no answer."))
            }
            Ok(Err(problem)) => failed("StateNotSaved", &problem.message),
            Err(_) => {
                error!(method = %request.method(), uri = %request.uri(), "the emulator panicked over a request");
                failed("InternalServerError", "The emulator has a bug: it panicked over this request.")
            }
        }
    }

    /// Writes a request into the log.
    fn enter(&self, entry: Entry, body: Option<&Bytes>) -> Ticket<'_> {
        let body = body.cloned().unwrap_or_default();
        Ticket { front: self, number: self.world.lock().log.arrive(entry, body), is_answered: false }
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

impl Area<'_> {
    fn of(path: &str) -> Area<'_> {
        if let Some(host) = managed_identity::host(path) {
            return Area::Identity(host);
        }
        match path {
            "/metadata/instance" => Area::Instance,
            "/metadata/endpoints" => Area::Endpoints,
            _ => oauth::page(path).map_or(Area::Arm, Area::Directory),
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Area::Identity(_) => "identity",
            Area::Instance | Area::Endpoints => "metadata",
            Area::Directory(_) => "token",
            Area::Arm => "arm",
        }
    }
}

impl Ticket<'_> {
    fn note(&self, note: impl FnOnce(&mut Entry)) {
        if let Some(entry) = self.front.world.lock().log.entry_mut(self.number) {
            note(entry);
        }
    }

    /// Writes down who got a token.
    fn note_client(&self, mut client: Option<String>) {
        client.iter_mut().for_each(cut);
        self.note(|entry| entry.principal = client);
    }

    /// Writes down what came of it. `polled` is the operation that was asked for.
    fn answer(mut self, answer: Response<Bytes>, polled: Option<&str>) -> Response<Bytes> {
        let outcome = faulty::outcome(&answer, polled);
        self.close(outcome);
        answer
    }

    /// Ends it without an answer. HTTP/2 can break off one request; all that HTTP/1 has is its connection.
    async fn end(mut self, end: End, version: Version, caller: &Caller) -> BrokenOff {
        match end {
            End::Reset(_) => self.close(Outcome::default()),
            // In the log it hangs until its client has had enough, or until we stop.
            End::Hang => told(&mut caller.stop.clone()).await,
        }
        if version == Version::HTTP_2 && end != End::Reset(Scope::Connection) {
            return BrokenOff;
        }
        caller.scissors.reset();
        pending().await
    }

    fn close(&mut self, outcome: Outcome) {
        self.is_answered = true;
        let mut world = self.front.world.lock();
        let at: Moment = world.clock.moment();
        let running = outcome.operation.as_deref().and_then(|operation| {
            world.surface.cloud().running().find(|it| it.id.name().eq_ignore_ascii_case(operation))
        });
        let operation_ends_ms = running.and_then(|it| it.ends).map(|ends| ends.as_millis());
        if let Some(entry) = world.log.entry_mut(self.number) {
            entry.outcome = Some(Outcome { at, operation_ends_ms, ..outcome });
        }
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            self.close(Outcome::default());
        }
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

fn is_control(path: &str) -> bool {
    path.strip_prefix(control::ROOT).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

async fn wait(time: Duration) {
    if !time.is_zero() {
        sleep(time).await;
    }
}

/// Scheme, host and port as the client sees them; ours, if it did not say.
fn origin(caller: &Caller, parts: &Parts) -> String {
    let host = text(&parts.headers, HOST.as_str());
    let named = (parts.uri.authority().cloned()).or_else(|| Authority::try_from(host?).ok());
    match named {
        // Who puts user names into a host name wants to be sent elsewhere.
        Some(authority) if !authority.as_str().contains('@') => format!("{}://{authority}", caller.scheme),
        _ => format!("{}://{}", caller.scheme, caller.local),
    }
}

/// The resource manager's 401.
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
