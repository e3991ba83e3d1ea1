//! All pods of three Deployments are replaced at the same time.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};

use crate::narrator::count;
use crate::stage::{Look, Stage};

const SERVICES: [&str; 3] = ["frontend", "api", "search"];
const PODS: u32 = 8;

pub(super) async fn play(stage: &mut Stage) -> Result<()> {
    stage.narrator.step(
        "Create and expose 3 Deployments with 8 pods each. The rollout below must not change their public IPs.",
    );
    for name in SERVICES {
        stage.create_deployment(name, PODS).await?;
        stage.expose(name, 80).await?;
    }
    stage.until_all("Services have a public IP", SERVICES.len(), |seen| seen.cluster.ips().len()).await?;
    let seen = stage.converged().await?;
    let (ips, old) = (seen.cluster.ips(), pods(&seen));
    let all = old.len();
    stage.narrator.answer(&format!("public IPs: {}; {all} addresses programmed", named(&ips)));

    stage.narrator.step(
        "Update the image of all 3 Deployments at once. Sluice sends the difference since its last request, so it \
         does not send a pod that starts and ends in between.",
    );
    let before = stage.azure.summary().await?;
    for name in SERVICES {
        stage.set_image(name, "1.29").await?;
    }
    let mut fewest: BTreeMap<&str, usize> = SERVICES.iter().map(|name| (*name, usize::MAX)).collect();
    stage
        .until_all("new pods are programmed", all, |seen| {
            for name in SERVICES {
                let found = seen.cluster.uid(name).map_or(0, |uid| seen.azure.addresses_of(&uid));
                fewest.entry(name).and_modify(|fewest| *fewest = found.min(*fewest));
            }
            let mapped = seen.azure.mapped();
            let new = pods(seen).into_iter().filter(|(name, _)| !old.contains_key(name));
            new.filter(|(_, ip)| mapped.iter().any(|(_, address, _)| address == ip)).count()
        })
        .await?;
    let seen = stage
        .until("the old pods are deleted", |seen| {
            let left = pods(seen).keys().filter(|name| old.contains_key(*name)).count();
            Look::at(left == 0, || format!("{left} old pods are left"))
        })
        .await?;
    let after = stage.azure.summary().await?;
    let requests = count(after.location_updates - before.location_updates, "request");
    stage.narrator.answer(&format!("{all} pods replaced by {all} new pods; addresses updated in {requests}"));
    let now = seen.cluster.ips();
    ensure!(now == ips, "the public IPs changed from {} to {}", named(&ips), named(&now));
    stage.narrator.answer("all public IPs unchanged");
    let least = fewest.values().min().copied().unwrap_or_default();
    ensure!(least > 0, "a Service had no programmed address during the rollout: {fewest:?}");
    stage
        .narrator
        .answer(&format!("each Service had at least {least} of {PODS} addresses programmed at each poll"));
    Ok(())
}

/// The pods that have an IP and are not terminating, by name.
fn pods(seen: &crate::check::Seen) -> BTreeMap<String, String> {
    let alive = seen.cluster.pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
    alive
        .filter_map(|pod| Some((pod.metadata.name.clone(), crate::cluster::pod_ip(pod)?.to_owned())))
        .collect()
}

fn named(ips: &BTreeMap<String, String>) -> String {
    let each: Vec<String> = ips.iter().map(|(name, ip)| format!("{name} {ip}")).collect();
    each.join(", ")
}
