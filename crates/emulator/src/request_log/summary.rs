//! The request log in numbers: calls by kind, refusals, and who came back too early.
//!
//! A `Retry-After` is a promise that is asked for, and it is kept in real time. What it covers depends on
//! who said it: a bucket that is empty covers all calls of that bucket by its client in its subscription; an
//! operation that asks for patience covers the next polls of it; anything else covers the same call again.
//!
//! A call that was already on its way when the answer left cannot be blamed. It looks the same as one that was
//! sent in spite of it, so calls of the same bucket are not blamed within a short grace, unless they are the
//! very call that was refused: nobody has that one under way twice.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Entry, millis};

/// How many early calls are listed one by one.
const LISTED_MAX: usize = 100;

/// What a `Retry-After` covers.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Covered {
    /// All calls of a bucket by one client in one subscription.
    Bucket(Option<String>, String, &'static str),
    /// The polls of one operation.
    Operation(String),
    /// The same call again.
    Call(String, String),
}

/// A time in which nobody should come back.
#[derive(Clone, Debug)]
struct Wait {
    from_us: u64,
    until_us: u64,
    by: u64,
    call: (String, String),
}

/// A call that came too early.
struct Early<'a> {
    entry: &'a Entry,
    by: u64,
    covered: &'static str,
    after_us: u64,
    early_us: u64,
}

/// Counts the entries of a log.
pub(crate) fn summary<'a>(
    entries: impl Iterator<Item = &'a Entry>,
    counts: (u64, u64),
    grace_ms: u64,
) -> Value {
    let entries: Vec<&Entry> = entries.collect();
    let mut by_kind: BTreeMap<(&str, &str, &str, String), u64> = BTreeMap::new();
    let mut buckets: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    let mut faults: BTreeMap<&str, u64> = BTreeMap::new();
    for entry in &entries {
        let status = match &entry.outcome {
            None => "running".to_owned(),
            Some(outcome) => outcome.status.map_or_else(|| "none".to_owned(), |it| it.to_string()),
        };
        let kind = entry.kind.unwrap_or(if entry.area == "arm" { "other" } else { entry.area });
        let call = entry.call.unwrap_or(&entry.method);
        *by_kind.entry((entry.area, kind, call, status)).or_default() += 1;
        if let Some(bucket) = entry.bucket() {
            let (calls, throttled) = buckets.entry(bucket).or_default();
            *calls += 1;
            *throttled += u64::from(entry.outcome.as_ref().and_then(|it| it.status) == Some(429));
        }
        if let Some((_, word)) = entry.fault {
            *faults.entry(word).or_default() += 1;
        }
    }
    let (early, on_their_way) = early(&entries, grace_ms.saturating_mul(1_000));
    let arm = entries.iter().filter(|entry| entry.area == "arm");
    let ended = arm.clone().filter_map(|entry| entry.outcome.as_ref().map(|it| it.at));
    json!({
        "requests": counts.0,
        "remembered": entries.len(),
        "dropped": counts.1,
        "arm": {
            "requests": arm.clone().count(),
            "buckets": buckets.iter().map(|(bucket, (calls, throttled))| {
                ((*bucket).to_owned(), json!({"calls": calls, "throttled": throttled}))
            }).collect::<serde_json::Map<_, _>>(),
            "firstArrivedMs": arm.clone().map(|entry| entry.arrived.real_us).min().map(millis),
            "lastAnsweredMs": ended.clone().map(|at| at.real_us).max().map(millis),
            "firstArrivedEmulatedMs": arm.clone().map(|entry| entry.arrived.emulated_ms).min(),
            "lastAnsweredEmulatedMs": ended.map(|at| at.emulated_ms).max(),
        },
        "byKind": by_kind.into_iter().map(|((area, kind, call, status), count)| json!({
            "area": area, "kind": kind, "call": call, "status": status, "count": count,
        })).collect::<Value>(),
        "faults": faults,
        "early": {
            "count": early.len(),
            "onTheirWay": on_their_way,
            "graceMs": grace_ms,
            "calls": early.iter().take(LISTED_MAX).map(|it| json!({
                "number": it.entry.number,
                "method": it.entry.method,
                "path": it.entry.path,
                "covered": it.covered,
                "askedBy": it.by,
                "afterAnswerMs": millis(it.after_us),
                "earlyByMs": millis(it.early_us),
            })).collect::<Value>(),
        },
    })
}

