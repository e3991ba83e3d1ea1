//! Keeps the addresses in Azure equal to those that are wanted, at the cost of what changes.
//!
//! Two sides are known for each address at each location: who wants it (from slices, pods and nodes, each a
//! level that is kept from the moment it is known) and what Azure has (from what it confirmed, and from
//! listings). Only entries whose sides may differ are queued; a batch drains the queues. With a million
//! addresses in sync, one changed pod touches a handful of records.
//!
//! ```text
//!  slices ─┐                        ┌─▶ queue of its service ─▶ batch ─▶ Azure
//!  pods   ─┼─▶ wanted per node ─▶ compare                         │
//!  nodes  ─┘                        ▲                             │ confirmed, failed, unknown, refused
//!                what Azure has per place ◀───────────────────────┘
//! ```
//!
//! - a service's addresses count as soon as they are known, but are sent only while the service is ready;
//! - a deletion waits for [`Addresses::mapped`], which counts everything that may be mapped, in one place;
//! - a refused batch is taken apart until the offender is found (`bisect`), and the offender set aside;
//! - [`Addresses::recount`] works everything out again the slow way; tests and the simulator call it.
//!
//! Numbers instead of names keep this small: nodes, places, services and lists of services have indexes of
//! 32 bits, an IPv4 address is its own number and an IPv6 address gets one.
//!
//! Missing on purpose: time that passes by itself, budgets and pace (the updater's), the lifecycle of
//! services (it says what is ready and asks what is mapped), resourceVersions (the engine refuses stale
//! lists before they come here).

mod ahead;
mod batch;
mod bisect;
mod gate;
mod lane;
mod listing;
mod nodes;
mod notice;
mod odd;
mod others;
mod place;
mod pods;
mod quarantine;
mod queue;
mod recount;
mod services;
mod sets;
mod slab;
mod slices;
mod table;
mod trouble;
mod wanted;
mod wide;

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::mem::take;
use core::net::IpAddr;
use core::time::Duration;

use sluice_model::seeded::{Bug, Seeded};
use sluice_model::{Family, Time};

pub use listing::Trust;
pub(crate) use notice::addresses_in_words;
pub use notice::{AddressNotice, Sample};
pub use services::{Mode, ServiceIndex};
pub use slices::{OwnerKey, PortResolution};
pub use trouble::{LaneTrouble, MissingPlace};

use crate::counters::Histogram;
use place::Spot;

/// A hash map that is the same in every process.
type Map<K, V> = hashbrown::HashMap<K, V, foldhash::fast::FixedState>;

/// Where a family stands in a pair.
const fn side(family: Family) -> usize {
    match family {
        Family::V4 => 0,
        Family::V6 => 1,
    }
}

/// How many entries are read ahead at once: enough to keep the memory busy, few enough to stay near.
const READ_AHEAD: usize = 256;

/// So many notices wait for [`Addresses::take_notices`]; on a standby they wait until it leads.
const NOTICES_MAX: usize = 1000;

/// How much, how often and how long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Addresses in one request.
    pub addresses_max: usize,
    /// Bytes of one request, estimated from its JSON form.
    pub bytes_max: usize,
    /// The first pause after a failure.
    pub backoff_min: Duration,
    /// The longest pause after a failure.
    pub backoff_max: Duration,
    /// How often refused entries are tried again.
    pub quarantine_retry: Duration,
    /// Calls that one bisection may take before the rest is set aside.
    pub bisect_calls_max: u32,
    /// Failures in a row after which it is said that the sync fails.
    pub failures_reported: u32,
    /// A listing is not asked about what was written this long before it began.
    pub listing_margin: Duration,
    /// How long writes are remembered for listings; an older listing is ignored.
    pub writes_remembered: Duration,
    /// How long after it began a listing may be used to decide which addresses of a location are unmanaged; one that
    /// took more than half of this may be used for as long again as it took.
    pub listing_valid: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            addresses_max: 1000,
            bytes_max: 1 << 20,
            backoff_min: Duration::from_secs(1),
            backoff_max: Duration::from_secs(30),
            quarantine_retry: Duration::from_secs(5 * 60),
            bisect_calls_max: 40,
            failures_reported: 12,
            listing_margin: Duration::from_secs(30),
            writes_remembered: Duration::from_secs(5 * 60),
            listing_valid: Duration::from_secs(30),
        }
    }
}

