//! Load balancers: one public frontend or none, pools that the gateway fills, and rules between them.
//!
//! A PUT replaces the whole resource: a rule vanishes by being left out. The model knows ports and
//! protocols of rules and the names of pools; which rule has which name, leads to which pool and has which
//! switches is in the document.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use sluice_model::azure::{ArmId, ForeignLoadBalancerBody, LoadBalancer, Rule};
use sluice_model::call::Body;
use sluice_model::kube::Protocol;

use super::super::document::Document;
use super::super::fields::{Given, Object};
use super::super::refused::{Refused, printable};
use super::super::route::Routed;
use super::super::top::Top;
use super::{
    Draft, View, draft, first_properties, new_guid, outside, reference, state_word, tags_after, usual_sku,
};

const FRONTENDS: &str = "frontendIPConfigurations";
const POOLS: &str = "backendAddressPools";
const RULES: &str = "loadBalancingRules";

/// What we read, and what only Azure writes.
const KNOWN: [&str; 9] = [
    "provisioningState",
    "resourceGuid",
    FRONTENDS,
    POOLS,
    RULES,
    "probes",
    "inboundNatRules",
    "outboundRules",
    "inboundNatPools",
];

pub(crate) fn read(view: View<'_>, routed: &Routed, top: &Top<'_>) -> Result<Draft, Refused> {
    let (old, before) = (view.state().load_balancers.get(&routed.target), view.before(&routed.target));
    // The id as it was first spelled, because those of its parts are made from it.
    let id = old.map_or(&routed.target, |old| &old.meta.id);
    view.check_location(routed, &top.location)?;
    let sku = read_sku(top, before, id)?;
    let given = &top.properties;
    for (name, why) in [
        ("probes", "Probes are not emulated."),
        ("inboundNatRules", "Inbound NAT rules are not emulated."),
        ("inboundNatPools", "Inbound NAT pools are not emulated."),
        ("outboundRules", "Outbound rules are not emulated."),
    ] {
        given.refuse(name, why)?;
    }
    if let Some(scope) = given.word("scope", &["Public", "Private"])?.filter(|scope| *scope == "Private") {
        let why = format!("Load balancers of scope {scope} are not emulated.");
        return Err(Refused::not_emulated(&given.at("scope"), &why));
    }
    let frontend = read_frontend(view, id, given, &top.location)?;
    let pools = read_pools(given)?;
    let rules = read_rules(id, given, frontend.as_ref().map(|it| &*it.name), &pools)?;

    let mut properties = Map::new();
    let frontends = frontend.iter().map(|it| it.document.clone()).collect();
    properties.insert(FRONTENDS.into(), Value::Array(frontends));
    properties.insert(POOLS.into(), pools.iter().map(|(_, document)| document.clone()).collect());
    properties.insert(RULES.into(), rules.iter().map(|(_, document)| document.clone()).collect());
    properties.extend(given.others(&KNOWN));
    let document = Document { sku: Some(sku), properties, ..top.document(before, new_guid(routed, view)) };
    let body = ForeignLoadBalancerBody {
        frontend: frontend.map(|it| (it.name, it.public_ip)),
        pools: pools.into_iter().map(|(name, _)| name).collect(),
        rules: rules.into_iter().map(|(rule, _)| rule).collect(),
        tags: tags_after(&top.tags, None),
    };
    Ok(draft(Body::ForeignLoadBalancer(body), document))
}

fn read_sku(top: &Top<'_>, before: Option<&Document>, id: &ArmId) -> Result<Value, Refused> {
    let (name, sku) = top.sku(&["Standard", "Service", "Basic", "Gateway"], "Basic", before, id.as_str())?;
    if matches!(name, "Basic" | "Gateway") {
        let why = format!("Load balancers of sku {name} are not emulated; Standard and Service are.");
        return Err(Refused::not_emulated("sku.name", &why));
    }
    Ok(sku)
}

struct Frontend {
    name: Arc<str>,
    public_ip: ArmId,
    document: Value,
}

