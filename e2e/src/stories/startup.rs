//! Starts: with nothing there, with everything there, with another configuration than before.

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use crate::azure::{Request, gateway_id, resource_id, subnet_id};
use crate::judge::wanted::lower;
use crate::scene::{Before, Look, Mark, Scene};
use crate::story::{Story, Variant};

/// The stories of this theme.
pub(crate) const STORIES: &[Story] = &[
    Story::new(
        "changed-cluster-id",
        "started with another cluster id, the controller refuses the gateway and touches nothing",
        |scene| Box::pin(changed_cluster_id(scene)),
    ),
    Story::new(
        "changed-class",
        "started with another class, the controller holds the mass deletion of what it no longer serves",
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
    .with(super::tamper::looks_often),
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
    Story::new(
        "leftovers",
        "a start finds orphans, half of a deletion and finalizers with nothing behind them",
        |scene| Box::pin(leftovers(scene)),
    ),
    Story::new(
        "inherited-finalizers",
        "Services that only finalizers of other controllers keep are released, unless a public IP is tagged for them",
        |scene| Box::pin(inherited_finalizers(scene)),
    )
    .with(|setting| setting.class = None),
];

/// More Services than the mass-deletion guard lets go at once.
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

/// The reasons in the conditions of a Service.
async fn reasons(scene: &Scene, name: &str) -> Result<Vec<String>> {
    let service = scene.service_object(name).await?.with_context(|| format!("{name} is not there"))?;
    let conditions = service.status.and_then(|it| it.conditions).unwrap_or_default();
    Ok(conditions.into_iter().map(|it| it.reason).collect())
}

/// What the eight have published, all of them.
async fn published(scene: &Scene) -> Result<Vec<String>> {
    let mut ips = Vec::new();
    for number in 1..=8 {
        ips.push(scene.ip_of(&format!("web-{number}")).await?);
    }
    Ok(ips)
}

async fn changed_cluster_id(scene: &Scene) -> Result<()> {
    eight_services(scene).await?;
    let ips = published(scene).await?;
    let mark = scene.mark_writes().await?;
    scene.restart_with("cluster id \"other\"", |it| it.cluster_id = "other".to_string()).await?;
    let label = json!({"metadata": {"labels": {"team": "shop"}}});
    scene.meanwhile(scene.edit_service("web-1", "gets a label", label)).await?;
    scene.warned_somewhere(&["GatewayUnavailable", "belongs to cluster e2e"]).await?;
    // Whoever comes now is told why nothing happens, by the process that runs now.
    scene.service("late").port(80, 8080).selecting("web").make().await?;
    scene
        .until("the conditions of late say why", async || {
            let says = reasons(scene, "late").await?;
            let is = says.iter().any(|it| it == "GatewayUnavailable");
            Ok(if is { Look::Yes(()) } else { Look::NotYet(format!("they say {says:?}")) })
        })
        .await?;
    scene.no_write_since(mark).await?;
    ensure!(published(scene).await? == ips, "published IPs went with the cluster id");
    scene.delete_service("late").await?;
    scene.restart_with("its own cluster id", |_| {}).await?;
    scene.service_gone("late").await?;
    scene.settled().await?;
    ensure!(published(scene).await? == ips, "published IPs went with the cluster id");
    scene.no_write_since(mark).await
}

async fn changed_class(scene: &Scene) -> Result<()> {
    eight_services(scene).await?;
    let mut ips = published(scene).await?;
    let mark = scene.mark_writes().await?;
    scene.restart_with("another class", |it| it.class = Some("example.com/other".to_string())).await?;
    let label = json!({"metadata": {"labels": {"team": "shop"}}});
    scene.meanwhile(scene.edit_service("web-1", "gets a label", label)).await?;
    scene.warned_somewhere(&["MassDeletionHeld"]).await?;
    // By its own deletion one of them may go, while the others are held.
    let gone = scene.uid_of("web-8").await?;
    scene.delete_service("web-8").await?;
    scene.service_gone("web-8").await?;
    scene.service("web-8").port(80, 8080).selecting("web").make().await?;
    only_resources_of(scene, mark, &[&gone]).await?;
    for number in 1..=7 {
        let says = reasons(scene, &format!("web-{number}")).await?;
        ensure!(says.iter().any(|it| it == "MassDeletionHeld"), "web-{number} says {says:?}");
    }
    scene.plan_is_held("MassDeletionHeld", 7).await?;
    scene.restart_with("its own class", |_| {}).await?;
    scene.settled().await?;
    ips.truncate(7);
    ensure!(published(scene).await?[..7] == ips[..], "published IPs went with the class");
    let back = scene.uid_of("web-8").await?;
    only_resources_of(scene, mark, &[&gone, &back]).await
}

/// Like [`Scene::writes_only_about`]; but an address that loses one of its services names the others.
async fn only_resources_of(scene: &Scene, mark: Mark, names: &[&str]) -> Result<()> {
    let writes = scene.writes_since(mark).await?;
    let is_strange = |it: &&Request| {
        !it.path.ends_with("/updateAddressLocations") && !names.iter().any(|name| it.is_about(name))
    };
    let lines: Vec<String> = writes.iter().filter(is_strange).map(Request::line).collect();
    ensure!(
        lines.is_empty(),
        "there should have been no other write, and there were\n  {}",
        lines.join("\n  ")
    );
    Ok(())
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
    scene.our_gateway_with_egress_of_others().await?;
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
    let controller = scene.controller();
    for _ in 0..2 {
        let before = Before::now(scene).await?;
        scene.tell("the controller is replaced by another version of it");
        if scene.variant == Variant::Killed {
            scene.kill_controller().await?;
        } else {
            controller.stop().await?;
        }
        // What makes no difference may happen meanwhile.
        scene.pods("bystander", 2, &["a"]).await?;
        controller.start()?;
        before.only_compared(scene, None).await?;
        scene.delete_pods("bystander", 1, 2).await?;
    }
    let label = json!({"metadata": {"labels": {"team": "shop"}}});
    scene.meanwhile(scene.edit_service("web-1", "gets a label", label)).await?;
    let fence = scene.fence("fence").await?;
    scene.settled().await?;
    scene.writes_only_about(mark, &[&fence]).await
}

async fn leftovers(scene: &Scene) -> Result<()> {
    scene.nodes(&["a", "b"]).await?;
    scene.pods("web", 3, &["a", "b"]).await?;
    scene.egress_pods("blue", 1, 1, &["a"]).await?;
    for name in ["kept", "torn", "half", "was"] {
        scene.service(name).port(80, 8080).selecting("web").make().await?;
    }
    scene.settled().await?;
    let ip = scene.ip_of("kept").await?;
    let half = scene.uid_of("half").await?;
    scene.controller().stop().await?;
    scene.tell("while nobody looks:");
    // Nobody in Kubernetes knows of it any more, and all of it is in Azure.
    scene.without_finalizers("torn").await?;
    scene.delete_service("torn").await?;
    // Half of it is gone from Azure, and the other half waits for the deletion.
    scene.azure.tamper(json!({"do": "unregister", "gateway": gateway_id(), "name": half})).await?;
    scene.azure.tamper(json!({"do": "delete", "id": resource_id("loadBalancers", &half)})).await?;
    scene.delete_service("half").await?;
    scene.make_cluster_ip("was").await?;
    scene.delete_pods("blue", 1, 1).await?;
    // A start that died after its first step left this.
    let lone = "0a1b2c3d-0000-4000-8000-00000000000f";
    scene.asked_for(lone);
    scene
        .azure
        .tamper(json!({
            "do": "put",
            "id": resource_id("publicIPAddresses", &format!("{lone}-pip")),
            "body": {
                "location": "westeurope",
                "sku": {"name": "StandardV2"},
                "properties": {"publicIPAllocationMethod": "Static", "publicIPAddressVersion": "IPv4"},
                "tags": {
                    "sluice-cluster": scene.setting.cluster_id,
                    "sluice-identity": lone,
                    "sluice-owner": "service/shop/lone",
                },
            },
        }))
        .await?;
    // A finalizer with nothing behind it.
    scene.stuck_service("stuck").await?;
    scene.controller().start()?;
    scene.meanwhile(scene.pods_from("web", 4, 1, &["a"])).await?;
    scene.settled().await?;
    for name in ["half", "stuck"] {
        scene.service_gone(name).await?;
    }
    ensure!(scene.ip_of("kept").await? == ip, "the IP of one that was always there changed");
    Ok(())
}

async fn inherited_finalizers(scene: &Scene) -> Result<()> {
    scene.node("a").await?;
    scene.pods("web", 1, &["a"]).await?;
    scene.service("kept").port(80, 8080).selecting("web").make().await?;
    scene.settled().await?;
    scene.controller().stop().await?;
    scene.tell("while no controller runs:");
    for name in ["deleted", "was", "tagged"] {
        scene.inherited_service(name).await?;
    }
    let ip = resource_id("publicIPAddresses", "kubernetes-tagged");
    scene.tell("another controller has a public IP for service tagged");
    scene
        .azure
        .tamper(json!({
            "do": "put",
            "id": ip,
            "body": {
                "location": "westeurope",
                "sku": {"name": "StandardV2"},
                "properties": {"publicIPAllocationMethod": "Static", "publicIPAddressVersion": "IPv4"},
                "tags": {"k8s-azure-service": format!("{}/tagged", scene.namespace)},
            },
        }))
        .await?;
    scene.except(|it| {
        it.foreign.insert(lower(&ip));
    });
    scene.delete_service("deleted").await?;
    scene.delete_service("tagged").await?;
    scene.make_cluster_ip("was").await?;
    scene.controller().start()?;
    scene.meanwhile(scene.pods_from("web", 2, 1, &["a"])).await?;
    scene.service_gone("deleted").await?;
    scene
        .until("service was has no finalizer", async || {
            let finalizers = finalizers(scene, "was").await?;
            let is_free = finalizers.is_empty();
            Ok(if is_free { Look::Yes(()) } else { Look::NotYet(format!("it has {finalizers:?}")) })
        })
        .await?;
    scene.warned("Service", "tagged", &["Conflict", "kubernetes-tagged", "k8s-azure-service"]).await?;
    scene
        .until("the conditions of tagged say why", async || {
            let says = reasons(scene, "tagged").await?;
            let is = says.iter().any(|it| it == "Conflict");
            Ok(if is { Look::Yes(()) } else { Look::NotYet(format!("they say {says:?}")) })
        })
        .await?;
    let held = finalizers(scene, "tagged").await?;
    ensure!(held.len() == 2, "finalizers of other controllers went although a public IP is there: {held:?}");
    scene.tell("somebody deletes that public IP");
    scene.azure.tamper(json!({"do": "delete", "id": ip})).await?;
    scene.service_gone("tagged").await?;
    scene.settled().await
}

/// The finalizers of a Service.
async fn finalizers(scene: &Scene, name: &str) -> Result<Vec<String>> {
    let service = scene.service_object(name).await?.with_context(|| format!("{name} is not there"))?;
    Ok(service.metadata.finalizers.unwrap_or_default())
}
