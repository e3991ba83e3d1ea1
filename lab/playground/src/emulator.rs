//! `sluice emulator`: an Azure on this machine.

pub(crate) mod for_sluice;
mod greeting;
mod values;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use futures::future::LocalBoxFuture;
use sluice_cloud::{Buckets, Config, Latencies, Quota, Span};
use sluice_commands::failure::Failure;
use sluice_commands::say;
use sluice_emulator::{Credentials, Emulator, Options, Prepared, StartError};

use greeting::Greeting;
pub(crate) use values::duration;
use values::{buckets, client, span};

/// The group that is there from the start unless another is named.
const DEFAULT_GROUP: &str = "00000000-0000-0000-0000-000000000000/sluice";

/// Run the emulator.
#[derive(Args, Debug)]
#[command(after_long_help = HELP)]
pub struct Arguments {
    /// Listen address for HTTPS (port 0: any free port)
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8443", env = "SLUICE_EMULATOR_LISTEN")]
    listen: SocketAddr,
    /// Additional listen address for plain HTTP, on loopback only
    ///
    /// For managed identities and tests. Azure clients need the HTTPS address: they do not send tokens
    /// without TLS.
    #[arg(long, value_name = "ADDRESS")]
    listen_http: Option<SocketAddr>,
    /// Allow --listen on an address that other machines can reach
    ///
    /// Every client that reaches this address has full access.
    #[arg(long)]
    insecure_listen: bool,
    /// Add a host name or IP to the certificate (repeatable)
    ///
    /// The first one is used in the URLs that are printed.
    #[arg(long = "name", value_name = "HOST")]
    names: Vec<String>,
    /// Run emulated time FACTOR times as fast, from 0.1 to 10000
    ///
    /// Applies to latencies and rate limits. Retry-After and token lifetimes stay in real time.
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    time_factor: f64,
    /// Keep the state in this file, so that it survives a restart
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Keep the CA and the token signing key in this folder
    ///
    /// With the same folder, clients still trust the emulator after a restart. Default: the folder of the
    /// state file, or a temporary folder without --state.
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
    /// Token lifetime, in real time
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = duration)]
    token_lifetime: Duration,
    /// Accept only this client ID and secret (repeatable) [default: any]
    #[arg(long = "client", value_name = "ID=SECRET", value_parser = client)]
    clients: Vec<(String, String)>,
    /// Create this resource group at start-up (repeatable), or `none`
    #[arg(long, value_name = "SUBSCRIPTION/GROUP", default_value = DEFAULT_GROUP)]
    resource_group: Vec<String>,
    /// Print the environment variables for clients as `export` lines
    #[arg(long)]
    print_env: bool,
    /// Output format
    ///
    /// JSON output is one line when the emulator is ready.
    #[arg(long, value_enum, default_value_t = Output::Text, conflicts_with = "print_env")]
    output: Output,
    /// Write the JSON line to this file when the emulator is ready
    ///
    /// The file is deleted when the emulator stops.
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
    /// Create a virtual network and write a Sluice configuration to this file
    ///
    /// The network has a subnet. Pass the file to `sluice run`, `plan` or `doctor` with --config. Start `sluice
    /// run` with the same --time-factor as the emulator.
    #[arg(long, value_name = "FILE")]
    sluice_config: Option<PathBuf>,
    // Last, since everything after it would be under its heading.
    #[command(flatten)]
    cloud: Cloud,
}