/// Counters over all services.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// (service, node, address) triples that are wanted.
    pub wanted: usize,
    /// (service, location, address) triples that Azure is known to have.
    pub programmed: usize,
    /// Queued entries: the two sides may differ.
    pub dirty: usize,
    /// Entries in the batch in flight.
    pub in_flight: usize,
    /// Entries whose outcome is unknown.
    pub either: usize,
    /// Entries that Azure refuses.
    pub quarantined: usize,
    /// Of the wanted: those of open services that are not ready.
    pub buffered: usize,
    /// Wanted addresses whose service became ready, ever.
    pub promoted: u64,
    /// Batches, ever.
    pub batches: u64,
    /// Batches that failed, ever.
    pub failures: u64,
}

/// The addresses of the cluster and of Azure, and the difference between them.
pub struct Addresses {
    limits: Limits,
    seeded: Seeded,
    /// The newest time seen.
    now: Time,
    services: services::Services,
    sets: sets::Sets,
    addrs: wide::Addrs,
    nodes: nodes::Nodes,
    places: place::Places,
    slices: slices::Slices,
    pods: pods::Pods,
    /// How many times more than once something is wanted.
    repeated: Map<wanted::Wish, u32>,
    odd: Map<Spot, odd::Odd>,
    /// The services with something in their queue, in turn.
    ring: VecDeque<ServiceIndex>,
    lane: lane::Lane,
    flight: Option<lane::Flight>,
    batch_number: u32,
    bisect: bisect::Bisect,
    sightings: listing::Sightings,
    /// Entries of which the last listing lacks an unmanaged service that is known there.
    others_missing: BTreeSet<Spot>,
    /// When the last listing began.
    listing_began: Option<Time>,
    /// Until when it may be used to decide what is unmanaged.
    listing_valid_until: Option<Time>,
    /// Entries that also name unmanaged services, and are written only after a new listing, with the moment from
    /// which one can tell.
    awaits_listing: BTreeMap<Spot, Time>,
    /// Pods whose address an unmanaged egress has.
    held: BTreeMap<Spot, others::Held>,
    /// Per identity, the entries that one listing has shown and that we did not know of. The service may be opened
    /// only later: its registration is listed apart from its addresses.
    suspected: BTreeMap<Arc<str>, u32>,
    /// Locations that Azure has without addresses.
    hollow: BTreeSet<place::PlaceId>,
    notices: Vec<AddressNotice>,
    totals: Totals,
    /// Since when what is queued now has been news; `None`: since now.
    news_since: Option<Time>,
    /// How long entries were other than wanted.
    delays: Histogram,
}

impl fmt::Debug for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Addresses")
            .field("now", &self.now)
            .field("totals", &self.totals)
            .finish_non_exhaustive()
    }
}

impl Addresses {
    /// Knows nothing yet. The seed spreads the pauses after failures.
    pub fn new(limits: Limits, seed: u64, seeded: Seeded) -> Addresses {
        Addresses {
            limits,
            seeded,
            now: Time::ZERO,
            services: services::Services::new(),
            sets: sets::Sets::new(),
            addrs: wide::Addrs::new(),
            nodes: nodes::Nodes::new(),
            places: place::Places::new(),
            slices: slices::Slices::new(),
            pods: pods::Pods::new(),
            repeated: Map::default(),
            odd: Map::default(),
            ring: VecDeque::new(),
            lane: lane::Lane::new(seed),
            flight: None,
            batch_number: 0,
            bisect: bisect::Bisect::default(),
            sightings: listing::Sightings::new(),
            others_missing: BTreeSet::new(),
            listing_began: None,
            listing_valid_until: None,
            awaits_listing: BTreeMap::new(),
            held: BTreeMap::new(),
            suspected: BTreeMap::new(),
            hollow: BTreeSet::new(),
            notices: Vec::new(),
            totals: Totals::default(),
            news_since: None,
            delays: Histogram::default(),
        }
    }

