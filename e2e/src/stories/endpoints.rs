//! Endpoints and nodes: which address belongs to which Service, and where it is.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use kube::Api;
use kube::api::ListParams;
use serde_json::json;

use crate::scene::{Look, Scene};
use crate::story::Story;

/// The stories of this theme.
pub(crate) const STORIES: &[Story] = &[
    Story::new("two-services-share-pods", "two Services select the same pods; one of them goes", |scene| {
        Box::pin(two_services_share_pods(scene))
    }),
    Story::new("selector-swap", "two Services exchange their pods", |scene| Box::pin(selector_swap(scene))),
    Story::new("many-slices", "230 pods of one Service, which the slice controller spreads", |scene| {
        Box::pin(many_slices(scene))
    }),
    Story::new(
        "endpoints-move-between-slices",
        "endpoints go from one slice to another, in either order, and overlap",
        |scene| Box::pin(endpoints_move_between_slices(scene)),
    ),
    Story::new("readiness-flaps", "pods are ready, not ready, ready again, many times over", |scene| {
        Box::pin(readiness_flaps(scene))
    }),
    Story::new(
        "all-endpoints-terminating",
        "when the last ready pod ends, those that still serve keep their traffic",
        |scene| Box::pin(all_endpoints_terminating(scene)),
    ),
    Story::new("node-gone", "a node is deleted while its pods are still listed", |scene| {
        Box::pin(node_gone(scene))
    }),
    Story::new("node-moves", "a node gets another address, then a second and smaller one", |scene| {
        Box::pin(node_moves(scene))
    }),
    Story::new("late-node", "endpoints are known before their node is", |scene| Box::pin(late_node(scene))),
    Story::new("ipv6-service", "a Service of IPv6 with pods on IPv6 nodes", |scene| {
        Box::pin(ipv6_service(scene))
    })
    .on_a_real_plane("it has IPv4 only"),
    Story::new(
        "dual-stack-nodes",
        "nodes and pods of both families: each address at the node's address of its family",
        |scene| Box::pin(dual_stack_nodes(scene)),
    )
    .on_a_real_plane("it has IPv4 only"),
];

async fn two_services_share_pods(scene: &Scene) -> Result<()> {
    scene.nodes(&["a", "b"]).await?;
    scene
        .meanwhile(async {
            scene.pods("web", 3, &["a", "b"]).await?;
            scene.service("inside").port(80, 8080).selecting("web").make().await?;
            scene.service("outside").port(443, 8443).selecting("web").make().await
        })
        .await?;
    scene.settled().await?;
    scene.meanwhile(scene.delete_service("outside")).await?;
    scene.settled().await?;
    scene
        .meanwhile(async {
            scene.service("outside").port(444, 8443).selecting("web").make().await?;
            scene.delete_pods("web", 1, 1).await
        })
        .await?;
    scene.settled().await
}

async fn selector_swap(scene: &Scene) -> Result<()> {
    scene.nodes(&["a", "b"]).await?;
    scene.pods("blue", 2, &["a", "b"]).await?;
    scene.pods("green", 3, &["a", "b"]).await?;
    scene.service("live").port(80, 8080).selecting("blue").make().await?;
    scene.service("next").port(80, 8080).selecting("green").make().await?;
    scene.settled().await?;
    let (live, next) = (scene.ip_of("live").await?, scene.ip_of("next").await?);
    let select = |app: &str| json!({"spec": {"selector": {"app": app}}});
    scene
        .meanwhile(async {
            scene.edit_service("live", "selects green", select("green")).await?;
            scene.edit_service("next", "selects blue", select("blue")).await
        })
        .await?;
    scene.settled().await?;
    ensure!(scene.ip_of("live").await? == live, "the IP went with the pods");
    ensure!(scene.ip_of("next").await? == next, "the IP went with the pods");
    Ok(())
}

async fn many_slices(scene: &Scene) -> Result<()> {
    scene.nodes(&["a", "b", "c"]).await?;
    scene
        .meanwhile(async {
            scene.service("web").port(80, 8080).selecting("web").make().await?;
            scene.pods("web", 230, &["a", "b", "c"]).await
        })
        .await?;
    scene.settled().await?;
    scene.meanwhile(scene.delete_pods("web", 40, 120)).await?;
    scene.settled().await
}

