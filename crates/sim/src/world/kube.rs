//! Calls to the API server, the lease, and the lives of processes.

use core::time::Duration;

use sluice_model::effect::{Action, KubeOutcome};
use sluice_model::lease::Timing;
use sluice_model::{Effect, Event};
use std::collections::VecDeque;

use super::lease::Look;
use super::process::Process;
use super::wire::{Incoming, KubeCall, ToKube};
use super::{Fate, Happening, World, letter};
use crate::cluster::{KubeFault, KubeWrite, WriteFault};
use crate::invariants::Tally;
use crate::names::{FaultKind, Violation};

/// How long a process that was asked to end waits for what is on the wire.
const GRACE: Duration = Duration::from_secs(30);
/// Once all is calm the lease is renewed less often, because nothing can come of it but steps.
const CALM_RETRY: Duration = Duration::from_secs(9);

impl World {
    /// A process asks something of the API server, or dies trying.
    pub(super) fn kube_call(
        &mut self,
        slot: usize,
        process: &mut Process,
        effect: &Effect,
    ) -> Result<Fate, Violation> {
        let local = process.clock.local(self.now);
        let what = match &effect.action {
            Action::ConfirmGone(object) => KubeCall::Look(object.clone()),
            action => {
                let based_on = match action {
                    Action::WriteStatus { object, .. } => process.informer.last_seen(object),
                    _ => None,
                };
                match KubeWrite::of(action, based_on) {
                    Some(write) => KubeCall::Write(write),
                    None => return Ok(Fate::Lives),
                }
            }
        };
        // The shell begins nothing without the lease, and nothing once it was asked to end.
        let fenced = process.elector.may_act_until().is_none_or(|until| local >= until);
        if fenced || process.stopping.is_some() {
            let incoming = match what {
                KubeCall::Write(write) => {
                    Incoming::Written { effect: effect.id, write, outcome: KubeOutcome::Unavailable }
                }
                KubeCall::Look(_) => Incoming::Looked {
                    effect: effect.id,
                    existence: sluice_model::effect::Existence::Unclear,
                },
            };
            let at = self.now + Duration::from_millis(50);
            process.kube_in_flight += 1;
            let life = process.life;
            self.plan_at(at, Happening::ReachesProcess { slot, life, incoming });
            return Ok(Fate::Lives);
        }
        let crash = self.crash_here(false);
        if crash == Some(false) {
            self.trace.world(self.now, || format!("{} dies before {}", letter(slot), effect.id));
            return Ok(Fate::Dies);
        }
        if let KubeCall::Write(write) = &what {
            let mut tally = Tally { coverage: &mut self.coverage, now: self.now };
            self.judge.kube_begun(slot, local, write, &mut tally)?;
        }
        self.wired += 1;
        let number = self.wired;
        self.to_kube.insert(number, ToKube { slot, life: process.life, effect: effect.id, what });
        process.kube_in_flight += 1;
        let at = self.now + self.network_delay();
        self.plan_at(at, Happening::KubeArrives(number));
        if crash == Some(true) {
            self.trace.world(self.now, || format!("{} dies right after {}", letter(slot), effect.id));
            return Ok(Fate::Dies);
        }
        Ok(Fate::Lives)
    }

    /// The API server takes a call.
    pub(super) fn kube_call_arrives(&mut self, number: u64) -> Result<(), Violation> {
        let Some(ToKube { slot, life, effect, what }) = self.to_kube.remove(&number) else { return Ok(()) };
        let incoming = match what {
            KubeCall::Look(object) => {
                let lost = self.kube_faults.read_fails(self.now, &mut self.chance);
                Incoming::Looked { effect, existence: self.cluster.exists(&object, lost) }
            }
            KubeCall::Write(write) => {
                let fault = self.kube_faults.write_fault(self.now, &mut self.chance);
                if fault != WriteFault::None {
                    self.trace.world(self.now, || format!("{fault:?} strikes {effect}"));
                }
                let before = self.cluster.clone();
                let outcome = self.cluster.write(&write, fault);
                let mut tally = Tally { coverage: &mut self.coverage, now: self.now };
                self.judge.kube_landed(&write, &before, &self.cluster, self.cloud.state(), &mut tally)?;
                Incoming::Written { effect, write, outcome }
            }
        };
        let delay = self.kube_faults.answer_delay(&mut self.chance);
        self.count_kube_faults();
        let at = self.now + delay;
        self.plan_at(at, Happening::ReachesProcess { slot, life, incoming });
        Ok(())
    }

