//! Operations behind requests: polled to their end, given up in time, and what each answer says.

use std::string::{String, ToString};
use std::vec;
use std::vec::Vec;

use expect_test::expect;
use sluice_model::Step;
use sluice_model::azure::{Provisioning, Tags};
use sluice_model::call::{Answer, OperationState, Payload, Reply};

use super::story::{
    Story, accepted, error, load_balancer, load_balancer_id, managed, managed_ip, public_ip, public_ip_id,
    put_load_balancer, put_public_ip, registration, scope,
};

#[test]
fn a_poll_that_says_failed_is_a_failure_whatever_its_status() {
    let mut story = Story::new();
    story.plan(1, vec![put_load_balancer("web")]);
    story.accept(1).until(6_500).poll(2, OperationState::Failed(error("InternalServerError")));
    story.plan(2, vec![put_load_balancer("web")]);
    story.accept(3).until(13_000).poll(4, OperationState::Canceled(error("Canceled")));
    expect![[r#"
        t=0.0 call 1 for #1: put loadBalancers/web
        t=0.5 call 2 for #1: poll operations/op1
        t=6.5 #1 failed InternalServerError (transient): []
        t=6.5 call 3 for #2: put loadBalancers/web
        t=7.0 call 4 for #2: poll operations/op3
        t=13.0 #2 failed Canceled (transient): []
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn polls_that_go_wrong_are_repeated_at_growing_intervals() {
    let mut story = Story::new();
    story.plan(1, vec![put_load_balancer("web")]).accept(1);
    story.until(500).reply(2, Reply::lost("no answer"));
    story.until(1_250).refuse(3, 503, "ServerBusy");
    story.until(2_500).reply(4, Reply::not_sent("no connection"));
    story.until(4_500).poll(5, OperationState::Running);
    story.until(7_000).poll(6, OperationState::Succeeded);
    expect![[r#"
        t=0.0 call 1 for #1: put loadBalancers/web
        t=0.5 call 2 for #1: poll operations/op1
        t=1.2 call 3 for #1: poll operations/op1
        t=2.3 call 4 for #1: poll operations/op1
        t=4.2 call 5 for #1: poll operations/op1
        t=6.8 call 6 for #1: poll operations/op1
        t=7.0 #1 done: [done]
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn what_somebody_on_the_way_answers_ends_no_operation_and_proves_no_deletion() {
    let mut story = Story::new();
    story.plan(1, vec![Step::DeletePublicIp(public_ip_id("web"))]).answer(1, 404, Payload::None);
    story.plan(2, vec![Step::ReadPublicIp(public_ip_id("web"))]).answer(2, 404, Payload::None);
    story.plan(3, vec![put_load_balancer("web")]).accept(3);
    for (call, status) in (4..).zip([302, 401, 404, 502]) {
        story.until(story.updaters.next_deadline().expect("a poll").as_millis());
        story.answer(call, status, Payload::None);
    }
    story.until(story.updaters.next_deadline().expect("a poll").as_millis());
    story.poll(8, OperationState::Succeeded);
    let told = story.told();
    assert!(told.contains("#1 failed Http404 (transient): []"), "{told}");
    assert!(told.contains("#2 failed Http404 (transient): []"), "{told}");
    assert!(told.contains("#3 done: [done]"), "{told}");
}

#[test]
fn retry_after_on_an_accepted_write_or_a_poll_is_obeyed() {
    let mut story = Story::new();
    story.plan(1, vec![Step::DeletePublicIp(public_ip_id("web"))]).answer(1, 200, managed_ip("web"));
    story.reply(2, accepted(202, "op2", Some(5)));
    story.until(5_000);
    let running = Answer::new(200, Payload::Operation(OperationState::Running));
    let retry_after = Some(core::time::Duration::from_secs(7));
    story.reply(3, Reply::Answered(Answer { retry_after, ..running }));
    story.until(12_000).poll(4, OperationState::Succeeded);
    expect![[r#"
        t=0.0 call 1 for #1: get publicIPAddresses/web-pip
        t=0.0 call 2 for #1: delete publicIPAddresses/web-pip if 1
        t=5.0 call 3 for #1: poll operations/op2
        t=12.0 call 4 for #1: poll operations/op2
        t=12.0 #1 done: [done]
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn a_404_that_does_not_say_what_is_missing_proves_no_deletion_and_leaves_an_operation_unknown() {
    let mut story = Story::new();
    let delete = || vec![Step::DeletePublicIp(public_ip_id("web"))];
    story.plan(1, delete()).answer(1, 200, managed_ip("web")).refuse(2, 404, "RouteUnavailable");
    story.plan(2, vec![Step::ReadPublicIp(public_ip_id("web"))]).refuse(3, 404, "RouteUnavailable");
    story.plan(3, delete()).answer(4, 200, managed_ip("web")).accept(5);
    story.until(2_000).refuse(6, 404, "RouteUnavailable");
    expect![[r#"
        t=0.0 call 1 for #1: get publicIPAddresses/web-pip
        t=0.0 call 2 for #1: delete publicIPAddresses/web-pip if 1
        t=0.0 #1 failed RouteUnavailable (transient): []
        t=0.0 call 3 for #2: get publicIPAddresses/web-pip
        t=0.0 #2 failed RouteUnavailable (transient): []
        t=0.0 call 4 for #3: get publicIPAddresses/web-pip
        t=0.0 call 5 for #3: delete publicIPAddresses/web-pip if 1
        t=0.5 call 6 for #3: poll operations/op5
        t=2.0 #3 failed OperationForgotten (unknown): []
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn a_forgotten_operation_and_one_over_its_time_are_unknown() {
    let mut story = Story::new();
    story.plan(1, vec![Step::DeletePublicIp(public_ip_id("web"))]);
    story.answer(1, 200, managed_ip("web")).accept(2).until(2_000).refuse(3, 404, "NotFound");
    expect![[r#"
        t=0.0 call 1 for #1: get publicIPAddresses/web-pip
        t=0.0 call 2 for #1: delete publicIPAddresses/web-pip if 1
        t=0.5 call 3 for #1: poll operations/op2
        t=2.0 #1 failed OperationForgotten (unknown): []
    "#]]
    .assert_eq(&story.told());

    let mut story = Story::new();
    story.plan(1, vec![put_load_balancer("web")]).accept(1);
    let mut call = 2;
    while story.now.as_millis() < 899_000 {
        story.until(story.now.as_millis() + 500);
        if story.sent.contains_key(&crate::CallId(call)) {
            story.poll(call, OperationState::Running);
            call += 1;
        }
    }
    assert!((90..120).contains(&call), "15 minutes took {call} calls");
    story.quietly();
    story.until(901_000);
    expect![[r#"
        t=900.0 #1 failed OperationTimeout (unknown): []
    "#]]
    .assert_eq(&story.told());
    assert_eq!(story.updaters.numbers().operations_overdue, 1);
}

#[test]
fn a_request_without_an_answer_is_lost_and_a_late_answer_is_ignored() {
    let mut story = Story::new();
    story.plan(1, vec![put_load_balancer("web")]).until(65_000);
    assert_eq!(story.updaters.on_the_wire(), 0);
    story.accept(1).accept(1).accept(99);
    expect![[r#"
        t=0.0 call 1 for #1: put loadBalancers/web
        t=65.0 #1 failed NoAnswer (unknown): []
    "#]]
    .assert_eq(&story.told());
    assert_eq!((story.updaters.numbers().lost, story.updaters.numbers().late_replies), (1, 3));
}

#[test]
fn whoever_sends_gives_up_first_and_its_words_are_told() {
    let mut story = Story::new();
    let words = "no answer from management.azure.com within 60 s";
    story.plan(1, vec![put_load_balancer("web")]).until(60_500).reply(1, Reply::lost(words));
    let [failure] = story.failures.as_slice() else { panic!("{:?}", story.failures) };
    assert_eq!(&*failure.message, words);
    assert_eq!(story.updaters.numbers().late_replies, 0);
}

#[test]
fn a_slow_operation_gives_the_slot_back_and_the_next_step_asks_for_one() {
    let mut story = Story::new();
    story.plan(1, vec![Step::DeleteLoadBalancer(load_balancer_id("web")), put_public_ip("web")]);
    story.answer(1, 200, managed(load_balancer("web"))).accept(2);
    let mut polls = 3;
    while story.now.as_millis() < 30_000 {
        story.until(story.updaters.next_deadline().expect("a poll").as_millis());
        if story.sent.contains_key(&crate::CallId(polls)) {
            story.poll(polls, OperationState::Running);
            polls += 1;
        }
    }
    story.until(45_000).poll(polls, OperationState::Succeeded);
    story.until(46_000).resume(1).resume(1).resume(77);
    expect![[r#"
        t=0.0 call 1 for #1: get loadBalancers/web
        t=0.0 call 2 for #1: delete loadBalancers/web if 1
        t=0.5 call 3 for #1: poll operations/op2
        t=1.2 call 4 for #1: poll operations/op2
        t=2.3 call 5 for #1: poll operations/op2
        t=4.0 call 6 for #1: poll operations/op2
        t=6.5 call 7 for #1: poll operations/op2
        t=10.3 call 8 for #1: poll operations/op2
        t=16.0 call 9 for #1: poll operations/op2
        t=24.6 call 10 for #1: poll operations/op2
        t=30.0 #1 gives its slot back: slow operation
        t=34.6 call 11 for #1: poll operations/op2
        t=45.0 #1 wants a slot
        t=46.0 call 12 for #1: put publicIPAddresses/web-pip
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn a_failure_says_why_nobody_knows() {
    let mut story = Story::new();
    // A write that is lost, one that nobody answers, one whose operation cannot be watched.
    story
        .plan(1, vec![put_load_balancer("a")])
        .reply(1, Reply::lost("the answer was cut off after 12 bytes"));
    story.plan(2, vec![put_load_balancer("b")]).until(65_000);
    story.plan(3, vec![put_load_balancer("c")]).accept(3).until(65_000 + 6_500);
    while story.failures.len() < 3 {
        let polls: Vec<_> = story.sent.keys().copied().filter(|call| call.0 > 3).collect();
        for call in polls {
            story.reply(call.0, Reply::lost("the answer is not JSON"));
        }
        let next = story.updaters.next_deadline().expect("the operation has a limit");
        story.until(next.as_millis());
    }
    let told: Vec<String> = story.failures.iter().map(ToString::to_string).collect();
    expect![[r#"
        [
            "NoAnswer (unknown): the answer was cut off after 12 bytes",
            "NoAnswer (unknown): no answer within 65 s",
            "OperationTimeout (unknown): the operation did not finish within 900 s; its outcome is unknown; the last poll failed: NoAnswer (unknown): the answer is not JSON",
        ]
    "#]]
    .assert_debug_eq(&told);
}

#[test]
fn a_write_that_was_not_sent_is_certainly_not_done() {
    let mut story = Story::new();
    story.plan(1, vec![put_load_balancer("web")]).reply(1, Reply::not_sent("no connection"));
    story.plan(2, vec![Step::Register(registration("web"))]).reply(2, Reply::not_sent("no token"));
    let told: Vec<String> = story.failures.iter().map(ToString::to_string).collect();
    assert_eq!(told, ["NotSent (transient): no connection", "NotSent (transient): no token"]);
    assert_eq!(story.updaters.numbers().lost, 0);
}

/// A public IP that carries these tags.
fn tagged(tags: &Tags, provisioning: Provisioning) -> Payload {
    let Payload::PublicIp(mut ip) = public_ip("web", provisioning) else { unreachable!("it is one") };
    ip.meta.tags = tags.clone();
    Payload::PublicIp(ip)
}

/// Releases a public IP that was found managed, up to the call that writes its tags.
fn release(story: &mut Story, id: u64, read: u64) -> &mut Story {
    story.plan(id, vec![Step::ReleasePublicIp(public_ip_id("web"))]).answer(read, 200, managed_ip("web"))
}

#[test]
fn tags_that_are_accepted_are_followed_to_their_end() {
    let tags = Tags::from([("theirs".into(), "yes".into())]);
    // With nothing to follow, the resource itself shows it.
    let mut story = Story::new();
    release(&mut story, 1, 1).answer(2, 202, Payload::None);
    story.until(1_500).answer(3, 200, tagged(&Tags::new(), Provisioning::Updating));
    story.until(1_600).answer(4, 200, tagged(&tags, Provisioning::Succeeded));
    expect![[r#"
        t=0.0 call 1 for #1: get publicIPAddresses/web-pip
        t=0.0 call 2 for #1: patch tags of publicIPAddresses/web-pip if 1
        t=0.5 call 3 for #1: get publicIPAddresses/web-pip
        t=1.6 call 4 for #1: get publicIPAddresses/web-pip
        t=1.6 #1 done: [Some(198.18.0.1)]
    "#]]
    .assert_eq(&story.told());
    // Behind a `Location` the resource comes when it is ready.
    let mut story = Story::new();
    release(&mut story, 1, 1).accept(2);
    story.until(1_500).answer(3, 200, tagged(&tags, Provisioning::Succeeded));
    assert!(story.told().contains("#1 done: [Some(198.18.0.1)]"));
    // A 200 may come while Azure still works on it.
    let mut story = Story::new();
    release(&mut story, 1, 1).answer(2, 200, tagged(&tags, Provisioning::Updating));
    story.until(1_500).answer(3, 200, tagged(&tags, Provisioning::Succeeded));
    assert!(story.told().contains("#1 done: [Some(198.18.0.1)]"));
}

#[test]
fn a_read_without_the_tags_that_we_wrote_a_moment_ago_proves_no_release() {
    let tags = scope().gateway_tags();
    let adopt = Step::Adopt { id: public_ip_id("web"), tags: tags.clone() };
    let delete = || Step::DeletePublicIp(public_ip_id("web"));
    let untagged = || tagged(&Tags::new(), Provisioning::Succeeded);
    let mut story = Story::new();
    story.plan(1, vec![adopt, delete()]).answer(1, 200, untagged());
    story.answer(2, 200, tagged(&tags, Provisioning::Succeeded));
    // The first read is behind, the second comes when none can be any more.
    story.answer(3, 200, untagged());
    story.plan(3, vec![Step::ReadPublicIp(public_ip_id("web"))]).answer(4, 200, untagged());
    story.until(30_000).plan(2, vec![delete()]).answer(5, 200, untagged());
    expect![[r#"
        t=0.0 call 1 for #1: get publicIPAddresses/web-pip
        t=0.0 call 2 for #1: patch tags of publicIPAddresses/web-pip if 1
        t=0.0 call 3 for #1: get publicIPAddresses/web-pip
        t=0.0 #1 failed ReadLagsBehind (transient): [done]
        t=0.0 call 4 for #3: get publicIPAddresses/web-pip
        t=0.0 #3 failed ReadLagsBehind (transient): []
        t=30.0 call 5 for #2: get publicIPAddresses/web-pip
        t=30.0 #2 failed NotManaged (rejected): []
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn a_resource_whose_last_write_failed_takes_tags_all_the_same() {
    let tags = Tags::from([("theirs".into(), "yes".into())]);
    let mut story = Story::new();
    release(&mut story, 1, 1).answer(2, 200, tagged(&tags, Provisioning::Failed));
    release(&mut story, 2, 3).answer(4, 202, Payload::None);
    story.until(1_500).answer(5, 200, tagged(&Tags::new(), Provisioning::Failed)).quietly();
    release(&mut story, 3, 6).answer(7, 200, Payload::None);
    assert_eq!(story.failures.len(), 1);
    assert_eq!(&*story.failures[0].code, "ProvisioningFailed");
}
