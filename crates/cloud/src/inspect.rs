//! What a cloud shows of itself beside its state, and what can be set while it runs.
//!
//! For whoever stands in front of it and shows it to people; no caller of Azure sees any of this.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::IpAddr;
use core::time::Duration;

use sluice_model::Time;
use sluice_model::azure::{ArmId, Provisioning};
use sluice_model::call::{Bucket, Method, OperationState};

use crate::cloud::{Cloud, Outcome};
use crate::config::{Buckets, Quota};
use crate::operation::{Lane, Work};
use crate::place::Kind;
use crate::refusal::Refusal;
use crate::state::State;
use crate::tamper::{Forbidden, LockLevel};
use crate::throttle::Throttle;

/// An operation that is not over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RunningOperation<'a> {
    /// Its id.
    pub id: &'a ArmId,
    /// The resource that it works on.
    pub target: &'a ArmId,
    /// What it will do: `provision`, `delete`, `updateServices`, …
    pub work: &'static str,
    /// When it began.
    pub since: Time,
    /// When it ends; `None`: never.
    pub ends: Option<Time>,
}

/// What had been spent of the call limits when nobody counted any more, and the roles that our caller lacked.
#[derive(Debug)]
#[must_use = "without it nobody counts again"]
pub struct LimitsAside {
    throttle: Option<Throttle>,
    forbidden: BTreeMap<ArmId, Forbidden>,
}

/// How many calls are left in each bucket of the resource manager.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Remaining {
    /// GET.
    pub reads: u32,
    /// PUT, PATCH, POST.
    pub writes: u32,
    /// DELETE.
    pub deletes: u32,
}

/// How much there is of a kind, and how much there may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Usage {
    /// Azure's name for the count: `PublicIPAddresses`.
    pub name: &'static str,
    /// The same for people.
    pub localized: &'static str,
    /// How many there are.
    pub current: usize,
    /// How many there may be.
    pub limit: usize,
}

impl Cloud {
    /// The truth, whatever lagging reads say.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Whether the last write of a resource, network or subnet has come through; `None` if it is not there.
    pub fn provisioning_of(&self, id: &ArmId) -> Option<Provisioning> {
        self.state.provisioning_of(id)
    }

    /// When the next operation ends, if any does.
    pub fn next_deadline(&self) -> Option<Time> {
        self.operations.next_end()
    }

    /// When next something becomes visible by itself: an operation ends, or reads catch up with a write.
    pub fn next_change(&self) -> Option<Time> {
        self.operations.next_end().into_iter().chain(self.lags.next_end()).min()
    }

    /// From now on one can ask for an operation that is over for so long, and for an hour at the least.
    pub fn keep_operations_for(&mut self, time: Duration) {
        self.operations.keep_for(time);
    }

    /// How many operations run, those that never end included.
    pub fn operations_running(&self) -> usize {
        self.operations.running_count()
    }

