//! The loop and a Kubernetes that hangs, panics or takes nothing.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use sluice_controller::{Clock, Handle, Limits};
use sluice_model::event::Relist;
use sluice_model::kube::ServiceSpec;
use sluice_model::{Event, ObjectName};

use crate::azure::Behaviour;
use crate::kube::Whim;
use crate::{World, config};

#[tokio::test(start_paused = true)]
async fn calls_to_kubernetes_that_panic_or_hang_are_made_again() {
    let mut calls = 0;
    let world = World::with_kube(
        config(),
        |_| Behaviour::Ordinary,
        move |_| {
            calls += 1;
            match calls % 3 {
                1 => Whim::Panic,
                2 => Whim::Hang,
                _ => Whim::Obey,
            }
        },
    );
    world.lead().await;
    world.apply("web");
    world.published(1).await;
    world.cluster.delete_service(&ObjectName::new("shop", "web"));
    world.cluster.wait_until(<[_]>::is_empty).await;
    let ended = world.end().await;
    assert!(ended.tally.panics >= 3, "{:?}", ended.tally);
    assert_eq!(ended.abandoned, 0);
}

#[tokio::test(start_paused = true)]
async fn at_most_32_calls_to_kubernetes_are_in_flight() {
    let begun = Arc::new(Mutex::new(0));
    let count = Arc::clone(&begun);
    let world = World::with_kube(
        config(),
        |_| Behaviour::Ordinary,
        move |_| {
            *count.lock().unwrap() += 1;
            Whim::Hang
        },
    );
    world.lead().await;
    for number in 0..100 {
        world.apply(&format!("web-{number}"));
    }
    world.wait(Duration::from_secs(5)).await;
    assert_eq!(*begun.lock().unwrap(), 32);
    // A call that is given up makes room for the next one.
    world.wait(Limits::default().kube_call).await;
    assert_eq!(*begun.lock().unwrap(), 64);
}

#[tokio::test(start_paused = true)]
async fn notices_that_hang_do_not_delay_writes() {
    let world = World::with_kube(
        config(),
        |_| Behaviour::Ordinary,
        |what| if what == "notify" { Whim::Hang } else { Whim::Obey },
    );
    world.lead().await;
    world.handle.wait_for_initial_sync().await.unwrap();
    for number in 0..100 {
        // It cannot be served, and people are told so.
        let name = ObjectName::new("shop", format!("bare-{number}"));
        world.cluster.apply_service(&name, ServiceSpec::default());
    }
    let before = world.clock.now();
    world.apply("web");
    world.published(1).await;
    let took = world.clock.now().since(before);
    assert!(took < Limits::default().kube_call, "published after {took:?} of virtual time");
}

