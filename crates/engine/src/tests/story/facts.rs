//! The facts of a story: from words to objects of Kubernetes.

use std::format;
use std::string::{String, ToString};
use std::sync::Arc;
use std::time::Duration;
use std::vec;
use std::vec::Vec;

use sluice_model::annotations::INTERNAL;
use sluice_model::kube::{
    Concern, Condition, ConditionKind, Endpoint, FamilyPolicy, NodeObject, Phase, PodObject, Protocol,
    ServiceObject, ServicePort, ServiceSpec, Slice, SliceOwner, SlicePort, TargetPort,
};
use sluice_model::reason::Reason;
use sluice_model::{Event, Family, ObjectName, Uid};

use super::Story;
use crate::{Config, DefaultOutbound, GatewayMode};

/// How the message of a condition ends that a leader before has written.
pub(super) const OF_LEADER_BEFORE: &str = "as the leader before has written.";

/// A condition that a leader before has written.
fn stuck(concern: Concern, reason: Reason) -> Condition {
    Condition::new(ConditionKind::Provisioning, true, reason, concern)
}

/// `config slots=1 linger=60 egress-max=2 namespaces=shop,bank gateway=verify default-outbound=ensure allow-mass-deletion`
pub(super) fn configure(config: &mut Config, line: &str) {
    for word in line.split_whitespace().skip(1) {
        match word.split_once('=').unwrap_or((word, "")) {
            ("slots", slots) => config.slots_max = slots.parse().expect("a number"),
            ("linger", seconds) => config.linger = Duration::from_secs(seconds.parse().expect("seconds")),
            ("egress-max", max) => config.egress_max = max.parse().expect("a number"),
            ("namespaces", names) => {
                config.egress_namespaces = Some(names.split(',').map(Arc::from).collect())
            }
            ("gateway", "verify") => config.gateway_mode = GatewayMode::Verify,
            ("default-outbound", "ensure") => config.default_outbound = DefaultOutbound::Ensure,
            ("allow-mass-deletion", _) => config.allow_mass_deletion = true,
            _ => panic!("{word} cannot be configured"),
        }
    }
}

/// A UID by a small number.
pub(super) fn uid(number: &str) -> Uid {
    Uid::from_number(number.parse().expect("a number"))
}

/// The UID of whoever is called so first.
fn uid_of_name(name: &str) -> Uid {
    let hash = name.bytes().fold(7u64, |sum, b| sum.wrapping_mul(31).wrapping_add(u64::from(b)));
    Uid::from_number(u128::from(hash))
}

fn object_name(name: &str) -> ObjectName {
    let (namespace, name) = name.split_once('/').unwrap_or(("shop", name));
    ObjectName::new(namespace, name)
}

fn value<'a>(options: &[&'a str], word: &str) -> Option<&'a str> {
    options.iter().find_map(|it| it.strip_prefix(word))
}

impl Story {
    pub(super) fn service_line(&mut self, name: &str, rest: &[&str]) {
        match rest {
            ["deleted", uid_option @ ..] => {
                let uid = match value(uid_option, "uid=") {
                    Some(number) => uid(number),
                    None => self.objects.remove(name).expect("a known service").uid,
                };
                self.tell(Event::ServiceDeleted { uid, name: object_name(name) });
            }
            ["vanishes"] => {
                self.objects.remove(name).expect("a known service");
            }
            ["applied", "again"] => {
                let object = self.objects.get(name).expect("a known service").clone();
                self.tell(Event::ServiceApplied(object));
            }
            ["applied", options @ ..] => {
                let object = self.object(name, options);
                self.call(object.uid, name);
                if !options.contains(&"stale") && !options.contains(&"late") {
                    self.objects.insert(name.to_string(), object.clone());
                }
                self.tell(Event::ServiceApplied(object));
            }
            ["known", options @ ..] => {
                // Only the next list will show it.
                let object = self.object(name, options);
                self.call(object.uid, name);
                self.objects.insert(name.to_string(), object);
            }
            _ => panic!("services do not do this: {rest:?}"),
        }
    }

    /// A Service is called by its name, and a successor of the same name with a prime.
    fn call(&mut self, uid: Uid, name: &str) {
        let taken = self.names.iter().any(|(other, known)| known == name && *other != uid.to_string());
        let name = if taken { format!("{name}'") } else { name.to_string() };
        self.names.entry(uid.to_string()).or_insert(name);
    }

