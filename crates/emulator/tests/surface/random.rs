//! Whatever is sent: the answer is well formed, a refusal has changed nothing, and the cloud stays sound.
//!
//! Requests are made of valid ones: a path of the table with a few names, a body that would be right, and
//! then some damage to both. Some are pure noise.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};
use proptest::prelude::*;
use serde_json::{Value, json};
use sluice_cloud::{Config, Fault, State};
use sluice_emulator::surface::{Handled, served};

use crate::stage::*;

const NAMES: [&str; 3] = ["a", "B", "gw"];
const METHODS: [&str; 8] = ["GET", "PUT", "PATCH", "DELETE", "POST", "HEAD", "OPTIONS", "TRACE"];

#[derive(Clone, Debug)]
struct Throw {
    path: u8,
    method: u8,
    names: [u8; 3],
    /// How the path and the query are damaged; most numbers do nothing.
    odd_path: u8,
    body: u8,
    /// Which parts of the body are replaced, and with what.
    damage: Vec<(u16, u8)>,
    headers: u8,
    fault: u8,
    wait_ms: u16,
    noise: Vec<u8>,
}

fn throw() -> impl Strategy<Value = Throw> {
    let damage = prop_oneof![
        2 => Just(Vec::new()),
        1 => prop::collection::vec((any::<u16>(), any::<u8>()), 1..4),
    ];
    let noise = prop::collection::vec(any::<u8>(), 0..20);
    let small = any::<u8>();
    let first = (small, small, any::<[u8; 3]>(), small, small);
    (first, damage, small, small, 0u16..9_000, noise).prop_map(
        |((path, method, names, odd_path, body), damage, headers, fault, wait_ms, noise)| Throw {
            path,
            method,
            names,
            odd_path,
            body,
            damage,
            headers,
            fault,
            wait_ms,
            noise,
        },
    )
}

/// A body that would be right for this path.
fn fitting(stage: &Stage, path: &str, names: [&str; 3], body: u8) -> Value {
    let [name, other, third] = names;
    let flag = |bit: u8| body >> bit & 1 == 1;
    let balancer = stage.id(&format!("loadBalancers/{name}"));
    let mut fitting = if path.ends_with("/resourceGroups/{group}") {
        json!({ "location": "eastus" })
    } else if path.ends_with("/publicIPAddresses/{name}") {
        public_ip(if flag(0) { "IPv6" } else { "IPv4" })
    } else if path.ends_with("/loadBalancers/{name}") {
        let mut body = stage.load_balancer_body(name);
        body["properties"]["frontendIPConfigurations"][0]["properties"]["publicIPAddress"]["id"] =
            json!(stage.id(&format!("publicIPAddresses/{other}")));
        if flag(1) {
            body["properties"]["loadBalancingRules"] = json!([rule(&balancer, name, "Udp", 53, 53)]);
        }
        body
    } else if path.ends_with("/natGateways/{name}") {
        let mut body = stage.nat_gateway_body(name);
        let field = if flag(0) { "publicIpAddressesV6" } else { "publicIpAddresses" };
        body["properties"][field] = json!([{ "id": stage.id(&format!("publicIPAddresses/{other}")) }]);
        body
    } else if path.ends_with("/virtualNetworks/{name}") {
        network()
    } else if path.ends_with("/subnets/{child}") {
        let prefix = if flag(1) { "10.0.0.0/24" } else { "10.0.1.0/24" };
        json!({ "properties": { "addressPrefix": prefix, "serviceGateway": { "id": stage.id("serviceGateways/gw") } } })
    } else if path.ends_with("/serviceGateways/{name}") {
        gateway("vnet", if flag(0) { "pods" } else { third })
    } else if path.ends_with("/updateServices") {
        let entries = [stage.inbound(other), stage.outbound(third), unregister(name)];
        let action = if flag(4) { "FullUpdate" } else { "PartialUpdate" };
        json!({ "action": action, "serviceRequests": entries[usize::from(body % 3)..].to_vec() })
    } else if path.ends_with("/updateAddressLocations") {
        let services = [other];
        let entry = at("10.1.0.4", &[("10.2.0.4", &services), ("10.2.0.5", &[])]);
        let action = if flag(4) { "FullUpdate" } else { "PartialUpdate" };
        json!({ "action": action, "addressLocations": [entry, at("fd00::1", &[("fd01::1", &services)])] })
    } else {
        json!({ "location": "eastus" })
    };
    if flag(5) && fitting.get("location").is_some() {
        fitting["tags"] = json!({ "n": body.to_string() });
    }
    fitting
}

