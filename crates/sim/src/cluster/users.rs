//! What people and other controllers do to the cluster.
//!
//! Every verb takes anything: what is about an object that is not there does nothing, and says so
//! by `false`. On the way the cluster notices which faults of the list people have just committed.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use sluice_model::kube::{Kind, Phase, ServiceSpec};
use sluice_model::{ObjectName, Uid};

use super::Cluster;
use super::faults::KubeFault;
use super::objects::{
    AddressType, EndpointRecord, Health, NodeRecord, OUR_FINALIZER, PodRecord, ServiceRecord, SliceRecord,
};

/// What the cluster remembers only to recognise faults.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    names_used: BTreeSet<(Kind, ObjectName)>,
    last_pod_with: BTreeMap<Arc<str>, Uid>,
    labels_before: BTreeMap<Uid, Option<Arc<str>>>,
    left_load_balancer: BTreeSet<Uid>,
}

impl Cluster {
    /// Creates a Service.
    pub fn create_service(&mut self, name: &ObjectName, record: ServiceRecord) -> bool {
        let dual = record.spec.families.len() > 1;
        let created = self.create(name.clone(), record).is_some();
        if created {
            self.notice_name(Kind::Service, name);
            self.notice(KubeFault::OddAddresses, dual);
        }
        created
    }

    /// Changes a Service's type: `LoadBalancer` or `ClusterIP`.
    pub fn set_type(&mut self, name: &ObjectName, balanced: bool) -> bool {
        let changed = self.edit::<ServiceRecord>(name, |stored| {
            stored.body.balanced = balanced;
            // Kubernetes does not let a Service of another type have a class, nor an ingress.
            if !balanced {
                stored.body.class = None;
                stored.body.ingress.clear();
            }
        });
        if let Some(uid) = self.service(name).map(|stored| stored.meta.uid).filter(|_| changed) {
            if balanced {
                let returned = self.memory.left_load_balancer.remove(&uid);
                self.notice(KubeFault::TypeReturned, returned);
            } else {
                self.memory.left_load_balancer.insert(uid);
            }
        }
        changed
    }

    /// Changes a Service's spec.
    pub fn edit_spec(&mut self, name: &ObjectName, change: impl FnOnce(&mut ServiceSpec)) -> bool {
        self.edit::<ServiceRecord>(name, |stored| change(&mut stored.body.spec))
    }

    /// Changes a label of a Service that means nothing to us.
    pub fn touch_service(&mut self, name: &ObjectName) -> bool {
        self.edit::<ServiceRecord>(name, |stored| stored.meta.touches += 1)
    }

    /// Puts somebody else's finalizer on a Service.
    pub fn hold_service(&mut self, name: &ObjectName, finalizer: &str) -> bool {
        let deleting = self.service(name).is_some_and(|stored| stored.meta.deletion_seconds.is_some());
        !deleting
            && self.edit::<ServiceRecord>(name, |stored| {
                stored.meta.finalizers.insert(finalizer.into());
            })
    }

    /// Takes somebody else's finalizer off a Service.
    pub fn release_service(&mut self, name: &ObjectName, finalizer: &str) -> bool {
        self.edit::<ServiceRecord>(name, |stored| {
            stored.meta.finalizers.remove(finalizer);
        })
    }

    /// Deletes a Service: with finalizers it only gets a deletion timestamp.
    pub fn delete_service(&mut self, name: &ObjectName) -> bool {
        let seconds = self.now().as_millis() / 1000;
        self.edit::<ServiceRecord>(name, |stored| {
            stored.meta.deletion_seconds.get_or_insert(seconds);
        })
    }

    /// Takes our finalizer off by force (K16).
    pub fn strip_finalizer(&mut self, name: &ObjectName) -> bool {
        let stripped = self.release_service(name, OUR_FINALIZER);
        self.notice(KubeFault::FinalizerStripped, stripped);
        stripped
    }

    /// Empties a Service's ingress list and conditions; our annotation stays.
    pub fn wipe_status(&mut self, name: &ObjectName) -> bool {
        self.edit::<ServiceRecord>(name, |stored| {
            stored.body.ingress.clear();
            stored.body.published = None;
            stored.body.conditions.clear();
        })
    }

    /// Puts an unmanaged IP into a Service's ingress list and into our annotation.
    pub fn add_ingress(&mut self, name: &ObjectName, ip: IpAddr) -> bool {
        self.edit::<ServiceRecord>(name, |stored| {
            if !stored.body.ingress.contains(&ip) {
                stored.body.ingress.insert(0, ip);
            }
            stored.body.annotation = Some(ip);
        })
    }

