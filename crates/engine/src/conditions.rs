//! Our two conditions on a Service, worked out from how it stands.

use alloc::vec;
use alloc::vec::Vec;
use core::net::IpAddr;

use sluice_model::kube::{Concern, Condition, ConditionKind, ServiceObject};
use sluice_model::reason::Reason;

use crate::engine::Engine;
use crate::service::Service;
use crate::state::State;

impl Engine {
    /// What they should say beside this published IP; none when nothing of ours is left.
    pub(crate) fn conditions(
        &self,
        record: &Service,
        object: &ServiceObject,
        wanted: bool,
        ingress: Option<IpAddr>,
    ) -> Vec<Condition> {
        let released = !wanted && self.keeper(record).is_none();
        if released && self.survey.is_complete() && self.is_torn_down(record.index) {
            return Vec::new();
        }
        let live = record.actual.is_live();
        let trouble = self.trouble(record).filter(|trouble| trouble.reason.stands_in_conditions());
        let (reason, concern) = match (&trouble, wanted, record.state) {
            (Some(trouble), ..) => (trouble.reason, trouble.concern),
            // Nothing is decided.
            _ if !self.survey.is_complete() => return object.conditions.clone(),
            (None, true, State::Created) if ingress.is_some() => (Reason::Provisioned, Concern::Resources),
            (None, ..) => (self.reason_of_work(record, wanted), Concern::Resources),
        };
        if !self.survey.is_complete() {
            // It is not known whether it is served, so what was said about that before stays while its IP does.
            let said = object.conditions.iter().find(|it| it.kind == ConditionKind::Serving);
            let said = said.filter(|it| !it.holds || ingress.is_some());
            let unknown = Condition { kind: ConditionKind::Serving, holds: false, reason, concern };
            return pair(reason, concern, said.copied().unwrap_or(unknown));
        }
        let served = record.published(object).is_some() || record.served && live;
        let is_braked = self.is_braked(record.index);
        if self.is_wanted(record.index) && !served && !is_braked && self.is_rejected(record) {
            // No client can use it.
            let (reason, concern) = (Reason::InvalidSpec, Concern::Resources);
            let serving = Condition { kind: ConditionKind::Serving, holds: false, reason, concern };
            return pair(reason, concern, serving);
        }
        let nothing_is_programmed =
            concern == Concern::Addresses && self.addresses.programmed(record.index) == 0;
        let holds = live && ingress.is_some() && (wanted || is_braked) && !nothing_is_programmed;
        let (because, about) =
            if holds { (Reason::Provisioned, Concern::Resources) } else { (reason, concern) };
        let kind = ConditionKind::Serving;
        pair(reason, concern, Condition { kind, holds, reason: because, concern: about })
    }

    /// The reason of work that is to be done or under way.
    pub(crate) fn reason_of_work(&self, record: &Service, wanted: bool) -> Reason {
        match (wanted, record.state) {
            (false, state) if state != State::DeletionInProgress && self.is_mapped(record) => {
                Reason::Draining
            }
            (false, _) => Reason::Deleting,
            (true, State::Created | State::UpdateInProgress) => Reason::Updating,
            (true, _) => Reason::Provisioning,
        }
    }
}

fn pair(reason: Reason, concern: Concern, serving: Condition) -> Vec<Condition> {
    debug_assert!(reason.stands_in_conditions(), "not a reason of conditions: {reason}");
    let (kind, holds) = (ConditionKind::Provisioning, reason != Reason::Provisioned);
    vec![Condition { kind, holds, reason, concern }, serving]
}

pub(crate) fn same_conditions(a: &[Condition], b: &[Condition]) -> bool {
    a.len() == b.len() && a.iter().all(|condition| b.contains(condition))
}
