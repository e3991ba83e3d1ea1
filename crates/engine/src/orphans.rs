//! Orphans, strangers and the brake: what is there and nobody wants.
//!
//! What is ours and unwanted in two complete sightings gets a record and goes through the same ordered
//! teardown as everything else. Too many at once are held until the operator agrees.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use sluice_model::allow_deletion::{AllowedDeletions, Fingerprint};
use sluice_model::azure::Direction;
use sluice_model::effect::{About, Listable};
use sluice_model::reason::Reason;
use sluice_model::seeded::Bug;
use sluice_model::{ServiceKey, Time};

use crate::addresses::{Mode, ServiceIndex};
use crate::engine::Engine;
use crate::explain::Held;
use crate::plan::is_default_of_others;
use crate::resources::Knowledge;
use crate::service::{Service, Vanished};
use crate::survey::Stray;

/// A notice names at most this many registrations.
const UNCLAIMED_NAMED: usize = 10;

/// A notice names at most this many held services.
const HELD_NAMED: usize = 10;

/// Below this many teardowns nobody asks.
const BRAKE_MIN: usize = 5;

impl Engine {
    /// Handles identities that have addresses and no record. An identity that is registered for others keeps its
    /// addresses. One that is not registered, in two listings, gets a record; the record reads Azure, and removes the
    /// addresses if nothing is registered. A name that cannot have a record needs a listing of registrations instead that
    /// began well after its first sighting: an earlier one may be older than its registration. Returns whether an
    /// identity is new.
    pub(crate) fn note_strangers(&mut self, registrations_began: Option<Time>) -> bool {
        let mut unregistered = BTreeMap::new();
        let mut news = false;
        for service in self.addresses.strangers() {
            let identity = Arc::clone(self.addresses.identity(service));
            let key = ServiceKey::from_identity(&identity);
            let stray = key.as_ref().and_then(|key| self.survey.strays.get(key).map(|stray| (key, stray)));
            let orphan =
                stray.is_some_and(|(key, stray)| stray.found.is_ours(&self.config.scope, key, false));
            let registration = stray.and_then(|(_, stray)| stray.found.registration.as_ref());
            let direction =
                registration.map(|it| it.direction).or(self.survey.odd_names.get(&identity).copied());
            if orphan {
                // Its own teardown is on its way. If the tag proves that it is ours, an egress that has the pod now gets
                // the address at once; else its load balancer or NAT gateway may not have been listed yet.
                let carrier = stray.and_then(|(_, stray)| stray.found.carrier.as_ref());
                if carrier.is_some_and(|it| self.config.scope.owns(&it.meta().tags)) {
                    self.addresses.set_mode(service, Mode::Frozen);
                }
                continue;
            }
            if let Some(direction) = direction {
                self.addresses.set_outbound(service, direction == Direction::Outbound);
                self.addresses.set_mode(service, Mode::Unmanaged);
                continue;
            }
            let first = self.survey.strangers.get(&identity).copied();
            let second = first.is_some();
            // Reads lag behind the writes of others too.
            let settled = first.map(|first| first + self.config.settle);
            let relisted = registrations_began.is_some_and(|began| settled.is_some_and(|at| at <= began));
            match key {
                Some(_) if second && self.seeded.has(Bug::DrainUnread) => {
                    self.addresses.set_mode(service, Mode::Draining);
                    continue;
                }
                Some(key) if second => {
                    let service = self.open(&key);
                    if let Some(record) = self.record_mut(service) {
                        record.orphan = true;
                        record.actual.registration.knowledge = Knowledge::Unknown;
                        record.actual.carrier.knowledge = Knowledge::Unknown;
                    }
                    continue;
                }
                None if relisted => {
                    self.addresses.set_mode(service, Mode::Draining);
                    continue;
                }
                None => self.survey.second_look(Listable::Registrations, self.now, self.config.second_look),
                Some(_) => {}
            }
            news = true;
            unregistered.insert(identity, first.unwrap_or(self.now));
        }
        self.survey.strangers = unregistered;
        news
    }

