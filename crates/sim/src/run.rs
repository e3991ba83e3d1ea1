//! One run from beginning to end: the fault phase, the end of all faults, and what must hold then.

use core::time::Duration;

use sluice_cloud::{LockLevel, Tamper};
use sluice_model::kube::{Phase, Protocol, ServicePort, SlicePort, TargetPort};
use sluice_model::lease::Timing;
use sluice_model::seeded::Seeded;
use sluice_model::{ObjectName, Time};

use crate::cluster::objects::{AddressType, EndpointRecord, Health, PodRecord, ServiceRecord};
use crate::cluster::stories::{FirstGateway, OwnerBy, SliceDraft, Storm, Story, UserAction, taken_over};
use crate::cluster::{KubeFault, KubeFaults};
use crate::coverage::Coverage;
use crate::faults::{FaultPlan, kube_faults, only_kube_faults};
use crate::liveness::{compare, foreigners_untouched, nothing_waits};
use crate::names::{FaultKind, Invariant, Violation};
use crate::rng::Rng;
use crate::twin::{same_as_without_faults, same_in_another_order};
use crate::world::{CrashPoint, Pace, Settings, Setup, World, configured_timing, scope};

/// The longest that convergence may take.
const CONVERGE_MAX: Duration = Duration::from_secs(3 * 3_600);
/// How often it is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(20);
/// How soon a new Service must be served although another one is in trouble (L7).
const PROBE_MAX: Duration = Duration::from_secs(300);
/// How long the gateway may be missing after faults have stopped: its longest park is an hour.
const GATEWAY_MAX: Duration = Duration::from_secs(2 * 3_600);
/// How long the world must then be quiet: two drift sweeps of every kind.
const QUIET_SWEEPS: u32 = 2;

/// What one run came to.
#[derive(Clone, Debug)]
pub struct Report {
    /// Its seed.
    pub seed: u64,
    /// What did not hold, and when.
    pub failure: Option<(Time, Violation)>,
    /// Steps taken.
    pub steps: u64,
    /// Virtual time at the end.
    pub ended: Time,
    /// What was exercised.
    pub coverage: Coverage,
    /// External calls before faults ended.
    pub external_calls: u64,
    /// Azure writes in all.
    pub azure_writes: u64,
    /// Whether the end was compared with that of a run without faults.
    pub compared: bool,
    /// Whether it was also compared with that of the same edits in another order.
    pub reordered: bool,
    /// The trace, if one was asked for.
    pub trace: String,
}

/// What users do in a run.
#[derive(Clone, Debug)]
pub enum Script {
    /// Dice.
    Dice {
        /// How many actions.
        actions: u64,
        /// Within this time.
        within: Duration,
    },
    /// Given actions at given times.
    Given(Vec<(Time, UserAction)>),
}

impl Script {
    /// A named story, begun when the process has had a moment to start.
    pub fn story(story: &Story) -> Script {
        let mut at = Time::from_millis(500);
        let mut given = Vec::new();
        for (wait_ms, action) in &story.steps {
            at = at + Duration::from_millis(*wait_ms);
            given.push((at, action.clone()));
        }
        Script::Given(given)
    }

    fn length(&self) -> Duration {
        match self {
            Script::Dice { within, .. } => *within,
            Script::Given(given) => given.last().map_or(Duration::ZERO, |(at, _)| at.since(Time::ZERO)),
        }
    }
}

/// Everything that decides a run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How the world is made.
    pub setup: Setup,
    /// What users do.
    pub script: Script,
    /// How long the fault phase lasts after the last action.
    pub aftermath: Duration,
    /// Compare the end with that of a run of the same actions without faults.
    pub compare: bool,
    /// What happens beside the script and the plan of faults.
    pub scene: Scene,
}

/// Actions and faults at given moments.
#[derive(Clone, Debug, Default)]
pub struct Scene {
    /// What users do.
    pub actions: Vec<(Time, UserAction)>,
    /// What goes wrong.
    pub cues: Vec<(Time, FaultKind)>,
}

