//! Gives every client its packages, once per list of versions, the ones that packages bring along included.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Client, Language};
use crate::packages::{self, Environment};
use crate::tree::root;

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
    let home = folder.join("javascript");
    packages::ensure_node("the JavaScript clients", &root().join("conformance/javascript"), &home)?;
    Ok(home)
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{} cannot be read: {error}", path.display()))
}
