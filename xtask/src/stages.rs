//! The stages of `cargo xtask check` and `cargo xtask test`, in the order in which they start if there is room.

use crate::parts::Part;
use crate::runner::Load;
use crate::stage::{Stage, Tier, Work};
use crate::tree::Tree;
use crate::{
    baselines, book, browser, conformance, e2e, features, first_minute, honest, kubectl_session, outputs,
    playground, production, programs, purity, session, testenv, tidy, tour,
};

/// A stage that runs cargo on all cores; its exit status says it all.
const fn cargo(
    name: &'static str,
    tier: Tier,
    limit_min: u64,
    needs: &'static [Part],
    arguments: &'static [&'static str],
) -> Stage {
    let work = Work::Cargo { arguments, environment: &[], shows: outputs::anything };
    Stage { name, tier, load: Load::Busy, limit_min, needs, after: &[], work }
}

/// A check of our own that mostly waits.
const fn own(
    name: &'static str,
    tier: Tier,
    limit_min: u64,
    needs: &'static [Part],
    check: fn(&Tree) -> Result<String, Vec<String>>,
) -> Stage {
    Stage { name, tier, load: Load::Waits, limit_min, needs, after: &[], work: Work::Own(check) }
}

/// A stage of the long test that runs tests in the optimised build. Properties that set no number of random cases of
/// their own try sixteen times as many.
const fn optimised_tests(name: &'static str, arguments: &'static [&'static str]) -> Stage {
    let environment = &[("PROPTEST_CASES", "4096")];
    Stage {
        work: Work::Cargo { arguments, environment, shows: outputs::anything },
        ..cargo(name, Tier::All, 30, &[], &[])
    }
}

const PROGRAMS: &str = "build of the programs that stages start";
const E2E: &str = "end to end: stories against a real API server";
const SEEDS: &str = "simulator: 2000 seeds";

/// All of them.
pub(crate) const STAGES: &[Stage] = &[
    Stage {
        load: Load::Waits,
        ..cargo("format", Tier::Check, 5, &[Part::Rustfmt], &["fmt", "--all", "--check"])
    },
    own("tidy", Tier::Check, 5, &[], tidy::run),
    own("one set of features, no seeded bug", Tier::Check, 5, &[], features::run),
    own("the production build has no lab", Tier::Check, 5, &[], production::run),
    // It compiles, so it must not run beside another build.
    Stage {
        load: Load::Busy,
        ..own("purity of the pure crates", Tier::Check, 10, &[Part::BareTarget], purity::run)
    },
    Stage { load: Load::Busy, ..own(PROGRAMS, Tier::Test, 30, &[], programs::run) },
    cargo(
        "unit tests",
        Tier::Check,
        30,
        &[],
        &[
            "test",
            "--quiet",
            "--workspace",
            "--exclude",
            "sluice-e2e",
            "--exclude",
            "sluice-honest",
            "--exclude",
            "sluice-bench",
            "--exclude",
            "sluice-playground",
            "--exclude",
            "sluice-apiserver",
            "--lib",
            "--bins",
        ],
    ),
    cargo(
        "lints",
        Tier::Check,
        30,
        &[Part::Clippy],
        &["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"],
    ),
    // Not in `check`: these programs take a minute to compile, and most changes are not about them.
    cargo(
        "unit tests of the lab and of the end-to-end programs",
        Tier::Test,
        30,
        &[],
        &[
            "test",
            "--quiet",
            "-p",
            "sluice-e2e",
            "-p",
            "sluice-honest",
            "-p",
            "sluice-bench",
            "-p",
            "sluice-playground",
            "-p",
            "sluice-apiserver",
            "--lib",
            "--bins",
        ],
    ),
    Stage {
        work: Work::Cargo {
            arguments: &["doc", "--quiet", "--workspace", "--no-deps"],
            environment: &[("RUSTDOCFLAGS", "-D warnings")],
            shows: outputs::anything,
        },
        ..cargo("docs", Tier::Test, 20, &[], &[])
    },
    cargo(
        "lints of the production build",
        Tier::Test,
        15,
        &[Part::Clippy],
        &["clippy", "--quiet", "-p", "sluice", "--no-default-features", "--", "-D", "warnings"],
    ),
    // The tests in `tests` folders; "unit tests" has run the others. Two crates have stages of their own, with bugs.
    Stage {
        work: Work::Cargo {
            arguments: &[
                "test",
                "--quiet",
                "--no-fail-fast",
                "--workspace",
                "--exclude",
                "sluice-sim",
                "--exclude",
                "sluice-bench",
                "--test",
                "*",
            ],
            environment: &[("PROPTEST_CASES", "1024")],
            shows: outputs::anything,
        },
        ..cargo("tests of whole crates", Tier::Test, 30, &[], &[])
    },
    cargo("examples in the documentation", Tier::Test, 10, &[], &["test", "--quiet", "--workspace", "--doc"]),
    cargo(
        "tests of engine, updater and simulator with seeded bugs",
        Tier::Test,
        30,
        &[],
        &[
            "test",
            "--quiet",
            "--no-fail-fast",
            "-p",
            "sluice-engine",
            "-p",
            "sluice-updater",
            "-p",
            "sluice-sim",
            "--features",
            "seeded-bugs",
        ],
    ),
    // Once more where arithmetic wraps, as in the build that ships. Compiling that takes minutes, and with every commit the
    // simulator runs through the same code in an optimised build.
    optimised_tests(
        "tests of the deciding crates, optimised",
        &[
            "test",
            "--release",
            "--quiet",
            "--no-fail-fast",
            "-p",
            "sluice-model",
            "-p",
            "sluice-engine",
            "-p",
            "sluice-cloud",
            "-p",
            "sluice-arm-wire",
        ],
    ),
    optimised_tests(
        "tests of engine, updater and simulator with seeded bugs, optimised",
        &[
            "test",
            "--release",
            "--quiet",
            "--no-fail-fast",
            "-p",
            "sluice-engine",
            "-p",
            "sluice-updater",
            "-p",
            "sluice-sim",
            "--features",
            "seeded-bugs",
        ],
    ),
    Stage {
        load: Load::Single,
        after: &[PROGRAMS],
        work: Work::Cargo {
            arguments: &["bench", "--quiet", "-p", "sluice-engine", "--", "--instructions"],
            environment: &[],
            shows: outputs::instructions,
        },
        ..cargo("engine benchmark: instructions", Tier::Test, 40, &[Part::Valgrind], &[])
    },
    Stage {
        load: Load::Single,
        after: &[PROGRAMS],
        work: Work::Cargo {
            arguments: &["bench", "--quiet", "-p", "sluice-cloud"],
            environment: &[],
            shows: outputs::cloud_instructions,
        },
        ..cargo("cloud benchmark: instructions", Tier::Test, 40, &[Part::Valgrind], &[])
    },
    cargo(
        "recorded traffic of Azure: the client and the emulator",
        Tier::Test,
        20,
        &[Part::Recordings],
        // Of all crates that have them: with `-p`, the libraries would have other features and be built once more.
        &["test", "--quiet", "--test", "recordings", "--", "--include-ignored"],
    ),
    // Measures how soon one call follows another, so nothing else runs; PROGRAMS has built it.
    Stage {
        load: Load::Alone,
        after: &[PROGRAMS],
        work: Work::Cargo { arguments: programs::FAULTS, environment: &[], shows: outputs::faults },
        ..cargo("fault stories and the table of calls", Tier::Test, 20, &[], &[])
    },
    cargo(
        "lints of the seeded bugs",
        Tier::Test,
        15,
        &[Part::Clippy],
        &[
            "clippy",
            "--quiet",
            "-p",
            "sluice-sim",
            "-p",
            "sluice-updater",
            "--features",
            "seeded-bugs",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ],
    ),
    // It compiles, and then computes on all cores.
    Stage { load: Load::Busy, after: &[PROGRAMS], ..own(SEEDS, Tier::Test, 30, &[], outputs::seeds) },
    Stage {
        after: &[SEEDS],
        work: Work::Cargo {
            arguments: &[
                "run",
                "--quiet",
                "--release",
                "-p",
                "sluice-sim",
                "--",
                "--seeds",
                "20000",
                "--start",
                "100000",
            ],
            environment: &[],
            shows: outputs::simulation,
        },
        ..cargo("simulator: 20000 more seeds", Tier::All, 60, &[], &[])
    },
    // Where runs without a bug fail, every planted bug is "caught" by the same failure.
    Stage {
        after: &[SEEDS],
        work: Work::Cargo {
            arguments: &[
                "run",
                "--quiet",
                "--release",
                "-p",
                "sluice-sim",
                "--features",
                "seeded-bugs",
                // A folder of its own: other stages run the simulator without bugs at the same time.
                "--target-dir",
                "target/with-seeded-bugs",
                "--",
                "--bugs",
            ],
            environment: &[],
            shows: outputs::bugs,
        },
        ..cargo("simulator: seeded bugs", Tier::Test, 30, &[], &[])
    },
    Stage {
        load: Load::Single,
        after: &[SEEDS],
        ..own("simulator: a seed replays to the byte", Tier::Test, 10, &[], outputs::replay)
    },
    // PROGRAMS and SEEDS have built what it runs.
    Stage {
        after: &[PROGRAMS, SEEDS],
        ..own("cargo commands of the documentation", Tier::Test, 30, &[], outputs::commands_of_pages)
    },
    // Of those that wait, the longest come first.
    Stage { after: &[PROGRAMS], ..own(E2E, Tier::Test, 40, &[Part::ControlPlane], e2e::run) },
    Stage {
        after: &[PROGRAMS],
        ..own(
            "the dashboard in a browser",
            Tier::Test,
            20,
            &[Part::Chromium, Part::BrowserPackages],
            browser::run,
        )
    },
    Stage {
        after: &[PROGRAMS],
        ..own(
            "conformance: official clients against the emulator",
            Tier::Test,
            20,
            &[Part::AzureClients],
            conformance::run,
        )
    },
    Stage {
        after: &[PROGRAMS],
        ..own(
            "end to end: stories against the playground's API server",
            Tier::Test,
            30,
            &[],
            e2e::run_on_the_playground,
        )
    },
    Stage {
        after: &[PROGRAMS],
        ..own(
            "start from the states of an earlier version",
            Tier::Test,
            15,
            &[Part::ControlPlane],
            baselines::run,
        )
    },
    // Only in `--all`: it takes many minutes, and the machine for itself.
    Stage {
        load: Load::Alone,
        after: &[PROGRAMS],
        ..own("end to end: ten thousand Services", Tier::All, 60, &[Part::ControlPlane], e2e::run_large)
    },
    // Not at once with the short stage: each starts several control planes.
    Stage {
        after: &[PROGRAMS, E2E],
        ..own(
            "end to end: all stories in all ways",
            Tier::All,
            90,
            &[Part::ControlPlane],
            e2e::run_everything,
        )
    },
    Stage { after: &[PROGRAMS], ..own("the book's commands", Tier::Test, 15, &[Part::Kubectl], book::run) },
    Stage {
        after: &[PROGRAMS],
        ..own(
            "the emulator's page and its Python session",
            Tier::Test,
            10,
            &[Part::AzureClients],
            session::run,
        )
    },
    Stage {
        after: &[PROGRAMS],
        ..own("the README's first minute, with kubectl", Tier::Test, 10, &[Part::Kubectl], first_minute::run)
    },
    // `throttled` judges how soon one call follows another.
    Stage {
        load: Load::Alone,
        after: &[PROGRAMS],
        ..own("the stories of the playground", Tier::Test, 20, &[], playground::run)
    },
    Stage {
        after: &[PROGRAMS],
        ..own(
            "testenv: a control plane that starts, answers and stops",
            Tier::Test,
            15,
            &[Part::ControlPlane, Part::Kubectl],
            testenv::run,
        )
    },
    Stage {
        after: &[PROGRAMS],
        ..own(
            "the simulator's Kubernetes is as the real one",
            Tier::Test,
            15,
            &[Part::ControlPlane],
            honest::run,
        )
    },
    Stage {
        after: &[PROGRAMS],
        ..own(
            "the tour with a real API server",
            Tier::Test,
            15,
            &[Part::ControlPlane, Part::Kubectl],
            tour::run,
        )
    },
    Stage {
        after: &[PROGRAMS],
        ..own(
            "one kubectl session: a real API server and the playground's",
            Tier::Test,
            15,
            &[Part::ControlPlane, Part::Kubectl, Part::KubernetesClient],
            kubectl_session::run,
        )
    },
    Stage {
        load: Load::Single,
        after: &[PROGRAMS],
        work: Work::Cargo {
            arguments: &["bench", "--quiet", "-p", "sluice-engine"],
            environment: &[],
            shows: outputs::benchmark,
        },
        ..cargo("engine benchmark: times and bytes", Tier::Test, 40, &[], &[])
    },
];
