//! The dashboard over a made-up cluster, for people who work on it and for the browser test.
//!
//! ```text
//! cargo run -p sluice-controller --example dashboard -- [--services N] [--addresses N] [--egresses N]
//!     [--listen ADDRESS] [--token TOKEN] [--calm] [--busy]
//! ```
//!
//! Everything between the watch and the wire is real: the loop, the engine, the updaters, the admin
//! server. The cluster is the one in memory and Azure the small one of the tests; where there are
//! many services, without a budget. Some services are refused for a reason each, unless `--calm`; with `--busy` endpoints
//! change all the time. It prints one line of JSON with its address when the first sync is done, and
//! then obeys lines on its standard input until that ends:
//!
//! ```text
//! apply NAMESPACE/NAME ADDRESSES    a Service with so many endpoints
//! delete NAMESPACE/NAME
//! slow                              from now on Azure takes ten seconds for a load balancer
//! trouble                           what `--calm` has spared
//! ```

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "an example is a program of its own, and speaks to a terminal"
)]

#[path = "../tests/loop/azure.rs"]
#[expect(dead_code, reason = "the tests use more of it")]
mod azure;

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use sluice_arm::Secret;
use sluice_controller::admin::{About, Access, Admin, Almanac, Parts, ServeLimits, WindowLimits, serve};
use sluice_controller::memory::Cluster;
use sluice_controller::{Clock as _, Config, Controller, Inbox, Limits, Monotonic, Standing};
use sluice_engine::DefaultOutbound;
use sluice_model::call::{Method, Request};
use sluice_model::kube::{Protocol, ServicePort, ServiceSpec, TargetPort};
use sluice_model::names::Scope;
use sluice_model::seeded::Seeded;
use sluice_model::{Event, ObjectName, Time};
use sluice_view::overview::{Role, WatchLine};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::sync::watch;

use azure::{Behaviour, SmallAzure};

const TEAMS: [&str; 8] = ["shop", "bank", "media", "search", "mail", "maps", "platform", "games"];
const PARTS: [&str; 10] =
    ["web", "api", "cart", "login", "images", "queue", "admin", "feed", "metrics", "gateway"];
const EGRESSES: [&str; 6] = ["blue", "green", "partner-a", "partner-b", "crawler", "payments"];
const NODES: u32 = 100;

struct Wishes {
    services: u32,
    addresses: u32,
    egresses: u32,
    listen: SocketAddr,
    token: Option<String>,
    is_calm: bool,
    is_busy: bool,
}

fn wishes() -> Wishes {
    let mut wishes = Wishes {
        services: 48,
        addresses: 320,
        egresses: 6,
        listen: "127.0.0.1:0".parse().unwrap(),
        token: None,
        is_calm: false,
        is_busy: false,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().unwrap_or_else(|| panic!("{argument} needs a value"));
        match argument.as_str() {
            "--services" => wishes.services = value().parse().unwrap(),
            "--addresses" => wishes.addresses = value().parse().unwrap(),
            "--egresses" => wishes.egresses = value().parse().unwrap(),
            "--listen" => wishes.listen = value().parse().unwrap(),
            "--token" => wishes.token = Some(value()),
            "--calm" => wishes.is_calm = true,
            "--busy" => wishes.is_busy = true,
            other => panic!("{other} is not known; the head of this file says what is"),
        }
    }
    wishes
}

