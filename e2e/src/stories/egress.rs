//! Egress: a NAT gateway for the pods of one label.

use anyhow::{Result, ensure};

use crate::scene::{Look, Scene};
use crate::setting::Setting;
use crate::story::{Story, Variant};
use crate::world::Step;

/// The stories of this theme.
pub(crate) const STORIES: &[Story] = &[
    Story::new(
        "egress-first-pod",
        "the first pod of an egress makes it; its name is in lower case",
        |scene| Box::pin(first_pod(scene)),
    ),
    Story::new("egress-five-early-pods", "five pods are there before their NAT gateway is", |scene| {
        Box::pin(five_early_pods(scene))
    }),
    Story::new("egress-scale", "ten pods, then thirty, then five", |scene| Box::pin(scale(scene))),
    Story::new(
        "egress-linger-keeps-the-ip",
        "all pods go and others come; within the linger time the address stays",
        |scene| Box::pin(linger_keeps_the_ip(scene)),
    )
    .with(|setting| {
        setting.key("egress.linger", "1h");
    }),
    Story::new("egress-last-pod", "without linger an egress goes with its last pod", |scene| {
        Box::pin(last_pod(scene))
    }),
    Story::new(
        "egress-return",
        "the last pod goes, and another comes while the egress is on its way out",
        |scene| Box::pin(comes_back(scene)),
    ),
    Story::new("egress-label-there-and-back", "a pod's label changes from A to B to A", |scene| {
        Box::pin(label_there_and_back(scene))
    }),
    Story::new("egress-label-removed", "a pod loses its label and lives on", |scene| {
        Box::pin(label_removed(scene))
    }),
    Story::new("egress-and-backend", "a pod has an egress and is behind two Services", |scene| {
        Box::pin(egress_and_backend(scene))
    }),
    Story::new("egress-same-pod-name", "a StatefulSet's pod is replaced by one of its name", |scene| {
        Box::pin(same_pod_name(scene))
    }),
    Story::new(
        "egress-ip-reused",
        "a pod gets the address of one that still ends, of another egress",
        |scene| Box::pin(ip_reused(scene)),
    ),
    Story::new("egress-terminating-pods", "a pod that ends keeps its egress until it has ended", |scene| {
        Box::pin(terminating_pods(scene))
    }),
    Story::new(
        "egress-finished-jobs",
        "pods of a Job end, well and badly, and their objects stay",
        |scene| Box::pin(finished_jobs(scene)),
    ),
    Story::new("egress-host-network", "a pod on the node's network is warned and gets nothing", |scene| {
        Box::pin(host_network(scene))
    }),
    Story::new(
        "egress-bad-labels",
        "labels that name no egress are warned about and cost nothing",
        |scene| Box::pin(bad_labels(scene)),
    ),
    Story::new(
        "egress-namespaces",
        "only pods of one namespace may have an egress; others are warned and cost nothing",
        |scene| Box::pin(namespaces(scene)),
    )
    .with(|setting| {
        setting.key("egress.namespaces", serde_json::json!(["allowed"]));
    }),
    Story::new("egress-max", "of two egresses one is too many, until the other goes", |scene| {
        Box::pin(one_too_many(scene))
    })
    .with(|setting| {
        // The default outbound is none of them.
        setting.key("egress.max", 1);
    }),
    Story::new(
        "egress-namespace-deleted",
        "a namespace is deleted while its egress is being made",
        |scene| Box::pin(namespace_deleted(scene)),
    ),
];

/// The address by which an egress leaves.
async fn leaves_by(scene: &Scene, egress: &str) -> Result<String> {
    let id = format!("/publicIPAddresses/{egress}-pip");
    scene
        .until(&format!("egress {egress} has a public IP"), async || {
            let state = scene.azure.state().await?;
            let all = state["publicIPAddresses"].as_array().cloned().unwrap_or_default();
            let own = all.iter().find(|it| it["id"].as_str().is_some_and(|it| it.ends_with(&id)));
            let address = own.and_then(|it| it["ipAddress"].as_str());
            Ok(address.map_or_else(|| Look::NotYet("it has none".into()), |it| Look::Yes(it.to_string())))
        })
        .await
}