/// Replaces one value somewhere in a body.
fn damage(value: &mut Value, at: u16, with: u8) {
    fn count(value: &Value) -> u16 {
        match value {
            Value::Object(map) => 1 + map.values().map(count).sum::<u16>(),
            Value::Array(values) => 1 + values.iter().map(count).sum::<u16>(),
            _ => 1,
        }
    }
    fn strike(value: &mut Value, at: &mut u16, with: u8) {
        if *at == 0 {
            *value = match with % 16 {
                0 => Value::Null,
                1 => json!(true),
                2 => json!(-1),
                3 => json!(1e300),
                4 => json!(""),
                5 => json!("StandardV2"),
                6 => json!([]),
                7 => json!({}),
                8 => json!([value.clone(), value.clone()]),
                9 => json!({ "id": value.clone() }),
                10 => json!("/subscriptions/\u{202e}/x"),
                11 => json!("é".repeat(300)),
                12 => json!("10.0.0.0/33"),
                13 => json!("Dynamic"),
                14 => json!([1, [2, [3]]]),
                _ => json!(65_535),
            };
        }
        *at = at.wrapping_sub(1);
        match value {
            Value::Object(map) => map.values_mut().for_each(|value| strike(value, at, with)),
            Value::Array(values) => values.iter_mut().for_each(|value| strike(value, at, with)),
            _ => {}
        }
    }
    let mut at = at % count(value);
    strike(value, &mut at, with);
}

fn request(stage: &Stage, throw: &Throw, links: &[String]) -> Request<Bytes> {
    let name = |number: u8| NAMES[usize::from(number) % NAMES.len()];
    let names = throw.names.map(name);
    let is_read_only = |methods: &[&str]| methods == ["GET"];
    // Lists and polls cannot do much; they come less often.
    let mut routes: Vec<_> = served().filter(|(_, methods)| !is_read_only(methods)).collect();
    routes.extend(served().filter(|(_, methods)| throw.path < 64 && is_read_only(methods)));
    let (template, methods) = &routes[usize::from(throw.path) % routes.len()];
    let is_group = !template.contains("/providers/");
    let method = match throw.method {
        0..130 if methods.contains(&"PUT") => "PUT",
        // A group that is deleted takes all the rest of the story with it.
        131..240 if is_group => "GET",
        0..240 => methods[usize::from(throw.method) % methods.len()],
        other => METHODS[usize::from(other) % METHODS.len()],
    };
    let group = if throw.odd_path == 0 { "nope" } else { "rg" };
    let mut path = template
        .replace("{subscription}", SUBSCRIPTION)
        .replace("{group}", group)
        .replace("{region}", "eastus")
        .replace("{operation}", "7")
        .replace(
            "{name}",
            if template.contains("virtualNetworks") && throw.body < 200 {
                "vnet"
            } else {
                gateway_or(template, names[0], throw.body)
            },
        )
        .replace("{child}", if throw.body & 1 == 0 { "pods" } else { names[1] });
    match throw.odd_path {
        1 => path.push_str("/more"),
        2 => path = path.to_ascii_uppercase(),
        3 => path = path.replace("Microsoft.Network", "Microsoft.Compute"),
        4 => path = path.replace('/', "//"),
        5 => path.push_str("%00%ff"),
        6 => path.push_str("%2F..%2F"),
        7 => path = format!("/{}", noise(&throw.noise)),
        _ => {}
    }
    let version = match (throw.headers, is_group) {
        (0, _) => "",
        (1, _) => "?api-version=nonsense",
        (2, _) => "?api-version=2025-05-01&$skiptoken=bm9uc2Vuc2U",
        (3, _) => "?api-version=2026-03-01&$expand=all",
        (_, true) => "?api-version=2021-04-01",
        (number, _) if number % 2 == 0 => "?api-version=2025-05-01",
        _ => "?api-version=2026-03-01",
    };
    let mut uri = format!("{path}{version}");
    if throw.odd_path > 235 && !links.is_empty() {
        uri.clone_from(&links[usize::from(throw.body) % links.len()]);
    }
    let mut body = fitting(stage, template, names, throw.body);
    if method == "PATCH" {
        body = json!({ "tags": { "n": throw.body.to_string() } });
    }
    for &(at, with) in &throw.damage {
        damage(&mut body, at, with);
    }
    let bytes = match throw.headers {
        20..28 => throw.noise.clone(),
        28..32 => Vec::new(),
        _ => body.to_string().into_bytes(),
    };
    let uri = uri.parse().unwrap_or_else(|_| "/unparsable".parse().unwrap());
    let mut request = Request::new(Bytes::from(bytes));
    *request.method_mut() = Method::from_bytes(method.as_bytes()).unwrap();
    *request.uri_mut() = uri;
    if throw.headers != 32 {
        request.headers_mut().insert("content-type", "application/json".parse().unwrap());
    }
    if throw.headers > 245 {
        request.headers_mut().insert("if-match", "W/\"x\"".parse().unwrap());
    }
    request
}

