//! What one request costs in a small cloud and in a big one, counted in instructions.
//!
//! `cargo bench -p sluice-cloud` serves every kind of request in a cloud of 100 services and in one of 10,000,
//! with 15 addresses each, under callgrind, and fails where the big one takes more than three times the
//! instructions: nothing may look through everything. `-- --max 1000` takes a smaller big cloud. No clock is
//! read. A deletion of a whole group is not among the requests: that has to touch all that is in it.

#![allow(
    missing_docs,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a program for people"
)]

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use sluice_cloud::{Cloud, Config, Quota};
use sluice_model::address::Family;
use sluice_model::azure::*;
use sluice_model::call::*;
use sluice_model::kube::Protocol;
use sluice_model::names::Scope;
use sluice_model::time::Time;

const SMALL: usize = 100;
const ADDRESSES: usize = 15;
/// How often each kind of request is served.
const ROUNDS: usize = 200;
const RATIO_MAX: f64 = 3.0;

const KINDS: [&str; 12] = [
    "get",
    "list page",
    "list page of the subscription",
    "services page",
    "locations page",
    "put public ip and delete it",
    "put load balancer again",
    "put nat gateway and delete it",
    "register and unregister",
    "bind and unbind an address",
    "refused deletions",
    "put gateway again",
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let number = |flag: &str| {
        let at = args.iter().position(|arg| arg == flag)?;
        args.get(at + 1)?.parse::<usize>().ok()
    };
    if let Some(size) = number("--serve") {
        serve_every_kind(size);
        return ExitCode::SUCCESS;
    }
    compare(number("--max").unwrap_or(10_000))
}

fn serve_every_kind(size: usize) {
    let mut world = World::new(size);
    for kind in KINDS {
        // What comes before is counted apart: first the filling of the cloud, then one kind after the other.
        next_part_begins();
        (0..ROUNDS).for_each(|round| world.serve(kind, round));
    }
    next_part_begins();
}

/// Callgrind writes down what it has counted whenever it gets here.
#[inline(never)]
fn next_part_begins() {
    std::hint::black_box(());
}

fn compare(big: usize) -> ExitCode {
    let (Some(small), Some(large)) = (instructions(SMALL), instructions(big)) else {
        eprintln!("valgrind is missing or failed; the instructions were not counted");
        return ExitCode::FAILURE;
    };
    println!("{:<32}{SMALL:>12}{big:>12}{:>8}   instructions", "services:", "ratio");
    let mut verdict = ExitCode::SUCCESS;
    for (kind, (small, large)) in KINDS.iter().zip(small.iter().zip(&large)) {
        let ratio = large / small;
        let mark = if ratio <= RATIO_MAX { "" } else { "   TOO MUCH" };
        println!("{kind:<32}{small:>12.0}{large:>12.0}{ratio:>8.2}{mark}");
        if ratio > RATIO_MAX {
            verdict = ExitCode::FAILURE;
        }
    }
    println!("at most {RATIO_MAX} is allowed");
    verdict
}

/// The instructions of one round of each kind, if valgrind can tell.
fn instructions(size: usize) -> Option<Vec<f64>> {
    let parts =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("requests-{size}-{}", std::process::id()));
    let done = Command::new("valgrind")
        .args(["--tool=callgrind", "--dump-before=*next_part_begins*"])
        .arg(format!("--callgrind-out-file={}", parts.display()))
        .arg(std::env::current_exe().ok()?)
        .args(["--serve", &size.to_string()])
        .output()
        .ok()?;
    let part = |number: usize| {
        let file = parts.with_extension(number.to_string());
        let text = std::fs::read_to_string(&file).ok()?;
        std::fs::remove_file(file).ok()?;
        let counted = text.lines().find_map(|line| line.strip_prefix("summary:"))?;
        Some(counted.trim().parse::<u64>().ok()? as f64 / ROUNDS as f64)
    };
    // The first part is the filling.
    part(1)?;
    let counted: Option<Vec<f64>> = (2..KINDS.len() + 2).map(part).collect();
    std::fs::remove_file(&parts).ok();
    counted.filter(|_| done.status.success())
}

