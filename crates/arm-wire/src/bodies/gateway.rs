//! Service gateways.
//!
//! The route target address has a field for each family. A new gateway has the fields of the addresses
//! that it is given, or that of IPv4 for Azure to fill in. A gateway that is there is written back as the
//! text that came, like a subnet: whatever is in it that we do not know stays.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::net::IpAddr;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use sluice_model::azure::{ArmId, Gateway, GatewayBody, Provisioning};

use super::text::Text;
use super::{Misread, Outline, Provisioned, Reference, RefersTo, Resource, Sku, Written, parse};
use crate::Unwritable;

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

/// The body of a PUT of a new gateway.
pub(crate) fn json(body: &GatewayBody, region: &str) -> Vec<u8> {
    let target = |address: Option<String>| RouteTarget {
        allocation: if address.is_some() { "Static" } else { "Dynamic" },
        address,
        subnet: RefersTo::known(&body.route_target_subnet),
    };
    let v4 = body.route_target_address.map(|address| address.to_string());
    let v6 = body.route_target_address_v6.map(|address| address.to_string());
    let properties = Properties {
        virtual_network: RefersTo::known(&body.virtual_network),
        route_target_address: (v4.is_some() || v6.is_none()).then(|| target(v4)),
        route_target_address_v6: v6.map(|address| target(Some(address))),
    };
    Written::json(region, Sku::STANDARD_REGIONAL, properties, &body.tags)
}

/// The body of a PUT of a gateway that is there.
pub(crate) fn as_read(gateway: &Gateway) -> Result<Vec<u8>, Unwritable> {
    let document: &RawValue = serde_json::from_str(&gateway.document)
        .map_err(|error| Unwritable(format!("cannot write the gateway back: {error}")))?;
    Ok(document.get().into())
}

/// A service gateway as it is read.
pub(crate) struct GatewayOutline<'a>(&'a RawValue);

impl<'de: 'a, 'a> Deserialize<'de> for GatewayOutline<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<GatewayOutline<'a>, D::Error> {
        <&RawValue>::deserialize(deserializer).map(GatewayOutline)
    }
}

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

impl FoundTarget {
    fn ip(target: Option<&FoundTarget>) -> Option<IpAddr> {
        target?.address.as_ref()?.0
    }
}

impl Provisioned for Found {
    fn state(&self) -> Option<Provisioning> {
        self.provisioning_state.as_ref().map(|state| state.0)
    }
}

impl<'a> Outline<'a> for GatewayOutline<'a> {
    type Model = Gateway;

    fn model(self) -> Result<Gateway, Misread> {
        let document = self.0.get();
        let (meta, found) = parse::<Resource<Found>>(document.as_bytes())?.split()?;
        let targets = [found.route_target_address, found.route_target_address_v6];
        let [v4, v6] = targets.each_ref().map(|target| FoundTarget::ip(target.as_ref()));
        // IPv4 is preferred, being the one that every gateway has.
        let subnet = targets.into_iter().flatten().find_map(|target| target.subnet.and_then(Reference::id));
        Ok(Gateway {
            meta,
            // Not to be there and to be empty is the same.
            virtual_network: found.virtual_network.and_then(Reference::id).unwrap_or_else(nothing),
            route_target_subnet: subnet.unwrap_or_else(nothing),
            route_target_address: match v4 {
                Some(IpAddr::V4(address)) => Some(address),
                _ => None,
            },
            route_target_address_v6: match v6 {
                Some(IpAddr::V6(address)) => Some(address),
                _ => None,
            },
            document: document.into(),
        })
    }
}

fn nothing() -> ArmId {
    ArmId::new("")
}
