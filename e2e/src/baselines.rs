//! Two states that an earlier version left behind, and how the present one starts from them.
//!
//! A baseline is a folder of `e2e/baselines/`: the Kubernetes objects, the state file of the emulator, the
//! state that it shows, and what the controller said of each Service and egress ([`files`]). It is put onto a
//! fresh control plane ([`load`]), and the present controller is started: on *settled* it writes nothing to Azure and
//! each status at most once, from *interrupted* it ends where the earlier version itself ended, without a write about what was in sync.
//! `--record` records both again with another program ([`record`]).

mod files;
mod load;
mod picture;
mod record;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use clap::Args;
use futures::TryStreamExt as _;
use k8s_openapi::api::core::v1::Service;
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::Value;
use tokio::process::Command;

use crate::azure::Azure;
use crate::judge::differences;
use crate::narration::Narration;
use crate::plane::{Material, Plane};
use crate::scene::{self, Before, Look, Programs, Scene};
use crate::story::{Story, Variant};
use files::Baseline;
use picture::Picture;

/// Everything of a baseline is in this namespace, but for the nodes.
const NAMESPACE: &str = "baseline";
/// The state of a Service or egress that is as it should be.
const CREATED: &str = "Created";

/// Starts the controller from the states that an earlier version left behind.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// The program under test: the production build; with --record the one that makes the baselines
    #[arg(long)]
    sluice: PathBuf,
    /// The build with the lab, for the emulator
    #[arg(long)]
    lab: PathBuf,
    /// Path of the testenv program
    #[arg(long, env = "SLUICE_TESTENV")]
    testenv: PathBuf,
    /// The manifests with the controller's permissions
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/sluice.yaml"))]
    manifests: PathBuf,
    /// Where the baselines are
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/baselines"))]
    baselines: PathBuf,
    /// Record the baselines again with this program instead of starting from them
    #[arg(long)]
    record: bool,
}

/// What there is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Which {
    /// Everything is in sync.
    Settled,
    /// Killed with one Service in each of the six states.
    Interrupted,
}

impl Which {
    const fn name(self) -> &'static str {
        match self {
            Which::Settled => "settled",
            Which::Interrupted => "interrupted",
        }
    }
}

/// The setting in which both are loaded. The controller is started after loading.
const STORY: Story = Story::new("baseline", "starts from a baseline", |_| Box::pin(async { Ok(()) }))
    .with(|setting| setting.starts_running = false);

/// The same for recording. An earlier version has the lab in it.
const RECORDED: Story = STORY.scaled("the times for which operations are held are meant for it");

/// Records or checks both at once; whether both passed.
pub(crate) fn run(arguments: Arguments) -> Result<bool> {
    let artefacts = tempfile::Builder::new().prefix("sluice-baselines-").tempdir()?.keep();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let means = Means { arguments, artefacts };
    let passed = runtime.block_on(async {
        let (settled, interrupted) = futures::join!(means.one(Which::Settled), means.one(Which::Interrupted));
        settled && interrupted
    });
    if passed {
        println!("both baselines passed");
        let _ = std::fs::remove_dir_all(&means.artefacts);
    } else {
        println!("logs and states: {}", means.artefacts.display());
    }
    Ok(passed)
}

struct Means {
    arguments: Arguments,
    artefacts: PathBuf,
}

impl Means {
    /// Records or checks one and tells how it ended.
    async fn one(&self, which: Which) -> bool {
        let began = Instant::now();
        let outcome = if self.arguments.record { self.record(which).await } else { self.check(which).await };
        let took = began.elapsed().as_secs_f64();
        match &outcome {
            Ok(said) => println!("passed {took:>7.1} s  {}: {said}", which.name()),
            Err(problem) => println!("FAILED {took:>7.1} s  {}: {problem:#}", which.name()),
        }
        outcome.is_ok()
    }

    /// Plays it, writes it down, and for *interrupted* also where the same program ends from there.
    async fn record(&self, which: Which) -> Result<String> {
        let own = self.arguments.baselines.join(which.name());
        let scene = self.set("record", which, None).await?;
        let played = async {
            let baseline = record::play(&scene, which, self).await?;
            baseline.write(&own)
        };
        finish(&scene, played.await).await?;
        if which == Which::Interrupted {
            let (scene, loaded) = self.load("end", which).await?;
            let ended = async {
                scene.controller().start()?;
                scene.judged().await?;
                let end = self.end(&scene, &loaded).await?;
                files::write_json(&own.join(files::END), &end)
            };
            finish(&scene, ended.await).await?;
        }
        Ok(format!("written to {}", own.display()))
    }

