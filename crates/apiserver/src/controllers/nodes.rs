//! The nodes of the playground: machines that are always ready.

use serde_json::{Value, json};

use super::Settings;
use crate::kinds::{NODE, Sub};
use crate::store::{Store, Write};
use crate::value::{now, object, remove};

const VERSION: &str = "v1.36.3";

/// Makes them; those that are there already stay as they are.
pub(super) fn join(store: &Store, settings: Settings) {
    for number in 1..=settings.nodes {
        let node = node(number, settings.dual_stack);
        let name = format!("node-{number}");
        let status = node["status"].clone();
        if store.create(&NODE, "", node, &Write::by("kubelet")).is_err() {
            continue;
        }
        let told = store.modify(&NODE, "", &name, &Write::by("kubelet").of(Sub::Status), |node| {
            let mut node = node.clone();
            node["status"] = status;
            Ok(node)
        });
        // A new node is tainted until it has said so.
        let told = told.and_then(|_| {
            store.modify(&NODE, "", &name, &Write::by("kube-controller-manager"), |node| {
                let mut node = node.clone();
                remove(object(&mut node, "spec"), "taints");
                Ok(node)
            })
        });
        if let Err(refusal) = told {
            tracing::warn!(node = name, %refusal, "a node could not say that it is ready");
        }
    }
}

fn node(number: u16, dual_stack: bool) -> Value {
    let name = format!("node-{number}");
    // 65,536 nodes have room here; the first address of Azure's subnets that is not its own is .4.
    let [high, low] = (number + 3).to_be_bytes();
    let mut cidrs = vec![format!("10.{}.{}.0/24", 244 + number / 256, number % 256)];
    let mut addresses = vec![json!({"type": "InternalIP", "address": format!("10.240.{high}.{low}")})];
    if dual_stack {
        cidrs.push(format!("fd00:244:{number:x}::/64"));
        addresses.push(json!({"type": "InternalIP", "address": format!("fd00:240::{:x}", number + 3)}));
    }
    addresses.push(json!({"type": "Hostname", "address": name}));
    let zone = format!("zone-{}", (number - 1) % 3 + 1);
    let capacity = json!({"cpu": "8", "memory": "32Gi", "pods": "250", "ephemeral-storage": "128Gi"});
    let time = now();
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        json!({"type": kind, "status": status, "reason": reason, "message": message,
            "lastHeartbeatTime": time, "lastTransitionTime": time})
    };
    json!({
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "topology.kubernetes.io/zone": zone,
            },
        },
        "spec": {"podCIDR": cidrs[0], "podCIDRs": cidrs, "providerID": format!("playground:///{name}")},
        "status": {
            "addresses": addresses,
            "capacity": capacity,
            "allocatable": capacity,
            "conditions": [
                condition("MemoryPressure", "False", "KubeletHasSufficientMemory",
                    "kubelet has sufficient memory available"),
                condition("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
                condition("PIDPressure", "False", "KubeletHasSufficientPID",
                    "kubelet has sufficient PID available"),
                condition("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
            ],
            "nodeInfo": {
                "architecture": "amd64", "bootID": "", "containerRuntimeVersion": "playground://1",
                "kernelVersion": "none", "kubeProxyVersion": "", "kubeletVersion": VERSION, "machineID": "",
                "operatingSystem": "linux", "osImage": "Sluice playground", "systemUUID": "",
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_node_has_addresses_of_its_own() {
        let nodes: Vec<Value> = (1..=1000).map(|number| node(number, true)).collect();
        for place in 0..2 {
            let cidrs: BTreeSet<&str> =
                nodes.iter().filter_map(|node| node["spec"]["podCIDRs"][place].as_str()).collect();
            let addresses: BTreeSet<&str> = nodes
                .iter()
                .filter_map(|node| node["status"]["addresses"][place]["address"].as_str())
                .collect();
            assert_eq!((cidrs.len(), addresses.len()), (1000, 1000));
        }
    }
}
