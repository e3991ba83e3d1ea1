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
use sluice_commands::{adopt, allow_deletion, cleanup, doctor, explain, logs, plan, run, status};
#[cfg(feature = "lab")]
use sluice_playground as playground;
#[cfg(feature = "lab")]
use sluice_playground::emulator;

/// Keeps Azure Service Gateway equal to what Kubernetes wants.
#[derive(Parser, Debug)]
#[command(name = "sluice", version, max_term_width = 100, after_help = EXIT_CODES)]
struct Arguments {
    /// What is logged, to the standard error: `warn`, `debug`, `sluice_emulator=trace`, …
    /// [default: warn,sluice=info; for measurements warn]
    #[arg(long, global = true, env = "RUST_LOG", value_name = "FILTER")]
    log: Option<String>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Runs the controller, in a cluster or with a kubeconfig
    ///
    /// It watches Services, EndpointSlices, Nodes and pods with an egress label, and keeps load balancers,
    /// NAT gateways, public IPs and the service gateway in Azure equal to what they want.
    Run(Box<run::Arguments>),
    #[cfg(feature = "lab")]
    /// Kubernetes, Azure and Sluice on this machine, in one process, to play with and to understand
    ///
    /// Nothing has to be set up and nothing is left behind. It says where everything is, and what to try; with
    /// --scenario it plays a story.
    Playground(Box<playground::Arguments>),
    #[cfg(feature = "lab")]
    /// Serves an Azure on this machine that official clients believe in
    ///
    /// It is the part of Azure that Sluice works with (public IPs, load balancers, NAT gateways, virtual
    /// networks and service gateways) over HTTPS, with a CA, a token endpoint and a managed identity of
    /// its own, so that official clients work against it unchanged. What is written is kept in memory,
    /// or in a file with --state.
    Emulator(Box<emulator::Arguments>),
    /// Shows what would be created, changed and deleted, and which calls that takes; writes nothing
    ///
    /// Reads the cluster and Azure once, and lets the controller's own engine work on copies of both.
    /// Needs no running controller. Exit code 0: in sync; 2: there are changes, or work that is held; anything
    /// else: cannot say (1 also for wrong arguments and configuration, which are 2 elsewhere).
    Plan(Box<plan::Arguments>),
    /// Looks at everything that Sluice needs, and says what to do where it is not so; writes nothing
    ///
    /// Configuration, Kubernetes and our rights there, other controllers, Azure and our rights there, gateway
    /// and subnet, quotas. Exit code 0: no problems; 1: there are some.
    Doctor(Box<doctor::Arguments>),
    /// Claims load balancers, NAT gateways and public IPs that somebody else made for our services
    ///
    /// Shows what would be tagged, and asks. What belongs to another cluster is left alone.
    Adopt(Box<adopt::Arguments>),
    /// Show the deletions that the mass-deletion guard holds, and allow exactly those
    ///
    /// Asks the controller that leads, shows what will be deleted, asks you, and writes the consent on the
    /// controller's Lease. Deletions that are held later are not allowed by it.
    AllowDeletion(Box<allow_deletion::Arguments>),
    /// Removes everything of this cluster from Azure, and our finalizers, before Sluice is uninstalled
    ///
    /// Scale the controller to zero first. Shows what would go, and asks.
    Cleanup(Box<cleanup::Arguments>),
    /// Shows every service and egress: its state, its addresses, and what is wrong with it
    ///
    /// Asks the controller that leads; it is found by its Lease and reached through the API server.
    Status(Box<status::Arguments>),
    /// Says why a service or egress is where it is and what to do, or what an error code means
    Explain(Box<explain::Arguments>),
    #[cfg(feature = "lab")]
    /// Measures Sluice against an emulated Azure
    Bench(bench::Arguments),
    /// Says which version this is
    Version(version::Arguments),
    /// Prints what a shell needs to complete our commands
    ///
    /// For bash: `source <(sluice completions bash)`. For others see how they load completions.
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// Threads of the runtime, however small the machine.
const THREADS_MIN: usize = 4;

/// What the exit codes mean, for `--help`.
const EXIT_CODES: &str = "Exit codes: 0 done or stopped as asked · 1 failed · 2 wrong arguments or \
                          configuration · 3 cannot listen · 4 unusable state file · 5 no Kubernetes · \
                          6 no credential for Azure · 7 lease lost";

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
