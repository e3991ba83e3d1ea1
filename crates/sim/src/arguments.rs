//! What the command line says.

use sluice_model::seeded::{Bug, Seeded};
use sluice_sim::bugs::plant;
use sluice_sim::names::FaultKind;
use sluice_sim::world::CrashPoint;

/// What is to be done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Task {
    /// Many seeds.
    Seeds {
        /// Where to begin; so many seeds are run from each.
        starts: Vec<u64>,
        /// How many.
        count: u64,
    },
    /// One seed, with its trace.
    Seed(u64),
    /// One story, with its trace.
    Story {
        /// Its name, or a part of it.
        name: String,
        /// A crash on the way.
        crash: Option<CrashPoint>,
    },
    /// One storm, with its trace.
    Storm(FaultKind),
    /// The names of all stories.
    Stories,
    /// All stories, each once.
    AllStories,
    /// All crash points of all stories.
    CrashPoints,
    /// All seeded bugs.
    Bugs {
        /// How many seeds are tried for each.
        seeds: u64,
    },
    /// What many services cost.
    Calls,
    /// How long the shipped budget delays changes.
    Budget,
    /// How soon polls see the end of an operation.
    Polls,
    /// The help text.
    Help,
}

/// Everything the command line said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Arguments {
    pub(crate) task: Task,
    pub(crate) json: bool,
    /// A bug planted by hand.
    pub(crate) seeded: Seeded,
    /// Failing seeds after which to stop.
    pub(crate) failures_max: usize,
    /// Only these faults, whatever the seed says.
    pub(crate) faults: Option<Vec<FaultKind>>,
}

impl Arguments {
    /// The faults that must be named again to replay one of many seeds.
    pub(crate) fn again(&self) -> String {
        match &self.faults {
            None => String::new(),
            Some(faults) if faults.is_empty() => " --faults none".into(),
            Some(faults) => {
                let codes: Vec<&str> = faults.iter().map(|fault| fault.code()).collect();
                format!(" --faults {}", codes.join(","))
            }
        }
    }
}

/// The help text.
pub(crate) const HELP: &str = "\
sluice-sim: the engine under faults, in virtual time

Every seed is one run: users act on a fake cluster, faults strike Kubernetes, Azure and the
process, and after every step the safety invariants S1-S14 are judged. Then the faults stop and
everything must converge: L1-L8. The same seed is the same run, byte for byte.

USAGE
  cargo run --release -p sluice-sim -- [OPTIONS]

WHAT TO RUN (the default is --seeds 200)
  --seeds N          run N seeds, every story and storm, and the crash points of some stories (from 1000 on: of all)
  --start N          begin with seed N (default 0), or with a random one: 'random' picks it and prints it;
                     given twice, N seeds are run from each
  --seed N           run one seed and print its trace
  --story NAME       run one named story and print its trace; a part of the name will do
    --crash SIDE:N   and crash at its N-th external call; SIDE is 'before' or 'after'
  --storm FAULT      run the storm of one fault, like Z5, and print its trace
  --stories          list the named stories
  --all-stories      run every named story and every storm once
  --crash-points     crash before and after every external call of every story
  --bugs             plant every seeded bug and say what catches it (needs the feature seeded-bugs)
    --bug-seeds N    seeds to try for each (default 400)
  --calls            make and remove 500 services, and print what that costs
  --budget           change pods on an Azure without latency, and print how long the budget delays them
  --polls            create single Services on Azures of different speed, and print how long the polls delay their IP

HOW
  --bug NAME         plant one seeded bug, to see what it does (needs the feature seeded-bugs)
  --faults LIST      only these faults, like K1,Z5,P1; 'none' for none
  --failures N       go on until N seeds have failed (default 1)
  --output json      for machines
  --help             this

EXAMPLES
  cargo run --release -p sluice-sim -- --seeds 2000
  cargo run --release -p sluice-sim -- --seeds 5000 --start random
  cargo run --release -p sluice-sim -- --seed 8841
  cargo run --release -p sluice-sim -- --story 'three rapid edits'
  cargo run --release -p sluice-sim --features seeded-bugs -- --bugs

EXIT CODES
  0 all is well   1 something did not hold   2 the command line makes no sense
";

