//! docs/try/emulator.md: the emulator is started by the shown command, and the shown Python session is run
//! against it by an official client and prints what the page shows.
//!
//! Two things are put in, as the reader does: the address and the CA that the emulator printed.

use anyhow::{Context as _, Result, ensure};
use tokio::process::Command;

use super::{Programs, pages, shell};
use crate::process::{Program, Signal};

const PAGE: &str = "docs/try/emulator.md";

/// Runs it.
pub(crate) async fn run(programs: &Programs) -> Result<String> {
    let session = Session::of(&pages::read(PAGE)?)?;
    let folder = tempfile::tempdir()?;
    let mut command = Command::new(programs.sluice()?);
    command.args(session.arguments.split_whitespace());
    let (program, mut talk) = Program::talk("the emulator", &mut command, &folder.path().join("log"))?;
    let greeting = talk.hear_until("Ctrl-C").await?;
    let after = |words: &str| {
        let line = greeting.lines().find_map(|line| line.trim_start().strip_prefix(words));
        let word = line.and_then(|rest| rest.split_whitespace().next());
        word.with_context(|| format!("the emulator does not say its {words}:\n{greeting}"))
    };
    let code = session.with(after("Resource manager")?, after("CA certificate")?);
    let mut python = Command::new(programs.python()?);
    python.args(["-c", &code]).env("NO_PROXY", "127.0.0.1,localhost").env("no_proxy", "127.0.0.1,localhost");
    let printed = shell::output(&mut python).await.with_context(|| format!("{PAGE}: the Python session"))?;
    let (printed, prints) = (printed.trim(), session.prints);
    ensure!(printed == prints, "{PAGE}: the Python session prints\n{printed}\nand the page says\n{prints}");
    program.signal(Signal::Interrupt).await?;
    let end = program.ended().await;
    ensure!(end.success(), "the emulator did not stop cleanly: {end}");
    Ok(format!("{}\n{printed}", greeting.trim_end()))
}

/// The session as the page has it.
#[derive(Debug)]
struct Session {
    /// Of the emulator.
    arguments: String,
    code: String,
    /// The block after it.
    prints: String,
    address: String,
    ca: String,
}

impl Session {
    fn of(page: &str) -> Result<Session> {
        let mut blocks = pages::blocks(page).skip_while(|(language, _)| *language != Some("python"));
        let (_, code) =
            blocks.next().with_context(|| format!("{PAGE}: there is no `python` block to run"))?;
        let prints = blocks.find(|(language, _)| *language == Some("text")).map_or("", |(_, text)| text);
        let value = |name: &str| {
            let line = code.lines().find(|line| line.starts_with(name));
            let value = line.and_then(|line| line.split('"').nth(1)).map(str::to_string);
            value.with_context(|| format!("{PAGE}: the Python session has no line `{name} = \"…\"`"))
        };
        let arguments = pages::blocks(page).find_map(|(_, text)| pages::arguments_of_sluice(text));
        Ok(Session {
            arguments: arguments
                .with_context(|| format!("{PAGE}: no command starts the emulator"))?
                .to_string(),
            prints: prints.trim().to_string(),
            address: value("azure")?,
            ca: value("ca")?,
            code: code.to_string(),
        })
    }

    /// The code with what the emulator printed in place of what the page shows.
    fn with(&self, address: &str, ca: &str) -> String {
        self.code.replace(&self.address, address).replace(&self.ca, ca)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHOWN: &str = "```text\ncargo run -- emulator\n```\n```python\nca = \"/ca.pem\"\n\
        azure = \"https://127.0.0.1:1\"\nprint(azure, ca)\n```\n\nIt prints\n\n\
        ```text\nhttps://127.0.0.1:1 /ca.pem\n```\n";

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
        assert!(Session::of("").unwrap_err().to_string().contains("python"));
        let without = "```text\ncargo run -- emulator\n```\n```python\nprint(1)\n```\n";
        assert!(Session::of(without).unwrap_err().to_string().contains("azure"));
    }
}
