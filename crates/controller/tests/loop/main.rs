//! The loop under tokio's paused time: a cluster in memory, a small Azure that can be told to
//! misbehave, and the real engine and updaters between them.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "helpers of tests are tests, and tests spawn the loop"
)]

mod azure;
mod config;
mod kube;
mod kubernetes;
mod leadership;
mod log;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use sluice_controller::memory::Cluster;
use sluice_controller::{Clock, Config, Controller, Ended, Handle, Inbox, Limits, Monotonic, Why};
use sluice_model::call::{Body, Method, Request};
use sluice_model::kube::{Protocol, ServicePort, ServiceSpec, TargetPort};
use sluice_model::{Event, ObjectName, Time};
use tokio::task::JoinHandle;

use azure::{Behaviour, SmallAzure};
use config::config;
use kube::{HELD_BACK, Whim, Whimsical};
use log::Log;

struct World {
    clock: Monotonic,
    azure: Arc<SmallAzure>,
    cluster: Arc<Cluster>,
    handle: Handle,
    running: JoinHandle<Ended>,
}

impl World {
    fn ordinary() -> World {
        World::with(config(), |_| Behaviour::Ordinary)
    }

    /// A world with one node, whose Azure follows a script.
    fn with(config: Config, script: impl FnMut(&Request) -> Behaviour + Send + 'static) -> World {
        World::with_kube(config, script, |_| Whim::Obey)
    }

    /// The same, with a Kubernetes that has whims.
    fn with_kube(
        config: Config,
        script: impl FnMut(&Request) -> Behaviour + Send + 'static,
        whims: impl FnMut(&str) -> Whim + Send + 'static,
    ) -> World {
        let clock = Monotonic::start();
        let azure = SmallAzure::new(clock, script);
        let (handle, inbox) = Inbox::open(64);
        let (cluster, watch) = Cluster::new();
        tokio::spawn(watch.bring_to(handle.clone()));
        let kube = Whimsical::new(Arc::clone(&cluster), whims);
        let controller = Controller::new(config, inbox, Arc::clone(&azure), kube, clock);
        let running = tokio::spawn(controller.run());
        cluster.apply_node("node-a", vec![IpAddr::V4(Ipv4Addr::new(10, 1, 0, 4))]);
        World { clock, azure, cluster, handle, running }
    }

    /// It lists everything and takes the lease for good.
    async fn lead(&self) {
        self.cluster.list_all();
        self.handle.post(Event::LeadershipGained).await.unwrap();
        self.handle.fence(Some(Time::NEVER));
    }

    fn apply(&self, name: &str) {
        self.cluster.apply_service(&ObjectName::new("shop", name), spec());
    }

    fn endpoint(&self, name: &str, last: u8) {
        let address = IpAddr::V4(Ipv4Addr::new(10, 244, 0, last));
        self.cluster.apply_endpoints(&ObjectName::new("shop", name), &[(address, "node-a")]);
    }

    async fn published(&self, many: usize) {
        let published = self
            .cluster
            .wait_until(|all| all.iter().filter(|service| service.published.is_some()).count() >= many);
        tokio::select! {
            () = published => {}
            () = self.clock.sleep_until(self.clock.now() + Duration::from_secs(3_600)) => {
                panic!("an hour later {many} services are not there yet");
            }
        }
    }

    async fn wait(&self, span: Duration) {
        self.clock.sleep_until(self.clock.now() + span).await;
    }

    async fn end(self) -> Ended {
        self.handle.stop();
        self.running.await.unwrap()
    }
}

/// What a Service that can be served wants.
fn spec() -> ServiceSpec {
    let ports = vec![ServicePort {
        name: "".into(),
        protocol: Protocol::Tcp,
        port: 80,
        target: TargetPort::Number(8080),
    }];
    ServiceSpec { ports, ..ServiceSpec::default() }
}

fn is_put_of(request: &Request, kind: &str) -> bool {
    request.method == Method::Put && request.target.segment(kind).is_some()
}