    /// The number of a service, which the lifecycle knows from now on. The same identity (case does not
    /// matter) gives the same number for as long as it is open or anything mentions it.
    pub fn open(&mut self, identity: &str) -> ServiceIndex {
        let was_open = self.services.find(identity).is_some_and(|service| self.services[service].open);
        let service = self.services.open(identity);
        if !was_open {
            let record = &self.services[service];
            self.totals.buffered += if record.is_ready() { 0 } else { record.wanted as usize };
        }
        service
    }

    /// The lifecycle forgets a service; its number is free when nothing mentions it any more.
    ///
    /// Addresses that are still mapped to it belong to an unmanaged service, and are kept.
    pub fn close(&mut self, service: ServiceIndex) {
        let foreign = self.mapped(service) > 0;
        self.set_mode(service, if foreign { Mode::Unmanaged } else { Mode::Draining });
        let Some(record) = self.services.get(service) else { return };
        if record.open {
            self.totals.buffered -= record.wanted as usize;
            self.services.close(service);
        }
    }

    /// The identity of a service; empty if the number names none.
    pub fn identity(&self, service: ServiceIndex) -> &Arc<str> {
        self.services.identity(service)
    }

    /// Says what happens to the addresses of a service. Costs its addresses; nothing if it was so before.
    pub fn set_mode(&mut self, service: ServiceIndex, mode: Mode) {
        let Some(record) = self.services.get(service) else { return };
        if record.mode == mode {
            return;
        }
        let wanted = record.wanted as usize;
        let (open, was_ready) = (record.open, record.is_ready());
        self.services[service].mode = mode;
        let kept = take(&mut self.services[service].kept);
        let is_ready = mode == Mode::Ready;
        match (was_ready, is_ready) {
            (false, true) if open => self.totals.buffered -= wanted,
            (true, false) if open => self.totals.buffered += wanted,
            _ => {}
        }
        if is_ready {
            self.totals.promoted += wanted as u64;
            if self.seeded.has(Bug::NoPromotion) {
                return;
            }
        }
        for spot in kept {
            if self.places.is_there(spot.place) {
                self.check(spot);
            }
        }
        for spots in self.spots_of(service).chunks(READ_AHEAD) {
            self.ahead_of_spots(spots);
            for &spot in spots {
                self.check(spot);
            }
        }
    }

    /// As [`Addresses::set_mode`], when what becomes dirty by it has waited since an earlier moment.
    pub fn set_mode_since(&mut self, service: ServiceIndex, mode: Mode, since: Option<Time>) {
        self.news_since = since;
        self.set_mode(service, mode);
        self.news_since = None;
    }

    /// As [`Addresses::set_mode`] with nothing in between: ready, or draining.
    pub fn set_ready(&mut self, service: ServiceIndex, ready: bool) {
        self.set_mode(service, if ready { Mode::Ready } else { Mode::Draining });
    }

    /// The entries that a service wants.
    fn spots_of(&self, service: ServiceIndex) -> Vec<Spot> {
        let record = &self.services[service];
        let mut spots = Vec::with_capacity(record.wanted as usize);
        let any_ready = record.ready_endpoints > 0;
        for &slice in record.owners.iter().flat_map(|&owner| &self.slices.owners[owner].slices) {
            for family in Family::ALL {
                let points = self.slices.slab[slice].points[side(family)].iter();
                for point in points.filter(|point| point.counts(any_ready)) {
                    if let Some(place) = self.nodes[point.node()].place[side(family)] {
                        spots.push(Spot { place, addr: point.addr });
                    }
                }
            }
        }
        for &pod in &record.pods {
            for family in Family::ALL {
                let record = &self.pods.slab[pod];
                if let Some(addr) = record.ip(family)
                    && let Some(place) = self.nodes[record.node].place[side(family)]
                {
                    spots.push(Spot { place, addr });
                }
            }
        }
        spots
    }

    /// How many (location, address) pairs may be mapped to a service in Azure: known, on their way, or of
    /// unknown outcome, or shown by one listing so far. A deletion waits until it is zero. Costs nothing.
    pub fn mapped(&self, service: ServiceIndex) -> u32 {
        if self.seeded.has(Bug::GateForgetsInFlight) {
            return self.programmed(service);
        }
        let known = self.services.get(service).map_or(0, |record| record.mapped);
        known.saturating_add(self.suspected.get(self.identity(service)).copied().unwrap_or(0))
    }

