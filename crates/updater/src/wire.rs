//! Carries one request to its real end: budget, lease, pause, answer, polls, time limits.
//!
//! An *errand* is one request on somebody's behalf. It waits at its gate until the lease and
//! the budget let it go, is sent again after a 429, is followed by polls while Azure works on
//! it, and ends exactly once: with a payload or with a failure.
//!
//! ```text
//! Delayed ─▶ Queued ─────▶ Sent ──▶ Resting ◀─▶ PollQueued ─▶ PollSent
//!              ▲ │          │           ▲                        │
//!              │ ▼          │ 429       └────────────────────────┘
//!           Asleep ◀────────┘
//! ```
//!
//! A plan's errand that would wait long at its gate falls asleep, so that its plan can give
//! its slot back; it is woken when the plan has one again. Only plans have slots, so nobody
//! else's errand sleeps.
//!
//! A 429 about another operation on the same resource is no matter of the gate: that errand
//! alone waits, with a timer, and everybody else goes on.
//!
//! Missing on purpose: what to send next. That is the business of the errand's owner.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::format;
use core::time::Duration;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use sluice_model::azure::ArmId;
use sluice_model::call::{Answer, Payload, Reply, Request};
use sluice_model::event::Wait;
use sluice_model::seeded::Seeded;
use sluice_model::{EffectId, Failure, FailureClass, Time};

use crate::CallId;
use crate::answer::{self, Pause, Progress, Throttle, Verdict};
use crate::budget::{Budget, Gate};
use crate::config::Config;
use crate::errand::{Busy, Errand, ErrandId, Happening, Owner, Passage, Queue, Stage};
use crate::numbers::Numbers;
use crate::pauses::{self, Throttled};
use crate::poll::Habits;

/// Everything between the owners of errands and Azure.
pub(crate) struct Wire {
    pub(crate) now: Time,
    pub(crate) fence: Option<Time>,
    pub(crate) stopped: bool,
    pub(crate) budget: Budget,
    pub(crate) habits: Habits,
    pub(crate) errands: HashMap<ErrandId, Errand, FixedState>,
    pub(crate) calls: HashMap<CallId, ErrandId, FixedState>,
    /// Calls that nobody waits for any more. Should an answer come after all, a wait that it asks
    /// for is kept.
    pub(crate) overdue: BTreeMap<CallId, Passage>,
    /// Until when Azure wants nothing more of a kind for a resource, by the last answers about it; remembered
    /// a while longer, so that whoever asks next goes on where the last one stopped.
    pub(crate) busy: BTreeMap<(Gate, ArmId), Busy>,
    pub(crate) queues: [Queue; 4],
    pub(crate) timers: BTreeSet<(Time, ErrandId)>,
    pub(crate) happened: VecDeque<Happening>,
    pub(crate) errands_begun: u64,
    pub(crate) calls_begun: u64,
    pub(crate) jitter: u64,
    pub(crate) answer_limit: Duration,
    pub(crate) budget_patience: Duration,
    pub(crate) busy_limit: Duration,
    pub(crate) numbers: Numbers,
    pub(crate) seeded: Seeded,
}

impl Wire {
    pub(crate) fn new(config: &Config, seed: u64, seeded: Seeded) -> Wire {
        Wire {
            now: Time::ZERO,
            fence: None,
            stopped: false,
            budget: Budget::new(config, seeded),
            habits: Habits::new(config),
            errands: HashMap::default(),
            calls: HashMap::default(),
            overdue: BTreeMap::new(),
            busy: BTreeMap::new(),
            queues: Default::default(),
            timers: BTreeSet::new(),
            happened: VecDeque::new(),
            errands_begun: 0,
            calls_begun: 0,
            jitter: seed,
            answer_limit: config.answer_limit,
            budget_patience: config.budget_patience,
            busy_limit: config.busy_limit,
            numbers: Numbers::default(),
            seeded,
        }
    }

    /// The newest time seen.
    pub(crate) fn now(&self) -> Time {
        self.now
    }

    pub(crate) fn on_the_wire(&self) -> usize {
        self.calls.len()
    }

    pub(crate) fn fence(&mut self, until: Option<Time>) {
        self.fence = until;
    }

    pub(crate) fn stop(&mut self) {
        self.stopped = true;
    }

    /// Begins an errand, now or after a while.
    pub(crate) fn begin(
        &mut self,
        owner: Owner,
        effect: EffectId,
        request: Request,
        delay: Duration,
    ) -> ErrandId {
        self.begin_in_order(owner, effect, request, delay, false)
    }

