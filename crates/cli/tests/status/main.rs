//! `sluice status` and `sluice explain` as people start them, against a controller that leads:
//! directly, and through an API server that forwards a port of the leader's pod. What they say of trouble stands
//! beside what the conditions, the dashboard and the metrics say.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test that meets a surprise should end there")]

mod api_server;
#[path = "../../../controller/tests/loop/azure.rs"]
#[allow(dead_code, reason = "this Azure can do more than is needed here")]
mod azure;
#[path = "../../../controller/tests/loop/config.rs"]
mod config;
mod controller;
mod trouble;
#[path = "../../../controller/tests/admin/world.rs"]
#[allow(dead_code, reason = "this world can do more than is needed here")]
mod world;

use std::process::{Output, Stdio};

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

use api_server::ApiServer;
use controller::Leading;

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
    for name in
        ["RUST_LOG", "SLUICE_ADDRESS", "KUBECONFIG", "KUBERNETES_SERVICE_HOST", "HTTP_PROXY", "http_proxy"]
    {
        command.env_remove(name);
    }
    command.args(arguments).stdin(Stdio::null()).kill_on_drop(true);
    command
}

/// Runs it to its end: exit code, standard output, standard error.
async fn sluice(arguments: &[&str]) -> (i32, String, String) {
    let Output { status, stdout, stderr } = command(arguments).output().await.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_is_asked_by_its_address() {
    let leading = Leading::start(None).await;
    leading.serve_all(&["shop/web", "bank/web"]).await;
    let address = ["--address", &leading.address];
    let (code, table, _) = sluice(&[&["status"], &address[..]].concat()).await;
    assert_eq!(code, 0);
    assert!(table.starts_with("sluice-0 (0.0.1) is leader, up for "), "{table}");
    let line =
        table.lines().find(|line| line.starts_with("service/shop/web ")).unwrap_or_else(|| panic!("{table}"));
    assert!(line.contains(" Created ") && line.contains(" 198.18.0."), "{line}");
    assert!(table.contains("2 Services and 0 egresses; none in trouble.\n"), "{table}");
    assert!(!table.contains('\x1b'), "no colours for who is no terminal: {table:?}");

    let (code, names, _) =
        sluice(&[&["status", "-o", "name", "-n", "bank", "--check"], &address[..]].concat()).await;
    assert_eq!((code, names.as_str()), (0, "service/bank/web\n"));

    let (code, json, _) = sluice(&[&["status", "--output", "json"], &address[..]].concat()).await;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((code, json["services"].as_array().unwrap().len()), (0, 2));
    assert_eq!(json["overview"]["initialSync"]["done"], true);

    let (code, text, _) = sluice(&[&["explain", "service/shop/web"], &address[..]].concat()).await;
    assert_eq!(code, 0);
    assert!(text.starts_with("service/shop/web   Created\n"), "{text}");
    assert!(text.contains("\nTimeline\n") && text.contains(" published\n"), "{text}");

    let (code, _, error) = sluice(&[&["explain", "service/shop/wep"], &address[..]].concat()).await;
    assert_eq!(code, 1);
    assert!(
        error.contains("service/shop/wep not found, or not managed by Sluice. Check that the Service exists")
            && error.contains("; run `sluice status` to list all"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn trouble_is_shown_explained_and_checked() {
    let leading = Leading::refused().await;
    leading.apply("shop/web");
    leading.until(|all| all.iter().any(|seen| seen.hold.is_some())).await;
    let address = ["--address", &leading.address];
    let (code, table, _) = sluice(&[&["status", "--check"], &address[..]].concat()).await;
    assert_eq!(code, 2);
    assert!(table.contains("NotStarted") && table.contains("Forbidden (SGW0009): "), "{table}");
    assert!(table.ends_with("Why: sluice explain service/shop/web\n"), "{table}");
    assert_eq!(
        sluice(&[&["status"], &address[..]].concat()).await.0,
        0,
        "only who asks for a check is told no"
    );
    let (code, text, _) = sluice(&[&["explain", "service/shop/web"], &address[..]].concat()).await;
    assert_eq!(code, 0);
    for part in ["NotStarted, parked\n", "Last error", "AuthorizationFailed", "Next attempt in ", "SGW0009"] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn trouble_of_another_namespace_is_told_to_who_looks_at_one() {
    let leading = Leading::with_one_public_ip().await;
    leading.serve_all(&["shop/web"]).await;
    leading.apply("bank/web");
    leading.until(|all| all.iter().any(|seen| seen.hold.is_some())).await;
    let of_shop = ["status", "-n", "shop", "--check", "--address", &leading.address];
    let (code, table, _) = sluice(&of_shop).await;
    assert!(table.contains("service/shop/web") && !table.contains("service/bank/web"), "{table}");
    assert!(table.contains("2 Services and 0 egresses; 1 in trouble, not shown here ("), "{table}");
    assert_eq!(code, 0, "what is shown is as wanted");
    assert_eq!(sluice(&["status", "--check", "--address", &leading.address]).await.0, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_does_not_say_that_none_is_in_trouble() {
    let leading = Leading::start(None).await;
    leading.serve_all(&["shop/web"]).await;
    leading.stand_by();
    let (code, table, _) = sluice(&["status", "--check", "--address", &leading.address]).await;
    assert_eq!(code, 2, "{table}");
    assert!(table.contains(" is standby, ") && table.contains(" The leader is sluice-1.\n"), "{table}");
    assert!(!table.contains("none in trouble"), "{table}");
    assert!(table.contains("sluice-0 is not the leader, so trouble is unknown"), "{table}");
    let names = ["status", "--trouble", "-o", "name", "--check", "--address", &leading.address];
    let (code, names, doubt) = sluice(&names).await;
    assert_eq!((code, names.as_str()), (2, ""));
    assert!(doubt.starts_with("sluice-0 is not the leader"), "{doubt}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_shows_what_changes_and_goes_on_with_the_next_leader() {
    let leading = Leading::start(None).await;
    leading.serve_all(&["shop/web"]).await;
    let mut child = command(&["status", "--watch", "-o", "json", "--address", &leading.address])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut errors = BufReader::new(child.stderr.take().unwrap()).lines();
    let first: Value = serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap();
    assert_eq!((&first["name"], &first["state"]), (&Value::from("web"), &Value::from("Created")));
    leading.apply("shop/api");
    loop {
        let line: Value = serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap();
        assert_eq!(line["name"], "api", "only what changes");
        if line["state"] == "Created" {
            break;
        }
    }
    let port = leading.end().await;
    let why = errors.next_line().await.unwrap().unwrap();
    assert!(why.starts_with("watch interrupted: "), "{why}");
    let successor = Leading::start(Some(port)).await;
    successor.serve_all(&["shop/later"]).await;
    loop {
        let line: Value = serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap();
        if line["name"] == "later" && line["state"] == "Created" {
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_leader_is_found_by_its_lease_and_asked_through_the_api_server() {
    let leading = Leading::start(None).await;
    leading.serve_all(&["shop/web"]).await;
    let api_server = ApiServer::start(Some("sluice-7d9c-abcde_12-18f"), &leading.address).await;
    let kubeconfig = ["--kubeconfig", api_server.kubeconfig()];
    let (code, names, error) = sluice(&[&["status", "-o", "name"], &kubeconfig[..]].concat()).await;
    assert_eq!((code, names.as_str()), (0, "service/shop/web\n"), "{error}");
    let asked = api_server.asked();
    assert!(
        asked.contains(&"/apis/coordination.k8s.io/v1/namespaces/sluice-system/leases/sluice".into()),
        "{asked:?}"
    );
    let forwarded = |path: &String| {
        path.starts_with("/api/v1/namespaces/sluice-system/pods/sluice-7d9c-abcde/portforward?")
            && path.ends_with("ports=8082")
    };
    assert!(asked.iter().any(forwarded), "{asked:?}");
    let (code, text, error) = sluice(&[&["explain", "svc/shop/web"], &kubeconfig[..]].concat()).await;
    assert_eq!(code, 0, "{error}");
    assert!(text.starts_with("service/shop/web   Created\n"), "{text}");

    let mut child = command(&[&["status", "--watch", "-o", "name"], &kubeconfig[..]].concat())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next_line().await.unwrap().unwrap(), "service/shop/web");
    leading.apply("shop/api");
    assert_eq!(lines.next_line().await.unwrap().unwrap(), "service/shop/api");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_cannot_be_asked_is_said_with_what_to_do() {
    let (code, _, error) = sluice(&["status", "--address", "http://127.0.0.1:1"]).await;
    assert_eq!(code, 1);
    assert!(
        error.contains("cannot connect to http://127.0.0.1:1/") && error.contains("sluice.listen.api"),
        "{error}"
    );

    let nobody = ApiServer::start(None, "http://127.0.0.1:1").await;
    let (code, _, error) = sluice(&["status", "--kubeconfig", nobody.kubeconfig()]).await;
    assert_eq!(code, 1);
    assert!(error.contains("no leader: Lease sluice-system/sluice has no holder"), "{error}");

    let elsewhere = ["--lease-namespace", "elsewhere", "--kubeconfig", nobody.kubeconfig()];
    let (code, _, error) = sluice(&[&["status"], &elsewhere[..]].concat()).await;
    assert_eq!(code, 1);
    assert!(
        error.contains("Lease elsewhere/sluice does not exist") && error.contains("--lease-namespace"),
        "{error}"
    );

    let away = ApiServer::start(Some("sluice-0_1-1"), "http://127.0.0.1:1").await;
    let (code, _, error) = sluice(&["status", "--kubeconfig", away.kubeconfig()]).await;
    assert_eq!(code, 1);
    assert!(
        error.contains("cannot port-forward to pod sluice-system/sluice-0") && error.contains("--address"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_shown_to_those_who_ask_for_it_and_to_nobody_else() {
    let leading = Leading::with_token("s3cret").await;
    let (code, _, error) = sluice(&["status", "--address", &leading.address]).await;
    assert_eq!(code, 1);
    assert!(error.contains("--token-file"), "{error}");
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "s3cret\n").unwrap();
    let path = file.path().to_str().unwrap();
    let (code, _, error) = sluice(&["status", "--address", &leading.address, "--token-file", path]).await;
    assert_eq!((code, error.as_str()), (0, ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_is_explained_without_any_controller() {
    let (code, text, _) = sluice(&["explain", "SGW0008"]).await;
    assert_eq!(code, 0);
    assert!(text.starts_with("SGW0008: QuotaExceeded\n") && text.contains("\nCauses\n"), "{text}");
    let (code, _, error) = sluice(&["explain", "SGW4711"]).await;
    assert_eq!(code, 2);
    assert!(error.contains("unknown code; known codes: SGW0001, "), "{error}");
}
