//! Tokens that are refused, late, missing or garbage.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sluice_arm::{Limits, Outcome, Settings};
use sluice_model::FailureClass;
use sluice_model::call::Reply;

use crate::authority::{CLIENT_SECRET, TENANT, client_secret, entra, grant, is_for_token, token};
use crate::server::{Act, Seen, json};
use crate::world::{World, answered, failure, not_sent, public_ip_json};

fn with_secret(settings: &mut Settings) {
    settings.credential = client_secret();
    settings.limits = Limits { token_pause: Duration::ZERO, ..Limits::default() };
}

async fn world(script: impl Fn(&Seen) -> Act + Send + Sync + 'static) -> World {
    World::with(with_secret, script).await
}

fn refused() -> Act {
    json(
        401,
        r#"{"error":{"code":"ExpiredAuthenticationToken","message":"The access token expiry UTC time is earlier than now."}}"#,
    )
}

fn fetches(world: &World) -> usize {
    world.server.seen().iter().filter(|seen| is_for_token(seen)).count()
}

#[tokio::test]
async fn one_token_serves_many_calls_at_once() {
    let world = world(entra).await;
    let calls: Vec<_> = (0..20)
        .map(|_| {
            let client = world.client.clone();
            tokio::spawn(async move { client.send(&crate::world::read()).await })
        })
        .collect();
    for call in calls {
        answered(&call.await.unwrap());
    }
    assert_eq!(fetches(&world), 1);
}

#[tokio::test]
async fn the_first_401_is_not_sent_and_the_next_call_has_a_new_token() {
    let world = world(|seen| match seen {
        seen if is_for_token(seen) => grant(seen.number),
        seen if seen.header("authorization").contains("token1-") => refused(),
        _ => json(201, &public_ip_json()),
    })
    .await;
    not_sent(
        &world.write().await,
        &["127.0.0.1", "did not accept the token", "the next attempt uses a new token"],
    );
    assert_eq!(world.records()[0].outcome, Outcome::NotSent("token-refused"));
    assert_eq!(world.server.seen().len(), 2, "the client repeats nothing by itself");
    answered(&world.write().await);
    assert_eq!(fetches(&world), 2);
    // Accepted once, the next 401 is again the first.
    answered(&world.write().await);
}

#[tokio::test]
async fn a_new_token_that_is_refused_too_is_a_matter_for_people() {
    let world = world(|seen| if is_for_token(seen) { grant(seen.number) } else { refused() }).await;
    not_sent(&world.write().await, &["did not accept the token"]);
    for _ in 0..3 {
        let reply = world.write().await;
        assert!(matches!(&reply, Reply::Answered(answer) if answer.status == 401), "{reply:?}");
        failure(&reply, FailureClass::Forbidden, &["expiry"]);
    }
    assert_eq!(world.records()[1].outcome, Outcome::Answered(401));
    assert_eq!(fetches(&world), 2, "a token that is refused for good is not fetched again and again");
}

#[tokio::test]
async fn somebody_on_the_way_does_not_accept_a_token() {
    // An identity that is refused for good, behind a gateway that flaps.
    let page = "<html><body>Bad Gateway</body></html>";
    for (status, body) in [(502, page), (503, ""), (404, page), (403, page), (200, page)] {
        let world = world(move |seen| match seen.number {
            1 | 3 => grant(seen.number),
            4 | 6 => json(status, body),
            _ => refused(),
        })
        .await;
        not_sent(&world.write().await, &["did not accept the token"]);
        for _ in 0..2 {
            world.write().await;
            failure(&world.write().await, FailureClass::Forbidden, &["expiry"]);
        }
        assert_eq!(fetches(&world), 2, "{status}");
    }
}

#[tokio::test]
async fn a_refusal_of_azures_own_words_accepts_the_token_all_the_same() {
    let words = r#"{"error":{"code":"ResourceNotFound","message":"gone"}}"#;
    let world = world(move |seen| match seen.number {
        1 | 3 | 6 => grant(seen.number),
        4 => json(404, words),
        7 => json(201, &public_ip_json()),
        _ => refused(),
    })
    .await;
    not_sent(&world.write().await, &["did not accept the token"]);
    failure(&world.write().await, FailureClass::NotFound, &["gone"]);
    // So the next refusal begins a streak of its own.
    not_sent(&world.write().await, &["did not accept the token"]);
    answered(&world.write().await);
}

