//! A surface with a clock, and short words for what clients do to it.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};
use serde_json::{Value, json};
use sluice_cloud::{Config, Fault};
use sluice_emulator::surface::{Handled, Surface};
use sluice_model::Time;

/// Where the emulator believes to be.
pub(crate) const ORIGIN: &str = "https://127.0.0.1:8443";
pub(crate) const SUBSCRIPTION: &str = "11111111-2222-3333-4444-555555555555";
pub(crate) const OLD: &str = "2025-05-01";
pub(crate) const NEW: &str = "2026-03-01";

/// A surface in which time passes only when somebody says so.
pub(crate) struct Stage {
    pub(crate) surface: Surface,
    pub(crate) now: Time,
    pub(crate) time_factor: f64,
    pub(crate) version: &'static str,
}

/// An answer, taken apart.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
    pub(crate) headers: Vec<(String, String)>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Status and code of a refusal.
    pub(crate) fn refusal(&self) -> (u16, &str) {
        (self.status, self.body["error"]["code"].as_str().unwrap_or("(no error)"))
    }

    pub(crate) fn state(&self) -> &str {
        self.body["properties"]["provisioningState"].as_str().unwrap_or("(none)")
    }
}

impl Stage {
    /// Group `rg`, network `vnet` with subnet `pods`, gateway `gw`; all in `eastus`.
    pub(crate) fn new() -> Stage {
        Stage::with(Config { buckets: None, ..Config::default() })
    }

    pub(crate) fn with(config: Config) -> Stage {
        let mut stage = Stage::empty(config);
        stage.done(stage.put("", json!({ "location": "eastus" })));
        stage.done(stage.put("virtualNetworks/vnet", network()));
        stage.done(stage.put("serviceGateways/gw", gateway("vnet", "pods")));
        stage
    }

    pub(crate) fn empty(config: Config) -> Stage {
        Stage { surface: Surface::new(config), now: Time::ZERO, time_factor: 1.0, version: OLD }
    }

    pub(crate) fn wait(&mut self, seconds: u64) {
        self.now = self.now + Duration::from_secs(seconds);
    }

    /// The path of something in the group; the group itself if nothing is named.
    pub(crate) fn path(&self, tail: &str) -> String {
        let group = format!("/subscriptions/{SUBSCRIPTION}/resourceGroups/rg");
        if tail.is_empty() { group } else { format!("{group}/providers/Microsoft.Network/{tail}") }
    }

    /// The id of something in the group, and its path without the version.
    pub(crate) fn id(&self, tail: &str) -> String {
        self.path(tail)
    }

    fn versioned(&self, path: &str) -> String {
        let is_group = !path.contains("/providers/") && !path.contains("api-version");
        let version = if is_group { "2021-04-01" } else { self.version };
        if path.contains("api-version") { path.to_owned() } else { format!("{path}?api-version={version}") }
    }

    pub(crate) fn request(&self, method: &str, path: &str, body: Option<Value>) -> Request<Bytes> {
        let mut request = Request::builder().method(Method::from_bytes(method.as_bytes()).unwrap());
        request = request.uri(self.versioned(path));
        let bytes = match &body {
            Some(body) => {
                request = request.header("content-type", "application/json");
                body.to_string().into()
            }
            None => Bytes::new(),
        };
        request.body(bytes).unwrap()
    }

    pub(crate) fn put(&self, tail: &str, body: Value) -> Request<Bytes> {
        self.request("PUT", &self.path(tail), Some(body))
    }

    pub(crate) fn get(&mut self, tail: &str) -> Answer {
        self.send(self.request("GET", &self.path(tail), None))
    }

    pub(crate) fn get_path(&mut self, path: &str) -> Answer {
        self.send(self.request("GET", path, None))
    }

    pub(crate) fn delete(&mut self, tail: &str) -> Answer {
        self.send(self.request("DELETE", &self.path(tail), None))
    }

