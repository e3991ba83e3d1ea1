//! The slow truth: everything that is kept up to date bit by bit, worked out again from the sources.
//!
//! The sources are the slices with their owners, the pods, the nodes' own addresses, what Azure has per
//! entry, what is in flight and what is in doubt. From them follow who wants what where, every count, and
//! which entries have to wait somewhere to be sent. For tests and the simulator.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use sluice_model::Family;

use super::nodes::NodeId;
use super::odd::Standing;
use super::place::{Entry, PlaceId, Spot};
use super::services::{Mode, ServiceIndex};
use super::sets::SetId;
use super::wide::Addr;
use super::{Addresses, Totals, side};

/// How often each service wants each address of each node.
type Wants = BTreeMap<(NodeId, Family, Addr), BTreeMap<ServiceIndex, u32>>;

/// Says what differs unless the two are equal.
macro_rules! agree {
    ($left:expr, $right:expr, $($what:tt)+) => {
        let (left, right) = (&$left, &$right);
        if left != right {
            return Err(format!("{}: kept {:?}, counted {:?}", format!($($what)+), left, right));
        }
    };
}

impl Addresses {
    /// Works everything out again the slow way and says what differs from what is kept.
    pub fn recount(&self) -> Result<(), String> {
        let wants = self.recount_wants();
        self.recount_nodes(&wants)?;
        self.recount_services(&wants)?;
        let mut totals = Totals { promoted: 0, batches: 0, failures: 0, ..Totals::default() };
        self.recount_entries(&mut totals)?;
        self.recount_queues()?;
        self.recount_holders()?;
        for (_, service) in self.services.iter() {
            totals.wanted += service.wanted as usize;
            totals.programmed += service.programmed as usize;
            totals.dirty += service.queue.len();
            totals.buffered += if service.open && !service.is_ready() { service.wanted as usize } else { 0 };
        }
        let Totals { promoted, batches, failures, .. } = self.totals;
        agree!(self.totals, Totals { promoted, batches, failures, ..totals }, "totals");
        Ok(())
    }

    fn recount_wants(&self) -> Wants {
        let mut wants = Wants::new();
        let mut want = |node, family, addr, service| {
            *wants.entry((node, family, addr)).or_default().entry(service).or_default() += 1;
        };
        for (service, record) in self.services.iter() {
            let slices = || {
                let owners = self.slices.owners.iter().filter(|(_, owner)| owner.service == Some(service));
                owners.flat_map(|(_, owner)| &owner.slices).map(|&slice| &self.slices.slab[slice])
            };
            if record.owners.is_empty() {
                continue;
            }
            let any_ready =
                slices().flat_map(|slice| slice.points.iter().flatten()).any(|point| point.is_ready());
            for slice in slices() {
                for family in Family::ALL {
                    for point in slice.points[side(family)].iter().filter(|point| point.counts(any_ready)) {
                        want(point.node(), family, point.addr, service);
                    }
                }
            }
        }
        let mut owners = BTreeMap::new();
        for (_, pod) in self.pods.slab.iter() {
            for family in Family::ALL {
                if let Some(addr) = pod.ip(family) {
                    let owner = owners.entry((family, addr)).or_insert(pod);
                    if pod.rank() > owner.rank() {
                        *owner = pod;
                    }
                }
            }
        }
        for ((family, addr), pod) in owners {
            want(pod.node, family, addr, pod.service);
        }
        wants
    }

    fn recount_nodes(&self, wants: &Wants) -> Result<(), String> {
        let mut kept = Wants::new();
        for (id, node) in self.nodes.slab.iter() {
            for family in Family::ALL {
                for (addr, set) in node.wanted[side(family)].iter() {
                    let once = self.sets.members(set).iter().map(|&service| (service, 1)).collect();
                    kept.insert((id, family, addr), once);
                }
                let place = node.place[side(family)].map(|place| self.places[place].ip);
                agree!(place, node.location(family), "place of node {}", node.name);
                if let Some(place) = node.place[side(family)] {
                    let here = self.places[place].nodes().filter(|&other| other == id).count();
                    agree!(here, 1, "node {} at its place", node.name);
                }
            }
        }
        for (wish, again) in &self.repeated {
            let kept = kept.entry((wish.node, wish.family, wish.addr)).or_default();
            *kept.entry(wish.service).or_default() += again;
        }
        agree!(kept, *wants, "wanted addresses");
        Ok(())
    }

