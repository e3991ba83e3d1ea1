//! `sluice`: everything a person starts.
//!
//! The commands of the product are in `sluice-commands`; playground, emulator and bench are behind the feature
//! `lab`, which the production build does not have. What can go wrong ends here, with a hint and an exit code.
#![allow(clippy::print_stderr, reason = "the program speaks to a terminal")]

#[cfg(any(not(feature = "lab"), test))]
mod no_lab;
#[cfg(all(test, feature = "lab"))]
mod reference;
mod version;

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
#[cfg(feature = "lab")]
use sluice_bench as bench;
use sluice_commands::failure::{Failure, exit, exit_code, is_question};
use sluice_commands::plan::Verdict;
use sluice_commands::{adopt, allow_deletion, cleanup, doctor, explain, logs, migrate, plan, run, status};
#[cfg(feature = "lab")]
use sluice_playground as playground;
#[cfg(feature = "lab")]
use sluice_playground::emulator;

/// Program Azure Service Gateway from Kubernetes Services and pods
#[derive(Parser, Debug)]
#[command(name = "sluice", version, max_term_width = 100, after_help = HELP)]
struct Arguments {
    /// Set the log filter, for example `debug` or `warn,sluice=debug`
    ///
    /// Logs go to standard error. The playground logs to the file sluice.log in its folder. Default: the key
    /// `sluice.log.level` for `run`, `warn,sluice=info` for the playground and the emulator, `warn` for all
    /// other commands.
    #[arg(long, global = true, env = "RUST_LOG", value_name = "FILTER")]
    log: Option<String>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Run the controller in a cluster or with a kubeconfig
    ///
    /// Watches Services, EndpointSlices, nodes and pods with an egress label. Keeps load balancers, NAT
    /// gateways, public IPs and the service gateway in Azure in sync with them.
    Run(Box<run::Arguments>),
    #[cfg(feature = "lab")]
    /// Run Sluice with a local Kubernetes API server and Azure emulator
    ///
    /// Runs everything in one process and needs no setup. Prints the listen addresses and commands to try.
    /// With --scenario, runs a narrated scenario. Files are deleted at the end unless --keep is set.
    Playground(Box<playground::Arguments>),
    #[cfg(feature = "lab")]
    /// Run a local Azure emulator for the official SDKs
    ///
    /// Emulates the part of Azure that Sluice uses: public IPs, load balancers, NAT gateways, virtual
    /// networks and service gateways. Serves HTTPS with its own CA, token endpoint and managed identity, so
    /// that official clients work unchanged. Keeps the state in memory, or in a file with --state.
    Emulator(Box<emulator::Arguments>),
    /// Show the changes and Azure calls that `run` would make (read-only)
    ///
    /// Reads Kubernetes and Azure once and simulates the controller on this snapshot. Works without a running
    /// controller.
    Plan(Box<plan::Arguments>),
    /// Check configuration, permissions, gateway and quotas (read-only)
    ///
    /// Checks the configuration, access to Kubernetes and Azure, conflicts with other controllers, the gateway
    /// and its subnet, and the quotas. Names a fix for each problem.
    Doctor(Box<doctor::Arguments>),
    /// Tag existing Azure resources as managed by this cluster
    ///
    /// Tags the service gateway, and the load balancers, NAT gateways and public IPs that are registered with
    /// it for Services and egresses of this cluster. Their names must be those that Sluice uses. Shows the
    /// plan and asks for confirmation. Resources with the tag of another cluster are left unchanged.
    Adopt(Box<adopt::Arguments>),
    /// Allow the deletions that the mass-deletion guard currently holds
    ///
    /// Lists the deletions that the leader holds, asks for confirmation, and records the permission in the
    /// controller's Lease. Applies only to the listed deletions.
    AllowDeletion(Box<allow_deletion::Arguments>),
    /// Delete this cluster's Azure resources and the Sluice finalizers
    ///
    /// Before you uninstall Sluice, scale the controller to zero and run this command. Shows the plan and asks
    /// for confirmation. Deletes the service gateway only if Sluice created it and nothing else uses it. If a
    /// Service now has another load balancer class, its resources are kept and only their tags are removed.
    Cleanup(Box<cleanup::Arguments>),
    /// Migrate from the cloud controller manager
    Migrate(Box<migrate::Arguments>),
    /// Show state, addresses and problems of all Services and egresses
    ///
    /// An egress is a NAT gateway shared by the pods with the same egress label. Reads the state from the leader.
    /// The command finds the leader by its Lease and connects to it through the Kubernetes API server.
    Status(Box<status::Arguments>),
    /// Explain the state of a Service or egress, or an error code
    Explain(Box<explain::Arguments>),
    #[cfg(feature = "lab")]
    /// Measure Sluice against the Azure emulator
    Bench(bench::Arguments),
    /// Print the version
    Version(version::Arguments),
    /// Generate shell completions
    ///
    /// Prints a script to standard output. See the documentation of your shell for how to load it.
    #[command(after_long_help = "Example: source <(sluice completions bash)")]
    Completions {
        /// Shell that loads the completions
        shell: clap_complete::Shell,
    },
}

