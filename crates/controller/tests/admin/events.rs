//! The stream of changes.

use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::http::StatusCode;
use futures::StreamExt as _;
use sluice_controller::Clock as _;
use sluice_model::ObjectName;
use sluice_view::{Delta, Goodbye, Removed, State};

use crate::world::World;

/// One event of a stream.
#[derive(Debug)]
struct Told {
    id: Option<String>,
    event: String,
    data: String,
}

impl Told {
    fn delta(&self) -> Delta {
        assert!(self.event == "snapshot" || self.event == "delta", "{self:?}");
        let delta: Delta = serde_json::from_str(&self.data).unwrap();
        assert_eq!(delta.event(), self.event);
        delta
    }
}

/// Reads a stream as a browser would.
struct Listener {
    stream: BodyDataStream,
    read: String,
}

impl Listener {
    async fn open(world: &World, last_id: Option<&str>) -> Listener {
        let last_id = last_id.map(|id| ("last-event-id", id));
        Listener::open_at(world, "/api/v1/events", last_id.as_slice()).await
    }

    async fn open_at(world: &World, path: &str, more: &[(&str, &str)]) -> Listener {
        let headers = [&[("host", "localhost")], more].concat();
        let answer = world.answer(&world.api, "GET", path, &headers).await;
        assert_eq!(answer.status(), StatusCode::OK);
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        Listener { stream: Body::into_data_stream(answer.into_body()), read: String::new() }
    }

    /// The next event; `None` at the end of the stream.
    async fn next(&mut self) -> Option<Told> {
        loop {
            if let Some((event, rest)) = self.read.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.read = rest;
                let field = |name: &str| {
                    event
                        .lines()
                        .find_map(|line| line.strip_prefix(name))
                        .map(|it| it.trim_start().to_owned())
                };
                if let Some(data) = field("data:") {
                    return Some(Told { id: field("id:"), event: field("event:").unwrap(), data });
                }
                continue;
            }
            let bytes = self.stream.next().await?.unwrap();
            self.read.push_str(std::str::from_utf8(&bytes).unwrap());
        }
    }

    /// Reads until a step shows what is waited for.
    async fn until(&mut self, holds: impl Fn(&Delta) -> bool) -> (Told, Delta) {
        loop {
            let told = self.next().await.expect("the stream goes on");
            let delta = told.delta();
            if holds(&delta) {
                return (told, delta);
            }
            assert!(!delta.complete, "only the first step is all there is");
        }
    }
}

fn is_created(delta: &Delta, name: &str) -> bool {
    delta.services.iter().any(|it| it.name.as_deref() == Some(name) && it.progress.state == State::Created)
}

#[tokio::test(start_paused = true)]
async fn first_comes_everything_and_then_only_what_changed() {
    let world = World::ordinary();
    world.lead().await;
    world.apply("shop", "old");
    world.published(1).await;
    let mut listener = Listener::open(&world, None).await;
    let first = listener.next().await.unwrap().delta();
    assert!(first.complete && is_created(&first, "old"));
    world.apply("shop", "new");
    let (_, step) = listener.until(|delta| is_created(delta, "new")).await;
    assert!(!step.services.iter().any(|it| it.name.as_deref() == Some("old")), "it did not change");
    world.cluster.delete_service(&ObjectName::new("shop", "old"));
    let uid = first.services[0].uid.clone();
    let (_, step) = listener.until(|delta| !delta.removed.is_empty()).await;
    assert_eq!(step.removed, [Removed::Service { uid }]);
}

