//! The rows: one for every metric.

use sluice_engine::{Phase, Trigger};
use sluice_model::FailureClass;

use super::calls::{KINDS, METHODS, STATUSES};
use super::read::{self, DIRECTIONS, LANES, spans, whole};
use super::{Facts, Kind, Label, Metric, Series, reasons, states, watched};

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

type Read = fn(&Facts) -> Vec<Series>;

const fn row(kind: Kind, name: &'static str, help: &'static str, read: Read) -> Metric {
    Metric { name, kind, labels: &[], help, origin: None, read }
}

const fn counter(name: &'static str, help: &'static str, read: Read) -> Metric {
    row(Kind::Counter, name, help, read)
}

const fn gauge(name: &'static str, help: &'static str, read: Read) -> Metric {
    row(Kind::Gauge, name, help, read)
}

const fn histogram(name: &'static str, help: &'static str, read: Read) -> Metric {
    row(Kind::Histogram, name, help, read)
}

impl Metric {
    /// One series for each of these, as far as there is something to tell.
    const fn by(self, labels: &'static [Label]) -> Metric {
        Metric { labels, ..self }
    }

    /// The design documents have it under this name.
    const fn known_as(self, origin: &'static str) -> Metric {
        Metric { origin: Some(origin), ..self }
    }
}

