//! One batch: from the queues to a request, and from its end back to the entries.
//!
//! Success makes exactly what was sent the truth; failure changes nothing and queues the entries again; an
//! unknown outcome leaves both possibilities standing until a later success or a listing settles it. A
//! location that loses its last address is removed by the same request: it is sent without addresses, but
//! only while the last listing is new enough to show that no other service has an address there.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use sluice_model::azure::{AddressUpdate, LocationUpdate};
use sluice_model::seeded::Bug;
use sluice_model::{Failure, FailureClass, Family, Time};

use super::bisect::Group;
use super::lane::{Flight, Sent};
use super::place::{Entry, PlaceId, Spot};
use super::sets::SetId;
use super::{Addresses, READ_AHEAD};
use crate::failure_row::FailureRow;

/// A request in the making.
#[derive(Default)]
pub(super) struct Draft {
    sent: Vec<Sent>,
    places: Vec<PlaceId>,
    hollow: Vec<PlaceId>,
    updates: Vec<LocationUpdate>,
    bytes: usize,
}

/// What became of an entry that was offered to a draft.
#[derive(PartialEq, Eq)]
enum Fit {
    /// It is in.
    Added,
    /// There is nothing to send for it.
    Needless,
    /// It is sent after the next listing.
    Waits,
    /// There is no room for it.
    Full,
}

impl Draft {
    pub(super) fn is_empty(&self) -> bool {
        self.updates.is_empty()
    }

    pub(super) fn spots(&self) -> Vec<Spot> {
        self.sent.iter().map(|sent| sent.spot).collect()
    }
}

impl Addresses {
    /// The next request, if there is something to send and nothing in flight and no pause.
    ///
    /// Costs what is sent. Locations come in the order in which their first change was queued.
    pub fn next_batch(&mut self, now: Time) -> Option<Vec<LocationUpdate>> {
        self.advance(now);
        if self.flight.is_some() || self.now < self.lane.paused_until() {
            return None;
        }
        self.retry_quarantined_if_due();
        let updates = if self.bisect.is_next() {
            self.send_suspects().or_else(|| self.send_changes())
        } else {
            self.send_changes().or_else(|| self.send_suspects())
        };
        // Suspects that are none any more may have become ordinary changes.
        let updates = updates.or_else(|| self.send_changes());
        self.totals.batches += u64::from(updates.is_some());
        if updates.is_none() && self.awaits_listing.is_empty() && self.bisect.awaiting.is_empty() {
            // Nothing is left that could fail, so the next change does not begin in trouble.
            self.lane.failing = None;
        }
        updates
    }

    /// An empty draft, with a number of its own to mark the locations that are in it.
    fn start_draft(&mut self) -> Draft {
        self.batch_number = self.batch_number.wrapping_add(1).max(1);
        Draft::default()
    }

