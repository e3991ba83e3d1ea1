//! Whether Azure is as it should be, and whether nothing forbidden was done on the way there.
//!
//! Everything is read from the emulator: its state document and its request log. What is wanted is
//! kept by the story itself, in the simplest form, and compared by other code than the engine's.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use sluice_bench::ledger::Entry;
use sluice_bench::request_log::RequestLog;
use sluice_model::Time;
use sluice_model::call::Method;
use sluice_model::names::{CLUSTER_TAG, Scope};

/// What there should be.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) services: BTreeMap<String, WantedService>,
    /// Pods by name: egress, node and address.
    pub(crate) pods: BTreeMap<String, (String, IpAddr, IpAddr)>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct WantedService {
    uid: String,
    ports: BTreeSet<u16>,
    /// Node and pod address.
    endpoints: BTreeSet<(IpAddr, IpAddr)>,
}

impl Wanted {
    pub(crate) fn service(&mut self, name: &str, uid: &str, ports: BTreeSet<u16>) {
        let service = self.services.entry(name.into()).or_default();
        service.uid = uid.into();
        service.ports = ports;
    }

    pub(crate) fn endpoints(&mut self, name: &str, endpoints: BTreeSet<(IpAddr, IpAddr)>) {
        self.services.entry(name.into()).or_default().endpoints = endpoints;
    }

    fn egresses(&self) -> BTreeSet<&str> {
        self.pods.values().map(|(egress, _, _)| egress.as_str()).collect()
    }

    /// Every address at its node, with the identities that it belongs to.
    fn addresses(&self) -> BTreeMap<(IpAddr, IpAddr), BTreeSet<String>> {
        let mut addresses: BTreeMap<(IpAddr, IpAddr), BTreeSet<String>> = BTreeMap::new();
        for service in self.services.values() {
            for place in &service.endpoints {
                addresses.entry(*place).or_default().insert(service.uid.clone());
            }
        }
        for (egress, node, pod) in self.pods.values() {
            addresses.entry((*node, *pod)).or_default().insert(egress.clone());
        }
        addresses
    }
}

/// Resources of others that are there from the beginning: id and body. Some have names like ours.
pub(crate) fn strangers(scope: &Scope) -> Vec<(String, Value)> {
    let look_alike = "0f0f0f0f-0000-4000-8000-000000000001";
    let id = |kind: &str, name: &str| scope.resource(kind, name).to_string();
    let public_ip = |tags: Value| {
        json!({
            "location": "eastus",
            "sku": {"name": "StandardV2"},
            "tags": tags,
            "properties": {"publicIPAllocationMethod": "Static", "publicIPAddressVersion": "IPv4"},
        })
    };
    let theirs = json!({"team": "somebody else"});
    let look_alike_ip = id("publicIPAddresses", &format!("{look_alike}-pip"));
    let production_ip = id("publicIPAddresses", "production");
    let load_balancer = json!({
        "location": "eastus",
        "sku": {"name": "Service"},
        "tags": theirs,
        "properties": {
            "scope": "Public",
            "frontendIPConfigurations": [
                {"name": "frontend", "properties": {"publicIPAddress": {"id": look_alike_ip}}},
            ],
            "backendAddressPools": [{"name": look_alike}],
        },
    });
    let another_cluster = json!({CLUSTER_TAG: "another-cluster"});
    vec![
        (production_ip.clone(), public_ip(theirs.clone())),
        (look_alike_ip.clone(), public_ip(theirs)),
        (id("publicIPAddresses", "purple-pip-v6"), public_ip(another_cluster)),
        (id("loadBalancers", look_alike), load_balancer),
        (id("natGateways", "legacy"), nat_gateway(&[&production_ip])),
    ]
}

/// Somebody else's NAT gateway.
pub(crate) fn nat_gateway(public_ips: &[&str]) -> Value {
    json!({
        "location": "eastus",
        "sku": {"name": "StandardV2"},
        "tags": {"team": "somebody else"},
        "properties": {"publicIpAddresses": public_ips.iter().map(|id| json!({"id": id})).collect::<Value>()},
    })
}

