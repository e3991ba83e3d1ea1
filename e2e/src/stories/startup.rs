//! Starts: with nothing there, with everything there, with another configuration than before.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::azure::{GATEWAY, gateway_id, network_id, resource_id, subnet_id};
use crate::scene::Scene;
use crate::story::Story;

/// The stories of this theme.
pub(crate) const STORIES: &[Story] = &[
    Story::new(
        "changed-cluster-id",
        "started with another cluster id, the controller refuses the gateway and touches nothing",
        |scene| Box::pin(changed_cluster_id(scene)),
    ),
    Story::new(
        "changed-class",
        "started with another class, the controller brakes before it tears everything down",
        |scene| Box::pin(changed_class(scene)),
    ),
    Story::new("missing-gateway", "no gateway: said aloud with `verify`, made with `ensure`", |scene| {
        Box::pin(missing_gateway(scene))
    })
    .with(|setting| {
        setting.key("gateway.mode", "verify");
    }),
    Story::new(
        "unattached-subnet",
        "a subnet that somebody detached is attached, and kept otherwise",
        |scene| Box::pin(unattached_subnet(scene)),
    )
    .with(|setting| {
        setting.key("drift.interval", "3m");
    }),
    Story::new("default-outbound", "left alone with `leave`, made with `ensure`, never deleted", |scene| {
        Box::pin(default_outbound(scene))
    })
    .with(|setting| {
        setting.key("defaultOutbound", "leave");
    }),
    Story::new(
        "foreign-default-outbound",
        "a default outbound service of others stays the default",
        |scene| Box::pin(foreign_default_outbound(scene)),
    )
    .with(|setting| setting.starts_running = false),
    Story::new(
        "upgrade-without-a-write",
        "a new process finds everything in place and writes nothing",
        |scene| Box::pin(upgrade_without_a_write(scene)),
    ),
];

/// More Services than the brake lets go at once.
async fn eight_services(scene: &Scene) -> Result<()> {
    scene.nodes(&["a", "b"]).await?;
    scene.pods("web", 4, &["a", "b"]).await?;
    scene.egress_pods("blue", 1, 2, &["a"]).await?;
    scene.tell("makes eight services");
    for number in 1..=8 {
        scene.service(&format!("web-{number}")).port(80, 8080).selecting("web").quiet().make().await?;
    }
    scene.settled().await
}

async fn changed_cluster_id(scene: &Scene) -> Result<()> {
    eight_services(scene).await?;
    let mark = scene.mark_writes().await?;
    scene.restart_with("cluster id \"other\"", |it| it.cluster_id = "other".to_string()).await?;
    let label = json!({"metadata": {"labels": {"team": "shop"}}});
    scene.meanwhile(scene.edit_service("web-1", "gets a label", label)).await?;
    scene.warned_somewhere(&["GatewayUnavailable"]).await?;
    scene.no_write_since(mark).await?;
    scene.restart_with("its own cluster id", |_| {}).await?;
    scene.settled().await?;
    scene.no_write_since(mark).await
}

async fn changed_class(scene: &Scene) -> Result<()> {
    eight_services(scene).await?;
    let mark = scene.mark_writes().await?;
    scene.restart_with("another class", |it| it.class = Some("example.com/other".to_string())).await?;
    let label = json!({"metadata": {"labels": {"team": "shop"}}});
    scene.meanwhile(scene.edit_service("web-1", "gets a label", label)).await?;
    scene.warned_somewhere(&["MassDeletionHeld"]).await?;
    scene.no_write_since(mark).await?;
    scene.restart_with("its own class", |_| {}).await?;
    scene.settled().await?;
    scene.no_write_since(mark).await
}

async fn missing_gateway(scene: &Scene) -> Result<()> {
    scene.node("a").await?;
    scene
        .meanwhile(async {
            scene.pods("web", 2, &["a"]).await?;
            scene.service("web").port(80, 8080).selecting("web").make().await
        })
        .await?;
    scene.warned_somewhere(&["GatewayUnavailable"]).await?;
    scene.no_write_since(scene.start_of_writes()).await?;
    scene
        .restart_with("leave to make the gateway", |it| {
            it.key("gateway.mode", "ensure");
        })
        .await?;
    scene.settled().await?;
    // From then on it is there, so that `verify` has nothing to say.
    scene.meanwhile(scene.pods_from("web", 3, 1, &["a"])).await?;
    scene.settled().await
}

