//! The things that people and other controllers do.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use sluice_model::ObjectName;
use sluice_model::address::Family;
use sluice_model::annotations;
use sluice_model::kube::{FamilyPolicy, Phase, ServicePort, SlicePort};

use super::trouble::Trouble;
use crate::cluster::Cluster;
use crate::cluster::objects::{
    AddressType, EndpointRecord, Health, PodRecord, Ports, ServiceRecord, SliceRecord, joined,
};

/// One thing that somebody does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum UserAction {
    /// Creates a Service.
    CreateService {
        /// Which.
        service: ObjectName,
        /// How it is.
        record: ServiceRecord,
    },
    /// Creates a Service for which another controller has resources without our tag, under its UID.
    CreateServedByOthers {
        /// Which.
        service: ObjectName,
        /// How it is.
        record: ServiceRecord,
        /// What the other controller has.
        parts: OthersHave,
    },
    /// Makes a Service `LoadBalancer` or `ClusterIP`.
    SetType {
        /// Which.
        service: ObjectName,
        /// `LoadBalancer`.
        balanced: bool,
    },
    /// Replaces a Service's ports.
    SetPorts {
        /// Which.
        service: ObjectName,
        /// The ports.
        ports: Vec<ServicePort>,
    },
    /// Writes or removes the idle timeout annotation.
    SetIdleTimeout {
        /// Which.
        service: ObjectName,
        /// Its text.
        minutes: Option<Arc<str>>,
    },
    /// Asks for something that we refuse, or takes it back.
    SetOddity {
        /// Which.
        service: ObjectName,
        /// What.
        oddity: Oddity,
        /// Asks for it.
        on: bool,
    },
    /// Changes a label that means nothing.
    TouchService {
        /// Which.
        service: ObjectName,
    },
    /// Puts a finalizer that is not ours on a Service.
    HoldService {
        /// Which.
        service: ObjectName,
        /// The finalizer.
        finalizer: Arc<str>,
    },
    /// Takes it off.
    ReleaseService {
        /// Which.
        service: ObjectName,
        /// The finalizer.
        finalizer: Arc<str>,
    },
    /// Deletes a Service.
    DeleteService {
        /// Which.
        service: ObjectName,
    },
    /// Takes our finalizer off a Service by force.
    StripFinalizer {
        /// Which.
        service: ObjectName,
    },
    /// Empties a Service's status.
    WipeStatus {
        /// Which.
        service: ObjectName,
    },
    /// Puts an IP that is not ours into a Service's ingress list.
    AddIngress {
        /// Which.
        service: ObjectName,
        /// The IP.
        ip: IpAddr,
    },
    /// A namespace vanishes with all that is in it.
    DropNamespace {
        /// Which.
        namespace: Arc<str>,
    },
    /// Creates or replaces an EndpointSlice.
    PutSlice {
        /// Which.
        slice: ObjectName,
        /// How it is.
        draft: SliceDraft,
    },
    /// Moves an endpoint from one slice to another.
    MoveEndpoint {
        /// Out of this slice.
        from: ObjectName,
        /// Into this one.
        to: ObjectName,
        /// The endpoint's address, as written.
        address: Arc<str>,
        /// It is in both for a moment; else in neither.
        add_first: bool,
    },
    /// Changes an endpoint's conditions.
    SetHealth {
        /// In which slice.
        slice: ObjectName,
        /// The endpoint's address, as written.
        address: Arc<str>,
        /// The conditions.
        health: Health,
    },
    /// Deletes an EndpointSlice.
    DeleteSlice {
        /// Which.
        slice: ObjectName,
    },
    /// The garbage collector deletes the slices of Services that are gone.
    CollectGarbage,
    /// Creates a Node or changes its addresses.
    PutNode {
        /// Which.
        node: Arc<str>,
        /// Its InternalIPs, as written.
        ips: Vec<Arc<str>>,
    },
    /// Deletes a Node.
    DeleteNode {
        /// Which.
        node: Arc<str>,
    },
    /// Creates a pod.
    CreatePod {
        /// Which.
        pod: ObjectName,
        /// How it is.
        record: PodRecord,
    },
    /// A pod gets its node and addresses, and runs.
    PlacePod {
        /// Which.
        pod: ObjectName,
        /// On which node.
        node: Arc<str>,
        /// Its addresses, as written.
        ips: Vec<Arc<str>>,
        /// The node's addresses, as the kubelet sees them.
        host_ips: Vec<Arc<str>>,
    },
    /// A pod loses its addresses.
    ClearPodIps {
        /// Which.
        pod: ObjectName,
    },
    /// A pod gets on.
    SetPhase {
        /// Which.
        pod: ObjectName,
        /// How far.
        phase: Phase,
    },
    /// Changes or removes a pod's egress label.
    LabelPod {
        /// Which.
        pod: ObjectName,
        /// The label's value.
        egress: Option<Arc<str>>,
    },
    /// Asks a pod to end.
    TerminatePod {
        /// Which.
        pod: ObjectName,
    },
    /// A pod is gone.
    DeletePod {
        /// Which.
        pod: ObjectName,
    },
    /// The API server forgets its past, so that old watches get `410 Gone`.
    CompactHistory,
    /// The leading process is asked to end, as by a rollout of the controller.
    StopLeader,
    /// The operator allows the deletions that are held now (`sluice allow-deletion`).
    AllowDeletion,
    /// A cloud controller manager has a public IP in Azure, tagged for these Services.
    TagPublicIp {
        /// The public IP's name.
        name: Arc<str>,
        /// `namespace/name` of the Services, separated by commas.
        services: Arc<str>,
    },
    /// Somebody changes the tags of what a Service has in Azure.
    Retag {
        /// Whose.
        service: ObjectName,
        /// Of what.
        part: Tagged,
        /// How.
        change: TagChange,
    },
    /// Somebody deletes that public IP.
    DeleteTaggedIp {
        /// Its name.
        name: Arc<str>,
    },
    /// Something goes wrong.
    Trouble(Trouble),
    /// Another controller binds an address to a service of its own, which it registers first if need be.
    OthersBind {
        /// The service; a UID has a load balancer, any other name a NAT gateway.
        service: Arc<str>,
        /// On which node.
        location: IpAddr,
        /// Which.
        address: IpAddr,
    },
}

