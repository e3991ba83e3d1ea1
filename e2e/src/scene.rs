//! The stage on which one story is played: a control plane, an Azure, a controller, and somebody who
//! watches.
//!
//! ```text
//! World (people and kubelets) ──▶ API server ◀──▶ sluice run ◀──▶ emulator ◀── Azure (others, faults)
//!                                     ▲                              ▲
//!                                     └──────── judge ───────────────┘
//! ```
//!
//! A story does things through [`World`] (which a scene is, too) and [`Azure`], and says with
//! [`Scene::settled`] where everything must have come to rest. What it does inside
//! [`Scene::meanwhile`] is what the other two ways to run a story hit: there the controller is killed
//! at random moments, or is down. There is no sleeping: what is waited for is looked at again and
//! again, patiently, and the limit is only there so that a lost cause ends with a report.

mod attempts;
mod killer;
mod stage;
mod writes;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use k8s_openapi::api::core::v1::{Namespace, ObjectReference};
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use serde_json::Value;

use crate::azure::Azure;
use crate::controller::Controller;
use crate::judge::cluster::Cluster;
use crate::judge::{self, Contract, Exceptions, found, wanted};
use crate::narration::Narration;
use crate::plane::Plane;
use crate::recorder::Recorder;
use crate::seed::Seeded;
use crate::setting::Setting;
use crate::story::Variant;
use crate::world::World;

pub(crate) use attempts::Before;
pub(crate) use killer::Killer;
pub(crate) use stage::{Programs, set};
pub(crate) use writes::{CORPORATE, LOCATION, Mark};

/// How long nothing may change before waiting is given up. Drift sweeps come every 30 s of real time.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long waiting may take in all.
const PATIENCE_IN_ALL: Duration = Duration::from_secs(600);
/// How often is looked.
const GLANCE: Duration = Duration::from_millis(100);

/// Everything that a story has.
pub(crate) struct Scene {
    world: World,
    /// The cloud.
    pub(crate) azure: Azure,
    /// The control plane.
    pub(crate) plane: Arc<Plane>,
    /// The replicas; usually one.
    pub(crate) replicas: Vec<Arc<Controller>>,
    /// How it was set up.
    pub(crate) setting: Setting,
    /// How it is run.
    pub(crate) variant: Variant,
    narration: Arc<Narration>,
    recorder: Recorder,
    contract: Mutex<Contract>,
    seeded: Mutex<Seeded>,
    killer: tokio::sync::Mutex<Option<Killer>>,
    /// Identities that somebody has asked for at some time.
    identities: Mutex<BTreeSet<String>>,
    /// How often the controller was stopped for a while.
    downs: AtomicUsize,
    /// UIDs of the Services whose status somebody else wiped.
    wiped: Mutex<Vec<String>>,
    /// Foreign resources as they were when they were made.
    foreign: Mutex<Vec<(String, Value)>>,
    programs: Programs,
    folder: PathBuf,
}

impl Deref for Scene {
    type Target = World;

    fn deref(&self) -> &World {
        &self.world
    }
}

/// What a look at something says.
pub(crate) enum Look<T> {
    /// It is so.
    Yes(T),
    /// It is not so yet, because of this.
    NotYet(String),
}

impl Look<()> {
    /// It is so if nothing speaks against it.
    pub(crate) fn unless(problems: &[String]) -> Look<()> {
        if problems.is_empty() { Look::Yes(()) } else { Look::NotYet(problems.join("\n  - ")) }
    }
}

impl Scene {
    /// The controller, where there is only one.
    pub(crate) fn controller(&self) -> &Arc<Controller> {
        &self.replicas[0]
    }

