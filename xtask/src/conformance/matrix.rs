//! Lays the results of all clients side by side: one row per check, one column per client.
//!
//! A check is the name of a test. A client that cannot do something says so with a reason, and the
//! hole is printed with it. What one client checks and another does not even name is a mistake in
//! the suite.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Fewer checks than this, and the run has not been one.
const PASSED_MIN: usize = 70;

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

/// What is checked: the subject (a file of stories) and the claim.
pub(super) type Check = (String, String);

/// One client's results, by check.
pub(super) struct Column {
    pub(super) client: &'static str,
    pub(super) results: BTreeMap<Check, Outcome>,
}

impl Column {
    pub(super) fn passed(&self) -> usize {
        self.results.values().filter(|outcome| **outcome == Outcome::Passed).count()
    }
}

/// Reads what a suite wrote: per line outcome, subject, name of a test, and perhaps a reason.
pub(super) fn read_results(text: &str) -> BTreeMap<Check, Outcome> {
    let mut results: BTreeMap<Check, Outcome> = BTreeMap::new();
    for line in text.lines() {
        let mut parts = line.split('\t');
        let mut part = || parts.next().unwrap_or_default();
        let (word, subject, name, reason) = (part(), part(), part(), part());
        let outcome = match word {
            "passed" => Outcome::Passed,
            "skipped" if !reason.is_empty() => Outcome::Hole(reason.to_string()),
            _ => Outcome::Failed,
        };
        // One test can have several lines: it may pass and then fail to clean up.
        let known = results.entry((subject.to_string(), claim(name))).or_insert(Outcome::Passed);
        *known = outcome.max(known.clone());
    }
    results
}

/// `test_a_public_ip_lives_and_dies[ipv4]` and `a public IP lives and dies [IPv4]` are the same claim.
fn claim(name: &str) -> String {
    let words = name.strip_prefix("test_").unwrap_or(name).to_lowercase();
    let words: Vec<&str> = words.split(|letter: char| !letter.is_alphanumeric()).collect();
    words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The table, and what is wrong with it.
pub(super) fn judge(columns: &[Column]) -> (String, Vec<String>) {
    let checks: BTreeSet<&Check> = columns.iter().flat_map(|column| column.results.keys()).collect();
    let width = checks.iter().map(|(_, claim)| claim.chars().count() + 2).max().unwrap_or_default();
    let mut table = format!("{:<width$}", "");
    for column in columns {
        let _ = write!(table, "  {}", column.client);
    }
    let mut holes = String::new();
    let mut problems = Vec::new();
    let mut subject = "";
    for check in checks {
        let claim = &check.1;
        if check.0 != subject {
            subject = &check.0;
            let _ = write!(table, "\n{subject}");
        }
        let _ = write!(table, "\n  {claim:<rest$}", rest = width - 2);
        for column in columns {
            let outcome = column.results.get(check);
            let mark = outcome.map_or("?", Outcome::mark);
            let _ = write!(table, "  {mark:<wide$}", wide = column.client.len());
            match outcome {
                Some(Outcome::Passed) => {}
                Some(Outcome::Hole(reason)) => {
                    let _ = write!(holes, "\n– {}: {claim}: {reason}", column.client);
                }
                Some(Outcome::Failed) => problems.push(format!("{}: {claim}: failed", column.client)),
                None => {
                    problems.push(format!("{}: {claim}: neither checked nor said why not", column.client))
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
        let many: String = (0..number).map(|at| format!("passed\tgateway\ttest_claim_{at}\n")).collect();
        Column { client, results: read_results(&(many + more)) }
    }

    #[test]
    fn the_same_claim_in_two_languages_is_one_check() {
        let one = "passed\tresources\ttest_a_public_ip_lives_and_dies[ipv4]\t\n";
        let other = "passed\tresources\ta public IP lives and dies [IPv4]\t\n";
        assert_eq!(read_results(one), read_results(other));
    }

    #[test]
    fn of_several_lines_for_one_test_the_worst_counts() {
        let text = "passed\ts\tit holds\nfailed\ts\tit holds\nskipped\ts\tit holds\tcannot\n";
        assert_eq!(read_results(text)[&("s".to_string(), "it holds".to_string())], Outcome::Failed);
    }

    #[test]
    fn a_hole_is_printed_with_its_reason_and_one_without_is_a_failure() {
        let columns = [
            column("a", 70, "skipped\ts\thole\tthe client drops it\n"),
            column("b", 70, "skipped\ts\thole\t\n"),
        ];
        let (table, problems) = judge(&columns);
        assert!(table.contains("– a: hole: the client drops it"), "{table}");
        assert_eq!(problems, ["b: hole: failed"]);
    }

    #[test]
    fn a_check_that_one_client_does_not_name_is_a_problem() {
        let (table, problems) = judge(&[column("a", 70, "passed\ts\textra\n"), column("b", 70, "")]);
        assert_eq!(problems, ["b: extra: neither checked nor said why not"]);
        assert!(table.contains("\ns\n  extra"), "{table}");
    }

    #[test]
    fn an_empty_run_is_no_pass() {
        let (_, problems) = judge(&[column("a", 0, "")]);
        assert_eq!(problems, ["a: only 0 checks passed; at least 70 are expected"]);
        assert_eq!(judge(&[column("a", PASSED_MIN, "")]).1, Vec::<String>::new());
    }
}
