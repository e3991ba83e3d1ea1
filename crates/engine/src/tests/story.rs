//! Plays a story, line by line, and prints what the engine asks for.
//!
//! A line is a fact (`service web applied`) or the end of an effect (`#1 done`). Behind the story stands
//! a small Azure that remembers what was written, so that reads and listings answer truthfully.
//! Listings and status writes are answered at once and not shown, unless the story asks for them.
//!
//! ```text
//! node node-a 192.168.0.1
//! service web applied [nofinalizer] [deleting] [clusterip] [invalid] [port=80->8080] [uid=2]
//! service web deleted | service web vanishes | services relisted
//! endpoints web 10.0.0.4@node-a 10.0.0.5@node-b!unready 10.0.0.6@node-b!terminating [slice=1]
//! pod p1 egress=blue ip=10.1.0.1 node=node-a [finished] [terminating] [hostnetwork] | pod p1 deleted
//! #1 done | #1 lost | #1 lost applied | #1 failed CODE STATUS at STEP | #1 refused | #1 gone | #1 exists
//! azure loses load-balancer web | azure loses registration web | azure loses public-ip web
//! azure gains public-ip web [foreign]
//! tick SECONDS | lead | allow mass deletion
//! ```

use std::collections::BTreeMap;
use std::format;
use std::net::IpAddr;
use std::string::{String, ToString};
use std::sync::Arc;
use std::time::Duration;
use std::vec;
use std::vec::Vec;

use sluice_model::azure::{
    ETag, Gateway, LoadBalancer, Location, LocationUpdate, Meta, NatGateway, Provisioning, PublicIp,
    Registration, Subnet, Tags,
};
use sluice_model::effect::{Existence, KubeOutcome, Listable, Listing};
use sluice_model::event::Relist;
use sluice_model::kube::{
    Endpoint, NodeObject, Phase, PodObject, Protocol, ServiceObject, ServicePort, ServiceSpec, Slice,
    SliceOwner, SlicePort, TargetPort,
};
use sluice_model::names::Scope;
use sluice_model::plan::{PlanReport, StepResult, Subject};
use sluice_model::seeded::Seeded;
use sluice_model::{
    Action, Effect, EffectId, EgressName, Event, Failure, FailureClass, Family, ObjectName, Outcome,
    ServiceKey, Step, Time, Uid,
};

use crate::{Config, DefaultOutbound, Engine};

/// Plays a story on an engine that has just started with nothing in either world.
pub(crate) fn check(input: &str, expected: expect_test::Expect) {
    let mut story = Story::started();
    story.play(input);
    expected.assert_eq(&story.shown());
}

/// A story being played.
pub(crate) struct Story {
    pub(crate) engine: Engine,
    pub(crate) azure: Azure,
    pub(crate) now: Time,
    scope: Scope,
    version: u64,
    objects: BTreeMap<String, ServiceObject>,
    pods: BTreeMap<String, Uid>,
    nodes: BTreeMap<IpAddr, String>,
    pending: BTreeMap<EffectId, Action>,
    numbers: BTreeMap<u64, EffectId>,
    lines: Vec<String>,
    /// Show status writes and listings, and let the story answer them.
    pub(crate) show_all: bool,
    /// Show what people are told.
    pub(crate) show_notices: bool,
}

/// What has been written.
#[derive(Default)]
pub(crate) struct Azure {
    pub(crate) public_ips: BTreeMap<String, PublicIp>,
    pub(crate) load_balancers: BTreeMap<String, LoadBalancer>,
    pub(crate) nat_gateways: BTreeMap<String, NatGateway>,
    pub(crate) registrations: BTreeMap<String, Registration>,
    pub(crate) locations: BTreeMap<IpAddr, BTreeMap<IpAddr, Vec<Arc<str>>>>,
    pub(crate) gateway_missing: bool,
    issued: u8,
}

pub(crate) fn scope() -> Scope {
    Scope {
        subscription: "sub".into(),
        resource_group: "rg".into(),
        network_resource_group: "rg".into(),
        virtual_network: "vnet".into(),
        subnet: "subnet".into(),
        gateway: "servicegateway".into(),
        cluster_id: "cluster-1".into(),
    }
}

