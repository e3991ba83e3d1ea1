//! `sluice run` as the kubelet and people start it: bad starts with one clear message each, and what
//! signals do. The API server is a small one of our own; the real one is met in `e2e/`.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test that meets a surprise should end there")]

mod api_server;
mod exits;
mod migrate_pods;
mod process;

use serde_json::json;

use api_server::{ApiServer, CLUSTER, kubeconfig, status};
use process::{Scene, emulator};
use sluice_emulator_client::process::Signal;

/// A port that nobody listens on.
const NOBODY: &str = "127.0.0.1:1";

#[tokio::test]
async fn a_broken_configuration_is_named_key_by_key() {
    let scene = Scene::new();
    scene.configure(NOBODY, "  concurency: 3\n  listen: {api: somewhere}\n");
    let ended = scene.run(&[]).end().await;
    assert_eq!(ended.code, 2);
    ended.says("did you mean sluice.concurrency?");
    ended.says("sluice.listen.api");
    assert_eq!(ended.text.matches("error:").count(), 1, "one message: {}", ended.text);
    ended.keeps_the_secret();
}

#[tokio::test]
async fn a_configuration_that_is_not_there_is_no_riddle() {
    let scene = Scene::new();
    let ended = scene.run(&[]).end().await;
    assert_eq!(ended.code, 2);
    ended.says("azure.yaml: cannot be read");
}

#[tokio::test]
async fn without_a_credential_the_keys_that_would_give_one_are_named() {
    let scene = Scene::new();
    scene.configure(NOBODY, "");
    scene.edit("aadClientSecret: s3cret-of-azure\n", "");
    let ended = scene.run(&[]).end().await;
    assert_eq!(ended.code, 2);
    ended.says("aadClientSecret");
}

#[tokio::test]
async fn without_an_api_server_its_address_is_named() {
    let scene = Scene::new();
    scene.configure(NOBODY, "");
    kubeconfig(scene.folder(), NOBODY);
    let ended = scene.run(&[]).end().await;
    assert_eq!(ended.code, 5);
    ended.says("cannot reach the Kubernetes API server at http://127.0.0.1:1");
    ended.keeps_the_secret();
}

#[tokio::test]
async fn a_kubeconfig_that_is_not_there_is_named() {
    let scene = Scene::new();
    scene.configure(NOBODY, "");
    let ended = scene.run(&[]).end().await;
    assert_eq!(ended.code, 5);
    ended.says(&format!("cannot use the kubeconfig {}/kubeconfig: ", scene.folder().display()));
}

#[tokio::test]
async fn a_missing_permission_is_named_and_a_missing_event_is_borne() {
    let (scene, api) = (Scene::new(), ApiServer::start());
    scene.configure(NOBODY, "");
    api.kubeconfig(scene.folder());
    api.answer(|heard| {
        let review = heard.path.ends_with("/selfsubjectaccessreviews");
        review.then(|| (201, json!({"status": {"allowed": false}})))
    });
    let ended = scene.run(&[]).end().await;
    assert_eq!(ended.code, 5);
    ended.says("list services at the cluster scope");
    ended.says("patch services/status at the cluster scope");
    ended.says("update leases.coordination.k8s.io in namespace sluice-system");
    let (log, message) = ended.text.split_once("error:").unwrap();
    assert!(log.contains("permission=\"create events"), "it is only warned of: {log}");
    assert!(!message.contains("events"), "{message}");
}

