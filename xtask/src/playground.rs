//! The stage that plays the stories of the playground.

use crate::checks::{self, Tool};
use crate::tree::Tree;

/// The stage.
pub(crate) fn run(_: &Tree) -> Result<String, Vec<String>> {
    checks::run(&["playground"], &[Tool::Sluice])
}