    /// A process looks at the lease.
    pub(super) fn look_at_lease(&mut self, slot: usize, life: u64) -> Result<(), Violation> {
        let answered = !self.kube_faults.read_fails(self.now, &mut self.chance);
        let impatience = self.kube_faults.lease_skew(&mut self.chance);
        let now = self.now;
        let (lease, calm) = (&mut self.lease, self.calm);
        let Some(process) = self.processes[slot].as_mut().filter(|process| process.life == life) else {
            return Ok(());
        };
        if process.frozen_until.is_some() {
            return Ok(());
        }
        let local = process.clock.local(now);
        if process.stopping.is_some() {
            return Ok(());
        }
        let look = process.elector.look(life, local, lease, answered, impatience);
        let fence = process.elector.may_act_until().unwrap_or(local);
        let term_ends = process.clock.world(fence);
        let again = if calm && process.leads() { CALM_RETRY } else { process.elector.retry() };
        let jitter = Duration::from_millis(self.own.between(0, 200));
        self.plan_at(now + again + jitter, Happening::LeaseLook { slot, life });
        self.count_kube_faults();
        match look {
            Look::Standby | Look::Missed => Ok(()),
            Look::Renewed => {
                self.judge.renewed(slot, fence, term_ends);
                if let Some(process) = &mut self.processes[slot] {
                    process.updaters.fence(Some(fence));
                }
                self.read_consent(slot)
            }
            Look::Gained => {
                self.forget_indistinct_releases();
                self.judge.leads(slot);
                self.judge.renewed(slot, fence, term_ends);
                let others = self.processes.iter().flatten().any(|other| other.life != life && other.leads());
                if others {
                    self.coverage.injected(now, FaultKind::P3);
                    self.trace.world(now, || "two processes believe to lead".into());
                }
                if let Some(process) = &mut self.processes[slot] {
                    process.updaters.fence(Some(fence));
                    process.dies_listing = self.plan.strikes(FaultKind::P5, &mut self.chance);
                }
                self.drive(slot, Process::first(Event::LeadershipGained))?;
                self.read_consent(slot)
            }
            Look::Lost => {
                self.trace.world(now, || format!("{} has lost the lease and ends", letter(slot)));
                self.drive(slot, Process::first(Event::LeadershipLost))?;
                if let Some(process) = self.processes[slot].take() {
                    self.bury(slot, process);
                }
                Ok(())
            }
        }
    }

    /// The leader reads on its Lease which held deletions the operator allows, and takes away what is used up.
    fn read_consent(&mut self, slot: usize) -> Result<(), Violation> {
        let Some(process) = &mut self.processes[slot] else { return Ok(()) };
        if process.allowed == self.allowed {
            process.allowed.clone_from(process.engine.allowed_deletions());
            self.allowed.clone_from(&process.allowed);
            return self.drive(slot, VecDeque::new());
        }
        process.allowed.clone_from(&self.allowed);
        self.drive(slot, Process::first(Event::DeletionAllowed(self.allowed.clone())))
    }