    /// A request of ordinary changes, an equal share for each service.
    fn send_changes(&mut self) -> Option<Vec<LocationUpdate>> {
        let mut draft = self.start_draft();
        let share = self.share_of_one(self.limits.addresses_max);
        let mut turns_near = 0;
        'ring: while let Some(&service) = self.ring.front() {
            if turns_near == 0 {
                turns_near = self.ahead_of_turns(share, self.limits.addresses_max - draft.sent.len());
            }
            turns_near -= 1;
            let mut taken = 0;
            let mut last = None;
            while self.ring.front() == Some(&service) {
                let Some(spot) = self.peek() else { break };
                // The two halves of a move stand side by side and stay together.
                if taken >= share && last != Some(spot.addr) {
                    break;
                }
                match self.offer(&mut draft, spot, true) {
                    Fit::Full => break 'ring,
                    Fit::Added => {
                        self.dequeue();
                        taken += 1;
                        last = Some(spot.addr);
                    }
                    fit @ (Fit::Needless | Fit::Waits) => {
                        self.dequeue();
                        if let Some(entry) = self.places.entry_mut(spot) {
                            entry.clear(Entry::QUEUED);
                        }
                        if fit == Fit::Needless {
                            self.forget_if_absent(spot);
                        }
                    }
                }
            }
            if self.ring.front() == Some(&service) {
                self.ring.rotate_left(1);
            }
        }
        self.add_hollow(&mut draft);
        self.bisect.next_turn();
        self.launch(draft, None)
    }

    /// Puts an entry into a draft, unless it has nothing to say or there is no room.
    fn offer(&mut self, draft: &mut Draft, spot: Spot, dequeued: bool) -> Fit {
        let Some(entry) = self.places.entry(spot) else { return Fit::Needless };
        let effective = self.effective_of(spot, Some(entry));
        let outcome_is_known =
            !entry.is(Entry::ODD) || self.odd.get(&spot).is_none_or(|odd| odd.either.is_empty());
        self.note_kept(spot, Some(entry));
        if outcome_is_known && self.is(&effective, entry.actual()) {
            return Fit::Needless;
        }
        let services = self.effective_members(&effective);
        let others_are_known = self.is_listed() && !self.others_were_missing(spot);
        if self.names_others(services) && !others_are_known || self.others_were_seen(spot) {
            self.await_listing(spot);
            return Fit::Waits;
        }
        let place = &self.places[spot.place];
        let mut bytes = ADDRESS_BYTES + ip_bytes(place.family);
        bytes += services.iter().map(|&service| self.services.identity(service).len() + 3).sum::<usize>();
        if place.batch != self.batch_number {
            bytes += LOCATION_BYTES + ip_bytes(place.family);
        }
        let full = draft.sent.len() >= self.limits.addresses_max
            || draft.bytes.saturating_add(bytes) > self.limits.bytes_max;
        if full && !draft.sent.is_empty() {
            return Fit::Full;
        }
        draft.bytes = draft.bytes.saturating_add(bytes);
        let set = self.hold(&effective);
        let since = match dequeued {
            true => self.peek_since(),
            false => self.odd.get(&spot).and_then(|odd| odd.since),
        };
        let since = since.unwrap_or(Time::NEVER);
        self.add(draft, Sent { spot, set, since }, dequeued);
        Fit::Added
    }

    /// Puts an entry with a list that is held into a draft.
    fn add(&mut self, draft: &mut Draft, sent: Sent, dequeued: bool) {
        self.begin(sent.spot, sent.set, dequeued);
        draft.sent.push(sent);
        let place = &mut self.places[sent.spot.place];
        if place.batch != self.batch_number {
            place.batch = self.batch_number;
            place.batch_at = draft.updates.len() as u32;
            draft.places.push(sent.spot.place);
            draft.updates.push(LocationUpdate { location: place.ip, full: false, addresses: Vec::new() });
        }
        let services = self.sets.members(sent.set).iter();
        let services = services.map(|&service| Arc::clone(self.services.identity(service))).collect();
        let address = self.addrs.ip(place.family, sent.spot.addr);
        draft.updates[place.batch_at as usize].addresses.push(AddressUpdate { address, services });
    }

    /// A request of suspects, if they fit into one; what is in sync by now is cleared.
    pub(super) fn draft_of(&mut self, spots: &[Spot]) -> (Draft, Vec<Spot>) {
        let mut draft = self.start_draft();
        for (at, &spot) in spots.iter().enumerate() {
            match self.offer(&mut draft, spot, false) {
                Fit::Added => {}
                Fit::Needless => {
                    self.acquit(spot);
                    self.queue_if_needed(spot);
                }
                Fit::Waits => self.bisect.awaiting.push(spot),
                Fit::Full => return (draft, spots[at..].into()),
            }
        }
        (draft, Vec::new())
    }

    /// A request that writes a whole location without one of its addresses, if that fits into one.
    pub(super) fn draft_without(&mut self, without: Spot) -> Option<Draft> {
        if !self.may_replace(without.place) {
            if !self.has_entries_of_others(without.place) {
                // The next listing may allow it.
                self.await_listing(without);
            }
            return None;
        }
        let place = &self.places[without.place];
        let mut addrs: Vec<_> = place.entries.iter().map(|(addr, _)| addr).collect();
        addrs.sort_unstable_by_key(|&addr| self.addrs.ip(place.family, addr));
        let mut draft = self.start_draft();
        for addr in addrs {
            let spot = Spot { addr, ..without };
            let entry = self.places.entry(spot).unwrap_or(Entry::ABSENT);
            let set = if spot == without {
                SetId::EMPTY
            } else if self.is_quarantined(spot) {
                self.sets.share(entry.actual())
            } else {
                let effective = self.effective(spot);
                self.hold(&effective)
            };
            self.add(&mut draft, Sent { spot, set, since: Time::NEVER }, false);
        }
        let update = draft.updates.first_mut()?;
        update.full = true;
        update.addresses.retain(|address| !address.services.is_empty());
        if update.addresses.len() > self.limits.addresses_max {
            for sent in draft.sent {
                self.revert(sent.spot, sent.set);
                self.land(sent.spot);
            }
            return None;
        }
        Some(draft)
    }

    /// Adds the removal of locations that Azure has without addresses, as the last listing shows.
    fn add_hollow(&mut self, draft: &mut Draft) {
        if !self.listing_is_valid() {
            self.forget_hollow();
        }
        while draft.updates.len() < self.limits.addresses_max
            && let Some(place) = self.hollow.pop_first()
        {
            let record = &mut self.places[place];
            record.hollow = false;
            if !record.entries.is_empty() {
                continue;
            }
            // Held like a write until the batch has ended.
            record.recent += 1;
            draft.hollow.push(place);
            draft.updates.push(LocationUpdate { location: record.ip, full: false, addresses: Vec::new() });
        }
    }

    /// Forgets which locations Azure has without addresses; the next listing finds them again.
    pub(super) fn forget_hollow(&mut self) {
        for place in core::mem::take(&mut self.hollow) {
            self.places[place].hollow = false;
            self.places.forget_if_unused(place);
        }
    }

    /// Sends a draft.
    pub(super) fn launch(&mut self, mut draft: Draft, group: Option<Group>) -> Option<Vec<LocationUpdate>> {
        if draft.is_empty() {
            return None;
        }
        for (update, &place) in draft.updates.iter_mut().zip(&draft.places) {
            let unbound = update.addresses.iter().all(|address| address.services.is_empty());
            let all = update.addresses.len() == self.places[place].entries.len();
            if unbound && all && !update.full && self.may_replace(place) {
                update.addresses.clear();
            }
        }
        let Draft { sent, places, hollow, updates, .. } = draft;
        self.flight = Some(Flight { sent, places, hollow, group, began: self.now, held: None });
        Some(updates)
    }

    /// The batch in flight has ended. Without one, nothing happens.
    pub fn finish(&mut self, now: Time, failure: Option<&Failure>) {
        self.advance(now);
        let Some(flight) = self.flight.take() else { return };
        for &place in &flight.hollow {
            self.places[place].recent -= 1;
            self.places.forget_if_unused(place);
        }
        let bug = self.seeded;
        if let Some(failure) = failure {
            FailureRow::add(&mut self.lane.failing, flight.began, failure);
        }
        match failure {
            None => self.succeed(flight),
            Some(failure) => match failure.class {
                FailureClass::Unknown if !bug.has(Bug::UnknownIsFailure) => {
                    self.finish_unknown(flight, failure)
                }
                _ if bug.has(Bug::FailureIsSuccess) => self.succeed(flight),
                FailureClass::Rejected if !bug.has(Bug::NoBisect) => self.finish_refused(flight, failure),
                FailureClass::Throttled => {
                    self.totals.failures += 1;
                    let wait = failure.retry_after.unwrap_or(self.limits.backoff_min);
                    self.lane.throttle(self.now, wait);
                    self.take_back(flight);
                }
                _ => {
                    self.fail(failure);
                    self.take_back(flight);
                }
            },
        }
    }

    fn succeed(&mut self, flight: Flight) {
        self.lane.answered();
        let Flight { sent, places, group, began, .. } = flight;
        let spots: Box<[Spot]> = sent.iter().map(|sent| sent.spot).collect();
        for spots in spots.chunks(READ_AHEAD) {
            self.ahead_of_spots(spots);
        }
        self.remember_write(spots, places);
        self.measure(&sent);
        for &Sent { spot, set, .. } in &sent {
            self.commit(spot, set);
            let changed = self.land(spot);
            let odd = self.places.entry(spot).is_some_and(|entry| entry.is(Entry::ODD));
            if odd {
                self.tidy_odd(spot);
            }
            if changed || odd {
                // It changed at some time since the batch was sent.
                self.news_since = Some(began);
                self.queue_if_needed(spot);
                self.news_since = None;
            }
        }
        if let Some(group) = group {
            self.group_passed(group);
        }
        self.release_unbound(&sent);
        for sent in &sent {
            if sent.set == SetId::EMPTY {
                self.forget_if_absent(sent.spot);
            }
        }
    }

    /// Measures how long the entries of a batch were other than wanted; many have waited since one moment.
    fn measure(&mut self, sent: &[Sent]) {
        for together in sent.chunk_by(|a, b| a.since == b.since) {
            if let Some(Sent { since, .. }) = together.first().filter(|first| first.since != Time::NEVER) {
                self.delays.add(self.now.since(*since), together.len() as u64);
            }
        }
    }

    fn finish_unknown(&mut self, flight: Flight, failure: &Failure) {
        self.fail(failure);
        let Flight { sent, places, group, .. } = flight;
        for &Sent { spot, set, .. } in &sent {
            self.doubt(spot, set);
            self.land(spot);
        }
        self.remember_write(sent.iter().map(|sent| sent.spot).collect(), places);
        self.restore(&sent, group);
    }

    /// Nothing of the batch is in Azure; everything in it is to be sent again.
    fn take_back(&mut self, flight: Flight) {
        let Flight { sent, group, .. } = flight;
        self.undo(&sent);
        self.restore(&sent, group);
    }

    pub(super) fn undo(&mut self, sent: &[Sent]) {
        for &Sent { spot, set, .. } in sent {
            self.revert(spot, set);
            self.land(spot);
        }
    }

    fn restore(&mut self, sent: &[Sent], group: Option<Group>) {
        if let Some(group) = group {
            self.bisect.put_back(group);
        }
        for sent in sent {
            self.news_since = Some(sent.since).filter(|since| *since != Time::NEVER);
            self.queue_if_needed(sent.spot);
        }
        self.news_since = None;
    }
}

/// `{"address":"","services":[]},`, with what stands between the services counted there.
const ADDRESS_BYTES: usize = 30;
/// `{"addressLocation":"","addressUpdateAction":"PartialUpdate","addresses":[]},`
const LOCATION_BYTES: usize = 77;

/// The longest an address of a family can be.
const fn ip_bytes(family: Family) -> usize {
    match family {
        Family::V4 => 15,
        Family::V6 => 39,
    }
}
