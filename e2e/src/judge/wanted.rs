//! Paints what should be, from the objects of Kubernetes.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use k8s_openapi::api::core::v1::Service;
use serde_json::{Value, json};

use super::cluster::{Cluster, named};
use super::inbound::{Verdict, verdict};
use super::{Contract, Picture, egress};
use crate::azure::{gateway_id, network_id, resource_id, subnet_id};

/// What should be. `found` is asked for two things that only Azure knows: which address a public IP
/// has got, and whether an egress already has an IPv6 address, which it then keeps.
pub(crate) fn paint(cluster: &Cluster, contract: &Contract, found: &Picture) -> Picture {
    let mut picture = Picture::new();
    let mut mapped: BTreeMap<(IpAddr, IpAddr), BTreeSet<String>> = BTreeMap::new();
    let mut tags = json!({"sluice-cluster": contract.cluster_id});
    if !contract.exceptions.claimed_gateway {
        tags["sluice-created"] = json!("true");
    }
    picture.insert(
        format!("gateway {}", crate::azure::GATEWAY),
        json!({"virtualNetwork": lower(&network_id()), "tags": tags}),
    );
    picture.insert(
        format!("subnet {}", crate::azure::SUBNET),
        json!({"id": lower(&subnet_id()), "serviceGateway": lower(&gateway_id())}),
    );
    for service in &cluster.services {
        paint_service(service, cluster, contract, found, &mut picture, &mut mapped);
    }
    for name in egress::wanted(cluster, contract) {
        paint_egress(&name, false, cluster, contract, found, &mut picture);
    }
    if contract.default_outbound {
        paint_egress("default-natgw", true, cluster, contract, found, &mut picture);
    }
    for ((location, address), name) in egress::addresses(cluster, contract) {
        mapped.entry((location, address)).or_default().insert(name);
    }
    for ((location, address), services) in mapped {
        picture.insert(format!("address {address} at {location}"), json!(services));
    }
    picture
}

fn paint_service(
    service: &Service,
    cluster: &Cluster,
    contract: &Contract,
    found: &Picture,
    picture: &mut Picture,
    mapped: &mut BTreeMap<(IpAddr, IpAddr), BTreeSet<String>>,
) {
    let uid = service.metadata.uid.clone().unwrap_or_default();
    let verdict = verdict(service, contract.class.as_deref(), cluster);
    let key = format!("Service {}", named(service));
    let kept = contract.exceptions.frozen.get(&uid);
    let (family, rules, conditions) = match (&verdict, kept) {
        (Verdict::NotOurs, _) => {
            picture.insert(key, json!({"finalizer": false, "ingress": [], "conditions": []}));
            return;
        }
        (Verdict::Refused(reason), None) => {
            let conditions = [
                format!("LoadBalancerProvisioning=True {reason}"),
                format!("LoadBalancerServing=False {reason}"),
            ];
            picture.insert(key, json!({"finalizer": true, "ingress": [], "conditions": conditions}));
            return;
        }
        (Verdict::Refused(reason), Some(rules)) => {
            let family = found
                .get(&format!("public IP {uid}-pip"))
                .map_or("IPv4", |ip| if ip["family"] == "IPv6" { "IPv6" } else { "IPv4" });
            let busy = format!("LoadBalancerProvisioning=True {reason}");
            (family, rules.clone(), [busy, "LoadBalancerServing=True Provisioned".to_string()])
        }
        (Verdict::Served { family, rules }, _) => (
            *family,
            rules.clone(),
            [
                "LoadBalancerProvisioning=False Provisioned".to_string(),
                "LoadBalancerServing=True Provisioned".to_string(),
            ],
        ),
    };
    let tags = json!({
        "sluice-cluster": contract.cluster_id,
        "sluice-identity": uid,
        "sluice-owner": format!("service/{}", named(service)),
    });
    let ip = resource_id("publicIPAddresses", &format!("{uid}-pip"));
    let carrier = resource_id("loadBalancers", &uid);
    let pool = format!("{carrier}/backendAddressPools/{uid}");
    let address = found.get(&format!("public IP {uid}-pip")).map_or(Value::Null, |ip| ip["address"].clone());
    picture.insert(
        format!("public IP {uid}-pip"),
        json!({
            "family": family,
            "address": address,
            "usedBy": lower(&format!("{carrier}/frontendIPConfigurations/frontend")),
            "tags": tags,
        }),
    );
    picture.insert(
        format!("load balancer {uid}"),
        json!({"publicIPAddress": lower(&ip), "pools": [uid], "rules": rules, "tags": tags}),
    );
    picture.insert(
        format!("registration {uid}"),
        json!({
            "serviceType": "Inbound",
            "isDefault": false,
            "loadBalancerBackendPools": [lower(&pool)],
            "publicNatGatewayId": null,
        }),
    );
    picture.insert(
        key,
        json!({"finalizer": true, "ingress": [{"ip": address, "ipMode": "VIP"}], "conditions": conditions}),
    );
    for endpoint in cluster.counting(service) {
        let node = endpoint.node.as_deref().unwrap_or_default();
        if let Some(location) = egress::location(cluster, contract, node, endpoint.address) {
            mapped.entry((location, endpoint.address)).or_default().insert(uid.clone());
        }
    }
}

fn paint_egress(
    name: &str,
    is_default: bool,
    cluster: &Cluster,
    contract: &Contract,
    found: &Picture,
    picture: &mut Picture,
) {
    let carrier = resource_id("natGateways", name);
    let tags = json!({
        "sluice-cluster": contract.cluster_id,
        "sluice-identity": name,
        "sluice-owner": format!("egress/{name}"),
    });
    let mut ids = [Vec::new(), Vec::new()];
    let has_v6 = cluster.has_ipv6_nodes() || found.contains_key(&format!("public IP {name}-pip-v6"));
    for (family, suffix, at) in [("IPv4", "-pip", 0), ("IPv6", "-pip-v6", 1)] {
        if family == "IPv6" && !has_v6 {
            continue;
        }
        let ip = format!("{name}{suffix}");
        let key = format!("public IP {ip}");
        let address = found.get(&key).map_or(Value::Null, |ip| ip["address"].clone());
        ids[at].push(lower(&resource_id("publicIPAddresses", &ip)));
        picture.insert(
            key,
            json!({"family": family, "address": address, "usedBy": lower(&carrier), "tags": tags}),
        );
    }
    let [v4, v6] = ids;
    picture.insert(
        format!("NAT gateway {name}"),
        json!({
            "serviceGateway": lower(&gateway_id()),
            "publicIpAddresses": v4,
            "publicIpAddressesV6": v6,
            "tags": tags,
        }),
    );
    picture.insert(
        format!("registration {name}"),
        json!({
            "serviceType": "Outbound",
            "isDefault": is_default,
            "loadBalancerBackendPools": [],
            "publicNatGatewayId": lower(&carrier),
        }),
    );
}

/// Ids are compared without case, and shown from the resource on: the group is always the same.
pub(crate) fn lower(id: &str) -> String {
    let id = id.to_ascii_lowercase();
    let own = resource_id("", "").to_ascii_lowercase();
    match id.strip_prefix(own.trim_end_matches('/')) {
        Some(rest) => rest.trim_start_matches('/').to_string(),
        None => id,
    }
}
