//! A controller that leads, with a cluster in memory, a small Azure, and its API on a socket.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use sluice_arm::Secret;
use sluice_controller::admin::{About, Access, Admin, Almanac, Parts, ServeLimits, WindowLimits, serve};
use sluice_controller::memory::Cluster;
use sluice_controller::{Controller, Ended, Handle, Inbox, Monotonic, Standing};
use sluice_engine::ServiceView;
use sluice_model::call::{Method, Request};
use sluice_model::kube::{Protocol, ServicePort, ServiceSpec, TargetPort};
use sluice_model::{Event, ObjectName, Time};
use sluice_view::overview::{Role, WatchLine};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::azure::{Behaviour, SmallAzure};
use crate::config::config;

/// Goes with the test.
pub(crate) struct Leading {
    pub(crate) address: String,
    port: u16,
    cluster: Arc<Cluster>,
    handle: Handle,
    running: JoinHandle<Ended>,
    serving: JoinHandle<()>,
    standing: watch::Sender<Standing>,
}

impl Leading {
    /// On that port, or on any.
    pub(crate) async fn start(port: Option<u16>) -> Leading {
        Leading::with(port, |_| Behaviour::Ordinary, None).await
    }

    /// An Azure that lets nobody make public IPs.
    pub(crate) async fn refused() -> Leading {
        let script = |request: &Request| match request.target.segment("publicIPAddresses") {
            Some(_) if request.method == Method::Put => {
                Behaviour::Refuse(403, "AuthorizationFailed", "The client has no authorization.")
            }
            _ => Behaviour::Ordinary,
        };
        Leading::with(None, script, None).await
    }

    /// An Azure whose quota is one public IP.
    pub(crate) async fn with_one_public_ip() -> Leading {
        let mut first = None;
        let script = move |request: &Request| match request.target.segment("publicIPAddresses") {
            Some(name)
                if request.method == Method::Put
                    && *first.get_or_insert_with(|| name.to_string()) != *name =>
            {
                Behaviour::Refuse(400, "PublicIPCountLimitReached", "no more public IPs")
            }
            _ => Behaviour::Ordinary,
        };
        Leading::with(None, script, None).await
    }

    /// From now on it says that another leads.
    pub(crate) fn stand_by(&self) {
        self.standing.send_replace(Standing { role: Role::Standby, leader: Some("sluice-1".into()) });
    }

    pub(crate) async fn with_token(token: &str) -> Leading {
        Leading::with(None, |_| Behaviour::Ordinary, Some(Secret::new(token))).await
    }

    async fn with(
        port: Option<u16>,
        script: impl FnMut(&Request) -> Behaviour + Send + 'static,
        token: Option<Secret>,
    ) -> Leading {
        let listener = TcpListener::bind(("127.0.0.1", port.unwrap_or(0))).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let clock = Monotonic::start();
        let (handle, inbox) = Inbox::open(64);
        let (cluster, watch) = Cluster::new();
        tokio::spawn(watch.bring_to(handle.clone()));
        let config = config();
        let window_limits = WindowLimits::from(&config.updaters);
        let azure = SmallAzure::new(clock, script);
        let controller = Controller::new(config, inbox, azure, Arc::clone(&cluster), clock);
        let running = tokio::spawn(controller.run());
        let leader = Standing { role: Role::Leader, leader: Some("sluice-0".into()) };
        let (standing, stands) = watch::channel(leader);
        let about = About { identity: "sluice-0".into(), version: "0.0.1".into(), ..About::default() };
        let admin = Admin::new(Parts {
            handle: handle.clone(),
            almanac: Almanac::new(clock, SystemTime::now()),
            about,
            standing: stands,
            watches: Arc::new(|| {
                vec![WatchLine { kind: "pods".into(), listed: true, ..WatchLine::default() }]
            }),
            calls: Arc::default(),
            window_limits,
            access: Access { token, ..Access::default() },
        });
        let stop = std::future::pending();
        let serving = tokio::spawn(serve(listener, None, admin.api_router(), ServeLimits::API, stop));
        cluster.apply_node("node-a", vec![IpAddr::V4(Ipv4Addr::new(10, 1, 0, 4))]);
        cluster.list_all();
        handle.post(Event::LeadershipGained).await.unwrap();
        handle.fence(Some(Time::NEVER));
        handle.wait_for_initial_sync().await.unwrap();
        let address = format!("http://127.0.0.1:{port}");
        Leading { address, port, cluster, handle, running, serving, standing }
    }

    pub(crate) fn apply(&self, title: &str) {
        let (namespace, name) = title.split_once('/').unwrap();
        let ports = vec![ServicePort {
            name: "".into(),
            protocol: Protocol::Tcp,
            port: 80,
            target: TargetPort::Number(8080),
        }];
        let spec = ServiceSpec { ports, ..ServiceSpec::default() };
        self.cluster.apply_service(&ObjectName::new(namespace, name), spec);
    }

    /// Waits until all of them are served.
    pub(crate) async fn serve_all(&self, titles: &[&str]) {
        titles.iter().for_each(|title| self.apply(title));
        let many = titles.len();
        let all_live = move |all: &[ServiceView]| all.len() == many && all.iter().all(|seen| seen.live);
        self.until(all_live).await;
        let published = self.cluster.wait_until(|all| all.iter().all(|it| it.published.is_some()));
        tokio::time::timeout(Duration::from_secs(60), published).await.unwrap();
        self.cluster.brought().await;
    }

    pub(crate) async fn until(&self, holds: impl Fn(&[ServiceView]) -> bool + Clone + Send + 'static) {
        let waiting = self.handle.wait_until(move |engine| holds(&engine.services()));
        tokio::time::timeout(Duration::from_secs(60), waiting).await.unwrap().unwrap();
    }

    /// Ends the loop and then the server; gives the port back.
    pub(crate) async fn end(self) -> u16 {
        self.handle.stop();
        self.running.await.unwrap();
        self.serving.abort();
        let _ = self.serving.await;
        self.port
    }
}
