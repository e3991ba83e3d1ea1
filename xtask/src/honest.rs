//! The simulator's Kubernetes against a real one: the same stories, step by step.

use std::process::ExitCode;

use crate::tree::Tree;
use crate::{outputs, report, stage, testenv};

/// The task.
pub(crate) fn task() -> ExitCode {
    report("honest", run(&Tree::read_repository()))
}

/// Plays every story that can be played on both.
pub(crate) fn run(_: &Tree) -> Result<String, Vec<String>> {
    let program = testenv::program()?;
    let program = program.to_string_lossy();
    let environment = [(testenv::VARIABLE, &*program)];
    let arguments = ["run", "--quiet", "--bin", "sluice-honest"];
    let said = stage::cargo(&arguments, &environment, outputs::anything)?;
    let last = said.lines().last().unwrap_or_default();
    if last.ends_with(", 0 failed") {
        return Ok(format!("stories on the model and on the API server: {last}"));
    }
    Err(vec![format!("it ended without saying how many stories passed: {last:?}")])
}
