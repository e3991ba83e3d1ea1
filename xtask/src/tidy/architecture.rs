//! ARCHITECTURE.md has a line for every crate and for every module, and for nothing else.
//!
//! It is read from the lines of its `text` blocks: `crates/engine/  …` opens a crate, and the
//! lines below it that begin with `name.rs` or `name/` are its modules.

use std::collections::{BTreeMap, BTreeSet};

use crate::markdown;
use crate::tree::Tree;

const PAGE: &str = "ARCHITECTURE.md";
const LINES_MAX: usize = 200;

/// Names rooms without a line, and lines without a room.
pub(super) fn check(tree: &Tree) -> Vec<String> {
    let text = tree.text(PAGE).unwrap_or("");
    let mut problems = Vec::new();
    let lines = text.lines().count();
    if lines > LINES_MAX {
        problems.push(format!("{PAGE}: {lines} lines; it stays under {LINES_MAX} so that people read it"));
    }
    let (told, real) = (told(text), real(tree));
    for (name, modules) in &real {
        match told.get(name) {
            None => problems.push(format!("{PAGE}: has no line for crates/{name}/")),
            Some(named) => {
                for module in modules.difference(named) {
                    problems.push(format!("{PAGE}: crates/{name}/ has a module {module} without a line"));
                }
                for module in named.difference(modules) {
                    problems.push(format!("{PAGE}: crates/{name}/ has no module {module}"));
                }
            }
        }
    }
    problems.extend(
        told.keys()
            .filter(|name| !real.contains_key(*name))
            .map(|name| format!("{PAGE}: there is no crates/{name}/")),
    );
    problems
}

fn told(text: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut told: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut current: Option<String> = None;
    for line in markdown::blocks(text, "text") {
        let word = line.split_whitespace().next().unwrap_or("");
        if let Some(name) = line.strip_prefix("crates/").and_then(|rest| rest.split('/').next()) {
            told.entry(name.to_string()).or_default();
            current = Some(name.to_string());
        } else if !line.starts_with(' ') {
            current = None;
        } else if let Some(name) = &current
            && let Some(module) = word.strip_suffix(".rs").or_else(|| word.strip_suffix('/'))
        {
            told.entry(name.clone()).or_default().insert(module.to_string());
        }
    }
    told
}

/// The modules directly below each crate's root.
fn real(tree: &Tree) -> BTreeMap<String, BTreeSet<String>> {
    let mut real: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (path, _) in tree.below("crates/").filter(|(path, _)| path.ends_with(".rs")) {
        let mut parts = path.split('/').skip(1);
        let (Some(name), Some("src"), Some(first)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let module = first.strip_suffix(".rs").unwrap_or(first);
        let modules = real.entry(name.to_string()).or_default();
        if !matches!(first, "lib.rs" | "main.rs") {
            modules.insert(module.to_string());
        }
    }
    real
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rooms_without_a_line_and_lines_without_a_room_are_named() {
        let page = "```text\ncrates/a/   first\n  one.rs     does\n  gone.rs    did\n  tests/     tells\n\
            crates/c/   not there\n```\n";
        let tree = Tree::of(&[
            ("ARCHITECTURE.md", page),
            ("crates/a/src/lib.rs", ""),
            ("crates/a/src/one.rs", ""),
            ("crates/a/src/one/deep.rs", ""),
            ("crates/a/src/two.rs", ""),
            ("crates/a/src/tests/story.rs", ""),
            ("crates/b/src/main.rs", ""),
        ]);
        let found = check(&tree);
        assert_eq!(
            found,
            [
                "ARCHITECTURE.md: crates/a/ has a module two without a line",
                "ARCHITECTURE.md: crates/a/ has no module gone",
                "ARCHITECTURE.md: has no line for crates/b/",
                "ARCHITECTURE.md: there is no crates/c/",
            ]
        );
    }

    #[test]
    fn a_long_page_is_not_read() {
        let tree = Tree::of(&[("ARCHITECTURE.md", &"x\n".repeat(201))]);
        assert!(check(&tree)[0].contains("201 lines"));
    }
}
