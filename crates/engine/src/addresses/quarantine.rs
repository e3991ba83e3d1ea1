//! The entries that Azure refuses: who is in quarantine, and how one leaves it.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem::take;
use core::net::IpAddr;

use sluice_model::Failure;

use super::Addresses;
use super::bisect::Group;
use super::lane::Sent;
use super::notice::{AddressNotice, Sample};
use super::odd::Standing;
use super::place::{Entry, Spot};
use super::services::ServiceIndex;
use super::sets::SetId;
use super::wide::Addr;

impl Addresses {
    /// How many entries of a service Azure rejects, those included that are being tried again. Costs nothing.
    pub fn quarantined(&self, service: ServiceIndex) -> u32 {
        self.services.get(service).map_or(0, |record| record.rejected)
    }

    /// Counts an entry for the services that it concerns while Azure rejects it. To be called whenever either changes.
    pub(super) fn count_rejected(&mut self, spot: Spot) {
        let Some(odd) = self.odd.get(&spot) else { return };
        let is_rejected = odd.is_rejected();
        if !is_rejected && odd.counted.is_empty() {
            return;
        }
        let now = if is_rejected { self.concerned(spot) } else { Vec::new() };
        let Some(odd) = self.odd.get_mut(&spot).filter(|odd| odd.counted != now) else { return };
        let before = core::mem::replace(&mut odd.counted, now.clone());
        for service in now {
            self.services[service].rejected += 1;
            self.services.recount(service);
        }
        for service in before {
            self.services[service].rejected -= 1;
            self.services.recount(service);
            self.services.forget_if_unused(service);
        }
    }

    /// The services that an entry is, may be or should be mapped to.
    pub(super) fn concerned(&self, spot: Spot) -> Vec<ServiceIndex> {
        let effective = self.effective(spot);
        let mut concerned: Vec<ServiceIndex> = self.effective_members(&effective).to_vec();
        for set in self.possible_sets(spot) {
            concerned.extend(self.sets.members(set));
        }
        concerned.sort_unstable();
        concerned.dedup();
        concerned
    }

    /// What Azure said when it last refused an entry.
    pub fn last_refusal(&self) -> Option<&Failure> {
        self.bisect.refusal.as_ref()
    }

    /// Tries the quarantined entries of a service again at once, because something about it was mended.
    pub fn release_quarantined(&mut self, service: ServiceIndex) {
        let spots: Vec<Spot> = self.bisect.quarantine.values().copied().collect();
        for spot in spots {
            if self.concerned(spot).contains(&service) {
                self.suspect_again(spot);
                self.hurry();
            }
        }
    }

    /// The lists that Azure may have for an entry.
    pub(super) fn possible_sets(&self, spot: Spot) -> Vec<SetId> {
        let actual = self.places.entry(spot).map(Entry::actual);
        let either = self.odd.get(&spot).map_or(&[][..], |odd| &odd.either);
        actual.into_iter().chain(either.iter().copied()).collect()
    }

    pub(super) fn is_quarantined(&self, spot: Spot) -> bool {
        self.odd.get(&spot).is_some_and(|odd| matches!(odd.standing, Standing::Quarantined { .. }))
    }

    /// Puts an entry into quarantine with what is wanted of it now.
    pub(super) fn quarantine(&mut self, spot: Spot, tried_alone: bool) {
        if let Standing::Quarantined { turn, refused } = take(&mut self.odd_mut(spot).standing) {
            self.leave_quarantine(turn, refused);
        }
        let effective = self.effective(spot);
        let refused = self.hold(&effective);
        self.bisect.turns += 1;
        let turn = (tried_alone, self.bisect.turns);
        self.odd_mut(spot).standing = Standing::Quarantined { turn, refused };
        self.bisect.quarantine.insert(turn, spot);
        self.totals.quarantined += 1;
        self.bisect.retry_at.get_or_insert(self.now + self.limits.quarantine_retry);
        self.count_rejected(spot);
        if self.possible_sets(spot) == [refused] {
            // Nothing is left to do for it.
            self.acquit(spot);
            self.forget_if_absent(spot);
        }
    }

