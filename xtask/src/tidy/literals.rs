//! The string literals of Rust source that ships: comments and items under `#[cfg(test)]` are skipped.
//!
//! A scanner, not a parser: it knows strings, raw strings, characters, comments (not nested ones) and brackets.

use std::ops::Range;

use crate::tree::{Tree, folder_of};

/// The macros whose message goes to the log.
const LOG_MACROS: [&str; 5] = ["trace!(", "debug!(", "info!(", "warn!(", "error!("];

/// How items begin that are only in tests.
const TEST_ONLY: [&str; 2] = ["#[cfg(test)]", "#[cfg(all(test,"];

/// Where the program prints a line break. It is white space, and not a line break of the source.
pub(super) const PRINTED_BREAK: char = '\u{2028}';

/// A string literal.
pub(super) struct Literal {
    /// Its first line, from 1.
    pub(super) line: usize,
    /// Its text, without backslashes, with the line breaks of the source and with each [`PRINTED_BREAK`].
    pub(super) text: String,
    /// Whether it is the message of a log macro.
    pub(super) is_log: bool,
}

/// The literals of `crates/*/src` and `lab/*/src` outside tests, with the path of their file.
pub(super) fn of_tree(tree: &Tree) -> Vec<(&str, Literal)> {
    let is_source = |path: &str| {
        let mut parts = path.split('/');
        matches!(parts.next(), Some("crates" | "lab")) && parts.nth(1) == Some("src")
    };
    let sources = tree.ending(".rs").filter(|(path, _)| is_source(path) && !path.ends_with("_tests.rs"));
    let (mut found, mut tests) = (Vec::new(), Vec::new());
    for (path, text) in sources {
        let source = Source::of(text);
        let stem = path.strip_suffix(".rs").unwrap_or(path);
        let is_root = ["/lib", "/main", "/mod"].iter().any(|root| stem.ends_with(root));
        let home = if is_root { folder_of(path) } else { stem };
        tests.extend(source.test_modules().map(|name| format!("{home}/{name}")));
        found.extend(source.literals().into_iter().map(|literal| (path, literal)));
    }
    let is_test = |path: &str| {
        tests.iter().any(|module| path.strip_prefix(module).is_some_and(|rest| rest.starts_with(['.', '/'])))
    };
    found.retain(|(path, _)| !is_test(path));
    found
}

/// A file, split once.
struct Source<'a> {
    text: &'a str,
    /// The text, with blanks for comments, characters and strings (after the first quote), byte for byte.
    code: String,
    /// The range of each string, between its quotes.
    strings: Vec<Range<usize>>,
    /// The ranges of the items that are only in tests.
    tests: Vec<Range<usize>>,
}

