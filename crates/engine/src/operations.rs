//! Operations: who needs one, who gets a slot, and what the end of a plan changes.
//!
//! A plan is made at the moment its slot is granted, from what is wanted and known then, so a
//! queue of waiting services never holds anything stale.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use sluice_model::effect::{About, Cause, Listable};
use sluice_model::event::{PAUSE_PROBE_INTERVAL, ThrottledCalls, Wait};
use sluice_model::kube::Kind;
use sluice_model::plan::{Intent, PlanReport, Subject};
use sluice_model::reason::Reason;
use sluice_model::seeded::Bug;
use sluice_model::{Action, EffectId, Failure, FailureClass, Plan, Step, Time};

use crate::addresses::ServiceIndex;
use crate::dispatch::Turn;
use crate::engine::{AskedFor, Engine, Errand};
use crate::explain::{LastFailure, Moment};
use crate::failure_row::steady;
use crate::hold::{Hold, OUTAGE_SPREAD};
use crate::inherited::LOOK_AGAIN;
use crate::plan::NoPlan;
use crate::resources::Knowledge;
use crate::service::{Compared, Operation, Service};
use crate::state::{State, Trigger};

impl Engine {
    /// Whether it has something for an operation to do now.
    pub(crate) fn needs_operation(&self, service: ServiceIndex) -> Option<Intent> {
        let record = self.record(service)?;
        if record.operation.is_some() || record.hold.is_some() || !self.may_act() {
            return None;
        }
        if !self.foundation.is_ready() {
            return None;
        }
        match record.state {
            State::NotStarted | State::Created | State::UpdateInProgress => match record.compared.as_ref()? {
                Compared::Unclear => Some(Intent::Inspect),
                Compared::Different if !self.has_finalizer(record) => None,
                Compared::Different if record.state == State::NotStarted => Some(Intent::Provision),
                Compared::Different => Some(Intent::Update),
                Compared::InSync | Compared::Invalid(..) => None,
            },
            State::DeletionPending if record.actual.is_unclear() => Some(Intent::Inspect),
            State::DeletionPending if self.is_drained(record) => Some(Intent::Deprovision),
            State::DeletionInProgress if record.actual.is_unclear() => Some(Intent::Inspect),
            State::DeletionInProgress if !self.is_torn_down(service) => Some(Intent::Deprovision),
            _ => None,
        }
    }

    /// The gate: no address in Azure may refer to it, its absence is confirmed, and nothing holds it.
    pub(crate) fn is_drained(&self, record: &Service) -> bool {
        let drained = !self.is_mapped(record) || self.seeded.has(Bug::DeleteWithoutDrain);
        drained
            && record.vanished.is_none()
            && !self.awaits_services(record)
            && !self.is_braked(record.index)
            && !self.is_torn_down(record.index)
    }

    /// Whether a teardown waits for a list of Services that this leader has asked for. Two kinds do: that of a Service
    /// that exists, since the leader before may have published its IP after this process last saw the Service; and that
    /// of a registration that names no Service which could be asked for, since the first list may have been stale.
    fn awaits_services(&self, record: &Service) -> bool {
        let exists = record.object.as_ref().is_some_and(|object| object.selected && !object.deleting);
        let actual = &record.actual;
        let registered = actual.registration.present().is_some() && !actual.is_unclear();
        let missing = record.key.is_inbound() && record.object.is_none();
        let nameless = missing && registered && actual.owner_name().is_none();
        let found = record.operation.is_none() && !actual.was_written();
        let pending = record.state == State::DeletionPending;
        (exists || nameless) && found && pending && self.services_asked_for != AskedFor::Received
    }

    /// Lists the Services once if a teardown waits for that.
    pub(crate) fn ask_for_services(&mut self, service: ServiceIndex) {
        let waits = self.record(service).is_some_and(|record| self.awaits_services(record));
        if waits && self.services_asked_for == AskedFor::NotYet && self.may_act() {
            self.services_asked_for = AskedFor::Requested;
            self.emit(Action::Relist(Kind::Service), Cause::StartUp);
        }
    }

    pub(crate) fn has_finalizer(&self, record: &Service) -> bool {
        match &record.object {
            Some(object) => object.finalizer || self.seeded.has(Bug::SkipFinalizer),
            None => !record.key.is_inbound(),
        }
    }