    /// Begins an errand that goes last at its gate if it is cosmetic.
    pub(crate) fn begin_in_order(
        &mut self,
        owner: Owner,
        effect: EffectId,
        request: Request,
        delay: Duration,
        cosmetic: bool,
    ) -> ErrandId {
        self.errands_begun += 1;
        let id = ErrandId(self.errands_begun);
        let place = (cosmetic, id.0);
        let errand = Errand {
            owner,
            effect,
            request,
            place,
            stage: Stage::Delayed,
            timer: None,
            sent_at: self.now,
            operation: None,
            held: None,
        };
        self.errands.insert(id, errand);
        if delay.is_zero() {
            self.queue(id, Stage::Queued)
        } else {
            self.set_timer(id, self.now + delay)
        }
        id
    }

    /// The request of an errand that is not on its way yet, to be added to.
    pub(crate) fn unsent(&mut self, id: ErrandId) -> Option<&mut Request> {
        let errand = self.errands.get_mut(&id)?;
        matches!(errand.stage, Stage::Delayed | Stage::Queued).then_some(&mut errand.request)
    }

    pub(crate) fn next_happening(&mut self) -> Option<Happening> {
        self.happened.pop_front()
    }

    /// Time has passed.
    pub(crate) fn tick(&mut self, now: Time) {
        self.now = self.now.max(now);
        self.budget.refill(self.now);
        let now = self.now;
        self.busy.retain(|_, busy| busy.pause.until + BUSY_REMEMBERED > now);
        while let Some(&(at, id)) = self.timers.first() {
            if at > self.now {
                return;
            }
            self.timers.pop_first();
            if let Some(errand) = self.errands.get_mut(&id) {
                errand.timer = None;
                self.due(id);
            }
        }
    }

    fn due(&mut self, id: ErrandId) {
        let now = self.now;
        let Some(errand) = self.errands.get_mut(&id) else { return };
        if let Some(operation) = &mut errand.operation {
            if operation.limit_at <= now {
                self.numbers.operations_overdue += 1;
                let failure = operation.overdue();
                return self.end(id, Err(failure));
            }
            if operation.slow_at.is_some_and(|at| at <= now) {
                operation.slow_at = None;
                if let Owner::Plan(effect) = errand.owner {
                    self.happened.push_back(Happening::BecameSlow(effect));
                }
            }
        }
        match errand.stage {
            Stage::Delayed => return self.queue(id, Stage::Queued),
            // What was in its way should be over; its plan may need a slot first.
            Stage::Asleep => return self.happened.push_back(Happening::GateOpened(errand.effect)),
            Stage::Sent(call) if errand.sent_at + self.answer_limit <= now => {
                return self.lose(call, id);
            }
            Stage::PollSent(call, at) if at + self.answer_limit <= now => {
                return self.lose(call, id);
            }
            Stage::Resting if errand.operation.as_ref().is_none_or(|it| it.next_poll <= now) => {
                self.queue(id, Stage::PollQueued);
            }
            _ => {}
        }
        self.arm(id);
    }

    /// A reply has come; one that nobody waits for changes nothing but the budget.
    pub(crate) fn replied(&mut self, call: CallId, reply: Reply) {
        if let Some(id) = self.calls.remove(&call) {
            return self.answered(id, reply);
        }
        self.numbers.late_replies += 1;
        let Some(passage) = self.overdue.remove(&call) else { return };
        let Some(failure) = Failure::in_reply(&reply) else {
            if let Reply::Answered(Answer {
                payload: Payload::Operation(_), retry_after: Some(wait), ..
            }) = reply
            {
                // The operation runs on, and Azure says when to ask again.
                self.bar(passage.gate, passage.target, wait);
            }
            return;
        };
        if failure.class == FailureClass::Throttled {
            match Throttle::of(&failure).about {
                Pause::Resource(wait) => self.note_busy(passage.gate, passage.target, wait),
                about => self.pause(passage.gate, about, failure.retry_after, passage.sent_at),
            }
        } else if let Some(wait) = failure.retry_after {
            let (gate, target) = passage.held_by(&reply);
            self.bar(gate, target, wait);
        }
    }

    /// No reply has come in time.
    fn lose(&mut self, call: CallId, id: ErrandId) {
        self.close(call, id);
        let limit_s = self.answer_limit.as_secs();
        self.answered(id, Reply::lost(&format!("no answer within {limit_s} s")));
    }

    /// Stops waiting for a call.
    fn close(&mut self, call: CallId, id: ErrandId) {
        if self.calls.remove(&call).is_none() {
            return;
        }
        if let Some(errand) = self.errands.get(&id) {
            self.overdue.insert(call, errand.passage());
        }
        if self.overdue.len() > OVERDUE_MAX {
            self.overdue.pop_first();
        }
    }

