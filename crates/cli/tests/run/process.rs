//! A controller process with a folder of its own, and an emulator process.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sluice_emulator_client::process::{Program, Signal, Talk};
use sluice_emulator_client::{ANY_PORT, Emulator, Greeting};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::process::Command;
use tokio::time::timeout;

/// The password in every configuration; it must be nowhere else.
const SECRET: &str = "s3cret-of-azure";
/// How long anything may take before a test gives up.
const PATIENCE: Duration = Duration::from_secs(60);

/// A folder with a configuration and a kubeconfig.
pub(crate) struct Scene {
    folder: tempfile::TempDir,
}

impl Scene {
    pub(crate) fn new() -> Scene {
        Scene { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn config(&self) -> PathBuf {
        self.folder().join("azure.yaml")
    }

    fn kubeconfig(&self) -> PathBuf {
        self.folder().join("kubeconfig")
    }

    /// A configuration for an Azure at this address, with more in its `sluice:` section.
    pub(crate) fn configure(&self, azure: &str, more: &str) {
        self.write(&format!("https://{azure}"), "00000000-0000-0000-0000-000000000000", "", more);
    }

    pub(crate) fn configure_for(&self, emulator: &Emulator, more: &str) {
        let Greeting { url, tenant_id, ca_path, .. } = &emulator.client.greeting;
        self.write(url, tenant_id, &format!("    caFile: {}\n", ca_path.display()), more);
    }

    fn write(&self, url: &str, tenant: &str, azure: &str, more: &str) {
        let listen =
            if more.contains("listen:") { "" } else { "  listen: {health: 127.0.0.1:0, api: 127.0.0.1:0}\n" };
        let text = format!(
            "tenantId: {tenant}\n\
             subscriptionId: 00000000-0000-0000-0000-000000000000\n\
             aadClientId: 11111111-1111-1111-1111-111111111111\n\
             aadClientSecret: {SECRET}\n\
             resourceGroup: sluice\nlocation: eastus\nvnetName: vnet\nsubnetName: nodes\n\
             resourceManagerEndpoint: {url}\n\
             sluice:\n\
             \x20 azure:\n\
             \x20   authorityHost: {url}\n\
             \x20   scope: {url}/.default\n{azure}{listen}{more}"
        );
        std::fs::write(self.config(), text).unwrap();
    }

    /// Replaces a part of the configuration.
    pub(crate) fn edit(&self, from: &str, to: &str) {
        let text = std::fs::read_to_string(self.config()).unwrap();
        assert!(text.contains(from), "{text}");
        std::fs::write(self.config(), text.replace(from, to)).unwrap();
    }

    /// Starts the controller.
    pub(crate) fn run(&self, more: &[&str]) -> Running {
        self.start("run", more)
    }

    /// Starts a command that takes a configuration and a cluster.
    pub(crate) fn start(&self, name: &str, more: &[&str]) -> Running {
        let (config, kubeconfig) = (self.config(), self.kubeconfig());
        let files =
            ["--config".as_ref(), config.as_os_str(), "--kubeconfig".as_ref(), kubeconfig.as_os_str()];
        self.launch(&[name], &files, more)
    }

    /// Starts `sluice migrate pods`, which needs only a cluster.
    pub(crate) fn migrate_pods(&self, more: &[&str]) -> Running {
        self.launch(&["migrate", "pods"], &["--kubeconfig".as_ref(), self.kubeconfig().as_os_str()], more)
    }

    fn launch(&self, words: &[&str], files: &[&OsStr], more: &[&str]) -> Running {
        // The shell makes one stream of both outputs and becomes the program.
        let mut command = Command::new("sh");
        command.args(["-c", "exec \"$0\" \"$@\" 2>&1", env!("CARGO_BIN_EXE_sluice")]);
        command.args(words).args(files).args(more);
        // Nothing of the machine that the tests run on may matter.
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        // The mark by which `cargo xtask test` finds and ends what a stage has started.
        command.envs(std::env::var_os("SLUICE_STAGE_MARK").map(|mark| ("SLUICE_STAGE_MARK", mark)));
        let log = self.folder().join("shell.log");
        let (program, mut talk) = Program::talk(words[0], &mut command, &log).unwrap();
        talk.hang_up();
        Running { program, talk, text: String::new() }
    }
}

/// A controller process. Goes with the test, however that ends.
pub(crate) struct Running {
    program: Program,
    talk: Talk,
    /// What it has said since the last signal.
    pub(crate) text: String,
}

impl Running {
    /// Reads on until a line has these words, and gives that line.
    pub(crate) async fn wait_for(&mut self, words: &str) -> String {
        if let Some(line) = self.text.lines().find(|line| line.contains(words)) {
            return line.to_owned();
        }
        loop {
            match timeout(PATIENCE, self.talk.hear()).await {
                Ok(Ok(line)) => {
                    self.text.push_str(&line);
                    self.text.push('\n');
                    if line.contains(words) {
                        return line;
                    }
                }
                _ => panic!("it never said {words:?}:\n{}", self.text),
            }
        }
    }

    /// What one of its listeners answers.
    pub(crate) async fn ask(&mut self, listener: &str, path: &str) -> String {
        let line = self.wait_for("listening").await;
        let (_, rest) = line.split_once(&format!("{listener}=\"")).unwrap();
        let address = rest.split('"').next().unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        let asking = async {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            answer
        };
        timeout(PATIENCE, asking).await.unwrap()
    }

    /// Sends it a signal. What it said before cannot be waited for any more.
    pub(crate) async fn signal(&mut self, signal: Signal) {
        self.text.clear();
        self.program.signal(signal).await.unwrap();
    }

    /// Waits for its end.
    pub(crate) async fn end(mut self) -> Ended {
        let Ok(rest) = timeout(PATIENCE, self.talk.hear_out()).await else {
            panic!("it does not end:\n{}", self.text)
        };
        let text = self.text + &rest.unwrap();
        Ended { code: self.program.ended().await.code().unwrap(), text }
    }
}

/// How it ended, and what it said since the last signal.
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) text: String,
}

impl Ended {
    #[track_caller]
    pub(crate) fn says(&self, words: &str) {
        assert!(self.text.contains(words), "it does not say {words:?}:\n{}", self.text);
    }

    #[track_caller]
    pub(crate) fn keeps_the_secret(&self) {
        assert!(!self.text.contains(SECRET) && !self.text.contains("a-token-of-kubernetes"), "{}", self.text);
    }
}

/// Starts an emulator process; its log is in the folder.
pub(crate) async fn emulator(scene: &Scene, arguments: &[&str]) -> Emulator {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (sluice, log) = (Path::new(env!("CARGO_BIN_EXE_sluice")), scene.folder().join("emulator.log"));
    Emulator::start(sluice, ANY_PORT, arguments, &log).await.unwrap()
}
