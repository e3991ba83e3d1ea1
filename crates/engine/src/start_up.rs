//! How far start-up has come, for logs, metrics and `/readyz?verbose`.
//!
//! The initial sync is worked off while new work is served, so this is told and never waited for.

use alloc::string::String;
use alloc::vec::Vec;

use sluice_model::effect::Listable;
use sluice_model::kube::Kind;
use sluice_model::plan::Intent;

use crate::addresses::ServiceIndex;
use crate::engine::Engine;
use crate::service::Compared;
use crate::state::State;

/// How far start-up has come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StartUp {
    /// What it is at.
    pub phase: Phase,
    /// Which kinds of Kubernetes have been listed completely, in the order of [`Kind::ALL`].
    pub kubernetes_listed: [bool; Kind::ALL.len()],
    /// Which kinds of Azure have been listed completely, in the order of [`Listable::ALL`].
    pub azure_listed: [bool; Listable::ALL.len()],
    /// Why the gateway cannot be used, while that is so.
    pub gateway_trouble: Option<String>,
    /// What the first complete look at both sides found; `None` before it.
    pub found: Option<FirstDifference>,
    /// Services that the initial sync has not brought to rest yet.
    pub left: usize,
}

/// What start-up is at.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Phase {
    /// Another process leads, or none yet.
    Standby,
    /// The first complete lists of Kubernetes are awaited.
    ReadingKubernetes,
    /// The first complete lists of Azure are awaited.
    ReadingAzure,
    /// The gateway or its subnet is being made, or cannot be used.
    Gateway,
    /// The first difference is worked off.
    InitialSync,
    /// Everything has succeeded or is parked with a reason.
    Done,
}

impl Phase {
    /// Every phase, in order.
    pub const ALL: [Phase; 6] = [
        Phase::Standby,
        Phase::ReadingKubernetes,
        Phase::ReadingAzure,
        Phase::Gateway,
        Phase::InitialSync,
        Phase::Done,
    ];

    /// A fixed word.
    pub const fn word(self) -> &'static str {
        match self {
            Phase::Standby => "standby",
            Phase::ReadingKubernetes => "reading-kubernetes",
            Phase::ReadingAzure => "reading-azure",
            Phase::Gateway => "gateway",
            Phase::InitialSync => "initial-sync",
            Phase::Done => "done",
        }
    }
}

/// What the first complete look at both sides found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FirstDifference {
    /// Services that are right already.
    pub right: usize,
    /// Services to make.
    pub create: usize,
    /// Services to change.
    pub update: usize,
    /// Services to take down.
    pub delete: usize,
    /// Services that ask for what cannot be.
    pub invalid: usize,
    /// Services that must be looked at first.
    pub unclear: usize,
    /// Addresses to write or remove, with those of the services to make.
    pub addresses: usize,
    /// Resources of ours, by service, that nobody wants; a second look decides.
    pub orphans: usize,
    /// Objects that carry our finalizer or an inherited one and have nothing in Azure.
    pub stuck_finalizers: usize,
}

impl Engine {
    /// How far start-up has come.
    pub fn start_up(&self) -> StartUp {
        let phase = if !self.is_leading() {
            Phase::Standby
        } else if self.kinds_listed.contains(&false) {
            Phase::ReadingKubernetes
        } else if !self.survey.is_complete() {
            let unusable = self.foundation.was_listed() && self.foundation.is_unusable();
            if unusable { Phase::Gateway } else { Phase::ReadingAzure }
        } else if self.survey.initial_done {
            Phase::Done
        } else if !self.foundation.is_ready() {
            Phase::Gateway
        } else {
            Phase::InitialSync
        };
        StartUp {
            phase,
            kubernetes_listed: self.kinds_listed,
            azure_listed: self.survey.listed(),
            gateway_trouble: self.foundation.trouble(),
            found: self.survey.first_difference,
            left: self.initial_sync_left(),
        }
    }

    /// Whether we hold the lease, as far as the engine has been told.
    pub fn is_leading(&self) -> bool {
        self.leadership == crate::engine::Leadership::Leading
    }

    /// Whether the gateway and its subnet are as we need them.
    pub fn gateway_ready(&self) -> bool {
        self.foundation.is_ready()
    }

    /// Counts the first difference, right after every service has been compared for the first time.
    pub(crate) fn note_first_difference(&mut self) {
        if self.survey.first_difference.is_some() || !self.survey.is_complete() {
            return;
        }
        let scope = &self.config.scope;
        let strays = self.survey.strays.iter();
        let mut created = Vec::new();
        let mut found = FirstDifference {
            orphans: strays.filter(|(key, stray)| stray.found.is_ours(scope, key, false)).count(),
            ..FirstDifference::default()
        };
        for record in self.services.iter().flatten() {
            if !self.is_wanted(record.index) {
                let object = record.object.as_ref();
                let held = object.is_some_and(|object| object.finalizer || object.inherited);
                match self.is_torn_down(record.index) {
                    true => found.stuck_finalizers += usize::from(held),
                    false => found.delete += 1,
                }
                continue;
            }
            match (&record.compared, record.operation.as_ref().map(|operation| operation.intent())) {
                (_, Some(Intent::Provision)) => created.push(record.index),
                (_, Some(Intent::Update)) => found.update += 1,
                (Some(Compared::InSync), _) => found.right += 1,
                (Some(Compared::Invalid(..)), _) => found.invalid += 1,
                (Some(Compared::Different), _) if record.state == State::NotStarted => {
                    created.push(record.index)
                }
                (Some(Compared::Different), _) => found.update += 1,
                _ => found.unclear += 1,
            }
        }
        found.create = created.len();
        found.addresses = self.addresses.to_write(&created);
        self.survey.first_difference = Some(found);
    }

    /// Whether the initial difference has been worked off: everything has succeeded or is parked with a reason.
    pub fn initial_sync_done(&self) -> bool {
        self.survey.initial_done
    }

    /// How many services the initial sync still has to bring to rest.
    pub fn initial_sync_left(&self) -> usize {
        self.survey.initial.len()
    }

    /// A service that came to rest leaves the initial sync; when all have, orphans are looked for again.
    pub(crate) fn note_initial_sync(&mut self, service: ServiceIndex) {
        if self.survey.initial_done || !self.survey.complete {
            return;
        }
        let at_rest = match self.record(service) {
            None => true,
            Some(record) => {
                record.operation.is_none()
                    && !self.dispatch.is_queued(service)
                    && (record.state == State::Created
                        || record.hold.as_ref().is_some_and(|hold| hold.parked)
                        || matches!(record.compared, Some(Compared::Invalid(..)))
                        || self.is_braked(service)
                        || record.vanished.is_some()
                        || record.kube.failures > 0
                        || self.foundation.is_out_of_order())
            }
        };
        if at_rest {
            self.leave_initial_sync(service);
        }
    }

    pub(crate) fn leave_initial_sync(&mut self, service: ServiceIndex) {
        self.survey.initial.remove(&service);
        self.end_initial_sync();
    }

    pub(crate) fn end_initial_sync(&mut self) {
        if self.survey.initial_done || !self.survey.complete || !self.survey.initial.is_empty() {
            return;
        }
        if !self.foundation.is_ready() && !self.foundation.is_out_of_order() {
            // The gateway is being made, and nothing has come to rest before it is there.
            return;
        }
        self.survey.initial_done = true;
        if !self.survey.strays.is_empty() {
            // The second sighting of what the baseline found follows directly.
            for kind in Listable::ALL {
                self.survey.look_soon(kind, self.now);
            }
        }
    }
}
