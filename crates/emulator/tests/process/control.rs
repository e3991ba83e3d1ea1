//! The control API: helpful to whoever asks rightly, and to whoever does not.

use reqwest::Method;
use serde_json::{Value, json};
use sluice_emulator::Options;

use crate::support::{Azure, GROUP, instant, options, public_ip, resource};

#[tokio::test]
async fn the_index_lists_calls_that_are_there() {
    let azure = Azure::start(instant()).await;
    let index = azure.control(Method::GET, "", None).await.body;
    let calls = index["calls"].as_array().unwrap();
    assert!(calls.len() > 15);
    for call in calls {
        let (method, path) = call["call"].as_str().unwrap().split_once(' ').unwrap();
        let path = path.strip_prefix("/_emulator/").unwrap().replace("{rule}", "1");
        let answer = azure.control(method.parse().unwrap(), &path, None).await;
        // Some need a body; none is unknown, and none has another method.
        assert!(!matches!(answer.status, 405), "{call}: {answer:?}");
        let message = answer.body["error"]["message"].as_str().unwrap_or("");
        assert!(!message.contains("known calls:"), "{call}: {answer:?}");
    }
}

#[tokio::test]
async fn mistakes_are_answered_with_what_would_be_right() {
    let azure = Azure::start(instant()).await;
    for (method, path, body, status, word) in [
        (Method::GET, "nothing", None, 404, "GET state"),
        (Method::PUT, "state", None, 405, "use GET"),
        (Method::POST, "faults", None, 400, "not valid JSON"),
        (Method::POST, "faults", Some(json!({"fault": "hung"})), 400, "hang"),
        (Method::POST, "faults", Some(json!([{"fault": "hang"}, {"fault": "hung"}])), 400, "hang"),
        (Method::GET, "faults/9", None, 404, "rule 9 not found"),
        (Method::POST, "tamper", Some(json!({"do": "nothing"})), 400, "unregister"),
        (Method::POST, "quota", Some(json!({"ips": 1})), 400, "publicIps"),
        (Method::POST, "buckets", Some(json!({"writes": 1})), 400, "burst"),
        (Method::POST, "slow", Some(json!({"factor": 0})), 400, "1 or more"),
        (Method::POST, "slow", Some(json!({})), 400, "factor"),
        (Method::POST, "poison", Some(json!({"address": "web"})), 400, "IP address"),
        (Method::POST, "advance", Some(json!({"seconds": -1})), 400, "seconds"),
        (Method::GET, "requests?limit=many", None, 400, "limit"),
        (Method::GET, "requests?format=xml", None, 400, "ndjson"),
    ] {
        let answer = azure.control(method.clone(), path, body).await;
        assert_eq!(answer.status, status, "{method} {path}: {answer:?}");
        let message = answer.body["error"]["message"].as_str().unwrap();
        assert!(message.contains(word), "{method} {path}: {message}");
    }
    // Of a list with a mistake in it nothing is taken.
    assert_eq!(azure.control(Method::GET, "faults", None).await.body, json!([]));
}

#[tokio::test]
async fn a_page_in_a_browser_may_not_use_it() {
    let azure = Azure::start(instant()).await;
    let url = azure.url("/_emulator/reset");
    let page = azure.client.post(&url).header("origin", "https://evil.example").send().await.unwrap();
    assert_eq!(page.status(), 403);
    let page = azure.client.post(&url).header("sec-fetch-site", "cross-site").send().await.unwrap();
    assert_eq!(page.status(), 403);
    let typed =
        azure.client.get(azure.url("/_emulator/")).header("sec-fetch-site", "none").send().await.unwrap();
    assert_eq!(typed.status(), 200);
}

