//! A loop, and the two routers before it.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};

use axum::Router;
use axum::body::Body;
use axum::http::{Request as HttpRequest, Response, StatusCode};
use http_body_util::BodyExt as _;
use serde::de::DeserializeOwned;
use sluice_controller::admin::{About, Access, Admin, Almanac, Parts, WindowLimits};
use sluice_controller::memory::Cluster;
use sluice_controller::{Clock, Controller, Ended, Handle, Inbox, Monotonic, Standing};
use sluice_engine::ServiceView;
use sluice_model::call::{Method, Request};
use sluice_model::kube::{Protocol, ServicePort, ServiceSpec, TargetPort};
use sluice_model::{Event, ObjectName, Time};
use sluice_view::overview::{Role, WatchLine};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tower::ServiceExt as _;

use crate::azure::{Behaviour, SmallAzure};
use crate::config::config;

pub(crate) struct World {
    pub(crate) clock: Monotonic,
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) handle: Handle,
    pub(crate) admin: Admin,
    pub(crate) api: Router,
    pub(crate) health: Router,
    /// How often the loop was asked for the overview.
    pub(crate) overviews: Arc<AtomicUsize>,
    /// What troubles the watch of Services.
    pub(crate) watch_trouble: Arc<Mutex<Option<String>>>,
    standing: watch::Sender<Standing>,
    running: JoinHandle<Ended>,
}

impl World {
    pub(crate) fn ordinary() -> World {
        World::with(|_| Behaviour::Ordinary)
    }

    /// A world with one node, whose Azure follows a script.
    pub(crate) fn with(script: impl FnMut(&Request) -> Behaviour + Send + 'static) -> World {
        World::made(script, true, Access::default())
    }

    /// A world whose API is not for everybody.
    pub(crate) fn guarded(access: Access) -> World {
        World::made(|_| Behaviour::Ordinary, true, access)
    }

    /// A world whose loop never turns.
    pub(crate) fn hanging() -> World {
        World::made(|_| Behaviour::Ordinary, false, Access::default())
    }

    fn made(
        script: impl FnMut(&Request) -> Behaviour + Send + 'static,
        turns: bool,
        access: Access,
    ) -> World {
        let clock = Monotonic::start();
        World::over(clock, SmallAzure::new(clock, script), turns, access)
    }

    /// A world whose Azure has a past.
    pub(crate) fn over(clock: Monotonic, azure: Arc<SmallAzure>, turns: bool, access: Access) -> World {
        let (handle, inbox) = Inbox::open(64);
        let (cluster, watch) = Cluster::new();
        tokio::spawn(watch.bring_to(handle.clone()));
        let config = config();
        let window_limits = WindowLimits::from(&config.updaters);
        let controller = Controller::new(config, inbox, azure, Arc::clone(&cluster), clock);
        let running = tokio::spawn(async move {
            if !turns {
                std::future::pending::<()>().await;
            }
            controller.run().await
        });
        cluster.apply_node("node-a", vec![IpAddr::V4(Ipv4Addr::new(10, 1, 0, 4))]);
        let (standing, stands) = watch::channel(Standing::default());
        let overviews = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&overviews);
        let watch_trouble: Arc<Mutex<Option<String>>> = Arc::default();
        let troubled = Arc::clone(&watch_trouble);
        let admin = Admin::new(Parts {
            handle: handle.clone(),
            // Noon of the day on which this was written.
            almanac: Almanac::new(clock, UNIX_EPOCH + Duration::from_secs(1_794_830_400)),
            about: About {
                identity: "sluice-0".into(),
                cluster_id: "cluster-under-test".into(),
                version: "0.0.1".into(),
            },
            standing: stands,
            watches: Arc::new(move || {
                counted.fetch_add(1, Ordering::Relaxed);
                let line = |kind: &str| WatchLine { kind: kind.into(), listed: true, ..WatchLine::default() };
                let mut lines = ["services", "endpointslices", "nodes", "pods"].map(line).to_vec();
                lines[0].trouble = troubled.lock().unwrap().clone();
                lines
            }),
            calls: Arc::default(),
            window_limits,
            access,
        });
        let (api, health) = (admin.api_router(), admin.health_router());
        World { clock, cluster, handle, admin, api, health, overviews, watch_trouble, standing, running }
    }

    /// It lists everything and takes the lease for good.
    pub(crate) async fn lead(&self) {
        self.cluster.list_all();
        self.handle.post(Event::LeadershipGained).await.unwrap();
        self.handle.fence(Some(Time::NEVER));
        self.stand(Standing { role: Role::Leader, leader: Some("sluice-0".into()) });
    }

    pub(crate) fn stand(&self, standing: Standing) {
        self.standing.send_replace(standing);
    }

    pub(crate) fn apply(&self, namespace: &str, name: &str) {
        let ports = vec![ServicePort {
            name: "".into(),
            protocol: Protocol::Tcp,
            port: 80,
            target: TargetPort::Number(8080),
        }];
        let name = ObjectName::new(namespace, name);
        self.cluster.apply_service(&name, ServiceSpec { ports, ..ServiceSpec::default() });
    }

    pub(crate) fn endpoint(&self, namespace: &str, name: &str, last: u8) {
        let address = IpAddr::V4(Ipv4Addr::new(10, 244, 0, last));
        self.cluster.apply_endpoints(&ObjectName::new(namespace, name), &[(address, "node-a")]);
    }

    pub(crate) async fn published(&self, many: usize) {
        let published = |seen: &ServiceView| seen.live && seen.public_ip.is_some();
        self.until(move |all| all.iter().filter(|seen| published(seen)).count() >= many).await;
        self.cluster.wait_until(|all| all.iter().filter(|it| it.published.is_some()).count() >= many).await;
        self.cluster.brought().await;
    }

    /// Waits for something, and not for ever.
    pub(crate) async fn until(&self, holds: impl Fn(&[ServiceView]) -> bool + Clone + Send + 'static) {
        let waited = self.handle.wait_until(move |engine| holds(&engine.services()));
        tokio::select! {
            waited = waited => waited.unwrap(),
            () = self.clock.sleep_until(self.clock.now() + Duration::from_secs(3_600)) => {
                panic!("an hour later it is not so: {:?}", self.handle.services().await);
            }
        }
    }

    pub(crate) async fn wait(&self, span: Duration) {
        self.clock.sleep_until(self.clock.now() + span).await;
    }

    /// Comes back when the loop has ended.
    pub(crate) async fn ended(&self) {
        while !self.running.is_finished() {
            self.wait(Duration::from_millis(1)).await;
        }
    }

    pub(crate) async fn ask(&self, path: &str) -> (StatusCode, String) {
        self.send(&self.api, "GET", path, &[("host", "localhost:8080")]).await
    }

    pub(crate) async fn seen<T: DeserializeOwned>(&self, path: &str) -> T {
        let (status, body) = self.ask(path).await;
        assert_eq!(status, StatusCode::OK, "{path}: {body}");
        serde_json::from_str(&body).unwrap()
    }

    pub(crate) async fn send(
        &self,
        router: &Router,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
    ) -> (StatusCode, String) {
        let answer = self.answer(router, method, path, headers).await;
        (answer.status(), text(answer).await)
    }

    pub(crate) async fn answer(
        &self,
        router: &Router,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Response<Body> {
        let mut request = HttpRequest::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap()
    }
}

pub(crate) async fn text(answer: Response<Body>) -> String {
    String::from_utf8(answer.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

pub(crate) fn is_put_of(request: &Request, kind: &str) -> bool {
    request.method == Method::Put && request.target.segment(kind).is_some()
}