async fn unattached_subnet(scene: &Scene) -> Result<()> {
    scene.node("a").await?;
    scene.pods("web", 2, &["a"]).await?;
    let body = json!({"properties": {
        "addressPrefix": "10.0.0.0/16",
        "serviceEndpoints": [{"service": "Microsoft.Storage"}],
        "privateEndpointNetworkPolicies": "Enabled",
    }});
    scene.service("web").port(80, 8080).selecting("web").make().await?;
    scene.settled().await?;
    scene
        .meanwhile(async {
            scene.tell("somebody writes the subnet anew, without the gateway");
            scene.azure.tamper(json!({"do": "put", "id": subnet_id(), "body": body})).await
        })
        .await?;
    scene.settled().await?;
    let now = scene.azure.resource(&subnet_id()).await?;
    ensure!(
        now["properties"]["serviceEndpoints"][0]["service"] == "Microsoft.Storage",
        "the subnet lost what was in it: {now}"
    );
    scene.meanwhile(scene.azure.tamper(json!({"do": "detachSubnet", "id": subnet_id()}))).await?;
    scene.settled().await
}

async fn default_outbound(scene: &Scene) -> Result<()> {
    scene.node("a").await?;
    scene.meanwhile(scene.egress_pods("blue", 1, 1, &["a"])).await?;
    scene.settled().await?;
    scene
        .restart_with("leave to make a default", |it| {
            it.key("defaultOutbound", "ensure");
        })
        .await?;
    scene.agree(|it| it.default_outbound = true);
    scene.settled().await?;
    // Switching it off again deletes nothing.
    let mark = scene.mark_writes().await?;
    scene.restart_with("the default left as it is", |_| {}).await?;
    let fence = scene.fence("fence").await?;
    scene.settled().await?;
    scene.writes_only_about(mark, &[&fence]).await
}

async fn foreign_default_outbound(scene: &Scene) -> Result<()> {
    let location = "westeurope";
    let gateway = json!({
        "location": location,
        "sku": {"name": "Standard", "tier": "Regional"},
        "properties": {
            "virtualNetwork": {"id": network_id()},
            "routeTargetAddress": {"privateIPAllocationMethod": "Dynamic", "subnet": {"id": subnet_id()}},
        },
        "tags": {"sluice-cluster": scene.setting.cluster_id},
    });
    scene.tell(format!("there is a gateway {GATEWAY} of ours, whose default outbound is somebody else's"));
    scene.azure.tamper(json!({"do": "put", "id": gateway_id(), "body": gateway})).await?;
    let ip = json!({
        "location": location,
        "sku": {"name": "StandardV2"},
        "properties": {"publicIPAllocationMethod": "Static", "publicIPAddressVersion": "IPv4"},
    });
    let ip = scene.foreign("publicIPAddresses", "corporate-ip", ip).await?;
    let nat = json!({
        "location": location,
        "sku": {"name": "StandardV2"},
        "properties": {"serviceGateway": {"id": gateway_id()}, "publicIpAddresses": [{"id": ip}]},
    });
    let nat = scene.foreign("natGateways", "corporate", nat).await?;
    let service = json!({
        "name": "corporate", "serviceType": "Outbound", "isDefault": true,
        "publicNatGatewayId": resource_id("natGateways", "corporate"),
    });
    scene.azure.tamper(json!({"do": "register", "gateway": gateway_id(), "service": service})).await?;
    for id in [&ip, &nat] {
        scene.keep_foreign(id).await?;
    }
    scene.agree(|it| it.default_outbound = false);
    scene.except(|it| {
        it.foreign_registrations.insert("corporate".to_string());
    });
    scene.node("a").await?;
    scene.controller().start()?;
    scene.meanwhile(scene.egress_pods("blue", 1, 2, &["a"])).await?;
    scene.settled().await?;
    let state = scene.azure.state().await?;
    let is_default = state["serviceGateways"][0]["services"].to_string().contains("\"isDefault\":true");
    ensure!(is_default, "the default outbound service of others is gone");
    Ok(())
}

async fn upgrade_without_a_write(scene: &Scene) -> Result<()> {
    eight_services(scene).await?;
    scene.egress_pods("green", 1, 3, &["a", "b"]).await?;
    scene.settled().await?;
    let mark = scene.mark_writes().await?;
    for _ in 0..2 {
        scene.restart_with("another version", |_| {}).await?;
        // Pods that make no difference come and go, so that the other two ways have something to hit.
        scene.meanwhile(scene.pods("bystander", 2, &["a"])).await?;
        scene.delete_pods("bystander", 1, 2).await?;
    }
    let fence = scene.fence("fence").await?;
    scene.settled().await?;
    scene.writes_only_about(mark, &[&fence]).await
}
