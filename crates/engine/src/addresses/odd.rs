//! The few entries about which there is more to remember than what Azure has.

use alloc::vec::Vec;

use sluice_model::Time;

use super::Addresses;
use super::bisect::Turn;
use super::place::{Entry, Spot};
use super::services::ServiceIndex;
use super::sets::SetId;
use super::wanted::Effective;

/// What stands beside an entry.
#[derive(Default)]
pub(super) struct Odd {
    /// Lists that may have reached Azure, beside the one that it had before.
    pub(super) either: Vec<SetId>,
    pub(super) standing: Standing,
    /// Since when what is wanted of it has been news, while it is suspected or refused.
    pub(super) since: Option<Time>,
    /// It has been said that Azure refuses it.
    pub(super) reported: bool,
    /// The services that count it among their rejected entries.
    pub(super) counted: Vec<ServiceIndex>,
}

impl Odd {
    /// Azure rejects it: it is quarantined, or is being tried again after it was.
    pub(super) fn is_rejected(&self) -> bool {
        match self.standing {
            Standing::Quarantined { .. } => true,
            Standing::Suspect => self.reported,
            Standing::Clear => false,
        }
    }
}

/// Whether an entry is suspected of having spoiled a batch.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Standing {
    /// It is not.
    #[default]
    Clear,
    /// It was in a batch that Azure refused, and is in a group to be tried.
    Suspect,
    /// Azure refused it by itself.
    Quarantined {
        /// Its turn among the quarantined.
        turn: Turn,
        /// What was refused; held.
        refused: SetId,
    },
}

impl Addresses {
    pub(super) fn odd_mut(&mut self, spot: Spot) -> &mut Odd {
        if let Some(entry) = self.places.entry_mut(spot) {
            entry.set(Entry::ODD);
        }
        self.odd.entry(spot).or_default()
    }

    /// Forgets what stands beside an entry when there is nothing left of it.
    pub(super) fn tidy_odd(&mut self, spot: Spot) {
        self.count_rejected(spot);
        let Some(odd) = self.odd.get(&spot) else { return };
        if odd.either.is_empty() && odd.standing == Standing::Clear {
            self.odd.remove(&spot);
            if let Some(entry) = self.places.entry_mut(spot) {
                entry.clear(Entry::ODD);
            }
        }
    }

    /// Compares an entry that has something beside it; says whether there is something to send.
    pub(super) fn check_odd(&mut self, spot: Spot, entry: Entry, effective: &Effective) -> bool {
        let Some(odd) = self.odd.get(&spot) else { return false };
        let certain = odd.either.is_empty();
        match odd.standing {
            // Its group looks at it when its turn comes.
            Standing::Suspect => false,
            Standing::Quarantined { refused, .. } => {
                if certain && self.is(effective, entry.actual()) {
                    self.acquit(spot);
                    self.forget_if_absent(spot);
                    return false;
                }
                if self.is(effective, refused) {
                    return false;
                }
                self.suspect_again(spot);
                true
            }
            Standing::Clear if certain => {
                self.tidy_odd(spot);
                self.queue_if_needed(spot)
            }
            Standing::Clear => self.enqueue(spot, entry, effective),
        }
    }
}