/// The calls that came before a `Retry-After` was over, and how many get the benefit of the doubt.
fn early<'a>(entries: &[&'a Entry], grace_us: u64) -> (Vec<Early<'a>>, u64) {
    let mut asked: Vec<(Covered, Wait)> = entries.iter().copied().flat_map(waits).collect();
    asked.sort_by_key(|(_, wait)| wait.from_us);
    let mut asked = asked.into_iter().peekable();
    let mut running: BTreeMap<Covered, Vec<Wait>> = BTreeMap::new();
    let mut arrivals: Vec<&Entry> = entries.iter().copied().filter(|entry| entry.area == "arm").collect();
    arrivals.sort_by_key(|entry| entry.arrived.real_us);
    let (mut early, mut on_their_way) = (Vec::new(), 0);
    for entry in arrivals {
        let now = entry.arrived.real_us;
        while let Some((covered, wait)) = asked.next_if(|(_, wait)| wait.from_us <= now) {
            running.entry(covered).or_default().push(wait);
        }
        let mut worst: Option<Early<'_>> = None;
        let mut is_excused = false;
        for covered in covering(entry) {
            let Some(waits) = running.get_mut(&covered) else { continue };
            waits.retain(|wait| wait.until_us > now);
            for wait in waits.iter() {
                let is_same_call = wait.call == (entry.method.clone(), entry.path.clone());
                let is_bucket = matches!(covered, Covered::Bucket(..));
                if is_bucket && !is_same_call && now < wait.from_us.saturating_add(grace_us) {
                    is_excused = true;
                    continue;
                }
                let early_us = wait.until_us - now;
                if worst.as_ref().is_none_or(|worst| worst.early_us < early_us) {
                    worst = Some(Early {
                        entry,
                        by: wait.by,
                        covered: covered.word(),
                        after_us: now - wait.from_us,
                        early_us,
                    });
                }
            }
        }
        match worst {
            Some(worst) => early.push(worst),
            None => on_their_way += u64::from(is_excused),
        }
    }
    (early, on_their_way)
}

/// The waits that an answer asks for.
fn waits(entry: &Entry) -> Vec<(Covered, Wait)> {
    let Some(outcome) = entry.outcome.as_ref().filter(|_| entry.area == "arm") else { return Vec::new() };
    let (Some(status), Some(seconds)) = (outcome.status, outcome.retry_after) else { return Vec::new() };
    let call = (entry.method.clone(), entry.path.clone());
    let until_us = outcome.at.real_us.saturating_add(seconds.saturating_mul(1_000_000));
    let wait = Wait { from_us: outcome.at.real_us, until_us, by: entry.number, call: call.clone() };
    let bucket =
        |bucket: &'static str| Covered::Bucket(entry.principal.clone(), subscription(&entry.path), bucket);
    let covered = match (outcome.code.as_deref(), entry.bucket(), &outcome.operation) {
        (Some("SubscriptionRequestsThrottled"), Some(name), _) => vec![bucket(name)],
        // Microsoft.Network counts writes and deletes together.
        (Some("TooManyRequests"), Some("writes" | "deletes"), _) => vec![bucket("writes"), bucket("deletes")],
        (Some("TooManyRequests"), Some(name), _) => vec![bucket(name)],
        (_, _, Some(operation)) if status < 400 => vec![Covered::Operation(operation.clone())],
        _ if status < 400 => Vec::new(),
        _ => vec![Covered::Call(call.0, call.1)],
    };
    covered.into_iter().map(|covered| (covered, wait.clone())).collect()
}

/// What could cover a call.
fn covering(entry: &Entry) -> Vec<Covered> {
    let mut all = vec![Covered::Call(entry.method.clone(), entry.path.clone())];
    all.extend(
        entry
            .bucket()
            .map(|bucket| Covered::Bucket(entry.principal.clone(), subscription(&entry.path), bucket)),
    );
    if entry.call == Some("Poll") {
        all.extend(entry.name.clone().map(Covered::Operation));
    }
    all
}

/// The subscription in a path, in small letters.
fn subscription(path: &str) -> String {
    let mut words = path.split('/').skip_while(|word| !word.eq_ignore_ascii_case("subscriptions"));
    words.nth(1).unwrap_or("").to_ascii_lowercase()
}

impl Covered {
    const fn word(&self) -> &'static str {
        match self {
            Covered::Bucket(..) => "bucket",
            Covered::Operation(_) => "operation",
            Covered::Call(..) => "call",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Moment, Outcome};
    use super::*;

    const GRACE: u64 = 20_000;

    fn at_ms(ms: u64) -> Moment {
        Moment { real_us: ms * 1_000, emulated_ms: ms * 100 }
    }

    fn call(number: u64, method: &str, path: &str, arrived_ms: u64, outcome: Outcome) -> Entry {
        Entry {
            number,
            area: "arm",
            method: method.into(),
            path: path.into(),
            arrived: at_ms(arrived_ms),
            principal: Some("app".into()),
            outcome: Some(Outcome { at: at_ms(arrived_ms + 1), ..outcome }),
            ..Entry::default()
        }
    }