#[tokio::main]
async fn main() {
    let wishes = wishes();
    let clock = Monotonic::start();
    let moods = Arc::new(Moods::default());
    let script = Arc::clone(&moods);
    let azure = SmallAzure::new(clock, move |request| script.towards(request));
    let (handle, inbox) = Inbox::open(4_096);
    let (cluster, changes) = Cluster::new();
    tokio::spawn(changes.bring_to(handle.clone()));
    let config = config(wishes.services > 200);
    let window_limits = WindowLimits::from(&config.updaters);
    let controller = Controller::new(config, inbox, azure, Arc::clone(&cluster), clock);
    let running = tokio::spawn(controller.run());

    for node in 0..NODES {
        let address = Ipv4Addr::from_bits(u32::from(Ipv4Addr::new(10, 1, 0, 10)) + node);
        cluster.apply_node(&node_name(node), vec![IpAddr::V4(address)]);
    }
    cluster.list_all();
    let identity = "sluice-7d9f4c-x2k8p".to_string();
    let leads = Standing { role: Role::Leader, leader: Some(identity.clone()) };
    let admin = Admin::new(Parts {
        handle: handle.clone(),
        almanac: Almanac::new(clock, SystemTime::now()),
        about: About {
            identity,
            cluster_id: "prod-westeurope".into(),
            version: env!("CARGO_PKG_VERSION").into(),
        },
        standing: watch::channel(leads).1,
        watches: Arc::new(|| {
            let line = |kind: &str| WatchLine { kind: kind.into(), listed: true, ..WatchLine::default() };
            ["services", "endpointslices", "nodes", "pods"].map(line).to_vec()
        }),
        calls: Arc::default(),
        window_limits,
        access: Access { token: wishes.token.clone().map(Secret::new), ..Access::default() },
    });
    let listener = TcpListener::bind(wishes.listen).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(admin.keep_history());
    let limits = ServeLimits::API;
    tokio::spawn(serve(listener, None, admin.api_router(), limits, std::future::pending()));

    handle.fence(Some(Time::NEVER));
    handle.post(Event::LeadershipGained).await.unwrap();
    handle.wait_for_initial_sync().await.unwrap();
    let town = Town { cluster, moods, clock };
    let served = town.settle(&wishes);
    handle
        .wait_until(move |engine| engine.services().iter().filter(|seen| seen.live).count() >= served)
        .await
        .unwrap();
    println!("{{\"url\": \"http://{address}/\"}}");
    if !wishes.is_calm {
        town.trouble();
    }
    tokio::select! {
        () = town.obey() => {}
        () = town.change_for_ever(&wishes), if wishes.is_busy => {}
    }
    handle.stop();
    running.await.unwrap();
}

/// How Azure meets each service.
#[derive(Default)]
struct Moods {
    of: Mutex<HashMap<String, Behaviour>>,
    is_slow: AtomicBool,
}

impl Moods {
    fn towards(&self, request: &Request) -> Behaviour {
        let name = request.target.name();
        let is_read = matches!(request.method, Method::Get | Method::List | Method::Poll);
        let of = self.of.lock().unwrap();
        if !is_read && let Some(mood) = of.iter().find(|(known, _)| name.contains(known.as_str())) {
            return mood.1.clone();
        }
        match request.method == Method::Put && request.target.segment("loadBalancers").is_some() {
            true if self.is_slow.load(Ordering::Relaxed) => Behaviour::Slow(Duration::from_secs(10)),
            _ => Behaviour::Slow(Duration::from_millis(60)),
        }
    }
}

struct Town {
    cluster: Arc<Cluster>,
    moods: Arc<Moods>,
    clock: Monotonic,
}

fn node_name(number: u32) -> String {
    format!("aks-pool1-{:03}", number % NODES)
}

fn name_of(number: u32) -> ObjectName {
    let (teams, parts) = (TEAMS.len() as u32, PARTS.len() as u32);
    let (team, part) = (TEAMS[(number % teams) as usize], PARTS[(number / teams % parts) as usize]);
    match number / (teams * parts) {
        0 => ObjectName::new(team, part),
        round => ObjectName::new(team, format!("{part}-{round}")),
    }
}

impl Town {
    /// Services with their endpoints, and egresses with their pods; gives how many there are.
    fn settle(&self, wishes: &Wishes) -> usize {
        let each = wishes.addresses / wishes.services.max(1);
        for number in 0..wishes.services {
            // Not all alike: some have more, some fewer, and in the end as many as was asked for.
            let many = if each >= 4 { each - 2 + (number % 5) } else { each };
            self.apply(&name_of(number), number * 64, many);
        }
        for number in 0..wishes.egresses {
            let known = EGRESSES.get(number as usize);
            let egress = known.map_or_else(|| format!("egress-{number}"), ToString::to_string);
            for pod in 0..3 + number % 4 {
                let address =
                    Ipv4Addr::from_bits(u32::from(Ipv4Addr::new(10, 200, 0, 1)) + number * 16 + pod);
                let name = ObjectName::new(TEAMS[(number % 8) as usize], format!("{egress}-{pod}"));
                self.cluster.apply_pod(
                    &name,
                    &egress,
                    &node_name(pod * 7 + number),
                    vec![IpAddr::V4(address)],
                );
            }
        }
        (wishes.services + wishes.egresses) as usize
    }

    fn apply(&self, name: &ObjectName, first_address: u32, many: u32) -> String {
        let port = ServicePort {
            name: "".into(),
            protocol: Protocol::Tcp,
            port: 80,
            target: TargetPort::Number(8080),
        };
        let spec = ServiceSpec { ports: vec![port], ..ServiceSpec::default() };
        let uid = self.cluster.apply_service(name, spec).to_string();
        self.endpoints(name, first_address, many);
        uid
    }

