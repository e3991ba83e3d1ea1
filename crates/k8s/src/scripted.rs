//! An API server that says what a test wrote down; for the tests of this crate.
//!
//! [`Script::of`] takes exchanges in order: the line that the client must send, and what it hears.
//! [`answering`] takes a function instead, where the order is nobody's business. Either way every
//! request is kept, with its body, for the test to look at.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

/// A request as the server got it.
#[derive(Clone, Debug)]
pub(crate) struct Heard {
    /// Method and path without the query: `GET /api/v1/nodes`.
    pub(crate) line: String,
    /// What stands behind the question mark.
    pub(crate) query: String,
    /// The media type of the body.
    pub(crate) content_type: String,
    /// The body; null when there is none.
    pub(crate) body: Value,
}

/// What the server says.
#[derive(Clone, Debug)]
pub(crate) enum Say {
    /// An answer with a JSON body.
    Json(u16, Value),
    /// An answer that is no JSON.
    Text(u16, &'static str),
    /// The connection breaks.
    Break,
    /// The system refuses with this number.
    OsError(i32),
    /// Nothing, ever.
    Hang,
}

impl Say {
    /// 200 with an object.
    pub(crate) fn ok(object: Value) -> Say {
        Say::Json(200, object)
    }

    /// A failure as the API server words it.
    pub(crate) fn status(code: u16, reason: &str, message: &str) -> Say {
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "reason": reason, "code": code,
        });
        Say::Json(code, status)
    }
}

/// A client whose every request is answered by the function, and the record of what it sent.
pub(crate) fn answering(
    answer: impl FnMut(&Heard) -> Say + Send + 'static,
) -> (Client, Arc<Mutex<Vec<Heard>>>) {
    let record: Arc<Mutex<Vec<Heard>>> = Arc::default();
    let answer = Arc::new(Mutex::new(answer));
    let heard = Arc::clone(&record);
    let service = tower::service_fn(move |request: Request<Body>| {
        let (answer, heard) = (Arc::clone(&answer), Arc::clone(&heard));
        async move {
            let request = read(request).await;
            let say = {
                let mut answer = answer.lock().unwrap();
                heard.lock().unwrap().push(request.clone());
                (*answer)(&request)
            };
            let (code, text) = match say {
                Say::Json(code, value) => (code, value.to_string()),
                Say::Text(code, text) => (code, text.to_string()),
                Say::Break => return Err(std::io::Error::from(std::io::ErrorKind::ConnectionReset)),
                Say::OsError(number) => return Err(std::io::Error::from_raw_os_error(number)),
                Say::Hang => std::future::pending().await,
            };
            Ok(Response::builder().status(code).body(Full::new(Bytes::from(text))).unwrap())
        }
    });
    (Client::new(service, "default"), record)
}

async fn read(request: Request<Body>) -> Heard {
    let (parts, body) = request.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    let content_type = parts.headers.get(http::header::CONTENT_TYPE);
    Heard {
        line: format!("{} {}", parts.method, parts.uri.path()),
        query: parts.uri.query().unwrap_or_default().to_string(),
        content_type: content_type.and_then(|it| it.to_str().ok()).unwrap_or_default().to_string(),
        body: if bytes.is_empty() { Value::Null } else { serde_json::from_slice(&bytes).unwrap() },
    }
}

/// Exchanges in order; a request that is not the next one is answered 599 and fails the test at its end.
pub(crate) struct Script {
    heard: Arc<Mutex<Vec<Heard>>>,
    left: Arc<Mutex<Left>>,
}

#[derive(Default)]
struct Left {
    exchanges: VecDeque<(&'static str, Say)>,
    surprises: Vec<String>,
}

impl Script {
    /// A client that must send these lines, in this order.
    pub(crate) fn of(exchanges: impl IntoIterator<Item = (&'static str, Say)>) -> (Client, Script) {
        let left = Left { exchanges: exchanges.into_iter().collect(), surprises: Vec::new() };
        let left = Arc::new(Mutex::new(left));
        let rest = Arc::clone(&left);
        let (client, heard) = answering(move |request| {
            let mut left: MutexGuard<'_, Left> = rest.lock().unwrap();
            match left.exchanges.pop_front() {
                Some((line, say)) if line == request.line => say,
                Some((line, _)) => {
                    left.surprises.push(format!("{} came instead of {line}", request.line));
                    Say::Text(599, "not in the script")
                }
                None => {
                    left.surprises.push(format!("{} came after the end", request.line));
                    Say::Text(599, "not in the script")
                }
            }
        });
        (client, Script { heard, left })
    }

    /// Every request that was sent, once all of the script has been played and nothing else.
    pub(crate) fn played(&self) -> Vec<Heard> {
        let left = self.left.lock().unwrap();
        assert!(left.surprises.is_empty(), "{:?}", left.surprises);
        let missing: Vec<&str> = left.exchanges.iter().map(|(line, _)| *line).collect();
        assert!(missing.is_empty(), "never asked: {missing:?}");
        self.heard.lock().unwrap().clone()
    }
}
