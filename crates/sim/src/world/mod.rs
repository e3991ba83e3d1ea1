//! Everything under one clock and one seed.
//!
//! The world is a queue of happenings ordered by time and then by the order in which they were
//! planned. Each is one step: a user acts, a request arrives at Azure, an answer arrives at a
//! process, a lease is renewed, a fault strikes, a process wakes because something is due. After
//! every step the judge looks. Nothing here reads a clock or has a thread, so a seed is a run.
//!
//! ```text
//! users ──▶ cluster ──▶ informer ──▶ engine ──▶ updaters ──▶ wire ──▶ cloud
//!              ▲                        │  ▲                            │
//!              └──── finalizers, status ┘  └────────── replies ◀────────┘
//! ```

mod azure;
mod clock;
mod disturb;
mod drive;
mod kube;
mod lease;
mod others;
mod process;
mod setup;
mod tags;
mod take_over;
mod trouble;
mod wire;

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use sluice_cloud::{Cloud, Config as CloudConfig};
use sluice_model::allow_deletion::AllowedDeletions;
use sluice_model::azure::ArmId;
use sluice_model::kube::Kind;
use sluice_model::lease::Timing;
use sluice_model::names::Scope;
use sluice_model::seeded::Seeded;
use sluice_model::{Time, Uid};

use crate::cluster::stories::{UserAction, apply, random_action};
use crate::cluster::{Cluster, KubeFault, KubeFaults};
use crate::coverage::Coverage;
use crate::faults::FaultPlan;
use crate::invariants::{Judge, Tally};
use crate::names::{FaultKind, Invariant, Violation};
use crate::rng::Rng;
use crate::trace::Trace;

pub use clock::Clock;
pub use lease::configured_timing;
pub use process::Settings;
pub use setup::{CrashPoint, Pace, Setup, scope};

use drive::Fate;
use lease::Lease;
use process::Process;
use wire::{Incoming, OnTheWire, ToKube};

/// The recount is slow, so it is taken every so many steps and at the end.
const RECOUNT_EVERY: u64 = 64;

/// One thing that will happen.
#[derive(Clone, Debug)]
enum Happening {
    User(UserAction),
    Dice,
    Fault(FaultKind),
    FaultEnds(FaultKind),
    Wake { slot: usize, life: u64 },
    LeaseLook { slot: usize, life: u64 },
    Arrives(u64),
    KubeArrives(u64),
    ReachesProcess { slot: usize, life: u64, incoming: Incoming },
    CloudDue,
    KubeLanding,
    Restart { slot: usize },
    Thaw { slot: usize, life: u64 },
    GraceEnds { slot: usize, life: u64 },
}

/// Everything.
pub struct World {
    /// The one clock.
    pub now: Time,
    /// Azure.
    pub cloud: Cloud,
    /// Kubernetes.
    pub cluster: Cluster,
    /// Names and places.
    pub scope: Scope,
    /// What was exercised.
    pub coverage: Coverage,
    /// What was written down.
    pub trace: Trace,
    /// Steps so far.
    pub steps: u64,
    /// External calls begun: requests to Azure, and writes and questions to Kubernetes.
    pub external_calls: u64,
    /// Writes that processes have begun: to Azure, reads and polls not counted.
    pub azure_writes: u64,
    /// When the last of them was begun.
    pub last_write_at: Time,
    /// Actions that changed something, in order.
    pub actions_done: Vec<(Time, UserAction, bool)>,
    queue: BTreeMap<(Time, u64), Happening>,
    planned: u64,
    processes: Vec<Option<Box<Process>>>,
    clocks: Vec<Clock>,
    settings: Vec<Settings>,
    lives: u64,
    lease: Lease,
    plan: FaultPlan,
    kube_faults: KubeFaults,
    to_azure: BTreeMap<u64, OnTheWire>,
    to_kube: BTreeMap<u64, ToKube>,
    wired: u64,
    judge: Judge,
    seeded: Seeded,
    crash: Option<CrashPoint>,
    pace: Pace,
    hints: Rng,
    net: Rng,
    users: Rng,
    chance: Rng,
    own: Rng,
    cloud_armed: Option<Time>,
    landing_armed: Option<Time>,
    counted: [u64; 20],
    wakes_at_once: u32,
    calm: bool,
    slowness: u64,
    locked: Vec<ArmId>,
    foreigners: u64,
    /// Resources of others, which must be there in the end as they were made.
    pub(crate) foreign: Vec<ArmId>,
    /// Public IPs that lost our tags while a Service used them.
    pub(crate) released: BTreeSet<ArmId>,
    /// Services that our finalizer was taken off by force, or that vanished with their namespace: without us.
    pub(crate) stripped: BTreeSet<Uid>,
    /// Services whose load balancer has lost our tags once.
    untagged: BTreeSet<Uid>,
    /// Addresses of others by location, address and service, and since when.
    foreign_addresses: BTreeMap<(IpAddr, IpAddr, Arc<str>), Time>,
    /// How much the hands of others have destroyed, in writes that repair it.
    pub destroyed: u64,
    /// When all faults ended.
    pub faults_ended_at: Time,
    /// Kinds whose first list the next process gets later, and how much.
    late_lists: Vec<(Kind, Duration)>,
    /// The annotation on the Lease with which the operator allows held deletions.
    allowed: AllowedDeletions,
}

