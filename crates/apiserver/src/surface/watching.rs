//! A watch over HTTP: one line per event, for as long as somebody reads.

use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use futures::StreamExt;
use futures::stream::unfold;
use http::Response;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, sleep_until};

use super::answer::{self, Content};
use super::negotiate::Form;
use super::route::Target;
use super::serve::Asked;
use super::{listing, shape, tables};
use crate::kinds::Kind;
use crate::refusal::Refusal;
use crate::running::told_to_stop;
use crate::store::{Happened, Selection, Watcher, What};

/// A bookmark comes so often to those who want them.
const BOOKMARK_EVERY: Duration = Duration::from_secs(30);
/// A watch lasts this long unless it says otherwise; the real server takes 30 to 60 minutes.
const LASTS: Duration = Duration::from_secs(45 * 60);
/// And never longer, whatever it says: a clock has an end.
const LASTS_AT_MOST: Duration = Duration::from_secs(24 * 60 * 60);
/// The annotation of the bookmark that ends the list part of a stream.
const LIST_END: &str = "k8s.io/initial-events-end";

/// One watch, from its first line to its last.
struct Telling {
    kind: &'static Kind,
    form: Form,
    wish: tables::Wish,
    watcher: Watcher,
    stop: watch::Receiver<bool>,
    ends: Instant,
    bookmarks: Option<Interval>,
    /// What is to be said before anything that happens.
    first: Option<Bytes>,
    /// The columns of a table stand in its first line only.
    has_columns: bool,
    is_over: bool,
}

/// Answers with a watch.
pub(crate) fn watch(asked: &Asked<'_>, target: &Target) -> Result<Response<Content>, Refusal> {
    let query = &asked.query;
    let selection = Selection::parse(target.kind, query.text("labelSelector"), query.text("fieldSelector"))?;
    let store = &asked.surface.store;
    let (stored, namespace) = (shape::stored(target.kind), target.namespace.as_deref());
    let from = query.number("resourceVersion")?;
    let with_bookmarks = query.flag("allowWatchBookmarks");
    let initial_events = query.has("sendInitialEvents").then(|| query.flag("sendInitialEvents"));
    if initial_events.is_some() && query.text("resourceVersionMatch") != "NotOlderThan" {
        return Err(forbidden_option(
            "resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to \
             NotOlderThan",
        ));
    }
    let now = store.version();
    if let Some(from) = from.filter(|from| *from > now) {
        return Err(listing::too_large(from, now));
    }
    let mut ends_list = None;
    let (initial, watcher) = match (initial_events, from) {
        (Some(true), _) => {
            let (listed, watcher) = store.follow(stored, namespace, selection);
            ends_list = with_bookmarks.then_some(listed.version);
            (listed.items, watcher)
        }
        // From anywhere: what is there comes first.
        (None, None | Some(0)) => {
            let (listed, watcher) = store.follow(stored, namespace, selection);
            (listed.items, watcher)
        }
        // From anywhere, and nothing of what is there: from now.
        (Some(false), None | Some(0)) => (Vec::new(), store.follow(stored, namespace, selection).1),
        (_, Some(from)) => match store.watch(stored, namespace, selection, from) {
            Ok(watcher) => (Vec::new(), watcher),
            // The real server says so inside of the stream.
            Err(refusal) => return Ok(gone(&refusal)),
        },
    };
    let lasts = query.number("timeoutSeconds")?.filter(|it| *it > 0).map_or(LASTS, Duration::from_secs);
    let lasts = lasts.min(LASTS_AT_MOST);
    let mut telling = Telling {
        kind: target.kind,
        form: asked.form,
        wish: tables::Wish::of(query, true),
        watcher,
        stop: asked.surface.stop.clone(),
        ends: Instant::now() + lasts,
        bookmarks: with_bookmarks.then(bookmark_interval),
        first: None,
        has_columns: false,
        is_over: false,
    };
    telling.first = Some(telling.opening(&initial, ends_list)).filter(|bytes| !bytes.is_empty());
    let lines = unfold(telling, |mut telling| async move {
        let line = telling.next().await?;
        Some((line, telling))
    });
    let mut response = answer::typed(200, "application/json", Bytes::new());
    *response.body_mut() = Content::Lines(lines.boxed());
    Ok(response)
}

