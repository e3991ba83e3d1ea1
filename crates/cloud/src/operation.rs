//! Operations that take a while.
//!
//! Each has an end that is fixed when it begins, and one piece of work that is done there. A resource has
//! at most one at a time; a gateway's two POSTs have lanes of their own.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use sluice_model::Time;
use sluice_model::azure::{ArmId, LocationUpdate, ServiceRequest};
use sluice_model::call::{ArmError, OperationState};

use crate::issue::guid;
use crate::refusal::noun;

/// How long one can ask for an operation that is over, unless somebody says otherwise.
const KEPT: Duration = Duration::from_secs(3_600);
/// How many of those are kept at most. Nobody ends so many between two polls of one client.
const ENDED_MAX: usize = 200_000;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Lane {
    /// PUT, PATCH and DELETE.
    Resource,
    /// `updateServices`.
    Services,
    /// `updateAddressLocations`.
    Locations,
}

/// What is done at the end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Work {
    /// A written resource becomes usable.
    Provision,
    /// A resource goes.
    Delete,
    /// A group goes, with all that is in it.
    DeleteGroup,
    /// Services are registered and unregistered.
    Services(Vec<ServiceRequest>),
    /// Addresses are bound and unbound.
    Locations(Vec<LocationUpdate>),
    /// Nothing; it only looks as if.
    Nothing,
}

/// How it ends.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) enum Ending {
    /// With the work done.
    #[default]
    Succeed,
    /// It says that it succeeded, but the resource is `Failed`.
    SucceedInNameOnly,
    /// With an error and nothing done.
    Fail(ArmError),
    /// Called off, and nothing done.
    Cancel(ArmError),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Operation {
    pub(crate) id: ArmId,
    pub(crate) target: ArmId,
    /// Whose lane it keeps: the target's, or of a subnet its network's.
    pub(crate) holds: ArmId,
    pub(crate) since: Time,
    pub(crate) lane: Lane,
    pub(crate) work: Work,
    pub(crate) ending: Ending,
    /// When it ends.
    pub(crate) ends: Time,
    /// How long it would have taken had nobody slowed it down.
    pub(crate) usual: Duration,
    /// How long reads lag behind its work.
    pub(crate) lag: Option<Duration>,
    pub(crate) state: OperationState,
}

impl Operation {
    /// What it does, in Azure's words.
    pub(crate) fn word(&self) -> String {
        match self.work {
            Work::Provision => format!("Put{}Operation", noun(&self.target)),
            Work::Delete => format!("Delete{}Operation", noun(&self.target)),
            Work::DeleteGroup => "DeleteResourceGroupOperation".into(),
            Work::Services(_) => "UpdateServicesOperation".into(),
            Work::Locations(_) => "UpdateAddressLocationsOperation".into(),
            Work::Nothing => "NoOperation".into(),
        }
    }
}

/// All operations that run, and those that ended not long ago.
#[derive(Clone, Debug)]
pub(crate) struct Operations {
    seed: u64,
    begun: u64,
    all: BTreeMap<u64, Operation>,
    due: BTreeSet<(Time, u64)>,
    busy: BTreeMap<(ArmId, Lane), u64>,
    ended: VecDeque<(Time, u64)>,
    /// How long one can ask for those.
    kept: Duration,
}

impl Operations {
    pub(crate) fn new(seed: u64) -> Operations {
        Operations {
            seed,
            begun: 0,
            all: BTreeMap::new(),
            due: BTreeSet::new(),
            busy: BTreeMap::new(),
            ended: VecDeque::new(),
            kept: KEPT,
        }
    }

    /// Keeps what is over for so long, and never shorter than usual.
    pub(crate) fn keep_for(&mut self, time: Duration) {
        self.kept = time.max(KEPT);
    }

    /// The id that the next operation in this subscription will have.
    pub(crate) fn next_id(&self, subscription: &str, region: &str) -> ArmId {
        let guid = guid(self.seed, self.begun.wrapping_add(1));
        ArmId::new(format!(
            "/subscriptions/{subscription}/providers/Microsoft.Network/locations/{region}/operations/{guid}"
        ))
    }

    /// Takes up an operation; one that does nothing keeps nobody waiting.
    pub(crate) fn begin(&mut self, operation: Operation) {
        self.begun = self.begun.wrapping_add(1);
        let number = self.begun;
        if operation.state == OperationState::Running {
            self.due.insert((operation.ends, number));
            if operation.work != Work::Nothing {
                self.busy.insert((operation.holds.clone(), operation.lane), number);
            }
        } else {
            self.ended.push_back((operation.ends, number));
        }
        self.all.insert(number, operation);
    }

    pub(crate) fn get(&self, id: &ArmId) -> Option<&Operation> {
        self.all.get(&number_of(id)?).filter(|operation| operation.id == *id)
    }

    /// The operation that keeps a lane of a resource.
    pub(crate) fn running(&self, holder: &ArmId, lane: Lane) -> Option<&Operation> {
        self.all.get(self.busy.get(&(holder.clone(), lane))?)
    }

    pub(crate) fn next_end(&self) -> Option<Time> {
        self.due.first().map(|&(ends, _)| ends).filter(|&ends| ends != Time::NEVER)
    }

    /// All that run, in the order of their ends.
    pub(crate) fn all_running(&self) -> impl Iterator<Item = &Operation> {
        self.due.iter().filter_map(|(_, number)| self.all.get(number))
    }

