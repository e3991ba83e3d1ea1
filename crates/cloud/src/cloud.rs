//! One request in, one answer out.
//!
//! A request meets, in this order: what is due by now, the call limits, permissions, its group, locks and
//! policies, operations that still run, its `If-Match`, and then the rules of its kind.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::IpAddr;
use core::time::Duration;

use sluice_model::Time;
use sluice_model::azure::{
    ArmId, Gateway, LoadBalancer, Meta, NatGateway, Provisioning, PublicIp, Subnet, SubnetBody, Tags,
};
use sluice_model::call::{Answer, ArmError, Body, Method, Payload, Reply, Request};
use sluice_model::names::Scope;

use crate::config::Config;
use crate::fault::{Fault, Twist};
use crate::issue::{Addresses, Counter};
use crate::lag::Lags;
use crate::operation::{Lane, Operations};
use crate::place::{Kind, Place, group_of, place};
use crate::refusal::Refusal;
use crate::state::State;
use crate::tamper::{Forbidden, LockLevel, Tamper};
use crate::throttle::Throttle;

/// Azure.
#[derive(Clone, Debug)]
pub struct Cloud {
    pub(crate) config: Config,
    /// The newest time that anybody has told us.
    pub(crate) now: Time,
    pub(crate) state: State,
    pub(crate) operations: Operations,
    pub(crate) counter: Counter,
    pub(crate) addresses: Addresses,
    pub(crate) throttle: Option<Throttle>,
    /// Who pays for the next request.
    pub(crate) payer: Arc<str>,
    pub(crate) lags: Lags,
    pub(crate) locks: BTreeMap<ArmId, LockLevel>,
    pub(crate) denied: BTreeSet<ArmId>,
    pub(crate) forbidden: BTreeMap<ArmId, Forbidden>,
    pub(crate) poison: BTreeSet<IpAddr>,
    /// Every operation takes so many times as long.
    pub(crate) slowness: u32,
    /// A PUT changes more than we can see.
    pub(crate) unseen_change: bool,
    /// Where operations say that they take place.
    pub(crate) region: Arc<str>,
}

/// What came back, and what an error says beside its code and message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// The reply.
    pub reply: Reply,
    /// The `details` of an error. The resource manager's own errors have none, not even an empty list; see
    /// [`is_managers_code`](crate::is_managers_code).
    pub details: Vec<ArmError>,
    /// The wait that a refusal by the call limits asks for, to the millisecond; the answer has it in whole
    /// seconds.
    pub wait: Option<Duration>,
}

impl Outcome {
    /// A refusal; `remaining` is what a provider's answer says.
    pub(crate) fn refused(mut refusal: Refusal, remaining: Option<u32>) -> Outcome {
        let (details, wait) = (core::mem::take(&mut refusal.details), refusal.wait);
        Outcome { reply: Reply::Answered(refusal.answer(remaining)), details, wait }
    }
}

impl From<Reply> for Outcome {
    fn from(reply: Reply) -> Outcome {
        Outcome { reply, details: Vec::new(), wait: None }
    }
}

impl From<Answer> for Outcome {
    fn from(answer: Answer) -> Outcome {
        Outcome::from(Reply::Answered(answer))
    }
}

/// A subnet inside the body of a virtual network.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InlineSubnet {
    /// Its name.
    pub name: Arc<str>,
    /// What it should be.
    pub body: SubnetBody,
}

impl Cloud {
    /// An empty cloud.
    pub fn new(config: Config) -> Cloud {
        Cloud {
            now: Time::ZERO,
            state: State::default(),
            operations: Operations::new(config.seed),
            counter: Counter::new(config.seed),
            addresses: Addresses::default(),
            throttle: config.buckets.map(Throttle::new),
            payer: "".into(),
            lags: Lags::default(),
            locks: BTreeMap::new(),
            denied: BTreeSet::new(),
            forbidden: BTreeMap::new(),
            poison: BTreeSet::new(),
            slowness: 1,
            unseen_change: false,
            region: "eastus".into(),
            config,
        }
    }

    /// One request arrives now. Operations that are due by `now` are finished first.
    pub fn handle(&mut self, now: Time, request: &Request) -> Answer {
        match self.serve(now, request, &Twist::default()) {
            Ok(answer) => answer,
            Err((refusal, remaining)) => refusal.answer(remaining),
        }
    }

    /// One request arrives now, and perhaps one thing goes wrong with it; tells all there is to tell.
    pub fn handle_fully(&mut self, now: Time, request: &Request, fault: Option<&Fault>) -> Outcome {
        self.attempt(now, request, fault, None)
    }

