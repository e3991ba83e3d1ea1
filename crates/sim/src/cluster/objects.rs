//! The objects as the API server stores them: raw text, optional fields, finalizers.
//!
//! Addresses are kept as somebody wrote them, because odd spellings and names in place of
//! addresses are part of the game; `convert` reads them the way our edge will. A Service's spec
//! is already in the model's few fields: which annotation leads to which of them is the edge's
//! business and is not simulated.

use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use sluice_model::azure::Tags;
use sluice_model::kube::{Condition, FamilyPolicy, Phase, ServicePort, ServiceSpec, SlicePort, TargetPort};
use sluice_model::names::SERVICE_TAG;
use sluice_model::{ObjectName, Uid};

/// Our finalizer on Services.
pub const OUR_FINALIZER: &str = "sluice.dev/cleanup";
/// The finalizer of the cloud controller manager, which we take over and clear with ours.
pub const INHERITED_FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";
/// A finalizer of somebody else, which we must leave alone.
pub const FOREIGN_FINALIZER: &str = "example.com/hold";

/// Whether a cloud controller manager has tagged a public IP for a Service.
pub fn is_tagged_for(tags: &Tags, service: &ObjectName) -> bool {
    let name = service.to_string();
    tags.get(SERVICE_TAG).is_some_and(|listed| listed.split(',').any(|one| one.trim() == name))
}

/// An object with what every object has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stored<T> {
    /// Identity, version and life.
    pub meta: Meta,
    /// What makes its kind.
    pub body: T,
}

impl Stored<ServiceRecord> {
    /// It carries the finalizer of the cloud controller manager, and is of no class of others.
    pub fn carries_inherited(&self) -> bool {
        self.body.class.is_none() && self.meta.finalizers.contains(INHERITED_FINALIZER)
    }
}

/// What every object has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Meta {
    /// Which incarnation.
    pub uid: Uid,
    /// Its name; the namespace of a Node is empty.
    pub name: ObjectName,
    /// Its resourceVersion.
    pub version: u64,
    /// When it was created, in seconds.
    pub created_seconds: u64,
    /// Its deletion timestamp.
    pub deletion_seconds: Option<u64>,
    /// What keeps it from going.
    pub finalizers: BTreeSet<Arc<str>>,
    /// How often a label that nobody here reads was changed.
    pub touches: u64,
}

/// A Service.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServiceRecord {
    /// Type `LoadBalancer`; else `ClusterIP`.
    pub balanced: bool,
    /// `loadBalancerClass`; we serve those without one.
    pub class: Option<Arc<str>>,
    /// What its owner wants.
    pub spec: ServiceSpec,
    /// `status.loadBalancer.ingress`.
    pub ingress: Vec<IpAddr>,
    /// The IP that our condition names as the one we published.
    pub published: Option<IpAddr>,
    /// The IP in our annotation.
    pub annotation: Option<IpAddr>,
    /// Our conditions in its status.
    pub conditions: Vec<Condition>,
}

impl ServiceRecord {
    /// A Service of type `LoadBalancer` and of our class.
    pub fn balanced(ports: Vec<ServicePort>) -> ServiceRecord {
        let spec = ServiceSpec { ports, ..ServiceSpec::default() };
        ServiceRecord {
            balanced: true,
            class: None,
            spec,
            ingress: Vec::new(),
            published: None,
            annotation: None,
            conditions: Vec::new(),
        }
    }

    /// Of type `LoadBalancer` and of our class.
    pub fn is_ours(&self) -> bool {
        self.balanced && self.class.is_none()
    }
}

/// An EndpointSlice.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SliceRecord {
    /// What its addresses are.
    pub address_type: AddressType,
    /// The UID of its owner reference.
    pub owner: Option<Uid>,
    /// The value of its label `kubernetes.io/service-name`.
    pub service_label: Option<Arc<str>>,
    /// The ports, by the Service's port names.
    pub ports: Vec<SlicePort>,
    /// The endpoints.
    pub endpoints: Vec<EndpointRecord>,
}

/// `addressType` of a slice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum AddressType {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
    /// Host names, which are of no use to us.
    Fqdn,
}

/// One endpoint of a slice.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EndpointRecord {
    /// The address, as written.
    pub address: Arc<str>,
    /// The node.
    pub node: Option<Arc<str>>,
    /// Its conditions.
    pub health: Health,
}

/// The conditions of an endpoint that occur together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Health {
    /// Ready and serving.
    Ready,
    /// No condition is set, which means ready.
    Unsaid,
    /// Neither ready nor serving.
    NotReady,
    /// Terminating, but still serving.
    Draining,
    /// Terminating, and not serving any more.
    Ended,
}

