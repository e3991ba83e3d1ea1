//! Pods move to another egress: to a new one with a gap, to an existing one without.

use anyhow::{Context as _, Result, ensure};

use crate::check::{DEFAULT_EGRESS, Seen};
use crate::narrator::count;
use crate::stage::{Look, Stage};

pub(super) async fn play(stage: &mut Stage) -> Result<()> {
    stage.narrator.step(
        "Run pods crawler-1 and crawler-2 with the egress label blue. Peers can allow the public IP of the egress.",
    );
    stage.run_with_egress("crawler-1", "blue").await?;
    stage.run_with_egress("crawler-2", "blue").await?;
    programmed(stage, "blue", 2).await?;
    let blue = public_ip(stage, "blue").await?;
    stage.narrator.answer(&format!("egress blue: public IP {blue}, 2 of 2 pod addresses programmed"));
    let green = to_a_new_egress(stage).await?;
    ensure!(blue != green, "both egresses have the public IP {blue}");
    to_an_existing_egress(stage, &green).await?;

    stage.narrator.step(
        "Wait until egress blue is deleted. It has no pods and its resources are billed; set sluice.egress.linger to \
         keep it for some time.",
    );
    stage
        .until("egress blue is deleted", |seen| {
            let is_gone = seen.azure.named("natGateways", "blue").is_none()
                && seen.azure.named("publicIPAddresses", "blue-pip").is_none();
            Look::at(is_gone, || "its NAT gateway or public IP exists".to_owned())
        })
        .await?;
    stage.narrator.answer(&format!("egress blue deleted, with its NAT gateway and public IP {blue}"));
    Ok(())
}

/// The pod is without an egress until the new one is ready. Returns the new public IP.
async fn to_a_new_egress(stage: &mut Stage) -> Result<String> {
    stage.narrator.step(
        "Change the label of pod crawler-1 to green, an egress that does not exist. The pod leaves blue at once, and \
         its traffic uses the default NAT gateway until green is ready.",
    );
    stage.set_egress("crawler-1", "green").await?;
    let seen = programmed(stage, "blue", 1).await?;
    let left = stage.pace.now();
    let default = seen.azure.public_ip(&format!("{DEFAULT_EGRESS}-pip")).unwrap_or("none").to_owned();
    if seen.azure.addresses_of("green") == 0 {
        stage.narrator.warn(&format!(
            "pod crawler-1: removed from blue, not yet in green; traffic uses {DEFAULT_EGRESS} (public IP {default})"
        ));
    }
    programmed(stage, "green", 1).await?;
    let gap = stage.since(left);
    let green = public_ip(stage, "green").await?;
    stage.narrator.answer(&format!(
        "egress green: public IP {green}, address of pod crawler-1 programmed after a gap of {gap}"
    ));
    Ok(green)
}

/// One request moves the address, so there is no gap.
async fn to_an_existing_egress(stage: &mut Stage, green: &str) -> Result<()> {
    stage.narrator.step(
        "Change the label of pod crawler-2 to green, which exists now, so one request moves the address. To avoid \
         the gap of step 2, create the new egress with another pod first.",
    );
    let ip = stage
        .look()
        .await?
        .cluster
        .pods
        .iter()
        .find(|pod| pod.metadata.name == "crawler-2")
        .and_then(|pod| crate::cluster::pod_ip(pod).map(str::to_owned))
        .context("pod crawler-2 has no IP")?;
    let before = stage.azure.summary().await?;
    stage.set_egress("crawler-2", "green").await?;
    let mut gaps = 0;
    let has_address = |seen: &Seen| seen.azure.mapped().iter().any(|(_, address, _)| *address == ip);
    stage
        .until("2 addresses are programmed for egress green", |seen| {
            gaps += usize::from(!has_address(seen));
            let found = seen.azure.addresses_of("green");
            Look::at(found == 2, || format!("{found} of 2"))
        })
        .await?;
    let requests = stage.azure.summary().await?.location_updates - before.location_updates;
    ensure!(gaps == 0, "pod crawler-2 was without an egress at {}", count(gaps as u64, "poll"));
    stage.narrator.answer(&format!(
        "pod crawler-2: moved from blue to green (public IP {green}) in {}, without a gap",
        count(requests, "request")
    ));
    Ok(())
}

async fn programmed(stage: &mut Stage, egress: &str, desired: usize) -> Result<Seen> {
    let what = format!("egress {egress} has {}", count(desired as u64, "programmed address"));
    stage
        .until(&what, |seen| {
            let found = seen.azure.addresses_of(egress);
            Look::at(found == desired, || format!("{found} of {desired}"))
        })
        .await
}

async fn public_ip(stage: &Stage, egress: &str) -> Result<String> {
    let seen = stage.look().await?;
    seen.azure
        .public_ip(&format!("{egress}-pip"))
        .map(str::to_owned)
        .with_context(|| format!("egress {egress} has no public IP"))
}
