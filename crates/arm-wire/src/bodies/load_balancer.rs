//! Load balancers: one frontend, one pool, and rules between the two.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use sluice_model::azure::{ArmId, LoadBalancer, LoadBalancerBody, Provisioning, Rule};
use sluice_model::kube::Protocol;

use super::text::{Text, id};
use super::{Misread, Outline, Part, Provisioned, Reference, RefersTo, Resource, Sku, Written, list};
use crate::Unwritable;

/// What we call the frontend.
const FRONTEND: &str = "frontend";
/// What Azure takes where nothing is said.
const IDLE_MINUTES: i64 = 4;

#[derive(Serialize)]
struct Properties<'a> {
    scope: &'static str,
    #[serde(rename = "frontendIPConfigurations")]
    frontends: [Part<'a, Frontend<'a>>; 1],
    #[serde(rename = "backendAddressPools")]
    pools: [Part<'a, Pool>; 1],
    #[serde(rename = "loadBalancingRules")]
    rules: Vec<NamedRule<'a>>,
}

#[derive(Serialize)]
struct Frontend<'a> {
    #[serde(rename = "publicIPAddress")]
    public_ip: RefersTo<'a>,
}

/// Nothing: the gateway fills the pool.
#[derive(Serialize)]
struct Pool {}

#[derive(Serialize)]
struct NamedRule<'a> {
    name: String,
    properties: RuleProperties<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RuleProperties<'a> {
    protocol: &'static str,
    frontend_port: u16,
    backend_port: u16,
    #[serde(rename = "enableFloatingIP")]
    enable_floating_ip: bool,
    idle_timeout_in_minutes: u8,
    /// UDP has no connections to reset, and Azure refuses the field there.
    #[serde(skip_serializing_if = "Option::is_none")]
    enable_tcp_reset: Option<bool>,
    #[serde(rename = "frontendIPConfiguration")]
    frontend: RefersTo<'a>,
    backend_address_pool: RefersTo<'a>,
}

/// The body of a PUT: the load balancer as it should be, whole.
pub(crate) fn json(target: &ArmId, body: &LoadBalancerBody, region: &str) -> Result<Vec<u8>, Unwritable> {
    let name = target.name();
    let frontend = target.child("frontendIPConfigurations", FRONTEND);
    let pool = target.child("backendAddressPools", name);
    let rules = body.rules.iter().map(|rule| written(rule, &frontend, &pool));
    let properties = Properties {
        scope: "Public",
        frontends: [Part {
            name: FRONTEND,
            properties: Frontend { public_ip: RefersTo::new(&body.public_ip) },
        }],
        pools: [Part { name, properties: Pool {} }],
        rules: rules.collect::<Result<_, _>>()?,
    };
    Ok(Written::json(region, Sku::SERVICE, properties, &body.tags))
}

fn written<'a>(rule: &Rule, frontend: &'a ArmId, pool: &'a ArmId) -> Result<NamedRule<'a>, Unwritable> {
    let protocol = match rule.protocol {
        Protocol::Tcp => "Tcp",
        Protocol::Udp => "Udp",
        Protocol::Sctp => {
            return Err(Unwritable(format!(
                "the rule for port {} uses SCTP, which Azure load balancers do not support",
                rule.frontend_port
            )));
        }
    };
    let properties = RuleProperties {
        protocol,
        frontend_port: rule.frontend_port,
        backend_port: rule.backend_port,
        enable_floating_ip: false,
        idle_timeout_in_minutes: rule.idle_timeout_minutes,
        enable_tcp_reset: (rule.protocol == Protocol::Tcp).then_some(true),
        frontend: RefersTo::new(frontend),
        backend_address_pool: RefersTo::new(pool),
    };
    Ok(NamedRule { name: format!("rule-{}-{}", rule.protocol.word(), rule.frontend_port), properties })
}

/// A load balancer as it is read; others may have made it in any shape.
pub(crate) type LoadBalancerOutline = Resource<Found>;

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Found {
    provisioning_state: Option<Text<Provisioning>>,
    #[serde(rename = "frontendIPConfigurations", default, deserialize_with = "list")]
    frontends: Vec<FoundPart<FoundFrontend>>,
    #[serde(default, deserialize_with = "list")]
    backend_address_pools: Vec<FoundPart<FoundPool>>,
    #[serde(default, deserialize_with = "list")]
    load_balancing_rules: Vec<FoundPart<FoundRule>>,
}

