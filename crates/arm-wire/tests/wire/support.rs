//! One subscription, one endpoint. All tests speak to the wire through this.

use std::time::Duration;

use serde_json::{Value, json};
use sluice_arm_wire::{Dialect, HttpAnswer, HttpRequest, read, write};
use sluice_model::azure::*;
use sluice_model::call::*;
use sluice_model::{Failure, FailureClass};

pub(crate) const ENDPOINT: &str = "https://management.azure.com";
pub(crate) const NETWORK: &str = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network";
pub(crate) const OPERATION: &str = "https://management.azure.com/subscriptions/s/providers/Microsoft.Network\
                                    /locations/eastus/operations/1?api-version=2025-05-01&t=1";
pub(crate) const RESULT: &str =
    "https://management.azure.com/subscriptions/s/operationresults/1?api-version=2021-04-01";
/// Sunday, 06-Nov-94 08:49:37 GMT.
pub(crate) const NOW: Duration = Duration::from_secs(784_111_777);

pub(crate) fn dialect() -> Dialect {
    Dialect {
        endpoint: ENDPOINT.into(),
        api_version: "2025-05-01".into(),
        region: "eastus".into(),
        virtual_network: Some(id("virtualNetworks/vnet")),
    }
}

pub(crate) fn id(tail: &str) -> ArmId {
    ArmId::new(format!("{NETWORK}/{tail}"))
}

pub(crate) fn group() -> ArmId {
    ArmId::new("/subscriptions/s/resourceGroups/rg")
}

pub(crate) fn get(tail: &str) -> Request {
    Request::bare(Method::Get, id(tail))
}

pub(crate) fn list(tail: &str) -> Request {
    Request::bare(Method::List, id(tail))
}

pub(crate) fn poll(url: &str) -> Request {
    Request::bare(Method::Poll, ArmId::new(url))
}

pub(crate) fn tags(pairs: &[(&str, &str)]) -> Tags {
    pairs.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect()
}

/// What all resources have in common, of one that [`resource`] wrote.
pub(crate) fn meta(tail: &str) -> Meta {
    Meta {
        id: id(tail),
        tags: tags(&[("a", "b")]),
        etag: ETag("W/\"1\"".into()),
        provisioning: Provisioning::Succeeded,
    }
}

/// A resource of Azure's, with these properties and much that we do not care about.
pub(crate) fn resource(tail: &str, properties: serde_json::Value) -> serde_json::Value {
    json!({
        "name": "x", "id": format!("{NETWORK}/{tail}"), "etag": "W/\"1\"", "type": "Microsoft.Network/x",
        "location": "eastus", "tags": {"a": "b"}, "properties": properties, "sku": {"name": "Brandnew", "tier": 7},
        "novelty": {"deeply": [{"nested": null}]},
    })
}

/// A PUT of a public IP: some write.
pub(crate) fn put() -> Request {
    let body = PublicIpBody { family: sluice_model::address::Family::V4, tags: Tags::new() };
    Request::with(Method::Put, id("publicIPAddresses/web-pip"), Body::PublicIp(body))
}

pub(crate) fn delete() -> Request {
    Request::bare(Method::Delete, id("publicIPAddresses/web-pip"))
}

pub(crate) fn post() -> Request {
    Request::with(Method::UpdateServices, id("serviceGateways/gw"), Body::Services(Vec::new()))
}

/// What is written, which it must be.
pub(crate) fn written(request: &Request) -> HttpRequest {
    write(&dialect(), request).unwrap_or_else(|why| panic!("{why}"))
}

/// The body that is written.
pub(crate) fn body(request: &Request) -> Value {
    let body = written(request).body.expect("a body");
    serde_json::from_slice(&body).expect("a body that is JSON")
}

/// Why it is not written.
pub(crate) fn unwritable(request: &Request) -> String {
    match write(&dialect(), request) {
        Ok(written) => panic!("it was written: {written:?}"),
        Err(why) => why.0,
    }
}

/// The reply to an answer without headers.
pub(crate) fn reply(request: &Request, status: u16, body: &str) -> Reply {
    reply_with(request, status, &[], body.as_bytes())
}

pub(crate) fn reply_with(request: &Request, status: u16, headers: &[(&str, &str)], body: &[u8]) -> Reply {
    read(&dialect(), request, HttpAnswer { status, headers, body, unix_time: NOW })
}

/// The payload of an answer that is understood.
pub(crate) fn payload(request: &Request, status: u16, body: &str) -> Payload {
    match reply(request, status, body) {
        Reply::Answered(answer) => {
            assert_eq!(answer.status, status);
            answer.payload
        }
        other => panic!("{other:?} to {status} {body}"),
    }
}

/// The words about an answer that is not understood.
pub(crate) fn lost(request: &Request, status: u16, body: &str) -> String {
    match reply(request, status, body) {
        Reply::Lost(why) => why.to_string(),
        other => panic!("{other:?} to {status} {body}"),
    }
}

/// How an answer counts as a failure.
pub(crate) fn failure(request: &Request, status: u16, body: &str) -> Option<Failure> {
    Failure::in_reply(&reply(request, status, body))
}

pub(crate) fn class(request: &Request, status: u16, body: &str) -> Option<FailureClass> {
    failure(request, status, body).map(|failure| failure.class)
}
