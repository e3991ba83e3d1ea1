//! The stage that starts the controller from the states that an earlier version left behind.

use crate::checks::{self, Tool};
use crate::tree::Tree;

/// The controller starts from each baseline.
pub(crate) fn run(_: &Tree) -> Result<String, Vec<String>> {
    checks::run(&["baselines"], &[Tool::Production, Tool::Lab, Tool::Testenv])
}
