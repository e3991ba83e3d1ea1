//! The tour: a Service with early endpoints, an egress, an update, and the end of both.

use anyhow::{Context as _, Result};

use crate::pace::span;
use crate::stage::{Look, Stage};

pub(super) async fn play(stage: &mut Stage) -> Result<()> {
    shop(stage).await?;
    crawler(stage).await?;
    change(stage).await?;
    end(stage).await
}

async fn shop(stage: &mut Stage) -> Result<()> {
    stage.narrator.tell("Ann has a web shop. She starts three pods of it.");
    stage.create_deployment("shop", 3).await?;
    stage.settled_pods().await?;
    stage.narrator.answer("Kubernetes runs three pods, and Azure knows nothing of them yet");

    stage.narrator.tell(
        "She wants the world to see it. The pods are there before the Service is: their addresses are early. \
         Sluice knows them at once and keeps them back, because an address may be sent to the gateway only \
         when the load balancer behind it exists and is registered.",
    );
    stage.expose("shop", 80).await?;
    let began = stage.pace.now();
    let seen = stage
        .until("the shop has an address", |seen| {
            Look::at(seen.cluster.ip("shop").is_some(), || {
                "kubectl get service shop shows <pending>".to_owned()
            })
        })
        .await?;
    let ip = seen.cluster.ip("shop").context("the shop has lost its address")?;
    let took = span(stage.pace.now().saturating_sub(began));
    stage.narrator.answer(&format!(
        "the shop has the address {ip}, {took} after she asked: Azure made a public IP, a load balancer and a \
         registration, one after the other"
    ));
    programmed(stage, 3).await?;
    stage.narrator.answer("and all three pods are in the gateway; they were sent in one request");
    Ok(())
}

/// Waits until the gateway has so many addresses of the shop.
async fn programmed(stage: &mut Stage, wanted: usize) -> Result<()> {
    stage
        .until(&format!("the gateway has {wanted} addresses of the shop"), |seen| {
            let found = seen.cluster.uid("shop").map_or(0, |uid| seen.azure.addresses_of(&uid));
            Look::at(found == wanted, || format!("it has {found}"))
        })
        .await?;
    Ok(())
}

async fn crawler(stage: &mut Stage) -> Result<()> {
    stage.narrator.tell(
        "Ben has a crawler whose partners let only known addresses in. A label on the pod names an egress: an \
         own NAT gateway with an own public IP. The first pod with that name makes it.",
    );
    stage.run_with_egress("crawler", "partners").await?;
    let began = stage.pace.now();
    let seen = stage
        .until("the crawler goes out by its own address", |seen| {
            let found = seen.azure.addresses_of("partners");
            Look::at(found == 1, || "the gateway does not know the pod as one of partners".to_owned())
        })
        .await?;
    let ip = seen.azure.address("partners-pip").context("the egress has no public IP")?.to_owned();
    let took = span(stage.pace.now().saturating_sub(began));
    stage.narrator.answer(&format!("after {took} everything that the crawler sends comes from {ip}"));
    Ok(())
}

async fn change(stage: &mut Stage) -> Result<()> {
    stage.narrator.tell(
        "Business is good, so Ann doubles the pods; and she moves the shop to port 443. One is a matter of \
         addresses, the other of the load balancer's rules. They do not wait for each other, and the IP stays.",
    );
    let before = stage.look().await?.cluster.ip("shop");
    stage.scale("shop", 6).await?;
    stage.set_port("shop", 443).await?;
    programmed(stage, 6).await?;
    stage.narrator.answer("the gateway has six addresses");
    let seen = stage
        .until("the load balancer listens on port 443", |seen| {
            let uid = seen.cluster.uid("shop").unwrap_or_default();
            let rules =
                seen.azure.named("loadBalancers", &uid).map(|it| it["rules"].clone()).unwrap_or_default();
            let is_moved =
                rules.as_array().is_some_and(|all| all.len() == 1 && all[0]["frontendPort"] == 443);
            Look::at(is_moved, || format!("its rules are {rules}"))
        })
        .await?;
    let after = seen.cluster.ip("shop");
    anyhow::ensure!(before == after, "the shop had {before:?}, and has {after:?} after a change of its port");
    stage.narrator.answer(&format!(
        "the load balancer listens on 443, and the address is still {}",
        after.unwrap_or_default()
    ));
    Ok(())
}

async fn end(stage: &mut Stage) -> Result<()> {
    stage.narrator.tell(
        "All good things end. A deleted Service stays visible until Azure's side is gone: first its addresses \
         leave the gateway, then load balancer, registration and public IP, and the finalizer last. So nothing \
         that costs money is forgotten.",
    );
    stage.delete_service("shop").await?;
    stage.delete_deployment("shop").await?;
    stage.delete_pod("crawler").await?;
    stage
        .until("the shop is gone", |seen| {
            Look::at(seen.cluster.service("shop").is_none(), || "its finalizer holds it".to_owned())
        })
        .await?;
    stage.narrator.answer("the shop is gone, here and in Azure");
    stage
        .until("the egress partners is gone", |seen| {
            let is_gone = seen.azure.named("natGateways", "partners").is_none()
                && seen.azure.named("publicIPAddresses", "partners-pip").is_none();
            Look::at(is_gone, || "its NAT gateway or public IP is still there".to_owned())
        })
        .await?;
    stage.narrator.answer("the egress went with its last pod");
    Ok(())
}
