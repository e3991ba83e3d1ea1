//! Arbitrary facts in arbitrary order: the engine never panics, always adds up, and never meets a cell of
//! the table that cannot happen.
//!
//! Every step is six bytes. They choose among facts that contradict each other, ends that were never asked
//! for, ends of the wrong kind, plausible ends from a small Azure, and times that go backwards.

use std::collections::BTreeMap;
use std::format;
use std::net::IpAddr;
use std::string::String;
use std::sync::Arc;
use std::time::Duration;
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;
use sluice_model::azure::Location;
use sluice_model::effect::{Existence, KubeOutcome, Listing};
use sluice_model::event::{Relist, Wait};
use sluice_model::kube::{
    Endpoint, NodeObject, Phase, PodObject, Protocol, ServiceObject, ServicePort, ServiceSpec, Slice,
    SliceOwner, SlicePort, TargetPort,
};
use sluice_model::plan::{PlanReport, StepResult};
use sluice_model::seeded::Seeded;
use sluice_model::{
    Action, EffectId, EgressName, Event, Failure, FailureClass, ObjectName, Outcome, Plan, Time, Uid,
};

use super::story::Story;
use super::story::azure::{Azure, scope};
use crate::{DefaultOutbound, Engine};

type Bytes = [u8; 6];

const LABELS: [&str; 7] = ["blue", "Green", "blue-pip", "-bad", "default-natgw", "", "red"];
const ADDRESSES: [&str; 10] = [
    "10.0.0.1",
    "10.0.0.2",
    "10.0.0.3",
    "192.168.0.1",
    "192.168.0.2",
    "fd00::1",
    "fd00::2",
    "::ffff:10.0.0.1",
    "127.0.0.1",
    "0.0.0.0",
];

/// The engine, what it waits for, and an Azure that answers.
struct World {
    engine: Engine,
    azure: Azure,
    now: Time,
    version: u64,
    pending: BTreeMap<EffectId, Action>,
    newest_effect: u64,
    services: BTreeMap<Uid, ServiceObject>,
    pods: BTreeMap<Uid, PodObject>,
    slices: BTreeMap<ObjectName, Slice>,
    nodes: BTreeMap<Arc<str>, NodeObject>,
}

fn pick<T: Clone>(from: &[T], byte: u8) -> T {
    from[usize::from(byte) % from.len()].clone()
}

fn ip(byte: u8) -> IpAddr {
    pick(&ADDRESSES, byte).parse().expect("an address")
}

fn flag(byte: u8, bit: u8) -> bool {
    byte >> bit & 1 == 1
}

fn some_failure(byte: u8) -> Failure {
    let class = pick(&FailureClass::ALL, byte);
    let status = pick(&[0, 400, 404, 409, 429, 500, 503], byte >> 4);
    let retry_after = flag(byte, 7).then(|| Duration::from_secs(u64::from(byte)));
    Failure { status, retry_after, ..Failure::of(class, "Some", "some failure") }
}

impl World {
    fn new() -> World {
        let mut config = Story::config();
        config.default_outbound = DefaultOutbound::Ensure;
        config.slots_max = 2;
        config.egress_max = 2;
        config.linger = Duration::from_secs(5);
        config.locations.addresses_max = 3;
        World {
            engine: Engine::new(config, 7, Seeded::NONE),
            azure: Azure::new(scope()),
            now: Time::ZERO,
            version: 1,
            pending: BTreeMap::new(),
            newest_effect: 0,
            services: BTreeMap::new(),
            pods: BTreeMap::new(),
            slices: BTreeMap::new(),
            nodes: BTreeMap::new(),
        }
    }