    fn recount_services(&self, wants: &Wants) -> Result<(), String> {
        for (id, service) in self.services.iter() {
            let who = &service.identity;
            let own = || wants.iter().filter(|(_, services)| services.contains_key(&id));
            agree!(service.wanted as usize, own().count(), "{who} wanted");
            let homeless = |node: NodeId, family| self.nodes[node].place[side(family)].is_none();
            let unplaceable = own().filter(|((node, family, _), _)| homeless(*node, *family)).count();
            agree!(service.unplaceable as usize, unplaceable, "{who} unplaceable");
            let slices = self.slices.slab.iter();
            let own = slices.filter(|(_, slice)| self.slices.owners[slice.owner].service == Some(id));
            let ready =
                own.flat_map(|(_, slice)| slice.points.iter().flatten()).filter(|point| point.is_ready());
            agree!(service.ready_endpoints as usize, ready.count(), "{who} ready endpoints");
            let pods = self.pods.slab.iter().filter(|(_, pod)| pod.service == id);
            let pods: BTreeSet<_> = pods.map(|(pod, _)| pod).collect();
            agree!(service.pods.iter().copied().collect::<BTreeSet<_>>(), pods, "{who} pods");
            agree!(service.pods.len(), pods.len(), "{who} number of pods");
        }
        Ok(())
    }

    /// The ready services that want an address at a place, and those that keep what they may have.
    fn naive_effective(&self, place: PlaceId, addr: Addr) -> BTreeSet<ServiceIndex> {
        let record = &self.places[place];
        let here = self.nodes.slab.iter().filter(|(_, node)| node.location(record.family) == Some(record.ip));
        let sets = here.filter_map(|(_, node)| node.wanted[side(record.family)].get(addr));
        let members = sets.flat_map(|set| self.sets.members(set)).copied();
        let ready = members.filter(|&service| self.services[service].is_ready());
        let possible = self.possible_sets(Spot { place, addr });
        let possible = possible.iter().flat_map(|&set| self.sets.members(set)).copied();
        let mut ready: BTreeSet<ServiceIndex> = ready.collect();
        let kept = possible.filter(|&service| match self.services[service].mode {
            Mode::Frozen | Mode::Unmanaged => true,
            Mode::Waiting => self.is_wanted_by(Spot { place, addr }, service),
            Mode::Ready | Mode::Draining => false,
        });
        let kept: BTreeSet<ServiceIndex> = kept.collect();
        let outbound = |service: &ServiceIndex| self.services[*service].outbound;
        if kept.iter().any(|service| outbound(service) && self.services[*service].is_unmanaged()) {
            ready.retain(|service| !outbound(service));
        }
        let taken = ready.iter().any(outbound);
        let kept = kept.into_iter().filter(|service| !(taken && outbound(service)));
        ready.iter().copied().chain(kept).collect()
    }