impl Story {
    /// An engine that leads, has listed both worlds, and found nothing.
    pub(crate) fn started() -> Story {
        let mut story = Story::standby(Story::config());
        story.play("lead");
        story.lines.clear();
        story
    }

    /// The configuration of most stories: no default outbound service of its own accord.
    pub(crate) fn config() -> Config {
        let mut config = Config::new(scope());
        config.default_outbound = DefaultOutbound::Leave;
        config
    }

    /// An engine on standby; play `lead` to start it.
    pub(crate) fn standby(config: Config) -> Story {
        Story {
            scope: config.scope.clone(),
            engine: Engine::new(config, 7, Seeded::NONE),
            azure: Azure::default(),
            now: Time::ZERO,
            version: 1,
            objects: BTreeMap::new(),
            pods: BTreeMap::new(),
            nodes: BTreeMap::new(),
            pending: BTreeMap::new(),
            numbers: BTreeMap::new(),
            lines: Vec::new(),
            show_all: false,
            show_notices: false,
        }
    }

    /// What the engine asked for, one line each.
    pub(crate) fn shown(&self) -> String {
        let mut text = self.lines.join("\n");
        if !text.is_empty() {
            text.push('\n');
        }
        text
    }

    /// Plays lines; each takes a tenth of a second.
    pub(crate) fn play(&mut self, input: &str) {
        for line in input.lines().map(str::trim).filter(|line| !line.is_empty()) {
            self.now = self.now + Duration::from_millis(100);
            self.line(line);
        }
    }

