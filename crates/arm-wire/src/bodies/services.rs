//! The services of a gateway: what `updateServices` carries and what a list of them shows.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use sluice_model::azure::{ArmId, Direction, Registration, ServiceRequest};

use super::text::{Text, id};
use super::{Misread, Outline, Reference, RefersTo, ids, json as write, list};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Update<'a> {
    action: &'static str,
    service_requests: Vec<Entry<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    is_delete: bool,
    service: Service<'a>,
}

#[derive(Serialize)]
struct Service<'a> {
    name: &'a str,
    /// Of a deletion only the name matters, and nothing else is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    properties: Option<Properties<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Properties<'a> {
    service_type: &'static str,
    is_default: bool,
    /// Empty clears them.
    load_balancer_backend_pools: Vec<Pool<'a>>,
    /// `null` clears it.
    public_nat_gateway_id: Option<&'a str>,
}

#[derive(Serialize)]
struct Pool<'a> {
    id: &'a str,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    properties: Option<PoolProperties<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PoolProperties<'a> {
    virtual_network: RefersTo<'a>,
}

/// The body of `updateServices`; always partial, since a full update would drop everybody else's.
pub(crate) fn json(requests: &[ServiceRequest], virtual_network: Option<&ArmId>) -> Vec<u8> {
    let entry = |request| entry(request, virtual_network);
    write(&Update { action: "PartialUpdate", service_requests: requests.iter().map(entry).collect() })
}

fn entry<'a>(request: &'a ServiceRequest, virtual_network: Option<&'a ArmId>) -> Entry<'a> {
    let service = &request.service;
    let pool = |id: &'a ArmId| Pool {
        id: id.as_str(),
        name: id.name(),
        properties: virtual_network.map(|it| PoolProperties { virtual_network: RefersTo::new(it) }),
    };
    let properties = Properties {
        service_type: match service.direction {
            Direction::Inbound => "Inbound",
            Direction::Outbound => "Outbound",
            Direction::InboundOutbound => "InboundOutbound",
        },
        is_default: service.is_default,
        load_balancer_backend_pools: service.pools.iter().map(pool).collect(),
        public_nat_gateway_id: service.nat_gateway.as_ref().map(ArmId::as_str),
    };
    Entry {
        is_delete: request.is_delete,
        service: Service { name: &service.name, properties: (!request.is_delete).then_some(properties) },
    }
}

/// A registered service as it is read.
#[derive(Deserialize)]
pub(crate) struct RegistrationOutline {
    name: Option<Text<Arc<str>>>,
    id: Option<Text<ArmId>>,
    properties: Option<Found>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Found {
    service_type: Option<Text<Direction>>,
    is_default: Option<bool>,
    #[serde(default, deserialize_with = "list")]
    load_balancer_backend_pools: Vec<Reference>,
    public_nat_gateway_id: Option<Text<ArmId>>,
}

impl Outline<'_> for RegistrationOutline {
    type Model = Registration;

    fn model(self) -> Result<Registration, Misread> {
        let name = self.name.map(|name| name.0).filter(|name| !name.is_empty());
        let name = name.or_else(|| id(self.id).map(|id| id.name().into()));
        let Some(name) = name else {
            return Err(Misread::Malformed(String::from("a registration has neither a name nor an ID")));
        };
        let found = self.properties.unwrap_or_default();
        let pools = ids(found.load_balancer_backend_pools, "a backend pool")?;
        let nat_gateway = id(found.public_nat_gateway_id);
        let direction = match (found.service_type, pools.is_empty(), &nat_gateway) {
            (Some(direction), ..) => direction.0,
            (None, false, None) => Direction::Inbound,
            (None, true, Some(_)) => Direction::Outbound,
            // Nothing tells, so it is what none of ours is.
            (None, ..) => Direction::InboundOutbound,
        };
        Ok(Registration {
            name,
            direction,
            is_default: found.is_default.unwrap_or(false),
            pools,
            nat_gateway,
        })
    }
}