    /// Tells the engine, and checks everything that must hold after any event.
    fn tell(&mut self, now: Time, event: Event) -> Result<(), TestCaseError> {
        let story = format!("{event:?}");
        for effect in self.engine.handle(now, event) {
            prop_assert!(effect.id.0 > self.newest_effect, "{} is not a new number", effect.id);
            self.newest_effect = effect.id.0;
            if !matches!(effect.action, Action::Notify(_) | Action::ResumePlan(_) | Action::Relist(_)) {
                self.pending.insert(effect.id, effect.action);
            }
        }
        let counted: Result<(), String> = self.engine.recount();
        prop_assert!(counted.is_ok(), "after {story}: {counted:?}");
        let refusals = self.engine.refusals();
        prop_assert_eq!(self.engine.counters().internal_errors, 0, "after {}: {:?}", story, refusals.last());
        let (working, _) = self.engine.slots();
        prop_assert!(working <= 2, "{working} plans work at once");
        let syncs = self.pending.values().filter(|it| matches!(it, Action::SyncLocations(_))).count();
        prop_assert!(syncs <= 1, "{syncs} location syncs at once");
        Ok(())
    }

    fn lead(&mut self) -> Result<(), TestCaseError> {
        for objects in
            [Relist::Services(vec![]), Relist::Slices(vec![]), Relist::Nodes(vec![]), Relist::Pods(vec![])]
        {
            self.tell(self.now, Event::Relisted { version: 1, objects })?;
        }
        self.tell(self.now, Event::LeadershipGained)?;
        while let Some((&id, _)) = self.pending.first_key_value() {
            self.answer(id, [0; 6])?;
        }
        Ok(())
    }

    fn next_version(&mut self, byte: u8) -> u64 {
        self.version += 1;
        // Now and then something older than what is known.
        if byte == 0 { 0 } else { self.version }
    }

    fn step(&mut self, b: Bytes) -> Result<(), TestCaseError> {
        self.now = self.now + Duration::from_millis(u64::from(b[5]) * 20);
        let now = self.now;
        match b[0] % 28 {
            0..=3 => {
                let object = self.service(b);
                self.services.insert(object.uid, object.clone());
                self.tell(now, Event::ServiceApplied(object))
            }
            4 => {
                let uid = Uid::from_number(u128::from(b[1] % 4));
                self.services.remove(&uid);
                self.tell(
                    now,
                    Event::ServiceDeleted { uid, name: ObjectName::new("shop", pick(&["a", "b"], b[2])) },
                )
            }
            5 | 6 => {
                let slice = self.slice(b);
                self.slices.insert(slice.name.clone(), slice.clone());
                self.tell(now, Event::SliceApplied(slice))
            }
            7 => {
                let name = ObjectName::new("shop", pick(&["s1", "s2"], b[1]));
                self.slices.remove(&name);
                self.tell(now, Event::SliceDeleted(name))
            }
            8 => {
                let node = self.node(b);
                self.nodes.insert(node.name.clone(), node.clone());
                self.tell(now, Event::NodeApplied(node))
            }
            9 => {
                let name: Arc<str> = pick(&["n1", "n2", ""], b[1]).into();
                self.nodes.remove(&name);
                self.tell(now, Event::NodeDeleted(name))
            }
            10 | 11 => {
                let pod = self.pod(b);
                self.pods.insert(pod.uid, pod.clone());
                self.tell(now, Event::PodApplied(pod))
            }
            12 => {
                let uid = Uid::from_number(100 + u128::from(b[1] % 4));
                self.pods.remove(&uid);
                self.tell(now, Event::PodDeleted { uid })
            }
            13 => self.relist(b),
            14 => match EgressName::parse(pick(&LABELS, b[1])) {
                Ok(name) if flag(b[2], 0) => self.tell(now, Event::EgressAdded(name)),
                Ok(name) => self.tell(now, Event::EgressReleased(name)),
                Err(_) => Ok(()),
            },
            15 => {
                let held = self.engine.services().into_iter().filter_map(|view| Some(view.held?.fingerprint));
                let allowed = held.filter(|_| flag(b[1], 0)).collect();
                self.tell(now, Event::DeletionAllowed(allowed))
            }
            16 => match b[1] {
                0 => self.tell(now, Event::LeadershipLost),
                1 => self.tell(now, Event::LeadershipGained),
                _ => self.tell(now, Event::Tick),
            },
            17 => {
                let id = self.some_effect(b);
                let wait = Wait::Throttled { until: now };
                self.tell(now, Event::SlotReleased { id, wait })
            }
            18 => {
                let id = self.some_effect(b);
                self.tell(now, Event::SlotWanted(id))
            }
            19 => {
                let id = self.some_effect(b);
                self.answer_nonsense(id, b)
            }
            20 => {
                // Backwards, or by hours.
                let then = if flag(b[1], 0) { Time::from_millis(u64::from(b[2])) } else { now };
                self.now = now + Duration::from_secs(u64::from(b[3]) * 30);
                let at = if flag(b[1], 0) { then } else { self.now };
                self.tell(at, Event::Tick)
            }
            21 => self.tamper(b),
            _ => match self.pending.keys().nth(usize::from(b[1]) % self.pending.len().max(1)) {
                Some(&id) => self.answer(id, b),
                None => self.tell(now, Event::Tick),
            },
        }
    }