    pub(crate) fn running_count(&self) -> usize {
        self.due.len()
    }

    /// The next operation that is due, no longer in anybody's way. Its work is handed out and not kept:
    /// a large request need not be remembered for as long as its end can be asked for.
    pub(crate) fn take_due(&mut self, now: Time) -> Option<Operation> {
        let &(ends, number) = self.due.first().filter(|&&(ends, _)| ends <= now && ends != Time::NEVER)?;
        self.due.remove(&(ends, number));
        self.ended.push_back((ends, number));
        let kept = self.all.get_mut(&number)?;
        let work = core::mem::replace(&mut kept.work, Work::Nothing);
        let operation = Operation { work, ..kept.clone() };
        self.set_free(&operation, number);
        Some(operation)
    }

    fn set_free(&mut self, operation: &Operation, number: u64) {
        let key = (operation.holds.clone(), operation.lane);
        if self.busy.get(&key) == Some(&number) {
            self.busy.remove(&key);
        }
    }

    /// Writes down how an operation ended.
    pub(crate) fn set_state(&mut self, id: &ArmId, state: OperationState) {
        if let Some(operation) = number_of(id).and_then(|number| self.all.get_mut(&number)) {
            operation.state = state;
        }
    }

    pub(crate) fn forget_old(&mut self, now: Time) {
        while let Some(&(ended, number)) = self.ended.front() {
            if now < ended + self.kept && self.ended.len() <= ENDED_MAX {
                break;
            }
            self.ended.pop_front();
            self.all.remove(&number);
        }
    }

    /// Calls off whatever runs on a resource that is no more.
    pub(crate) fn cancel(&mut self, now: Time, target: &ArmId) {
        let holder = holder(target);
        for lane in [Lane::Resource, Lane::Services, Lane::Locations] {
            let key = (holder.clone(), lane);
            // Of a network that goes, everything; of a subnet, not what runs on its network or a neighbour.
            let is_meant = |it: &&Operation| it.target == *target || holder == *target;
            if self.running(&holder, lane).filter(is_meant).is_none() {
                continue;
            }
            let Some(number) = self.busy.remove(&key) else { continue };
            if let Some(operation) = self.all.get_mut(&number) {
                self.due.remove(&(operation.ends, number));
                self.ended.push_back((now, number));
                operation.work = Work::Nothing;
                let message = format!("{target} was deleted by somebody else.");
                operation.state =
                    OperationState::Canceled(ArmError { code: "Canceled".into(), message: message.into() });
            }
        }
    }

    /// Lets nothing run longer from now on than it would have taken from the start.
    pub(crate) fn hurry(&mut self, now: Time) {
        for (ends, number) in core::mem::take(&mut self.due) {
            let Some(operation) = self.all.get_mut(&number) else { continue };
            operation.ends = ends.min(now + operation.usual);
            self.due.insert((operation.ends, number));
        }
    }

    /// Lets one operation end now.
    pub(crate) fn end_now(&mut self, now: Time, id: &ArmId) {
        let Some(number) = number_of(id) else { return };
        if let Some(operation) = self.all.get_mut(&number)
            && self.due.remove(&(operation.ends, number))
        {
            operation.ends = now;
            self.due.insert((now, number));
        }
    }
}

/// Whose lane an operation keeps: a network and its subnets are changed one at a time.
pub(crate) fn holder(target: &ArmId) -> ArmId {
    target.parent("virtualNetworks").unwrap_or_else(|| target.clone())
}

/// The number that ends an operation's id.
fn number_of(id: &ArmId) -> Option<u64> {
    u64::from_str_radix(id.name().rsplit('-').next()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn over(operations: &Operations, at: Time) -> Operation {
        let id = operations.next_id("s", "eastus");
        let target = ArmId::new("/subscriptions/s/resourceGroups/rg");
        Operation {
            id,
            holds: target.clone(),
            target,
            since: at,
            lane: Lane::Resource,
            work: Work::Nothing,
            ending: Ending::Succeed,
            ends: at,
            usual: Duration::ZERO,
            lag: None,
            state: OperationState::Succeeded,
        }
    }

    #[test]
    fn what_is_over_is_kept_for_an_hour_or_longer_if_told() {
        for (told, hours) in [(None, 1), (Some(5), 5), (Some(0), 1)] {
            let mut operations = Operations::new(0);
            if let Some(hours) = told {
                operations.keep_for(Duration::from_secs(hours * 3_600));
            }
            let operation = over(&operations, Time::ZERO);
            operations.begin(operation.clone());
            operations.forget_old(Time::from_millis(hours * 3_600_000 - 1));
            assert!(operations.get(&operation.id).is_some(), "{told:?}");
            operations.forget_old(Time::from_millis(hours * 3_600_000));
            assert!(operations.get(&operation.id).is_none(), "{told:?}");
        }
    }

    #[test]
    fn of_very_many_that_are_over_the_newest_are_kept() {
        let mut operations = Operations::new(0);
        let mut ids = Vec::new();
        for _ in 0..=ENDED_MAX {
            let operation = over(&operations, Time::ZERO);
            ids.push(operation.id.clone());
            operations.begin(operation);
        }
        operations.forget_old(Time::ZERO);
        assert_eq!(operations.all.len(), ENDED_MAX);
        assert!(operations.get(&ids[0]).is_none());
        assert!(operations.get(&ids[1]).is_some());
    }
}
