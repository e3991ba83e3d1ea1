//! Reads Markdown as far as the checks need it: fences, headings, links, tables.

use std::collections::BTreeMap;

/// A code block.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Fence<'a> {
    /// The line of its opening mark, from 1.
    pub(crate) line: usize,
    /// The first word behind the mark, or nothing.
    pub(crate) language: &'a str,
    /// It stands in a list.
    pub(crate) is_indented: bool,
    /// What is in it, without the spaces around.
    pub(crate) lines: Vec<&'a str>,
}

/// All code blocks, and the lines outside of them with their numbers from 1.
fn split(text: &str) -> (Vec<Fence<'_>>, Vec<(usize, &str)>) {
    let (mut fences, mut prose) = (Vec::<Fence<'_>>::new(), Vec::new());
    let mut open: Option<&str> = None;
    for (at, line) in text.lines().enumerate() {
        let start = line.trim();
        let mark = ["```", "~~~"].into_iter().find(|mark| start.starts_with(mark));
        match (open, mark) {
            (None, Some(mark)) => {
                let language = start.trim_start_matches(['`', '~']).split_whitespace().next().unwrap_or("");
                let is_indented = line.starts_with(char::is_whitespace);
                fences.push(Fence { line: at + 1, language, is_indented, lines: Vec::new() });
                open = Some(mark);
            }
            (Some(word), Some(mark)) if word == mark => open = None,
            (Some(_), _) => fences.last_mut().into_iter().for_each(|fence| fence.lines.push(start)),
            (None, None) => prose.push((at + 1, line)),
        }
    }
    (fences, prose)
}

/// All code blocks, whatever their language.
pub(crate) fn fences(text: &str) -> Vec<Fence<'_>> {
    split(text).0
}

/// The lines outside of code blocks, with their numbers from 1.
pub(crate) fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    split(text).1.into_iter()
}

/// The lines of all code blocks of one language.
pub(crate) fn blocks<'a>(text: &'a str, language: &str) -> Vec<&'a str> {
    fences(text)
        .into_iter()
        .filter(|fence| fence.language == language)
        .flat_map(|fence| fence.lines)
        .collect()
}

/// The anchors that links can lead to, as GitHub makes them from headings.
pub(crate) fn anchors(text: &str) -> Vec<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut found = Vec::new();
    for (_, line) in prose(text) {
        if let Some(heading) = line.strip_prefix('#') {
            let slug = slug(heading.trim_start_matches('#').trim());
            let times = seen.entry(slug.clone()).or_insert(0);
            found.push(if *times == 0 { slug } else { format!("{slug}-{times}") });
            *times += 1;
        }
        if let Some((_, rest)) = line.split_once("<a id=\"")
            && let Some((id, _)) = rest.split_once('"')
        {
            found.push(id.to_string());
        }
    }
    found
}

fn slug(heading: &str) -> String {
    // Of a link only its text counts; the brackets around it fall to the filter below.
    let mut text = String::new();
    let mut rest = heading;
    while let Some((before, after)) = rest.split_once("](") {
        text.push_str(before);
        rest = after.split_once(')').map_or("", |(_, rest)| rest);
    }
    text.push_str(rest);
    text.to_lowercase()
        .chars()
        .filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'))
        .map(|letter| if letter == ' ' { '-' } else { letter })
        .collect()
}

/// The target of every link, with its line.
pub(crate) fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        let line = without_code(line);
        let mut rest = line.as_str();
        while let Some((_, after)) = rest.split_once("](") {
            let (target, after) = after.split_once(')').unwrap_or((after, ""));
            found.push((number, target.split_whitespace().next().unwrap_or("").to_string()));
            rest = after;
        }
        if let Some((_, target)) = line.strip_prefix('[').and_then(|line| line.split_once("]: ")) {
            found.push((number, target.trim().to_string()));
        }
    }
    found
}

fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join(" ")
}

/// The cells of every table row, without headings' separators, with its line.
pub(crate) fn rows(text: &str) -> Vec<(usize, Vec<&str>)> {
    prose(text)
        .filter_map(|(number, line)| {
            let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
            let cells: Vec<&str> = inner.split('|').map(str::trim).collect();
            let separator = cells.iter().all(|cell| cell.chars().all(|c| matches!(c, '-' | ':')));
            (!separator).then_some((number, cells))
        })
        .collect()
}

/// Everything between backticks.
pub(crate) fn code_spans(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# One `code` & more\n\n## Same\n## Same\n\
        See [here](a.md#x \"title\") and `[not](this.md)`.\n\n\
        ```sh\ncargo xtask test\n[nor](that.md)\n```\n\n| a | `b` |\n|---|---|\n| 1 | 2 |\n\n[ref]: c.md\n";

    #[test]
    fn headings_become_the_anchors_that_github_makes() {
        assert_eq!(anchors(PAGE), ["one-code--more", "same", "same-1"]);
        assert_eq!(slug("See [the page](x.md)!"), "see-the-page");
    }

    #[test]
    fn links_in_code_are_no_links() {
        let targets: Vec<String> = links(PAGE).into_iter().map(|(_, target)| target).collect();
        assert_eq!(targets, ["a.md#x", "c.md"]);
    }

    #[test]
    fn fences_have_their_line_their_language_and_their_place() {
        let text = "a\n```sh\nx\n```\n- b\n  ~~~\n  ```\n  y\n  ~~~\n";
        let fence = |line, language, is_indented, lines: &[&'static str]| Fence {
            line,
            language,
            is_indented,
            lines: lines.to_vec(),
        };
        assert_eq!(fences(text), [fence(2, "sh", false, &["x"]), fence(6, "", true, &["```", "y"])]);
    }

    #[test]
    fn blocks_and_tables_are_found() {
        assert_eq!(blocks(PAGE, "sh"), ["cargo xtask test", "[nor](that.md)"]);
        let cells: Vec<Vec<&str>> = rows(PAGE).into_iter().map(|(_, cells)| cells).collect();
        assert_eq!(cells, [vec!["a", "`b`"], vec!["1", "2"]]);
        assert_eq!(code_spans("x `a` y `b::c`"), ["a", "b::c"]);
    }
}
