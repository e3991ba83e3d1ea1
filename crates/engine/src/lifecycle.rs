//! Moves services through their states: settle, plan, hand out slots, take in how plans ended.
//!
//! [`Engine::settle`] looks at the levels of one service (wanted? in sync? drained?) and fires the
//! triggers that they imply until none is left. It costs what one service costs.

use alloc::format;
use alloc::string::String;

use sluice_model::effect::{About, Cause, Listable};
use sluice_model::kube::ServicePort;
use sluice_model::plan::{Intent, PlanReport, Subject};
use sluice_model::reason::Reason;
use sluice_model::seeded::Bug;
use sluice_model::{Action, EffectId, Failure, FailureClass, Plan, ServiceKey, Step, Time};

use crate::addresses::{Mode, ServiceIndex};
use crate::dispatch::Turn;
use crate::engine::{Engine, Errand};
use crate::explain::Moment;
use crate::hold::Hold;
use crate::plan::{NoPlan, Planner, Target};
use crate::resources::{Carrier, Knowledge};
use crate::service::{Compared, Operation, Service};
use crate::state::{Cell, State, Trigger, cell};
use crate::validate::validate;

/// Triggers that one settling can need at most; more would be a cycle in the table.
const TRIGGERS_MAX: usize = 8;

impl Engine {
    /// Whether anybody wants the service now.
    pub(crate) fn is_wanted(&self, service: ServiceIndex) -> bool {
        let Some(record) = self.record(service) else { return false };
        match &record.key {
            ServiceKey::Inbound(_) => {
                record.object.as_ref().is_some_and(|object| object.selected && !object.deleting)
            }
            ServiceKey::Outbound(_) => {
                record.requested
                    || self.addresses.pods(service) > 0
                    || record.linger_until.is_some_and(|until| self.now < until)
            }
        }
    }

    /// Brings one service to where its levels say it belongs.
    pub(crate) fn settle(&mut self, service: ServiceIndex) {
        self.note_pods(service);
        self.note_wanted(service);
        self.ask_for_the_vanished(service);
        for _ in 0..TRIGGERS_MAX {
            let Some(trigger) = self.implied(service) else { break };
            self.fire(service, trigger);
            if self.record(service).is_none() {
                return;
            }
        }
        self.compare(service);
        self.tell_if_invalid(service);
        self.tend_addresses(service);
        self.tend_object(service);
        self.report_if_stuck(service);
        self.queue(service);
        self.note_initial_sync(service);
        self.rearm(service);
    }

    /// Counts a change of the wanted level where it moves nothing; where it does, the levels imply it.
    fn note_wanted(&mut self, service: ServiceIndex) {
        let wanted = self.is_wanted(service);
        let Some(record) = self.record_mut(service) else { return };
        let before = record.was_wanted.replace(wanted);
        let state = record.state;
        let trigger = if wanted { Trigger::Wanted } else { Trigger::Unwanted };
        if before != Some(wanted) && matches!(cell(state, trigger), Cell::Stay(_)) {
            self.fire(service, trigger);
        }
    }

    /// The trigger that the levels imply, if they imply a move.
    fn implied(&mut self, service: ServiceIndex) -> Option<Trigger> {
        if !self.may_act() {
            return None;
        }
        let wanted = self.is_wanted(service);
        let record = self.record(service)?;
        let idle = record.operation.is_none();
        let state = record.state;
        match (state, wanted) {
            (State::NotStarted, false) if idle => {
                if self.is_torn_down(service) {
                    return self.is_released(service).then_some(Trigger::NothingLeft);
                }
                Some(Trigger::Unwanted)
            }
            (State::CreationInProgress | State::Created | State::UpdateInProgress, false) => {
                Some(Trigger::Unwanted)
            }
            (State::NotStarted | State::Created | State::UpdateInProgress, true) if idle => {
                let live = record.actual.is_live();
                match (self.compare(service), state) {
                    (Some(Compared::InSync), State::NotStarted | State::UpdateInProgress) => {
                        Some(Trigger::FoundInSync)
                    }
                    (Some(Compared::Different | Compared::Invalid(..)), State::Created) => {
                        Some(Trigger::FoundDifferent)
                    }
                    (Some(Compared::Different | Compared::Invalid(..)), State::NotStarted) if live => {
                        Some(Trigger::FoundDifferent)
                    }
                    _ => None,
                }
            }
            (State::DeletionPending, true) if !record.teardown_begun => Some(Trigger::Wanted),
            (State::DeletionPending, _) if idle => {
                if self.is_torn_down(service) {
                    if wanted {
                        return Some(Trigger::GoneButWanted);
                    }
                    return self.is_released(service).then_some(Trigger::NothingLeft);
                }
                None
            }
            (State::DeletionInProgress, _) if idle && self.is_torn_down(service) => {
                if wanted && self.seeded.has(Bug::ReviveInTeardown) {
                    let record = self.record_mut(service)?;
                    record.state = State::Created;
                    record.compared = Some(Compared::InSync);
                    return None;
                }
                if wanted {
                    return Some(Trigger::GoneButWanted);
                }
                self.is_released(service).then_some(Trigger::NothingLeft)
            }
            _ => None,
        }
    }

