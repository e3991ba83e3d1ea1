//! Where a story is played: both worlds, the controller between them, and whoever tells of it.

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

/// How long anything may take in Azure's time before a story gives up.
const PATIENCE: Duration = Duration::from_secs(20 * 60);
/// How long it may take at least on a machine that is slow itself.
const PATIENCE_REAL: Duration = Duration::from_secs(60);
/// So many differences are told; more are counted.
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
    /// For the controller's own doors, past any proxy.
    http: reqwest::Client,
    /// How long anything may take, in Azure's time.
    pub(super) patience: Duration,
}

/// What a look has found.
pub(super) enum Look {
    /// It is so.
    Yes,
    /// It is not, and why.
    NotYet(String),
}

impl Look {
    /// Yes if it is so, else what is missing.
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
        let http =
            reqwest::Client::builder().no_proxy().build().expect("a client without wishes can be made");
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

    /// Both worlds as they are now.
    pub(super) async fn look(&self) -> Result<Seen> {
        let (cluster, azure) = tokio::try_join!(Cluster::read(&self.client), self.azure.state())?;
        Ok(Seen { cluster, azure })
    }

    /// Waits until something is so; says what it waited for if that does not come.
    pub(super) async fn until(&mut self, what: &str, mut look: impl FnMut(&Seen) -> Look) -> Result<Seen> {
        let until = self.pace.now() + self.patience;
        let _waiting = self.narrator.waiting(what);
        loop {
            let seen = self.look().await?;
            let Look::NotYet(missing) = look(&seen) else { return Ok(seen) };
            if self.pace.now() > until {
                bail!("waited {} for this: {what}; but {missing}", span(self.patience));
            }
            next_change(&mut self.changes, &mut self.controller).await?;
        }
    }

    /// The same for what only one side can say; `ask` is asked at every change, and says what is missing.
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
                bail!("waited {} for this: {what}; but {missing}", span(self.patience));
            }
            next_change(&mut self.changes, &mut self.controller).await?;
        }
    }

    /// The same for something that is counted, with a bar.
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
                bail!("waited {} until {of} {what}; only {done} do", span(self.patience));
            }
            next_change(&mut self.changes, &mut self.controller).await?;
        }
    }

    /// Waits until both worlds agree, looked at from outside.
    pub(super) async fn converged(&mut self) -> Result<Seen> {
        let until = self.pace.now() + self.patience;
        let _waiting = self.narrator.waiting("Kubernetes and Azure agree");
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

    /// Asks the controller for one of its views.
    pub(super) async fn view<T: serde::de::DeserializeOwned>(&self, path: &str) -> Result<T> {
        let Some(places) = self.places else { bail!("the controller was never started") };
        let url = format!("http://{}/api/v1/{path}", places.api);
        Ok(self.http.get(url).send().await?.error_for_status()?.json().await?)
    }
}

/// Comes back when there may be something to see; a controller that has ended ends the story.
pub(super) async fn next_change(changes: &mut Changes, controller: &mut Controller) -> Result<()> {
    tokio::select! {
        () = changes.next() => Ok(()),
        failure = controller.ended() => Err(failure.error),
    }
}

/// The two worlds do not agree, however long one waits.
#[derive(Debug)]
pub(super) struct Unconverged {
    pub(super) wrong: Vec<String>,
    waited: Duration,
}

impl std::error::Error for Unconverged {}

impl std::fmt::Display for Unconverged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let count = self.wrong.len();
        write!(f, "after {} Kubernetes and Azure do not agree; {count} differ:", span(self.waited))?;
        for line in self.wrong.iter().take(DIFFERENCES_MAX) {
            write!(f, "\n  {line}")?;
        }
        if count > DIFFERENCES_MAX {
            write!(f, "\n  … and {} more", count - DIFFERENCES_MAX)?;
        }
        Ok(())
    }
}
