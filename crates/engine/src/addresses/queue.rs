//! The entries that may differ from Azure, queued by service and taken in turn.
//!
//! Each service has a queue, first come first served; the services with something in their queue stand in
//! a ring. A batch goes round the ring and takes an equal share from each, so that one service with a
//! hundred thousand changes does not hold up another with one. An entry is in at most one queue, once, and
//! is compared again when it is taken: a change that was taken back in between is no write.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use sluice_model::Time;

use super::place::{Entry, Spot};
use super::services::{Service, ServiceIndex};
use super::sets::SetId;
use super::wanted::Effective;
use super::{Addresses, READ_AHEAD};

/// A queue that is empty gives its room back, unless it has less than this.
const ROOM_KEPT: usize = 16;

/// However many services wait, each may send this many at its turn: whole turns of one are cheaper.
const SHARE_MIN: usize = 4;

impl Addresses {
    /// Queues an entry that is not queued yet; says whether it did.
    pub(super) fn enqueue(&mut self, spot: Spot, entry: Entry, effective: &Effective) -> bool {
        let Some(service) = self.lead(spot, entry, effective) else { return false };
        if let Some(entry) = self.places.entry_mut(spot) {
            entry.set(Entry::QUEUED);
        }
        self.push(spot, service);
        true
    }

    /// Adds an entry that Azure has nothing for, and queues it; says whether it did.
    pub(super) fn enqueue_new(&mut self, spot: Spot, effective: &Effective) -> bool {
        let Some(&service) = self.effective_members(effective).first() else { return false };
        let mut entry = Entry::ABSENT;
        entry.set(Entry::QUEUED);
        let place = &mut self.places[spot.place];
        place.entries.insert_another(spot.addr, entry);
        self.addrs.share(place.family, spot.addr);
        self.push(spot, service);
        true
    }

    fn push(&mut self, spot: Spot, service: ServiceIndex) {
        let queue = &mut self.services[service].queue;
        if queue.is_empty() {
            self.ring.push_back(service);
        }
        queue.push_back(spot);
        let since = self.news_since.unwrap_or(self.now);
        match self.services[service].queued_since.back_mut() {
            Some((last, entries)) if *last == since => *entries += 1,
            _ => self.services[service].queued_since.push_back((since, 1)),
        }
        self.totals.dirty += 1;
    }

    /// How many entries differ from Azure, or will when these services are ready.
    pub fn to_write(&self, soon_ready: &[ServiceIndex]) -> usize {
        let actual = |spot: &Spot| self.places.entry(*spot).map_or(SetId::EMPTY, Entry::actual);
        let differs =
            |spot: &Spot| self.places.is_there(spot.place) && !self.is(&self.effective(*spot), actual(spot));
        let queued = self.ring.iter().flat_map(|&service| &self.services[service].queue).copied();
        let mut spots: Vec<Spot> =
            queued.filter(differs).chain(self.awaits_listing.keys().copied()).collect();
        spots.extend(soon_ready.iter().flat_map(|&service| self.spots_of(service)));
        spots.sort_unstable();
        spots.dedup();
        spots.len()
    }

    /// The service in whose name an entry is queued and bisected: the first of those that have or want it.
    pub(super) fn lead(&self, spot: Spot, entry: Entry, effective: &Effective) -> Option<ServiceIndex> {
        let wanted = self.effective_members(effective).first();
        let actual = self.sets.members(entry.actual()).first();
        let first = match (wanted, actual) {
            (Some(wanted), Some(actual)) => Some(*wanted.min(actual)),
            (wanted, actual) => wanted.or(actual).copied(),
        };
        if first.is_some() || !entry.is(Entry::ODD) {
            return first;
        }
        let either = self.odd.get(&spot).map_or(&[][..], |odd| &odd.either);
        either.iter().find_map(|&set: &SetId| self.sets.members(set).first().copied())
    }

    /// The fair share of one service in a batch of this size.
    pub(super) fn share_of_one(&self, size: usize) -> usize {
        (size / self.ring.len().max(1)).max(SHARE_MIN)
    }

    /// Reads ahead what the next turns of the ring will take; gives the number of turns, at least one.
    pub(super) fn ahead_of_turns(&self, share: usize, most: usize) -> usize {
        let most = most.min(READ_AHEAD);
        let mut spots: Vec<Spot> = Vec::new();
        let mut turns = 0;
        for &service in &self.ring {
            if turns > 0 && spots.len() >= most {
                break;
            }
            turns += 1;
            spots.extend(self.services[service].queue.iter().take(share.min(READ_AHEAD)));
        }
        if spots.len() > 1 {
            self.ahead_of_spots(&spots);
        }
        turns.max(1)
    }

    /// The next entry of the service at the front of the ring.
    pub(super) fn peek(&self) -> Option<Spot> {
        self.services[*self.ring.front()?].queue.front().copied()
    }

    /// Since when that entry has been news.
    pub(super) fn peek_since(&self) -> Option<Time> {
        Some(self.services[*self.ring.front()?].queued_since.front()?.0)
    }

    /// Takes the next entry of the service at the front of the ring. Its flag is for the caller to clear.
    pub(super) fn dequeue(&mut self) -> Option<Spot> {
        let service = *self.ring.front()?;
        let Service { queue, queued_since, .. } = &mut self.services[service];
        let spot = queue.pop_front()?;
        if let Some((_, entries)) = queued_since.front_mut() {
            *entries -= 1;
            if *entries == 0 {
                queued_since.pop_front();
            }
        }
        if queue.is_empty() {
            if queue.capacity() > ROOM_KEPT {
                *queue = VecDeque::new();
                *queued_since = VecDeque::new();
            }
            self.ring.pop_front();
            self.services.forget_if_unused(service);
        }
        self.totals.dirty -= 1;
        Some(spot)
    }
}