fn read_frontend(
    view: View<'_>,
    id: &ArmId,
    given: &Object<'_>,
    location: &str,
) -> Result<Option<Frontend>, Refused> {
    let frontends = given.objects(FRONTENDS)?.unwrap_or_default();
    if frontends.len() > 1 {
        let why = "More than one frontend is not emulated.";
        return Err(Refused::not_emulated(&given.at(FRONTENDS), why));
    }
    let Some(one) = frontends.first() else { return Ok(None) };
    let name = child_name(one)?;
    let Some(inside) = one.object("properties")? else {
        return Err(Refused::no_reference_id(&one.at("properties.publicIPAddress")));
    };
    for (field, why) in [
        ("subnet", "Private frontends are not emulated."),
        ("privateIPAddress", "Private frontends are not emulated."),
        ("publicIPPrefix", "Public IP prefixes are not emulated."),
        ("gatewayLoadBalancer", "Gateway load balancers are not emulated."),
    ] {
        inside.refuse(field, why)?;
    }
    let Given::Value(public_ip) = inside.reference("publicIPAddress")? else {
        return Err(Refused::no_reference_id(&inside.at("publicIPAddress")));
    };
    view.check_region(&public_ip, id, location)?;
    if view.before(&public_ip).and_then(Document::sku_name) == Some("Basic") {
        let message =
            format!("Standard sku load balancer {id} cannot reference Basic sku publicIP {public_ip}.");
        return Err(Refused::provider(400, "PublicIPAndLBSkuDoNotMatch", message));
    }
    let known = [
        "provisioningState",
        "privateIPAllocationMethod",
        "publicIPAddress",
        "inboundNatRules",
        "inboundNatPools",
        "outboundRules",
        RULES,
    ];
    let mut properties = Map::new();
    let method = inside.word("privateIPAllocationMethod", &["Dynamic", "Static"])?.unwrap_or("Dynamic");
    properties.insert("privateIPAllocationMethod".into(), method.into());
    properties.extend(inside.others(&known));
    let mut document = json!({ "name": name, "properties": properties });
    if let Some(zones) = one.texts("zones")?.filter(|zones| !zones.is_empty()) {
        document["zones"] = zones.into();
    }
    Ok(Some(Frontend { name: name.into(), public_ip, document }))
}

fn read_pools(given: &Object<'_>) -> Result<Vec<(Arc<str>, Value)>, Refused> {
    let mut pools = Vec::new();
    for one in given.objects(POOLS)?.unwrap_or_default() {
        let name = child_name(&one)?;
        let mut properties = Map::new();
        if let Some(inside) = one.object("properties")? {
            for (field, why) in [
                ("loadBalancerBackendAddresses", "Pools are filled by the service gateway only."),
                ("tunnelInterfaces", "Tunnels are not emulated."),
            ] {
                inside.refuse(field, why)?;
            }
            properties = inside.others(&[
                "provisioningState",
                "loadBalancerBackendAddresses",
                "backendIPConfigurations",
                "inboundNatRules",
                "outboundRule",
                "outboundRules",
                RULES,
            ]);
        }
        pools.push((Arc::from(name), json!({ "name": name, "properties": properties })));
    }
    Ok(pools)
}

fn read_rules(
    id: &ArmId,
    given: &Object<'_>,
    frontend: Option<&str>,
    pools: &[(Arc<str>, Value)],
) -> Result<Vec<(Rule, Value)>, Refused> {
    let mut rules: Vec<(Rule, Value)> = Vec::new();
    for one in given.objects(RULES)?.unwrap_or_default() {
        let name = child_name(&one)?;
        if rules
            .iter()
            .any(|(_, other)| other["name"].as_str().is_some_and(|it| it.eq_ignore_ascii_case(name)))
        {
            let message = format!("Resource {id} has two child resources with the same name ({name}).");
            return Err(Refused::provider(400, "DuplicateResourceName", message));
        }
        let Some(inside) = one.object("properties")? else {
            return Err(Refused::unreadable(&one.at("properties"), "A rule has no properties."));
        };
        rules.push(read_rule(id, name, &inside, frontend, pools)?);
    }
    Ok(rules)
}

