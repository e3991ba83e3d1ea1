//! Whatever is sent in whatever order: no panic, and never a state that Azure could not be in.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;
use sluice_cloud::{Buckets, Cloud, Config, Fault, Forbidden, InlineSubnet, LockLevel, Quota, State, Tamper};
use sluice_model::address::Family;
use sluice_model::azure::*;
use sluice_model::call::*;
use sluice_model::kube::Protocol;
use sluice_model::time::Time;

use crate::support::*;

const NAMES: [&str; 3] = ["a", "b", "C"];

/// One small number per choice; a scene turns it into a request.
#[derive(Clone, Copy, Debug)]
struct Dice {
    what: u8,
    name: u8,
    other: u8,
    flags: u8,
    fault: u8,
    wait_ms: u16,
    backwards: bool,
}

fn dice() -> impl Strategy<Value = Dice> {
    let small = any::<u8>();
    (small, small, small, small, small, 0u16..6_000, prop::bool::weighted(0.05)).prop_map(
        |(what, name, other, flags, fault, wait_ms, backwards)| Dice {
            what,
            name,
            other,
            flags,
            fault,
            wait_ms,
            backwards,
        },
    )
}

fn pick(number: u8) -> &'static str {
    NAMES[usize::from(number) % NAMES.len()]
}

fn request(scene: &Scene, dice: Dice) -> Request {
    let Dice { what, name, other, flags, .. } = dice;
    let (name, other) = (pick(name), pick(other));
    let tags = Tags::from([("n".into(), format!("{}", flags % 2).into())]);
    let flag = |bit: u8| flags >> bit & 1 == 1;
    let family = if flag(0) { Family::V4 } else { Family::V6 };
    let subnet = scene.scope.subnet_id();
    match what % 23 {
        0 | 1 => {
            let body = PublicIpBody { family, tags };
            Request::with(Method::Put, scene.public_ip(other), Body::PublicIp(body))
        }
        2 | 3 => {
            let rule = Rule {
                protocol: if flag(1) { Protocol::Tcp } else { Protocol::Udp },
                frontend_port: flags.into(),
                backend_port: u16::from(dice.name),
                idle_timeout_minutes: 4,
            };
            scene.put_lb_on(name, other, &[rule])
        }
        4 | 5 => {
            let (mut v4, mut v6) = (vec![], vec![]);
            if flag(0) {
                v4.push(scene.public_ip(other))
            } else {
                v6.push(scene.public_ip(other))
            }
            let gateway = flag(1).then(|| scene.gateway());
            let body = NatGatewayBody { gateway, public_ips: v4, public_ips_v6: v6, tags };
            Request::with(Method::Put, scene.nat_gateway(name), Body::NatGateway(body))
        }
        6..=8 => {
            let outbound = flag(0);
            let service = Registration {
                is_default: flag(1),
                ..if outbound { scene.outbound(name) } else { scene.inbound(name) }
            };
            let cleared = Registration { pools: vec![], nat_gateway: None, ..service.clone() };
            let service = if flag(2) { service } else { cleared };
            let first = ServiceRequest { is_delete: flag(3), service };
            let second = ServiceRequest { is_delete: flag(4), service: scene.inbound(other) };
            scene.services(if flag(5) { vec![first] } else { vec![first, second] })
        }
        9..=11 => {
            let node = format!("10.1.0.{}", dice.other % 3 + 4);
            let services: &[&str] = if flag(0) { &[name] } else { &[] };
            let addresses = ["10.2.0.4", "10.2.0.5"].map(|address| (address, services));
            let count = if flag(1) { 1 } else { 2 * usize::from(flag(2)) };
            let addresses = &addresses[..count];
            let update = LocationUpdate { full: flag(3), ..at(&node, addresses) };
            let extra = at("10.1.0.4", &[("10.2.0.6", &[other])]);
            scene.locations(if flag(4) { vec![update] } else { vec![update, extra] })
        }
        12 => scene.delete(&scene.public_ip(other)),
        13 => scene.delete(&scene.load_balancer(name)),
        14 => scene.delete(&scene.nat_gateway(name)),
        15 => {
            let gateway = flag(0).then(|| scene.gateway());
            let body = SubnetBody { gateway, rest: format!("{}", flags).into() };
            let id = if flag(1) { subnet } else { scene.scope.virtual_network_id().child("subnets", other) };
            Request::with(Method::Put, id, Body::Subnet(body))
        }
        16 => Request::with(Method::Put, scene.gateway(), scene.gateway_body()),
        17 => match dice.name % 8 {
            0 => scene.delete(&scene.gateway()),
            1 => scene.delete(&subnet),
            2 => scene.delete(&scene.scope.virtual_network_id()),
            3 if dice.other < 64 => scene.delete(&scene.group()),
            4 | 5 => Request::with(Method::Put, scene.scope.virtual_network_id(), Body::Container),
            _ => Request::with(Method::Put, scene.group(), Body::Container),
        },
        18 => Request::with(Method::PatchTags, scene.public_ip(other), Body::Tags(tags)),
        19 => {
            let kinds = ["publicIPAddresses", "loadBalancers", "natGateways", "serviceGateways"];
            let page = flag(0).then(|| PageToken(format!("natGateways|{}", scene.nat_gateway(name)).into()));
            let target = scene.scope.collection(kinds[usize::from(flags / 2) % kinds.len()]);
            Request { page, ..Request::bare(Method::List, target) }
        }
        20 => {
            let word = if flag(0) { "services" } else { "addressLocations" };
            let page = flag(1).then(|| PageToken(format!("{word}|{other}").into()));
            let target = ArmId::new(format!("{}/{word}", scene.gateway()));
            Request { page, ..Request::bare(Method::List, target) }
        }
        21 => Request::bare(Method::Get, scene.load_balancer(name)),
        _ => {
            let frontend = flag(0).then(|| (pick(dice.fault).into(), scene.public_ip(other)));
            let pools = NAMES.iter().zip(1..).filter(|(_, bit)| flag(*bit)).map(|(name, _)| (*name).into());
            let body = ForeignLoadBalancerBody { frontend, pools: pools.collect(), rules: vec![], tags };
            Request::with(Method::Put, scene.load_balancer(name), Body::ForeignLoadBalancer(body))
        }
    }
}

