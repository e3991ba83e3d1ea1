//! A first start in a cluster with Services, and a second start that writes nothing.

use anyhow::{Result, ensure};
use serde_json::json;
use sluice_view::overview::Overview;

use crate::azure::{REGION, resource_id};
use crate::narrator::count;
use crate::stage::{Look, Stage, next_change};
use crate::user::namespace_uid;

const SERVICES: usize = 12;
/// UIDs of Services that are not in Kubernetes.
const ORPHANS: [&str; 3] = [
    "0a1b2c3d-0000-4000-8000-000000000001",
    "0a1b2c3d-0000-4000-8000-000000000002",
    "0a1b2c3d-0000-4000-8000-000000000003",
];

pub(super) async fn play(stage: &mut Stage) -> Result<()> {
    before(stage).await?;
    first_start(stage).await?;
    second_start(stage).await
}

/// The cluster before Sluice is installed.
async fn before(stage: &mut Stage) -> Result<()> {
    stage.narrator.step(
        "Create 12 Services and pod crawler with egress partners, while Sluice does not run. A cluster usually has \
         Services before Sluice is installed.",
    );
    stage.create_deployment("web", 4).await?;
    stage.expose_many("web", "web", 1..=SERVICES).await?;
    stage.run_with_egress("crawler", "partners").await?;
    stage.settled_pods().await?;
    let served = stage.look().await?.cluster.ips().len();
    stage.narrator.answer(&format!("{SERVICES} Services created; {served} have a public IP"));

    stage.narrator.step(
        "Leave 3 public IPs of deleted Services in Azure. Such orphans can remain when a cluster is restored from a \
         backup, and they are billed.",
    );
    let cluster = namespace_uid(&stage.client, "kube-system").await?;
    for name in ORPHANS {
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
    ensure!(stage.look().await?.azure.gateway().is_none(), "a service gateway exists before the first start");
    stage
        .narrator
        .injected("3 public IPs with the tags of this cluster created, for Services that do not exist");
    Ok(())
}

async fn first_start(stage: &mut Stage) -> Result<()> {
    stage.narrator.step(
        "Start Sluice. It lists Kubernetes and Azure completely before it writes, because an incomplete list looks \
         like a deletion.",
    );
    let began = stage.pace.now();
    let places = stage.start_controller().await.map_err(|failure| failure.error)?;
    stage.narrator.answer(&format!("Sluice started; dashboard: http://{}/", places.api));
    let mut told = String::new();
    let mut bar = None;
    let until = stage.pace.now() + stage.patience;
    loop {
        let sync = stage.view::<Overview>("overview").await?.initial_sync;
        if sync.phase != told {
            told.clone_from(&sync.phase);
            // A new bar is drawn below the next result.
            bar = None;
            if let Some(words) = words(&sync.phase) {
                stage.narrator.answer(words);
            }
        }
        if sync.done {
            break;
        }
        if is_applying(&sync.phase) {
            let left = usize::try_from(sync.left)?;
            let (bar, of) = bar.get_or_insert_with(|| (stage.narrator.bar("changes applied", left), left));
            bar.at(of.saturating_sub(left));
        }
        ensure!(
            stage.pace.now() <= until,
            "timed out after {} (emulated) waiting until the initial changes are applied; now: phase {}, {} left",
            crate::pace::span(stage.patience),
            sync.phase,
            sync.left
        );
        next_change(&mut stage.changes, &mut stage.controller).await?;
    }
    drop(bar);
    stage.until_all("Services have a public IP", SERVICES, |seen| seen.cluster.ips().len()).await?;
    let took = stage.since(began);
    stage
        .narrator
        .answer(&format!("{SERVICES} of {SERVICES} Services have a public IP, {took} after the start"));
    stage
        .until("the address of pod crawler is programmed", |seen| {
            Look::at(seen.azure.addresses_of("partners") == 1, || "it is missing".to_owned())
        })
        .await?;
    stage.narrator.answer("egress partners: address of pod crawler programmed");

    stage.narrator.step(
        "Wait until the orphans are deleted. A list of Azure can be stale, so Sluice deletes an orphan only after \
         2 complete lists show it.",
    );
    stage
        .until("the orphans are deleted", |seen| {
            let is_there = |name: &&str| seen.azure.public_ip(&format!("{name}-pip")).is_some();
            let left = ORPHANS.iter().filter(|name| is_there(name)).count();
            Look::at(left == 0, || format!("{left} of {} are left", ORPHANS.len()))
        })
        .await?;
    let took = stage.since(began);
    stage.narrator.answer(&format!("3 of 3 orphaned public IPs deleted, {took} after the start"));
    stage.converged().await?;
    Ok(())
}

/// Whether the start has listed everything and applies the differences.
fn is_applying(phase: &str) -> bool {
    phase == "initial-sync"
}

/// The result that a phase of the start prints.
fn words(phase: &str) -> Option<&'static str> {
    Some(match phase {
        "reading-kubernetes" => "listing Kubernetes",
        "reading-azure" => "listing Azure, page by page",
        "gateway" => "service gateway missing: creating it and attaching the subnet",
        "done" => "initial changes applied",
        phase if is_applying(phase) => "lists complete: applying changes",
        // Too short to read.
        _ => return None,
    })
}

async fn second_start(stage: &mut Stage) -> Result<()> {
    stage.narrator.step(
        "Restart Sluice, as an upgrade does. Kubernetes and Azure already match, so the restart must not write.",
    );
    stage.controller.stop().await.map_err(|failure| failure.error)?;
    let before = stage.azure.summary().await?;
    let ips = stage.look().await?.cluster.ips();
    stage.start_controller().await.map_err(|failure| failure.error)?;
    stage
        .until_told("the second start has compared everything", async |stage| {
            let sync = stage.view::<Overview>("overview").await?.initial_sync;
            Ok(if sync.done { Ok(()) } else { Err(format!("phase {}", sync.phase)) })
        })
        .await?;
    let after = stage.azure.summary().await?;
    let writes = after.writes - before.writes;
    ensure!(writes == 0, "the second start sent {}", count(writes, "write"));
    ensure!(stage.look().await?.cluster.ips() == ips, "a public IP changed with the second start");
    let reads = count(after.calls - before.calls, "read");
    stage.narrator.answer(&format!("Sluice restarted: {reads}, 0 writes, all public IPs unchanged"));
    Ok(())
}
