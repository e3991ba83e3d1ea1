//! Somebody else in the subscription: what they take away comes back, what is theirs stays as it is.

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use crate::azure::{Request, gateway_id, resource_id, resources_of};
use crate::scene::Scene;
use crate::setting::Setting;
use crate::story::Story;
use crate::world::ports::tcp;

/// Looks for drift as often as can be, instead of twice a minute.
pub(super) fn looks_often(setting: &mut Setting) {
    setting.key("drift.interval", "10s");
}

/// The stories of this theme.
pub(crate) const STORIES: &[Story] = &[
    Story::new("tamper-load-balancer", "somebody deletes a load balancer, and edits another", |scene| {
        Box::pin(load_balancer(scene))
    })
    .with(looks_often),
    Story::new(
        "tamper-public-ip",
        "somebody deletes a public IP: a new one, a corrected status and a warning",
        |scene| Box::pin(public_ip(scene)),
    )
    .with(looks_often),
    Story::new("tamper-nat-gateway", "somebody deletes a NAT gateway, and the default one", |scene| {
        Box::pin(nat_gateway(scene))
    })
    .with(looks_often),
    Story::new(
        "tamper-tags",
        "somebody puts tags of their own on what is ours: no write, and no write loses them",
        |scene| Box::pin(tags(scene)),
    ),
    Story::new(
        "wiped-tags",
        "load balancers and public IPs that lost all tags get them back, and are deleted with their Services",
        |scene| Box::pin(wiped_tags(scene)),
    ),
    Story::new("tamper-registration", "somebody unregisters a Service and an egress", |scene| {
        Box::pin(registration(scene))
    })
    .with(looks_often),
    Story::new("tamper-address", "somebody takes an address away and adds a strange one", |scene| {
        Box::pin(address(scene))
    })
    .with(looks_often),
    Story::new("tamper-gateway", "somebody deletes the whole gateway", |scene| Box::pin(gateway(scene)))
        .with(looks_often),
    Story::new(
        "tamper-status",
        "somebody wipes the status of a live Service: the same IP is back, and nobody is warned",
        |scene| Box::pin(status(scene)),
    ),
    Story::new(
        "foreign-names",
        "NAT gateways and public IPs of others that are named like ours stay untouched",
        |scene| Box::pin(foreign_names(scene)),
    ),
];

/// Two Services and an egress, served.
async fn served(scene: &Scene) -> Result<(String, String)> {
    scene.nodes(&["a", "b"]).await?;
    scene.pods("web", 3, &["a", "b"]).await?;
    scene.egress_pods("blue", 1, 2, &["a", "b"]).await?;
    let web = scene.service("web").port(80, 8080).selecting("web").make().await?;
    let shop = scene.service("shop").port(443, 8443).selecting("web").make().await?;
    scene.settled().await?;
    Ok((web, shop))
}

async fn load_balancer(scene: &Scene) -> Result<()> {
    let (web, shop) = served(scene).await?;
    let (ip, other) = (scene.ip_of("web").await?, scene.ip_of("shop").await?);
    scene
        .meanwhile(async {
            scene.tell("somebody deletes the load balancer of web and edits that of shop");
            scene.azure.tamper(json!({"do": "delete", "id": resource_id("loadBalancers", &web)})).await?;
            let rules = json!([{"protocol": "Udp", "frontendPort": 7, "backendPort": 7}]);
            let id = resource_id("loadBalancers", &shop);
            scene.azure.tamper(json!({"do": "editRules", "id": id, "rules": rules})).await
        })
        .await?;
    scene.settled().await?;
    ensure!(scene.ip_of("web").await? == ip, "the public IP was there all the time, and the IP changed");
    ensure!(scene.ip_of("shop").await? == other, "the public IP was there all the time, and the IP changed");
    Ok(())
}

async fn public_ip(scene: &Scene) -> Result<()> {
    let (web, _) = served(scene).await?;
    let ip = scene.ip_of("web").await?;
    scene
        .meanwhile(async {
            scene.tell("somebody deletes the public IP of web and that of egress blue");
            let id = resource_id("publicIPAddresses", &format!("{web}-pip"));
            scene.azure.tamper(json!({"do": "delete", "id": id})).await?;
            let id = resource_id("publicIPAddresses", "blue-pip");
            scene.azure.tamper(json!({"do": "delete", "id": id})).await
        })
        .await?;
    scene.settled().await?;
    let now = scene.ip_of("web").await?;
    ensure!(now != ip, "the emulator gave the same IP twice, so this shows nothing");
    scene.warned("Service", "web", &[&ip]).await
}

