//! What became of each step, for the log: when it began, how long it took, how it ended.
//!
//! Whoever drives the updaters takes the notes after every call; those that nobody takes are
//! dropped, oldest first.

use alloc::collections::VecDeque;
use core::time::Duration;

use sluice_model::{EffectId, Failure, Time};

/// Notes that are kept for whoever takes them.
const NOTES_MAX: usize = 4_096;

/// A step of a plan has begun or ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StepNote {
    /// Whose step.
    pub effect: EffectId,
    /// Its place in the plan, from 1.
    pub number: usize,
    /// How many steps the plan has.
    pub of: usize,
    /// Its word.
    pub step: &'static str,
    /// When.
    pub at: Time,
    /// Nothing yet when it has just begun.
    pub end: Option<StepEnd>,
}

/// How a step ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StepEnd {
    /// How long it took, with everything that it waited for.
    pub took: Duration,
    /// Why it failed, if it did.
    pub failure: Option<Failure>,
}

/// The notes that nobody has taken yet.
#[derive(Default)]
pub(crate) struct Notes(VecDeque<StepNote>);

impl Notes {
    pub(crate) fn push(&mut self, note: StepNote) {
        if self.0.len() >= NOTES_MAX {
            self.0.pop_front();
        }
        self.0.push_back(note);
    }

    pub(crate) fn take(&mut self) -> Option<StepNote> {
        self.0.pop_front()
    }
}
