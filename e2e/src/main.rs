//! The stories, end to end: a real API server, the emulator as a process, and the shipped binary.
//!
//! It uses the emulator's client and no code of the controller. What the controller has done is judged from outside, by the
//! API server and the emulator; see [`judge`]. How a story is played is in [`scene`], how one is
//! written in `README.md`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it speaks to a terminal")]

mod azure;
mod checks;
mod controller;
mod judge;
mod narration;
mod page;
mod plane;
mod recorder;
mod runner;
mod scene;
mod seed;
mod setting;
mod stories;
mod story;
mod world;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use clap::{Parser, ValueEnum};
use plane::Material;
use runner::{Ended, Means, Run};
use scene::Programs;
use seed::Seeded;
use serde_json::json;
use sluice_emulator_client::process;
use story::{Story, Variant};

/// Plays stories against a real API server, the emulator and the shipped binary.
#[derive(Parser, Debug)]
#[command(name = "sluice-e2e", after_help = checks::HELP)]
struct Arguments {
    /// The stories to play [default: all]
    names: Vec<String>,
    /// Say which stories there are, and fail if one is missing
    #[arg(long)]
    list: bool,
    /// Only in this way
    #[arg(long, value_enum)]
    variant: Option<Variant>,
    /// Decides when the controller is killed, and which third is played
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only a part of all, which the seed chooses: 1/3, 2/3 or 3/3
    #[arg(long, value_name = "K/3", value_parser = third)]
    third: Option<usize>,
    /// How many stories are played at once, each on a control plane of its own [default: two for each core]
    #[arg(long)]
    jobs: Option<usize>,
    /// Play what failed once more, alone and with the same seed: for machines that are too busy for several at once.
    /// What passes then is called unsteady; one of them does not fail the whole, two do. What no busy machine
    /// excuses (a crash, a plan that is not in sync, a broken history) stays a failure
    #[arg(long)]
    again: bool,
    /// How to tell what came of it
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
    /// Play on the API server of `sluice playground` instead of a real one; what needs a real one is left out
    #[arg(long)]
    playground: bool,
    /// The program that is a control plane
    #[arg(long, env = "SLUICE_TESTENV", required_unless_present_any = ["list", "playground"])]
    testenv: Option<PathBuf>,
    /// The program under test
    #[arg(long, required_unless_present = "list")]
    sluice: Option<PathBuf>,
    /// The manifests with the controller's permissions
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/sluice.yaml"))]
    manifests: PathBuf,
    /// Do not ask `sluice plan` after a story; for a look at the rest while it is out of order
    #[arg(long)]
    without_plan: bool,
    /// Where logs and states of failed stories go [default: a new temporary folder]
    #[arg(long)]
    artefacts: Option<PathBuf>,
}

/// How many stories may fail and pass when they are alone. A race shows in more than one of them sooner or later.
const UNSTEADY_MAX: usize = 1;

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Output {
    Text,
    Json,
}

fn third(text: &str) -> Result<usize, String> {
    match text {
        "1/3" => Ok(0),
        "2/3" => Ok(1),
        "3/3" => Ok(2),
        _ => Err("a third is 1/3, 2/3 or 3/3".to_string()),
    }
}

fn main() -> ExitCode {
    // Two rustls providers in one process would panic at the first client; this is the one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    if let Some(check) = checks::asked() {
        return checks::main(check);
    }
    let arguments = Arguments::parse();
    let outcome = if arguments.list { list(arguments.output) } else { play(arguments) };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(problem) => {
            eprintln!("{problem:#}");
            ExitCode::from(2)
        }
    }
}

/// Prints every promise with its stories; whether none is missing.
fn list(output: Output) -> Result<bool> {
    let stories = stories::all();
    let gaps = page::gaps(&stories);
    if output == Output::Json {
        let row = |it: &&Story| {
            let variants: Vec<&str> = it.variants().iter().map(|way| way.word()).collect();
            json!({"name": it.name, "does": it.does, "variants": variants, "whyNotAll": it.why_not_all()})
        };
        let rows: Vec<_> = stories.iter().map(row).collect();
        println!("{}", json!({"stories": rows, "gaps": gaps}));
        return Ok(gaps.is_empty());
    }
    for promise in page::PAGE {
        println!("{}", promise.says);
        for name in promise.stories {
            match stories.iter().find(|it| it.name == *name) {
                Some(it) => println!("  {name:<32} {:<22} {}", ways(it), it.does),
                None => println!("  {name:<32} MISSING"),
            }
        }
    }
    let runs: usize = stories.iter().map(|it| it.variants().len()).sum();
    println!("\n{} stories in {runs} ways to run them", stories.len());
    for it in stories.iter().filter(|it| !it.why_not_all().is_empty()) {
        println!("{}: only {}, because {}", it.name, ways(it), it.why_not_all());
    }
    for it in &stories {
        if let Some(why) = it.why_not_on_the_playground() {
            println!("{}: not on the playground's API server, because {why}", it.name);
        }
    }
    for gap in &gaps {
        eprintln!("{gap}");
    }
    Ok(gaps.is_empty())
}