    fn answered(&mut self, id: ErrandId, reply: Reply) {
        let Some(errand) = self.errands.get_mut(&id) else { return };
        let polled = matches!(errand.stage, Stage::PollSent(..));
        let Passage { gate, sent_at, target, wanted } = errand.passage();
        let (begun_at, accepted) = (errand.sent_at, pauses::is_accepted(&reply));
        match &reply {
            Reply::Answered(answer) => {
                if let Some(remaining) = answer.remaining {
                    self.numbers.remains(gate.bucket(), remaining);
                    self.budget.believe(self.now, gate, remaining);
                }
            }
            Reply::Lost(_) => self.numbers.lost += 1,
            Reply::NotSent(_) => {}
        }
        let went = match &mut errand.operation {
            Some(operation) if polled => {
                match answer::to_poll(&errand.request, &operation.watch, reply, self.seeded) {
                    Progress::Finished(payload) => {
                        self.habits.learn(operation, sent_at);
                        Went::Over(Ok(payload))
                    }
                    Progress::AskAgain(retry_after) => {
                        operation.trouble = None;
                        self.habits.rest(operation, sent_at, self.now, retry_after);
                        Went::On
                    }
                    Progress::Unclear(failure) => {
                        self.habits.look_again(operation, self.now, failure.retry_after);
                        operation.trouble = Some(failure);
                        Went::On
                    }
                    Progress::Throttled(throttle) => Went::Back(throttle, Stage::PollQueued),
                    Progress::Failed(failure) => Went::Over(Err(failure)),
                }
            }
            _ => match answer::to_request(&errand.request, reply, self.seeded) {
                Verdict::Finished(payload) => Went::Over(Ok(payload)),
                Verdict::Running(watch, retry_after) => {
                    errand.operation = Some(self.habits.operation(
                        &errand.request,
                        watch,
                        errand.sent_at,
                        self.now,
                        retry_after,
                    ));
                    Went::On
                }
                Verdict::Throttled(throttle) => Went::Back(throttle, Stage::Queued),
                Verdict::Failed(failure) => Went::Over(Err(failure)),
            },
        };
        match went {
            Went::Over(result) => {
                self.budget.pauses.answered(self.now, gate, sent_at, accepted);
                if result.is_ok() {
                    self.no_longer_busy(&wanted, begun_at);
                }
                if let Err(Failure { retry_after: Some(wait), .. }) = &result {
                    // Whoever asks for the same thing next, for whatever reason, comes back after it; what
                    // failed is what was asked for, even if a poll has told so.
                    self.bar(wanted.0, wanted.1, *wait);
                }
                self.end(id, result);
            }
            Went::On => {
                self.budget.pauses.answered(self.now, gate, sent_at, accepted);
                errand.stage = Stage::Resting;
                if !polled {
                    self.no_longer_busy(&wanted, begun_at);
                }
                self.arm(id);
            }
            Went::Back(Throttle { failure, about: Pause::Resource(wait) }, _) => {
                let before = self.busy.get(&(gate, target.clone()));
                let since = before.and_then(|busy| busy.since).unwrap_or(self.now);
                // What has been in the way for long will be so for longer, and every question costs a call.
                let wait = wait.max((self.now.since(since) / 4).min(self.busy_limit / 2));
                self.budget.pauses.answered(self.now, gate, sent_at, accepted);
                self.note_busy(gate, target.clone(), wait);
                if self.now.since(since) > self.busy_limit {
                    // Whatever is in the way may never end, so it is shown as a failure.
                    self.end(id, Err(Failure { class: FailureClass::Transient, ..failure }));
                } else {
                    let until = self.busy.get(&(gate, target)).map_or(self.now, |it| it.pause.opens_at());
                    self.stand_back(id, until);
                }
            }
            Went::Back(Throttle { failure, about }, stage) => {
                self.pause(gate, about, failure.retry_after, sent_at);
                self.queue(id, stage);
            }
        }
    }

    /// Another operation is in this errand's way, and in nobody else's: it waits by itself. A plan
    /// gives its slot back meanwhile.
    pub(crate) fn stand_back(&mut self, id: ErrandId, until: Time) {
        let Some(errand) = self.errands.get_mut(&id) else { return };
        match (errand.stage, &mut errand.operation, errand.owner) {
            (Stage::PollQueued | Stage::PollSent(..), Some(operation), _) => {
                operation.next_poll = until;
                errand.stage = Stage::Resting;
                return self.arm(id);
            }
            (_, _, Owner::Plan(effect)) => {
                errand.stage = Stage::Asleep;
                self.happened.push_back(Happening::FellAsleep(effect, Wait::Throttled { until }));
            }
            (_, _, Owner::Commit | Owner::Locations | Owner::Walk(_)) => {
                errand.stage = Stage::Delayed;
                self.hold(id, Wait::Throttled { until });
            }
        }
        self.set_timer(id, until);
    }

