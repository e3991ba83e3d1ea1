//! Why is it like this? Answered from the record, in types that every room can print.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::net::IpAddr;

use sluice_model::allow_deletion::Fingerprint;
use sluice_model::kube::{Concern, Kind};
use sluice_model::plan::Intent;
use sluice_model::reason::Reason;
use sluice_model::{EffectId, ObjectName, ServiceKey, Time};

use crate::hold::Hold;
use crate::state::{State, Trigger};

const TIMELINE_MAX: usize = 24;
const REFUSALS_MAX: usize = 64;

/// One service as people see it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServiceView {
    /// Which.
    pub key: ServiceKey,
    /// The Service object behind an inbound one.
    pub object: Option<ObjectName>,
    /// Where it is in its life.
    pub state: State,
    /// Since when.
    pub since: Time,
    /// Whether anybody wants it.
    pub wanted: bool,
    /// The operation in flight.
    pub operation: Option<EffectId>,
    /// What its next attempt waits for, and why.
    pub hold: Option<Hold>,
    /// What is wrong with what is asked for.
    pub invalid: Option<(Reason, String)>,
    /// Failures since the last success.
    pub attempts: u32,
    /// Its public IP.
    pub public_ip: Option<IpAddr>,
    /// Unfinished pods of an egress.
    pub pods: usize,
    /// Since when somebody has wanted it; of no meaning while nobody does.
    pub wanted_since: Time,
    /// When its last operation began.
    pub last_attempt: Option<Time>,
    /// How its last operation failed; none once one has succeeded.
    pub last_failure: Option<LastFailure>,
    /// Addresses that it should have.
    pub addresses_wanted: u32,
    /// Addresses that Azure has for it.
    pub addresses_programmed: u32,
    /// Addresses that Azure may have for it: the deletion gate.
    pub addresses_mapped: u32,
    /// Addresses that wait until it is ready.
    pub addresses_buffered: u32,
    /// Addresses that wait for an address of their node.
    pub addresses_unplaceable: u32,
    /// Addresses that Azure refuses.
    pub addresses_quarantined: u32,
    /// The gateway sends traffic to it.
    pub live: bool,
    /// Its deletion is held as one of too many.
    pub held: Option<Held>,
    /// What keeps it from being as desired for longer than ordinary work takes.
    pub trouble: Option<Trouble>,
}

/// A service whose deletion is held.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Held {
    /// What people call it, also when its object is gone: `service/shop/web`, `egress/blue`.
    pub name: String,
    /// The operator's consent names it.
    pub fingerprint: Fingerprint,
}

/// How an operation failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LastFailure {
    /// When.
    pub at: Time,
    /// At which step.
    pub step: &'static str,
    /// Azure's code, or ours.
    pub code: Arc<str>,
    /// Why, in one word.
    pub reason: Reason,
    /// A sentence.
    pub text: String,
    /// Azure did not accept the credential.
    pub is_about_credential: bool,
    /// Azure asked not to be called again before then.
    pub not_before: Time,
}

/// What keeps a service from being as desired for longer than ordinary work takes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trouble {
    /// Why, in one word.
    pub reason: Reason,
    /// What is not as desired.
    pub concern: Concern,
    /// A sentence, with numbers and Azure's words.
    pub text: String,
    /// Whether Azure denies a request because of the credential, if that is known.
    pub is_about_credential: Option<bool>,
}

/// One service, and why it is where it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Explanation {
    /// How it stands.
    pub view: ServiceView,
    /// Everything it waits for, the nearest first.
    pub waits_for: Vec<WaitsFor>,
    /// What happened to it, oldest first.
    pub timeline: Vec<(Time, Moment)>,
}

/// Something that a service waits for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WaitsFor {
    /// The first complete lists from Kubernetes.
    KubernetesLists(Vec<Kind>),
    /// The first complete listing of Azure.
    AzureListing,
    /// The gateway or its subnet.
    Gateway,
    /// Our finalizer on its object.
    Finalizer,
    /// A mended spec.
    SpecChange(String),
    /// Its operation.
    Operation(EffectId),
    /// A free slot.
    Slot,
    /// Its next attempt.
    Retry {
        /// When.
        at: Time,
        /// Why it waits.
        reason: Reason,
    },
    /// Addresses that are still mapped to it.
    Addresses(u32),
    /// The API server's word that its object is gone.
    ConfirmedAbsence,
    /// The operator's consent to a mass deletion.
    MassDeletionConsent,
    /// The end of its linger time.
    Linger {
        /// When.
        until: Time,
    },
    /// Kubernetes, which refuses or delays our write.
    KubernetesWrite,
}

/// Something that happened to a service.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Moment {
    /// It moved.
    Moved {
        /// From where.
        from: State,
        /// To where.
        to: State,
        /// By what.
        by: Trigger,
    },
    /// An operation started.
    Started {
        /// Which.
        id: EffectId,
        /// To what end.
        intent: Intent,
        /// How many steps.
        steps: usize,
    },
    /// An operation came to its end.
    Finished {
        /// Which.
        id: EffectId,
    },
    /// An operation failed.
    Failed {
        /// Which.
        id: EffectId,
        /// At which step.
        step: &'static str,
        /// With what code.
        code: Arc<str>,
    },
    /// It was parked.
    Parked(Reason),
    /// Its spec was refused.
    Invalid(Reason),
    /// Its IP was published or retracted.
    Published(Option<IpAddr>),
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Moment::Moved { from, to, by } => write!(f, "{from} → {to}, {by}"),
            Moment::Started { id, intent, steps } => write!(f, "{id} started: {intent:?}, {steps} steps"),
            Moment::Finished { id } => write!(f, "{id} done"),
            Moment::Failed { id, step, code } => write!(f, "{id} failed at {step}: {code}"),
            Moment::Parked(reason) => write!(f, "parked: {reason}"),
            Moment::Invalid(reason) => write!(f, "not served: {reason}"),
            Moment::Published(Some(ip)) => write!(f, "{ip} published"),
            Moment::Published(None) => f.write_str("IP retracted"),
        }
    }
}

/// The last things that happened to a service; bounded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timeline(VecDeque<(Time, Moment)>);

impl Timeline {
    pub(crate) fn push(&mut self, now: Time, moment: Moment) {
        if self.0.len() >= TIMELINE_MAX {
            self.0.pop_front();
        }
        self.0.push_back((now, moment));
    }

    pub(crate) fn entries(&self) -> Vec<(Time, Moment)> {
        self.0.iter().cloned().collect()
    }
}

/// An input that the engine did not act on, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// When.
    pub at: Time,
    /// What it was about.
    pub what: String,
    /// Why it was refused.
    pub why: String,
}

/// The last refusals; bounded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Refusals(VecDeque<Refusal>);

impl Refusals {
    pub(crate) fn push(&mut self, at: Time, what: String, why: String) {
        if self.0.len() >= REFUSALS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(Refusal { at, what, why });
    }

    pub(crate) fn entries(&self) -> Vec<Refusal> {
        self.0.iter().cloned().collect()
    }
}
