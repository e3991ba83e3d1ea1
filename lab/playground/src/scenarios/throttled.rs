//! A subscription that allows hardly anything.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::pace::span;
use crate::stage::Stage;

const SERVICES: usize = 25;

pub(super) async fn play(stage: &mut Stage) -> Result<()> {
    stage.narrator.tell(
        "Ann's cluster shares its subscription with a team that writes all day. Of Azure's ten writes a second \
         one is left, and five in a burst; whoever asks for more is answered with 429 and told how long to wait.",
    );
    let little = json!({"burst": 5, "perSecond": 1});
    stage.azure.tell("buckets", json!({"writes": little, "deletes": little})).await?;
    stage.create_deployment("web", 3).await?;
    stage.settled_pods().await?;
    let before = stage.azure.summary().await?;
    let began = stage.pace.now();
    let names: Vec<String> = (1..=SERVICES).map(|number| format!("web-{number}")).collect();
    stage.narrator.command(&format!(
        "for n in $(seq 1 {SERVICES}); do kubectl expose deployment web --name=web-$n --type=LoadBalancer --port=80 \
         --target-port=8080; done"
    ));
    stage.make_services(&names, "web").await?;
    stage.narrator.answer(&format!("{SERVICES} Services want an address"));
    stage.until_all("Services have an address", SERVICES, |seen| seen.cluster.ips().len()).await?;
    let took = stage.pace.now().saturating_sub(began);
    let after = stage.azure.summary().await?;
    let (writes, refused) = (after.writes - before.writes, after.throttled - before.throttled);
    stage.narrator.answer(&format!(
        "all have one, after {}; of {writes} writes {refused} were answered with 429",
        span(took)
    ));
    ensure!(refused > 0, "Azure never refused anything, so this shows nothing");
    ensure!(after.early == 0, "{} calls came before the pause was over that Azure asked for", after.early);
    stage.narrator.answer(
        "and not a single call came before the pause was over that Azure had asked for: a pause holds for all \
         Services together, not for each of them",
    );
    Ok(())
}