    /// Whether what a service wants is sent.
    pub fn is_ready(&self, service: ServiceIndex) -> bool {
        self.services.get(service).is_some_and(services::Service::is_ready)
    }

    /// How many (node, address) pairs a service wants, ready or not.
    pub fn wanted(&self, service: ServiceIndex) -> u32 {
        self.services.get(service).map_or(0, |record| record.wanted)
    }

    /// How many (location, address) pairs are known to be mapped to a service in Azure.
    pub fn programmed(&self, service: ServiceIndex) -> u32 {
        self.services.get(service).map_or(0, |record| record.programmed)
    }

    /// Of the wanted pairs: those whose node has no address of the family, or is not known yet.
    pub fn unplaceable(&self, service: ServiceIndex) -> u32 {
        self.services.get(service).map_or(0, |record| record.unplaceable)
    }

    /// Some (location, address) pairs that may be mapped to a service, sorted, at most so many.
    ///
    /// Looks first where they nearly always are: in its queue, among what it wants, in the batch in flight. Only what
    /// is not there is looked for among everything that Azure has.
    pub fn holding(&self, service: ServiceIndex, most: usize) -> Vec<(IpAddr, IpAddr)> {
        let Some(record) = self.services.get(service) else { return Vec::new() };
        let most = most.min(record.mapped as usize);
        let mut spots: BTreeSet<Spot> = BTreeSet::new();
        let mut look_among = |some: &mut dyn Iterator<Item = Spot>| {
            while spots.len() < most
                && let Some(spot) = some.next()
            {
                spots.insert(spot);
            }
        };
        let may_hold = |spot: &Spot| self.may_be_mapped(*spot, service);
        let near = record.queue.iter().chain(&record.kept).copied();
        look_among(&mut near.chain(self.spots_of(service)).filter(may_hold));
        let sent = self.flight.iter().flat_map(|flight| &flight.sent);
        let sent = sent.filter(|it| self.sets.contains(it.set, service) || may_hold(&it.spot));
        look_among(&mut sent.map(|it| it.spot));
        let set_aside = self.bisect.quarantine.values().copied().chain(self.bisect.suspects());
        look_among(&mut set_aside.chain(self.awaits_listing.keys().copied()).filter(may_hold));
        let all = self
            .places
            .iter()
            .flat_map(|(place, record)| record.entries.iter().map(move |(addr, _)| Spot { place, addr }));
        look_among(&mut all.filter(may_hold));
        let pair = |spot: &Spot| {
            let place = &self.places[spot.place];
            (place.ip, self.addrs.ip(place.family, spot.addr))
        };
        let mut holding: Vec<(IpAddr, IpAddr)> = spots.iter().map(pair).collect();
        holding.sort_unstable();
        holding
    }

    /// Whether Azure has an entry mapped to a service, or may have it because an outcome is unknown.
    fn may_be_mapped(&self, spot: Spot, service: ServiceIndex) -> bool {
        let entry = self.places.is_there(spot.place).then(|| self.places.entry(spot)).flatten();
        entry.is_some_and(|entry| {
            let either = gate::odd_sets(&self.odd, spot, entry);
            gate::possible(&self.sets, entry.actual(), either, service)
        })
    }

    /// The services that the lifecycle should look at: nothing is mapped to them any more, or their pods,
    /// ports or counting endpoints changed, since the last call. In the order in which it happened.
    pub fn take_touched(&mut self) -> Vec<ServiceIndex> {
        self.services.take_touched()
    }

    /// The services whose counts may have changed since the last call, each once.
    pub fn take_recounted(&mut self) -> Vec<ServiceIndex> {
        self.services.take_recounted()
    }

    /// How long entries were other than wanted, from the change to Azure's confirmation.
    pub fn delays(&self) -> &Histogram {
        &self.delays
    }

    fn notify(&mut self, notice: AddressNotice) {
        if self.notices.len() < NOTICES_MAX {
            self.notices.push(notice);
        }
    }

    /// What people should know, each once.
    pub fn take_notices(&mut self) -> Vec<AddressNotice> {
        take(&mut self.notices)
    }

    /// The counters. Entries that wait for a listing are dirty too.
    pub fn totals(&self) -> Totals {
        Totals { dirty: self.totals.dirty + self.awaits_listing.len(), ..self.totals }
    }
}
