//! What a stage is, and how `check` and `test` run theirs.
//!
//! Every stage runs as a process of its own (`cargo xtask stage NAME`), so that several run side by side, each
//! with a log of its own and a time limit. The parts that stages need are prepared first, in the background. A
//! stage whose part is missing is skipped, which the last line counts; with `SLUICE_REQUIRE_ALL=1` it fails, so
//! that green in CI means that everything has run.

use std::io::{self, BufRead as _, BufReader};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::time::Duration;

use crate::parts::{self, Part, Trouble};
use crate::programs::target_folder;
use crate::runner::{self, End, Job, Load};
use crate::stages::STAGES;
use crate::tree::{Tree, root};
use crate::{guard, nearest, seed};

/// When a stage is run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tier {
    /// By `check`, and so by `test` too.
    Check,
    /// By `test`.
    Test,
    /// By `test --all` only: too long for every commit.
    All,
}

/// One row of the table.
pub(crate) struct Stage {
    /// What it is about, in a few words.
    pub(crate) name: &'static str,
    /// When it is run.
    pub(crate) tier: Tier,
    /// How much of the machine it needs.
    pub(crate) load: Load,
    /// The time limit, in minutes.
    pub(crate) limit_min: u64,
    /// What it needs beside cargo itself.
    pub(crate) needs: &'static [Part],
    /// Stages that must pass first.
    pub(crate) after: &'static [&'static str],
    /// What it does.
    pub(crate) work: Work,
}

/// What a stage does.
pub(crate) enum Work {
    /// Run cargo and look at what it printed.
    Cargo {
        /// The words after `cargo`.
        arguments: &'static [&'static str],
        /// What to add to the environment.
        environment: &'static [(&'static str, &'static str)],
        /// Whether the output shows that the thing was really there.
        shows: fn(&str) -> Result<(), String>,
    },
    /// A check of our own; returns what it found.
    Own(fn(&Tree) -> Result<String, Vec<String>>),
}