    /// All objects of a namespace vanish at once, whatever their finalizers (K17).
    pub fn drop_namespace(&mut self, namespace: &str) -> bool {
        fn within<'a>(names: impl Iterator<Item = &'a ObjectName>, namespace: &str) -> Vec<ObjectName> {
            names.filter(|name| &*name.namespace == namespace).cloned().collect()
        }
        let services = within(self.services().map(|stored| &stored.meta.name), namespace);
        let slices = within(self.slices().map(|stored| &stored.meta.name), namespace);
        let pods = within(self.pods().map(|stored| &stored.meta.name), namespace);
        let dropped = !namespace.is_empty() && services.len() + slices.len() + pods.len() > 0;
        for name in services.iter().filter(|_| dropped) {
            self.remove::<ServiceRecord>(name);
        }
        for name in slices.iter().filter(|_| dropped) {
            self.remove::<SliceRecord>(name);
        }
        for name in pods.iter().filter(|_| dropped) {
            self.remove::<PodRecord>(name);
        }
        self.notice(KubeFault::NamespaceDropped, dropped);
        dropped
    }

    /// Creates or replaces a slice.
    pub fn put_slice(&mut self, name: &ObjectName, record: SliceRecord) -> bool {
        let odd = record.address_type == AddressType::Fqdn
            || record.endpoints.iter().any(|endpoint| is_odd(&endpoint.address));
        let beside = self.slices().any(|other| {
            other.meta.name != *name
                && other.meta.name.namespace == name.namespace
                && (other.body.owner.is_some() && other.body.owner == record.owner
                    || other.body.service_label.is_some() && other.body.service_label == record.service_label)
        });
        let written = match self.slices.find(name) {
            None => self.create(name.clone(), record).is_some(),
            Some(_) => self.edit::<SliceRecord>(name, |stored| stored.body = record),
        };
        self.notice(KubeFault::OddAddresses, written && odd);
        self.notice(KubeFault::SlicesOverlap, written && beside);
        written
    }

    /// Moves an endpoint from one slice to another, in two writes: with `add_first` it is in both for a moment,
    /// else in neither.
    pub fn move_endpoint(
        &mut self,
        from: &ObjectName,
        to: &ObjectName,
        address: &str,
        add_first: bool,
    ) -> bool {
        let found = self.slices.find(from).and_then(|stored| {
            stored.body.endpoints.iter().find(|endpoint| &*endpoint.address == address).cloned()
        });
        let Some(endpoint) = found.filter(|_| from != to && self.slices.find(to).is_some()) else {
            return false;
        };
        let remove = |cluster: &mut Cluster| {
            cluster.edit::<SliceRecord>(from, |stored| {
                stored.body.endpoints.retain(|endpoint| &*endpoint.address != address);
            });
        };
        let add = |cluster: &mut Cluster, endpoint: EndpointRecord| {
            cluster.edit::<SliceRecord>(to, |stored| {
                stored.body.endpoints.retain(|endpoint| &*endpoint.address != address);
                stored.body.endpoints.push(endpoint);
            });
        };
        if add_first {
            add(self, endpoint);
            remove(self);
        } else {
            remove(self);
            add(self, endpoint);
        }
        self.notice(KubeFault::SlicesOverlap, true);
        true
    }

    /// Changes the conditions of an endpoint.
    pub fn set_health(&mut self, slice: &ObjectName, address: &str, health: Health) -> bool {
        self.edit::<SliceRecord>(slice, |stored| {
            for endpoint in stored.body.endpoints.iter_mut().filter(|it| &*it.address == address) {
                endpoint.health = health;
            }
        })
    }

    /// Deletes a slice.
    pub fn delete_slice(&mut self, name: &ObjectName) -> bool {
        self.remove::<SliceRecord>(name)
    }

    /// Deletes the slices whose owner is gone, as the garbage collector does. It looks for an owner only in the
    /// slice's own namespace.
    pub fn collect_garbage(&mut self) -> bool {
        let alive: BTreeSet<(&str, Uid)> =
            self.services().map(|stored| (&*stored.meta.name.namespace, stored.meta.uid)).collect();
        let is_orphaned = |name: &ObjectName, owner: Uid| !alive.contains(&(&*name.namespace, owner));
        let orphaned: Vec<ObjectName> = self
            .slices()
            .filter(|stored| stored.body.owner.is_some_and(|owner| is_orphaned(&stored.meta.name, owner)))
            .map(|stored| stored.meta.name.clone())
            .collect();
        for name in &orphaned {
            self.remove::<SliceRecord>(name);
        }
        !orphaned.is_empty()
    }

    /// Creates a Node, or changes its addresses.
    pub fn put_node(&mut self, node: &str, ips: &[Arc<str>]) -> bool {
        let name = ObjectName::new("", node);
        let record = NodeRecord { ips: ips.to_vec() };
        let odd = ips.iter().any(|ip| is_odd(ip)) || ips.len() > 1;
        let known = self.nodes.find(&name).is_some();
        let written = match known {
            false => self.create(name, record).is_some(),
            true => self.edit::<NodeRecord>(&name, |stored| stored.body = record),
        };
        self.notice(KubeFault::NodeChanged, written && known);
        self.notice(KubeFault::OddAddresses, written && odd);
        written
    }

    /// Deletes a Node.
    pub fn delete_node(&mut self, node: &str) -> bool {
        let gone = self.remove::<NodeRecord>(&ObjectName::new("", node));
        self.notice(KubeFault::NodeChanged, gone);
        gone
    }

    /// Creates a pod.
    pub fn create_pod(&mut self, name: &ObjectName, record: PodRecord) -> bool {
        let ips = record.ips.clone();
        let Some(uid) = self.create(name.clone(), record) else { return false };
        self.notice_name(Kind::Pod, name);
        self.notice_addresses(uid, &ips);
        true
    }

    /// A pod gets its node and its addresses, and runs.
    pub fn place_pod(
        &mut self,
        name: &ObjectName,
        node: &str,
        ips: &[Arc<str>],
        host_ips: &[Arc<str>],
    ) -> bool {
        let placed = self.edit::<PodRecord>(name, |stored| {
            stored.body.node = Some(node.into());
            stored.body.ips = ips.to_vec();
            stored.body.host_ips = host_ips.to_vec();
            stored.body.phase = Phase::Running;
        });
        if let Some(uid) = self.pod(name).map(|stored| stored.meta.uid).filter(|_| placed) {
            self.notice_addresses(uid, ips);
        }
        placed
    }

    /// A pod loses its addresses, as when its sandbox is made anew.
    pub fn clear_pod_ips(&mut self, name: &ObjectName) -> bool {
        self.edit::<PodRecord>(name, |stored| stored.body.ips.clear())
    }

    /// A pod gets on.
    pub fn set_phase(&mut self, name: &ObjectName, phase: Phase) -> bool {
        self.edit::<PodRecord>(name, |stored| stored.body.phase = phase)
    }

    /// Changes or removes a pod's egress label.
    pub fn label_pod(&mut self, name: &ObjectName, egress: Option<Arc<str>>) -> bool {
        let before = self.pod(name).map(|stored| (stored.meta.uid, stored.body.egress.clone()));
        let changed = self.edit::<PodRecord>(name, |stored| stored.body.egress = egress.clone());
        if let Some((uid, label)) = before.filter(|_| changed) {
            let returned = self.memory.labels_before.insert(uid, label) == Some(egress);
            self.notice(KubeFault::LabelReturned, returned);
        }
        changed
    }

    /// A pod is asked to end: it has a deletion timestamp, and its containers still run.
    pub fn terminate_pod(&mut self, name: &ObjectName) -> bool {
        let seconds = self.now().as_millis() / 1000;
        self.edit::<PodRecord>(name, |stored| {
            stored.meta.deletion_seconds.get_or_insert(seconds);
        })
    }

    /// A pod is gone. Even one that is deleted by force is seen to be asked to end first.
    pub fn delete_pod(&mut self, name: &ObjectName) -> bool {
        self.terminate_pod(name);
        self.remove::<PodRecord>(name)
    }

    fn notice(&mut self, fault: KubeFault, happened: bool) {
        if happened {
            self.happened.add(fault);
        }
    }

    fn notice_name(&mut self, kind: Kind, name: &ObjectName) {
        let reused = !self.memory.names_used.insert((kind, name.clone()));
        self.notice(KubeFault::NameReused, reused);
    }

    fn notice_addresses(&mut self, uid: Uid, ips: &[Arc<str>]) {
        for ip in ips {
            let last = self.memory.last_pod_with.insert(Arc::clone(ip), uid);
            self.notice(KubeFault::AddressReused, last.is_some_and(|last| last != uid));
            self.notice(KubeFault::OddAddresses, is_odd(ip));
        }
        self.notice(KubeFault::OddAddresses, ips.len() > 1);
    }
}

/// Not the canonical text of an address.
fn is_odd(text: &str) -> bool {
    text.parse::<IpAddr>().map_or(true, |ip| ip.to_canonical().to_string() != text)
}
