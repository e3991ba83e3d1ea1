//! A pod changes its way out.

use anyhow::{Context as _, Result, ensure};

use crate::pace::span;
use crate::stage::{Look, Stage};

pub(super) async fn play(stage: &mut Stage) -> Result<()> {
    stage.narrator.tell("Two crawlers go out by the egress blue. Partners know its address and let it in.");
    stage.run_with_egress("crawler-1", "blue").await?;
    stage.run_with_egress("crawler-2", "blue").await?;
    mapped(stage, "blue", 2).await?;
    let blue = address(stage, "blue").await?;
    stage.narrator.answer(&format!("both go out by {blue}"));

    stage.narrator.tell(
        "Another partner knows nobody yet, so crawler-1 gets an egress of its own. Nothing has to be restarted: \
         the label of the running pod is changed. An address may belong to one egress only, so it leaves the \
         one and joins the other in the same request.",
    );
    stage.set_egress("crawler-1", "green").await?;
    let began = stage.pace.now();
    mapped(stage, "green", 1).await?;
    let green = address(stage, "green").await?;
    ensure!(blue != green, "both egresses have the address {blue}");
    let took = span(stage.pace.now().saturating_sub(began));
    stage.narrator.answer(&format!("after {took} crawler-1 goes out by {green}; crawler-2 still by {blue}"));
    mapped(stage, "blue", 1).await?;

    stage.narrator.tell(
        "Then crawler-2 moves as well, and nobody is left in blue. An egress lives as long as its pods: its NAT \
         gateway and its address cost money and are given back (sluice.egress.linger keeps them for a while, for \
         whoever wants that).",
    );
    stage.set_egress("crawler-2", "green").await?;
    mapped(stage, "green", 2).await?;
    stage.narrator.answer(&format!("both go out by {green}"));
    stage
        .until("blue is gone", |seen| {
            let is_gone = seen.azure.named("natGateways", "blue").is_none()
                && seen.azure.named("publicIPAddresses", "blue-pip").is_none();
            Look::at(is_gone, || "its NAT gateway or its public IP is still there".to_owned())
        })
        .await?;
    stage.narrator.answer(&format!("blue and its address {blue} are given back"));
    Ok(())
}

async fn mapped(stage: &mut Stage, egress: &str, wanted: usize) -> Result<()> {
    stage
        .until(&format!("the gateway has {wanted} of {egress}"), |seen| {
            let found = seen.azure.addresses_of(egress);
            Look::at(found == wanted, || format!("it has {found}"))
        })
        .await?;
    Ok(())
}

async fn address(stage: &Stage, egress: &str) -> Result<String> {
    let seen = stage.look().await?;
    seen.azure
        .address(&format!("{egress}-pip"))
        .map(str::to_owned)
        .with_context(|| format!("the egress {egress} has no public IP"))
}