/// What another controller has in Azure for a Service.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum OthersHave {
    /// A public IP and a load balancer, registered with our gateway.
    Everything,
    /// A public IP and a load balancer.
    Unregistered,
    /// A public IP.
    PublicIp,
    /// A registration whose load balancer and public IP were deleted.
    Registration,
}

/// What a Service has in Azure, and what can be tagged.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Tagged {
    /// Its public IP.
    PublicIp,
    /// Its load balancer.
    LoadBalancer,
}

/// A change of tags.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum TagChange {
    /// Our tags are removed.
    LoseOurs,
    /// Somebody adds a tag.
    GainTheirs,
}

/// A wish that we refuse, or cannot grant in full.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Oddity {
    /// `sessionAffinity: ClientIP`.
    Affinity,
    /// `loadBalancerIP`.
    FixedIp,
    /// The internal load balancer annotation.
    Internal,
    /// Source ranges, by field or annotation.
    SourceRanges,
    /// A second IP family.
    DualStack,
    /// A second IP family, if possible; served with the first.
    PreferDualStack,
    /// The annotation that names an existing public IP.
    PublicIpName,
    /// The annotation that asks for a private link service.
    PrivateLink,
}

impl Oddity {
    /// All of them.
    pub const ALL: [Oddity; 8] = [
        Oddity::Affinity,
        Oddity::FixedIp,
        Oddity::Internal,
        Oddity::SourceRanges,
        Oddity::DualStack,
        Oddity::PreferDualStack,
        Oddity::PublicIpName,
        Oddity::PrivateLink,
    ];

