//! The Azure of one story: an emulator process and its control API.
//!
//! Everything that the judge knows of Azure comes from here: the state and the request log. What a
//! story does behind the controller's back goes through [`Azure::tamper`], which keeps a record of
//! the public IPs that it deleted, since the control API is in no log.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::sync::Mutex;

use crate::process::{Program, tail};

/// The subscription that the emulator prepares.
pub(crate) const SUBSCRIPTION: &str = "00000000-0000-0000-0000-000000000000";
/// The resource group that the emulator prepares.
pub(crate) const GROUP: &str = "sluice";
/// The virtual network that the harness makes.
pub(crate) const NETWORK: &str = "cluster";
/// Its subnet.
pub(crate) const SUBNET: &str = "nodes";
/// The service gateway.
pub(crate) const GATEWAY: &str = "servicegateway";

/// What the emulator says once it serves.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Greeting {
    pub(crate) url: String,
    pub(crate) ca_path: PathBuf,
    pub(crate) tenant_id: String,
    pub(crate) client_id: String,
    pub(crate) client_secret: String,
}

/// One request of the log, as far as stories and judge look at it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Request {
    pub(crate) number: u64,
    pub(crate) area: String,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) kind: Option<String>,
    pub(crate) name: Option<String>,
    /// `Get`, `List`, `Put`, `Poll`, ….
    #[serde(default)]
    pub(crate) call: Option<String>,
    #[serde(default)]
    pub(crate) user_agent: Option<String>,
    pub(crate) status: Option<u16>,
    pub(crate) answered_ms: Option<f64>,
    #[serde(default)]
    pub(crate) body: Value,
}

impl Request {
    /// Whether it asks for a change.
    pub(crate) fn is_write(&self) -> bool {
        self.area == "arm" && !matches!(self.method.as_str(), "GET" | "HEAD")
    }

    /// Whether it is about the gateway itself or the subnet.
    pub(crate) fn is_foundation(&self) -> bool {
        matches!(self.kind.as_deref(), Some("serviceGateways" | "subnets"))
    }

    /// Whether it writes this resource.
    pub(crate) fn is_put_of(&self, kind: &str, name: &str) -> bool {
        self.method == "PUT" && self.names(kind, name)
    }

    /// Whether it deletes this resource.
    pub(crate) fn is_delete_of(&self, kind: &str, name: &str) -> bool {
        self.method == "DELETE" && self.names(kind, name)
    }

    fn names(&self, kind: &str, name: &str) -> bool {
        let is =
            |own: &Option<String>, other: &str| own.as_ref().is_some_and(|it| it.eq_ignore_ascii_case(other));
        is(&self.kind, kind) && is(&self.name, name)
    }

    /// Whether a replica of this name asked.
    pub(crate) fn is_by(&self, replica: &str) -> bool {
        self.user_agent.as_ref().is_some_and(|agent| agent.split_whitespace().any(|word| word == replica))
    }

    /// One line for reports.
    pub(crate) fn line(&self) -> String {
        let status = self.status.map_or_else(|| "no answer".to_string(), |status| status.to_string());
        let short = self.path.rsplit("Microsoft.Network/").next().unwrap_or(&self.path);
        format!("#{} {} {short} → {status}", self.number, self.method)
    }

    /// Whether it is about a name: in its path, or somewhere in its body.
    pub(crate) fn is_about(&self, name: &str) -> bool {
        let name = name.to_ascii_lowercase();
        self.path.to_ascii_lowercase().contains(&name)
            || self.body.to_string().to_ascii_lowercase().contains(&name)
    }
}

/// The emulator and the way to it.
#[derive(Debug)]
pub(crate) struct Azure {
    program: Mutex<Option<Program>>,
    sluice: PathBuf,
    arguments: Vec<String>,
    folder: PathBuf,
    /// Where it is and how to sign in.
    pub(crate) greeting: Greeting,
    client: reqwest::Client,
    /// Names of the public IPs that somebody else deleted.
    deleted_ips: Mutex<Vec<String>>,
    /// What was asked before the emulator was last killed.
    earlier: Mutex<Vec<Request>>,
}

