//! What we write into a Service: our finalizer and its status, as levels.
//!
//! At most one write per Service is in flight. A write that fails is repeated with a growing
//! wait; what the watch shows meanwhile is always the truth that the next write is made from.

use alloc::format;
use core::net::IpAddr;
use core::time::Duration;

use sluice_model::effect::{About, Cause, KubeOutcome};
use sluice_model::kube::{ObjectRef, ServiceObject};
use sluice_model::names::Scope;
use sluice_model::reason::Reason;
use sluice_model::seeded::Bug;
use sluice_model::{Action, EffectId, ServiceKey};

use crate::addresses::ServiceIndex;
use crate::conditions::same_conditions;
use crate::engine::{Engine, Errand, KubeWrite};
use crate::explain::Moment;
use crate::failure_row::clause;
use crate::service::Service;
use crate::state::State;

/// Failures in a row after which the status of a service that is gone no longer holds up its finalizer.
const STATUS_TRIES: u32 = 5;

impl Engine {
    /// Writes what differs, the finalizer first when it must go on, last when it must go off.
    pub(crate) fn tend_object(&mut self, service: ServiceIndex) {
        let Some(record) = self.record(service) else { return };
        let Some(object) = &record.object else { return };
        if record.kube.in_flight.is_some()
            || record.kube.retry_at.is_some_and(|at| at > self.now)
            || record.vanished.is_some()
        {
            return;
        }
        // What is being torn down is not served, even when it is wanted again: it ends first.
        let wanted = self.is_wanted(service) && !record.teardown_begun;
        let reference = ObjectRef { uid: object.uid, name: object.name.clone() };
        if wanted && !object.finalizer && self.may_act() {
            let write = KubeWrite::Finalizer(true);
            self.write(service, Action::AddFinalizer(reference), Cause::ServiceApplied, write);
            return;
        }
        let torn_down = !wanted && self.is_torn_down(service);
        let released = torn_down && self.keeper(record).is_none();
        let blocked = released && record.kube.failures >= STATUS_TRIES;
        let status = self.status_write(record, object, wanted).filter(|_| !blocked);
        if let Some(KubeWrite::Status { ingress, retract, conditions }) = status {
            let action =
                Action::WriteStatus { object: reference, ingress, retract, conditions: conditions.clone() };
            let write = KubeWrite::Status { ingress, retract, conditions };
            self.write(service, action, Cause::OperationEnded, write);
            return;
        }
        let early = self.seeded.has(Bug::FinalizerBeforeGone) && record.state == State::DeletionInProgress;
        if (object.finalizer || object.inherited) && (released || early) {
            let write = KubeWrite::Finalizer(false);
            self.write(service, Action::RemoveFinalizer(reference), Cause::OperationEnded, write);
        }
    }

    /// Whether nothing of ours is left on the object, so that the record may go.
    pub(crate) fn is_released(&self, service: ServiceIndex) -> bool {
        let Some(record) = self.record(service) else { return true };
        let Some(object) = &record.object else { return true };
        // A status that cannot be written does not keep the record for ever.
        let clean =
            record.kube.failures >= STATUS_TRIES || self.status_write(record, object, false).is_none();
        !object.finalizer && !object.inherited && record.kube.in_flight.is_none() && clean
    }

    fn write(&mut self, service: ServiceIndex, action: Action, cause: Cause, write: KubeWrite) {
        let is_status = matches!(write, KubeWrite::Status { .. });
        let id = self.send(action, cause, Errand::Kube(service, write));
        if let Some(record) = self.record_mut(service) {
            record.kube.has_sent_status |= is_status;
            record.kube.in_flight = Some(id);
        }
    }

