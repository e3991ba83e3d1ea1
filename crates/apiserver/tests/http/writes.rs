//! Writes: create, replace, patch, delete, and their parts.

use serde_json::{Value, json};

use crate::client::{Client, MAPS};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const SERVICES: &str = "/api/v1/namespaces/default/services";

fn deployment() -> Value {
    json!({"metadata": {"name": "web"}, "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "i:1"}]}}}})
}

#[tokio::test]
async fn an_object_is_made_once_and_replaced_from_its_version() {
    let client = Client::new().await;
    let made = client.config_map("a", "x").await;
    assert_eq!((&made["kind"], &made["apiVersion"]), (&json!("ConfigMap"), &json!("v1")));
    let again = json!({"metadata": {"name": "a"}});
    let words = client.post(MAPS, again).await.refused(409);
    assert_eq!(words, "configmaps \"a\" already exists");
    let mut changed = made.clone();
    changed["data"]["a"] = json!("2");
    client.put(&format!("{MAPS}/a"), changed.clone()).await.ok();
    client.put(&format!("{MAPS}/a"), changed.clone()).await.refused(409);
    let words = client.put(&format!("{MAPS}/b"), changed).await.refused(400);
    assert_eq!(words, "the name of the object (a) does not match the name on the URL (b)");
    let words = client.get(&format!("{MAPS}/zz")).await.refused(404);
    assert_eq!(words, "configmaps \"zz\" not found");
    let wrong = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}});
    client.post(MAPS, wrong).await.refused(400);
    let elsewhere = json!({"metadata": {"name": "x", "namespace": "other"}});
    client.post(MAPS, elsewhere).await.refused(400);
}

#[tokio::test]
async fn unknown_fields_are_warned_of_or_refused_as_the_client_wishes() {
    let client = Client::new().await;
    let with = |name: &str| json!({"metadata": {"name": name}, "dta": {"a": "1"}});
    let answer = client.post(MAPS, with("a")).await;
    assert_eq!(answer.warnings, ["299 - \"unknown field \\\"dta\\\"\""]);
    assert!(answer.ok().get("dta").is_none());
    assert!(client.post(&format!("{MAPS}?fieldValidation=Ignore"), with("b")).await.warnings.is_empty());
    let words = client.post(&format!("{MAPS}?fieldValidation=Strict"), with("c")).await.refused(400);
    assert!(words.ends_with("strict decoding error: unknown field \"dta\""), "{words}");
    let merge = "application/merge-patch+json";
    let path = format!("{MAPS}/a?fieldValidation=Strict");
    let words = client.patch(&path, merge, json!({"dta": {}})).await.refused(422);
    assert!(words.ends_with("strict decoding error: unknown field \"dta\""), "{words}");
}

#[tokio::test]
async fn a_dry_run_leaves_nothing_behind() {
    let client = Client::new().await;
    let body = json!({"metadata": {"name": "dry"}});
    client.post(&format!("{MAPS}?dryRun=All"), body.clone()).await.ok();
    client.get(&format!("{MAPS}/dry")).await.refused(404);
    client.post(&format!("{MAPS}?dryRun=Some"), body).await.refused(422);
}

#[tokio::test]
async fn every_kind_of_patch_is_taken_and_others_are_not() {
    let client = Client::new().await;
    client.post(DEPLOYMENTS, deployment()).await.ok();
    let path = format!("{DEPLOYMENTS}/web");
    let operations = json!([{"op": "replace", "path": "/spec/replicas", "value": 3}]);
    let now = client.patch(&path, "application/json-patch+json", operations).await.ok();
    assert_eq!((&now["spec"]["replicas"], &now["metadata"]["generation"]), (&json!(3), &json!(2)));
    let containers = json!({"spec": {"template": {"spec": {"containers": [{"name": "d", "image": "j"}]}}}});
    let now = client.patch(&path, "application/strategic-merge-patch+json", containers.clone()).await.ok();
    assert_eq!(now["spec"]["template"]["spec"]["containers"].as_array().unwrap().len(), 2);
    let now = client.patch(&path, "application/merge-patch+json", containers).await.ok();
    assert_eq!(now["spec"]["template"]["spec"]["containers"].as_array().unwrap().len(), 1);
    let applied = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": 9}});
    let apply = "application/apply-patch+yaml";
    client.patch(&path, apply, applied.clone()).await.refused(422);
    let words = client.patch(&format!("{path}?fieldManager=me"), apply, applied.clone()).await.refused(409);
    assert!(words.starts_with("Apply failed with 1 conflict"), "{words}");
    let now = client.patch(&format!("{path}?fieldManager=me&force=true"), apply, applied).await.ok();
    assert_eq!(now["spec"]["replicas"], 9);
    client.patch(&path, "text/plain", json!({})).await.refused(415);
    let words = client.patch(&path, "application/merge-patch+json", json!({"metadata": {"name": "x"}})).await;
    assert_eq!(words.refused(400), "the name of the object (x) does not match the name on the URL (web)");
}

