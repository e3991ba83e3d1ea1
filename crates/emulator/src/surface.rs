//! The resource manager's surface: one HTTP request in, one HTTP answer out. No sockets, no clock.
//!
//! The model of the cloud decides: what may refer to what, what is refused, how long something takes. Beside
//! it every resource has a document, so that what a client sent and the model has no use for comes back as
//! it was. An answer is the document with the model's facts laid over it.
//!
//! A request goes through these rooms:
//!
//! ```text
//! route     which path, which method, which version          refused here: no such path, version, method
//! body      bytes to JSON                                     length, media type, syntax
//! top       what every resource has outside of properties    location, tags, sku, unknown members
//! kinds     properties to the model's body and a document     types, values, what is not emulated
//! (cloud)   the model                                          references, locks, limits, versions, conflicts
//! kinds     the model's answer and the document to JSON
//! headers   what every answer carries
//! ```
//!
//! Whatever a client sends, the answer is well formed and nothing panics; a refused request has changed
//! nothing. Authorization is checked before anything gets here. `SUPPORT.md` says what is served.

mod body;
mod document;
mod fields;
mod full_update;
mod headers;
mod kinds;
mod locations;
mod operation;
mod prefix;
mod refused;
mod route;
mod serve;
mod services;
mod show;
mod top;
mod usages;
mod write;

use bytes::Bytes;
use http::{Request, Response};
use sluice_cloud::{Cloud, Config, Fault};
use sluice_model::Time;
use sluice_model::call::Method;

pub(crate) use route::{is_group, is_subscription};

use document::Documents;
use serve::Turn;

/// The resource manager as HTTP sees it: the cloud model, and the JSON documents beside it.
#[derive(Clone, Debug)]
pub struct Surface {
    cloud: Cloud,
    documents: Documents,
    body_bytes_max: usize,
    /// How many requests there have been, for ids of answers.
    requests: u64,
    /// Somebody has been at the model behind our back.
    is_tampered: bool,
}

/// What became of one HTTP request.
#[derive(Debug)]
pub struct Handled {
    /// The answer; `None`: nothing must come back (the connection is dropped).
    pub answer: Option<Response<Bytes>>,
    /// What it was for the model, or would have been; `None` if its path leads nowhere.
    pub call: Option<Call>,
    /// The cloud may have changed, so the request belongs into the journal.
    pub is_write: bool,
}

/// What a request was for the model.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Call {
    /// What it did.
    pub method: Method,
    /// The kind that it was about, as it stands in ids: `loadBalancers`.
    pub kind: &'static str,
}

impl Surface {
    /// An empty cloud.
    pub fn new(config: Config) -> Surface {
        Surface {
            body_bytes_max: config.body_bytes_max,
            cloud: Cloud::new(config),
            documents: Documents::default(),
            requests: 0,
            is_tampered: false,
        }
    }

    /// Takes one request at a time of the emulated clock. `origin` is scheme, host and port as
    /// the client sees them, for links; `time_factor` turns emulated waits into real ones.
    pub fn handle(
        &mut self,
        now: Time,
        request: &Request<Bytes>,
        origin: &str,
        time_factor: f64,
        fault: Option<&Fault>,
    ) -> Handled {
        self.requests = self.requests.wrapping_add(1);
        self.cloud.advance(now);
        if std::mem::take(&mut self.is_tampered) {
            self.documents.forget_missing(self.cloud.state());
        }
        self.documents.forget_deleted(self.cloud.state());
        let turn = Turn { now, request, origin, time_factor, fault };
        let (served, call) = self.serve(&turn);
        let is_reading = matches!(*request.method(), http::Method::GET | http::Method::HEAD);
        let is_refused = served.as_ref().is_some_and(|out| out.status >= 400);
        let answer = served.map(|out| {
            let mut answer = headers::finish(out, request, now, self.requests);
            if request.method() == http::Method::HEAD {
                *answer.body_mut() = Bytes::new();
            }
            answer
        });
        Handled { answer, is_write: call.is_some() && !is_reading && !is_refused, call }
    }

    /// Who pays for the requests from now on: everybody has call limits of their own in every subscription.
    pub fn set_payer(&mut self, principal: &str) {
        self.cloud.set_payer(principal);
    }

    /// The model.
    pub fn cloud(&self) -> &Cloud {
        &self.cloud
    }

    /// The model, for the control API.
    pub fn cloud_mut(&mut self) -> &mut Cloud {
        self.is_tampered = true;
        &mut self.cloud
    }
}

/// Every path that is served, with the methods that it has: the table in `SUPPORT.md`.
pub fn served() -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    route::ROUTES.iter().map(|route| (route.path, route.deeds.iter().map(|(method, _)| *method).collect()))
}
