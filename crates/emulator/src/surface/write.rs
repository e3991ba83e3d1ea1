//! Requests that change something: PUT, PATCH, DELETE and the gateway's two POSTs.

use bytes::Bytes;
use http::Request;
use serde_json::json;
use sluice_cloud::{Fault, InlineSubnet};
use sluice_model::azure::{ArmId, ETag, Meta, Provisioning, Tags};
use sluice_model::call::{Answer, Body, Method, OperationState, Request as ModelRequest};

use super::document::{Document, etag_of, exists};
use super::fields::Given;
use super::headers::Out;
use super::kinds::{self, Draft, group, network};
use super::refused::Refused;
use super::route::{Deed, Kind, Routed};
use super::serve::{Ended, Told, Turn};
use super::show::{self, Fresh};
use super::top::{Top, read_tags};
use super::{Surface, body, locations, operation, services};

impl Surface {
    pub(crate) fn write(&mut self, turn: &Turn<'_>, routed: &Routed) -> Result<Out, Ended> {
        let json = body::read(turn.request, self.body_bytes_max)?;
        let top = Top::read(&json, routed)?;
        self.require_group(routed)?;
        self.check_absence(turn, routed)?;
        let Draft { body, document, subnets } = self.draft(routed, &top)?;
        let mut request = ModelRequest::with(Method::Put, routed.target.clone(), body);
        request.if_match = if_match(turn.request);
        let before = self.view().before(&routed.target);
        self.cloud.set_unseen_change(before.is_some_and(|before| *before != document));
        let location = document.location.as_str();
        let region = if location.is_empty() { self.region(&routed.target) } else { location.to_owned() };
        self.cloud.set_region(&region);
        let told = self.put(turn, routed, &request, subnets.as_deref());
        self.cloud.set_unseen_change(false);
        let answer = self.accepted(turn, routed, told?)?;
        if routed.kind != Kind::Subnet {
            self.keep(turn, &routed.target, document.clone());
        }
        self.written(turn, routed, &answer, &document)
    }

    /// What the body of a PUT says.
    fn draft(&self, routed: &Routed, top: &Top<'_>) -> Result<Draft, Refused> {
        let view = self.view();
        match routed.kind {
            Kind::Group => group::read(view, routed, top),
            Kind::PublicIp => kinds::public_ip::read(view, routed, top),
            Kind::LoadBalancer => kinds::load_balancer::read(view, routed, top),
            Kind::NatGateway => kinds::nat_gateway::read(view, routed, top),
            Kind::Gateway => kinds::gateway::read(view, routed, top),
            Kind::Network => network::read(view, routed, top),
            Kind::Subnet => kinds::subnet::read(view, routed, top),
            Kind::Service | Kind::Location | Kind::Usage | Kind::Operation => {
                Err(Refused::method_not_allowed("PUT"))
            }
        }
    }

    fn put(
        &mut self,
        turn: &Turn<'_>,
        routed: &Routed,
        request: &ModelRequest,
        subnets: Option<&[InlineSubnet]>,
    ) -> Result<Told, Ended> {
        if routed.kind == Kind::Network {
            let outcome = self.cloud.put_network(turn.now, request, subnets, turn.models_fault());
            return Told::from(outcome);
        }
        self.ask(turn, request)
    }

    /// The answer to a PUT.
    fn written(
        &self,
        turn: &Turn<'_>,
        routed: &Routed,
        answer: &Answer,
        document: &Document,
    ) -> Result<Out, Ended> {
        let running = answer.operation.as_ref().and_then(|id| self.cloud.operation_state(id));
        let state = match running {
            _ if turn.fault == Some(&Fault::UnknownEnum) => Provisioning::Unknown,
            Some(OperationState::Running) => Provisioning::Updating,
            _ => Provisioning::Succeeded,
        };
        let document = (routed.kind != Kind::Subnet).then_some(document);
        let fresh = Fresh { document, state: Some(state) };
        let shown = show::resource(self.view(), routed.kind, &answer.payload, fresh);
        let shown = shown.ok_or_else(Refused::internal)?;
        let out = self.paid(routed, answer, answer.status, Some(shown.body));
        Ok(match answer.operation.as_ref().filter(|_| routed.kind != Kind::Group) {
            Some(id) => out
                .with("azure-asyncnotification", "Enabled")
                .with("azure-asyncoperation", operation::status_url(turn.origin, id, &routed.version)),
            None => out,
        })
    }

    /// Keeps the document of what has just been written.
    fn keep(&mut self, turn: &Turn<'_>, id: &ArmId, document: Document) {
        if turn.fault != Some(&Fault::AnsweredButNotApplied) {
            let etag = etag_of(self.cloud.state(), id).cloned();
            self.documents.keep(id, etag, document);
        }
    }

    /// An unknown group is an answer of its own, whatever else may be wrong with the body.
    fn require_group(&self, routed: &Routed) -> Result<(), Refused> {
        match routed.group_id() {
            Some(id) if routed.kind != Kind::Group && !self.cloud.state().groups.contains(&id) => {
                Err(Refused::no_group(id.name()))
            }
            _ => Ok(()),
        }
    }

    /// `If-None-Match: *` wants a resource that is not there yet.
    fn check_absence(&self, turn: &Turn<'_>, routed: &Routed) -> Result<(), Refused> {
        let header = turn.request.headers().get("if-none-match");
        if header.is_some_and(|value| value.as_bytes() == b"*") && exists(self.cloud.state(), &routed.target)
        {
            return Err(Refused::exists_already(routed.target.as_str()));
        }
        Ok(())
    }

