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
//! Missing on purpose: what to send next. That is the business of the errand's owner.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use sluice_model::call::{Method, Payload, Reply, Request};
use sluice_model::event::Wait;
use sluice_model::seeded::{Bug, Seeded};
use sluice_model::{EffectId, Failure, FailureClass, Time};

use crate::CallId;
use crate::answer::{self, Progress, Throttle, Verdict, Watch};
use crate::budget::{Budget, Gate};
use crate::config::Config;
use crate::lister::WalkId;
use crate::numbers::Numbers;
use crate::poll::{Habits, Operation};

/// Who waits for an errand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Owner {
    Plan(EffectId),
    Commit,
    Locations,
    Walk(WalkId),
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct ErrandId(u64);

/// What an owner is told.
#[derive(Debug)]
pub(crate) enum Happening {
    /// The errand is over. `sent_at` is when its request was last sent.
    Ended { owner: Owner, result: Result<Payload, Failure>, sent_at: Time },
    /// It takes longer than its kind usually does.
    BecameSlow(EffectId),
    /// It fell asleep at its gate.
    FellAsleep(EffectId, Wait),
    /// Its gate is open again; it sleeps until it is woken.
    GateOpened(EffectId),
}

struct Errand {
    owner: Owner,
    effect: EffectId,
    request: Request,
    /// First come, first served, but cosmetics last.
    place: Place,
    stage: Stage,
    timer: Option<Time>,
    sent_at: Time,
    operation: Option<Operation>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Delayed,
    Queued,
    Asleep,
    Sent(CallId),
    Resting,
    PollQueued,
    /// With the time at which the poll was sent.
    PollSent(CallId, Time),
}

/// Cosmetic or not, then the number of the errand.
type Place = (bool, u64);

#[derive(Default)]
struct Queue {
    awake: BTreeMap<Place, ErrandId>,
    asleep: BTreeMap<Place, ErrandId>,
}

