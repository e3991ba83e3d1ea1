//! The stage that runs the commands of the other pages in docs/.

use crate::checks::{self, Tool};
use crate::tree::Tree;

/// The stage.
pub(crate) fn run(_: &Tree) -> Result<String, Vec<String>> {
    checks::run(&["book"], &[Tool::Sluice, Tool::Kubectl])
}
