//! A ratchet on wording: `counts.txt` has a row per rule with the number of violations, which may only fall.
//!
//! The first number counts README.md, `docs/` and `deploy/`, the second the string literals of the program. A higher
//! count is a problem; so is a lower one until the table has the lower number, so that the progress is kept.

use super::literals;
use crate::markdown;
use crate::tree::Tree;

/// The table of counts.
const TABLE: &str = "xtask/src/tidy/counts.txt";

/// The rules that are not words, with the remedy. Words have `|` between alternatives; `*` matches any ending.
const RULES: [(&str, &str); 5] = [
    ("@log-braces", "log values as fields, not in the message"),
    ("@log-capital", "start a log message with a lower-case letter"),
    ("@log-period", "end a log message without a period"),
    ("@repository-path", "users do not have the repository; refer to `sluice explain CODE`"),
    ("@pronoun-start", "start a message, help text or table cell with its subject or a verb"),
];
const WORDS_REMEDY: &str = "use the usual technical term";

/// The words that a message must not start with.
const PRONOUNS: [&str; 8] = ["It", "Its", "Those", "What", "That", "How", "Whoever", "Nobody"];

/// Pages that are not for users; they are not counted.
const NOT_FOR_USERS: [&str; 2] = ["docs/decisions/", "docs/design"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A whole page or manifest.
    Prose,
    /// A table cell of a page; also part of its `Prose`.
    Cell,
    Literal,
    /// A literal that is the message of a log macro.
    Log,
}

/// A text that users read.
struct Piece<'a> {
    path: &'a str,
    line: usize,
    text: String,
    kind: Kind,
}

/// Reports each count that rose, with the places, and each that fell, with the row to write.
pub(super) fn check(tree: &Tree) -> Vec<String> {
    let Some(table) = tree.text(TABLE) else { return vec![format!("{TABLE}: the file is missing")] };
    let pieces = pieces(tree);
    let mut problems = Vec::new();
    let rows = table.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
    for (number, row) in rows.filter(|(_, row)| !row.is_empty() && !row.starts_with('#')) {
        match parsed(row) {
            Some((rule, allowed)) => problems.extend(compare(number, rule, allowed, &pieces)),
            None => problems.push(format!("{TABLE}:{number}: not a known rule and two numbers: {row}")),
        }
    }
    let has = |rule: &str| table.lines().any(|line| line.split_whitespace().next() == Some(rule));
    let missing = RULES.iter().filter(|(rule, _)| !has(rule));
    problems.extend(missing.map(|(rule, _)| format!("{TABLE}: a row is missing: {rule} 0 0")));
    problems
}

/// The rule of a row, and its numbers.
fn parsed(row: &str) -> Option<(&str, [usize; 2])> {
    let (rest, strings) = row.rsplit_once(char::is_whitespace)?;
    let (rule, prose) = rest.trim_end().rsplit_once(char::is_whitespace)?;
    let rule = rule.trim_end();
    let is_words = rule.split('|').all(|words| words.starts_with(|letter: char| letter.is_ascii_lowercase()));
    let is_known = is_words || RULES.iter().any(|(known, _)| *known == rule);
    is_known.then_some((rule, [prose.parse().ok()?, strings.parse().ok()?]))
}

