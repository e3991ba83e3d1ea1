//! A Kubernetes in memory, for benchmarks and tests: it answers at once and keeps what was written.
//!
//! It keeps the objects in the form in which the engine is told of them. Every change gets the
//! next resourceVersion and goes to the inbox in that order, as a watch would bring it; our own
//! writes come back the same way. An object with our finalizer stays until it is taken off.
//!
//! Missing on purpose: everything that can go wrong with Kubernetes. The simulator has that.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sluice_model::effect::{Existence, KubeOutcome, Notice};
use sluice_model::event::Relist;
use sluice_model::kube::{
    Endpoint, Kind, NodeObject, ObjectRef, Phase, PodObject, ServiceObject, ServiceSpec, Slice, SliceOwner,
};
use sluice_model::{Event, ObjectName, Uid};
use tokio::sync::{mpsc, watch};

use crate::inbox::Handle;
use crate::kube::{Kube, StatusWrite};

/// The cluster.
#[derive(Debug)]
pub struct Cluster {
    shelves: Mutex<Shelves>,
    watch: mpsc::UnboundedSender<Event>,
    changes: watch::Sender<u64>,
    /// Events that the watch has brought to the loop.
    brought: watch::Receiver<u64>,
}

/// UIDs count from here; they look like what Kubernetes makes: version 4, variant 1.
const FIRST_UID: u128 = 0x5e1f_0000_0000_4000_8000_0000_0000_0000;

#[derive(Debug, Default)]
struct Shelves {
    version: u64,
    /// UIDs so far.
    made: u32,
    services: BTreeMap<ObjectName, ServiceObject>,
    slices: BTreeMap<ObjectName, Slice>,
    nodes: BTreeMap<Arc<str>, NodeObject>,
    pods: BTreeMap<ObjectName, PodObject>,
    /// Events so far.
    told: u64,
    notices: Vec<Notice>,
}

impl Shelves {
    fn next_version(&mut self) -> u64 {
        self.version += 1;
        self.version
    }

    fn next_uid(&mut self) -> Uid {
        self.made += 1;
        Uid::from_number(FIRST_UID + u128::from(self.made))
    }

    /// An earlier process has made this UID, so it is not made again.
    fn skip_uid(&mut self, uid: Uid) {
        let made = uid.number().checked_sub(FIRST_UID).and_then(|made| u32::try_from(made).ok());
        self.made = self.made.max(made.unwrap_or(0));
    }
}

impl Cluster {
    /// An empty cluster, and its watch: whoever holds that brings it to the inbox.
    pub fn new() -> (Arc<Cluster>, Watch) {
        let (watch, events) = mpsc::unbounded_channel();
        let (bring, brought) = watch::channel(0);
        let changes = watch::Sender::new(0);
        let cluster = Cluster { shelves: Mutex::default(), watch, changes, brought };
        (Arc::new(cluster), Watch { events, brought: bring })
    }

    /// Lists all four kinds, as a process does that starts.
    pub fn list_all(&self) {
        Kind::ALL.into_iter().for_each(|kind| self.relist(kind));
    }

    /// A node is there.
    pub fn apply_node(&self, name: &str, internal_ips: Vec<IpAddr>) {
        self.change(|shelves| {
            let version = shelves.next_version();
            let node = NodeObject { name: name.into(), version, internal_ips };
            shelves.nodes.insert(name.into(), node.clone());
            Some(Event::NodeApplied(node))
        });
    }

    /// A Service of type `LoadBalancer` and of our class is as given; returns its UID.
    pub fn apply_service(&self, name: &ObjectName, spec: ServiceSpec) -> Uid {
        let mut shelves = self.shelves();
        let version = shelves.next_version();
        let uid = shelves.services.get(name).map(|service| service.uid);
        let uid = uid.unwrap_or_else(|| shelves.next_uid());
        let service = shelves.services.entry(name.clone()).or_insert_with(|| ServiceObject {
            uid,
            name: name.clone(),
            version,
            selected: true,
            load_balancer: true,
            deleting: false,
            finalizer: false,
            inherited: false,
            spec: ServiceSpec::default(),
            ingress: Vec::new(),
            published: None,
            annotated: None,
            conditions: Vec::new(),
        });
        service.version = version;
        service.spec = spec;
        let event = Event::ServiceApplied(service.clone());
        self.tell(&mut shelves, event);
        uid
    }

