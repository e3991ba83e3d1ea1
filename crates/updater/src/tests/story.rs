//! The one helper that touches the API: drives updaters with scripted replies and writes down
//! what comes out.

use std::collections::BTreeMap;
use std::format;
use std::string::{String, ToString};
use std::sync::Arc;
use std::vec::Vec;

use core::time::Duration;

use sluice_model::azure::{
    ArmId, Direction, ETag, Gateway, LoadBalancer, LoadBalancerBody, LocationUpdate, Meta, NatGatewayBody,
    Provisioning, PublicIp, PublicIpBody, Registration, Subnet, Tags,
};
use sluice_model::call::{
    Answer, ArmError, Body, Method, OperationState, Page, PageToken, Payload, Reply, Request,
};
use sluice_model::effect::{Cause, Listable, Listing};
use sluice_model::event::Wait;
use sluice_model::names::Scope;
use sluice_model::plan::{Intent, Plan, StepResult, Subject};
use sluice_model::seeded::Seeded;
use sluice_model::{Action, Effect, EffectId, Event, Failure, Family, Outcome, Step, Time};

use crate::{CallId, Config, Output, Updaters};

pub(crate) fn scope() -> Scope {
    Scope {
        subscription: "sub".into(),
        resource_group: "rg".into(),
        network_resource_group: "rg".into(),
        virtual_network: "vnet".into(),
        subnet: "pods".into(),
        gateway: "servicegateway".into(),
        cluster_id: "cluster".into(),
    }
}

/// One conversation with the updaters.
pub(crate) struct Story {
    pub(crate) updaters: Updaters,
    pub(crate) now: Time,
    pub(crate) sent: BTreeMap<CallId, Request>,
    /// Every failure that was reported.
    pub(crate) failures: Vec<Failure>,
    lines: Vec<String>,
}

impl Story {
    pub(crate) fn new() -> Story {
        Story::with(Config::default(), Seeded::NONE)
    }

    pub(crate) fn with(config: Config, seeded: Seeded) -> Story {
        let mut updaters = Updaters::new(config, scope(), 7, seeded);
        updaters.fence(Some(Time::NEVER));
        Story { updaters, now: Time::ZERO, sent: BTreeMap::new(), failures: Vec::new(), lines: Vec::new() }
    }

    /// Everything that came out since the last time.
    pub(crate) fn told(&mut self) -> String {
        let mut text = core::mem::take(&mut self.lines).join("\n");
        text.push('\n');
        text
    }

    /// Forgets what came out so far.
    pub(crate) fn quietly(&mut self) {
        self.lines.clear();
    }

    pub(crate) fn start(&mut self, id: u64, action: Action) -> &mut Story {
        let effect = Effect { id: EffectId(id), action, cause: Cause::Requested };
        assert!(self.updaters.start(self.now, &effect));
        self.drain()
    }

    pub(crate) fn plan(&mut self, id: u64, steps: Vec<Step>) -> &mut Story {
        self.start(id, Action::RunPlan(plan(steps)))
    }

    pub(crate) fn resume(&mut self, id: u64) -> &mut Story {
        self.start(1_000_000 + id, Action::ResumePlan(EffectId(id)))
    }

    pub(crate) fn list(&mut self, id: u64, what: Listable) -> &mut Story {
        self.start(id, Action::List(what))
    }

    pub(crate) fn sync(&mut self, id: u64, updates: Vec<LocationUpdate>) -> &mut Story {
        self.start(id, Action::SyncLocations(updates))
    }

    pub(crate) fn fence(&mut self, until_ms: Option<u64>) -> &mut Story {
        self.updaters.fence(until_ms.map(Time::from_millis));
        self.drain()
    }

    /// Lets time pass up to this moment, stopping at every deadline.
    pub(crate) fn until(&mut self, ms: u64) -> &mut Story {
        let end = Time::from_millis(ms);
        while let Some(at) = self.updaters.next_deadline().filter(|at| *at <= end) {
            assert!(at > self.now, "a deadline at {at} that is not after {}", self.now);
            self.now = at;
            self.updaters.tick(at);
            self.drain();
        }
        self.now = self.now.max(end);
        self.updaters.tick(self.now);
        self.drain()
    }

