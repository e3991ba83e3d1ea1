//! The lines of a session, and how they are played.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};

use super::super::shell::Shell;
use super::super::spelling::of_kubectl;
use crate::process::{Program, Talk};

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
pub(super) fn lines(text: &str) -> Result<Vec<Line>> {
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
            bail!("no line of a session: {line}");
        });
        ensure!((0..=1).contains(&watches), "one watch at a time, begun by & and ended by !: {line}");
    }
    ensure!(watches == 0, "a watch is begun by & and not ended by !");
    Ok(lines)
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

/// Plays the lines; a command that ends badly is no failure of the session, its words are in the answer.
pub(super) async fn all(shell: &Shell, lines: &[Line], log: &Path) -> Result<Vec<Answer>> {
    let mut answers = Vec::new();
    let mut watch: Option<Watch> = None;
    for line in lines {
        match line {
            Line::Heading(words) => {
                answers.push(Answer { command: format!("# {words}"), said: String::new() });
            }
            Line::Run { command, sorted } => answers.push(run(shell, command, *sorted).await?),
            Line::Watch(command) => watch = Some(Watch::begin(shell, command, log).await?),
            Line::EndWatch(words) => {
                let watch = watch.take().context("no watch has begun")?;
                answers.push(watch.until(words).await?);
            }
        }
    }
    Ok(answers)
}

async fn run(shell: &Shell, command: &str, sorted: bool) -> Result<Answer> {
    // One pipe for both, as on a terminal; the end is told by the shell, which runs in any case.
    let script =
        format!("set +e; {{ {command}\n}} 2>&1; end=$?; [ $end = 0 ] || echo \"[ended with $end]\"; true");
    let mut said = of_kubectl(&shell.run(&script).await?);
    if sorted {
        let mut lines: Vec<&str> = said.lines().collect();
        lines.sort_unstable();
        said = lines.join("\n");
    }
    Ok(Answer { command: command.to_string(), said })
}

/// A command that stays.
struct Watch {
    command: String,
    talk: Talk,
    said: Vec<String>,
    _program: Program,
}

impl Watch {
    /// Starts it and waits for its first line, so that what follows is seen by the watch and not by its list.
    async fn begin(shell: &Shell, command: &str, log: &Path) -> Result<Watch> {
        // A pipe would keep the shell as the parent of who is to be ended.
        ensure!(!command.contains('|'), "a watch is one command: {command}");
        let (program, talk) = Program::talk(command, &mut shell.command(&format!("exec {command}")), log)?;
        let mut watch = Watch { command: command.to_string(), talk, said: Vec::new(), _program: program };
        watch.line().await?;
        Ok(watch)
    }

    async fn line(&mut self) -> Result<()> {
        let line = tokio::time::timeout(PATIENCE, self.talk.hear()).await;
        let nothing = || format!("nothing came from `{}` after\n{}", self.command, self.said.join("\n"));
        let line = line.with_context(nothing)??;
        self.said.push(line);
        Ok(())
    }

    async fn until(mut self, words: &str) -> Result<Answer> {
        while !self.said.last().is_some_and(|line| line.contains(words)) {
            self.line().await?;
        }
        Ok(Answer { command: format!("{} &", self.command), said: of_kubectl(&self.said.join("\n")) })
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
