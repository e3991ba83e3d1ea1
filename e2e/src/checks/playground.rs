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
    Story { name: "tour", tells: &["Service shop: public IP ", "egress partners deleted with its last pod"] },
    Story {
        name: "burst",
        tells: &["200 of 200 Services have a public IP", "4 addresses programmed for 200 Services"],
    },
    Story { name: "rollout", tells: &["24 pods replaced by 24 new pods", "each Service had at least"] },
    Story {
        name: "outage",
        tells: &["(injected) Azure Resource Manager", "AzureUnavailable", "public IP unchanged"],
    },
    Story { name: "throttled", tells: &["writes throttled (429)", "0 calls sent before Retry-After"] },
    Story {
        name: "drift",
        tells: &["(injected) load balancer of Service shop deleted", "drift repaired after"],
    },
    Story { name: "first-start", tells: &["3 of 3 orphaned public IPs deleted", " 0 writes,"] },
    Story { name: "egress-change", tells: &["after a gap of", "egress blue deleted"] },
    Story {
        name: "crash",
        tells: &["(injected) Sluice crashed", "public IPs of the first 5 Services unchanged"],
    },
];

/// The last result of a story that ended well.
const VERDICT: &str = "PASS: Kubernetes and Azure match (";

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
    match story.tells.iter().chain(&[VERDICT]).find(|line| !flat.contains(**line)) {
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
        let story = Story { name: "tour", tells: &["Service shop: public IP "] };
        let result = "  ✓  0:27  Service shop:\n           public IP 20.0.0.1\n";
        let verdict = format!("{VERDICT}0 load balancers)");
        assert!(judge(&story, &format!("{result}\n{verdict}")).is_ok());
        let why = |told| judge(&story, told).unwrap_err().to_string();
        assert!(why(&verdict).contains("did not print"));
        assert!(why(result).contains("PASS:"));
    }
}
