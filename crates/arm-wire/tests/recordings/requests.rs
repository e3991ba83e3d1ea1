//! What the recorded clients sent, beside what we send for the same purpose.
//!
//! Method, path, query and `If-Match` are equal, always. Bodies are compared field by field, and
//! every difference is in the table below with its reason: the recorded clients made other things
//! than we make (other SKUs, bare resources), and they left out what we always say.

use std::collections::BTreeSet;

use serde_json::Value;
use sluice_arm_wire::{Dialect, write};
use sluice_model::address::Family;
use sluice_model::azure::*;
use sluice_model::call::*;

use crate::tape::Interaction;

/// What must be among the recordings.
pub(crate) const KINDS: &[&str] = &["get", "list", "put", "patch", "delete", "post", "poll"];

/// What may differ, by kind: `+` stands only in our body, `-` only in the recorded one, `~` in both
/// with different values.
const DIFFERENCES: &[(&str, &[&str])] = &[
    // Equal to the letter.
    ("resourcegroups", &[]),
    ("patch", &[]),
    // We say that there are no tags.
    ("serviceGateways", &["+tags"]),
    // We say that there is no gateway.
    ("subnets", &["+properties.serviceGateway"]),
    // Another SKU, no tier, and all that makes an address of ours; bare ones were sent too.
    (
        "publicIPAddresses",
        &[
            "+properties",
            "+properties.publicIPAddressVersion",
            "+sku",
            "+tags",
            "-etag",
            "-sku.tier",
            "~sku.name",
        ],
    ),
    // Another SKU, no service gateway, no list for IPv6.
    ("natGateways", &["+properties.publicIpAddressesV6", "+properties.serviceGateway", "+tags", "~sku.name"]),
    // Another SKU and another frontend, with the whole public IP in it instead of its id; no pool, no rules.
    (
        "loadBalancers",
        &[
            "+properties.backendAddressPools",
            "+properties.loadBalancingRules",
            "+properties.scope",
            "+tags",
            "-etag",
            "-properties.frontendIPConfigurations[0].properties.publicIPAddress.etag",
            "-properties.frontendIPConfigurations[0].properties.publicIPAddress.location",
            "-properties.frontendIPConfigurations[0].properties.publicIPAddress.name",
            "-properties.frontendIPConfigurations[0].properties.publicIPAddress.properties",
            "-properties.frontendIPConfigurations[0].properties.publicIPAddress.sku",
            "-properties.frontendIPConfigurations[0].properties.publicIPAddress.type",
            "~properties.frontendIPConfigurations[0].name",
            "~sku.name",
        ],
    ),
    // We make networks only for tests, of one size and without subnets.
    ("virtualNetworks", &["-etag", "-properties.subnets", "~properties.addressSpace.addressPrefixes[0]"]),
    // The recorded POSTs left the action to Azure.
    ("updateServices", &["+action"]),
    ("updateAddressLocations", &["+action"]),
];

/// The request of ours that corresponds to a recorded one.
pub(crate) fn request(recorded: &Interaction) -> Request {
    let path = recorded.url.strip_prefix("https://management.azure.com").expect("one host was recorded");
    let path = path.split('?').next().expect("a path");
    let last = path.rsplit('/').next().expect("a last segment");
    let is_poll = path.contains("/operations/") || path.contains("/operationresults/");
    let is_list = [
        "publicIPAddresses",
        "loadBalancers",
        "natGateways",
        "serviceGateways",
        "virtualNetworks",
        "subnets",
        "services",
        "addressLocations",
    ]
    .contains(&last);
    let target = ArmId::new(path);
    let gateway = || target.parent("serviceGateways").expect("a gateway's action");
    let request = match (recorded.method.as_str(), last) {
        ("GET", _) if is_poll => Request::bare(Method::Poll, ArmId::new(recorded.url.as_str())),
        ("GET", _) if is_list => Request::bare(Method::List, target),
        ("GET", _) => Request::bare(Method::Get, target),
        ("DELETE", _) => Request::bare(Method::Delete, target),
        ("PATCH", _) => Request::with(Method::PatchTags, target, Body::Tags(tags(&recorded.sent))),
        ("PUT", _) => Request::with(Method::Put, target, put_body(kind(recorded), &recorded.sent)),
        ("POST", "updateServices") => {
            assert_eq!(recorded.sent["serviceRequests"], Value::Array(Vec::new()));
            Request::with(Method::UpdateServices, gateway(), Body::Services(Vec::new()))
        }
        ("POST", "updateAddressLocations") => {
            assert_eq!(recorded.sent["addressLocations"], Value::Array(Vec::new()));
            Request::with(Method::UpdateLocations, gateway(), Body::Locations(Vec::new()))
        }
        other => panic!("nothing of ours corresponds to {other:?}"),
    };
    Request { if_match: recorded.if_match.as_deref().map(|etag| ETag(etag.into())), ..request }
}