    fn object(&mut self, name: &str, options: &[&str]) -> ServiceObject {
        let option = |word: &str| options.contains(&word);
        let known = self.objects.get(name).cloned();
        let uid = match (value(options, "uid="), &known) {
            (Some(number), _) => uid(number),
            (None, Some(known)) => known.uid,
            (None, None) => uid_of_name(name),
        };
        let known = known.filter(|known| known.uid == uid);
        let both = value(options, "both-families=");
        let mut ports: Vec<ServicePort> =
            options.iter().filter_map(|it| it.strip_prefix("port=")).map(service_port).collect();
        if ports.is_empty() {
            ports.push(service_port("80->8080"));
        }
        for (at, port) in ports.iter_mut().enumerate().skip(1) {
            port.name = format!("port-{at}").into();
        }
        let version = match &known {
            // From right before our last write, as a slow watch brings it.
            Some(known) if option("late") => known.version - 1,
            _ if option("stale") => 1,
            _ => self.next_version(),
        };
        ServiceObject {
            uid,
            name: object_name(name),
            version,
            selected: !option("clusterip") && !option("other-class"),
            load_balancer: !option("clusterip"),
            deleting: option("deleting"),
            finalizer: !option("nofinalizer"),
            inherited: option("inherited"),
            spec: ServiceSpec {
                ports,
                families: if both.is_some() { Family::ALL.to_vec() } else { Vec::new() },
                family_policy: match both {
                    Some("prefer") => FamilyPolicy::PreferDualStack,
                    Some("require") => FamilyPolicy::RequireDualStack,
                    _ => FamilyPolicy::SingleStack,
                },
                rejected_annotations: option("invalid").then(|| INTERNAL.into()).into_iter().collect(),
                idle_annotations: value(options, "annotations=")
                    .map(|names| names.split(',').map(Arc::from).collect())
                    .unwrap_or_default(),
                idle_timeout: value(options, "idle=").map(Arc::from),
                ..ServiceSpec::default()
            },
            ingress: match value(options, "ingress=") {
                _ if option("wiped") => Vec::new(),
                Some(ip) => vec![ip.parse().expect("an address")],
                None => known.as_ref().map(|known| known.ingress.clone()).unwrap_or_default(),
            },
            published: match value(options, "published=") {
                _ if option("wiped") => None,
                Some(ip) => Some(ip.parse().expect("an address")),
                None => known.as_ref().and_then(|known| known.published),
            },
            annotated: match value(options, "annotated=") {
                _ if option("wiped") => None,
                Some(ip) => Some(ip.parse().expect("an address")),
                None => known.as_ref().and_then(|known| known.annotated),
            },
            conditions: match value(options, "stuck=") {
                Some("addresses") => vec![stuck(Concern::Addresses, Reason::AzureUnavailable)],
                Some("nodes") => vec![stuck(Concern::Addresses, Reason::InvalidSpec)],
                Some("ports") => vec![stuck(Concern::Resources, Reason::PortUnresolved)],
                Some("quota") => vec![Condition {
                    message: format!("Azure quota used up: {OF_LEADER_BEFORE}").into(),
                    ..stuck(Concern::Resources, Reason::QuotaExceeded)
                }],
                Some("resources") => vec![stuck(Concern::Resources, Reason::AzureUnavailable)],
                Some(_) => vec![stuck(Concern::Deletion, Reason::Draining)],
                None => known.filter(|_| !option("wiped")).map(|known| known.conditions).unwrap_or_default(),
            },
        }
    }

    pub(super) fn endpoints_line(&mut self, name: &str, rest: &[&str]) {
        let suffix = value(rest, "slice=").unwrap_or("1");
        let whole = format!("{name}-{suffix}");
        match rest {
            ["deleted", ..] => {
                let slice = self.slices.remove(&whole).expect("a known slice");
                self.tell(Event::SliceDeleted(slice.name));
            }
            ["vanish", ..] => {
                self.slices.remove(&whole).expect("a known slice");
            }
            ["applied", "again"] => {
                let slice = self.slices.get(&whole).expect("a known slice").clone();
                self.tell(Event::SliceApplied(slice));
            }
            _ => {
                let slice = self.slice(name, suffix, rest);
                self.slices.insert(whole, slice.clone());
                self.tell(Event::SliceApplied(slice));
            }
        }
    }

    fn slice(&mut self, name: &str, suffix: &str, rest: &[&str]) -> Slice {
        let port = value(rest, "port=").map_or(8080, |port| port.parse().expect("a port"));
        let owner = match value(rest, "owner=") {
            Some("nobody") => SliceOwner::Nobody,
            Some(number) => SliceOwner::Uid(uid(number)),
            None => SliceOwner::Name(object_name(name).name),
        };
        let namespace = object_name(name).namespace;
        Slice {
            name: ObjectName::new(namespace, format!("{}-{suffix}", object_name(name).name)),
            version: self.next_version(),
            owner,
            ports: vec![SlicePort { name: "http".into(), protocol: Protocol::Tcp, port: Some(port) }],
            endpoints: rest.iter().filter(|it| it.contains('@')).map(|it| endpoint(it)).collect(),
            malformed: value(rest, "malformed=").map(Arc::from).into_iter().collect(),
        }
    }

