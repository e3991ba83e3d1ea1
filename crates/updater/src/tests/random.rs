//! Anything may come back, at any time: nothing panics, every effect ends exactly once, and
//! there is always a next moment that is not now.

use std::collections::{BTreeMap, BTreeSet};
use std::format;
use std::vec;
use std::vec::Vec;

use core::time::Duration;

use proptest::prelude::*;
use sluice_model::azure::{ArmId, GatewayBody, LocationUpdate, Provisioning, Tags};
use sluice_model::call::{Answer, Method, OperationState, Payload, Reply, Request};
use sluice_model::effect::{Cause, Listable};
use sluice_model::seeded::Seeded;
use sluice_model::{Action, Effect, EffectId, Event, Step, Time};

use super::story::{
    cleared, error, gateway, load_balancer_id, nat_gateway_id, page, plan, public_ip, public_ip_id,
    put_load_balancer, put_nat_gateway, put_public_ip, registration, scope, subnet,
};
use crate::{CallId, Config, Output, Updaters};

#[derive(Clone, Debug)]
enum Deed {
    Start(Action),
    /// Answers the so-manieth call of those that ever were.
    Reply(usize, Reply),
    /// Answers the oldest open call as Azure would.
    Serve,
    Pass(u64),
    Backwards(u64),
    Fence(Option<u64>),
}

struct World {
    updaters: Updaters,
    now: Time,
    next_id: u64,
    started: BTreeSet<EffectId>,
    ended: BTreeMap<EffectId, u32>,
    asked: Vec<EffectId>,
    calls: u64,
    open: BTreeMap<CallId, Request>,
    writes_ms: Vec<u64>,
    fence: Option<Time>,
}

impl World {
    fn start(&mut self, action: Action) {
        self.next_id += 1;
        let id = EffectId(self.next_id);
        if !matches!(action, Action::ResumePlan(_)) {
            self.started.insert(id);
        }
        self.updaters.start(self.now, &Effect { id, action, cause: Cause::Requested });
        self.drain();
    }

    fn reply(&mut self, call: CallId, reply: Reply) {
        self.open.remove(&call);
        self.updaters.replied(self.now, call, reply);
        self.drain();
    }

    fn drain(&mut self) {
        loop {
            while let Some(output) = self.updaters.next_output(self.now) {
                match output {
                    Output::Send { call, request, .. } => {
                        assert!(self.fence.is_some_and(|fence| self.now < fence));
                        if !matches!(request.method, Method::Get | Method::List | Method::Poll) {
                            self.writes_ms.push(self.now.as_millis());
                        }
                        self.calls += 1;
                        self.open.insert(call, request);
                    }
                    Output::Report(Event::EffectFinished { id, .. }) => {
                        *self.ended.entry(id).or_default() += 1
                    }
                    Output::Report(Event::SlotWanted(id)) => self.asked.push(id),
                    Output::Report(_) => {}
                }
            }
            let Some(id) = self.asked.pop() else { break };
            let resume = Effect { id, action: Action::ResumePlan(id), cause: Cause::SlotGranted };
            self.updaters.start(self.now, &resume);
        }
        if let Some(at) = self.updaters.next_deadline() {
            assert!(at > self.now, "a deadline at {at} that is not after {}", self.now);
        }
        assert!(self.updaters.on_the_wire() <= self.open.len());
    }

    fn pass(&mut self, ms: u64) {
        let end = self.now + Duration::from_millis(ms);
        while let Some(at) = self.updaters.next_deadline().filter(|at| *at <= end) {
            self.now = at;
            self.updaters.tick(at);
            self.drain();
        }
        self.now = end;
        self.updaters.tick(end);
        self.drain();
    }

    fn serve(&mut self) -> bool {
        let Some((call, request)) = self.open.pop_first() else { return false };
        let payload = match request.method {
            Method::Get => match request.target.as_str() {
                target if target.contains("publicIP") => public_ip("web", Provisioning::Succeeded),
                target if target.ends_with("servicegateway") => gateway(),
                target if target.contains("subnets") => subnet(None),
                _ => Payload::Error(error("ResourceNotFound")),
            },
            Method::List => match request.target.name() {
                "services" => Payload::Registrations(page(Vec::new(), None)),
                "addressLocations" => Payload::Locations(page(Vec::new(), None)),
                "loadBalancers" => Payload::LoadBalancers(page(Vec::new(), None)),
                "natGateways" => Payload::NatGateways(page(Vec::new(), None)),
                _ => Payload::PublicIps(page(Vec::new(), None)),
            },
            Method::Poll => Payload::Operation(OperationState::Succeeded),
            _ => {
                let operation = Some(ArmId::new(format!("/operations/{}", call.0)));
                self.reply(call, Reply::Answered(Answer { operation, ..Answer::new(202, Payload::None) }));
                return true;
            }
        };
        let status = if matches!(payload, Payload::Error(_)) { 404 } else { 200 };
        self.reply(call, Reply::Answered(Answer::new(status, payload)));
        true
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let name = prop::sample::select(vec!["a", "b", "c"]);
    let step = (0usize..17, name).prop_map(|(kind, name)| match kind {
        0 => put_public_ip(name),
        1 => put_load_balancer(name),
        2 => put_nat_gateway(name),
        3 => Step::Register(registration(name)),
        4 => Step::Clear(cleared(name)),
        5 => Step::Unregister(name.into()),
        6 => Step::DeleteLoadBalancer(load_balancer_id(name)),
        7 => Step::DeleteNatGateway(nat_gateway_id(name)),
        8 => Step::DeletePublicIp(public_ip_id(name)),
        9 => Step::ReleasePublicIp(public_ip_id(name)),
        10 => Step::ReadPublicIp(public_ip_id(name)),
        11 => Step::ReadLoadBalancer(load_balancer_id(name)),
        12 => Step::ReadRegistration(name.into()),
        13 => Step::PutGateway {
            id: scope().gateway_id(),
            body: GatewayBody {
                virtual_network: scope().virtual_network_id(),
                route_target_subnet: scope().subnet_id(),
                route_target_address: None,
                route_target_address_v6: None,
                tags: Tags::new(),
            },
        },
        14 => Step::ClaimGateway { id: scope().gateway_id(), tags: scope().gateway_tags() },
        15 => Step::RepairGateway(scope().gateway_id()),
        _ => Step::AttachSubnet { subnet: scope().subnet_id(), gateway: scope().gateway_id() },
    });
    prop::collection::vec(step, 0..5)
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        6 => steps().prop_map(|steps| Action::RunPlan(plan(steps))),
        1 => (0u64..40).prop_map(|id| Action::ResumePlan(EffectId(id))),
        1 => (0usize..3).prop_map(|count| {
            let location =
                LocationUpdate { location: [10, 0, 0, 1].into(), full: false, addresses: Vec::new() };
            Action::SyncLocations(vec![location; count])
        }),
        2 => prop::sample::select(Listable::ALL.to_vec()).prop_map(Action::List),
    ]
}

