//! Sockets, TLS, limits, and the way out.

use std::time::Duration;

use reqwest::{Client, Method, Version};
use serde_json::json;
use sluice_cloud::Config;
use sluice_emulator::{Emulator, Limits, Options, StartError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{Answer, Azure, GROUP, instant, options, public_ip, resource, trusting};

#[tokio::test]
async fn the_ca_opens_the_door_and_nothing_else_does() {
    let azure = Azure::start(instant()).await;
    let url = azure.url("/_emulator/health");
    assert_eq!(azure.client.get(&url).send().await.unwrap().status(), 200);
    let stranger = Client::builder().no_proxy().build().unwrap();
    let refused = stranger.get(&url).send().await.unwrap_err();
    assert!(refused.is_connect(), "{refused:?}");
    let other = Azure::start(instant()).await;
    assert!(other.client.get(&url).send().await.unwrap_err().is_connect());
}

#[tokio::test]
async fn every_name_of_this_machine_is_in_the_certificate() {
    let azure = Azure::start(instant()).await;
    let port = azure.running.address().port();
    let url = format!("https://localhost:{port}/common/discovery/instance");
    let answer = Answer::of(azure.client.get(url).send().await.unwrap()).await;
    // Links go to the name that the client used.
    let link = answer.body["tenant_discovery_endpoint"].as_str().unwrap();
    assert!(link.starts_with(&format!("https://localhost:{port}/")), "{link}");
}

#[tokio::test]
async fn both_versions_of_http_are_spoken() {
    let azure = Azure::start(instant()).await;
    let url = azure.url("/_emulator/health");
    assert_eq!(azure.client.get(&url).send().await.unwrap().version(), Version::HTTP_2);
    let old = trusting(&azure.running).http1_only().build().unwrap();
    assert_eq!(old.get(&url).send().await.unwrap().version(), Version::HTTP_11);
}

#[tokio::test]
async fn nobody_else_is_let_near_unless_it_is_asked_for() {
    let everywhere = "0.0.0.0:0".parse().unwrap();
    let open = Options { listen: everywhere, ..options() };
    let refused = Emulator::start(open.clone()).await.unwrap_err();
    assert!(matches!(refused, StartError::NotLoopback { .. }), "{refused}");
    assert!(refused.hint().contains("--insecure-listen"));
    let named = Options { insecure_listen: true, names: vec!["localhost".into()], ..open.clone() };
    let running = Emulator::start(named).await.unwrap();
    assert_eq!(running.url(), format!("https://localhost:{}", running.address().port()));
    let plain = Options { listen_http: Some(everywhere), insecure_listen: true, ..options() };
    assert!(matches!(Emulator::start(plain).await, Err(StartError::NotLoopback { .. })));
    Emulator::start(Options { insecure_listen: true, ..open }).await.unwrap();
}

#[tokio::test]
async fn a_port_that_is_taken_is_told_with_a_hint() {
    let first = Emulator::start(options()).await.unwrap();
    let second = Options { listen: first.address(), ..options() };
    let refused = Emulator::start(second).await.unwrap_err();
    assert!(refused.to_string().contains(&first.address().port().to_string()), "{refused}");
    assert!(refused.hint().contains("port 0"));
    let odd = Options { time_factor: 0.0, ..options() };
    assert!(matches!(Emulator::start(odd).await, Err(StartError::TimeFactor(_))));
}

#[tokio::test]
async fn a_folder_keeps_the_ca_and_the_tokens() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { folder: Some(folder.path().to_owned()), ..instant() };
    let first = Azure::start(options.clone()).await;
    let (ca, token, client) = (first.running.ca_pem().to_owned(), first.token.clone(), first.client.clone());
    first.running.stop().await;
    let running = Emulator::start(options).await.unwrap();
    assert_eq!(running.ca_pem(), ca);
    let again = Azure { running, client, token };
    assert_eq!(again.get(GROUP).await.status, 200);
}

#[tokio::test]
async fn a_temporary_folder_goes_with_the_emulator() {
    let running = Emulator::start(options()).await.unwrap();
    let path = running.ca_path().to_owned();
    assert!(path.exists());
    running.stop().await;
    assert!(!path.exists());
}

