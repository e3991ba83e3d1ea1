//! Moves services through their states: reads the levels of one service and fires what they imply.
//!
//! [`Engine::settle`] looks at the levels of one service (wanted? in sync? drained?) and fires the
//! triggers that they imply until none is left. It costs what one service costs.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use sluice_model::effect::Listable;
use sluice_model::plan::Intent;
use sluice_model::reason::Reason;
use sluice_model::seeded::Bug;
use sluice_model::{ServiceKey, Time};

use crate::addresses::{ServiceIndex, addresses_in_words};
use crate::compare::UNRESOLVED_TOLD_AFTER;
use crate::engine::Engine;
use crate::explain::Moment;
use crate::hold::Hold;
use crate::service::{Compared, Operation, Service};
use crate::state::{Cell, State, Trigger, cell};

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
        self.changes.look_at(service);
        self.note_released(service);
        self.note_pods(service);
        if !self.survey.braked && self.record(service).is_some_and(|record| record.discovered) {
            // It may have been made, or have lingered, since the list that it was missing from.
            self.look_at_the_brake();
        }
        self.note_wanted(service);
        self.ask_for_the_vanished(service);
        for _ in 0..TRIGGERS_MAX {
            let Some(trigger) = self.implied(service) else { break };
            self.fire(service, trigger);
            if self.record(service).is_none() {
                return;
            }
        }
        self.ask_for_services(service);
        self.compare(service);
        self.note_in_sync(service);
        self.tell_if_invalid(service);
        self.tell_if_unresolved(service);
        self.tell_of_keeper(service);
        self.tell_of_idle_annotations(service);
        self.tend_addresses(service);
        self.tend_object(service);
        self.report_if_stuck(service);
        self.queue(service);
        self.note_adoption(service);
        self.note_initial_sync(service);
        self.rearm(service);
    }

    /// Counts a change of the wanted level where it moves nothing; where it does, the levels imply it.
    pub(crate) fn note_wanted(&mut self, service: ServiceIndex) {
        let wanted = self.is_wanted(service);
        let Some(record) = self.record_mut(service) else { return };
        let before = record.was_wanted.replace(wanted);
        let state = record.state;
        let trigger = if wanted { Trigger::Desired } else { Trigger::NoLongerDesired };
        if before != Some(wanted) && matches!(cell(state, trigger), Cell::Stay(_)) {
            self.fire(service, trigger);
        }
    }

    /// The trigger that the levels imply, if they imply a move.
    pub(crate) fn implied(&mut self, service: ServiceIndex) -> Option<Trigger> {
        if !self.may_act() {
            return None;
        }
        let wanted = self.is_wanted(service);
        let record = self.record(service)?;
        let idle = record.operation.is_none();
        let state = record.state;
        // A rejected Service without clients is torn down like an unwanted one.
        let stays = wanted && !self.is_rejected_unserved(record);
        let goes = if wanted { Trigger::RejectedUnserved } else { Trigger::NoLongerDesired };
        match (state, stays) {
            (State::NotStarted, false) if idle => {
                if self.is_torn_down(service) && self.keeper(record).is_none() {
                    return (!wanted && self.is_released(service)).then_some(Trigger::FullyDeleted);
                }
                Some(goes)
            }
            (State::CreationInProgress | State::Created | State::UpdateInProgress, false) => Some(goes),
            (State::NotStarted | State::Created | State::UpdateInProgress, true) if idle => {
                let live = record.actual.is_live();
                match (self.compare(service), state) {
                    (Some(Compared::InSync), State::NotStarted | State::UpdateInProgress) => {
                        Some(Trigger::FoundInSync)
                    }
                    (Some(compared), _) if compared.is_rejection() => {
                        let moves = state == State::UpdateInProgress || state == State::NotStarted && live;
                        moves.then_some(Trigger::FoundRejected)
                    }
                    (Some(Compared::Different | Compared::Invalid(..)), State::Created) => {
                        Some(Trigger::FoundOutOfSync)
                    }
                    (Some(Compared::Different | Compared::Invalid(..)), State::NotStarted) if live => {
                        Some(Trigger::FoundOutOfSync)
                    }
                    _ => None,
                }
            }
            (State::DeletionPending, true) if !record.teardown_begun => Some(Trigger::Desired),
            (State::DeletionPending, _) if idle => {
                if self.is_torn_down(service) {
                    if wanted {
                        return Some(Trigger::DeletedButDesired);
                    }
                    return self.is_released(service).then_some(Trigger::FullyDeleted);
                }
                None
            }
            // An address turned up in the middle of the teardown; it drains first.
            (State::DeletionInProgress, _) if idle && self.is_mapped(record) => Some(Trigger::StillMapped),
            (State::DeletionInProgress, _) if idle && self.is_torn_down(service) => {
                if wanted && self.seeded.has(Bug::ReviveInTeardown) {
                    let record = self.record_mut(service)?;
                    record.state = State::Created;
                    record.compared = Some(Compared::InSync);
                    return None;
                }
                if wanted {
                    return Some(Trigger::DeletedButDesired);
                }
                self.is_released(service).then_some(Trigger::FullyDeleted)
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
                self.tell_of_released_ips(service);
                self.note_removed(service);
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
        match to {
            State::NotStarted => record.served = false,
            State::Created | State::UpdateInProgress => record.served = true,
            _ => {}
        }
        record.timeline.push(now, Moment::Moved { from, to, by: trigger });
        match trigger {
            Trigger::NoLongerDesired | Trigger::RejectedUnserved => {
                // A deletion ends any wait or park at once.
                record.hold = None;
                record.attempts = Default::default();
                record.unwanted_since = Some(now);
                record.compared = None;
                record.told = None;
            }
            Trigger::Desired | Trigger::DeletedButDesired => {
                record.hold = None;
                record.attempts = Default::default();
                record.unwanted_since = None;
                record.wanted_since = now;
                record.teardown_begun = false;
                record.reported_at = None;
                record.compared = None;
                record.orphan = false;
                let drifted = match trigger {
                    // It is made anew, and what sweeps had found is gone with the old.
                    Trigger::DeletedButDesired => core::mem::take(&mut record.drifted),
                    _ => 0,
                };
                self.counters.drift_repaired = self.counters.drift_repaired.saturating_add(drifted);
                self.release_from_brake(service);
            }
            Trigger::FoundInSync => {
                record.hold = None;
                record.attempts = Default::default();
                record.told = None;
            }
            Trigger::OperationSucceeded if from == State::CreationInProgress => {
                let took = now.since(record.wanted_since);
                self.counters.creations.add(took, 1);
            }
            _ => {}
        }
    }

    /// Counts what ends with a service: an orphan, and drift that needs no repair any more.
    fn note_removed(&mut self, service: ServiceIndex) {
        let Some(record) = self.record(service) else { return };
        let (orphan, drifted) = (u64::from(record.orphan), record.drifted);
        self.counters.orphans_removed = self.counters.orphans_removed.saturating_add(orphan);
        self.counters.drift_repaired = self.counters.drift_repaired.saturating_add(drifted);
    }

    pub(crate) fn where_it_came_from(&self, service: ServiceIndex) -> State {
        let Some(record) = self.record(service) else { return State::NotStarted };
        match record.operation.as_ref().map(Operation::intent) {
            Some(Intent::Provision) => State::CreationInProgress,
            Some(Intent::Update) => State::UpdateInProgress,
            _ if record.actual.is_live() => State::Created,
            _ => State::NotStarted,
        }
    }

    /// Refuses to go on with a service whose record contradicts itself, and says so.
    pub(crate) fn internal_error(&mut self, service: ServiceIndex, what: String) {
        self.counters.internal_errors = self.counters.internal_errors.saturating_add(1);
        self.refuse(format!("{service:?}"), what.clone());
        let until = self.now + self.config.retry.burst_park;
        if let Some(record) = self.record_mut(service) {
            record.hold =
                Some(Hold { until, parked: true, reason: Reason::InternalError, text: what.clone() });
        }
        let about = self.about(service);
        self.notify(
            about,
            true,
            Reason::InternalError,
            format!("Internal error: an invariant check failed: {what}. Sluice suspends this gateway service; report this bug"),
        );
    }

    /// An egress that loses its last pod may linger.
    pub(crate) fn note_pods(&mut self, service: ServiceIndex) {
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

    /// Whether its deletion waits until its addresses have drained; those of others, and of services whose deletion
    /// is held, stay as they are.
    pub(crate) fn waits_for_addresses(&self, record: &Service) -> bool {
        record.state == State::DeletionPending
            && !self.is_braked(record.index)
            && self.addresses.mapped(record.index) > 0
            && self.keeper(record).is_none()
    }

    /// A deletion that waits for long says what holds it, and looks whether that is still true.
    pub(crate) fn report_if_stuck(&mut self, service: ServiceIndex) {
        let (now, after) = (self.now, self.config.report_after);
        let Some(record) = self.record(service) else { return };
        let Some(since) = record.unwanted_since else { return };
        let due = record.reported_at.unwrap_or(since) + after;
        if now < due || !self.waits_for_addresses(record) {
            return;
        }
        let holding = self.addresses.holding(service, 3);
        let named: Vec<String> =
            holding.iter().map(|(location, address)| format!("{address} on node IP {location}")).collect();
        let text = format!(
            "Deletion is waiting for {} to be removed from the gateway: {}. Run `sluice status --trouble`",
            addresses_in_words(self.addresses.mapped(service) as usize),
            named.join(", ")
        );
        if let Some(record) = self.record_mut(service) {
            record.reported_at = Some(now);
        }
        // One listing speaks for all services that wait: it costs as much as the cluster is large.
        if !self.survey.has_looked(Listable::Locations, now, after) {
            self.survey.look_soon(Listable::Locations, now);
        }
        let about = self.about(service);
        self.notify(about, true, Reason::Draining, text);
    }

    /// Sets the timer to the next moment at which this service has something to do by itself.
    pub(crate) fn rearm(&mut self, service: ServiceIndex) {
        let now = self.now;
        let report_after = self.config.report_after;
        let Some(record) = self.record(service) else { return };
        let drains = self.waits_for_addresses(record);
        let trouble_at = self.trouble_at(record);
        let Some(record) = self.record_mut(service) else { return };
        let report = drains
            .then(|| record.reported_at.or(record.unwanted_since).map(|at| at + report_after))
            .flatten();
        let wake = [
            record.hold.as_ref().map(|hold| hold.until),
            record.kube.retry_at.filter(|at| *at > now),
            record.linger_until.filter(|at| *at > now),
            record.adoption.retry_at.filter(|at| *at > now),
            record.vanished.as_ref().filter(|it| it.asking.is_none()).map(|it| it.ask_at),
            record.unresolved_since.filter(|_| !record.unresolved_told).map(|at| at + UNRESOLVED_TOLD_AFTER),
            report,
            trouble_at,
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
}
