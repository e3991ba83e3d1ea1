//! Which egresses the pods ask for, and which address of which pod goes with each.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;

use super::Contract;
use super::cluster::{Cluster, phase, pod_ips};

/// The label that names a pod's egress.
pub(crate) const LABEL: &str = "kubernetes.azure.com/service-egress-gateway";

/// The egress that a pod may use: its label, if it means something.
pub(crate) fn egress_of(pod: &Pod, contract: &Contract) -> Option<String> {
    let name = pod.labels().get(LABEL)?.to_ascii_lowercase();
    let is_allowed = contract
        .egress_namespaces
        .as_ref()
        .is_none_or(|all| pod.namespace().is_some_and(|own| all.contains(&own)));
    let on_the_host = pod.spec.as_ref().and_then(|spec| spec.host_network).unwrap_or(false);
    let is_over = matches!(phase(pod), "Succeeded" | "Failed");
    (is_allowed && !on_the_host && !is_over && is_valid(&name)).then_some(name)
}

fn is_valid(name: &str) -> bool {
    let end =
        |it: Option<char>, more: &str| it.is_some_and(|it| it.is_ascii_alphanumeric() || more.contains(it));
    let looks_like_a_uuid = name.len() == 36
        && name.chars().enumerate().all(|(at, it)| match at {
            8 | 13 | 18 | 23 => it == '-',
            _ => it.is_ascii_hexdigit(),
        });
    (1..=73).contains(&name.len())
        && name.chars().all(|it| it.is_ascii_alphanumeric() || "._-".contains(it))
        && end(name.chars().next(), "")
        && end(name.chars().last(), "_")
        && name != "default-natgw"
        && !looks_like_a_uuid
}

/// All egresses that a pod asks for.
pub(crate) fn wanted(cluster: &Cluster, contract: &Contract) -> BTreeSet<String> {
    let mut names: BTreeSet<String> =
        cluster.pods.iter().filter_map(|pod| egress_of(pod, contract)).collect();
    names.extend(contract.exceptions.lingering.iter().cloned());
    names.retain(|name| !contract.exceptions.unserved.contains(name));
    names
}

/// Every address that goes out by an egress: (location, address) to its name.
pub(crate) fn addresses(cluster: &Cluster, contract: &Contract) -> BTreeMap<(IpAddr, IpAddr), String> {
    // Of two pods with one address the newest that is not ending has it, then the greater UID.
    let mut owners: BTreeMap<IpAddr, (&Pod, String)> = BTreeMap::new();
    let rank = |pod: &Pod| {
        let created = pod.metadata.creation_timestamp.as_ref().map(|time| time.0.as_second());
        (pod.metadata.deletion_timestamp.is_none(), created, pod.metadata.uid.clone())
    };
    for pod in &cluster.pods {
        let Some(name) = egress_of(pod, contract).filter(|it| !contract.exceptions.unserved.contains(it))
        else {
            continue;
        };
        for family in [true, false] {
            let Some(ip) = pod_ips(pod).into_iter().find(|ip| ip.is_ipv4() == family) else { continue };
            let is_better = owners.get(&ip).is_none_or(|(other, _)| rank(pod) > rank(other));
            if is_better {
                owners.insert(ip, (pod, name.clone()));
            }
        }
    }
    let place = |ip: IpAddr, pod: &Pod| -> Option<IpAddr> {
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
        location(cluster, contract, node.unwrap_or_default(), ip)
    };
    owners
        .into_iter()
        .filter_map(|(ip, (pod, name))| place(ip, pod).map(|location| ((location, ip), name)))
        .collect()
}

/// Where the addresses of a node are: at its smallest InternalIP of their family, or, for as long as
/// nobody knows the node, at the smallest host IP that a pod with an egress on it reports.
pub(crate) fn location(
    cluster: &Cluster,
    contract: &Contract,
    node: &str,
    family_of: IpAddr,
) -> Option<IpAddr> {
    if let Some(known) = cluster.location(node, family_of) {
        return known;
    }
    let on_it = cluster.pods.iter().filter(|pod| {
        let own = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
        own == Some(node) && egress_of(pod, contract).is_some()
    });
    on_it
        .flat_map(|pod| pod.status.iter().flat_map(|status| status.host_ips.iter().flatten()))
        .filter_map(|it| it.ip.parse::<IpAddr>().ok())
        .map(|ip| ip.to_canonical())
        .filter(|ip| ip.is_ipv4() == family_of.is_ipv4())
        .min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_valid_as_the_contract_says() {
        for name in ["a", "blue", "a.b-c_", "9", &"a".repeat(73)] {
            assert!(is_valid(name), "{name}");
        }
        let bad = ["", "-a", "a-", "a.", "a b", "default-natgw", "0a1b2c3d-0000-4000-8000-00000000000f"];
        for name in bad.into_iter().chain([&*"a".repeat(74)]) {
            assert!(!is_valid(name), "{name}");
        }
    }
}
