//! The one rule about trouble: what is desired and not programmed for longer than ordinary work takes, and why.
//!
//! Conditions, `status`, `explain`, the dashboard and the metrics all read it. It is worked out from the state of the
//! moment, never from events, so it holds after a restart and when Kubernetes has deleted its events.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use sluice_model::Time;
use sluice_model::effect::Listable;
use sluice_model::kube::{Concern, Condition, ConditionKind};
use sluice_model::reason::Reason;

use crate::addresses::{LaneTrouble, ServiceIndex, addresses_in_words};
use crate::engine::Engine;
use crate::explain;
use crate::failure_row::{FailureRow, steady};
use crate::overdue::kind_of_work;
use crate::service::{Compared, Service};
use crate::state::State;

/// A pause that Azure asked for is shown from this length on: shorter ones are over before people look.
pub(crate) const THROTTLED_SHOWN: Duration = Duration::from_secs(30);

/// Addresses that wait so long for an address of their node are trouble; a new node gets its address within seconds.
const NO_PLACE_SHOWN: Duration = Duration::from_secs(60);

/// Operations, or writes to Kubernetes, that fail so often in a row are trouble.
const FAILURES_SHOWN: u32 = 3;

/// Listings that fail for so long are trouble.
const LISTING_SHOWN: Duration = Duration::from_secs(30);

/// What is wrong with one service.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Trouble<'a> {
    pub(crate) reason: Reason,
    pub(crate) concern: Concern,
    pub(crate) cause: Cause<'a>,
}

