//! `sluice emulator` as people and scripts start it: what it prints, how it stops, what survives.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test that meets a surprise should end there")]

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

use reqwest::{Certificate, Client, Method};
use serde_json::{Value, json};

const IP: &str = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/sluice/providers/\
                  Microsoft.Network/publicIPAddresses/web-pip";

/// A started emulator. Goes with the test, however that ends.
struct Emulator {
    child: Child,
    stdout: BufReader<ChildStdout>,
    ready: Value,
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
    command.arg("emulator").args(["--listen", "127.0.0.1:0"]).args(arguments);
    command.env_remove("RUST_LOG").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

impl Emulator {
    /// Waits for the line that says where it is.
    fn start(arguments: &[&str]) -> Emulator {
        let mut child = command(arguments).args(["--output", "json"]).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let ready = serde_json::from_str(&line).unwrap_or_else(|_| {
            let mut problem = String::new();
            child.stderr.take().unwrap().read_to_string(&mut problem).unwrap();
            panic!("{line}{problem}")
        });
        Emulator { child, stdout, ready }
    }

    fn word(&self, name: &str) -> &str {
        self.ready[name].as_str().unwrap()
    }

    fn client(&self) -> Client {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let ca = std::fs::read(self.word("caPath")).unwrap();
        Client::builder().tls_certs_only([Certificate::from_pem(&ca).unwrap()]).no_proxy().build().unwrap()
    }

    async fn control(&self, method: Method, path: &str, body: Value) -> Value {
        let request = self.client().request(method, format!("{}{path}", self.word("controlUrl"))).json(&body);
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 200, "{path}");
        answer.json().await.unwrap()
    }

    async fn put_public_ip(&self) -> u16 {
        let token = format!("{}/{}/oauth2/v2.0/token", self.word("url"), self.word("tenantId"));
        let form = format!(
            "grant_type=client_credentials&client_id={}&client_secret={}&scope={}/.default",
            self.word("clientId"),
            self.word("clientSecret"),
            self.word("url")
        );
        let client = self.client();
        let request =
            client.post(token).header("content-type", "application/x-www-form-urlencoded").body(form);
        let token: Value = request.send().await.unwrap().json().await.unwrap();
        let body = json!({
            "location": "eastus",
            "sku": {"name": "StandardV2"},
            "properties": {"publicIPAllocationMethod": "Static"},
        });
        let url = format!("{}{IP}?api-version=2025-05-01", self.word("url"));
        let request = client.put(url).bearer_auth(token["access_token"].as_str().unwrap()).json(&body);
        request.send().await.unwrap().status().as_u16()
    }

