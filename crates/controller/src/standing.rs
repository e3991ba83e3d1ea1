//! How this process stands among its replicas, for whoever shows it.

use std::sync::Arc;

/// Whether we lead.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Standing {
    /// Nobody has looked at the Lease yet.
    #[default]
    Starting,
    /// Somebody else leads, or nobody; we watch and wait.
    Standby {
        /// Who leads, as far as the Lease says.
        holder: Option<Arc<str>>,
    },
    /// We lead.
    Leading,
    /// We led, and do not any more: the process is about to end.
    Ended,
}

impl Standing {
    /// The fixed word.
    pub const fn word(&self) -> &'static str {
        match self {
            Standing::Starting => "starting",
            Standing::Standby { .. } => "standby",
            Standing::Leading => "leading",
            Standing::Ended => "ended",
        }
    }
}
