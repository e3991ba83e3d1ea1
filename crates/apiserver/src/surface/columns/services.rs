//! Services, and the slices and endpoints behind them.

use serde_json::{Value, json};

use super::{AGE, Column, NAME, age, or_none, shortened, text_column, wide};
use crate::value::{at, list, name_of, number, text};

/// A list of addresses is cut off here, unless one asks for a wide table.
const WIDTH: usize = 16;
/// How many ports or endpoints are shown.
const SHOWN: usize = 3;

pub(super) fn columns() -> Vec<Column> {
    vec![
        NAME,
        text_column("Type"),
        text_column("Cluster-IP"),
        text_column("External-IP"),
        text_column("Port(s)"),
        AGE,
        wide("Selector"),
    ]
}

pub(super) fn cells(service: &Value) -> Vec<Value> {
    let cluster = match text(service, &["spec", "clusterIP"]) {
        "" => "<none>",
        address => address,
    };
    let selector = at(service, &["spec", "selector"]).as_object().into_iter().flatten();
    let mut selector: Vec<String> =
        selector.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or(""))).collect();
    selector.sort();
    vec![
        json!(name_of(service)),
        json!(text(service, &["spec", "type"])),
        json!(cluster),
        json!(outside(service)),
        json!(ports(service)),
        age(service),
        json!(or_none(&selector.join(","))),
    ]
}

fn outside(service: &Value) -> String {
    let given: Vec<&str> = list(service, &["spec", "externalIPs"]).iter().filter_map(Value::as_str).collect();
    match text(service, &["spec", "type"]) {
        "ExternalName" => or_none(text(service, &["spec", "externalName"])),
        "LoadBalancer" => {
            let ingress = list(service, &["status", "loadBalancer", "ingress"]).iter();
            let mut own: Vec<&str> = ingress
                .map(|it| match text(it, &["ip"]) {
                    "" => text(it, &["hostname"]),
                    ip => ip,
                })
                .collect();
            own.sort_unstable();
            own.dedup();
            let own = own.join(",");
            let own = if own.len() > WIDTH { format!("{}...", &own[..WIDTH - 3]) } else { own };
            match (own.is_empty(), given.is_empty()) {
                (true, true) => "<pending>".to_owned(),
                (true, false) => given.join(","),
                (false, true) => own,
                (false, false) => format!("{own},{}", given.join(",")),
            }
        }
        _ => or_none(&given.join(",")),
    }
}

fn ports(service: &Value) -> String {
    let ports = list(service, &["spec", "ports"]).iter().map(|port| {
        let (own, protocol) = (number(port, &["port"]).unwrap_or(0), text(port, &["protocol"]));
        match number(port, &["nodePort"]).unwrap_or(0) {
            0 => format!("{own}/{protocol}"),
            node => format!("{own}:{node}/{protocol}"),
        }
    });
    or_none(&ports.collect::<Vec<_>>().join(","))
}

pub(super) fn slice_columns() -> Vec<Column> {
    vec![NAME, text_column("AddressType"), text_column("Ports"), text_column("Endpoints"), AGE]
}

pub(super) fn slice_cells(slice: &Value) -> Vec<Value> {
    let ports: Vec<String> = list(slice, &["ports"])
        .iter()
        .map(|port| number(port, &["port"]).map_or_else(|| "*".to_owned(), |it| it.to_string()))
        .collect();
    let addresses = list(slice, &["endpoints"]).iter().flat_map(|it| list(it, &["addresses"]));
    let addresses: Vec<String> = addresses.filter_map(Value::as_str).map(ToOwned::to_owned).collect();
    vec![
        json!(name_of(slice)),
        json!(text(slice, &["addressType"])),
        json!(shortened(&ports, SHOWN)),
        json!(shortened(&addresses, SHOWN)),
        age(slice),
    ]
}

/// Addresses with ports, of endpoints as they were before slices.
pub(super) fn endpoints(object: &Value) -> String {
    let mut all = Vec::new();
    for subset in list(object, &["subsets"]) {
        let addresses = || list(subset, &["addresses"]).iter().map(|it| text(it, &["ip"]));
        if list(subset, &["ports"]).is_empty() {
            all.extend(addresses().map(ToOwned::to_owned));
        }
        for port in list(subset, &["ports"]) {
            let port = number(port, &["port"]).unwrap_or(0);
            all.extend(addresses().map(|address| format!("{address}:{port}")));
        }
    }
    if all.is_empty() { "<none>".to_owned() } else { shortened(&all, SHOWN) }
}
