//! Many services at once against a small stand-in for Azure that only knows how long things
//! take, and an engine that only knows how many slots there are. What counts is the calls.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::format;
use std::vec::Vec;

use sluice_model::azure::ArmId;
use sluice_model::call::{Answer, Method, OperationState, Payload, Reply, Request};
use sluice_model::effect::Cause;
use sluice_model::seeded::Seeded;
use sluice_model::{Action, Effect, EffectId, Event, Outcome, Step, Time};

use super::story::{deprovision, load_balancer, managed, managed_ip, plan, provision, scope};
use crate::{BucketSize, CallId, Config, Numbers, Output, Updaters};

/// How long the way to Azure and back takes.
const ROUND_TRIP_MS: u64 = 40;

struct Bulk {
    updaters: Updaters,
    now: Time,
    slots: usize,
    holders: BTreeSet<EffectId>,
    /// New plans and plans that asked for a slot, in the order in which they came.
    queue: VecDeque<Effect>,
    finished: BTreeMap<EffectId, Time>,
    replies: BTreeSet<(Time, CallId)>,
    requests: BTreeMap<CallId, Request>,
    operations: BTreeMap<ArmId, Time>,
    random: u64,
}

impl Bulk {
    fn run(config: Config, slots: usize, services: u64, steps: impl Fn(&str) -> Vec<Step>) -> Bulk {
        let mut updaters = Updaters::new(config, scope(), 1, Seeded::NONE);
        updaters.fence(Some(Time::NEVER));
        let effect = |id| Effect {
            id: EffectId(id),
            action: Action::RunPlan(plan(steps(&format!("s{id}")))),
            cause: Cause::Requested,
        };
        let mut bulk = Bulk {
            updaters,
            now: Time::ZERO,
            slots,
            holders: BTreeSet::new(),
            queue: (1..=services).map(effect).collect(),
            finished: BTreeMap::new(),
            replies: BTreeSet::new(),
            requests: BTreeMap::new(),
            operations: BTreeMap::new(),
            random: 1,
        };
        loop {
            bulk.work();
            if bulk.finished.len() == services as usize {
                return bulk;
            }
            bulk.wait();
        }
    }

    fn work(&mut self) {
        loop {
            while let Some(output) = self.updaters.next_output(self.now) {
                self.take(output);
            }
            if self.holders.len() >= self.slots {
                return;
            }
            let Some(effect) = self.queue.pop_front() else { return };
            let holder = if let Action::ResumePlan(id) = effect.action { id } else { effect.id };
            assert!(self.holders.insert(holder));
            self.updaters.start(self.now, &effect);
        }
    }

    fn wait(&mut self) {
        let reply = self.replies.first().map(|(at, _)| *at);
        let deadline = self.updaters.next_deadline();
        self.now = reply.into_iter().chain(deadline).min().expect("something happens until all is finished");
        self.updaters.tick(self.now);
        if let Some((_, call)) = self.replies.first().copied().filter(|(at, _)| *at <= self.now) {
            self.replies.pop_first();
            if let Some(request) = self.requests.remove(&call) {
                let reply = self.answer(call, &request);
                self.updaters.replied(self.now, call, reply);
            }
        }
    }

    fn take(&mut self, output: Output) {
        match output {
            Output::Send { call, request, .. } => {
                self.replies.insert((Time::from_millis(self.now.as_millis() + ROUND_TRIP_MS), call));
                self.requests.insert(call, request);
            }
            Output::Report(Event::SlotReleased { id, .. }) => assert!(self.holders.remove(&id)),
            Output::Report(Event::Held { id, .. }) => assert!(!self.holders.contains(&id)),
            Output::Report(Event::SlotWanted(id)) => self.queue.push_front(Effect {
                id: EffectId(1_000_000 + id.0),
                action: Action::ResumePlan(id),
                cause: Cause::SlotGranted,
            }),
            Output::Report(Event::EffectFinished { id, outcome: Outcome::Plan(report) }) => {
                assert_eq!(report.failure, None);
                assert!(self.finished.insert(id, self.now).is_none());
                self.holders.remove(&id);
            }
            Output::Report(other) => panic!("unexpected {other:?}"),
        }
    }

    fn answer(&mut self, call: CallId, request: &Request) -> Reply {
        let took_ms = match request.method {
            Method::Get => {
                let name = request.target.name();
                return answered(
                    200,
                    match name.strip_suffix("-pip") {
                        Some(service) => managed_ip(service),
                        None => managed(load_balancer(name)),
                    },
                );
            }
            Method::Poll => {
                let is_over = self.operations.get(&request.target).is_some_and(|at| *at <= self.now);
                let state = if is_over { OperationState::Succeeded } else { OperationState::Running };
                return answered(200, Payload::Operation(state));
            }
            Method::Put if request.target.segment("publicIPAddresses").is_some() => {
                self.between(2_000, 3_000)
            }
            Method::Put => self.between(5_000, 8_000),
            Method::Delete => self.between(1_000, 3_000),
            _ => self.between(1_000, 2_000),
        };
        let operation = ArmId::new(format!("/operations/{}", call.0));
        self.operations.insert(operation.clone(), Time::from_millis(self.now.as_millis() + took_ms));
        Reply::Answered(Answer { operation: Some(operation), ..Answer::new(202, Payload::None) })
    }

    fn between(&mut self, from: u64, to: u64) -> u64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        from + (self.random >> 33) % (to - from)
    }

    fn numbers(&self) -> Numbers {
        self.updaters.numbers()
    }

    /// Calls per service, in thousandths.
    fn per_service(&self, calls: u64) -> u64 {
        calls * 1_000 / self.finished.len() as u64
    }
}

fn answered(status: u16, payload: Payload) -> Reply {
    Reply::Answered(Answer::new(status, payload))
}

fn lifted() -> Config {
    let size = BucketSize { burst: 1_000_000, per_second: 1_000_000 };
    Config {
        reads: size,
        writes: size,
        deletes: size,
        reads_per_window: 10_000_000,
        writes_per_window: 10_000_000,
        ..Config::default()
    }
}

#[test]
fn fifty_services_at_once_cost_little_more_than_two_writes_each() {
    let bulk = Bulk::run(lifted(), 50, 50, provision);
    let (writes, reads) =
        (bulk.per_service(bulk.numbers().writes()), bulk.per_service(bulk.numbers().reads()));
    assert!(writes <= 2_200, "{writes} thousandths");
    // All begin before anything is known about how long they take.
    assert!(reads <= 10_500, "{reads} thousandths");
}

#[test]
fn five_hundred_services_keep_to_the_table_of_calls() {
    for (slots, steps, writes_max) in [
        (10, provision as fn(&str) -> Vec<Step>, 2_750),
        (50, provision, 2_200),
        (10, deprovision, 2_750),
        (50, deprovision, 2_200),
    ] {
        let bulk = Bulk::run(lifted(), slots, 500, steps);
        let writes = bulk.per_service(bulk.numbers().writes());
        let reads = bulk.per_service(bulk.numbers().reads());
        assert!(writes <= writes_max, "{writes} thousandths with {slots} slots");
        assert!(reads <= 6_000, "{reads} thousandths with {slots} slots");
    }
}

#[test]
fn when_the_budget_binds_registrations_gather() {
    for steps in [provision as fn(&str) -> Vec<Step>, deprovision] {
        let bulk = Bulk::run(Config::default(), 100, 500, steps);
        let writes = bulk.per_service(bulk.numbers().writes());
        assert!(writes <= 2_200, "{writes} thousandths");
        assert_eq!(bulk.numbers().throttled, 0);
    }
}
