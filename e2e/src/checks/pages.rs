//! Pages of the documentation as rows of commands with the output that they show.

use std::path::Path;
use std::sync::LazyLock;

use anyhow::{Context as _, Result};
use regex::Regex;

/// A block of a page that a check looks at.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// Commands (`sh`), and their output where the page shows it.
    Run { commands: String, shows: Option<String> },
    /// A `text` block that is no output: the start of a process that stays, or an example.
    Text(String),
}

/// The text of a page.
pub(crate) fn read(path: &str) -> Result<String> {
    std::fs::read_to_string(Path::new(super::ROOT).join(path))
        .with_context(|| format!("{path} cannot be read"))
}

/// The language and the text of every code block, and headings, which have no language.
pub(crate) fn blocks(page: &str) -> impl Iterator<Item = (Option<&str>, &str)> {
    static BLOCK: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"(?ms)^```(\w+)\n(.*?)^```$|^#[^\n]*").expect("it is a pattern"));
    BLOCK.captures_iter(page).map(|found| match (found.get(1), found.get(2)) {
        (Some(language), Some(text)) => (Some(language.as_str()), text.as_str().trim_end()),
        _ => (None, ""),
    })
}

/// The steps of a page. A `text` block belongs to the `sh` block before it, unless a heading or another `text`
/// block stands between them.
pub(crate) fn steps(page: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut open = false;
    for (language, text) in blocks(page) {
        match (language, steps.last_mut()) {
            (Some("sh"), _) => steps.push(Step::Run { commands: text.to_string(), shows: None }),
            (Some("text"), Some(Step::Run { shows, .. })) if open => *shows = Some(text.to_string()),
            (Some("text"), _) => steps.push(Step::Text(text.to_string())),
            (Some(_), _) => continue,
            (None, _) => {}
        }
        open = language == Some("sh");
    }
    steps
}

/// What the reader gives to `sluice`, however the page has it built.
pub(crate) fn arguments_of_sluice(command: &str) -> Option<&str> {
    ["cargo run --release -- ", "cargo run -- ", "sluice "]
        .iter()
        .find_map(|start| command.strip_prefix(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_a_row_of_commands_with_what_they_show() {
        let page = "# A\n```text\nsluice run\n```\n```sh\na\nb\n```\nand\n```yaml\nk: v\n```\n```text\nx\n```\n\
            ```text\nz\n```\n```sh\n# c\n```\n## B\n```text\ny\n```\n";
        let run = |commands: &str, shows: Option<&str>| Step::Run {
            commands: commands.into(),
            shows: shows.map(str::to_string),
        };
        let text = |text: &str| Step::Text(text.into());
        let expected = [text("sluice run"), run("a\nb", Some("x")), text("z"), run("# c", None), text("y")];
        assert_eq!(steps(page), expected);
    }

    #[test]
    fn a_command_may_be_of_any_build() {
        for start in ["sluice", "cargo run --", "cargo run --release --"] {
            assert_eq!(arguments_of_sluice(&format!("{start} playground")), Some("playground"));
        }
        assert_eq!(arguments_of_sluice("cargo run -p sluice-sim -- --seeds 200"), None);
    }
}
