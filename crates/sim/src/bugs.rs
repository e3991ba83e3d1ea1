//! The proof that the tests bite: every seeded bug must be caught.
//!
//! Each bug is planted by itself. Then the named stories are run, then seeds, then seeds with
//! mixtures of faults that the swarm seldom has, then the crash points of the stories, until
//! something does not hold that holds without the bug. A bug that simulation cannot see is listed
//! with the unit test that sees it.

use sluice_model::seeded::{Bug, Seeded};

use crate::cluster::stories::named;
use crate::crash_points::enumerate_story;
use crate::names::FaultKind;
use crate::run::{Plan, run};

/// Bugs that only a unit test of the engine can see: the test that plants it, and why simulation cannot.
const BY_UNIT_TEST: &[(Bug, &str, &str)] = &[
    (
        Bug::TearDownAfterLook,
        "the_bug_that_tears_down_after_a_look_is_caught",
        "somebody must make resources with our tags under a name that is unknown and has addresses",
    ),
    (
        Bug::ForgetFirstSighting,
        "the_bug_that_forgets_the_first_sighting_is_caught",
        "our pod must leave in the seconds between two listings of which the first shows a new name",
    ),
];

/// Mixtures that are rare in the swarm: what the dice bring together once in thousands of seeds.
const FAMILIES: &[&[FaultKind]] = &[
    &[FaultKind::K1, FaultKind::K3, FaultKind::K4, FaultKind::K5, FaultKind::P1, FaultKind::P2],
    &[FaultKind::Z3, FaultKind::Z4, FaultKind::Z8, FaultKind::Z14],
    &[FaultKind::Z5, FaultKind::Z7],
    &[FaultKind::Z16, FaultKind::Z17],
    &[FaultKind::Z6, FaultKind::Z18, FaultKind::Z20],
];

/// The command that runs something again, with the bug that was planted, if one was.
pub fn replay(what: &str, seeded: Seeded) -> String {
    match ALL.iter().find(|bug| seeded.has(**bug)) {
        Some(bug) => {
            format!("cargo run --release -p sluice-sim --features seeded-bugs -- {what} --bug {bug:?}")
        }
        None => format!("cargo run --release -p sluice-sim -- {what}"),
    }
}

/// The switch with this bug on.
#[cfg(feature = "seeded-bugs")]
pub fn plant(bug: Bug) -> Result<Seeded, String> {
    Ok(Seeded::with(bug))
}

/// The bugs are not in this build; the error says which build has them.
#[cfg(not(feature = "seeded-bugs"))]
pub fn plant(_: Bug) -> Result<Seeded, String> {
    Err("this sluice-sim was built without the seeded bugs; to have them, run: \
         cargo run --release -p sluice-sim --features seeded-bugs -- --bugs"
        .into())
}

/// Every seeded bug, in the order of the model.
pub const ALL: &[Bug] = &[
    Bug::DropTrigger,
    Bug::ForgetUidCheck,
    Bug::DeleteWithoutDrain,
    Bug::FinalizerBeforeGone,
    Bug::PublishBeforeRegistered,
    Bug::DeleteWithoutTagCheck,
    Bug::GiveUpAfterThree,
    Bug::ParkForever,
    Bug::TrustFailedList,
    Bug::TrustStaleList,
    Bug::SkipConfirmGone,
    Bug::OrphanAtFirstSight,
    Bug::ForgetNewSpec,
    Bug::ActBeforeListing,
    Bug::SkipFinalizer,
    Bug::NoBrake,
    Bug::BrakeForgetsEvidence,
    Bug::VanishedFromListNotHeld,
    Bug::ConsentCountsForAll,
    Bug::RewriteOnAdopt,
    Bug::ForgetStatus,
    Bug::ReviveInTeardown,
    Bug::UnregisterFirst,
    Bug::LeavePublicIp,
    Bug::NoDriftSweep,
    Bug::ServeRefused,
    Bug::ForgetInheritedFinalizer,
    Bug::PublishRefusedCreation,
    Bug::ClaimByPut,
    Bug::RepairByPut,
    Bug::LeaveAdoptedBehind,
    Bug::TagReleasedIp,
    Bug::LastSliceWins,
    Bug::CountPods,
    Bug::FailureIsSuccess,
    Bug::UnknownIsFailure,
    Bug::GateForgetsInFlight,
    Bug::NodeMoveForgetsOld,
    Bug::NoBisect,
    Bug::NoPromotion,
    Bug::LateDeleteTakesAddress,
    Bug::CountTerminating,
    Bug::SliceOfAnotherNamespace,
    Bug::RecordIsManaged,
    Bug::DrainUnread,
    Bug::TearDownAfterLook,
    Bug::DrainOthers,
    Bug::EmptyUnlistedLocation,
    Bug::WriteUnlistedNames,
    Bug::ForgetFirstSighting,
    Bug::TakeAddressOfOthers,
    Bug::DeleteOnStaleTags,
    Bug::WipeTagsOfOthers,
    Bug::PollOkIsSuccess,
    Bug::PostOkIsSuccess,
    Bug::IgnoreRetryAfter,
    Bug::NoBudget,
    Bug::EmptyPageEndsList,
    Bug::TwiceInOneCommit,
    Bug::LostIsSuccess,
    Bug::SendAfterLease,
    Bug::HonorLeaseTooShort,
    Bug::AcceptTooLongLease,
];

