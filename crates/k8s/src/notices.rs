//! Tells people what they should know: an event at the object that it is about, and a line in the log.
//!
//! A notice about a Service or a pod stands there. One about an egress or the whole cluster has no
//! object of its own; it stands at the Lease by which we lead, in our own namespace: the Lease is there
//! whenever we act, and it outlives pods and upgrades (`kubectl -n sluice-system events --for lease/sluice`).
//!
//! The same words about the same object are one event with a count, for as long as the API server keeps it
//! (an hour after the last time). Its name follows from the words, so whoever leads next counts on in it
//! instead of telling everything anew. Other words make another event: that is why this is not
//! `kube::runtime::events::Recorder`, which folds all notices of one reason into the first one's text, so
//! that a Service whose second mistake has the same reason as the first would show the first for ever.
//!
//! The engine says things once and not often. Should it not, a limit per subject keeps both the log and the API server
//! from being flooded, and a limit for all subjects the API server. A subject is an object, an egress, or a reason
//! among those that are about the whole cluster. What is held back is counted.

mod book;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};
use sluice_model::effect::{About, Notice};
use sluice_model::notices::{NOTE_BYTES_MAX, shortened};
use sluice_model::reason::Reason;
use tokio::sync::OnceCell;

use crate::call::{Call, Trouble};
use crate::strings::EVENT_SOURCE;
use crate::write::{Fence, WallClock};
use book::{Admission, Book};

/// `reportingInstance` may not be longer.
const INSTANCE_BYTES_MAX: usize = 128;
/// Room for the hash behind it, within the 253 bytes of a name.
const NAME_BYTES_MAX: usize = 220;
/// What an event is called in permissions and messages.
const EVENTS: &str = "events.events.k8s.io";

/// Writes events; cheap to clone, and clones share what they remember.
#[derive(Clone)]
pub(crate) struct Notices {
    client: Client,
    instance: String,
    clock: WallClock,
    fence: Fence,
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
        Notices {
            client,
            instance,
            clock,
            fence: Arc::new(|| true),
            home: None,
            book: Arc::default(),
            held_back: Arc::default(),
        }
    }

    /// With a question that is asked before every request: one notice may be several, and the lease may run
    /// out between two of them.
    pub(crate) fn with_fence(self, fence: Fence) -> Notices {
        Notices { fence, ..self }
    }

    pub(crate) fn with_clock(self, clock: WallClock) -> Notices {
        Notices { clock, ..self }
    }

    pub(crate) fn with_home(self, namespace: &str, lease: &str) -> Notices {
        let home = Home { namespace: namespace.into(), lease: lease.into(), uid: OnceCell::new() };
        Notices { home: Some(Arc::new(home)), ..self }
    }

    /// How many notices were not written as events because there were too many.
    pub(crate) fn held_back(&self) -> u64 {
        self.held_back.load(Ordering::Relaxed)
    }

    /// Writes the line, then the event; one that cannot be written is only said in the log.
    pub(crate) async fn tell(&self, notice: &Notice) {
        let now = (self.clock)();
        let admission = self.book().admit(&subject(notice), now);
        if admission != Admission::Admitted {
            self.held_back.fetch_add(1, Ordering::Relaxed);
            if admission == Admission::FirstHeldBack {
                let about = about(notice);
                tracing::warn!(%about, "event rate limit reached; at most one event in 30 s is published");
            }
            return;
        }
        log(notice);
        let Some(regarding) = self.regarding(&notice.about).await else { return };
        let note = match &notice.about {
            About::Key(key) => format!("{key}: {}", notice.text),
            _ => notice.text.clone(),
        };
        let words = Words {
            about: regarding["uid"].as_str().or(regarding["name"].as_str()).unwrap_or_default(),
            warning: notice.warning,
            reason: notice.reason,
            note: match notice.warning {
                true => with_code(&note, notice.reason),
                false => shortened(&note, NOTE_BYTES_MAX),
            },
        };
        let event = words.event_name(regarding["name"].as_str().unwrap_or(EVENT_SOURCE));
        let admitted = self.book().admit_event(&event, now);
        let Some(count) = admitted else {
            self.held_back.fetch_add(1, Ordering::Relaxed);
            tracing::debug!(about = words.about, "event dropped: rate limit");
            return;
        };
        match self.publish(&words, &event, &regarding, count, now).await {
            Ok(count) => self.book().remember(event, count, now),
            Err(trouble) => tracing::warn!(about = words.about, %trouble, "event not written"),
        }
    }

    /// Counts on in the event that is there, or makes one; how often it has been said now.
    async fn publish(
        &self,
        words: &Words<'_>,
        event: &str,
        regarding: &Value,
        count: Option<u32>,
        now: Timestamp,
    ) -> Result<u32, Trouble> {
        let namespace = regarding["namespace"].as_str().unwrap_or("default");
        let path = format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events");
        let one = format!("{path}/{event}");
        if let Some(count) = count {
            match self.count_on(&one, count, now).await {
                // Events are thrown away after an hour, or by somebody who tidied up.
                Err(Trouble::Missing(_)) => {}
                ended => return ended,
            }
        }
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
        match self.send(Call::create(EVENTS, path, object)).await {
            Ok(_) => return Ok(1),
            // Said before, by whoever led before us, or so long ago that we have forgotten it.
            Err(Trouble::Conflict(_)) => {}
            Err(trouble) => return Err(trouble),
        }
        // A patch that changes nothing is answered with the object, and needs no permission to read.
        let found = self.send(Call::merge(EVENTS, one.clone(), json!({}))).await?;
        let count = found["series"]["count"].as_u64().and_then(|count| u32::try_from(count).ok());
        self.count_on(&one, count.unwrap_or(1), now).await
    }

    async fn count_on(&self, path: &str, count: u32, now: Timestamp) -> Result<u32, Trouble> {
        // The API server wants two at least, and counts as `int32`.
        let count = count.saturating_add(1).clamp(2, i32::MAX as u32);
        let overlay = json!({"series": {"count": count, "lastObservedTime": MicroTime(now)}});
        self.send(Call::merge(EVENTS, path.to_string(), overlay)).await?;
        Ok(count)
    }

    /// Sends one request, if it may be begun.
    async fn send(&self, call: Call) -> Result<Value, Trouble> {
        if !(self.fence)() {
            return Err(Trouble::Unavailable("request not sent: the lease may be lost".into()));
        }
        call.send(&self.client).await
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
            let lease = self.send(Call::get("leases", path)).await?;
            let uid = lease["metadata"]["uid"].as_str().map(str::to_string);
            uid.ok_or_else(|| Trouble::Unavailable("the Lease has no UID".into()))
        };
        match home.uid.get_or_try_init(look).await {
            Ok(uid) => reference["uid"] = json!(uid),
            Err(trouble) => tracing::debug!(%trouble, "lease UID not available"),
        }
        Some(reference)
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// With the code that `sluice explain` has a page about. Whatever is cut, the code and what to do stay.
fn with_code(note: &str, reason: Reason) -> String {
    let code = format!(" ({})", reason.code());
    shortened(note, NOTE_BYTES_MAX - code.len()) + &code
}