/// The behavior of the emulated cloud.
#[derive(Args, Debug)]
#[command(next_help_heading = "Cloud behavior")]
struct Cloud {
    /// Seed for all latencies and IDs
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Disable throttling
    #[arg(long, conflicts_with = "rate_limits")]
    no_throttling: bool,
    /// Set the rate limits, for example `writes=200/10,network=none`
    ///
    /// `reads`, `writes` and `deletes` are token buckets (BURST/PER_SECOND). `network` is the limit of
    /// Microsoft.Network (WRITES/READS/WINDOW), and `network=none` disables it. Default:
    /// `reads=250/25,writes=200/10,deletes=200/10,network=1000/10000/5m`. Limits that you omit keep
    /// their default.
    #[arg(long, value_name = "LIMITS", value_parser = buckets)]
    rate_limits: Option<Buckets>,
    /// Complete every operation at once (overrides the latency options)
    #[arg(long)]
    instant: bool,
    /// Latency of public IP writes
    #[arg(long, value_name = "FROM-TO", value_parser = span, default_value = "2s-3s")]
    latency_public_ip: Span,
    /// Latency of load balancer writes
    #[arg(long, value_name = "FROM-TO", value_parser = span, default_value = "5s-8s")]
    latency_load_balancer: Span,
    /// Latency of NAT gateway writes
    #[arg(long, value_name = "FROM-TO", value_parser = span, default_value = "5s-8s")]
    latency_nat_gateway: Span,
    /// Latency of writes to a service gateway, its services or addresses
    #[arg(long, value_name = "FROM-TO", value_parser = span, default_value = "1s-2s")]
    latency_gateway: Span,
    /// Latency of virtual network and subnet writes
    #[arg(long, value_name = "FROM-TO", value_parser = span, default_value = "1s-2s")]
    latency_network: Span,
    /// Latency of all deletions
    #[arg(long, value_name = "FROM-TO", value_parser = span, default_value = "1s-3s")]
    latency_delete: Span,
    /// Number of items per page of a list
    #[arg(long, value_name = "ITEMS", default_value_t = 100, value_parser = values::at_least_one)]
    page_size: usize,
    /// Quota of public IPs
    #[arg(long, value_name = "COUNT", default_value_t = 1_000)]
    quota_public_ips: usize,
    /// Quota of load balancers
    #[arg(long, value_name = "COUNT", default_value_t = 1_000)]
    quota_load_balancers: usize,
    /// Quota of NAT gateways
    #[arg(long, value_name = "COUNT", default_value_t = 1_000)]
    quota_nat_gateways: usize,
    /// Quota of service gateways
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    quota_gateways: usize,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Output {
    Text,
    Json,
}

const HELP: &str = "\
Examples:
  sluice emulator
      Serve on 127.0.0.1:8443 until Ctrl-C, and print how to use it.
  sluice emulator --listen 127.0.0.1:0 --time-factor 100
      Serve on any free port, 100 times as fast.
  sluice emulator --time-factor 20 --sluice-config azure.yaml
      Prepare everything for `sluice run --config azure.yaml --time-factor 20`.
  sluice emulator --state azure.journal
      Resume from the state in this file, including operations in progress.
  sluice emulator --print-env > azure.env &
      For shells: `. ./azure.env` makes clients use the emulator.
  sluice emulator --listen 127.0.0.1:0 --output json
      For scripts: print the URLs in one line when the emulator is ready.

Control API: `GET /_emulator/` lists its paths. They inject faults and show the request log and the state.

Signals: SIGTERM and Ctrl-C finish the requests in flight. A second signal exits without waiting.

Exit codes: 0 stopped by a signal · 1 failed · 2 invalid arguments · 3 cannot listen · 4 unusable state file";

/// Serves until somebody wants it to stop.
pub fn run(arguments: Arguments) -> LocalBoxFuture<'static, Result<(), Failure>> {
    Box::pin(execute(arguments))
}