fn fault(dice: Dice) -> Option<Fault> {
    let some_time = Duration::from_millis(u64::from(dice.other) * 60);
    Some(match dice.fault {
        0..=9 => Fault::AppliedButLost,
        10..=19 => Fault::LaggingReads { duration: some_time },
        20..=29 => Fault::OperationFails { code: "InternalServerError".into() },
        30..=34 => Fault::OperationCanceled,
        35..=39 => Fault::OperationNeverEnds,
        40..=44 => Fault::ProvisioningFails,
        45..=54 => Fault::AnsweredButNotApplied,
        55..=59 => Fault::SlowBy(dice.other.into()),
        60..=64 => Fault::ShortPage { items: usize::from(dice.other % 3) },
        65..=69 => Fault::UnknownEnum,
        70..=74 => Fault::ErrorIn200,
        75..=79 => Fault::AnsweredAtOnce,
        80..=82 => Fault::FailPage,
        83..=84 => Fault::NotSent,
        85..=86 => Fault::LostUnapplied,
        _ => return None,
    })
}

fn tamper(scene: &mut Scene, dice: Dice) {
    let (name, other) = (pick(dice.name), pick(dice.other));
    let gateway = scene.gateway();
    let (location, address) = (ip("10.1.0.4"), ip("10.2.0.4"));
    let change = match dice.flags % 14 {
        0 => Tamper::DeletePublicIp(scene.public_ip(other)),
        1 => Tamper::DeleteLoadBalancer(scene.load_balancer(name)),
        2 => Tamper::DeleteNatGateway(scene.nat_gateway(name)),
        3 => Tamper::DeleteRegistration { gateway, name: name.into() },
        4 => Tamper::AddAddress { gateway, location, address, services: names(&[name]) },
        5 => Tamper::DeleteAddress { gateway, location, address },
        6 if dice.name < 40 => Tamper::DeleteGateway(gateway),
        7 => Tamper::Lock { scope: scene.group(), level: LockLevel::CanNotDelete },
        8 => Tamper::PolicyDeny(scene.load_balancer(name)),
        9 => Tamper::DetachSubnet(scene.scope.subnet_id()),
        10 => Tamper::Forbid { scope: scene.group(), what: Forbidden::Writes },
        11 => Tamper::Permit(scene.group()),
        12 => {
            scene.cloud.calm();
            return;
        }
        _ => Tamper::PutRegistration { gateway, registration: scene.outbound(name) },
    };
    scene.tamper(change);
}

/// The subnets that stand in the body of a network, when one is written.
fn inline(scene: &Scene, dice: Dice) -> Option<Vec<InlineSubnet>> {
    let flag = |bit: u8| dice.flags >> bit & 1 == 1;
    let subnet = |name: &str, attached: bool| InlineSubnet {
        name: name.into(),
        body: SubnetBody {
            gateway: attached.then(|| scene.gateway()),
            rest: format!("{}", dice.other % 2).into(),
        },
    };
    let own = flag(1).then(|| subnet("pods", flag(2)));
    let others = NAMES.iter().zip(3..).filter(|(_, bit)| flag(*bit)).map(|(name, _)| subnet(name, false));
    flag(0).then(|| own.into_iter().chain(others).collect())
}