const KINDS: [&str; 3] = ["publicIPAddresses", "loadBalancers", "natGateways"];

fn items<'a>(state: &'a Value, kind: &str) -> impl Iterator<Item = &'a Value> {
    state.get(kind).and_then(Value::as_array).into_iter().flatten()
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn name_of(id: &str) -> &str {
    id.rsplit('/').next().unwrap_or_default()
}

fn is_ours(item: &Value, scope: &Scope) -> bool {
    text(item, &format!("/tags/{CLUSTER_TAG}")) == &*scope.cluster_id
}

/// Everything that is not ours, exactly as it is.
pub(crate) fn foreign(state: &Value, scope: &Scope) -> Value {
    let of = |kind: &str| -> Value { items(state, kind).filter(|it| !is_ours(it, scope)).cloned().collect() };
    KINDS.iter().map(|kind| ((*kind).to_owned(), of(kind))).collect::<serde_json::Map<_, _>>().into()
}

/// Everything that is not as it should be, in words.
pub(crate) fn differences(
    state: &Value,
    scope: &Scope,
    wanted: &Wanted,
    strangers: &Value,
    published: &BTreeMap<String, Vec<IpAddr>>,
) -> Vec<String> {
    let mut differences = Vec::new();
    let mut check = |what: &str, is: String, should: String| {
        if is != should {
            differences.push(format!("{what}:\n  is     {is}\n  should {should}"));
        }
    };
    let names = |kind: &str| {
        let ours = items(state, kind).filter(|it| is_ours(it, scope)).map(|it| name_of(text(it, "/id")));
        ours.map(str::to_ascii_lowercase).collect::<BTreeSet<String>>()
    };
    let identities: BTreeSet<String> = wanted
        .services
        .values()
        .map(|service| service.uid.clone())
        .chain(wanted.egresses().into_iter().map(str::to_owned))
        .collect();
    let public_ips: BTreeSet<String> = identities.iter().map(|it| format!("{it}-pip")).collect();
    let uids: BTreeSet<String> = wanted.services.values().map(|service| service.uid.clone()).collect();
    let egresses: BTreeSet<String> = wanted.egresses().into_iter().map(str::to_owned).collect();
    check("public IPs of ours", format!("{:?}", names("publicIPAddresses")), format!("{public_ips:?}"));
    check("load balancers of ours", format!("{:?}", names("loadBalancers")), format!("{uids:?}"));
    check("NAT gateways of ours", format!("{:?}", names("natGateways")), format!("{egresses:?}"));
    check("what is not ours", foreign(state, scope).to_string(), strangers.to_string());

    for item in KINDS.iter().flat_map(|kind| items(state, kind)).filter(|it| is_ours(it, scope)) {
        check(text(item, "/id"), text(item, "/provisioningState").into(), "Succeeded".into());
    }
    for service in wanted.services.values() {
        let id = scope.resource("loadBalancers", &service.uid).to_string();
        let found = items(state, "loadBalancers").find(|it| text(it, "/id").eq_ignore_ascii_case(&id));
        let Some(found) = found else { continue };
        let rules: BTreeSet<(u64, u64)> = items(found, "rules")
            .filter(|rule| text(rule, "/protocol") == "Tcp")
            .map(|rule| {
                let port = |field: &str| rule.get(field).and_then(Value::as_u64).unwrap_or(0);
                (port("frontendPort"), port("backendPort"))
            })
            .collect();
        let should: BTreeSet<(u64, u64)> =
            service.ports.iter().map(|port| (u64::from(*port), u64::from(*port) + 8_000)).collect();
        check(&format!("rules of {}", service.uid), format!("{rules:?}"), format!("{should:?}"));
        let own_ip = scope.resource("publicIPAddresses", &format!("{}-pip", service.uid)).to_string();
        let used = text(found, "/publicIPAddress");
        check("public IP of its frontend", used.to_lowercase(), own_ip.to_lowercase());
        let ip = items(state, "publicIPAddresses").find(|it| text(it, "/id").eq_ignore_ascii_case(&own_ip));
        let address = ip.map_or("", |it| text(it, "/ipAddress")).to_owned();
        let shown = published.get(&service.uid).map(|ips| format!("{ips:?}")).unwrap_or_default();
        check(&format!("published IP of {}", service.uid), shown, format!("[{address}]"));
    }

    let gateways: Vec<&Value> = items(state, "serviceGateways").collect();
    check("gateways", gateways.len().to_string(), "1".into());
    let Some(gateway) = gateways.first() else { return differences };
    let registered: BTreeMap<String, String> = items(gateway, "services")
        .map(|service| {
            let pool = text(service, "/loadBalancerBackendPools/0");
            let carrier = format!("{pool}{}", text(service, "/publicNatGatewayId"));
            (text(service, "/name").to_ascii_lowercase(), carrier.to_ascii_lowercase())
        })
        .collect();
    let should: BTreeMap<String, String> = uids
        .iter()
        .map(|uid| {
            let pool = scope.resource("loadBalancers", uid).child("backendAddressPools", uid);
            (uid.clone(), pool.to_string().to_ascii_lowercase())
        })
        .chain(egresses.iter().map(|egress| {
            (egress.clone(), scope.resource("natGateways", egress).to_string().to_ascii_lowercase())
        }))
        .collect();
    check("registrations", format!("{registered:#?}"), format!("{should:#?}"));
    let mapped = mapped_addresses(gateway);
    check("addresses", format!("{mapped:#?}"), format!("{:#?}", wanted.addresses()));
    for subnet in items(state, "subnets") {
        check("gateway of the subnet", text(subnet, "/serviceGateway").into(), text(gateway, "/id").into());
    }
    differences
}