    /// Closes a record that was opened only to look at an unknown name, if the look found something: that becomes a
    /// stray like any other, with two sightings, the confirmation and the brake. Returns whether it did.
    pub(crate) fn leave_to_listings(&mut self, service: ServiceIndex) -> bool {
        let wanted = self.is_wanted(service);
        let found = self.record(service).is_some_and(|record| {
            let opened_to_look = record.orphan && !record.discovered && !record.teardown_begun;
            // An object that came meanwhile and has something of ours to take off would be forgotten with it.
            let has_object = record.object.as_ref().is_some_and(|object| object.is_left_to_us());
            opened_to_look
                && !has_object
                && !wanted
                && !record.actual.is_unclear()
                && !record.actual.is_nothing()
        });
        let found = found && !self.seeded.has(Bug::TearDownAfterLook);
        if found {
            self.forget(service);
            for kind in Listable::ALL {
                self.survey.second_look(kind, self.now, self.config.settle);
            }
        }
        found
    }

    /// Strays that are ours and were seen twice get a record, and with it their teardown.
    pub(crate) fn adopt_confirmed_strays(&mut self) {
        let by_name = self.seeded.has(Bug::DeleteWithoutTagCheck);
        let at_once = self.seeded.has(Bug::OrphanAtFirstSight);
        let scope = self.config.scope.clone();
        let orphans: Vec<ServiceKey> = self
            .survey
            .strays
            .iter()
            .filter(|(_, stray)| stray.seen_twice || at_once)
            .filter(|(key, stray)| stray.found.is_ours(&scope, key, by_name))
            .filter(|(key, _)| !matches!(key, ServiceKey::Outbound(name) if name.is_default()))
            .map(|(key, _)| key.clone())
            .collect();
        for key in orphans {
            let service = self.open(&key);
            self.counters.orphans_found = self.counters.orphans_found.saturating_add(1);
            let known = matches!(&key, ServiceKey::Inbound(uid) if self.bystanders.contains_key(uid));
            let skip = known || !key.is_inbound() || self.seeded.has(Bug::SkipConfirmGone);
            let lingers_until = (!self.config.linger.is_zero()).then(|| self.now + self.config.linger);
            if let Some(record) = self.record_mut(service) {
                record.orphan = true;
                record.vanished = (!skip).then(Vanished::default);
                let actual = &mut record.actual;
                let complete = actual.carrier.present().is_some() && actual.registration.present().is_some();
                if !key.is_inbound() && complete {
                    // Its last pod may have gone while nobody watched, in the middle of a rollout.
                    record.linger_until = lingers_until;
                }
            }
            self.note_discovered(service);
            if let Some(record) = self.record_mut(service) {
                record.found_begun = record.actual.teardown_begun();
                // The listings are of different times, and the order of the teardown depends on what is there.
                if record.actual.carrier.is_absent() {
                    record.actual.carrier.knowledge = Knowledge::Unknown;
                }
                if record.actual.registration.is_absent() {
                    record.actual.registration.knowledge = Knowledge::Unknown;
                }
            }
            self.touch(service);
        }
        self.note_unclaimed();
        self.drop_spent_consent();
        self.look_at_the_brake();
    }

    /// What is registered, unwanted and not provably ours is left alone, and told once, all in one.
    fn note_unclaimed(&mut self) {
        let scope = &self.config.scope;
        let strays = self.survey.strays.iter().filter(|(key, stray)| {
            // A default outbound service is not unclaimed: it is why Sluice makes none.
            let registration = stray.found.registration.as_ref();
            registration.is_some_and(|it| !is_default_of_others(key, it))
                && !stray.found.is_ours(scope, key, false)
        });
        let mut unclaimed: BTreeSet<Arc<str>> = strays.map(|(key, _)| key.identity()).collect();
        unclaimed.extend(self.survey.odd_names.keys().cloned());
        let news: Vec<&str> =
            unclaimed.difference(&self.survey.unclaimed).take(UNCLAIMED_NAMED).map(|name| &**name).collect();
        if !news.is_empty() {
            let more = unclaimed.difference(&self.survey.unclaimed).count() - news.len();
            let and_more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let text = format!(
                "Unmanaged registrations left unchanged: {}{and_more}. No Service or egress needs them; delete them if they are unused",
                news.join(", ")
            );
            self.notify(About::Cluster, true, Reason::Conflict, text);
        }
        self.survey.unclaimed = unclaimed;
    }