fn ways(story: &Story) -> String {
    let words: Vec<&str> = story.variants().iter().map(|way| way.word()).collect();
    words.join(", ")
}

fn play(arguments: Arguments) -> Result<bool> {
    let runs = choose(&arguments)?;
    let sluice = existing(arguments.sluice, "--sluice")?;
    let planes = if arguments.playground {
        Material::Playground { program: sluice.clone() }
    } else {
        Material::Testenv {
            program: existing(arguments.testenv, "--testenv")?,
            manifests: existing(Some(arguments.manifests), "--manifests")?,
        }
    };
    let artefacts = match arguments.artefacts {
        Some(folder) => folder,
        None => tempfile::Builder::new().prefix("sluice-e2e-").tempdir()?.keep(),
    };
    std::fs::create_dir_all(&artefacts)?;
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let jobs = arguments.jobs.unwrap_or(2 * cores).max(1);
    let output = arguments.output;
    let number = runs.len();
    if output == Output::Text {
        println!("{number} to play with seed {}, {} at once", arguments.seed, jobs.min(number));
    }
    let narrate = output == Output::Text && number == 1;
    let tell = if output == Output::Json { tell_json } else { tell_text };
    let mut means = Means {
        programs: Programs { asks_plan: !arguments.without_plan, sluice },
        planes,
        artefacts: artefacts.clone(),
        seed: arguments.seed,
        jobs,
        narrate,
        again: false,
    };
    let mut ended = runner::play_all(runs.clone(), &means, tell)?;
    let mut unsteady = Vec::new();
    if arguments.again && ended.iter().any(|it| it.failure.is_some()) {
        let may_pass = |it: &Ended| it.failure.is_some() && !it.is_broken;
        let failed = |run: &Run| ended.iter().any(|it| may_pass(it) && it.name == run.name());
        let again: Vec<Run> = runs.into_iter().filter(failed).collect();
        if output == Output::Text {
            println!("\nonce more, one at a time: {}", again.len());
        }
        (means.jobs, means.narrate, means.again) = (1, output == Output::Text, true);
        for second in runner::play_all(again, &means, tell)?.into_iter().filter(|it| it.failure.is_none()) {
            ended.retain(|it| it.name != second.name);
            unsteady.push(second.name.clone());
            ended.push(second);
        }
    }
    let failed = ended.iter().filter(|it| it.failure.is_some()).count();
    if output == Output::Text {
        println!("\n{} passed, {failed} failed", ended.len() - failed);
        for it in ended.iter().filter(|it| it.failure.is_some()) {
            println!("  FAILED {}", it.name);
        }
        for name in &unsteady {
            println!("  UNSTEADY {name}: it failed, and passed when it was alone");
        }
        if !unsteady.is_empty() {
            println!("  what the first failures left: {}", artefacts.display());
        }
        if arguments.without_plan {
            println!("  PLAN NOT CHECKED: --without-plan");
        }
    }
    if failed == 0 && unsteady.is_empty() {
        let _ = std::fs::remove_dir_all(&artefacts);
    }
    Ok(failed == 0 && unsteady.len() <= UNSTEADY_MAX)
}

/// What the words on the command line mean.
fn choose(arguments: &Arguments) -> Result<Vec<Run>> {
    let all = stories::all();
    let mut stories: Vec<&'static Story> = Vec::new();
    for name in &arguments.names {
        match all.iter().find(|story| story.name == name) {
            Some(story) => stories.push(story),
            None => bail!("there is no story {name:?}; --list shows all of them"),
        }
    }
    if stories.is_empty() {
        stories = all;
    }
    if arguments.playground {
        stories.retain(|it| it.why_not_on_the_playground().is_none());
    }
    let mut runs: Vec<Run> = Vec::new();
    for story in stories {
        let ways = story.variants().iter().filter(|way| arguments.variant.is_none_or(|only| only == **way));
        runs.extend(ways.map(|variant| Run { story, variant: *variant }));
    }
    if runs.is_empty() {
        bail!("none of these is run in this way; --list shows the ways and why");
    }
    if let Some(third) = arguments.third {
        Seeded::new(arguments.seed, "thirds").shuffle(&mut runs);
        runs = runs.into_iter().enumerate().filter(|(at, _)| at % 3 == third).map(|(_, run)| run).collect();
    }
    Ok(runs)
}

fn existing(path: Option<PathBuf>, flag: &str) -> Result<PathBuf> {
    let path = path.with_context(|| format!("{flag} is missing"))?;
    if !path.exists() {
        bail!("{flag}: {} is not there", path.display());
    }
    Ok(std::fs::canonicalize(&path)?)
}

fn tell_text(it: &Ended) {
    let word = if it.failure.is_some() { "FAILED" } else { "passed" };
    println!("{word} {:>7.1} s  {}", it.took.as_secs_f64(), it.name);
    if let Some(why) = &it.failure {
        println!("{}", why.lines().map(|line| format!("    {line}\n")).collect::<String>());
    }
}

fn tell_json(it: &Ended) {
    println!(
        "{}",
        json!({
            "name": it.name,
            "passed": it.failure.is_none(),
            "seconds": it.took.as_secs_f64(),
            "failure": it.failure,
        })
    );
}