    pub(crate) fn queue(&mut self, service: ServiceIndex) {
        if self.needs_operation(service).is_some() {
            if let Some(namespace) = self.record(service).map(Service::namespace) {
                self.dispatch.enqueue(&namespace, service);
            }
        } else {
            self.dispatch.dequeue(service);
        }
    }

    /// Starts and resumes plans while slots are free.
    pub(crate) fn hand_out_slots(&mut self) {
        while let Some(turn) = self.dispatch.next() {
            match turn {
                Turn::Resume(plan) => {
                    self.emit(Action::ResumePlan(plan), Cause::SlotGranted);
                }
                Turn::Start(service) => self.start(service),
            }
        }
    }

    pub(crate) fn start(&mut self, service: ServiceIndex) {
        if let Some(intent) = self.needs_operation(service) {
            self.start_as(service, intent);
        }
    }

    pub(crate) fn start_as(&mut self, service: ServiceIndex, intent: Intent) {
        let Some(record) = self.record(service) else { return };
        let planner = self.planner(record);
        let steps = match intent {
            Intent::Inspect => Ok(planner.look()),
            Intent::Adopt => Ok(planner.adoption()),
            Intent::Deprovision => planner.down(),
            Intent::Provision | Intent::Update => match self.target(record) {
                Ok(target) => planner.up(&target),
                Err((_, text)) => Err(NoPlan::Conflict(text)),
            },
        };
        let steps = match steps {
            Ok(steps) => steps,
            Err(NoPlan::Conflict(text)) if intent == Intent::Deprovision => {
                return self.keep_in_conflict(service, text);
            }
            Err(_) => return self.recompare(service),
        };
        if steps.is_empty() {
            self.recompare(service);
            return;
        }
        let cause = self.cause_of(record, intent);
        match intent {
            Intent::Provision => self.fire(service, Trigger::CreationStarted),
            Intent::Update => self.fire(service, Trigger::UpdateStarted),
            // Only now: until a slot is free, a service that is wanted again goes back as if nothing had been.
            Intent::Deprovision if record.state == State::DeletionPending => {
                self.fire(service, Trigger::Drained)
            }
            Intent::Deprovision | Intent::Inspect | Intent::Adopt => {}
        }
        self.egress_count.set(None);
        let Some(record) = self.record(service) else { return };
        let plan = Plan { subject: Subject::Service(record.key.clone()), intent, steps };
        let id = self.send(Action::RunPlan(plan.clone()), cause, Errand::Plan(service));
        self.counters.plans_started = self.counters.plans_started.saturating_add(1);
        self.dispatch.occupy(id);
        let now = self.now;
        if intent == Intent::Deprovision {
            self.note_teardown(service);
            self.tell_teardown(service, &plan.steps);
        }
        if let Some(record) = self.record_mut(service) {
            record.teardown_begun |= intent == Intent::Deprovision;
            record.last_attempt = Some(now);
            record.timeline.push(now, Moment::Started { id, intent, steps: plan.steps.len() });
            record.operation = Some(Operation { id, plan, started: now, resumed: now, paused_until: None });
        }
        // It has moved, and its conditions should say so.
        self.touch(service);
    }

    /// What a Service that is not wanted has in Azure is claimed by another cluster: it keeps our finalizer, says
    /// so, and is looked at again.
    fn keep_in_conflict(&mut self, service: ServiceIndex, text: String) {
        let until = self.now + LOOK_AGAIN;
        let Some(record) = self.record_mut(service) else { return };
        record.hold = Some(Hold { until, parked: true, reason: Reason::Conflict, text: text.clone() });
        self.tell(service, Reason::Conflict, text, false);
        self.touch(service);
    }

    /// Says that a teardown begins, once.
    fn tell_teardown(&mut self, service: ServiceIndex, steps: &[Step]) {
        if self.record(service).is_none_or(|record| record.teardown_begun) {
            return;
        }
        let carrier = steps.iter().find_map(|step| match step {
            Step::DeleteLoadBalancer(_) => Some("load balancer"),
            Step::DeleteNatGateway(_) => Some("NAT gateway"),
            _ => None,
        });
        let ips = match steps.iter().filter(|step| matches!(step, Step::DeletePublicIp(_))).count() {
            0 => None,
            1 => Some("public IP"),
            _ => Some("public IPs"),
        };
        let text = match (carrier, ips) {
            (Some(carrier), Some(ips)) => format!("Drained; deleting {carrier} and {ips}"),
            (Some(one), None) | (None, Some(one)) => format!("Drained; deleting {one}"),
            (None, None) if steps.iter().any(|step| matches!(step, Step::Unregister(_))) => {
                "Drained; removing the registration".into()
            }
            (None, None) => {
                "Drained; removing the tags of the public IP, which an unmanaged resource uses".into()
            }
        };
        let about = self.about(service);
        self.notify(about, false, Reason::Deleting, text);
    }

