//! One set of features for every build of the workspace, and no seeded bug in it.
//!
//! Cargo compiles a library once for each set of features, and everything above it as well. If
//! what the tests need differed from what the product needs, `cargo run` after `cargo test` would
//! build half of the tree again. Cargo's own tree says what a build would have; nothing is built.

use std::collections::BTreeSet;

use crate::stage::cargo_quietly;
use crate::tree::Tree;

/// Compares the product alone with the whole workspace and its tests.
pub(crate) fn run(_: &Tree) -> Result<String, Vec<String>> {
    let product = listing(&["-p", "sluice", "-e", "normal"])?;
    let workspace = listing(&["--workspace", "-e", "normal,dev"])?;
    // The same question where the answer is yes, so that a no means something.
    let planted = listing(&["-p", "sluice-sim", "--features", "seeded-bugs", "-e", "normal"])?;
    let mut problems = differences(&product, &workspace);
    for (build, listing, expected) in [
        ("the product", product.as_str(), false),
        ("the workspace", &workspace, false),
        ("the simulator", &planted, true),
    ] {
        if has_seeded_bugs(listing) != expected {
            let has = if expected { "lacks" } else { "has" };
            problems.push(format!("sluice-model in a build of {build} {has} the feature seeded-bugs"));
        }
    }
    if problems.is_empty() {
        let libraries = packages(&product).len();
        Ok(format!("{libraries} libraries have the same features in every build; seeded-bugs is in none"))
    } else {
        Err(problems)
    }
}

/// A line for each package, with the features that this build of it has.
fn listing(words: &[&str]) -> Result<String, Vec<String>> {
    cargo_quietly(&[&["tree", "--locked", "--prefix", "none", "-f", "{p} [{f}]"], words].concat())
}

fn has_seeded_bugs(listing: &str) -> bool {
    packages(listing).iter().any(|line| line.starts_with("sluice-model ") && line.contains("seeded-bugs"))
}

fn packages(listing: &str) -> BTreeSet<&str> {
    listing.lines().map(|line| line.trim_end_matches(" (*)")).filter(|line| !line.is_empty()).collect()
}

/// What the product has with features that the workspace does not have it with.
fn differences(product: &str, workspace: &str) -> Vec<String> {
    let everywhere = packages(workspace);
    packages(product)
        .difference(&everywhere)
        .map(|line| {
            let name = line.split(' ').next().unwrap_or(line);
            let tests: Vec<&str> =
                everywhere.iter().filter(|other| other.split(' ').next() == Some(name)).copied().collect();
            format!(
                "the product has {line}, the workspace with its tests {}: every crate that depends on it is compiled twice; \
                 give the features in [workspace.dependencies]",
                tests.join(" and ")
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeded_bugs_are_seen() {
        assert!(has_seeded_bugs("tokio v1.0.0 []\nsluice-model v0.1.0 (x) [seeded-bugs] (*)\n"));
        assert!(!has_seeded_bugs("sluice-sim v0.1.0 (seeded-bugs) []\nsluice-model v0.1.0 (x) []\n"));
    }

    #[test]
    fn a_library_with_other_features_in_the_tests_is_named() {
        let product = "sluice v0.1.0 (x) []\ntokio v1.0.0 [net,rt]\ntokio v1.0.0 [net,rt] (*)\n";
        let same = format!("proptest v1.0.0 [std]\n\n{product}");
        assert_eq!(differences(product, &same), Vec::<String>::new());
        let found = differences(product, &same.replace("[net,rt]", "[net,rt,test-util]"));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("tokio v1.0.0 [net,rt], ") && found[0].contains("test-util"), "{found:?}");
    }
}
