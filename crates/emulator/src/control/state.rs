//! Everything that there is, as one document: the truth, whatever lagging reads say.
//!
//! It is the model's view, so that tests can judge by it: who uses a public IP, how many addresses a
//! service has, what runs and when it ends. Lists are in the order of ids and never depend on how something
//! came about.

use serde_json::{Value, json};
use sluice_cloud::{Cloud, Forbidden, LockLevel};
use sluice_model::Time;
use sluice_model::address::Family;
use sluice_model::azure::{ArmId, Direction, Location, Meta, Provisioning, Registration, Rule};
use sluice_model::kube::Protocol;

use crate::settings::{show_buckets, show_quota};

/// The whole cloud.
pub(super) fn show(cloud: &Cloud, now: Time, factor: f64) -> Value {
    let state = cloud.state();
    let ids = |ids: &[ArmId]| ids.iter().map(|it| json!(it.as_str())).collect::<Value>();
    json!({
        "time": {"emulatedMs": now.as_millis(), "factor": factor},
        "resourceGroups": state.groups.iter().map(|it| json!(it.as_str())).collect::<Value>(),
        "virtualNetworks": state.virtual_networks.iter().map(|(it, etag)| json!({
            "id": it.as_str(),
            "etag": &*etag.0,
            "provisioningState": cloud.provisioning_of(it).map(word),
        })).collect::<Value>(),
        "subnets": state.subnets.values().map(|it| json!({
            "id": it.id.as_str(),
            "etag": &*it.etag.0,
            "provisioningState": cloud.provisioning_of(&it.id).map(word),
            "serviceGateway": id(&it.gateway),
        })).collect::<Value>(),
        "publicIPAddresses": state.public_ips.values().map(|it| with(&it.meta, json!({
            "family": match it.family { Family::V4 => "IPv4", Family::V6 => "IPv6" },
            "ipAddress": it.address,
            "usedBy": id(&it.used_by),
        }))).collect::<Value>(),
        "loadBalancers": state.load_balancers.values().map(|it| with(&it.meta, json!({
            "publicIPAddress": id(&it.public_ip),
            "pools": it.pools.iter().map(|name| json!(&**name)).collect::<Value>(),
            "rules": it.rules.iter().map(rule).collect::<Value>(),
            "isRegistered": state.is_registered(&it.meta.id),
        }))).collect::<Value>(),
        "natGateways": state.nat_gateways.values().map(|it| with(&it.meta, json!({
            "serviceGateway": id(&it.gateway),
            "publicIpAddresses": ids(&it.public_ips),
            "publicIpAddressesV6": ids(&it.public_ips_v6),
            "isRegistered": state.is_registered(&it.meta.id),
        }))).collect::<Value>(),
        "serviceGateways": state.gateways.values().map(|it| with(&it.meta, json!({
            "virtualNetwork": it.virtual_network.as_str(),
            "routeTargetSubnet": it.route_target_subnet.as_str(),
            "routeTargetAddress": it.route_target_address,
            "services": state.registrations(&it.meta.id).map(|service| {
                registration(service, state.mapped(&it.meta.id, &service.name))
            }).collect::<Value>(),
            "addressLocations": state.locations(&it.meta.id).map(location).collect::<Value>(),
        }))).collect::<Value>(),
        "operations": cloud.running().map(|it| json!({
            "id": it.id.as_str(),
            "target": it.target.as_str(),
            "work": it.work,
            "sinceMs": it.since.as_millis(),
            "endsAtMs": it.ends.map(Time::as_millis),
        })).collect::<Value>(),
        "settings": {
            "quota": show_quota(cloud.quota()),
            "buckets": show_buckets(cloud.buckets()),
            "slowness": cloud.slowness(),
            "poison": cloud.poisoned().map(|it| json!(it)).collect::<Value>(),
            "locks": cloud.locks().map(|(scope, level)| json!({
                "scope": scope.as_str(),
                "level": match level {
                    LockLevel::CanNotDelete => "CanNotDelete",
                    LockLevel::ReadOnly => "ReadOnly",
                },
            })).collect::<Value>(),
            "denied": cloud.denied().map(|it| json!(it.as_str())).collect::<Value>(),
            "forbidden": cloud.forbidden().map(|(scope, what)| json!({
                "scope": scope.as_str(),
                "what": match what {
                    Forbidden::Everything => "everything",
                    Forbidden::Writes => "writes",
                },
            })).collect::<Value>(),
        },
    })
}

fn with(meta: &Meta, rest: Value) -> Value {
    let mut shown = json!({
        "id": meta.id.as_str(),
        "etag": &*meta.etag.0,
        "provisioningState": word(meta.provisioning),
        "tags": meta.tags.iter().map(|(name, value)| (name.to_string(), json!(&**value)))
            .collect::<serde_json::Map<_, _>>(),
    });
    if let (Some(shown), Value::Object(rest)) = (shown.as_object_mut(), rest) {
        shown.extend(rest);
    }
    shown
}

fn id(id: &Option<ArmId>) -> Option<&str> {
    id.as_ref().map(ArmId::as_str)
}

fn word(provisioning: Provisioning) -> &'static str {
    match provisioning {
        Provisioning::Succeeded => "Succeeded",
        Provisioning::Updating => "Updating",
        Provisioning::Deleting => "Deleting",
        Provisioning::Failed => "Failed",
        Provisioning::Unknown => "Unknown",
    }
}

fn rule(rule: &Rule) -> Value {
    json!({
        "protocol": match rule.protocol {
            Protocol::Tcp => "Tcp",
            Protocol::Udp => "Udp",
            Protocol::Sctp => "Sctp",
        },
        "frontendPort": rule.frontend_port,
        "backendPort": rule.backend_port,
        "idleTimeoutInMinutes": rule.idle_timeout_minutes,
    })
}

fn registration(service: &Registration, mapped: usize) -> Value {
    json!({
        "name": &*service.name,
        "serviceType": match service.direction {
            Direction::Inbound => "Inbound",
            Direction::Outbound => "Outbound",
            Direction::InboundOutbound => "InboundOutbound",
        },
        "isDefault": service.is_default,
        "loadBalancerBackendPools": service.pools.iter().map(|it| json!(it.as_str())).collect::<Value>(),
        "publicNatGatewayId": id(&service.nat_gateway),
        "addresses": mapped,
    })
}

fn location(location: Location) -> Value {
    json!({
        "addressLocation": location.location,
        "addresses": location.addresses.iter().map(|it| json!({
            "address": it.address,
            "services": it.services.iter().map(|name| json!(&**name)).collect::<Value>(),
        })).collect::<Value>(),
    })
}