    /// A Service as an earlier process left it, with its UID, finalizer and status.
    pub fn restore_service(&self, mut service: ServiceObject) {
        self.change(|shelves| {
            service.version = shelves.next_version();
            shelves.skip_uid(service.uid);
            shelves.services.insert(service.name.clone(), service.clone());
            Some(Event::ServiceApplied(service))
        });
    }

    /// Somebody deletes a Service: it goes at once, or when our finalizer goes.
    pub fn delete_service(&self, name: &ObjectName) {
        let mut shelves = self.shelves();
        let version = shelves.next_version();
        let Some(service) = shelves.services.get_mut(name) else { return };
        service.version = version;
        service.deleting = true;
        let service = service.clone();
        self.settle(&mut shelves, service);
    }

    /// The endpoints of a Service are these: address and node.
    pub fn apply_endpoints(&self, service: &ObjectName, endpoints: &[(IpAddr, &str)]) {
        self.change(|shelves| {
            let version = shelves.next_version();
            let endpoints = endpoints.iter().map(|(address, node)| Endpoint {
                address: *address,
                node: Some((*node).into()),
                ready: true,
                serving: true,
                terminating: false,
            });
            let slice = Slice {
                name: service.clone(),
                version,
                owner: SliceOwner::Name(service.name.clone()),
                ports: Vec::new(),
                endpoints: endpoints.collect(),
                malformed: Vec::new(),
            };
            shelves.slices.insert(service.clone(), slice.clone());
            Some(Event::SliceApplied(slice))
        });
    }

    /// A running pod with an egress label.
    pub fn apply_pod(&self, name: &ObjectName, egress: &str, node: &str, ips: Vec<IpAddr>) {
        self.change(|shelves| {
            let version = shelves.next_version();
            let uid = shelves.pods.get(name).map(|pod| pod.uid);
            let uid = uid.unwrap_or_else(|| shelves.next_uid());
            let pod = PodObject {
                uid,
                name: name.clone(),
                version,
                egress: Some(egress.into()),
                node: Some(node.into()),
                ips,
                host_ips: Vec::new(),
                phase: Phase::Running,
                terminating: false,
                host_network: false,
                created: version,
            };
            shelves.pods.insert(name.clone(), pod.clone());
            Some(Event::PodApplied(pod))
        });
    }

    /// A pod is gone.
    pub fn delete_pod(&self, name: &ObjectName) {
        self.change(|shelves| {
            let pod = shelves.pods.remove(name)?;
            shelves.next_version();
            Some(Event::PodDeleted { uid: pod.uid })
        });
    }

    /// Every Service that is there.
    pub fn services(&self) -> Vec<ServiceObject> {
        self.shelves().services.values().cloned().collect()
    }

    /// What people were told.
    pub fn notices(&self) -> Vec<Notice> {
        self.shelves().notices.clone()
    }

    /// Comes back as soon as something holds of all Services.
    pub async fn wait_until(&self, holds: impl Fn(&[ServiceObject]) -> bool) {
        let mut changes = self.changes.subscribe();
        loop {
            changes.mark_unchanged();
            if holds(&self.services()) {
                return;
            }
            // The sender is our own, so there is always a next change to wait for.
            let _ = changes.changed().await;
        }
    }

    /// Comes back when everything that has happened so far has been brought to the loop, so that a
    /// question that is asked afterwards is answered with it in mind.
    pub async fn brought(&self) {
        let told = self.shelves().told;
        // Without a watch nothing will ever be brought.
        let _ = self.brought.clone().wait_for(|brought| *brought >= told).await;
    }