fn compare(number: usize, rule: &str, allowed: [usize; 2], pieces: &[Piece<'_>]) -> Vec<String> {
    let mut places = [Vec::new(), Vec::new()];
    for piece in pieces {
        let column = usize::from(matches!(piece.kind, Kind::Literal | Kind::Log));
        let line = |at: usize| piece.line + piece.text[..at].matches('\n').count();
        places[column].extend(hits(rule, piece).into_iter().map(|at| (piece.path, line(at))));
    }
    places.iter_mut().for_each(|places| places.sort_unstable());
    let remedy = RULES.iter().find(|(known, _)| *known == rule).map_or(WORDS_REMEDY, |(_, remedy)| remedy);
    let mut problems = Vec::new();
    for ((found, allowed), name) in places.iter().zip(allowed).zip(["pages", "strings"]) {
        if found.len() > allowed {
            problems.push(format!(
                "{TABLE}:{number}: {rule:?} occurs {} times in {name}, {allowed} are allowed; {remedy}:\n{}",
                found.len(),
                listed(found)
            ));
        }
    }
    let lower = [0, 1].map(|column| allowed[column].min(places[column].len()));
    if lower != allowed {
        let line = format!("{rule:<24}{:>6}{:>6}", lower[0], lower[1]);
        problems.push(format!("{TABLE}:{number}: the count fell; replace the row with:\n{line}"));
    }
    problems
}

/// The places, a line for each file.
fn listed(places: &[(&str, usize)]) -> String {
    let files = places.chunk_by(|one, other| one.0 == other.0).map(|file| {
        let lines: Vec<String> = file.iter().map(|(_, line)| line.to_string()).collect();
        format!("    {}:{}", file[0].0, lines.join(","))
    });
    files.collect::<Vec<_>>().join("\n")
}

fn pieces(tree: &Tree) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let is_page = |path: &str| {
        (path == "README.md" || path.starts_with("docs/") || path.starts_with("deploy/"))
            && !NOT_FOR_USERS.iter().any(|start| path.starts_with(start))
    };
    for (path, text) in tree.below("").filter(|(path, _)| is_page(path)) {
        pieces.push(Piece { path, line: 1, text: text.to_string(), kind: Kind::Prose });
        let cells = markdown::rows(text).into_iter().filter(|_| path.ends_with(".md"));
        let cells = cells.flat_map(|(line, cells)| cells.into_iter().map(move |cell| (line, cell)));
        let cells = cells.map(|(line, cell)| (line, cell.to_string()));
        pieces.extend(cells.map(|(line, text)| Piece { path, line, text, kind: Kind::Cell }));
    }
    for (path, literal) in literals::of_tree(tree) {
        let kind = if literal.is_log { Kind::Log } else { Kind::Literal };
        pieces.push(Piece { path, line: literal.line, text: literal.text, kind });
    }
    pieces
}

/// The positions at which a piece violates a rule.
fn hits(rule: &str, piece: &Piece<'_>) -> Vec<usize> {
    let text = piece.text.trim();
    let is_log = piece.kind == Kind::Log;
    let breaks = match rule {
        "@log-braces" => is_log && text.contains('{'),
        "@log-capital" => is_log && text.starts_with(char::is_uppercase),
        "@log-period" => is_log && text.ends_with('.'),
        "@repository-path" => {
            let mut paths =
                ["deploy/", "docs/", "crates/"].iter().flat_map(|folder| text.match_indices(folder));
            matches!(piece.kind, Kind::Literal | Kind::Log)
                && paths.any(|(at, _)| !text[..at].ends_with(|it| is_letter(it) || it == '/'))
        }
        "@pronoun-start" => {
            let first = text.split_once(char::is_whitespace).map(|(first, _)| first);
            piece.kind != Kind::Prose && first.is_some_and(|first| PRONOUNS.contains(&first))
        }
        // Counted with its page.
        _ if piece.kind == Kind::Cell => false,
        words => return words.split('|').flat_map(|words| occurrences(&piece.text, words)).collect(),
    };
    if breaks { vec![0] } else { Vec::new() }
}

