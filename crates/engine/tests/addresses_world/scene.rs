//! The scene that the stories begin with: two nodes, two services, two egresses, and short words for objects.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::net::IpAddr;

use sluice_engine::addresses::{Limits, OwnerKey};
use sluice_model::kube::{Endpoint, NodeObject, Phase, PodObject, Slice, SliceOwner};
use sluice_model::seeded::Seeded;
use sluice_model::{ObjectName, Uid};

use super::{World, ip};

pub(crate) const WEB: usize = 0;
pub(crate) const API: usize = 1;
pub(crate) const BLUE: usize = 2;
pub(crate) const GREEN: usize = 3;

/// Nodes a and b, services web and api (bound by UID), egresses blue and green; all ready.
pub(crate) fn world() -> World {
    world_with(Limits::default())
}

pub(crate) fn world_with(limits: Limits) -> World {
    world_with_bug(limits, Seeded::NONE)
}

pub(crate) fn world_with_bug(limits: Limits, seeded: Seeded) -> World {
    let mut world = World::with_bug(limits, &["web", "api", "blue", "green"], seeded);
    world.apply_node(node("a", &["10.0.0.1", "fd01::1"]));
    world.apply_node(node("b", &["10.0.0.2"]));
    world.bind(by_uid(1), Some(WEB));
    world.bind(by_uid(2), Some(API));
    for service in [WEB, API, BLUE, GREEN] {
        world.set_ready(service, true);
    }
    world
}

pub(crate) fn node(name: &str, ips: &[&str]) -> NodeObject {
    NodeObject { name: name.into(), version: 0, internal_ips: ips.iter().map(|text| ip(text)).collect() }
}

/// `"10.1.0.1@a"` is ready; with `~` it is serving and terminating, with `!` nothing.
pub(crate) fn endpoint(text: &str) -> Endpoint {
    let (bare, state) = match text.strip_suffix(['~', '!']) {
        Some(bare) => (bare, &text[bare.len()..]),
        None => (text, ""),
    };
    let (address, node) = bare.split_once('@').unwrap_or((bare, ""));
    Endpoint {
        address: ip(address),
        node: Some(node.into()).filter(|_| !node.is_empty()),
        ready: state.is_empty(),
        serving: state != "!",
        terminating: state == "~",
    }
}

/// The owner of the slices in `shop` that name this UID.
pub(crate) fn by_uid(owner: u128) -> OwnerKey {
    OwnerKey::Uid("shop".into(), Uid::from_number(owner))
}

pub(crate) fn slice(name: &str, owner: u128, endpoints: &[&str]) -> Slice {
    Slice {
        name: ObjectName::new("shop", name),
        version: 0,
        owner: SliceOwner::Uid(Uid::from_number(owner)),
        ports: vec![],
        endpoints: endpoints.iter().map(|text| endpoint(text)).collect(),
        malformed: vec![],
    }
}

pub(crate) fn slice_name(name: &str) -> ObjectName {
    ObjectName::new("shop", name)
}

pub(crate) fn pod(uid: u128, address: &str, node: &str, created: u64) -> PodObject {
    PodObject {
        uid: Uid::from_number(uid),
        name: ObjectName::new("shop", "pod"),
        version: 0,
        egress: None,
        node: Some(node.into()),
        ips: if address.is_empty() { vec![] } else { vec![ip(address)] },
        host_ips: vec![],
        phase: Phase::Running,
        terminating: false,
        host_network: false,
        created,
    }
}

/// Azure, one line per address.
pub(crate) fn azure(world: &World) -> Vec<String> {
    let line =
        |(&(location, address), services): (&(IpAddr, IpAddr), &std::collections::BTreeSet<String>)| {
            let services: Vec<&str> = services.iter().map(String::as_str).collect();
            format!("{address}@{location} {}", services.join("+"))
        };
    world.azure.iter().map(line).collect()
}

pub(crate) fn sync(world: &mut World) {
    world.drain(500);
    world.check_settled();
}
