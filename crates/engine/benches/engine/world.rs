//! Clusters of a given size, all in sync: N addresses on N/50 nodes, N/100 services.
//!
//! Everything goes through [`Engine::handle`], as in the controller: objects, listings of Azure and the ends of
//! effects are events. Azure is a function: it lists what an earlier leader would have made, and every write
//! succeeds.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sluice_engine::{Config, DefaultOutbound, Engine};
use sluice_model::azure::{
    Direction, ETag, Gateway, LoadBalancer, Meta, NatGateway, Provisioning, PublicIp, Registration, Rule,
    Subnet, Tags,
};
use sluice_model::effect::{Existence, KubeOutcome, Listable, Listing};
use sluice_model::event::Relist;
use sluice_model::kube::{
    Endpoint, NodeObject, Phase, PodObject, Protocol, ServiceObject, ServicePort, ServiceSpec, Slice,
    SliceOwner, SlicePort, TargetPort,
};
use sluice_model::names::Scope;
use sluice_model::plan::{PlanReport, StepResult};
use sluice_model::seeded::Seeded;
use sluice_model::{Action, Effect, EgressName, Event, Family, ObjectName, Outcome, ServiceKey, Time, Uid};

pub(crate) const PER_SERVICE: usize = 100;
const PER_NODE: usize = 50;
const NAMESPACE: &str = "shop";
/// A deletion that waits for so long says what holds it.
const REPORTS_DUE: Duration = Duration::from_secs(301);

/// Which way the addresses of a cluster go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    /// Endpoints of Services.
    Inbound,
    /// Pods of egresses.
    Egress,
}

/// What a drain took.
#[derive(Default, Debug)]
pub(crate) struct Drained {
    /// Addresses sent.
    pub(crate) addresses: usize,
    /// Time in [`Engine::handle`].
    pub(crate) handling: Duration,
}

/// A cluster.
pub(crate) struct World {
    pub(crate) engine: Engine,
    pub(crate) services: usize,
    now: Time,
    scope: Scope,
    way: Way,
    version: u64,
    nodes: usize,
    random: u64,
}

fn ip(number: usize) -> IpAddr {
    // Pods live in 16.0.0.0/4 and up, nodes in 10.0.0.0/8.
    IpAddr::V4(Ipv4Addr::from_bits(0x1000_0000 + number as u32))
}

fn node_name(node: usize) -> Arc<str> {
    format!("aks-nodepool1-12345678-vmss{node:06x}").into()
}

pub(crate) fn uid(number: usize) -> Uid {
    Uid::from_number((number as u128).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835))
}

fn egress_name(service: usize) -> Arc<str> {
    format!("team-{service}").into()
}

fn service_name(service: usize) -> ObjectName {
    ObjectName::new(NAMESPACE, format!("web-{service:06}"))
}

fn public_address(service: usize) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from_bits(0x0b00_0000 + service as u32))
}

