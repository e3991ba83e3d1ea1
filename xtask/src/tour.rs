//! The stage that runs docs/try/tour.md.

use crate::checks::{self, Tool};
use crate::tree::Tree;

/// The page.
pub(crate) const PAGE: &str = "docs/try/tour.md";

/// The stage.
pub(crate) fn run(_: &Tree) -> Result<String, Vec<String>> {
    checks::run(&["tour"], &[Tool::Sluice, Tool::Testenv, Tool::Kubectl])
}
