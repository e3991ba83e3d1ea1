//! The one entrance: a fact comes in, every consequence goes out.
//!
//! [`Engine::handle`] overwrites what is wanted or what is known, settles the services that the
//! fact touched, and hands out slots. It reads no clock, opens no socket and spawns no task:
//! the same events at the same times give the same effects, which is what lets the simulator
//! replay a bug from a seed.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::Cell;
use core::mem;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use sluice_model::effect::{About, Cause, Listable, Notice};
use sluice_model::kube::Kind;
use sluice_model::notices::is_promised;
use sluice_model::reason::{Reason, names_an_action};
use sluice_model::seeded::{Bug, Seeded};
use sluice_model::{Action, Effect, EffectId, Event, ObjectName, Outcome, ServiceKey, Time, Uid};

use crate::addresses::{Addresses, ServiceIndex};
use crate::adoption::Adoptions;
use crate::changes::Changes;
use crate::config::Config;
use crate::counters::Counters;
use crate::dispatch::Dispatch;
use crate::explain::{Refusal, Refusals};
use crate::foundation::Foundation;
use crate::hold::{Jitter, Outages};
use crate::intake::Warned;
use crate::service::{Compared, Service};
use crate::survey::Survey;

/// Rounds of work that one event can need at most; more would be a cycle.
const ROUNDS_MAX: usize = 16;

/// The engine.
pub struct Engine {
    pub(crate) config: Config,
    pub(crate) seeded: Seeded,
    pub(crate) now: Time,
    pub(crate) leadership: Leadership,
    pub(crate) jitter: Jitter,
    pub(crate) outages: Outages,

    pub(crate) addresses: Addresses,
    pub(crate) services: Vec<Option<Box<Service>>>,
    pub(crate) by_key: HashMap<ServiceKey, ServiceIndex, FixedState>,
    pub(crate) outbounds: BTreeSet<ServiceIndex>,
    /// How many of them there are in Azure or on their way, while that is known.
    pub(crate) egress_count: Cell<Option<usize>>,
    /// The Services of our type and class, and those with our finalizer or an inherited one, by name.
    pub(crate) names: HashMap<ObjectName, Uid, FixedState>,
    /// Services that exist and are not ours, with the version of our last sight or write of them.
    pub(crate) bystanders: HashMap<Uid, u64, FixedState>,
    pub(crate) ipv6_nodes: BTreeSet<Arc<str>>,
    /// Pods that people have been, or are to be, warned about.
    pub(crate) warned_pods: HashMap<Uid, Warned, FixedState>,
    /// The pods are being listed again, to warn about some of them.
    pub(crate) pods_asked_for: bool,
    pub(crate) services_asked_for: AskedFor,
    pub(crate) newest: [u64; 4],
    pub(crate) kinds_listed: [bool; 4],
    /// The last list of a kind was too old, and the next has not come yet.
    pub(crate) list_refused: [bool; 4],

    pub(crate) survey: Survey,
    pub(crate) foundation: Foundation,
    pub(crate) dispatch: Dispatch,
    pub(crate) adoptions: Adoptions,
    pub(crate) in_flight: BTreeMap<EffectId, Errand>,
    /// When the location sync in flight began.
    pub(crate) sync: Option<Time>,
    pub(crate) sync_not_before: Time,
    /// Addresses promoted before the last batch.
    pub(crate) promoted: u64,
    /// Addresses that sweeps found different, and that have not all been written again since.
    pub(crate) address_drift: u64,
    pub(crate) touched: BTreeSet<ServiceIndex>,
    pub(crate) timers: BTreeSet<(Time, ServiceIndex)>,
    next_effect: u64,
    out: Vec<Effect>,
    pub(crate) changes: Changes,
    /// What was last noted of the trouble that all services share.
    pub(crate) trouble_noted: [Option<Reason>; 2],
    pub(crate) counters: Counters,
    refusals: Refusals,
}

/// Whether we may act.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Leadership {
    /// Watches, and keeps what is wanted.
    Standby,
    /// Acts.
    Leading,
    /// Has led and lost the lease; never acts again. The process ends.
    Retired,
}

/// Whether a list that is asked for at most once has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AskedFor {
    NotYet,
    Requested,
    Received,
}

/// What an effect in flight was for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Errand {
    Plan(ServiceIndex),
    Foundation,
    Sync,
    List(Listable),
    Kube(ServiceIndex, KubeWrite),
    Confirm(ServiceIndex),
}

/// What a write to Kubernetes was to change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum KubeWrite {
    Finalizer(bool),
    Status {
        ingress: Option<core::net::IpAddr>,
        retract: Option<core::net::IpAddr>,
        conditions: Vec<sluice_model::kube::Condition>,
    },
}