    fn line(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["lead"] => {
                self.relist_all();
                self.tell(Event::LeadershipGained);
            }
            ["tick", seconds] => {
                let end = self.now + Duration::from_millis((seconds.parse::<f64>().unwrap() * 1000.0) as u64);
                while let Some(at) = self.engine.next_deadline().filter(|at| *at <= end) {
                    self.now = self.now.max(at);
                    self.tell(Event::Tick);
                }
                self.now = end;
                self.tell(Event::Tick);
            }
            ["allow", "mass", "deletion"] => self.tell(Event::MassDeletionAllowed(true)),
            ["services", "relisted"] => {
                let objects = Relist::Services(self.objects.values().cloned().collect());
                let version = self.next_version();
                self.tell(Event::Relisted { version, objects });
            }
            ["service", name, "deleted"] => {
                let object = self.objects.remove(*name).expect("a known service");
                self.tell(Event::ServiceDeleted { uid: object.uid, name: object.name });
            }
            ["service", name, "vanishes"] => {
                self.objects.remove(*name).expect("a known service");
            }
            ["service", name, "applied", options @ ..] => {
                let object = self.object(name, options);
                self.objects.insert(name.to_string(), object.clone());
                self.tell(Event::ServiceApplied(object));
            }
            ["endpoints", name, rest @ ..] => {
                let slice = self.slice(name, rest);
                self.tell(Event::SliceApplied(slice));
            }
            ["node", name, "deleted"] => self.tell(Event::NodeDeleted((*name).into())),
            ["node", name, ips @ ..] => {
                let internal_ips: Vec<IpAddr> = ips.iter().map(|ip| ip.parse().unwrap()).collect();
                for ip in &internal_ips {
                    self.nodes.insert(*ip, name.to_string());
                }
                let version = self.next_version();
                self.tell(Event::NodeApplied(NodeObject { name: (*name).into(), version, internal_ips }));
            }
            ["pod", name, "deleted"] => {
                let uid = self.pods.remove(*name).expect("a known pod");
                self.tell(Event::PodDeleted { uid });
            }
            ["pod", name, options @ ..] => {
                let pod = self.pod(name, options);
                self.tell(Event::PodApplied(pod));
            }
            ["egress", name, "requested"] => self.tell(Event::EgressAdded(EgressName::parse(name).unwrap())),
            ["egress", name, "released"] => {
                self.tell(Event::EgressReleased(EgressName::parse(name).unwrap()))
            }
            ["azure", "loses", kind, name] => self.azure_loses(kind, name),
            ["azure", "gains", "public-ip", name, options @ ..] => self.azure_gains_ip(name, options),
            [number, ending @ ..] if number.starts_with('#') => self.end(number, ending),
            _ => panic!("the story has a line that nobody understands: {line}"),
        }
    }

    fn next_version(&mut self) -> u64 {
        self.version += 1;
        self.version
    }

    fn relist_all(&mut self) {
        let version = self.next_version();
        for objects in [
            Relist::Services(self.objects.values().cloned().collect()),
            Relist::Slices(vec![]),
            Relist::Nodes(vec![]),
            Relist::Pods(vec![]),
        ] {
            self.tell(Event::Relisted { version, objects });
        }
    }

    /// Tells the engine and takes down what it asks for.
    pub(crate) fn tell(&mut self, event: Event) {
        let effects = self.engine.handle(self.now, event);
        for effect in effects {
            self.take_down(effect);
        }
        self.engine.recount().expect("the engine's counts agree");
    }

    fn take_down(&mut self, effect: Effect) {
        let Effect { id, action, cause } = effect;
        let quiet = match &action {
            Action::List(_) | Action::WriteStatus { .. } => !self.show_all,
            Action::Notify(notice) => {
                if self.show_notices {
                    self.lines.push(format!("told: {}: {}", notice.reason, notice.text));
                }
                return;
            }
            _ => false,
        };
        if quiet {
            self.pending.insert(id, action);
            self.answer(id);
            return;
        }
        let number = self.numbers.len() as u64 + 1;
        self.numbers.insert(number, id);
        let words = self.words(&action);
        self.lines.push(format!("#{number} {words}   because {}", cause.words()));
        self.pending.insert(id, action);
    }

    /// Answers a listing from the small Azure, or a status write with success.
    fn answer(&mut self, id: EffectId) {
        let outcome = match self.pending.get(&id) {
            Some(Action::List(kind)) => {
                let listing = self.azure.listing(*kind, &self.scope);
                Outcome::Listed { began: self.now, result: Ok(listing) }
            }
            Some(Action::WriteStatus { object, ingress, retract, conditions }) => {
                if let Some(known) = self.objects.values_mut().find(|known| known.uid == object.uid) {
                    known.ingress.retain(|ip| Some(*ip) != *retract);
                    known.ingress.extend(
                        ingress.iter().filter(|ip| !known.ingress.contains(ip)).copied().collect::<Vec<_>>(),
                    );
                    known.published = *ingress;
                    known.conditions.clone_from(conditions);
                }
                Outcome::Kube(KubeOutcome::Done)
            }
            _ => return,
        };
        self.pending.remove(&id);
        self.tell(Event::EffectFinished { id, outcome });
    }

    fn end(&mut self, number: &str, ending: &[&str]) {
        let number: u64 = number.trim_start_matches('#').parse().expect("a number");
        let id = *self.numbers.get(&number).unwrap_or_else(|| panic!("#{number} has not been asked for"));
        let action = self.pending.remove(&id).unwrap_or_else(|| panic!("#{number} has ended already"));
        let outcome = match action {
            Action::RunPlan(plan) => Outcome::Plan(self.run(&plan.subject, &plan.steps, ending)),
            Action::SyncLocations(batch) => {
                let failure = self.failure(ending);
                if failure.is_none() || ending.contains(&"applied") {
                    self.azure.apply_locations(&batch);
                }
                Outcome::Locations { failure, next_at: self.now }
            }
            Action::List(kind) => {
                let result = match self.failure(ending) {
                    None => Ok(self.azure.listing(kind, &self.scope)),
                    Some(failure) => Err(failure),
                };
                Outcome::Listed { began: self.now, result }
            }
            Action::AddFinalizer(object) | Action::RemoveFinalizer(object) => {
                let _ = object;
                Outcome::Kube(self.kube(ending))
            }
            Action::WriteStatus { .. } => Outcome::Kube(self.kube(ending)),
            Action::ConfirmGone(_) => Outcome::Existence(match ending {
                ["gone"] => Existence::Gone,
                ["exists"] => Existence::Exists,
                _ => Existence::Unclear,
            }),
            other => panic!("{other:?} has no end"),
        };
        self.tell(Event::EffectFinished { id, outcome });
    }

    fn kube(&self, ending: &[&str]) -> KubeOutcome {
        match ending {
            ["done"] => KubeOutcome::Done,
            ["gone"] => KubeOutcome::Gone,
            ["conflict"] => KubeOutcome::Conflict,
            ["refused"] => KubeOutcome::Refused("a webhook said no".into()),
            _ => KubeOutcome::Unavailable,
        }
    }

    fn failure(&self, ending: &[&str]) -> Option<Failure> {
        match ending {
            ["done"] => None,
            ["lost", ..] => Some(Failure::of(FailureClass::Unknown, "NoAnswer", "no answer")),
            ["refused", ..] => Some(failure(FailureClass::Refused, "InvalidRequest", 400)),
            ["failed", code, status, ..] => {
                let status: u16 = status.parse().expect("a status");
                let class = class_of(status, code);
                Some(failure(class, code, status))
            }
            other => panic!("an effect cannot end like this: {other:?}"),
        }
    }

    fn run(&mut self, subject: &Subject, steps: &[Step], ending: &[&str]) -> PlanReport {
        let failure = self.failure(ending);
        let stop = match ending.iter().position(|word| *word == "at") {
            Some(at) => {
                steps.iter().position(|step| step.word() == ending[at + 1]).expect("a step of this plan")
            }
            None if failure.is_some() => 0,
            None => steps.len(),
        };
        let mut done = Vec::new();
        for step in &steps[..stop] {
            done.push(self.azure.apply(subject, step));
        }
        if ending.contains(&"applied") {
            self.azure.apply(subject, &steps[stop]);
        }
        PlanReport { done, failure }
    }

    fn object(&mut self, name: &str, options: &[&str]) -> ServiceObject {
        let option = |word: &str| options.contains(&word);
        let value = |word: &str| options.iter().find_map(|it| it.strip_prefix(word));
        let known = self.objects.get(name).cloned();
        let number = value("uid=").map(|n| n.parse::<u128>().unwrap());
        let uid = match (number, &known) {
            (Some(number), _) => Uid::from_number(number),
            (None, Some(known)) => known.uid,
            (None, None) => {
                Uid::from_number(u128::from(name.bytes().fold(7u64, |sum, b| sum * 31 + u64::from(b))))
            }
        };
        let known = known.filter(|known| known.uid == uid);
        let (port, target) = match value("port=") {
            Some(text) => {
                let (port, target) = text.split_once("->").expect("port=80->8080");
                let target = match target.parse() {
                    Ok(number) => TargetPort::Number(number),
                    Err(_) => TargetPort::Name(target.into()),
                };
                (port.parse().unwrap(), target)
            }
            None => (80, TargetPort::Number(8080)),
        };
        let ports = vec![ServicePort { name: "http".into(), protocol: Protocol::Tcp, port, target }];
        ServiceObject {
            uid,
            name: ObjectName::new("shop", name),
            version: self.next_version(),
            selected: !option("clusterip"),
            deleting: option("deleting"),
            finalizer: !option("nofinalizer"),
            spec: ServiceSpec { ports, internal: option("invalid"), ..ServiceSpec::default() },
            ingress: known.as_ref().map(|known| known.ingress.clone()).unwrap_or_default(),
            published: known.as_ref().and_then(|known| known.published),
            conditions: known.map(|known| known.conditions).unwrap_or_default(),
        }
    }

    fn slice(&mut self, name: &str, rest: &[&str]) -> Slice {
        let suffix = rest.iter().find_map(|it| it.strip_prefix("slice=")).unwrap_or("1");
        let port = rest.iter().find_map(|it| it.strip_prefix("port=")).map(|port| port.parse().unwrap());
        let endpoints = rest.iter().filter(|it| it.contains('@')).map(|it| {
            let (address, rest) = it.split_once('@').expect("address@node");
            let (node, condition) = rest.split_once('!').unwrap_or((rest, "ready"));
            Endpoint {
                address: address.parse().expect("an address"),
                node: Some(node.into()),
                ready: condition == "ready",
                serving: condition != "unready",
                terminating: condition == "terminating",
            }
        });
        Slice {
            name: ObjectName::new("shop", format!("{name}-{suffix}")),
            version: self.version + 1,
            owner: SliceOwner::Name(name.into()),
            ports: vec![SlicePort {
                name: "http".into(),
                protocol: Protocol::Tcp,
                port: port.or(Some(8080)),
            }],
            endpoints: endpoints.collect(),
            malformed: vec![],
        }
    }

    fn pod(&mut self, name: &str, options: &[&str]) -> PodObject {
        let option = |word: &str| options.contains(&word);
        let value = |word: &str| options.iter().find_map(|it| it.strip_prefix(word));
        let count = self.pods.len() as u128 + 1;
        let version = self.next_version();
        let uid = *self
            .pods
            .entry(name.into())
            .or_insert(Uid::from_number(0xa0d0_0000 + count + u128::from(version)));
        PodObject {
            uid,
            name: ObjectName::new("shop", name),
            version,
            egress: value("egress=").map(Arc::from),
            node: value("node=").map(Arc::from),
            ips: value("ip=").map(|ip| ip.parse().unwrap()).into_iter().collect(),
            host_ips: value("host=").map(|ip| ip.parse().unwrap()).into_iter().collect(),
            phase: if option("finished") { Phase::Finished } else { Phase::Running },
            terminating: option("terminating"),
            host_network: option("hostnetwork"),
            created: version,
        }
    }

    fn azure_loses(&mut self, kind: &str, name: &str) {
        let identity = self.identity(name);
        let gone = match kind {
            "load-balancer" => self.azure.load_balancers.remove(&identity).is_some(),
            "nat-gateway" => self.azure.nat_gateways.remove(&identity).is_some(),
            "registration" => self.azure.registrations.remove(&identity).is_some(),
            "public-ip" => self.azure.public_ips.remove(&format!("{identity}-pip")).is_some(),
            _ => panic!("azure has no {kind}"),
        };
        assert!(gone, "azure has no {kind} of {name}");
    }

    fn azure_gains_ip(&mut self, name: &str, options: &[&str]) {
        let identity = self.identity(name);
        let key = ServiceKey::from_identity(&identity).expect("an identity");
        let tags = if options.contains(&"foreign") { Tags::new() } else { self.scope.tags(&key, None) };
        let id = self.scope.public_ip_id(&key, Family::V4);
        self.azure.put_ip(&id, Family::V4, tags);
    }

    fn identity(&self, name: &str) -> String {
        match self.objects.get(name) {
            Some(object) => object.uid.to_string(),
            None => name.to_string(),
        }
    }

    fn name_of(&self, key: &ServiceKey) -> String {
        match key {
            ServiceKey::Inbound(uid) => {
                let known = self.objects.iter().find(|(_, object)| object.uid == *uid);
                known.map_or_else(|| self.engine_name(key), |(name, _)| name.clone())
            }
            ServiceKey::Outbound(egress) => egress.to_string(),
        }
    }

    fn engine_name(&self, key: &ServiceKey) -> String {
        let explained = self.engine.explain(key).and_then(|it| it.view.object);
        explained.map_or_else(|| "(gone)".into(), |name| name.name.to_string())
    }

    fn words(&self, action: &Action) -> String {
        match action {
            Action::RunPlan(plan) => {
                let text = plan.to_string();
                match &plan.subject {
                    Subject::Service(key) => text.replacen(&key.to_string(), &self.name_of(key), 1),
                    Subject::Foundation => text,
                }
            }
            Action::ResumePlan(id) => format!("resume {id}"),
            Action::SyncLocations(batch) => self.batch_words(batch),
            Action::List(kind) => format!("list {}", kind.word()),
            Action::AddFinalizer(object) => format!("add finalizer to {}", object.name.name),
            Action::RemoveFinalizer(object) => format!("remove finalizer from {}", object.name.name),
            Action::WriteStatus { object, ingress, conditions, .. } => {
                let conditions: Vec<String> =
                    conditions.iter().map(|it| format!("{:?}={} {}", it.kind, it.holds, it.reason)).collect();
                let ip = ingress.map_or("no IP".into(), |ip| ip.to_string());
                format!("write status of {}: {ip}, {}", object.name.name, conditions.join(", "))
            }
            Action::ConfirmGone(object) => format!("ask whether {} is gone", object.name.name),
            Action::Relist(kind) => format!("list {kind:?}s again"),
            Action::Notify(notice) => format!("tell: {}", notice.text),
        }
    }

    fn batch_words(&self, batch: &[LocationUpdate]) -> String {
        let mut parts = Vec::new();
        for update in batch {
            let node =
                self.nodes.get(&update.location).cloned().unwrap_or_else(|| update.location.to_string());
            let bound: Vec<String> = update
                .addresses
                .iter()
                .filter(|it| !it.services.is_empty())
                .map(|it| it.address.to_string())
                .collect();
            let unbound: Vec<String> = update
                .addresses
                .iter()
                .filter(|it| it.services.is_empty())
                .map(|it| it.address.to_string())
                .collect();
            if !bound.is_empty() {
                parts.push(format!("push {} to {node}", bound.join(" ")));
            }
            if !unbound.is_empty() {
                parts.push(format!("remove {} from {node}", unbound.join(" ")));
            }
            if update.addresses.is_empty() {
                parts.push(format!("remove {node}"));
            }
        }
        parts.join(", ")
    }
}

