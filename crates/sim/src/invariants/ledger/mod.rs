//! What Azure has answered to one leader, written down by somebody who is not the leader.
//!
//! Safety is judged against this and not against Azure's own state: a leader cannot know of a
//! request that its dead predecessor sent and that lands only now. The ledger sees every request
//! at the moment it is begun and every answer at the moment it arrives, and keeps, per resource,
//! registration and address, what the leader has been told. It shares no code with the engine's
//! own records, so that the two can disagree.
//!
//! ```text
//! write begun  ──▶ Unsure ──▶ confirmed: the new state      refused: back to what was told before
//!                        └──▶ no answer: stays Unsure until a read or a listing tells
//! ```
//!
//! A read that was begun before the last write of a resource had settled tells nothing, one that
//! contradicts a confirmed write within 30 s is taken for a lagging one. That something is there
//! which was not, or is referred to again, counts when two reads have shown it, as the
//! specification has it for drift; that something is gone counts at once. Where there is doubt the
//! ledger errs on the leader's side.

mod belief;
mod reading;

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use sluice_model::Time;
use sluice_model::azure::{ArmId, LocationUpdate, Provisioning, Tags};
use sluice_model::call::{Body, Bucket, Method, OperationState, PageToken, Payload, Reply, Request};
use sluice_model::effect::Listable;
use sluice_model::failure::{Failure, FailureClass};

pub use belief::{Face, Told};
use belief::{Fact, Mapping, SECOND_LOOK, begin, begin_mapping, learn, learn_mapping};
use reading::{
    face_of_nat, face_of_payload, identities_in, kind_of_collection, kind_of_resource, locations_of, lower,
    runs_on, services_of, state_after, tagged, tags_of_body, told_of_service_request,
};

/// An answer that takes longer is given up.
const ANSWER_LIMIT: Duration = Duration::from_secs(65);
/// The operation behind a PUT or DELETE that takes longer is given up.
const OPERATION_LIMIT: Duration = Duration::from_secs(15 * 60);
/// The operation behind one of the gateway's POSTs that takes longer is given up.
const POST_LIMIT: Duration = Duration::from_secs(3 * 60);

#[derive(Clone, Debug)]
struct Sent {
    request: Request,
    seq: u64,
    at: Time,
}

#[derive(Clone, Debug, Default)]
struct Listing {
    began_seq: u64,
    resources: Vec<(ArmId, Face)>,
    registrations: Vec<(Arc<str>, Face)>,
    locations: Vec<(IpAddr, IpAddr, BTreeSet<Arc<str>>)>,
}

/// The book of one process, from its start to its end.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    seq: u64,
    calls: BTreeMap<u64, Sent>,
    operations: BTreeMap<ArmId, Sent>,
    watched: BTreeMap<ArmId, Sent>,
    resources: BTreeMap<ArmId, Fact>,
    registrations: BTreeMap<Arc<str>, Fact>,
    mappings: BTreeMap<(IpAddr, IpAddr), Mapping>,
    /// Listings that go on with this page; two may be under way at once.
    listings: BTreeMap<(ArmId, PageToken), Vec<Listing>>,
    listed: BTreeSet<Listable>,
    gateway_read: bool,
    subnet_read: bool,
    disputed: bool,
    sightings: BTreeMap<(Listable, Arc<str>), u32>,
}

impl Ledger {
    /// A request is begun.
    pub fn sent(&mut self, now: Time, call: u64, request: &Request) {
        self.seq += 1;
        let seq = self.seq;
        match request.method {
            Method::Put | Method::PatchTags | Method::Delete => {
                begin(self.resource_fact(&request.target), seq);
            }
            Method::UpdateServices => {
                for entry in services_of(request) {
                    begin(self.registration_fact(&entry.service.name), seq);
                }
            }
            Method::UpdateLocations => self.locations_sent(locations_of(request), seq),
            Method::Get | Method::List | Method::Poll => {}
        }
        self.calls.insert(call, Sent { request: request.clone(), seq, at: now });
    }

