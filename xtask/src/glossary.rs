//! `docs/glossary.md` has an entry for every name of the design documents, and for our own words.
//!
//! The names stand here, so nobody needs the documents themselves to check this. They were
//! taken from the documents by machine; what is left out are Go's and the SDK's own names and
//! the local variables of the code in them.

use std::collections::BTreeSet;

use crate::markdown;
use crate::tree::Tree;

const PAGE: &str = "docs/glossary.md";

/// Components, types, states, maps, channels, methods and settings of the design documents.
#[rustfmt::skip]
const DESIGN: &[&str] = &[
    // Components.
    "DiffTracker", "Engine", "XUpdater", "ServiceUpdater", "LocationsUpdater", "DeletionChecker", "Repository",
    "Service Informer", "Endpoint Informer", "EndpointSlice Informer", "Pod Informer", "Pod Handler",
    "podEgressResourceUpdater", "ServiceGateway", "NRP", "CCM",
    // Types.
    "ResourceState", "ServiceOperationState", "BufferedEndpointUpdate", "BufferedPodUpdate", "PendingDeletion",
    "UpdatePodInputType", "PodOperation", "ADD", "REMOVE", "UPDATE", "K8s_State", "NRP_State", "NRPLocation",
    "NRPAddress", "Node", "SyncOperations", "PodCrudEvent", "AddPodEvent", "DeletePodEvent",
    // States.
    "StateNotStarted", "StateCreationInProgress", "StateCreated", "StateDeletionPending",
    "StateDeletionInProgress", "DELETED",
    // Fields.
    "ServiceUID", "IsInbound", "State", "RetryCount", "LastAttempt", "PodIPToNodeIP", "Timestamp", "PodKey",
    "Location", "Address", "PublicOutboundIdentity", "InboundServiceIdentity", "OutboundServiceIdentity",
    "InternalIP", "HostIP", "PodIP", "Services", "Egresses", "Nodes", "LoadBalancers", "NATGateways", "Locations",
    "Addresses", "mu", "wg", "semaphore", "xUpdater", "locationsUpdater", "InitialSyncDone", "isInitializing",
    // Maps and sets.
    "K8sResources", "NRPResources", "pendingServiceOps", "bufferedEndpoints", "bufferedPods", "pendingEndpoints",
    "pendingPods", "pendingDeletions", "LocalServiceNameToNRPServiceMap", "deletedWhileBuffered",
    "serviceUIDToService", "servicesToCreate", "servicesToDelete", "locationChanges", "servicesDTO",
    "locationsDTO", "mergedEndpoints",
    // Channels, queues, counters, limits.
    "xUpdaterTrigger", "locationsUpdaterTrigger", "deletionCheckerTrigger", "initCompletionChecker",
    "PodEgressQueue", "pendingUpdaterTriggers", "pendingOps", "maxRetries", "maxConcurrentCreations",
    // Methods of the engine.
    "AddService", "UpdateEndpoints", "DeleteService", "AddPod", "DeletePod", "OnServiceCreationComplete",
    "promoteBufferedEndpointsLocked", "promoteBufferedPodsLocked", "promotePendingEndpointsLocked",
    "promotePendingPodsLocked", "promotePendingEndpoints", "promotePendingPods", "checkPendingDeletions",
    "CheckPendingDeletions", "serviceHasLocationsInNRP", "UpdateK8sEndpoints", "updateK8sEndpointsLocked",
    "UpdateK8sPod", "updateK8sPodLocked", "addOrUpdatePod", "removePod", "GetSyncLocationsAddresses",
    "GetSyncOperations", "convertDTOToNRPLocation",
    // Methods of the updaters.
    "NewXUpdater", "NewLocationsUpdater", "Run", "processBatch", "process", "createInboundService",
    "createOutboundService", "deleteInboundService", "deleteOutboundService", "buildServicesDTO",
    // Calls to Azure.
    "CreateOrUpdateLB", "DeleteLB", "CreateOrUpdateNatGateway", "createOrUpdateNatGateway", "DeleteNatGateway",
    "deleteNatGateway", "CreateOrUpdatePIP", "DeletePIP", "UpdateServices", "UpdateAddressLocations",
    "UpdateNRPSGWServices", "UpdateNRPSGWAddressLocations", "GetServiceGateway", "GetAddressLocations",
    "existsServiceGateway", "createServiceGateway", "attachServiceGatewayToSubnet",
    // Start-up.
    "InitializeDiffTracker", "InitializeFromCluster", "InitializeCloudFromConfig", "initializeDiffTrackerEngine",
    "startDiffTrackerEngine", "reconcileServices", "WaitForInitialSync", "checkInitializationComplete",
    "cleanupOrphanedPIPs", "ensureDefaultOutboundServiceExists",
    // The edge to Kubernetes.
    "EnsureLoadBalancer", "EnsureLoadBalancerDeleted", "createOrUpdateLoadBalancer", "deleteLoadBalancer",
    "podInformerAddPod", "podInformerRemovePod", "endpointSliceUpdateHandler", "getServiceUIDFromEndpointSlice",
    "getNodeIPByName",
    // Settings and strings.
    "ServiceGatewayEnabled", "ServiceGatewayResourceName", "PodLabelServiceEgressGateway",
    "staticGatewayConfiguration", "default-natgw", "egress-gateway-name",
];

/// Our own words.
#[rustfmt::skip]
const OURS: &[&str] = &[
    "action", "actual", "address", "adopt", "bisect", "brake", "budget", "buffered", "cause", "commit", "desired",
    "dirty", "drain", "drift", "effect", "egress", "event", "fence", "foundation", "gate", "identity", "in flight",
    "inbound", "lane", "level", "linger", "listing", "location", "may be either", "notice", "operation", "orphan",
    "outbound", "outcome", "park", "place", "plan", "promote", "quarantine", "ready", "reason", "registration",
    "relist", "seed", "seeded bug", "service", "sighting", "slice", "slot", "state", "step", "story", "sweep",
    "teardown", "trace", "unclaimed", "unknown outcome", "updater", "wait", "wanted",
];

/// Names what has no entry.
pub(crate) fn check(tree: &Tree) -> Vec<String> {
    let entries = entries(tree.text(PAGE).unwrap_or(""));
    DESIGN
        .iter()
        .chain(OURS)
        .filter(|name| !entries.contains(**name))
        .map(|name| format!("{PAGE}: has no entry for `{name}`"))
        .collect()
}

/// What stands in backticks in the first cell of a row.
fn entries(text: &str) -> BTreeSet<&str> {
    markdown::rows(text)
        .into_iter()
        .filter_map(|(_, cells)| cells.first().copied())
        .flat_map(markdown::code_spans)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_without_an_entry_is_named() {
        let all: Vec<String> =
            DESIGN.iter().chain(OURS).map(|name| format!("| `{name}` | became something |")).collect();
        assert_eq!(check(&Tree::of(&[(PAGE, &all.join("\n"))])), Vec::<String>::new());
        let found = check(&Tree::of(&[(PAGE, &all[1..].join("\n"))]));
        assert_eq!(found, ["docs/glossary.md: has no entry for `DiffTracker`"]);
    }

    #[test]
    fn one_entry_can_stand_for_several_names() {
        let names = entries("| `bufferedPods`, `pendingPods` | wishes, not a `queue` |");
        assert_eq!(names.into_iter().collect::<Vec<_>>(), ["bufferedPods", "pendingPods"]);
    }
}
