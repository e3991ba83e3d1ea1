//! Requests as they leave.

use serde_json::json;
use sluice_model::address::Family;
use sluice_model::azure::*;
use sluice_model::call::*;
use sluice_model::kube::Protocol;

use crate::support::*;

const UID: &str = "0a1b2c3d-0000-4000-8000-00000000000f";

fn rule(protocol: Protocol, frontend_port: u16) -> Rule {
    Rule { protocol, frontend_port, backend_port: 8080, idle_timeout_minutes: 4 }
}

fn load_balancer(rules: Vec<Rule>) -> Request {
    let body = LoadBalancerBody {
        public_ip: id(&format!("publicIPAddresses/{UID}-pip")),
        rules,
        tags: tags(&[("sluice-cluster", "c")]),
    };
    Request::with(Method::Put, id(&format!("loadBalancers/{UID}")), Body::LoadBalancer(body))
}

#[test]
fn every_method_has_its_verb_and_url() {
    let gateway = format!("{ENDPOINT}{NETWORK}/serviceGateways/gw");
    let locations =
        Request::with(Method::UpdateLocations, id("serviceGateways/gw"), Body::Locations(Vec::new()));
    let patch = Request::with(Method::PatchTags, id("serviceGateways/gw"), Body::Tags(Tags::new()));
    for (request, method, url) in [
        (get("serviceGateways/gw"), "GET", gateway.clone()),
        (list("serviceGateways/gw/services"), "GET", format!("{gateway}/services")),
        (list("serviceGateways/gw/addressLocations"), "GET", format!("{gateway}/addressLocations")),
        (delete(), "DELETE", format!("{ENDPOINT}{NETWORK}/publicIPAddresses/web-pip")),
        (put(), "PUT", format!("{ENDPOINT}{NETWORK}/publicIPAddresses/web-pip")),
        (patch, "PATCH", gateway.clone()),
        (post(), "POST", format!("{gateway}/updateServices")),
        (locations, "POST", format!("{gateway}/updateAddressLocations")),
    ] {
        let written = written(&request);
        assert_eq!((written.method, written.url), (method, format!("{url}?api-version=2025-05-01")));
    }
}

#[test]
fn groups_have_an_api_version_of_their_own() {
    let read = written(&Request::bare(Method::Get, group()));
    assert_eq!(read.url, format!("{ENDPOINT}/subscriptions/s/resourceGroups/rg?api-version=2021-04-01"));
    assert_eq!(read.body, None);
    let made = Request::with(Method::Put, group(), Body::Container);
    assert_eq!(body(&made), json!({"location": "eastus"}));
}

#[test]
fn a_network_is_wide_enough_for_any_subnet() {
    let made = Request::with(Method::Put, id("virtualNetworks/vnet"), Body::Container);
    let space = json!({"addressSpace": {"addressPrefixes": ["10.0.0.0/8"]}});
    assert_eq!(body(&made), json!({"location": "eastus", "properties": space}));
}

#[test]
fn polls_and_pages_go_where_azure_said_to_the_letter() {
    assert_eq!(written(&poll(OPERATION)).url, OPERATION);
    let next = format!("{ENDPOINT}/somewhere/else?$skiptoken=a%2Fb|c&api-version=2024-01-01");
    let page = Request { page: Some(PageToken(next.as_str().into())), ..list("loadBalancers") };
    assert_eq!(written(&page).url, next);
    assert_eq!(written(&poll("/subscriptions/s/x?y=z")).url, format!("{ENDPOINT}/subscriptions/s/x?y=z"));
}

#[test]
fn polls_and_pages_elsewhere_are_not_followed() {
    let elsewhere = "https://management.azure.com.evil.example/x?sig=secret";
    let page = Request { page: Some(PageToken(elsewhere.into())), ..list("loadBalancers") };
    for request in [poll(elsewhere), page, poll(&OPERATION.replace("https", "http"))] {
        let why = unwritable(&request);
        assert!(why.contains("token must not be sent"), "{why}");
        assert!(!why.contains("secret"), "{why}");
    }
    assert!(unwritable(&poll(elsewhere)).contains("management.azure.com.evil.example"));
}