/// Everything between the owners of errands and Azure.
pub(crate) struct Wire {
    now: Time,
    fence: Option<Time>,
    stopped: bool,
    pub(crate) budget: Budget,
    habits: Habits,
    errands: HashMap<ErrandId, Errand, FixedState>,
    calls: HashMap<CallId, ErrandId, FixedState>,
    queues: [Queue; 4],
    timers: BTreeSet<(Time, ErrandId)>,
    happened: VecDeque<Happening>,
    errands_begun: u64,
    calls_begun: u64,
    jitter: u64,
    answer_limit: Duration,
    budget_patience: Duration,
    pub(crate) numbers: Numbers,
    seeded: Seeded,
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
            queues: Default::default(),
            timers: BTreeSet::new(),
            happened: VecDeque::new(),
            errands_begun: 0,
            calls_begun: 0,
            jitter: seed,
            answer_limit: config.answer_limit,
            budget_patience: config.budget_patience,
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
        self.errands_begun += 1;
        let id = ErrandId(self.errands_begun);
        let place = (request.method == Method::PatchTags, id.0);
        let errand = Errand {
            owner,
            effect,
            request,
            place,
            stage: Stage::Delayed,
            timer: None,
            sent_at: self.now,
            operation: None,
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

    /// Lets an errand that fell asleep at its gate go on.
    pub(crate) fn wake(&mut self, id: ErrandId) {
        if self.errands.get(&id).is_some_and(|errand| errand.stage == Stage::Asleep) {
            self.queue(id, Stage::Queued);
        }
    }

    /// Whether service writes have to wait at the moment.
    pub(crate) fn writes_bind(&self) -> bool {
        let queue = &self.queues[Gate::ServiceWrites as usize];
        let calls = u32::try_from(queue.awake.len()).unwrap_or(u32::MAX).saturating_add(1);
        !queue.asleep.is_empty() || self.budget.earliest(self.now, Gate::ServiceWrites, calls) > self.now
    }

    pub(crate) fn next_happening(&mut self) -> Option<Happening> {
        self.happened.pop_front()
    }

    /// The next request to send. Its place in the budget is taken with this call.
    pub(crate) fn next_send(&mut self) -> Option<(CallId, Request, EffectId)> {
        if !self.is_open() {
            return None;
        }
        self.budget.refill(self.now);
        loop {
            let (gate, place, id) = Gate::ALL
                .into_iter()
                .filter_map(|gate| {
                    let (place, id) = self.queues[gate as usize].awake.first_key_value()?;
                    (self.budget.earliest(self.now, gate, 1) <= self.now).then_some((gate, *place, *id))
                })
                .min_by_key(|(_, place, _)| *place)?;
            self.queues[gate as usize].awake.remove(&place);
            if let Some(send) = self.send(id, gate) {
                return Some(send);
            }
        }
    }

    fn send(&mut self, id: ErrandId, gate: Gate) -> Option<(CallId, Request, EffectId)> {
        self.budget.take(self.now, gate).ok()?;
        let errand = self.errands.get_mut(&id)?;
        self.calls_begun += 1;
        let call = CallId(self.calls_begun);
        let request = match (&errand.operation, errand.stage) {
            (Some(operation), Stage::PollQueued) => {
                errand.stage = Stage::PollSent(call, self.now);
                match &operation.watch {
                    Watch::Operation(target) => Request::bare(Method::Poll, target.clone()),
                    Watch::Resource => Request::bare(Method::Get, errand.request.target.clone()),
                }
            }
            _ => {
                errand.stage = Stage::Sent(call);
                errand.sent_at = self.now;
                errand.request.clone()
            }
        };
        let effect = errand.effect;
        self.numbers.count(&request);
        self.calls.insert(call, id);
        self.arm(id);
        Some((call, request, effect))
    }

    /// Nothing more can be sent now: plans whose errands would wait long may give their slot
    /// back, and those whose gate has opened are told.
    pub(crate) fn settle_down(&mut self) {
        if !self.is_open() {
            return;
        }
        for gate in Gate::ALL {
            self.fall_asleep(gate);
            let queue = &self.queues[gate as usize];
            let awake = u32::try_from(queue.awake.len()).unwrap_or(u32::MAX);
            if queue.asleep.is_empty()
                || self.budget.earliest(self.now, gate, awake.saturating_add(1)) > self.now
            {
                continue;
            }
            for id in core::mem::take(&mut self.queues[gate as usize].asleep).into_values() {
                if let Some(errand) = self.errands.get(&id) {
                    self.happened.push_back(Happening::GateOpened(errand.effect));
                }
            }
        }
    }

    fn fall_asleep(&mut self, gate: Gate) {
        let paused_until = self.budget.paused_until(gate);
        let mut sleepy = Vec::new();
        let waiting = &self.queues[gate as usize].awake;
        for (ahead, (&place, &id)) in (0u32..).zip(waiting) {
            let Some(errand) = self.errands.get(&id) else { continue };
            if !matches!((errand.owner, errand.stage), (Owner::Plan(_), Stage::Queued)) {
                continue;
            }
            let until = self.budget.earliest(self.now, gate, ahead.saturating_add(1));
            if paused_until > self.now {
                sleepy.push((place, id, errand.effect, Wait::Throttled { until: paused_until }));
            } else if until.since(self.now) > self.budget_patience {
                sleepy.push((place, id, errand.effect, Wait::Budget { until }));
            }
        }
        for (place, id, effect, wait) in sleepy {
            let queue = &mut self.queues[gate as usize];
            queue.awake.remove(&place);
            queue.asleep.insert(place, id);
            if let Some(errand) = self.errands.get_mut(&id) {
                errand.stage = Stage::Asleep;
            }
            self.happened.push_back(Happening::FellAsleep(effect, wait));
        }
    }

    /// When something happens by itself.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        let timer = self.timers.first().map(|(at, _)| *at);
        let gates = Gate::ALL.into_iter().filter_map(|gate| {
            let queue = &self.queues[gate as usize];
            if !self.is_open() || (queue.awake.is_empty() && queue.asleep.is_empty()) {
                return None;
            }
            let opens = self.budget.earliest(self.now, gate, 1);
            // Beyond the fence nothing is sent; whoever raises it asks again.
            self.fence.filter(|fence| opens < *fence).map(|_| opens)
        });
        gates.chain(timer).min().filter(|at| *at < Time::NEVER)
    }

