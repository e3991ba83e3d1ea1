//! Cluster IPs and ports of nodes: which are given out, and giving them out.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use serde_json::{Value, json};

use super::{kind_of, needs_cluster_ip, needs_health_port, needs_node_ports, ports_mut};
use crate::refusal::Cause;
use crate::value::{at, default_to, is_empty, list, number, object, text};

/// Cluster IPs are 10.96.0.0/16.
const NETWORK: [u8; 2] = [10, 96];
/// The range of node ports.
const NODE_PORTS: std::ops::RangeInclusive<i64> = 30_000..=32_767;
const NOT_IN_RANGE: &str = "provided port is not in the valid range. The range of valid ports is 30000-32767";

/// Which cluster IPs and node ports are given out.
#[derive(Debug, Default)]
pub(crate) struct Addresses {
    ips: BTreeSet<Ipv4Addr>,
    /// By port, how many services and protocols share it.
    ports: BTreeMap<i64, usize>,
}

impl Addresses {
    /// Writes down what a service had and has.
    pub(crate) fn book(&mut self, before: Option<&Value>, after: Option<&Value>) {
        if let Some(service) = before {
            cluster_ips(service).for_each(|ip| {
                self.ips.remove(&ip);
            });
            for port in node_ports(service) {
                if let Some(count) = self.ports.get_mut(&port) {
                    *count -= 1;
                    if *count == 0 {
                        self.ports.remove(&port);
                    }
                }
            }
        }
        if let Some(service) = after {
            self.ips.extend(cluster_ips(service));
            for port in node_ports(service) {
                *self.ports.entry(port).or_default() += 1;
            }
        }
    }

    fn free_ip(&self) -> Option<Ipv4Addr> {
        let begin = random();
        let all = (0..=u16::MAX).map(|step| begin.wrapping_add(step));
        let hosts = all.filter(|host| (10..=65_534).contains(host));
        hosts.map(ip_of_host).find(|ip| !self.ips.contains(ip))
    }

    fn free_port(&self, taken_now: &BTreeSet<i64>) -> Option<i64> {
        let count = NODE_PORTS.end() - NODE_PORTS.start() + 1;
        let begin = i64::from(random());
        (0..count)
            .map(|step| NODE_PORTS.start() + (begin + step) % count)
            .find(|port| !self.ports.contains_key(port) && !taken_now.contains(port))
    }
}

fn random() -> u16 {
    let bytes = uuid::Uuid::new_v4().into_bytes();
    u16::from_be_bytes([bytes[0], bytes[1]])
}

fn ip_of_host(host: u16) -> Ipv4Addr {
    let [high, low] = host.to_be_bytes();
    Ipv4Addr::new(NETWORK[0], NETWORK[1], high, low)
}

fn cluster_ips(service: &Value) -> impl Iterator<Item = Ipv4Addr> {
    list(service, &["spec", "clusterIPs"]).iter().filter_map(|ip| ip.as_str()?.parse().ok())
}

fn node_ports(service: &Value) -> Vec<i64> {
    let ports = list(service, &["spec", "ports"]).iter().filter_map(|port| number(port, &["nodePort"]));
    let health = number(service, &["spec", "healthCheckNodePort"]);
    ports.chain(health).filter(|port| *port != 0).collect()
}

/// Gives out what is needed and not there yet. Nothing is booked.
pub(crate) fn allocate(
    addresses: &mut Addresses,
    service: &mut Value,
    old: Option<&Value>,
) -> Result<(), Vec<Cause>> {
    if needs_cluster_ip(service) {
        families(service)?;
        cluster_ip(addresses, service, old)?;
    }
    let had: BTreeSet<i64> = old.map(node_ports).into_iter().flatten().collect();
    let mut taken = BTreeSet::new();
    for (index, port) in list(service, &["spec", "ports"]).iter().enumerate() {
        let Some(asked) = number(port, &["nodePort"]) else { continue };
        let field = format!("spec.ports[{index}].nodePort");
        if matches!(kind_of(service), "NodePort" | "LoadBalancer") && !had.contains(&asked) {
            check_node_port(addresses, &field, asked)?;
        }
        taken.insert(asked);
    }
    if needs_node_ports(service) {
        let mut full = false;
        for port in ports_mut(service) {
            if number(port, &["nodePort"]).is_none() {
                match addresses.free_port(&taken) {
                    Some(free) => {
                        taken.insert(free);
                        port["nodePort"] = json!(free);
                    }
                    None => full = true,
                }
            }
        }
        if full {
            return Err(vec![Cause::invalid(
                "spec.ports",
                &json!(""),
                "failed to allocate a nodePort: range is full",
            )]);
        }
    }
    if needs_health_port(service) {
        match number(service, &["spec", "healthCheckNodePort"]) {
            Some(asked) if !had.contains(&asked) => {
                check_node_port(addresses, "spec.healthCheckNodePort", asked)?;
            }
            Some(_) => {}
            None => {
                if let Some(free) = addresses.free_port(&taken) {
                    object(service, "spec")["healthCheckNodePort"] = json!(free);
                }
            }
        }
    }
    Ok(())
}

