//! `sluice emulator` as people and scripts start it: what it prints, how it stops, what survives.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test that meets a surprise should end there")]

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use serde_json::{Value, json};
use sluice_emulator_client::process::Signal;
use sluice_emulator_client::{ANY_PORT, Client, Greeting};

const IP: &str = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/sluice/providers/\
                  Microsoft.Network/publicIPAddresses/web-pip";

/// A started emulator, with a folder for its log.
struct Emulator {
    process: sluice_emulator_client::Emulator,
    _folder: tempfile::TempDir,
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
    command.arg("emulator").args(["--listen", ANY_PORT]).args(arguments);
    command.env_remove("RUST_LOG").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

impl Emulator {
    /// Waits for the line that says where it is.
    async fn start(arguments: &[&str]) -> Emulator {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let folder = tempfile::tempdir().unwrap();
        let (sluice, log) = (Path::new(env!("CARGO_BIN_EXE_sluice")), folder.path().join("log"));
        let process = sluice_emulator_client::Emulator::start(sluice, ANY_PORT, arguments, &log);
        Emulator { process: process.await.unwrap(), _folder: folder }
    }

    fn client(&self) -> &Client {
        &self.process.client
    }

    fn greeting(&self) -> &Greeting {
        &self.client().greeting
    }

    async fn put_public_ip(&self) -> u16 {
        let body = json!({
            "location": "eastus",
            "sku": {"name": "StandardV2"},
            "properties": {"publicIPAllocationMethod": "Static"},
        });
        self.client().put(IP, &body).await.unwrap()
    }

    async fn signal(&self, signal: Signal) {
        self.process.program.signal(signal).await.unwrap();
    }

    /// Waits for the end, and says how it was and what else was printed.
    async fn end(mut self) -> (ExitStatus, String) {
        let rest = self.process.talk.hear_out().await.unwrap();
        (self.process.program.ended().await, rest)
    }
}

/// Runs it where it cannot start; its exit code and what it says.
fn fails(arguments: &[&str]) -> (i32, String) {
    let output = command(arguments).output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[tokio::test]
async fn scripts_read_one_line_and_stop_it_by_either_signal() {
    for signal in [Signal::Terminate, Signal::Interrupt] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ready");
        let emulator =
            Emulator::start(&["--ready-file", file.to_str().unwrap(), "--time-factor", "100"]).await;
        let written: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        assert_eq!(written["url"], emulator.greeting().url);
        // There is a secret in it.
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(emulator.put_public_ip().await, 201);
        let ca = emulator.greeting().ca_path.clone();
        emulator.signal(signal).await;
        let (status, rest) = emulator.end().await;
        assert_eq!((status.code(), rest.as_str()), (Some(0), ""), "{signal:?}");
        assert!(!file.exists());
        assert!(!ca.exists());
    }
}

#[tokio::test]
async fn a_killed_process_comes_back_with_everything_and_its_ca() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("azure.journal");
    // A clock so slow that nothing ends by itself before somebody has looked.
    let arguments = ["--state", file.to_str().unwrap(), "--time-factor", "0.1"];
    let state = async |emulator: &Emulator| {
        let mut state = emulator.client().control.state().await.unwrap();
        state.as_object_mut().unwrap().remove("time");
        state
    };
    let emulator = Emulator::start(&arguments).await;
    assert_eq!(emulator.put_public_ip().await, 201);
    let before = state(&emulator).await;
    assert_eq!(before["operations"].as_array().unwrap().len(), 1);
    let ca = std::fs::read(&emulator.greeting().ca_path).unwrap();
    emulator.signal(Signal::Kill).await;
    let (status, _) = emulator.end().await;
    assert_eq!(status.code(), None);

    let emulator = Emulator::start(&arguments).await;
    assert_eq!(state(&emulator).await, before);
    assert_eq!(std::fs::read(&emulator.greeting().ca_path).unwrap(), ca);
    emulator.client().control.tell("advance", &json!({"seconds": 60})).await.unwrap();
    let after = state(&emulator).await;
    assert_eq!(after["publicIPAddresses"][0]["provisioningState"], "Succeeded");
    assert_eq!(after["operations"], json!([]));
}

#[tokio::test]
async fn a_second_signal_does_not_wait_for_the_first() {
    let emulator = Emulator::start(&[]).await;
    let rule = json!({"fault": "latency", "beforeMs": 600_000, "match": {"area": "metadata"}});
    let control = emulator.client().control.clone();
    control.tell("faults", &rule).await.unwrap();
    let http = control.http.clone();
    let slow = format!("{}/metadata/endpoints?api-version=2022-09-01", emulator.greeting().url);
    let waiting = tokio::spawn(async move { http.get(slow).send().await.is_ok() });
    while !control.requests(0, false).await.unwrap().iter().any(|it| it.area == "metadata") {}
    emulator.signal(Signal::Terminate).await;
    emulator.signal(Signal::Interrupt).await;
    assert_eq!(emulator.end().await.0.code(), Some(0));
    assert!(!waiting.await.unwrap());
}

#[tokio::test]
async fn what_stops_it_from_starting_is_said_with_a_hint_and_a_code() {
    let emulator = Emulator::start(&[]).await;
    let address = emulator.greeting().url.strip_prefix("https://").unwrap().to_owned();
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
        (&["--resource-group", "group"], "SUBSCRIPTION/GROUP"),
        (&["--resource-group", "s/a<b"], "SUBSCRIPTION/GROUP"),
        (&["--prepare", "s/a"], "unexpected argument '--prepare'"),
        (&["--buckets", "network=none"], "unexpected argument '--buckets'"),
        (&["--listen-http", "0.0.0.0:0"], "other machines"),
        (&["--latency-delete", "soon"], "250ms"),
        (&["--client", "hunter2"], "ID=SECRET"),
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
