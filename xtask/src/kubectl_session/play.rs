//! The lines of a session, and how they are played.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use super::plain::plain;
use crate::tree::root;

/// How long a watch may wait for the words that end it.
const PATIENCE: Duration = Duration::from_secs(60);

/// One line of a session.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Line {
    /// A heading, which is in the transcript too.
    Heading(String),
    /// A command for the shell; `sorted` where the order of what it prints says nothing.
    Run { command: String, sorted: bool },
    /// A command that stays until a later line ends it.
    Watch(String),
    /// The words at which the watch ends, and its output is in the transcript.
    EndWatch(String),
}

/// A command and what it said, as it stands in a transcript.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Answer {
    pub(super) command: String,
    pub(super) said: String,
}

/// The lines of a session.
pub(super) fn lines(text: &str) -> Result<Vec<Line>, String> {
    let mut lines = Vec::new();
    let mut watches = 0;
    for line in text.lines().map(str::trim_end).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        lines.push(if let Some(heading) = line.strip_prefix("== ") {
            Line::Heading(heading.trim_end_matches([' ', '=']).to_string())
        } else if let Some(command) = line.strip_prefix("& ") {
            watches += 1;
            Line::Watch(command.to_string())
        } else if let Some(words) = line.strip_prefix("! ") {
            watches -= 1;
            Line::EndWatch(words.to_string())
        } else if let Some(command) = line.strip_prefix("~ ") {
            Line::Run { command: command.to_string(), sorted: true }
        } else if line.starts_with("kubectl ") {
            Line::Run { command: line.to_string(), sorted: false }
        } else {
            return Err(format!("no line of a session: {line}"));
        });
        if !(0..=1).contains(&watches) {
            return Err(format!("one watch at a time, begun by & and ended by !: {line}"));
        }
    }
    if watches == 0 { Ok(lines) } else { Err("a watch is begun by & and not ended by !".to_string()) }
}

/// A transcript as its file has it.
pub(super) fn written(answers: &[Answer]) -> String {
    let text = answers.iter().map(|answer| match answer.said.as_str() {
        "" => format!("$ {}\n\n", answer.command),
        said => format!("$ {}\n{said}\n\n", answer.command),
    });
    text.collect::<String>().trim_end().to_string() + "\n"
}

/// A transcript from its file.
pub(super) fn read(text: &str) -> Vec<Answer> {
    let mut answers: Vec<Answer> = Vec::new();
    for line in text.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            answers.push(Answer { command: command.to_string(), said: String::new() });
        } else if let Some(last) = answers.last_mut() {
            last.said.push_str(line);
            last.said.push('\n');
        }
    }
    for answer in &mut answers {
        answer.said = answer.said.trim_end().to_string();
    }
    answers
}

/// Where the commands run.
pub(super) struct Stage {
    folder: PathBuf,
    path: String,
    kubeconfig: PathBuf,
}

impl Stage {
    /// A folder with a kubeconfig that the session may change.
    pub(super) fn set(given: &Path, kubectl: &Path, folder: &Path) -> Result<Stage, String> {
        let told = |error: std::io::Error| format!("{}: {error}", folder.display());
        let _ = std::fs::remove_dir_all(folder);
        std::fs::create_dir_all(folder).map_err(told)?;
        let kubeconfig = folder.join("kubeconfig");
        std::fs::copy(given, &kubeconfig).map_err(told)?;
        let tools = kubectl.parent().unwrap_or(Path::new("/")).display().to_string();
        let path = [tools, std::env::var("PATH").unwrap_or_default()].join(":");
        Ok(Stage { folder: folder.to_path_buf(), path, kubeconfig })
    }

    /// Plays the lines; a command that ends badly is no failure of the session, its words are in the answer.
    pub(super) fn play(&self, lines: &[Line]) -> Result<Vec<Answer>, String> {
        let mut answers = Vec::new();
        let mut watch: Option<Watch> = None;
        for line in lines {
            match line {
                Line::Heading(words) => {
                    answers.push(Answer { command: format!("# {words}"), said: String::new() });
                }
                Line::Run { command, sorted } => answers.push(self.run(command, *sorted)?),
                Line::Watch(command) => {
                    watch = Some(Watch::begin(self.shell(&format!("exec {command}")), command)?)
                }
                Line::EndWatch(words) => answers.extend(watch.take().map(|it| it.until(words)).transpose()?),
            }
        }
        Ok(answers)
    }