    /// Everything has been listed, so absence means something.
    pub(crate) fn may_act(&self) -> bool {
        self.is_leading() && (self.survey.is_complete() || self.seeded.has(Bug::ActBeforeListing))
    }

    /// Looks the trigger up in the table and does what stands there.
    pub(crate) fn fire(&mut self, service: ServiceIndex, trigger: Trigger) {
        let now = self.now;
        let Some(record) = self.record(service) else { return };
        let from = record.state;
        if let Some(count) =
            self.counters.cells.get_mut(from as usize).and_then(|row| row.get_mut(trigger as usize))
        {
            *count = count.saturating_add(1);
        }
        let to = match cell(from, trigger) {
            Cell::Stay(_) => return,
            Cell::Go(to, _) => to,
            Cell::Back(_) => self.where_it_came_from(service),
            Cell::Forget(_) => {
                if from == State::DeletionInProgress
                    && let Some(since) = self.record(service).and_then(|record| record.unwanted_since)
                {
                    self.counters.deletions.add(now.since(since), 1);
                }
                self.forget(service);
                return;
            }
            Cell::Never(why) => {
                self.internal_error(service, format!("{trigger} in {from}: {why}"));
                return;
            }
        };
        let Some(record) = self.record_mut(service) else { return };
        record.state = to;
        record.since = now;
        record.timeline.push(now, Moment::Moved { from, to, by: trigger });
        match trigger {
            Trigger::Unwanted => {
                // A deletion ends any wait or park at once.
                record.hold = None;
                record.attempts = Default::default();
                record.unwanted_since = Some(now);
                record.told = None;
            }
            Trigger::Wanted | Trigger::GoneButWanted => {
                record.hold = None;
                record.attempts = Default::default();
                record.unwanted_since = None;
                record.wanted_since = now;
                record.teardown_begun = false;
                record.discovered = false;
                record.reported_at = None;
                record.compared = None;
                self.survey.discovered.remove(&service);
            }
            Trigger::OperationSucceeded if from == State::CreationInProgress => {
                let took = now.since(record.wanted_since);
                self.counters.creations.add(took, 1);
            }
            _ => {}
        }
    }

    fn where_it_came_from(&self, service: ServiceIndex) -> State {
        let Some(record) = self.record(service) else { return State::NotStarted };
        match record.operation.as_ref().map(Operation::intent) {
            Some(Intent::Provision) => State::CreationInProgress,
            Some(Intent::Update) => State::UpdateInProgress,
            _ if record.actual.is_live() => State::Created,
            _ => State::NotStarted,
        }
    }

    /// Refuses to go on with a service whose record contradicts itself, and says so.
    fn internal_error(&mut self, service: ServiceIndex, what: String) {
        self.counters.internal_errors = self.counters.internal_errors.saturating_add(1);
        self.refuse(format!("{service:?}"), what.clone());
        let until = self.now + self.config.retry.burst_park;
        if let Some(record) = self.record_mut(service) {
            record.hold =
                Some(Hold { until, parked: true, reason: Reason::InternalError, text: what.clone() });
        }
        let about = self.about(service);
        self.notify(about, true, Reason::InternalError, format!("a bug in sluice: {what}; please report it"));
    }

    fn planner<'a>(&'a self, record: &'a Service) -> Planner<'a> {
        Planner {
            scope: &self.config.scope,
            key: &record.key,
            object: record.object.as_ref().map(|object| &object.name),
            actual: &record.actual,
            seeded: self.seeded,
        }
    }

