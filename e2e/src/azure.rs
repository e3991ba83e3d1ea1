//! The Azure of one story: an emulator process and its control API.
//!
//! Everything that the judge knows of Azure comes from here: the state and the request log. What a
//! story does behind the controller's back goes through [`Azure::tamper`], which keeps a record of
//! the public IPs that it deleted, since the control API is in no log.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use sluice_emulator_client::process::Program;
use sluice_emulator_client::{ANY_PORT, Client, Emulator};
use tokio::sync::Mutex;

pub(crate) use sluice_emulator_client::{Greeting, Request};

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

/// The emulator and the way to it.
#[derive(Debug)]
pub(crate) struct Azure {
    program: Mutex<Option<Program>>,
    sluice: PathBuf,
    arguments: Vec<String>,
    log: PathBuf,
    /// Where it is and how to sign in.
    pub(crate) greeting: Greeting,
    client: Client,
    /// Names of the public IPs that somebody else deleted.
    deleted_ips: Mutex<Vec<String>>,
    /// What was asked before the emulator was last killed.
    earlier: Mutex<Vec<Request>>,
}

impl Azure {
    /// Starts an emulator in a folder of its own and puts a virtual network into it, unless a state file is there.
    pub(crate) async fn start(
        sluice: &Path,
        folder: &Path,
        time_factor: u32,
        seed: u64,
        more: &[String],
    ) -> Result<Azure> {
        let journal = folder.join("azure.journal");
        let is_new = !journal.exists();
        let mut arguments = vec![
            format!("--time-factor={time_factor}"),
            format!("--seed={seed}"),
            format!("--state={}", journal.display()),
            format!("--dir={}", folder.join("azure-ca").display()),
        ];
        arguments.extend(more.iter().cloned());
        let log = folder.join("emulator.log");
        let Emulator { client, program, .. } = Emulator::start(sluice, ANY_PORT, &arguments, &log).await?;
        let azure = Azure {
            program: Mutex::new(Some(program)),
            sluice: sluice.to_path_buf(),
            arguments,
            log,
            greeting: client.greeting.clone(),
            client,
            deleted_ips: Mutex::default(),
            earlier: Mutex::default(),
        };
        if !is_new {
            return Ok(azure);
        }
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
        let emulator = Emulator::start(&self.sluice, address, &self.arguments, &self.log).await?;
        *self.program.lock().await = Some(emulator.program);
        Ok(())
    }

    /// Everything there is.
    pub(crate) async fn state(&self) -> Result<Value> {
        self.client.control.state().await
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
        Ok(earlier + self.client.control.newest_request().await?)
    }

    async fn log(&self, after: u64, bodies: bool) -> Result<Vec<Request>> {
        let mut all: Vec<Request> = self.earlier.lock().await.clone();
        let earlier = all.last().map_or(0, |request| request.number);
        let since = self.client.control.requests(after.saturating_sub(earlier), bodies).await?;
        // Its numbers begin anew with every start of the emulator; ours go on.
        all.extend(since.into_iter().map(|it| Request { number: it.number + earlier, ..it }));
        all.retain(|request| request.number > after);
        Ok(all)
    }

    /// Counts of the request log: 429s, and calls that came before a `Retry-After` was over.
    pub(crate) async fn summary(&self) -> Result<Value> {
        self.client.control.summary().await
    }

    /// Tells the control API something: `("faults", {…})`.
    pub(crate) async fn tell(&self, path: &str, body: Value) -> Result<Value> {
        self.client.control.tell(path, &body).await
    }

    /// A resource as Azure shows it to everybody.
    pub(crate) async fn resource(&self, id: &str) -> Result<Value> {
        self.client.get(id).await
    }

    /// Fails if a rule of faults never struck: then the story showed nothing about it.
    pub(crate) async fn each_fault_struck(&self) -> Result<()> {
        let answer = self.client.control.ask("faults").await?;
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
        self.client.control.calm().await
    }

    /// Somebody else at work in the subscription.
    pub(crate) async fn tamper(&self, deed: Value) -> Result<Value> {
        if deed["do"] == "delete"
            && let Some((_, name)) = deed["id"].as_str().and_then(|id| id.split_once("/publicIPAddresses/"))
        {
            self.deleted_ips.lock().await.push(name.to_ascii_lowercase());
        }
        self.client.control.tamper(&deed).await
    }

    /// How often somebody else deleted a public IP of this name.
    pub(crate) async fn deleted_by_others(&self, name: &str) -> usize {
        self.deleted_ips.lock().await.iter().filter(|it| it.eq_ignore_ascii_case(name)).count()
    }
}

/// The id of a resource in the story's group: `resource_id("loadBalancers", "web")`.
pub(crate) fn resource_id(kind: &str, name: &str) -> String {
    format!("/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}/providers/Microsoft.Network/{kind}/{name}")
}

/// The ids of the load balancer and the public IP of a Service.
pub(crate) fn resources_of(uid: &str) -> [String; 2] {
    [resource_id("loadBalancers", uid), resource_id("publicIPAddresses", &format!("{uid}-pip"))]
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
