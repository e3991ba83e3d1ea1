//! Sets the stage before a story, and sees that it is left as it was.

use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::events::v1::Event;
use kube::{Api, Client};
use tokio::process::Command;

use super::{GLANCE, Look, Scene};
use crate::azure::Azure;
use crate::controller::Controller;
use crate::narration::Narration;
use crate::plane::Plane;
use crate::recorder::Recorder;
use crate::seed::Seeded;
use crate::setting::{Setting, TIME_FACTOR};
use crate::story::{Story, Variant};
use crate::world::World;

/// The programs that stories are played with.
#[derive(Clone, Debug)]
pub(crate) struct Programs {
    /// The program under test: the production build.
    pub(crate) sluice: PathBuf,
    /// The build with the lab: the emulator, and the controller of a story that needs the scaled clock.
    pub(crate) lab: PathBuf,
    /// Whether `sluice plan` is asked after each story.
    pub(crate) asks_plan: bool,
}

impl Programs {
    /// The program that is the controller in this setting, and the words that make it one.
    pub(super) fn controller(&self, setting: &Setting) -> (&Path, Vec<String>) {
        let run = "run".to_string();
        match setting.is_scaled {
            true => (&self.lab, vec![run, format!("--time-factor={TIME_FACTOR}")]),
            false => (&self.sluice, vec![run]),
        }
    }
}

/// Sets the stage.
pub(crate) async fn set(
    story: &Story,
    variant: Variant,
    seed: u64,
    plane: Arc<Plane>,
    programs: &Programs,
    folder: &Path,
    narration: Arc<Narration>,
) -> Result<Scene> {
    let mut setting = story.setting();
    setting.awaits_the_lease |= setting.replicas > 1;
    let name = format!("{}/{variant}", story.name);
    let mut seeded = Seeded::new(seed, &name);
    let azure =
        Azure::start(&programs.lab, folder, TIME_FACTOR, seeded.below(1 << 32), &setting.emulator).await?;
    forget_the_last_story(&plane).await?;
    let client = plane.admin.0.clone();
    let namespace = format!("shop-{}", plane.next_story());
    let world = World::new(client.clone(), &namespace, setting.class.clone(), Arc::clone(&narration)).await?;
    let config = folder.join("config.json");
    std::fs::write(&config, setting.config_file(&azure.greeting, &plane.account.namespace))?;
    let replicas = (1..=setting.replicas)
        .map(|number| {
            let name =
                if setting.replicas == 1 { "controller".to_string() } else { format!("replica-{number}") };
            let (program, mut arguments) = programs.controller(&setting);
            arguments.extend(access(&config, &plane));
            // The emulator's log then says which of them asked.
            arguments.push(format!("--set=sluice.azure.userAgentSuffix={name}"));
            Controller::new(&name, program, arguments, setting.descriptors_max, folder)
        })
        .collect();
    let scene = Scene {
        recorder: Recorder::start(client),
        contract: setting.contract().into(),
        world,
        azure,
        plane,
        replicas,
        setting,
        variant,
        narration,
        seeded: seeded.into(),
        killer: Default::default(),
        identities: Default::default(),
        downs: Default::default(),
        wiped: Default::default(),
        foreign: Default::default(),
        programs: programs.clone(),
        folder: folder.to_path_buf(),
    };
    if scene.setting.starts_running {
        for replica in &scene.replicas {
            replica.start()?;
        }
    }
    Ok(scene)
}

fn access(config: &Path, plane: &Plane) -> [String; 2] {
    [format!("--config={}", config.display()), format!("--kubeconfig={}", plane.kubeconfig.display())]
}

/// A lease of the story before would keep the controller waiting, and its warnings would be taken for ours: what
/// is about the whole cluster stands in the controller's namespace, which stays.
async fn forget_the_last_story(plane: &Plane) -> Result<()> {
    let (client, namespace) = (plane.admin.0.clone(), plane.account.namespace.as_str());
    delete_leases(&client, namespace).await?;
    let events = Api::<Event>::namespaced(client, namespace);
    events.delete_collection(&Default::default(), &Default::default()).await?;
    Ok(())
}

/// How long an API server that a story restarts may be away.
const API_SERVER_AWAY_MAX: Duration = Duration::from_secs(60);

