//! Claims about the model of Kubernetes.

mod mirror;
mod oracle;
mod stories;
mod watch;
mod writes;

use sluice_model::kube::{ObjectRef, Protocol, ServicePort, TargetPort};
use sluice_model::{ObjectName, Time};

use super::Cluster;
use super::objects::ServiceRecord;

fn name(text: &str) -> ObjectName {
    let (namespace, name) = text.split_once('/').unwrap_or(("shop", text));
    ObjectName::new(namespace, name)
}

fn at(seconds: u64) -> Time {
    Time::from_millis(seconds * 1000)
}

fn port(protocol: Protocol, number: u16, target: u16) -> ServicePort {
    let name = format!("{}-{number}", protocol.word()).into();
    ServicePort { name, protocol, port: number, target: TargetPort::Number(target) }
}

fn web() -> ServiceRecord {
    ServiceRecord::balanced(vec![port(Protocol::Tcp, 80, 8080)])
}

/// A cluster with the Service `shop/web`.
fn with_web() -> (Cluster, ObjectRef) {
    let mut cluster = Cluster::new();
    cluster.create_service(&name("shop/web"), web());
    let object = reference(&cluster, "shop/web");
    (cluster, object)
}

fn reference(cluster: &Cluster, text: &str) -> ObjectRef {
    let name = name(text);
    let uid = cluster.service(&name).unwrap().meta.uid;
    ObjectRef { uid, name }
}
