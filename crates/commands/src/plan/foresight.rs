//! Foresees what the controller would do: engine and updaters at work on a copy of both worlds.
//!
//! The copy of Azure is the cloud model after it has taken over a complete listing; the copy of
//! Kubernetes is the listed objects. Time is virtual, nothing fails, and everything that would be
//! written is written into the copies. What differs between before and after is the plan, and what
//! was sent on the way is what it takes.
//!
//! Missing on purpose: a second set of rules. Order, batches, the mass-deletion guard and adoption are the engine's
//! and the updaters' own, so a plan cannot say something else than what `sluice run` would do.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use sluice_cloud::{Cloud, Latencies, Quota};
use sluice_engine::{Engine, ServiceView, WaitsFor};
use sluice_model::call::{Answer, Method, Reply, Request};
use sluice_model::effect::{Existence, KubeOutcome, Listing, Notice};
use sluice_model::event::Relist;
use sluice_model::kube::{Kind, PodObject, ServiceObject};
use sluice_model::seeded::Seeded;
use sluice_model::{Action, Effect, EffectId, Event, Outcome, Time, Uid};
use sluice_updater::{BucketSize, CallId, Output, Updaters};

/// How long a call takes. A second sighting must begin later than the first one ended.
const ROUND_TRIP: Duration = Duration::from_millis(20);
/// So long at least nothing may be written before everything counts as done; twice as long as an orphan waits
/// for its second sighting, if that is longer.
const QUIET: Duration = Duration::from_secs(10 * 60);
/// What is not done by then is shown as what it waits for.
const HORIZON: Duration = Duration::from_secs(4 * 60 * 60);

/// Both worlds as they were read.
#[derive(Clone, Debug)]
pub struct Worlds {
    /// Complete lists of Kubernetes: `Relisted`, one of each kind.
    pub kubernetes: Vec<Event>,
    /// What is missing from those lists because it cannot be read: a sentence about each.
    pub skipped: Vec<(Kind, String)>,
    /// Complete listings of Azure, the gateway first.
    pub azure: Vec<Listing>,
}

/// What would come of it.
#[derive(Debug)]
pub struct Forecast {
    /// Azure before.
    pub before: Cloud,
    /// Azure afterwards.
    pub after: Cloud,
    /// The Services before, by UID.
    pub objects_before: BTreeMap<Uid, ServiceObject>,
    /// The Services afterwards; what would be released and gone is missing.
    pub objects_after: BTreeMap<Uid, ServiceObject>,
    /// Calls to Azure by what they do; those up to the last write, if not everything can be done: what follows only
    /// looks whether it can.
    pub calls: BTreeMap<Method, usize>,
    /// Every write, in the order in which it would be sent.
    pub writes: Vec<Request>,
    /// What people would be told.
    pub notices: Vec<Notice>,
    /// Every service as it would stand in the end, and what it would still wait for.
    pub services: Vec<(ServiceView, Vec<WaitsFor>)>,
    /// Why the gateway could not be used in the end.
    pub gateway_trouble: Option<String>,
    /// What could not be read, and is not in any of this.
    pub skipped: Vec<String>,
    /// What is registered, unwanted and not provably ours.
    pub unclaimed: Vec<String>,
    /// Addresses that stay because they name services that are not managed.
    pub kept_for_others: u64,
    /// Everything was done within the horizon.
    pub settled: bool,
}

/// Lets the engine and the updaters do their work on copies of both worlds.
pub fn foresee(engine: sluice_engine::Config, updaters: sluice_updater::Config, worlds: &Worlds) -> Forecast {
    foresee_with(engine, updaters, worlds, &[])
}

/// The same, when more is said once the first difference has been worked off.
pub fn foresee_with(
    engine: sluice_engine::Config,
    updaters: sluice_updater::Config,
    worlds: &Worlds,
    afterwards: &[Event],
) -> Forecast {
    let mut stage = Stage::set(engine, updaters, worlds);
    let (before, objects_before) = (stage.cloud.clone(), stage.objects.clone());
    let mut events = VecDeque::from(worlds.kubernetes.clone());
    events.push_front(Event::LeadershipGained);
    stage.work(events);
    let mut settled = stage.run();
    if !afterwards.is_empty() {
        stage.last_write = stage.now;
        stage.work(afterwards.iter().cloned().collect());
        settled = stage.run();
    }
    Forecast {
        before,
        after: stage.cloud,
        objects_before,
        objects_after: stage.objects,
        calls: if settled { stage.calls } else { stage.calls_until_write },
        writes: stage.writes,
        notices: stage.notices,
        services: explained(&stage.engine),
        gateway_trouble: stage.engine.start_up().gateway_trouble,
        skipped: worlds.skipped.iter().map(|(_, sentence)| sentence.clone()).collect(),
        unclaimed: stage.engine.unclaimed().iter().map(ToString::to_string).collect(),
        kept_for_others: stage.engine.gauges().kept_for_others,
        settled,
    }
}