#[tokio::test(start_paused = true)]
async fn notices_are_told_while_writes_hang_and_more_of_them_wait() {
    let world = World::with_kube(
        config(),
        |_| Behaviour::Ordinary,
        |what| if what == "notify" { Whim::Obey } else { Whim::Hang },
    );
    world.lead().await;
    world.handle.wait_for_initial_sync().await.unwrap();
    for number in 0..100 {
        world.apply(&format!("web-{number}"));
    }
    world.wait(Duration::from_secs(1)).await;
    // It cannot be served, and people are told so.
    world.cluster.apply_service(&ObjectName::new("shop", "bare"), ServiceSpec::default());
    world.wait(Limits::default().kube_call).await;
    assert_eq!(world.cluster.notices().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn another_list_is_asked_for_at_once_while_calls_to_kubernetes_hang() {
    let relisted = Arc::new(Mutex::new(0));
    let count = Arc::clone(&relisted);
    let world = World::with_kube(
        config(),
        |_| Behaviour::Ordinary,
        move |what| {
            *count.lock().unwrap() += usize::from(what == "relist");
            Whim::Hang
        },
    );
    world.lead().await;
    for number in 0..100 {
        world.apply(&format!("web-{number}"));
    }
    world.wait(Duration::from_secs(1)).await;
    // Older than what has been seen, so another list is asked for.
    let stale = Event::Relisted { version: 0, objects: Relist::Nodes(Vec::new()) };
    world.handle.post(stale).await.unwrap();
    world.wait(Duration::from_secs(1)).await;
    assert_eq!(*relisted.lock().unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_writes_survive_an_api_server_that_is_away_for_half_an_hour() {
    const MANY: usize = 10_000;
    let away = Arc::new(AtomicBool::new(true));
    let is_away = Arc::clone(&away);
    let world = World::with_kube(
        config(),
        |_| Behaviour::Ordinary,
        move |_| if is_away.load(Ordering::Relaxed) { Whim::Hang } else { Whim::Obey },
    );
    world.lead().await;
    world.handle.wait_for_initial_sync().await.unwrap();
    for number in 0..MANY {
        // It cannot be served, and people are told so.
        let name = ObjectName::new("shop", format!("bare-{number}"));
        world.cluster.apply_service(&name, ServiceSpec::default());
    }
    world.wait(Duration::from_secs(1_800)).await;
    away.store(false, Ordering::Relaxed);
    world.wait(Duration::from_secs(60)).await;
    let written = world.cluster.services().iter().filter(|service| !service.conditions.is_empty()).count();
    assert_eq!(written, MANY);
    // Notices that were on the wire are given up after their limit, and only they.
    let lost = MANY - world.cluster.notices().len();
    assert!(lost <= 8 * 60, "{lost} were lost");
}

#[tokio::test(start_paused = true)]
async fn kubernetes_is_not_written_once_the_fence_has_closed() {
    let door: Arc<OnceLock<Handle>> = Arc::default();
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let (handle, keep) = (Arc::clone(&door), Arc::clone(&asked));
    let world = World::with_kube(
        config(),
        |_| Behaviour::Ordinary,
        move |what| {
            // Whoever writes first closes the door behind itself; nobody else comes through.
            handle.get().unwrap().fence(None);
            keep.lock().unwrap().push(what.to_owned());
            Whim::Obey
        },
    );
    door.set(world.handle.clone()).unwrap();
    world.lead().await;
    world.handle.wait_for_initial_sync().await.unwrap();
    world.apply("one");
    world.apply("two");
    world.wait(Duration::from_secs(600)).await;
    assert_eq!(*asked.lock().unwrap(), ["add_finalizer"]);
    assert_eq!(world.cluster.services().iter().filter(|service| service.finalizer).count(), 1);
    assert_eq!(world.handle.tally().await.unwrap().panics, 0);
}

#[tokio::test(start_paused = true)]
async fn a_notice_that_nobody_takes_is_given_up_and_does_not_keep_the_loop_from_ending() {
    let world = World::with_kube(
        config(),
        |_| Behaviour::Ordinary,
        |what| if what == "notify" { Whim::Hang } else { Whim::Obey },
    );
    world.lead().await;
    world.handle.wait_for_initial_sync().await.unwrap();
    // It cannot be served, and people are told so.
    world.cluster.apply_service(&ObjectName::new("shop", "bare"), ServiceSpec::default());
    world.wait(Limits::default().kube_call + Duration::from_secs(1)).await;
    let asked = world.clock.now();
    let clock = world.clock;
    let ended = world.end().await;
    assert_eq!((ended.abandoned, clock.now()), (0, asked));
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_who_should_list_again_or_of_who_asks_does_not_end_the_loop() {
    let world = World::with_kube(
        config(),
        |_| Behaviour::Ordinary,
        |what| if what == "relist" { Whim::Panic } else { Whim::Obey },
    );
    world.lead().await;
    world.handle.wait_for_initial_sync().await.unwrap();
    // Older than what has been seen, so another list is asked for.
    let stale = Event::Relisted { version: 0, objects: Relist::Nodes(Vec::new()) };
    world.handle.post(stale).await.unwrap();
    world.wait(Duration::from_secs(1)).await;
    assert_eq!(world.handle.tally().await.unwrap().panics, 1);

    let handle = world.handle.clone();
    let asks = tokio::spawn(async move { handle.wait_until(|_| panic!("a question that panics")).await });
    assert!(asks.await.unwrap_err().is_panic(), "the panic is the asker's");
    world.apply("web");
    world.published(1).await;
}
