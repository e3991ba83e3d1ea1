//! Keys that earlier versions had. Each is an error that says what to do, because a setting that silently has no
//! effect is worse than none.

use super::problems::Problem;

/// What became of a key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fate {
    /// It is a constant now, and this is its value.
    Fixed(&'static str),
    /// It has another name.
    Renamed(&'static str),
    /// Another key decides this, too.
    Merged(&'static str),
}

use Fate::{Fixed, Merged, Renamed};

/// All of them.
pub(crate) const OLD: [(&str, Fate); 18] = [
    ("sluice.azure.answerLimit", Renamed("sluice.azure.responseTimeout")),
    ("sluice.azure.connectLimit", Renamed("sluice.azure.connectTimeout")),
    ("sluice.budget.locationShare", Fixed("30%")),
    ("sluice.drift.secondLook", Renamed("sluice.drift.confirmAfter")),
    ("sluice.kubernetes.callLimit", Fixed("30 s")),
    ("sluice.locations.addressesMax", Fixed("1000")),
    ("sluice.locations.backoffMax", Merged("sluice.retry.backoffMax")),
    ("sluice.locations.backoffMin", Merged("sluice.retry.backoffMin")),
    ("sluice.locations.bisectCallsMax", Fixed("40")),
    ("sluice.locations.bytesMax", Fixed("1 MiB")),
    ("sluice.locations.failuresReported", Fixed("12")),
    ("sluice.operations.busyLimit", Fixed("2 min")),
    ("sluice.operations.gatewayLimit", Fixed("3 min")),
    ("sluice.operations.registrationsMax", Fixed("100")),
    ("sluice.operations.resourceLimit", Fixed("15 min")),
    ("sluice.retry.attempts", Fixed("12")),
    ("sluice.retry.forbiddenParkMax", Fixed("1 h")),
    ("sluice.retry.quotaParkMax", Fixed("1 h")),
];

/// The problem with a key of an earlier version, if it is one.
pub(crate) fn problem(path: &str, place: &str) -> Option<Problem> {
    let (_, fate) = OLD.iter().find(|(old, _)| *old == path)?;
    let what = match fate {
        Fixed(value) => format!("is no longer a setting: the value is always {value}; remove the key"),
        Renamed(successor) => format!("is now called {successor}; rename the key"),
        Merged(other) => format!("is no longer a setting: {other} is used instead; remove the key"),
    };
    Some(Problem::new(path, what).at(place))
}

/// Whether keys of earlier versions were below a path.
pub(crate) fn has_below(path: &str) -> bool {
    OLD.iter().any(|(old, _)| old.strip_prefix(path).is_some_and(|rest| rest.starts_with('.')))
}
