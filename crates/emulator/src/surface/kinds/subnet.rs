//! Subnets, alone and inside their network.
//!
//! The model keeps a subnet's reference to its gateway and carries everything else about as a text that it
//! does not look into. So the document of a subnet is in the model: that text is its properties as JSON.

use std::net::IpAddr;

use serde_json::{Map, Value, json};
use sluice_model::azure::{ArmId, Provisioning, Subnet, SubnetBody};
use sluice_model::call::Body;

use super::super::document::Document;
use super::super::fields::Object;
use super::super::prefix::Prefix;
use super::super::refused::Refused;
use super::super::route::Routed;
use super::super::top::Top;
use super::{Draft, View, draft, network, reference, state_word};

/// What we read, and what only Azure writes.
const KNOWN: [&str; 13] = [
    "provisioningState",
    "purpose",
    "ipConfigurations",
    "ipConfigurationProfiles",
    "privateEndpoints",
    "resourceNavigationLinks",
    "serviceAssociationLinks",
    "addressPrefix",
    "addressPrefixes",
    "delegations",
    "privateEndpointNetworkPolicies",
    "privateLinkServiceNetworkPolicies",
    "serviceGateway",
];

pub(crate) fn read(view: View<'_>, routed: &Routed, top: &Top<'_>) -> Result<Draft, Refused> {
    let id = &routed.target;
    let body = read_properties(view, id, &top.properties)?;
    if let Some(network) = id.parent("virtualNetworks") {
        let others =
            view.state().subnets.values().filter(|it| it.id != *id && network::holds(&network, &it.id));
        let others = others.map(|it| (it.id.name(), prefixes(&it.rest)));
        let all: Vec<_> = others.chain([(id.name(), prefixes(&body.rest))]).collect();
        network::check_ranges(view, &network, &all)?;
    }
    Ok(draft(Body::Subnet(body), Document::default()))
}

/// Reads what a subnet should be, wherever it stands.
pub(crate) fn read_properties(view: View<'_>, id: &ArmId, given: &Object<'_>) -> Result<SubnetBody, Refused> {
    let old = view.state().subnets.get(id);
    let before = old.map(|old| properties(&old.rest)).unwrap_or_default();
    for (name, why) in [
        ("networkSecurityGroup", "Security groups are not emulated."),
        ("routeTable", "Route tables are not emulated."),
        ("natGateway", "NAT gateways work for service gateways here, not for subnets."),
        ("serviceEndpointPolicies", "Service endpoint policies are not emulated."),
        ("ipAllocations", "IP allocations are not emulated."),
        ("ipamPoolPrefixAllocations", "IPAM pools are not emulated."),
        ("applicationGatewayIPConfigurations", "Application gateways are not emulated."),
    ] {
        given.refuse(name, why)?;
    }
    let mut properties = Map::new();
    let one = given.text("addressPrefix")?;
    let many = given.texts("addressPrefixes")?.filter(|many| !many.is_empty());
    for text in one.into_iter().chain(many.iter().flatten().copied()) {
        Prefix::read(text, id.as_str())?;
    }
    match (one, many) {
        (Some(one), _) => drop(properties.insert("addressPrefix".into(), one.into())),
        (None, Some(many)) => drop(properties.insert("addressPrefixes".into(), many.into())),
        (None, None) => {
            let former = ["addressPrefix", "addressPrefixes"].into_iter();
            let mut former = former.filter_map(|name| Some((name, before.get(name)?)));
            let Some((name, value)) = former.next() else {
                let message = format!("Subnet {id} has no address prefix.");
                return Err(Refused::provider(400, "NetcfgSubnetAddressPrefixMissing", message));
            };
            properties.insert(name.into(), value.clone());
        }
    }
    let former = |name: &str| before.get(name).cloned();
    let delegations = given.objects("delegations")?;
    let delegations = delegations.map(|all| all.iter().map(|it| Value::Object(it.map().clone())).collect());
    let delegations = delegations.or_else(|| former("delegations")).unwrap_or_else(|| json!([]));
    properties.insert("delegations".into(), delegations);
    for (name, usual) in
        [("privateEndpointNetworkPolicies", "Disabled"), ("privateLinkServiceNetworkPolicies", "Enabled")]
    {
        let words = ["Enabled", "Disabled", "NetworkSecurityGroupEnabled", "RouteTableEnabled"];
        let value = given.word(name, &words)?.map(Value::from).or_else(|| former(name));
        properties.insert(name.into(), value.unwrap_or_else(|| usual.into()));
    }
    let kept = Document { properties: before, ..Document::default() };
    super::keep_others(&mut properties, Some(&kept), given, &KNOWN);
    let gateway = given.reference("serviceGateway")?.or_keep(old.and_then(|old| old.gateway.clone()));
    let rest = Value::Object(properties).to_string();
    check_users(view, id, &prefixes(&rest))?;
    Ok(SubnetBody { gateway, rest: rest.into() })
}

