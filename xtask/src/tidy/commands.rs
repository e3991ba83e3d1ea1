//! Every block that a reader could paste is run by a stage, or says why it is not.
//!
//! In README.md and in the book a block of commands is `sh`. README's, and those of cargo on any page, are in the list
//! of `readme.rs`. The tour's are run by its stage, and those of the other pages by [`crate::book`], beside a
//! playground. What needs a real Azure or a kubelet is `text`, like everything that is printed, and has a comment in
//! front of it with the reason.

use super::readme;
use crate::markdown;
use crate::tour;
use crate::tree::Tree;

/// The languages that blocks may have. There is one for commands, so that none hides under another name.
const LANGUAGES: [&str; 8] = ["sh", "text", "yaml", "json", "toml", "python", "rust", "mermaid"];

/// How the commands begin that can be typed beside a playground.
const BESIDE: [&str; 2] = ["sluice ", "kubectl "];

/// How commands begin.
const COMMANDS: [&str; 6] = ["sluice ", "kubectl ", "cargo ", "az ", "curl ", "helm "];

/// What stands in front of commands that no stage runs, followed by the reason.
const NOT_RUN: &str = "<!-- not run: ";

/// The page whose blocks are all printed by the program.
const MADE_FROM_HELP: &str = "docs/reference/cli.md";

/// README.md and the pages of the book.
pub(super) fn pages(tree: &Tree) -> impl Iterator<Item = (&str, &str)> {
    tree.ending(".md").filter(|(path, _)| *path == "README.md" || path.starts_with("docs/"))
}

/// Names blocks that nothing runs.
pub(super) fn check(tree: &Tree) -> Vec<String> {
    let mut problems = Vec::new();
    for (path, text) in pages(tree) {
        for fence in markdown::fences(text) {
            let at = format!("{path}:{}", fence.line);
            if !LANGUAGES.contains(&fence.language) {
                problems.push(format!(
                    "{at}: a block of {:?}; commands that a stage runs are `sh`, everything else is one of {}",
                    fence.language,
                    LANGUAGES[1..].join(", ")
                ));
            }
            let is_commands = fence.lines.first().is_some_and(|line| {
                let line = line.trim_start_matches("$ ");
                COMMANDS.iter().any(|start| line.starts_with(start))
            });
            if fence.language == "text"
                && is_commands
                && path != MADE_FROM_HELP
                && !says_why(text, fence.line)
            {
                problems.push(format!(
                    "{at}: commands that nothing runs; make the block `sh`, or say why with `{NOT_RUN}… -->` above it"
                ));
            }
            if fence.language != "sh" || path == "README.md" || path == tour::PAGE {
                continue;
            }
            if fence.is_indented {
                problems.push(format!(
                    "{at}: a block of commands in a list is not found by the stage that runs it"
                ));
            }
            // The book's stage leaves out blocks of cargo, so such a block has nothing else.
            if fence.lines.iter().all(|line| readme::is_known(path, line)) {
                continue;
            }
            let odd = fence.lines.iter().find(|line| !BESIDE.iter().any(|start| line.starts_with(start)));
            if let Some(odd) = odd {
                problems.push(format!(
                    "{at}: nothing runs `{odd}`; only sluice and kubectl can be typed beside the playground"
                ));
            }
        }
    }
    problems
}

/// Whether the last line before the block is the comment with the reason.
fn says_why(text: &str, line: usize) -> bool {
    let mut before = text.lines().take(line - 1).collect::<Vec<_>>().into_iter().rev();
    before.find(|line| !line.trim().is_empty()).is_some_and(|line| line.trim().starts_with(NOT_RUN))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        check(&Tree::of(&[(path, text)]))
    }

    #[test]
    fn a_block_that_nothing_runs_is_named() {
        let install = "# A\n```sh\naz login\n```\n";
        assert!(found("docs/use/a.md", install)[0].contains("docs/use/a.md:2: nothing runs `az login`"));
        assert_eq!(found("docs/try/tour.md", install), [""; 0], "the tour has a stage");
        assert_eq!(found("docs/a.md", "```sh\nsluice explain SGW0001\n```\n"), [""; 0]);
        let shown = "```text\n$ sluice run\n```\n";
        assert!(found("docs/a.md", shown)[0].contains("commands that nothing runs"));
        assert_eq!(found("docs/a.md", &format!("<!-- not run: needs a kubelet -->\n\n{shown}")), [""; 0]);
        let bench = "```sh\ncargo run -- bench calls\n```\n";
        assert_eq!(found("docs/understand/performance.md", bench), [""; 0], "the list has it");
        assert!(found("docs/a.md", bench)[0].contains("nothing runs `cargo run -- bench calls`"));
        assert!(found("docs/a.md", "- x\n  ```sh\n  sluice version\n  ```\n")[0].contains("in a list"));
    }

    #[test]
    fn commands_do_not_hide_under_another_name() {
        for language in ["console", "bash", "shell", ""] {
            let text = format!("```{language}\n$ sluice run\n```\n");
            assert_eq!(found("docs/a.md", &text).len(), 1, "{language}");
            assert_eq!(found("README.md", &text).len(), 1, "{language}");
            assert_eq!(found("CONTRIBUTING.md", &text), [""; 0], "only README and the book");
        }
    }
}
