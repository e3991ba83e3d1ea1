//! Finalizers that other service controllers left behind, and what keeps them on.
//!
//! A Service that is being deleted or is no LoadBalancer any more and carries only such finalizers is released
//! when nothing in Azure is under its UID or tagged for it. What is ours is torn down first, as always. A
//! resource that is not ours is left alone: the finalizers stay, and people are told which resource it is.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use core::time::Duration;

use sluice_model::ServiceKey;
use sluice_model::azure::PublicIp;
use sluice_model::effect::Listable;
use sluice_model::names::{SERVICE_TAG, tagged_services};
use sluice_model::reason::Reason;

use crate::addresses::ServiceIndex;
use crate::engine::Engine;
use crate::explain::Moment;
use crate::hold::Hold;
use crate::resources::Slot;
use crate::service::Service;

/// How often a resource of others that is in the way is looked at again.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// A resource of others that keeps the inherited finalizers of a Service on.
pub(crate) struct Keeper {
    /// The listing that will show when it is gone.
    kind: Listable,
    /// Which it is and what to do, for people.
    text: String,
}

impl Engine {
    /// What keeps the inherited finalizers of a Service on that is not wanted, once nothing of ours is left of it.
    pub(crate) fn keeper(&self, record: &Service) -> Option<Keeper> {
        let object = record.object.as_ref().filter(|object| object.inherited && !object.finalizer)?;
        let planner = self.planner(record);
        let undecided = self.is_wanted(record.index)
            || !self.survey.is_complete()
            || record.operation.is_some()
            || record.actual.is_unclear()
            || planner.has_something_to_take_down();
        if undecided {
            return None;
        }
        let keeper = |kind, what: String| {
            let text = format!("Finalizers of another controller are kept: {what}");
            Some(Keeper { kind, text })
        };
        let elsewhere = planner.is_registered_elsewhere();
        let carrier = record.actual.carrier.present().map(|it| (Listable::LoadBalancers, &it.meta().id));
        let ip = record.actual.public_ips.iter().find_map(Slot::present);
        let ip = ip.map(|ip| (Listable::PublicIps, &ip.meta.id));
        if let Some((kind, id)) = carrier.or(ip) {
            let claimable = record.actual.registration.present().is_some() && elsewhere.is_none();
            let or_claim = if claimable { ", or claim it with `sluice adopt`" } else { "" };
            return keeper(
                kind,
                format!("{id} has the UID of this Service and is not managed by Sluice. Delete it{or_claim}"),
            );
        }
        if let Some(id) = elsewhere {
            return keeper(
                Listable::Registrations,
                format!(
                    "the registration of this Service in the gateway points to {id}, which is not managed by Sluice. Remove the registration"
                ),
            );
        }
        let id = self.survey.tagged.get(&object.name)?;
        keeper(
            Listable::PublicIps,
            format!("{id} is tagged {SERVICE_TAG} for this Service. Delete it, or remove the tag"),
        )
    }

    /// Says which resource keeps the inherited finalizers of a Service on, and looks at it again every minute.
    pub(crate) fn tell_of_keeper(&mut self, service: ServiceIndex) {
        let Some(Keeper { kind, text }) = self.record(service).and_then(|record| self.keeper(record)) else {
            return;
        };
        let (now, until) = (self.now, self.now + LOOK_AGAIN);
        let Some(record) = self.record_mut(service) else { return };
        let is_told =
            record.told.as_ref().is_some_and(|(reason, told)| *reason == Reason::Conflict && *told == text);
        if is_told && record.hold.is_some() {
            return;
        }
        record.hold = Some(Hold { until, parked: true, reason: Reason::Conflict, text: text.clone() });
        if is_told {
            // Its hold has ended, and nobody tells us when the resource is gone.
            self.survey.look_soon(kind, now);
            return;
        }
        record.told = Some((Reason::Conflict, text.clone()));
        record.timeline.push(now, Moment::Parked(Reason::Conflict));
        let about = self.about(service);
        self.notify(about, true, Reason::Conflict, text);
    }

    /// Takes down which Services the public IPs of others are tagged for.
    pub(crate) fn note_tagged(&mut self, public_ips: &[PublicIp]) {
        let scope = &self.config.scope;
        let mut tagged = BTreeMap::new();
        for ip in public_ips {
            for service in tagged_services(&ip.meta.tags).filter(|_| !scope.owns(&ip.meta.tags)) {
                tagged.entry(service).or_insert_with(|| ip.meta.id.clone());
            }
        }
        let before = core::mem::replace(&mut self.survey.tagged, tagged);
        for name in before.into_keys() {
            let freed = self.names.get(&name).filter(|_| !self.survey.tagged.contains_key(&name));
            let service = freed.and_then(|uid| self.by_key.get(&ServiceKey::Inbound(*uid)));
            if let Some(&service) = service {
                self.touch(service);
            }
        }
    }
}
