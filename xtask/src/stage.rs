//! Runs stages one after the other, with a heading, a time, and a summary at the end.
//!
//! A stage that fails does not hide the others: all are run, and the last line counts them.
//! A stage whose tool is missing is skipped, loudly; with `CI=true` that is a failure, so that
//! green in CI always means that everything has run.

use std::io::{BufRead, BufReader};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use crate::stages::STAGES;
use crate::tree::{Tree, root};
use crate::{browser, conformance, testenv};

/// When a stage is run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tier {
    /// By `check`, and so by `test` too.
    Check,
    /// By `test` only.
    Test,
}

/// One row of the table.
pub(crate) struct Stage {
    /// What it is about, in a few words.
    pub(crate) name: &'static str,
    /// When it is run.
    pub(crate) tier: Tier,
    /// A tool of the toolchain that it needs beside cargo itself.
    pub(crate) needs: Option<&'static str>,
    /// A stage without whose success this one proves nothing.
    pub(crate) after: Option<&'static str>,
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
    /// A check of our own; tells what it found.
    Own(fn(&Tree) -> Result<String, Vec<String>>),
}

/// How a stage ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    Passed,
    Failed,
    Skipped,
}

/// Runs every stage of a tier.
pub(crate) fn run_all(tier: Tier) -> ExitCode {
    let stages: Vec<&Stage> = STAGES.iter().filter(|stage| stage.tier <= tier).collect();
    let must_have_all = std::env::var("CI").is_ok_and(|value| value == "true");
    let mut ends: Vec<(&str, End, Duration)> = Vec::new();
    for (at, stage) in stages.iter().enumerate() {
        println!("\n== {}/{} {}", at + 1, stages.len(), stage.name);
        let began = Instant::now();
        let end = match stage.needs.map_or(Ok(()), ensure_component) {
            Ok(()) if !is_grounded(stage, &ends) => {
                eprintln!("this proves nothing as long as {:?} fails", stage.after.unwrap_or_default());
                End::Failed
            }
            Ok(()) => run_one(stage),
            Err(why) if must_have_all => {
                eprintln!("MISSING, and CI=true forbids to go on without: {why}");
                End::Failed
            }
            Err(why) => {
                eprintln!("SKIPPED, because a part is missing: {why}");
                End::Skipped
            }
        };
        let took = began.elapsed();
        println!("-- {}: {} in {:.1} s", stage.name, word(end), took.as_secs_f64());
        ends.push((stage.name, end, took));
    }
    println!("\n== summary");
    for (name, end, took) in &ends {
        println!("{:<8}{:>8.1} s  {name}", word(*end), took.as_secs_f64());
    }
    let ends: Vec<End> = ends.iter().map(|(_, end, _)| *end).collect();
    println!("{}", last_line(&ends));
    if ends.contains(&End::Failed) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Whether the stage that it builds on has passed.
fn is_grounded(stage: &Stage, ends: &[(&str, End, Duration)]) -> bool {
    stage.after.is_none_or(|after| ends.iter().any(|(name, end, _)| *name == after && *end == End::Passed))
}

fn run_one(stage: &Stage) -> End {
    let outcome = match &stage.work {
        Work::Cargo { arguments, environment, shows } => cargo(arguments, environment, *shows).map(|_| None),
        Work::Own(check) => check(&Tree::read_repository()).map(Some),
    };
    match outcome {
        Ok(text) => {
            if let Some(text) = text {
                println!("{text}");
            }
            End::Passed
        }
        Err(problems) => {
            for problem in problems {
                eprintln!("{problem}");
            }
            End::Failed
        }
    }
}

const fn word(end: End) -> &'static str {
    match end {
        End::Passed => "passed",
        End::Failed => "FAILED",
        End::Skipped => "SKIPPED",
    }
}

