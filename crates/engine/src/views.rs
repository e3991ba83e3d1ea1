//! What people see: every service, and why one is where it is.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use sluice_model::ServiceKey;
use sluice_model::azure::ArmId;
use sluice_model::kube::Kind;
use sluice_model::reason::Reason;

use crate::addresses::ServiceIndex;
use crate::counters::Gauges;
use crate::engine::Engine;
use crate::explain::{Explanation, ServiceView, WaitsFor};
use crate::kube_writes::shown_ip;
use crate::service::{Compared, Service};
use crate::state::State;

impl Engine {
    /// Every service, sorted by key.
    pub fn services(&self) -> Vec<ServiceView> {
        let mut all: Vec<ServiceView> =
            self.services.iter().flatten().map(|record| self.view(record)).collect();
        all.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        all
    }

    /// One service; `None` if there is none of that key.
    pub fn view_of(&self, key: &ServiceKey) -> Option<ServiceView> {
        Some(self.view(self.record(*self.by_key.get(key)?)?))
    }

    /// Why one service is where it is.
    pub fn explain(&self, key: &ServiceKey) -> Option<Explanation> {
        let record = self.record(*self.by_key.get(key)?)?;
        Some(Explanation {
            view: self.view(record),
            waits_for: self.waits_for(record),
            timeline: record.timeline.entries(),
        })
    }

    /// Public IPs that somebody has taken our tag off: they stay in use and survive their services.
    pub fn released(&self) -> Vec<ArmId> {
        let mut released: Vec<ArmId> = Vec::new();
        for actual in self.services.iter().flatten().map(|record| &record.actual) {
            let slots = actual.public_ips.iter().zip(actual.released).filter(|(_, released)| *released);
            released.extend(slots.filter_map(|(slot, _)| slot.present()).map(|ip| ip.meta.id.clone()));
        }
        released.sort_unstable();
        released
    }

    /// Plans that work, and services and plans that wait for a slot.
    pub fn slots(&self) -> (usize, usize) {
        (self.dispatch.working(), self.dispatch.waiting())
    }

    /// How things stand now. Looks at every service, once per scrape.
    pub fn gauges(&self) -> Gauges {
        let mut gauges = Gauges {
            quarantined_addresses: u64::try_from(self.addresses.totals().quarantined).unwrap_or(u64::MAX),
            unclaimed: u64::try_from(self.unclaimed().len()).unwrap_or(u64::MAX),
            kept_for_others: u64::try_from(self.addresses.kept_for_others()).unwrap_or(u64::MAX),
            initial_sync_left: u64::try_from(self.initial_sync_left()).unwrap_or(u64::MAX),
            ..Gauges::default()
        };
        for record in self.services.iter().flatten() {
            let deleting = matches!(record.state, State::DeletionPending | State::DeletionInProgress);
            gauges.pending_deletions += u64::from(deleting);
            gauges.operations_active += u64::from(record.operation.is_some());
            gauges.parked += u64::from(record.hold.as_ref().is_some_and(|hold| hold.parked));
            gauges.held += u64::from(self.is_braked(record.index));
            let direction = usize::from(!record.key.is_inbound());
            gauges.states[direction][record.state as usize] += 1;
            if let Some(trouble) = self.lasting_trouble(record) {
                gauges.trouble[trouble.reason as usize] += 1;
            }
            if let Some(reason) = parked_for(record) {
                gauges.parked_for[reason as usize] += 1;
            }
            let wanted = u64::from(self.addresses_wanted(record));
            gauges.addresses_wanted += wanted;
            if record.buffered_since.is_some() {
                match record.key.is_inbound() {
                    true => gauges.buffered_endpoints += wanted,
                    false => gauges.buffered_pods += wanted,
                }
            }
        }
        gauges
    }

