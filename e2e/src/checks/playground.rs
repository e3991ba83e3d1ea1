//! The stories of the playground, as a reader has them: each is played to its end by the program, which judges from
//! outside whether Kubernetes and Azure agree, and says so by its exit code.
//!
//! The exit code alone could be that of a story that does nothing, so of each the lines are looked for that only
//! its own way can lead to.

use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use futures::{StreamExt as _, stream};
use tokio::process::Command;

use super::{Programs, shell};

/// How many stories are played at once.
const AT_ONCE: usize = 3;

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

/// Runs it.
pub(crate) async fn run(programs: &Programs) -> Result<String> {
    let sluice = programs.sluice()?;
    let listed = play(&sluice, &["--list"]).await?;
    let listed: Vec<&str> = listed.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let known: Vec<&str> = STORIES.iter().map(|it| it.name).collect();
    ensure!(listed == known, "`playground --list` shows {listed:?}, and this check plays {known:?}");
    let wrong = |story: &'static Story| {
        let sluice = sluice.clone();
        async move {
            let words = ["--scenario", story.name, "--exit", "--time-factor", TIME_FACTOR];
            let told = play(&sluice, &words).await;
            told.and_then(|told| judge(story, &told)).err().map(|why| format!("{why:#}"))
        }
    };
    // `throttled` judges how soon one call follows another, so nothing runs beside it.
    let (alone, together): (Vec<_>, Vec<_>) = STORIES.iter().partition(|story| story.name == "throttled");
    let mut all: Vec<Option<String>> =
        stream::iter(together).map(wrong).buffer_unordered(AT_ONCE).collect().await;
    for story in alone {
        all.push(wrong(story).await);
    }
    let wrong: Vec<String> = all.into_iter().flatten().collect();
    ensure!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    Ok(format!("{} stories converge: {}", known.len(), known.join(", ")))
}

fn judge(story: &Story, told: &str) -> Result<()> {
    // A line is folded where it becomes too long.
    let flat = told.split_whitespace().collect::<Vec<_>>().join(" ");
    match story.tells.iter().chain(&["converged after"]).find(|line| !flat.contains(**line)) {
        None => Ok(()),
        Some(line) => bail!("{} exited with 0 but did not print {line:?}:\n{told}", story.name),
    }
}

/// What the program prints, or why it ended badly.
async fn play(sluice: &Path, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new(sluice);
    command.arg("playground").args(arguments).kill_on_drop(true);
    shell::output(&mut command).await.with_context(|| format!("sluice playground {}", arguments.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_story_that_says_nothing_is_not_believed() {
        let story = Story { name: "tour", tells: &["the shop has the address "] };
        let told = "  ✓ the shop has the\n     address 20.0.0.1\n  ✓ converged after 1 s";
        assert!(judge(&story, told).is_ok());
        let why = |told| judge(&story, told).unwrap_err().to_string();
        assert!(why("  ✓ converged after 1 s").contains("did not print"));
        assert!(why("the shop has the address 20.0.0.1").contains("converged after"));
    }
}
