//! Words that must not be in the tree: promises to do it later, and paths of one machine.

use crate::markdown;
use crate::tree::Tree;

/// Put together here, so that this file does not find itself.
fn markers() -> Vec<(String, &'static str)> {
    vec![
        (["todo", "!("].concat(), "finish it, or open an issue and leave the code whole"),
        (["unimplemented", "!("].concat(), "finish it, or refuse with a sentence"),
        (["TO", "DO"].concat(), "do it, or open an issue"),
        (["FIX", "ME"].concat(), "mend it, or open an issue"),
        (["XX", "X"].concat(), "say what is meant"),
        (["<!-- ", "fill:"].concat(), "put the real output there"),
        (
            ["#[ig", "nore"].concat(),
            "a test that does not run claims nothing; only a part that is missing elsewhere is a reason: `= \"needs …\"`",
        ),
    ]
}

/// A test that is run by a stage of its own, because it needs what not everybody has.
const MISSING_PART: &str = "[ignore = \"needs ";

/// Names everything that is left unfinished.
pub(super) fn check_markers(tree: &Tree) -> Vec<String> {
    let markers = markers();
    each_line(tree, |path, number, line| {
        let (marker, remedy) = markers.iter().find(|(marker, _)| has_word(line, marker))?;
        if line.contains(MISSING_PART) {
            return None;
        }
        Some(format!("{path}:{number}: {marker:?} is left here; {remedy}"))
    })
}

/// Names every path that exists on one machine only.
pub(super) fn check_paths(tree: &Tree) -> Vec<String> {
    let places: Vec<String> =
        ["home", "root", "Users", "tmp", "work", "mnt"].iter().map(|name| format!("/{name}/")).collect();
    each_line(tree, |path, number, line| {
        let place = places.iter().find(|place| starts_a_path(line, place))?;
        Some(format!("{path}:{number}: {place}… is a path of one machine; say it relative to the repository"))
    })
}

/// Names every line of a Mermaid diagram with a semicolon, which ends the line there.
pub(super) fn check_diagrams(tree: &Tree) -> Vec<String> {
    let mut problems = Vec::new();
    for (path, text) in tree.ending(".md") {
        let broken = markdown::blocks(text, "mermaid").into_iter().filter(|line| line.contains(';'));
        problems.extend(broken.map(|line| format!("{path}: a semicolon ends a line in Mermaid: `{line}`")));
    }
    problems
}

fn each_line(tree: &Tree, check: impl Fn(&str, usize, &str) -> Option<String>) -> Vec<String> {
    let mut problems = Vec::new();
    for (path, text) in tree.below("") {
        if path == "LICENSE" || path == "Cargo.lock" {
            continue;
        }
        for (at, line) in text.lines().enumerate() {
            problems.extend(check(path, at + 1, line));
        }
    }
    problems
}

/// The marker stands there, and not as a part of a longer word.
fn has_word(line: &str, marker: &str) -> bool {
    line.match_indices(marker).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + marker.len()..].chars().next();
        let is_letter = |letter: Option<char>| letter.is_some_and(|l| l.is_alphanumeric() || l == '_');
        !is_letter(before) && (!is_letter(after) || marker.ends_with('('))
    })
}

/// An absolute path begins there: nothing that could be the start of a longer path stands before.
fn starts_a_path(line: &str, place: &str) -> bool {
    line.match_indices(place).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before
            .is_some_and(|letter| letter.is_alphanumeric() || matches!(letter, '.' | '_' | '-' | '}' | '*'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unfinished_work_is_named() {
        let later =
            ["// TO", "DO later\nlet a = to", "do!();\nlet to", "dos = 1;\nlet TO", "DOS = 2;\n"].concat();
        let unfilled = ["<!-- fi", "ll: the output -->\n"].concat();
        let asleep = ["#[ig", "nore = \"slow\"]\n"].concat();
        let tree = Tree::of(&[("a.rs", &later), ("README.md", &unfilled), ("z.rs", &asleep)]);
        let found = check_markers(&tree);
        assert_eq!(found.len(), 4, "{found:?}");
        assert!(found[0].starts_with("README.md:1"));
        assert!(found[1].starts_with("a.rs:1") && found[2].starts_with("a.rs:2"));
    }

    #[test]
    fn paths_of_one_machine_are_named_and_relative_ones_are_not() {
        let odd = ["see /ho", "me/me/x\nor ../wo", "rk/x\nor crates/wo", "rk/x\n\"/tm", "p/x\"\n"].concat();
        let found = check_paths(&Tree::of(&[("a.md", &odd)]));
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("a.md:1") && found[1].starts_with("a.md:4"));
    }

    #[test]
    fn a_semicolon_in_a_diagram_is_named() {
        let page = "a; b\n```mermaid\nflowchart LR\n    a --> b; c\n```\n```text\na; b\n```\n";
        let found = check_diagrams(&Tree::of(&[("docs/a.md", page)]));
        assert_eq!(found, ["docs/a.md: a semicolon ends a line in Mermaid: `a --> b; c`"]);
    }
}