    /// A virtual network is written together with its subnets, as one operation.
    ///
    /// The request is the PUT of a network as [`Cloud::handle`] takes it. `None` is a body without
    /// `subnets`, and they stay as they are. `Some` is all the subnets that the network has then: those in
    /// the list are written, all others deleted, and where one of those is in use the whole is refused.
    pub fn put_network(
        &mut self,
        now: Time,
        request: &Request,
        subnets: Option<&[InlineSubnet]>,
        fault: Option<&Fault>,
    ) -> Outcome {
        self.attempt(now, request, fault, subnets)
    }

    /// A request whose sender is dead by the time it arrives: carried out as ever, and nobody hears of it.
    ///
    /// Nothing marks it as late. It pays for its call, waits for nobody, and is refused where any other
    /// would be; only an `If-Match` protects a resource that has moved on meanwhile.
    pub fn deliver_late(&mut self, now: Time, request: &Request) {
        self.handle(now, request);
    }

    /// Finishes what is due.
    pub fn advance(&mut self, now: Time) {
        self.now = self.now.max(now);
        while let Some(operation) = self.operations.take_due(self.now) {
            let state = self.finish(&operation);
            self.operations.set_state(&operation.id, state);
        }
        self.operations.forget_old(self.now);
        self.lags.expire(self.now);
    }

    /// Makes the groups, the virtual network and the subnet of a scope, but no gateway.
    pub fn prepare(&mut self, now: Time, scope: &Scope) {
        let gateway = scope.gateway_id();
        let subnet = scope.subnet_id();
        let network = scope.virtual_network_id();
        for group in [group_of(&gateway), group_of(&subnet)].into_iter().flatten() {
            self.tamper(now, Tamper::Put { id: group, body: Body::Container });
        }
        self.tamper(now, Tamper::Put { id: network, body: Body::Container });
        let body = SubnetBody { gateway: None, rest: "10.0.0.0/16".into() };
        self.tamper(now, Tamper::Put { id: subnet, body: Body::Subnet(body) });
    }

    /// Takes a request that somebody has to pay for; beside a refusal, what is left in the bucket that paid.
    pub(crate) fn serve(
        &mut self,
        now: Time,
        request: &Request,
        twist: &Twist,
    ) -> Result<Answer, (Refusal, Option<u32>)> {
        self.advance(now);
        let spent = self.spend(&request.target, request.method.bucket());
        let remaining = spent.map_err(|refusal| (refusal, None))?;
        let done =
            self.permitted(&request.target, request.method).and_then(|()| self.dispatch(request, twist));
        match done {
            Ok(answer) => Ok(Answer { remaining, ..answer }),
            Err(refusal) => Err((refusal, remaining)),
        }
    }

    pub(crate) fn dispatch(&mut self, request: &Request, twist: &Twist) -> Result<Answer, Refusal> {
        let Some(place) = place(&request.target) else { return Err(Refusal::no_place(&request.target)) };
        match (request.method, &place) {
            (Method::Poll, Place::Operation) => self.poll(&request.target),
            (Method::Get, Place::Group | Place::Resource(_) | Place::Subnet { .. }) => {
                self.read(&request.target, &place)
            }
            (
                Method::List,
                Place::Collection(_)
                | Place::Subnets { .. }
                | Place::Services { .. }
                | Place::Locations { .. },
            ) => self.list(request, &place, twist.page),
            (Method::Put, Place::Group | Place::Resource(_) | Place::Subnet { .. }) => {
                self.admit(request, &place)?;
                self.put(request, &place, twist)
            }
            (Method::PatchTags, Place::Resource(kind)) => {
                self.admit(request, &place)?;
                self.patch_tags(request, *kind, twist)
            }
            (Method::Delete, Place::Group | Place::Resource(_) | Place::Subnet { .. }) => {
                if !self.exists(&request.target, &place)? {
                    return Ok(Answer::new(204, Payload::None));
                }
                self.admit(request, &place)?;
                self.delete(&request.target, &place, twist)
            }
            (Method::UpdateServices | Method::UpdateLocations, Place::Resource(Kind::Gateway)) => {
                self.require(&request.target, &place)?;
                self.admit(request, &place)?;
                self.post(request, twist)
            }
            _ => Err(Refusal::no_method()),
        }
    }

    /// Whether a resource is there; an unknown group is an answer of its own.
    fn exists(&self, id: &ArmId, place: &Place) -> Result<bool, Refusal> {
        self.require_group(id)?;
        Ok(*place == Place::Group || self.state.etag(id).is_some())
    }

    pub(crate) fn require_group(&self, id: &ArmId) -> Result<(), Refusal> {
        match group_of(id) {
            Some(group) if !self.state.groups.contains(&group) => Err(Refusal::no_group(group.name())),
            _ => Ok(()),
        }
    }

    pub(crate) fn require(&self, id: &ArmId, place: &Place) -> Result<(), Refusal> {
        if self.exists(id, place)? { Ok(()) } else { Err(not_found(id, place)) }
    }