#[derive(Deserialize)]
struct FoundPart<P> {
    name: Option<Text<Arc<str>>>,
    id: Option<Text<ArmId>>,
    properties: Option<P>,
}

#[derive(Deserialize)]
struct FoundFrontend {
    #[serde(rename = "publicIPAddress")]
    public_ip: Option<Reference>,
}

#[derive(Deserialize)]
struct FoundPool {}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct FoundRule {
    protocol: Option<Text<Protocol>>,
    frontend_port: Option<i64>,
    backend_port: Option<i64>,
    idle_timeout_in_minutes: Option<i64>,
    #[serde(rename = "enableFloatingIP")]
    enable_floating_ip: Option<bool>,
    enable_tcp_reset: Option<bool>,
    #[serde(rename = "frontendIPConfiguration")]
    frontend: Option<Reference>,
    backend_address_pool: Option<Reference>,
}

impl Provisioned for Found {
    fn state(&self) -> Option<Provisioning> {
        self.provisioning_state.as_ref().map(|state| state.0)
    }
}

impl Outline<'_> for LoadBalancerOutline {
    type Model = LoadBalancer;

    fn model(self) -> Result<LoadBalancer, Misread> {
        let (meta, found) = self.split()?;
        let edited = found.is_edited(meta.id.name());
        let public_ips = found.frontends.into_iter().filter_map(|it| it.properties?.public_ip?.id());
        let public_ip = { public_ips }.next();
        let pools = found.backend_address_pools.into_iter().map(FoundPart::called);
        let rules = found.load_balancing_rules.into_iter();
        Ok(LoadBalancer {
            meta,
            public_ip,
            pools: pools.collect::<Result<_, _>>()?,
            rules: rules.map(|rule| rule.properties.unwrap_or_default().model()).collect(),
            edited,
        })
    }
}

impl Found {
    /// Whether anything that we write, and the model does not keep, is said to be different. What is
    /// missing says nothing: to take it for a change would be a write with every look.
    fn is_edited(&self, name: &str) -> bool {
        let mut rules = self.load_balancing_rules.iter().filter_map(|rule| rule.properties.as_ref());
        let another = |part: &FoundPart<_>| part.name.as_ref().is_some_and(|it| is_not(&it.0, FRONTEND));
        self.frontends.len() > 1 || self.frontends.iter().any(another) || rules.any(|it| it.is_edited(name))
    }
}

fn is_not(name: &str, ours: &str) -> bool {
    !name.eq_ignore_ascii_case(ours)
}

impl<P> FoundPart<P> {
    fn called(self) -> Result<Arc<str>, Misread> {
        let name = self.name.map(|name| name.0).filter(|name| !name.is_empty());
        name.or_else(|| id(self.id).map(|id| id.name().into()))
            .ok_or_else(|| Misread::Malformed(String::from("a backend pool has neither a name nor an ID")))
    }
}

impl FoundRule {
    fn is_edited(&self, load_balancer: &str) -> bool {
        let leads_elsewhere = |to: &Option<Reference>, ours: &str| {
            let id = to.as_ref().and_then(|it| it.id.as_ref());
            id.is_some_and(|id| is_not(id.0.name(), ours))
        };
        let is_tcp = self.protocol.as_ref().is_some_and(|protocol| protocol.0 == Protocol::Tcp);
        self.enable_floating_ip == Some(true)
            || is_tcp && self.enable_tcp_reset == Some(false)
            || leads_elsewhere(&self.frontend, FRONTEND)
            || leads_elsewhere(&self.backend_address_pool, load_balancer)
    }

    /// What is out of all bounds stays at the bound, where it differs from every rule of ours.
    fn model(self) -> Rule {
        let port = |port: Option<i64>| {
            u16::try_from(port.unwrap_or(0).clamp(0, i64::from(u16::MAX))).unwrap_or(u16::MAX)
        };
        let minutes = self.idle_timeout_in_minutes.unwrap_or(IDLE_MINUTES).clamp(0, i64::from(u8::MAX));
        Rule {
            protocol: self.protocol.map_or(Protocol::Sctp, |protocol| protocol.0),
            frontend_port: port(self.frontend_port),
            backend_port: port(self.backend_port),
            idle_timeout_minutes: u8::try_from(minutes).unwrap_or(u8::MAX),
        }
    }
}