/// The body of ours that means what the recorded one means, as far as we can say it.
fn put_body(kind: &str, sent: &Value) -> Body {
    let id = |value: &Value| ArmId::new(value["id"].as_str().expect("an id"));
    let properties = &sent["properties"];
    match kind {
        "resourcegroups" | "virtualNetworks" => Body::Container,
        "subnets" => Body::Subnet(SubnetBody { gateway: None, rest: sent.to_string().into() }),
        "publicIPAddresses" => Body::PublicIp(PublicIpBody { family: Family::V4, tags: tags(sent) }),
        "loadBalancers" => {
            let frontends = properties["frontendIPConfigurations"].as_array().expect("frontends");
            assert_eq!(frontends.len(), 1);
            Body::LoadBalancer(LoadBalancerBody {
                public_ip: id(&frontends[0]["properties"]["publicIPAddress"]),
                rules: Vec::new(),
                tags: tags(sent),
            })
        }
        "natGateways" => Body::NatGateway(NatGatewayBody {
            gateway: None,
            public_ips: properties["publicIpAddresses"].as_array().expect("a list").iter().map(id).collect(),
            public_ips_v6: Vec::new(),
            tags: tags(sent),
        }),
        "serviceGateways" => {
            let target = &properties["routeTargetAddress"];
            let address = target["privateIPAddress"].as_str().expect("an address");
            Body::Gateway(GatewayBody {
                virtual_network: id(&properties["virtualNetwork"]),
                route_target_subnet: id(&target["subnet"]),
                route_target_address: Some(address.parse().expect("an address")),
                route_target_address_v6: None,
                tags: tags(sent),
            })
        }
        other => panic!("nobody makes {other}"),
    }
}

fn tags(document: &Value) -> Tags {
    let Some(tags) = document["tags"].as_object() else { return Tags::new() };
    tags.iter().map(|(key, value)| (key.as_str().into(), value.as_str().expect("a tag").into())).collect()
}

/// The kind that a recorded write is about, as it stands in its path.
fn kind(recorded: &Interaction) -> &str {
    if recorded.method == "PATCH" {
        return "patch";
    }
    let path = recorded.url.split('?').next().expect("a path");
    let mut segments = path.rsplit('/');
    let last = segments.next().expect("a name");
    if recorded.method == "POST" { last } else { segments.next().expect("a kind") }
}

/// Which of the allowed differences were met.
#[derive(Default)]
pub(crate) struct Differences(BTreeSet<(String, String)>);

impl Differences {
    /// A difference that no recording shows is no longer one.
    pub(crate) fn are_all_needed(&self) {
        for (kind, allowed) in DIFFERENCES {
            for difference in *allowed {
                let met = self.0.contains(&((*kind).to_owned(), (*difference).to_owned()));
                assert!(met, "no recording of {kind} shows {difference}");
            }
        }
    }
}

/// Compares a recorded request with ours and says of what kind it is.
pub(crate) fn check(
    at: &str,
    recorded: &Interaction,
    request: &Request,
    differences: &mut Differences,
) -> &'static str {
    let location = recorded.sent["location"].as_str().unwrap_or("eastus");
    let dialect = Dialect {
        endpoint: "https://management.azure.com".into(),
        api_version: "2025-05-01".into(),
        region: location.into(),
        virtual_network: None,
    };
    let ours = write(&dialect, request).unwrap_or_else(|why| panic!("{at}: {why}"));
    assert_eq!(ours.method, recorded.method, "{at}");
    assert_eq!(ours.url, recorded.url, "{at}");
    assert_eq!(ours.if_match, recorded.if_match, "{at}");
    let body = ours.body.map_or(Value::Null, |body| serde_json::from_slice(&body).expect("our JSON"));
    assert_eq!(body.is_null(), recorded.sent.is_null(), "{at}");
    if !body.is_null() {
        let kind = kind(recorded);
        let (_, allowed) =
            DIFFERENCES.iter().find(|(it, _)| *it == kind).unwrap_or_else(|| panic!("{at}: {kind}"));
        let mut found = Vec::new();
        differ("", &recorded.sent, &body, &mut found);
        for difference in found {
            assert!(allowed.contains(&difference.as_str()), "{at}: {difference}");
            differences.0.insert((kind.to_owned(), difference));
        }
    }
    match request.method {
        Method::Get => "get",
        Method::List => "list",
        Method::Put => "put",
        Method::PatchTags => "patch",
        Method::Delete => "delete",
        Method::UpdateServices | Method::UpdateLocations => "post",
        Method::Poll => "poll",
    }
}

/// Where two documents differ, whatever the order of their fields.
fn differ(path: &str, recorded: &Value, ours: &Value, found: &mut Vec<String>) {
    let inner = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match (recorded, ours) {
        (Value::Object(recorded), Value::Object(ours)) => {
            for (key, value) in recorded {
                match ours.get(key) {
                    Some(other) => differ(&inner(key), value, other, found),
                    None => found.push(format!("-{}", inner(key))),
                }
            }
            let added = ours.keys().filter(|key| !recorded.contains_key(*key));
            found.extend(added.map(|key| format!("+{}", inner(key))));
        }
        (Value::Array(recorded), Value::Array(ours)) if recorded.len() == ours.len() => {
            for (at, (value, other)) in recorded.iter().zip(ours).enumerate() {
                differ(&format!("{path}[{at}]"), value, other, found);
            }
        }
        _ if recorded == ours => {}
        _ => found.push(format!("~{path}")),
    }
}