/// Every address of a gateway at its node, with the identities that it belongs to.
fn mapped_addresses(gateway: &Value) -> BTreeMap<(IpAddr, IpAddr), BTreeSet<String>> {
    let locations = items(gateway, "addressLocations").flat_map(|location| {
        let node = text(location, "/addressLocation").parse::<IpAddr>();
        items(location, "addresses").filter_map(move |entry| {
            let services = items(entry, "services").filter_map(Value::as_str).map(str::to_ascii_lowercase);
            let address = text(entry, "/address").parse().ok()?;
            Some(((node.clone().ok()?, address), services.collect()))
        })
    });
    locations.collect()
}

/// All addresses are where they should be, but for those that are refused: these are nowhere.
pub(crate) fn all_but(state: &Value, wanted: &Wanted, refused: &[IpAddr]) -> anyhow::Result<()> {
    let mut should = wanted.addresses();
    let all = should.len();
    should.retain(|(_, address), _| !refused.contains(address));
    ensure!(should.len() + refused.len() == all, "the refused addresses {refused:?} are not all wanted");
    let is: BTreeMap<_, _> = items(state, "serviceGateways").flat_map(mapped_addresses).collect();
    ensure!(is == should, "addresses are not as they should be:\n  is     {is:?}\n  should {should:?}");
    Ok(())
}

/// What was too large is not sent again as it was.
pub(crate) fn sent_in_parts(log: &RequestLog) -> anyhow::Result<()> {
    for (method, parts) in
        [(Method::UpdateLocations, addresses_in as fn(&Entry) -> _), (Method::UpdateServices, names_in)]
    {
        let calls: Vec<&Entry> = log.calls.iter().filter(|entry| entry.method == method).collect();
        let mut had_parts = false;
        for (place, refused) in calls.iter().enumerate().filter(|(_, entry)| entry.status == 413) {
            let whole: BTreeSet<String> = parts(refused);
            if whole.len() < 2 {
                continue;
            }
            had_parts = true;
            let again =
                calls.iter().skip(place + 1).map(|entry| parts(entry)).find(|it| !it.is_disjoint(&whole));
            ensure!(
                again.as_ref().is_some_and(|again| again.len() < whole.len()),
                "{} was too large with {whole:?}; then came {again:?}",
                refused.word()
            );
        }
        ensure!(had_parts, "no {method:?} with more than one part was too large, so the story tells nothing");
    }
    Ok(())
}