    pub(crate) fn patch(&mut self, tail: &str, body: Value) -> Answer {
        self.send(self.request("PATCH", &self.path(tail), Some(body)))
    }

    pub(crate) fn post(&mut self, tail: &str, body: Value) -> Answer {
        self.send(self.request("POST", &self.path(tail), Some(body)))
    }

    pub(crate) fn handle(&mut self, request: &Request<Bytes>, fault: Option<&Fault>) -> Handled {
        self.surface.handle(self.now, request, ORIGIN, self.time_factor, fault)
    }

    pub(crate) fn send(&mut self, request: Request<Bytes>) -> Answer {
        take_apart(self.handle(&request, None)).expect("without a fault there is an answer")
    }

    /// Sends a request that something goes wrong with.
    pub(crate) fn send_faulty(&mut self, request: Request<Bytes>, fault: &Fault) -> Option<Answer> {
        take_apart(self.handle(&request, Some(fault)))
    }

    /// Sends a request that must be accepted, and waits until it is carried out.
    pub(crate) fn done(&mut self, request: Request<Bytes>) -> Answer {
        let answer = self.send(request);
        assert!(answer.status < 300, "{answer:?}");
        self.finish(&answer);
        answer
    }

    /// Waits until an accepted request is carried out, and says how it ended.
    pub(crate) fn finish(&mut self, answer: &Answer) -> Value {
        let Some(url) = answer.header("azure-asyncoperation").map(str::to_owned) else { return Value::Null };
        self.wait(60);
        let status = self.follow(&url);
        assert_eq!(status.status, 200, "{status:?}");
        status.body
    }

    /// Follows a link of an earlier answer.
    pub(crate) fn follow(&mut self, url: &str) -> Answer {
        let path = url.strip_prefix(ORIGIN).expect("links lead to where the client came from");
        let request = Request::builder().method(Method::GET).uri(path).body(Bytes::new()).unwrap();
        self.send(request)
    }

    // Scenes that many stories begin with.

    pub(crate) fn public_ip(&mut self, name: &str) {
        self.done(self.put(&format!("publicIPAddresses/{name}"), public_ip("IPv4")));
    }

    pub(crate) fn load_balancer(&mut self, name: &str) {
        self.public_ip(&format!("{name}-pip"));
        let body = self.load_balancer_body(name);
        self.done(self.put(&format!("loadBalancers/{name}"), body));
    }

    /// One frontend, one pool of the same name, one rule.
    pub(crate) fn load_balancer_body(&self, name: &str) -> Value {
        let id = self.id(&format!("loadBalancers/{name}"));
        json!({
            "location": "eastus",
            "sku": { "name": "Service" },
            "properties": {
                "scope": "Public",
                "frontendIPConfigurations": [{
                    "name": "frontend",
                    "properties": { "publicIPAddress": { "id": self.id(&format!("publicIPAddresses/{name}-pip")) } },
                }],
                "backendAddressPools": [{ "name": name, "properties": {} }],
                "loadBalancingRules": [rule(&id, name, "Tcp", 80, 8080)],
            },
        })
    }

    pub(crate) fn nat_gateway(&mut self, name: &str) {
        self.public_ip(&format!("{name}-pip"));
        let body = self.nat_gateway_body(name);
        self.done(self.put(&format!("natGateways/{name}"), body));
    }

    pub(crate) fn nat_gateway_body(&self, name: &str) -> Value {
        json!({
            "location": "eastus",
            "sku": { "name": "StandardV2" },
            "properties": {
                "serviceGateway": { "id": self.id("serviceGateways/gw") },
                "publicIpAddresses": [{ "id": self.id(&format!("publicIPAddresses/{name}-pip")) }],
            },
        })
    }

    /// `updateServices` with these entries, carried out.
    pub(crate) fn services(&mut self, entries: Value) -> Value {
        let body = json!({ "action": "PartialUpdate", "serviceRequests": entries });
        let answer = self.post("serviceGateways/gw/updateServices", body);
        assert!(answer.status < 300, "{answer:?}");
        self.finish(&answer)
    }