impl<'a> Source<'a> {
    fn of(text: &'a str) -> Source<'a> {
        let (mut code, mut strings) = (String::new(), Vec::new());
        while let Some(next) = text[code.len()..].chars().next() {
            let (at, rest) = (code.len(), &text[code.len()..]);
            let end = match next {
                '/' if rest.starts_with("//") => rest.find('\n'),
                '/' if rest.starts_with("/*") => rest.find("*/").map(|end| end + 2),
                '\'' => Some(character_length(rest)),
                '"' => {
                    let before = code.trim_end_matches('#');
                    let hashes = before.ends_with('r').then(|| &code[before.len()..]);
                    let length = string_length(&rest[1..], hashes);
                    strings.push(at + 1..at + 1 + length);
                    Some((length + 2).min(rest.len()))
                }
                _ => Some(next.len_utf8()),
            };
            let end = at + end.unwrap_or(rest.len());
            code.push(if matches!(next, '/' | '\'') { ' ' } else { next });
            code.extend(std::iter::repeat_n(' ', end - code.len()));
        }
        let tests = TEST_ONLY.iter().flat_map(|start| code.match_indices(start));
        let tests = tests.map(|(at, _)| at..item_end(&code, at)).collect();
        Source { text, code, strings, tests }
    }

    /// The names in `#[cfg(test)] mod name;`: files that are tests as a whole.
    fn test_modules(&self) -> impl Iterator<Item = &str> {
        let items = self.tests.iter().filter_map(|range| self.code[range.clone()].strip_suffix(';'));
        items.filter_map(|item| item.rsplit_once("mod ")).map(|(_, name)| name.trim())
    }

    fn literals(&self) -> Vec<Literal> {
        let logs = self.log_messages();
        // The reason for switching off a lint is not in the binary.
        let is_reason = |at: usize| self.code[..at - 1].trim_end().ends_with("reason =");
        let is_test = |at: usize| self.tests.iter().any(|test| test.contains(&at));
        let strings = self.strings.iter().filter(|range| !is_test(range.start) && !is_reason(range.start));
        let literal = |range: &Range<usize>| Literal {
            line: 1 + self.text[..range.start].matches('\n').count(),
            text: unescaped(&self.text[range.clone()]),
            is_log: logs.contains(&range.start),
        };
        strings.map(literal).collect()
    }

    /// The start of each log message: the first string of the macro that is an argument, not the value of a field.
    fn log_messages(&self) -> Vec<usize> {
        let mut found = Vec::new();
        for call in LOG_MACROS.iter().flat_map(|call| self.code.match_indices(call)) {
            let start = call.0 + call.1.len();
            let (mut depth, mut last) = (0_usize, '(');
            let letters = self.code[start..].char_indices();
            for (at, letter) in letters.filter(|(_, letter)| !letter.is_whitespace()) {
                match letter {
                    '"' if depth == 0 && matches!(last, '(' | ',') => {
                        found.push(start + at + 1);
                        break;
                    }
                    ')' if depth == 0 => break,
                    '(' | '[' | '{' => depth += 1,
                    ')' | ']' | '}' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                last = letter;
            }
        }
        found
    }
}

/// The length of a character literal, or of the mark that a lifetime begins with.
fn character_length(text: &str) -> usize {
    let mut letters = text.char_indices().skip(1);
    match (letters.next(), letters.next()) {
        (Some((_, '\\')), Some((at, escaped))) => {
            let rest = at + escaped.len_utf8();
            text[rest..].find('\'').map_or(1, |end| rest + end + 1)
        }
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 1,
    }
}

/// The length of what is between the quotes; a raw string has the hashes that end it.
fn string_length(text: &str, raw: Option<&str>) -> usize {
    if let Some(hashes) = raw {
        return text.find(&format!("\"{hashes}")).unwrap_or(text.len());
    }
    let mut is_escaped = false;
    let end = text.bytes().position(|byte| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    });
    end.unwrap_or(text.len())
}

/// The end of the item that begins there: its semicolon, or the brace that closes its body.
fn item_end(code: &str, start: usize) -> usize {
    let mut depth = 0_usize;
    for (at, byte) in code.bytes().enumerate().skip(start) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' => depth = depth.saturating_sub(1),
            b'}' if depth <= 1 => return at + 1,
            b'}' => depth -= 1,
            b';' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    code.len()
}

/// The text without backslashes. A line break that is not escaped is one of the source and one that is printed.
fn unescaped(text: &str) -> String {
    let (mut out, mut letters) = (String::new(), text.chars());
    while let Some(letter) = letters.next() {
        match (letter, if letter == '\\' { letters.next() } else { None }) {
            ('\\', Some('n')) => out.push(PRINTED_BREAK),
            ('\\', Some('r' | 't')) => out.push(' '),
            ('\n', _) => out.extend(['\n', PRINTED_BREAK]),
            ('\\', Some(escaped)) => out.push(escaped),
            _ => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(usize, String, bool)> {
        let literals = Source::of(text).literals().into_iter();
        literals.map(|literal| (literal.line, literal.text, literal.is_log)).collect()
    }

    #[test]
    fn strings_are_found_between_comments_characters_and_lifetimes() {
        let text = "// \"no\"\n/* \"no\" */ f::<'a>('\"', '\\'', \"a\\\"b\\nc\");\nlet é = r#\"x\"y\\\"#;\n";
        assert_eq!(found(text), [(2, "a\"b\u{2028}c".to_string(), false), (3, "x\"y\\".to_string(), false)]);
    }

    #[test]
    fn the_message_of_a_log_macro_is_found_beside_its_fields() {
        let text = "warn!(\n  kind = \"field\", at = f(\"inner\"),\n  \"message\", \"argument\");\nprintln!(\"other\");\n";
        let logs: Vec<_> = found(text).into_iter().filter(|literal| literal.2).collect();
        assert_eq!(logs, [(3, "message".to_string(), true)]);
    }

    #[test]
    fn tests_do_not_count() {
        let lib = "mod a;\n#[cfg(test)]\nmod helper;\n#[cfg(all(test, x))]\nfn f(a: [u8; 2]) { g(\"no\") }\nconst A: &str = \"yes\";\n\
            #[allow(x, reason = \"no\")]\n";
        let tree = Tree::of(&[
            ("crates/a/src/lib.rs", lib),
            ("crates/a/src/a.rs", "const B: &str = \"too\";\n#[cfg(test)] mod t { const C: &str = \"no\"; }"),
            ("crates/a/src/helper.rs", "const C: &str = \"no\";"),
            ("crates/a/src/helper/more.rs", "const C: &str = \"no\";"),
            ("crates/a/tests/whole.rs", "const C: &str = \"no\";"),
        ]);
        let texts: Vec<String> = of_tree(&tree).into_iter().map(|(_, literal)| literal.text).collect();
        assert_eq!(texts, ["too", "yes"]);
    }
}
