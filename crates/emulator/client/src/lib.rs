//! A client of the emulator as a process: starts `sluice emulator`, reads its greeting, and uses its APIs.
//!
//! [`Control`] is the control API below `/_emulator/`, for an emulator of any process. [`Client`] adds what an
//! administrator of the subscription does with a token. [`Emulator`] is a process with a client.
//!
//! The end-to-end program uses this crate and no code of the controller, so this crate depends on no other
//! crate of the workspace.

mod control;
pub mod process;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;
use serde_json::Value;
use tokio::process::Command;

pub use control::{Control, Request};
use process::{Program, Talk};

/// The address to listen at for any free port.
pub const ANY_PORT: &str = "127.0.0.1:0";
/// How long an emulator may take until it serves.
const START_MAX: Duration = Duration::from_secs(60);
/// How many emulated seconds a write may take.
const WRITE_SECONDS_MAX: u32 = 200;

/// The line of JSON that an emulator prints when it serves.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Greeting {
    /// Where it serves.
    pub url: String,
    /// The file with its CA certificate.
    pub ca_path: PathBuf,
    /// A tenant that it accepts.
    pub tenant_id: String,
    /// A client id that it accepts.
    pub client_id: String,
    /// The secret of that client.
    pub client_secret: String,
    /// The subscription with the prepared resource group.
    pub subscription_id: String,
    /// The prepared resource group.
    pub resource_group: Option<String>,
    /// How many emulated seconds pass in a real one.
    pub time_factor: f64,
}

/// A client of the control API and of the resource manager.
#[derive(Clone, Debug)]
pub struct Client {
    /// Where the emulator is, and how to sign in.
    pub greeting: Greeting,
    /// The control API.
    pub control: Control,
}

impl Client {
    /// The client for an emulator that greeted with this.
    pub fn new(greeting: Greeting) -> Result<Client> {
        let ca = std::fs::read(&greeting.ca_path)
            .with_context(|| format!("cannot read {}", greeting.ca_path.display()))?;
        let control = Control::new(&greeting.url, &ca)?;
        Ok(Client { greeting, control })
    }

    /// A resource as Azure returns it.
    pub async fn get(&self, id: &str) -> Result<Value> {
        let request = self.control.http.get(self.resource_url(id)).bearer_auth(self.token().await?);
        Ok(request.send().await?.error_for_status()?.json().await?)
    }

    /// Writes a resource; returns the status of the answer without waiting for the operation.
    pub async fn put(&self, id: &str, body: &Value) -> Result<u16> {
        let request = self.control.http.put(self.resource_url(id)).bearer_auth(self.token().await?);
        let answer = request.json(body).send().await?;
        let (status, text) = (answer.status(), answer.text().await?);
        ensure!(status.is_success(), "PUT {id} answered {status}: {text}");
        Ok(status.as_u16())
    }

    /// Writes a resource and waits until Azure has done it.
    pub async fn put_and_wait(&self, id: &str, body: &Value) -> Result<()> {
        self.put(id, body).await?;
        for _ in 0..WRITE_SECONDS_MAX {
            let seen = self.get(id).await?;
            match seen["properties"]["provisioningState"].as_str() {
                Some("Succeeded") => return Ok(()),
                Some("Failed") => bail!("PUT {id} failed: {seen}"),
                _ => tokio::time::sleep(Duration::from_secs(1).div_f64(self.greeting.time_factor)).await,
            }
        }
        bail!("PUT {id} did not finish within {WRITE_SECONDS_MAX} emulated seconds")
    }

    /// A token of somebody who is not the controller.
    async fn token(&self) -> Result<String> {
        let Greeting { url, tenant_id, client_secret, .. } = &self.greeting;
        let form = url::form_urlencoded::Serializer::new(String::new())
            .append_pair("grant_type", "client_credentials")
            .append_pair("client_id", "an-administrator")
            .append_pair("client_secret", client_secret)
            .append_pair("scope", &format!("{url}/.default"))
            .finish();
        let request = self.control.http.post(format!("{url}/{tenant_id}/oauth2/v2.0/token"));
        let request = request.header("content-type", "application/x-www-form-urlencoded").body(form);
        let answer: Value = request.send().await?.error_for_status()?.json().await?;
        Ok(answer["access_token"].as_str().context("the token endpoint returned no token")?.to_owned())
    }

    fn resource_url(&self, id: &str) -> String {
        format!("{}{id}?api-version=2025-05-01", self.greeting.url)
    }
}

/// An emulator process. It is killed when this value is dropped.
#[derive(Debug)]
pub struct Emulator {
    /// The way to it.
    pub client: Client,
    /// The process.
    pub program: Program,
    /// What it prints.
    pub talk: Talk,
}

impl Emulator {
    /// Starts `sluice emulator` with further arguments and waits until it serves. Its errors go to the log.
    pub async fn start(
        sluice: &Path,
        listen: &str,
        arguments: &[impl AsRef<OsStr>],
        log: &Path,
    ) -> Result<Emulator> {
        let mut command = Command::new(sluice);
        command.args(["emulator", "--output", "json", "--listen", listen]).args(arguments);
        let (program, mut talk) = Program::talk("the emulator", &mut command, log)?;
        let line =
            tokio::time::timeout(START_MAX, talk.hear()).await.context("the emulator does not greet")??;
        let greeting = serde_json::from_str(&line).with_context(|| format!("this is no greeting: {line}"))?;
        Ok(Emulator { client: Client::new(greeting)?, program, talk })
    }
}
