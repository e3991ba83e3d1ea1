//! Pauses, lease, budget and the locations' lane.

use std::vec;
use std::vec::Vec;

use core::time::Duration;

use expect_test::expect;
use sluice_model::azure::{ArmId, LocationUpdate, Provisioning};
use sluice_model::call::{Answer, OperationState, Payload, Reply};
use sluice_model::effect::{Cause, Listable};
use sluice_model::plan::Intent;
use sluice_model::{Action, Effect, EffectId, Plan, Step, Time};

use super::story::{
    Story, busy, gateway, load_balancer, load_balancer_id, managed, managed_ip, page, plan, public_ip,
    public_ip_id, put_load_balancer, put_public_ip, refused, registration, scope, waiting,
};
use crate::{BucketSize, CallId, Config, GateNumbers, Output, Remaining};

fn locations() -> Vec<LocationUpdate> {
    vec![LocationUpdate { location: [10, 0, 0, 1].into(), full: false, addresses: Vec::new() }]
}

#[test]
fn a_throttled_write_gives_the_slot_back_and_is_sent_again_when_it_has_one() {
    let mut story = Story::new();
    story.plan(1, vec![put_load_balancer("web")]).throttle(1, Some(10));
    story.until(10_000).until(12_000).resume(1);
    expect![[r#"
        t=0.0 call 1 for #1: put loadBalancers/web
        t=0.0 #1 gives its slot back: throttled until 10.0
        t=10.0 #1 wants a slot
        t=12.0 call 2 for #1: put loadBalancers/web
    "#]]
    .assert_eq(&story.told());
    assert_eq!((story.updaters.numbers().throttled, story.updaters.numbers().throttled_ms), (1, 10_000));
}

#[test]
fn a_429_shuts_its_bucket_for_everybody_and_no_other() {
    let mut story = Story::new();
    story.plan(1, vec![put_load_balancer("web")]).throttle(1, Some(10));
    story.plan(2, vec![put_public_ip("api")]);
    story.sync(3, locations());
    story.plan(4, vec![Step::DeletePublicIp(public_ip_id("old"))]).answer(2, 200, managed_ip("old"));
    story.list(5, Listable::LoadBalancers);
    story.until(9_999);
    expect![[r#"
        t=0.0 call 1 for #1: put loadBalancers/web
        t=0.0 #1 gives its slot back: throttled until 10.0
        t=0.0 #2 gives its slot back: throttled until 10.0
        t=0.0 #3 waits: throttled until 10.0
        t=0.0 call 2 for #4: get publicIPAddresses/old-pip
        t=0.0 call 3 for #4: delete publicIPAddresses/old-pip if 1
        t=0.0 call 4 for #5: list Microsoft.Network/loadBalancers
    "#]]
    .assert_eq(&story.told());
    story.until(10_000);
    expect![[r#"
        t=10.0 #3 failed HeldBack (throttled), next at 10.0
        t=10.0 #1 wants a slot
        t=10.0 #2 wants a slot
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn the_case_of_a_code_does_not_decide_whom_a_429_shuts() {
    let mut story = Story::new();
    story.plan(1, vec![put_load_balancer("web")]);
    story.reply(1, waiting(429, "subscriptionrequeststhrottled", Some(10))).quietly();
    story.plan(2, vec![Step::DeletePublicIp(public_ip_id("old"))]).answer(2, 200, managed_ip("old"));
    assert!(story.told().contains("call 3 for #2: delete"));
}

#[test]
fn a_429_of_the_network_provider_shuts_writes_and_deletes_and_no_reads() {
    let mut story = Story::new();
    story.plan(1, vec![Step::DeletePublicIp(public_ip_id("old"))]).answer(1, 200, managed_ip("old"));
    story.reply(2, waiting(429, "TooManyRequests", Some(10))).quietly();
    story.plan(2, vec![put_public_ip("api")]);
    story.sync(3, locations());
    story.list(5, Listable::LoadBalancers);
    story.until(10_000);
    expect![[r#"
        t=0.0 #2 gives its slot back: throttled until 10.0
        t=0.0 #3 waits: throttled until 10.0
        t=0.0 call 3 for #5: list Microsoft.Network/loadBalancers
        t=10.0 #3 failed HeldBack (throttled), next at 10.0
        t=10.0 #2 wants a slot
        t=10.0 #1 wants a slot
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn pauses_without_a_length_grow_and_a_success_ends_the_growth() {
    let mut story = Story::new();
    story.list(1, Listable::LoadBalancers);
    let mut waits = Vec::new();
    for call in 1..=8 {
        let before = story.now.as_millis();
        story.throttle(call, None);
        let opens = story.updaters.next_deadline().map_or(0, Time::as_millis);
        waits.push((opens - before) / 1_000);
        story.until(opens);
    }
    assert!(waits[..6].is_sorted() && waits[0] == 1 && (30..=37).contains(&waits[7]), "{waits:?}");
    story.answer(9, 200, Payload::LoadBalancers(page(Vec::new(), None))).list(2, Listable::LoadBalancers);
    let before = story.now.as_millis();
    story.throttle(10, None);
    assert_eq!(story.updaters.next_deadline().map(|at| (at.as_millis() - before) / 1_000), Some(1));
}

#[test]
fn a_pause_of_nothing_is_one_without_a_length() {
    let mut story = Story::new();
    story.list(1, Listable::LoadBalancers).throttle(1, Some(0)).quietly();
    story.until(999);
    assert_eq!(story.told(), "\n");
    story.until(1_500).throttle(2, Some(0)).quietly();
    story.until(3_400);
    assert_eq!(story.told(), "\n", "the second is longer");
    story.until(5_000);
    assert!(story.told().contains("call 3 for #1: list"));
}

#[test]
fn calls_that_are_throttled_together_are_one_pause() {
    let mut story = Story::new();
    for id in 1..=6 {
        story.list(id, Listable::PublicIps);
    }
    for call in 1..=6 {
        story.throttle(call, None);
    }
    assert!(story.updaters.next_deadline().is_some_and(|at| at.as_millis() < 3_000));
}

#[test]
fn the_pause_in_an_answer_that_came_too_late_is_obeyed() {
    let mut story = Story::new();
    story.list(1, Listable::PublicIps).until(65_000);
    story.throttle(1, Some(30)).quietly();
    story.until(94_999);
    assert_eq!(story.told(), "\n");
    story.until(95_000);
    assert!(story.told().contains("list"));
}

#[test]
fn nothing_is_sent_at_or_after_the_fence_and_raising_it_lets_all_go() {
    let mut story = Story::new();
    story.fence(Some(1_000));
    story.until(1_000).plan(1, vec![put_load_balancer("web")]).list(2, Listable::PublicIps);
    assert_eq!(story.told(), "\n");
    assert_eq!(story.updaters.next_deadline(), None);
    story.fence(Some(1_001));
    expect![[r#"
        t=1.0 call 1 for #1: put loadBalancers/web
        t=1.0 call 2 for #2: list Microsoft.Network/publicIPAddresses
    "#]]
    .assert_eq(&story.told());
    story.fence(None).plan(3, vec![put_load_balancer("api")]).until(5_000);
    assert_eq!(story.told(), "\n");
}

#[test]
fn the_fence_is_looked_at_right_before_each_send() {
    let mut story = Story::new();
    story.updaters.fence(Some(Time::from_millis(1_000)));
    for (id, name) in [(1, "web"), (2, "api")] {
        let action = Action::RunPlan(plan(vec![put_load_balancer(name)]));
        story.updaters.start(Time::ZERO, &Effect { id: EffectId(id), action, cause: Cause::Requested });
    }
    story.updaters.tick(Time::from_millis(998));
    assert!(matches!(story.updaters.next_output(Time::from_millis(999)), Some(Output::Send { .. })));
    // The first send took its time, and the lease has run out meanwhile.
    assert_eq!(story.updaters.next_output(Time::from_millis(1_000)), None);
    assert_eq!(story.updaters.next_output(Time::from_millis(999)), None, "time does not run backwards");
    assert_eq!(story.updaters.on_the_wire(), 1);
}

#[test]
fn a_stop_awaits_what_is_on_the_wire_and_begins_nothing() {
    let mut story = Story::new();
    story.plan(1, vec![put_load_balancer("web"), put_public_ip("web")]).quietly();
    story.updaters.stop();
    story.plan(2, vec![put_load_balancer("api")]);
    assert_eq!(story.updaters.on_the_wire(), 1);
    story.accept(1).until(100_000);
    assert_eq!(story.updaters.on_the_wire(), 0);
    assert!(!story.told().contains("call"));
}

#[test]
fn a_time_that_goes_backwards_changes_nothing() {
    let mut story = Story::new();
    story.plan(1, vec![put_load_balancer("web")]).accept(1).until(400).quietly();
    story.updaters.tick(Time::ZERO);
    story.drain();
    assert_eq!(story.updaters.next_deadline(), Some(Time::from_millis(500)));
    assert_eq!(story.told(), "\n");
}

#[test]
fn cosmetics_go_last() {
    let mut story = Story::new();
    let adopt = Step::Adopt { id: public_ip_id("old"), tags: scope().gateway_tags() };
    story.start(1, Action::RunPlan(Plan { intent: Intent::Adopt, ..plan(vec![adopt]) }));
    story.plan(2, vec![Step::DeleteLoadBalancer(load_balancer_id("web"))]).quietly();
    story.fence(None);
    story.answer(1, 200, public_ip("old", Provisioning::Succeeded));
    story.answer(2, 200, managed(load_balancer("web")));
    story.sync(3, locations());
    story.fence(Some(1_000));
    let numbers = story.updaters.numbers();
    assert_eq!((numbers.writes(), numbers.writes_in_window, numbers.reads_in_window), (3, 3, 2));
    expect![[r#"
        t=0.0 call 3 for #2: delete loadBalancers/web if 1
        t=0.0 call 4 for #3: sync 1 locations
        t=0.0 call 5 for #1: patch tags of publicIPAddresses/old-pip if 1
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn tags_that_a_teardown_or_the_gateway_waits_for_are_not_cosmetic() {
    let mut story = Story::new();
    story.plan(1, vec![Step::ReleasePublicIp(public_ip_id("old"))]);
    story.plan(2, vec![Step::ClaimGateway { id: scope().gateway_id(), tags: scope().gateway_tags() }]);
    story.plan(3, vec![Step::DeleteLoadBalancer(load_balancer_id("web"))]).quietly();
    story.fence(None);
    story.answer(1, 200, managed_ip("old")).answer(2, 200, gateway());
    story.answer(3, 200, managed(load_balancer("web")));
    story.fence(Some(1_000));
    expect![[r#"
        t=0.0 call 4 for #1: patch tags of publicIPAddresses/old-pip if 1
        t=0.0 call 5 for #2: patch tags of serviceGateways/servicegateway if 1
        t=0.0 call 6 for #3: delete loadBalancers/web if 1
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn a_plan_that_would_wait_long_for_the_budget_gives_its_slot_back() {
    let config = Config { writes_per_window: 3, share_permille: 1_000, ..Config::default() };
    let mut story = Story::with(config, Default::default());
    for id in 1..=4 {
        story.plan(id, vec![put_load_balancer("web")]);
    }
    expect![[r#"
        t=0.0 call 1 for #1: put loadBalancers/web
        t=0.0 call 2 for #2: put loadBalancers/web
        t=0.0 #3 gives its slot back: budget until 301.0
        t=0.0 #4 gives its slot back: budget until 301.0
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn location_syncs_go_one_by_one_and_say_when_the_next_may_go() {
    let mut story = Story::new();
    story.sync(1, locations()).sync(2, locations()).sync(3, Vec::new());
    story.until(100).accept(1).until(1_500).poll(2, OperationState::Succeeded);
    story.reply(3, Reply::lost("no answer"));
    expect![[r#"
        t=0.0 call 1 for #1: sync 1 locations
        t=0.5 call 2 for #1: poll operations/op1
        t=1.5 #1 done, next at 1.5
        t=1.5 call 3 for #2: sync 1 locations
        t=1.5 #2 failed NoAnswer (unknown), next at 1.5
        t=1.5 #3 done, next at 1.5
    "#]]
    .assert_eq(&story.told());
    for call in 4..40 {
        story.sync(call, locations()).quietly();
        story.reply(call, refused(200, "DuplicateLocationsInRequest"));
    }
    // Less than half of the lane's share is used, so nothing is paced.
    expect![[r#"
        t=1.5 #39 failed DuplicateLocationsInRequest (rejected), next at 1.5
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn a_throttled_sync_waits_by_itself() {
    let mut story = Story::new();
    story.sync(1, locations()).throttle(1, Some(4)).until(4_000).answer(2, 200, Payload::None);
    expect![[r#"
        t=0.0 call 1 for #1: sync 1 locations
        t=0.0 #1 waits: throttled until 4.0
        t=4.0 call 2 for #1: sync 1 locations
        t=4.0 #1 done, next at 4.0
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn registrations_gather_while_the_write_budget_binds() {
    let config = Config {
        writes: BucketSize { burst: 4, per_second: 10 },
        share_permille: 1_000,
        ..Config::default()
    };
    let mut story = Story::with(config, Default::default());
    story.plan(1, vec![put_load_balancer("a")]).plan(2, vec![put_load_balancer("b")]).quietly();
    story.plan(3, vec![Step::Register(registration("c"))]).until(200);
    story.plan(4, vec![Step::Register(registration("d"))]).until(1_000);
    expect![[r#"
        t=0.0 #3 gives its slot back: shared commit
        t=0.2 #4 gives its slot back: shared commit
        t=0.2 call 3 for #3: commit +c +d
    "#]]
    .assert_eq(&story.told());
    story.answer(3, 200, Payload::None).quietly();
    story.plan(5, vec![Step::Register(registration("e"))]);
    expect![[r#"
        t=1.0 #5 gives its slot back: shared commit
        t=1.0 call 4 for #5: commit +e
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn azure_is_believed_when_it_says_that_less_is_left() {
    let mut story = Story::new();
    story.plan(1, vec![put_load_balancer("a")]);
    let answer = Answer { remaining: Some(0), ..Answer::new(503, Payload::None) };
    story.reply(1, Reply::Answered(answer)).quietly();
    story.plan(2, vec![put_load_balancer("b")]);
    assert!(!story.sent.contains_key(&CallId(2)));
    story.until(2_000);
    assert!(story.sent.contains_key(&CallId(2)));
    assert!(story.now < Time::ZERO + Duration::from_secs(3));
}

#[test]
fn the_numbers_show_what_azure_says_is_left_and_how_every_gate_stands() {
    let mut story = Story::new();
    let fresh = story.updaters.numbers();
    assert_eq!(fresh.remaining, Remaining::default());
    let of = |tokens, tokens_max| GateNumbers { tokens, tokens_max, ..GateNumbers::default() };
    let full = |tokens| of(tokens, tokens);
    assert_eq!((fresh.reads_in_window_max, fresh.writes_in_window_max), (8_000, 800));
    assert_eq!((fresh.reads_gate, fresh.deletes_gate), (full(200), full(160)));
    assert_eq!((fresh.service_writes_gate, fresh.location_writes_gate), (full(112), full(48)));

    // A write that is accepted and says what is left, a read likewise, a deletion that must pause.
    story.plan(1, vec![put_load_balancer("web")]);
    let left = |answer: Answer, remaining| Reply::Answered(Answer { remaining: Some(remaining), ..answer });
    let operation = Some(ArmId::new("/operations/1"));
    story.reply(1, left(Answer { operation, ..Answer::new(202, Payload::None) }, 50));
    story.list(2, Listable::LoadBalancers);
    story.reply(2, left(Answer::new(200, Payload::LoadBalancers(page(Vec::new(), None))), 249));
    story.plan(3, vec![Step::DeletePublicIp(public_ip_id("old"))]).answer(3, 200, managed_ip("old"));
    story.throttle(4, Some(9));
    story.plan(4, vec![put_load_balancer("api")]).reply(5, busy(30));
    let numbers = story.updaters.numbers();
    assert_eq!(numbers.remaining, Remaining { reads: Some(249), writes: Some(50), deletes: None });
    assert_eq!(numbers.reads_gate, of(198, 200));
    // 80 % of the 50 that are left, 70 % of that, and one has gone since.
    assert_eq!(numbers.service_writes_gate, of(27, 112));
    assert_eq!(numbers.location_writes_gate, of(12, 48));
    let nine = Some(Time::from_millis(9_000));
    assert_eq!(numbers.deletes_gate, GateNumbers { asleep: 1, paused_until: nine, ..of(159, 160) });
    assert_eq!((numbers.operations_watched, numbers.resources_busy), (1, 1));
    assert_eq!((numbers.reads_in_window, numbers.writes_in_window), (2, 3));

    // Without a lease calls only gather; pauses pass and buckets fill whether or not anybody sends.
    story.fence(None).list(5, Listable::PublicIps).until(40_000);
    let numbers = story.updaters.numbers();
    assert_eq!(
        (numbers.reads_gate, numbers.deletes_gate.paused_until),
        (GateNumbers { queued: 2, ..full(200) }, None)
    );
    assert_eq!((numbers.service_writes_gate.tokens, numbers.resources_busy), (112, 0));
}
