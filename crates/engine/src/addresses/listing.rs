//! What Azure has, read back.
//!
//! A listing shows a moment that has passed. What we wrote since it began, or shortly before, is left
//! alone: the listing may not show it yet. An entry of unknown outcome is settled when the listing shows
//! one of the things that it may be. Any other difference is believed when two listings in a row show the
//! same one; the listing at start-up is believed at once, and so is what a listing shows of an entry that
//! waits for one. A listing costs everything that there is.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::IpAddr;
use core::time::Duration;

use hashbrown::HashSet;
use sluice_model::azure::Location;
use sluice_model::seeded::Bug;
use sluice_model::{Family, Time};

use super::Addresses;
use super::place::{Entry, Place, PlaceId, Spot};
use super::services::ServiceIndex;
use super::sets::SetId;

/// The differences of the last listing that are not believed yet: (location, address) and what it showed.
pub(super) type Sightings = BTreeMap<(IpAddr, IpAddr), Vec<Arc<str>>>;

/// How far a listing is believed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Trust {
    /// The first of all: whatever was not written since it began is as it shows.
    Baseline,
    /// Azure contradicted us, so one sighting is enough.
    Reread,
    /// A look for drift: a difference counts when two in a row show it.
    Sweep,
}

/// What was written too recently for a listing to be asked about it.
#[derive(Default)]
struct Recent {
    spots: HashSet<Spot, foldhash::fast::FixedState>,
    places: HashSet<PlaceId, foldhash::fast::FixedState>,
}

impl Addresses {
    /// All address locations, from a complete listing that began at `began`.
    ///
    /// Gives the number of differences that were accepted. Identities that nobody knows are met here, and
    /// listed by [`Addresses::strangers`]; their addresses are held.
    pub fn listed(&mut self, now: Time, began: Time, locations: &[Location], trust: Trust) -> usize {
        self.advance(now);
        let margin = if trust == Trust::Baseline { began } else { began - self.limits.listing_margin };
        let first = trust != Trust::Sweep;
        if self.lane.forgotten_until.is_some_and(|forgotten| forgotten >= margin) {
            // It is older than our memory of what we wrote.
            return 0;
        }
        let recent = self.written_since(margin);
        let before = core::mem::take(&mut self.sightings);
        self.others_missing.clear();
        let mut accepted = 0;
        self.forget_hollow();
        for location in locations {
            let ip = location.location.to_canonical();
            let mut usable = 0;
            for address in &location.addresses {
                let addr_ip = address.address.to_canonical();
                if Family::of(addr_ip) != Family::of(ip) {
                    // Azure cannot have such a thing, and we could not take it away.
                    continue;
                }
                usable += 1;
                accepted += self.compare(&recent, &before, first, (ip, addr_ip), &address.services);
            }
            self.find_hollow(&recent, ip, usable);
        }
        accepted += self.compare_missing(&recent, &before, first);
        self.count_suspects();
        // A cluster whose listing takes long could never write otherwise.
        let span = self.limits.listing_valid.max(now.since(began).saturating_mul(2));
        self.listing_began = Some(began);
        self.listing_valid_until = Some(began + span);
        for spot in core::mem::take(&mut self.awaits_listing).into_keys() {
            self.suspect_again(spot);
            self.check(spot);
        }
        self.bisect.listing_is_in();
        accepted
    }

    /// Whether an entry that names unmanaged services may be written.
    pub(super) fn is_listed(&self) -> bool {
        self.listing_is_valid() || self.seeded.has(Bug::WriteUnlistedNames)
    }

    /// Whether a location may be written or removed as a whole: the last listing is new and shows nothing of others.
    /// However long a listing takes, it is not new for longer: addresses can always be removed one by one instead.
    pub(super) fn may_replace(&self, place: PlaceId) -> bool {
        let at = self.places[place].ip;
        let is_new = self.listing_began.is_some_and(|began| self.now <= began + self.limits.listing_valid);
        let seen = || self.sightings.keys().any(|(location, _)| *location == at);
        self.seeded.has(Bug::EmptyUnlistedLocation) || is_new && !seen() && !self.has_entries_of_others(place)
    }

    /// Whether a location has entries that may name unmanaged services.
    pub(super) fn has_entries_of_others(&self, place: PlaceId) -> bool {
        let names_others = |set| self.names_others(self.sets.members(set));
        self.places[place].entries.iter().any(|(addr, entry)| {
            let odd = entry.is(Entry::ODD).then(|| self.odd.get(&Spot { place, addr })).flatten();
            names_others(entry.actual())
                || odd.is_some_and(|odd| odd.either.iter().copied().any(names_others))
        })
    }

    /// Whether the last listing is new enough to show what others have.
    pub(super) fn listing_is_valid(&self) -> bool {
        self.listing_valid_until.is_some_and(|until| self.now <= until)
    }

