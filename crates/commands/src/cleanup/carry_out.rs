//! The teardown itself: the controller's own loop, under the lease, in a world in which nothing is wanted.

use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use jiff::Timestamp;
use sluice_controller::{
    ApiServer, Clock, ClusterLease, Controller, Farewell, Handle, Inbox, Leadership, Monotonic,
};
use sluice_k8s::lease::Place;
use sluice_k8s::watch::Watches;
use sluice_k8s::write::Writer;
use sluice_model::seeded::Seeded;
use sluice_view::overview::Role;
use tokio::sync::oneshot;

use super::gateway::{self, Fate};
use super::{abandoned, engine_config, forecast, releases, taken_back};
use crate::failure::Failure;
use crate::lease;
use crate::plan::foresight::Worlds;
use crate::plan::report::Report;
use crate::reach::Reached;

/// How long all of it may take. What is not gone by then is said, and can be begun again.
const LIMIT: Duration = Duration::from_secs(60 * 60);
/// How often people are told how far it is.
const PROGRESS: Duration = Duration::from_secs(2);
/// How long between two looks at everything, once the loop has nothing left.
const FRESH_LOOK: Duration = Duration::from_secs(10);
/// How often is looked whether everything that another controller has taken back is let go.
const LOOKS: u32 = 5;
/// Who we are in the Lease.
const INSTANCE: &str = "sluice-cleanup";

/// Takes the lease, tears everything down, the gateway last, and gives the lease back. Says what became of
/// the gateway.
pub(super) async fn carry_out(reached: &Reached, keep_gateway: bool) -> Result<Fate, Failure> {
    let config = &reached.config;
    let clock = Monotonic::start();
    let (handle, inbox) = Inbox::open(1_024);
    let client = reached.connection.client.clone();
    let selection = config.selection();
    let serves_all = selection.class.is_none();
    // They never run: the world in which nothing is wanted is told once, and stands still.
    let watches = Watches::new(client.clone(), selection);
    let fence = (handle.clone(), clock);
    let may_begin = move || fence.0.may_begin(&fence.1);
    let writer = |serves_all| {
        Writer::new(client.clone(), serves_all, INSTANCE.to_owned()).with_fence(may_begin.clone())
    };
    // Of what others have taken back only our own finalizer goes.
    let modest_writer = writer(false);
    let writer = writer(serves_all);
    let settings = sluice_controller::Config {
        engine: engine_config(reached),
        updaters: config.updaters(),
        limits: config.limits(),
        seed: 0,
        seeded: Seeded::NONE,
    };
    let kube = ApiServer::new(writer, watches);
    let controller = Controller::new(settings, inbox, reached.azure.clone(), kube, clock);
    let timing = config.lease_timing();
    let place = lease::place(config, &reached.connection);
    lease::has_a_home(&reached.connection, &place).await?;
    println!("Acquiring Lease {}/{} …", place.namespace, place.name);
    let door = ClusterLease::new(client, place.clone(), timing);
    let identity = lease::identity(INSTANCE);
    let leadership = Leadership::new(&identity, timing, door, clock, Timestamp::now, handle.clone())?;
    let (mut standing, seen) = (leadership.standing(), leadership.standing());
    let (farewell, heard) = oneshot::channel();
    let lease = tokio::spawn(leadership.run(heard));

    let patience = clock.now() + timing.lease * 3;
    tokio::select! {
        led = standing.wait_for(|it| it.role == Role::Leader) => drop(led.context("cannot acquire the Lease")?),
        () = clock.sleep_until(patience) => {
            let holder = seen.borrow().leader.clone().unwrap_or_else(|| "an unknown process".to_owned());
            let Place { namespace, name } = &place;
            let error = anyhow!("no changes made: Lease {namespace}/{name} is held by {holder}");
            return Err(Failure::from(error).hint(format!(
                "run `kubectl -n {namespace} scale deployment/sluice --replicas=0` and retry"
            )));
        }
    }
    // Before the loop looks at Azure: what it sees with our tags and nobody wants, it deletes.
    let released = release(reached, &modest_writer, &clock, &may_begin).await;
    let work = tokio::spawn(controller.run());
    let torn_down = match released {
        Err(failure) => Err(failure),
        Ok(worlds) => tokio::select! {
            torn_down = tear_down(reached, worlds, &handle, &clock, keep_gateway) => torn_down,
            () = clock.sleep_until(clock.now() + LIMIT) => still_there(&handle).await.map_err(Failure::from),
        },
    };
    handle.stop();
    let ended = work.await.context("the controller loop failed")?;
    let farewell_word = if ended.abandoned == 0 { Farewell::Release } else { Farewell::Keep };
    // Whoever has lost the lease listens no more.
    let _ = farewell.send(farewell_word);
    let _ = lease.await;
    torn_down
}

/// Lets go of what another controller has taken back, until none of it is left; gives the worlds without it.
async fn release(
    reached: &Reached,
    writer: &Writer,
    clock: &Monotonic,
    may_begin: &(impl Fn() -> bool + Send + Sync),
) -> Result<Worlds, Failure> {
    for _ in 0..LOOKS {
        // Read again under the lease: what was shown may be old by now.
        let (worlds, taken_back) = abandoned(reached).await?;
        if taken_back.is_empty() {
            return Ok(worlds);
        }
        for it in &taken_back {
            taken_back::release(reached, writer, it, may_begin).await?;
        }
        // Reads lag behind writes.
        clock.sleep_until(clock.now() + reached.config.drift.settle).await;
    }
    Err(anyhow!(
        "resources of another controller keep getting the tags of this cluster; stop the client that tags them, \
         then re-run"
    )
    .into())
}

async fn tear_down(
    reached: &Reached,
    worlds: Worlds,
    handle: &Handle,
    clock: &Monotonic,
    keep_gateway: bool,
) -> Result<Fate, Failure> {
    for event in worlds.kubernetes {
        handle.post(event).await?;
    }
    handle.wait_for_initial_sync().await?;
    for event in releases() {
        handle.post(event).await?;
    }
    let mut shown = None;
    let mut next_look = clock.now();
    loop {
        let left = handle.services().await?.len();
        if shown != Some(left) {
            println!("Services and egresses left: {left} …");
            shown = Some(left);
        }
        // Orphans get a record only at their second sighting, so only a fresh look says that all is gone.
        if left == 0 && clock.now() >= next_look {
            let scope = reached.config.scope(&reached.cluster_id);
            let (worlds, _) = abandoned(reached).await?;
            if Report::of(&scope, &forecast(reached, &worlds)).writes_nothing() {
                break;
            }
            next_look = clock.now() + FRESH_LOOK;
        }
        clock.sleep_until(clock.now() + PROGRESS).await;
    }
    match keep_gateway {
        true => Ok(Fate::Untouched),
        false => Ok(gateway::let_go(reached, &|| handle.may_begin(clock)).await?),
    }
}

/// What is not gone, and why.
async fn still_there(handle: &Handle) -> anyhow::Result<Fate> {
    let mut lines = String::new();
    for view in handle.services().await? {
        let name = view.object.map_or_else(|| view.key.to_string(), |object| object.to_string());
        let why = view.hold.map_or_else(String::new, |hold| format!(" ({})", hold.text));
        lines.push_str(&format!("\n  {name}: {}{why}", view.state));
    }
    bail!("timed out after {} min; re-run to continue; remaining:{lines}", LIMIT.as_secs() / 60)
}
