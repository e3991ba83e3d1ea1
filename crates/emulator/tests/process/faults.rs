//! Faults on the wire: what a client really sees.

use std::error::Error as _;
use std::time::Duration;

use reqwest::{Method, StatusCode, redirect};
use serde_json::{Value, json};

use crate::support::{Answer, Azure, GROUP, instant, options, public_ip, resource, trusting};

fn ip(name: &str) -> String {
    resource("publicIPAddresses", name)
}

async fn names(azure: &Azure) -> Vec<String> {
    let state = azure.state().await;
    let ids = state["publicIPAddresses"].as_array().unwrap().iter();
    ids.map(|it| it["id"].as_str().unwrap().rsplit('/').next().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_refusal_has_status_code_and_wait_in_real_seconds_whatever_the_clock_does() {
    let azure = Azure::start(sluice_emulator::Options { time_factor: 1_000.0, ..instant() }).await;
    azure.fault(json!({"fault": "throttled", "retryAfter": 7, "times": 1, "match": {"kind": "publicIPAddresses"}})).await;
    azure
        .fault(json!({"fault": "refuse", "status": 418, "code": "Teapot", "message": "The call can be retried in 30 seconds.", "times": 1,
        "match": {"kind": "publicIPAddresses"}}))
        .await;
    assert_eq!(azure.get(GROUP).await.status, 200);
    let first = azure.put(&ip("a"), public_ip()).await;
    assert_eq!((first.status, first.code()), (429, "SubscriptionRequestsThrottled"));
    assert_eq!(first.header("retry-after"), Some("7"));
    let second = azure.put(&ip("a"), public_ip()).await;
    assert_eq!((second.status, second.code()), (418, "Teapot"));
    assert_eq!(second.body["error"]["message"], "The call can be retried in 30 seconds.");
    assert_eq!(second.header("retry-after"), None);
    assert_eq!(azure.put(&ip("a"), public_ip()).await.status, 201);
}

#[tokio::test]
async fn a_reset_breaks_the_connection_before_or_after_the_work() {
    for (when, made) in [("before", false), ("after", true)] {
        let azure = Azure::start(instant()).await;
        azure.fault(json!({"fault": "reset", "when": when, "times": 1})).await;
        let broken = azure.request(Method::PUT, &ip("a"), Some(public_ip())).send().await.unwrap_err();
        assert!(!broken.is_timeout() && !broken.is_connect(), "{broken:?}");
        assert_eq!(names(&azure).await.contains(&"a".to_owned()), made, "{when}");
        let entry = azure.log().await.into_iter().find(|it| it["fault"] == "reset").unwrap();
        assert_eq!(entry["status"], Value::Null);
        // The next one comes through, on another connection.
        assert!(azure.put(&ip("b"), public_ip()).await.status < 300);
    }
}

#[tokio::test]
async fn a_reset_leaves_the_neighbours_on_http_2_alone_unless_it_is_the_connection_that_breaks() {
    for (rule, is_spared) in [
        (json!({"fault": "reset"}), true),
        (json!({"fault": "reset", "when": "after"}), true),
        (json!({"fault": "noAnswer"}), true),
        (json!({"fault": "reset", "scope": "connection"}), false),
    ] {
        let azure = Azure::start(instant()).await;
        // The neighbour is on the same connection, and if it is to go down with the other it is still there.
        let wait = if is_spared { 100 } else { 30_000 };
        azure.fault(json!({"fault": "latency", "beforeMs": wait, "match": {"name": "neighbour"}})).await;
        let mut struck = rule.clone();
        struck["match"] = json!({"name": "struck"});
        azure.fault(struck).await;
        let neighbour = tokio::spawn(azure.request(Method::PUT, &ip("neighbour"), Some(public_ip())).send());
        while !azure.log().await.iter().any(|it| it["name"] == "neighbour") {}
        let broken = azure.request(Method::PUT, &ip("struck"), Some(public_ip())).send().await;
        assert!(broken.is_err(), "{rule}: {broken:?}");
        assert_eq!(neighbour.await.unwrap().is_ok(), is_spared, "{rule}");
    }
}

#[tokio::test]
async fn a_reset_is_one_on_http_1_too() {
    let azure = Azure::start(instant()).await;
    let old = trusting(&azure.running).http1_only().build().unwrap();
    azure.fault(json!({"fault": "reset", "times": 1, "match": {"area": "any"}})).await;
    let url = azure.url("/metadata/endpoints?api-version=2022-09-01");
    let broken = old.get(&url).send().await.unwrap_err();
    let mut cause: Option<&dyn std::error::Error> = broken.source();
    let mut words = Vec::new();
    while let Some(it) = cause {
        words.push(it.to_string());
        cause = it.source();
    }
    assert!(words.iter().any(|it| it.contains("reset")), "{words:?}");
}

#[tokio::test]
async fn a_hang_lasts_until_the_client_has_had_enough() {
    for (when, made) in [("before", false), ("after", true)] {
        let azure = Azure::start(instant()).await;
        azure.fault(json!({"fault": "hang", "when": when, "times": 1})).await;
        let request = azure.request(Method::PUT, &ip("a"), Some(public_ip()));
        let broken = request.timeout(Duration::from_millis(200)).send().await.unwrap_err();
        assert!(broken.is_timeout(), "{broken:?}");
        assert_eq!(names(&azure).await.contains(&"a".to_owned()), made, "{when}");
    }
}

#[tokio::test]
async fn no_answer_means_done_and_not_applied_means_answered() {
    let azure = Azure::start(instant()).await;
    azure.fault(json!({"fault": "noAnswer", "match": {"name": "a"}})).await;
    azure.fault(json!({"fault": "notApplied", "match": {"name": "b"}})).await;
    assert!(azure.request(Method::PUT, &ip("a"), Some(public_ip())).send().await.is_err());
    assert!(azure.put(&ip("b"), public_ip()).await.status < 300);
    assert_eq!(names(&azure).await, ["a"]);
}

#[tokio::test]
async fn answers_come_back_bent() {
    let azure = Azure::start(instant()).await;
    azure.put(&ip("a"), public_ip()).await;
    let once = |mut rule: Value| {
        rule["times"] = json!(1);
        rule
    };
    let get = async |rule: Value| {
        azure.fault(once(rule)).await;
        azure.request(Method::GET, &ip("a"), None).send().await.unwrap()
    };
    let malformed = Answer::of(get(json!({"fault": "malformedJson"})).await).await;
    assert_eq!(malformed.status, 200);
    assert!(malformed.body.is_string(), "{malformed:?}");

    let page = get(json!({"fault": "htmlPage"})).await;
    assert_eq!(page.status(), StatusCode::BAD_GATEWAY);
    assert!(page.text().await.unwrap().contains("<html>"));

    let huge = get(json!({"fault": "hugeBody", "bytes": 3_000_000})).await.bytes().await.unwrap();
    assert_eq!(huge.len(), 3_000_000);
    assert_eq!(serde_json::from_slice::<Value>(&huge).unwrap()["name"], "a");

    let kind = get(json!({"fault": "wrongContentType", "contentType": "image/png"})).await;
    assert_eq!(kind.headers()["content-type"], "image/png");

    let future = Answer::of(get(json!({"fault": "unknownField"})).await).await.body;
    assert!(future["properties"]["fieldOfTheFuture"].is_object());
    assert_eq!(future["name"], "a");

    let word = Answer::of(get(json!({"fault": "unknownEnum"})).await).await.body;
    let state = word["properties"]["provisioningState"].as_str().unwrap();
    assert!(!["Succeeded", "Updating", "Failed", "Deleting"].contains(&state), "{state}");

    azure.fault(once(json!({"fault": "truncatedBody"}))).await;
    let torn = azure.request(Method::GET, &ip("a"), None).send().await;
    assert!(torn.unwrap().bytes().await.is_err());
}

#[tokio::test]
async fn a_truncated_body_is_one_on_http_1_too() {
    let azure = Azure::start(instant()).await;
    let old = trusting(&azure.running).http1_only().build().unwrap();
    azure.fault(json!({"fault": "truncatedBody", "match": {"area": "metadata"}})).await;
    let answer = old.get(azure.url("/metadata/endpoints?api-version=2022-09-01")).send().await.unwrap();
    assert!(answer.headers().contains_key("content-length"));
    assert!(answer.bytes().await.is_err());
}

#[tokio::test]
async fn a_redirect_leads_away_from_tls() {
    let azure = Azure::start(instant()).await;
    let client = trusting(&azure.running).redirect(redirect::Policy::none()).build().unwrap();
    azure.fault(json!({"fault": "redirect", "times": 1})).await;
    azure.fault(json!({"fault": "redirect", "status": 301, "to": "https://elsewhere.example/"})).await;
    let ask = async || {
        let url = azure.url(&format!("{GROUP}?api-version=2021-04-01"));
        client.get(url).bearer_auth(&azure.token).send().await.unwrap()
    };
    let first = ask().await;
    assert_eq!(first.status(), 307);
    let to = first.headers()["location"].to_str().unwrap();
    let expected = azure.url(&format!("{GROUP}?api-version=2021-04-01")).replace("https://", "http://");
    assert_eq!(to, expected);
    let second = ask().await;
    assert_eq!(
        (second.status().as_u16(), second.headers()["location"].to_str().unwrap()),
        (301, "https://elsewhere.example/")
    );
}

#[tokio::test]
async fn an_expired_token_and_a_lost_role_are_told_apart() {
    let azure = Azure::start(instant()).await;
    azure.fault(json!({"fault": "unauthorized", "times": 1})).await;
    azure.fault(json!({"fault": "forbidden", "times": 1})).await;
    let expired = azure.get(GROUP).await;
    assert_eq!((expired.status, expired.code()), (401, "ExpiredAuthenticationToken"));
    assert!(expired.header("www-authenticate").is_some());
    let forbidden = azure.get(GROUP).await;
    assert_eq!((forbidden.status, forbidden.code()), (403, "AuthorizationFailed"));
    assert_eq!(azure.get(GROUP).await.status, 200);
}

#[tokio::test]
async fn rules_for_the_resource_manager_leave_the_tokens_alone_unless_told() {
    let azure = Azure::start(instant()).await;
    azure.fault(json!({"fault": "serverError"})).await;
    azure.fresh_token().await;
    azure.fault(json!({"fault": "unavailable", "retryAfter": 2, "match": {"area": "token"}})).await;
    let form = [("grant_type", "client_credentials")];
    let refused = azure.ask_for_token("/tenant/oauth2/v2.0/token", &form).await;
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("2")));
}

