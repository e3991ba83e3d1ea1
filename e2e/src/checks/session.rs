//! One kubectl session, run against a real API server and against the playground's: both must say the same.
//!
//! The commands are in `e2e/session/session.txt`. What the real API server says is kept beside them in
//! `transcript.txt`, so that a change of either is seen in a review; each server is compared with it, and so with
//! the other. What differs between two runs has one spelling in a transcript, see [`super::spelling`].
//!
//! Missing on purpose: whatever needs a kubelet. The control plane of `testenv/` has none and no scheduler, so the
//! playground is started without its own.

mod difference;
mod play;

use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use clap::ValueEnum;
use sluice_e2e::testenv::Testenv;
use tokio::process::Command;

use super::shell::{self, Shell};
use super::{Programs, ROOT};
use crate::plane::playground_without_nodes;
use play::Answer;

const FOLDER: &str = "e2e/session";
/// The one test of the Python client that a fresh real server cannot pass: it forgets after five minutes.
const FORGOTTEN: &str = "test_playground.py::test_a_watch_from_a_version_that_is_forgotten_is_gone";

/// What to run instead of everything.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    /// Write the transcript from what the real API server says
    Record,
    /// kubectl on the real API server
    Real,
    /// kubectl on the playground's API server
    Playground,
    /// The Python client on both
    Python,
}

/// An API server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Side {
    Real,
    Playground,
}

/// Runs it, both sides at once.
pub(crate) async fn run(part: Option<Part>, programs: &Programs) -> Result<String> {
    let sides = tokio::join!(on(Side::Real, part, programs), on(Side::Playground, part, programs));
    let (mut done, mut problems) = (Vec::new(), Vec::new());
    for outcome in [sides.0, sides.1] {
        match outcome {
            Ok(lines) => done.extend(lines),
            Err(why) => problems.push(format!("{why:#}")),
        }
    }
    ensure!(problems.is_empty(), "{}", problems.join("\n\n"));
    Ok(done.join("\n"))
}

async fn on(side: Side, part: Option<Part>, programs: &Programs) -> Result<Vec<String>> {
    let is_asked = match part {
        None | Some(Part::Python) => true,
        Some(Part::Record | Part::Real) => side == Side::Real,
        Some(Part::Playground) => side == Side::Playground,
    };
    if !is_asked {
        return Ok(Vec::new());
    }
    let folder = tempfile::tempdir()?;
    let log = folder.path().join("server.log");
    let name = match side {
        Side::Real => "the real API server",
        Side::Playground => "the playground's API server",
    };
    match side {
        Side::Real => {
            let testenv = Testenv::start(&programs.testenv()?, &log).await?;
            let done = work(side, part, programs, &testenv.ready.kubeconfig, folder.path()).await;
            let stopped = testenv.stop().await;
            done.and_then(|lines| stopped.map(|()| lines))
        }
        Side::Playground => {
            let keep = folder.path().join("playground");
            let (program, ready) = playground_without_nodes(&programs.sluice()?, &log, Some(&keep)).await?;
            let done = work(side, part, programs, &ready.kubeconfig, folder.path()).await;
            let stopped = program.kill().await;
            done.and_then(|lines| stopped.map(|()| lines))
        }
    }
    .map(|lines| lines.into_iter().map(|line| format!("{name}: {line}")).collect())
    .with_context(|| name)
}

async fn work(
    side: Side,
    part: Option<Part>,
    programs: &Programs,
    kubeconfig: &Path,
    folder: &Path,
) -> Result<Vec<String>> {
    let kubectl = async || match part {
        Some(Part::Python) => Ok(None),
        Some(Part::Record) => record(played(programs, kubeconfig, folder).await?).map(Some),
        _ => compared(&played(programs, kubeconfig, folder).await?).map(Some),
    };
    let client = async || match part {
        None | Some(Part::Python) => python(side, programs, kubeconfig).await.map(Some),
        _ => Ok(None),
    };
    // kubectl first: the Python tests tolerate its objects, but the transcript does not tolerate theirs.
    match (kubectl().await, client().await) {
        (Ok(kubectl), Ok(client)) => Ok(kubectl.into_iter().chain(client).collect()),
        (Err(one), Err(two)) => bail!("{one:#}\n\n{two:#}"),
        (Err(why), _) | (_, Err(why)) => Err(why),
    }
}

async fn played(programs: &Programs, kubeconfig: &Path, folder: &Path) -> Result<Vec<Answer>> {
    let session = Path::new(ROOT).join(FOLDER);
    let lines = play::lines(&std::fs::read_to_string(session.join("session.txt"))?)?;
    // The session may change its kubeconfig, and another server's discovery must not speak for this one.
    let own = folder.join("kubeconfig");
    std::fs::copy(kubeconfig, &own)?;
    let shell = Shell::new(&session, &[&programs.kubectl()?])?
        .with("KUBECONFIG", own)
        .with("KUBECACHEDIR", folder.join("cache"))
        .with("TZ", "UTC")
        .with("LC_ALL", "C");
    play::all(&shell, &lines, &folder.join("watch.log")).await
}

fn compared(answers: &[Answer]) -> Result<String> {
    let recorded = play::read(&std::fs::read_to_string(transcript())?);
    let differences = difference::between(&recorded, answers);
    ensure!(
        differences.is_empty(),
        "{}\n{} of {} commands differ from {FOLDER}/transcript.txt (-), above is what it said (+)",
        differences.join("\n"),
        differences.len(),
        answers.len()
    );
    Ok(format!("{} commands answered as recorded", answers.len()))
}

fn record(answers: Vec<Answer>) -> Result<String> {
    std::fs::write(transcript(), play::written(&answers))?;
    Ok(format!("its answers to {} commands are in {FOLDER}/transcript.txt", answers.len()))
}

fn transcript() -> String {
    format!("{ROOT}/{FOLDER}/transcript.txt")
}

async fn python(side: Side, programs: &Programs, kubeconfig: &Path) -> Result<String> {
    let mut command = Command::new(programs.python()?);
    command.args(["-m", "pytest", "--quiet"]).current_dir(Path::new(ROOT).join(FOLDER).join("python"));
    // The tree stays as it is: no caches beside the tests.
    command.args(["-p", "no:cacheprovider"]).env("PYTHONDONTWRITEBYTECODE", "1");
    if side == Side::Real {
        command.args(["--deselect", FORGOTTEN]);
    }
    command.env("NO_PROXY", "127.0.0.1,localhost").env("no_proxy", "127.0.0.1,localhost");
    let said = shell::output(command.env("KUBECONFIG", kubeconfig).kill_on_drop(true)).await;
    let said = said.context("the tests of the Python client")?;
    let last = said.lines().last().unwrap_or_default();
    Ok(format!("the Python client of Kubernetes passes its tests: {last}"))
}
