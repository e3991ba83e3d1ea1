//! How a world is made.

use core::time::Duration;

use sluice_cloud::{Latencies, Span};
use sluice_model::call::{OperationState, Payload, Reply};
use sluice_model::lease::Timing;
use sluice_model::names::Scope;
use sluice_model::seeded::Seeded;

use super::process::Settings;
use crate::cluster::KubeFaults;
use crate::cluster::stories::FirstGateway;
use crate::faults::FaultPlan;
use crate::rng::Rng;

/// How a world is made.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Decides everything.
    pub seed: u64,
    /// One process, or a leader and a standby.
    pub processes: usize,
    /// The numbers that the processes run with.
    pub settings: Settings,
    /// The election timings of the processes, in their order; for the rest, as the settings say.
    pub timings: Vec<Timing>,
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
    /// How fast Azure is.
    pub pace: Pace,
    /// The gateway that is there when the run begins.
    pub gateway: FirstGateway,
}

/// How long operations take, and whether Azure says when to ask again.
///
/// The updaters learn how long each kind takes, so a world whose operations always take the same would teach them
/// only that.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pace {
    /// How long operations take.
    pub latency: Latencies,
    /// How many of a thousand answers about a running operation have a `Retry-After`.
    pub hints: u16,
}

impl Pace {
    /// A pace for one run: each kind of operation takes its own time, from none at all to a minute.
    pub fn random(dice: &mut Rng) -> Pace {
        let mut span = |longest_ms: u64| {
            let longest = match dice.below(6) {
                0 => 0,
                1 => longest_ms / 100,
                2 | 3 => longest_ms / 10,
                4 => longest_ms / 3,
                _ => longest_ms,
            };
            let max = dice.between(longest / 2, longest);
            Span::millis(dice.between(max / 10, max), max)
        };
        let latency = Latencies {
            public_ip: span(40_000),
            load_balancer: span(60_000),
            nat_gateway: span(60_000),
            gateway: span(12_000),
            network: span(12_000),
            delete: span(40_000),
        };
        Pace { latency, hints: *dice.pick(&[0, 0, 200, 1_000]).unwrap_or(&0) }
    }

    /// Perhaps says when to ask about a running operation again.
    pub(super) fn hint(&self, reply: &mut Reply, dice: &mut Rng) {
        let Reply::Answered(answer) = reply else { return };
        let running = match &answer.payload {
            Payload::Operation(state) => *state == OperationState::Running,
            Payload::Error(_) => false,
            _ => answer.operation.is_some(),
        };
        if running && answer.retry_after.is_none() && self.hints > 0 && dice.chance(self.hints) {
            answer.retry_after = Some(Duration::from_secs(dice.between(1, 12)));
        }
    }
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
