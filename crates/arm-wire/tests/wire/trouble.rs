//! Answers that say no, and answers that are none.

use std::time::Duration;

use sluice_model::call::*;
use sluice_model::{Failure, FailureClass};

use crate::support::*;

const PAGE: &str = "<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>";
const READ: &str = "publicIPAddresses/web-pip";

/// An answer of 2xx that is no answer to this request.
fn nonsense() -> Vec<(Request, u16, String)> {
    let there = format!(r#""id":"{NETWORK}/publicIPAddresses/web-pip""#);
    let mut all = Vec::new();
    for request in [get(READ), put()] {
        for body in [
            "",
            "null",
            "[]",
            "3",
            "\"text\"",
            "{}",
            "OK",
            PAGE,
            r#"{"id":3}"#,
            r#"{"id":""}"#,
            r#"{"value":[]}"#,
            r#"{"status":"Succeeded"}"#,
            &format!("{{{there}"),
            &format!("{{{there}}} trailing"),
            &format!("{{{there},\"tags\":[]}}"),
            &format!("{{{there},\"tags\":{{\"a\":1}}}}"),
            &format!("{{{there},\"etag\":{{}}}}"),
            &format!("{{{there},\"properties\":\"none\"}}"),
            &format!("{{{there},\"properties\":{{\"provisioningState\":3}}}}"),
            &format!("{{{there},\"properties\":{{\"ipAddress\":\"not yet\"}}}}"),
            &format!("{{{there},\"properties\":{{\"natGateway\":\"blue\"}}}}"),
            r#"{"id":"/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/publicIPAddresses/other"}"#,
        ] {
            all.push((request.clone(), 200, body.to_string()));
        }
    }
    for (tail, item) in [
        ("publicIPAddresses", r#"{"name":"no id"}"#),
        ("loadBalancers", r#"{"id":"/x","properties":{"backendAddressPools":[{}]}}"#),
        (
            "loadBalancers",
            r#"{"id":"/x","properties":{"loadBalancingRules":[{"properties":{"frontendPort":"80"}}]}}"#,
        ),
        ("natGateways", r#"{"id":"/x","properties":{"publicIpAddresses":[{}]}}"#),
        ("natGateways", "null"),
        ("virtualNetworks/v/subnets", r#"{"id":"/x","properties":[]}"#),
        ("serviceGateways/gw/services", r#"{"properties":{}}"#),
        (
            "serviceGateways/gw/services",
            r#"{"name":"a","properties":{"loadBalancerBackendPools":[{"name":"p"}]}}"#,
        ),
        ("serviceGateways/gw/services", r#"{"name":"a","properties":{"isDefault":"yes"}}"#),
        ("serviceGateways/gw/addressLocations", r#"{"addresses":[]}"#),
        ("serviceGateways/gw/addressLocations", r#"{"addressLocation":"node-1","addresses":[]}"#),
        (
            "serviceGateways/gw/addressLocations",
            r#"{"addressLocation":"10.0.0.1","addresses":[{"services":[]}]}"#,
        ),
        (
            "serviceGateways/gw/addressLocations",
            r#"{"addressLocation":"10.0.0.1","addresses":[{"address":"10.0.0"}]}"#,
        ),
        (
            "serviceGateways/gw/addressLocations",
            r#"{"addressLocation":"10.0.0.1","addresses":[{"address":"10.1.0.1","services":[{}]}]}"#,
        ),
    ] {
        all.push((list(tail), 200, format!(r#"{{"value":[{item}]}}"#)));
    }
    for body in [
        "",
        "{}",
        "[]",
        PAGE,
        // Nothing where a list should be is not the statement that there is nothing.
        r#"{"value":null}"#,
        r#"{"value":null,"nextLink":"https://management.azure.com/next"}"#,
        r#"{"value":{}}"#,
        r#"{"value":[],"nextLink":7}"#,
        r#"{"value":[]"#,
    ] {
        all.push((list("loadBalancers"), 200, body.to_string()));
        all.push((list("serviceGateways/gw/addressLocations"), 200, body.to_string()));
    }
    for request in [post(), delete(), poll(OPERATION), poll(RESULT)] {
        for body in ["OK", PAGE, r#"{"status":"Succ"#, "\u{0}\u{1}"] {
            all.push((request.clone(), 200, body.to_string()));
        }
    }
    all.push((poll(OPERATION), 200, String::new()));
    all.push((poll(OPERATION), 200, "[]".into()));
    all.push((get(READ), 204, String::new()));
    all.push((put(), 202, PAGE.into()));
    all
}

#[test]
fn an_answer_that_is_not_understood_is_lost_and_says_so() {
    for (request, status, body) in nonsense() {
        let why = lost(&request, status, &body);
        let is_write = !matches!(request.method, Method::Get | Method::List | Method::Poll);
        assert!(why.starts_with("management.azure.com answered 20"), "{why}");
        assert_eq!(why.contains("may or may not"), is_write, "{why}");
        assert!(why.chars().count() < 1_000 && !why.contains('\n'), "{why}");
    }
}

#[test]
fn a_lost_answer_says_what_was_wrong_and_where() {
    let why = lost(&get(READ), 200, r#"{"id":3}"#);
    assert!(
        why.contains("integer `3`") && why.contains("an ID") && why.contains(r#"near: {"id":3"#),
        "{why}"
    );
    let why = lost(&get(READ), 200, "{}");
    assert!(why.contains("not a public IP") && why.contains("\"id\""), "{why}");
    let item = r#"{"value":[{"addressLocation":"10.0.0.1","addresses":[]},{"addresses":[]}]}"#;
    let why = lost(&list("serviceGateways/gw/addressLocations"), 200, item);
    assert!(why.contains("value[1]"), "{why}");
    let why = lost(&get(READ), 200, r#"{"id":"/elsewhere"}"#);
    assert!(why.contains("/elsewhere") && why.contains("instead of"), "{why}");
    let Reply::Lost(why) = reply_with(&get(READ), 200, &[("Content-Type", "text/html")], PAGE.as_bytes())
    else {
        panic!()
    };
    assert!(why.contains("text/html") && why.contains("titled \"502 Bad Gateway\""), "{why}");
}

#[test]
fn signatures_of_polls_are_not_repeated() {
    let why = lost(&poll("https://management.azure.com/operations/1?t=secret"), 200, "?");
    assert!(!why.contains("secret"), "{why}");
}

#[test]
fn an_error_with_a_friendly_status_is_an_error() {
    for request in [get(READ), put(), list("loadBalancers"), delete(), post(), poll(RESULT)] {
        let Payload::Error(error) = payload(&request, 200, r#"{"error":{"code":"C","message":"M"}}"#) else {
            panic!("{request:?}")
        };
        assert_eq!(&*error.code, "C");
    }
}

#[test]
fn refusals_are_classed_by_their_code() {
    let error =
        |code: &str, message: &str| format!(r#"{{"error":{{"code":"{code}","message":"{message}"}}}}"#);
    for (request, status, body, expected) in [
        (get(READ), 404, error("ResourceNotFound", ""), FailureClass::NotFound),
        (get(READ), 404, error("ResourceGroupNotFound", ""), FailureClass::Transient),
        (put(), 429, error("TooManyRequests", ""), FailureClass::Throttled),
        (
            put(),
            429,
            error("RetryableErrorDueToAnotherOperation", "retry after 9 seconds"),
            FailureClass::Throttled,
        ),
        (put(), 412, error("PreconditionFailed", ""), FailureClass::Transient),
        (put(), 403, error("AuthorizationFailed", ""), FailureClass::Forbidden),
        (put(), 400, error("PublicIPCountLimitReached", ""), FailureClass::Quota),
        (delete(), 409, error("ScopeLocked", ""), FailureClass::Forbidden),
        (post(), 400, error("ServiceWithOverlayMappingsCannotBeDeleted", ""), FailureClass::StillMapped),
        (post(), 413, error("RequestEntityTooLarge", ""), FailureClass::Rejected),
        (get(READ), 502, PAGE.into(), FailureClass::Transient),
        (get(READ), 503, String::new(), FailureClass::Transient),
        (put(), 400, "truncated {".into(), FailureClass::Rejected),
        (put(), 401, String::new(), FailureClass::Forbidden),
        (delete(), 404, error("NotFound", ""), FailureClass::NotFound),
        // Somebody on the way, who knows nothing about the resource.
        (delete(), 404, PAGE.into(), FailureClass::Transient),
        (delete(), 404, String::new(), FailureClass::Transient),
        (delete(), 404, r#"{"code":404,"message":"no such page"}"#.into(), FailureClass::Transient),
        (delete(), 404, r#"{"error":"Not Found"}"#.into(), FailureClass::Transient),
    ] {
        assert_eq!(class(&request, status, &body), Some(expected), "{status} {body}");
    }
}

#[test]
fn a_refusal_without_an_arm_error_says_what_came_instead() {
    let headers = [("content-type", "text/html; charset=utf-8")];
    let reply = reply_with(&put(), 502, &headers, PAGE.as_bytes());
    let failure = Failure::in_reply(&reply).unwrap();
    assert_eq!((&*failure.code, failure.status), ("Http502", 502));
    for part in ["text/html", "bytes", "502 Bad Gateway", "no ARM error"] {
        assert!(failure.message.contains(part), "{}", failure.message);
    }
    assert!(failure_message(&put(), 500, "").contains("empty"));
}

fn failure_message(request: &Request, status: u16, body: &str) -> String {
    failure(request, status, body).expect("a failure").message.to_string()
}

#[test]
fn a_redirect_is_an_answer_and_is_not_followed() {
    let headers = [("Location", "http://portal.example/login?state=secret")];
    for status in [301, 302, 307, 308] {
        let reply = reply_with(&get(READ), status, &headers, br#"{"error":{"code":"C","message":"M"}}"#);
        let failure = Failure::in_reply(&reply).unwrap();
        assert_eq!(failure.status, status);
        assert!(failure.message.contains("http://portal.example/login"), "{}", failure.message);
        assert!(failure.message.contains("does not follow") && !failure.message.contains("secret"));
        let Reply::Answered(answer) = reply else { panic!() };
        assert_eq!(answer.operation, None);
    }
}

#[test]
fn a_wait_comes_with_any_answer() {
    let headers = [("Retry-After", "Sun, 06 Nov 1994 08:50:07 GMT")];
    for (status, body) in [(429, ""), (503, PAGE), (202, ""), (200, "{}")] {
        let Reply::Answered(answer) = reply_with(&post(), status, &headers, body.as_bytes()) else {
            panic!()
        };
        assert_eq!(answer.retry_after, Some(Duration::from_secs(30)), "{status}");
    }
}

#[test]
fn a_body_that_was_promised_and_never_came_is_lost() {
    for request in [post(), delete(), poll(RESULT), put()] {
        let reply = reply_with(&request, 202, &[("Content-Length", "120")], b"");
        assert!(matches!(&reply, Reply::Lost(why) if why.contains("Content-Length is 120")), "{reply:?}");
        let reply = reply_with(&request, 202, &[("Content-Length", "4")], b"null");
        assert!(matches!(reply, Reply::Answered(_)), "{reply:?}");
        let reply = reply_with(&request, 202, &[("Content-Length", "0")], b"");
        assert!(matches!(reply, Reply::Answered(_)));
    }
}

#[test]
fn ten_megabytes_end_in_an_answer_like_anything_else() {
    let page = "<html>".to_string() + &"x".repeat(10_000_000);
    let deep = "[".repeat(10_000_000);
    let long = format!(r#"{{"error":{{"code":"C","message":"{}"}}}}"#, "m".repeat(10_000_000));
    for body in [&page, &deep, &long] {
        for request in [get(READ), list("loadBalancers"), put(), post(), poll(OPERATION)] {
            assert_eq!(class(&request, 502, body), Some(FailureClass::Transient));
            assert!(lost(&request, 200, body).len() < 2_000);
        }
    }
    let addresses: Vec<String> = (0..200_000u32)
        .map(|n| {
            format!(r#"{{"address":"10.{}.{}.{}","services":["blue"]}}"#, n >> 16, n >> 8 & 255, n & 255)
        })
        .collect();
    let body =
        format!(r#"{{"value":[{{"addressLocation":"10.0.0.1","addresses":[{}]}}]}}"#, addresses.join(","));
    let Payload::Locations(page) = payload(&list("serviceGateways/gw/addressLocations"), 200, &body) else {
        panic!()
    };
    assert_eq!(page.items.iter().map(|it| it.addresses.len()).sum::<usize>(), 200_000);
}

#[test]
fn a_status_that_cannot_be_is_lost() {
    for status in [0, 100, 199] {
        assert!(matches!(reply(&get(READ), status, "{}"), Reply::Lost(_)));
    }
    assert!(matches!(reply(&get(READ), 999, ""), Reply::Answered(_)));
}