async fn nat_gateway(scene: &Scene) -> Result<()> {
    served(scene).await?;
    let address = outgoing(scene, "blue").await?;
    scene
        .meanwhile(async {
            scene.tell("somebody deletes the NAT gateways blue and default-natgw");
            for name in ["blue", "default-natgw"] {
                let id = resource_id("natGateways", name);
                scene.azure.tamper(json!({"do": "delete", "id": id})).await?;
            }
            Ok(())
        })
        .await?;
    scene.settled().await?;
    ensure!(
        outgoing(scene, "blue").await? == address,
        "the public IP was there all the time, and it changed"
    );
    Ok(())
}

/// The address that an egress goes out by.
async fn outgoing(scene: &Scene, egress: &str) -> Result<String> {
    let ip = scene.azure.resource(&resource_id("publicIPAddresses", &format!("{egress}-pip"))).await?;
    ip["ipAddress"]
        .as_str()
        .or(ip["properties"]["ipAddress"].as_str())
        .map(str::to_string)
        .with_context(|| format!("{egress} has no address: {ip}"))
}

async fn tags(scene: &Scene) -> Result<()> {
    let (web, _) = served(scene).await?;
    let ids = [
        resource_id("loadBalancers", &web),
        resource_id("publicIPAddresses", &format!("{web}-pip")),
        resource_id("natGateways", "blue"),
        gateway_id(),
    ];
    let with_tags = |id: &String| {
        let id = id.clone();
        async move {
            let mut tags = scene.azure.resource(&id).await?["tags"].clone();
            tags["team"] = json!("network");
            scene.azure.tamper(json!({"do": "editTags", "id": id, "tags": tags})).await
        }
    };
    scene.except(|it| it.more_tags.push("team".to_string()));
    let mark = scene.mark_writes().await?;
    scene
        .meanwhile(async {
            scene
                .tell("somebody puts a tag on a load balancer, its public IP, a NAT gateway and the gateway");
            for id in &ids {
                with_tags(id).await?;
            }
            Ok(())
        })
        .await?;
    // A new leader sees them all, and finds nothing to repair.
    scene.restart_with("another version", |_| {}).await?;
    let fence = scene.fence("fence").await?;
    scene.settled().await?;
    scene.writes_only_about(mark, &[&fence]).await?;
    scene.meanwhile(scene.set_ports("web", &[tcp(81, 8081)])).await?;
    scene.settled().await?;
    for id in &ids {
        let now = scene.azure.resource(id).await?;
        ensure!(now["tags"]["team"] == "network", "{id} has lost a tag of others: {now}");
    }
    Ok(())
}

async fn wiped_tags(scene: &Scene) -> Result<()> {
    let (web, shop) = served(scene).await?;
    let ips = [scene.ip_of("web").await?, scene.ip_of("shop").await?];
    let ids: Vec<String> = [&web, &shop].into_iter().flat_map(|uid| resources_of(uid)).collect();
    scene.calm_down().await?;
    scene.controller().stop().await?;
    scene.tell("a policy removes all tags of the load balancers and their public IPs");
    for id in &ids {
        scene.azure.tamper(json!({"do": "editTags", "id": id, "tags": {}})).await?;
    }
    let mark = scene.mark_writes().await?;
    scene.controller().start()?;
    scene.until_tagged(&ids).await?;
    scene.settled().await?;
    let others: Vec<String> =
        scene.writes_since(mark).await?.iter().filter(|it| it.method != "PATCH").map(Request::line).collect();
    ensure!(others.is_empty(), "something else than tags was written: {others:?}");
    ensure!([scene.ip_of("web").await?, scene.ip_of("shop").await?] == ips, "an IP changed with the tags");
    scene.meanwhile(scene.delete_service("web")).await?;
    scene.service_gone("web").await?;
    scene.settled().await
}

