//! Gives every client its packages, once per list of versions, the ones that packages bring along included.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Client, Language};
use crate::packages::{self, DEBIAN_PYTHON, Environment, works};
use crate::tree::root;

/// The oldest Node that the pinned packages run on.
const NODE_MIN: u32 = 20;

/// The packages of Debian that bring the tools.
const DEBIAN: [&str; 4] = [DEBIAN_PYTHON[0], DEBIAN_PYTHON[1], "nodejs", "npm"];

/// Makes sure of python3, node and npm, with apt-get's help if need be.
pub(crate) fn ensure_tools() -> Result<(), String> {
    packages::ensure(missing, &DEBIAN)
}

/// What is not there, or too old, in words.
fn missing() -> Vec<String> {
    let mut missing = packages::missing_python();
    let probe = format!("process.exit(parseInt(process.versions.node) < {NODE_MIN} ? 1 : 0)");
    if !works(Path::new("node"), &["-e", &probe]) {
        missing.push(format!("node of at least {NODE_MIN} is missing"));
    }
    if !works(Path::new("npm"), &["--version"]) {
        missing.push("npm is missing".to_string());
    }
    missing
}

/// Installs what a client needs and gives back the folder that has it.
pub(super) fn client(client: Client, folder: &Path) -> Result<PathBuf, String> {
    match client.language {
        Language::Python => python(client, folder),
        Language::JavaScript => javascript(folder),
    }
}

/// The interpreter of a virtual environment.
pub(super) fn python_of(home: &Path) -> PathBuf {
    packages::program_of(home, "python3")
}

fn python(client: Client, folder: &Path) -> Result<PathBuf, String> {
    let home = folder.join(client.name);
    let lists = root().join("conformance/python/requirements");
    let list = lists.join(format!("{}.txt", client.version));
    let environment = Environment {
        purpose: client.name,
        home: &home,
        install: &["--requirement", &list.to_string_lossy()],
        list: &[read(&lists.join("common.txt"))?, read(&list)?].concat(),
        probe: &["python3", "-c", "import pytest"],
    };
    environment.ensure()?;
    Ok(home)
}

fn javascript(folder: &Path) -> Result<PathBuf, String> {
    const FILES: [&str; 3] = ["package.json", "package-lock.json", ".npmrc"];
    let home = folder.join("javascript");
    let source = root().join("conformance/javascript");
    let mut wanted = packages::version_of("node")?;
    for name in FILES {
        wanted += &read(&source.join(name))?;
    }
    if packages::is_made_from(&home, &wanted) {
        return Ok(home);
    }
    println!("installing the packages of the JavaScript clients");
    packages::clear(&home)?;
    fs::create_dir_all(&home).map_err(|error| format!("{} cannot be made: {error}", home.display()))?;
    for name in FILES {
        fs::copy(source.join(name), home.join(name)).map_err(|error| format!("{name}: {error}"))?;
    }
    // Not the audit, nor scripts of strangers: neither has to do with the tests.
    let arguments = ["ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"];
    packages::run(Command::new("npm").args(arguments).current_dir(&home))?;
    packages::finish(&home, &wanted)?;
    Ok(home)
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{} cannot be read: {error}", path.display()))
}