async fn first_pod(scene: &Scene) -> Result<()> {
    scene.node("a").await?;
    scene.settled().await?;
    // A pod without an address asks for its egress all the same.
    scene.meanwhile(async { scene.pod("blue-1").egress("Blue").on("a").until(Step::Exists).await }).await?;
    scene.settled().await?;
    let ip = leaves_by(scene, "blue").await?;
    scene
        .meanwhile(async {
            scene.set_pod_ips("blue-1", &["10.1.9.1"]).await?;
            scene.pod("blue-2").egress("blue").on("a").until(Step::Pending).await?;
            scene.pod("blue-3").egress("BLUE").on("a").until(Step::Running).await
        })
        .await?;
    scene.settled().await?;
    // And one that loses its address loses its place, nothing else.
    scene.meanwhile(scene.set_pod_ips("blue-1", &[])).await?;
    scene.settled().await?;
    ensure!(leaves_by(scene, "blue").await? == ip, "the egress IP changed with the pods");
    Ok(())
}

async fn five_early_pods(scene: &Scene) -> Result<()> {
    scene.nodes(&["a", "b"]).await?;
    scene.azure.tell("slow", serde_json::json!({"factor": 5})).await?;
    scene.meanwhile(scene.egress_pods("blue", 1, 5, &["a", "b"])).await?;
    // One of them is gone again before anything was ready for it.
    scene.meanwhile(scene.delete_pod("blue-3")).await?;
    scene.azure.calm().await?;
    scene.settled().await
}

async fn scale(scene: &Scene) -> Result<()> {
    scene.nodes(&["a", "b", "c"]).await?;
    scene.meanwhile(scene.egress_pods("blue", 1, 10, &["a", "b", "c"])).await?;
    scene.settled().await?;
    let ip = leaves_by(scene, "blue").await?;
    scene.meanwhile(scene.egress_pods("blue", 11, 20, &["a", "b", "c"])).await?;
    scene.settled().await?;
    scene.meanwhile(scene.delete_pods("blue", 6, 25)).await?;
    scene.settled().await?;
    ensure!(leaves_by(scene, "blue").await? == ip, "the egress IP changed with the number of pods");
    Ok(())
}

async fn linger_keeps_the_ip(scene: &Scene) -> Result<()> {
    scene.nodes(&["a", "b"]).await?;
    scene.egress_pods("blue", 1, 3, &["a", "b"]).await?;
    scene.settled().await?;
    let ip = leaves_by(scene, "blue").await?;
    scene.meanwhile(scene.delete_pods("blue", 1, 3)).await?;
    scene.except(|it| {
        it.lingering.insert("blue".to_string());
    });
    scene.settled().await?;
    scene.meanwhile(scene.egress_pods("blue", 4, 3, &["a", "b"])).await?;
    scene.settled().await?;
    ensure!(leaves_by(scene, "blue").await? == ip, "the egress IP changed although it lingered");
    // So that nobody has to wait for the end of it when everybody has left.
    let at_once = |it: &mut Setting| {
        it.key("egress.linger", "0s");
    };
    scene.restart_with("no linger", at_once).await?;
    scene.except(|it| it.lingering.clear());
    scene.settled().await
}

async fn last_pod(scene: &Scene) -> Result<()> {
    scene.node("a").await?;
    scene.egress_pods("blue", 1, 2, &["a"]).await?;
    scene.egress_pods("green", 1, 1, &["a"]).await?;
    scene.settled().await?;
    scene.meanwhile(scene.delete_pods("blue", 1, 1)).await?;
    scene.settled().await?;
    scene.meanwhile(scene.delete_pods("blue", 2, 1)).await?;
    scene.settled().await
}

async fn comes_back(scene: &Scene) -> Result<()> {
    scene.nodes(&["a", "b"]).await?;
    scene.egress_pods("blue", 1, 2, &["a", "b"]).await?;
    scene.settled().await?;
    scene
        .meanwhile(async {
            scene.delete_pods("blue", 1, 2).await?;
            scene.egress_pods("blue", 3, 1, &["a"]).await
        })
        .await?;
    scene.settled().await?;
    // This time the teardown has begun and takes until it is told to go on, and then it is made anew.
    let mark = scene.mark_writes().await?;
    scene.deletions_wait("natGateways").await?;
    scene.meanwhile(scene.delete_pods("blue", 3, 1)).await?;
    scene.deletion_begun(mark, "natGateways", "blue").await?;
    scene.meanwhile(scene.egress_pods("blue", 4, 2, &["b"])).await?;
    if scene.variant == Variant::Plain {
        let running = scene.running().await?;
        ensure!(!running.is_empty(), "the egress was gone before its pods came back");
    }
    scene.azure.calm().await?;
    scene.settled().await?;
    let writes = scene.writes_since(mark).await?;
    let made = writes.iter().filter(|it| it.is_put_of("natGateways", "blue"));
    ensure!(made.count() > 0, "the NAT gateway was on its way out, and was not made anew");
    Ok(())
}

