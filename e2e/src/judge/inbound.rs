//! What a Service deserves, read from the contract: a load balancer with these rules, a refusal, or nothing.

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::cluster::Cluster;

const IDLE_TIMEOUT: &str = "service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout";
pub(crate) const INTERNAL: &str = "service.beta.kubernetes.io/azure-load-balancer-internal";
/// Annotations that ask for less exposure, or for a public IP of the user's choice.
const REJECTED: [&str; 9] = [
    "service.beta.kubernetes.io/azure-allowed-ip-ranges",
    "service.beta.kubernetes.io/azure-allowed-service-tags",
    "service.beta.kubernetes.io/azure-deny-all-except-load-balancer-source-ranges",
    "service.beta.kubernetes.io/azure-load-balancer-ipv4",
    "service.beta.kubernetes.io/azure-load-balancer-ipv6",
    "service.beta.kubernetes.io/azure-pip-name",
    "service.beta.kubernetes.io/azure-pip-prefix-id",
    "service.beta.kubernetes.io/azure-pls-create",
    "service.beta.kubernetes.io/load-balancer-source-ranges",
];

/// What a Service deserves.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Verdict {
    /// It is none of ours.
    NotOurs,
    /// A load balancer of this family with these rules, as the emulator shows them.
    Served { family: &'static str, rules: Value },
    /// Nothing, for this reason.
    Refused(&'static str),
}

/// Judges one Service.
pub(crate) fn verdict(service: &Service, class: Option<&str>, cluster: &Cluster) -> Verdict {
    let Some(spec) = &service.spec else { return Verdict::NotOurs };
    let is_ours = spec.type_.as_deref() == Some("LoadBalancer")
        && spec.load_balancer_class.as_deref() == class
        && service.metadata.deletion_timestamp.is_none();
    if !is_ours {
        return Verdict::NotOurs;
    }
    let Some(idle_minutes) = idle_minutes(service) else { return Verdict::Refused("InvalidSpec") };
    if asks_for_too_much(service, spec) {
        return Verdict::Refused("InvalidSpec");
    }
    let mut rules: Vec<(String, i32, i32)> = Vec::new();
    let mut unresolved = false;
    for port in spec.ports.iter().flatten() {
        let protocol = match port.protocol.as_deref() {
            None | Some("TCP") => "Tcp",
            Some("UDP") => "Udp",
            _ => return Verdict::Refused("InvalidSpec"),
        };
        if port.port == 65535 {
            return Verdict::Refused("InvalidSpec");
        }
        match backend_port(service, port, cluster) {
            Some(backend) => rules.push((protocol.to_string(), port.port, backend)),
            None => unresolved = true,
        }
    }
    rules.sort();
    let mut backends: Vec<_> = rules.iter().map(|(protocol, _, backend)| (protocol, backend)).collect();
    backends.sort();
    if backends.windows(2).any(|pair| pair[0] == pair[1]) {
        return Verdict::Refused("InvalidSpec");
    }
    if unresolved {
        return Verdict::Refused("PortUnresolved");
    }
    let family = match spec.ip_families.as_ref().and_then(|all| all.first()).map(String::as_str) {
        Some("IPv6") => "IPv6",
        _ => "IPv4",
    };
    let shown = rules.iter().map(|(protocol, frontend, backend)| {
        json!({
            "protocol": protocol,
            "frontendPort": frontend,
            "backendPort": backend,
            "idleTimeoutInMinutes": idle_minutes,
        })
    });
    Verdict::Served { family, rules: shown.collect() }
}

fn idle_minutes(service: &Service) -> Option<u8> {
    match service.annotations().get(IDLE_TIMEOUT) {
        None => Some(4),
        Some(text) => text.parse().ok().filter(|minutes| (4..=30).contains(minutes)),
    }
}

fn asks_for_too_much(service: &Service, spec: &ServiceSpec) -> bool {
    let annotation = |name: &str| service.annotations().get(name).map(String::as_str);
    annotation(INTERNAL) == Some("true")
        || spec.session_affinity.as_deref() == Some("ClientIP")
        || spec.load_balancer_ip.as_deref().is_some_and(|ip| !ip.is_empty())
        || spec.ip_family_policy.as_deref() == Some("RequireDualStack")
        || spec.load_balancer_source_ranges.as_ref().is_some_and(|all| !all.is_empty())
        || REJECTED.iter().any(|name| annotation(name).is_some())
}

/// The pods' port: the number, or what all counting endpoints agree on.
fn backend_port(service: &Service, port: &ServicePort, cluster: &Cluster) -> Option<i32> {
    match &port.target_port {
        None => Some(port.port),
        Some(IntOrString::Int(number)) if *number == 0 => Some(port.port),
        Some(IntOrString::Int(number)) => Some(*number),
        Some(IntOrString::String(_)) => {
            let counting = cluster.counting(service);
            let mut said = Vec::new();
            for slice in cluster.slices_of(service) {
                let counts = Cluster::endpoints(slice).iter().any(|it| counting.contains(it));
                if !counts {
                    continue;
                }
                let name = port.name.as_deref().unwrap_or("");
                let protocol = port.protocol.as_deref().unwrap_or("TCP");
                let own = slice.ports.iter().flatten().find(|it| {
                    it.name.as_deref().unwrap_or("") == name
                        && it.protocol.as_deref().unwrap_or("TCP") == protocol
                });
                said.push(own.and_then(|it| it.port));
            }
            said.dedup();
            match said.as_slice() {
                [Some(port)] => Some(*port),
                _ => None,
            }
        }
    }
}