impl Azure {
    /// Starts an emulator in a folder of its own and puts a virtual network into it.
    pub(crate) async fn start(
        sluice: &Path,
        folder: &Path,
        time_factor: u32,
        seed: u64,
        more: &[String],
    ) -> Result<Azure> {
        let mut arguments = vec![
            "emulator".to_string(),
            format!("--time-factor={time_factor}"),
            format!("--seed={seed}"),
            format!("--state={}", folder.join("azure.journal").display()),
            format!("--dir={}", folder.join("azure-ca").display()),
            format!("--ready-file={}", folder.join("azure.json").display()),
        ];
        arguments.extend(more.iter().cloned());
        let (program, greeting) = serve(sluice, &arguments, "127.0.0.1:0", folder).await?;
        let authority =
            std::fs::read(&greeting.ca_path).context("the emulator's CA certificate cannot be read")?;
        let client = reqwest::Client::builder()
            .tls_certs_only([reqwest::Certificate::from_pem(&authority)?])
            .timeout(Duration::from_secs(60))
            .build()?;
        let azure = Azure {
            program: Mutex::new(Some(program)),
            sluice: sluice.to_path_buf(),
            arguments,
            folder: folder.to_path_buf(),
            greeting,
            client,
            deleted_ips: Mutex::default(),
            earlier: Mutex::default(),
        };
        let body = json!({"location": "westeurope", "properties": {"addressSpace": {"addressPrefixes": ["10.0.0.0/8"]}}});
        azure.tamper(json!({"do": "put", "id": network_id(), "body": body})).await?;
        let body = json!({"properties": {"addressPrefix": "10.0.0.0/16"}});
        azure.tamper(json!({"do": "put", "id": subnet_id(), "body": body})).await?;
        Ok(azure)
    }

    /// Kills the emulator: no connection is answered until [`Azure::come_back`].
    pub(crate) async fn go_away(&self) -> Result<()> {
        // Its log does not survive, so what was asked so far is kept here.
        let mut all = self.requests_with_bodies(0).await?;
        // Who has no answer by now will never have one, so nobody may wait for it.
        all.iter_mut().for_each(|it| it.answered_ms = it.answered_ms.or(Some(0.0)));
        *self.earlier.lock().await = all;
        match self.program.lock().await.take() {
            Some(program) => program.kill().await,
            None => Ok(()),
        }
    }

    /// Starts it again at the same address, with all that it knew.
    pub(crate) async fn come_back(&self) -> Result<()> {
        let address = self.greeting.url.trim_start_matches("https://");
        let (program, _) = serve(&self.sluice, &self.arguments, address, &self.folder).await?;
        *self.program.lock().await = Some(program);
        Ok(())
    }

    /// Everything there is.
    pub(crate) async fn state(&self) -> Result<Value> {
        self.read("state").await
    }

    /// The requests after a number, without the bodies.
    pub(crate) async fn requests(&self, after: u64) -> Result<Vec<Request>> {
        self.log(after, false).await
    }

    /// The requests after a number, with their bodies.
    pub(crate) async fn requests_with_bodies(&self, after: u64) -> Result<Vec<Request>> {
        self.log(after, true).await
    }

    /// The number of the newest request.
    pub(crate) async fn newest_request(&self) -> Result<u64> {
        let earlier = self.earlier.lock().await.last().map_or(0, |request| request.number);
        let answer = self.read("requests?limit=1").await?;
        answer["total"]
            .as_u64()
            .map(|total| earlier + total)
            .context("the request log does not say how long it is")
    }

    async fn log(&self, after: u64, bodies: bool) -> Result<Vec<Request>> {
        let mut all: Vec<Request> = self.earlier.lock().await.clone();
        let earlier = all.last().map_or(0, |request| request.number);
        let mut from = after.saturating_sub(earlier);
        loop {
            let mut answer = self.read(&format!("requests?after={from}&bodies={bodies}")).await?;
            let page: Vec<Request> = serde_json::from_value(answer["requests"].take())
                .context("the emulator's request log has another form than we know")?;
            let Some(last) = page.last() else { break };
            from = last.number;
            // Its numbers begin anew with every start of the emulator; ours go on.
            all.extend(page.into_iter().map(|it| Request { number: it.number + earlier, ..it }));
            if answer["next"].is_null() {
                break;
            }
        }
        all.retain(|request| request.number > after);
        Ok(all)
    }

    async fn read(&self, path: &str) -> Result<Value> {
        let url = format!("{}/_emulator/{path}", self.greeting.url);
        let answer = self.client.get(&url).send().await.with_context(|| format!("no answer to {url}"))?;
        let status = answer.status();
        let text = answer.text().await?;
        if !status.is_success() {
            bail!("{url} answers {status}: {text}");
        }
        serde_json::from_str(&text).with_context(|| format!("{url} answers what is no JSON"))
    }

    /// Counts of the request log: 429s, and calls that came before a `Retry-After` was over. On a busy
    /// machine a call may be on its way for a quarter of a second.
    pub(crate) async fn summary(&self) -> Result<Value> {
        self.read("requests/summary?graceMs=250").await
    }

