//! How this process stands among its replicas, for whoever shows it.

use sluice_view::overview::Role;

/// What this replica does now, and who leads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Standing {
    /// What it does.
    pub role: Role,
    /// Who leads, if that is known.
    pub leader: Option<String>,
}

impl Default for Standing {
    fn default() -> Standing {
        Standing { role: Role::Candidate, leader: None }
    }
}
