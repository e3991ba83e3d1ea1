//! A server that does as it is told, byte by byte if need be.
//!
//! A [`Door`] says what happens to a connection, a script says what happens to a request.
//! Everything that came in is kept.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// What happens to connections.
#[derive(Clone)]
pub(crate) enum Door {
    /// TLS, then HTTP/1.1.
    Tls(TlsAcceptor),
    /// TLS, then HTTP/2.
    Http2(TlsAcceptor),
    /// HTTP/1.1 without TLS.
    Plain,
    /// Closed at once.
    Shut,
    /// Held open, and nothing is said.
    Silent,
    /// TLS, and then a reset before anything was read.
    ShutAfterTls(TlsAcceptor),
}

/// A request that came in.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// Which request it is, from 1.
    pub(crate) number: usize,
    pub(crate) method: String,
    /// Path and query.
    pub(crate) path: String,
    /// Names in small letters.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    /// A field of a form, or of the query.
    pub(crate) fn field(&self, name: &str) -> String {
        let query = self.path.split_once('?').map_or("", |(_, query)| query);
        let body = String::from_utf8_lossy(&self.body).into_owned();
        let pairs = [query.to_owned(), body].join("&");
        let found = url::form_urlencoded::parse(pairs.as_bytes()).find(|(key, _)| key == name);
        found.map(|(_, value)| value.into_owned()).unwrap_or_default()
    }
}

/// What happens to a request.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// A proper answer.
    Answer { status: u16, headers: Vec<(String, String)>, body: Vec<u8> },
    /// These bytes, then the connection is closed properly.
    Raw(Vec<u8>),
    /// A proper answer; then the connection is closed without having said so.
    AnswerAndLeave(Box<Act>),
    /// These bytes, and after them the last one for ever.
    Endless(Vec<u8>),
    /// These bytes, then nothing.
    Hang(Vec<u8>),
    /// The connection is torn down.
    Reset,
    /// HTTP/2 says that it did not look at the request.
    RefuseStream,
    /// HTTP/2 answers, and says that the connection takes no more.
    AnswerAndGoAway(Box<Act>),
}

/// A proper answer with a JSON body.
pub(crate) fn json(status: u16, body: &str) -> Act {
    Act::Answer {
        status,
        headers: vec![("content-type".into(), "application/json".into())],
        body: body.as_bytes().to_vec(),
    }
}

impl Act {
    /// The same answer with one header more.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Act {
        if let Act::Answer { headers, .. } = &mut self {
            headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }
}

type Script = Box<dyn Fn(&Seen) -> Act + Send + Sync>;

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    inside: Arc<Inside>,
    task: JoinHandle<()>,
}

struct Inside {
    script: Script,
    seen: Mutex<Vec<Seen>>,
    connections: Mutex<usize>,
    /// Told when both sides have closed a connection that was left.
    left: Notify,
}

impl Server {
    pub(crate) async fn start(door: Door, script: impl Fn(&Seen) -> Act + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let inside = Arc::new(Inside {
            script: Box::new(script),
            seen: Mutex::default(),
            connections: Mutex::default(),
            left: Notify::new(),
        });
        let task = tokio::spawn(accept(listener, door, inside.clone()));
        Server { address, inside, task }
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.inside.seen.lock().unwrap().clone()
    }

    pub(crate) fn connections(&self) -> usize {
        *self.inside.connections.lock().unwrap()
    }

    /// Waits until the other side, too, has closed a connection that was left.
    pub(crate) async fn left(&self) {
        self.inside.left.notified().await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, door: Door, inside: Arc<Inside>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { return };
        *inside.connections.lock().unwrap() += 1;
        tokio::spawn(meet(stream, door.clone(), inside.clone()));
    }
}

async fn meet(stream: TcpStream, door: Door, inside: Arc<Inside>) {
    // What is dropped without a goodbye is a reset, not an orderly end.
    stream.set_zero_linger().unwrap();
    match door {
        Door::Shut => drop(stream),
        Door::Silent => std::future::pending().await,
        Door::Plain => serve(stream, &inside).await,
        Door::ShutAfterTls(acceptor) => drop(acceptor.accept(stream).await),
        Door::Tls(acceptor) => {
            if let Ok(stream) = acceptor.accept(stream).await {
                serve(stream, &inside).await;
            }
        }
        Door::Http2(acceptor) => {
            if let Ok(stream) = acceptor.accept(stream).await {
                serve_http2(stream, &inside).await;
            }
        }
    }
}

