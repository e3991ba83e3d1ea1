//! Service gateways: the network they serve, and the address that routes lead to.
//!
//! A PUT replaces the whole resource, except for the network and the IPv4 address, which every gateway has.

use std::net::{IpAddr, Ipv4Addr};

use serde_json::{Map, Value, json};
use sluice_model::azure::{ArmId, Gateway, GatewayBody, Subnet};
use sluice_model::call::Body;

use super::super::document::Document;
use super::super::fields::{Given, Object};
use super::super::refused::{Refused, printable};
use super::super::route::Routed;
use super::super::services;
use super::super::top::Top;
use super::{
    Draft, View, draft, first_properties, network, outside, reference, subnet, tags_after, usual_sku,
};

/// What we read, and what only Azure writes.
const KNOWN: [&str; 6] = [
    "provisioningState",
    "resourceGuid",
    "virtualNetwork",
    "routeTargetAddress",
    "routeTargetAddressV6",
    "services",
];

pub(crate) fn read(view: View<'_>, routed: &Routed, top: &Top<'_>) -> Result<Draft, Refused> {
    let id = &routed.target;
    let (old, before) = (view.state().gateways.get(id), view.before(id));
    view.check_location(routed, &top.location)?;
    let (_, sku) = top.sku(&["Standard"], "Standard", before, id.as_str())?;
    let given = &top.properties;
    let virtual_network = match (given.reference("virtualNetwork")?, old) {
        (Given::Value(network), _) => network,
        (Given::Absent, Some(old)) => old.virtual_network.clone(),
        _ => return Err(Refused::no_reference_id(&given.at("virtualNetwork"))),
    };
    view.check_region(&virtual_network, id, &top.location)?;
    let former = old.map(|old| (old.route_target_subnet.clone(), old.route_target_address));
    let target = Target::read(view, id, given, "routeTargetAddress", false)?;
    let (route_target_subnet, route_target_address) = match (&target, former) {
        (Some(target), _) => (target.subnet.clone(), target.v4()),
        (None, Some(former)) => former,
        (None, None) => return Err(Refused::no_reference_id(&given.at("routeTargetAddress.subnet"))),
    };
    let mut properties = Map::new();
    let method = target.as_ref().map(|target| Value::from(target.method));
    let method = method.or_else(|| before?.property("privateIPAllocationMethod").cloned());
    properties.insert("privateIPAllocationMethod".into(), method.unwrap_or_else(|| "Dynamic".into()));
    let target_v6 = Target::read(view, id, given, "routeTargetAddressV6", true)?;
    if let Some(target) = &target_v6 {
        if !view.state().subnets.contains_key(&target.subnet)
            || !network::holds(&virtual_network, &target.subnet)
        {
            return Err(Refused::missing_reference(target.subnet.as_str(), id.as_str()));
        }
        properties.insert("routeTargetAddressV6".into(), target.show());
    }
    let hidden = [KNOWN.as_slice(), &["privateIPAllocationMethod"]].concat();
    properties.extend(given.others(&hidden));
    let zones = top.zones.clone();
    let document = Document { sku: Some(sku), properties, zones, ..top.document(before, String::new()) };
    let body = GatewayBody {
        virtual_network,
        route_target_subnet,
        route_target_address,
        // Of IPv6 only the document knows.
        route_target_address_v6: None,
        tags: tags_after(&top.tags, None),
    };
    Ok(draft(Body::Gateway(body), document))
}

/// A `routeTargetAddress` of a request.
struct Target {
    subnet: ArmId,
    address: Option<IpAddr>,
    method: &'static str,
}

impl Target {
    fn read(
        view: View<'_>,
        id: &ArmId,
        given: &Object<'_>,
        field: &str,
        is_v6: bool,
    ) -> Result<Option<Target>, Refused> {
        let Some(object) = given.object(field)? else { return Ok(None) };
        let Given::Value(subnet) = object.reference("subnet")? else {
            return Err(Refused::no_reference_id(&object.at("subnet")));
        };
        let address = match object.text("privateIPAddress")? {
            None => None,
            Some(text) => match text.parse::<IpAddr>() {
                Ok(address) if address.is_ipv6() == is_v6 => Some(address),
                _ => {
                    let why = format!("'{}' is no address of this family.", printable(text));
                    return Err(Refused::unreadable(&object.at("privateIPAddress"), &why));
                }
            },
        };
        let method = object.word("privateIPAllocationMethod", &["Static", "Dynamic"])?;
        let method = method.unwrap_or(if address.is_some() { "Static" } else { "Dynamic" });
        if method == "Static" && address.is_none() {
            let why = "A static allocation needs an address.";
            return Err(Refused::unreadable(&object.at("privateIPAddress"), why));
        }
        // A subnet that is not there is the model's to refuse.
        let Some(there) = view.state().subnets.get(&subnet) else {
            return Ok(Some(Target { subnet, address, method }));
        };
        if let Some(address) = address {
            check_address(there, address)?;
        }
        let address = address.or_else(|| free_address(view, id, there, is_v6));
        Ok(Some(Target { subnet, address, method }))
    }