#[tokio::test]
async fn beside_a_cloud_controller_manager_in_service_gateway_mode_nothing_is_begun() {
    let (scene, api) = (Scene::new(), ApiServer::start());
    scene.configure(NOBODY, "");
    api.kubeconfig(scene.folder());
    api.answer(|heard| {
        if heard.path.ends_with("/leases/cloud-controller-manager") {
            let renewed = jiff::Timestamp::now().to_string();
            let spec = json!({"holderIdentity": "ccm-1", "leaseDurationSeconds": 15, "renewTime": renewed});
            return Some((200, json!({"metadata": {"name": "cloud-controller-manager"}, "spec": spec})));
        }
        (heard.path == "/api/v1/services" && !heard.query.contains("watch")).then(|| {
            let finalizers = ["servicegateway.azure.com/service-cleanup"];
            let metadata = json!({"namespace": "shop", "name": "web", "finalizers": finalizers});
            let service = json!({"metadata": metadata, "spec": {"type": "LoadBalancer"}});
            (200, json!({"metadata": {"resourceVersion": "7"}, "items": [service]}))
        })
    });
    let ended = scene.run(&[]).end().await;
    assert_eq!(ended.code, 1, "{}", ended.text);
    ended.says("another controller uses the gateway: cloud controller manager: running (ccm-1; ");
    ended.says("servicegateway.azure.com/service-cleanup is on 1 Service: shop/web)");
    ended.says("hint: set serviceGatewayEnabled: false in the cloud config");
    assert_eq!(api.holder(), None);
    // Whoever has switched it off says so.
    let mut running = scene.run(&["--set", "sluice.migration.enabled=true"]);
    running.wait_for("as sluice.migration.enabled: true asserts").await;
    running.wait_for("role=\"leader\"").await;
    running.signal(Signal::Terminate).await;
    assert_eq!(running.end().await.code, 0);
}

#[tokio::test]
async fn a_credential_that_is_refused_ends_the_start_and_is_not_repeated() {
    let (scene, api) = (Scene::new(), ApiServer::start());
    let emulator =
        emulator(&scene, &["--client", "11111111-1111-1111-1111-111111111111=the-right-one"]).await;
    scene.configure_for(&emulator, "");
    api.kubeconfig(scene.folder());
    let ended = scene.run(&[]).end().await;
    assert_eq!(ended.code, 6);
    ended.says("Azure rejected the credential");
    ended.keeps_the_secret();
}

#[tokio::test]
async fn an_azure_that_is_away_is_waited_for_in_plain_sight_and_a_stop_gives_the_lease_back() {
    let (scene, api) = (Scene::new(), ApiServer::start());
    scene.configure(NOBODY, "");
    api.kubeconfig(scene.folder());
    let mut running = scene.run(&[]);
    running.wait_for("no Azure access token yet; retrying").await;
    running.wait_for("role=\"leader\"").await;
    running.wait_for("list load-balancers").await;
    running.wait_for(&format!("cluster_id=\"{CLUSTER}\"")).await;
    assert!(running.ask("health", "/livez").await.contains("ok"));
    let ready = running.ask("health", "/readyz?verbose").await;
    assert!(ready.contains("[+] role: leader") && ready.contains("initial sync"), "{ready}");
    assert!(api.holder().is_some());
    running.signal(Signal::Terminate).await;
    let ended = running.end().await;
    assert_eq!(ended.code, 0, "{}", ended.text);
    ended.says("lease released");
    assert_eq!(api.holder(), None);
    ended.keeps_the_secret();
}

#[tokio::test]
async fn without_an_election_it_leads_at_once_and_touches_no_lease() {
    let (scene, api) = (Scene::new(), ApiServer::start());
    scene.configure(NOBODY, "");
    api.kubeconfig(scene.folder());
    let mut running = scene.run(&["--set", "sluice.leaderElection.enabled=false"]);
    running.wait_for("leader election is disabled; run exactly one replica").await;
    running.wait_for("became leader; listing Kubernetes and Azure").await;
    running.signal(Signal::Terminate).await;
    assert_eq!(running.end().await.code, 0);
    assert_eq!(api.holder(), None);
}

#[tokio::test]
async fn a_port_that_somebody_else_has_is_named_before_anything_is_begun() {
    let scene = Scene::new();
    scene.configure(NOBODY, "");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let ended = scene.run(&["--set", &format!("sluice.listen.health={address}")]).end().await;
    assert_eq!(ended.code, 3);
    ended.says(&format!("cannot listen on {address} (sluice.listen.health)"));
}

