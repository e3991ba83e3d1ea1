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

/// What can be said about the emulator on the command line.
#[derive(Args, Debug)]
#[command(after_long_help = HELP)]
pub struct Arguments {
    /// Where to serve HTTPS; port 0 is any free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8443", env = "SLUICE_EMULATOR_LISTEN")]
    listen: SocketAddr,
    /// Where to serve plain HTTP besides, on loopback only. Azure's clients refuse to send tokens
    /// without TLS; this is for managed identities and for tests
    #[arg(long, value_name = "ADDRESS")]
    listen_http: Option<SocketAddr>,
    /// Allow --listen on an address that other machines reach. Whoever reaches it can do everything
    #[arg(long)]
    insecure_listen: bool,
    /// A further name or address that clients call it by, for its certificate; may be repeated. The
    /// first one is shown
    #[arg(long = "name", value_name = "HOST")]
    names: Vec<String>,
    /// How many emulated seconds pass in a real one, 0.1 to 10000. Latencies, token buckets and
    /// windows go by it; Retry-After and token lifetimes are real seconds
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    time_factor: f64,
    /// Keep everything that is written in this file, so that a restart loses nothing
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Keep the CA and the key of the tokens in this folder, so that clients trust the next start
    /// too [default: beside the state file, or else a temporary folder]
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
    /// How long a token is good for, in real time
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = duration)]
    token_lifetime: Duration,
    /// A client id and its secret; may be repeated. Without any, every client id and secret do
    #[arg(long = "client", value_name = "ID=SECRET", value_parser = client)]
    clients: Vec<(String, String)>,
    /// A resource group that is there from the start; may be repeated; `none` for an empty cloud
    #[arg(long, value_name = "SUBSCRIPTION/GROUP", default_value = DEFAULT_GROUP)]
    prepare: Vec<String>,
    /// Print the environment variables that clients need, as `export` lines, instead of a greeting
    #[arg(long)]
    print_env: bool,
    /// How to greet: words for people, or one line of JSON for scripts
    #[arg(long, value_enum, default_value_t = Output::Text, conflicts_with = "print_env")]
    output: Output,
    /// Write that line of JSON to this file once the emulator serves
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
    /// Make a virtual network with a subnet as well, and write a configuration to this file with which
    /// `sluice run`, `plan` and `doctor` find everything. Give them the same --time-factor
    #[arg(long, value_name = "FILE")]
    sluice_config: Option<PathBuf>,
    // Last, since everything after it would be under its heading.
    #[command(flatten)]
    cloud: Cloud,
}

/// How the cloud behaves.
#[derive(Args, Debug)]
#[command(next_help_heading = "How the cloud behaves")]
struct Cloud {
    /// Decides every latency and id
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Let everybody make as many calls as they like
    #[arg(long, conflicts_with = "buckets")]
    no_throttling: bool,
    /// The token buckets (burst and calls a second) and the limit of Microsoft.Network (writes and
    /// reads in a window): `reads=250/25,writes=200/10,deletes=200/10,network=1000/10000/5m`. What is
    /// not named stays as it is; `network=none` lifts that one
    #[arg(long, value_parser = buckets)]
    buckets: Option<Buckets>,
    /// Every operation is over at once
    #[arg(long)]
    instant: bool,
    /// How long writing a public IP takes
    #[arg(long, value_name = "FROM-TO", value_parser = span, default_value = "2s-3s")]
    latency_public_ip: Span,
    /// How long writing a load balancer takes
    #[arg(long, value_name = "FROM-TO", value_parser = span, default_value = "5s-8s")]
    latency_load_balancer: Span,
    /// How long writing a NAT gateway takes
    #[arg(long, value_name = "FROM-TO", value_parser = span, default_value = "5s-8s")]
    latency_nat_gateway: Span,
    /// How long writing a service gateway, its services or its addresses takes
    #[arg(long, value_name = "FROM-TO", value_parser = span, default_value = "1s-2s")]
    latency_gateway: Span,
    /// How long writing a virtual network or subnet takes
    #[arg(long, value_name = "FROM-TO", value_parser = span, default_value = "1s-2s")]
    latency_network: Span,
    /// How long deleting anything takes
    #[arg(long, value_name = "FROM-TO", value_parser = span, default_value = "1s-3s")]
    latency_delete: Span,
    /// How many items a page of a list has
    #[arg(long, value_name = "ITEMS", default_value_t = 100, value_parser = values::at_least_one)]
    page_size: usize,
    /// How many public IPs there may be
    #[arg(long, value_name = "COUNT", default_value_t = 1_000)]
    quota_public_ips: usize,
    /// How many load balancers there may be
    #[arg(long, value_name = "COUNT", default_value_t = 1_000)]
    quota_load_balancers: usize,
    /// How many NAT gateways there may be
    #[arg(long, value_name = "COUNT", default_value_t = 1_000)]
    quota_nat_gateways: usize,
    /// How many service gateways there may be
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
      Serve on 127.0.0.1:8443 until Ctrl-C, and say how to use it.
  sluice emulator --listen 127.0.0.1:0 --time-factor 100
      On any free port, a hundred times as fast.
  sluice emulator --time-factor 20 --sluice-config azure.yaml
      For `sluice run --config azure.yaml --time-factor 20`, with a network and a subnet for it.
  sluice emulator --state azure.journal
      Go on where the last start with this file stopped, running operations included.
  sluice emulator --print-env > azure.env &
      For a shell: `. ./azure.env`, and clients in it find the emulator.
  sluice emulator --listen 127.0.0.1:0 --output json
      For scripts: the first line says where it is; it is printed once the emulator serves.

Faults, the request log and the state are under /_emulator/; ask there for a list.
SIGTERM and Ctrl-C finish the answers in flight; a second one does not wait for them.

Exit codes: 0 stopped as asked · 1 failed · 2 wrong arguments · 3 cannot listen · 4 unusable state file";

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
        tracing::warn!(listen = %options.listen, "everybody who reaches this address can do everything");
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
                error: anyhow::anyhow!("--sluice-config needs a resource group to put the network into"),
                hint: Some("leave --prepare none out, or name a group with --prepare".into()),
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
    tracing::info!("finishing the answers in flight; a second signal does not wait for them");
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
        for text in self.prepare.iter().filter(|text| *text != "none") {
            let hint = "--prepare 00000000-0000-0000-0000-000000000000/my-group, or --prepare none";
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
            buckets: (!self.no_throttling).then(|| self.buckets.unwrap_or_default()),
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
        let Alone { arguments } =
            clap::Parser::parse_from(["emulator", "--prepare", "none", "--no-throttling", "--instant"]);
        assert_eq!(arguments.cloud.config().buckets, None);
        assert_eq!(arguments.cloud.config().latency, Latencies::INSTANT);
        assert!(arguments.options().unwrap().prepare.is_empty());
    }
}
