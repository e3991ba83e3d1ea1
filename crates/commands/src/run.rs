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
mod migration;
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

/// What can be said about the controller on the command line.
#[derive(Args, Debug)]
#[command(after_long_help = HELP)]
pub struct Arguments {
    /// Print every value of the configuration and where it came from, and end
    #[arg(long)]
    print_config: bool,
    /// How to print it
    #[arg(long, value_enum, default_value_t = Output::Text, requires = "print_config")]
    output: Output,
    /// How many seconds pass for the controller in a real one, 1 to 1000: for an emulator with the same
    /// --time-factor. Time limits of the wire and the lease stay real
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
      In a cluster: the account of the pod is used.
  sluice run --config azure.yaml --set sluice.leaderElection.enabled=false
      On a laptop, alone, with the cluster that kubectl would use.
  sluice run --config azure.yaml --print-config
      What would hold, and where each value comes from; secrets are not shown.

Signals: SIGTERM and Ctrl-C begin nothing new, await what is on the wire and release the lease; a
second one does not wait. SIGHUP reads the log level from the configuration again. SIGUSR1 logs
everything of ours until the next SIGUSR1.

Exit codes: 0 stopped as asked · 1 failed · 2 wrong arguments or configuration · 3 cannot listen ·
5 Kubernetes cannot be reached or refuses us · 6 Azure refuses our credential · 7 lease lost";

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
        tracing::warn!("configuration: {warning}");
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
                        tracing::info!("asked to end before anything was begun");
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
                tracing::info!("the log level stays: --log or RUST_LOG wins over the configuration");
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
            Err(failure) => tracing::warn!("the log level stays as it is: {:#}", failure.error),
        }
    }
}

/// A panic is a line of the log like everything else; who waits for the task decides what it means.
fn say_panic(panic: &PanicHookInfo<'_>) {
    let words = panic.payload_as_str().unwrap_or("without a word");
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    tracing::error!(place, "panic: {words}; this is a bug of Sluice");
}
