//! The loop that every controller runs in: changes come in, keys are looked at, changes go out.
//!
//! A key is looked at once however much happened to it meanwhile, and again later if its controller says so.
//! Whoever was overtaken by another writer looks again. A look that panics costs its own key and no other;
//! a controller that panics elsewhere is made anew and begins with a fresh list.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{BoxFuture, select_all};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::object::reference_to;
use crate::kinds::{EVENT, Kind, Sub};
use crate::refusal::Refusal;
use crate::store::{Deletion, Happened, Selection, Store, Watcher, What, Write, key_of};
use crate::value::{name_of, now, text};

/// Namespace and name of what a controller looks at.
pub(super) type Key = (String, String);

/// One that runs in the loop.
pub(super) trait Controller: Send + 'static {
    /// What it is called in events, and as a manager of fields.
    const NAME: &'static str;
    /// The kinds whose changes concern it.
    fn follows(&self) -> Vec<&'static Kind>;
    /// Whom to look at because of a change.
    fn concerns(&mut self, store: &Store, kind: &'static Kind, what: What, object: &Value) -> Vec<Key>;
    /// What should change for a key.
    fn look(&mut self, store: &Store, key: &Key) -> Work;
}

/// How long one waits for a name that another has.
const NAME_TAKEN: Duration = Duration::from_secs(1);

/// What comes of a look.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Work {
    pub(super) changes: Vec<Change>,
    /// Look again after so long, even if nothing happens.
    pub(super) again: Option<Duration>,
}