/// The name of a resource; the two POSTs mostly go to the gateway that is there.
fn gateway_or<'a>(template: &str, name: &'a str, body: u8) -> &'a str {
    if template.contains("/update") && body < 230 { "gw" } else { name }
}

fn noise(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(b'!' + byte % 90)).filter(|c| *c != '?' && *c != '#').collect()
}

fn fault(number: u8) -> Option<Fault> {
    Some(match number {
        0 => Fault::NotSent,
        1 => Fault::LostUnapplied,
        2 => Fault::AppliedButLost,
        3 => Fault::AnsweredButNotApplied,
        4 => Fault::OperationNeverEnds,
        5 => Fault::OperationFails { code: "InternalServerError".into() },
        6 => Fault::OperationCanceled,
        7 => Fault::ProvisioningFails,
        8 => Fault::LaggingReads { duration: Duration::from_secs(5) },
        9 => Fault::ShortPage { items: 1 },
        10 => Fault::FailPage,
        11 => Fault::SlowBy(3),
        12 => Fault::UnknownEnum,
        13 => Fault::ErrorIn200,
        14 => Fault::AnsweredAtOnce,
        15 => Fault::Refuse { status: 500, code: "X".into(), message: "Y".into(), retry_after: None },
        _ => return None,
    })
}

/// What must be true of every answer.
fn check_answer(request: &Request<Bytes>, handled: &Handled) -> Result<(), TestCaseError> {
    let Some(answer) = &handled.answer else { return Ok(()) };
    let status = answer.status().as_u16();
    for name in ["x-ms-request-id", "x-ms-correlation-request-id", "cache-control"] {
        prop_assert!(answer.headers().contains_key(name), "{name} is missing");
    }
    if request.method() == Method::HEAD {
        prop_assert!(answer.body().is_empty());
        return Ok(());
    }
    if status < 400 {
        prop_assert!(matches!(status, 200..=202 | 204), "{status}");
        if !answer.body().is_empty() {
            prop_assert!(serde_json::from_slice::<Value>(answer.body()).is_ok());
        }
        return Ok(());
    }
    let body: Value = serde_json::from_slice(answer.body()).expect("a refusal is JSON");
    for field in ["code", "message"] {
        let text = body["error"][field].as_str().unwrap_or("");
        prop_assert!(!text.is_empty(), "no {field} in {body}");
    }
    prop_assert!(!handled.is_write, "a refused request is no write");
    Ok(())
}

/// What must be true of the cloud whatever has happened.
fn check_state(state: &State) -> Result<(), TestCaseError> {
    for (by, target) in state.references() {
        let is_there = state.public_ips.contains_key(&target)
            || state.load_balancers.contains_key(&target)
            || state.nat_gateways.contains_key(&target)
            || state.gateways.contains_key(&target)
            || state.subnets.contains_key(&target)
            || state.virtual_networks.contains_key(&target)
            || target.parent("loadBalancers").is_some_and(|it| state.load_balancers.contains_key(&it));
        prop_assert!(is_there, "{by} refers to {target}, which is not there");
    }
    let addresses: Vec<_> = state.public_ips.values().filter_map(|it| it.address).collect();
    let distinct: BTreeSet<_> = addresses.iter().collect();
    prop_assert_eq!(addresses.len(), distinct.len(), "an address was issued twice");
    for ip in state.public_ips.values() {
        let Some(user) = &ip.used_by else { continue };
        let carrier = user.parent("loadBalancers").unwrap_or_else(|| user.clone());
        let is_used =
            state.load_balancers.get(&carrier).is_some_and(|it| it.public_ip.as_ref() == Some(&ip.meta.id))
                || state.nat_gateways.get(&carrier).is_some_and(|it| {
                    it.public_ips.contains(&ip.meta.id) || it.public_ips_v6.contains(&ip.meta.id)
                });
        prop_assert!(is_used, "{} says that {user} uses it, which it does not", ip.meta.id);
    }
    Ok(())
}

