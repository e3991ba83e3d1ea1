//! All objects of one kind, and what happened to them lately.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde_json::Value;

/// How many changes of a kind are remembered. Whoever is further behind lists again.
pub(crate) const REMEMBERED: usize = 8_192;

/// One change. A deletion has the last state as `after`, with the version of the deletion.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) version: u64,
    pub(crate) before: Option<Arc<Value>>,
    pub(crate) after: Arc<Value>,
    pub(crate) is_deletion: bool,
}

/// The objects of a kind.
#[derive(Debug)]
pub(crate) struct Shelf {
    pub(crate) objects: BTreeMap<(String, String), Arc<Value>>,
    ring: VecDeque<Change>,
    /// Changes up to this version may be forgotten.
    forgotten: u64,
    remembered: usize,
}

impl Shelf {
    pub(crate) fn new(remembered: usize, first_version: u64) -> Shelf {
        Shelf { objects: BTreeMap::new(), ring: VecDeque::new(), forgotten: first_version, remembered }
    }

    /// Objects of a namespace, or of all, in the order of their names.
    pub(crate) fn range(&self, namespace: Option<&str>) -> Vec<Arc<Value>> {
        match namespace {
            None => self.objects.values().cloned().collect(),
            Some(namespace) => self
                .objects
                .range((namespace.to_owned(), String::new())..)
                .take_while(|((it, _), _)| it == namespace)
                .map(|(_, object)| object.clone())
                .collect(),
        }
    }

    pub(crate) fn remember(&mut self, change: Change) {
        self.ring.push_back(change);
        if self.ring.len() > self.remembered
            && let Some(oldest) = self.ring.pop_front()
        {
            self.forgotten = oldest.version;
        }
    }

    /// The changes after a version; `Err` with the oldest one that can be asked for.
    pub(crate) fn since(&self, version: u64) -> Result<impl Iterator<Item = &Change>, u64> {
        if version < self.forgotten {
            return Err(self.forgotten);
        }
        let first = self.ring.partition_point(|change| change.version <= version);
        Ok(self.ring.range(first..))
    }

    /// Forgets all changes, as a server does that was away for long.
    pub(crate) fn forget(&mut self, version: u64) {
        self.ring.clear();
        self.forgotten = version;
    }
}