impl From<Vec<Change>> for Work {
    fn from(changes: Vec<Change>) -> Work {
        Work { changes, again: None }
    }
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Change {
    /// Makes an object; its name, if the server chose it, stands for `{}` in what is told.
    Create { kind: &'static Kind, object: Value, told: Option<Told> },
    /// Writes an object, or a part of it, unless somebody else has written meanwhile.
    Put { kind: &'static Kind, sub: Option<Sub>, object: Value },
    /// Deletes this very object.
    Delete { kind: &'static Kind, object: Arc<Value>, deletion: Deletion },
    /// Writes an event.
    Tell(Told),
}

/// An event to write.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Told {
    pub(super) about: Value,
    pub(super) reason: &'static str,
    pub(super) message: String,
    pub(super) is_warning: bool,
}

impl Told {
    /// An ordinary event about an object.
    pub(super) fn of(about: &Value, reason: &'static str, message: impl Into<String>) -> Told {
        Told { about: reference_to(about), reason, message: message.into(), is_warning: false }
    }
}

/// How long a controller that panicked rests.
const REST: Duration = Duration::from_secs(1);

/// Runs a controller for ever.
pub(super) async fn run<C: Controller>(store: Store, make: impl Fn() -> C + Send) {
    loop {
        // Whatever it was about to change is thrown away with it; the store takes a write whole or not at all.
        let Err(_) = AssertUnwindSafe(work(store.clone(), make())).catch_unwind().await;
        tracing::error!(controller = C::NAME, "a controller panicked; it begins anew");
        tokio::time::sleep(REST).await;
    }
}

async fn work<C: Controller>(store: Store, mut controller: C) -> Infallible {
    let mut machine =
        Machine { store, events: Events::default(), queue: Queue::default(), later: BTreeSet::new() };
    let mut watches = machine.begin_all(&mut controller);
    loop {
        while let Some(key) = machine.queue.pop() {
            machine.look(&mut controller, key);
            // A long queue must not keep the others waiting.
            tokio::task::yield_now().await;
        }
        let next = machine.later.first().map(|(time, _)| *time);
        let news = watches.iter_mut().map(|watch| watch.events.next().boxed());
        let news = select_all(news.collect::<Vec<BoxFuture<'_, Result<Happened, Refusal>>>>());
        let (happened, index) = tokio::select! {
            (happened, index, _) = news => (happened, index),
            () = sleep_until(next) => {
                machine.ripen();
                continue;
            }
        };
        let mut heeded = machine.heed(&mut controller, watches[index].kind, happened.map(|it| vec![it]));
        for watch in &mut watches {
            let happened = watch.events.ready();
            heeded = heeded.and(machine.heed(&mut controller, watch.kind, happened));
        }
        // So far behind that changes were forgotten. What is gone is in no list, and is missed by its owner
        // or by what it owned: all of every kind is looked at again.
        if heeded.is_err() {
            watches = machine.begin_all(&mut controller);
        }
    }
}

async fn sleep_until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

struct Watch {
    kind: &'static Kind,
    events: Watcher,
}

/// Keys in the order in which they came, each once.
#[derive(Default)]
struct Queue {
    order: VecDeque<Key>,
    waiting: BTreeSet<Key>,
}

impl Queue {
    fn push(&mut self, key: Key) {
        if self.waiting.insert(key.clone()) {
            self.order.push_back(key);
        }
    }

    fn pop(&mut self) -> Option<Key> {
        let key = self.order.pop_front()?;
        self.waiting.remove(&key);
        Some(key)
    }
}

struct Machine {
    store: Store,
    events: Events,
    queue: Queue,
    later: BTreeSet<(Instant, Key)>,
}

impl Machine {
    fn begin_all<C: Controller>(&mut self, controller: &mut C) -> Vec<Watch> {
        controller.follows().into_iter().map(|kind| self.begin(controller, kind)).collect()
    }

    fn begin<C: Controller>(&mut self, controller: &mut C, kind: &'static Kind) -> Watch {
        let (listed, events) = self.store.follow(kind, None, Selection::default());
        for object in &listed.items {
            self.heed_one(controller, kind, What::Added, object);
        }
        Watch { kind, events }
    }

    fn heed<C: Controller>(
        &mut self,
        controller: &mut C,
        kind: &'static Kind,
        happened: Result<Vec<Happened>, Refusal>,
    ) -> Result<(), Refusal> {
        for it in happened? {
            self.heed_one(controller, kind, it.what, &it.object);
        }
        Ok(())
    }

    fn heed_one<C: Controller>(
        &mut self,
        controller: &mut C,
        kind: &'static Kind,
        what: What,
        object: &Value,
    ) {
        for key in controller.concerns(&self.store, kind, what, object) {
            self.queue.push(key);
        }
    }

    fn ripen(&mut self) {
        let now = Instant::now();
        while let Some(ripe) = self.later.first().filter(|(time, _)| *time <= now).cloned() {
            self.later.remove(&ripe);
            self.queue.push(ripe.1);
        }
    }

    fn look<C: Controller>(&mut self, controller: &mut C, key: Key) {
        let looked = catch_unwind(AssertUnwindSafe(|| controller.look(&self.store, &key)));
        let Ok(work) = looked else {
            tracing::error!(controller = C::NAME, key = ?key, "a look panicked; it is left until it changes");
            return;
        };
        if let Some(again) = work.again {
            self.later.insert((Instant::now() + again, key.clone()));
        }
        for change in work.changes {
            if let Err(refusal) = self.carry_out(change, C::NAME) {
                match refusal.reason {
                    "Conflict" => self.queue.push(key),
                    // Somebody else has the name, and may go.
                    "AlreadyExists" => {
                        self.later.insert((Instant::now() + NAME_TAKEN, key));
                    }
                    // It is gone, or its namespace goes; what follows from that is told by a watch.
                    "NotFound" | "Forbidden" => {}
                    _ => tracing::warn!(controller = C::NAME, key = ?key, %refusal, "a write was refused"),
                }
                return;
            }
        }
    }

    fn carry_out(&mut self, change: Change, name: &'static str) -> Result<(), Refusal> {
        let write = Write::by(name);
        match change {
            Change::Create { kind, object, told } => {
                let namespace = text(&object, &["metadata", "namespace"]).to_owned();
                let made = self.store.create(kind, &namespace, object, &write)?;
                if let Some(mut told) = told {
                    told.message = told.message.replace("{}", name_of(&made));
                    self.events.write(&self.store, told, name);
                }
            }
            Change::Put { kind, sub, object } => {
                let (namespace, name) = key_of(&object);
                let (namespace, name) = (namespace.to_owned(), name.to_owned());
                self.store.update(kind, &namespace, &name, object, &Write { sub, ..write })?;
            }
            Change::Delete { kind, object, mut deletion } => {
                let (namespace, name) = key_of(&object);
                deletion.uid = Some(text(&object, &["metadata", "uid"]).to_owned());
                self.store.delete(kind, namespace, name, &deletion)?;
            }
            Change::Tell(told) => self.events.write(&self.store, told, name),
        }
        Ok(())
    }
}

/// Events that were written, so that the same one again is counted and not written anew.
#[derive(Default)]
struct Events {
    written: HashMap<(String, &'static str, String), String>,
}

/// How many events are known for counting.
const EVENTS_KNOWN: usize = 4096;

impl Events {
    fn write(&mut self, store: &Store, told: Told, component: &'static str) {
        let namespace = match text(&told.about, &["namespace"]) {
            "" => "default",
            namespace => namespace,
        };
        let same = (text(&told.about, &["uid"]).to_owned(), told.reason, told.message.clone());
        if let Some(name) = self.written.get(&same) {
            let counted = store.modify(&EVENT, namespace, name, &Write::by(component), |event| {
                let mut event = event.clone();
                event["count"] = json!(event["count"].as_i64().unwrap_or(1) + 1);
                event["lastTimestamp"] = json!(now());
                Ok(event)
            });
            if counted.is_ok() {
                return;
            }
        }
        let nanos = jiff::Timestamp::now().as_nanosecond();
        let name = format!("{}.{nanos:016x}", text(&told.about, &["name"]));
        let time = now();
        let event = json!({
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": told.about,
            "reason": told.reason,
            "message": told.message,
            "source": {"component": component},
            "firstTimestamp": time,
            "lastTimestamp": time,
            "count": 1,
            "type": if told.is_warning { "Warning" } else { "Normal" },
            "reportingComponent": component,
            "reportingInstance": "",
        });
        // An event that cannot be written (its namespace goes) is not worth more.
        if store.create(&EVENT, namespace, event, &Write::by(component)).is_ok() {
            if self.written.len() >= EVENTS_KNOWN {
                self.written.clear();
            }
            self.written.insert(same, name);
        }
    }
}

#[cfg(test)]
mod tests;
