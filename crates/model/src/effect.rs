//! Every action the engine can ask for, and how it can end.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::IpAddr;

use crate::azure::{
    Gateway, LoadBalancer, Location, LocationUpdate, NatGateway, PublicIp, Registration, Subnet,
};
use crate::failure::Failure;
use crate::key::{EffectId, ServiceKey, Uid};
use crate::kube::{Condition, Kind, ObjectRef};
use crate::plan::{Plan, PlanReport};
use crate::reason::Reason;
use crate::time::Time;

/// One action, with a number for its result and the reason it was asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Effect {
    /// The number under which its end is reported.
    pub id: EffectId,
    /// What to do.
    pub action: Action,
    /// Why: a short sentence for traces, logs and explanations.
    pub cause: Cause,
}

/// Why an effect was asked for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Cause {
    /// A Service was applied or changed.
    ServiceApplied,
    /// A Service is gone, going, or not ours any more.
    ServiceUnwanted,
    /// Pods of an egress came.
    PodsCame,
    /// The last pod of an egress has gone.
    LastPodGone,
    /// It was asked for by name.
    Requested,
    /// Its service became ready, so its addresses may be sent.
    BecameReady,
    /// Addresses changed.
    AddressesChanged,
    /// The last address in Azure that referred to it has left.
    LastAddressLeft,
    /// A wait or park has ended.
    RetryDue,
    /// An outcome was unknown.
    OutcomeUnknown,
    /// The process became leader.
    StartUp,
    /// It is time for a look.
    DriftSweep,
    /// A listing showed something other than what we wanted.
    DriftFound,
    /// A resource of ours that nobody wants was seen twice.
    Orphaned,
    /// An operation has ended.
    OperationEnded,
    /// A slot has become free.
    SlotGranted,
    /// Something should be known by people.
    Notice,
}

impl Cause {
    /// The short sentence.
    pub const fn words(&self) -> &'static str {
        match self {
            Cause::ServiceApplied => "service applied",
            Cause::ServiceUnwanted => "service no longer wanted",
            Cause::PodsCame => "pods came",
            Cause::LastPodGone => "last pod gone",
            Cause::Requested => "asked for",
            Cause::BecameReady => "service became ready",
            Cause::AddressesChanged => "addresses changed",
            Cause::LastAddressLeft => "last address left",
            Cause::RetryDue => "retry due",
            Cause::OutcomeUnknown => "outcome unknown",
            Cause::StartUp => "start-up",
            Cause::DriftSweep => "drift sweep",
            Cause::DriftFound => "drift found",
            Cause::Orphaned => "orphaned",
            Cause::OperationEnded => "operation ended",
            Cause::SlotGranted => "slot granted",
            Cause::Notice => "worth knowing",
        }
    }
}

/// What to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// Run a plan. Ends with [`Outcome::Plan`].
    RunPlan(Plan),
    /// Let a plan that asked for a slot go on. Has no end of its own.
    ResumePlan(EffectId),
    /// Send address changes; never two at once. Ends with [`Outcome::Locations`].
    SyncLocations(Vec<LocationUpdate>),
    /// Read all of one kind from Azure, every page. Ends with [`Outcome::Listed`].
    List(Listable),
    /// Put our finalizer on a Service. Ends with [`Outcome::Kube`].
    AddFinalizer(ObjectRef),
    /// Take our finalizer off a Service. Ends with [`Outcome::Kube`].
    RemoveFinalizer(ObjectRef),
    /// Write a Service's status. Ends with [`Outcome::Kube`].
    WriteStatus {
        /// Whose.
        object: ObjectRef,
        /// Our IP, to be among the ingress IPs; `None`: no IP of ours.
        ingress: Option<IpAddr>,
        /// An IP that was ours and must not be among them.
        retract: Option<IpAddr>,
        /// Our conditions.
        conditions: Vec<Condition>,
    },
    /// Ask the API server, live, whether a Service exists. Ends with [`Outcome::Existence`].
    ConfirmGone(ObjectRef),
    /// List one kind of Kubernetes again: what came was too old. Has no end of its own.
    Relist(Kind),
    /// Tell people. Has no end.
    Notify(Notice),
}

