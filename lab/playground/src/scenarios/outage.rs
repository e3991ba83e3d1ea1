//! Azure is away, and comes back.

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use sluice_view::Explanation;

use crate::pace::span;
use crate::stage::{Look, Stage};

/// How often Azure is asked in vain before it comes back.
const IN_VAIN: u64 = 20;

pub(super) async fn play(stage: &mut Stage) -> Result<()> {
    stage.narrator.tell("A shop is open, and all is well.");
    stage.create_deployment("shop", 3).await?;
    stage.expose("shop", 80).await?;
    let seen = stage
        .until("the shop has an address", |seen| {
            Look::at(seen.cluster.ip("shop").is_some(), || "it is pending".to_owned())
        })
        .await?;
    let ip = seen.cluster.ip("shop").context("the shop has lost its address")?;
    stage.converged().await?;
    stage.narrator.answer(&format!("the shop has {ip} and three pods behind it"));

    stage.narrator.tell(
        "Then Azure's resource manager goes away: every call is answered with 503. People do not know, and go \
         on: a cafe opens, and the shop gets two more pods.",
    );
    stage.azure.tell("faults", json!({"match": {"area": "arm"}, "fault": "unavailable"})).await?;
    let before = stage.azure.summary().await?;
    stage.narrator.warn("Azure is away");
    stage.create_deployment("cafe", 2).await?;
    stage.expose("cafe", 80).await?;
    stage.scale("shop", 5).await?;
    let began = stage.pace.now();
    // What is asked of an Azure that is away is all that there is to see.
    stage
        .until("Kubernetes has what people want", |seen| {
            let unsettled = seen.cluster.unsettled();
            Look::at(unsettled.is_empty(), || unsettled.join("; "))
        })
        .await?;
    stage
        .until_told("Sluice asks an Azure that is away", async |stage| {
            let asked = stage.azure.summary().await?.calls - before.calls;
            Ok(if asked >= IN_VAIN { Ok(()) } else { Err(format!("it asked {asked} times")) })
        })
        .await?;
    let away = stage.pace.now().saturating_sub(began);
    let seen = stage.look().await?;
    ensure!(seen.cluster.ip("cafe").is_none(), "the cafe has an address while Azure is away");
    ensure!(seen.cluster.ip("shop").as_ref() == Some(&ip), "the shop lost its address in the outage");
    stage.narrator.warn(&format!(
        "for {} Sluice was told to come back later, and asked {IN_VAIN} times; \
         what people want is kept, the shop's address stays published, nothing is given up",
        span(away)
    ));
    stage.narrator.command("sluice explain service/default/cafe");
    let why: Explanation = stage.view("services/default/cafe/explain").await?;
    stage.narrator.warn(&why.summary);
    for wait in &why.waits_for {
        stage.narrator.warn(&wait.sentence);
    }

    stage.narrator.tell("Azure comes back. Nobody has to restart, resync or nudge anything.");
    stage.azure.calm().await?;
    let back = stage.pace.now();
    stage.narrator.answer("Azure answers again");
    let seen = stage.converged().await?;
    let took = span(stage.pace.now().saturating_sub(back));
    ensure!(seen.cluster.ip("shop") == Some(ip), "the shop has another address after the outage");
    stage.narrator.answer(&format!(
        "{took} later the cafe has {}, the shop has five pods in the gateway, and the same address as ever",
        seen.cluster.ip("cafe").unwrap_or_default()
    ));
    Ok(())
}
