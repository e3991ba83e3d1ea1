//! The loop itself: one task that owns the engine and the updaters.
//!
//! ```text
//! mail ─▶ engine.handle(now, event) ─▶ effects ─▶ updaters and Kubernetes
//!  ▲                                                   │
//!  └──── sleep until the nearer deadline ◀── send ◀────┘
//! ```
//!
//! One turn takes what is in the inbox (a bounded part of it), lets the engine and the updaters
//! work until neither has anything more to say, and sleeps. Nothing is awaited in between, so what
//! the engine and the updaters are told is in one order, and that order is the order of the inbox.
//!
//! The end comes in one of three ways: somebody asks for it, the lease is lost, or every handle is
//! dropped. Then nothing new is begun, plans stop at the step that they are at, what is on the wire
//! is awaited for a while, and the loop returns.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use sluice_engine::Engine;
use sluice_model::effect::{Existence, KubeOutcome};
use sluice_model::kube::Kind;
use sluice_model::plan::{Plan, Subject};
use sluice_model::seeded::Seeded;
use sluice_model::{Action, Effect, EffectId, Event, Outcome, Time};
use sluice_updater::Updaters;

use crate::azure::Azure;
use crate::clock::Clock;
use crate::inbox::{Errand, Inbox, Inside, Mail, Orders};
use crate::kube::{Kube, StatusWrite};
use crate::records::Records;
use crate::startup::StartUp;
use crate::updaters::{Shell, Tally};
use crate::waiting::Waiting;

/// So much mail is taken in one turn at most, before anything is sent.
const MAILS_PER_TURN_MAX: usize = 256;

/// Calls to Kubernetes in flight at most; further ones wait. Each call in flight needs a connection.
const KUBE_CALLS_MAX: usize = 32;
/// Notices among them at most. They go first, so that they are told although there are always writes, and are few, so
/// that writes do not wait for notices that hang.
const NOTICES_MAX: usize = 8;

/// What a controller runs with.
#[derive(Clone, Debug)]
pub struct Config {
    /// The engine's numbers and choices.
    pub engine: sluice_engine::Config,
    /// The updaters' numbers.
    pub updaters: sluice_updater::Config,
    /// The loop's own.
    pub limits: Limits,
    /// Decides nothing but jitter.
    pub seed: u64,
    /// Deliberate bugs, to see whether tests find them; none in a product.
    pub seeded: Seeded,
}

/// The limits of the loop itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// How long one call to Azure may take, should whoever sends forget its own limit. The client ends
    /// a call within a minute, with token, connection and answer, and the updaters soon after it.
    pub call: Duration,
    /// How long one call to Kubernetes may take.
    pub kube_call: Duration,
    /// How long what is on the wire is awaited at the end.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            call: Duration::from_secs(90),
            kube_call: Duration::from_secs(30),
            grace: Duration::from_secs(30),
        }
    }
}

/// How a loop ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ended {
    /// Why.
    pub why: Why,
    /// Calls that had not come to their end when the grace period was over.
    pub abandoned: usize,
    /// What the loop has counted.
    pub tally: Tally,
}

/// Why a loop ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Why {
    /// Somebody asked for it, or nobody was left who could.
    Asked,
    /// The lease was lost; whoever wants to lead again starts anew.
    LeadershipLost,
}

/// What one turn of the loop has taken out of the inbox.
#[derive(Default)]
struct Turn {
    events: VecDeque<Event>,
    mails: usize,
    /// There was more than questions, so whoever waits for something may look again.
    has_news: bool,
}

/// Engine, updaters, and the world around them.
pub struct Controller<A, K, C> {
    engine: Engine,
    shell: Shell<A>,
    kube: Arc<K>,
    /// Writes and questions that wait until fewer calls to Kubernetes are in flight.
    kube_waiting: Waiting,
    /// Notices that wait for the same.
    notices_waiting: Waiting,
    clock: C,
    inbox: Inbox,
    limits: Limits,
    records: Records,
    startup: StartUp,
    tally: Tally,
    /// When everything that was due was last done.
    worked_at: Time,
    ending: Option<(Why, Time)>,
}

impl<A, K, C> std::fmt::Debug for Controller<A, K, C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Controller")
            .field("tally", &self.tally)
            .field("ending", &self.ending)
            .finish_non_exhaustive()
    }
}

impl<A: Azure, K: Kube, C: Clock> Controller<A, K, C> {
    /// A controller that has heard nothing yet and may not begin anything.
    pub fn new(config: Config, inbox: Inbox, azure: A, kube: K, clock: C) -> Controller<A, K, C> {
        let scope = config.engine.scope.clone();
        let updaters = Updaters::new(config.updaters, scope, config.seed, config.seeded);
        Controller {
            engine: Engine::new(config.engine, config.seed, config.seeded),
            shell: Shell::new(updaters, Arc::new(azure), config.limits.call),
            kube: Arc::new(kube),
            kube_waiting: Waiting::default(),
            notices_waiting: Waiting::default(),
            clock,
            inbox,
            limits: config.limits,
            records: Records::default(),
            startup: StartUp::default(),
            tally: Tally::default(),
            worked_at: Time::ZERO,
            ending: None,
        }
    }

