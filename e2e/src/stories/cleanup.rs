//! Leaving: what `sluice cleanup` leaves to others.

use anyhow::{Context as _, Result, ensure};
use kube::ResourceExt as _;
use serde_json::{Value, json};

use crate::azure::{GATEWAY, Request, gateway_id, network_id, resources_of, subnet_id};
use crate::scene::{LOCATION, Mark, Scene};
use crate::story::{Story, Variant};

/// The stories of this theme.
pub(crate) const STORIES: &[Story] = &[Story::new(
    "there-and-back",
    "three Services in a gateway of others go to another controller and come back: nothing changes but tags",
    |scene| Box::pin(there_and_back(scene)),
)
.with(|setting| {
    setting.starts_running = false;
    setting.key("defaultOutbound", "leave");
})
.only(&[Variant::Plain], "`sluice cleanup` runs only while no controller does")];

/// Makes the Services those of another controller, for `sluice cleanup`.
const OTHER_CLASS: &str = "--set=sluice.loadBalancerClass=example.com/other";

async fn there_and_back(scene: &Scene) -> Result<()> {
    let theirs = gateway_of_others(scene).await?;
    scene.except(|it| {
        it.claimed_gateway = true;
        it.more_tags.push("team".to_string());
    });
    scene.nodes(&["a", "b"]).await?;
    scene.pods("web", 3, &["a", "b"]).await?;
    let mut services = Vec::new();
    for name in ["web-1", "web-2", "web-3"] {
        services.push((name, scene.service(name).port(80, 8080).selecting("web").make().await?));
    }
    scene.controller().start()?;
    scene.settled().await?;
    let mut ips = Vec::new();
    for (name, _) in &services {
        ips.push(scene.ip_of(name).await?);
    }
    let claimed = scene.azure.resource(&gateway_id()).await?;
    let tags = json!({"team": "network", "sluice-cluster": scene.setting.cluster_id});
    ensure!(claimed["tags"] == tags, "the gateway carries {}", claimed["tags"]);
    let (was, is) = (bare(&theirs), bare(&claimed));
    ensure!(was == is, "a gateway of others was claimed and is no longer\n  {was}\nbut\n  {is}");

    scene.controller().stop().await?;
    scene.quiet().await?;
    let (served, mark) = (scene.azure.state().await?, scene.mark_writes().await?);
    scene.tell("another controller takes the Services back: their class is not that of the configuration");
    let said = scene.cleanup(&[OTHER_CLASS]).await?;
    let left = scene.azure.state().await?;
    ensure!(!left.to_string().contains("\"sluice-"), "tags are left: {left}");
    only_tags_changed(scene, &served, mark, services.len()).await?;
    let gateway = scene.azure.resource(&gateway_id()).await?;
    ensure!(gateway["tags"] == theirs["tags"], "the gateway carries {}", gateway["tags"]);
    ensure!(bare(&gateway) == bare(&theirs), "the gateway is not what it was: {gateway}");
    let command = format!("az resource delete --ids {}", gateway_id());
    ensure!(said.contains(&command), "it does not say {command:?}:\n{said}");
    for ((name, uid), ip) in services.iter().zip(&ips) {
        ensure!(said.contains(&format!("load balancer {uid}")), "{name} is not listed:\n{said}");
        let service = scene.service_object(name).await?.with_context(|| format!("{name} is gone"))?;
        ensure!(service.finalizers().is_empty(), "{name} keeps {:?}", service.finalizers());
        ensure!(scene.ip_of(name).await? == *ip, "{name} lost its published IP");
    }

    scene.tell(
        "Sluice takes the Services over from the other controller, whose resources have no tags of Sluice",
    );
    let mark = scene.mark_writes().await?;
    scene.controller().start()?;
    let ids: Vec<String> = services.iter().flat_map(|(_, uid)| resources_of(uid)).collect();
    scene.until_tagged(&ids).await?;
    scene.settled().await?;
    only_tags_changed(scene, &left, mark, services.len()).await?;
    for ((name, _), ip) in services.iter().zip(&ips) {
        ensure!(scene.ip_of(name).await? == *ip, "{name} has another IP since it was taken over");
    }
    let (name, uid) = services.remove(0);
    scene.delete_service(name).await?;
    scene.service_gone(name).await?;
    scene.settled().await?;
    let state = scene.azure.state().await?.to_string();
    ensure!(!state.contains(&uid), "{name} was taken over and deleted, and something of it is left: {state}");

    scene.controller().stop().await?;
    scene.cleanup(&[OTHER_CLASS]).await?;
    others_delete(scene, &services).await?;
    scene.controller().start()?;
    scene.settled().await
}