/// The invariants that should catch a bug. `books` are the engine's own counts, worked out again the slow way.
///
/// What is caught by anything else is not counted: it would be luck.
pub fn expected(bug: Bug) -> &'static [&'static str] {
    match bug {
        Bug::DropTrigger => &["L1", "L4", "L7"],
        Bug::ForgetUidCheck => &["S8", "S14", "L1"],
        Bug::DeleteWithoutDrain => &["S2"],
        Bug::FinalizerBeforeGone => &["S4"],
        Bug::PublishBeforeRegistered => &["S14"],
        Bug::DeleteWithoutTagCheck => &["S1", "S7"],
        Bug::GiveUpAfterThree => &["L1", "L3"],
        Bug::ParkForever => &["L1", "L3"],
        Bug::TrustFailedList => &["S7", "S9"],
        Bug::TrustStaleList => &["S7", "S8", "S13"],
        Bug::SkipConfirmGone => &["S7"],
        Bug::OrphanAtFirstSight => &["S7"],
        Bug::ForgetNewSpec => &["L1"],
        Bug::ActBeforeListing => &["S9"],
        Bug::SkipFinalizer => &["S4"],
        Bug::NoBrake => &["S7"],
        Bug::BrakeForgetsEvidence => &["S7", "L2"],
        Bug::VanishedFromListNotHeld => &["S7"],
        Bug::ConsentCountsForAll => &["S7"],
        Bug::RewriteOnAdopt => &["L6"],
        Bug::ForgetStatus => &["S14", "L1", "L7"],
        Bug::ReviveInTeardown => &["L1"],
        Bug::UnregisterFirst => &["S3"],
        Bug::LeavePublicIp => &["S4", "L5"],
        Bug::NoDriftSweep => &["L1", "L5", "L6"],
        Bug::ServeRefused => &["S14"],
        Bug::ForgetInheritedFinalizer => &["L2"],
        Bug::PublishRefusedCreation => &["S14"],
        Bug::ClaimByPut => &["S1"],
        Bug::RepairByPut => &["S1"],
        Bug::LeaveAdoptedBehind => &["S4", "L1", "L5"],
        Bug::TagReleasedIp => &["S1"],
        Bug::LastSliceWins => &["L1"],
        Bug::CountPods => &["S13"],
        Bug::FailureIsSuccess => &["S2", "S14", "L1"],
        Bug::UnknownIsFailure => &["S2"],
        Bug::GateForgetsInFlight => &["S2"],
        Bug::NodeMoveForgetsOld => &["L1", "books"],
        Bug::NoBisect => &["S11", "L7"],
        Bug::NoPromotion => &["L1", "books"],
        Bug::LateDeleteTakesAddress => &["S8", "L1", "books"],
        Bug::CountTerminating => &["L1"],
        Bug::SliceOfAnotherNamespace => &["L1"],
        Bug::RecordIsManaged
        | Bug::DrainUnread
        | Bug::DrainOthers
        | Bug::EmptyUnlistedLocation
        | Bug::WriteUnlistedNames
        | Bug::ForgetFirstSighting
        | Bug::TakeAddressOfOthers => &["S1"],
        Bug::TearDownAfterLook => &["S7"],
        Bug::DeleteOnStaleTags => &["S1"],
        Bug::WipeTagsOfOthers => &["S1"],
        Bug::PollOkIsSuccess => &["S4", "S14", "L1"],
        Bug::PostOkIsSuccess => &["S14", "L1"],
        Bug::IgnoreRetryAfter => &["S12"],
        Bug::NoBudget => &["S12"],
        Bug::EmptyPageEndsList => &["S4", "S7", "S9"],
        Bug::TwiceInOneCommit => &["S10"],
        Bug::LostIsSuccess => &["S2", "S14", "L1"],
        Bug::SendAfterLease | Bug::HonorLeaseTooShort | Bug::AcceptTooLongLease => &["S9"],
    }
}

