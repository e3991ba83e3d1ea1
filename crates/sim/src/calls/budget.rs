//! The shipped budget: how long it delays changes while Azure's limits are far away, and what it lets through
//! under steady churn.
//!
//! Azure's operations take no time here, so that every wait is one of ours. First all Services are created with
//! all their pods. Then single pods are replaced in even intervals, each in another Service.

use core::time::Duration;

use sluice_model::Time;

use super::Load;
use super::bench::Bench;
use crate::names::Violation;

/// The span in which Azure counts writes.
const WINDOW: Duration = Duration::from_secs(300);

/// What is created, what changes then, and the limits.
#[derive(Clone, Debug)]
pub struct Target {
    /// In a few words.
    pub name: &'static str,
    /// What is created.
    pub load: Load,
    /// The time between two changes.
    pub interval: Duration,
    /// How many pods are replaced.
    pub changes: u32,
    /// The longest time from the first Service until every pod is in Azure.
    pub first_sync_max: Duration,
    /// The longest time from a change to its request on the wire: median and 99th percentile. `None` where the
    /// budget delays changes on purpose.
    pub wait_max: Option<(Duration, Duration)>,
    /// Writes and deletes in any five minutes.
    pub writes_max: usize,
}

/// What was measured.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// From the first Service until every pod is in Azure.
    pub first_sync: Duration,
    /// From a change to its request on the wire: median.
    pub wait_p50: Duration,
    /// And 99th percentile.
    pub wait_p99: Duration,
    /// The most `updateAddressLocations` calls in any five minutes.
    pub locations: usize,
    /// The most writes and deletes in any five minutes, those included.
    pub writes: usize,
}

impl Target {
    /// Which limits were exceeded.
    pub fn misses(&self, figures: &Figures) -> Vec<String> {
        let mut misses = Vec::new();
        let mut check = |what: &str, is: u128, most: u128| {
            if is > most {
                misses.push(format!("{}: {what} {is} > {most}", self.name));
            }
        };
        check("first sync (ms)", figures.first_sync.as_millis(), self.first_sync_max.as_millis());
        if let Some((p50_max, p99_max)) = self.wait_max {
            check("p50 (ms)", figures.wait_p50.as_millis(), p50_max.as_millis());
            check("p99 (ms)", figures.wait_p99.as_millis(), p99_max.as_millis());
        }
        check("writes in 5 min", figures.writes as u128, self.writes_max as u128);
        misses
    }
}

/// The table.
pub fn targets() -> Vec<Target> {
    let load = |round_trip_ms| Load {
        pods_each: 100,
        round_trip: Duration::from_millis(round_trip_ms),
        instant: true,
        ..Load::new(50, 10)
    };
    let single = |name, load| Target {
        name,
        load,
        interval: Duration::from_millis(600),
        changes: 100,
        first_sync_max: Duration::from_millis(600),
        wait_max: Some((Duration::from_millis(2), Duration::from_millis(5))),
        writes_max: 800,
    };
    let churn = |name, share_permille, first_sync_max, writes_max| Target {
        name,
        load: Load { share_permille, ..load(2) },
        interval: Duration::from_millis(50),
        changes: 6_000,
        first_sync_max,
        wait_max: None,
        writes_max,
    };
    vec![
        single("a change per 0.6 s, 0 ms away", load(0)),
        single("a change per 0.6 s, 2 ms away", load(2)),
        single("a change per 0.6 s, 10 ms away", load(10)),
        churn("20 changes/s", 800, Duration::from_millis(600), 800),
        // 50 writes in 5 min are fewer than 50 Services need, so only the bound is judged.
        churn("20 changes/s, share 5 %", 50, Duration::MAX, 50),
    ]
}

/// Creates the Services and replaces the pods. Fails when a call is begun that the budget or a pause does not
/// allow, or when not all pods are in Azure in the end.
pub fn measure(target: &Target) -> Result<Figures, Violation> {
    let mut bench = Bench::new(&target.load);
    bench.settle_in()?;
    let created = bench.half(Bench::apply_all, Bench::all_served)?;
    let mut changed = Vec::new();
    for number in 0..target.changes {
        bench.rest(target.interval)?;
        let [_, high, middle, low] = number.to_be_bytes();
        let address = [10, 128 | high, middle, low].into();
        changed.push((bench.now(), address));
        bench.replace_pod(number as usize % target.load.services.max(1), address)?;
    }
    bench.run(Bench::addresses_in_sync)?;
    // A pod that was replaced again before its turn was never sent.
    let sent = changed.iter().filter_map(|(at, address)| Some(bench.address_sent.get(address)?.since(*at)));
    let mut waits: Vec<Duration> = sent.collect();
    waits.sort_unstable();
    let locations: Vec<Time> = bench.writes_sent.iter().filter(|it| it.1).map(|it| it.0).collect();
    let writes: Vec<Time> = bench.writes_sent.iter().map(|it| it.0).collect();
    Ok(Figures {
        first_sync: created.makespan,
        wait_p50: percentile(&waits, 50),
        wait_p99: percentile(&waits, 99),
        locations: most_in_a_window(&locations),
        writes: most_in_a_window(&writes),
    })
}

/// Of sorted times.
fn percentile(times: &[Duration], percent: usize) -> Duration {
    let rank = (times.len() * percent).div_ceil(100).saturating_sub(1);
    times.get(rank).copied().unwrap_or_default()
}

fn most_in_a_window(calls: &[Time]) -> usize {
    let until = |first: usize| calls[first..].partition_point(|at| *at < calls[first] + WINDOW);
    (0..calls.len()).map(until).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_the_smallest_time_that_so_many_do_not_exceed() {
        let times: Vec<Duration> = (1..=100).map(Duration::from_millis).collect();
        assert_eq!(percentile(&times, 50), Duration::from_millis(50));
        assert_eq!(percentile(&times, 99), Duration::from_millis(99));
        assert_eq!(percentile(&[], 99), Duration::ZERO);
    }

    #[test]
    fn a_call_is_in_the_window_for_five_minutes() {
        let calls = [0, 1_000, 299_999, 300_000].map(Time::from_millis);
        assert_eq!(most_in_a_window(&calls), 3);
    }
}