    /// A process starts, knowing nothing.
    pub(super) fn restart(&mut self, slot: usize) {
        if self.processes[slot].is_some() {
            return;
        }
        self.lives += 1;
        let life = self.lives;
        let settings = &self.settings[slot];
        let clock = self.clocks[slot];
        let mut process = Process::new(life, settings, &self.scope, clock, self.now, &self.own, self.seeded);
        self.judge.started(slot, &settings.updater, settings.engine.egress_namespaces.clone());
        for (kind, by) in std::mem::take(&mut self.late_lists) {
            process.informer.list_at(self.now + by, kind);
        }
        self.processes[slot] = Some(Box::new(process));
        self.trace.world(self.now, || format!("{} starts", letter(slot)));
        let at = self.now + Duration::from_millis(self.own.between(0, 400));
        self.plan_at(at, Happening::LeaseLook { slot, life });
    }

    /// A process is gone. What it had on the wire may still land; it comes back after a while.
    pub(super) fn bury(&mut self, slot: usize, process: Box<Process>) {
        self.coverage.cells(&process.engine.counters().cells);
        self.orphan_requests(process.life);
        self.judge.ended(slot);
        let delay = Duration::from_millis(self.own.between(500, 8_000));
        let at = self.now + delay;
        self.plan_at(at, Happening::Restart { slot });
    }

    /// A process is asked to end (P2).
    pub(super) fn stop(&mut self, slot: usize) {
        let now = self.now;
        let Some(process) = &mut self.processes[slot] else { return };
        if process.stopping.is_some() {
            return;
        }
        process.updaters.stop();
        process.stopping = Some(now + GRACE);
        let life = process.life;
        self.plan_at(now + GRACE, Happening::GraceEnds { slot, life });
        self.end_if_idle(slot);
    }

    /// A process that was asked to end does so when nothing of it is on the wire, and then gives the lease back.
    pub(super) fn end_if_idle(&mut self, slot: usize) {
        let Some(process) = &self.processes[slot] else { return };
        let idle = process.updaters.on_the_wire() == 0 && process.kube_in_flight == 0;
        if process.stopping.is_none() || !idle {
            return;
        }
        if self.lease.holder == Some(process.life) {
            self.lease.holder = None;
            self.lease.version += 1;
        }
        self.trace.world(self.now, || format!("{} ends, the lease is given back", letter(slot)));
        if let Some(process) = self.processes[slot].take() {
            self.bury(slot, process);
        }
    }

    /// The grace period of a process that was asked to end is over: the lease runs out by itself.
    pub(super) fn grace_ends(&mut self, slot: usize, life: u64) {
        if self.alive(slot, life).is_none() {
            return;
        }
        self.trace.world(self.now, || format!("{} is ended by force", letter(slot)));
        if let Some(process) = self.processes[slot].take() {
            self.bury(slot, process);
        }
    }

    /// A frozen process goes on as if nothing had happened.
    pub(super) fn thaw(&mut self, slot: usize, life: u64) -> Result<(), Violation> {
        let Some(process) = self.alive(slot, life) else { return Ok(()) };
        if process.frozen_until.take().is_none() {
            return Ok(());
        }
        process.armed = None;
        let missed = std::mem::take(&mut process.missed);
        self.trace.world(self.now, || format!("{} thaws", letter(slot)));
        for incoming in missed {
            if self.alive(slot, life).is_some() {
                self.take_in(slot, incoming)?;
            }
        }
        let at = self.now + Duration::from_millis(self.own.between(1, 300));
        self.plan_at(at, Happening::LeaseLook { slot, life });
        Ok(())
    }

    /// How long a frozen process stays so: mostly longer than the lease by default.
    pub(super) fn freezing_time(&mut self) -> Duration {
        let lease = u64::try_from(Timing::default().lease.as_millis()).unwrap_or(15_000);
        Duration::from_millis(self.chance.between(lease / 3, lease * 4))
    }

    /// The API server goes away (K20).
    pub(super) fn server_goes_away(&mut self) {
        self.kube_faults.begin_outage(self.now);
        debug_assert!(self.kube_faults.injected().of(KubeFault::ServerAway) > 0);
        self.count_kube_faults();
    }
}
