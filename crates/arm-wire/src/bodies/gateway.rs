//! Service gateways.
//!
//! The route target address has a field for each family. We know of one address and use the field
//! of its family; the other is left out, so that it stays as it is.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::net::IpAddr;

use serde::{Deserialize, Serialize};
use sluice_model::address::Family;
use sluice_model::azure::{ArmId, Gateway, GatewayBody, Provisioning};

use super::text::Text;
use super::{Misread, Outline, Provisioned, Reference, RefersTo, Resource, Sku, Written};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Properties<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    virtual_network: Option<RefersTo<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    route_target_address: Option<RouteTarget<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    route_target_address_v6: Option<RouteTarget<'a>>,
}

#[derive(Serialize)]
struct RouteTarget<'a> {
    #[serde(rename = "privateIPAddress", skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    #[serde(rename = "privateIPAllocationMethod")]
    allocation: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    subnet: Option<RefersTo<'a>>,
}

/// The body of a PUT.
pub(crate) fn json(body: &GatewayBody, region: &str) -> Vec<u8> {
    let address = body.route_target_address.map(|address| address.to_canonical());
    let target = RouteTarget {
        allocation: if address.is_some() { "Static" } else { "Dynamic" },
        address: address.map(|address| address.to_string()),
        subnet: RefersTo::known(&body.route_target_subnet),
    };
    let (v4, v6) = match address.map(Family::of) {
        Some(Family::V6) => (None, Some(target)),
        _ => (Some(target), None),
    };
    let properties = Properties {
        virtual_network: RefersTo::known(&body.virtual_network),
        route_target_address: v4,
        route_target_address_v6: v6,
    };
    Written::json(region, Sku::STANDARD_REGIONAL, properties, &body.tags)
}

/// A service gateway as it is read.
pub(crate) type GatewayOutline = Resource<Found>;

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Found {
    provisioning_state: Option<Text<Provisioning>>,
    virtual_network: Option<Reference>,
    route_target_address: Option<FoundTarget>,
    route_target_address_v6: Option<FoundTarget>,
}

#[derive(Deserialize)]
struct FoundTarget {
    #[serde(rename = "privateIPAddress")]
    address: Option<Text<Option<IpAddr>>>,
    subnet: Option<Reference>,
}

impl Provisioned for Found {
    fn state(&self) -> Option<Provisioning> {
        self.provisioning_state.as_ref().map(|state| state.0)
    }
}

impl Outline<'_> for GatewayOutline {
    type Model = Gateway;

    fn model(self) -> Result<Gateway, Misread> {
        let (meta, found) = self.split()?;
        let mut gateway = Gateway {
            meta,
            // Not to be there and to be empty is the same; what is empty is not written back.
            virtual_network: found.virtual_network.and_then(Reference::id).unwrap_or_else(nothing),
            route_target_subnet: nothing(),
            route_target_address: None,
        };
        // IPv4 is preferred, being the one that every gateway has.
        for target in [found.route_target_address_v6, found.route_target_address].into_iter().flatten() {
            if let Some(subnet) = target.subnet.and_then(Reference::id) {
                gateway.route_target_subnet = subnet;
            }
            gateway.route_target_address =
                target.address.and_then(|address| address.0).or(gateway.route_target_address);
        }
        Ok(gateway)
    }
}

fn nothing() -> ArmId {
    ArmId::new("")
}
