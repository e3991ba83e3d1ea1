//! Where the Lease is that says who works, and who we are in it: the same for every command.
//!
//! `run` holds it, `cleanup` takes it so that no controller works against it, `doctor` says who has it. If
//! two of them looked in different places, each would find it free. So: where the configuration says; else,
//! in a pod, in the pod's own namespace; else where `deploy/sluice.yaml` puts it, whatever namespace the
//! kubeconfig's context happens to have.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use anyhow::bail;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use sluice_k8s::connect::Connection;
use sluice_k8s::lease::Place;

use crate::config::Config;

/// The namespace that Sluice is shipped for.
pub const SHIPPED_NAMESPACE: &str = "sluice-system";

/// How long the API server may think about a namespace.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where the Lease is.
pub fn place(config: &Config, connection: &Connection) -> Place {
    let namespace = namespace(config.leader_election.namespace.as_deref(), connection.pod_namespace());
    Place { namespace, name: config.leader_election.name.clone() }
}

/// The namespace of the Lease.
pub fn namespace(configured: Option<&str>, of_our_pod: Option<&str>) -> String {
    configured.or(of_our_pod).unwrap_or(SHIPPED_NAMESPACE).to_owned()
}

/// Says what to do when the Lease's namespace does not exist: the Lease would just never come.
pub async fn has_a_home(connection: &Connection, place: &Place) -> anyhow::Result<()> {
    // Whoever may not read namespaces, as our own account in a pod, has the election itself to say it.
    let namespaces = Api::<Namespace>::all(connection.client.clone());
    let Ok(Ok(None)) = tokio::time::timeout(PATIENCE, namespaces.get_opt(&place.namespace)).await else {
        return Ok(());
    };
    bail!(
        "cannot use Lease {}/{}: namespace {} does not exist; run `kubectl create namespace {}`, or set \
         sluice.leaderElection.namespace to the namespace of Sluice",
        place.namespace,
        place.name,
        place.namespace,
        place.namespace
    );
}

/// Who we are in the Lease. Process numbers are alike in every container, and whoever finds its own name
/// in a Lease takes it for its own, so a part of it is random.
pub fn identity(instance: &str) -> String {
    // The standard library's keys of a hash map come from the system's random numbers.
    let random = RandomState::new().hash_one(std::process::id());
    format!("{instance}_{}-{random:016x}", std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lease_is_where_the_configuration_says_else_with_the_pod_else_where_sluice_is_shipped_for() {
        assert_eq!(namespace(Some("network"), Some("pods-own")), "network");
        assert_eq!(namespace(Some("network"), None), "network");
        assert_eq!(namespace(None, Some("pods-own")), "pods-own");
        assert_eq!(namespace(None, None), "sluice-system");
    }

    #[test]
    fn the_shipped_manifests_put_it_into_the_shipped_namespace() {
        let manifests = include_str!("../../../deploy/sluice.yaml");
        assert!(manifests.contains(&format!("namespace: {SHIPPED_NAMESPACE}\n")));
        assert!(!manifests.contains("leaderElection"), "the pod's own namespace is the Lease's");
    }

    #[test]
    fn two_processes_with_the_same_number_are_told_apart() {
        assert_ne!(identity("sluice-cleanup"), identity("sluice-cleanup"));
    }
}