/// A cloud with so many registered services and as many nodes.
struct World {
    cloud: Cloud,
    now: Time,
    scope: Scope,
    size: usize,
}

impl World {
    fn new(size: usize) -> World {
        let scope = Scope {
            subscription: "11111111-2222-3333-4444-555555555555".into(),
            resource_group: "rg".into(),
            network_resource_group: "net-rg".into(),
            virtual_network: "vnet".into(),
            subnet: "pods".into(),
            gateway: "servicegateway".into(),
            cluster_id: "cluster".into(),
        };
        let quota = Quota { public_ips: 100_000, load_balancers: 100_000, ..Quota::default() };
        let config = Config { buckets: None, quota, body_bytes_max: usize::MAX, ..Config::default() };
        let mut world = World { cloud: Cloud::new(config), now: Time::ZERO, scope, size };
        world.cloud.prepare(world.now, &world.scope);
        world.done(&world.put_gateway());
        // Everything at once and then a wait: that is the quickest way to a full cloud.
        (0..size).for_each(|n| world.ask(&world.put_ip(&format!("{}-pip", name(n))), 201));
        world.wait();
        (0..size).for_each(|n| world.ask(&world.put_lb(n, 80), 201));
        world.wait();
        world.done(&world.services((0..size).map(|n| world.request(&name(n), false)).collect()));
        let updates =
            (0..size).map(|n| update(n, (0..ADDRESSES).map(|at| bound(n, at, Some(name(n)))).collect()));
        world.done(&world.locations(updates.collect()));
        world
    }

    fn wait(&mut self) {
        self.now = self.now + Duration::from_secs(60);
        self.cloud.advance(self.now);
    }

    fn ask(&mut self, request: &Request, status: u16) {
        let answer = self.cloud.handle(self.now, request);
        assert_eq!(answer.status, status, "{request:?} {answer:?}");
    }

    fn done(&mut self, request: &Request) {
        let answer = self.cloud.handle(self.now, request);
        assert!(answer.status < 300, "{request:?} {answer:?}");
        self.wait();
        let operation = answer.operation.expect("a write has an operation");
        assert_eq!(self.cloud.operation_state(&operation), Some(&OperationState::Succeeded));
    }

    fn put_gateway(&self) -> Request {
        let body = GatewayBody {
            virtual_network: self.scope.virtual_network_id(),
            route_target_subnet: self.scope.subnet_id(),
            route_target_address: None,
            route_target_address_v6: None,
            tags: Tags::new(),
        };
        Request::with(Method::Put, self.scope.gateway_id(), Body::Gateway(body))
    }

    fn put_ip(&self, name: &str) -> Request {
        let body = PublicIpBody { family: Family::V4, tags: Tags::new() };
        Request::with(Method::Put, self.scope.resource("publicIPAddresses", name), Body::PublicIp(body))
    }

    fn put_lb(&self, n: usize, frontend_port: u16) -> Request {
        let body = LoadBalancerBody {
            public_ip: self.scope.resource("publicIPAddresses", &format!("{}-pip", name(n))),
            rules: vec![Rule {
                protocol: Protocol::Tcp,
                frontend_port,
                backend_port: 8080,
                idle_timeout_minutes: 4,
            }],
            tags: Tags::new(),
        };
        Request::with(Method::Put, self.scope.resource("loadBalancers", &name(n)), Body::LoadBalancer(body))
    }

    fn request(&self, service: &str, is_delete: bool) -> ServiceRequest {
        let load_balancer = self.scope.resource("loadBalancers", service);
        let service = Registration {
            name: service.into(),
            direction: Direction::Inbound,
            is_default: false,
            pools: vec![load_balancer.child("backendAddressPools", service)],
            nat_gateway: None,
        };
        ServiceRequest { is_delete, service }
    }

    fn services(&self, requests: Vec<ServiceRequest>) -> Request {
        Request::with(Method::UpdateServices, self.scope.gateway_id(), Body::Services(requests))
    }