    /// Found unwanted by comparison: the brake applies, unless there is evidence that its deletion is meant.
    pub(crate) fn note_discovered(&mut self, service: ServiceIndex) {
        // An egress that lingers is wanted for a while, and the brake applies when that is over.
        let wanted = match self.record(service) {
            Some(record) if !record.key.is_inbound() => record.requested || self.addresses.pods(service) > 0,
            _ => self.is_wanted(service),
        };
        let left_alone = self.record(service).is_some_and(|record| self.keeper(record).is_some());
        let forgets = self.seeded.has(Bug::BrakeForgetsEvidence);
        let Some(record) = self.record_mut(service) else { return };
        let wanted = wanted && record.vanished.is_none();
        let own_deletion = record.object.as_ref().is_some_and(|object| object.deleting);
        let evident = own_deletion || !forgets && record.evident;
        // One that lingers may still be made.
        let is_nothing = record.actual.is_nothing() && record.linger_until.is_none();
        if !wanted && !left_alone && !evident && !is_nothing {
            self.discover(service);
        }
    }

    /// Its object, or its last pod, is missing from a newer list. Before the baseline nothing is known of Azure, and
    /// the baseline asks the same question.
    pub(crate) fn note_vanished(&mut self, service: ServiceIndex) {
        if !self.survey.complete || self.seeded.has(Bug::VanishedFromListNotHeld) {
            return;
        }
        if self.record(service).is_some_and(|record| !record.evident && !record.teardown_begun) {
            self.discover(service);
        }
    }

    /// The brake applies to it from now on.
    fn discover(&mut self, service: ServiceIndex) {
        if self.survey.braked && !self.discovered().any(|record| self.counts_for_the_brake(record)) {
            // What was held has come back, or has gone with evidence.
            self.survey.braked = false;
            self.survey.held_told = 0;
        }
        if let Some(record) = self.record_mut(service) {
            record.discovered = true;
            self.survey.discovered.insert(service);
        }
    }

    /// There is evidence now, or it is wanted again; consent to its deletion does not count for the next time.
    pub(crate) fn release_from_brake(&mut self, service: ServiceIndex) {
        let Some(record) = self.record_mut(service) else { return };
        if !core::mem::replace(&mut record.discovered, false) {
            return;
        }
        if !self.survey.allowed.is_empty()
            && let Some(spent) = self.record(service).map(fingerprint)
        {
            self.survey.allowed.remove(spent);
        }
        self.survey.discovered.remove(&service);
    }

    fn discovered(&self) -> impl Iterator<Item = &Service> {
        self.survey.discovered.iter().filter_map(|service| self.record(*service))
    }

    /// Whether its teardown is held because too many are due at once.
    pub(crate) fn is_braked(&self, service: ServiceIndex) -> bool {
        self.brake_is_on()
            && self.record(service).is_some_and(|record| self.counts_for_the_brake(record))
            && !self.is_wanted(service)
    }

    /// Once on, the brake stays on until the operator allows it or nothing is left that it holds.
    pub(crate) fn brake_is_on(&self) -> bool {
        self.survey.braked && !self.config.allow_mass_deletion
    }

    /// Found unwanted by comparison, not begun by us or a leader before us, and not allowed by the operator.
    fn counts_for_the_brake(&self, record: &Service) -> bool {
        let forgets = self.seeded.has(Bug::BrakeForgetsEvidence);
        // While it is read again, what was found counts: nothing is deleted meanwhile.
        let is_read_again = || record.found_begun && record.actual.is_unclear();
        let is_known = || record.operation.is_none() && record.actual.teardown_begun();
        let begun_before = || (is_read_again() || is_known()) && !forgets;
        record.discovered && !record.teardown_begun && !begun_before() && !self.is_allowed(record)
    }

    fn is_allowed(&self, record: &Service) -> bool {
        let allowed = &self.survey.allowed;
        if self.seeded.has(Bug::ConsentCountsForAll) {
            return !allowed.is_empty();
        }
        !allowed.is_empty() && allowed.contains(fingerprint(record))
    }

    /// How a service is shown whose deletion is held.
    pub(crate) fn held(&self, record: &Service) -> Option<Held> {
        let held = || Held { name: held_name(record), fingerprint: fingerprint(record) };
        self.is_braked(record.index).then(held)
    }

    /// The operator's consent has been read.
    pub(crate) fn deletion_allowed(&mut self, allowed: AllowedDeletions) {
        if allowed == self.survey.allowed {
            return;
        }
        self.survey.allowed = allowed;
        self.drop_spent_consent();
        // Whatever is held all the same is named again.
        self.survey.held_told = 0;
        self.look_at_the_brake();
        self.touch_discovered();
    }

