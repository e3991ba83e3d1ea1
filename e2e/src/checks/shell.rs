//! The reader's shell: a folder, an environment, and the programs of the check on `PATH`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tokio::process::Command;
use tokio::time::{Instant, sleep};

/// How long a command is repeated until it prints what is shown.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long to wait before it is repeated.
const PAUSE: Duration = Duration::from_millis(250);

/// One shell.
#[derive(Debug)]
pub(crate) struct Shell {
    folder: PathBuf,
    environment: Vec<(&'static str, OsString)>,
    /// Runs before all commands.
    first: String,
}

impl Shell {
    /// A shell in a folder that finds these programs by their names.
    pub(crate) fn new(folder: &Path, programs: &[&Path]) -> Result<Shell> {
        let own = programs.iter().filter_map(|it| it.parent()).map(Path::to_path_buf);
        let before = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths(own.chain(std::env::split_paths(&before)))?;
        let shell = Shell { folder: folder.to_path_buf(), environment: Vec::new(), first: String::new() };
        // Libraries read one or the other; a proxy of the machine does not lead to the machine itself.
        let shell =
            ["NO_PROXY", "no_proxy"].iter().fold(shell, |it, name| it.with(name, "127.0.0.1,localhost"));
        Ok(shell.with("PATH", path))
    }

    /// With a variable.
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<OsString>) -> Shell {
        self.environment.push((name, value.into()));
        self
    }

    /// With a line that the reader types first.
    pub(crate) fn after(mut self, line: &str) -> Shell {
        self.first = format!("{line}\n");
        self
    }

    /// A script that is not started yet.
    pub(crate) fn command(&self, script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-e", "-c", &format!("{}{script}", self.first)]).current_dir(&self.folder);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    /// What the commands print; an error if they end badly.
    pub(crate) async fn run(&self, commands: &str) -> Result<String> {
        output(&mut self.command(commands)).await.with_context(|| format!("$ {commands}"))
    }

    /// Repeats the commands until `is_right` accepts what they print; `shown` says what that is.
    pub(crate) async fn until(
        &self,
        commands: &str,
        shown: &str,
        is_right: impl Fn(&str) -> bool,
    ) -> Result<()> {
        let end = Instant::now() + PATIENCE;
        loop {
            let printed = self.run(commands).await;
            if printed.as_ref().is_ok_and(|printed| is_right(printed)) {
                return Ok(());
            }
            if Instant::now() >= end {
                let printed = printed.unwrap_or_else(|why| format!("{why:#}"));
                bail!("$ {commands}\nprints\n{printed}\nand the page shows\n{shown}");
            }
            // The output of another program can only be asked for again.
            sleep(PAUSE).await;
        }
    }
}

/// What a command prints; an error with all that it said if it ends badly.
pub(crate) async fn output(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output().await.context("it cannot be started")?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        bail!("it ended with {}:\n{printed}{}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    Ok(printed)
}
