//! How a world is made.

use sluice_model::names::Scope;
use sluice_model::seeded::Seeded;

use super::process::Settings;
use crate::cluster::KubeFaults;
use crate::cluster::stories::FirstGateway;
use crate::faults::FaultPlan;

/// How a world is made.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Decides everything.
    pub seed: u64,
    /// One process, or a leader and a standby.
    pub processes: usize,
    /// The numbers that the processes run with.
    pub settings: Settings,
    /// What goes wrong.
    pub plan: FaultPlan,
    /// What goes wrong with Kubernetes.
    pub kube_faults: KubeFaults,
    /// A deliberate bug.
    pub seeded: Seeded,
    /// Whether lines are written.
    pub traced: bool,
    /// Where to crash on purpose.
    pub crash: Option<CrashPoint>,
    /// Azure answers the two POSTs at once.
    pub synchronous_posts: bool,
    /// The gateway that is there when the run begins.
    pub gateway: FirstGateway,
}

/// One enumerated crash: at the n-th external call, before or after it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CrashPoint {
    /// Counted from zero.
    pub call: u64,
    /// The request leaves, and the answer is never heard.
    pub after: bool,
}

/// The scope of every run.
pub fn scope() -> Scope {
    Scope {
        subscription: "00000000-0000-0000-0000-000000000000".into(),
        resource_group: "rg".into(),
        network_resource_group: "rg-network".into(),
        virtual_network: "vnet".into(),
        subnet: "nodes".into(),
        gateway: "servicegateway".into(),
        cluster_id: "cluster-under-test".into(),
    }
}
