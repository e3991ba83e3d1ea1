//! Sockets and TLS: who comes in, how long they may take, and how everybody leaves.
//!
//! A door accepts and spawns one task per connection. When the emulator stops, no new connection is
//! taken, each open one finishes what it is answering, and who needs longer than allowed is cut.
//! Whatever a stranger sends is hyper's to refuse; the worst that can come of it is that one
//! connection ends.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hyper::body::Incoming;
use hyper::rt::{Read, Write};
use hyper::server::conn::{http1, http2};
use hyper::service::{HttpService, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tracing::{debug, warn};

use crate::front::{BrokenOff, Front};
use crate::options::Limits;
use crate::wire::{Content, Scissors, Wire};

/// Requests at once on one HTTP/2 connection.
const STREAMS_MAX: u32 = 250;

/// How long a client without open requests has to say goodbye when the emulator stops.
const FAREWELL: Duration = Duration::from_millis(200);

/// One listening socket.
pub(crate) struct Door {
    pub(crate) listener: TcpListener,
    /// Plain HTTP without it.
    pub(crate) tls: Option<TlsAcceptor>,
}

/// What all doors share.
#[derive(Clone)]
pub(crate) struct House {
    pub(crate) front: Arc<Front>,
    pub(crate) limits: Limits,
    pub(crate) places: Arc<Semaphore>,
    /// Becomes true when everybody should leave.
    pub(crate) stop: watch::Receiver<bool>,
}

/// The connection that a request came on.
#[derive(Clone)]
pub(crate) struct Caller {
    /// `https` or `http`.
    pub(crate) scheme: &'static str,
    /// Our end of it.
    pub(crate) local: SocketAddr,
    /// Ends it.
    pub(crate) scissors: Arc<Scissors>,
    /// Becomes true when everybody should leave.
    pub(crate) stop: watch::Receiver<bool>,
    traffic: Arc<Traffic>,
}

/// What goes on on a connection.
struct Traffic {
    in_flight: AtomicUsize,
    quiet_since: Mutex<Instant>,
    quieted: Notify,
}

impl Door {
    /// Serves until the house stops and everybody has left.
    pub(crate) async fn serve(self, house: House) {
        let mut guests = JoinSet::new();
        let mut stop = house.stop.clone();
        loop {
            let stream = tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) => stream,
                    Err(error) => {
                        // Out of file descriptors, mostly; nobody tells when there are some again.
                        warn!(%error, "cannot accept a connection");
                        sleep(Duration::from_millis(50)).await;
                        continue;
                    }
                },
                () = told(&mut stop) => break,
            };
            while guests.try_join_next().is_some() {}
            let place = tokio::select! {
                place = Arc::clone(&house.places).acquire_owned() => place.expect("the semaphore is never closed"),
                () = told(&mut stop) => break,
            };
            let (tls, house) = (self.tls.clone(), house.clone());
            guests.spawn(async move {
                welcome(stream, tls, house).await;
                drop(place);
            });
        }
        drop(self.listener);
        let everybody = async { while guests.join_next().await.is_some() {} };
        if timeout(house.limits.stop, everybody).await.is_err() {
            warn!("requests in flight were cut off");
        }
    }
}

/// Waits until everybody should leave; that is also when nobody is left to say so.
pub(crate) async fn told(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|&stop| stop).await;
}

async fn welcome(stream: TcpStream, tls: Option<TlsAcceptor>, house: House) {
    // Answers are small and waited for.
    let _ = stream.set_nodelay(true);
    let Ok(local) = stream.local_addr() else { return };
    let scissors = Arc::new(Scissors::default());
    let caller = Caller {
        scheme: if tls.is_some() { "https" } else { "http" },
        local,
        scissors: Arc::clone(&scissors),
        stop: house.stop.clone(),
        traffic: Arc::new(Traffic {
            in_flight: AtomicUsize::new(0),
            quiet_since: Mutex::new(Instant::now()),
            quieted: Notify::new(),
        }),
    };
    let wire = Wire::new(stream, scissors);
    let Some(tls) = tls else { return speak_http1(TokioIo::new(wire), caller, house).await };
    let mut stop = house.stop.clone();
    let shaken = tokio::select! {
        shaken = timeout(house.limits.handshake, tls.accept(wire)) => shaken,
        () = told(&mut stop) => return,
    };
    match shaken {
        Ok(Ok(stream)) => {
            let speaks_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
            let io = TokioIo::new(stream);
            if speaks_http2 {
                speak_http2(io, caller, house).await
            } else {
                speak_http1(io, caller, house).await
            }
        }
        Ok(Err(error)) => debug!(%error, "a TLS handshake failed; the client may not trust the CA"),
        Err(_) => debug!("a TLS handshake timed out"),
    }
}

