//! The controller inside a program of your own: you bring the facts, it keeps Azure equal to them.
//!
//! ```text
//! cargo run -p sluice-controller --example embed
//! ```
//!
//! Three things are yours. What happens in your cluster is told through the [`Handle`]; what the
//! controller wants written to it goes to a [`Kube`] of yours; what carries requests to Azure is an
//! [`Azure`], usually `sluice_arm::Client`. Here the first two are one shelf with one Service on it,
//! and Azure is the small one that the tests of the loop use.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "an example is a program of its own, and speaks to a terminal"
)]

#[path = "../tests/loop/azure.rs"]
#[expect(dead_code, reason = "the tests use more of it")]
mod azure;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};

use sluice_controller::{Closed, Config, Controller, Handle, Inbox, Kube, Limits, Monotonic, StatusWrite};
use sluice_engine::DefaultOutbound;
use sluice_model::effect::{Existence, KubeOutcome, Notice};
use sluice_model::event::Relist;
use sluice_model::kube::{
    Endpoint, Kind, NodeObject, ObjectRef, Protocol, ServiceObject, ServicePort, ServiceSpec, Slice,
    SliceOwner, TargetPort,
};
use sluice_model::names::Scope;
use sluice_model::seeded::Seeded;
use sluice_model::{Event, ObjectName, Time, Uid};

use azure::{Behaviour, SmallAzure};

#[tokio::main]
async fn main() -> Result<(), Closed> {
    let writes = embed().await?;
    println!("writes to Azure:");
    writes.iter().for_each(|write| println!("  {write}"));
    Ok(())
}

/// A Service comes, is served, and goes; gives what was written to Azure.
pub(crate) async fn embed() -> Result<Vec<String>, Closed> {
    let clock = Monotonic::start();
    let (handle, inbox) = Inbox::open(1_024);
    let shelf = Arc::new(Shelf { service: Mutex::new(web()), handle: handle.clone() });
    let azure = SmallAzure::new(clock, |_| Behaviour::Ordinary);
    let controller = Controller::new(config(), inbox, Arc::clone(&azure), Arc::clone(&shelf), clock);
    let running = tokio::spawn(controller.run());

    // All there is, kind by kind: what is not told is not there.
    let node = NodeObject {
        name: "node-a".into(),
        version: 1,
        internal_ips: vec![IpAddr::V4(Ipv4Addr::new(10, 1, 0, 4))],
    };
    handle.relist(1, Relist::Nodes(vec![node])).await?;
    handle.relist(1, Relist::Services(Vec::new())).await?;
    handle.relist(1, Relist::Slices(Vec::new())).await?;
    handle.relist(1, Relist::Pods(Vec::new())).await?;

    // Nobody competes with us, so the lease holds for ever. A program with replicas moves the fence
    // with every renewal of its lease.
    handle.fence(Some(Time::NEVER));
    handle.post(Event::LeadershipGained).await?;
    handle.wait_for_initial_sync().await?;
    println!("initial sync done: nothing to do yet");

    // Its endpoints may come before it; they are wanted, and sent when it is ready.
    handle.update_endpoints(endpoints()).await?;
    let service = shelf.service.lock().unwrap().clone();
    handle.add_service(service).await?;
    handle.wait_until(|engine| engine.services().iter().any(|it| it.addresses_programmed == 1)).await?;
    for service in handle.services().await? {
        let name = service.object.map(|name| name.to_string()).unwrap_or_default();
        let ip = service.public_ip.map(|ip| ip.to_string()).unwrap_or_default();
        println!("{name}: {:?} at {ip}, {} address programmed", service.state, service.addresses_programmed);
    }

    // It goes when our finalizer is off, and that is when Azure has nothing of it any more.
    let mut going = shelf.service.lock().unwrap().clone();
    going.version += 1;
    going.deleting = true;
    shelf.service.lock().unwrap().clone_from(&going);
    handle.update_service(going).await?;
    handle.wait_until(|engine| engine.services().is_empty()).await?;

    handle.stop();
    let ended = running.await.unwrap();
    println!("stopped: {:?}, {} calls abandoned", ended.why, ended.abandoned);
    Ok(azure.writes())
}

