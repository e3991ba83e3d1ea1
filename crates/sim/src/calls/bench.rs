//! The engine, the updaters and the model of Azure under one clock, and no more of Kubernetes
//! than they need.

use core::net::IpAddr;
use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};

use sluice_cloud::{Cloud, Config as CloudConfig};
use sluice_engine::{Config as EngineConfig, DefaultOutbound, Engine};
use sluice_model::azure::ArmId;
use sluice_model::call::{Answer, Body, Bucket, Method, OperationState, Payload, Reply, Request};
use sluice_model::effect::{Existence, KubeOutcome};
use sluice_model::event::Relist;
use sluice_model::kube::{
    Endpoint, NodeObject, Protocol, ServiceObject, ServicePort, ServiceSpec, Slice, SliceOwner, SlicePort,
    TargetPort,
};
use sluice_model::seeded::Seeded;
use sluice_model::{Action, Effect, EffectId, Event, ObjectName, Outcome, Time, Uid};
use sluice_updater::{BucketSize, CallId, Config as UpdaterConfig, Output, Updaters};

use crate::invariants::budget::CallCount;
use crate::names::Violation;
use crate::world::scope;

use super::{Figures, Load, figures};

/// How long the API server takes for a write.
const KUBE_MS: u64 = 5;
/// Nodes that the pods are spread over.
const NODES: usize = 20;

/// Everything under one clock.
pub(super) struct Bench {
    load: Load,
    now: Time,
    engine: Engine,
    updaters: Updaters,
    cloud: Cloud,
    budget: CallCount,
    objects: BTreeMap<Uid, ServiceObject>,
    version: u64,
    queue: BTreeMap<(Time, u64), Happening>,
    planned: u64,
    open: BTreeMap<CallId, Request>,
    running: BTreeMap<ArmId, Running>,
    /// The time of all steps so far.
    steps: Duration,
    /// How many operations of steps have ended.
    pub(super) operations_ended: u32,
    /// Of each of them the time until the first moment after its end at which a poll was allowed, added up.
    pub(super) best: Duration,
    /// When each write and deletion was sent; `true` for those of addresses.
    pub(super) writes_sent: Vec<(Time, bool)>,
    /// When each address was first in a request.
    pub(super) address_sent: BTreeMap<IpAddr, Time>,
}

/// An operation that runs.
struct Running {
    since: Time,
    /// How many services wait for it.
    waiting: u32,
    /// When the next poll is allowed.
    poll_allowed_at: Time,
}

enum Happening {
    Arrives(CallId),
    Replied(CallId, Reply),
    Kube(EffectId, Action),
}

impl Bench {
    pub(super) fn new(load: &Load) -> Bench {
        let scope = scope();
        let mut engine = EngineConfig::new(scope.clone());
        engine.slots_max = load.slots;
        engine.default_outbound = DefaultOutbound::Leave;
        engine.allow_mass_deletion = true;
        let mut cloud = CloudConfig {
            seed: load.seed,
            latency: load.latency,
            synchronous_posts: load.instant,
            ..CloudConfig::default()
        };
        let mut updater = UpdaterConfig { share_permille: load.share_permille, ..UpdaterConfig::default() };
        if !load.throttled {
            cloud.buckets = None;
            let size = BucketSize { burst: 1_000_000, per_second: 1_000_000 };
            updater = UpdaterConfig {
                reads: size,
                writes: size,
                deletes: size,
                reads_per_window: 10_000_000,
                writes_per_window: 10_000_000,
                ..updater
            };
        }
        let budget = CallCount::new(&updater);
        let mut cloud = Cloud::new(cloud);
        cloud.prepare(Time::ZERO, &scope);
        let mut updaters = Updaters::new(updater, scope, load.seed, Seeded::NONE);
        updaters.fence(Some(Time::NEVER));
        Bench {
            load: load.clone(),
            now: Time::ZERO,
            engine: Engine::new(engine, load.seed, Seeded::NONE),
            updaters,
            cloud,
            budget,
            objects: BTreeMap::new(),
            version: 1,
            queue: BTreeMap::new(),
            planned: 0,
            open: BTreeMap::new(),
            running: BTreeMap::new(),
            steps: Duration::ZERO,
            operations_ended: 0,
            best: Duration::ZERO,
            writes_sent: Vec::new(),
            address_sent: BTreeMap::new(),
        }
    }

