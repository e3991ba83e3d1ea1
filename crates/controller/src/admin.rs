//! The admin server: what people and their tools may see of a running controller. It only reads.
//!
//! Two routers for two listeners. [`Admin::health_router`] is for the pod's address: `/livez`,
//! `/readyz` and `/metrics`. [`Admin::api_router`] is for loopback, or for others with a token and
//! TLS: `/api/v1/…`, as JSON in the shapes of `sluice-view`, and the dashboard's pages at `/`.
//!
//! Every answer is a question to the loop, answered between two of its turns and given up after a
//! while, so that a loop that hangs is seen here and never hidden behind old numbers.
//!
//! Missing on purpose: any way to change something. Log levels change by configuration or signal,
//! everything else through Kubernetes.

mod access;
mod almanac;
mod api;
mod dashboard;
mod done;
mod events;
mod health;
mod overview;
mod query;
mod sentences;
mod serve;
mod words;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use sluice_engine::Engine;
use sluice_k8s::watch::Progress;
use sluice_model::kube::Kind;
use sluice_updater::Updaters;
use sluice_view::overview::{Role, WatchLine};
use tokio::sync::{Semaphore, watch};

use crate::clock::{Clock, Monotonic};
use crate::inbox::{Closed, Handle, Inside};
use crate::metrics::Calls;
pub use crate::standing::Standing;
use crate::updaters::Tally;

pub use access::{Access, Exposed};
pub use almanac::Almanac;
pub use serve::{ServeLimits, serve};
pub(crate) use words::kind_word;

/// How long the loop may take to answer before it counts as hanging. A turn takes milliseconds; a list
/// of 150,000 pods a second or two.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// Streams of `/api/v1/events` at once.
const STREAMS_MAX: usize = 32;

/// What this replica is called and serves.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// The replica, as it stands in the lease.
    pub identity: String,
    /// The cluster id in our tags.
    pub cluster_id: String,
    /// The version of the program.
    pub version: String,
}

/// How many calls may be made in Azure's window of five minutes: our share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WindowLimits {
    /// Reads.
    pub reads: u32,
    /// Writes and deletes.
    pub writes: u32,
}

impl From<&sluice_updater::Config> for WindowLimits {
    fn from(config: &sluice_updater::Config) -> WindowLimits {
        let share = |calls: u32| {
            u32::try_from(u64::from(calls) * u64::from(config.share_permille) / 1000).unwrap_or(u32::MAX)
        };
        WindowLimits { reads: share(config.reads_per_window), writes: share(config.writes_per_window) }
    }
}

/// How the watches stand, asked for anew with every answer.
pub type WatchLines = Arc<dyn Fn() -> Vec<WatchLine> + Send + Sync>;

/// The watches of a real cluster.
pub fn watch_lines(progress: watch::Receiver<Progress>) -> WatchLines {
    Arc::new(move || {
        let progress = progress.borrow();
        let line = |kind: Kind| {
            let of = progress.of(kind);
            WatchLine {
                kind: kind_word(kind).into(),
                listed: of.listed,
                objects: of.objects as u64,
                lists: of.lists,
                restarts: of.restarts,
                skipped: of.skipped,
                trouble: of.trouble.clone(),
            }
        };
        Kind::ALL.map(line).to_vec()
    })
}

/// What the admin server looks at.
#[derive(Clone)]
pub struct Parts {
    /// The loop.
    pub handle: Handle,
    /// Wall time.
    pub almanac: Almanac,
    /// Who we are.
    pub about: About,
    /// Whether we lead.
    pub standing: watch::Receiver<Standing>,
    /// The watches of Kubernetes.
    pub watches: WatchLines,
    /// Calls to Azure, counted.
    pub calls: Arc<Calls>,
    /// Our share of Azure's windows.
    pub window_limits: WindowLimits,
    /// Who may look at the API.
    pub access: Access,
}

/// The admin server.
#[derive(Clone)]
pub struct Admin(Arc<Room>);

/// What all answers share.
pub(crate) struct Room {
    pub(crate) parts: Parts,
    /// Its limits concern people and probes, so they are in real time whatever the loop's clock does.
    clock: Monotonic,
    streams: Arc<Semaphore>,
    memory: dashboard::Memory,
}

impl std::fmt::Debug for Admin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Admin").field("about", &self.0.parts.about).finish_non_exhaustive()
    }
}

impl Admin {
    /// An admin server that nobody listens to yet.
    pub fn new(parts: Parts) -> Admin {
        Admin(Arc::new(Room {
            clock: Monotonic::start(),
            streams: Arc::new(Semaphore::new(STREAMS_MAX)),
            memory: dashboard::Memory::default(),
            parts,
        }))
    }

    /// `/livez`, `/readyz` and `/metrics`.
    pub fn health_router(&self) -> Router {
        health::router(Arc::clone(&self.0))
    }

    /// `/api/v1/…` and the dashboard at `/`, behind the checks of [`Access`].
    pub fn api_router(&self) -> Router {
        let pages = dashboard::router(Arc::clone(&self.0));
        access::guard(api::router(Arc::clone(&self.0)).merge(pages), &self.0.parts.access)
    }

    /// Takes samples for the dashboard's charts, for ever; to be run beside the listener.
    pub fn keep_history(&self) -> impl Future<Output = ()> + Send + use<> {
        let room = Arc::clone(&self.0);
        async move { room.keep_history().await }
    }
}

/// Why the loop gave no answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Silence {
    /// It has ended.
    Ended,
    /// It did not answer in time.
    Hangs,
}

impl Silence {
    pub(crate) fn words(self) -> String {
        match self {
            Silence::Ended => "the control loop has stopped; the process is shutting down".into(),
            Silence::Hangs => format!("the control loop did not answer within {} s", ANSWER_LIMIT.as_secs()),
        }
    }
}

impl Room {
    /// Asks the loop, and gives up after a while.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Engine, &Updaters, &Tally) -> T + Send + 'static,
    ) -> Result<T, Silence> {
        self.inquire(move |inside| question(inside.engine, inside.updaters, inside.tally)).await
    }

    /// The same, with all that can be looked at.
    pub(crate) async fn inquire<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Inside<'_>) -> T + Send + 'static,
    ) -> Result<T, Silence> {
        tokio::select! {
            biased;
            answer = self.parts.handle.look(question) => answer.map_err(|Closed| Silence::Ended),
            () = self.clock.sleep_until(self.clock.now() + ANSWER_LIMIT) => Err(Silence::Hangs),
        }
    }

    pub(crate) fn standing(&self) -> Standing {
        self.parts.standing.borrow().clone()
    }

    fn leads(&self) -> bool {
        self.parts.standing.borrow().role == Role::Leader
    }

    /// Streams of `/api/v1/events` that are open.
    pub(crate) fn streams_open(&self) -> usize {
        STREAMS_MAX - self.streams.available_permits().min(STREAMS_MAX)
    }
}
