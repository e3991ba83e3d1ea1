//! What Kubernetes tells us: objects in, levels overwritten.
//!
//! Nothing here decides about Azure. Every fact of an object is fenced by its UID, and an
//! object that is missing from a list is only *vanished* until the API server confirms it.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use foldhash::fast::FixedState;
use hashbrown::HashSet;
use sluice_model::effect::{About, Cause, Existence};
use sluice_model::event::Relist;
use sluice_model::kube::{Kind, NodeObject, ObjectRef, Phase, PodObject, ServiceObject, ServiceSpec};
use sluice_model::reason::Reason;
use sluice_model::seeded::Bug;
use sluice_model::{Action, Effect, EffectId, EgressName, Event, Family, ObjectName, ServiceKey, Time, Uid};

use crate::addresses::{OwnerKey, ServiceIndex};
use crate::engine::{AskedFor, Engine, Errand};
use crate::service::Vanished;
use crate::state::Trigger;

/// A pod whose egress label has no effect.
#[derive(Debug)]
pub(crate) struct Warned {
    /// The label that was wrong.
    label: Arc<str>,
    /// What people have not been told yet, because another process leads.
    unsaid: Option<(ObjectName, String)>,
}

impl Engine {
    pub(crate) fn service_applied(&mut self, mut object: ServiceObject) {
        if self.seeded.has(Bug::ForgetInheritedFinalizer) {
            object.inherited = false;
        }
        let mut key = ServiceKey::Inbound(object.uid);
        if self.seeded.has(Bug::ForgetUidCheck)
            && let Some(before) = self.names.get(&object.name)
        {
            key = ServiceKey::Inbound(*before);
        }
        let known = self.by_key.get(&key).copied();
        let shown = object.version;
        if self.is_older_than_held(known, &object) && !self.is_news_of_spec(known, &mut object) {
            return;
        }
        // An IP of ours that it shows is ours to retract, even if our finalizer was taken off by force.
        let ours = object.is_left_to_us() || (object.selected && !object.deleting);
        if known.is_none() && !ours {
            self.bystanders.insert(object.uid, object.version);
            return;
        }
        self.bystanders.remove(&object.uid);
        let service = match known {
            Some(service) => service,
            None => self.open(&key),
        };
        self.take_name(object.uid, &object.name, service);
        let owner = OwnerKey::Uid(Arc::clone(&object.name.namespace), object.uid);
        self.addresses.bind(owner, Some(service));
        let Some(record) = self.record_mut(service) else { return };
        let was_missing = record.vanished.take().is_some();
        let left = record.object.as_ref().is_some_and(|before| before.selected) && !object.selected;
        let asks_to_go = object.deleting || !object.load_balancer || left;
        record.evident = asks_to_go || record.evident && !object.selected;
        record.seen_version = shown;
        let published = record.object.as_ref().map(|before| before.published);
        let by_us = record.kube.in_flight.is_some();
        if asks_to_go || was_missing {
            self.release_from_brake(service);
        }
        let Some(record) = self.record_mut(service) else { return };
        if let Some(before) = &record.object
            && same_spec(&before.spec, &object.spec)
            && before.selected == object.selected
            && before.deleting == object.deleting
        {
            record.object = Some(Box::new(object));
            record.note_said_before();
            self.note_published(service, published, by_us);
            self.touch(service);
            return;
        }
        record.object = Some(Box::new(object));
        record.note_said_before();
        // A change of spec, or its deletion, ends any park at once.
        record.hold = None;
        record.attempts = Default::default();
        record.compared = None;
        self.note_published(service, published, by_us);
        self.fire(service, Trigger::SpecChanged);
        self.touch(service);
    }