impl core::fmt::Debug for Engine {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Engine")
            .field("now", &self.now)
            .field("services", &self.services)
            .finish_non_exhaustive()
    }
}

impl Engine {
    /// An engine on standby. The seed decides nothing but jitter.
    pub fn new(config: Config, seed: u64, seeded: Seeded) -> Engine {
        Engine {
            addresses: Addresses::new(config.locations, seed, seeded),
            dispatch: Dispatch::new(config.slots_max),
            adoptions: Adoptions::default(),
            survey: Survey::default(),
            foundation: Foundation::default(),
            config,
            seeded,
            now: Time::ZERO,
            leadership: Leadership::Standby,
            jitter: Jitter::new(seed),
            outages: Outages::default(),
            services: Vec::new(),
            by_key: HashMap::default(),
            outbounds: BTreeSet::new(),
            egress_count: Cell::new(None),
            names: HashMap::default(),
            bystanders: HashMap::default(),
            ipv6_nodes: BTreeSet::new(),
            warned_pods: HashMap::default(),
            pods_asked_for: false,
            services_asked_for: AskedFor::NotYet,
            newest: [0; 4],
            kinds_listed: [false; 4],
            list_refused: [false; 4],
            in_flight: BTreeMap::new(),
            sync: None,
            sync_not_before: Time::ZERO,
            promoted: 0,
            address_drift: 0,
            touched: BTreeSet::new(),
            timers: BTreeSet::new(),
            next_effect: 1,
            out: Vec::new(),
            changes: Changes::default(),
            trouble_noted: [None; 2],
            counters: Counters::default(),
            refusals: Refusals::default(),
        }
    }

    /// Takes one fact and returns every consequence.
    pub fn handle(&mut self, now: Time, event: Event) -> Vec<Effect> {
        self.now = self.now.max(now);
        self.addresses.advance(self.now);
        self.egress_count.set(None);
        self.take_in(event);
        if self.is_leading() {
            self.wake_the_due();
            self.work();
        } else {
            for service in core::mem::take(&mut self.touched) {
                self.changes.look_at(service);
            }
            self.addresses.take_touched();
        }
        self.note_shared_trouble();
        self.number_changes();
        mem::take(&mut self.out)
    }

    /// When to call [`Engine::handle`] with [`Event::Tick`] if nothing else happens before.
    pub fn next_deadline(&self) -> Option<Time> {
        if !self.is_leading() {
            return None;
        }
        let services = self.timers.first().map(|(at, _)| *at);
        let locations = match self.may_sync() {
            true => self.addresses.wake_at().map(|at| at.max(self.sync_not_before)),
            false => None,
        };
        let survey = self.survey.next_deadline();
        let foundation = self.foundation.next_deadline();
        let adoption = self.adoptions.next_deadline().filter(|_| self.may_adopt());
        let trouble = self.addresses.lane_trouble_at();
        [services, locations, survey, foundation, adoption, trouble]
            .into_iter()
            .flatten()
            .min()
            .filter(|at| *at != Time::NEVER)
    }

    /// Inputs that were not acted on, oldest first; bounded.
    pub fn refusals(&self) -> Vec<Refusal> {
        self.refusals.entries()
    }

