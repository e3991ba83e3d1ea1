//! What must exist when everything has converged, read straight from the truth.
//!
//! Deliberately naive and written from the Kubernetes contract alone: it shares no code with the
//! engine, looks at every object, and keeps nothing between two questions. Each function is one
//! rule of the contract.
//!
//! Two things follow from history and not from the objects, so the caller says them: which
//! Services are live in Azure although their present spec is refused or their ports are unresolved
//! (such a load balancer is left as it is, and its addresses stay in sync). The default outbound
//! service follows from configuration and is not in here.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use sluice_model::address::Family;
use sluice_model::azure::Rule;
use sluice_model::kube::{FamilyPolicy, Phase, Protocol, ServicePort, ServiceSpec, TargetPort};
use sluice_model::{ObjectName, Uid};

use super::Cluster;
use super::objects::{AddressType, EndpointRecord, PodRecord, ServiceRecord, SliceRecord, Stored};

/// What must exist.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Desired {
    /// Every wanted inbound service, by the UID of its Service.
    pub inbound: BTreeMap<Uid, Inbound>,
    /// Every wanted egress with the pods that want it.
    pub outbound: BTreeMap<Arc<str>, BTreeSet<Uid>>,
    /// Location, address, and the identities that it is mapped to, sorted.
    pub locations: BTreeMap<IpAddr, BTreeMap<IpAddr, Vec<Arc<str>>>>,
}

/// What must be there for a wanted Service.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Inbound {
    /// A registered load balancer that looks like this.
    Served {
        /// Of this family.
        family: Family,
        /// With these rules, sorted.
        rules: Vec<Rule>,
    },
    /// Its spec is refused: nothing is made, what is live stays as it is.
    Refused(&'static str),
    /// A named port is unknown or disputed: nothing is written, what is live stays as it is.
    PortUnresolved,
}

impl Cluster {
    /// What must exist; `live` are the Services that Azure has registered now.
    pub fn desired(&self, live: &BTreeSet<Uid>) -> Desired {
        let mut desired = Desired::default();
        let mut pairs: BTreeSet<(IpAddr, IpAddr, Arc<str>)> = BTreeSet::new();
        for service in self.services().filter(|service| is_wanted(service)) {
            let inbound = self.inbound(service);
            if matches!(inbound, Inbound::Served { .. }) || live.contains(&service.meta.uid) {
                for (endpoint, address, _) in self.counting_endpoints(service) {
                    if let Some(location) = self.endpoint_location(endpoint, address) {
                        pairs.insert((location, address, service.meta.uid.to_string().into()));
                    }
                }
            }
            desired.inbound.insert(service.meta.uid, inbound);
        }
        for pod in self.pods() {
            if let Some(egress) = egress_of(pod) {
                desired.outbound.entry(egress).or_default().insert(pod.meta.uid);
            }
        }
        for (address, pod) in self.address_holders() {
            if let (Some(egress), Some(location)) = (egress_of(pod), self.pod_location(pod, address)) {
                pairs.insert((location, address, egress));
            }
        }
        for (location, address, identity) in pairs {
            desired.locations.entry(location).or_default().entry(address).or_default().push(identity);
        }
        desired
    }

    fn inbound(&self, service: &Stored<ServiceRecord>) -> Inbound {
        let spec = &service.body.spec;
        if let Some(why) = refusal(spec) {
            return Inbound::Refused(why);
        }
        let idle_timeout_minutes = idle_timeout(spec).unwrap_or(4);
        let mut rules = Vec::new();
        for port in &spec.ports {
            let Some(backend_port) = self.backend_port(service, port) else { return Inbound::PortUnresolved };
            rules.push(Rule {
                protocol: port.protocol,
                frontend_port: port.port,
                backend_port,
                idle_timeout_minutes,
            });
        }
        // Named ports can collide as well, once they are numbers.
        let backends: BTreeSet<_> = rules.iter().map(|rule| (rule.protocol, rule.backend_port)).collect();
        if backends.len() < rules.len() {
            return Inbound::Refused("two ports with the same protocol and backend port");
        }
        rules.sort();
        Inbound::Served { family: spec.families.first().copied().unwrap_or(Family::V4), rules }
    }

