//! The stage that runs the Python session of the emulator's page.

use crate::checks::{self, Tool};
use crate::conformance;
use crate::tree::Tree;

/// The stage.
pub(crate) fn run(_: &Tree) -> Result<String, Vec<String>> {
    let python = conformance::newest_python().map_err(|why| vec![why])?;
    checks::run(&["emulator-page"], &[Tool::Sluice, Tool::Python(python)])
}