    /// An effect in flight, or one that nobody asked for.
    fn some_effect(&self, b: Bytes) -> EffectId {
        let known = self.pending.keys().nth(usize::from(b[1]) % self.pending.len().max(1));
        known.copied().filter(|_| b[2] != 0).unwrap_or(EffectId(u64::from(b[3])))
    }

    fn service(&mut self, b: Bytes) -> ServiceObject {
        let target = match flag(b[3], 5) {
            true => TargetPort::Name("http".into()),
            false => TargetPort::Number(8080 + u16::from(b[4] % 3)),
        };
        let known = self.services.get(&Uid::from_number(u128::from(b[1] % 4)));
        let (ingress, published) = match known {
            Some(known) => (known.ingress.clone(), known.published),
            None => (vec![ip(b[4])], flag(b[4], 7).then(|| ip(b[4]))),
        };
        ServiceObject {
            uid: Uid::from_number(u128::from(b[1] % 4)),
            name: ObjectName::new("shop", pick(&["a", "b"], b[2])),
            version: self.next_version(b[4]),
            selected: !flag(b[3], 0) || flag(b[3], 4),
            load_balancer: !flag(b[3], 0) || flag(b[3], 4) || flag(b[3], 5),
            annotated: (published.is_none() && flag(b[4], 5)).then(|| ip(b[3])),
            deleting: flag(b[3], 1) && flag(b[3], 6),
            finalizer: !flag(b[3], 2),
            inherited: flag(b[2], 7),
            spec: ServiceSpec {
                ports: vec![ServicePort { name: "http".into(), protocol: Protocol::Tcp, port: 80, target }],
                source_ranges: flag(b[3], 3) && flag(b[3], 7),
                ..ServiceSpec::default()
            },
            ingress,
            published,
            conditions: vec![],
        }
    }

    fn slice(&mut self, b: Bytes) -> Slice {
        let endpoint = |byte: u8| Endpoint {
            address: ip(byte),
            node: flag(byte, 7).then(|| pick(&["n1", "n2", "n3"], byte >> 3).into()),
            ready: !flag(byte, 6),
            serving: !flag(byte, 5),
            terminating: flag(byte, 4),
        };
        Slice {
            name: ObjectName::new("shop", pick(&["s1", "s2"], b[1])),
            version: self.next_version(b[4]),
            owner: match b[2] % 4 {
                0 => SliceOwner::Nobody,
                1 => SliceOwner::Name(pick(&["a", "b"], b[3]).into()),
                _ => SliceOwner::Uid(Uid::from_number(u128::from(b[3] % 4))),
            },
            ports: vec![SlicePort { name: "http".into(), protocol: Protocol::Tcp, port: Some(8080) }],
            endpoints: vec![endpoint(b[3] | 128), endpoint(b[4]), endpoint(b[5] | 128)],
            malformed: vec![],
        }
    }

