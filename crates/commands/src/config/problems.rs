//! What is wrong with a configuration, all of it at once.
//!
//! A person mends a file once, not once per problem. Each line names the key, what it is set to and
//! where, and what would be right. A secret's value is never repeated, and neither is that of a key that
//! we do not know: it could be one.

use std::fmt;

/// Why there is no configuration.
#[derive(Debug)]
pub struct ConfigError {
    problems: Vec<Problem>,
}

impl ConfigError {
    pub(crate) fn new(problems: Vec<Problem>) -> ConfigError {
        ConfigError { problems }
    }

    /// Every problem, as a sentence each.
    pub fn problems(&self) -> impl Iterator<Item = String> + '_ {
        self.problems.iter().map(Problem::to_string)
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.problems.as_slice() {
            [only] => write!(f, "the configuration is invalid: {only}"),
            several => {
                write!(f, "the configuration has {} problems:", several.len())?;
                several.iter().try_for_each(|problem| write!(f, "\n  - {problem}"))
            }
        }
    }
}

impl std::error::Error for ConfigError {}

/// One thing that is wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Problem {
    /// What it is about: a key, or a file.
    pub(crate) about: String,
    /// What that is set to, if it may be seen.
    pub(crate) value: Option<String>,
    /// Where it is said.
    pub(crate) place: Option<String>,
    /// What is wrong, and what would be right.
    pub(crate) what: String,
}

impl Problem {
    pub(crate) fn new(about: impl Into<String>, what: impl Into<String>) -> Problem {
        Problem { about: about.into(), value: None, place: None, what: what.into() }
    }

    pub(crate) fn at(self, place: impl Into<String>) -> Problem {
        Problem { place: Some(place.into()), ..self }
    }

    pub(crate) fn saying(self, value: &str) -> Problem {
        Problem { value: Some(shown(value)), ..self }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.about)?;
        if let Some(value) = &self.value {
            write!(f, " is {value}")?;
        }
        if let Some(place) = &self.place {
            write!(f, " ({place})")?;
        }
        write!(f, ": {}", self.what)
    }
}

/// A value in quotes, cut short; not at all if there may be a password in it.
fn shown(value: &str) -> String {
    const LONGEST: usize = 80;
    let has_password = value.contains("://") && value.contains('@');
    if has_password || value.contains("eyJ") {
        return "(not shown: may contain a secret)".to_owned();
    }
    let mut text: String = value.chars().take(LONGEST).collect();
    if text.len() < value.len() {
        text.push('…');
    }
    format!("{text:?}")
}

/// The known word that begins so, else the one with the fewest letters to change; none if all are far.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let folded = word.to_ascii_lowercase();
    let far = |name: &str| {
        let name = name.to_ascii_lowercase();
        let begins = folded.len() > 2 && name.starts_with(&folded);
        if begins { 1 } else { strsim::damerau_levenshtein(&folded, &name) }
    };
    let (distance, name) = known.into_iter().map(|name| (far(name), name)).min_by_key(|(far, _)| *far)?;
    (distance <= 1 + word.chars().count() / 3).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_leads_to_the_key_that_was_meant() {
        let known = ["concurrency", "clusterId", "egress", "drift", "defaultOutbound"];
        for (typo, meant) in [
            ("concurency", Some("concurrency")),
            ("clusterID", Some("clusterId")),
            ("default", Some("defaultOutbound")),
            ("dirft", Some("drift")),
            ("zzzzzz", None),
            ("", None),
        ] {
            assert_eq!(nearest(typo, known), meant, "{typo}");
        }
    }

    #[test]
    fn a_value_is_shown_short_and_without_passwords() {
        assert_eq!(shown("15"), "\"15\"");
        assert_eq!(shown(&"a".repeat(200)).chars().count(), 83);
        assert!(!shown("https://user:geheim@proxy").contains("geheim"));
        assert!(!shown("eyJhbGciOi.J9.geheim").contains("geheim"));
    }

    #[test]
    fn one_problem_is_a_sentence_and_several_are_a_list() {
        let one =
            Problem::new("sluice.concurrency", "must be a whole number").saying("ten").at("azure.yaml:3");
        assert_eq!(
            ConfigError::new(vec![one.clone()]).to_string(),
            "the configuration is invalid: sluice.concurrency is \"ten\" (azure.yaml:3): must be a whole number"
        );
        let two = Problem::new("location", "is missing");
        assert_eq!(
            ConfigError::new(vec![one, two]).to_string(),
            "the configuration has 2 problems:\n  - sluice.concurrency is \"ten\" (azure.yaml:3): must be a \
             whole number\n  - location: is missing"
        );
    }
}
