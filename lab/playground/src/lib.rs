//! `sluice playground`: Kubernetes, Azure and the controller in one process.
//!
//! ```text
//! kubectl ─▶ API server ◀─ controller ─▶ emulator ◀─ changes by others
//!               ▲           dashboard       ▲
//!               └────── the last check ─────┘
//! ```
//!
//! Nothing has to be set up, and nothing is left behind. The controller is the one that ships: it reads a
//! configuration file and speaks HTTPS to both sides. A scenario plays a story with a narrator; its end is
//! judged by a comparison of the objects in the API server with the state of the emulator.
//!
//! Missing on purpose: containers. Pods are there and have addresses, but nothing runs in them.

mod azure;
mod banner;
mod changes;
mod check;
mod cluster;
mod controller;
pub mod emulator;
mod kinds;
mod narrator;
mod pace;
mod parts;
mod scenarios;
mod stage;
#[cfg(test)]
mod tests;
mod user;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::anyhow;
use clap::Args;
use futures::future::LocalBoxFuture;
use serde_json::json;
use sluice_commands::failure::{Failure, exit};
use sluice_commands::lease::SHIPPED_NAMESPACE;
use sluice_commands::logs;
use sluice_commands::output::Output;
use sluice_commands::run::signals::{Signal, Signals};
use sluice_commands::say;

use banner::{AzureLine, Banner};
use controller::Controller;
use narrator::Narrator;
use pace::Pace;
use parts::{Doors, Folder};
use scenarios::{End, SCENARIOS, Scenario};
use stage::Stage;

/// What the log of the controller holds, unless somebody says otherwise.
const LOGGED: &str = "warn,sluice=info";

/// Run the playground.
#[derive(Args, Debug)]
#[command(after_long_help = HELP)]
pub struct Arguments {
    /// Run a narrated scenario (--list shows all scenarios)
    #[arg(long, value_name = "NAME")]
    scenario: Option<String>,
    /// Exit after the scenario: 0 if Kubernetes and Azure match, else 1
    ///
    /// If they do not match, the differences are printed.
    #[arg(long, requires = "scenario")]
    exit: bool,
    /// List the scenarios and exit
    #[arg(long, exclusive = true)]
    list: bool,
    /// Run Azure and Sluice FACTOR times as fast, from 1 to 1000
    #[arg(long, value_name = "FACTOR", default_value_t = 10.0, value_parser = sluice_commands::pace::factor)]
    time_factor: f64,
    /// Limit each wait of a scenario, in emulated time [default: 20m]
    ///
    /// With a large --time-factor, the default is raised so that it lasts at least 1 min of real
    /// time.
    #[arg(long, value_name = "TIME", value_parser = crate::emulator::duration, requires = "scenario")]
    timeout: Option<Duration>,
    /// Output format
    ///
    /// JSON output is one line when all parts are ready, and a second line at the end of a scenario.
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
    /// Keep all files in this folder instead of a temporary one
    ///
    /// The files are the kubeconfig, the certificates, the configuration and the log.
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
    /// Run only the Kubernetes API server, without Azure and Sluice
    ///
    /// For your own tests. A scheduler and kubelets are emulated, so pods become ready.
    #[arg(long, conflicts_with_all = ["scenario", "exit", "kubeconfig"])]
    kubernetes_only: bool,
    /// Number of nodes, from 0 to 250
    ///
    /// With 0, no scheduler and no kubelet run. Tests can then create nodes and pods themselves.
    #[arg(long, value_name = "COUNT", default_value_t = 3, value_parser = clap::value_parser!(u16).range(0..=250))]
    nodes: u16,
    /// Use the cluster of this kubeconfig instead of the local API server
    ///
    /// Sluice then manages all Services of type LoadBalancer in that cluster, so use a test cluster.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    kubeconfig: Option<PathBuf>,
    // Last, since everything after it would be under its heading.
    #[command(flatten)]
    doors: DoorArguments,
}

/// Where everything listens.
#[derive(Args, Debug)]
#[command(next_help_heading = "Listen addresses (default: any free port of 127.0.0.1)")]
struct DoorArguments {
    /// Listen address of the Kubernetes API server
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0", hide_default_value = true)]
    listen_kubernetes: SocketAddr,
    /// Listen address of the Azure emulator
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0", hide_default_value = true)]
    listen_azure: SocketAddr,
    /// Listen address of the dashboard and the controller API
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0", hide_default_value = true)]
    listen_dashboard: SocketAddr,
    /// Listen address of the health checks and metrics of the controller
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0", hide_default_value = true)]
    listen_metrics: SocketAddr,
}

