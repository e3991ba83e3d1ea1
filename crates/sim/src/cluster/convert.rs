//! From stored objects to the engine's events, as our edge will do it.
//!
//! Addresses get their one spelling, what is no address goes to `malformed`, and the Pod watch
//! has a selector: a pod that loses the egress label arrives as deleted.

use std::sync::Arc;

use sluice_model::address::{Family, parse_ip};
use sluice_model::event::{Event, Relist};
use sluice_model::kube::{Endpoint, Kind, NodeObject, PodObject, ServiceObject, Slice, SliceOwner};
use sluice_model::{ObjectName, Time, Uid};

use super::Cluster;
use super::objects::{AddressType, NodeRecord, OUR_FINALIZER, PodRecord, ServiceRecord, SliceRecord, Stored};
use super::shelf::{Compacted, Shelf};

/// A kind of object that can be listed and watched.
pub(crate) trait Watched: Clone + PartialEq {
    /// An object without finalizers goes as soon as it is deleted; a pod first ends its containers.
    const GOES_AT_ONCE: bool;
    /// Where objects of this kind stand.
    fn shelf(cluster: &Cluster) -> &Shelf<Self>;
    /// The same, to change them.
    fn shelf_mut(cluster: &mut Cluster) -> &mut Shelf<Self>;
    /// Whether our watch's selector matches.
    fn is_selected(_: &Stored<Self>) -> bool {
        true
    }
    /// The event of an object that is there.
    fn applied(stored: &Stored<Self>) -> Event;
    /// The event of an object that is gone.
    fn deleted(stored: &Stored<Self>) -> Event;
    /// The body of a list.
    fn relisted<'a>(objects: impl Iterator<Item = &'a Arc<Stored<Self>>>) -> Relist
    where
        Self: 'a;
}

/// One event of a watch.
#[derive(Clone, Debug)]
pub(crate) struct WatchEvent {
    /// The version that it brings the watcher to.
    pub(crate) version: u64,
    /// When the change happened.
    pub(crate) at: Time,
    /// Which object.
    pub(crate) name: ObjectName,
    /// Which incarnation.
    pub(crate) uid: Uid,
    /// The object is there, as opposed to gone.
    pub(crate) present: bool,
    /// What the engine is told.
    pub(crate) event: Event,
}

/// The list of one kind.
#[derive(Clone, Debug)]
pub struct List {
    /// Its resourceVersion.
    pub version: u64,
    /// Names, incarnations and versions of the objects in it.
    pub members: Vec<(ObjectName, Uid, u64)>,
    /// The objects.
    pub objects: Relist,
}

impl Cluster {
    /// The complete list of one kind, as it is now.
    pub fn list(&self, kind: Kind) -> List {
        let version = self.version();
        match kind {
            Kind::Service => list_of(version, ServiceRecord::shelf(self).all()),
            Kind::Slice => list_of(version, SliceRecord::shelf(self).all()),
            Kind::Node => list_of(version, NodeRecord::shelf(self).all()),
            Kind::Pod => list_of(version, PodRecord::shelf(self).all()),
        }
    }

    /// The list that an API server gives which has not yet seen the last `changes` changes of the kind,
    /// or as many as are remembered; `None` if there are none.
    pub fn stale_list(&self, kind: Kind, changes: usize) -> Option<List> {
        fn stale<T: Watched>(cluster: &Cluster, changes: usize) -> Option<List> {
            let (version, objects) = T::shelf(cluster).lagging(changes)?;
            Some(list_of(version, objects.values()))
        }
        match kind {
            Kind::Service => stale::<ServiceRecord>(self, changes),
            Kind::Slice => stale::<SliceRecord>(self, changes),
            Kind::Node => stale::<NodeRecord>(self, changes),
            Kind::Pod => stale::<PodRecord>(self, changes),
        }
    }

