//! The one truth of the server: objects by kind, namespace and name, and what happened to them.
//!
//! Every write goes the same way: read what is there, make what is wanted, fill in defaults, check,
//! write down who owns which field, give it the next version, remember the change, wake the watches.
//! It happens under one lock, so that two writers never see the same version, and every reader sees
//! a moment. Objects are shared and never changed in place; lists and watches hand out references.
//!
//! The HTTP surface and the controllers in this process use the same calls; a controller cannot do
//! anything here that kubectl could not.
//!
//! Missing on purpose: a disk. A playground begins anew.

mod admission;
mod deletion;
mod selection;
mod shelf;
mod state;
mod watcher;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::watch;

pub(crate) use admission::late_finalizers;
pub use deletion::{Deleted, Deletion, Propagation};
pub use selection::Selection;
pub use watcher::{Happened, Watcher, What};

use crate::kinds::{self, KINDS, Kind, Sub};
use crate::patch::{self, Patch};
use crate::refusal::Refusal;
use crate::schema::decode::Strictness;
use crate::value::{name_of, namespace_of, text};
pub(crate) use state::Pages;
use state::{Page, State};

/// The store. Clones are the same store.
#[derive(Clone, Debug)]
pub struct Store {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    state: Mutex<State>,
    /// One bell per kind, rung with the version of the newest change.
    bells: Vec<watch::Sender<u64>>,
}

/// Who writes, and how.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Write {
    /// The field manager.
    pub manager: String,
    /// Everything but the last step.
    pub dry_run: bool,
    /// The part that is written; all but the status when there is none.
    pub sub: Option<Sub>,
    /// What to do about unknown fields that a patch brings.
    pub strictness: Strictness,
}

impl Write {
    /// An ordinary write by a manager.
    pub fn by(manager: impl Into<String>) -> Write {
        Write { manager: manager.into(), ..Write::default() }
    }

    /// The same, of a part.
    pub fn of(mut self, sub: Sub) -> Write {
        self.sub = Some(sub);
        self
    }
}

/// A list, and the moment that it shows.
#[derive(Clone, Debug)]
pub struct Listed {
    /// The objects, by namespace and name.
    pub items: Vec<Arc<Value>>,
    /// The version to watch from.
    pub version: u64,
}

/// A write that was done.
#[derive(Clone, Debug)]
pub struct Written {
    /// The object as it is now; as it would be, for a dry run.
    pub object: Arc<Value>,
    /// Whether there was none before.
    pub is_new: bool,
    /// What the writer should know: fields that were dropped.
    pub warnings: Vec<String>,
}

impl Default for Store {
    fn default() -> Store {
        Store::new()
    }
}

impl Store {
    /// An empty store.
    pub fn new() -> Store {
        Store::remembering(shelf::REMEMBERED, state::HISTORY_BYTES_MAX)
    }

