//! What Azure answered, beside what we make of it.
//!
//! What is expected is taken from the recorded JSON with a tree and by hand, not with the code
//! that is tested.

use std::time::Duration;

use serde_json::Value;
use sluice_arm_wire::{Dialect, HttpAnswer, read};
use sluice_model::address::Family;
use sluice_model::azure::*;
use sluice_model::call::*;
use sluice_model::{Failure, FailureClass};

use crate::header;
use crate::tape::Interaction;

/// What must be among the recordings.
pub(crate) const KINDS: &[&str] = &[
    "resource",
    "container",
    "page",
    "operation succeeded",
    "accepted or done without a body",
    "not found",
    "no such group",
    "precondition failed",
];

/// Compares what we make of an answer with what it says, and says of what kind it is.
pub(crate) fn check(at: &str, recorded: &Interaction, request: &Request) -> &'static str {
    let dialect = Dialect {
        endpoint: "https://management.azure.com".into(),
        api_version: "2025-05-01".into(),
        region: "eastus".into(),
        virtual_network: None,
    };
    let headers: Vec<(&str, &str)> =
        recorded.answer_headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let answer = HttpAnswer {
        status: recorded.status,
        headers: &headers,
        body: recorded.answered.as_bytes(),
        unix_time: Duration::ZERO,
    };
    let reply = read(&dialect, request, answer);
    let Reply::Answered(answer) = &reply else { panic!("{at}: {reply:?}") };
    assert_eq!(answer.status, recorded.status, "{at}");
    check_headers(at, recorded, request, answer);
    if recorded.answered.is_empty() {
        assert_eq!(answer.payload, Payload::None, "{at}");
        assert_eq!(Failure::in_reply(&reply), None, "{at}");
        return "accepted or done without a body";
    }
    let document: Value = serde_json::from_str(&recorded.answered).expect("Azure answers in JSON");
    if recorded.status >= 400 {
        return check_failure(at, &document, &reply);
    }
    assert_eq!(Failure::in_reply(&reply), None, "{at}");
    if request.method == Method::Poll {
        assert_eq!(document["status"], "Succeeded", "{at}");
        assert_eq!(answer.payload, Payload::Operation(OperationState::Succeeded), "{at}");
        return "operation succeeded";
    }
    if request.method == Method::List {
        check_page(at, &document, &answer.payload);
        return "page";
    }
    check_resource(at, &document, &answer.payload)
}

fn check_headers(at: &str, recorded: &Interaction, request: &Request, answer: &Answer) {
    let is_write = matches!(recorded.method.as_str(), "PUT" | "DELETE");
    let followed = header(recorded, "azure-asyncoperation").or_else(|| header(recorded, "location"));
    let followed = followed.filter(|_| is_write);
    assert_eq!(answer.operation.as_ref().map(ArmId::as_str), followed, "{at}");
    let word = match request.method.bucket() {
        Bucket::Reads => "reads",
        Bucket::Writes => "writes",
        Bucket::Deletes => "deletes",
    };
    let left = header(recorded, &format!("x-ms-ratelimit-remaining-subscription-global-{word}"));
    assert_eq!(answer.remaining, left.map(|left| left.parse().expect("a number")), "{at}");
    assert_eq!(answer.retry_after, None, "{at}: nothing recorded asks for a wait");
}

fn check_failure(at: &str, document: &Value, reply: &Reply) -> &'static str {
    let failure = Failure::in_reply(reply).unwrap_or_else(|| panic!("{at}: {reply:?}"));
    let error = &document["error"];
    assert_eq!(&*failure.code, error["code"].as_str().expect("a code"), "{at}");
    let message = error["message"].as_str().expect("a message");
    assert!(failure.message.starts_with(message), "{at}: {failure}");
    let (class, kind) = match &*failure.code {
        "ResourceNotFound" | "NotFound" => (FailureClass::NotFound, "not found"),
        "ResourceGroupNotFound" => (FailureClass::Transient, "no such group"),
        "PreconditionFailed" => {
            let detail = error["details"][0]["message"].as_str().expect("a detail");
            assert_eq!(&*failure.message, format!("{message} {detail}"), "{at}");
            (FailureClass::Transient, "precondition failed")
        }
        other => panic!("{at}: what is {other}?"),
    };
    assert_eq!(failure.class, class, "{at}");
    kind
}

fn check_page(at: &str, document: &Value, payload: &Payload) {
    let items = document["value"].as_array().expect("a page has a value");
    assert!(
        !items.is_empty() && document.get("nextLink").is_none(),
        "{at}: what was recorded is one full page"
    );
    let found: Vec<Payload> = match payload.clone() {
        Payload::PublicIps(page) => whole(at, page).into_iter().map(Payload::PublicIp).collect(),
        Payload::LoadBalancers(page) => whole(at, page).into_iter().map(Payload::LoadBalancer).collect(),
        Payload::NatGateways(page) => whole(at, page).into_iter().map(Payload::NatGateway).collect(),
        Payload::Gateways(page) => whole(at, page).into_iter().map(Payload::Gateway).collect(),
        Payload::Networks(page) => whole(at, page).into_iter().map(Payload::Container).collect(),
        Payload::Subnets(page) => whole(at, page).into_iter().map(Payload::Subnet).collect(),
        other => panic!("{at}: {other:?}"),
    };
    assert_eq!(found.len(), items.len(), "{at}");
    for (item, found) in items.iter().zip(&found) {
        check_resource(at, item, found);
    }
}