    fn v4(&self) -> Option<Ipv4Addr> {
        match self.address {
            Some(IpAddr::V4(address)) => Some(address),
            _ => None,
        }
    }

    fn show(&self) -> Value {
        show_target(&self.subnet, self.address, self.method.into())
    }
}

fn check_address(subnet: &Subnet, address: IpAddr) -> Result<(), Refused> {
    let ranges = subnet::prefixes(&subnet.rest);
    let of_family = ranges.iter().filter(|range| range.has_family_of(address)).collect::<Vec<_>>();
    let Some(range) = of_family.iter().find(|range| range.has(address)) else {
        let ranges = of_family.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let message = format!(
            "Private static IP address {address} does not belong to the range of subnet prefix {ranges}."
        );
        return Err(Refused::provider(400, "PrivateIPAddressNotInSubnet", message));
    };
    if range.is_reserved(address) {
        let message = format!(
            "Private static IP address {address} falls within reserved IP range of subnet prefix {range}."
        );
        return Err(Refused::provider(400, "PrivateIPAddressInReservedRange", message));
    }
    Ok(())
}

/// The address that this gateway has in the subnet, or the first that no gateway has.
fn free_address(view: View<'_>, id: &ArmId, subnet: &Subnet, is_v6: bool) -> Option<IpAddr> {
    if is_v6 {
        // Of IPv6 only the document knows, so every gateway gets the first one of its subnet.
        let ranges = subnet::prefixes(&subnet.rest);
        return ranges.iter().find_map(|range| range.usable().next().filter(IpAddr::is_ipv6));
    }
    let gateways = &view.state().gateways;
    let own = gateways.get(id).filter(|own| own.route_target_subnet == subnet.id);
    if let Some(address) = own.and_then(|own| own.route_target_address) {
        return Some(address.into());
    }
    let is_taken = |address: &IpAddr| {
        gateways.values().any(|it| it.route_target_address.map(IpAddr::V4) == Some(*address))
    };
    let ranges = subnet::prefixes(&subnet.rest);
    // A few more than there are gateways must hit a free one.
    let tries = gateways.len() + 1;
    ranges
        .iter()
        .find_map(|range| range.usable().filter(IpAddr::is_ipv4).take(tries).find(|it| !is_taken(it)))
}

fn show_target(subnet: &ArmId, address: Option<IpAddr>, method: Value) -> Value {
    let mut shown = json!({ "subnet": reference(subnet) });
    if let Some(address) = address {
        shown["privateIPAddress"] = address.to_string().into();
    }
    shown["privateIPAllocationMethod"] = method;
    shown
}

pub(crate) fn show(view: View<'_>, it: &Gateway, document: Option<&Document>) -> Value {
    let stranger = stranger(it);
    let document = document.unwrap_or(&stranger);
    let mut properties = first_properties(&it.meta, None);
    properties.insert("virtualNetwork".into(), reference(&it.virtual_network));
    let method = document.property("privateIPAllocationMethod").cloned().unwrap_or_else(|| "Dynamic".into());
    let target = show_target(&it.route_target_subnet, it.route_target_address.map(IpAddr::V4), method);
    properties.insert("routeTargetAddress".into(), target);
    let others = document.properties.iter().filter(|(key, _)| *key != "privateIPAllocationMethod");
    properties.extend(others.map(|(key, value)| (key.clone(), value.clone())));
    let registered = view.state().registrations(&it.meta.id).map(services::show);
    properties.insert("services".into(), Value::Array(registered.collect()));
    let name = "Microsoft.Network/serviceGateways";
    outside(&it.meta.id, &it.meta.etag, name, true, &it.meta.tags, document, properties)
}

fn stranger(it: &Gateway) -> Document {
    let mut document = Document::of_stranger(&it.meta.id);
    document.sku = Some(usual_sku("Standard"));
    document.properties.insert("privateIPAllocationMethod".into(), "Static".into());
    document
}
