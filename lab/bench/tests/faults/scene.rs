//! One story told: an emulator, a controller, and what happens to both.

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};
use sluice_bench::azure;
use sluice_bench::request_log::RequestLog;
use sluice_bench::world::{self, World};
use sluice_cloud::Config as CloudConfig;
use sluice_commands::pace::{FastClock, Paced};
use sluice_controller::Clock as _;
use sluice_emulator::{Options, Prepared, Running};
use sluice_emulator_client::{Client, Greeting};
use sluice_model::kube::{Protocol, ServicePort, ServiceSpec, TargetPort};
use sluice_model::names::Scope;
use sluice_model::seeded::Seeded;
use sluice_model::{ObjectName, Time};
use tokio::runtime::Runtime;

use crate::judge::{self, Wanted};
use crate::stories::{self, Story};

/// How many emulated seconds pass in a real one: a drift sweep every 18 s, an answer's limit of 1.2 s.
pub(crate) const TIME_FACTOR: f64 = 50.0;
/// Of tenant and subscription.
const SUBSCRIPTION: &str = "00000000-0000-0000-0000-000000000000";
/// How long the edits have under faults before the next ones come.
const UNDER_FAULTS_MAX: Duration = Duration::from_secs(5 * 60);
/// How often one looks whether it is.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// An emulator that answers later than this, in real time, has no CPU to itself: and the clock goes on.
const PROMPT: Duration = Duration::from_millis(50);

/// How much longer one waits, in emulated time in which the machine kept up.
struct Patience(Duration);

impl Patience {
    fn new(most: Duration) -> Patience {
        Patience(most)
    }

    fn is_over(&self) -> bool {
        self.0.is_zero()
    }

    fn spend(&mut self, waited: Duration, was_prompt: bool) {
        if was_prompt {
            self.0 = self.0.saturating_sub(waited);
        }
    }
}

/// What came of a story that went well.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told {
    pub(crate) strikes: u64,
    pub(crate) writes: u64,
    pub(crate) reads: u64,
    pub(crate) emulated: Duration,
}

pub(crate) struct Scene {
    pub(crate) emulator: Client,
    pub(crate) scope: Scope,
    azure: Running,
    world: World,
    clock: FastClock,
    wanted: Wanted,
}

/// Tells a story and judges it. What a failed one has left is kept in a file.
pub(crate) async fn tell(story: &Story, calm_writes: Option<u64>, seeded: Seeded) -> anyhow::Result<Told> {
    let mut scene = Scene::open(story, seeded).await?;
    let told = match scene.play(story, calm_writes).await {
        Ok(told) => told,
        Err(error) => {
            let kept = scene.keep(story, seeded).await?;
            return Err(error.context(format!("log and state are in {}", kept.display())));
        }
    };
    let ended = scene.world.stop().await?;
    ensure!(ended.tally.panics == 0, "{} calls panicked", ended.tally.panics);
    scene.azure.stop().await;
    Ok(told)
}

impl Scene {
    async fn open(story: &Story, seeded: Seeded) -> anyhow::Result<Scene> {
        let running = start_azure().await?;
        let emulator = Client::new(greeting(&running))?;
        azure::prepare_network(&emulator).await?;
        let scope = azure::scope(&emulator.greeting);
        for (id, body) in judge::strangers(&scope) {
            emulator.control.tamper(&json!({"do": "put", "id": id, "body": body})).await?;
        }
        for (path, body) in (story.before)(&scope) {
            emulator.control.tell(path, &body).await?;
        }
        let clock = FastClock::start(TIME_FACTOR);
        let mut config = world::config(scope.clone(), 10, 1);
        config.seeded = seeded;
        if seeded != Seeded::NONE && story.minutes < stories::SWEEPS {
            // A sweep that happens to come in time would heal what the bug has broken.
            config.engine.drift_interval = Duration::from_secs(24 * 3_600);
        }
        let client = Paced::new(azure::product_client(&emulator.greeting)?, TIME_FACTOR);
        let world = World::start(config, client, clock, |cluster| {
            for node in 1..=3 {
                cluster.apply_node(&format!("node-{node}"), vec![node_ip(node)]);
            }
        })
        .await?;
        Ok(Scene { emulator, scope, azure: running, world, clock, wanted: Wanted::default() })
    }

