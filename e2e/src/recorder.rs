//! Watches the Services from the beginning of a story to its end and writes down what they showed.
//!
//! What a Service looks like at the end says nothing about what it looked like in between; a client
//! that had resolved an IP cares. So every version that the watch shows is kept, cut down to the
//! fields that the judge's history needs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Service;
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::{Api, Client, ResourceExt as _};

use crate::judge::cluster::named;
use crate::judge::inbound::INTERNAL;

/// How long it takes until a watch that ended begins again.
const PAUSE: Duration = Duration::from_millis(200);

/// One version of a Service.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Shown {
    /// Its UID.
    pub(crate) uid: String,
    /// `namespace/name`.
    pub(crate) name: String,
    /// It is of type `LoadBalancer`, is there, and is not being deleted.
    pub(crate) wants_an_ip: bool,
    /// It asks for less than is served. If it has no IP yet it gets none; one that it has stays.
    pub(crate) rejected: bool,
    /// The IPs in its status.
    pub(crate) ingress: Vec<String>,
}

/// The record so far.
#[derive(Debug)]
pub(crate) struct Recorder {
    shown: Arc<Mutex<Vec<Shown>>>,
    watching: tokio::task::JoinHandle<()>,
}

impl Recorder {
    /// Begins to watch.
    pub(crate) fn start(client: Client) -> Recorder {
        let shown = Arc::new(Mutex::new(Vec::new()));
        let services = Api::<Service>::all(client);
        let record = Arc::clone(&shown);
        let watching = tokio::spawn(async move {
            let mut version = None;
            loop {
                version = follow(&services, version, &record).await;
                // Always after the same short time: a recorder that waits longer and longer has seen nothing when
                // the judge asks.
                tokio::time::sleep(PAUSE).await;
            }
        });
        Recorder { shown, watching }
    }

    /// What the record does not show yet, of the Services as they are.
    pub(crate) fn behind(&self, services: &[Service]) -> Vec<String> {
        let record = self.shown();
        let is: BTreeMap<String, Shown> =
            services.iter().map(|it| (it.uid().unwrap_or_default(), show(it))).collect();
        let mut last: BTreeMap<&str, &Shown> = BTreeMap::new();
        for it in &record {
            last.insert(&it.uid, it);
        }
        let unseen = is.iter().filter(|(uid, it)| last.get(uid.as_str()) != Some(it));
        let gone = last.values().filter(|it| it.wants_an_ip && !is.contains_key(&it.uid));
        unseen
            .map(|(_, it)| format!("the recorder is behind with {}", it.name))
            .chain(gone.map(|it| format!("the recorder has not seen {} go", it.name)))
            .collect()
    }

    /// Everything that was shown, in order.
    pub(crate) fn shown(&self) -> Vec<Shown> {
        self.shown.lock().expect("no holder of the record panics").clone()
    }
}

impl Shown {
    /// The same Service, gone.
    fn at_its_end(&self) -> Shown {
        Shown { wants_an_ip: false, ingress: Vec::new(), ..self.clone() }
    }
}

/// Writes down what a watch shows until it ends. It begins after a version, or with a list; returns the version to go on
/// from, or nothing if only a list can tell what was missed.
async fn follow(
    services: &Api<Service>,
    version: Option<String>,
    record: &Mutex<Vec<Shown>>,
) -> Option<String> {
    let lock = || record.lock().expect("no holder of the record panics");
    let mut version = match version {
        Some(version) => version,
        None => {
            let list = services.list(&ListParams::default()).await.ok()?;
            let seen: Vec<Shown> = list.items.iter().map(show).collect();
            let mut record = lock();
            // A Service that is not in the list was deleted while there was no watch.
            let gone = |it: &&Shown| !seen.iter().any(|listed| listed.uid == it.uid);
            let gone: Vec<Shown> = record.iter().filter(gone).map(Shown::at_its_end).collect();
            gone.into_iter().chain(seen).for_each(|it| take_down(&mut record, it));
            list.metadata.resource_version?
        }
    };
    let events = services.watch(&WatchParams::default(), &version).await.ok()?;
    let mut events = std::pin::pin!(events);
    while let Some(event) = events.next().await {
        match event.ok()? {
            WatchEvent::Added(service) | WatchEvent::Modified(service) => {
                take_down(&mut lock(), show(&service));
                version = service.resource_version()?;
            }
            WatchEvent::Deleted(service) => {
                take_down(&mut lock(), show(&service).at_its_end());
                version = service.resource_version()?;
            }
            WatchEvent::Bookmark(bookmark) => version = bookmark.metadata.resource_version,
            WatchEvent::Error(_) => return None,
        }
    }
    Some(version)
}

/// Adds a version, unless it shows what the last one of its Service did.
fn take_down(record: &mut Vec<Shown>, seen: Shown) {
    if record.iter().rev().find(|it| it.uid == seen.uid) != Some(&seen) {
        record.push(seen);
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.watching.abort();
    }
}

fn show(service: &Service) -> Shown {
    let is_load_balancer =
        service.spec.as_ref().and_then(|spec| spec.type_.as_deref()) == Some("LoadBalancer");
    let status = service.status.as_ref().and_then(|status| status.load_balancer.as_ref());
    let ingress: Vec<String> =
        status.iter().flat_map(|it| it.ingress.iter().flatten()).filter_map(|it| it.ip.clone()).collect();
    let rejected = service.annotations().get(INTERNAL).is_some_and(|value| value == "true");
    let deleting = service.metadata.deletion_timestamp.is_some();
    Shown {
        uid: service.metadata.uid.clone().unwrap_or_default(),
        name: named(service),
        wants_an_ip: is_load_balancer && !deleting,
        rejected,
        ingress,
    }
}
