//! Watches: from a version, from now, with a list before, and too late.

use serde_json::json;

use crate::client::{Client, MAPS};

#[tokio::test]
async fn a_watch_from_a_version_tells_what_came_after_it() {
    let client = Client::new().await;
    client.config_map("before", "x").await;
    let version = client.get(MAPS).await.ok()["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    client.config_map("a", "x").await;
    let mut events = client.watch(&format!("{MAPS}?watch=1&resourceVersion={version}")).await;
    assert_eq!(events.told().await, ("ADDED".into(), "a".into()));
    let merge = "application/merge-patch+json";
    client.patch(&format!("{MAPS}/a"), merge, json!({"data": {"a": "2"}})).await.ok();
    assert_eq!(events.told().await, ("MODIFIED".into(), "a".into()));
    client.delete(&format!("{MAPS}/a"), json!({})).await.ok();
    assert_eq!(events.told().await, ("DELETED".into(), "a".into()));
}

#[tokio::test]
async fn a_streamed_list_ends_with_its_bookmark_and_goes_on_as_a_watch() {
    let client = Client::new().await;
    client.config_map("a", "stream").await;
    client.config_map("b", "stream").await;
    let query =
        "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut events = client.watch(&format!("{MAPS}?{query}&labelSelector=app%3Dstream")).await;
    assert_eq!(events.told().await, ("ADDED".into(), "a".into()));
    assert_eq!(events.told().await, ("ADDED".into(), "b".into()));
    let end = events.next().await.unwrap();
    assert_eq!((&end["type"], &end["object"]["kind"]), (&json!("BOOKMARK"), &json!("ConfigMap")));
    assert_eq!(end["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    let version: u64 = end["object"]["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
    client.config_map("c", "stream").await;
    let next = events.next().await.unwrap();
    assert_eq!((&next["type"], &next["object"]["metadata"]["name"]), (&json!("ADDED"), &json!("c")));
    let later: u64 = next["object"]["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
    assert!(later > version);
    client.get(&format!("{MAPS}?watch=true&sendInitialEvents=true")).await.refused(422);
}

#[tokio::test]
async fn a_version_that_is_forgotten_is_gone() {
    let client = Client::new().await;
    let version = client.running.store.version();
    client.config_map("a", "x").await;
    client.running.store.forget_changes();
    let mut events = client.watch(&format!("{MAPS}?watch=true&resourceVersion={version}")).await;
    let error = events.next().await.unwrap();
    assert_eq!((&error["type"], &error["object"]["code"]), (&json!("ERROR"), &json!(410)));
    assert_eq!(error["object"]["reason"], "Expired");
    assert!(events.next().await.is_none());
}

#[tokio::test]
async fn a_watch_without_initial_events_has_the_same_rules_as_any_other() {
    let client = Client::new().await;
    client.config_map("before", "x").await;
    let version = client.running.store.version();
    let path = format!("{MAPS}?watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan");
    // Were it served, it would be silent; it ends by itself then.
    let future = format!("{path}&timeoutSeconds=1&resourceVersion={}", version + 1_000);
    let words = client.get(&future).await.refused(504);
    assert!(words.contains("Too large resource version"), "{words}");
    let mut anywhere = client.watch(&format!("{path}&resourceVersion=0")).await;
    let mut since = client.watch(&format!("{path}&resourceVersion={version}")).await;
    client.config_map("after", "x").await;
    assert_eq!(anywhere.told().await, ("ADDED".into(), "after".into()));
    assert_eq!(since.told().await, ("ADDED".into(), "after".into()));
    client.running.store.forget_changes();
    let mut events = client.watch(&format!("{path}&resourceVersion={version}")).await;
    let error = events.next().await.unwrap();
    assert_eq!((&error["type"], &error["object"]["code"]), (&json!("ERROR"), &json!(410)));
}

#[tokio::test]
async fn a_watch_ends_when_its_time_is_over() {
    let client = Client::new().await;
    let mut events = client.watch(&format!("{MAPS}?watch=true&resourceVersion=0&timeoutSeconds=1")).await;
    while events.next().await.is_some() {}
}

#[tokio::test]
async fn a_watch_that_wants_to_last_longer_than_time_does_is_served() {
    let client = Client::new().await;
    let mut events = client.watch(&format!("{MAPS}?watch=true&timeoutSeconds={}", u64::MAX)).await;
    client.config_map("a", "x").await;
    while events.told().await != ("ADDED".into(), "a".into()) {}
}

#[tokio::test]
async fn the_columns_of_a_table_come_with_the_first_event_only() {
    let client = Client::new().await;
    client.config_map("a", "table").await;
    client.config_map("b", "table").await;
    let path = format!("{MAPS}?watch=true&labelSelector=app%3Dtable");
    let request = client.request(reqwest::Method::GET, &path);
    let mut response =
        request.header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io").send().await.unwrap();
    let mut text = String::new();
    while text.lines().count() < 2 {
        text.push_str(&String::from_utf8_lossy(&response.chunk().await.unwrap().unwrap()));
    }
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines[0]["object"]["columnDefinitions"].is_array());
    assert!(lines[1]["object"]["columnDefinitions"].is_null());
    assert_eq!(lines[1]["object"]["rows"][0]["cells"][0], "b");
}

#[tokio::test]
async fn both_groups_of_events_show_the_same_events() {
    let client = Client::new().await;
    let mut new =
        client.watch("/apis/events.k8s.io/v1/events?watch=true&fieldSelector=reason%3DTested").await;
    let event = json!({"metadata": {"name": "e"}, "reason": "Tested", "message": "words", "type": "Normal",
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"}});
    client.post("/api/v1/namespaces/default/events", event).await.ok();
    let told = new.next().await.unwrap();
    assert_eq!(
        (&told["object"]["note"], &told["object"]["regarding"]["name"]),
        (&json!("words"), &json!("p"))
    );
    let path = "/apis/events.k8s.io/v1/namespaces/default/events/e";
    let merge = "application/merge-patch+json";
    client.patch(path, merge, json!({"note": "other words"})).await.ok();
    let core = client.get("/api/v1/namespaces/default/events/e").await.ok();
    assert_eq!((&core["message"], &core["apiVersion"]), (&json!("other words"), &json!("v1")));
}