fn failure(class: FailureClass, code: &str, status: u16) -> Failure {
    Failure { status, ..Failure::of(class, code, "as the story says") }
}

fn class_of(status: u16, code: &str) -> FailureClass {
    use sluice_model::call::{Answer, ArmError, Payload, Reply};
    let error = ArmError { code: code.into(), message: "as the story says".into() };
    let reply = Reply::Answered(Answer::new(status, Payload::Error(error)));
    Failure::in_reply(&reply).expect("a failure").class
}

impl Azure {
    fn meta(&self, id: &sluice_model::azure::ArmId, tags: Tags) -> Meta {
        Meta { id: id.clone(), tags, etag: ETag("1".into()), provisioning: Provisioning::Succeeded }
    }

    fn put_ip(&mut self, id: &sluice_model::azure::ArmId, family: Family, tags: Tags) -> PublicIp {
        self.issued += 1;
        let fresh: IpAddr = match family {
            Family::V4 => [20, 1, 2, self.issued].into(),
            Family::V6 => std::net::Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, self.issued.into()).into(),
        };
        let name = id.name().to_string();
        let known = self.public_ips.get(&name);
        let address = known.and_then(|ip| ip.address).or(Some(fresh));
        let used_by = known.and_then(|ip| ip.used_by.clone());
        let ip = PublicIp { meta: self.meta(id, tags), family, address, used_by };
        self.public_ips.insert(name, ip.clone());
        ip
    }

    fn apply(&mut self, subject: &Subject, step: &Step) -> StepResult {
        let identity = match subject {
            Subject::Service(key) => key.identity(),
            Subject::Foundation => "".into(),
        };
        match step {
            Step::PutPublicIp { id, body } => {
                return StepResult::PublicIp(self.put_ip(id, body.family, body.tags.clone()));
            }
            Step::PutLoadBalancer { id, body } => {
                let lb = LoadBalancer {
                    meta: self.meta(id, body.tags.clone()),
                    public_ip: Some(body.public_ip.clone()),
                    pools: vec![identity],
                    rules: body.rules.clone(),
                };
                if let Some(ip) = self.public_ips.get_mut(body.public_ip.name()) {
                    ip.used_by = Some(id.child("frontendIPConfigurations", "frontend"));
                }
                self.load_balancers.insert(id.name().into(), lb);
            }
            Step::PutNatGateway { id, body } => {
                let nat = NatGateway {
                    meta: self.meta(id, body.tags.clone()),
                    gateway: body.gateway.clone(),
                    public_ips: body.public_ips.clone(),
                    public_ips_v6: body.public_ips_v6.clone(),
                };
                self.nat_gateways.insert(id.name().into(), nat);
            }
            Step::Register(registration) | Step::Clear(registration) => {
                self.registrations.insert(registration.name.to_string(), registration.clone());
            }
            Step::Unregister(name) => {
                self.registrations.remove(&**name);
            }
            Step::DeleteLoadBalancer(id) => {
                self.load_balancers.remove(id.name());
            }
            Step::DeleteNatGateway(id) => {
                self.nat_gateways.remove(id.name());
            }
            Step::DeletePublicIp(id) => {
                self.public_ips.remove(id.name());
            }
            Step::ReleasePublicIp { id, tags } => {
                if let Some(ip) = self.public_ips.get_mut(id.name()) {
                    ip.meta.tags.clone_from(tags);
                }
            }
            Step::ReadPublicIp(id) => {
                return self
                    .public_ips
                    .get(id.name())
                    .cloned()
                    .map_or(StepResult::Absent, StepResult::PublicIp);
            }
            Step::ReadLoadBalancer(id) => {
                let lb = self.load_balancers.get(id.name()).cloned();
                return lb.map_or(StepResult::Absent, StepResult::LoadBalancer);
            }
            Step::ReadNatGateway(id) => {
                let nat = self.nat_gateways.get(id.name()).cloned();
                return nat.map_or(StepResult::Absent, StepResult::NatGateway);
            }
            Step::ReadRegistration(name) => {
                let registration = self.registrations.get(&**name).cloned();
                return registration.map_or(StepResult::Absent, StepResult::Registration);
            }
            Step::PutGateway { .. } => self.gateway_missing = false,
            Step::AttachSubnet { .. } => {}
        }
        StepResult::Done
    }

    pub(crate) fn apply_locations(&mut self, batch: &[LocationUpdate]) {
        for update in batch {
            let location = self.locations.entry(update.location).or_default();
            if update.full {
                location.clear();
            }
            for address in &update.addresses {
                if address.services.is_empty() {
                    location.remove(&address.address);
                } else {
                    location.insert(address.address, address.services.clone());
                }
            }
            if location.is_empty() {
                self.locations.remove(&update.location);
            }
        }
    }

    fn listing(&self, kind: Listable, scope: &Scope) -> Listing {
        let gateway = scope.gateway_id();
        match kind {
            Listable::Foundation => Listing::Foundation {
                gateway: (!self.gateway_missing).then(|| Gateway {
                    meta: self.meta(&gateway, scope.gateway_tags()),
                    virtual_network: scope.virtual_network_id(),
                    route_target_subnet: scope.subnet_id(),
                    route_target_address: None,
                }),
                subnet: Some(Subnet {
                    id: scope.subnet_id(),
                    etag: ETag("1".into()),
                    gateway: Some(gateway),
                    rest: "".into(),
                }),
            },
            Listable::Registrations => Listing::Registrations(self.registrations.values().cloned().collect()),
            Listable::Locations => Listing::Locations(
                self.locations
                    .iter()
                    .map(|(location, addresses)| Location {
                        location: *location,
                        addresses: addresses
                            .iter()
                            .map(|(address, services)| sluice_model::azure::AddressUpdate {
                                address: *address,
                                services: services.clone(),
                            })
                            .collect(),
                    })
                    .collect(),
            ),
            Listable::LoadBalancers => {
                Listing::LoadBalancers(self.load_balancers.values().cloned().collect())
            }
            Listable::NatGateways => Listing::NatGateways(self.nat_gateways.values().cloned().collect()),
            Listable::PublicIps => Listing::PublicIps(self.public_ips.values().cloned().collect()),
        }
    }
}