    /// What was not answered in time, and operations that did not end in time, are given up: nobody
    /// knows what came of them, and a later look tells.
    pub fn give_up(&mut self, now: Time) {
        let unknown = Failure::of(FailureClass::Unknown, "GivenUp", "");
        let late = |sent: &Sent, limit: Duration| now >= sent.at + limit;
        let calls: Vec<u64> =
            self.calls.iter().filter(|(_, sent)| late(sent, ANSWER_LIMIT)).map(|(call, _)| *call).collect();
        for call in calls {
            if let Some(sent) = self.calls.remove(&call)
                && sent.request.method.bucket() != Bucket::Reads
            {
                self.seq += 1;
                self.write_failed(now, &sent, &unknown);
            }
        }
        let limit_of = |sent: &Sent| match sent.request.method {
            Method::UpdateServices | Method::UpdateLocations => POST_LIMIT,
            _ => OPERATION_LIMIT,
        };
        for open in [false, true] {
            let map = if open { &mut self.watched } else { &mut self.operations };
            let ids: Vec<ArmId> =
                map.iter().filter(|(_, sent)| late(sent, limit_of(sent))).map(|(id, _)| id.clone()).collect();
            let given_up: Vec<Sent> = ids.iter().filter_map(|id| map.remove(id)).collect();
            for sent in given_up {
                self.seq += 1;
                self.write_failed(now, &sent, &unknown);
            }
        }
    }

    /// An answer, or the news that there is none, has reached the leader.
    pub fn answered(&mut self, now: Time, call: u64, reply: &Reply) {
        let Some(sent) = self.calls.remove(&call) else { return };
        self.seq += 1;
        let failure = Failure::in_reply(reply);
        match sent.request.method {
            Method::Get => self.got(now, &sent, reply, failure.as_ref()),
            Method::List => self.page(now, &sent, reply, failure.as_ref()),
            Method::Poll => self.polled(now, &sent, reply, failure.as_ref()),
            _ => {
                if let Some(failure) = failure {
                    return self.write_failed(now, &sent, &failure);
                }
                let Reply::Answered(answer) = reply else { return };
                if !runs_on(&sent.request, answer) {
                    return self.write_confirmed(now, &sent, Some(&answer.payload));
                }
                match &answer.operation {
                    Some(operation) => self.operations.insert(operation.clone(), sent),
                    // Without an operation the resource itself is looked at until it says how it went.
                    None => self.watched.insert(sent.request.target.clone(), sent),
                };
            }
        }
    }

    /// What the leader has been told about a resource; one that no whole listing showed is absent.
    pub fn resource(&self, id: &ArmId) -> &Told {
        self.resources.get(id).map_or(self.unlisted(kind_of_resource(id)), |fact| &fact.told)
    }

    /// What it had been told before the write that is in flight or unanswered.
    pub fn resource_before_write(&self, id: &ArmId) -> &Told {
        self.resources.get(id).map_or(self.unlisted(kind_of_resource(id)), Fact::before_write)
    }

    /// The tags that the last read of a resource showed, believed or not.
    pub fn tags_shown(&self, id: &ArmId) -> Option<&Tags> {
        self.resources.get(id)?.shown.as_ref().map(|face| &face.tags)
    }

    /// What the leader has been told about a registration.
    pub fn registration(&self, name: &str) -> &Told {
        let unlisted = self.unlisted(Some(Listable::Registrations));
        self.registrations.get(name).map_or(unlisted, |fact| &fact.told)
    }

    /// What it had been told about a registration before the write that is in flight or unanswered.
    pub fn registration_before_write(&self, name: &str) -> &Told {
        let unlisted = self.unlisted(Some(Listable::Registrations));
        self.registrations.get(name).map_or(unlisted, Fact::before_write)
    }

    /// Whether a read that was begun later showed that a registration, known to be cleared until then, is not.
    pub fn is_referred_again_since(&self, name: &str, seq: u64) -> bool {
        let fact = self.registrations.get(name);
        fact.and_then(|fact| fact.referred_again).is_some_and(|read| read > seq)
    }

