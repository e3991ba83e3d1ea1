//! Which entry spoils a batch: refused batches are halved until the offender stands alone.
//!
//! A refused batch becomes a group of suspects and is split: by service, then by location (those that only
//! lose addresses first, so that an address leaves its old place before it enters the new one), then by
//! address. Suspects travel without company, and between two groups of suspects goes a batch of everything
//! else: others never share a refusal and wait for one call at most, whatever a bisection takes.
//!
//! A refused group of one service is probed first: its first and its last entry alone. If Azure refuses
//! both, the service itself is the trouble (it is not registered, say) and the group is not taken apart.
//! An entry that is refused alone is quarantined. All quarantined entries are tried again together every
//! few minutes, and each at once when it changes. A bisection that takes too many calls leaves the rest in
//! quarantine; they are the first to be tried next time.
//!
//! Quarantine does not keep a deletion waiting: when an unbinding is refused alone, the location is
//! written in full without the address.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::mem::take;

use sluice_model::azure::LocationUpdate;
use sluice_model::{Failure, Time};

use super::Addresses;
use super::batch::Draft;
use super::lane::{Flight, Sent};
use super::notice::AddressNotice;
use super::odd::Standing;
use super::place::{PlaceId, Spot};
use super::services::ServiceIndex;
use super::sets::SetId;

/// Suspects that are tried in one request.
#[derive(Default)]
pub(super) struct Group {
    /// What is tried.
    pub(super) spots: Vec<Spot>,
    /// If `spots` is a probe: the others of the same service, whose fate hangs on it.
    rest: Vec<Spot>,
    /// Probes of this service that were refused before.
    strikes: u8,
    /// It is known that the service as such is welcome.
    probed: bool,
    /// The location is written in full without the one entry.
    full: bool,
}

/// When a quarantined entry is tried again: those that were never tried alone first, then by number.
pub(super) type Turn = (bool, u64);

/// The suspects and the quarantined.
#[derive(Default)]
pub(super) struct Bisect {
    groups: VecDeque<Group>,
    /// Suspects that wait for a group: quarantined entries that changed.
    pub(super) loose: Vec<Spot>,
    /// Suspects that wait for a listing.
    pub(super) awaiting: Vec<Spot>,
    /// The quarantined, in the order in which they are tried again.
    pub(super) quarantine: BTreeMap<Turn, Spot>,
    pub(super) turns: u64,
    pub(super) retry_at: Option<Time>,
    /// What Azure said when it last refused an entry by itself.
    pub(super) refusal: Option<Failure>,
    /// Calls left before the rest is quarantined untried.
    calls_left: u32,
    /// The last batch was one of ordinary changes.
    after_changes: bool,
}

impl Bisect {
    /// Whether suspects wait to be tried.
    pub(super) fn is_pending(&self) -> bool {
        !self.groups.is_empty() || !self.loose.is_empty()
    }

    /// Whether it is the suspects' turn.
    pub(super) fn is_next(&self) -> bool {
        self.after_changes && self.is_pending()
    }

    pub(super) fn next_turn(&mut self) {
        self.after_changes = true;
    }

    pub(super) fn retry_at(&self) -> Option<Time> {
        self.retry_at
    }

    /// The suspects that waited for a listing are tried with the next group.
    pub(super) fn listing_is_in(&mut self) {
        self.loose.append(&mut self.awaiting);
    }

    pub(super) fn put_back(&mut self, group: Group) {
        self.groups.push_front(group);
    }

    /// Every suspect; for the recount.
    pub(super) fn suspects(&self) -> impl Iterator<Item = Spot> {
        let grouped = self.groups.iter().flat_map(|group| group.spots.iter().chain(&group.rest));
        grouped.chain(&self.loose).chain(&self.awaiting).copied()
    }
}

impl Group {
    /// Writes a location in full without one of its addresses.
    pub(super) fn without(spot: Spot) -> Group {
        Group { spots: [spot].into(), full: true, ..Group::default() }
    }

    /// Every entry of the group that is in a request, or hangs on it; for the recount.
    pub(super) fn all(&self) -> impl Iterator<Item = Spot> {
        self.spots.iter().chain(&self.rest).copied()
    }
}

impl Addresses {
    /// Sends the next group of suspects.
    pub(super) fn send_suspects(&mut self) -> Option<Vec<LocationUpdate>> {
        let loose = take(&mut self.bisect.loose);
        self.add_groups(loose);
        while let Some(mut group) = self.bisect.groups.pop_front() {
            let (draft, later) = self.draft_of_group(&group);
            if !later.is_empty() {
                self.bisect.groups.push_front(Group { spots: later, ..Group::default() });
            }
            if !group.full {
                // Those that were in sync by now are nobody's suspects any more.
                group.spots = draft.spots();
            }
            if draft.is_empty() {
                // In sync by now; the others that hung on it are tried for themselves.
                let rest = take(&mut group.rest);
                self.add_groups(rest);
                continue;
            }
            self.bisect.calls_left = self.bisect.calls_left.saturating_sub(1);
            self.bisect.after_changes = false;
            return self.launch(draft, Some(group));
        }
        None
    }

    fn draft_of_group(&mut self, group: &Group) -> (Draft, Vec<Spot>) {
        if !group.full {
            return self.draft_of(&group.spots);
        }
        let Some(&spot) = group.spots.first() else { return Default::default() };
        let effective = self.effective(spot);
        let refused = self.hold(&effective);
        let still_binding = self.unbinding_is_urgent(spot, refused);
        let draft = if still_binding { self.draft_without(spot) } else { None };
        self.sets.drop(refused, &mut self.services);
        if draft.is_none() {
            if still_binding {
                self.quarantine(spot, true);
            } else {
                self.acquit(spot);
                self.queue_if_needed(spot);
            }
        }
        (draft.unwrap_or_default(), Vec::new())
    }

