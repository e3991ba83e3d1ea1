//! Sends one request once and gives what came back.
//!
//! ```text
//! Request ─▶ arm_wire::write ─▶ token ─▶ may begin? ─▶ connection ─▶ answer ─▶ body ─▶ arm_wire::read ─▶ Reply
//!                  │               │          │             │           │        │
//!                  └── NotSent ◀───┴──────────┴─────────────┘           └────────┴──▶ Lost
//! ```
//!
//! Everything together ends within one limit. A 401 is the one answer that is read here and not
//! by the updaters, because only here is known how old the token was: the first of a streak is
//! `NotSent`, since Azure did not look at the request and the next call has another token. And an
//! issuer that refuses our credential is answered for here, with the 401 that Azure would give:
//! nothing was sent, but only people can help.
//!
//! Missing on purpose: retries, polls, pages, waits. The updaters decide those, without I/O.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, IF_MATCH};
use sluice_arm_wire::{Dialect, HttpAnswer, HttpRequest};
use sluice_model::Failure;
use sluice_model::call::{Answer, ArmError, Payload, Reply, Request};
use tokio::time::{Instant, timeout_at};
use url::Url;

use crate::connection::{self, origin_name, readable};
use crate::credential::Issuer;
use crate::error::{NoCredential, SetupError};
use crate::record::{self, CallRecord, Observer, Outcome};
use crate::settings::{Limits, Settings};
use crate::tokens::{Bearer, Refusal, Tokens};
use crate::trouble::{Fate, Peer, Trouble};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const CLIENT_REQUEST_ID: &str = "x-ms-client-request-id";

/// A connection to one resource manager with one credential. Cheap to clone, and meant to be
/// shared: all clones have one pool of connections and one token.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    http: reqwest::Client,
    dialect: Dialect,
    endpoint: Url,
    /// Host and port, for messages.
    host: String,
    proxy: Option<String>,
    limits: Limits,
    tokens: Tokens,
    observer: Option<Box<dyn Observer>>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("endpoint", &self.inner.endpoint.as_str()).finish_non_exhaustive()
    }
}

impl Client {
    /// A client for these settings. Connects to nobody yet.
    pub fn new(settings: &Settings) -> Result<Client, SetupError> {
        Client::make(settings, None)
    }

    /// The same, with somebody who wants to know of every call.
    pub fn observed(settings: &Settings, observer: impl Observer + 'static) -> Result<Client, SetupError> {
        Client::make(settings, Some(Box::new(observer)))
    }

    fn make(settings: &Settings, observer: Option<Box<dyn Observer>>) -> Result<Client, SetupError> {
        let places = settings.places()?;
        let connections = connection::open(settings, &places.endpoint)?;
        let issuer = Issuer::new(settings, &places, &connections)?;
        let host = origin_name(&places.endpoint);
        let dialect = Dialect {
            endpoint: places.endpoint.as_str().trim_end_matches('/').into(),
            api_version: settings.api_version.clone(),
            region: settings.region.clone(),
            virtual_network: settings.virtual_network.clone(),
        };
        tracing::info!(
            resource_manager = %dialect.endpoint,
            authority = %places.authority,
            credential = settings.credential.word(),
            api_version = %dialect.api_version,
            proxy = connections.proxy.as_deref(),
            "created the Azure client"
        );
        Ok(Client {
            inner: Arc::new(Inner {
                http: connections.resource_manager,
                dialect,
                endpoint: places.endpoint,
                host,
                proxy: connections.proxy,
                limits: settings.limits.clone(),
                tokens: Tokens::new(issuer, &settings.limits),
                observer,
            }),
        })
    }

    /// Host and port of the resource manager.
    pub fn host(&self) -> &str {
        &self.inner.host
    }

    /// Fetches a token if there is none: tells at start whether the credential works.
    pub async fn warm_up(&self) -> Result<(), NoCredential> {
        let bearer = self.inner.tokens.bearer().await;
        bearer.map(|_| ()).map_err(|why| NoCredential { text: why.text.clone(), is_refused: why.for_people })
    }

    /// Reads a document that the loop's contract has no words for: a quota, what we may do. For people who
    /// look for what is wrong; the loop never asks. The error is a sentence for them.
    pub async fn read_document(&self, path_and_query: &str) -> Result<Document, String> {
        let started = Instant::now();
        let mut record = CallRecord::begun("get", "other", path_of(path_and_query));
        let read = self.inner.document(path_and_query, &mut record, started).await;
        record.took = started.elapsed();
        if let Err(trouble) = &read {
            record.outcome = match trouble.fate {
                Fate::NotSent | Fate::Denied => Outcome::NotSent(trouble.word),
                Fate::Lost => Outcome::Lost(trouble.word),
            };
        }
        record.log();
        read.map_err(|trouble| trouble.text)
    }

