//! Every fact that can reach the engine.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use crate::allow_deletion::AllowedDeletions;
use crate::azure::Registration;
use crate::effect::Outcome;
use crate::key::{EffectId, EgressName, ObjectName, Uid};
use crate::kube::{NodeObject, PodObject, ServiceObject, Slice};
use crate::time::Time;

/// One fact.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A Service is as given.
    ServiceApplied(ServiceObject),
    /// A Service is gone.
    ServiceDeleted {
        /// Which incarnation.
        uid: Uid,
        /// Its name.
        name: ObjectName,
    },
    /// An EndpointSlice is as given.
    SliceApplied(Slice),
    /// An EndpointSlice is gone.
    SliceDeleted(ObjectName),
    /// A Node is as given.
    NodeApplied(NodeObject),
    /// A Node is gone.
    NodeDeleted(Arc<str>),
    /// A pod is as given; without the label when it lost it.
    PodApplied(PodObject),
    /// A pod is gone.
    PodDeleted {
        /// Which incarnation.
        uid: Uid,
    },
    /// A complete list of one kind has arrived; what is not in it is gone.
    Relisted {
        /// The list's resourceVersion; an older one than the newest seen is refused.
        version: u64,
        /// All there is.
        objects: Relist,
    },
    /// An outbound service is wanted for its own sake, pods or not (`add_service`, the default outbound).
    EgressAdded(EgressName),
    /// The opposite.
    EgressReleased(EgressName),
    /// We hold the lease since now: trust nothing, list, then work.
    LeadershipGained,
    /// We do not hold the lease any more: emit nothing.
    LeadershipLost,
    /// The operator allows the deletion of these services although it is held, and of no others.
    DeletionAllowed(AllowedDeletions),
    /// An effect has ended.
    EffectFinished {
        /// Which.
        id: EffectId,
        /// How.
        outcome: Outcome,
    },
    /// A running plan waits for something that needs no worker, and gives its slot back.
    SlotReleased {
        /// Which plan.
        id: EffectId,
        /// What it waits for.
        wait: Wait,
    },
    /// A plan that gave its slot back could go on.
    SlotWanted(EffectId),
    /// A request that needs no slot waits before it is sent: an address update, or the shared commit of a plan.
    Held {
        /// Whose it is.
        id: EffectId,
        /// What it waits for.
        wait: Wait,
    },
    /// All registrations were read, completely, for plans that asked about some of them.
    RegistrationsRead {
        /// When the reading began.
        began: Time,
        /// All of them.
        all: Vec<Registration>,
    },
    /// Azure asked for a pause that is long enough to be reported.
    Throttled {
        /// Of which calls.
        calls: ThrottledCalls,
        /// For how long from now on.
        wait: Duration,
    },
    /// Time has passed; `now` says how much.
    Tick,
}

/// A longer pause is probed with one call per so long: a wrong `Retry-After` must not stop everything for a day.
pub const PAUSE_PROBE_INTERVAL: Duration = Duration::from_secs(15 * 60);

/// Calls that Azure throttles together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ThrottledCalls {
    /// The bucket of reads.
    Reads,
    /// The bucket of writes.
    Writes,
    /// The bucket of deletes.
    Deletes,
    /// The network provider's window, in which writes and deletes count together.
    WritesAndDeletes,
}

impl ThrottledCalls {
    /// As people read it.
    pub const fn words(self) -> &'static str {
        match self {
            ThrottledCalls::Reads => "reads",
            ThrottledCalls::Writes => "writes",
            ThrottledCalls::Deletes => "deletes",
            ThrottledCalls::WritesAndDeletes => "writes and deletes",
        }
    }
}

/// What a plan waits for without needing a worker.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Wait {
    /// The shared `updateServices` call.
    SharedCommit,
    /// The end of a pause that Azure asked for.
    Throttled {
        /// When it ends.
        until: Time,
    },
    /// Its share of the call budget.
    Budget {
        /// When it may send.
        until: Time,
    },
    /// An operation that takes longer than its kind usually does.
    SlowOperation,
}

impl Wait {
    /// When it ends, if that is known.
    pub const fn until(self) -> Option<Time> {
        match self {
            Wait::Throttled { until } | Wait::Budget { until } => Some(until),
            Wait::SharedCommit | Wait::SlowOperation => None,
        }
    }
}

/// All objects of one kind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Relist {
    /// Services.
    Services(Vec<ServiceObject>),
    /// EndpointSlices.
    Slices(Vec<Slice>),
    /// Nodes.
    Nodes(Vec<NodeObject>),
    /// Pods with the egress label.
    Pods(Vec<PodObject>),
}