/// Fails unless since the mark only tags were written: of the public IP and the load balancer of each Service, and of
/// the gateway.
async fn only_tags_changed(scene: &Scene, before: &Value, mark: Mark, services: usize) -> Result<()> {
    let (was, is) = (without_tags(before), without_tags(&scene.azure.state().await?));
    ensure!(was == is, "more than tags has changed:\n  {was}\nis now\n  {is}");
    let writes = scene.writes_since(mark).await?;
    let strange: Vec<String> =
        writes.iter().filter(|it| it.call.as_deref() != Some("PatchTags")).map(Request::line).collect();
    ensure!(strange.is_empty(), "other writes than of tags: {strange:?}");
    let lines: Vec<String> = writes.iter().map(Request::line).collect();
    ensure!(writes.len() == 2 * services + 1, "{} writes of tags: {lines:?}", writes.len());
    Ok(())
}

/// A gateway with much that we know nothing of, and a NAT gateway that works for it; as it is shown.
async fn gateway_of_others(scene: &Scene) -> Result<Value> {
    let network = json!({
        "location": LOCATION,
        "properties": {"addressSpace": {"addressPrefixes": ["10.0.0.0/8", "fd00::/48"]}},
    });
    scene.azure.tamper(json!({"do": "put", "id": network_id(), "body": network})).await?;
    let six = format!("{}/subnets/six", network_id());
    let body = json!({"properties": {"addressPrefixes": ["10.200.0.0/24", "fd00::/64"]}});
    scene.azure.tamper(json!({"do": "put", "id": six, "body": body})).await?;
    let target = |address: &str, subnet: &str| {
        json!({
            "privateIPAddress": address, "privateIPAllocationMethod": "Static", "subnet": {"id": subnet},
        })
    };
    let gateway = json!({
        "location": LOCATION,
        "zones": ["1", "3"],
        "sku": {"name": "Standard", "tier": "Regional"},
        "properties": {
            "virtualNetwork": {"id": network_id()},
            "routeTargetAddress": target("10.0.0.9", &subnet_id()),
            "routeTargetAddressV6": target("fd00::9", &six),
            "fieldOfTomorrow": {"depth": [1, 2]},
        },
        "tags": {"team": "network"},
    });
    scene.tell(format!("others have a gateway {GATEWAY} with zones, an IPv6 route target and a NAT gateway"));
    scene.azure.tamper(json!({"do": "put", "id": gateway_id(), "body": gateway})).await?;
    scene.egress_of_others().await?;
    scene.keep_foreign(&six).await?;
    scene.azure.resource(&gateway_id()).await
}

/// The other controller takes down what it has taken back, so that nothing of it is left for the judge.
async fn others_delete(scene: &Scene, services: &[(&str, String)]) -> Result<()> {
    for (name, uid) in services {
        scene.azure.tamper(json!({"do": "unregister", "gateway": gateway_id(), "name": uid})).await?;
        for id in resources_of(uid) {
            scene.azure.tamper(json!({"do": "delete", "id": id})).await?;
        }
        scene.delete_service(name).await?;
    }
    Ok(())
}

/// A gateway as it is shown, without its version, its tags and what is registered with it.
fn bare(gateway: &Value) -> Value {
    let mut bare = without_tags(gateway);
    if let Some(properties) = bare["properties"].as_object_mut() {
        properties.remove("services");
    }
    bare
}

/// Everything but tags, versions and the time.
fn without_tags(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(name, _)| !["tags", "etag", "time"].contains(&name.as_str()));
            Value::Object(kept.map(|(name, field)| (name.clone(), without_tags(field))).collect())
        }
        Value::Array(items) => items.iter().map(without_tags).collect(),
        leaf => leaf.clone(),
    }
}