    /// An empty cluster, and a gateway.
    pub(super) fn settle_in(&mut self) -> Result<(), Violation> {
        let nodes = (0..NODES)
            .map(|node| NodeObject {
                name: format!("node-{node}").into(),
                version: 1,
                internal_ips: vec![[10, 240, 0, u8::try_from(node).unwrap_or(0) + 4].into()],
            })
            .collect();
        let mut events = VecDeque::from([Event::LeadershipGained]);
        for objects in [
            Relist::Services(Vec::new()),
            Relist::Slices(Vec::new()),
            Relist::Nodes(nodes),
            Relist::Pods(Vec::new()),
        ] {
            events.push_back(Event::Relisted { version: 1, objects });
        }
        self.work(events)?;
        self.run(|bench| bench.engine.initial_sync_done())
    }

    /// Does something to all Services and waits until it is done.
    pub(super) fn half(
        &mut self,
        begin: impl FnOnce(&mut Bench) -> VecDeque<Event>,
        is_done: impl Fn(&Bench) -> bool,
    ) -> Result<Figures, Violation> {
        let (began, before, steps) = (self.now, self.updaters.numbers(), self.steps);
        let events = begin(self);
        self.work(events)?;
        self.run(is_done)?;
        let bound = (self.steps - steps) / u32::try_from(self.load.slots).unwrap_or(u32::MAX).max(1);
        let makespan = self.now.since(began);
        Ok(figures(self.load.services, &before, &self.updaters.numbers(), makespan, bound))
    }

    pub(super) fn apply_all(&mut self) -> VecDeque<Event> {
        (0..self.load.services).flat_map(|number| self.apply(number)).collect()
    }

    /// The Service with this number, and its pods.
    fn apply(&mut self, number: usize) -> [Event; 2] {
        self.version += 1;
        let (service, slice) = objects(number, self.load.pods_each, self.version);
        self.objects.insert(service.uid, service.clone());
        [Event::ServiceApplied(service), Event::SliceApplied(slice)]
    }

    /// Creates one more Service; says how long it took until all of them had their IP.
    pub(super) fn create(&mut self, number: usize) -> Result<Duration, Violation> {
        let began = self.now;
        let events = self.apply(number).into();
        self.work(events)?;
        self.run(|bench| bench.objects.values().all(|object| !object.ingress.is_empty()))?;
        Ok(self.now.since(began))
    }

    /// How many reads there were so far, polls among them.
    pub(super) fn reads(&self) -> u64 {
        let numbers = self.updaters.numbers();
        numbers.gets + numbers.lists + numbers.polls
    }

    pub(super) fn delete_all(&mut self) -> VecDeque<Event> {
        let mut events = VecDeque::new();
        for object in self.objects.values_mut() {
            self.version += 1;
            (object.deleting, object.version) = (true, self.version);
            events.push_back(Event::ServiceApplied(object.clone()));
        }
        events
    }

    /// A new pod with this address takes the place of the one that the last change of this Service brought.
    pub(super) fn replace_pod(&mut self, service: usize, address: IpAddr) -> Result<(), Violation> {
        self.version += 1;
        let (_, mut slice) = objects(service, self.load.pods_each, self.version);
        let node = Some(format!("node-{}", service % NODES).into());
        slice.endpoints.push(Endpoint { address, node, ready: true, serving: true, terminating: false });
        self.work(VecDeque::from([Event::SliceApplied(slice)]))
    }

    pub(super) fn now(&self) -> Time {
        self.now
    }

    /// Nothing of the addresses is left to send.
    pub(super) fn addresses_in_sync(&self) -> bool {
        let totals = self.engine.addresses().totals();
        totals.dirty == 0 && totals.either == 0 && self.open.is_empty()
    }

    /// Every Service has its IP, and every pod is in Azure.
    pub(super) fn all_served(&self) -> bool {
        let pods = self.load.services * self.load.pods_each;
        self.engine.addresses().totals().programmed == pods
            && self.objects.values().all(|object| !object.ingress.is_empty())
    }

    pub(super) fn all_gone(&self) -> bool {
        self.objects.is_empty()
    }

    /// Nothing new for a while.
    pub(super) fn rest(&mut self, span: Duration) -> Result<(), Violation> {
        let end = self.now + span;
        self.run(|bench| bench.now >= end || bench.wakes_at().is_none_or(|at| at > end))?;
        self.now = self.now.max(end);
        Ok(())
    }