/// Without a Lease, a process that has just been started leads at once. The API server may be away at that moment.
pub(super) async fn delete_leases(client: &Client, namespace: &str) -> Result<()> {
    let leases = Api::<Lease>::namespaced(client.clone(), namespace);
    let deadline = Instant::now() + API_SERVER_AWAY_MAX;
    loop {
        match leases.delete_collection(&Default::default(), &Default::default()).await {
            Ok(_) => return Ok(()),
            Err(error) if Instant::now() > deadline => {
                return Err(error).context("the Lease cannot be deleted");
            }
            Err(_) => tokio::time::sleep(GLANCE).await,
        }
    }
}

impl Scene {
    /// Writes the configuration anew, for the next start of the controller. What follows from it for the
    /// judge is the story's to say, with [`Scene::agree`].
    pub(crate) fn reconfigure(&self, change: impl FnOnce(&mut Setting)) -> Result<()> {
        let mut setting = self.setting.clone();
        change(&mut setting);
        let file = setting.config_file(&self.azure.greeting, &self.plane.account.namespace);
        std::fs::write(self.folder.join("config.json"), file)?;
        Ok(())
    }

    /// Stops every replica, changes the configuration, and starts them again.
    pub(crate) async fn restart_with(&self, what: &str, change: impl FnOnce(&mut Setting)) -> Result<()> {
        self.calm_down().await?;
        for replica in &self.replicas {
            replica.stop().await?;
        }
        self.reconfigure(change)?;
        self.tell(format!("the controller is started with {what}"));
        for replica in &self.replicas {
            replica.start()?;
        }
        Ok(())
    }

    /// What must hold after every story: agreement, honest history, and a plan that says so.
    pub(crate) async fn judged(&self) -> Result<()> {
        self.settled().await?;
        self.quiet().await?;
        let mark = self.mark_writes().await?;
        self.planned().await?;
        self.played_as_meant()?;
        self.unasked_ends()?;
        let problems = self.history().await?;
        if !problems.is_empty() {
            bail!("looking back over the whole story:\n  - {}", problems.join("\n  - "));
        }
        self.no_write_since(mark).await
    }

    /// Fails if a story was played as if it were plain: nobody was killed, or the controller was never down.
    fn played_as_meant(&self) -> Result<()> {
        let kills: usize = self.replicas.iter().map(|it| it.counts().kills).sum();
        let downs = self.downs.load(Ordering::Relaxed);
        match self.variant {
            Variant::Killed if kills == 0 => bail!("nobody was killed, so this was the plain way"),
            Variant::Down if downs == 0 => bail!("the controller was never down, so this was the plain way"),
            _ => Ok(()),
        }
    }

    /// Fails if the controller ended by itself where the story gave it no reason to.
    fn unasked_ends(&self) -> Result<()> {
        if self.setting.may_end {
            return Ok(());
        }
        let counts: Vec<_> = self.replicas.iter().map(|it| (&it.name, it.counts())).collect();
        if counts.iter().any(|(_, it)| it.restarts > 0) {
            bail!("the controller ended by itself: {counts:?}");
        }
        Ok(())
    }

    /// `sluice plan` says "in sync".
    async fn planned(&self) -> Result<()> {
        if !self.programs.asks_plan {
            self.tell("PLAN NOT CHECKED: --without-plan");
            return Ok(());
        }
        let output = self.plan().await?;
        if !output.status.success() {
            bail!(
                "`sluice plan` ended with {} and not in sync:\n{}{}",
                output.status,
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            );
        }
        self.tell("`sluice plan` says that all is in sync");
        Ok(())
    }

    /// What `sluice plan` says and how it ends.
    async fn plan(&self) -> Result<Output> {
        let mut command = Command::new(&self.programs.sluice);
        command.arg("plan").args(access(&self.folder.join("config.json"), &self.plane)).env("NO_COLOR", "1");
        let limit = Duration::from_secs(120);
        let output = tokio::time::timeout(limit, command.kill_on_drop(true).output()).await;
        Ok(output.with_context(|| format!("`sluice plan` did not end within {limit:?}"))??)
    }

