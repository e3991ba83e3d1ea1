//! How the rows read the facts.

use sluice_engine::{Histogram, Phase, State, Trigger};
use sluice_model::FailureClass;
use sluice_model::kube::Kind as Watched;
use sluice_model::reason::Reason;
use sluice_updater::GateNumbers;
use sluice_view::overview::{Role, WatchLine};

use super::{Facts, Series, Value};
use crate::admin::kind_word;

pub(super) const DIRECTIONS: [&str; 2] = ["inbound", "outbound"];
pub(super) const LANES: [&str; 4] = ["reads", "service-writes", "location-writes", "deletes"];

/// A whole number without labels.
pub(super) fn whole(value: u64) -> Vec<Series> {
    one(Value::Whole(value))
}

/// A histogram without labels.
pub(super) fn spans(histogram: Histogram) -> Vec<Series> {
    one(Value::Histogram(histogram))
}

fn one(value: Value) -> Vec<Series> {
    vec![Series { labels: Vec::new(), value }]
}

fn labelled(labels: &[&'static str], value: Value) -> Series {
    Series { labels: labels.to_vec(), value }
}

fn flag(holds: bool) -> Vec<Series> {
    one(Value::Whole(u64::from(holds)))
}

pub(super) fn services(facts: &Facts) -> Vec<Series> {
    let mut all = Vec::new();
    for (direction, counts) in DIRECTIONS.into_iter().zip(facts.gauges.states) {
        for (state, count) in State::ALL.into_iter().zip(counts) {
            all.push(labelled(&[direction, state.word()], Value::Whole(count)));
        }
    }
    all
}

fn by_reason(counts: [u64; Reason::ALL.len()]) -> Vec<Series> {
    let counts = Reason::ALL.into_iter().zip(counts);
    counts.map(|(reason, count)| labelled(&[reason.word()], Value::Whole(count))).collect()
}

pub(super) fn parked(facts: &Facts) -> Vec<Series> {
    by_reason(facts.gauges.parked_for)
}

pub(super) fn trouble(facts: &Facts) -> Vec<Series> {
    by_reason(facts.gauges.trouble)
}

pub(super) fn triggers(facts: &Facts) -> Vec<Series> {
    let mut all = Vec::new();
    for (state, cells) in State::ALL.into_iter().zip(facts.counters.cells) {
        for (trigger, count) in Trigger::ALL.into_iter().zip(cells).filter(|(_, count)| *count > 0) {
            all.push(labelled(&[state.word(), trigger.word()], Value::Whole(count)));
        }
    }
    all
}

pub(super) fn calls(facts: &Facts) -> Vec<Series> {
    let ended = facts.calls.ended.iter();
    ended
        .map(|((method, kind, status), count)| labelled(&[method, kind, status], Value::Whole(*count)))
        .collect()
}

pub(super) fn call_durations(facts: &Facts) -> Vec<Series> {
    let took = facts.calls.took.iter();
    took.map(|(method, took): (_, &Histogram)| labelled(&[method], Value::Histogram(*took))).collect()
}

pub(super) fn throttled_seconds(facts: &Facts) -> Vec<Series> {
    one(Value::Real(facts.numbers.throttled_ms as f64 / 1_000.0))
}

/// Calls in the window and our share of it, for reads and for writes.
fn windows(facts: &Facts) -> [(&'static str, u32, u32); 2] {
    [
        ("reads", facts.numbers.reads_in_window, facts.window_limits.reads),
        ("writes", facts.numbers.writes_in_window, facts.window_limits.writes),
    ]
}

pub(super) fn window_calls(facts: &Facts) -> Vec<Series> {
    windows(facts).map(|(window, calls, _)| labelled(&[window], Value::Whole(calls.into()))).to_vec()
}

pub(super) fn window_limits(facts: &Facts) -> Vec<Series> {
    windows(facts).map(|(window, _, limit)| labelled(&[window], Value::Whole(limit.into()))).to_vec()
}

pub(super) fn window_used(facts: &Facts) -> Vec<Series> {
    let used = |calls: u32, limit: u32| if limit == 0 { 0.0 } else { f64::from(calls) / f64::from(limit) };
    windows(facts).map(|(window, calls, limit)| labelled(&[window], Value::Real(used(calls, limit)))).to_vec()
}

fn lanes(facts: &Facts, value: impl Fn(&GateNumbers) -> Value) -> Vec<Series> {
    let numbers = &facts.numbers;
    let gates = [
        &numbers.reads_gate,
        &numbers.service_writes_gate,
        &numbers.location_writes_gate,
        &numbers.deletes_gate,
    ];
    LANES.into_iter().zip(gates).map(|(lane, gate)| labelled(&[lane], value(gate))).collect()
}

pub(super) fn tokens(facts: &Facts) -> Vec<Series> {
    lanes(facts, |gate| Value::Whole(gate.tokens.into()))
}

pub(super) fn queued(facts: &Facts) -> Vec<Series> {
    lanes(facts, |gate| Value::Whole(gate.queued as u64))
}

pub(super) fn paused(facts: &Facts) -> Vec<Series> {
    let now = facts.now;
    lanes(facts, |gate| Value::Real(gate.paused_until.map_or(0.0, |until| until.since(now).as_secs_f64())))
}

/// Only what Azure has said something about.
pub(super) fn remaining(facts: &Facts) -> Vec<Series> {
    let left = &facts.numbers.remaining;
    let all = [("reads", left.reads), ("writes", left.writes), ("deletes", left.deletes)];
    let known = all.into_iter().filter_map(|(limit, calls)| Some((limit, calls?)));
    known.map(|(limit, calls)| labelled(&[limit], Value::Whole(calls.into()))).collect()
}

pub(super) fn leader(facts: &Facts) -> Vec<Series> {
    flag(facts.role == Role::Leader)
}

pub(super) fn initial_sync(facts: &Facts) -> Vec<Series> {
    flag(facts.phase == Phase::Done)
}

pub(super) fn gateway_ready(facts: &Facts) -> Vec<Series> {
    flag(facts.gateway_ready)
}

pub(super) fn phase(facts: &Facts) -> Vec<Series> {
    let all = Phase::ALL.into_iter();
    all.map(|phase| labelled(&[phase.word()], Value::Whole(u64::from(phase == facts.phase)))).collect()
}

pub(super) fn failures(facts: &Facts) -> Vec<Series> {
    let counts = FailureClass::ALL.into_iter().zip(facts.counters.failures);
    counts.map(|(class, count)| labelled(&[class.word()], Value::Whole(count))).collect()
}

/// The kinds that we know; a line of any other name is not a label.
fn watches(facts: &Facts, value: impl Fn(&WatchLine) -> u64) -> Vec<Series> {
    let known = Watched::ALL.map(kind_word).into_iter();
    let lines = known.filter_map(|word| Some((word, facts.watches.iter().find(|line| line.kind == word)?)));
    lines.map(|(word, line)| labelled(&[word], Value::Whole(value(line)))).collect()
}

pub(super) fn watch_listed(facts: &Facts) -> Vec<Series> {
    watches(facts, |line| u64::from(line.listed))
}

pub(super) fn watch_trouble(facts: &Facts) -> Vec<Series> {
    watches(facts, |line| u64::from(line.trouble.is_some()))
}

pub(super) fn watch_objects(facts: &Facts) -> Vec<Series> {
    watches(facts, |line| line.objects)
}

pub(super) fn watch_lists(facts: &Facts) -> Vec<Series> {
    watches(facts, |line| line.lists)
}

pub(super) fn watch_skipped(facts: &Facts) -> Vec<Series> {
    watches(facts, |line| line.skipped)
}

pub(super) fn watch_restarts(facts: &Facts) -> Vec<Series> {
    watches(facts, |line| line.restarts)
}

pub(super) fn started(facts: &Facts) -> Vec<Series> {
    one(Value::Real(facts.started_seconds))
}

pub(super) fn build(_: &Facts) -> Vec<Series> {
    vec![labelled(&[env!("CARGO_PKG_VERSION")], Value::Whole(1))]
}
