//! What becomes of a request that has found its way.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::Request;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::{Value, json};
use sluice_cloud::{Fault, Tamper};
use sluice_model::Time;
use sluice_model::azure::{ArmId, ETag, Provisioning, SubnetBody};
use sluice_model::call::{
    Answer, Body, Method, OperationState, PageToken, Payload, Reply, Request as ModelRequest,
};

use super::document::{Document, begins_with, etag_of, exists};
use super::fields::Given;
use super::headers::Out;
use super::kinds::{self, Draft, View, group, network};
use super::operation::{Issued, Work};
use super::refused::{By, Refused, real_wait};
use super::route::{self, Deed, Kind, Routed};
use super::show::{self, Fresh};
use super::top::{Top, read_tags};
use super::{Call, Surface, body, locations, services, usages};

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

/// How a request ended: with an answer, with a refusal, or with silence.
enum Ended {
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
                let bare = self.bare(&routed);
                self.ask(turn, &bare).map(|answer| self.plain(turn, &routed, &answer))
            }
            _ => self.act(turn, &routed),
        };
        let out = match ended {
            Ok(out) => Some(out),
            Err(Ended::Answered(out)) => Some(*out),
            Err(Ended::Silent) => None,
            Err(Ended::Refused(refused)) => Some(self.refuse(turn, &routed, &refused)),
        };
        let is_lost = matches!(turn.fault, Some(Fault::AppliedButLost));
        (out.filter(|_| !is_lost), Some(call))
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

    fn view(&self) -> View<'_> {
        View { cloud: &self.cloud, documents: &self.documents }
    }

    /// The request without a body.
    fn bare(&self, routed: &Routed) -> ModelRequest {
        ModelRequest::bare(routed.deed.call(), routed.target.clone())
    }

    /// Asks the model. What the fault makes of its answer is the model's affair, except for a lost one:
    /// that has to be written down like any other first.
    fn ask(&mut self, turn: &Turn<'_>, request: &ModelRequest) -> Result<Answer, Ended> {
        match turn.fault {
            None | Some(Fault::AppliedButLost) => Ok(self.cloud.handle(turn.now, request)),
            Some(fault) => match self.cloud.handle_faulty(turn.now, request, fault) {
                Reply::Answered(answer) => Ok(answer),
                Reply::NotSent(_) | Reply::Lost(_) => Err(Ended::Silent),
            },
        }
    }

    /// The answer of the model if it is not a refusal; a refusal goes out as it is.
    fn accepted(&self, turn: &Turn<'_>, routed: &Routed, answer: Answer) -> Result<Answer, Ended> {
        match &answer.payload {
            Payload::Error(_) => Err(Ended::Answered(Box::new(self.plain(turn, routed, &answer)))),
            _ => Ok(answer),
        }
    }

    /// An answer without a body of its own, or an error.
    fn plain(&self, turn: &Turn<'_>, routed: &Routed, answer: &Answer) -> Out {
        let remaining = Some((routed.deed.call().bucket(), answer.remaining));
        let Payload::Error(error) = &answer.payload else {
            return Out { remaining, ..Out::new(answer.status, None) };
        };
        let refused = Refused::from_model(answer.status, error, turn.time_factor);
        let mut out = refusal(&refused);
        out.retry_after = answer.retry_after.map(|wait| match turn.fault {
            // Who orders a refusal orders its header too.
            Some(Fault::Refuse { .. }) => wait,
            _ => real_wait(wait, turn.time_factor),
        });
        if refused.by == By::Provider || answer.status == 429 {
            out.remaining = remaining;
        }
        out
    }

    /// Refuses a request that the model has not seen. It costs as much as any other.
    fn refuse(&mut self, turn: &Turn<'_>, routed: &Routed, refused: &Refused) -> Out {
        let mut out = refusal(refused);
        let fault = Fault::Refuse {
            status: refused.status,
            code: refused.code.as_str().into(),
            message: refused.message.as_str().into(),
            retry_after: None,
        };
        let bare = self.bare(routed);
        if let Reply::Answered(answer) = self.cloud.handle_faulty(turn.now, &bare, &fault)
            && refused.by == By::Provider
        {
            out.remaining = Some((routed.deed.call().bucket(), answer.remaining));
        }
        out
    }

    fn paid(&self, routed: &Routed, answer: &Answer, status: u16, body: Option<Value>) -> Out {
        let remaining = Some((routed.deed.call().bucket(), answer.remaining));
        Out { remaining, ..Out::new(status, body) }
    }

    fn read(&mut self, turn: &Turn<'_>, routed: &Routed) -> Result<Out, Ended> {
        let answer = self.ask(turn, &self.bare(routed))?;
        let answer = self.accepted(turn, routed, answer)?;
        let shown = show::resource(self.view(), routed.kind, &answer.payload, Fresh::default());
        let shown = shown.ok_or_else(Refused::internal)?;
        let out = self.paid(routed, &answer, answer.status, Some(shown.body));
        Ok(match shown.etag {
            Some(etag) => out.with("etag", &*etag.0),
            None => out,
        })
    }

    fn look(&mut self, turn: &Turn<'_>, routed: &Routed) -> Result<Out, Ended> {
        let answer = self.ask(turn, &self.bare(routed))?;
        let answer = self.accepted(turn, routed, answer)?;
        Ok(self.paid(routed, &answer, 204, None))
    }

    fn list(&mut self, turn: &Turn<'_>, routed: &Routed) -> Result<Out, Ended> {
        let mut request = self.bare(routed);
        request.page = match &routed.page {
            None => None,
            Some(text) => Some(read_page(text).ok_or_else(|| Refused::bad_page(text))?),
        };
        let answer = self.ask(turn, &request)?;
        let answer = self.accepted(turn, routed, answer)?;
        let (items, next) = show::page(self.view(), &answer.payload).ok_or_else(Refused::internal)?;
        let next = next.map(|token| next_link(turn, routed, &token));
        Ok(self.paid(routed, &answer, answer.status, Some(show::list(items, next))))
    }

    /// Groups are listed from the state, all of them at once; the model is asked for one of them, so that
    /// it counts the call and has a chance to refuse it.
    fn list_groups(&mut self, turn: &Turn<'_>, routed: &Routed) -> Result<Out, Ended> {
        let answer = self.read_something(turn, routed)?;
        let head = format!("{}/", routed.target);
        let groups = self.cloud.state().groups.iter().filter(|id| begins_with(id, &head));
        let shown = groups.map(|id| group::show(self.view(), id, self.documents.newest(id))).collect();
        Ok(self.paid(routed, &answer, 200, Some(show::list(shown, None))))
    }

    fn list_usages(&mut self, turn: &Turn<'_>, routed: &Routed) -> Result<Out, Ended> {
        let answer = self.read_something(turn, routed)?;
        let region = routed.region.as_deref().unwrap_or("");
        let shown = usages::show(&self.cloud, &routed.subscription, region);
        Ok(self.paid(routed, &answer, 200, Some(show::list(shown, None))))
    }

    /// Pays for a read that the model does not serve itself.
    fn read_something(&mut self, turn: &Turn<'_>, routed: &Routed) -> Result<Answer, Ended> {
        let anything = ArmId::new(format!("/subscriptions/{}/resourceGroups/-", routed.subscription));
        let answer = self.ask(turn, &ModelRequest::bare(Method::Get, anything))?;
        let is_absence =
            matches!(&answer.payload, Payload::Error(error) if &*error.code == "ResourceGroupNotFound");
        if is_absence { Ok(answer) } else { self.accepted(turn, routed, answer) }
    }

    fn write(&mut self, turn: &Turn<'_>, routed: &Routed) -> Result<Out, Ended> {
        let json = body::read(turn.request, self.body_bytes_max)?;
        let top = Top::read(&json, routed)?;
        self.require_group(routed)?;
        self.check_absence(turn, routed)?;
        let view = self.view();
        let draft = match routed.kind {
            Kind::Group => group::read(view, routed, &top)?,
            Kind::PublicIp => kinds::public_ip::read(view, routed, &top)?,
            Kind::LoadBalancer => kinds::load_balancer::read(view, routed, &top)?,
            Kind::NatGateway => kinds::nat_gateway::read(view, routed, &top)?,
            Kind::Gateway => kinds::gateway::read(view, routed, &top)?,
            Kind::Network => network::read(view, routed, &top)?,
            Kind::Subnet => kinds::subnet::read(view, routed, &top)?,
            Kind::Service | Kind::Location | Kind::Usage | Kind::Operation => {
                return Err(Refused::method_not_allowed("PUT").into());
            }
        };
        let Draft { body, document, subnets } = draft;
        let before = self.view().before(&routed.target);
        let is_new = !exists(self.cloud.state(), &routed.target);
        let is_changed = before.is_some_and(|before| *before != document);
        let mut request = ModelRequest::with(Method::Put, routed.target.clone(), body);
        request.if_match = if_match(turn.request);
        self.cloud.set_unseen_change(is_changed);
        let answer = self.write_with_subnets(turn, routed, &request, subnets);
        self.cloud.set_unseen_change(false);
        let answer = self.accepted(turn, routed, answer?)?;
        if is_new {
            self.documents.forget(&routed.target);
        }
        let is_pretended = matches!(turn.fault, Some(Fault::AnsweredButNotApplied));
        if !is_pretended && routed.kind != Kind::Subnet {
            let etag = etag_of(self.cloud.state(), &routed.target).cloned();
            self.documents.keep(&routed.target, etag, document.clone());
        }
        self.written(turn, routed, &answer, &document)
    }

    /// The answer to a PUT.
    fn written(
        &mut self,
        turn: &Turn<'_>,
        routed: &Routed,
        answer: &Answer,
        document: &Document,
    ) -> Result<Out, Ended> {
        let running = answer.operation.as_ref().and_then(|id| self.cloud.operation_state(id));
        let state = match running {
            Some(OperationState::Running) => Provisioning::Updating,
            _ => Provisioning::Succeeded,
        };
        let is_subnet = routed.kind == Kind::Subnet;
        let fresh = Fresh { document: Some(document).filter(|_| !is_subnet), state: Some(state) };
        let shown =
            show::resource(self.view(), routed.kind, &answer.payload, fresh).ok_or_else(Refused::internal)?;
        let mut out = self.paid(routed, answer, answer.status, Some(shown.body));
        if let Some(operation) = answer.operation.clone().filter(|_| routed.kind != Kind::Group) {
            let issued = self.issue(routed, operation, Work::Write, &document.location);
            let url = issued.status_url(turn.origin, &routed.subscription, &routed.version);
            out = out.with("azure-asyncnotification", "Enabled").with("azure-asyncoperation", url);
        }
        Ok(out)
    }

    /// Writes a resource; of a network also its subnets, all or nothing.
    fn write_with_subnets(
        &mut self,
        turn: &Turn<'_>,
        routed: &Routed,
        request: &ModelRequest,
        subnets: Option<Vec<(ArmId, SubnetBody)>>,
    ) -> Result<Answer, Ended> {
        let changes = subnets.map(|subnets| self.subnet_changes(&routed.target, subnets)).unwrap_or_default();
        if changes.is_empty() {
            return self.ask(turn, request);
        }
        let untouched = self.cloud.clone();
        let answer = self.ask(turn, request)?;
        let is_pretended = matches!(turn.fault, Some(Fault::AnsweredButNotApplied));
        if matches!(answer.payload, Payload::Error(_)) || is_pretended {
            return Ok(answer);
        }
        for change in changes {
            let refused = self.cloud.tamper(turn.now, change);
            if let Payload::Error(error) = &refused.payload {
                let refused = Refused::from_model(refused.status, error, turn.time_factor);
                self.cloud = untouched;
                return Err(refused.into());
            }
        }
        Ok(answer)
    }

    /// What has to be done until a network has these subnets and no others.
    fn subnet_changes(&self, network: &ArmId, wanted: Vec<(ArmId, SubnetBody)>) -> Vec<Tamper> {
        let there = &self.cloud.state().subnets;
        let is_wanted = |id: &ArmId| wanted.iter().any(|(other, _)| other == id);
        let gone = there.keys().filter(|id| network::holds(network, id) && !is_wanted(id));
        let gone: Vec<Tamper> = gone.cloned().map(Tamper::DeleteSubnet).collect();
        let is_as_wanted = |id: &ArmId, body: &SubnetBody| {
            there.get(id).is_some_and(|it| it.gateway == body.gateway && it.rest == body.rest)
        };
        let written = wanted.into_iter().filter(|(id, body)| !is_as_wanted(id, body));
        let written = written.map(|(id, body)| Tamper::Put { id, body: Body::Subnet(body) });
        gone.into_iter().chain(written).collect()
    }

    /// An unknown group is an answer of its own, whatever else may be wrong with the body.
    fn require_group(&self, routed: &Routed) -> Result<(), Ended> {
        match routed.group_id() {
            Some(id) if routed.kind != Kind::Group && !self.cloud.state().groups.contains(&id) => {
                Err(Refused::no_group(id.name()).into())
            }
            _ => Ok(()),
        }
    }

    /// `If-None-Match: *` wants a resource that is not there yet.
    fn check_absence(&self, turn: &Turn<'_>, routed: &Routed) -> Result<(), Ended> {
        let header = turn.request.headers().get("if-none-match");
        if header.is_some_and(|value| value.as_bytes() == b"*") && exists(self.cloud.state(), &routed.target)
        {
            return Err(Refused::exists_already(routed.target.as_str()).into());
        }
        Ok(())
    }

    fn tag(&mut self, turn: &Turn<'_>, routed: &Routed) -> Result<Out, Ended> {
        let json = body::read(turn.request, self.body_bytes_max)?;
        let given = read_tags(&json)?;
        let target = &routed.target;
        self.require_group(routed)?;
        if !exists(self.cloud.state(), target) {
            let group = routed.group.as_deref().unwrap_or("");
            return Err(match routed.kind {
                Kind::Group => Refused::no_group(target.name()),
                kind => Refused::no_resource(kind.word(), target.name(), group),
            }
            .into());
        }
        if matches!(routed.kind, Kind::Group | Kind::Network) {
            return self.tag_container(turn, routed, given);
        }
        let state = self.cloud.state();
        let there = (state.public_ips.get(target).map(|it| &it.meta))
            .or_else(|| state.load_balancers.get(target).map(|it| &it.meta))
            .or_else(|| state.nat_gateways.get(target).map(|it| &it.meta))
            .or_else(|| state.gateways.get(target).map(|it| &it.meta));
        let tags = given.or_keep(there.map(|meta| meta.tags.clone())).unwrap_or_default();
        let mut request = ModelRequest::with(Method::PatchTags, target.clone(), Body::Tags(tags));
        request.if_match = if_match(turn.request);
        let answer = self.ask(turn, &request)?;
        let answer = self.accepted(turn, routed, answer)?;
        let document = self.documents.newest(target).cloned();
        if let Some(document) = document.clone() {
            let etag = etag_of(self.cloud.state(), target).cloned();
            self.documents.keep(target, etag, document);
        }
        let fresh = Fresh { document: document.as_ref(), state: None };
        let shown =
            show::resource(self.view(), routed.kind, &answer.payload, fresh).ok_or_else(Refused::internal)?;
        Ok(self.paid(routed, &answer, 200, Some(shown.body)))
    }

    /// Tags of groups and networks are in their documents only; for the model it is another PUT.
    fn tag_container(
        &mut self,
        turn: &Turn<'_>,
        routed: &Routed,
        given: Given<sluice_model::azure::Tags>,
    ) -> Result<Out, Ended> {
        let target = &routed.target;
        let before = self.documents.newest(target).cloned();
        let mut document = before.unwrap_or_else(|| Document::of_stranger(target));
        document.tags = given.or_keep(Some(document.tags)).unwrap_or_default();
        let mut request = ModelRequest::with(Method::Put, target.clone(), Body::Container);
        request.if_match = if_match(turn.request);
        let answer = self.ask(turn, &request)?;
        let answer = self.accepted(turn, routed, answer)?;
        if !matches!(turn.fault, Some(Fault::AnsweredButNotApplied)) {
            let etag = etag_of(self.cloud.state(), target).cloned();
            self.documents.keep(target, etag, document.clone());
        }
        let fresh = Fresh { document: Some(&document), state: None };
        let shown =
            show::resource(self.view(), routed.kind, &answer.payload, fresh).ok_or_else(Refused::internal)?;
        Ok(self.paid(routed, &answer, 200, Some(shown.body)))
    }

    fn delete(&mut self, turn: &Turn<'_>, routed: &Routed) -> Result<Out, Ended> {
        let region = self.region(&routed.target);
        let mut request = self.bare(routed);
        request.if_match = if_match(turn.request);
        let answer = self.ask(turn, &request)?;
        let answer = self.accepted(turn, routed, answer)?;
        let mut out = self.paid(routed, &answer, answer.status, None);
        let Some(operation) = answer.operation else { return Ok(out) };
        if !matches!(turn.fault, Some(Fault::AnsweredButNotApplied)) {
            self.documents.expect_end(&routed.target);
        }
        let Routed { subscription, version, .. } = routed;
        if routed.kind == Kind::Group {
            let issued = self.issue(routed, operation, Work::DeleteGroup, &region);
            let url = issued.job_url(turn.origin, subscription, version, routed.target.name());
            return Ok(out.with("location", url));
        }
        let issued = self.issue(routed, operation, Work::Delete, &region);
        out = out.with("azure-asyncnotification", "Enabled");
        out = out.with("azure-asyncoperation", issued.status_url(turn.origin, subscription, version));
        Ok(out.with("location", issued.result_url(turn.origin, subscription, version)))
    }

    /// Either of the two gateway POSTs.
    fn post(&mut self, turn: &Turn<'_>, routed: &Routed) -> Result<Out, Ended> {
        let json = body::read(turn.request, self.body_bytes_max)?;
        let (view, gateway) = (self.view(), &routed.target);
        // Who asks a gateway that is not there is told that, whatever the body says.
        let is_there = view.state().gateways.contains_key(gateway);
        let is_services = routed.deed == Deed::UpdateServices;
        let body = match (is_services, is_there) {
            (true, true) => Body::Services(services::read(view, gateway, &json)?),
            (true, false) => Body::Services(Vec::new()),
            (false, true) => Body::Locations(locations::read(view, gateway, &json)?),
            (false, false) => Body::Locations(Vec::new()),
        };
        let mut request = ModelRequest::with(routed.deed.call(), gateway.clone(), body);
        request.if_match = if_match(turn.request);
        let region = self.region(gateway);
        self.cloud.set_synchronous_posts(routed.is_synchronous());
        let answer = self.ask(turn, &request);
        self.cloud.set_synchronous_posts(false);
        let answer = self.accepted(turn, routed, answer?)?;
        let body = (answer.status == 200).then(|| json!({ "status": "Succeeded" }));
        let mut out = self.paid(routed, &answer, answer.status, body);
        if let Some(operation) = answer.operation {
            let issued = self.issue(routed, operation, Work::Post, &region);
            let Routed { subscription, version, .. } = routed;
            out = out.with("azure-asyncnotification", "Enabled");
            out = out.with("azure-asyncoperation", issued.status_url(turn.origin, subscription, version));
            out = out.with("location", issued.result_url(turn.origin, subscription, version));
        }
        Ok(out)
    }

    fn poll(&mut self, turn: &Turn<'_>, routed: &Routed) -> Result<Out, Ended> {
        let name = routed.operation.as_deref().unwrap_or("");
        let issued = match routed.deed {
            Deed::GroupResult => self.operations.of_job(&routed.subscription, name),
            _ => self.operations.at(&routed.subscription, routed.region.as_deref().unwrap_or(""), name),
        };
        let issued = issued.cloned().ok_or_else(|| Refused::no_operation(name))?;
        let answer = self.ask(turn, &ModelRequest::bare(Method::Poll, issued.id.clone()))?;
        let answer = self.accepted(turn, routed, answer)?;
        let Payload::Operation(state) = &answer.payload else { return Err(Refused::internal().into()) };
        if routed.deed == Deed::Poll {
            let body = status_body(state, turn);
            return Ok(self.paid(routed, &answer, 200, Some(body)));
        }
        Ok(match state {
            OperationState::Running => {
                let url = format!("{}{}", turn.origin, turn.request.uri());
                let mut out = self.paid(routed, &answer, 202, None).with("location", url);
                out.retry_after = Some(real_wait(BETWEEN_LOOKS, turn.time_factor));
                out
            }
            OperationState::Succeeded => {
                let status = if issued.work == Work::DeleteGroup { 200 } else { 204 };
                self.paid(routed, &answer, status, None)
            }
            OperationState::Failed(error) | OperationState::Canceled(error) => {
                let refused = Refused::from_model(409, error, turn.time_factor);
                self.paid(routed, &answer, refused.status, Some(refused.body()))
            }
        })
    }

    fn region(&self, id: &ArmId) -> String {
        self.view().location(id).unwrap_or("eastus").to_owned()
    }

    fn issue(&mut self, routed: &Routed, id: ArmId, work: Work, location: &str) -> Issued {
        let region = if location.is_empty() { self.region(&routed.target) } else { location.to_owned() };
        let issued = Issued { id, work, region };
        self.operations.issue(&self.cloud, issued.clone());
        issued
    }
}

