//! The contents of the book, `docs/SUMMARY.md`, list every page for users once, and nothing else.
//!
//! `mdbook build` leaves out a page that is not listed, and says nothing about it. Nor does it say anything about a link
//! to a page that it leaves out, or about a diagram that it cannot draw. So a page links only to other pages and files of
//! the book, and has no Mermaid.

use std::collections::BTreeSet;

use crate::markdown;
use crate::tree::{Tree, folder_of, join};

const SUMMARY: &str = "docs/SUMMARY.md";

/// The pages below docs/ that are for developers.
const FOR_DEVELOPERS: [&str; 2] = ["docs/design/", "docs/decisions/"];

/// The pages of the book.
fn pages(tree: &Tree) -> impl Iterator<Item = (&str, &str)> {
    tree.below("docs/").filter(|(path, _)| {
        path.ends_with(".md")
            && *path != SUMMARY
            && !FOR_DEVELOPERS.iter().any(|folder| path.starts_with(folder))
    })
}

/// Names pages that are missing in the contents, entries without a page, and what mdBook cannot show.
pub(super) fn check(tree: &Tree) -> Vec<String> {
    let mut problems = Vec::new();
    let mut listed = BTreeSet::new();
    let known: BTreeSet<&str> = pages(tree).map(|(path, _)| path).collect();
    for (line, target) in markdown::links(tree.text(SUMMARY).unwrap_or("")) {
        let path = join("docs", &target).unwrap_or_default();
        if !known.contains(path.as_str()) {
            problems
                .push(format!("{SUMMARY}:{line}: {target} is not a page of the book; take it off the list"));
        } else if !listed.insert(path) {
            problems.push(format!("{SUMMARY}:{line}: {target} is listed twice"));
        }
    }
    for (path, text) in pages(tree) {
        if !listed.contains(path) {
            problems.push(format!("{path}: the page is not in {SUMMARY}; add it to its section"));
        }
        for (line, target) in markdown::links(text) {
            if let Some(why) = leaves(path, &target) {
                problems.push(format!("{path}:{line}: the link to {target} leaves the book: {why}"));
            }
        }
        let diagrams = markdown::fences(text).into_iter().filter(|fence| fence.language == "mermaid");
        problems.extend(
            diagrams.map(|fence| {
                format!("{path}:{}: mdBook draws no Mermaid; use a table or an image", fence.line)
            }),
        );
    }
    problems
}

/// Why the built book has nothing at a link; `None` if it has, or if the link leads to another site.
fn leaves(page: &str, target: &str) -> Option<String> {
    let file = target.split('#').next().unwrap_or_default();
    if file.is_empty() || target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let path = join(folder_of(page), file).unwrap_or_default();
    let is_inside = path.starts_with("docs/") && path != SUMMARY;
    let is_for_developers = FOR_DEVELOPERS.iter().any(|folder| format!("{path}/").starts_with(folder));
    if path.ends_with("/README.md") {
        return Some("mdBook turns a README into index.html and leaves links to it as they are".to_string());
    }
    (!is_inside || is_for_developers).then(|| "name the file in backticks instead".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTENTS: &str = "# Summary\n\n[Book](README.md)\n\n# Use\n\n- [A](use/a.md)\n  - [B](use/b.md)\n";

    fn found(contents: &str, page: &str, others: &[(&str, &str)]) -> Vec<String> {
        let mut files =
            vec![(SUMMARY, contents), ("docs/README.md", ""), ("docs/use/a.md", page), ("docs/use/b.md", "")];
        files.extend(others);
        check(&Tree::of(&files))
    }

    #[test]
    fn a_page_that_is_left_out_is_named() {
        assert_eq!(found(CONTENTS, "", &[("docs/design/d.md", ""), ("docs/decisions/e.md", "")]), [""; 0]);
        assert_eq!(
            found(CONTENTS, "", &[("docs/use/c.md", "")]),
            ["docs/use/c.md: the page is not in docs/SUMMARY.md; add it to its section"]
        );
        assert_eq!(check(&Tree::of(&[("docs/a.md", "")])).len(), 1);
    }

    #[test]
    fn an_entry_without_a_page_or_twice_is_named() {
        let entry = |line: &str| found(&format!("{CONTENTS}{line}\n"), "", &[("docs/design/d.md", "")]);
        assert_eq!(
            entry("- [C](use/c.md)"),
            ["docs/SUMMARY.md:9: use/c.md is not a page of the book; take it off the list"]
        );
        assert!(entry("- [D](design/d.md)")[0].contains("not a page of the book"));
        assert_eq!(entry("- [A](use/a.md)"), ["docs/SUMMARY.md:9: use/a.md is listed twice"]);
    }

    #[test]
    fn what_the_built_book_does_not_have_is_named() {
        let fine = "[b](b.md#x) [c](#y) [d](https://x.y/z) ![e](../images/e.svg)\n";
        assert_eq!(found(CONTENTS, fine, &[]), [""; 0]);
        for target in [
            "../../README.md",
            "../design/d.md",
            "../decisions",
            "../SUMMARY.md",
            "../README.md",
            "../../../x.md",
        ] {
            let problems = found(CONTENTS, &format!("a\n[x]({target})\n"), &[]);
            assert_eq!(problems.len(), 1, "{target}");
            assert!(
                problems[0].starts_with(&format!("docs/use/a.md:2: the link to {target} leaves the book"))
            );
        }
        let diagram = "a\n```mermaid\nflowchart LR\n```\n";
        assert!(found(CONTENTS, diagram, &[])[0].starts_with("docs/use/a.md:2: mdBook draws no Mermaid"));
    }
}
