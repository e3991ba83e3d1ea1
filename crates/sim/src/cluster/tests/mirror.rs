//! The simplest reader of events that there can be: it keeps what it is told.
//!
//! Like the engine it refuses a list that is older than what it has seen, and asks for another.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use sluice_model::event::{Event, Relist};
use sluice_model::kube::{Kind, NodeObject, PodObject, ServiceObject, Slice};
use sluice_model::{ObjectName, Time, Uid};

use crate::cluster::faults::KubeFaults;
use crate::cluster::{Cluster, Informer};
use crate::rng::Rng;

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Mirror {
    services: BTreeMap<Uid, ServiceObject>,
    slices: BTreeMap<ObjectName, Slice>,
    nodes: BTreeMap<Arc<str>, NodeObject>,
    pods: BTreeMap<Uid, PodObject>,
}

/// A mirror with the versions that it has seen.
#[derive(Clone, Debug, Default)]
pub(super) struct Reader {
    pub(super) mirror: Mirror,
    pub(super) newest: BTreeMap<Kind, u64>,
    pub(super) refused: u64,
}

impl Mirror {
    pub(super) fn of(cluster: &Cluster) -> Mirror {
        let mut mirror = Mirror::default();
        for kind in Kind::ALL {
            mirror.replace(cluster.list(kind).objects);
        }
        mirror
    }

    fn replace(&mut self, objects: Relist) {
        match objects {
            Relist::Services(all) => self.services = all.into_iter().map(|it| (it.uid, it)).collect(),
            Relist::Slices(all) => self.slices = all.into_iter().map(|it| (it.name.clone(), it)).collect(),
            Relist::Nodes(all) => self.nodes = all.into_iter().map(|it| (it.name.clone(), it)).collect(),
            Relist::Pods(all) => self.pods = all.into_iter().map(|it| (it.uid, it)).collect(),
        }
    }
}

impl Reader {
    /// Takes an event; says which kind must be listed again.
    pub(super) fn take(&mut self, event: Event) -> Option<Kind> {
        let seen = match &event {
            Event::ServiceApplied(it) => Some((Kind::Service, it.version)),
            Event::SliceApplied(it) => Some((Kind::Slice, it.version)),
            Event::NodeApplied(it) => Some((Kind::Node, it.version)),
            Event::PodApplied(it) => Some((Kind::Pod, it.version)),
            Event::Relisted { version, objects } => Some((kind_of(objects), *version)),
            _ => None,
        };
        if let Some((kind, version)) = seen {
            let newest = self.newest.entry(kind).or_default();
            if version < *newest && matches!(event, Event::Relisted { .. }) {
                self.refused += 1;
                return Some(kind);
            }
            *newest = version.max(*newest);
        }
        let mirror = &mut self.mirror;
        match event {
            Event::ServiceApplied(it) => drop(mirror.services.insert(it.uid, it)),
            Event::ServiceDeleted { uid, .. } => drop(mirror.services.remove(&uid)),
            Event::SliceApplied(it) => drop(mirror.slices.insert(it.name.clone(), it)),
            Event::SliceDeleted(name) => drop(mirror.slices.remove(&name)),
            Event::NodeApplied(it) => drop(mirror.nodes.insert(it.name.clone(), it)),
            Event::NodeDeleted(name) => drop(mirror.nodes.remove(&name)),
            Event::PodApplied(it) => drop(mirror.pods.insert(it.uid, it)),
            Event::PodDeleted { uid } => drop(mirror.pods.remove(&uid)),
            Event::Relisted { objects, .. } => mirror.replace(objects),
            other => panic!("an informer does not say {other:?}"),
        }
        None
    }
}

pub(super) fn kind_of(objects: &Relist) -> Kind {
    match objects {
        Relist::Services(_) => Kind::Service,
        Relist::Slices(_) => Kind::Slice,
        Relist::Nodes(_) => Kind::Node,
        Relist::Pods(_) => Kind::Pod,
    }
}

/// A process: an informer and who listens to it, with everything that was said.
pub(super) struct Process {
    pub(super) informer: Informer,
    pub(super) reader: Reader,
    pub(super) heard: Vec<(Time, Event)>,
}

impl Process {
    pub(super) fn start(now: Time, rng: &Rng) -> Process {
        Process { informer: Informer::new(now, rng), reader: Reader::default(), heard: Vec::new() }
    }

    /// Lets time pass from `now` to `until`, polling whenever the informer asks for it.
    pub(super) fn run(&mut self, mut now: Time, until: Time, cluster: &Cluster, faults: &mut KubeFaults) {
        let mut polls_without_progress = 0;
        loop {
            while let Some(event) = self.informer.poll(now, cluster, faults) {
                self.heard.push((now, event.clone()));
                if let Some(kind) = self.reader.take(event) {
                    self.informer.relist(now, kind);
                }
                polls_without_progress = 0;
            }
            polls_without_progress += 1;
            assert!(polls_without_progress < 1000, "the informer asks to be polled at {now} for ever");
            match self.informer.next_event_at(now, cluster, faults) {
                Some(next) if next < until => {
                    assert!(next >= now);
                    if next > now {
                        polls_without_progress = 0;
                    }
                    now = next;
                }
                _ => return,
            }
        }
    }

    /// Lets everything settle and says whether the truth was told.
    pub(super) fn settle(&mut self, now: Time, cluster: &Cluster, faults: &mut KubeFaults) -> Mirror {
        faults.calm();
        let until = now + Informer::SETTLES_WITHIN + Duration::from_millis(1);
        self.run(now, until, cluster, faults);
        self.reader.mirror.clone()
    }
}
