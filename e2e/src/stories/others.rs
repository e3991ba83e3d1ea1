//! Others in our gateway: what they have registered keeps its addresses.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::azure::gateway_id;
use crate::scene::{CORPORATE, Scene};
use crate::story::Story;

/// The stories of this theme.
pub(crate) const STORIES: &[Story] = &[Story::new(
    "addresses-of-others",
    "an egress of others has addresses in the gateway, one of them shared with ours: its names stay, whatever our pods do",
    |scene| Box::pin(addresses_of_others(scene)),
)
.with(|setting| setting.starts_running = false)];

/// An address of theirs on a node of ours, one of theirs alone, and the node of the latter.
const BESIDE: &str = "10.250.0.1";
const ALONE: &str = "10.250.0.2";
const THEIR_NODE: &str = "10.251.0.1";

async fn addresses_of_others(scene: &Scene) -> Result<()> {
    scene.our_gateway_with_egress_of_others().await?;
    scene.nodes(&["a", "b"]).await?;
    let node_a = scene.ips_of_node("a").swap_remove(0);
    binds(scene, &node_a, BESIDE, &[CORPORATE]).await?;
    binds(scene, THEIR_NODE, ALONE, &[CORPORATE]).await?;
    scene.pods("web", 1, &["a"]).await?;
    let uid = scene.service("web").port(80, 8080).selecting("web").make().await?;
    scene.controller().start()?;
    scene.settled().await?;

    let shared = scene.ip_of_pod("web-1").await?;
    scene.tell(format!("others bind {shared}, which is an address of ours"));
    binds(scene, &node_a, &shared, &[&uid, CORPORATE]).await?;
    let theirs = [(node_a.as_str(), BESIDE), (THEIR_NODE, ALONE), (node_a.as_str(), shared.as_str())];
    scene.restart_with("another entry in the gateway", |_| {}).await?;
    scene.settled().await?;
    stay(scene, &theirs, CORPORATE).await?;
    ensure!(services_at(scene, &node_a, &shared).await?.contains(&uid), "our own name is gone");

    // All of ours leave node a, and with them the last address that we have there.
    scene
        .meanwhile(async {
            scene.pods_from("web", 2, 2, &["b"]).await?;
            scene.delete_pods("web", 1, 1).await
        })
        .await?;
    scene.settled().await?;
    stay(scene, &theirs, CORPORATE).await?;
    ensure!(services_at(scene, &node_a, &shared).await? == [CORPORATE], "only our own name goes");

    scene.meanwhile(scene.delete_node("a")).await?;
    scene.meanwhile(scene.egress_pods("blue", 1, 2, &["b"])).await?;
    scene.settled().await?;
    scene.restart_with("the same settings", |_| {}).await?;
    scene.fence("fence").await?;
    scene.settled().await?;
    stay(scene, &theirs, CORPORATE).await
}

/// Others bind an address.
async fn binds(scene: &Scene, location: &str, address: &str, services: &[&str]) -> Result<()> {
    let deed = json!({
        "do": "addAddress", "gateway": gateway_id(), "location": location, "address": address, "services": services,
    });
    scene.azure.tamper(deed).await?;
    Ok(())
}

/// Every address of others still names their service.
async fn stay(scene: &Scene, theirs: &[(&str, &str)], name: &str) -> Result<()> {
    for (location, address) in theirs {
        let services = services_at(scene, location, address).await?;
        ensure!(services.iter().any(|it| it == name), "{address} at {location} has {services:?}, not {name}");
    }
    Ok(())
}

/// The services of an address, sorted.
async fn services_at(scene: &Scene, location: &str, address: &str) -> Result<Vec<String>> {
    let state = scene.azure.state().await?;
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let locations = list(&state["serviceGateways"][0]["addressLocations"]);
    let here = locations.iter().filter(|it| it["addressLocation"] == location);
    let entries = here.flat_map(|it| list(&it["addresses"])).filter(|it| it["address"] == address);
    let mut services: Vec<String> = entries
        .flat_map(|it| list(&it["services"]))
        .filter_map(|it| it.as_str().map(str::to_owned))
        .collect();
    services.sort_unstable();
    Ok(services)
}
