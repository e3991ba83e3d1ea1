//! `docs/design-coverage.md` has a row for every item of the design documents, and tells the truth.
//!
//! A row says by what its item is covered: a test (`path/file.rs::name`), a page (a link), a
//! later part of the work (`part 3: …`), or, for the time being, `pending: …`. Tests and pages
//! that are named must exist. The items stand in [`items`], so nobody needs the documents
//! themselves to check this.

mod items;

use std::collections::{BTreeMap, BTreeSet};

use crate::count;
use crate::markdown;
use crate::nearest;
use crate::tree::Tree;

const PAGE: &str = "docs/design-coverage.md";
/// How far above its name a test's `#[test]` can stand.
const ATTRIBUTE_LINES_MAX: usize = 4;

/// The rows as they are; what is pending is told, not refused.
pub(crate) fn run(tree: &Tree) -> Result<String, Vec<String>> {
    let problems = check(tree);
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut lines = pending(tree);
    lines.push(summary(tree));
    Ok(lines.join("\n"))
}

/// The rows as they should be in the end.
pub(crate) fn run_strict(tree: &Tree) -> Result<String, Vec<String>> {
    let mut problems = check(tree);
    problems.extend(pending(tree));
    if problems.is_empty() { Ok(summary(tree)) } else { Err(problems) }
}

/// Names items without a row, rows without an item, and covers that do not exist.
pub(crate) fn check(tree: &Tree) -> Vec<String> {
    let mut problems = Vec::new();
    let items = items::all();
    let mut seen = BTreeSet::new();
    for row in rows(tree) {
        let Row { line, item, cover } = row;
        if !items.contains(item) {
            let known: Vec<&str> = items.iter().map(String::as_str).collect();
            problems.push(format!(
                "{PAGE}:{line}: the design has no item {item:?}; the nearest is {:?}",
                nearest::of(item, &known)
            ));
        }
        if !seen.insert(item.to_string()) {
            problems.push(format!("{PAGE}:{line}: {item} has two rows"));
        }
        if kind(cover).is_none() {
            problems.push(format!(
                "{PAGE}:{line}: {item} names no test (`file.rs::name`), page (a link), later part or pending"
            ));
        }
        for reference in markdown::code_spans(cover) {
            problems.extend(
                missing(tree, reference).map(|why| format!("{PAGE}:{line}: {item}: `{reference}`: {why}")),
            );
        }
    }
    problems.extend(
        items
            .iter()
            .filter(|item| !seen.contains(*item))
            .map(|item| format!("{PAGE}: has no row for {item}")),
    );
    problems
}

struct Row<'a> {
    line: usize,
    item: &'a str,
    cover: &'a str,
}

/// The table rows, without the headings (whose first cell is `item`).
fn rows(tree: &Tree) -> Vec<Row<'_>> {
    markdown::rows(tree.text(PAGE).unwrap_or(""))
        .into_iter()
        .filter_map(|(line, cells)| {
            let item = cells.first()?.trim_matches('`');
            let cover = cells.last()?;
            (item != "item" && cells.len() > 1).then_some(Row { line, item, cover })
        })
        .collect()
}

/// What covers an item.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Kind {
    Test,
    Page,
    LaterPart,
    Pending,
}

fn kind(cover: &str) -> Option<Kind> {
    let later = cover.match_indices("part ").any(|(at, word)| {
        let mut rest = cover[at + word.len()..].chars();
        rest.next().is_some_and(|digit| digit.is_ascii_digit())
            && rest.as_str().trim_start_matches(':').len() > 3
    });
    if cover.contains("pending:") {
        Some(Kind::Pending)
    } else if markdown::code_spans(cover).iter().any(|span| test_name(span).is_some()) {
        Some(Kind::Test)
    } else if cover.contains("](") {
        Some(Kind::Page)
    } else if later {
        Some(Kind::LaterPart)
    } else {
        None
    }
}

/// File and function of `path/file.rs::name`.
fn test_name(span: &str) -> Option<(&str, &str)> {
    span.split_once("::").filter(|(file, _)| file.ends_with(".rs"))
}

