//! What a leader may believe about one thing, and how reads and writes change it.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use sluice_model::Time;
use sluice_model::azure::Tags;

/// How long a read may contradict a confirmed write and still be taken for a lagging one.
const LAG_TRUST: Duration = Duration::from_secs(30);

/// How long after the first sighting of a difference the second one counts.
pub(super) const SECOND_LOOK: Duration = Duration::from_secs(40);
/// What was told about one thing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Told {
    /// Nothing yet.
    #[default]
    Nothing,
    /// It is not there.
    Absent,
    /// It is there.
    Present(Face),
    /// A write was begun and nobody knows how it ended.
    Unsure,
}

/// The part of a resource or registration that judgements need.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Face {
    /// Its tags; empty for registrations.
    pub tags: Tags,
    /// The address of a public IP.
    pub address: Option<IpAddr>,
    /// A registration that refers to nothing any more.
    pub cleared: bool,
    /// A NAT gateway that works for no gateway.
    pub detached: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Fact {
    pub(super) told: Told,
    pub(super) before: Told,
    pub(super) touched_seq: u64,
    /// The last write that was begun; the end of an older one, long given up, tells nothing.
    pub(super) write_seq: u64,
    pub(super) settled_at: Time,
    pub(super) confirmed: bool,
    /// When a read first showed more than is believed.
    pub(super) doubted_at: Option<Time>,
    /// What the last read showed, believed or not.
    pub(super) shown: Option<Face>,
    /// When a read first said that it is gone, or refers to nothing, although nobody took it away.
    pub(super) lost_at: Option<Time>,
    /// The last read that showed a cleared registration as referring to something again, and was believed.
    pub(super) referred_again: Option<u64>,
    pub(super) in_flight: bool,
}

impl Fact {
    /// Of something that was never heard of; a whole listing without it has said that it is absent.
    pub(super) fn new(listed_before: bool) -> Fact {
        let told = if listed_before { Told::Absent } else { Told::Nothing };
        Fact { told, ..Fact::default() }
    }

    pub(super) fn before_write(&self) -> &Told {
        if self.in_flight || self.told == Told::Unsure { &self.before } else { &self.told }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Mapping {
    /// Every service that the address may be mapped to.
    pub(super) services: BTreeSet<Arc<str>>,
    /// What the last listing showed, believed or not.
    pub(super) shown: BTreeSet<Arc<str>>,
    pub(super) before: BTreeSet<Arc<str>>,
    pub(super) touched_seq: u64,
    pub(super) write_seq: u64,
    pub(super) settled_at: Time,
    /// Something has been said about it: by an answer, or by a whole listing that had it or had it not.
    pub(super) known: bool,
    pub(super) confirmed: bool,
    pub(super) doubted_at: Option<Time>,
    pub(super) in_flight: bool,
    /// Services that a listing has shown here and that were not known, with that listing.
    pub(super) shown_first: BTreeMap<Arc<str>, u64>,
}

pub(super) fn begin(fact: &mut Fact, seq: u64) {
    if !fact.in_flight && fact.told != Told::Unsure {
        fact.before = fact.told.clone();
    }
    fact.told = Told::Unsure;
    fact.touched_seq = seq;
    fact.write_seq = seq;
    fact.in_flight = true;
    fact.confirmed = false;
    fact.doubted_at = None;
}

pub(super) fn begin_mapping(mapping: &mut Mapping, seq: u64) {
    if !mapping.in_flight {
        mapping.before = mapping.services.clone();
    }
    mapping.in_flight = true;
    mapping.touched_seq = seq;
    mapping.write_seq = seq;
}

/// A read tells something, unless a write has been under way since it began or it looks like a lagging one.
pub(super) fn learn(fact: &mut Fact, now: Time, read_seq: u64, told: Told) {
    if fact.in_flight || fact.touched_seq > read_seq {
        return;
    }
    // Whether the read shows more than was known: something that was gone, or a reference that was cleared.
    let shows_more = match (&fact.told, &told) {
        (Told::Absent, Told::Present(_)) => true,
        (Told::Present(was), Told::Present(is)) => was.cleared && !is.cleared,
        _ => false,
    };
    let shows_other = match (&fact.told, &told) {
        (Told::Present(_), Told::Absent) => true,
        (Told::Present(was), Told::Present(is)) => was.cleared != is.cleared || was.tags != is.tags,
        _ => shows_more,
    };
    fact.shown = match &told {
        Told::Present(face) => Some(face.clone()),
        _ => None,
    };
    let lags = fact.confirmed && shows_other && now.since(fact.settled_at) < LAG_TRUST;
    if lags || (shows_more && is_first_sighting(&mut fact.doubted_at, now)) {
        return;
    }
    let is_live = |told: &Told| matches!(told, Told::Present(face) if !face.cleared);
    if is_live(&fact.told) && !is_live(&told) {
        fact.lost_at = Some(now);
    }
    if shows_more && is_live(&told) {
        fact.referred_again = Some(read_seq);
    }
    fact.told = told;
    fact.confirmed = fact.confirmed && !shows_other;
    fact.doubted_at = None;
}

/// Two reads show a difference only if some time lies between them: one listing is read for several reasons.
fn is_first_sighting(doubted_at: &mut Option<Time>, now: Time) -> bool {
    let since = *doubted_at.get_or_insert(now);
    now.since(since) < SECOND_LOOK
}

pub(super) fn learn_mapping(mapping: &mut Mapping, now: Time, read_seq: u64, services: BTreeSet<Arc<str>>) {
    mapping.shown.clone_from(&services);
    if mapping.in_flight || mapping.touched_seq > read_seq {
        return;
    }
    let shows_more = !services.is_subset(&mapping.services);
    let shows_other = services != mapping.services;
    let lags = mapping.confirmed && shows_other && now.since(mapping.settled_at) < LAG_TRUST;
    if lags {
        return;
    }
    if shows_more && mapping.known && is_first_sighting(&mut mapping.doubted_at, now) {
        // What is gone counts at once, what is new after a second look.
        mapping.services.retain(|name| services.contains(name));
        return;
    }
    for name in services.difference(&mapping.services) {
        mapping.shown_first.insert(Arc::clone(name), read_seq);
    }
    mapping.services = services;
    mapping.known = true;
    mapping.confirmed = mapping.confirmed && !shows_other;
    mapping.doubted_at = None;
}
