//! The egress pods: who names which egress, and whose address is whose.
//!
//! Pods are kept by UID, so a repeated or late event finds exactly the pod it is about. An address has one
//! owner among the pods that report it: the newest that is not terminating, then the greater UID; the
//! others wait in case the owner goes. A terminating pod keeps its address until it is gone or another
//! takes it.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::hash::BuildHasher;
use core::net::IpAddr;

use foldhash::fast::FixedState;
use sluice_model::address::is_routable;
use sluice_model::kube::{Phase, PodObject};
use sluice_model::seeded::Bug;
use sluice_model::{Family, Uid};

use super::nodes::NodeId;
use super::services::ServiceIndex;
use super::slab::{Slab, key};
use super::table::{Fingerprint, Table, Value};
use super::wanted::Wish;
use super::wide::Addr;
use super::{Addresses, side};

key!(
    /// One pod.
    pub(super) PodId
);

impl Value for PodId {
    const VACANT: PodId = PodId(u32::MAX);
}

/// What matters about a pod.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Pod {
    pub(super) uid: Uid,
    created: u64,
    pub(super) service: ServiceIndex,
    pub(super) node: NodeId,
    /// Its place in the list of its egress.
    at: u32,
    ip: [Addr; 2],
    host: [Addr; 2],
    has_ip: [bool; 2],
    has_host: [bool; 2],
    terminating: bool,
}

impl Pod {
    pub(super) fn ip(&self, family: Family) -> Option<Addr> {
        self.has_ip[side(family)].then_some(self.ip[side(family)])
    }

    pub(super) fn host(&self, family: Family) -> Option<Addr> {
        self.has_host[side(family)].then_some(self.host[side(family)])
    }

    /// Among the pods that report one address, the greatest owns it.
    pub(super) fn rank(&self) -> (bool, u64, Uid) {
        (!self.terminating, self.created, self.uid)
    }
}

/// All pods.
pub(super) struct Pods {
    pub(super) slab: Slab<PodId, Pod>,
    pub(super) index: Table<Fingerprint, PodId>,
    hasher: FixedState,
    /// The owner of each address.
    pub(super) owner: [Table<Addr, PodId>; 2],
    /// Others that report an address which has an owner.
    pub(super) waiting: BTreeMap<(Family, Addr), Vec<PodId>>,
}

impl Pods {
    pub(super) fn new() -> Pods {
        Pods {
            slab: Slab::new(),
            index: Table::default(),
            hasher: FixedState::default(),
            owner: Default::default(),
            waiting: BTreeMap::new(),
        }
    }

    pub(super) fn fingerprint(&self, uid: Uid) -> Fingerprint {
        Fingerprint::of(self.hasher.hash_one(uid))
    }

    fn find(&self, uid: Uid) -> Option<PodId> {
        self.index.find(self.fingerprint(uid), |pod| self.slab[pod].uid == uid)
    }

    fn insert(&mut self, pod: Pod) -> PodId {
        let id = self.slab.insert(pod);
        self.index.insert_another(self.fingerprint(pod.uid), id);
        id
    }

    fn remove(&mut self, id: PodId) {
        self.index.remove_meant(self.fingerprint(self.slab[id].uid), |other| other == id);
        self.slab.remove(id);
    }
}

/// The first usable address of each family.
fn first_of_each(ips: &[IpAddr]) -> [Option<IpAddr>; 2] {
    Family::ALL.map(|family| {
        let usable = ips.iter().map(IpAddr::to_canonical).filter(|&ip| is_routable(ip));
        usable.into_iter().find(|&ip| Family::of(ip) == family)
    })
}

