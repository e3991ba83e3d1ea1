//! Every fault of Azure's list, over HTTPS: the product's client, updaters, engine and loop against
//! an emulator that misbehaves on request.
//!
//! Each story creates, updates and deletes a handful of Services and egress pods while one kind of
//! fault strikes, ends the fault, and waits until Azure is as it should be. Whether it is, and whether
//! nothing forbidden was done on the way, is judged from the emulator's own state and request log (see
//! `judge`), never from what the controller says of itself. Then everything is deleted, and nothing may
//! be left.
//!
//! With the feature `seeded-bugs` some stories are told once more in the end with a deliberate bug in the
//! engine or an updater: those must fail, or the judge sees nothing.
//!
//! Arguments are words of names: `cargo test -p sluice-bench --test faults -- Z5 Z6`.
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
const AT_ONCE: usize = 10;
/// How long a story may take, in real time, before it counts as hanging.
const STORY_MAX: Duration = Duration::from_secs(400);

/// How the judge speaks of a state that is wrong, and of the deeds that make it so.
const DAMAGE: &[&str] = &["not as it should be", "while mapped", "before its registration was cleared"];

/// Bugs that must be found, the story that must find each, and words of which its failure must have
/// one. Any other failure, such as that of a machine which is too slow, finds nothing.
const BITES: [(Bug, &str, &[&str]); 10] = [
    (Bug::IgnoreRetryAfter, "Z1", &["before a Retry-After"]),
    (Bug::LostIsSuccess, "Z5", DAMAGE),
    (Bug::PollOkIsSuccess, "Z8", DAMAGE),
    (Bug::NoBisect, "Z16", &["addresses are not as they should be"]),
    (Bug::NoBisect, "Z17", &["was too large with"]),
    (Bug::NoDriftSweep, "Z18", &["not as it should be"]),
    (Bug::DeleteWithoutDrain, "Z4", &["while mapped"]),
    (Bug::DeleteWithoutTagCheck, "Z19", &["what is not ours", "of somebody else's"]),
    (Bug::LeavePublicIp, "Z3", &["public IPs of ours"]),
    (Bug::ParkForever, "Z12", &["not as it should be"]),
];

/// Runs the stories with planted bugs too.
const WITH_BUGS: &str = "cargo test -p sluice-bench --features seeded-bugs --test faults";

/// A bug, if this build can have one.
fn planted(bug: Bug) -> Option<Seeded> {
    #[cfg(feature = "seeded-bugs")]
    return Some(Seeded::with(bug));
    #[cfg(not(feature = "seeded-bugs"))]
    {
        let _ = bug;
        None
    }
}

/// One line of the table.
struct Line {
    name: String,
    verdict: Result<Told, String>,
    /// A failure with one of these words is what should come of it.
    must_fail: Option<&'static [&'static str]>,
    took: Duration,
}

impl Line {
    fn is_good(&self) -> bool {
        match (&self.verdict, self.must_fail) {
            (Ok(_), None) => true,
            (Err(why), Some(words)) => words.iter().any(|word| why.contains(word)),
            _ => false,
        }
    }
}

fn main() -> ExitCode {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let wanted: Vec<String> = std::env::args().skip(1).filter(|it| !it.starts_with('-')).collect();
    let names: Vec<String> = all_names();
    if let Some(word) = wanted.iter().find(|word| !names.iter().any(|name| has_word(name, word))) {
        println!("no story has the word {word:?} in its name");
        return ExitCode::FAILURE;
    }
    // Emulators and controllers share this process; no busy one may keep the others from a thread.
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2 * AT_ONCE).enable_all().build().unwrap();
    let (lines, left_out) = runtime.block_on(tell_all(&wanted));
    let good = print(&lines);
    if left_out > 0 {
        println!("{left_out} stories with planted bugs were left out; `{WITH_BUGS}` runs them");
    }
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn has_word(name: &str, word: &str) -> bool {
    name.split_whitespace().any(|part| part == word)
}

fn name_with(story: &Story, bug: Bug) -> String {
    format!("{} {bug:?}", story.name())
}

/// The names of all stories, with and without bugs.
fn all_names() -> Vec<String> {
    let all = stories::all();
    let bitten =
        |(bug, id, _)| all.iter().filter(move |story| story.id == id).map(move |it| name_with(it, bug));
    all.iter().map(Story::name).chain(BITES.into_iter().flat_map(bitten)).collect()
}

/// Tells what is wanted; how many stories were left out because this build has no bug to plant.
async fn tell_all(wanted: &[String]) -> (Vec<Line>, usize) {
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|word| has_word(name, word));
    let all = stories::all();
    // What the same edits cost when nothing goes wrong; the others are measured by it.
    let calm = tell(all.first().unwrap().clone(), None, Seeded::NONE).await;
    let calm_writes = match &calm.verdict {
        Ok(told) => told.writes,
        Err(_) => return (vec![calm], 0),
    };
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let start = |story: Story, bug: Option<(Bug, Seeded, &'static [&'static str])>| {
        let places = Arc::clone(&places);
        tokio::spawn(async move {
            let _place = places.acquire_owned().await;
            let seeded = bug.map_or(Seeded::NONE, |(_, seeded, _)| seeded);
            let mut line = tell(story, Some(calm_writes), seeded).await;
            if let Some((bug, _, words)) = bug {
                line.name = format!("{} with the bug {bug:?} fails", line.name);
                line.must_fail = Some(words);
            }
            line
        })
    };
    let mut left_out = 0;
    // Those with a bug first: some of them take longest, since they wait for what never comes.
    let mut with_bugs = Vec::new();
    for (bug, id, words) in BITES {
        let story = all.iter().find(|story| story.id == id).unwrap();
        if !is_wanted(&name_with(story, bug)) {
            continue;
        }
        match planted(bug) {
            Some(seeded) => with_bugs.push(start(story.clone(), Some((bug, seeded, words)))),
            None => left_out += 1,
        }
    }
    let wanted_stories = all.iter().skip(1).filter(|story| is_wanted(&story.name()));
    let tasks: Vec<_> = wanted_stories.map(|story| start(story.clone(), None)).collect();
    let mut lines = vec![calm];
    for task in tasks.into_iter().chain(with_bugs) {
        lines.push(task.await.unwrap());
    }
    (lines, left_out)
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
    Line { name, verdict, must_fail: None, took: began.elapsed() }
}

/// Prints the table, and says whether everything is as it should be.
fn print(lines: &[Line]) -> bool {
    println!(
        "\n{:74} {:>7} {:>6} {:>6} {:>10} {:>6}",
        "story", "strikes", "writes", "reads", "emulated", "real"
    );
    let mut bad = 0;
    for line in lines {
        bad += usize::from(!line.is_good());
        let mark = if line.is_good() { '✓' } else { '✗' };
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
                // A failure that should be needs no more than its beginning.
                let lines_max = if line.is_good() { 3 } else { usize::MAX };
                println!("    {}", why.lines().take(lines_max).collect::<Vec<_>>().join("\n    "));
                if let Some(words) = line.must_fail.filter(|_| !line.is_good()) {
                    println!("    which is not the failure that the bug causes: {words:?}");
                }
            }
        }
    }
    match bad {
        0 => println!("all {} stories are as they should be", lines.len()),
        bad => println!("{bad} of {} stories are not as they should be", lines.len()),
    }
    bad == 0
}
