//! Checks that start programs, beside the stories: the commands of the documentation, one kubectl session on two
//! API servers, the playground's stories, a control plane.
//!
//! Each is a subcommand (`sluice-e2e tour --sluice PATH …`), called by a stage of `cargo xtask test`. None cares
//! how its programs were built. Every check has a temporary folder of its own and takes no fixed port, so all of
//! them can run at the same time.

mod beside;
mod emulator_page;
mod pages;
mod playground;
mod session;
mod shell;
mod spelling;
mod tour;
mod trial;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Args, CommandFactory as _, Parser};

/// The repository that this program was built from.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// What `--help` of the stories says of the checks.
pub(crate) const HELP: &str = "Checks beside the stories: tour, book, first-minute, emulator-page, kubectl-session, \
    playground, testenv-trial, testenv-up; `sluice-e2e CHECK --help` shows their arguments";

/// A check, and the programs that it is given.
#[derive(Parser, Debug)]
#[command(name = "sluice-e2e")]
pub(crate) enum Check {
    /// Run every command of docs/try/tour.md and compare its output with the page
    Tour(Programs),
    /// Run the commands of the other pages in docs/ beside a playground
    Book(Programs),
    /// Run the first minute of README.md
    FirstMinute(Programs),
    /// Run the Python session of docs/try/emulator.md against the emulator; --python has the Azure SDK
    EmulatorPage(Programs),
    /// Run one kubectl session on a real API server and on the playground's, and compare both with the transcript;
    /// --python has the Kubernetes client
    KubectlSession {
        /// Only a part
        #[arg(value_enum)]
        part: Option<session::Part>,
        #[command(flatten)]
        programs: Programs,
    },
    /// Play the stories of the playground
    Playground(Programs),
    /// Start a control plane, try it, and see that nothing is left of it
    TestenvTrial(Programs),
    /// Start a control plane for a person
    TestenvUp(Programs),
}

/// The programs that a check starts.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Programs {
    /// The program under test
    #[arg(long)]
    sluice: Option<PathBuf>,
    /// Path of the testenv program
    #[arg(long, env = "SLUICE_TESTENV")]
    testenv: Option<PathBuf>,
    /// kubectl
    #[arg(long)]
    kubectl: Option<PathBuf>,
    /// A Python interpreter with the packages of the check
    #[arg(long)]
    python: Option<PathBuf>,
}

impl Programs {
    fn sluice(&self) -> Result<PathBuf> {
        crate::existing(self.sluice.clone(), "--sluice")
    }

    fn testenv(&self) -> Result<PathBuf> {
        crate::existing(self.testenv.clone(), "--testenv")
    }

    fn kubectl(&self) -> Result<PathBuf> {
        crate::existing(self.kubectl.clone(), "--kubectl")
    }

    /// As it is given: the interpreter of a virtual environment is a link that must not be followed.
    fn python(&self) -> Result<PathBuf> {
        match &self.python {
            Some(python) if python.is_file() => Ok(std::path::absolute(python)?),
            _ => bail!("--python is missing, or names no program"),
        }
    }
}

/// The check that the command line names, if it names one; else it is about stories.
pub(crate) fn asked() -> Option<Check> {
    let first = std::env::args().nth(1)?;
    names().contains(&first).then(Check::parse)
}

fn names() -> Vec<String> {
    Check::command().get_subcommands().map(|it| it.get_name().to_string()).collect()
}

/// Runs it and prints what it did.
pub(crate) fn main(check: Check) -> ExitCode {
    let outcome = tokio::runtime::Runtime::new()
        .map_err(anyhow::Error::from)
        .and_then(|runtime| runtime.block_on(run(check)));
    match outcome {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("{problem:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(check: Check) -> Result<String> {
    match check {
        Check::Tour(programs) => tour::run(&programs).await,
        Check::Book(programs) => beside::book(&programs).await,
        Check::FirstMinute(programs) => beside::first_minute(&programs).await,
        Check::EmulatorPage(programs) => emulator_page::run(&programs).await,
        Check::KubectlSession { part, programs } => session::run(part, &programs).await,
        Check::Playground(programs) => playground::run(&programs).await,
        Check::TestenvTrial(programs) => trial::run(&programs).await,
        Check::TestenvUp(programs) => trial::up(&programs).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_story_has_the_name_of_a_check() {
        let names = names();
        assert!(names.iter().all(|name| HELP.contains(name.as_str())), "{names:?}");
        for story in crate::stories::all() {
            assert!(!names.iter().any(|it| it == story.name), "{}", story.name);
        }
    }
}