    pub(crate) fn tag(&mut self, turn: &Turn<'_>, routed: &Routed) -> Result<Out, Ended> {
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
        let before = self.documents.newest(target).cloned();
        let mut request = if matches!(routed.kind, Kind::Group | Kind::Network) {
            // Their tags are in their documents only; for the model it is another PUT.
            ModelRequest::with(Method::Put, target.clone(), Body::Container)
        } else {
            let tags = self.meta(target).map(|meta| meta.tags.clone());
            let tags = given.clone().or_keep(tags).unwrap_or_default();
            ModelRequest::with(Method::PatchTags, target.clone(), Body::Tags(tags))
        };
        request.if_match = if_match(turn.request);
        self.cloud.set_region(&self.region(target));
        let told = self.ask(turn, &request)?;
        let answer = self.accepted(turn, routed, told)?;
        let document = tagged(before, routed, &given);
        if let Some(document) = &document {
            self.keep(turn, target, document.clone());
        }
        let state = (turn.fault == Some(&Fault::UnknownEnum)).then_some(Provisioning::Unknown);
        let fresh = Fresh { document: document.as_ref(), state };
        let shown = show::resource(self.view(), routed.kind, &answer.payload, fresh);
        let shown = shown.ok_or_else(Refused::internal)?;
        Ok(self.paid(routed, &answer, 200, Some(shown.body)))
    }

    fn meta(&self, id: &ArmId) -> Option<&Meta> {
        let state = self.cloud.state();
        (state.public_ips.get(id).map(|it| &it.meta))
            .or_else(|| state.load_balancers.get(id).map(|it| &it.meta))
            .or_else(|| state.nat_gateways.get(id).map(|it| &it.meta))
            .or_else(|| state.gateways.get(id).map(|it| &it.meta))
    }

    pub(crate) fn delete(&mut self, turn: &Turn<'_>, routed: &Routed) -> Result<Out, Ended> {
        self.cloud.set_region(&self.region(&routed.target));
        let mut request = self.bare(routed);
        request.if_match = if_match(turn.request);
        let told = self.ask(turn, &request)?;
        let answer = self.accepted(turn, routed, told)?;
        let out = self.paid(routed, &answer, answer.status, None);
        let Some(id) = &answer.operation else { return Ok(out) };
        if turn.fault != Some(&Fault::AnsweredButNotApplied) {
            self.documents.expect_end(&routed.target);
        }
        if routed.kind == Kind::Group {
            let group = routed.target.name();
            return Ok(out.with("location", operation::job_url(turn.origin, id, &routed.version, group)));
        }
        Ok(accepted(out, turn, routed, id))
    }

    /// Either of the two gateway POSTs.
    pub(crate) fn post(&mut self, turn: &Turn<'_>, routed: &Routed) -> Result<Out, Ended> {
        let json = body::read(turn.request, self.body_bytes_max)?;
        let (view, gateway) = (self.view(), &routed.target);
        // Who asks a gateway that is not there is told that, whatever the body says.
        let is_there = view.state().gateways.contains_key(gateway);
        let body = match (routed.deed == Deed::UpdateServices, is_there) {
            (true, true) => Body::Services(services::read(view, gateway, &json)?),
            (true, false) => Body::Services(Vec::new()),
            (false, true) => Body::Locations(locations::read(view, gateway, &json)?),
            (false, false) => Body::Locations(Vec::new()),
        };
        let mut request = ModelRequest::with(routed.deed.call(), gateway.clone(), body);
        request.if_match = if_match(turn.request);
        self.cloud.set_region(&self.region(gateway));
        self.cloud.set_synchronous_posts(routed.is_synchronous());
        let told = self.ask(turn, &request)?;
        let answer = self.accepted(turn, routed, told)?;
        let body = (answer.status == 200).then(|| json!({ "status": "Succeeded" }));
        let out = self.paid(routed, &answer, answer.status, body);
        Ok(match &answer.operation {
            Some(id) => accepted(out, turn, routed, id),
            None => out,
        })
    }

    /// The region that stands in the URLs of operations on a resource.
    fn region(&self, id: &ArmId) -> String {
        self.view().location(id).unwrap_or("eastus").to_owned()
    }
}

/// The headers of a 202: where to ask how it stands, and where to ask what came of it.
fn accepted(out: Out, turn: &Turn<'_>, routed: &Routed, id: &ArmId) -> Out {
    out.with("azure-asyncnotification", "Enabled")
        .with("azure-asyncoperation", operation::status_url(turn.origin, id, &routed.version))
        .with("location", operation::result_url(turn.origin, id, &routed.version))
}

/// A document after a PATCH of tags.
fn tagged(before: Option<Document>, routed: &Routed, given: &Given<Tags>) -> Option<Document> {
    if !matches!(routed.kind, Kind::Group | Kind::Network) {
        return before;
    }
    let mut document = before.unwrap_or_else(|| Document::of_stranger(&routed.target));
    document.tags = given.clone().or_keep(Some(document.tags)).unwrap_or_default();
    Some(document)
}

fn if_match(request: &Request<Bytes>) -> Option<ETag> {
    let text = request.headers().get("if-match")?.to_str().unwrap_or("?");
    Some(ETag(text.into()))
}