// No build of the product has them, whatever features cargo was asked for.
const _: () = assert!(!sluice_model::seeded::ENABLED, "build sluice without the feature seeded-bugs");

/// Threads of the runtime, however small the machine.
const THREADS_MIN: usize = 4;

/// Shown by `--help` after the options.
const HELP: &str = "\
Example: sluice doctor --config azure.yaml

Exit codes: 0 success, or stopped by a signal · 1 failed · 2 invalid arguments or configuration · \
3 cannot listen · 4 unusable state file · 5 Kubernetes unreachable or access denied · \
6 no Azure access token · 7 Lease lost. `plan`, `doctor`, `status`, `explain` and `allow-deletion` \
use some codes differently: see their help.";

fn main() -> ExitCode {
    // Two providers in one program would make rustls panic at the first connection.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let arguments = arguments();
    let answers = matches!(arguments.command, Command::Plan(_) | Command::Status(_));
    execute(arguments).unwrap_or_else(|failure| {
        eprintln!("error: {:#}", failure.error);
        if let Some(hint) = failure.hint {
            eprintln!("hint: {hint}");
        }
        if let Some(start) = explain::Start::of_exit(failure.code) {
            eprintln!("more: sluice explain {}", start.code());
        }
        ExitCode::from(exit_code(failure.code, answers))
    })
}

/// Reads the command line, under the name that we were called by: kubectl finds us as a plugin.
fn arguments() -> Arguments {
    let called = std::env::args_os().next().map(std::path::PathBuf::from);
    let name = called.as_deref().and_then(std::path::Path::file_stem).and_then(std::ffi::OsStr::to_str);
    let command = match name {
        Some("kubectl-sluice") => Arguments::command().bin_name("kubectl sluice"),
        _ => Arguments::command(),
    };
    let matches = command.try_get_matches().unwrap_or_else(|error| refuse(error));
    Arguments::from_arg_matches(&matches).unwrap_or_else(|error| refuse(error))
}

/// Says what is wrong with the command line, or what was asked for with `--help`, and ends.
fn refuse(error: clap::Error) -> ! {
    #[cfg(not(feature = "lab"))]
    let error = no_lab::explained(error);
    // Whoever has stopped reading misses nothing.
    let _ = error.print();
    let code = u8::try_from(error.exit_code()).unwrap_or(exit::WRONG);
    std::process::exit(exit_code(code, is_question(std::env::args())).into())
}

fn execute(Arguments { log, command }: Arguments) -> Result<ExitCode, Failure> {
    // The loop may keep one thread busy for a while, and the lease must be renewed meanwhile.
    let threads = std::thread::available_parallelism().map_or(1, usize::from).max(THREADS_MIN);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()?;
    if let Command::Run(arguments) = command {
        let ended = runtime.block_on(run::run(*arguments, log));
        // A part that is stuck must not keep the process.
        runtime.shutdown_background();
        return ended.map(|()| ExitCode::SUCCESS);
    }
    #[cfg(feature = "lab")]
    if let Command::Playground(arguments) = command {
        let ended = runtime.block_on(playground::run(*arguments, log));
        runtime.shutdown_background();
        let code = |converged| if converged { ExitCode::SUCCESS } else { ExitCode::from(exit::FAILED) };
        return ended.map(code);
    }
    let usual = match command {
        #[cfg(feature = "lab")]
        Command::Emulator(_) => "warn,sluice=info",
        _ => "warn",
    };
    let _logs = logs::start(log.as_deref().unwrap_or(usual), logs::Format::Text)?;
    match command {
        #[cfg(feature = "lab")]
        Command::Emulator(arguments) => runtime.block_on(emulator::run(*arguments))?,
        #[cfg(feature = "lab")]
        Command::Bench(arguments) => runtime.block_on(bench::run(arguments))?,
        Command::Plan(arguments) => match runtime.block_on(plan::run(*arguments))? {
            Verdict::InSync => {}
            Verdict::Changes | Verdict::Held => return Ok(ExitCode::from(exit::ANSWER)),
        },
        Command::Run(_) => unreachable!("it has a log of its own"),
        #[cfg(feature = "lab")]
        Command::Playground(_) => unreachable!("it has a log of its own"),
        Command::Doctor(arguments) => {
            if !runtime.block_on(doctor::run(*arguments))? {
                return Ok(ExitCode::from(exit::FAILED));
            }
        }
        Command::Adopt(arguments) => runtime.block_on(adopt::run(*arguments))?,
        Command::AllowDeletion(arguments) => runtime.block_on(allow_deletion::run(*arguments))?,
        Command::Cleanup(arguments) => runtime.block_on(cleanup::run(*arguments))?,
        Command::Migrate(arguments) => runtime.block_on(migrate::run(*arguments))?,
        Command::Status(arguments) => match runtime.block_on(status::run(*arguments))? {
            status::Verdict::Fine => {}
            status::Verdict::Trouble => return Ok(ExitCode::from(exit::ANSWER)),
        },
        Command::Explain(arguments) => runtime.block_on(explain::run(*arguments))?,
        Command::Version(arguments) => version::run(&arguments),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Arguments::command(), "sluice", &mut std::io::stdout());
        }
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_arguments_do_not_contradict_each_other() {
        super::Arguments::command().debug_assert();
    }
}