/// Every metric.
pub(crate) const TABLE: &[Metric] = &[
    // The metrics of the design documents.
    histogram(
        "service_creation_duration_seconds",
        "Time from a service being wanted to its being created",
        |facts| spans(facts.counters.creations),
    )
    .known_as("service_creation_duration_seconds"),
    histogram(
        "service_deletion_duration_seconds",
        "Time from a service not being wanted any more to nothing of it being left",
        |facts| spans(facts.counters.deletions),
    )
    .known_as("service_deletion_duration_seconds"),
    histogram(
        "endpoint_buffer_duration_seconds",
        "Time that endpoints waited for their service, from the first that waited",
        |facts| spans(facts.counters.endpoint_buffer),
    )
    .known_as("endpoint_buffer_duration_seconds"),
    histogram(
        "pod_buffer_duration_seconds",
        "Time that pods waited for their egress, from the first that waited",
        |facts| spans(facts.counters.pod_buffer),
    )
    .known_as("pod_buffer_duration_seconds"),
    histogram("locations_sync_duration_seconds", "Time that one sync of addresses took", |facts| {
        spans(facts.counters.syncs)
    })
    .known_as("locations_sync_duration_seconds"),
    histogram(
        "service_change_to_programmed_seconds",
        "Time from a change of what is wanted of a service to the end of the operation that made it so",
        |facts| spans(facts.counters.services_programmed),
    ),
    histogram(
        "address_change_to_programmed_seconds",
        "Time from a change of a pod or endpoint to Azure's confirmation of its address",
        |facts| spans(facts.counters.addresses_programmed),
    ),
    counter("service_creation_failures_total", "Attempts to create a service that failed", |facts| {
        whole(facts.counters.creations_failed)
    })
    .known_as("service_creation_failures_total"),
    counter("pod_promotion_total", "Addresses of pods whose egress became ready", |facts| {
        whole(facts.counters.pod_promotions)
    })
    .known_as("pod_promotion_total"),
    counter(
        "pod_promotion_failures_total",
        "Addresses of pods that cannot be sent although their egress is ready: no address of the family on their node, or refused by Azure",
        |facts| whole(facts.counters.pod_promotion_failures),
    )
    .known_as("pod_promotion_failures_total"),
    gauge("buffered_endpoints", "Endpoints that wait for their service", |facts| {
        whole(facts.gauges.buffered_endpoints)
    })
    .known_as("buffered_endpoints_total"),
    gauge("buffered_pods", "Addresses of pods that wait for their egress", |facts| {
        whole(facts.gauges.buffered_pods)
    })
    .known_as("buffered_pods_total"),
    gauge("pending_deletions", "Services that are on their way out", |facts| {
        whole(facts.gauges.pending_deletions)
    })
    .known_as("pending_deletions_total"),
    gauge("service_updater_operations_active", "Operations in flight, whether they work or wait", |facts| {
        whole(facts.gauges.operations_active)
    })
    .known_as("x_updater_goroutines_active"),
    // Services.
    gauge("service_updater_slots_working", "Operations that have a slot", |facts| whole(facts.slots_working)),
    gauge("service_updater_slots_waiting", "Services and operations that wait for a slot", |facts| {
        whole(facts.slots_waiting)
    }),
    gauge("services", "Services by direction and state", read::services).by(&[DIRECTION, STATE]),
    gauge(
        "services_in_trouble",
        "Services whose desired state is not programmed for longer than ordinary work takes, by reason",
        read::trouble,
    )
    .by(&[REASON]),
    gauge("parked_services", "Services whose next attempt is parked, by reason", read::parked).by(&[REASON]),
    counter("parks_total", "Times that a service was parked", |facts| whole(facts.counters.parks)),
    counter(
        "lifecycle_triggers_total",
        "How often each trigger met a service in each state; only those that did",
        read::triggers,
    )
    .by(&[STATE, TRIGGER]),
    counter("service_operations_started_total", "Operations handed to the service updater", |facts| {
        whole(facts.counters.plans_started)
    }),
    counter("service_operations_succeeded_total", "Operations that came to their end", |facts| {
        whole(facts.counters.plans_succeeded)
    }),
    counter(
        "service_operations_failed_total",
        "Operations that failed, by what one can do next",
        read::failures,
    )
    .by(&[CLASS]),
    // Addresses.
    gauge("addresses_wanted", "Addresses that services should have", |facts| {
        whole(facts.gauges.addresses_wanted)
    }),
    gauge("addresses_programmed", "Addresses that Azure is known to have", |facts| {
        whole(facts.totals.programmed as u64)
    }),
    gauge("addresses_dirty", "Addresses whose two sides may differ and that wait to be sent", |facts| {
        whole(facts.totals.dirty as u64)
    }),
    gauge("addresses_in_flight", "Addresses in the request that is under way", |facts| {
        whole(facts.totals.in_flight as u64)
    }),
    gauge("addresses_undecided", "Addresses of which nobody knows whether Azure has them", |facts| {
        whole(facts.totals.either as u64)
    }),
    gauge("quarantined_addresses", "Addresses that Azure refuses", |facts| {
        whole(facts.gauges.quarantined_addresses)
    }),
    counter("locations_syncs_total", "Syncs of addresses that were begun", |facts| {
        whole(facts.totals.batches)
    }),
    counter("locations_sync_failures_total", "Syncs of addresses that failed", |facts| {
        whole(facts.totals.failures)
    }),
    // Drift, orphans, and what was not acted on.
    counter(
        "drift_found_total",
        "Differences from what we had written that two listings agreed on",
        |facts| whole(facts.counters.drift_found),
    ),
    counter("drift_repaired_total", "Those of them that are right again", |facts| {
        whole(facts.counters.drift_repaired)
    }),
    counter(
        "orphans_found_total",
        "Resources of ours that nobody wants and whose teardown was begun",
        |facts| whole(facts.counters.orphans_found),
    ),
    counter("orphans_removed_total", "Those of them of which nothing is left", |facts| {
        whole(facts.counters.orphans_removed)
    }),
    gauge(
        "mass_deletion_held",
        "Services whose teardown the brake holds, because too many would go at once",
        |facts| whole(facts.gauges.held),
    ),
    gauge("unclaimed_registrations", "Registrations that are unwanted and not provably ours", |facts| {
        whole(facts.gauges.unclaimed)
    }),
    counter(
        "refused_inputs_total",
        "Inputs that were not acted on because they were too old or made no sense",
        |facts| whole(facts.counters.refusals),
    ),
    counter("internal_errors_total", "Broken invariants that were noticed; each is a bug", |facts| {
        whole(facts.counters.internal_errors)
    }),
    counter("events_total", "Events that the engine handled", |facts| whole(facts.counters.events)),
    counter("effects_total", "Effects that the engine asked for", |facts| whole(facts.counters.effects)),
    // Calls to Azure.
    counter(
        "arm_calls_total",
        "Calls to Azure Resource Manager by method, kind of resource and how they ended",
        read::calls,
    )
    .by(&[METHOD, KIND, STATUS]),
    histogram(
        "arm_call_duration_seconds",
        "Time that calls to Azure took, with the wait for a token",
        read::call_durations,
    )
    .by(&[METHOD]),
    counter("arm_sent_bytes_total", "Bytes of bodies sent to Azure", |facts| whole(facts.calls.bytes_sent)),
    counter("arm_received_bytes_total", "Bytes of bodies that came back, unpacked", |facts| {
        whole(facts.calls.bytes_received)
    }),
    counter(
        "arm_lost_answers_total",
        "Requests that nobody answered in time, or whose answer was lost",
        |facts| whole(facts.numbers.lost),
    ),
    counter("arm_late_answers_total", "Answers that came when nobody waited for them any more", |facts| {
        whole(facts.numbers.late_replies)
    }),
    counter("arm_operations_overdue_total", "Operations of Azure that took longer than they may", |facts| {
        whole(facts.numbers.operations_overdue)
    }),
    gauge("arm_operations_watched", "Operations that Azure works on and that are watched", |facts| {
        whole(facts.numbers.operations_watched as u64)
    }),
    // The budget.
    counter(
        "throttled_seconds_total",
        "Time for which Azure asked us to pause, all lanes added up",
        read::throttled_seconds,
    ),
    counter("throttled_answers_total", "Answers that asked for a pause", |facts| {
        whole(facts.numbers.throttled)
    }),
    gauge("budget_window_calls", "Our calls in Azure's window of five minutes", read::window_calls)
        .by(&[BUCKET]),
    gauge("budget_window_limit", "Our share of Azure's window of five minutes", read::window_limits)
        .by(&[BUCKET]),
    gauge("budget_window_used_ratio", "Part of our share of the window that is used", read::window_used)
        .by(&[BUCKET]),
    gauge("budget_tokens", "Calls that our share of the bucket would allow at once", read::tokens)
        .by(&[LANE]),
    gauge("budget_queued_calls", "Calls that wait for the budget or for the end of a pause", read::queued)
        .by(&[LANE]),
    gauge(
        "budget_paused_seconds",
        "How long Azure wants nothing more through a lane, from now on",
        read::paused,
    )
    .by(&[LANE]),
    gauge(
        "arm_remaining_calls",
        "What Azure last said is left for everybody in the subscription",
        read::remaining,
    )
    .by(&[REMAINING]),
    // The process among its replicas, and its start.
    gauge("leader", "1 on the replica that leads, else 0", read::leader),
    gauge(
        "initial_sync_done",
        "1 when every operation of the first difference has succeeded or is parked, else 0",
        read::initial_sync,
    ),
    gauge("start_up_phase", "1 for what the start is at, 0 for everything else", read::phase).by(&[PHASE]),
    gauge(
        "gateway_ready",
        "1 when the gateway and its subnet are as we need them, else 0",
        read::gateway_ready,
    ),
    gauge("azure_listings_failing", "1 while listings of Azure fail for longer than 30 s, else 0", |facts| {
        whole(u64::from(facts.azure_trouble))
    }),
    gauge(
        "initial_sync_services_left",
        "Services that the initial sync still has to bring to rest",
        |facts| whole(facts.gauges.initial_sync_left),
    ),
    // The watches.
    gauge("watch_listed", "1 when a complete list of the kind has come, else 0", read::watch_listed)
        .by(&[WATCHED]),
    gauge("watch_objects", "Objects that the watch knows of", read::watch_objects).by(&[WATCHED]),
    gauge(
        "watch_in_trouble",
        "1 while a watch fails, so that changes are not seen, else 0",
        read::watch_trouble,
    )
    .by(&[WATCHED]),
    counter("watch_lists_total", "Complete lists", read::watch_lists).by(&[WATCHED]),
    counter(
        "watch_skipped_total",
        "Objects that were skipped because they cannot be read",
        read::watch_skipped,
    )
    .by(&[WATCHED]),
    counter("watch_restarts_total", "How often a watch had to begin anew", read::watch_restarts)
        .by(&[WATCHED]),
    // What is told to people.
    counter(
        "notices_held_back_total",
        "Notices that were not written as events, because too many were due at once",
        |facts| whole(facts.tally.notices_held_back),
    ),
    // The loop.
    counter("loop_turns_total", "Turns of the loop", |facts| whole(facts.tally.turns)),
    counter("loop_mails_total", "Facts, replies and answers that the loop took out of its inbox", |facts| {
        whole(facts.tally.mails)
    }),
    gauge("loop_inbox_depth_max", "Facts that have waited in the inbox at once at most", |facts| {
        whole(facts.tally.inbox_depth_max as u64)
    }),
    counter("loop_panics_total", "Tasks that panicked; each is a bug", |facts| whole(facts.tally.panics)),
    counter(
        "loop_wakes_in_vain_total",
        "Deadlines that were still in the past after everything was done; each is a bug",
        |facts| whole(facts.tally.wakes_in_vain),
    ),
    gauge("event_streams", "Open streams of /api/v1/events", |facts| whole(facts.streams_open)),
    gauge("process_start_time_seconds", "When the process started, in seconds since 1970", read::started),
    row(Kind::Info, "build_info", "The version of the program", read::build).by(&[VERSION]),
];
