//! Through a proxy, and past it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use sluice_arm::{Client, Proxy, Secret, Settings};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::server::{Door, json};
use crate::world::{World, answered, not_sent, public_ip_json, settings, write};

/// A proxy that leads every tunnel to one place, whatever name it was asked for.
struct Tunnel {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Tunnel {
    async fn start(to: SocketAddr, verdict: &'static str) -> Tunnel {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let heard = asked.clone();
        let task = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(stream.read_u8().await.unwrap());
                }
                heard.lock().unwrap().push(String::from_utf8(head).unwrap());
                stream.write_all(format!("HTTP/1.1 {verdict}\r\n\r\n").as_bytes()).await.unwrap();
                if verdict.starts_with("200") {
                    let mut there = TcpStream::connect(to).await.unwrap();
                    tokio::spawn(async move { copy_bidirectional(&mut stream, &mut there).await });
                }
            }
        });
        Tunnel { address, asked, task }
    }

    fn through(&self, except: &str) -> Proxy {
        let url = Secret::new(format!("http://user:s3cr3t-pass@{}", self.address));
        Proxy::Through { url, except: except.to_owned() }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn world() -> World {
    let door =
        |ca: &crate::certificates::Ca| Door::Tls(ca.acceptor(&["127.0.0.1", "arm.example"], &["http/1.1"]));
    World::at(door, |_| (), |_| json(201, &public_ip_json())).await
}

fn by_name(world: &World) -> Settings {
    let mut settings = settings(&world.ca, &world.server);
    settings.resource_manager_endpoint = Some("https://arm.example".into());
    settings
}

#[tokio::test]
async fn a_proxy_leads_there_and_sees_only_the_name() {
    let world = world().await;
    let tunnel = Tunnel::start(world.server.address, "200 OK").await;
    let settings = Settings { proxy: tunnel.through(""), ..by_name(&world) };
    answered(&Client::new(&settings).unwrap().send(&write()).await);
    let asked = tunnel.asked();
    assert!(asked[0].starts_with("CONNECT arm.example:443 "), "{}", asked[0]);
    assert!(asked[0].to_lowercase().contains("proxy-authorization: basic "));
    assert!(!asked[0].contains("Bearer"));
    assert!(!format!("{settings:?}").contains("s3cr3t"));
}

#[tokio::test]
async fn a_proxy_that_refuses_is_named() {
    let world = world().await;
    let tunnel = Tunnel::start(world.server.address, "403 Forbidden").await;
    let settings = Settings { proxy: tunnel.through(""), ..by_name(&world) };
    let reply = Client::new(&settings).unwrap().send(&write()).await;
    not_sent(&reply, &["arm.example", &format!("through proxy {}", tunnel.address), "HTTPS_PROXY"]);
}

#[tokio::test]
async fn loopback_and_exceptions_go_straight() {
    let world = world().await;
    let tunnel = Tunnel::start(world.server.address, "200 OK").await;
    let near = Settings { proxy: tunnel.through(""), ..settings(&world.ca, &world.server) };
    answered(&Client::new(&near).unwrap().send(&write()).await);

    let mut excepted = Settings { proxy: tunnel.through("arm.example"), ..by_name(&world) };
    excepted.limits.connect = std::time::Duration::from_millis(500);
    let reply = Client::new(&excepted).unwrap().send(&write()).await;
    assert!(!matches!(reply, sluice_model::call::Reply::Answered(_)), "nobody is at arm.example itself");
    assert_eq!(tunnel.asked().len(), 0);
}
