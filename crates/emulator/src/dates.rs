//! Moments of the calendar, as Azure prints them.

use std::time::{SystemTime, UNIX_EPOCH};

/// Whole seconds since 1970; zero for a clock that is before that.
pub(crate) fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// `2026-11-15 23:06:00Z`: the directory's way.
pub(crate) fn sortable(unix: u64) -> String {
    let Civil { year, month, day, hour, minute, second } = civil(unix);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}Z")
}

/// `11/15/2026 11:06:00 PM`: the resource manager's way.
pub(crate) fn american(unix: u64) -> String {
    let Civil { year, month, day, hour, minute, second } = civil(unix);
    let half = if hour < 12 { "AM" } else { "PM" };
    let hour = if hour.is_multiple_of(12) { 12 } else { hour % 12 };
    format!("{month}/{day}/{year} {hour}:{minute:02}:{second:02} {half}")
}

struct Civil {
    year: u64,
    month: u64,
    day: u64,
    hour: u64,
    minute: u64,
    second: u64,
}

/// The Gregorian calendar counted in years that begin with March, so that the leap day comes last.
fn civil(unix: u64) -> Civil {
    let (days, seconds) = (unix / 86_400, unix % 86_400);
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    Civil {
        year: era * 400 + year_of_era + u64::from(month <= 2),
        month,
        day: day_of_year - (153 * march_month + 2) / 5 + 1,
        hour: seconds / 3_600,
        minute: seconds / 60 % 60,
        second: seconds % 60,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leap_days_and_turns_of_the_year_are_where_they_belong() {
        for (unix, expected) in [
            (0, "1970-01-01 00:00:00Z"),
            (951_782_399, "2000-02-28 23:59:59Z"),
            (951_782_400, "2000-02-29 00:00:00Z"),
            (1_709_251_199, "2024-02-29 23:59:59Z"),
            (1_735_689_599, "2024-12-31 23:59:59Z"),
            (4_107_542_400, "2100-03-01 00:00:00Z"),
        ] {
            assert_eq!(sortable(unix), expected);
        }
    }

    #[test]
    fn midnight_and_noon_are_both_twelve() {
        assert_eq!(american(0), "1/1/1970 12:00:00 AM");
        assert_eq!(american(43_200), "1/1/1970 12:00:00 PM");
        assert_eq!(american(47_105), "1/1/1970 1:05:05 PM");
    }
}