    pub(crate) fn reply(&mut self, call: u64, reply: Reply) -> &mut Story {
        self.sent.remove(&CallId(call));
        self.updaters.replied(self.now, CallId(call), reply);
        self.drain()
    }

    pub(crate) fn answer(&mut self, call: u64, status: u16, payload: Payload) -> &mut Story {
        self.reply(call, Reply::Answered(Answer::new(status, payload)))
    }

    /// A 202 or 201 with an operation called `op{call}`.
    pub(crate) fn accept(&mut self, call: u64) -> &mut Story {
        self.reply(call, accepted(202, &format!("op{call}"), None))
    }

    /// A poll's answer.
    pub(crate) fn poll(&mut self, call: u64, state: OperationState) -> &mut Story {
        self.answer(call, 200, Payload::Operation(state))
    }

    pub(crate) fn refuse(&mut self, call: u64, status: u16, code: &str) -> &mut Story {
        self.reply(call, refused(status, code))
    }

    pub(crate) fn throttle(&mut self, call: u64, seconds: Option<u64>) -> &mut Story {
        self.reply(call, throttled(seconds))
    }

    pub(crate) fn drain(&mut self) -> &mut Story {
        while let Some(output) = self.updaters.next_output(self.now) {
            let line = match output {
                Output::Send { call, request, effect } => {
                    let line = format!("call {} for {effect}: {}", call.0, words_of(&request));
                    self.sent.insert(call, request);
                    line
                }
                Output::Report(event) => {
                    self.failures.extend(failure_in(&event).cloned());
                    words_of_event(&event)
                }
            };
            self.lines.push(format!("t={} {line}", self.now));
        }
        self
    }
}

pub(crate) fn plan(steps: Vec<Step>) -> Plan {
    Plan { subject: Subject::Foundation, intent: Intent::Provision, steps }
}

fn words_of(request: &Request) -> String {
    let parts: Vec<&str> = request.target.as_str().rsplit('/').take(2).collect();
    let target = match parts.as_slice() {
        [name, kind] => format!("{kind}/{name}"),
        _ => request.target.to_string(),
    };
    let page = request.page.as_ref().map(|page| format!(" page {}", page.0)).unwrap_or_default();
    let guard = request.if_match.as_ref().map(|etag| format!(" if {}", etag.0)).unwrap_or_default();
    let body = match &request.body {
        Body::Services(services) => services
            .iter()
            .map(|it| format!(" {}{}", if it.is_delete { "-" } else { "+" }, it.service.name))
            .collect(),
        Body::Locations(locations) => format!(" {} locations", locations.len()),
        _ => String::new(),
    };
    let method = match request.method {
        Method::Get => "get",
        Method::List => "list",
        Method::Put => "put",
        Method::PatchTags => "patch tags of",
        Method::Delete => "delete",
        Method::UpdateServices => "commit",
        Method::UpdateLocations => "sync",
        Method::Poll => "poll",
    };
    match request.method {
        Method::UpdateServices | Method::UpdateLocations => format!("{method}{body}"),
        _ => format!("{method} {target}{page}{guard}"),
    }
}

