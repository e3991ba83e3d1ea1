//! Which crate may name which: the rings of the architecture, from what cargo reads in the manifests.
//!
//! ARCHITECTURE.md lists the same crates.

use std::collections::BTreeSet;

use crate::markdown;
use crate::purity::PURE;
use crate::stage::cargo_quietly;
use crate::tree::{Tree, folder_of, root};

const PAGE: &str = "ARCHITECTURE.md";
/// The page is an introduction, so it stays short.
const PAGE_LINES_MAX: usize = 200;

/// A crate of the product and the crates that it may name.
const ARROWS: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("engine", &["model"]),
    ("updater", &["model"]),
    ("cloud", &["model"]),
    ("arm-wire", &["model"]),
    ("arm", &["arm-wire", "model"]),
    ("k8s", &["model"]),
    ("view", &["model"]),
    // Pages from views; `model` only in its tests, for the list of reasons.
    ("dashboard", &["view", "model"]),
    ("controller", &["engine", "updater", "arm", "k8s", "view", "dashboard", "model"]),
    // It reads and writes JSON by itself, so that it and the client cannot agree on a mistake.
    ("emulator", &["cloud", "model"]),
    // Used by programs that share no code with the controller.
    ("emulator/client", &[]),
    // A Kubernetes of its own, for the same reason.
    ("apiserver", &[]),
    ("sim", &["engine", "updater", "cloud", "model"]),
    // `plan` lets engine and updaters work on a copy of Azure, which is `cloud`.
    ("commands", &["model", "engine", "updater", "cloud", "arm", "k8s", "view", "controller"]),
    // All but `commands` only in its tests; the crates of the lab only behind its feature.
    ("cli", &["commands", "model", "engine", "updater", "arm", "view", "controller", "emulator-client"]),
    // It judges the controller from outside: a client of the emulator, and nothing of the controller.
    ("e2e", &["emulator-client"]),
    ("e2e/honest", &["e2e", "k8s", "model", "sim"]),
    ("xtask", &[]),
];

/// The same of the crates in `lab/`, which play and measure. No crate of the product names one of them, except
/// `cli` as an optional dependency.
const LAB: &[(&str, &[&str])] = &[
    (
        "playground",
        &["commands", "cloud", "emulator", "emulator-client", "apiserver", "k8s", "view", "arm", "model"],
    ),
    (
        "bench",
        &[
            "commands",
            "model",
            "engine",
            "updater",
            "arm",
            "controller",
            "cloud",
            "emulator",
            "emulator-client",
        ],
    ),
];

fn is_lab(name: &str) -> bool {
    LAB.iter().any(|(known, _)| *known == name)
}

/// Names every dependency that points outward; tests obey the same arrows.
pub(super) fn check(_: &Tree) -> Vec<String> {
    // Every member of the workspace, and below it what its manifest names.
    const TREE: &str =
        "tree --workspace --all-features -e normal,build,dev --depth 1 --no-dedupe --prefix depth";
    let words: Vec<&str> = TREE.split(' ').collect();
    match cargo_quietly(&words) {
        Ok(listing) => problems(&listing, &root().display().to_string()),
        Err(why) => why,
    }
}

/// The same of a listing: a line has a depth, a package, its version, and a folder if it is ours.
fn problems(listing: &str, root: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let mut member: Option<(&str, &[&str])> = None;
    for line in listing.lines() {
        if let Some(package) = line.strip_prefix('0') {
            let folder = package.split_once(&format!("({root}/")).map_or(package, |(_, folder)| folder);
            let folder = folder.split(')').next().unwrap_or(folder);
            let (table, name) = match folder.split_once('/') {
                Some(("lab", name)) => (LAB, name),
                Some(("crates", name)) => (ARROWS, name),
                _ => (ARROWS, folder),
            };
            member = table.iter().find(|(known, _)| *known == name).copied();
            if member.is_none() {
                problems.push(format!(
                    "{folder}: the crate {name} has no row in the table of arrows (xtask/src/tidy/arrows.rs)"
                ));
            }
            continue;
        }
        let other = line.strip_prefix("1sluice-").and_then(|package| package.split(' ').next());
        let (Some((name, may_name)), Some(other)) = (member, other) else { continue };
        if is_lab(other) {
            // That it is optional there is seen from the production build.
            if name != "cli" {
                problems.push(format!(
                    "{name} must not name {other}, which is of the lab; only cli may, for its feature `lab`"
                ));
            }
        } else if !may_name.contains(&other) {
            let allowed = if may_name.is_empty() { "nothing".to_string() } else { may_name.join(", ") };
            problems.push(format!(
                "{name} must not name {other}; it may name {allowed}. Meet in `model` instead"
            ));
        }
    }
    problems
}