/// What can be listed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Listable {
    /// The gateway and its subnet: one GET each.
    Foundation,
    /// The services registered with the gateway.
    Registrations,
    /// The address locations of the gateway.
    Locations,
    /// Load balancers.
    LoadBalancers,
    /// NAT gateways.
    NatGateways,
    /// Public IPs.
    PublicIps,
}

impl Listable {
    /// Everything, in the order in which it is listed.
    pub const ALL: [Listable; 6] = [
        Listable::Foundation,
        Listable::Registrations,
        Listable::Locations,
        Listable::LoadBalancers,
        Listable::NatGateways,
        Listable::PublicIps,
    ];

    /// A fixed word.
    pub const fn word(self) -> &'static str {
        match self {
            Listable::Foundation => "gateway",
            Listable::Registrations => "registrations",
            Listable::Locations => "locations",
            Listable::LoadBalancers => "load-balancers",
            Listable::NatGateways => "nat-gateways",
            Listable::PublicIps => "public-ips",
        }
    }

    /// What a sentence calls it.
    pub const fn phrase(self) -> &'static str {
        match self {
            Listable::Foundation => "the gateway",
            Listable::Registrations => "the registrations of the gateway",
            Listable::Locations => "the addresses of the gateway",
            Listable::LoadBalancers => "the load balancers",
            Listable::NatGateways => "the NAT gateways",
            Listable::PublicIps => "the public IPs",
        }
    }
}

/// Something that people should know; becomes a Kubernetes event and a log line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Notice {
    /// About what.
    pub about: About,
    /// Something is wrong.
    pub warning: bool,
    /// The fixed word.
    pub reason: Reason,
    /// A sentence with the remedy.
    pub text: String,
}

/// What a notice is about.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum About {
    /// A Service object.
    Service(ObjectRef),
    /// A pod.
    Pod(ObjectRef),
    /// A service of the gateway without an object of its own.
    Key(ServiceKey),
    /// The whole cluster.
    Cluster,
}

/// How an effect ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// A plan came to its end.
    Plan(PlanReport),
    /// A location sync came to its end.
    Locations {
        /// `None` when everything that was sent is in Azure now.
        failure: Option<Failure>,
        /// When the lane may send again.
        next_at: Time,
    },
    /// A listing came to its end.
    Listed {
        /// When it began: what was written later is not in it.
        began: Time,
        /// Everything, or why not.
        result: Result<Listing, Failure>,
    },
    /// A write to Kubernetes came to its end.
    Kube(KubeOutcome),
    /// What the API server says about an object.
    Existence(Existence),
}

/// A complete listing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Listing {
    /// The gateway and subnet, as far as they are there.
    Foundation {
        /// The gateway.
        gateway: Option<Gateway>,
        /// The subnet.
        subnet: Option<Subnet>,
    },
    /// All registered services.
    Registrations(Vec<Registration>),
    /// All address locations.
    Locations(Vec<Location>),
    /// All load balancers of the resource group.
    LoadBalancers(Vec<LoadBalancer>),
    /// All NAT gateways of the resource group.
    NatGateways(Vec<NatGateway>),
    /// All public IPs of the resource group.
    PublicIps(Vec<PublicIp>),
}

/// How a write to Kubernetes ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KubeOutcome {
    /// It is as asked.
    Done {
        /// The object's resourceVersion after the write: what the watch brings of it and is older is news no more.
        version: u64,
    },
    /// The object changed under us; its new state comes by the watch.
    Conflict,
    /// There is no object of that name and UID.
    Gone,
    /// A webhook or a permission stands against it.
    Refused(Arc<str>),
    /// The API server did not answer, or with an error; it may have been written.
    Unavailable,
}

/// What the API server says about an object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Existence {
    /// It is there, this incarnation.
    Exists,
    /// It is not there, or another incarnation is.
    Gone,
    /// The API server did not say.
    Unclear,
}

impl About {
    /// The UID of the object that it is about, where there is one.
    pub const fn uid(&self) -> Option<Uid> {
        match self {
            About::Service(object) | About::Pod(object) => Some(object.uid),
            About::Key(_) | About::Cluster => None,
        }
    }
}