    /// Nothing of ours is in Azure, proven, and nothing is on its way.
    pub(crate) fn is_torn_down(&self, service: ServiceIndex) -> bool {
        let Some(record) = self.record(service) else { return true };
        if record.operation.is_some() || self.addresses.mapped(service) > 0 || !self.survey.is_complete() {
            return false;
        }
        record.actual.is_nothing()
            || (!record.actual.is_unclear() && !self.planner(record).has_something_to_take_down())
    }

    /// Compares wanted and known, unless neither has changed since the last time.
    fn compare(&mut self, service: ServiceIndex) -> Option<Compared> {
        if !self.may_act() || !self.is_wanted(service) {
            return None;
        }
        let record = self.record(service)?;
        if record.compared.is_none() {
            let compared = self.compare_anew(record);
            let trigger = match (record.state, &compared) {
                _ if record.operation.is_some() => None,
                (State::Created, Compared::InSync) => Some(Trigger::FoundInSync),
                (State::UpdateInProgress, Compared::Different) => Some(Trigger::FoundDifferent),
                _ => None,
            };
            self.record_mut(service)?.compared = Some(compared);
            if let Some(trigger) = trigger {
                self.fire(service, trigger);
            }
        }
        self.record(service)?.compared.clone()
    }

    fn compare_anew(&self, record: &Service) -> Compared {
        let target = match self.target(record) {
            Ok(target) => target,
            Err((reason, text)) => return Compared::Invalid(reason, text),
        };
        match self.planner(record).up(&target) {
            Ok(steps) if steps.is_empty() => Compared::InSync,
            Ok(_) => Compared::Different,
            Err(NoPlan::Unclear) => Compared::Unclear,
            Err(NoPlan::Conflict(text)) => Compared::Invalid(Reason::Conflict, text),
        }
    }

    /// What the service should look like, or why that cannot be.
    fn target(&self, record: &Service) -> Result<Target, (Reason, String)> {
        match (&record.key, &record.object) {
            (ServiceKey::Inbound(_), Some(object)) => {
                let live = match record.actual.carrier.present() {
                    Some(Carrier::LoadBalancer(lb)) => lb.rules.as_slice(),
                    _ => &[],
                };
                let resolve =
                    |port: &ServicePort| self.addresses.port(record.index, &port.name, port.protocol);
                match validate(&object.spec, live, resolve) {
                    Ok(valid) => Ok(Target::LoadBalancer { family: valid.family, rules: valid.rules }),
                    Err(invalid) => Err((invalid.reason, invalid.text)),
                }
            }
            (ServiceKey::Inbound(_), None) => Err((Reason::InternalError, "it has no object".into())),
            (ServiceKey::Outbound(egress), _) => {
                let there = |other: &ServiceIndex| {
                    self.record(*other).is_some_and(|it| {
                        it.index != record.index && !(it.actual.is_nothing() && it.state == State::NotStarted)
                    })
                };
                let mine = record.actual.is_nothing() && record.state == State::NotStarted;
                if mine
                    && !egress.is_default()
                    && self.outbounds.iter().filter(|other| there(other)).count() >= self.config.egress_max
                {
                    let text = format!(
                        "there are {} egress gateways already; raise the limit",
                        self.config.egress_max
                    );
                    return Err((Reason::InvalidSpec, text));
                }
                Ok(record.nat_target(!self.ipv6_nodes.is_empty()))
            }
        }
    }

    fn tell_if_invalid(&mut self, service: ServiceIndex) {
        let now = self.now;
        let look_again = now + self.config.retry.quota_park.0;
        let Some(record) = self.record_mut(service) else { return };
        let Some(Compared::Invalid(reason, text)) = &record.compared else {
            let mended = matches!(
                record.told,
                Some((Reason::InvalidSpec | Reason::PortUnresolved | Reason::Conflict, _))
            );
            if mended && record.compared.is_some() {
                record.told = None;
            }
            return;
        };
        let news = (*reason, text.clone());
        if *reason == Reason::Conflict && record.hold.is_none() {
            // What stands in the way may go; nobody tells us, so look again.
            record.hold = Some(Hold { until: look_again, parked: true, reason: *reason, text: text.clone() });
        }
        if record.told.as_ref() == Some(&news) {
            return;
        }
        record.timeline.push(now, Moment::Invalid(news.0));
        record.told = Some(news.clone());
        let about = self.about(service);
        self.notify(about, true, news.0, news.1);
    }

