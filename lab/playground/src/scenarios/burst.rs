//! 200 Services at once.

use anyhow::{Result, ensure};

use crate::narrator::count;
use crate::stage::Stage;

/// Number of Services.
const SERVICES: usize = 200;
/// Number of pods behind all of them.
const PODS: usize = 4;

pub(super) async fn play(stage: &mut Stage) -> Result<()> {
    stage.narrator.step(
        "Create Deployment web with 4 pods. All Services select these pods, so Azure stores each address with the \
         names of 200 Services.",
    );
    stage.create_deployment("web", PODS as u32).await?;
    stage.settled_pods().await?;
    stage.narrator.answer("Deployment web: 4 of 4 pods ready");

    stage.narrator.step(
        "Create 200 Services. Azure accepts 200 writes at once and then 10 per second for the whole subscription, \
         so Sluice limits itself to 80% of that and registers several Services per request.",
    );
    let before = stage.azure.summary().await?;
    let began = stage.pace.now();
    stage.expose_many("web", "web", 1..=SERVICES).await?;
    let served = stage.look().await?.cluster.ips().len();
    stage.narrator.answer(&format!("{SERVICES} Services created; {served} of them have a public IP so far"));
    stage.until_all("Services have a public IP", SERVICES, |seen| seen.cluster.ips().len()).await?;
    stage
        .narrator
        .answer(&format!("{SERVICES} of {SERVICES} Services have a public IP, after {}", stage.since(began)));
    let mapped =
        |seen: &crate::check::Seen| seen.azure.mapped().iter().map(|(_, _, services)| services.len()).sum();
    stage.until_all("pairs of address and Service are programmed", PODS * SERVICES, mapped).await?;
    let after = stage.azure.summary().await?;
    let (calls, writes) = (after.calls - before.calls, after.writes - before.writes);
    stage.narrator.answer(&format!("{PODS} addresses programmed for {SERVICES} Services each"));
    stage.narrator.answer(&format!(
        "{} to Azure: {} ({} of addresses) and {}",
        count(calls, "call"),
        count(writes, "write"),
        after.location_updates - before.location_updates,
        count(calls - writes, "read")
    ));
    ensure!(after.early == 0, "{} sent before Retry-After had elapsed", count(after.early, "call"));
    stage.narrator.answer(&match after.throttled {
        0 => "0 calls throttled (429)".to_owned(),
        times => format!("{} throttled (429), each retried after Retry-After", count(times, "call")),
    });
    Ok(())
}