/// Runs every stage of a tier.
pub(crate) fn run_all(tier: Tier) -> ExitCode {
    match all_passed(tier) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn all_passed(tier: Tier) -> Result<bool, String> {
    let stages: Vec<&Stage> = STAGES.iter().filter(|stage| stage.tier <= tier).collect();
    let seed = seed::current()?;
    let folder = target_folder().join("stages");
    println!("{} stages with seed {seed} ({}={seed} repeats it)", stages.len(), seed::VARIABLE);
    println!("the log of each stage is in {}", folder.display());
    let failed = |error: std::io::Error| format!("the stages cannot be run: {error}");
    let program = std::env::current_exe().map_err(failed)?;
    let mut jobs = jobs_of(&stages, &program);
    for job in &mut jobs {
        job.command.env(seed::VARIABLE, seed.to_string());
    }
    let ended = runner::run_all(jobs, &folder, &mut std::io::stdout()).map_err(failed)?;
    runner::summary(&ended, &mut std::io::stdout()).map_err(failed)
}

/// The jobs of some stages: their parts first.
fn jobs_of(stages: &[&Stage], program: &std::path::Path) -> Vec<Job> {
    let mut needed: Vec<Part> = Vec::new();
    let mut open: Vec<Part> = stages.iter().flat_map(|stage| stage.needs).copied().collect();
    while let Some(part) = open.pop() {
        if !needed.contains(&part) {
            needed.push(part);
            open.extend(part.needs());
        }
    }
    let without = if parts::are_all_required() { End::Failed } else { End::Skipped };
    let parts = Part::ALL.into_iter().filter(|part| needed.contains(part)).map(|part| Job {
        name: part.job(),
        command: command(program, &["part", part.name()], Load::Background),
        load: Load::Background,
        limit: part.limit(),
        after: part.needs().iter().map(|part| part.job()).collect(),
        prepares: true,
        without,
    });
    let of_stage = |stage: &&Stage| Job {
        name: stage.name.to_string(),
        command: command(program, &["stage", stage.name], stage.load),
        load: stage.load,
        limit: Duration::from_secs(stage.limit_min * 60),
        after: stage
            .needs
            .iter()
            .map(|part| part.job())
            .chain(stage.after.iter().map(ToString::to_string))
            .collect(),
        prepares: false,
        without: End::Failed,
    };
    parts.chain(stages.iter().map(of_stage)).collect()
}

/// Jobs that compute run at lower priority, so that the timers of the others stay exact.
fn command(program: &std::path::Path, words: &[&str], load: Load) -> Command {
    let niceness = match load {
        Load::Busy => Some("7"),
        Load::Single | Load::Background => Some("10"),
        Load::Waits | Load::Alone => None,
    };
    let mut command = match niceness {
        Some(niceness) => {
            let mut command = Command::new("nice");
            command.args(["-n", niceness]).arg(program);
            command
        }
        None => Command::new(program),
    };
    command.args(words);
    command
}

/// For a test: a stage that waits until its runner has ended.
const UNTIL_ABANDONED: &str = "--until-abandoned";

/// The task: one stage, by its name; without a name, the list of all.
pub(crate) fn task(words: &[String]) -> ExitCode {
    guard::end_with_the_runner();
    if words == [UNTIL_ABANDONED] {
        loop {
            std::thread::park();
        }
    }
    if words.is_empty() {
        for stage in STAGES {
            let tier = match stage.tier {
                Tier::Check => "check",
                Tier::Test => "test",
                Tier::All => "test --all",
            };
            let needs: Vec<&str> = stage.needs.iter().map(|part| part.name()).collect();
            println!(
                "{:<60} {tier:<11} {:<11} {}",
                stage.name,
                format!("{:?}", stage.load),
                needs.join(", ")
            );
        }
        return ExitCode::SUCCESS;
    }
    let name = words.join(" ");
    let Some(stage) = STAGES.iter().find(|stage| stage.name == name) else {
        let names: Vec<&str> = STAGES.iter().map(|stage| stage.name).collect();
        eprintln!("there is no stage {name:?}; did you mean {:?}?", nearest::of(&name, &names));
        return ExitCode::from(2);
    };
    let result = run_one(stage);
    for problem in result.as_ref().err().into_iter().flatten() {
        eprintln!("{problem}");
    }
    if std::env::var_os(guard::MARK).is_some() {
        runner::write_cpu_time();
    }
    if result.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The task: one part, by its name; without a name, the list of all.
pub(crate) fn part_task(words: &[String]) -> ExitCode {
    guard::end_with_the_runner();
    if words.is_empty() {
        for part in Part::ALL {
            println!("{}", part.name());
        }
        return ExitCode::SUCCESS;
    }
    let name = words.join(" ");
    let Some(part) = Part::ALL.into_iter().find(|part| part.name() == name) else {
        let names: Vec<&str> = Part::ALL.iter().map(|part| part.name()).collect();
        eprintln!("there is no part {name:?}; did you mean {:?}?", nearest::of(&name, &names));
        return ExitCode::from(2);
    };
    let result = part.ensure();
    let code = match &result {
        Ok(()) => {
            println!("{name} is installed");
            ExitCode::SUCCESS
        }
        Err(trouble) => {
            eprintln!("{trouble}");
            match trouble {
                Trouble::Missing(_) => ExitCode::from(runner::MISSING),
                Trouble::Broken(_) => ExitCode::FAILURE,
            }
        }
    };
    if std::env::var_os(guard::MARK).is_some() {
        runner::write_cpu_time();
    }
    code
}

fn run_one(stage: &Stage) -> Result<(), Vec<String>> {
    // The runner has prepared them already; a stage that is run alone prepares its own.
    if std::env::var_os(guard::MARK).is_none() {
        Part::ensure_all(stage.needs).map_err(|trouble| vec![trouble.to_string()])?;
    }
    match &stage.work {
        Work::Cargo { arguments, environment, shows } => cargo(arguments, environment, *shows).map(|_| ()),
        Work::Own(check) => check(&Tree::read_repository()).map(|text| println!("{text}")),
    }
}

/// Runs cargo in the root, shows its output as it comes, and gives it back when all is well.
pub(crate) fn cargo(
    arguments: &[&str],
    environment: &[(&str, &str)],
    shows: fn(&str) -> Result<(), String>,
) -> Result<String, Vec<String>> {
    let text = cargo_with(arguments, environment, true)?;
    shows(&text).map_err(|why| vec![format!("`cargo {}`: {why}", arguments.join(" "))])?;
    Ok(text)
}

/// Runs cargo in the root and gives back what it printed, without showing it.
pub(crate) fn cargo_quietly(arguments: &[&str]) -> Result<String, Vec<String>> {
    cargo_with(arguments, &[], false)
}

fn cargo_with(arguments: &[&str], environment: &[(&str, &str)], shown: bool) -> Result<String, Vec<String>> {
    let line = format!("cargo {}", arguments.join(" "));
    if shown {
        println!("$ {line}");
    }
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.args(arguments).envs(environment.iter().copied()).current_dir(root());
    match stream(&mut command, shown) {
        Ok((text, status)) if status.success() => Ok(text),
        Ok((_, status)) => Err(vec![format!("`{line}` ended with {status}")]),
        Err(error) => Err(vec![format!("`{line}` cannot be run: {error}")]),
    }
}

/// Runs a command, prints each line as it comes if it is to be shown, and returns what it printed and how it ended.
pub(crate) fn stream(command: &mut Command, shown: bool) -> io::Result<(String, ExitStatus)> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let mut text = String::new();
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).lines() {
            let line = line?;
            if shown {
                println!("{line}");
            }
            text.push_str(&line);
            text.push('\n');
        }
    }
    Ok((text, child.wait()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_stage_builds_on_is_run_by_every_command_that_runs_it() {
        for stage in STAGES {
            for after in stage.after {
                let basis = STAGES.iter().find(|other| other.name == *after);
                assert!(basis.is_some_and(|basis| basis.tier <= stage.tier), "{} needs {after}", stage.name);
            }
        }
    }

    #[test]
    fn stages_have_names_of_their_own() {
        let mut names: Vec<&str> = STAGES.iter().map(|stage| stage.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), STAGES.len());
    }

    #[test]
    fn the_parts_of_a_part_are_prepared_before_it() {
        let stages: Vec<&Stage> = STAGES.iter().collect();
        let jobs = jobs_of(&stages, std::path::Path::new("xtask"));
        for job in &jobs {
            for after in &job.after {
                assert!(jobs.iter().any(|other| other.name == *after), "{} waits for {after}", job.name);
            }
        }
    }
}
