//! The last check of every story: whether Kubernetes and Azure match.
//!
//! It compares the objects of the API server with the state of the emulator, and does not ask the controller. It
//! derives the desired state from the objects, and lists what is missing, left over or different in Azure. It shares
//! no code with the engine, because both could then have the same bug.
//!
//! Not supported: Services that Sluice rejects, and IPv6 of egresses. No story has them.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::Value;

use super::azure::{State, list, name_of, text};
use super::cluster::{Cluster, pod_ip, published};
use super::kinds::{Service, ServicePort};
use super::narrator::count;

/// The finalizer that keeps a Service until its Azure resources are deleted.
const FINALIZER: &str = "sluice.dev/cleanup";
/// The egress of pods without a label.
pub(super) const DEFAULT_EGRESS: &str = "default-natgw";

/// Kubernetes and Azure at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    pub(super) cluster: Cluster,
    pub(super) azure: State,
}

/// The differences between Kubernetes and Azure, a line for each.
pub(super) fn differences(seen: &Seen) -> Vec<String> {
    let Seen { cluster, azure } = seen;
    let mut wrong = cluster.unsettled();
    if cluster.ending_pods() > 0 {
        wrong.push(format!("{} terminating", count(cluster.ending_pods() as u64, "pod")));
    }
    for it in azure.all("operations") {
        wrong.push(format!(
            "Azure operation in progress: {} of {}",
            text(&it["work"]),
            tail(&text(&it["target"]))
        ));
    }
    if azure.gateway().is_none() {
        wrong.push("the service gateway is missing".to_owned());
    }
    let mut wanted = Wanted::default();
    for service in &cluster.services {
        of_service(service, seen, &mut wanted, &mut wrong);
    }
    of_egresses(cluster, &mut wanted);
    compare_names(
        "load balancer",
        &wanted.load_balancers,
        azure.all("loadBalancers"),
        &wanted.owners,
        &mut wrong,
    );
    compare_names("NAT gateway", &wanted.nat_gateways, azure.all("natGateways"), &wanted.owners, &mut wrong);
    compare_names(
        "public IP",
        &wanted.public_ips,
        azure.all("publicIPAddresses"),
        &wanted.owners,
        &mut wrong,
    );
    let registered: BTreeSet<String> = azure.registrations().map(str::to_owned).collect();
    let should: BTreeSet<String> = wanted.load_balancers.union(&wanted.nat_gateways).cloned().collect();
    compare("registration", &should, &registered, &wanted.owners, &mut wrong);
    compare_addresses(&wanted, azure, &mut wrong);
    wrong
}

/// The desired state of Azure.
#[derive(Default)]
struct Wanted {
    load_balancers: BTreeSet<String>,
    nat_gateways: BTreeSet<String>,
    public_ips: BTreeSet<String>,
    /// The names in Azure of each address, by location and address.
    addresses: BTreeMap<(String, String), BTreeSet<String>>,
    /// The Service of a name in Azure.
    owners: BTreeMap<String, String>,
}

fn of_service(service: &Service, seen: &Seen, wanted: &mut Wanted, wrong: &mut Vec<String>) {
    let Seen { cluster, azure } = seen;
    let (spec, metadata) = (&service.spec, &service.metadata);
    let name = format!("{}/{}", metadata.namespace, metadata.name);
    let is_ours = spec.kind == "LoadBalancer" && spec.load_balancer_class.is_none();
    if metadata.deletion_timestamp.is_some() {
        wrong.push(format!("Service {name} is being deleted"));
        return;
    }
    let is_held = metadata.finalizers.iter().any(|it| it == FINALIZER);
    if !is_ours {
        if is_held || !published(service).is_empty() {
            wrong.push(format!(
                "Service {name} has a finalizer or a public IP but is not of type LoadBalancer"
            ));
        }
        return;
    }
    if !is_held {
        wrong.push(format!("Service {name} has no finalizer"));
    }
    let uid = metadata.uid.clone();
    let ip = format!("{uid}-pip");
    let shown = published(service);
    match azure.public_ip(&ip) {
        Some(address) if shown == [address] => {}
        address => wrong.push(format!(
            "Service {name} has the public IP {} in its status and {} in Azure",
            if shown.is_empty() { "none".to_owned() } else { shown.join(", ") },
            address.unwrap_or("none")
        )),
    }
    if let Some(balancer) = azure.named("loadBalancers", &uid) {
        let (should, are) = (rules_of(&spec.ports), rules_in(balancer));
        if !are.iter().map(|(protocol, front, _)| (protocol, front)).eq(should.iter().map(|(p, f, _)| (p, f)))
            || should.iter().zip(&are).any(|(one, other)| one.2.is_some() && one.2 != other.2)
        {
            wrong.push(format!("load balancer of Service {name} has the rules {are:?}; desired: {should:?}"));
        }
    }
    for endpoint in cluster.counting(service) {
        match cluster.location(&endpoint.node, &endpoint.address) {
            Some(node) => {
                wanted.addresses.entry((node, endpoint.address)).or_default().insert(uid.clone());
            }
            None => {
                wrong.push(format!("address {} of Service {name} is not on a known node", endpoint.address))
            }
        }
    }
    wanted.owners.insert(uid.clone(), name.clone());
    wanted.owners.insert(ip.clone(), name);
    wanted.public_ips.insert(ip);
    wanted.load_balancers.insert(uid);
}

