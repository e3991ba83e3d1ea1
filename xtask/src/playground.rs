//! The stories of the playground, as a reader has them: each is played to its end by the program that ships,
//! which judges from outside whether Kubernetes and Azure agree, and says so by its exit code.
//!
//! The exit code alone could be that of a story that does nothing, so of each the lines are looked for that
//! only its own way can lead to.

use std::process::{Command, Stdio};

use crate::programs::target_folder;
use crate::stage::cargo_quietly;
use crate::tree::Tree;

/// How many times as fast as real time.
const TIME_FACTOR: &str = "20";

/// A story, and what it must have told.
struct Story {
    name: &'static str,
    tells: &'static [&'static str],
}

const STORIES: &[Story] = &[
    Story { name: "tour", tells: &["the shop has the address ", "the egress went with its last pod"] },
    Story { name: "burst", tells: &["all 200 have an address", "four pods under 200 names"] },
    Story { name: "rollout", tells: &["24 pods were replaced by 24 others", "no shop ever had fewer than"] },
    Story { name: "outage", tells: &["Azure is away", "AzureUnavailable", "Azure answers again"] },
    Story { name: "throttled", tells: &["answered with 429", "not a single call came before the pause"] },
    Story { name: "meddling", tells: &["the load balancer of the shop is gone", "is back in the gateway"] },
    Story { name: "existing-state", tells: &["the three leftovers are gone", "and wrote nothing"] },
    Story { name: "egress-change", tells: &["crawler-1 goes out by", "are given back"] },
    Story { name: "crash", tells: &["Sluice is dead", "still have the same"] },
];

/// The stage.
pub(crate) fn run(_: &Tree) -> Result<String, Vec<String>> {
    cargo_quietly(&["build", "--quiet", "--release", "-p", "sluice"])?;
    let listed = play(&["--list"]).map_err(|why| vec![why])?;
    let listed: Vec<&str> = listed.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let known: Vec<&str> = STORIES.iter().map(|it| it.name).collect();
    if listed != known {
        return Err(vec![format!("`playground --list` shows {listed:?}, and this stage plays {known:?}")]);
    }
    let mut wrong = Vec::new();
    for story in STORIES {
        let told = play(&["--scenario", story.name, "--exit", "--time-factor", TIME_FACTOR]);
        wrong.extend(told.and_then(|told| judge(story, &told)).err());
    }
    if wrong.is_empty() {
        Ok(format!("{} stories converge: {}", known.len(), known.join(", ")))
    } else {
        Err(wrong)
    }
}

fn judge(story: &Story, told: &str) -> Result<(), String> {
    // A line is folded where it becomes too long.
    let flat = told.split_whitespace().collect::<Vec<_>>().join(" ");
    let missing = story.tells.iter().chain(&["converged after"]).find(|line| !flat.contains(**line));
    match missing {
        None => Ok(()),
        Some(line) => Err(format!("{} ends well and never says {line:?}:\n{told}", story.name)),
    }
}

/// What the program prints, or why it ended badly.
fn play(arguments: &[&str]) -> Result<String, String> {
    let program = target_folder().join("release").join("sluice");
    let output = Command::new(&program)
        .arg("playground")
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{} cannot be started: {error}", program.display()))?;
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(told);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("`sluice playground {}` ends with {}:\n{told}{said}", arguments.join(" "), output.status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_story_that_says_nothing_is_not_believed() {
        let story = Story { name: "tour", tells: &["the shop has the address "] };
        assert!(
            judge(&story, "  ✓ the shop has the\n     address 20.0.0.1\n  ✓ converged after 1 s").is_ok()
        );
        assert!(judge(&story, "  ✓ converged after 1 s").unwrap_err().contains("never says"));
        assert!(judge(&story, "the shop has the address 20.0.0.1").unwrap_err().contains("converged after"));
    }
}
