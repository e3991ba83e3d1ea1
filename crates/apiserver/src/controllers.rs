//! Whoever works behind a real API server, in a small way: the controllers of Kubernetes, a scheduler, a kubelet.
//!
//! Each is a pure function from what it sees to what should change, and one loop (`machine`) wakes it
//! when something changes that concerns it. They use the store as kubectl does, and write the events that
//! the real ones write.
//!
//! Missing on purpose: Jobs, StatefulSets and DaemonSets, minReadySeconds, deadlines of a rollout, resources
//! and affinity of pods, probes. Containers do nothing but run.

mod accounts;
mod deployments;
mod garbage;
mod kubelet;
mod machine;
mod namespaces;
mod nodes;
mod object;
mod replica_sets;
mod scheduler;
mod slices;

use std::time::Duration;

use tokio::task::JoinSet;

use crate::store::Store;

/// What runs, and how fast.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Settings {
    /// How many nodes there are.
    pub nodes: u16,
    /// Whether a scheduler and a kubelet run; without them pods stay pending, and there are no nodes.
    pub kubelet: bool,
    /// Whether nodes and pods have IPv6 addresses too.
    pub dual_stack: bool,
    /// How much faster than in the world things take their time.
    pub time_factor: f64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { nodes: 3, kubelet: true, dual_stack: false, time_factor: 1.0 }
    }
}

impl Settings {
    /// A time of the world at this pace.
    fn paced(&self, time: Duration) -> Duration {
        if self.time_factor > 0.0 { time.div_f64(self.time_factor) } else { time }
    }
}

/// Runs all of them. They end when the returned set is dropped or shut down.
pub fn run(store: &Store, settings: Settings) -> JoinSet<()> {
    let mut running = JoinSet::new();
    running.spawn(machine::run(store.clone(), || accounts::Accounts));
    running.spawn(machine::run(store.clone(), || namespaces::Namespaces));
    running.spawn(machine::run(store.clone(), || garbage::Garbage));
    running.spawn(machine::run(store.clone(), || deployments::Deployments));
    running.spawn(machine::run(store.clone(), || replica_sets::ReplicaSets));
    running.spawn(machine::run(store.clone(), slices::Slices::default));
    if settings.kubelet {
        nodes::join(store, settings);
        running.spawn(machine::run(store.clone(), || scheduler::Scheduler));
        running.spawn(machine::run(store.clone(), move || kubelet::Kubelet::new(settings)));
    }
    running
}

#[cfg(test)]
mod tests;