#[tokio::test]
async fn a_403_is_no_matter_of_the_token() {
    let world = world(|seen| match is_for_token(seen) {
        true => grant(seen.number),
        false => json(403, r#"{"error":{"code":"AuthorizationFailed","message":"no"}}"#),
    })
    .await;
    for _ in 0..2 {
        failure(&world.write().await, FailureClass::Forbidden, &["no"]);
    }
    assert_eq!(fetches(&world), 1);
}

/// What an issuer answers instead of a token, and what a person is told about it.
async fn without_token(answer: Act, says: &[&str]) {
    let world = world(move |seen| match (is_for_token(seen), seen.number) {
        (true, 1) => answer.clone(),
        (true, number) => grant(number),
        _ => json(201, &public_ip_json()),
    })
    .await;
    let host = format!("no token for {}", world.client.host());
    not_sent(&world.write().await, &[&[host.as_str()], says].concat());
    assert_eq!(world.records()[0].outcome, Outcome::NotSent("token"));
    assert_eq!(world.server.seen().len(), 1, "the request itself never left");
    answered(&world.write().await);
}

/// What Entra says when it knows what is wrong with us.
fn denial(description: &str) -> Act {
    let text =
        format!(r#"{{"error":"invalid_client","error_description":"{description}","error_codes":[1]}}"#);
    json(401, &text)
}

#[tokio::test]
async fn an_issuer_that_refuses_us_is_quoted_with_what_to_do_and_is_a_matter_for_people() {
    // A text that repeats our secret is shown without it.
    let echo = format!("AADSTS1: you sent {CLIENT_SECRET} and {}", token(99));
    // Line ends in the text are Entra's habit.
    let expired = r"AADSTS7000215: Invalid client secret provided.\r\nTrace ID: 1\r\nTimestamp: 2";
    for (description, says) in [
        (expired.to_owned(), ["AADSTS7000215: Invalid client secret provided. Trace", "set aadClientSecret"]),
        ("AADSTS90002: Tenant not found.".into(), ["AADSTS90002", "check tenantId"]),
        ("AADSTS700016: No application.".into(), ["AADSTS700016", "aadClientId"]),
        ("AADSTS65001: consent".into(), ["AADSTS65001", "check the application in Entra"]),
        (echo, ["you sent [redacted] and [redacted]", "check the application"]),
    ] {
        let world = world(move |_| denial(&description)).await;
        for _ in 0..3 {
            let failed = failure(&world.write().await, FailureClass::Forbidden, &says);
            assert_eq!((&*failed.code, failed.status), ("AuthenticationFailed", 401));
            assert!(failed.message.contains("no token for 127.0.0.1"), "{failed}");
        }
        assert_eq!(world.server.seen().len(), 1, "whom it refused once it need not refuse again at once");
        assert_eq!(world.records()[2].outcome, Outcome::NotSent("token-denied"));
        let why = world.client.warm_up().await.unwrap_err();
        assert!(why.is_refused && why.text.contains(says[0]), "{why}");
    }
}

#[tokio::test]
async fn an_issuer_that_has_no_time_for_us_does_not_mean_us() {
    let busy = |error: &str, description: &str| {
        json(400, &format!(r#"{{"error":"{error}","error_description":"{description}"}}"#))
    };
    for (answer, says) in [
        (busy("temporarily_unavailable", "AADSTS90033: A transient error has occurred."), "AADSTS90033"),
        (busy("server_error", "AADSTS90024: budget"), "AADSTS90024"),
        // Whoever does not number its words is not Entra.
        (busy("invalid_client", "computer says no"), "computer says no"),
    ] {
        without_token(answer, &[says]).await;
    }
    let (status, text) = (503, r#"{"error":"invalid_client","error_description":"AADSTS1: no"}"#);
    without_token(json(status, text), &["AADSTS1"]).await;
}

#[tokio::test]
async fn an_issuer_that_asks_for_a_pause_is_given_one() {
    let date = "Fri, 01 Jan 2100 00:00:00 GMT";
    for (wait, status) in [("60", 429), ("Fri, 01 Jan 2100 00:01:00 GMT", 503)] {
        let world = world(move |seen| match seen.number {
            1 => json(status, "").with("date", date).with("retry-after", wait),
            number => grant(number),
        })
        .await;
        for _ in 0..3 {
            not_sent(&world.write().await, &["no token for 127.0.0.1", &format!("answered {status}")]);
        }
        assert_eq!(world.server.seen().len(), 1);
    }
    // A pause of nothing is none.
    without_token(json(429, "").with("retry-after", "0"), &["answered 429"]).await;
}

#[tokio::test]
async fn an_issuer_in_trouble_is_named_with_its_status() {
    without_token(json(503, ""), &["answered 503 without a token", "check sluice.azure.authorityHost"]).await;
    let page = "<html><body>Bad Gateway</body></html>";
    without_token(json(502, page), &["answered 502 without a token"]).await;
    without_token(json(404, r#"{"error":{"code":"NotFound"}}"#), &["answered 404"]).await;
    let elsewhere = json(307, "").with("location", "http://login.example/token?x=1");
    without_token(
        elsewhere,
        &["307", "a redirect to http://login.example/token, which Sluice does not follow"],
    )
    .await;
}

#[tokio::test]
async fn garbage_for_a_token_is_not_quoted() {
    let half = format!(r#"{{"access_token":"{}""#, token(7));
    for body in ["", "null", "{}", "<html>", r#"{"access_token":""}"#, r#"{"access_token":5}"#, &half] {
        without_token(json(200, body), &["answered 200 without a token"]).await;
    }
    let reset = Act::Reset;
    without_token(reset, &["lost before the answer"]).await;
    let cut = b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{\"access_token\":\"s3cr3t".to_vec();
    without_token(Act::Raw(cut), &["was cut off"]).await;
    let odd = json(200, r#"{"access_token":"line\nbreak","expires_in":3599}"#);
    without_token(odd, &["invalid characters"]).await;
    let long = Act::Answer { status: 200, headers: Vec::new(), body: vec![b' '; 2 << 20] };
    without_token(long, &["more than 1048576 bytes"]).await;
}

#[tokio::test]
async fn lives_of_tokens_are_read_in_every_spelling() {
    for body in [
        r#""expires_in":"3599""#,
        r#""expires_on":"4102444800""#,
        r#""expires_on":4102444800"#,
        r#""expires_in":"soon","expires_on":4102444800"#,
        r#""token_type":"Bearer""#,
        // Over by our clock, which is wrong then.
        r#""expires_on":"946684800""#,
    ] {
        let answer = json(200, &format!(r#"{{"access_token":"{}",{body}}}"#, token(1)));
        let world =
            world(move |seen| if is_for_token(seen) { answer.clone() } else { json(200, &public_ip_json()) });
        let world = world.await;
        answered(&world.read().await);
        answered(&world.read().await);
        assert_eq!(fetches(&world), 1, "{body}");
    }
}

#[tokio::test]
async fn an_issuer_that_never_answers_ends_at_its_limit_and_the_next_call_works() {
    let world = World::with(
        |settings| {
            with_secret(settings);
            settings.limits.token = Duration::from_millis(1500);
        },
        |seen| match (is_for_token(seen), seen.number) {
            (true, 1) => Act::Hang(Vec::new()),
            (true, number) => grant(number),
            _ => json(201, &public_ip_json()),
        },
    )
    .await;
    not_sent(&world.write().await, &["no token for 127.0.0.1", "within 1500 ms"]);
    answered(&world.write().await);
}

#[tokio::test]
async fn who_may_no_longer_begin_when_the_token_has_come_does_not() {
    // The lease runs out while the issuer thinks.
    let leads = Arc::new(AtomicBool::new(true));
    let lease = Arc::clone(&leads);
    let world = world(move |seen| {
        if is_for_token(seen) {
            lease.store(false, Ordering::SeqCst);
        }
        entra(seen)
    })
    .await;
    let write = crate::world::write();
    let send = || world.client.send_while(&write, || leads.load(Ordering::SeqCst));
    not_sent(&send().await, &["request not sent", "canceled"]);
    assert_eq!(world.records()[0].outcome, Outcome::NotSent("called-off"));
    assert_eq!((world.server.seen().len(), fetches(&world)), (1, 1), "only the token was asked for");
    leads.store(true, Ordering::SeqCst);
    answered(&send().await);
}

#[tokio::test]
async fn warming_up_tells_at_start_whether_the_credential_works() {
    let good = world(entra).await;
    good.client.warm_up().await.unwrap();
    assert_eq!(good.server.seen().len(), 1);
    assert_eq!(good.server.seen()[0].path, format!("/{TENANT}/oauth2/v2.0/token"));
    let bad = world(|_| json(400, r#"{"error":"invalid_request"}"#)).await;
    let why = bad.client.warm_up().await.unwrap_err();
    assert!(!why.is_refused && why.text.contains("answered 400: invalid_request"), "{why}");
}
