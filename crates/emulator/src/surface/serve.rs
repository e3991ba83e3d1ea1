//! What becomes of a request that has found its way, and how it is read.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::Request;
use serde_json::{Value, json};
use sluice_cloud::{Fault, Outcome};
use sluice_model::Time;
use sluice_model::azure::ArmId;
use sluice_model::call::{
    Answer, ArmError, Method, OperationState, PageToken, Payload, Reply, Request as ModelRequest,
};

use super::document::begins_with;
use super::headers::Out;
use super::kinds::{View, group};
use super::refused::{By, Refused, real_wait};
use super::route::{self, Deed, Kind, Routed};
use super::show::{self, Fresh};
use super::{Call, Surface, operation, usages};

/// How long, in emulated time, a client should wait between two looks at a `Location`.
const BETWEEN_LOOKS: Duration = Duration::from_secs(2);

/// One request with all that surrounds it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn<'a> {
    pub(crate) now: Time,
    pub(crate) request: &'a Request<Bytes>,
    pub(crate) origin: &'a str,
    pub(crate) time_factor: f64,
    pub(crate) fault: Option<&'a Fault>,
}

impl<'a> Turn<'a> {
    /// The fault as far as it is the model's affair. A request that is carried out and never answered has
    /// to be written down like any other, so its answer gets lost here.
    pub(crate) fn models_fault(&self) -> Option<&'a Fault> {
        self.fault.filter(|fault| **fault != Fault::AppliedButLost)
    }
}

/// What the model says, and the details of its refusal.
pub(crate) struct Told {
    answer: Answer,
    details: Vec<ArmError>,
    /// The wait that it asks for, to the millisecond, where the model reckoned it.
    wait: Option<Duration>,
}

impl Told {
    pub(crate) fn from(outcome: Outcome) -> Result<Told, Ended> {
        match outcome.reply {
            Reply::Answered(answer) => Ok(Told { answer, details: outcome.details, wait: outcome.wait }),
            Reply::NotSent(_) | Reply::Lost(_) => Err(Ended::Silent),
        }
    }
}

/// How a request can end early: with an answer, with a refusal of ours, or with silence.
pub(crate) enum Ended {
    Answered(Box<Out>),
    Refused(Box<Refused>),
    Silent,
}

impl From<Refused> for Ended {
    fn from(refused: Refused) -> Ended {
        Ended::Refused(Box::new(refused))
    }
}

impl Surface {
    /// Serves one request; without an answer, nothing comes back.
    pub(crate) fn serve(&mut self, turn: &Turn<'_>) -> (Option<Out>, Option<Call>) {
        let routed = match route::find(turn.request.method(), turn.request.uri()) {
            Ok(routed) => routed,
            Err(_) if matches!(turn.fault, Some(Fault::NotSent | Fault::LostUnapplied)) => {
                return (None, None);
            }
            Err(refused) => return (Some(refusal(&refused)), None),
        };
        let call = Call { method: routed.deed.call(), kind: routed.kind.word() };
        let ended = match turn.fault {
            // These strike before anybody has looked at the body.
            Some(Fault::NotSent | Fault::LostUnapplied | Fault::Refuse { .. } | Fault::ErrorIn200) => {
                self.ask(turn, &self.bare(&routed)).map(|told| self.plain(turn, &routed, &told))
            }
            _ => self.act(turn, &routed),
        };
        let out = match ended {
            Ok(out) => Some(out),
            Err(Ended::Answered(out)) => Some(*out),
            Err(Ended::Silent) => None,
            Err(Ended::Refused(refused)) => Some(self.refuse(turn, &routed, &refused)),
        };
        (out.filter(|_| turn.fault != Some(&Fault::AppliedButLost)), Some(call))
    }

    fn act(&mut self, turn: &Turn<'_>, routed: &Routed) -> Result<Out, Ended> {
        match routed.deed {
            Deed::Read => self.read(turn, routed),
            Deed::Exists => self.look(turn, routed),
            Deed::List if routed.kind == Kind::Group => self.list_groups(turn, routed),
            Deed::List if routed.kind == Kind::Usage => self.list_usages(turn, routed),
            Deed::List => self.list(turn, routed),
            Deed::Write => self.write(turn, routed),
            Deed::Tag => self.tag(turn, routed),
            Deed::Delete => self.delete(turn, routed),
            Deed::UpdateServices | Deed::UpdateLocations => self.post(turn, routed),
            Deed::Poll | Deed::Result | Deed::GroupResult => self.poll(turn, routed),
        }
    }

