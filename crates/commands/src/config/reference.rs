//! The reference of all keys, as `docs/reference/configuration.md` shows it.

use super::keys::Config;
use super::table::{Default, Row};

/// A heading and a table for each section.
pub fn markdown() -> String {
    let rows = Config::rows();
    let mut text = String::new();
    let mut heading = None;
    for row in &rows {
        let section = section(row.path);
        if heading != Some(section) {
            heading = Some(section);
            let title = match section {
                "" => "Keys of azure.json".to_owned(),
                "sluice" => "`sluice`".to_owned(),
                name => format!("`sluice.{name}`"),
            };
            text.push_str(&format!(
                "\n### {title}\n\n| key | value | default | meaning |\n|---|---|---|---|\n"
            ));
        }
        text.push_str(&line(row));
    }
    text
}

/// The part of the path that a heading is for.
fn section(path: &str) -> &str {
    let mut parts = path.split('.');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(_), None, _) => "",
        (Some(first), Some(_), None) => first,
        (_, Some(second), Some(_)) => second,
        (None, ..) => "",
    }
}

fn line(row: &Row) -> String {
    let mut value = row.kind.clone();
    if let Some((least, most)) = row.traits.bounds {
        value.push_str(&format!(", {least} to {most}"));
    }
    let default = match row.traits.default {
        Default::Is(text) => format!("`{text}`"),
        Default::Unset(meaning) => format!("not set: {meaning}"),
        Default::Required(_) => "required".to_owned(),
    };
    let mut meaning: String = row.meaning.concat().trim().to_owned();
    if let Default::Required(source) = row.traits.default {
        meaning.push_str(&format!(" Set it to {source}."));
    }
    if let Some(variable) = row.traits.ambient {
        meaning.push_str(&format!(" Also read from `{variable}`."));
    }
    format!("| `{}` | {value} | {default} | {meaning} |\n", row.path)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/configuration.md");
    const BEGIN: &str = "<!-- keys: written by `cargo xtask bless` -->\n";
    const END: &str = "<!-- end of keys -->";

    #[test]
    fn the_page_shows_the_table_as_it_is() {
        let page = std::fs::read_to_string(PAGE).unwrap();
        let (before, rest) = page.split_once(BEGIN).expect("the page has the mark where the keys begin");
        let (shown, after) = rest.split_once(END).expect("the page has the mark where the keys end");
        let expected = format!("{}\n", markdown().trim_end());
        if shown == expected {
            return;
        }
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::write(PAGE, format!("{before}{BEGIN}{expected}{END}{after}")).unwrap();
            return;
        }
        let differs = shown.lines().zip(expected.lines()).find(|(one, two)| one != two);
        panic!(
            "docs/reference/configuration.md is out of date; run `cargo xtask bless`. First difference: {differs:#?}"
        );
    }

    #[test]
    fn every_section_begins_with_a_heading_and_a_table_header() {
        let text = markdown();
        assert!(text.starts_with("\n### Keys of azure.json\n\n| key |"), "{}", &text[..80]);
        for table in text.split("\n\n").filter(|part| part.starts_with('|')) {
            let mut lines = table.lines();
            assert_eq!(lines.next(), Some("| key | value | default | meaning |"));
            assert_eq!(lines.next(), Some("|---|---|---|---|"));
        }
    }

    #[test]
    fn every_row_says_what_it_is_for_in_whole_sentences() {
        for row in Config::rows() {
            let meaning = row.meaning.concat();
            assert!(meaning.trim().ends_with('.'), "{}: {meaning}", row.path);
            assert!(!meaning.contains('|'), "{}: a bar would end the cell", row.path);
        }
    }
}
