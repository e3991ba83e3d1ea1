//! Sockets: which connections are served, how long they may take, and how they end.
//!
//! One task per connection. Every connection is accepted, so that clients that connect and
//! send nothing cannot keep a probe out: when there are too many, of one peer or of all, the connection that
//! has waited longest for its request is dropped, and only if none waits, the one that was accepted first.
//! A connection also ends when its client is slow to send its request or takes nothing of the answer for a
//! while; and soon after the server is told to stop. HTTP/1.1 only: probes, Prometheus, curl and browsers
//! all speak it.

use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

use crate::clock::{Clock, Monotonic};

/// How many, and how long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ServeLimits {
    /// Connections at once.
    pub connections_max: usize,
    /// Connections at once of one peer (IP address).
    pub per_peer_max: usize,
    /// Whether a connection may carry further requests. An idle one then looks like one that is being answered.
    pub keep_alive: bool,
    /// How long a TLS handshake may take, and how long a client may take to send a request head.
    pub patience: Duration,
    /// How long a client may take nothing of an answer.
    pub stall: Duration,
    /// How long answers that are under way are awaited at the end.
    pub grace: Duration,
}

impl ServeLimits {
    /// The limits of the health listener, which every pod of the cluster may be able to reach.
    pub const HEALTH: ServeLimits = ServeLimits {
        connections_max: 256,
        per_peer_max: 64,
        keep_alive: false,
        patience: Duration::from_secs(2),
        stall: Duration::from_secs(30),
        grace: Duration::from_secs(2),
    };

    /// The limits of the API. On loopback all clients are one peer, so it has no limit of its own.
    pub const API: ServeLimits = ServeLimits {
        connections_max: 128,
        per_peer_max: 128,
        // A client behind a port-forward has one connection for all its requests.
        keep_alive: true,
        patience: Duration::from_secs(10),
        ..ServeLimits::HEALTH
    };
}

/// Bytes of a request's head; we need a few hundred.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// A connection that is served.
struct Open {
    peer: IpAddr,
    /// Whether its request has come.
    answering: Arc<AtomicBool>,
    task: AbortHandle,
}

/// Drops what is too much for one more connection of this peer. The connections are in the order of their arrival.
fn make_room(open: &mut Vec<Open>, peer: IpAddr, limits: &ServeLimits) {
    open.retain(|one| !one.task.is_finished());
    let of_peer = |one: &&Open| one.peer == peer;
    if open.iter().filter(of_peer).count() >= limits.per_peer_max {
        drop_oldest(open, |one| one.peer == peer);
    } else if open.len() >= limits.connections_max {
        drop_oldest(open, |_| true);
    }
}

fn drop_oldest(open: &mut Vec<Open>, candidate: impl Fn(&Open) -> bool) {
    let candidates = open.iter().enumerate().filter(|(_, one)| candidate(one));
    let oldest = candidates.min_by_key(|(_, one)| one.answering.load(Ordering::Relaxed)).map(|(at, _)| at);
    if let Some(oldest) = oldest {
        open.remove(oldest).task.abort();
        tracing::debug!("admin server: too many connections; dropped the oldest");
    }
}

/// Serves a router on a socket until `stop` comes back, and then until everybody has left or the grace
/// is over. With TLS, if there is a configuration for it.
pub async fn serve(
    listener: TcpListener,
    tls: Option<Arc<ServerConfig>>,
    router: Router,
    limits: ServeLimits,
    stop: impl Future<Output = ()>,
) {
    let clock = Monotonic::start();
    let tls = tls.map(TlsAcceptor::from);
    let (end, _) = tokio::sync::watch::channel(false);
    let mut guests = JoinSet::new();
    let mut open = Vec::new();
    let mut stop = pin!(stop);
    loop {
        let (stream, peer) = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => (stream, peer.ip().to_canonical()),
                Err(error) => {
                    // Out of file descriptors, mostly; nobody tells when there are some again.
                    tracing::warn!(%error, "admin server: accepting a connection failed; retrying");
                    clock.sleep_until(clock.now() + Duration::from_millis(100)).await;
                    continue;
                }
            },
            () = &mut stop => break,
        };
        while guests.try_join_next().is_some() {}
        make_room(&mut open, peer, &limits);
        let answering = Arc::new(AtomicBool::new(false));
        let guest = welcome(
            stream,
            tls.clone(),
            router.clone(),
            limits,
            clock,
            end.subscribe(),
            Arc::clone(&answering),
        );
        open.push(Open { peer, answering, task: guests.spawn(guest) });
        // A request that is there already is read before further connections can make this one the oldest.
        tokio::task::yield_now().await;
    }
    drop(listener);
    end.send_replace(true);
    tokio::select! {
        () = async { while guests.join_next().await.is_some() {} } => {}
        () = clock.sleep_until(clock.now() + limits.grace) => guests.abort_all(),
    }
}

async fn welcome(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    router: Router,
    limits: ServeLimits,
    clock: Monotonic,
    end: tokio::sync::watch::Receiver<bool>,
    answering: Arc<AtomicBool>,
) {
    // Answers are small and waited for.
    let _ = stream.set_nodelay(true);
    let stream = Impatient::new(stream, limits.stall, clock);
    let Some(tls) = tls else { return speak(stream, router, limits, end, answering).await };
    tokio::select! {
        shaken = tls.accept(stream) => match shaken {
            Ok(stream) => speak(stream, router, limits, end, answering).await,
            Err(error) => tracing::debug!(%error, "admin server: TLS handshake failed"),
        },
        () = clock.sleep_until(clock.now() + limits.patience) => {
            tracing::debug!("admin server: TLS handshake timed out");
        }
    }
}

async fn speak(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    router: Router,
    limits: ServeLimits,
    mut end: tokio::sync::watch::Receiver<bool>,
    answering: Arc<AtomicBool>,
) {
    let router = TowerToHyperService::new(router);
    let service = service_fn(|request| {
        answering.store(true, Ordering::Relaxed);
        router.call(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.patience)
        .max_buf_size(HEAD_BYTES_MAX)
        .keep_alive(limits.keep_alive)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    let told = async { end.wait_for(|end| *end).await.map(drop) };
    let ended = tokio::select! {
        ended = &mut connection => ended,
        _ = told => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "admin server: connection failed");
    }
}

/// A stream whose other end must take something of what is written now and then.
struct Impatient<S> {
    stream: S,
    stall: Duration,
    clock: Monotonic,
    /// While a write waits.
    alarm: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl<S> Impatient<S> {
    fn new(stream: S, stall: Duration, clock: Monotonic) -> Impatient<S> {
        Impatient { stream, stall, clock, alarm: None }
    }

    fn judge<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.alarm = None;
            return written;
        }
        let (clock, stall) = (self.clock, self.stall);
        let alarm = self
            .alarm
            .get_or_insert_with(|| Box::pin(async move { clock.sleep_until(clock.now() + stall).await }));
        ready!(alarm.as_mut().poll(context));
        tracing::debug!("admin server: connection closed, client too slow");
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "client too slow")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Impatient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Impatient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.judge(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.judge(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.judge(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_health_listener_waits_2_s_for_a_request_head() {
        assert_eq!(ServeLimits::HEALTH.patience, Duration::from_secs(2));
    }
}