impl World {
    /// Nodes and services, nothing on them, and an engine on standby.
    pub(crate) fn empty(size: usize, way: Way) -> World {
        let scope = Scope {
            subscription: "00000000-0000-0000-0000-000000000000".into(),
            resource_group: "cluster".into(),
            network_resource_group: "cluster".into(),
            virtual_network: "vnet".into(),
            subnet: "nodes".into(),
            gateway: "servicegateway".into(),
            cluster_id: "bench".into(),
        };
        let mut config = Config::new(scope.clone());
        config.default_outbound = DefaultOutbound::Leave;
        config.egress_max = usize::MAX;
        // What is measured are changes; a sweep is another story.
        config.drift_interval = Duration::from_secs(1 << 30);
        let mut world = World {
            engine: Engine::new(config, 1, Seeded::NONE),
            services: (size / PER_SERVICE).max(1),
            now: Time::from_millis(1),
            scope,
            way,
            version: 0,
            nodes: (size / PER_NODE).max(1),
            random: 0x2545_f491_4f6c_dd1d,
        };
        for objects in
            [Relist::Services(vec![]), Relist::Slices(vec![]), Relist::Nodes(vec![]), Relist::Pods(vec![])]
        {
            let version = world.next_version();
            world.tell(Event::Relisted { version, objects });
        }
        for node in 0..world.nodes {
            let location = IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + node as u32));
            let version = world.next_version();
            let node = NodeObject { name: node_name(node), version, internal_ips: vec![location] };
            world.tell(Event::NodeApplied(node));
        }
        if way == Way::Inbound {
            for service in 0..world.services {
                let object = world.service(service, false);
                world.tell(Event::ServiceApplied(object));
            }
        }
        world
    }

    /// All objects are known, none of the addresses is in Azure, and the engine does not lead yet.
    pub(crate) fn on_standby(size: usize, way: Way) -> World {
        let mut world = World::empty(size, way);
        match way {
            Way::Inbound => {
                for service in 0..world.services {
                    let slice = world.slice(service, None);
                    world.tell(Event::SliceApplied(slice));
                }
            }
            Way::Egress => {
                for number in 0..size {
                    let pod = world.pod(number, number);
                    world.tell(Event::PodApplied(pod));
                }
            }
        }
        world
    }

    /// Everything is in Azure and nothing is left to do.
    pub(crate) fn in_sync(size: usize, way: Way) -> World {
        let mut world = World::on_standby(size, way);
        world.lead();
        world.rest();
        world
    }

    /// Becomes the leader, compares everything, and sends what is missing.
    pub(crate) fn lead(&mut self) -> Drained {
        let started = Instant::now();
        let effects = self.engine.handle(self.now, Event::LeadershipGained);
        let handling = started.elapsed();
        let drained = self.drain(effects);
        Drained { handling: drained.handling + handling, ..drained }
    }

    /// Hands over one fact; what follows from it is the caller's to drain.
    pub(crate) fn tell(&mut self, event: Event) -> Vec<Effect> {
        self.engine.handle(self.now, event)
    }

    /// Answers everything, until nothing is asked for any more.
    pub(crate) fn drain(&mut self, effects: Vec<Effect>) -> Drained {
        let mut drained = Drained::default();
        let mut open = VecDeque::from(effects);
        while let Some(Effect { id, action, .. }) = open.pop_front() {
            let Some((outcome, addresses)) = self.outcome(action) else { continue };
            drained.addresses += addresses;
            self.now = self.now + Duration::from_millis(1);
            let started = Instant::now();
            let more = self.engine.handle(self.now, Event::EffectFinished { id, outcome });
            drained.handling += started.elapsed();
            open.extend(more);
        }
        drained
    }

    /// Lets the memory of recent writes fade.
    pub(crate) fn rest(&mut self) {
        self.now = self.now + Duration::from_secs(3600);
        let effects = self.tell(Event::Tick);
        let drained = self.drain(effects);
        assert_eq!(drained.addresses, 0, "everything is in sync");
        assert_eq!(self.engine.slots(), (0, 0), "nothing is under way");
    }

    /// How an effect ends, and how many addresses it sent; `None` if it has no end.
    fn outcome(&mut self, action: Action) -> Option<(Outcome, usize)> {
        let outcome = match action {
            Action::SyncLocations(batch) => {
                let addresses = batch.iter().map(|update| update.addresses.len()).sum();
                return Some((Outcome::Locations { failure: None, next_at: self.now }, addresses));
            }
            Action::List(kind) => Outcome::Listed { began: self.now, result: Ok(self.listing(kind)) },
            Action::RunPlan(plan) => {
                let is_teardown = plan.steps.iter().any(|step| step.word() == "clear");
                assert!(is_teardown, "an earlier leader has made everything: {plan}");
                let done = plan.steps.iter().map(|_| StepResult::Done).collect();
                Outcome::Plan(PlanReport { done, failure: None })
            }
            Action::AddFinalizer(_) | Action::RemoveFinalizer(_) | Action::WriteStatus { .. } => {
                Outcome::Kube(KubeOutcome::Done { version: self.next_version() })
            }
            Action::ConfirmGone(_) => Outcome::Existence(Existence::Gone),
            Action::ResumePlan(_) | Action::Relist(_) | Action::Notify(_) => return None,
        };
        Some((outcome, 0))
    }

    /// What Azure has: everything of every service, and no address.
    fn listing(&self, kind: Listable) -> Listing {
        let all = || (0..self.services).map(|service| (service, self.key(service)));
        match kind {
            Listable::Foundation => Listing::Foundation {
                gateway: Some(Gateway {
                    meta: meta(self.scope.gateway_id(), self.scope.gateway_tags()),
                    virtual_network: self.scope.virtual_network_id(),
                    route_target_subnet: self.scope.subnet_id(),
                    route_target_address: None,
                    route_target_address_v6: None,
                    document: "".into(),
                }),
                subnet: Some(Subnet {
                    id: self.scope.subnet_id(),
                    etag: ETag("1".into()),
                    gateway: Some(self.scope.gateway_id()),
                    rest: "".into(),
                }),
            },
            Listable::Locations => Listing::Locations(vec![]),
            Listable::Registrations => Listing::Registrations(
                all()
                    .map(|(_, key)| Registration {
                        name: key.identity(),
                        direction: if key.is_inbound() { Direction::Inbound } else { Direction::Outbound },
                        is_default: false,
                        pools: key.is_inbound().then(|| self.scope.pool_id(&key)).into_iter().collect(),
                        nat_gateway: (!key.is_inbound()).then(|| self.scope.carrier_id(&key)),
                    })
                    .collect(),
            ),
            Listable::LoadBalancers if self.way == Way::Inbound => {
                let rule = Rule {
                    protocol: Protocol::Tcp,
                    frontend_port: 80,
                    backend_port: 8080,
                    idle_timeout_minutes: 4,
                };
                Listing::LoadBalancers(
                    all()
                        .map(|(service, key)| LoadBalancer {
                            meta: meta(self.scope.carrier_id(&key), self.tags(service, &key)),
                            public_ip: Some(self.scope.public_ip_id(&key, Family::V4)),
                            pools: vec![key.identity()],
                            rules: vec![rule],
                            edited: false,
                        })
                        .collect(),
                )
            }
            Listable::LoadBalancers => Listing::LoadBalancers(vec![]),
            Listable::NatGateways if self.way == Way::Egress => Listing::NatGateways(
                all()
                    .map(|(service, key)| NatGateway {
                        meta: meta(self.scope.carrier_id(&key), self.tags(service, &key)),
                        gateway: Some(self.scope.gateway_id()),
                        public_ips: vec![self.scope.public_ip_id(&key, Family::V4)],
                        public_ips_v6: vec![],
                    })
                    .collect(),
            ),
            Listable::NatGateways => Listing::NatGateways(vec![]),
            Listable::PublicIps => Listing::PublicIps(
                all()
                    .map(|(service, key)| {
                        let carrier = self.scope.carrier_id(&key);
                        let user = match key.is_inbound() {
                            true => carrier.child("frontendIPConfigurations", "frontend"),
                            false => carrier,
                        };
                        PublicIp {
                            meta: meta(self.scope.public_ip_id(&key, Family::V4), self.tags(service, &key)),
                            family: Family::V4,
                            address: Some(public_address(service)),
                            used_by: Some(user),
                        }
                    })
                    .collect(),
            ),
        }
    }

    fn key(&self, service: usize) -> ServiceKey {
        match self.way {
            Way::Inbound => ServiceKey::Inbound(uid(service)),
            Way::Egress => ServiceKey::Outbound(EgressName::parse(&egress_name(service)).unwrap()),
        }
    }

    fn tags(&self, service: usize, key: &ServiceKey) -> Tags {
        let owner = service_name(service);
        self.scope.tags(key, key.is_inbound().then_some(&owner))
    }

    fn next_version(&mut self) -> u64 {
        self.version += 1;
        self.version
    }

    /// A number below the given one, at random, the same in every run.
    pub(crate) fn any_below(&mut self, end: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random % end as u64) as usize
    }

    fn node_of(&self, number: usize) -> Arc<str> {
        // Neighbours in a service are on different nodes.
        node_name(number.wrapping_mul(7919) % self.nodes)
    }

    /// A Service as an earlier leader left it.
    pub(crate) fn service(&mut self, service: usize, deleting: bool) -> ServiceObject {
        let port = ServicePort {
            name: "".into(),
            protocol: Protocol::Tcp,
            port: 80,
            target: TargetPort::Number(8080),
        };
        ServiceObject {
            uid: uid(service),
            name: service_name(service),
            version: self.next_version(),
            selected: true,
            load_balancer: true,
            deleting,
            finalizer: true,
            inherited: false,
            spec: ServiceSpec { ports: vec![port], ..ServiceSpec::default() },
            ingress: vec![public_address(service)],
            published: Some(public_address(service)),
            annotated: None,
            conditions: vec![],
        }
    }

    /// The slice of a service, optionally with one of its endpoints at a new address.
    pub(crate) fn slice(&mut self, service: usize, moved: Option<(usize, usize)>) -> Slice {
        let endpoints = (0..PER_SERVICE).map(|at| {
            let number = service * PER_SERVICE + at;
            let address = match moved {
                Some((moved, to)) if moved == at => to,
                _ => number,
            };
            Endpoint {
                address: ip(address),
                node: Some(self.node_of(number)),
                ready: true,
                serving: true,
                terminating: false,
            }
        });
        Slice {
            endpoints: endpoints.collect(),
            name: ObjectName::new(NAMESPACE, format!("web-{service:06}-abcde")),
            version: self.next_version(),
            owner: SliceOwner::Uid(uid(service)),
            ports: vec![SlicePort { name: "".into(), protocol: Protocol::Tcp, port: Some(8080) }],
            malformed: vec![],
        }
    }

    /// A pod of an egress.
    pub(crate) fn pod(&mut self, number: usize, address: usize) -> PodObject {
        PodObject {
            uid: uid(number),
            name: ObjectName::new(NAMESPACE, "pod"),
            version: self.next_version(),
            egress: Some(egress_name(number / PER_SERVICE % self.services)),
            node: Some(self.node_of(number)),
            ips: vec![ip(address)],
            host_ips: vec![],
            phase: Phase::Running,
            terminating: false,
            host_network: false,
            created: 1,
        }
    }
}