impl Plan {
    /// The plan of a seed: swarm of faults, one or two processes, dice.
    pub fn of_seed(seed: u64, seeded: Seeded, traced: bool) -> Plan {
        let rng = Rng::new(seed);
        let mut dice = rng.fork("plan");
        let mut settings = Settings::new(&scope());
        if dice.chance(150) {
            // A small share of the budget, so that it binds.
            settings.updater.share_permille = 50;
        }
        if dice.chance(150) {
            settings.engine.slots_max = 2;
        }
        if dice.chance(100) {
            settings.engine.linger = Duration::from_secs(dice.between(1, 60));
        }
        let within = Duration::from_millis(dice.between(30_000, 90_000));
        let plan = if dice.chance(60) { FaultPlan::none() } else { FaultPlan::random(&mut dice) };
        // Where everything is fifty times slower, slow operations would take hours.
        let mut paces = rng.fork("pace");
        let pace = match plan.has(FaultKind::Z21) || paces.chance(300) {
            true => Pace::default(),
            false => Pace::random(&mut paces),
        };
        let kube_faults = kube_faults(&mut dice);
        // Not where lists are stale: a registration of others that leads to nothing names no Service, so two stale lists in
        // a row are enough to lose it.
        let is_stale = kube_faults.per_mille(KubeFault::StaleList) > 0;
        let mut before = rng.fork("before");
        let was_served = before.chance(250) && !is_stale;
        // Where another controller was first, it has made the gateway.
        let gateway = match first_gateway(&mut rng.fork("gateway")) {
            FirstGateway::Missing if was_served => FirstGateway::OfOthers,
            other => other,
        };
        let processes = if dice.chance(450) { 2 } else { 1 };
        let setup = Setup {
            seed,
            processes,
            settings,
            timings: timings(&mut rng.fork("lease"), processes, seeded),
            plan,
            kube_faults,
            seeded,
            traced,
            crash: None,
            synchronous_posts: dice.chance(200),
            gateway,
            pace,
        };
        let script = Script::Dice { actions: dice.between(20, 55), within };
        let mut scene = brake_scene(&mut rng.fork("scene"));
        if was_served {
            let first = taken_over(&mut before).into_iter().map(|action| (Time::ZERO, action));
            scene.actions.splice(0..0, first);
        }
        Plan { setup, script, aftermath: Duration::from_secs(20), compare: true, scene }
    }

    /// The same with only these faults.
    pub fn with_only(mut self, faults: &[FaultKind]) -> Plan {
        self.setup.plan = FaultPlan::only(faults);
        self.setup.kube_faults = only_kube_faults(faults);
        if !faults.contains(&FaultKind::P2) {
            self.scene.cues.clear();
        }
        self
    }

    /// The plan of a storm.
    pub fn of_storm(storm: &Storm, seeded: Seeded, traced: bool) -> Plan {
        let mut plan = Plan::of_story(&storm.story, seeded, traced, None);
        plan.setup.processes = storm.processes();
        // L8 is judged by the run without faults.
        plan.compare = true;
        plan
    }

    /// The plan of a named story, perhaps with one crash.
    pub fn of_story(story: &Story, seeded: Seeded, traced: bool, crash: Option<CrashPoint>) -> Plan {
        let setup = Setup {
            seed: 1,
            processes: story.processes,
            settings: Settings::new(&scope()),
            timings: story.lease.iter().map(|lease| configured_timing(*lease, seeded)).collect(),
            plan: FaultPlan::none(),
            kube_faults: KubeFaults::none(),
            seeded,
            traced,
            crash,
            synchronous_posts: false,
            gateway: story.gateway,
            pace: Pace::default(),
        };
        Plan {
            setup,
            script: Script::story(story),
            aftermath: Duration::from_secs(30),
            compare: false,
            scene: Scene::default(),
        }
    }
}