    /// Time has passed.
    pub(crate) fn tick(&mut self, now: Time) {
        self.now = self.now.max(now);
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
                let failure = Failure::of(
                    FailureClass::Unknown,
                    "OperationTimeout",
                    "the operation takes longer than it may, so its outcome is unknown",
                );
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
            Stage::Sent(call) if errand.sent_at + self.answer_limit <= now => {
                return self.replied(call, Reply::Lost);
            }
            Stage::PollSent(call, at) if at + self.answer_limit <= now => {
                return self.replied(call, Reply::Lost);
            }
            Stage::Resting if errand.operation.as_ref().is_none_or(|it| it.next_poll <= now) => {
                self.queue(id, Stage::PollQueued);
            }
            _ => {}
        }
        self.arm(id);
    }

    /// A reply has come; one that nobody waits for is counted and forgotten.
    pub(crate) fn replied(&mut self, call: CallId, reply: Reply) {
        let Some(id) = self.calls.remove(&call) else {
            self.numbers.late_replies += 1;
            return;
        };
        let Some(errand) = self.errands.get_mut(&id) else { return };
        let (polled, sent_at) = match errand.stage {
            Stage::PollSent(_, at) => (true, at),
            _ => (false, errand.sent_at),
        };
        let gate = if polled { Gate::Reads } else { Gate::of(errand.request.method) };
        match &reply {
            Reply::Answered(answer) => {
                if let Some(remaining) = answer.remaining {
                    self.budget.believe(self.now, gate, remaining);
                }
            }
            Reply::Lost => self.numbers.lost += 1,
            Reply::NotSent => {}
        }
        let went = match &mut errand.operation {
            Some(operation) if polled => {
                match answer::to_poll(&errand.request, &operation.watch, reply, self.seeded) {
                    Progress::Finished(payload) => {
                        self.habits.learn(operation, self.now);
                        Went::Over(Ok(payload))
                    }
                    Progress::AskAgain(retry_after) => {
                        self.habits.rest(operation, self.now, retry_after);
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
                self.budget.answered(self.now, gate);
                self.end(id, result);
            }
            Went::On => {
                self.budget.answered(self.now, gate);
                errand.stage = Stage::Resting;
                self.arm(id);
            }
            Went::Back(throttle, stage) => {
                self.pause(gate, throttle, sent_at);
                self.queue(id, stage);
            }
        }
    }

    fn pause(&mut self, gate: Gate, throttle: Throttle, sent_at: Time) {
        self.jitter =
            self.jitter.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let jitter_permille = u32::try_from((self.jitter >> 33) % 1_000).unwrap_or(0);
        let Throttle { wait, one_resource } = throttle;
        let longer = self.budget.pause(self.now, gate, wait, sent_at, one_resource, jitter_permille);
        self.numbers.throttled += 1;
        let longer_ms = u64::try_from(longer.as_millis()).unwrap_or(u64::MAX);
        self.numbers.throttled_ms = self.numbers.throttled_ms.saturating_add(longer_ms);
    }

    /// Puts an errand into the queue of its gate.
    fn queue(&mut self, id: ErrandId, stage: Stage) {
        let Some(errand) = self.errands.get_mut(&id) else { return };
        errand.stage = stage;
        let gate = if stage == Stage::PollQueued { Gate::Reads } else { Gate::of(errand.request.method) };
        let place = errand.place;
        let queue = &mut self.queues[gate as usize];
        queue.asleep.remove(&place);
        queue.awake.insert(place, id);
        self.arm(id);
    }

    fn end(&mut self, id: ErrandId, result: Result<Payload, Failure>) {
        let Some(errand) = self.errands.remove(&id) else { return };
        if let Some(at) = errand.timer {
            self.timers.remove(&(at, id));
        }
        match errand.stage {
            Stage::Sent(call) | Stage::PollSent(call, _) => {
                self.calls.remove(&call);
            }
            Stage::PollQueued => {
                self.queues[Gate::Reads as usize].awake.remove(&errand.place);
            }
            // Only an operation's time limit ends an errand that has not been answered just now.
            Stage::Delayed | Stage::Queued | Stage::Asleep | Stage::Resting => {}
        }
        self.happened.push_back(Happening::Ended { owner: errand.owner, result, sent_at: errand.sent_at });
    }

    /// Sets the timer to whatever comes first at this stage.
    fn arm(&mut self, id: ErrandId) {
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

    fn is_open(&self) -> bool {
        if self.stopped {
            return false;
        }
        self.fence.is_some_and(|until| self.now < until) || self.seeded.has(Bug::SendAfterLease)
    }
}

/// Where an errand goes after a reply.
enum Went {
    Over(Result<Payload, Failure>),
    On,
    Back(Throttle, Stage),
}