/// Whoever is on their way has somebody who takes them there.
fn check_on_their_way(cloud: &Cloud) {
    let state = cloud.state();
    let all = state.public_ips.keys().chain(state.load_balancers.keys()).chain(state.nat_gateways.keys());
    let all =
        all.chain(state.gateways.keys()).chain(state.subnets.keys()).chain(state.virtual_networks.keys());
    let targets: BTreeSet<&ArmId> = cloud.running().map(|operation| operation.target).collect();
    for id in all {
        if let Some(at_work) = cloud.at_work(id) {
            let network = id.parent("virtualNetworks");
            let somebody = targets.contains(id) || network.is_some_and(|network| targets.contains(&network));
            assert!(somebody, "{id} is {at_work:?} for ever");
        }
    }
}

/// What must hold in every state.
fn check(state: &State, quota: &Quota) {
    // No dangling references, and who is named knows by whom.
    let mut named: BTreeMap<ArmId, BTreeSet<ArmId>> = BTreeMap::new();
    for (by, target) in state.references() {
        let there = state.public_ips.contains_key(&target)
            || state.load_balancers.contains_key(&target)
            || state.nat_gateways.contains_key(&target)
            || state.gateways.contains_key(&target)
            || state.subnets.contains_key(&target)
            || state.virtual_networks.contains_key(&target);
        assert!(there, "{by} names {target}, which is not there");
        named.entry(target).or_default().insert(by);
    }
    let all = state.public_ips.keys().chain(state.load_balancers.keys()).chain(state.nat_gateways.keys());
    let all = all.chain(state.gateways.keys()).chain(state.subnets.keys());
    for id in all.chain(state.virtual_networks.keys()) {
        let known: BTreeSet<ArmId> = state.users_of(id).cloned().collect();
        assert_eq!(known, named.remove(id).unwrap_or_default(), "who names {id}");
    }
    // A public IP has one user, and both sides know it.
    let mut users = BTreeMap::new();
    for (id, it) in &state.load_balancers {
        it.public_ip.iter().for_each(|ip| assert_eq!(users.insert(ip.clone(), id.clone()), None));
    }
    for (id, it) in &state.nat_gateways {
        for ip in it.public_ips.iter().chain(&it.public_ips_v6) {
            assert_eq!(users.insert(ip.clone(), id.clone()), None);
        }
    }
    let known: BTreeMap<ArmId, ArmId> =
        (state.public_ips.iter()).filter_map(|(id, it)| Some((id.clone(), it.used_by.clone()?))).collect();
    // A load balancer uses it through a frontend.
    let owner = |user: &ArmId| user.parent("loadBalancers").unwrap_or_else(|| user.clone());
    let known = known.into_iter().map(|(id, user)| (id, owner(&user))).collect();
    assert_eq!(users, known);
    // No address twice, and each of its family; what is provisioned has one.
    let mut issued = BTreeSet::new();
    for it in state.public_ips.values() {
        if let Some(address) = it.address {
            assert!(issued.insert(address), "{address} was issued twice");
            assert_eq!(Family::of(address), it.family);
        }
        assert!(it.address.is_some() || it.meta.provisioning != Provisioning::Succeeded);
    }
    // Everything lies in a group that is there, and quotas hold.
    let all = state.public_ips.keys().chain(state.load_balancers.keys()).chain(state.nat_gateways.keys());
    for id in all.chain(state.gateways.keys()).chain(state.subnets.keys()) {
        assert!(
            state.groups.contains(&id.parent("resourceGroups").expect("all ids have a group")),
            "{id} has no group"
        );
    }
    assert!(state.public_ips.len() <= quota.public_ips);
    assert_eq!(
        state.contents.keys().collect::<Vec<_>>(),
        state.gateways.keys().collect::<Vec<_>>(),
        "every gateway has its contents"
    );
    for (gateway, contents) in &state.contents {
        check_contents(state, gateway, contents);
    }
}

