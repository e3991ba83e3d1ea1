//! Which services look different than before, for those who show them.
//!
//! Every change that people can see gets the next number. Whoever shows services remembers the number up to
//! which it has shown everything, and asks for what is newer: that costs what has changed and nothing else,
//! and any number of readers can do so. The ends of services are remembered only so far back; who is
//! further behind starts over with all services.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::hash::BuildHasher;
use core::net::IpAddr;

use foldhash::fast::FixedState;
use sluice_model::kube::Concern;
use sluice_model::reason::Reason;
use sluice_model::{EffectId, ServiceKey, Time};

use crate::addresses::ServiceIndex;
use crate::engine::Engine;
use crate::kube_writes::shown_ip;
use crate::service::{Compared, Service};
use crate::state::State;

/// Ends that are remembered.
const GONE_MAX: usize = 1024;

/// The changes, newest last: each service once, at its last.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    newest: u64,
    log: BTreeMap<u64, ServiceKey>,
    /// The numbers of the ends among them.
    gone: VecDeque<u64>,
    /// The newest end that has been dropped.
    dropped: u64,
    /// Services that may look different since the last event.
    looked_at: Vec<ServiceIndex>,
}

/// What people see of a service, small enough to keep and compare.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Glance {
    state: State,
    since: Time,
    wanted: bool,
    named: bool,
    operation: Option<EffectId>,
    hold: Option<(Time, bool, Reason)>,
    invalid: Option<(Reason, u64)>,
    attempts: u32,
    last_failure: Option<Time>,
    public_ip: Option<IpAddr>,
    pods: usize,
    addresses: [u32; 5],
    live: bool,
    waits: [bool; 2],
    trouble: Option<(Reason, Concern)>,
}

impl Changes {
    fn next(&mut self, key: &ServiceKey, before: u64) -> u64 {
        self.log.remove(&before);
        self.newest += 1;
        self.log.insert(self.newest, key.clone());
        self.newest
    }

    /// A service has been forgotten.
    pub(crate) fn gone(&mut self, key: &ServiceKey, before: u64) {
        let number = self.next(key, before);
        self.gone.push_back(number);
        if self.gone.len() > GONE_MAX
            && let Some(oldest) = self.gone.pop_front()
        {
            self.log.remove(&oldest);
            self.dropped = oldest;
        }
    }

    pub(crate) fn look_at(&mut self, service: ServiceIndex) {
        self.looked_at.push(service);
    }
}

impl Engine {
    /// The number of the newest change that people can see.
    pub fn change_number(&self) -> u64 {
        self.changes.newest
    }

    /// The services that have changed since then, in the order of their last change; those that
    /// [`Engine::view_of`] does not know any more are gone. `None`: too long ago, start over with all.
    ///
    /// A service that was forgotten and came back may be named twice.
    pub fn changed_since(&self, number: u64) -> Option<Vec<ServiceKey>> {
        if number < self.changes.dropped {
            return None;
        }
        let newer = self.changes.log.range(number.saturating_add(1)..);
        Some(newer.map(|(_, key)| key.clone()).collect())
    }

    /// Gives a number to every service that looks different than after the last event.
    pub(crate) fn number_changes(&mut self) {
        let mut services = core::mem::take(&mut self.changes.looked_at);
        services.extend(self.addresses.take_recounted());
        services.sort_unstable();
        services.dedup();
        for service in services {
            let Some(record) = self.record(service) else { continue };
            let glance = self.glance(record);
            if record.glance == Some(glance) {
                continue;
            }
            let is_other_trouble = record.glance.is_none_or(|before| before.trouble != glance.trouble);
            let number = self.changes.next(&record.key.clone(), record.change);
            if let Some(record) = self.record_mut(service) {
                record.glance = Some(glance);
                record.change = number;
            }
            if (is_other_trouble || glance.trouble.is_some()) && self.is_leading() {
                // Trouble can begin, change and end without an event about the service, and its conditions say so.
                self.tend_object(service);
            }
        }
    }

    fn glance(&self, record: &Service) -> Glance {
        let service = record.index;
        Glance {
            state: record.state,
            since: record.since,
            wanted: self.is_wanted(service),
            named: record.object.is_some(),
            operation: record.operation.as_ref().map(|operation| operation.id),
            hold: record.hold.as_ref().map(|hold| (hold.until, hold.parked, hold.reason)),
            invalid: match &record.compared {
                Some(Compared::Invalid(reason, text)) => {
                    Some((*reason, FixedState::default().hash_one(text)))
                }
                _ => None,
            },
            attempts: record.attempts.total,
            last_failure: record.last_failure.as_ref().map(|failure| failure.at),
            public_ip: shown_ip(record, &self.config.scope),
            pods: self.addresses.pods(service),
            addresses: [
                self.addresses.wanted(service),
                self.addresses.programmed(service),
                self.addresses.mapped(service),
                self.addresses.unplaceable(service),
                self.addresses.quarantined(service),
            ],
            live: record.actual.is_live(),
            waits: [record.throttled(self.now).is_some(), record.unresolved.is_some()],
            trouble: self.lasting_trouble(record).map(|trouble| (trouble.reason, trouble.concern)),
        }
    }
}
