//! Services: defaults, the addresses and ports that the server gives out, and what may not be.
//!
//! The real server gives out addresses first and checks afterwards; so do we, and nothing is booked
//! before the write is done. One family only: IPv4.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

use serde_json::{Value, json};

use super::metadata::labels;
use super::words::{label_1123, port_name, port_number, qualified_name, subdomain_1123};
use crate::refusal::Cause;
use crate::value::{at, default_to, is_empty, list, number, object, remove, set_or_remove, text};

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

fn kind_of(service: &Value) -> &str {
    text(service, &["spec", "type"])
}

fn needs_cluster_ip(service: &Value) -> bool {
    matches!(kind_of(service), "ClusterIP" | "NodePort" | "LoadBalancer")
}

fn needs_node_ports(service: &Value) -> bool {
    match kind_of(service) {
        "NodePort" => true,
        "LoadBalancer" => at(service, &["spec", "allocateLoadBalancerNodePorts"]) != &json!(false),
        _ => false,
    }
}

fn needs_health_port(service: &Value) -> bool {
    kind_of(service) == "LoadBalancer" && text(service, &["spec", "externalTrafficPolicy"]) == "Local"
}

fn is_reached_from_outside(service: &Value) -> bool {
    match kind_of(service) {
        "NodePort" | "LoadBalancer" => true,
        "ClusterIP" => !list(service, &["spec", "externalIPs"]).is_empty(),
        _ => false,
    }
}

/// What the writer left out.
pub(super) fn default(service: &mut Value) {
    let spec = object(service, "spec");
    default_to(spec, "sessionAffinity", "None");
    default_to(spec, "type", "ClusterIP");
    match text(spec, &["sessionAffinity"]) {
        "None" => {
            remove(spec, "sessionAffinityConfig");
        }
        "ClientIP" if number(spec, &["sessionAffinityConfig", "clientIP", "timeoutSeconds"]).is_none() => {
            spec["sessionAffinityConfig"] = json!({"clientIP": {"timeoutSeconds": 10_800}});
        }
        _ => {}
    }
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        default_to(port, "protocol", "TCP");
        let target = at(port, &["targetPort"]);
        if is_empty(target) || *target == json!(0) {
            let own = port.get("port").cloned().unwrap_or(json!(0));
            port["targetPort"] = own;
        }
        if number(port, &["nodePort"]) == Some(0) {
            remove(port, "nodePort");
        }
    }
    for empty in ["clusterIP", "ports", "clusterIPs", "selector", "externalIPs", "loadBalancerSourceRanges"] {
        if spec.get(empty).is_some_and(is_empty) {
            remove(spec, empty);
        }
    }
    if number(spec, &["healthCheckNodePort"]) == Some(0) {
        remove(spec, "healthCheckNodePort");
    }
    if kind_of(service) == "LoadBalancer" {
        default_to(object(service, "spec"), "allocateLoadBalancerNodePorts", true);
    }
    if is_reached_from_outside(service) {
        default_to(object(service, "spec"), "externalTrafficPolicy", "Cluster");
    }
    if needs_cluster_ip(service) {
        default_to(object(service, "spec"), "internalTrafficPolicy", "Cluster");
    }
    let balancer = object(object(service, "status"), "loadBalancer");
    for ingress in balancer.get_mut("ingress").and_then(Value::as_array_mut).into_iter().flatten() {
        if !text(ingress, &["ip"]).is_empty() {
            default_to(ingress, "ipMode", "VIP");
        }
    }
}