fn addresses_in(entry: &Entry) -> BTreeSet<String> {
    let locations = items(&entry.body, "addressLocations");
    let address = |location: &Value, it: &Value| {
        format!("{} at {}", text(it, "/address"), text(location, "/addressLocation"))
    };
    locations.flat_map(|location| items(location, "addresses").map(move |it| address(location, it))).collect()
}

fn names_in(entry: &Entry) -> BTreeSet<String> {
    entry.services.iter().map(|(name, _)| name.clone()).collect()
}

/// A load balancer whose PUT never ends is looked at again when it has taken long enough.
pub(crate) fn given_up(log: &RequestLog) -> anyhow::Result<()> {
    let limit = sluice_updater::Config::default().resource_operation_limit;
    let is_endless =
        |entry: &&Entry| entry.fault.as_deref() == Some("neverEnds") && entry.kind == "loadBalancers";
    let endless = log.calls.iter().find(is_endless).context("no load balancer's PUT was endless")?;
    let looks =
        log.calls.iter().filter(|entry| entry.method != Method::Poll && entry.target == endless.target);
    ensure!(
        looks.clone().any(|look| look.at >= endless.at + limit),
        "{} never ended, and after {} s nobody looked at it",
        endless.target,
        limit.as_secs()
    );
    let early: Vec<&Entry> =
        looks.filter(|look| look.at > endless.at && look.at < endless.at + limit).collect();
    ensure!(early.is_empty(), "{} was not over, and given up already: {early:?}", endless.target);
    Ok(())
}

/// Operations take some fifty times as long as they would.
pub(crate) fn is_slow(log: &RequestLog) -> anyhow::Result<()> {
    let puts = log.calls.iter().filter(|entry| entry.method == Method::Put && entry.kind == "loadBalancers");
    let spans: Vec<Duration> =
        puts.filter_map(|entry| entry.operation.as_ref().map(|(_, ends)| ends.since(entry.at))).collect();
    let is_long = |span: &Duration| *span >= Duration::from_secs(100);
    ensure!(
        !spans.is_empty() && spans.iter().all(is_long),
        "no slow operations, so the story tells nothing: {spans:?}"
    );
    Ok(())
}

/// What must never be in the log.
pub(crate) fn log(log: &RequestLog, scope: &Scope, others_meddle: bool) -> anyhow::Result<()> {
    ensure!(log.early == 0, "calls came before a Retry-After was over: {:#?}", log.early_calls);
    let theirs: BTreeSet<String> =
        strangers(scope).into_iter().map(|(id, _)| id.to_ascii_lowercase()).collect();
    for entry in log.calls.iter().filter(|entry| entry.is_write()) {
        let target = entry.target.to_ascii_lowercase();
        ensure!(!theirs.contains(&target), "{} of somebody else's {}", entry.word(), entry.target);
        // What broke off on its way has no body, and nothing came of it.
        let broke_off = entry.body.is_null() && !(200..300).contains(&entry.status);
        if matches!(entry.method, Method::UpdateServices | Method::UpdateLocations) && !broke_off {
            let action = text(&entry.body, "/action");
            ensure!(action == "PartialUpdate", "{} with the action {action:?}", entry.word());
        }
    }
    if !others_meddle {
        drained_before_deleted(&log.calls)?;
    }
    Ok(())
}

/// How often each kind of write was sent, and what came of it.
pub(crate) fn writes_by_kind(log: &RequestLog) -> String {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for entry in log.calls.iter().filter(|entry| entry.is_write()) {
        let code = entry.code.as_deref().unwrap_or_default();
        *counts.entry(format!("{} → {} {code}", entry.word(), entry.status)).or_default() += 1;
    }
    counts.iter().map(|(what, count)| format!("{count} {what}")).collect::<Vec<_>>().join("\n")
}

/// What is known of one address at one node.
enum Mapping {
    /// The last update that took place, and what was there before it.
    Is { services: BTreeSet<String>, since: Time, before: BTreeSet<String> },
    /// An update that may or may not have taken place.
    Unclear,
}

