//! Ports of Services: edits, protocols, and names that the pods explain.

use anyhow::{Result, ensure};

use crate::scene::{Look, Scene};
use crate::story::Story;
use crate::world::ports::{named_port, tcp, udp};

/// The annotation for the idle timeout.
const IDLE_TIMEOUT: &str = "service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout";

/// The stories of this theme.
pub(crate) const STORIES: &[Story] = &[
    Story::new("port-edit", "a Service gets another port, then another target", |scene| {
        Box::pin(port_edit(scene))
    }),
    Story::new("protocol-edit", "a port changes from TCP to UDP and back", |scene| {
        Box::pin(protocol_edit(scene))
    }),
    Story::new("idle-timeout-edit", "the idle timeout is set, changed and taken away", |scene| {
        Box::pin(idle_timeout_edit(scene))
    }),
    Story::new("ports-added-and-removed", "ports come to a Service and go", |scene| {
        Box::pin(ports_added_and_removed(scene))
    }),
    Story::new("udp-service", "a Service of UDP only", |scene| Box::pin(udp_service(scene))),
    Story::new("many-ports", "a Service of twenty ports of both protocols", |scene| {
        Box::pin(many_ports(scene))
    }),
    Story::new("tcp-and-udp-on-one-port", "TCP and UDP on port 53", |scene| {
        Box::pin(tcp_and_udp_on_one_port(scene))
    }),
    Story::new(
        "named-ports",
        "a target port by name: unknown at first, then agreed on, kept through a rollout, agreed anew",
        |scene| Box::pin(named_ports(scene)),
    ),
];

/// A Service with two pods on a node, served.
async fn served(scene: &Scene) -> Result<String> {
    scene.node("a").await?;
    scene.pods("web", 2, &["a"]).await?;
    let uid = scene.service("web").port(80, 8080).selecting("web").make().await?;
    scene.settled().await?;
    Ok(uid)
}

async fn port_edit(scene: &Scene) -> Result<()> {
    let uid = served(scene).await?;
    let ip = scene.ip_of("web").await?;
    let mark = scene.mark_writes().await?;
    scene.meanwhile(scene.set_ports("web", &[tcp(443, 8080)])).await?;
    scene.settled().await?;
    scene.meanwhile(scene.set_ports("web", &[tcp(443, 8443)])).await?;
    scene.settled().await?;
    ensure!(scene.ip_of("web").await? == ip, "the IP changed with the ports");
    // A load balancer is written and nothing else: not its public IP, not its registration.
    for write in scene.writes_since(mark).await?.iter().filter(|it| it.is_about(&uid)) {
        let is_the_balancer = write.method == "PUT" && write.kind.as_deref() == Some("loadBalancers");
        ensure!(is_the_balancer, "an edit of ports is one PUT of the load balancer, and no {}", write.line());
    }
    Ok(())
}

async fn protocol_edit(scene: &Scene) -> Result<()> {
    served(scene).await?;
    scene.meanwhile(scene.set_ports("web", &[udp(80, 8080)])).await?;
    scene.settled().await?;
    scene.meanwhile(scene.set_ports("web", &[tcp(80, 8080)])).await?;
    scene.settled().await
}

async fn idle_timeout_edit(scene: &Scene) -> Result<()> {
    served(scene).await?;
    for minutes in [Some("30"), Some("4"), None] {
        scene.meanwhile(scene.annotate("web", IDLE_TIMEOUT, minutes)).await?;
        scene.settled().await?;
    }
    Ok(())
}

async fn ports_added_and_removed(scene: &Scene) -> Result<()> {
    served(scene).await?;
    let ip = scene.ip_of("web").await?;
    scene.meanwhile(scene.set_ports("web", &[tcp(80, 8080), tcp(443, 8443), udp(443, 8443)])).await?;
    scene.settled().await?;
    scene.meanwhile(scene.set_ports("web", &[tcp(443, 8443)])).await?;
    scene.settled().await?;
    ensure!(scene.ip_of("web").await? == ip, "the IP changed with the ports");
    Ok(())
}

async fn udp_service(scene: &Scene) -> Result<()> {
    scene.node("a").await?;
    scene
        .meanwhile(async {
            scene.pods("dns", 2, &["a"]).await?;
            scene.service("dns").udp(53, 5353).selecting("dns").make().await
        })
        .await?;
    scene.settled().await
}

async fn many_ports(scene: &Scene) -> Result<()> {
    scene.node("a").await?;
    scene
        .meanwhile(async {
            scene.pods("web", 3, &["a"]).await?;
            let mut service = scene.service("web").selecting("web");
            for port in 1000..1010 {
                service = service.port(port, port + 1000).udp(port, port + 1000);
            }
            service.make().await
        })
        .await?;
    scene.settled().await
}

async fn tcp_and_udp_on_one_port(scene: &Scene) -> Result<()> {
    scene.node("a").await?;
    scene
        .meanwhile(async {
            scene.pods("dns", 2, &["a"]).await?;
            scene.service("dns").port(53, 5353).udp(53, 5353).selecting("dns").make().await
        })
        .await?;
    scene.settled().await?;
    scene.meanwhile(scene.set_ports("dns", &[udp(53, 5353)])).await?;
    scene.settled().await
}

async fn named_ports(scene: &Scene) -> Result<()> {
    scene.node("a").await?;
    let old = |name: &str| scene.pod(name).of("web").on("a").container_port("http", 8080);
    let new = |name: &str| scene.pod(name).of("web").on("a").container_port("http", 9090);
    // Nobody says yet which port "http" is: no load balancer, and a condition that says why.
    let uid = scene
        .meanwhile(async {
            let port = named_port("web", "TCP", 80, "http");
            scene.service("web").port_as(port).selecting("web").make().await
        })
        .await?;
    scene.settled().await?;
    scene.no_write_about(scene.start_of_writes(), &uid).await?;
    scene
        .meanwhile(async {
            old("web-1").run().await?;
            old("web-2").run().await
        })
        .await?;
    scene.settled().await?;
    // In the middle of a rollout the endpoints disagree: the load balancer keeps the port it has.
    scene.keeps_its_rules("web").await?;
    scene.meanwhile(new("web-3").run()).await?;
    scene.settled().await?;
    scene.except(|it| it.frozen.clear());
    scene
        .meanwhile(async {
            scene.delete_pod("web-1").await?;
            scene.delete_pod("web-2").await
        })
        .await?;
    scene.settled().await?;
    scene
        .until("the load balancer leads to port 9090", async || {
            let state = scene.azure.state().await?;
            let text = state["loadBalancers"].to_string();
            Ok(if text.contains("9090") { Look::Yes(()) } else { Look::NotYet(text) })
        })
        .await
}
