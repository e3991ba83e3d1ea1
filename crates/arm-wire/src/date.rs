//! Dates as HTTP writes them: the usual form and the two obsolete ones.
//!
//! ```text
//! Sun, 06 Nov 1994 08:49:37 GMT
//! Sunday, 06-Nov-94 08:49:37 GMT
//! Sun Nov  6 08:49:37 1994
//! ```
//!
//! The name of the day is not compared with the date; a server that gets it wrong means the date.

use alloc::vec::Vec;
use core::time::Duration;

/// The moment, since 1970. `now` tells the century of a year that is written with two digits.
pub(crate) fn parse(text: &str, now: Duration) -> Option<Duration> {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let (day, month, year, time) = match words.as_slice() {
        [day_name, day, month, year, time, zone] if is_day(day_name) && is_utc(zone) => {
            (number(day, 2)?, month_number(month)?, number(year, 4)?, *time)
        }
        [day_name, date, time, zone] if is_day(day_name) && is_utc(zone) => {
            let mut parts = date.split('-');
            let (day, month, year) = (parts.next()?, parts.next()?, parts.next()?);
            if parts.next().is_some() {
                return None;
            }
            (number(day, 2)?, month_number(month)?, full_year(number(year, 2)?, now), *time)
        }
        [day_name, month, day, time, year] if is_day(day_name) => {
            (number(day, 2)?, month_number(month)?, number(year, 4)?, *time)
        }
        _ => return None,
    };
    let mut parts = time.split(':');
    let (hour, minute, second) =
        (number(parts.next()?, 2)?, number(parts.next()?, 2)?, number(parts.next()?, 2)?);
    if parts.next().is_some() || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let days = days_since_1970(year, month, day)?;
    Some(Duration::from_secs(days * 86_400 + hour * 3_600 + minute * 60 + second))
}

fn is_day(word: &str) -> bool {
    let name = word.trim_end_matches(',');
    ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
        .iter()
        .any(|day| name.get(..3).is_some_and(|head| head.eq_ignore_ascii_case(day)))
}

fn is_utc(word: &str) -> bool {
    ["GMT", "UTC"].iter().any(|zone| zone.eq_ignore_ascii_case(word))
}

fn month_number(word: &str) -> Option<u64> {
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let at = months.iter().position(|month| month.eq_ignore_ascii_case(word))?;
    Some(at as u64 + 1)
}

fn number(word: &str, digits_max: usize) -> Option<u64> {
    let plain = !word.is_empty() && word.len() <= digits_max && word.bytes().all(|b| b.is_ascii_digit());
    if plain { word.parse().ok() } else { None }
}

/// A year of two digits is never more than 50 years ahead.
fn full_year(two_digits: u64, now: Duration) -> u64 {
    let this_year = 1970 + now.as_secs() / 31_556_952;
    let year = this_year - this_year % 100 + two_digits;
    if year > this_year + 50 { year - 100 } else { year }
}

fn days_since_1970(year: u64, month: u64, day: u64) -> Option<u64> {
    let is_leap =
        |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let length = match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    if year < 1970 || day == 0 || day > length {
        return None;
    }
    // How many leap days there were before the first of January of a year.
    let leap_days = |year: u64| (year - 1) / 4 - (year - 1) / 100 + (year - 1) / 400;
    let before_month: u64 = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        .iter()
        .take(usize::try_from(month).ok()?.checked_sub(1)?)
        .sum();
    let leap_day = u64::from(month > 2 && is_leap(year));
    Some((year - 1970) * 365 + leap_days(year) - leap_days(1970) + before_month + leap_day + day - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(1_790_000_000);

    #[test]
    fn one_moment_in_three_spellings() {
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "sun, 6 nov 1994 08:49:37 utc",
        ] {
            assert_eq!(parse(text, NOW), Some(Duration::from_secs(784_111_777)), "{text}");
        }
    }

    #[test]
    fn leap_years_and_ends_of_months_are_counted() {
        for (text, seconds) in [
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
            ("Tue, 29 Feb 2000 23:59:59 GMT", 951_868_799),
            ("Wed, 01 Mar 2000 00:00:00 GMT", 951_868_800),
            ("Thu, 31 Dec 2099 23:59:59 GMT", 4_102_444_799),
            ("Mon, 01 Mar 2100 00:00:00 GMT", 4_107_542_400),
        ] {
            assert_eq!(parse(text, NOW), Some(Duration::from_secs(seconds)), "{text}");
        }
    }

    #[test]
    fn a_year_of_two_digits_is_the_nearest_one() {
        let year_2076 = parse("Wednesday, 01-Jan-76 00:00:00 GMT", NOW);
        assert_eq!(year_2076, parse("Wed, 01 Jan 2076 00:00:00 GMT", NOW));
        let year_1977 = parse("Saturday, 01-Jan-77 00:00:00 GMT", NOW);
        assert_eq!(year_1977, parse("Sat, 01 Jan 1977 00:00:00 GMT", NOW));
    }

    #[test]
    fn what_is_no_date_is_none() {
        for text in [
            "",
            "17",
            "Sun, 06 Nov 1994 08:49:37",
            "Sun, 06 Nov 1994 08:49:37 CET",
            "Sun, 31 Feb 1994 08:49:37 GMT",
            "Sun, 00 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 24:00:00 GMT",
            "Sun, 06 Nov 1994 08:49 GMT",
            "Sun, 06 Nov 1994 08:49:37:11 GMT",
            "Sun, 06 Nov 1800 08:49:37 GMT",
            "Sun, 06 Foo 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94-1 08:49:37 GMT",
            "Sun, +6 Nov 1994 08:49:37 GMT",
            "é, 06 Nov 1994 08:49:37 GMT",
        ] {
            assert_eq!(parse(text, NOW), None, "{text}");
        }
    }
}
