//! `sluice migrate pods` as an administrator runs it, and a controller that leaves pods alone.

use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};
use sluice_emulator_client::process::Signal;

use super::NOBODY;
use super::api_server::{ApiServer, kubeconfig, status};
use super::process::Scene;

const PATCH: &str = "/api/v1/namespaces/shop/pods/old";

/// A cluster with one pod that the cloud controller manager held; each patch of it gets this answer and is sent on.
fn cluster(
    scene: &Scene,
    answer: impl Fn(Value) -> (u16, Value) + Send + 'static,
) -> (ApiServer, Receiver<String>) {
    let api = ApiServer::start();
    api.kubeconfig(scene.folder());
    let pod = json!({"metadata": {
        "name": "old", "namespace": "shop", "uid": "5e1f0000-0000-4000-8000-000000000007", "resourceVersion": "6",
        "finalizers": ["servicegateway.azure.com/pod-cleanup", "example.com/keep"],
    }});
    let (patched, patches) = channel();
    api.answer(move |heard| match (heard.method.as_str(), heard.path.as_str()) {
        ("GET", "/api/v1/pods") => Some((200, json!({"metadata": {"resourceVersion": "7"}, "items": [pod]}))),
        ("GET", PATCH) => Some((200, pod.clone())),
        ("PATCH", PATCH) => {
            patched.send(heard.body.to_string()).unwrap();
            Some(answer(pod.clone()))
        }
        _ => None,
    });
    (api, patches)
}

#[tokio::test]
async fn without_yes_the_pods_are_shown_and_nothing_is_changed() {
    let scene = Scene::new();
    let (_api, patches) = cluster(&scene, |pod| (200, pod));
    let ended = scene.migrate_pods(&[]).end().await;
    assert_eq!(ended.code, 1, "{}", ended.text);
    ended
        .says("~ shop/old\nPlan: remove the finalizer servicegateway.azure.com/pod-cleanup from 1 of 1 pod.");
    ended.says("no changes made: not a terminal; review the plan above and re-run with --yes");
    let ended = scene.migrate_pods(&["--output", "json"]).end().await;
    assert_eq!(ended.code, 0, "{}", ended.text);
    let json: Value = serde_json::from_str(&ended.text).unwrap();
    assert_eq!(json, json!({"seen": 1, "held": ["shop/old"], "released": 0, "left": []}));
    assert!(patches.try_recv().is_err());
}

#[tokio::test]
async fn with_yes_only_the_finalizer_of_the_cloud_controller_manager_is_removed() {
    let scene = Scene::new();
    let (_api, patches) = cluster(&scene, |pod| (200, pod));
    let ended = scene.migrate_pods(&["--yes"]).end().await;
    assert_eq!(ended.code, 0, "{}", ended.text);
    ended.says("Released: 1 of 1 pod.");
    let patch = patches.try_recv().unwrap();
    assert!(patch.contains(r#"["example.com/keep"]"#) && !patch.contains("pod-cleanup"), "{patch}");
    assert!(patches.try_recv().is_err(), "once");
}

#[tokio::test]
async fn a_pod_that_is_not_released_is_named_and_the_exit_code_is_1() {
    let scene = Scene::new();
    let (_api, patches) = cluster(&scene, |_| (403, status(403, "Forbidden", "a policy says no")));
    let ended = scene.migrate_pods(&["--yes"]).end().await;
    assert_eq!(ended.code, 1, "{}", ended.text);
    ended.says("! shop/old: not released (");
    ended.says("Released: 0 of 1 pod.");
    ended.says("the finalizer is still on 1 of 1 pod");
    assert_eq!(patches.try_iter().count(), 1, "a refusal is not repeated");
}

#[tokio::test]
async fn a_missing_permission_is_5_and_no_pod_is_tried() {
    let scene = Scene::new();
    let (api, patches) = cluster(&scene, |pod| (200, pod));
    let pods = json!([{"metadata": {
        "name": "old", "namespace": "shop", "uid": "u", "resourceVersion": "6",
        "finalizers": ["servicegateway.azure.com/pod-cleanup"],
    }}]);
    api.answer(move |heard| match heard.path.as_str() {
        "/api/v1/pods" => Some((200, json!({"metadata": {"resourceVersion": "7"}, "items": pods}))),
        path if path.ends_with("/selfsubjectaccessreviews") => {
            let is_patch = heard.body["spec"]["resourceAttributes"]["verb"] == "patch";
            Some((201, json!({"status": {"allowed": !is_patch}})))
        }
        _ => None,
    });
    let ended = scene.migrate_pods(&["--yes"]).end().await;
    assert_eq!(ended.code, 5, "{}", ended.text);
    ended.says("lacks these permissions: patch pods at the cluster scope");
    assert!(patches.try_recv().is_err());
    kubeconfig(scene.folder(), NOBODY);
    assert_eq!(scene.migrate_pods(&[]).end().await.code, 5, "no API server");
}

#[tokio::test]
async fn the_controller_patches_no_pod_even_in_a_migration() {
    let scene = Scene::new();
    scene.configure(NOBODY, "  migration: {enabled: true}\n");
    let (_api, patches) = cluster(&scene, |pod| (200, pod));
    let mut running = scene.run(&[]);
    running.wait_for("became leader; listing Kubernetes and Azure").await;
    running.signal(Signal::Terminate).await;
    assert_eq!(running.end().await.code, 0);
    assert!(patches.try_recv().is_err());
}
