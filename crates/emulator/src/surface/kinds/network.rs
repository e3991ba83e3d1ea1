//! Virtual networks, and the subnets that are written inside of them.
//!
//! The model knows of a network that it is there. Its subnets are resources of their own: a network that is
//! written with a list of them writes, keeps and deletes subnets until there are those and no others; one
//! that is written without a list leaves them alone.

use serde_json::{Map, Value, json};
use sluice_cloud::InlineSubnet;
use sluice_model::azure::{ArmId, ETag, Provisioning};
use sluice_model::call::Body;

use super::super::document::{Document, begins_with};
use super::super::fields::Object;
use super::super::prefix::Prefix;
use super::super::refused::Refused;
use super::super::route::Routed;
use super::super::top::Top;
use super::{Draft, View, keep_others, new_guid, outside, state_word, subnet, tags_after};

/// What we read, and what only Azure writes.
const KNOWN: [&str; 9] = [
    "provisioningState",
    "resourceGuid",
    "addressSpace",
    "privateEndpointVNetPolicies",
    "subnets",
    "virtualNetworkPeerings",
    "enableDdosProtection",
    "flowLogs",
    "defaultPublicNatGateway",
];

pub(crate) fn read(view: View<'_>, routed: &Routed, top: &Top<'_>) -> Result<Draft, Refused> {
    let id = &routed.target;
    let before = view.before(id);
    view.check_location(routed, &top.location)?;
    let given = &top.properties;
    for (name, why) in [
        ("virtualNetworkPeerings", "Peerings are not emulated."),
        ("enableDdosProtection", "DDoS protection is not emulated."),
        ("ddosProtectionPlan", "DDoS protection is not emulated."),
        ("ipAllocations", "IP allocations are not emulated."),
    ] {
        given.refuse(name, why)?;
    }
    let former = |name: &str| before.and_then(|before| before.property(name)).cloned();
    let space = match given.object("addressSpace")? {
        Some(space) => read_space(&space, id)?,
        None => former("addressSpace").ok_or_else(|| no_space(id))?,
    };
    let policies = given.word("privateEndpointVNetPolicies", &["Disabled", "Basic"])?.map(Value::from);
    let mut properties = Map::new();
    properties.insert("addressSpace".into(), space);
    keep_others(&mut properties, before, given, &KNOWN);
    let policies = policies.or_else(|| former("privateEndpointVNetPolicies"));
    properties.insert("privateEndpointVNetPolicies".into(), policies.unwrap_or_else(|| "Disabled".into()));
    let subnets = match given.objects("subnets")? {
        None => None,
        Some(listed) => Some(read_subnets(view, id, &listed)?),
    };
    let document = Document {
        tags: tags_after(&top.tags, before.map(|before| &before.tags)),
        properties,
        ..top.document(before, new_guid(routed, view))
    };
    check_all(view, id, &document, subnets.as_deref())?;
    Ok(Draft { body: Body::Container, document, subnets })
}

fn no_space(id: &ArmId) -> Refused {
    let message = format!("Virtual network {id} has no address space.");
    Refused::provider(400, "MissingAddressSpace", message)
}

fn read_space(space: &Object<'_>, id: &ArmId) -> Result<Value, Refused> {
    space.refuse("ipamPoolPrefixAllocations", "IPAM pools are not emulated.")?;
    let texts = space.texts("addressPrefixes")?.unwrap_or_default();
    if texts.is_empty() {
        return Err(no_space(id));
    }
    for text in &texts {
        Prefix::read(text, id.as_str())?;
    }
    Ok(json!({ "addressPrefixes": texts }))
}