/// Now and then one of two processes has a longer lease, as in the middle of a change of the configuration. The longest
/// that the operator wants is more than is accepted. Most are short: while a long one runs out, no process acts.
fn timings(dice: &mut Rng, processes: usize, seeded: Seeded) -> Vec<Timing> {
    if processes < 2 || !dice.chance(350) {
        return Vec::new();
    }
    let longest = *dice.pick(&[30, 60, 90, 600]).unwrap_or(&60);
    let longer = configured_timing(Duration::from_secs(dice.between(16, longest)), seeded);
    if dice.chance(650) { vec![longer] } else { vec![Timing::default(), longer] }
}

/// Most clusters get a gateway of their own.
fn first_gateway(dice: &mut Rng) -> FirstGateway {
    match dice.below(10) {
        0 | 1 => FirstGateway::OfOthers,
        2 => FirstGateway::OfOthersFailed,
        _ => FirstGateway::Missing,
    }
}

/// Now and then a scene for the brake: a crowd of Services or egresses is served, and then goes at once.
fn brake_scene(dice: &mut Rng) -> Scene {
    let crowd = |action: &dyn Fn(u64) -> UserAction, at: u64| {
        (0..9u64).map(|number| (Time::from_millis(at + number), action(number))).collect::<Vec<_>>()
    };
    let create_service = |number| {
        let service = ObjectName::new("crowd", format!("web-{number}"));
        UserAction::CreateService { service, record: ServiceRecord::balanced(vec![port(80)]) }
    };
    let pod = |number: u64| ObjectName::new("crowd", format!("job-{number}"));
    let create_pod = |number| {
        let record = PodRecord {
            egress: Some(format!("crowd-{number}").into()),
            node: None,
            ips: Vec::new(),
            host_ips: Vec::new(),
            phase: Phase::Running,
            host_network: false,
        };
        UserAction::CreatePod { pod: pod(number), record }
    };
    let drop = || UserAction::DropNamespace { namespace: "crowd".into() };
    let (gone_at, soon) = (28_000, dice.between(0, 6_000));
    let mut actions = match dice.below(40) {
        // The process is replaced, and in that very moment a namespace vanishes: nobody watched it go.
        0 | 1 => {
            let mut actions = crowd(&create_service, 400);
            actions.push((Time::from_millis(gone_at + 200), drop()));
            return Scene { actions, cues: vec![(Time::from_millis(gone_at), FaultKind::P2)] };
        }
        // Users delete the pods of many egresses, and the leader is replaced soon after.
        2 | 3 => {
            let mut actions = crowd(&create_pod, 400);
            actions.extend(crowd(&|number| UserAction::DeletePod { pod: pod(number) }, gone_at));
            return Scene { actions, cues: vec![(Time::from_millis(gone_at + soon), FaultKind::P2)] };
        }
        // Many objects are missing from the next list, as after etcd was restored from a backup.
        4 => crowd(&create_service, 400),
        5 => crowd(&create_pod, 400),
        _ => return Scene::default(),
    };
    actions.push((Time::from_millis(gone_at), drop()));
    actions.push((Time::from_millis(gone_at), UserAction::CompactHistory));
    Scene { actions, cues: Vec::new() }
}

/// Runs a plan.
pub fn run(plan: &Plan) -> Report {
    let mut world = World::new(plan.setup.clone());
    let (mut compared, mut reordered) = (false, false);
    let mut external_calls = 0;
    let result = (|| {
        fault_phase(&mut world, plan)?;
        external_calls = world.external_calls;
        liveness_phase(&mut world, plan)?;
        if plan.compare {
            compared = same_as_without_faults(&mut world, plan)?;
            reordered = compared && same_in_another_order(&mut world, plan)?;
        }
        Ok(())
    })();
    world.collect_cells();
    Report {
        seed: plan.setup.seed,
        failure: result.err().map(|violation| (world.now, violation)),
        steps: world.steps,
        ended: world.now,
        coverage: world.coverage.clone(),
        external_calls,
        azure_writes: world.azure_writes,
        compared,
        reordered,
        trace: world.trace.text().to_owned(),
    }
}