    /// Whether we hold a newer state of this very incarnation: our own writes are known before the watch shows
    /// them, and what it shows of the time before must not make us write the same again.
    fn is_older_than_held(&self, known: Option<ServiceIndex>, object: &ServiceObject) -> bool {
        let held = match known.and_then(|service| self.record(service)) {
            Some(record) => {
                let held = record.object.as_ref().filter(|held| held.uid == object.uid);
                held.map(|held| held.version)
            }
            None => self.bystanders.get(&object.uid).copied(),
        };
        object.version != 0
            && held.is_some_and(|held| object.version < held)
            && !self.seeded.has(Bug::TrustStaleList)
    }

    /// Our write hides what somebody changed right before it, and says nothing about it: that counts. What the
    /// write left in the object is put into the older state, which then is as new as the one we hold.
    fn is_news_of_spec(&self, known: Option<ServiceIndex>, object: &mut ServiceObject) -> bool {
        let Some(record) = known.and_then(|service| self.record(service)) else { return false };
        let Some(held) = &record.object else { return false };
        let same = same_spec(&held.spec, &object.spec)
            && held.selected == object.selected
            && held.deleting == object.deleting;
        if same || object.version <= record.seen_version {
            return false;
        }
        object.version = held.version;
        object.finalizer = held.finalizer;
        object.ingress.clone_from(&held.ingress);
        object.published = held.published;
        object.annotated = held.annotated;
        object.conditions.clone_from(&held.conditions);
        true
    }

    pub(crate) fn service_deleted(&mut self, uid: Uid) {
        self.bystanders.remove(&uid);
        if let Some(&service) = self.by_key.get(&ServiceKey::Inbound(uid)) {
            self.object_vanished(service, true);
        }
    }

    /// The object is not in the lists any more. If that could cost something, the API server is asked.
    fn object_vanished(&mut self, service: ServiceIndex, seen_to_go: bool) {
        let skip = self.seeded.has(Bug::SkipConfirmGone);
        let Some(record) = self.record_mut(service) else { return };
        let Some(object) = &record.object else { return };
        let idle = record.operation.is_none() && record.actual.is_nothing();
        let on_its_way = object.deleting && (seen_to_go || !object.finalizer);
        record.evident |= seen_to_go || object.deleting;
        let by_comparison = !record.evident;
        if on_its_way || idle || skip {
            self.object_gone(service);
        } else if record.vanished.is_none() {
            record.vanished = Some(Vanished::default());
        }
        if by_comparison {
            // Counted before the API server confirms it, or the first few would go before the last are confirmed.
            self.note_vanished(service);
        }
        self.touch(service);
    }

    fn object_gone(&mut self, service: ServiceIndex) {
        let Some(record) = self.record_mut(service) else { return };
        record.vanished = None;
        record.compared = None;
        record.kube = Default::default();
        let (Some(object), ServiceKey::Inbound(uid)) = (record.object.take(), record.key.clone()) else {
            return;
        };
        record.hold = None;
        record.attempts = Default::default();
        self.unbind(uid, &object.name);
        self.note_vanished(service);
        self.touch(service);
    }

    /// Asks the API server about an object that has vanished.
    pub(crate) fn ask_for_the_vanished(&mut self, service: ServiceIndex) {
        let now = self.now;
        let Some(record) = self.record_mut(service) else { return };
        let ServiceKey::Inbound(uid) = record.key else { return };
        let name = match &record.object {
            Some(object) => Some(object.name.clone()),
            None => record.actual.owner_name(),
        };
        let Some(vanished) = &mut record.vanished else { return };
        if vanished.asking.is_some() || vanished.ask_at > now {
            return;
        }
        let Some(name) = name else {
            // Nothing says what it was called; two complete lists without it have to do.
            record.vanished = None;
            self.touch(service);
            return;
        };
        let object = ObjectRef { uid, name };
        let id = self.send(Action::ConfirmGone(object), Cause::ServiceUnwanted, Errand::Confirm(service));
        if let Some(vanished) = self.record_mut(service).and_then(|record| record.vanished.as_mut()) {
            vanished.asking = Some(id);
        }
    }