/// The route targets in a subnet stay in it.
fn check_users(view: View<'_>, id: &ArmId, ranges: &[Prefix]) -> Result<(), Refused> {
    for gateway in view.state().gateways.values().filter(|it| it.route_target_subnet == *id) {
        if let Some(address) = gateway.route_target_address.map(IpAddr::V4)
            && !ranges.iter().any(|range| range.has(address))
            && view
                .state()
                .subnets
                .get(id)
                .is_some_and(|it| prefixes(&it.rest).iter().any(|it| it.has(address)))
        {
            let message = format!(
                "Subnet {id} is in use with {} and cannot be updated: address {address} would lie outside.",
                gateway.meta.id
            );
            return Err(Refused::provider(400, "InUseSubnetCannotBeUpdated", message));
        }
    }
    Ok(())
}

/// The properties inside the model's text. Other hands may have written no JSON but a bare prefix.
fn properties(rest: &str) -> Map<String, Value> {
    match serde_json::from_str(rest) {
        Ok(Value::Object(properties)) => properties,
        _ => {
            let prefix = Prefix::parse(rest).map_or_else(|| "10.0.0.0/16".into(), |it| it.to_string());
            let properties = json!({
                "addressPrefix": prefix,
                "delegations": [],
                "privateEndpointNetworkPolicies": "Disabled",
                "privateLinkServiceNetworkPolicies": "Enabled",
            });
            properties.as_object().cloned().unwrap_or_default()
        }
    }
}

/// The ranges of a subnet.
pub(crate) fn prefixes(rest: &str) -> Vec<Prefix> {
    let properties = properties(rest);
    let many = properties.get("addressPrefixes").and_then(Value::as_array);
    let texts = properties.get("addressPrefix").into_iter().chain(many.into_iter().flatten());
    texts.filter_map(|text| Prefix::parse(text.as_str()?)).collect()
}

/// A subnet, in this state.
pub(crate) fn show(it: &Subnet, state: Provisioning) -> Value {
    let mut shown = Map::new();
    shown.insert("name".into(), it.id.name().into());
    shown.insert("id".into(), it.id.as_str().into());
    shown.insert("etag".into(), (&*it.etag.0).into());
    let mut inside = Map::new();
    inside.insert("provisioningState".into(), state_word(state).into());
    inside.extend(properties(&it.rest));
    if let Some(gateway) = &it.gateway {
        inside.insert("serviceGateway".into(), reference(gateway));
    }
    shown.insert("properties".into(), inside.into());
    shown.insert("type".into(), "Microsoft.Network/virtualNetworks/subnets".into());
    Value::Object(shown)
}

/// Whether the last write of a subnet has come through.
pub(crate) fn state_of(view: View<'_>, id: &ArmId) -> Provisioning {
    view.cloud.provisioning_of(id).unwrap_or(Provisioning::Succeeded)
}
