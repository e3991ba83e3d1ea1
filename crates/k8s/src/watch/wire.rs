//! The bytes of lists and watches, taken apart; pure.
//!
//! An object stays raw JSON until its own turn comes, so that one that cannot be read costs
//! itself and not the list that it came in.

use kube::core::Status;
use serde::Deserialize;
use serde_json::value::RawValue;

/// A line longer than this is no object of Kubernetes: those end at 3 MiB.
const LINE_MAX: usize = 16 << 20;

/// Bytes that cannot be what they should be, as a sentence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Garbled(pub(crate) String);

/// Cuts what a stream brings into lines, wherever it was cut before.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    buffer: Vec<u8>,
    /// Lines before this have been taken.
    taken: usize,
    /// No line ends before this.
    searched: usize,
}

impl Lines {
    /// More bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), Garbled> {
        self.buffer.drain(..self.taken);
        self.searched -= self.taken;
        self.taken = 0;
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() > LINE_MAX {
            return Err(Garbled(format!("a watch event has more than {LINE_MAX} bytes")));
        }
        Ok(())
    }

    /// The next whole line that is not empty.
    pub(crate) fn next(&mut self) -> Option<&[u8]> {
        loop {
            let rest = self.buffer.get(self.searched..).unwrap_or_default();
            let Some(length) = rest.iter().position(|byte| *byte == b'\n') else {
                self.searched = self.buffer.len();
                return None;
            };
            let (from, to) = (self.taken, self.searched + length);
            self.taken = to + 1;
            self.searched = to + 1;
            if to > from {
                return self.buffer.get(from..to);
            }
        }
    }
}

/// One line of a watch.
#[derive(Debug)]
pub(crate) enum Line<'a> {
    /// An object is there that was not, or did not match the selector.
    Added(&'a RawValue),
    /// An object has changed.
    Changed(&'a RawValue),
    /// An object is gone, or does not match the selector any more.
    Gone(&'a RawValue),
    /// Nothing happened up to this version.
    Bookmark {
        /// The version.
        version: u64,
        /// The list part of the stream is complete.
        ends_list: bool,
    },
    /// The watch ends with an error.
    Error(Box<Status>),
    /// A type of a later day.
    Unknown,
}

impl<'a> Line<'a> {
    /// Reads a line.
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Line<'a>, Garbled> {
        #[derive(Deserialize)]
        struct Outer<'a> {
            r#type: &'a str,
            #[serde(borrow)]
            object: &'a RawValue,
        }
        let garbled = |error: serde_json::Error| Garbled(format!("invalid watch event: {error}"));
        let outer: Outer<'a> = serde_json::from_slice(bytes).map_err(garbled)?;
        Ok(match outer.r#type {
            "ADDED" => Line::Added(outer.object),
            "MODIFIED" => Line::Changed(outer.object),
            "DELETED" => Line::Gone(outer.object),
            "BOOKMARK" => {
                let meta = serde_json::from_str::<Bookmark>(outer.object.get()).map_err(garbled)?.metadata;
                Line::Bookmark {
                    version: version(meta.resource_version.as_deref(), "a bookmark's")?,
                    ends_list: meta.annotations.is_some_and(|it| it.end.as_deref() == Some("true")),
                }
            }
            "ERROR" => Line::Error(serde_json::from_str(outer.object.get()).map_err(garbled)?),
            _ => Line::Unknown,
        })
    }
}

#[derive(Deserialize)]
struct Bookmark {
    metadata: BookmarkMeta,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BookmarkMeta {
    resource_version: Option<String>,
    annotations: Option<BookmarkAnnotations>,
}

#[derive(Deserialize)]
struct BookmarkAnnotations {
    #[serde(rename = "k8s.io/initial-events-end")]
    end: Option<String>,
}

/// One page of a list.
#[derive(Debug)]
pub(crate) struct Page<'a> {
    /// The list's version.
    pub(crate) version: u64,
    /// Where the next page begins.
    pub(crate) next: Option<String>,
    /// The objects.
    pub(crate) items: Vec<&'a RawValue>,
}

impl<'a> Page<'a> {
    /// Reads a page.
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Page<'a>, Garbled> {
        #[derive(Deserialize)]
        struct Outer<'a> {
            metadata: ListMeta,
            #[serde(borrow)]
            items: Option<Vec<&'a RawValue>>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct ListMeta {
            resource_version: Option<String>,
            r#continue: Option<String>,
        }
        let outer: Outer<'a> = serde_json::from_slice(bytes)
            .map_err(|error| Garbled(format!("the answer is not a list: {error}")))?;
        Ok(Page {
            version: version(outer.metadata.resource_version.as_deref(), "the list's")?,
            next: outer.metadata.r#continue.filter(|token| !token.is_empty()),
            items: outer.items.unwrap_or_default(),
        })
    }
}