/// A refusal as an answer.
fn refusal(refused: &Refused) -> Out {
    Out {
        by_gateway: refused.by == By::Gateway,
        retry_after: refused.retry_after,
        ..Out::new(refused.status, Some(refused.body()))
    }
}

/// The body of a poll.
fn status_body(state: &OperationState, turn: &Turn<'_>) -> Value {
    let error = |error| Refused::from_model(200, error, turn.time_factor).error();
    match state {
        OperationState::Running if matches!(turn.fault, Some(Fault::UnknownEnum)) => {
            json!({ "status": "Reticulating" })
        }
        OperationState::Running => json!({ "status": "InProgress" }),
        OperationState::Succeeded => json!({ "status": "Succeeded" }),
        OperationState::Failed(why) => json!({ "status": "Failed", "error": error(why) }),
        OperationState::Canceled(why) => json!({ "status": "Canceled", "error": error(why) }),
    }
}

/// `If-Match`, in the provider's spelling.
fn if_match(request: &Request<Bytes>) -> Option<ETag> {
    let text = request.headers().get("if-match")?.to_str().unwrap_or("?").trim();
    if text == "*" {
        return Some(ETag("*".into()));
    }
    let inside = text.strip_prefix("W/").unwrap_or(text).trim_matches('"');
    Some(ETag(format!("W/\"{inside}\"").into()))
}

/// What must not stand in a query as it is.
const IN_QUERY: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'%').add(b'&').add(b'+').add(b'=');

/// Where a list goes on: the same path, with the place in the list.
fn next_link(turn: &Turn<'_>, routed: &Routed, token: &str) -> String {
    let token = URL_SAFE_NO_PAD.encode(token);
    let version = utf8_percent_encode(&routed.version, IN_QUERY);
    format!("{}{}?api-version={version}&$skiptoken={token}", turn.origin, turn.request.uri().path())
}

fn read_page(text: &str) -> Option<PageToken> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    String::from_utf8(bytes).ok().map(|token| PageToken(token.into()))
}
