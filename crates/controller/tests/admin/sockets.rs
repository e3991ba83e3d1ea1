//! The admin server on real sockets: TLS, limits, and the end.

use std::net::SocketAddr;
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
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

struct Server {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    running: JoinHandle<()>,
}

async fn start(router: Router, tls: Option<Arc<ServerConfig>>, limits: ServeLimits) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
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

async fn asked(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> String {
    stream.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await.unwrap();
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
    let server = start(hello(), Some(Arc::new(server)), ServeLimits::default()).await;
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
    let limits = ServeLimits { patience: Duration::from_millis(50), ..ServeLimits::default() };
    let server = start(hello(), None, limits).await;
    let mut silent = TcpStream::connect(server.address).await.unwrap();
    silent.write_all(b"GET / HT").await.unwrap();
    let mut rest = Vec::new();
    // It comes back only because the server closes the connection.
    let _ = silent.read_to_end(&mut rest).await;
    assert!(asked(TcpStream::connect(server.address).await.unwrap()).await.ends_with("hello"));
}

#[tokio::test]
async fn a_reader_that_takes_nothing_is_cut_off_and_its_place_is_free_again() {
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
    let limits =
        ServeLimits { connections_max: 1, stall: Duration::from_millis(50), ..ServeLimits::default() };
    let server = start(endless, None, limits).await;
    let mut lazy = TcpStream::connect(server.address).await.unwrap();
    lazy.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    // There is one place, so the second is answered only after the first was cut off.
    let mut second = TcpStream::connect(server.address).await.unwrap();
    second.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut some = [0; 64];
    second.read_exact(&mut some).await.unwrap();
    assert!(some.starts_with(b"HTTP/1.1 200 OK"));
}

#[tokio::test]
async fn the_end_comes_although_somebody_is_still_there() {
    let pending = Router::new().route("/", get(async || std::future::pending::<()>().await));
    let limits = ServeLimits { grace: Duration::from_millis(50), ..ServeLimits::default() };
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
