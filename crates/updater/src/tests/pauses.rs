//! Long pauses: they are probed, and reported.

use std::vec;
use std::vec::Vec;

use expect_test::expect;
use sluice_model::azure::LocationUpdate;
use sluice_model::call::{Payload, Reply};
use sluice_model::{Step, Time};

use super::story::{
    Story, busy, load_balancer, managed_ip, public_ip_id, put_load_balancer, put_public_ip, waiting,
};

const DAY_S: u64 = 86_400;
const MINUTE_MS: u64 = 60_000;

fn locations() -> Vec<LocationUpdate> {
    vec![LocationUpdate { location: [10, 0, 0, 1].into(), full: false, addresses: Vec::new() }]
}

/// Azure has throttled a write for a day, at time 0.
fn paused() -> Story {
    let mut story = Story::new();
    story.plan(1, vec![put_load_balancer("web")]);
    story.reply(1, waiting(429, "TooManyRequests", Some(DAY_S))).quietly();
    story
}

#[test]
fn a_pause_of_a_day_is_probed_with_one_call_every_15_minutes() {
    let mut story = paused();
    story.plan(2, vec![put_public_ip("api")]);
    story.plan(3, vec![Step::DeletePublicIp(public_ip_id("old"))]).answer(2, 200, managed_ip("old"));
    story.until(15 * MINUTE_MS - 1).quietly();
    story.until(15 * MINUTE_MS).resume(1).resume(3);
    story.reply(3, waiting(429, "TooManyRequests", Some(DAY_S)));
    story.until(30 * MINUTE_MS - 1);
    expect![[r#"
        t=900.0 #1 wants a slot
        t=900.0 #3 wants a slot
        t=900.0 call 3 for #1: put loadBalancers/web
        t=900.0 #3 gives its slot back: throttled until 1800.0
        t=900.0 Throttled { calls: WritesAndDeletes, wait: 86400s }
        t=900.0 #1 gives its slot back: throttled until 1800.0
    "#]]
    .assert_eq(&story.told());
    story.until(30 * MINUTE_MS).resume(1).resume(3);
    expect![[r#"
        t=1800.0 #1 wants a slot
        t=1800.0 #3 wants a slot
        t=1800.0 call 4 for #1: put loadBalancers/web
        t=1800.0 #3 gives its slot back: throttled until 2700.0
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn a_probe_that_azure_accepts_ends_the_pause() {
    let mut story = paused();
    story.plan(2, vec![put_public_ip("api")]);
    story.until(15 * MINUTE_MS).resume(1).quietly();
    assert!(story.updaters.numbers().service_writes_gate.paused_until.is_some());
    story.answer(2, 200, load_balancer("web")).resume(2).sync(3, locations());
    let numbers = story.updaters.numbers();
    assert_eq!(numbers.service_writes_gate.paused_until, None);
    expect![[r#"
        t=900.0 #1 done: [done]
        t=900.0 #2 wants a slot
        t=900.0 call 3 for #2: put publicIPAddresses/api-pip
        t=900.0 call 4 for #3: sync 1 locations
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn a_location_call_probes_too() {
    let mut story = paused();
    story.until(14 * MINUTE_MS).sync(2, locations()).until(15 * MINUTE_MS).quietly();
    // What waited for long is worked out again; the engine asks at once.
    story.sync(3, locations());
    assert!(story.told().contains("call 2 for #3: sync 1 locations"));
    story.answer(2, 200, Payload::None);
    assert_eq!(story.updaters.numbers().location_writes_gate.paused_until, None);
}

#[test]
fn only_an_answer_of_azure_to_a_probe_ends_the_pause() {
    let still_paused = |reply: Reply| {
        let mut story = paused();
        story.until(15 * MINUTE_MS).resume(1).reply(2, reply);
        story.updaters.numbers().service_writes_gate.paused_until.is_some()
    };
    assert!(still_paused(Reply::lost("no answer")));
    assert!(still_paused(waiting(503, "ServerBusy", None)));
    assert!(still_paused(waiting(429, "TooManyRequests", Some(60))));
    assert!(still_paused(waiting(401, "ExpiredAuthenticationToken", None)));
    assert!(!still_paused(waiting(403, "AuthorizationFailed", None)));
}

#[test]
fn an_answer_to_a_call_sent_before_the_pause_does_not_end_it() {
    let mut story = Story::new();
    story.plan(1, vec![put_load_balancer("web")]).plan(2, vec![put_load_balancer("api")]);
    story.reply(1, waiting(429, "TooManyRequests", Some(DAY_S))).until(100);
    story.answer(2, 200, load_balancer("api"));
    assert!(story.updaters.numbers().service_writes_gate.paused_until.is_some());
}

#[test]
fn a_pause_of_15_minutes_is_not_probed() {
    let mut story = Story::new();
    story.sync(1, locations()).reply(1, waiting(429, "TooManyRequests", Some(15 * 60))).quietly();
    assert_eq!(story.updaters.next_deadline(), Some(Time::from_millis(15 * MINUTE_MS)));
    story.until(15 * MINUTE_MS - 1);
    assert_eq!(story.told(), "\n");
}

#[test]
fn a_pause_of_more_than_a_minute_is_reported_once() {
    let reports = |seconds| {
        let mut story = Story::new();
        story.plan(1, vec![put_load_balancer("web")]).plan(2, vec![put_load_balancer("api")]);
        story.throttle(1, Some(seconds)).until(500).throttle(2, Some(seconds));
        story.told().matches("Throttled { calls: Writes, wait:").count()
    };
    assert_eq!([60, 61, 5 * 60, DAY_S].map(reports), [0, 1, 1, 1]);
}

#[test]
fn a_long_wait_for_another_operation_on_a_resource_is_probed() {
    let mut story = Story::new();
    story.plan(1, vec![put_load_balancer("web")]).reply(1, busy(DAY_S));
    story.plan(2, vec![put_load_balancer("web")]).quietly();
    story.until(15 * MINUTE_MS - 1);
    assert_eq!(story.told(), "\n");
    story.until(15 * MINUTE_MS).resume(1).resume(2);
    expect![[r#"
        t=900.0 #1 wants a slot
        t=900.0 #2 wants a slot
        t=900.0 call 2 for #1: put loadBalancers/web
        t=900.0 #2 gives its slot back: throttled until 1800.0
    "#]]
    .assert_eq(&story.told());
    story.answer(2, 200, load_balancer("web")).quietly();
    assert_eq!(story.updaters.numbers().resources_busy, 0);
}

#[test]
fn a_probe_wakes_one_plan_and_another_only_if_that_gets_no_slot() {
    let mut story = paused();
    for id in 2..=50 {
        story.plan(id, vec![put_public_ip("api")]);
    }
    story.quietly();
    story.until(15 * MINUTE_MS);
    assert_eq!(story.told(), "t=900.0 #1 wants a slot\n");
    story.until(16 * MINUTE_MS - 1);
    assert_eq!(story.told(), "\n");
    story.until(16 * MINUTE_MS);
    assert_eq!(story.told(), "t=960.0 #2 wants a slot\n");
    story.resume(1).until(30 * MINUTE_MS);
    assert!(story.told().contains("put loadBalancers/web"));
}

#[test]
fn a_poll_that_waits_for_the_end_of_a_pause_is_reported_as_that() {
    let mut story = Story::new();
    story.plan(1, vec![put_load_balancer("web")]).accept(1).until(500);
    story.reply(2, waiting(429, "TooManyRequests", Some(600))).until(1_000);
    assert!(story.told().contains("#1 waits: throttled until 600.5"), "{}", story.told());
}
