//! Filters and pages: what stands behind the question mark.

use sluice_view::{Page, State};

use super::almanac::Today;

/// Items of one page, unless somebody asks for fewer or more.
const LIMIT_DEFAULT: usize = 1_000;
/// Items of one page at most.
const LIMIT_MAX: usize = 5_000;

/// Which items are asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Query {
    pub(super) namespace: Option<String>,
    states: Vec<State>,
    limit: usize,
    after: Option<String>,
}

impl Query {
    /// Reads the pairs of a query; `allowed` are the names that make sense here. The error is a sentence.
    pub(super) fn read(pairs: &[(String, String)], allowed: &[&str]) -> Result<Query, String> {
        let mut query = Query { namespace: None, states: Vec::new(), limit: LIMIT_DEFAULT, after: None };
        for (name, value) in pairs {
            if !allowed.contains(&name.as_str()) {
                let shown: String = name.chars().take(40).collect();
                return Err(format!(
                    "Unknown parameter {shown:?}; valid parameters: {}.",
                    allowed.join(", ")
                ));
            }
            match name.as_str() {
                "namespace" => query.namespace = Some(value.clone()).filter(|it| !it.is_empty()),
                "state" => {
                    for word in value.split(',').map(str::trim).filter(|word| !word.is_empty()) {
                        let state = State::parse(word).ok_or_else(|| {
                            let shown: String = word.chars().take(40).collect();
                            let known = State::ALL.map(State::word).join(", ");
                            format!("Unknown state {shown:?}; valid states: {known}.")
                        })?;
                        query.states.push(state);
                    }
                }
                "limit" => {
                    let limit = value.parse().ok().filter(|limit| (1..=LIMIT_MAX).contains(limit));
                    query.limit = limit
                        .ok_or_else(|| format!("Invalid limit: specify a number from 1 to {LIMIT_MAX}."))?;
                }
                "continue" => query.after = Some(value.clone()).filter(|it| !it.is_empty()),
                other => unreachable!("{other} is allowed and not read"),
            }
        }
        Ok(query)
    }

    /// Whether a state is asked for.
    pub(super) fn wants(&self, state: State) -> bool {
        self.states.is_empty() || self.states.contains(&state)
    }

    /// Cuts the page out of everything that the filter lets through. `place` is where an item stands in the
    /// order; it is what the next page continues after, so items may come and go between two pages.
    pub(super) fn page<T>(&self, today: &Today<'_>, all: Vec<T>, place: impl Fn(&T) -> String) -> Page<T> {
        let total = all.len() as u64;
        let mut placed: Vec<(String, T)> = all.into_iter().map(|item| (place(&item), item)).collect();
        placed.sort_by(|a, b| a.0.cmp(&b.0));
        if let Some(after) = &self.after {
            placed.retain(|(place, _)| place > after);
        }
        let is_last = placed.len() <= self.limit;
        placed.truncate(self.limit);
        let next = placed.last().filter(|_| !is_last).map(|(place, _)| place.clone());
        Page { at: today.now(), total, items: placed.into_iter().map(|(_, item)| item).collect(), next }
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;
    use crate::admin::Almanac;
    use crate::clock::Monotonic;

    const ALL: &[&str] = &["namespace", "state", "limit", "continue"];

    fn read(text: &[(&str, &str)]) -> Result<Query, String> {
        let pairs: Vec<_> = text.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        Query::read(&pairs, ALL)
    }

    #[test]
    fn what_is_not_understood_is_refused_with_what_would_be() {
        assert_eq!(
            read(&[("stat", "x")]).unwrap_err(),
            "Unknown parameter \"stat\"; valid parameters: namespace, state, limit, continue."
        );
        assert!(
            read(&[("state", "Created,Done")])
                .unwrap_err()
                .starts_with("Unknown state \"Done\"; valid states: NotStarted,")
        );
        for limit in ["0", "5001", "-1", "many", ""] {
            assert!(read(&[("limit", limit)]).is_err(), "{limit}");
        }
    }

    #[test]
    fn states_add_up_and_none_means_all() {
        assert!(read(&[]).unwrap().wants(State::Created));
        let some = read(&[("state", "created,NotStarted"), ("state", "DeletionPending")]).unwrap();
        assert!(
            some.wants(State::Created) && some.wants(State::NotStarted) && some.wants(State::DeletionPending)
        );
        assert!(!some.wants(State::UpdateInProgress));
    }

    #[tokio::test]
    async fn pages_put_together_are_the_whole_even_if_something_comes_or_goes_in_between() {
        let almanac = Almanac::new(Monotonic::start(), UNIX_EPOCH);
        let mut all: Vec<u32> = (10..35).collect();
        let (mut seen, mut after, mut pages) = (Vec::new(), String::new(), 0);
        loop {
            let query = read(&[("limit", "10"), ("continue", &after)]).unwrap();
            let page = query.page(&almanac.today(), all.clone(), u32::to_string);
            seen.extend(page.items);
            pages += 1;
            let Some(next) = page.next else { break };
            after = next;
            // One that was shown goes, and one comes before what was shown.
            all.retain(|number| *number != 12);
            all.push(9 + 1_000);
        }
        let stayed: Vec<u32> = seen.iter().copied().filter(|number| *number < 100).collect();
        assert_eq!(stayed, (10..35).collect::<Vec<u32>>());
        assert_eq!(pages, 3);
    }
}