    /// Works until it is asked to end or loses the lease.
    pub async fn run(mut self) -> Ended {
        loop {
            let deadline = self.next_deadline();
            let mut mail = Some(self.inbox.next(&self.clock, deadline).await);
            let mut turn = Turn::default();
            while let Some(next) = mail {
                self.take(next, &mut turn);
                mail = if turn.mails < MAILS_PER_TURN_MAX { self.inbox.at_hand() } else { None };
            }
            self.work(turn.events);
            self.startup.look(self.clock.now(), &self.engine);
            self.tally.turns += 1;
            if turn.has_news {
                self.inbox.turned(self.tally.turns);
            }
            if let Some(ended) = self.ended() {
                return ended;
            }
        }
    }

    fn next_deadline(&mut self) -> Option<Time> {
        let own = self.ending.map(|(_, grace_ends)| grace_ends);
        let others = match self.ending {
            None => [self.engine.next_deadline(), self.shell.logic.next_deadline()],
            // Only the time limits of what is on the wire.
            Some(_) => [None, self.shell.logic.next_deadline()],
        };
        let next = others.into_iter().flatten().chain(own).min()?;
        let now = self.clock.now();
        if next > now {
            return Some(next);
        }
        if next > self.worked_at {
            // It has come while we worked.
            return Some(now);
        }
        // Everything that was due has been done, so a deadline that is still in the past would
        // keep the loop turning for nothing.
        self.tally.wakes_in_vain += 1;
        Some(now + Duration::from_millis(1))
    }

    fn take(&mut self, mail: Mail, turn: &mut Turn) {
        let now = self.clock.now();
        self.tally.inbox_depth_max = self.inbox.depth_max;
        self.tally.panics = self.inbox.panics;
        turn.mails += 1;
        turn.has_news |= !matches!(mail, Mail::Asked(_));
        match mail {
            Mail::Fact(event) => {
                let lost = event == Event::LeadershipLost;
                tracing::trace!(?event, "event received");
                turn.events.push_back(event);
                if lost {
                    self.end(now, Why::LeadershipLost);
                }
            }
            Mail::Asked(question) => {
                // Whoever tells us something and then asks is answered with that in mind.
                self.work(std::mem::take(&mut turn.events));
                self.tally.notices_held_back = self.kube.notices_held_back() + self.notices_waiting.dropped();
                question(&Inside {
                    engine: &self.engine,
                    updaters: &self.shell.logic,
                    tally: &self.tally,
                    journal: &self.records.journal,
                });
            }
            Mail::Replied(call, reply) => {
                self.tally.calls_ended += 1;
                self.records.journal.replied(now, call, &reply);
                self.shell.replied(now, call, reply);
            }
            Mail::KubeEnded(id, outcome) => turn.events.push_back(Event::EffectFinished { id, outcome }),
            Mail::Ordered(orders) => {
                self.shell.ordered(orders);
                if orders.lost {
                    turn.events.push_back(Event::LeadershipLost);
                    self.end(now, Why::LeadershipLost);
                }
                if orders.stop {
                    self.end(now, Why::Asked);
                }
            }
            Mail::Told | Mail::Due => {}
        }
    }

    /// Lets engine and updaters work until neither has anything more to do at this moment.
    fn work(&mut self, mut events: VecDeque<Event>) {
        let now = self.clock.now();
        self.worked_at = now;
        self.shell.logic.tick(now);
        if events.is_empty() && self.engine.next_deadline().is_some_and(|at| at <= now) {
            events.push_back(Event::Tick);
        }
        loop {
            while let Some(event) = events.pop_front() {
                let now = self.clock.now();
                if let Event::EffectFinished { id, outcome } = &event {
                    self.records.ended(now, *id, outcome);
                }
                self.startup.saw(now, &event);
                for effect in self.engine.handle(now, event) {
                    events.extend(self.begin(now, effect));
                }
            }
            self.call_kube();
            let reports =
                self.shell.send_all(&self.clock, &mut self.inbox, &mut self.records, &mut self.tally);
            if reports.is_empty() {
                return;
            }
            events.extend(reports);
        }
    }

    /// Begins an effect, or lets it wait; returns the end of the one that it replaces.
    fn begin(&mut self, now: Time, effect: Effect) -> Option<Event> {
        if self.ending.is_some() {
            self.tally.effects_not_begun += 1;
            return None;
        }
        self.records.begun(now, &effect, self.service_of(&effect));
        if self.shell.start(now, &effect) {
            return None;
        }
        match effect.action {
            Action::Notify(_) => self.notices_waiting.put(effect),
            Action::Relist(kind) => {
                self.relist(kind);
                None
            }
            _ => self.kube_waiting.put(effect),
        }
    }

    /// Begins calls to Kubernetes that wait, as far as the limits allow.
    fn call_kube(&mut self) {
        while self.inbox.kube_calls() < KUBE_CALLS_MAX {
            let may_notify = self.inbox.notices() < NOTICES_MAX;
            let notice = if may_notify { self.notices_waiting.next() } else { None };
            let Some(effect) = notice.or_else(|| self.kube_waiting.next()) else { break };
            self.begin_kube(effect);
        }
    }

