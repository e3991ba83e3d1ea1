//! The feeds against an API server that says what a test wrote down.

use std::sync::Arc;

use sluice_model::event::{Event, Relist};
use sluice_model::kube::Kind;
use tokio::sync::mpsc;

use super::feed::Feed;
use super::kinds::{Pods, Watched};
use super::*;

mod gaps;
mod lists;
mod server;

use server::{Say, Server, bookmark, line, list, list_end, pod, uid};

/// Keeps what it is told.
#[derive(Clone)]
struct Ear(mpsc::UnboundedSender<Event>);

impl Facts for Ear {
    async fn tell(&self, event: Event) -> Result<(), Closed> {
        self.0.send(event).map_err(|_| Closed)
    }
}

/// One feed that runs against a script.
struct Scene {
    server: Server,
    watches: Watches,
    told: mpsc::UnboundedReceiver<Event>,
    feed: tokio::task::JoinHandle<Closed>,
}

impl Scene {
    fn of(script: impl IntoIterator<Item = (&'static str, Say)>) -> Scene {
        Scene::of_kind::<Pods>(script)
    }

    fn of_kind<K: Watched>(script: impl IntoIterator<Item = (&'static str, Say)>) -> Scene {
        let (client, server) = Server::of(script);
        let watches = Watches::new(client, Selection::default());
        let (ear, told) = mpsc::unbounded_channel();
        let feed = tokio::spawn(Feed::<K, _>::new(Arc::clone(&watches.shared), Ear(ear)).run());
        Scene { server, watches, told, feed }
    }

    /// The next event, in short.
    async fn heard(&mut self) -> String {
        let event = tokio::time::timeout(std::time::Duration::from_secs(3_600), self.told.recv()).await;
        short(&event.expect("something is told within an hour").expect("the feed lives"))
    }

    /// Everything of the script has been asked for, and nothing has been told besides what was heard.
    async fn ends(mut self) {
        self.server.all_asked().await;
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        assert_eq!(self.told.try_recv().ok().map(|event| short(&event)), None, "told, but not expected");
        drop(self.told);
        self.feed.abort();
    }

    fn progress(&self, kind: Kind) -> KindProgress {
        self.watches.progress().borrow().of(kind).clone()
    }
}

/// `list 9: a b`, `applied a`, `deleted …f`.
fn short(event: &Event) -> String {
    let mut names: Vec<String> = match event {
        Event::PodApplied(pod) => return format!("applied {}@{}", pod.name.name, pod.version),
        Event::PodDeleted { uid } => return format!("deleted {uid}"),
        Event::NodeApplied(node) => return format!("applied {}@{}", node.name, node.version),
        Event::NodeDeleted(name) => return format!("deleted {name}"),
        Event::Relisted { objects: Relist::Pods(all), .. } => {
            all.iter().map(|pod| pod.name.name.to_string()).collect()
        }
        Event::Relisted { objects: Relist::Nodes(all), .. } => {
            all.iter().map(|node| node.name.to_string()).collect()
        }
        Event::Relisted { objects: Relist::Services(all), .. } => {
            all.iter().map(|it| it.name.to_string()).collect()
        }
        Event::Relisted { objects: Relist::Slices(all), .. } => {
            all.iter().map(|it| it.name.to_string()).collect()
        }
        other => return format!("{other:?}"),
    };
    names.sort();
    let Event::Relisted { version, .. } = event else { unreachable!("all others have returned") };
    format!("list {version}: {}", names.join(" "))
}
