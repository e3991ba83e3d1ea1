//! The entries that may differ from Azure, queued by service and taken in turn.
//!
//! Each service has a queue, first come first served; the services with something in their queue stand in
//! a ring. A batch goes round the ring and takes an equal share from each, so that one service with a
//! hundred thousand changes does not hold up another with one. An entry is in at most one queue, once, and
//! is compared again when it is taken: a change that was taken back in between is no write.

use alloc::collections::VecDeque;

use super::Addresses;
use super::place::{Entry, Spot};
use super::services::ServiceIndex;
use super::sets::SetId;
use super::wanted::Effective;

/// A queue that is empty gives its room back, unless it has less than this.
const ROOM_KEPT: usize = 16;

impl Addresses {
    /// Queues an entry that is not queued yet; says whether it did.
    pub(super) fn enqueue(&mut self, spot: Spot, effective: &Effective) -> bool {
        let Some(service) = self.lead(spot, effective) else { return false };
        let Some(entry) = self.places.entry_mut(spot) else { return false };
        entry.set(Entry::QUEUED);
        let queue = &mut self.services[service].queue;
        if queue.is_empty() {
            self.ring.push_back(service);
        }
        queue.push_back(spot);
        self.totals.dirty += 1;
        true
    }

    /// The service in whose name an entry is queued and bisected: the first of those that have or want it.
    pub(super) fn lead(&self, spot: Spot, effective: &Effective) -> Option<ServiceIndex> {
        let wanted = self.effective_members(effective).first();
        let entry = self.places.entry(spot)?;
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
        (size / self.ring.len().max(1)).max(1)
    }

    /// The next entry of the service at the front of the ring.
    pub(super) fn peek(&self) -> Option<Spot> {
        self.services[*self.ring.front()?].queue.front().copied()
    }

    /// Takes the next entry of the service at the front of the ring.
    pub(super) fn dequeue(&mut self) -> Option<Spot> {
        let service = *self.ring.front()?;
        let queue = &mut self.services[service].queue;
        let spot = queue.pop_front()?;
        if queue.is_empty() {
            if queue.capacity() > ROOM_KEPT {
                *queue = VecDeque::new();
            }
            self.ring.pop_front();
            self.services.forget_if_unused(service);
        }
        self.totals.dirty -= 1;
        if let Some(entry) = self.places.entry_mut(spot) {
            entry.clear(Entry::QUEUED);
        }
        Some(spot)
    }
}