    pub(crate) fn cause_of(&self, record: &Service, intent: Intent) -> Cause {
        match intent {
            Intent::Inspect if record.actual.was_written() => Cause::OutcomeUnknown,
            Intent::Deprovision if record.attempts.total > 0 => Cause::RetryDue,
            Intent::Deprovision if record.discovered || record.orphan => Cause::Orphaned,
            Intent::Deprovision => Cause::LastAddressLeft,
            _ if record.attempts.total > 0 => Cause::RetryDue,
            _ if record.orphan => Cause::Orphaned,
            _ if record.drifted > 0 => Cause::DriftFound,
            _ if record.key.is_inbound() => Cause::ServiceApplied,
            _ if record.requested => Cause::Requested,
            _ => Cause::PodsCame,
        }
    }

    /// A plan waits for something, or does no longer; a pause that Azure asked for is shown to people.
    /// A plan that sleeps goes on when it says so, any other at the end of the wait.
    pub(crate) fn note_wait(&mut self, id: EffectId, wait: Option<Wait>, sleeps: bool) {
        let Some(Errand::Plan(service)) = self.in_flight.get(&id) else { return };
        let (service, now) = (*service, self.now);
        let wait = match wait {
            Some(wait @ (Wait::Throttled { .. } | Wait::Budget { .. })) => Some((now, wait)),
            Some(Wait::SharedCommit | Wait::SlowOperation) | None => None,
        };
        let Some(record) = self.record_mut(service) else { return };
        if record.wait == wait {
            return;
        }
        if let Some(operation) = &mut record.operation {
            let until = wait.and_then(|(_, wait)| wait.until());
            operation.resumed = if sleeps { Time::NEVER } else { until.unwrap_or(now) };
            if let Some((_, Wait::Throttled { until })) = wait {
                operation.paused_until = Some(until);
            }
        }
        record.wait = wait;
        self.touch(service);
    }

    /// A wrong `Retry-After` stops everything, and only a person can find out why Azure sent it.
    pub(crate) fn report_pause(&mut self, calls: ThrottledCalls, wait: Duration) {
        let minutes = wait.as_secs().div_ceil(60);
        let length = if minutes < 120 { format!("{minutes} min") } else { format!("{} h", minutes / 60) };
        let next = match wait > PAUSE_PROBE_INTERVAL {
            true => {
                "Sluice sends one call every 15 min to check. Look for other clients that use up the limits of the subscription"
            }
            false => "Sluice continues after that. If this happens often, see `sluice explain SGW0007`",
        };
        let text = format!("Azure throttled {} for {length}; {next}", calls.words());
        self.notify(About::Cluster, true, Reason::Throttled, text);
    }