    /// Ready services are kept in sync, unwanted ones drain, all others get nothing new.
    pub(crate) fn tend_addresses(&mut self, service: ServiceIndex) {
        let Some(record) = self.record(service) else { return };
        let mode = match record.state {
            _ if !self.may_act() => Mode::Frozen,
            // The pods of an egress are known exactly, so whatever else is undecided, what none of them has goes.
            State::DeletionPending | State::DeletionInProgress if !record.key.is_inbound() => Mode::Draining,
            State::DeletionPending | State::DeletionInProgress => {
                let certain = record.vanished.is_none() && !self.is_braked(service);
                if certain { Mode::Draining } else { Mode::Frozen }
            }
            // Somebody else's carrier gets nothing from us.
            _ if matches!(record.compared, Some(Compared::Invalid(Reason::Conflict, _))) => Mode::Waiting,
            _ if record.actual.is_live() => Mode::Ready,
            _ => Mode::Waiting,
        };
        self.note_buffered(service, mode == Mode::Ready);
        self.addresses.set_mode(service, mode);
    }

    /// Measures how long the addresses of a service waited for it.
    fn note_buffered(&mut self, service: ServiceIndex, ready: bool) {
        let now = self.now;
        let wanted = u64::from(self.addresses.wanted(service));
        let nowhere = u64::from(self.addresses.unplaceable(service));
        let Some(record) = self.record_mut(service) else { return };
        if !ready {
            record.buffered_since = (wanted > 0).then(|| record.buffered_since.unwrap_or(now));
            return;
        }
        let Some(since) = record.buffered_since.take() else { return };
        if record.key.is_inbound() {
            self.counters.endpoint_buffer.add(now.since(since), wanted);
        } else {
            self.counters.pod_buffer.add(now.since(since), wanted);
            self.counters.pod_promotions =
                self.counters.pod_promotions.saturating_add(wanted - nowhere.min(wanted));
            self.counters.pod_promotion_failures =
                self.counters.pod_promotion_failures.saturating_add(nowhere);
        }
    }

