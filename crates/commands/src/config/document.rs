//! A YAML or JSON file as a tree of texts, each with its line.
//!
//! JSON is YAML, so one parser does for both. Values stay the texts that were written: what `010` or
//! `yes` means is decided by the key that it is given to, not by YAML. Anchors, aliases and a second
//! document are refused, because nobody needs them here and each is a way to be misread.

use saphyr_parser::{Event, Parser, ScalarStyle};

use super::problems::Problem;

/// So deep may a file nest; ours needs three.
const DEPTH_MAX: usize = 32;

/// One place in the file. It has no `Debug`: there are secrets in it.
pub(crate) struct Node {
    /// Counted from one.
    pub(crate) line: usize,
    pub(crate) content: Content,
}

/// What is in one place.
pub(crate) enum Content {
    /// Nothing, or `null`.
    Nothing,
    /// A word, a number, a text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// Keys with their lines, and their values, as they stand.
    Map(Vec<(String, usize, Node)>),
}

/// Reads a whole file; an empty one is a map without keys.
pub(crate) fn parse(text: &str) -> Result<Vec<(String, usize, Node)>, Problem> {
    // Some editors of Windows begin a file with a mark that is no part of it.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = Reader { parser: Parser::new_from_str(text) };
    let mut root = None;
    loop {
        let (event, line) = reader.next()?;
        match event {
            Event::StreamEnd => break,
            Event::StreamStart | Event::DocumentStart(_) | Event::DocumentEnd | Event::Nothing => {}
            _ if root.is_some() => {
                return Err(wrong(line, "a second document starts here; put all keys into one document"));
            }
            event => root = Some(reader.node(event, line, 0)?),
        }
    }
    match root {
        None | Some(Node { content: Content::Nothing, .. }) => Ok(Vec::new()),
        Some(Node { content: Content::Map(entries), .. }) => Ok(entries),
        Some(Node { line, .. }) => {
            Err(wrong(line, "a configuration consists of keys with values, like `resourceGroup: my-group`"))
        }
    }
}

fn wrong(line: usize, what: impl Into<String>) -> Problem {
    Problem::new(format!("line {line}"), what)
}

struct Reader<'a> {
    parser: Parser<'a, saphyr_parser::StrInput<'a>>,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<(Event<'a>, usize), Problem> {
        match self.parser.next_event() {
            None => Ok((Event::StreamEnd, 0)),
            Some(Ok((event, span))) => Ok((event, span.start.line())),
            Some(Err(error)) => {
                let line = error.marker().line();
                Err(wrong(line, format!("is not valid YAML or JSON: {}", error.info())))
            }
        }
    }

    fn node(&mut self, event: Event<'a>, line: usize, depth: usize) -> Result<Node, Problem> {
        if depth > DEPTH_MAX {
            return Err(wrong(line, format!("is nested too deeply; the limit is {DEPTH_MAX} levels")));
        }
        let content = match event {
            Event::Scalar(text, style, ..) => {
                let is_null =
                    style == ScalarStyle::Plain && matches!(&*text, "" | "~" | "null" | "Null" | "NULL");
                if is_null { Content::Nothing } else { Content::Text(text.into_owned()) }
            }
            Event::SequenceStart(..) => {
                let mut items = Vec::new();
                loop {
                    match self.next()? {
                        (Event::SequenceEnd, _) => break Content::List(items),
                        (event, line) => items.push(self.node(event, line, depth + 1)?),
                    }
                }
            }
            Event::MappingStart(..) => self.map(depth)?,
            Event::Alias(_) => {
                return Err(wrong(line, "aliases (*name) are not supported; repeat the value"));
            }
            _ => return Err(wrong(line, "the file ends inside a value")),
        };
        Ok(Node { line, content })
    }

    fn map(&mut self, depth: usize) -> Result<Content, Problem> {
        let mut entries: Vec<(String, usize, Node)> = Vec::new();
        loop {
            let (key, line) = match self.next()? {
                (Event::MappingEnd, _) => return Ok(Content::Map(entries)),
                (Event::Scalar(key, ..), line) => (key.into_owned(), line),
                (_, line) => return Err(wrong(line, "a key must be a single word")),
            };
            if let Some((_, first, _)) = entries.iter().find(|(known, ..)| *known == key) {
                return Err(wrong(
                    line,
                    format!("duplicate key {key:?}, first set in line {first}; keep one"),
                ));
            }
            let (event, value_line) = self.next()?;
            let value = self.node(event, value_line, depth + 1)?;
            entries.push((key, line, value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tree in one line, for comparisons.
    fn told(node: &Node) -> String {
        match &node.content {
            Content::Nothing => "-".to_owned(),
            Content::Text(text) => format!("{text}@{}", node.line),
            Content::List(items) => format!("[{}]", items.iter().map(told).collect::<Vec<_>>().join(" ")),
            Content::Map(entries) => entries_told(entries),
        }
    }

    fn entries_told(entries: &[(String, usize, Node)]) -> String {
        let parts: Vec<String> =
            entries.iter().map(|(key, line, value)| format!("{key}@{line}={}", told(value))).collect();
        format!("{{{}}}", parts.join(" "))
    }

    fn parsed(text: &str) -> String {
        match parse(text) {
            Ok(entries) => entries_told(&entries),
            Err(problem) => problem.to_string(),
        }
    }

    #[test]
    fn yaml_and_json_give_the_same_tree_with_lines() {
        assert_eq!(
            parsed("a: 010\nsluice:\n  b: [x, y]\n  c: ~\n"),
            "{a@1=010@1 sluice@2={b@3=[x@3 y@3] c@4=-}}"
        );
        assert_eq!(
            parsed(
                "{\n\t\"a\": \"010\",\n\t\"sluice\": {\n\t\t\"b\": [\"x\", \"y\"],\n\t\t\"c\": null\n\t}\n}\n"
            ),
            "{a@2=010@2 sluice@3={b@4=[x@4 y@4] c@5=-}}"
        );
        assert_eq!(parsed("\u{feff}{\"a\": \"\\/x\\u00e9\"}"), "{a@1=/xé@1}");
    }

    #[test]
    fn an_empty_file_is_a_configuration_without_keys() {
        for text in ["", "\n", "# nothing\n", "---\n", "null", "{}"] {
            assert_eq!(parsed(text), "{}", "{text:?}");
        }
    }

    #[test]
    fn what_cannot_be_understood_is_refused_with_its_line() {
        for (text, told) in [
            ("a: 1\nb: 2\na: 3\n", "line 3: duplicate key \"a\", first set in line 1; keep one"),
            ("a: &x 1\nb: *x\n", "line 2: aliases (*name) are not supported; repeat the value"),
            ("a: 1\n---\nb: 2\n", "line 3: a second document starts here; put all keys into one document"),
            ("- a\n", "line 1: a configuration consists of keys with values, like `resourceGroup: my-group`"),
            ("? [a]\n: b\n", "line 1: a key must be a single word"),
        ] {
            assert_eq!(parsed(text), told, "{text:?}");
        }
        assert!(parsed("{\"a\": ").contains("is not valid YAML or JSON"), "{}", parsed("{\"a\": "));
        let deep = format!("a: {}{}", "[".repeat(40), "]".repeat(40));
        assert!(parsed(&deep).contains("nested too deeply"), "{}", parsed(&deep));
    }
}