fn read_subnets(
    view: View<'_>,
    network: &ArmId,
    listed: &[Object<'_>],
) -> Result<Vec<InlineSubnet>, Refused> {
    let mut subnets = Vec::new();
    let nothing = Map::new();
    for one in listed {
        let Some(name) = one.text("name")?.filter(|name| !name.is_empty()) else {
            return Err(Refused::unreadable(&one.at("name"), "A subnet has no name."));
        };
        if name.contains(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_' | '.')) {
            return Err(Refused::bad_name(name));
        }
        let id = network.child("subnets", name);
        let given = one.object("properties")?.unwrap_or_else(|| Object::of(&nothing, one.path()));
        let body = subnet::read_properties(view, &id, &given)?;
        subnets.push(InlineSubnet { name: name.into(), body });
    }
    Ok(subnets)
}

/// The subnets as they would be must fit into the space as it would be.
fn check_all(
    view: View<'_>,
    id: &ArmId,
    document: &Document,
    listed: Option<&[InlineSubnet]>,
) -> Result<(), Refused> {
    let spaces = spaces(document);
    match listed {
        Some(listed) => {
            let all: Vec<_> = listed.iter().map(|it| (&*it.name, subnet::prefixes(&it.body.rest))).collect();
            check_in(id, &spaces, &all)
        }
        None => {
            let there = view.state().subnets.values().filter(|it| holds(id, &it.id));
            let all: Vec<_> = there.map(|it| (it.id.name(), subnet::prefixes(&it.rest))).collect();
            check_in(id, &spaces, &all)
        }
    }
}

/// The same for one network that is there; nobody knows the space of one that came without a document.
pub(crate) fn check_ranges(
    view: View<'_>,
    network: &ArmId,
    subnets: &[(&str, Vec<Prefix>)],
) -> Result<(), Refused> {
    match view.before(network) {
        Some(document) => check_in(network, &spaces(document), subnets),
        None => Ok(()),
    }
}

fn check_in(network: &ArmId, spaces: &[Prefix], subnets: &[(&str, Vec<Prefix>)]) -> Result<(), Refused> {
    for (at, (name, ranges)) in subnets.iter().enumerate() {
        for range in ranges {
            if !spaces.iter().any(|space| space.contains(range)) {
                let message = format!(
                    "Subnet '{name}' is not valid because its IP address range is outside the IP address range \
                     of virtual network '{}'.",
                    network.name()
                );
                return Err(Refused::provider(400, "NetcfgInvalidSubnet", message));
            }
            let mut earlier = subnets.iter().take(at).flat_map(|(_, ranges)| ranges);
            if earlier.any(|other| other.overlaps(range)) {
                let message = format!(
                    "Subnet '{name}' is not valid because its IP address range overlaps with that of an \
                     existing subnet in virtual network '{}'.",
                    network.name()
                );
                return Err(Refused::provider(400, "NetcfgSubnetRangesOverlap", message));
            }
        }
    }
    Ok(())
}

fn spaces(document: &Document) -> Vec<Prefix> {
    let space = document.property("addressSpace").and_then(|space| space.get("addressPrefixes"));
    let texts = space.and_then(Value::as_array).into_iter().flatten();
    texts.filter_map(|text| Prefix::parse(text.as_str()?)).collect()
}

/// Whether a subnet is in a network.
pub(crate) fn holds(network: &ArmId, subnet: &ArmId) -> bool {
    begins_with(subnet, &format!("{network}/"))
}

/// A network with its subnets, in this state.
pub(crate) fn show(
    view: View<'_>,
    id: &ArmId,
    etag: &ETag,
    state: Provisioning,
    document: Option<&Document>,
) -> Value {
    let there = view.state().subnets.values().filter(|it| holds(id, &it.id));
    let subnets: Vec<Value> =
        there.clone().map(|it| subnet::show(it, subnet::state_of(view, &it.id))).collect();
    let stranger = || {
        let ranges = there.flat_map(|it| subnet::prefixes(&it.rest)).map(|it| Value::from(it.to_string()));
        let mut document = Document::of_stranger(id);
        let ranges: Vec<Value> = ranges.collect();
        let space = if ranges.is_empty() { json!(["10.0.0.0/8"]) } else { Value::Array(ranges) };
        document.properties.insert("addressSpace".into(), json!({ "addressPrefixes": space }));
        document.properties.insert("privateEndpointVNetPolicies".into(), "Disabled".into());
        document
    };
    let document = document.cloned().unwrap_or_else(stranger);
    let mut properties = Map::new();
    properties.insert("provisioningState".into(), state_word(state).into());
    properties.insert("resourceGuid".into(), document.guid.as_str().into());
    properties.extend(document.properties.clone());
    properties.insert("subnets".into(), Value::Array(subnets));
    properties.insert("virtualNetworkPeerings".into(), json!([]));
    properties.insert("enableDdosProtection".into(), false.into());
    // The id as it was first spelled.
    let id = view.state().virtual_networks.get_key_value(id).map_or(id, |(id, _)| id);
    outside(id, etag, "Microsoft.Network/virtualNetworks", true, &document.tags, &document, properties)
}