    /// What has been counted.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// What has been counted about addresses.
    pub fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    fn take_in(&mut self, event: Event) {
        match event {
            Event::ServiceApplied(object) if self.is_news(Kind::Service, object.version) => {
                self.service_applied(object);
            }
            Event::ServiceDeleted { uid, .. } => self.service_deleted(uid),
            Event::SliceApplied(slice) if self.is_news(Kind::Slice, slice.version) => {
                self.addresses.apply_slice(&slice);
            }
            // Without a version of its own, a deletion is believed only of a watch that stands on a good list.
            Event::SliceDeleted(_) if self.list_refused[Kind::Slice as usize] => {}
            Event::NodeDeleted(_) if self.list_refused[Kind::Node as usize] => {}
            Event::SliceDeleted(name) => self.addresses.remove_slice(&name),
            Event::NodeApplied(node) if self.is_news(Kind::Node, node.version) => {
                self.node_applied(&node);
            }
            Event::NodeDeleted(name) => self.node_deleted(&name),
            Event::PodApplied(pod) if self.is_news(Kind::Pod, pod.version) => {
                self.pod_applied(&pod);
            }
            Event::PodDeleted { uid } => self.pod_deleted(uid),
            Event::Relisted { version, objects } => self.relisted(version, objects),
            Event::EgressAdded(name) => self.egress_requested(name, true),
            Event::EgressReleased(name) => self.egress_requested(name, false),
            Event::LeadershipGained => self.leadership_gained(),
            Event::LeadershipLost => {
                if self.leadership == Leadership::Leading {
                    self.leadership = Leadership::Retired;
                }
            }
            Event::DeletionAllowed(allowed) => self.deletion_allowed(allowed),
            Event::EffectFinished { id, outcome } => self.effect_finished(id, outcome),
            Event::SlotReleased { id, wait } => {
                self.dispatch.release(id);
                self.note_wait(id, Some(wait), true);
            }
            Event::Held { id, wait } => match self.in_flight.get(&id) {
                Some(Errand::Sync) => self.addresses.hold_flight(wait),
                _ => self.note_wait(id, Some(wait), false),
            },
            Event::SlotWanted(id) => match self.in_flight.get(&id) {
                Some(Errand::Plan(_)) => {
                    self.dispatch.ask(id);
                    self.note_wait(id, None, false);
                }
                // Everything stands on the gateway, so its plan never waits for a slot.
                Some(Errand::Foundation) if self.is_leading() => {
                    self.emit(Action::ResumePlan(id), Cause::SlotGranted);
                }
                _ => {}
            },
            Event::RegistrationsRead { began, all } => self.registrations_read(began, all),
            Event::Throttled { calls, wait } => self.report_pause(calls, wait),
            Event::ServiceApplied(_)
            | Event::SliceApplied(_)
            | Event::NodeApplied(_)
            | Event::PodApplied(_) => {}
            Event::Tick => {}
        }
    }

    /// Whether an object of a watch is at least as new as the newest of its kind. Watches bring one kind in the
    /// order of its versions, so anything older comes from a watch that began at a list which was refused.
    fn is_news(&mut self, kind: Kind, version: u64) -> bool {
        let newest = self.newest.get(kind as usize).copied().unwrap_or(0);
        if version < newest && version != 0 && !self.seeded.has(Bug::TrustStaleList) {
            self.refuse(format!("{kind:?} at version {version}"), format!("version {newest} has been seen"));
            return false;
        }
        if let Some(newest) = self.newest.get_mut(kind as usize) {
            *newest = (*newest).max(version);
        }
        true
    }

    fn leadership_gained(&mut self) {
        if self.leadership != Leadership::Standby {
            self.refuse("leadership".into(), "an engine leads once; make a new one".into());
            return;
        }
        self.leadership = Leadership::Leading;
        self.survey.start(self.now);
        for kind in Kind::ALL {
            // What was too old while we could not ask for better.
            if self.list_refused[kind as usize] {
                self.emit(Action::Relist(kind), Cause::StartUp);
            }
        }
        self.warn_of_pods();
        self.touch_all();
    }

    fn effect_finished(&mut self, id: EffectId, outcome: Outcome) {
        let Some(errand) = self.in_flight.remove(&id) else {
            self.refuse(format!("{id}"), "no such effect is in flight".into());
            return;
        };
        match (errand, outcome) {
            (Errand::Plan(service), Outcome::Plan(report)) => self.plan_finished(service, id, report),
            (Errand::Foundation, Outcome::Plan(report)) => self.foundation_finished(report),
            (Errand::Sync, Outcome::Locations { failure, next_at }) => self.sync_finished(failure, next_at),
            (Errand::List(kind), Outcome::Listed { began, result }) => self.listed(kind, began, result),
            (Errand::Kube(service, write), Outcome::Kube(outcome)) => {
                self.kube_finished(service, id, write, outcome)
            }
            (Errand::Confirm(service), Outcome::Existence(existence)) => {
                self.existence(service, id, existence)
            }
            (errand, _) => {
                self.refuse(format!("{id}"), "its outcome is of another kind; still waiting".into());
                self.in_flight.insert(id, errand);
            }
        }
    }

    /// Settles what was touched, looks, hands out slots and sends addresses, until nothing is left to do.
    ///
    /// Each part can touch services again (the baseline touches all), so one round is not enough.
    fn work(&mut self) {
        for _ in 0..ROUNDS_MAX {
            self.settle_touched();
            self.work_on_survey();
            self.work_on_foundation();
            if !self.touched.is_empty() {
                // Nothing is sent before everybody has settled.
                continue;
            }
            self.note_first_difference();
            self.hand_out_slots();
            self.hand_out_adoption();
            self.sync_locations();
            if self.touched.is_empty() {
                return;
            }
        }
        self.counters.internal_errors = self.counters.internal_errors.saturating_add(1);
        self.refuse(
            "an event".into(),
            "its consequences did not come to an end; they go on with the next".into(),
        );
    }

