//! Lists: streamed, paged, broken, asked for.

use std::time::Duration;

use serde_json::json;
use sluice_model::Uid;

use super::server::End;
use super::*;
use crate::watch::kinds::Nodes;

const STREAM: &str = "/api/v1/pods? sendInitialEvents=true resourceVersionMatch=NotOlderThan \
                      labelSelector=kubernetes.azure.com%2Fservice-egress-gateway";
const PAGE: &str = "/api/v1/pods? limit=500 labelSelector=kubernetes.azure.com%2Fservice-egress-gateway";

fn does_not_stream() -> Say {
    Say::status(422, "Invalid", "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch")
}

#[tokio::test(start_paused = true)]
async fn a_streamed_list_is_told_as_one_and_goes_on_as_the_watch() {
    let mut scene = Scene::of([(
        STREAM,
        Say::stream([
            line("ADDED", pod("a", 3)),
            line("ADDED", pod("b", 5)),
            list_end(9),
            line("MODIFIED", pod("a", 10)),
            line("ADDED", pod("c", 11)),
            // A pod that loses the label leaves the selector, and the watch says that it is deleted.
            line("DELETED", pod("b", 12)),
        ]),
    )]);
    assert_eq!(scene.heard().await, "list 9: a b");
    assert_eq!(scene.heard().await, "applied a@10");
    assert_eq!(scene.heard().await, "applied c@11");
    assert_eq!(scene.heard().await, format!("deleted {}", uid("b")));
    let progress = scene.progress(Kind::Pod);
    assert_eq!((progress.listed, progress.objects, progress.lists, progress.restarts), (true, 2, 1, 0));
    scene.ends().await;
}