    fn recount_entries(&self, totals: &mut Totals) -> Result<(), String> {
        let mut mapped: BTreeMap<ServiceIndex, u32> = BTreeMap::new();
        let mut programmed: BTreeMap<ServiceIndex, u32> = BTreeMap::new();
        let mut flying: BTreeMap<Spot, SetId> = BTreeMap::new();
        for sent in self.flight.iter().flat_map(|flight| &flight.sent) {
            agree!(flying.insert(sent.spot, sent.set), None, "one entry twice in flight");
        }
        totals.in_flight = flying.len();
        let mut lost = 0;
        let mut spots = BTreeSet::new();
        for (place, record) in self.places.iter() {
            let mut wanted_here: BTreeSet<Addr> = record.entries.iter().map(|(addr, _)| addr).collect();
            for node in record.nodes() {
                agree!(self.nodes[node].location(record.family), Some(record.ip), "node at {}", record.ip);
                wanted_here.extend(self.nodes[node].wanted[side(record.family)].iter().map(|(addr, _)| addr));
            }
            let mut either_here = 0;
            for addr in wanted_here {
                let spot = Spot { place, addr };
                spots.insert(spot);
                let at = format!("{} at {}", self.addrs.ip(record.family, addr), record.ip);
                let wanted = self.naive_effective(place, addr);
                let entry = record.entries.get(addr);
                let Some(entry) = entry else {
                    agree!(wanted.len(), 0, "{at} is wanted and has no entry; services");
                    continue;
                };
                agree!(entry.is(Entry::IN_FLIGHT), flying.contains_key(&spot), "{at} in flight");
                agree!(entry.is(Entry::SEEN), false, "{at} seen outside of a listing");
                let odd = self.odd.get(&spot);
                agree!(entry.is(Entry::ODD), odd.is_some(), "{at} odd");
                let either = odd.map_or(&[][..], |odd| &odd.either);
                totals.either += usize::from(!either.is_empty());
                either_here += u32::from(!either.is_empty());
                let standing = odd.map(|odd| odd.standing).unwrap_or_default();
                totals.quarantined += usize::from(matches!(standing, Standing::Quarantined { .. }));
                let actual: BTreeSet<ServiceIndex> =
                    self.sets.members(entry.actual()).iter().copied().collect();
                let mut possible = actual.clone();
                for &set in either.iter().chain(flying.get(&spot)) {
                    possible.extend(self.sets.members(set));
                }
                for service in possible {
                    *mapped.entry(service).or_default() += 1;
                }
                if either.is_empty() {
                    for &service in &actual {
                        *programmed.entry(service).or_default() += 1;
                    }
                }
                let waits = entry.is(Entry::QUEUED | Entry::IN_FLIGHT)
                    || standing != Standing::Clear
                    || self.awaits_listing.contains_key(&spot);
                if !waits && (actual != wanted || !either.is_empty()) {
                    return Err(format!("{at} differs and nothing sends it: {actual:?} is not {wanted:?}"));
                }
                // An entry that waits for a listing is not in the queue, and comes back with the listing.
                if entry == Entry::ABSENT && !waits {
                    return Err(format!("{at} is kept for nothing"));
                }
                for &service in &actual {
                    let record = &self.services[service];
                    let found_again = record.kept.contains(&spot) || self.is_wanted_by(spot, service);
                    if !waits && matches!(record.mode, Mode::Frozen | Mode::Unmanaged) && !found_again {
                        return Err(format!("{at} stays for {} and is not found again", record.identity));
                    }
                }
            }
            agree!(record.either, either_here, "unknown outcomes at {}", record.ip);
            lost += usize::from(either_here > 0 && record.node.is_none());
        }
        agree!(self.places.lost(), lost, "lost places");
        for spot in self.odd.keys().chain(flying.keys()) {
            agree!(spots.contains(spot), true, "there is an entry for {spot:?}");
        }
        for (id, service) in self.services.iter() {
            let who = &service.identity;
            agree!(service.mapped, mapped.get(&id).copied().unwrap_or(0), "{who} mapped");
            agree!(service.programmed, programmed.get(&id).copied().unwrap_or(0), "{who} programmed");
        }
        Ok(())
    }

    fn recount_queues(&self) -> Result<(), String> {
        let mut queued = BTreeSet::new();
        let mut ring: Vec<ServiceIndex> = self.ring.iter().copied().collect();
        ring.sort_unstable();
        let with_queue = self.services.iter().filter(|(_, service)| !service.queue.is_empty());
        agree!(ring, with_queue.map(|(id, _)| id).collect::<Vec<_>>(), "the ring");
        for (_, service) in self.services.iter() {
            let moments: u32 = service.queued_since.iter().map(|(_, entries)| *entries).sum();
            agree!(moments as usize, service.queue.len(), "moments of a queue");
            for &spot in &service.queue {
                agree!(queued.insert(spot), true, "{spot:?} is queued once");
            }
        }
        let mut flagged = BTreeSet::new();
        for (place, record) in self.places.iter() {
            let entries = record.entries.iter().filter(|(_, entry)| entry.is(Entry::QUEUED));
            flagged.extend(entries.map(|(addr, _)| Spot { place, addr }));
        }
        agree!(flagged, queued, "queued entries");
        let flight = self.flight.iter().filter_map(|flight| flight.group.as_ref());
        let mut listed: Vec<Spot> =
            self.bisect.suspects().chain(flight.flat_map(|group| group.all())).collect();
        listed.sort_unstable();
        let suspects = self.odd.iter().filter(|(_, odd)| odd.standing == Standing::Suspect);
        let mut suspects: Vec<Spot> = suspects.map(|(&spot, _)| spot).collect();
        suspects.sort_unstable();
        agree!(listed, suspects, "suspects");
        let mut quarantined = BTreeMap::new();
        for (&spot, odd) in &self.odd {
            if let Standing::Quarantined { turn, .. } = odd.standing {
                quarantined.insert(turn, spot);
            }
        }
        agree!(self.bisect.quarantine, quarantined, "quarantine");
        agree!(self.bisect.retry_at().is_some(), !quarantined.is_empty(), "a retry is due");
        let mut rejected: BTreeMap<ServiceIndex, u32> = BTreeMap::new();
        for (&spot, _) in self.odd.iter().filter(|(_, odd)| odd.is_rejected()) {
            for service in self.concerned(spot) {
                *rejected.entry(service).or_default() += 1;
            }
        }
        for (id, service) in self.services.iter() {
            let counted = rejected.get(&id).copied().unwrap_or(0);
            agree!(service.rejected, counted, "rejected entries of {}", service.identity);
        }
        Ok(())
    }

