//! Keeps the lab and the seeded bugs out of the product.
//!
//! The production build is `cargo build -p sluice --no-default-features`. What it is made of is read from
//! `cargo tree`.

use crate::stage::cargo_quietly;
use crate::tree::Tree;

/// Packages that play and measure. `sluice-cloud` is none of them: `sluice plan` needs it as a copy of Azure.
const LAB: [&str; 4] = ["sluice-playground", "sluice-bench", "sluice-emulator", "sluice-apiserver"];

/// The feature with the deliberate bugs.
const SEEDED: &str = "seeded-bugs";

/// Looks at what both builds of `sluice` are made of.
pub(crate) fn run(_: &Tree) -> Result<String, Vec<String>> {
    let made_of = |options: &[&str]| {
        let tree = ["tree", "-p", "sluice", "-e", "normal,build", "--prefix", "none", "--format", "{p} {f}"];
        cargo_quietly(&[&tree, options].concat())
    };
    let (production, default) = (made_of(&["--no-default-features"])?, made_of(&[])?);
    let of_the_lab = lab_in(&production).map(|name| format!("the production build has {name}"));
    let mut problems: Vec<String> = of_the_lab.collect();
    problems.extend(seeded_in("production", &production));
    problems.extend(seeded_in("default", &default));
    // A name that has changed would be absent from every build.
    if lab_in(&default).count() != LAB.len() {
        problems.push(format!("the default build has not all of {}; are these their names?", LAB.join(", ")));
    }
    if problems.is_empty() { Ok(format!("no {}, no {SEEDED}", LAB.join(", "))) } else { Err(problems) }
}

fn lab_in(listing: &str) -> impl Iterator<Item = &'static str> {
    LAB.into_iter().filter(|name| listing.lines().any(|line| line.split(' ').next() == Some(name)))
}

fn seeded_in(build: &str, listing: &str) -> impl Iterator<Item = String> {
    let lines = listing.lines().filter(|line| line.split([' ', ',']).any(|word| word == SEEDED));
    lines.map(move |line| format!("the {build} build has the feature {SEEDED}: {line}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_of_the_lab_and_a_seeded_bug_are_named() {
        let good = "sluice v0.1.0 (x) \nsluice-commands v0.1.0 (x) \nsluice-model v0.1.0 (x) std\n";
        assert_eq!((lab_in(good).count(), seeded_in("default", good).count()), (0, 0));
        let bad = format!("{good}sluice-emulator v0.1.0 (x) \nsluice-model v0.1.0 (x) seeded-bugs,std\n");
        assert_eq!(lab_in(&bad).collect::<Vec<_>>(), ["sluice-emulator"]);
        let seeded: Vec<String> = seeded_in("default", &bad).collect();
        assert!(seeded.len() == 1 && seeded[0].contains("sluice-model"), "{seeded:?}");
    }
}
