//! A program that tests start: its output goes to a file or is read line by line, its end is noticed at once.
//!
//! A task of its own waits for the child, so that an unexpected end is known without asking, and
//! signals go by process id only as long as that task has not seen the end. Nothing is restarted
//! here: who wants that watches [`Program::ended`].

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};

use anyhow::{Context as _, Result, bail};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::watch;

/// One running program.
#[derive(Debug)]
pub struct Program {
    name: String,
    id: u32,
    ended: watch::Receiver<Option<ExitStatus>>,
    waiting: tokio::task::JoinHandle<()>,
}

/// What a process can be told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signal {
    /// `kill -9`.
    Kill,
    /// Please end.
    Terminate,
    /// Ctrl-C.
    Interrupt,
    /// The terminal is closed, or the configuration is to be read again.
    Hangup,
    /// What the program makes of it.
    User1,
    /// Freeze.
    Stop,
    /// Go on.
    Continue,
}

impl Program {
    /// Starts it; both of its outputs are appended to the log.
    pub fn start(name: &str, command: &mut Command, log: &Path) -> Result<Program> {
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

    /// Starts it; its standard input and output are for talking to it, its errors are appended to the log.
    pub fn talk(name: &str, command: &mut Command, log: &Path) -> Result<(Program, Talk)> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(appending(log)?)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("{name} cannot be started; is the path right?"))?;
        let input = child.stdin.take();
        let output = child.stdout.take().with_context(|| format!("{name} has no standard output"))?;
        let program = Program::watch(name, child)?;
        let lines = BufReader::new(output).lines();
        Ok((program, Talk { name: name.to_string(), log: log.to_path_buf(), input, lines }))
    }

    fn watch(name: &str, mut child: Child) -> Result<Program> {
        let Some(id) = child.id() else { bail!("{name} ended before it could be watched") };
        let (tell, ended) = watch::channel(None);
        let waiting = tokio::spawn(async move {
            // An error here means that there is no child to wait for, which is an end as well.
            let status = child.wait().await.unwrap_or_default();
            let _ = tell.send(Some(status));
        });
        Ok(Program { name: name.to_string(), id, ended, waiting })
    }

    /// Its process id.
    pub const fn id(&self) -> u32 {
        self.id
    }

    /// How it ended, if it has.
    pub fn status(&self) -> Option<ExitStatus> {
        *self.ended.borrow()
    }

    /// Waits for its end.
    pub async fn ended(&self) -> ExitStatus {
        let mut ended = self.ended.clone();
        let status = ended.wait_for(Option::is_some).await.ok().and_then(|status| *status);
        status.unwrap_or_default()
    }

    /// Sends a signal, unless it has ended already.
    pub async fn signal(&self, signal: Signal) -> Result<()> {
        if self.status().is_some() {
            return Ok(());
        }
        let word = match signal {
            Signal::Kill => "-KILL",
            Signal::Terminate => "-TERM",
            Signal::Interrupt => "-INT",
            Signal::Hangup => "-HUP",
            Signal::User1 => "-USR1",
            Signal::Stop => "-STOP",
            Signal::Continue => "-CONT",
        };
        let id = self.id.to_string();
        // The shell's own `kill`: small images have no program of that name.
        let mut kill = Command::new("sh");
        kill.args(["-c", "kill \"$@\"", "sh", word, &id]).stderr(Stdio::null());
        // Another exit code than 0 means that it has just ended.
        let sent = kill.status().await;
        sent.with_context(|| format!("{} cannot be sent {word}", self.name))?;
        Ok(())
    }

    /// Kills it and waits until it is dead.
    pub async fn kill(&self) -> Result<()> {
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

/// The standard input and output of a program.
#[derive(Debug)]
pub struct Talk {
    name: String,
    log: PathBuf,
    input: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Talk {
    /// The next line; an error if the program ended.
    pub async fn hear(&mut self) -> Result<String> {
        match self.lines.next_line().await? {
            Some(line) => Ok(line),
            None => bail!("{} ended without a further word:\n{}", self.name, tail(&self.log, 20)),
        }
    }

    /// All lines up to and with the one that has these words.
    pub async fn hear_until(&mut self, words: &str) -> Result<String> {
        let mut text = String::new();
        loop {
            let line = self.hear().await.with_context(|| format!("it said {text:?} and not {words:?}"))?;
            text += &format!("{line}\n");
            if line.contains(words) {
                return Ok(text);
            }
        }
    }

    /// All lines until its output ends.
    pub async fn hear_out(&mut self) -> Result<String> {
        let mut text = String::new();
        while let Some(line) = self.lines.next_line().await? {
            text += &format!("{line}\n");
        }
        Ok(text)
    }

    /// Writes a line to its standard input.
    pub async fn say(&mut self, line: &str) -> Result<()> {
        let input = self.input.as_mut().with_context(|| format!("{} does not listen any more", self.name))?;
        input.write_all(format!("{line}\n").as_bytes()).await?;
        Ok(input.flush().await?)
    }

    /// Closes its standard input.
    pub fn hang_up(&mut self) {
        self.input = None;
    }
}

/// A file that is written at its end.
fn appending(path: &Path) -> Result<File> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .with_context(|| format!("{} cannot be written", path.display()))
}

/// The last lines of a file, for reports.
pub fn tail(path: &Path, lines: usize) -> String {
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

    #[tokio::test]
    async fn a_program_is_talked_to_until_it_ends_and_its_errors_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "echo ready; read line; echo \"heard $line\"; read rest; echo oops >&2; exit 3"]);
        let (program, mut talk) =
            Program::talk("the shell", &mut command, &folder.path().join("log")).unwrap();
        assert_eq!(talk.hear_until("ready").await.unwrap(), "ready\n");
        talk.say("hello").await.unwrap();
        assert_eq!(talk.hear().await.unwrap(), "heard hello");
        talk.hang_up();
        assert_eq!(program.ended().await.code(), Some(3));
        assert!(talk.hear().await.unwrap_err().to_string().contains("oops"));
        assert!(talk.say("more").await.is_err());
    }
}
