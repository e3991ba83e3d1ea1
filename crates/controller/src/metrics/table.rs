//! The rows: one for every metric.

use sluice_engine::{Histogram, Phase, State, Trigger};
use sluice_model::FailureClass;
use sluice_model::kube::Kind as Watched;
use sluice_model::reason::Reason;
use sluice_updater::GateNumbers;
use sluice_view::overview::{Role, WatchLine};

use super::Kind::{Counter, Gauge, Info};
use super::calls::{KINDS, METHODS, STATUSES};
use super::{Facts, Kind, Label, Metric, Series, Value, reasons, states, watched};
use crate::admin::kind_word;

const DIRECTION: Label = Label { name: "direction", words: || DIRECTIONS.to_vec() };
const STATE: Label = Label { name: "state", words: states };
const REASON: Label = Label { name: "reason", words: reasons };
const CLASS: Label = Label { name: "class", words: || FailureClass::ALL.map(FailureClass::word).to_vec() };
const PHASE: Label = Label { name: "phase", words: || Phase::ALL.map(Phase::word).to_vec() };
const TRIGGER: Label = Label { name: "trigger", words: || Trigger::ALL.map(Trigger::word).to_vec() };
const METHOD: Label = Label { name: "method", words: || METHODS.to_vec() };
const KIND: Label = Label { name: "kind", words: || KINDS.to_vec() };
const STATUS: Label = Label { name: "status", words: || STATUSES.to_vec() };
const BUCKET: Label = Label { name: "bucket", words: || vec!["reads", "writes"] };
const REMAINING: Label = Label { name: "bucket", words: || vec!["reads", "writes", "deletes"] };
const LANE: Label = Label { name: "lane", words: || LANES.to_vec() };
const WATCHED: Label = Label { name: "kind", words: watched };
const VERSION: Label = Label { name: "version", words: || vec![env!("CARGO_PKG_VERSION")] };

const DIRECTIONS: [&str; 2] = ["inbound", "outbound"];
const LANES: [&str; 4] = ["reads", "service-writes", "location-writes", "deletes"];

