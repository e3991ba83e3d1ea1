//! Answers as they go over the wire.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::Stream;
use futures::stream::BoxStream;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use hyper::body::{Body, Frame, SizeHint};
use serde::Serialize;

use crate::refusal::Refusal;

/// A body: all at once, or as it happens.
pub(crate) enum Content {
    /// All of it.
    Whole(Option<Bytes>),
    /// Lines of a watch.
    Lines(BoxStream<'static, Bytes>),
}

impl Body for Content {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut *self {
            Content::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Content::Lines(lines) => {
                Pin::new(lines).poll_next(context).map(|line| line.map(|line| Ok(Frame::data(line))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Content::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Content::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |it| it.len() as u64)),
            Content::Lines(_) => SizeHint::new(),
        }
    }
}

/// An answer of some type.
pub(crate) fn typed(code: u16, content_type: &'static str, body: impl Into<Bytes>) -> Response<Content> {
    let mut answer =
        Response::new(Content::Whole(Some(body.into()).filter(|bytes: &Bytes| !bytes.is_empty())));
    *answer.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    answer
}

/// An object.
pub(crate) fn json(code: u16, value: &impl Serialize) -> Response<Content> {
    // What we answer with has text for keys, which is all that JSON asks for.
    typed(code, "application/json", serde_json::to_vec(value).unwrap_or_default())
}

/// Plain words.
pub(crate) fn text(code: u16, words: &'static str) -> Response<Content> {
    typed(code, "text/plain; charset=utf-8", words)
}

/// A refusal.
pub(crate) fn refused(refusal: &Refusal) -> Response<Content> {
    json(refusal.code, &refusal.status())
}