    pub(super) fn node_line(&mut self, name: &str, rest: &[&str]) {
        match rest {
            ["deleted"] => {
                self.nodes.remove(name);
                self.tell(Event::NodeDeleted(name.into()));
            }
            ["vanishes"] => {
                self.nodes.remove(name).expect("a known node");
            }
            ips => {
                let version = self.next_version();
                let internal_ips = ips.iter().map(|ip| ip.parse().expect("an address")).collect();
                let node = NodeObject { name: name.into(), version, internal_ips };
                // A node's name stands for its only address; where there are more, the address is shown.
                let named = self.names.values().any(|known| known == name);
                if let [ip] = node.internal_ips.as_slice()
                    && !named
                {
                    self.names.insert(ip.to_string(), name.to_string());
                }
                self.nodes.insert(name.to_string(), node.clone());
                self.tell(Event::NodeApplied(node));
            }
        }
    }

    pub(super) fn pod_line(&mut self, name: &str, rest: &[&str]) {
        match rest {
            ["deleted", uid_option @ ..] => {
                let uid = match value(uid_option, "uid=") {
                    Some(number) => uid(number),
                    None => self.pods.remove(name).expect("a known pod").uid,
                };
                self.tell(Event::PodDeleted { uid });
            }
            ["vanishes"] => {
                self.pods.remove(name).expect("a known pod");
            }
            ["applied", "again"] => {
                let pod = self.pods.get(name).expect("a known pod").clone();
                self.tell(Event::PodApplied(pod));
            }
            ["known", options @ ..] => {
                // Only the next list will show it.
                let pod = self.pod(name, options);
                self.pods.insert(name.to_string(), pod);
            }
            options => {
                let pod = self.pod(name, options);
                self.pods.insert(name.to_string(), pod.clone());
                self.tell(Event::PodApplied(pod));
            }
        }
    }

    fn pod(&mut self, name: &str, options: &[&str]) -> PodObject {
        let option = |word: &str| options.contains(&word);
        let version = self.next_version();
        let known = self.pods.get(name).map(|pod| (pod.uid, pod.created));
        let (uid, created) = match (value(options, "uid="), known) {
            (Some(number), Some((old, created))) if uid(number) == old => (old, created),
            (Some(number), _) => (uid(number), version),
            (None, Some(known)) => known,
            (None, None) => {
                self.pods_made += 1;
                (Uid::from_number(0xa0d0_0000 + self.pods_made), version)
            }
        };
        let ips = options.iter().filter_map(|it| it.strip_prefix("ip="));
        PodObject {
            uid,
            name: object_name(name),
            version,
            egress: value(options, "egress=").map(Arc::from),
            node: value(options, "node=").map(Arc::from),
            ips: ips.map(|ip| ip.parse().expect("an address")).collect(),
            host_ips: value(options, "host=").map(|ip| ip.parse().expect("an address")).into_iter().collect(),
            phase: match (option("finished"), option("pending")) {
                (true, _) => Phase::Finished,
                (_, true) => Phase::Pending,
                _ => Phase::Running,
            },
            terminating: option("terminating"),
            host_network: option("hostnetwork"),
            created,
        }
    }

    /// What Azure calls a service of the story.
    pub(super) fn identity(&self, name: &str) -> String {
        if let Some(object) = self.objects.get(name) {
            return object.uid.to_string();
        }
        let known = self.names.iter().find(|(_, known)| *known == name).map(|(identity, _)| identity.clone());
        known.unwrap_or_else(|| name.to_string())
    }
}

/// `80->8080`, `53->53/udp`, `80->http`
fn service_port(text: &str) -> ServicePort {
    let (text, protocol) = text.split_once('/').unwrap_or((text, "tcp"));
    let (port, target) = text.split_once("->").expect("port=80->8080");
    let target = match target.parse() {
        Ok(number) => TargetPort::Number(number),
        Err(_) => TargetPort::Name(target.into()),
    };
    let protocol = match protocol {
        "udp" => Protocol::Udp,
        "sctp" => Protocol::Sctp,
        _ => Protocol::Tcp,
    };
    ServicePort { name: "http".into(), protocol, port: port.parse().expect("a port"), target }
}

/// `10.0.0.4@node-a`, `10.0.0.4@node-a!unready`, `10.0.0.4@`
fn endpoint(text: &str) -> Endpoint {
    let (address, rest) = text.split_once('@').expect("address@node");
    let (node, condition) = rest.split_once('!').unwrap_or((rest, "ready"));
    Endpoint {
        address: address.parse().expect("an address"),
        node: (!node.is_empty()).then(|| node.into()),
        ready: condition == "ready",
        serving: condition != "unready",
        terminating: condition == "terminating",
    }
}