async fn label_there_and_back(scene: &Scene) -> Result<()> {
    scene.node("a").await?;
    scene.egress_pods("blue", 1, 2, &["a"]).await?;
    scene.egress_pods("green", 1, 1, &["a"]).await?;
    scene.settled().await?;
    scene
        .meanwhile(async {
            scene.set_egress("blue-1", Some("green")).await?;
            scene.set_egress("blue-1", Some("blue")).await
        })
        .await?;
    scene.settled().await?;
    // Slowly now, and with an egress that only this pod asks for.
    scene.meanwhile(scene.set_egress("blue-1", Some("red"))).await?;
    scene.settled().await?;
    scene.meanwhile(scene.set_egress("blue-1", Some("blue"))).await?;
    scene.settled().await
}

async fn label_removed(scene: &Scene) -> Result<()> {
    scene.node("a").await?;
    scene.egress_pods("blue", 1, 2, &["a"]).await?;
    scene.settled().await?;
    scene.meanwhile(scene.set_egress("blue-1", None)).await?;
    scene.settled().await?;
    scene.meanwhile(scene.set_egress("blue-2", None)).await?;
    scene.settled().await
}

async fn egress_and_backend(scene: &Scene) -> Result<()> {
    scene.nodes(&["a", "b"]).await?;
    scene
        .meanwhile(async {
            for (name, node) in [("web-1", "a"), ("web-2", "b")] {
                scene.pod(name).of("web").egress("blue").on(node).run().await?;
            }
            scene.service("one").port(80, 8080).selecting("web").make().await?;
            scene.service("two").port(81, 8080).selecting("web").make().await
        })
        .await?;
    scene.settled().await?;
    scene.meanwhile(scene.set_ready("web-1", false)).await?;
    scene.settled().await?;
    scene
        .meanwhile(async {
            scene.set_egress("web-2", None).await?;
            scene.delete_service("one").await
        })
        .await?;
    scene.settled().await
}

async fn same_pod_name(scene: &Scene) -> Result<()> {
    scene.nodes(&["a", "b"]).await?;
    scene.pod("db-0").egress("blue").on("a").at(&["10.1.9.1"]).run().await?;
    scene.pod("db-1").egress("blue").on("b").at(&["10.1.9.2"]).run().await?;
    scene.settled().await?;
    scene
        .meanwhile(async {
            scene.delete_pod("db-0").await?;
            scene.pod("db-0").egress("blue").on("b").at(&["10.1.9.3"]).run().await?;
            // This one comes back with its old address and another egress.
            scene.delete_pod("db-1").await?;
            scene.pod("db-1").egress("green").on("b").at(&["10.1.9.2"]).run().await
        })
        .await?;
    scene.settled().await
}

async fn ip_reused(scene: &Scene) -> Result<()> {
    scene.nodes(&["a", "b"]).await?;
    scene.pod("old").egress("blue").on("a").at(&["10.1.9.1"]).run().await?;
    scene.pod("stays").egress("blue").on("a").at(&["10.1.9.2"]).run().await?;
    scene.settled().await?;
    scene
        .meanwhile(async {
            scene.begin_ending("old").await?;
            scene.pod("new").egress("green").on("a").at(&["10.1.9.1"]).run().await
        })
        .await?;
    scene.settled().await?;
    // The late end of the old one must not take the address from the new one.
    scene.meanwhile(scene.pod_ended("old")).await?;
    scene.settled().await?;
    // Once more across nodes.
    scene
        .meanwhile(async {
            scene.begin_ending("new").await?;
            scene.pod("newest").egress("green").on("b").at(&["10.1.9.1"]).run().await?;
            scene.pod_ended("new").await
        })
        .await?;
    scene.settled().await
}

async fn terminating_pods(scene: &Scene) -> Result<()> {
    scene.node("a").await?;
    scene.egress_pods("blue", 1, 2, &["a"]).await?;
    scene.settled().await?;
    let addresses = [scene.ip_of_pod("blue-1").await?, scene.ip_of_pod("blue-2").await?];
    let mark = scene.mark_writes().await?;
    scene
        .meanwhile(async {
            scene.begin_ending("blue-1").await?;
            scene.begin_ending("blue-2").await
        })
        .await?;
    // A pod that is served was seen after the two that end.
    scene.egress_pods("green", 1, 1, &["a"]).await?;
    scene.settled().await?;
    for address in &addresses {
        scene.no_write_about(mark, address).await?;
    }
    scene
        .meanwhile(async {
            scene.pod_ended("blue-1").await?;
            scene.pod_ended("blue-2").await
        })
        .await?;
    scene.settled().await
}

