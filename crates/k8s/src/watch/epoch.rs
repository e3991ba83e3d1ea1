//! Versions that go back: whether a list may be believed, and what its versions are called from then on.
//!
//! The engine compares versions as numbers and refuses whatever is older than what it has seen. That is right as long
//! as an API server merely lags. When its etcd was restored from a backup, all versions are smaller, and stay so for
//! days: every list would be refused until somebody starts us anew.
//!
//! Lists that are older are therefore not told, and asked for again. What lags catches up: while lists are not
//! believed the newest version that we have seen stands still, and whoever is ten minutes behind is there after
//! ten. Only when nobody has caught up for that long, without a single failure in between, and versions have moved
//! on in their own order (a server that always shows the same moment is stuck, not restored), and this is still
//! the same cluster (which the feed asks about), a new epoch begins. From then on everything that is told has a number
//! that is greater than all before, so that the engine needs to know nothing of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sluice_model::kube::Kind;
use tokio::time::Instant;

/// So long nobody may have caught up.
pub(crate) const DOUBT_MIN: Duration = Duration::from_secs(600);
/// So many lists must have said the same.
const LISTS_MIN: u32 = 10;

/// What to make of a complete list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// It is to be told.
    Current,
    /// It is older than what has been seen, and may yet be a server that lags.
    Older,
    /// It is older, and no server lags like this.
    Restored,
}

/// How the versions of one kind go on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Epoch {
    /// What is added to the server's versions.
    offset: u64,
    /// The newest that the server has shown in this epoch.
    newest: u64,
    doubt: Option<Doubt>,
}

/// Lists, one after the other, that were older.
#[derive(Clone, Copy, Debug)]
struct Doubt {
    since: Instant,
    first: u64,
    last: u64,
    lists: u32,
}

impl Epoch {
    /// A complete list of this version has come.
    pub(crate) fn listed(&mut self, now: Instant, version: u64) -> Verdict {
        if version >= self.newest {
            self.newest = version;
            self.doubt = None;
            return Verdict::Current;
        }
        let begun = Doubt { since: now, first: version, last: version, lists: 0 };
        let doubt = self.doubt.get_or_insert(begun);
        if version < doubt.last {
            // Several servers, of which each lags in its own way.
            *doubt = begun;
        }
        doubt.last = version;
        doubt.lists += 1;
        let is_long = now.duration_since(doubt.since) >= DOUBT_MIN && doubt.lists >= LISTS_MIN;
        if is_long && doubt.last > doubt.first { Verdict::Restored } else { Verdict::Older }
    }

    /// A list could not be had: what was seen before it says little about what comes after.
    pub(crate) fn interrupted(&mut self) {
        self.doubt = None;
    }

    /// A watch that we stand on has shown this version.
    pub(crate) fn saw(&mut self, version: u64) {
        self.newest = self.newest.max(version);
    }

    /// The newest version that the server has shown.
    pub(crate) fn newest(&self) -> u64 {
        self.newest
    }

    /// Versions count anew from this list on; what is added to them.
    pub(crate) fn begin(&mut self, version: u64) -> u64 {
        self.offset = self.offset.saturating_add(self.newest);
        self.newest = version;
        self.doubt = None;
        self.offset
    }

    /// The version as it is told. None (0) stays none.
    pub(crate) fn told(&self, version: u64) -> u64 {
        shifted(version, self.offset)
    }
}

fn shifted(version: u64, offset: u64) -> u64 {
    if version == 0 { 0 } else { version.saturating_add(offset) }
}

/// What is added to the versions of each kind, for whoever tells versions that no watch has brought.
#[derive(Clone, Debug, Default)]
pub struct Offsets(Arc<[AtomicU64; 4]>);

impl Offsets {
    pub(crate) fn set(&self, kind: Kind, offset: u64) {
        self.0[kind as usize].store(offset, Ordering::SeqCst);
    }

    /// A version of the server as the watches would tell it.
    pub(crate) fn told(&self, kind: Kind, version: u64) -> u64 {
        shifted(version, self.0[kind as usize].load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lists every half a minute, from this second on; the last verdict.
    fn lists(
        epoch: &mut Epoch,
        begun: Instant,
        from: u64,
        versions: impl IntoIterator<Item = u64>,
    ) -> Verdict {
        let mut verdict = Verdict::Current;
        for (number, version) in versions.into_iter().enumerate() {
            let now = begun + Duration::from_secs(from + 30 * number as u64);
            verdict = epoch.listed(now, version);
        }
        verdict
    }

    fn seen(newest: u64) -> (Epoch, Instant) {
        let (mut epoch, now) = (Epoch::default(), Instant::now());
        assert_eq!(epoch.listed(now, 3), Verdict::Current);
        epoch.saw(newest);
        epoch.saw(7);
        (epoch, now)
    }

    #[test]
    fn a_list_that_is_as_new_as_what_was_seen_is_believed() {
        let (mut epoch, now) = seen(100);
        assert_eq!(epoch.listed(now, 100), Verdict::Current);
        assert_eq!(epoch.listed(now, 99), Verdict::Older);
        assert_eq!(epoch.listed(now, 101), Verdict::Current);
        assert_eq!((epoch.newest(), epoch.told(101)), (101, 101));
    }

    #[test]
    fn only_versions_that_stay_behind_for_long_and_move_on_are_a_new_epoch() {
        let (mut epoch, now) = seen(100);
        assert_eq!(lists(&mut epoch, now, 0, 10..30), Verdict::Older);
        assert_eq!(lists(&mut epoch, now, 600, [30]), Verdict::Restored);
        // Whoever does not act on it is told again.
        assert_eq!(lists(&mut epoch, now, 630, [31]), Verdict::Restored);

        let (mut stuck, now) = seen(100);
        assert_eq!(lists(&mut stuck, now, 0, [10; 60]), Verdict::Older, "always the same moment");

        let (mut rare, now) = seen(100);
        assert_eq!(lists(&mut rare, now, 0, [10]), Verdict::Older);
        assert_eq!(lists(&mut rare, now, 900, 11..19), Verdict::Older, "too few lists");
    }

    #[test]
    fn whoever_lags_catches_up_and_whoever_fails_or_disagrees_proves_nothing() {
        let (mut epoch, now) = seen(100);
        assert_eq!(lists(&mut epoch, now, 0, (10..28).chain([100])), Verdict::Current, "it caught up");
        assert_eq!(lists(&mut epoch, now, 600, 30..49), Verdict::Older, "the doubt began anew");

        let (mut epoch, now) = seen(100);
        lists(&mut epoch, now, 0, 10..28);
        epoch.interrupted();
        assert_eq!(lists(&mut epoch, now, 600, 30..49), Verdict::Older);

        let (mut epoch, now) = seen(100);
        let two = (0..40).map(|number| if number % 2 == 0 { 10 + number } else { 50 + number });
        assert_eq!(
            lists(&mut epoch, now, 0, two),
            Verdict::Older,
            "two servers, neither of which catches up"
        );
    }

    #[test]
    fn in_a_new_epoch_everything_is_newer_than_all_before_and_in_the_servers_order() {
        let (mut epoch, now) = seen(100);
        assert_eq!(epoch.begin(30), 100);
        assert_eq!((epoch.told(1), epoch.told(30), epoch.told(0)), (101, 130, 0));
        assert_eq!(epoch.listed(now, 29), Verdict::Older);
        assert_eq!(epoch.listed(now, 40), Verdict::Current);
        // And once more: 140 has been told.
        assert_eq!(epoch.begin(5), 140);
        assert_eq!(epoch.told(1), 141);
    }
}
