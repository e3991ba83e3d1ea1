//! The controller of the playground: the same code as `sluice run`, with a configuration file of its own.
//!
//! It reads that file, prepares and works exactly as it does in a cluster, and speaks HTTPS to both worlds.
//! It can be told to end, as by SIGTERM, and it can be dropped in the middle of everything, as by `kill -9`:
//! all that it holds in memory is gone, its lease is not given back, and what is on the wire is nobody's.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::anyhow;
use sluice_commands::config::{self, Assignment, ConfigArguments, Environment};
use sluice_commands::failure::{Failure, exit};
use sluice_commands::run::prepare;
use sluice_commands::run::signals::{Signal, Signals};
use sluice_commands::run::supervise;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// How often a port that the last life had is tried again, and how long between.
const PORT_TRIES: u32 = 100;
const PORT_PAUSE: Duration = Duration::from_millis(20);

/// The controller, alive or not.
pub(super) struct Controller {
    config: PathBuf,
    kubeconfig: PathBuf,
    time_factor: f64,
    places: Option<Places>,
    life: Option<Life>,
}

/// Where it listens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Places {
    /// `/livez`, `/readyz` and `/metrics`.
    pub(super) health: SocketAddr,
    /// The API and the dashboard.
    pub(super) api: SocketAddr,
}

struct Life {
    teller: mpsc::Sender<Signal>,
    task: JoinHandle<Result<(), Failure>>,
}

impl Controller {
    /// One that is not started.
    pub(super) fn new(config: &Path, kubeconfig: &Path, time_factor: f64) -> Controller {
        Controller {
            config: config.to_owned(),
            kubeconfig: kubeconfig.to_owned(),
            time_factor,
            places: None,
            life: None,
        }
    }

    /// Starts it; it listens at the same places in every life.
    pub(super) async fn start(&mut self) -> Result<Places, Failure> {
        let set: Vec<Assignment> = self
            .places
            .iter()
            .flat_map(|places| {
                [("health", places.health), ("api", places.api)]
                    .map(|(key, address)| Assignment::new(format!("sluice.listen.{key}={address}")))
            })
            .collect();
        // What happens to be in the environment of a person at play is not meant for the playground.
        let loaded =
            config::load(Some(&self.config), &set, &Environment::from_iter::<[(String, String); 0]>([]))?;
        let arguments = ConfigArguments {
            config: Some(self.config.clone()),
            set,
            kubeconfig: Some(self.kubeconfig.clone()),
            context: None,
        };
        let mut tries = 0;
        let prepared = loop {
            match prepare::prepare(&arguments, &loaded.config).await {
                // What a crash leaves open is closed in a moment.
                Err(failure)
                    if failure.code == exit::LISTEN && self.places.is_some() && tries < PORT_TRIES =>
                {
                    tries += 1;
                    tokio::time::sleep(PORT_PAUSE).await;
                }
                prepared => break prepared?.with_time_factor(self.time_factor),
            }
        };
        let places = Places { health: prepared.health_address()?, api: prepared.api_address()? };
        self.places = Some(places);
        let (teller, mut signals) = Signals::told();
        let task = tokio::spawn(async move { supervise::work(prepared, &mut signals, &|_| ()).await });
        self.life = Some(Life { teller, task });
        Ok(places)
    }

    /// Tells it to end, as SIGTERM does, and waits until it has.
    pub(super) async fn stop(&mut self) -> Result<(), Failure> {
        let Some(life) = self.life.take() else { return Ok(()) };
        // One that has ended already does not listen; how it ended is in the task.
        let _ = life.teller.send(Signal::End).await;
        life.task.await.map_err(|error| anyhow!("the controller crashed: {error}"))?
    }

    /// Drops it in the middle of everything.
    pub(super) async fn crash(&mut self) {
        if let Some(life) = self.life.take() {
            life.task.abort();
            let _ = life.task.await;
        }
    }

    /// Comes back if it ends by itself, and says why.
    pub(super) async fn ended(&mut self) -> Failure {
        let Some(life) = &mut self.life else { return std::future::pending().await };
        let ended = (&mut life.task).await;
        self.life = None;
        match ended {
            Ok(Ok(())) => anyhow!("the controller exited unexpectedly").into(),
            Ok(Err(failure)) => failure,
            Err(error) => anyhow!("the controller crashed: {error}").into(),
        }
    }
}
