//! Lays the results of all clients side by side: one row per check, one column per client.
//!
//! A check is the name of a test; what stands in brackets behind it is a variant, and the worst
//! variant counts. A client that cannot do something says so with a reason, and the hole is printed with it.
//! What one client checks and another does not even name is a mistake in the suite.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Fewer checks than this, and the run has not been one.
const PASSED_MIN: usize = 40;

/// What one client made of one check.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Outcome {
    Passed,
    /// The client cannot do it, for this reason.
    Hole(String),
    Failed,
}

impl Outcome {
    pub(super) fn has_failed(&self) -> bool {
        *self == Outcome::Failed
    }

    const fn mark(&self) -> &'static str {
        match self {
            Outcome::Passed => "✓",
            Outcome::Hole(_) => "–",
            Outcome::Failed => "✗",
        }
    }
}

/// One client's results, by check.
pub(super) struct Column {
    pub(super) client: &'static str,
    pub(super) results: BTreeMap<String, Outcome>,
}

impl Column {
    pub(super) fn passed(&self) -> usize {
        self.results.values().filter(|outcome| **outcome == Outcome::Passed).count()
    }
}

/// Reads what a suite wrote: per line an outcome, the name of a test, and perhaps a reason.
pub(super) fn read_results(text: &str) -> BTreeMap<String, Outcome> {
    let mut results: BTreeMap<String, Outcome> = BTreeMap::new();
    for line in text.lines() {
        let mut parts = line.split('\t');
        let (word, name, reason) = (parts.next(), parts.next(), parts.next());
        let outcome = match (word, reason) {
            (Some("passed"), _) => Outcome::Passed,
            (Some("skipped"), Some(reason)) if !reason.is_empty() => Outcome::Hole(reason.to_string()),
            _ => Outcome::Failed,
        };
        let known = results.entry(check(name.unwrap_or(line))).or_insert(Outcome::Passed);
        *known = outcome.max(known.clone());
    }
    results
}

/// `test_a_public_ip_lives_and_dies[ipv4]` and `a public IP lives and dies [IPv6]` are the same check.
fn check(name: &str) -> String {
    let name = name.split('[').next().unwrap_or_default();
    let words = name.strip_prefix("test_").unwrap_or(name).to_lowercase();
    let words: Vec<&str> = words.split(|letter: char| !letter.is_alphanumeric()).collect();
    words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The table, and what is wrong with it.
pub(super) fn judge(columns: &[Column]) -> (String, Vec<String>) {
    let checks: BTreeSet<&String> = columns.iter().flat_map(|column| column.results.keys()).collect();
    let width = checks.iter().map(|check| check.chars().count()).max().unwrap_or_default();
    let mut table = format!("{:<width$}", "check");
    for column in columns {
        let _ = write!(table, "  {}", column.client);
    }
    let mut holes = String::new();
    let mut problems = Vec::new();
    for check in checks {
        let _ = write!(table, "\n{check:<width$}");
        for column in columns {
            let outcome = column.results.get(check);
            let mark = outcome.map_or("?", Outcome::mark);
            let _ = write!(table, "  {mark:<wide$}", wide = column.client.len());
            match outcome {
                Some(Outcome::Passed) => {}
                Some(Outcome::Hole(reason)) => {
                    let _ = write!(holes, "\n– {}: {check}: {reason}", column.client);
                }
                Some(Outcome::Failed) => problems.push(format!("{}: {check}: failed", column.client)),
                None => {
                    problems.push(format!("{}: {check}: neither checked nor said why not", column.client))
                }
            }
        }
        table.truncate(table.trim_end().len());
    }
    for column in columns {
        let passed = column.passed();
        if passed < PASSED_MIN {
            problems.push(format!(
                "{}: only {passed} checks passed; at least {PASSED_MIN} are expected",
                column.client
            ));
        }
    }
    (table + &holes, problems)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(client: &'static str, number: usize, more: &str) -> Column {
        let many: String = (0..number).map(|at| format!("passed\ttest_claim_{at}\n")).collect();
        Column { client, results: read_results(&(many + more)) }
    }

    #[test]
    fn the_same_claim_in_two_languages_is_one_check() {
        let one = "passed\ttest_a_public_ip_lives_and_dies[ipv4]\t\n";
        let other = "passed\ta public IP lives and dies [IPv6]\t\n";
        assert_eq!(read_results(one), read_results(other));
    }

    #[test]
    fn the_worst_variant_counts() {
        let results =
            read_results("failed\tit holds[a]\npassed\tit holds[b]\nskipped\tit holds[c]\tcannot\n");
        assert_eq!(results["it holds"], Outcome::Failed);
    }

    #[test]
    fn a_hole_is_printed_with_its_reason_and_one_without_is_a_failure() {
        let columns =
            [column("a", 50, "skipped\thole\tthe client drops it\n"), column("b", 50, "skipped\thole\t\n")];
        let (table, problems) = judge(&columns);
        assert!(table.contains("– a: hole: the client drops it"), "{table}");
        assert_eq!(problems, ["b: hole: failed"]);
    }

    #[test]
    fn a_check_that_one_client_does_not_name_is_a_problem() {
        let (_, problems) = judge(&[column("a", 50, "passed\textra\n"), column("b", 50, "")]);
        assert_eq!(problems, ["b: extra: neither checked nor said why not"]);
    }

    #[test]
    fn an_empty_run_is_no_pass() {
        let (_, problems) = judge(&[column("a", 0, "")]);
        assert_eq!(problems, ["a: only 0 checks passed; at least 40 are expected"]);
        assert_eq!(judge(&[column("a", PASSED_MIN, "")]).1, Vec::<String>::new());
    }
}