fn of_egresses(cluster: &Cluster, wanted: &mut Wanted) {
    let mut names = BTreeSet::from([DEFAULT_EGRESS.to_owned()]);
    for (pod, egress) in cluster.egress_pods() {
        if let Some(ip) = pod_ip(pod)
            && let Some(location) = cluster.location(&pod.spec.node_name, ip)
        {
            wanted.addresses.entry((location, ip.to_owned())).or_default().insert(egress.clone());
        }
        names.insert(egress);
    }
    for name in names {
        wanted.public_ips.insert(format!("{name}-pip"));
        wanted.nat_gateways.insert(name);
    }
}

/// Protocol, port, and the port of the pods if it is a number.
type Rules = BTreeSet<(String, u64, Option<u64>)>;

fn rules_of(ports: &[ServicePort]) -> Rules {
    ports
        .iter()
        .map(|port| {
            let backend = match &port.target_port {
                None | Some(IntOrString::Int(0)) => Some(port.port.into()),
                Some(IntOrString::Int(target)) => u64::try_from(*target).ok(),
                // Only the pods define its number.
                Some(IntOrString::String(_)) => None,
            };
            (port.protocol.as_deref().unwrap_or("TCP").to_ascii_lowercase(), port.port.into(), backend)
        })
        .collect()
}

fn rules_in(balancer: &Value) -> Rules {
    let rule = |it: &Value| {
        let front = it["frontendPort"].as_u64().unwrap_or_default();
        (text(&it["protocol"]).to_ascii_lowercase(), front, it["backendPort"].as_u64())
    };
    list(&balancer["rules"]).iter().map(rule).collect()
}

fn compare_names(
    what: &str,
    should: &BTreeSet<String>,
    resources: &[Value],
    owners: &BTreeMap<String, String>,
    wrong: &mut Vec<String>,
) {
    let are: BTreeSet<String> = resources.iter().map(|it| name_of(it).to_ascii_lowercase()).collect();
    compare(what, should, &are, owners, wrong);
    for it in resources.iter().filter(|it| it["provisioningState"] != "Succeeded") {
        wrong.push(format!("{what} {} is {}", name_of(it), text(&it["provisioningState"])));
    }
}

fn compare(
    what: &str,
    should: &BTreeSet<String>,
    are: &BTreeSet<String>,
    owners: &BTreeMap<String, String>,
    wrong: &mut Vec<String>,
) {
    for name in should.difference(are) {
        let owner = owners.get(name).map(|it| format!(" of Service {it}")).unwrap_or_default();
        wrong.push(format!("{what} {name}{owner} is missing"));
    }
    for name in are.difference(should) {
        wrong.push(format!("{what} {name} is not desired"));
    }
}

fn compare_addresses(wanted: &Wanted, azure: &State, wrong: &mut Vec<String>) {
    let are: BTreeMap<(String, String), BTreeSet<String>> = azure
        .mapped()
        .into_iter()
        .map(|(node, address, services)| ((node, address), services.into_iter().collect()))
        .collect();
    let named = |services: Option<&BTreeSet<String>>| {
        let name = |it: &String| wanted.owners.get(it).unwrap_or(it).clone();
        let names: Vec<String> = services.into_iter().flatten().map(name).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(" and ") }
    };
    let places: BTreeSet<&(String, String)> = wanted.addresses.keys().chain(are.keys()).collect();
    for place in places {
        let (should, is) = (wanted.addresses.get(place), are.get(place));
        if should != is {
            let (node, address) = place;
            wrong.push(format!(
                "address {address} on node {node} is programmed for {}; desired: {}",
                named(is),
                named(should)
            ));
        }
    }
}

/// The end of an id: its kind and name.
fn tail(id: &str) -> String {
    let parts: Vec<&str> = id.rsplit('/').take(2).collect();
    parts.into_iter().rev().collect::<Vec<_>>().join("/")
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
