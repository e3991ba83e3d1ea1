//! Whatever happens in whatever order, the incremental diff equals the naive one.

mod addresses_world;

use std::time::Duration;

use addresses_world::{End, World, ip};
use proptest::prelude::*;
use sluice_engine::addresses::{Limits, Mode, OwnerKey};
use sluice_model::kube::{Endpoint, NodeObject, Phase, PodObject, Slice, SliceOwner};
use sluice_model::seeded::Seeded;
use sluice_model::{ObjectName, Uid};

const SERVICES: [&str; 4] =
    ["00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002", "blue", "green"];
const NODES: [&str; 4] = ["node-a", "node-b", "node-c", ""];
const ADDRESSES: [&str; 8] =
    ["10.1.0.1", "10.1.0.2", "10.1.0.3", "10.1.0.4", "10.1.0.5", "fd00::1", "fd00::2", "127.0.0.1"];
const LOCATIONS: [&str; 6] = ["10.0.0.1", "10.0.0.2", "10.0.0.3", "fd01::1", "fd01::2", "169.254.1.1"];

#[derive(Clone, Debug)]
enum Op {
    Slice {
        slice: usize,
        owner: usize,
        endpoints: Vec<(usize, usize, u8)>,
    },
    RemoveSlice(usize),
    RetainSlices(usize),
    Bind(usize, Option<usize>),
    Pod {
        pod: u128,
        egress: Option<usize>,
        node: usize,
        ips: Vec<usize>,
        host: Option<usize>,
        created: u64,
        bits: u8,
    },
    RemovePod(u128),
    RetainPods(u128),
    Node(usize, Vec<usize>),
    RemoveNode(usize),
    RetainNodes(usize),
    Mode(usize, Mode),
    CloseAndOpen(usize),
    Send,
    Finish(End),
    Wait(u64),
    List,
    Poison(usize, bool),
    Sticky(usize, bool),
    Unregister(usize, bool),
    OneLocationEach(bool),
    Release(usize),
    Tamper(usize, usize, usize),
}

fn ops() -> impl Strategy<Value = Op> {
    let address = 0..ADDRESSES.len();
    let node = 0..NODES.len();
    let end = prop_oneof![
        4 => Just(End::Success),
        1 => Just(End::Transient),
        1 => Just(End::Throttled),
        1 => Just(End::UnknownApplied),
        1 => Just(End::UnknownLost),
    ];
    let mode = prop_oneof![4 => Just(Mode::Ready), 1 => Just(Mode::Waiting), 1 => Just(Mode::Frozen), 1 => Just(Mode::Draining)];
    prop_oneof![
        18 => (0..5usize, prop_oneof![4 => 0..2usize, 1 => 2..4usize], prop::collection::vec((address.clone(), node.clone(), 0..5u8), 0..5))
            .prop_map(|(slice, owner, endpoints)| Op::Slice { slice, owner, endpoints }),
        2 => (0..5usize).prop_map(Op::RemoveSlice),
        1 => (0..5usize).prop_map(Op::RetainSlices),
        2 => (0..4usize, prop::option::weighted(0.8, 0..2usize)).prop_map(|(owner, service)| Op::Bind(owner, service)),
        18 => (
            0..5u128,
            prop::option::weighted(0.85, 2..4usize),
            node.clone(),
            prop::collection::vec(address, 0..3),
            prop::option::of(0..LOCATIONS.len()),
            0..3u64,
            0..8u8,
        )
            .prop_map(|(pod, egress, node, ips, host, created, bits)| Op::Pod { pod, egress, node, ips, host, created, bits }),
        2 => (0..5u128).prop_map(Op::RemovePod),
        1 => (0..5u128).prop_map(Op::RetainPods),
        6 => (node.clone(), prop::collection::vec(0..LOCATIONS.len(), 0..4)).prop_map(|(node, ips)| Op::Node(node, ips)),
        1 => node.clone().prop_map(Op::RemoveNode),
        1 => node.prop_map(Op::RetainNodes),
        4 => (0..4usize, mode).prop_map(|(service, mode)| Op::Mode(service, mode)),
        1 => (0..4usize).prop_map(Op::CloseAndOpen),
        24 => Just(Op::Send),
        24 => end.prop_map(Op::Finish),
        8 => prop_oneof![Just(10u64), Just(1_000), Just(31_000), Just(301_000)].prop_map(Op::Wait),
        1 => Just(Op::List),
        1 => (0..ADDRESSES.len(), any::<bool>()).prop_map(|(address, on)| Op::Poison(address, on)),
        1 => (0..ADDRESSES.len(), any::<bool>()).prop_map(|(address, on)| Op::Sticky(address, on)),
        1 => (0..4usize, any::<bool>()).prop_map(|(service, on)| Op::Unregister(service, on)),
        1 => any::<bool>().prop_map(Op::OneLocationEach),
        1 => (0..4usize).prop_map(Op::Release),
        1 => (0..3usize, 0..5usize, 0..6usize).prop_map(|(location, address, service)| Op::Tamper(location, address, service)),
    ]
}