    /// The consent that still counts: that to deletions which are due or under way.
    pub fn allowed_deletions(&self) -> &AllowedDeletions {
        &self.survey.allowed
    }

    /// Drops consent to the deletion of what is wanted, or gone. A later deletion of the same needs new consent.
    fn drop_spent_consent(&mut self) {
        if self.survey.allowed.is_empty() || !self.survey.complete {
            return;
        }
        let strays = self.survey.strays.iter().map(|(key, stray)| stray.fingerprint(key));
        let unwanted: BTreeSet<Fingerprint> = self.discovered().map(fingerprint).chain(strays).collect();
        self.survey.allowed = self.survey.allowed.iter().filter(|it| unwanted.contains(it)).collect();
    }

    pub(crate) fn look_at_the_brake(&mut self) {
        if !self.survey.complete {
            return;
        }
        let total = self.by_key.len() + self.survey.strays.len();
        let limit = BRAKE_MIN.max(total / 10);
        let since = self.now - self.config.drift_interval;
        self.survey.teardowns.retain(|at| *at >= since);
        let waiting: Vec<&Service> = self.discovered().filter(|it| self.counts_for_the_brake(it)).collect();
        let scope = &self.config.scope;
        let allowed = &self.survey.allowed;
        let is_ours = |(key, stray): &(&ServiceKey, &Stray)| {
            stray.found.is_ours(scope, key, false)
                && !stray.found.teardown_begun()
                && (allowed.is_empty() || !allowed.contains(stray.fingerprint(key)))
        };
        let is_default = |key: &ServiceKey| matches!(key, ServiceKey::Outbound(name) if name.is_default());
        let coming = self.survey.strays.iter().filter(is_ours).filter(|(key, _)| !is_default(key)).count();
        // Those that have just gone and those seen once count as well, or many would go in small groups.
        let held = waiting.len() + self.survey.teardowns.len() + coming;
        let on =
            !waiting.is_empty() && (self.survey.braked || held > limit) && !self.seeded.has(Bug::NoBrake);
        let (count, told) = (waiting.len(), self.survey.held_told);
        let names: Vec<String> = waiting.iter().take(HELD_NAMED).map(|record| held_name(record)).collect();
        self.survey.braked = on;
        self.survey.held_told = if on { told.max(count) } else { 0 };
        if !on || self.config.allow_mass_deletion || count <= told {
            return;
        }
        // Addresses that were about to drain stay.
        self.touch_discovered();
        let and_more = match count - names.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let services = if count == 1 { "gateway service" } else { "gateway services" };
        let text = format!(
            "Mass-deletion guard: held deletion of {count} {services}: {}{and_more}. Review `sluice plan`; if the deletions are intended, run `sluice allow-deletion`",
            names.join(", ")
        );
        self.notify(About::Cluster, true, Reason::MassDeletionHeld, text);
    }

    /// A teardown begins; if it was found by comparison, the brake remembers it for a while.
    pub(crate) fn note_teardown(&mut self, service: ServiceIndex) {
        if self.record(service).is_some_and(|it| self.counts_for_the_brake(it)) {
            self.survey.teardowns.push(self.now);
        }
    }

    pub(crate) fn touch_discovered(&mut self) {
        self.touched.extend(self.survey.discovered.iter().copied());
    }

    /// Address listings can open the gate of a deletion.
    pub(crate) fn touch_deletions(&mut self) {
        let waiting: Vec<ServiceIndex> = self
            .services
            .iter()
            .flatten()
            .filter(|record| record.unwanted_since.is_some())
            .map(|record| record.index)
            .collect();
        self.touched.extend(waiting);
    }
}

fn fingerprint(record: &Service) -> Fingerprint {
    Fingerprint::of(&record.key, record.public_address())
}

/// What people call a held service: its object if that is known, be it by a tag.
fn held_name(record: &Service) -> String {
    match (&record.key, record.object.as_ref().map(|it| it.name.clone()).or(record.actual.owner_name())) {
        (ServiceKey::Inbound(_), Some(name)) => format!("service/{name}"),
        (ServiceKey::Inbound(uid), None) => format!("service/{uid}"),
        (ServiceKey::Outbound(egress), _) => format!("egress/{egress}"),
    }
}