/// Every metric.
pub(crate) const TABLE: &[Metric] = &[
    Metric {
        name: "service_creation_duration_seconds",
        kind: Kind::Histogram,
        labels: &[],
        help: "Time from a service being wanted to its being created",
        origin: Some("service_creation_duration_seconds"),
        read: |facts| one(Value::Histogram(facts.counters.creations)),
    },
    Metric {
        name: "service_deletion_duration_seconds",
        kind: Kind::Histogram,
        labels: &[],
        help: "Time from a service not being wanted any more to nothing of it being left",
        origin: Some("service_deletion_duration_seconds"),
        read: |facts| one(Value::Histogram(facts.counters.deletions)),
    },
    Metric {
        name: "endpoint_buffer_duration_seconds",
        kind: Kind::Histogram,
        labels: &[],
        help: "Time that endpoints waited for their service, from the first that waited",
        origin: Some("endpoint_buffer_duration_seconds"),
        read: |facts| one(Value::Histogram(facts.counters.endpoint_buffer)),
    },
    Metric {
        name: "pod_buffer_duration_seconds",
        kind: Kind::Histogram,
        labels: &[],
        help: "Time that pods waited for their egress, from the first that waited",
        origin: Some("pod_buffer_duration_seconds"),
        read: |facts| one(Value::Histogram(facts.counters.pod_buffer)),
    },
    Metric {
        name: "locations_sync_duration_seconds",
        kind: Kind::Histogram,
        labels: &[],
        help: "Time that one sync of addresses took",
        origin: Some("locations_sync_duration_seconds"),
        read: |facts| one(Value::Histogram(facts.counters.syncs)),
    },
    Metric {
        name: "service_change_to_programmed_seconds",
        kind: Kind::Histogram,
        labels: &[],
        help: "Time from a change of what is wanted of a service to the end of the operation that made it so",
        origin: None,
        read: |facts| one(Value::Histogram(facts.counters.services_programmed)),
    },
    Metric {
        name: "address_change_to_programmed_seconds",
        kind: Kind::Histogram,
        labels: &[],
        help: "Time from a change of a pod or endpoint to Azure's confirmation of its address",
        origin: None,
        read: |facts| one(Value::Histogram(facts.counters.addresses_programmed)),
    },
    Metric {
        name: "service_creation_failures_total",
        kind: Counter,
        labels: &[],
        help: "Attempts to create a service that failed",
        origin: Some("service_creation_failures_total"),
        read: |facts| one(Value::Whole(facts.counters.creations_failed)),
    },
    Metric {
        name: "pod_promotion_total",
        kind: Counter,
        labels: &[],
        help: "Addresses of pods whose egress became ready",
        origin: Some("pod_promotion_total"),
        read: |facts| one(Value::Whole(facts.counters.pod_promotions)),
    },
    Metric {
        name: "pod_promotion_failures_total",
        kind: Counter,
        labels: &[],
        help: "Those of them that could not be sent, because their node has no address of the family",
        origin: Some("pod_promotion_failures_total"),
        read: |facts| one(Value::Whole(facts.counters.pod_promotion_failures)),
    },
    Metric {
        name: "buffered_endpoints",
        kind: Gauge,
        labels: &[],
        help: "Endpoints that wait for their service",
        origin: Some("buffered_endpoints_total"),
        read: |facts| one(Value::Whole(facts.gauges.buffered_endpoints)),
    },
    Metric {
        name: "buffered_pods",
        kind: Gauge,
        labels: &[],
        help: "Addresses of pods that wait for their egress",
        origin: Some("buffered_pods_total"),
        read: |facts| one(Value::Whole(facts.gauges.buffered_pods)),
    },
    Metric {
        name: "pending_deletions",
        kind: Gauge,
        labels: &[],
        help: "Services that are on their way out",
        origin: Some("pending_deletions_total"),
        read: |facts| one(Value::Whole(facts.gauges.pending_deletions)),
    },
    Metric {
        name: "service_updater_operations_active",
        kind: Gauge,
        labels: &[],
        help: "Operations in flight, whether they work or wait",
        origin: Some("x_updater_goroutines_active"),
        read: |facts| one(Value::Whole(facts.gauges.operations_active)),
    },
    Metric {
        name: "service_updater_slots_working",
        kind: Gauge,
        labels: &[],
        help: "Operations that have a slot",
        origin: None,
        read: |facts| one(Value::Whole(facts.slots_working)),
    },
    Metric {
        name: "service_updater_slots_waiting",
        kind: Gauge,
        labels: &[],
        help: "Services and operations that wait for a slot",
        origin: None,
        read: |facts| one(Value::Whole(facts.slots_waiting)),
    },
    Metric {
        name: "services",
        kind: Gauge,
        labels: &[DIRECTION, STATE],
        help: "Services by direction and state",
        origin: None,
        read: services,
    },
    Metric {
        name: "parked_services",
        kind: Gauge,
        labels: &[REASON],
        help: "Services whose next attempt is parked, by reason",
        origin: None,
        read: parked,
    },
    Metric {
        name: "parks_total",
        kind: Counter,
        labels: &[],
        help: "Times that a service was parked",
        origin: None,
        read: |facts| one(Value::Whole(facts.counters.parks)),
    },
    Metric {
        name: "lifecycle_triggers_total",
        kind: Counter,
        labels: &[STATE, TRIGGER],
        help: "How often each trigger met a service in each state; only those that did",
        origin: None,
        read: triggers,
    },
    Metric {
        name: "service_operations_started_total",
        kind: Counter,
        labels: &[],
        help: "Operations handed to the service updater",
        origin: None,
        read: |facts| one(Value::Whole(facts.counters.plans_started)),
    },
    Metric {
        name: "service_operations_succeeded_total",
        kind: Counter,
        labels: &[],
        help: "Operations that came to their end",
        origin: None,
        read: |facts| one(Value::Whole(facts.counters.plans_succeeded)),
    },
    Metric {
        name: "service_operations_failed_total",
        kind: Counter,
        labels: &[CLASS],
        help: "Operations that failed, by what one can do next",
        origin: None,
        read: failures,
    },
    Metric {
        name: "addresses_wanted",
        kind: Gauge,
        labels: &[],
        help: "Addresses that services should have",
        origin: None,
        read: |facts| one(Value::Whole(facts.totals.wanted as u64)),
    },
    Metric {
        name: "addresses_programmed",
        kind: Gauge,
        labels: &[],
        help: "Addresses that Azure is known to have",
        origin: None,
        read: |facts| one(Value::Whole(facts.totals.programmed as u64)),
    },
    Metric {
        name: "addresses_dirty",
        kind: Gauge,
        labels: &[],
        help: "Addresses whose two sides may differ and that wait to be sent",
        origin: None,
        read: |facts| one(Value::Whole(facts.totals.dirty as u64)),
    },
    Metric {
        name: "addresses_in_flight",
        kind: Gauge,
        labels: &[],
        help: "Addresses in the request that is under way",
        origin: None,
        read: |facts| one(Value::Whole(facts.totals.in_flight as u64)),
    },
    Metric {
        name: "addresses_undecided",
        kind: Gauge,
        labels: &[],
        help: "Addresses of which nobody knows whether Azure has them",
        origin: None,
        read: |facts| one(Value::Whole(facts.totals.either as u64)),
    },
    Metric {
        name: "quarantined_addresses",
        kind: Gauge,
        labels: &[],
        help: "Addresses that Azure refuses",
        origin: None,
        read: |facts| one(Value::Whole(facts.gauges.quarantined_addresses)),
    },
    Metric {
        name: "locations_syncs_total",
        kind: Counter,
        labels: &[],
        help: "Syncs of addresses that were begun",
        origin: None,
        read: |facts| one(Value::Whole(facts.totals.batches)),
    },
    Metric {
        name: "locations_sync_failures_total",
        kind: Counter,
        labels: &[],
        help: "Syncs of addresses that failed",
        origin: None,
        read: |facts| one(Value::Whole(facts.totals.failures)),
    },
    Metric {
        name: "drift_found_total",
        kind: Counter,
        labels: &[],
        help: "Differences from what we had written that two listings agreed on",
        origin: None,
        read: |facts| one(Value::Whole(facts.counters.drift_found)),
    },
    Metric {
        name: "drift_repaired_total",
        kind: Counter,
        labels: &[],
        help: "Those of them that are right again",
        origin: None,
        read: |facts| one(Value::Whole(facts.counters.drift_repaired)),
    },
    Metric {
        name: "orphans_found_total",
        kind: Counter,
        labels: &[],
        help: "Resources of ours that nobody wants and whose teardown was begun",
        origin: None,
        read: |facts| one(Value::Whole(facts.counters.orphans_found)),
    },
    Metric {
        name: "orphans_removed_total",
        kind: Counter,
        labels: &[],
        help: "Those of them of which nothing is left",
        origin: None,
        read: |facts| one(Value::Whole(facts.counters.orphans_removed)),
    },
    Metric {
        name: "mass_deletion_held",
        kind: Gauge,
        labels: &[],
        help: "Services whose teardown the brake holds, because too many would go at once",
        origin: None,
        read: |facts| one(Value::Whole(facts.gauges.held)),
    },
    Metric {
        name: "unclaimed_registrations",
        kind: Gauge,
        labels: &[],
        help: "Registrations that are unwanted and not provably ours",
        origin: None,
        read: |facts| one(Value::Whole(facts.gauges.unclaimed)),
    },
    Metric {
        name: "refused_inputs_total",
        kind: Counter,
        labels: &[],
        help: "Inputs that were not acted on because they were too old or made no sense",
        origin: None,
        read: |facts| one(Value::Whole(facts.counters.refusals)),
    },
    Metric {
        name: "internal_errors_total",
        kind: Counter,
        labels: &[],
        help: "Broken invariants that were noticed; each is a bug",
        origin: None,
        read: |facts| one(Value::Whole(facts.counters.internal_errors)),
    },
    Metric {
        name: "events_total",
        kind: Counter,
        labels: &[],
        help: "Events that the engine handled",
        origin: None,
        read: |facts| one(Value::Whole(facts.counters.events)),
    },
    Metric {
        name: "effects_total",
        kind: Counter,
        labels: &[],
        help: "Effects that the engine asked for",
        origin: None,
        read: |facts| one(Value::Whole(facts.counters.effects)),
    },
    Metric {
        name: "arm_calls_total",
        kind: Counter,
        labels: &[METHOD, KIND, STATUS],
        help: "Calls to Azure Resource Manager by method, kind of resource and how they ended",
        origin: None,
        read: calls,
    },
    Metric {
        name: "arm_call_duration_seconds",
        kind: Kind::Histogram,
        labels: &[METHOD],
        help: "Time that calls to Azure took, with the wait for a token",
        origin: None,
        read: call_durations,
    },
    Metric {
        name: "arm_sent_bytes_total",
        kind: Counter,
        labels: &[],
        help: "Bytes of bodies sent to Azure",
        origin: None,
        read: |facts| one(Value::Whole(facts.calls.bytes_sent)),
    },
    Metric {
        name: "arm_received_bytes_total",
        kind: Counter,
        labels: &[],
        help: "Bytes of bodies that came back, unpacked",
        origin: None,
        read: |facts| one(Value::Whole(facts.calls.bytes_received)),
    },
    Metric {
        name: "arm_lost_answers_total",
        kind: Counter,
        labels: &[],
        help: "Requests that nobody answered in time, or whose answer was lost",
        origin: None,
        read: |facts| one(Value::Whole(facts.numbers.lost)),
    },
    Metric {
        name: "arm_late_answers_total",
        kind: Counter,
        labels: &[],
        help: "Answers that came when nobody waited for them any more",
        origin: None,
        read: |facts| one(Value::Whole(facts.numbers.late_replies)),
    },
    Metric {
        name: "arm_operations_overdue_total",
        kind: Counter,
        labels: &[],
        help: "Operations of Azure that took longer than they may",
        origin: None,
        read: |facts| one(Value::Whole(facts.numbers.operations_overdue)),
    },
    Metric {
        name: "arm_operations_watched",
        kind: Gauge,
        labels: &[],
        help: "Operations that Azure works on and that are watched",
        origin: None,
        read: |facts| one(Value::Whole(facts.numbers.operations_watched as u64)),
    },
    Metric {
        name: "throttled_seconds_total",
        kind: Counter,
        labels: &[],
        help: "Time for which Azure asked us to pause, all lanes added up",
        origin: None,
        read: throttled_seconds,
    },
    Metric {
        name: "throttled_answers_total",
        kind: Counter,
        labels: &[],
        help: "Answers that asked for a pause",
        origin: None,
        read: |facts| one(Value::Whole(facts.numbers.throttled)),
    },
    Metric {
        name: "budget_window_calls",
        kind: Gauge,
        labels: &[BUCKET],
        help: "Our calls in Azure's window of five minutes",
        origin: None,
        read: window_calls,
    },
    Metric {
        name: "budget_window_limit",
        kind: Gauge,
        labels: &[BUCKET],
        help: "Our share of Azure's window of five minutes",
        origin: None,
        read: window_limits,
    },
    Metric {
        name: "budget_window_used_ratio",
        kind: Gauge,
        labels: &[BUCKET],
        help: "Part of our share of the window that is used",
        origin: None,
        read: window_used,
    },
    Metric {
        name: "budget_tokens",
        kind: Gauge,
        labels: &[LANE],
        help: "Calls that our share of the bucket would allow at once",
        origin: None,
        read: tokens,
    },
    Metric {
        name: "budget_queued_calls",
        kind: Gauge,
        labels: &[LANE],
        help: "Calls that wait for the budget or for the end of a pause",
        origin: None,
        read: queued,
    },
    Metric {
        name: "budget_paused_seconds",
        kind: Gauge,
        labels: &[LANE],
        help: "How long Azure wants nothing more through a lane, from now on",
        origin: None,
        read: paused,
    },
    Metric {
        name: "arm_remaining_calls",
        kind: Gauge,
        labels: &[REMAINING],
        help: "What Azure last said is left for everybody in the subscription",
        origin: None,
        read: remaining,
    },
    Metric {
        name: "leader",
        kind: Gauge,
        labels: &[],
        help: "1 on the replica that leads, else 0",
        origin: None,
        read: leader,
    },
    Metric {
        name: "initial_sync_done",
        kind: Gauge,
        labels: &[],
        help: "1 when every operation of the first difference has succeeded or is parked, else 0",
        origin: None,
        read: initial_sync,
    },
    Metric {
        name: "start_up_phase",
        kind: Gauge,
        labels: &[PHASE],
        help: "1 for what the start is at, 0 for everything else",
        origin: None,
        read: phase,
    },
    Metric {
        name: "gateway_ready",
        kind: Gauge,
        labels: &[],
        help: "1 when the gateway and its subnet are as we need them, else 0",
        origin: None,
        read: gateway_ready,
    },
    Metric {
        name: "initial_sync_services_left",
        kind: Gauge,
        labels: &[],
        help: "Services that the initial sync still has to bring to rest",
        origin: None,
        read: |facts| one(Value::Whole(facts.gauges.initial_sync_left)),
    },
    Metric {
        name: "watch_listed",
        kind: Gauge,
        labels: &[WATCHED],
        help: "1 when a complete list of the kind has come, else 0",
        origin: None,
        read: watch_listed,
    },
    Metric {
        name: "watch_objects",
        kind: Gauge,
        labels: &[WATCHED],
        help: "Objects in the last complete list",
        origin: None,
        read: watch_objects,
    },
    Metric {
        name: "watch_lists_total",
        kind: Counter,
        labels: &[WATCHED],
        help: "Complete lists",
        origin: None,
        read: watch_lists,
    },
    Metric {
        name: "watch_restarts_total",
        kind: Counter,
        labels: &[WATCHED],
        help: "How often a watch had to begin anew",
        origin: None,
        read: watch_restarts,
    },
    Metric {
        name: "loop_turns_total",
        kind: Counter,
        labels: &[],
        help: "Turns of the loop",
        origin: None,
        read: |facts| one(Value::Whole(facts.tally.turns)),
    },
    Metric {
        name: "loop_mails_total",
        kind: Counter,
        labels: &[],
        help: "Facts, replies and answers that the loop took out of its inbox",
        origin: None,
        read: |facts| one(Value::Whole(facts.tally.mails)),
    },
    Metric {
        name: "loop_inbox_depth_max",
        kind: Gauge,
        labels: &[],
        help: "Facts that have waited in the inbox at once at most",
        origin: None,
        read: |facts| one(Value::Whole(facts.tally.inbox_depth_max as u64)),
    },
    Metric {
        name: "loop_panics_total",
        kind: Counter,
        labels: &[],
        help: "Tasks that panicked; each is a bug",
        origin: None,
        read: |facts| one(Value::Whole(facts.tally.panics)),
    },
    Metric {
        name: "loop_wakes_in_vain_total",
        kind: Counter,
        labels: &[],
        help: "Deadlines that were still in the past after everything was done; each is a bug",
        origin: None,
        read: |facts| one(Value::Whole(facts.tally.wakes_in_vain)),
    },
    Metric {
        name: "event_streams",
        kind: Gauge,
        labels: &[],
        help: "Open streams of /api/v1/events",
        origin: None,
        read: |facts| one(Value::Whole(facts.streams_open)),
    },
    Metric {
        name: "process_start_time_seconds",
        kind: Gauge,
        labels: &[],
        help: "When the process started, in seconds since 1970",
        origin: None,
        read: started,
    },
    Metric {
        name: "build_info",
        kind: Info,
        labels: &[VERSION],
        help: "The version of the program",
        origin: None,
        read: build,
    },
];