fn explained(engine: &Engine) -> Vec<(ServiceView, Vec<WaitsFor>)> {
    let with_waits = |view: ServiceView| {
        let waits = engine.explain(&view.key).map(|it| it.waits_for).unwrap_or_default();
        (view, waits)
    };
    engine.services().into_iter().map(with_waits).collect()
}

struct Stage {
    now: Time,
    engine: Engine,
    updaters: Updaters,
    cloud: Cloud,
    objects: BTreeMap<Uid, ServiceObject>,
    pods: Vec<PodObject>,
    /// A Service could not be read: one that is not in the list may be that one.
    services_skipped: bool,
    quiet: Duration,
    version: u64,
    calls: BTreeMap<Method, usize>,
    /// The same up to the last write.
    calls_until_write: BTreeMap<Method, usize>,
    writes: Vec<Request>,
    notices: Vec<Notice>,
    /// Answers on their way, the oldest first.
    answers: VecDeque<(Time, CallId, Answer)>,
    last_write: Time,
}

impl Stage {
    fn set(engine: sluice_engine::Config, updaters: sluice_updater::Config, worlds: &Worlds) -> Stage {
        let scope = engine.scope.clone();
        let mut cloud = Cloud::new(sluice_cloud::Config {
            latency: Latencies::INSTANT,
            buckets: None,
            quota: Quota::UNLIMITED,
            page_size: 1_000,
            ..sluice_cloud::Config::default()
        });
        for listing in &worlds.azure {
            cloud.take_over(&scope, listing);
        }
        // The budget says how long it takes, not what is done.
        let plenty = BucketSize { burst: 1_000_000, per_second: 1_000_000 };
        let updaters = sluice_updater::Config {
            reads: plenty,
            writes: plenty,
            deletes: plenty,
            reads_per_window: u32::MAX / 2,
            writes_per_window: u32::MAX / 2,
            ..updaters
        };
        let mut updaters = Updaters::new(updaters, scope, 0, Seeded::NONE);
        updaters.fence(Some(Time::NEVER));
        let mut objects = BTreeMap::new();
        let mut pods = Vec::new();
        let mut version = 0;
        for event in &worlds.kubernetes {
            let Event::Relisted { version: listed, objects: list } = event else { continue };
            version = version.max(*listed);
            match list {
                Relist::Services(services) => {
                    objects.extend(services.iter().map(|object| (object.uid, object.clone())));
                }
                Relist::Pods(all) => pods.clone_from(all),
                Relist::Slices(_) | Relist::Nodes(_) => {}
            }
        }
        Stage {
            now: Time::ZERO,
            services_skipped: worlds.skipped.iter().any(|(kind, _)| *kind == Kind::Service),
            quiet: QUIET.max(2 * engine.second_look),
            engine: Engine::new(engine, 0, Seeded::NONE),
            updaters,
            cloud,
            objects,
            pods,
            version,
            calls: BTreeMap::new(),
            calls_until_write: BTreeMap::new(),
            writes: Vec::new(),
            notices: Vec::new(),
            answers: VecDeque::new(),
            last_write: Time::ZERO,
        }
    }

    /// Until nothing has been written for a while after the first difference was worked off.
    fn run(&mut self) -> bool {
        let horizon = self.now + HORIZON;
        loop {
            let quiet_at = self.last_write + self.quiet;
            if self.engine.initial_sync_done() && self.now >= quiet_at {
                return true;
            }
            let answer = self.answers.front().map(|(at, ..)| *at);
            // What is still open when all has been quiet for long waits for a deadline, if for anything.
            let quiet = (quiet_at > self.now).then_some(quiet_at);
            let deadlines = [self.engine.next_deadline(), self.updaters.next_deadline(), answer, quiet];
            let Some(next) = deadlines.into_iter().flatten().min() else {
                return self.engine.initial_sync_done();
            };
            self.now = next.max(self.now + Duration::from_millis(1));
            while let Some((_, call, answer)) = self.answers.pop_front_if(|(at, ..)| *at <= self.now) {
                self.updaters.replied(self.now, call, Reply::Answered(answer));
            }
            if self.now > horizon {
                return self.engine.initial_sync_done();
            }
            self.work(VecDeque::new());
        }
    }

