//! Tells people what they should know: an event at the object that it is about, and a line in the log.
//!
//! A notice about a Service or a pod stands there. One about an egress or the whole cluster has no
//! object of its own; it stands at the Lease by which we lead, in our own namespace: the Lease is there
//! whenever we act, and it outlives pods and upgrades (`kubectl -n sluice-system events --for lease/sluice`).
//!
//! The same words about the same object within six minutes make one event with a count. Other
//! words make another event: that is why this is not `kube::runtime::events::Recorder`, which folds
//! all notices of one reason into the first one's text, so that a Service whose second mistake has
//! the same reason as the first would show the first for ever.
//!
//! The engine says things once and not often; should it not, a limit per object and one for all keep
//! the API server from being flooded. What is held back is counted, and still stands in the log.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::Client;
use serde_json::{Value, json};
use sluice_model::effect::{About, Notice};
use sluice_model::reason::Reason;
use tokio::sync::OnceCell;

use crate::call::{Call, Trouble, cut};
use crate::strings::EVENT_SOURCE;
use crate::write::WallClock;

/// `note` may not be longer.
const NOTE_BYTES_MAX: usize = 1024;
/// `reportingInstance` may not be longer.
const INSTANCE_BYTES_MAX: usize = 128;
/// Room for the number behind it, within the 253 bytes of a name.
const NAME_BYTES_MAX: usize = 220;
/// After so long without repetition the same words make a new event.
const SERIES_ENDS_AFTER: SignedDuration = SignedDuration::from_mins(6);
/// Per object: so many events at once, then one in 30 s.
const OBJECT_PACE: Pace = Pace { burst: 10.0, per_second: 1.0 / 30.0 };
/// For all objects together: so many at once, then 20 in a second.
const PACE: Pace = Pace { burst: 200.0, per_second: 20.0 };
/// Memories beyond so many are swept of what no longer matters.
const REMEMBERED_MAX: usize = 4096;

/// Writes events; cheap to clone, and clones share what they remember.
#[derive(Clone)]
pub(crate) struct Notices {
    client: Client,
    instance: String,
    clock: WallClock,
    home: Option<Arc<Home>>,
    book: Arc<Mutex<Book>>,
    held_back: Arc<AtomicU64>,
}

/// Where notices stand that are about no object of their own.
struct Home {
    namespace: String,
    lease: String,
    uid: OnceCell<String>,
}

impl Notices {
    pub(crate) fn new(client: Client, instance: String, clock: WallClock) -> Notices {
        // It may not be empty either.
        let instance = if instance.is_empty() { EVENT_SOURCE.into() } else { instance };
        let instance = cut_bytes(&instance, INSTANCE_BYTES_MAX).to_string();
        Notices { client, instance, clock, home: None, book: Arc::default(), held_back: Arc::default() }
    }

    pub(crate) fn with_clock(self, clock: WallClock) -> Notices {
        Notices { clock, ..self }
    }

    pub(crate) fn with_home(self, namespace: &str, lease: &str) -> Notices {
        let home = Home { namespace: namespace.into(), lease: lease.into(), uid: OnceCell::new() };
        Notices { home: Some(Arc::new(home)), ..self }
    }

    /// How many events were not written because there were too many.
    pub(crate) fn held_back(&self) -> u64 {
        self.held_back.load(Ordering::Relaxed)
    }

    /// Writes the line, then the event; one that cannot be written is only said in the log.
    pub(crate) async fn tell(&self, notice: &Notice) {
        log(notice);
        let Some(regarding) = self.regarding(&notice.about).await else { return };
        let note = match &notice.about {
            About::Key(key) => format!("{key}: {}", notice.text),
            _ => notice.text.clone(),
        };
        let words = Words {
            about: regarding["uid"].as_str().or(regarding["name"].as_str()).unwrap_or_default().into(),
            warning: notice.warning,
            reason: notice.reason,
            note: match notice.warning {
                true => with_code(&note, notice.reason),
                false => cut(&note, NOTE_BYTES_MAX),
            },
        };
        let now = (self.clock)();
        let admitted = self.book().admit(&words, now);
        let Some(before) = admitted else {
            self.held_back.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(about = %words.about, "too many events; this one stands only in the log");
            return;
        };
        match self.publish(&words, &regarding, before, now).await {
            Ok(series) => self.book().remember(words, series),
            Err(trouble) => tracing::warn!(about = %words.about, %trouble, "an event could not be written"),
        }
    }

