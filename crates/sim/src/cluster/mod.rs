//! A model of the Kubernetes API server, of the people who use it, and of our watch client.
//!
//! [`Cluster`] is the truth: objects with versions, UIDs, finalizers and a bounded past. People
//! change it through [`stories::UserAction`]s, the controller through [`KubeWrite`]s. An
//! [`Informer`] is what one process sees of it: lists and watches, late, repeated, stale or
//! broken as [`faults::KubeFaults`] will have it, turned into the engine's events. [`oracle`]
//! says, straight from the truth, what Azure must look like in the end.
//!
//! Missing on purpose: validation by the API server beyond what our writes meet, owner references
//! other than those of slices, and any controller but the ones that a story plays.

mod client;
mod convert;
pub mod faults;
mod informer;
pub mod objects;
pub mod oracle;
mod shelf;
pub mod stories;
mod users;

use std::sync::Arc;

use sluice_model::{ObjectName, Time, Uid};

pub use client::KubeWrite;
pub use convert::List;
pub use faults::{KubeFault, KubeFaults, WriteFault};
pub use informer::Informer;

use client::LateWrite;
use convert::Watched;
use faults::FaultCounts;
use objects::{Meta, NodeRecord, PodRecord, ServiceRecord, SliceRecord, Stored};
use shelf::Shelf;
use users::Memory;

/// The API server with all its objects.
#[derive(Clone, Debug)]
pub struct Cluster {
    now: Time,
    version: u64,
    uids_given: u128,
    services: Shelf<ServiceRecord>,
    slices: Shelf<SliceRecord>,
    nodes: Shelf<NodeRecord>,
    pods: Shelf<PodRecord>,
    late: Vec<LateWrite>,
    memory: Memory,
    happened: FaultCounts,
}

impl Default for Cluster {
    fn default() -> Cluster {
        Cluster::new()
    }
}

impl Cluster {
    /// An empty cluster.
    pub fn new() -> Cluster {
        Cluster {
            now: Time::ZERO,
            // A cluster that is watched for the first time has a past, so no version is ever zero.
            version: 100,
            uids_given: 0,
            services: Shelf::default(),
            slices: Shelf::default(),
            nodes: Shelf::default(),
            pods: Shelf::default(),
            late: Vec::new(),
            memory: Memory::default(),
            happened: FaultCounts::default(),
        }
    }

    /// Lets time pass; late writes land. A time before the newest seen changes nothing.
    pub fn set_time(&mut self, now: Time) {
        self.now = self.now.max(now);
        self.land_late_writes();
    }

    /// The newest time seen.
    pub fn now(&self) -> Time {
        self.now
    }

    /// The newest resourceVersion.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// How often people did what the list of faults names (K8-K13, K16-K18).
    pub fn happened(&self) -> &FaultCounts {
        &self.happened
    }

    /// All Services.
    pub fn services(&self) -> impl Iterator<Item = &Stored<ServiceRecord>> {
        self.services.all().map(Arc::as_ref)
    }

    /// All EndpointSlices.
    pub fn slices(&self) -> impl Iterator<Item = &Stored<SliceRecord>> {
        self.slices.all().map(Arc::as_ref)
    }

    /// All Nodes.
    pub fn nodes(&self) -> impl Iterator<Item = &Stored<NodeRecord>> {
        self.nodes.all().map(Arc::as_ref)
    }

    /// All pods, labelled or not.
    pub fn pods(&self) -> impl Iterator<Item = &Stored<PodRecord>> {
        self.pods.all().map(Arc::as_ref)
    }

    /// The Service of that name.
    pub fn service(&self, name: &ObjectName) -> Option<&Stored<ServiceRecord>> {
        self.services.find(name).map(Arc::as_ref)
    }

    /// The pod of that name.
    pub fn pod(&self, name: &ObjectName) -> Option<&Stored<PodRecord>> {
        self.pods.find(name).map(Arc::as_ref)
    }

    /// Forgets all but the last `keep` changes of every kind: older watches get `410 Gone`.
    pub fn compact(&mut self, keep: usize) {
        self.services.compact(keep);
        self.slices.compact(keep);
        self.nodes.compact(keep);
        self.pods.compact(keep);
    }

    /// Creates an object; `None` if the name is taken.
    pub(crate) fn create<T: Watched>(&mut self, name: ObjectName, body: T) -> Option<Uid> {
        if T::shelf(self).find(&name).is_some() {
            return None;
        }
        self.uids_given += 1;
        let uid = Uid::from_number(self.uids_given);
        let meta = Meta {
            uid,
            name,
            version: 0,
            created_seconds: self.now.as_millis() / 1000,
            deletion_seconds: None,
            finalizers: Default::default(),
            touches: 0,
        };
        self.put(Stored { meta, body });
        Some(uid)
    }

    /// Changes an object; says whether there was one and it is different now.
    /// The last finalizer of an object that is being deleted takes the object with it.
    pub(crate) fn edit<T: Watched>(
        &mut self,
        name: &ObjectName,
        change: impl FnOnce(&mut Stored<T>),
    ) -> bool {
        let Some(old) = T::shelf(self).find(name).cloned() else { return false };
        let mut new = (*old).clone();
        change(&mut new);
        if new == *old {
            return false;
        }
        if T::GOES_AT_ONCE && new.meta.deletion_seconds.is_some() && new.meta.finalizers.is_empty() {
            return self.remove::<T>(name);
        }
        self.put(new);
        true
    }

    /// Takes an object away, whatever its finalizers; says whether there was one.
    pub(crate) fn remove<T: Watched>(&mut self, name: &ObjectName) -> bool {
        if T::shelf(self).find(name).is_none() {
            return false;
        }
        self.version += 1;
        let (version, now) = (self.version, self.now);
        T::shelf_mut(self).write(version, now, name.clone(), None);
        true
    }

    fn put<T: Watched>(&mut self, mut stored: Stored<T>) {
        self.version += 1;
        stored.meta.version = self.version;
        let (version, now, name) = (self.version, self.now, stored.meta.name.clone());
        T::shelf_mut(self).write(version, now, name, Some(stored));
    }
}

#[cfg(test)]
mod tests;
