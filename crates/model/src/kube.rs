//! The objects of Kubernetes, cut down to the few fields that matter.
//!
//! The edge fills these in and skips what cannot be read (saying so in `malformed`),
//! so that inside every address is an address and every identity an identity.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::IpAddr;

use crate::address::Family;
use crate::key::{ObjectName, Uid};
use crate::reason::Reason;

/// The kinds that we watch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// Services of every type; the edge says which are ours.
    Service,
    /// EndpointSlices.
    Slice,
    /// Nodes.
    Node,
    /// Pods that carry the egress label.
    Pod,
}

impl Kind {
    /// All four.
    pub const ALL: [Kind; 4] = [Kind::Service, Kind::Slice, Kind::Node, Kind::Pod];
}

/// An object by name, fenced by its UID: a same-named successor is another object.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ObjectRef {
    /// Which incarnation.
    pub uid: Uid,
    /// Where to find it.
    pub name: ObjectName,
}

/// A Service.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServiceObject {
    /// Its UID; the load balancer is named after it.
    pub uid: Uid,
    /// Its namespace and name.
    pub name: ObjectName,
    /// Its resourceVersion.
    pub version: u64,
    /// Type `LoadBalancer` and of our class.
    pub selected: bool,
    /// Type `LoadBalancer`, of whatever class.
    pub load_balancer: bool,
    /// It has a deletion timestamp.
    pub deleting: bool,
    /// It carries our finalizer.
    pub finalizer: bool,
    /// It carries finalizers of service controllers before us that are ours to clear; the edge never says so
    /// while a class is configured, or of a Service that has one.
    pub inherited: bool,
    /// What its owner wants.
    pub spec: ServiceSpec,
    /// `status.loadBalancer.ingress`, the IPs.
    pub ingress: Vec<IpAddr>,
    /// The IP that our own condition says we published, so that a restart knows which entry is ours to retract.
    pub published: Option<IpAddr>,
    /// The IP in our annotation. Everybody who edits Services can write it.
    pub annotated: Option<IpAddr>,
    /// Our two conditions, as far as they are there.
    pub conditions: Vec<Condition>,
}

impl ServiceObject {
    /// Whether Sluice has something to remove from it, whichever controller serves it: a finalizer, or a published IP.
    pub const fn is_left_to_us(&self) -> bool {
        self.finalizer || self.inherited || self.published.is_some()
    }
}

/// The part of a Service's spec and annotations that decides what its load balancer looks like.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ServiceSpec {
    /// The ports.
    pub ports: Vec<ServicePort>,
    /// `ipFamilies`; empty means IPv4.
    pub families: Vec<Family>,
    /// `ipFamilyPolicy`.
    pub family_policy: FamilyPolicy,
    /// `sessionAffinity: ClientIP`.
    pub client_ip_affinity: bool,
    /// `loadBalancerIP` is set.
    pub fixed_ip: bool,
    /// `loadBalancerSourceRanges` is set.
    pub source_ranges: bool,
    /// Annotations that ask for what is rejected, sorted; [`crate::annotations`] says why.
    pub rejected_annotations: Vec<Arc<str>>,
    /// The idle timeout annotation, as written.
    pub idle_timeout: Option<Arc<str>>,
    /// Annotations for Azure's load balancers that have no effect here, sorted; its owner is told once.
    pub idle_annotations: Vec<Arc<str>>,
}

/// How many IP families a Service asks for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum FamilyPolicy {
    /// One.
    #[default]
    SingleStack,
    /// Both where possible; the first alone will do.
    PreferDualStack,
    /// Both.
    RequireDualStack,
}

/// One port of a Service.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ServicePort {
    /// Its name; empty when there is only one. EndpointSlices list their ports by this name.
    pub name: Arc<str>,
    /// The protocol.
    pub protocol: Protocol,
    /// The port that clients connect to.
    pub port: u16,
    /// The port of the pods.
    pub target: TargetPort,
}

/// A transport protocol.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// SCTP, which Azure's load balancers do not carry.
    Sctp,
}

impl Protocol {
    /// As it stands in rule names.
    pub const fn word(self) -> &'static str {
        match self {
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
            Protocol::Sctp => "sctp",
        }
    }
}

/// Where a port leads to.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum TargetPort {
    /// A number.
    Number(u16),
    /// A container port's name, resolved through the EndpointSlices.
    Name(Arc<str>),
}

/// One of our conditions on a Service.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Condition {
    /// Which of the two.
    pub kind: ConditionKind,
    /// Its status.
    pub holds: bool,
    /// Why.
    pub reason: Reason,
    /// What the reason is about.
    pub concern: Concern,
    /// The message, if it has details. Without, it is that of the reason and the concern.
    pub message: Box<str>,
}

