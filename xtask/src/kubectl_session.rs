//! One kubectl session, run against a real API server and against the playground's: both must say the same.
//!
//! The commands are in `e2e/session/session.txt`. What the real API server says is kept beside them in
//! `transcript.txt`, so that a change of either is seen in a review; each server is compared with it, and
//! so with the other. What is made anew each time (UIDs, times, addresses, random parts of names) has one
//! spelling in a transcript, see [`plain`].
//!
//! Missing on purpose: whatever needs a kubelet. The control plane of `testenv/` has none and no scheduler,
//! so the playground is started without its own.

mod difference;
mod plain;
mod play;
mod python;
mod server;

use std::path::PathBuf;
use std::process::ExitCode;

use crate::kubectl;
use crate::programs::target_folder;
use crate::tree::{Tree, root};
use play::{Answer, Stage};
use server::{Server, Side};

/// The words that the task takes.
pub(crate) const WORDS: [&str; 4] = ["record", "real", "playground", "python"];

const FOLDER: &str = "e2e/session";
const SESSION: &str = "session.txt";
const TRANSCRIPT: &str = "transcript.txt";

/// The stage: both sides at once, by kubectl and by the Python client.
pub(crate) fn run(_: &Tree) -> Result<String, Vec<String>> {
    on_both(|side, server| all([compared(side, server), python(side, server)]))
}

/// Starts both servers and does something with each.
fn on_both(
    work: impl Fn(Side, &Server) -> Result<String, Vec<String>> + Sync,
) -> Result<String, Vec<String>> {
    let one = &|side: Side| side.start().and_then(|server| work(side, &server));
    let lost = |_| Err(vec!["a side of the session was lost; what it said is above".to_string()]);
    std::thread::scope(|scope| {
        let sides = [Side::Real, Side::Playground].map(|side| scope.spawn(move || one(side)));
        all(sides.map(|side| side.join().unwrap_or_else(lost)))
    })
}

fn on_one(
    side: Side,
    work: impl Fn(Side, &Server) -> Result<String, Vec<String>>,
) -> Result<String, Vec<String>> {
    work(side, &side.start()?)
}

fn all<const N: usize>(outcomes: [Result<String, Vec<String>>; N]) -> Result<String, Vec<String>> {
    let mut lines = Vec::new();
    let mut problems = Vec::new();
    for outcome in outcomes {
        match outcome {
            Ok(line) => lines.push(line),
            Err(found) => problems.extend(found),
        }
    }
    if problems.is_empty() { Ok(lines.join("\n")) } else { Err(problems) }
}

/// The task: everything, or one side, or the recording.
pub(crate) fn task(words: &[String]) -> ExitCode {
    let outcome = match words {
        [] => run(&Tree::read_repository()),
        [word] if word == "record" => on_one(Side::Real, record),
        [word] if word == "real" => on_one(Side::Real, compared),
        [word] if word == "playground" => on_one(Side::Playground, compared),
        [word] if word == "python" => on_both(python),
        _ => {
            Err(vec!["cargo xtask kubectl-session takes one word: record, real, playground or python".into()])
        }
    };
    match outcome {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(problems) => {
            for problem in problems {
                eprintln!("{problem}");
            }
            ExitCode::FAILURE
        }
    }
}

fn compared(side: Side, server: &Server) -> Result<String, Vec<String>> {
    let answers = played(side, server)?;
    let path = root().join(FOLDER).join(TRANSCRIPT);
    let recorded = std::fs::read_to_string(&path)
        .map_err(|error| vec![format!("{} cannot be read: {error}", path.display())])?;
    let differences = difference::between(&play::read(&recorded), &answers);
    if differences.is_empty() {
        return Ok(format!("{}: {} commands answered as recorded", side.name(), answers.len()));
    }
    let mut problems = differences;
    problems.push(format!(
        "{}: {} of {} commands differ from {FOLDER}/{TRANSCRIPT} (-), above is what it said (+)",
        side.name(),
        problems.len(),
        answers.len()
    ));
    Err(problems)
}

fn record(side: Side, server: &Server) -> Result<String, Vec<String>> {
    let answers = played(side, server)?;
    let path = root().join(FOLDER).join(TRANSCRIPT);
    std::fs::write(&path, play::written(&answers))
        .map_err(|error| vec![format!("{} cannot be written: {error}", path.display())])?;
    Ok(format!("{FOLDER}/{TRANSCRIPT} has what the real API server said to {} commands", answers.len()))
}

fn played(side: Side, server: &Server) -> Result<Vec<Answer>, Vec<String>> {
    let path = root().join(FOLDER).join(SESSION);
    let session = std::fs::read_to_string(&path)
        .map_err(|error| vec![format!("{} cannot be read: {error}", path.display())])?;
    let lines = play::lines(&session).map_err(|why| vec![why])?;
    let kubectl = kubectl::program()?;
    let stage = Stage::set(server.kubeconfig(), &kubectl, &folder_of(side)).map_err(|why| vec![why])?;
    stage.play(&lines).map_err(|why| vec![format!("{}: {why}", side.name())])
}

fn python(side: Side, server: &Server) -> Result<String, Vec<String>> {
    python::run(side, server.kubeconfig(), &root().join(FOLDER))
        .map(|done| format!("{}: {done}", side.name()))
        .map_err(|why| vec![format!("{}: {why}", side.name())])
}

fn folder_of(side: Side) -> PathBuf {
    target_folder().join("kubectl-session").join(format!("{side:?}").to_lowercase())
}
