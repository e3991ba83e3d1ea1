//! The pages with commands of cargo show only what is true: commands that a test runs, and the right versions.

use crate::markdown;
use crate::tree::Tree;

/// More commands than this do not fit a first page.
const COMMANDS_MAX: usize = 12;

/// The first page.
const README: &str = "README.md";

/// The commands of cargo that pages show and stages run, each exactly as a reader types it, and its page.
const KNOWN: [(&str, &str); 5] = [
    (README, PLAYGROUND),
    (README, TEST),
    ("CONTRIBUTING.md", "cargo run -- playground --scenario tour --exit"),
    ("CONTRIBUTING.md", "cargo run --release -p sluice-sim -- --seeds 200"),
    ("docs/understand/performance.md", "cargo run -- bench calls"),
];

/// The command that runs all stages.
pub(crate) const TEST: &str = "cargo xtask test";

/// The command that the README promises to work first. It goes on until it is stopped.
pub(crate) const PLAYGROUND: &str = "cargo run -- playground";

/// The Rust that the workspace needs: every crate has the same.
const VERSION: &str = env!("CARGO_PKG_RUST_VERSION");

/// Whether a command is typed in the reader's second shell, beside the playground.
pub(crate) fn is_beside_the_playground(command: &str) -> bool {
    ["kubectl ", "sluice "].iter().any(|start| command.starts_with(start))
}

/// The commands of all `sh` blocks of a page.
fn commands(tree: &Tree, page: &str) -> Vec<String> {
    markdown::blocks(tree.text(page).unwrap_or(""), "sh")
        .into_iter()
        .map(|line| line.trim().trim_start_matches("$ ").to_string())
        .filter(|line| !line.is_empty())
        .collect()
}

/// The pages with commands of cargo, in the order in which a reader meets them.
fn pages() -> Vec<&'static str> {
    let mut pages: Vec<&str> = KNOWN.iter().map(|(page, _)| *page).collect();
    pages.dedup();
    pages
}

/// The commands of these pages, with their page.
pub(crate) fn commands_of_pages(tree: &Tree) -> Vec<(&'static str, String)> {
    let of = |page| commands(tree, page).into_iter().map(move |command| (page, command));
    pages().into_iter().flat_map(of).collect()
}

/// Whether a stage runs this command of cargo because this page shows it.
pub(super) fn is_known(page: &str, command: &str) -> bool {
    KNOWN.contains(&(page, command))
}

/// Names what is not true.
pub(super) fn check(tree: &Tree) -> Vec<String> {
    let mut problems = Vec::new();
    let shown = commands_of_pages(tree);
    let of_readme: Vec<&str> =
        shown.iter().filter(|(page, _)| *page == README).map(|(_, command)| command.as_str()).collect();
    if of_readme.first() != Some(&PLAYGROUND) {
        problems.push(format!("{README}: the first command must be `{PLAYGROUND}`"));
    }
    if of_readme.len() > COMMANDS_MAX {
        problems.push(format!("{README}: {} commands are too many for a first page", of_readme.len()));
    }
    for (page, command) in &shown {
        let is_typed_beside = *page == README && is_beside_the_playground(command);
        if !is_known(page, command) && !is_typed_beside {
            problems.push(format!(
                "{page}: no test runs `{command}`; add it to a stage and to the list in xtask/src/tidy/readme.rs"
            ));
        }
    }
    for (page, command) in KNOWN {
        if !shown.iter().any(|(on, it)| *on == page && it == command) {
            problems.push(format!(
                "{page}: `{command}` is missing, so no stage runs it; show it in an `sh` block, or take it off the \
                 list in xtask/src/tidy/readme.rs"
            ));
        }
    }
    problems.extend(check_version(tree));
    problems
}

fn check_version(tree: &Tree) -> Vec<String> {
    let text = tree.text("README.md").unwrap_or("");
    let named: Vec<String> = text
        .match_indices("Rust ")
        .map(|(at, word)| {
            let rest = &text[at + word.len()..];
            let version: String = rest.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
            version.trim_end_matches('.').to_string()
        })
        .filter(|version| !version.is_empty())
        .collect();
    if named.is_empty() {
        return vec![format!("README.md: does not say that Rust {VERSION} is needed")];
    }
    named
        .into_iter()
        .filter(|named| named != VERSION)
        .map(|named| format!("README.md: says Rust {named}, but Cargo.toml says {VERSION}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All pages with all their commands, and this README.
    fn problems(commands: &str, version: &str) -> Vec<String> {
        let readme = format!("Needs Rust {version}.\n```sh\n{commands}\n```\n");
        let block = |(page, command): &(&'static str, &str)| (*page, format!("```sh\n{command}\n```\n"));
        let others = KNOWN.iter().filter(|(page, _)| *page != README).map(block);
        let mut pages: Vec<(&str, String)> = vec![(README, readme)];
        for (page, text) in others {
            match pages.iter_mut().find(|(name, _)| *name == page) {
                Some((_, before)) => before.push_str(&text),
                None => pages.push((page, text)),
            }
        }
        let files: Vec<(&str, &str)> = pages.iter().map(|(page, text)| (*page, text.as_str())).collect();
        check(&Tree::of(&files))
    }

    #[test]
    fn a_command_that_no_stage_runs_is_named() {
        let good = format!("{PLAYGROUND}\nkubectl get pods\n{TEST}");
        assert_eq!(problems(&good, VERSION), Vec::<String>::new());
        let found = problems(&format!("{good}\ncargo install sluice"), VERSION);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("cargo install sluice"));
        let found = problems(&format!("{TEST}\n{PLAYGROUND}"), VERSION);
        assert!(found[0].contains("first command"), "{found:?}");
    }

    #[test]
    fn a_command_that_leaves_its_page_is_named() {
        let found = problems(PLAYGROUND, VERSION);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("`cargo xtask test` is missing"), "{found:?}");
        let on_another_page = format!("{PLAYGROUND}\n{TEST}\ncargo run -- bench calls");
        assert!(problems(&on_another_page, VERSION)[0].contains("README.md: no test runs"));
        assert!(check(&Tree::of(&[])).len() >= KNOWN.len());
    }

    #[test]
    fn a_version_behind_the_manifest_is_named() {
        let found = problems(&format!("{PLAYGROUND}\n{TEST}"), "1.80");
        assert_eq!(found, [format!("README.md: says Rust 1.80, but Cargo.toml says {VERSION}")]);
    }
}