    fn run(&self, command: &str, sorted: bool) -> Result<Answer, String> {
        // One pipe for both, as on a terminal; the end is told by the shell, which runs in any case.
        let script = format!("{{ {command}\n}} 2>&1; end=$?; [ $end = 0 ] || echo \"[ended with $end]\"");
        let output = self.shell(&script).output();
        let output = output.map_err(|error| format!("sh cannot be started: {error}"))?;
        let mut said = plain(&String::from_utf8_lossy(&output.stdout));
        if sorted {
            let mut lines: Vec<&str> = said.lines().collect();
            lines.sort_unstable();
            said = lines.join("\n");
        }
        Ok(Answer { command: command.to_string(), said })
    }

    fn shell(&self, script: &str) -> Command {
        let mut command = Command::new("sh");
        command
            .args(["-c", script])
            .current_dir(root().join(super::FOLDER))
            .env("KUBECONFIG", &self.kubeconfig)
            // What another server's discovery left must not speak for this one.
            .env("KUBECACHEDIR", self.folder.join("cache"))
            .env("PATH", &self.path)
            .env("TZ", "UTC")
            .env("LC_ALL", "C")
            .stdin(Stdio::null());
        for name in ["NO_PROXY", "no_proxy"] {
            command.env(name, "127.0.0.1,localhost");
        }
        command
    }
}

/// A command that stays.
struct Watch {
    command: String,
    process: Child,
    lines: Receiver<String>,
    said: Vec<String>,
}

impl Watch {
    /// Starts it and waits for its first line, so that what follows is seen by the watch and not by its list.
    fn begin(mut shell: Command, command: &str) -> Result<Watch, String> {
        // A pipe would keep the shell as the parent of who is to be ended.
        if command.contains('|') {
            return Err(format!("a watch is one command: {command}"));
        }
        shell.stdout(Stdio::piped());
        let mut process = shell.spawn().map_err(|error| format!("sh cannot be started: {error}"))?;
        let output = process.stdout.take().ok_or("a watch has no output")?;
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let mut watch = Watch { command: command.to_string(), process, lines, said: Vec::new() };
        watch.line()?;
        Ok(watch)
    }

    fn line(&mut self) -> Result<(), String> {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => self.said.push(line),
            Err(_) => {
                return Err(format!("nothing came from `{}` after\n{}", self.command, self.said.join("\n")));
            }
        }
        Ok(())
    }

    fn until(mut self, words: &str) -> Result<Answer, String> {
        while !self.said.last().is_some_and(|line| line.contains(words)) {
            self.line()?;
        }
        Ok(Answer { command: format!("{} &", self.command), said: plain(&self.said.join("\n")) })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_has_headings_commands_and_watches_that_end() {
        let text = "# told\n== One ==\nkubectl a | b\n~ kubectl c\n\n& kubectl get -w\n! DELETED\n";
        let run = |command: &str, sorted| Line::Run { command: command.to_string(), sorted };
        let expected = [
            Line::Heading("One".to_string()),
            run("kubectl a | b", false),
            run("kubectl c", true),
            Line::Watch("kubectl get -w".to_string()),
            Line::EndWatch("DELETED".to_string()),
        ];
        assert_eq!(lines(text).unwrap(), expected);
        for odd in ["rm -rf x", "! DELETED", "& kubectl a", "& kubectl a\n& kubectl b\n! x\n! y"] {
            assert!(lines(odd).is_err(), "{odd}");
        }
    }

    #[test]
    fn a_transcript_is_read_as_it_was_written() {
        let answer = |command: &str, said: &str| Answer { command: command.into(), said: said.into() };
        let answers = [answer("# One", ""), answer("kubectl a", "x\n\n  y"), answer("kubectl b", "")];
        assert_eq!(read(&written(&answers)), answers);
    }
}