    /// Counts on in the event that is there, or makes one.
    async fn publish(
        &self,
        words: &Words,
        regarding: &Value,
        before: Option<Series>,
        now: Timestamp,
    ) -> Result<Series, Trouble> {
        let namespace = regarding["namespace"].as_str().unwrap_or("default");
        let path = format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events");
        if let Some(series) = before {
            let count = series.count + 1;
            let overlay = json!({"series": {"count": count, "lastObservedTime": MicroTime(now)}});
            let call = Call::merge("events.events.k8s.io", format!("{path}/{}", series.event), overlay);
            match call.send::<Value>(&self.client).await {
                Ok(_) => return Ok(Series { count, last: now, ..series }),
                // Events are thrown away after an hour, or by somebody who tidied up.
                Err(Trouble::Missing(_)) => {}
                Err(trouble) => return Err(trouble),
            }
        }
        let event = self.book().name(regarding["name"].as_str().unwrap_or(EVENT_SOURCE), now);
        let object = json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": event, "namespace": namespace},
            "eventTime": MicroTime(now),
            "type": if words.warning { "Warning" } else { "Normal" },
            "reason": words.reason.word(),
            "action": "Reconcile",
            "note": words.note,
            "regarding": regarding,
            "reportingController": EVENT_SOURCE,
            "reportingInstance": self.instance,
        });
        Call::create("events.events.k8s.io", path, object).send::<Value>(&self.client).await?;
        Ok(Series { event, count: 1, last: now })
    }

    /// The object that an event stands at; `None` when there is nowhere to put it.
    async fn regarding(&self, about: &About) -> Option<Value> {
        let (kind, object) = match about {
            About::Service(object) => ("Service", object),
            About::Pod(object) => ("Pod", object),
            About::Key(_) | About::Cluster => return self.home_reference().await,
        };
        Some(json!({
            "apiVersion": "v1",
            "kind": kind,
            "namespace": &*object.name.namespace,
            "name": &*object.name.name,
            "uid": object.uid.to_string(),
        }))
    }

    async fn home_reference(&self) -> Option<Value> {
        let home = self.home.as_deref()?;
        let mut reference = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "namespace": home.namespace,
            "name": home.lease,
        });
        // `kubectl describe` finds events by the UID; without it they are still found by name.
        let look = || async {
            let path =
                format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases/{}", home.namespace, home.lease);
            let lease: Value = Call::get("leases", path).send(&self.client).await?;
            let uid = lease["metadata"]["uid"].as_str().map(str::to_string);
            uid.ok_or_else(|| Trouble::Unavailable("the Lease has no UID".into()))
        };
        match home.uid.get_or_try_init(look).await {
            Ok(uid) => reference["uid"] = json!(uid),
            Err(trouble) => tracing::debug!(%trouble, "the Lease's UID is not known"),
        }
        Some(reference)
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// With the code that `sluice explain` has a page about; whatever is cut, it stays.
fn with_code(note: &str, reason: Reason) -> String {
    let code = format!(" ({})", reason.code());
    cut(note, NOTE_BYTES_MAX - code.len()) + &code
}

