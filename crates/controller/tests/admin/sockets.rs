//! The admin server on real sockets: TLS, limits, and the end.

use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use futures::stream;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use sluice_controller::admin::{ServeLimits, serve};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;

use crate::world::World;

const HOUR: Duration = Duration::from_secs(3600);

/// Few places, and an hour for a request head: connections end only to make room for others.
const TIGHT: ServeLimits = ServeLimits {
    connections_max: 32,
    per_peer_max: 8,
    patience: HOUR,
    stall: HOUR,
    grace: HOUR,
    ..ServeLimits::HEALTH
};

/// The connections that the health listener has room for, and an hour for a request head, so that none makes room
/// by its own end.
const SHIPPED: ServeLimits = ServeLimits { patience: HOUR, stall: HOUR, grace: HOUR, ..ServeLimits::HEALTH };

/// How long anything may take before a test gives up.
const HANGS_AFTER: Duration = Duration::from_secs(120);

/// Open files that the tests of this program need, which run at once.
const FILES: u64 = 4096;

struct Server {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    running: JoinHandle<()>,
}

async fn start(router: Router, tls: Option<Arc<ServerConfig>>, limits: ServeLimits) -> Server {
    start_on(TcpListener::bind("127.0.0.1:0").await.unwrap(), router, tls, limits)
}

fn start_on(
    listener: TcpListener,
    router: Router,
    tls: Option<Arc<ServerConfig>>,
    limits: ServeLimits,
) -> Server {
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel();
    let running = tokio::spawn(serve(listener, tls, router, limits, async {
        let _ = stopped.await;
    }));
    Server { address, stop, running }
}

fn hello() -> Router {
    Router::new().route("/", get(async || "hello"))
}

async fn asked(stream: impl AsyncRead + AsyncWrite + Unpin) -> String {
    asked_for("/", stream).await
}

async fn asked_for(path: &str, mut stream: impl AsyncRead + AsyncWrite + Unpin) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    let _ = stream.read_to_string(&mut text).await;
    text
}

#[tokio::test]
async fn it_speaks_tls_when_it_is_told_to_and_the_client_can_check_it() {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["sluice.example".into()]).unwrap();
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    let server = start(hello(), Some(Arc::new(server)), ServeLimits::API).await;
    let mut roots = RootCertStore::empty();
    roots.add(cert.der().clone()).unwrap();
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(server.address).await.unwrap();
    let name = ServerName::try_from("sluice.example").unwrap();
    let stream = tokio_rustls::TlsConnector::from(Arc::new(client)).connect(name, stream).await.unwrap();
    assert!(asked(stream).await.ends_with("hello"));
    let plain = asked(TcpStream::connect(server.address).await.unwrap()).await;
    assert!(!plain.contains("hello"), "{plain:?}");
}

#[tokio::test]
async fn a_client_that_says_nothing_is_not_waited_for() {
    let limits = ServeLimits { patience: Duration::from_millis(50), ..ServeLimits::API };
    let server = start(hello(), None, limits).await;
    let mut silent = TcpStream::connect(server.address).await.unwrap();
    let mut halting = TcpStream::connect(server.address).await.unwrap();
    halting.write_all(b"GET / HT").await.unwrap();
    let mut rest = Vec::new();
    // Both come back only because the server closes the connections.
    let _ = silent.read_to_end(&mut rest).await;
    let _ = halting.read_to_end(&mut rest).await;
    assert!(asked(TcpStream::connect(server.address).await.unwrap()).await.ends_with("hello"));
}

#[tokio::test]
async fn a_reader_that_takes_nothing_is_cut_off() {
    let endless = Router::new().route(
        "/",
        get(async || {
            let chunk = Ok::<_, std::io::Error>(vec![b'x'; 1 << 16]);
            Body::from_stream(stream::repeat_with(move || match &chunk {
                Ok(bytes) => Ok::<_, std::io::Error>(bytes.clone()),
                Err(_) => unreachable!(),
            }))
        }),
    );
    let limits = ServeLimits { stall: Duration::from_millis(50), grace: HOUR, ..ServeLimits::API };
    let server = start(endless, None, limits).await;
    let mut lazy = TcpStream::connect(server.address).await.unwrap();
    lazy.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut some = [0; 64];
    lazy.read_exact(&mut some).await.unwrap();
    assert!(some.starts_with(b"HTTP/1.1 200 OK"));
    // The grace is an hour, so the server ends only because the reader was cut off.
    server.stop.send(()).unwrap();
    server.running.await.unwrap();
}

