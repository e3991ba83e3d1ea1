//! What goes wrong in a story, at a moment and with a request that the story names.
//!
//! The faults of a seed strike by dice. A story that keeps a failure which dice once found names its faults one by
//! one instead, so that it means the same after any change of the dice.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use sluice_cloud::Fault;
use sluice_model::ObjectName;
use sluice_model::call::{Method, Request};
use sluice_model::kube::Kind;

use crate::names::FaultKind;

/// One thing that goes wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Trouble {
    /// A fault that begins at a moment, as in a seed.
    Begins(FaultKind),
    /// A fault that strikes by dice strikes at the next chances for sure, so many times.
    Insists(FaultKind, u32),
    /// From now on the API server has these faults, as often as on a stormy day.
    Storm(Vec<FaultKind>),
    /// The next requests like this one meet a fault.
    Strikes {
        /// How it is counted.
        kind: FaultKind,
        /// Which requests.
        requests: Requests,
        /// How many of them.
        times: u32,
        /// What becomes of them.
        fault: Fault,
        /// How long the answer takes; `None` for as long as usual.
        answer_takes: Option<Duration>,
    },
    /// Somebody deletes a resource of a service.
    Deletes {
        /// What.
        what: Part,
        /// Whose: a Service, or an egress without a slash.
        of: Arc<str>,
    },
    /// Somebody binds an address to a Service.
    Binds {
        /// Which address.
        address: IpAddr,
        /// On which node.
        location: IpAddr,
        /// To what: a Service, or an egress without a slash.
        to: Arc<str>,
    },
    /// Somebody takes the gateway off the subnet.
    DetachesSubnet,
    /// The leader does nothing at all for so long.
    Freezes(Duration),
    /// The next process that starts gets its first list of this kind so much later.
    ListsLater {
        /// Of what.
        kind: Kind,
        /// How much.
        by: Duration,
    },
}

/// Requests of one method whose target or body names something.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Requests {
    /// The method.
    pub method: Method,
    /// A part of the target, such as a collection; empty for any.
    pub target: &'static str,
}

impl Requests {
    /// Whether a request is one of them.
    pub fn include(&self, request: &Request) -> bool {
        request.method == self.method
            && (self.target.is_empty()
                || request.target.segment(self.target).is_some()
                || request.target.name().eq_ignore_ascii_case(self.target))
    }
}

/// A resource of a service.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// The public IP.
    PublicIp,
    /// The load balancer or NAT gateway.
    Carrier,
    /// The registration with the gateway.
    Registration,
}

/// The Service with this name, or `None` for the name of an egress.
pub fn service_named(name: &str) -> Option<ObjectName> {
    name.split_once('/').map(|(namespace, name)| ObjectName::new(namespace, name))
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Begins(kind) => write!(f, "{kind}: {}", kind.words()),
            Trouble::Insists(kind, times) => {
                write!(f, "{kind} strikes the next {times} times: {}", kind.words())
            }
            Trouble::Storm(kinds) => {
                let words: Vec<&str> = kinds.iter().map(|kind| kind.words()).collect();
                write!(f, "from now on: {}", words.join("; "))
            }
            Trouble::Strikes { kind, requests, times, fault, .. } => {
                write!(f, "{kind} for the next {times} {:?} {}: {fault:?}", requests.method, requests.target)
            }
            Trouble::Deletes { what, of } => write!(f, "somebody deletes the {what:?} of {of}"),
            Trouble::Binds { address, location, to } => {
                write!(f, "somebody binds {address} at {location} to {to}")
            }
            Trouble::DetachesSubnet => f.write_str("somebody detaches the subnet"),
            Trouble::Freezes(span) => write!(f, "the leader freezes for {} s", span.as_secs()),
            Trouble::ListsLater { kind, by } => {
                write!(f, "the next process lists {kind:?} objects {} s later", by.as_secs())
            }
        }
    }
}
