//! Keeps the lab, the libraries of tests and the seeded bugs out of the product.
//!
//! The production build is `cargo build -p sluice --no-default-features`. What it is made of is read from
//! `cargo tree`.

use crate::stage::cargo_quietly;
use crate::tree::Tree;

/// Packages that play and measure. `sluice-cloud` is none of them: `sluice plan` needs it as a copy of Azure.
const LAB: [&str; 4] = ["sluice-playground", "sluice-bench", "sluice-emulator", "sluice-apiserver"];

/// Libraries that only tests may use. `kube` and the configuration read YAML with others, in safe Rust.
const OF_TESTS: [&str; 2] = ["serde_yaml_ng", "unsafe-libyaml"];

/// The feature with the deliberate bugs.
const SEEDED: &str = "seeded-bugs";

/// Looks at what both builds of `sluice` are made of.
pub(crate) fn run(tree: &Tree) -> Result<String, Vec<String>> {
    let made_of = |options: &[&str]| {
        let tree = ["tree", "-p", "sluice", "-e", "normal,build", "--prefix", "none", "--format", "{p} {f}"];
        cargo_quietly(&[&tree, options].concat())
    };
    let (production, default) = (made_of(&["--no-default-features"])?, made_of(&[])?);
    let lock = tree.text("Cargo.lock").unwrap_or_default();
    let problems = problems(&production, &default, lock);
    if problems.is_empty() {
        Ok(format!("no {}, no {}, no {SEEDED}", LAB.join(", "), OF_TESTS.join(", ")))
    } else {
        Err(problems)
    }
}

fn problems(production: &str, default: &str, lock: &str) -> Vec<String> {
    let mut problems = Vec::new();
    for (build, listing) in [("production", production), ("default", default)] {
        let lab: &[&str] = if build == "production" { &LAB } else { &[] };
        let banned = named_in(lab, listing).chain(named_in(&OF_TESTS, listing));
        problems.extend(banned.map(|name| format!("the {build} build has {name}")));
        problems.extend(seeded_in(build, listing));
    }
    // A name that has changed would be absent from every build.
    if named_in(&LAB, default).count() != LAB.len() {
        problems.push(format!("the default build has not all of {}; are these their names?", LAB.join(", ")));
    }
    let is_locked = |name: &&str| lock.lines().any(|line| line == format!("name = \"{name}\""));
    if let Some(name) = OF_TESTS.iter().find(|name| !is_locked(name)) {
        problems.push(format!("no test uses {name} any more; take it off the list"));
    }
    problems
}

fn named_in(names: &[&'static str], listing: &str) -> impl Iterator<Item = &'static str> {
    names.iter().copied().filter(|name| listing.lines().any(|line| line.split(' ').next() == Some(name)))
}

fn seeded_in(build: &str, listing: &str) -> impl Iterator<Item = String> {
    let lines = listing.lines().filter(|line| line.split([' ', ',']).any(|word| word == SEEDED));
    lines.map(move |line| format!("the {build} build has the feature {SEEDED}: {line}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: &str = "name = \"serde_yaml_ng\"\nname = \"unsafe-libyaml\"\n";
    const PRODUCTION: &str = "sluice v0.1.0 (x) \nsluice-commands v0.1.0 (x) \nsluice-model v0.1.0 (x) std\n";

    fn default_build() -> String {
        LAB.iter().fold(PRODUCTION.to_owned(), |listing, name| format!("{listing}{name} v0.1.0 (x) \n"))
    }

    #[test]
    fn builds_without_lab_and_test_libraries_have_no_problem() {
        assert_eq!(problems(PRODUCTION, &default_build(), LOCK), [""; 0]);
    }

    #[test]
    fn a_crate_of_the_lab_and_a_seeded_bug_are_named() {
        let bad =
            format!("{PRODUCTION}sluice-emulator v0.1.0 (x) \nsluice-model v0.1.0 (x) seeded-bugs,std\n");
        let problems = problems(&bad, &default_build(), LOCK);
        assert_eq!(problems[0], "the production build has sluice-emulator");
        assert!(problems.len() == 2 && problems[1].contains("sluice-model"), "{problems:?}");
    }

    #[test]
    fn a_library_of_tests_is_named_in_either_build() {
        let with_yaml = |listing: &str| format!("{listing}serde_yaml_ng v0.10.0 \n");
        let problems = problems(&with_yaml(PRODUCTION), &with_yaml(&default_build()), LOCK);
        assert_eq!(
            problems,
            ["the production build has serde_yaml_ng", "the default build has serde_yaml_ng"]
        );
    }

    #[test]
    fn a_name_that_no_build_knows_is_a_problem() {
        let problems = problems(PRODUCTION, PRODUCTION, "");
        assert!(problems.len() == 2 && problems[0].contains("are these their names?"), "{problems:?}");
        assert_eq!(problems[1], "no test uses serde_yaml_ng any more; take it off the list");
    }
}
