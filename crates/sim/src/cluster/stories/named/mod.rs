//! The named stories: short plays about one hazard each.
//!
//! Every step waits so many milliseconds after the one before. The names are claims about what
//! happens, in plain words; they are also the arguments with which a story is chosen.

mod brake;
mod gateways;
mod inbound;
mod others;
mod outbound;
mod storms;
mod tags;
mod troubles;
mod words;

use std::time::Duration;

use super::action::UserAction;
pub use storms::{Storm, storms};

/// A short play.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Story {
    /// What happens.
    pub name: &'static str,
    /// The steps, each with its wait after the step before, in milliseconds.
    pub steps: Vec<(u64, UserAction)>,
    /// The gateway that is there before the first step.
    pub gateway: FirstGateway,
    /// One process, or a leader and a standby.
    pub processes: usize,
    /// The lease duration that the operator wants for the first process, if not the default.
    pub lease: Option<Duration>,
}

/// The service gateway that is there when a run begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FirstGateway {
    /// None, so that one is made.
    #[default]
    Missing,
    /// One that others made and nobody has claimed, with zones, tags and an IPv6 route target.
    OfOthers,
    /// The same after a write of theirs that failed.
    OfOthersFailed,
}

/// All named stories.
pub fn named() -> Vec<Story> {
    let mut stories = inbound::stories();
    stories.extend(outbound::stories());
    stories.extend(gateways::stories());
    stories.extend(troubles::stories());
    stories.extend(brake::stories());
    stories.extend(others::stories());
    stories.extend(tags::stories());
    stories
}
