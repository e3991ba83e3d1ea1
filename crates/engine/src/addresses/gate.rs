//! What Azure may have for each entry, and the counts per service that follow from it.
//!
//! This is the one place where those counts change. An entry may be mapped to a service when Azure is
//! known to have it so, when a request that says so is on its way, or when the outcome of such a request
//! is unknown; `mapped` counts exactly those, and a deletion waits until it is zero.

use core::mem::take;

use super::odd::Odd;
use super::place::{Entry, Spot};
use super::services::ServiceIndex;
use super::sets::{SetId, Sets};
use super::{Addresses, Map};

impl Addresses {
    /// A list is on its way to Azure for this entry. The list stays held until the end.
    ///
    /// With `dequeued` it was taken from its queue for that.
    pub(super) fn begin(&mut self, spot: Spot, set: SetId, dequeued: bool) {
        let Some(entry) = self.places.entry_mut(spot) else { return };
        if dequeued {
            entry.clear(Entry::QUEUED);
        }
        entry.set(Entry::IN_FLIGHT);
        let entry = *entry;
        let either = odd_sets(&self.odd, spot, entry);
        for &service in self.sets.members(set) {
            if !possible(&self.sets, entry.actual(), either, service) {
                self.services.count_mapped(service);
            }
        }
        self.totals.in_flight += 1;
    }

    /// The entry is no longer on its way; says whether anything changed meanwhile.
    pub(super) fn land(&mut self, spot: Spot) -> bool {
        let Some(entry) = self.places.entry_mut(spot) else { return false };
        let changed = entry.is(Entry::CHANGED);
        entry.clear(Entry::IN_FLIGHT | Entry::CHANGED);
        self.totals.in_flight -= 1;
        changed
    }

    /// Azure has exactly this list now; it was begun.
    pub(super) fn commit(&mut self, spot: Spot, set: SetId) {
        let Some(entry) = self.places.entry_mut(spot) else { return };
        let old = entry.actual();
        *entry = entry.with_actual(set);
        let is_odd = entry.is(Entry::ODD);
        let either = match self.odd.get_mut(&spot) {
            Some(odd) if is_odd => take(&mut odd.either),
            _ => Default::default(),
        };
        let was_certain = either.is_empty();
        if !was_certain {
            self.places.count_either(spot.place, false);
            self.totals.either -= 1;
        }
        for &service in self.sets.members(old) {
            if was_certain {
                self.services[service].programmed -= 1;
                self.services.recount(service);
                self.totals.programmed -= 1;
            }
            if !self.sets.contains(set, service) {
                self.services.discount_mapped(service);
            }
        }
        for (at, &other) in either.iter().enumerate() {
            for &service in self.sets.members(other) {
                let counted = possible(&self.sets, old, &either[..at], service);
                if !counted && !self.sets.contains(set, service) {
                    self.services.discount_mapped(service);
                }
            }
        }
        for &service in self.sets.members(set) {
            self.services[service].programmed += 1;
            self.services.recount(service);
            self.totals.programmed += 1;
        }
        self.sets.drop(old, &mut self.services);
        for other in either {
            self.sets.drop(other, &mut self.services);
        }
        if is_odd {
            self.count_rejected(spot);
        }
    }

    /// The list that was begun never reached Azure.
    pub(super) fn revert(&mut self, spot: Spot, set: SetId) {
        let Some(entry) = self.places.entry(spot) else { return };
        let either = odd_sets(&self.odd, spot, entry);
        for &service in self.sets.members(set) {
            if !possible(&self.sets, entry.actual(), either, service) {
                self.services.discount_mapped(service);
            }
        }
        self.sets.drop(set, &mut self.services);
    }

    /// Nobody knows whether the list that was begun reached Azure.
    pub(super) fn doubt(&mut self, spot: Spot, set: SetId) {
        let Some(entry) = self.places.entry(spot) else { return };
        let either = odd_sets(&self.odd, spot, entry);
        let was_certain = either.is_empty();
        if set == entry.actual() || either.contains(&set) {
            self.sets.drop(set, &mut self.services);
            return;
        }
        if was_certain {
            self.places.count_either(spot.place, true);
            self.totals.either += 1;
            for &service in self.sets.members(entry.actual()) {
                self.services[service].programmed -= 1;
                self.services.recount(service);
                self.totals.programmed -= 1;
            }
        }
        self.odd_mut(spot).either.push(set);
        self.count_rejected(spot);
    }

    /// Azure turned out to have this list, which is held.
    pub(super) fn accept(&mut self, spot: Spot, set: SetId) {
        self.begin(spot, set, false);
        self.commit(spot, set);
        self.land(spot);
    }
}

/// The lists that may have reached Azure.
pub(super) fn odd_sets(odd: &Map<Spot, Odd>, spot: Spot, entry: Entry) -> &[SetId] {
    if !entry.is(Entry::ODD) {
        return &[];
    }
    odd.get(&spot).map_or(&[], |odd| &odd.either)
}

/// Whether an entry may be mapped to a service, going by what Azure had and what may have reached it.
pub(super) fn possible(sets: &Sets, actual: SetId, either: &[SetId], service: ServiceIndex) -> bool {
    sets.contains(actual, service) || either.iter().any(|&set| sets.contains(set, service))
}
