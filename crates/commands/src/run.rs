//! `sluice run`: the controller.
//!
//! ```text
//! configuration ─▶ log ─▶ listeners ─▶ Kubernetes ─▶ permissions ─▶ rivals ─▶ cluster id ─▶ Azure ─▶ work
//! ```
//!
//! What can be known to be wrong is said at once, in one message, with an exit code: a broken
//! configuration, no API server, a missing permission, a credential that is refused. What may pass by
//! itself is not: an Azure that is away, a gateway or a subnet that is missing are shown in the log, in
//! events and conditions and by `/readyz?verbose`, and looked at again.

mod listeners;
pub mod prepare;
mod renewals;
pub mod signals;
pub mod supervise;

use std::panic::PanicHookInfo;

use clap::Args;
use futures::future::LocalBoxFuture;

use crate::config::{ConfigArguments, LogFormat, print};
use crate::failure::Failure;
use crate::logs::{self, Logs};
use crate::output::Output;
use crate::reach;
use crate::say;
use signals::{Signal, Signals};

/// Run the controller.
#[derive(Args, Debug)]
#[command(after_long_help = HELP)]
pub struct Arguments {
    /// Print all configuration values with their origin, and exit
    #[arg(long)]
    print_config: bool,
    /// Output format of --print-config
    #[arg(long, value_enum, default_value_t = Output::Text, requires = "print_config")]
    output: Output,
    /// Run the controller's clock FACTOR times as fast, from 1 to 1000
    ///
    /// Set this to the same value as the emulator's --time-factor. Network timeouts and the Lease stay in real time.
    #[cfg(feature = "lab")]
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = crate::pace::factor)]
    time_factor: f64,
    // Last, since everything after it would be under its heading.
    #[command(flatten)]
    config: ConfigArguments,
}

const HELP: &str = "\
Examples:
  sluice run --config /etc/kubernetes/azure.json
      Run in a cluster with the service account of the pod.
  sluice run --config azure.yaml --set sluice.leaderElection.enabled=false
      Run a single replica outside the cluster, with kubectl's current context.
  sluice run --config azure.yaml --print-config
      Print the effective values and the origin of each. Secrets are redacted.

Signals: SIGTERM and Ctrl-C shut down: no new work is started, requests in flight finish, and the Lease is \
released. A second signal exits without waiting. SIGHUP reloads the log level from the configuration, unless \
--log or RUST_LOG is set. SIGUSR1 turns debug logging on or off.

Exit codes: 0 stopped by a signal · 1 failed · 2 invalid arguments or configuration · 3 cannot listen · \
5 Kubernetes unreachable or access denied · 6 Azure credential rejected · 7 Lease lost";

/// Runs until somebody wants it to stop, or it cannot go on.
pub fn run(arguments: Arguments, log: Option<String>) -> LocalBoxFuture<'static, Result<(), Failure>> {
    Box::pin(execute(arguments, log))
}

async fn execute(arguments: Arguments, log: Option<String>) -> Result<(), Failure> {
    // First of all, so that a signal during the start ends it in good order.
    let mut signals = Signals::listen()?;
    let loaded = reach::load(&arguments.config)?;
    if arguments.print_config {
        match arguments.output {
            Output::Text => say!("{}", print::text(&loaded)),
            Output::Json => say!("{:#}", print::json(&loaded)),
        }
        return Ok(());
    }
    let format = match loaded.config.log.format {
        LogFormat::Text => logs::Format::Text,
        LogFormat::Json => logs::Format::Json,
    };
    let logs = logs::start(log.as_deref().unwrap_or(&loaded.config.log.level), format)?;
    std::panic::set_hook(Box::new(say_panic));
    for warning in &loaded.warnings {
        tracing::warn!(%warning, "configuration warning");
    }
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        config = loaded.path.as_ref().map(|path| path.display().to_string()),
        keys_set = loaded.values.iter().filter(|value| value.text.is_some()).count(),
        credential = loaded.config.identity.name(),
        "configuration read"
    );
    let levels = Levels { logs, arguments: arguments.config.clone(), is_fixed: log.is_some() };
    let prepared = {
        let preparing = prepare::prepare(&arguments.config, &loaded.config);
        let mut preparing = std::pin::pin!(preparing);
        loop {
            tokio::select! {
                prepared = &mut preparing => break prepared?,
                signal = signals.next() => match signal {
                    Signal::End => {
                        tracing::info!("shutdown requested during start-up");
                        return Ok(());
                    }
                    other => levels.heed(other),
                }
            }
        }
    };
    #[cfg(feature = "lab")]
    let prepared = prepared.with_time_factor(arguments.time_factor);
    supervise::work(prepared, &mut signals, &|signal| levels.heed(signal)).await
}

/// The log level, as far as it can change while we run.
struct Levels {
    logs: Logs,
    arguments: ConfigArguments,
    /// `--log` or `RUST_LOG` was given, and wins.
    is_fixed: bool,
}

impl Levels {
    /// Does what a signal asks for, if it is about the log.
    fn heed(&self, signal: Signal) {
        let done = match signal {
            Signal::End => return,
            Signal::Reload if self.is_fixed => {
                tracing::info!("log level not reloaded: --log or RUST_LOG takes precedence");
                return;
            }
            Signal::Reload => self.arguments.load().map_err(Failure::from).and_then(|loaded| {
                let filter = loaded.config.log.level;
                self.logs.set(&filter)?;
                Ok(filter)
            }),
            Signal::ToggleDebug => self.logs.toggle_debug(),
        };
        match done {
            Ok(filter) => tracing::info!(%filter, "log level changed"),
            Err(failure) => tracing::warn!(error = format!("{:#}", failure.error), "log level not changed"),
        }
    }
}

/// A panic is a line of the log like everything else; who waits for the task decides what it means.
fn say_panic(panic: &PanicHookInfo<'_>) {
    let message = panic.payload_as_str().unwrap_or("no message");
    let location = panic.location().map(ToString::to_string).unwrap_or_default();
    tracing::error!(location, panic = message, "panicked; please report this bug in Sluice");
}
