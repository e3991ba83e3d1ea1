//! A story on the model of Kubernetes.

use std::time::Duration;

use sluice_model::Time;
use sluice_sim::cluster::stories::{Story, UserAction, apply};
use sluice_sim::cluster::{Cluster, Informer, KubeFaults, WriteFault};
use sluice_sim::rng::Rng;

use crate::controller::next_write;
use crate::heard::{Incarnations, Line, Steps, line, settle};

/// Plays it without faults, and gives what the engine was told in each step.
pub(crate) fn play(story: &Story) -> Steps {
    let mut stage = Stage::new();
    stage.listen();
    settle(story.steps.iter().map(|(_, action)| stage.step(action)).collect())
}

/// The model, and what is heard of it. The real side is led by it, so that both do the same.
pub(crate) struct Stage {
    now: Time,
    pub(crate) cluster: Cluster,
    informer: Informer,
    incarnations: Incarnations,
}

impl Stage {
    pub(crate) fn new() -> Stage {
        let informer = Informer::new(Time::ZERO, &Rng::new(1));
        Stage { now: Time::ZERO, cluster: Cluster::new(), informer, incarnations: Incarnations::default() }
    }

    fn step(&mut self, action: &UserAction) -> Vec<Line> {
        apply(&mut self.cluster, action);
        self.note(action);
        let mut heard = self.listen();
        while let Some(write) = next_write(&self.cluster) {
            self.cluster.write(&write, WriteFault::None);
            heard.extend(self.listen());
        }
        heard
    }

    /// Whoever has just been made has a number.
    fn note(&mut self, action: &UserAction) {
        let uid = match action {
            UserAction::CreateService { service, .. } => self.cluster.service(service).map(|it| it.meta.uid),
            UserAction::CreatePod { pod, .. } => self.cluster.pod(pod).map(|it| it.meta.uid),
            _ => None,
        };
        uid.into_iter().for_each(|uid| self.incarnations.made(uid));
    }

    /// Lets time pass until everything has been told.
    fn listen(&mut self) -> Vec<Line> {
        let mut heard = Vec::new();
        let mut faults = KubeFaults::none();
        for _ in 0..600 {
            self.now = self.now + Duration::from_millis(10);
            self.cluster.set_time(self.now);
            while let Some(event) = self.informer.poll(self.now, &self.cluster, &mut faults) {
                heard.extend(line(event, &self.incarnations));
            }
        }
        heard
    }
}
