//! Services of type LoadBalancer, from their making to their end.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::scene::Scene;
use crate::story::Story;
use crate::world::ports::{tcp, udp};

/// The stories of this theme.
pub(crate) const STORIES: &[Story] = &[
    Story::new(
        "early-and-late-endpoints",
        "pods that are there before their Service, and pods that come when it is served",
        |scene| Box::pin(early_and_late_endpoints(scene)),
    ),
    Story::new("sixty-services", "sixty Services at once, each with pods of its own", |scene| {
        Box::pin(sixty_services(scene))
    }),
    Story::new("three-rapid-edits", "of three edits in a row only the last counts in the end", |scene| {
        Box::pin(three_rapid_edits(scene))
    }),
    Story::new("label-only-edit", "a label that does not matter costs no write", |scene| {
        Box::pin(label_only_edit(scene))
    }),
    Story::new(
        "toggle-slow",
        "LoadBalancer to ClusterIP and back, with all the time in the world in between",
        |scene| Box::pin(toggle_slow(scene)),
    ),
    Story::new("toggle-fast", "LoadBalancer to ClusterIP and back, and back, at once", |scene| {
        Box::pin(toggle_fast(scene))
    }),
    Story::new("same-name-again", "a Service is deleted and another of its name is made", |scene| {
        Box::pin(same_name_again(scene))
    }),
    Story::new("foreign-class", "Services of another class and without one are none of ours", |scene| {
        Box::pin(foreign_class(scene))
    }),
];

async fn early_and_late_endpoints(scene: &Scene) -> Result<()> {
    scene.nodes(&["a", "b"]).await?;
    scene
        .meanwhile(async {
            scene.pods("web", 3, &["a", "b"]).await?;
            scene.service("web").port(80, 8080).selecting("web").make().await
        })
        .await?;
    scene.settled().await?;
    let ip = scene.ip_of("web").await?;
    scene.meanwhile(scene.pods_from("web", 4, 2, &["a"])).await?;
    scene.settled().await?;
    ensure!(scene.ip_of("web").await? == ip, "the IP changed with the endpoints");
    scene.meanwhile(scene.delete_pods("web", 1, 3)).await?;
    scene.settled().await
}

async fn sixty_services(scene: &Scene) -> Result<()> {
    scene.nodes(&["a", "b", "c"]).await?;
    scene
        .meanwhile(async {
            scene.tell("makes sixty services with two pods each");
            for number in 1..=60 {
                let name = format!("web-{number}");
                scene.service(&name).port(80, 8080).selecting(&name).quiet().make().await?;
                for pod in 1..=2 {
                    let node = ["a", "b", "c"][(number + pod) % 3];
                    scene.pod(&format!("{name}-{pod}")).of(&name).on(node).quiet().run().await?;
                }
            }
            Ok(())
        })
        .await?;
    scene.settled().await?;
    scene
        .meanwhile(async {
            scene.tell("deletes every other one");
            for number in (1..=60).step_by(2) {
                scene.delete_service(&format!("web-{number}")).await?;
            }
            Ok(())
        })
        .await?;
    scene.settled().await
}

async fn three_rapid_edits(scene: &Scene) -> Result<()> {
    scene.node("a").await?;
    scene.pods("web", 2, &["a"]).await?;
    scene.service("web").port(80, 8080).selecting("web").make().await?;
    scene.settled().await?;
    let ip = scene.ip_of("web").await?;
    scene
        .meanwhile(async {
            scene.set_ports("web", &[tcp(81, 8080)]).await?;
            scene.set_ports("web", &[udp(82, 8082), tcp(82, 8080)]).await?;
            scene.set_ports("web", &[tcp(83, 8083), tcp(84, 8084)]).await
        })
        .await?;
    scene.settled().await?;
    ensure!(scene.ip_of("web").await? == ip, "the IP changed with the ports");
    Ok(())
}

