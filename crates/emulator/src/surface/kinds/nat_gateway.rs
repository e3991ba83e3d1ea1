//! NAT gateways.

use serde_json::{Map, Value};
use sluice_model::azure::{ArmId, NatGateway, NatGatewayBody};
use sluice_model::call::Body;

use super::super::document::Document;
use super::super::refused::Refused;
use super::super::route::Routed;
use super::super::top::Top;
use super::{
    Draft, View, draft, first_properties, keep_others, new_guid, outside, reference, tags_after, usual_sku,
};

/// What we read, and what only Azure writes.
const KNOWN: [&str; 8] = [
    "provisioningState",
    "resourceGuid",
    "idleTimeoutInMinutes",
    "type",
    "subnets",
    "publicIpAddresses",
    "publicIpAddressesV6",
    "serviceGateway",
];

pub(crate) fn read(view: View<'_>, routed: &Routed, top: &Top<'_>) -> Result<Draft, Refused> {
    let id = &routed.target;
    let (old, before) = (view.state().nat_gateways.get(id), view.before(id));
    view.check_location(routed, &top.location)?;
    let (sku_name, sku) = top.sku(&["Standard", "StandardV2"], "Standard", before, id.as_str())?;
    let given = &top.properties;
    for (name, why) in [
        ("publicIpPrefixes", "Public IP prefixes are not emulated."),
        ("publicIpPrefixesV6", "Public IP prefixes are not emulated."),
        ("sourceVirtualNetwork", "NAT gateways of whole networks are not emulated."),
    ] {
        given.refuse(name, why)?;
    }
    let former = |list: fn(&NatGateway) -> &Vec<ArmId>| old.map(|old| list(old).clone()).unwrap_or_default();
    let public_ips = given.references("publicIpAddresses")?.unwrap_or_else(|| former(|old| &old.public_ips));
    let public_ips_v6 =
        given.references("publicIpAddressesV6")?.unwrap_or_else(|| former(|old| &old.public_ips_v6));
    for public_ip in public_ips.iter().chain(&public_ips_v6) {
        view.check_region(public_ip, id, &top.location)?;
        let its = view.before(public_ip).and_then(Document::sku_name);
        if let Some(its) = its.filter(|its| *its != sku_name) {
            let message = format!(
                "NAT gateway {id} with sku {sku_name} cannot use public IP address {public_ip} with sku {its}."
            );
            return Err(Refused::provider(400, "NatGatewayPublicIpAddressSkuMismatch", message));
        }
    }
    let gateway = given.reference("serviceGateway")?.or_keep(old.and_then(|old| old.gateway.clone()));
    if let Some(gateway) = &gateway {
        view.check_region(gateway, id, &top.location)?;
    }
    let idle = given.whole("idleTimeoutInMinutes", 4, 120)?.map(Value::from);
    let idle = idle.or_else(|| before?.property("idleTimeoutInMinutes").cloned());
    let mut properties = Map::new();
    properties.insert("idleTimeoutInMinutes".into(), idle.unwrap_or_else(|| 4.into()));
    properties.insert("type".into(), "Public".into());
    keep_others(&mut properties, before, given, &KNOWN);
    let tags = tags_after(&top.tags, old.map(|old| &old.meta.tags));
    let document = Document { sku: Some(sku), properties, ..top.document(before, new_guid(routed, view)) };
    Ok(draft(Body::NatGateway(NatGatewayBody { gateway, public_ips, public_ips_v6, tags }), document))
}

pub(crate) fn show(it: &NatGateway, document: Option<&Document>) -> Value {
    let stranger = stranger(it);
    let document = document.unwrap_or(&stranger);
    let mut properties = first_properties(&it.meta, Some(&document.guid));
    properties.extend(document.properties.iter().map(|(key, value)| (key.clone(), value.clone())));
    for (field, ids) in [("publicIpAddresses", &it.public_ips), ("publicIpAddressesV6", &it.public_ips_v6)] {
        if !ids.is_empty() {
            properties.insert(field.into(), ids.iter().map(reference).collect());
        }
    }
    if let Some(gateway) = &it.gateway {
        properties.insert("serviceGateway".into(), reference(gateway));
    }
    let name = "Microsoft.Network/natGateways";
    outside(&it.meta.id, &it.meta.etag, name, true, &it.meta.tags, document, properties)
}

fn stranger(it: &NatGateway) -> Document {
    let mut document = Document::of_stranger(&it.meta.id);
    document.sku = Some(usual_sku("StandardV2"));
    document.properties.insert("idleTimeoutInMinutes".into(), 4.into());
    document.properties.insert("type".into(), "Public".into());
    document
}
