//! Any request, any resource, any JSON: what the properties are tried with.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use sluice_model::address::Family;
use sluice_model::azure::*;
use sluice_model::call::*;
use sluice_model::kube::Protocol;

use crate::support::*;

pub(crate) fn name() -> impl Strategy<Value = String> {
    "[a-z0-9]([a-zA-Z0-9._-]{0,12}[a-z0-9_])?"
}

pub(crate) fn an_id(kind: &'static str) -> impl Strategy<Value = ArmId> {
    name().prop_map(move |name| id(&format!("{kind}/{name}")))
}

pub(crate) fn some_tags() -> impl Strategy<Value = Tags> {
    let pairs = prop::collection::btree_map("\\PC{1,8}", "\\PC{0,8}", 0..4);
    pairs.prop_map(|pairs| pairs.into_iter().map(|(key, value)| (key.into(), value.into())).collect())
}

/// A pod or node as the engine knows it: canonical.
pub(crate) fn address() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        any::<u32>().prop_map(|bits| IpAddr::V4(Ipv4Addr::from(bits))),
        any::<u128>().prop_map(|bits| IpAddr::V6(Ipv6Addr::from(bits)).to_canonical()),
    ]
}

pub(crate) fn state() -> impl Strategy<Value = (&'static str, Provisioning)> {
    prop::sample::select(vec![
        ("Succeeded", Provisioning::Succeeded),
        ("Updating", Provisioning::Updating),
        ("Deleting", Provisioning::Deleting),
        ("Failed", Provisioning::Failed),
        ("Thinking", Provisioning::Unknown),
    ])
}

pub(crate) fn rules() -> impl Strategy<Value = Vec<Rule>> {
    let protocol = prop::sample::select(vec![Protocol::Tcp, Protocol::Udp]);
    let rule = (protocol, 1..=65_534u16, 1..=65_535u16, 4..=30u8).prop_map(
        |(protocol, frontend_port, backend_port, idle_timeout_minutes)| Rule {
            protocol,
            frontend_port,
            backend_port,
            idle_timeout_minutes,
        },
    );
    prop::collection::vec(rule, 0..5)
}

/// A PUT of every kind of resource that we make.
pub(crate) fn any_put() -> impl Strategy<Value = Request> {
    let put = |target, body| Request::with(Method::Put, target, body);
    let family = prop::sample::select(Family::ALL.to_vec());
    let public_ip = (an_id("publicIPAddresses"), family, some_tags())
        .prop_map(move |(id, family, tags)| put(id, Body::PublicIp(PublicIpBody { family, tags })));
    let load_balancer = (an_id("loadBalancers"), an_id("publicIPAddresses"), rules(), some_tags()).prop_map(
        move |(id, public_ip, rules, tags)| {
            put(id, Body::LoadBalancer(LoadBalancerBody { public_ip, rules, tags }))
        },
    );
    let ips = || prop::collection::vec(an_id("publicIPAddresses"), 0..3);
    let gateway = prop::option::of(an_id("serviceGateways"));
    let nat_gateway = (an_id("natGateways"), gateway, ips(), ips(), some_tags()).prop_map(
        move |(id, gateway, public_ips, public_ips_v6, tags)| {
            put(id, Body::NatGateway(NatGatewayBody { gateway, public_ips, public_ips_v6, tags }))
        },
    );
    let gateway = (
        an_id("serviceGateways"),
        an_id("virtualNetworks"),
        an_id("virtualNetworks/v/subnets"),
        prop::option::of(any::<u32>()),
        prop::option::of(any::<u128>()),
        some_tags(),
    )
        .prop_map(move |(id, virtual_network, route_target_subnet, v4, v6, tags)| {
            let body = GatewayBody {
                virtual_network,
                route_target_subnet,
                route_target_address: v4.map(Ipv4Addr::from),
                route_target_address_v6: v6.map(Ipv6Addr::from),
                tags,
            };
            put(id, Body::Gateway(body))
        });
    prop_oneof![public_ip, load_balancer, nat_gateway, gateway]
}

