//! The stories, end to end: builds what they are played with and plays them.
//!
//! The shipped binary is built optimised, as it ships. The words of the command
//! line are `sluice-e2e`'s own: `--list`, names of stories, `--variant killed`, `--seed 7`.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use crate::programs::target_folder;
use crate::stage::cargo;
use crate::tree::{Tree, root};
use crate::{seed, testenv};

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

/// The stage: no promise without a story, and a third of them all, in all ways.
///
/// All of them take about fifteen minutes on two cores, which with everything else is more than three quarters of
/// an hour on a fresh machine; `cargo xtask e2e` plays them all. The seed is the commit's: every commit has
/// another third and kills at other moments, and a failure can be played again. Which ones ran is printed. A
/// story that fails is played once more alone, since two cores may be too busy for four at once; one that
/// passes then is named as unsteady, here too, and two of them fail the stage.
pub(crate) fn run(_: &Tree) -> Result<String, Vec<String>> {
    let seed = seed::current().map_err(|why| vec![why])?;
    let third = format!("{}/3", seed % 3 + 1);
    let words = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
    let mut notes = String::new();
    for words in [words(&["--list"]), words(&["--seed", &seed.to_string(), "--third", &third, "--again"])] {
        let (status, remarkable) = play(&words)?;
        if status != ExitCode::SUCCESS {
            let mut problems =
                vec![format!("cargo xtask e2e {}: failed; what failed is above", words.join(" "))];
            problems.extend(remarkable);
            return Err(problems);
        }
        notes.extend(remarkable.iter().map(|line| format!("; {line}")));
    }
    Ok(format!(
        "third {third} of all stories in all ways, with seed {seed}; `cargo xtask e2e` plays them all{notes}"
    ))
}

/// The stage: the playground's API server does for the same stories. A third of them, in the plain way.
pub(crate) fn run_on_the_playground(_: &Tree) -> Result<String, Vec<String>> {
    let seed = seed::current().map_err(|why| vec![why])?;
    let (third, number) = (format!("{}/3", seed % 3 + 1), seed.to_string());
    let words = ["--playground", "--variant", "plain", "--seed", &number, "--third", &third, "--again"];
    let (status, remarkable) = play(&words.map(ToString::to_string))?;
    if status != ExitCode::SUCCESS {
        return Err(vec![format!("cargo xtask e2e {}: failed; what failed is above", words.join(" "))]);
    }
    let notes: String = remarkable.iter().map(|line| format!("; {line}")).collect();
    Ok(format!(
        "third {third} of all stories with seed {seed}; `cargo xtask e2e --playground` plays them all{notes}"
    ))
}

/// What the player says at the end that must not be overlooked.
const REMARKABLE: [&str; 3] = ["FAILED ", "UNSTEADY ", "PLAN NOT CHECKED"];

/// Plays, and says how it ended, with the lines that must not be overlooked.
fn play(words: &[String]) -> Result<(ExitCode, Vec<String>), Vec<String>> {
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
    let trouble = |error: std::io::Error| vec![format!("{}: {error}", player.display())];
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(trouble)?;
    let said = child.stdout.take().expect("its standard output is a pipe");
    let mut remarkable = Vec::new();
    for line in BufReader::new(said).lines() {
        let line = line.map_err(trouble)?;
        println!("{line}");
        // The list at the end is indented; a story that is told is not.
        let last = line.strip_prefix("  ").filter(|it| REMARKABLE.iter().any(|word| it.starts_with(word)));
        remarkable.extend(last.map(str::to_string));
    }
    let status = child.wait().map_err(trouble)?;
    Ok((if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE }, remarkable))
}

/// Builds one program, optimised and by itself, and says where it is.
fn build(package: &str) -> Result<PathBuf, Vec<String>> {
    cargo(&["build", "--quiet", "--release", "-p", package], &[], |_| Ok(()))?;
    Ok(target_folder().join("release").join(format!("{package}{}", std::env::consts::EXE_SUFFIX)))
}
