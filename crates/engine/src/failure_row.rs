//! A row of failures without a success in between, and the one reason that is shown for it.
//!
//! An outage mixes 429, 503 and time-outs. If each retry changed the reason, it would also write the conditions of every
//! Service again.

use alloc::format;
use alloc::string::String;
use core::fmt;

use sluice_model::reason::Reason;
use sluice_model::{Failure, FailureClass, Time};

/// A text of others without the period at its end, for a sentence that continues.
pub(crate) fn clause(text: &impl fmt::Display) -> String {
    let mut text = format!("{text}");
    let kept = text.trim_end_matches(|c: char| c == '.' || c.is_whitespace()).len();
    text.truncate(kept);
    text
}

/// Failures in a row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FailureRow {
    /// Since when nothing has succeeded.
    pub since: Time,
    /// How the last attempt failed.
    pub last: Failure,
    /// The reason that is shown.
    pub reason: Reason,
}

impl FailureRow {
    /// Adds a failure of an attempt that began then.
    pub(crate) fn add(row: &mut Option<FailureRow>, began: Time, failure: &Failure) {
        let (since, reason) = match row.take() {
            Some(before) => (before.since, steady(before.reason, reason_of(failure.class))),
            None => (began, reason_of(failure.class)),
        };
        *row = Some(FailureRow { since, last: failure.clone(), reason });
    }
}

/// The reason to show after one more failure. Of those that pass by themselves the first stays; any other reason needs
/// people, and is shown at once.
pub(crate) const fn steady(before: Reason, now: Reason) -> Reason {
    match (before, now) {
        (Reason::Throttled | Reason::AzureUnavailable, Reason::Throttled | Reason::AzureUnavailable) => {
            before
        }
        _ => now,
    }
}

/// The word for what address updates and listings fail with.
const fn reason_of(class: FailureClass) -> Reason {
    match class {
        FailureClass::Throttled => Reason::Throttled,
        FailureClass::Quota => Reason::QuotaExceeded,
        FailureClass::Forbidden => Reason::Forbidden,
        FailureClass::Rejected => Reason::Rejected,
        FailureClass::NotFound => Reason::GatewayUnavailable,
        FailureClass::Transient | FailureClass::StillMapped | FailureClass::InUse | FailureClass::Unknown => {
            Reason::AzureUnavailable
        }
    }
}
