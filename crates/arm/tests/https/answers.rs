//! Answers, good and bad: what they become, and what a person is told.

use std::io::Write as _;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use sluice_arm::{Limits, Outcome};
use sluice_model::FailureClass;
use sluice_model::azure::ArmId;
use sluice_model::call::{Method, Payload, Reply, Request};

use crate::server::{Act, Door, json};
use crate::world::{
    NETWORK, TOKEN, World, answered, failure, impatient, lost, not_sent, public_ip, public_ip_json, read,
};

const LOOK_FIRST: &str = "Sluice checks Azure before retrying";

fn raw(text: &str) -> Act {
    Act::Raw(text.as_bytes().to_vec())
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn packed(body: Vec<u8>) -> Act {
    let headers = vec![("content-encoding".into(), "gzip".into())];
    Act::Answer { status: 200, headers, body }
}

#[tokio::test]
async fn a_call_says_who_it_is_and_keeps_a_record_of_itself() {
    let world = World::with(
        |settings| settings.user_agent_suffix = Some("cluster/7".into()),
        |seen| {
            let answer = json(if seen.method == "PUT" { 201 } else { 200 }, &public_ip_json());
            answer
                .with("x-ms-request-id", "req-1")
                .with("x-ms-correlation-request-id", "corr-1")
                .with("x-ms-ratelimit-remaining-subscription-reads", "249")
        },
    )
    .await;
    answered(&world.read().await);
    answered(&world.write().await);

    let seen = world.server.seen();
    assert_eq!(seen[0].path, format!("{}?api-version=2025-05-01", public_ip()));
    for request in &seen {
        assert_eq!(request.header("authorization"), format!("Bearer {TOKEN}"));
        assert_eq!(request.header("user-agent"), concat!("sluice/", env!("CARGO_PKG_VERSION"), " cluster/7"));
        assert_eq!(request.header("accept"), "application/json");
    }
    assert_eq!(seen[0].header("content-type"), "");
    assert_eq!(seen[1].header("content-type"), "application/json");
    let ids: Vec<&str> = seen.iter().map(|request| request.header("x-ms-client-request-id")).collect();
    assert_eq!(ids[0].len(), 36);
    assert_ne!(ids[0], ids[1], "every call has an id of its own");

    let records = world.records();
    let record = &records[0];
    assert_eq!(
        (record.method, record.kind, record.path.as_str()),
        ("get", "publicIPAddresses", public_ip().as_str())
    );
    assert_eq!(record.outcome, Outcome::Answered(200));
    assert_eq!((record.bytes_sent, record.bytes_received), (0, public_ip_json().len()));
    assert_eq!(record.remaining, Some(249));
    assert_eq!(record.client_request_id, ids[0]);
    assert_eq!(record.request_id.as_deref(), Some("req-1"));
    assert_eq!(record.correlation_id.as_deref(), Some("corr-1"));
    assert_eq!((records[1].method, records[1].bytes_sent), ("put", seen[1].body.len()));
}

#[tokio::test]
async fn a_success_that_cannot_be_read_is_lost_and_says_what_came() {
    for (body, kind) in [
        ("{\"name\":", "application/json"),
        ("[1, 2]", "application/json"),
        (r#"{"id": 7, "properties": "none"}"#, "application/json"),
        ("<html><h1>Welcome to the proxy</h1></html>", "text/html"),
    ] {
        let answer = Act::Answer {
            status: 200,
            headers: vec![("content-type".into(), kind.into())],
            body: body.as_bytes().to_vec(),
        };
        let world = World::new(move |_| answer.clone()).await;
        lost(&world.write().await, &["127.0.0.1", "unexpected body"]);
        assert_eq!(world.records()[0].outcome, Outcome::Unreadable(200));
    }
}

#[tokio::test]
async fn an_html_page_with_a_status_is_judged_by_the_status() {
    for (status, class) in
        [(502, FailureClass::Transient), (403, FailureClass::Forbidden), (400, FailureClass::Rejected)]
    {
        let page = "<html><title>Bad Gateway</title></html>";
        let world = World::new(move |_| {
            let headers = vec![("content-type".into(), "text/html".into())];
            Act::Answer { status, headers, body: page.as_bytes().to_vec() }
        })
        .await;
        let failure = failure(&world.write().await, class, &[]);
        assert_eq!(failure.status, status);
    }
}

#[tokio::test]
async fn a_body_that_breaks_off_is_lost() {
    for bytes in [
        "HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{\"name\":\"web-pip\"",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n10\r\n{\"name\":\"web-pip\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nnonsense\r\n",
    ] {
        let world = World::new(move |_| raw(bytes)).await;
        lost(&world.write().await, &["127.0.0.1", "was cut off", LOOK_FIRST]);
        assert_eq!(world.records()[0].outcome, Outcome::Lost("truncated"));
    }
}

#[tokio::test]
async fn what_is_no_http_is_lost_and_says_so() {
    let world = World::new(|_| raw("SSH-2.0-OpenSSH_9.6\r\n")).await;
    lost(&world.write().await, &["did not answer with HTTP", "resourceManagerEndpoint"]);
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_the_token_stays_here() {
    let elsewhere = World::at(|_| Door::Plain, |_| (), |_| json(200, "{}")).await;
    let there = format!("http://{}/subscriptions?sig=1", elsewhere.server.address);
    for status in [301, 302, 303, 307, 308] {
        let location = there.clone();
        let world = World::new(move |_| json(status, "").with("location", &location)).await;
        let host = format!("http://{}", elsewhere.server.address);
        failure(&world.read().await, FailureClass::Transient, &[&host, "does not follow"]);
        failure(&world.write().await, FailureClass::Transient, &["does not follow"]);
    }
    assert_eq!(elsewhere.server.connections(), 0);
}

#[tokio::test]
async fn an_address_that_azure_gave_for_another_host_is_not_asked() {
    let elsewhere = World::new(|_| json(200, "{}")).await;
    let world = World::new(|_| json(200, "{}")).await;
    for there in [
        format!("https://{}/operations/1", elsewhere.server.address),
        format!("http://{}/operations/1", world.server.address),
    ] {
        let poll = Request::bare(Method::Poll, ArmId::new(there));
        not_sent(&world.client.send(&poll).await, &["not sent", "token"]);
    }
    assert_eq!((elsewhere.server.connections(), world.server.connections()), (0, 0));
}

#[tokio::test]
async fn an_answer_that_never_comes_ends_at_the_limit_and_the_next_call_works() {
    for bytes in ["", "HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{"] {
        let world = World::with(
            |settings| settings.limits = impatient(),
            move |seen| match seen.number {
                1 => Act::Hang(bytes.as_bytes().to_vec()),
                _ => json(201, &public_ip_json()),
            },
        )
        .await;
        lost(&world.write().await, &["no answer from 127.0.0.1", "within 1500 ms", LOOK_FIRST]);
        assert_eq!(world.records()[0].outcome, Outcome::Lost("timeout"));
        answered(&world.write().await);
    }
}

#[tokio::test]
async fn a_body_of_ten_megabytes_is_read() {
    let padding = "x".repeat(10 << 20);
    let body = public_ip_json().replacen("\"tags\":{}", &format!("\"tags\":{{\"long\":\"{padding}\"}}"), 1);
    assert!(body.len() > 10 << 20);
    let sent = body.clone();
    let world = World::new(move |_| json(200, &sent)).await;
    let Reply::Answered(answer) = world.read().await else { panic!("no answer") };
    let Payload::PublicIp(ip) = answer.payload else { panic!("no public IP") };
    assert_eq!(ip.meta.tags["long"].len(), padding.len());
    assert_eq!(world.records()[0].bytes_received, body.len());
}

#[tokio::test]
async fn a_body_over_the_limit_is_lost_before_it_fills_the_memory() {
    let small = |settings: &mut sluice_arm::Settings| {
        settings.limits = Limits { body_bytes_max: 1 << 20, ..Limits::default() };
    };
    let long = Act::Answer { status: 200, headers: Vec::new(), body: vec![b' '; (1 << 20) + 1] };
    let endless = Act::Endless(b"HTTP/1.1 200 OK\r\n\r\n{\"name\": \"aaaa".to_vec());
    let bomb = packed(gzip(&vec![b' '; 100 << 20]));
    for act in [long, endless, bomb] {
        let world = World::with(small, move |_| act.clone()).await;
        lost(&world.read().await, &["127.0.0.1", "more than 1048576 bytes"]);
        assert_eq!(world.records()[0].outcome, Outcome::Lost("too-large"));
    }
}

#[tokio::test]
async fn a_packed_body_is_unpacked_and_half_of_one_is_lost() {
    let whole = gzip(public_ip_json().as_bytes());
    let half = whole[..whole.len() / 2].to_vec();
    let world = World::new(move |_| packed(whole.clone())).await;
    answered(&world.read().await);
    assert_eq!(world.server.seen()[0].header("accept-encoding"), "gzip");
    assert_eq!(world.records()[0].bytes_received, public_ip_json().len());

    let world = World::new(move |_| packed(half.clone())).await;
    lost(&world.read().await, &["127.0.0.1", "was cut off"]);
}

#[tokio::test]
async fn a_retry_after_date_counts_from_the_servers_own_clock() {
    for (date, until) in [
        ("Sat, 01 Jan 2000 00:00:00 GMT", "Sat, 01 Jan 2000 00:00:17 GMT"),
        ("Fri, 01 Jan 2100 00:00:00 GMT", "Fri, 01 Jan 2100 00:00:17 GMT"),
    ] {
        let world = World::new(move |_| {
            let error = r#"{"error":{"code":"TooManyRequests","message":"slow down"}}"#;
            json(429, error).with("date", date).with("retry-after", until)
        })
        .await;
        let failure = failure(&world.write().await, FailureClass::Throttled, &["slow down"]);
        assert_eq!(failure.retry_after, Some(Duration::from_secs(17)));
        assert_eq!(world.records()[0].retry_after, Some(Duration::from_secs(17)));
    }
}

#[tokio::test]
async fn a_page_names_where_the_list_goes_on_and_the_client_does_not_go_there() {
    let world = World::new(|seen| {
        let next = format!("https://{}{}&skip=2", seen.header("host"), seen.path);
        json(200, &format!(r#"{{"value":[{}],"nextLink":"{next}"}}"#, public_ip_json()))
    })
    .await;
    let mut list = Request::bare(Method::List, ArmId::new(format!("{NETWORK}/publicIPAddresses")));
    let Reply::Answered(answer) = world.client.send(&list).await else { panic!("no answer") };
    let Payload::PublicIps(page) = answer.payload else { panic!("no page") };
    assert_eq!(world.server.seen().len(), 1);
    list.page = page.next;
    answered(&world.client.send(&list).await);
    assert!(world.server.seen()[1].path.ends_with("&skip=2"), "{}", world.server.seen()[1].path);
}

#[tokio::test]
async fn the_etag_goes_along() {
    let world =
        World::new(|_| json(412, r#"{"error":{"code":"PreconditionFailed","message":"changed"}}"#)).await;
    let mut request = read();
    request.if_match = Some(sluice_model::azure::ETag("W/\"7\"".into()));
    request.method = Method::Delete;
    failure(&world.client.send(&request).await, FailureClass::Transient, &["changed"]);
    assert_eq!(world.server.seen()[0].header("if-match"), "W/\"7\"");
}