    async fn play(&mut self, story: &Story, calm_writes: Option<u64>) -> anyhow::Result<Told> {
        let foreign = judge::foreign(&self.state().await?, &self.scope);
        self.first_edits();
        self.let_it_work(story).await?;
        self.control(&(story.amid)(self)).await?;
        let foreign_now = judge::foreign(&self.state().await?, &self.scope);
        self.second_edits(story);
        self.let_it_work(story).await?;
        let untouched = judge::foreign(&self.state().await?, &self.scope);
        ensure!(untouched == foreign_now, "what is not ours was {foreign_now} and is {untouched}");

        self.meanwhile(story).await.context("while the faults lasted")?;
        let strikes = self.strikes(story).await?;
        self.emulator.control.calm().await?;
        self.emulator.control.withdraw("faults").await?;
        self.control(&(story.mend)(self)).await?;
        let within = Duration::from_secs(story.minutes * 60);
        self.converge(within, &foreign).await.context("after the faults were over")?;

        self.delete_everything();
        self.converge(within, &foreign).await.context("after everything was deleted")?;

        let log = RequestLog::read(&self.emulator).await?;
        for code in story.must_see {
            let seen = log.calls.iter().any(|entry| entry.code.as_deref() == Some(code));
            ensure!(seen, "Azure never answered {code}, so the story tells nothing");
        }
        judge::log(&log, &self.scope, story.others_meddle).context("the request log")?;
        let writes = log.calls.iter().filter(|entry| entry.is_write()).count() as u64;
        if let Some(calm_writes) = calm_writes {
            let most = 3 * calm_writes + 2 * strikes + story.repairs;
            ensure!(
                writes <= most,
                "{writes} writes, where {most} are enough ({calm_writes} without faults):\n{}",
                judge::writes_by_kind(&log)
            );
        }
        let reads = log.calls.len() as u64 - writes;
        let emulated = self.clock.now().since(Time::ZERO);
        Ok(Told { strikes, writes, reads, emulated })
    }

    /// Keeps the emulator's log and state in a file.
    async fn keep(&self, story: &Story, seeded: Seeded) -> anyhow::Result<PathBuf> {
        let log = self.emulator.control.ask("requests?limit=100000&bodies=true").await?;
        let kept = json!({"state": self.state().await?, "log": log});
        let bug = if seeded == Seeded::NONE { "" } else { "-with-a-bug" };
        let name = format!("faults-{}{bug}.json", story.id);
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::write(&path, format!("{kept:#}"))?;
        Ok(path)
    }

    /// The UID of a Service.
    pub(crate) fn uid(&self, name: &str) -> String {
        let name = object(name);
        let found = self.world.cluster.services().into_iter().find(|service| service.name == name);
        found.map(|service| service.uid.to_string()).unwrap_or_default()
    }

    /// The id of a resource in our group.
    pub(crate) fn id(&self, kind: &str, name: &str) -> String {
        self.scope.resource(kind, name).to_string()
    }

    pub(crate) async fn state(&self) -> anyhow::Result<Value> {
        self.emulator.control.state().await
    }

    async fn control(&self, calls: &[(&str, Value)]) -> anyhow::Result<()> {
        for (path, body) in calls {
            self.emulator.control.tell(path, body).await?;
        }
        Ok(())
    }

    fn first_edits(&mut self) {
        self.service("web", &[80]);
        self.endpoints("web", &[(1, 1), (2, 2)]);
        self.service("api", &[443]);
        self.endpoints("api", &[(3, 1)]);
        self.pod("blue-1", "blue", 11, 1);
        self.pod("blue-2", "blue", 12, 2);
        self.pod("red-1", "red", 13, 3);
    }

