//! `--print-config`: every value, and where it came from.

use comfy_table::{ContentArrangement, Table, presets};
use serde_json::{Value as Json, json};

use super::Loaded;
use super::origin::Origin;

/// A table for people. What is not a default stands out by its last column.
pub fn text(loaded: &Loaded) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(["KEY", "VALUE", "FROM"]);
    for value in &loaded.values {
        let shown = match (&value.text, value.is_secret) {
            (Some(_), true) => format!("(redacted, from {})", value.origin.place(&loaded.file)),
            (Some(text), false) => text.clone(),
            (None, _) => format!("({})", value.unset_means.unwrap_or("not set")),
        };
        table.add_row([value.key.to_owned(), shown, value.origin.place(&loaded.file)]);
    }
    let lines = table.to_string();
    let mut text: Vec<&str> = lines.lines().map(str::trim_end).collect();
    let credential = format!(" Credential: {}, from the keys above.", loaded.config.identity.name());
    text.push("");
    text.push(&credential);
    text.join("\n")
}

/// The same for scripts.
pub fn json(loaded: &Loaded) -> Json {
    let values: Vec<Json> = loaded
        .values
        .iter()
        .map(|value| {
            let (line, variable) = match &value.origin {
                Origin::File { line } => (Some(*line), None),
                Origin::Ambient { variable } | Origin::Environment { variable } => (None, Some(variable)),
                Origin::Default | Origin::Flag => (None, None),
            };
            json!({
                "key": value.key,
                "value": value.text.as_ref().filter(|_| !value.is_secret),
                "isSet": value.text.is_some(),
                "redacted": value.is_secret && value.text.is_some(),
                "origin": value.origin.word(),
                "line": line,
                "variable": variable,
            })
        })
        .collect();
    json!({
        "file": loaded.path,
        "credential": loaded.config.identity.name(),
        "values": values,
        "warnings": loaded.warnings,
    })
}