    fn ok() -> Outcome {
        Outcome { status: Some(200), ..Outcome::default() }
    }

    fn refused(code: &str, seconds: u64) -> Outcome {
        let code = Some(code.to_owned());
        Outcome { status: Some(429), retry_after: Some(seconds), code, ..Outcome::default() }
    }

    fn early_numbers(entries: &[Entry]) -> (Vec<u64>, u64) {
        let entries: Vec<&Entry> = entries.iter().collect();
        let (early, excused) = early(&entries, GRACE);
        (early.iter().map(|it| it.entry.number).collect(), excused)
    }

    #[test]
    fn an_empty_bucket_covers_all_calls_of_that_bucket_by_that_client_until_its_time_is_over() {
        let stranger = Entry { principal: Some("b".into()), ..call(6, "PUT", "/c", 500, ok()) };
        let entries = [
            call(1, "PUT", "/a", 0, refused("SubscriptionRequestsThrottled", 1)),
            call(2, "PUT", "/b", 10, ok()),
            call(3, "PUT", "/b", 400, ok()),
            call(4, "GET", "/b", 450, ok()),
            call(5, "DELETE", "/b", 460, ok()),
            stranger,
            call(7, "PUT", "/a", 1_001, ok()),
        ];
        // The second was on its way; the third is blamed.
        assert_eq!(early_numbers(&entries), (vec![3], 1));
    }

    #[test]
    fn the_very_call_that_was_refused_has_no_grace() {
        let entries = [
            call(1, "PUT", "/a", 0, refused("SubscriptionRequestsThrottled", 1)),
            call(2, "PUT", "/a", 2, ok()),
        ];
        assert_eq!(early_numbers(&entries), (vec![2], 0));
    }

    #[test]
    fn an_empty_bucket_covers_nothing_in_another_subscription() {
        let entries = [
            call(1, "PUT", "/subscriptions/s/a", 0, refused("SubscriptionRequestsThrottled", 1)),
            call(2, "PUT", "/subscriptions/t/a", 400, ok()),
            call(3, "PUT", "/Subscriptions/S/b", 400, ok()),
        ];
        assert_eq!(early_numbers(&entries), (vec![3], 0));
    }

    #[test]
    fn microsoft_network_counts_writes_and_deletes_together() {
        let entries = [
            call(1, "PUT", "/a", 0, refused("TooManyRequests", 9)),
            call(2, "DELETE", "/b", 100, ok()),
            call(3, "GET", "/b", 100, ok()),
        ];
        assert_eq!(early_numbers(&entries).0, [2]);
    }

    #[test]
    fn any_other_refusal_covers_only_the_same_call() {
        let busy = || refused("RetryableErrorDueToAnotherOperation", 5);
        let entries = [
            call(1, "PUT", "/a", 0, busy()),
            call(2, "PUT", "/b", 100, ok()),
            call(3, "GET", "/a", 100, ok()),
            call(4, "PUT", "/a", 100, ok()),
        ];
        assert_eq!(early_numbers(&entries).0, [4]);
    }

    #[test]
    fn an_operation_covers_its_own_polls() {
        let started = Outcome { operation: Some("op".into()), retry_after: Some(2), ..ok() };
        let poll = |number, name: &str, arrived| Entry {
            call: Some("Poll"),
            name: Some(name.into()),
            ..call(number, "GET", "/operations/op", arrived, ok())
        };
        let entries = [
            call(1, "PUT", "/a", 0, started),
            poll(2, "op", 500),
            poll(3, "other", 500),
            poll(4, "op", 2_100),
        ];
        assert_eq!(early_numbers(&entries).0, [2]);
    }

    #[test]
    fn calls_are_counted_by_kind_call_and_status() {
        let put = |number, outcome| Entry {
            call: Some("Put"),
            kind: Some("loadBalancers"),
            ..call(number, "PUT", "/a", 0, outcome)
        };
        let running = Entry { outcome: None, ..put(4, ok()) };
        let entries = [put(1, ok()), put(2, ok()), put(3, refused("X", 1)), running];
        let summary = summary(entries.iter(), (4, 0), 20);
        assert_eq!(
            summary["byKind"],
            json!([
                {"area": "arm", "kind": "loadBalancers", "call": "Put", "status": "200", "count": 2},
                {"area": "arm", "kind": "loadBalancers", "call": "Put", "status": "429", "count": 1},
                {"area": "arm", "kind": "loadBalancers", "call": "Put", "status": "running", "count": 1},
            ])
        );
        assert_eq!(summary["arm"]["buckets"]["writes"], json!({"calls": 4, "throttled": 1}));
        assert_eq!(summary["arm"]["lastAnsweredMs"], 1.0);
    }
}
