//! Connections: kept, closed, reset, refused. What is known of a request when one goes away.

use std::time::Duration;

use sluice_arm::{Client, Limits, Outcome, Proxy, Secret};
use sluice_model::call::Reply;
use tokio::net::TcpListener;

use crate::certificates::Ca;
use crate::server::{Act, Door, json};
use crate::world::{World, answered, impatient, lost, not_sent, public_ip_json, settings};

fn http2(ca: &Ca) -> Door {
    Door::Http2(ca.acceptor(&["127.0.0.1"], &["h2"]))
}

#[tokio::test]
async fn fifty_calls_share_one_connection() {
    let world = World::new(|_| json(200, &public_ip_json())).await;
    for _ in 0..50 {
        answered(&world.read().await);
    }
    assert_eq!((world.server.seen().len(), world.server.connections()), (50, 1));
}

#[tokio::test]
async fn fifty_calls_share_one_connection_of_http_2_at_once_too() {
    let world = World::at(http2, |_| (), |_| json(200, &public_ip_json())).await;
    answered(&world.read().await);
    let calls: Vec<_> = (0..49)
        .map(|_| {
            let client = world.client.clone();
            tokio::spawn(async move { client.send(&crate::world::read()).await })
        })
        .collect();
    for call in calls {
        answered(&call.await.unwrap());
    }
    assert_eq!((world.server.seen().len(), world.server.connections()), (50, 1));
}

#[tokio::test]
async fn a_connection_that_the_server_closed_in_between_costs_nobody_a_request() {
    let world = World::new(|_| Act::AnswerAndLeave(Box::new(json(201, &public_ip_json())))).await;
    for _ in 0..10 {
        answered(&world.write().await);
        world.server.left().await;
    }
    assert_eq!((world.server.seen().len(), world.server.connections()), (10, 10));
}

#[tokio::test]
async fn a_connection_that_http_2_closes_in_good_order_costs_nobody_a_request() {
    let leave = |_: &_| Act::AnswerAndGoAway(Box::new(json(201, &public_ip_json())));
    let world = World::at(http2, |_| (), leave).await;
    for _ in 0..5 {
        answered(&world.write().await);
    }
    assert_eq!(world.server.seen().len(), 5);
}

#[tokio::test]
async fn a_request_that_the_server_did_not_look_at_goes_out_once_more() {
    let world = World::at(
        http2,
        |_| (),
        |seen| match seen.number {
            1 => Act::RefuseStream,
            _ => json(201, &public_ip_json()),
        },
    )
    .await;
    answered(&world.write().await);
    assert_eq!(world.server.seen().len(), 2);
}

#[tokio::test]
async fn a_server_that_looks_at_nothing_leaves_nothing_in_doubt() {
    let world = World::at(http2, |_| (), |_| Act::RefuseStream).await;
    not_sent(&world.write().await, &["127.0.0.1", "before processing the request"]);
    assert_eq!(world.records()[0].outcome, Outcome::NotSent("closed"));
    assert!(world.server.seen().len() <= 3, "{} tries", world.server.seen().len());
}

#[tokio::test]
async fn a_reset_after_the_request_was_read_is_lost_and_the_next_call_works() {
    for door in [http2, |ca: &Ca| Door::Tls(ca.acceptor(&["127.0.0.1"], &["http/1.1"]))] {
        let world = World::at(
            door,
            |_| (),
            |seen| match seen.number {
                1 => Act::Reset,
                _ => json(201, &public_ip_json()),
            },
        )
        .await;
        lost(
            &world.write().await,
            &["127.0.0.1", "lost before the answer", "Sluice checks Azure before retrying"],
        );
        assert_eq!(world.records()[0].outcome, Outcome::Lost("reset"));
        assert_eq!(world.server.seen().len(), 1, "a lost request is not sent again");
        answered(&world.write().await);
    }
}

#[tokio::test]
async fn an_orderly_end_before_the_answer_is_lost_too() {
    let world = World::new(|_| Act::Raw(Vec::new())).await;
    lost(&world.write().await, &["127.0.0.1", "lost before the answer"]);
    assert_eq!(world.server.seen().len(), 1);
}

