//! What a body looked like that is not what it should be, in one line for people.

use alloc::format;
use alloc::string::String;
use core::fmt::Write as _;

use crate::headers::Headers;

/// How much of a body is shown.
const SHOWN_MAX: usize = 120;
/// How far into a page its title is looked for.
const TITLE_WITHIN: usize = 4_096;

/// Type, length, title and beginning of a body.
pub(crate) fn describe(headers: Headers<'_>, body: &[u8]) -> String {
    if body.is_empty() {
        return String::from("the body is empty");
    }
    let kind = one_line(headers.first("Content-Type").unwrap_or("untyped").as_bytes(), SHOWN_MAX);
    let mut text = format!("the body is {kind}, {} bytes", body.len());
    // Writing to a string cannot fail.
    if let Some(title) = title(body) {
        let _ = write!(text, ", titled \"{title}\"");
    }
    let _ = write!(text, ", starting with: {}", one_line(body, SHOWN_MAX));
    text
}

/// The surroundings of the place where reading stopped.
pub(crate) fn near(body: &[u8], line: usize, column: usize) -> String {
    let before: usize =
        body.split_inclusive(|&b| b == b'\n').take(line.saturating_sub(1)).map(<[u8]>::len).sum();
    let at = before.saturating_add(column).min(body.len());
    let (from, to) = (at.saturating_sub(40), at.saturating_add(20).min(body.len()));
    one_line(body.get(from..to).unwrap_or_default(), SHOWN_MAX)
}

/// Printable and on one line, whatever the bytes are.
pub(crate) fn one_line(bytes: &[u8], chars_max: usize) -> String {
    // A character has at most four bytes, so the rest cannot be shown anyway.
    let head = bytes.get(..chars_max.saturating_mul(4)).unwrap_or(bytes);
    let mut line = String::new();
    let mut count = 0;
    for c in String::from_utf8_lossy(head).chars() {
        let c = if c.is_control() || c.is_whitespace() { ' ' } else { c };
        if c == ' ' && line.ends_with(' ') {
            continue;
        }
        if count == chars_max {
            line.push('…');
            return line;
        }
        line.push(c);
        count += 1;
    }
    if head.len() < bytes.len() {
        line.push('…');
    }
    line
}

/// The title of an HTML page.
fn title(body: &[u8]) -> Option<String> {
    let head = body.get(..TITLE_WITHIN).unwrap_or(body);
    let find = |haystack: &[u8], needle: &[u8]| {
        haystack.windows(needle.len()).position(|window| window.eq_ignore_ascii_case(needle))
    };
    let open = find(head, b"<title")?;
    let after = head.get(open..)?;
    let text = after.get(find(after, b">")? + 1..)?;
    let text = text.get(..find(text, b"</title")?)?;
    let title = one_line(text.trim_ascii(), SHOWN_MAX);
    if title.is_empty() { None } else { Some(title) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn a_page_is_told_by_its_type_length_title_and_beginning() {
        let page = b"<html>\r\n<head><TITLE lang=en>\n 502 Bad\n Gateway </TITLE>";
        assert_eq!(
            describe(Headers(&[("content-type", "text/html")]), page),
            "the body is text/html, 56 bytes, titled \"502 Bad Gateway\", starting with: <html> <head><TITLE \
             lang=en> 502 Bad Gateway </TITLE>"
        );
        assert_eq!(describe(Headers(&[]), b""), "the body is empty");
    }

    #[test]
    fn ten_megabytes_of_anything_are_told_in_one_short_line() {
        for byte in [b'x', 0, 0xff, b'\n', b'<'] {
            let text = describe(Headers(&[]), &vec![byte; 10_000_000]);
            assert!(text.chars().count() < 300 && !text.contains(['\n', '\0']), "{text}");
        }
        assert_eq!(one_line("ää".repeat(100).as_bytes(), 3), "äää…");
        assert_eq!(title(b"<title>no end"), None);
        assert_eq!(title(b"<title"), None);
    }

    #[test]
    fn where_reading_stopped_is_shown() {
        assert_eq!(near(b"{\n\"id\": 3}", 2, 7), "{ \"id\": 3}");
        assert_eq!(near(b"", 9, 9), "");
    }
}