impl Health {
    /// All of them.
    pub const ALL: [Health; 5] =
        [Health::Ready, Health::Unsaid, Health::NotReady, Health::Draining, Health::Ended];

    /// `ready`, `serving` and `terminating` as they stand in the object.
    pub const fn conditions(self) -> (Option<bool>, Option<bool>, Option<bool>) {
        match self {
            Health::Ready => (Some(true), Some(true), Some(false)),
            Health::Unsaid => (None, None, None),
            Health::NotReady => (Some(false), Some(false), Some(false)),
            Health::Draining => (Some(false), Some(true), Some(true)),
            Health::Ended => (Some(false), Some(false), Some(true)),
        }
    }
}

/// A Node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeRecord {
    /// Its InternalIPs, as written.
    pub ips: Vec<Arc<str>>,
}

/// A pod.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PodRecord {
    /// The egress label; without it the pod is invisible to our watch.
    pub egress: Option<Arc<str>>,
    /// The node it is scheduled on.
    pub node: Option<Arc<str>>,
    /// Its addresses, as written.
    pub ips: Vec<Arc<str>>,
    /// `status.hostIPs`, as written.
    pub host_ips: Vec<Arc<str>>,
    /// How far it is.
    pub phase: Phase,
    /// It shares the node's network.
    pub host_network: bool,
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Health::Ready => "ready",
            Health::Unsaid => "unsaid",
            Health::NotReady => "not-ready",
            Health::Draining => "draining",
            Health::Ended => "ended",
        })
    }
}

impl fmt::Display for AddressType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AddressType::V4 => "IPv4",
            AddressType::V6 => "IPv6",
            AddressType::Fqdn => "FQDN",
        })
    }
}

impl fmt::Display for EndpointRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.address, self.node.as_deref().unwrap_or("?"))?;
        if self.health != Health::Ready {
            write!(f, "({})", self.health)?;
        }
        Ok(())
    }
}

impl fmt::Display for ServiceRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.balanced { "LoadBalancer" } else { "ClusterIP" })?;
        if let Some(class) = &self.class {
            write!(f, " class={class}")?;
        }
        write!(f, " {}", Ports(&self.spec.ports))?;
        if !self.spec.families.is_empty() {
            f.write_str(" families=")?;
            joined(f, "+", &self.spec.families)?;
        }
        match self.spec.family_policy {
            FamilyPolicy::SingleStack => {}
            FamilyPolicy::PreferDualStack => f.write_str(" prefers-both")?,
            FamilyPolicy::RequireDualStack => f.write_str(" requires-both")?,
        }
        for (word, on) in [
            ("affinity", self.spec.client_ip_affinity),
            ("fixed-ip", self.spec.fixed_ip),
            ("source-ranges", self.spec.source_ranges),
        ] {
            if on {
                write!(f, " {word}")?;
            }
        }
        for key in &self.spec.rejected_annotations {
            write!(f, " {}", key.rsplit('/').next().unwrap_or(key))?;
        }
        match &self.spec.idle_timeout {
            Some(minutes) => write!(f, " idle={minutes:?}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for PodRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.egress {
            Some(label) => write!(f, "egress={label:?}")?,
            None => f.write_str("unlabelled")?,
        }
        write!(f, " on {}", self.node.as_deref().unwrap_or("?"))?;
        if !self.ips.is_empty() {
            f.write_str(" with ")?;
            joined(f, ",", &self.ips)?;
        }
        if self.host_network {
            f.write_str(" host-network")?;
        }
        write!(f, " {:?}", self.phase)
    }
}

/// Ports as people write them: `http tcp 80→8080, dns udp 53→"dns"`.
pub(crate) struct Ports<'a>(pub(crate) &'a [ServicePort]);

impl fmt::Display for Ports<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, port) in self.0.iter().enumerate() {
            f.write_str(if at == 0 { "" } else { ", " })?;
            if !port.name.is_empty() {
                write!(f, "{} ", port.name)?;
            }
            write!(f, "{} {}→", port.protocol.word(), port.port)?;
            match &port.target {
                TargetPort::Number(number) => write!(f, "{number}")?,
                TargetPort::Name(name) => write!(f, "{name:?}")?,
            }
        }
        Ok(())
    }
}

pub(crate) fn joined<T: fmt::Display>(f: &mut fmt::Formatter<'_>, by: &str, items: &[T]) -> fmt::Result {
    for (at, item) in items.iter().enumerate() {
        f.write_str(if at == 0 { "" } else { by })?;
        write!(f, "{item}")?;
    }
    Ok(())
}
