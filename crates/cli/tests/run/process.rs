//! A controller process with a folder of its own, and an emulator process.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use sluice_emulator_client::{ANY_PORT, Greeting};

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

    /// A configuration for an Azure at this address, with more in its `sluice:` section.
    pub(crate) fn configure(&self, azure: &str, more: &str) {
        self.write(&format!("https://{azure}"), "00000000-0000-0000-0000-000000000000", "", more);
    }

    pub(crate) fn configure_for(&self, emulator: &Emulator, more: &str) {
        let Greeting { url, tenant_id, ca_path, .. } = &emulator.greeting;
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
        let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
        command.arg(name).arg("--config").arg(self.config()).arg("--kubeconfig");
        command.arg(self.folder().join("kubeconfig")).args(more);
        // Nothing of the machine that the tests run on may matter.
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        // The mark by which `cargo xtask test` finds and ends what a stage has started.
        command.envs(std::env::var_os("SLUICE_STAGE_MARK").map(|mark| ("SLUICE_STAGE_MARK", mark)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (send, lines) = mpsc::channel();
        for stream in [
            Box::new(child.stdout.take().unwrap()) as Box<dyn Read + Send>,
            Box::new(child.stderr.take().unwrap()) as Box<dyn Read + Send>,
        ] {
            let send = send.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(stream).lines().map_while(Result::ok) {
                    // A test that has seen enough does not listen.
                    let _ = send.send(line);
                }
            });
        }
        Running { child, lines, text: String::new() }
    }
}

/// A controller process. Goes with the test, however that ends.
pub(crate) struct Running {
    child: Child,
    lines: mpsc::Receiver<String>,
    /// What it has said since the last signal.
    pub(crate) text: String,
}

impl Running {
    /// Reads on until a line has these words, and gives that line.
    pub(crate) fn wait_for(&mut self, words: &str) -> String {
        if let Some(line) = self.text.lines().find(|line| line.contains(words)) {
            return line.to_owned();
        }
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => {
                    self.text.push_str(&line);
                    self.text.push('\n');
                    if line.contains(words) {
                        return line;
                    }
                }
                Err(_) => panic!("it never said {words:?}:\n{}", self.text),
            }
        }
    }

    /// What one of its listeners answers.
    pub(crate) fn ask(&mut self, listener: &str, path: &str) -> String {
        let line = self.wait_for("listening");
        let (_, rest) = line.split_once(&format!("{listener}=\"")).unwrap();
        let address = rest.split('"').next().unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Sends it a signal. What it said before cannot be waited for any more.
    pub(crate) fn signal(&mut self, name: &str) {
        self.text.clear();
        let sent = Command::new("kill").arg(format!("-{name}")).arg(self.child.id().to_string()).status();
        assert!(sent.unwrap().success());
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> Ended {
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => {
                    self.text.push_str(&line);
                    self.text.push('\n');
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
                Err(mpsc::RecvTimeoutError::Timeout) => panic!("it does not end:\n{}", self.text),
            }
        }
        let code = self.child.wait().unwrap().code().unwrap();
        Ended { code, text: std::mem::take(&mut self.text) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
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

/// An emulator process.
pub(crate) struct Emulator {
    greeting: Greeting,
    _process: sluice_emulator_client::Emulator,
    /// Ends the process when it is dropped.
    _runtime: tokio::runtime::Runtime,
}

impl Emulator {
    pub(crate) fn start(scene: &Scene, arguments: &[&str]) -> Emulator {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (sluice, log) = (Path::new(env!("CARGO_BIN_EXE_sluice")), scene.folder().join("emulator.log"));
        let start = sluice_emulator_client::Emulator::start(sluice, ANY_PORT, arguments, &log);
        let process = runtime.block_on(start).unwrap();
        Emulator { greeting: process.client.greeting.clone(), _process: process, _runtime: runtime }
    }
}
