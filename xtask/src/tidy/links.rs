//! Links inside the repository lead to files and anchors that exist, and every page is linked.
//!
//! The same holds for names in backticks: a path of the repository exists, and `path/file.rs::name` is a test.

use std::collections::BTreeSet;

use crate::markdown;
use crate::tree::{Tree, folder_of, join};

/// Where every walk through the pages begins.
const FRONT_PAGE: &str = "README.md";

/// A name in backticks that begins like this is a path of the repository.
const FOLDERS: [&str; 5] = ["crates/", "lab/", "docs/", "e2e/", "xtask/"];

/// Names dead links, and pages that no way leads to.
pub(super) fn check(tree: &Tree) -> Vec<String> {
    let mut problems = Vec::new();
    for (path, text) in tree.ending(".md") {
        for (line, target) in markdown::links(text) {
            if let Err(why) = follow(tree, path, &target) {
                problems.push(format!("{path}:{line}: link to {target}: {why}"));
            }
        }
        for (line, span) in markdown::prose(text)
            .flat_map(|(line, text)| markdown::code_spans(text).into_iter().map(move |span| (line, span)))
        {
            problems.extend(missing(tree, span).map(|why| format!("{path}:{line}: `{span}`: {why}")));
        }
    }
    let reached = reachable(tree);
    problems.extend(
        tree.ending(".md")
            .filter(|(path, _)| !reached.contains(*path))
            .map(|(path, _)| format!("{path}: no chain of links leads here from {FRONT_PAGE}")),
    );
    problems
}

/// The page that a link of a page leads to; `None` for the outside world.
fn follow(tree: &Tree, from: &str, target: &str) -> Result<Option<String>, String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return Ok(None);
    }
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = if file.is_empty() {
        from.to_string()
    } else {
        join(folder_of(from), file).ok_or("it leads out of the repository")?
    };
    if !tree.has(&path) {
        return Err(format!("there is no {path}"));
    }
    if !anchor.is_empty() {
        let text = tree.text(&path).unwrap_or("");
        let known = markdown::anchors(text);
        if path.ends_with(".md") && !known.iter().any(|name| name == anchor) {
            let names: Vec<&str> = known.iter().map(String::as_str).collect();
            return Err(format!(
                "{path} has no heading #{anchor}; the nearest is #{}",
                crate::nearest::of(anchor, &names)
            ));
        }
    }
    Ok(Some(path))
}

/// Why the test or path in backticks does not exist; `None` if it exists or is something else.
fn missing(tree: &Tree, span: &str) -> Option<String> {
    let Some((file, name)) = span.split_once("::").filter(|(file, _)| file.ends_with(".rs")) else {
        let is_path = FOLDERS.iter().any(|folder| span.starts_with(folder));
        return (is_path && !tree.has(span)).then(|| format!("there is no {span}"));
    };
    let Some(text) = tree.text(file) else { return Some(format!("there is no file {file}")) };
    let mut above: Vec<&str> = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.split_once(&format!("fn {name}(")).is_some_and(|(before, _)| !before.starts_with("//")) {
            let is_test = above.iter().any(|it| *it == "#[test]" || it.starts_with("#[tokio::test"));
            return (!is_test).then(|| format!("{name} is not a `#[test]`, so it never runs"));
        }
        // Only attributes and comments can be between `#[test]` and the name.
        if line.starts_with("#[") || line.starts_with("//") { above.push(line) } else { above.clear() }
    }
    Some(format!("{file} has no test {name}"))
}

fn reachable(tree: &Tree) -> BTreeSet<String> {
    let mut reached = BTreeSet::from([FRONT_PAGE.to_string()]);
    let mut next = vec![FRONT_PAGE.to_string()];
    while let Some(page) = next.pop() {
        for (_, target) in markdown::links(tree.text(&page).unwrap_or("")) {
            if let Ok(Some(path)) = follow(tree, &page, &target)
                && reached.insert(path.clone())
            {
                next.push(path);
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dead_links_dead_anchors_and_lonely_pages_are_named() {
        let tree = Tree::of(&[
            ("README.md", "# Top\n[a](docs/a.md#part-two) [b](docs/none.md) [c](#top) [d](https://x.y/z)\n"),
            ("docs/a.md", "## Part two\n[up](../README.md#nowhere) [out](../../x.md) [folder](../docs)\n"),
            ("docs/lonely.md", "# Lonely\n"),
        ]);
        let found = check(&tree);
        assert_eq!(found.len(), 4, "{found:?}");
        assert!(found[0].contains("there is no docs/none.md"));
        assert!(found[1].contains("the nearest is #top"));
        assert!(found[2].contains("out of the repository"));
        assert!(found[3].starts_with("docs/lonely.md"));
    }

    #[test]
    fn a_test_or_path_in_backticks_that_does_not_exist_is_named() {
        let found = |span: &str| {
            check(&Tree::of(&[
                ("README.md", &format!("See `{span}`.\n")),
                (
                    "crates/a/src/t.rs",
                    "#[test]\n// Why.\npub(super) fn claim() {}\nfn helper() {}\n#[tokio::test]\nasync fn later() {}\n",
                ),
            ]))
        };
        for fine in ["crates/a/src/t.rs::claim", "crates/a/src/t.rs::later", "crates/a/", "Engine::handle"] {
            assert_eq!(found(fine), [""; 0]);
        }
        let file = "crates/a/src/t.rs";
        assert_eq!(
            found(&format!("{file}::other")),
            [format!("README.md:1: `{file}::other`: {file} has no test other")]
        );
        assert!(
            found(&format!("{file}::helper"))[0].ends_with("helper is not a `#[test]`, so it never runs")
        );
        assert!(found("crates/a/src/u.rs::claim")[0].ends_with("there is no file crates/a/src/u.rs"));
        assert!(found("crates/b/")[0].ends_with("there is no crates/b/"));
    }
}
