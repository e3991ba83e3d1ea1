//! Lists, watches, and lists again: one task per kind.
//!
//! [`Watches::run`] tells every complete list as one [`Event::Relisted`] with the version that the server gave it,
//! then single changes in the order of the server, and lists again when that order is lost. What to ask for next
//! is decided by `cycle`, a machine without clock or wire; `feed` sends the requests and reads the streams, `wire`
//! takes their bytes apart, and each object is cut down and told as soon as its line is there: there is no store.
//!
//! Missing on purpose: a cache. The engine holds what it needs, in its own way, and deletions that
//! happened while nobody watched show by their absence from the next list. Only the few parts of managed Services that
//! we write to are kept ([`LastSeen`]).

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kube::Client;
use sluice_model::event::Event;
use sluice_model::kube::Kind;
use tokio::sync::{Notify, OnceCell, watch};
use tokio::task::JoinSet;

use crate::connect::cluster_id;
use crate::convert::Selection;

mod cycle;
mod epoch;
mod feed;
mod gathered;
mod kinds;
mod listing;
mod progress;
mod requests;
#[cfg(test)]
mod tests;
mod trouble;
mod wire;

pub use crate::seen::LastSeen;
pub use epoch::Offsets;
pub use listing::{ListError, Listed, list_all};
pub use progress::{KindProgress, Progress};

use feed::Feed;
use kinds::{Nodes, Pods, Services, Slices};

/// How long until it is asked again which cluster this is.
const LEARN_AGAIN: Duration = Duration::from_secs(30);

/// Where events go.
pub trait Facts: Clone + Send + Sync + 'static {
    /// Hands one event over, and waits while there are too many.
    fn tell(&self, event: Event) -> impl Future<Output = Result<(), Closed>> + Send;
}

/// Nobody listens any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the control loop has ended")]
pub struct Closed;

/// The watches of all four kinds; cheap to clone.
#[derive(Clone)]
pub struct Watches {
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    client: Client,
    selection: Selection,
    /// This API server does not stream lists; one kind learns it for all.
    pages_only: AtomicBool,
    asked: [Notify; 4],
    progress: watch::Sender<Progress>,
    /// What names the cluster, once it is known.
    cluster: OnceCell<String>,
    offsets: Offsets,
    seen: LastSeen,
}

impl Watches {
    /// Watches that have not begun.
    pub fn new(client: Client, selection: Selection) -> Watches {
        let shared = Shared {
            client,
            selection,
            pages_only: AtomicBool::new(false),
            asked: Default::default(),
            progress: watch::Sender::default(),
            cluster: OnceCell::new(),
            offsets: Offsets::default(),
            seen: LastSeen::default(),
        };
        Watches { shared: Arc::new(shared) }
    }

    /// Has one kind listed anew. A list that is under way counts.
    pub fn relist(&self, kind: Kind) {
        self.shared.asked[kind as usize].notify_one();
    }

    /// How far each kind is.
    pub fn progress(&self) -> watch::Receiver<Progress> {
        self.shared.progress.subscribe()
    }

    /// What is added to the server's versions when they are told.
    pub fn offsets(&self) -> Offsets {
        self.shared.offsets.clone()
    }

    /// Managed Services as the watch last showed them, for the writes to them.
    pub fn last_seen(&self) -> LastSeen {
        self.shared.seen.clone()
    }

    /// Tells all that happens, until nobody listens any more. To be run once.
    pub async fn run(&self, facts: impl Facts) {
        let mut feeds = JoinSet::new();
        feeds.spawn(Feed::<Services, _>::new(Arc::clone(&self.shared), facts.clone()).run());
        feeds.spawn(Feed::<Slices, _>::new(Arc::clone(&self.shared), facts.clone()).run());
        feeds.spawn(Feed::<Nodes, _>::new(Arc::clone(&self.shared), facts.clone()).run());
        feeds.spawn(Feed::<Pods, _>::new(Arc::clone(&self.shared), facts).run());
        let first = tokio::select! {
            biased;
            // When one finds nobody listening, the others need not find out for themselves.
            first = feeds.join_next() => first,
            () = self.shared.learn_cluster() => None,
        };
        if let Some(Err(failed)) = first
            && let Ok(panic) = failed.try_into_panic()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

impl Shared {
    fn streams(&self) -> bool {
        !self.pages_only.load(Ordering::Relaxed)
    }

    fn page_lists(&self) {
        self.pages_only.store(true, Ordering::Relaxed);
    }

    /// Finds out which cluster this is, and never comes back.
    async fn learn_cluster(&self) {
        while let Err(trouble) = self.cluster.get_or_try_init(|| cluster_id(&self.client)).await {
            tracing::debug!(%trouble, "cluster ID not available yet");
            tokio::time::sleep(LEARN_AGAIN).await;
        }
        std::future::pending().await
    }

    /// Why it is not certain that this is the cluster that we began with; `None` when it is.
    async fn doubt_about_cluster(&self) -> Option<String> {
        let Some(known) = self.cluster.get() else {
            return Some("the ID of the original cluster is not known".into());
        };
        match cluster_id(&self.client).await {
            Ok(now) if now == *known => None,
            Ok(now) => Some(format!("the API server now serves cluster {now} instead of {known}")),
            Err(trouble) => Some(format!("cannot read the cluster ID: {trouble}")),
        }
    }

    async fn relist_asked(&self, kind: Kind) {
        self.asked[kind as usize].notified().await;
    }

    fn forget_asked(&self, kind: Kind) {
        use futures::FutureExt;
        let _ = self.asked[kind as usize].notified().now_or_never();
    }

    fn note(&self, kind: Kind, change: impl FnOnce(&mut KindProgress)) {
        self.progress.send_if_modified(|progress| {
            let before = progress.of(kind).clone();
            change(progress.of_mut(kind));
            *progress.of(kind) != before
        });
    }
}
