//! Drift: later listings against what we know.
//!
//! A difference is believed when two listings show it, and what we wrote around the time a listing
//! began is left alone. With nothing to repair, a sweep costs reads and no write.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use sluice_model::azure::{LoadBalancer, Meta, PublicIp, Registration};
use sluice_model::effect::{Listable, Listing};
use sluice_model::names::CLUSTER_TAG;
use sluice_model::{ServiceKey, Time};

use crate::addresses::{ServiceIndex, Trust};
use crate::engine::Engine;
use crate::resources::{Actual, Carrier, Knowledge, Slot};
use crate::state::Trigger;
use crate::survey::{Found, keyed_load_balancers, keyed_nat_gateways};

/// One complete listing: of what, begun when, whether it is believed at once, and if not, how long after the first
/// that shows a difference the second must have begun.
#[derive(Clone, Copy)]
struct Sight {
    kind: Listable,
    began: Time,
    trust: bool,
    apart: Duration,
}

impl Engine {
    /// Compares one listing with what we know.
    pub(crate) fn compare_with(&mut self, kind: Listable, began: Time, listing: Listing) {
        let trust = self.survey.looks[kind as usize].trusted_since.take_if(|since| began >= *since).is_some();
        let look = Sight { kind, began, trust, apart: Duration::ZERO };
        match listing {
            Listing::Foundation { .. } => {}
            Listing::Locations(all) => {
                let trust = if trust { Trust::Reread } else { Trust::Sweep };
                let accepted = self.addresses.listed(self.now, began, &all, trust);
                if accepted > 0 {
                    let found = u64::try_from(accepted).unwrap_or(u64::MAX);
                    self.counters.drift_found = self.counters.drift_found.saturating_add(found);
                    self.address_drift = self.address_drift.saturating_add(found);
                }
                let doubts = self.addresses.needs_listing() || self.addresses.suspects() > 0;
                let news = self.note_strangers(None);
                if doubts || news {
                    self.survey.second_look(kind, self.now, self.config.second_look);
                }
                self.touch_deletions();
            }
            Listing::Registrations(all) => {
                let keyed = self.keyed_registrations(all).into_iter().collect();
                self.compare_slots(look, keyed, |it| &mut it.registration, |it| &mut it.registration);
                if self.note_strangers(Some(began)) {
                    self.survey.second_look(Listable::Locations, self.now, self.config.second_look);
                }
            }
            Listing::LoadBalancers(all) => {
                let keyed = keyed_load_balancers(all).into_iter().collect();
                self.compare_slots(look, keyed, |it| &mut it.carrier, |it| &mut it.carrier);
            }
            Listing::NatGateways(all) => {
                let keyed = keyed_nat_gateways(all).into_iter().collect();
                self.compare_slots(look, keyed, |it| &mut it.carrier, |it| &mut it.carrier);
            }
            Listing::PublicIps(all) => {
                self.note_tagged(&all);
                let mut keyed = [BTreeMap::new(), BTreeMap::new()];
                for (key, slot, ip) in self.keyed_public_ips(all) {
                    keyed[slot].insert(key, ip);
                }
                for (at, keyed) in keyed.into_iter().enumerate() {
                    self.compare_slots(look, keyed, |it| &mut it.public_ips[at], |it| &mut it.public_ips[at]);
                }
            }
        }
        self.adopt_confirmed_strays();
    }

    /// Plans have read all registrations, which shows as much about services as a listing of ours. What has no record
    /// is left to the listings: a look at it reads the registrations too, and would trigger itself again.
    pub(crate) fn registrations_read(&mut self, began: Time, all: Vec<Registration>) {
        if !self.survey.complete {
            return;
        }
        let keyed = |it: Registration| ServiceKey::from_identity(&it.name).map(|key| (key, it));
        let mut found = all.into_iter().filter_map(keyed).collect();
        // Two plans may read a moment apart, and both reads be behind.
        let apart = self.config.settle;
        let look = Sight { kind: Listable::Registrations, began, trust: false, apart };
        if self.compare_records(look, &mut found, |it| &mut it.registration) {
            self.survey.second_look(look.kind, self.now, self.config.second_look);
        }
    }

    fn compare_slots<T: Material>(
        &mut self,
        look: Sight,
        mut found: BTreeMap<ServiceKey, T>,
        slot_of: impl Fn(&mut Actual) -> &mut Slot<T>,
        part_of: impl Fn(&mut Found) -> &mut Option<T>,
    ) {
        let differs = self.compare_records(look, &mut found, slot_of);
        let has_news = self.compare_strays(look, found, part_of);
        if differs || has_news {
            self.survey.second_look(look.kind, self.now, self.config.second_look);
        }
    }