    /// Takes an entry out of quarantine, or off the suspects; it has to be compared afterwards.
    pub(super) fn acquit(&mut self, spot: Spot) {
        let Some(odd) = self.odd.get_mut(&spot) else { return };
        if let Standing::Quarantined { turn, refused } = take(&mut odd.standing) {
            self.leave_quarantine(turn, refused);
        }
        self.tidy_odd(spot);
    }

    /// Makes a quarantined entry a suspect, to be tried with the next group.
    pub(super) fn suspect_again(&mut self, spot: Spot) {
        let Some(odd) = self.odd.get_mut(&spot) else { return };
        if let Standing::Quarantined { turn, refused } = odd.standing {
            odd.standing = Standing::Suspect;
            self.leave_quarantine(turn, refused);
            self.bisect.loose.push(spot);
            self.count_rejected(spot);
        }
    }

    fn leave_quarantine(&mut self, turn: super::bisect::Turn, refused: SetId) {
        self.bisect.quarantine.remove(&turn);
        self.totals.quarantined -= 1;
        self.sets.drop(refused, &mut self.services);
        if self.bisect.quarantine.is_empty() {
            self.bisect.retry_at = None;
        }
    }

    /// Every few minutes all quarantined entries are tried again, together.
    pub(super) fn retry_quarantined_if_due(&mut self) {
        if self.bisect.retry_at.is_none_or(|at| self.now < at) {
            return;
        }
        let spots: Vec<Spot> = self.bisect.quarantine.values().copied().collect();
        for spot in spots {
            self.suspect_again(spot);
        }
    }

    /// Azure refused an entry that was alone in its request.
    pub(super) fn refused_alone(&mut self, spot: Spot) {
        let effective = self.effective(spot);
        let wanted = self.hold(&effective);
        let urgent = self.unbinding_is_urgent(spot, wanted);
        self.sets.drop(wanted, &mut self.services);
        if urgent {
            self.bisect.put_back(Group::without(spot));
        } else {
            self.quarantine(spot, true);
        }
    }

    /// Whether an entry may be mapped to a service that is being drained, or is wanted by nobody at all.
    pub(super) fn unbinding_is_urgent(&self, spot: Spot, wanted: SetId) -> bool {
        let possible = self.possible_sets(spot);
        let mut leaving = possible.iter().flat_map(|&set| self.sets.members(set));
        leaving.any(|&service| {
            !self.sets.contains(wanted, service)
                && (wanted == SetId::EMPTY || !self.services[service].is_ready())
        })
    }

    /// An address that has left one location may be welcome at another.
    pub(super) fn release_unbound(&mut self, sent: &[Sent]) {
        if self.bisect.quarantine.is_empty() {
            return;
        }
        let unbound: BTreeSet<Addr> =
            sent.iter().filter(|sent| sent.set == SetId::EMPTY).map(|sent| sent.spot.addr).collect();
        let spots: Vec<Spot> = self.bisect.quarantine.values().copied().collect();
        for spot in spots {
            if unbound.contains(&spot.addr) && !sent.iter().any(|sent| sent.spot == spot) {
                self.suspect_again(spot);
            }
        }
    }

    /// Says once of each entry that Azure refuses it, to each service that it concerns.
    pub(super) fn report_quarantined(&mut self, since_turn: u64, failure: &Failure) {
        let mut spots = Vec::new();
        for (&(_, turn), &spot) in &self.bisect.quarantine {
            if turn > since_turn
                && let Some(odd) = self.odd.get_mut(&spot)
                && !odd.reported
            {
                odd.reported = true;
                spots.push(spot);
            }
        }
        if spots.is_empty() {
            return;
        }
        self.bisect.refusal = Some(failure.clone());
        let mut refused: BTreeMap<Arc<str>, Sample<(IpAddr, IpAddr)>> = BTreeMap::new();
        for spot in spots {
            let place = &self.places[spot.place];
            let entry = (place.ip, self.addrs.ip(place.family, spot.addr));
            for service in self.concerned(spot) {
                let identity = Arc::clone(self.services.identity(service));
                refused.entry(identity).or_insert_with(Sample::new).add(|| entry);
            }
        }
        for (service, entries) in refused {
            self.notify(AddressNotice::Quarantined { service, entries, failure: failure.clone() });
        }
    }
}