    /// Whether it has something for an operation to do now.
    fn needs_operation(&self, service: ServiceIndex) -> Option<Intent> {
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
    fn is_drained(&self, record: &Service) -> bool {
        let drained = self.addresses.mapped(record.index) == 0 || self.seeded.has(Bug::DeleteWithoutDrain);
        drained
            && record.vanished.is_none()
            && !self.is_braked(record.index)
            && !self.is_torn_down(record.index)
    }

    fn has_finalizer(&self, record: &Service) -> bool {
        match &record.object {
            Some(object) => object.finalizer || self.seeded.has(Bug::SkipFinalizer),
            None => !record.key.is_inbound(),
        }
    }

    fn queue(&mut self, service: ServiceIndex) {
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

    fn start(&mut self, service: ServiceIndex) {
        let Some(intent) = self.needs_operation(service) else { return };
        let Some(record) = self.record(service) else { return };
        let planner = self.planner(record);
        let steps = match intent {
            Intent::Inspect => Ok(planner.look()),
            Intent::Deprovision => planner.down(),
            Intent::Provision | Intent::Update => match self.target(record) {
                Ok(target) => planner.up(&target),
                Err((_, text)) => Err(NoPlan::Conflict(text)),
            },
        };
        let Ok(steps) = steps else {
            self.recompare(service);
            return;
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
            Intent::Deprovision | Intent::Inspect => {}
        }
        let Some(record) = self.record(service) else { return };
        let plan = Plan { subject: Subject::Service(record.key.clone()), intent, steps };
        let id = self.send(Action::RunPlan(plan.clone()), cause, Errand::Plan(service));
        self.counters.plans_started = self.counters.plans_started.saturating_add(1);
        self.dispatch.occupy(id);
        let now = self.now;
        if let Some(record) = self.record_mut(service) {
            record.teardown_begun |= intent == Intent::Deprovision;
            record.timeline.push(now, Moment::Started { id, intent, steps: plan.steps.len() });
            record.operation = Some(Operation { id, plan });
        }
    }

    fn cause_of(&self, record: &Service, intent: Intent) -> Cause {
        match intent {
            Intent::Inspect if record.actual.was_written() => Cause::OutcomeUnknown,
            Intent::Deprovision if record.attempts.total > 0 => Cause::RetryDue,
            Intent::Deprovision if record.discovered => Cause::Orphaned,
            Intent::Deprovision => Cause::LastAddressLeft,
            _ if record.attempts.total > 0 => Cause::RetryDue,
            _ if record.key.is_inbound() => Cause::ServiceApplied,
            _ if record.requested => Cause::Requested,
            _ => Cause::PodsCame,
        }
    }

    pub(crate) fn plan_finished(&mut self, service: ServiceIndex, id: EffectId, report: PlanReport) {
        self.dispatch.release(id);
        let (now, settle) = (self.now, self.config.settle);
        let drop_trigger = self.seeded.has(Bug::DropTrigger);
        let forget_spec = self.seeded.has(Bug::ForgetNewSpec);
        let Some(record) = self.record_mut(service) else { return };
        let Some(operation) = record.operation.take() else { return };
        record.actual.absorb(now, settle, &record.key, &operation.plan, &report);
        record.compared = None;
        match report.failure {
            None => {
                record.hold = None;
                if operation.intent() != Intent::Inspect {
                    // A look that succeeds mends nothing, so it does not end a row of failures.
                    record.attempts = Default::default();
                    record.told = None;
                }
                record.timeline.push(now, Moment::Finished { id });
                if forget_spec && record.state == State::CreationInProgress {
                    record.compared = Some(Compared::InSync);
                }
                self.counters.plans_succeeded = self.counters.plans_succeeded.saturating_add(1);
                self.fire(service, Trigger::OperationSucceeded);
                if drop_trigger && operation.intent() != Intent::Inspect {
                    return;
                }
            }
            Some(failure) => self.plan_failed(service, &operation, report.done.len(), &failure),
        }
        self.touch(service);
    }

    fn plan_failed(&mut self, service: ServiceIndex, operation: &Operation, at: usize, failure: &Failure) {
        let (now, seeded) = (self.now, self.seeded);
        self.counters.plans_failed = self.counters.plans_failed.saturating_add(1);
        let step = operation.plan.steps.get(at);
        let retry = self.config.retry.clone();
        let mut jitter = self.jitter.clone();
        let Some(record) = self.record_mut(service) else { return };
        let hold = record.attempts.hold(now, &retry, &mut jitter, failure, seeded);
        let code = failure.code.clone();
        record
            .timeline
            .push(now, Moment::Failed { id: operation.id, step: step.map_or("", Step::word), code });
        match (failure.class, step) {
            (FailureClass::InUse, Some(Step::DeletePublicIp(id))) => {
                // Look who uses it; if that is not ours, it stays.
                let id = id.clone();
                let key = record.key.clone();
                record.actual.public_ip_mut(&key, &id).knowledge = Knowledge::Unknown;
            }
            (FailureClass::Refused, Some(step)) if !step.is_read() => record.actual.look_again(),
            _ => {}
        }
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
        if matches!(failure.class, FailureClass::NotFound)
            && matches!(
                step,
                Some(Step::Register(_) | Step::Clear(_) | Step::Unregister(_) | Step::ReadRegistration(_))
            )
        {
            self.survey.look_soon(Listable::Foundation, now);
        }
        if let Some(reason) = parked.filter(|_| !unwanted) {
            self.counters.parks = self.counters.parks.saturating_add(1);
            self.tell(service, reason, text);
        }
    }

    fn state_is(&self, service: ServiceIndex, state: State) -> bool {
        self.record(service).is_some_and(|record| record.state == state)
    }

    /// Tells people once per reason.
    fn tell(&mut self, service: ServiceIndex, reason: Reason, text: String) {
        let Some(record) = self.record_mut(service) else { return };
        if record.told.as_ref().is_some_and(|(told, _)| *told == reason) {
            return;
        }
        record.told = Some((reason, text.clone()));
        let about = self.about(service);
        self.notify(about, true, reason, text);
    }

    pub(crate) fn retry_due(&mut self, service: ServiceIndex) {
        let now = self.now;
        let Some(record) = self.record_mut(service) else { return };
        if record.hold.as_ref().is_some_and(|hold| hold.until <= now) {
            let hold = record.hold.take();
            if hold.is_some_and(|hold| hold.reason == Reason::Conflict) {
                record.actual.look_again();
            }
            record.compared = None;
            if record.operation.is_none() {
                self.fire(service, Trigger::RetryDue);
            }
        }
    }

    /// An egress that loses its last pod may linger.
    fn note_pods(&mut self, service: ServiceIndex) {
        let pods = self.addresses.pods(service);
        let until = self.now + self.config.linger;
        let lingers = !self.config.linger.is_zero();
        let Some(record) = self.record_mut(service) else { return };
        if record.key.is_inbound() {
            return;
        }
        if pods > 0 {
            record.linger_until = None;
        } else if record.had_pods && lingers {
            record.linger_until = Some(until);
        }
        record.had_pods = pods > 0;
    }

    /// A deletion that waits for long says what holds it, and looks whether that is still true.
    fn report_if_stuck(&mut self, service: ServiceIndex) {
        let (now, after) = (self.now, self.config.report_after);
        let Some(record) = self.record(service) else { return };
        let Some(since) = record.unwanted_since else { return };
        let due = record.reported_at.unwrap_or(since) + after;
        if record.state != State::DeletionPending || now < due || self.addresses.mapped(service) == 0 {
            return;
        }
        let holding = self.addresses.holding(service, 3);
        let mut text = format!("its deletion waits for {} addresses", self.addresses.mapped(service));
        for (location, address) in holding {
            text.push_str(&format!(", {address} at {location}"));
        }
        if let Some(record) = self.record_mut(service) {
            record.reported_at = Some(now);
        }
        self.survey.look_soon(Listable::Locations, now);
        let about = self.about(service);
        self.notify(about, true, Reason::Draining, text);
    }

    /// Sets the timer to the next moment at which this service has something to do by itself.
    fn rearm(&mut self, service: ServiceIndex) {
        let now = self.now;
        let report_after = self.config.report_after;
        let mapped = self.addresses.mapped(service);
        let Some(record) = self.record_mut(service) else { return };
        let report = (record.state == State::DeletionPending && mapped > 0)
            .then(|| record.reported_at.or(record.unwanted_since).map(|at| at + report_after))
            .flatten();
        let wake = [
            record.hold.as_ref().map(|hold| hold.until),
            record.kube.retry_at.filter(|at| *at > now),
            record.linger_until.filter(|at| *at > now),
            record.vanished.as_ref().filter(|it| it.asking.is_none()).map(|it| it.ask_at),
            report,
        ]
        .into_iter()
        .flatten()
        .filter(|at| *at != Time::NEVER)
        .min()
        .map(|at| at.max(now));
        let before = core::mem::replace(&mut record.wake, wake);
        if before == wake {
            return;
        }
        if let Some(at) = before {
            self.timers.remove(&(at, service));
        }
        if let Some(at) = wake {
            self.timers.insert((at, service));
        }
    }

    /// Slices, pods and nodes have changed what some services want or have.
    pub(crate) fn take_address_news(&mut self) {
        for service in self.addresses.take_touched() {
            self.fire(service, Trigger::AddressesChanged);
            if let Some(record) = self.record_mut(service)
                && record.has_named_ports()
            {
                record.compared = None;
            }
            self.touch(service);
        }
        for notice in self.addresses.take_notices() {
            let (reason, text) = notice.words();
            self.notify(About::Cluster, true, reason, text);
        }
    }

    /// Whether the location lane has nothing but time to wait for.
    pub(crate) fn may_sync(&self) -> bool {
        self.sync.is_none() && self.may_act() && self.foundation.is_ready()
    }

    /// Sends what differs, one request at a time.
    pub(crate) fn sync_locations(&mut self) {
        if !self.may_sync() || self.now < self.sync_not_before {
            return;
        }
        if self.addresses.needs_listing() {
            self.survey.look_soon(Listable::Locations, self.now);
        }
        let Some(batch) = self.addresses.next_batch(self.now) else { return };
        let promoted = self.addresses.totals().promoted;
        let cause = if promoted > self.promoted { Cause::BecameReady } else { Cause::AddressesChanged };
        self.promoted = promoted;
        self.send(Action::SyncLocations(batch), cause, Errand::Sync);
        self.sync = Some(self.now);
    }

    pub(crate) fn sync_finished(&mut self, failure: Option<Failure>, next_at: Time) {
        let now = self.now;
        if let Some(began) = self.sync.take() {
            self.counters.syncs.add(now.since(began), 1);
        }
        self.sync_not_before = next_at;
        self.addresses.finish(now, failure.as_ref());
        if failure.is_some_and(|failure| failure.class == FailureClass::NotFound) {
            self.survey.look_soon(Listable::Foundation, now);
            self.survey.look_soon(Listable::Registrations, now);
        }
    }
}
