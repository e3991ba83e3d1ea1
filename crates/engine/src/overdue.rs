//! Trouble by time alone: the desired state has not been reached for long, whether or not something failed.

use core::time::Duration;

use sluice_model::Time;
use sluice_model::kube::{Concern, Condition};
use sluice_model::reason::Reason;

use crate::engine::Engine;
use crate::failure_row::steady;
use crate::service::Service;
use crate::state::State;
use crate::trouble::{Cause, THROTTLED_SHOWN, Trouble, shown};

/// Creations, updates and deletions that take so long are trouble; ordinary ones take less than a minute.
const UNMET_SHOWN: Duration = Duration::from_secs(5 * 60);

impl Engine {
    /// Since when the service has differed from the desired state without a success. A deletion that an unmanaged
    /// resource holds does not count.
    fn unmet_since(&self, record: &Service) -> Option<Time> {
        match record.state {
            State::DeletionPending | State::DeletionInProgress => {
                record.unwanted_since.filter(|_| self.keeper(record).is_none())
            }
            // What is desired may have changed during an operation that succeeded.
            _ => record.different_since.map(|since| since.max(record.succeeded_at)),
        }
    }

    /// What is other than desired for long, and why as far as that is known.
    pub(crate) fn overdue<'a>(&'a self, record: &'a Service, concern: Concern) -> Option<Trouble<'a>> {
        let since = self.unmet_since(record)?;
        let of = |reason, cause| Some(Trouble { reason, concern, cause });
        if self.waits_for_addresses(record) {
            let said_so =
                shown(record).is_some_and(|it| (it.reason, it.concern) == (Reason::Draining, concern));
            let is_long = self.now >= since + self.config.report_after || said_so;
            return if is_long { of(Reason::Draining, Cause::LongDrain) } else { None };
        }
        let before = record.said_before.as_ref().filter(|it| it.concern == concern).map(|it| it.reason);
        if self.now < since + UNMET_SHOWN && before.is_none() {
            return None;
        }
        if let Some(failure) = record.last_failure.as_ref().filter(|failure| failure.at >= since) {
            let reason = before.map_or(failure.reason, |before| steady(before, failure.reason));
            return of(reason, Cause::Failed(&failure.text));
        }
        if let Some(before) = before {
            return of(before, Cause::SaidOfOperations);
        }
        let recovers = self.recovered_at(record).is_some_and(|at| self.now < at);
        if recovers || record.throttled(self.now).is_some() {
            return of(Reason::Throttled, Cause::Pause);
        }
        if self.unended_at(record).is_some_and(|at| self.now >= at) {
            return of(Reason::AzureUnavailable, Cause::Unended);
        }
        // The condition says so already, and stays as it is.
        let wanted = self.is_wanted(record.index) && !record.teardown_begun;
        let reason = self.reason_of_work(record, wanted);
        Some(Trouble { reason, concern: Concern::Resources, cause: Cause::Waits })
    }

    /// The moments at which that begins, at which pauses are over, and at which it becomes Azure's.
    pub(crate) fn overdue_at(&self, record: &Service) -> [Option<Time>; 3] {
        let unmet = self.unmet_since(record).map(|since| since + UNMET_SHOWN);
        [unmet, self.recovered_at(record), self.unended_at(record)]
    }

    /// When the operation in flight has gone on long enough after a pause that no other is to be expected.
    fn recovered_at(&self, record: &Service) -> Option<Time> {
        record.operation.as_ref()?.paused_until.map(|until| until + THROTTLED_SHOWN)
    }

    /// When the operation in flight has been in Azure for long.
    fn unended_at(&self, record: &Service) -> Option<Time> {
        let resumed = record.operation.as_ref().map(|operation| operation.resumed);
        resumed.filter(|at| *at != Time::NEVER).map(|at| at + UNMET_SHOWN)
    }

    /// What it waits for on our side, as far as that is known.
    pub(crate) fn obstacle(&self, record: &Service) -> Option<&'static str> {
        let writes = record.kube.in_flight.is_some() || record.kube.failures > 0;
        Some(match record.waits(self.now) {
            Some(_) => "waiting for the call budget",
            None if record.operation.is_some() => "the operation is in progress",
            None if !self.foundation.is_ready() => "the gateway is not ready",
            None if self.dispatch.is_queued(record.index) => "waiting for a free slot (sluice.concurrency)",
            None if record.vanished.is_some() => {
                "the API server has not confirmed the deletion of the Service"
            }
            None if record.hold.is_some() => "waiting for the next retry",
            None if writes => "a write to the Service is not done",
            None => return None,
        })
    }
}

impl Service {
    /// Remembers what a leader before this one has written about operations that fail or do not end, and about ports.
    pub(crate) fn note_said_before(&mut self) {
        let is_of_operations = |it: &&Condition| {
            it.concern != Concern::Addresses
                && matches!(
                    it.reason,
                    Reason::Throttled
                        | Reason::QuotaExceeded
                        | Reason::Forbidden
                        | Reason::Rejected
                        | Reason::AzureUnavailable
                )
        };
        if !self.kube.has_sent_status {
            self.said_before = shown(self).filter(is_of_operations).cloned();
            self.unresolved_told |= shown(self).is_some_and(|it| it.reason == Reason::PortUnresolved);
        }
    }
}

/// What is being done with it.
pub(crate) const fn kind_of_work(record: &Service) -> &'static str {
    match record.state {
        State::NotStarted | State::CreationInProgress => "creation",
        State::Created | State::UpdateInProgress => "update",
        State::DeletionPending | State::DeletionInProgress => "deletion",
    }
}
