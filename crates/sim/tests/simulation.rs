//! The simulator itself: it repeats itself, its stories pass, and it notices what it should.

use sluice_model::seeded::{Bug, Seeded};
use sluice_sim::bugs::hunt;
use sluice_sim::cluster::stories::named;
use sluice_sim::crash_points::enumerate_story;
use sluice_sim::names::FaultKind;
use sluice_sim::run::{Plan, run};

#[test]
fn the_same_seed_gives_the_same_trace_byte_for_byte() {
    for seed in [3, 9, 17] {
        let trace = || run(&Plan::of_seed(seed, Seeded::NONE, true)).trace;
        let first = trace();
        assert!(first.len() > 1_000, "seed {seed} leaves no trace");
        assert_eq!(first, trace(), "seed {seed}");
    }
}

#[test]
fn a_trace_changes_nothing() {
    let steps = |traced| run(&Plan::of_seed(5, Seeded::NONE, traced)).steps;
    assert_eq!(steps(true), steps(false));
}

#[test]
fn every_named_story_passes_without_faults() {
    for story in named() {
        let report = run(&Plan::of_story(&story, Seeded::NONE, false, None));
        assert_eq!(report.failure, None, "{}", story.name);
    }
}

#[test]
fn the_first_seeds_pass() {
    for seed in 0..10 {
        let report = run(&Plan::of_seed(seed, Seeded::NONE, false));
        assert_eq!(report.failure, None, "seed {seed}");
    }
}

#[test]
fn the_wait_inside_a_failed_operation_is_kept() {
    // In each of these somebody would have gone too early, had only the poll been barred.
    for seed in [33, 35, 51, 62, 146] {
        let report = run(&Plan::of_seed(seed, Seeded::NONE, false).with_only(&[FaultKind::Z8]));
        assert_eq!(report.failure, None, "seed {seed}");
    }
}

#[test]
fn a_story_survives_a_crash_before_and_after_every_call() {
    let points = enumerate_story(&named()[0], Seeded::NONE);
    assert!(
        points.failed.is_none(),
        "{}",
        points.failed.map(|failed| failed.to_string()).unwrap_or_default()
    );
    assert!(points.points > 50, "{}", points.points);
}

#[cfg(feature = "seeded-bugs")]
#[test]
fn planted_bugs_are_caught_by_the_invariant_they_break() {
    for (bug, code) in [
        (Bug::DeleteWithoutDrain, "S2"),
        (Bug::UnregisterFirst, "S3"),
        (Bug::FinalizerBeforeGone, "S4"),
        (Bug::CountPods, "S13"),
        (Bug::TwiceInOneCommit, "S10"),
    ] {
        let caught = hunt(bug, 0).expect("this build has the bugs").by.map(|(by, _)| by);
        assert_eq!(caught.as_deref(), Some(code), "{bug:?}");
    }
}

#[cfg(not(feature = "seeded-bugs"))]
#[test]
fn a_build_without_the_bugs_names_the_command_that_has_them() {
    let problem = hunt(Bug::NoBrake, 0).expect_err("there is nothing to plant");
    assert!(
        problem.ends_with("cargo run --release -p sluice-sim --features seeded-bugs -- --bugs"),
        "{problem}"
    );
}
