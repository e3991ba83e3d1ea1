//! The operations of the design documents, on the handle: each posts one event and comes back.
//!
//! They are for whoever embeds the controller. All are idempotent, none waits for Azure, and any
//! number of threads may call them; what is posted by one caller is taken in the order in which it
//! was posted. The watches of `sluice run` post the same events.

use std::sync::Arc;

use sluice_model::event::Relist;
use sluice_model::kube::{NodeObject, PodObject, ServiceObject, Slice};
use sluice_model::{EgressName, Event, ObjectName, Uid};

use crate::inbox::{Closed, Handle};

impl Handle {
    /// A Service has come.
    pub async fn add_service(&self, service: ServiceObject) -> Result<(), Closed> {
        self.post(Event::ServiceApplied(service)).await
    }

    /// A Service is as given now: its spec, its status, or what it carries has changed.
    pub async fn update_service(&self, service: ServiceObject) -> Result<(), Closed> {
        self.post(Event::ServiceApplied(service)).await
    }

    /// A Service is gone. One that is being deleted and still carries our finalizer is not: it is
    /// updated with `deleting`.
    pub async fn delete_service(&self, uid: Uid, name: ObjectName) -> Result<(), Closed> {
        self.post(Event::ServiceDeleted { uid, name }).await
    }

    /// An outbound service is wanted for its own sake, pods or not.
    pub async fn add_egress(&self, egress: EgressName) -> Result<(), Closed> {
        self.post(Event::EgressAdded(egress)).await
    }

    /// The opposite: it lives as long as its pods do.
    pub async fn release_egress(&self, egress: EgressName) -> Result<(), Closed> {
        self.post(Event::EgressReleased(egress)).await
    }

    /// The endpoints of one EndpointSlice are as given.
    pub async fn update_endpoints(&self, slice: Slice) -> Result<(), Closed> {
        self.post(Event::SliceApplied(slice)).await
    }

    /// An EndpointSlice is gone.
    pub async fn delete_endpoints(&self, slice: ObjectName) -> Result<(), Closed> {
        self.post(Event::SliceDeleted(slice)).await
    }

    /// A pod has come or changed; without the label when it lost it.
    pub async fn add_pod(&self, pod: PodObject) -> Result<(), Closed> {
        self.post(Event::PodApplied(pod)).await
    }

    /// A pod is gone.
    pub async fn delete_pod(&self, uid: Uid) -> Result<(), Closed> {
        self.post(Event::PodDeleted { uid }).await
    }

    /// A node has come or changed.
    pub async fn update_node(&self, node: NodeObject) -> Result<(), Closed> {
        self.post(Event::NodeApplied(node)).await
    }

    /// A node is gone.
    pub async fn delete_node(&self, name: Arc<str>) -> Result<(), Closed> {
        self.post(Event::NodeDeleted(name)).await
    }

    /// All there is of one kind: what is not in it is gone. Each kind must have been listed once
    /// before anything is begun.
    pub async fn relist(&self, version: u64, objects: Relist) -> Result<(), Closed> {
        self.post(Event::Relisted { version, objects }).await
    }
}
