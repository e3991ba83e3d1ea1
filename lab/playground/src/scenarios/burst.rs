//! Two hundred Services at once.

use anyhow::{Result, ensure};

use crate::narrator::count;
use crate::pace::span;
use crate::stage::Stage;

/// How many.
const SERVICES: usize = 200;

pub(super) async fn play(stage: &mut Stage) -> Result<()> {
    stage.narrator.tell(
        "A platform team moves all its tenants in one night. There are four pods, and every tenant gets a \
         Service of its own in front of them.",
    );
    stage.create_deployment("web", 4).await?;
    stage.settled_pods().await?;
    stage.narrator.command(&format!(
        "for n in $(seq 1 {SERVICES}); do kubectl expose deployment web --name=tenant-$n --type=LoadBalancer \
         --port=80 --target-port=8080; done"
    ));
    let before = stage.azure.summary().await?;
    let began = stage.pace.now();
    let names: Vec<String> = (1..=SERVICES).map(|number| format!("tenant-{number}")).collect();
    stage.make_services(&names, "web").await?;
    let served = stage.look().await?.cluster.ips().len();
    stage
        .narrator
        .answer(&format!("{SERVICES} Services are in Kubernetes, and {served} have an address already"));

    stage.narrator.tell(
        "Azure allows a burst of writes and then ten a second, for everybody in the subscription. Sluice takes \
         its share and no more, works on ten Services at a time, and registers the finished ones with the \
         gateway by the dozen instead of one by one.",
    );
    stage.until_all("Services have an address", SERVICES, |seen| seen.cluster.ips().len()).await?;
    let took = stage.pace.now().saturating_sub(began);
    stage.narrator.answer(&format!("all {SERVICES} have an address, after {}", span(took)));
    let mapped =
        |seen: &crate::check::Seen| seen.azure.mapped().iter().map(|(_, _, services)| services.len()).sum();
    stage.until_all("pairs of a pod and a Service are in the gateway", 4 * SERVICES, mapped).await?;
    let after = stage.azure.summary().await?;
    let (calls, writes) = (after.calls - before.calls, after.writes - before.writes);
    stage.narrator.answer(&format!(
        "the gateway knows the four pods under {SERVICES} names each; it took {calls} calls to Azure, {writes} \
         of them writes, and {} of them only for addresses",
        after.location_updates - before.location_updates
    ));
    ensure!(after.early == 0, "{} came before a pause was over", count(after.early as usize, "call"));
    stage.narrator.answer(&match after.throttled {
        0 => "Azure never had to say \"too many requests\"".to_owned(),
        times => format!("Azure said \"too many requests\" {times} times, and every pause was kept"),
    });
    Ok(())
}
