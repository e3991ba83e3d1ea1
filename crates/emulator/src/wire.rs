//! One connection as the faults need it: it can be cut in the middle, and an answer can end too early.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use std::sync::Arc;

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

/// The body of an answer: all of it, or only its beginning.
#[derive(Debug)]
pub(crate) struct Content {
    bytes: Option<Bytes>,
    /// How many bytes were promised; more than there are means that the answer breaks off.
    promised: usize,
}

impl Content {
    pub(crate) fn whole(bytes: Bytes) -> Content {
        let promised = bytes.len();
        Content { bytes: Some(bytes), promised }
    }

    /// The first half, and then the connection breaks.
    pub(crate) fn broken_off(bytes: Bytes) -> Content {
        let promised = bytes.len().max(2);
        Content { bytes: Some(bytes.slice(..bytes.len() / 2)), promised }
    }
}

impl Body for Content {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let broken = || io::Error::new(io::ErrorKind::ConnectionAborted, "the fault ends the answer here");
        match self.bytes.take() {
            Some(bytes) => {
                self.promised = self.promised.saturating_sub(bytes.len());
                if bytes.is_empty() && self.promised > 0 {
                    return Poll::Ready(Some(Err(broken())));
                }
                Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))))
            }
            None if self.promised > 0 => {
                self.promised = 0;
                Poll::Ready(Some(Err(broken())))
            }
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.promised == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.promised as u64)
    }
}
