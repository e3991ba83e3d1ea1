//! Adoption: our tags for a load balancer, and its public IP, that the gateway has registered under the UID of a
//! live Service and that nobody has claimed.
//!
//! Such a Service is served as it is. The tags come when nothing else waits, one Service at a time and not too
//! often, so that they use a fifth of the write budget at most and delay nobody. An update or a teardown of such a
//! Service does not wait for that: it tags first.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use sluice_model::azure::ArmId;
use sluice_model::names::CLUSTER_TAG;
use sluice_model::plan::Intent;
use sluice_model::reason::{Reason, cut};
use sluice_model::{EffectId, Failure, FailureClass, Time};

use crate::addresses::ServiceIndex;
use crate::engine::Engine;
use crate::failure_row::clause;
use crate::resources::Knowledge;
use crate::service::{Compared, Service};
use crate::state::State;

/// How often a load balancer gets its tags while its Service lives: once, by its creation or its adoption, and once
/// again if they disappear.
const TIMES_MAX: u32 = 2;

/// Which Services wait for tags, and when the next may have them.
#[derive(Debug, Default)]
pub(crate) struct Adoptions {
    waiting: BTreeSet<ServiceIndex>,
    in_flight: Option<EffectId>,
    not_before: Time,
}

impl Adoptions {
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        let waits = self.in_flight.is_none() && !self.waiting.is_empty();
        waits.then_some(self.not_before)
    }
}

/// What has become of the tags of one Service.
#[derive(Debug, Default)]
pub(crate) struct Adoption {
    /// How often its load balancer has got its tags, as far as this process knows.
    times: u32,
    /// The last attempt failed, and the next is made then.
    pub(crate) retry_at: Option<Time>,
    told: bool,
    /// Why its load balancer has no tags, while that is so.
    pub(crate) trouble: Option<(Reason, String)>,
    /// The last attempt failed because Azure did not accept the credential.
    pub(crate) is_about_credential: bool,
}

impl Engine {
    /// Puts a Service among those that wait for tags, or takes it out.
    pub(crate) fn note_adoption(&mut self, service: ServiceIndex) {
        let now = self.now;
        let Some(record) = self.record(service) else {
            self.adoptions.waiting.remove(&service);
            return;
        };
        let at_rest = record.state == State::Created
            && record.operation.is_none()
            && record.hold.is_none()
            && record.compared == Some(Compared::InSync);
        let untagged = at_rest && !self.planner(record).adoption().is_empty();
        let tagged =
            record.actual.carrier.present().is_some_and(|it| self.config.scope.owns(&it.meta().tags));
        let again = record.adoption.times >= TIMES_MAX;
        let due = untagged && !again && record.adoption.retry_at.is_none_or(|at| at <= now);
        if tagged && let Some(record) = self.record_mut(service) {
            record.adoption.times = record.adoption.times.max(1);
            record.adoption.trouble = None;
        }
        if due {
            self.adoptions.waiting.insert(service);
        } else {
            self.adoptions.waiting.remove(&service);
        }
        if untagged && again {
            self.tell_of_lost_tags(service);
        }
    }

    /// Hands out the tags of one Service if nobody else waits.
    pub(crate) fn hand_out_adoption(&mut self) {
        let ready = self.adoptions.next_deadline().is_some_and(|at| at <= self.now);
        if !ready || !self.may_adopt() {
            return;
        }
        let Some(service) = self.adoptions.waiting.pop_first() else { return };
        self.start_as(service, Intent::Adopt);
        let Some(operation) = self.record(service).and_then(|record| record.operation.as_ref()) else {
            return;
        };
        self.adoptions.in_flight = Some(operation.id);
        self.adoptions.not_before = self.now + self.config.adoption_interval;
    }

    /// Nothing else waits, so the tags of a Service delay nobody.
    pub(crate) fn may_adopt(&self) -> bool {
        self.dispatch.is_idle() && self.foundation.is_ready() && self.may_act()
    }