    fn settle_touched(&mut self) {
        loop {
            self.take_address_news();
            let Some(service) = self.touched.pop_first() else { break };
            self.settle(service);
        }
    }

    fn wake_the_due(&mut self) {
        while let Some(&(at, service)) = self.timers.first() {
            if at > self.now {
                break;
            }
            self.timers.pop_first();
            if let Some(record) = self.record_mut(service) {
                record.wake = None;
                self.retry_due(service);
                self.touch(service);
            }
        }
    }

    pub(crate) fn record(&self, service: ServiceIndex) -> Option<&Service> {
        self.services.get(service.as_usize())?.as_deref()
    }

    pub(crate) fn record_mut(&mut self, service: ServiceIndex) -> Option<&mut Service> {
        self.services.get_mut(service.as_usize())?.as_deref_mut()
    }

    /// The record of a key, made if there is none.
    pub(crate) fn open(&mut self, key: &ServiceKey) -> ServiceIndex {
        if let Some(&service) = self.by_key.get(key) {
            return service;
        }
        let service = self.addresses.open(&key.identity());
        let at = service.as_usize();
        if self.services.len() <= at {
            self.services.resize_with(at + 1, || None);
        }
        let mut record = Service::new(key.clone(), service, self.now);
        if self.survey.is_complete() {
            // All of Azure has been listed, and nothing of this service was in it.
            self.survey.fill(key, &mut record.actual);
        }
        self.services[at] = Some(Box::new(record));
        self.by_key.insert(key.clone(), service);
        if !key.is_inbound() {
            self.outbounds.insert(service);
        }
        self.touch(service);
        service
    }

    /// Drops a record for good.
    pub(crate) fn forget(&mut self, service: ServiceIndex) {
        let Some(record) = self.services.get_mut(service.as_usize()).and_then(Option::take) else { return };
        if let Some(at) = record.wake {
            self.timers.remove(&(at, service));
        }
        self.dispatch.dequeue(service);
        self.changes.gone(&record.key, record.change);
        self.by_key.remove(&record.key);
        self.survey.forget(&record.key, self.now, record.actual.found());
        if let (ServiceKey::Inbound(uid), Some(object)) = (&record.key, &record.object) {
            // The object lives on without us.
            self.unbind(*uid, &object.name);
            self.bystanders.insert(*uid, object.version);
        }
        self.addresses.close(service);
        self.survey.discovered.remove(&service);
        self.leave_initial_sync(service);
        if !record.key.is_inbound() {
            self.outbounds.remove(&service);
            // One egress fewer may be the one that another was waiting for.
            self.egress_count.set(None);
            let is_waiting = |other: &&ServiceIndex| {
                let record = self.record(**other);
                record.is_some_and(|it| matches!(it.compared, Some(Compared::Invalid(..))))
            };
            let waiting: Vec<ServiceIndex> = self.outbounds.iter().filter(is_waiting).copied().collect();
            for other in waiting {
                self.recompare(other);
            }
        }
    }

    pub(crate) fn touch(&mut self, service: ServiceIndex) {
        self.touched.insert(service);
    }

    pub(crate) fn touch_all(&mut self) {
        let all: Vec<ServiceIndex> = self.services.iter().flatten().map(|record| record.index).collect();
        self.touched.extend(all);
    }

    /// What is wanted or known of a service has changed.
    pub(crate) fn recompare(&mut self, service: ServiceIndex) {
        if let Some(record) = self.record_mut(service) {
            record.compared = None;
            self.touch(service);
        }
    }

    pub(crate) fn emit(&mut self, action: Action, cause: Cause) -> EffectId {
        let id = EffectId(self.next_effect);
        self.next_effect += 1;
        self.out.push(Effect { id, action, cause });
        id
    }

    /// Emits an action whose end will be reported.
    pub(crate) fn send(&mut self, action: Action, cause: Cause, errand: Errand) -> EffectId {
        let id = self.emit(action, cause);
        self.in_flight.insert(id, errand);
        id
    }

    pub(crate) fn notify(&mut self, about: About, warning: bool, reason: Reason, text: String) {
        if self.is_leading() {
            let notice = Notice { about, warning, reason, text };
            debug_assert!(is_promised(&notice), "no row in the table of events: {notice:?}");
            debug_assert!(
                !warning || names_an_action(&notice.text),
                "it does not say what to do: {notice:?}"
            );
            self.emit(Action::Notify(notice), Cause::Notice);
        }
    }

    pub(crate) fn refuse(&mut self, what: String, why: String) {
        self.counters.refusals = self.counters.refusals.saturating_add(1);
        self.refusals.push(self.now, what, why);
    }
}