#[tokio::test]
async fn who_cannot_renew_the_lease_ends_with_a_code_that_says_so() {
    let (scene, api) = (Scene::new(), ApiServer::start());
    let lease = "  leaderElection: {leaseDuration: 3s, renewDeadline: 2s, retryPeriod: 500ms}\n";
    scene.configure(NOBODY, lease);
    api.kubeconfig(scene.folder());
    let mut running = scene.run(&["--set", "sluice.azure.connectTimeout=1s"]);
    running.wait_for("role=\"leader\"").await;
    api.answer(|heard| {
        let is_lease = heard.path.contains("/leases");
        is_lease.then(|| (500, status(500, "InternalError", "etcd is away")))
    });
    let ended = running.end().await;
    assert_eq!(ended.code, 7, "{}", ended.text);
    ended.says("error: lease lost: ");
    ended.says("not renewed within 2 s");
    ended.says("etcd is away");
}

#[tokio::test]
async fn the_log_level_changes_by_signal_and_by_configuration() {
    let (scene, api) = (Scene::new(), ApiServer::start());
    scene.configure(NOBODY, "  log: {format: json, level: warn}\n");
    api.kubeconfig(scene.folder());
    let mut running = scene.run(&[]);
    running.wait_for("no Azure access token yet").await;
    running.wait_for("list load-balancers").await;
    assert!(!running.text.contains("INFO"), "at first only warnings: {}", running.text);
    running.signal(Signal::User1).await;
    let line = running.wait_for("log level changed").await;
    let line: serde_json::Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("no JSON: {line}"));
    assert_eq!((&line["level"], &line["filter"]), (&json!("INFO"), &json!("warn,sluice=debug")));
    running.wait_for("\"level\":\"DEBUG\"").await;
    // What is broken is said, and changes nothing.
    scene.edit("level: warn", "level: [");
    running.signal(Signal::Hangup).await;
    running.wait_for("log level not changed").await;
    scene.edit("level: [", "level: sluice=info");
    running.signal(Signal::Hangup).await;
    let line = running.wait_for("log level changed").await;
    assert!(line.contains("sluice=info"), "{line}");
    running.signal(Signal::Interrupt).await;
    let ended = running.end().await;
    assert_eq!(ended.code, 0);
    ended.keeps_the_secret();
}

#[tokio::test]
async fn the_configuration_is_printed_without_secrets_and_without_a_cluster() {
    let scene = Scene::new();
    scene.configure(NOBODY, "  concurrency: 3\n");
    let ended = scene.run(&["--print-config"]).end().await;
    assert_eq!(ended.code, 0);
    ended.says("sluice.concurrency");
    ended.says("redacted");
    ended.keeps_the_secret();
    let ended = scene.run(&["--print-config", "--output", "json"]).end().await;
    let printed: serde_json::Value = serde_json::from_str(&ended.text).unwrap();
    let row = printed["values"].as_array().unwrap().iter().find(|row| row["key"] == "sluice.concurrency");
    assert_eq!(row.unwrap()["value"], "3");
    ended.keeps_the_secret();
}

#[test]
fn as_a_plugin_of_kubectl_it_is_called_what_people_type() {
    let scene = Scene::new();
    let plugin = scene.folder().join("kubectl-sluice");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_sluice"), &plugin).unwrap();
    let output = std::process::Command::new(plugin).args(["run", "--help"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("Usage: kubectl sluice run"), "{text}");
    assert!(text.contains("7 Lease lost"), "the exit codes are there: {text}");
}

#[test]
fn version_and_completions_are_there_as_in_every_tool() {
    let sluice = |arguments: &[&str]| {
        let output =
            std::process::Command::new(env!("CARGO_BIN_EXE_sluice")).args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let version = env!("CARGO_PKG_VERSION");
    assert!(sluice(&["version"]).starts_with(&format!("sluice {version}")));
    let json: serde_json::Value = serde_json::from_str(&sluice(&["version", "--output", "json"])).unwrap();
    assert_eq!(json["version"], version);
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(sluice(&["completions", shell]).contains("print-config"), "{shell}");
    }
}