fn slice_name(slice: usize) -> ObjectName {
    // The last one is in another namespace, where the same UID means another owner.
    ObjectName::new(if slice < 4 { "shop" } else { "blog" }, format!("slice-{slice}"))
}

fn owner(owner: usize) -> OwnerKey {
    match owner {
        0 => OwnerKey::Uid("shop".into(), Uid::from_number(1)),
        1 => OwnerKey::Uid("shop".into(), Uid::from_number(2)),
        2 => OwnerKey::Name(ObjectName::new("shop", "web")),
        _ => OwnerKey::Uid("blog".into(), Uid::from_number(1)),
    }
}

fn act(world: &mut World, op: Op) {
    let toggle = |set: &mut std::collections::BTreeSet<_>, item, on| {
        if on {
            set.insert(item)
        } else {
            set.remove(&item)
        };
    };
    match op {
        Op::Slice { slice, owner, endpoints } => {
            let owner = match owner {
                0 => SliceOwner::Uid(Uid::from_number(1)),
                1 => SliceOwner::Uid(Uid::from_number(2)),
                2 => SliceOwner::Name("web".into()),
                _ => SliceOwner::Nobody,
            };
            let endpoints = endpoints.into_iter().map(|(address, node, state)| Endpoint {
                address: ip(ADDRESSES[address]),
                node: Some(NODES[node].into()),
                ready: state < 2,
                serving: state < 4,
                terminating: state > 1,
            });
            let endpoints = endpoints.collect();
            let name = slice_name(slice);
            world.apply_slice(Slice { name, version: 0, owner, ports: vec![], endpoints, malformed: vec![] });
        }
        Op::RemoveSlice(slice) => world.remove_slice(&slice_name(slice)),
        Op::RetainSlices(gone) => {
            world.addresses.retain_slices(|name| *name != slice_name(gone));
            world.slices.remove(&slice_name(gone));
        }
        Op::Bind(at, service) => world.bind(owner(at), service),
        Op::Pod { pod, egress, node, ips, host, created, bits } => {
            let pod = PodObject {
                uid: Uid::from_number(pod),
                name: ObjectName::new("shop", "pod"),
                version: 0,
                egress: None,
                node: Some(NODES[node].into()).filter(|_| !NODES[node].is_empty()),
                ips: ips.into_iter().map(|at| ip(ADDRESSES[at])).collect(),
                host_ips: host.into_iter().map(|at| ip(LOCATIONS[at])).collect(),
                phase: if bits == 7 { Phase::Finished } else { Phase::Running },
                terminating: bits & 1 != 0,
                host_network: bits == 6,
                created,
            };
            world.apply_pod(pod, egress);
        }
        Op::RemovePod(pod) => world.remove_pod(Uid::from_number(pod)),
        Op::RetainPods(gone) => {
            world.addresses.retain_pods(|uid| uid != Uid::from_number(gone));
            world.pods.remove(&Uid::from_number(gone));
        }
        Op::Node(node, _) if NODES[node].is_empty() => {}
        Op::Node(node, ips) => {
            let internal_ips = ips.into_iter().map(|at| ip(LOCATIONS[at])).collect();
            world.apply_node(NodeObject { name: NODES[node].into(), version: 0, internal_ips });
        }
        Op::RemoveNode(node) => world.remove_node(NODES[node]),
        Op::RetainNodes(gone) => {
            world.addresses.retain_nodes(|name| name != NODES[gone]);
            world.nodes.remove(NODES[gone]);
        }
        Op::Mode(service, mode) => world.set_mode(service, mode),
        Op::CloseAndOpen(service) => world.close_and_open(service),
        Op::Send => {
            if world.in_flight.is_none() {
                world.send();
            } else {
                assert_eq!(world.addresses.next_batch(world.now), None, "two batches in flight");
            }
        }
        Op::Finish(end) => world.finish(end),
        Op::Wait(ms) => world.wait(Duration::from_millis(ms)),
        Op::List => {
            world.list(false);
        }
        Op::Poison(address, on) => toggle(&mut world.poison, ip(ADDRESSES[address]), on),
        Op::Sticky(address, on) => toggle(&mut world.sticky, ip(ADDRESSES[address]), on),
        Op::Unregister(service, true) => drop(world.unregistered.insert(SERVICES[service].into())),
        Op::Unregister(service, false) => drop(world.unregistered.remove(SERVICES[service])),
        Op::OneLocationEach(on) => world.one_location_each = on,
        Op::Release(service) => world.addresses.release_quarantined(world.index(service)),
        Op::Tamper(location, address, service) => {
            world.tampered = true;
            let at = (ip(LOCATIONS[location]), ip(ADDRESSES[address]));
            match SERVICES.get(service) {
                Some(&name) => drop(world.azure.insert(at, [name.to_string()].into())),
                None if service == 4 => drop(world.azure.insert(at, ["stranger".to_string()].into())),
                None => drop(world.azure.remove(&at)),
            }
        }
    }
}

