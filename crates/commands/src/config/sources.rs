//! Gathers what is said about each key: in Azure's variables, the file, our variables, the flags.
//!
//! Later places win. A value that is empty or `null` counts as not said: `azure.json` is full of them. An empty
//! value of a key that protects something is a problem.

use std::collections::BTreeMap;

use super::arguments::Assignment;
use super::document::{Content, Node};
use super::old;
use super::origin::Origin;
use super::problems::{Problem, nearest};
use super::table::{Row, Said, twin_of};
use super::values::Given;

/// The section of the file that is ours.
const OURS: &str = "sluice";

/// The variables of a process. It has no `Debug`: there are secrets in it.
#[derive(Clone, Default)]
pub struct Environment(BTreeMap<String, String>);

impl Environment {
    /// Those of this process. What is no text is nothing that we could read.
    pub fn of_this_process() -> Environment {
        let pairs = std::env::vars_os();
        Environment(
            pairs
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
                .collect(),
        )
    }

    /// One of them, unless it is empty.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.trim().is_empty())
    }
}

impl<K: Into<String>, V: Into<String>> FromIterator<(K, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Environment {
        Environment(pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

/// What was said, and what is wrong with the way it was said.
pub(crate) struct Sources<'a> {
    rows: &'a [Row],
    file: &'a str,
    said: BTreeMap<&'static str, Said>,
    pub(crate) problems: Vec<Problem>,
    pub(crate) warnings: Vec<String>,
    /// Keys of the file that are not ours, with their lines.
    strangers: Vec<(String, usize)>,
}

impl<'a> Sources<'a> {
    pub(crate) fn new(rows: &'a [Row], file: &'a str) -> Sources<'a> {
        Sources {
            rows,
            file,
            said: BTreeMap::new(),
            problems: Vec::new(),
            warnings: Vec::new(),
            strangers: Vec::new(),
        }
    }

    /// What was said, the problems with it, and the warnings.
    pub(crate) fn finish(mut self) -> (BTreeMap<&'static str, Said>, Vec<Problem>, Vec<String>) {
        self.name_strangers_that_were_meant();
        (self.said, self.problems, self.warnings)
    }

    fn say(&mut self, path: &'static str, given: Given, origin: Origin) {
        let is_filled = self.rows.iter().any(|row| row.path == path && row.traits.is_filled);
        if is_filled || !given.is_empty() {
            self.said.insert(path, Said { given, origin });
        }
    }

    /// The variables that Azure's libraries look at.
    pub(crate) fn ambient(&mut self, environment: &Environment) {
        for row in self.rows {
            let named = row.traits.ambient.and_then(|name| Some((name, environment.variable(name)?)));
            if let Some((name, value)) = named {
                self.say(
                    row.path,
                    Given::Text(value.to_owned()),
                    Origin::Ambient { variable: name.to_owned() },
                );
            }
        }
    }

    /// The file: Azure's keys in any case, as Azure's own readers take them, and ours exactly.
    pub(crate) fn document(&mut self, entries: Vec<(String, usize, Node)>) {
        for (key, line, node) in entries {
            let row = self.rows.iter().find(|row| row.path.eq_ignore_ascii_case(&key));
            if key == OURS {
                self.ours(OURS, line, node);
            } else if let Some(row) = row {
                self.azures(row, &key, line, node);
            } else {
                self.strangers.push((key, line));
            }
        }
    }

    fn azures(&mut self, row: &Row, key: &str, line: usize, node: Node) {
        let place = format!("{}:{line}", self.file);
        if let Some(Said { origin: Origin::File { line: first }, .. }) = self.said.get(row.path) {
            let what = format!("is also set in line {first}, with different capitalization; keep one");
            self.problems.push(Problem::new(key, what).at(place));
            return;
        }
        let given = given(node);
        // AKS writes it for clusters that have a managed identity instead of an application.
        let is_placeholder = matches!(row.path, "aadClientId" | "aadClientSecret")
            && matches!(&given, Some(Given::Text(text)) if text.trim().eq_ignore_ascii_case("msi"));
        if let Some(given) = given.filter(|_| !is_placeholder) {
            self.say(row.path, given, Origin::File { line });
        }
    }

    /// Everything below `sluice:`. Each key must be known, because a setting that has silently no
    /// effect is worse than none.
    fn ours(&mut self, path: &str, line: usize, node: Node) {
        let place = format!("{}:{line}", self.file);
        if let Some(row) = self.rows.iter().find(|row| row.path == path) {
            if let Some(given) = given(node) {
                self.say(row.path, given, Origin::File { line });
            }
            return;
        }
        if let Some(problem) = old::problem(path, &place) {
            self.problems.push(problem);
            return;
        }
        let inside: Vec<&str> = children(self.rows, path);
        if inside.is_empty() && !old::has_below(path) {
            let what = self.unknown(path);
            self.problems.push(Problem::new(path, what).at(place));
            return;
        }
        match node.content {
            Content::Nothing => {}
            Content::Map(entries) => {
                for (key, line, node) in entries {
                    self.ours(&format!("{path}.{key}"), line, node);
                }
            }
            Content::Text(_) | Content::List(_) => {
                let what = format!("is a section; its keys are {}", inside.join(", "));
                self.problems.push(Problem::new(path, what).at(place));
            }
        }
    }

    fn unknown(&self, path: &str) -> String {
        let (parent, key) = path.rsplit_once('.').unwrap_or(("", path));
        if let Some(row) = self.rows.iter().find(|row| row.path.eq_ignore_ascii_case(key)) {
            return format!(
                "unknown key; {} belongs at the top level of the file, outside sluice:",
                row.path
            );
        }
        let siblings = children(self.rows, parent);
        if let Some(near) = nearest(key, siblings.iter().copied()) {
            return format!("unknown key; did you mean {parent}.{near}?");
        }
        // The right key in the wrong section, or with its path written differently.
        match nearest(path, self.rows.iter().map(|row| row.path)) {
            Some(near) => format!("unknown key; did you mean {near}?"),
            None => format!("unknown key; the keys of {parent} are {}", siblings.join(", ")),
        }
    }

    /// The twins of our keys.
    pub(crate) fn environment(&mut self, environment: &Environment) {
        let twins: Vec<(String, &'static str)> =
            self.rows.iter().filter_map(|row| Some((row.twin()?, row.path))).collect();
        for (twin, path) in &twins {
            if let Some(value) = environment.0.get(twin) {
                self.say(path, Given::Text(value.clone()), Origin::Environment { variable: twin.clone() });
            }
        }
        for (path, _) in old::OLD {
            let twin = twin_of(path).filter(|twin| environment.variable(twin).is_some());
            let place = twin.map(|twin| format!("environment variable {twin}"));
            self.problems.extend(place.and_then(|place| old::problem(path, &place)));
        }
        // Kubernetes itself sets variables for a Service called sluice, so an unknown one is no error.
        let known = || twins.iter().map(|(twin, _)| twin.as_str());
        for name in environment.0.keys().filter(|name| name.starts_with("SLUICE_")) {
            let meant = known().find(|twin| strsim::damerau_levenshtein(name, twin) <= 2);
            if let Some(meant) = meant.filter(|_| !known().any(|twin| twin == name)) {
                self.warnings.push(format!(
                    "the environment variable {name} is unknown and ignored; did you mean {meant}?"
                ));
            }
        }
    }

    /// `--set`.
    pub(crate) fn flags(&mut self, assignments: &[Assignment]) {
        for assignment in assignments {
            let (key, value) = assignment.parts();
            let row = self.rows.iter().find(|row| match row.path.contains('.') {
                true => row.path == key,
                false => row.path.eq_ignore_ascii_case(key),
            });
            let problem = match (row, value) {
                (None, _) if key.is_empty() => {
                    self.problems.push(Problem::new("--set", "has no key; use --set KEY=VALUE"));
                    continue;
                }
                (None, _) if let Some(problem) = old::problem(key, "--set") => {
                    self.problems.push(problem);
                    continue;
                }
                (None, _) => {
                    let near = nearest(key, self.rows.iter().map(|row| row.path));
                    let hint = near.map_or(String::new(), |near| format!("; did you mean {near}?"));
                    format!("unknown key{hint}")
                }
                (Some(row), _) if row.is_secret => {
                    let other = row.traits.ambient.unwrap_or("the environment");
                    format!(
                        "is a secret, and all users of this machine can see command lines; use the file or {other}"
                    )
                }
                (Some(_), None) => "has no value; use --set KEY=VALUE".to_owned(),
                (Some(row), Some(value)) => {
                    self.say(row.path, Given::Text(value.to_owned()), Origin::Flag);
                    continue;
                }
            };
            self.problems.push(Problem::new(key, problem).at("--set"));
        }
    }

    /// Unknown keys of `azure.json` are nobody's business, unless they look like a slip.
    fn name_strangers_that_were_meant(&mut self) {
        let sections = children(self.rows, OURS);
        for (key, line) in &self.strangers {
            let place = format!("{}:{line}", self.file);
            if sections.contains(&key.as_str()) {
                self.warnings
                    .push(format!("{key} ({place}) is ignored at the top level; move it below {OURS}:"));
                continue;
            }
            if key.eq_ignore_ascii_case(OURS) {
                self.problems.push(Problem::new(key, format!("must be lower case: {OURS}")).at(place));
                continue;
            }
            let unsaid = |row: &&Row| !row.path.contains('.') && !self.said.contains_key(row.path);
            let near = |row: &&Row| {
                strsim::damerau_levenshtein(&row.path.to_ascii_lowercase(), &key.to_ascii_lowercase()) <= 2
            };
            if let Some(row) = self.rows.iter().filter(unsaid).find(near) {
                self.warnings
                    .push(format!("{key} ({place}) is unknown and ignored; did you mean {}?", row.path));
            }
        }
    }
}

/// What a node says; nothing if it is `null`.
fn given(node: Node) -> Option<Given> {
    match node.content {
        Content::Nothing => None,
        Content::Text(text) => Some(Given::Text(text)),
        Content::List(items) => {
            let words = items.into_iter().map(|item| match item.content {
                Content::Text(text) => Some(text),
                _ => None,
            });
            Some(words.collect::<Option<Vec<String>>>().map_or(Given::Section, Given::List))
        }
        Content::Map(_) => Some(Given::Section),
    }
}

/// The names directly below a path.
fn children<'r>(rows: &'r [Row], path: &str) -> Vec<&'r str> {
    let mut names: Vec<&str> = rows
        .iter()
        .filter_map(|row| row.path.strip_prefix(path)?.strip_prefix('.')?.split('.').next())
        .collect();
    names.dedup();
    names
}
