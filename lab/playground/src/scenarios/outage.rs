//! Azure is unavailable for a while.

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use sluice_view::Explanation;

use crate::narrator::count;
use crate::stage::{Look, Stage};

/// Number of failed calls before the outage ends.
const CALLS: u64 = 20;

pub(super) async fn play(stage: &mut Stage) -> Result<()> {
    stage.narrator.step(
        "Create Deployment shop with 3 pods and expose it. Its public IP must stay the same during the outage.",
    );
    stage.create_deployment("shop", 3).await?;
    stage.expose("shop", 80).await?;
    let seen = stage
        .until("Service shop has a public IP", |seen| {
            Look::at(seen.cluster.ip("shop").is_some(), || "EXTERNAL-IP is <pending>".to_owned())
        })
        .await?;
    let ip = seen.cluster.ip("shop").context("Service shop has lost its public IP")?;
    stage.converged().await?;
    stage.narrator.answer(&format!("Service shop: public IP {ip}, 3 of 3 pod addresses programmed"));

    stage.narrator.step(
        "Create and scale while Azure is unavailable. Kubernetes accepts the changes, so Sluice must keep them \
         until Azure is available again.",
    );
    stage.azure.tell("faults", json!({"match": {"area": "arm"}, "fault": "unavailable"})).await?;
    let before = stage.azure.summary().await?;
    let began = stage.pace.now();
    stage.narrator.injected("Azure Resource Manager answers every call with 503");
    stage.create_deployment("cafe", 2).await?;
    stage.expose("cafe", 80).await?;
    stage.scale("shop", 5).await?;
    stage
        .until("all pods are ready", |seen| {
            let unsettled = seen.cluster.unsettled();
            Look::at(unsettled.is_empty(), || unsettled.join("; "))
        })
        .await?;
    // Only calls show that Sluice retries.
    let calls = stage
        .until_told(&format!("Sluice has sent {CALLS} calls"), async |stage| {
            let calls = stage.azure.summary().await?.calls - before.calls;
            Ok(if calls >= CALLS { Ok(calls) } else { Err(count(calls, "call")) })
        })
        .await?;
    let seen = stage.look().await?;
    ensure!(seen.cluster.ip("cafe").is_none(), "Service cafe has a public IP during the outage");
    ensure!(seen.cluster.ip("shop").as_ref() == Some(&ip), "Service shop lost its public IP in the outage");
    stage.narrator.warn(&format!(
        "{} failed in {}; Service cafe is pending",
        count(calls, "call"),
        stage.since(began)
    ));
    stage.narrator.answer(&format!("Service shop: public IP still {ip}"));

    stage.narrator.step(&format!(
        "Ask Sluice why Service cafe is pending. The answer has the error code and the next attempt{}.",
        stage.pace.real_label()
    ));
    stage.narrator.command("sluice explain service/default/cafe");
    let why: Explanation = stage.view("services/default/cafe/explain").await?;
    let mut output = ["...", &why.summary, "...", "Waiting for"].map(str::to_owned).to_vec();
    output.extend(why.waits_for.iter().map(|wait| format!("- {}", wait.sentence)));
    output.push("...".to_owned());
    stage.narrator.output(&output);

    stage
        .narrator
        .step("End the outage. Sluice retries each pending change with a backoff, so no restart is needed.");
    stage.azure.calm().await?;
    let back = stage.pace.now();
    stage.narrator.injected("Azure Resource Manager is available again");
    let seen = stage.converged().await?;
    ensure!(seen.cluster.ip("shop") == Some(ip), "the public IP of Service shop changed in the outage");
    stage.narrator.answer(&format!(
        "Service cafe: public IP {}, {} after the outage",
        seen.cluster.ip("cafe").unwrap_or_default(),
        stage.since(back)
    ));
    stage.narrator.answer("Service shop: 5 of 5 pod addresses programmed, public IP unchanged");
    Ok(())
}