/// No load balancer or NAT gateway is deleted, no registration cleared or deleted, while an address
/// is certainly mapped to it; and no carrier is deleted before its registration was cleared.
fn drained_before_deleted(calls: &[Entry]) -> anyhow::Result<()> {
    let mut mappings: BTreeMap<(String, String), Mapping> = BTreeMap::new();
    let mut registered: BTreeMap<String, (bool, Time)> = BTreeMap::new();
    for entry in calls {
        let accepted = (200..300).contains(&entry.status);
        match entry.method {
            Method::UpdateLocations if accepted || entry.status == 0 => note_mappings(entry, &mut mappings),
            Method::UpdateServices => {
                for request in items(&entry.body, "serviceRequests") {
                    let name = text(request, "/service/name").to_ascii_lowercase();
                    let is_delete = request.get("isDelete").and_then(Value::as_bool) == Some(true);
                    let pool = text(request, "/service/properties/loadBalancerBackendPools/0/id");
                    let nat = text(request, "/service/properties/publicNatGatewayId");
                    let clears = is_delete || (pool.is_empty() && nat.is_empty());
                    if clears {
                        let holding = mapped(&mappings, &name, entry.at);
                        ensure!(
                            holding.is_empty(),
                            "{name} is cleared or unregistered at {} while mapped: {holding:?}",
                            entry.at
                        );
                    }
                    if accepted && entry.fault.is_none() {
                        let ends = entry.operation.as_ref().map_or(entry.answered, |(_, ends)| *ends);
                        registered.insert(name, (!clears, ends));
                    } else {
                        registered.remove(&name);
                    }
                }
            }
            Method::Delete if matches!(entry.kind.as_str(), "loadBalancers" | "natGateways") => {
                let name = entry.name().to_ascii_lowercase();
                let holding = mapped(&mappings, &name, entry.at);
                ensure!(holding.is_empty(), "{name} is deleted at {} while mapped: {holding:?}", entry.at);
                if let Some((is_registered, since)) = registered.get(&name) {
                    ensure!(
                        !is_registered && *since <= entry.at,
                        "{name} is deleted at {} before its registration was cleared",
                        entry.at
                    );
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn note_mappings(entry: &Entry, mappings: &mut BTreeMap<(String, String), Mapping>) {
    let since = entry.operation.as_ref().map_or(entry.answered, |(_, ends)| *ends);
    let is_clear = entry.status != 0 && entry.fault.is_none();
    for location in items(&entry.body, "addressLocations") {
        let node = text(location, "/addressLocation").to_owned();
        let mut updates: BTreeMap<String, BTreeSet<String>> = items(location, "addresses")
            .map(|it| {
                let services = items(it, "services").filter_map(Value::as_str).map(str::to_ascii_lowercase);
                (text(it, "/address").to_owned(), services.collect())
            })
            .collect();
        if text(location, "/addressUpdateAction") == "FullUpdate" || updates.is_empty() {
            // Whatever is not in it goes.
            for (_, address) in mappings.keys().filter(|(at, _)| *at == node) {
                updates.entry(address.clone()).or_default();
            }
        }
        for (address, services) in updates {
            let key = (node.clone(), address);
            let before = match mappings.get(&key) {
                Some(Mapping::Is { services, .. }) => services.clone(),
                _ => BTreeSet::new(),
            };
            let mapping = if is_clear { Mapping::Is { services, since, before } } else { Mapping::Unclear };
            mappings.insert(key, mapping);
        }
    }
}

/// The addresses that are certainly mapped to a service at a moment.
fn mapped(mappings: &BTreeMap<(String, String), Mapping>, service: &str, at: Time) -> Vec<(String, String)> {
    let holds = |mapping: &Mapping| match mapping {
        Mapping::Is { services, since, before } => {
            services.contains(service) || (*since > at && before.contains(service))
        }
        Mapping::Unclear => false,
    };
    mappings.iter().filter(|(_, mapping)| holds(mapping)).map(|(key, _)| key.clone()).collect()
}