#[tokio::test]
async fn an_answer_that_never_comes_over_http_2_ends_at_the_limit() {
    let world = World::at(
        http2,
        |settings| settings.limits = impatient(),
        |seen| match seen.number {
            1 => Act::Hang(Vec::new()),
            _ => json(201, &public_ip_json()),
        },
    )
    .await;
    lost(&world.write().await, &["no answer from 127.0.0.1", "within 1500 ms"]);
    answered(&world.write().await);
}

#[tokio::test]
async fn a_connection_that_is_shut_before_tls_was_not_sent() {
    let world = World::at(|_| Door::Shut, |_| (), |_| json(200, "")).await;
    not_sent(&world.write().await, &["127.0.0.1", "closed during the handshake"]);
    assert_eq!(world.records()[0].outcome, Outcome::NotSent("connect-reset"));
}

#[tokio::test]
async fn a_reset_before_the_request_was_read_is_lost_unless_it_provably_did_not_leave() {
    let world = World::at(
        |ca| Door::ShutAfterTls(ca.acceptor(&["127.0.0.1"], &["http/1.1"])),
        |_| (),
        |_| json(200, ""),
    )
    .await;
    // Which of the two depends on whether our bytes or the reset came first.
    match world.write().await {
        reply @ Reply::Lost(_) => lost(&reply, &["127.0.0.1", "lost before the answer"]),
        reply => not_sent(&reply, &["127.0.0.1", "before processing the request"]),
    }
    assert_eq!(world.server.seen().len(), 0);
}

#[tokio::test]
async fn a_connection_that_never_gets_ready_ends_at_the_connect_limit() {
    let quick = Limits { connect: Duration::from_millis(200), ..Limits::default() };
    let world = World::at(|_| Door::Silent, move |settings| settings.limits = quick, |_| json(200, "")).await;
    not_sent(&world.write().await, &["connection to 127.0.0.1", "timed out after 200 ms", "firewalls"]);
    assert_eq!(world.records()[0].outcome, Outcome::NotSent("connect-timeout"));
}

#[tokio::test]
async fn nobody_at_home_is_not_sent() {
    let world = World::new(|_| json(200, "")).await;
    let empty = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let mut settings = settings(&world.ca, &world.server);
    settings.resource_manager_endpoint = Some(format!("https://{empty}"));
    let reply = Client::new(&settings).unwrap().send(&crate::world::write()).await;
    not_sent(&reply, &[&empty.to_string(), "refused", "resourceManagerEndpoint"]);
}

#[tokio::test]
async fn a_name_that_does_not_exist_is_not_sent() {
    let world = World::new(|_| json(200, "")).await;
    let mut settings = settings(&world.ca, &world.server);
    settings.resource_manager_endpoint = Some("https://nobody.invalid".into());
    let reply = Client::new(&settings).unwrap().send(&crate::world::write()).await;
    not_sent(&reply, &["nobody.invalid"]);
    // Where the resolver itself cannot be reached, the connect limit comes first.
    assert!(format!("{reply:?}").contains("cannot resolve") || format!("{reply:?}").contains("after 5 s"));
}

#[tokio::test]
async fn a_proxy_whose_name_does_not_exist_is_the_one_that_is_named() {
    let world = World::new(|_| json(200, "")).await;
    let mut settings = settings(&world.ca, &world.server);
    settings.resource_manager_endpoint = Some("https://arm.example".into());
    // No resolver has to be asked: a part of a name has at most 63 letters.
    let name = format!("{}.example", "long".repeat(16));
    let url = Secret::new(format!("http://{name}:3128"));
    settings.proxy = Proxy::Through { url, except: String::new() };
    let reply = Client::new(&settings).unwrap().send(&crate::world::write()).await;
    not_sent(&reply, &[&name, "cannot resolve", "DNS"]);
}

#[tokio::test]
async fn plain_http_works_on_loopback_for_an_emulator() {
    let world = World::at(
        |_| Door::Plain,
        |settings| {
            let endpoint = settings.resource_manager_endpoint.as_mut().unwrap();
            *endpoint = endpoint.replace("https://", "http://");
        },
        |_| json(200, &public_ip_json()),
    )
    .await;
    answered(&world.read().await);
}
