//! `sluice migrate`: what an administrator runs once when Sluice takes over from another controller.
//!
//! `migrate pods` removes the finalizer that the Service Gateway mode of the cloud controller manager put on pods.
//! It is a command and not a part of the controller, so that the controller needs no permission to patch pods.

use std::time::{Duration, Instant};

use anyhow::anyhow;
use clap::{Args, Subcommand};
use futures::future::LocalBoxFuture;
use kube::Client;
use serde::Serialize;
use sluice_controller::{Clock as _, Monotonic};
use sluice_k8s::migrate::{HeldPod, Pods, Unreleased, list_pods, release_pods};
use sluice_k8s::strings::PREDECESSOR_POD_FINALIZER;
use sluice_k8s::{access, connect};

use crate::consent;
use crate::doctor;
use crate::failure::{Failure, exit};
use crate::output::Output;
use crate::reach::again;
use crate::say;

/// Pods that are named in the text; JSON names all.
const NAMED_MAX: usize = 20;
/// How often pods are tried that could not be released for the moment.
const ROUNDS: u32 = 4;
/// The pause between two rounds.
const PAUSE: Duration = Duration::from_secs(2);
/// How often the progress is printed at most.
const PROGRESS: Duration = Duration::from_secs(2);

/// Migrate from the cloud controller manager.
#[derive(Args, Debug)]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Remove the finalizer of the cloud controller manager from pods
    ///
    /// In Service Gateway mode, the cloud controller manager puts the finalizer servicegateway.azure.com/pod-cleanup on
    /// pods. Once the mode is disabled, a pod with this finalizer can be deleted but never disappears. The command shows
    /// all pods with the finalizer, asks for confirmation, and removes the finalizer. Run it once, as an administrator, after the mode is disabled.
    #[command(after_long_help = PODS_HELP)]
    Pods(PodsArguments),
}

#[derive(Args, Debug)]
struct PodsArguments {
    /// Skip the confirmation prompt
    #[arg(long)]
    yes: bool,
    /// Output format
    ///
    /// JSON output never prompts: without --yes it only lists the pods.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
    /// Kubeconfig file [default: in-cluster, then kubectl's default]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<std::path::PathBuf>,
    /// Kubeconfig context [default: the current context]
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

const PODS_HELP: &str = "\
Example: sluice migrate pods

Requires list, get and patch on the pods of all namespaces. Running the command again is safe.

Exit codes: 0 finalizers removed, declined at the prompt, only listed, or no finalizer to remove · 1 failed, or some pods still have the finalizer · \
2 invalid arguments · 5 Kubernetes unreachable or access denied";

/// What was found, and what came of it.
#[derive(Serialize, Default, PartialEq, Eq, Debug)]
struct Report {
    /// Number of pods in the cluster.
    seen: usize,
    /// Pods with the finalizer, before anything was changed.
    held: Vec<String>,
    /// Number of pods from which it was removed.
    released: usize,
    /// Pods that still have it, if it was to be removed.
    left: Vec<Left>,
}

#[derive(Serialize, PartialEq, Eq, Debug)]
struct Left {
    pod: String,
    error: String,
}

/// Runs what was named.
pub fn run(arguments: Arguments) -> LocalBoxFuture<'static, Result<(), Failure>> {
    let What::Pods(arguments) = arguments.what;
    Box::pin(pods(arguments))
}

/// Shows the pods with the finalizer, asks, and removes it.
async fn pods(arguments: PodsArguments) -> Result<(), Failure> {
    let denied = |error: anyhow::Error| Failure::new(exit::KUBERNETES, error);
    let connection = connect::connect(arguments.kubeconfig.as_deref(), arguments.context.as_deref()).await;
    let client = connection.map_err(|error| denied(error.into()))?.client;
    let clock = Monotonic::start();
    let Pods { seen, mut held } =
        again(&clock, async || list_pods(&client).await).await.map_err(|error| denied(error.into()))?;
    held.sort_by(|one, other| one.name.cmp(&other.name));
    let mut report =
        Report { seen, held: held.iter().map(|pod| pod.name.to_string()).collect(), ..Report::default() };
    let is_text = arguments.output == Output::Text;
    if is_text {
        say!("{}", plan(&report));
    }
    let goes_on = match arguments.output {
        _ if held.is_empty() => false,
        Output::Text => consent::given(
            arguments.yes,
            "The Service Gateway mode of the cloud controller manager must be off, and Sluice must be running. Remove the finalizer from these pods?",
        )?,
        Output::Json => arguments.yes,
    };
    if !goes_on {
        match arguments.output {
            Output::Json => say_json(&report),
            Output::Text if held.is_empty() => {}
            Output::Text => say!("No changes made."),
        }
        return Ok(());
    }
    permitted(&client).await?;
    let left = release_all(&client, held, &clock).await;
    report.released = report.held.len() - left.len();
    report.left = left.into_iter().map(|it| Left { pod: it.pod.name.to_string(), error: it.error }).collect();
    match arguments.output {
        Output::Text => say!("{}", outcome(&report)),
        Output::Json => say_json(&report),
    }
    match report.left.len() {
        0 => Ok(()),
        left => Err(Failure::new(
            exit::FAILED,
            anyhow!("the finalizer is still on {left} of {}", pods_of(report.held.len())),
        )
        .hint(
            "correct the causes above, then run `sluice migrate pods` again; released pods are not affected",
        )),
    }
}

