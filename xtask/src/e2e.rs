//! The stories, end to end: builds what they are played with and plays them.
//!
//! The production build is under test; the emulator comes from the build with the lab. The words of the command
//! line are the player's own: `--list`, names of stories, `--variant killed`, `--seed 7`.

use std::process::{Command, ExitCode};

use crate::programs::Program;
use crate::tree::{Tree, root};
use crate::{seed, stage, testenv};

/// The task: the words go to the program that plays the stories.
pub(crate) fn task(words: &[String]) -> ExitCode {
    match play(words) {
        Ok((status, _)) => status,
        Err(problems) => {
            for problem in problems {
                eprintln!("{problem}");
            }
            ExitCode::FAILURE
        }
    }
}

/// The story that needs the whole machine.
const LARGE: &str = "ten-thousand-services";

/// The stage: that story alone.
pub(crate) fn run_large(_: &Tree) -> Result<String, Vec<String>> {
    played(&[LARGE])?;
    Ok("10,000 Services within 300 MiB and 100 descriptors: a restart and a new leader write nothing"
        .to_string())
}

/// The stage: half of the stories in the plain way, and a third of the other ways.
///
/// The seed chooses them and the moments of the kills, and is printed: another commit has another seed, and a
/// failure can be played again. `cargo xtask e2e` plays everything. A story that fails fails the stage.
pub(crate) fn run(_: &Tree) -> Result<String, Vec<String>> {
    let seed = seed::current().map_err(|why| vec![why])?;
    played(&["--short", "--seed", &seed.to_string(), "--without", LARGE])?;
    Ok(format!(
        "half of the stories in the plain way, and a third of the other ways, with seed {seed}; \
         `cargo xtask e2e` plays all"
    ))
}

/// The long stage: everything in every way, on the real API server and on the playground's.
pub(crate) fn run_everything(_: &Tree) -> Result<String, Vec<String>> {
    let seed = seed::current().map_err(|why| vec![why])?.to_string();
    played(&["--seed", &seed, "--without", LARGE])?;
    played(&["--playground", "--seed", &seed])?;
    Ok(format!("every story in every way, with seed {seed}"))
}

/// The stage: the playground's API server does for the same stories. A third of them, in the plain way.
pub(crate) fn run_on_the_playground(_: &Tree) -> Result<String, Vec<String>> {
    let seed = seed::current().map_err(|why| vec![why])?;
    played(&["--playground", "--short", "--seed", &seed.to_string()])?;
    Ok(format!("a third of all stories, with seed {seed}; `cargo xtask e2e --playground` plays all"))
}

/// Plays with these words, and fails as the player does.
fn played(words: &[&str]) -> Result<(), Vec<String>> {
    let all: Vec<String> = words.iter().map(ToString::to_string).collect();
    let (status, mut remarkable) = play(&all)?;
    if status == ExitCode::SUCCESS {
        return Ok(());
    }
    remarkable.insert(0, format!("cargo xtask e2e {}: failed; what failed is above", words.join(" ")));
    Err(remarkable)
}

/// What the player says at the end that must not be overlooked.
const REMARKABLE: [&str; 2] = ["FAILED ", "PLAN NOT CHECKED"];

/// Plays, and says how it ended, with the lines that must not be overlooked.
fn play(words: &[String]) -> Result<(ExitCode, Vec<String>), Vec<String>> {
    let player = Program::EndToEnd.path()?;
    let mut command = Command::new(&player);
    command.args(words).current_dir(root());
    let only_asks = words.iter().any(|word| matches!(word.as_str(), "--list" | "--help" | "-h"));
    if !only_asks {
        command.arg("--sluice").arg(Program::Production.path()?).arg("--lab").arg(Program::Lab.path()?);
    }
    if !only_asks && !words.iter().any(|word| word == "--playground") {
        command.arg("--testenv").arg(testenv::program()?);
    }
    let (text, status) =
        stage::stream(&mut command, true).map_err(|error| vec![format!("{}: {error}", player.display())])?;
    // The list at the end is indented; a story that is told is not.
    let last = text.lines().filter_map(|line| line.strip_prefix("  "));
    let remarkable = last.filter(|line| REMARKABLE.iter().any(|word| line.starts_with(word)));
    let code = if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    Ok((code, remarkable.map(str::to_string).collect()))
}