/// What was given out stays as long as the type has a use for it, and goes with the type.
pub(crate) fn carry_over(old: &Value, new: &mut Value) {
    let had = at(old, &["spec"]);
    if kind_of(old) == "LoadBalancer" && kind_of(new) != "LoadBalancer" {
        object(new, "status")["loadBalancer"] = json!({});
    }
    let same = |new: &Value, field: &str| at(new, &["spec", field]) == at(had, &[field]);
    if needs_cluster_ip(old) && needs_cluster_ip(new) {
        let cleared_both = is_empty(at(new, &["spec", "clusterIP"]));
        let spec = object(new, "spec");
        if cleared_both {
            set_or_remove(spec, "clusterIP", had.get("clusterIP").cloned());
        }
        if text(spec, &["clusterIP"]) == text(had, &["clusterIP"]) {
            if is_empty(at(spec, &["clusterIPs"])) {
                set_or_remove(spec, "clusterIPs", had.get("clusterIPs").cloned());
            }
        } else if at(spec, &["clusterIPs"]) == at(had, &["clusterIPs"]) {
            spec["clusterIPs"] = json!([spec["clusterIP"]]);
        }
        for field in ["ipFamilies", "ipFamilyPolicy"] {
            if is_empty(at(spec, &[field])) {
                set_or_remove(spec, field, had.get(field).cloned());
            }
        }
    }
    if needs_node_ports(old) && needs_node_ports(new) {
        let before = list(old, &["spec", "ports"]);
        for port in ports_mut(new) {
            if number(port, &["nodePort"]).is_none() {
                let twin =
                    before.iter().find(|it| it["port"] == port["port"] && it["protocol"] == port["protocol"]);
                set_or_remove(port, "nodePort", twin.and_then(|it| it.get("nodePort").cloned()));
            }
        }
    }
    if needs_health_port(old) && needs_health_port(new) {
        let spec = object(new, "spec");
        if spec.get("healthCheckNodePort").is_none() {
            set_or_remove(spec, "healthCheckNodePort", had.get("healthCheckNodePort").cloned());
        }
    }
    drop_with_the_type(old, new, same);
}

fn drop_with_the_type(old: &Value, new: &mut Value, same: impl Fn(&Value, &str) -> bool) {
    let mut dropped = Vec::new();
    if needs_cluster_ip(old) && !needs_cluster_ip(new) {
        dropped.extend(["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"]);
    }
    if needs_health_port(old) && !needs_health_port(new) {
        dropped.push("healthCheckNodePort");
    }
    if kind_of(old) == "LoadBalancer" && kind_of(new) != "LoadBalancer" {
        dropped.extend(["allocateLoadBalancerNodePorts", "loadBalancerClass"]);
    }
    if is_reached_from_outside(old) && !is_reached_from_outside(new) {
        dropped.push("externalTrafficPolicy");
    }
    dropped.retain(|field| same(new, field));
    let had: Vec<Option<i64>> =
        list(old, &["spec", "ports"]).iter().map(|port| number(port, &["nodePort"])).collect();
    let has: Vec<Option<i64>> =
        list(new, &["spec", "ports"]).iter().map(|port| number(port, &["nodePort"])).collect();
    if needs_node_ports(old) && !needs_node_ports(new) && kind_of(new) != "LoadBalancer" && had == has {
        for port in ports_mut(new) {
            remove(port, "nodePort");
        }
    }
    let spec = object(new, "spec");
    for field in dropped {
        remove(spec, field);
    }
}

