//! What is created and deleted: Services of several namespaces with a pod or two each.

use std::net::{IpAddr, Ipv4Addr};

use sluice_controller::memory::Cluster;
use sluice_model::ObjectName;
use sluice_model::kube::{Protocol, ServicePort, ServiceSpec, TargetPort};

/// Nodes of the cluster.
const NODES: u32 = 20;
/// Namespaces that the Services are spread over.
const NAMESPACES: u32 = 5;

/// Puts the nodes there.
pub fn furnish(cluster: &Cluster) {
    for node in 0..NODES {
        cluster.apply_node(&node_name(node), vec![address(10, 1, node)]);
    }
}

/// Creates so many Services at once, every other one with a second pod.
pub fn create(cluster: &Cluster, services: u32) {
    for number in 0..services {
        let name = name(number);
        cluster.apply_service(&name, spec());
        let (one, other) = (node_name(number % NODES), node_name((number + 7) % NODES));
        let mut endpoints = vec![(address(10, 100, number), one.as_str())];
        if number % 2 == 1 {
            endpoints.push((address(10, 200, number), other.as_str()));
        }
        cluster.apply_endpoints(&name, &endpoints);
    }
}

/// Creates the n-th Service with these pods.
pub fn create_with(cluster: &Cluster, number: u32, pods: Vec<IpAddr>) {
    cluster.apply_service(&name(number), spec());
    set_pods(cluster, number, pods);
}

/// The pods of the n-th Service are these, on one node after the other.
pub fn set_pods(cluster: &Cluster, number: u32, pods: Vec<IpAddr>) {
    let nodes: Vec<String> = (0..NODES).map(node_name).collect();
    let endpoints: Vec<(IpAddr, &str)> =
        pods.into_iter().zip(nodes.iter().map(String::as_str).cycle()).collect();
    cluster.apply_endpoints(&name(number), &endpoints);
}

/// Deletes them all at once.
pub fn delete(cluster: &Cluster, services: u32) {
    (0..services).for_each(|number| cluster.delete_service(&name(number)));
}

/// One TCP port.
pub fn spec() -> ServiceSpec {
    let port =
        ServicePort { name: "".into(), protocol: Protocol::Tcp, port: 80, target: TargetPort::Number(8080) };
    ServiceSpec { ports: vec![port], ..ServiceSpec::default() }
}

fn name(number: u32) -> ObjectName {
    ObjectName::new(format!("team-{}", number % NAMESPACES), format!("service-{number}"))
}

fn node_name(number: u32) -> String {
    format!("node-{number}")
}

/// The n-th address of a range.
fn address(first: u8, second: u8, number: u32) -> IpAddr {
    let base = u32::from(Ipv4Addr::new(first, second, 0, 10));
    IpAddr::V4(Ipv4Addr::from(base + number))
}
