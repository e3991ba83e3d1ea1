//! An API server with a script, whose answers may be streams.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::channel::Channel;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

/// What the server says to one request.
pub(super) enum Say {
    /// An answer that is whole at once.
    Json(u16, Value),
    /// A stream of pieces, and how it ends.
    Stream(Vec<String>, End),
    /// No connection.
    Refuse,
    /// A stream into which the test pushes line by line.
    Pushed(mpsc::Receiver<String>),
    /// Nothing, ever.
    Hang,
}

/// The test's end of a stream.
pub(super) struct Push(mpsc::Sender<String>);

impl Push {
    /// One more line.
    pub(super) async fn push(&mut self, line: String) {
        self.0.send(line).await.expect("the stream is read or will be");
    }
}

/// How a stream ends.
pub(super) enum End {
    /// As the server does after its timeout.
    Close,
    /// As a lost connection does.
    Break,
    /// It does not.
    Stay,
}

impl Say {
    /// A failure as the API server words it.
    pub(super) fn status(code: u16, reason: &str, message: &str) -> Say {
        Say::Json(code, status(code, reason, message))
    }

    /// A stream that stays open.
    pub(super) fn stream(pieces: impl IntoIterator<Item = String>) -> Say {
        Say::Stream(pieces.into_iter().collect(), End::Stay)
    }

    /// A stream that ends so.
    pub(super) fn stream_until(end: End, pieces: impl IntoIterator<Item = String>) -> Say {
        Say::Stream(pieces.into_iter().collect(), end)
    }
}

pub(super) fn status(code: u16, reason: &str, message: &str) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code})
}

/// A pod by its name; its UID follows from that.
pub(super) fn pod(name: &str, version: u64) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "shop", "uid": uid(name), "resourceVersion": version.to_string(),
            "labels": {"kubernetes.azure.com/service-egress-gateway": "blue"}},
        "status": {"phase": "Running"},
    })
}

pub(super) fn uid(name: &str) -> String {
    let number = name.bytes().fold(0u64, |sum, byte| sum * 31 + u64::from(byte));
    format!("0a1b2c3d-0000-4000-8000-{number:012x}")
}

/// A line of a watch.
pub(super) fn line(kind: &str, object: Value) -> String {
    format!("{}\n", json!({"type": kind, "object": object}))
}

pub(super) fn bookmark(version: u64) -> String {
    line("BOOKMARK", json!({"kind": "Pod", "metadata": {"resourceVersion": version.to_string()}}))
}

/// The bookmark that ends the list part of a stream.
pub(super) fn list_end(version: u64) -> String {
    let annotations = json!({"k8s.io/initial-events-end": "true"});
    line(
        "BOOKMARK",
        json!({"kind": "Pod", "metadata": {"resourceVersion": version.to_string(), "annotations": annotations}}),
    )
}

/// A page of a list.
pub(super) fn list(version: u64, next: &str, items: impl IntoIterator<Item = Value>) -> Say {
    let items: Vec<Value> = items.into_iter().collect();
    Say::Json(
        200,
        json!({"kind": "List", "metadata": {"resourceVersion": version.to_string(), "continue": next}, "items": items}),
    )
}

/// The script as it is played.
pub(super) struct Server {
    left: Arc<Mutex<VecDeque<(&'static str, Say)>>>,
    surprises: Arc<Mutex<Vec<String>>>,
    asked: watch::Receiver<usize>,
}

impl Server {
    /// A server that must be asked for these, in this order: each part of the text, divided by blanks, stands
    /// in the request's path and query. When the script is at its end, requests are never answered.
    pub(super) fn of(script: impl IntoIterator<Item = (&'static str, Say)>) -> (Client, Server) {
        let left: Arc<Mutex<VecDeque<_>>> = Arc::new(Mutex::new(script.into_iter().collect()));
        let surprises: Arc<Mutex<Vec<String>>> = Arc::default();
        let (count, asked) = watch::channel(0);
        let server = Server { left: Arc::clone(&left), surprises: Arc::clone(&surprises), asked };
        let service = tower::service_fn(move |request: Request<Body>| {
            let uri = request.uri().to_string();
            let next = left.lock().unwrap().pop_front();
            let say = match next {
                None => Say::Hang,
                Some((wanted, say)) => {
                    if !wanted.split(' ').all(|part| uri.contains(part)) {
                        surprises.lock().unwrap().push(format!("{uri} came instead of {wanted}"));
                    }
                    count.send_modify(|count| *count += 1);
                    say
                }
            };
            answer(say)
        });
        (Client::new(service, "default"), server)
    }

    /// A client of a server that answers every request by its path and query.
    pub(super) fn answering(say: impl FnMut(&str) -> Say + Send + 'static) -> Client {
        let say = Arc::new(Mutex::new(say));
        let service = tower::service_fn(move |request: Request<Body>| {
            let said = (*say.lock().unwrap())(&request.uri().to_string());
            answer(said)
        });
        Client::new(service, "default")
    }

    /// A stream that says what it is given, when it is given.
    pub(super) fn pushed() -> (Push, Say) {
        let (sender, receiver) = mpsc::channel(16);
        (Push(sender), Say::Pushed(receiver))
    }

    /// Waits until the whole script has been asked for; fails when something else was.
    pub(super) async fn all_asked(&mut self) {
        let left = Arc::clone(&self.left);
        let all = self.asked.wait_for(|_| left.lock().unwrap().is_empty());
        let ended = tokio::time::timeout(std::time::Duration::from_secs(3_600), all).await;
        let missing: Vec<&str> = self.left.lock().unwrap().iter().map(|(wanted, _)| *wanted).collect();
        assert!(ended.is_ok_and(|it| it.is_ok()), "never asked: {missing:?}");
        let surprises = self.surprises.lock().unwrap();
        assert!(surprises.is_empty(), "{surprises:?}");
    }
}

async fn answer(say: Say) -> Result<Response<Channel<Bytes, io::Error>>, io::Error> {
    let (code, pieces, end) = match say {
        Say::Json(code, value) => (code, vec![value.to_string()], End::Close),
        Say::Stream(pieces, end) => (200, pieces, end),
        Say::Pushed(receiver) => return Ok(Response::new(pushed(receiver))),
        Say::Refuse => return Err(io::Error::from(io::ErrorKind::ConnectionRefused)),
        Say::Hang => std::future::pending().await,
    };
    let (mut sender, body) = Channel::new(1);
    tokio::spawn(async move {
        for piece in pieces {
            if sender.send_data(Bytes::from(piece)).await.is_err() {
                return;
            }
        }
        match end {
            End::Close => {}
            End::Break => sender.abort(io::Error::from(io::ErrorKind::ConnectionReset)),
            End::Stay => std::future::pending().await,
        }
    });
    Ok(Response::builder().status(code).body(body).unwrap())
}

fn pushed(mut lines: mpsc::Receiver<String>) -> Channel<Bytes, io::Error> {
    let (mut sender, body) = Channel::new(1);
    tokio::spawn(async move {
        while let Some(line) = lines.recv().await {
            if sender.send_data(Bytes::from(line)).await.is_err() {
                return;
            }
        }
    });
    body
}