fn bookmark_interval() -> Interval {
    let mut interval = interval_at(Instant::now() + BOOKMARK_EVERY, BOOKMARK_EVERY);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}

fn forbidden_option(message: &str) -> Refusal {
    Refusal::new(422, "Invalid", format!("ListOptions.meta.k8s.io \"\" is invalid: {message}"))
}

fn gone(refusal: &Refusal) -> Response<Content> {
    answer::typed(200, "application/json", line(&json!({"type": "ERROR", "object": refusal.status()})))
}

fn line(value: &Value) -> Bytes {
    let mut bytes = BytesMut::new();
    write(&mut bytes, value);
    bytes.freeze()
}

/// One line, without a copy of its object.
#[derive(Serialize)]
struct Event<'a> {
    #[serde(rename = "type")]
    what: &'a str,
    object: &'a Value,
}

fn write(bytes: &mut BytesMut, value: &impl Serialize) {
    // Serialising a Value into memory cannot fail.
    let _ = serde_json::to_writer(bytes.writer(), value);
    bytes.put_u8(b'\n');
}

impl Telling {
    async fn next(&mut self) -> Option<Bytes> {
        if self.is_over {
            return None;
        }
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        loop {
            let tick = async {
                match &mut self.bookmarks {
                    Some(interval) => interval.tick().await,
                    None => std::future::pending().await,
                }
            };
            let happened = tokio::select! {
                biased;
                () = told_to_stop(&mut self.stop) => return None,
                happened = self.watcher.next() => Some(happened),
                () = sleep_until(self.ends) => return None,
                _ = tick => None,
            };
            match happened {
                Some(happened) => return Some(self.told(happened)),
                None => {
                    if let Some(version) = self.watcher.bookmark() {
                        return Some(line(&self.bookmark(version, false)));
                    }
                }
            }
        }
    }

    /// All that is there, in one piece.
    fn opening(&mut self, initial: &[Arc<Value>], ends_list: Option<u64>) -> Bytes {
        let mut bytes = BytesMut::new();
        for object in initial {
            self.event("ADDED", object, &mut bytes);
        }
        if let Some(version) = ends_list {
            write(&mut bytes, &self.bookmark(version, true));
        }
        bytes.freeze()
    }

    /// What happened, and whatever else has happened by now, in one piece.
    fn told(&mut self, happened: Result<Happened, Refusal>) -> Bytes {
        let mut bytes = BytesMut::new();
        let all = happened.and_then(|first| {
            let mut all = vec![first];
            all.extend(self.watcher.ready()?);
            Ok(all)
        });
        match all {
            Ok(all) => {
                for happened in all {
                    let word = match happened.what {
                        What::Added => "ADDED",
                        What::Modified => "MODIFIED",
                        What::Deleted => "DELETED",
                    };
                    self.event(word, &happened.object, &mut bytes);
                }
            }
            Err(refusal) => {
                self.is_over = true;
                write(&mut bytes, &json!({"type": "ERROR", "object": refusal.status()}));
            }
        }
        bytes.freeze()
    }

    fn event(&mut self, word: &str, object: &Arc<Value>, bytes: &mut BytesMut) {
        let object = shape::shown(self.kind, object);
        let told = match self.form {
            Form::Table => {
                let wish = tables::Wish { columns: !self.has_columns, ..self.wish };
                self.has_columns = true;
                tables::table(self.kind, &[object], &wish)
            }
            Form::Metadata => shape::metadata_only(&object),
            Form::Plain | Form::Discovery => return write(bytes, &Event { what: word, object: &object }),
        };
        write(bytes, &Event { what: word, object: &told });
    }

    fn bookmark(&self, version: u64, ends_list: bool) -> Value {
        let mut meta = json!({"resourceVersion": version.to_string(), "creationTimestamp": null});
        if ends_list {
            meta["annotations"] = json!({LIST_END: "true"});
        }
        let object = match self.form {
            Form::Table => {
                let mut row = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"});
                row["metadata"] = meta;
                json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1",
                    "metadata": {"resourceVersion": version.to_string()},
                    "columnDefinitions": null, "rows": [{"cells": [], "object": row}]})
            }
            _ => json!({"kind": self.kind.kind, "apiVersion": self.kind.api_version(), "metadata": meta}),
        };
        json!({"type": "BOOKMARK", "object": object})
    }
}
