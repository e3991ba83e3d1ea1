//! Our two conditions on a Service, worked out from how it stands.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::net::IpAddr;

use sluice_model::kube::{Concern, Condition, ConditionKind, ServiceObject};
use sluice_model::reason::{Reason, Severity};

use crate::engine::Engine;
use crate::service::Service;
use crate::state::State;
use crate::trouble::{Cause, shown};

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
        let cause = trouble.as_ref().map(|trouble| trouble.cause);
        let (kind, holds) = (ConditionKind::Provisioning, reason != Reason::Provisioned);
        let message = self.message(record, object, reason, concern, cause);
        let provisioning = Condition { message, ..Condition::new(kind, holds, reason, concern) };
        let kind = ConditionKind::Serving;
        if !self.survey.is_complete() {
            // It is not known whether it is served, so what was said about that before stays while its IP does.
            let said = object.conditions.iter().find(|it| it.kind == kind);
            let said = said.filter(|it| !it.holds || ingress.is_some());
            let unknown = || Condition::new(kind, false, reason, concern);
            return vec![provisioning, said.cloned().unwrap_or_else(unknown)];
        }
        let served = record.published(object, &self.config.scope).is_some() || record.served && live;
        let is_braked = self.is_braked(record.index);
        if self.is_wanted(record.index) && !served && !is_braked && self.is_rejected(record) {
            // No client can use it.
            return vec![provisioning, Condition::new(kind, false, reason, concern)];
        }
        let nothing_is_programmed =
            concern == Concern::Addresses && self.addresses.programmed_of_wanted(record.index) == 0;
        let holds = live && ingress.is_some() && (wanted || is_braked) && !nothing_is_programmed;
        let (because, about) =
            if holds { (Reason::Provisioned, Concern::Resources) } else { (reason, concern) };
        vec![provisioning, Condition::new(kind, holds, because, about)]
    }

    /// The message of `LoadBalancerProvisioning`, if there is a detail that lasts. Each other message is a status write,
    /// so one that differs only in the words of an outage, or in numbers and IDs, stays.
    fn message(
        &self,
        record: &Service,
        object: &ServiceObject,
        reason: Reason,
        concern: Concern,
        cause: Option<Cause<'_>>,
    ) -> Box<str> {
        let severity = reason.row().severity;
        if severity < Severity::Warning {
            return Box::default();
        }
        let said = shown(record).filter(|it| (it.reason, it.concern) == (reason, concern));
        let said = said.map(|it| it.message.clone()).unwrap_or_default();
        let Some(detail) = cause.and_then(|cause| self.detail(record, cause)) else { return said };
        let message = reason.message(concern, Some(&object.name), Some(&detail));
        let is_ours = matches!(cause, Some(Cause::Said(_) | Cause::NoPlace));
        let is_same = severity < Severity::Problem || same_words(&said, &message);
        if !is_ours && !said.is_empty() && is_same { said } else { message.into() }
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

/// Whether two texts differ only in words with a digit, such as counts, times and IDs.
pub(crate) fn same_words(a: &str, b: &str) -> bool {
    let words =
        |text| str::split_whitespace(text).filter(|word| !word.contains(|c: char| c.is_ascii_digit()));
    words(a).eq(words(b))
}

pub(crate) fn same_conditions(a: &[Condition], b: &[Condition]) -> bool {
    a.len() == b.len() && a.iter().all(|condition| b.contains(condition))
}
