//! Services that ask for what cannot be: an event, a condition, and nothing in Azure.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::scene::Scene;
use crate::story::Story;
use crate::world::ports::named_port;
use crate::world::{ServiceToMake, World};

/// The stories of this theme.
pub(crate) const STORIES: &[Story] = &[
    Story::new(
        "rejected-specs",
        "every spec that cannot be served gets its event and condition and costs nothing; one is mended",
        |scene| Box::pin(rejected_specs(scene)),
    ),
    Story::new(
        "rejected-edit-of-a-live-service",
        "a live Service is edited into what cannot be: its load balancer stays as it is",
        |scene| Box::pin(rejected_edit(scene)),
    ),
];

/// A name, what makes it impossible, and a word of the warning.
type Rejected = (&'static str, fn(ServiceToMake<'_>) -> ServiceToMake<'_>, &'static str);

const IDLE_TIMEOUT: &str = "service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout";

/// Everything that the contract rejects.
const REJECTED: &[Rejected] = &[
    (
        "internal",
        |it| it.port(80, 80).annotated("service.beta.kubernetes.io/azure-load-balancer-internal", "true"),
        "internal",
    ),
    ("affinity", |it| it.port(80, 80).with("sessionAffinity", "ClientIP"), "sessionAffinity"),
    ("fixed-ip", |it| it.port(80, 80).with("loadBalancerIP", "198.51.100.1"), "loadBalancerIP"),
    (
        "two-families",
        |it| {
            it.port(80, 80)
                .with("ipFamilies", json!(["IPv4", "IPv6"]))
                .with("ipFamilyPolicy", "RequireDualStack")
        },
        "famil",
    ),
    ("timeout-short", |it| it.port(80, 80).annotated(IDLE_TIMEOUT, "3"), "idle timeout"),
    ("timeout-long", |it| it.port(80, 80).annotated(IDLE_TIMEOUT, "31"), "idle timeout"),
    ("timeout-words", |it| it.port(80, 80).annotated(IDLE_TIMEOUT, "five"), "idle timeout"),
    ("sctp", |it| it.port_as(named_port("sctp", "SCTP", 80, 80)), "SCTP"),
    ("last-port", |it| it.port(65535, 80), "65535"),
    ("one-backend-twice", |it| it.port(80, 8080).port(81, 8080), "8080"),
    (
        "ranges",
        |it| it.port(80, 80).with("loadBalancerSourceRanges", json!(["203.0.113.0/24"])),
        "source ranges",
    ),
    (
        "allowed-ranges",
        |it| {
            it.port(80, 80).annotated("service.beta.kubernetes.io/azure-allowed-ip-ranges", "203.0.113.0/24")
        },
        "source ranges",
    ),
    (
        "allowed-tags",
        |it| it.port(80, 80).annotated("service.beta.kubernetes.io/azure-allowed-service-tags", "Storage"),
        "service tags",
    ),
    (
        "annotated-ranges",
        |it| {
            it.port(80, 80)
                .annotated("service.beta.kubernetes.io/load-balancer-source-ranges", "203.0.113.0/24")
        },
        "source ranges",
    ),
];

fn make<'a>(world: &'a World, row: &Rejected) -> ServiceToMake<'a> {
    (row.1)(world.service(row.0).selecting("web"))
}

async fn rejected_specs(scene: &Scene) -> Result<()> {
    scene.node("a").await?;
    scene.pods("web", 2, &["a"]).await?;
    scene.settled().await?;
    let mark = scene.mark_writes().await?;
    scene
        .meanwhile(async {
            for row in REJECTED {
                make(scene, row).make().await?;
            }
            Ok(())
        })
        .await?;
    for (name, _, word) in REJECTED {
        scene.warned("Service", name, &["InvalidSpec", word]).await?;
    }
    // The conditions are the judge's business.
    scene.settled().await?;
    scene.no_write_since(mark).await?;
    // One bad object never hurts the others.
    scene.meanwhile(async { scene.service("good").port(80, 8080).selecting("web").make().await }).await?;
    scene.settled().await?;
    scene.meanwhile(scene.annotate("timeout-words", IDLE_TIMEOUT, Some("5"))).await?;
    scene.settled().await?;
    scene.ip_of("timeout-words").await?;
    Ok(())
}

async fn rejected_edit(scene: &Scene) -> Result<()> {
    scene.node("a").await?;
    scene.pods("web", 2, &["a"]).await?;
    let uid = scene.service("web").port(80, 8080).selecting("web").make().await?;
    scene.settled().await?;
    let ip = scene.ip_of("web").await?;
    scene.keeps_its_rules("web").await?;
    let mark = scene.mark_writes().await?;
    scene
        .meanwhile(async {
            let patch = json!({"spec": {"loadBalancerSourceRanges": ["203.0.113.0/24"]}});
            scene.edit_service("web", "wants only some clients", patch).await
        })
        .await?;
    scene.warned("Service", "web", &["InvalidSpec", "source ranges"]).await?;
    scene.settled().await?;
    scene.no_write_about(mark, &uid).await?;
    ensure!(scene.ip_of("web").await? == ip, "the IP went with an edit that is refused");
    // Its pods come and go as before.
    scene.meanwhile(scene.pods_from("web", 3, 2, &["a"])).await?;
    scene.settled().await?;
    scene.except(|it| it.frozen.clear());
    scene
        .meanwhile(async {
            let patch = json!({"spec": {"loadBalancerSourceRanges": Value::Null}});
            scene.edit_service("web", "lets everybody in again", patch).await
        })
        .await?;
    scene.settled().await?;
    ensure!(scene.ip_of("web").await? == ip, "the IP went with an edit that was taken back");
    Ok(())
}
