//! The README tells people only what is true: commands that a test runs, and the right versions.

use crate::markdown;
use crate::tree::Tree;

/// The most lines that fit a page that one reads at once.
const COMMANDS_MAX: usize = 12;

/// Every command that the stages run, exactly as a reader would type it.
const KNOWN: [&str; 5] = [
    PLAYGROUND,
    "cargo run -- playground --scenario tour --exit",
    "cargo run --release -p sluice-sim -- --seeds 200",
    "cargo run -- bench calls",
    "cargo xtask test",
];

/// The command that the README promises to work first. It goes on until it is stopped.
pub(crate) const PLAYGROUND: &str = "cargo run -- playground";

/// The Rust that the workspace needs: every crate has the same.
const VERSION: &str = env!("CARGO_PKG_RUST_VERSION");

/// Whether a command is typed in the reader's second shell, beside the playground.
pub(crate) fn is_beside_the_playground(command: &str) -> bool {
    ["kubectl ", "sluice "].iter().any(|start| command.starts_with(start))
}

/// The commands of all `sh` blocks.
pub(crate) fn commands(tree: &Tree) -> Vec<String> {
    markdown::blocks(tree.text("README.md").unwrap_or(""), "sh")
        .into_iter()
        .map(|line| line.trim().trim_start_matches("$ ").to_string())
        .filter(|line| !line.is_empty())
        .collect()
}

/// Names what is not true.
pub(super) fn check(tree: &Tree) -> Vec<String> {
    let mut problems = Vec::new();
    let commands = commands(tree);
    if commands.first().map(String::as_str) != Some(PLAYGROUND) {
        problems.push(format!("README.md: the first command must be `{PLAYGROUND}`"));
    }
    if commands.len() > COMMANDS_MAX {
        problems.push(format!("README.md: {} commands are too many for a first page", commands.len()));
    }
    for command in commands.iter().filter(|it| !KNOWN.contains(&it.as_str()) && !is_beside_the_playground(it))
    {
        problems.push(format!(
            "README.md: no test runs `{command}`; add it to a stage and to the list in xtask/src/tidy/readme.rs"
        ));
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

    fn page(commands: &str, version: &str) -> Tree {
        let text = format!("Needs Rust {version}.\n```sh\n{commands}\n```\n");
        Tree::of(&[("README.md", &text)])
    }

    #[test]
    fn a_command_that_nobody_runs_is_named() {
        assert_eq!(check(&page(&KNOWN.join("\n"), VERSION)), Vec::<String>::new());
        let found = check(&page(&format!("{PLAYGROUND}\ncargo install sluice"), VERSION));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("cargo install sluice"));
        assert!(check(&page("cargo xtask test", VERSION))[0].contains("first command"));
    }

    #[test]
    fn a_version_behind_the_manifest_is_named() {
        let found = check(&page(PLAYGROUND, "1.80"));
        assert_eq!(found, [format!("README.md: says Rust 1.80, but Cargo.toml says {VERSION}")]);
    }
}
