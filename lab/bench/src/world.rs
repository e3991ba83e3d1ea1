//! A controller with a cluster in memory, against whatever answers as Azure.
//!
//! Everything between the two is what `sluice run` uses: the loop, the engine, both updaters.
//! Nobody competes for the lease, so it is held for good.

use std::sync::Arc;

use sluice_controller::memory::Cluster;
use sluice_controller::{Azure, Clock, Closed, Config, Controller, Ended, Handle, Inbox};
use sluice_engine::{DefaultOutbound, Engine};
use sluice_model::names::Scope;
use sluice_model::seeded::Seeded;
use sluice_model::{Event, Time};
use sluice_updater::BucketSize;
use tokio::task::JoinHandle;

/// Facts that wait at once at most.
const INBOX_MAX: usize = 1_024;

/// A running controller and its cluster.
#[derive(Debug)]
pub struct World {
    /// The cluster.
    pub cluster: Arc<Cluster>,
    /// The way into the loop.
    pub handle: Handle,
    running: JoinHandle<Ended>,
}

impl World {
    /// Starts a controller that leads, with nothing in its cluster but what `cluster` has.
    pub async fn start<A: Azure, C: Clock>(
        config: Config,
        azure: A,
        clock: C,
        furnish: impl FnOnce(&Cluster),
    ) -> Result<World, Closed> {
        let (cluster, watch) = Cluster::new();
        let (handle, inbox) = Inbox::open(INBOX_MAX);
        tokio::spawn(watch.bring_to(handle.clone()));
        let controller = Controller::new(config, inbox, azure, Arc::clone(&cluster), clock);
        let running = tokio::spawn(controller.run());
        furnish(&cluster);
        cluster.list_all();
        handle.fence(Some(Time::NEVER));
        handle.post(Event::LeadershipGained).await?;
        Ok(World { cluster, handle, running })
    }

    /// Comes back when every service that is wanted has all its addresses in Azure, nothing else
    /// is there, and nothing is under way.
    pub async fn settled(&self) -> Result<(), Closed> {
        self.cluster.brought().await;
        self.handle.wait_until(is_settled).await
    }

    /// Ends the controller in an orderly way.
    pub async fn stop(self) -> anyhow::Result<Ended> {
        self.handle.stop();
        Ok(self.running.await?)
    }
}

/// Everybody is served or gone, and nothing is under way.
pub fn is_settled(engine: &Engine) -> bool {
    engine.initial_sync_done()
        && engine.slots() == (0, 0)
        && engine.services().iter().all(|service| {
            service.wanted
                && service.live
                && service.operation.is_none()
                && service.hold.is_none()
                && service.addresses_programmed == service.addresses_wanted
                && service.addresses_mapped == service.addresses_wanted
        })
}

/// The configuration of a measurement with so many plans at once.
pub fn config(scope: Scope, concurrency: usize, seed: u64) -> Config {
    let mut config = shipped(scope);
    config.engine.slots_max = concurrency;
    Config { seed, ..config }
}

/// The configuration as it ships, without a default outbound service.
pub fn shipped(scope: Scope) -> Config {
    let mut engine = sluice_engine::Config::new(scope);
    engine.default_outbound = DefaultOutbound::Leave;
    Config {
        engine,
        updaters: sluice_updater::Config::default(),
        limits: sluice_controller::Limits::default(),
        seed: 0,
        seeded: Seeded::NONE,
    }
}

/// The same where Azure does not count calls.
pub fn lifted(mut config: Config) -> Config {
    let size = BucketSize { burst: 1_000_000, per_second: 1_000_000 };
    let updaters = &mut config.updaters;
    (updaters.reads, updaters.writes, updaters.deletes) = (size, size, size);
    (updaters.reads_per_window, updaters.writes_per_window) = (10_000_000, 10_000_000);
    config
}
