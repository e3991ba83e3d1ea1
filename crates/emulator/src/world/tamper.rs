//! Somebody else's hands in the same subscription, as JSON.
//!
//! What they write goes through the surface like any request, so a resource of theirs looks like one;
//! only nobody counts it, and it is done at once. What they take away, they take away with all references
//! to it.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use sluice_cloud::{Forbidden, LockLevel, Tamper};
use sluice_model::Time;
use sluice_model::azure::{ArmId, Direction, Registration, Rule};
use sluice_model::call::Payload;
use sluice_model::kube::Protocol;

use super::Problem;
use crate::surface::Surface;

/// One thing that somebody else does.
#[derive(Debug)]
pub(super) enum Deed {
    /// Through the surface.
    Request(Method, ArmId, Option<Value>),
    /// Behind its back.
    Model(Tamper),
}

/// The words for it.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
enum Words {
    /// Writes a resource, with the body that Azure takes.
    Put { id: String, body: Value },
    /// Deletes a resource, whoever refers to it; groups, networks and subnets by Azure's rules.
    Delete { id: String },
    /// Changes the tags of a resource.
    EditTags { id: String, tags: BTreeMap<String, String> },
    /// Changes the rules of a load balancer.
    EditRules { id: String, rules: Vec<RuleWords> },
    /// Takes the gateway off a subnet.
    DetachSubnet { id: String },
    /// Registers a service with a gateway.
    Register { gateway: String, service: ServiceWords },
    /// Unregisters one, and takes its addresses away.
    Unregister { gateway: String, name: String },
    /// Binds an address.
    AddAddress { gateway: String, location: IpAddr, address: IpAddr, services: Vec<String> },
    /// Unbinds one.
    RemoveAddress { gateway: String, location: IpAddr, address: IpAddr },
    /// Locks a resource, group or subscription.
    Lock { scope: String, level: Level },
    /// Unlocks it.
    Unlock { scope: String },
    /// Forbids by policy to write at or below a scope.
    Deny { scope: String },
    /// Takes the policy away.
    Allow { scope: String },
    /// Takes a role away from every caller: what they try answers 403.
    Forbid {
        scope: String,
        #[serde(default)]
        what: What,
    },
    /// Gives the role back.
    Permit { scope: String },
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RuleWords {
    protocol: ProtocolWord,
    frontend_port: u16,
    backend_port: u16,
    #[serde(default = "four")]
    idle_timeout_in_minutes: u8,
}

#[derive(Clone, Copy, Debug, Deserialize)]
enum ProtocolWord {
    Tcp,
    Udp,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ServiceWords {
    name: String,
    service_type: TypeWord,
    #[serde(default)]
    is_default: bool,
    #[serde(default)]
    load_balancer_backend_pools: Vec<String>,
    #[serde(default)]
    public_nat_gateway_id: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
enum TypeWord {
    Inbound,
    Outbound,
    InboundOutbound,
}

#[derive(Clone, Copy, Debug, Deserialize)]
enum Level {
    CanNotDelete,
    ReadOnly,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
enum What {
    Everything,
    #[default]
    Writes,
}

fn four() -> u8 {
    4
}

impl Deed {
    /// Reads what somebody does.
    pub(super) fn read(value: &Value) -> Result<Deed, String> {
        let words = Words::deserialize(value).map_err(|problem| problem.to_string())?;
        Ok(Deed::Model(match words {
            Words::Put { id, body } => return Ok(Deed::Request(Method::PUT, path(&id)?, Some(body))),
            Words::Delete { id } => {
                let id = path(&id)?;
                let mut parts = id.as_str().rsplit('/');
                match parts.nth(1).map(str::to_ascii_lowercase).as_deref() {
                    Some("publicipaddresses") => Tamper::DeletePublicIp(id),
                    Some("loadbalancers") => Tamper::DeleteLoadBalancer(id),
                    Some("natgateways") => Tamper::DeleteNatGateway(id),
                    Some("servicegateways") => Tamper::DeleteGateway(id),
                    _ => return Ok(Deed::Request(Method::DELETE, id, None)),
                }
            }
            Words::EditTags { id, tags } => Tamper::EditTags {
                id: path(&id)?,
                tags: tags
                    .iter()
                    .map(|(name, value)| (name.as_str().into(), value.as_str().into()))
                    .collect(),
            },
            Words::EditRules { id, rules } => Tamper::EditLoadBalancer {
                id: path(&id)?,
                rules: rules.iter().map(RuleWords::rule).collect(),
            },
            Words::DetachSubnet { id } => Tamper::DetachSubnet(path(&id)?),
            Words::Register { gateway, service } => {
                Tamper::PutRegistration { gateway: path(&gateway)?, registration: service.registration()? }
            }
            Words::Unregister { gateway, name } => {
                Tamper::DeleteRegistration { gateway: path(&gateway)?, name: name.into() }
            }
            Words::AddAddress { gateway, location, address, services } => Tamper::AddAddress {
                gateway: path(&gateway)?,
                location,
                address,
                services: services.into_iter().map(Arc::from).collect(),
            },
            Words::RemoveAddress { gateway, location, address } => {
                Tamper::DeleteAddress { gateway: path(&gateway)?, location, address }
            }
            Words::Lock { scope, level } => Tamper::Lock {
                scope: path(&scope)?,
                level: match level {
                    Level::CanNotDelete => LockLevel::CanNotDelete,
                    Level::ReadOnly => LockLevel::ReadOnly,
                },
            },
            Words::Unlock { scope } => Tamper::Unlock(path(&scope)?),
            Words::Deny { scope } => Tamper::PolicyDeny(path(&scope)?),
            Words::Allow { scope } => Tamper::PolicyAllow(path(&scope)?),
            Words::Forbid { scope, what } => Tamper::Forbid {
                scope: path(&scope)?,
                what: match what {
                    What::Everything => Forbidden::Everything,
                    What::Writes => Forbidden::Writes,
                },
            },
            Words::Permit { scope } => Tamper::Permit(path(&scope)?),
        }))
    }

    /// Does it.
    pub(super) fn carry_out(self, surface: &mut Surface, now: Time) -> Result<Value, Problem> {
        match self {
            Deed::Model(change) => {
                let answer = surface.cloud_mut().tamper(now, change);
                match answer.payload {
                    Payload::Error(error) => Err(refused(answer.status, &error.code, &error.message)),
                    _ => Ok(json!({"status": answer.status})),
                }
            }
            Deed::Request(method, id, body) => {
                let is_network = id.segment("providers").is_some();
                let version = if is_network { "2025-05-01" } else { "2021-04-01" };
                let request = Request::builder()
                    .method(method)
                    .uri(format!("{id}?api-version={version}"))
                    .header("content-type", "application/json")
                    .body(body.map_or_else(Bytes::new, |body| body.to_string().into()))
                    .map_err(|problem| Problem::bad(format!("id: {problem}")))?;
                let limits = surface.cloud_mut().set_aside_limits();
                let handled = surface.handle(now, &request, "https://localhost", 1.0, None);
                let cloud = surface.cloud_mut();
                cloud.bring_back_limits(limits);
                let Some(answer) = handled.answer else { return Err(Problem::bad("nothing came back")) };
                let status = answer.status().as_u16();
                let shown: Value = serde_json::from_slice(answer.body()).unwrap_or(Value::Null);
                if status < 400 {
                    // What is refused has begun nothing; what runs then is somebody else's.
                    cloud.end_now(now, &id);
                    return Ok(json!({"status": status, "answer": shown}));
                }
                let word = |name: &str| shown["error"][name].as_str().unwrap_or("?").to_owned();
                Err(refused(status, &word("code"), &word("message")))
            }
        }
    }
}

impl RuleWords {
    fn rule(&self) -> Rule {
        Rule {
            protocol: match self.protocol {
                ProtocolWord::Tcp => Protocol::Tcp,
                ProtocolWord::Udp => Protocol::Udp,
            },
            frontend_port: self.frontend_port,
            backend_port: self.backend_port,
            idle_timeout_minutes: self.idle_timeout_in_minutes,
        }
    }
}

impl ServiceWords {
    fn registration(self) -> Result<Registration, String> {
        Ok(Registration {
            name: self.name.into(),
            direction: match self.service_type {
                TypeWord::Inbound => Direction::Inbound,
                TypeWord::Outbound => Direction::Outbound,
                TypeWord::InboundOutbound => Direction::InboundOutbound,
            },
            is_default: self.is_default,
            pools: self.load_balancer_backend_pools.iter().map(|id| path(id)).collect::<Result<_, _>>()?,
            nat_gateway: self.public_nat_gateway_id.as_deref().map(path).transpose()?,
        })
    }
}

fn path(id: &str) -> Result<ArmId, String> {
    if id.to_ascii_lowercase().starts_with("/subscriptions/") && !id.ends_with('/') {
        return Ok(ArmId::new(id));
    }
    Err(format!("{id:?} is not the id of a resource, group or subscription: /subscriptions/…"))
}

fn refused(status: u16, code: &str, message: &str) -> Problem {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::CONFLICT);
    Problem { status, message: format!("the cloud refuses it: {code}: {message}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_words_are_refused_with_the_good_ones() {
        for (value, word) in [
            (json!({}), "do"),
            (json!({"do": "destroy"}), "unregister"),
            (json!({"do": "delete"}), "id"),
            (json!({"do": "delete", "id": "web"}), "/subscriptions/"),
            (json!({"do": "delete", "id": "/subscriptions/s/x", "why": 1}), "why"),
            (json!({"do": "lock", "scope": "/subscriptions/s", "level": "Tight"}), "ReadOnly"),
        ] {
            let problem = Deed::read(&value).unwrap_err();
            assert!(problem.contains(word), "{value}: {problem}");
        }
    }

    #[test]
    fn a_deletion_finds_its_kind() {
        let network = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network";
        let read = |id: &str| Deed::read(&json!({"do": "delete", "id": id})).unwrap();
        let lb = format!("{network}/LoadBalancers/web");
        assert!(matches!(read(&lb), Deed::Model(Tamper::DeleteLoadBalancer(_))));
        let subnet = format!("{network}/virtualNetworks/v/subnets/s");
        assert!(matches!(read(&subnet), Deed::Request(Method::DELETE, ..)));
        assert!(matches!(read("/subscriptions/s/resourceGroups/rg"), Deed::Request(Method::DELETE, ..)));
    }
}
