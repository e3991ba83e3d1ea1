//! A watch: what happened to the objects of one kind after a version, and then what happens.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::watch;

use super::{Selection, Store};
use crate::kinds::Kind;
use crate::refusal::Refusal;
use crate::store::shelf::Change;
use crate::value::metadata;

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// It is new, or has come into the selection.
    Added,
    /// It has changed.
    Modified,
    /// It is gone, or has left the selection.
    Deleted,
}

/// One event of a watch.
#[derive(Clone, Debug)]
pub struct Happened {
    /// What happened.
    pub what: What,
    /// The object as it is after that; for a deletion as it was last, and for one that left the selection as it
    /// was last in it, both with the version of the change.
    pub object: Arc<Value>,
    /// The version of the change.
    pub version: u64,
}

/// A watch. It costs by change; nothing is kept for it while it sleeps.
#[derive(Debug)]
pub struct Watcher {
    pub(super) store: Store,
    pub(super) kind: &'static Kind,
    pub(super) namespace: Option<String>,
    pub(super) selection: Selection,
    /// All up to this version has been seen.
    pub(super) seen: u64,
    pub(super) news: watch::Receiver<u64>,
    pub(super) waiting: VecDeque<Happened>,
}

impl Watcher {
    /// The next event. `Err` when the watch is so far behind that changes were forgotten: list again.
    pub async fn next(&mut self) -> Result<Happened, Refusal> {
        loop {
            if let Some(happened) = self.waiting.pop_front() {
                return Ok(happened);
            }
            self.news.mark_unchanged();
            self.collect()?;
            // The store is part of this watch, so that its end cannot come first.
            if self.waiting.is_empty() && self.news.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// All events that are there already, without waiting.
    pub fn ready(&mut self) -> Result<Vec<Happened>, Refusal> {
        self.news.mark_unchanged();
        self.collect()?;
        Ok(self.waiting.drain(..).collect())
    }

    /// A version that a later watch may begin from; `None` while there are events to be told first.
    pub fn bookmark(&mut self) -> Option<u64> {
        self.collect().ok()?;
        self.waiting.is_empty().then_some(self.seen)
    }

    fn collect(&mut self) -> Result<(), Refusal> {
        let (happened, version) = {
            let state = self.store.lock();
            let changes = state.shelf(self.kind).since(self.seen).map_err(|oldest| {
                Refusal::expired(format!("too old resource version: {} ({oldest})", self.seen))
            })?;
            let happened: Vec<Happened> =
                changes.filter_map(|change| self.seen_through_the_selection(change)).collect();
            (happened, state.version)
        };
        self.waiting.extend(happened);
        self.seen = self.seen.max(version);
        Ok(())
    }

    fn wants(&self, object: &Value) -> bool {
        let is_here = self.namespace.as_deref().is_none_or(|it| crate::value::namespace_of(object) == it);
        is_here && self.selection.matches(object)
    }

    fn seen_through_the_selection(&self, change: &Change) -> Option<Happened> {
        let before = change.before.as_deref().is_some_and(|object| self.wants(object));
        let after = !change.is_deletion && self.wants(&change.after);
        let what = match (before, after) {
            (false, true) => What::Added,
            (true, true) => What::Modified,
            (true, false) => What::Deleted,
            (false, false) => return None,
        };
        let object = match &change.before {
            // Whoever selects must recognise what it knew; outside of its selection it has no eyes.
            Some(before) if what == What::Deleted && !change.is_deletion => {
                let mut last = (**before).clone();
                metadata(&mut last)["resourceVersion"] = json!(change.version.to_string());
                Arc::new(last)
            }
            _ => change.after.clone(),
        };
        Some(Happened { what, object, version: change.version })
    }
}