fn check_node_port(addresses: &Addresses, field: &str, asked: i64) -> Result<(), Vec<Cause>> {
    let why = if !NODE_PORTS.contains(&asked) {
        NOT_IN_RANGE
    } else if addresses.ports.contains_key(&asked) {
        "provided port is already allocated"
    } else {
        return Ok(());
    };
    Err(vec![Cause::invalid(field, &json!(asked), why)])
}

fn families(service: &mut Value) -> Result<(), Vec<Cause>> {
    let spec = object(service, "spec");
    if text(spec, &["ipFamilyPolicy"]) == "RequireDualStack" {
        let why = "this cluster is not configured for dual-stack services";
        return Err(vec![Cause::invalid("spec.ipFamilyPolicy", &json!("RequireDualStack"), why)]);
    }
    for (index, family) in list(spec, &["ipFamilies"]).iter().enumerate() {
        if family != "IPv4" {
            let field = format!("spec.ipFamilies[{index}]");
            return Err(vec![Cause::invalid(field, family, "not configured on this cluster")]);
        }
    }
    default_to(spec, "ipFamilyPolicy", "SingleStack");
    if is_empty(at(spec, &["ipFamilies"])) {
        spec["ipFamilies"] = json!(["IPv4"]);
    }
    Ok(())
}

fn cluster_ip(addresses: &Addresses, service: &mut Value, old: Option<&Value>) -> Result<(), Vec<Cause>> {
    let spec = object(service, "spec");
    if is_empty(at(spec, &["clusterIPs"])) && !text(spec, &["clusterIP"]).is_empty() {
        spec["clusterIPs"] = json!([spec["clusterIP"]]);
    }
    let first = list(spec, &["clusterIPs"]).first().cloned().unwrap_or_default();
    if is_empty(&first) {
        let Some(free) = addresses.free_ip() else {
            let why = "failed to allocate an IP: range is full";
            return Err(vec![Cause::invalid("spec.clusterIPs", &json!([]), why)]);
        };
        spec["clusterIP"] = json!(free.to_string());
        spec["clusterIPs"] = json!([free.to_string()]);
        return Ok(());
    }
    if text(spec, &["clusterIP"]).is_empty() || text(spec, &["clusterIP"]) != first {
        let why = "first value must match `clusterIP`";
        return Err(vec![Cause::invalid("spec.clusterIPs", &spec["clusterIPs"], why)]);
    }
    let had = old.is_some_and(|old| list(old, &["spec", "clusterIPs"]).first() == Some(&first));
    if first == "None" || had {
        return Ok(());
    }
    let wanted = first.as_str().unwrap_or("");
    let Ok(ip) = wanted.parse::<Ipv4Addr>() else {
        let why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
        return Err(vec![Cause::invalid("spec.clusterIPs[0]", &first, why)]);
    };
    // A change is refused by the check that follows, which says why.
    if old.is_some_and(needs_cluster_ip) {
        return Ok(());
    }
    let problem = if ip.octets()[..2] != NETWORK {
        "the provided network does not match the current range"
    } else if addresses.ips.contains(&ip) {
        "provided IP is already allocated"
    } else {
        return Ok(());
    };
    let why = format!("failed to allocate IP {ip}: {problem}");
    Err(vec![Cause::invalid("spec.clusterIPs", &spec["clusterIPs"], &why)])
}
