//! What Kubernetes has told one process, kept the slow and obvious way.
//!
//! Every event that is handed to an engine is written down here too, as plain maps by UID and
//! name. Lists older than anything seen of their kind are left aside, as the specification demands,
//! and so is what a watch brings that began at such a list. Judgements
//! about egress pods and fencing compare the engine with these maps.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use sluice_model::address::{Family, is_routable};
use sluice_model::event::Relist;
use sluice_model::kube::{Kind, NodeObject, Phase, PodObject, ServiceObject, Slice};
use sluice_model::{EgressName, Event, ObjectName, ServiceKey, Time, Uid};

/// The watched objects as one process has them.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    services: BTreeMap<Uid, ServiceObject>,
    slices: BTreeMap<ObjectName, Slice>,
    nodes: BTreeMap<Arc<str>, NodeObject>,
    pods: BTreeMap<Uid, PodObject>,
    asked: BTreeSet<EgressName>,
    newest: BTreeMap<Kind, u64>,
    listed: BTreeSet<Kind>,
    /// When a Service was last seen unwanted by its own word: deleting, or not selected.
    unwanted_at: BTreeMap<Uid, Time>,
    /// When an egress was last seen without any pod.
    empty_at: BTreeMap<EgressName, Time>,
    /// Everything that an object has named, be it that it is wanted or that it is not any more.
    known: BTreeSet<ServiceKey>,
    /// Services whose deletion is meant, as this process could see.
    evident: BTreeSet<ServiceKey>,
    /// Services that were ever seen with our finalizer.
    with_finalizer: BTreeSet<Uid>,
}

impl Seen {
    /// Writes an event down.
    pub fn apply(&mut self, now: Time, event: &Event) {
        let before = self.egresses();
        let unannounced = self.unannounced(event);
        let watched = match event {
            Event::ServiceApplied(service) => Some((Kind::Service, service.version)),
            Event::SliceApplied(slice) => Some((Kind::Slice, slice.version)),
            Event::NodeApplied(node) => Some((Kind::Node, node.version)),
            Event::PodApplied(pod) => Some((Kind::Pod, pod.version)),
            _ => None,
        };
        if let Some((kind, version)) = watched {
            // A watch that began at a refused list brings what is as old as that list.
            if self.newest.get(&kind).is_some_and(|newest| *newest > version) {
                return;
            }
            self.newer(kind, version);
        }
        match event {
            Event::ServiceApplied(service) => self.service(now, service),
            Event::ServiceDeleted { uid, .. } => {
                if self.services.remove(uid).is_some() {
                    self.evident.insert(ServiceKey::Inbound(*uid));
                }
            }
            Event::SliceApplied(slice) => {
                self.slices.insert(slice.name.clone(), slice.clone());
            }
            Event::SliceDeleted(name) => {
                self.slices.remove(name);
            }
            Event::NodeApplied(node) => {
                self.nodes.insert(node.name.clone(), node.clone());
            }
            Event::NodeDeleted(name) => {
                self.nodes.remove(name);
            }
            Event::PodApplied(pod) => {
                self.pods.insert(pod.uid, pod.clone());
            }
            Event::PodDeleted { uid } => {
                self.pods.remove(uid);
            }
            Event::Relisted { version, objects } => self.relisted(now, *version, objects),
            Event::EgressAdded(name) => {
                self.asked.insert(name.clone());
            }
            Event::EgressReleased(name) => {
                self.asked.remove(name);
            }
            _ => return,
        }
        let after = self.egresses();
        let named = self.pods.values().filter_map(|pod| EgressName::parse(pod.egress.as_deref()?).ok());
        self.known.extend(named.map(ServiceKey::Outbound));
        for gone in before.difference(&after) {
            self.empty_at.insert(gone.clone(), now);
            if !unannounced.contains(gone) {
                self.evident.insert(ServiceKey::Outbound(gone.clone()));
            }
        }
        for there in after {
            self.evident.remove(&ServiceKey::Outbound(there));
        }
    }

    /// Whether this process knows that the service's deletion is meant: the object asked for it when it was last
    /// seen, or the object or the last pod was watched going. Pods that a list lacks count if they were terminating.
    pub fn is_evident(&self, key: &ServiceKey) -> bool {
        self.evident.contains(key)
    }

    /// The services whose deletion is meant and that no object with our finalizer stands for any more.
    pub fn evident_and_released(&self) -> impl Iterator<Item = &ServiceKey> {
        self.evident.iter().filter(|key| match key {
            ServiceKey::Inbound(uid) => self.services.get(uid).is_none_or(|service| !service.finalizer),
            ServiceKey::Outbound(_) => true,
        })
    }

    /// Whether a Service has carried our finalizer. Nothing is made in Azure for one that has not, so the engine
    /// forgets it, and the evidence with it.
    pub fn had_our_finalizer(&self, uid: Uid) -> bool {
        self.with_finalizer.contains(&uid)
    }

    /// The egresses of pods that a list lacks and that were not terminating.
    fn unannounced(&self, event: &Event) -> BTreeSet<EgressName> {
        let Event::Relisted { objects: Relist::Pods(all), .. } = event else { return BTreeSet::new() };
        let kept: BTreeSet<Uid> = all.iter().map(|pod| pod.uid).collect();
        let lost = self.pods.values().filter(|pod| !kept.contains(&pod.uid) && !pod.terminating);
        lost.filter(|pod| pod.phase != Phase::Finished)
            .filter_map(|pod| EgressName::parse(pod.egress.as_deref()?).ok())
            .collect()
    }

