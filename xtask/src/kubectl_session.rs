//! The stage that runs one kubectl session on a real API server and on the playground's.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::checks::{self, Tool};
use crate::packages::{self, Environment};
use crate::parts::Part;
use crate::tree::{Tree, root};
use crate::{cache, report};

/// The words that the task takes.
pub(crate) const WORDS: [&str; 4] = ["record", "real", "playground", "python"];

/// The stage: both sides at once, by kubectl and by the Python client.
pub(crate) fn run(_: &Tree) -> Result<String, Vec<String>> {
    part(&[])
}

/// The task: everything, or a part.
pub(crate) fn task(words: &[String]) -> ExitCode {
    report("kubectl-session", part(words))
}

fn part(words: &[String]) -> Result<String, Vec<String>> {
    let python = Tool::Python(python().map_err(|why| vec![why])?);
    let check: Vec<&str> = ["kubectl-session"].into_iter().chain(words.iter().map(String::as_str)).collect();
    checks::run(&check, &[Tool::Sluice, Tool::Testenv, Tool::Kubectl, python])
}

/// An interpreter with the Python client of Kubernetes, installed if need be.
pub(crate) fn python() -> Result<PathBuf, String> {
    Part::Python.ensure().map_err(|trouble| trouble.to_string())?;
    let requirements = root().join("e2e/session/python/requirements.txt");
    let list = std::fs::read_to_string(&requirements)
        .map_err(|error| format!("{} cannot be read: {error}", requirements.display()))?;
    let home = cache::folder()?.join("python-kubernetes");
    let _lock = cache::Lock::take("python-kubernetes")?;
    let environment = Environment {
        purpose: "the Python client of Kubernetes",
        home: &home,
        install: &["--requirement", &requirements.to_string_lossy()],
        list: &list,
        probe: &["python3", "-c", "import kubernetes, pytest"],
    };
    environment.ensure()?;
    Ok(packages::program_of(&home, "python3"))
}