    /// What a watch of the kind brings that stands at `version`.
    pub(crate) fn watch(&self, kind: Kind, version: u64) -> Result<Vec<WatchEvent>, Compacted> {
        match kind {
            Kind::Service => watch_of(ServiceRecord::shelf(self), version),
            Kind::Slice => watch_of(SliceRecord::shelf(self), version),
            Kind::Node => watch_of(NodeRecord::shelf(self), version),
            Kind::Pod => watch_of(PodRecord::shelf(self), version),
        }
    }

    /// The version of the last change of the kind.
    pub(crate) fn last_change(&self, kind: Kind) -> Option<u64> {
        match kind {
            Kind::Service => self.services.last_change(),
            Kind::Slice => self.slices.last_change(),
            Kind::Node => self.nodes.last_change(),
            Kind::Pod => self.pods.last_change(),
        }
    }
}

fn list_of<'a, T: Watched + 'a>(version: u64, all: impl Iterator<Item = &'a Arc<Stored<T>>>) -> List {
    let selected: Vec<_> = all.filter(|stored| T::is_selected(stored)).collect();
    let members = selected.iter().map(|stored| &stored.meta);
    List {
        version,
        members: members.map(|meta| (meta.name.clone(), meta.uid, meta.version)).collect(),
        objects: T::relisted(selected.into_iter()),
    }
}

fn watch_of<T: Watched>(shelf: &Shelf<T>, version: u64) -> Result<Vec<WatchEvent>, Compacted> {
    let events = shelf.changes_after(version)?.filter_map(|change| {
        let was = change.before.as_deref().filter(|stored| T::is_selected(stored));
        let is = change.after.as_deref().filter(|stored| T::is_selected(stored));
        let stored = is.or(was)?;
        Some(WatchEvent {
            version: change.version,
            at: change.at,
            name: change.name.clone(),
            uid: stored.meta.uid,
            present: is.is_some(),
            event: if is.is_some() { T::applied(stored) } else { T::deleted(stored) },
        })
    });
    Ok(events.collect())
}

impl Watched for ServiceRecord {
    const GOES_AT_ONCE: bool = true;

    fn shelf(cluster: &Cluster) -> &Shelf<Self> {
        &cluster.services
    }

    fn shelf_mut(cluster: &mut Cluster) -> &mut Shelf<Self> {
        &mut cluster.services
    }

    fn applied(stored: &Stored<Self>) -> Event {
        Event::ServiceApplied(service(stored))
    }

    fn deleted(stored: &Stored<Self>) -> Event {
        Event::ServiceDeleted { uid: stored.meta.uid, name: stored.meta.name.clone() }
    }

    fn relisted<'a>(objects: impl Iterator<Item = &'a Arc<Stored<Self>>>) -> Relist {
        Relist::Services(objects.map(|stored| service(stored)).collect())
    }
}

impl Watched for SliceRecord {
    const GOES_AT_ONCE: bool = true;

    fn shelf(cluster: &Cluster) -> &Shelf<Self> {
        &cluster.slices
    }

    fn shelf_mut(cluster: &mut Cluster) -> &mut Shelf<Self> {
        &mut cluster.slices
    }

    fn applied(stored: &Stored<Self>) -> Event {
        Event::SliceApplied(slice(stored))
    }

    fn deleted(stored: &Stored<Self>) -> Event {
        Event::SliceDeleted(stored.meta.name.clone())
    }

    fn relisted<'a>(objects: impl Iterator<Item = &'a Arc<Stored<Self>>>) -> Relist {
        Relist::Slices(objects.map(|stored| slice(stored)).collect())
    }
}

impl Watched for NodeRecord {
    const GOES_AT_ONCE: bool = true;

    fn shelf(cluster: &Cluster) -> &Shelf<Self> {
        &cluster.nodes
    }

    fn shelf_mut(cluster: &mut Cluster) -> &mut Shelf<Self> {
        &mut cluster.nodes
    }

    fn applied(stored: &Stored<Self>) -> Event {
        Event::NodeApplied(node(stored))
    }

    fn deleted(stored: &Stored<Self>) -> Event {
        Event::NodeDeleted(Arc::clone(&stored.meta.name.name))
    }