/// What its sentence is made from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cause<'a> {
    /// A sentence of ours. It changes only with what it is about.
    Said(&'a str),
    /// A sentence with the answer of Azure, which can differ at every retry.
    Failed(&'a str),
    Gateway,
    Listing(Listable, &'a FailureRow),
    MassDeletion,
    ConflictInDoubt,
    Pause,
    Lane(LaneTrouble<'a>),
    /// A leader before this one has said so, and nothing contradicts it yet.
    SaidBefore,
    /// The same of operations.
    SaidOfOperations,
    LongDrain,
    /// Azure does not end the operation.
    Unended,
    /// It is not as desired for long, for a reason on our side.
    Waits,
    Quarantine,
    KeptByOthers,
    NoPlace,
    KubernetesWrites,
}

impl Engine {
    /// What keeps a service from being as desired, if that lasts longer than ordinary work.
    pub(crate) fn trouble<'a>(&'a self, record: &'a Service) -> Option<Trouble<'a>> {
        if !self.is_leading() {
            return None;
        }
        let wanted = self.is_wanted(record.index);
        let found = |reason, cause| Some(Trouble { reason, concern: Concern::Resources, cause });
        let leaves = !wanted && matches!(record.state, State::DeletionPending | State::DeletionInProgress);
        let concern = if leaves { Concern::Deletion } else { Concern::Resources };
        let operation = |reason, cause| Some(Trouble { reason, concern, cause });
        if self.survey.is_complete() {
            if self.is_braked(record.index) {
                return found(Reason::MassDeletionHeld, Cause::MassDeletion);
            }
            if let Some(Compared::Invalid(reason, text)) = record.compared.as_ref().filter(|_| wanted) {
                return found(*reason, Cause::Said(text));
            }
            if let Some(hold) = record.hold.as_ref().filter(|hold| hold.parked) {
                let failed = record.last_failure.as_ref().map(|failure| failure.reason);
                let reason = failed.map_or(hold.reason, |failed| steady(failed, hold.reason));
                return operation(reason, Cause::Failed(&hold.text));
            }
        }
        if self.foundation.is_out_of_order() {
            return found(Reason::GatewayUnavailable, Cause::Gateway);
        }
        if !self.survey.is_complete() {
            let (kind, row) = self.failing_listing()?;
            return found(row.reason, Cause::Listing(kind, row));
        }
        let is_failing = record.attempts.total >= FAILURES_SHOWN || record.attempts.parks != [0; 3];
        if let Some(failure) = record.last_failure.as_ref().filter(|_| is_failing) {
            return operation(failure.reason, Cause::Failed(&failure.text));
        }
        // While it is read again, a conflict is neither over nor new.
        let in_conflict = shown(record).is_some_and(|it| it.reason == Reason::Conflict);
        if in_conflict && wanted && record.actual.is_unclear() {
            return found(Reason::Conflict, Cause::ConflictInDoubt);
        }
        if is_throttled(record, self.now) {
            return operation(Reason::Throttled, Cause::Pause);
        }
        if let Some(trouble) = self.address_trouble(record) {
            return Some(trouble);
        }
        if let Some((reason, text)) = record.adoption.trouble.as_ref().filter(|_| wanted) {
            return found(*reason, Cause::Failed(text));
        }
        let unconfirmed = record.vanished.as_ref().map_or(0, |it| it.failures);
        if record.kube.failures.max(unconfirmed) >= FAILURES_SHOWN {
            return found(Reason::KubernetesRejected, Cause::KubernetesWrites);
        }
        // After all other trouble, because `lasting_trouble` drops it for a minute.
        if let Some(text) = record.unresolved.as_ref().filter(|_| wanted) {
            return found(Reason::PortUnresolved, Cause::Said(text));
        }
        self.overdue(record, concern)
    }

    /// Addresses that are not programmed, or that a deletion waits for.
    fn address_trouble<'a>(&'a self, record: &'a Service) -> Option<Trouble<'a>> {
        let service = record.index;
        let drains = self.waits_for_addresses(record);
        let concern = if drains { Concern::Deletion } else { Concern::Addresses };
        let of = |reason, cause| Some(Trouble { reason, concern, cause });
        if !drains && self.addresses.quarantined(service) > 0 {
            return of(Reason::Rejected, Cause::Quarantine);
        }
        if !drains && self.addresses.kept_from(service) > 0 {
            return of(Reason::Conflict, Cause::KeptByOthers);
        }
        let before = shown(record).filter(|it| it.concern == concern);
        if let Some(since) = self.addresses.unplaceable_since(service).filter(|_| !drains) {
            let said_so = before.is_some_and(|it| it.reason == Reason::InvalidSpec);
            if self.now >= since + NO_PLACE_SHOWN || said_so {
                return of(Reason::InvalidSpec, Cause::NoPlace);
            }
        }
        if !drains && !self.addresses.is_behind(service) {
            return None;
        }
        if let Some(lane) = self.addresses.lane_trouble() {
            return of(lane.reason(), Cause::Lane(lane));
        }
        let before = before.filter(|_| !self.addresses.has_sent())?;
        of(before.reason, Cause::SaidBefore)
    }

    /// When trouble of this service begins, or becomes another, by time alone.
    pub(crate) fn trouble_at(&self, record: &Service) -> Option<Time> {
        let no_place = self.addresses.unplaceable_since(record.index).map(|since| since + NO_PLACE_SHOWN);
        let resumed = record.operation.as_ref().map(|operation| operation.resumed);
        let [unmet, recovered, unended] = self.overdue_at(record);
        [no_place, resumed, unmet, recovered, unended].into_iter().flatten().filter(|at| *at > self.now).min()
    }

    /// The same, without ports that are unresolved for less than a minute: the endpoints of a new app come seconds after
    /// its Service. Conditions show them at once.
    pub(crate) fn lasting_trouble<'a>(&'a self, record: &'a Service) -> Option<Trouble<'a>> {
        self.trouble(record).filter(|it| it.reason != Reason::PortUnresolved || record.unresolved_told)
    }

    /// The same, in words.
    pub(crate) fn told_trouble(&self, record: &Service) -> Option<explain::Trouble> {
        let Trouble { reason, concern, cause } = self.lasting_trouble(record)?;
        let is_about_credential = match cause {
            Cause::Listing(_, row) | Cause::Lane(LaneTrouble::Failing(row)) => {
                Some(row.last.is_about_credential())
            }
            // Without a failed operation, the sentence is about tags.
            Cause::Failed(_) => Some(match &record.last_failure {
                Some(failure) => failure.is_about_credential,
                None => record.adoption.is_about_credential,
            }),
            _ => None,
        };
        let is_about_credential = is_about_credential.filter(|_| reason == Reason::Forbidden);
        let text = self.sentence(record, concern, cause);
        Some(explain::Trouble { reason, concern, text, is_about_credential })
    }

    /// What is wrong, without counts of addresses, if more is known than the reason.
    pub(crate) fn detail<'a>(&'a self, record: &Service, cause: Cause<'a>) -> Option<Cow<'a, str>> {
        Some(match cause {
            Cause::Said(text) | Cause::Failed(text) => text.into(),
            Cause::Gateway => self.foundation.trouble()?.into(),
            Cause::Listing(kind, row) => {
                format!("Cannot read {} from Azure, so no change is made. {}", kind.phrase(), row.last).into()
            }
            Cause::MassDeletion => {
                "Deletion held by the mass-deletion guard. Review `sluice plan`; if the deletions are intended, run `sluice allow-deletion`"
                    .into()
            }
            Cause::Lane(LaneTrouble::Failing(row)) => row.last.to_string().into(),
            Cause::Lane(LaneTrouble::Slow) => {
                "The address update in flight has not ended for over 1 min".into()
            }
            Cause::Lane(LaneTrouble::Paused) => "The address update waits for Retry-After of Azure".into(),
            Cause::Lane(LaneTrouble::OverBudget) => {
                "The address update waits for the call budget; see `sluice.budget.share`".into()
            }
            Cause::Unended => {
                format!("The {} has not ended in Azure for over 5 min", kind_of_work(record)).into()
            }
            Cause::NoPlace => self.addresses.missing_place(record.index)?.to_string().into(),
            // The last rejection can be about another Service, whose conditions other people read.
            Cause::Quarantine
            | Cause::ConflictInDoubt
            | Cause::Pause
            | Cause::SaidBefore
            | Cause::SaidOfOperations
            | Cause::LongDrain
            | Cause::Waits
            | Cause::KeptByOthers
            | Cause::KubernetesWrites => return None,
        })
    }

    fn sentence(&self, record: &Service, concern: Concern, cause: Cause<'_>) -> String {
        let service = record.index;
        let mapped = self.addresses.mapped(service);
        let what = match concern {
            Concern::Resources => String::new(),
            Concern::Deletion => {
                let addresses = addresses_in_words(mapped as usize);
                format!("Deletion is waiting for {addresses} to be removed from the gateway")
            }
            Concern::Addresses => {
                let wanted = self.addresses.wanted(service);
                match wanted.saturating_sub(self.addresses.programmed_of_wanted(service)) {
                    0 => "Some addresses in Azure are out of date".into(),
                    missing => format!("{missing} of {wanted} addresses are not programmed in Azure"),
                }
            }
        };
        let detail = self.detail(record, cause).unwrap_or_default();
        match cause {
            Cause::Said(_)
            | Cause::Failed(_)
            | Cause::Gateway
            | Cause::Listing(..)
            | Cause::MassDeletion
            | Cause::Unended => detail.into(),
            Cause::ConflictInDoubt => {
                "An unmanaged resource with the required name was found; Sluice is reading it again".into()
            }
            Cause::Pause => "Azure answered 429; Sluice waits for Retry-After".into(),
            Cause::Lane(LaneTrouble::Failing(_)) => {
                format!("{what}. Address updates fail and are retried. {detail}")
            }
            Cause::Lane(_) => format!("{what}. {detail}"),
            Cause::SaidOfOperations => {
                let reported = record
                    .said_before
                    .as_ref()
                    .map(|it| format!(" reported {}", it.reason))
                    .unwrap_or_default();
                format!("The previous leader{reported}; no operation has succeeded since")
            }
            Cause::SaidBefore => format!("{what}. No address update has succeeded since the leader changed"),
            Cause::LongDrain => {
                let holding = self.addresses.holding(service, 3);
                let named: Vec<String> = holding
                    .iter()
                    .map(|(location, address)| format!("{address} on node IP {location}"))
                    .collect();
                format!("{what}: {}", named.join(", "))
            }
            Cause::Waits => {
                let obstacle = self.obstacle(record).map(|it| format!(": {it}")).unwrap_or_default();
                format!("The {} has not succeeded for over 5 min{obstacle}", kind_of_work(record))
            }
            Cause::NoPlace => {
                let many = addresses_in_words(self.addresses.unplaceable(service) as usize);
                let example = if detail.is_empty() { detail } else { format!(". {detail}").into() };
                format!("{what}. The node IP is missing for {many}{example}")
            }
            Cause::Quarantine => {
                let many = self.addresses.quarantined(service);
                let many = addresses_in_words(many as usize);
                let said = self.addresses.last_refusal().map(|it| format!(". {it}")).unwrap_or_default();
                format!("{what}. Azure rejected {many}, which Sluice retries{said}")
            }
            Cause::KeptByOthers => {
                let many = self.addresses.kept_from(service);
                format!("{what}. An unmanaged egress has {}", addresses_in_words(many))
            }
            Cause::KubernetesWrites => {
                "The API server rejects writes to the Service, or does not answer. Retrying".into()
            }
        }
    }

    /// A listing of Azure that has failed for long, and how it last did.
    pub(crate) fn failing_listing(&self) -> Option<(Listable, &FailureRow)> {
        let failing = |kind: Listable| {
            let row = self.survey.looks[kind as usize].failing.as_ref()?;
            (self.now >= row.since + LISTING_SHOWN).then_some((kind, row))
        };
        Listable::ALL.into_iter().find_map(failing)
    }

    /// Why the state of Azure is not known any more, if listings fail for long.
    pub fn listing_trouble(&self) -> Option<(Reason, String)> {
        let (kind, row) = self.failing_listing().filter(|_| self.is_leading())?;
        Some((row.reason, format!("Cannot read {} from Azure. {}", kind.phrase(), row.last)))
    }

    /// What is the same for all services and can begin or end without an event about any of them.
    fn shared_trouble(&self) -> [Option<Reason>; 2] {
        let lane = self.addresses.lane_trouble().map(|trouble| trouble.reason());
        let listing = self.failing_listing().filter(|_| !self.survey.is_complete());
        [lane, listing.map(|(_, row)| row.reason)]
    }

    /// Looks at every service when the address updates, or the first listings, begin or cease to be in trouble.
    pub(crate) fn note_shared_trouble(&mut self) {
        let trouble = self.shared_trouble();
        if self.trouble_noted == trouble {
            return;
        }
        self.trouble_noted = trouble;
        let all: Vec<ServiceIndex> = self.services.iter().flatten().map(|record| record.index).collect();
        for service in all {
            self.changes.look_at(service);
        }
    }
}

/// What a leader before this one, or this one, last wrote about trouble.
pub(crate) fn shown(record: &Service) -> Option<&Condition> {
    let conditions = &record.object.as_ref()?.conditions;
    conditions.iter().find(|it| it.kind == ConditionKind::Provisioning && it.holds)
}

/// Azure asked for a pause that is long enough to be shown.
fn is_throttled(record: &Service, now: Time) -> bool {
    let waits = record.throttled(now).is_some_and(|(since, until)| until.since(since) >= THROTTLED_SHOWN);
    let held = record.hold.as_ref().zip(record.last_failure.as_ref()).is_some_and(|(hold, failure)| {
        hold.reason == Reason::Throttled && hold.until.since(failure.at) >= THROTTLED_SHOWN
    });
    waits || held
}
