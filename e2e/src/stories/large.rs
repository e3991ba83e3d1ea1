//! Two thousand Services in sync, and a controller that has to find out that they are.
//!
//! The state is built as fast as it can be: no quotas and no throttling in Azure, every operation over at
//! once, all the concurrency and budget that the configuration allows, slices by hand. What is judged is
//! what comes after: every start and every new leader reads lists, the gateway and the subnet, and writes
//! nothing at all. Some of them go at the end, and nothing may be left of these; all of them at once would
//! only show how much the control plane of a test can bear.

use std::time::Duration;

use anyhow::{Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::json;

use crate::scene::{Before, Look, Scene};
use crate::setting::Setting;
use crate::story::{Story, Variant};

/// How many Services.
const SERVICES: usize = 2_000;
/// How many addresses each of them has: 20,000 in all.
const ADDRESSES_EACH: usize = 10;
/// How many nodes they are on.
const NODES: usize = 100;
/// How many of them go at the end.
const LEAVING: usize = 20;
/// How many objects are made at once.
const AT_ONCE: usize = 16;
/// How often is looked whether all is built: a look at so much is work by itself.
const GLANCE: Duration = Duration::from_secs(2);

/// The stories of this theme.
pub(crate) const STORIES: &[Story] = &[Story::new(
    "two-thousand-services",
    "2,000 Services and 20,000 addresses in sync: a restart and a new leader write nothing and read lists",
    |scene| Box::pin(two_thousand_services(scene)),
)
.with(large)
.only(&[Variant::Plain], "it stops and kills the controller by itself, and takes minutes")
.on_a_real_plane("it measures, and what it measures is the real thing")];

fn large(setting: &mut Setting) {
    setting.replicas = 2;
    setting.leaves_all = true;
    // Room for the fence, the default outbound and what the next version of this story needs.
    let quota = SERVICES + 100;
    setting.emulator.extend([
        "--no-throttling".to_string(),
        "--instant".to_string(),
        format!("--quota-public-ips={quota}"),
        format!("--quota-load-balancers={quota}"),
    ]);
    for (key, value) in [
        // No more, or the status writes of one registration call keep a small API server from answering anything else.
        ("concurrency", json!(24)),
        ("budget.share", json!("100%")),
        ("budget.reads.burst", json!(1_000_000)),
        ("budget.reads.perSecond", json!(100_000)),
        ("budget.writes.burst", json!(1_000_000)),
        ("budget.writes.perSecond", json!(100_000)),
        ("budget.deletes.burst", json!(1_000_000)),
        ("budget.deletes.perSecond", json!(100_000)),
        ("budget.readsPerWindow", json!(100_000_000)),
        ("budget.writesPerWindow", json!(100_000_000)),
        // So much work must not cost the lease, on a busy machine either; one that is killed is waited for once.
        ("leaderElection.leaseDuration", json!("20s")),
        ("leaderElection.renewDeadline", json!("15s")),
        // A drift sweep in the middle would be read as a part of the start.
        ("drift.interval", json!("24h")),
    ] {
        setting.key(key, value);
    }
}

/// Does something to many things, some at a time.
async fn for_many<F: Future<Output = Result<()>>>(number: usize, make: impl Fn(usize) -> F) -> Result<()> {
    stream::iter(0..number).map(make).buffer_unordered(AT_ONCE).try_collect().await
}

async fn two_thousand_services(scene: &Scene) -> Result<()> {
    scene.tell(format!("{NODES} nodes, {SERVICES} services with {ADDRESSES_EACH} endpoints each"));
    for_many(NODES, |at| async move {
        scene.quiet_node_at(&format!("node-{at}"), &[&format!("10.0.{}.{}", at / 250, at % 250 + 4)]).await
    })
    .await?;
    for_many(SERVICES, |at| async move {
        let name = format!("web-{at}");
        scene.slice(&format!("{name}-by-hand")).of(&name).endpoints(endpoints(at)).quiet().write().await?;
        scene.service(&name).port(80, 8080).quiet().make().await?;
        Ok(())
    })
    .await?;
    scene.tell("the objects are there");
    built(scene).await?;
    scene.tell("Azure has all of them");
    scene.settled().await?;
    let ip = scene.ip_of("web-0").await?;

    let before = Before::now(scene).await?;
    scene.tell("both replicas are stopped, and started again");
    for replica in &scene.replicas {
        replica.stop().await?;
    }
    for replica in &scene.replicas {
        replica.start()?;
    }
    let first = before.only_compared(scene, None).await?;

    let before = Before::now(scene).await?;
    scene.tell(format!("kill -9 of {}, which leads", first.name));
    first.kill().await?;
    let second = before.only_compared(scene, Some(first)).await?;
    first.start()?;

    let before = Before::now(scene).await?;
    scene.tell(format!("{} is stopped, and hands over", second.name));
    second.stop().await?;
    before.only_compared(scene, Some(second)).await?;
    ensure!(scene.ip_of("web-0").await? == ip, "an IP changed with the leader");

    // It is awake, too: what changes now is served at once.
    let fence = scene.fence("fence").await?;
    scene.writes_only_about(before.mark, &[&fence]).await?;
    for at in 0..LEAVING {
        scene.delete_service(&format!("web-{at}")).await?;
    }
    for at in 0..LEAVING {
        scene.service_gone(&format!("web-{at}")).await?;
    }
    Ok(())
}

fn endpoints(service: usize) -> impl Iterator<Item = (String, String)> {
    (0..ADDRESSES_EACH).map(move |number| {
        let at = service * ADDRESSES_EACH + number;
        (format!("10.1.{}.{}", at / 250, at % 250 + 1), format!("node-{}", at % NODES))
    })
}

/// Waits until Azure has all of it.
async fn built(scene: &Scene) -> Result<()> {
    scene
        .until("all services and addresses are in the gateway", async || {
            tokio::time::sleep(GLANCE).await;
            let state = scene.azure.state().await?;
            let gateway = &state["serviceGateways"][0];
            let services = gateway["services"].as_array().map_or(0, Vec::len);
            let places = gateway["addressLocations"].as_array().into_iter().flatten();
            let addresses: usize = places.map(|it| it["addresses"].as_array().map_or(0, Vec::len)).sum();
            // The default outbound is registered as well.
            let is = services > SERVICES && addresses == SERVICES * ADDRESSES_EACH;
            let words = format!("{services} services and {addresses} addresses so far");
            Ok(if is { Look::Yes(()) } else { Look::NotYet(words) })
        })
        .await
}
