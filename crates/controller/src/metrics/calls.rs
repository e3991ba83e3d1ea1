//! Calls to Azure, counted by what was asked for, of what, and how it ended.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sluice_arm::{CallRecord, Observer, Outcome};
use sluice_engine::Histogram;
use sluice_engine::counters::BUCKET_BOUNDS_MS;

/// The methods that a call can have.
pub(super) const METHODS: [&str; 9] =
    ["get", "list", "put", "patch-tags", "delete", "update-services", "update-locations", "poll", OTHER];

/// The kinds of resources that a call can be about.
pub(super) const KINDS: [&str; 11] = [
    "addressLocations",
    "services",
    "serviceGateways",
    "natGateways",
    "loadBalancers",
    "publicIPAddresses",
    "subnets",
    "virtualNetworks",
    "resourceGroups",
    "operation",
    OTHER,
];

/// How a call can end. Statuses that we know by number, the others by their class.
pub(super) const STATUSES: [&str; 26] = [
    "200",
    "201",
    "202",
    "204",
    "400",
    "401",
    "403",
    "404",
    "408",
    "409",
    "412",
    "413",
    "422",
    "429",
    "500",
    "502",
    "503",
    "504",
    "2xx",
    "3xx",
    "4xx",
    "5xx",
    "unreadable",
    "not-sent",
    "lost",
    OTHER,
];

const OTHER: &str = "other";

/// Whom the client tells of every call.
#[derive(Debug, Default)]
pub struct Calls(Mutex<Counted>);

/// What has been counted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counted {
    /// By method, kind and status.
    pub(crate) ended: BTreeMap<(&'static str, &'static str, &'static str), u64>,
    /// How long calls took, by method.
    pub(crate) took: BTreeMap<&'static str, Histogram>,
    pub(crate) bytes_sent: u64,
    pub(crate) bytes_received: u64,
}

impl Calls {
    fn counted(&self) -> MutexGuard<'_, Counted> {
        // A number more or less is no reason to count no more.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn so_far(&self) -> Counted {
        self.counted().clone()
    }
}

impl Observer for Calls {
    fn called(&self, record: &CallRecord) {
        let (method, kind) = (known(&METHODS, record.method), known(&KINDS, record.kind));
        let mut counted = self.counted();
        *counted.ended.entry((method, kind, status_word(record.outcome))).or_default() += 1;
        add(counted.took.entry(method).or_default(), record.took);
        counted.bytes_sent += record.bytes_sent as u64;
        counted.bytes_received += record.bytes_received as u64;
    }
}

fn known(words: &[&'static str], word: &str) -> &'static str {
    words.iter().find(|known| **known == word).copied().unwrap_or(OTHER)
}

fn status_word(outcome: Outcome) -> &'static str {
    let status = match outcome {
        Outcome::Answered(status) => status,
        Outcome::Unreadable(_) => return "unreadable",
        Outcome::NotSent(_) => return "not-sent",
        Outcome::Lost(_) => return "lost",
    };
    let number = status.to_string();
    if let Some(known) = STATUSES.iter().find(|known| **known == number) {
        return known;
    }
    match status / 100 {
        2 => "2xx",
        3 => "3xx",
        4 => "4xx",
        5 => "5xx",
        _ => OTHER,
    }
}

fn add(histogram: &mut Histogram, took: Duration) {
    let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    let at = BUCKET_BOUNDS_MS.iter().position(|bound| ms <= *bound).unwrap_or(BUCKET_BOUNDS_MS.len());
    if let Some(bucket) = histogram.buckets.get_mut(at) {
        *bucket += 1;
    }
    histogram.count += 1;
    histogram.sum_ms = histogram.sum_ms.saturating_add(ms);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(method: &'static str, kind: &'static str, outcome: Outcome) -> CallRecord {
        CallRecord {
            method,
            kind,
            path: "/subscriptions/s/resourceGroups/rg-of-a-customer".into(),
            outcome,
            bytes_sent: 10,
            bytes_received: 20,
            took: Duration::from_millis(1_200),
            remaining: None,
            retry_after: None,
            client_request_id: String::new(),
            request_id: None,
            correlation_id: None,
        }
    }

    #[test]
    fn calls_are_counted_under_fixed_words_whatever_azure_answers() {
        let calls = Calls::default();
        for (outcome, word) in [
            (Outcome::Answered(200), "200"),
            (Outcome::Answered(206), "2xx"),
            (Outcome::Answered(418), "4xx"),
            (Outcome::Answered(599), "5xx"),
            (Outcome::Answered(999), "other"),
            (Outcome::Unreadable(200), "unreadable"),
            (Outcome::NotSent("no token"), "not-sent"),
            (Outcome::Lost("reset"), "lost"),
        ] {
            calls.called(&record("put", "loadBalancers", outcome));
            assert_eq!(calls.so_far().ended[&("put", "loadBalancers", word)], 1, "{word}");
        }
        calls.called(&record("teleport", "moons", Outcome::Answered(200)));
        let counted = calls.so_far();
        assert_eq!(counted.ended[&("other", "other", "200")], 1);
        assert_eq!((counted.bytes_sent, counted.bytes_received), (90, 180));
        let took = counted.took["put"];
        assert_eq!((took.count, took.sum_ms, took.buckets[4]), (8, 9_600, 8));
    }
}
