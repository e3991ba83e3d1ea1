//! Watches that end, break, go stale or fall silent: nothing is lost and nothing is made up.

use std::time::Duration;

use serde_json::json;

use super::server::{End, status};
use super::*;

const LIST: &str = "/api/v1/pods? sendInitialEvents=true";
const PROBE: &str = "/api/v1/pods? limit=1";

fn listed(version: u64, names: &[&str], end: End, then: &[String]) -> Say {
    let mut lines: Vec<String> = names.iter().map(|name| line("ADDED", pod(name, version - 1))).collect();
    lines.push(list_end(version));
    lines.extend_from_slice(then);
    Say::Stream(lines, end)
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_is_begun_again_where_it_stood() {
    let mut scene = Scene::of([
        (LIST, listed(9, &["a"], End::Close, &[line("ADDED", pod("b", 12)), bookmark(15)])),
        (
            "watch=true allowWatchBookmarks=true resourceVersion=15",
            Say::stream([line("ADDED", pod("c", 16))]),
        ),
    ]);
    assert_eq!(scene.heard().await, "list 9: a");
    assert_eq!(scene.heard().await, "applied b@12");
    assert_eq!(scene.heard().await, "applied c@16");
    let progress = scene.progress(Kind::Pod);
    assert_eq!((progress.lists, progress.restarts, progress.trouble), (1, 1, None));
    scene.ends().await;
}

#[tokio::test(start_paused = true)]
async fn the_count_of_objects_follows_the_watch() {
    let then = [
        line("ADDED", pod("c", 12)),
        line("MODIFIED", pod("a", 13)),
        line("DELETED", pod("a", 14)),
        line("DELETED", pod("b", 15)),
    ];
    let mut scene = Scene::of([(LIST, listed(9, &["a", "b"], End::Stay, &then))]);
    let mut counts = Vec::new();
    for _ in 0..=then.len() {
        scene.heard().await;
        counts.push(scene.progress(Kind::Pod).objects);
    }
    assert_eq!(counts.last(), Some(&1), "{counts:?}");
    scene.ends().await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_breaks_in_the_middle_of_a_line_tells_only_whole_lines() {
    for end in [End::Break, End::Close] {
        let whole = line("ADDED", pod("b", 12));
        let (front, back) = whole.split_at(whole.len() / 2);
        let half = line("ADDED", pod("half", 13));
        let half = half[..half.len() - 3].to_string();
        let mut scene = Scene::of([
            (LIST, listed(9, &["a"], end, &[front.into(), back.into(), half])),
            ("resourceVersion=12", Say::stream([line("ADDED", pod("half", 13))])),
        ]);
        assert_eq!(scene.heard().await, "list 9: a");
        assert_eq!(scene.heard().await, "applied b@12");
        assert_eq!(scene.heard().await, "applied half@13");
        assert_eq!(scene.progress(Kind::Pod).trouble, None, "the next watch ended the trouble");
        scene.ends().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_version_that_is_too_old_leads_to_a_list_that_shows_what_is_gone() {
    let refused = Say::status(410, "Expired", "too old resource version");
    let told_so = Say::stream([line("ERROR", status(410, "Expired", "too old resource version: 9 (50)"))]);
    for gone in [refused, told_so] {
        let mut scene = Scene::of([
            (LIST, listed(9, &["a", "b"], End::Close, &[])),
            ("resourceVersion=9", gone),
            (LIST, listed(60, &["b", "c"], End::Stay, &[])),
        ]);
        assert_eq!(scene.heard().await, "list 9: a b");
        assert_eq!(scene.heard().await, "list 60: b c");
        assert_eq!(scene.progress(Kind::Pod).trouble, None);
        scene.ends().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_away_is_waited_for_and_nothing_is_told_meanwhile() {
    let busy = || Say::status(503, "ServiceUnavailable", "apiserver not ready");
    let mut scene = Scene::of([
        (LIST, Say::Refuse),
        (LIST, busy()),
        (LIST, listed(9, &["a"], End::Break, &[])),
        ("resourceVersion=9", Say::Refuse),
        ("resourceVersion=9", Say::Refuse),
        ("resourceVersion=9", busy()),
        ("resourceVersion=9", Say::stream([line("DELETED", pod("a", 30))])),
    ]);
    assert_eq!(scene.heard().await, "list 9: a");
    let mut progress = scene.watches.progress();
    let trouble = progress.wait_for(|it| it.of(Kind::Pod).trouble.is_some()).await.unwrap().clone();
    let trouble = trouble.of(Kind::Pod).trouble.clone().unwrap();
    assert!(trouble.starts_with("watch pods failed: cannot reach the API server: "), "{trouble}");
    assert_eq!(scene.heard().await, format!("deleted {}", uid("a")));
    let after = scene.progress(Kind::Pod);
    assert_eq!((after.trouble, after.lists), (None, 1));
    scene.ends().await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_without_a_sound_is_renewed_from_where_it_stood() {
    let mut scene = Scene::of([
        (LIST, listed(9, &["a"], End::Stay, &[bookmark(20)])),
        (PROBE, list(20, "", [])),
        ("watch=true resourceVersion=20", Say::stream([line("ADDED", pod("b", 21))])),
    ]);
    let begun = tokio::time::Instant::now();
    assert_eq!(scene.heard().await, "list 9: a");
    assert_eq!(scene.heard().await, "applied b@21");
    assert!(begun.elapsed() >= Duration::from_secs(120), "after minutes, not at once");
    scene.ends().await;
}

#[tokio::test(start_paused = true)]
async fn whoever_cannot_be_asked_where_he_stands_is_watched_all_the_same() {
    for say in [Say::status(403, "Forbidden", "no"), Say::Refuse, Say::Json(200, json!("nonsense"))] {
        let mut scene = Scene::of([
            (LIST, listed(9, &["a"], End::Stay, &[])),
            (PROBE, say),
            ("watch=true resourceVersion=9", Say::stream([line("ADDED", pod("b", 21))])),
        ]);
        assert_eq!(scene.heard().await, "list 9: a");
        assert_eq!(scene.heard().await, "applied b@21");
        scene.ends().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_begins_to_answer_is_asked_again() {
    let mut scene = Scene::of([(LIST, Say::Hang), (LIST, listed(9, &["a"], End::Stay, &[]))]);
    assert_eq!(scene.heard().await, "list 9: a");
    scene.ends().await;
}

#[tokio::test(start_paused = true)]
async fn a_missing_permission_is_named_until_it_is_granted() {
    let forbidden =
        || Say::status(403, "Forbidden", "pods is forbidden: User \"x\" cannot watch resource \"pods\"");
    let mut scene =
        Scene::of([(LIST, forbidden()), (LIST, forbidden()), (LIST, listed(9, &["a"], End::Stay, &[]))]);
    let mut progress = scene.watches.progress();
    let troubled = progress.wait_for(|it| it.troubles().count() > 0).await.unwrap().clone();
    let (kind, sentence) = troubled.troubles().next().unwrap();
    assert_eq!(kind, Kind::Pod);
    assert!(sentence.starts_with("watch pods denied at the cluster scope: "), "{sentence}");
    assert!(sentence.ends_with("; grant list and watch on pods in the ClusterRole"), "{sentence}");
    assert_eq!(scene.heard().await, "list 9: a");
    assert_eq!(scene.progress(Kind::Pod).trouble, None);
    scene.ends().await;
}

#[tokio::test(start_paused = true)]
async fn a_line_that_is_no_event_ends_the_watch_and_costs_nothing() {
    let mut scene = Scene::of([
        (LIST, listed(9, &["a"], End::Stay, &[line("ADDED", pod("b", 12)), "<html>\n".into()])),
        ("resourceVersion=12", Say::stream([line("ADDED", pod("c", 13))])),
    ]);
    for told in ["list 9: a", "applied b@12", "applied c@13"] {
        assert_eq!(scene.heard().await, told);
    }
    scene.ends().await;
}

#[tokio::test(start_paused = true)]
async fn a_version_that_the_server_keeps_refusing_leads_to_a_list() {
    let too_large = || {
        let mut status = status(504, "Timeout", "Too large resource version: 9, current: 3");
        status["details"] = json!({"causes": [{"reason": "ResourceVersionTooLarge", "message": "x"}]});
        Say::Json(504, status)
    };
    let watch = "watch=true resourceVersion=9";
    let mut scene = Scene::of([
        (LIST, listed(9, &["a"], End::Close, &[])),
        (watch, too_large()),
        (watch, too_large()),
        (watch, too_large()),
        (watch, too_large()),
        (watch, too_large()),
        (LIST, listed(4, &["b"], End::Stay, &[line("ADDED", pod("c", 5)), line("DELETED", pod("a", 6))])),
        (LIST, listed(9, &["b", "c"], End::Stay, &[])),
    ]);
    assert_eq!(scene.heard().await, "list 9: a");
    assert_eq!(scene.heard().await, "list 9: b c", "what is older is not told, nor what follows it");
    assert_eq!(scene.progress(Kind::Pod).trouble, None);
    scene.ends().await;
}

/// A server whose etcd was restored: after a list at 100 and a bookmark at 200, it is at 10 and moves on, one
/// with every request. What it says about the cluster is given.
fn restored(cluster: &'static str) -> impl FnMut(&str) -> Say + Send + 'static {
    let mut at = 100;
    let mut asked_for_cluster = 0;
    move |uri| {
        if uri.contains("/namespaces/kube-system") {
            asked_for_cluster += 1;
            let uid = if asked_for_cluster == 1 { "first" } else { cluster };
            return Say::Json(200, json!({"metadata": {"name": "kube-system", "uid": uid}}));
        }
        if !uri.contains("/pods") {
            return Say::Hang;
        }
        if at == 100 {
            at = 10;
            return listed(100, &["a", "b"], End::Stay, &[line("MODIFIED", pod("a", 150)), bookmark(200)]);
        }
        at += 1;
        match uri {
            uri if uri.contains("sendInitialEvents") => {
                listed(at, &["b", "c"], End::Stay, &[line("ADDED", pod("d", at + 1))])
            }
            uri if uri.contains("limit=1") => list(at, "", []),
            // As a real one does: no refusal, only silence.
            _ => Say::stream([]),
        }
    }
}

fn watching_all(say: impl FnMut(&str) -> Say + Send + 'static) -> (Watches, mpsc::UnboundedReceiver<Event>) {
    let watches = Watches::new(Server::answering(say), Selection::default());
    let (ear, told) = mpsc::unbounded_channel();
    let running = watches.clone();
    tokio::spawn(async move { running.run(Ear(ear)).await });
    (watches, told)
}

#[tokio::test(start_paused = true)]
async fn an_etcd_that_was_restored_is_believed_after_a_while_and_told_as_something_new() {
    let (watches, mut told) = watching_all(restored("first"));
    let begun = tokio::time::Instant::now();
    assert_eq!(short(&told.recv().await.unwrap()), "list 100: a b");
    assert_eq!(short(&told.recv().await.unwrap()), "applied a@150");
    let mut progress = watches.progress();
    let trouble = progress.wait_for(|it| it.of(Kind::Pod).trouble.is_some()).await.unwrap().clone();
    let trouble = trouble.of(Kind::Pod).trouble.clone().unwrap();
    assert!(
        trouble
            .starts_with("the list of pods is stale: older than the last known state; the API server lags"),
        "{trouble}"
    );
    let Some(Event::Relisted { version, objects: Relist::Pods(pods) }) = told.recv().await else {
        panic!("it is a list")
    };
    let took = begun.elapsed();
    assert!(took >= Duration::from_secs(180 + 600) && took < Duration::from_secs(900), "{took:?}");
    // All of it counts from 200 on, which was the newest that was seen.
    assert!(version > 200 && pods.iter().all(|pod| pod.version > 200 && pod.version <= version));
    let names: Vec<&str> = pods.iter().map(|pod| &*pod.name.name).collect();
    assert_eq!(names, ["b", "c"]);
    let next = short(&told.recv().await.unwrap());
    assert_eq!(next, format!("applied d@{}", version + 1), "the watch counts on from there");
    assert_eq!(watches.offsets().told(Kind::Pod, 11), 211);
    assert_eq!(watches.offsets().told(Kind::Service, 11), 11);
    assert_eq!(watches.progress().borrow().of(Kind::Pod).trouble, None);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_fails_now_and_then_is_not_believed_to_be_restored() {
    let (mut say, mut lists) = (restored("first"), 0);
    let (_watches, mut told) = watching_all(move |uri| {
        lists += u64::from(uri.contains("sendInitialEvents") && uri.contains("/pods"));
        match lists % 15 {
            0 if uri.contains("/pods") => Say::status(503, "ServiceUnavailable", "later"),
            _ => say(uri),
        }
    });
    for _ in 0..2 {
        told.recv().await.unwrap();
    }
    let hours = Duration::from_secs(3 * 3_600);
    assert!(tokio::time::timeout(hours, told.recv()).await.is_err(), "nothing is told");
}

#[tokio::test(start_paused = true)]
async fn another_cluster_behind_the_same_address_is_never_believed() {
    let (watches, mut told) = watching_all(restored("second"));
    for _ in 0..2 {
        told.recv().await.unwrap();
    }
    let day = Duration::from_secs(24 * 3_600);
    assert!(tokio::time::timeout(day, told.recv()).await.is_err(), "nothing is told");
    let trouble = watches.progress().borrow().of(Kind::Pod).trouble.clone().unwrap();
    assert!(trouble.contains("the API server now serves cluster second instead of first"), "{trouble}");
}

#[tokio::test(start_paused = true)]
async fn all_kinds_end_when_one_finds_that_nobody_listens_any_more() {
    // The other three never get an answer.
    let client = Server::answering(|uri| match uri.contains("/nodes") {
        true => Say::stream([list_end(9)]),
        false => Say::Hang,
    });
    let watches = Watches::new(client, Selection::default());
    let (ear, told) = mpsc::unbounded_channel();
    drop(told);
    tokio::time::timeout(Duration::from_secs(20), watches.run(Ear(ear))).await.expect("it ends");
}