    /// The status write that is needed, if any.
    fn status_write(&self, record: &Service, object: &ServiceObject, wanted: bool) -> Option<KubeWrite> {
        if record.kube.given_up_status {
            return None;
        }
        let complete = self.survey.is_complete();
        if !complete && self.trouble(record).is_none() {
            return None;
        }
        if !complete || self.is_braked(record.index) {
            // Nothing is decided about it, so what is published stays as it is, and nothing is published again.
            let ingress =
                record.published(object, &self.config.scope).filter(|ip| object.ingress.contains(ip));
            let conditions = self.conditions(record, object, wanted, ingress);
            let differs = !same_conditions(&object.conditions, &conditions);
            return differs.then_some(KubeWrite::Status { ingress, retract: None, conditions });
        }
        let address = record.public_address();
        // An IP that the status shows stays there while its public IP may exist. One that has left the status, for
        // example by a change of the type, is published like a new one.
        let gone = record.actual.public_ips[0].is_absent();
        let published = record.published(object, &self.config.scope);
        let kept = published
            .filter(|ip| !gone && (address.is_none() || address == Some(*ip)))
            .filter(|ip| object.ingress.contains(ip));
        let registered = record.actual.is_live() && !record.actual.ip_is_new;
        let live = registered || self.seeded.has(Bug::PublishBeforeRegistered);
        // Nothing new is published for a spec that is rejected.
        let rejected = self.is_rejected(record);
        let may_show = |ip: &IpAddr| kept == Some(*ip) || !rejected;
        let ingress = match (wanted, live) {
            (false, _) => None,
            (true, true) => address.filter(may_show).or(kept),
            (true, false) => kept,
        };
        // Nothing new is published while a listing contradicts what is known.
        let ingress = if record.actual.publication_is_in_doubt() && wanted { kept } else { ingress };
        // The address of a public IP of others is not ours to retract.
        let own = address.filter(|_| !wanted && self.keeper(record).is_none());
        let retract = published.or(own).filter(|ip| Some(*ip) != ingress);
        let conditions = self.conditions(record, object, wanted, ingress);
        let is_published =
            ingress.is_none_or(|ip| object.ingress.contains(&ip)) && object.published == ingress;
        // The annotation is removed with its IP.
        let is_left_over = !wanted && object.annotated.is_some_and(|ip| !object.ingress.contains(&ip));
        let is_retracted = retract.is_none_or(|ip| !object.ingress.contains(&ip));
        if is_published && is_retracted && !is_left_over && same_conditions(&object.conditions, &conditions) {
            return None;
        }
        Some(KubeWrite::Status { ingress, retract, conditions })
    }

    pub(crate) fn kube_finished(
        &mut self,
        service: ServiceIndex,
        id: EffectId,
        write: KubeWrite,
        outcome: KubeOutcome,
    ) {
        let now = self.now;
        let retry = self.config.retry.clone();
        let forget_status = self.seeded.has(Bug::ForgetStatus);
        // The number may have passed to another service while an answer took its time.
        let Some(record) = self.record_mut(service).filter(|it| it.kube.in_flight == Some(id)) else {
            return;
        };
        record.kube.in_flight = None;
        let mut refused = None;
        let mut published = None;
        match outcome {
            KubeOutcome::Done { version } => {
                record.kube.failures = 0;
                record.kube.refusal_told = false;
                record.kube.retry_at = None;
                // Once the watch has moved on, it knows better than an answer that took its time.
                if let Some(object) = record.object.as_mut().filter(|object| object.version <= version) {
                    published = Some(object.published);
                    apply_locally(object, &write);
                    object.version = version;
                }
            }
            // This incarnation is gone; the watch will say so, and until then nothing can be written.
            KubeOutcome::Gone => record.kube.retry_at = Some(now + retry.backoff_max),
            KubeOutcome::Conflict | KubeOutcome::Unavailable | KubeOutcome::Refused(_) => {
                record.kube.failures = record.kube.failures.saturating_add(1);
                let doublings = record.kube.failures.saturating_sub(1).min(8);
                let span = retry.backoff_min.saturating_mul(1 << doublings).min(retry.backoff_max);
                record.kube.retry_at = Some(now + span.max(Duration::from_millis(200)));
                if forget_status && matches!(write, KubeWrite::Status { .. }) {
                    record.kube.given_up_status = true;
                }
                if let KubeOutcome::Refused(why) = outcome
                    && !record.kube.refusal_told
                {
                    record.kube.refusal_told = true;
                    refused = record.object.as_ref().map(|object| {
                        (About::Service(ObjectRef { uid: object.uid, name: object.name.clone() }), why)
                    });
                }
            }
        }
        self.note_published(service, published, true);
        if let Some((about, why)) = refused {
            let why = clause(&why);
            let text = format!(
                "The API server rejected the patch: {why}. Sluice retries; grant the permission, or exempt its service account from the webhook or policy"
            );
            self.notify(about, true, Reason::KubernetesRejected, text);
        }
        self.touch(service);
    }

