//! The controller crashes, and a new process completes its work.

use anyhow::{Result, ensure};

use crate::narrator::{NO_BREAK, count};
use crate::pace::span;
use crate::parts::LEASE_DURATION;
use crate::stage::{Look, Stage};

const FIRST: usize = 5;
const MORE: usize = 20;
const ALL: usize = FIRST + MORE;

pub(super) async fn play(stage: &mut Stage) -> Result<()> {
    stage.narrator.step(
        "Create Deployment web with 3 pods and 5 Services. The crash below must not change their public IPs.",
    );
    stage.create_deployment("web", 3).await?;
    stage.expose_many("web", "web", 1..=FIRST).await?;
    stage.until_all("Services have a public IP", FIRST, |seen| seen.cluster.ips().len()).await?;
    let ips = stage.converged().await?.cluster.ips();
    stage
        .narrator
        .answer(&format!("{FIRST} of {FIRST} Services have a public IP and 3 programmed addresses"));

    stage.narrator.step(
        "Create 20 more Services, and crash Sluice while it creates their load balancers. A crash interrupts calls \
         to Azure, saves no state and does not release the Lease.",
    );
    stage.expose_many("web", "web", FIRST + 1..=ALL).await?;
    stage
        .until("some of the new load balancers exist", |seen| {
            let made = seen.azure.all("loadBalancers").len();
            Look::at(made > FIRST, || format!("{made} load balancers"))
        })
        .await?;
    stage.controller.crash().await;
    stage.narrator.injected("Sluice crashed");
    let seen = stage.look().await?;
    let made = seen.azure.all("loadBalancers").len();
    ensure!(made < ALL, "all {made} load balancers were created before the crash");
    stage.narrator.warn(&format!(
        "in Azure: {} and {}; {} of {ALL} Services have a public IP",
        count(seen.azure.all("publicIPAddresses").len() as u64, "public IP"),
        count(made as u64, "load balancer"),
        seen.cluster.ips().len(),
    ));

    let lease = span(stage.pace.emulated(LEASE_DURATION)).replace(' ', &NO_BREAK.to_string());
    stage.narrator.step(&format!(
        "Start Sluice again. It waits until the Lease of the crashed process expires ({lease} after its last \
         renewal), so that two controllers do not write at the same time. Then it lists Kubernetes and Azure, and \
         completes what is missing."
    ));
    let began = stage.pace.now();
    stage.start_controller().await.map_err(|failure| failure.error)?;
    stage.until_all("Services have a public IP", ALL, |seen| seen.cluster.ips().len()).await?;
    let seen = stage.converged().await?;
    stage.narrator.answer(&format!(
        "{ALL} of {ALL} Services have a public IP, {} after the restart",
        stage.since(began)
    ));
    for (name, ip) in &ips {
        let now = seen.cluster.ip(name);
        ensure!(now.as_ref() == Some(ip), "the public IP of Service {name} changed from {ip} to {now:?}");
    }
    stage.narrator.answer(&format!("public IPs of the first {FIRST} Services unchanged"));
    Ok(())
}