impl Condition {
    /// A condition without details.
    pub fn new(kind: ConditionKind, holds: bool, reason: Reason, concern: Concern) -> Condition {
        Condition { kind, holds, reason, concern, message: Box::default() }
    }
}

/// What is in trouble: the Azure resources of a service, its addresses, or its deletion.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Concern {
    /// Its Azure resources, which the reason alone describes.
    #[default]
    Resources,
    /// Addresses that are not programmed.
    Addresses,
    /// A deletion that does not end.
    Deletion,
}

impl Concern {
    /// Every concern.
    pub const ALL: [Concern; 3] = [Concern::Resources, Concern::Addresses, Concern::Deletion];

    /// The sentence with which the message of a condition begins. It has no numbers, since a condition is written again
    /// whenever it changes.
    pub const fn sentence(self) -> Option<&'static str> {
        match self {
            Concern::Resources => None,
            Concern::Addresses => Some("Some addresses are not programmed in Azure."),
            Concern::Deletion => Some("The deletion does not complete."),
        }
    }

    /// The concern with which the message of a condition begins. What follows may be a text of others.
    pub fn in_message(message: &str) -> Concern {
        let says =
            |concern: &Concern| concern.sentence().is_some_and(|sentence| message.starts_with(sentence));
        Concern::ALL.into_iter().find(says).unwrap_or_default()
    }
}

/// Our two conditions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ConditionKind {
    /// `LoadBalancerProvisioning`: work on its Azure resources is going on or waiting.
    Provisioning,
    /// `LoadBalancerServing`: it is registered and its addresses are kept in sync.
    Serving,
}

/// An EndpointSlice of one address family.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Slice {
    /// Its namespace and name.
    pub name: ObjectName,
    /// Its resourceVersion.
    pub version: u64,
    /// Whose endpoints these are.
    pub owner: SliceOwner,
    /// The ports, by the Service's port names.
    pub ports: Vec<SlicePort>,
    /// The endpoints.
    pub endpoints: Vec<Endpoint>,
    /// Addresses that are no IP addresses (FQDN slices, typos); they are skipped with one warning.
    pub malformed: Vec<Arc<str>>,
}

/// The Service that a slice belongs to, always one of the slice's own namespace.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum SliceOwner {
    /// By owner reference.
    Uid(Uid),
    /// By the label `kubernetes.io/service-name`.
    Name(Arc<str>),
    /// None: the slice names no Service, or is being deleted. Its endpoints do not count.
    Nobody,
}

/// A port of a slice.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SlicePort {
    /// The Service port's name.
    pub name: Arc<str>,
    /// The protocol.
    pub protocol: Protocol,
    /// The pods' port; `None` means "all".
    pub port: Option<u16>,
}

/// One endpoint of a slice.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Endpoint {
    /// The pod's address.
    pub address: IpAddr,
    /// The node it runs on, if known.
    pub node: Option<Arc<str>>,
    /// `conditions.ready`, true when absent.
    pub ready: bool,
    /// `conditions.serving`, same as ready when absent.
    pub serving: bool,
    /// `conditions.terminating`.
    pub terminating: bool,
}

/// A Node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeObject {
    /// Its name.
    pub name: Arc<str>,
    /// Its resourceVersion.
    pub version: u64,
    /// Its InternalIPs, in any order.
    pub internal_ips: Vec<IpAddr>,
}

/// A pod that carries, or carried, the egress label.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PodObject {
    /// Its UID.
    pub uid: Uid,
    /// Its namespace and name.
    pub name: ObjectName,
    /// Its resourceVersion.
    pub version: u64,
    /// The egress label's value, as written; `None` when the label is gone.
    pub egress: Option<Arc<str>>,
    /// The node it is scheduled on.
    pub node: Option<Arc<str>>,
    /// Its addresses.
    pub ips: Vec<IpAddr>,
    /// `status.hostIPs`; used only while the Node is unknown.
    pub host_ips: Vec<IpAddr>,
    /// How far it is.
    pub phase: Phase,
    /// It has a deletion timestamp.
    pub terminating: bool,
    /// It shares the node's network, so its address is the node's.
    pub host_network: bool,
    /// Its creation time in seconds; the newest pod wins an address.
    pub created: u64,
}

/// How far a pod is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Phase {
    /// Not running yet.
    Pending,
    /// Running.
    Running,
    /// Succeeded or Failed: its containers have ended.
    Finished,
}