    pub(crate) fn existence(&mut self, service: ServiceIndex, id: EffectId, existence: Existence) {
        let retry = self.config.retry.clone();
        let now = self.now;
        let Some(record) = self.record_mut(service) else { return };
        let Some(vanished) = record.vanished.as_mut().filter(|it| it.asking == Some(id)) else { return };
        vanished.asking = None;
        match existence {
            Existence::Gone if record.object.is_some() => {
                self.object_gone(service);
                self.look_at_the_brake();
            }
            Existence::Gone => record.vanished = None,
            Existence::Exists => {
                // It is there, so the watch has lost it: list again, and leave it alone meanwhile.
                vanished.ask_at = now + retry.backoff_max;
                self.emit(Action::Relist(Kind::Service), Cause::DriftFound);
            }
            Existence::Unclear => {
                vanished.failures = vanished.failures.saturating_add(1);
                let span = retry.backoff_min.saturating_mul(vanished.failures.min(30));
                vanished.ask_at = now + span.min(retry.backoff_max);
            }
        }
        self.touch(service);
    }

    /// A name leads to one object at a time: whoever had it before has vanished.
    fn take_name(&mut self, uid: Uid, name: &ObjectName, service: ServiceIndex) {
        if let Some(before) = self.names.insert(name.clone(), uid)
            && before != uid
            && let Some(&other) = self.by_key.get(&ServiceKey::Inbound(before))
        {
            self.object_vanished(other, false);
        }
        self.addresses.bind(OwnerKey::Name(name.clone()), Some(service));
    }

    pub(crate) fn unbind(&mut self, uid: Uid, name: &ObjectName) {
        self.addresses.bind(OwnerKey::Uid(Arc::clone(&name.namespace), uid), None);
        if self.names.get(name) == Some(&uid) {
            self.names.remove(name);
            self.addresses.bind(OwnerKey::Name(name.clone()), None);
        }
    }

    pub(crate) fn node_applied(&mut self, node: &NodeObject) {
        let before = self.ipv6_nodes.is_empty();
        if node.internal_ips.iter().any(|ip| Family::of(*ip) == Family::V6) {
            self.ipv6_nodes.insert(node.name.clone());
        } else {
            self.ipv6_nodes.remove(&node.name);
        }
        self.addresses.apply_node(node);
        self.compare_egresses_if(before != self.ipv6_nodes.is_empty());
    }

    pub(crate) fn node_deleted(&mut self, name: &str) {
        let before = self.ipv6_nodes.is_empty();
        self.ipv6_nodes.remove(name);
        self.addresses.remove_node(name);
        self.compare_egresses_if(before != self.ipv6_nodes.is_empty());
    }

    fn compare_egresses_if(&mut self, changed: bool) {
        if changed {
            let all: Vec<ServiceIndex> = self.outbounds.iter().copied().collect();
            for service in all {
                self.recompare(service);
            }
        }
    }

    pub(crate) fn pod_applied(&mut self, pod: &PodObject) {
        let before = self.addresses.pod_egress(pod.uid);
        let egress = self.egress_of(pod).map(|name| self.open(&ServiceKey::Outbound(name)));
        self.addresses.apply_pod(pod, egress);
        for service in before.into_iter().chain(egress) {
            self.note_last_pod(service, before == Some(service));
        }
        if !self.is_leading() {
            return;
        }
        if let Some((address, egress)) = self.addresses.take_held(pod.uid) {
            let text = format!(
                "Address {address} belongs to the unmanaged egress {egress} in the gateway, so this pod's egress does not get it. Remove the address from that egress, or delete the egress"
            );
            let about = About::Pod(ObjectRef { uid: pod.uid, name: pod.name.clone() });
            self.notify(about, true, Reason::Conflict, text);
        }
    }

    pub(crate) fn pod_deleted(&mut self, uid: Uid) {
        self.warned_pods.remove(&uid);
        let before = self.addresses.pod_egress(uid);
        self.addresses.remove_pod(uid);
        if let Some(service) = before {
            self.note_last_pod(service, true);
        }
    }

