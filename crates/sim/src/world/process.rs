//! One process: engine, updaters and watch client, until it dies.

use sluice_engine::{Config as EngineConfig, Engine};
use sluice_model::allow_deletion::AllowedDeletions;
use sluice_model::lease::Timing;
use sluice_model::names::Scope;
use sluice_model::seeded::Seeded;
use sluice_model::{Event, Time};
use sluice_updater::{Config as UpdaterConfig, Updaters};
use std::collections::VecDeque;

use super::clock::Clock;
use super::lease::Elector;
use super::wire::Incoming;
use crate::cluster::Informer;
use crate::rng::Rng;

/// The numbers that a process runs with; P6 restarts it with others.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The engine's.
    pub engine: EngineConfig,
    /// The updaters'.
    pub updater: UpdaterConfig,
    /// Those of its election.
    pub timing: Timing,
}

impl Settings {
    /// The defaults, with drift sweeps often enough for short runs.
    pub fn new(scope: &Scope) -> Settings {
        Settings {
            engine: EngineConfig::new(scope.clone()),
            updater: UpdaterConfig::default(),
            timing: Timing::default(),
        }
    }
}

/// One life of one process.
pub(super) struct Process {
    /// Never used twice.
    pub(super) life: u64,
    pub(super) engine: Engine,
    pub(super) updaters: Updaters,
    pub(super) informer: Informer,
    pub(super) clock: Clock,
    pub(super) elector: Elector,
    /// Until when it does nothing at all, and what reached it meanwhile.
    pub(super) frozen_until: Option<Time>,
    pub(super) missed: VecDeque<Incoming>,
    /// It was asked to end, and must be gone by then.
    pub(super) stopping: Option<Time>,
    /// The wake-up call that counts.
    pub(super) armed: Option<Time>,
    /// Writes to Kubernetes whose answer it awaits.
    pub(super) kube_in_flight: u32,
    /// What it has read on the Lease that the operator allows.
    pub(super) allowed: AllowedDeletions,
    /// It crashes during the first listing (P5).
    pub(super) dies_listing: bool,
}

impl Process {
    pub(super) fn new(
        life: u64,
        settings: &Settings,
        scope: &Scope,
        clock: Clock,
        now: Time,
        rng: &Rng,
        seeded: Seeded,
    ) -> Process {
        let mut own = rng.fork(&format!("process {life}"));
        let seed = own.next_u64();
        Process {
            life,
            engine: Engine::new(settings.engine.clone(), seed, seeded),
            updaters: Updaters::new(settings.updater.clone(), scope.clone(), seed, seeded),
            informer: Informer::new(now, &own),
            clock,
            elector: Elector::new(settings.timing, seeded),
            frozen_until: None,
            missed: VecDeque::new(),
            stopping: None,
            armed: None,
            kube_in_flight: 0,
            allowed: AllowedDeletions::default(),
            dies_listing: false,
        }
    }

    pub(super) fn leads(&self) -> bool {
        self.elector.renewed.is_some()
    }

    /// Engine events that wait to be handled.
    pub(super) fn first(event: Event) -> VecDeque<Event> {
        VecDeque::from([event])
    }
}