    /// Tells the control API something: `("faults", {…})`.
    pub(crate) async fn tell(&self, path: &str, body: Value) -> Result<Value> {
        let url = format!("{}/_emulator/{path}", self.greeting.url);
        let answer = self.client.post(&url).json(&body).send().await?;
        let status = answer.status();
        let text = answer.text().await?;
        if !status.is_success() {
            bail!("{url} refuses {body}: {status}: {text}");
        }
        Ok(serde_json::from_str(&text).unwrap_or(Value::Null))
    }

    /// A resource as Azure shows it to everybody.
    pub(crate) async fn resource(&self, id: &str) -> Result<Value> {
        let Greeting { url, tenant_id, client_secret, .. } = &self.greeting;
        let form = [
            ("grant_type", "client_credentials"),
            ("client_id", "e2e"),
            ("client_secret", client_secret),
            ("scope", "https://management.azure.com/.default"),
        ];
        let form: Vec<String> = form.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let token: Value = self
            .client
            .post(format!("{url}/{tenant_id}/oauth2/v2.0/token"))
            .header("content-type", "application/x-www-form-urlencoded")
            .body(form.join("&"))
            .send()
            .await?
            .error_for_status()?
            .json()
            .await?;
        let token = token["access_token"].as_str().context("the emulator gives no token")?;
        let asked = format!("{url}{id}?api-version=2025-05-01");
        let answer = self.client.get(asked).bearer_auth(token).send().await?;
        Ok(answer.error_for_status()?.json().await?)
    }

    /// Fails if a rule of faults never struck: then the story showed nothing about it.
    pub(crate) async fn each_fault_struck(&self) -> Result<()> {
        let answer = self.read("faults").await?;
        let rules = answer.as_array().or(answer["rules"].as_array());
        let rules = rules.with_context(|| format!("the emulator shows no rules of faults: {answer}"))?;
        if rules.is_empty() {
            bail!("there are no rules of faults, so none can have struck");
        }
        let idle: Vec<&Value> =
            rules.iter().filter(|it| it["struck"].as_u64().is_none_or(|it| it == 0)).collect();
        if !idle.is_empty() {
            bail!("these faults never struck: {idle:?}");
        }
        Ok(())
    }

    /// Takes all rules of faults away.
    pub(crate) async fn calm(&self) -> Result<()> {
        self.tell("calm", json!({})).await.map(|_| ())
    }

    /// Somebody else at work in the subscription.
    pub(crate) async fn tamper(&self, deed: Value) -> Result<Value> {
        if deed["do"] == "delete"
            && let Some((_, name)) = deed["id"].as_str().and_then(|id| id.split_once("/publicIPAddresses/"))
        {
            self.deleted_ips.lock().await.push(name.to_ascii_lowercase());
        }
        self.tell("tamper", deed).await
    }

    /// How often somebody else deleted a public IP of this name.
    pub(crate) async fn deleted_by_others(&self, name: &str) -> usize {
        self.deleted_ips.lock().await.iter().filter(|it| it.eq_ignore_ascii_case(name)).count()
    }
}

/// Starts the program and waits until it says that it serves.
async fn serve(
    sluice: &Path,
    arguments: &[String],
    address: &str,
    folder: &Path,
) -> Result<(Program, Greeting)> {
    let log = folder.join("emulator.log");
    let ready = folder.join("azure.json");
    let _ = std::fs::remove_file(&ready);
    let mut command = Command::new(sluice);
    command.args(arguments).arg(format!("--listen={address}"));
    let program = Program::start("the emulator", &mut command, &log)?;
    for _ in 0..600 {
        if let Ok(text) = std::fs::read_to_string(&ready) {
            let greeting = serde_json::from_str(&text).context("the emulator's ready file")?;
            return Ok((program, greeting));
        }
        if let Some(status) = program.status() {
            bail!("the emulator ended with {status}:\n{}", tail(&log, 20));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    bail!("the emulator does not say that it serves:\n{}", tail(&log, 20))
}

/// The id of a resource in the story's group: `resource_id("loadBalancers", "web")`.
pub(crate) fn resource_id(kind: &str, name: &str) -> String {
    format!("/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}/providers/Microsoft.Network/{kind}/{name}")
}

/// The virtual network's id.
pub(crate) fn network_id() -> String {
    resource_id("virtualNetworks", NETWORK)
}

/// The subnet's id.
pub(crate) fn subnet_id() -> String {
    format!("{}/subnets/{SUBNET}", network_id())
}

/// The gateway's id.
pub(crate) fn gateway_id() -> String {
    resource_id("serviceGateways", GATEWAY)
}
