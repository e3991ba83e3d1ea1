//! Calls the checks of the end-to-end program (`e2e/src/checks.rs`): builds what they start and hands over the paths.

use std::path::PathBuf;
use std::process::Command;

use crate::programs::Program;
use crate::tree::root;
use crate::{kubectl, stage, testenv};

/// A program that a check is given.
pub(crate) enum Tool {
    /// The program with the lab, from the dev build.
    Sluice,
    /// The production build instead, as the program under test.
    Production,
    /// The program with the lab beside the production build.
    Lab,
    /// The control plane.
    Testenv,
    /// The real kubectl.
    Kubectl,
    /// An interpreter with the packages of the check.
    Python(PathBuf),
}

/// Runs a check, prints what it prints, and returns its last line.
pub(crate) fn run(check: &[&str], tools: &[Tool]) -> Result<String, Vec<String>> {
    last_line(&mut command(check, tools)?, &format!("the check {}", check.join(" ")))
}

/// Runs a command that must succeed, prints what it prints, and returns its last line.
pub(crate) fn last_line(command: &mut Command, name: &str) -> Result<String, Vec<String>> {
    match stage::stream(command, true) {
        Ok((text, status)) if status.success() => Ok(text.lines().last().unwrap_or_default().to_string()),
        Ok((_, status)) => Err(vec![format!("{name} ended with {status}")]),
        Err(error) => Err(vec![format!("{name} cannot be run: {error}")]),
    }
}

/// Runs a check for a person, who sees what it prints and can type.
pub(crate) fn show(check: &[&str], tools: &[Tool]) -> Result<(), Vec<String>> {
    let ended = command(check, tools)?.status();
    let status = ended.map_err(|error| vec![format!("the end-to-end program cannot be started: {error}")])?;
    if status.success() {
        Ok(())
    } else {
        Err(vec![format!("the check {} ended with {status}", check.join(" "))])
    }
}

fn command(check: &[&str], tools: &[Tool]) -> Result<Command, Vec<String>> {
    let mut command = Command::new(Program::EndToEnd.path()?);
    command.args(check).args(paths(tools)?).current_dir(root());
    Ok(command)
}

fn paths(tools: &[Tool]) -> Result<Vec<String>, Vec<String>> {
    let path = |tool: &Tool| {
        let (flag, path) = match tool {
            Tool::Sluice => ("sluice", Program::Lab.path()?),
            Tool::Production => ("sluice", Program::Production.path()?),
            Tool::Lab => ("lab", Program::Lab.path()?),
            Tool::Testenv => ("testenv", testenv::program()?),
            Tool::Kubectl => ("kubectl", kubectl::program()?),
            Tool::Python(path) => ("python", path.clone()),
        };
        Ok(format!("--{flag}={}", path.display()))
    };
    tools.iter().map(path).collect()
}
