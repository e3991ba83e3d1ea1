//! A start in a cluster that is full already, and a second one that finds everything in place.

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use sluice_view::overview::Overview;

use crate::azure::{REGION, resource_id};
use crate::pace::span;
use crate::stage::{Look, Stage, next_change};
use crate::user::namespace_uid;

const SERVICES: usize = 12;
/// Names of Services that nobody in Kubernetes knows any more.
const LEFTOVERS: [&str; 3] = [
    "0a1b2c3d-0000-4000-8000-000000000001",
    "0a1b2c3d-0000-4000-8000-000000000002",
    "0a1b2c3d-0000-4000-8000-000000000003",
];

pub(super) async fn play(stage: &mut Stage) -> Result<()> {
    before(stage).await?;
    first_start(stage).await?;
    second_start(stage).await
}

/// A cluster that has lived without us for a while.
async fn before(stage: &mut Stage) -> Result<()> {
    stage.narrator.tell(
        "This cluster is old. It has twelve Services that wait for an address, a crawler with an egress label, and \
         nobody who serves them: Sluice is not installed yet.",
    );
    stage.create_deployment("web", 4).await?;
    let names: Vec<String> = (1..=SERVICES).map(|number| format!("web-{number}")).collect();
    stage.narrator.command(&format!(
        "for n in $(seq 1 {SERVICES}); do kubectl expose deployment web --name=web-$n --type=LoadBalancer --port=80 \
         --target-port=8080; done"
    ));
    stage.make_services(&names, "web").await?;
    stage.run_with_egress("crawler", "partners").await?;
    stage.settled_pods().await?;
    let cluster = namespace_uid(&stage.client, "kube-system").await?;
    for name in LEFTOVERS {
        let body = json!({
            "location": REGION,
            "sku": {"name": "StandardV2"},
            "properties": {"publicIPAllocationMethod": "Static", "publicIPAddressVersion": "IPv4"},
            "tags": {
                "sluice-cluster": cluster,
                "sluice-identity": name,
                "sluice-owner": "service/default/forgotten",
            },
        });
        let id = resource_id("publicIPAddresses", &format!("{name}-pip"));
        stage.azure.tamper(json!({"do": "put", "id": id, "body": body})).await?;
    }
    let seen = stage.look().await?;
    ensure!(seen.azure.gateway().is_none(), "there is a gateway before anybody has made one");
    stage.narrator.warn(
        "in Azure there is no service gateway, but there are three public IPs with our tag that belong to \
         nothing: leftovers of an earlier life",
    );
    Ok(())
}

async fn first_start(stage: &mut Stage) -> Result<()> {
    stage.narrator.tell(
        "Sluice starts. It reads both worlds completely before it believes anything: what it has not seen in \
         Azure may just be on a page that has not come. Then it works off the difference, and serves what is new \
         at the same time.",
    );
    stage.narrator.command("sluice run --config azure.yaml");
    let began = stage.pace.now();
    let places = stage.start_controller().await.map_err(|failure| failure.error)?;
    stage.narrator.answer(&format!("it is there; its dashboard is at http://{}/", places.api));
    let mut told = String::new();
    let mut bar = None;
    let until = stage.pace.now() + stage.patience;
    loop {
        let sync = stage.view::<Overview>("overview").await?.initial_sync;
        if sync.phase != told {
            told.clone_from(&sync.phase);
            // Drawn again below what is told now.
            bar = None;
            if let Some(words) = words(&sync.phase) {
                stage.narrator.answer(words);
            }
        }
        if sync.done {
            break;
        }
        if sync.phase == "working-off" {
            let left = usize::try_from(sync.left)?;
            let (bar, of) = bar.get_or_insert_with(|| (stage.narrator.bar("are worked off", left), left));
            bar.at(of.saturating_sub(left));
        }
        let waited = span(stage.patience);
        ensure!(
            stage.pace.now() <= until,
            "after {waited} the start is at {}, {} left",
            sync.phase,
            sync.left
        );
        next_change(&mut stage.changes, &mut stage.controller).await?;
    }
    drop(bar);
    stage.until_all("Services have an address", SERVICES, |seen| seen.cluster.ips().len()).await?;
    let took = span(stage.pace.now().saturating_sub(began));
    stage
        .narrator
        .answer(&format!("{took} after the start all twelve have an address, and the crawler its way out"));

    stage.narrator.tell(
        "The leftovers are another matter. What carries our tag and belongs to nothing may go, but not on the \
         first sighting: it has to be seen twice, some time apart.",
    );
    stage
        .until("the leftovers are gone", |seen| {
            let is_there = |name: &&str| seen.azure.address(&format!("{name}-pip")).is_some();
            let left = LEFTOVERS.iter().filter(|name| is_there(name)).count();
            Look::at(left == 0, || format!("{left} of them are still there"))
        })
        .await?;
    let took = span(stage.pace.now().saturating_sub(began));
    stage.narrator.answer(&format!("{took} after the start the three leftovers are gone"));
    stage.converged().await?;
    Ok(())
}

/// What a phase of the start means.
fn words(phase: &str) -> Option<&'static str> {
    Some(match phase {
        "reading-kubernetes" => "it reads Kubernetes",
        "reading-azure" => "it reads Azure, page by page",
        "gateway" => "the gateway is missing: it makes one and attaches the subnet",
        "working-off" => "it knows both worlds, and works off the difference",
        "done" => "the first difference is worked off",
        // It comes and goes before anybody could read it.
        _ => return None,
    })
}

async fn second_start(stage: &mut Stage) -> Result<()> {
    stage.narrator.tell(
        "And once more: the pod is replaced by a newer version. Now everything is in place, so there is nothing \
         to do, and doing nothing is what a start must be good at.",
    );
    stage.narrator.command("kubectl rollout restart deployment sluice --namespace sluice-system");
    stage.controller.stop().await.map_err(|failure| failure.error)?;
    let before = stage.azure.summary().await?;
    let ips = stage.look().await?.cluster.ips();
    stage.start_controller().await.map_err(|failure| failure.error)?;
    stage
        .until_told("the second start has looked at everything", async |stage| {
            let sync = stage.view::<Overview>("overview").await?.initial_sync;
            Ok(if sync.done { Ok(()) } else { Err(format!("it is at {}", sync.phase)) })
        })
        .await?;
    let after = stage.azure.summary().await.context("the emulator's log")?;
    let writes = after.writes - before.writes;
    ensure!(writes == 0, "the second start wrote {writes} times");
    ensure!(stage.look().await?.cluster.ips() == ips, "an address changed with the second start");
    stage.narrator.answer(&format!(
        "it read {} answers, found everything as it should be, and wrote nothing",
        after.calls - before.calls
    ));
    Ok(())
}