#[tokio::test]
async fn stopping_finishes_the_answers_in_flight_and_takes_no_new_connection() {
    let azure = Azure::start(instant()).await;
    azure.fault(json!({"fault": "latency", "afterMs": 300})).await;
    let path = resource("publicIPAddresses", "slow");
    let request = azure.request(Method::PUT, &path, Some(public_ip()));
    let in_flight = tokio::spawn(async move { request.send().await.map(|it| it.status().as_u16()) });
    // It has arrived when the log has it.
    while azure.log().await.iter().all(|entry| entry["method"] != "PUT") {
        tokio::task::yield_now().await;
    }
    let address = azure.running.address();
    azure.running.stop().await;
    assert_eq!(in_flight.await.unwrap().unwrap(), 201);
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn stopping_does_not_wait_for_a_request_that_hangs() {
    let limits = Limits { stop: Duration::from_secs(86_400), ..Limits::default() };
    let azure = Azure::start(Options { limits, ..instant() }).await;
    azure.fault(json!({"fault": "hang"})).await;
    let request = azure.request(Method::GET, GROUP, None);
    let hanging = tokio::spawn(async move { request.send().await.map(|it| it.status()) });
    while azure.log().await.iter().all(|entry| entry["fault"] != "hang") {
        tokio::task::yield_now().await;
    }
    azure.running.stop().await;
    assert!(hanging.await.unwrap().is_err());
}

#[tokio::test]
async fn stopping_does_not_wait_for_a_client_that_says_no_goodbye() {
    let limits = Limits { stop: Duration::from_secs(86_400), ..Limits::default() };
    let azure = Azure::start(Options { limits, ..instant() }).await;
    let mut mute = azure.secure_stream().await;
    // The preface and empty settings; nothing is ever read or answered after that.
    mute.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00").await.unwrap();
    mute.flush().await.unwrap();
    let Azure { running, client, .. } = azure;
    running.stop().await;
    drop((mute, client));
}

#[tokio::test]
async fn a_body_that_is_too_large_is_told_so_and_changes_nothing() {
    let cloud = Config { body_bytes_max: 10_000, ..Config::default() };
    let azure = Azure::start(Options { cloud, ..options() }).await;
    let before = azure.timeless_state().await;
    let mut body = public_ip();
    body["tags"] = json!({"long": "x".repeat(20_000)});
    let answer = azure.put(&resource("publicIPAddresses", "large"), body.clone()).await;
    assert_eq!((answer.status, answer.code()), (413, "RequestEntityTooLarge"));
    assert_eq!(azure.timeless_state().await, before);
    body["tags"] = json!({"long": "x".repeat(200)});
    assert_eq!(azure.put(&resource("publicIPAddresses", "small"), body).await.status, 201);
}

/// Sends bytes without TLS and reads until the other side closes.
async fn raw(azure: &Azure, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(azure.running.http_address().unwrap()).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    // A reset is an end as well.
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn who_dawdles_is_cut_off() {
    let limits = Limits {
        idle: Duration::from_millis(50),
        handshake: Duration::from_millis(50),
        body: Duration::from_millis(50),
        ..Limits::default()
    };
    let azure = Azure::start(Options { limits, ..instant() }).await;
    // Half a head; a head without its body; nothing at all; half a TLS handshake.
    let _ = raw(&azure, b"GET / HTTP/1.1\r\nHost: x\r\n").await;
    let half = b"PUT /subscriptions/s HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{";
    let answer = raw(&azure, half).await;
    assert!(answer.starts_with("HTTP/1.1 4"), "{answer}");
    let _ = raw(&azure, b"").await;
    let mut secure = TcpStream::connect(azure.running.address()).await.unwrap();
    secure.write_all(&[0x16, 0x03, 0x01]).await.unwrap();
    let mut rest = Vec::new();
    let _ = secure.read_to_end(&mut rest).await;
}

#[tokio::test]
async fn a_head_that_is_too_large_is_refused() {
    let limits = Limits { head_bytes_max: 8 << 10, ..Limits::default() };
    let azure = Azure::start(Options { limits, ..instant() }).await;
    let head = format!("GET / HTTP/1.1\r\nHost: x\r\nX: {}\r\n\r\n", "x".repeat(20_000));
    let answer = raw(&azure, head.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
}

#[tokio::test]
async fn connections_beyond_the_limit_wait_for_a_place() {
    let limits = Limits { connections_max: 1, idle: Duration::from_millis(200), ..Limits::default() };
    let azure = Azure::start(Options { limits, ..instant() }).await;
    let address = azure.running.http_address().unwrap();
    // The only place may be taken by our own client's connection or by this one; all are served in turn.
    let silent = TcpStream::connect(address).await.unwrap();
    let answer = raw(&azure, b"GET /_emulator/health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    drop(silent);
}
