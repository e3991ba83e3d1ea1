//! Starts that are expected to come to nothing, and the question who leads.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use tokio::process::Command;

use super::{Look, Mark, Scene};
use crate::controller::Controller;
use crate::setting::Setting;

/// Whoever has not given up by then, tries for ever without a word.
const GIVES_UP: Duration = Duration::from_secs(60);

/// What the log says when the first difference has been worked off. It only says when to look; what is
/// judged is the emulator's log.
const SYNCED: &str = "initial sync done";

/// A start of the controller that ended by itself.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    code: Option<i32>,
    said: String,
}

impl Attempt {
    /// It ended with this code and one message, which has all of these words.
    pub(crate) fn failed_with(&self, code: i32, words: &[&str]) -> Result<()> {
        let Attempt { code: own, said } = self;
        ensure!(*own == Some(code), "it ended with {own:?} and not with {code}; it said\n{said}");
        let messages = said.lines().filter(|line| line.starts_with("error: ")).count();
        ensure!(messages == 1, "it said {messages} error messages where one is enough:\n{said}");
        let (_, message) = said.split_once("error: ").context("it said no error")?;
        for word in words {
            ensure!(message.contains(word), "its message says nothing of {word:?}:\n{message}");
        }
        Ok(())
    }

    /// Nowhere in its output is this.
    pub(crate) fn keeps_to_itself(&self, secret: &str) -> Result<()> {
        ensure!(!self.said.contains(secret), "a secret is in its output");
        Ok(())
    }
}

impl Scene {
    /// The configuration file as it would be with another setting.
    pub(crate) fn config_with(&self, change: impl FnOnce(&mut Setting)) -> String {
        let mut setting = self.setting.clone();
        change(&mut setting);
        setting.config_file(&self.azure.greeting, &self.plane.account.namespace)
    }

    /// Starts a controller beside those of the story and waits until it has given up.
    pub(crate) async fn attempt(&self, config: &str, kubeconfig: &str) -> Result<Attempt> {
        let path = |name: &str, text: &str| -> Result<String> {
            let path = self.folder.join(name);
            std::fs::write(&path, text)?;
            Ok(path.display().to_string())
        };
        let (program, words) = self.programs.controller(&self.setting);
        let mut command = Command::new(program);
        command
            .args(words)
            .arg(format!("--config={}", path("attempt-config.json", config)?))
            .arg(format!("--kubeconfig={}", path("attempt.kubeconfig", kubeconfig)?))
            .env("NO_COLOR", "1")
            .kill_on_drop(true);
        let Ok(ended) = tokio::time::timeout(GIVES_UP, command.output()).await else {
            bail!("the controller neither works nor gives up within {GIVES_UP:?}");
        };
        let ended = ended.context("the controller cannot be started")?;
        let said = [ended.stdout, ended.stderr].map(|it| String::from_utf8_lossy(&it).into_owned()).concat();
        let code = ended.status.code();
        self.tell(format!("it ends with {}: {}", ended.status, message(&said)));
        Ok(Attempt { code, said })
    }

    /// The kubeconfig of the controller's account, as text.
    pub(crate) fn own_kubeconfig(&self) -> Result<String> {
        read(&self.plane.kubeconfig)
    }

    /// How often the logs of all replicas have these words.
    pub(crate) fn times_logged(&self, words: &str) -> usize {
        let logs = self.replicas.iter().map(|it| read(&it.log).unwrap_or_default());
        logs.map(|log| log.matches(words).count()).sum()
    }

    /// The replica that the Lease names, once there is one.
    pub(crate) async fn leader(&self) -> Result<&Arc<Controller>> {
        self.leader_but(None).await
    }

    /// The same; it is not this one any more.
    pub(crate) async fn leader_but(&self, not: Option<&str>) -> Result<&Arc<Controller>> {
        self.until("somebody leads", async || {
            let holder = self.holder().await?;
            let leader = self.replicas.iter().find(|it| it.is_up() && Some(&it.name) == holder.as_ref());
            Ok(match leader {
                Some(leader) if Some(leader.name.as_str()) != not => Look::Yes(leader),
                _ => Look::NotYet(format!("the lease names {holder:?}")),
            })
        })
        .await
    }

    /// Waits until somebody runs, leads, and has worked off what it found at its start. What agrees before that
    /// would agree without any controller, and nobody could have written anything wrong.
    pub(super) async fn awake(&self) -> Result<()> {
        self.until("a leader has worked off what it found", async || {
            let holder = self.holder().await?;
            let leader = self.replicas.iter().find(|it| Some(&it.name) == holder.as_ref());
            let Some(leader) = leader else {
                return Ok(Look::NotYet(format!("the lease names {holder:?}")));
            };
            // Whoever loses the lease ends, so a process that has said it leads, if the lease is still its own.
            let leads = leader.holds_the_lease(&self.client, &self.plane.account.namespace).await?;
            let said = leader.said().is_some_and(|it| it.contains(SYNCED));
            let why = format!("{}: lease renewed by it: {leads}, {SYNCED}: {said}", leader.name);
            Ok(if leads && said { Look::Yes(()) } else { Look::NotYet(why) })
        })
        .await
    }

    /// The pod that the Lease names; `None`: it was released.
    pub(crate) async fn holder(&self) -> Result<Option<String>> {
        let leases = Api::<Lease>::namespaced(self.client.clone(), &self.plane.account.namespace);
        let lease = leases.get_opt("sluice").await?;
        let holder = lease.and_then(|it| it.spec?.holder_identity).filter(|it| !it.is_empty());
        // What is behind the name of the pod tells one life of it from the next.
        Ok(holder.map(|it| it.split('_').next().unwrap_or_default().to_string()))
    }
}

/// How things stood before a start or a change of leader.
#[derive(Debug)]
pub(crate) struct Before {
    pub(crate) mark: Mark,
    synced: usize,
}

impl Before {
    /// As they stand now.
    pub(crate) async fn now(scene: &Scene) -> Result<Before> {
        Ok(Before { mark: scene.mark_writes().await?, synced: scene.times_logged(SYNCED) })
    }

    /// Waits until there is another leader who has compared everything, and sees that this was all it did:
    /// no write, and no read but pages of lists and one GET each of gateway and subnet.
    pub(crate) async fn only_compared<'a>(
        &self,
        scene: &'a Scene,
        not: Option<&Controller>,
    ) -> Result<&'a Arc<Controller>> {
        scene
            .until("a new leader has compared everything", async || {
                let now = scene.times_logged(SYNCED);
                Ok(if now > self.synced {
                    Look::Yes(())
                } else {
                    Look::NotYet(format!("{now} times so far"))
                })
            })
            .await?;
        let leader = scene.leader_but(not.map(|it| it.name.as_str())).await?;
        scene.quiet().await?;
        scene.tell(format!("{} leads and has compared everything", leader.name));
        scene.no_write_since(self.mark).await?;
        scene.reads_are_listings(self.mark, 1).await?;
        Ok(leader)
    }
}

fn message(said: &str) -> &str {
    said.split_once("error: ").map_or("without an error", |(_, message)| message).trim()
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))
}
