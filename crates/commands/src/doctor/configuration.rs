//! The configuration: whether it can be used, and what in it will surprise.

use super::finding::{Finding, Group};
use crate::config::{ConfigError, Loaded, Origin};

const GROUP: Group = Group::Configuration;

pub(super) fn diagnose(loaded: &Result<Loaded, ConfigError>) -> Vec<Finding> {
    match loaded {
        Err(error) => error.problems().map(|problem| line(&problem)).collect(),
        Ok(loaded) => {
            let set = loaded.values.iter().filter(|value| value.origin != Origin::Default).count();
            let file = loaded
                .path
                .as_ref()
                .map_or("environment and flags".to_owned(), |it| it.display().to_string());
            let credential = loaded.config.identity.name();
            let good = format!("{file}: valid ({set} keys set; the credential is {credential})");
            let warnings = loaded.warnings.iter().map(|warning| {
                Finding::warning(
                    GROUP,
                    warning,
                    "run `sluice run --config FILE --print-config` to see the origin of each value",
                )
            });
            std::iter::once(Finding::good(GROUP, good)).chain(warnings).collect()
        }
    }
}

/// A problem says what is wrong and then, behind a semicolon, what to do.
fn line(problem: &str) -> Finding {
    match problem.split_once("; ") {
        Some((what, remedy)) => Finding::problem(GROUP, what, remedy),
        None => {
            Finding::problem(GROUP, problem, "correct the key; `sluice explain SGW0101` lists the causes")
        }
    }
}
