//! Links inside the repository lead to files and anchors that exist, and every page is linked.

use std::collections::BTreeSet;

use crate::markdown;
use crate::tree::{Tree, folder_of, join};

/// Where every walk through the pages begins.
const FRONT_PAGE: &str = "README.md";

/// Names dead links, and pages that no way leads to.
pub(super) fn check(tree: &Tree) -> Vec<String> {
    let mut problems = Vec::new();
    for (path, text) in tree.ending(".md") {
        for (line, target) in markdown::links(text) {
            if let Err(why) = follow(tree, path, &target) {
                problems.push(format!("{path}:{line}: link to {target}: {why}"));
            }
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
}
