//! Paints what is: Azure as the emulator knows it, and what the controller has left on the Services.

use k8s_openapi::api::core::v1::Service;
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::cluster::{Cluster, named};
use super::wanted::lower;
use super::{Contract, Picture};

/// Our finalizer.
const FINALIZER: &str = "sluice.dev/cleanup";

/// What is. Resources that are known to be somebody else's are left out.
pub(crate) fn paint(cluster: &Cluster, contract: &Contract, azure: &Value) -> Picture {
    let mut picture = Picture::new();
    let is_foreign = |id: &str| contract.exceptions.foreign.contains(&lower(id));
    let mut put = |word: &str, kind: &str, show: &dyn Fn(&Value) -> Value| {
        for it in list(&azure[kind]) {
            let id = it["id"].as_str().unwrap_or_default();
            if is_foreign(id) {
                continue;
            }
            let name = id.rsplit('/').next().unwrap_or_default();
            let mut shown = show(it);
            if let Some(tags) = shown.get_mut("tags").and_then(Value::as_object_mut) {
                tags.retain(|name, _| !contract.exceptions.more_tags.contains(name));
            }
            // What has not come through is a difference, whatever it looks like.
            if it["provisioningState"] != "Succeeded" && !it["provisioningState"].is_null() {
                shown["provisioningState"] = it["provisioningState"].clone();
            }
            picture.insert(format!("{word} {name}"), shown);
        }
    };
    put("public IP", "publicIPAddresses", &|it| {
        json!({
            "family": it["family"],
            "address": it["ipAddress"],
            "usedBy": id(&it["usedBy"]),
            "tags": it["tags"],
        })
    });
    put("load balancer", "loadBalancers", &|it| {
        let mut rules: Vec<Value> = list(&it["rules"]).to_vec();
        rules.sort_by_key(|rule| {
            (rule["protocol"].to_string(), rule["frontendPort"].as_u64(), rule["backendPort"].as_u64())
        });
        json!({"publicIPAddress": id(&it["publicIPAddress"]), "pools": it["pools"], "rules": rules, "tags": it["tags"]})
    });
    put("NAT gateway", "natGateways", &|it| {
        json!({
            "serviceGateway": id(&it["serviceGateway"]),
            "publicIpAddresses": ids(&it["publicIpAddresses"]),
            "publicIpAddressesV6": ids(&it["publicIpAddressesV6"]),
            "tags": it["tags"],
        })
    });
    put(
        "gateway",
        "serviceGateways",
        &|it| json!({"virtualNetwork": id(&it["virtualNetwork"]), "tags": it["tags"]}),
    );
    put("subnet", "subnets", &|it| json!({"id": id(&it["id"]), "serviceGateway": id(&it["serviceGateway"])}));
    for gateway in list(&azure["serviceGateways"]) {
        if is_foreign(gateway["id"].as_str().unwrap_or_default()) {
            continue;
        }
        for service in list(&gateway["services"]) {
            let name = service["name"].as_str().unwrap_or_default();
            if contract.exceptions.foreign_registrations.contains(name) {
                continue;
            }
            picture.insert(
                format!("registration {name}"),
                json!({
                    "serviceType": service["serviceType"],
                    "isDefault": service["isDefault"],
                    "loadBalancerBackendPools": ids(&service["loadBalancerBackendPools"]),
                    "publicNatGatewayId": id(&service["publicNatGatewayId"]),
                }),
            );
        }
        for location in list(&gateway["addressLocations"]) {
            let place = location["addressLocation"].as_str().unwrap_or_default();
            let addresses = list(&location["addresses"]);
            if addresses.is_empty() {
                picture.insert(format!("empty location {place}"), Value::Null);
            }
            for it in addresses {
                let mut services: Vec<&str> =
                    list(&it["services"]).iter().filter_map(Value::as_str).collect();
                let is_foreign = |name: &str| contract.exceptions.foreign_registrations.contains(name);
                if !services.is_empty() && services.iter().all(|name| is_foreign(name)) {
                    continue;
                }
                services.retain(|name| !is_foreign(name));
                services.sort_unstable();
                let address = it["address"].as_str().unwrap_or_default();
                picture.insert(format!("address {address} at {place}"), json!(services));
            }
        }
    }
    for service in &cluster.services {
        picture.insert(format!("Service {}", named(service)), show_service(service));
    }
    picture
}

/// What runs in Azure: until it is over nothing can be judged.
pub(crate) fn running(azure: &Value) -> Vec<String> {
    list(&azure["operations"])
        .iter()
        .map(|it| format!("{} of {} is still running", it["work"], it["target"]))
        .collect()
}

/// What the controller has written on a Service.
fn show_service(service: &Service) -> Value {
    let status = service.status.clone().unwrap_or_default();
    let ingress: Vec<Value> = status
        .load_balancer
        .iter()
        .flat_map(|it| it.ingress.iter().flatten())
        .map(|it| json!({"ip": it.ip, "ipMode": it.ip_mode}))
        .collect();
    let mut conditions: Vec<String> = status
        .conditions
        .iter()
        .flatten()
        .filter(|it| it.type_.starts_with("LoadBalancer"))
        .map(|it| format!("{}={} {}", it.type_, it.status, it.reason))
        .collect();
    conditions.sort();
    json!({
        "finalizer": service.finalizers().iter().any(|it| it == FINALIZER),
        "ingress": ingress,
        "conditions": conditions,
    })
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn id(value: &Value) -> Value {
    value.as_str().map_or(Value::Null, |id| json!(lower(id)))
}

fn ids(value: &Value) -> Value {
    list(value).iter().map(id).collect()
}