    fn recount_holders(&self) -> Result<(), String> {
        let mut sets: BTreeMap<SetId, u32> = BTreeMap::new();
        let mut addrs: BTreeMap<Addr, u32> = BTreeMap::new();
        let mut nodes: BTreeMap<NodeId, u32> = BTreeMap::new();
        let mut recent: BTreeMap<PlaceId, u32> = BTreeMap::new();
        let mut hold = |family, addr| {
            if family == Family::V6 {
                *addrs.entry(addr).or_default() += 1;
            }
        };
        for (_, node) in self.nodes.slab.iter() {
            for (_, set) in node.wanted.iter().flat_map(|wanted| wanted.iter()) {
                *sets.entry(set).or_default() += 1;
            }
        }
        for (_, place) in self.places.iter() {
            for (addr, entry) in place.entries.iter() {
                hold(place.family, addr);
                *sets.entry(entry.actual()).or_default() += 1;
            }
        }
        for odd in self.odd.values() {
            for &set in &odd.either {
                *sets.entry(set).or_default() += 1;
            }
            if let Standing::Quarantined { refused, .. } = odd.standing {
                *sets.entry(refused).or_default() += 1;
            }
        }
        if let Some(flight) = &self.flight {
            for sent in &flight.sent {
                *sets.entry(sent.set).or_default() += 1;
            }
            for &place in &flight.hollow {
                *recent.entry(place).or_default() += 1;
            }
        }
        for written in &self.lane.written {
            for spot in &written.spots {
                hold(self.places[spot.place].family, spot.addr);
            }
            for &place in &written.places {
                *recent.entry(place).or_default() += 1;
            }
        }
        for (_, slice) in self.slices.slab.iter() {
            for family in Family::ALL {
                for point in &slice.points[side(family)] {
                    hold(family, point.addr);
                    *nodes.entry(point.node()).or_default() += 1;
                }
            }
        }
        for (_, pod) in self.pods.slab.iter() {
            *nodes.entry(pod.node).or_default() += 1;
            for family in Family::ALL {
                pod.ip(family).into_iter().chain(pod.host(family)).for_each(|addr| hold(family, addr));
            }
        }
        sets.remove(&SetId::EMPTY);
        agree!(self.sets.holders().collect::<BTreeMap<_, _>>(), sets, "holders of lists");
        agree!(self.addrs.holders().collect::<BTreeMap<_, _>>(), addrs, "holders of IPv6 addresses");
        for (id, node) in self.nodes.slab.iter() {
            let holders = nodes.get(&id).copied().unwrap_or(0);
            agree!(node.holders, holders, "holders of node {}", node.name);
            agree!(holders > 0 || node.object.is_some(), true, "use for node {}", node.name);
        }
        for (id, place) in self.places.iter() {
            agree!(place.recent, recent.get(&id).copied().unwrap_or(0), "recent writes at {}", place.ip);
            let used = place.node.is_some() || !place.entries.is_empty() || place.recent > 0 || place.hollow;
            agree!(used, true, "use for place {}", place.ip);
        }
        for (id, service) in self.services.iter() {
            let lists = sets.keys().filter(|&&set| self.sets.contains(set, id)).count();
            agree!(service.mentions as usize, lists, "lists that name {}", service.identity);
        }
        Ok(())
    }
}
