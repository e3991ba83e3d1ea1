//! The service updater, the locations updater and the lister, without I/O.
//!
//! [`Updaters::start`] takes an effect of the engine, [`Updaters::next_output`] says what to
//! send, [`Updaters::replied`] takes the answer, and the outcome comes out as an event for
//! the engine. In between lies every decision about order, batching, budget, polling and
//! time limits; whoever sends and receives decides nothing.
//!
//! ```text
//! RunPlan ───────▶ plan_run ──┬─▶ commit ──┐
//! SyncLocations ─▶ locations ─┼────────────┼─▶ wire ─▶ Send      (budget, poll, answer)
//! List ──────────▶ lister ────┴────────────┘     ◀── replied
//! ```
//!
//! How to drive it: after every call of [`start`](Updaters::start),
//! [`replied`](Updaters::replied), [`tick`](Updaters::tick) or [`fence`](Updaters::fence) take
//! [`next_output`](Updaters::next_output) until it is `None`, then sleep until
//! [`next_deadline`](Updaters::next_deadline).
//!
//! Missing on purpose: whether and when to try a failed plan, sync or listing again. That is
//! the engine's decision. Here only a 429, a poll, a page and a lagging read are repeated.
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod answer;
mod budget;
mod commit;
mod config;
mod errand;
mod gates;
mod lister;
mod locations;
mod numbers;
mod pauses;
mod plan_run;
mod poll;
mod steps;
mod tokens;
mod wire;

#[cfg(test)]
mod tests;

use alloc::collections::VecDeque;

use sluice_model::call::{Reply, Request};
use sluice_model::event::Wait;
use sluice_model::names::Scope;
use sluice_model::plan::StepResult;
use sluice_model::seeded::Seeded;
use sluice_model::{Action, Effect, EffectId, Event, Time};

pub use config::{BucketSize, Config, PollSchedule};
pub use numbers::{GateNumbers, Numbers, Remaining};
pub use steps::{StepEnd, StepNote};

use commit::Commit;
use errand::{Happening, Owner};
use lister::{Asker, Lister};
use locations::Locations;
use plan_run::{Means, Plans};
use wire::Wire;

/// One request that was sent; its reply comes back under the same number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CallId(pub u64);

/// What the updaters want done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// Send this now, and give the reply back.
    Send {
        /// The number for the reply.
        call: CallId,
        /// What to send.
        request: Request,
        /// On whose behalf; of a shared call, the oldest effect.
        effect: EffectId,
    },
    /// Tell the engine.
    Report(Event),
}

/// Events on their way to the engine.
type Reports = VecDeque<Event>;

/// Everything between the engine's effects and Azure's answers.
pub struct Updaters {
    scope: Scope,
    wire: Wire,
    plans: Plans,
    commit: Commit,
    locations: Locations,
    lister: Lister,
    reports: Reports,
}

impl Updaters {
    /// Updaters that have done nothing yet. The fence is closed until it is first raised.
    pub fn new(config: Config, scope: Scope, seed: u64, seeded: Seeded) -> Updaters {
        Updaters {
            scope,
            wire: Wire::new(&config, seed, seeded),
            plans: Plans::new(&config),
            commit: Commit::new(&config, seeded),
            locations: Locations::default(),
            lister: Lister::new(&config, seeded),
            reports: Reports::new(),
        }
    }

    /// Takes `RunPlan`, `ResumePlan`, `SyncLocations` and `List`; `false` for everything else,
    /// which is not ours to do.
    pub fn start(&mut self, now: Time, effect: &Effect) -> bool {
        self.tick(now);
        match &effect.action {
            Action::RunPlan(plan) => self.with_plans(|plans, means| plans.start(effect.id, plan, means)),
            Action::ResumePlan(id) => self.with_plans(|plans, means| plans.resume(*id, means)),
            Action::SyncLocations(updates) => self.locations.start(
                effect.id,
                updates.clone(),
                &self.scope,
                &mut self.wire,
                &mut self.reports,
            ),
            Action::List(what) => self.lister.start(effect.id, *what, &self.scope, &mut self.wire),
            _ => return false,
        }
        true
    }

    /// The reply to a call. One that nobody waits for any more is ignored.
    pub fn replied(&mut self, now: Time, call: CallId, reply: Reply) {
        self.tick(now);
        self.wire.replied(call, reply);
        // An answer that took long can make a timer due that was not there before.
        self.tick(now);
    }

    /// Time has passed. A time that is older than the newest seen changes nothing.
    pub fn tick(&mut self, now: Time) {
        self.wire.tick(now);
        self.settle();
    }

