//! Every fault of Azure's list, over HTTPS: the product's client, updaters, engine and loop against
//! an emulator process that misbehaves on request.
//!
//! Each story creates, updates and deletes a handful of Services and egress pods while one kind of
//! fault strikes, ends the fault, and waits until Azure is as it should be. Whether it is, and whether
//! nothing forbidden was done on the way, is judged from the emulator's own state and request log (see
//! `judge`), never from what the controller says of itself. Then everything is deleted, and nothing may
//! be left.
//!
//! In the end some stories are told once more with a deliberate bug in the engine or an updater:
//! those must fail, or the judge sees nothing.
//!
//! Arguments are words of names: `cargo test -p sluice --test faults -- Z5 Z6`.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a test that prints a table")]

mod judge;
mod scene;
mod stories;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sluice_model::seeded::{Bug, Seeded};
use tokio::sync::Semaphore;

use scene::Told;
use stories::Story;

/// Stories at once. They mostly wait, so they may be more than there are cores.
const AT_ONCE: usize = 6;
/// How long a story may take, in real time, before it counts as hanging.
const STORY_MAX: Duration = Duration::from_secs(400);

/// Bugs that must be found, and the story that must find each.
const BITES: [(Bug, &str); 8] = [
    (Bug::IgnoreRetryAfter, "Z1"),
    (Bug::LostIsSuccess, "Z5"),
    (Bug::PollOkIsSuccess, "Z8"),
    (Bug::NoDriftSweep, "Z18"),
    (Bug::DeleteWithoutDrain, "Z4"),
    (Bug::DeleteWithoutTagCheck, "Z19"),
    (Bug::LeavePublicIp, "Z3"),
    (Bug::ParkForever, "Z12"),
];

/// One line of the table.
struct Line {
    name: String,
    verdict: Result<Told, String>,
    /// A failure is what should come of it.
    must_fail: bool,
    took: Duration,
}

fn main() -> ExitCode {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let wanted: Vec<String> = std::env::args().skip(1).filter(|it| !it.starts_with('-')).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let lines = runtime.block_on(tell_all(&wanted));
    let good = print(&lines);
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn tell_all(wanted: &[String]) -> Vec<Line> {
    let is_wanted = |name: &str| {
        let is_it = |word: &str| name.split_whitespace().any(|part| part == word);
        wanted.is_empty() || wanted.iter().any(|word| is_it(word))
    };
    let all = stories::all();
    // What the same edits cost when nothing goes wrong; the others are measured by it.
    let calm = tell(all.first().unwrap().clone(), None, Seeded::NONE).await;
    let calm_writes = match &calm.verdict {
        Ok(told) => told.writes,
        Err(_) => return vec![calm],
    };
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let mut tasks = Vec::new();
    let mut start = |story: Story, bug: Option<Bug>| {
        let places = Arc::clone(&places);
        tasks.push(tokio::spawn(async move {
            let _place = places.acquire_owned().await;
            let seeded = bug.map_or(Seeded::NONE, Seeded::with);
            let mut line = tell(story, Some(calm_writes), seeded).await;
            if let Some(bug) = bug {
                line.name = format!("{} with the bug {bug:?} fails", line.name);
                line.must_fail = true;
            }
            line
        }));
    };
    for story in all.iter().skip(1).filter(|story| is_wanted(&story.name())) {
        start(story.clone(), None);
    }
    for (bug, id) in BITES {
        let story = all.iter().find(|story| story.id == id).unwrap();
        if is_wanted(&format!("{} {bug:?}", story.name())) {
            start(story.clone(), Some(bug));
        }
    }
    let mut lines = vec![calm];
    for task in tasks {
        lines.push(task.await.unwrap());
    }
    lines
}

async fn tell(story: Story, calm_writes: Option<u64>, seeded: Seeded) -> Line {
    let name = story.name();
    let began = Instant::now();
    let told = tokio::time::timeout(STORY_MAX, scene::tell(&story, calm_writes, seeded)).await;
    let verdict = match told {
        Ok(Ok(told)) => Ok(told),
        Ok(Err(error)) => Err(format!("{error:#}")),
        Err(_) => Err(format!("it did not come to its end within {} s", STORY_MAX.as_secs())),
    };
    Line { name, verdict, must_fail: false, took: began.elapsed() }
}

/// Prints the table, and says whether everything is as it should be.
fn print(lines: &[Line]) -> bool {
    println!(
        "\n{:74} {:>7} {:>6} {:>6} {:>10} {:>6}",
        "story", "strikes", "writes", "reads", "emulated", "real"
    );
    let mut bad = 0;
    for line in lines {
        let is_good = line.verdict.is_ok() != line.must_fail;
        bad += usize::from(!is_good);
        let mark = if is_good { '✓' } else { '✗' };
        let real = format!("{:.0} s", line.took.as_secs_f64());
        match &line.verdict {
            Ok(told) => println!(
                "{mark} {:72} {:>7} {:>6} {:>6} {:>10} {real:>6}",
                line.name,
                told.strikes,
                told.writes,
                told.reads,
                format!("{:.0} min", told.emulated.as_secs_f64() / 60.0),
            ),
            Err(why) => {
                println!("{mark} {:72} {:>31} {real:>6}", line.name, "");
                println!("    {}", why.lines().collect::<Vec<_>>().join("\n    "));
            }
        }
    }
    match bad {
        0 => println!("all {} stories are as they should be", lines.len()),
        bad => println!("{bad} of {} stories are not as they should be", lines.len()),
    }
    bad == 0
}