    pub(super) fn run(&mut self, is_done: impl Fn(&Bench) -> bool) -> Result<(), Violation> {
        while !is_done(self) {
            let Some(at) = self.wakes_at() else {
                return Err(Violation::internal("nothing happens any more, and not all is done"));
            };
            self.now = self.now.max(at);
            self.cloud.advance(self.now);
            self.count_ended();
            let events = match self.queue.first_key_value() {
                Some((&(at, number), _)) if at <= self.now => {
                    self.queue.remove(&(at, number)).map(|what| self.happen(what)).unwrap_or_default()
                }
                _ => VecDeque::new(),
            };
            self.work(events)?;
        }
        Ok(())
    }

    /// When anything happens next.
    fn wakes_at(&self) -> Option<Time> {
        [
            self.queue.first_key_value().map(|((at, _), _)| *at),
            self.engine.next_deadline(),
            self.updaters.next_deadline(),
            self.cloud.next_deadline(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    fn plan(&mut self, after: Duration, what: Happening) {
        self.planned += 1;
        self.queue.insert((self.now + after, self.planned), what);
    }

    fn happen(&mut self, what: Happening) -> VecDeque<Event> {
        match what {
            Happening::Arrives(call) => {
                let Some(request) = self.open.get(&call) else { return VecDeque::new() };
                let mut answer = self.cloud.handle(self.now, request);
                if self.load.instant {
                    answer = finished(&mut self.cloud, self.now, request, answer);
                }
                let poll_allowed_at =
                    self.now + self.load.round_trip / 2 + self.load.retry_after.unwrap_or_default();
                if let Some(running) = self.running.get_mut(&request.target) {
                    answer.retry_after = self.load.retry_after;
                    running.poll_allowed_at = poll_allowed_at;
                }
                if let Some(operation) = &answer.operation {
                    answer.retry_after = self.load.retry_after;
                    let waiting = match &request.body {
                        Body::Services(services) => services.len(),
                        Body::Locations(_) => 0,
                        _ => 1,
                    };
                    let waiting = u32::try_from(waiting).unwrap_or(u32::MAX);
                    let running = Running { since: self.now, waiting, poll_allowed_at };
                    self.running.insert(operation.clone(), running);
                }
                self.plan(self.load.round_trip / 2, Happening::Replied(call, Reply::Answered(answer)));
                VecDeque::new()
            }
            Happening::Replied(call, reply) => {
                if let Some(request) = self.open.remove(&call) {
                    self.budget.answered(self.now, &request, &reply);
                }
                self.updaters.replied(self.now, call, reply);
                VecDeque::new()
            }
            Happening::Kube(id, action) => self.kube(id, action),
        }
    }

    /// Writes down how long the operations took that have just ended.
    fn count_ended(&mut self) {
        let (cloud, now) = (&self.cloud, self.now);
        let (steps, best, ended) = (&mut self.steps, &mut self.best, &mut self.operations_ended);
        self.running.retain(|id, running| {
            let runs = cloud.operation_state(id) == Some(&OperationState::Running);
            if !runs {
                *steps += now.since(running.since) * running.waiting;
            }
            if !runs && running.waiting > 0 {
                *ended += 1;
                *best += now.max(running.poll_allowed_at).since(running.since);
            }
            runs
        });
    }

    /// Lets engine and updaters work until they have nothing more to do at this moment.
    fn work(&mut self, mut events: VecDeque<Event>) -> Result<(), Violation> {
        self.updaters.tick(self.now);
        if self.engine.next_deadline().is_some_and(|at| at <= self.now) {
            events.push_back(Event::Tick);
        }
        loop {
            while let Some(event) = events.pop_front() {
                for effect in self.engine.handle(self.now, event) {
                    self.start(effect);
                }
            }
            while let Some(output) = self.updaters.next_output(self.now) {
                match output {
                    Output::Report(event) => events.push_back(event),
                    Output::Send { call, request, .. } => {
                        self.budget.s12_begin(self.now, &request)?;
                        self.note_sent(&request);
                        self.open.insert(call, request);
                        self.plan(self.load.round_trip / 2, Happening::Arrives(call));
                    }
                }
            }
            if events.is_empty() {
                return Ok(());
            }
        }
    }

    fn note_sent(&mut self, request: &Request) {
        if request.method.bucket() != Bucket::Reads {
            self.writes_sent.push((self.now, request.method == Method::UpdateLocations));
        }
        if let Body::Locations(locations) = &request.body {
            for it in locations.iter().flat_map(|location| &location.addresses) {
                self.address_sent.entry(it.address).or_insert(self.now);
            }
        }
    }

    fn start(&mut self, effect: Effect) {
        match effect.action {
            Action::AddFinalizer(_)
            | Action::RemoveFinalizer(_)
            | Action::WriteStatus { .. }
            | Action::ConfirmGone(_) => {
                self.plan(Duration::from_millis(KUBE_MS), Happening::Kube(effect.id, effect.action));
            }
            Action::Relist(_) | Action::Notify(_) => {}
            _ => {
                self.updaters.start(self.now, &effect);
            }
        }
    }

    /// The API server takes everything; the watch tells at once.
    fn kube(&mut self, id: EffectId, action: Action) -> VecDeque<Event> {
        self.version += 1;
        let mut events = VecDeque::new();
        let (uid, outcome) = match &action {
            Action::ConfirmGone(object) => {
                let there = self.objects.contains_key(&object.uid);
                let existence = if there { Existence::Exists } else { Existence::Gone };
                (object.uid, Outcome::Existence(existence))
            }
            Action::AddFinalizer(object) | Action::RemoveFinalizer(object) => {
                (object.uid, Outcome::Kube(KubeOutcome::Done { version: self.version }))
            }
            Action::WriteStatus { object, .. } => {
                (object.uid, Outcome::Kube(KubeOutcome::Done { version: self.version }))
            }
            _ => return events,
        };
        if let Some(object) = self.objects.get_mut(&uid) {
            object.version = self.version;
            match action {
                Action::AddFinalizer(_) => object.finalizer = true,
                Action::RemoveFinalizer(_) => object.finalizer = false,
                Action::WriteStatus { ingress, conditions, .. } => {
                    object.ingress = ingress.into_iter().collect();
                    object.published = ingress;
                    object.annotated = ingress;
                    object.conditions = conditions;
                }
                _ => {}
            }
            if object.deleting && !object.finalizer {
                events.push_back(Event::ServiceDeleted { uid, name: object.name.clone() });
                self.objects.remove(&uid);
            } else {
                events.push_back(Event::ServiceApplied(object.clone()));
            }
        }
        events.push_back(Event::EffectFinished { id, outcome });
        events
    }
}

/// The answer of an Azure whose operations take no time: with the result instead of an operation.
fn finished(cloud: &mut Cloud, now: Time, request: &Request, answer: Answer) -> Answer {
    let Some(operation) = &answer.operation else { return answer };
    if cloud.operation_state(operation) == Some(&OperationState::Running) {
        cloud.end_now(now, &request.target);
    }
    let payload = match request.method {
        Method::Put | Method::PatchTags => {
            let limits = cloud.set_aside_limits();
            let read = cloud.handle(now, &Request::bare(Method::Get, request.target.clone()));
            cloud.bring_back_limits(limits);
            read.payload
        }
        _ => Payload::None,
    };
    Answer { status: 200, payload, operation: None, retry_after: None, ..answer }
}

fn objects(number: usize, pods: usize, version: u64) -> (ServiceObject, Slice) {
    let number_32 = u32::try_from(number).unwrap_or(u32::MAX);
    let uid = Uid::from_number(u128::from(number_32) + 1);
    let name = ObjectName::new("shop", format!("s{number}"));
    let spec = ServiceSpec {
        ports: vec![ServicePort {
            name: "".into(),
            protocol: Protocol::Tcp,
            port: 80,
            target: TargetPort::Number(8080),
        }],
        ..ServiceSpec::default()
    };
    let service = ServiceObject {
        uid,
        name: name.clone(),
        version,
        selected: true,
        load_balancer: true,
        deleting: false,
        finalizer: false,
        inherited: false,
        spec,
        ingress: Vec::new(),
        published: None,
        annotated: None,
        conditions: Vec::new(),
    };
    let endpoints = (0..pods)
        .map(|pod| {
            let at = number * pods + pod;
            let [_, high, middle, low] = u32::try_from(at).unwrap_or(0).to_be_bytes();
            Endpoint {
                address: [10, high, middle, low].into(),
                node: Some(format!("node-{}", at % NODES).into()),
                ready: true,
                serving: true,
                terminating: false,
            }
        })
        .collect();
    let slice = Slice {
        name,
        version,
        owner: SliceOwner::Uid(uid),
        ports: vec![SlicePort { name: "".into(), protocol: Protocol::Tcp, port: Some(8080) }],
        endpoints,
        malformed: Vec::new(),
    };
    (service, slice)
}