    /// A number is itself. A name is what every slice with a counting endpoint says it is; a slice that
    /// does not know it, or says "all ports", disagrees with everybody.
    fn backend_port(&self, service: &Stored<ServiceRecord>, port: &ServicePort) -> Option<u16> {
        if let TargetPort::Number(number) = &port.target {
            return Some(*number);
        }
        let said: BTreeSet<Option<u16>> = self
            .counting_endpoints(service)
            .into_iter()
            .map(|(_, _, slice)| {
                let known = slice.ports.iter().find(|p| p.name == port.name && p.protocol == port.protocol);
                known.and_then(|known| known.port)
            })
            .collect();
        let mut said = said.into_iter();
        match (said.next(), said.next()) {
            (Some(Some(number)), None) => Some(number),
            _ => None,
        }
    }

    /// The endpoints that count, over all slices of the Service: the ready ones; if there is none
    /// anywhere, those that are serving and terminating. What is no address of the slice's family is skipped.
    fn counting_endpoints(
        &self,
        service: &Stored<ServiceRecord>,
    ) -> Vec<(&EndpointRecord, IpAddr, &SliceRecord)> {
        let mut all = Vec::new();
        for slice in self.slices().filter(|slice| owns(service, slice)) {
            for endpoint in &slice.body.endpoints {
                let address = canonical(&endpoint.address);
                let family = address.map(Family::of);
                let fits = match slice.body.address_type {
                    AddressType::V4 => family == Some(Family::V4),
                    AddressType::V6 => family == Some(Family::V6),
                    AddressType::Fqdn => false,
                };
                if let Some(address) = address.filter(|_| fits) {
                    all.push((endpoint, address, &slice.body));
                }
            }
        }
        let is_ready = |endpoint: &EndpointRecord| endpoint.health.conditions().0 != Some(false);
        let is_draining = |endpoint: &EndpointRecord| {
            let (_, serving, terminating) = endpoint.health.conditions();
            serving == Some(true) && terminating == Some(true)
        };
        let any_ready = all.iter().any(|(endpoint, ..)| is_ready(endpoint));
        all.retain(|(endpoint, ..)| if any_ready { is_ready(endpoint) } else { is_draining(endpoint) });
        all
    }

    /// An endpoint is where its node is.
    fn endpoint_location(&self, endpoint: &EndpointRecord, address: IpAddr) -> Option<IpAddr> {
        self.node_location(&endpoint.node.clone()?, Family::of(address))
    }

    /// A pod is where its node is.
    fn pod_location(&self, pod: &Stored<PodRecord>, address: IpAddr) -> Option<IpAddr> {
        self.node_location(&pod.body.node.clone()?, Family::of(address))
    }

    /// A node is where its Node object says; only while there is none, where the `hostIPs` of the egress pods
    /// on it say, the smallest if they disagree. Without either it is nowhere yet.
    fn node_location(&self, name: &Arc<str>, family: Family) -> Option<IpAddr> {
        if let Some(node) = self.nodes.find(&ObjectName::new("", name.clone())) {
            return smallest(&node.body.ips, family);
        }
        let here = self.pods().filter(|pod| pod.body.node.as_ref() == Some(name) && egress_of(pod).is_some());
        let first = |pod: &Stored<PodRecord>| {
            pod.body.host_ips.iter().filter_map(|text| canonical(text)).find(|ip| Family::of(*ip) == family)
        };
        here.filter_map(first).min()
    }

    /// Which pod has which address: of the pods that may have one, the newest that is not terminating,
    /// then the newest that is, then the greater UID. A pod has one address per family, its first.
    pub(crate) fn address_holders(&self) -> BTreeMap<IpAddr, &Stored<PodRecord>> {
        let mut holders: BTreeMap<IpAddr, &Stored<PodRecord>> = BTreeMap::new();
        let rank = |pod: &Stored<PodRecord>| {
            (pod.meta.deletion_seconds.is_none(), pod.meta.created_seconds, pod.meta.uid)
        };
        for pod in self.pods().filter(|pod| egress_of(pod).is_some()) {
            let mut families = BTreeSet::new();
            for address in pod.body.ips.iter().filter_map(|text| canonical(text)) {
                if !families.insert(Family::of(address)) {
                    continue;
                }
                let holder = holders.entry(address).or_insert(pod);
                if rank(pod) > rank(holder) {
                    *holder = pod;
                }
            }
        }
        holders
    }
}

