//! One connection as the faults need it: it can be cut in the middle, and an answer can end too early.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::{Sleep, sleep};

/// A request for the end of a connection, from one who handles a request on it.
#[derive(Debug, Default)]
pub(crate) struct Scissors {
    is_reset: AtomicBool,
    wanted: Notify,
}

impl Scissors {
    /// Ends the connection with a TCP reset. What is on its way to the client is lost.
    pub(crate) fn reset(&self) {
        self.is_reset.store(true, Ordering::Release);
        self.wanted.notify_one();
    }

    /// Waits until somebody wants the end.
    pub(crate) async fn wanted(&self) {
        self.wanted.notified().await;
    }
}

/// A TCP stream that goes with a reset when it was cut.
#[derive(Debug)]
pub(crate) struct Wire {
    stream: TcpStream,
    scissors: Arc<Scissors>,
}

impl Wire {
    pub(crate) fn new(stream: TcpStream, scissors: Arc<Scissors>) -> Wire {
        Wire { stream, scissors }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        if self.scissors.is_reset.load(Ordering::Acquire) {
            // A socket that is already gone needs no reset.
            let _ = self.stream.set_zero_linger();
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// How long the beginning of a broken answer has to get out: hyper throws away what is still in its
/// buffers when the rest fails, and nobody tells when they are empty.
const HEAD_START: Duration = Duration::from_millis(100);

/// The body of an answer: all of it, or only its beginning.
#[derive(Debug)]
pub(crate) struct Content {
    bytes: Option<Bytes>,
    /// How many bytes are still promised; those that there are not make the answer break off.
    promised: usize,
    breaking: Option<Pin<Box<Sleep>>>,
}

impl Content {
    pub(crate) fn whole(bytes: Bytes) -> Content {
        let promised = bytes.len();
        Content { bytes: Some(bytes).filter(|it| !it.is_empty()), promised, breaking: None }
    }

    /// The first half, and then the connection breaks.
    pub(crate) fn broken_off(bytes: Bytes) -> Content {
        let promised = bytes.len().max(2);
        let half = bytes.slice(..bytes.len() / 2);
        Content { bytes: Some(half).filter(|it| !it.is_empty()), promised, breaking: None }
    }
}

impl Body for Content {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if let Some(bytes) = self.bytes.take() {
            self.promised = self.promised.saturating_sub(bytes.len());
            return Poll::Ready(Some(Ok(Frame::data(bytes))));
        }
        if self.promised == 0 {
            return Poll::Ready(None);
        }
        let breaking = self.breaking.get_or_insert_with(|| Box::pin(sleep(HEAD_START)));
        ready!(breaking.as_mut().poll(context));
        self.promised = 0;
        Poll::Ready(Some(Err(io::Error::new(
            io::ErrorKind::ConnectionAborted,
            "the fault ends the answer here",
        ))))
    }

    fn is_end_stream(&self) -> bool {
        self.promised == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.promised as u64)
    }
}
