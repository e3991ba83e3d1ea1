//! Compares what is wanted of a service with what is known of it.
//!
//! The result is kept until either side changes, so that settling a service costs nothing when
//! only its addresses moved.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use sluice_model::ServiceKey;
use sluice_model::kube::{FamilyPolicy, ServiceObject, ServicePort, ServiceSpec};
use sluice_model::reason::Reason;
use sluice_model::seeded::Bug;

use crate::addresses::ServiceIndex;
use crate::engine::{Engine, Errand, KubeWrite};
use crate::explain::Moment;
use crate::hold::Hold;
use crate::inherited::LOOK_AGAIN;
use crate::plan::{NoPlan, Planner, Target};
use crate::resources::Carrier;
use crate::service::{Compared, Service};
use crate::state::{State, Trigger};
use crate::validate::{Invalid, Valid, is_rejected, validate};

/// A named port that is unresolved for longer is told to people.
pub(crate) const UNRESOLVED_TOLD_AFTER: Duration = Duration::from_secs(60);

impl Engine {
    pub(crate) fn planner<'a>(&'a self, record: &'a Service) -> Planner<'a> {
        Planner {
            scope: &self.config.scope,
            key: &record.key,
            object: record.object.as_ref().map(|object| &object.name),
            finalizer: record.object.as_ref().is_some_and(|object| object.finalizer),
            actual: &record.actual,
            seeded: self.seeded,
        }
    }

    /// Nothing of ours is in Azure, proven, and nothing is on its way.
    pub(crate) fn is_torn_down(&self, service: ServiceIndex) -> bool {
        let Some(record) = self.record(service) else { return true };
        if record.operation.is_some() || self.is_mapped(record) || !self.survey.is_complete() {
            return false;
        }
        record.actual.is_nothing()
            || (!record.actual.is_unclear() && !self.planner(record).has_something_to_take_down())
    }

    /// Whether an address in Azure may lead to a managed resource of this service. Addresses under its name can
    /// also lead to an unmanaged load balancer or NAT gateway.
    pub(crate) fn is_mapped(&self, record: &Service) -> bool {
        self.addresses.mapped(record.index) > 0 && !self.planner(record).leads_elsewhere()
    }

    /// Compares wanted and known, unless neither has changed since the last time.
    pub(crate) fn compare(&mut self, service: ServiceIndex) -> Option<Compared> {
        if !self.may_act() || !self.is_wanted(service) {
            return None;
        }
        let record = self.record(service)?;
        let torn_down = matches!(record.state, State::DeletionPending | State::DeletionInProgress);
        if torn_down && !self.is_rejected_unserved(record) {
            return None;
        }
        if record.compared.is_none() {
            let compared = self.compare_anew(record);
            let unresolved = match (&compared, &record.object) {
                (Compared::Invalid(..), _) | (_, None) => None,
                (_, Some(object)) if record.has_named_ports() => {
                    self.checked(record, object).ok().and_then(|valid| valid.unresolved)
                }
                _ => None,
            };
            let trigger = match (record.state, &compared) {
                _ if record.operation.is_some() => None,
                (State::Created, Compared::InSync) => Some(Trigger::FoundInSync),
                (State::Created, compared) if compared.is_rejection() => Some(Trigger::FoundRejected),
                (State::UpdateInProgress, Compared::Different) => Some(Trigger::FoundOutOfSync),
                _ => None,
            };
            let record = self.record_mut(service)?;
            record.compared = Some(compared);
            record.unresolved = unresolved;
            if let Some(trigger) = trigger {
                self.fire(service, trigger);
            }
        }
        self.record(service)?.compared.clone()
    }