    /// The annotation by which it is asked for, if it is by one.
    pub const fn annotation(self) -> Option<&'static str> {
        match self {
            Oddity::Internal => Some(annotations::INTERNAL),
            Oddity::PublicIpName => Some(annotations::PUBLIC_IP_NAME),
            Oddity::PrivateLink => Some(annotations::PRIVATE_LINK),
            _ => None,
        }
    }
}

/// How a slice says whose it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum OwnerBy {
    /// By owner reference and label, as the EndpointSlice controller writes them.
    Uid,
    /// By label alone.
    Label,
    /// Not at all.
    Nobody,
}

/// A slice to be written; the UID of its owner is looked up when it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SliceDraft {
    /// The Service; it may be one of another namespace.
    pub service: ObjectName,
    /// How it says so.
    pub owner_by: OwnerBy,
    /// What its addresses are.
    pub address_type: AddressType,
    /// The ports.
    pub ports: Vec<SlicePort>,
    /// The endpoints.
    pub endpoints: Vec<EndpointRecord>,
}

/// Plays an action; says whether anything changed.
pub fn apply(cluster: &mut Cluster, action: &UserAction) -> bool {
    match action {
        UserAction::CreateService { service, record }
        | UserAction::CreateServedByOthers { service, record, .. } => {
            cluster.create_service(service, record.clone())
        }
        UserAction::SetType { service, balanced } => cluster.set_type(service, *balanced),
        UserAction::SetPorts { service, ports } => {
            cluster.edit_spec(service, |spec| spec.ports.clone_from(ports))
        }
        UserAction::SetIdleTimeout { service, minutes } => {
            cluster.edit_spec(service, |spec| spec.idle_timeout.clone_from(minutes))
        }
        UserAction::SetOddity { service, oddity, on } => cluster.edit_spec(service, |spec| match oddity {
            Oddity::Affinity => spec.client_ip_affinity = *on,
            Oddity::FixedIp => spec.fixed_ip = *on,
            Oddity::SourceRanges => spec.source_ranges = *on,
            Oddity::Internal | Oddity::PublicIpName | Oddity::PrivateLink => {
                let key = oddity.annotation().unwrap_or_default();
                spec.rejected_annotations.retain(|other| **other != *key);
                if *on {
                    spec.rejected_annotations.push(key.into());
                    spec.rejected_annotations.sort_unstable();
                }
            }
            Oddity::DualStack | Oddity::PreferDualStack => {
                // The primary family cannot change; only the second one comes and goes.
                let first = spec.families.first().copied().unwrap_or(Family::V4);
                let second = if first == Family::V4 { Family::V6 } else { Family::V4 };
                spec.families = if *on { vec![first, second] } else { vec![first] };
                spec.family_policy = match oddity {
                    _ if !*on => FamilyPolicy::SingleStack,
                    Oddity::PreferDualStack => FamilyPolicy::PreferDualStack,
                    _ => FamilyPolicy::RequireDualStack,
                };
            }
        }),
        UserAction::TouchService { service } => cluster.touch_service(service),
        UserAction::HoldService { service, finalizer } => cluster.hold_service(service, finalizer),
        UserAction::ReleaseService { service, finalizer } => cluster.release_service(service, finalizer),
        UserAction::DeleteService { service } => cluster.delete_service(service),
        UserAction::StripFinalizer { service } => cluster.strip_finalizer(service),
        UserAction::WipeStatus { service } => cluster.wipe_status(service),
        UserAction::AddIngress { service, ip } => cluster.add_ingress(service, *ip),
        UserAction::DropNamespace { namespace } => cluster.drop_namespace(namespace),
        UserAction::PutSlice { slice, draft } => {
            let uid = cluster.service(&draft.service).map(|stored| stored.meta.uid);
            let record = SliceRecord {
                address_type: draft.address_type,
                owner: uid.filter(|_| draft.owner_by == OwnerBy::Uid),
                service_label: (draft.owner_by != OwnerBy::Nobody).then(|| Arc::clone(&draft.service.name)),
                ports: draft.ports.clone(),
                endpoints: draft.endpoints.clone(),
            };
            cluster.put_slice(slice, record)
        }
        UserAction::MoveEndpoint { from, to, address, add_first } => {
            cluster.move_endpoint(from, to, address, *add_first)
        }
        UserAction::SetHealth { slice, address, health } => cluster.set_health(slice, address, *health),
        UserAction::DeleteSlice { slice } => cluster.delete_slice(slice),
        UserAction::CollectGarbage => cluster.collect_garbage(),
        UserAction::PutNode { node, ips } => cluster.put_node(node, ips),
        UserAction::DeleteNode { node } => cluster.delete_node(node),
        UserAction::CreatePod { pod, record } => cluster.create_pod(pod, record.clone()),
        UserAction::PlacePod { pod, node, ips, host_ips } => cluster.place_pod(pod, node, ips, host_ips),
        UserAction::ClearPodIps { pod } => cluster.clear_pod_ips(pod),
        UserAction::SetPhase { pod, phase } => cluster.set_phase(pod, *phase),
        UserAction::LabelPod { pod, egress } => cluster.label_pod(pod, egress.clone()),
        UserAction::TerminatePod { pod } => cluster.terminate_pod(pod),
        UserAction::DeletePod { pod } => cluster.delete_pod(pod),
        UserAction::CompactHistory => {
            cluster.compact(0);
            true
        }
        // They happen in Azure, and the world plays them there.
        UserAction::TagPublicIp { .. }
        | UserAction::DeleteTaggedIp { .. }
        | UserAction::StopLeader
        | UserAction::AllowDeletion
        | UserAction::Trouble(_)
        | UserAction::OthersBind { .. }
        | UserAction::Retag { .. } => true,
    }
}

