//! `sluice playground` as people and scripts start it: what it prints, how it ends, and what it leaves behind.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test that meets a surprise should end there")]

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use k8s_openapi::api::core::v1::Node;
use kube::api::ListParams;
use kube::config::Kubeconfig;
use kube::{Api, Client, Config};
use serde_json::{Value, json};
use sluice_emulator_client::process::{Program, Signal, Talk};
use tokio::process::Command;

/// A playground that has said where everything is. Goes with the test, however that ends.
struct Playground {
    program: Program,
    talk: Talk,
    ready: Value,
    _log: tempfile::NamedTempFile,
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
    command.arg("playground").args(arguments).env_remove("RUST_LOG");
    command
}

impl Playground {
    async fn start(arguments: &[&str]) -> Playground {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let log = tempfile::NamedTempFile::new().unwrap();
        let mut command = command(arguments);
        command.args(["--output", "json"]);
        let (program, mut talk) = Program::talk("the playground", &mut command, log.path()).unwrap();
        talk.hang_up();
        let line = talk.hear().await.unwrap();
        let ready = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"));
        Playground { program, talk, ready, _log: log }
    }

    fn word(&self, name: &str) -> &str {
        self.ready[name].as_str().unwrap_or_else(|| panic!("there is no {name} in {}", self.ready))
    }

    async fn signal(&self, signal: Signal) {
        self.program.signal(signal).await.unwrap();
    }

    /// Waits for the end: its exit code, and what else was printed.
    async fn end(mut self) -> (Option<i32>, String) {
        let rest = self.talk.hear_out().await.unwrap();
        (self.program.ended().await.code(), rest)
    }

    /// A client as kubectl is one.
    async fn client(&self) -> Client {
        let kubeconfig = Kubeconfig::read_from(self.word("kubeconfig")).unwrap();
        let config = Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await.unwrap();
        Client::try_from(config).unwrap()
    }
}

#[tokio::test]
async fn a_story_that_cannot_end_well_ends_with_1_and_says_what_it_waits_for() {
    let playground =
        Playground::start(&["--scenario", "tour", "--exit", "--time-factor", "50", "--timeout", "2m"]).await;
    let ca = std::fs::read(playground.word("caPath")).unwrap();
    let ca = reqwest::Certificate::from_pem(&ca).unwrap();
    let client = reqwest::Client::builder().tls_certs_only([ca]).no_proxy().build().unwrap();
    let url = format!("{}faults", playground.word("controlUrl"));
    let away = json!({"match": {}, "fault": "unavailable"});
    assert!(client.post(url).json(&away).send().await.unwrap().status().is_success());
    let folder = playground.word("folder").to_owned();
    let (code, rest) = playground.end().await;
    assert_eq!(code, Some(1), "{rest}");
    let verdict: Value = serde_json::from_str(&rest).unwrap();
    assert_eq!((&verdict["scenario"], &verdict["converged"]), (&json!("tour"), &json!(false)));
    let why = verdict["differences"][0].as_str().unwrap();
    assert!(why.starts_with("timed out after 2 min (emulated) waiting until "), "{why}");
    assert!(!Path::new(&folder).exists(), "{folder} is left behind");
}

#[tokio::test]
async fn it_serves_until_ctrl_c_and_leaves_nothing_behind() {
    let playground = Playground::start(&["--time-factor", "50"]).await;
    let folder = playground.word("folder").to_owned();
    assert_eq!(std::fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    for (url, shows) in [("dashboardUrl", "<html"), ("metricsUrl", "sluice_")] {
        let answer = reqwest::get(playground.word(url)).await.unwrap();
        assert!(answer.status().is_success(), "{url} answers {}", answer.status());
        let page = answer.text().await.unwrap();
        assert!(page.contains(shows), "{url} shows {page}");
    }
    playground.signal(Signal::Interrupt).await;
    let (code, rest) = playground.end().await;
    assert_eq!((code, rest.as_str()), (Some(0), ""));
    assert!(!Path::new(&folder).exists(), "{folder} is left behind");
}

#[tokio::test]
async fn it_ends_with_its_terminal_and_a_story_that_is_broken_off_has_not_converged() {
    for (arguments, code) in
        [(&["--time-factor", "50"][..], 0), (&["--scenario", "burst", "--exit", "--time-factor", "1"][..], 1)]
    {
        let playground = Playground::start(arguments).await;
        let folder = playground.word("folder").to_owned();
        playground.signal(Signal::Hangup).await;
        let (ended, rest) = playground.end().await;
        assert_eq!(ended, Some(code), "{rest}");
        assert!(!Path::new(&folder).exists(), "{folder} is left behind");
    }
}

#[tokio::test]
async fn a_port_that_is_taken_is_said_with_the_code_for_it() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = command(&["--listen-dashboard", &address]).output().await.unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains(&address), "{said}");
}

#[tokio::test]
async fn kubernetes_alone_is_a_cluster_for_tests_of_others() {
    let kept = tempfile::tempdir().unwrap();
    let folder = kept.path().join("cluster");
    let playground =
        Playground::start(&["--kubernetes-only", "--nodes", "2", "--keep", folder.to_str().unwrap()]).await;
    assert_eq!(playground.ready["azureUrl"], Value::Null);
    let nodes = Api::<Node>::all(playground.client().await);
    let names: Vec<_> = nodes.list(&ListParams::default()).await.unwrap().items;
    assert_eq!(names.len(), 2);
    playground.signal(Signal::Interrupt).await;
    let (code, _) = playground.end().await;
    assert_eq!(code, Some(0));
    assert!(folder.join("kubeconfig").exists(), "--keep keeps nothing");
}

#[tokio::test]
async fn a_story_that_nobody_knows_is_wrong_and_the_nearest_is_named() {
    let output = command(&["--scenario", "tuor"]).output().await.unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("unknown scenario tuor") && said.contains("did you mean tour?"), "{said}");
    let list = String::from_utf8(command(&["--list"]).output().await.unwrap().stdout).unwrap();
    assert_eq!(list.lines().count(), 9, "{list}");
}