fn whole<T>(at: &str, page: Page<T>) -> Vec<T> {
    assert_eq!(page.next, None, "{at}");
    page.items
}

fn check_resource(at: &str, document: &Value, payload: &Payload) -> &'static str {
    let properties = &document["properties"];
    let id = |value: &Value| value["id"].as_str().map(ArmId::new);
    let ids = |value: &Value| -> Vec<ArmId> {
        value.as_array().map(|all| all.iter().filter_map(id).collect()).unwrap_or_default()
    };
    match (document["type"].as_str().expect("a type"), payload) {
        ("Microsoft.Network/publicIPAddresses", Payload::PublicIp(it)) => {
            check_meta(at, document, &it.meta);
            assert_eq!(properties["publicIPAddressVersion"], "IPv4");
            assert_eq!(it.family, Family::V4, "{at}");
            let address = properties["ipAddress"].as_str().map(|ip| ip.parse().expect("an address"));
            assert_eq!(it.address, address, "{at}");
            assert_eq!(it.used_by, id(&properties["ipConfiguration"]), "{at}");
        }
        ("Microsoft.Network/loadBalancers", Payload::LoadBalancer(it)) => {
            check_meta(at, document, &it.meta);
            let frontend = &properties["frontendIPConfigurations"][0]["properties"];
            assert_eq!(it.public_ip, id(&frontend["publicIPAddress"]), "{at}");
            assert!(it.public_ip.is_some(), "{at}");
            assert_eq!((it.pools.len(), it.rules.len()), (0, 0), "{at}");
        }
        ("Microsoft.Network/natGateways", Payload::NatGateway(it)) => {
            check_meta(at, document, &it.meta);
            assert_eq!(it.gateway, None, "{at}");
            assert_eq!(it.public_ips, ids(&properties["publicIpAddresses"]), "{at}");
            assert_eq!(it.public_ips.len(), 1, "{at}");
            assert_eq!(it.public_ips_v6.len(), 0, "{at}");
        }
        ("Microsoft.Network/serviceGateways", Payload::Gateway(it)) => {
            check_meta(at, document, &it.meta);
            let target = &properties["routeTargetAddress"];
            assert_eq!(Some(&it.virtual_network), id(&properties["virtualNetwork"]).as_ref(), "{at}");
            assert_eq!(Some(&it.route_target_subnet), id(&target["subnet"]).as_ref(), "{at}");
            let address = target["privateIPAddress"].as_str().map(|ip| ip.parse().expect("an address"));
            assert_eq!((it.route_target_address, it.route_target_address_v6), (address, None), "{at}");
            let whole: Value = serde_json::from_str(&it.document).expect("the document is JSON");
            assert_eq!(whole, *document, "{at}: nothing of it may be lost");
        }
        ("Microsoft.Network/virtualNetworks/subnets", Payload::Subnet(it)) => {
            assert_eq!(it.id.as_str(), document["id"].as_str().expect("an id"), "{at}");
            assert_eq!(&*it.etag.0, document["etag"].as_str().expect("an etag"), "{at}");
            assert_eq!(it.gateway, None, "{at}");
            let rest: Value = serde_json::from_str(&it.rest).expect("the rest is JSON");
            assert_eq!(rest, *document, "{at}: nothing was ours, so nothing was taken out");
        }
        (
            "Microsoft.Network/virtualNetworks" | "Microsoft.Resources/resourceGroups",
            Payload::Container(it),
        ) => {
            assert_eq!(it.as_str(), document["id"].as_str().expect("an id"), "{at}");
            return "container";
        }
        (kind, payload) => panic!("{at}: {kind} became {payload:?}"),
    }
    "resource"
}

fn check_meta(at: &str, document: &Value, meta: &Meta) {
    assert_eq!(meta.id.as_str(), document["id"].as_str().expect("an id"), "{at}");
    assert_eq!(&*meta.etag.0, document["etag"].as_str().expect("an etag"), "{at}");
    let state = match document["properties"]["provisioningState"].as_str() {
        Some("Succeeded") => Provisioning::Succeeded,
        Some("Updating") => Provisioning::Updating,
        other => panic!("{at}: {other:?} is not in the recordings"),
    };
    assert_eq!(meta.provisioning, state, "{at}");
    let tags = document["tags"].as_object().cloned().unwrap_or_default();
    let tags: Tags = (tags.iter())
        .map(|(key, value)| (key.as_str().into(), value.as_str().expect("a text").into()))
        .collect();
    assert_eq!(meta.tags, tags, "{at}");
}