impl fmt::Display for UserAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UserAction::CreateService { service, record } => write!(f, "create service {service} {record}"),
            UserAction::CreateServedByOthers { service, record, parts } => {
                let has = match parts {
                    OthersHave::Everything => "served by others",
                    OthersHave::Unregistered => "with an unregistered load balancer of others",
                    OthersHave::PublicIp => "with a public IP of others",
                    OthersHave::Registration => "with a registration of others that leads nowhere",
                };
                write!(f, "create service {service} {record}, {has}")
            }
            UserAction::SetType { service, balanced: true } => write!(f, "make {service} LoadBalancer"),
            UserAction::SetType { service, balanced: false } => write!(f, "make {service} ClusterIP"),
            UserAction::SetPorts { service, ports } => {
                write!(f, "set ports of {service} to {}", Ports(ports))
            }
            UserAction::SetIdleTimeout { service, minutes: Some(minutes) } => {
                write!(f, "set idle timeout of {service} to {minutes:?}")
            }
            UserAction::SetIdleTimeout { service, minutes: None } => {
                write!(f, "remove idle timeout of {service}")
            }
            UserAction::SetOddity { service, oddity, on } => {
                write!(f, "{} {oddity} of {service}", if *on { "ask for" } else { "take back" })
            }
            UserAction::TouchService { service } => write!(f, "touch a label of {service}"),
            UserAction::HoldService { service, finalizer } => write!(f, "hold {service} with {finalizer}"),
            UserAction::ReleaseService { service, finalizer } => {
                write!(f, "release {service} from {finalizer}")
            }
            UserAction::DeleteService { service } => write!(f, "delete service {service}"),
            UserAction::StripFinalizer { service } => write!(f, "strip our finalizer off {service}"),
            UserAction::WipeStatus { service } => write!(f, "wipe the status of {service}"),
            UserAction::AddIngress { service, ip } => write!(f, "add foreign ingress {ip} to {service}"),
            UserAction::DropNamespace { namespace } => write!(f, "drop namespace {namespace}"),
            UserAction::PutSlice { slice, draft } => write!(f, "put slice {slice} {draft}"),
            UserAction::MoveEndpoint { from, to, address, add_first } => {
                let how = if *add_first { "adding first" } else { "removing first" };
                write!(f, "move endpoint {address} from {from} to {to}, {how}")
            }
            UserAction::SetHealth { slice, address, health } => {
                write!(f, "endpoint {address} of {slice} becomes {health}")
            }
            UserAction::DeleteSlice { slice } => write!(f, "delete slice {slice}"),
            UserAction::CollectGarbage => f.write_str("collect garbage"),
            UserAction::PutNode { node, ips } => {
                write!(f, "put node {node} at ")?;
                joined(f, ",", ips)
            }
            UserAction::DeleteNode { node } => write!(f, "delete node {node}"),
            UserAction::CreatePod { pod, record } => write!(f, "create pod {pod} {record}"),
            UserAction::PlacePod { pod, node, ips, host_ips } => {
                write!(f, "place pod {pod} on {node} at ")?;
                joined(f, ",", host_ips)?;
                f.write_str(" with ")?;
                joined(f, ",", ips)
            }
            UserAction::ClearPodIps { pod } => write!(f, "pod {pod} loses its addresses"),
            UserAction::SetPhase { pod, phase } => write!(f, "pod {pod} becomes {phase:?}"),
            UserAction::LabelPod { pod, egress: Some(label) } => write!(f, "label pod {pod} {label:?}"),
            UserAction::LabelPod { pod, egress: None } => write!(f, "unlabel pod {pod}"),
            UserAction::TerminatePod { pod } => write!(f, "terminate pod {pod}"),
            UserAction::DeletePod { pod } => write!(f, "delete pod {pod}"),
            UserAction::CompactHistory => f.write_str("compact history"),
            UserAction::StopLeader => f.write_str("stop the leader"),
            UserAction::AllowDeletion => f.write_str("allow the held deletions"),
            UserAction::TagPublicIp { name, services } => write!(f, "tag public IP {name} for {services}"),
            UserAction::Retag { service, part, change } => {
                let what = if *change == TagChange::LoseOurs { "our tags off" } else { "another tag on" };
                let part = if *part == Tagged::PublicIp { "public IP" } else { "load balancer" };
                write!(f, "{what} the {part} of {service}")
            }
            UserAction::DeleteTaggedIp { name } => write!(f, "delete public IP {name}"),
            UserAction::Trouble(trouble) => trouble.fmt(f),
            UserAction::OthersBind { service, location, address } => {
                write!(f, "others bind {address} at {location} to {service}")
            }
        }
    }
}

impl fmt::Display for Oddity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Oddity::Affinity => "session affinity",
            Oddity::FixedIp => "a fixed IP",
            Oddity::Internal => "an internal load balancer",
            Oddity::SourceRanges => "source ranges",
            Oddity::DualStack => "two IP families",
            Oddity::PreferDualStack => "two IP families if possible",
            Oddity::PublicIpName => "a public IP by its name",
            Oddity::PrivateLink => "a private link service",
        })
    }
}

impl fmt::Display for SliceDraft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = match self.owner_by {
            OwnerBy::Uid => "uid",
            OwnerBy::Label => "label",
            OwnerBy::Nobody => "nobody",
        };
        write!(f, "of {} by {by} {}", self.service, self.address_type)?;
        for port in &self.ports {
            match port.port {
                Some(number) => write!(f, " {}:{}={number}", port.name, port.protocol.word())?,
                None => write!(f, " {}:{}=all", port.name, port.protocol.word())?,
            }
        }
        f.write_str(" [")?;
        joined(f, " ", &self.endpoints)?;
        f.write_str("]")
    }
}
