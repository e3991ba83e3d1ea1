//! The controller dies in the middle of its work, and a new one goes on.

use anyhow::{Result, ensure};

use crate::pace::span;
use crate::stage::{Look, Stage};

const FIRST: usize = 5;
const MORE: usize = 20;

pub(super) async fn play(stage: &mut Stage) -> Result<()> {
    stage.narrator.tell("Five Services are open, and all is well.");
    stage.create_deployment("web", 3).await?;
    let names: Vec<String> = (1..=FIRST).map(|number| format!("web-{number}")).collect();
    stage.narrator.command(&format!(
        "for n in $(seq 1 {FIRST}); do kubectl expose deployment web --name=web-$n --type=LoadBalancer --port=80 \
         --target-port=8080; done"
    ));
    stage.make_services(&names, "web").await?;
    stage.until_all("Services have an address", FIRST, |seen| seen.cluster.ips().len()).await?;
    let ips = stage.converged().await?.cluster.ips();
    stage.narrator.answer("all five have an address and three pods behind it");

    stage.narrator.tell(
        "Twenty more are made. In the middle of it, with calls on the wire and half of the load balancers made, the \
         controller's machine loses power. Nothing is finished, nothing is written down, and the lease is not \
         given back.",
    );
    let names: Vec<String> = (FIRST + 1..=FIRST + MORE).map(|number| format!("web-{number}")).collect();
    stage.make_services(&names, "web").await?;
    stage
        .until("some of the new load balancers are made, and not all", |seen| {
            let made = seen.azure.all("loadBalancers").len();
            Look::at(made > FIRST, || format!("{made} are"))
        })
        .await?;
    stage.narrator.command("kill -9 $(pidof sluice)");
    stage.controller.crash().await;
    let seen = stage.look().await?;
    let made = seen.azure.all("loadBalancers").len();
    ensure!(made < FIRST + MORE, "all {made} load balancers were made before the crash");
    stage.narrator.warn(&format!(
        "Sluice is dead. Azure has {} public IPs and {} load balancers, and {} of {} Services have an address",
        seen.azure.all("publicIPAddresses").len(),
        made,
        seen.cluster.ips().len(),
        FIRST + MORE
    ));

    stage.narrator.tell(
        "The kubelet starts it again. It has no file and no memory of its own: it waits until the dead one's lease \
         has run out, so that no two of them ever write at once; then both worlds are read, and the difference is \
         the work that is left. What is half done is found and finished, not made twice.",
    );
    let began = stage.pace.now();
    stage.start_controller().await.map_err(|failure| failure.error)?;
    stage.until_all("Services have an address", FIRST + MORE, |seen| seen.cluster.ips().len()).await?;
    let seen = stage.converged().await?;
    let took = span(stage.pace.now().saturating_sub(began));
    stage.narrator.answer(&format!("{took} after the new start all {} have an address", FIRST + MORE));
    for (name, ip) in &ips {
        let now = seen.cluster.ip(name);
        ensure!(now.as_ref() == Some(ip), "{name} had {ip}, and has {now:?} after the crash");
    }
    stage.narrator.answer("those that had one before still have the same");
    Ok(())
}
