//! The emulator's page, as a reader has it: the emulator is started by the shown command, and the shown
//! Python session is run against it by an official client and prints what the page shows.
//!
//! Two things are put in, as the reader does: the address and the CA that the emulator printed.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitStatus, Stdio};

use crate::conformance;
use crate::markdown;
use crate::programs::Program;
use crate::tree::Tree;

/// The page.
const PAGE: &str = "docs/guides/emulator.md";
/// How its command begins. It goes on until it is stopped.
const COMMAND: &str = "cargo run --release -- ";

/// The stage.
pub(crate) fn run(tree: &Tree) -> Result<String, Vec<String>> {
    let page = tree.text(PAGE).unwrap_or("");
    let session = Session::of(page).map_err(|why| vec![why])?;
    Program::Lab.path()?;
    let mut emulator = Emulator::start(&session.arguments).map_err(|why| vec![why])?;
    let printed = python(&session.with(&emulator.address, &emulator.ca)).and_then(|printed| {
        if printed.trim() == session.prints { Ok(printed) } else { Err(differs(&session, &printed)) }
    });
    let stopped = emulator.stop().map_err(|why| vec![why])?;
    let printed = printed.map_err(|why| vec![why])?;
    if !stopped.success() {
        return Err(vec![format!("the emulator did not stop cleanly: {stopped}")]);
    }
    Ok(format!("{}\n{}", emulator.greeting.trim_end(), printed.trim_end()))
}

fn differs(session: &Session, printed: &str) -> String {
    format!("{PAGE}: the Python session prints\n{}\nand the page says\n{}", printed.trim(), session.prints)
}

/// The session as the page has it.
struct Session {
    /// Of the emulator.
    arguments: String,
    code: String,
    /// What stands in the block after it.
    prints: String,
    address: String,
    ca: String,
}

impl Session {
    fn of(page: &str) -> Result<Session, String> {
        let code = markdown::blocks(page, "python").join("\n");
        if code.trim().is_empty() {
            return Err(format!("{PAGE}: there is no `python` block to run"));
        }
        let after = page.split_once("```python").map_or("", |(_, rest)| rest);
        let after = after.split_once("\n```\n").map_or("", |(_, rest)| rest);
        let block = after.split_once("```text\n").and_then(|(_, rest)| rest.split_once("\n```"));
        let prints = block.map_or("", |(text, _)| text).trim().to_string();
        let value = |name: &str| {
            let line = code.lines().find(|line| line.starts_with(name));
            let value = line.and_then(|line| line.split('"').nth(1)).map(str::to_string);
            value.ok_or(format!("{PAGE}: the Python session has no line `{name} = \"…\"`"))
        };
        let arguments = page
            .lines()
            .find_map(|line| line.strip_prefix(COMMAND))
            .ok_or(format!("{PAGE}: there is no line that begins with `{COMMAND}`"))?
            .to_string();
        Ok(Session { arguments, prints, address: value("azure")?, ca: value("ca")?, code: code.clone() })
    }

    /// The code with what the emulator printed in place of what the page shows.
    fn with(&self, address: &str, ca: &str) -> String {
        self.code.replace(&self.address, address).replace(&self.ca, ca)
    }
}

fn python(code: &str) -> Result<String, String> {
    let mut command = Command::new(conformance::newest_python()?);
    command.args(["-c", code]).stdin(Stdio::null());
    // Some libraries read the one spelling first, some the other.
    for name in ["NO_PROXY", "no_proxy"] {
        command.env(name, "127.0.0.1,localhost");
    }
    let output = command.output().map_err(|error| format!("python cannot be started: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        let said = String::from_utf8_lossy(&output.stderr);
        Err(format!("{PAGE}: the Python session ended with {}:\n{said}", output.status))
    }
}

/// The emulator, started as the page says.
struct Emulator {
    process: Child,
    greeting: String,
    address: String,
    ca: String,
}

impl Emulator {
    fn start(arguments: &str) -> Result<Emulator, String> {
        let mut process = Command::new(Program::Lab.place())
            .args(arguments.split_whitespace())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("the emulator cannot be started: {error}"))?;
        let output = process.stdout.take().ok_or("the emulator has no output")?;
        let mut greeting = String::new();
        // The greeting ends with how to stop it; nothing comes after.
        for line in BufReader::new(output).lines() {
            let line = line.map_err(|error| format!("the emulator cannot be read: {error}"))?;
            greeting.push_str(&line);
            greeting.push('\n');
            if line.contains("Ctrl-C") {
                break;
            }
        }
        let after = |words: &str| {
            let line = greeting.lines().find_map(|line| line.trim_start().strip_prefix(words));
            line.and_then(|rest| rest.split_whitespace().next()).map(str::to_string)
        };
        match (after("Resource manager"), after("CA certificate")) {
            (Some(address), Some(ca)) => Ok(Emulator { process, greeting, address, ca }),
            _ => {
                let _ = process.kill();
                Err(format!("the emulator does not say where it is and what its CA is:\n{greeting}"))
            }
        }
    }

    /// Asks it to stop, as Ctrl-C does.
    fn stop(&mut self) -> Result<ExitStatus, String> {
        let asked = Command::new("kill").args(["-INT", &self.process.id().to_string()]).status();
        if !asked.is_ok_and(|end| end.success()) {
            let _ = self.process.kill();
        }
        self.process.wait().map_err(|error| format!("the emulator was lost: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHOWN: &str = "cargo run --release -- emulator\n```python\nca = \"/ca.pem\"\nazure = \"https://127.0.0.1:1\"\nprint(azure, ca)\n```\n\n\
        It prints\n\n```text\nhttps://127.0.0.1:1 /ca.pem\n```\n";

    #[test]
    fn the_session_is_the_block_and_what_stands_after_it() {
        let session = Session::of(SHOWN).unwrap();
        assert_eq!(session.arguments, "emulator");
        assert_eq!(session.prints, "https://127.0.0.1:1 /ca.pem");
        let code = session.with("https://127.0.0.1:7", "/other.pem");
        assert_eq!(code, "ca = \"/other.pem\"\nazure = \"https://127.0.0.1:7\"\nprint(azure, ca)");
    }

    #[test]
    fn a_page_without_a_session_is_told_so() {
        assert!(Session::of("").err().unwrap().contains("python"));
        assert!(
            Session::of("cargo run --release -- emulator\n```python\nprint(1)\n```\n")
                .err()
                .unwrap()
                .contains("azure")
        );
    }
}