async fn registration(scene: &Scene) -> Result<()> {
    let (web, _) = served(scene).await?;
    scene
        .meanwhile(async {
            scene.tell("somebody unregisters web and egress blue, with their addresses");
            for name in [web.as_str(), "blue"] {
                let deed = json!({"do": "unregister", "gateway": gateway_id(), "name": name});
                scene.azure.tamper(deed).await?;
            }
            Ok(())
        })
        .await?;
    scene.settled().await
}

async fn address(scene: &Scene) -> Result<()> {
    let (web, _) = served(scene).await?;
    let pod = scene.ip_of_pod("web-1").await?;
    // Pods are put on the nodes in turn, from the second on.
    let node = scene.ips_of_node("b")[0].clone();
    scene
        .meanwhile(async {
            scene.tell(format!("somebody takes {pod} away and adds 10.1.99.99"));
            let deed = json!({
                "do": "removeAddress", "gateway": gateway_id(), "location": node, "address": pod,
            });
            scene.azure.tamper(deed).await?;
            let deed = json!({
                "do": "addAddress", "gateway": gateway_id(), "location": node, "address": "10.1.99.99",
                "services": [web],
            });
            scene.azure.tamper(deed).await
        })
        .await?;
    scene.settled().await
}

async fn gateway(scene: &Scene) -> Result<()> {
    served(scene).await?;
    let ip = scene.ip_of("web").await?;
    scene
        .meanwhile(async {
            scene.tell("somebody deletes the service gateway");
            scene.azure.tamper(json!({"do": "delete", "id": gateway_id()})).await
        })
        .await?;
    scene.settled().await?;
    ensure!(scene.ip_of("web").await? == ip, "the public IP was there all the time, and the IP changed");
    Ok(())
}

async fn status(scene: &Scene) -> Result<()> {
    let (web, _) = served(scene).await?;
    let ip = scene.ip_of("web").await?;
    let mark = scene.mark_writes().await?;
    scene.wiped_by_others(&web);
    scene.meanwhile(scene.wipe_status("web")).await?;
    let fence = scene.fence("fence").await?;
    scene.settled().await?;
    ensure!(scene.ip_of("web").await? == ip, "the public IP was there all the time, and the IP changed");
    let warnings = scene.warnings("Service", "web").await?;
    ensure!(warnings.is_empty(), "nothing was lost, and its owner was warned: {warnings:?}");
    scene.writes_only_about(mark, &[&fence]).await
}

async fn foreign_names(scene: &Scene) -> Result<()> {
    scene.node("a").await?;
    let ip = json!({
        "location": "westeurope",
        "sku": {"name": "StandardV2"},
        "properties": {"publicIPAllocationMethod": "Static", "publicIPAddressVersion": "IPv4"},
        "tags": {"team": "network"},
    });
    // An egress name that is taken, an IP that would be a new egress's, and one of another cluster of ours.
    let id = scene.foreign("publicIPAddresses", "green-pip", ip.clone()).await?;
    let nat = json!({
        "location": "westeurope",
        "sku": {"name": "StandardV2"},
        "properties": {"publicIpAddresses": [{"id": id}]},
        "tags": {"team": "network"},
    });
    scene.foreign("natGateways", "green", nat).await?;
    scene.keep_foreign(&id).await?;
    let mut others = ip.clone();
    others["tags"] = json!({
        "sluice-cluster": "another", "sluice-identity": "red", "sluice-owner": "egress/red",
    });
    scene.foreign("publicIPAddresses", "red-pip", others).await?;
    scene.foreign("publicIPAddresses", "11111111-2222-4333-8444-555555555555-pip", ip).await?;
    scene.except(|it| {
        it.unserved.extend(["green".to_string(), "red".to_string()]);
    });
    scene
        .meanwhile(async {
            scene.egress_pods("green", 1, 1, &["a"]).await?;
            scene.egress_pods("red", 1, 1, &["a"]).await?;
            scene.egress_pods("blue", 1, 2, &["a"]).await
        })
        .await?;
    scene.settled().await?;
    // Whoever asked for them goes, and still nothing of others is cleared up.
    scene
        .meanwhile(async {
            scene.delete_pods("green", 1, 1).await?;
            scene.delete_pods("red", 1, 1).await
        })
        .await?;
    scene.settled().await
}