    /// Whether exactly one listing has shown an unmanaged service at this entry.
    pub(super) fn others_were_seen(&self, spot: Spot) -> bool {
        if self.sightings.is_empty() || self.seeded.has(Bug::ForgetFirstSighting) {
            return false;
        }
        let place = &self.places[spot.place];
        let shown = self.sightings.get(&(place.ip, self.addrs.ip(place.family, spot.addr)));
        let is_of_others =
            |name: &Arc<str>| self.services.find(name).is_none_or(|it| self.services[it].is_unmanaged());
        shown.is_some_and(|names| names.iter().any(is_of_others))
    }

    /// Whether the last listing lacks an unmanaged service that we know of at this entry.
    pub(super) fn others_were_missing(&self, spot: Spot) -> bool {
        self.others_missing.contains(&spot)
    }

    /// Notes an entry of which a listing lacks an unmanaged service: it is not written until that is certain.
    fn note_missing_others(&mut self, spot: Spot, shown: &[Arc<str>]) {
        let is_missing = |service: &ServiceIndex| {
            let identity = self.services.identity(*service);
            self.services[*service].is_unmanaged()
                && !shown.iter().any(|name| name.eq_ignore_ascii_case(identity))
        };
        if self.possible_sets(spot).into_iter().any(|set| self.sets.members(set).iter().any(is_missing)) {
            self.others_missing.insert(spot);
        }
    }

    /// Whether a list names an unmanaged service.
    pub(super) fn names_others(&self, services: &[ServiceIndex]) -> bool {
        services.iter().any(|&service| self.services[service].is_unmanaged())
    }

    /// Services that Azure has addresses for and that were never opened, by identity.
    pub fn strangers(&self) -> Vec<ServiceIndex> {
        self.services.strangers()
    }

    /// Whether Azure should be read back: entries of unknown outcome stand where no node is any more, so
    /// that no change of the cluster will write them again, or what others have at an entry must be known.
    pub fn needs_listing(&self) -> bool {
        self.places.any_lost() || !self.awaits_listing.is_empty()
    }

    /// From when on a listing can tell what [`Addresses::needs_listing`] asks for. `None` if the last listing began
    /// late enough for that; then the second look confirms it.
    pub fn listing_due(&self) -> Option<Time> {
        let is_lost = |place: &PlaceId| self.places.get(*place).is_some_and(Place::is_lost);
        let lost = self.places.any_lost().then(|| self.unasked_until(is_lost));
        let lost = lost.filter(|due| self.listing_began.is_none_or(|began| began < *due));
        self.awaits_listing.values().copied().chain(lost).min()
    }

    /// An entry is written after the next listing, or, if the last one has just shown something that must be confirmed,
    /// after the first that is asked about its location again.
    pub(super) fn await_listing(&mut self, spot: Spot) {
        let confirms = self.listing_is_valid();
        let due = if confirms { self.unasked_until(|place| *place == spot.place) } else { self.now };
        self.awaits_listing.insert(spot, due);
    }

    /// Until when listings are not asked about any of these locations, because we wrote there.
    fn unasked_until(&self, concerns: impl Fn(&PlaceId) -> bool) -> Time {
        let last = self.lane.written.iter().rev().find(|written| written.places.iter().any(&concerns));
        last.map_or(self.now, |last| last.at + self.limits.listing_margin + Duration::from_millis(1))
    }

    /// How many differences one listing has shown that a second must confirm.
    pub fn suspects(&self) -> usize {
        self.sightings.len()
    }

    /// Counts, per identity, the entries that one listing has shown and that we did not know of.
    fn count_suspects(&mut self) {
        let mut counts = BTreeMap::new();
        for ((location, address), services) in &self.sightings {
            let spot = self.places.find(*location).zip(self.addrs.find(*address));
            let sets = spot.map(|(place, addr)| self.possible_sets(Spot { place, addr })).unwrap_or_default();
            for name in services {
                let known = self.services.find(name);
                if !known.is_some_and(|it| sets.iter().any(|&set| self.sets.contains(set, it))) {
                    *counts.entry(Arc::clone(name)).or_insert(0u32) += 1;
                }
            }
        }
        self.suspected = counts;
    }

    fn written_since(&self, margin: Time) -> Recent {
        let mut recent = Recent::default();
        for written in self.lane.written.iter().rev().take_while(|written| written.at >= margin) {
            recent.spots.extend(&written.spots);
            recent.places.extend(&written.places);
        }
        if let Some(flight) = &self.flight {
            recent.places.extend(flight.places.iter().chain(&flight.hollow));
        }
        recent
    }