fn read_rule(
    id: &ArmId,
    name: &str,
    given: &Object<'_>,
    frontend: Option<&str>,
    pools: &[(Arc<str>, Value)],
) -> Result<(Rule, Value), Refused> {
    given.refuse("probe", "Probes are not emulated.")?;
    let protocol = match given.word("protocol", &["Tcp", "Udp", "All", "Quic"])? {
        Some("Tcp") => Protocol::Tcp,
        Some("Udp") => Protocol::Udp,
        Some(word) => {
            let why = format!("Rules for protocol {word} are not emulated.");
            return Err(Refused::not_emulated(&given.at("protocol"), &why));
        }
        None => return Err(Refused::unreadable(&given.at("protocol"), "A rule has no protocol.")),
    };
    let port = |field: &str, most: i64| -> Result<u16, Refused> {
        let port = given.whole(field, 1, most)?;
        let port = port.and_then(|port| u16::try_from(port).ok());
        port.ok_or_else(|| Refused::unreadable(&given.at(field), "A rule has no port."))
    };
    let idle = given.whole("idleTimeoutInMinutes", 4, 30)?.unwrap_or(4);
    let rule = Rule {
        protocol,
        frontend_port: port("frontendPort", 65_534)?,
        backend_port: port("backendPort", 65_535)?,
        idle_timeout_minutes: u8::try_from(idle).unwrap_or(4),
    };
    let own = |field: &str, word: &str, names: &mut dyn Iterator<Item = &str>| -> Result<ArmId, Refused> {
        let Given::Value(named) = given.reference(field)? else {
            return Err(Refused::no_reference_id(&given.at(field)));
        };
        let found = names.map(|name| id.child(word, name)).find(|part| *part == named);
        found.ok_or_else(|| Refused::missing_reference(named.as_str(), id.as_str()))
    };
    let frontend = own("frontendIPConfiguration", FRONTENDS, &mut frontend.into_iter())?;
    let pool = match given.references("backendAddressPools")?.as_deref() {
        // Some clients send the one pool in the list only.
        Some([only]) if given.raw("backendAddressPool").is_none_or(Value::is_null) => {
            let names = pools.iter().map(|(name, _)| id.child(POOLS, name));
            let found = names.into_iter().find(|part| part == only);
            found.ok_or_else(|| Refused::missing_reference(only.as_str(), id.as_str()))?
        }
        Some([_, _, ..]) => {
            let why = "Rules with several pools are not emulated.";
            return Err(Refused::not_emulated(&given.at("backendAddressPools"), why));
        }
        _ => own("backendAddressPool", POOLS, &mut pools.iter().map(|(name, _)| &**name))?,
    };
    let mut properties = Map::new();
    properties.insert("frontendIPConfiguration".into(), reference(&frontend));
    properties.insert("frontendPort".into(), rule.frontend_port.into());
    properties.insert("backendPort".into(), rule.backend_port.into());
    let floating = given.flag("enableFloatingIP")?.unwrap_or(false);
    properties.insert("enableFloatingIP".into(), floating.into());
    properties.insert("idleTimeoutInMinutes".into(), rule.idle_timeout_minutes.into());
    properties.insert("protocol".into(), protocol_word(rule.protocol).into());
    for field in ["enableTcpReset", "disableOutboundSnat"] {
        properties.insert(field.into(), given.flag(field)?.unwrap_or(false).into());
    }
    let words = ["Default", "SourceIP", "SourceIPProtocol"];
    let distribution = given.word("loadDistribution", &words)?.unwrap_or("Default");
    properties.insert("loadDistribution".into(), distribution.into());
    properties.insert("backendAddressPool".into(), reference(&pool));
    let mut known: Vec<&str> = properties.keys().map(String::as_str).collect();
    known.extend(["provisioningState", "backendAddressPools", "probe"]);
    let others = given.others(&known);
    properties.extend(others);
    Ok((rule, json!({ "name": name, "properties": properties })))
}

/// The name of a frontend, pool or rule.
fn child_name<'a>(one: &Object<'a>) -> Result<&'a str, Refused> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    match one.text("name")? {
        Some(name) if !name.is_empty() && name.len() <= 80 && name.chars().all(plain) => Ok(name),
        Some(name) => Err(Refused::bad_name(name)),
        None => Err(Refused::unreadable(&one.at("name"), &format!("{} has no name.", printable(one.path())))),
    }
}

pub(crate) fn show(it: &LoadBalancer, document: Option<&Document>) -> Value {
    let stranger = stranger(it);
    let document = document.unwrap_or(&stranger);
    let shown = Shown { it, document };
    let mut properties = first_properties(&it.meta, Some(&document.guid));
    let rules = shown.rules();
    properties.insert(FRONTENDS.into(), shown.frontends(&rules));
    properties.insert(POOLS.into(), shown.pools(&rules));
    properties.insert(RULES.into(), Value::Array(rules));
    for (key, value) in document.properties.iter().filter(|(key, _)| !KNOWN.contains(&key.as_str())) {
        properties.insert(key.clone(), value.clone());
    }
    for nothing in ["probes", "inboundNatRules", "outboundRules", "inboundNatPools"] {
        properties.insert(nothing.into(), json!([]));
    }
    let name = "Microsoft.Network/loadBalancers";
    outside(&it.meta.id, &it.meta.etag, name, true, &it.meta.tags, document, properties)
}

/// A load balancer on its way out.
struct Shown<'a> {
    it: &'a LoadBalancer,
    document: &'a Document,
}