fn check_contents(state: &State, gateway: &ArmId, contents: &sluice_cloud::Contents) {
    assert!(contents.registrations().filter(|it| it.is_default).count() <= 1);
    let mut carriers = BTreeSet::new();
    for it in contents.registrations() {
        for pool in &it.pools {
            let load_balancer = pool.parent("loadBalancers").expect("a pool's id");
            let has_it =
                |name: &std::sync::Arc<str>| load_balancer.child("backendAddressPools", name) == *pool;
            assert!(state.load_balancers[&load_balancer].pools.iter().any(has_it), "{pool} is registered");
            carriers.insert(load_balancer);
        }
        carriers.extend(it.nat_gateway.clone());
        if let Some(nat_gateway) = &it.nat_gateway {
            assert_eq!(state.nat_gateways[nat_gateway].gateway.as_ref(), Some(gateway));
        }
    }
    carriers.iter().for_each(|carrier| assert!(state.is_registered(carrier)));
    let mut mapped: BTreeMap<String, usize> = BTreeMap::new();
    for location in contents.locations() {
        assert!(!location.addresses.is_empty());
        for entry in &location.addresses {
            assert!(!entry.services.is_empty());
            for service in &entry.services {
                assert!(contents.registration(service).is_some(), "{service} is mapped, not registered");
                *mapped.entry(service.to_string()).or_default() += 1;
            }
        }
    }
    for it in contents.registrations() {
        let counted = mapped.get(&it.name.to_ascii_lowercase()).copied().unwrap_or(0);
        assert_eq!(contents.mapped(&it.name), counted, "{}", it.name);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn any_requests_in_any_order_leave_a_consistent_cloud(
        throws in prop::collection::vec(dice(), 1..120),
        seed in any::<u64>(),
        synchronous_posts in any::<bool>(),
        throttled in any::<bool>(),
    ) {
        let buckets = throttled.then(Buckets::default);
        let config = Config { seed, synchronous_posts, buckets, page_size: 2, ..Config::default() };
        let quota = config.quota;
        let mut scene = Scene::with(config);
        let mut etags = BTreeSet::new();
        for throw in throws {
            scene.now = scene.now + Duration::from_millis(throw.wait_ms.into());
            let now = if throw.backwards { Time::ZERO } else { scene.now };
            if throw.what >= 246 {
                tamper(&mut scene, throw);
            } else {
                let request = request(&scene, throw);
                let fault = fault(throw);
                let is_network = request.target.name() == "vnet" && request.method == Method::Put;
                let subnets = inline(&scene, throw).filter(|_| is_network);
                let reply = match &subnets {
                    Some(_) => scene.cloud.put_network(now, &request, subnets.as_deref(), fault.as_ref()).reply,
                    None => scene.cloud.handle_fully(now, &request, fault.as_ref()).reply,
                };
                if let Reply::Answered(Answer { status: 200 | 201, payload: Payload::PublicIp(it), .. }) = reply
                    && request.method == Method::Put
                {
                    prop_assert!(etags.insert(it.meta.etag.clone()), "{:?} was given twice", it.meta.etag);
                }
            }
            check(scene.cloud.state(), &quota);
            check_on_their_way(&scene.cloud);
        }
        // Once the faults are over, everything that runs comes to its end.
        scene.cloud.calm();
        scene.wait(60);
        prop_assert_eq!(scene.cloud.operations_running(), 0);
        check(scene.cloud.state(), &quota);
        check_on_their_way(&scene.cloud);
    }

    #[test]
    fn the_same_requests_give_the_same_cloud(throws in prop::collection::vec(dice(), 1..60), seed in any::<u64>()) {
        let run = || {
            let mut scene = Scene::with(Config { seed, ..Config::default() });
            let mut replies = Vec::new();
            for throw in &throws {
                scene.now = scene.now + Duration::from_millis(throw.wait_ms.into());
                let request = request(&scene, *throw);
                replies.push(scene.cloud.handle(scene.now, &request));
            }
            (replies, scene.cloud.state().clone())
        };
        prop_assert_eq!(run(), run());
    }

    #[test]
    fn no_id_makes_the_cloud_panic(
        id in "(/[a-z]{0,3}|/subscriptions|/resourceGroups|/providers|/Microsoft.Network|/loadBalancers|/\u{e9}){0,12}",
        dice in dice(),
    ) {
        let mut scene = Scene::new();
        let methods = [
            Method::Get, Method::List, Method::Put, Method::PatchTags, Method::Delete,
            Method::UpdateServices, Method::UpdateLocations, Method::Poll,
        ];
        for method in methods {
            let request = Request { method, target: ArmId::new(id.as_str()), ..request(&scene, dice) };
            scene.send(&request);
        }
        scene.tamper(Tamper::DeleteGateway(ArmId::new(id.as_str())));
        check(scene.cloud.state(), &Quota::default());
    }
}