fn last_line(ends: &[End]) -> String {
    let number = |wanted| ends.iter().filter(|end| **end == wanted).count();
    let skipped = match number(End::Skipped) {
        0 => String::new(),
        skipped => format!(", {skipped} skipped"),
    };
    format!("{} passed, {} failed{skipped}", number(End::Passed), number(End::Failed))
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
    let mut child = Command::new(program)
        .args(arguments)
        .envs(environment.iter().copied())
        .current_dir(root())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| vec![format!("`{line}` cannot be started: {error}")])?;
    let mut text = String::new();
    if let Some(output) = child.stdout.take() {
        for part in BufReader::new(output).lines() {
            let part = part.map_err(|error| vec![format!("`{line}` cannot be read: {error}")])?;
            if shown {
                println!("{part}");
            }
            text.push_str(&part);
            text.push('\n');
        }
    }
    match child.wait() {
        Ok(status) if status.success() => Ok(text),
        Ok(status) => Err(vec![format!("`{line}` ended with {status}")]),
        Err(error) => Err(vec![format!("`{line}` was lost: {error}")]),
    }
}

/// Counts instructions; not of the toolchain, so Debian's packages have it.
const VALGRIND: &str = "valgrind";

fn ensure_valgrind() -> Result<(), String> {
    if Command::new(VALGRIND).arg("--version").stdout(Stdio::null()).status().is_ok_and(|end| end.success()) {
        return Ok(());
    }
    println!("valgrind is missing; asking apt-get for it");
    let apt =
        |arguments: &[&str]| Command::new("apt-get").args(arguments).status().is_ok_and(|end| end.success());
    if apt(&["update", "-q"]) && apt(&["install", "-q", "-y", VALGRIND]) {
        return Ok(());
    }
    Err("valgrind: install it with your system's packages; apt-get could not do it here".to_string())
}

/// Makes sure of `rustfmt` or `clippy`, with rustup's help if need be, or of valgrind.
fn ensure_component(component: &str) -> Result<(), String> {
    if component == VALGRIND {
        return ensure_valgrind();
    }
    if component == conformance::TOOLS {
        return conformance::ensure_tools();
    }
    if component == browser::TOOLS {
        return browser::ensure_tools();
    }
    if component == testenv::TOOLS {
        return testenv::ensure_tools();
    }
    let probe = match component {
        "rustfmt" => "fmt",
        other => other,
    };
    let is_there = || {
        Command::new("cargo")
            .args([probe, "--version"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    };
    if is_there() {
        return Ok(());
    }
    println!("{component} is missing; asking rustup for it");
    let installed = Command::new("rustup").args(["component", "add", component]).status();
    match installed {
        Ok(status) if status.success() && is_there() => Ok(()),
        Ok(_) => Err(format!("{component}: `rustup component add {component}` did not help")),
        Err(_) => {
            Err(format!("{component}: install it with your Rust toolchain; rustup is not here to do it"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_counts_and_never_hides_a_skipped_stage() {
        assert_eq!(last_line(&[End::Passed, End::Passed]), "2 passed, 0 failed");
        assert_eq!(last_line(&[End::Passed, End::Failed, End::Skipped]), "1 passed, 1 failed, 1 skipped");
    }

    #[test]
    fn a_stage_that_builds_on_a_failed_one_proves_nothing() {
        let bugs = Stage { name: "bugs", tier: Tier::Test, needs: None, after: Some("seeds"), work: NOTHING };
        assert!(is_grounded(&bugs, &[("seeds", End::Passed, Duration::ZERO)]));
        assert!(!is_grounded(&bugs, &[("seeds", End::Failed, Duration::ZERO)]));
        assert!(!is_grounded(&bugs, &[("other", End::Passed, Duration::ZERO)]));
    }

    const NOTHING: Work = Work::Own(|_| Ok(String::new()));

    #[test]
    fn what_a_stage_builds_on_comes_before_it() {
        for (at, stage) in STAGES.iter().enumerate() {
            let is_before = |after| STAGES[..at].iter().any(|earlier| earlier.name == after);
            assert!(stage.after.is_none_or(is_before), "{}", stage.name);
        }
    }

    #[test]
    fn check_is_the_first_half_of_test() {
        let first_of_test = STAGES.iter().position(|stage| stage.tier == Tier::Test);
        let last_of_check = STAGES.iter().rposition(|stage| stage.tier == Tier::Check);
        assert!(last_of_check < first_of_test);
    }
}
