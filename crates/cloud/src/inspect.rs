//! What a cloud shows of itself beside its state, and what can be set while it runs.
//!
//! For whoever stands in front of it and shows it to people; no caller of Azure sees any of this.

use core::net::IpAddr;

use sluice_model::Time;
use sluice_model::azure::ArmId;

use crate::cloud::Cloud;
use crate::config::{Buckets, Quota};
use crate::operation::Work;
use crate::tamper::LockLevel;
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
    /// When it ends; `None`: never.
    pub ends: Option<Time>,
}

impl Cloud {
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
            ends: Some(operation.ends).filter(|&ends| ends != Time::NEVER),
        })
    }

    /// Other call limits from now on, all of them unspent; `None` lifts them.
    pub fn set_buckets(&mut self, buckets: Option<Buckets>) {
        self.config.buckets = buckets;
        self.throttle = buckets.map(Throttle::new);
    }

    /// The call limits.
    pub fn buckets(&self) -> Option<Buckets> {
        self.config.buckets
    }

    /// The quotas.
    pub fn quota(&self) -> Quota {
        self.config.quota
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
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

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
