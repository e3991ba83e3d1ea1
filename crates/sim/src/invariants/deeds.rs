//! What a request does to which service, read off the request alone.

use sluice_model::azure::ArmId;
use sluice_model::call::{Body, Method, Request};
use sluice_model::names::key_of_public_ip;
use sluice_model::{Family, ServiceKey};

/// One thing that a request does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Deed {
    /// What.
    pub kind: DeedKind,
    /// To whom; `None` when the name is nobody's.
    pub key: Option<ServiceKey>,
    /// The resource; the gateway for registrations.
    pub target: ArmId,
}

/// What can be done to a service.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum DeedKind {
    /// Writes a public IP.
    PutPublicIp,
    /// Writes a load balancer or NAT gateway.
    PutCarrier,
    /// Takes the gateway off a NAT gateway.
    DetachNatGateway,
    /// Writes tags.
    PatchTags,
    /// Registers.
    Register,
    /// Takes pool or NAT gateway off the registration.
    Clear,
    /// Unregisters.
    Unregister,
    /// Deletes a load balancer or NAT gateway.
    DeleteCarrier,
    /// Deletes a public IP.
    DeletePublicIp,
    /// Writes or deletes the gateway, or a subnet.
    Foundation,
    /// Writes the tags of the gateway.
    TagGateway,
}

impl DeedKind {
    /// Takes something of a service away.
    pub const fn is_destructive(self) -> bool {
        matches!(
            self,
            DeedKind::DetachNatGateway
                | DeedKind::Clear
                | DeedKind::Unregister
                | DeedKind::DeleteCarrier
                | DeedKind::DeletePublicIp
        )
    }
}

/// Everything that a request does, addresses aside.
pub fn deeds(request: &Request) -> Vec<Deed> {
    let target = &request.target;
    let one = |kind, key| vec![Deed { kind, key, target: target.clone() }];
    match request.method {
        Method::Get | Method::List | Method::Poll | Method::UpdateLocations => Vec::new(),
        Method::UpdateServices => match &request.body {
            Body::Services(entries) => entries
                .iter()
                .map(|entry| {
                    let cleared = entry.service.pools.is_empty() && entry.service.nat_gateway.is_none();
                    let kind = match (entry.is_delete, cleared) {
                        (true, _) => DeedKind::Unregister,
                        (false, true) => DeedKind::Clear,
                        (false, false) => DeedKind::Register,
                    };
                    let key = ServiceKey::from_identity(&entry.service.name);
                    Deed { kind, key, target: target.clone() }
                })
                .collect(),
            _ => Vec::new(),
        },
        Method::Put | Method::PatchTags | Method::Delete => {
            let is = |word: &str| target.segment(word).is_some();
            let delete = request.method == Method::Delete;
            if is("publicIPAddresses") {
                let kind = match request.method {
                    Method::Delete => DeedKind::DeletePublicIp,
                    Method::PatchTags => DeedKind::PatchTags,
                    _ => DeedKind::PutPublicIp,
                };
                one(kind, key_of_public_ip(target.name()).map(|(key, _)| key))
            } else if is("loadBalancers") || is("natGateways") {
                let detach =
                    matches!(&request.body, Body::NatGateway(body) if body.gateway.is_none() && !delete);
                let kind = match request.method {
                    Method::Delete => DeedKind::DeleteCarrier,
                    Method::PatchTags => DeedKind::PatchTags,
                    _ if detach => DeedKind::DetachNatGateway,
                    _ => DeedKind::PutCarrier,
                };
                let key = ServiceKey::from_identity(target.name())
                    .filter(|key| key.is_inbound() == is("loadBalancers"));
                one(kind, key)
            } else if request.method == Method::PatchTags {
                one(DeedKind::TagGateway, None)
            } else {
                one(DeedKind::Foundation, None)
            }
        }
    }
}

/// The public IPs that a service can have.
pub fn families_of(key: &ServiceKey) -> &'static [Family] {
    if key.is_inbound() { &[Family::V4] } else { &Family::ALL }
}
