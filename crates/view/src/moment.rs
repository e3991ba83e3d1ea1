//! Moments: wall time for people, and the distance for programs without a clock.

use serde::{Deserialize, Serialize};

/// Something was so at this moment, or has been so since.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Since {
    /// RFC 3339, in UTC.
    pub at: String,
    /// How long ago that was when this was written.
    pub age_seconds: u64,
}

/// Something is to happen.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Due {
    /// RFC 3339, in UTC.
    pub at: String,
    /// How far off that was when this was written; zero: any moment now.
    pub in_seconds: u64,
}

/// A span for people: the two largest units of it, `3 d 4 h`, `12 min 5 s`, `0 s`.
pub fn span(seconds: u64) -> String {
    const UNITS: [(u64, &str); 4] = [(86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")];
    let first = UNITS.iter().position(|(size, _)| seconds >= *size).unwrap_or(UNITS.len() - 1);
    let mut rest = seconds;
    let mut words = Vec::new();
    for (size, word) in UNITS.iter().skip(first).take(2) {
        let many = rest / size;
        rest %= size;
        if many > 0 || words.is_empty() {
            words.push(format!("{many} {word}"));
        }
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_has_its_two_largest_units_and_no_empty_second_one() {
        for (seconds, words) in [
            (0, "0 s"),
            (59, "59 s"),
            (60, "1 min"),
            (61, "1 min 1 s"),
            (3_600, "1 h"),
            (3_659, "1 h"),
            (3_660, "1 h 1 min"),
            (86_400 * 3 + 4 * 3_600 + 59, "3 d 4 h"),
            (86_400, "1 d"),
        ] {
            assert_eq!(span(seconds), words, "{seconds}");
        }
    }
}
