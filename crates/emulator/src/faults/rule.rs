//! One rule: for whom, what, and how often.

use serde_json::{Map, Value, json};

use super::matching::{Facts, Match};
use super::what::What;

/// A rule with its counts.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Rule {
    matching: Match,
    what: What,
    often: Often,
    /// How many requests it was for.
    seen: u64,
    /// How many of them it struck.
    struck: u64,
}

/// How often a rule strikes; everything that is said must be true.
#[derive(Clone, PartialEq, Debug, Default)]
struct Often {
    /// At most so many times in all; without it until it is removed.
    times: Option<u64>,
    /// Only the so-manieth request, counted from 1.
    nth: Option<u64>,
    /// With this probability.
    probability: Option<f64>,
    /// Decides the chances.
    seed: u64,
}

impl Rule {
    /// Reads a rule, or says in words what is wrong with it.
    pub(crate) fn parse(value: Value) -> Result<Rule, String> {
        let Value::Object(mut fields) = value else {
            return Err("a rule is a JSON object with at least \"fault\"".into());
        };
        let matching = match fields.remove("match") {
            Some(value) => serde_json::from_value(value).map_err(|problem| format!("match: {problem}"))?,
            None => Match::default(),
        };
        matching.check()?;
        let often = Often::take(&mut fields)?;
        let what = What::parse(fields)?;
        Ok(Rule { matching, what, often, seen: 0, struck: 0 })
    }

    pub(crate) fn what(&self) -> &What {
        &self.what
    }

    /// Whether it strikes this request; counts it in any case.
    pub(super) fn strikes(&mut self, facts: &Facts<'_>) -> bool {
        if !self.matching.holds(facts) {
            return false;
        }
        self.seen += 1;
        let Often { times, nth, probability, seed } = self.often;
        let strikes = times.is_none_or(|times| self.struck < times)
            && nth.is_none_or(|nth| self.seen == nth)
            && probability.is_none_or(|probability| chance(seed, self.seen) < probability);
        self.struck += u64::from(strikes);
        strikes
    }

    pub(super) fn show(&self) -> Value {
        let mut shown = Map::new();
        shown.insert("match".into(), json!(self.matching));
        if let Value::Object(what) = self.what.show() {
            shown.extend(what);
        }
        let Often { times, nth, probability, seed } = self.often;
        let numbers = [("times", times.map(Value::from)), ("nth", nth.map(Value::from))];
        let chances =
            [("probability", probability.map(Value::from)), ("seed", probability.map(|_| Value::from(seed)))];
        for (name, value) in numbers.into_iter().chain(chances) {
            if let Some(value) = value {
                shown.insert(name.into(), value);
            }
        }
        shown.insert("seen".into(), self.seen.into());
        shown.insert("struck".into(), self.struck.into());
        Value::Object(shown)
    }
}

impl Often {
    fn take(fields: &mut Map<String, Value>) -> Result<Often, String> {
        let mut whole = |name: &str| match fields.remove(name) {
            None => Ok(None),
            Some(value) => {
                value.as_u64().map(Some).ok_or_else(|| format!("{name} {value} is not a whole number"))
            }
        };
        let (times, nth, seed) = (whole("times")?, whole("nth")?, whole("seed")?.unwrap_or(0));
        if times == Some(0) || nth == Some(0) {
            return Err("times and nth are 1 or more".into());
        }
        let probability = match fields.remove("probability") {
            None => None,
            Some(value) => {
                let given = value.as_f64().filter(|given| (0.0..=1.0).contains(given));
                Some(given.ok_or_else(|| format!("probability {value} is not between 0 and 1"))?)
            }
        };
        Ok(Often { times, nth, probability, seed })
    }
}

/// A number from 0 to 1 for the so-manieth request, always the same (the finalizer of SplitMix64).
fn chance(seed: u64, number: u64) -> f64 {
    let mut bits = seed.wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^= bits >> 31;
    // The upper 53 bits are as many as a float holds exactly.
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strikes(rule: Value, count: usize) -> Vec<bool> {
        let mut rule = Rule::parse(rule).unwrap();
        let facts = Facts { area: "arm", method: "GET", path: "/", ..Facts::default() };
        (0..count).map(|_| rule.strikes(&facts)).collect()
    }

    #[test]
    fn how_often_is_by_count_or_by_chance() {
        assert_eq!(strikes(json!({"fault": "hang"}), 3), [true, true, true]);
        assert_eq!(strikes(json!({"fault": "hang", "times": 1}), 3), [true, false, false]);
        assert_eq!(strikes(json!({"fault": "hang", "nth": 2}), 3), [false, true, false]);
        assert_eq!(strikes(json!({"fault": "hang", "probability": 0.0}), 3), [false; 3]);
        assert_eq!(strikes(json!({"fault": "hang", "probability": 1.0, "times": 2}), 3), [true, true, false]);
    }

    #[test]
    fn the_same_seed_has_the_same_chances_and_they_are_about_right() {
        let often = |seed: u64| strikes(json!({"fault": "hang", "probability": 0.25, "seed": seed}), 4_000);
        assert_eq!(often(1), often(1));
        assert_ne!(often(1), often(2));
        let struck = often(3).iter().filter(|it| **it).count();
        assert!((900..1_100).contains(&struck), "{struck}");
    }

    #[test]
    fn what_cannot_be_is_refused_in_words() {
        for (rule, word) in [
            (json!([]), "object"),
            (json!({}), "fault"),
            (json!({"fault": "hung"}), "hang"),
            (json!({"fault": "hang", "tims": 1}), "tims"),
            (json!({"fault": "hang", "times": 0}), "1 or more"),
            (json!({"fault": "hang", "times": -1}), "whole number"),
            (json!({"fault": "hang", "probability": 2}), "between"),
            (json!({"fault": "hang", "match": {"call": "Push"}}), "UpdateServices"),
            (json!({"fault": "refuse", "status": 99}), "status"),
            (json!({"fault": "throttled", "retryAfter": "soon"}), "retryAfter"),
        ] {
            let problem = Rule::parse(rule.clone()).unwrap_err();
            assert!(problem.contains(word), "{rule}: {problem}");
        }
    }
}
