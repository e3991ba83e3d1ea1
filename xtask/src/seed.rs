//! The number that decides what a run of the test chooses by chance: `SLUICE_SEED`, else the commit's.

use std::process::Command;

use crate::tree::root;

/// The variable that names it, as a decimal number.
pub(crate) const VARIABLE: &str = "SLUICE_SEED";

/// The seed of this run: the variable, else the first digits of the commit's hash.
pub(crate) fn current() -> Result<u64, String> {
    match std::env::var(VARIABLE) {
        Ok(text) if !text.is_empty() => {
            text.parse().map_err(|_| format!("{VARIABLE} must be a decimal number, not {text:?}"))
        }
        _ => of_commit(),
    }
}

/// The first twelve hexadecimal digits of the commit's hash; 1 in a tree without git.
fn of_commit() -> Result<u64, String> {
    let asked = Command::new("git").args(["rev-parse", "HEAD"]).current_dir(root()).output();
    let hash = asked.map_err(|error| format!("git cannot be asked for the commit: {error}"))?.stdout;
    let digits: String = String::from_utf8_lossy(&hash).chars().take(12).collect();
    Ok(u64::from_str_radix(&digits, 16).unwrap_or(1))
}
