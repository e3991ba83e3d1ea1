//! An emulator process, the product's client for it, and a controller with a cluster in memory.

use std::path::PathBuf;

use anyhow::Context as _;
use sluice_arm::Client;
use sluice_commands::pace::FastClock;
use sluice_controller::{Azure, Config};
use sluice_emulator_client::{ANY_PORT, Emulator};

use super::azure;
use super::workload;
use super::world::World;

/// Everything that a measurement drives. The emulator's folder goes with it.
#[derive(Debug)]
pub struct Rig {
    /// The emulator.
    pub process: Emulator,
    /// The controller and its cluster: nodes and a gateway, and nothing else yet.
    pub world: World,
    /// As fast as the emulator's.
    pub clock: FastClock,
    _folder: tempfile::TempDir,
}

impl Rig {
    /// Starts an emulator with these options and a controller that leads.
    pub async fn start<A: Azure>(
        program: Option<&PathBuf>,
        time_factor: f64,
        options: &[&str],
        config: impl FnOnce(sluice_model::names::Scope) -> Config,
        sender: impl FnOnce(Client) -> A,
    ) -> anyhow::Result<Rig> {
        let program = match program {
            Some(program) => program.clone(),
            None => std::env::current_exe().context("cannot determine the path of this program")?,
        };
        let factor = format!("--time-factor={time_factor}");
        let options = [&[factor.as_str()], options].concat();
        let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
        let log = folder.path().join("emulator.log");
        let process = Emulator::start(&program, ANY_PORT, &options, &log).await?;
        azure::prepare_network(&process.client).await?;
        let greeting = &process.client.greeting;
        let clock = FastClock::start(time_factor);
        let sender = sender(azure::product_client(greeting)?);
        let world = World::start(config(azure::scope(greeting)), sender, clock, workload::furnish).await?;
        world.handle.wait_for_initial_sync().await?;
        Ok(Rig { process, world, clock, _folder: folder })
    }
}
