//! Azure asks for patience with one resource: whoever wants that one waits, nobody else.

use std::time::Duration;
use std::vec;
use std::vec::Vec;

use expect_test::expect;
use sluice_model::Step;
use sluice_model::azure::{LocationUpdate, Provisioning};
use sluice_model::call::{Answer, ArmError, OperationState, Payload, Reply};
use sluice_model::effect::Listable;

use super::story::{
    Story, accepted, busy, error, load_balancer, load_balancer_id, managed, public_ip, put_load_balancer,
    put_public_ip, registration, waiting,
};

fn locations() -> Vec<LocationUpdate> {
    vec![LocationUpdate { location: [10, 0, 0, 1].into(), full: false, addresses: Vec::new() }]
}

#[test]
fn only_the_write_that_met_another_operation_waits_and_it_gives_its_slot_back() {
    let mut story = Story::new();
    story.plan(1, vec![put_load_balancer("web")]).reply(1, busy(7));
    story.plan(2, vec![put_load_balancer("api")]).until(3_000);
    story.plan(3, vec![put_public_ip("db")]);
    story.plan(4, vec![Step::Register(registration("old"))]);
    story.plan(5, vec![Step::DeleteLoadBalancer(load_balancer_id("gone"))]);
    story.answer(5, 200, managed(load_balancer("gone")));
    story.sync(6, locations());
    story.until(6_999);
    expect![[r#"
        t=0.0 call 1 for #1: put loadBalancers/web
        t=0.0 #1 gives its slot back: throttled until 7.0
        t=0.0 call 2 for #2: put loadBalancers/api
        t=3.0 call 3 for #3: put publicIPAddresses/db-pip
        t=3.0 #4 gives its slot back: shared commit
        t=3.0 call 4 for #4: commit +old
        t=3.0 call 5 for #5: get loadBalancers/gone
        t=3.0 call 6 for #5: delete loadBalancers/gone if 1
        t=3.0 call 7 for #6: sync 1 locations
    "#]]
    .assert_eq(&story.told());
    story.until(7_000).until(9_000).resume(1);
    expect![[r#"
        t=7.0 #1 wants a slot
        t=9.0 call 8 for #1: put loadBalancers/web
    "#]]
    .assert_eq(&story.told());
    let numbers = story.updaters.numbers();
    assert_eq!((numbers.throttled, numbers.busy, numbers.throttled_ms), (1, 1, 0));
}

#[test]
fn a_slot_that_comes_early_does_not_end_the_wait() {
    let mut story = Story::new();
    story.plan(1, vec![put_load_balancer("web")]).reply(1, busy(7)).quietly();
    story.until(2_000).resume(1).until(6_999);
    assert_eq!(story.told(), "\n");
    story.until(7_000);
    expect![[r#"
        t=7.0 call 2 for #1: put loadBalancers/web
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn another_operation_that_is_in_the_way_for_no_time_is_a_failure_to_try_again_after() {
    let mut story = Story::new();
    story.plan(1, vec![put_load_balancer("web")]).reply(1, busy(0));
    // About a running operation it says nothing.
    story.plan(2, vec![put_load_balancer("api")]).accept(2).until(6_500).reply(3, busy(0)).until(7_000);
    expect![[r#"
        t=0.0 call 1 for #1: put loadBalancers/web
        t=0.0 #1 failed RetryableErrorDueToAnotherOperation (transient): []
        t=0.0 call 2 for #2: put loadBalancers/api
        t=0.5 call 3 for #2: poll operations/op2
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn what_stays_in_the_way_is_asked_about_less_and_less_often() {
    let mut story = Story::new();
    story.sync(1, locations());
    let mut told = story.told();
    for call in 1..=30 {
        story.reply(call, busy(1));
        let deadline = story.updaters.next_deadline().map_or(0, |at| at.as_millis());
        story.until(deadline);
        let news = story.told();
        if news.contains("HeldBack") {
            story.sync(1, locations());
        }
        told += &news;
        told += &story.told();
    }
    let calls: Vec<&str> = told.lines().filter(|line| line.contains("call")).collect();
    // Every second would be 121 of them; a failure comes after two minutes.
    assert!((8..=25).contains(&calls.len()), "{told}");
    assert!(told.contains("failed"), "{told}");
}

#[test]
fn what_stays_in_the_way_is_a_failure_in_the_end() {
    let mut story = Story::new();
    story.plan(1, vec![put_load_balancer("web")]);
    for call in 1..=3 {
        story.reply(call, busy(60)).until(call * 60_000).resume(1);
    }
    // 120 s after the first such answer it may still go; a minute later it is too long.
    story.quietly();
    story.reply(4, busy(60));
    expect![[r#"
        t=180.0 #1 failed RetryableErrorDueToAnotherOperation (transient): []
    "#]]
    .assert_eq(&story.told());
    assert_eq!(story.updaters.next_deadline(), None);
}

#[test]
fn a_plan_that_failed_because_of_it_is_not_sent_again_before_the_wait_is_over() {
    let mut story = Story::new();
    story.plan(1, vec![put_load_balancer("web")]);
    for call in 1..=3 {
        story.reply(call, busy(60)).until(call * 60_000).resume(1);
    }
    story.reply(4, busy(60)).quietly();
    story.until(200_000).plan(2, vec![put_load_balancer("web")]).until(239_999);
    expect![[r#"
        t=200.0 #2 gives its slot back: throttled until 240.0
    "#]]
    .assert_eq(&story.told());
    story.until(240_000).resume(2);
    assert!(story.told().contains("call 5 for #2: put loadBalancers/web"));
}

#[test]
fn an_answer_that_came_too_late_holds_the_next_write_of_that_resource_and_no_other() {
    let mut story = Story::new();
    story.plan(1, vec![put_load_balancer("web")]).until(65_000).reply(1, busy(30)).quietly();
    story.plan(2, vec![put_load_balancer("web")]).plan(3, vec![put_load_balancer("api")]);
    expect![[r#"
        t=65.0 #2 gives its slot back: throttled until 95.0
        t=65.0 call 2 for #3: put loadBalancers/api
    "#]]
    .assert_eq(&story.told());
    story.until(95_000).resume(2);
    assert!(story.told().contains("call 3 for #2: put loadBalancers/web"));
}

#[test]
fn a_wait_that_came_late_outlasts_the_success_of_a_call_already_on_its_way() {
    let mut story = Story::new();
    story.plan(1, vec![Step::Register(registration("a"))]).until(65_000);
    // The first call is given up, its registrations are listed, and the next call is accepted.
    story.plan(2, vec![Step::Register(registration("b"))]).accept(3).quietly();
    // Only now the first call is answered; then the second one succeeds.
    story.reply(1, busy(9)).until(66_500).poll(4, OperationState::Succeeded).quietly();
    story.plan(3, vec![Step::Register(registration("c"))]).until(74_000);
    expect![[r#"
        t=66.5 #3 gives its slot back: shared commit
        t=66.5 #3 waits: throttled until 74.0
        t=74.0 call 5 for #3: commit +c
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn the_wait_of_a_failure_that_came_too_late_is_kept_too() {
    let mut story = Story::new();
    story.plan(1, vec![put_load_balancer("web")]).until(65_000).quietly();
    story.reply(1, waiting(503, "ServerBusy", Some(120)));
    story.plan(2, vec![put_load_balancer("web")]).plan(3, vec![put_load_balancer("api")]);
    expect![[r#"
        t=65.0 #2 gives its slot back: throttled until 185.0
        t=65.0 call 2 for #3: put loadBalancers/api
    "#]]
    .assert_eq(&story.told());
    assert_eq!((story.updaters.numbers().throttled, story.updaters.numbers().busy), (0, 0));
}

#[test]
fn the_wait_in_a_polls_answer_that_came_too_late_holds_the_next_poll() {
    let mut story = Story::new();
    story.plan(1, vec![put_load_balancer("web")]).accept(1).until(71_500).quietly();
    // The first poll was given up; its answer comes before the next is sent.
    story.reply(2, waiting(503, "ServerBusy", Some(120))).until(191_499);
    assert_eq!(story.told(), "\n");
    story.until(191_500);
    expect![[r#"
        t=191.5 call 3 for #1: poll operations/op1
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn a_poll_that_was_answered_too_late_still_says_when_to_ask_again() {
    let mut story = Story::new();
    story.plan(1, vec![put_load_balancer("web")]).accept(1).until(71_500).quietly();
    // The first poll was given up; its answer comes before the next is sent.
    let runs = Answer::new(200, Payload::Operation(OperationState::Running));
    let runs = Answer { retry_after: Some(Duration::from_secs(20)), ..runs };
    story.reply(2, Reply::Answered(runs)).until(91_499);
    assert_eq!(story.told(), "\n");
    story.until(91_500);
    expect![[r#"
        t=91.5 call 3 for #1: poll operations/op1
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn addresses_that_had_to_wait_are_given_back_instead_of_sent() {
    let mut story = Story::new();
    story.sync(1, locations()).throttle(1, Some(60)).quietly();
    story.until(60_000);
    expect![[r#"
        t=60.0 #1 failed HeldBack (throttled), next at 60.0
    "#]]
    .assert_eq(&story.told());
    story.sync(2, locations());
    assert!(story.told().contains("call 2 for #2: sync 1 locations"));
}

#[test]
fn the_wait_inside_a_failed_operation_is_kept_however_late_it_is_told() {
    let mut story = Story::new();
    // The answer to the last poll comes when the operation has been given up.
    story.plan(1, vec![Step::Register(registration("a"))]).accept(1).fence(Some(2_000)).until(180_000);
    story.fence(Some(u64::MAX)).quietly();
    let message = "Another operation is in progress; please retry after 20 seconds.".into();
    let error = ArmError { message, ..error("RetryableErrorDueToAnotherOperation") };
    story.poll(2, OperationState::Failed(error));
    story.plan(2, vec![Step::Register(registration("b"))]);
    story.until(200_000);
    expect![[r#"
        t=180.0 #2 gives its slot back: shared commit
        t=180.0 #2 waits: throttled until 200.0
        t=200.0 call 4 for #2: commit +b
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn a_commit_waits_by_itself_and_takes_newcomers_along() {
    let mut story = Story::new();
    story.plan(1, vec![Step::Register(registration("a"))]).reply(1, busy(5)).quietly();
    story.plan(2, vec![put_load_balancer("api")]).sync(3, locations());
    story.until(2_000).plan(4, vec![Step::Register(registration("b"))]).until(5_000);
    expect![[r#"
        t=0.0 call 2 for #2: put loadBalancers/api
        t=0.0 call 3 for #3: sync 1 locations
        t=2.0 #4 gives its slot back: shared commit
        t=2.0 #4 waits: throttled until 5.0
        t=5.0 call 4 for #1: commit +a +b
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn a_sync_waits_by_itself_and_services_go_on() {
    let mut story = Story::new();
    story.sync(1, locations()).reply(1, busy(5)).quietly();
    story.plan(2, vec![Step::Register(registration("a"))]).until(4_999);
    expect![[r#"
        t=0.0 #2 gives its slot back: shared commit
        t=0.0 call 2 for #2: commit +a
    "#]]
    .assert_eq(&story.told());
    story.until(5_000).answer(3, 200, Payload::None);
    expect![[r#"
        t=5.0 call 3 for #1: sync 1 locations
        t=5.0 #1 done, next at 5.0
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn a_poll_that_meets_it_rests_and_other_reads_go_on() {
    let mut story = Story::new();
    story.plan(1, vec![put_load_balancer("web")]).reply(1, accepted(202, "op1", None)).until(6_500);
    story.quietly();
    story.reply(2, busy(9)).list(2, Listable::LoadBalancers).until(15_500);
    expect![[r#"
        t=6.5 call 3 for #2: list Microsoft.Network/loadBalancers
        t=15.5 call 4 for #1: poll operations/op1
    "#]]
    .assert_eq(&story.told());
    story.poll(4, OperationState::Succeeded);
    assert!(story.told().contains("#1 done"));
}

#[test]
fn retry_after_on_a_failure_holds_whoever_asks_for_the_same_thing_next() {
    let mut story = Story::new();
    // The commit fails; another service's registration would be the same call again.
    story.plan(1, vec![Step::Register(registration("a"))]).reply(1, waiting(503, "ServerBusy", Some(20)));
    story.plan(2, vec![Step::Register(registration("b"))]);
    // The list fails; another asker likewise.
    story.list(3, Listable::LoadBalancers).reply(2, waiting(403, "AuthorizationFailed", Some(20)));
    story.list(4, Listable::LoadBalancers);
    story.list(5, Listable::NatGateways);
    story.plan(6, vec![put_load_balancer("web")]).until(19_999);
    expect![[r#"
        t=0.0 #1 gives its slot back: shared commit
        t=0.0 call 1 for #1: commit +a
        t=0.0 #1 failed ServerBusy (transient): []
        t=0.0 #2 gives its slot back: shared commit
        t=0.0 #2 waits: throttled until 20.0
        t=0.0 call 2 for #3: list Microsoft.Network/loadBalancers
        t=0.0 #3 listed as of 0.0: failed AuthorizationFailed (forbidden)
        t=0.0 call 3 for #5: list Microsoft.Network/natGateways
        t=0.0 call 4 for #6: put loadBalancers/web
    "#]]
    .assert_eq(&story.told());
    story.until(20_000);
    expect![[r#"
        t=20.0 call 5 for #2: commit +b
        t=20.0 call 6 for #4: list Microsoft.Network/loadBalancers
    "#]]
    .assert_eq(&story.told());
    let numbers = story.updaters.numbers();
    assert_eq!((numbers.throttled, numbers.busy), (0, 0));
}

#[test]
fn retry_after_on_a_failed_read_back_is_obeyed() {
    let mut story = Story::new();
    story.plan(1, vec![put_public_ip("web")]).answer(1, 200, public_ip("web", Provisioning::Updating));
    story.until(2_500).answer(2, 200, public_ip("web", Provisioning::Succeeded)).quietly();
    story.plan(2, vec![put_public_ip("api")]).accept(3).until(5_000).poll(4, OperationState::Succeeded);
    story.quietly();
    story.reply(5, waiting(503, "ServerBusy", Some(30))).until(34_999);
    assert_eq!(story.told(), "\n");
    story.until(35_000);
    expect![[r#"
        t=35.0 call 6 for #2: get publicIPAddresses/api-pip
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn a_wait_inside_a_failed_operation_holds_the_next_of_its_kind_on_that_resource() {
    let failed = || {
        let message = "Another operation is in progress; please retry after 20 seconds.".into();
        OperationState::Failed(ArmError { message, ..error("RetryableErrorDueToAnotherOperation") })
    };
    let mut story = Story::new();
    // The commit's operation fails; those who gathered meanwhile would be in the next.
    story.plan(1, vec![Step::Register(registration("a"))]).accept(1);
    story.plan(2, vec![Step::Register(registration("b"))]).quietly();
    story.until(1_500).poll(2, failed()).sync(3, locations()).until(21_499);
    expect![[r#"
        t=0.5 call 2 for #1: poll operations/op1
        t=1.5 #1 failed RetryableErrorDueToAnotherOperation (transient): []
        t=1.5 #2 waits: throttled until 21.5
        t=1.5 call 3 for #3: sync 1 locations
    "#]]
    .assert_eq(&story.told());
    story.until(21_500);
    expect![[r#"
        t=21.5 call 4 for #2: commit +b
    "#]]
    .assert_eq(&story.told());
    // A write likewise, and no other write.
    story.plan(4, vec![put_load_balancer("web")]).accept(5).until(28_000).poll(6, failed()).quietly();
    story.plan(5, vec![put_load_balancer("web")]).plan(6, vec![put_load_balancer("api")]).until(47_999);
    expect![[r#"
        t=28.0 #5 gives its slot back: throttled until 48.0
        t=28.0 call 7 for #6: put loadBalancers/api
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn whoever_comes_next_goes_on_where_the_last_one_stopped() {
    let mut story = Story::new();
    let mut answered = 0;
    for plan in 1..=6 {
        story.quietly();
        story.plan(plan, vec![put_load_balancer("web")]);
        // Azure never lets go; the engine comes back half a minute after each failure.
        while story.updaters.on_the_wire() + usize::from(story.updaters.next_deadline().is_some()) > 0 {
            if story.updaters.on_the_wire() > 0 {
                answered += 1;
                story.reply(answered, busy(1));
            } else {
                let deadline = story.updaters.next_deadline().map_or(0, |at| at.as_millis());
                story.until(deadline).resume(plan);
            }
        }
        assert!(story.told().contains("failed"));
        let later = story.now.as_millis() + 30_000;
        story.until(later);
    }
    // A score for the first two minutes, and one for each attempt after that.
    assert!((10..=30).contains(&answered), "{answered}");
}

#[test]
fn once_azure_has_taken_something_the_next_wait_begins_anew() {
    let mut story = Story::new();
    story.plan(1, vec![put_load_balancer("web")]);
    for call in 1..=3 {
        story.reply(call, busy(60)).until(call * 60_000).resume(1);
    }
    story.reply(4, busy(60)).until(240_000);
    story.plan(2, vec![put_load_balancer("web")]).accept(5);
    story.plan(3, vec![put_load_balancer("web")]).quietly();
    story.reply(6, busy(1)).until(241_000).resume(3);
    let told = story.told();
    assert!(told.contains("t=241.0 call 8 for #3: put"), "a second later, and no failure at once: {told}");
}
