//! Who gets the next slot: a keyed queue, fair across namespaces, first come first served within one.
//!
//! A service stands in the queue at most once, however often it asks, and keeps its place.
//! Plans that gave their slot back and could go on come first: what is half done is finished
//! before something new is begun.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::sync::Arc;

use sluice_model::EffectId;

use crate::addresses::ServiceIndex;

/// What gets a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Turn {
    /// A plan goes on.
    Resume(EffectId),
    /// A service starts one.
    Start(ServiceIndex),
}

/// The queue and the slots.
#[derive(Debug)]
pub(crate) struct Dispatch {
    slots_max: usize,
    working: BTreeSet<EffectId>,
    resumes: VecDeque<EffectId>,
    queued: BTreeSet<ServiceIndex>,
    lanes: BTreeMap<Arc<str>, VecDeque<ServiceIndex>>,
    ring: VecDeque<Arc<str>>,
}

impl Dispatch {
    pub(crate) fn new(slots_max: usize) -> Dispatch {
        Dispatch {
            slots_max: slots_max.max(1),
            working: BTreeSet::new(),
            resumes: VecDeque::new(),
            queued: BTreeSet::new(),
            lanes: BTreeMap::new(),
            ring: VecDeque::new(),
        }
    }

    /// A service would like to start a plan.
    pub(crate) fn enqueue(&mut self, namespace: &Arc<str>, service: ServiceIndex) {
        if !self.queued.insert(service) {
            return;
        }
        let lane = self.lanes.entry(Arc::clone(namespace)).or_default();
        if lane.is_empty() {
            self.ring.push_back(Arc::clone(namespace));
        }
        lane.push_back(service);
    }

    /// A service does not want to any more. Its place is passed over when it comes up.
    pub(crate) fn dequeue(&mut self, service: ServiceIndex) {
        self.queued.remove(&service);
    }

    pub(crate) fn is_queued(&self, service: ServiceIndex) -> bool {
        self.queued.contains(&service)
    }

    pub(crate) fn waiting(&self) -> usize {
        self.queued.len() + self.resumes.len()
    }

    /// Nobody waits for a slot, and one is free.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting() == 0 && self.working.len() < self.slots_max
    }

    pub(crate) fn working(&self) -> usize {
        self.working.len()
    }

    /// A plan has begun in a slot.
    pub(crate) fn occupy(&mut self, plan: EffectId) {
        self.working.insert(plan);
    }

    /// A plan has ended or waits for something that needs no slot.
    pub(crate) fn release(&mut self, plan: EffectId) {
        self.working.remove(&plan);
        self.resumes.retain(|other| *other != plan);
    }

    /// A plan that gave its slot back could go on.
    pub(crate) fn ask(&mut self, plan: EffectId) {
        if !self.working.contains(&plan) && !self.resumes.contains(&plan) {
            self.resumes.push_back(plan);
        }
    }

    /// The next in turn, if a slot is free.
    pub(crate) fn next(&mut self) -> Option<Turn> {
        if self.working.len() >= self.slots_max {
            return None;
        }
        if let Some(plan) = self.resumes.pop_front() {
            self.working.insert(plan);
            return Some(Turn::Resume(plan));
        }
        while let Some(namespace) = self.ring.pop_front() {
            let Some(lane) = self.lanes.get_mut(&namespace) else { continue };
            let next = loop {
                match lane.pop_front() {
                    Some(service) if self.queued.remove(&service) => break Some(service),
                    Some(_) => {}
                    None => break None,
                }
            };
            if lane.is_empty() {
                self.lanes.remove(&namespace);
            } else {
                self.ring.push_back(namespace);
            }
            if let Some(service) = next {
                return Some(Turn::Start(service));
            }
        }
        None
    }
}