fn meta(id: sluice_model::azure::ArmId, tags: Tags) -> Meta {
    Meta { id, tags, etag: ETag("1".into()), provisioning: Provisioning::Succeeded }
}

/// Fills a cluster and changes it; for counting instructions. Callgrind counts in the functions that it calls, by
/// their names.
pub(crate) fn count_in(workload: &str, size: usize, times: usize) {
    let way = if workload == WAITING { Way::Inbound } else { Way::Egress };
    let mut world = World::in_sync(size, way);
    match workload {
        CHANGED => change_pods(&mut world, size, times),
        WAITING => report_deletions(&mut world, times),
        _ => add_and_delete_pods(&mut world, size, times),
    }
}

/// The workloads whose instructions are counted: a word for the command line and the function.
pub(crate) const CHANGED: &str = "changed";
pub(crate) const ADDED: &str = "added";
pub(crate) const WAITING: &str = "waiting";

/// One pod gets a new address and the request is made and answered, and back, over and over.
#[inline(never)]
fn change_pods(world: &mut World, size: usize, times: usize) {
    for change in 0..times {
        let number = world.any_below(size);
        for address in [size + change, number] {
            let pod = world.pod(number, address);
            let effects = world.tell(Event::PodApplied(pod));
            let drained = world.drain(effects);
            assert!(drained.addresses > 0, "a change makes a request");
        }
    }
}

/// A pod is added to a live egress and deleted again, over and over, while a request is in flight.
#[inline(never)]
fn add_and_delete_pods(world: &mut World, size: usize, times: usize) {
    let mut effects = Vec::new();
    for number in size..size + times {
        let pod = world.pod(number, number);
        effects.extend(world.tell(Event::PodApplied(pod)));
    }
    for number in size..size + times {
        effects.extend(world.tell(Event::PodDeleted { uid: uid(number) }));
    }
    assert_eq!(effects.len(), 1, "one request is in flight");
}

/// Services are deleted, the request that takes their addresses away is not answered, and each deletion reports what
/// holds it.
#[inline(never)]
fn report_deletions(world: &mut World, times: usize) {
    for service in 0..times {
        let object = world.service(service, true);
        world.tell(Event::ServiceApplied(object));
    }
    world.now = world.now + REPORTS_DUE;
    let effects = world.tell(Event::Tick);
    let reports = effects.iter().filter(|effect| matches!(effect.action, Action::Notify(_))).count();
    assert!(reports >= times, "each deletion says what holds it: {effects:?}");
}
