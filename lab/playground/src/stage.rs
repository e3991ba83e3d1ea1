//! Everything that a story works with: Kubernetes, Azure, the controller and the narrator.

use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use kube::Client;
use sluice_commands::failure::Failure;

use super::azure::Azure;
use super::changes::Changes;
use super::check::{Seen, differences};
use super::cluster::Cluster;
use super::controller::{Controller, Places};
use super::narrator::Narrator;
use super::pace::{Pace, span};

/// The limit of each wait of a story, in emulated time.
const PATIENCE: Duration = Duration::from_secs(20 * 60);
/// The minimum of this limit in real time, for slow machines.
const PATIENCE_REAL: Duration = Duration::from_secs(60);
/// The number of differences that are listed; the others are counted.
const DIFFERENCES_MAX: usize = 12;

/// The stage.
pub(super) struct Stage {
    pub(super) narrator: Narrator,
    pub(super) pace: Pace,
    pub(super) azure: Azure,
    pub(super) client: Client,
    pub(super) controller: Controller,
    pub(super) places: Option<Places>,
    pub(super) changes: Changes,
    /// For the API of the controller, without a proxy.
    http: reqwest::Client,
    /// The limit of each wait, in emulated time.
    pub(super) patience: Duration,
}

/// Whether a condition is met.
pub(super) enum Look {
    /// It is met.
    Yes,
    /// It is not met, and the current state.
    NotYet(String),
}

impl Look {
    /// `Yes` if the condition is met, else the current state.
    pub(super) fn at(is_so: bool, missing: impl FnOnce() -> String) -> Look {
        if is_so { Look::Yes } else { Look::NotYet(missing()) }
    }
}

impl Stage {
    /// A stage whose controller is not started yet.
    pub(super) fn new(
        narrator: Narrator,
        pace: Pace,
        azure: Azure,
        client: Client,
        controller: Controller,
    ) -> Stage {
        let changes = Changes::of(&client);
        let patience = PATIENCE.max(PATIENCE_REAL.mul_f64(PATIENCE.div_duration_f64(pace.real(PATIENCE))));
        let http = reqwest::Client::builder()
            .no_proxy()
            .build()
            .expect("a client with default options can be built");
        Stage { narrator, pace, azure, client, controller, places: None, changes, http, patience }
    }

    /// Starts the controller.
    pub(super) async fn start_controller(&mut self) -> Result<Places, Failure> {
        let places = self.controller.start().await?;
        if self.places.is_none() {
            self.changes.hear_controller(&format!("http://{}", places.api), &self.http);
        }
        self.places = Some(places);
        Ok(places)
    }

    /// Reads Kubernetes and Azure.
    pub(super) async fn look(&self) -> Result<Seen> {
        let (cluster, azure) = tokio::try_join!(Cluster::read(&self.client), self.azure.state())?;
        Ok(Seen { cluster, azure })
    }

    /// Waits until a condition is met. The error names the condition and the current state.
    pub(super) async fn until(&mut self, what: &str, mut look: impl FnMut(&Seen) -> Look) -> Result<Seen> {
        let until = self.pace.now() + self.patience;
        let _waiting = self.narrator.waiting(what);
        loop {
            let seen = self.look().await?;
            let Look::NotYet(missing) = look(&seen) else { return Ok(seen) };
            if self.pace.now() > until {
                bail!("{}", self.timed_out(what, &missing));
            }
            next_change(&mut self.changes, &mut self.controller).await?;
        }
    }

    /// Like `until`, with an asynchronous condition, which returns the current state while it is not met.
    pub(super) async fn until_told<T>(
        &mut self,
        what: &str,
        mut ask: impl AsyncFnMut(&Stage) -> Result<Result<T, String>>,
    ) -> Result<T> {
        let until = self.pace.now() + self.patience;
        loop {
            let missing = match ask(self).await? {
                Ok(told) => return Ok(told),
                Err(missing) => missing,
            };
            if self.pace.now() > until {
                bail!("{}", self.timed_out(what, &missing));
            }
            next_change(&mut self.changes, &mut self.controller).await?;
        }
    }

    /// Like `until`, for something that is counted, with a bar.
    pub(super) async fn until_all(
        &mut self,
        what: &str,
        of: usize,
        mut count: impl FnMut(&Seen) -> usize,
    ) -> Result<Seen> {
        let until = self.pace.now() + self.patience;
        let mut bar = self.narrator.bar(what, of);
        loop {
            let (cluster, azure) = tokio::try_join!(Cluster::read(&self.client), self.azure.state())?;
            let seen = Seen { cluster, azure };
            let done = count(&seen);
            bar.at(done);
            if done >= of {
                drop(bar);
                return Ok(seen);
            }
            if self.pace.now() > until {
                bail!("{}", self.timed_out(&format!("{of} {what}"), &format!("{done} of {of}")));
            }
            next_change(&mut self.changes, &mut self.controller).await?;
        }
    }

    /// Waits until Kubernetes and Azure match.
    pub(super) async fn converged(&mut self) -> Result<Seen> {
        let until = self.pace.now() + self.patience;
        let _waiting = self.narrator.waiting("Kubernetes and Azure match");
        loop {
            let seen = self.look().await?;
            let wrong = differences(&seen);
            if wrong.is_empty() {
                return Ok(seen);
            }
            if self.pace.now() > until {
                return Err(anyhow!(Unconverged { wrong, waited: self.patience }));
            }
            next_change(&mut self.changes, &mut self.controller).await?;
        }
    }

    /// The emulated time since a moment of [`Pace`], in words.
    pub(super) fn since(&self, began: Duration) -> String {
        span(self.pace.now().saturating_sub(began))
    }

    fn timed_out(&self, what: &str, now: &str) -> String {
        format!("timed out after {} (emulated) waiting until {what}; now: {now}", span(self.patience))
    }

    /// Reads a view of the controller's API.
    pub(super) async fn view<T: serde::de::DeserializeOwned>(&self, path: &str) -> Result<T> {
        let Some(places) = self.places else { bail!("the controller is not started") };
        let url = format!("http://{}/api/v1/{path}", places.api);
        Ok(self.http.get(url).send().await?.error_for_status()?.json().await?)
    }
}

/// Waits until something may have changed; fails if the controller has exited.
pub(super) async fn next_change(changes: &mut Changes, controller: &mut Controller) -> Result<()> {
    tokio::select! {
        () = changes.next() => Ok(()),
        failure = controller.ended() => Err(failure.error),
    }
}

/// Kubernetes and Azure still differ after the limit of a wait.
#[derive(Debug)]
pub(super) struct Unconverged {
    pub(super) wrong: Vec<String>,
    waited: Duration,
}

impl std::error::Error for Unconverged {}

impl std::fmt::Display for Unconverged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let count = self.wrong.len();
        let differences = super::narrator::count(count as u64, "difference");
        write!(f, "Kubernetes and Azure differ after {} (emulated); {differences}:", span(self.waited))?;
        for line in self.wrong.iter().take(DIFFERENCES_MAX) {
            write!(f, "\n  {line}")?;
        }
        if count > DIFFERENCES_MAX {
            write!(f, "\n  … and {} more", count - DIFFERENCES_MAX)?;
        }
        Ok(())
    }
}