fn ports_mut(service: &mut Value) -> impl Iterator<Item = &mut Value> {
    object(service, "spec").get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten()
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

/// Everything that is wrong with a service.
pub(super) fn check(service: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut causes = Vec::new();
    let spec = at(service, &["spec"]);
    let is_headless = text(spec, &["clusterIP"]) == "None";
    match kind_of(service) {
        "LoadBalancer" | "NodePort" if is_headless => {
            let why = format!("may not be set to 'None' for {} services", kind_of(service));
            causes.push(Cause::invalid("spec.clusterIPs[0]", &json!("None"), &why));
        }
        "ExternalName" => external_name(spec, &mut causes),
        _ => {}
    }
    if list(spec, &["ports"]).is_empty() && !is_headless && kind_of(service) != "ExternalName" {
        causes.push(Cause::required("spec.ports", ""));
    }
    ports(spec, &mut causes);
    labels("spec.selector", at(spec, &["selector"]), &mut causes);
    one_of(spec, "sessionAffinity", &["ClientIP", "None"], &mut causes);
    for (index, ip) in list(spec, &["externalIPs"]).iter().enumerate() {
        let field = format!("spec.externalIPs[{index}]");
        match ip.as_str().unwrap_or("").parse::<IpAddr>() {
            Err(_) => {
                let why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
                causes.push(Cause::invalid(field, ip, why));
            }
            Ok(it) if it.is_loopback() => {
                let why = "may not be in the loopback range (127.0.0.0/8, ::1/128)";
                causes.push(Cause::invalid(field, ip, why));
            }
            Ok(_) => {}
        }
    }
    one_of(spec, "type", &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"], &mut causes);
    load_balancer(service, &mut causes);
    policies(service, &mut causes);
    if let Some(old) = old {
        unchangeable(service, old, &mut causes);
    }
    causes
}

fn external_name(spec: &Value, causes: &mut Vec<Cause>) {
    let name = text(spec, &["externalName"]);
    if name.is_empty() {
        causes.push(Cause::required("spec.externalName", ""));
    } else {
        let problems = subdomain_1123(name.trim_end_matches('.'));
        causes.extend(problems.iter().map(|why| Cause::invalid("spec.externalName", &json!(name), why)));
    }
    if !is_empty(at(spec, &["clusterIPs"])) || !is_empty(at(spec, &["clusterIP"])) {
        causes.push(Cause::forbidden("spec.clusterIPs", "may not be set when `type` is 'ExternalName'"));
    }
}

fn ports(spec: &Value, causes: &mut Vec<Cause>) {
    let ports = list(spec, &["ports"]);
    let mut names: BTreeSet<&str> = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let field = |name: &str| format!("spec.ports[{index}].{name}");
        let name = text(port, &["name"]);
        if name.is_empty() {
            if ports.len() > 1 {
                causes.push(Cause::required(field("name"), ""));
            }
        } else {
            let problems = label_1123(name);
            causes.extend(problems.iter().map(|why| Cause::invalid(field("name"), &json!(name), why)));
            if problems.is_empty() && !names.insert(name) {
                causes.push(Cause::duplicate(field("name"), &json!(name)));
            }
        }
        let own = number(port, &["port"]).unwrap_or(0);
        if let Some(why) = port_number(own) {
            causes.push(Cause::invalid(field("port"), &json!(own), why));
        }
        let protocol = at(port, &["protocol"]);
        if !["SCTP", "TCP", "UDP"].contains(&protocol.as_str().unwrap_or("")) {
            causes.push(Cause::unsupported(field("protocol"), protocol, &["SCTP", "TCP", "UDP"]));
        }
        match at(port, &["targetPort"]) {
            Value::String(target) => {
                let problems = port_name(target);
                causes.extend(
                    problems.iter().map(|why| Cause::invalid(field("targetPort"), &json!(target), why)),
                );
            }
            target => {
                if let Some(why) = port_number(target.as_i64().unwrap_or(0)) {
                    causes.push(Cause::invalid(field("targetPort"), target, why));
                }
            }
        }
        let app = text(port, &["appProtocol"]);
        if !app.is_empty() {
            let problems = qualified_name(app);
            causes.extend(problems.iter().map(|why| Cause::invalid(field("appProtocol"), &json!(app), why)));
        }
        if text(spec, &["type"]) == "ClusterIP" && number(port, &["nodePort"]).is_some() {
            causes.push(Cause::forbidden(field("nodePort"), "may not be used when `type` is 'ClusterIP'"));
        }
    }
    for (index, port) in ports.iter().enumerate() {
        let twin =
            ports[..index].iter().any(|it| it["port"] == port["port"] && it["protocol"] == port["protocol"]);
        if twin {
            let shown = json!({"Name": "", "Protocol": port["protocol"], "AppProtocol": null,
                "Port": port["port"], "TargetPort": 0, "NodePort": 0});
            causes.push(Cause::duplicate(format!("spec.ports[{index}]"), &shown));
        }
        let node_port = number(port, &["nodePort"]);
        let shared = ports[..index].iter().any(|it| {
            node_port.is_some()
                && number(it, &["nodePort"]) == node_port
                && it["protocol"] == port["protocol"]
        });
        if shared {
            causes.push(Cause::duplicate(format!("spec.ports[{index}].nodePort"), &json!(node_port)));
        }
    }
}

fn one_of(spec: &Value, field: &str, supported: &[&str], causes: &mut Vec<Cause>) {
    let value = at(spec, &[field]);
    if value.as_str().is_some_and(|it| !supported.contains(&it)) {
        causes.push(Cause::unsupported(format!("spec.{field}"), value, supported));
    }
}

fn load_balancer(service: &Value, causes: &mut Vec<Cause>) {
    let spec = at(service, &["spec"]);
    let is_one = kind_of(service) == "LoadBalancer";
    let only = "may only be used when `type` is 'LoadBalancer'";
    let ranges = list(spec, &["loadBalancerSourceRanges"]);
    if !ranges.is_empty() && !is_one {
        causes.push(Cause::forbidden("spec.LoadBalancerSourceRanges", only));
    }
    for (index, range) in ranges.iter().enumerate() {
        if !is_cidr(range.as_str().unwrap_or("").trim()) {
            let why = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
            causes.push(Cause::invalid(format!("spec.LoadBalancerSourceRanges[{index}]"), range, why));
        }
    }
    if spec.get("allocateLoadBalancerNodePorts").is_some() && !is_one {
        causes.push(Cause::forbidden("spec.allocateLoadBalancerNodePorts", only));
    }
    if let Some(class) = spec.get("loadBalancerClass") {
        if is_one {
            let problems = qualified_name(class.as_str().unwrap_or(""));
            causes.extend(problems.iter().map(|why| Cause::invalid("spec.loadBalancerClass", class, why)));
        } else {
            causes.push(Cause::forbidden("spec.loadBalancerClass", only));
        }
    }
}

fn is_cidr(text: &str) -> bool {
    let Some((ip, bits)) = text.split_once('/') else { return false };
    let most = match ip.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    bits.parse::<u8>().is_ok_and(|bits| bits <= most)
}

fn policies(service: &Value, causes: &mut Vec<Cause>) {
    let spec = at(service, &["spec"]);
    if let Some(policy) = spec.get("externalTrafficPolicy") {
        if is_reached_from_outside(service) {
            one_of(spec, "externalTrafficPolicy", &["Cluster", "Local"], causes);
        } else {
            let why = "may only be set for externally-accessible services";
            causes.push(Cause::invalid("spec.externalTrafficPolicy", policy, why));
        }
    }
    if let Some(port) = spec.get("healthCheckNodePort").filter(|_| !needs_health_port(service)) {
        let why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
        causes.push(Cause::invalid("spec.healthCheckNodePort", port, why));
    }
    one_of(spec, "internalTrafficPolicy", &["Cluster", "Local"], causes);
}

fn unchangeable(service: &Value, old: &Value, causes: &mut Vec<Cause>) {
    let (has, had) = (at(service, &["spec"]), at(old, &["spec"]));
    let changed = |field: &str| at(has, &[field]) != at(had, &[field]);
    if needs_cluster_ip(old) && needs_cluster_ip(service) && changed("clusterIPs") {
        causes.push(Cause::invalid(
            "spec.clusterIPs[0]",
            at(has, &["clusterIPs"]),
            "may not change once set",
        ));
    }
    if kind_of(old) == "LoadBalancer" && kind_of(service) == "LoadBalancer" && changed("loadBalancerClass") {
        let value = at(has, &["loadBalancerClass"]);
        causes.push(Cause::invalid("spec.loadBalancerClass", value, "may not change once set"));
    }
    if needs_health_port(old) && needs_health_port(service) && changed("healthCheckNodePort") {
        let why = "field is immutable";
        causes.push(Cause::invalid("spec.healthCheckNodePort", at(has, &["healthCheckNodePort"]), why));
    }
}

#[cfg(test)]
mod tests;
