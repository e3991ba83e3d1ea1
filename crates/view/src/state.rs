//! The fixed words: states and reasons.

use std::fmt;

use serde::{Deserialize, Serialize};
use sluice_model::reason::Reason;

/// Where a service is in its life.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum State {
    /// Nothing has been begun, or the last attempt to make it has failed.
    NotStarted,
    /// Its resources are being made.
    CreationInProgress,
    /// It is registered, and as wanted or left as it is because its spec is rejected.
    Created,
    /// It is live and differs from what is wanted.
    UpdateInProgress,
    /// It is not wanted; its operation ends and its addresses drain.
    DeletionPending,
    /// Its resources are being deleted, in order.
    DeletionInProgress,
    /// A word that this version does not know.
    #[serde(other)]
    Unknown,
}

impl State {
    /// All that a service can be in, in order.
    pub const ALL: [State; 6] = [
        State::NotStarted,
        State::CreationInProgress,
        State::Created,
        State::UpdateInProgress,
        State::DeletionPending,
        State::DeletionInProgress,
    ];

    /// The fixed word.
    pub const fn word(self) -> &'static str {
        match self {
            State::NotStarted => "NotStarted",
            State::CreationInProgress => "CreationInProgress",
            State::Created => "Created",
            State::UpdateInProgress => "UpdateInProgress",
            State::DeletionPending => "DeletionPending",
            State::DeletionInProgress => "DeletionInProgress",
            State::Unknown => "Unknown",
        }
    }

    /// Reads a word, in either case.
    pub fn parse(word: &str) -> Option<State> {
        State::ALL.into_iter().find(|state| state.word().eq_ignore_ascii_case(word))
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// Why something is not as it should be.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Why {
    /// The reason's fixed word, as it stands in conditions and events.
    pub reason: String,
    /// The code under which `sluice explain` has a page about it.
    pub code: String,
    /// What happened, in a sentence.
    pub message: String,
}

impl Why {
    /// A reason, and what happened.
    pub fn new(reason: Reason, message: impl Into<String>) -> Why {
        Why { reason: reason.word().into(), code: reason.code().into(), message: message.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_in_json_is_the_word_on_the_screen_and_reads_back() {
        for state in State::ALL {
            let json = serde_json::to_string(&state).unwrap();
            assert_eq!(json, format!("{:?}", state.word()));
            assert_eq!(serde_json::from_str::<State>(&json).unwrap(), state);
            assert_eq!(State::parse(&state.word().to_lowercase()), Some(state));
        }
        assert_eq!(State::parse("Unknown"), None);
    }

    #[test]
    fn a_word_of_a_later_version_is_unknown_and_no_error() {
        assert_eq!(serde_json::from_str::<State>("\"Hibernating\"").unwrap(), State::Unknown);
    }
}
