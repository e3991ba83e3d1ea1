//! The simulator's Kubernetes against a real one: the same stories, step by step.

use std::process::{Command, ExitCode};

use crate::programs::Program;
use crate::tree::Tree;
use crate::{checks, report, testenv};

/// The task.
pub(crate) fn task() -> ExitCode {
    report("honest", run(&Tree::read_repository()))
}

/// Plays every story that can be played on both.
pub(crate) fn run(_: &Tree) -> Result<String, Vec<String>> {
    let mut command = Command::new(Program::Honest.path()?);
    let last = checks::last_line(command.env(testenv::VARIABLE, testenv::program()?), "sluice-honest")?;
    if last.ends_with(", 0 failed") {
        return Ok(format!("stories on the model and on the API server: {last}"));
    }
    Err(vec![format!("it ended without saying how many stories passed: {last:?}")])
}
