//! Every block that a reader could paste is run by a stage, and what cannot be is not dressed as if it were.
//!
//! In README.md and in the book a block of commands is `sh`. README's are in the list of `readme.rs`, the tour's
//! are run by its stage, and those of the other pages by [`crate::book`], which has no cluster: so only commands
//! that need none may stand there. What needs an Azure or a cluster is `text`, like everything that is printed.

use crate::markdown;
use crate::tour;
use crate::tree::Tree;

/// The languages that blocks may have. There is one for commands, so that none hides under another name.
const LANGUAGES: [&str; 8] = ["sh", "text", "yaml", "json", "toml", "python", "rust", "mermaid"];

/// How the commands begin that need neither a cluster nor an Azure nor a file.
const ALONE: [&str; 4] =
    ["sluice explain SGW", "sluice playground --list", "sluice version", "sluice completions "];

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
            if fence.language != "sh" || path == "README.md" || path == tour::PAGE {
                continue;
            }
            if fence.is_indented {
                problems.push(format!(
                    "{at}: a block of commands in a list is not found by the stage that runs it"
                ));
            }
            let odd = fence.lines.iter().find(|line| !ALONE.iter().any(|start| line.starts_with(start)));
            if let Some(odd) = odd {
                problems.push(format!(
                    "{at}: nothing runs `{odd}`; if it needs a cluster, mark the block as `text`, else add its \
                     beginning to xtask/src/tidy/commands.rs"
                ));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        check(&Tree::of(&[(path, text)]))
    }

    #[test]
    fn a_block_that_nothing_runs_is_named() {
        let install = "# A\n```sh\nkubectl apply -f x.yaml\n```\n";
        assert!(
            found("docs/guides/a.md", install)[0].contains("docs/guides/a.md:2: nothing runs `kubectl apply")
        );
        assert_eq!(found("docs/tour.md", install), [""; 0], "the tour has a stage");
        assert_eq!(found("docs/a.md", "```sh\nsluice explain SGW0001\n```\n"), [""; 0]);
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
