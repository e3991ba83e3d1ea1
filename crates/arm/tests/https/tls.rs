//! TLS that does not come about: always before anything was sent, always with what to do.

use sluice_arm::{Client, Outcome, Pem};

use crate::certificates::Ca;
use crate::server::{Door, json};
use crate::world::{World, answered, not_sent, public_ip_json, settings, write};

async fn behind(door: impl FnOnce(&Ca) -> Door) -> World {
    World::at(door, |_| (), |_| json(201, &public_ip_json())).await
}

#[tokio::test]
async fn a_certificate_of_an_unknown_authority_says_which_ca_to_give() {
    let stranger = Ca::new();
    let world = behind(|_| Door::Tls(stranger.acceptor(&["127.0.0.1"], &["http/1.1"]))).await;
    let address = world.server.address.to_string();
    not_sent(&world.write().await, &[&address, "unknown CA", "sluice.azure.caFile"]);
    assert_eq!(world.records()[0].outcome, Outcome::NotSent("tls"));
    assert_eq!(world.server.seen().len(), 0);
}

#[tokio::test]
async fn a_certificate_for_another_name_says_so() {
    let world = behind(|ca| Door::Tls(ca.acceptor(&["arm.example"], &["http/1.1"]))).await;
    not_sent(&world.write().await, &["does not match this name", "arm.example"]);
}

#[tokio::test]
async fn an_expired_certificate_says_to_check_the_clock() {
    let world = behind(|ca| Door::Tls(ca.expired_acceptor(&["127.0.0.1"]))).await;
    not_sent(&world.write().await, &["has expired or is not valid yet", "clock"]);
}

#[tokio::test]
async fn plain_http_on_the_tls_port_says_so() {
    let world = behind(|_| Door::Plain).await;
    let mut settings = settings(&world.ca, &world.server);
    let clear = ClearText::start().await;
    settings.resource_manager_endpoint = Some(format!("https://{}", clear.address));
    let reply = Client::new(&settings).unwrap().send(&write()).await;
    not_sent(&reply, &[&clear.address.to_string(), "does not speak TLS", "port"]);
}

#[tokio::test]
async fn a_ca_from_a_file_is_as_good() {
    let world = behind(|ca| Door::Tls(ca.acceptor(&["127.0.0.1"], &["http/1.1"]))).await;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &world.ca.pem).unwrap();
    let mut settings = settings(&world.ca, &world.server);
    settings.extra_ca = Some(Pem::File(file.path().to_owned()));
    answered(&Client::new(&settings).unwrap().send(&write()).await);
}

#[tokio::test]
async fn without_the_ca_the_system_roots_alone_do_not_know_it() {
    let world = behind(|ca| Door::Tls(ca.acceptor(&["127.0.0.1"], &["http/1.1"]))).await;
    let mut settings = settings(&world.ca, &world.server);
    settings.extra_ca = None;
    match Client::new(&settings) {
        Ok(client) => not_sent(&client.send(&write()).await, &["unknown CA"]),
        // A machine without any roots says so before.
        Err(error) => assert_eq!(error.word(), "no-roots"),
    }
}

/// Answers whatever comes with a page in clear text, as an HTTP server does on a strange greeting.
struct ClearText {
    address: std::net::SocketAddr,
    task: tokio::task::JoinHandle<()>,
}

impl ClearText {
    async fn start() -> ClearText {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let _ = stream.read(&mut [0; 64 << 10]).await;
                let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").await;
                // Until the other side has had enough.
                let _ = stream.read(&mut [0; 64]).await;
            }
        });
        ClearText { address, task }
    }
}

impl Drop for ClearText {
    fn drop(&mut self) {
        self.task.abort();
    }
}
