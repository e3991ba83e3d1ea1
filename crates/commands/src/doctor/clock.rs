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
        return vec![Finding::skipped(group, format!("the clock: {whose} does not say what time it has"))];
    };
    let (by, which) = match now.duration_since(theirs) {
        Ok(ahead) => (ahead, "ahead of"),
        Err(error) => (error.duration(), "behind"),
    };
    let remedy = "let the machine keep its time by NTP (timedatectl set-ntp true)";
    let text = format!("our clock is {} s {which} that of {whose}", by.as_secs());
    match by {
        by if by >= HARMFUL => {
            vec![Finding::problem(group, format!("{text}; tokens will be refused"), remedy)]
        }
        by if by >= NOTICEABLE => vec![Finding::warning(group, text, remedy)],
        _ => vec![Finding::good(group, format!("our clock agrees with that of {whose}"))],
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
        assert_eq!(at(3), "✓ our clock agrees with that of Azure");
        assert_eq!(at(-9), "✓ our clock agrees with that of Azure");
        let remedy = "\n    → let the machine keep its time by NTP (timedatectl set-ntp true)";
        assert_eq!(at(30), format!("! our clock is 30 s ahead of that of Azure{remedy}"));
        assert_eq!(
            at(-400),
            format!("✗ our clock is 400 s behind that of Azure; tokens will be refused{remedy}")
        );
    }

    #[test]
    fn no_date_is_no_judgement() {
        for date in [None, Some("yesterday")] {
            let said = told(&diagnose(Group::Azure, "Azure", date, SystemTime::now()));
            assert_eq!(said, "– the clock: Azure does not say what time it has");
        }
    }
}
