//! A scene: one cloud, one clock, one caller. All tests speak to the cloud through this.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use sluice_cloud::{Cloud, Config, Fault, Tamper};
use sluice_model::address::Family;
use sluice_model::azure::*;
use sluice_model::call::*;
use sluice_model::kube::Protocol;
use sluice_model::names::Scope;
use sluice_model::time::Time;

pub(crate) struct Scene {
    pub(crate) cloud: Cloud,
    pub(crate) now: Time,
    pub(crate) scope: Scope,
}

impl Scene {
    /// Groups, a network, a subnet, a gateway, and nobody who counts.
    pub(crate) fn new() -> Scene {
        Scene::with(Config { buckets: None, ..Config::default() })
    }

    pub(crate) fn with(config: Config) -> Scene {
        let scope = Scope {
            subscription: "11111111-2222-3333-4444-555555555555".into(),
            resource_group: "rg".into(),
            network_resource_group: "net-rg".into(),
            virtual_network: "vnet".into(),
            subnet: "pods".into(),
            gateway: "servicegateway".into(),
            cluster_id: "cluster".into(),
        };
        let mut scene = Scene { cloud: Cloud::new(config), now: Time::ZERO, scope };
        scene.cloud.prepare(scene.now, &scene.scope);
        let put = Tamper::Put { id: scene.gateway(), body: scene.gateway_body() };
        assert_eq!(scene.cloud.tamper(scene.now, put).status, 201);
        scene
    }

    pub(crate) fn wait(&mut self, seconds: u64) {
        self.now = self.now + Duration::from_secs(seconds);
        self.cloud.advance(self.now);
    }

    pub(crate) fn wait_ms(&mut self, ms: u64) {
        self.now = self.now + Duration::from_millis(ms);
        self.cloud.advance(self.now);
    }

    pub(crate) fn send(&mut self, request: &Request) -> Answer {
        self.cloud.handle(self.now, request)
    }

    pub(crate) fn send_faulty(&mut self, request: &Request, fault: Fault) -> Answer {
        match self.cloud.handle_faulty(self.now, request, &fault) {
            Reply::Answered(answer) => answer,
            reply => panic!("no answer: {reply:?}"),
        }
    }

    pub(crate) fn tamper(&mut self, change: Tamper) -> Answer {
        self.cloud.tamper(self.now, change)
    }

    /// Sends a request, waits for its operation, and says how that ended.
    pub(crate) fn finish(&mut self, request: &Request) -> OperationState {
        let answer = self.send(request);
        assert!(answer.status < 300, "{answer:?}");
        self.wait(60);
        match answer.operation {
            Some(operation) => self.poll(&operation),
            None => OperationState::Succeeded,
        }
    }

    /// The same, and it must succeed.
    pub(crate) fn done(&mut self, request: &Request) {
        assert_eq!(self.finish(request), OperationState::Succeeded, "{request:?}");
    }

    pub(crate) fn poll(&mut self, operation: &ArmId) -> OperationState {
        let answer = self.send(&Request::bare(Method::Poll, operation.clone()));
        match answer.payload {
            Payload::Operation(state) => state,
            payload => panic!("no operation: {payload:?}"),
        }
    }

    /// Sends what must be refused.
    pub(crate) fn refused(&mut self, request: &Request) -> (u16, String) {
        let before = self.cloud.state().clone();
        let answer = self.send(request);
        assert_eq!(*self.cloud.state(), before, "a refusal changes nothing");
        code(&answer)
    }

    /// Sends what must be refused, and gives the code, the text and the details of that.
    pub(crate) fn refused_with(&mut self, request: &Request) -> (ArmError, Vec<ArmError>) {
        let outcome = self.cloud.handle_fully(self.now, request, None);
        match outcome.reply {
            Reply::Answered(Answer { payload: Payload::Error(error), .. }) => (error, outcome.details),
            reply => panic!("no refusal: {reply:?}"),
        }
    }

    pub(crate) fn get(&mut self, id: &ArmId) -> Answer {
        self.send(&Request::bare(Method::Get, id.clone()))
    }

    // Ids.

    pub(crate) fn gateway(&self) -> ArmId {
        self.scope.gateway_id()
    }

    pub(crate) fn public_ip(&self, name: &str) -> ArmId {
        self.scope.resource("publicIPAddresses", name)
    }

    pub(crate) fn load_balancer(&self, name: &str) -> ArmId {
        self.scope.resource("loadBalancers", name)
    }

    pub(crate) fn nat_gateway(&self, name: &str) -> ArmId {
        self.scope.resource("natGateways", name)
    }

    pub(crate) fn pool(&self, name: &str) -> ArmId {
        self.load_balancer(name).child("backendAddressPools", name)
    }

    pub(crate) fn group(&self) -> ArmId {
        self.gateway().parent("resourceGroups").expect("every id here has a group")
    }

    // Requests.

    pub(crate) fn gateway_body(&self) -> Body {
        Body::Gateway(GatewayBody {
            virtual_network: self.scope.virtual_network_id(),
            route_target_subnet: self.scope.subnet_id(),
            route_target_address: None,
            route_target_address_v6: None,
            tags: Tags::new(),
        })
    }

