//! Whether our clock and that of somebody we talk to agree.

use std::time::{Duration, SystemTime};

use super::finding::{Finding, Group};

/// From here on logs of both sides are hard to read together.
const NOTICEABLE: Duration = Duration::from_secs(10);
/// From here on tokens are refused: they are not valid yet, or not any more.
const HARMFUL: Duration = Duration::from_secs(5 * 60);

/// What an answer's `Date` says, against our clock at the moment of the question.
pub(super) fn diagnose(group: Group, whose: &str, date: Option<&str>, now: SystemTime) -> Vec<Finding> {
    let Some(theirs) = date.and_then(|date| httpdate::parse_http_date(date).ok()) else {
        return vec![Finding::skipped(
            group,
            format!("local clock: not checked ({whose} sent no valid Date header)"),
        )];
    };
    let (by, which) = match now.duration_since(theirs) {
        Ok(ahead) => (ahead, "ahead of"),
        Err(error) => (error.duration(), "behind"),
    };
    let remedy = "run `timedatectl set-ntp true` on this machine";
    let text = format!("local clock: {} s {which} {whose}", by.as_secs());
    match by {
        by if by >= HARMFUL => {
            vec![Finding::problem(group, format!("{text} (access tokens will be rejected)"), remedy)]
        }
        by if by >= NOTICEABLE => {
            vec![Finding::warning(group, format!("{text} (log timestamps do not match)"), remedy)]
        }
        _ => vec![Finding::good(group, format!("local clock: in sync with {whose}"))],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::told;

    fn at(seconds_ahead: i64) -> String {
        let theirs = httpdate::parse_http_date("Mon, 16 Nov 2026 03:00:00 GMT").unwrap();
        let span = Duration::from_secs(seconds_ahead.unsigned_abs());
        let ours = if seconds_ahead < 0 { theirs - span } else { theirs + span };
        told(&diagnose(Group::Azure, "Azure", Some("Mon, 16 Nov 2026 03:00:00 GMT"), ours))
    }

    #[test]
    fn a_clock_may_be_off_by_seconds_and_not_by_minutes() {
        assert_eq!(at(3), "✓ local clock: in sync with Azure");
        assert_eq!(at(-9), "✓ local clock: in sync with Azure");
        let remedy = "\n    → run `timedatectl set-ntp true` on this machine";
        assert_eq!(
            at(30),
            format!("! local clock: 30 s ahead of Azure (log timestamps do not match){remedy}")
        );
        assert_eq!(
            at(-400),
            format!("✗ local clock: 400 s behind Azure (access tokens will be rejected){remedy}")
        );
    }

    #[test]
    fn no_date_is_no_judgement() {
        for date in [None, Some("yesterday")] {
            let said = told(&diagnose(Group::Azure, "Azure", date, SystemTime::now()));
            assert_eq!(said, "– local clock: not checked (Azure sent no valid Date header)");
        }
    }
}