    /// All operations that run, in the order of their ends.
    pub fn running(&self) -> impl Iterator<Item = RunningOperation<'_>> {
        self.operations.all_running().map(|operation| RunningOperation {
            id: &operation.id,
            target: &operation.target,
            work: match operation.work {
                Work::Provision => "provision",
                Work::Delete => "delete",
                Work::DeleteGroup => "deleteGroup",
                Work::Services(_) => "updateServices",
                Work::Locations(_) => "updateAddressLocations",
                Work::Nothing => "nothing",
            },
            since: operation.since,
            ends: Some(operation.ends).filter(|&ends| ends != Time::NEVER),
        })
    }

    /// How an operation stands; asking so costs nothing.
    pub fn operation_state(&self, id: &ArmId) -> Option<&OperationState> {
        self.operations.get(id).map(|operation| &operation.state)
    }

    /// What a running operation is doing to a resource or group: `Updating` or `Deleting`.
    pub fn at_work(&self, id: &ArmId) -> Option<Provisioning> {
        match self.state.provisioning_of(id) {
            Some(at_work @ (Provisioning::Updating | Provisioning::Deleting)) => Some(at_work),
            Some(_) => None,
            // Nothing runs on a group but its deletion.
            None => self.operations.running(id, Lane::Resource).map(|_| Provisioning::Deleting),
        }
    }

    /// The faults are over: what would never end takes as long as usual from now on, locks, policies, lost
    /// permissions, poison, slowness and lagging reads are gone.
    pub fn calm(&mut self) {
        self.operations.hurry(self.now);
        self.lags.clear();
        self.locks.clear();
        self.denied.clear();
        self.forbidden.clear();
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

    /// The quotas.
    pub fn quota(&self) -> Quota {
        self.config.quota
    }

    /// Other call limits from now on, all of them unspent; `None` lifts them.
    pub fn set_buckets(&mut self, buckets: Option<Buckets>) {
        self.config.buckets = buckets;
        self.throttle = buckets.map(Throttle::new);
    }

    /// Lets nobody count calls or ask for roles until [`Cloud::bring_back_limits`]; for the work of somebody
    /// else, who has their own of both.
    pub fn set_aside_limits(&mut self) -> LimitsAside {
        LimitsAside { throttle: self.throttle.take(), forbidden: core::mem::take(&mut self.forbidden) }
    }

    /// Counts calls again, from where it was left, and asks for roles.
    pub fn bring_back_limits(&mut self, limits: LimitsAside) {
        self.throttle = limits.throttle;
        self.forbidden = limits.forbidden;
    }

    /// Lets everything that runs on a resource end now.
    pub fn end_now(&mut self, now: Time, target: &ArmId) {
        self.advance(now);
        let running: Vec<ArmId> =
            self.running().filter(|it| it.target == target).map(|it| it.id.clone()).collect();
        for id in running {
            self.operations.end_now(self.now, &id);
        }
        self.advance(self.now);
    }

    /// The call limits.
    pub fn buckets(&self) -> Option<Buckets> {
        self.config.buckets
    }

    /// How many times as long as usual operations take that begin now.
    pub fn slowness(&self) -> u32 {
        self.slowness
    }

    /// The addresses that spoil every location update.
    pub fn poisoned(&self) -> impl Iterator<Item = IpAddr> {
        self.poison.iter().copied()
    }

    /// What is locked, and against what.
    pub fn locks(&self) -> impl Iterator<Item = (&ArmId, LockLevel)> {
        self.locks.iter().map(|(scope, level)| (scope, *level))
    }

    /// Where a policy forbids to write.
    pub fn denied(&self) -> impl Iterator<Item = &ArmId> {
        self.denied.iter()
    }

    /// Where our caller has lost a role, and which.
    pub fn forbidden(&self) -> impl Iterator<Item = (&ArmId, Forbidden)> {
        self.forbidden.iter().map(|(scope, what)| (scope, *what))
    }

    /// Whether PUTs from now on change something that is no part of the model: they take their time even if
    /// everything that we see stays the same.
    pub fn set_unseen_change(&mut self, changes: bool) {
        self.unseen_change = changes;
    }

    /// Whether the two gateway POSTs of the next requests are carried out at once and answer 200; that is
    /// decided by their API version.
    pub fn set_synchronous_posts(&mut self, synchronous: bool) {
        self.config.synchronous_posts = synchronous;
    }

    /// The region that stands in the ids of operations from now on; it means nothing else.
    pub fn set_region(&mut self, region: &str) {
        if *self.region != *region {
            self.region = region.into();
        }
    }

    /// A call that the model does not serve itself: pays for it and asks whether it is permitted. Says what
    /// is left in its bucket, or what the call is answered.
    pub fn charge(&mut self, now: Time, target: &ArmId, method: Method) -> Result<Option<u32>, Box<Outcome>> {
        self.advance(now);
        let refused = |refusal, remaining| Box::new(Outcome::refused(refusal, remaining));
        let remaining = self.spend(target, method.bucket()).map_err(|refusal| refused(refusal, None))?;
        match self.permitted(target, method) {
            Ok(()) => Ok(remaining),
            Err(refusal) => Err(refused(refusal, remaining)),
        }
    }

    /// Who pays for the requests from now on; everybody has buckets of their own in every subscription.
    pub fn set_payer(&mut self, payer: &str) {
        if *self.payer != *payer {
            self.payer = payer.into();
        }
    }

    /// What is left to whoever pays in each bucket of a subscription; `None` where nobody counts.
    pub fn remaining(&mut self, now: Time, subscription: &str) -> Option<Remaining> {
        self.advance(now);
        let now = self.now;
        let throttle = self.throttle.as_mut()?;
        let mut left = |bucket| throttle.left(now, &self.payer, bucket, subscription);
        Some(Remaining {
            reads: left(Bucket::Reads),
            writes: left(Bucket::Writes),
            deletes: left(Bucket::Deletes),
        })
    }

    /// How much there is of everything in a subscription, and how much there may be.
    pub fn usages(&self, subscription: &str) -> Vec<Usage> {
        let quota = &self.config.quota;
        let of = |kind, name, localized, limit| Usage {
            name,
            localized,
            current: self.state.count(kind, subscription),
            limit,
        };
        [
            of(Kind::VirtualNetwork, "VirtualNetworks", "Virtual Networks", quota.virtual_networks),
            of(Kind::PublicIp, "PublicIPAddresses", "Public IP Addresses", quota.public_ips),
            of(Kind::LoadBalancer, "LoadBalancers", "Load Balancers", quota.load_balancers),
            of(Kind::NatGateway, "NatGateways", "Nat Gateways", quota.nat_gateways),
            of(Kind::Gateway, "ServiceGateways", "Service Gateways", quota.gateways),
        ]
        .into()
    }

    pub(crate) fn spend(&mut self, target: &ArmId, bucket: Bucket) -> Result<Option<u32>, Refusal> {
        let Some(throttle) = &mut self.throttle else { return Ok(None) };
        let subscription = target.segment("subscriptions").unwrap_or("");
        let is_network =
            target.segment("providers").is_some_and(|it| it.eq_ignore_ascii_case("Microsoft.Network"));
        throttle.pay(self.now, &self.payer, bucket, is_network, subscription).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use sluice_model::call::{Body, Method, Request};

    use super::*;
    use crate::config::{Config, Rate};
    use crate::fault::Fault;

    fn cloud_with_networks() -> Cloud {
        let mut cloud = Cloud::new(Config::default());
        let put = |name: &str| Request::with(Method::Put, ArmId::new(name), Body::Container);
        let network = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/virtualNetworks";
        cloud.handle(Time::ZERO, &put("/subscriptions/s/resourceGroups/rg"));
        cloud.handle_faulty(Time::ZERO, &put(&alloc::format!("{network}/a")), &Fault::OperationNeverEnds);
        cloud.handle(Time::ZERO, &put(&alloc::format!("{network}/b")));
        cloud
    }

    #[test]
    fn what_runs_is_shown_until_it_ends() {
        let mut cloud = cloud_with_networks();
        let ends: Vec<bool> = cloud.running().map(|it| it.ends.is_some()).collect();
        assert_eq!(ends, [true, false]);
        assert!(
            cloud.running().all(|it| it.work == "provision" && it.target.segment("subscriptions").is_some())
        );
        cloud.advance(Time::from_millis(60_000));
        assert_eq!(cloud.running().count(), 1);
    }

    #[test]
    fn what_somebody_else_does_costs_nothing_and_is_done_at_once() {
        let mut cloud = cloud_with_networks();
        let one = Rate { burst: 1, per_second: 0 };
        cloud.set_buckets(Some(Buckets { writes: one, ..Buckets::default() }));
        let network = ArmId::new(
            "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/virtualNetworks/theirs",
        );
        let put = Request::with(Method::Put, network.clone(), Body::Container);
        let limits = cloud.set_aside_limits();
        assert_eq!(cloud.handle(Time::ZERO, &put).status, 201);
        cloud.bring_back_limits(limits);
        cloud.end_now(Time::ZERO, &network);
        assert!(cloud.running().all(|it| *it.target != network));
        let ours = Request::with(Method::Put, ArmId::new(alloc::format!("{network}2")), Body::Container);
        let statuses = [cloud.handle(Time::ZERO, &ours).status, cloud.handle(Time::ZERO, &put).status];
        assert_eq!(statuses, [201, 429]);
    }

    #[test]
    fn other_limits_count_from_the_beginning() {
        let mut cloud = cloud_with_networks();
        let get = Request::bare(Method::Get, ArmId::new("/subscriptions/s/resourceGroups/rg"));
        let one = Rate { burst: 1, per_second: 0 };
        cloud.set_buckets(Some(Buckets { reads: one, ..Buckets::default() }));
        let statuses: Vec<u16> = (0..2).map(|_| cloud.handle(Time::ZERO, &get).status).collect();
        assert_eq!(statuses, [200, 429]);
        cloud.set_buckets(None);
        assert_eq!(cloud.handle(Time::ZERO, &get).status, 200);
        assert_eq!(cloud.buckets(), None);
    }
}
