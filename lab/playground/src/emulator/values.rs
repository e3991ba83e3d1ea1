//! Reads the values of the emulator's arguments.

use std::time::Duration;

use jiff::SignedDuration;
use sluice_cloud::{Buckets, Rate, Span, Window};

/// `90s`, `15m`, `1h`, `250ms`; a bare number is seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let read = match text.parse() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => text.parse::<SignedDuration>().ok().and_then(|it| Duration::try_from(it).ok()),
    };
    // A number that fits into milliseconds, as the clocks of the emulator need it.
    read.filter(|it| u64::try_from(it.as_millis()).is_ok()).ok_or_else(|| {
        format!("{text:?} is not a duration; expected a number and a unit, like 90s, 15m, 1h or 250ms")
    })
}

/// `2s-3s`, or one time for both ends.
pub(super) fn span(text: &str) -> Result<Span, String> {
    let (min, max) = text.split_once('-').unwrap_or((text, text));
    let (min, max) = (duration(min)?, duration(max)?);
    if min > max {
        return Err(format!("{text:?} ends before it starts; expected FROM-TO, like 2s-3s"));
    }
    Ok(Span { min, max })
}

/// `ID=SECRET`.
pub(super) fn client(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((id, secret)) if !id.is_empty() && !secret.is_empty() => Ok((id.into(), secret.into())),
        // What was given may be a secret, so it is not repeated.
        _ => Err("expected a client ID and a secret, as ID=SECRET".into()),
    }
}

/// A number that is not zero.
pub(super) fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|&number| number > 0)
        .ok_or_else(|| format!("{text:?} is not a number of at least 1"))
}

/// `reads=250/25,writes=200/10,network=1000/10000/5m`, each part optional.
pub(super) fn buckets(text: &str) -> Result<Buckets, String> {
    let mut buckets = Buckets::default();
    for part in text.split(',') {
        let (name, value) = part
            .split_once('=')
            .ok_or_else(|| format!("{part:?} has no value; expected LIMIT=VALUE, like writes=200/10"))?;
        let numbers: Vec<&str> = value.split('/').collect();
        let number = |text: &str| {
            text.parse::<u32>().map_err(|_| format!("{text:?} in {part:?} is not a whole number"))
        };
        let rate = || match numbers[..] {
            [burst, per_second] => Ok(Rate { burst: number(burst)?, per_second: number(per_second)? }),
            _ => Err(format!("{part:?} is invalid; expected {name}=BURST/PER_SECOND")),
        };
        match name {
            "reads" => buckets.reads = rate()?,
            "writes" => buckets.writes = rate()?,
            "deletes" => buckets.deletes = rate()?,
            "network" if value == "none" => buckets.network = None,
            "network" => {
                let [writes, reads, length] = numbers[..] else {
                    return Err(format!(
                        "{part:?} is invalid; expected network=WRITES/READS/WINDOW or network=none"
                    ));
                };
                let (writes, reads, length) = (number(writes)?, number(reads)?, duration(length)?);
                buckets.network = Some(Window { writes, reads, length });
            }
            _ => return Err(format!("{name:?} is not a limit; expected reads, writes, deletes or network")),
        }
    }
    Ok(buckets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units_and_spans_two_ends() {
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("90"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("15m"), Ok(Duration::from_secs(900)));
        assert_eq!(duration("1h"), Ok(Duration::from_secs(3_600)));
        assert_eq!(duration("1h30m"), Ok(Duration::from_secs(5_400)));
        assert_eq!(span("2s-3s"), Ok(Span::millis(2_000, 3_000)));
        assert_eq!(span("0"), Ok(Span::millis(0, 0)));
        for bad in ["", "s", "1d", "-1s", "99999999999999999999h", "18446744073709551615h"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
        assert!(span("3s-2s").is_err());
    }

    #[test]
    fn buckets_change_only_what_is_named() {
        let given = buckets("writes=5/1,network=none").unwrap();
        assert_eq!(given.writes, Rate { burst: 5, per_second: 1 });
        assert_eq!(given.reads, Buckets::default().reads);
        assert_eq!(given.network, None);
        let window = buckets("network=10/20/5m").unwrap().network.unwrap();
        assert_eq!((window.writes, window.reads, window.length), (10, 20, Duration::from_secs(300)));
        for bad in ["", "writes", "writes=5", "writes=a/b", "others=1/1", "network=1/2"] {
            assert!(buckets(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_bad_client_is_refused_without_being_repeated() {
        assert_eq!(client("app=a=b"), Ok(("app".into(), "a=b".into())));
        assert!(!client("hunter2").unwrap_err().contains("hunter2"));
    }
}
