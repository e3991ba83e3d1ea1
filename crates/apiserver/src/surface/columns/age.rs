//! How long ago something was, in the words of kubectl.

use serde_json::{Value, json};

use crate::value::text;

/// The age of an object.
pub(super) fn age(object: &Value) -> Value {
    json!(since(text(object, &["metadata", "creationTimestamp"])))
}

/// How long ago a time was.
pub(super) fn since(time: &str) -> String {
    match time.parse::<jiff::Timestamp>() {
        Ok(time) => told(jiff::Timestamp::now().duration_since(time).as_secs()),
        Err(_) => "<unknown>".to_owned(),
    }
}

/// Two units while the larger one is small, then one.
fn told(seconds: i64) -> String {
    let two = |large: i64, unit: char, small: i64, smaller: char| match small {
        0 => format!("{large}{unit}"),
        small => format!("{large}{unit}{small}{smaller}"),
    };
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1..0 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => two(minutes, 'm', seconds % 60, 's'),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => two(hours, 'h', minutes % 60, 'm'),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => two(days, 'd', hours % 24, 'h'),
        691_200..63_072_000 => format!("{days}d"),
        63_072_000..252_288_000 => two(days / 365, 'y', days % 365, 'd'),
        _ => format!("{}y", days / 365),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_has_two_units_while_the_larger_one_is_small() {
        for (seconds, words) in [
            (-5, "<invalid>"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (123, "2m3s"),
            (600, "10m"),
            (10_860, "3h1m"),
            (40_000, "11h"),
            (180_000, "2d2h"),
            (864_000, "10d"),
            (70_000_000, "2y80d"),
        ] {
            assert_eq!(told(seconds), words, "{seconds}");
        }
        assert_eq!(since(""), "<unknown>");
    }
}
