//! What one operation on a service consists of, as data.
//!
//! The engine puts into a plan only what is still to do, and every step can be repeated.
//! The service updater runs the steps in order, stops at the first that fails, and
//! reports once how far it got.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use crate::azure::{
    ArmId, GatewayBody, LoadBalancer, LoadBalancerBody, NatGateway, NatGatewayBody, PublicIp, PublicIpBody,
    Registration, Tags,
};
use crate::failure::Failure;
use crate::key::ServiceKey;

/// An ordered list of steps for one subject.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// For whom.
    pub subject: Subject,
    /// To what end.
    pub intent: Intent,
    /// The steps, first to last.
    pub steps: Vec<Step>,
}

/// Whom a plan is for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Subject {
    /// One service.
    Service(ServiceKey),
    /// What all services stand on: the gateway and its subnet.
    Foundation,
}

/// What a plan is for; decides nothing, but is shown to people.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Intent {
    /// Make what is missing.
    Provision,
    /// Change a live service.
    Update,
    /// Take everything down, in order.
    Deprovision,
    /// Look what is there, because nobody knows.
    Inspect,
    /// Put our tags on what was found, when nothing else is to do.
    Adopt,
}

/// One step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// Write a public IP; gives its address.
    PutPublicIp {
        /// Which.
        id: ArmId,
        /// How it should be; its tags are ours alone.
        body: PublicIpBody,
        /// It exists by the last look, so it is read right before it is written: the tags of others are
        /// kept, and it is written only if it is managed and still that version.
        exists: bool,
    },
    /// Write a load balancer.
    PutLoadBalancer {
        /// Which.
        id: ArmId,
        /// How it should be; its tags are ours alone.
        body: LoadBalancerBody,
        /// It exists by the last look, so it is read right before it is written: the tags of others are
        /// kept, and it is written only if it is managed and still that version.
        exists: bool,
    },
    /// Write a NAT gateway; with `gateway: None` it takes the gateway off.
    PutNatGateway {
        /// Which.
        id: ArmId,
        /// How it should be; its tags are ours alone.
        body: NatGatewayBody,
        /// It exists by the last look, so it is read right before it is written: the tags of others are
        /// kept, and it is written only if it is managed and still that version.
        exists: bool,
    },
    /// Register a service with the gateway (shared commit).
    Register(Registration),
    /// Take the pool or NAT gateway off a registration (shared commit); the first step of a teardown.
    Clear(Registration),
    /// Unregister a service (shared commit).
    Unregister(Arc<str>),
    /// Delete a load balancer. Whatever is deleted is read right before that, and deleted only if it is managed
    /// and still that version.
    DeleteLoadBalancer(ArmId),
    /// Delete a NAT gateway.
    DeleteNatGateway(ArmId),
    /// Delete a public IP.
    DeletePublicIp(ArmId),
    /// Take our tags off a public IP that something else uses by now.
    ReleasePublicIp(ArmId),
    /// Put our tags on a load balancer or public IP that nobody has claimed, leaving the rest of it alone.
    Adopt {
        /// Which.
        id: ArmId,
        /// The tags that it gets beside those that it carries.
        tags: Tags,
    },
    /// Look at a public IP.
    ReadPublicIp(ArmId),
    /// Look at a load balancer.
    ReadLoadBalancer(ArmId),
    /// Look at a NAT gateway.
    ReadNatGateway(ArmId),
    /// Look at a registration (one list serves all that ask).
    ReadRegistration(Arc<str>),
    /// Make the gateway.
    PutGateway {
        /// Which.
        id: ArmId,
        /// How it should be.
        body: GatewayBody,
    },
    /// Tag a gateway that is there and that no cluster has claimed, leaving the rest of it alone.
    ClaimGateway {
        /// Which.
        id: ArmId,
        /// The tags that it gets beside those that it carries.
        tags: Tags,
    },
    /// Write a gateway whose last write failed once more, exactly as it is.
    RepairGateway(ArmId),
    /// Attach the subnet to the gateway, leaving the rest of it alone.
    AttachSubnet {
        /// Which subnet.
        subnet: ArmId,
        /// To which gateway.
        gateway: ArmId,
    },
}