impl World {
    /// A world with an empty cluster, a prepared subscription, and processes that start at once.
    pub fn new(setup: Setup) -> World {
        let rng = Rng::new(setup.seed);
        let scope = scope();
        let mut chance = rng.fork("faults");
        let cloud_config = CloudConfig {
            seed: rng.fork("cloud").next_u64(),
            page_size: usize::try_from(rng.fork("pages").between(2, 12)).unwrap_or(5),
            synchronous_posts: setup.synchronous_posts,
            latency: setup.pace.latency,
            ..CloudConfig::default()
        };
        let mut cloud = Cloud::new(cloud_config);
        cloud.prepare(Time::ZERO, &scope);
        disturb::make_gateway(&mut cloud, &scope, setup.gateway);
        let clocks = (0..setup.processes)
            .map(|_| match setup.kube_faults.per_mille(KubeFault::LeaseSkew) > 0 {
                true => Clock::skewed(chance.between(0, 90_000), chance.between(985, 1_015)),
                false => Clock::EXACT,
            })
            .collect();
        let mut settings = vec![setup.settings; setup.processes];
        for (settings, timing) in settings.iter_mut().zip(setup.timings) {
            settings.timing = timing;
        }
        let mut world = World {
            now: Time::ZERO,
            cloud,
            cluster: Cluster::new(),
            coverage: Coverage::default(),
            trace: Trace::new(setup.traced),
            steps: 0,
            external_calls: 0,
            azure_writes: 0,
            last_write_at: Time::ZERO,
            actions_done: Vec::new(),
            queue: BTreeMap::new(),
            planned: 0,
            processes: (0..setup.processes).map(|_| None).collect(),
            clocks,
            settings,
            lives: 0,
            lease: Lease::default(),
            plan: setup.plan,
            kube_faults: setup.kube_faults,
            to_azure: BTreeMap::new(),
            to_kube: BTreeMap::new(),
            wired: 0,
            judge: Judge::new(scope.clone()),
            scope,
            seeded: setup.seeded,
            crash: setup.crash,
            pace: setup.pace,
            hints: rng.fork("hints"),
            net: rng.fork("network"),
            users: rng.fork("users"),
            own: rng.fork("world"),
            chance,
            cloud_armed: None,
            landing_armed: None,
            counted: [0; 20],
            wakes_at_once: 0,
            calm: false,
            slowness: 1,
            locked: Vec::new(),
            foreigners: 0,
            foreign: Vec::new(),
            released: BTreeSet::new(),
            stripped: BTreeSet::new(),
            untagged: BTreeSet::new(),
            foreign_addresses: BTreeMap::new(),
            destroyed: 0,
            faults_ended_at: Time::ZERO,
            late_lists: Vec::new(),
            allowed: AllowedDeletions::default(),
        };
        for slot in 0..setup.processes {
            let at = Time::from_millis(if slot == 0 { 0 } else { 700 });
            world.plan_at(at, Happening::Restart { slot });
        }
        world
    }