    /// Puts suspects into groups that fit into a request.
    pub(super) fn add_groups(&mut self, spots: Vec<Spot>) {
        if spots.is_empty() {
            return;
        }
        if self.bisect.groups.is_empty() {
            self.bisect.calls_left = self.limits.bisect_calls_max;
        }
        for spots in spots.chunks(self.limits.addresses_max.max(1)) {
            self.bisect.groups.push_back(Group { spots: spots.into(), ..Group::default() });
        }
    }

    /// Azure refused the batch.
    pub(super) fn finish_refused(&mut self, flight: Flight, failure: &Failure) {
        self.totals.failures += 1;
        self.lane.answered();
        let Flight { sent, group, .. } = flight;
        self.undo(&sent);
        let first_news = self.bisect.turns;
        match group {
            Some(group) if group.full => {
                for &spot in &group.spots {
                    self.quarantine(spot, true);
                }
            }
            Some(group) => self.group_refused(group),
            None => {
                if !self.bisect.is_pending() {
                    self.bisect.calls_left = self.limits.bisect_calls_max;
                }
                let spots: Vec<Spot> = sent.iter().map(|sent| sent.spot).collect();
                for sent in &sent {
                    let odd = self.odd_mut(sent.spot);
                    odd.standing = Standing::Suspect;
                    odd.since = Some(sent.since).filter(|since| *since != Time::NEVER);
                    self.count_rejected(sent.spot);
                }
                self.group_refused(Group { spots, ..Group::default() });
            }
        }
        if self.bisect.calls_left == 0 {
            let groups = take(&mut self.bisect.groups);
            for spot in groups.iter().flat_map(Group::all) {
                self.quarantine(spot, false);
            }
        }
        for Sent { spot, .. } in sent {
            self.queue_if_needed(spot);
        }
        self.report_quarantined(first_news, failure);
    }

    fn group_refused(&mut self, group: Group) {
        let Group { spots, mut rest, strikes, probed, .. } = group;
        match spots.as_slice() {
            [] => {}
            &[spot] => {
                self.refused_alone(spot);
                if strikes > 0 {
                    for spot in rest {
                        self.quarantine(spot, false);
                    }
                } else if let Some(probe) = rest.pop() {
                    let spots = [probe].into();
                    self.bisect.groups.push_front(Group { spots, rest, strikes: 1, ..Group::default() });
                }
            }
            _ => self.split(spots, probed),
        }
    }

    /// A group went through: nobody in it is to blame.
    pub(super) fn group_passed(&mut self, group: Group) {
        for &spot in &group.spots {
            if group.full {
                let place = &self.places[spot.place];
                let (location, address) = (place.ip, self.addrs.ip(place.family, spot.addr));
                if !core::mem::replace(&mut self.odd_mut(spot).reported, true) {
                    self.notify(AddressNotice::RemovedByFullUpdate { location, address });
                }
                // What it should have instead was refused, so it waits.
                if self.gains(spot) {
                    self.quarantine(spot, true);
                    continue;
                }
            }
            self.acquit(spot);
            self.queue_if_needed(spot);
        }
        if !group.rest.is_empty() {
            self.split(group.rest, true);
        }
    }

    /// Whether an entry is to have services at all.
    fn gains(&self, spot: Spot) -> bool {
        let effective = self.effective(spot);
        !self.is(&effective, SetId::EMPTY)
    }

    /// Splits a group that Azure refused, or of which it refused the rest.
    fn split(&mut self, mut spots: Vec<Spot>, probed: bool) {
        if spots.len() < 2 {
            self.bisect.groups.push_front(Group { spots, ..Group::default() });
            return;
        }
        let leads: Vec<Option<ServiceIndex>> = spots
            .iter()
            .map(|&spot| {
                let entry = self.places.entry(spot)?;
                self.lead(spot, entry, &self.effective_of(spot, Some(entry)))
            })
            .collect();
        let mut halves = halve(&spots, &leads);
        if halves.is_none() {
            // One service: what leaves goes before what comes.
            let coming = spots.iter().filter(|&&spot| self.gains(spot)).map(|spot| spot.place);
            let coming: BTreeSet<PlaceId> = coming.collect();
            spots.sort_by_key(|spot| coming.contains(&spot.place));
            if !probed {
                let rest = spots.split_off(1);
                self.bisect.groups.push_front(Group { spots, rest, ..Group::default() });
                return;
            }
            let places: Vec<PlaceId> = spots.iter().map(|spot| spot.place).collect();
            halves = halve(&spots, &places);
        }
        let (first, second) = halves.unwrap_or_else(|| {
            let (first, second) = spots.split_at(spots.len() / 2);
            (first.into(), second.into())
        });
        self.bisect.groups.push_front(Group { spots: second, probed, ..Group::default() });
        self.bisect.groups.push_front(Group { spots: first, probed, ..Group::default() });
    }
}

/// Splits entries in two so that those with equal marks stay together; `None` if all marks are equal.
fn halve<M: Ord + Copy>(spots: &[Spot], marks: &[M]) -> Option<(Vec<Spot>, Vec<Spot>)> {
    let mut seen = BTreeSet::new();
    let different: Vec<M> = marks.iter().copied().filter(|&mark| seen.insert(mark)).collect();
    if different.len() < 2 {
        return None;
    }
    let front: BTreeSet<M> = different[..different.len() / 2].iter().copied().collect();
    let mut halves = (Vec::new(), Vec::new());
    for (&spot, mark) in spots.iter().zip(marks) {
        if front.contains(mark) { &mut halves.0 } else { &mut halves.1 }.push(spot);
    }
    Some(halves)
}