    fn note_busy(&mut self, gate: Gate, target: ArmId, wait: Duration) {
        self.numbers.throttled += 1;
        self.numbers.busy += 1;
        self.bar(gate, target.clone(), wait);
        if let Some(busy) = self.busy.get_mut(&(gate, target)) {
            busy.since.get_or_insert(self.now);
        }
    }

    /// Azure took a request, so nothing is in the way of the next. A wait that has not ended yet is kept if it came
    /// with a later answer, to a request that nobody waits for any more.
    fn no_longer_busy(&mut self, wanted: &(Gate, ArmId), begun_at: Time) {
        let Some(busy) = self.busy.get_mut(wanted) else { return };
        busy.pause.accepted(self.now, begun_at);
        if busy.pause.until <= self.now {
            self.busy.remove(wanted);
        }
    }

    /// Nothing more of this kind for this resource until Azure's wait is over.
    fn bar(&mut self, gate: Gate, target: ArmId, wait: Duration) {
        let busy = self.busy.entry((gate, target)).or_default();
        busy.pause.extend(self.now, wait);
    }

    fn pause(&mut self, gate: Gate, about: Pause, wait: Option<Duration>, sent_at: Time) {
        self.jitter =
            self.jitter.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let jitter_permille = u32::try_from((self.jitter >> 33) % 1_000).unwrap_or(0);
        let asked = Throttled { gate, sent_at, in_window: about == Pause::Network, wait };
        let begun = self.budget.pauses.begin(self.now, &asked, jitter_permille);
        if let Some((calls, wait)) = begun.report {
            self.happened.push_back(Happening::Paused(calls, wait));
        }
        self.numbers.throttled += 1;
        let longer_ms = u64::try_from(begun.longer.as_millis()).unwrap_or(u64::MAX);
        self.numbers.throttled_ms = self.numbers.throttled_ms.saturating_add(longer_ms);
    }

    pub(crate) fn end(&mut self, id: ErrandId, result: Result<Payload, Failure>) {
        if let Some(Errand { stage: Stage::Sent(call) | Stage::PollSent(call, _), .. }) =
            self.errands.get(&id)
        {
            self.close(*call, id);
        }
        let Some(errand) = self.errands.remove(&id) else { return };
        if let Some(at) = errand.timer {
            self.timers.remove(&(at, id));
        }
        if errand.stage == Stage::PollQueued {
            self.queues[Gate::Reads as usize].awake.remove(&errand.place);
        }
        self.happened.push_back(Happening::Ended { owner: errand.owner, result, sent_at: errand.sent_at });
    }

    /// Sets the timer to whatever comes first at this stage.
    pub(crate) fn arm(&mut self, id: ErrandId) {
        let Some(errand) = self.errands.get(&id) else { return };
        let operation = errand.operation.as_ref();
        let limits = operation.map(|it| it.slow_at.map_or(it.limit_at, |slow| slow.min(it.limit_at)));
        let own = match errand.stage {
            Stage::Delayed => return,
            Stage::Queued | Stage::Asleep | Stage::PollQueued => None,
            Stage::Sent(_) => Some(errand.sent_at + self.answer_limit),
            Stage::Resting => operation.map(|it| it.next_poll),
            Stage::PollSent(_, at) => Some(at + self.answer_limit),
        };
        match own.into_iter().chain(limits).min() {
            Some(at) => self.set_timer(id, at),
            None => self.clear_timer(id),
        }
    }

    fn set_timer(&mut self, id: ErrandId, at: Time) {
        self.clear_timer(id);
        if let Some(errand) = self.errands.get_mut(&id) {
            errand.timer = Some(at);
            self.timers.insert((at, id));
        }
    }

    fn clear_timer(&mut self, id: ErrandId) {
        if let Some(errand) = self.errands.get_mut(&id)
            && let Some(at) = errand.timer.take()
        {
            self.timers.remove(&(at, id));
        }
    }
}

/// How long it is remembered that something was in a resource's way: longer than the pauses of whoever
/// comes back to try again.
const BUSY_REMEMBERED: Duration = Duration::from_secs(10 * 60);

/// More calls than this are not remembered once nobody waits for them.
const OVERDUE_MAX: usize = 1_000;

/// Where an errand goes after a reply.
enum Went {
    Over(Result<Payload, Failure>),
    On,
    Back(Throttle, Stage),
}
