//! The request log: what a judge needs to know of every call.

use reqwest::Method;
use serde_json::{Value, json};
use sluice_cloud::{Buckets, Config, Rate};
use sluice_emulator::{Limits, Options};

use crate::support::{Azure, GROUP, SCOPE, instant, options, public_ip, resource};

#[tokio::test]
async fn an_entry_says_who_asked_what_and_what_came_of_it() {
    // A clock so slow that the operation still runs when it is asked for.
    let azure = Azure::start(Options { time_factor: 0.1, ..options() }).await;
    azure.control(Method::DELETE, "requests", None).await;
    let path = resource("publicIPAddresses", "web-pip");
    let request = azure.request(Method::PUT, &path, Some(public_ip()));
    let request = request.header("x-ms-client-request-id", "me-1").header("user-agent", "test/1");
    let response = request.send().await.unwrap();
    let operation = response.headers()["azure-asyncoperation"].to_str().unwrap().to_owned();
    let poll = operation.strip_prefix(&azure.running.url()).unwrap();
    assert_eq!(azure.get(poll).await.body["status"], "InProgress");
    let log = azure.log().await;
    let [put, poll] = &log[..] else { panic!("{log:#?}") };
    for (field, expected) in [
        ("area", json!("arm")),
        ("method", json!("PUT")),
        ("path", json!(path)),
        ("query", json!("api-version=2025-05-01")),
        ("status", json!(201)),
        ("call", json!("Put")),
        ("kind", json!("publicIPAddresses")),
        ("name", json!("web-pip")),
        ("bucket", json!("writes")),
        ("principal", json!("app")),
        ("clientRequestId", json!("me-1")),
        ("userAgent", json!("test/1")),
        ("bytesIn", json!(public_ip().to_string().len())),
        ("fault", Value::Null),
        ("body", public_ip()),
    ] {
        assert_eq!(put[field], expected, "{field}");
    }
    assert!(put["answeredMs"].as_f64() >= put["arrivedMs"].as_f64());
    assert!(put["bytesOut"].as_u64() > Some(100));
    // It began between arrival and answer.
    let at = |field: &str| put[field].as_u64().unwrap();
    let ends = at("operationEndsEmulatedMs");
    assert!(ends - at("arrivedEmulatedMs") >= 2_000, "{put}");
    assert!(ends <= at("answeredEmulatedMs") + 3_000, "{put}");
    assert_eq!((&poll["call"], &poll["kind"]), (&json!("Poll"), &json!("operations")));
    assert_eq!(poll["operation"], put["operation"]);
    assert!(operation.contains(put["operation"].as_str().unwrap()));
}

#[tokio::test]
async fn the_log_is_read_in_pages_and_in_lines() {
    let azure = Azure::start(instant()).await;
    for _ in 0..5 {
        azure.get(GROUP).await;
    }
    let first = azure.control(Method::GET, "requests?limit=2", None).await.body;
    assert_eq!(first["requests"].as_array().unwrap().len(), 2);
    let mut next = first["next"].as_str().map(ToOwned::to_owned);
    let mut numbers = vec![1, 2];
    while let Some(path) = next {
        let page = azure.control(Method::GET, path.strip_prefix("/_emulator/").unwrap(), None).await.body;
        numbers.extend(page["requests"].as_array().unwrap().iter().map(|it| it["number"].as_u64().unwrap()));
        next = page["next"].as_str().map(ToOwned::to_owned);
    }
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
    let lines =
        azure.client.get(azure.url("/_emulator/requests?format=ndjson&after=4")).send().await.unwrap();
    assert_eq!(lines.headers()["content-type"], "application/x-ndjson");
    let lines = lines.text().await.unwrap();
    let numbers: Vec<u64> = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["number"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, [5, 6]);
}

#[tokio::test]
async fn old_entries_go_and_are_counted() {
    let limits = Limits { log_entries_max: 3, ..Limits::default() };
    let azure = Azure::start(Options { limits, ..instant() }).await;
    for _ in 0..5 {
        azure.get(GROUP).await;
    }
    let page = azure.control(Method::GET, "requests", None).await.body;
    assert_eq!((&page["total"], &page["dropped"]), (&json!(6), &json!(3)));
}

#[tokio::test]
async fn no_token_and_no_secret_is_in_the_log_or_the_state() {
    let azure = Azure::start(instant()).await;
    azure.get(GROUP).await;
    let log = serde_json::to_string(&azure.log().await).unwrap();
    let state = azure.state().await.to_string();
    for text in [&log, &state] {
        assert!(!text.contains(&azure.token));
        assert!(!text.contains("client_secret=secret"), "{text}");
    }
}

#[tokio::test]
async fn throttling_is_told_in_headers_and_who_comes_back_too_early_is_in_the_summary() {
    let one = Rate { burst: 2, per_second: 0 };
    let buckets = Some(Buckets { writes: one, ..Buckets::default() });
    let azure = Azure::start(Options {
        cloud: Config { buckets, ..Config::default() },
        prepare: vec![],
        ..options()
    });
    let azure = azure.await;
    let group = |name: &str| format!("/subscriptions/s/resourcegroups/{name}");
    let body = || json!({"location": "eastus"});
    let left = azure.put(&group("a"), body()).await;
    assert_eq!(left.header("x-ms-ratelimit-remaining-subscription-writes"), Some("1"));
    azure.put(&group("b"), body()).await;
    let refused = azure.put(&group("c"), body()).await;
    assert_eq!(refused.status, 429);
    assert!(refused.header("retry-after").unwrap().parse::<u64>().unwrap() >= 1);
    // The very same call again, at once.
    azure.put(&group("c"), body()).await;
    let summary = azure.control(Method::GET, "requests/summary", None).await.body;
    assert_eq!(summary["early"]["count"], 1, "{summary:#}");
    assert_eq!(summary["early"]["calls"][0]["covered"], "bucket");
    assert_eq!(summary["arm"]["buckets"]["writes"], json!({"calls": 4, "throttled": 2}));
    let later = azure.control(Method::GET, "requests/summary?after=4", None).await.body;
    assert_eq!((&later["remembered"], &later["early"]["count"]), (&json!(1), &json!(0)));
    let refused: Vec<&Value> =
        summary["byKind"].as_array().unwrap().iter().filter(|it| it["status"] == "429").collect();
    assert_eq!(refused[0]["kind"], "resourceGroups");
    assert_eq!(refused[0]["count"], 2);
}

#[tokio::test]
async fn every_client_pays_for_itself() {
    let mut azure = Azure::start(instant()).await;
    azure.do_control("buckets", json!({"reads": {"burst": 1, "perSecond": 0}})).await;
    assert_eq!([azure.get(GROUP).await.status, azure.get(GROUP).await.status], [200, 429]);
    let form = [
        ("grant_type", "client_credentials"),
        ("client_id", "another"),
        ("client_secret", "secret"),
        ("scope", SCOPE),
    ];
    let token = azure.ask_for_token("/tenant/oauth2/v2.0/token", &form).await;
    azure.token = token.body["access_token"].as_str().unwrap().to_owned();
    assert_eq!([azure.get(GROUP).await.status, azure.get(GROUP).await.status], [200, 429]);
}