    /// Has one kind listed again. This only signals the watch, so it needs neither the lease nor a free place among the
    /// calls.
    fn relist(&mut self, kind: Kind) {
        let kube = Arc::clone(&self.kube);
        self.inbox.send_off(Errand::Relist, async move {
            kube.relist(kind);
            Mail::Told
        });
    }

    fn begin_kube(&mut self, effect: Effect) {
        let kube = Arc::clone(&self.kube);
        match effect.action {
            Action::AddFinalizer(object) => {
                self.write(effect.id, async move { kube.add_finalizer(object).await });
            }
            Action::RemoveFinalizer(object) => {
                self.write(effect.id, async move { kube.remove_finalizer(object).await });
            }
            Action::WriteStatus { object, ingress, retract, conditions } => {
                let write = StatusWrite { object, ingress, retract, conditions };
                self.write(effect.id, async move { kube.write_status(write).await });
            }
            Action::ConfirmGone(object) => {
                let look = async move { Outcome::Existence(kube.look_for(object).await) };
                let errand = Errand::KubeLook(effect.id);
                self.ask_kube(effect.id, errand, look, Outcome::Existence(Existence::Unclear));
            }
            Action::Notify(notice) => self.tell(async move { kube.notify(notice).await }),
            Action::RunPlan(_)
            | Action::ResumePlan(_)
            | Action::SyncLocations(_)
            | Action::List(_)
            | Action::Relist(_) => {
                unreachable!("none of these waits")
            }
        }
    }

    /// Whom a plan is for, by the name that people know.
    fn service_of(&self, effect: &Effect) -> Option<String> {
        let Action::RunPlan(Plan { subject: Subject::Service(key), .. }) = &effect.action else {
            return None;
        };
        let object = self.engine.view_of(key).and_then(|view| view.object);
        Some(object.map_or_else(|| key.to_string(), |name| name.to_string()))
    }

    fn write(&mut self, id: EffectId, write: impl Future<Output = KubeOutcome> + Send + 'static) {
        let unavailable = Outcome::Kube(KubeOutcome::Unavailable);
        let write = async move { Outcome::Kube(write.await) };
        self.ask_kube(id, Errand::KubeWrite(id), write, unavailable);
    }

    /// Sends a call to Kubernetes off, as long as the lease holds when it begins; `otherwise` is
    /// how it ends when it is not made or not answered.
    fn ask_kube(
        &mut self,
        id: EffectId,
        errand: Errand,
        call: impl Future<Output = Outcome> + Send + 'static,
        otherwise: Outcome,
    ) {
        let clock = self.clock.clone();
        let orders = self.inbox.orders();
        let limit = self.limits.kube_call;
        self.inbox.send_off(errand, async move {
            let now = clock.now();
            if !orders.borrow().allow(now) {
                return Mail::KubeEnded(id, otherwise);
            }
            let outcome = tokio::select! {
                biased;
                outcome = call => outcome,
                () = clock.sleep_until(now + limit) => otherwise,
            };
            Mail::KubeEnded(id, outcome)
        });
    }

    /// Sends a notice off, of which nobody hears again: as long as the lease holds when it begins, and
    /// no longer than any call to Kubernetes.
    fn tell(&mut self, notice: impl Future<Output = ()> + Send + 'static) {
        let clock = self.clock.clone();
        let orders = self.inbox.orders();
        let limit = self.limits.kube_call;
        self.inbox.send_off(Errand::Notice, async move {
            let now = clock.now();
            if !orders.borrow().allow(now) {
                tracing::debug!("event not sent: lease expired or shutting down");
                return Mail::Told;
            }
            tokio::select! {
                biased;
                () = notice => {}
                () = clock.sleep_until(now + limit) => tracing::warn!("event not sent: request to Kubernetes timed out"),
            }
            Mail::Told
        });
    }

    fn end(&mut self, now: Time, why: Why) {
        if self.ending.is_some() {
            return;
        }
        tracing::info!(reason = ?why, in_flight = self.inbox.under_way(), "control loop stopping; starting no new operations");
        self.tally.effects_not_begun += (self.kube_waiting.len() + self.notices_waiting.len()) as u64;
        self.kube_waiting.clear();
        self.notices_waiting.clear();
        self.shell.ordered(Orders { fence: None, stop: true, lost: false });
        self.ending = Some((why, now + self.limits.grace));
    }

    fn ended(&self) -> Option<Ended> {
        let (why, grace_ends) = self.ending?;
        let abandoned = self.inbox.under_way();
        if abandoned > 0 && self.clock.now() < grace_ends {
            return None;
        }
        tracing::info!(reason = ?why, abandoned, "control loop stopped");
        Some(Ended { why, abandoned, tally: self.tally })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_knows_more_about_a_call_ends_it_first() {
        let client = sluice_arm::Limits::default().answer;
        let updaters = sluice_updater::Config::default().answer_limit;
        assert!(client < updaters && updaters < Limits::default().call, "{client:?} {updaters:?}");
    }
}
