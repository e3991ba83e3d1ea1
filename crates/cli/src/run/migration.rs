//! Moving from the predecessor: its finalizer goes off pods, once, as soon as we lead.

use std::time::Duration;

use kube::Client;
use sluice_controller::Standing;
use sluice_k8s::Trouble;
use sluice_k8s::migrate::{Released, release_pods};
use sluice_view::overview::Role;
use tokio::sync::watch;

/// How long an API server that is away is left alone.
const RETRY: Duration = Duration::from_secs(30);
/// More names than these are counted.
const NAMED_MAX: usize = 20;

/// Waits until we lead, and releases all pods; comes back when that is done or cannot be.
pub(crate) async fn release(
    client: Client,
    mut standing: watch::Receiver<Standing>,
    may_begin: impl Fn() -> bool,
) {
    if standing.wait_for(|it| it.role == Role::Leader).await.is_err() {
        return;
    }
    tracing::info!("migration: pods that the predecessor held are released");
    loop {
        match release_pods(&client, &may_begin).await {
            Ok(outcome) => return say(&outcome),
            Err(trouble @ Trouble::Unavailable(_)) => {
                tracing::warn!("migration: pods cannot be listed, and it is tried again: {trouble}");
                tokio::time::sleep(RETRY).await;
            }
            Err(trouble) => {
                tracing::error!("migration: pods cannot be released before the next start: {trouble}");
                return;
            }
        }
    }
}

fn say(outcome: &Released) {
    let Released { seen, released, left } = outcome;
    tracing::info!(seen, released, left = left.len(), "migration: done");
    for (pod, why) in left.iter().take(NAMED_MAX) {
        tracing::warn!(%pod, "migration: the predecessor's finalizer stays until the next start: {why}");
    }
}
