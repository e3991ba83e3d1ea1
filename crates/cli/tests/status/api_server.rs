//! As much of an API server as it takes to find a leader: a version, a Lease, and a forwarded port.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use futures::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

pub(crate) struct ApiServer {
    kubeconfig: PathBuf,
    asked: Arc<Mutex<Vec<String>>>,
    _folder: tempfile::TempDir,
}

impl ApiServer {
    /// Whoever holds the Lease, the port is that of the address.
    pub(crate) async fn start(holder: Option<&str>, address: &str) -> ApiServer {
        let pod: SocketAddr = address.strip_prefix("http://").unwrap().parse().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = format!("http://{}", listener.local_addr().unwrap());
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = folder.path().join("kubeconfig");
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": server}}],
            "users": [{"name": "test", "user": {"token": "a-token"}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        });
        std::fs::write(&kubeconfig, config.to_string()).unwrap();
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let holder = holder.map(ToOwned::to_owned);
        let log = Arc::clone(&asked);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(answer(stream, holder.clone(), pod, Arc::clone(&log)));
            }
        });
        ApiServer { kubeconfig, asked, _folder: folder }
    }

    pub(crate) fn kubeconfig(&self) -> &str {
        self.kubeconfig.to_str().unwrap()
    }

    /// The paths that were asked for.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

async fn answer(
    mut stream: TcpStream,
    holder: Option<String>,
    pod: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
) {
    loop {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let Ok(byte) = stream.read_u8().await else { return };
            head.push(byte);
        }
        let head = String::from_utf8(head).unwrap();
        let path = head.split(' ').nth(1).unwrap().to_owned();
        asked.lock().unwrap().push(path.clone());
        if path.contains("/portforward") {
            return forward(stream, &head, pod).await;
        }
        let lease = "/apis/coordination.k8s.io/v1/namespaces/sluice-system/leases/sluice";
        let (status, body) = match path.as_str() {
            "/version" => (200, json!({"major": "1", "minor": "36", "gitVersion": "v1.36.3"})),
            path if path == lease => (200, the_lease(holder.as_deref())),
            _ => (
                404,
                json!({"kind": "Status", "status": "Failure", "code": 404, "reason": "NotFound",
                              "message": "not found"}),
            ),
        };
        let body = body.to_string();
        let length = body.len();
        let text = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        if stream.write_all(text.as_bytes()).await.is_err() {
            return;
        }
    }
}

fn the_lease(holder: Option<&str>) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "sluice", "namespace": "sluice-system", "resourceVersion": "7"},
        "spec": {"holderIdentity": holder.unwrap_or_default(), "leaseDurationSeconds": 15},
    })
}

/// What a kubelet does: channel 0 carries the bytes of the port, channel 1 what is wrong with it.
async fn forward(mut stream: TcpStream, head: &str, pod: SocketAddr) {
    let key = head.lines().find(|line| line.to_lowercase().starts_with("sec-websocket-key:"));
    let accept = derive_accept_key(key.unwrap().split_once(':').unwrap().1.trim().as_bytes());
    let upgrade = format!(
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n\
         sec-websocket-accept: {accept}\r\nsec-websocket-protocol: v4.channel.k8s.io\r\n\r\n"
    );
    stream.write_all(upgrade.as_bytes()).await.unwrap();
    let mut socket = WebSocketStream::from_raw_socket(stream, Role::Server, None).await;
    let [low, high] = 8082u16.to_le_bytes();
    for channel in [0, 1] {
        socket.send(Message::binary(vec![channel, low, high])).await.unwrap();
    }
    let Ok(mut port) = TcpStream::connect(pod).await else {
        let _ = socket.send(Message::binary(b"\x01connection refused".to_vec())).await;
        return;
    };
    let mut bytes = vec![0; 16 << 10];
    loop {
        tokio::select! {
            read = port.read(&mut bytes) => match read {
                Ok(many) if many > 0 => {
                    let framed = [&[0u8][..], &bytes[..many]].concat();
                    if socket.send(Message::binary(framed)).await.is_err() {
                        return;
                    }
                }
                _ => return,
            },
            message = socket.next() => match message {
                Some(Ok(Message::Binary(data))) if data.first() == Some(&0) => {
                    if port.write_all(&data[1..]).await.is_err() {
                        return;
                    }
                }
                Some(Ok(_)) => {}
                _ => return,
            },
        }
    }
}