#[test]
fn a_public_ip_says_all_that_it_should_be() {
    for (family, version) in [(Family::V4, "IPv4"), (Family::V6, "IPv6")] {
        let it = PublicIpBody { family, tags: tags(&[("sluice-owner", "service/shop/web")]) };
        assert_eq!(
            body(&Request::with(Method::Put, id("publicIPAddresses/a-pip"), Body::PublicIp(it))),
            json!({
                "location": "eastus",
                "sku": {"name": "StandardV2"},
                "properties": {"publicIPAllocationMethod": "Static", "publicIPAddressVersion": version},
                "tags": {"sluice-owner": "service/shop/web"},
            })
        );
    }
}

#[test]
fn a_load_balancer_has_one_frontend_one_pool_of_its_name_and_named_rules() {
    let lb = format!("{NETWORK}/loadBalancers/{UID}");
    let frontend = json!({"id": format!("{lb}/frontendIPConfigurations/frontend")});
    let pool = json!({"id": format!("{lb}/backendAddressPools/{UID}")});
    let udp = Rule { idle_timeout_minutes: 30, ..rule(Protocol::Udp, 53) };
    assert_eq!(
        body(&load_balancer(vec![rule(Protocol::Tcp, 80), udp])),
        json!({
            "location": "eastus",
            "sku": {"name": "Service"},
            "properties": {
                "scope": "Public",
                "frontendIPConfigurations": [{
                    "name": "frontend",
                    "properties": {"publicIPAddress": {"id": format!("{NETWORK}/publicIPAddresses/{UID}-pip")}},
                }],
                "backendAddressPools": [{"name": UID, "properties": {}}],
                "loadBalancingRules": [
                    {"name": "rule-tcp-80", "properties": {
                        "protocol": "Tcp", "frontendPort": 80, "backendPort": 8080, "enableFloatingIP": false,
                        "idleTimeoutInMinutes": 4, "enableTcpReset": true,
                        "frontendIPConfiguration": frontend, "backendAddressPool": pool,
                    }},
                    {"name": "rule-udp-53", "properties": {
                        "protocol": "Udp", "frontendPort": 53, "backendPort": 8080, "enableFloatingIP": false,
                        "idleTimeoutInMinutes": 30,
                        "frontendIPConfiguration": frontend, "backendAddressPool": pool,
                    }},
                ],
            },
            "tags": {"sluice-cluster": "c"},
        })
    );
    assert_eq!(body(&load_balancer(Vec::new()))["properties"]["loadBalancingRules"], json!([]));
}

#[test]
fn a_rule_that_no_load_balancer_carries_does_not_leave() {
    assert!(unwritable(&load_balancer(vec![rule(Protocol::Sctp, 7)])).contains("SCTP"));
}

#[test]
fn a_nat_gateway_is_taken_off_by_null_and_empty_lists() {
    let mut it = NatGatewayBody {
        gateway: Some(id("serviceGateways/gw")),
        public_ips: vec![id("publicIPAddresses/blue-pip")],
        public_ips_v6: vec![id("publicIPAddresses/blue-pip-v6")],
        tags: Tags::new(),
    };
    let put = |it: &NatGatewayBody| {
        body(&Request::with(Method::Put, id("natGateways/blue"), Body::NatGateway(it.clone())))
    };
    assert_eq!(
        put(&it),
        json!({
            "location": "eastus",
            "sku": {"name": "StandardV2"},
            "properties": {
                "serviceGateway": {"id": format!("{NETWORK}/serviceGateways/gw")},
                "publicIpAddresses": [{"id": format!("{NETWORK}/publicIPAddresses/blue-pip")}],
                "publicIpAddressesV6": [{"id": format!("{NETWORK}/publicIPAddresses/blue-pip-v6")}],
            },
            "tags": {},
        })
    );
    (it.gateway, it.public_ips, it.public_ips_v6) = (None, Vec::new(), Vec::new());
    assert_eq!(
        put(&it)["properties"],
        json!({"serviceGateway": null, "publicIpAddresses": [], "publicIpAddressesV6": []})
    );
}

