//! One process at work: what reaches it, what its engine makes of that, and what it sends.

use std::collections::VecDeque;

use sluice_model::effect::Action;
use sluice_model::{Event, Outcome};
use sluice_updater::Output;

use super::process::Process;
use super::wire::Incoming;
use super::{World, letter};
use crate::invariants::Tally;
use crate::names::{FaultKind, Violation};

/// So many wake-ups in one millisecond are a deadline that never passes.
const WAKES_AT_ONCE_MAX: u32 = 2_000;

/// What becomes of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    Lives,
    Dies,
}

impl World {
    /// Wakes a process whose time has come.
    pub(super) fn wake(&mut self, slot: usize, life: u64) -> Result<(), Violation> {
        let now = self.now;
        let Some(process) = self.alive(slot, life) else { return Ok(()) };
        if process.armed.is_none_or(|armed| armed > now) {
            return Ok(());
        }
        process.armed = None;
        if process.frozen_until.is_some() {
            return Ok(());
        }
        self.wakes_at_once += 1;
        if self.wakes_at_once > WAKES_AT_ONCE_MAX {
            let Some(process) = &self.processes[slot] else { return Ok(()) };
            let text = format!(
                "a deadline never passes: at {} the engine wants to wake at {:?}, the updaters at {:?}, the watch at {:?}",
                process.clock.local(now),
                process.engine.next_deadline(),
                process.updaters.next_deadline(),
                process.informer.next_event_at(now, &self.cluster, &self.kube_faults)
            );
            return Err(Violation::internal(text));
        }
        self.drive(slot, VecDeque::new())
    }

    pub(super) fn alive(&mut self, slot: usize, life: u64) -> Option<&mut Process> {
        self.processes[slot].as_deref_mut().filter(|process| process.life == life)
    }

    pub(super) fn reach(&mut self, slot: usize, life: u64, incoming: Incoming) -> Result<(), Violation> {
        let Some(process) = self.alive(slot, life) else { return Ok(()) };
        if process.frozen_until.is_some() {
            process.missed.push_back(incoming);
            return Ok(());
        }
        self.take_in(slot, incoming)
    }

    /// One answer reaches a process that is awake.
    pub(super) fn take_in(&mut self, slot: usize, incoming: Incoming) -> Result<(), Violation> {
        let Some(process) = &mut self.processes[slot] else { return Ok(()) };
        let local = process.clock.local(self.now);
        match incoming {
            Incoming::Reply { call, reply } => {
                self.trace.replied(self.now, letter(slot), &format!("c{}", call.0), &reply);
                let mut tally = Tally { coverage: &mut self.coverage, now: self.now };
                self.judge.answered(slot, local, call.0, &reply, &mut tally)?;
                process.updaters.replied(local, call, reply);
                self.drive(slot, VecDeque::new())
            }
            Incoming::Written { effect, write, outcome } => {
                self.judge.kube_answered(slot, &write, &outcome);
                process.kube_in_flight = process.kube_in_flight.saturating_sub(1);
                let event = Event::EffectFinished { id: effect, outcome: Outcome::Kube(outcome) };
                self.drive(slot, Process::first(event))
            }
            Incoming::Looked { effect, existence } => {
                process.kube_in_flight = process.kube_in_flight.saturating_sub(1);
                let event = Event::EffectFinished { id: effect, outcome: Outcome::Existence(existence) };
                self.drive(slot, Process::first(event))
            }
        }
    }

    /// Lets a process work until it has nothing more to do at this moment, or dies.
    pub(super) fn drive(&mut self, slot: usize, events: VecDeque<Event>) -> Result<(), Violation> {
        let Some(mut process) = self.processes[slot].take() else { return Ok(()) };
        match self.work(slot, &mut process, events)? {
            Fate::Lives => {
                let linger = !self.settings[slot].engine.linger.is_zero();
                let views = process.engine.services();
                let compared = process.engine.start_up().found.is_some();
                let mut tally = Tally { coverage: &mut self.coverage, now: self.now };
                self.judge.views(slot, &views, compared, linger, &mut tally)?;
                self.processes[slot] = Some(process);
                self.end_if_idle(slot);
            }
            Fate::Dies => self.bury(slot, process),
        }
        Ok(())
    }

    fn work(
        &mut self,
        slot: usize,
        process: &mut Process,
        mut events: VecDeque<Event>,
    ) -> Result<Fate, Violation> {
        let local = process.clock.local(self.now);
        process.updaters.tick(local);
        if events.is_empty() && process.engine.next_deadline().is_some_and(|at| at <= local) {
            events.push_back(Event::Tick);
        }
        loop {
            while let Some(event) = process.informer.poll(self.now, &self.cluster, &mut self.kube_faults) {
                events.push_back(event);
            }
            self.count_kube_faults();
            while let Some(event) = events.pop_front() {
                let effects = process.engine.handle(local, event.clone());
                self.trace.fact(self.now, letter(slot), &event, &effects);
                let mut tally = Tally { coverage: &mut self.coverage, now: self.now };
                self.judge.handled(slot, local, &event, &effects, &self.cluster, &mut tally)?;
                for effect in effects {
                    match &effect.action {
                        Action::RunPlan(_)
                        | Action::ResumePlan(_)
                        | Action::SyncLocations(_)
                        | Action::List(_) => {
                            process.updaters.start(local, &effect);
                        }
                        Action::Relist(kind) => process.informer.relist(self.now, *kind),
                        Action::Notify(_) => {}
                        Action::AddFinalizer(_)
                        | Action::RemoveFinalizer(_)
                        | Action::WriteStatus { .. }
                        | Action::ConfirmGone(_) => {
                            if self.kube_call(slot, process, &effect)? == Fate::Dies {
                                return Ok(Fate::Dies);
                            }
                        }
                    }
                }
            }
            let mut idle = true;
            while let Some(output) = process.updaters.next_output(local) {
                match output {
                    Output::Report(event) => {
                        events.push_back(event);
                        idle = false;
                    }
                    Output::Send { call, request, .. } => {
                        if self.send(slot, process, call, request)? == Fate::Dies {
                            return Ok(Fate::Dies);
                        }
                    }
                }
            }
            if idle {
                return Ok(Fate::Lives);
            }
        }
    }

    /// Whether the process dies at this external call, and whether the call is made first.
    pub(super) fn crash_here(&mut self, listing: bool) -> Option<bool> {
        let number = self.external_calls;
        self.external_calls += 1;
        if let Some(crash) = self.crash.filter(|crash| crash.call == number) {
            self.crash = None;
            self.coverage.injected(self.now, FaultKind::P1);
            return Some(crash.after);
        }
        if listing {
            self.coverage.injected(self.now, FaultKind::P5);
            return Some(true);
        }
        if self.plan.strikes(FaultKind::P1, &mut self.chance) {
            self.coverage.injected(self.now, FaultKind::P1);
            return Some(self.chance.chance(500));
        }
        None
    }
}
