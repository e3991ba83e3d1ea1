//! Every item of the three design documents that must be accounted for.
//!
//! Taken from the documents by their own numbers and names. The plan skips 7.6 (swallowed by
//! 7.5), 10.16, and step T4 of the outbound deletion; so do we.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// The numbers of the plan's checklist, by phase.
const CHECKLIST: [(u8, RangeInclusive<u8>, &[u8]); 13] = [
    (0, 1..=10, &[]),
    (1, 1..=6, &[]),
    (2, 1..=11, &[]),
    (3, 1..=8, &[]),
    (4, 1..=4, &[]),
    (5, 1..=4, &[]),
    (6, 1..=7, &[]),
    (7, 1..=7, &[6]),
    (8, 1..=7, &[]),
    (9, 1..=8, &[]),
    (10, 1..=19, &[16]),
    (11, 1..=10, &[]),
    (12, 1..=10, &[]),
];

const TESTS: [&str; 27] = [
    "TestDeletionCheckerMultipleDeletions",
    "TestDeletionCheckerTriggersXUpdater",
    "TestDeletionCheckerWaitsForLocations",
    "TestEngineAddPod_ServiceCreating",
    "TestEngineAddPod_ServiceExists",
    "TestEngineAddPod_ServiceNotExists",
    "TestEngineAddService",
    "TestEngineDeletePod_LastPod",
    "TestEngineDeletePod_NotLastPod",
    "TestEngineDeleteService",
    "TestEngineUpdateEndpoints_Buffering",
    "TestInboundServiceCreation_WithEarlyEndpoints",
    "TestLastPodDeletion",
    "TestMultiplePodsBuffered",
    "TestMultipleServicesParallel",
    "TestOutboundNATGatewayCreation_WithEarlyPods",
    "TestPodAddedAfterNATGateway",
    "TestPodAddedBeforeNATGateway",
    "TestPromoteBufferedEndpoints",
    "TestPromoteBufferedPods",
    "TestServiceDeletion_OrderedCleanup",
    "TestXUpdaterCreateInboundService",
    "TestXUpdaterCreateOutboundService",
    "TestXUpdaterDeleteInboundService",
    "TestXUpdaterDeleteOutboundService",
    "TestXUpdaterParallelExecution",
    "TestXUpdaterRetryLogic",
];

const METRICS: [&str; 12] = [
    "buffered_endpoints_total",
    "buffered_pods_total",
    "endpoint_buffer_duration_seconds",
    "locations_sync_duration_seconds",
    "pending_deletions_total",
    "pod_buffer_duration_seconds",
    "pod_promotion_failures_total",
    "pod_promotion_total",
    "service_creation_duration_seconds",
    "service_creation_failures_total",
    "service_deletion_duration_seconds",
    "x_updater_goroutines_active",
];

/// The plan's flows, step by step.
const FLOWS: [(&str, &[&str]); 7] = [
    ("inbound", &["T0", "T1", "T2", "T3", "T4", "T5", "T6", "T7", "T8", "T9", "T10", "T11"]),
    ("early-endpoints", &["T2.5", "T2.6", "T2.7", "T2.8", "T8"]),
    ("outbound", &["T0", "T1", "T2", "T3", "T4", "T5", "T6", "T7", "T8", "T9", "T10", "T11", "T12"]),
    ("several-pods", &["T0", "T1", "T2", "T7", "T11"]),
    (
        "inbound-deletion",
        &["T0", "T1", "T2", "T3", "T4", "T5", "T6", "T7", "T8", "T9", "T10", "T11", "T12", "T13"],
    ),
    (
        "outbound-deletion",
        &["T0", "T1", "T2", "T3", "T5", "T6", "T7", "T8", "T9", "T10", "T11", "T12", "T13"],
    ),
    (
        "timeline",
        &[
            "T0", "T1", "T2", "T3", "T4", "T5", "T6", "T7", "T8", "T9", "T10", "T11", "T12", "T13", "T14",
            "T15",
        ],
    ),
];

/// What is simply numbered: the phases of the three sequence diagrams, the failure scenarios, the questions.
const NUMBERED: [(&str, u8); 6] = [
    ("inbound-diagram", 7),
    ("outbound-diagram", 8),
    ("start-up-diagram", 10),
    ("failure", 3),
    ("open-question", 3),
    ("review-question", 6),
];

/// Every item, by the name that its row carries.
pub(super) fn all() -> BTreeSet<String> {
    let mut items = BTreeSet::from(["start-up-diagram Runtime".to_string()]);
    for (phase, numbers, skipped) in CHECKLIST {
        items.extend(
            numbers.filter(|number| !skipped.contains(number)).map(|number| format!("{phase}.{number}")),
        );
    }
    items.extend(TESTS.iter().chain(&METRICS).map(|name| name.to_string()));
    for (flow, steps) in FLOWS {
        items.extend(steps.iter().map(|step| format!("{flow} {step}")));
    }
    for (name, last) in NUMBERED {
        items.extend((1..=last).map(|number| format!("{name} {number}")));
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_as_long_as_the_documents_say() {
        let numbered = all().iter().filter(|item| item.starts_with(|c: char| c.is_ascii_digit())).count();
        assert_eq!(numbered, 109);
        let flow_steps: usize = FLOWS.iter().map(|(_, steps)| steps.len()).sum();
        assert_eq!(all().len(), numbered + TESTS.len() + METRICS.len() + flow_steps + 37 + 1);
    }
}
