//! Services that ask for what cannot be: an event, a condition, and nothing in Azure.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::judge::inbound::INTERNAL;
use crate::scene::Scene;
use crate::story::Story;
use crate::world::ports::{named_port, tcp};
use crate::world::{ServiceToMake, World};

/// The stories of this theme.
pub(crate) const STORIES: &[Story] = &[
    Story::new(
        "rejected-specs",
        "every spec that cannot be served gets its event and condition and costs nothing; one is mended",
        |scene| Box::pin(rejected_specs(scene)),
    )
    .on_a_real_plane("it has IPv4 only, and refuses the Service of two families by itself"),
    Story::new(
        "rejected-edit-of-a-live-service",
        "a live Service is edited into what cannot be: its load balancer stays as it is",
        |scene| Box::pin(rejected_edit(scene)),
    ),
    Story::new(
        "rejected-while-it-is-created",
        "a Service becomes internal while its load balancer is being created: nothing is published, all is taken down",
        |scene| Box::pin(rejected_while_created(scene)),
    ),
    Story::new(
        "annotations-without-effect",
        "annotations of the cloud controller manager that mean nothing here: served, with one warning",
        |scene| Box::pin(annotations_without_effect(scene)),
    ),
    Story::new(
        "no-class-of-our-own",
        "a controller without a class serves Services without one, and frees what it inherits",
        |scene| Box::pin(no_class_of_our_own(scene)),
    )
    .with(|setting| setting.class = None),
];

/// A name, what makes it impossible, and a word of the warning.
type Rejected = (&'static str, fn(ServiceToMake<'_>) -> ServiceToMake<'_>, &'static str);

const IDLE_TIMEOUT: &str = "service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout";