fn log(notice: &Notice) {
    let about: &dyn std::fmt::Display = match &notice.about {
        About::Service(object) | About::Pod(object) => &object.name,
        About::Key(key) => key,
        About::Cluster => &"cluster",
    };
    let kind = match &notice.about {
        About::Service(_) => "service",
        About::Pod(_) => "pod",
        About::Key(_) => "key",
        About::Cluster => "cluster",
    };
    if notice.warning {
        let (reason, code) = (notice.reason.word(), notice.reason.code());
        tracing::warn!(kind, %about, reason, code, "{}", notice.text);
    } else {
        tracing::info!(kind, %about, reason = notice.reason.word(), "{}", notice.text);
    }
}

/// What makes two notices the same.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Words {
    about: String,
    warning: bool,
    reason: Reason,
    note: String,
}

/// An event that is there, and how often it has been said.
#[derive(Clone)]
struct Series {
    event: String,
    count: u32,
    last: Timestamp,
}

/// What has been said lately, and how much more may be.
#[derive(Default)]
struct Book {
    series: HashMap<Words, Series>,
    objects: HashMap<String, Bucket>,
    all: Bucket,
    named: u16,
}

impl Book {
    /// Whether it may be written at all, and if so the event that it repeats.
    fn admit(&mut self, words: &Words, now: Timestamp) -> Option<Option<Series>> {
        self.sweep(now);
        let object = self.objects.entry(words.about.clone()).or_default();
        if !object.has_one(OBJECT_PACE, now) || !self.all.has_one(PACE, now) {
            return None;
        }
        object.spend();
        self.all.spend();
        Some(self.series.get(words).filter(|series| series.is_running(now)).cloned())
    }

    fn remember(&mut self, words: Words, series: Series) {
        self.series.insert(words, series);
    }

    /// A name that no other event has: the object's, the moment and a number.
    fn name(&mut self, object: &str, now: Timestamp) -> String {
        self.named = self.named.wrapping_add(1);
        let stem = cut_bytes(object, NAME_BYTES_MAX).trim_end_matches(['.', '-']);
        format!("{stem}.{:x}{:04x}", now.as_microsecond(), self.named)
    }

    /// Forgets what would make no difference; only when there is much.
    fn sweep(&mut self, now: Timestamp) {
        if self.series.len() > REMEMBERED_MAX {
            self.series.retain(|_, series| series.is_running(now));
        }
        if self.objects.len() > REMEMBERED_MAX {
            self.objects.retain(|_, bucket| !bucket.is_full(OBJECT_PACE, now));
        }
        // A storm over very many objects: better a few repeated events than memory without end.
        if self.series.len() > REMEMBERED_MAX {
            self.series.clear();
        }
        if self.objects.len() > REMEMBERED_MAX {
            self.objects.clear();
        }
    }
}

impl Series {
    fn is_running(&self, now: Timestamp) -> bool {
        now.duration_since(self.last) < SERIES_ENDS_AFTER
    }
}

/// How many at once, and how many in the long run.
#[derive(Clone, Copy)]
struct Pace {
    burst: f64,
    per_second: f64,
}

/// What has been used of a pace.
#[derive(Clone, Copy, Default)]
struct Bucket {
    used: f64,
    at: Option<Timestamp>,
}

impl Bucket {
    fn has_one(&mut self, pace: Pace, now: Timestamp) -> bool {
        self.drain(pace, now);
        self.used + 1.0 <= pace.burst
    }

    fn spend(&mut self) {
        self.used += 1.0;
    }

    fn is_full(&mut self, pace: Pace, now: Timestamp) -> bool {
        self.drain(pace, now);
        self.used <= 0.0
    }

    /// A clock that goes back gives nothing and takes nothing.
    fn drain(&mut self, pace: Pace, now: Timestamp) {
        let passed = self.at.map_or(0.0, |at| now.duration_since(at).as_secs_f64().max(0.0));
        self.used = (self.used - passed * pace.per_second).max(0.0);
        self.at = Some(now);
    }
}

/// At most so many bytes, without a mark.
fn cut_bytes(text: &str, bytes_max: usize) -> &str {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests;