#[tokio::test]
async fn an_apply_makes_what_is_not_there() {
    let client = Client::new().await;
    let body = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"},
        "spec": {"ports": [{"port": 80}], "selector": {"a": "b"}}});
    let path = format!("{SERVICES}/s?fieldManager=me");
    let answer = client.patch(&path, "application/apply-patch+yaml", body).await;
    assert_eq!(answer.status, 201);
    let made = answer.ok();
    assert_eq!(
        made["metadata"]["managedFields"][0]["fieldsV1"],
        json!({"f:spec": {"f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}},
            "f:selector": {}}})
    );
    assert_eq!(made["spec"]["ports"][0]["targetPort"], 80);
}

#[tokio::test]
async fn status_and_scale_are_parts_of_their_own() {
    let client = Client::new().await;
    client.post(DEPLOYMENTS, deployment()).await.ok();
    let merge = "application/merge-patch+json";
    let both = json!({"spec": {"replicas": 7}, "status": {"observedGeneration": 5}});
    let now = client.patch(&format!("{DEPLOYMENTS}/web/status"), merge, both.clone()).await.ok();
    assert_eq!(now["spec"]["replicas"], 2);
    assert_eq!(now["status"]["observedGeneration"], 5);
    let now =
        client.patch(&format!("{DEPLOYMENTS}/web"), merge, json!({"status": {"replicas": 99}})).await.ok();
    assert_ne!(now["status"]["replicas"], 99);
    let mut scale = client.get(&format!("{DEPLOYMENTS}/web/scale")).await.ok();
    assert_eq!((&scale["kind"], &scale["spec"]["replicas"]), (&json!("Scale"), &json!(2)));
    assert_eq!(scale["status"]["selector"], "app=web");
    scale["spec"]["replicas"] = json!(4);
    scale["metadata"]["resourceVersion"] = json!("1");
    client.put(&format!("{DEPLOYMENTS}/web/scale"), scale).await.refused(409);
    let more = json!({"spec": {"replicas": 5}});
    client.patch(&format!("{DEPLOYMENTS}/web/scale"), merge, more).await.ok();
    assert_eq!(client.get(&format!("{DEPLOYMENTS}/web")).await.ok()["spec"]["replicas"], 5);
    client.get("/api/v1/namespaces/default/configmaps/a/status").await.refused(404);
}

#[tokio::test]
async fn a_deletion_waits_for_finalizers_and_asks_for_preconditions() {
    let client = Client::new().await;
    let held = json!({"metadata": {"name": "held", "finalizers": ["example.com/hold"]}});
    client.post(MAPS, held).await.ok();
    let path = format!("{MAPS}/held");
    let wrong = json!({"preconditions": {"uid": "other"}});
    client.delete(&path, wrong).await.refused(409);
    let waiting = client.delete(&path, json!({"propagationPolicy": "Background"})).await.ok();
    assert!(waiting["metadata"]["deletionTimestamp"].is_string());
    let patch = json!({"metadata": {"finalizers": null}});
    client.patch(&path, "application/merge-patch+json", patch).await.ok();
    client.get(&path).await.refused(404);
    client.config_map("plain", "x").await;
    let gone = client.delete(&format!("{MAPS}/plain"), json!({})).await.ok();
    assert_eq!((&gone["status"], &gone["details"]["name"]), (&json!("Success"), &json!("plain")));
    client.delete(&path, json!({"propagationPolicy": "Sideways"})).await.refused(422);
}

#[tokio::test]
async fn a_collection_is_deleted_by_its_selector() {
    let client = Client::new().await;
    for (name, label) in [("a", "go"), ("b", "go"), ("c", "stay")] {
        client.config_map(name, label).await;
    }
    let gone = client.delete(&format!("{MAPS}?labelSelector=app%3Dgo"), json!({})).await.ok();
    assert_eq!(gone["items"].as_array().unwrap().len(), 2);
    client.get(&format!("{MAPS}/a")).await.refused(404);
    client.get(&format!("{MAPS}/c")).await.ok();
    client.delete("/api/v1/namespaces", json!({})).await.refused(405);
}

