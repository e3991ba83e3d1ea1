//! ARCHITECTURE.md has a line for every crate and for every module, taken from their own first sentence.
//!
//! The list of rooms stands between two markers and is written by `cargo xtask rooms`; here it
//! is compared with what the sources say. So a module explains itself in one place, and a
//! newcomer finds it in the other.

use std::collections::BTreeMap;

use crate::tree::Tree;

const PAGE: &str = "ARCHITECTURE.md";
const BEGIN: &str = "<!-- rooms: written by `cargo xtask rooms` -->";
const END: &str = "<!-- end of rooms -->";
const LINES_MAX: usize = 200;
/// From the ring that knows nothing to the ring that knows everybody; what is not named comes last.
const ORDER: [&str; 5] = ["model", "engine", "updater", "cloud", "sim"];

/// Names what is not as the sources say.
pub(super) fn check(tree: &Tree) -> Vec<String> {
    let text = tree.text(PAGE).unwrap_or("");
    let mut problems = Vec::new();
    let lines = text.lines().count();
    if lines > LINES_MAX {
        problems.push(format!("{PAGE}: {lines} lines; it stays under {LINES_MAX} so that people read it"));
    }
    for (path, text) in
        tree.below("crates/").filter(|(path, _)| path.contains("/src/") && path.ends_with(".rs"))
    {
        if first_sentence(text).is_empty() {
            problems.push(format!("{path}: does not begin with a `//!` sentence that says its job"));
        }
    }
    match between(text) {
        None => problems.push(format!("{PAGE}: the markers `{BEGIN}` and `{END}` are missing")),
        Some(told) if told.trim() != rooms(tree).trim() => {
            problems.push(format!(
                "{PAGE}: the list of rooms is not as the sources say; run `cargo xtask rooms`"
            ));
        }
        Some(_) => {}
    }
    problems
}

/// The page with the list of rooms as it should be; `None` when it is so already.
pub(crate) fn blessed(tree: &Tree) -> Option<(&'static str, String)> {
    let text = tree.text(PAGE)?;
    let (before, rest) = text.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    let page = format!("{before}{BEGIN}\n{}{END}{after}", rooms(tree));
    (page != text).then_some((PAGE, page))
}

fn between(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once(BEGIN)?;
    rest.split_once(END).map(|(told, _)| told)
}

/// What the sources say: a line per crate and per module, and the names of what is inside a module.
fn rooms(tree: &Tree) -> String {
    let mut crates: BTreeMap<(usize, &str), BTreeMap<&str, Vec<&str>>> = BTreeMap::new();
    for (path, _) in tree.below("crates/").filter(|(path, _)| path.ends_with(".rs")) {
        let mut parts = path.split('/').skip(1);
        let (Some(name), Some("src"), Some(first)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let rank = ORDER.iter().position(|known| *known == name).unwrap_or(ORDER.len());
        let modules = crates.entry((rank, name)).or_default();
        if matches!(first, "lib.rs" | "main.rs") {
            continue;
        }
        let inside = modules.entry(first.strip_suffix(".rs").unwrap_or(first)).or_default();
        if let Some(second) = parts.next().map(|file| file.strip_suffix(".rs").unwrap_or(file))
            && second != "mod"
            && !inside.contains(&second)
        {
            inside.push(second);
        }
    }
    let mut text = String::from("```text\n");
    for ((_, name), modules) in crates {
        let source = |file: &str| tree.text(&format!("crates/{name}/src/{file}.rs"));
        let job = source("lib").or_else(|| source("main")).map(first_sentence).unwrap_or_default();
        let room = format!("crates/{name}/");
        text.push_str(&format!("{room:<17} {job}\n"));
        for (module, inside) in modules {
            let own = source(module).or_else(|| source(&format!("{module}/mod")));
            let job = own.map(first_sentence).unwrap_or_default();
            text.push_str(&format!("  {module:<15} {job}\n"));
            if !inside.is_empty() {
                text.push_str(&format!("  {:<15} inside: {}\n", "", inside.join(", ")));
            }
        }
    }
    text.push_str("```\n");
    text
}

/// The first sentence of a file's `//!`, on one line.
fn first_sentence(text: &str) -> String {
    let words: Vec<&str> = text
        .lines()
        .take_while(|line| line.starts_with("//!"))
        .map(|line| line.trim_start_matches("//!").trim())
        .take_while(|line| !line.is_empty())
        .collect();
    let paragraph = words.join(" ");
    paragraph.split_once(". ").map_or(paragraph.clone(), |(first, _)| format!("{first}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCES: [(&str, &str); 5] = [
        ("crates/b/src/main.rs", "//! Runs\n//! it. And more.\n//!\n//! Much more.\n"),
        ("crates/model/src/lib.rs", "//! Nouns.\n"),
        ("crates/model/src/key.rs", "//! Who is who.\n"),
        ("crates/model/src/key/uid.rs", "//! Sixteen bytes.\n"),
        ("crates/model/src/tests/mod.rs", "//! Tells stories.\n"),
    ];
    const ROOMS: &str = "```text\ncrates/model/     Nouns.\n  key             Who is who.\n\
        \x20                 inside: uid\n  tests           Tells stories.\ncrates/b/         Runs it.\n```\n";

    fn tree_with(page: &str) -> Tree {
        let mut files = SOURCES.to_vec();
        files.push((PAGE, page));
        Tree::of(&files)
    }

    #[test]
    fn rooms_come_from_the_first_sentence_of_their_source() {
        assert_eq!(rooms(&tree_with("")), ROOMS);
        assert_eq!(check(&tree_with(&format!("{BEGIN}\n{ROOMS}{END}\n"))), Vec::<String>::new());
    }

    #[test]
    fn a_page_behind_the_sources_is_named_and_can_be_blessed() {
        let right = format!("# Rooms\n{BEGIN}\n{ROOMS}{END}\nrest\n");
        for told in ["", "old\n"] {
            let tree = tree_with(&format!("# Rooms\n{BEGIN}\n{told}{END}\nrest\n"));
            assert!(check(&tree)[0].contains("cargo xtask rooms"));
            assert_eq!(blessed(&tree).unwrap().1, right);
        }
        assert!(blessed(&tree_with(&right)).is_none());
        assert!(check(&tree_with(""))[0].contains("markers"));
    }

    #[test]
    fn a_room_that_does_not_say_its_job_is_named() {
        let tree = Tree::of(&[(PAGE, ""), ("crates/a/src/lib.rs", "fn main() {}\n")]);
        assert!(check(&tree)[0].contains("crates/a/src/lib.rs"));
    }

    #[test]
    fn a_long_page_is_not_read() {
        let tree = Tree::of(&[(PAGE, &"x\n".repeat(201))]);
        assert!(check(&tree)[0].contains("201 lines"));
    }
}