async fn endpoints_move_between_slices(scene: &Scene) -> Result<()> {
    scene.nodes(&["a", "b"]).await?;
    let row = |range: std::ops::Range<u8>| {
        range.map(|at| (format!("10.9.0.{at}"), if at % 2 == 0 { "a" } else { "b" }.to_string()))
    };
    let slice = |name: &str| scene.slice(name).of("web").port("tcp-80", 8080);
    // Without a selector nobody but us makes slices for it.
    scene.service("web").port(80, 8080).make().await?;
    scene
        .meanwhile(async {
            slice("web-first").endpoints(row(1..80)).write().await?;
            // Names are no addresses, and do no harm.
            slice("web-names").family("FQDN").endpoint("web.example.com", "a").write().await?;
            slice("web-second").endpoints(row(80..120)).write().await
        })
        .await?;
    scene.settled().await?;
    let mark = scene.mark_writes().await?;
    scene
        .meanwhile(async {
            // There first, gone after: always somewhere.
            slice("web-second").endpoints(row(60..120)).write().await?;
            slice("web-first").endpoints(row(1..60)).write().await
        })
        .await?;
    scene.fence_of_slices("fence", "a").await?;
    scene.settled().await?;
    scene.no_write_about(mark, "10.9.0.70").await?;
    scene
        .meanwhile(async {
            // Gone first, there after: for a moment nowhere.
            slice("web-first").endpoints(row(1..40)).write().await?;
            slice("web-third").endpoints(row(40..60)).write().await
        })
        .await?;
    scene.settled().await?;
    scene.meanwhile(scene.delete_slice("web-second")).await?;
    scene.settled().await
}

async fn readiness_flaps(scene: &Scene) -> Result<()> {
    scene.nodes(&["a", "b"]).await?;
    scene.pods("web", 3, &["a", "b"]).await?;
    scene.service("web").port(80, 8080).selecting("web").make().await?;
    scene.settled().await?;
    scene
        .meanwhile(async {
            for _ in 0..5 {
                scene.set_ready("web-1", false).await?;
                scene.set_ready("web-2", false).await?;
                scene.set_ready("web-1", true).await?;
                scene.set_ready("web-2", true).await?;
            }
            scene.set_ready("web-3", false).await
        })
        .await?;
    scene.settled().await
}

async fn all_endpoints_terminating(scene: &Scene) -> Result<()> {
    scene.nodes(&["a", "b"]).await?;
    scene.pods("web", 2, &["a", "b"]).await?;
    scene.service("web").port(80, 8080).selecting("web").make().await?;
    scene.settled().await?;
    let address = scene.ip_of_pod("web-1").await?;
    scene
        .meanwhile(async {
            scene.begin_ending("web-1").await?;
            scene.begin_ending("web-2").await
        })
        .await?;
    // Before that, the slices show one that ends and one that is ready, and then the ending one does not count.
    let slices = Api::<EndpointSlice>::namespaced(scene.client.clone(), &scene.namespace);
    scene
        .until("the slices show that all pods end", async || {
            let all = slices.list(&ListParams::default()).await?;
            let endpoints = all.iter().flat_map(|slice| slice.endpoints.iter().flatten());
            let ends = |it: &Endpoint| it.conditions.as_ref().and_then(|it| it.terminating) == Some(true);
            let not_yet: Vec<String> = endpoints
                .filter(|it| !ends(it))
                .map(|it| format!("{:?} does not end", it.addresses))
                .collect();
            Ok(Look::unless(&not_yet))
        })
        .await?;
    scene.settled().await?;
    // A controller that is late has yet to take in that one pod is ending, and then that both are.
    scene
        .until("the last pods receive traffic", async || {
            let state = scene.azure.state().await?.to_string();
            let is_there = state.contains(&format!("\"{address}\""));
            Ok(if is_there { Look::Yes(()) } else { Look::NotYet(format!("{address} is not mapped")) })
        })
        .await?;
    // With one that is ready the ending ones do not count any more.
    scene.meanwhile(scene.pods_from("web", 3, 1, &["a"])).await?;
    scene.settled().await?;
    scene
        .meanwhile(async {
            scene.pod_ended("web-1").await?;
            scene.pod_ended("web-2").await
        })
        .await?;
    scene.settled().await
}

