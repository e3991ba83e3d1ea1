//! Reads requests and answers: what they say, without what it means.

use std::collections::BTreeSet;
use std::sync::Arc;

use sluice_model::azure::{ArmId, LocationUpdate, NatGateway, Provisioning, ServiceRequest, Tags};
use sluice_model::call::{Answer, Body, OperationState, Payload, Request};
use sluice_model::effect::Listable;

use super::Listing;
use super::belief::{Face, Told};

pub(super) fn services_of(request: &Request) -> &[ServiceRequest] {
    match &request.body {
        Body::Services(entries) => entries,
        _ => &[],
    }
}

pub(super) fn locations_of(request: &Request) -> &[LocationUpdate] {
    match &request.body {
        Body::Locations(updates) => updates,
        _ => &[],
    }
}

pub(super) fn told_of_service_request(entry: &ServiceRequest) -> Told {
    if entry.is_delete {
        return Told::Absent;
    }
    let cleared = entry.service.pools.is_empty() && entry.service.nat_gateway.is_none();
    Told::Present(Face { cleared, ..Face::default() })
}

pub(super) fn tags_of_body(body: &Body) -> Option<&Tags> {
    match body {
        Body::PublicIp(body) => Some(&body.tags),
        Body::LoadBalancer(body) => Some(&body.tags),
        Body::NatGateway(body) => Some(&body.tags),
        Body::Gateway(body) => Some(&body.tags),
        Body::GatewayAsRead(gateway) => Some(&gateway.meta.tags),
        Body::Tags(tags) => Some(tags),
        _ => None,
    }
}

pub(super) fn face_of_payload(payload: &Payload) -> Option<Face> {
    match payload {
        Payload::PublicIp(ip) => Some(Face { address: ip.address, ..tagged(&ip.meta.tags) }),
        Payload::LoadBalancer(lb) => Some(tagged(&lb.meta.tags)),
        Payload::NatGateway(nat) => Some(face_of_nat(nat)),
        Payload::Gateway(gateway) => Some(tagged(&gateway.meta.tags)),
        Payload::Subnet(_) | Payload::Container(_) => Some(Face::default()),
        _ => None,
    }
}

pub(super) fn tagged(tags: &Tags) -> Face {
    Face { tags: tags.clone(), ..Face::default() }
}

pub(super) fn face_of_nat(nat: &NatGateway) -> Face {
    Face { detached: nat.gateway.is_none(), ..tagged(&nat.meta.tags) }
}

/// Whether a first answer only says that the work has begun.
pub(super) fn runs_on(request: &Request, answer: &Answer) -> bool {
    match &answer.payload {
        Payload::Operation(state) => *state == OperationState::Running,
        payload => match state_after(request, payload) {
            Some(Provisioning::Succeeded) => false,
            Some(_) => true,
            None => answer.status == 202 || (answer.status == 201 && answer.operation.is_some()),
        },
    }
}

/// How a write stands by what the resource shows. One whose last write failed takes tags all the same.
pub(super) fn state_after(request: &Request, payload: &Payload) -> Option<Provisioning> {
    let is_tagged = match &request.body {
        Body::Tags(tags) => face_of_payload(payload).is_some_and(|face| face.tags == *tags),
        _ => false,
    };
    match provisioning_of(payload)? {
        Provisioning::Failed if is_tagged => Some(Provisioning::Succeeded),
        state => Some(state),
    }
}

fn provisioning_of(payload: &Payload) -> Option<Provisioning> {
    match payload {
        Payload::PublicIp(ip) => Some(ip.meta.provisioning),
        Payload::LoadBalancer(lb) => Some(lb.meta.provisioning),
        Payload::NatGateway(nat) => Some(nat.meta.provisioning),
        Payload::Gateway(gateway) => Some(gateway.meta.provisioning),
        _ => None,
    }
}

pub(super) fn lower(name: &str) -> Arc<str> {
    name.to_ascii_lowercase().into()
}

/// The services that a listing shows something of.
pub(super) fn identities_in(listing: &Listing) -> BTreeSet<Arc<str>> {
    let resources = listing.resources.iter().filter_map(|(id, face)| {
        let tagged = face.tags.get(sluice_model::names::IDENTITY_TAG).map(|identity| lower(identity));
        tagged.or_else(|| Some(lower(id.name())))
    });
    resources.chain(listing.registrations.iter().map(|(name, _)| Arc::clone(name))).collect()
}

pub(super) fn kind_of_resource(id: &ArmId) -> Option<Listable> {
    let is = |word: &str| id.segment(word).is_some();
    if is("loadBalancers") {
        Some(Listable::LoadBalancers)
    } else if is("natGateways") {
        Some(Listable::NatGateways)
    } else if is("publicIPAddresses") {
        Some(Listable::PublicIps)
    } else {
        None
    }
}

pub(super) fn kind_of_collection(collection: &ArmId) -> Option<Listable> {
    Some(match collection.name().to_ascii_lowercase().as_str() {
        "services" => Listable::Registrations,
        "addresslocations" => Listable::Locations,
        "loadbalancers" => Listable::LoadBalancers,
        "natgateways" => Listable::NatGateways,
        "publicipaddresses" => Listable::PublicIps,
        _ => return None,
    })
}
