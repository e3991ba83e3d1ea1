//! All findings, for people and for scripts.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::finding::{Finding, Mark};

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
            parts.push(format!("{} not checked", several(skipped, "thing", "things")));
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
pub fn text(findings: &[Finding], colours: bool) -> String {
    let mut text = String::new();
    for (at, finding) in findings.iter().enumerate() {
        let is_new = at == 0 || findings[at - 1].group != finding.group;
        if is_new {
            let title = finding.group.title();
            let _ = match colours {
                true => writeln!(text, "\u{1b}[1m{title}\u{1b}[0m"),
                false => writeln!(text, "{title}"),
            };
        }
        let mut lines = finding.text.lines();
        let _ = writeln!(text, "  {} {}", mark(finding.mark, colours), lines.next().unwrap_or_default());
        for line in lines {
            let _ = writeln!(text, "    {line}");
        }
        for (at, line) in finding.remedy.iter().flat_map(|remedy| remedy.lines()).enumerate() {
            let _ = writeln!(text, "    {} {line}", if at == 0 { "→" } else { " " });
        }
    }
    text
}

fn mark(mark: Mark, colours: bool) -> String {
    let letter = mark.letter();
    if !colours {
        return letter.to_owned();
    }
    let colour = match mark {
        Mark::Good => 32,
        Mark::Warning => 33,
        Mark::Problem => 31,
        Mark::Skipped => 2,
    };
    format!("\u{1b}[{colour}m{letter}\u{1b}[0m")
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
        .assert_eq(&text(&some().findings, false));
    }

    #[test]
    fn colours_are_only_there_when_asked_for() {
        assert!(!text(&some().findings, false).contains('\u{1b}'));
        assert!(text(&some().findings, true).contains("\u{1b}[31m✗\u{1b}[0m may not"));
    }

    #[test]
    fn the_end_counts_what_was_found() {
        assert_eq!(some().verdict(), "1 problem, 1 warning, 1 thing not checked.");
        assert_eq!(Report::default().verdict(), "No problems.");
        let json = some().json();
        assert_eq!((&json["problems"], &json["warnings"]), (&1.into(), &1.into()));
        assert_eq!(json["findings"][1]["mark"], "problem");
        assert_eq!(json["findings"][1]["remedy"], "bind the role\nthen try again");
    }
}
