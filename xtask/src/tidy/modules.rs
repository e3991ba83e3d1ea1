//! A file that no `mod` reaches is never compiled, and its tests never run; and each file says its purpose.

use std::collections::BTreeSet;

use crate::tree::{Tree, folder_of, join};

/// Names every unreached `.rs` file.
pub(super) fn check(tree: &Tree) -> Vec<String> {
    let mut reached = BTreeSet::new();
    for (path, _) in tree.ending("Cargo.toml") {
        for root in roots(tree, folder_of(path)) {
            visit(tree, &root, true, &mut reached);
        }
    }
    tree.ending(".rs")
        .filter(|(path, _)| !reached.contains(*path))
        .map(|(path, _)| format!("{path}: no `mod` reaches this file, so it is never compiled"))
        .collect()
}

/// Names every source file of the crates that does not begin with a `//!` sentence.
pub(super) fn check_purpose(tree: &Tree) -> Vec<String> {
    let crates = tree.below("crates/").chain(tree.below("lab/"));
    crates
        .filter(|(path, _)| path.contains("/src/") && path.ends_with(".rs"))
        .filter(|(_, text)| text.lines().next().and_then(|line| line.strip_prefix("//! ")).is_none())
        .map(|(path, _)| format!("{path}: does not begin with a `//!` sentence that says its purpose"))
        .collect()
}

/// The files that cargo compiles by itself. No manifest gives a target another `path`.
fn roots(tree: &Tree, package: &str) -> Vec<String> {
    let at = |relative: &str| join(package, relative).unwrap_or_default();
    let mut roots: Vec<String> = ["src/lib.rs", "src/main.rs", "build.rs"].map(at).to_vec();
    for folder in ["src/bin", "tests", "benches", "examples"].map(at) {
        let here = tree.ending(".rs").filter(|(path, _)| {
            folder_of(path) == folder || (path.ends_with("/main.rs") && folder_of(folder_of(path)) == folder)
        });
        roots.extend(here.map(|(path, _)| path.to_string()));
    }
    roots.retain(|path| tree.text(path).is_some());
    roots
}

fn visit(tree: &Tree, path: &str, is_root: bool, reached: &mut BTreeSet<String>) {
    let Some(text) = tree.text(path) else { return };
    if !reached.insert(path.to_string()) {
        return;
    }
    let stem = path.strip_suffix(".rs").unwrap_or(path);
    let home = if is_root || path.ends_with("/mod.rs") { folder_of(path) } else { stem };
    let mut given_path = None;
    for line in text.lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix("#[path") {
            given_path = rest.split('"').nth(1);
        } else if let Some(file) = line.split_once("include!(\"").and_then(|(_, rest)| rest.split('"').next())
        {
            visit(tree, &join(folder_of(path), file).unwrap_or_default(), false, reached);
        } else if let Some(name) = declared(line) {
            let candidates = match given_path.take() {
                Some(file) => vec![join(folder_of(path), file).unwrap_or_default()],
                None => vec![format!("{home}/{name}.rs"), format!("{home}/{name}/mod.rs")],
            };
            for candidate in candidates {
                visit(tree, &candidate, false, reached);
            }
        }
    }
}

/// The name in `mod name;`, whatever stands before `mod`.
fn declared(line: &str) -> Option<&str> {
    let name = line.split("//").next()?.trim().strip_suffix(';')?;
    let (before, name) = name.rsplit_once("mod ").unwrap_or_default();
    let visibility = before.trim();
    let is_declaration =
        visibility.is_empty() || visibility.starts_with("pub") || visibility.starts_with("#[");
    let is_name = !name.is_empty() && name.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
    (is_declaration && is_name).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_no_mod_reaches_is_named() {
        let tree = Tree::of(&[
            ("crates/a/Cargo.toml", ""),
            ("crates/a/src/lib.rs", "pub mod one;\n#[cfg(test)]\nmod tests;\n// mod lost;\n"),
            ("crates/a/src/one.rs", "pub(crate) mod two;\n#[path = \"odd.rs\"]\nmod three;\n"),
            ("crates/a/src/one/two.rs", ""),
            ("crates/a/src/odd.rs", ""),
            ("crates/a/src/tests.rs", "mod story;\n"),
            ("crates/a/src/tests/story.rs", ""),
            ("crates/a/src/tests/lost.rs", ""),
            ("crates/a/src/lost.rs", ""),
            ("crates/a/tests/whole.rs", "mod common;\n"),
            ("crates/a/tests/common/mod.rs", ""),
            ("crates/a/benches/all.rs", ""),
        ]);
        let found = check(&tree);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("crates/a/src/lost.rs"));
        assert!(found[1].starts_with("crates/a/src/tests/lost.rs"));
    }

    #[test]
    fn a_source_file_that_does_not_say_its_purpose_is_named() {
        let tree = Tree::of(&[
            ("crates/a/src/lib.rs", "//! Nouns.\n"),
            ("crates/a/tests/whole.rs", "fn main() {}\n"),
            ("lab/b/src/main.rs", "fn main() {}\n"),
        ]);
        let found = check_purpose(&tree);
        assert_eq!(found, ["lab/b/src/main.rs: does not begin with a `//!` sentence that says its purpose"]);
    }
}