    fn second_edits(&mut self, story: &Story) {
        self.service("api", &[443, 8443]);
        self.endpoints("api", &[(3, 3), (4, 2)]);
        self.delete_service("web");
        self.service("shop", &[80, 81]);
        self.endpoints("shop", &[(5, 1), (6, 2), (7, 3)]);
        self.delete_pod("red-1");
        self.delete_pod("blue-1");
        self.pod("blue-3", "blue", 14, 3);
        if let Some(egress) = story.further_egress {
            self.pod("further", egress, 15, 1);
        }
    }

    fn delete_everything(&mut self) {
        for service in ["web", "api", "shop"] {
            self.delete_service(service);
        }
        for pod in ["blue-1", "blue-2", "blue-3", "red-1", "further"] {
            self.delete_pod(pod);
        }
    }

    fn service(&mut self, name: &str, ports: &[u16]) {
        let ports: Vec<ServicePort> = ports
            .iter()
            .map(|port| ServicePort {
                name: format!("p{port}").into(),
                protocol: Protocol::Tcp,
                port: *port,
                target: TargetPort::Number(port + 8_000),
            })
            .collect();
        let spec = ServiceSpec { ports: ports.clone(), ..ServiceSpec::default() };
        let uid = self.world.cluster.apply_service(&object(name), spec);
        self.wanted.service(name, &uid.to_string(), ports.iter().map(|port| port.port).collect());
    }

    fn endpoints(&mut self, name: &str, pods_on_nodes: &[(u8, u8)]) {
        let nodes: Vec<String> = pods_on_nodes.iter().map(|(_, node)| format!("node-{node}")).collect();
        let endpoints: Vec<(IpAddr, &str)> =
            pods_on_nodes.iter().zip(&nodes).map(|((pod, _), node)| (pod_ip(*pod), node.as_str())).collect();
        self.world.cluster.apply_endpoints(&object(name), &endpoints);
        let placed = pods_on_nodes.iter().map(|(pod, node)| (node_ip(*node), pod_ip(*pod)));
        self.wanted.endpoints(name, placed.collect());
    }

    fn delete_service(&mut self, name: &str) {
        self.world.cluster.delete_service(&object(name));
        self.wanted.services.remove(name);
    }

    fn pod(&mut self, name: &str, egress: &str, pod: u8, node: u8) {
        self.world.cluster.apply_pod(&object(name), egress, &format!("node-{node}"), vec![pod_ip(pod)]);
        self.wanted.pods.insert(name.into(), (egress.into(), node_ip(node), pod_ip(pod)));
    }

    fn delete_pod(&mut self, name: &str) {
        self.world.cluster.delete_pod(&object(name));
        self.wanted.pods.remove(name);
    }

    /// Until everything is done, or as long as one waits under faults.
    async fn let_it_work(&self, story: &Story) -> anyhow::Result<()> {
        let mut patience = Patience::new(UNDER_FAULTS_MAX);
        while !patience.is_over() && !self.is_settled_soon(&mut patience).await? {}
        let linger = Duration::from_secs(story.linger_minutes * 60);
        self.clock.sleep_until(self.clock.now() + linger).await;
        Ok(())
    }

    /// Whether everything is done before the next look.
    async fn is_settled_soon(&self, patience: &mut Patience) -> anyhow::Result<bool> {
        let settled = tokio::select! {
            settled = self.world.settled() => { settled?; true }
            () = self.clock.sleep_until(self.clock.now() + LOOK_EVERY) => false,
        };
        if !settled {
            patience.spend(LOOK_EVERY, self.is_prompt().await?);
        }
        Ok(settled)
    }

    /// Whether the machine keeps up: emulated time goes on without it otherwise, and that is no fault of
    /// whoever is judged.
    async fn is_prompt(&self) -> anyhow::Result<bool> {
        let asked = Instant::now();
        self.state().await?;
        Ok(asked.elapsed() < PROMPT)
    }

