//! Plays stories: several at once, each on a control plane of its own, and tells how they ended.
//!
//! A plane is started when a worker first needs one and serves story after story. A story that fails
//! may have left anything behind, so its plane goes with it.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use futures::FutureExt as _;

use crate::narration::Narration;
use crate::plane::{Material, Plane};
use crate::scene::{self, Programs, Scene};
use crate::story::{Story, Variant};

/// What is to be played.
#[derive(Clone, Copy)]
pub(crate) struct Run {
    pub(crate) story: &'static Story,
    pub(crate) variant: Variant,
}

impl Run {
    /// `name/variant`.
    pub(crate) fn name(&self) -> String {
        format!("{}/{}", self.story.name, self.variant)
    }
}

/// With what.
pub(crate) struct Means {
    /// What control planes are made of.
    pub(crate) planes: Material,
    pub(crate) programs: Programs,
    /// Logs and states of stories that failed stay here.
    pub(crate) artefacts: PathBuf,
    pub(crate) seed: u64,
    pub(crate) jobs: usize,
    /// Tell what happens as it happens.
    pub(crate) narrate: bool,
}

/// How one ended.
pub(crate) struct Ended {
    pub(crate) name: String,
    pub(crate) took: Duration,
    /// Why it failed, with all that helps to understand it.
    pub(crate) failure: Option<String>,
}

/// Plays all of them, and gives each to `tell` as it ends.
pub(crate) fn play_all(runs: Vec<Run>, means: &Means, tell: fn(&Ended)) -> Result<Vec<Ended>> {
    let workers = means.jobs.min(runs.len()).max(1);
    let queue = Mutex::new(VecDeque::from(runs));
    let queue = &queue;
    std::thread::scope(|threads| {
        let working: Vec<_> =
            (1..=workers).map(|number| threads.spawn(move || work_off(number, queue, means, tell))).collect();
        let mut all = Vec::new();
        for worker in working {
            all.extend(worker.join().map_err(|panic| anyhow!("a worker panicked: {}", words(&*panic)))??);
        }
        Ok(all)
    })
}

/// One worker: a thread, a runtime, and a plane for as long as it does.
fn work_off(
    number: usize,
    queue: &Mutex<VecDeque<Run>>,
    means: &Means,
    tell: fn(&Ended),
) -> Result<Vec<Ended>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut plane: Option<Arc<Plane>> = None;
        let mut ended = Vec::new();
        loop {
            let next = queue.lock().expect("nobody panics with the queue in hand").pop_front();
            let Some(run) = next else { return Ok(ended) };
            let began = Instant::now();
            let ready = match plane.take() {
                Some(ready) => Ok(ready),
                None => Plane::start(number, &means.planes, &means.artefacts).await.map(Arc::new),
            };
            let it = match &ready {
                Ok(ready) => play(&run, Arc::clone(ready), means).await,
                Err(problem) => {
                    let failure = Some(format!("it has no control plane: {problem:#}"));
                    Ended { name: run.name(), took: began.elapsed(), failure }
                }
            };
            tell(&it);
            let is_clean = it.failure.is_none() && !run.story.setting().leaves_all;
            plane = ready.ok().filter(|_| is_clean);
            ended.push(it);
        }
    })
}

async fn play(run: &Run, plane: Arc<Plane>, means: &Means) -> Ended {
    let began = Instant::now();
    let narration = Arc::new(Narration::new(means.narrate));
    if means.narrate {
        println!("{}: {}", run.name(), run.story.does);
    }
    let folder = means.artefacts.join(format!("{}-{}", run.story.name, run.variant));
    let outcome = play_in(run, plane, means, &folder, &narration).await;
    let failure = outcome.err().map(|(problem, report)| {
        let told = if narration.is_shown() { String::new() } else { format!("{}\n\n", narration.text()) };
        let _ = std::fs::write(folder.join("narration.txt"), narration.text());
        let place = match means.planes {
            Material::Testenv { .. } => "",
            Material::Playground { .. } => "--playground ",
        };
        format!(
            "{told}{problem:#}\n\n{report}\nits logs and states: {}\nagain: cargo xtask e2e {place}{} --variant {} --seed {}",
            folder.display(),
            run.story.name,
            run.variant,
            means.seed
        )
    });
    if failure.is_none() {
        let _ = std::fs::remove_dir_all(&folder);
    }
    Ended { name: run.name(), took: began.elapsed(), failure }
}

async fn play_in(
    run: &Run,
    plane: Arc<Plane>,
    means: &Means,
    folder: &Path,
    narration: &Arc<Narration>,
) -> Result<(), (anyhow::Error, String)> {
    let alone = |problem: anyhow::Error| (problem, String::new());
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder).map_err(|problem| alone(problem.into()))?;
    let scene =
        scene::set(run.story, run.variant, means.seed, plane, &means.programs, folder, Arc::clone(narration))
            .await
            .map_err(alone)?;
    let whole = AssertUnwindSafe(to_the_end(run, &scene)).catch_unwind();
    let longest = scene.setting.longest;
    let outcome = match tokio::time::timeout(longest, whole).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(panic)) => Err(anyhow!("the story panicked: {}", words(&*panic))),
        Err(_) => Err(anyhow!("the story is not over after {longest:?}")),
    };
    match outcome {
        Ok(()) => Ok(()),
        Err(problem) => {
            let report = scene.report().await;
            for replica in &scene.replicas {
                let _ = replica.kill().await;
            }
            Err((problem, report))
        }
    }
}

async fn to_the_end(run: &Run, scene: &Scene) -> Result<()> {
    (run.story.play)(scene).await?;
    // Whatever was left of its faults would hit the questions of the judge.
    scene.azure.calm().await?;
    scene.judged().await.context("at the end of the story")?;
    if scene.setting.leaves_all {
        for replica in &scene.replicas {
            replica.stop().await?;
        }
        return Ok(());
    }
    scene.struck().await.context("after the story")
}

fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a word").to_string()
}