    fn endpoints(&self, name: &ObjectName, first_address: u32, many: u32) {
        let nodes: Vec<String> = (0..many).map(|number| node_name(first_address + number * 3)).collect();
        let address = |number: u32| {
            let bits = u32::from(Ipv4Addr::new(10, 224, 0, 1)) + first_address + number;
            IpAddr::V4(Ipv4Addr::from_bits(bits))
        };
        let endpoints: Vec<(IpAddr, &str)> =
            nodes.iter().zip(0..).map(|(node, number)| (address(number), node.as_str())).collect();
        self.cluster.apply_endpoints(name, &endpoints);
    }

    /// A few that are refused, a few that take long, and one that goes.
    fn trouble(&self) {
        let quota = Behaviour::Refuse(
            400,
            "PublicIPCountLimitReached",
            "Cannot create more than 1000 public IP addresses for this subscription in this region.",
        );
        let forbidden = Behaviour::Refuse(
            403,
            "AuthorizationFailed",
            "The client does not have authorization to perform action 'Microsoft.Network/loadBalancers/write'.",
        );
        // Less than the time after which a call is given up.
        let slow = Behaviour::Slow(Duration::from_secs(50));
        for (name, mood, addresses) in [
            ("shop/checkout", &quota, 6),
            ("shop/search", &quota, 4),
            ("media/upload", &forbidden, 8),
            ("games/lobby", &slow, 12),
            ("games/match", &slow, 9),
            ("maps/tiles", &slow, 5),
        ] {
            let (namespace, name) = name.split_once('/').unwrap();
            let name = ObjectName::new(namespace, name);
            // The mood must be known before the first request, so the Service is made twice: to learn its UID.
            let uid = {
                let mut of = self.moods.of.lock().unwrap();
                let uid = self.apply(&name, 0xE000 + addresses * 64, addresses);
                of.insert(uid.clone(), mood.clone());
                uid
            };
            assert!(!uid.is_empty());
        }
        let leaving = name_of(2);
        let uid = self.cluster.services().into_iter().find(|it| it.name == leaving).map(|it| it.uid);
        if let Some(uid) = uid {
            self.moods.of.lock().unwrap().insert(uid.to_string(), slow);
            self.cluster.delete_service(&leaving);
        }
    }

    async fn obey(&self) {
        let mut lines = BufReader::new(tokio::io::stdin()).lines();
        let mut made = 0;
        while let Ok(Some(line)) = lines.next_line().await {
            let words: Vec<&str> = line.split_whitespace().collect();
            let name = |text: &str| {
                text.split_once('/').map(|(namespace, name)| ObjectName::new(namespace, name)).unwrap()
            };
            match words.as_slice() {
                ["apply", service, many] => {
                    made += 1;
                    self.apply(&name(service), 0xF_0000 + made * 64, many.parse().unwrap());
                }
                ["delete", service] => self.cluster.delete_service(&name(service)),
                ["trouble"] => self.trouble(),
                ["slow"] => self.moods.is_slow.store(true, Ordering::Relaxed),
                other => panic!("{other:?} is not understood"),
            }
        }
    }

    /// Endpoints come and go, a few every second.
    async fn change_for_ever(&self, wishes: &Wishes) {
        let mut round = 0_u32;
        loop {
            self.clock.sleep_until(self.clock.now() + Duration::from_millis(2_300)).await;
            round += 1;
            for step in 0..1 + round % 4 {
                let number = round.wrapping_mul(7).wrapping_add(step * 13) % wishes.services.max(1);
                if number != 2 {
                    self.endpoints(&name_of(number), number * 64 + round % 5, 4 + round % 6);
                }
            }
        }
    }
}

/// With a budget as in Azure, or without any for those who cannot wait so long.
fn config(is_large: bool) -> Config {
    let scope = Scope {
        subscription: "00000000-0000-0000-0000-000000000000".into(),
        resource_group: "prod".into(),
        network_resource_group: "prod".into(),
        virtual_network: "vnet".into(),
        subnet: "nodes".into(),
        gateway: "servicegateway".into(),
        cluster_id: "prod-westeurope".into(),
    };
    let mut engine = sluice_engine::Config::new(scope);
    engine.default_outbound = DefaultOutbound::Leave;
    engine.slots_max = 512;
    engine.egress_max = 1_000;
    // The small Azure lists no addresses, so it is never listed again.
    engine.drift_interval = Duration::from_secs(86_400);
    let plenty = sluice_updater::BucketSize { burst: 1_000_000, per_second: 100_000 };
    let ordinary = sluice_updater::Config::default();
    let updaters = if is_large {
        sluice_updater::Config {
            reads: plenty,
            writes: plenty,
            deletes: plenty,
            reads_per_window: 1_000_000,
            writes_per_window: 1_000_000,
            ..ordinary
        }
    } else {
        ordinary
    };
    Config { engine, updaters, limits: Limits::default(), seed: 1, seeded: Seeded::NONE }
}