    /// No request is begun at or after this moment, which every renewal of the lease raises;
    /// `None`: none from now on.
    pub fn fence(&mut self, until: Option<Time>) {
        self.wire.fence(until);
    }

    /// What to do next: everything there is to report, then what can be sent, first come
    /// first served.
    ///
    /// Takes the time because the lease is checked right before each send: whoever sends may
    /// have been held up since the last call.
    pub fn next_output(&mut self, now: Time) -> Option<Output> {
        if now > self.wire.now() {
            self.tick(now);
        }
        if let Some(report) = self.reports.pop_front() {
            return Some(Output::Report(report));
        }
        if let Some((call, request, effect)) = self.wire.next_send() {
            return Some(Output::Send { call, request, effect });
        }
        self.wire.settle_down();
        self.settle();
        self.reports.pop_front().map(Output::Report)
    }

    /// What became of a step, oldest first; for the log.
    pub fn next_step_note(&mut self) -> Option<StepNote> {
        self.plans.notes.take()
    }

    /// When to call [`Updaters::tick`] if nothing happens before.
    pub fn next_deadline(&self) -> Option<Time> {
        self.wire.next_deadline()
    }

    /// What has been done so far, and how things stood at the newest time seen.
    pub fn numbers(&self) -> Numbers {
        self.wire.numbers_now()
    }

    /// How many requests await their reply.
    pub fn on_the_wire(&self) -> usize {
        self.wire.on_the_wire()
    }

    /// Begins nothing new from now on; what is on the wire is awaited.
    pub fn stop(&mut self) {
        self.wire.stop();
    }

    fn with_plans(&mut self, act: impl FnOnce(&mut Plans, &mut Means<'_>)) {
        let mut means = Means {
            scope: &self.scope,
            wire: &mut self.wire,
            commit: &mut self.commit,
            lister: &mut self.lister,
            reports: &mut self.reports,
        };
        act(&mut self.plans, &mut means);
    }

    /// Tells everybody what has happened, and what follows from that.
    fn settle(&mut self) {
        while let Some(happening) = self.wire.next_happening() {
            match happening {
                Happening::BecameSlow(id) => {
                    self.with_plans(|plans, means| plans.release(id, Wait::SlowOperation, means));
                }
                Happening::FellAsleep(id, wait) => {
                    self.with_plans(|plans, means| plans.release(id, wait, means));
                }
                Happening::Held(Owner::Locations | Owner::Plan(_), id, wait) => {
                    self.reports.push_back(Event::Held { id, wait });
                }
                Happening::Held(Owner::Commit, _, wait) => {
                    self.reports.extend(self.commit.plans().map(|id| Event::Held { id, wait }));
                }
                Happening::Held(Owner::Walk(_), ..) => {}
                Happening::GateOpened(id) => {
                    self.with_plans(|plans, means| plans.gate_opened(id, means));
                }
                Happening::Paused(calls, wait) => self.reports.push_back(Event::Throttled { calls, wait }),
                Happening::Ended { owner: Owner::Plan(id), result, .. } => {
                    self.with_plans(|plans, means| plans.call_ended(id, result, means));
                }
                Happening::Ended { owner: Owner::Commit, result, .. } => {
                    for (id, result) in
                        self.commit.ended(result, &self.scope, &mut self.wire, &mut self.lister)
                    {
                        let result = result.map(|()| StepResult::Done);
                        self.with_plans(|plans, means| plans.step_ended(id, result, means));
                    }
                }
                Happening::Ended { owner: Owner::Locations, result, .. } => {
                    self.locations.ended(result, &self.scope, &mut self.wire, &mut self.reports);
                }
                Happening::Ended { owner: Owner::Walk(walk), result, sent_at } => {
                    let Some((askers, began, seen)) = self.lister.page_ended(
                        walk,
                        result,
                        sent_at,
                        &self.scope,
                        &mut self.wire,
                        &mut self.reports,
                    ) else {
                        continue;
                    };
                    for asker in askers {
                        match asker {
                            Asker::Step(id, name) => self.with_plans(|plans, means| {
                                plans.registrations_seen(id, &name, &seen, means);
                            }),
                            Asker::Ticket(ticket, why) => {
                                let (id, result) = commit::judge(&ticket, &why, &seen);
                                let result = result.map(|()| StepResult::Done);
                                self.with_plans(|plans, means| plans.step_ended(id, result, means));
                            }
                        }
                    }
                    if let Ok(all) = seen {
                        self.reports.push_back(Event::RegistrationsRead { began, all });
                    }
                }
            }
        }
    }
}