    /// The Service, as last seen.
    pub fn service_of(&self, uid: Uid) -> Option<&ServiceObject> {
        self.services.get(&uid)
    }

    /// When the Service was last seen to be unwanted by its own word.
    pub fn unwanted_at(&self, uid: Uid) -> Option<Time> {
        self.unwanted_at.get(&uid).copied()
    }

    /// When the egress last lost its last pod.
    pub fn emptied_at(&self, egress: &EgressName) -> Option<Time> {
        self.empty_at.get(egress).copied()
    }

    /// Whether an object has named the service: a Service by being there, a pod by its label.
    pub fn was_ever_named(&self, key: &ServiceKey) -> bool {
        self.known.contains(key)
    }

    /// Whether all four kinds have been listed.
    pub fn is_complete(&self) -> bool {
        self.listed.len() == Kind::ALL.len()
    }

    /// The egresses that unfinished pods name, one way or the other valid.
    pub fn egresses(&self) -> BTreeSet<EgressName> {
        self.pods
            .values()
            .filter(|pod| pod.phase != Phase::Finished && !pod.host_network)
            .filter_map(|pod| EgressName::parse(pod.egress.as_deref()?).ok())
            .chain(self.asked.iter().cloned())
            .collect()
    }

    /// How many unfinished pods name the egress, from namespaces that may.
    pub fn pods_of(&self, egress: &EgressName, namespaces: Option<&[Arc<str>]>) -> usize {
        self.pods
            .values()
            .filter(|pod| pod.phase != Phase::Finished && !pod.host_network)
            .filter(|pod| namespaces.is_none_or(|allowed| allowed.contains(&pod.name.namespace)))
            .filter(|pod| {
                pod.egress.as_deref().and_then(|l| EgressName::parse(l).ok()).as_ref() == Some(egress)
            })
            .count()
    }

    /// Whether the egress was asked for by name.
    pub fn is_asked_for(&self, egress: &EgressName) -> bool {
        self.asked.contains(egress)
    }

    /// The egress whose pod owns an address: of the pods that name a valid egress the newest that does not
    /// terminate, then the larger UID.
    pub fn egress_of_address(&self, address: IpAddr, namespaces: Option<&[Arc<str>]>) -> Option<EgressName> {
        self.pods
            .values()
            .filter(|pod| pod.phase != Phase::Finished && !pod.host_network)
            .filter(|pod| namespaces.is_none_or(|allowed| allowed.contains(&pod.name.namespace)))
            .filter(|pod| first_of_family(&pod.ips, Family::of(address)) == Some(address))
            .filter_map(|pod| Some((pod, EgressName::parse(pod.egress.as_deref()?).ok()?)))
            .max_by_key(|(pod, _)| (!pod.terminating, pod.created, pod.uid))
            .map(|(_, egress)| egress)
    }

    fn service(&mut self, now: Time, service: &ServiceObject) {
        self.known.insert(ServiceKey::Inbound(service.uid));
        if service.finalizer {
            self.with_finalizer.insert(service.uid);
        }
        if service.deleting || !service.selected {
            self.unwanted_at.insert(service.uid, now);
        }
        let key = ServiceKey::Inbound(service.uid);
        let left = self.services.get(&service.uid).is_some_and(|it| it.selected) && !service.selected;
        if service.deleting || !service.load_balancer || left {
            self.evident.insert(key);
        } else if service.selected {
            self.evident.remove(&key);
        }
        self.services.retain(|uid, known| known.name != service.name || *uid == service.uid);
        self.services.insert(service.uid, service.clone());
    }

    fn newer(&mut self, kind: Kind, version: u64) {
        let newest = self.newest.entry(kind).or_default();
        *newest = (*newest).max(version);
    }

    fn relisted(&mut self, now: Time, version: u64, objects: &Relist) {
        let kind = match objects {
            Relist::Services(_) => Kind::Service,
            Relist::Slices(_) => Kind::Slice,
            Relist::Nodes(_) => Kind::Node,
            Relist::Pods(_) => Kind::Pod,
        };
        if self.newest.get(&kind).is_some_and(|newest| *newest > version) {
            return;
        }
        self.newer(kind, version);
        self.listed.insert(kind);
        match objects {
            Relist::Services(all) => {
                let listed: BTreeSet<Uid> = all.iter().map(|service| service.uid).collect();
                self.services.retain(|uid, _| listed.contains(uid));
                for service in all {
                    self.service(now, service);
                }
            }
            Relist::Slices(all) => {
                self.slices = all.iter().map(|slice| (slice.name.clone(), slice.clone())).collect();
            }
            Relist::Nodes(all) => {
                self.nodes = all.iter().map(|node| (node.name.clone(), node.clone())).collect();
            }
            Relist::Pods(all) => {
                self.pods = all.iter().map(|pod| (pod.uid, pod.clone())).collect();
            }
        }
    }
}

fn first_of_family(ips: &[IpAddr], family: Family) -> Option<IpAddr> {
    ips.iter().copied().find(|ip| Family::of(*ip) == family && is_routable(*ip))
}