async fn speak_http1(io: impl Read + Write + Unpin, caller: Caller, house: House) {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new());
    builder.header_read_timeout(house.limits.idle);
    builder.max_buf_size(house.limits.head_bytes_max.max(8 << 10));
    let connection = builder.serve_connection(io, service(&caller, &house));
    drive(connection, |it| it.graceful_shutdown(), caller, house).await;
}

async fn speak_http2(io: impl Read + Write + Unpin, caller: Caller, house: House) {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder.timer(TokioTimer::new());
    builder.keep_alive_interval(house.limits.idle / 2);
    builder.max_concurrent_streams(STREAMS_MAX);
    builder.max_header_list_size(u32::try_from(house.limits.head_bytes_max).unwrap_or(u32::MAX));
    let connection = builder.serve_connection(io, service(&caller, &house));
    drive(connection, |it| it.graceful_shutdown(), caller, house).await;
}

/// Answers whatever comes on one connection.
fn service(
    caller: &Caller,
    house: &House,
) -> impl HttpService<Incoming, ResBody = Content, Error = BrokenOff, Future: Send> + use<> {
    let (front, caller) = (Arc::clone(&house.front), caller.clone());
    service_fn(move |request| {
        let (front, caller) = (Arc::clone(&front), caller.clone());
        async move { caller.clone().count(front.serve(caller, request)).await }
    })
}

impl Caller {
    async fn count<T>(&self, serving: impl Future<Output = T>) -> T {
        /// Counts down even if hyper drops the request because its client is gone.
        struct Leaving<'a>(&'a Traffic);
        impl Drop for Leaving<'_> {
            fn drop(&mut self) {
                *self.0.quiet_since.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
                if self.0.in_flight.fetch_sub(1, Ordering::AcqRel) == 1 {
                    self.0.quieted.notify_one();
                }
            }
        }
        self.traffic.in_flight.fetch_add(1, Ordering::AcqRel);
        let _leaving = Leaving(&self.traffic);
        serving.await
    }
}

impl Traffic {
    fn is_quiet(&self) -> bool {
        self.in_flight.load(Ordering::Acquire) == 0
    }

    /// Waits until nothing is going on.
    async fn quiet(&self) {
        while !self.is_quiet() {
            self.quieted.notified().await;
        }
    }

    /// How long nothing has been going on; zero while something is.
    fn quiet_for(&self) -> Duration {
        if !self.is_quiet() {
            return Duration::ZERO;
        }
        self.quiet_since.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }
}

/// Lets a connection finish what it is answering. A client that says nothing to our farewell is not waited
/// for once it has all its answers.
async fn say_farewell<C: Future<Output = hyper::Result<()>>>(mut connection: Pin<&mut C>, caller: &Caller) {
    loop {
        tokio::select! {
            _ = &mut connection => return,
            () = caller.scissors.wanted() => return,
            () = caller.traffic.quiet() => {}
        }
        let is_over = timeout(FAREWELL, &mut connection).await.is_ok();
        if is_over || caller.traffic.is_quiet() {
            return;
        }
    }
}

/// Runs one connection to its end, whoever wants it: the client, a fault, boredom, or the house.
async fn drive<C: Future<Output = hyper::Result<()>>>(
    connection: C,
    shut_down: impl Fn(Pin<&mut C>),
    caller: Caller,
    house: House,
) {
    let mut connection = pin!(connection);
    let mut stop = house.stop.clone();
    let ended = loop {
        tokio::select! {
            ended = &mut connection => break ended,
            () = caller.scissors.wanted() => return,
            () = told(&mut stop) => {
                shut_down(connection.as_mut());
                return say_farewell(connection, &caller).await;
            }
            () = sleep(house.limits.idle.saturating_sub(caller.traffic.quiet_for())) => {
                if caller.traffic.quiet_for() >= house.limits.idle {
                    shut_down(connection.as_mut());
                    match timeout(house.limits.handshake, connection).await {
                        Ok(ended) => break ended,
                        Err(_) => return,
                    }
                }
            }
        }
    };
    if let Err(error) = ended {
        debug!(%error, "connection failed");
    }
}
