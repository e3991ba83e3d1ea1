//! Who may pass the gates, and when: the lease, the budget, first come first served.

use alloc::vec::Vec;
use core::time::Duration;

use sluice_model::call::{Method, Request};
use sluice_model::event::Wait;
use sluice_model::seeded::Bug;
use sluice_model::{EffectId, Failure, FailureClass, Time};

use crate::CallId;
use crate::answer::Watch;
use crate::budget::Gate;
use crate::errand::{ErrandId, Happening, Owner, Stage};
use crate::numbers::{GateNumbers, Numbers};
use crate::wire::Wire;

/// How long the plan that was woken to probe a pause may take to get its slot, before another is woken.
const PROBE_OFFERED: Duration = Duration::from_secs(60);

impl Wire {
    /// Puts an errand into the queue of its gate.
    pub(crate) fn queue(&mut self, id: ErrandId, stage: Stage) {
        let Some(errand) = self.errands.get_mut(&id) else { return };
        errand.stage = stage;
        let gate = if stage == Stage::PollQueued { Gate::Reads } else { Gate::of(errand.request.method) };
        let place = errand.place;
        let queue = &mut self.queues[gate as usize];
        queue.asleep.remove(&place);
        queue.awake.insert(place, id);
        self.arm(id);
    }

    /// Lets an errand that fell asleep go on, unless it waits for another operation: then it goes
    /// on when its own time has come.
    pub(crate) fn wake(&mut self, id: ErrandId) {
        if self.errands.get(&id).is_some_and(|errand| errand.stage == Stage::Asleep && errand.timer.is_none())
        {
            self.queue(id, Stage::Queued);
        }
    }