    /// Compares one listed address; gives 1 if it was different and is believed.
    fn compare(
        &mut self,
        recent: &Recent,
        before: &Sightings,
        first: bool,
        at: (IpAddr, IpAddr),
        services: &[Arc<str>],
    ) -> usize {
        let spot =
            self.places.find(at.0).zip(self.addrs.find(at.1)).map(|(place, addr)| Spot { place, addr });
        let entry = spot.and_then(|spot| self.places.entry_mut(spot));
        if let (Some(spot), Some(entry)) = (spot, entry) {
            if entry.is(Entry::SEEN) {
                return 0;
            }
            entry.set(Entry::SEEN);
            if entry.is(Entry::IN_FLIGHT) || recent.spots.contains(&spot) {
                self.sight_others(spot, at, services);
                return 0;
            }
        } else if let Some(spot) = spot.filter(|spot| recent.spots.contains(spot)) {
            self.sight_others(spot, at, services);
            return 0;
        }
        let mut identities: Vec<Arc<str>> = services.to_vec();
        for identity in &mut identities {
            if identity.bytes().any(|byte| byte.is_ascii_uppercase()) {
                *identity = identity.to_ascii_lowercase().into();
            }
        }
        identities.sort_unstable();
        identities.dedup();
        if let Some(spot) = spot
            && self.shows_the_possible(spot, &identities)
        {
            return 0;
        }
        let awaited = spot.is_some_and(|spot| self.awaits_listing.contains_key(&spot));
        if !first && !awaited && before.get(&at) != Some(&identities) {
            if let Some(spot) = spot {
                self.note_missing_others(spot, &identities);
            }
            self.sightings.insert(at, identities);
            return 0;
        }
        let place = self.places.find_or_add(at.0);
        let addr = self.addrs.hold(at.1);
        let spot = Spot { place, addr };
        if self.places.entry(spot).is_none() {
            let mut entry = Entry::ABSENT;
            entry.set(Entry::SEEN);
            self.places[place].entries.insert(addr, entry);
        } else {
            self.addrs.drop(Family::of(at.1), addr);
        }
        let mut members: Vec<ServiceIndex> = identities.iter().map(|name| self.services.meet(name)).collect();
        members.sort_unstable();
        let set = self.sets.hold(&members, &mut self.services);
        self.believe(spot, set);
        1
    }

    /// Notes names of others at an entry that we wrote too recently to ask about our own: no write of ours adds them.
    fn sight_others(&mut self, spot: Spot, at: (IpAddr, IpAddr), services: &[Arc<str>]) {
        self.note_missing_others(spot, services);
        let sets = self.possible_sets(spot);
        let is_new = |name: &&Arc<str>| match self.services.find(name) {
            None => true,
            Some(service) => {
                self.services[service].is_unmanaged()
                    && !sets.iter().any(|&set| self.sets.contains(set, service))
            }
        };
        let others: Vec<Arc<str>> =
            services.iter().filter(is_new).map(|name| name.to_ascii_lowercase().into()).collect();
        if !others.is_empty() {
            self.sightings.insert(at, others);
        }
    }

    /// Whether a listing shows what an entry is known to be, or settles what it may be.
    fn shows_the_possible(&mut self, spot: Spot, identities: &[Arc<str>]) -> bool {
        let shown = self.possible_sets(spot).into_iter().find(|&set| {
            let members = self.sets.members(set);
            members.len() == identities.len()
                && members
                    .iter()
                    .all(|&service| identities.binary_search(self.services.identity(service)).is_ok())
        });
        let Some(set) = shown else { return false };
        if self.odd.get(&spot).is_some_and(|odd| !odd.either.is_empty()) {
            self.sets.share(set);
            self.believe(spot, set);
        }
        true
    }

    /// Takes a list, which is held, for what Azure has.
    fn believe(&mut self, spot: Spot, set: SetId) {
        self.accept(spot, set);
        self.tidy_odd(spot);
        self.check(spot);
    }

    /// What we think Azure has and the listing does not show.
    fn compare_missing(&mut self, recent: &Recent, before: &Sightings, first: bool) -> usize {
        let mut accepted = 0;
        for place in self.places.keys() {
            let record = &mut self.places[place];
            let (ip, family) = (record.ip, record.family);
            let mut missing = Vec::new();
            for (addr, entry) in record.entries.iter_mut() {
                let seen = entry.is(Entry::SEEN);
                entry.clear(Entry::SEEN);
                let anything = entry.actual() != SetId::EMPTY || entry.is(Entry::ODD);
                if !seen && anything {
                    missing.push((addr, entry.is(Entry::IN_FLIGHT)));
                }
            }
            missing.sort_unstable_by_key(|&(addr, _)| self.addrs.ip(family, addr));
            for (addr, in_flight) in missing {
                let spot = Spot { place, addr };
                if in_flight || recent.spots.contains(&spot) {
                    self.note_missing_others(spot, &[]);
                    continue;
                }
                let at = (ip, self.addrs.ip(family, addr));
                if self.shows_the_possible(spot, &[]) {
                    continue;
                }
                let awaited = self.awaits_listing.contains_key(&spot);
                if first || awaited || before.get(&at).is_some_and(Vec::is_empty) {
                    self.believe(spot, SetId::EMPTY);
                    accepted += 1;
                } else {
                    self.note_missing_others(spot, &[]);
                    self.sightings.insert(at, Vec::new());
                }
            }
        }
        accepted
    }

    /// Notes a location that Azure has without addresses and that we have no use for.
    fn find_hollow(&mut self, recent: &Recent, ip: IpAddr, addresses: usize) {
        if addresses > 0 {
            return;
        }
        let place = self.places.find_or_add(ip);
        let record = &mut self.places[place];
        if record.entries.is_empty() && !recent.places.contains(&place) && !record.hollow {
            record.hollow = true;
            self.hollow.insert(place);
        }
        self.places.forget_if_unused(place);
    }
}