impl Addresses {
    /// A pod is as given, and names an egress whose name is valid; `None`: it names none any more.
    ///
    /// A pod that has finished is gone. The cost depends on nothing but the pod.
    pub fn apply_pod(&mut self, pod: &PodObject, egress: Option<ServiceIndex>) {
        let egress = egress.filter(|&service| self.services.get(service).is_some());
        let Some(service) = egress.filter(|_| pod.phase != Phase::Finished) else {
            return self.remove_pod(pod.uid);
        };
        if self.seeded.has(Bug::CountPods) {
            self.services[service].pods_counted += 1;
        }
        self.ahead_of_pod(pod.uid, pod.node.as_deref(), &pod.ips);
        let node = self.nodes.find_or_add(pod.node.as_deref().unwrap_or(""));
        let ips = if pod.host_network { [None; 2] } else { first_of_each(&pod.ips) };
        let hosts = first_of_each(&pod.host_ips);
        let new = Pod {
            uid: pod.uid,
            created: pod.created,
            service,
            node,
            at: 0,
            ip: ips.map(|ip| ip.map_or(Addr(0), |ip| self.addrs.hold(ip))),
            host: hosts.map(|ip| ip.map_or(Addr(0), |ip| self.addrs.hold(ip))),
            has_ip: ips.map(|ip| ip.is_some()),
            has_host: hosts.map(|ip| ip.is_some()),
            terminating: pod.terminating,
        };
        match self.pods.find(pod.uid) {
            None => self.add_pod(new),
            Some(id) => self.replace_pod(id, new),
        }
    }

    /// A pod is gone. The cost depends on nothing but the pod.
    pub fn remove_pod(&mut self, uid: Uid) {
        self.ahead_of_pod(uid, None, &[]);
        let Some(id) = self.pods.find(uid) else { return };
        for family in Family::ALL {
            if let Some(addr) = self.pods.slab[id].ip(family) {
                self.unclaim(id, family, addr);
            }
        }
        let pod = self.pods.slab[id];
        self.leave_egress(id);
        if self.seeded.has(Bug::CountPods) {
            let counted = &mut self.services[pod.service].pods_counted;
            *counted = counted.saturating_sub(1);
        }
        self.pods.remove(id);
        self.release(&pod);
    }

    /// After a complete list: the pods that are not kept are gone. Returns the egress of each, and whether it was
    /// terminating.
    pub fn retain_pods(&mut self, keep: impl Fn(Uid) -> bool) -> Vec<(ServiceIndex, bool)> {
        let gone = self.pods.slab.iter().map(|(_, pod)| *pod).filter(|pod| !keep(pod.uid));
        let gone: Vec<Pod> = gone.collect();
        for pod in &gone {
            self.remove_pod(pod.uid);
        }
        gone.iter().map(|pod| (pod.service, pod.terminating)).collect()
    }

    /// The pods that name an egress.
    pub fn pod_uids(&self) -> Vec<Uid> {
        self.pods.slab.iter().map(|(_, pod)| pod.uid).collect()
    }

    /// Whether this pod names an egress.
    pub fn has_pod(&self, uid: Uid) -> bool {
        self.pods.find(uid).is_some()
    }

    /// The egress that a pod names.
    pub fn pod_egress(&self, uid: Uid) -> Option<ServiceIndex> {
        Some(self.pods.slab[self.pods.find(uid)?].service)
    }

    /// How many unfinished pods name an egress, with or without an address.
    pub fn pods(&self, service: ServiceIndex) -> usize {
        let Some(record) = self.services.get(service) else { return 0 };
        if self.seeded.has(Bug::CountPods) { record.pods_counted as usize } else { record.pods.len() }
    }

    fn add_pod(&mut self, pod: Pod) {
        self.nodes[pod.node].holders += 1;
        let id = self.pods.insert(pod);
        self.join_egress(id);
        for family in Family::ALL {
            if let Some(host) = pod.host(family) {
                self.report_host(pod.node, self.addrs.ip(family, host), true);
            }
        }
        for family in Family::ALL {
            if let Some(addr) = pod.ip(family) {
                self.claim(id, family, addr);
            }
        }
    }

