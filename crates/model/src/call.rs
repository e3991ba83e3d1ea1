//! One request to Azure and its answer, before JSON and after it.
//!
//! Answers are raw: a status, a payload, headers. What they mean for the caller is decided
//! by [`crate::failure`] and by the updaters, so that a `200` with an error in its body, or a
//! poll's `200` that says `Failed`, is not mistaken for success before anybody has looked.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use crate::azure::{
    ArmId, ETag, ForeignLoadBalancerBody, Gateway, GatewayBody, LoadBalancer, LoadBalancerBody, Location,
    LocationUpdate, Meta, NatGateway, NatGatewayBody, PublicIp, PublicIpBody, Registration, ServiceRequest,
    Subnet, SubnetBody, Tags,
};

/// One call to the resource manager.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// What to do.
    pub method: Method,
    /// To what: a resource, a collection (for lists), or an operation (for polls).
    pub target: ArmId,
    /// With what.
    pub body: Body,
    /// Only if the resource is still at this version.
    pub if_match: Option<ETag>,
    /// Which page of a list; `None` is the first.
    pub page: Option<PageToken>,
}

impl Request {
    /// A request without a body.
    pub fn bare(method: Method, target: ArmId) -> Request {
        Request { method, target, body: Body::None, if_match: None, page: None }
    }

    /// A request with a body.
    pub fn with(method: Method, target: ArmId, body: Body) -> Request {
        Request { method, target, body, if_match: None, page: None }
    }
}

/// What a request does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Method {
    /// Read one resource.
    Get,
    /// Read one page of a collection.
    List,
    /// Write a whole resource.
    Put,
    /// Write a resource's tags and nothing else.
    PatchTags,
    /// Delete a resource.
    Delete,
    /// `POST …/updateServices` on a gateway.
    UpdateServices,
    /// `POST …/updateAddressLocations` on a gateway.
    UpdateLocations,
    /// Ask how an operation stands.
    Poll,
}

impl Method {
    /// Which token bucket pays for it.
    pub const fn bucket(self) -> Bucket {
        match self {
            Method::Get | Method::List | Method::Poll => Bucket::Reads,
            Method::Put | Method::PatchTags | Method::UpdateServices | Method::UpdateLocations => {
                Bucket::Writes
            }
            Method::Delete => Bucket::Deletes,
        }
    }
}

/// Azure counts calls in three buckets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Bucket {
    /// GET.
    Reads,
    /// PUT, POST, PATCH.
    Writes,
    /// DELETE.
    Deletes,
}

/// What a request carries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Body {
    /// Nothing.
    None,
    /// A public IP.
    PublicIp(PublicIpBody),
    /// A load balancer.
    LoadBalancer(LoadBalancerBody),
    /// A load balancer as others may write it; we never do.
    ForeignLoadBalancer(ForeignLoadBalancerBody),
    /// A NAT gateway.
    NatGateway(NatGatewayBody),
    /// A new service gateway.
    Gateway(GatewayBody),
    /// A service gateway as it was read, with everything that we do not know.
    GatewayAsRead(Gateway),
    /// A subnet.
    Subnet(SubnetBody),
    /// A virtual network or resource group, of which we need nothing but that it is there.
    Container,
    /// Tags.
    Tags(Tags),
    /// Services to write or delete; always a partial update.
    Services(Vec<ServiceRequest>),
    /// Locations to write; always a partial update of the gateway.
    Locations(Vec<LocationUpdate>),
}

impl Body {
    /// The tags that a resource of a service gets by it.
    pub const fn tags_mut(&mut self) -> Option<&mut Tags> {
        match self {
            Body::PublicIp(PublicIpBody { tags, .. })
            | Body::LoadBalancer(LoadBalancerBody { tags, .. })
            | Body::NatGateway(NatGatewayBody { tags, .. }) => Some(tags),
            _ => None,
        }
    }
}

/// Where a list goes on.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PageToken(pub Arc<str>);

/// What came back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The body.
    pub payload: Payload,
    /// The operation to poll, from `Azure-AsyncOperation` or `Location`; may be there on a finished 200 too.
    pub operation: Option<ArmId>,
    /// `Retry-After`.
    pub retry_after: Option<Duration>,
    /// `x-ms-ratelimit-remaining-…` of the bucket that paid for this call.
    pub remaining: Option<u32>,
}

impl Answer {
    /// An answer with nothing but status and body.
    pub fn new(status: u16, payload: Payload) -> Answer {
        Answer { status, payload, operation: None, retry_after: None, remaining: None }
    }
}

/// An answer, or that there is none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reply {
    /// Azure answered.
    Answered(Answer),
    /// The request never left, or is known not to have been carried out: no connection, no
    /// token. Says why, in words that a person can act on.
    NotSent(Arc<str>),
    /// The request left and nothing came back that can be understood: it may or may not have
    /// been carried out. Says why, likewise.
    Lost(Arc<str>),
}

impl Reply {
    /// The request could not be sent.
    pub fn not_sent(why: &str) -> Reply {
        Reply::NotSent(why.into())
    }

    /// Nobody knows whether the request was carried out.
    pub fn lost(why: &str) -> Reply {
        Reply::Lost(why.into())
    }
}

/// The body of an answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Payload {
    /// None.
    None,
    /// An ARM error, with whatever status.
    Error(ArmError),
    /// How an operation stands; the answer to a poll.
    Operation(OperationState),
    /// A public IP.
    PublicIp(PublicIp),
    /// A load balancer.
    LoadBalancer(LoadBalancer),
    /// A NAT gateway.
    NatGateway(NatGateway),
    /// A service gateway.
    Gateway(Gateway),
    /// A subnet.
    Subnet(Subnet),
    /// A virtual network or resource group.
    Container(ArmId),
    /// A page of public IPs.
    PublicIps(Page<PublicIp>),
    /// A page of load balancers.
    LoadBalancers(Page<LoadBalancer>),
    /// A page of NAT gateways.
    NatGateways(Page<NatGateway>),
    /// A page of service gateways.
    Gateways(Page<Gateway>),
    /// A page of virtual networks, of which we need nothing but that they are there.
    Networks(Page<ArmId>),
    /// A page of subnets.
    Subnets(Page<Subnet>),
    /// A page of registered services.
    Registrations(Page<Registration>),
    /// A page of address locations.
    Locations(Page<Location>),
}

impl Payload {
    /// Id, tags, ETag and state of the one resource in it.
    pub const fn meta(&self) -> Option<&Meta> {
        match self {
            Payload::PublicIp(PublicIp { meta, .. })
            | Payload::LoadBalancer(LoadBalancer { meta, .. })
            | Payload::NatGateway(NatGateway { meta, .. })
            | Payload::Gateway(Gateway { meta, .. }) => Some(meta),
            _ => None,
        }
    }
}

/// One page of a list. It may be short or even empty and still have a successor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Page<T> {
    /// What is on it.
    pub items: Vec<T>,
    /// Where it goes on.
    pub next: Option<PageToken>,
}

/// `{"error": {"code", "message"}}`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ArmError {
    /// The code, which decides before the status does.
    pub code: Arc<str>,
    /// The text for people; never carries secrets of ours.
    pub message: Arc<str>,
}

/// How a long-running operation stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OperationState {
    /// `InProgress`, or a word that we do not know.
    Running,
    /// `Succeeded`.
    Succeeded,
    /// `Failed`.
    Failed(ArmError),
    /// `Canceled`.
    Canceled(ArmError),
}