    fn signal(&self, word: &str) {
        let sent = Command::new("kill").args([word, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Waits for the end, and says how it was and what else was printed.
    fn end(mut self) -> (ExitStatus, String) {
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap(), rest)
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        // It may be over already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs it where it cannot start; its exit code and what it says.
fn fails(arguments: &[&str]) -> (i32, String) {
    let output = command(arguments).output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[tokio::test]
async fn scripts_read_one_line_and_stop_it_by_either_signal() {
    for word in ["-TERM", "-INT"] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ready");
        let emulator = Emulator::start(&["--ready-file", file.to_str().unwrap(), "--time-factor", "100"]);
        let written: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        assert_eq!(written["url"], emulator.ready["url"]);
        // There is a secret in it.
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(emulator.put_public_ip().await, 201);
        let ca = emulator.word("caPath").to_owned();
        emulator.signal(word);
        let (status, rest) = emulator.end();
        assert_eq!((status.code(), rest.as_str()), (Some(0), ""), "{word}");
        assert!(!file.exists());
        assert!(!Path::new(&ca).exists());
    }
}

#[tokio::test]
async fn a_killed_process_comes_back_with_everything_and_its_ca() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("azure.journal");
    // A clock so slow that nothing ends by itself before somebody has looked.
    let arguments = ["--state", file.to_str().unwrap(), "--time-factor", "0.1"];
    let state = async |emulator: &Emulator| {
        let mut state = emulator.control(Method::GET, "state", Value::Null).await;
        state.as_object_mut().unwrap().remove("time");
        state
    };
    let emulator = Emulator::start(&arguments);
    assert_eq!(emulator.put_public_ip().await, 201);
    let before = state(&emulator).await;
    assert_eq!(before["operations"].as_array().unwrap().len(), 1);
    let ca = std::fs::read(emulator.word("caPath")).unwrap();
    emulator.signal("-KILL");
    let (status, _) = emulator.end();
    assert_eq!(status.code(), None);

    let emulator = Emulator::start(&arguments);
    assert_eq!(state(&emulator).await, before);
    assert_eq!(std::fs::read(emulator.word("caPath")).unwrap(), ca);
    emulator.control(Method::POST, "advance", json!({"seconds": 60})).await;
    let after = state(&emulator).await;
    assert_eq!(after["publicIPAddresses"][0]["provisioningState"], "Succeeded");
    assert_eq!(after["operations"], json!([]));
}

#[tokio::test]
async fn a_second_signal_does_not_wait_for_the_first() {
    let emulator = Emulator::start(&[]);
    let rule = json!({"fault": "latency", "beforeMs": 600_000, "match": {"area": "metadata"}});
    emulator.control(Method::POST, "faults", rule).await;
    let client = emulator.client();
    let slow = format!("{}/metadata/endpoints?api-version=2022-09-01", emulator.word("url"));
    let waiting = tokio::spawn(async move { client.get(slow).send().await.is_ok() });
    loop {
        let log = emulator.control(Method::GET, "requests", Value::Null).await;
        if log["requests"].as_array().unwrap().iter().any(|it| it["area"] == "metadata") {
            break;
        }
    }
    emulator.signal("-TERM");
    emulator.signal("-INT");
    assert_eq!(emulator.end().0.code(), Some(0));
    assert!(!waiting.await.unwrap());
}

#[test]
fn what_stops_it_from_starting_is_said_with_a_hint_and_a_code() {
    let emulator = Emulator::start(&[]);
    let address = emulator.word("url").strip_prefix("https://").unwrap().to_owned();
    let (code, said) = fails(&["--listen-http", &address]);
    assert_eq!(code, 3, "{said}");
    assert!(said.contains(&address) && said.contains("hint: another program has this port"), "{said}");

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("letter");
    std::fs::write(&file, "Dear reader\n").unwrap();
    let (code, said) = fails(&["--state", file.to_str().unwrap()]);
    assert_eq!(code, 4, "{said}");
    assert!(said.contains("letter is not a state file") && said.contains("left alone"), "{said}");

    for (arguments, word) in [
        (&["--time-factor", "0"][..], "0.1 and 10000"),
        (&["--prepare", "group"], "SUBSCRIPTION/GROUP"),
        (&["--prepare", "s/a<b"], "SUBSCRIPTION/GROUP"),
        (&["--listen-http", "0.0.0.0:0"], "other machines"),
        (&["--latency-delete", "soon"], "250ms"),
        (&["--client", "hunter2"], "client id"),
        (&["--log", "a=b=c"], "filter"),
        (&["--print-env", "--output", "json"], "cannot be used with"),
    ] {
        let (code, said) = fails(arguments);
        assert_eq!(code, 2, "{arguments:?}: {said}");
        assert!(said.contains(word), "{arguments:?}: {said}");
    }
}

#[test]
fn people_and_shells_are_told_what_they_need() {
    let text = first_lines(&[], "Stop with Ctrl-C.");
    assert!(!text.contains('\u{1b}'), "colours without a terminal");
    for word in [
        "https://127.0.0.1:",
        "sluice-emulator-ca.pem",
        "/_emulator/",
        "--cacert",
        "ClientSecretCredential",
        "polling_interval",
    ] {
        assert!(text.contains(word), "{word}: {text}");
    }
    let env = first_lines(&["--print-env", "--listen-http", "127.0.0.1:0"], "export SLUICE_EMULATOR=");
    let names: Vec<&str> =
        env.lines().map(|line| line.strip_prefix("export ").unwrap().split('=').next().unwrap()).collect();
    for name in [
        "AZURE_AUTHORITY_HOST",
        "AZURE_TENANT_ID",
        "AZURE_CLIENT_ID",
        "AZURE_CLIENT_SECRET",
        "AZURE_SUBSCRIPTION_ID",
        "AZURE_RESOURCE_MANAGER_ENDPOINT",
        "IDENTITY_ENDPOINT",
        "IDENTITY_HEADER",
        "REQUESTS_CA_BUNDLE",
        "SSL_CERT_FILE",
        "NODE_EXTRA_CA_CERTS",
    ] {
        assert!(names.contains(&name), "{name}: {env}");
    }
    assert!(env.contains("export IDENTITY_ENDPOINT=http://127.0.0.1:"), "{env}");
}

/// What is printed up to a line that has these words.
fn first_lines(arguments: &[&str], last: &str) -> String {
    let mut child = command(arguments).spawn().unwrap();
    let stdout = BufReader::new(child.stdout.take().unwrap());
    let mut text = String::new();
    for line in stdout.lines() {
        let line = line.unwrap();
        text.push_str(&line);
        text.push('\n');
        if line.contains(last) {
            break;
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    text
}
