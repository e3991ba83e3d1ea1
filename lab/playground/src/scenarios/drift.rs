//! Resources are changed outside Sluice.

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use crate::azure::{GATEWAY, resource_id};
use crate::stage::{Look, Stage};

pub(super) async fn play(stage: &mut Stage) -> Result<()> {
    stage.narrator.step(
        "Create Services shop and cafe, and pod crawler with egress partners. Each of them loses a different part \
         below.",
    );
    stage.create_deployment("shop", 3).await?;
    stage.expose("shop", 80).await?;
    stage.create_deployment("cafe", 2).await?;
    stage.expose("cafe", 80).await?;
    stage.run_with_egress("crawler", "partners").await?;
    stage.until_all("Services have a public IP", 2, |seen| seen.cluster.ips().len()).await?;
    let seen = stage.converged().await?;
    let ips = seen.cluster.ips();
    let outgoing =
        seen.azure.public_ip("partners-pip").context("egress partners has no public IP")?.to_owned();
    let of = |name: &str| ips.get(name).cloned().unwrap_or_default();
    stage.narrator.answer(&format!(
        "in sync; public IPs: Service shop {}, Service cafe {}, egress partners {outgoing}",
        of("shop"),
        of("cafe")
    ));

    let (shop, cafe) = (uid(&seen, "shop")?, uid(&seen, "cafe")?);
    let (node, address, _) = seen
        .azure
        .mapped()
        .into_iter()
        .find(|(_, _, services)| services.contains(&cafe))
        .context("Service cafe has no programmed address")?;
    stage.narrator.step(
        "Change Azure outside Sluice, as any other client could. Azure does not notify Sluice of such changes.",
    );
    stage.azure.tamper(json!({"do": "delete", "id": resource_id("loadBalancers", &shop)})).await?;
    stage.narrator.injected("load balancer of Service shop deleted");
    let gateway = resource_id("serviceGateways", GATEWAY);
    stage
        .azure
        .tamper(json!({"do": "removeAddress", "gateway": gateway, "location": node, "address": address}))
        .await?;
    stage.narrator.injected(&format!("address {address} of Service cafe removed from the gateway"));
    stage.azure.tamper(json!({"do": "unregister", "gateway": gateway, "name": "partners"})).await?;
    stage.narrator.injected("registration of egress partners removed");
    let began = stage.pace.now();

    stage.narrator.step(
        "Wait for the comparison with Azure, every 1 min in the playground (default: 15 min). Lists of Azure can be \
         stale, so Sluice repairs a difference only if a second look confirms it.",
    );
    stage
        .until("Service shop has a load balancer", |seen| {
            Look::at(seen.azure.named("loadBalancers", &shop).is_some(), || "it is missing".to_owned())
        })
        .await?;
    stage.narrator.answer("load balancer of Service shop restored");
    stage
        .until("the address of Service cafe is programmed", |seen| {
            let is_back = seen.azure.mapped().iter().any(|(_, found, _)| *found == address);
            Look::at(is_back, || format!("{address} is missing"))
        })
        .await?;
    stage.narrator.answer(&format!("address {address} of Service cafe restored"));
    stage
        .until("the address of pod crawler is programmed", |seen| {
            Look::at(seen.azure.addresses_of("partners") == 1, || "it is missing".to_owned())
        })
        .await?;
    stage.narrator.answer("registration of egress partners and address of pod crawler restored");
    let seen = stage.converged().await?;
    let took = stage.since(began);
    let now = seen.cluster.ips();
    ensure!(now == ips, "the public IPs of the Services changed from {ips:?} to {now:?}");
    let now = seen.azure.public_ip("partners-pip");
    ensure!(now == Some(&outgoing), "the public IP of egress partners changed from {outgoing} to {now:?}");
    stage.narrator.answer(&format!("drift repaired after {took}; all public IPs unchanged"));
    Ok(())
}

fn uid(seen: &crate::check::Seen, service: &str) -> Result<String> {
    seen.cluster.uid(service).with_context(|| format!("Service {service} is missing"))
}
