//! Keeps the pure crates pure: no clock, socket, task or log can reach them.
//!
//! `#![no_std]` at the top makes a stray clock or socket a compile error in our own code
//! (see `tidy::arrows`); this looks at what they depend on. A build for a target
//! without std proves the same once more.

use crate::stage::cargo_quietly;
use crate::tree::Tree;

/// A target without std.
pub(crate) const BARE: &str = "thumbv7em-none-eabi";

/// The crates without I/O.
pub(crate) const PURE: [&str; 4] = ["model", "engine", "updater", "cloud"];

/// Containers without std, and what they are made of.
const CONTAINERS: [&str; 2] = ["hashbrown", "foldhash"];

/// Looks at `cargo tree` of every pure crate.
pub(crate) fn run(_: &Tree) -> Result<String, Vec<String>> {
    let mut problems = Vec::new();
    let mut seen = Vec::new();
    for name in PURE {
        let package = format!("sluice-{name}");
        let listing = cargo_quietly(&["tree", "-p", &package, "-e", "normal,build", "--prefix", "none"])?;
        problems.extend(strangers(&package, &listing));
        seen.push(format!("{package}: {}", packages(&listing).join(", ")));
    }
    if problems.is_empty() {
        seen.push(bare_target()?);
        Ok(seen.join("\n"))
    } else {
        Err(problems)
    }
}

fn packages(listing: &str) -> Vec<&str> {
    let mut names: Vec<&str> = listing.lines().filter_map(|line| line.split_whitespace().next()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn strangers(package: &str, listing: &str) -> Vec<String> {
    packages(listing)
        .into_iter()
        .filter(|name| {
            !CONTAINERS.contains(name) && !PURE.iter().any(|pure| *name == format!("sluice-{pure}"))
        })
        .map(|name| {
            format!(
                "{package} depends on {name}; a pure crate may use {} and nothing else",
                CONTAINERS.join(", ")
            )
        })
        .collect()
}

/// Builds for a target without std. One crate after the other, so that none uses a feature that only another one has.
fn bare_target() -> Result<String, Vec<String>> {
    for name in PURE {
        cargo_quietly(&["check", "--quiet", "-p", &format!("sluice-{name}"), "--target", BARE])?;
    }
    Ok(format!("all of them build for {BARE}, which has no std"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stranger_below_a_pure_crate_is_named() {
        let listing =
            "sluice-engine v0.1.0 (x)\nfoldhash v0.2.0\nhashbrown v0.17.1\nsluice-model v0.1.0 (x)\n";
        assert!(strangers("sluice-engine", listing).is_empty());
        let found = strangers("sluice-engine", &format!("{listing}tokio v1.0.0\n"));
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("tokio"), "{found:?}");
    }
}
