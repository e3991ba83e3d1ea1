//! The stage that runs the README's first minute.

use crate::checks::{self, Tool};
use crate::tree::Tree;

/// The stage.
pub(crate) fn run(_: &Tree) -> Result<String, Vec<String>> {
    checks::run(&["first-minute"], &[Tool::Sluice, Tool::Kubectl])
}