pub(crate) fn fault_phase(world: &mut World, plan: &Plan) -> Result<(), Violation> {
    let phase = plan.script.length() + plan.aftermath;
    match &plan.script {
        Script::Dice { actions, within } => world.plan_dice(*actions, *within),
        Script::Given(given) => {
            for (at, action) in given {
                world.plan_action(*at, action.clone());
            }
        }
    }
    for (at, action) in &plan.scene.actions {
        world.plan_action(*at, action.clone());
    }
    for (at, kind) in &plan.scene.cues {
        world.plan_fault(*at, *kind);
    }
    let mut moments = Rng::new(plan.setup.seed).fork("moments");
    for fault in plan.setup.plan.schedule(&mut moments, phase) {
        world.plan_fault(fault.at, fault.kind);
    }
    world.run_until(Time::ZERO + phase)
}

fn liveness_phase(world: &mut World, plan: &Plan) -> Result<(), Violation> {
    world.calm_down();
    // With a twentieth of the budget, or with few workers and slow operations, everything takes its time.
    let small_share = plan.setup.settings.updater.share_permille < 800;
    let few_workers = world.slots_min() <= 2 && plan.setup.pace != Pace::default();
    let patience = if small_share || few_workers { 4 } else { 1 };
    // The last leader may have died just now.
    probe(world, PROBE_MAX * patience + world.longer_lease())?;
    converge(world)?;
    quiet(world, plan)?;
    world.recount()
}

/// **L7**: one Service is locked against every write and edited, and a new one is still served at once.
fn probe(world: &mut World, within: Duration) -> Result<(), Violation> {
    let scope = world.scope.clone();
    // The gateway is everybody's: while it is missing, nobody can be served.
    let patience = world.now + GATEWAY_MAX;
    while crate::liveness::foundation(world).is_err() && world.now < patience {
        world.run_until(world.now + LOOK_EVERY)?;
    }
    let victim = world
        .cluster
        .services()
        .filter(|service| service.body.is_ours() && service.meta.deletion_seconds.is_none())
        .map(|service| (service.meta.name.clone(), service.meta.uid))
        .find(|(_, uid)| {
            let id = scope.carrier_id(&sluice_model::ServiceKey::Inbound(*uid));
            world.cloud.state().load_balancers.contains_key(&id)
        });
    let before = victim
        .as_ref()
        .and_then(|(name, _)| world.cluster.service(name).map(|service| service.body.spec.ports.clone()));
    let edited = victim.as_ref().map(|(name, _)| name.clone());
    let locked = victim.map(|(name, uid)| {
        let id = scope.carrier_id(&sluice_model::ServiceKey::Inbound(uid));
        let lock = Tamper::Lock { scope: id.clone(), level: LockLevel::ReadOnly };
        world.cloud.tamper(world.now, lock);
        let ports = vec![port(7_070)];
        world.plan_action(world.now, UserAction::SetPorts { service: name, ports });
        id
    });
    let name = ObjectName::new("probe", "probe");
    let slice = ObjectName::new("probe", "probe-0");
    let began = world.now;
    world.plan_action(
        began,
        UserAction::PutNode { node: "node-probe".into(), ips: vec!["10.0.200.1".into()] },
    );
    let record = ServiceRecord::balanced(vec![port(80)]);
    world.plan_action(began, UserAction::CreateService { service: name.clone(), record });
    let draft = SliceDraft {
        service: name.clone(),
        owner_by: OwnerBy::Uid,
        address_type: AddressType::V4,
        ports: vec![SlicePort { name: "tcp-80".into(), protocol: Protocol::Tcp, port: Some(8_080) }],
        endpoints: vec![EndpointRecord {
            address: "10.244.200.1".into(),
            node: Some("node-probe".into()),
            health: Health::Ready,
        }],
    };
    world.plan_action(began, UserAction::PutSlice { slice, draft });
    let is_served = |world: &World| {
        let gateway = world.scope.gateway_id();
        let address = "10.244.200.1".parse().ok();
        world.cluster.service(&name).is_some_and(|service| !service.body.ingress.is_empty())
            && world
                .cloud
                .state()
                .locations(&gateway)
                .any(|location| location.addresses.iter().any(|entry| Some(entry.address) == address))
    };
    while !is_served(world) && world.now < began + within {
        world.run_until(world.now + Duration::from_secs(5))?;
    }
    world.coverage.judged_at_the_end(Invariant::L7);
    if !is_served(world) {
        let text = "a new Service is not served within 5 min while another one is locked";
        return Err(Violation::of(Invariant::L7, text));
    }
    if let (Some(service), Some(ports), 0) = (edited, before, began.as_millis() % 2) {
        // The owner thinks better of it before it could be written.
        world.plan_action(world.now, UserAction::SetPorts { service, ports });
        world.run_until(world.now + Duration::from_secs(5))?;
    }
    if let Some(id) = locked {
        world.cloud.tamper(world.now, Tamper::Unlock(id));
    }
    Ok(())
}