    /// Things that happen while the controller is up, is being killed, or is down: as the variant says.
    pub(crate) async fn meanwhile<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        match self.variant {
            Variant::Plain => work.await,
            Variant::Killed => {
                self.unleash().await?;
                work.await
            }
            Variant::Down => {
                let was_up: Vec<_> = self.replicas.iter().filter(|it| it.is_up()).collect();
                if was_up.is_empty() {
                    return work.await;
                }
                self.downs.fetch_add(1, Ordering::Relaxed);
                self.tell("the controller is stopped");
                for replica in &was_up {
                    replica.stop().await?;
                }
                let done = work.await?;
                self.tell("the controller is started");
                for replica in &was_up {
                    replica.start()?;
                }
                Ok(done)
            }
        }
    }

    /// Waits until everything is as it should be, there is a controller that thinks so, and nothing runs any more.
    pub(crate) async fn settled(&self) -> Result<()> {
        self.calm_down().await?;
        self.awake().await?;
        self.until("everything agrees", async || Ok(Look::unless(&self.differences().await?))).await?;
        self.tell("everything agrees");
        Ok(())
    }

    /// What is not as it should be right now.
    pub(crate) async fn differences(&self) -> Result<Vec<String>> {
        let azure = self.azure.state().await?;
        let cluster = Cluster::read(&self.world.client).await?;
        let contract = self.contract();
        self.note_identities(&cluster, &contract);
        let mut problems = cluster.slices_behind();
        problems.extend(found::running(&azure));
        let found = found::paint(&cluster, &contract, &azure);
        let wanted = wanted::paint(&cluster, &contract, &found);
        problems.extend(judge::differences(&wanted, &found));
        problems.extend(self.changed_foreigners(&azure));
        Ok(problems)
    }

    /// Looks until it is so. `what` completes the sentence "waited in vain until …".
    pub(crate) async fn until<T>(&self, what: &str, look: impl AsyncFn() -> Result<Look<T>>) -> Result<T> {
        let began = Instant::now();
        let mut changed = Instant::now();
        let mut last = String::new();
        loop {
            // A read that fails is as good as "not yet": API server or emulator may be away on purpose.
            let why = match look().await {
                Ok(Look::Yes(it)) => return Ok(it),
                Ok(Look::NotYet(why)) => why,
                Err(problem) => format!("it cannot be seen: {problem:#}"),
            };
            if why != last {
                changed = Instant::now();
                last = why;
            }
            for replica in &self.replicas {
                if let Some(crash) = replica.crashed() {
                    bail!("{crash}\nwhile the story waited until {what}:\n  - {last}");
                }
            }
            if changed.elapsed() > PATIENCE || began.elapsed() > PATIENCE_IN_ALL {
                let spent = began.elapsed().as_secs();
                bail!("waited in vain for {spent} s until {what}:\n  - {last}");
            }
            tokio::time::sleep(GLANCE).await;
        }
    }

    /// The published IP of a Service, once it has one.
    pub(crate) async fn ip_of(&self, name: &str) -> Result<String> {
        self.until(&format!("service {name} has an IP"), async || {
            let service = self.service_object(name).await?.context("it is not there")?;
            let status = service.status.and_then(|it| it.load_balancer);
            let ip = status.and_then(|it| it.ingress?.first()?.ip.clone());
            Ok(ip.map_or_else(|| Look::NotYet("it has none".to_string()), Look::Yes))
        })
        .await
    }

    /// Waits until a Service is gone; our finalizer kept it until nothing of it was left in Azure.
    pub(crate) async fn service_gone(&self, name: &str) -> Result<()> {
        // It may be gone already, and then only the record knows it.
        let uid = match self.uid_of(name).await {
            Ok(uid) => uid,
            Err(_) => {
                let full = format!("{}/{name}", self.namespace);
                let all = self.recorder.shown();
                let last = all.iter().rev().find(|it| it.name == full);
                last.with_context(|| format!("nobody ever saw service {name}"))?.uid.clone()
            }
        };
        self.calm_down().await?;
        self.until(&format!("service {name} is gone"), async || {
            Ok(match self.service_object(name).await? {
                None => Look::Yes(()),
                Some(it) => Look::NotYet(format!("it has finalizers {:?}", it.metadata.finalizers)),
            })
        })
        .await?;
        let azure = self.azure.state().await?;
        let everything = [&azure["loadBalancers"], &azure["publicIPAddresses"], &azure["serviceGateways"]];
        if everything.iter().any(|it| it.to_string().to_ascii_lowercase().contains(&uid)) {
            bail!("service {name} is gone from Kubernetes, and something of {uid} is still in Azure");
        }
        Ok(())
    }

    /// Waits until a namespace is gone, with all that was in it.
    pub(crate) async fn namespace_gone(&self, name: &str) -> Result<()> {
        self.calm_down().await?;
        self.until(&format!("namespace {name} is gone"), async || {
            let namespaces = Api::<Namespace>::all(self.client.clone());
            let own = namespaces.get_opt(name).await?;
            Ok(own.map_or(Look::Yes(()), |it| Look::NotYet(format!("its status is {:?}", it.status))))
        })
        .await
    }

    /// Waits for a Warning event about an object, `Service` or `Pod`, whose reason and text have these words.
    pub(crate) async fn warned(&self, kind: &str, name: &str, words: &[&str]) -> Result<()> {
        self.calm_down().await?;
        self.until(&format!("there is a warning about {kind} {name} with {words:?}"), async || {
            let seen = self.warnings(kind, name).await?;
            let has = seen.iter().any(|text| words.iter().all(|word| text.contains(word)));
            Ok(if has { Look::Yes(()) } else { Look::NotYet(format!("there are {seen:?}")) })
        })
        .await
    }

    /// Waits for a Warning event about whatever, anywhere, with these words.
    pub(crate) async fn warned_somewhere(&self, words: &[&str]) -> Result<()> {
        self.calm_down().await?;
        self.until(&format!("there is a warning with {words:?}"), async || {
            let seen = self.events(|_| true).await?;
            let has = seen.iter().any(|text| words.iter().all(|word| text.contains(word)));
            Ok(if has { Look::Yes(()) } else { Look::NotYet(format!("there are {seen:?}")) })
        })
        .await
    }

    /// The Warning events about an object of the story's namespace, as `reason: text`.
    pub(crate) async fn warnings(&self, kind: &str, name: &str) -> Result<Vec<String>> {
        self.events(|about| {
            about.namespace.as_deref() == Some(&self.namespace)
                && about.kind.as_deref() == Some(kind)
                && about.name.as_deref() == Some(name)
        })
        .await
    }

    async fn events(&self, is_meant: impl Fn(&ObjectReference) -> bool) -> Result<Vec<String>> {
        let all = Api::<Event>::all(self.client.clone()).list(&Default::default()).await?;
        // The API server warns too, such as of a cluster IP that it has to allocate again.
        let ours = all.into_iter().filter(|it| it.reporting_controller.as_deref() == Some("sluice"));
        let warnings = ours.filter(|it| it.type_.as_deref() == Some("Warning"));
        let meant = warnings.filter(|it| it.regarding.as_ref().is_some_and(&is_meant));
        let text = |it: Event| format!("{}: {}", it.reason.unwrap_or_default(), it.note.unwrap_or_default());
        Ok(meant.map(text).collect())
    }

    /// Tells the judge what the objects of Kubernetes alone do not say.
    pub(crate) fn except(&self, change: impl FnOnce(&mut Exceptions)) {
        change(&mut self.contract.lock().expect("nobody panics with the contract in hand").exceptions);
    }

    /// Tells the judge that another contract holds from now on.
    pub(crate) fn agree(&self, change: impl FnOnce(&mut Contract)) {
        change(&mut self.contract.lock().expect("nobody panics with the contract in hand"));
    }

    /// From now on a Service keeps the rules that it has now, whatever its spec says.
    pub(crate) async fn keeps_its_rules(&self, name: &str) -> Result<()> {
        let uid = self.uid_of(name).await?;
        let azure = self.azure.state().await?;
        let cluster = Cluster::default();
        let found = found::paint(&cluster, &self.contract(), &azure);
        let rules =
            found.get(&format!("load balancer {uid}")).context("it has no load balancer")?["rules"].clone();
        self.except(|it| {
            it.frozen.insert(uid, rules);
        });
        Ok(())
    }

    fn contract(&self) -> Contract {
        self.contract.lock().expect("nobody panics with the contract in hand").clone()
    }

    /// All that a failed story leaves to look at, beside its logs.
    pub(crate) async fn report(&self) -> String {
        let mut text = String::new();
        for replica in &self.replicas {
            let counts = replica.counts();
            let _ = writeln!(
                text,
                "{}: {} starts, {} kills, {} leases lost; the end of its log:\n{}",
                replica.name,
                counts.starts,
                counts.kills,
                counts.leases_lost,
                crate::process::tail(&replica.log, 25)
            );
        }
        if let Ok(state) = self.azure.state().await {
            let pretty = serde_json::to_string_pretty(&state).unwrap_or_default();
            let _ = std::fs::write(self.folder.join("azure-state.json"), pretty);
        }
        if let Ok(requests) = self.azure.requests_with_bodies(0).await {
            let lines: Vec<String> = requests.iter().map(|it| format!("{} {}", it.line(), it.body)).collect();
            let _ = std::fs::write(self.folder.join("azure-requests.txt"), lines.join("\n"));
        }
        if let Ok(cluster) = Cluster::read(&self.world.client).await {
            let objects = serde_json::json!({
                "services": cluster.services, "slices": cluster.slices,
                "nodes": cluster.nodes, "pods": cluster.pods,
            });
            let pretty = serde_json::to_string_pretty(&objects).unwrap_or_default();
            let _ = std::fs::write(self.folder.join("kubernetes.json"), pretty);
        }
        text
    }
}