    /// Sends one request once and gives what came back. Never takes longer than its limit.
    pub async fn send(&self, request: &Request) -> Reply {
        self.send_while(request, || true).await
    }

    /// The same, for a caller whose leave to send may end while a token is fetched. It is asked once,
    /// when nothing but the connection is missing; what comes after takes no longer than the connect
    /// limit to leave.
    pub async fn send_while(&self, request: &Request, may_begin: impl FnOnce() -> bool + Send) -> Reply {
        let started = Instant::now();
        let mut record = CallRecord::begun(
            record::method_word(request.method),
            record::kind_word(request),
            path_of(request.target.as_str()),
        );
        let reply = match self.inner.call(request, may_begin, &mut record, started).await {
            Ok(reply) => reply,
            Err(trouble) => {
                let (outcome, reply) = match trouble.fate {
                    Fate::NotSent => (Outcome::NotSent(trouble.word), Reply::not_sent(&trouble.text)),
                    Fate::Denied => (Outcome::NotSent(trouble.word), denied(&trouble.text)),
                    Fate::Lost => (Outcome::Lost(trouble.word), Reply::lost(&trouble.text)),
                };
                record.outcome = outcome;
                reply
            }
        };
        record.took = started.elapsed();
        if let Reply::Answered(answer) = &reply {
            record.remaining = answer.remaining;
            record.retry_after = answer.retry_after;
        }
        record.log();
        if let Some(observer) = &self.inner.observer {
            observer.called(&record);
        }
        reply
    }
}

/// What Azure says about something outside of the loop's contract.
#[derive(Clone, PartialEq, Debug)]
pub struct Document {
    /// The HTTP status.
    pub status: u16,
    /// When Azure says that it is, as its `Date` header has it.
    pub date: Option<String>,
    /// What came, as JSON; `null` if it is none.
    pub body: serde_json::Value,
}

/// An answer with all of its body.
struct Received {
    status: u16,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Inner {
    async fn call(
        &self,
        request: &Request,
        may_begin: impl FnOnce() -> bool + Send,
        record: &mut CallRecord,
        started: Instant,
    ) -> Result<Reply, Trouble> {
        let (written, url) = self.write(request)?;
        record.path = url.path().to_owned();
        record.bytes_sent = written.body.as_ref().map_or(0, Vec::len);
        let deadline = started + self.limits.answer;
        let bearer = self.bearer(deadline).await?;
        if !may_begin() {
            let text = "request not sent: canceled before it started".to_owned();
            return Err(Trouble { fate: Fate::NotSent, word: "called-off", text });
        }

        let exchange = self.exchange(&written, url, &bearer, record);
        let received = match timeout_at(deadline, exchange).await {
            Ok(received) => received?,
            Err(_) => return Err(Trouble::no_answer(&self.host, self.limits.answer)),
        };

        record.outcome = Outcome::Answered(received.status);
        let header = |name: &str| received.headers.get(name).and_then(|value| value.to_str().ok());
        record.request_id = header("x-ms-request-id").map(str::to_owned);
        record.correlation_id = header("x-ms-correlation-request-id").map(str::to_owned);
        if received.status == 401 && self.tokens.refused(bearer.number) == Refusal::OldToken {
            let text = format!(
                "{} did not accept the token and did not process the request; the next attempt uses a new token",
                self.host
            );
            return Err(Trouble { fate: Fate::NotSent, word: "token-refused", text });
        }
        let reply = self.read(request, &received);
        if matches!(reply, Reply::Lost(_)) {
            record.outcome = Outcome::Unreadable(received.status);
        } else if has_looked_at_the_token(&reply, received.status) {
            self.tokens.accepted(bearer.number);
        }
        Ok(reply)
    }

    async fn document(
        &self,
        path_and_query: &str,
        record: &mut CallRecord,
        started: Instant,
    ) -> Result<Document, Trouble> {
        let unwritable = || Trouble {
            fate: Fate::NotSent,
            word: "unwritable",
            text: format!("request not sent: {path_and_query} is not a path on {}", self.host),
        };
        let url = self.endpoint.join(path_and_query).map_err(|_| unwritable())?;
        // The token goes along, so it must go to nobody else.
        if url.origin() != self.endpoint.origin() {
            return Err(unwritable());
        }
        let deadline = started + self.limits.answer;
        let bearer = self.bearer(deadline).await?;
        let asked = HttpRequest { method: "GET", url: url.to_string(), if_match: None, body: None };
        let exchange = self.exchange(&asked, url, &bearer, record);
        let received = timeout_at(deadline, exchange)
            .await
            .map_err(|_| Trouble::no_answer(&self.host, self.limits.answer))??;
        record.outcome = Outcome::Answered(received.status);
        Ok(Document {
            status: received.status,
            date: received.headers.get("date").and_then(|it| it.to_str().ok()).map(str::to_owned),
            body: serde_json::from_slice(&received.body).unwrap_or_default(),
        })
    }

    /// The request as HTTP, or why it must not leave.
    fn write(&self, request: &Request) -> Result<(HttpRequest, Url), Trouble> {
        let unwritable = |why: &str| Trouble {
            fate: Fate::NotSent,
            word: "unwritable",
            text: format!("request not sent: {why}"),
        };
        let written = sluice_arm_wire::write(&self.dialect, request).map_err(|error| unwritable(&error.0))?;
        let url = Url::parse(&written.url).map_err(|error| unwritable(&format!("invalid URL ({error})")))?;
        // The wire has looked already; this is the last place before the token goes along.
        if url.origin() != self.endpoint.origin() {
            return Err(unwritable(&format!(
                "its URL points to {} instead of {}",
                origin_name(&url),
                self.host
            )));
        }
        Ok((written, url))
    }

    async fn bearer(&self, deadline: Instant) -> Result<Bearer, Trouble> {
        let none = |fate: Fate, word: &'static str, why: &str| Trouble {
            fate,
            word,
            text: format!("no token for {}: {why}", self.host),
        };
        match timeout_at(deadline, self.tokens.bearer()).await {
            Ok(bearer) => bearer.map_err(|why| match why.for_people {
                true => none(Fate::Denied, "token-denied", &why.text),
                false => none(Fate::NotSent, "token", &why.text),
            }),
            Err(_) => Err(none(Fate::NotSent, "token", "timed out; check the network to the token issuer")),
        }
    }

