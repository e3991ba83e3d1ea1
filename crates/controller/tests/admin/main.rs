//! The admin server before a real loop: a cluster in memory, a small Azure, paused time.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "helpers of tests are tests, and tests spawn the loop"
)]

#[path = "../loop/azure.rs"]
#[allow(dead_code, reason = "this Azure can do more than is needed here")]
mod azure;
#[path = "../loop/config.rs"]
mod config;
mod dashboard;
mod events;
mod sockets;
#[allow(dead_code, reason = "the tests of sluice status use this world too")]
mod world;

use axum::http::StatusCode;
use sluice_controller::Standing;
use sluice_view::overview::Role;
use sluice_view::{Explanation, Overview, Page, Problem, ServiceStatus, State, Status};

use azure::Behaviour;
use world::{World, is_put_of};

#[tokio::test(start_paused = true)]
async fn services_are_listed_by_name_with_filters_and_pages() {
    let world = World::ordinary();
    world.lead().await;
    for (namespace, name) in [("shop", "web"), ("shop", "api"), ("bank", "web")] {
        world.apply(namespace, name);
    }
    world.published(3).await;
    let titles = async |path: &str| {
        let page: Page<ServiceStatus> = world.seen(path).await;
        (page.items.iter().map(ServiceStatus::title).collect::<Vec<_>>(), page.total, page.next)
    };
    let (all, total, next) = titles("/api/v1/services").await;
    assert_eq!(
        (all.as_slice(), total, next),
        (&["bank/web".into(), "shop/api".into(), "shop/web".into()][..], 3, None)
    );
    assert_eq!(titles("/api/v1/services?namespace=shop").await.0, ["shop/api", "shop/web"]);
    assert_eq!(titles("/api/v1/services?state=NotStarted,DeletionPending").await.1, 0);
    assert_eq!(titles("/api/v1/services?state=created").await.1, 3);
    let (first, total, next) = titles("/api/v1/services?limit=2").await;
    assert_eq!((first.len(), total), (2, 3));
    let (rest, _, end) = titles(&format!("/api/v1/services?limit=2&continue={}", next.unwrap())).await;
    assert_eq!((rest.as_slice(), end), (&["shop/web".to_string()][..], None));

    let page: Page<ServiceStatus> = world.seen("/api/v1/services?namespace=bank").await;
    let web = &page.items[0];
    assert!(web.progress.live && web.progress.desired && web.progress.why.is_none());
    assert_eq!(web.progress.state, State::Created);
    assert_eq!(web.progress.public_ip, world.cluster.services()[0].published);
    assert!(web.progress.since.at.starts_with("2026-11-16T"), "{:?}", web.progress.since);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_answered_is_refused_with_what_can() {
    let world = World::ordinary();
    world.lead().await;
    for (path, status, error) in [
        ("/api/v1/services?state=Ready", StatusCode::BAD_REQUEST, "BadParameter"),
        ("/api/v1/services?names=x", StatusCode::BAD_REQUEST, "BadParameter"),
        ("/api/v1/egresses?namespace=x", StatusCode::BAD_REQUEST, "BadParameter"),
        ("/api/v1/egresses/Not%20a%20name/explain", StatusCode::BAD_REQUEST, "BadName"),
        ("/api/v1/services/shop/web/explain", StatusCode::NOT_FOUND, "NotFound"),
        ("/api/v1/egresses/blue/explain", StatusCode::NOT_FOUND, "NotFound"),
        ("/api/v2/services", StatusCode::NOT_FOUND, "NotFound"),
        ("/nothing", StatusCode::NOT_FOUND, "NotFound"),
        ("/api/v1/events?of=moon/full", StatusCode::BAD_REQUEST, "BadParameter"),
    ] {
        let (got, body) = world.ask(path).await;
        let problem: Problem = serde_json::from_str(&body).unwrap();
        assert_eq!((got, problem.error.as_str()), (status, error), "{path}: {body}");
        assert_eq!(
            status == StatusCode::NOT_FOUND,
            problem.see.contains(&"/api/v1/overview".into()),
            "{path}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_can_be_changed() {
    let world = World::ordinary();
    for method in ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"] {
        for path in ["/api/v1/services", "/api/v1/overview", "/api/v1/events", "/api/v1/services/a/b/explain"]
        {
            let (status, body) = world.send(&world.api, method, path, &[("host", "localhost")]).await;
            assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED, "{method} {path}");
            assert!(body.contains("read-only"), "{body}");
        }
        let (status, _) = world.send(&world.health, method, "/livez", &[]).await;
        assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED, "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_page_of_another_origin_learns_nothing() {
    let world = World::ordinary();
    let (status, body) = world.send(&world.api, "GET", "/api/v1/services", &[("host", "evil.example")]).await;
    assert_eq!(status, StatusCode::MISDIRECTED_REQUEST);
    assert!(!body.contains("items"), "{body}");
    let origin = [("host", "localhost"), ("origin", "https://evil.example")];
    let answer = world.answer(&world.api, "GET", "/api/v1/services", &origin).await;
    assert_eq!(answer.status(), StatusCode::OK);
    let names: Vec<_> = answer.headers().keys().map(|name| name.as_str().to_owned()).collect();
    assert!(!names.iter().any(|name| name.starts_with("access-control")), "{names:?}");
    assert_eq!(answer.headers()["cache-control"], "no-store");
}

#[tokio::test(start_paused = true)]
async fn an_explanation_says_what_failed_when_it_is_tried_again_and_what_to_do() {
    let world = World::with(|request| match world::is_put_of(request, "publicIPAddresses") {
        true => {
            Behaviour::Refuse(403, "AuthorizationFailed", "The client has no authorization to perform action")
        }
        false => Behaviour::Ordinary,
    });
    world.lead().await;
    world.apply("shop", "web");
    world.until(|all| all.iter().any(|seen| seen.hold.is_some())).await;
    let why: Explanation = world.seen("/api/v1/services/shop/web/explain").await;
    let Status::Service(service) = &why.status else { panic!("{why:?}") };
    assert_eq!((service.title().as_str(), service.progress.state), ("shop/web", State::NotStarted));
    assert!(service.progress.parked && service.progress.attempts == 1);
    let trouble = service.progress.why.as_ref().unwrap();
    assert_eq!((trouble.reason.as_str(), trouble.code.as_str()), ("Forbidden", "SGW0009"));
    assert!(trouble.message.contains("AuthorizationFailed"), "{trouble:?}");
    let retry = service.progress.next_retry.as_ref().unwrap();
    assert!((200..=400).contains(&retry.in_seconds), "{retry:?}");
    let waits: Vec<_> = why.waits_for.iter().map(|wait| wait.sentence.as_str()).collect();
    assert!(
        waits.iter().any(|it| it.starts_with("Next attempt in ") && it.contains("Forbidden")),
        "{waits:?}"
    );
    let timeline: Vec<_> = why.timeline.iter().map(|it| it.sentence.as_str()).collect();
    assert!(
        timeline.iter().any(|it| it.starts_with("operation #") && it.contains("failed at public-ip")),
        "{timeline:?}"
    );
    assert!(timeline.contains(&"parked: Forbidden (SGW0009)"), "{timeline:?}");
    assert!(why.what_to_do[0].contains("sluice explain SGW0009"), "{:?}", why.what_to_do);
    assert!(
        why.summary.contains(": no load balancer yet.") && why.summary.contains("AuthorizationFailed"),
        "{}",
        why.summary
    );
}

#[tokio::test(start_paused = true)]
async fn a_standby_says_that_it_does_nothing() {
    let world = World::ordinary();
    world.cluster.list_all();
    world.stand(Standing { role: Role::Standby, leader: Some("sluice-1".into()) });
    world.apply("shop", "web");
    world.until(|all| all.len() == 1).await;
    let why: Explanation = world.seen("/api/v1/services/shop/web/explain").await;
    assert!(why.waits_for[0].sentence.contains("standby"), "{why:?}");
    let overview: Overview = world.seen("/api/v1/overview").await;
    assert_eq!((overview.role, overview.leader.as_deref()), (Role::Standby, Some("sluice-1")));
    assert_eq!((overview.services.total, overview.services.by_state[&State::NotStarted]), (1, 1));
    assert!(!overview.initial_sync.done);
}

#[tokio::test(start_paused = true)]
async fn the_overview_counts_what_the_lists_show() {
    let world = World::ordinary();
    world.lead().await;
    world.apply("shop", "web");
    world.endpoint("shop", "web", 7);
    world.published(1).await;
    world.until(|all| all.iter().all(|seen| seen.addresses_programmed == 1)).await;
    let overview: Overview = world.seen("/api/v1/overview").await;
    assert_eq!((overview.role, overview.initial_sync.done), (Role::Leader, true));
    assert_eq!((overview.services.total, overview.services.by_state[&State::Created]), (1, 1));
    assert_eq!(
        (overview.addresses.desired, overview.addresses.programmed, overview.addresses.buffered),
        (1, 1, 0)
    );
    assert_eq!(
        (overview.identity.as_str(), overview.cluster_id.as_str()),
        ("sluice-0", "cluster-under-test")
    );
    assert_eq!(overview.budget.len(), 4);
    assert!(
        overview.budget.iter().all(|lane| lane.tokens > 0 && lane.paused_until.is_none()),
        "{:?}",
        overview.budget
    );
}

#[tokio::test(start_paused = true)]
async fn a_service_whose_object_is_gone_is_explained_by_its_uid() {
    let world = World::ordinary();
    world.lead().await;
    world.apply("shop", "web");
    world.published(1).await;
    let page: Page<ServiceStatus> = world.seen("/api/v1/services").await;
    let uid = &page.items[0].uid;
    let why: Explanation = world.seen(&format!("/api/v1/services/-/{uid}/explain")).await;
    assert_eq!(why.status.title(), "service/shop/web");
    assert!(why.what_to_do.is_empty() && why.summary.starts_with("In sync for "), "{why:?}");
}

#[tokio::test(start_paused = true)]
async fn alive_is_a_loop_that_turns_and_ready_is_more() {
    let world = World::ordinary();
    let health = async |path: &str| world.send(&world.health, "GET", path, &[]).await;
    assert_eq!(health("/livez").await, (StatusCode::OK, "ok\n".into()));
    let (status, text) = health("/readyz").await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(text.contains("[-] role: unknown;") && text.ends_with("not ready\n"), "{text}");
    world.stand(Standing { role: Role::Standby, leader: Some("sluice-1".into()) });
    assert_eq!(health("/readyz").await, (StatusCode::OK, "ready\n".into()));
    let (_, text) = health("/readyz?verbose").await;
    assert!(text.contains("[+] watch services: listed, 0 objects\n"), "{text}");
    assert!(text.contains("[+] role: standby; the leader is sluice-1\n"), "{text}");
    assert!(text.contains("[ ] initial sync: starts when this replica becomes leader\n"), "{text}");
    world.lead().await;
    world.handle.wait_for_initial_sync().await.unwrap();
    assert!(health("/readyz?verbose").await.1.contains("[+] initial sync: done\n"));
    world.handle.stop();
    world.ended().await;
    for path in ["/livez", "/readyz", "/metrics"] {
        let (status, text) = health(path).await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{path}");
        assert!(text.contains("the control loop has stopped"), "{path}: {text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_loop_that_hangs_is_not_alive() {
    let world = World::hanging();
    let (status, text) = world.send(&world.health, "GET", "/livez", &[]).await;
    assert_eq!(
        (status, text.as_str()),
        (StatusCode::SERVICE_UNAVAILABLE, "the control loop did not answer within 10 s\n")
    );
    let (status, body) = world.ask("/api/v1/services").await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(body.contains("LoopHangs"), "{body}");
}

#[tokio::test(start_paused = true)]
async fn a_scrape_tells_what_the_loop_has_done() {
    let world = World::ordinary();
    world.lead().await;
    world.apply("shop", "web");
    world.endpoint("shop", "web", 7);
    world.published(1).await;
    world.until(|all| all.iter().all(|seen| seen.addresses_programmed == 1)).await;
    let answer = world.answer(&world.health, "GET", "/metrics", &[]).await;
    let kind = answer.headers()["content-type"].to_str().unwrap();
    assert_eq!(kind, "application/openmetrics-text; version=1.0.0; charset=utf-8");
    let text = world::text(answer).await;
    for line in [
        "sluice_services{direction=\"inbound\",state=\"Created\"} 1",
        "sluice_addresses_desired 1",
        "sluice_addresses_programmed 1",
        "sluice_service_creation_duration_seconds_count 1",
        "sluice_leader 1",
        "sluice_initial_sync_done 1",
        "sluice_watch_listed{kind=\"pods\"} 1",
    ] {
        assert!(text.lines().any(|it| it == line), "{line} is not in\n{text}");
    }
    for name in ["shop", "web", "5e1f0000", "node-a", "10.244"] {
        assert!(!text.contains(name), "{name} is nobody's business");
    }
    assert!(text.ends_with("# EOF\n"));
}

#[tokio::test(start_paused = true)]
async fn a_credential_that_azure_does_not_accept_is_not_taken_for_a_missing_permission() {
    let world = World::with(|request| match is_put_of(request, "publicIPAddresses") {
        true => Behaviour::Refuse(401, "ExpiredAuthenticationToken", "the access token has expired"),
        false => Behaviour::Ordinary,
    });
    world.lead().await;
    world.apply("shop", "web");
    world.until(|all| all.iter().any(|seen| seen.hold.is_some())).await;
    let why: Explanation = world.seen("/api/v1/services/shop/web/explain").await;
    let words = "Forbidden (SGW0009): ExpiredAuthenticationToken (credential not accepted)";
    assert!(why.summary.contains(words), "{}", why.summary);
    let [advice] = &why.what_to_do[..] else { panic!("{:?}", why.what_to_do) };
    assert!(advice.contains("expired") && advice.contains("tenant"), "{advice}");
    assert!(!advice.contains("permission"), "{advice}");
}