    /// Whether the leader has any reason to believe that a service is registered and refers to something. One
    /// read that says otherwise is not yet a reason to the contrary; that takes a second look.
    pub fn is_registered(&self, now: Time, name: &str) -> bool {
        let Some(fact) = self.registrations.get(name) else { return false };
        let is = |told: &Told| matches!(told, Told::Present(face) if !face.cleared);
        is(fact.before_write())
            || fact.shown.as_ref().is_some_and(|face| !face.cleared)
            || fact.lost_at.is_some_and(|lost| now.since(lost) < 2 * SECOND_LOOK)
    }

    /// The addresses that the leader has been told a public IP has.
    pub fn addresses_of(&self, id: &ArmId) -> Vec<IpAddr> {
        let Some(fact) = self.resources.get(id) else { return Vec::new() };
        let told = match fact.before_write() {
            Told::Present(face) => face.address,
            _ => None,
        };
        told.into_iter().chain(fact.shown.as_ref().and_then(|face| face.address)).collect()
    }

    /// The public IPs that the leader has been told are there.
    pub fn public_ips(&self) -> impl Iterator<Item = (&ArmId, &Face)> {
        let there = self.resources.iter().filter_map(|(id, fact)| match &fact.told {
            Told::Present(face) => Some((id, face)),
            _ => None,
        });
        there.filter(|(id, _)| kind_of_resource(id) == Some(Listable::PublicIps))
    }

