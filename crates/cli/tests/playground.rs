//! `sluice playground` as people and scripts start it: what it prints, how it ends, and what it leaves behind.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test that meets a surprise should end there")]

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

use k8s_openapi::api::core::v1::Node;
use kube::api::ListParams;
use kube::config::Kubeconfig;
use kube::{Api, Client, Config};
use serde_json::{Value, json};

/// A playground that has said where everything is. Goes with the test, however that ends.
struct Playground {
    child: Child,
    stdout: BufReader<ChildStdout>,
    ready: Value,
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
    command.arg("playground").args(arguments).env_remove("RUST_LOG");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

impl Playground {
    fn start(arguments: &[&str]) -> Playground {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut child = command(arguments).args(["--output", "json"]).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let ready = serde_json::from_str(&line).unwrap_or_else(|_| {
            let mut problem = String::new();
            child.stderr.take().unwrap().read_to_string(&mut problem).unwrap();
            panic!("{line}{problem}")
        });
        Playground { child, stdout, ready }
    }

    fn word(&self, name: &str) -> &str {
        self.ready[name].as_str().unwrap_or_else(|| panic!("there is no {name} in {}", self.ready))
    }

    /// What a person does with Ctrl-C.
    fn interrupt(&self) {
        self.signal("-INT");
    }

    fn signal(&self, which: &str) {
        let sent = Command::new("kill").args([which, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Waits for the end, and says how it was and what else was printed.
    fn end(mut self) -> (ExitStatus, String) {
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap(), rest)
    }

    /// A client as kubectl is one.
    async fn client(&self) -> Client {
        let kubeconfig = Kubeconfig::read_from(self.word("kubeconfig")).unwrap();
        let config = Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await.unwrap();
        Client::try_from(config).unwrap()
    }
}

impl Drop for Playground {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn a_story_that_cannot_end_well_ends_with_1_and_says_what_it_waits_for() {
    let playground =
        Playground::start(&["--scenario", "tour", "--exit", "--time-factor", "50", "--patience", "2m"]);
    let ca = std::fs::read(playground.word("caPath")).unwrap();
    let ca = reqwest::Certificate::from_pem(&ca).unwrap();
    let client = reqwest::Client::builder().tls_certs_only([ca]).no_proxy().build().unwrap();
    let url = format!("{}faults", playground.word("controlUrl"));
    let away = json!({"match": {}, "fault": "unavailable"});
    assert!(client.post(url).json(&away).send().await.unwrap().status().is_success());
    let folder = playground.word("folder").to_owned();
    let (status, rest) = tokio::task::spawn_blocking(|| playground.end()).await.unwrap();
    assert_eq!(status.code(), Some(1), "{rest}");
    let verdict: Value = serde_json::from_str(&rest).unwrap();
    assert_eq!((&verdict["scenario"], &verdict["converged"]), (&json!("tour"), &json!(false)));
    let why = verdict["differences"][0].as_str().unwrap();
    assert!(why.starts_with("waited 2 min for this: "), "{why}");
    assert!(!Path::new(&folder).exists(), "{folder} is left behind");
}

#[tokio::test]
async fn it_serves_until_ctrl_c_and_leaves_nothing_behind() {
    let playground = Playground::start(&["--time-factor", "50"]);
    let folder = playground.word("folder").to_owned();
    assert_eq!(std::fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    for (url, shows) in [("dashboardUrl", "<html"), ("metricsUrl", "sluice_")] {
        let answer = reqwest::get(playground.word(url)).await.unwrap();
        assert!(answer.status().is_success(), "{url} answers {}", answer.status());
        let page = answer.text().await.unwrap();
        assert!(page.contains(shows), "{url} shows {page}");
    }
    playground.interrupt();
    let (status, rest) = tokio::task::spawn_blocking(|| playground.end()).await.unwrap();
    assert_eq!((status.code(), rest.as_str()), (Some(0), ""));
    assert!(!Path::new(&folder).exists(), "{folder} is left behind");
}

#[test]
fn it_ends_with_its_terminal_and_a_story_that_is_broken_off_has_not_converged() {
    for (arguments, code) in
        [(&["--time-factor", "50"][..], 0), (&["--scenario", "burst", "--exit", "--time-factor", "1"][..], 1)]
    {
        let playground = Playground::start(arguments);
        let folder = playground.word("folder").to_owned();
        playground.signal("-HUP");
        let (status, rest) = playground.end();
        assert_eq!(status.code(), Some(code), "{rest}");
        assert!(!Path::new(&folder).exists(), "{folder} is left behind");
    }
}

#[test]
fn a_port_that_is_taken_is_said_with_the_code_for_it() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = command(&["--listen-dashboard", &address]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains(&address), "{said}");
}

#[tokio::test]
async fn kubernetes_alone_is_a_cluster_for_tests_of_others() {
    let kept = tempfile::tempdir().unwrap();
    let folder = kept.path().join("cluster");
    let playground =
        Playground::start(&["--kubernetes-only", "--nodes", "2", "--keep", folder.to_str().unwrap()]);
    assert_eq!(playground.ready["azureUrl"], Value::Null);
    let nodes = Api::<Node>::all(playground.client().await);
    let names: Vec<_> = nodes.list(&ListParams::default()).await.unwrap().items;
    assert_eq!(names.len(), 2);
    playground.interrupt();
    let (status, _) = tokio::task::spawn_blocking(|| playground.end()).await.unwrap();
    assert_eq!(status.code(), Some(0));
    assert!(folder.join("kubeconfig").exists(), "--keep keeps nothing");
}

#[test]
fn a_story_that_nobody_knows_is_wrong_and_the_nearest_is_named() {
    let output = command(&["--scenario", "tuor"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("there is no scenario tuor") && said.contains("did you mean tour?"), "{said}");
    let list = String::from_utf8(command(&["--list"]).output().unwrap().stdout).unwrap();
    assert_eq!(list.lines().count(), 9, "{list}");
}