pub(crate) fn registrations() -> impl Strategy<Value = Vec<Registration>> {
    let direction =
        prop::sample::select(vec![Direction::Inbound, Direction::Outbound, Direction::InboundOutbound]);
    let pools = prop::collection::vec(an_id("loadBalancers/l/backendAddressPools"), 0..3);
    let nat_gateway = prop::option::of(an_id("natGateways"));
    let registration = (name(), direction, any::<bool>(), pools, nat_gateway).prop_map(
        |(name, direction, is_default, pools, nat_gateway)| Registration {
            name: name.into(),
            direction,
            is_default,
            pools,
            nat_gateway,
        },
    );
    prop::collection::vec(registration, 0..4)
}

pub(crate) fn locations() -> impl Strategy<Value = Vec<Location>> {
    let services = prop::collection::vec(name(), 0..3);
    let update = (address(), services).prop_map(|(address, services)| AddressUpdate {
        address,
        services: services.into_iter().map(Into::into).collect(),
    });
    let location = (address(), prop::collection::vec(update, 0..4))
        .prop_map(|(location, addresses)| Location { location, addresses });
    prop::collection::vec(location, 0..4)
}

/// Any JSON, with a liking for the words that matter here.
pub(crate) fn any_json() -> impl Strategy<Value = Value> {
    let word = prop_oneof![
        "\\PC{0,6}".prop_map(Value::from),
        prop::sample::select(vec!["Succeeded", "Failed", "10.0.0.1", "IPv6", "Tcp", "Inbound", NETWORK])
            .prop_map(Value::from),
        Just(json!(format!("{NETWORK}/publicIPAddresses/web-pip"))),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word,
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        let key = prop_oneof![
            prop::sample::select(KEYS.to_vec()).prop_map(str::to_owned),
            "\\PC{0,4}".prop_map(|key| key),
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(key, inner, 0..6)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

pub(crate) const KEYS: &[&str] = &[
    "id",
    "name",
    "etag",
    "tags",
    "properties",
    "value",
    "nextLink",
    "error",
    "code",
    "message",
    "details",
    "status",
    "provisioningState",
    "ipAddress",
    "publicIpAddresses",
    "serviceGateway",
    "backendAddressPools",
    "loadBalancingRules",
    "frontendIPConfigurations",
    "frontendIPConfiguration",
    "backendAddressPool",
    "enableFloatingIP",
    "enableTcpReset",
    "routeTargetAddress",
    "serviceType",
    "isDefault",
    "loadBalancerBackendPools",
    "publicNatGatewayId",
    "addressLocation",
    "addresses",
    "address",
    "services",
];

/// Every way to ask.
pub(crate) fn any_request() -> impl Strategy<Value = Request> {
    prop::sample::select(vec![
        get("publicIPAddresses/web-pip"),
        get("loadBalancers/web"),
        get("natGateways/blue"),
        get("serviceGateways/gw"),
        get("virtualNetworks/v"),
        get("virtualNetworks/v/subnets/s"),
        get("disks/d"),
        Request::bare(Method::Get, group()),
        list("publicIPAddresses"),
        list("loadBalancers"),
        list("natGateways"),
        list("serviceGateways"),
        list("virtualNetworks"),
        list("virtualNetworks/v/subnets"),
        list("serviceGateways/gw/services"),
        list("serviceGateways/gw/addressLocations"),
        put(),
        Request::bare(Method::PatchTags, id("natGateways/blue")),
        delete(),
        post(),
        Request::bare(Method::UpdateLocations, id("serviceGateways/gw")),
        poll(OPERATION),
        poll(RESULT),
    ])
}

/// Parts of URLs, honest ones and others.
pub(crate) const PARTS: &[&str] = &[
    "https://",
    "http://",
    "HTTPS://",
    "https:",
    "//",
    "/",
    "\\",
    "management.azure.com",
    "MANAGEMENT.azure.com",
    "evil.example",
    "@",
    ":",
    ":443",
    ":80",
    ".",
    "?",
    "#",
    "%2e",
    "%2f",
    "\t",
    "\n",
    " ",
    "[",
    "]",
    "[::1]",
    "user",
    "subscriptions",
    "..",
    "é",
    "\u{3002}",
    "x=y",
    "&",
    "-",
    "_",
];
