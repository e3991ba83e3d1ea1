//! Watches the Services from the beginning of a story to its end and writes down what they showed.
//!
//! What a Service looks like at the end says nothing about what it looked like in between; a client
//! that had resolved an IP cares. So every version that the watch shows is kept, cut down to the
//! fields that the judge's history needs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Service;
use kube::{Api, Client, ResourceExt as _};
use kube_runtime::watcher;

use crate::judge::cluster::named;

/// How long it takes until a watch that broke begins anew.
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
        let record = Arc::clone(&shown);
        let watching = tokio::spawn(async move {
            let services = Api::<Service>::all(client);
            let mut versions = watcher(services, watcher::Config::default()).boxed();
            let mut listed = BTreeSet::new();
            while let Some(version) = versions.next().await {
                if version.is_err() {
                    // Whatever went wrong, the watch begins anew with a list, and soon: who waits longer and
                    // longer has seen nothing when the judge asks.
                    tokio::time::sleep(PAUSE).await;
                }
                let mut record = record.lock().expect("nobody panics with the record in hand");
                match version {
                    Ok(watcher::Event::Init) => listed.clear(),
                    Ok(watcher::Event::InitApply(service)) => {
                        let seen = show(&service);
                        listed.insert(seen.uid.clone());
                        take_down(&mut record, seen);
                    }
                    // Who is not in a list went while nobody watched.
                    Ok(watcher::Event::InitDone) => {
                        let gone = |it: &&Shown| !listed.contains(&it.uid);
                        let gone: Vec<Shown> = record.iter().filter(gone).map(Shown::at_its_end).collect();
                        gone.into_iter().for_each(|it| take_down(&mut record, it));
                    }
                    Ok(watcher::Event::Apply(service)) => take_down(&mut record, show(&service)),
                    Ok(watcher::Event::Delete(service)) => {
                        take_down(&mut record, show(&service).at_its_end());
                    }
                    Err(_) => {}
                }
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
        self.shown.lock().expect("nobody panics with the record in hand").clone()
    }
}

impl Shown {
    /// The same Service, gone.
    fn at_its_end(&self) -> Shown {
        Shown { wants_an_ip: false, ingress: Vec::new(), ..self.clone() }
    }
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
    Shown {
        uid: service.metadata.uid.clone().unwrap_or_default(),
        name: named(service),
        wants_an_ip: is_load_balancer && service.metadata.deletion_timestamp.is_none(),
        ingress: status
            .iter()
            .flat_map(|it| it.ingress.iter().flatten())
            .filter_map(|it| it.ip.clone())
            .collect(),
    }
}
