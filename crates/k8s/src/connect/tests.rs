//! Every way in which there is no connection, and the sentence for it.

use super::*;
use crate::scripted::{Say, Script};
use serde_json::json;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn kubeconfig(server: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: here\n\
         clusters: [{{name: c, cluster: {{server: \"{server}\"}}}}]\n\
         users: [{{name: u, user: {{token: very-secret}}}}]\n\
         contexts:\n- {{name: here, context: {{cluster: c, user: u, namespace: ours}}}}\n\
         - {{name: there, context: {{cluster: missing, user: u}}}}\n"
    )
}

fn written(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

async fn refusal(text: &str, context: Option<&str>) -> String {
    let file = written(text);
    let error = connect(Some(file.path()), context).await.unwrap_err().to_string();
    error.replace(&file.path().display().to_string(), "FILE")
}

#[tokio::test]
async fn a_file_that_is_not_there_is_named() {
    let error = connect(Some(Path::new("no/such/kubeconfig")), None).await.unwrap_err().to_string();
    assert!(error.starts_with("cannot use the kubeconfig no/such/kubeconfig: No such file"), "{error}");
    assert!(error.contains("choose another with --kubeconfig"), "{error}");
}

#[tokio::test]
async fn a_file_that_makes_no_sense_is_refused_without_showing_what_is_in_it() {
    for text in ["{ token: very-secret", "users: very-secret", "- very-secret"] {
        let error = refusal(text, None).await;
        assert!(
            error.contains("cannot use the kubeconfig FILE") || error.contains("no current context"),
            "{error}"
        );
        assert!(!error.contains("very-secret"), "{error}");
    }
}

#[tokio::test]
async fn an_unknown_context_is_answered_with_those_there_are() {
    let text = kubeconfig("https://127.0.0.1:1");
    assert_eq!(
        refusal(&text, Some("nowhere")).await,
        "the kubeconfig has no context \"nowhere\" (available: here, there); choose one with --context"
    );
    assert_eq!(
        refusal("apiVersion: v1\nkind: Config\n", None).await,
        "the kubeconfig sets no current context (available: none); choose one with --context"
    );
    let error = refusal(&text, Some("there")).await;
    assert!(error.contains("cannot use the kubeconfig FILE") && error.contains("missing"), "{error}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unreachable() {
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let error = refusal(&kubeconfig(&format!("http://127.0.0.1:{port}")), None).await;
    let begin = format!("cannot reach the Kubernetes API server at http://127.0.0.1:{port}:");
    assert!(error.starts_with(&begin) && error.contains("refused"), "{error}");
    assert!(!error.contains("very-secret"), "{error}");
}

async fn greeting(say: Say) -> Result<(), ConnectError> {
    let (client, script) = Script::of([("GET /version", say)]);
    let greeting = greet(&client, "https://cluster").await;
    script.played();
    greeting
}

#[tokio::test]
async fn only_an_api_server_passes_for_one() {
    let version = json!({"major": "1", "minor": "36", "gitVersion": "v1.36.3"});
    assert!(greeting(Say::ok(version)).await.is_ok());
    assert!(greeting(Say::status(403, "Forbidden", "no")).await.is_ok());
    for (say, begin) in [
        (
            Say::status(401, "Unauthorized", "Unauthorized"),
            "the Kubernetes API server at https://cluster does not accept",
        ),
        (Say::Text(200, "<html>"), "https://cluster is not a Kubernetes API server"),
        (Say::Text(404, "not found"), "https://cluster is not a Kubernetes API server"),
        (Say::Text(403, "denied"), "https://cluster is not a Kubernetes API server"),
        (Say::ok(json!({"version": 2})), "https://cluster is not a Kubernetes API server"),
        (
            Say::status(503, "ServiceUnavailable", "starting"),
            "cannot reach the Kubernetes API server at https://cluster: answered 503",
        ),
        (Say::Break, "cannot reach the Kubernetes API server at https://cluster"),
        (
            Say::OsError(24),
            "cannot connect to the Kubernetes API server at https://cluster: too many open files; raise the limit",
        ),
    ] {
        let error = greeting(say).await.unwrap_err().to_string();
        assert!(error.starts_with(begin), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_accepts_and_says_nothing_is_unreachable() {
    let error = greeting(Say::Hang).await.unwrap_err().to_string();
    assert!(error.contains("cannot reach") && error.contains("timed out after 10.0 s"), "{error}");
}

#[tokio::test]
async fn the_cluster_is_known_by_its_oldest_namespace() {
    let line = "GET /api/v1/namespaces/kube-system";
    let (client, _) = Script::of([(line, Say::ok(json!({"metadata": {"uid": "0a1b"}})))]);
    assert_eq!(cluster_id(&client).await.unwrap(), "0a1b");
    let words = "namespaces \"kube-system\" is forbidden: User \"u\" cannot get resource \"namespaces\"";
    let (client, _) = Script::of([(line, Say::status(403, "Forbidden", words))]);
    let error = cluster_id(&client).await.unwrap_err().to_string();
    assert!(error.starts_with("get namespaces denied: namespaces \"kube-system\" is forbidden"), "{error}");
}

/// A server that answers 503 to everything, and the requests that it got.
async fn busy_server() -> (String, tokio::sync::mpsc::UnboundedReceiver<String>) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = format!("http://{}", listener.local_addr().unwrap());
    let (requests, got) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut text = Vec::new();
            while !text.ends_with(b"\r\n\r\n") {
                text.push(stream.read_u8().await.unwrap());
            }
            requests.send(String::from_utf8(text).unwrap().to_lowercase()).unwrap();
            let answer = "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    (host, got)
}

#[tokio::test]
async fn nothing_is_repeated_behind_our_back_and_we_say_who_we_are() {
    let (host, mut got) = busy_server().await;
    let error = refusal(&kubeconfig(&host), None).await;
    assert!(error.contains("answered 503"), "{error}");
    let request = got.recv().await.unwrap();
    assert!(request.starts_with("get /version "), "{request}");
    assert!(request.contains("user-agent: sluice/0."), "{request}");
    assert!(request.contains("authorization: bearer very-secret"), "{request}");
    assert!(got.try_recv().is_err(), "one question, one request");
}

#[tokio::test]
async fn a_proxy_is_not_asked_for_this_machine_itself() {
    for (server, is_reached_directly) in [
        ("https://127.0.0.1:6443", true),
        ("https://localhost:6443", true),
        ("https://[::1]:6443", true),
        ("https://kubernetes.example:6443", false),
    ] {
        let mut config = Config::new(Uri::from_static(server));
        config.proxy_url = Some(Uri::from_static("http://proxy.example:3128"));
        // Without a proxy of its own the client refuses one when it is made.
        assert_eq!(client(config, CONNECT_LIMIT).is_ok(), is_reached_directly, "{server}");
    }
}

/// A server that keeps connections open, and how many were opened. Its answers are long: a client that does not read
/// them to the end cannot use the connection again.
async fn counting_server() -> (String, Arc<AtomicUsize>) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = format!("http://{}", listener.local_addr().unwrap());
    let opened = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&opened);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(async move {
                let mut text = Vec::new();
                while let Ok(byte) = stream.read_u8().await {
                    text.push(byte);
                    if !text.ends_with(b"\r\n\r\n") {
                        continue;
                    }
                    let head = String::from_utf8(std::mem::take(&mut text)).unwrap().to_lowercase();
                    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
                    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
                    stream.read_exact(&mut body).await.unwrap();
                    let body = format!("\"{}\"", "x".repeat(100_000));
                    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
                    stream.write_all(answer.as_bytes()).await.unwrap();
                }
            });
        }
    });
    (host, opened)
}

/// Sends one write after the other, in so many lanes at once; how many connections that opened.
async fn connections_opened(lanes: usize, writes_each: usize) -> usize {
    let (host, opened) = counting_server().await;
    let file = written(&kubeconfig(&host));
    let config = from_file(file.path(), None).await.unwrap();
    let client = client(config, CONNECT_LIMIT).unwrap().client;
    let path = "/api/v1/namespaces/shop/services/web/status".to_string();
    let write = Call::merge("services/status", path, json!({"status": {}}));
    let lane = || async {
        for _ in 0..writes_each {
            write.send::<Value>(&client).await.unwrap();
        }
    };
    futures::future::join_all((0..lanes).map(|_| lane())).await;
    opened.load(Ordering::SeqCst)
}

#[tokio::test]
async fn writes_one_after_the_other_share_a_connection() {
    assert_eq!(connections_opened(1, 200).await, 1);
}

#[tokio::test]
async fn writes_at_once_open_no_more_connections_than_are_in_flight() {
    let opened = connections_opened(32, 20).await;
    assert!((2..=32).contains(&opened), "{opened}");
}

#[tokio::test]
async fn the_lease_is_renewed_over_a_connection_of_its_own() {
    let (host, opened) = counting_server().await;
    let file = written(&kubeconfig(&host));
    let config = from_file(file.path(), None).await.unwrap();
    let Connection { client, lease_client, .. } = client(config, CONNECT_LIMIT).unwrap();
    let path = "/apis/coordination.k8s.io/v1/namespaces/shop/leases/sluice".to_string();
    let write = Call::merge("leases", path, json!({"spec": {}}));
    for (client, connections) in [(&client, 1), (&client, 1), (&lease_client, 2), (&lease_client, 2)] {
        write.send::<Value>(client).await.unwrap();
        assert_eq!(opened.load(Ordering::SeqCst), connections);
    }
}