async fn label_only_edit(scene: &Scene) -> Result<()> {
    scene.node("a").await?;
    scene.pods("web", 2, &["a"]).await?;
    let uid = scene.service("web").port(80, 8080).selecting("web").make().await?;
    scene.settled().await?;
    let mark = scene.mark_writes().await?;
    scene
        .meanwhile(async {
            let patch = json!({"metadata": {"labels": {"team": "shop"}, "annotations": {"note": "hello"}}});
            scene.edit_service("web", "has a label and an annotation that do not matter", patch).await
        })
        .await?;
    scene.fence("fence").await?;
    scene.settled().await?;
    scene.no_write_about(mark, &uid).await
}

async fn toggle_slow(scene: &Scene) -> Result<()> {
    scene.node("a").await?;
    scene.pods("web", 2, &["a"]).await?;
    scene.service("web").port(80, 8080).selecting("web").make().await?;
    scene.settled().await?;
    scene.meanwhile(scene.make_cluster_ip("web")).await?;
    scene.settled().await?;
    scene.meanwhile(scene.make_load_balancer("web")).await?;
    scene.settled().await
}

async fn toggle_fast(scene: &Scene) -> Result<()> {
    scene.node("a").await?;
    scene.pods("web", 2, &["a"]).await?;
    scene.service("web").port(80, 8080).selecting("web").make().await?;
    scene.settled().await?;
    scene
        .meanwhile(async {
            scene.make_cluster_ip("web").await?;
            scene.make_load_balancer("web").await
        })
        .await?;
    scene.settled().await?;
    scene
        .meanwhile(async {
            for _ in 0..3 {
                scene.make_cluster_ip("web").await?;
                scene.make_load_balancer("web").await?;
            }
            scene.make_cluster_ip("web").await
        })
        .await?;
    scene.settled().await?;
    // And back when its load balancer is on its way out, which takes until it is told to go on.
    scene.meanwhile(scene.make_load_balancer("web")).await?;
    scene.settled().await?;
    let uid = scene.uid_of("web").await?;
    let mark = scene.mark_writes().await?;
    scene.deletions_wait("loadBalancers").await?;
    scene.meanwhile(scene.make_cluster_ip("web")).await?;
    scene.deletion_begun(mark, "loadBalancers", &uid).await?;
    scene.meanwhile(scene.make_load_balancer("web")).await?;
    scene.azure.calm().await?;
    scene.settled().await
}

async fn same_name_again(scene: &Scene) -> Result<()> {
    scene.node("a").await?;
    scene.pods("web", 2, &["a"]).await?;
    let first = scene.service("web").port(80, 8080).selecting("web").make().await?;
    scene.settled().await?;
    scene.meanwhile(scene.delete_service("web")).await?;
    // Its finalizer keeps it until Azure's side is gone, so the name is free only then.
    scene.service_gone("web").await?;
    let second =
        scene.meanwhile(async { scene.service("web").port(80, 8080).selecting("web").make().await }).await?;
    ensure!(first != second, "the API server gave one UID twice");
    scene.settled().await
}

async fn foreign_class(scene: &Scene) -> Result<()> {
    scene.node("a").await?;
    scene.pods("web", 2, &["a"]).await?;
    scene
        .meanwhile(async {
            let theirs = scene.service("theirs").port(80, 8080).selecting("web");
            theirs.with("loadBalancerClass", "example.com/other").make().await?;
            let nobodys = scene.service("nobodys").port(80, 8080).selecting("web");
            nobodys.with("loadBalancerClass", Value::Null).make().await?;
            scene.service("ours").port(80, 8080).selecting("web").make().await
        })
        .await?;
    scene.settled().await?;
    let (theirs, nobodys) = (scene.uid_of("theirs").await?, scene.uid_of("nobodys").await?);
    scene.meanwhile(scene.set_ports("theirs", &[tcp(81, 8080)])).await?;
    scene.fence("fence").await?;
    scene.settled().await?;
    let from_the_start = scene.start_of_writes();
    scene.no_write_about(from_the_start, &theirs).await?;
    scene.no_write_about(from_the_start, &nobodys).await
}
