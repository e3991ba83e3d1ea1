//! What the headers of an answer say.

use core::time::Duration;

use sluice_model::azure::ArmId;
use sluice_model::call::{Bucket, Method};

use crate::{date, url};

/// Nobody is made to wait longer than this by one header; it is the same bound as for a wait
/// that stands in a message.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(86_400);

/// The headers of one answer.
#[derive(Clone, Copy)]
pub(crate) struct Headers<'a>(pub(crate) &'a [(&'a str, &'a str)]);

impl<'a> Headers<'a> {
    /// The first header of a name that says anything.
    pub(crate) fn first(self, name: &str) -> Option<&'a str> {
        let mut values = self.0.iter().filter(|(it, _)| it.trim().eq_ignore_ascii_case(name));
        values.find_map(|(_, value)| Some(value.trim()).filter(|value| !value.is_empty()))
    }

    /// Where the operation behind a write can be followed. `Azure-AsyncOperation` is preferred: it
    /// says how the operation stands, while `Location` only shows its result. An address that we
    /// must not follow is none: whoever has none looks at the resource instead, and every poll of
    /// this one would be refused.
    pub(crate) fn operation(self, endpoint: &str, method: Method, status: u16) -> Option<ArmId> {
        let is_write = !matches!(method, Method::Get | Method::List | Method::Poll);
        if !is_write || !matches!(status, 200..=202) {
            return None;
        }
        let addresses = ["Azure-AsyncOperation", "Location"].into_iter().filter_map(|name| self.first(name));
        { addresses }.find(|address| url::given(endpoint, address).is_ok()).map(ArmId::new)
    }

    /// How long Azure asks us to wait: milliseconds in a header of its own, which is the more precise
    /// one, else seconds or a date, which counts from the answer's own `Date`, so that our clock does
    /// not matter.
    pub(crate) fn retry_after(self, unix_time: Duration) -> Option<Duration> {
        let precise = self.first("x-ms-retry-after-ms").and_then(whole).map(Duration::from_millis);
        let wait = match precise {
            Some(wait) => wait,
            None => self.retry_after_seconds(unix_time)?,
        };
        Some(wait.min(RETRY_AFTER_MAX))
    }

    fn retry_after_seconds(self, unix_time: Duration) -> Option<Duration> {
        let text = self.first("Retry-After")?;
        if let Some(wait) = seconds(text) {
            return Some(wait);
        }
        let until = date::parse(text, unix_time)?;
        let sent = self.first("Date").and_then(|text| date::parse(text, unix_time));
        Some(until.saturating_sub(sent.unwrap_or(unix_time)))
    }

    /// How many calls are left in the bucket that paid for this one: the smallest number that any
    /// of the subscription's counters shows. Counters of single resources say nothing about it.
    pub(crate) fn remaining(self, bucket: Bucket) -> Option<u32> {
        let names = match bucket {
            Bucket::Reads => ["reads", "global-reads"],
            Bucket::Writes => ["writes", "global-writes"],
            Bucket::Deletes => ["deletes", "global-deletes"],
        };
        let concerns = |name: &str| {
            let prefix = "x-ms-ratelimit-remaining-subscription-";
            let tail = name.get(..prefix.len()).filter(|head| head.eq_ignore_ascii_case(prefix));
            tail.is_some() && names.iter().any(|it| name[prefix.len()..].eq_ignore_ascii_case(it))
        };
        let counters = self.0.iter().filter(|(name, _)| concerns(name.trim()));
        counters.filter_map(|(_, value)| whole(value.trim())).min().map(saturated)
    }
}

/// Seconds, whole or with decimals, rounded up: an early call is worse than a late one.
fn seconds(text: &str) -> Option<Duration> {
    let (whole_part, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let tail = decimals.bytes().any(|b| b != b'0');
    whole(decimals)?;
    Some(Duration::from_secs(whole(whole_part)?.saturating_add(u64::from(tail))))
}

/// A number of digits; one that is too long for us is as large as can be.
fn whole(text: &str) -> Option<u64> {
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| text.parse().unwrap_or(u64::MAX))
}