#[tokio::test(start_paused = true)]
async fn a_service_comes_and_goes_in_the_order_that_azure_asks_for() {
    let world = World::ordinary();
    world.lead().await;
    world.apply("web");
    world.endpoint("web", 1);
    world.published(1).await;
    world
        .handle
        .wait_until(|engine| engine.services().iter().all(|it| it.addresses_programmed == 1))
        .await
        .unwrap();
    assert_eq!((world.azure.registered(), world.azure.addresses()), (1, 1));
    world.cluster.delete_service(&ObjectName::new("shop", "web"));
    world.cluster.wait_until(<[_]>::is_empty).await;
    let uid = "5e1f0000-0000-4000-8000-000000000001";
    let steps = [
        "put servicegateway".into(),
        "put nodes".into(),
        format!("put public IP {uid}-pip"),
        format!("put load balancer {uid}"),
        "update 1 services".into(),
        "update locations".into(),
        "update locations".into(),
        "update 1 services".into(),
        format!("delete {uid}"),
        "update 1 services".into(),
        format!("delete {uid}-pip"),
    ];
    assert_eq!(world.azure.writes(), steps);
    let ended = world.end().await;
    assert_eq!((ended.why, ended.abandoned, ended.tally.wakes_in_vain), (Why::Asked, 0, 0));
    assert_eq!(ended.tally.calls_begun, ended.tally.calls_ended);
}