#[tokio::test]
async fn rules_come_and_go() {
    let azure = Azure::start(instant()).await;
    let rules = azure.do_control("faults", json!([{"fault": "hang"}, {"fault": "serverError"}])).await;
    let numbers: Vec<u64> = rules.as_array().unwrap().iter().map(|it| it["rule"].as_u64().unwrap()).collect();
    let [hang, error] = numbers[..] else { panic!("{rules}") };
    azure.control(Method::DELETE, &format!("faults/{hang}"), None).await;
    assert_eq!(azure.get(GROUP).await.status, 500);
    let shown = azure.control(Method::GET, &format!("faults/{error}"), None).await.body;
    assert_eq!((&shown["struck"], &shown["fault"]), (&json!(1), &json!("serverError")));
    azure.control(Method::DELETE, "faults", None).await;
    assert_eq!(azure.get(GROUP).await.status, 200);
}

#[tokio::test]
async fn somebody_elses_work_is_free_done_at_once_and_seen_by_everybody() {
    let azure = Azure::start(options()).await;
    let theirs = resource("publicIPAddresses", "theirs");
    let before = azure.get(GROUP).await;
    azure.do_control("tamper", json!({"do": "put", "id": theirs, "body": public_ip()})).await;
    let shown = azure.get(&theirs).await;
    assert_eq!(shown.body["properties"]["provisioningState"], "Succeeded");
    assert!(shown.body["properties"]["ipAddress"].is_string());
    // They have paid nothing: a write is still the first of two hundred.
    drop(before);
    let ours = azure.put(&resource("publicIPAddresses", "ours"), public_ip()).await;
    assert_eq!(ours.header("x-ms-ratelimit-remaining-subscription-writes"), Some("199"));
    azure.do_control("tamper", json!({"do": "delete", "id": theirs})).await;
    assert_eq!(azure.get(&theirs).await.status, 404);
    let refused = azure.control(Method::POST, "tamper", Some(json!({"do": "delete", "id": theirs}))).await;
    assert_eq!(refused.status, 404, "{refused:?}");
}

#[tokio::test]
async fn the_state_has_everything_and_asking_for_it_lets_operations_end() {
    // A clock so slow that nothing ends by itself before somebody has looked.
    let options = Options { time_factor: 0.1, ..options() };
    let azure = Azure::start(options).await.with_gateway().await.with_load_balancer("web").await;
    let state = azure.state().await;
    assert_eq!(state["resourceGroups"], json!([GROUP]));
    assert_eq!(state["virtualNetworks"][0]["provisioningState"], "Succeeded");
    assert_eq!(state["subnets"].as_array().unwrap().len(), 1);
    let used_by = state["publicIPAddresses"][0]["usedBy"].as_str().unwrap();
    assert!(used_by.starts_with(&resource("loadBalancers", "web")), "{used_by}");
    assert_eq!(state["loadBalancers"][0]["rules"][0]["backendPort"], 8080);
    assert_eq!(state["serviceGateways"][0]["services"], json!([]));
    azure.delete(&resource("loadBalancers", "web")).await;
    let running = azure.state().await;
    assert_eq!(running["operations"][0]["work"], "delete");
    assert_eq!(running["loadBalancers"][0]["provisioningState"], "Deleting");
    azure.pass(60).await;
    assert_eq!(azure.state().await["loadBalancers"], Value::Array(Vec::new()));
}

#[tokio::test]
async fn limits_and_quotas_can_be_changed_while_it_runs() {
    let azure = Azure::start(instant()).await;
    azure.do_control("quota", json!({"publicIps": 1})).await;
    assert_eq!(azure.put(&resource("publicIPAddresses", "a"), public_ip()).await.status, 201);
    let refused = azure.put(&resource("publicIPAddresses", "b"), public_ip()).await;
    assert_eq!(refused.status, 400, "{refused:?}");
    azure.do_control("buckets", json!({"reads": {"burst": 1, "perSecond": 0}})).await;
    assert_eq!(azure.get(GROUP).await.status, 200);
    assert_eq!(azure.get(GROUP).await.status, 429);
    azure.control(Method::DELETE, "buckets", None).await;
    assert_eq!(azure.get(GROUP).await.status, 200);
    assert_eq!(azure.control(Method::GET, "buckets", None).await.body, Value::Null);
}
