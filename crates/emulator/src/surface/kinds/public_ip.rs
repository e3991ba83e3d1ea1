//! Public IPs.

use serde_json::{Map, Value, json};
use sluice_model::address::Family;
use sluice_model::azure::{PublicIp, PublicIpBody};
use sluice_model::call::Body;

use super::super::document::Document;
use super::super::refused::Refused;
use super::super::route::Routed;
use super::super::top::Top;
use super::{
    Draft, View, draft, first_properties, keep_others, new_guid, outside, reference, tags_after, usual_sku,
};

/// What we read, and what only Azure writes.
const KNOWN: [&str; 11] = [
    "provisioningState",
    "resourceGuid",
    "ipAddress",
    "ipConfiguration",
    "natGateway",
    "publicIPAddressVersion",
    "publicIPAllocationMethod",
    "idleTimeoutInMinutes",
    "ipTags",
    "ddosSettings",
    "migrationPhase",
];

pub(crate) fn read(view: View<'_>, routed: &Routed, top: &Top<'_>) -> Result<Draft, Refused> {
    let id = &routed.target;
    let (old, before) = (view.state().public_ips.get(id), view.before(id));
    view.check_location(routed, &top.location)?;
    let (sku_name, sku) = top.sku(&["Basic", "Standard", "StandardV2"], "Basic", before, id.as_str())?;
    let given = &top.properties;
    for (name, why) in [
        ("publicIPPrefix", "Public IP prefixes are not emulated."),
        ("linkedPublicIPAddress", "Linked public IPs are not emulated."),
        ("servicePublicIPAddress", "Service public IPs are not emulated."),
        ("dnsSettings", "There is no DNS."),
    ] {
        given.refuse(name, why)?;
    }
    let family = match given.word("publicIPAddressVersion", &["IPv4", "IPv6"])? {
        Some("IPv6") => Family::V6,
        Some(_) => Family::V4,
        None => old.map_or(Family::V4, |old| old.family),
    };
    let former = |name: &str| before.and_then(|before| before.property(name)).cloned();
    let method = match given.word("publicIPAllocationMethod", &["Static", "Dynamic"])? {
        Some(method) => Value::from(method),
        None => former("publicIPAllocationMethod")
            .unwrap_or_else(|| if sku_name == "Basic" { "Dynamic" } else { "Static" }.into()),
    };
    if sku_name != "Basic" && method != "Static" {
        let message = format!("Standard sku publicIp {id} must have AllocationMethod set to Static.");
        return Err(Refused::provider(400, "StandardSkuPublicIPMustBeStatic", message));
    }
    let idle = given.whole("idleTimeoutInMinutes", 4, 30)?.map(Value::from);
    let ip_tags = given.objects("ipTags")?;
    let ip_tags = ip_tags.map(|all| all.iter().map(|it| Value::Object(it.map().clone())).collect());
    let mut properties = Map::new();
    properties.insert("publicIPAllocationMethod".into(), method);
    let idle = idle.or_else(|| former("idleTimeoutInMinutes")).unwrap_or_else(|| 4.into());
    properties.insert("idleTimeoutInMinutes".into(), idle);
    keep_others(&mut properties, before, given, &KNOWN);
    let ip_tags = ip_tags.or_else(|| former("ipTags")).unwrap_or_else(|| json!([]));
    properties.insert("ipTags".into(), ip_tags);
    if sku_name != "Basic" {
        let ddos = given.object("ddosSettings")?.map(|it| Value::Object(it.map().clone()));
        let ddos = ddos.or_else(|| former("ddosSettings")).unwrap_or_else(inherited_protection);
        properties.insert("ddosSettings".into(), ddos);
    }
    let tags = tags_after(&top.tags, old.map(|old| &old.meta.tags));
    let document = Document { sku: Some(sku), properties, ..top.document(before, new_guid(routed, view)) };
    Ok(draft(Body::PublicIp(PublicIpBody { family, tags }), document))
}

fn inherited_protection() -> Value {
    json!({ "protectionMode": "VirtualNetworkInherited" })
}

pub(crate) fn show(it: &PublicIp, document: Option<&Document>) -> Value {
    let stranger = stranger(it);
    let document = document.unwrap_or(&stranger);
    let mut properties = first_properties(&it.meta, Some(&document.guid));
    // A dynamic address is there while somebody uses it.
    let is_shown = document.text("publicIPAllocationMethod") != Some("Dynamic") || it.used_by.is_some();
    if let Some(address) = it.address.filter(|_| is_shown) {
        properties.insert("ipAddress".into(), address.to_string().into());
    }
    properties.insert("publicIPAddressVersion".into(), it.family.to_string().into());
    properties.extend(document.properties.iter().filter(|(key, _)| *key != "ddosSettings").map(pair));
    if let Some(user) = &it.used_by {
        let field = if user.segment("natGateways").is_some() { "natGateway" } else { "ipConfiguration" };
        properties.insert(field.into(), reference(user));
    }
    properties.extend(document.properties.iter().filter(|(key, _)| *key == "ddosSettings").map(pair));
    let name = "Microsoft.Network/publicIPAddresses";
    outside(&it.meta.id, &it.meta.etag, name, false, &it.meta.tags, document, properties)
}

fn pair((key, value): (&String, &Value)) -> (String, Value) {
    (key.clone(), value.clone())
}

fn stranger(it: &PublicIp) -> Document {
    let mut document = Document::of_stranger(&it.meta.id);
    document.sku = Some(usual_sku("StandardV2"));
    document.properties.insert("publicIPAllocationMethod".into(), "Static".into());
    document.properties.insert("idleTimeoutInMinutes".into(), 4.into());
    document.properties.insert("ipTags".into(), json!([]));
    document.properties.insert("ddosSettings".into(), inherited_protection());
    document
}
