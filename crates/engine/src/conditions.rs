//! Our two conditions on a Service, worked out from how it stands.

use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use sluice_model::kube::{Condition, ConditionKind, ServiceObject};
use sluice_model::reason::Reason;

use crate::engine::Engine;
use crate::service::{Compared, Service};
use crate::state::State;

/// A pause that Azure asked for is shown from this length on: shorter ones are over before people look.
const THROTTLED_SHOWN: Duration = Duration::from_secs(30);

impl Engine {
    /// What they should say; none when nothing of ours is left.
    pub(crate) fn conditions(
        &self,
        record: &Service,
        object: &ServiceObject,
        wanted: bool,
    ) -> Vec<Condition> {
        let released = !wanted && self.keeper(record).is_none();
        if released && self.survey.is_complete() && self.is_torn_down(record.index) {
            return Vec::new();
        }
        let live = record.actual.is_live();
        let waits_for_gateway = self.foundation.is_out_of_order();
        if !self.survey.is_complete() {
            // Nobody can say whether it is served, so what was said about that before stays.
            let serving = object.conditions.iter().find(|it| it.kind == ConditionKind::Serving);
            let reason = Reason::GatewayUnavailable;
            return pair(true, reason, serving.map_or((false, reason), |it| (it.holds, it.reason)));
        }
        if self.is_braked(record.index) {
            let reason = Reason::MassDeletionHeld;
            return pair(true, reason, (live, if live { Reason::Provisioned } else { reason }));
        }
        let served = object.published.is_some() || record.served && live;
        if self.is_wanted(record.index) && !served && self.is_rejected(record) {
            // No client can use it.
            let reason = Reason::InvalidSpec;
            return pair(true, reason, (false, reason));
        }
        let held = record.hold.as_ref().filter(|hold| hold.parked).map(|hold| hold.reason);
        if !wanted {
            let reason = match record.state {
                State::DeletionInProgress => Reason::Deleting,
                _ => Reason::Draining,
            };
            let stuck = waits_for_gateway.then_some(Reason::GatewayUnavailable);
            let reason = held.or(stuck).or(throttled(record)).unwrap_or(reason);
            return pair(true, reason, (false, reason));
        }
        let invalid = match &record.compared {
            Some(Compared::Invalid(reason, _)) => Some(*reason),
            _ => None,
        };
        let stuck = waits_for_gateway.then_some(Reason::GatewayUnavailable);
        let unresolved = record.unresolved.as_ref().map(|_| Reason::PortUnresolved);
        // While it is looked at again, a conflict is neither over nor new.
        let conflict = Reason::Conflict;
        let shown = object.conditions.iter().any(|it| it.reason == conflict);
        let looked_at = (record.actual.is_unclear() && shown).then_some(conflict);
        let trouble = invalid.or(held).or(stuck).or(looked_at).or(throttled(record)).or(unresolved);
        let (busy, reason) = match (trouble, record.state) {
            (Some(reason), _) => (true, reason),
            (None, State::Created) => (false, Reason::Provisioned),
            (None, State::UpdateInProgress) => (true, Reason::Updating),
            (None, _) => (true, Reason::Provisioning),
        };
        pair(busy, reason, (live, if live { Reason::Provisioned } else { reason }))
    }
}

fn pair(busy: bool, reason: Reason, (live, serving): (bool, Reason)) -> Vec<Condition> {
    let promised = reason.stands_in_conditions() && busy == (reason != Reason::Provisioned);
    debug_assert!(promised, "docs/conditions.md knows no such condition: {busy} {reason}");
    vec![
        Condition { kind: ConditionKind::Provisioning, holds: busy, reason },
        Condition { kind: ConditionKind::Serving, holds: live, reason: serving },
    ]
}

/// Azure asked for a pause that is long enough to be shown.
fn throttled(record: &Service) -> Option<Reason> {
    let waits = record.throttled.filter(|(since, until)| until.since(*since) >= THROTTLED_SHOWN).is_some();
    let held = record.hold.as_ref().zip(record.last_failure.as_ref()).is_some_and(|(hold, failure)| {
        hold.reason == Reason::Throttled && hold.until.since(failure.at) >= THROTTLED_SHOWN
    });
    (waits || held).then_some(Reason::Throttled)
}

pub(crate) fn same_conditions(a: &[Condition], b: &[Condition]) -> bool {
    a.len() == b.len() && a.iter().all(|condition| b.contains(condition))
}