    /// What must be so while the faults last; it is looked at again for as long as one waits under faults.
    async fn meanwhile(&self, story: &Story) -> anyhow::Result<()> {
        let mut patience = Patience::new(UNDER_FAULTS_MAX);
        loop {
            let log = RequestLog::read(&self.emulator).await?;
            let judged = (story.meanwhile)(&self.state().await?, &log, &self.wanted);
            if judged.is_ok() || patience.is_over() {
                return judged;
            }
            self.clock.sleep_until(self.clock.now() + LOOK_EVERY).await;
            patience.spend(LOOK_EVERY, self.is_prompt().await?);
        }
    }

    /// How often the rules struck; each must have, or the story tells nothing.
    async fn strikes(&self, story: &Story) -> anyhow::Result<u64> {
        let rules = self.emulator.control.ask("faults").await?;
        let mut strikes = 0;
        for rule in rules.as_array().context("the faults are a list")? {
            let struck = rule.get("struck").and_then(Value::as_u64).unwrap_or(0);
            ensure!(struck > 0, "a rule of {} never struck: {rule}", story.id);
            strikes += struck;
        }
        Ok(strikes)
    }

    /// Until Azure is as it should be.
    async fn converge(&self, within: Duration, foreign: &Value) -> anyhow::Result<()> {
        let mut patience = Patience::new(within);
        loop {
            let is_settled = self.is_settled_soon(&mut patience).await?;
            let differences = self.differences(foreign).await?;
            if is_settled && differences.is_empty() {
                return Ok(());
            }
            if patience.is_over() {
                let services = self.world.handle.services().await?;
                bail!(
                    "not as it should be after {} emulated minutes:\n{}\nthe controller says: {}",
                    within.as_secs() / 60,
                    differences.join("\n"),
                    services
                        .iter()
                        .map(|it| format!("{} {:?} {:?}", it.key, it.state, it.hold))
                        .collect::<Vec<_>>()
                        .join("; "),
                );
            }
            self.clock.sleep_until(self.clock.now() + LOOK_EVERY).await;
            patience.spend(LOOK_EVERY, self.is_prompt().await?);
        }
    }

    async fn differences(&self, foreign: &Value) -> anyhow::Result<Vec<String>> {
        let state = self.state().await?;
        let published = self.world.cluster.services().into_iter().map(|it| (it.uid.to_string(), it.ingress));
        Ok(judge::differences(&state, &self.scope, &self.wanted, foreign, &published.collect()))
    }
}

/// Azure has threads of its own, as it has machines of its own: a controller that computes does not delay its answers.
static AZURE: LazyLock<Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .enable_all()
        .build()
        .expect("threads can be started")
});

/// An emulator in this process, on a free port.
async fn start_azure() -> anyhow::Result<Running> {
    let options = Options {
        time_factor: TIME_FACTOR,
        prepare: vec![Prepared { subscription: SUBSCRIPTION.into(), group: "sluice".into() }],
        cloud: CloudConfig { page_size: 3, ..CloudConfig::default() },
        ..Options::for_tests()
    };
    Ok(AZURE.spawn(async move { sluice_emulator::Emulator::start(options).await }).await??)
}

/// The way to it. Every tenant, client and secret are good.
fn greeting(azure: &Running) -> Greeting {
    Greeting {
        url: azure.url(),
        ca_path: azure.ca_path().to_owned(),
        tenant_id: SUBSCRIPTION.into(),
        client_id: "controller".into(),
        client_secret: "any-secret-does".into(),
        subscription_id: SUBSCRIPTION.into(),
        resource_group: Some("sluice".into()),
        time_factor: TIME_FACTOR,
    }
}

fn object(name: &str) -> ObjectName {
    ObjectName::new("shop", name)
}

fn node_ip(node: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 1, 0, node))
}

/// The address of a pod.
pub(crate) fn pod_ip(pod: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 100, 0, pod))
}