    /// Starts the program under test from a baseline.
    async fn check(&self, which: Which) -> Result<String> {
        let (scene, loaded) = self.load("check", which).await?;
        let outcome = match which {
            Which::Settled => self.starts_settled(&scene, &loaded).await,
            Which::Interrupted => self.ends_as_recorded(&scene, &loaded).await,
        };
        finish(&scene, outcome).await
    }

    async fn starts_settled(&self, scene: &Scene, loaded: &Baseline) -> Result<String> {
        let (services, version) = services(scene).await?;
        let before = Before::now(scene).await?;
        scene.controller().start()?;
        before.only_compared(scene, None).await?;
        let wanted = picture::of_states(&loaded.states);
        scene
            .until("every service and egress is in the state that was recorded", async || {
                let found = picture::of_states(&self.states(scene).await?);
                Ok(Look::unless(&differences(&wanted, &found)))
            })
            .await?;
        scene.judged().await?;
        scene.no_write_since(before.mark).await?;
        let (now, _) = self::services(scene).await?;
        fail_on("the Services are not what they were", &differences(&services, &now))?;
        let written = written_since(scene, &version).await?;
        let twice: Vec<&String> =
            written.iter().filter(|(_, times)| **times > 1).map(|(name, _)| name).collect();
        ensure!(twice.is_empty(), "written more than once: {twice:?}");
        Ok(format!(
            "no write to Azure; {} services and egresses in the states that were recorded; the status of {} Services \
             was written, each once",
            loaded.states.len(),
            written.len()
        ))
    }

    async fn ends_as_recorded(&self, scene: &Scene, loaded: &Baseline) -> Result<String> {
        let mark = scene.mark_writes().await?;
        let recorded = self.arguments.baselines.join(Which::Interrupted.name()).join(files::END);
        let wanted = picture::without_wording(files::read_json(&recorded)?);
        scene.controller().start()?;
        scene.judged().await?;
        scene
            .until("everything is as it was when the earlier version had ended", async || {
                let found = self.end(scene, loaded).await?;
                Ok(Look::unless(&differences(&wanted, &found)))
            })
            .await?;
        let in_sync = loaded.in_sync();
        ensure!(!in_sync.is_empty(), "nothing was in sync, so nothing was shown about that");
        for name in &in_sync {
            scene.no_write_about(mark, name).await?;
        }
        let writes = scene.writes_since(mark).await?.len();
        Ok(format!("{writes} writes, none about {} names and addresses in sync", in_sync.len()))
    }

    /// Where it has ended: Azure, the Services, and what the controller says of each.
    async fn end(&self, scene: &Scene, loaded: &Baseline) -> Result<Picture> {
        let services = Api::<Service>::namespaced(scene.client.clone(), NAMESPACE);
        let services = services.list(&ListParams::default()).await?.items;
        let azure = scene.azure.state().await?;
        picture::of_end(loaded, &azure, &services, &self.states(scene).await?)
    }

    /// Puts a baseline onto a fresh control plane and compares what came of it with what was recorded.
    async fn load(&self, purpose: &str, which: Which) -> Result<(Scene, Baseline)> {
        let recorded = Baseline::read(&self.arguments.baselines.join(which.name()))?;
        let scene = self.set(purpose, which, Some(&recorded)).await?;
        // The earlier version made the gateway, and did not mark it as created.
        scene.except(|it| it.claimed_gateway = true);
        let loaded = recorded.with_uids_of(&scene.client).await?;
        Ok((scene, loaded))
    }

