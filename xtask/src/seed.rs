//! The number that decides what a run of the test chooses by chance: `SLUICE_SEED`, else the commit's.

use std::process::Command;

use crate::tree::root;

/// The variable that names it: a decimal number, or the hash of a commit.
pub(crate) const VARIABLE: &str = "SLUICE_SEED";

/// The seed of this run: the variable, else the commit's.
pub(crate) fn current() -> Result<u64, String> {
    match std::env::var(VARIABLE) {
        Ok(text) if !text.is_empty() => of_text(&text),
        _ => {
            let asked = Command::new("git").args(["rev-parse", "HEAD"]).current_dir(root()).output();
            // A tree without git has one seed.
            let hash = asked.map(|output| output.stdout).unwrap_or_default();
            Ok(of_commit(&String::from_utf8_lossy(&hash)).unwrap_or(1))
        }
    }
}

/// A decimal number; what is none is read as the hash of a commit.
fn of_text(text: &str) -> Result<u64, String> {
    let text = text.trim();
    text.parse().ok().or_else(|| of_commit(text)).ok_or_else(|| {
        format!("{VARIABLE} is {text:?}: it must be a decimal number below 2^64, or the hash of a commit")
    })
}

/// The first twelve hexadecimal digits of a commit's hash.
fn of_commit(hash: &str) -> Option<u64> {
    let digits: String = hash.trim().chars().take(12).collect();
    u64::from_str_radix(&digits, 16).ok()
}

/// The first seed of the simulator that is not the same for every commit: the first eight hexadecimal digits of the
/// commit's hash. A number that somebody chose is taken as it is.
pub(crate) fn first_of_simulator(seed: u64) -> u64 {
    if seed >> 32 == 0 { seed } else { seed >> 16 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_a_decimal_number_or_the_hash_of_a_commit() {
        assert_eq!(of_text("42"), Ok(42));
        assert_eq!(of_text("c73a1b2"), Ok(0xc73_a1b2));
        let hash = "c73a1b2d00112233445566778899aabbccddeeff";
        assert_eq!(of_text(hash), Ok(0xc73a_1b2d_0011));
        assert!(of_text("tomorrow").is_err());
    }

    #[test]
    fn the_simulator_begins_at_the_first_eight_digits_of_the_commit() {
        let hash = "c73a1b2d00112233445566778899aabbccddeeff";
        assert_eq!(of_text(hash).map(first_of_simulator), Ok(0xc73a_1b2d));
        assert_eq!(first_of_simulator(42), 42);
    }
}