fn one(value: Value) -> Vec<Series> {
    vec![Series { labels: Vec::new(), value }]
}

fn labelled(labels: &[&'static str], value: Value) -> Series {
    Series { labels: labels.to_vec(), value }
}

fn flag(holds: bool) -> Vec<Series> {
    one(Value::Whole(u64::from(holds)))
}

fn services(facts: &Facts) -> Vec<Series> {
    let mut all = Vec::new();
    for (direction, counts) in DIRECTIONS.into_iter().zip(facts.gauges.states) {
        for (state, count) in State::ALL.into_iter().zip(counts) {
            all.push(labelled(&[direction, state.word()], Value::Whole(count)));
        }
    }
    all
}

fn parked(facts: &Facts) -> Vec<Series> {
    let counts = Reason::ALL.into_iter().zip(facts.gauges.parked_for);
    counts.map(|(reason, count)| labelled(&[reason.word()], Value::Whole(count))).collect()
}

fn triggers(facts: &Facts) -> Vec<Series> {
    let mut all = Vec::new();
    for (state, cells) in State::ALL.into_iter().zip(facts.counters.cells) {
        for (trigger, count) in Trigger::ALL.into_iter().zip(cells).filter(|(_, count)| *count > 0) {
            all.push(labelled(&[state.word(), trigger.word()], Value::Whole(count)));
        }
    }
    all
}

fn calls(facts: &Facts) -> Vec<Series> {
    let ended = facts.calls.ended.iter();
    ended
        .map(|((method, kind, status), count)| labelled(&[method, kind, status], Value::Whole(*count)))
        .collect()
}

fn call_durations(facts: &Facts) -> Vec<Series> {
    let took = facts.calls.took.iter();
    took.map(|(method, took): (_, &Histogram)| labelled(&[method], Value::Histogram(*took))).collect()
}

fn throttled_seconds(facts: &Facts) -> Vec<Series> {
    one(Value::Real(facts.numbers.throttled_ms as f64 / 1_000.0))
}

/// Calls in the window and our share of it, for reads and for writes.
fn windows(facts: &Facts) -> [(&'static str, u32, u32); 2] {
    [
        ("reads", facts.numbers.reads_in_window, facts.window_limits.reads),
        ("writes", facts.numbers.writes_in_window, facts.window_limits.writes),
    ]
}

fn window_calls(facts: &Facts) -> Vec<Series> {
    windows(facts).map(|(bucket, calls, _)| labelled(&[bucket], Value::Whole(calls.into()))).to_vec()
}

fn window_limits(facts: &Facts) -> Vec<Series> {
    windows(facts).map(|(bucket, _, limit)| labelled(&[bucket], Value::Whole(limit.into()))).to_vec()
}

fn window_used(facts: &Facts) -> Vec<Series> {
    let used = |calls: u32, limit: u32| if limit == 0 { 0.0 } else { f64::from(calls) / f64::from(limit) };
    windows(facts).map(|(bucket, calls, limit)| labelled(&[bucket], Value::Real(used(calls, limit)))).to_vec()
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

fn tokens(facts: &Facts) -> Vec<Series> {
    lanes(facts, |gate| Value::Whole(gate.tokens.into()))
}

fn queued(facts: &Facts) -> Vec<Series> {
    lanes(facts, |gate| Value::Whole(gate.queued as u64))
}

fn paused(facts: &Facts) -> Vec<Series> {
    let now = facts.now;
    lanes(facts, |gate| Value::Real(gate.paused_until.map_or(0.0, |until| until.since(now).as_secs_f64())))
}

/// Only what Azure has said something about.
fn remaining(facts: &Facts) -> Vec<Series> {
    let left = &facts.numbers.remaining;
    let all = [("reads", left.reads), ("writes", left.writes), ("deletes", left.deletes)];
    let known = all.into_iter().filter_map(|(bucket, calls)| Some((bucket, calls?)));
    known.map(|(bucket, calls)| labelled(&[bucket], Value::Whole(calls.into()))).collect()
}

fn leader(facts: &Facts) -> Vec<Series> {
    flag(facts.role == Role::Leader)
}

fn initial_sync(facts: &Facts) -> Vec<Series> {
    flag(facts.phase == Phase::Done)
}

fn gateway_ready(facts: &Facts) -> Vec<Series> {
    flag(facts.gateway_ready)
}

fn phase(facts: &Facts) -> Vec<Series> {
    let all = Phase::ALL.into_iter();
    all.map(|phase| labelled(&[phase.word()], Value::Whole(u64::from(phase == facts.phase)))).collect()
}

fn failures(facts: &Facts) -> Vec<Series> {
    let counts = FailureClass::ALL.into_iter().zip(facts.counters.failures);
    counts.map(|(class, count)| labelled(&[class.word()], Value::Whole(count))).collect()
}

/// The kinds that we know; a line of any other name is not a label.
fn watches(facts: &Facts, value: impl Fn(&WatchLine) -> u64) -> Vec<Series> {
    let known = Watched::ALL.map(kind_word).into_iter();
    let lines = known.filter_map(|word| Some((word, facts.watches.iter().find(|line| line.kind == word)?)));
    lines.map(|(word, line)| labelled(&[word], Value::Whole(value(line)))).collect()
}

fn watch_listed(facts: &Facts) -> Vec<Series> {
    watches(facts, |line| u64::from(line.listed))
}

fn watch_objects(facts: &Facts) -> Vec<Series> {
    watches(facts, |line| line.objects)
}

fn watch_lists(facts: &Facts) -> Vec<Series> {
    watches(facts, |line| line.lists)
}

fn watch_restarts(facts: &Facts) -> Vec<Series> {
    watches(facts, |line| line.restarts)
}

fn started(facts: &Facts) -> Vec<Series> {
    one(Value::Real(facts.started_seconds))
}

fn build(_: &Facts) -> Vec<Series> {
    vec![labelled(&[env!("CARGO_PKG_VERSION")], Value::Whole(1))]
}
