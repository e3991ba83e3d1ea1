//! A program that the harness starts: its output goes to a file, its end is noticed at once.
//!
//! A task of its own waits for the child, so that an unexpected end is known without asking, and
//! signals go by process id only as long as that task has not seen the end. Nothing is restarted
//! here: who wants that watches [`Program::ended`].

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};

use anyhow::{Context as _, Result, bail};
use tokio::process::{Child, Command};
use tokio::sync::watch;

/// One running program.
#[derive(Debug)]
pub(crate) struct Program {
    name: String,
    id: u32,
    ended: watch::Receiver<Option<ExitStatus>>,
    waiting: tokio::task::JoinHandle<()>,
}

/// What a process can be told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Signal {
    /// `kill -9`.
    Kill,
    /// Please end.
    Terminate,
    /// Freeze.
    Stop,
    /// Go on.
    Continue,
}

impl Program {
    /// Starts it; both of its outputs are appended to the log.
    pub(crate) fn start(name: &str, command: &mut Command, log: &Path) -> Result<Program> {
        let output = appending(log)?;
        let errors = output.try_clone().context("the log cannot be used twice")?;
        let child = command
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("{name} cannot be started; is the path right?"))?;
        Program::watch(name, child)
    }

    /// Takes over a child that somebody else has started.
    pub(crate) fn watch(name: &str, mut child: Child) -> Result<Program> {
        let Some(id) = child.id() else { bail!("{name} ended before it could be watched") };
        let (tell, ended) = watch::channel(None);
        let waiting = tokio::spawn(async move {
            // An error here means that there is no child to wait for, which is an end as well.
            let status = child.wait().await.unwrap_or_default();
            let _ = tell.send(Some(status));
        });
        Ok(Program { name: name.to_string(), id, ended, waiting })
    }

    /// How it ended, if it has.
    pub(crate) fn status(&self) -> Option<ExitStatus> {
        *self.ended.borrow()
    }

    /// Waits for its end.
    pub(crate) async fn ended(&self) -> ExitStatus {
        let mut ended = self.ended.clone();
        let status = ended.wait_for(Option::is_some).await.ok().and_then(|status| *status);
        status.unwrap_or_default()
    }

    /// Sends a signal, unless it has ended already.
    pub(crate) async fn signal(&self, signal: Signal) -> Result<()> {
        if self.status().is_some() {
            return Ok(());
        }
        let word = match signal {
            Signal::Kill => "-KILL",
            Signal::Terminate => "-TERM",
            Signal::Stop => "-STOP",
            Signal::Continue => "-CONT",
        };
        let id = self.id.to_string();
        // A failure means that it has just ended.
        let sent = Command::new("kill").args([word, &id]).stderr(Stdio::null()).status().await;
        sent.with_context(|| format!("{} cannot be sent {word}", self.name))?;
        Ok(())
    }

    /// Kills it and waits until it is dead.
    pub(crate) async fn kill(&self) -> Result<()> {
        self.signal(Signal::Kill).await?;
        self.ended().await;
        Ok(())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // The child lives in the task and dies with it.
        self.waiting.abort();
    }
}

/// A file that is written at its end.
pub(crate) fn appending(path: &Path) -> Result<File> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .with_context(|| format!("{} cannot be written", path.display()))
}

/// The last lines of a file, for reports.
pub(crate) fn tail(path: &PathBuf, lines: usize) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_killed_program_is_known_to_be_dead_and_its_output_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let mut command = Command::new("sh");
        command.args(["-c", "echo began; exec sleep 100"]);
        let program = Program::start("sleeper", &mut command, &log).unwrap();
        while tail(&log, 1) != "began" {
            tokio::task::yield_now().await;
        }
        assert!(program.status().is_none());
        program.kill().await.unwrap();
        assert!(!program.status().unwrap().success());
        assert_eq!(tail(&log, 1), "began");
    }
}