    pub(crate) fn locations(&mut self, entries: Value) -> Value {
        let body = json!({ "action": "PartialUpdate", "addressLocations": entries });
        let answer = self.post("serviceGateways/gw/updateAddressLocations", body);
        assert!(answer.status < 300, "{answer:?}");
        self.finish(&answer)
    }

    /// An entry that registers a load balancer of that name.
    pub(crate) fn inbound(&self, name: &str) -> Value {
        let pool = self.id(&format!("loadBalancers/{name}/backendAddressPools/{name}"));
        service(
            name,
            json!({ "serviceType": "Inbound", "isDefault": false, "loadBalancerBackendPools": [{ "id": pool }] }),
        )
    }

    pub(crate) fn outbound(&self, name: &str) -> Value {
        let nat_gateway = self.id(&format!("natGateways/{name}"));
        service(
            name,
            json!({
                "serviceType": "Outbound",
                "isDefault": false,
                "loadBalancerBackendPools": [],
                "publicNatGatewayId": nat_gateway,
            }),
        )
    }
}

pub(crate) fn service(name: &str, properties: Value) -> Value {
    json!({ "isDelete": false, "service": { "name": name, "properties": properties } })
}

pub(crate) fn unregister(name: &str) -> Value {
    json!({ "isDelete": true, "service": { "name": name } })
}

pub(crate) fn at(location: &str, addresses: &[(&str, &[&str])]) -> Value {
    let addresses: Vec<Value> = (addresses.iter())
        .map(|(address, services)| json!({ "address": address, "services": services }))
        .collect();
    json!({ "addressLocation": location, "addressUpdateAction": "PartialUpdate", "addresses": addresses })
}

pub(crate) fn public_ip(version: &str) -> Value {
    json!({
        "location": "eastus",
        "sku": { "name": "StandardV2" },
        "properties": { "publicIPAllocationMethod": "Static", "publicIPAddressVersion": version },
    })
}

pub(crate) fn rule(
    load_balancer: &str,
    pool: &str,
    protocol: &str,
    frontend_port: u16,
    backend_port: u16,
) -> Value {
    json!({
        "name": format!("rule-{}-{frontend_port}", protocol.to_ascii_lowercase()),
        "properties": {
            "protocol": protocol,
            "frontendPort": frontend_port,
            "backendPort": backend_port,
            "frontendIPConfiguration": { "id": format!("{load_balancer}/frontendIPConfigurations/frontend") },
            "backendAddressPool": { "id": format!("{load_balancer}/backendAddressPools/{pool}") },
        },
    })
}

pub(crate) fn network() -> Value {
    json!({
        "location": "eastus",
        "properties": {
            "addressSpace": { "addressPrefixes": ["10.0.0.0/16"] },
            "subnets": [{ "name": "pods", "properties": { "addressPrefix": "10.0.0.0/24" } }],
        },
    })
}

pub(crate) fn gateway(network: &str, subnet: &str) -> Value {
    let network = format!(
        "/subscriptions/{SUBSCRIPTION}/resourceGroups/rg/providers/Microsoft.Network/virtualNetworks/{network}"
    );
    json!({
        "location": "eastus",
        "sku": { "name": "Standard", "tier": "Regional" },
        "properties": {
            "virtualNetwork": { "id": network },
            "routeTargetAddress": { "subnet": { "id": format!("{network}/subnets/{subnet}") } },
        },
    })
}

fn take_apart(handled: Handled) -> Option<Answer> {
    let answer = handled.answer?;
    let body = answer.body();
    Some(Answer {
        status: answer.status().as_u16(),
        body: if body.is_empty() { Value::Null } else { serde_json::from_slice(body).unwrap() },
        headers: (answer.headers().iter())
            .map(|(name, value)| (name.as_str().to_owned(), value.to_str().unwrap().to_owned()))
            .collect(),
    })
}
