//! Requests that are malformed.

use bytes::Bytes;
use http::Request;
use serde_json::{Value, json};
use sluice_cloud::Config;

use crate::stage::*;

fn raw(stage: &mut Stage, media_type: Option<&str>, body: &[u8]) -> Answer {
    let path = format!("{}?api-version={OLD}", stage.path("publicIPAddresses/web-pip"));
    let mut request = Request::builder().method("PUT").uri(path).header("content-length", body.len());
    if let Some(media_type) = media_type {
        request = request.header("content-type", media_type);
    }
    stage.send(request.body(Bytes::copy_from_slice(body)).unwrap())
}

#[test]
fn bytes_that_are_no_json_are_refused_by_the_gateway() {
    let mut stage = Stage::new();
    let json = Some("application/json");
    let deep = "[".repeat(100_000);
    for (media_type, body, status, code) in [
        (json, &b"{"[..], 400, "InvalidRequestContent"),
        (json, b"", 400, "InvalidRequestContent"),
        (json, b"\xff\xfe", 400, "InvalidRequestContent"),
        (json, b"[]", 400, "InvalidRequestContent"),
        (json, b"null", 400, "InvalidRequestContent"),
        (json, b"{\"location\":\"eastus\"} x", 400, "InvalidRequestContent"),
        (json, deep.as_bytes(), 400, "InvalidRequestContent"),
        (None, b"{}", 415, "UnsupportedMediaType"),
        (Some("text/plain"), b"{}", 415, "UnsupportedMediaType"),
    ] {
        let answer = raw(&mut stage, media_type, body);
        assert_eq!(answer.refusal(), (status, code), "{media_type:?}");
        assert_eq!(answer.header("x-ms-failure-cause"), Some("gateway"));
        assert_eq!(answer.body["error"].get("details"), None);
    }
    let fine =
        raw(&mut stage, Some("application/json; charset=utf-8"), b"\xef\xbb\xbf{\"location\":\"eastus\"}");
    assert_eq!(fine.status, 201);
    assert_eq!(stage.get("publicIPAddresses").body["value"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_body_that_is_too_large_or_has_no_length_is_refused() {
    let mut stage = Stage::with(Config { buckets: None, body_bytes_max: 1_000, ..Config::default() });
    let large = format!("{{\"location\":\"{}\"}}", "x".repeat(1_000));
    assert_eq!(
        raw(&mut stage, Some("application/json"), large.as_bytes()).refusal(),
        (413, "RequestEntityTooLarge")
    );
    let path = format!("{}?api-version={OLD}", stage.path("publicIPAddresses/web-pip"));
    let request = Request::builder().method("PUT").uri(path).body(Bytes::new()).unwrap();
    assert_eq!(stage.send(request).refusal(), (411, "LengthRequired"));
}

#[test]
fn the_outside_of_a_resource_is_read_strictly() {
    let mut stage = Stage::new();
    let mut many = serde_json::Map::new();
    for number in 0..51 {
        many.insert(format!("t{number}"), json!("v"));
    }
    for (field, value, status, code) in [
        ("location", Value::Null, 400, "LocationRequired"),
        ("location", json!(""), 400, "LocationRequired"),
        ("location", json!("east/us"), 400, "LocationNotAvailableForResourceType"),
        ("location", json!(7), 400, "InvalidRequestFormat"),
        ("nonsense", json!(1), 400, "InvalidRequestContent"),
        ("name", json!("other"), 400, "InvalidRequestContent"),
        ("id", json!("/subscriptions/s"), 400, "InvalidRequestContent"),
        ("tags", json!("blue"), 400, "InvalidRequestContent"),
        ("tags", json!({ "a": 1 }), 400, "InvalidRequestContent"),
        ("tags", json!({ "a/b": "c" }), 400, "InvalidTagNameCharacters"),
        ("tags", json!({ "a": "x".repeat(257) }), 400, "InvalidTags"),
        ("tags", Value::Object(many), 400, "InvalidTags"),
        ("sku", json!("Standard"), 400, "InvalidRequestFormat"),
        ("sku", json!({ "name": "Premium" }), 400, "InvalidRequestFormat"),
        ("sku", json!({ "name": "Standard", "tier": "Global" }), 400, "NotSupportedByEmulator"),
        ("zones", json!([1]), 400, "InvalidRequestFormat"),
        ("properties", json!([]), 400, "InvalidRequestFormat"),
        ("extendedLocation", json!({ "name": "edge" }), 400, "NotSupportedByEmulator"),
    ] {
        let mut body = public_ip("IPv4");
        body[field] = value.clone();
        let answer = stage.send(stage.put("publicIPAddresses/web-pip", body));
        assert_eq!(answer.refusal(), (status, code), "{field}: {value}");
    }
    assert_eq!(stage.get("publicIPAddresses/web-pip").status, 404);
}

#[test]
fn the_properties_of_a_public_ip_are_read_strictly() {
    let mut stage = Stage::new();
    for (field, value, code) in [
        ("publicIPAddressVersion", json!("IPv5"), "InvalidRequestFormat"),
        ("publicIPAllocationMethod", json!("Dynamic"), "StandardSkuPublicIPMustBeStatic"),
        ("idleTimeoutInMinutes", json!(3), "InvalidRequestFormat"),
        ("idleTimeoutInMinutes", json!(4.5), "InvalidRequestFormat"),
        ("idleTimeoutInMinutes", json!("4"), "InvalidRequestFormat"),
        ("ipTags", json!({}), "InvalidRequestFormat"),
        ("publicIPPrefix", json!({ "id": "/subscriptions/s/x" }), "NotSupportedByEmulator"),
        ("dnsSettings", json!({ "domainNameLabel": "web" }), "NotSupportedByEmulator"),
    ] {
        let mut body = public_ip("IPv4");
        body["properties"][field] = value.clone();
        let answer = stage.send(stage.put("publicIPAddresses/web-pip", body));
        assert_eq!(answer.refusal(), (400, code), "{field}: {value}");
    }
    stage.public_ip("web-pip");
    let other_family = stage.put("publicIPAddresses/web-pip", public_ip("IPv6"));
    assert_eq!(stage.send(other_family).status, 400);
    let mut moved = public_ip("IPv4");
    moved["location"] = json!("westus");
    let moved = stage.put("publicIPAddresses/web-pip", moved);
    assert_eq!(stage.send(moved).refusal(), (409, "InvalidResourceLocation"));
}

#[test]
fn words_and_names_of_fields_differ_by_everything_but_case() {
    let mut stage = Stage::new();
    let body = json!({
        "Location": "East US",
        "SKU": { "Name": "StandardV2" },
        "Properties": { "publicIpAllocationMethod": "static", "PublicIPAddressVersion": "ipv6" },
    });
    stage.done(stage.put("publicIPAddresses/web-pip", body));
    let read = stage.get("publicIPAddresses/web-pip").body;
    assert_eq!((&read["location"], &read["sku"]["name"]), (&json!("eastus"), &json!("StandardV2")));
    assert_eq!(read["properties"]["publicIPAddressVersion"], "IPv6");
    assert_eq!(read["properties"]["publicIPAllocationMethod"], "Static");
    assert_eq!(read["properties"].get("publicIpAllocationMethod"), None);
}

#[test]
fn names_that_azure_does_not_take_are_refused() {
    let mut stage = Stage::new();
    for name in ["-a", "a-", &"a".repeat(81), "a%20b", "%2e%2e"] {
        let answer = stage.send(stage.put(&format!("publicIPAddresses/{name}"), public_ip("IPv4")));
        assert_eq!(answer.refusal(), (400, "InvalidResourceName"), "{name}");
    }
}

#[test]
fn a_refused_request_is_no_write_and_an_accepted_one_is() {
    let mut stage = Stage::new();
    let bad = stage.put("publicIPAddresses/web-pip", json!({}));
    let good = stage.put("publicIPAddresses/web-pip", public_ip("IPv4"));
    let read = stage.request("GET", &stage.path("publicIPAddresses/web-pip"), None);
    let lost = stage.request("GET", "/nowhere", None);
    let told = |stage: &mut Stage, request| {
        let handled = stage.handle(request, None);
        (handled.call.map(|call| call.kind), handled.is_write)
    };
    assert_eq!(told(&mut stage, &bad), (Some("publicIPAddresses"), false));
    assert_eq!(told(&mut stage, &good), (Some("publicIPAddresses"), true));
    assert_eq!(told(&mut stage, &read), (Some("publicIPAddresses"), false));
    assert_eq!(told(&mut stage, &lost), (None, false));
}