/// A cluster with one Service in it. What is written to it is told to the controller again, as a
/// watch would.
struct Shelf {
    service: Mutex<ServiceObject>,
    handle: Handle,
}

impl Shelf {
    async fn write(&self, object: &ObjectRef, change: impl FnOnce(&mut ServiceObject)) -> KubeOutcome {
        let service = {
            let mut service = self.service.lock().unwrap();
            if service.uid != object.uid {
                return KubeOutcome::Gone;
            }
            service.version += 1;
            change(&mut service);
            service.clone()
        };
        let version = service.version;
        let told = if service.deleting && !service.finalizer {
            self.handle.delete_service(service.uid, service.name).await
        } else {
            self.handle.update_service(service).await
        };
        // A controller that has ended needs no news.
        let _ = told;
        KubeOutcome::Done { version }
    }
}

impl Kube for Shelf {
    async fn add_finalizer(&self, object: ObjectRef) -> KubeOutcome {
        self.write(&object, |service| service.finalizer = true).await
    }

    async fn remove_finalizer(&self, object: ObjectRef) -> KubeOutcome {
        self.write(&object, |service| service.finalizer = false).await
    }

    async fn write_status(&self, write: StatusWrite) -> KubeOutcome {
        self.write(&write.object, |service| {
            service.ingress = write.ingress.into_iter().collect();
            service.published = write.ingress;
            service.annotated = write.ingress;
            service.conditions = write.conditions;
        })
        .await
    }

    async fn look_for(&self, object: ObjectRef) -> Existence {
        match self.service.lock().unwrap().uid == object.uid {
            true => Existence::Exists,
            false => Existence::Gone,
        }
    }

    async fn notify(&self, notice: Notice) {
        println!("{}: {}", notice.reason, notice.text);
    }

    fn relist(&self, _: Kind) {}
}

fn web() -> ServiceObject {
    let port =
        ServicePort { name: "".into(), protocol: Protocol::Tcp, port: 80, target: TargetPort::Number(8080) };
    ServiceObject {
        uid: Uid::from_number(0x5e1f_0000_0000_4000_8000_0000_0000_0001),
        name: ObjectName::new("shop", "web"),
        version: 2,
        selected: true,
        load_balancer: true,
        deleting: false,
        finalizer: false,
        inherited: false,
        spec: ServiceSpec { ports: vec![port], ..ServiceSpec::default() },
        ingress: Vec::new(),
        published: None,
        annotated: None,
        conditions: Vec::new(),
    }
}

fn endpoints() -> Slice {
    Slice {
        name: ObjectName::new("shop", "web-x7k2p"),
        version: 2,
        owner: SliceOwner::Name("web".into()),
        ports: Vec::new(),
        endpoints: vec![Endpoint {
            address: IpAddr::V4(Ipv4Addr::new(10, 244, 0, 1)),
            node: Some("node-a".into()),
            ready: true,
            serving: true,
            terminating: false,
        }],
        malformed: Vec::new(),
    }
}

fn config() -> Config {
    let scope = Scope {
        subscription: "00000000-0000-0000-0000-000000000000".into(),
        resource_group: "shop".into(),
        network_resource_group: "shop".into(),
        virtual_network: "vnet".into(),
        subnet: "nodes".into(),
        gateway: "servicegateway".into(),
        cluster_id: "an-example".into(),
    };
    let mut engine = sluice_engine::Config::new(scope);
    engine.default_outbound = DefaultOutbound::Leave;
    Config {
        engine,
        updaters: sluice_updater::Config::default(),
        limits: Limits::default(),
        seed: 1,
        seeded: Seeded::NONE,
    }
}