fn port(number: u16) -> ServicePort {
    ServicePort {
        name: format!("tcp-{number}").into(),
        protocol: Protocol::Tcp,
        port: number,
        target: TargetPort::Number(8_000 + number),
    }
}

/// **L1**-**L5**: everything becomes as it should be, and nothing waits any more.
pub(crate) fn converge(world: &mut World) -> Result<(), Violation> {
    let deadline = world.now + CONVERGE_MAX;
    let consent_at = world.now + Duration::from_secs(1_800);
    loop {
        let result = compare(world).and_then(|()| nothing_waits(world));
        match result {
            Ok(()) => break,
            Err(difference) if world.now >= deadline => return Err(difference.into()),
            Err(_) => {}
        }
        if world.now >= consent_at {
            // The operator has seen that deletions are held, and allows them.
            world.allow_deletion()?;
        }
        world.run_until(world.now + LOOK_EVERY)?;
    }
    for property in [Invariant::L1, Invariant::L2, Invariant::L3, Invariant::L4, Invariant::L5] {
        world.coverage.judged_at_the_end(property);
    }
    Ok(())
}

/// **L6**: drift sweeps go on, find nothing, and write nothing. **L8**: not too many writes in all.
fn quiet(world: &mut World, plan: &Plan) -> Result<(), Violation> {
    let sweep = plan.setup.settings.engine.drift_interval;
    // What two listings must see takes up to two sweeps and a second look.
    let settled = world.now + sweep * 2 + Duration::from_secs(120);
    world.run_until(settled)?;
    let writes = world.azure_writes;
    let last = world.last_write_at;
    world.run_until(settled + sweep * QUIET_SWEEPS)?;
    world.coverage.judged_at_the_end(Invariant::L6);
    if world.azure_writes != writes {
        let text = format!(
            "{} writes although nothing changes (the last before at t={last})",
            world.azure_writes - writes
        );
        return Err(Violation::of(Invariant::L6, text));
    }
    compare(world).and_then(|()| nothing_waits(world)).and_then(|()| foreigners_untouched(world))?;
    restart(world, sweep)
}

/// **L6**, after a restart: what is already right is taken over without a write.
fn restart(world: &mut World, sweep: Duration) -> Result<(), Violation> {
    let writes = world.azure_writes;
    world.replace_all();
    world.run_until(world.now + sweep + Duration::from_secs(120) + world.longer_lease())?;
    if world.azure_writes != writes {
        let text =
            format!("{} writes after a restart although nothing has changed", world.azure_writes - writes);
        return Err(Violation::of(Invariant::L6, text));
    }
    compare(world).and_then(|()| nothing_waits(world))?;
    Ok(())
}
