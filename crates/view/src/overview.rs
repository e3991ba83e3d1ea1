//! The controller as a whole: who leads, what is done, what is in the way.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::moment::{Due, Since};
use crate::state::{State, Why};

/// One replica of the controller, and all that it looks after.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Overview {
    /// The version of the program.
    pub version: String,
    /// The replica that answers.
    pub identity: String,
    /// The cluster id in our tags.
    #[serde(default)]
    pub cluster_id: String,
    /// What the replica that answers does.
    pub role: Role,
    /// Who leads, as far as this replica knows.
    #[serde(default)]
    pub leader: Option<String>,
    /// When this replica started.
    pub started: Since,
    /// How far the start has come, and the first difference between the two worlds.
    pub initial_sync: InitialSync,
    /// The watches of Kubernetes.
    #[serde(default)]
    pub watches: Vec<WatchLine>,
    /// The load balancers.
    pub services: Counts,
    /// The NAT gateways.
    pub egresses: Counts,
    /// How many of both are parked, by the reason's word; only those that occur.
    #[serde(default)]
    pub parked: BTreeMap<String, u64>,
    /// How many of both are in trouble, by the reason's word; only those that occur.
    #[serde(default)]
    pub trouble: BTreeMap<String, u64>,
    /// Why the state of Azure is not known any more, while listings fail.
    #[serde(default)]
    pub azure_trouble: Option<Why>,
    /// The addresses of all of them together.
    pub addresses: AddressTotals,
    /// Our share of Azure's limits.
    #[serde(default)]
    pub budget: Vec<Lane>,
    /// Operations in flight.
    #[serde(default)]
    pub operations_active: u64,
    /// Services that the mass-deletion guard holds, because too many would be torn down at once.
    #[serde(default)]
    pub mass_deletion_held: u64,
    /// What is registered, unwanted and not provably ours.
    #[serde(default)]
    pub unclaimed: Vec<String>,
    /// Public IPs whose tag somebody removed: in use, not tagged again, and kept when their Service or egress is deleted.
    #[serde(default)]
    pub released: Vec<String>,
    /// Differences that sweeps have found, and repaired.
    #[serde(default)]
    pub drift: FoundAndMended,
    /// Resources of ours that nobody wants, found, and removed.
    #[serde(default)]
    pub orphans: FoundAndMended,
}

/// What a replica does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Role {
    /// It acts.
    Leader,
    /// It watches, and would act at once if it led.
    Standby,
    /// It does not know yet whether it leads.
    Candidate,
    /// A word that this version does not know.
    #[serde(other)]
    Unknown,
}

impl Role {
    /// The fixed word.
    pub const fn word(self) -> &'static str {
        match self {
            Role::Leader => "leader",
            Role::Standby => "standby",
            Role::Candidate => "candidate",
            Role::Unknown => "unknown",
        }
    }
}

/// How far the first difference has been worked off.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InitialSync {
    /// What the start is at: `standby`, `reading-kubernetes`, `reading-azure`, `gateway`, `initial-sync`, `done`.
    pub phase: String,
    /// Every operation of it has succeeded or is parked with a reason.
    pub done: bool,
    /// Services that are not there yet.
    pub left: u64,
    /// Why the gateway cannot be used, while that is so.
    pub gateway_trouble: Option<String>,
}

/// One watch.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WatchLine {
    /// Of what: `services`, `endpointslices`, `nodes`, `pods`.
    pub kind: String,
    /// A complete list has come.
    pub listed: bool,
    /// Objects that the watch knows of.
    pub objects: u64,
    /// Complete lists so far.
    pub lists: u64,
    /// How often it had to begin anew.
    pub restarts: u64,
    /// Objects that were skipped because they cannot be read.
    pub skipped: u64,
    /// What troubles it now, in a sentence.
    pub trouble: Option<String>,
}

/// Services or egresses, counted.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Counts {
    /// How many.
    pub total: u64,
    /// How many in each state; every state is there.
    pub by_state: BTreeMap<State, u64>,
}

/// Addresses of all services, counted once for each service that wants them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AddressTotals {
    /// That services should have.
    pub desired: u64,
    /// Of those, the ones whose service is not ready.
    pub buffered: u64,
    /// That Azure is known to have.
    pub programmed: u64,
    /// That wait to be sent.
    pub dirty: u64,
    /// That are on their way.
    pub in_flight: u64,
    /// Of which nobody knows whether Azure has them.
    pub uncertain: u64,
    /// That Azure refuses.
    pub quarantined: u64,
    /// That stay because they name services that are not managed.
    #[serde(default)]
    pub kept_for_others: u64,
}

/// One lane of the budget.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Lane {
    /// Its fixed word: `reads`, `service-writes`, `location-writes`, `deletes`.
    pub lane: String,
    /// Calls that could be made at once.
    pub tokens: u64,
    /// Calls that wait.
    pub queued: u64,
    /// What Azure last said is left for everybody.
    pub remaining: Option<u64>,
    /// Azure wants nothing more through it until then.
    pub paused_until: Option<Due>,
}

/// What was found, and what of it was repaired.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FoundAndMended {
    /// Found.
    pub found: u64,
    /// Repaired or removed.
    pub repaired: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_keys_and_roles_are_words_in_json() {
        let mut counts = Counts { total: 1, ..Counts::default() };
        counts.by_state.extend(State::ALL.map(|state| (state, u64::from(state == State::Created))));
        let json = serde_json::to_value(&counts).unwrap();
        assert_eq!(json["byState"]["Created"], 1);
        assert_eq!(json["byState"]["NotStarted"], 0);
        assert_eq!(serde_json::from_value::<Counts>(json).unwrap(), counts);
        for role in [Role::Leader, Role::Standby, Role::Candidate] {
            assert_eq!(serde_json::to_value(role).unwrap(), role.word());
        }
    }
}