/// Why what is named in backticks does not exist; `None` when it does, or is not of our tree.
fn missing(tree: &Tree, span: &str) -> Option<String> {
    if let Some((file, name)) = test_name(span) {
        let Some(text) = tree.text(file) else { return Some(format!("there is no file {file}")) };
        let Some((before, _)) = text.split_once(&format!("fn {name}(")) else {
            return Some(format!("{file} has no test {name}"));
        };
        let is_test = before.lines().rev().take(ATTRIBUTE_LINES_MAX).any(|line| line.trim() == "#[test]");
        return (!is_test).then(|| format!("{name} is no `#[test]`, so nobody runs it"));
    }
    let is_path = ["crates/", "lab/", "docs/", "xtask/"].iter().any(|folder| span.starts_with(folder));
    (is_path && !tree.has(span)).then(|| format!("there is no {span}"))
}

fn pending(tree: &Tree) -> Vec<String> {
    rows(tree)
        .into_iter()
        .filter(|row| kind(row.cover) == Some(Kind::Pending))
        .map(|row| format!("{PAGE}:{}: {} is {}", row.line, row.item, row.cover))
        .collect()
}

fn summary(tree: &Tree) -> String {
    let mut by_kind: BTreeMap<Kind, usize> = BTreeMap::new();
    for row in rows(tree) {
        if let Some(kind) = kind(row.cover) {
            *by_kind.entry(kind).or_default() += 1;
        }
    }
    let number = |kind| by_kind.get(&kind).copied().unwrap_or(0);
    format!(
        "{} of the design: {} covered by tests, {} by pages, {} belong to later parts, {} pending",
        count(items::all().len(), "item"),
        number(Kind::Test),
        number(Kind::Page),
        number(Kind::LaterPart),
        number(Kind::Pending)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page_with(row_of_first: &str) -> Tree {
        let mut text = String::from("| item | covered by |\n|---|---|\n");
        for item in items::all() {
            let cover = if item == "0.1" { row_of_first } else { "part 3: the edge" };
            text.push_str(&format!("| {item} | {cover} |\n"));
        }
        Tree::of(&[
            (PAGE, &text),
            ("crates/a/src/t.rs", "fn helper() {}\n\n\n\n#[test]\npub(super) fn claim() {}\n"),
        ])
    }

    #[test]
    fn a_test_that_does_not_exist_covers_nothing() {
        assert_eq!(check(&page_with("`crates/a/src/t.rs::claim`")), Vec::<String>::new());
        let found = check(&page_with("`crates/a/src/t.rs::other`"));
        assert!(found[0].contains("has no test other"), "{found:?}");
        assert!(check(&page_with("`crates/a/src/t.rs::helper`"))[0].contains("nobody runs it"));
        assert!(check(&page_with("`crates/a/src/u.rs::claim`"))[0].contains("no file"));
        assert!(check(&page_with("surely somewhere"))[0].contains("names no test"));
        assert!(check(&page_with("part 3:"))[0].contains("names no test"));
    }

    #[test]
    fn an_item_without_a_row_and_a_row_without_an_item_are_named() {
        let text =
            "| 0.1 | part 3: the edge |\n| 0.1 | part 3: the edge |\n| TestNothing | part 3: the edge |\n";
        let found = check(&Tree::of(&[(PAGE, text)]));
        assert!(found.iter().any(|problem| problem.contains("0.1 has two rows")), "{found:?}");
        assert!(found.iter().any(|problem| problem.contains("no item \"TestNothing\"")));
        assert!(found.iter().any(|problem| problem.ends_with("has no row for 12.10")));
    }

    #[test]
    fn pending_rows_fail_only_the_strict_run() {
        let tree = page_with("pending: shows that it is so");
        assert!(run(&tree).is_ok_and(|text| text.contains("1 pending")));
        assert_eq!(run_strict(&tree).unwrap_err().len(), 1);
        assert!(run_strict(&page_with("[page](x.md)")).is_ok_and(|text| text.contains("1 by pages")));
    }
}
