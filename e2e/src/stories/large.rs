//! Ten thousand Services: what building them takes, a controller that has to find out that they are in sync, and
//! two thousand deletions at once.
//!
//! The state is built as fast as it can be: no quotas and no throttling in Azure, every operation over at
//! once, the most workers that the configuration allows, and a budget far above what they use; slices by hand.
//! What is judged while it is built is what the process needs: it has 100 file descriptors and no more, so that a
//! connection per write would end it (and 5,000 Services with 256 descriptors, which users have asked for, are
//! less than that), it stays within 300 MiB, and the writes to Kubernetes never keep it from renewing its lease,
//! which has its default times. Then every start and every new leader reads lists, the gateway and the subnet, and
//! writes nothing at all. In the end 2,000 Services are deleted at once, and nothing may be left of these.

use std::cell::Cell;
use std::time::Duration;

use anyhow::{Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::Service;
use kube::Api;
use kube::api::ListParams;
use serde_json::json;

use crate::scene::{Before, Look, Scene};
use crate::setting::Setting;
use crate::story::{Story, Variant};

/// How many Services.
const SERVICES: usize = 10_000;
/// How many addresses each of them has: 150,000 in all.
const ADDRESSES_EACH: usize = 15;
/// How many nodes they are on.
const NODES: usize = 100;
/// How many of them are deleted at the end.
const LEAVING: usize = 2_000;
/// How many objects are made at once.
const AT_ONCE: usize = 16;
/// How often is looked whether all is built: a look at so much is work by itself.
const GLANCE: Duration = Duration::from_secs(5);
/// They are waited for in so many parts, each with the patience of a whole story.
const PARTS: usize = 10;
/// Plans at once; the most that can be configured.
const WORKERS: usize = 200;
/// How many files and sockets the controller may have open.
const DESCRIPTORS_MAX: u32 = 100;
/// How much memory the controller may ever have used, in MiB.
const MEMORY_MAX_MIB: u64 = 300;

/// The stories of this theme.
pub(crate) const STORIES: &[Story] = &[Story::new(
    "ten-thousand-services",
    "10,000 Services and 150,000 addresses with 100 descriptors and 300 MiB; a restart and a new leader write nothing; 2,000 go at once",
    |scene| Box::pin(ten_thousand_services(scene)),
)
.with(large)
.only(&[Variant::Plain], "it stops and kills the controller by itself, and takes minutes")
.on_a_real_plane("it measures, and what it measures is the real thing")];

fn large(setting: &mut Setting) {
    setting.replicas = 2;
    setting.leaves_all = true;
    setting.descriptors_max = Some(DESCRIPTORS_MAX);
    setting.longest = Duration::from_secs(60 * 60);
    // Room for the fence, the default outbound and what the next version of this story needs.
    let quota = SERVICES + 100;
    setting.emulator.extend([
        "--no-throttling".to_string(),
        "--instant".to_string(),
        format!("--quota-public-ips={quota}"),
        format!("--quota-load-balancers={quota}"),
    ]);
    for (key, value) in [
        ("concurrency", json!(WORKERS)),
        ("budget.share", json!("100%")),
        ("budget.reads.burst", json!(1_000_000)),
        ("budget.reads.perSecond", json!(100_000)),
        ("budget.writes.burst", json!(1_000_000)),
        ("budget.writes.perSecond", json!(100_000)),
        ("budget.deletes.burst", json!(1_000_000)),
        ("budget.deletes.perSecond", json!(100_000)),
        ("budget.readsPerWindow", json!(100_000_000)),
        ("budget.writesPerWindow", json!(100_000_000)),
        // The defaults, in place of the short times of other stories with two replicas.
        ("leaderElection.leaseDuration", json!("15s")),
        ("leaderElection.renewDeadline", json!("10s")),
        ("deletion.reportAfter", json!("5m")),
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

async fn ten_thousand_services(scene: &Scene) -> Result<()> {
    let needs = Needs::default();
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
    for part in 1..=PARTS {
        built(scene, SERVICES * part / PARTS, &needs).await?;
    }
    scene.tell("Azure has all of them");
    scene.settled().await?;
    needs.are_met(scene, "to build them")?;
    let ip = scene.ip_of("web-9999").await?;

    let before = Before::now(scene).await?;
    scene.tell("both replicas are stopped, and started again");
    for replica in &scene.replicas {
        replica.stop().await?;
    }
    for replica in &scene.replicas {
        replica.start()?;
    }
    let first = before.only_compared(scene, None).await?;
    needs.are_met(scene, "to start with them")?;

    let before = Before::now(scene).await?;
    scene.tell(format!("kill -9 of {}, which leads", first.name));
    first.kill().await?;
    let second = before.only_compared(scene, Some(first)).await?;
    first.start()?;

    let before = Before::now(scene).await?;
    scene.tell(format!("{} is stopped, and hands over", second.name));
    second.stop().await?;
    let third = before.only_compared(scene, Some(second)).await?;
    ensure!(scene.ip_of("web-9999").await? == ip, "an IP changed with the leader");

    // It is awake, too: what changes now is served at once.
    let fence = scene.fence("fence").await?;
    scene.writes_only_about(before.mark, &[&fence]).await?;

    scene.tell(format!("{LEAVING} services are deleted, with {WORKERS} workers"));
    for_many(LEAVING, |at| async move { scene.quietly_delete_service(&format!("web-{at}")).await }).await?;
    gone(scene, &needs).await?;
    ensure!(scene.leader().await?.name == third.name, "another replica leads since {LEAVING} were deleted");
    needs.are_met(scene, "to delete some of them")
}

fn endpoints(service: usize) -> impl Iterator<Item = (String, String)> {
    (0..ADDRESSES_EACH).map(move |number| {
        let at = service * ADDRESSES_EACH + number;
        let (high, middle, low) = (at / 62_500 + 1, at / 250 % 250, at % 250 + 1);
        (format!("10.{high}.{middle}.{low}"), format!("node-{}", at % NODES))
    })
}

/// Waits until Azure has so many of them, and all addresses with the last.
async fn built(scene: &Scene, wanted: usize, needs: &Needs) -> Result<()> {
    scene
        .until(&format!("{wanted} services are in the gateway"), async || {
            tokio::time::sleep(GLANCE).await;
            needs.look(scene);
            let (services, addresses) = in_gateway(scene).await?;
            // The default outbound is registered as well.
            let is = services > wanted && (wanted < SERVICES || addresses == SERVICES * ADDRESSES_EACH);
            let words = format!("{services} services and {addresses} addresses so far");
            Ok(if is { Look::Yes(()) } else { Look::NotYet(words) })
        })
        .await?;
    scene.tell(format!("{wanted} services are in the gateway"));
    Ok(())
}

/// Waits until Azure and Kubernetes have none any more of those that leave.
async fn gone(scene: &Scene, needs: &Needs) -> Result<()> {
    let services = Api::<Service>::namespaced(scene.client.clone(), &scene.namespace);
    scene
        .until("those that were deleted are gone", async || {
            tokio::time::sleep(GLANCE).await;
            needs.look(scene);
            let (registered, _) = in_gateway(scene).await?;
            let objects = services.list_metadata(&ListParams::default()).await?.items.len();
            let is = registered == SERVICES - LEAVING + 1 && objects == SERVICES - LEAVING;
            let words = format!("{registered} in the gateway and {objects} in Kubernetes so far");
            Ok(if is { Look::Yes(()) } else { Look::NotYet(words) })
        })
        .await
}

/// How many services and addresses the gateway has.
async fn in_gateway(scene: &Scene) -> Result<(usize, usize)> {
    let state = scene.azure.state().await?;
    let gateway = &state["serviceGateways"][0];
    let services = gateway["services"].as_array().map_or(0, Vec::len);
    let places = gateway["addressLocations"].as_array().into_iter().flatten();
    Ok((services, places.map(|it| it["addresses"].as_array().map_or(0, Vec::len)).sum()))
}

/// What the replicas need of the machine, as far as it was seen.
#[derive(Default)]
struct Needs {
    descriptors: Cell<usize>,
}

impl Needs {
    /// Notes how many descriptors are open now.
    fn look(&self, scene: &Scene) {
        let open = scene.replicas.iter().filter_map(|it| it.descriptors()).max().unwrap_or(0);
        self.descriptors.set(self.descriptors.get().max(open));
    }

    /// Fails if a replica needed more than it may, or ended by itself; tells what it needed.
    fn are_met(&self, scene: &Scene, what_for: &str) -> Result<()> {
        self.look(scene);
        for replica in &scene.replicas {
            let counts = replica.counts();
            ensure!(counts.restarts == 0, "{} ended by itself {what_for}: {counts:?}", replica.name);
            // Where none runs, there is nothing to ask.
            let Some(kib) = replica.memory_peak_kib()? else { continue };
            let mib = kib.div_ceil(1024);
            scene.tell(format!("{}: {mib} MiB at most {what_for}", replica.name));
            ensure!(mib <= MEMORY_MAX_MIB, "{} needed {mib} MiB {what_for}", replica.name);
        }
        let short = ["Too many open files", "too many open files", "os error 24"];
        let short: usize = short.iter().map(|words| scene.times_logged(words)).sum();
        ensure!(short == 0, "descriptors were missing {what_for}, {short} times");
        let seen = self.descriptors.get();
        scene
            .tell(format!("{seen} descriptors were seen, {DESCRIPTORS_MAX} there may be; no lease was lost"));
        Ok(())
    }
}