/// A world in which things can happen at once: two nodes, bound owners, ready services.
fn prepared(limits: Limits, seeded: Seeded) -> World {
    let mut world = World::with_bug(limits, &SERVICES, seeded);
    act(&mut world, Op::Node(0, vec![0, 3]));
    act(&mut world, Op::Node(1, vec![1, 4]));
    act(&mut world, Op::Bind(0, Some(0)));
    act(&mut world, Op::Bind(1, Some(1)));
    for service in 0..SERVICES.len() {
        act(&mut world, Op::Mode(service, Mode::Ready));
    }
    world
}

fn limits(addresses_max: usize, bytes_max: usize) -> Limits {
    Limits { addresses_max, bytes_max, bisect_calls_max: 12, ..Limits::default() }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_of_events_ends_with_azure_as_it_should_be(
        ops in prop::collection::vec(ops(), 1..150),
        addresses_max in 1..6usize,
        bytes_max in prop_oneof![Just(1usize), Just(400), Just(1 << 20)],
    ) {
        let mut world = prepared(limits(addresses_max, bytes_max), Seeded::NONE);
        for op in ops {
            act(&mut world, op);
            world.addresses.take_touched();
            world.check();
        }
        world.settle();
        world.check_settled();
    }

    #[test]
    fn the_same_events_give_the_same_batches(ops in prop::collection::vec(ops(), 1..60)) {
        let run = |ops: &[Op]| {
            let mut world = prepared(limits(3, 1 << 20), Seeded::NONE);
            let mut trace = Vec::new();
            for op in ops {
                act(&mut world, op.clone());
                trace.push((world.in_flight.clone(), world.addresses.wake_at(), world.addresses.take_touched()));
            }
            trace
        };
        prop_assert_eq!(run(&ops), run(&ops));
    }

    #[test]
    fn a_new_leader_that_lists_first_ends_in_the_same_place(
        before in prop::collection::vec(ops(), 1..60),
        after in prop::collection::vec(ops(), 1..30),
    ) {
        let mut world = prepared(limits(4, 1 << 20), Seeded::NONE);
        for op in before {
            act(&mut world, op);
        }
        // Another process: it has read the cluster and then Azure, and nothing else.
        let mut fresh = World::new(limits(4, 1 << 20), &SERVICES);
        fresh.now = world.now;
        fresh.azure = world.azure.clone();
        for node in world.nodes.values() {
            fresh.apply_node(node.clone());
        }
        for slice in world.slices.values() {
            fresh.apply_slice(slice.clone());
        }
        for (owner, &service) in &world.binds {
            fresh.bind(owner.clone(), Some(service));
        }
        for (pod, egress) in world.pods.values() {
            fresh.apply_pod(pod.clone(), Some(*egress));
        }
        fresh.list(true);
        for (service, &(_, _, mode)) in world.services.iter().enumerate() {
            fresh.set_mode(service, mode);
        }
        fresh.check();
        for op in after {
            act(&mut fresh, op);
            fresh.check();
        }
        fresh.settle();
        fresh.check_settled();
    }
}