/// Everything that the contract rejects.
const REJECTED: &[Rejected] = &[
    ("internal", |it| it.port(80, 80).annotated(INTERNAL, "true"), "internal"),
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
    (
        "deny-all",
        |it| {
            let deny = "service.beta.kubernetes.io/azure-deny-all-except-load-balancer-source-ranges";
            it.port(80, 80).annotated(deny, "true")
        },
        "source ranges",
    ),
    (
        "ip-by-name",
        |it| it.port(80, 80).annotated("service.beta.kubernetes.io/azure-pip-name", "mine"),
        "azure-pip-name",
    ),
    (
        "ip-by-prefix",
        |it| it.port(80, 80).annotated("service.beta.kubernetes.io/azure-pip-prefix-id", "/subscriptions/s"),
        "azure-pip-prefix-id",
    ),
    (
        "ip-by-address",
        |it| it.port(80, 80).annotated("service.beta.kubernetes.io/azure-load-balancer-ipv4", "198.51.100.1"),
        "azure-load-balancer-ipv4",
    ),
    (
        "private-link",
        |it| it.port(80, 80).annotated("service.beta.kubernetes.io/azure-pls-create", "true"),
        "azure-pls-create",
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

/// An edit that is refused, how it is taken back, and a word of the warning.
type Edit = (&'static str, fn() -> Value, fn() -> Value, &'static str);

/// Edits of a live Service that Kubernetes takes and we do not.
const EDITS: &[Edit] = &[
    (
        "wants only some clients",
        || json!({"spec": {"loadBalancerSourceRanges": ["203.0.113.0/24"]}}),
        || json!({"spec": {"loadBalancerSourceRanges": null}}),
        "source ranges",
    ),
    (
        "wants to be internal",
        || json!({"metadata": {"annotations": {INTERNAL: "true"}}}),
        || json!({"metadata": {"annotations": {INTERNAL: null}}}),
        "internal",
    ),
    (
        "wants affinity",
        || json!({"spec": {"sessionAffinity": "ClientIP"}}),
        || json!({"spec": {"sessionAffinity": "None", "sessionAffinityConfig": null}}),
        "sessionAffinity",
    ),
    (
        "wants the last port",
        || json!({"spec": {"ports": [tcp(65535, 8080)]}}),
        || json!({"spec": {"ports": [tcp(80, 8080)]}}),
        "65535",
    ),
];

async fn rejected_edit(scene: &Scene) -> Result<()> {
    scene.node("a").await?;
    scene.pods("web", 2, &["a"]).await?;
    let uid = scene.service("web").port(80, 8080).selecting("web").make().await?;
    scene.settled().await?;
    let ip = scene.ip_of("web").await?;
    let mark = scene.mark_writes().await?;
    for (why, edit, mend, word) in EDITS {
        scene.keeps_its_rules("web").await?;
        scene.meanwhile(scene.edit_service("web", why, edit())).await?;
        scene.warned("Service", "web", &["InvalidSpec", word]).await?;
        scene.settled().await?;
        scene.except(|it| it.frozen.clear());
        scene.edit_service("web", "is as it was", mend()).await?;
        scene.settled().await?;
    }
    scene.no_write_about(mark, &uid).await?;
    // While it is refused its pods come and go as before, and its deletion is carried out.
    let (why, edit, ..) = &EDITS[0];
    scene.keeps_its_rules("web").await?;
    scene
        .meanwhile(async {
            scene.edit_service("web", why, edit()).await?;
            scene.pods_from("web", 3, 2, &["a"]).await
        })
        .await?;
    scene.settled().await?;
    ensure!(scene.ip_of("web").await? == ip, "the IP went with an edit that is refused");
    scene.meanwhile(scene.delete_service("web")).await?;
    scene.service_gone("web").await?;
    scene.settled().await
}

async fn rejected_while_created(scene: &Scene) -> Result<()> {
    scene.node("a").await?;
    scene.pods("web", 2, &["a"]).await?;
    scene.settled().await?;
    let mark = scene.mark_writes().await?;
    scene.puts_wait("loadBalancers").await?;
    let uid = scene.service("web").port(80, 8080).selecting("web").make().await?;
    scene.put_begun(mark, "loadBalancers", &uid).await?;
    scene.annotate("web", INTERNAL, Some("true")).await?;
    scene.warned("Service", "web", &["InvalidSpec", "internal"]).await?;
    scene.azure.calm().await?;
    // Nothing is left in Azure, and the status shows no IP.
    scene.settled().await?;
    scene.meanwhile(scene.annotate("web", INTERNAL, None)).await?;
    scene.settled().await?;
    scene.ip_of("web").await?;
    Ok(())
}

async fn annotations_without_effect(scene: &Scene) -> Result<()> {
    scene.node("a").await?;
    scene.pods("web", 1, &["a"]).await?;
    scene
        .meanwhile(async {
            let name = |word: &str| format!("service.beta.kubernetes.io/azure-{word}");
            let service = scene.service("web").port(80, 8080).selecting("web");
            let service =
                service.annotated(&name("pip-tags"), "a=b").annotated(&name("dns-label-name"), "web");
            service.make().await?;
            let both = scene.service("both").port(80, 8080).selecting("web");
            both.with("ipFamilyPolicy", "PreferDualStack").make().await
        })
        .await?;
    scene
        .warned(
            "Service",
            "web",
            &["Ignored unsupported annotations", "azure-pip-tags", "azure-dns-label-name"],
        )
        .await?;
    scene.warned("Service", "both", &["PreferDualStack", "first IP family"]).await?;
    scene.settled().await?;
    scene.ip_of("both").await?;
    scene.ip_of("web").await?;
    scene.fence("fence").await?;
    let warnings = scene.warnings("Service", "web").await?;
    // A new process does not know what the one before it has said.
    let lives = scene.controller().counts().starts;
    ensure!((1..=lives).contains(&warnings.len()), "one warning is enough, and there are {warnings:?}");
    Ok(())
}

async fn no_class_of_our_own(scene: &Scene) -> Result<()> {
    scene.node("a").await?;
    scene.pods("web", 2, &["a"]).await?;
    let theirs = scene
        .meanwhile(async {
            scene.service("ours").port(80, 8080).selecting("web").make().await?;
            let theirs = scene.service("theirs").port(80, 8080).selecting("web");
            theirs.with("loadBalancerClass", "example.com/other").make().await
        })
        .await?;
    scene.settled().await?;
    scene.ip_of("ours").await?;
    scene.no_write_about(scene.start_of_writes(), &theirs).await?;
    let inherited = json!({"metadata": {"finalizers": [
        "sluice.dev/cleanup",
        "service.kubernetes.io/load-balancer-cleanup",
        "servicegateway.azure.com/service-cleanup",
    ]}});
    scene.edit_service("ours", "has finalizers of our predecessors", inherited).await?;
    scene.meanwhile(scene.delete_service("ours")).await?;
    scene.service_gone("ours").await?;
    scene.settled().await
}
