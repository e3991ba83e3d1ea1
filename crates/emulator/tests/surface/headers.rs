//! The headers of every answer.

use crate::stage::*;

#[test]
fn a_client_gets_its_own_request_id_back_if_it_asks_for_it() {
    let mut stage = Stage::new();
    for (asks, expected) in [(Some("true"), Some("mine")), (Some("false"), None), (None, None)] {
        let mut request = stage.request("GET", &stage.path("publicIPAddresses"), None);
        request.headers_mut().insert("x-ms-client-request-id", "mine".parse().unwrap());
        if let Some(asks) = asks {
            request.headers_mut().insert("x-ms-return-client-request-id", asks.parse().unwrap());
        }
        assert_eq!(stage.send(request).header("x-ms-client-request-id"), expected, "{asks:?}");
    }
}

#[test]
fn every_answer_has_an_id_of_its_own() {
    let mut stage = Stage::new();
    let ids: std::collections::BTreeSet<String> = (0..10)
        .map(|_| stage.get("publicIPAddresses").header("x-ms-request-id").unwrap().to_owned())
        .collect();
    assert_eq!(ids.len(), 10);
    let mut request = stage.request("GET", "/nowhere", None);
    request.headers_mut().insert("x-ms-correlation-request-id", "story".parse().unwrap());
    assert_eq!(stage.send(request).header("x-ms-correlation-request-id"), Some("story"));
}

#[test]
fn the_gateways_refusals_say_so_and_the_providers_do_not() {
    let mut stage = Stage::new();
    for (tail, by_gateway) in [("publicIPAddresses/nope", true), ("virtualNetworks/vnet/subnets/nope", false)]
    {
        let answer = stage.get(tail);
        assert_eq!(answer.header("x-ms-failure-cause").is_some(), by_gateway, "{tail}");
        assert_eq!(
            answer.header("x-ms-ratelimit-remaining-subscription-reads").is_some(),
            !by_gateway,
            "{tail}"
        );
        assert_eq!(answer.body["error"].get("details").is_some(), !by_gateway, "{tail}");
    }
}

#[test]
fn only_what_has_a_body_has_a_content_type() {
    let mut stage = Stage::new();
    stage.public_ip("web-pip");
    let deletion = stage.delete("publicIPAddresses/web-pip");
    assert_eq!((deletion.status, deletion.header("content-type")), (202, None));
    assert_eq!(
        stage.get("publicIPAddresses").header("content-type"),
        Some("application/json; charset=utf-8")
    );
}
