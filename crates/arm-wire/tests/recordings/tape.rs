//! The recordings as they lie there.

use std::path::Path;

use serde_json::Value;
use serde_yaml_ng::Value as Yaml;

/// The files that there must be.
const FILES: [&str; 6] =
    ["loadbalancer", "natgateway", "publicipaddress", "servicegateway", "subnet", "virtualnetwork"];

/// One request and its answer.
pub(crate) struct Interaction {
    pub(crate) id: u64,
    pub(crate) method: String,
    pub(crate) url: String,
    pub(crate) if_match: Option<String>,
    /// The JSON that was sent; null if nothing was.
    pub(crate) sent: Value,
    pub(crate) status: u16,
    pub(crate) answer_headers: Vec<(String, String)>,
    pub(crate) answered: String,
}

/// Every file with its interactions.
pub(crate) fn all() -> Vec<(&'static str, Vec<Interaction>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/azure-recordings");
    FILES.iter().map(|file| (*file, read(&folder.join(format!("{file}.yaml"))))).collect()
}

fn read(path: &Path) -> Vec<Interaction> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let tape: Yaml = serde_yaml_ng::from_str(&text).expect("a recording is YAML");
    let interactions = tape["interactions"].as_sequence().expect("a recording has interactions");
    // Counted in another way, so that none can be lost in the reading.
    let begun = text.lines().filter(|line| line.trim_start().starts_with("- id: ")).count();
    assert_eq!(interactions.len(), begun, "{}", path.display());
    interactions.iter().map(interaction).collect()
}

fn interaction(yaml: &Yaml) -> Interaction {
    let (request, response) = (&yaml["request"], &yaml["response"]);
    let text = |value: &Yaml| value.as_str().expect("a text").to_owned();
    let sent = text(&request["body"]);
    let status = response["code"].as_u64().and_then(|code| u16::try_from(code).ok());
    Interaction {
        id: yaml["id"].as_u64().expect("a number"),
        method: text(&request["method"]),
        url: text(&request["url"]),
        if_match: headers(&request["headers"])
            .into_iter()
            .find(|(name, _)| name.eq_ignore_ascii_case("If-Match"))
            .map(|(_, value)| value),
        sent: if sent.is_empty() { Value::Null } else { serde_json::from_str(&sent).expect("JSON was sent") },
        status: status.expect("a status"),
        answer_headers: headers(&response["headers"]),
        answered: text(&response["body"]),
    }
}

fn headers(yaml: &Yaml) -> Vec<(String, String)> {
    let all = yaml.as_mapping().expect("headers are a mapping").iter();
    let values = all.flat_map(|(name, values)| {
        values.as_sequence().expect("a header has a list of values").iter().map(move |value| (name, value))
    });
    let text = |value: &Yaml| value.as_str().expect("a header is text").to_owned();
    values.map(|(name, value)| (text(name), text(value))).collect()
}
