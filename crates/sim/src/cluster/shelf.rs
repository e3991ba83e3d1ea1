//! All objects of one kind, with enough of their past to serve watches and old lists.
//!
//! The past is bounded: a watch or a list from before its oldest change gets `410 Gone`.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use sluice_model::{ObjectName, Time};

use super::objects::Stored;

/// Changes that are remembered per kind.
const HISTORY_MAX: usize = 400;

/// Objects by name.
pub(crate) type Objects<T> = BTreeMap<ObjectName, Arc<Stored<T>>>;

/// The objects of one kind.
#[derive(Clone, Debug)]
pub(crate) struct Shelf<T> {
    objects: Objects<T>,
    history: VecDeque<Change<T>>,
    /// Every change after this version is still in the history.
    complete_after: u64,
}

/// One change of one object.
#[derive(Clone, Debug)]
pub(crate) struct Change<T> {
    /// The version that it made.
    pub(crate) version: u64,
    /// When it happened.
    pub(crate) at: Time,
    /// Of which name.
    pub(crate) name: ObjectName,
    /// What was there.
    pub(crate) before: Option<Arc<Stored<T>>>,
    /// What is there now.
    pub(crate) after: Option<Arc<Stored<T>>>,
}

/// The history does not reach back that far: `410 Gone`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Compacted;

impl<T> Default for Shelf<T> {
    fn default() -> Shelf<T> {
        Shelf { objects: BTreeMap::new(), history: VecDeque::new(), complete_after: 0 }
    }
}

impl<T> Shelf<T> {
    /// The object of that name.
    pub(crate) fn find(&self, name: &ObjectName) -> Option<&Arc<Stored<T>>> {
        self.objects.get(name)
    }

    /// All objects, by name.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Stored<T>>> {
        self.objects.values()
    }

    /// Puts an object in its place, or takes it away, as the change `version`.
    pub(crate) fn write(&mut self, version: u64, at: Time, name: ObjectName, after: Option<Stored<T>>) {
        let after = after.map(Arc::new);
        let before = match &after {
            Some(stored) => self.objects.insert(name.clone(), Arc::clone(stored)),
            None => self.objects.remove(&name),
        };
        self.history.push_back(Change { version, at, name, before, after });
        if self.history.len() > HISTORY_MAX {
            self.forget(1);
        }
    }

    /// Forgets all but the last `keep` changes.
    pub(crate) fn compact(&mut self, keep: usize) {
        self.forget(self.history.len().saturating_sub(keep));
    }

    fn forget(&mut self, count: usize) {
        for change in self.history.drain(..count.min(self.history.len())) {
            self.complete_after = change.version;
        }
    }

    /// What has changed since that version, oldest first.
    pub(crate) fn changes_after(&self, version: u64) -> Result<impl Iterator<Item = &Change<T>>, Compacted> {
        if version < self.complete_after {
            return Err(Compacted);
        }
        let from = self.history.partition_point(|change| change.version <= version);
        Ok(self.history.range(from..))
    }

    /// The version of the last change, whether it is remembered or forgotten.
    pub(crate) fn last_change(&self) -> Option<u64> {
        let remembered = self.history.back().map(|change| change.version);
        remembered.or((self.complete_after > 0).then_some(self.complete_after))
    }

    /// The state that an API server serves which has not yet seen the last `changes` changes, and its version;
    /// no further back than the history goes, and `None` without any.
    pub(crate) fn lagging(&self, changes: usize) -> Option<(u64, Objects<T>)> {
        let from = self.history.len().saturating_sub(changes.max(1));
        let version = self.history.get(from)?.version.checked_sub(1)?;
        let mut objects = self.objects.clone();
        for change in self.history.range(from..).rev() {
            match &change.before {
                Some(stored) => objects.insert(change.name.clone(), Arc::clone(stored)),
                None => objects.remove(&change.name),
            };
        }
        Some((version, objects))
    }
}