    /// Compares what has a record, and takes it out of what was found. Returns whether a second look is needed.
    fn compare_records<T: Material>(
        &mut self,
        Sight { kind, began, trust, apart }: Sight,
        found: &mut BTreeMap<ServiceKey, T>,
        slot_of: impl Fn(&mut Actual) -> &mut Slot<T>,
    ) -> bool {
        let settle = self.config.settle;
        let records: Vec<ServiceIndex> = self
            .services
            .iter()
            .flatten()
            .filter(|record| kind.concerns(&record.key))
            .map(|record| record.index)
            .collect();
        let mut look_again = false;
        for service in records {
            let Some(record) = self.record_mut(service) else { continue };
            let seen = found.remove(&record.key);
            let busy_since = record.operation.as_ref().map(|operation| operation.started);
            let slot = slot_of(&mut record.actual);
            let was_unseen = core::mem::take(&mut slot.unseen);
            if busy_since.is_some() || slot.is_fresh(began, settle) {
                // A registration that is still missing stays in doubt; if the plan writes it, that ends with the plan.
                let still_missing =
                    seen.is_none() && slot.suspected.is_some() && matches!(kind, Listable::Registrations);
                let suspected = if still_missing { slot.suspected } else { slot.suspected.take() };
                let was_in_doubt = suspected.is_some() || was_unseen;
                // A public IP that was there before the plan, or that the plan wrote long before it ended: others may
                // have deleted it since.
                let is_known = matches!(kind, Listable::PublicIps) && slot.present().is_some();
                let may_be_gone =
                    is_known || busy_since.is_some_and(|since| was_in_doubt || since + settle <= began);
                slot.unseen = seen.is_none() && may_be_gone;
                look_again |= slot.unseen && busy_since.is_none() || still_missing;
                if was_in_doubt {
                    // The publication of its IP may have waited for this.
                    self.touch(service);
                }
                continue;
            }
            let same = match (&slot.knowledge, &seen) {
                (Knowledge::Present(known), Some(seen)) => known.same(seen),
                (Knowledge::Absent, None) => true,
                (Knowledge::Unknown | Knowledge::Doubted, _) => {
                    slot.believe(seen);
                    self.recompare(service);
                    continue;
                }
                _ => false,
            };
            if same {
                let suspected = slot.suspected.take().is_some();
                if seen.is_some() {
                    slot.believe(seen);
                }
                if suspected || was_unseen {
                    self.touch(service);
                }
            } else if trust || slot.suspected.is_some_and(|first| first < began && first + apart <= began) {
                slot.believe(seen);
                if !matches!(kind, Listable::LoadBalancers) {
                    let key = record.key.clone();
                    record.actual.doubt_absent(&key);
                }
                record.drifted += 1;
                self.counters.drift_found = self.counters.drift_found.saturating_add(1);
                self.fire(service, Trigger::DriftFound);
                self.recompare(service);
            } else {
                slot.suspected.get_or_insert(began);
                look_again = true;
            }
        }
        look_again
    }

    /// Remembers what was found without a record. Returns whether a second look is needed.
    fn compare_strays<T>(
        &mut self,
        Sight { kind, began, .. }: Sight,
        mut found: BTreeMap<ServiceKey, T>,
        part_of: impl Fn(&mut Found) -> &mut Option<T>,
    ) -> bool {
        let mut look_again = false;
        let since = began - self.config.settle;
        self.survey.forgotten.retain(|_, at| *at > since);
        // A listing that began so soon after a record was dropped says nothing about its key, present or absent.
        found.retain(|key, _| !self.survey.forgotten.contains_key(key));
        let mut keys: BTreeSet<ServiceKey> = found.keys().cloned().collect();
        let strays = self.survey.strays.keys().filter(|key| !self.survey.forgotten.contains_key(*key));
        keys.extend(strays.filter(|key| kind.concerns(key)).cloned());
        for key in keys {
            let seen = found.remove(&key);
            let stray = self.survey.strays.entry(key.clone()).or_default();
            let first = &mut stray.first_seen[kind as usize];
            match (&seen, *first) {
                (Some(_), None) => {
                    *first = Some(began);
                    look_again = true;
                }
                (Some(_), Some(at)) if at < began => stray.seen_twice = true,
                (Some(_), Some(_)) => {}
                (None, _) => {}
            }
            *part_of(&mut stray.found) = seen;
            if stray.found.is_nothing() {
                self.survey.strays.remove(&key);
            }
        }
        look_again
    }
}

/// Equal as far as it can make us write.
trait Material {
    fn same(&self, other: &Self) -> bool;
}

impl Material for PublicIp {
    fn same(&self, other: &PublicIp) -> bool {
        self.family == other.family
            && self.address == other.address
            && same_cluster(&self.meta, &other.meta)
            && self.meta.provisioning == other.meta.provisioning
    }
}

impl Material for Carrier {
    fn same(&self, other: &Carrier) -> bool {
        let fields = match (self, other) {
            (Carrier::LoadBalancer(a), Carrier::LoadBalancer(b)) => {
                let sorted = |lb: &LoadBalancer| {
                    let mut rules = lb.rules.clone();
                    rules.sort_unstable();
                    rules
                };
                a.public_ip == b.public_ip
                    && sorted(a) == sorted(b)
                    && a.edited == b.edited
                    && same_names(&a.pools, &b.pools)
            }
            (Carrier::NatGateway(a), Carrier::NatGateway(b)) => {
                a.gateway == b.gateway && a.public_ips == b.public_ips && a.public_ips_v6 == b.public_ips_v6
            }
            _ => false,
        };
        fields
            && same_cluster(self.meta(), other.meta())
            && self.meta().provisioning == other.meta().provisioning
    }
}

impl Material for Registration {
    fn same(&self, other: &Registration) -> bool {
        Registration::same(self, other)
    }
}

/// Tags of others are read again before every write, so only ours decide what is written.
fn same_cluster(a: &Meta, b: &Meta) -> bool {
    a.tags.get(CLUSTER_TAG) == b.tags.get(CLUSTER_TAG)
}

trait Concerns {
    fn concerns(self, key: &ServiceKey) -> bool;
}

impl Concerns for Listable {
    fn concerns(self, key: &ServiceKey) -> bool {
        match self {
            Listable::LoadBalancers => key.is_inbound(),
            Listable::NatGateways => !key.is_inbound(),
            _ => true,
        }
    }
}

fn same_names(a: &[Arc<str>], b: &[Arc<str>]) -> bool {
    a.len() == b.len() && a.iter().all(|name| b.iter().any(|other| other.eq_ignore_ascii_case(name)))
}
