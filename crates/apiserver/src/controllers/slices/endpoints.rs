//! The endpoints that a Service should have: one for each pod with an address, grouped by ports.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::controllers::object::{holds, is_going, uid};
use crate::value::{at, list, name_of, namespace_of, text};

/// Of addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Family {
    V4,
    V6,
}

impl Family {
    /// As a slice says it.
    pub(super) fn word(self) -> &'static str {
        match self {
            Family::V4 => "IPv4",
            Family::V6 => "IPv6",
        }
    }

    fn has(self, address: &str) -> bool {
        address.contains(':') == (self == Family::V6)
    }
}

/// The families of a Service.
pub(super) fn families(service: &Value) -> Vec<Family> {
    let said = list(service, &["spec", "ipFamilies"]).iter();
    let said: Vec<Family> = said.map(|it| if it == "IPv6" { Family::V6 } else { Family::V4 }).collect();
    if said.is_empty() { vec![Family::V4] } else { said }
}

/// The ports of a slice. Two are the same if they would be written the same.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Ports(Vec<String>);

impl Ports {
    /// A slice without endpoints has none.
    pub(super) fn none() -> Ports {
        Ports(Vec::new())
    }

    pub(super) fn of_slice(slice: &Value) -> Ports {
        Ports::of(list(slice, &["ports"]))
    }

    fn of(ports: &[Value]) -> Ports {
        Ports(ports.iter().map(Value::to_string).collect())
    }

    /// As a slice has them; null for none.
    pub(super) fn as_json(&self) -> Value {
        if self.0.is_empty() {
            return Value::Null;
        }
        self.0.iter().filter_map(|text| serde_json::from_str::<Value>(text).ok()).collect()
    }

    /// Those of a Service as a pod has them: a name is looked up in its containers.
    fn of_pod(service: &Value, pod: &Value) -> Ports {
        let ports = list(service, &["spec", "ports"]).iter();
        let ports = ports.filter_map(|port| {
            let number = match at(port, &["targetPort"]) {
                Value::String(name) => named(pod, name, text(port, &["protocol"]))?,
                Value::Number(number) => json!(number),
                _ => port["port"].clone(),
            };
            let protocol = match text(port, &["protocol"]) {
                "" => "TCP",
                protocol => protocol,
            };
            let mut found = json!({"name": text(port, &["name"]), "port": number, "protocol": protocol});
            if !text(port, &["appProtocol"]).is_empty() {
                found["appProtocol"] = port["appProtocol"].clone();
            }
            Some(found)
        });
        Ports::of(&ports.collect::<Vec<_>>())
    }
}

fn named(pod: &Value, name: &str, protocol: &str) -> Option<Value> {
    let ports = list(pod, &["spec", "containers"]).iter().flat_map(|container| list(container, &["ports"]));
    let is_wanted = |port: &&Value| {
        let own = text(port, &["protocol"]);
        port["name"] == name && (own == protocol || own.is_empty() || protocol.is_empty())
    };
    ports.into_iter().find(is_wanted).map(|port| port["containerPort"].clone())
}

/// One endpoint.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Endpoint(Value);

impl Endpoint {
    /// The UID of the pod of an endpoint.
    pub(super) fn pod_of(endpoint: &Value) -> Option<&str> {
        at(endpoint, &["targetRef", "uid"]).as_str()
    }
}

/// As a slice has them; null for none.
pub(super) fn as_json(endpoints: &[Endpoint]) -> Value {
    if endpoints.is_empty() {
        return Value::Null;
    }
    endpoints.iter().map(|endpoint| endpoint.0.clone()).collect()
}

/// The endpoints of a Service in a family, by ports and by the UID of the pod.
pub(super) fn desired(
    service: &Value,
    pods: &[Arc<Value>],
    zones: &BTreeMap<String, String>,
    family: Family,
) -> BTreeMap<Ports, BTreeMap<String, Endpoint>> {
    let mut wanted: BTreeMap<Ports, BTreeMap<String, Endpoint>> = BTreeMap::new();
    for pod in pods {
        let is_over = matches!(text(pod, &["status", "phase"]), "Succeeded" | "Failed");
        let mut addresses = list(pod, &["status", "podIPs"]).iter().map(|it| text(it, &["ip"]));
        let Some(address) = addresses.find(|it| family.has(it)).filter(|_| !is_over) else { continue };
        let group = wanted.entry(Ports::of_pod(service, pod)).or_default();
        group.insert(uid(pod).to_owned(), endpoint(service, pod, address, zones));
    }
    wanted
}

fn endpoint(service: &Value, pod: &Value, address: &str, zones: &BTreeMap<String, String>) -> Endpoint {
    let serving = holds(pod, "Ready");
    let terminating = is_going(pod);
    let always = at(service, &["spec", "publishNotReadyAddresses"]) == true;
    let mut endpoint = json!({
        "addresses": [address],
        "conditions": {
            "ready": always || (serving && !terminating),
            "serving": serving,
            "terminating": terminating,
        },
        "targetRef": {
            "kind": "Pod", "name": name_of(pod), "namespace": namespace_of(pod), "uid": uid(pod),
        },
    });
    let node = text(pod, &["spec", "nodeName"]);
    if !node.is_empty() {
        endpoint["nodeName"] = json!(node);
    }
    if let Some(zone) = zones.get(node) {
        endpoint["zone"] = json!(zone);
    }
    let hostname = text(pod, &["spec", "hostname"]);
    if !hostname.is_empty() && text(pod, &["spec", "subdomain"]) == name_of(service) {
        endpoint["hostname"] = json!(hostname);
    }
    Endpoint(endpoint)
}
