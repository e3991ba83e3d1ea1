//! The command itself: reach both worlds, read them, foresee, print.

use anyhow::Context as _;
use clap::Args;
use sluice_controller::Monotonic;
use sluice_k8s::connect;
use sluice_k8s::convert::Selection;
use sluice_k8s::watch::list_all;

use super::foresight::{Worlds, foresee};
use super::reading::read_azure;
use super::report::Report;
use crate::bench::Output;
use crate::config::{Config, ConfigArguments};
use crate::paint::Paint;

/// Shows what `sluice run` would do, and does nothing.
#[derive(Args, Debug)]
pub struct Arguments {
    #[command(flatten)]
    config: ConfigArguments,
    /// How to say it
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

/// What came of it, for the exit code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Nothing would be written.
    InSync,
    /// Something would be.
    Changes,
}

/// Both worlds, as one configuration reaches them.
#[derive(Debug)]
pub struct Reached {
    /// The configuration.
    pub config: Config,
    /// The API server.
    pub connection: connect::Connection,
    /// Azure.
    pub azure: sluice_arm::Client,
    /// The value of our cluster tag.
    pub cluster_id: String,
}

impl Reached {
    /// Connects to both, or says which of them cannot be reached and why.
    pub async fn by(arguments: &ConfigArguments) -> anyhow::Result<Reached> {
        let loaded = arguments.load()?;
        let config = loaded.config;
        let connection =
            connect::connect(arguments.kubeconfig.as_deref(), arguments.context.as_deref()).await?;
        let cluster_id = match &config.general.cluster_id {
            Some(id) => id.clone(),
            None => connect::cluster_id(&connection.client).await.context(
                "the cluster id is the UID of the namespace kube-system, unless sluice.clusterId is set",
            )?,
        };
        let azure = sluice_arm::Client::new(&config.arm_settings()?)?;
        azure.warm_up().await.context("there is no token for Azure")?;
        Ok(Reached { config, connection, azure, cluster_id })
    }

    /// Reads both completely.
    pub async fn read(&self) -> anyhow::Result<Worlds> {
        let selection = Selection { class: self.config.general.load_balancer_class.clone() };
        let scope = self.config.scope(&self.cluster_id);
        let clock = Monotonic::start();
        // Kubernetes comes last: what Azure has for an object that is newer than its list looks like an orphan.
        let azure = read_azure(self.config.updaters(), &scope, &self.azure, &clock).await?;
        let kubernetes = list_all(&self.connection.client, &selection).await?;
        Ok(Worlds { kubernetes, azure })
    }
}

/// Reads, foresees and prints.
pub async fn run(arguments: Arguments) -> anyhow::Result<Verdict> {
    let reached = Reached::by(&arguments.config).await?;
    let worlds = reached.read().await?;
    let scope = reached.config.scope(&reached.cluster_id);
    let forecast = foresee(reached.config.engine(&reached.cluster_id), reached.config.updaters(), &worlds);
    let report = Report::of(&scope, &forecast);
    match arguments.output {
        Output::Json => println!("{}", serde_json::to_string_pretty(&report)?),
        Output::Text => {
            print!("{}", report.text(Paint::for_stdout()));
        }
    }
    if !report.in_sync {
        return Ok(Verdict::Changes);
    }
    anyhow::ensure!(report.settles, "not everything can be foreseen: see the lines above");
    Ok(Verdict::InSync)
}
