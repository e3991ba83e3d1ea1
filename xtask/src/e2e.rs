//! The stories, end to end: builds what they are played with and plays them.
//!
//! The shipped binary is built by itself and optimised, as it ships; the simulator's switches for
//! seeded bugs would come along if it were built with the whole workspace. The words of the command
//! line are `sluice-e2e`'s own: `--list`, names of stories, `--variant killed`, `--seed 7`.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use crate::conformance::target_folder;
use crate::stage::cargo;
use crate::testenv;
use crate::tree::{Tree, root};

/// The task: the words go to the program that plays the stories.
pub(crate) fn task(words: &[String]) -> ExitCode {
    match play(words) {
        Ok(status) => status,
        Err(problems) => {
            for problem in problems {
                eprintln!("{problem}");
            }
            ExitCode::FAILURE
        }
    }
}

/// The stage: no promise without a story, and a third of them all, in all ways.
///
/// All of them take about fifteen minutes on two cores, which with everything else is more than three quarters of
/// an hour on a fresh machine; `cargo xtask e2e` plays them all. The seed is the commit's: every commit has
/// another third and kills at other moments, and a failure can be played again. Which ones ran is printed. A
/// story that fails is played once more alone, since two cores may be too busy for four at once; one that
/// passes then is named as unsteady.
pub(crate) fn run(_: &Tree) -> Result<String, Vec<String>> {
    let seed = seed().map_err(|why| vec![why])?;
    let third = format!("{}/3", seed % 3 + 1);
    let words = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
    for words in [words(&["--list"]), words(&["--seed", &seed.to_string(), "--third", &third, "--again"])] {
        if play(&words)? != ExitCode::SUCCESS {
            return Err(vec![format!("cargo xtask e2e {}: failed; what failed is above", words.join(" "))]);
        }
    }
    Ok(format!(
        "third {third} of all stories in all ways, with seed {seed}; `cargo xtask e2e` plays them all"
    ))
}

/// The stage: the playground's API server does for the same stories. A third of them, in the plain way.
pub(crate) fn run_on_the_playground(_: &Tree) -> Result<String, Vec<String>> {
    let seed = seed().map_err(|why| vec![why])?;
    let (third, number) = (format!("{}/3", seed % 3 + 1), seed.to_string());
    let words = ["--playground", "--variant", "plain", "--seed", &number, "--third", &third, "--again"];
    if play(&words.map(ToString::to_string))? != ExitCode::SUCCESS {
        return Err(vec![format!("cargo xtask e2e {}: failed; what failed is above", words.join(" "))]);
    }
    Ok(format!(
        "third {third} of all stories with seed {seed}; `cargo xtask e2e --playground` plays them all"
    ))
}

/// The first digits of the commit's hash, as a number.
fn seed() -> Result<u64, String> {
    let asked = Command::new("git").args(["rev-parse", "HEAD"]).current_dir(root()).output();
    let hash = asked.map_err(|error| format!("git cannot be asked for the commit: {error}"))?.stdout;
    let digits: String = String::from_utf8_lossy(&hash).chars().take(12).collect();
    // A tree without git has one seed, and says so by it.
    Ok(u64::from_str_radix(&digits, 16).unwrap_or(1))
}

fn play(words: &[String]) -> Result<ExitCode, Vec<String>> {
    let player = build("sluice-e2e")?;
    let mut command = Command::new(&player);
    command.args(words).current_dir(root());
    let only_asks = words.iter().any(|word| matches!(word.as_str(), "--list" | "--help" | "-h"));
    if !only_asks {
        command.arg("--sluice").arg(build("sluice")?);
    }
    if !only_asks && !words.iter().any(|word| word == "--playground") {
        command.arg("--testenv").arg(testenv::program()?);
    }
    let status =
        command.status().map_err(|error| vec![format!("{} cannot be started: {error}", player.display())])?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Builds one program, optimised and by itself, and says where it is.
fn build(package: &str) -> Result<PathBuf, Vec<String>> {
    cargo(&["build", "--quiet", "--release", "-p", package], &[], |_| Ok(()))?;
    Ok(target_folder().join("release").join(format!("{package}{}", std::env::consts::EXE_SUFFIX)))
}