/// The positions of a phrase, also across line breaks. Only its first letter may be a capital: `US` is not `us`.
fn occurrences(text: &str, words: &str) -> Vec<usize> {
    let (words, has_any_end) = words.strip_suffix('*').map_or((words, false), |start| (start, true));
    let (first, others) = words.split_once(' ').unwrap_or((words, ""));
    let capital = first[..1].to_uppercase() + &first[1..];
    let mut found = Vec::new();
    for (at, _) in text.match_indices(first).chain(text.match_indices(&capital)) {
        let mut rest = Some(&text[at + first.len()..]);
        for word in others.split_whitespace() {
            let next = rest.filter(|rest| rest.starts_with(char::is_whitespace));
            rest = next.and_then(|rest| rest.trim_start().strip_prefix(word));
        }
        let ends = rest.is_some_and(|rest| has_any_end || !rest.starts_with(is_letter));
        let before = &text[..at];
        // A period before it is part of a name: `login.microsoftonline.us`. "Unknown to us" is how pages mark what no
        // public source says about Azure.
        let is_part = before.ends_with(|letter| is_letter(letter) || letter == '.');
        if ends && !is_part && !before.trim_end().ends_with("nknown to") {
            found.push(at);
        }
    }
    found
}

fn is_letter(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The problems of a page and a source file when the table has this row.
    fn found(row: &str, page: &str, source: &str) -> String {
        let rules = RULES.map(|(rule, _)| rule).into_iter().filter(|rule| !row.starts_with(rule));
        let table: String = rules.map(|rule| format!("{rule} 0 0\n")).collect();
        let tree = Tree::of(&[
            (TABLE, &format!("# rule pages strings\n{row}\n{table}")),
            ("docs/a.md", page),
            ("docs/decisions/b.md", page),
            ("crates/a/src/lib.rs", source),
        ]);
        check(&tree).join("\n")
    }

    #[test]
    fn a_rise_is_reported_with_its_places() {
        let page = "Our pods.\nIt is\nours, of a US tour, flour, x.our.\n";
        assert_eq!(found("our|ours 2 0", page, ""), "");
        let rise = found("our|ours 1 0", page, "");
        assert!(
            rise.contains("2 times in pages, 1 are allowed") && rise.ends_with("docs/a.md:1,3"),
            "{rise}"
        );
        let rise =
            found("us|by itself 0 0", "US\n", "\n// us\nconst A: &str = \"for us\\nby \\\n  itself\";");
        assert!(rise.contains("2 times in strings") && rise.ends_with("crates/a/src/lib.rs:3,3"), "{rise}");
    }

    #[test]
    fn a_fall_asks_for_the_lower_number() {
        let fall = found("mend* 3 1", "it is mended, and amended\n", "");
        assert!(fall.starts_with(TABLE) && fall.contains("replace the row with:"), "{fall}");
        let line = fall.lines().last().unwrap();
        assert_eq!(parsed(line), Some(("mend*", [1, 0])));
        assert_eq!(found(line, "it is mended, and amended\n", ""), "");
    }

    #[test]
    fn rules_about_messages_are_counted() {
        let logs = "fn f() { info!(a, \"Was {b}.\"); println!(\"Was {b}.\"); }";
        for rule in ["@log-braces", "@log-capital", "@log-period"] {
            assert!(!found(&format!("{rule} 0 1"), "", logs).contains(rule), "{rule}");
            assert!(found(&format!("{rule} 0 0"), "", logs).contains(rule), "{rule}");
        }
        let path = "const A: [&str; 2] = [\"see docs/a.md\", \"https://x/docs/\"];";
        assert_eq!(found("@repository-path 0 1", "docs/a.md", path), "");
        let page = "What is this?\n\n| a | b |\n|---|---|\n| x | Its state |\n| What | Items |\n";
        assert_eq!(
            found("@pronoun-start 1 1", page, "const A: [&str; 2] = [\"That is\", \"Italy is\"];"),
            ""
        );
    }

    #[test]
    fn a_table_with_unknown_or_missing_rows_is_reported() {
        assert!(found("@log-brace 0 0", "", "").contains("not a known rule"));
        assert!(found("our 0", "", "").contains("not a known rule"));
        assert!(found("our| 0 0", "", "").contains("not a known rule"));
        assert!(check(&Tree::of(&[(TABLE, "")])).join("\n").contains("a row is missing: @log-period 0 0"));
        assert_eq!(check(&Tree::of(&[])).len(), 1);
    }
}