const HELP: &str = "\
Examples:
  sluice playground
      Run everything on this machine until Ctrl-C, and print commands to try.
  sluice playground --scenario tour --exit
      Run a narrated scenario and exit with 0 if everything converged.
  sluice playground --scenario outage --time-factor 50
      Run a scenario 50 times as fast. The playground keeps running after it.
  sluice playground --output json
      For scripts: print the addresses of all parts in one line when they are ready.
  sluice playground --kubernetes-only --output json
      Run an API server for your own tests, and print the path of its kubeconfig.

Exit codes: 0 stopped by a signal, or converged with --exit · 1 failed or not converged · \
2 invalid arguments · 3 cannot listen · 5 Kubernetes unreachable or access denied";

/// Plays until the story is over or somebody wants it to stop; whether all converged.
pub fn run(arguments: Arguments, log: Option<String>) -> LocalBoxFuture<'static, Result<bool, Failure>> {
    Box::pin(execute(arguments, log))
}

async fn execute(arguments: Arguments, log: Option<String>) -> Result<bool, Failure> {
    if arguments.list {
        for it in SCENARIOS {
            say!("{:<15} {}", it.name, it.about);
        }
        return Ok(true);
    }
    let scenario = match &arguments.scenario {
        None => None,
        Some(name) => Some(scenarios::named(name).map_err(|hint| Failure {
            code: exit::WRONG,
            error: anyhow!("unknown scenario {name}"),
            hint: Some(hint),
        })?),
    };
    // First of all, so that a signal during the start ends it in good order.
    let mut signals = Signals::listen()?;
    let folder = Folder::make(arguments.keep.as_deref())?;
    let log_file = parts::private_file(&folder.path().join("sluice.log"))?;
    let _logs = logs::start_in_file(log.as_deref().unwrap_or(LOGGED), log_file)?;
    if arguments.kubernetes_only {
        return serve_kubernetes(&arguments, &folder, signals).await;
    }
    let narrator = |pace| match arguments.output {
        Output::Text => Narrator::aloud(pace),
        Output::Json => Narrator::silent(pace),
    };
    let playground = Playground::start(&arguments, &folder, narrator);
    let mut playground = tokio::select! {
        started = playground => started?,
        () = asked_to_end(&mut signals) => return Ok(!arguments.exit),
    };
    let converged = tokio::select! {
        ended = playground.play(&arguments, scenario) => ended,
        () = asked_to_end(&mut signals) => {
            if matches!(arguments.output, Output::Text) {
                say!("\nStopping; press Ctrl-C again to exit without waiting.");
            }
            // A story that was broken off has not converged.
            Ok(!arguments.exit)
        }
    };
    tokio::select! {
        () = playground.stop() => {}
        () = asked_to_end(&mut signals) => {}
    }
    converged
}

/// Ctrl-C, SIGTERM, and SIGHUP too: there is nothing to read again, and whoever closed the terminal is gone.
async fn asked_to_end(signals: &mut Signals) {
    while signals.next().await == Signal::ToggleDebug {}
}

/// All parts at work.
struct Playground {
    kubernetes: Option<sluice_apiserver::Running>,
    azure: sluice_emulator::Running,
    stage: Stage,
    banner: Banner,
}

impl Playground {
    async fn start(
        arguments: &Arguments,
        folder: &Folder,
        narrator: impl FnOnce(Pace) -> Narrator,
    ) -> Result<Playground, Failure> {
        let began = Instant::now();
        let factor = arguments.time_factor;
        let doors = Doors {
            azure: arguments.doors.listen_azure,
            dashboard: arguments.doors.listen_dashboard,
            metrics: arguments.doors.listen_metrics,
        };
        let (running, azure) =
            parts::start_azure(folder.path(), doors.azure, factor).await.map_err(unserved)?;
        azure.make_network().await?;
        let config = folder.path().join("azure.yaml");
        parts::write_configuration(&config, &running, doors)?;
        let kubernetes = match arguments.kubeconfig {
            Some(_) => None,
            None => Some(start_kubernetes(arguments, folder).await?),
        };
        let theirs = || (arguments.kubeconfig.clone().unwrap_or_default(), "from the kubeconfig".to_owned());
        let (kubeconfig, kubernetes_url) =
            kubernetes.as_ref().map_or_else(theirs, |it| (it.kubeconfig.clone(), it.url.clone()));
        let client = cluster_client(&kubeconfig).await?;
        user::make_namespace(&client, SHIPPED_NAMESPACE).await?;
        let pace = Pace::begin(factor);
        let controller = Controller::new(&config, &kubeconfig, factor);
        let mut stage = Stage::new(narrator(pace), pace, azure, client, controller);
        stage.patience = arguments.timeout.unwrap_or(stage.patience);
        let banner = Banner {
            kubeconfig,
            kubernetes: kubernetes_url,
            azure: Some(AzureLine {
                url: running.url(),
                ca: running.ca_path().to_owned(),
                config,
                log: folder.path().join("sluice.log"),
            }),
            places: None,
            folder: folder.path().to_owned(),
            is_kept: folder.is_kept(),
            time_factor: factor,
            started_in: began.elapsed(),
        };
        Ok(Playground { kubernetes, azure: running, stage, banner })
    }