    /// Plans what users do.
    pub fn plan_action(&mut self, at: Time, action: UserAction) {
        self.plan_at(at, Happening::User(action));
    }

    /// Plans actions by dice, each chosen when its time has come.
    pub fn plan_dice(&mut self, actions: u64, within: Duration) {
        let end = u64::try_from(within.as_millis()).unwrap_or(0);
        let mut at = Time::from_millis(300);
        for _ in 0..actions {
            self.plan_at(at, Happening::Dice);
            // Often in quick succession, sometimes with a pause.
            let mean = end / actions.max(1);
            let wait = if self.users.chance(500) {
                self.users.between(0, 300)
            } else {
                self.users.between(0, mean * 3)
            };
            at = at + Duration::from_millis(wait);
        }
    }

    /// The operator looks at what is held, and allows exactly that; the leader reads it when it renews its lease.
    ///
    /// **L2**: nobody should be asked about a deletion that had begun.
    pub fn allow_deletion(&mut self) -> Result<(), Violation> {
        let gateway = self.scope.gateway_id();
        for view in self.views().iter().filter(|view| view.held.is_some()) {
            let identity = view.key.identity();
            let mut cleared = self.cloud.state().registrations(&gateway).filter(|it| {
                it.name.eq_ignore_ascii_case(&identity) && it.pools.is_empty() && it.nat_gateway.is_none()
            });
            if cleared.next().is_some() {
                let text = format!("the deletion of {} is held although it had begun", view.key);
                return Err(Violation::of(Invariant::L2, text));
            }
        }
        self.consent();
        Ok(())
    }

    /// Adds what is held now to the annotation.
    fn consent(&mut self) {
        let held = self.views().into_iter().filter_map(|view| Some((view.key, view.held?.fingerprint)));
        let (keys, held): (Vec<_>, Vec<_>) = held.unzip();
        if !keys.is_empty() {
            self.judge.allowed(&keys);
            self.allowed = self.allowed.iter().chain(held).collect();
        }
    }

    /// Every process is asked to end, and another takes its place.
    pub fn replace_all(&mut self) {
        for slot in 0..self.processes.len() {
            self.stop(slot);
        }
        self.arm_all();
    }

    /// Whether the processes make a default outbound service.
    pub fn default_outbound(&self) -> sluice_engine::DefaultOutbound {
        self.settings
            .first()
            .map_or(sluice_engine::DefaultOutbound::Leave, |settings| settings.engine.default_outbound)
    }

    /// Plans a fault that begins at a moment.
    pub fn plan_fault(&mut self, at: Time, kind: FaultKind) {
        self.plan_at(at, Happening::Fault(kind));
    }

    /// Runs until nothing is planned before `until`, and sets the clock to it.
    pub fn run_until(&mut self, until: Time) -> Result<(), Violation> {
        while let Some((&(at, _), _)) = self.queue.first_key_value() {
            if at > until {
                break;
            }
            self.step()?;
        }
        self.now = self.now.max(until);
        self.cloud.advance(self.now);
        self.cluster.set_time(self.now);
        Ok(())
    }

    /// All faults end, whatever was frozen thaws, whoever is dead comes back.
    pub fn calm_down(&mut self) {
        self.calm = true;
        self.faults_ended_at = self.now;
        self.trace.world(self.now, || "all faults end".into());
        self.plan.calm();
        self.kube_faults.calm();
        self.cloud.calm();
        self.slowness = 1;
        self.crash = None;
        let faults: Vec<(Time, u64)> = self
            .queue
            .iter()
            .filter(|(_, what)| {
                matches!(what, Happening::Fault(_) | Happening::FaultEnds(_) | Happening::Dice)
            })
            .map(|(key, _)| *key)
            .collect();
        for key in faults {
            self.queue.remove(&key);
        }
        for slot in 0..self.processes.len() {
            let life = match &self.processes[slot] {
                Some(process) if process.frozen_until.is_some() => process.life,
                _ => continue,
            };
            self.plan_at(self.now, Happening::Thaw { slot, life });
        }
        self.arm_all();
    }