impl Inside {
    fn act(&self, seen: Seen) -> Act {
        let seen = {
            let mut all = self.seen.lock().unwrap();
            let seen = Seen { number: all.len() + 1, ..seen };
            all.push(seen.clone());
            seen
        };
        (self.script)(&seen)
    }
}

async fn serve(mut stream: impl AsyncRead + AsyncWrite + Unpin, inside: &Inside) {
    while let Some(seen) = read_request(&mut stream).await {
        let act = inside.act(seen);
        let (answer, leave) = match act {
            Act::AnswerAndLeave(answer) => (*answer, true),
            act => (act, false),
        };
        match answer {
            Act::Answer { status, headers, body } => {
                let mut text = format!("HTTP/1.1 {status} Whatever\r\ncontent-length: {}\r\n", body.len());
                for (name, value) in headers {
                    text.push_str(&format!("{name}: {value}\r\n"));
                }
                text.push_str("\r\n");
                let bytes = [text.into_bytes(), body].concat();
                if stream.write_all(&bytes).await.is_err() || stream.flush().await.is_err() {
                    return;
                }
            }
            Act::Raw(bytes) => {
                let _ = stream.write_all(&bytes).await;
                let _ = stream.shutdown().await;
                // The other side closes when it has read everything; closing first would cut its reading short.
                let _ = stream.read(&mut [0; 64]).await;
                return;
            }
            Act::Hang(bytes) => {
                let _ = stream.write_all(&bytes).await;
                let _ = stream.flush().await;
                std::future::pending().await
            }
            Act::Endless(bytes) => {
                let more = vec![*bytes.last().expect("something to repeat"); 64 << 10];
                let _ = stream.write_all(&bytes).await;
                while stream.write_all(&more).await.is_ok() {}
                return;
            }
            _ => return,
        }
        if leave {
            let _ = stream.shutdown().await;
            while matches!(stream.read(&mut [0; 1024]).await, Ok(1..)) {}
            inside.left.notify_one();
            return;
        }
    }
}

async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> Option<Seen> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let mut lines = head.split("\r\n");
    let mut first = lines.next()?.split(' ');
    let (method, path) = (first.next()?.to_owned(), first.next()?.to_owned());
    let headers: BTreeMap<String, String> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some(Seen { number: 0, method, path, headers, body })
}

async fn serve_http2(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, inside: &Inside) {
    let Ok(mut http2) = h2::server::handshake(stream).await else { return };
    let mut unanswered = Vec::new();
    while let Some(Ok((request, mut respond))) = http2.accept().await {
        let seen = read_stream(request);
        let act = inside.act(seen);
        let (answer, go_away) = match act {
            Act::AnswerAndGoAway(answer) => (*answer, true),
            act => (act, false),
        };
        if go_away {
            http2.graceful_shutdown();
        }
        match answer {
            Act::Answer { status, headers, body } => {
                let mut response = http::Response::builder().status(status);
                for (name, value) in headers {
                    response = response.header(name, value);
                }
                let response = response.body(()).unwrap();
                let Ok(mut send) = respond.send_response(response, body.is_empty()) else { continue };
                if !body.is_empty() {
                    send.reserve_capacity(body.len());
                    let _ = send.send_data(Bytes::from(body), true);
                }
            }
            Act::RefuseStream => respond.send_reset(h2::Reason::REFUSED_STREAM),
            Act::Hang(_) => unanswered.push(respond),
            _ => return,
        }
    }
}

fn read_stream(request: http::Request<h2::RecvStream>) -> Seen {
    let headers = request.headers().iter();
    let headers =
        headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned())).collect();
    Seen {
        number: 0,
        method: request.method().to_string(),
        path: request.uri().path_and_query().map(ToString::to_string).unwrap_or_default(),
        headers,
        body: Vec::new(),
    }
}