    /// Whether service writes have to wait at the moment.
    pub(crate) fn writes_bind(&self) -> bool {
        let queue = &self.queues[Gate::ServiceWrites as usize];
        let calls = u32::try_from(queue.awake.len()).unwrap_or(u32::MAX).saturating_add(1);
        !queue.asleep.is_empty() || self.budget.earliest(self.now, Gate::ServiceWrites, calls) > self.now
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
            if let Some(until) = self.busy_until(id, gate) {
                self.stand_back(id, until);
                continue;
            }
            if self.is_outdated(id) {
                let text = "the queued request became stale; it is rebuilt from current data and retried";
                let failure = Failure::of(FailureClass::Throttled, "HeldBack", text);
                self.end(id, Err(Failure { retry_after: Some(Duration::ZERO), ..failure }));
                continue;
            }
            if let Some(send) = self.send(id, gate) {
                return Some(send);
            }
        }
    }

    /// Whether addresses have waited so long that they are worked out again: others may have used a location since
    /// the listing by which it is written as a whole.
    fn is_outdated(&self, id: ErrandId) -> bool {
        self.errands.get(&id).is_some_and(|errand| {
            (errand.owner, errand.stage) == (Owner::Locations, Stage::Queued)
                && self.now.since(errand.sent_at) > self.budget_patience
        })
    }

    /// Until when Azure wants nothing more of an errand's kind for its resource, as it told an
    /// errand before it.
    fn busy_until(&self, id: ErrandId, gate: Gate) -> Option<Time> {
        if self.busy.is_empty() {
            return None;
        }
        let errand = self.errands.get(&id)?;
        let target = match errand.stage {
            Stage::PollQueued => errand.poll_target(),
            _ => &errand.request.target,
        };
        let busy = self.busy.get(&(gate, target.clone()))?;
        let opens_at = busy.pause.opens_at();
        (opens_at > self.now).then_some(opens_at)
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
        errand.held = None;
        let effect = errand.effect;
        if let Some(busy) = self.busy.get_mut(&(gate, request.target.clone())) {
            busy.pause.sent(self.now);
        }
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
            let probes = self.budget.pauses.until(gate) > self.now;
            let queue = &mut self.queues[gate as usize];
            let woken: Vec<ErrandId> = if !probes {
                core::mem::take(&mut queue.asleep).into_values().collect()
            } else if awake > 0 || queue.probe_offered_until > self.now {
                continue;
            } else {
                // One call probes a pause. The others would only fall asleep again, and their conditions would
                // change twice with each probe.
                queue.probe_offered_until = self.now + PROBE_OFFERED;
                queue.asleep.pop_first().map(|(_, id)| id).into_iter().collect()
            };
            for id in woken {
                if let Some(errand) = self.errands.get(&id) {
                    self.happened.push_back(Happening::GateOpened(errand.effect));
                }
            }
        }
    }

    fn fall_asleep(&mut self, gate: Gate) {
        let paused_until = self.budget.pauses.opens_at(gate);
        let mut sleepy = Vec::new();
        let mut held = Vec::new();
        let waiting = &self.queues[gate as usize].awake;
        for (ahead, (&place, &id)) in (0u32..).zip(waiting) {
            let Some(errand) = self.errands.get(&id) else { continue };
            let sleeps = match (errand.owner, errand.stage) {
                (Owner::Plan(_), Stage::Queued) => true,
                (Owner::Commit | Owner::Locations, _) => false,
                // A poll that Azure does not let through says nothing about the operation.
                (Owner::Plan(_), Stage::PollQueued) if paused_until > self.now => false,
                (Owner::Plan(_) | Owner::Walk(_), _) => continue,
            };
            let until = self.budget.earliest(self.now, gate, ahead.saturating_add(1));
            let wait = if paused_until > self.now {
                Wait::Throttled { until: paused_until }
            } else if until.since(self.now) > self.budget_patience {
                Wait::Budget { until }
            } else {
                continue;
            };
            match sleeps {
                true => sleepy.push((place, id, errand.effect, wait)),
                false => held.push((id, wait)),
            }
        }
        for (id, wait) in held {
            self.hold(id, wait);
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

    /// Says what an errand without a slot waits for, unless it was said that it waits about that long.
    pub(crate) fn hold(&mut self, id: ErrandId, wait: Wait) {
        let Some(errand) = self.errands.get_mut(&id) else { return };
        let said = errand.held.and_then(Wait::until).map(|until| until + self.budget_patience);
        if wait.until() > said {
            errand.held = Some(wait);
            self.happened.push_back(Happening::Held(errand.owner, errand.effect, wait));
        }
    }

    /// What an errand without a slot waits for.
    pub(crate) fn held(&self, id: ErrandId) -> Option<Wait> {
        let wait = self.errands.get(&id)?.held?;
        (wait.until() > Some(self.now)).then_some(wait)
    }

    /// When something happens by itself.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        let timer = self.timers.first().map(|(at, _)| *at);
        let gates = Gate::ALL.into_iter().filter_map(|gate| {
            let queue = &self.queues[gate as usize];
            if !self.is_open() || (queue.awake.is_empty() && queue.asleep.is_empty()) {
                return None;
            }
            let mut opens = self.budget.earliest(self.now, gate, 1);
            if queue.awake.is_empty() && self.budget.pauses.until(gate) > self.now {
                opens = opens.max(queue.probe_offered_until);
            }
            // Beyond the fence nothing is sent; whoever raises it asks again.
            self.fence.filter(|fence| opens < *fence).map(|_| opens)
        });
        gates.chain(timer).min().filter(|at| *at < Time::NEVER)
    }

    /// The counters, and how the gates stand.
    pub(crate) fn numbers_now(&self) -> Numbers {
        let gate = |gate: Gate| {
            let queue = &self.queues[gate as usize];
            let paused_until = self.budget.pauses.until(gate);
            GateNumbers {
                tokens: self.budget.tokens(self.now, gate),
                tokens_max: self.budget.tokens_max(gate),
                queued: queue.awake.len(),
                asleep: queue.asleep.len(),
                paused_until: (paused_until > self.now).then_some(paused_until),
            }
        };
        let (reads_in_window, writes_in_window) = self.budget.in_windows();
        let (reads_in_window_max, writes_in_window_max) = self.budget.in_windows_max();
        Numbers {
            reads_in_window,
            writes_in_window,
            reads_in_window_max,
            writes_in_window_max,
            reads_gate: gate(Gate::Reads),
            service_writes_gate: gate(Gate::ServiceWrites),
            location_writes_gate: gate(Gate::LocationWrites),
            deletes_gate: gate(Gate::Deletes),
            operations_watched: self.errands.values().filter(|errand| errand.operation.is_some()).count(),
            resources_busy: self.busy.values().filter(|busy| busy.pause.until > self.now).count(),
            ..self.numbers.clone()
        }
    }

    fn is_open(&self) -> bool {
        if self.stopped {
            return false;
        }
        self.fence.is_some_and(|until| self.now < until) || self.seeded.has(Bug::SendAfterLease)
    }
}