#[test]
fn a_gateway_asks_for_an_address_or_lets_azure_choose() {
    let subnet = format!("{NETWORK}/virtualNetworks/vnet/subnets/pods");
    let vnet = json!({"id": format!("{NETWORK}/virtualNetworks/vnet")});
    let put = |v4: Option<&str>, v6: Option<&str>| {
        let it = GatewayBody {
            virtual_network: id("virtualNetworks/vnet"),
            route_target_subnet: id("virtualNetworks/vnet/subnets/pods"),
            route_target_address: v4.map(|address| address.parse().unwrap()),
            route_target_address_v6: v6.map(|address| address.parse().unwrap()),
            tags: Tags::new(),
        };
        body(&Request::with(Method::Put, id("serviceGateways/gw"), Body::Gateway(it)))
    };
    let fixed = json!({
        "privateIPAddress": "10.0.0.4", "privateIPAllocationMethod": "Static", "subnet": {"id": subnet},
    });
    assert_eq!(
        put(Some("10.0.0.4"), None),
        json!({
            "location": "eastus",
            "sku": {"name": "Standard", "tier": "Regional"},
            "properties": {"virtualNetwork": vnet, "routeTargetAddress": fixed},
            "tags": {},
        })
    );
    let chosen = json!({"privateIPAllocationMethod": "Dynamic", "subnet": {"id": subnet}});
    assert_eq!(put(None, None)["properties"], json!({"virtualNetwork": vnet, "routeTargetAddress": chosen}));
    let v6 = &put(None, Some("fd00:0:0::4"))["properties"];
    assert_eq!(v6["routeTargetAddressV6"]["privateIPAddress"], "fd00::4");
    assert_eq!(v6.get("routeTargetAddress"), None, "one family was asked for");
    let both = &put(Some("10.0.0.4"), Some("fd00::4"))["properties"];
    assert_eq!(both["routeTargetAddress"], fixed);
    assert_eq!(both["routeTargetAddressV6"]["privateIPAddress"], "fd00::4");
    assert_eq!(both["routeTargetAddressV6"]["subnet"], json!({"id": subnet}));
}

#[test]
fn a_subnet_goes_back_as_it_came_with_its_etag() {
    let rest = r#"{"name":"pods","properties":{"addressPrefix":"10.0.0.0/16","delegations":[]}}"#;
    let it = SubnetBody { gateway: Some(id("serviceGateways/gw")), rest: rest.into() };
    let target = id("virtualNetworks/vnet/subnets/pods");
    let put = Request {
        if_match: Some(ETag("W/\"1\"".into())),
        ..Request::with(Method::Put, target.clone(), Body::Subnet(it))
    };
    assert_eq!(written(&put).if_match.as_deref(), Some("W/\"1\""));
    let gateway = json!({"id": format!("{NETWORK}/serviceGateways/gw")});
    let properties = json!({"addressPrefix": "10.0.0.0/16", "delegations": [], "serviceGateway": gateway});
    assert_eq!(body(&put), json!({"name": "pods", "properties": properties}));
    let odd = Body::Subnet(SubnetBody { gateway: None, rest: "10.0.0.0/16".into() });
    assert!(unwritable(&Request::with(Method::Put, target, odd)).contains("subnet"));
}

#[test]
fn an_etag_that_would_begin_a_new_header_does_not_leave() {
    for etag in ["", "a\r\nAuthorization: x", "ä"] {
        let request = Request { if_match: Some(ETag(etag.into())), ..put() };
        assert!(unwritable(&request).contains("etag"), "{etag}");
    }
}

#[test]
fn tags_are_patched_and_nothing_else() {
    let patch = Request::with(
        Method::PatchTags,
        id("publicIPAddresses/web-pip"),
        Body::Tags(tags(&[("key", "value")])),
    );
    assert_eq!(body(&patch), json!({"tags": {"key": "value"}}));
}

#[test]
fn registrations_clear_by_empty_lists_and_null_and_deletions_say_only_the_name() {
    let pool = id(&format!("loadBalancers/{UID}/backendAddressPools/{UID}"));
    let inbound = Registration {
        name: UID.into(),
        direction: Direction::Inbound,
        is_default: false,
        pools: vec![pool.clone()],
        nat_gateway: None,
    };
    let outbound = Registration {
        name: "blue".into(),
        direction: Direction::Outbound,
        is_default: true,
        pools: Vec::new(),
        nat_gateway: Some(id("natGateways/blue")),
    };
    let cleared = Registration { nat_gateway: None, is_default: false, ..outbound.clone() };
    let write = |service: &Registration| ServiceRequest { is_delete: false, service: service.clone() };
    let requests = vec![
        write(&inbound),
        write(&outbound),
        write(&cleared),
        ServiceRequest { is_delete: true, service: inbound },
    ];
    let vnet = json!({"virtualNetwork": {"id": format!("{NETWORK}/virtualNetworks/vnet")}});
    let request = Request::with(Method::UpdateServices, id("serviceGateways/gw"), Body::Services(requests));
    assert_eq!(
        body(&request),
        json!({"action": "PartialUpdate", "serviceRequests": [
            {"isDelete": false, "service": {"name": UID, "properties": {
                "serviceType": "Inbound", "isDefault": false,
                "loadBalancerBackendPools": [{"id": pool.as_str(), "name": UID, "properties": vnet}],
                "publicNatGatewayId": null,
            }}},
            {"isDelete": false, "service": {"name": "blue", "properties": {
                "serviceType": "Outbound", "isDefault": true, "loadBalancerBackendPools": [],
                "publicNatGatewayId": format!("{NETWORK}/natGateways/blue"),
            }}},
            {"isDelete": false, "service": {"name": "blue", "properties": {
                "serviceType": "Outbound", "isDefault": false, "loadBalancerBackendPools": [],
                "publicNatGatewayId": null,
            }}},
            {"isDelete": true, "service": {"name": UID}},
        ]})
    );
}