    fn locations(&self, updates: Vec<LocationUpdate>) -> Request {
        Request::with(Method::UpdateLocations, self.scope.gateway_id(), Body::Locations(updates))
    }

    /// One round of one kind, on one service after the other.
    fn serve(&mut self, kind: &str, round: usize) {
        let n = round * 7_919 % self.size;
        let page = |target: ArmId, after: String| {
            let page = Some(PageToken(format!("{}|{after}", target.name()).into()));
            Request { page, ..Request::bare(Method::List, target) }
        };
        let load_balancer = self.scope.resource("loadBalancers", &name(n));
        let gateway = self.scope.gateway_id();
        // All pages have the same length, so they begin where enough follows.
        let first = n % (self.size / 2).max(1) % (self.size.saturating_sub(100)).max(1);
        let after = self.scope.resource("loadBalancers", &name(first));
        match kind {
            "get" => self.ask(&Request::bare(Method::Get, load_balancer), 200),
            "list page" => self.ask(&page(self.scope.collection("loadBalancers"), after.to_string()), 200),
            "list page of the subscription" => {
                let provider =
                    format!("/subscriptions/{}/providers/Microsoft.Network", self.scope.subscription);
                self.ask(&page(ArmId::new(format!("{provider}/loadBalancers")), after.to_string()), 200);
            }
            "services page" => {
                self.ask(&page(ArmId::new(format!("{gateway}/services")), name(first)), 200);
            }
            "locations page" => {
                let after = node(first).to_string();
                self.ask(&page(ArmId::new(format!("{gateway}/addressLocations")), after), 200);
            }
            "put public ip and delete it" => {
                let put = self.put_ip("new");
                self.done(&put);
                self.done(&Request::bare(Method::Delete, put.target));
            }
            "put load balancer again" => {
                let put = self.put_lb(n, 81 + u16::try_from(round % 1_000).unwrap());
                self.done(&put);
            }
            "put nat gateway and delete it" => {
                let body = NatGatewayBody {
                    gateway: Some(gateway),
                    public_ips: vec![],
                    public_ips_v6: vec![],
                    tags: Tags::new(),
                };
                let id = self.scope.resource("natGateways", "new");
                self.done(&Request::with(Method::Put, id.clone(), Body::NatGateway(body)));
                self.done(&Request::bare(Method::Delete, id));
            }
            "register and unregister" => {
                let mut service = self.request("new", false);
                service.service.pools.clear();
                self.done(&self.services(vec![service.clone()]));
                service.is_delete = true;
                self.done(&self.services(vec![service]));
            }
            "bind and unbind an address" => {
                self.done(&self.locations(vec![update(n, vec![bound(n, ADDRESSES, Some(name(n)))])]));
                self.done(&self.locations(vec![update(n, vec![bound(n, ADDRESSES, None)])]));
            }
            "refused deletions" => {
                let ip = self.scope.resource("publicIPAddresses", &format!("{}-pip", name(n)));
                for id in
                    [load_balancer, ip, gateway, self.scope.subnet_id(), self.scope.virtual_network_id()]
                {
                    self.ask(&Request::bare(Method::Delete, id), 400);
                }
            }
            _ => {
                let put = self.put_gateway();
                self.done(&put);
            }
        }
    }
}

fn name(n: usize) -> String {
    format!("service-{n:06}")
}

fn node(n: usize) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from(0x0a40_0004 + u32::try_from(n).unwrap()))
}

fn bound(n: usize, at: usize, service: Option<String>) -> AddressUpdate {
    let address = 0x0a80_0004 + u32::try_from(n * (ADDRESSES + 1) + at).unwrap();
    let services = service.iter().map(|service| service.as_str().into()).collect();
    AddressUpdate { address: IpAddr::V4(Ipv4Addr::from(address)), services }
}

fn update(n: usize, addresses: Vec<AddressUpdate>) -> LocationUpdate {
    LocationUpdate { location: node(n), full: false, addresses }
}
