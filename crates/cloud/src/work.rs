//! Begins operations, and does at their end what they are for.

use alloc::vec::Vec;

use sluice_model::Time;
use sluice_model::azure::{ArmId, Provisioning};
use sluice_model::call::{ArmError, OperationState};

use crate::cloud::Cloud;
use crate::config::Span;
use crate::fault::Twist;
use crate::operation::{Ending, Lane, Operation, Work, holder};
use crate::refusal::Refusal;

impl Cloud {
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
        let subscription = target.segment("subscriptions").unwrap_or("");
        let id = self.operations.next_id(subscription, &self.region);
        self.operations.begin(Operation {
            id: id.clone(),
            target: target.clone(),
            holds: holder(target),
            since: self.now,
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
    pub(crate) fn finish(&mut self, operation: &Operation) -> OperationState {
        let result = match (&operation.ending, &operation.work) {
            (Ending::SucceedInNameOnly, Work::Provision) => {
                self.mark_failed(operation);
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
            self.settle(&operation.target, Provisioning::Failed);
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
        self.settle(target, Provisioning::Succeeded);
        Ok(())
    }

    /// The last write of a resource has come through or not; of a network's subnets too, where they were
    /// written along with it.
    fn settle(&mut self, target: &ArmId, provisioning: Provisioning) {
        self.state.set_provisioning(target, provisioning);
        if !self.state.virtual_networks.contains_key(target) {
            return;
        }
        let written: Vec<ArmId> = (self.state.subnets_of(target))
            .filter(|subnet| self.state.provisioning_of(subnet) == Some(Provisioning::Updating))
            .cloned()
            .collect();
        for subnet in &written {
            self.state.set_provisioning(subnet, provisioning);
        }
    }
}
