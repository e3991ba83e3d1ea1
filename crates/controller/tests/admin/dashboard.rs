//! The dashboard's pages before a real loop.

use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::http::StatusCode;
use futures::future::join_all;
use sluice_controller::Clock as _;
use sluice_controller::admin::Access;

use crate::azure::Behaviour;
use crate::world::{World, is_put_of, text};

const LOCAL: (&str, &str) = ("host", "localhost:8082");

#[tokio::test(start_paused = true)]
async fn the_front_page_opens_on_findings_and_names_every_service() {
    let world = World::with(|request| match is_put_of(request, "publicIPAddresses") {
        true => Behaviour::Refuse(403, "AuthorizationFailed", "no authorization to perform action <b>"),
        false => Behaviour::Ordinary,
    });
    world.lead().await;
    world.apply("shop", "web");
    world.until(|all| all.iter().any(|seen| seen.hold.is_some())).await;
    let (status, page) = world.ask("/").await;
    assert_eq!(status, StatusCode::OK);
    let finding = page.find("1 Service denied by Azure").unwrap();
    let row =
        page.find("scope=\"row\" role=\"rowheader\"><a href=\"/services/shop/web\">shop/web</a>").unwrap();
    assert!(finding < row, "{page}");
    assert!(page.contains("action &lt;b&gt;"), "{page}");
    assert!(world.ask("/?q=nothing-like-this").await.1.contains("0 of 1"));

    let (status, page) = world.ask("/services/shop/web").await;
    assert_eq!(status, StatusCode::OK);
    for words in [
        "Grant the action that Azure names",
        "<code>public-ip</code></span><span class=\"took\">failed",
        "403 AuthorizationFailed</td>",
        "publicIPAddresses/",
        "<td class=\"bad\">Forbidden</td>",
    ] {
        assert!(page.contains(words), "{words} is not in {page}");
    }
    for (path, words) in [
        ("/services/shop/none", "service/shop/none not found, or not managed by Sluice"),
        ("/egresses/none", "egress/none"),
    ] {
        let (status, page) = world.ask(path).await;
        assert_eq!(status, StatusCode::NOT_FOUND);
        assert!(page.contains("<!DOCTYPE html>") && page.contains(words), "{page}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_page_and_asset_has_the_policy_and_a_tag_that_saves_its_body() {
    let world = World::ordinary();
    world.lead().await;
    let page = text(world.answer(&world.api, "GET", "/", &[LOCAL]).await).await;
    let mut paths: Vec<String> = vec!["/".into(), "/fragments/summary".into()];
    let named = page.split('"').filter(|part| part.starts_with("/assets/"));
    paths.extend(named.map(str::to_owned));
    assert_eq!(paths.len(), 2 + 5, "{paths:?}");
    for path in paths {
        let answer = world.answer(&world.api, "GET", &path, &[LOCAL]).await;
        assert_eq!(answer.status(), StatusCode::OK, "{path}");
        let policy = answer.headers()["content-security-policy"].to_str().unwrap().to_owned();
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self'"), "{policy}");
        assert_eq!(answer.headers()["x-content-type-options"], "nosniff");
        let keep = answer.headers()["cache-control"].to_str().unwrap().to_owned();
        assert_eq!(keep.contains("immutable"), path.starts_with("/assets/"), "{path}: {keep}");
        let tag = answer.headers()["etag"].to_str().unwrap().to_owned();
        let again = world.answer(&world.api, "GET", &path, &[LOCAL, ("if-none-match", &tag)]).await;
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED, "{path}");
        assert_eq!(text(again).await, "");
    }
    let old = world.answer(&world.api, "GET", "/assets/style-0000000000000000.css", &[LOCAL]).await;
    assert_eq!(old.status(), StatusCode::NOT_FOUND);
}

#[tokio::test(start_paused = true)]
async fn a_browser_is_asked_for_the_token_and_a_tool_is_not_asked_for_a_password() {
    let access = Access { token: Some(sluice_arm::Secret::new("s3cret")), ..Access::default() };
    let world = World::guarded(access);
    world.lead().await;
    let challenges = async |path: &str| -> Vec<String> {
        let answer = world.answer(&world.api, "GET", path, &[LOCAL]).await;
        assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
        answer.headers().get_all("www-authenticate").iter().map(|it| it.to_str().unwrap().into()).collect()
    };
    assert_eq!(challenges("/").await, ["Bearer", "Basic realm=\"sluice\", charset=\"UTF-8\""]);
    assert_eq!(challenges("/api/v1/overview").await, ["Bearer"]);
    let password = ("authorization", "Basic OnMzY3JldA==");
    for path in ["/", "/api/v1/overview"] {
        let answer = world.answer(&world.api, "GET", path, &[LOCAL, password]).await;
        assert_eq!(answer.status(), StatusCode::OK, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_loop_that_hangs_is_said_on_the_page_and_not_hidden_behind_an_old_one() {
    let world = World::hanging();
    let (status, page) = world.ask("/").await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(page.contains("the control loop did not answer within 10 s"), "{page}");
}

#[tokio::test(start_paused = true)]
async fn the_charts_have_a_past_when_somebody_keeps_it() {
    let world = World::ordinary();
    world.lead().await;
    let still = world.ask("/fragments/summary").await.1;
    let history = tokio::spawn(world.admin.keep_history());
    world.apply("shop", "web");
    world.published(1).await;
    world.wait(Duration::from_secs(30)).await;
    let lively = world.ask("/fragments/summary").await.1;
    let corners = |page: &str| {
        let curves = page.split("<polygon").skip(1).filter_map(|rest| rest.split("points=\"").nth(1));
        curves.map(|rest| rest.split('"').next().unwrap().split_whitespace().count()).max()
    };
    assert_eq!(corners(&still), Some(0));
    // A sample every five seconds, and two corners on the axis.
    assert!(corners(&lively) >= Some(6 + 2), "{lively}");
    history.abort();
}

#[tokio::test(start_paused = true)]
async fn many_who_look_at_once_cost_the_loop_one_look() {
    let world = World::ordinary();
    world.lead().await;
    world.apply("shop", "web");
    world.published(1).await;
    world.wait(Duration::from_secs(5)).await;
    let before = world.overviews.load(Ordering::Relaxed);
    let answers = join_all((0..20).map(|_| world.ask("/fragments/summary"))).await;
    assert!(answers.iter().all(|(status, page)| *status == StatusCode::OK && page == &answers[0].1));
    assert_eq!(world.overviews.load(Ordering::Relaxed), before + 1);
    // Whoever loads the page is told how it stands now.
    world.ask("/").await;
    assert_eq!(world.overviews.load(Ordering::Relaxed), before + 2);
}

#[tokio::test(start_paused = true)]
async fn many_who_ask_a_loop_that_hangs_wait_no_longer_than_one() {
    let world = World::hanging();
    let begun = world.clock.now();
    let answers = join_all((0..20).map(|_| world.ask("/fragments/summary"))).await;
    assert!(answers.iter().all(|(status, _)| *status == StatusCode::SERVICE_UNAVAILABLE));
    assert!(world.clock.now() < begun + Duration::from_secs(11));
}

#[tokio::test(start_paused = true)]
async fn the_summary_is_never_older_than_a_second() {
    let world = World::ordinary();
    world.lead().await;
    world.apply("shop", "web");
    world.published(1).await;
    world.wait(Duration::from_secs(5)).await;
    let before = world.ask("/fragments/summary").await.1;
    assert!(before.contains("1 Service is served"), "{before}");
    world.apply("shop", "api");
    world.published(2).await;
    world.wait(Duration::from_secs(2)).await;
    assert!(world.ask("/fragments/summary").await.1.contains("All 2 Services are served"));
}