/// Asks for the permissions, so that a missing one is one message and not one per pod.
async fn permitted(client: &Client) -> Result<(), Failure> {
    let needs = access::needs_to_migrate_pods();
    let missing =
        access::missing(client, &needs).await.map_err(|error| Failure::new(exit::KUBERNETES, error))?;
    if missing.is_empty() {
        return Ok(());
    }
    let list: Vec<String> = missing.iter().map(doctor::permission).collect();
    let error =
        anyhow!("no changes made: the Kubernetes account lacks these permissions: {}", list.join(", "));
    Err(Failure::new(exit::KUBERNETES, error).hint("run the command as an administrator of the cluster"))
}

/// Releases these pods, some of them in several rounds. Returns those that still have the finalizer.
async fn release_all(client: &Client, mut held: Vec<HeldPod>, clock: &Monotonic) -> Vec<Unreleased> {
    let (mut released, all) = (0, held.len());
    let mut shown = Instant::now();
    let mut refused = Vec::new();
    for round in 1.. {
        let left = release_pods(client, std::mem::take(&mut held), || {
            released += 1;
            if shown.elapsed() >= PROGRESS {
                eprintln!("released {released} of {all} pods …");
                shown = Instant::now();
            }
        });
        let (passing, more): (Vec<Unreleased>, Vec<Unreleased>) =
            left.await.into_iter().partition(|it| it.is_passing && round < ROUNDS);
        refused.extend(more);
        if passing.is_empty() {
            break;
        }
        held = passing.into_iter().map(|it| it.pod).collect();
        clock.sleep_until(clock.now() + PAUSE).await;
    }
    refused.sort_by(|one, other| one.pod.name.cmp(&other.pod.name));
    refused
}

fn pods_of(count: usize) -> String {
    format!("{count} {}", if count == 1 { "pod" } else { "pods" })
}

/// The first lines, and how many more there are.
fn some(lines: impl ExactSizeIterator<Item = String>) -> String {
    let more = lines.len().saturating_sub(NAMED_MAX);
    let mut text: String = lines.take(NAMED_MAX).collect();
    if more > 0 {
        text.push_str(&format!("… and {more} more; --output json lists all\n"));
    }
    text
}

fn plan(report: &Report) -> String {
    let (seen, held) = (pods_of(report.seen), report.held.len());
    if held == 0 {
        return format!("Nothing to release: none of {seen} has the finalizer {PREDECESSOR_POD_FINALIZER}.");
    }
    let pods = some(report.held.iter().map(|pod| format!("~ {pod}\n")));
    format!("{pods}Plan: remove the finalizer {PREDECESSOR_POD_FINALIZER} from {held} of {seen}.")
}

fn outcome(report: &Report) -> String {
    let left =
        some(report.left.iter().map(|left| format!("! {}: not released ({})\n", left.pod, left.error)));
    format!("{left}Released: {} of {}.", report.released, pods_of(report.held.len()))
}

fn say_json(report: &Report) {
    say!("{}", serde_json::to_string_pretty(report).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn report(held: usize, left: usize) -> Report {
        let names = |count: usize| (0..count).map(|at| format!("shop/web-{at}"));
        let left: Vec<Left> = names(left).map(|pod| Left { pod, error: "a policy says no".into() }).collect();
        Report { seen: 90, held: names(held).collect(), released: held - left.len(), left }
    }

    #[test]
    fn the_plan_names_pods_and_counts_the_rest() {
        expect![[r#"
            ~ shop/web-0
            ~ shop/web-1
            Plan: remove the finalizer servicegateway.azure.com/pod-cleanup from 2 of 90 pods."#]]
        .assert_eq(&plan(&report(2, 0)));
        let many = plan(&report(25, 0));
        assert!(many.contains("~ shop/web-19\n… and 5 more; --output json lists all\n"), "{many}");
        expect![
            "Nothing to release: none of 90 pods has the finalizer servicegateway.azure.com/pod-cleanup."
        ]
        .assert_eq(&plan(&report(0, 0)));
    }

    #[test]
    fn the_outcome_names_pods_that_were_not_released() {
        expect![[r#"
            ! shop/web-0: not released (a policy says no)
            Released: 1 of 2 pods."#]]
        .assert_eq(&outcome(&report(2, 1)));
        expect!["Released: 1 of 1 pod."].assert_eq(&outcome(&report(1, 0)));
    }

    #[test]
    fn json_names_every_pod() {
        expect![[r#"{"seen":90,"held":["shop/web-0"],"released":0,"left":[{"pod":"shop/web-0","error":"a policy says no"}]}"#]]
            .assert_eq(&serde_json::to_string(&report(1, 1)).unwrap());
    }
}