    /// Runs `sluice cleanup --yes` with the configuration of the controller and these further arguments; it must
    /// succeed. Gives what it says.
    pub(crate) async fn cleanup(&self, more: &[&str]) -> Result<String> {
        self.tell(format!("$ sluice cleanup --yes {}", more.join(" ")));
        let mut command = Command::new(&self.programs.sluice);
        command.args(["cleanup", "--yes"]).args(access(&self.folder.join("config.json"), &self.plane));
        command.args(more).env("NO_COLOR", "1");
        let limit = Duration::from_secs(300);
        let output = tokio::time::timeout(limit, command.kill_on_drop(true).output()).await;
        let output = output.with_context(|| format!("`sluice cleanup` did not end within {limit:?}"))??;
        let [said, errors] =
            [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
        if !output.status.success() {
            bail!("`sluice cleanup` ended with {}:\n{said}{errors}", output.status);
        }
        Ok(said)
    }

    /// Where the API of the controller is, as it says itself.
    pub(crate) fn api(&self) -> Result<String> {
        let log = self.controller().said().context("no controller runs")?;
        let said = |line: &str| {
            Some(line.split_once("api=")?.1.split_whitespace().next()?.trim_matches('"').to_owned())
        };
        let address = log.lines().find_map(said);
        Ok(format!("http://{}", address.context("the controller has not said where its API is")?))
    }

    /// `sluice allow-deletion` as an administrator, asking the controller by its address.
    pub(crate) async fn allow_deletion(&self, more: &[&str]) -> Result<String> {
        self.tell(format!("$ sluice allow-deletion {}", more.join(" ")));
        let mut command = Command::new(&self.programs.sluice);
        command.arg("allow-deletion").arg(format!("--address={}", self.api()?));
        command.arg(format!("--kubeconfig={}", self.plane.ready.kubeconfig.display()));
        command.arg(format!("--lease-namespace={}", self.plane.account.namespace));
        let output = command.args(more).env("NO_COLOR", "1").kill_on_drop(true).output().await?;
        let [said, errors] =
            [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
        if !output.status.success() {
            bail!("`sluice allow-deletion` ended with {}:\n{said}{errors}", output.status);
        }
        Ok(said)
    }

    /// `sluice plan` says that so many services are held for this reason, and that nothing would be written.
    pub(crate) async fn plan_is_held(&self, reason: &str, count: usize) -> Result<()> {
        if !self.programs.asks_plan {
            self.tell("PLAN NOT CHECKED: --without-plan");
            return Ok(());
        }
        let said = self.plan().await?;
        let text = String::from_utf8_lossy(&said.stdout);
        let held = text.lines().filter(|line| line.contains(&format!("({reason})"))).count();
        let is_held =
            said.status.code() == Some(2) && text.contains("Held: no changes to Azure or Kubernetes");
        if !is_held || held != count {
            bail!("`sluice plan` ended with {} and should have held {count}:\n{text}", said.status);
        }
        self.tell("`sluice plan` says what is held, and that it is not in sync");
        Ok(())
    }

    /// Everybody leaves; nothing of ours may be left when they have.
    pub(crate) async fn struck(&self) -> Result<()> {
        self.tell("everybody leaves");
        for replica in &self.replicas {
            replica.start()?;
        }
        let namespaces = self.plane.story_namespaces().await?;
        let corners: Vec<World> = namespaces.iter().map(|name| self.world.in_namespace(name)).collect();
        for corner in &corners {
            corner.delete_services_and_slices().await?;
            corner.end_all_pods().await?;
        }
        self.except(|it| {
            it.frozen.clear();
            it.lingering.clear();
        });
        self.until("everything is gone and agrees", async || {
            let mut left = self.plane.left_over().await?;
            left.retain(|it| !it.starts_with("node ") && !it.starts_with("namespace "));
            left.extend(self.differences().await?);
            Ok(Look::unless(&left))
        })
        .await?;
        self.unasked_ends()?;
        let problems = self.history().await?;
        if !problems.is_empty() {
            bail!("looking back after everybody left:\n  - {}", problems.join("\n  - "));
        }
        for replica in &self.replicas {
            replica.stop().await?;
        }
        self.delete_all_nodes().await?;
        for corner in &corners {
            corner.delete_namespace().await?;
        }
        self.until("the control plane is as it was", async || {
            Ok(Look::unless(&self.plane.left_over().await?))
        })
        .await
    }
}
