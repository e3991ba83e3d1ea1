//! Calls the checks of the end-to-end program (`e2e/src/checks.rs`): builds what they start and hands over the paths.

use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};

use crate::programs::Program;
use crate::tree::root;
use crate::{kubectl, testenv};

/// A program that a check is given.
pub(crate) enum Tool {
    /// The program with the lab, from the dev build.
    Sluice,
    /// The control plane.
    Testenv,
    /// The real kubectl.
    Kubectl,
    /// An interpreter with the packages of the check.
    Python(PathBuf),
}

/// Runs a check and returns what it says; why it failed is on standard error.
pub(crate) fn run(check: &[&str], tools: &[Tool]) -> Result<String, Vec<String>> {
    let output = command(check, tools)?.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output =
        output.map_err(|error| vec![format!("the end-to-end program cannot be started: {error}")])?;
    let text = String::from_utf8_lossy(&output.stdout).trim_end().to_string();
    judged(check, output.status).map_err(|why| vec![text.clone(), why])?;
    Ok(text)
}

/// Runs a check for a person, who sees what it prints and can type.
pub(crate) fn show(check: &[&str], tools: &[Tool]) -> Result<(), Vec<String>> {
    let ended = command(check, tools)?.status();
    let status = ended.map_err(|error| vec![format!("the end-to-end program cannot be started: {error}")])?;
    judged(check, status).map_err(|why| vec![why])
}

fn command(check: &[&str], tools: &[Tool]) -> Result<Command, Vec<String>> {
    let mut command = Command::new(Program::EndToEnd.path()?);
    command.args(check).args(paths(tools)?).current_dir(root());
    Ok(command)
}

fn judged(check: &[&str], status: ExitStatus) -> Result<(), String> {
    if status.success() { Ok(()) } else { Err(format!("the check {} ended with {status}", check.join(" "))) }
}

fn paths(tools: &[Tool]) -> Result<Vec<String>, Vec<String>> {
    let path = |tool: &Tool| {
        let (flag, path) = match tool {
            Tool::Sluice => ("sluice", Program::Lab.path()?),
            Tool::Testenv => ("testenv", testenv::program()?),
            Tool::Kubectl => ("kubectl", kubectl::program()?),
            Tool::Python(path) => ("python", path.clone()),
        };
        Ok(format!("--{flag}={}", path.display()))
    };
    tools.iter().map(path).collect()
}