#[tokio::test(start_paused = true)]
async fn what_was_posted_before_a_question_is_known_when_it_is_answered() {
    let world = World::ordinary();
    world.lead().await;
    world.handle.wait_for_initial_sync().await.unwrap();
    for round in 0..20 {
        let egress = sluice_model::EgressName::parse(&format!("egress-{round}")).unwrap();
        world.handle.post(Event::EgressAdded(egress)).await.unwrap();
        assert_eq!(world.handle.services().await.unwrap().len(), round + 1);
        // A small Azure has no NAT gateways, and this is not about them.
        world.handle.fence(None);
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_before_the_fence_is_raised_and_all_of_it_afterwards() {
    let world = World::ordinary();
    world.cluster.list_all();
    world.handle.post(Event::LeadershipGained).await.unwrap();
    world.apply("web");
    world.wait(Duration::from_secs(3_600)).await;
    assert_eq!(world.azure.arrived().len(), 0);
    world.handle.fence(Some(Time::NEVER));
    world.published(1).await;
}

#[tokio::test(start_paused = true)]
async fn a_fence_that_is_not_raised_again_closes_by_itself() {
    let world = World::with(config(), |request| match request.method {
        Method::Put => Behaviour::Slow(Duration::from_secs(5)),
        _ => Behaviour::Ordinary,
    });
    world.lead().await;
    world.apply("first");
    world.published(1).await;
    let closes = world.clock.now() + Duration::from_secs(10);
    world.handle.fence(Some(closes));
    world.wait(Duration::from_secs(4)).await;
    world.apply("second");
    world.wait(Duration::from_secs(600)).await;
    let late: Vec<_> = world.azure.arrived().into_iter().filter(|it| it.at >= closes).collect();
    assert!(late.is_empty(), "{late:?}");
    assert_eq!((world.azure.resources("loadBalancers"), world.azure.registered()), (2, 1));
    world.handle.fence(Some(Time::NEVER));
    world.published(2).await;
}

#[tokio::test(start_paused = true)]
async fn a_fence_that_closes_stops_what_is_already_on_its_way_to_the_wire() {
    // The first listings leave together. The fence closes when the second of them is about to
    // leave; it and those behind it find it closed right before they are sent.
    let door: Arc<OnceLock<Handle>> = Arc::default();
    let inner = Arc::clone(&door);
    let mut about_to_leave = 0;
    let world = World::with(config(), move |_| {
        about_to_leave += 1;
        if about_to_leave == 2 {
            inner.get().unwrap().fence(None);
        }
        Behaviour::Ordinary
    });
    door.set(world.handle.clone()).unwrap();
    world.lead().await;
    world.wait(Duration::from_secs(60)).await;
    assert_eq!(world.azure.arrived().len(), 1);
    let tally = world.handle.tally().await.unwrap();
    assert!(tally.calls_begun > 1, "{tally:?}");
    assert_eq!(tally.calls_begun, tally.calls_ended);
    assert_eq!(tally.notices_held_back, HELD_BACK, "Kubernetes' side has counted them");
}

/// A clock on which time passes with every look at it, as it does on a busy machine.
#[derive(Clone)]
struct Creeping(Monotonic, Arc<AtomicU64>);

impl Clock for Creeping {
    fn now(&self) -> Time {
        let looks = self.1.fetch_add(1, Ordering::SeqCst);
        self.0.now() + Duration::from_secs(2 * looks)
    }

    async fn sleep_until(&self, at: Time) {
        let left = at.since(self.now());
        self.0.sleep_until(self.0.now() + left).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_deadline_that_comes_while_the_loop_works_was_not_forgotten() {
    let clock = Creeping(Monotonic::start(), Arc::default());
    let azure = SmallAzure::new(clock.0, |_| Behaviour::Ordinary);
    let (handle, inbox) = Inbox::open(64);
    let (cluster, watch) = Cluster::new();
    tokio::spawn(watch.bring_to(handle.clone()));
    let controller = Controller::new(config(), inbox, azure, Arc::clone(&cluster), clock.clone());
    let running = tokio::spawn(controller.run());
    cluster.list_all();
    handle.post(Event::LeadershipGained).await.unwrap();
    handle.fence(Some(Time::NEVER));
    for name in ["a", "b", "c"] {
        cluster.apply_service(&ObjectName::new("shop", name), spec());
    }
    clock.0.sleep_until(clock.0.now() + Duration::from_secs(3_600)).await;
    handle.stop();
    let ended = running.await.unwrap();
    assert!(ended.tally.turns > 50, "{:?}", ended.tally);
    assert_eq!(ended.tally.wakes_in_vain, 0, "{:?}", ended.tally);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_runs_out_while_a_token_is_fetched_stops_the_request() {
    let world = World::with(config(), |_| Behaviour::SlowToken(Duration::from_secs(15)));
    world.cluster.list_all();
    world.handle.post(Event::LeadershipGained).await.unwrap();
    world.handle.fence(Some(world.clock.now() + Duration::from_secs(10)));
    world.wait(Duration::from_secs(60)).await;
    assert_eq!(world.azure.arrived().len(), 0);
    assert!(world.handle.tally().await.unwrap().calls_begun > 0);
}

#[tokio::test(start_paused = true)]
async fn a_sender_that_panics_costs_its_own_call_and_nothing_else() {
    let mut panics_left = 1;
    let world = World::with(config(), move |request| {
        if is_put_of(request, "loadBalancers") && panics_left > 0 {
            panics_left -= 1;
            return Behaviour::Panic;
        }
        Behaviour::Ordinary
    });
    world.lead().await;
    world.apply("one");
    world.apply("two");
    world.published(2).await;
    assert_eq!(world.handle.tally().await.unwrap().panics, 1);
    assert_eq!(world.azure.registered(), 2);
    let ended = world.end().await;
    assert_eq!((ended.abandoned, ended.tally.panics), (0, 1));
    assert_eq!(ended.tally.calls_begun, ended.tally.calls_ended);
}

#[tokio::test(start_paused = true)]
async fn a_panic_means_that_nobody_knows_so_somebody_looks_before_it_is_sent_again() {
    let mut panics_left = 1;
    let world = World::with(config(), move |request| {
        if is_put_of(request, "publicIPAddresses") && panics_left > 0 {
            panics_left -= 1;
            return Behaviour::Panic;
        }
        Behaviour::Ordinary
    });
    world.lead().await;
    world.apply("web");
    world.published(1).await;
    // The request had been carried out, and the look shows it: it is not written twice.
    let puts = world.azure.writes().iter().filter(|what| what.starts_with("put public IP")).count();
    assert_eq!(puts, 1);
    assert_eq!(world.handle.numbers().await.unwrap().lost, 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_hangs_ends_at_its_limit_and_the_others_go_on() {
    let mut hangs_left = 1;
    let world = World::with(config(), move |request| {
        if is_put_of(request, "loadBalancers") && hangs_left > 0 {
            hangs_left -= 1;
            return Behaviour::Hang;
        }
        Behaviour::Ordinary
    });
    world.lead().await;
    world.apply("one");
    world.apply("two");
    world.published(1).await;
    let first = world.clock.now();
    assert!(first < Time::from_millis(30_000), "{first} is too late for somebody who need not wait");
    world.published(2).await;
    // The answer may take 60 s; then somebody looks, and writes what is missing.
    assert!(world.clock.now() < Time::from_millis(120_000));
    // The task itself is given up as well, so that it cannot hang for ever.
    world.wait(Limits::default().call).await;
    let tally = world.handle.tally().await.unwrap();
    assert_eq!(tally.calls_begun, tally.calls_ended);
}

#[tokio::test(start_paused = true)]
async fn a_stop_in_the_middle_awaits_what_is_on_the_wire_and_begins_nothing_new() {
    let world = World::with(config(), |request| match is_put_of(request, "publicIPAddresses") {
        true => Behaviour::Slow(Duration::from_secs(5)),
        false => Behaviour::Ordinary,
    });
    world.lead().await;
    for service in ["one", "two", "three"] {
        world.apply(service);
    }
    while world.azure.resources("publicIPAddresses") < 3 {
        world.wait(Duration::from_millis(10)).await;
    }
    let asked = world.clock.now();
    world.apply("four");
    let (azure, cluster) = (Arc::clone(&world.azure), Arc::clone(&world.cluster));
    let ended = world.end().await;
    assert_eq!((ended.why, ended.abandoned), (Why::Asked, 0));
    assert_eq!(ended.tally.calls_begun, ended.tally.calls_ended);
    let later: Vec<_> = azure.arrived().into_iter().filter(|it| it.at > asked).collect();
    assert!(later.is_empty(), "{later:?}");
    assert!(ended.tally.effects_not_begun > 0, "{:?}", ended.tally);
    // The plans stopped after the step that they were at.
    assert_eq!((azure.resources("publicIPAddresses"), azure.resources("loadBalancers")), (3, 0));
    assert!(cluster.services().iter().all(|service| service.published.is_none()));
}

#[tokio::test(start_paused = true)]
async fn a_stop_does_not_wait_for_ever() {
    let world = World::with(config(), |request| match is_put_of(request, "publicIPAddresses") {
        true => Behaviour::Hang,
        false => Behaviour::Ordinary,
    });
    world.lead().await;
    world.apply("web");
    while world.azure.resources("publicIPAddresses") < 1 {
        world.wait(Duration::from_millis(10)).await;
    }
    let asked = world.clock.now();
    let clock = world.clock;
    let ended = world.end().await;
    assert_eq!((ended.why, ended.abandoned), (Why::Asked, 1));
    assert_eq!(clock.now().since(asked).as_secs(), Limits::default().grace.as_secs());
}

#[tokio::test(start_paused = true)]
async fn who_loses_the_lease_ends() {
    let world = World::ordinary();
    world.lead().await;
    world.apply("web");
    world.published(1).await;
    world.handle.fence(None);
    world.handle.post(Event::LeadershipLost).await.unwrap();
    let ended = world.running.await.unwrap();
    assert_eq!(ended.why, Why::LeadershipLost);
    assert_eq!(world.handle.post(Event::Tick).await, Err(sluice_controller::Closed));
    assert!(world.handle.services().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn without_a_handle_nobody_can_ask_so_the_loop_ends_by_itself() {
    let clock = Monotonic::start();
    let azure = SmallAzure::new(clock, |_| Behaviour::Ordinary);
    let (handle, inbox) = Inbox::open(1);
    let (cluster, _watch) = Cluster::new();
    let running = tokio::spawn(Controller::new(config(), inbox, azure, cluster, clock).run());
    drop(handle);
    assert_eq!(running.await.unwrap().why, Why::Asked);
}

#[tokio::test(start_paused = true)]
async fn a_burst_fills_the_inbox_and_loses_nothing() {
    let world = World::ordinary();
    world.lead().await;
    world.handle.wait_for_initial_sync().await.unwrap();
    for number in 0..200u8 {
        world.apply(&format!("service-{number}"));
        world.endpoint(&format!("service-{number}"), number);
    }
    world.published(200).await;
    world
        .handle
        .wait_until(|engine| engine.services().iter().all(|it| it.addresses_programmed == 1))
        .await
        .unwrap();
    assert_eq!((world.azure.registered(), world.azure.addresses()), (200, 200));
    let ended = world.end().await;
    // The queue is bounded: whoever posts waits.
    assert_eq!(ended.tally.inbox_depth_max, 64);
    assert_eq!(ended.tally.wakes_in_vain, 0);
}

#[tokio::test(start_paused = true)]
async fn no_more_plans_work_at_once_than_there_are_slots() {
    for slots in [1, 3] {
        let mut config = config();
        config.engine.slots_max = slots;
        let world = World::with(config, |request| match &request.body {
            Body::PublicIp(_) | Body::LoadBalancer(_) => Behaviour::Slow(Duration::from_secs(2)),
            _ => Behaviour::Ordinary,
        });
        world.lead().await;
        world.handle.wait_for_initial_sync().await.unwrap();
        for number in 0..9 {
            world.apply(&format!("service-{number}"));
        }
        world.published(9).await;
        assert_eq!(world.azure.open_puts_max(), slots);
        let took = world.clock.now();
        let alone = Duration::from_secs(4) * 9 / u32::try_from(slots).unwrap();
        assert!(took >= Time::ZERO + alone, "{took} is too fast for {slots} slots");
    }
}

#[tokio::test(start_paused = true)]
async fn the_signature_in_the_address_of_an_operation_is_not_logged() {
    let log = Log::listen();
    let address = "https://management.azure.com/subscriptions/sub/operations/op-1?api-version=1&s=s1gnature";
    let world = World::with(config(), move |request| match request.method {
        Method::Put => Behaviour::Operation(address),
        _ => Behaviour::Ordinary,
    });
    world.lead().await;
    world.apply("web");
    world.published(1).await;
    assert!(world.azure.arrived().iter().any(|it| it.what.starts_with("read op-1")));
    assert!(log.has("method=Poll"), "polls are logged");
    assert!(log.has("/operations/op-1"), "with where they go");
    assert!(!log.has("s1gnature"), "but not with what lets them in");
}

#[tokio::test(start_paused = true)]
async fn every_step_is_logged_with_its_place_its_duration_and_the_service_that_people_know() {
    let log = Log::listen();
    let world = World::with(config(), |_| Behaviour::Slow(Duration::from_millis(300)));
    world.lead().await;
    world.apply("web");
    world.published(1).await;
    for line in [
        r#"service="shop/web" step="1/3 public-ip""#,
        r#"message=step done effect=#"#,
        r#"service="shop/web" step="2/3 load-balancer" took_ms=300"#,
        r#"message=became leader; listing Kubernetes and Azure"#,
        r#"message=listed Azure resources kind="load-balancers" count=0"#,
        r#"message=initial comparison done in_sync=0 create=1"#,
        r#"message=initial sync done"#,
    ] {
        assert!(log.has(line), "{line} is missing in:\n{}", log.text());
    }
}