async fn execute(arguments: Arguments) -> Result<(), Failure> {
    let begun = Instant::now();
    let options = arguments.options()?;
    let prepared = options.prepare.first().cloned();
    let time_factor = options.time_factor;
    if options.insecure_listen && !options.listen.ip().is_loopback() {
        tracing::warn!(listen = %options.listen, "every client that reaches this address has full access");
    }
    // Listened for from the beginning, so that a signal during a long replay is not lost.
    let signals = Signals::new()?;
    let running = Emulator::start(options).await.map_err(failed)?;
    let greeting = Greeting {
        running: &running,
        client: arguments.clients.first(),
        prepared: prepared.as_ref(),
        state: arguments.state.as_deref(),
        time_factor,
        started_in: begun.elapsed(),
    };
    if let Some(path) = &arguments.sluice_config {
        let Some(group) = prepared.as_ref() else {
            return Err(Failure {
                code: 2,
                error: anyhow::anyhow!("--sluice-config requires a resource group for the network"),
                hint: Some(
                    "remove --resource-group none, or name a group with --resource-group SUBSCRIPTION/GROUP"
                        .into(),
                ),
            });
        };
        for_sluice::prepare(path, &running, group, &greeting).await?;
    }
    if let Some(path) = &arguments.ready_file {
        greeting.write_ready_file(path).with_context(|| format!("cannot write {}", path.display()))?;
    }
    if arguments.print_env {
        say!("{}", greeting.environment());
    } else if arguments.output == Output::Json {
        say!("{}", greeting.json());
    } else {
        say!("{}", greeting.text());
    }
    let mut signals = signals;
    signals.next().await;
    tracing::info!("stopping after the requests in flight; a second signal does not wait for them");
    tokio::select! {
        () = running.stop() => {}
        () = signals.next() => {}
    }
    if let Some(path) = &arguments.ready_file {
        // Whoever looks at it next should not believe that we still serve.
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}

fn failed(error: StartError) -> Failure {
    let code = match &error {
        StartError::Listen { .. } => 3,
        StartError::State(_) => 4,
        StartError::NotLoopback { .. } | StartError::TimeFactor(_) => 2,
        _ => 1,
    };
    Failure { code, hint: Some(error.hint().to_owned()), error: error.into() }
}

impl Arguments {
    fn options(&self) -> Result<Options, Failure> {
        let wrong = |problem: String, hint: &str| Failure {
            code: 2,
            error: anyhow::anyhow!(problem),
            hint: Some(hint.to_owned()),
        };
        let mut prepare = Vec::new();
        for text in self.resource_group.iter().filter(|text| *text != "none") {
            let hint =
                "--resource-group 00000000-0000-0000-0000-000000000000/my-group, or --resource-group none";
            prepare.push(text.parse::<Prepared>().map_err(|problem| wrong(problem, hint))?);
        }
        let credentials = if self.clients.is_empty() {
            Credentials::Any
        } else {
            Credentials::Only(self.clients.iter().cloned().collect())
        };
        Ok(Options {
            listen: self.listen,
            listen_http: self.listen_http,
            insecure_listen: self.insecure_listen,
            names: self.names.clone(),
            folder: self.dir.clone(),
            state_file: self.state.clone(),
            time_factor: self.time_factor,
            token_lifetime: self.token_lifetime,
            credentials,
            cloud: self.cloud.config(),
            prepare,
            ..Options::default()
        })
    }
}

impl Cloud {
    fn config(&self) -> Config {
        let latency = Latencies {
            public_ip: self.latency_public_ip,
            load_balancer: self.latency_load_balancer,
            nat_gateway: self.latency_nat_gateway,
            gateway: self.latency_gateway,
            network: self.latency_network,
            delete: self.latency_delete,
        };
        Config {
            page_size: self.page_size,
            latency: if self.instant { Latencies::INSTANT } else { latency },
            buckets: (!self.no_throttling).then(|| self.rate_limits.unwrap_or_default()),
            quota: Quota {
                public_ips: self.quota_public_ips,
                load_balancers: self.quota_load_balancers,
                nat_gateways: self.quota_nat_gateways,
                gateways: self.quota_gateways,
                ..Quota::default()
            },
            seed: self.seed,
            ..Config::default()
        }
    }
}

/// Ctrl-C, and SIGTERM where there is one.
struct Signals {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
}

impl Signals {
    #[cfg(unix)]
    fn new() -> Result<Signals, Failure> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    #[cfg(unix)]
    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    #[cfg(not(unix))]
    fn new() -> Result<Signals, Failure> {
        Ok(Signals {})
    }

    #[cfg(not(unix))]
    async fn next(&mut self) {
        // Without a handler nobody could ever stop us, so an error counts as a signal.
        let _ = tokio::signal::ctrl_c().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_cloud() {
        #[derive(clap::Parser)]
        struct Alone {
            #[command(flatten)]
            arguments: Arguments,
        }
        let Alone { arguments } = clap::Parser::parse_from(["emulator"]);
        assert_eq!(arguments.cloud.config(), Config::default());
        assert_eq!(arguments.options().unwrap().prepare[0].group, "sluice");
        let Alone { arguments } = clap::Parser::parse_from([
            "emulator",
            "--resource-group",
            "none",
            "--no-throttling",
            "--instant",
        ]);
        assert_eq!(arguments.cloud.config().buckets, None);
        assert_eq!(arguments.cloud.config().latency, Latencies::INSTANT);
        assert!(arguments.options().unwrap().prepare.is_empty());
    }
}
