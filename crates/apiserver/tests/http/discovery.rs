//! What a client learns before it asks for anything.

use serde_json::json;

use crate::client::Client;

#[tokio::test]
async fn only_who_has_the_token_comes_in_and_health_is_everybodys() {
    let client = Client::new().await;
    for path in ["/api", "/api/v1/pods", "/openapi/v3"] {
        assert_eq!(client.stranger(path).send().await.unwrap().status(), 401, "{path}");
        let wrong = client.stranger(path).bearer_auth("wrong").send().await.unwrap();
        assert_eq!(wrong.status(), 401, "{path}");
    }
    assert_eq!(client.stranger("/readyz").send().await.unwrap().text().await.unwrap(), "ok");
    assert_eq!(client.stranger("/version").send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn the_old_and_the_new_way_to_discover_tell_the_same() {
    let client = Client::new().await;
    let new = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let mut told = Vec::new();
    for (path, root) in [("/api", "/api/v1"), ("/apis", "/apis")] {
        for group in client.get_as(path, new).await.ok()["items"].as_array().unwrap() {
            let name = group["metadata"]["name"].as_str();
            let root = name.map_or(root.to_owned(), |name| format!("/apis/{name}/v1"));
            for resource in group["versions"][0]["resources"].as_array().unwrap() {
                told.push((root.clone(), resource["resource"].clone(), resource["verbs"].clone()));
            }
        }
    }
    assert!(told.len() > 15);
    for (root, name, verbs) in told {
        let old = client.get(&root).await.ok();
        let found = old["resources"].as_array().unwrap().iter().find(|it| it["name"] == name);
        assert_eq!(found.unwrap_or_else(|| panic!("{root}: {name}"))["verbs"], verbs);
    }
}

#[tokio::test]
async fn what_is_not_served_is_refused_and_says_where_to_read() {
    let client = Client::new().await;
    for path in [
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
        "/apis/apps/v1/namespaces/default/statefulsets",
        "/api/v1/persistentvolumes",
        "/openapi/v2",
        "/api/v1/namespaces/default/pods/a/log",
        "/api/v1/namespaces/default/pods/a/eviction",
    ] {
        let words = client.get(path).await.refused(404);
        assert!(words.contains("`kubectl api-resources`"), "{path}: {words}");
    }
    client.get("/nowhere").await.refused(404);
    client.post("/api/v1/namespaces/default/pods/a", json!({})).await.refused(405);
}

#[tokio::test]
async fn reviews_are_answered_with_yes() {
    let client = Client::new().await;
    let review = json!({"spec": {"resourceAttributes": {"verb": "delete", "resource": "pods"}}});
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    assert_eq!(client.post(path, review).await.ok()["status"]["allowed"], true);
    let path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    let rules = client.post(path, json!({"spec": {"namespace": "default"}})).await.ok();
    assert_eq!(rules["status"]["resourceRules"][0]["verbs"], json!(["*"]));
}

#[tokio::test]
async fn openapi_has_a_document_for_every_group_that_it_lists() {
    let client = Client::new().await;
    let index = client.get("/openapi/v3").await.ok();
    let paths = index["paths"].as_object().unwrap();
    assert!(paths.contains_key("api/v1") && paths.contains_key("apis/apps/v1"));
    for entry in paths.values() {
        let document = client.get(entry["serverRelativeURL"].as_str().unwrap()).await.ok();
        assert_eq!(document["openapi"], "3.0.0");
    }
    client.get("/openapi/v3/apis/batch/v1").await.refused(404);
}

#[tokio::test]
async fn the_kubeconfig_is_nobody_elses_and_a_stop_closes_the_door() {
    let client = Client::new().await;
    let text = std::fs::read_to_string(client.folder.path().join("kubeconfig")).unwrap();
    assert!(text.contains(&client.running.url) && text.contains(&client.running.token));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(&client.running.kubeconfig).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{mode:o}");
    }
    let request = client.stranger("/readyz");
    let mut events = client.watch("/api/v1/namespaces?watch=true").await;
    let Client { running, .. } = client;
    running.stop().await;
    while events.next().await.is_some() {}
    assert!(request.send().await.is_err());
}