    pub(crate) fn plan_finished(&mut self, service: ServiceIndex, id: EffectId, report: PlanReport) {
        self.dispatch.release(id);
        let (now, settle) = (self.now, self.config.settle);
        let confirmed = report.done.len();
        let drop_trigger = self.seeded.has(Bug::DropTrigger);
        let forget_spec = self.seeded.has(Bug::ForgetNewSpec);
        let Some(record) = self.record_mut(service) else { return };
        let Some(operation) = record.operation.take_if(|operation| operation.id == id) else { return };
        record.actual.absorb(now, operation.started, settle, &record.key, &operation.plan, &report);
        record.actual.doubt_unseen();
        record.found_begun &= record.actual.is_unclear();
        record.compared = None;
        record.wait = None;
        self.end_outages(operation.plan.steps.iter().take(confirmed));
        let Some(record) = self.record_mut(service) else { return };
        match report.failure {
            None => {
                record.hold = None;
                if operation.intent() != Intent::Inspect {
                    // A look that succeeds mends nothing, so it does not end a row of failures.
                    record.said_before = None;
                    record.succeeded_at = now;
                    record.attempts = Default::default();
                    record.last_failure = None;
                    // A spec that was rejected meanwhile still is, and people know.
                    if record.told.as_ref().is_some_and(|(reason, _)| *reason != Reason::InvalidSpec) {
                        record.told = None;
                    }
                }
                record.timeline.push(now, Moment::Finished { id });
                if forget_spec && record.state == State::CreationInProgress {
                    record.compared = Some(Compared::InSync);
                }
                self.counters.plans_succeeded = self.counters.plans_succeeded.saturating_add(1);
                if operation.intent() == Intent::Inspect && self.leave_to_listings(service) {
                    return;
                }
                // Neither a look nor tags bring it closer to what is wanted, so they move nothing.
                let looked = matches!(operation.intent(), Intent::Inspect | Intent::Adopt);
                if operation.intent() == Intent::Adopt {
                    self.adoption_ended(service, id, None);
                }
                if !(looked && self.state_is(service, State::UpdateInProgress)) {
                    self.fire(service, Trigger::OperationSucceeded);
                }
                if drop_trigger && operation.intent() != Intent::Inspect {
                    return;
                }
            }
            Some(failure) if operation.intent() == Intent::Adopt => {
                self.counters.plans_failed = self.counters.plans_failed.saturating_add(1);
                let step = operation.plan.steps.get(confirmed);
                self.adoption_ended(service, id, step.and_then(Step::read_first).map(|id| (id, &failure)));
                self.fire(service, Trigger::OperationFailed);
            }
            Some(failure) => self.plan_failed(service, &operation, confirmed, &failure),
        }
        self.touch(service);
    }