/// A Service is wanted while it is there, is ours, and is not being deleted.
fn is_wanted(service: &Stored<ServiceRecord>) -> bool {
    service.body.balanced && service.body.class.is_none() && service.meta.deletion_seconds.is_none()
}

/// The reasons for which a spec is refused, whatever its slices say.
pub(crate) fn refusal(spec: &ServiceSpec) -> Option<&'static str> {
    let numbers: Vec<(Protocol, u16)> = spec
        .ports
        .iter()
        .filter_map(|port| match port.target {
            TargetPort::Number(number) => Some((port.protocol, number)),
            TargetPort::Name(_) => None,
        })
        .collect();
    let distinct: BTreeSet<_> = numbers.iter().collect();
    let both_families = match spec.family_policy {
        FamilyPolicy::SingleStack => spec.families.len() > 1,
        FamilyPolicy::PreferDualStack => false,
        FamilyPolicy::RequireDualStack => true,
    };
    [
        (!spec.rejected_annotations.is_empty(), "an annotation"),
        (spec.client_ip_affinity, "session affinity"),
        (spec.fixed_ip, "loadBalancerIP"),
        (both_families, "more than one IP family"),
        (idle_timeout(spec).is_none(), "idle timeout is not an integer from 4 to 30"),
        (spec.source_ranges, "source ranges"),
        (spec.ports.iter().any(|port| port.protocol == Protocol::Sctp), "SCTP"),
        (spec.ports.iter().any(|port| port.port == 65535), "frontend port 65535"),
        (distinct.len() < numbers.len(), "two ports with the same protocol and backend port"),
    ]
    .into_iter()
    .find_map(|(wrong, why)| wrong.then_some(why))
}

/// The annotation in minutes, 4 if there is none, `None` if it is no integer from 4 to 30.
fn idle_timeout(spec: &ServiceSpec) -> Option<u8> {
    match &spec.idle_timeout {
        None => Some(4),
        Some(text) => text.parse::<u8>().ok().filter(|minutes| (4..=30).contains(minutes)),
    }
}

/// A slice belongs to a Service of its own namespace: the one of its owner reference; only without one, the
/// one of its label.
fn owns(service: &Stored<ServiceRecord>, slice: &Stored<SliceRecord>) -> bool {
    slice.meta.name.namespace == service.meta.name.namespace
        && match (slice.body.owner, &slice.body.service_label) {
            (Some(uid), _) => uid == service.meta.uid,
            (None, Some(label)) => *label == service.meta.name.name,
            (None, None) => false,
        }
}

/// The egress that a pod wants: its label is a valid name, it has not finished, and it does not share
/// the node's network. Whether it has an address yet makes no difference.
fn egress_of(pod: &Stored<PodRecord>) -> Option<Arc<str>> {
    let name = pod.body.egress.as_ref()?.to_ascii_lowercase();
    (pod.body.phase != Phase::Finished && !pod.body.host_network && is_egress_name(&name))
        .then(|| name.into())
}

/// 1-73 characters of `[a-z0-9._-]`, the first a letter or digit, the last one of those or an underscore,
/// neither reserved nor shaped like a UUID.
fn is_egress_name(name: &str) -> bool {
    let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let uuid_shaped = name.len() == 36
        && name.char_indices().all(|(at, c)| match at {
            8 | 13 | 18 | 23 => c == '-',
            _ => c.is_ascii_hexdigit(),
        });
    (1..=73).contains(&name.len())
        && name.chars().all(|c| word(c) || "._-".contains(c))
        && name.starts_with(word)
        && name.ends_with(|c| word(c) || c == '_')
        && name != "default-natgw"
        && !uuid_shaped
}

/// An address in its one spelling.
fn canonical(text: &str) -> Option<IpAddr> {
    text.trim().parse::<IpAddr>().ok().map(|ip| ip.to_canonical())
}

/// The smallest address of a family.
fn smallest(written: &[Arc<str>], family: Family) -> Option<IpAddr> {
    written.iter().filter_map(|text| canonical(text)).filter(|ip| Family::of(*ip) == family).min()
}