    /// The slow truth: every engine's books add up, and none has met the impossible.
    pub fn recount(&self) -> Result<(), Violation> {
        for process in self.processes.iter().flatten() {
            process.engine.recount().map_err(Violation::internal)?;
            let errors = process.engine.counters().internal_errors;
            if errors > 0 {
                return Err(Violation::internal(format!("the engine counts {errors} internal errors")));
            }
        }
        Ok(())
    }

    /// What the leader's engine shows; nothing if nobody leads.
    pub fn views(&self) -> Vec<sluice_engine::ServiceView> {
        self.leader().map_or_else(Vec::new, |process| process.engine.services())
    }

    /// How many plans the process with the fewest workers runs at once.
    pub(crate) fn slots_min(&self) -> usize {
        self.settings.iter().map(|settings| settings.engine.slots_max).min().unwrap_or(1)
    }

    /// How much longer than by default the Lease of a dead leader may be honored.
    pub(crate) fn longer_lease(&self) -> Duration {
        let longest = self.settings.iter().map(|settings| settings.timing.lease).max().unwrap_or_default();
        longest.saturating_sub(Timing::default().lease)
    }

    /// Services whose creation came to its end although its process knew that they are rejected.
    pub(crate) fn rejected_creations(&self) -> Vec<sluice_model::Uid> {
        self.judge.rejected_creations().collect()
    }

