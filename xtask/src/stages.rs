//! The stages of `cargo xtask check` and `cargo xtask test`, in the order in which they run.

use crate::stage::{Stage, Tier, Work};
use crate::{
    book, browser, conformance, coverage, e2e, first_minute, honest, kubectl_session, outputs, playground,
    purity, session, testenv, tidy, tour,
};

const fn cargo(
    name: &'static str,
    tier: Tier,
    needs: Option<&'static str>,
    arguments: &'static [&'static str],
    environment: &'static [(&'static str, &'static str)],
    shows: fn(&str) -> Result<(), String>,
) -> Stage {
    Stage { name, tier, needs, after: None, work: Work::Cargo { arguments, environment, shows } }
}

const fn own(
    name: &'static str,
    tier: Tier,
    check: fn(&crate::tree::Tree) -> Result<String, Vec<String>>,
) -> Stage {
    Stage { name, tier, needs: None, after: None, work: Work::Own(check) }
}

const SEEDS: &str = "simulator: 2000 seeds";

/// All of them.
pub(crate) const STAGES: &[Stage] = &[
    cargo("format", Tier::Check, Some("rustfmt"), &["fmt", "--all", "--check"], &[], outputs::anything),
    cargo(
        "lints",
        Tier::Check,
        Some("clippy"),
        &["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"],
        &[],
        outputs::anything,
    ),
    // The simulator switches the seeded bugs on for the whole workspace; this is the code that ships.
    cargo(
        "lints without the seeded bugs",
        Tier::Check,
        Some("clippy"),
        &[
            "clippy",
            "--quiet",
            "-p",
            "sluice-model",
            "-p",
            "sluice-engine",
            "-p",
            "sluice-updater",
            "-p",
            "sluice-cloud",
            "-p",
            "sluice-arm-wire",
            "-p",
            "sluice-arm",
            "-p",
            "sluice-emulator",
            "-p",
            "sluice-controller",
            "-p",
            "sluice",
            "--lib",
            "--bins",
            "--",
            "-D",
            "warnings",
        ],
        &[],
        outputs::anything,
    ),
    own("tidy", Tier::Check, tidy::run),
    cargo(
        "unit tests",
        Tier::Check,
        None,
        &["test", "--quiet", "--workspace", "--lib", "--bins"],
        &[],
        outputs::anything,
    ),
    cargo(
        "docs",
        Tier::Check,
        None,
        &["doc", "--quiet", "--workspace", "--no-deps"],
        &[("RUSTDOCFLAGS", "-D warnings")],
        outputs::anything,
    ),
    // These start processes and listeners, so a faster build of them would show nothing more.
    cargo(
        "tests of the outer crates",
        Tier::Test,
        None,
        &[
            "test",
            "--quiet",
            "--no-fail-fast",
            "-p",
            "sluice-arm",
            "-p",
            "sluice-emulator",
            "-p",
            "sluice-k8s",
            "-p",
            "sluice-apiserver",
            "-p",
            "sluice-controller",
            "-p",
            "sluice",
            "--test",
            "*",
        ],
        &[],
        outputs::anything,
    ),
    // Where many thousand cases are tried, and where arithmetic may wrap in the build that ships.
    cargo(
        "all tests of the deciding crates, optimised",
        Tier::Test,
        None,
        &[
            "test",
            "--quiet",
            "--release",
            "--no-fail-fast",
            "-p",
            "sluice-model",
            "-p",
            "sluice-engine",
            "-p",
            "sluice-updater",
            "-p",
            "sluice-cloud",
            "-p",
            "sluice-arm-wire",
            "-p",
            "sluice-sim",
        ],
        &[("PROPTEST_CASES", "1024")],
        outputs::anything,
    ),
    own("purity of the pure crates", Tier::Test, purity::run),
    own("the design's items are covered", Tier::Test, coverage::run_strict),
    cargo(
        SEEDS,
        Tier::Test,
        None,
        &["run", "--quiet", "--release", "-p", "sluice-sim", "--", "--seeds", "2000"],
        &[],
        outputs::simulation,
    ),
    // Where runs without a bug fail, every planted bug is "caught" by the same failure.
    Stage {
        after: Some(SEEDS),
        ..cargo(
            "simulator: seeded bugs",
            Tier::Test,
            None,
            &["run", "--quiet", "--release", "-p", "sluice-sim", "--", "--bugs"],
            &[],
            outputs::bugs,
        )
    },
    own("simulator: a seed replays to the byte", Tier::Test, outputs::replay),
    own("the README's commands", Tier::Test, outputs::readme_commands),
    own("the book's commands", Tier::Test, book::run),
    Stage {
        needs: Some(conformance::TOOLS),
        ..own("conformance: official clients against the emulator", Tier::Test, conformance::run)
    },
    Stage {
        needs: Some(conformance::TOOLS),
        ..own("the emulator's page and its Python session", Tier::Test, session::run)
    },
    Stage {
        needs: Some(conformance::TOOLS),
        ..own("the README's first minute, with kubectl", Tier::Test, first_minute::run)
    },
    Stage {
        needs: Some(testenv::TOOLS),
        ..own("testenv: a control plane that starts, answers and stops", Tier::Test, testenv::run)
    },
    Stage {
        needs: Some(testenv::TOOLS),
        ..own("the simulator's Kubernetes is as the real one", Tier::Test, honest::run)
    },
    Stage { needs: Some(testenv::TOOLS), ..own("the tour with a real API server", Tier::Test, tour::run) },
    Stage { needs: Some(browser::TOOLS), ..own("the dashboard in a browser", Tier::Test, browser::run) },
    Stage {
        needs: Some(testenv::TOOLS),
        ..own("one kubectl session: a real API server and the playground's", Tier::Test, kubectl_session::run)
    },
    own("the stories of the playground", Tier::Test, playground::run),
    Stage {
        needs: Some(testenv::TOOLS),
        ..own("end to end: stories against a real API server", Tier::Test, e2e::run)
    },
    own("end to end: stories against the playground's API server", Tier::Test, e2e::run_on_the_playground),
    cargo(
        "engine benchmark: ratios and bytes",
        Tier::Test,
        None,
        &["bench", "--quiet", "-p", "sluice-engine"],
        &[],
        outputs::benchmark,
    ),
    cargo(
        "engine benchmark: instructions",
        Tier::Test,
        Some("valgrind"),
        &["bench", "--quiet", "-p", "sluice-engine", "--", "--instructions"],
        &[],
        outputs::instructions,
    ),
    cargo(
        "cloud benchmark: instructions",
        Tier::Test,
        Some("valgrind"),
        &["bench", "--quiet", "-p", "sluice-cloud"],
        &[],
        outputs::cloud_instructions,
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    #[test]
    fn every_crate_with_tests_of_its_own_is_named_by_a_stage_that_runs_them() {
        let runs_tests = |stage: &&Stage| matches!(&stage.work, Work::Cargo { arguments, .. } if arguments[0] == "test" && !arguments.contains(&"--lib"));
        let named: Vec<&str> = STAGES
            .iter()
            .filter(runs_tests)
            .filter_map(|stage| match &stage.work {
                Work::Cargo { arguments, .. } => Some(arguments.iter().copied()),
                Work::Own(_) => None,
            })
            .flatten()
            .collect();
        let tree = Tree::read_repository();
        for (path, manifest) in tree.ending("/Cargo.toml") {
            let folder = path.trim_end_matches("/Cargo.toml");
            let name = manifest.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
            if let Some(name) = name.filter(|_| tree.has(&format!("{folder}/tests"))) {
                assert!(named.contains(&name), "the tests in {folder}/tests are in no stage");
            }
        }
    }
}