fn version(text: Option<&str>, whose: &str) -> Result<u64, Garbled> {
    let text = text.unwrap_or_default();
    text.parse().map_err(|_| {
        Garbled(format!(
            "{whose} resourceVersion {text:?} is not a number; Sluice compares versions as numbers and does not support this API server"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strings::INITIAL_EVENTS_END;

    fn all(lines: &mut Lines) -> Vec<String> {
        let mut all = Vec::new();
        while let Some(line) = lines.next() {
            all.push(String::from_utf8(line.to_vec()).unwrap());
        }
        all
    }

    #[test]
    fn lines_are_found_wherever_the_stream_was_cut() {
        let text = b"one\n\ntwo two\nthree\nfo";
        for size in 1..=text.len() {
            let (mut lines, mut found) = (Lines::default(), Vec::new());
            for chunk in text.chunks(size) {
                lines.push(chunk).unwrap();
                found.extend(all(&mut lines));
            }
            assert_eq!(found, ["one", "two two", "three"], "chunks of {size}");
            lines.push(b"ur\n").unwrap();
            assert_eq!(all(&mut lines), ["four"], "chunks of {size}");
        }
    }

    #[test]
    fn a_line_without_end_is_refused_and_not_kept_for_ever() {
        let mut lines = Lines::default();
        let chunk = vec![b'x'; 1 << 20];
        let sent = (0..100).take_while(|_| {
            let fits = lines.push(&chunk).is_ok();
            assert!(lines.next().is_none());
            fits
        });
        assert!(sent.count() <= 17);
    }

    #[test]
    fn each_kind_of_line_is_read() {
        let line = |text: &'static str| Line::read(text.as_bytes()).unwrap();
        assert!(
            matches!(line(r#"{"type":"ADDED","object":{"a":1}}"#), Line::Added(it) if it.get() == r#"{"a":1}"#)
        );
        assert!(matches!(line(r#"{"type":"MODIFIED","object":{}}"#), Line::Changed(_)));
        assert!(matches!(line(r#"{"type":"DELETED","object":{}}"#), Line::Gone(_)));
        assert!(matches!(line(r#"{"type":"RUMOUR","object":{}}"#), Line::Unknown));
        let bookmark = r#"{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"12","creationTimestamp":null}}}"#;
        assert!(matches!(line(bookmark), Line::Bookmark { version: 12, ends_list: false }));
        let end = format!(
            r#"{{"type":"BOOKMARK","object":{{"metadata":{{"resourceVersion":"12","annotations":{{"{INITIAL_EVENTS_END}":"true"}}}}}}}}"#
        );
        assert!(matches!(
            Line::read(end.as_bytes()).unwrap(),
            Line::Bookmark { version: 12, ends_list: true }
        ));
        let gone = r#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}"#;
        assert!(matches!(line(gone), Line::Error(status) if status.code == 410));
    }

    #[test]
    fn what_is_no_event_is_garbled() {
        for text in ["", "{", "null", r#"{"type":"ADDED"}"#, r#"{"kind":"Status","code":500}"#, "<html>"] {
            assert!(Line::read(text.as_bytes()).is_err(), "{text}");
        }
        let odd =
            Line::read(br#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"x1"}}}"#).unwrap_err();
        assert!(odd.0.contains("\"x1\" is not a number"), "{}", odd.0);
    }

    #[test]
    fn a_page_is_read_without_reading_its_objects() {
        let text =
            br#"{"kind":"PodList","metadata":{"resourceVersion":"9","continue":"abc","remainingItemCount":3},
            "items":[{"a":1},"nonsense"]}"#;
        let page = Page::read(text).unwrap();
        assert_eq!((page.version, page.next.as_deref(), page.items.len()), (9, Some("abc"), 2));
        let last = Page::read(br#"{"metadata":{"resourceVersion":"9","continue":""},"items":null}"#).unwrap();
        assert_eq!((last.next, last.items.len()), (None, 0));
        let odd = Page::read(br#"{"metadata":{"resourceVersion":"abc"},"items":[]}"#).unwrap_err();
        assert!(odd.0.starts_with("the list's resourceVersion \"abc\" is not a number"), "{}", odd.0);
        assert!(Page::read(b"{\"metadata\":{\"resourceVersion\":\"9\"},\"items\":[{\"a\"").is_err());
        assert!(Page::read(b"<html>").is_err());
    }
}