#[test]
fn locations_have_canonical_addresses_and_lists_that_are_never_left_out() {
    let updates = vec![
        LocationUpdate {
            location: "10.0.0.1".parse().unwrap(),
            full: true,
            addresses: vec![
                AddressUpdate { address: "10.1.0.1".parse().unwrap(), services: vec!["blue".into()] },
                AddressUpdate { address: "::ffff:10.1.0.2".parse().unwrap(), services: Vec::new() },
            ],
        },
        LocationUpdate { location: "FD00:0::1".parse().unwrap(), full: false, addresses: Vec::new() },
    ];
    let request = Request::with(Method::UpdateLocations, id("serviceGateways/gw"), Body::Locations(updates));
    assert_eq!(
        body(&request),
        json!({"action": "PartialUpdate", "addressLocations": [
            {"addressLocation": "10.0.0.1", "addressUpdateAction": "FullUpdate", "addresses": [
                {"address": "10.1.0.1", "services": ["blue"]},
                {"address": "10.1.0.2", "services": []},
            ]},
            {"addressLocation": "fd00::1", "addressUpdateAction": "PartialUpdate", "addresses": []},
        ]})
    );
}

#[test]
fn names_are_encoded_in_the_url_and_nowhere_else() {
    let target = ArmId::new(
        "/subscriptions/s/resourceGroups/my group/providers/Microsoft.Network/publicIPAddresses/ä?b",
    );
    let read = written(&Request::bare(Method::Get, target));
    assert!(read.url.contains("/resourceGroups/my%20group/"), "{}", read.url);
    assert!(read.url.ends_with("/publicIPAddresses/%C3%A4%3Fb?api-version=2025-05-01"), "{}", read.url);
}

#[test]
fn what_does_not_fit_together_does_not_leave() {
    let foreign =
        ForeignLoadBalancerBody { frontend: None, pools: Vec::new(), rules: Vec::new(), tags: Tags::new() };
    let none = || Body::Services(Vec::new());
    for request in [
        Request::with(Method::Put, id("loadBalancers/a"), Body::ForeignLoadBalancer(foreign)),
        Request::with(Method::Put, id("loadBalancers/a"), Body::Container),
        Request::with(Method::Put, id("natGateways/a"), put().body),
        Request::bare(Method::Put, id("publicIPAddresses/a")),
        Request::with(Method::Get, id("publicIPAddresses/a"), put().body),
        Request::with(Method::UpdateServices, id("serviceGateways/a"), Body::Locations(Vec::new())),
        Request::with(Method::UpdateServices, id("natGateways/a"), none()),
        Request::with(Method::PatchTags, id("publicIPAddresses/a"), put().body),
        Request::with(Method::PatchTags, id("virtualNetworks/v/subnets/s"), Body::Tags(Tags::new())),
        Request::bare(Method::Get, id("publicIPAddresses")),
        Request::bare(Method::List, id("publicIPAddresses/a")),
        Request::bare(Method::Delete, id("serviceGateways/gw/services")),
        Request::bare(
            Method::Get,
            ArmId::new("/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/disks/d"),
        ),
        Request::bare(Method::Get, ArmId::new("")),
        Request::bare(Method::Get, id("publicIPAddresses/..")),
        Request { page: Some(PageToken(OPERATION.into())), ..get("publicIPAddresses/a") },
        Request { page: Some(PageToken(OPERATION.into())), ..list("disks") },
    ] {
        assert!(!unwritable(&request).is_empty(), "{request:?}");
    }
}