fn saturated(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(784_111_777);

    fn wait(headers: &[(&str, &str)]) -> Option<u64> {
        Headers(headers).retry_after(NOW).map(|wait| wait.as_secs())
    }

    #[test]
    fn a_wait_is_seconds_or_a_date() {
        assert_eq!(wait(&[("Retry-After", "17")]), Some(17));
        assert_eq!(wait(&[("retry-after", " 1.2 ")]), Some(2));
        assert_eq!(wait(&[("RETRY-AFTER", "1.00")]), Some(1));
        assert_eq!(wait(&[("Retry-After", "Sun, 06 Nov 1994 08:50:37 GMT")]), Some(60));
        assert_eq!(wait(&[("Retry-After", "Sun, 06 Nov 1994 08:00:00 GMT")]), Some(0));
    }

    #[test]
    fn a_date_counts_from_the_servers_clock() {
        let date = ("Date", "Sun, 06 Nov 1994 10:00:00 GMT");
        assert_eq!(wait(&[date, ("Retry-After", "Sun, 06 Nov 1994 10:00:05 GMT")]), Some(5));
        let odd = ("Date", "some day");
        assert_eq!(wait(&[odd, ("Retry-After", "Sun, 06 Nov 1994 08:49:40 GMT")]), Some(3));
    }

    #[test]
    fn a_wait_in_milliseconds_is_preferred_if_it_is_one() {
        let waits = |ms| {
            let headers = [("Retry-After", "2"), ("X-MS-Retry-After-Ms", ms)];
            Headers(&headers).retry_after(NOW).map(|wait| wait.as_millis())
        };
        assert_eq!(waits("750"), Some(750));
        assert_eq!(waits("0"), Some(0));
        assert_eq!(waits("3000"), Some(3_000));
        assert_eq!(waits("99999999999999999999"), Some(86_400_000));
        assert_eq!(waits("soon"), Some(2_000));
        assert_eq!(wait(&[("x-ms-retry-after-ms", "4000")]), Some(4));
    }

    #[test]
    fn an_absurd_wait_is_capped_and_nonsense_is_none() {
        for absurd in ["99999999999999999999999999", "100000", "Fri, 31 Dec 9999 23:59:59 GMT"] {
            assert_eq!(wait(&[("Retry-After", absurd)]), Some(86_400), "{absurd}");
        }
        for nonsense in ["", "soon", "-5", "1e3", "5 s", "1.", ".5", "1.x", "0x10"] {
            assert_eq!(wait(&[("Retry-After", nonsense)]), None, "{nonsense}");
        }
        assert_eq!(wait(&[]), None);
    }

    #[test]
    fn the_status_of_an_operation_is_preferred_to_its_result() {
        let both = Headers(&[("location", "https://a/result"), ("azure-asyncoperation", "https://a/status")]);
        let result = Headers(&[("Azure-AsyncOperation", " "), ("Location", "https://a/result")]);
        let at = "https://a";
        assert_eq!(both.operation(at, Method::Put, 201), Some(ArmId::new("https://a/status")));
        assert_eq!(result.operation(at, Method::Delete, 202), Some(ArmId::new("https://a/result")));
        assert_eq!(both.operation("https://b", Method::Put, 201), None);
        assert_eq!(both.operation(at, Method::Delete, 204), None);
        assert_eq!(both.operation(at, Method::Put, 409), None);
        for read in [Method::Get, Method::List, Method::Poll] {
            assert_eq!(both.operation(at, read, 200), None);
        }
    }

    #[test]
    fn the_smallest_counter_of_the_right_bucket_is_what_remains() {
        let headers = Headers(&[
            ("X-Ms-Ratelimit-Remaining-Subscription-Global-Writes", "11999"),
            ("x-ms-ratelimit-remaining-subscription-writes", "199"),
            ("x-ms-ratelimit-remaining-subscription-writes", "many"),
            ("x-ms-ratelimit-remaining-subscription-deletes", "3"),
            ("x-ms-ratelimit-remaining-resource", "Microsoft.Network/x;1"),
            ("x-ms-ratelimit-remaining-tenant-writes", "2"),
        ]);
        assert_eq!(headers.remaining(Bucket::Writes), Some(199));
        assert_eq!(headers.remaining(Bucket::Deletes), Some(3));
        assert_eq!(headers.remaining(Bucket::Reads), None);
        let endless = Headers(&[("x-ms-ratelimit-remaining-subscription-reads", "99999999999999999999999")]);
        assert_eq!(endless.remaining(Bucket::Reads), Some(u32::MAX));
    }
}
