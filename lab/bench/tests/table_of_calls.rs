//! The table of calls in virtual time: the loop, engine and updaters as they are shipped, and the
//! model of Azure in place of client, network and emulator. `sluice bench calls` measures the same
//! over HTTPS; here it takes seconds and gives the same figures every time.
#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use sluice_bench::figures::Figures;
use sluice_bench::ledger::{Entry, Errand};
use sluice_bench::workload;
use sluice_bench::world::{self, World};
use sluice_cloud::{Cloud, Config as CloudConfig};
use sluice_controller::{Azure, Clock, Monotonic};
use sluice_model::Time;
use sluice_model::azure::ServiceRequest;
use sluice_model::call::{Answer, Body, Method, Reply, Request};
use sluice_model::names::Scope;

const SERVICES: u32 = 500;
/// How long the way to Azure takes, and the way back.
const ONE_WAY: Duration = Duration::from_millis(20);

/// The model of Azure, some milliseconds away.
struct Direct {
    clock: Monotonic,
    cloud: Mutex<Cloud>,
    ledger: Mutex<Vec<Entry>>,
}

impl Azure for Direct {
    async fn send(&self, request: Request, _: impl FnOnce() -> bool + Send) -> Reply {
        self.clock.sleep_until(self.clock.now() + ONE_WAY).await;
        let now = self.clock.now();
        let answer = self.cloud.lock().unwrap().handle(now, &request);
        self.ledger.lock().unwrap().push(self.entry(now, &request, &answer));
        self.clock.sleep_until(now + ONE_WAY).await;
        Reply::Answered(answer)
    }
}

impl Direct {
    fn new(clock: Monotonic, throttled: bool) -> Arc<Direct> {
        let mut config = CloudConfig::default();
        if !throttled {
            config.buckets = None;
        }
        let mut cloud = Cloud::new(config);
        cloud.prepare(Time::ZERO, &scope());
        Arc::new(Direct { clock, cloud: Mutex::new(cloud), ledger: Mutex::default() })
    }

    fn entry(&self, now: Time, request: &Request, answer: &Answer) -> Entry {
        let ends = answer.operation.as_ref().and_then(|id| {
            let cloud = self.cloud.lock().unwrap();
            cloud.running().find(|running| running.id == id).and_then(|running| running.ends)
        });
        let kind = request.target.as_str().rsplit('/').nth(1).unwrap_or_default();
        Entry {
            at: now,
            answered: now,
            method: request.method,
            kind: if request.method == Method::List { request.target.name() } else { kind }.to_owned(),
            target: request.target.to_string(),
            status: answer.status,
            operation: answer.operation.as_ref().map(|id| (id.to_string(), ends.unwrap_or(now))),
            services: match &request.body {
                Body::Services(services) => services.iter().map(errand).collect(),
                _ => Vec::new(),
            },
            code: None,
            fault: None,
            body: serde_json::Value::Null,
        }
    }

    fn take_ledger(&self) -> Vec<Entry> {
        std::mem::take(&mut *self.ledger.lock().unwrap())
    }
}

fn errand(request: &ServiceRequest) -> (String, Errand) {
    let service = &request.service;
    let is_bound = !service.pools.is_empty() || service.nat_gateway.is_some();
    (service.name.to_string(), Errand::of(request.is_delete, is_bound))
}

fn scope() -> Scope {
    Scope {
        subscription: "00000000-0000-0000-0000-000000000000".into(),
        resource_group: "rg".into(),
        network_resource_group: "rg".into(),
        virtual_network: "vnet".into(),
        subnet: "nodes".into(),
        gateway: "servicegateway".into(),
        cluster_id: "cluster-under-test".into(),
    }
}

/// The figures of creating and of deleting, in this order.
async fn measure(concurrency: usize, throttled: bool) -> [Figures; 2] {
    let clock = Monotonic::start();
    let azure = Direct::new(clock, throttled);
    let config = world::config(scope(), concurrency, 1);
    let config = if throttled { config } else { world::lifted(config) };
    let world = World::start(config, Arc::clone(&azure), clock, workload::furnish).await.unwrap();
    world.handle.wait_for_initial_sync().await.unwrap();
    // The windows of the start-up are over before anything is counted.
    let quiet = Duration::from_secs(400);
    clock.sleep_until(clock.now() + quiet).await;
    azure.take_ledger();
    workload::create(&world.cluster, SERVICES);
    world
        .cluster
        .wait_until(|all| all.len() == SERVICES as usize && all.iter().all(|it| it.published.is_some()))
        .await;
    world.settled().await.unwrap();
    let created = Figures::count(&azure.take_ledger(), SERVICES, concurrency);
    clock.sleep_until(clock.now() + quiet).await;
    azure.take_ledger();
    workload::delete(&world.cluster, SERVICES);
    world.cluster.wait_until(<[_]>::is_empty).await;
    let deleted = Figures::count(&azure.take_ledger(), SERVICES, concurrency);
    let ended = world.stop().await.unwrap();
    assert_eq!((ended.tally.panics, ended.tally.wakes_in_vain), (0, 0));
    let cloud = azure.cloud.lock().unwrap();
    let state = cloud.state();
    assert!(state.public_ips.is_empty() && state.load_balancers.is_empty());
    assert_eq!(state.registrations(&scope().gateway_id()).count(), 0);
    assert_eq!(state.locations(&scope().gateway_id()).count(), 0);
    [created, deleted]
}

fn assert_calls(figures: &Figures, writes_max: f64) {
    assert_eq!(figures.served, SERVICES as usize);
    assert!(figures.per_service(figures.service_writes) <= writes_max, "{figures:#?}");
    assert!(figures.per_service(figures.reads) <= 6.0, "{figures:#?}");
    assert_eq!(figures.throttled, 0, "{figures:#?}");
}

#[tokio::test(start_paused = true)]
async fn ten_at_once_under_throttling_keep_to_the_table_and_near_the_bound() {
    let [created, deleted] = measure(10, true).await;
    assert_calls(&created, 2.75);
    assert_calls(&deleted, 2.75);
    assert!(created.over_bound() <= 1.15, "{created:#?}");
    assert!(deleted.over_bound() <= 1.30, "{deleted:#?}");
}

#[tokio::test(start_paused = true)]
async fn fifty_at_once_where_nobody_counts_need_little_more_than_two_writes_each() {
    let [created, deleted] = measure(50, false).await;
    assert_calls(&created, 2.2);
    assert_calls(&deleted, 2.2);
}