    /// Services whose IP we have ever published.
    pub(crate) fn served(&self) -> impl Iterator<Item = Uid> + '_ {
        self.judge.served.iter().copied()
    }

    /// Whether somebody leads and has worked off the first difference.
    pub fn is_synced(&self) -> bool {
        self.leader().is_some_and(|process| process.engine.initial_sync_done())
    }

    fn leader(&self) -> Option<&Process> {
        self.processes.iter().flatten().map(Box::as_ref).find(|process| process.leads())
    }

    /// Takes over the counts of engines that are still alive.
    pub fn collect_cells(&mut self) {
        for process in self.processes.iter().flatten() {
            self.coverage.cells(&process.engine.counters().cells);
        }
    }

    fn plan_at(&mut self, at: Time, what: Happening) {
        self.planned += 1;
        self.queue.insert((at.max(self.now), self.planned), what);
    }

    /// The next happening.
    fn step(&mut self) -> Result<(), Violation> {
        let Some(((at, _), what)) = self.queue.pop_first() else { return Ok(()) };
        if at > self.now {
            self.wakes_at_once = 0;
        }
        self.now = self.now.max(at);
        self.steps += 1;
        self.cluster.set_time(self.now);
        let quiet = matches!(what, Happening::LeaseLook { .. });
        self.happen(what)?;
        self.arm_all();
        if !quiet {
            let mut tally = Tally { coverage: &mut self.coverage, now: self.now };
            self.judge.step(self.cloud.state(), &self.cluster, &mut tally)?;
            if self.steps.is_multiple_of(RECOUNT_EVERY) {
                self.recount()?;
            }
        }
        Ok(())
    }

    fn happen(&mut self, what: Happening) -> Result<(), Violation> {
        match what {
            Happening::User(action) => self.user_acts(action)?,
            Happening::Dice => {
                let action = random_action(&mut self.users, &self.cluster);
                self.user_acts(action)?;
            }
            Happening::Fault(kind) => self.fault_begins(kind)?,
            Happening::FaultEnds(kind) => self.fault_ends(kind),
            Happening::Wake { slot, life } => self.wake(slot, life)?,
            Happening::LeaseLook { slot, life } => self.look_at_lease(slot, life)?,
            Happening::Arrives(number) => self.request_arrives(number)?,
            Happening::KubeArrives(number) => self.kube_call_arrives(number)?,
            Happening::ReachesProcess { slot, life, incoming } => self.reach(slot, life, incoming)?,
            Happening::CloudDue => {
                self.cloud_armed = None;
                self.cloud.advance(self.now);
            }
            Happening::KubeLanding => {
                // The cluster has landed it when its time was set.
                self.landing_armed = None;
            }
            Happening::Restart { slot } => self.restart(slot),
            Happening::Thaw { slot, life } => self.thaw(slot, life)?,
            Happening::GraceEnds { slot, life } => self.grace_ends(slot, life),
        }
        Ok(())
    }

    fn user_acts(&mut self, action: UserAction) -> Result<(), Violation> {
        let taken_away = self.cluster.services().filter(|stored| match &action {
            UserAction::StripFinalizer { service } => stored.meta.name == *service,
            UserAction::DropNamespace { namespace } => stored.meta.name.namespace == *namespace,
            _ => false,
        });
        self.stripped.extend(taken_away.map(|stored| stored.meta.uid));
        let changed = apply(&mut self.cluster, &action);
        self.acts_in_azure(&action);
        match (&action, self.leading_slot()) {
            (UserAction::AllowDeletion, _) => self.consent(),
            (UserAction::StopLeader, Some(slot)) => self.stop(slot),
            _ => {}
        }
        let now = self.now;
        self.trace.world(now, || {
            let nothing = if changed { "" } else { " (nothing changes)" };
            format!("user: {action}{nothing}")
        });
        if let UserAction::Trouble(trouble) = &action {
            self.trouble_begins(trouble)?;
        }
        self.actions_done.push((self.now, action, changed));
        self.count_kube_faults();
        Ok(())
    }

    /// Plans the next wake-up of everybody.
    fn arm_all(&mut self) {
        for slot in 0..self.processes.len() {
            self.arm(slot);
        }
        if let Some(at) = self.cloud.next_deadline()
            && at != Time::NEVER
            && self.cloud_armed.is_none_or(|armed| at < armed)
        {
            self.cloud_armed = Some(at);
            self.plan_at(at, Happening::CloudDue);
        }
        if let Some(at) = self.cluster.next_landing()
            && self.landing_armed.is_none_or(|armed| at < armed)
        {
            self.landing_armed = Some(at);
            self.plan_at(at, Happening::KubeLanding);
        }
    }

    fn arm(&mut self, slot: usize) {
        let now = self.now;
        let Some(process) = &mut self.processes[slot] else { return };
        if process.frozen_until.is_some() {
            return;
        }
        let clock = process.clock;
        let engine = process.engine.next_deadline().map(|at| clock.world(at));
        let updaters = process.updaters.next_deadline().map(|at| clock.world(at));
        let informer = process.informer.next_event_at(now, &self.cluster, &self.kube_faults);
        let next = [engine, updaters, informer].into_iter().flatten().filter(|at| *at != Time::NEVER).min();
        let Some(at) = next.map(|at| at.max(now)) else { return };
        if process.armed.is_none_or(|armed| at < armed) {
            process.armed = Some(at);
            let life = process.life;
            self.plan_at(at, Happening::Wake { slot, life });
        }
    }

    /// Takes over what the fake cluster has counted.
    fn count_kube_faults(&mut self) {
        for (at, fault) in KubeFault::ALL.into_iter().enumerate() {
            let count = self.kube_faults.injected().of(fault) + self.cluster.happened().of(fault);
            for _ in self.counted[at]..count {
                self.coverage.injected(self.now, FaultKind::ALL[at]);
            }
            self.counted[at] = count;
        }
    }

    /// How long something takes on the network, one way.
    fn network_delay(&mut self) -> Duration {
        Duration::from_millis(self.net.between(3, 45) * self.slowness)
    }
}

/// What a process is called in traces.
fn letter(slot: usize) -> &'static str {
    ["A", "B", "C", "D"].get(slot).copied().unwrap_or("?")
}

/// A name for the things that foreigners make.
fn foreign_tags() -> sluice_model::azure::Tags {
    sluice_model::azure::Tags::from([(Arc::from("team"), Arc::from("somebody else"))])
}
