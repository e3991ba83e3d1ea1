//! The engine's side of the location lane: what happens to whose addresses, and when a batch is sent.

use sluice_model::azure::Direction;
use sluice_model::effect::{About, Cause, Listable};
use sluice_model::kube::Kind;
use sluice_model::reason::Reason;
use sluice_model::seeded::Bug;
use sluice_model::{Action, Failure, FailureClass, ServiceKey, Time};

use crate::addresses::{AddressNotice, Mode, ServiceIndex};
use crate::engine::{Engine, Errand};
use crate::service::{Compared, Service};
use crate::state::{State, Trigger};

impl Engine {
    /// Ready services are kept in sync, unwanted ones drain, all others get nothing new.
    pub(crate) fn tend_addresses(&mut self, service: ServiceIndex) {
        let Some(record) = self.record(service) else { return };
        let mode = match record.state {
            _ if !self.may_act() => Mode::Frozen,
            _ if self.is_of_others(record) && !self.seeded.has(Bug::RecordIsManaged) => Mode::Unmanaged,
            State::DeletionPending | State::DeletionInProgress => {
                let certain = record.vanished.is_none() && !self.is_braked(service);
                if certain { Mode::Draining } else { Mode::Frozen }
            }
            // Perhaps it still is; a look will tell.
            _ if record.actual.carrier.is_unknown() && !self.addresses.is_ready(service) => Mode::Waiting,
            _ if record.actual.is_live() => Mode::Ready,
            _ => Mode::Waiting,
        };
        let registered = record.actual.registration.present().filter(|_| mode == Mode::Unmanaged);
        let outbound = registered.map_or(!record.key.is_inbound(), |it| it.direction == Direction::Outbound);
        let waiting_since = record.buffered_since;
        self.note_buffered(service, mode == Mode::Ready);
        self.addresses.set_outbound(service, outbound);
        self.addresses.set_mode_since(service, mode, waiting_since);
    }

    /// Whether the addresses under this name belong to others, or may: that is known when its registration has been
    /// read, and all resources of an orphan or of a name that belonged to others before.
    fn is_of_others(&self, record: &Service) -> bool {
        let suspicious = record.orphan || self.addresses.is_unmanaged(record.index);
        let unread = record.actual.registration.is_unknown() || suspicious && record.actual.is_unclear();
        unread || self.keeper(record).is_some() || self.planner(record).leads_elsewhere()
    }

    /// How many addresses a service should have. None while it is being deleted, or while it is not live and its spec
    /// is rejected.
    pub(crate) fn addresses_wanted(&self, record: &Service) -> u32 {
        let deleting = matches!(record.state, State::DeletionPending | State::DeletionInProgress);
        let rejected = matches!(record.compared, Some(Compared::Invalid(Reason::InvalidSpec, _)));
        if deleting || rejected && !record.actual.is_live() { 0 } else { self.addresses.wanted(record.index) }
    }

    /// Measures how long the addresses of a service waited for it.
    pub(crate) fn note_buffered(&mut self, service: ServiceIndex, ready: bool) {
        let now = self.now;
        let Some(record) = self.record(service) else { return };
        let wanted = u64::from(self.addresses_wanted(record));
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
            let key = notice.service().and_then(ServiceKey::from_identity);
            if let (Some(ServiceKey::Outbound(_)), AddressNotice::Quarantined { entries, .. }) =
                (&key, &notice)
            {
                let failures = &mut self.counters.pod_promotion_failures;
                *failures = failures.saturating_add(entries.count as u64);
            }
            let about = key.and_then(|key| self.by_key.get(&key)).map(|service| self.about(*service));
            self.notify(about.unwrap_or(About::Cluster), true, reason, text);
        }
        // The pods' names are not kept, so they are listed again to warn about them.
        if !self.pods_asked_for && self.addresses.has_untold_pods() && self.is_leading() {
            self.pods_asked_for = true;
            self.emit(Action::Relist(Kind::Pod), Cause::Notice);
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
        let batch = self.addresses.next_batch(self.now);
        // A batch may have put entries aside that wait for a listing. A listing in flight answers those that are due
        // now; only entries that are due later need another one.
        let listing = self.survey.looks[Listable::Locations as usize].in_flight;
        if let Some(due) = self.addresses.listing_due().filter(|due| listing.is_none() || *due > self.now) {
            self.survey.look_soon(Listable::Locations, due);
        }
        let Some(batch) = batch else {
            self.note_addresses_in_sync();
            return;
        };
        let promoted = self.addresses.totals().promoted;
        let cause = if promoted > self.promoted { Cause::BecameReady } else { Cause::AddressesChanged };
        self.promoted = promoted;
        self.send(Action::SyncLocations(batch), cause, Errand::Sync);
        self.sync = Some(self.now);
    }

    /// Nothing differs any more, so what sweeps had found is repaired.
    fn note_addresses_in_sync(&mut self) {
        let totals = self.addresses.totals();
        if self.address_drift > 0 && totals.dirty == 0 && totals.either == 0 && totals.quarantined == 0 {
            let repaired = core::mem::take(&mut self.address_drift);
            self.counters.drift_repaired = self.counters.drift_repaired.saturating_add(repaired);
        }
    }

    pub(crate) fn sync_finished(&mut self, failure: Option<Failure>, next_at: Time) {
        let now = self.now;
        if let Some(began) = self.sync.take() {
            self.counters.syncs.add(now.since(began), 1);
        }
        self.sync_not_before = next_at;
        let refused = failure.as_ref().is_some_and(|failure| failure.class == FailureClass::Rejected);
        if refused && self.addresses.sends_names_of_others() {
            // A name that is no longer registered may be the reason.
            self.survey.trust_next_of_gateway(now);
        }
        self.addresses.finish(now, failure.as_ref());
        self.counters.addresses_programmed = *self.addresses.delays();
        if failure.is_some_and(|failure| failure.class == FailureClass::NotFound) {
            self.survey.look_soon(Listable::Foundation, now);
            self.survey.look_soon(Listable::Registrations, now);
        }
    }
}