    /// Keeps the evidence about an egress: whether this replica watched its last pod go.
    fn note_last_pod(&mut self, service: ServiceIndex, watched: bool) {
        let gone = self.addresses.pods(service) == 0;
        let Some(record) = self.record_mut(service) else { return };
        record.evident = gone && (watched || record.evident);
        if !gone {
            self.release_from_brake(service);
        }
    }

    /// The egress that a pod may use; a pod that asks for what cannot be is warned about once.
    fn egress_of(&mut self, pod: &PodObject) -> Option<EgressName> {
        let Some(label) = &pod.egress else {
            self.warned_pods.remove(&pod.uid);
            return None;
        };
        let forbidden = self
            .config
            .egress_namespaces
            .as_ref()
            .is_some_and(|allowed| !allowed.contains(&pod.name.namespace));
        let (why, step) = if forbidden {
            let namespace = &pod.name.namespace;
            let why = format!("namespace {namespace} is not in sluice.egress.namespaces");
            (why, "Add it, or remove the label")
        } else if pod.host_network {
            ("the pod uses the host network".to_string(), "Remove hostNetwork or the label")
        } else {
            match EgressName::parse(label) {
                Ok(name) => {
                    self.warned_pods.remove(&pod.uid);
                    return Some(name);
                }
                Err(bad) => (format!("the name {}", bad.why), "Correct the label"),
            }
        };
        let known = self.warned_pods.get(&pod.uid).is_some_and(|warned| warned.label == *label);
        if pod.phase != Phase::Finished && !known {
            let text = format!("Ignored egress label {label:?}: {why}. {step}");
            self.refuse(format!("pod {}", pod.name), why);
            let unsaid = Some((pod.name.clone(), text));
            self.warned_pods.insert(pod.uid, Warned { label: label.clone(), unsaid });
            if self.is_leading() {
                self.warn_of_pod(pod.uid);
            }
        }
        None
    }

    /// Says what a standby had to keep to itself.
    pub(crate) fn warn_of_pods(&mut self) {
        let mut pods: Vec<Uid> = self.warned_pods.keys().copied().collect();
        pods.sort_unstable();
        for uid in pods {
            self.warn_of_pod(uid);
        }
    }

    fn warn_of_pod(&mut self, uid: Uid) {
        let unsaid = self.warned_pods.get_mut(&uid).and_then(|warned| warned.unsaid.take());
        if let Some((name, text)) = unsaid {
            self.notify(About::Pod(ObjectRef { uid, name }), true, Reason::InvalidSpec, text);
        }
    }

    pub(crate) fn egress_requested(&mut self, name: EgressName, requested: bool) {
        let key = ServiceKey::Outbound(name);
        if !requested && !self.by_key.contains_key(&key) {
            return;
        }
        let service = self.open(&key);
        if let Some(record) = self.record_mut(service) {
            record.requested = requested;
            record.evident = !requested;
        }
        self.touch(service);
    }