#[tokio::test]
async fn operations_can_be_made_to_end_badly_or_never() {
    let azure = Azure::start(options()).await;
    for (name, rule) in [
        ("never", json!({"fault": "neverEnds"})),
        ("fails", json!({"fault": "fails", "code": "Broken"})),
        ("canceled", json!({"fault": "canceled"})),
        ("provisioning", json!({"fault": "provisioningFails"})),
        ("slow", json!({"fault": "slowBy", "factor": 100})),
    ] {
        let mut rule = rule;
        rule["match"] = json!({"name": name});
        azure.fault(rule).await;
        assert_eq!(azure.put(&ip(name), public_ip()).await.status, 201);
    }
    azure.pass(60).await;
    let state = azure.state().await;
    let stands = |name: &str| {
        let all = state["publicIPAddresses"].as_array().unwrap();
        all.iter().find(|it| it["id"] == ip(name)).unwrap()["provisioningState"].as_str().unwrap().to_owned()
    };
    assert_eq!(stands("never"), "Updating");
    assert_eq!(stands("slow"), "Updating");
    for name in ["fails", "canceled", "provisioning"] {
        assert_eq!(stands(name), "Failed", "{name}");
    }
    azure.do_control("calm", json!({})).await;
    azure.pass(10).await;
    assert_eq!(azure.state().await["operations"], json!([]));
}

#[tokio::test]
async fn latency_is_real_and_comes_on_either_side() {
    let azure = Azure::start(instant()).await;
    azure.fault(json!({"fault": "latency", "beforeMs": 30, "afterMs": 40})).await;
    azure.get(GROUP).await;
    let entry = azure.log().await.into_iter().find(|it| it["kind"] == "resourceGroups").unwrap();
    let took = entry["answeredMs"].as_f64().unwrap() - entry["arrivedMs"].as_f64().unwrap();
    assert!(took >= 70.0, "{took}");
}
