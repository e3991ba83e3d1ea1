//! What goes wrong, when: rules over requests, decided by counts and a seed.
//!
//! A rule says which requests it is for, what happens to them, and how often. Every request asks all
//! rules in the order in which they were made; the first that strikes decides, except that latency adds
//! to whatever else happens. Nothing here reads a clock or does anything: a [`Strike`] is only told, and
//! either handed to the surface as the model's own [`sluice_cloud::Fault`] or carried out by the front.
//!
//! ```json
//! {"match": {"kind": "loadBalancers", "call": "Put"}, "fault": "throttled", "retryAfter": 3, "times": 5}
//! ```
//!
//! Every Azure fault of the list can be said, by a rule here or by another call of the control API:
//!
//! | fault | how |
//! |---|---|
//! | Z1 429 with and without `Retry-After` | `throttled`, with or without `retryAfter` |
//! | Z2 429 "another operation" | `anotherOperation` |
//! | Z3 409, 412 | `conflict`, `preconditionFailed` |
//! | Z4 bursts of 500 and 503 | `serverError`, `unavailable`, with `times` |
//! | Z5 applied, but no answer | `noAnswer`, `reset` and `hang` with `"when": "after"` |
//! | Z6 answered, but not applied | `notApplied` |
//! | Z7 an operation that never ends | `neverEnds` |
//! | Z8 an operation that fails or is canceled | `fails`, `canceled` |
//! | Z9 `provisioningState` Failed | `provisioningFails` |
//! | Z10 reads that lag | `lag` |
//! | Z11 short or failing pages | `shortPage`, `failPage` |
//! | Z12 quota | `quotaExceeded`, or `POST quota` |
//! | Z13 403 and then restored, token expiry | `forbidden` with `times`, `unauthorized`, or `POST tokens/expire` |
//! | Z14 a lock | `locked`, or `POST tamper` with `lock` |
//! | Z15 a policy | `disallowed`, or `POST tamper` with `deny` |
//! | Z16 one poison address | `POST poison` |
//! | Z17 413 | `tooLarge`; the real limit is 4 MiB |
//! | Z18 somebody deletes or edits something | `POST tamper` with `delete`, `editTags`, `editRules`, `unregister`, … |
//! | Z19 foreign resources with names like ours | `POST tamper` with `put` |
//! | Z20 the gateway is deleted | `POST tamper` with `delete` |
//! | Z21 everything 50 times slower | `slowBy`, or `POST slow` |
//! | Z22 unknown enum, field or API version | `unknownEnum`, `unknownField`, `unknownApiVersion` |
//!
//! Besides there is what networks and proxies do: `latency`, `hang`, `reset`, `malformedJson`,
//! `htmlPage`, `truncatedBody`, `hugeBody`, `redirect`, `wrongContentType`; and what a newer Azure does:
//! `atOnce`, `errorIn200`.

mod matching;
mod rule;
mod what;

use std::time::Duration;

use serde_json::{Value, json};

pub(crate) use matching::Facts;
pub(crate) use rule::Rule;
pub(crate) use what::{End, Scope, What, When, words};

/// All rules.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    rules: Vec<(u64, Rule)>,
    made: u64,
}

/// What happens to one request.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Strike {
    /// So long before anything else.
    pub(crate) before: Duration,
    /// So long before the answer leaves.
    pub(crate) after: Duration,
    /// The rule that struck, and what it does.
    pub(crate) what: Option<(u64, What)>,
}

impl Faults {
    /// Takes up a rule and gives it a number.
    pub(crate) fn add(&mut self, rule: Rule) -> u64 {
        self.made += 1;
        self.rules.push((self.made, rule));
        self.made
    }

    /// Takes a rule away; whether it was there.
    pub(crate) fn remove(&mut self, number: u64) -> bool {
        let before = self.rules.len();
        self.rules.retain(|(it, _)| *it != number);
        self.rules.len() < before
    }

    /// Takes all rules away.
    pub(crate) fn clear(&mut self) {
        self.rules.clear();
    }

    /// What happens to a request.
    pub(crate) fn strike(&mut self, facts: &Facts<'_>) -> Strike {
        let mut strike = Strike::default();
        for (number, rule) in &mut self.rules {
            let adds_up = matches!(rule.what(), What::Latency { .. });
            if (strike.what.is_some() && !adds_up) || !rule.strikes(facts) {
                continue;
            }
            match rule.what() {
                What::Latency { before_ms, after_ms } => {
                    strike.before = strike.before.saturating_add(Duration::from_millis(*before_ms));
                    strike.after = strike.after.saturating_add(Duration::from_millis(*after_ms));
                }
                what => strike.what = Some((*number, what.clone())),
            }
        }
        strike
    }

    /// All rules with their counts.
    pub(crate) fn show(&self) -> Value {
        self.rules.iter().map(|(number, rule)| show(*number, rule)).collect()
    }

    /// One rule with its counts.
    pub(crate) fn show_one(&self, number: u64) -> Option<Value> {
        self.rules.iter().find(|(it, _)| *it == number).map(|(number, rule)| show(*number, rule))
    }
}

fn show(number: u64, rule: &Rule) -> Value {
    let mut shown = json!({"rule": number});
    if let (Some(shown), Value::Object(rest)) = (shown.as_object_mut(), rule.show()) {
        shown.extend(rest);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts<'a>() -> Facts<'a> {
        Facts { area: "arm", method: "PUT", path: "/x", ..Facts::default() }
    }

    fn rule(value: Value) -> Rule {
        Rule::parse(value).unwrap()
    }

    fn words(faults: &mut Faults, count: usize) -> Vec<&'static str> {
        (0..count).map(|_| faults.strike(&facts()).what.map_or("-", |(_, what)| what.word())).collect()
    }

    #[test]
    fn the_first_rule_that_strikes_decides_and_the_next_takes_over() {
        let mut faults = Faults::default();
        faults.add(rule(json!({"fault": "throttled", "times": 2})));
        faults.add(rule(json!({"fault": "serverError", "times": 1})));
        assert_eq!(words(&mut faults, 4), ["throttled", "throttled", "serverError", "-"]);
    }

    #[test]
    fn latency_adds_to_whatever_else_happens() {
        let mut faults = Faults::default();
        faults.add(rule(json!({"fault": "latency", "beforeMs": 5})));
        faults.add(rule(json!({"fault": "hang"})));
        faults.add(rule(json!({"fault": "latency", "beforeMs": 7, "afterMs": 1})));
        let strike = faults.strike(&facts());
        assert_eq!(strike.before, Duration::from_millis(12));
        assert_eq!(strike.after, Duration::from_millis(1));
        assert_eq!(strike.what.unwrap().1.word(), "hang");
    }

    #[test]
    fn a_removed_rule_strikes_no_more_and_numbers_are_not_used_again() {
        let mut faults = Faults::default();
        let first = faults.add(rule(json!({"fault": "hang"})));
        assert!(faults.remove(first));
        assert!(!faults.remove(first));
        assert_eq!(words(&mut faults, 1), ["-"]);
        assert_ne!(faults.add(rule(json!({"fault": "hang"}))), first);
    }

    #[test]
    fn what_is_shown_says_how_often_a_rule_has_struck() {
        let mut faults = Faults::default();
        let number = faults.add(rule(json!({"fault": "throttled", "retryAfter": 3, "times": 2})));
        words(&mut faults, 3);
        let shown = faults.show_one(number).unwrap();
        assert_eq!(shown["struck"], 2);
        assert_eq!(shown["seen"], 3);
        assert_eq!(shown["retryAfter"], 3);
        assert_eq!(shown["times"], 2);
    }
}
