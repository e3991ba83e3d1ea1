//! A rollout under load: all pods of three Deployments are replaced at the same time.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};

use crate::stage::{Look, Stage};

const SHOPS: [&str; 3] = ["bread", "cheese", "wine"];
const PODS: u32 = 8;

pub(super) async fn play(stage: &mut Stage) -> Result<()> {
    stage.narrator.tell("Three shops are open, each with eight pods and an address.");
    for shop in SHOPS {
        stage.create_deployment(shop, PODS).await?;
        stage.expose(shop, 80).await?;
    }
    stage.until_all("shops have an address", SHOPS.len(), |seen| seen.cluster.ips().len()).await?;
    let seen = stage.converged().await?;
    let (ips, old) = (seen.cluster.ips(), pods(&seen));
    stage.narrator.answer(&format!("the shops are open: {}", named(&ips)));

    stage.narrator.tell(
        "Now all three are updated at once, in the busiest hour. Old pods go, new ones come, everywhere at the \
         same time. Sluice gathers what has changed since its last request and sends that: a pod that came and \
         went in between is in no request at all.",
    );
    let before = stage.azure.summary().await?;
    for shop in SHOPS {
        stage.set_image(shop, "1.29").await?;
    }
    let mut fewest: BTreeMap<&str, usize> = SHOPS.iter().map(|shop| (*shop, usize::MAX)).collect();
    let all = old.len();
    stage
        .until_all("pods are new, and in the gateway", all, |seen| {
            for shop in SHOPS {
                let found = seen.cluster.uid(shop).map_or(0, |uid| seen.azure.addresses_of(&uid));
                fewest.entry(shop).and_modify(|fewest| *fewest = found.min(*fewest));
            }
            let mapped = seen.azure.mapped();
            let new = pods(seen).into_iter().filter(|(name, _)| !old.contains_key(name));
            new.filter(|(_, ip)| mapped.iter().any(|(_, address, _)| address == ip)).count()
        })
        .await?;
    let seen = stage
        .until("the old pods are gone", |seen| {
            let left = pods(seen).keys().filter(|name| old.contains_key(*name)).count();
            Look::at(left == 0, || format!("{left} are still there"))
        })
        .await?;
    let after = stage.azure.summary().await?;
    stage.narrator.answer(&format!(
        "{all} pods were replaced by {all} others, with {} requests for addresses",
        after.location_updates - before.location_updates
    ));
    let now = seen.cluster.ips();
    ensure!(now == ips, "the addresses were {}, and are {} after the rollout", named(&ips), named(&now));
    stage.narrator.answer("every shop has the address that it had");
    let least = fewest.values().min().copied().unwrap_or_default();
    ensure!(least > 0, "a shop was without a pod in the gateway during the rollout: {fewest:?}");
    stage.narrator.answer(&format!("no shop ever had fewer than {least} pods in the gateway"));
    Ok(())
}

/// The pods that have an address and are not ending, by name.
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
