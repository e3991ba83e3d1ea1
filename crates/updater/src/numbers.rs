//! What the updaters have done so far and how they stand, as plain numbers.

use sluice_model::Time;
use sluice_model::call::{Body, Bucket, Method, Request};

/// Counters that only grow, and how the budget stood when they were asked for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Numbers {
    /// Single resources read.
    pub gets: u64,
    /// Pages read.
    pub lists: u64,
    /// Resources written.
    pub puts: u64,
    /// Tags written.
    pub tag_patches: u64,
    /// Resources deleted.
    pub deletes: u64,
    /// `updateServices` calls.
    pub service_commits: u64,
    /// Services that rode in them; a service that was sent twice counts twice.
    pub services_committed: u64,
    /// `updateAddressLocations` calls.
    pub location_syncs: u64,
    /// Operations asked how they stand.
    pub polls: u64,
    /// Answers that asked for a pause before the same is sent again. Not those about a quota, nor about
    /// another operation without saying for how long: these are failures.
    pub throttled: u64,
    /// Those of them that were about another operation on the same resource and shut no gate.
    pub busy: u64,
    /// How long gates were shut by the others, all gates added up.
    pub throttled_ms: u64,
    /// Requests that nobody answered in time, or whose answer was lost.
    pub lost: u64,
    /// Answers that came when nobody waited for them any more.
    pub late_replies: u64,
    /// Operations that took longer than they may.
    pub operations_overdue: u64,
    /// Plans that gave their slot back.
    pub slots_released: u64,
    /// Reads in the window.
    pub reads_in_window: u32,
    /// Writes and deletes in the window.
    pub writes_in_window: u32,
    /// Reads that may be in the window at most: our share of what Azure allows.
    pub reads_in_window_max: u32,
    /// The same for writes and deletes.
    pub writes_in_window_max: u32,
    /// How much Azure said is left for everybody.
    pub remaining: Remaining,
    /// Reads, polls among them.
    pub reads_gate: GateNumbers,
    /// Writes on behalf of services.
    pub service_writes_gate: GateNumbers,
    /// Writes of addresses.
    pub location_writes_gate: GateNumbers,
    /// Deletions.
    pub deletes_gate: GateNumbers,
    /// Operations that Azure works on and that are watched.
    pub operations_watched: usize,
    /// Resources for which Azure asked to wait: another operation is in the way, or it has trouble.
    pub resources_busy: usize,
}

/// What Azure's answers last said is left in each bucket; nothing before the first that says so.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Remaining {
    /// `x-ms-ratelimit-remaining-subscription-reads`.
    pub reads: Option<u32>,
    /// `…-writes`.
    pub writes: Option<u32>,
    /// `…-deletes`.
    pub deletes: Option<u32>,
}

/// How one gate stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GateNumbers {
    /// Calls that our share of the bucket would allow at once; the window may allow fewer.
    pub tokens: u32,
    /// Those that it would allow after a rest.
    pub tokens_max: u32,
    /// Calls that wait here.
    pub queued: usize,
    /// Calls that wait here and whose plans have given their slots back meanwhile.
    pub asleep: usize,
    /// Until when Azure wants nothing more through it.
    pub paused_until: Option<Time>,
}

impl Numbers {
    /// All writes and deletes, whatever their kind.
    pub fn writes(&self) -> u64 {
        self.puts + self.tag_patches + self.deletes + self.service_commits + self.location_syncs
    }

    /// All reads, polls among them.
    pub fn reads(&self) -> u64 {
        self.gets + self.lists + self.polls
    }

    pub(crate) fn remains(&mut self, bucket: Bucket, calls: u32) {
        *match bucket {
            Bucket::Reads => &mut self.remaining.reads,
            Bucket::Writes => &mut self.remaining.writes,
            Bucket::Deletes => &mut self.remaining.deletes,
        } = Some(calls);
    }

    pub(crate) fn count(&mut self, request: &Request) {
        if let Body::Services(services) = &request.body {
            self.services_committed += services.len() as u64;
        }
        *match request.method {
            Method::Get => &mut self.gets,
            Method::List => &mut self.lists,
            Method::Put => &mut self.puts,
            Method::PatchTags => &mut self.tag_patches,
            Method::Delete => &mut self.deletes,
            Method::UpdateServices => &mut self.service_commits,
            Method::UpdateLocations => &mut self.location_syncs,
            Method::Poll => &mut self.polls,
        } += 1;
    }
}