    fn node(&mut self, b: Bytes) -> NodeObject {
        let internal_ips = match b[2] % 4 {
            0 => vec![],
            1 => vec![ip(b[3])],
            _ => vec![ip(b[3]), ip(b[4])],
        };
        NodeObject {
            name: pick(&["n1", "n2", ""], b[1]).into(),
            version: self.next_version(b[4]),
            internal_ips,
        }
    }

    fn pod(&mut self, b: Bytes) -> PodObject {
        PodObject {
            uid: Uid::from_number(100 + u128::from(b[1] % 4)),
            name: ObjectName::new("shop", "p"),
            version: self.next_version(b[4]),
            egress: (!flag(b[2], 7)).then(|| pick(&LABELS, b[2]).into()),
            node: flag(b[3], 0).then(|| pick(&["n1", "n2"], b[3] >> 1).into()),
            ips: vec![ip(b[4]), ip(b[5])],
            host_ips: if flag(b[3], 2) { vec![ip(b[3])] } else { vec![] },
            phase: pick(&[Phase::Running, Phase::Running, Phase::Pending, Phase::Finished], b[3] >> 3),
            terminating: flag(b[3], 5),
            host_network: flag(b[3], 6) && flag(b[3], 7),
            created: u64::from(b[5] % 4),
        }
    }

    fn relist(&mut self, b: Bytes) -> Result<(), TestCaseError> {
        let keep = |at: usize| b[3] == 0 || flag(b[3], (at % 8) as u8);
        let objects = match b[1] % 4 {
            0 => Relist::Services(chosen(self.services.values(), keep)),
            1 => Relist::Slices(chosen(self.slices.values(), keep)),
            2 => Relist::Nodes(chosen(self.nodes.values(), keep)),
            _ => Relist::Pods(chosen(self.pods.values(), keep)),
        };
        let version = self.next_version(b[2]);
        self.tell(self.now, Event::Relisted { version, objects })
    }

    /// Somebody else takes something away from Azure.
    fn tamper(&mut self, b: Bytes) -> Result<(), TestCaseError> {
        let at = usize::from(b[2]);
        match b[1] % 5 {
            0 => take(&mut self.azure.public_ips, at),
            1 => take(&mut self.azure.load_balancers, at),
            2 => take(&mut self.azure.nat_gateways, at),
            3 => take(&mut self.azure.registrations, at),
            _ => take(&mut self.azure.locations, at),
        }
        self.tell(self.now, Event::Tick)
    }

    /// A plausible end: success, or a failure at some step, applied or not.
    fn answer(&mut self, id: EffectId, b: Bytes) -> Result<(), TestCaseError> {
        let Some(action) = self.pending.remove(&id) else { return Ok(()) };
        let failure = (b[2] >= 170).then(|| some_failure(b[3]));
        let now = self.now;
        let outcome = match action {
            Action::RunPlan(plan) => Outcome::Plan(self.run(&plan, failure, b)),
            Action::SyncLocations(batch) => {
                if failure.is_none() || flag(b[4], 0) {
                    self.azure.apply_locations(&batch);
                }
                Outcome::Locations { failure, next_at: now + Duration::from_millis(u64::from(b[4])) }
            }
            Action::List(kind) => {
                let listing = self.azure.listing(kind);
                let began = now - Duration::from_millis(u64::from(b[4]) * 100);
                Outcome::Listed { began, result: failure.map_or(Ok(listing), Err) }
            }
            Action::ConfirmGone(_) => {
                Outcome::Existence(pick(&[Existence::Gone, Existence::Exists, Existence::Unclear], b[3]))
            }
            _ => Outcome::Kube(match failure {
                None => KubeOutcome::Done { version: self.version },
                Some(_) => pick(
                    &[
                        KubeOutcome::Conflict,
                        KubeOutcome::Gone,
                        KubeOutcome::Refused("no".into()),
                        KubeOutcome::Unavailable,
                    ],
                    b[3],
                ),
            }),
        };
        self.tell(now, Event::EffectFinished { id, outcome })
    }

