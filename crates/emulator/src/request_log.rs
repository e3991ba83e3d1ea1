//! What was asked, when, by whom, and what came of it.
//!
//! Every request but those to the control API has an entry from the moment it arrives, so one that hangs
//! can be seen hanging. The oldest entries go when there are too many, and the oldest bodies before them;
//! what is gone is counted.

mod summary;

use std::collections::VecDeque;

use bytes::Bytes;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use crate::answers::hex;

pub(crate) use summary::summary;

/// How many bytes of bodies are kept.
const BODY_BYTES_MAX: usize = 64 << 20;

/// How many bytes are kept of each text that a client chose; a head may be much longer.
const TEXT_BYTES_MAX: usize = 2 << 10;

/// A moment on both clocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Moment {
    /// Real microseconds since the start.
    pub(crate) real_us: u64,
    /// Emulated milliseconds.
    pub(crate) emulated_ms: u64,
}

/// One request.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Entry {
    pub(crate) number: u64,
    pub(crate) arrived: Moment,
    /// Which part of the emulator it was for.
    pub(crate) area: &'static str,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) call: Option<&'static str>,
    pub(crate) kind: Option<&'static str>,
    pub(crate) name: Option<String>,
    pub(crate) principal: Option<String>,
    pub(crate) client_request_id: Option<String>,
    pub(crate) user_agent: Option<String>,
    pub(crate) bytes_in: usize,
    pub(crate) body: Body,
    /// The rule that struck, and its word.
    pub(crate) fault: Option<(u64, &'static str)>,
    pub(crate) outcome: Option<Outcome>,
}

/// What came of a request.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Outcome {
    /// When its answer was made, or when it was clear that there would be none.
    pub(crate) at: Moment,
    /// `None`: nothing came back.
    pub(crate) status: Option<u16>,
    pub(crate) bytes_out: usize,
    /// `Retry-After`, in real seconds.
    pub(crate) retry_after: Option<u64>,
    /// The code of an error.
    pub(crate) code: Option<String>,
    /// The operation that it started or asked for.
    pub(crate) operation: Option<String>,
    /// When that operation is over, in emulated milliseconds, if it still ran and ever ends.
    pub(crate) operation_ends_ms: Option<u64>,
}

#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) enum Body {
    #[default]
    None,
    Kept(Bytes),
    /// Too old to be kept; this was its SHA-256.
    Digest(String),
}

/// The requests that are remembered.
#[derive(Debug)]
pub(crate) struct RequestLog {
    entries: VecDeque<Entry>,
    entries_max: usize,
    /// How many there have ever been.
    numbered: u64,
    /// How many are gone because there were too many.
    dropped: u64,
    /// How many bytes of bodies are kept, and from which number on.
    body_bytes: usize,
    bodies_from: u64,
}

impl RequestLog {
    pub(crate) fn new(entries_max: usize) -> RequestLog {
        RequestLog {
            entries: VecDeque::new(),
            entries_max: entries_max.max(1),
            numbered: 0,
            dropped: 0,
            body_bytes: 0,
            bodies_from: 1,
        }
    }

    /// Writes down that a request has arrived, and gives it a number.
    pub(crate) fn arrive(&mut self, mut entry: Entry, body: Bytes) -> u64 {
        self.numbered += 1;
        entry.number = self.numbered;
        entry.cut_texts();
        entry.bytes_in = body.len();
        if !body.is_empty() {
            self.body_bytes += body.len();
            entry.body = Body::Kept(body);
        }
        self.entries.push_back(entry);
        while self.entries.len() > self.entries_max {
            self.drop_oldest();
        }
        self.forget_bodies();
        self.numbered
    }

    /// The entry of a request, unless it is gone.
    pub(crate) fn entry_mut(&mut self, number: u64) -> Option<&mut Entry> {
        let first = self.entries.front()?.number;
        self.entries.get_mut(usize::try_from(number.checked_sub(first)?).ok()?)
    }

    /// Forgets everything that was asked; numbers go on.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.dropped = 0;
        self.body_bytes = 0;
        self.bodies_from = self.numbered + 1;
    }

    /// The requests after a number, the oldest first.
    pub(crate) fn after(&self, number: u64) -> impl Iterator<Item = &Entry> {
        let from = self.entries.partition_point(|entry| entry.number <= number);
        self.entries.range(from..)
    }

    /// How many there have been, and how many of them are gone because there were too many.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.numbered, self.dropped)
    }

    fn drop_oldest(&mut self) {
        if let Some(Entry { body: Body::Kept(body), .. }) = self.entries.pop_front() {
            self.body_bytes = self.body_bytes.saturating_sub(body.len());
        }
        self.dropped += 1;
    }

    fn forget_bodies(&mut self) {
        while self.body_bytes > BODY_BYTES_MAX && self.bodies_from <= self.numbered {
            let number = self.bodies_from;
            self.bodies_from += 1;
            let Some(entry) = self.entry_mut(number) else { continue };
            if let Body::Kept(body) = &entry.body {
                let (length, digest) = (body.len(), sha256(body));
                entry.body = Body::Digest(digest);
                self.body_bytes = self.body_bytes.saturating_sub(length);
            }
        }
    }
}

impl Entry {
    fn cut_texts(&mut self) {
        let Entry { path, query, name, principal, client_request_id, user_agent, .. } = self;
        let given = [name, principal, client_request_id, user_agent].into_iter().flatten();
        [path, query].into_iter().chain(given).for_each(cut);
    }