/// Reads the command line.
pub(crate) fn parse(words: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let mut words = words;
    let (mut count, mut seed, mut story, mut crash) = (None, None, None, None);
    let mut starts = Vec::new();
    let (mut bug_seeds, mut failures_max) = (None, None);
    let (mut json, mut seeded, mut faults) = (false, Seeded::NONE, None);
    let mut modes: Vec<(&str, Task)> = Vec::new();
    while let Some(word) = words.next() {
        let (name, mut inline) = match word.split_once('=') {
            Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
            None => (word.clone(), None),
        };
        let mut value =
            || inline.take().or_else(|| words.next()).ok_or_else(|| format!("{name} needs a value"));
        match name.as_str() {
            "--help" | "-h" => modes.push(("--help", Task::Help)),
            "--seeds" => count = Some(number(&name, &value()?)?),
            "--start" => starts.push(match value()?.as_str() {
                "random" => random_start(),
                text => number(&name, text)?,
            }),
            "--seed" => seed = Some(number(&name, &value()?)?),
            "--story" => story = Some(value()?),
            "--storm" => modes.push(("--storm", Task::Storm(fault(&value()?)?))),
            "--crash" => crash = Some(crash_point(&value()?)?),
            "--stories" => modes.push(("--stories", Task::Stories)),
            "--all-stories" => modes.push(("--all-stories", Task::AllStories)),
            "--crash-points" => modes.push(("--crash-points", Task::CrashPoints)),
            "--calls" => modes.push(("--calls", Task::Calls)),
            "--budget" => modes.push(("--budget", Task::Budget)),
            "--polls" => modes.push(("--polls", Task::Polls)),
            "--bugs" => modes.push(("--bugs", Task::Bugs { seeds: 0 })),
            "--bug-seeds" => bug_seeds = Some(number(&name, &value()?)?),
            "--bug" => seeded = plant(bug(&value()?)?)?,
            "--faults" => faults = Some(fault_list(&value()?)?),
            "--failures" => failures_max = Some(number(&name, &value()?)?),
            "--output" => match value()?.as_str() {
                "json" => json = true,
                "text" => json = false,
                other => return Err(format!("--output is 'json' or 'text', not {other:?}")),
            },
            _ => return Err(format!("unknown argument {word:?}")),
        }
        if let Some(left) = inline {
            return Err(format!("{name} takes no value, but was given {left:?}"));
        }
    }
    if let Some(seed) = seed {
        modes.push(("--seed", Task::Seed(seed)));
    }
    if let Some(name) = story {
        modes.push(("--story", Task::Story { name, crash: crash.take() }));
    }
    if crash.is_some() {
        return Err("--crash needs --story".into());
    }
    if count.is_some() || !starts.is_empty() {
        let starts = if starts.is_empty() { vec![0] } else { starts };
        modes.push(("--seeds", Task::Seeds { starts, count: count.unwrap_or(200) }));
    }
    let task = match modes.as_slice() {
        [] => Task::Seeds { starts: vec![0], count: 200 },
        [(_, Task::Bugs { .. })] => Task::Bugs { seeds: bug_seeds.take().unwrap_or(400) },
        [(_, task)] => task.clone(),
        [.., (_, Task::Help)] | [(_, Task::Help), ..] => Task::Help,
        [(one, _), (other, _), ..] => return Err(format!("{one} and {other} do not go together")),
    };
    if bug_seeds.is_some() {
        return Err("--bug-seeds needs --bugs".into());
    }
    let failures_max = usize::try_from(failures_max.unwrap_or(1)).unwrap_or(usize::MAX).max(1);
    Ok(Arguments { task, json, seeded, failures_max, faults })
}

fn number(name: &str, text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{name} needs a number, not {text:?}"))
}

fn crash_point(text: &str) -> Result<CrashPoint, String> {
    let bad = || format!("--crash is 'before:N' or 'after:N', not {text:?}");
    let (side, call) = text.split_once(':').ok_or_else(bad)?;
    let after = match side {
        "before" => false,
        "after" => true,
        _ => return Err(bad()),
    };
    Ok(CrashPoint { call: call.parse().map_err(|_| bad())?, after })
}

fn fault_list(text: &str) -> Result<Vec<FaultKind>, String> {
    if text == "none" {
        return Ok(Vec::new());
    }
    text.split(',').map(fault).collect()
}

fn fault(code: &str) -> Result<FaultKind, String> {
    FaultKind::parse(code.trim()).ok_or_else(|| format!("unknown fault {code:?}"))
}

/// Any number of at most 48 bits, so that it is short enough to type; not from the simulator's own dice.
fn random_start() -> u64 {
    use std::hash::{BuildHasher as _, Hasher as _};
    std::hash::RandomState::new().build_hasher().finish() >> 16
}

fn bug(text: &str) -> Result<Bug, String> {
    let found = sluice_sim::bugs::ALL.iter().find(|bug| format!("{bug:?}").eq_ignore_ascii_case(text));
    found.copied().ok_or_else(|| format!("unknown bug {text:?}; --bugs names them all"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(line: &str) -> Result<Task, String> {
        parse(line.split_whitespace().map(str::to_owned)).map(|arguments| arguments.task)
    }

    #[test]
    fn the_command_line_says_what_to_run() {
        assert_eq!(task(""), Ok(Task::Seeds { starts: vec![0], count: 200 }));
        assert_eq!(task("--seeds 5 --start=7"), Ok(Task::Seeds { starts: vec![7], count: 5 }));
        assert_eq!(task("--seeds 5 --start 0 --start 9"), Ok(Task::Seeds { starts: vec![0, 9], count: 5 }));
        assert_eq!(task("--storm z5"), Ok(Task::Storm(FaultKind::Z5)));
        assert_eq!(task("--seed 8841"), Ok(Task::Seed(8841)));
        assert_eq!(task("--bugs"), Ok(Task::Bugs { seeds: 400 }));
        let crash = Some(CrashPoint { call: 12, after: true });
        assert_eq!(task("--story web --crash after:12"), Ok(Task::Story { name: "web".into(), crash }));
    }

    #[test]
    fn a_random_start_is_another_one_each_time() {
        let (one, other) = (task("--start random"), task("--start random"));
        assert!(matches!(&one, Ok(Task::Seeds { starts, count: 200 }) if starts.len() == 1), "{one:?}");
        assert_ne!(one, other);
    }

    #[test]
    fn nonsense_is_refused_with_its_reason() {
        for (line, word) in [
            ("--sed 1", "unknown argument"),
            ("--seed", "needs a value"),
            ("--seed x", "needs a number"),
            ("--seed 1 --bugs", "do not go together"),
            ("--crash before:1", "needs --story"),
            ("--story a --crash now", "before:N"),
            ("--output xml", "json"),
            ("--bug Nothing", "unknown bug"),
            ("--bugs=1", "takes no value"),
        ] {
            let problem = task(line).unwrap_err();
            assert!(problem.contains(word), "{line}: {problem}");
        }
    }
}