    pub(crate) fn put_ip(&self, name: &str) -> Request {
        self.put_ip_of(name, Family::V4)
    }

    pub(crate) fn put_ip_of(&self, name: &str, family: Family) -> Request {
        let body = PublicIpBody { family, tags: Tags::new() };
        Request::with(Method::Put, self.public_ip(name), Body::PublicIp(body))
    }

    /// A load balancer of that name, with the public IP `{name}-pip`.
    pub(crate) fn put_lb(&self, name: &str, rules: &[Rule]) -> Request {
        self.put_lb_on(name, &format!("{name}-pip"), rules)
    }

    pub(crate) fn put_lb_on(&self, name: &str, public_ip: &str, rules: &[Rule]) -> Request {
        let body = LoadBalancerBody {
            public_ip: self.public_ip(public_ip),
            rules: rules.to_vec(),
            tags: Tags::new(),
        };
        Request::with(Method::Put, self.load_balancer(name), Body::LoadBalancer(body))
    }

    /// A NAT gateway of that name in the gateway, with the public IP `{name}-pip`.
    pub(crate) fn nat_body(&self, name: &str) -> NatGatewayBody {
        NatGatewayBody {
            gateway: Some(self.gateway()),
            public_ips: vec![self.public_ip(&format!("{name}-pip"))],
            public_ips_v6: vec![],
            tags: Tags::new(),
        }
    }

    pub(crate) fn put_nat(&self, name: &str, body: NatGatewayBody) -> Request {
        Request::with(Method::Put, self.nat_gateway(name), Body::NatGateway(body))
    }

    pub(crate) fn delete(&self, id: &ArmId) -> Request {
        Request::bare(Method::Delete, id.clone())
    }

    pub(crate) fn services(&self, requests: Vec<ServiceRequest>) -> Request {
        Request::with(Method::UpdateServices, self.gateway(), Body::Services(requests))
    }

    pub(crate) fn locations(&self, updates: Vec<LocationUpdate>) -> Request {
        Request::with(Method::UpdateLocations, self.gateway(), Body::Locations(updates))
    }

    pub(crate) fn inbound(&self, name: &str) -> Registration {
        Registration {
            name: name.into(),
            direction: Direction::Inbound,
            is_default: false,
            pools: vec![self.pool(name)],
            nat_gateway: None,
        }
    }

    pub(crate) fn outbound(&self, name: &str) -> Registration {
        Registration {
            name: name.into(),
            direction: Direction::Outbound,
            is_default: false,
            pools: vec![],
            nat_gateway: Some(self.nat_gateway(name)),
        }
    }

    // Scenes.

    /// A load balancer with its public IP.
    pub(crate) fn make_lb(&mut self, name: &str) {
        self.done(&self.put_ip(&format!("{name}-pip")));
        self.done(&self.put_lb(name, &[tcp(80, 8080)]));
    }

    /// A NAT gateway with its public IP.
    pub(crate) fn make_nat(&mut self, name: &str) {
        self.done(&self.put_ip(&format!("{name}-pip")));
        self.done(&self.put_nat(name, self.nat_body(name)));
    }

    /// A load balancer that is registered.
    pub(crate) fn make_service(&mut self, name: &str) {
        self.make_lb(name);
        self.done(&self.services(vec![write(self.inbound(name))]));
    }

    /// An egress that is registered.
    pub(crate) fn make_egress(&mut self, name: &str) {
        self.make_nat(name);
        self.done(&self.services(vec![write(self.outbound(name))]));
    }
}

pub(crate) fn write(service: Registration) -> ServiceRequest {
    ServiceRequest { is_delete: false, service }
}

pub(crate) fn unregister(mut service: Registration) -> ServiceRequest {
    service.pools.clear();
    service.nat_gateway = None;
    ServiceRequest { is_delete: true, service }
}

pub(crate) fn tcp(frontend_port: u16, backend_port: u16) -> Rule {
    Rule { protocol: Protocol::Tcp, frontend_port, backend_port, idle_timeout_minutes: 4 }
}

pub(crate) fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

pub(crate) fn names(services: &[&str]) -> Vec<Arc<str>> {
    services.iter().map(|&name| name.into()).collect()
}

/// A partial update of one location.
pub(crate) fn at(location: &str, addresses: &[(&str, &[&str])]) -> LocationUpdate {
    let addresses = (addresses.iter())
        .map(|(address, services)| AddressUpdate { address: ip(address), services: names(services) })
        .collect();
    LocationUpdate { location: ip(location), full: false, addresses }
}

/// A full update of one location.
pub(crate) fn all_at(location: &str, addresses: &[(&str, &[&str])]) -> LocationUpdate {
    LocationUpdate { full: true, ..at(location, addresses) }
}

/// Status and code of a refusal.
pub(crate) fn code(answer: &Answer) -> (u16, String) {
    match &answer.payload {
        Payload::Error(error) => (answer.status, error.code.to_string()),
        payload => panic!("no refusal: {} {payload:?}", answer.status),
    }
}

pub(crate) fn refusal(status: u16, code: &str) -> (u16, String) {
    (status, code.to_string())
}
