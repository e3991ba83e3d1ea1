//! ARCHITECTURE.md has a line for every crate, docs/rooms.md one for every module, taken from their own
//! first sentence.
//!
//! The lists stand between two markers and are written by `cargo xtask rooms`; here they are
//! compared with what the sources say. So a module explains itself in one place, and a
//! newcomer finds it in the other.

use std::collections::BTreeMap;

use crate::tree::Tree;

const PAGE: &str = "ARCHITECTURE.md";
const BEGIN: &str = "<!-- rooms: written by `cargo xtask rooms` -->";
const END: &str = "<!-- end of rooms -->";
const LINES_MAX: usize = 200;
/// From the ring that knows nothing to the ring that knows everybody; what is not named comes last.
const ORDER: [&str; 11] = [
    "model",
    "engine",
    "updater",
    "cloud",
    "arm-wire",
    "arm",
    "emulator",
    "controller",
    "sim",
    "commands",
    "cli",
];

/// Where crates are: those of the product, and those that play and measure.
const FOLDERS: [&str; 2] = ["crates/", "lab/"];

/// A page with a list of rooms, and whether the list goes into the modules.
const LISTS: [(&str, bool); 2] = [(PAGE, false), ("docs/rooms.md", true)];

/// Names what is not as the sources say.
pub(super) fn check(tree: &Tree) -> Vec<String> {
    let text = tree.text(PAGE).unwrap_or("");
    let mut problems = Vec::new();
    let lines = text.lines().count();
    if lines > LINES_MAX {
        problems.push(format!("{PAGE}: {lines} lines; it stays under {LINES_MAX} so that people read it"));
    }
    for (path, text) in sources(tree).filter(|(path, _)| path.contains("/src/")) {
        if first_sentence(text).is_empty() {
            problems.push(format!("{path}: does not begin with a `//!` sentence that says its job"));
        }
    }
    for (page, with_modules) in LISTS {
        match between(tree.text(page).unwrap_or("")) {
            None => problems.push(format!("{page}: the markers `{BEGIN}` and `{END}` are missing")),
            Some(told) if told.trim() != rooms(tree, with_modules).trim() => {
                problems.push(format!(
                    "{page}: the list of rooms is not as the sources say; run `cargo xtask rooms`"
                ));
            }
            Some(_) => {}
        }
    }
    problems
}

/// The pages whose lists of rooms are not as they should be, as they should be.
pub(crate) fn blessed(tree: &Tree) -> Vec<(&'static str, String)> {
    let blessed = |(path, with_modules)| {
        let text = tree.text(path)?;
        let (before, rest) = text.split_once(BEGIN)?;
        let (_, after) = rest.split_once(END)?;
        let page = format!("{before}{BEGIN}\n{}{END}{after}", rooms(tree, with_modules));
        (page != text).then_some((path, page))
    };
    LISTS.into_iter().filter_map(blessed).collect()
}

fn between(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once(BEGIN)?;
    rest.split_once(END).map(|(told, _)| told)
}

/// All Rust files of the crates.
fn sources(tree: &Tree) -> impl Iterator<Item = (&str, &str)> {
    FOLDERS.into_iter().flat_map(|folder| tree.below(folder)).filter(|(path, _)| path.ends_with(".rs"))
}

/// Where a crate stands in the list: its folder, its rank and its name.
type Place<'a> = (Option<usize>, usize, &'a str);

/// What the sources say: a line per crate and, if asked for, per module with the names of what is inside it.
fn rooms(tree: &Tree, with_modules: bool) -> String {
    let mut crates: BTreeMap<Place<'_>, BTreeMap<&str, Vec<&str>>> = BTreeMap::new();
    for (path, _) in sources(tree) {
        let folder = FOLDERS.iter().position(|folder| path.starts_with(folder));
        let mut parts = path.split('/').skip(1);
        let (Some(name), Some("src"), Some(first)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let rank = ORDER.iter().position(|known| *known == name).unwrap_or(ORDER.len());
        let modules = crates.entry((folder, rank, name)).or_default();
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
    for ((folder, _, name), modules) in crates {
        let room = format!("{}{name}/", folder.map_or("", |at| FOLDERS[at]));
        let source = |file: &str| tree.text(&format!("{room}src/{file}.rs"));
        let job = source("lib").or_else(|| source("main")).map(first_sentence).unwrap_or_default();
        text.push_str(&format!("{room:<17} {job}\n"));
        for (module, inside) in modules.into_iter().filter(|_| with_modules) {
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

    const SOURCES: [(&str, &str); 6] = [
        ("lab/a/src/lib.rs", "//! Plays.\n"),
        ("crates/b/src/main.rs", "//! Runs\n//! it. And more.\n//!\n//! Much more.\n"),
        ("crates/model/src/lib.rs", "//! Nouns.\n"),
        ("crates/model/src/key.rs", "//! Who is who.\n"),
        ("crates/model/src/key/uid.rs", "//! Sixteen bytes.\n"),
        ("crates/model/src/tests/mod.rs", "//! Tells stories.\n"),
    ];
    const ROOMS: &str = "```text\ncrates/model/     Nouns.\n  key             Who is who.\n\
        \x20                 inside: uid\n  tests           Tells stories.\ncrates/b/         Runs it.\nlab/a/            Plays.\n```\n";

    const CRATES: &str =
        "```text\ncrates/model/     Nouns.\ncrates/b/         Runs it.\nlab/a/            Plays.\n```\n";

    fn tree_with(crates: &str, modules: &str) -> Tree {
        let page = |list: &str| format!("# Rooms\n{BEGIN}\n{list}{END}\nrest\n");
        let (crates, modules) = (page(crates), page(modules));
        let mut files = SOURCES.to_vec();
        files.extend([(PAGE, crates.as_str()), ("docs/rooms.md", modules.as_str())]);
        Tree::of(&files)
    }

    #[test]
    fn rooms_come_from_the_first_sentence_of_their_source() {
        assert_eq!(rooms(&tree_with("", ""), true), ROOMS);
        assert_eq!(check(&tree_with(CRATES, ROOMS)), Vec::<String>::new());
    }

    #[test]
    fn a_page_behind_the_sources_is_named_and_can_be_blessed() {
        for told in ["", "old\n"] {
            let tree = tree_with(CRATES, told);
            assert!(check(&tree)[0].contains("cargo xtask rooms"));
            let right = format!("# Rooms\n{BEGIN}\n{ROOMS}{END}\nrest\n");
            assert_eq!(blessed(&tree), vec![("docs/rooms.md", right)]);
        }
        assert!(blessed(&tree_with(CRATES, ROOMS)).is_empty());
        assert!(check(&Tree::of(&SOURCES))[0].contains("markers"));
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