impl Shown<'_> {
    /// The parts of a kind that the document has.
    fn written(&self, field: &str) -> impl Iterator<Item = &Value> {
        self.document.property(field).and_then(Value::as_array).into_iter().flatten()
    }

    /// A part with its own id, ETag and state, which are those of the whole.
    fn part(&self, word: &str, name: &str, zones: Option<&Value>, inside: Map<String, Value>) -> Value {
        let meta = &self.it.meta;
        let mut part = json!({
            "name": name,
            "id": meta.id.child(word, name).as_str(),
            "etag": &*meta.etag.0,
            "type": format!("Microsoft.Network/loadBalancers/{word}"),
        });
        if let Some(zones) = zones {
            part["zones"] = zones.clone();
        }
        let mut properties = Map::new();
        properties.insert("provisioningState".into(), state_word(meta.provisioning).into());
        properties.extend(inside);
        part["properties"] = Value::Object(properties);
        part
    }

    fn rules(&self) -> Vec<Value> {
        let shown = self.it.rules.iter().map(|rule| {
            let usual = self.usual_rule(rule);
            let written = self.written(RULES).find(|it| fits(it, rule)).unwrap_or(&usual);
            let mut inside = Map::new();
            let properties = written["properties"].as_object().into_iter().flatten();
            for (key, value) in properties {
                inside.insert(key.clone(), value.clone());
                if key == "backendAddressPool" {
                    inside.insert("backendAddressPools".into(), json!([value]));
                }
            }
            // Somebody else may have changed these.
            inside.insert("backendPort".into(), rule.backend_port.into());
            inside.insert("idleTimeoutInMinutes".into(), rule.idle_timeout_minutes.into());
            self.part(RULES, written["name"].as_str().unwrap_or("rule"), None, inside)
        });
        shown.collect()
    }

    /// A rule that somebody else made.
    fn usual_rule(&self, rule: &Rule) -> Value {
        let id = &self.it.meta.id;
        let frontend = self.written(FRONTENDS).find_map(|it| it["name"].as_str()).unwrap_or("frontend");
        let mut properties = json!({
            "frontendIPConfiguration": reference(&id.child(FRONTENDS, frontend)),
            "frontendPort": rule.frontend_port,
            "backendPort": rule.backend_port,
            "enableFloatingIP": false,
            "idleTimeoutInMinutes": rule.idle_timeout_minutes,
            "protocol": protocol_word(rule.protocol),
            "enableTcpReset": rule.protocol == Protocol::Tcp,
            "disableOutboundSnat": false,
            "loadDistribution": "Default",
        });
        if let Some(pool) = self.it.pools.first() {
            properties["backendAddressPool"] = reference(&id.child(POOLS, pool));
        }
        let name = format!("rule-{}-{}", rule.protocol.word(), rule.frontend_port);
        json!({ "name": name, "properties": properties })
    }

    fn frontends(&self, rules: &[Value]) -> Value {
        let shown = self.written(FRONTENDS).map(|written| {
            let name = written["name"].as_str().unwrap_or("frontend");
            let mut inside = written["properties"].as_object().cloned().unwrap_or_default();
            if let Some(public_ip) = &self.it.public_ip {
                inside.insert("publicIPAddress".into(), reference(public_ip));
            }
            let used = self.users(rules, "frontendIPConfiguration", FRONTENDS, name);
            if !used.is_empty() {
                inside.insert(RULES.into(), used.into());
            }
            self.part(FRONTENDS, name, written.get("zones"), inside)
        });
        shown.collect()
    }

    fn pools(&self, rules: &[Value]) -> Value {
        let shown = self.it.pools.iter().map(|name| {
            let written = self.written(POOLS).find(|it| it["name"].as_str() == Some(name));
            let inside = written.and_then(|it| it["properties"].as_object()).cloned();
            let mut inside = inside.unwrap_or_default();
            inside.insert("loadBalancerBackendAddresses".into(), json!([]));
            let used = self.users(rules, "backendAddressPool", POOLS, name);
            if !used.is_empty() {
                inside.insert(RULES.into(), used.into());
            }
            self.part(POOLS, name, None, inside)
        });
        shown.collect()
    }

    /// The rules that refer to a part.
    fn users(&self, rules: &[Value], field: &str, word: &str, name: &str) -> Vec<Value> {
        let part = self.it.meta.id.child(word, name);
        let refers =
            |rule: &&Value| rule["properties"][field]["id"].as_str().is_some_and(|id| part == ArmId::new(id));
        rules.iter().filter(refers).map(|rule| json!({ "id": rule["id"] })).collect()
    }
}

/// Whether a written rule is this one of the model.
fn fits(written: &Value, rule: &Rule) -> bool {
    written["properties"]["frontendPort"].as_u64() == Some(rule.frontend_port.into())
        && written["properties"]["protocol"].as_str() == Some(protocol_word(rule.protocol))
}

const fn protocol_word(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Tcp => "Tcp",
        Protocol::Udp => "Udp",
        Protocol::Sctp => "Sctp",
    }
}

fn stranger(it: &LoadBalancer) -> Document {
    let mut document = Document::of_stranger(&it.meta.id);
    document.sku = Some(usual_sku("Service"));
    let frontends = match &it.public_ip {
        Some(_) => json!([{ "name": "frontend", "properties": { "privateIPAllocationMethod": "Dynamic" } }]),
        None => json!([]),
    };
    document.properties.insert(FRONTENDS.into(), frontends);
    document.properties.insert("scope".into(), "Public".into());
    document
}