    fn shelves(&self) -> MutexGuard<'_, Shelves> {
        // Nothing panics between two halves of a change.
        self.shelves.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, act: impl FnOnce(&mut Shelves) -> Option<Event>) {
        let mut shelves = self.shelves();
        if let Some(event) = act(&mut shelves) {
            self.tell(&mut shelves, event);
        }
    }

    /// Under the lock, so that events leave in the order of their versions.
    fn tell(&self, shelves: &mut MutexGuard<'_, Shelves>, event: Event) {
        shelves.told += 1;
        // Without a watch nobody wants to know.
        let _ = self.watch.send(event);
        self.changes.send_replace(shelves.version);
    }

    /// Tells of a Service that has changed, or of its end: what is being deleted goes with its last
    /// finalizer, and the garbage collector takes its endpoints.
    fn settle(&self, shelves: &mut MutexGuard<'_, Shelves>, service: ServiceObject) {
        if !service.deleting || service.finalizer || service.inherited {
            return self.tell(shelves, Event::ServiceApplied(service));
        }
        let ServiceObject { uid, name, .. } = service;
        shelves.services.remove(&name);
        self.tell(shelves, Event::ServiceDeleted { uid, name: name.clone() });
        if shelves.slices.remove(&name).is_some() {
            shelves.next_version();
            self.tell(shelves, Event::SliceDeleted(name));
        }
    }

    fn write(&self, object: &ObjectRef, write: impl FnOnce(&mut ServiceObject)) -> KubeOutcome {
        let mut shelves = self.shelves();
        let version = shelves.next_version();
        let Some(service) = shelves.services.get_mut(&object.name).filter(|it| it.uid == object.uid) else {
            return KubeOutcome::Gone;
        };
        write(service);
        service.version = version;
        let service = service.clone();
        self.settle(&mut shelves, service);
        KubeOutcome::Done { version }
    }
}

impl Kube for Cluster {
    async fn add_finalizer(&self, object: ObjectRef) -> KubeOutcome {
        self.write(&object, |service| service.finalizer = true)
    }

    async fn remove_finalizer(&self, object: ObjectRef) -> KubeOutcome {
        self.write(&object, |service| (service.finalizer, service.inherited) = (false, false))
    }

    async fn write_status(&self, write: StatusWrite) -> KubeOutcome {
        self.write(&write.object, |service| {
            service.ingress.retain(|ip| Some(*ip) != write.retract);
            if let Some(ip) = write.ingress
                && !service.ingress.contains(&ip)
            {
                service.ingress.push(ip);
            }
            service.published = write.ingress;
            service.annotated = write.ingress;
            service.conditions.clone_from(&write.conditions);
        })
    }

    async fn look_for(&self, object: ObjectRef) -> Existence {
        match self.shelves().services.get(&object.name) {
            Some(service) if service.uid == object.uid => Existence::Exists,
            _ => Existence::Gone,
        }
    }

    async fn notify(&self, notice: Notice) {
        self.shelves().notices.push(notice);
    }

    fn relist(&self, kind: Kind) {
        let mut shelves = self.shelves();
        let objects = match kind {
            Kind::Service => Relist::Services(shelves.services.values().cloned().collect()),
            Kind::Slice => Relist::Slices(shelves.slices.values().cloned().collect()),
            Kind::Node => Relist::Nodes(shelves.nodes.values().cloned().collect()),
            Kind::Pod => Relist::Pods(shelves.pods.values().cloned().collect()),
        };
        let event = Event::Relisted { version: shelves.version, objects };
        self.tell(&mut shelves, event);
    }
}

/// The watch of a [`Cluster`].
#[derive(Debug)]
pub struct Watch {
    events: mpsc::UnboundedReceiver<Event>,
    brought: watch::Sender<u64>,
}

impl Watch {
    /// Brings every change to a loop, until that ends.
    pub async fn bring_to(mut self, handle: Handle) {
        while let Some(event) = self.events.recv().await {
            if handle.post(event).await.is_err() {
                return;
            }
            self.brought.send_modify(|brought| *brought += 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_uid_of_a_restored_service_is_not_made_again() {
        let name = |name: &str| ObjectName { namespace: "shop".into(), name: name.into() };
        let (first, _watch) = Cluster::new();
        let made: Vec<Uid> =
            ["a", "b"].map(|it| first.apply_service(&name(it), ServiceSpec::default())).into();
        let (next, _watch) = Cluster::new();
        for mut service in first.services() {
            next.restore_service(service.clone());
            // One that this has not made is not counted from.
            service.uid = Uid::from_number(u128::MAX);
            service.name = name("other");
            next.restore_service(service);
        }
        let uid = next.apply_service(&name("c"), ServiceSpec::default());
        assert!(!made.contains(&uid) && uid.number() == made[1].number() + 1, "{uid} of {made:?}");
    }
}