    fn view(&self, record: &Service) -> ServiceView {
        let service = record.index;
        ServiceView {
            key: record.key.clone(),
            object: record.object.as_ref().map(|object| object.name.clone()),
            state: record.state,
            since: record.since,
            wanted: self.is_wanted(service),
            operation: record.operation.as_ref().map(|operation| operation.id),
            hold: record.hold.clone(),
            invalid: match &record.compared {
                Some(Compared::Invalid(reason, text)) => Some((*reason, text.clone())),
                _ => None,
            },
            attempts: record.attempts.total,
            public_ip: shown_ip(record, &self.config.scope),
            pods: self.addresses.pods(service),
            wanted_since: record.wanted_since,
            last_attempt: record.last_attempt,
            last_failure: record.last_failure.clone(),
            addresses_wanted: self.addresses_wanted(record),
            addresses_programmed: self.addresses.programmed_of_wanted(service),
            addresses_mapped: self.addresses.mapped(service),
            addresses_buffered: match record.buffered_since {
                Some(_) => self.addresses_wanted(record),
                None => 0,
            },
            addresses_unplaceable: self.addresses.unplaceable(service),
            addresses_quarantined: self.addresses.quarantined(service),
            live: record.actual.is_live(),
            held: self.held(record),
            trouble: self.told_trouble(record),
        }
    }

    fn waits_for(&self, record: &Service) -> Vec<WaitsFor> {
        let service = record.index;
        let mut waits = Vec::new();
        let missing: Vec<Kind> =
            Kind::ALL.into_iter().filter(|kind| !self.kinds_listed[*kind as usize]).collect();
        if !missing.is_empty() {
            waits.push(WaitsFor::KubernetesLists(missing));
        }
        if !self.survey.is_complete() {
            waits.push(WaitsFor::AzureListing);
        }
        if self.foundation.was_listed() && !self.foundation.is_ready() {
            waits.push(WaitsFor::Gateway);
        }
        if let Some(operation) = &record.operation {
            waits.push(WaitsFor::Operation(operation.id));
        }
        if record.vanished.is_some() {
            waits.push(WaitsFor::ConfirmedAbsence);
        }
        if let Some(Compared::Invalid(_, text)) = &record.compared {
            waits.push(WaitsFor::SpecChange(text.clone()));
        }
        if let Some(text) = &record.unresolved {
            waits.push(WaitsFor::SpecChange(text.clone()));
        }
        if let Some((_, until)) = record.throttled(self.now) {
            waits.push(WaitsFor::Retry { at: until, reason: Reason::Throttled });
        }
        if let Some(hold) = &record.hold {
            waits.push(WaitsFor::Retry { at: hold.until, reason: hold.reason });
        }
        if self.is_braked(service) {
            waits.push(WaitsFor::MassDeletionConsent);
        }
        if self.is_wanted(service)
            && record.state == State::NotStarted
            && record.object.as_ref().is_some_and(|object| !object.finalizer)
        {
            waits.push(WaitsFor::Finalizer);
        }
        if self.dispatch.is_queued(service) {
            waits.push(WaitsFor::Slot);
        }
        if self.waits_for_addresses(record) {
            waits.push(WaitsFor::Addresses(self.addresses.mapped(service)));
        }
        if let Some(until) = record.linger_until.filter(|until| *until > self.now) {
            waits.push(WaitsFor::Linger { until });
        }
        if record.kube.in_flight.is_some() || record.kube.failures > 0 {
            waits.push(WaitsFor::KubernetesWrite);
        }
        waits
    }

    /// Recomputes slowly what is kept incrementally, and says what differs. For tests and simulations.
    pub fn recount(&self) -> Result<(), String> {
        self.addresses.recount()?;
        for record in self.services.iter().flatten() {
            let key = &record.key;
            if self.by_key.get(key) != Some(&record.index) {
                return Err(format!("{key} is not found under its key"));
            }
            let in_flight = self.in_flight.values().filter(|it| is_plan_of(it, record.index)).count();
            if in_flight != usize::from(record.operation.is_some()) {
                return Err(format!("{key} has {in_flight} plans in flight, its record says otherwise"));
            }
            if record.wake.is_some_and(|at| !self.timers.contains(&(at, record.index))) {
                return Err(format!("{key} has lost its timer"));
            }
        }
        Ok(())
    }
}

/// Why nothing is tried for a while, or until the spec changes.
fn parked_for(record: &Service) -> Option<Reason> {
    match (&record.compared, &record.hold) {
        (Some(Compared::Invalid(reason, _)), _) => Some(*reason),
        (_, Some(hold)) if hold.parked => Some(hold.reason),
        _ => None,
    }
}

fn is_plan_of(errand: &crate::engine::Errand, service: ServiceIndex) -> bool {
    matches!(errand, crate::engine::Errand::Plan(other) if *other == service)
}
