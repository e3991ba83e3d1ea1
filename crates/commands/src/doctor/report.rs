//! All findings, for people and for scripts.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::finding::{Finding, Mark};
use crate::paint::Paint;

/// What was found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// In the order of their groups.
    pub findings: Vec<Finding>,
}

impl Report {
    fn count(&self, mark: Mark) -> usize {
        self.findings.iter().filter(|finding| finding.mark == mark).count()
    }

    /// How many things stand in the way.
    pub fn problems(&self) -> usize {
        self.count(Mark::Problem)
    }

    /// The last line.
    pub fn verdict(&self) -> String {
        let several = |count: usize, one: &str, more: &str| match count {
            1 => format!("1 {one}"),
            count => format!("{count} {more}"),
        };
        let mut parts = vec![match self.problems() {
            0 => "No problems".to_owned(),
            count => several(count, "problem", "problems"),
        }];
        let (warnings, skipped) = (self.count(Mark::Warning), self.count(Mark::Skipped));
        if warnings > 0 {
            parts.push(several(warnings, "warning", "warnings"));
        }
        if skipped > 0 {
            parts.push(format!("{} skipped", several(skipped, "check", "checks")));
        }
        format!("{}.", parts.join(", "))
    }

    /// For scripts.
    pub fn json(&self) -> Value {
        let findings: Vec<Value> = self
            .findings
            .iter()
            .map(|finding| {
                json!({
                    "group": finding.group.title(),
                    "mark": finding.mark.word(),
                    "text": finding.text,
                    "remedy": finding.remedy,
                })
            })
            .collect();
        json!({
            "findings": findings,
            "problems": self.problems(),
            "warnings": self.count(Mark::Warning),
            "skipped": self.count(Mark::Skipped),
        })
    }
}

/// The findings of one group, or of several, under their headings.
pub fn text(findings: &[Finding], paint: Paint) -> String {
    let mut text = String::new();
    for (at, finding) in findings.iter().enumerate() {
        let is_new = at == 0 || findings[at - 1].group != finding.group;
        if is_new {
            let _ = writeln!(text, "{}", paint.bold(finding.group.title()));
        }
        let mut lines = finding.text.lines();
        let _ = writeln!(text, "  {} {}", mark(finding.mark, paint), lines.next().unwrap_or_default());
        for line in lines {
            let _ = writeln!(text, "    {line}");
        }
        // What mends several things in a row is said once, below the last of them.
        if findings.get(at + 1).is_some_and(|next| next.remedy == finding.remedy) {
            continue;
        }
        for (at, line) in finding.remedy.iter().flat_map(|remedy| remedy.lines()).enumerate() {
            let _ = writeln!(text, "    {} {line}", if at == 0 { "→" } else { " " });
        }
    }
    text
}

fn mark(mark: Mark, paint: Paint) -> String {
    let letter = mark.letter();
    match mark {
        Mark::Good => paint.good(letter),
        Mark::Warning => paint.busy(letter),
        Mark::Problem => paint.bad(letter),
        Mark::Skipped => paint.faint(letter),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::doctor::finding::Group;

    fn some() -> Report {
        let findings = vec![
            Finding::good(Group::Configuration, "azure.yaml can be used"),
            Finding::problem(Group::Kubernetes, "may not list pods", "bind the role\nthen try again"),
            Finding::warning(Group::Kubernetes, "the clock is late", "set it"),
            Finding::skipped(Group::Azure, "needs a credential"),
        ];
        Report { findings }
    }

    #[test]
    fn lines_stand_below_the_heading_of_their_group_with_what_to_do() {
        expect![[r#"
            Configuration
              ✓ azure.yaml can be used
            Kubernetes
              ✗ may not list pods
                → bind the role
                  then try again
              ! the clock is late
                → set it
            Azure
              – needs a credential
        "#]]
        .assert_eq(&text(&some().findings, Paint::NONE));
    }

    #[test]
    fn one_remedy_for_several_things_is_said_once_below_them() {
        let findings =
            ["list", "watch"].map(|verb| Finding::problem(Group::Kubernetes, verb, "bind the role"));
        let expected = "Kubernetes\n  ✗ list\n  ✗ watch\n    → bind the role\n";
        assert_eq!(text(&findings, Paint::NONE), expected);
    }

    #[test]
    fn colours_are_only_there_when_asked_for() {
        assert!(!text(&some().findings, Paint::NONE).contains('\u{1b}'));
        assert!(text(&some().findings, Paint::ALWAYS).contains("\u{1b}[31m✗\u{1b}[0m may not"));
    }

    #[test]
    fn the_end_counts_what_was_found() {
        assert_eq!(some().verdict(), "1 problem, 1 warning, 1 check skipped.");
        assert_eq!(Report::default().verdict(), "No problems.");
        let json = some().json();
        assert_eq!((&json["problems"], &json["warnings"]), (&1.into(), &1.into()));
        assert_eq!(json["findings"][1]["mark"], "problem");
        assert_eq!(json["findings"][1]["remedy"], "bind the role\nthen try again");
    }
}