    /// As JSON; with its body if asked and if it is still there.
    pub(crate) fn show(&self, with_body: bool) -> Value {
        let outcome = self.outcome.as_ref();
        let mut shown = json!({
            "number": self.number,
            "area": self.area,
            "arrivedMs": millis(self.arrived.real_us),
            "arrivedEmulatedMs": self.arrived.emulated_ms,
            "answeredMs": outcome.map(|it| millis(it.at.real_us)),
            "answeredEmulatedMs": outcome.map(|it| it.at.emulated_ms),
            "method": self.method,
            "path": self.path,
            "query": self.query,
            "status": outcome.and_then(|it| it.status),
            "code": outcome.and_then(|it| it.code.as_deref()),
            "call": self.call,
            "kind": self.kind,
            "name": self.name,
            "bucket": self.bucket(),
            "principal": self.principal,
            "clientRequestId": self.client_request_id,
            "userAgent": self.user_agent,
            "bytesIn": self.bytes_in,
            "bytesOut": outcome.map(|it| it.bytes_out),
            "retryAfter": outcome.and_then(|it| it.retry_after),
            "operation": outcome.and_then(|it| it.operation.as_deref()),
            "operationEndsEmulatedMs": outcome.and_then(|it| it.operation_ends_ms),
            "fault": self.fault.map(|(_, word)| word),
            "rule": self.fault.map(|(number, _)| number),
            "bodySha256": match &self.body {
                Body::None => None,
                Body::Kept(body) => Some(sha256(body)),
                Body::Digest(digest) => Some(digest.clone()),
            },
        });
        if let (true, Body::Kept(body)) = (with_body, &self.body) {
            let text = || Value::String(String::from_utf8_lossy(body).into_owned());
            shown["body"] = serde_json::from_slice(body).unwrap_or_else(|_| text());
        }
        shown
    }

    /// The bucket that pays for it; only the resource manager counts.
    pub(crate) fn bucket(&self) -> Option<&'static str> {
        if self.area != "arm" {
            return None;
        }
        Some(match self.method.as_str() {
            "GET" | "HEAD" => "reads",
            "DELETE" => "deletes",
            _ => "writes",
        })
    }
}

/// Cuts a text that a client chose where it becomes too long.
pub(crate) fn cut(text: &mut String) {
    if text.len() > TEXT_BYTES_MAX {
        text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
        text.push('…');
        text.shrink_to_fit();
    }
}

fn sha256(body: &Bytes) -> String {
    hex(digest(&SHA256, body).as_ref())
}

/// Microseconds as milliseconds.
fn millis(real_us: u64) -> f64 {
    real_us as f64 / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(path: &str) -> Entry {
        Entry { area: "arm", method: "PUT".into(), path: path.into(), ..Entry::default() }
    }

    #[test]
    fn numbers_go_on_and_the_oldest_go_first() {
        let mut log = RequestLog::new(2);
        let numbers: Vec<u64> =
            ["/a", "/b", "/c"].into_iter().map(|path| log.arrive(entry(path), Bytes::new())).collect();
        assert_eq!(numbers, [1, 2, 3]);
        let left: Vec<&str> = log.after(0).map(|entry| entry.path.as_str()).collect();
        assert_eq!(left, ["/b", "/c"]);
        assert_eq!(log.counts(), (3, 1));
        assert_eq!(log.entry_mut(1), None);
        assert_eq!(log.entry_mut(3).unwrap().path, "/c");
        assert_eq!(log.after(2).count(), 1);
        log.clear();
        assert_eq!(log.arrive(entry("/d"), Bytes::new()), 4);
        assert_eq!(log.entry_mut(4).unwrap().path, "/d");
    }

    #[test]
    fn old_bodies_go_and_leave_their_digest() {
        let mut log = RequestLog::new(100);
        let large = Bytes::from(vec![b'x'; BODY_BYTES_MAX / 2 + 1]);
        log.arrive(entry("/a"), large.clone());
        let digest = log.after(0).next().unwrap().show(true)["bodySha256"].clone();
        assert!(log.after(0).next().unwrap().show(true).get("body").is_some());
        log.arrive(entry("/b"), large);
        let first = log.after(0).next().unwrap().show(true);
        assert_eq!(first["bodySha256"], digest);
        assert!(first.get("body").is_none());
        assert!(log.after(1).next().unwrap().show(true).get("body").is_some());
        assert!(log.body_bytes <= BODY_BYTES_MAX);
    }

    #[test]
    fn long_texts_are_cut_where_a_character_ends() {
        let long = "ü".repeat(TEXT_BYTES_MAX);
        let mut log = RequestLog::new(1);
        let number = log.arrive(
            Entry {
                query: long.clone(),
                name: Some(long.clone()),
                client_request_id: Some(long.clone()),
                user_agent: Some(long.clone()),
                ..entry(&long)
            },
            Bytes::new(),
        );
        let entry = log.entry_mut(number).unwrap();
        let texts = [&entry.path, &entry.query].into_iter();
        let texts =
            texts.chain([&entry.name, &entry.client_request_id, &entry.user_agent].into_iter().flatten());
        for text in texts {
            assert_eq!(text.len(), TEXT_BYTES_MAX + "…".len());
            assert!(long.starts_with(text.strip_suffix('…').unwrap()));
        }
    }

    #[test]
    fn a_body_is_shown_as_json_where_it_is_some() {
        let mut log = RequestLog::new(9);
        log.arrive(entry("/a"), Bytes::from_static(b"{\"a\":1}"));
        log.arrive(entry("/b"), Bytes::from_static(b"<html>"));
        let bodies: Vec<Value> = log.after(0).map(|entry| entry.show(true)["body"].clone()).collect();
        assert_eq!(bodies, [json!({"a": 1}), json!("<html>")]);
        assert!(log.after(0).next().unwrap().show(false).get("body").is_none());
    }
}