    fn work(&mut self, mut events: VecDeque<Event>) {
        self.updaters.tick(self.now);
        if self.engine.next_deadline().is_some_and(|at| at <= self.now) {
            events.push_back(Event::Tick);
        }
        loop {
            while let Some(event) = events.pop_front() {
                for effect in self.engine.handle(self.now, event) {
                    self.start(effect, &mut events);
                }
            }
            while let Some(output) = self.updaters.next_output(self.now) {
                match output {
                    Output::Report(event) => events.push_back(event),
                    Output::Send { call, request, .. } => {
                        let answer = self.send(request);
                        self.answers.push_back((self.now + ROUND_TRIP, call, answer));
                    }
                }
            }
            if events.is_empty() {
                return;
            }
        }
    }

    fn send(&mut self, request: Request) -> Answer {
        *self.calls.entry(request.method).or_default() += 1;
        let answer = self.cloud.handle(self.now, &request);
        if is_write(request.method) {
            self.note_write();
            self.writes.push(request);
        }
        answer
    }

    fn note_write(&mut self) {
        self.last_write = self.now;
        self.calls_until_write.clone_from(&self.calls);
    }

    fn start(&mut self, effect: Effect, events: &mut VecDeque<Event>) {
        if self.updaters.start(self.now, &effect) {
            return;
        }
        match effect.action {
            Action::Notify(notice) => self.notices.push(notice),
            Action::ConfirmGone(object) => {
                let existence = match self.objects.contains_key(&object.uid) {
                    true => Existence::Exists,
                    false if self.services_skipped => Existence::Unclear,
                    false => Existence::Gone,
                };
                let outcome = Outcome::Existence(existence);
                events.push_back(Event::EffectFinished { id: effect.id, outcome });
            }
            Action::AddFinalizer(object) => {
                self.write(effect.id, object.uid, events, |it| it.finalizer = true);
            }
            Action::RemoveFinalizer(object) => {
                self.write(effect.id, object.uid, events, |it| (it.finalizer, it.inherited) = (false, false));
            }
            Action::WriteStatus { object, ingress, retract, conditions } => {
                self.write(effect.id, object.uid, events, |it| {
                    it.ingress.retain(|ip| Some(*ip) != retract);
                    if let Some(ip) = ingress.filter(|ip| !it.ingress.contains(ip)) {
                        it.ingress.push(ip);
                    }
                    it.published = ingress;
                    it.annotated = ingress;
                    it.conditions = conditions;
                });
            }
            Action::Relist(Kind::Pod) => {
                let objects = Relist::Pods(self.pods.clone());
                events.push_back(Event::Relisted { version: self.version, objects });
            }
            // There is nothing newer than what was listed.
            _ => {}
        }
    }

    /// Writes into the copy of a Service; its watch tells at once.
    fn write(
        &mut self,
        id: EffectId,
        uid: Uid,
        events: &mut VecDeque<Event>,
        write: impl FnOnce(&mut ServiceObject),
    ) {
        self.version += 1;
        self.note_write();
        let outcome = match self.objects.get_mut(&uid) {
            None => KubeOutcome::Gone,
            Some(object) => {
                write(object);
                object.version = self.version;
                if object.deleting && !object.finalizer && !object.inherited {
                    events.push_back(Event::ServiceDeleted { uid, name: object.name.clone() });
                    self.objects.remove(&uid);
                } else {
                    events.push_back(Event::ServiceApplied(object.clone()));
                }
                KubeOutcome::Done { version: self.version }
            }
        };
        events.push_back(Event::EffectFinished { id, outcome: Outcome::Kube(outcome) });
    }
}

/// Whether a call changes anything.
pub fn is_write(method: Method) -> bool {
    !matches!(method, Method::Get | Method::List | Method::Poll)
}