    /// Takes down that another IP is published than before, whether our write or the watch said so first.
    /// `before` is `None` when there was no object before; `by_us`: it may be our write that shows.
    pub(crate) fn note_published(
        &mut self,
        service: ServiceIndex,
        before: Option<Option<IpAddr>>,
        by_us: bool,
    ) {
        let now = self.now;
        let wanted = self.is_wanted(service);
        let Some(before) = before else { return };
        let Some(record) = self.record_mut(service) else { return };
        let after = record.object.as_ref().and_then(|object| object.published);
        if before == after {
            return;
        }
        record.timeline.push(now, Moment::Published(after));
        // We retract an IP that is wanted only when its public IP is gone. Others wipe a status just so, and
        // then it is published again in a moment.
        let (address, gone) = (record.public_address(), record.actual.public_ips[0].is_absent());
        let is_lost = |before| address.map_or(gone || by_us, |now| now != before);
        if let Some(before) = before.filter(|before| wanted && is_lost(*before)) {
            let text = match after {
                Some(after) => format!(
                    "Public IP changed from {before} to {after} because {before} was deleted in Azure. Update DNS records"
                ),
                None => format!(
                    "Public IP {before} was deleted in Azure. Sluice creates a new one; update DNS records when it is published"
                ),
            };
            let about = self.about(service);
            self.notify(about, true, Reason::Updating, text);
        }
    }

    pub(crate) fn about(&self, service: ServiceIndex) -> About {
        match self.record(service) {
            Some(Service { object: Some(object), .. }) => {
                About::Service(ObjectRef { uid: object.uid, name: object.name.clone() })
            }
            Some(record) => About::Key(record.key.clone()),
            None => About::Cluster,
        }
    }
}

/// What the watch will show once it has caught up with our own write.
fn apply_locally(object: &mut ServiceObject, write: &KubeWrite) {
    match write {
        KubeWrite::Finalizer(on) => {
            object.finalizer = *on;
            object.inherited &= *on;
        }
        KubeWrite::Status { ingress, retract, conditions } => {
            object.ingress.retain(|ip| Some(*ip) != *retract);
            if let Some(ip) = ingress
                && !object.ingress.contains(ip)
            {
                object.ingress.push(*ip);
            }
            object.published = *ingress;
            object.annotated = ingress.or(object.annotated.filter(|ip| object.ingress.contains(ip)));
            object.conditions.clone_from(conditions);
        }
    }
}

/// The IP that a Service or an egress should show, for views.
pub(crate) fn shown_ip(record: &Service, scope: &Scope) -> Option<IpAddr> {
    match &record.key {
        ServiceKey::Inbound(_) => record.object.as_ref().and_then(|object| record.published(object, scope)),
        ServiceKey::Outbound(_) => {
            // An unmanaged public IP of the same name is not the egress's own, unless an operator released it: then
            // it stays in use.
            let actual = &record.actual;
            let released = actual.released[0] || actual.release_checked;
            let ip = actual.public_ips[0].present()?;
            ip.address.filter(|_| released || scope.owns(&ip.meta.tags))
        }
    }
}
