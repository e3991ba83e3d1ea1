//! An emulator, in a process of its own or not, and the way to it: as a client of Azure, and through its
//! control API.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use serde::Deserialize;
use serde_json::{Value, json};
use sluice_arm::{Client, Credential, Pem, Secret, Settings};
use sluice_model::names::Scope;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

/// How long an emulator may take to serve.
const START_MAX: Duration = Duration::from_secs(30);
/// The region that everything is made in.
const REGION: &str = "eastus";

/// An emulator. If it is a process, that ends with this value.
#[derive(Debug)]
pub struct Emulator {
    /// What it said about itself.
    pub greeting: Greeting,
    child: Option<Child>,
    http: reqwest::Client,
}

/// The line of JSON with which an emulator greets.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Greeting {
    /// Where it serves.
    pub url: String,
    /// Where its control API is.
    pub control_url: String,
    /// Its CA.
    pub ca_path: PathBuf,
    /// A tenant that it knows.
    pub tenant_id: String,
    /// A client id that it knows.
    pub client_id: String,
    /// The secret of that client.
    pub client_secret: String,
    /// The subscription with a group in it.
    pub subscription_id: String,
    /// That group.
    pub resource_group: Option<String>,
    /// How many emulated seconds pass in a real one.
    pub time_factor: f64,
    /// The process.
    pub pid: u32,
}

impl Emulator {
    /// Starts one on a free port with further arguments, and waits until it serves.
    pub async fn start(program: &Path, time_factor: f64, arguments: &[&str]) -> anyhow::Result<Emulator> {
        let mut child = Command::new(program)
            .args(["emulator", "--listen", "127.0.0.1:0", "--output", "json"])
            .args(["--time-factor", &time_factor.to_string()])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let stdout = child.stdout.take().context("the emulator has no standard output")?;
        let mut lines = BufReader::new(stdout).lines();
        let line = tokio::time::timeout(START_MAX, lines.next_line())
            .await
            .context("the emulator did not greet in time")??
            .context("the emulator ended without a word")?;
        let greeting: Greeting =
            serde_json::from_str(&line).with_context(|| format!("this is no greeting: {line}"))?;
        Ok(Emulator { child: Some(child), ..Emulator::at(greeting)? })
    }

    /// One that somebody else has started and stops.
    pub fn at(greeting: Greeting) -> anyhow::Result<Emulator> {
        let ca = std::fs::read(&greeting.ca_path)
            .with_context(|| format!("cannot read {}", greeting.ca_path.display()))?;
        let http = reqwest::Client::builder()
            .tls_certs_only([reqwest::Certificate::from_pem(&ca)?])
            .timeout(Duration::from_secs(60))
            .no_proxy()
            .build()?;
        Ok(Emulator { greeting, child: None, http })
    }

    /// Where everything is made.
    pub fn scope(&self) -> Scope {
        let group = self.greeting.resource_group.as_deref().unwrap_or("sluice");
        Scope {
            subscription: self.greeting.subscription_id.as_str().into(),
            resource_group: group.into(),
            network_resource_group: group.into(),
            virtual_network: "vnet".into(),
            subnet: "nodes".into(),
            gateway: "servicegateway".into(),
            cluster_id: "bench".into(),
        }
    }

    /// The client of the product, with a client secret and the emulator's CA.
    pub fn client(&self) -> anyhow::Result<Client> {
        let credential = Credential::ClientSecret {
            tenant: self.greeting.tenant_id.clone(),
            client_id: self.greeting.client_id.clone(),
            secret: Secret::new(self.greeting.client_secret.clone()),
        };
        let mut settings = Settings::new(REGION, credential);
        settings.resource_manager_endpoint = Some(self.greeting.url.clone());
        settings.authority_host = Some(self.greeting.url.clone());
        settings.extra_ca = Some(Pem::File(self.greeting.ca_path.clone()));
        settings.virtual_network = Some(self.scope().virtual_network_id());
        Ok(Client::new(&settings)?)
    }

    /// Makes the virtual network and the subnet that a gateway needs, as an administrator would.
    pub async fn prepare_network(&self) -> anyhow::Result<()> {
        let scope = self.scope();
        let network = json!({
            "location": REGION,
            "properties": {
                "addressSpace": {"addressPrefixes": ["10.0.0.0/8"]},
                "subnets": [{"name": &*scope.subnet, "properties": {"addressPrefix": "10.1.0.0/16"}}],
            },
        });
        self.put(scope.virtual_network_id().as_str(), network).await
    }

    /// Writes a resource as somebody with a token of their own, and waits until it is there.
    pub async fn put(&self, id: &str, body: Value) -> anyhow::Result<()> {
        let token = self.token().await?;
        let url = format!("{}{id}?api-version=2025-05-01", self.greeting.url);
        let answer = self.http.put(&url).bearer_auth(&token).json(&body).send().await?;
        let (status, text) = (answer.status(), answer.text().await?);
        ensure!(status.is_success(), "PUT {id} answered {status}: {text}");
        for _ in 0..200 {
            let seen: Value = self.http.get(&url).bearer_auth(&token).send().await?.json().await?;
            match seen.pointer("/properties/provisioningState").and_then(Value::as_str) {
                Some("Succeeded") => return Ok(()),
                Some("Failed") => bail!("PUT {id} failed: {seen}"),
                _ => tokio::time::sleep(Duration::from_secs(1).div_f64(self.greeting.time_factor)).await,
            }
        }
        bail!("PUT {id} did not come to its end")
    }

    async fn token(&self) -> anyhow::Result<String> {
        let url = format!("{}/{}/oauth2/v2.0/token", self.greeting.url, self.greeting.tenant_id);
        let scope = format!("{}/.default", self.greeting.url);
        let form = [
            ("grant_type", "client_credentials"),
            ("client_id", "an-administrator"),
            ("client_secret", &self.greeting.client_secret),
            ("scope", &scope),
        ];
        let body: Vec<String> = form
            .iter()
            .map(|(name, value)| format!("{name}={}", value.replace(':', "%3A").replace('/', "%2F")))
            .collect();
        let answer = self
            .http
            .post(url)
            .header("content-type", "application/x-www-form-urlencoded")
            .body(body.join("&"))
            .send()
            .await?;
        let answer: Value = answer.error_for_status()?.json().await?;
        let token = answer.get("access_token").and_then(Value::as_str);
        Ok(token.context("the token endpoint gave no token")?.to_owned())
    }

    /// Reads from the control API.
    pub async fn ask(&self, path: &str) -> anyhow::Result<Value> {
        let answer = self.http.get(format!("{}{path}", self.greeting.control_url)).send().await?;
        read(path, answer).await
    }

    /// Tells the control API something.
    pub async fn tell(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        let answer = self.http.post(format!("{}{path}", self.greeting.control_url)).json(body).send().await?;
        read(path, answer).await
    }

    /// Takes something away through the control API.
    pub async fn withdraw(&self, path: &str) -> anyhow::Result<Value> {
        let answer = self.http.delete(format!("{}{path}", self.greeting.control_url)).send().await?;
        read(path, answer).await
    }

    /// Ends the process, if it is one.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        match &mut self.child {
            Some(child) => Ok(child.kill().await?),
            None => Ok(()),
        }
    }
}

async fn read(path: &str, answer: reqwest::Response) -> anyhow::Result<Value> {
    let status = answer.status();
    let text = answer.text().await?;
    ensure!(status.is_success(), "/_emulator/{path} answered {status}: {text}");
    if text.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_str(&text).with_context(|| format!("/_emulator/{path} answered no JSON: {text}"))
}