    fn replace_pod(&mut self, id: PodId, mut new: Pod) {
        let old = self.pods.slab[id];
        new.at = old.at;
        self.nodes[new.node].holders += 1;
        if new == old {
            return self.release_held(&new);
        }
        let moved = (old.node, old.service) != (new.node, new.service);
        let reranked = old.rank() != new.rank();
        let affected = |family: Family, addr: Addr, pods: &super::pods::Pods| {
            moved
                || old.ip(family) != new.ip(family)
                || reranked && pods.waiting.contains_key(&(family, addr))
        };
        let mut claims = [false; 2];
        for family in Family::ALL {
            if let Some(addr) = old.ip(family) {
                claims[side(family)] = affected(family, addr, &self.pods);
                if claims[side(family)] {
                    self.unclaim(id, family, addr);
                }
            } else {
                claims[side(family)] = true;
            }
        }
        if old.service != new.service {
            self.leave_egress(id);
            self.pods.slab[id] = new;
            self.join_egress(id);
        } else {
            self.pods.slab[id] = new;
        }
        for family in Family::ALL {
            if let Some(host) = new.host(family) {
                self.report_host(new.node, self.addrs.ip(family, host), true);
            }
        }
        for family in Family::ALL {
            if let Some(addr) = new.ip(family)
                && claims[side(family)]
            {
                self.claim(id, family, addr);
            }
        }
        self.release(&old);
    }

    /// Gives back what a pod held: its host's report, its node and its addresses.
    fn release(&mut self, pod: &Pod) {
        for family in Family::ALL {
            if let Some(host) = pod.host(family) {
                self.report_host(pod.node, self.addrs.ip(family, host), false);
            }
        }
        self.release_held(pod);
    }

    fn release_held(&mut self, pod: &Pod) {
        self.nodes[pod.node].holders -= 1;
        self.nodes.forget_if_unused(pod.node);
        for family in Family::ALL {
            for addr in [pod.ip(family), pod.host(family)].into_iter().flatten() {
                self.addrs.drop(family, addr);
            }
        }
    }

    fn join_egress(&mut self, id: PodId) {
        let service = self.pods.slab[id].service;
        let list = &mut self.services[service].pods;
        self.pods.slab[id].at = list.len() as u32;
        list.push(id);
        self.services.touch(service);
    }

    fn leave_egress(&mut self, id: PodId) {
        let Pod { service, at, .. } = self.pods.slab[id];
        let list = &mut self.services[service].pods;
        list.swap_remove(at as usize);
        if let Some(&moved) = list.get(at as usize) {
            self.pods.slab[moved].at = at;
        }
        self.services.touch(service);
    }

    fn wish_of(&self, id: PodId, family: Family, addr: Addr) -> Wish {
        let pod = &self.pods.slab[id];
        Wish { node: pod.node, family, addr, service: pod.service }
    }

    /// A pod reports an address.
    fn claim(&mut self, id: PodId, family: Family, addr: Addr) {
        let wish = self.wish_of(id, family, addr);
        let Some(owner) = self.pods.owner[side(family)].get(addr) else {
            self.pods.owner[side(family)].insert_another(addr, id);
            return self.want(wish);
        };
        let waiting = self.pods.waiting.entry((family, addr)).or_default();
        if self.pods.slab[id].rank() < self.pods.slab[owner].rank() {
            waiting.push(id);
            return;
        }
        waiting.push(owner);
        self.pods.owner[side(family)].insert(addr, id);
        self.unwant(self.wish_of(owner, family, addr));
        self.want(wish);
    }

    /// A pod no longer reports an address.
    fn unclaim(&mut self, id: PodId, family: Family, addr: Addr) {
        let wish = self.wish_of(id, family, addr);
        let owner = self.pods.owner[side(family)].get(addr);
        let Some(waiting) = self.pods.waiting.get_mut(&(family, addr)) else {
            self.pods.owner[side(family)].remove(addr);
            return self.unwant(wish);
        };
        if owner != Some(id) {
            waiting.retain(|&other| other != id);
            if waiting.is_empty() {
                self.pods.waiting.remove(&(family, addr));
            }
            if let Some(owner) = owner
                && self.seeded.has(Bug::LateDeleteTakesAddress)
            {
                self.unwant(self.wish_of(owner, family, addr));
            }
            return;
        }
        let slab = &self.pods.slab;
        let next = waiting.iter().enumerate().max_by_key(|(_, pod)| slab[**pod].rank()).map(|(at, _)| at);
        let Some(next) = next else { return };
        let heir = waiting.swap_remove(next);
        if waiting.is_empty() {
            self.pods.waiting.remove(&(family, addr));
        }
        self.pods.owner[side(family)].insert(addr, heir);
        self.unwant(wish);
        self.want(self.wish_of(heir, family, addr));
    }
}