    fn poll(&self, id: &ArmId) -> Result<Answer, Refusal> {
        let operation = self.operations.get(id).ok_or_else(|| Refusal::no_operation(id))?;
        Ok(Answer::new(200, Payload::Operation(operation.state.clone())))
    }

    fn read(&self, id: &ArmId, place: &Place) -> Result<Answer, Refusal> {
        self.require_group(id)?;
        let (lags, state) = (&self.lags, &self.state);
        let payload = match place {
            Place::Group => Some(Payload::Container(id.clone())),
            Place::Resource(Kind::VirtualNetwork) => {
                state.virtual_networks.get_key_value(id).map(|(id, _)| Payload::Container(id.clone()))
            }
            Place::Resource(Kind::PublicIp) => {
                lags.read::<PublicIp>(state, id).cloned().map(Payload::PublicIp)
            }
            Place::Resource(Kind::LoadBalancer) => {
                lags.read::<LoadBalancer>(state, id).cloned().map(Payload::LoadBalancer)
            }
            Place::Resource(Kind::NatGateway) => {
                lags.read::<NatGateway>(state, id).cloned().map(Payload::NatGateway)
            }
            Place::Resource(Kind::Gateway) => lags.read::<Gateway>(state, id).cloned().map(Payload::Gateway),
            Place::Subnet { network } => {
                self.require(network, &Place::Resource(Kind::VirtualNetwork))?;
                lags.read::<Subnet>(state, id).cloned().map(Payload::Subnet)
            }
            _ => None,
        };
        payload.map(|payload| Answer::new(200, payload)).ok_or_else(|| not_found(id, place))
    }

    fn patch_tags(&mut self, request: &Request, kind: Kind, twist: &Twist) -> Result<Answer, Refusal> {
        let id = &request.target;
        let Body::Tags(tags) = &request.body else {
            return Err(Refusal::bad_request("A PATCH carries tags and nothing else."));
        };
        let place = Place::Resource(kind);
        self.require(id, &place)?;
        let etag = self.counter.etag();
        let mut payload = self.payload(id).ok_or_else(|| not_found(id, &place))?;
        if let Some(meta) = meta_of(&mut payload) {
            (meta.tags, meta.etag) = (tags.clone(), etag.clone());
        }
        if !twist.pretends {
            self.lag_now(id, Lane::Resource, twist);
            match self.state.meta_mut(id) {
                Some(meta) => (meta.tags, meta.etag) = (tags.clone(), etag),
                // A network's tags are not ours to keep, but its version is.
                None => drop(self.state.write_network(id, Some(etag))),
            }
        }
        Ok(Answer::new(200, payload))
    }

    /// A resource as it truly is.
    fn payload(&self, id: &ArmId) -> Option<Payload> {
        let state = &self.state;
        (state.public_ips.get(id).cloned().map(Payload::PublicIp))
            .or_else(|| state.load_balancers.get(id).cloned().map(Payload::LoadBalancer))
            .or_else(|| state.nat_gateways.get(id).cloned().map(Payload::NatGateway))
            .or_else(|| state.gateways.get(id).cloned().map(Payload::Gateway))
            .or_else(|| {
                state.virtual_networks.get_key_value(id).map(|(id, _)| Payload::Container(id.clone()))
            })
    }

    /// Meta for a resource that is being written: an id keeps the case it was first spelled in.
    pub(crate) fn meta(&mut self, id: &ArmId, old: Option<&Meta>, tags: &Tags, settled: bool) -> Meta {
        Meta {
            id: old.map_or(id, |old| &old.id).clone(),
            tags: tags.clone(),
            etag: self.counter.etag(),
            provisioning: if settled && !self.unseen_change {
                Provisioning::Succeeded
            } else {
                Provisioning::Updating
            },
        }
    }

    /// Before a write changes what is there: the shadow that lagging reads will see.
    pub(crate) fn lag_now(&mut self, id: &ArmId, lane: Lane, twist: &Twist) {
        if let Some(lag) = twist.lag {
            self.lags.keep(&self.state, id, lane, self.now + lag);
        }
    }
}

/// "Not found", in the words of the kind that was looked for.
pub(crate) fn not_found(id: &ArmId, place: &Place) -> Refusal {
    match place {
        Place::Resource(kind) => {
            Refusal::no_resource(kind.word(), id.name(), id.segment("resourceGroups").unwrap_or(""))
        }
        Place::Group => Refusal::no_group(id.name()),
        _ => Refusal::no_child(id),
    }
}

fn meta_of(payload: &mut Payload) -> Option<&mut Meta> {
    match payload {
        Payload::PublicIp(it) => Some(&mut it.meta),
        Payload::LoadBalancer(it) => Some(&mut it.meta),
        Payload::NatGateway(it) => Some(&mut it.meta),
        Payload::Gateway(it) => Some(&mut it.meta),
        _ => None,
    }
}