async fn node_gone(scene: &Scene) -> Result<()> {
    scene.nodes(&["a", "b"]).await?;
    scene.pods("web", 4, &["a", "b"]).await?;
    scene.service("web").port(80, 8080).selecting("web").make().await?;
    scene.settled().await?;
    scene.meanwhile(scene.delete_node("b")).await?;
    scene.settled().await?;
    // Its pods are noticed to be dead much later.
    scene
        .meanwhile(async {
            scene.delete_pod("web-1").await?;
            scene.delete_pod("web-3").await
        })
        .await?;
    scene.settled().await
}

async fn node_moves(scene: &Scene) -> Result<()> {
    scene.nodes(&["a", "b"]).await?;
    scene.pods("web", 4, &["a", "b"]).await?;
    scene.service("web").port(80, 8080).selecting("web").make().await?;
    scene.settled().await?;
    scene.meanwhile(scene.move_node("a", &["10.0.7.7"])).await?;
    scene.settled().await?;
    scene.meanwhile(scene.move_node("a", &["10.0.7.7", "10.0.2.2"])).await?;
    scene.settled().await?;
    let former = scene.ips_of_node("b").first().cloned().context("node b has an address")?;
    // One takes over the address that the other has just given up.
    scene
        .meanwhile(async {
            scene.move_node("b", &["10.0.8.8"]).await?;
            scene.move_node("a", &[&former]).await
        })
        .await?;
    scene.settled().await
}

async fn late_node(scene: &Scene) -> Result<()> {
    scene.node("a").await?;
    scene
        .meanwhile(async {
            scene.pods("web", 3, &["a", "late"]).await?;
            scene.service("web").port(80, 8080).selecting("web").make().await?;
            // The slice controller waits for a node itself; this is what another one does.
            scene.service("direct").port(80, 8080).make().await?;
            let slice = scene.slice("direct-1").of("direct").port("tcp-80", 8080);
            slice.endpoint("10.9.0.1", "a").endpoint("10.9.0.2", "late").write().await?;
            // A pod of an egress says itself where it is, for as long as nobody else does.
            scene.pod("blue-1").egress("blue").on("late").host_ips(&["10.0.9.9"]).run().await
        })
        .await?;
    scene.settled().await?;
    scene.meanwhile(scene.node_at("late", &["10.0.9.8"])).await?;
    scene.settled().await
}

async fn ipv6_service(scene: &Scene) -> Result<()> {
    scene.node_at("a", &["fd00::5"]).await?;
    scene.node_at("b", &["fd00::6"]).await?;
    scene
        .meanwhile(async {
            scene.pod("web-1").of("web").on("a").at(&["fd00:1::1"]).run().await?;
            scene.pod("web-2").of("web").on("b").at(&["fd00:1::2"]).run().await?;
            scene.service("web").port(80, 8080).selecting("web").ipv6().make().await
        })
        .await?;
    scene.settled().await?;
    let ip = scene.ip_of("web").await?;
    ensure!(ip.contains(':'), "a Service of IPv6 got the IP {ip}");
    scene.meanwhile(scene.delete_pod("web-2")).await?;
    scene.settled().await
}

async fn dual_stack_nodes(scene: &Scene) -> Result<()> {
    scene.node_at("a", &["10.0.0.5", "fd00::5"]).await?;
    scene.node_at("b", &["fd00::6", "10.0.0.6"]).await?;
    scene
        .meanwhile(async {
            scene.pod("web-1").of("web").on("a").at(&["10.1.0.1", "fd00:1::1"]).run().await?;
            scene.pod("web-2").of("web").on("b").at(&["10.1.0.2", "fd00:1::2"]).run().await?;
            scene.service("four").port(80, 8080).selecting("web").make().await?;
            scene.service("six").port(80, 8080).selecting("web").ipv6().make().await?;
            let blue = scene.pod("blue-1").egress("blue").on("a");
            blue.at(&["10.1.0.3", "fd00:1:0::3"]).run().await
        })
        .await?;
    scene.settled().await?;
    // The node loses one family: the addresses of that family have no place any more.
    scene.meanwhile(scene.move_node("a", &["10.0.0.5"])).await?;
    scene.settled().await?;
    scene.meanwhile(scene.move_node("a", &["10.0.0.5", "fd00::0:7"])).await?;
    scene.settled().await
}
