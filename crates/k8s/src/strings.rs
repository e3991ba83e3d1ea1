//! The words that we share with Kubernetes: labels, annotations, finalizers, condition types.
//!
//! Both directions use them: what is read here is what is written there.

use sluice_model::kube::ConditionKind;

/// The label that names a pod's egress.
pub const EGRESS_LABEL: &str = "kubernetes.azure.com/service-egress-gateway";
/// Our finalizer on Services.
pub const FINALIZER: &str = "sluice.dev/cleanup";
/// The service controller's own finalizer, which is ours to clear when we are the service controller.
pub const SERVICE_CONTROLLER_FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";
/// The finalizer of the controller that may have been here before us.
pub const PREDECESSOR_FINALIZER: &str = "servicegateway.azure.com/service-cleanup";
/// The same on pods; only `sluice migrate pods` removes it.
pub const PREDECESSOR_POD_FINALIZER: &str = "servicegateway.azure.com/pod-cleanup";
/// Where a cloud controller manager has its Lease: namespace and name.
pub const CLOUD_CONTROLLER_MANAGER_LEASE: (&str, &str) = ("kube-system", "cloud-controller-manager");
/// The annotation that holds the public IP which Sluice has published in the status of a Service.
pub const PUBLISHED_IP: &str = "sluice.dev/published-ip";
/// The ValidatingAdmissionPolicy that limits what our account may change in a Service.
pub const ADMISSION_POLICY: &str = "sluice-services";
/// The name under which our writes stand in `managedFields`.
pub const FIELD_MANAGER: &str = "sluice";
/// The source of our events.
pub const EVENT_SOURCE: &str = "sluice";

/// The label by which an EndpointSlice names its Service.
pub const SERVICE_NAME_LABEL: &str = "kubernetes.io/service-name";
/// The bookmark that ends the list part of a watch carries this annotation.
pub const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// Whether a finalizer of Services is that of a service controller before us.
pub fn is_inherited(finalizer: &str) -> bool {
    matches!(finalizer, SERVICE_CONTROLLER_FINALIZER | PREDECESSOR_FINALIZER)
}

/// The condition's type, as it stands in `status.conditions`.
pub const fn condition_type(kind: ConditionKind) -> &'static str {
    match kind {
        ConditionKind::Provisioning => "LoadBalancerProvisioning",
        ConditionKind::Serving => "LoadBalancerServing",
    }
}