    /// The tags of one Service are written, or those of one resource could not be.
    pub(crate) fn adoption_ended(
        &mut self,
        service: ServiceIndex,
        id: EffectId,
        failed: Option<(&ArmId, &Failure)>,
    ) {
        self.adoptions.in_flight.take_if(|other| *other == id);
        let retry_at = self.now + self.config.retry.forbidden_park.0;
        let Some(record) = self.record_mut(service) else { return };
        let Some((resource, failure)) = failed else {
            record.adoption.times += 1;
            record.adoption.retry_at = None;
            record.adoption.trouble = None;
            return;
        };
        record.adoption.retry_at = Some(retry_at);
        record.adoption.is_about_credential = failure.is_about_credential();
        let reason = match failure.class {
            FailureClass::Forbidden => Reason::Forbidden,
            FailureClass::Rejected => Reason::Conflict,
            _ => return,
        };
        let text = self.cannot_tag(resource, failure);
        if let Some(record) = self.record_mut(service) {
            record.adoption.trouble = Some((reason, text.clone()));
        }
        self.tell(service, reason, text, failure.is_about_credential());
    }

    /// Why a resource cannot be tagged, and the command to run.
    pub(crate) fn cannot_tag(&self, id: &ArmId, failure: &Failure) -> String {
        // After a rejection it is the whole message of a conflict; otherwise it follows what Azure did.
        let tagging = if failure.class == FailureClass::Rejected { "Tagging" } else { "tagging" };
        // The command follows, and a condition has to have room for it.
        let failed = format!("{tagging} {id} failed: {}", cut(&clause(failure), 240));
        if failure.is_about_credential() {
            return failed;
        }
        let cluster = &self.config.scope.cluster_id;
        format!(
            "{failed}. To tag it yourself, run `az tag update --resource-id {id} --operation Merge --tags {CLUSTER_TAG}={cluster}`"
        )
    }

    /// Says once that somebody keeps removing our tags.
    fn tell_of_lost_tags(&mut self, service: ServiceIndex) {
        let Some(key) = self.record(service).map(|record| record.key.clone()) else { return };
        let id = self.config.scope.carrier_id(&key);
        let text = format!(
            "Tags of {id} were removed again. Sluice restores them only before it changes or deletes the resource; exempt it from the tool that removes them"
        );
        let Some(record) = self.record_mut(service) else { return };
        record.adoption.trouble = Some((Reason::Conflict, text.clone()));
        if core::mem::replace(&mut record.adoption.told, true) {
            return;
        }
        let about = self.about(service);
        self.notify(about, true, Reason::Conflict, text);
    }

    /// Remembers which public IPs somebody has released, while that can be seen.
    ///
    /// What is known of the load balancer or NAT gateway may be old: if the tags of both were removed, none was
    /// released. So it is read once before a public IP counts as released.
    pub(crate) fn note_released(&mut self, service: ServiceIndex) {
        let is_known = |record: &&Service| record.compared.is_none() && !record.actual.carrier.is_unknown();
        let Some(record) = self.record(service).filter(is_known) else { return };
        let (before, released) = (record.actual.released, self.planner(record).released());
        let is_new = before.iter().zip(released).any(|(before, now)| now && !before);
        let Some(Service { actual, .. }) = self.record_mut(service) else { return };
        if is_new && !core::mem::replace(&mut actual.release_checked, true) {
            actual.carrier.knowledge = Knowledge::Unknown;
            return;
        }
        actual.released = released;
        actual.release_checked = false;
    }

    /// Says which public IPs stay: an operator removed their tag, or an unmanaged resource uses them.
    pub(crate) fn tell_of_released_ips(&mut self, service: ServiceIndex) {
        let Some(record) = self.record(service) else { return };
        let kept = record.actual.public_ips.iter().filter_map(|slot| slot.present());
        let kept = kept.filter(|ip| !self.config.scope.owns(&ip.meta.tags));
        let planner = self.planner(record);
        let texts: Vec<String> = kept
            .map(|ip| match planner.unmanaged_user(ip) {
                Some(user) => format!(
                    "Kept {}: the unmanaged resource {user} uses it. Its Sluice tags were removed",
                    ip.meta.id
                ),
                None => format!(
                    "Kept {}: it does not carry the tag {CLUSTER_TAG}. Delete it if it is unused",
                    ip.meta.id
                ),
            })
            .collect();
        for text in texts {
            let about = self.about(service);
            self.notify(about, false, Reason::Deleting, text);
        }
    }
}