    /// An empty store that remembers so many changes of each kind for its watches, and so many bytes of all kinds.
    pub fn remembering(changes: usize, bytes: usize) -> Store {
        let bells = KINDS.iter().map(|_| watch::Sender::new(0)).collect();
        Store { inner: Arc::new(Inner { state: Mutex::new(State::new(changes, bytes)), bells }) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A write that panicked has changed nothing: the last step is the only one that writes.
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends a write: whoever watches the kind is told where it stands now, and not before others may look.
    fn ring(&self, kind: &Kind, state: MutexGuard<'_, State>) {
        let version = state.version;
        drop(state);
        self.inner.bells[state::index(kind)].send_replace(version);
    }

    /// The version of the newest change of all.
    pub fn version(&self) -> u64 {
        self.lock().version
    }

    /// One object.
    pub fn get(&self, kind: &'static Kind, namespace: &str, name: &str) -> Result<Arc<Value>, Refusal> {
        self.lock().find(kind, namespace, name).ok_or_else(|| Refusal::not_found(kind, name))
    }

    /// The objects of a namespace, or of all, that a selection wants.
    pub fn list(&self, kind: &'static Kind, namespace: Option<&str>, selection: &Selection) -> Listed {
        let (items, version) = {
            let state = self.lock();
            let items = match (namespace, selection.only_name(), selection.term()) {
                (Some(namespace), Some(name), _) => state.find(kind, namespace, name).into_iter().collect(),
                (_, _, Some((term, _))) => state.with_term(kind, namespace, term),
                _ => state.shelf(kind).range(namespace),
            };
            (items, state.version)
        };
        let items = if selection.is_everything() {
            items
        } else {
            items.into_iter().filter(|object| selection.matches(object)).collect()
        };
        Listed { items, version }
    }

    /// How many objects a selection wants, of all namespaces.
    pub fn count(&self, kind: &'static Kind, selection: &Selection) -> usize {
        match selection.term() {
            Some((term, true)) => self.lock().places(kind, term).map_or(0, |places| places.len()),
            _ => self.list(kind, None, selection).items.len(),
        }
    }

    /// What happens after a version. `Err` if that is too long ago.
    pub fn watch(
        &self,
        kind: &'static Kind,
        namespace: Option<&str>,
        selection: Selection,
        from: u64,
    ) -> Result<Watcher, Refusal> {
        if let Err(oldest) = self.lock().shelf(kind).since(from) {
            return Err(Refusal::expired(format!("too old resource version: {from} ({oldest})")));
        }
        Ok(Watcher {
            store: self.clone(),
            kind,
            namespace: namespace.map(ToOwned::to_owned),
            selection,
            seen: from,
            news: self.inner.bells[state::index(kind)].subscribe(),
            waiting: VecDeque::new(),
        })
    }

    /// All there is, and then what happens: the list and its watch, with nothing between.
    pub fn follow(
        &self,
        kind: &'static Kind,
        namespace: Option<&str>,
        selection: Selection,
    ) -> (Listed, Watcher) {
        let news = self.inner.bells[state::index(kind)].subscribe();
        let listed = self.list(kind, namespace, &selection);
        let watcher = Watcher {
            store: self.clone(),
            kind,
            namespace: namespace.map(ToOwned::to_owned),
            selection,
            seen: listed.version,
            news,
            waiting: VecDeque::new(),
        };
        (listed, watcher)
    }

    /// Makes an object. Its namespace is the one of the path; its name may be left to the server.
    pub fn create(
        &self,
        kind: &'static Kind,
        namespace: &str,
        object: Value,
        write: &Write,
    ) -> Result<Arc<Value>, Refusal> {
        self.create_owned(self.lock(), kind, namespace, object, write, None)
    }

    fn create_owned(
        &self,
        mut state: MutexGuard<'_, State>,
        kind: &'static Kind,
        namespace: &str,
        object: Value,
        write: &Write,
        managed: Option<Value>,
    ) -> Result<Arc<Value>, Refusal> {
        let object = admission::create(&mut state, kind, namespace, object, write, managed)?;
        if write.dry_run {
            return Ok(Arc::new(object));
        }
        let object = state.commit(kind, object);
        self.ring(kind, state);
        Ok(object)
    }

    /// Replaces an object. A `metadata.resourceVersion` in it must be the present one.
    pub fn update(
        &self,
        kind: &'static Kind,
        namespace: &str,
        name: &str,
        object: Value,
        write: &Write,
    ) -> Result<Arc<Value>, Refusal> {
        self.modify(kind, namespace, name, write, |_| Ok(object))
    }

    /// Replaces the status of an object and leaves the rest.
    pub fn update_status(
        &self,
        kind: &'static Kind,
        namespace: &str,
        name: &str,
        object: Value,
        write: &Write,
    ) -> Result<Arc<Value>, Refusal> {
        self.update(kind, namespace, name, object, &write.clone().of(Sub::Status))
    }

    /// Reads an object, makes another of it, and writes that; nobody comes in between.
    pub fn modify(
        &self,
        kind: &'static Kind,
        namespace: &str,
        name: &str,
        write: &Write,
        change: impl FnOnce(&Value) -> Result<Value, Refusal>,
    ) -> Result<Arc<Value>, Refusal> {
        let mut state = self.lock();
        let old = state.find(kind, namespace, name).ok_or_else(|| Refusal::not_found(kind, name))?;
        let wanted = change(&old)?;
        let admitted = admission::update(&mut state, kind, &old, wanted, write, None)?;
        self.finish(state, kind, &old, admitted, write)
    }

    /// Patches an object. Only an apply may make one.
    pub fn patch(
        &self,
        kind: &'static Kind,
        namespace: &str,
        name: &str,
        patch: &Patch,
        write: &Write,
    ) -> Result<Written, Refusal> {
        let mut state = self.lock();
        let Some(old) = state.find(kind, namespace, name) else {
            let Patch::Apply { configuration, .. } = patch else {
                return Err(Refusal::not_found(kind, name));
            };
            if write.sub.is_some() {
                return Err(Refusal::not_found(kind, name));
            }
            let (object, managed) = patch::apply::first(kind, name, configuration, write)?;
            let object = self.create_owned(state, kind, namespace, object, write, Some(managed))?;
            return Ok(Written { object, is_new: true, warnings: Vec::new() });
        };
        let mut patched = patch::run(kind, &old, patch, write)?;
        let warnings = patch::decoded(kind, &mut patched.object, write.strictness)?;
        let admitted =
            admission::update(&mut state, kind, &old, patched.object, write, patched.managed_fields)?;
        let object = self.finish(state, kind, &old, admitted, write)?;
        Ok(Written { object, is_new: false, warnings })
    }

    /// The last step of a write to an object that was there.
    fn finish(
        &self,
        mut state: MutexGuard<'_, State>,
        kind: &'static Kind,
        old: &Arc<Value>,
        admitted: admission::Admitted,
        write: &Write,
    ) -> Result<Arc<Value>, Refusal> {
        let object = match admitted {
            admission::Admitted::Same => return Ok(old.clone()),
            admission::Admitted::Changed(object) if write.dry_run => return Ok(Arc::new(object)),
            admission::Admitted::Changed(object) if deletion::is_due(kind, &object) => {
                state.remove(kind, object)
            }
            admission::Admitted::Changed(object) => state.commit(kind, object),
        };
        self.ring(kind, state);
        Ok(object)
    }

    /// Deletes an object, or begins to.
    pub fn delete(
        &self,
        kind: &'static Kind,
        namespace: &str,
        name: &str,
        deletion: &Deletion,
    ) -> Result<Deleted, Refusal> {
        let mut state = self.lock();
        let old = state.find(kind, namespace, name).ok_or_else(|| Refusal::not_found(kind, name))?;
        let step = deletion::step(kind, &old, deletion)?;
        if deletion.dry_run {
            return Ok(Deleted { object: Arc::new(step.object), is_gone: step.is_last });
        }
        if step.changes_nothing {
            return Ok(Deleted { object: old, is_gone: false });
        }
        let object =
            if step.is_last { state.remove(kind, step.object) } else { state.commit(kind, step.object) };
        self.ring(kind, state);
        Ok(Deleted { object, is_gone: step.is_last })
    }

    /// The objects that name this UID as one of their owners: kind, namespace and name of each.
    pub fn owned_by(&self, uid: &str) -> Vec<(&'static Kind, String, String)> {
        self.lock().owned_by(uid)
    }

    /// Kind, namespace and name of the object with this UID.
    pub fn with_uid(&self, uid: &str) -> Option<(&'static Kind, String, String)> {
        self.lock().with_uid(uid)
    }

    /// Everything in a namespace: kind and name of each.
    pub fn in_namespace(&self, namespace: &str) -> Vec<(&'static Kind, String)> {
        let state = self.lock();
        let namespaced = KINDS.iter().filter(|kind| kind.namespaced);
        let found = namespaced.flat_map(|kind| {
            let here = state.shelf(kind).range(Some(namespace));
            here.into_iter().map(|object| (*kind, name_of(&object).to_owned()))
        });
        found.collect()
    }

    /// Forgets what happened, so that every watch from an earlier version is told `410 Gone`.
    pub fn forget_changes(&self) {
        self.lock().forget();
    }

    /// Keeps a list for the pages to come, and whose it is; the token of the next page.
    pub(crate) fn keep_list(&self, of: String, listed: Listed, offset: usize) -> String {
        self.lock().pages.keep(of, listed, offset)
    }

    /// The page that a token leads to.
    pub(crate) fn page(&self, token: &str) -> Option<Page> {
        self.lock().pages.find(token)
    }

    /// The last page of a list was read.
    pub(crate) fn list_is_read(&self, token: &str) {
        self.lock().pages.read_out(token);
    }
}

/// Namespace and name of an object.
pub fn key_of(object: &Value) -> (&str, &str) {
    (namespace_of(object), name_of(object))
}

/// The kind of a stored object.
pub fn kind_of(object: &Value) -> Option<&'static Kind> {
    kinds::of_object(text(object, &["apiVersion"]), text(object, &["kind"]))
}

#[cfg(test)]
pub(crate) mod tests;