    /// Steps have succeeded: services that wait because the same kind of step failed in an outage are retried soon.
    fn end_outages<'a>(&mut self, steps: impl Iterator<Item = &'a Step>) {
        let now = self.now;
        let over: Vec<&str> = steps.flat_map(|step| self.outages.succeeded(now, step)).collect();
        if over.is_empty() {
            return;
        }
        for record in self.services.iter_mut().flatten() {
            if let (Some(hold), Some(failure)) = (&mut record.hold, &record.last_failure)
                && hold.reason == Reason::AzureUnavailable
                && over.contains(&failure.step)
            {
                let soon = now + self.jitter.within(OUTAGE_SPREAD);
                hold.until = hold.until.min(soon.max(failure.not_before));
                self.touched.insert(record.index);
            }
        }
    }

    pub(crate) fn plan_failed(
        &mut self,
        service: ServiceIndex,
        operation: &Operation,
        at: usize,
        failure: &Failure,
    ) {
        let (now, seeded) = (self.now, self.seeded);
        self.counters.plans_failed = self.counters.plans_failed.saturating_add(1);
        if let Some(count) = self.counters.failures.get_mut(failure.class as usize) {
            *count = count.saturating_add(1);
        }
        let step = operation.plan.steps.get(at);
        let cannot_tag = match step {
            Some(Step::Adopt { id, .. }) => Some(self.cannot_tag(id, failure)),
            _ => None,
        };
        let retry = self.config.retry.clone();
        let mut jitter = self.jitter.clone();
        let Some(record) = self.record_mut(service) else { return };
        let mut hold = record.attempts.hold(now, &retry, &mut jitter, failure, seeded);
        if let Some(text) = cannot_tag {
            hold.text = text;
            if failure.class == FailureClass::Rejected {
                hold.reason = Reason::Conflict;
            }
        }
        // Whatever went wrong, Azure is not asked again before it said so.
        let not_before = failure.retry_after.map_or(now, |wait| now + wait);
        hold.until = hold.until.max(not_before);
        let code = failure.code.clone();
        let reason = if failure.class == FailureClass::StillMapped { Reason::Draining } else { hold.reason };
        let before = record.last_failure.as_ref().map(|before| before.reason);
        record.last_failure = Some(LastFailure {
            at: now,
            step: step.map_or("", Step::word),
            code: code.clone(),
            reason: before.map_or(reason, |before| steady(before, reason)),
            text: hold.text.clone(),
            is_about_credential: failure.is_about_credential(),
            not_before,
        });
        record
            .timeline
            .push(now, Moment::Failed { id: operation.id, step: step.map_or("", Step::word), code });
        match (failure.class, step) {
            (FailureClass::InUse, Some(Step::DeletePublicIp(id))) => {
                // Look who uses it; if that is not ours, it stays. It may be what others have made and registered
                // for the Service since we listed.
                if record.actual.carrier.written.is_none() {
                    record.actual.carrier.knowledge = Knowledge::Unknown;
                    record.actual.registration.knowledge = Knowledge::Unknown;
                }
                let id = id.clone();
                let key = record.key.clone();
                record.actual.public_ip_mut(&key, &id).knowledge = Knowledge::Unknown;
            }
            (FailureClass::InUse, Some(Step::DeleteLoadBalancer(_) | Step::DeleteNatGateway(_))) => {
                // Somebody registered it behind our back, perhaps a leader before us: look, and clear it.
                record.actual.registration.knowledge = Knowledge::Unknown;
            }
            (FailureClass::Rejected, Some(step)) if !step.is_read() => record.actual.look_again(),
            _ => {}
        }
        let is_transient =
            hold.reason == Reason::AzureUnavailable && failure.class != FailureClass::StillMapped;
        let creating = record.state == State::CreationInProgress;
        let parked = hold.parked.then_some(hold.reason);
        if let Some(reason) = parked {
            record.timeline.push(now, Moment::Parked(reason));
        }
        let text = hold.text.clone();
        // An unwanted service has no attempt to wait for: what is known is torn down. Only a look is repeated.
        let unwanted = record.state == State::DeletionPending && operation.intent() != Intent::Inspect;
        record.hold = if unwanted { None } else { Some(hold) };
        if unwanted {
            record.attempts = Default::default();
        }
        if let (FailureClass::StillMapped, Some(hold)) = (failure.class, &mut record.hold) {
            hold.reason = Reason::Draining;
        }
        self.jitter = jitter;
        if let Some(step) = step.filter(|_| is_transient) {
            self.outages.failed(now, step);
        }
        if creating {
            self.counters.creations_failed = self.counters.creations_failed.saturating_add(1);
        }
        match failure.class {
            FailureClass::StillMapped if self.state_is(service, State::DeletionInProgress) => {
                self.fire(service, Trigger::StillMapped);
                self.survey.read_again(Listable::Locations, now);
            }
            FailureClass::Unknown => self.fire(service, Trigger::OutcomeUnknown),
            _ => self.fire(service, Trigger::OperationFailed),
        }
        // Perhaps it is the gateway that is missing.
        let needs_gateway = matches!(
            step,
            Some(
                Step::Register(_)
                    | Step::Clear(_)
                    | Step::Unregister(_)
                    | Step::ReadRegistration(_)
                    | Step::PutNatGateway { .. }
            )
        );
        if needs_gateway && matches!(failure.class, FailureClass::NotFound | FailureClass::Rejected) {
            self.survey.look_soon(Listable::Foundation, now);
        }
        if let Some(reason) = parked.filter(|_| !unwanted) {
            self.counters.parks = self.counters.parks.saturating_add(1);
            self.tell(service, reason, text, failure.is_about_credential());
        }
    }

    pub(crate) fn state_is(&self, service: ServiceIndex, state: State) -> bool {
        self.record(service).is_some_and(|record| record.state == state)
    }

    /// Tells people once per reason.
    pub(crate) fn tell(
        &mut self,
        service: ServiceIndex,
        reason: Reason,
        text: String,
        is_about_credential: bool,
    ) {
        let Some(record) = self.record_mut(service) else { return };
        if record.told.as_ref().is_some_and(|(told, _)| *told == reason) {
            return;
        }
        let note = reason.note(&text, is_about_credential);
        record.told = Some((reason, text));
        let about = self.about(service);
        self.notify(about, true, reason, note);
    }

    pub(crate) fn retry_due(&mut self, service: ServiceIndex) {
        let (now, wanted) = (self.now, self.is_wanted(service));
        let Some(record) = self.record_mut(service) else { return };
        if record.hold.as_ref().is_some_and(|hold| hold.until <= now) {
            let hold = record.hold.take();
            // What keeps inherited finalizers on is looked at by listings.
            let ours = record.object.as_ref().is_some_and(|object| object.finalizer);
            if (wanted || ours) && hold.is_some_and(|hold| hold.reason == Reason::Conflict) {
                record.actual.look_everywhere();
            }
            record.compared = None;
            if record.operation.is_none() {
                self.fire(service, Trigger::RetryDue);
            }
        }
    }
}
