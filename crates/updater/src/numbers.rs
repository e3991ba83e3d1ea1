//! What the updaters have done so far, as plain counters.

use sluice_model::call::{Body, Method, Request};

/// Counters that only grow, and how much of the budget is in use.
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
    /// Answers that asked for a pause: every 429.
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
    /// Reads in the window as it stood at the last call or tick.
    pub reads_in_window: u32,
    /// Writes and deletes in the window, likewise.
    pub writes_in_window: u32,
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

    pub(crate) fn show(&mut self, (reads, writes): (u32, u32)) {
        (self.reads_in_window, self.writes_in_window) = (reads, writes);
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