    pub(crate) fn view(&self) -> View<'_> {
        View { cloud: &self.cloud, documents: &self.documents }
    }

    /// The request without a body.
    pub(crate) fn bare(&self, routed: &Routed) -> ModelRequest {
        ModelRequest::bare(routed.deed.call(), routed.target.clone())
    }

    pub(crate) fn ask(&mut self, turn: &Turn<'_>, request: &ModelRequest) -> Result<Told, Ended> {
        Told::from(self.cloud.handle_fully(turn.now, request, turn.models_fault()))
    }

    /// The answer of the model if it is not a refusal; a refusal goes out as it is.
    pub(crate) fn accepted(&self, turn: &Turn<'_>, routed: &Routed, told: Told) -> Result<Answer, Ended> {
        match &told.answer.payload {
            Payload::Error(_) => Err(Ended::Answered(Box::new(self.plain(turn, routed, &told)))),
            _ => Ok(told.answer),
        }
    }

    /// An answer without a body of its own, or an error.
    fn plain(&self, turn: &Turn<'_>, routed: &Routed, told: &Told) -> Out {
        let answer = &told.answer;
        let Payload::Error(error) = &answer.payload else {
            return self.paid(routed, answer, answer.status, None);
        };
        let mut refused = Refused::from_model(answer.status, error, &told.details, turn);
        // Who orders a refusal orders its header too; that is the one wait that nobody reckoned.
        let wait = told.wait.map(|wait| real_wait(wait, turn.time_factor));
        if let Some(wait) = wait {
            refused.say_wait(wait);
        }
        let mut out = refusal(&refused);
        out.retry_after = wait.or(answer.retry_after);
        if refused.by == By::Provider || answer.status == 429 {
            out.remaining = Some((routed.deed.call().bucket(), answer.remaining));
        }
        out
    }

    /// Refuses a request that the model has not seen. It costs as much as any other.
    fn refuse(&mut self, turn: &Turn<'_>, routed: &Routed, refused: &Refused) -> Out {
        let mut out = refusal(refused);
        let charged = self.cloud.charge(turn.now, &payable(routed), routed.deed.call());
        if refused.by == By::Provider {
            let left = charged.unwrap_or(Some(0));
            out.remaining = Some((routed.deed.call().bucket(), left));
        }
        out
    }

    /// An answer that says what is left of the bucket that paid for it.
    pub(crate) fn paid(&self, routed: &Routed, answer: &Answer, status: u16, body: Option<Value>) -> Out {
        let remaining = Some((routed.deed.call().bucket(), answer.remaining));
        Out { remaining, ..Out::new(status, body) }
    }

    fn read(&mut self, turn: &Turn<'_>, routed: &Routed) -> Result<Out, Ended> {
        let told = self.ask(turn, &self.bare(routed))?;
        let answer = self.accepted(turn, routed, told)?;
        let shown = show::resource(self.view(), routed.kind, &answer.payload, Fresh::default());
        let shown = shown.ok_or_else(Refused::internal)?;
        let out = self.paid(routed, &answer, answer.status, Some(shown.body));
        Ok(match shown.etag {
            Some(etag) => out.with("etag", &*etag.0),
            None => out,
        })
    }

    fn look(&mut self, turn: &Turn<'_>, routed: &Routed) -> Result<Out, Ended> {
        let told = self.ask(turn, &self.bare(routed))?;
        let answer = self.accepted(turn, routed, told)?;
        Ok(self.paid(routed, &answer, 204, None))
    }

    fn list(&mut self, turn: &Turn<'_>, routed: &Routed) -> Result<Out, Ended> {
        let mut request = self.bare(routed);
        request.page = match &routed.page {
            None => None,
            Some(text) => Some(read_page(text).ok_or_else(|| Refused::bad_page(text))?),
        };
        let told = self.ask(turn, &request)?;
        let answer = self.accepted(turn, routed, told)?;
        let (items, next) = show::page(self.view(), &answer.payload).ok_or_else(Refused::internal)?;
        let next = next.map(|token| next_link(turn, routed, &token));
        Ok(self.paid(routed, &answer, answer.status, Some(show::list(items, next))))
    }

    /// Groups are listed from the state, all of them at once.
    fn list_groups(&mut self, turn: &Turn<'_>, routed: &Routed) -> Result<Out, Ended> {
        let answer = self.charge(turn, routed)?;
        let head = format!("{}/", routed.target);
        let groups = self.cloud.state().groups.iter().filter(|id| begins_with(id, &head));
        let shown = groups.map(|id| group::show(self.view(), id, self.documents.newest(id))).collect();
        Ok(self.paid(routed, &answer, 200, Some(show::list(shown, None))))
    }

    fn list_usages(&mut self, turn: &Turn<'_>, routed: &Routed) -> Result<Out, Ended> {
        let answer = self.charge(turn, routed)?;
        let region = routed.region.as_deref().unwrap_or("");
        let shown = usages::show(&self.cloud, &routed.subscription, region);
        Ok(self.paid(routed, &answer, 200, Some(show::list(shown, None))))
    }

    /// Pays for a read that the model does not serve itself.
    fn charge(&mut self, turn: &Turn<'_>, routed: &Routed) -> Result<Answer, Ended> {
        let answer = match self.cloud.charge(turn.now, &routed.target, Method::List) {
            Ok(remaining) => Answer { remaining, ..Answer::new(200, Payload::None) },
            Err(outcome) => self.accepted(turn, routed, Told::from(*outcome)?)?,
        };
        if turn.fault == Some(&Fault::FailPage) {
            return Err(Refused::failed_page().into());
        }
        Ok(answer)
    }

    fn poll(&mut self, turn: &Turn<'_>, routed: &Routed) -> Result<Out, Ended> {
        let name = routed.operation.as_deref().unwrap_or("");
        let id = match routed.deed {
            Deed::GroupResult => operation::of_job(&routed.subscription, name),
            _ => Some(operation::id(&routed.subscription, routed.region.as_deref().unwrap_or(""), name)),
        };
        let id = id.ok_or_else(|| Refused::no_operation(name))?;
        let told = self.ask(turn, &ModelRequest::bare(Method::Poll, id))?;
        let answer = self.accepted(turn, routed, told)?;
        let Payload::Operation(state) = &answer.payload else { return Err(Refused::internal().into()) };
        if routed.deed == Deed::Poll {
            return Ok(self.paid(routed, &answer, 200, Some(status_body(state, turn))));
        }
        Ok(match state {
            OperationState::Running => {
                let uri = turn.request.uri();
                let again = uri.path_and_query().map_or(uri.path(), |it| it.as_str());
                let out = self.paid(routed, &answer, 202, None);
                let out = out.with("location", format!("{}{again}", turn.origin));
                Out { retry_after: Some(real_wait(BETWEEN_LOOKS, turn.time_factor)), ..out }
            }
            OperationState::Succeeded => {
                let status = if routed.deed == Deed::GroupResult { 200 } else { 204 };
                self.paid(routed, &answer, status, None)
            }
            OperationState::Failed(error) | OperationState::Canceled(error) => {
                let refused = Refused::from_model(409, error, &[], turn);
                self.paid(routed, &answer, refused.status, Some(refused.body()))
            }
        })
    }
}

