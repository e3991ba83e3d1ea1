//! P1, enumerated: a crash before and after every external call of every named story.
//!
//! Each story is run once to count its calls to Azure and to Kubernetes, polls and pages included.
//! Then it is run again for every call, with the process dying right before it or right after it
//! has left, and each of those runs must keep S1-S14 and end well.

use sluice_model::seeded::Seeded;

use crate::bugs::replay;
use crate::cluster::stories::Story;
use crate::coverage::Coverage;
use crate::run::{Plan, Report, run};
use crate::world::CrashPoint;

/// A crash point at which something did not hold.
#[derive(Clone, Debug)]
pub struct Failed {
    /// The story.
    pub story: &'static str,
    /// The crash; `None` when the story fails without one.
    pub crash: Option<CrashPoint>,
    /// The bug that was planted.
    pub seeded: Seeded,
    /// The run.
    pub report: Box<Report>,
}

impl core::fmt::Display for Failed {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (at, what) = match &self.report.failure {
            Some((at, violation)) => (*at, violation.to_string()),
            None => (self.report.ended, "nothing".into()),
        };
        let mut run = format!("--story {:?}", self.story);
        if let Some(crash) = self.crash {
            let side = if crash.after { "after" } else { "before" };
            run.push_str(&format!(" --crash {side}:{}", crash.call));
        }
        let replay = replay(&run, self.seeded);
        write!(f, "story {:?} failed at t={at}: {what}. Replay: {replay}", self.story)
    }
}

/// What came of an enumeration.
#[derive(Clone, Debug, Default)]
pub struct Enumeration {
    /// Stories run.
    pub stories: usize,
    /// Crash points tried.
    pub points: u64,
    /// Steps in all.
    pub steps: u64,
    /// What was exercised.
    pub coverage: Coverage,
    /// The first crash point that failed.
    pub failed: Option<Failed>,
}

impl Enumeration {
    /// Takes another one in; the first failure stays.
    pub fn add(&mut self, other: Enumeration) {
        self.stories += other.stories;
        self.points += other.points;
        self.steps += other.steps;
        self.coverage.add(&other.coverage);
        self.failed = self.failed.take().or(other.failed);
    }
}

/// Every crash point of one story; stops at the first that fails.
pub fn enumerate_story(story: &Story, seeded: Seeded) -> Enumeration {
    let mut all = Enumeration { stories: 1, ..Enumeration::default() };
    let mut try_one = |crash: Option<CrashPoint>| -> Result<u64, Failed> {
        let report = run(&Plan::of_story(story, seeded, false, crash));
        all.steps += report.steps;
        all.coverage.add(&report.coverage);
        if report.failure.is_some() {
            return Err(Failed { story: story.name, crash, seeded, report: Box::new(report) });
        }
        all.points += u64::from(crash.is_some());
        Ok(report.external_calls)
    };
    let result = (|| {
        let calls = try_one(None)?;
        for call in 0..calls {
            try_one(Some(CrashPoint { call, after: false }))?;
            try_one(Some(CrashPoint { call, after: true }))?;
        }
        Ok(())
    })();
    all.failed = result.err();
    all
}

#[cfg(all(test, feature = "seeded-bugs"))]
mod tests {
    use sluice_model::seeded::Bug;

    use super::*;
    use crate::cluster::stories::named;

    #[test]
    fn a_crash_point_that_fails_says_how_to_run_it_again() {
        let story = named().into_iter().next().expect("there are stories");
        let report = Box::new(run(&Plan::of_story(&story, Seeded::NONE, false, None)));
        let crash = Some(CrashPoint { call: 12, after: true });
        let failed = Failed { story: "a", crash, seeded: Seeded::with(Bug::NoBrake), report };
        let text = failed.to_string();
        let command = "Replay: cargo run --release -p sluice-sim --features seeded-bugs -- \
                       --story \"a\" --crash after:12 --bug NoBrake";
        assert!(text.ends_with(command), "{text}");
    }
}