    async fn exchange(
        &self,
        written: &HttpRequest,
        url: Url,
        bearer: &Bearer,
        record: &mut CallRecord,
    ) -> Result<Received, Trouble> {
        let method =
            reqwest::Method::from_bytes(written.method.as_bytes()).expect("a method is a plain word");
        let mut ours = self
            .http
            .request(method, url)
            .header(AUTHORIZATION, bearer.header.clone())
            .header(ACCEPT, JSON)
            .header(CLIENT_REQUEST_ID, record.client_request_id.as_str());
        if let Some(etag) = &written.if_match {
            ours = ours.header(IF_MATCH, etag.as_str());
        }
        if let Some(body) = &written.body {
            record::log_body("sent", &record.client_request_id, body);
            ours = ours.header(CONTENT_TYPE, JSON).body(body.clone());
        } else if written.method == "POST" {
            ours = ours.body(Vec::new());
        }
        let peer = Peer {
            host: &self.host,
            proxy: self.proxy.as_deref().filter(|_| !crate::settings::is_near(&self.endpoint)),
            setting: "resourceManagerEndpoint",
            connect_limit: self.limits.connect,
        };
        let mut answer = ours.send().await.map_err(|error| Trouble::of(&error, peer))?;
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(|error| Trouble::in_body(&error, &self.host))? {
            record.bytes_received += chunk.len();
            if record.bytes_received > self.limits.body_bytes_max {
                return Err(Trouble::too_large(&self.host, self.limits.body_bytes_max));
            }
            body.extend_from_slice(&chunk);
        }
        record::log_body("received", &record.client_request_id, &body);
        Ok(Received { status: answer.status().as_u16(), headers: answer.headers().clone(), body })
    }

    fn read(&self, request: &Request, received: &Received) -> Reply {
        let headers = readable(&received.headers);
        let answer = HttpAnswer {
            status: received.status,
            headers: &headers,
            body: &received.body,
            unix_time: SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO),
        };
        sluice_arm_wire::read(&self.dialect, request, answer)
    }
}

/// What Azure itself would say to a credential that its issuer refuses.
fn denied(why: &str) -> Reply {
    let error = ArmError { code: "AuthenticationFailed".into(), message: why.into() };
    Reply::Answered(Answer::new(401, Payload::Error(error)))
}

/// Whether an answer proves that Azure took the token. A page of somebody on the way does not, and
/// neither does a front door that is in trouble: it may not have come to the token yet.
fn has_looked_at_the_token(reply: &Reply, status: u16) -> bool {
    status != 401 && status < 500 && Failure::in_reply(reply).is_none_or(|failure| failure.is_azures())
}

/// The path of an id or of an absolute URL, without the query.
fn path_of(target: &str) -> String {
    let path = target.split(['?', '#']).next().unwrap_or_default();
    Url::parse(path).map_or_else(|_| path.to_owned(), |url| url.path().to_owned())
}