    fn unlisted(&self, kind: Option<Listable>) -> &'static Told {
        match kind {
            Some(kind) if self.has_listed(kind) => &Told::Absent,
            _ => &Told::Nothing,
        }
    }

    fn resource_fact(&mut self, id: &ArmId) -> &mut Fact {
        let told = self.unlisted(kind_of_resource(id)).clone();
        self.resources.entry(id.clone()).or_insert_with(|| Fact { told, ..Fact::default() })
    }

    fn registration_fact(&mut self, name: &str) -> &mut Fact {
        let told = self.unlisted(Some(Listable::Registrations)).clone();
        self.registrations.entry(lower(name)).or_insert_with(|| Fact { told, ..Fact::default() })
    }

    /// The addresses that, for all that the leader knows, may be mapped to a service.
    pub fn mapped_to<'a>(&'a self, service: &'a str) -> impl Iterator<Item = (IpAddr, IpAddr)> + 'a {
        self.mappings
            .iter()
            .filter(move |(_, mapping)| mapping.services.iter().any(|name| **name == *service))
            .map(|(place, _)| *place)
    }

    /// The same, without the addresses that only a listing has shown that began after this moment.
    pub fn mapped_before<'a>(
        &'a self,
        service: &'a str,
        seq: u64,
    ) -> impl Iterator<Item = (IpAddr, IpAddr)> + 'a {
        let shown_first =
            move |place: &(IpAddr, IpAddr)| self.mappings.get(place)?.shown_first.get(service).copied();
        self.mapped_to(service).filter(move |place| shown_first(place).is_none_or(|first| first <= seq))
    }

    /// How many requests and answers there have been.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Whether the last listing showed an address mapped to a service, believed or not.
    pub fn is_shown(&self, service: &str, place: (IpAddr, IpAddr)) -> bool {
        self.mappings.get(&place).is_some_and(|mapping| mapping.shown.contains(service))
    }

    /// Whether a whole listing of this kind has been answered.
    pub fn has_listed(&self, what: Listable) -> bool {
        match what {
            Listable::Foundation => self.gateway_read && self.subnet_read,
            other => self.listed.contains(&other),
        }
    }

    /// Whether a listing has ever shown other addresses than were believed.
    pub fn is_disputed(&self) -> bool {
        self.disputed
    }

    /// In how many whole listings of one kind something of a service was seen, at the most.
    pub fn sightings(&self, identity: &str) -> u32 {
        let of_kind = |kind: &Listable| self.sightings.get(&(*kind, identity.into())).copied().unwrap_or(0);
        Listable::ALL.iter().map(of_kind).max().unwrap_or(0)
    }

    /// How many registrations the leader has been told of.
    pub fn registrations_told(&self) -> usize {
        self.registrations
            .values()
            .filter(|fact| matches!(fact.told, Told::Present(_) | Told::Unsure))
            .count()
    }

    /// The request behind a call that has not been answered.
    pub fn open_call(&self, call: u64) -> Option<&Request> {
        self.calls.get(&call).map(|sent| &sent.request)
    }

    fn locations_sent(&mut self, updates: &[LocationUpdate], seq: u64) {
        for update in updates {
            // A location that is replaced or removed touches addresses that the request does not name.
            if update.full || update.addresses.is_empty() {
                for ((location, _), mapping) in &mut self.mappings {
                    if *location == update.location {
                        begin_mapping(mapping, seq);
                    }
                }
            }
            for address in &update.addresses {
                let mapping = self.mappings.entry((update.location, address.address)).or_default();
                begin_mapping(mapping, seq);
                mapping.services.extend(address.services.iter().cloned());
            }
        }
    }

    fn locations_ended(&mut self, now: Time, sent: &Sent, end: Option<FailureClass>) {
        let seq = self.seq;
        for update in locations_of(&sent.request) {
            let named: BTreeMap<IpAddr, &Vec<Arc<str>>> =
                update.addresses.iter().map(|entry| (entry.address, &entry.services)).collect();
            let whole = update.full || update.addresses.is_empty();
            for ((location, address), mapping) in &mut self.mappings {
                let services = named.get(address);
                let theirs = *location == update.location && (services.is_some() || whole);
                if !theirs || mapping.write_seq != sent.seq {
                    continue;
                }
                mapping.touched_seq = seq;
                mapping.settled_at = now;
                mapping.in_flight = false;
                mapping.confirmed = end.is_none();
                mapping.known = true;
                mapping.doubted_at = None;
                match end {
                    None => {
                        mapping.services =
                            services.map_or_else(BTreeSet::new, |list| list.iter().cloned().collect());
                    }
                    Some(FailureClass::Unknown) => {}
                    Some(_) => mapping.services = mapping.before.clone(),
                }
            }
        }
    }

    fn write_failed(&mut self, now: Time, sent: &Sent, failure: &Failure) {
        let (seq, request) = (self.seq, &sent.request);
        let gone = request.method == Method::Delete && failure.class == FailureClass::NotFound;
        if gone {
            return self.write_confirmed(now, sent, None);
        }
        let is_post = matches!(request.method, Method::UpdateServices | Method::UpdateLocations);
        if is_post && failure.class == FailureClass::NotFound && failure.message.contains("serviceGateways/")
        {
            // The gateway itself is not there, so nothing is registered or mapped either.
            for fact in self.registrations.values_mut().filter(|fact| fact.write_seq == sent.seq) {
                fact.in_flight = false;
            }
            for mapping in self.mappings.values_mut().filter(|mapping| mapping.write_seq == sent.seq) {
                mapping.in_flight = false;
            }
            return self.gateway_absent(now, seq);
        }
        // The gateway was deleted while it worked on this, with all of its registrations. Another may be there by now.
        let lost_its_gateway =
            is_post && &*failure.code == "Canceled" && failure.message.contains("serviceGateways/");
        let end = |fact: &mut Fact| {
            if fact.write_seq != sent.seq {
                return;
            }
            fact.touched_seq = seq;
            fact.settled_at = now;
            fact.in_flight = false;
            if failure.class == FailureClass::Unknown {
                fact.told = Told::Unsure;
                fact.confirmed = false;
            } else if lost_its_gateway {
                fact.told = Told::Absent;
            } else {
                fact.told = fact.before.clone();
            }
        };
        match request.method {
            Method::UpdateServices => {
                for entry in services_of(request) {
                    end(self.registration_fact(&entry.service.name));
                }
            }
            Method::UpdateLocations => self.locations_ended(now, sent, Some(failure.class)),
            _ => end(self.resource_fact(&request.target)),
        }
    }

    fn write_confirmed(&mut self, now: Time, sent: &Sent, payload: Option<&Payload>) {
        let (seq, request) = (self.seq, &sent.request);
        let confirm = |fact: &mut Fact, told: Told| {
            if fact.write_seq != sent.seq {
                return;
            }
            fact.told = told;
            fact.touched_seq = seq;
            fact.settled_at = now;
            fact.confirmed = true;
            fact.in_flight = false;
        };
        match request.method {
            Method::Delete => {
                confirm(self.resource_fact(&request.target), Told::Absent);
            }
            Method::UpdateServices => {
                for entry in services_of(request) {
                    let fact = self.registration_fact(&entry.service.name);
                    confirm(fact, told_of_service_request(entry));
                }
            }
            Method::UpdateLocations => self.locations_ended(now, sent, None),
            _ => {
                let fact = self.resource_fact(&request.target);
                let mut face = payload.and_then(face_of_payload).unwrap_or_else(|| match &fact.before {
                    Told::Present(face) => face.clone(),
                    _ => Face::default(),
                });
                if let Some(tags) = tags_of_body(&request.body) {
                    face.tags = tags.clone();
                }
                if let Body::NatGateway(body) = &request.body {
                    face.detached = body.gateway.is_none();
                }
                confirm(fact, Told::Present(face));
            }
        }
    }

    fn polled(&mut self, now: Time, sent: &Sent, reply: &Reply, failure: Option<&Failure>) {
        let operation = &sent.request.target;
        let Reply::Answered(answer) = reply else { return };
        match &answer.payload {
            Payload::Operation(OperationState::Succeeded) => {
                if let Some(write) = self.operations.remove(operation) {
                    self.write_confirmed(now, &write, None);
                }
            }
            Payload::Operation(OperationState::Failed(_) | OperationState::Canceled(_)) => {
                let Some(write) = self.operations.remove(operation) else { return };
                // A failed operation on a resource leaves it in whatever state; on the gateway it changes nothing.
                let mut failure =
                    failure.cloned().unwrap_or_else(|| Failure::of(FailureClass::Transient, "Failed", ""));
                if matches!(write.request.method, Method::Put | Method::Delete | Method::PatchTags) {
                    failure.class = FailureClass::Unknown;
                }
                self.write_failed(now, &write, &failure);
            }
            _ => {}
        }
    }

    fn got(&mut self, now: Time, sent: &Sent, reply: &Reply, failure: Option<&Failure>) {
        let target = &sent.request.target;
        if let Some(write) = self.watched.remove(target) {
            match (failure, reply) {
                (None, Reply::Answered(answer)) if write.request.method != Method::Delete => {
                    match state_after(&write.request, &answer.payload) {
                        Some(Provisioning::Succeeded) => {
                            self.write_confirmed(now, &write, Some(&answer.payload));
                        }
                        Some(Provisioning::Failed) => {
                            let failure = Failure::of(FailureClass::Unknown, "Failed", "");
                            self.write_failed(now, &write, &failure);
                        }
                        _ => {
                            self.watched.insert(target.clone(), write);
                        }
                    }
                }
                (Some(failure), _) if failure.class == FailureClass::NotFound => {
                    self.write_failed(now, &write, failure);
                }
                _ => {
                    self.watched.insert(target.clone(), write);
                }
            }
            return;
        }
        let told = match (failure, reply) {
            (None, Reply::Answered(answer)) => match face_of_payload(&answer.payload) {
                Some(face) => Told::Present(face),
                None => return,
            },
            (Some(failure), _) if failure.class == FailureClass::NotFound => Told::Absent,
            _ => return,
        };
        if target.segment("subnets").is_some() {
            self.subnet_read = true;
        } else if target.segment("serviceGateways").is_some() {
            self.gateway_read = true;
            if told == Told::Absent {
                self.gateway_absent(now, sent.seq);
            }
        }
        learn(self.resources.entry(target.clone()).or_default(), now, sent.seq, told);
    }

    /// No gateway: no registrations and no addresses either.
    fn gateway_absent(&mut self, now: Time, seq: u64) {
        self.disputed = true;
        for fact in self.registrations.values_mut() {
            learn(fact, now, seq, Told::Absent);
        }
        self.mappings.retain(|_, mapping| mapping.in_flight || mapping.touched_seq > seq);
        self.listed.extend([Listable::Registrations, Listable::Locations]);
    }

    fn page(&mut self, now: Time, sent: &Sent, reply: &Reply, failure: Option<&Failure>) {
        let target = sent.request.target.clone();
        if let Some(failure) = failure {
            // A page that fails is asked for again; the listing goes on.
            if failure.class == FailureClass::NotFound && target.segment("serviceGateways").is_some() {
                self.gateway_absent(now, sent.seq);
            }
            return;
        }
        let Reply::Answered(answer) = reply else { return };
        let listing = match &sent.request.page {
            None => Some(Listing { began_seq: sent.seq, ..Listing::default() }),
            Some(page) => self.listings.get_mut(&(target.clone(), page.clone())).and_then(Vec::pop),
        };
        let Some(mut listing) = listing else { return };
        let next = match &answer.payload {
            Payload::PublicIps(page) => {
                listing.resources.extend(page.items.iter().map(|ip| {
                    let face = Face { address: ip.address, ..tagged(&ip.meta.tags) };
                    (ip.meta.id.clone(), face)
                }));
                page.next.clone()
            }
            Payload::LoadBalancers(page) => {
                listing
                    .resources
                    .extend(page.items.iter().map(|lb| (lb.meta.id.clone(), tagged(&lb.meta.tags))));
                page.next.clone()
            }
            Payload::NatGateways(page) => {
                listing
                    .resources
                    .extend(page.items.iter().map(|nat| (nat.meta.id.clone(), face_of_nat(nat))));
                page.next.clone()
            }
            Payload::Registrations(page) => {
                listing.registrations.extend(page.items.iter().map(|registration| {
                    let cleared = registration.pools.is_empty() && registration.nat_gateway.is_none();
                    (lower(&registration.name), Face { cleared, ..Face::default() })
                }));
                page.next.clone()
            }
            Payload::Locations(page) => {
                for location in &page.items {
                    listing.locations.extend(location.addresses.iter().map(|entry| {
                        let services = entry.services.iter().map(|name| lower(name)).collect();
                        (location.location, entry.address, services)
                    }));
                }
                page.next.clone()
            }
            _ => return,
        };
        match next {
            Some(next) => self.listings.entry((target, next)).or_default().push(listing),
            None => self.listed_whole(now, &target, listing),
        }
    }

    fn listed_whole(&mut self, now: Time, collection: &ArmId, listing: Listing) {
        let seq = listing.began_seq;
        let Some(kind) = kind_of_collection(collection) else { return };
        let listed_before = !self.listed.insert(kind);
        for identity in identities_in(&listing) {
            *self.sightings.entry((kind, identity)).or_default() += 1;
        }
        match kind {
            Listable::Registrations => {
                let there: BTreeMap<_, _> = listing.registrations.into_iter().collect();
                for (name, fact) in &mut self.registrations {
                    if !there.contains_key(name) {
                        learn(fact, now, seq, Told::Absent);
                    }
                }
                for (name, face) in there {
                    let fact = self.registrations.entry(name).or_insert_with(|| Fact::new(listed_before));
                    learn(fact, now, seq, Told::Present(face));
                }
            }
            Listable::Locations => {
                let there: BTreeMap<_, _> =
                    listing.locations.into_iter().map(|(at, address, set)| ((at, address), set)).collect();
                for place in there.keys() {
                    let mapping = self.mappings.entry(*place);
                    mapping.or_insert_with(|| Mapping { known: listed_before, ..Mapping::default() });
                }
                for (place, mapping) in &mut self.mappings {
                    let settled = !mapping.in_flight && mapping.touched_seq <= seq && mapping.known;
                    let shown = there.get(place).cloned().unwrap_or_default();
                    self.disputed |= settled && mapping.services != shown;
                    learn_mapping(mapping, now, seq, shown);
                }
            }
            _ => {
                let there: BTreeMap<_, _> = listing.resources.into_iter().collect();
                let own = collection.name().to_ascii_lowercase();
                for (id, fact) in &mut self.resources {
                    let same_kind = id.segment(&own).is_some();
                    if same_kind && !there.contains_key(id) {
                        learn(fact, now, seq, Told::Absent);
                    }
                }
                for (id, face) in there {
                    let fact = self.resources.entry(id).or_insert_with(|| Fact::new(listed_before));
                    learn(fact, now, seq, Told::Present(face));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
