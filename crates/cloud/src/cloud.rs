//! One request in, one answer out.
//!
//! A request meets, in this order: what is due by now, the call limits, its group, locks and policies,
//! operations that still run, its `If-Match`, and then the rules of its kind.

use alloc::collections::{BTreeMap, BTreeSet};
use core::net::IpAddr;
use core::time::Duration;

use sluice_model::Time;
use sluice_model::azure::{
    ArmId, Gateway, LoadBalancer, Meta, NatGateway, Provisioning, PublicIp, Subnet, SubnetBody, Tags,
};
use sluice_model::call::{Answer, ArmError, Body, Method, OperationState, Payload, Request};
use sluice_model::names::Scope;

use crate::config::{Config, Quota, Span};
use crate::fault::Twist;
use crate::issue::{Addresses, Counter};
use crate::lag::Lags;
use crate::operation::{Ending, Lane, Operation, Operations, Work};
use crate::place::{Kind, Place, group_of, is_name, lies_in, place};
use crate::refusal::Refusal;
use crate::state::State;
use crate::tamper::{LockLevel, Tamper};
use crate::throttle::{Throttle, whole_seconds};

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
    pub(crate) lags: Lags,
    pub(crate) locks: BTreeMap<ArmId, LockLevel>,
    pub(crate) denied: BTreeSet<ArmId>,
    pub(crate) poison: BTreeSet<IpAddr>,
    /// Every operation takes so many times as long.
    pub(crate) slowness: u32,
    /// A PUT changes more than we can see.
    unseen_change: bool,
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
            lags: Lags::default(),
            locks: BTreeMap::new(),
            denied: BTreeSet::new(),
            poison: BTreeSet::new(),
            slowness: 1,
            unseen_change: false,
            config,
        }
    }

    /// One request arrives now. Operations that are due by `now` are finished first.
    pub fn handle(&mut self, now: Time, request: &Request) -> Answer {
        self.serve(now, request, &Twist::default())
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

    /// When the next operation ends, if any does.
    pub fn next_deadline(&self) -> Option<Time> {
        self.operations.next_end()
    }

    /// The truth, whatever lagging reads say.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// How many operations run, those that never end included.
    pub fn operations_running(&self) -> usize {
        self.operations.running_count()
    }

    /// The faults are over: what would never end takes as long as usual from now on, locks, policies,
    /// poison, slowness and lagging reads are gone.
    pub fn calm(&mut self) {
        self.operations.hurry(self.now);
        self.lags.clear();
        self.locks.clear();
        self.denied.clear();
        self.poison.clear();
        self.slowness = 1;
    }

    /// From now on the gateway refuses every location update that contains this address.
    pub fn poison(&mut self, address: IpAddr) {
        self.poison.insert(address);
    }

    /// From now on every operation that begins takes so many times as long.
    pub fn slow_by(&mut self, factor: u32) {
        self.slowness = factor.max(1);
    }

    /// Other quotas from now on.
    pub fn set_quota(&mut self, quota: Quota) {
        self.config.quota = quota;
    }

    /// Whether the two gateway POSTs are carried out at once from now on.
    pub fn set_synchronous_posts(&mut self, at_once: bool) {
        self.config.synchronous_posts = at_once;
    }

    /// Whether PUTs from now on change something that is no part of the model: they take their time
    /// even if everything that we see stays the same.
    pub fn set_unseen_change(&mut self, changes: bool) {
        self.unseen_change = changes;
    }

    /// How an operation stands; asking so costs nothing.
    pub fn operation_state(&self, id: &ArmId) -> Option<&OperationState> {
        self.operations.get(id).map(|operation| &operation.state)
    }

    /// What a running operation is doing to a resource or group: `Updating` or `Deleting`.
    pub fn at_work(&self, id: &ArmId) -> Option<Provisioning> {
        let operation = self.operations.running(id, Lane::Resource)?;
        Some(match operation.work {
            Work::Delete | Work::DeleteGroup => Provisioning::Deleting,
            _ => Provisioning::Updating,
        })
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

    /// Takes a request that somebody has to pay for.
    pub(crate) fn serve(&mut self, now: Time, request: &Request, twist: &Twist) -> Answer {
        self.advance(now);
        let remaining = match self.pay(request) {
            Ok(remaining) => remaining,
            Err(refusal) => return refusal.answer(),
        };
        let answer = self.dispatch(request, twist).unwrap_or_else(Refusal::answer);
        Answer { remaining, ..answer }
    }

    pub(crate) fn pay(&mut self, request: &Request) -> Result<Option<u32>, Refusal> {
        let Some(throttle) = &mut self.throttle else { return Ok(None) };
        let is_network = place(&request.target) != Some(Place::Group);
        throttle.pay(self.now, request.method.bucket(), is_network).map(Some)
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
            _ => Err(Refusal::new(405, "MethodNotAllowed", "This method is not allowed here.")),
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

    /// What every write must get past.
    fn admit(&self, request: &Request, place: &Place) -> Result<(), Refusal> {
        let id = &request.target;
        let is_new_group = request.method == Method::Put && *place == Place::Group;
        if !is_new_group {
            self.require_group(id)?;
        }
        if request.method == Method::Put && *place != Place::Group && !is_name(id.name()) {
            return Err(Refusal::bad_name(id.name()));
        }
        self.unlocked(request)?;
        if let Some(group) = group_of(id).filter(|group| group != id)
            && self.operations.running(&group, Lane::Resource).is_some()
        {
            return Err(Refusal::group_going(&group));
        }
        let lanes: &[Lane] = match request.method {
            Method::UpdateServices => &[Lane::Resource, Lane::Services],
            Method::UpdateLocations => &[Lane::Resource, Lane::Locations],
            _ => &[Lane::Resource, Lane::Services, Lane::Locations],
        };
        if let Some(running) = lanes.iter().find_map(|&lane| self.operations.running(id, lane)) {
            return Err(if request.method == Method::Delete {
                Refusal::busy_deleting(&running.id, id)
            } else {
                // Nobody knows how long an endless operation takes, so the guess stays short.
                let wait = running.ends.since(self.now).min(Duration::from_secs(10));
                Refusal::busy_writing(&running.id, id, whole_seconds(wait))
            });
        }
        match (&request.if_match, self.state.etag(id)) {
            (Some(given), actual) => {
                let matches = actual.is_some_and(|actual| *given.0 == *"*" || actual == given);
                if matches {
                    Ok(())
                } else {
                    Err(Refusal::wrong_version(id, &given.0, actual.map(|actual| &*actual.0)))
                }
            }
            (None, _) => Ok(()),
        }
    }

    fn unlocked(&self, request: &Request) -> Result<(), Refusal> {
        let id = &request.target;
        let is_delete = request.method == Method::Delete;
        for (scope, level) in &self.locks {
            if lies_in(id, scope) && (is_delete || *level == LockLevel::ReadOnly) {
                return Err(Refusal::locked(id, if is_delete { "delete" } else { "write" }, scope));
            }
        }
        let is_write = matches!(request.method, Method::Put | Method::PatchTags);
        match self.denied.iter().find(|scope| is_write && lies_in(id, scope)) {
            Some(scope) => Err(Refusal::denied_by_policy(id, scope)),
            None => Ok(()),
        }
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

    /// Begins an operation. With `settled` there is nothing left to do and it is over already.
    pub(crate) fn begin(
        &mut self,
        target: &ArmId,
        lane: Lane,
        work: Work,
        span: Span,
        settled: bool,
        twist: &Twist,
    ) -> ArmId {
        let settled = settled && !self.unseen_change;
        let usual = self.counter.draw(span);
        let factor = self.slowness.max(1).saturating_mul(twist.slowness.max(1));
        let ends = match (settled, twist.never_ends) {
            (true, _) => self.now,
            (false, true) => Time::NEVER,
            (false, false) => self.now + usual.saturating_mul(factor),
        };
        let id = self.operations.next_id(target.segment("subscriptions").unwrap_or(""));
        self.operations.begin(Operation {
            id: id.clone(),
            target: target.clone(),
            lane,
            work: if twist.pretends { Work::Nothing } else { work },
            ending: twist.ending.clone(),
            ends,
            usual,
            lag: twist.lag,
            state: if settled { OperationState::Succeeded } else { OperationState::Running },
        });
        id
    }

    /// Ends an operation that is due.
    fn finish(&mut self, operation: &Operation) -> OperationState {
        let target = &operation.target;
        let result = match (&operation.ending, &operation.work) {
            (Ending::SucceedInNameOnly, Work::Provision) => {
                self.state.set_provisioning(target, Provisioning::Failed);
                return OperationState::Succeeded;
            }
            (Ending::Succeed | Ending::SucceedInNameOnly, _) => self.carry_out(operation),
            (Ending::Fail(error), _) => Err(error.clone()),
            (Ending::Cancel(error), _) => {
                self.mark_failed(operation);
                return OperationState::Canceled(error.clone());
            }
        };
        match result {
            Ok(()) => OperationState::Succeeded,
            Err(error) => {
                self.mark_failed(operation);
                OperationState::Failed(error)
            }
        }
    }

    fn mark_failed(&mut self, operation: &Operation) {
        if matches!(operation.work, Work::Provision | Work::Delete) {
            self.state.set_provisioning(&operation.target, Provisioning::Failed);
        }
    }

    fn carry_out(&mut self, operation: &Operation) -> Result<(), ArmError> {
        let target = &operation.target;
        let refused = |refusal: Refusal| refusal.error;
        match &operation.work {
            Work::Nothing => return Ok(()),
            Work::Provision => return self.provisioned(target),
            Work::Delete => self.deletable(target).map_err(refused)?,
            Work::DeleteGroup => self.group_deletable(target).map_err(refused)?,
            Work::Services(requests) => self.check_services(target, requests).map_err(refused)?,
            Work::Locations(updates) => self.check_locations(target, updates).map_err(refused)?,
        }
        // A PUT has shown at once and lags since then; of the others the effect, and so the lag, comes now.
        if let Some(lag) = operation.lag {
            self.lags.keep(&self.state, target, operation.lane, operation.ends + lag);
        }
        match &operation.work {
            Work::Delete => self.remove(target),
            Work::DeleteGroup => self.remove_group(target),
            Work::Services(requests) => self.apply_services(target, requests),
            Work::Locations(updates) => self.apply_locations(target, updates),
            Work::Provision | Work::Nothing => {}
        }
        Ok(())
    }

    fn provisioned(&mut self, target: &ArmId) -> Result<(), ArmError> {
        if let Some(public_ip) = self.state.public_ips.get_mut(target)
            && public_ip.address.is_none()
        {
            let issued = self.addresses.issue(public_ip.family);
            public_ip.address = Some(issued.ok_or_else(|| Refusal::no_addresses_left(public_ip.family))?);
        }
        self.state.set_provisioning(target, Provisioning::Succeeded);
        Ok(())
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