#[tokio::test(start_paused = true)]
async fn who_comes_back_is_told_what_it_missed_and_who_comes_from_elsewhere_everything() {
    let world = World::ordinary();
    world.lead().await;
    world.apply("shop", "old");
    world.published(1).await;
    let id = Listener::open(&world, None).await.next().await.unwrap().id.unwrap();
    world.apply("shop", "new");
    world.published(2).await;
    let step = Listener::open(&world, Some(&id)).await.next().await.unwrap().delta();
    assert!(!step.complete && is_created(&step, "new") && step.services.len() == 1, "{step:?}");
    for foreign in ["1234-7", "nonsense", ""] {
        let step = Listener::open(&world, Some(foreign)).await.next().await.unwrap().delta();
        assert!(step.complete && step.services.len() == 2, "{foreign}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_page_about_one_service_hears_of_that_one_only_and_may_say_in_the_url_what_it_has_seen() {
    let world = World::ordinary();
    world.lead().await;
    world.apply("shop", "mine");
    world.apply("shop", "other");
    world.published(2).await;
    let all = Listener::open(&world, None).await.next().await.unwrap();
    let mine = all.delta().services.into_iter().find(|it| it.name.as_deref() == Some("mine")).unwrap().uid;
    let mut listener = Listener::open_at(&world, &format!("/api/v1/events?of=service/{mine}"), &[]).await;
    let first = listener.next().await.unwrap().delta();
    assert_eq!((first.complete, first.services.len()), (true, 1));
    world.endpoint("shop", "other", 1);
    world.until(|all| all.iter().any(|seen| seen.addresses_programmed == 1)).await;
    world.endpoint("shop", "mine", 2);
    let (_, step) = listener.until(|delta| !delta.services.is_empty()).await;
    assert!(step.services.iter().all(|it| it.uid == mine), "{step:?}");

    let id = all.id.unwrap();
    let mut back = Listener::open_at(&world, &format!("/api/v1/events?after={id}"), &[]).await;
    assert!(!back.next().await.unwrap().delta().complete);
    // What the browser says itself is newer than what stood in the URL when it first asked.
    let both = [("last-event-id", "1234-7")];
    let mut anew = Listener::open_at(&world, &format!("/api/v1/events?after={id}"), &both).await;
    assert!(anew.next().await.unwrap().delta().complete);
}

#[tokio::test(start_paused = true)]
async fn a_burst_of_changes_is_few_steps() {
    let world = World::ordinary();
    world.lead().await;
    let mut listener = Listener::open(&world, None).await;
    let _ = listener.next().await.unwrap();
    for number in 0..50 {
        world.apply("shop", &format!("service-{number}"));
    }
    let begun = world.clock.now();
    let mut steps = 0;
    let mut created = std::collections::BTreeSet::new();
    while created.len() < 50 {
        let delta = listener.next().await.unwrap().delta();
        steps += 1;
        let done = delta.services.into_iter().filter(|it| it.progress.state == State::Created);
        created.extend(done.map(|it| it.uid));
    }
    let quarters = world.clock.now().since(begun).as_millis() / 250;
    assert!(steps <= quarters + 1, "{steps} steps in {quarters} quarters of a second");
}

#[tokio::test(start_paused = true)]
async fn a_quiet_stream_says_that_it_is_alive() {
    let world = World::ordinary();
    world.lead().await;
    world.handle.wait_for_initial_sync().await.unwrap();
    let mut listener = Listener::open(&world, None).await;
    let _ = listener.next().await.unwrap();
    let bytes = listener.stream.next().await.unwrap().unwrap();
    assert_eq!(&bytes[..], b": keep-alive\n\n");
}

#[tokio::test(start_paused = true)]
async fn who_takes_nothing_for_too_long_is_sent_away_with_a_reason() {
    let world = World::ordinary();
    world.lead().await;
    let mut listener = Listener::open(&world, None).await;
    let _ = listener.next().await.unwrap();
    world.apply("shop", "web");
    world.wait(Duration::from_secs(16)).await;
    let told = listener.next().await.unwrap();
    assert_eq!(told.event, Goodbye::EVENT);
    let goodbye: Goodbye = serde_json::from_str(&told.data).unwrap();
    assert_eq!(goodbye.reason, "TooSlow");
    assert!(listener.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_loop_ends_the_stream_with_a_reason() {
    let world = World::ordinary();
    world.lead().await;
    let mut listener = Listener::open(&world, None).await;
    let _ = listener.next().await.unwrap();
    world.handle.stop();
    let told = loop {
        let told = listener.next().await.unwrap();
        if told.event == Goodbye::EVENT {
            break told;
        }
    };
    assert!(told.data.contains("LoopEnded"), "{told:?}");
    assert!(listener.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn streams_have_a_limit_and_closed_ones_make_room() {
    let world = World::ordinary();
    let mut open = Vec::new();
    for _ in 0..32 {
        open.push(Listener::open(&world, None).await);
    }
    let (status, body) = world.ask("/api/v1/events").await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(body.contains("TooManyStreams"), "{body}");
    let scrape = world.send(&world.health, "GET", "/metrics", &[]).await.1;
    assert!(scrape.contains("sluice_event_streams 32\n"), "{scrape}");
    open.pop();
    let _ = Listener::open(&world, None).await;
}
