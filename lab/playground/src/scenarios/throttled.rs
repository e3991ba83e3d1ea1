//! A subscription with very low rate limits.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::narrator::count;
use crate::stage::Stage;

const SERVICES: usize = 25;

pub(super) async fn play(stage: &mut Stage) -> Result<()> {
    stage.narrator.step(
        "Lower the rate limits of Azure. Other clients of the subscription can use up the limits, and Sluice does \
         not know how much they leave.",
    );
    let little = json!({"burst": 5, "perSecond": 1});
    stage.azure.tell("buckets", json!({"writes": little, "deletes": little})).await?;
    stage.narrator.injected("Azure accepts 5 writes at once and then 1 per second (default: 200 and 10)");

    stage.narrator.step(
        "Create 25 Services. Azure throttles a call with 429 and Retry-After for the whole subscription, so Sluice \
         pauses the writes of all Services, not only of the one that was throttled.",
    );
    stage.create_deployment("web", 3).await?;
    stage.settled_pods().await?;
    let before = stage.azure.summary().await?;
    let began = stage.pace.now();
    stage.expose_many("web", "web", 1..=SERVICES).await?;
    stage.narrator.answer(&format!("{SERVICES} Services created"));
    stage.until_all("Services have a public IP", SERVICES, |seen| seen.cluster.ips().len()).await?;
    stage
        .narrator
        .answer(&format!("{SERVICES} of {SERVICES} Services have a public IP, after {}", stage.since(began)));
    let after = stage.azure.summary().await?;
    let (writes, throttled) = (after.writes - before.writes, after.throttled - before.throttled);
    ensure!(throttled > 0, "Azure throttled no call, so the story shows nothing");
    stage.narrator.warn(&format!("{throttled} of {} throttled (429)", count(writes, "write")));
    ensure!(after.early == 0, "{} sent before Retry-After had elapsed", count(after.early, "call"));
    stage.narrator.answer("0 calls sent before Retry-After had elapsed");
    Ok(())
}
