//! `docs/metrics.md`, made from the table.

use super::{Kind, PREFIX, TABLE, bounds_seconds};

/// The reference of all metrics, as Markdown.
pub fn reference() -> String {
    let mut text = String::from(HEAD);
    let bounds: Vec<String> = bounds_seconds().map(|bound| format!("{bound}")).collect();
    text.push_str(&format!(
        "Histograms have the bounds {} seconds.\n\n| metric | type | labels | what it says |\n|---|---|---|---|\n",
        bounds.join(", ")
    ));
    for row in TABLE {
        let labels: Vec<String> = row.labels.iter().map(|label| format!("`{}`", label.name)).collect();
        let (name, kind, labels) = (row.name, row.kind.word(), labels.join(", "));
        text.push_str(&format!("| `{PREFIX}_{name}` | {kind} | {labels} | {} |\n", row.help));
    }
    text.push_str("\n## Labels\n\nEvery label has a fixed list of words; no word comes from a user.\n\n");
    let mut known: Vec<(&str, Vec<&str>)> = Vec::new();
    for label in TABLE.iter().filter(|row| row.kind != Kind::Info).flat_map(|row| row.labels) {
        let entry = (label.name, (label.words)());
        if !known.contains(&entry) {
            known.push(entry);
        }
    }
    known.sort();
    text.push_str("| label | words |\n|---|---|\n");
    for (name, words) in known {
        let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
        text.push_str(&format!("| `{name}` | {} |\n", words.join(" ")));
    }
    text.push_str("\n## Names of the design documents\n\n| there | here |\n|---|---|\n");
    for (origin, row) in TABLE.iter().filter_map(|row| row.origin.map(|origin| (origin, row))) {
        text.push_str(&format!("| `{origin}` | `{PREFIX}_{}` |\n", row.name));
    }
    text
}

const HEAD: &str = "# Metrics

`GET /metrics` on the health listener answers in OpenMetrics text. This page is made from the table in
`crates/controller/src/metrics/table.rs`; a test fails when they differ, and
`UPDATE_EXPECT=1 cargo test -p sluice-controller --lib reference` writes it anew.

All numbers are about all services together: there is no label with the name of a service, a namespace or a
node. `GET /api/v1/services` and `sluice status` have the names. Counters begin at zero with every process, and
those of the engine grow only on the leader.

";