fn reply() -> impl Strategy<Value = Reply> {
    let code = prop::sample::select(vec![
        "ResourceNotFound",
        "InternalServerError",
        "RetryableErrorDueToAnotherOperation",
        "ServiceWithOverlayMappingsCannotBeDeleted",
        "PublicIPAddressCannotBeDeleted",
        "QuotaExceeded",
        "ScopeLocked",
        "",
    ]);
    let payload = (0usize..16, code).prop_map(|(kind, code)| match kind {
        0..4 => Payload::None,
        4 => Payload::Operation(OperationState::Running),
        5 => Payload::Operation(OperationState::Succeeded),
        6 => Payload::Operation(OperationState::Failed(error(code))),
        7 => Payload::Operation(OperationState::Canceled(error(code))),
        8 => public_ip("web", Provisioning::Succeeded),
        9 => public_ip("web", Provisioning::Failed),
        10 => public_ip("web", Provisioning::Unknown),
        11 => Payload::Registrations(page(vec![registration("a")], Some("next"))),
        12 => gateway(),
        13 => subnet(None),
        _ => Payload::Error(error(code)),
    });
    let status = prop::sample::select(vec![
        0u16, 200, 201, 202, 204, 301, 400, 401, 404, 409, 412, 429, 500, 503, 999,
    ]);
    let retry_after = prop::option::of(prop::sample::select(vec![0u64, 1, 30, 4_000]));
    let answered = (status, payload, any::<bool>(), retry_after, prop::option::of(0u32..300)).prop_map(
        |(status, payload, operation, retry_after, remaining)| {
            Reply::Answered(Answer {
                status,
                payload,
                operation: operation.then(|| ArmId::new("/operations/1")),
                retry_after: retry_after.map(Duration::from_secs),
                remaining,
            })
        },
    );
    prop_oneof![8 => answered, 1 => Just(Reply::lost("no answer")), 1 => Just(Reply::not_sent("no connection"))]
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        4 => action().prop_map(Deed::Start),
        6 => (0usize..60, reply()).prop_map(|(call, reply)| Deed::Reply(call, reply)),
        3 => Just(Deed::Serve),
        3 => prop::sample::select(vec![0u64, 1, 70, 900, 8_000, 66_000, 1_000_000]).prop_map(Deed::Pass),
        1 => (0u64..5_000).prop_map(Deed::Backwards),
        1 => prop::option::of(0u64..100_000).prop_map(Deed::Fence),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn whatever_comes_back_every_effect_ends_exactly_once(deeds in prop::collection::vec(deed(), 1..120), seed: u64) {
        let mut world = World {
            updaters: Updaters::new(Config::default(), scope(), seed, Seeded::NONE),
            now: Time::ZERO,
            next_id: 0,
            started: BTreeSet::new(),
            ended: BTreeMap::new(),
            asked: Vec::new(),
            calls: 0,
            open: BTreeMap::new(),
            writes_ms: Vec::new(),
            fence: None,
        };
        for deed in deeds {
            match deed {
                Deed::Start(action) => world.start(action),
                Deed::Reply(back, reply) => {
                    let call = world.calls.saturating_sub(back as u64);
                    world.reply(CallId(call), reply);
                }
                Deed::Serve => {
                    world.serve();
                }
                Deed::Pass(ms) => world.pass(ms),
                Deed::Backwards(ms) => world.updaters.tick(world.now - Duration::from_millis(ms)),
                Deed::Fence(after_ms) => {
                    world.fence = after_ms.map(|ms| world.now + Duration::from_millis(ms));
                    world.updaters.fence(world.fence);
                    world.drain();
                }
            }
        }
        // From here on all is well: everything that was begun comes to its end.
        world.fence = Some(Time::NEVER);
        world.updaters.fence(world.fence);
        world.drain();
        for _ in 0..20_000 {
            if !world.serve() {
                let Some(at) = world.updaters.next_deadline() else { break };
                let ms = u64::try_from(at.since(world.now).as_millis()).unwrap();
                world.pass(ms);
            }
        }
        prop_assert_eq!(world.updaters.next_deadline(), None);
        prop_assert!(world.ended.values().all(|ends| *ends == 1));
        prop_assert_eq!(world.started, world.ended.into_keys().collect::<BTreeSet<_>>());
        for (at, first) in world.writes_ms.iter().enumerate() {
            let busy = world.writes_ms[at..].iter().take_while(|ms| **ms < first + 300_000).count();
            prop_assert!(busy <= 800);
        }
    }
}