/// What shares one limit.
fn subject(notice: &Notice) -> String {
    match &notice.about {
        About::Service(object) | About::Pod(object) => object.uid.to_string(),
        About::Key(key) => key.to_string(),
        About::Cluster => format!("cluster: {}", notice.reason.word()),
    }
}

fn about(notice: &Notice) -> &dyn std::fmt::Display {
    match &notice.about {
        About::Service(object) | About::Pod(object) => &object.name,
        About::Key(key) => key,
        About::Cluster => &"cluster",
    }
}

fn log(notice: &Notice) {
    let about = about(notice);
    let note = shortened(&notice.text, NOTE_BYTES_MAX);
    let kind = match &notice.about {
        About::Service(_) => "service",
        About::Pod(_) => "pod",
        About::Key(_) => "key",
        About::Cluster => "cluster",
    };
    if notice.warning {
        let (reason, code) = (notice.reason.word(), notice.reason.code());
        tracing::warn!(kind, %about, reason, code, note, "event");
    } else {
        tracing::info!(kind, %about, reason = notice.reason.word(), note, "event");
    }
}

/// What makes two notices the same.
struct Words<'a> {
    about: &'a str,
    warning: bool,
    reason: Reason,
    note: String,
}

impl Words<'_> {
    /// The object's name and a hash of all that makes the notice: the same in every process.
    fn event_name(&self, object: &str) -> String {
        let stem = cut_bytes(object, NAME_BYTES_MAX).trim_end_matches(['.', '-']);
        let kind = if self.warning { "Warning" } else { "Normal" };
        let hash = hash(&[self.about, kind, self.reason.word(), &self.note]);
        format!("{stem}.{hash:016x}")
    }
}

/// FNV-1a, with an end behind each part. The standard library's hashers may change with its version, and
/// a name must not; only the few events of one object could ever be mistaken for each other.
fn hash(parts: &[&str]) -> u64 {
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0xff]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
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
