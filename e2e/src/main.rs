//! The stories, end to end: a real API server, the emulator as a process, and the shipped binary.
//!
//! It uses the emulator's client and no code of the controller. What the controller has done is judged from outside, by the
//! API server and the emulator; see [`judge`]. How a story is played is in [`scene`], how one is
//! written in `README.md`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it speaks to a terminal")]

mod azure;
mod baselines;
mod checks;
mod controller;
mod judge;
mod narration;
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
use clap::{Parser, Subcommand, ValueEnum};
use plane::Material;
use runner::{Ended, Means, Run};
use scene::Programs;
use serde_json::json;
use sluice_emulator_client::process;
use story::{Story, Variant};

/// Plays stories against a real API server, the emulator and the shipped binary.
#[derive(Parser, Debug)]
#[command(name = "sluice-e2e", args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = checks::HELP)]
struct Arguments {
    #[command(subcommand)]
    instead: Option<Instead>,
    /// The stories to play [default: all]
    names: Vec<String>,
    /// Leave out these stories
    #[arg(long, value_name = "NAME")]
    without: Vec<String>,
    /// List the stories, how each is run, and why some are not run in every way
    #[arg(long)]
    list: bool,
    /// Only in this way
    #[arg(long, value_enum)]
    variant: Option<Variant>,
    /// Decides when the controller is killed, and which ways `--short` plays
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Play half of the stories in the plain way, and a third of the other ways, which the seed chooses; with
    /// `--playground` a third of the plain ways and no others
    #[arg(long, conflicts_with_all = ["names", "variant"])]
    short: bool,
    /// How many stories are played at once, each on a control plane of its own [default: two for each core]
    #[arg(long)]
    jobs: Option<usize>,
    /// How to tell what came of it
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
    /// Play on the API server of `sluice playground` instead of a real one; what needs a real one is left out
    #[arg(long)]
    playground: bool,
    /// Path of the testenv program
    #[arg(long, env = "SLUICE_TESTENV", required_unless_present_any = ["list", "playground"])]
    testenv: Option<PathBuf>,
    /// The program under test: the production build
    #[arg(long, required_unless_present = "list")]
    sluice: Option<PathBuf>,
    /// The build with the lab: emulator, playground, and the controller of stories that need the scaled clock
    #[arg(long, required_unless_present = "list")]
    lab: Option<PathBuf>,
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

/// What there is beside the stories.
#[derive(Subcommand, Debug)]
enum Instead {
    Baselines(baselines::Arguments),
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Output {
    Text,
    Json,
}

fn main() -> ExitCode {
    // Two rustls providers in one process would panic at the first client; this is the one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    if let Some(check) = checks::asked() {
        return checks::main(check);
    }
    let arguments = Arguments::parse();
    let outcome = match arguments.instead {
        Some(Instead::Baselines(arguments)) => baselines::run(arguments),
        None if arguments.list => {
            list(arguments.output);
            Ok(true)
        }
        None => play(arguments),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(problem) => {
            eprintln!("{problem:#}");
            ExitCode::from(2)
        }
    }
}

/// Prints every story with its claim.
fn list(output: Output) {
    let stories = stories::all();
    if output == Output::Json {
        let row = |it: &&Story| {
            let variants: Vec<&str> = it.variants().iter().map(|way| way.word()).collect();
            json!({
                "name": it.name, "does": it.does, "variants": variants, "whyNotAll": it.why_not_all(),
                "whyScaled": it.why_scaled(),
            })
        };
        let rows: Vec<_> = stories.iter().map(row).collect();
        println!("{}", json!({ "stories": rows }));
        return;
    }
    for it in &stories {
        println!("{:<36} {:<22} {}", it.name, ways(it), it.does);
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
    let scaled: Vec<_> = stories.iter().filter_map(|it| Some((it.name, it.why_scaled()?))).collect();
    let needs = if scaled.len() == 1 { "story needs" } else { "stories need" };
    println!("{} {needs} the scaled clock, and the lab build with it:", scaled.len());
    for (name, why) in scaled {
        println!("{name}: {why}");
    }
}

fn ways(story: &Story) -> String {
    let words: Vec<&str> = story.variants().iter().map(|way| way.word()).collect();
    words.join(", ")
}

fn play(arguments: Arguments) -> Result<bool> {
    let runs = choose(&arguments)?;
    let sluice = existing(arguments.sluice, "--sluice")?;
    let lab = existing(arguments.lab, "--lab")?;
    let planes = if arguments.playground {
        Material::Playground { program: lab.clone() }
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
    let means = Means {
        programs: Programs { asks_plan: !arguments.without_plan, sluice, lab },
        planes,
        artefacts: artefacts.clone(),
        seed: arguments.seed,
        jobs,
        narrate,
    };
    let ended = runner::play_all(runs, &means, tell)?;
    let failed = ended.iter().filter(|it| it.failure.is_some()).count();
    if output == Output::Text {
        println!("\n{} passed, {failed} failed", ended.len() - failed);
        for it in ended.iter().filter(|it| it.failure.is_some()) {
            println!("  FAILED {}", it.name);
        }
        if arguments.without_plan {
            println!("  PLAN NOT CHECKED: --without-plan");
        }
    }
    if failed == 0 {
        let _ = std::fs::remove_dir_all(&artefacts);
    }
    Ok(failed == 0)
}

/// What the words on the command line mean.
fn choose(arguments: &Arguments) -> Result<Vec<Run>> {
    let all = stories::all();
    let mut stories: Vec<&'static Story> = Vec::new();
    for name in arguments.names.iter().chain(&arguments.without) {
        match all.iter().find(|story| story.name == name) {
            Some(story) => stories.push(story),
            None => bail!("there is no story {name:?}; --list shows all of them"),
        }
    }
    if arguments.names.is_empty() {
        stories = all;
    }
    stories.retain(|it| !arguments.without.iter().any(|name| name == it.name));
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
    if arguments.short {
        let (plain, others): (Vec<Run>, Vec<Run>) =
            runs.into_iter().partition(|it| it.variant == Variant::Plain);
        runs = match arguments.playground {
            true => one_in(3, plain, arguments.seed),
            false => [one_in(2, plain, arguments.seed), one_in(3, others, arguments.seed)].concat(),
        };
    }
    Ok(runs)
}

/// One in so many of them; as many seeds in a row choose all.
fn one_in<T>(step: u32, all: Vec<T>, seed: u64) -> Vec<T> {
    let first = seed % u64::from(step);
    (0..).zip(all).filter(|(at, _)| at % u64::from(step) == first).map(|(_, one)| one).collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn chosen(words: &str) -> Vec<String> {
        let words = format!("sluice-e2e --sluice s --lab l --testenv t {words}");
        let arguments = Arguments::try_parse_from(words.split(' ')).unwrap();
        choose(&arguments).unwrap().iter().map(Run::name).collect()
    }

    #[test]
    fn six_seeds_play_every_plain_way_three_times_and_every_other_way_twice() {
        let mut times: BTreeMap<String, usize> = BTreeMap::new();
        let mut lengths = Vec::new();
        for seed in 7..13 {
            let names = chosen(&format!("--short --seed {seed}"));
            lengths.push(names.len());
            names.into_iter().for_each(|name| *times.entry(name).or_default() += 1);
        }
        assert!(lengths.iter().max().unwrap() - lengths.iter().min().unwrap() <= 2, "{lengths:?}");
        let mut all = chosen("--seed 7");
        all.sort();
        assert_eq!(times.keys().cloned().collect::<Vec<_>>(), all);
        for (name, number) in times {
            assert_eq!(number, if name.ends_with("/plain") { 3 } else { 2 }, "{name}");
        }
    }

    #[test]
    fn on_the_playground_three_seeds_play_every_plain_way_once() {
        let mut all: Vec<String> =
            (0..3).flat_map(|seed| chosen(&format!("--short --playground --seed {seed}"))).collect();
        all.sort();
        let mut plain = chosen("--playground --variant plain");
        plain.sort();
        assert_eq!(all, plain);
    }
}
