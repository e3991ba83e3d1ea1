//! What the loop asks of Kubernetes.
//!
//! One method per kind of action that the engine can ask for. Each is one call: whether to repeat
//! it is the engine's decision, and it never has two writes of one object under way.

use std::net::IpAddr;
use std::sync::Arc;

use sluice_model::effect::{Existence, KubeOutcome, Notice};
use sluice_model::kube::{Condition, Kind, ObjectRef};

/// Writes to Kubernetes and asks it.
pub trait Kube: Send + Sync + 'static {
    /// Puts our finalizer on a Service.
    fn add_finalizer(&self, object: ObjectRef) -> impl Future<Output = KubeOutcome> + Send;

    /// Takes our finalizer off a Service.
    fn remove_finalizer(&self, object: ObjectRef) -> impl Future<Output = KubeOutcome> + Send;

    /// Writes a Service's status.
    fn write_status(&self, write: StatusWrite) -> impl Future<Output = KubeOutcome> + Send;

    /// Asks the API server, live, whether a Service exists.
    fn look_for(&self, object: ObjectRef) -> impl Future<Output = Existence> + Send;

    /// Tells people.
    fn notify(&self, notice: Notice) -> impl Future<Output = ()> + Send;

    /// Has one kind listed again; the list comes through the inbox.
    fn relist(&self, kind: Kind);

    /// How many notices stand only in the log, because there were too many.
    fn notices_held_back(&self) -> u64 {
        0
    }
}

/// What a Service's status should say.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StatusWrite {
    /// Whose.
    pub object: ObjectRef,
    /// Our IP, to be among the ingress IPs; `None`: no IP of ours.
    pub ingress: Option<IpAddr>,
    /// An IP that was ours and must not be among them.
    pub retract: Option<IpAddr>,
    /// Our conditions.
    pub conditions: Vec<Condition>,
}

impl<K: Kube> Kube for Arc<K> {
    fn add_finalizer(&self, object: ObjectRef) -> impl Future<Output = KubeOutcome> + Send {
        K::add_finalizer(self, object)
    }

    fn remove_finalizer(&self, object: ObjectRef) -> impl Future<Output = KubeOutcome> + Send {
        K::remove_finalizer(self, object)
    }

    fn write_status(&self, write: StatusWrite) -> impl Future<Output = KubeOutcome> + Send {
        K::write_status(self, write)
    }

    fn look_for(&self, object: ObjectRef) -> impl Future<Output = Existence> + Send {
        K::look_for(self, object)
    }

    fn notify(&self, notice: Notice) -> impl Future<Output = ()> + Send {
        K::notify(self, notice)
    }

    fn relist(&self, kind: Kind) {
        K::relist(self, kind);
    }

    fn notices_held_back(&self) -> u64 {
        K::notices_held_back(self)
    }
}
