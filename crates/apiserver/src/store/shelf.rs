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

impl Change {
    /// How much memory it holds, estimated. An object that two changes share counts for both: the other may be
    /// forgotten first.
    fn bytes(&self) -> usize {
        self.before.as_deref().map_or(0, bytes) + bytes(&self.after)
    }
}

fn bytes(value: &Value) -> usize {
    let inside = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(bytes).sum(),
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| FIELD_BYTES + key.len() + bytes(value)).sum()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    size_of::<Value>() + inside
}

/// A key and its place in the map, without the key's text.
const FIELD_BYTES: usize = 48;

/// The objects of a kind.
#[derive(Debug)]
pub(crate) struct Shelf {
    pub(crate) objects: BTreeMap<(String, String), Arc<Value>>,
    /// Changes with their bytes.
    ring: VecDeque<(Change, usize)>,
    /// What the changes in it hold, estimated.
    pub(crate) ring_bytes: usize,
    /// Changes up to this version may be forgotten.
    forgotten: u64,
    remembered: usize,
}

impl Shelf {
    pub(crate) fn new(remembered: usize, first_version: u64) -> Shelf {
        Shelf {
            objects: BTreeMap::new(),
            ring: VecDeque::new(),
            ring_bytes: 0,
            forgotten: first_version,
            remembered,
        }
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
        let bytes = change.bytes();
        self.ring_bytes += bytes;
        self.ring.push_back((change, bytes));
        if self.ring.len() > self.remembered {
            self.forget_oldest();
        }
    }

    pub(crate) fn forget_oldest(&mut self) {
        if let Some((oldest, bytes)) = self.ring.pop_front() {
            self.ring_bytes -= bytes;
            self.forgotten = oldest.version;
        }
    }

    /// The changes after a version; `Err` with the oldest one that can be asked for.
    pub(crate) fn since(&self, version: u64) -> Result<impl Iterator<Item = &Change>, u64> {
        if version < self.forgotten {
            return Err(self.forgotten);
        }
        let first = self.ring.partition_point(|(change, _)| change.version <= version);
        Ok(self.ring.range(first..).map(|(change, _)| change))
    }

    /// Forgets all changes, as a server does that was away for long.
    pub(crate) fn forget(&mut self, version: u64) {
        self.ring.clear();
        self.ring_bytes = 0;
        self.forgotten = version;
    }
}