    fn run(&mut self, plan: &Plan, failure: Option<Failure>, b: Bytes) -> PlanReport {
        let stop = match failure {
            None => plan.steps.len(),
            Some(_) => usize::from(b[4]) % plan.steps.len().max(1),
        };
        let (before, after) = plan.steps.split_at(stop.min(plan.steps.len()));
        let done = before.iter().map(|step| self.azure.apply(&plan.subject, step)).collect();
        if let Some(step) = after.first().filter(|_| flag(b[5], 0)) {
            self.azure.apply(&plan.subject, step);
        }
        PlanReport { done, failure }
    }

    /// An end that makes no sense for what was asked.
    fn answer_nonsense(&mut self, id: EffectId, b: Bytes) -> Result<(), TestCaseError> {
        let now = self.now;
        let failure = flag(b[4], 0).then(|| some_failure(b[3]));
        let location = Location { location: ip(b[3]), addresses: vec![] };
        let outcome = match b[4] % 6 {
            0 => Outcome::Plan(PlanReport { done: vec![StepResult::Absent; usize::from(b[3] % 9)], failure }),
            1 => Outcome::Locations { failure, next_at: Time::NEVER },
            2 => Outcome::Listed { began: Time::NEVER, result: Ok(Listing::Locations(vec![location])) },
            3 => Outcome::Kube(KubeOutcome::Gone),
            4 => Outcome::Existence(Existence::Gone),
            _ => Outcome::Listed { began: Time::ZERO, result: Ok(Listing::PublicIps(vec![])) },
        };
        // If it fits by chance, the effect has ended.
        let fits = matches!(
            (self.pending.get(&id), &outcome),
            (Some(Action::RunPlan(_)), Outcome::Plan(_))
                | (Some(Action::SyncLocations(_)), Outcome::Locations { .. })
                | (Some(Action::List(_)), Outcome::Listed { .. })
                | (Some(Action::ConfirmGone(_)), Outcome::Existence(_))
                | (
                    Some(Action::AddFinalizer(_) | Action::RemoveFinalizer(_) | Action::WriteStatus { .. }),
                    Outcome::Kube(_)
                )
        );
        if fits {
            self.pending.remove(&id);
        }
        self.tell(now, Event::EffectFinished { id, outcome })
    }
}

fn chosen<'a, T: Clone + 'a>(all: impl Iterator<Item = &'a T>, keep: impl Fn(usize) -> bool) -> Vec<T> {
    all.enumerate().filter(|(at, _)| keep(*at)).map(|(_, it)| it.clone()).collect()
}

fn take<K: Ord + Clone, V>(from: &mut BTreeMap<K, V>, at: usize) {
    if let Some(key) = from.keys().nth(at % from.len().max(1)).cloned() {
        from.remove(&key);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_story_that_begins_well_is_survived(steps in prop::collection::vec(any::<Bytes>(), 0..160)) {
        let mut world = World::new();
        world.lead()?;
        for step in steps {
            world.step(step)?;
        }
    }

    #[test]
    fn any_story_at_all_is_survived(steps in prop::collection::vec(any::<Bytes>(), 0..120)) {
        let mut world = World::new();
        for step in steps {
            world.step(step)?;
        }
    }

    #[test]
    fn the_same_story_gives_the_same_effects(steps in prop::collection::vec(any::<Bytes>(), 0..80)) {
        let mut twins = [World::new(), World::new()];
        for world in &mut twins {
            world.lead()?;
            for step in &steps {
                world.step(*step)?;
            }
        }
        let [one, other] = twins;
        prop_assert_eq!(one.newest_effect, other.newest_effect);
        prop_assert_eq!(one.pending, other.pending);
        prop_assert_eq!(one.engine.services(), other.engine.services());
    }
}
