//! The driver of a control plane of `testenv/`: the line that it prints when it is ready, and its commands.
//!
//! The program ends, and removes all that it made, when its standard input is closed; a guard process of its
//! own does so if it is killed.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use serde_json::Value;
use sluice_emulator_client::process::{Program, Talk};
use tokio::process::Command;
use tokio::sync::Mutex;

/// What testenv prints once it serves.
#[derive(Clone, Debug, Deserialize)]
pub struct Ready {
    /// Where the API server is.
    pub url: String,
    /// The file for an administrator's kubectl.
    pub kubeconfig: PathBuf,
    /// The file with the CA certificate.
    #[serde(default)]
    pub ca: PathBuf,
    /// The folder that has everything.
    #[serde(default)]
    pub dir: PathBuf,
    /// The version of Kubernetes.
    #[serde(default)]
    pub version: String,
}

/// A control plane that serves.
#[derive(Debug)]
pub struct Testenv {
    /// Where it is.
    pub ready: Ready,
    talk: Mutex<Talk>,
    program: Program,
}

impl Testenv {
    /// Starts one and waits until it is ready. Its errors go to the log.
    pub async fn start(program: &Path, log: &Path) -> Result<Testenv> {
        let mut command = Command::new(program);
        // Ctrl-C is for its user: the end of its input is how it learns of it, and then it clears up.
        command.arg("up").process_group(0);
        let (program, mut talk) = Program::talk("testenv", &mut command, log)?;
        let ready = serde_json::from_str(&talk.hear().await?).context("testenv says what is no JSON")?;
        Ok(Testenv { ready, talk: Mutex::new(talk), program })
    }

    /// Gives it a command and returns its answer: `restart apiserver`, `pause apiserver`, ….
    pub async fn ask(&self, command: &str) -> Result<Value> {
        let mut talk = self.talk.lock().await;
        talk.say(command).await?;
        Ok(serde_json::from_str(&talk.hear().await?)?)
    }

    /// Gives it a command that must succeed.
    pub async fn tell(&self, command: &str) -> Result<()> {
        let answer = self.ask(command).await?;
        ensure!(answer["ok"] == true, "testenv does not {command}: {}", answer["error"]);
        Ok(())
    }

    /// Ends it and waits until it has cleared up.
    pub async fn stop(&self) -> Result<()> {
        self.talk.lock().await.hang_up();
        let end = self.program.ended().await;
        ensure!(end.success(), "testenv ended with {end}");
        Ok(())
    }
}