/// What a request is paid for at; of a poll the route knows the subscription alone.
fn payable(routed: &Routed) -> ArmId {
    if !routed.target.as_str().is_empty() {
        return routed.target.clone();
    }
    ArmId::new(format!("/subscriptions/{}/providers/Microsoft.Network", routed.subscription))
}

/// A refusal as an answer.
fn refusal(refused: &Refused) -> Out {
    Out { by_gateway: refused.by == By::Gateway, ..Out::new(refused.status, Some(refused.body())) }
}

/// The body of a poll.
fn status_body(state: &OperationState, turn: &Turn<'_>) -> Value {
    let error = |error| Refused::from_model(200, error, &[], turn).error();
    match state {
        OperationState::Running if turn.fault == Some(&Fault::UnknownEnum) => {
            json!({ "status": "Reticulating" })
        }
        OperationState::Running => json!({ "status": "InProgress" }),
        OperationState::Succeeded => json!({ "status": "Succeeded" }),
        OperationState::Failed(why) => json!({ "status": "Failed", "error": error(why) }),
        OperationState::Canceled(why) => json!({ "status": "Canceled", "error": error(why) }),
    }
}

/// Where a list goes on: the same path, with the place in the list.
fn next_link(turn: &Turn<'_>, routed: &Routed, token: &str) -> String {
    let (path, version) = (turn.request.uri().path(), &routed.version);
    format!("{}{path}?api-version={version}&$skiptoken={}", turn.origin, URL_SAFE_NO_PAD.encode(token))
}

fn read_page(text: &str) -> Option<PageToken> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    String::from_utf8(bytes).ok().map(|token| PageToken(token.into()))
}