impl Step {
    /// A fixed word, as it stands in traces, logs and metrics.
    pub const fn word(&self) -> &'static str {
        match self {
            Step::PutPublicIp { .. } => "public-ip",
            Step::PutLoadBalancer { .. } => "load-balancer",
            Step::PutNatGateway { body: NatGatewayBody { gateway: None, .. }, .. } => "detach-nat-gateway",
            Step::PutNatGateway { .. } => "nat-gateway",
            Step::Register(_) => "register",
            Step::Clear(_) => "clear",
            Step::Unregister(_) => "unregister",
            Step::DeleteLoadBalancer(_) => "delete-load-balancer",
            Step::DeleteNatGateway(_) => "delete-nat-gateway",
            Step::DeletePublicIp(_) => "delete-public-ip",
            Step::ReleasePublicIp(_) => "release-public-ip",
            Step::Adopt { .. } => "adopt",
            Step::ReadPublicIp(_) => "read-public-ip",
            Step::ReadLoadBalancer(_) => "read-load-balancer",
            Step::ReadNatGateway(_) => "read-nat-gateway",
            Step::ReadRegistration(_) => "read-registration",
            Step::PutGateway { .. } => "gateway",
            Step::ClaimGateway { .. } => "claim-gateway",
            Step::RepairGateway(_) => "repair-gateway",
            Step::AttachSubnet { .. } => "attach-subnet",
        }
    }

    /// The resource that is read right before the step changes it: what exists, and what is only changed in part.
    pub const fn read_first(&self) -> Option<&ArmId> {
        match self {
            Step::PutPublicIp { id, exists: true, .. }
            | Step::PutLoadBalancer { id, exists: true, .. }
            | Step::PutNatGateway { id, exists: true, .. }
            | Step::DeleteLoadBalancer(id)
            | Step::DeleteNatGateway(id)
            | Step::DeletePublicIp(id)
            | Step::ReleasePublicIp(id)
            | Step::Adopt { id, .. }
            | Step::ClaimGateway { id, .. }
            | Step::RepairGateway(id)
            | Step::AttachSubnet { subnet: id, .. } => Some(id),
            _ => None,
        }
    }

    /// Whether it deletes a resource.
    pub const fn is_delete(&self) -> bool {
        matches!(self, Step::DeleteLoadBalancer(_) | Step::DeleteNatGateway(_) | Step::DeletePublicIp(_))
    }

    /// Whether it only looks.
    pub const fn is_read(&self) -> bool {
        matches!(
            self,
            Step::ReadPublicIp(_)
                | Step::ReadLoadBalancer(_)
                | Step::ReadNatGateway(_)
                | Step::ReadRegistration(_)
        )
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = match self.intent {
            Intent::Provision => "provision",
            Intent::Update => "update",
            Intent::Deprovision => "deprovision",
            Intent::Inspect => "inspect",
            Intent::Adopt => "adopt",
        };
        match &self.subject {
            Subject::Service(key) => write!(f, "{verb} {key}: ")?,
            Subject::Foundation => write!(f, "{verb} gateway: ")?,
        }
        for (at, step) in self.steps.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}{}", step.word())?;
        }
        Ok(())
    }
}

/// How far a plan got.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlanReport {
    /// What each finished step found or made, from the first on; as many as were confirmed.
    pub done: Vec<StepResult>,
    /// Why the next one was not; `None` when all are done.
    pub failure: Option<Failure>,
}

/// What a finished step has to tell.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StepResult {
    /// Azure confirmed it, and that is all there is to say. For a deletion: it is gone.
    Done,
    /// A public IP, as it is now.
    PublicIp(PublicIp),
    /// A load balancer, as it is now.
    LoadBalancer(LoadBalancer),
    /// A NAT gateway, as it is now.
    NatGateway(NatGateway),
    /// A registration, as it is now.
    Registration(Registration),
    /// A read found nothing.
    Absent,
}