fn words_of_event(event: &Event) -> String {
    match event {
        Event::SlotReleased { id, wait } => match wait {
            Wait::SharedCommit => format!("{id} gives its slot back: shared commit"),
            Wait::Throttled { until } => format!("{id} gives its slot back: throttled until {until}"),
            Wait::Budget { until } => format!("{id} gives its slot back: budget until {until}"),
            Wait::SlowOperation => format!("{id} gives its slot back: slow operation"),
        },
        Event::Held { id, wait: Wait::Throttled { until } } => format!("{id} waits: throttled until {until}"),
        Event::Held { id, wait: Wait::Budget { until } } => format!("{id} waits: budget until {until}"),
        Event::SlotWanted(id) => format!("{id} wants a slot"),
        Event::EffectFinished { id, outcome } => match outcome {
            Outcome::Plan(report) => {
                let done: Vec<String> = report.done.iter().map(words_of_result).collect();
                let end = words_of_failure(report.failure.as_ref());
                format!("{id} {end}: [{}]", done.join(", "))
            }
            Outcome::Locations { failure, next_at } => {
                format!("{id} {}, next at {next_at}", words_of_failure(failure.as_ref()))
            }
            Outcome::Listed { began, result } => {
                let found = match result {
                    Ok(Listing::Foundation { gateway, subnet }) => {
                        format!("gateway {} subnet {}", gateway.is_some(), subnet.is_some())
                    }
                    Ok(Listing::Registrations(all)) => format!("{} registrations", all.len()),
                    Ok(Listing::Locations(all)) => format!("{} locations", all.len()),
                    Ok(Listing::LoadBalancers(all)) => format!("{} load balancers", all.len()),
                    Ok(Listing::NatGateways(all)) => format!("{} NAT gateways", all.len()),
                    Ok(Listing::PublicIps(all)) => format!("{} public IPs", all.len()),
                    Err(failure) => words_of_failure(Some(failure)),
                };
                format!("{id} listed as of {began}: {found}")
            }
            other => format!("{id} {other:?}"),
        },
        Event::RegistrationsRead { began, all } => {
            format!("{} registrations read as of {began}", all.len())
        }
        other => format!("{other:?}"),
    }
}

fn failure_in(event: &Event) -> Option<&Failure> {
    let Event::EffectFinished { outcome, .. } = event else { return None };
    match outcome {
        Outcome::Plan(report) => report.failure.as_ref(),
        Outcome::Locations { failure, .. } => failure.as_ref(),
        Outcome::Listed { result, .. } => result.as_ref().err(),
        _ => None,
    }
}

fn words_of_failure(failure: Option<&Failure>) -> String {
    failure.map_or("done".into(), |it| format!("failed {} ({})", it.code, it.class.word()))
}

fn words_of_result(result: &StepResult) -> String {
    match result {
        StepResult::Done => "done".into(),
        StepResult::PublicIp(ip) => format!("{:?}", ip.address),
        StepResult::LoadBalancer(it) => format!("load balancer {}", it.meta.id.name()),
        StepResult::NatGateway(it) => format!("NAT gateway {}", it.meta.id.name()),
        StepResult::Registration(it) => format!("registration {}", it.name),
        StepResult::Absent => "absent".into(),
    }
}

pub(crate) fn public_ip_id(name: &str) -> ArmId {
    scope().resource("publicIPAddresses", &format!("{name}-pip"))
}

pub(crate) fn load_balancer_id(name: &str) -> ArmId {
    scope().resource("loadBalancers", name)
}

pub(crate) fn nat_gateway_id(name: &str) -> ArmId {
    scope().resource("natGateways", name)
}

pub(crate) fn put_public_ip(name: &str) -> Step {
    let body = PublicIpBody { family: Family::V4, tags: Tags::new() };
    Step::PutPublicIp { id: public_ip_id(name), body, exists: false }
}

pub(crate) fn put_load_balancer(name: &str) -> Step {
    let body = LoadBalancerBody { public_ip: public_ip_id(name), rules: Vec::new(), tags: Tags::new() };
    Step::PutLoadBalancer { id: load_balancer_id(name), body, exists: false }
}

pub(crate) fn put_nat_gateway(name: &str) -> Step {
    let body = NatGatewayBody {
        gateway: Some(scope().gateway_id()),
        public_ips: Vec::from([public_ip_id(name)]),
        public_ips_v6: Vec::new(),
        tags: Tags::new(),
    };
    Step::PutNatGateway { id: nat_gateway_id(name), body, exists: false }
}

pub(crate) fn registration(name: &str) -> Registration {
    Registration {
        name: name.into(),
        direction: Direction::Inbound,
        is_default: false,
        pools: Vec::from([load_balancer_id(name).child("backendAddressPools", name)]),
        nat_gateway: None,
    }
}

pub(crate) fn cleared(name: &str) -> Registration {
    Registration { pools: Vec::new(), ..registration(name) }
}

pub(crate) fn provision(name: &str) -> Vec<Step> {
    Vec::from([put_public_ip(name), put_load_balancer(name), Step::Register(registration(name))])
}

pub(crate) fn deprovision(name: &str) -> Vec<Step> {
    Vec::from([
        Step::Clear(cleared(name)),
        Step::DeleteLoadBalancer(load_balancer_id(name)),
        Step::Unregister(name.into()),
        Step::DeletePublicIp(public_ip_id(name)),
    ])
}

