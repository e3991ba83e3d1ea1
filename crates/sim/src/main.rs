//! `sluice-sim`: runs seeds, stories, crash points, seeded bugs and loads, and says what came of it.
#![allow(clippy::print_stderr)] // The one room of this crate that speaks to a terminal.

/// Writes a line to the terminal; whoever has stopped reading misses nothing.
macro_rules! say {
    ($($words:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout(), $($words)*);
    }};
}

mod arguments;
mod cores;
mod report;

use std::ops::ControlFlow;
use std::process::ExitCode;

use sluice_model::seeded::Seeded;
use sluice_sim::bugs::replay;
use sluice_sim::cluster::stories::{Storm, Story, named, storms};
use sluice_sim::crash_points::{Enumeration, enumerate_story};
use sluice_sim::run::{Plan, Report, run};

use arguments::{Arguments, Task};
use report::{Progress, Summary, Told};

/// A short run enumerates the crash points of every so-manieth story, others with every `--start`.
const STORIES_TURN: usize = 6;
/// A run of so many seeds is a long one: it enumerates the crash points of all stories.
const LONG_RUN: u64 = 1_000;

fn main() -> ExitCode {
    let arguments = match arguments::parse(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(problem) => {
            eprintln!("error: {problem}\n\nTry --help.");
            return ExitCode::from(2);
        }
    };
    match carry_out(&arguments) {
        Ok(false) => ExitCode::SUCCESS,
        Ok(true) => ExitCode::FAILURE,
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::from(2)
        }
    }
}

/// Does the task; says whether something did not hold.
fn carry_out(arguments: &Arguments) -> Result<bool, String> {
    let failed = match &arguments.task {
        Task::Help => {
            say!("{}", arguments::HELP.trim_end());
            false
        }
        Task::Stories => {
            for story in named() {
                say!("{}", story.name);
            }
            false
        }
        Task::Seeds { starts, count } => seeds(arguments, starts, *count),
        Task::Seed(seed) => one(arguments, &plan_of(arguments, *seed, true), &format!("seed {seed}")),
        Task::Story { name, crash } => {
            let story = find_story(name)?;
            let plan = Plan::of_story(&story, arguments.seeded, true, *crash);
            one(arguments, &plan, &format!("story {:?}", story.name))
        }
        Task::Storm(fault) => {
            let plan = Plan::of_storm(&Storm::of(*fault), arguments.seeded, true);
            one(arguments, &plan, &format!("storm {fault}"))
        }
        Task::CrashPoints => crash_points(arguments),
        Task::AllStories => all_stories(arguments),
        Task::Bugs { seeds } => bugs(arguments, *seeds)?,
        Task::Calls => calls(arguments),
        Task::Budget => budget(arguments),
        Task::Polls => polls(arguments),
    };
    Ok(failed)
}

fn seeds(arguments: &Arguments, starts: &[u64], count: u64) -> bool {
    let mut summary = Summary::new(starts);
    if !arguments.json {
        say!("{}", summary.ranges(count));
    }
    let mut progress = Progress::new("seeds", count.saturating_mul(starts.len() as u64));
    let simulate = |seed| (seed, run(&plan_of(arguments, seed, false)));
    let all = starts.iter().flat_map(|start| *start..start.saturating_add(count));
    cores::in_order(all, simulate, |(seed, outcome)| {
        summary.add(&outcome);
        if let Some((at, violation)) = &outcome.failure {
            progress.clear();
            let replay = replay(&format!("--seed {seed}{}", arguments.again()), arguments.seeded);
            eprintln!("seed {seed} failed at t={at}: {violation}. Replay: {replay}");
            summary.failures.push((seed, violation.to_string()));
            if summary.failures.len() >= arguments.failures_max {
                return ControlFlow::Break(());
            }
        }
        progress.step(summary.seeds);
        ControlFlow::Continue(())
    });
    progress.clear();
    if summary.failures.is_empty() {
        summary.stories(told_once(arguments.seeded));
        let first = starts.first().copied().unwrap_or(0);
        let turn = usize::try_from(first % STORIES_TURN as u64).unwrap_or(0);
        let chosen = |at: usize| count >= LONG_RUN || at % STORIES_TURN == turn;
        let points = enumerate_with_progress(chosen, arguments.seeded);
        summary.crash_points(&points);
    }
    summary.print(arguments.json);
    summary.has_failed()
}

fn plan_of(arguments: &Arguments, seed: u64, traced: bool) -> Plan {
    let plan = Plan::of_seed(seed, arguments.seeded, traced);
    match &arguments.faults {
        Some(faults) => plan.with_only(faults),
        None => plan,
    }
}

fn enumerate_with_progress(chosen: impl Fn(usize) -> bool, seeded: Seeded) -> Enumeration {
    let stories: Vec<Story> =
        named().into_iter().enumerate().filter(|(at, _)| chosen(*at)).map(|(_, story)| story).collect();
    let mut progress = Progress::new("stories", stories.len() as u64);
    let mut points = Enumeration::default();
    cores::in_order(
        &stories,
        |story| enumerate_story(story, seeded),
        |of_one| {
            points.add(of_one);
            progress.step(points.stories as u64);
            if points.failed.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        },
    );
    progress.clear();
    if let Some(failed) = &points.failed {
        eprintln!("{failed}");
    }
    points
}