/// How one bug was caught.
#[derive(Clone, Debug)]
pub struct Catch {
    /// The bug.
    pub bug: Bug,
    /// The invariant that caught it and the sentence it said; `None` if nothing did.
    pub by: Option<(String, String)>,
    /// The story, seed or crash point.
    pub at: String,
    /// A unit test caught it, not simulation.
    pub by_unit_test: bool,
}

/// Plants one bug and looks for it, in at most so many seeds.
///
/// # Errors
/// In a build without the seeded bugs, as [`plant`] says.
pub fn hunt(bug: Bug, seeds: u64) -> Result<Catch, String> {
    plant(bug).map(|seeded| hunt_planted(bug, seeded, seeds))
}

fn hunt_planted(bug: Bug, seeded: Seeded, seeds: u64) -> Catch {
    if let Some((_, test, why)) = BY_UNIT_TEST.iter().find(|(one, ..)| *one == bug) {
        let by = Some((format!("unit test {test}"), (*why).to_owned()));
        return Catch { bug, by, at: String::new(), by_unit_test: true };
    }
    let caught = |violation: &crate::names::Violation, at: String| Catch {
        bug,
        by: Some((violation.code().to_owned(), violation.what.clone())),
        at,
        by_unit_test: false,
    };
    let meant = |violation: &crate::names::Violation| expected(bug).contains(&violation.code());
    // What fails without the bug as well says nothing about the bug.
    let sound = |plan: Plan| run(&plan).failure.is_none();
    for story in named() {
        let report = run(&Plan::of_story(&story, seeded, false, None));
        if let Some((_, violation)) = &report.failure
            && meant(violation)
            && sound(Plan::of_story(&story, Seeded::NONE, false, None))
        {
            return caught(violation, format!("story {:?}", story.name));
        }
    }
    for seed in 0..seeds {
        let report = run(&Plan::of_seed(seed, seeded, false));
        if let Some((_, violation)) = &report.failure
            && meant(violation)
            && sound(Plan::of_seed(seed, Seeded::NONE, false))
        {
            return caught(violation, format!("seed {seed}"));
        }
    }
    for family in FAMILIES {
        for seed in 0..seeds {
            let report = run(&Plan::of_seed(seed, seeded, false).with_only(family));
            if let Some((_, violation)) = &report.failure
                && meant(violation)
                && sound(Plan::of_seed(seed, Seeded::NONE, false).with_only(family))
            {
                let codes: Vec<&str> = family.iter().map(|kind| kind.code()).collect();
                return caught(violation, format!("seed {seed} --faults {}", codes.join(",")));
            }
        }
    }
    let failed = named().iter().step_by(4).find_map(|story| enumerate_story(story, seeded).failed);
    if let Some(failed) = failed
        && let Some((_, violation)) = &failed.report.failure
        && meant(violation)
    {
        return caught(violation, format!("crash points of {:?}", failed.story));
    }
    Catch { bug, by: None, at: String::new(), by_unit_test: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_bug_is_listed_twice_and_few_are_left_to_unit_tests() {
        let distinct: std::collections::BTreeSet<Bug> = ALL.iter().copied().collect();
        assert_eq!(distinct.len(), ALL.len());
        assert_eq!(ALL.last(), Some(&Bug::AcceptTooLongLease));
        assert_eq!(ALL.len(), Bug::AcceptTooLongLease as usize + 1);
        assert!(BY_UNIT_TEST.len() <= 5);
    }
}