async fn finished_jobs(scene: &Scene) -> Result<()> {
    scene.node("a").await?;
    scene.meanwhile(scene.egress_pods("batch", 1, 3, &["a"])).await?;
    scene.settled().await?;
    scene
        .meanwhile(async {
            scene.finish("batch-1", "Succeeded").await?;
            scene.finish("batch-2", "Failed").await
        })
        .await?;
    scene.settled().await?;
    scene.meanwhile(scene.finish("batch-3", "Succeeded")).await?;
    scene.settled().await
}

async fn host_network(scene: &Scene) -> Result<()> {
    scene.node("a").await?;
    scene.settled().await?;
    let mark = scene.mark_writes().await?;
    scene.meanwhile(async { scene.pod("agent").egress("blue").on("a").on_the_host().run().await }).await?;
    scene.warned("Pod", "agent", &["blue", "host network"]).await?;
    scene.settled().await?;
    scene.no_write_about(mark, "blue").await?;
    // Beside one that is served as usual.
    scene.meanwhile(scene.egress_pods("blue", 1, 1, &["a"])).await?;
    scene.settled().await
}

async fn bad_labels(scene: &Scene) -> Result<()> {
    scene.node("a").await?;
    scene.settled().await?;
    let mark = scene.mark_writes().await?;
    let bad = [
        ("reserved", "default-natgw", "reserved"),
        ("shouted", "Default-NATGW", "reserved"),
        ("uid", "0a1b2c3d-0000-4000-8000-00000000000f", "UID"),
    ];
    scene
        .meanwhile(async {
            for (pod, label, _) in bad {
                scene.pod(pod).egress(label).on("a").run().await?;
            }
            // Kubernetes takes labels only of 63 letters, digits, dots, dashes and underscores.
            scene.pod("empty").egress("").on("a").until(Step::Ready).await
        })
        .await?;
    for (pod, _, word) in bad {
        scene.warned("Pod", pod, &[word]).await?;
    }
    scene.warned("Pod", "empty", &["empty"]).await?;
    scene.settled().await?;
    scene.no_write_since(mark).await?;
    // Mended, it is served.
    scene.meanwhile(scene.set_egress("reserved", Some("blue"))).await?;
    scene.settled().await
}

async fn namespaces(scene: &Scene) -> Result<()> {
    scene.node("a").await?;
    let allowed = scene.other_namespace("allowed").await?;
    let mark = scene.mark_writes().await?;
    scene
        .meanwhile(async {
            allowed.egress_pods("blue", 1, 2, &["a"]).await?;
            scene.egress_pods("green", 1, 1, &["a"]).await
        })
        .await?;
    scene.warned("Pod", "green-1", &["green", "is not in sluice.egress.namespaces"]).await?;
    scene.settled().await?;
    scene.no_write_about(mark, "green").await?;
    // The name is everybody's: one of them may not share it either.
    scene.meanwhile(scene.set_egress("green-1", Some("blue"))).await?;
    scene.warned("Pod", "green-1", &["blue", "is not in sluice.egress.namespaces"]).await?;
    scene.settled().await?;
    // The name is in the configuration, so it must be free again for whoever plays this next.
    allowed.end_all_pods().await?;
    allowed.delete_namespace().await?;
    scene.namespace_gone("allowed").await?;
    scene.settled().await
}

async fn one_too_many(scene: &Scene) -> Result<()> {
    scene.node("a").await?;
    scene.egress_pods("blue", 1, 1, &["a"]).await?;
    scene.settled().await?;
    let mark = scene.mark_writes().await?;
    scene.except(|it| {
        it.unserved.insert("green".to_string());
    });
    scene.meanwhile(scene.egress_pods("green", 1, 1, &["a"])).await?;
    scene.warned_somewhere(&["Egress limit reached (sluice.egress.max=1)"]).await?;
    scene.settled().await?;
    scene.no_write_about(mark, "green").await?;
    scene.except(|it| it.unserved.clear());
    scene.meanwhile(scene.delete_pods("blue", 1, 1)).await?;
    scene.settled().await
}

async fn namespace_deleted(scene: &Scene) -> Result<()> {
    scene.nodes(&["a", "b"]).await?;
    let other = scene.other_namespace("other").await?;
    scene.egress_pods("green", 1, 1, &["a"]).await?;
    scene.settled().await?;
    scene
        .meanwhile(async {
            other.egress_pods("blue", 1, 5, &["a", "b"]).await?;
            other.service("web").port(80, 8080).selecting("web").make().await?;
            other.pods("web", 2, &["a", "b"]).await?;
            // Nothing of it is ready yet when it goes.
            other.delete_namespace().await?;
            other.end_all_pods().await
        })
        .await?;
    scene.asked_for("blue");
    scene.settled().await?;
    scene.namespace_gone("other").await
}
