//! Just enough of a Kubernetes API server for a controller to start: an empty cluster with a Lease in
//! it, in plain HTTP. What each request gets can be changed while it runs.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

/// The UID of its namespace `kube-system`.
pub(crate) const CLUSTER: &str = "5e1f0000-0000-4000-8000-00000000c1a5";

/// One request.
pub(crate) struct Heard {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) body: Value,
}

/// Answers before the ordinary ones; `None` leaves it to those.
type Whim = Box<dyn FnMut(&Heard) -> Option<(u16, Value)> + Send>;

pub(crate) struct ApiServer {
    address: String,
    shared: Arc<Shared>,
}

struct Shared {
    whim: Mutex<Whim>,
    lease: Mutex<Option<Value>>,
}

impl ApiServer {
    pub(crate) fn start() -> ApiServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let shared = Arc::new(Shared { whim: Mutex::new(Box::new(|_| None)), lease: Mutex::default() });
        let serving = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&serving);
                std::thread::spawn(move || shared.serve(stream));
            }
        });
        ApiServer { address, shared }
    }

    /// From now on requests get this first.
    pub(crate) fn answer(&self, whim: impl FnMut(&Heard) -> Option<(u16, Value)> + Send + 'static) {
        *self.shared.whim.lock().unwrap() = Box::new(whim);
    }

    pub(crate) fn holder(&self) -> Option<String> {
        let lease = self.shared.lease.lock().unwrap();
        lease.as_ref()?["spec"]["holderIdentity"].as_str().map(str::to_owned)
    }

    pub(crate) fn kubeconfig(&self, folder: &Path) -> PathBuf {
        kubeconfig(folder, &self.address)
    }
}

/// A kubeconfig for whatever is at this address.
pub(crate) fn kubeconfig(folder: &Path, address: &str) -> PathBuf {
    let path = folder.join("kubeconfig");
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "here",
        "clusters": [{"name": "here", "cluster": {"server": format!("http://{address}")}}],
        "users": [{"name": "us", "user": {"token": "a-token-of-kubernetes"}}],
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "us", "namespace": "sluice-system"}}],
    });
    std::fs::write(&path, config.to_string()).unwrap();
    path
}

impl Shared {
    fn serve(&self, stream: TcpStream) -> Option<()> {
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let mut words = line.split_whitespace();
        let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
        let mut length = 0;
        loop {
            let mut header = String::new();
            reader.read_line(&mut header).ok()?;
            let header = header.trim().to_ascii_lowercase();
            if header.is_empty() {
                break;
            }
            if let Some(value) = header.strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        let heard = Heard {
            method,
            path: path.to_owned(),
            query: query.to_owned(),
            body: serde_json::from_slice(&body).unwrap_or_default(),
        };
        let mut stream = reader.into_inner();
        let whim = (self.whim.lock().unwrap())(&heard);
        let Some((status, answer)) = whim.or_else(|| self.ordinary(&heard)) else {
            // A watch in which nothing happens, until the client goes.
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n");
            let _ = stream.read(&mut [0]);
            return None;
        };
        let text = answer.to_string();
        let head = format!(
            "HTTP/1.1 {status} As Told\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            text.len()
        );
        stream.write_all(format!("{head}{text}").as_bytes()).ok()
    }

    fn ordinary(&self, heard: &Heard) -> Option<(u16, Value)> {
        let path = heard.path.as_str();
        if path == "/version" {
            return Some((200, json!({"major": "1", "minor": "36", "gitVersion": "v1.36.3"})));
        }
        if path.ends_with("/selfsubjectaccessreviews") {
            return Some((201, json!({"status": {"allowed": true}})));
        }
        if path == "/api/v1/namespaces/kube-system" {
            return Some((200, json!({"metadata": {"name": "kube-system", "uid": CLUSTER}})));
        }
        if path == "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/cloud-controller-manager" {
            return Some((404, status(404, "NotFound", "there is no such Lease")));
        }
        if path.contains("/leases") {
            return Some(self.lease(heard));
        }
        if path.ends_with("/events") {
            return Some((201, heard.body.clone()));
        }
        if heard.query.contains("sendInitialEvents=true") {
            return Some((422, status(422, "Invalid", "sendInitialEvents is forbidden for watch")));
        }
        if heard.query.contains("watch=true") {
            return None;
        }
        Some((200, json!({"metadata": {"resourceVersion": "7"}, "items": []})))
    }

    fn lease(&self, heard: &Heard) -> (u16, Value) {
        let mut lease = self.lease.lock().unwrap();
        if heard.method == "GET" {
            return match &*lease {
                Some(lease) => (200, lease.clone()),
                None => (404, status(404, "NotFound", "there is no such Lease")),
            };
        }
        let version = lease.as_ref().and_then(|it| it["metadata"]["resourceVersion"].as_str()?.parse().ok());
        let version: u64 = version.unwrap_or(0) + 1;
        let mut written = heard.body.clone();
        written["metadata"]["resourceVersion"] = json!(version.to_string());
        written["metadata"]["uid"] = json!("5e1f0000-0000-4000-8000-0000000001ea");
        *lease = Some(written.clone());
        (200, written)
    }
}

pub(crate) fn status(code: u16, reason: &str, message: &str) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message})
}