#[tokio::test(start_paused = true)]
async fn what_changes_before_the_end_of_a_streamed_list_is_in_it_once_or_not_at_all() {
    let mut scene = Scene::of([(
        STREAM,
        Say::stream([
            line("ADDED", pod("a", 3)),
            line("ADDED", pod("b", 5)),
            line("MODIFIED", pod("a", 7)),
            line("DELETED", pod("b", 8)),
            bookmark(8),
            list_end(9),
        ]),
    )]);
    assert_eq!(scene.heard().await, "list 9: a");
    scene.ends().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_stream_lists_is_asked_for_pages() {
    let mut scene = Scene::of([
        (STREAM, does_not_stream()),
        (PAGE, list(9, "more", [pod("a", 3), pod("b", 4)])),
        ("/api/v1/pods? limit=500 continue=more labelSelector", list(9, "", [pod("c", 5)])),
        ("watch=true resourceVersion=9", Say::stream([line("ADDED", pod("d", 10))])),
    ]);
    assert_eq!(scene.heard().await, "list 9: a b c");
    assert_eq!(scene.heard().await, "applied d@10");
    assert_eq!(scene.progress(Kind::Pod).trouble, None, "that is no trouble");
    assert!(!scene.watches.shared.streams(), "the other kinds need not find out for themselves");
    scene.ends().await;
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_begins_later_knows_that_the_server_does_not_stream() {
    let (client, mut server) = Server::of([("/api/v1/nodes? limit=500", list(9, "", []))]);
    let watches = Watches::new(client, Selection::default());
    watches.shared.page_lists();
    let (ear, mut told) = mpsc::unbounded_channel();
    let feed = tokio::spawn(Feed::<Nodes, _>::new(Arc::clone(&watches.shared), Ear(ear)).run());
    assert_eq!(short(&told.recv().await.unwrap()), "list 9: ");
    server.all_asked().await;
    feed.abort();
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_never_says_that_its_list_is_complete_is_replaced_by_pages() {
    let mut scene = Scene::of([
        (STREAM, Say::stream([line("ADDED", pod("a", 3)), bookmark(8)])),
        (PAGE, list(9, "", [pod("a", 3), pod("b", 4)])),
    ]);
    assert_eq!(scene.heard().await, "list 9: a b");
    scene.ends().await;
}

#[tokio::test(start_paused = true)]
async fn a_list_that_breaks_off_is_never_told_in_part() {
    let mut scene = Scene::of([
        (STREAM, Say::stream_until(End::Break, [line("ADDED", pod("gone", 3))])),
        (STREAM, Say::stream_until(End::Close, [line("ADDED", pod("gone", 3))])),
        (STREAM, Say::stream([line("ADDED", pod("a", 4)), list_end(9)])),
    ]);
    assert_eq!(scene.heard().await, "list 9: a");
    scene.ends().await;
}

#[tokio::test(start_paused = true)]
async fn streamed_lists_that_always_break_off_are_replaced_by_pages() {
    let broken = || Say::stream_until(End::Break, [line("ADDED", pod("gone", 3))]);
    let mut scene = Scene::of([
        (STREAM, broken()),
        (STREAM, broken()),
        (STREAM, broken()),
        (PAGE, list(9, "", [pod("a", 4)])),
    ]);
    assert_eq!(scene.heard().await, "list 9: a");
    assert_eq!(scene.progress(Kind::Pod).trouble, None);
    scene.ends().await;
}

#[tokio::test(start_paused = true)]
async fn a_token_that_expires_in_the_middle_throws_the_first_pages_away() {
    let mut scene = Scene::of([
        (STREAM, does_not_stream()),
        (PAGE, list(9, "more", [pod("gone", 3)])),
        ("continue=more", Say::status(410, "Expired", "The provided continue parameter is too old")),
        ("/api/v1/pods? limit=2000", list(20, "", [pod("a", 15)])),
        ("watch=true resourceVersion=20", Say::stream([])),
    ]);
    assert_eq!(scene.heard().await, "list 20: a");
    scene.ends().await;
}

#[tokio::test(start_paused = true)]
async fn a_page_that_is_cut_off_is_asked_for_again_and_not_taken_for_a_short_list() {
    let cut = Say::Stream(
        vec![r#"{"metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"a""#.into()],
        End::Close,
    );
    let broken = Say::Stream(vec![r#"{"metadata":{"resourceVersion":"9"},"items":[]"#.into()], End::Break);
    let mut scene = Scene::of([
        (STREAM, does_not_stream()),
        (PAGE, list(9, "more", [pod("a", 3)])),
        ("continue=more", cut),
        ("continue=more", broken),
        ("continue=more", list(9, "", [pod("b", 4)])),
    ]);
    assert_eq!(scene.heard().await, "list 9: a b");
    scene.ends().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_read_costs_only_itself() {
    let nameless = json!({"metadata": {"uid": uid("x"), "resourceVersion": "4"}});
    let mut scene = Scene::of([
        (STREAM, does_not_stream()),
        (PAGE, list(9, "", [json!("nonsense"), json!({"metadata": []}), nameless, pod("a", 3)])),
        (
            "watch=true",
            Say::stream([
                line("MODIFIED", json!({"metadata": {"name": "b", "uid": uid("b"), "resourceVersion": "x"}})),
                line("RUMOUR", json!({})),
                line("MODIFIED", pod("a", 11)),
            ]),
        ),
    ]);
    assert_eq!(scene.heard().await, "list 9: a");
    assert_eq!(scene.heard().await, "applied a@11");
    let progress = scene.progress(Kind::Pod);
    assert_eq!(progress.skipped, 4);
    let why = progress.last_skipped.unwrap();
    assert_eq!(why, "Pod b skipped: resourceVersion \"x\" is not a number");
    scene.ends().await;
}

#[tokio::test(start_paused = true)]
async fn a_list_whose_version_is_no_number_is_a_trouble_and_not_a_list() {
    let odd = json!({"metadata": {"resourceVersion": "abc"}, "items": []});
    let mut scene = Scene::of([(STREAM, does_not_stream()), (PAGE, Say::Json(200, odd)), (PAGE, Say::Hang)]);
    scene.server.all_asked().await;
    let trouble = scene.progress(Kind::Pod).trouble.unwrap();
    assert!(
        trouble.contains("\"abc\" is not a number") && trouble.contains("does not support this API server"),
        "{trouble}"
    );
    scene.ends().await;
}

#[tokio::test(start_paused = true)]
async fn a_list_is_made_when_it_is_asked_for_and_one_under_way_will_do() {
    let mut scene = Scene::of([
        (STREAM, Say::stream([line("ADDED", pod("a", 3)), list_end(9)])),
        (STREAM, Say::stream([line("ADDED", pod("a", 3)), line("ADDED", pod("lost", 7)), list_end(12)])),
    ]);
    scene.watches.relist(Kind::Pod);
    assert_eq!(scene.heard().await, "list 9: a");
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert_eq!(scene.progress(Kind::Pod).lists, 1, "the first list answered the first wish");
    scene.watches.relist(Kind::Node);
    scene.watches.relist(Kind::Pod);
    assert_eq!(scene.heard().await, "list 12: a lost");
    assert_eq!(scene.progress(Kind::Pod).restarts, 1);
    scene.ends().await;
}

#[tokio::test(start_paused = true)]
async fn while_a_repeated_wish_for_a_list_has_to_wait_changes_are_still_told() {
    let stream = |version| Say::stream([line("ADDED", pod("a", 3)), list_end(version)]);
    let (mut push, pushed) = Server::pushed();
    let mut scene =
        Scene::of([(STREAM, stream(9)), (STREAM, stream(12)), (STREAM, pushed), (STREAM, stream(40))]);
    push.push(list_end(20)).await;
    for list in ["list 9: a", "list 12: a", "list 20: "] {
        assert_eq!(scene.heard().await, list);
        scene.watches.relist(Kind::Pod);
    }
    // The third list that is asked for begins after more than a second; this comes before.
    push.push(line("ADDED", pod("b", 21))).await;
    assert_eq!(scene.heard().await, "applied b@21");
    assert_eq!(scene.heard().await, "list 40: a");
    scene.ends().await;
}

#[tokio::test(start_paused = true)]
async fn everything_there_is_is_listed_once_for_plan_and_doctor() {
    let node = json!({"metadata": {"name": "node-a", "resourceVersion": "4"}});
    // The four kinds are asked for in parallel, and each is sent in the order below.
    let (client, mut server) = Server::of([
        ("/api/v1/services? limit=500", list(9, "", [])),
        ("/apis/discovery.k8s.io/v1/endpointslices? limit=500", list(10, "", [])),
        ("/api/v1/nodes? limit=500", list(11, "", [node])),
        (PAGE, list(12, "", [json!(7), pod("a", 3)])),
    ]);
    let all = list_all(&client, &Selection::default()).await.unwrap();
    let lists: Vec<String> = all.events.iter().map(short).collect();
    assert_eq!(lists, ["list 9: ", "list 10: ", "list 11: node-a", "list 12: a"]);
    // What is missing from a list is said.
    let [(Kind::Pod, why)] = &all.skipped[..] else { panic!("{:?}", all.skipped) };
    assert!(why.starts_with("unreadable object in pods skipped: "), "{why}");
    server.all_asked().await;
}

#[tokio::test(start_paused = true)]
async fn a_list_for_plan_that_fails_says_what_to_grant() {
    let forbidden = || Say::status(403, "Forbidden", "nodes is forbidden");
    let (client, _server) = Server::of([
        ("/api/v1/services?", list(9, "", [])),
        ("endpointslices?", list(9, "", [])),
        ("/api/v1/nodes?", forbidden()),
        ("/api/v1/pods?", list(9, "", [])),
    ]);
    let failed = list_all(&client, &Selection::default()).await.unwrap_err();
    assert_eq!((failed.kind, failed.is_passing, failed.is_denied), (Kind::Node, false, true));
    assert_eq!(
        failed.to_string(),
        "list nodes denied at the cluster scope: nodes is forbidden; grant list and watch on nodes in the ClusterRole"
    );
}

#[tokio::test(start_paused = true)]
async fn a_list_for_plan_whose_token_expires_is_begun_anew_and_not_for_ever() {
    let expired = || Say::status(410, "Expired", "The provided continue parameter is too old");
    let others = || [("/api/v1/services?", list(9, "", [])), ("endpointslices?", list(9, "", []))];
    let begun = ("/api/v1/nodes?", list(9, "", []));
    let first = (PAGE, list(9, "more", [pod("gone", 3)]));
    let script = others()
        .into_iter()
        .chain([begun, first])
        .chain([("continue=more", expired()), ("/api/v1/pods? limit=2000", list(20, "", [pod("a", 15)]))]);
    let (client, mut server) = Server::of(script);
    let all = list_all(&client, &Selection::default()).await.unwrap();
    assert_eq!(all.events.last().map(short).as_deref(), Some("list 20: a"));
    server.all_asked().await;

    let endless = (0..9).flat_map(|_| [("/api/v1/pods?", list(9, "more", [])), ("continue=more", expired())]);
    let nodes = [("/api/v1/nodes?", list(9, "", []))];
    let (client, _server) = Server::of(others().into_iter().chain(nodes).chain(endless));
    let failed = list_all(&client, &Selection::default()).await.unwrap_err();
    assert!(failed.trouble.contains("expired before it was complete") && !failed.is_denied, "{failed}");
}

#[tokio::test(start_paused = true)]
async fn a_list_for_plan_that_may_come_later_says_so() {
    for (code, is_passing) in [(429, true), (500, true), (503, true), (401, false), (404, false)] {
        let (client, _server) = Server::of([
            ("/api/v1/services?", Say::status(code, "Odd", "not now")),
            ("endpointslices?", list(9, "", [])),
            ("/api/v1/nodes?", list(9, "", [])),
            ("/api/v1/pods?", list(9, "", [])),
        ]);
        let failed = list_all(&client, &Selection::default()).await.unwrap_err();
        assert_eq!((failed.kind, failed.is_passing), (Kind::Service, is_passing), "{code}: {failed}");
        assert!(!failed.is_denied, "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn managed_services_are_kept_for_writes_until_they_are_gone() {
    let service = |name: &str, kind: &str, version: u64| {
        json!({
            "metadata": {"name": name, "namespace": "shop", "uid": uid(name), "resourceVersion": version.to_string()},
            "spec": {"type": kind},
        })
    };
    let balancer = |name, version| service(name, "LoadBalancer", version);
    let list = "/api/v1/services? sendInitialEvents=true";
    let (mut first, stream) = Server::pushed();
    let second = Say::stream([line("ADDED", balancer("a", 10)), list_end(20)]);
    let mut scene = Scene::of_kind::<Services>([(list, stream), (list, second)]);
    for line in [
        line("ADDED", balancer("a", 1)),
        line("ADDED", balancer("b", 2)),
        line("ADDED", balancer("c", 3)),
        line("ADDED", service("other", "ClusterIP", 4)),
        list_end(9),
        line("MODIFIED", balancer("a", 10)),
        line("MODIFIED", service("b", "ClusterIP", 11)),
        line("DELETED", balancer("c", 12)),
        line("ADDED", balancer("d", 13)),
    ] {
        first.push(line).await;
    }
    let seen = scene.watches.last_seen();
    let kept = || {
        let version = |name| {
            let object = seen.get(Uid::parse(&uid(name)).unwrap())?;
            Some(format!("{name}@{}", object["metadata"]["resourceVersion"].as_str().unwrap()))
        };
        ["a", "b", "c", "d", "other"].into_iter().filter_map(version).collect::<Vec<_>>()
    };
    for _ in 0..5 {
        scene.heard().await;
    }
    assert_eq!(kept(), ["a@10", "d@13"]);
    first.push(line("ERROR", server::status(410, "Expired", "too old"))).await;
    assert_eq!(scene.heard().await, "list 20: shop/a");
    assert_eq!(kept(), ["a@10"], "the others are not in the list");
    scene.ends().await;
}