pub(crate) fn meta(id: ArmId, provisioning: Provisioning) -> Meta {
    Meta { id, tags: Tags::new(), etag: ETag("1".into()), provisioning }
}

pub(crate) fn public_ip(name: &str, provisioning: Provisioning) -> Payload {
    Payload::PublicIp(PublicIp {
        meta: meta(public_ip_id(name), provisioning),
        family: Family::V4,
        address: (provisioning == Provisioning::Succeeded).then_some([198, 18, 0, 1].into()),
        used_by: None,
    })
}

pub(crate) fn load_balancer(name: &str) -> Payload {
    Payload::LoadBalancer(LoadBalancer {
        meta: meta(load_balancer_id(name), Provisioning::Succeeded),
        public_ip: Some(public_ip_id(name)),
        pools: Vec::from([name.into()]),
        rules: Vec::new(),
        edited: false,
    })
}

/// A resource with our cluster tag and one of others.
pub(crate) fn managed(mut payload: Payload) -> Payload {
    let mut tags = scope().gateway_tags();
    tags.insert("theirs".into(), "yes".into());
    match &mut payload {
        Payload::PublicIp(it) => it.meta.tags = tags,
        Payload::LoadBalancer(it) => it.meta.tags = tags,
        Payload::NatGateway(it) => it.meta.tags = tags,
        _ => {}
    }
    payload
}

/// A public IP of ours, ready.
pub(crate) fn managed_ip(name: &str) -> Payload {
    managed(public_ip(name, Provisioning::Succeeded))
}

pub(crate) fn gateway() -> Payload {
    gateway_with(&[], Provisioning::Succeeded)
}

pub(crate) fn gateway_with(tags: &[(&str, &str)], provisioning: Provisioning) -> Payload {
    let tags = tags.iter().map(|(name, value)| (Arc::from(*name), Arc::from(*value))).collect();
    Payload::Gateway(Gateway {
        meta: Meta { tags, ..meta(scope().gateway_id(), provisioning) },
        virtual_network: scope().virtual_network_id(),
        route_target_subnet: scope().subnet_id(),
        route_target_address: None,
        route_target_address_v6: None,
        document: "as it was".into(),
    })
}

pub(crate) fn subnet(gateway: Option<ArmId>) -> Payload {
    Payload::Subnet(Subnet {
        id: scope().subnet_id(),
        etag: ETag("e7".into()),
        gateway,
        rest: "as it was".into(),
    })
}

pub(crate) fn page<T>(items: Vec<T>, next: Option<&str>) -> Page<T> {
    Page { items, next: next.map(|next| PageToken(next.into())) }
}

pub(crate) fn accepted(status: u16, operation: &str, retry_after_s: Option<u64>) -> Reply {
    Reply::Answered(Answer {
        operation: Some(ArmId::new(format!("/operations/{operation}"))),
        retry_after: retry_after_s.map(Duration::from_secs),
        ..Answer::new(status, Payload::None)
    })
}

pub(crate) fn error(code: &str) -> ArmError {
    ArmError { code: code.into(), message: "".into() }
}

pub(crate) fn refused(status: u16, code: &str) -> Reply {
    Reply::Answered(Answer::new(status, Payload::Error(error(code))))
}

pub(crate) fn throttled(seconds: Option<u64>) -> Reply {
    waiting(429, "SubscriptionRequestsThrottled", seconds)
}

/// A refusal that says how long to wait.
pub(crate) fn waiting(status: u16, code: &str, seconds: Option<u64>) -> Reply {
    Reply::Answered(Answer {
        retry_after: seconds.map(Duration::from_secs),
        ..Answer::new(status, Payload::Error(error(code)))
    })
}

/// A 429 that says that another operation on the same resource is in the way, and for how long.
pub(crate) fn busy(seconds: u64) -> Reply {
    let message = format!("Another operation is in progress; please retry after {seconds} seconds.");
    let error = ArmError { code: "RetryableErrorDueToAnotherOperation".into(), message: message.into() };
    Reply::Answered(Answer::new(429, Payload::Error(error)))
}