    /// A scene on a control plane of its own: an empty one, or one with a baseline.
    async fn set(&self, purpose: &str, which: Which, baseline: Option<&Baseline>) -> Result<Scene> {
        let Arguments { sluice, lab, testenv, manifests, .. } = &self.arguments;
        let folder = self.artefacts.join(format!("{}-{purpose}", which.name()));
        std::fs::create_dir_all(&folder)?;
        let absolute = |path: &Path| {
            std::fs::canonicalize(path).with_context(|| format!("{} is not there", path.display()))
        };
        let material = Material::Testenv { program: absolute(testenv)?, manifests: absolute(manifests)? };
        let programs = Programs { sluice: absolute(sluice)?, lab: absolute(lab)?, asks_plan: true };
        let plane = Arc::new(Plane::start(1, &material, &folder).await?);
        if let Some(baseline) = baseline {
            load::put(baseline, &plane.admin.0).await.context("the objects of the baseline")?;
            let loaded = baseline.with_uids_of(&plane.admin.0).await?;
            self.replays(&loaded, &programs.lab, &folder).await?;
            std::fs::write(folder.join(files::JOURNAL_OF_A_SCENE), &loaded.journal)?;
        }
        let narration = Arc::new(Narration::new(false));
        let story = if self.arguments.record { &RECORDED } else { &STORY };
        scene::set(story, Variant::Plain, 1, plane, &programs, &folder, narration).await
    }

    /// The emulator shows the recorded state when it has replayed the state file. In real time, so that no
    /// operation ends meanwhile.
    async fn replays(&self, loaded: &Baseline, lab: &Path, folder: &Path) -> Result<()> {
        let folder = folder.join("replayed");
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join(files::JOURNAL_OF_A_SCENE), &loaded.journal)?;
        let azure = Azure::start(lab, &folder, 1, 1, &[]).await?;
        let wanted = picture::of_azure(&loaded.azure);
        let found = picture::of_azure(&azure.state().await?);
        fail_on("the emulator replays the state file to another state", &differences(&wanted, &found))
    }

    /// The states that `sluice status` tells, by `service/NAMESPACE/NAME` and `egress/NAME`.
    async fn states(&self, scene: &Scene) -> Result<files::States> {
        let mut command = Command::new(&self.arguments.sluice);
        command.args(["status", "--output=json", &format!("--address={}", scene.api()?)]);
        let output = command.kill_on_drop(true).output().await?;
        if !output.status.success() {
            bail!(
                "`sluice status` ended with {}: {}",
                output.status,
                String::from_utf8_lossy(&output.stderr)
            );
        }
        let shown: Value = serde_json::from_slice(&output.stdout).context("`sluice status` says no JSON")?;
        files::states(&shown)
    }
}

/// Kills what runs, and says what there is to look at if it came to nothing.
async fn finish<T>(scene: &Scene, outcome: Result<T>) -> Result<T> {
    let outcome = match outcome {
        Ok(done) => Ok(done),
        Err(problem) => Err(anyhow!("{problem:#}\n\n{}", scene.report().await)),
    };
    scene.controller().kill().await?;
    outcome
}

/// The Services as the API server has them, to the resourceVersion.
/// The Services without what a status write in other words changes, and the version of the list.
async fn services(scene: &Scene) -> Result<(Picture, String)> {
    let all = Api::<Service>::all(scene.client.clone()).list(&ListParams::default()).await?;
    let version = all.metadata.resource_version.clone().context("the list has no version")?;
    let mut picture = Picture::new();
    for mut service in all {
        let name = format!("service {}", service.name_any());
        service.metadata.resource_version = None;
        service.metadata.managed_fields = None;
        let service = picture::without_annotation(service)?;
        picture.append(&mut picture::flat(&name, &serde_json::to_value(service)?));
    }
    Ok((picture::without_wording(picture), version))
}

/// How often each Service was written since this version.
async fn written_since(scene: &Scene, version: &str) -> Result<BTreeMap<String, usize>> {
    let params = WatchParams::default().timeout(1);
    let api = Api::<Service>::all(scene.client.clone());
    let mut events = pin!(api.watch(&params, version).await?);
    let mut written = BTreeMap::new();
    while let Some(event) = events.try_next().await? {
        if let WatchEvent::Modified(service) = event {
            *written.entry(service.name_any()).or_default() += 1;
        }
    }
    Ok(written)
}

fn fail_on(what: &str, differences: &[String]) -> Result<()> {
    ensure!(differences.is_empty(), "{what}:\n  - {}", differences.join("\n  - "));
    Ok(())
}