#[tokio::test]
async fn nonsense_is_refused_and_does_no_harm() {
    let client = Client::new().await;
    let request = client.request(reqwest::Method::POST, MAPS).header("content-type", "application/json");
    assert_eq!(request.body("{").send().await.unwrap().status(), 400);
    let request = client.request(reqwest::Method::POST, MAPS).header("content-type", "text/plain");
    assert_eq!(request.body("{}").send().await.unwrap().status(), 415);
    client.post(MAPS, json!([1])).await.refused(400);
    client.post(MAPS, json!({"metadata": 7})).await.refused(400);
    let big = "x".repeat(4 * 1024 * 1024);
    let request = client.request(reqwest::Method::POST, MAPS).header("content-type", "application/json");
    assert_eq!(request.body(big).send().await.unwrap().status(), 413);
    client.get(MAPS).await.ok();
}

#[tokio::test]
async fn an_event_of_the_newer_group_is_read_by_its_schema_however_it_comes() {
    let client = Client::new().await;
    let events = "/apis/events.k8s.io/v1/namespaces/default/events";
    let event = json!({"metadata": {"name": "e"}, "reason": "Tested", "note": "words", "type": "Normal",
        "action": "Test", "reportingController": "test/er", "reportingInstance": "t",
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "regarding": {"kind": "Pod", "name": "p", "namespace": "default"}});
    client.post(events, event).await.ok();
    let (path, merge) = (format!("{events}/e"), "application/merge-patch+json");
    client.patch(&path, merge, json!({"note": 5})).await.refused(422);
    client.patch(&path, merge, json!(5)).await.refused(422);
    let answer = client.patch(&path, merge, json!({"note": "others", "bogus": {"a": 1}})).await;
    assert_eq!(answer.warnings, ["299 - \"unknown field \\\"bogus\\\"\""]);
    assert!(answer.ok().get("bogus").is_none());
    let core = client.get("/api/v1/namespaces/default/events/e").await.ok();
    assert_eq!((&core["message"], core.get("bogus")), (&json!("others"), None));
}

#[tokio::test]
async fn a_body_that_is_no_object_is_refused_for_every_kind() {
    let client = Client::new().await;
    for path in ["/apis/events.k8s.io/v1/namespaces/default/events", MAPS, DEPLOYMENTS] {
        for body in [json!(5), json!([]), json!("x"), Value::Null] {
            let words = client.post(path, body).await.refused(400);
            assert!(words.ends_with("the object provided is not a JSON object"), "{path}: {words}");
        }
    }
}

#[tokio::test]
async fn a_scale_wants_a_number_that_replicas_can_have() {
    let client = Client::new().await;
    client.post(DEPLOYMENTS, deployment()).await.ok();
    let (path, merge) = (format!("{DEPLOYMENTS}/web/scale"), "application/merge-patch+json");
    for wanted in [json!(5_000_000_000_i64), json!("5"), json!(1.5)] {
        let scale = json!({"metadata": {"name": "web"}, "spec": {"replicas": wanted}});
        client.put(&path, scale.clone()).await.refused(400);
        client.patch(&path, merge, scale).await.refused(400);
    }
    client.put(&path, json!(5)).await.refused(400);
    assert_eq!(client.get(&path).await.ok()["spec"]["replicas"], 2);
    client.patch(&path, merge, json!({"spec": {"replicas": 3}})).await.ok();
    assert_eq!(client.get(&path).await.ok()["spec"]["replicas"], 3);
}

#[tokio::test]
async fn the_pace_of_a_rolling_update_is_a_number_or_a_percentage() {
    let client = Client::new().await;
    let with = |surge: Value, unavailable: Value| {
        let mut body = deployment();
        let rolling = json!({"maxSurge": surge, "maxUnavailable": unavailable});
        body["spec"]["strategy"] = json!({"type": "RollingUpdate", "rollingUpdate": rolling});
        body
    };
    let field = "Deployment.apps \"web\" is invalid: spec.strategy.rollingUpdate";
    let percent = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', \
                   regex used for validation is '[0-9]+%')";
    for (surge, unavailable, words) in [
        (json!("abc"), json!(1), format!("maxSurge: Invalid value: \"abc\": {percent}")),
        (json!(1), json!("-5%"), format!("maxUnavailable: Invalid value: \"-5%\": {percent}")),
        (json!(-3), json!(1), "maxSurge: Invalid value: -3: must be greater than or equal to 0".to_owned()),
        (
            json!(1),
            json!("101%"),
            "maxUnavailable: Invalid value: \"101%\": must not be greater than 100%".to_owned(),
        ),
    ] {
        assert_eq!(
            client.post(DEPLOYMENTS, with(surge, unavailable)).await.refused(422),
            format!("{field}.{words}")
        );
    }
    client.post(DEPLOYMENTS, with(json!(3_000_000_000_i64), json!(1))).await.refused(422);
    client.post(DEPLOYMENTS, with(json!("200%"), json!("100%"))).await.ok();
}
