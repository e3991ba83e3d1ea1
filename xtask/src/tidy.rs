//! What no compiler watches: each check is a sentence about the tree that should stay true.
//!
//! A check takes the tree and returns what is wrong, as sentences that name the file and the
//! way out. Lengths are only shown: a long file is a question, not a mistake.

mod arrows;
mod commands;
mod coverage;
mod links;
mod literals;
mod modules;
mod named;
mod ratchet;
pub(crate) mod readme;
mod summary;
mod words;

use crate::tree::Tree;

/// A named check.
type Check = (&'static str, fn(&Tree) -> Vec<String>);

const CHECKS: &[Check] = &[
    ("every .rs file is reached by a mod", modules::check),
    ("every source file of the crates says its purpose", modules::check_purpose),
    ("crates depend only where the arrows point", arrows::check),
    ("no_std stands at the top of the pure crates", arrows::check_no_std),
    ("links, and tests and paths in backticks, exist; every page is linked", links::check),
    ("nothing is left unfinished or unfilled", words::check_markers),
    ("no path of one machine", words::check_paths),
    ("ARCHITECTURE.md lists every crate", arrows::check_list),
    ("discouraged wording does not increase", ratchet::check),
    ("README's commands and versions are true", readme::check),
    ("every block of commands is run by a stage", commands::check),
    ("commands, keys, metrics and codes that the book names exist", named::check),
    ("names in messages exist", named::check_literals),
    ("every item of the design names a test that covers it", coverage::check),
    ("the contents of the book list every page, and its links stay in the book", summary::check),
    ("no semicolon cuts a line of a diagram", words::check_diagrams),
];

/// Runs every check.
pub(crate) fn run(tree: &Tree) -> Result<String, Vec<String>> {
    let mut problems = Vec::new();
    let mut fine = Vec::new();
    for (name, check) in CHECKS {
        let found = check(tree);
        if found.is_empty() {
            fine.push(format!("ok: {name}"));
        }
        problems.extend(found);
    }
    fine.push(longest(tree));
    if problems.is_empty() { Ok(fine.join("\n")) } else { Err(problems) }
}

/// The ten longest files, as a question.
fn longest(tree: &Tree) -> String {
    let mut lengths: Vec<(usize, &str)> =
        tree.ending(".rs").map(|(path, text)| (text.lines().count(), path)).collect();
    lengths.sort_by(|a, b| b.cmp(a));
    let lines: Vec<String> =
        lengths.iter().take(10).map(|(length, path)| format!("{length:>6}  {path}")).collect();
    format!("the longest files (past 600 lines it is usually two ideas):\n{}", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_files_are_shown_and_never_fail() {
        let long = "x\n".repeat(5000);
        let tree = Tree::of(&[("a.rs", "x\n"), ("b.rs", &long)]);
        let shown = longest(&tree);
        assert!(shown.find("b.rs") < shown.find("a.rs"), "{shown}");
    }
}