    /// Says where everything is, plays the story if there is one, and stays unless it is to end.
    async fn play(&mut self, arguments: &Arguments, scenario: Option<&Scenario>) -> Result<bool, Failure> {
        if scenario.is_none_or(|it| it.begins_at_work) {
            self.banner.places = Some(self.stage.start_controller().await?);
        }
        self.banner.greet(arguments.output, scenario.is_none());
        if let Some(scenario) = scenario {
            let end = scenarios::play(scenario, &mut self.stage).await;
            if matches!(arguments.output, Output::Json) {
                let differences = match &end {
                    End::Converged => &[][..],
                    End::Stuck(differences) => differences,
                };
                say!(
                    "{}",
                    json!({
                        "scenario": scenario.name,
                        "converged": end == End::Converged,
                        "differences": differences,
                        "emulatedSeconds": self.stage.narrator.elapsed().as_secs(),
                    })
                );
            }
            if arguments.exit {
                return Ok(end == End::Converged);
            }
            if matches!(arguments.output, Output::Text) {
                say!("\nThe playground keeps running at the URLs above. Stop it with Ctrl-C.");
            }
        }
        Err(self.stage.controller.ended().await)
    }

    /// Ends everything in order: the controller first, since it speaks to the others.
    async fn stop(self) {
        let Playground { kubernetes, azure, mut stage, .. } = self;
        if let Err(failure) = stage.controller.stop().await {
            tracing::warn!(error = format!("{:#}", failure.error), "controller did not stop cleanly");
        }
        drop(stage);
        azure.stop().await;
        if let Some(kubernetes) = kubernetes {
            kubernetes.stop().await;
        }
    }
}

/// Only Kubernetes, until somebody wants it to stop.
async fn serve_kubernetes(
    arguments: &Arguments,
    folder: &Folder,
    mut signals: Signals,
) -> Result<bool, Failure> {
    let began = Instant::now();
    let running = start_kubernetes(arguments, folder).await?;
    let banner = Banner {
        kubeconfig: running.kubeconfig.clone(),
        kubernetes: running.url.clone(),
        azure: None,
        places: None,
        folder: folder.path().to_owned(),
        is_kept: folder.is_kept(),
        time_factor: arguments.time_factor,
        started_in: began.elapsed(),
    };
    banner.greet(arguments.output, true);
    asked_to_end(&mut signals).await;
    tokio::select! {
        () = running.stop() => {}
        () = asked_to_end(&mut signals) => {}
    }
    Ok(true)
}

async fn start_kubernetes(
    arguments: &Arguments,
    folder: &Folder,
) -> Result<sluice_apiserver::Running, Failure> {
    let options = sluice_apiserver::Options {
        listen: arguments.doors.listen_kubernetes,
        dir: folder.path().to_owned(),
        nodes: arguments.nodes,
        time_factor: arguments.time_factor,
    };
    sluice_apiserver::start(options).await.map_err(|error| {
        let code = match &error {
            sluice_apiserver::StartError::Listen { .. } => exit::LISTEN,
            sluice_apiserver::StartError::NotLoopback { .. } => exit::WRONG,
            _ => exit::FAILED,
        };
        Failure { code, error: error.into(), hint: None }
    })
}

async fn cluster_client(kubeconfig: &Path) -> Result<kube::Client, Failure> {
    parts::client(kubeconfig).await.map_err(|error| Failure {
        code: exit::KUBERNETES,
        error,
        hint: Some("check the file with kubectl --kubeconfig FILE get nodes".into()),
    })
}

fn unserved(error: sluice_emulator::StartError) -> Failure {
    let code = match &error {
        sluice_emulator::StartError::Listen { .. } => exit::LISTEN,
        sluice_emulator::StartError::NotLoopback { .. } => exit::WRONG,
        _ => exit::FAILED,
    };
    Failure { code, hint: Some(error.hint().to_owned()), error: error.into() }
}
