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
const RESOURCE_TYPE: Label = Label { name: "resource_type", words: || KINDS.to_vec() };
const STATUS: Label = Label { name: "status", words: || STATUSES.to_vec() };
const WINDOW: Label = Label { name: "window", words: || vec!["reads", "writes"] };
const RATE_LIMIT: Label = Label { name: "rate_limit", words: || vec!["reads", "writes", "deletes"] };
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
        "Time from when Kubernetes needs a gateway service until it is created in Azure",
        |facts| spans(facts.counters.creations),
    )
    .known_as("service_creation_duration_seconds"),
    histogram(
        "service_deletion_duration_seconds",
        "Time from when Kubernetes stops needing a gateway service until it is deleted in Azure",
        |facts| spans(facts.counters.deletions),
    )
    .known_as("service_deletion_duration_seconds"),
    histogram(
        "endpoint_buffer_duration_seconds",
        "Buffer time of each endpoint, from when its Service's first endpoint was buffered",
        |facts| spans(facts.counters.endpoint_buffer),
    )
    .known_as("endpoint_buffer_duration_seconds"),
    histogram(
        "pod_buffer_duration_seconds",
        "Buffer time of each pod address, from when its egress's first address was buffered",
        |facts| spans(facts.counters.pod_buffer),
    )
    .known_as("pod_buffer_duration_seconds"),
    histogram(
        "locations_sync_duration_seconds",
        "Duration of one address sync (an update of addresses in the service gateway)",
        |facts| spans(facts.counters.syncs),
    )
    .known_as("locations_sync_duration_seconds"),
    histogram(
        "service_change_to_programmed_seconds",
        "Time from a change of the desired state of a gateway service until Azure confirmed it",
        |facts| spans(facts.counters.services_programmed),
    ),
    histogram(
        "address_change_to_programmed_seconds",
        "Time from a pod or endpoint change until Azure confirmed the address",
        |facts| spans(facts.counters.addresses_programmed),
    ),
    counter("service_creation_failures_total", "Failed attempts to create a gateway service", |facts| {
        whole(facts.counters.creations_failed)
    })
    .known_as("service_creation_failures_total"),
    counter(
        "pod_promotion_total",
        "Pod addresses released from the buffer because their egress was registered",
        |facts| whole(facts.counters.pod_promotions),
    )
    .known_as("pod_promotion_total"),
    counter(
        "pod_promotion_failures_total",
        "Pod addresses not programmed: rejected by Azure, or without a node IP of the same family",
        |facts| whole(facts.counters.pod_promotion_failures),
    )
    .known_as("pod_promotion_failures_total"),
    gauge("buffered_endpoints", "Endpoints buffered until their Service is registered", |facts| {
        whole(facts.gauges.buffered_endpoints)
    })
    .known_as("buffered_endpoints_total"),
    gauge("buffered_pods", "Pod addresses buffered until their egress is registered", |facts| {
        whole(facts.gauges.buffered_pods)
    })
    .known_as("buffered_pods_total"),
    gauge("pending_deletions", "Gateway services being drained or deleted", |facts| {
        whole(facts.gauges.pending_deletions)
    })
    .known_as("pending_deletions_total"),
    gauge(
        "service_updater_operations_active",
        "Operations in progress, with or without a concurrency slot",
        |facts| whole(facts.gauges.operations_active),
    )
    .known_as("x_updater_goroutines_active"),
    // Services.
    gauge("service_updater_slots_in_use", "Operations that hold a concurrency slot", |facts| {
        whole(facts.slots_working)
    }),
    gauge(
        "service_updater_slots_waiting",
        "Gateway services whose operation waits for a concurrency slot to start or to continue",
        |facts| whole(facts.slots_waiting),
    ),
    gauge("services", "Gateway services, by direction and state", read::services).by(&[DIRECTION, STATE]),
    gauge(
        "services_in_trouble",
        "Gateway services with a failure or an overdue change, by reason",
        read::trouble,
    )
    .by(&[REASON]),
    gauge(
        "parked_services",
        "Gateway services parked (retry after a long wait) or waiting for a spec change, by reason",
        read::parked,
    )
    .by(&[REASON]),
    counter("parks_total", "Times that a gateway service was parked after a failed operation", |facts| {
        whole(facts.counters.parks)
    }),
    counter(
        "lifecycle_triggers_total",
        "Lifecycle triggers processed, by gateway service state and trigger",
        read::triggers,
    )
    .by(&[STATE, TRIGGER]),
    counter("service_operations_started_total", "Operations started by the service updater", |facts| {
        whole(facts.counters.plans_started)
    }),
    counter("service_operations_succeeded_total", "Operations completed successfully", |facts| {
        whole(facts.counters.plans_succeeded)
    }),
    counter("service_operations_failed_total", "Failed operations, by failure class", read::failures)
        .by(&[CLASS]),
    // Addresses.
    gauge("addresses_desired", "Desired addresses of all gateway services", |facts| {
        whole(facts.gauges.addresses_wanted)
    }),
    gauge("addresses_programmed", "Addresses confirmed by Azure", |facts| {
        whole(facts.totals.programmed as u64)
    }),
    gauge("addresses_dirty", "Addresses queued for an update", |facts| whole(facts.totals.dirty as u64)),
    gauge(
        "addresses_in_flight",
        "Addresses in the update request that Azure has not answered yet",
        |facts| whole(facts.totals.in_flight as u64),
    ),
    gauge("addresses_uncertain", "Addresses whose last update has an unknown outcome", |facts| {
        whole(facts.totals.either as u64)
    }),
    gauge(
        "quarantined_addresses",
        "Quarantined addresses: rejected by Azure and retried periodically",
        |facts| whole(facts.gauges.quarantined_addresses),
    ),
    counter("locations_syncs_total", "Address syncs started", |facts| whole(facts.totals.batches)),
    counter("locations_sync_failures_total", "Failed address syncs", |facts| whole(facts.totals.failures)),
    // Drift, orphans, and what was not acted on.
    counter(
        "drift_found_total",
        "Drift: differences from the last known state, usually confirmed by two lists",
        |facts| whole(facts.counters.drift_found),
    ),
    counter("drift_repaired_total", "Drift repaired", |facts| whole(facts.counters.drift_repaired)),
    counter("orphans_found_total", "Orphaned gateway services found (managed but not desired)", |facts| {
        whole(facts.counters.orphans_found)
    }),
    counter("orphans_removed_total", "Orphaned gateway services deleted completely", |facts| {
        whole(facts.counters.orphans_removed)
    }),
    gauge(
        "mass_deletion_held_services",
        "Gateway services whose deletion is held by the mass-deletion guard",
        |facts| whole(facts.gauges.held),
    ),
    gauge("unclaimed_registrations", "Unmanaged registrations that no Service or egress needs", |facts| {
        whole(facts.gauges.unclaimed)
    }),
    counter(
        "ignored_inputs_total",
        "Kubernetes objects, lists and Azure results ignored as stale or invalid",
        |facts| whole(facts.counters.refusals),
    ),
    counter("internal_errors_total", "Invariant violations detected (each is a bug)", |facts| {
        whole(facts.counters.internal_errors)
    }),
    // Calls to Azure.
    counter(
        "arm_calls_total",
        "Azure Resource Manager calls, by method, resource type and status",
        read::calls,
    )
    .by(&[METHOD, RESOURCE_TYPE, STATUS]),
    histogram(
        "arm_call_duration_seconds",
        "Duration of Azure Resource Manager calls, including the wait for an access token",
        read::call_durations,
    )
    .by(&[METHOD]),
    counter("arm_sent_bytes_total", "Request body bytes sent to Azure", |facts| {
        whole(facts.calls.bytes_sent)
    }),
    counter(
        "arm_received_bytes_total",
        "Response body bytes received from Azure, after decompression",
        |facts| whole(facts.calls.bytes_received),
    ),
    counter(
        "arm_lost_responses_total",
        "Azure requests without a response: timed out or connection lost",
        |facts| whole(facts.numbers.lost),
    ),
    counter(
        "arm_late_responses_total",
        "Azure responses received after the request was abandoned",
        |facts| whole(facts.numbers.late_replies),
    ),
    counter("arm_operations_overdue_total", "Azure operations that exceeded their time limit", |facts| {
        whole(facts.numbers.operations_overdue)
    }),
    gauge("arm_operations_watched", "Azure operations in progress that are being polled", |facts| {
        whole(facts.numbers.operations_watched as u64)
    }),
    // The budget.
    counter(
        "throttled_seconds_total",
        "Total time of the pauses that Azure requested, summed over all lanes",
        read::throttled_seconds,
    ),
    counter(
        "throttled_responses_total",
        "Azure responses that requested a pause before the next call",
        |facts| whole(facts.numbers.throttled),
    ),
    gauge(
        "budget_window_calls",
        "Calls by Sluice in the current rate limit window of Microsoft.Network",
        read::window_calls,
    )
    .by(&[WINDOW]),
    gauge(
        "budget_window_limit",
        "Calls that Sluice may make in each rate limit window of Microsoft.Network",
        read::window_limits,
    )
    .by(&[WINDOW]),
    gauge(
        "budget_window_used_ratio",
        "Used fraction of the calls that Sluice may make in the current rate limit window",
        read::window_used,
    )
    .by(&[WINDOW]),
    gauge("budget_tokens", "Calls that Sluice's token bucket allows without a wait, by lane", read::tokens)
        .by(&[LANE]),
    gauge("budget_queued_calls", "Calls waiting for budget or for the end of a pause, by lane", read::queued)
        .by(&[LANE]),
    gauge("budget_paused_seconds", "Remaining time of the pause that Azure requested, by lane", read::paused)
        .by(&[LANE]),
    gauge(
        "arm_remaining_calls",
        "Remaining calls of the whole subscription as last reported by Azure, by rate limit",
        read::remaining,
    )
    .by(&[RATE_LIMIT]),
    // The process among its replicas, and its start.
    gauge("leader", "Whether this replica is the leader (1 = yes)", read::leader),
    gauge(
        "initial_sync_done",
        "Whether the initial sync is done: each operation succeeded or is parked (1 = yes)",
        read::initial_sync,
    ),
    gauge("startup_phase", "Current start-up phase (1 = active)", read::phase).by(&[PHASE]),
    gauge(
        "gateway_ready",
        "Whether the service gateway exists, is usable and has its subnet attached (1 = yes)",
        read::gateway_ready,
    ),
    gauge(
        "azure_listings_failing",
        "Whether a listing of Azure resources has failed for 30 s or longer (1 = yes)",
        |facts| whole(u64::from(facts.azure_trouble)),
    ),
    gauge(
        "initial_sync_services_remaining",
        "Gateway services that the initial sync has not finished yet",
        |facts| whole(facts.gauges.initial_sync_left),
    ),
    // The watches.
    gauge(
        "watch_listed",
        "Whether the API server has sent a complete list, by kind (1 = yes)",
        read::watch_listed,
    )
    .by(&[WATCHED]),
    gauge("watch_objects", "Objects known to the watch, by kind", read::watch_objects).by(&[WATCHED]),
    gauge(
        "watch_in_trouble",
        "Whether the watch fails and Sluice misses changes, by kind (1 = yes)",
        read::watch_trouble,
    )
    .by(&[WATCHED]),
    counter("watch_lists_total", "Complete lists received from the API server, by kind", read::watch_lists)
        .by(&[WATCHED]),
    counter(
        "watch_objects_skipped_total",
        "Objects skipped because they could not be decoded, by kind",
        read::watch_skipped,
    )
    .by(&[WATCHED]),
    counter("watch_restarts_total", "Watch restarts, by kind", read::watch_restarts).by(&[WATCHED]),
    // What is told to people.
    counter(
        "notices_suppressed_total",
        "Kubernetes events not written because of Sluice's rate limit for events or a full queue",
        |facts| whole(facts.tally.notices_held_back),
    ),
    // The loop.
    gauge(
        "loop_inbox_depth_max",
        "Highest number of messages waiting in the inbox of the control loop",
        |facts| whole(facts.tally.inbox_depth_max as u64),
    ),
    counter("loop_panics_total", "Panicked tasks (each is a bug)", |facts| whole(facts.tally.panics)),
    counter(
        "loop_overdue_deadlines_total",
        "Deadlines that a control loop iteration should have handled but did not (each is a bug)",
        |facts| whole(facts.tally.wakes_in_vain),
    ),
    gauge("event_streams", "Open event streams of /api/v1/events", |facts| whole(facts.streams_open)),
    gauge(
        "process_start_time_seconds",
        "Start time of the process, in seconds since the Unix epoch",
        read::started,
    ),
    row(Kind::Info, "build_info", "Version of Sluice", read::build).by(&[VERSION]),
];
