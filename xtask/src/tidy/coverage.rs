//! Every item of the design documents in docs/design/coverage.md names a test that covers it.
//!
//! That a named test exists is checked with the links.

use crate::markdown;
use crate::tree::Tree;

const PAGE: &str = "docs/design/coverage.md";

/// The column that must name a test. Other tables of the page do not have it.
const COLUMN: &str = "test that covers it";

/// Names rows without a test, and a page without the table.
pub(super) fn check(tree: &Tree) -> Vec<String> {
    let mut problems = Vec::new();
    let (mut items, mut column) = (0, None);
    // The next row of the table is on this line.
    let mut next_line = 0;
    for (line, cells) in markdown::rows(tree.text(PAGE).unwrap_or("")) {
        if line != next_line {
            column = cells.iter().position(|cell| *cell == COLUMN);
            // Below a header is the separator.
            next_line = line + 2;
            continue;
        }
        next_line = line + 1;
        let Some(column) = column else { continue };
        items += 1;
        let spans = cells.get(column).map_or(Vec::new(), |cell| markdown::code_spans(cell));
        if !spans.iter().any(|span| span.contains(".rs::")) {
            let item = cells.get(1).copied().unwrap_or_default();
            problems.push(format!(
                "{PAGE}:{line}: {item} names no test; name one (`path/file.rs::name`), or move the item to the list \
                 below the table with the reason"
            ));
        }
    }
    if items == 0 {
        problems.push(format!("{PAGE}: there is no table with the column {COLUMN:?}"));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "| part | item | test that covers it | see |\n|---|---|---|---|\n";

    fn found(page: &str) -> Vec<String> {
        check(&Tree::of(&[(PAGE, page)]))
    }

    #[test]
    fn a_row_that_names_no_test_is_reported() {
        let row = |test: &str, see: &str| format!("| a | 1.1 | {test} | {see} |\n");
        let test = "`crates/a/src/t.rs::claim`";
        assert_eq!(
            found(&format!("{HEAD}{}{}", row(test, ""), row(&format!("{test}; {test}"), ""))),
            [""; 0]
        );
        for (cell, see) in [("", ""), ("`crates/a/src/t.rs`", ""), ("[names](names.md)", ""), ("", test)] {
            let problems = found(&format!("# P\n\n{HEAD}{}{}", row(test, ""), row(cell, see)));
            assert_eq!(problems.len(), 1, "{problems:?}");
            assert!(problems[0].starts_with("docs/design/coverage.md:6: 1.1 names no test"), "{problems:?}");
        }
    }

    #[test]
    fn other_tables_need_no_tests_and_the_table_must_exist() {
        let list = "\nWhy:\n\n| items | why |\n|---|---|\n| 2.1 | a question |\n| 2.2 | a page |\n";
        let table = format!("{HEAD}| a | 1.1 | `crates/a/src/t.rs::claim` | |\n");
        assert_eq!(found(&format!("{list}\n{table}{list}")), [""; 0]);
        assert_eq!(
            found(list),
            ["docs/design/coverage.md: there is no table with the column \"test that covers it\""]
        );
        assert_eq!(check(&Tree::of(&[])).len(), 1);
    }
}