#[tokio::test]
async fn the_end_comes_although_somebody_is_still_there() {
    let pending = Router::new().route("/", get(async || std::future::pending::<()>().await));
    let limits = ServeLimits { grace: Duration::from_millis(50), ..ServeLimits::API };
    let server = start(pending, None, limits).await;
    let mut waiting = TcpStream::connect(server.address).await.unwrap();
    waiting.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let idle = TcpStream::connect(server.address).await.unwrap();
    server.stop.send(()).unwrap();
    server.running.await.unwrap();
    drop(idle);
    let mut rest = Vec::new();
    let _ = waiting.read_to_end(&mut rest).await;
    assert!(rest.is_empty());
}

async fn connect_from(source: [u8; 4], server: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from((source, 0))).unwrap();
    socket.connect(server).await.unwrap()
}

/// Connections that have sent half a request head, from that many peers in turn.
async fn half_open(count: u16, peers: u16, server: SocketAddr) -> Vec<TcpStream> {
    let mut held = Vec::new();
    for number in 0..count {
        let last = u8::try_from(number % peers).unwrap() + 1;
        let mut stream = connect_from([127, 0, 0, last], server).await;
        // Only a connection that the server has dropped already cannot be written to.
        let _ = stream.write_all(b"GET / HTTP/1.1\r\nhost: loc").await;
        held.push(stream);
    }
    held
}

/// Raises the limit of open files of this process, if it is too low.
fn allow_open_files() {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let soft: Option<u64> = line.split_whitespace().nth(3).unwrap().parse().ok();
    if soft.is_some_and(|soft| soft < FILES) {
        let (id, limit) = (std::process::id().to_string(), format!("--nofile={FILES}:"));
        let raised = Command::new("prlimit").args(["--pid", &id, &limit]).output();
        assert!(
            raised.as_ref().is_ok_and(|output| output.status.success()),
            "these tests need {FILES} open files; the limit is too low ({line}) and prlimit cannot raise it: {raised:?}"
        );
    }
}

/// `/livez` answers all of these sources while that many peers hold 1,000 half-open connections.
async fn livez_answers(peers: u16, sources: [u8; 2]) {
    allow_open_files();
    let world = World::ordinary();
    let server = start(world.health.clone(), None, SHIPPED).await;
    let probes = async {
        let mut held = half_open(1_000, peers, server.address).await;
        for last in sources {
            let probe = connect_from([127, 0, 0, last], server.address).await;
            let answer = asked_for("/livez", probe).await;
            assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "127.0.0.{last}: {answer:?}");
        }
        // There were too many: the first had to make room, and the last is still held.
        let is_dropped = matches!(held[0].read(&mut [0; 1]).await, Ok(0) | Err(_));
        assert!(is_dropped, "the server has sent something without a request");
        let last = held[999].try_read(&mut [0; 1]);
        assert_eq!(last.unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    };
    tokio::time::timeout(HANGS_AFTER, probes).await.expect("no answer while others hold connections");
}

#[tokio::test]
async fn livez_answers_while_one_peer_holds_1000_half_open_connections() {
    livez_answers(1, [1, 60]).await;
}

#[tokio::test]
async fn livez_answers_while_50_peers_hold_1000_half_open_connections() {
    livez_answers(50, [7, 60]).await;
}

#[tokio::test]
async fn half_open_connections_of_one_peer_do_not_drop_those_of_others() {
    let server = start(hello(), None, TIGHT).await;
    let other = connect_from([127, 0, 0, 60], server.address).await;
    let held = half_open(200, 1, server.address).await;
    assert!(asked(other).await.ends_with("hello"));
    drop(held);
}

#[tokio::test]
async fn a_request_that_is_being_answered_is_not_dropped_for_half_open_ones() {
    let (begun, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (begin, wait) = (Arc::clone(&begun), Arc::clone(&go_on));
    let slow = Router::new().route(
        "/",
        get(async move || {
            begin.notify_one();
            wait.notified().await;
            "hello"
        }),
    );
    let server = start(slow, None, TIGHT).await;
    let answer = tokio::spawn(asked(connect_from([127, 0, 0, 1], server.address).await));
    begun.notified().await;
    let held = half_open(200, 50, server.address).await;
    go_on.notify_one();
    assert!(answer.await.unwrap().ends_with("hello"));
    drop(held);
}

#[tokio::test]
async fn a_request_that_came_before_many_connections_is_answered() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut first = connect_from([127, 0, 0, 1], address).await;
    first.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    // As many as the backlog of a listener holds.
    let held = half_open(100, 1, address).await;
    let _server = start_on(listener, hello(), None, TIGHT);
    let mut text = String::new();
    let _ = first.read_to_string(&mut text).await;
    assert!(text.ends_with("hello"), "{text:?}");
    drop(held);
}
