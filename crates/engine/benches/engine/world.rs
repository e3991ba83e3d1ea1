//! Clusters of a given size, all in sync: N addresses on N/50 nodes, N/100 services.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sluice_engine::addresses::{Addresses, Limits, OwnerKey, ServiceIndex};
use sluice_model::kube::{Endpoint, NodeObject, Phase, PodObject, Slice, SliceOwner};
use sluice_model::seeded::Seeded;
use sluice_model::{ObjectName, Time, Uid};

pub(crate) const PER_SERVICE: usize = 100;
const PER_NODE: usize = 50;

/// What a drain took.
#[derive(Default)]
pub(crate) struct Drained {
    /// Addresses sent.
    pub(crate) addresses: usize,
    /// Making the requests.
    pub(crate) asking: Duration,
    /// Taking in the answers.
    pub(crate) telling: Duration,
}

/// A cluster.
pub(crate) struct World {
    pub(crate) addresses: Addresses,
    pub(crate) services: Vec<ServiceIndex>,
    pub(crate) now: Time,
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

fn uid(number: usize) -> Uid {
    Uid::from_number((number as u128).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835))
}

impl World {
    /// Nodes and services, and nothing on them.
    pub(crate) fn empty(size: usize) -> World {
        let mut addresses = Addresses::new(Limits::default(), 1, Seeded::NONE);
        let nodes = (size / PER_NODE).max(1);
        for node in 0..nodes {
            let location = IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + node as u32));
            addresses.apply_node(&NodeObject {
                name: node_name(node),
                version: 0,
                internal_ips: vec![location],
            });
        }
        let mut world = World {
            addresses,
            services: Vec::new(),
            now: Time::from_millis(1),
            nodes,
            random: 0x2545_f491_4f6c_dd1d,
        };
        let namespace: Arc<str> = "shop".into();
        for service in 0..(size / PER_SERVICE).max(1) {
            let index = world.addresses.open(&uid(service).to_string());
            world.addresses.bind(OwnerKey::Uid(Arc::clone(&namespace), uid(service)), Some(index));
            world.services.push(index);
        }
        world
    }

    /// A number below the given one, at random, the same in every run.
    pub(crate) fn any_below(&mut self, end: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random % end as u64) as usize
    }

    pub(crate) fn node_of(&self, number: usize) -> Arc<str> {
        // Neighbours in a service are on different nodes.
        node_name(number.wrapping_mul(7919) % self.nodes)
    }

    /// The slice of a service, optionally with one of its endpoints at a new address.
    pub(crate) fn slice(&self, service: usize, moved: Option<(usize, usize)>) -> Slice {
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
            name: ObjectName::new("shop", format!("web-{service:06}-abcde")),
            version: 0,
            owner: SliceOwner::Uid(uid(service)),
            ports: vec![],
            endpoints: endpoints.collect(),
            malformed: vec![],
        }
    }

    pub(crate) fn pod(&self, number: usize, address: usize) -> PodObject {
        PodObject {
            uid: uid(number),
            name: ObjectName::new("shop", "pod"),
            version: 0,
            egress: None,
            node: Some(self.node_of(number)),
            ips: vec![ip(address)],
            host_ips: vec![],
            phase: Phase::Running,
            terminating: false,
            host_network: false,
            created: 1,
        }
    }

    pub(crate) fn egress_of(&self, number: usize) -> ServiceIndex {
        self.services[number / PER_SERVICE % self.services.len()]
    }

    pub(crate) fn add_slices(&mut self) {
        for service in 0..self.services.len() {
            let slice = self.slice(service, None);
            self.addresses.apply_slice(&slice);
        }
        self.addresses.take_touched();
    }

    pub(crate) fn add_pods(&mut self, size: usize) {
        for number in 0..size {
            let pod = self.pod(number, number);
            self.addresses.apply_pod(&pod, Some(self.egress_of(number)));
        }
        self.addresses.take_touched();
    }

    pub(crate) fn make_ready(&mut self) {
        for service in self.services.clone() {
            self.addresses.set_ready(service, true);
        }
    }

    /// Sends everything, and everything succeeds.
    pub(crate) fn drain(&mut self) -> Drained {
        let mut drained = Drained::default();
        loop {
            let started = Instant::now();
            let batch = self.addresses.next_batch(self.now);
            drained.asking += started.elapsed();
            let Some(batch) = batch else { return drained };
            drained.addresses += batch.iter().map(|update| update.addresses.len()).sum::<usize>();
            self.now = self.now + Duration::from_millis(1);
            let started = Instant::now();
            self.addresses.finish(self.now, None);
            drained.telling += started.elapsed();
        }
    }

    /// Lets the memory of recent writes fade.
    pub(crate) fn rest(&mut self) {
        self.now = self.now + Duration::from_secs(3600);
        assert_eq!(self.addresses.next_batch(self.now), None, "everything is in sync");
        self.addresses.take_touched();
    }

    /// All egress pods, in sync.
    pub(crate) fn of_pods(size: usize) -> World {
        let mut world = World::empty(size);
        world.make_ready();
        world.add_pods(size);
        world.drain();
        world.rest();
        world
    }
}

/// Fills a cluster and changes it; for counting instructions.
pub(crate) fn change_one_pod_often(size: usize, changes: usize) {
    change_pods(&mut World::of_pods(size), size, changes);
}

/// One pod gets a new address and the request is made, over and over. Callgrind counts in here, by the name.
#[inline(never)]
fn change_pods(world: &mut World, size: usize, changes: usize) {
    for change in 0..changes {
        let number = world.any_below(size);
        let pod = world.pod(number, size + change);
        let egress = world.egress_of(number);
        world.addresses.apply_pod(&pod, Some(egress));
        let batch = world.addresses.next_batch(world.now);
        assert!(batch.is_some(), "a change makes a request");
        world.addresses.finish(world.now, None);
        // Back to where it was, so that the next change finds the same cluster.
        let pod = world.pod(number, number);
        world.addresses.apply_pod(&pod, Some(egress));
        world.drain();
    }
}