    pub(crate) fn compare_anew(&self, record: &Service) -> Compared {
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

    /// What a Service asks for, with its named ports looked up.
    fn checked(&self, record: &Service, object: &ServiceObject) -> Result<Valid, Invalid> {
        let live = match record.actual.carrier.present() {
            Some(Carrier::LoadBalancer(lb)) => lb.rules.as_slice(),
            _ => &[],
        };
        let resolve = |port: &ServicePort| self.addresses.port(record.index, &port.name, port.protocol);
        if self.seeded.has(Bug::ServeRefused) {
            let spec =
                ServiceSpec { source_ranges: false, rejected_annotations: Vec::new(), ..object.spec.clone() };
            return validate(&spec, live, resolve);
        }
        validate(&object.spec, live, resolve)
    }

    /// Whether the Service asks for what is not served, whatever its endpoints say: then no IP is published
    /// that is not published already.
    pub(crate) fn is_rejected(&self, record: &Service) -> bool {
        let rejected = record.object.as_ref().is_some_and(|object| is_rejected(&object.spec));
        rejected && !self.seeded.has(Bug::PublishRefusedCreation)
    }

    /// Whether the Service is rejected and no client can use it: then its Azure resources are deleted. A Service
    /// that is live with addresses is kept, since clients may use it. Without addresses, or without a registration, and
    /// without a published IP it counts as the rest of a creation that was interrupted, because a restart could
    /// not tell the two apart.
    pub(crate) fn is_rejected_unserved(&self, record: &Service) -> bool {
        let Some(object) = record.object.as_ref().filter(|it| it.selected && !it.deleting) else {
            return false;
        };
        // Another controller may have published the IP.
        let shown = record.public_address().is_some_and(|ip| object.ingress.contains(&ip));
        let publishing = record.kube.in_flight.and_then(|id| self.in_flight.get(&id)).is_some_and(|errand| {
            matches!(errand, Errand::Kube(_, KubeWrite::Status { ingress: Some(_), .. }))
        });
        let unpublished = record.published(object, &self.config.scope).is_none() && !shown && !publishing;
        let registration = &record.actual.registration;
        let live = record.actual.is_live() && self.addresses.mapped(record.index) > 0;
        let served = match record.served {
            true => live || !(registration.is_absent() || registration.present().is_some()),
            false => live && registration.written.is_none(),
        };
        unpublished && !served && self.is_rejected(record)
    }

    /// What the service should look like, or why that cannot be.
    pub(crate) fn target(&self, record: &Service) -> Result<Target, (Reason, String)> {
        match (&record.key, &record.object) {
            (ServiceKey::Inbound(_), Some(object)) => match self.checked(record, object) {
                Ok(valid) => Ok(Target::LoadBalancer { family: valid.family, rules: valid.rules }),
                Err(invalid) => Err((invalid.reason, invalid.text)),
            },
            (ServiceKey::Inbound(_), None) => {
                Err((Reason::InternalError, "The Service object is missing from its record".into()))
            }
            (ServiceKey::Outbound(egress), _) => {
                let mine = record.actual.is_nothing() && record.state == State::NotStarted;
                if mine && !egress.is_default() && self.egresses_there() >= self.config.egress_max {
                    let text = format!(
                        "Egress limit reached (sluice.egress.max={}). Raise it or remove an egress",
                        self.config.egress_max
                    );
                    return Err((Reason::InvalidSpec, text));
                }
                Ok(record.nat_target(!self.ipv6_nodes.is_empty(), &self.config.scope))
            }
        }
    }

    /// Measures how long a service was other than wanted, and counts the drift that is repaired.
    pub(crate) fn note_in_sync(&mut self, service: ServiceIndex) {
        let (now, wanted) = (self.now, self.is_wanted(service));
        let Some(record) = self.record_mut(service) else { return };
        match &record.compared {
            Some(Compared::InSync) if wanted && record.state == State::Created => {
                let drifted = core::mem::take(&mut record.drifted);
                let since = record.different_since.take();
                record.said_before = None;
                self.counters.drift_repaired = self.counters.drift_repaired.saturating_add(drifted);
                if let Some(since) = since {
                    self.counters.services_programmed.add(now.since(since), 1);
                    self.tell_ready(service, drifted > 0);
                }
            }
            // A look at what seems to be released is no difference.
            Some(Compared::Unclear) if record.actual.release_checked => {}
            Some(Compared::Different | Compared::Unclear) if wanted => {
                record.different_since.get_or_insert(now);
            }
            // It cannot be, or need not be.
            Some(Compared::Invalid(..)) => record.different_since = None,
            _ if !wanted => record.different_since = None,
            _ => {}
        }
    }

    /// Says that a service is as wanted, after it was not.
    fn tell_ready(&mut self, service: ServiceIndex, repaired: bool) {
        let Some(record) = self.record(service) else { return };
        let what = if record.key.is_inbound() { "load balancer" } else { "NAT gateway" };
        let before = record.object.as_ref().is_some_and(|object| object.published.is_some());
        let done = match (repaired, before, record.key.is_inbound()) {
            (true, ..) => format!("Restored {what} after an external change"),
            (false, true, _) => format!("Updated {what}"),
            // It may be new, or an egress or an unpublished Service that was updated.
            (false, false, true) => "Load balancer is ready".into(),
            (false, false, false) => "NAT gateway is ready".into(),
        };
        let address = record.public_address().map(|ip| format!("; public IP {ip}")).unwrap_or_default();
        let text = format!("{done}{address}");
        let about = self.about(service);
        self.notify(about, false, Reason::Provisioned, text);
    }

    /// Says once which annotations have no effect, and that a second IP family is not served, so that nobody
    /// relies on them.
    pub(crate) fn tell_of_idle_annotations(&mut self, service: ServiceIndex) {
        if !self.is_wanted(service) {
            return;
        }
        let Some(record) = self.record_mut(service) else { return };
        let Some(object) = &record.object else { return };
        let prefers_both = object.spec.family_policy == FamilyPolicy::PreferDualStack;
        let told = core::mem::replace(&mut record.second_family_told, prefers_both);
        if prefers_both && !told {
            let text = "Only the first IP family of spec.ipFamilyPolicy PreferDualStack is served. Set it to SingleStack";
            let about = self.about(service);
            self.notify(about, true, Reason::InvalidSpec, text.into());
        }
        let Some(record) = self.record_mut(service) else { return };
        let Some(object) = &record.object else { return };
        if record.idle_told == object.spec.idle_annotations {
            return;
        }
        record.idle_told.clone_from(&object.spec.idle_annotations);
        if record.idle_told.is_empty() {
            return;
        }
        let text = format!("Ignored unsupported annotations: {}. Remove them", record.idle_told.join(", "));
        let about = self.about(service);
        self.notify(about, true, Reason::InvalidSpec, text);
    }

    /// How many egresses there are, made or being made, without the default outbound. Counted once per event,
    /// however many ask.
    fn egresses_there(&self) -> usize {
        if let Some(count) = self.egress_count.get() {
            return count;
        }
        let counts = |it: &Service| match &it.key {
            ServiceKey::Outbound(egress) if !egress.is_default() => {
                !(it.actual.is_nothing() && it.state == State::NotStarted)
            }
            _ => false,
        };
        let outbounds = self.outbounds.iter().filter_map(|service| self.record(*service));
        let count = outbounds.filter(|record| counts(record)).count();
        self.egress_count.set(Some(count));
        count
    }

    /// Says once that a named port is unresolved, when it has been so for a minute. The endpoints of a new app come
    /// seconds after its Service.
    pub(crate) fn tell_if_unresolved(&mut self, service: ServiceIndex) {
        let now = self.now;
        let Some(record) = self.record_mut(service) else { return };
        // What an earlier leader said counts until the first comparison.
        let Some(compared) = &record.compared else {
            record.unresolved_since = None;
            return;
        };
        let text = match compared {
            Compared::Invalid(Reason::PortUnresolved, text) => Some(text),
            Compared::Invalid(..) => None,
            _ => record.unresolved.as_ref(),
        };
        let Some(text) = text else {
            record.unresolved_since = None;
            record.unresolved_told = false;
            return;
        };
        let since = *record.unresolved_since.get_or_insert(now);
        if now < since + UNRESOLVED_TOLD_AFTER || record.unresolved_told {
            return;
        }
        let text = Reason::PortUnresolved.note(text, false);
        record.unresolved_told = true;
        let about = self.about(service);
        self.notify(about, true, Reason::PortUnresolved, text);
    }

    pub(crate) fn tell_if_invalid(&mut self, service: ServiceIndex) {
        let now = self.now;
        let look_again = now + LOOK_AGAIN;
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
        if news.0 == Reason::PortUnresolved {
            // That may pass by itself, so it is told later.
            return;
        }
        let about = self.about(service);
        self.notify(about, true, news.0, news.1);
    }
}
