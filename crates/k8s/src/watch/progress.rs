//! How far the watches are, for readiness, metrics and `doctor`.

use sluice_model::kube::Kind;

/// All four kinds.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Progress {
    kinds: [KindProgress; 4],
}

/// One kind.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KindProgress {
    /// A complete list has been told.
    pub listed: bool,
    /// How many objects there are: those of the last list, and what the watch has shown since.
    pub objects: usize,
    /// How many complete lists have been told.
    pub lists: u64,
    /// How often a watch was begun again, for whatever reason.
    pub restarts: u64,
    /// What stands in the way right now, as a sentence; cleared by the next success.
    pub trouble: Option<String>,
    /// How often an object was skipped because it cannot be read.
    pub skipped: u64,
    /// Why the last of them was.
    pub last_skipped: Option<String>,
}

impl Progress {
    /// One kind.
    pub fn of(&self, kind: Kind) -> &KindProgress {
        &self.kinds[kind as usize]
    }

    pub(crate) fn of_mut(&mut self, kind: Kind) -> &mut KindProgress {
        &mut self.kinds[kind as usize]
    }

    /// Whether every kind has been listed once.
    pub fn all_listed(&self) -> bool {
        self.kinds.iter().all(|kind| kind.listed)
    }

    /// The kinds in trouble, with their sentences.
    pub fn troubles(&self) -> impl Iterator<Item = (Kind, &str)> {
        Kind::ALL.into_iter().filter_map(|kind| Some((kind, self.of(kind).trouble.as_deref()?)))
    }
}
