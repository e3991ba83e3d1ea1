//! A playground that was started as the README says, and a shell beside it with the kubectl that users have.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::programs::{Program, target_folder};
use crate::tidy::readme;
use crate::{kubectl, packages};

/// How long a command is repeated until it does what the page says.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long one waits before it is repeated.
const PAUSE: Duration = Duration::from_millis(250);
/// The line that says what the reader's shell needs.
const EXPORT: &str = "export ";
/// The last word of the greeting.
const LAST: &str = "Stop with Ctrl-C";

/// The playground, and the shell.
pub(crate) struct Playground {
    process: Child,
    /// Assignments of the reader's shell.
    exports: String,
    path: String,
    folder: PathBuf,
}

impl Playground {
    /// Builds and starts it.
    pub(crate) fn start() -> Result<Playground, Vec<String>> {
        Program::Lab.path()?;
        let kubectl = kubectl::program()?;
        Playground::greeted(&kubectl).map_err(|why| vec![why])
    }

    fn greeted(kubectl: &Path) -> Result<Playground, String> {
        let (_, arguments) = readme::PLAYGROUND.split_once(" -- ").unwrap_or_default();
        let tools =
            [target_folder().join("release"), kubectl.parent().map(Path::to_owned).unwrap_or_default()];
        let before = std::env::var("PATH").unwrap_or_default();
        let path = tools.iter().map(|it| it.display().to_string()).chain([before]);
        let process = Command::new(Program::Lab.place())
            .args(arguments.split_whitespace())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("the playground cannot be started: {error}"))?;
        let mut playground = Playground {
            process,
            exports: String::new(),
            path: path.collect::<Vec<_>>().join(":"),
            folder: PathBuf::new(),
        };
        let output = playground.process.stdout.take().ok_or("the playground has no output")?;
        let mut greeting = String::new();
        for line in BufReader::new(output).lines() {
            let line = line.map_err(|error| format!("the playground cannot be read: {error}"))?;
            greeting.push_str(&line);
            greeting.push('\n');
            if line.contains(LAST) {
                break;
            }
        }
        let exports = greeting.lines().find_map(|line| line.split_once(EXPORT)).map(|(_, rest)| rest);
        let kubeconfig =
            exports.and_then(|it| it.split_whitespace().find_map(|it| it.strip_prefix("KUBECONFIG=")));
        match (exports, kubeconfig.and_then(|it| Path::new(it).parent())) {
            (Some(exports), Some(folder)) if greeting.contains(LAST) => {
                playground.exports = exports.to_string();
                playground.folder = folder.to_owned();
                Ok(playground)
            }
            _ => Err(format!("the playground does not say what to export and how to stop it:\n{greeting}")),
        }
    }

    /// Types the commands, again and again until `is_right` likes what they print; `right` says what it likes.
    pub(crate) fn until(
        &self,
        commands: &str,
        right: &str,
        is_right: impl Fn(&str) -> bool,
    ) -> Result<(), String> {
        let end = Instant::now() + PATIENCE;
        loop {
            let typed = self.typed(commands);
            if typed.as_ref().is_ok_and(|printed| is_right(printed)) {
                return Ok(());
            }
            if Instant::now() >= end {
                let printed = typed.unwrap_or_else(|why| why);
                return Err(format!("$ {commands}\nprints\n{printed}\nand the page shows\n{right}"));
            }
            // The other side is another program's screen: it can only be looked at again.
            std::thread::sleep(PAUSE);
        }
    }

    /// Types the commands in the playground's folder, where its configuration is.
    pub(crate) fn typed(&self, commands: &str) -> Result<String, String> {
        let output = Command::new("sh")
            .args(["-e", "-c", &format!("export {}\n{commands}", self.exports)])
            .current_dir(&self.folder)
            .env("PATH", &self.path)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("sh cannot be started: {error}"))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let printed = String::from_utf8_lossy(&output.stdout);
        Err(format!("$ {commands}\nends with {}:\n{printed}{said}", output.status))
    }

    /// Ctrl-C, after which nothing may be left.
    pub(crate) fn stop(mut self) -> Result<(), String> {
        packages::run(Command::new("kill").args(["-INT", &self.process.id().to_string()]))?;
        let end = self.process.wait().map_err(|error| format!("the playground was lost: {error}"))?;
        if !end.success() {
            return Err(format!("the playground did not stop cleanly: {end}"));
        }
        if self.folder.exists() {
            return Err(format!("the playground left {} behind", self.folder.display()));
        }
        Ok(())
    }
}

impl Drop for Playground {
    fn drop(&mut self) {
        // Only if it was not stopped: then nobody wants it any more.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