fn crash_points(arguments: &Arguments) -> bool {
    let points = enumerate_with_progress(|_| true, arguments.seeded);
    say!("stories                 {}", points.stories);
    say!("crash points enumerated {}", points.points);
    say!("steps                   {}", points.steps);
    say!("invariants checked      {}", points.coverage.judged_total());
    if points.failed.is_none() {
        say!("{} crash points passed", points.points);
    }
    points.failed.is_some()
}

fn one(arguments: &Arguments, plan: &Plan, what: &str) -> bool {
    let outcome: Report = run(plan);
    if arguments.json {
        say!("{}", report::one_as_json(&outcome));
    } else {
        say!("{}", outcome.trace.trim_end());
    }
    match &outcome.failure {
        _ if arguments.json => {}
        Some((at, violation)) => say!("{what} failed at t={at}: {violation}"),
        None => say!("{what} passed after {} steps at t={}", outcome.steps, outcome.ended),
    }
    outcome.failure.is_some()
}

fn calls(arguments: &Arguments) -> bool {
    let mut rows = Vec::new();
    for target in sluice_sim::calls::targets() {
        match sluice_sim::calls::measure(&target.load) {
            Ok(measured) => rows.push((target, measured)),
            Err(violation) => {
                eprintln!("{}: {violation}", target.name);
                return true;
            }
        }
    }
    let failed = rows.iter().any(|(target, measured)| !target.misses(measured).is_empty());
    if arguments.json {
        say!("{}", report::calls_as_json(&rows));
    } else {
        report::calls(&rows);
    }
    failed
}

fn budget(arguments: &Arguments) -> bool {
    let mut rows = Vec::new();
    for target in sluice_sim::calls::budget::targets() {
        match sluice_sim::calls::budget::measure(&target) {
            Ok(figures) => rows.push((target, figures)),
            Err(violation) => {
                eprintln!("{}: {violation}", target.name);
                return true;
            }
        }
    }
    let failed = rows.iter().any(|(target, figures)| !target.misses(figures).is_empty());
    if arguments.json {
        say!("{}", report::budget_as_json(&rows));
    } else {
        report::budget(&rows);
    }
    failed
}

fn polls(arguments: &Arguments) -> bool {
    let mut rows = Vec::new();
    for target in sluice_sim::calls::polls::targets() {
        match sluice_sim::calls::polls::measure(&target) {
            Ok(figures) => rows.push((target, figures)),
            Err(violation) => {
                eprintln!("{target}: {violation}");
                return true;
            }
        }
    }
    let failed = rows.iter().any(|(target, figures)| !target.misses(figures).is_empty());
    if arguments.json {
        say!("{}", report::polls_as_json(&rows));
    } else {
        report::polls(&rows);
    }
    failed
}

fn all_stories(arguments: &Arguments) -> bool {
    let told = told_once(arguments.seeded);
    let gaps = told.coverage.gaps();
    for gap in &gaps {
        say!("gap: {gap}");
    }
    say!("{} of {} stories and storms passed", told.all - told.failed, told.all);
    told.failed > 0 || !gaps.is_empty()
}

/// Tells every named story and every storm once.
fn told_once(seeded: Seeded) -> Told {
    let stories = named().into_iter().map(|story| {
        let what = format!("--story {:?}", story.name);
        (what, Plan::of_story(&story, seeded, false, None))
    });
    let storms = storms()
        .into_iter()
        .map(|storm| (format!("--storm {}", storm.fault), Plan::of_storm(&storm, seeded, false)));
    let all: Vec<(String, Plan)> = stories.chain(storms).collect();
    let mut told = Told { all: all.len(), ..Told::default() };
    cores::in_order(
        &all,
        |(what, plan)| (what, run(plan)),
        |(what, report)| {
            if let Some((at, violation)) = &report.failure {
                told.failed += 1;
                eprintln!("failed at t={at}: {violation}. Replay: {}", replay(what, seeded));
            }
            told.coverage.add(&report.coverage);
            ControlFlow::Continue(())
        },
    );
    told
}

fn find_story(name: &str) -> Result<Story, String> {
    let stories = named();
    if let Some(story) = stories.iter().find(|story| story.name == name) {
        return Ok(story.clone());
    }
    let near: Vec<&str> = stories.iter().map(|story| story.name).filter(|it| it.contains(name)).collect();
    match near.as_slice() {
        [only] => stories.iter().find(|story| story.name == *only).cloned().ok_or_else(String::new),
        [] => Err(format!("there is no story {name:?}; --stories lists them")),
        several => Err(format!("{name:?} could be any of: {}", several.join("; "))),
    }
}

fn bugs(arguments: &Arguments, seeds: u64) -> Result<bool, String> {
    let mut caught = 0;
    let mut rows = Vec::new();
    let mut progress = Progress::new("bugs", sluice_sim::bugs::ALL.len() as u64);
    let mut missing = None;
    cores::in_order(
        sluice_sim::bugs::ALL,
        |bug| sluice_sim::bugs::hunt(*bug, seeds),
        |row| {
            let row = match row {
                Ok(row) => row,
                Err(not_in_this_build) => {
                    missing = Some(not_in_this_build);
                    return ControlFlow::Break(());
                }
            };
            caught += usize::from(row.by.is_some());
            progress.clear();
            if !arguments.json {
                say!("{}", report::bug_row(&row));
            }
            rows.push(row);
            progress.step(rows.len() as u64);
            ControlFlow::Continue(())
        },
    );
    progress.clear();
    if let Some(problem) = missing {
        return Err(problem);
    }
    if arguments.json {
        say!("{}", report::bugs_as_json(&rows));
    } else {
        say!("caught {caught}/{}", rows.len());
    }
    Ok(caught < rows.len())
}
