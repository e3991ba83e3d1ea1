//! The simulator's Kubernetes against a real one: the same stories, step by step.

use std::process::{Command, ExitCode, Stdio};

use crate::programs::Program;
use crate::tree::Tree;
use crate::{report, testenv};

/// The task.
pub(crate) fn task() -> ExitCode {
    report("honest", run(&Tree::read_repository()))
}

/// Plays every story that can be played on both.
pub(crate) fn run(_: &Tree) -> Result<String, Vec<String>> {
    let said = said(Command::new(Program::Honest.path()?).env(testenv::VARIABLE, testenv::program()?))?;
    print!("{said}");
    let last = said.lines().last().unwrap_or_default();
    if last.ends_with(", 0 failed") {
        return Ok(format!("stories on the model and on the API server: {last}"));
    }
    Err(vec![format!("it ended without saying how many stories passed: {last:?}")])
}

/// What a command prints, if it ends well.
fn said(command: &mut Command) -> Result<String, Vec<String>> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| vec![format!("it cannot be started: {error}")])?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        Ok(text)
    } else {
        Err(vec![text, format!("it ended with {}", output.status)])
    }
}
