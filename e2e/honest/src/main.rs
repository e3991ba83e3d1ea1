//! Keeps the simulator's Kubernetes honest: its stories, played on the model and on a real API server.
//!
//! Every step of a story is one action of somebody. It is played on the model of Kubernetes that the
//! simulator has, and on a real API server through its API; the controller's own writes follow, on the one
//! side as the model understands them, on the other by the writer that ships. What the engine would be
//! told is taken from the model's watch client on the one side and from the watches that ship on the other,
//! and must be the same, step by step: the same objects, in the same states, in the same order.
//!
//! UIDs, versions and creation times are replaced by the order in which objects are made. Several writes
//! that a kubelet needs for what is one change in the model count as one.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people and CI")]

mod controller;
mod heard;
mod model;
mod plane;
mod real;
mod requests;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser;
use sluice_sim::cluster::stories::{Story, UserAction, named};

/// So many stories must be played at least.
const STORIES_MIN: usize = 20;

/// Plays stories of the simulator on the model and on a real API server, and compares what is heard.
#[derive(Parser, Debug)]
struct Arguments {
    /// The control plane, as `cargo xtask testenv build` makes it
    #[arg(long, value_name = "PROGRAM", env = "SLUICE_TESTENV")]
    testenv: PathBuf,
    /// Only stories whose name has these words
    words: Option<String>,
    /// Name the stories, and what cannot be played and why
    #[arg(long)]
    list: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    let _ = rustls::crypto::ring::default_provider().install_default();
    match run(Arguments::parse()).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: Arguments) -> anyhow::Result<bool> {
    let (playable, others): (Vec<Story>, Vec<Story>) =
        named().into_iter().partition(|story| hindrance(story).is_none());
    anyhow::ensure!(playable.len() >= STORIES_MIN, "only {} stories can be played", playable.len());
    if arguments.list {
        playable.iter().for_each(|story| println!("{}", story.name));
        for story in &others {
            println!("not played, {}: {}", hindrance(story).unwrap_or_default(), story.name);
        }
        return Ok(true);
    }
    let words = arguments.words.unwrap_or_default();
    let chosen: Vec<Story> = playable.into_iter().filter(|story| story.name.contains(&words)).collect();
    anyhow::ensure!(!chosen.is_empty(), "no story has the words {words:?}; --list names them");
    let plane = plane::Plane::start(&arguments.testenv).await?;
    let mut failed = 0;
    for story in &chosen {
        let client = plane.client.clone();
        let model = model::play(story);
        let real = real::play(client, story).await.with_context(|| format!("in {:?}", story.name))?;
        let problems = heard::compare(story, &model, &real);
        let events: usize = model.iter().map(Vec::len).sum();
        match problems.is_empty() {
            true => println!("✓ {} ({} steps, {events} events)", story.name, story.steps.len()),
            false => {
                failed += 1;
                println!("✗ {}", story.name);
                problems.iter().for_each(|problem| println!("{problem}"));
            }
        }
    }
    plane.stop().await?;
    println!("{} passed, {failed} failed", chosen.len() - failed);
    Ok(failed == 0)
}

/// Why a story cannot be played on a real API server.
fn hindrance(story: &Story) -> Option<&'static str> {
    story.steps.iter().find_map(|(_, action)| match action {
        UserAction::DropNamespace { .. } => Some("nobody can make a namespace vanish without its finalizers"),
        UserAction::CompactHistory => Some("an API server forgets its past by its own clock"),
        UserAction::StopLeader | UserAction::AllowDeletion => Some("it is about the controller"),
        UserAction::TagPublicIp { .. }
        | UserAction::DeleteTaggedIp { .. }
        | UserAction::CreateServedByOthers { .. }
        | UserAction::Retag { .. }
        | UserAction::OthersBind { .. } => Some("it happens in Azure"),
        UserAction::Trouble(_) => Some("its faults are injected by the simulator"),
        UserAction::PutSlice { draft, .. } => {
            let is_refused = draft.endpoints.iter().any(|it| !requests::is_plain(&it.address));
            is_refused.then_some("a real API server refuses such addresses")
        }
        _ => None,
    })
}