/// Everything that is there can be listed and read, and a list shows the same as a read.
fn check_shown(stage: &mut Stage) -> Result<(), TestCaseError> {
    stage.wait(60);
    for kind in ["publicIPAddresses", "loadBalancers", "natGateways", "serviceGateways", "virtualNetworks"] {
        let list = stage.get(kind);
        if list.refusal() == (404, "ResourceGroupNotFound") {
            continue;
        }
        prop_assert_eq!(list.status, 200);
        for item in list.body["value"].as_array().unwrap() {
            let id = item["id"].as_str().unwrap().to_owned();
            let read = stage.get_path(&format!("{id}?api-version={OLD}"));
            prop_assert_eq!(read.status, 200, "{}", id);
            prop_assert_eq!(&read.body, item);
            prop_assert_eq!(read.header("etag"), item["etag"].as_str());
        }
    }
    Ok(())
}

/// A stage with one of each kind.
fn stage(config: Config) -> Stage {
    let mut stage = Stage::with(config);
    stage.load_balancer("a");
    stage.nat_gateway("B");
    stage.public_ip("a");
    stage
}

/// Everything in the group, as it is shown.
fn shown(stage: &mut Stage) -> Vec<Value> {
    let kinds =
        ["publicIPAddresses", "loadBalancers", "natGateways", "serviceGateways", "virtualNetworks", ""];
    let contents = ["serviceGateways/gw/services", "serviceGateways/gw/addressLocations"];
    kinds.iter().chain(&contents).map(|tail| stage.get(tail).body).collect()
}

proptest! {
#![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

#[test]
fn whatever_is_sent_the_answer_is_well_formed_and_a_refusal_changes_nothing(
    throws in prop::collection::vec(throw(), 1..60),
) {
    let mut stage = stage(Config { page_size: 3, ..Config::default() });
    let mut links: Vec<String> = Vec::new();
    for throw in throws {
        let request = request(&stage, &throw, &links);
        stage.now = stage.now + Duration::from_millis(throw.wait_ms.into());
        // Lets everything that is due happen first, so that what changes is the request's doing.
        stage.get_path("/nowhere");
        let before = stage.surface.cloud().state().clone();
        let handled = stage.handle(&request, fault(throw.fault).as_ref());
        check_answer(&request, &handled)?;
        check_state(stage.surface.cloud().state())?;
        let after = stage.surface.cloud().state();
        if let Some(answer) = &handled.answer {
            if answer.status().as_u16() >= 400 || request.method() == Method::GET {
                prop_assert_eq!(after, &before, "{:?} was answered {:?}", request, answer);
            }
            for name in ["azure-asyncoperation", "location"] {
                if let Some(url) = answer.headers().get(name) {
                    let url = url.to_str().unwrap().strip_prefix(ORIGIN);
                    links.push(url.expect("links lead to where the client came from").to_owned());
                }
            }
        }
    }
    stage.surface.cloud_mut().calm();
    stage.surface.cloud_mut().set_buckets(None);
    check_shown(&mut stage)?;
}}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    /// The state file has the writes and nothing else.
    #[test]
    fn the_writes_alone_give_the_same_cloud_again(throws in prop::collection::vec(throw(), 1..60)) {
        let config = Config { buckets: None, ..Config::default() };
        let mut first = stage(config.clone());
        let mut journal = Vec::new();
        for throw in throws {
            let request = request(&first, &throw, &[]);
            first.now = first.now + Duration::from_millis(throw.wait_ms.into());
            let fault = fault(throw.fault);
            if first.handle(&request, fault.as_ref()).is_write {
                journal.push((first.now, request, fault));
            }
        }
        let mut second = stage(config);
        for (now, request, fault) in journal {
            second.now = now;
            prop_assert!(second.handle(&request, fault.as_ref()).is_write);
        }
        second.now = first.now;
        prop_assert_eq!(shown(&mut first), shown(&mut second));
        prop_assert_eq!(first.surface.cloud().state(), second.surface.cloud().state());
    }
}
