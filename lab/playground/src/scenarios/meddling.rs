//! Somebody deletes things behind our back.

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use crate::azure::{GATEWAY, GROUP, resource_id};
use crate::pace::span;
use crate::stage::{Look, Stage};

pub(super) async fn play(stage: &mut Stage) -> Result<()> {
    stage.narrator.tell("A shop and a cafe are open, and a crawler has its own way out.");
    stage.create_deployment("shop", 3).await?;
    stage.expose("shop", 80).await?;
    stage.create_deployment("cafe", 2).await?;
    stage.expose("cafe", 80).await?;
    stage.run_with_egress("crawler", "partners").await?;
    stage.until_all("Services have an address", 2, |seen| seen.cluster.ips().len()).await?;
    let seen = stage.converged().await?;
    let ips = seen.cluster.ips();
    let outgoing = seen.azure.address("partners-pip").context("the egress has no public IP")?.to_owned();
    stage.narrator.answer(&format!("all is in place; the crawler goes out by {outgoing}"));

    let (shop, cafe) = (uid(&seen, "shop")?, uid(&seen, "cafe")?);
    let (node, address, _) = seen
        .azure
        .mapped()
        .into_iter()
        .find(|(_, _, services)| services.contains(&cafe))
        .context("the cafe has no address in the gateway")?;
    stage.narrator.tell(
        "Somebody tidies up the subscription by hand. They do not know what is whose, and Azure tells nobody \
         that it was them.",
    );
    stage.narrator.command(&format!("az network lb delete --resource-group {GROUP} --name {shop}"));
    stage.azure.tamper(json!({"do": "delete", "id": resource_id("loadBalancers", &shop)})).await?;
    stage.narrator.warn("the load balancer of the shop is gone");
    let gateway = resource_id("serviceGateways", GATEWAY);
    stage
        .azure
        .tamper(json!({"do": "removeAddress", "gateway": gateway, "location": node, "address": address}))
        .await?;
    stage.narrator.warn(&format!("the gateway has forgotten {address}, a pod of the cafe"));
    stage.azure.tamper(json!({"do": "unregister", "gateway": gateway, "name": "partners"})).await?;
    stage.narrator.warn("and the egress partners is no longer registered");
    let began = stage.pace.now();

    stage.narrator.tell(
        "Every so often (here every minute, usually every quarter of an hour) Sluice compares what Azure has with \
         what it should have. A difference is believed only when a second look shows it too, because Azure's lists \
         lag behind; then it is repaired like any other work.",
    );
    stage
        .until("the shop has a load balancer again", |seen| {
            Look::at(seen.azure.named("loadBalancers", &shop).is_some(), || "it is still gone".to_owned())
        })
        .await?;
    stage.narrator.answer("the load balancer of the shop is back");
    stage
        .until("the cafe's pod is back in the gateway", |seen| {
            let is_back = seen.azure.mapped().iter().any(|(_, found, _)| *found == address);
            Look::at(is_back, || format!("{address} is still missing"))
        })
        .await?;
    stage.narrator.answer(&format!("{address} is back in the gateway"));
    stage
        .until("the crawler has its way out again", |seen| {
            Look::at(seen.azure.addresses_of("partners") == 1, || "its pod is not in the gateway".to_owned())
        })
        .await?;
    stage.narrator.answer("the egress is registered again, with its pod");
    let seen = stage.converged().await?;
    let took = span(stage.pace.now().saturating_sub(began));
    ensure!(
        seen.cluster.ips() == ips,
        "a Service has another address, although its public IP was never touched"
    );
    ensure!(
        seen.azure.address("partners-pip") == Some(&outgoing),
        "the egress has another address, although its public IP was never touched"
    );
    stage.narrator.answer(&format!("{took} after the tidying all is as it was, with the same addresses"));
    Ok(())
}

fn uid(seen: &crate::check::Seen, service: &str) -> Result<String> {
    seen.cluster.uid(service).with_context(|| format!("the Service {service} is gone"))
}
