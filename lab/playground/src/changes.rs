//! Says when to look again: something changed in Kubernetes, or the controller has something new to say.
//!
//! It says nothing about what changed; whoever waits looks at both worlds itself. Azure cannot announce
//! itself, but it changes because the controller has done something, and that is heard.

use std::future::Future;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Node, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{DynamicObject, WatchParams};
use kube::{Api, Client};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::kinds::untyped;

/// How often somebody is woken at most, and how soon a stream that broke is opened again.
const PACE: Duration = Duration::from_millis(100);
/// The longest time without a look: for what changes in Azure by itself, as a throttling that ends.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// Ears in both worlds; closed when it is dropped.
pub(super) struct Changes {
    heard: watch::Receiver<u64>,
    bell: watch::Sender<u64>,
    ears: JoinSet<()>,
}

impl Changes {
    /// Listens to Kubernetes from now on.
    pub(super) fn of(client: &Client) -> Changes {
        let (bell, heard) = watch::channel(0);
        let mut ears = JoinSet::new();
        ears.spawn(ring(&bell, untyped::<Service>(client)));
        ears.spawn(ring(&bell, untyped::<EndpointSlice>(client)));
        ears.spawn(ring(&bell, untyped::<Node>(client)));
        ears.spawn(ring(&bell, untyped::<Pod>(client)));
        ears.spawn(ring(&bell, untyped::<Deployment>(client)));
        Changes { heard, bell, ears }
    }

    /// Listens to the controller at this address as well, now and after every restart of it.
    pub(super) fn hear_controller(&mut self, url: &str, http: &reqwest::Client) {
        let (bell, url, http) = (self.bell.clone(), format!("{url}/api/v1/events"), http.clone());
        self.ears.spawn(async move {
            loop {
                if let Ok(mut stream) = http.get(&url).send().await {
                    while let Ok(Some(_)) = stream.chunk().await {
                        bell.send_modify(|rung| *rung += 1);
                    }
                }
                tokio::time::sleep(PACE).await;
            }
        });
    }

    /// Comes back when there may be something to see.
    pub(super) async fn next(&mut self) {
        // Many changes come at once; one look sees them all.
        tokio::time::sleep(PACE).await;
        // Nobody rings any more only when this is dropped.
        let _ = tokio::time::timeout(HEARTBEAT, self.heard.changed()).await;
    }
}

/// Rings at every change of a kind.
fn ring(bell: &watch::Sender<u64>, api: Api<DynamicObject>) -> impl Future<Output = ()> + Send + 'static {
    let bell = bell.clone();
    async move {
        loop {
            // From version 0: the stream begins with everything that is there, so nothing is missed between two streams.
            if let Ok(events) = api.watch(&WatchParams::default(), "0").await {
                let mut events = std::pin::pin!(events);
                while let Some(Ok(_)) = events.next().await {
                    bell.send_modify(|rung| *rung += 1);
                }
            }
            tokio::time::sleep(PACE).await;
        }
    }
}
