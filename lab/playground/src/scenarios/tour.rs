//! The tour: a Service with buffered addresses, an egress, an update, and the deletion of both.

use anyhow::{Context as _, Result, ensure};

use crate::narrator::count;
use crate::stage::{Look, Stage};

pub(super) async fn play(stage: &mut Stage) -> Result<()> {
    service(stage).await?;
    egress(stage).await?;
    update(stage).await?;
    deletion(stage).await
}

async fn service(stage: &mut Stage) -> Result<()> {
    stage.narrator.step(
        "Create Deployment shop with 3 pods. Sluice ignores pods without a Service or an egress label, so they \
         need nothing in Azure.",
    );
    stage.create_deployment("shop", 3).await?;
    stage.settled_pods().await?;
    stage.narrator.answer("Deployment shop: 3 of 3 pods ready");

    stage.narrator.step(
        "Expose Deployment shop. Its pods exist before the load balancer, so Sluice buffers their addresses until \
         the load balancer is registered.",
    );
    let before = stage.azure.summary().await?;
    stage.expose("shop", 80).await?;
    let began = stage.pace.now();
    let seen = stage
        .until("Service shop has a public IP", |seen| {
            Look::at(seen.cluster.ip("shop").is_some(), || "EXTERNAL-IP is <pending>".to_owned())
        })
        .await?;
    let ip = seen.cluster.ip("shop").context("Service shop has lost its public IP")?;
    stage.narrator.answer(&format!(
        "Service shop: public IP {ip} after {} (public IP, load balancer, registration)",
        stage.since(began)
    ));
    programmed(stage, 3).await?;
    let requests = stage.azure.summary().await?.location_updates - before.location_updates;
    stage.narrator.answer(&format!("3 of 3 pod addresses programmed, in {}", count(requests, "request")));
    Ok(())
}

/// Waits until the gateway has so many addresses of Service shop.
async fn programmed(stage: &mut Stage, desired: usize) -> Result<()> {
    stage
        .until(&format!("{desired} addresses of Service shop are programmed"), |seen| {
            let found = seen.cluster.uid("shop").map_or(0, |uid| seen.azure.addresses_of(&uid));
            Look::at(found == desired, || format!("{found} of {desired}"))
        })
        .await?;
    Ok(())
}

async fn egress(stage: &mut Stage) -> Result<()> {
    stage.narrator.step(
        "Run pod crawler with the egress label partners. The first pod of an egress creates its NAT gateway and \
         public IP, which peers see as the source of the traffic.",
    );
    stage.run_with_egress("crawler", "partners").await?;
    let began = stage.pace.now();
    let seen = stage
        .until("the address of pod crawler is programmed for egress partners", |seen| {
            let found = seen.azure.addresses_of("partners");
            Look::at(found == 1, || format!("{} programmed", count(found as u64, "address")))
        })
        .await?;
    let ip = seen.azure.public_ip("partners-pip").context("egress partners has no public IP")?;
    stage.narrator.answer(&format!(
        "egress partners: public IP {ip}, address of pod crawler programmed, after {}",
        stage.since(began)
    ));
    Ok(())
}

async fn update(stage: &mut Stage) -> Result<()> {
    stage.narrator.step(
        "Scale Deployment shop to 6 pods, and move Service shop to port 443. Sluice updates addresses and load \
         balancer rules independently, so neither waits for the other.",
    );
    let before = stage.look().await?.cluster.ip("shop");
    stage.scale("shop", 6).await?;
    stage.set_port("shop", 443).await?;
    programmed(stage, 6).await?;
    stage.narrator.answer("6 of 6 pod addresses programmed");
    let seen = stage
        .until("the load balancer of Service shop has port 443", |seen| {
            let uid = seen.cluster.uid("shop").unwrap_or_default();
            let rules =
                seen.azure.named("loadBalancers", &uid).map(|it| it["rules"].clone()).unwrap_or_default();
            let is_moved =
                rules.as_array().is_some_and(|all| all.len() == 1 && all[0]["frontendPort"] == 443);
            Look::at(is_moved, || format!("its rules are {rules}"))
        })
        .await?;
    let after = seen.cluster.ip("shop");
    ensure!(before == after, "the public IP of Service shop changed from {before:?} to {after:?}");
    stage.narrator.answer(&format!("load balancer: port 443; public IP still {}", after.unwrap_or_default()));
    Ok(())
}

async fn deletion(stage: &mut Stage) -> Result<()> {
    stage.narrator.step(
        "Delete the Service, the Deployment and pod crawler. A finalizer keeps the Service in Kubernetes until its \
         Azure resources are deleted, so none is forgotten and billed.",
    );
    let uid = stage.look().await?.cluster.uid("shop").context("Service shop is missing")?;
    stage.delete_service("shop").await?;
    stage.delete_deployment("shop").await?;
    stage.delete_pod("crawler").await?;
    let seen = stage
        .until("Service shop is deleted", |seen| {
            Look::at(seen.cluster.service("shop").is_none(), || "its finalizer keeps it".to_owned())
        })
        .await?;
    let left = ["loadBalancers", "publicIPAddresses"]
        .into_iter()
        .filter(|kind| seen.azure.all(kind).iter().any(|it| crate::azure::name_of(it).starts_with(&uid)));
    let left: Vec<&str> = left.collect();
    ensure!(left.is_empty(), "Service shop is deleted before its {}", left.join(" and "));
    stage.narrator.answer("Service shop deleted, after its load balancer and public IP");
    stage
        .until("egress partners is deleted", |seen| {
            let is_gone = seen.azure.named("natGateways", "partners").is_none()
                && seen.azure.named("publicIPAddresses", "partners-pip").is_none();
            Look::at(is_gone, || "its NAT gateway or public IP exists".to_owned())
        })
        .await?;
    stage.narrator.answer("egress partners deleted with its last pod (NAT gateway, public IP)");
    Ok(())
}