    fn relisted<'a>(objects: impl Iterator<Item = &'a Arc<Stored<Self>>>) -> Relist {
        Relist::Nodes(objects.map(|stored| node(stored)).collect())
    }
}

impl Watched for PodRecord {
    const GOES_AT_ONCE: bool = false;

    fn shelf(cluster: &Cluster) -> &Shelf<Self> {
        &cluster.pods
    }

    fn shelf_mut(cluster: &mut Cluster) -> &mut Shelf<Self> {
        &mut cluster.pods
    }

    fn is_selected(stored: &Stored<Self>) -> bool {
        stored.body.egress.is_some()
    }

    fn applied(stored: &Stored<Self>) -> Event {
        Event::PodApplied(pod(stored))
    }

    fn deleted(stored: &Stored<Self>) -> Event {
        Event::PodDeleted { uid: stored.meta.uid }
    }

    fn relisted<'a>(objects: impl Iterator<Item = &'a Arc<Stored<Self>>>) -> Relist {
        Relist::Pods(objects.map(|stored| pod(stored)).collect())
    }
}

fn service(stored: &Stored<ServiceRecord>) -> ServiceObject {
    let (meta, body) = (&stored.meta, &stored.body);
    ServiceObject {
        uid: meta.uid,
        name: meta.name.clone(),
        version: meta.version,
        selected: body.is_ours(),
        load_balancer: body.balanced,
        deleting: meta.deletion_seconds.is_some(),
        finalizer: meta.finalizers.contains(OUR_FINALIZER),
        inherited: stored.carries_inherited(),
        spec: body.spec.clone(),
        ingress: body.ingress.clone(),
        published: body.published,
        annotated: body.annotation,
        conditions: body.conditions.clone(),
    }
}

fn slice(stored: &Stored<SliceRecord>) -> Slice {
    let body = &stored.body;
    let family = match body.address_type {
        AddressType::V4 => Some(Family::V4),
        AddressType::V6 => Some(Family::V6),
        AddressType::Fqdn => None,
    };
    let mut endpoints = Vec::with_capacity(body.endpoints.len());
    let mut malformed = Vec::new();
    for endpoint in &body.endpoints {
        let Some(address) = parse_ip(&endpoint.address).ok().filter(|ip| Some(Family::of(*ip)) == family)
        else {
            malformed.push(Arc::clone(&endpoint.address));
            continue;
        };
        let (ready, serving, terminating) = endpoint.health.conditions();
        let ready = ready.unwrap_or(true);
        endpoints.push(Endpoint {
            address,
            node: endpoint.node.clone(),
            ready,
            serving: serving.unwrap_or(ready),
            terminating: terminating.unwrap_or(false),
        });
    }
    let owner = match (body.owner, &body.service_label) {
        (Some(uid), _) => SliceOwner::Uid(uid),
        (None, Some(name)) => SliceOwner::Name(Arc::clone(name)),
        (None, None) => SliceOwner::Nobody,
    };
    Slice {
        name: stored.meta.name.clone(),
        version: stored.meta.version,
        owner,
        ports: body.ports.clone(),
        endpoints,
        malformed,
    }
}

fn node(stored: &Stored<NodeRecord>) -> NodeObject {
    NodeObject {
        name: Arc::clone(&stored.meta.name.name),
        version: stored.meta.version,
        internal_ips: addresses(&stored.body.ips),
    }
}

fn pod(stored: &Stored<PodRecord>) -> PodObject {
    let (meta, body) = (&stored.meta, &stored.body);
    PodObject {
        uid: meta.uid,
        name: meta.name.clone(),
        version: meta.version,
        egress: body.egress.clone(),
        node: body.node.clone(),
        ips: addresses(&body.ips),
        host_ips: addresses(&body.host_ips),
        phase: body.phase,
        terminating: meta.deletion_seconds.is_some(),
        host_network: body.host_network,
        created: meta.created_seconds,
    }
}

fn addresses(written: &[Arc<str>]) -> Vec<std::net::IpAddr> {
    written.iter().filter_map(|text| parse_ip(text).ok()).collect()
}