/// Names crates without a line in ARCHITECTURE.md, and lines without a crate. A line of the list is a folder
/// (`crates/model/`) and a sentence, in a block of `text`.
pub(super) fn check_list(tree: &Tree) -> Vec<String> {
    let text = tree.text(PAGE).unwrap_or("");
    let manifests = tree.ending("/Cargo.toml").map(|(path, _)| folder_of(path));
    let crates: BTreeSet<&str> = manifests.collect();
    let first_words = markdown::blocks(text, "text").into_iter().filter_map(|it| it.split(' ').next());
    let listed: BTreeSet<&str> = first_words.filter_map(|word| word.strip_suffix('/')).collect();
    let mut problems: Vec<String> =
        crates.difference(&listed).map(|name| format!("{PAGE}: has no line for the crate {name}/")).collect();
    problems.extend(
        listed.difference(&crates).map(|name| format!("{PAGE}: lists {name}/, which is not a crate")),
    );
    let lines = text.lines().count();
    if lines > PAGE_LINES_MAX {
        problems
            .push(format!("{PAGE}: {lines} lines; at most {PAGE_LINES_MAX}, so that it is read to the end"));
    }
    problems
}

/// Names every pure crate that could reach std.
pub(super) fn check_no_std(tree: &Tree) -> Vec<String> {
    let mut problems = Vec::new();
    for name in PURE {
        let path = format!("crates/{name}/src/lib.rs");
        let first_code = tree
            .text(&path)
            .unwrap_or("")
            .lines()
            .map(str::trim)
            .find(|line| !line.is_empty() && !line.starts_with("//"));
        if first_code != Some("#![no_std]") {
            problems.push(format!("{path}: `#![no_std]` must stand at the top, before any other code"));
        }
        for (path, text) in tree.below(&format!("crates/{name}/src/")) {
            if path.contains("/tests/") || path.ends_with("/tests.rs") {
                continue;
            }
            let mut before = "";
            for line in text.lines().map(str::trim) {
                if line == "extern crate std;" && before != "#[cfg(test)]" {
                    problems.push(format!("{path}: `extern crate std` is for tests only"));
                }
                before = line;
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arrow_that_points_outward_is_named() {
        let found = problems(
            "0sluice-model v0.1.0 (/x/crates/model)\n\n\
             0sluice-cloud v0.1.0 (/x/crates/cloud)\n1sluice-engine v0.1.0 (/x/crates/engine)\n\n\
             0sluice-sim v0.1.0 (/x/crates/sim)\n1sluice-engine v0.1.0 (/x/crates/engine)\n1tokio v1.0.0\n\n\
             0sluice-new v0.1.0 (/x/crates/new)\n1sluice-engine v0.1.0 (/x/crates/engine)\n\n\
             0sluice-e2e v0.1.0 (/x/e2e)\n1sluice-emulator-client v0.1.0 (/x/crates/emulator/client)\n\
             1sluice-model v0.1.0 (/x/crates/model)\n",
            "/x",
        );
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].contains("cloud must not name engine"));
        assert!(found[1].contains("the crate new has no row"));
        assert!(found[2].contains("e2e must not name model; it may name emulator-client"));
    }

    #[test]
    fn the_lab_names_the_product_and_of_the_product_only_cli_names_it() {
        let found = problems(
            "0sluice v0.1.0 (/x/crates/cli)\n1sluice-playground v0.1.0 (/x/lab/playground)\n\n\
             0sluice-commands v0.1.0 (/x/crates/commands)\n1sluice-bench v0.1.0 (/x/lab/bench)\n\n\
             0sluice-bench v0.1.0 (/x/lab/bench)\n1sluice-commands v0.1.0 (/x/crates/commands)\n\
             1sluice-sim v0.1.0 (/x/crates/sim)\n\n\
             0sluice-new v0.1.0 (/x/lab/new)\n",
            "/x",
        );
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].contains("commands must not name bench, which is of the lab"));
        assert!(found[1].contains("bench must not name sim"));
        assert!(found[2].contains("lab/new: the crate new has no row"));
    }

    #[test]
    fn a_crate_without_a_line_and_a_line_without_a_crate_are_named() {
        let found = |page: &str| {
            check_list(&Tree::of(&[
                (PAGE, page),
                ("Cargo.toml", ""),
                ("crates/model/Cargo.toml", ""),
                ("xtask/Cargo.toml", ""),
            ]))
        };
        assert_eq!(found("```text\ncrates/model/  Nouns.\nxtask/         Tasks.\n```\n"), [""; 0]);
        assert_eq!(
            found("```text\ncrates/model/  Nouns.\nlab/old/  Gone.\n```\n"),
            [
                "ARCHITECTURE.md: has no line for the crate xtask/",
                "ARCHITECTURE.md: lists lab/old/, which is not a crate"
            ]
        );
        assert!(found(&"x\n".repeat(201))[2].contains("201 lines"));
    }

    #[test]
    fn no_std_stands_at_the_top_and_is_not_undone() {
        let good = "//! Docs.\n#![no_std]\n#[cfg(test)]\nextern crate std;\n";
        let tree = Tree::of(&[
            ("crates/model/src/lib.rs", good),
            ("crates/engine/src/lib.rs", good),
            ("crates/updater/src/lib.rs", "#![no_std]\nextern crate std;\n"),
            ("crates/cloud/src/lib.rs", "use std::time::Instant;\n#![no_std]\n"),
            ("crates/cloud/src/tests/mod.rs", "extern crate std;\n"),
        ]);
        let found = check_no_std(&tree);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("crates/updater") && found[1].contains("crates/cloud"));
    }
}