    pub(crate) fn relisted(&mut self, version: u64, objects: Relist) {
        let kind = match &objects {
            Relist::Services(_) => Kind::Service,
            Relist::Slices(_) => Kind::Slice,
            Relist::Nodes(_) => Kind::Node,
            Relist::Pods(_) => Kind::Pod,
        };
        if version < self.newest[kind as usize] && !self.seeded.has(Bug::TrustStaleList) {
            self.refuse(
                format!("list of {kind:?} at version {version}"),
                "a newer version has been seen".into(),
            );
            self.list_refused[kind as usize] = true;
            // A standby asks for nothing; it lists again when it leads.
            if self.is_leading() {
                self.emit(Action::Relist(kind), Cause::DriftFound);
            }
            return;
        }
        self.list_refused[kind as usize] = false;
        self.newest[kind as usize] = self.newest[kind as usize].max(version);
        match objects {
            Relist::Services(all) => {
                self.services_relisted(all);
                if self.services_asked_for == AskedFor::Requested {
                    self.services_asked_for = AskedFor::Received;
                    self.touch_all();
                }
            }
            Relist::Slices(all) => {
                let keep: HashSet<ObjectName, FixedState> =
                    all.iter().map(|slice| slice.name.clone()).collect();
                self.addresses.retain_slices(|name| keep.contains(name));
                for slice in &all {
                    self.addresses.apply_slice(slice);
                }
            }
            Relist::Nodes(all) => {
                let keep: HashSet<&str, FixedState> = all.iter().map(|node| &*node.name).collect();
                let before = self.ipv6_nodes.is_empty();
                self.ipv6_nodes.retain(|name| keep.contains(&**name));
                self.addresses.retain_nodes(|name| keep.contains(name));
                for node in &all {
                    self.node_applied(node);
                }
                self.compare_egresses_if(before != self.ipv6_nodes.is_empty());
            }
            Relist::Pods(all) => {
                let keep: HashSet<Uid, FixedState> = all.iter().map(|pod| pod.uid).collect();
                let lost = self.addresses.retain_pods(|uid| keep.contains(&uid));
                self.warned_pods.retain(|uid, _| keep.contains(uid));
                self.pods_asked_for = false;
                for pod in &all {
                    self.pod_applied(pod);
                }
                self.pods_vanished(&lost);
            }
        }
        self.kinds_listed[kind as usize] = true;
        self.look_at_the_brake();
    }

    /// Egresses have lost pods that a list does not have; the second value says whether one was seen terminating.
    fn pods_vanished(&mut self, lost: &[(ServiceIndex, bool)]) {
        let unannounced: BTreeSet<ServiceIndex> =
            lost.iter().filter(|(_, terminating)| !terminating).map(|(service, _)| *service).collect();
        for &(service, _) in lost {
            self.note_last_pod(service, true);
        }
        for service in unannounced {
            if self.addresses.pods(service) == 0 {
                if let Some(record) = self.record_mut(service) {
                    record.evident = false;
                }
                self.note_vanished(service);
            }
        }
    }

    fn services_relisted(&mut self, all: Vec<ServiceObject>) {
        let keep: HashSet<Uid, FixedState> = all.iter().map(|object| object.uid).collect();
        self.bystanders.retain(|uid, _| keep.contains(uid));
        for object in all {
            self.service_applied(object);
        }
        let missing: Vec<ServiceIndex> = self
            .services
            .iter()
            .flatten()
            .filter(|record| record.object.as_ref().is_some_and(|object| !keep.contains(&object.uid)))
            .map(|record| record.index)
            .collect();
        for service in missing {
            self.object_vanished(service, false);
        }
    }
}

/// The operations of the design documents, for callers that have plain values. Each is one event.
impl Engine {
    /// An egress is wanted for its own sake. A name that cannot be is refused, and the refusal kept.
    pub fn add_service(&mut self, now: Time, egress: &str) -> Vec<Effect> {
        match self.parse_egress(egress) {
            Some(name) => self.handle(now, Event::EgressAdded(name)),
            None => Vec::new(),
        }
    }

    /// An egress is not wanted for its own sake any more.
    pub fn delete_service(&mut self, now: Time, egress: &str) -> Vec<Effect> {
        match self.parse_egress(egress) {
            Some(name) => self.handle(now, Event::EgressReleased(name)),
            None => Vec::new(),
        }
    }

    fn parse_egress(&mut self, egress: &str) -> Option<EgressName> {
        if egress.eq_ignore_ascii_case(EgressName::DEFAULT) {
            return Some(EgressName::default_outbound());
        }
        match EgressName::parse(egress) {
            Ok(name) => Some(name),
            Err(bad) => {
                self.refuse(format!("egress {egress:?}"), format!("{bad}"));
                None
            }
        }
    }
}

/// Equal as far as it can change anything.
fn same_spec(a: &ServiceSpec, b: &ServiceSpec) -> bool {
    a == b
        || a.idle_annotations != b.idle_annotations
            && *a == ServiceSpec { idle_annotations: a.idle_annotations.clone(), ..b.clone() }
}
