//! Which crate may name which: the rings of the architecture, from the manifests.

use crate::manifest;
use crate::purity::{CONTAINERS, PURE};
use crate::tree::Tree;

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
pub(super) fn check(tree: &Tree) -> Vec<String> {
    let mut problems = Vec::new();
    for (path, text) in tree.ending("/Cargo.toml") {
        let folder = path.trim_end_matches("/Cargo.toml");
        let (table, name) = match folder.split_once('/') {
            Some(("lab", name)) => (LAB, name),
            Some(("crates", name)) => (ARROWS, name),
            _ => (ARROWS, folder),
        };
        let Some((_, may_name)) = table.iter().find(|(known, _)| *known == name) else {
            problems.push(format!(
                "{path}: the crate {name} has no row in the table of arrows (xtask/src/tidy/arrows.rs)"
            ));
            continue;
        };
        for dependency in manifest::dependencies(text) {
            match dependency.name.strip_prefix("sluice-") {
                Some(other) if is_lab(other) && name == "cli" && dependency.optional => {}
                Some(other) if is_lab(other) => problems.push(format!(
                    "{path}: {name} must not name {other}, which is of the lab; only cli may, as an optional \
                     dependency of its feature `lab`"
                )),
                Some(other) if !may_name.contains(&other) => {
                    let allowed =
                        if may_name.is_empty() { "nothing".to_string() } else { may_name.join(", ") };
                    problems.push(format!(
                        "{path}: {name} must not name {other}; it may name {allowed}. Meet in `model` instead"
                    ));
                }
                None if PURE.contains(&name)
                    && !dependency.dev
                    && !CONTAINERS.contains(&dependency.name.as_str()) =>
                {
                    problems.push(format!(
                        "{path}: {name} is pure and may not use {}; only {}",
                        dependency.name,
                        CONTAINERS.join(" and ")
                    ));
                }
                _ => {}
            }
        }
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
        let tree = Tree::of(&[
            ("crates/model/Cargo.toml", "[dependencies]\n"),
            ("crates/cloud/Cargo.toml", "[dependencies]\nsluice-engine.workspace = true\n"),
            ("crates/sim/Cargo.toml", "[dependencies]\nsluice-engine.workspace = true\ntokio = \"1\"\n"),
            ("crates/new/Cargo.toml", ""),
            (
                "e2e/Cargo.toml",
                "[dependencies]\nsluice-emulator-client.workspace = true\nsluice-model = \"1\"\n",
            ),
        ]);
        let found = check(&tree);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].contains("cloud must not name engine"));
        assert!(found[1].contains("no row"));
        assert!(found[2].contains("e2e must not name model; it may name emulator-client"));
    }

    #[test]
    fn the_lab_names_the_product_and_the_product_names_it_only_behind_the_feature() {
        let tree = Tree::of(&[
            (
                "crates/cli/Cargo.toml",
                "[dependencies]\nsluice-playground = { workspace = true, optional = true }\nsluice-bench.workspace = true\n",
            ),
            ("crates/commands/Cargo.toml", "[dev-dependencies]\nsluice-bench.workspace = true\n"),
            (
                "lab/bench/Cargo.toml",
                "[dependencies]\nsluice-commands.workspace = true\nsluice-sim = \"1\"\n",
            ),
            ("lab/new/Cargo.toml", ""),
        ]);
        let found = check(&tree);
        assert_eq!(found.len(), 4, "{found:?}");
        assert!(found[0].contains("cli must not name bench, which is of the lab"));
        assert!(found[1].contains("commands must not name bench, which is of the lab"));
        assert!(found[2].contains("bench must not name sim"));
        assert!(found[3].contains("the crate new has no row"));
    }

    #[test]
    fn a_pure_crate_uses_containers_and_nothing_else() {
        let tree = Tree::of(&[(
            "crates/engine/Cargo.toml",
            "[dependencies]\nhashbrown = \"0\"\nserde = \"1\"\n[dev-dependencies]\nproptest = \"1\"\n",
        )]);
        let found = check(&tree);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("serde"));
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
