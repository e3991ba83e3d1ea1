//! Group commit: who rides together, and what each is told.

use std::format;
use std::string::{String, ToString};
use std::vec;
use std::vec::Vec;

use expect_test::expect;
use sluice_model::Step;
use sluice_model::call::{Body, OperationState, Payload, Reply};

use super::story::{Story, cleared, page, registration};

fn register(story: &mut Story, id: u64, name: &str) {
    story.plan(id, vec![Step::Register(registration(name))]);
}

#[test]
fn whoever_waits_when_a_commit_returns_rides_in_the_next() {
    let mut story = Story::new();
    for (id, name) in [(1, "a"), (2, "b"), (3, "c")] {
        register(&mut story, id, name);
    }
    story.accept(1).until(1_500).poll(2, OperationState::Succeeded);
    story.until(2_000).answer(3, 200, Payload::None);
    expect![[r#"
        t=0.0 #1 gives its slot back: shared commit
        t=0.0 call 1 for #1: commit +a
        t=0.0 #2 gives its slot back: shared commit
        t=0.0 #3 gives its slot back: shared commit
        t=0.5 call 2 for #1: poll operations/op1
        t=1.5 #1 done: [done]
        t=1.5 call 3 for #2: commit +b +c
        t=2.0 #2 done: [done]
        t=2.0 #3 done: [done]
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn a_commit_carries_a_hundred_services_at_most() {
    let mut story = Story::new();
    story.fence(None);
    for id in 1..=250 {
        register(&mut story, id, &format!("s{id}"));
    }
    story.fence(Some(1_000));
    let mut sizes = Vec::new();
    for call in 1..=3 {
        let Some(Body::Services(services)) = story.sent.get(&crate::CallId(call)).map(|it| &it.body) else {
            panic!("no commit {call}");
        };
        sizes.push(services.len());
        story.answer(call, 204, Payload::None);
    }
    assert_eq!(sizes, [100, 100, 50]);
    let numbers = story.updaters.numbers();
    assert_eq!((numbers.service_commits, numbers.services_committed), (3, 250));
}

#[test]
fn one_service_is_never_twice_in_one_commit() {
    let mut story = Story::new();
    story.fence(None);
    register(&mut story, 1, "web");
    register(&mut story, 2, "api");
    story.plan(3, vec![Step::Clear(cleared("WEB"))]);
    register(&mut story, 4, "db");
    story.fence(Some(10_000)).answer(1, 200, Payload::None).answer(2, 200, Payload::None);
    expect![[r#"
        t=0.0 #1 gives its slot back: shared commit
        t=0.0 #2 gives its slot back: shared commit
        t=0.0 #3 gives its slot back: shared commit
        t=0.0 #4 gives its slot back: shared commit
        t=0.0 call 1 for #1: commit +web +api
        t=0.0 #1 done: [done]
        t=0.0 #2 done: [done]
        t=0.0 call 2 for #3: commit +WEB +db
        t=0.0 #3 done: [done]
        t=0.0 #4 done: [done]
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn a_refused_commit_is_repeated_one_by_one_and_newcomers_go_in_between() {
    let mut story = Story::new();
    story.fence(None);
    register(&mut story, 1, "good");
    register(&mut story, 2, "bad");
    story.plan(3, vec![Step::Unregister("gone".into())]);
    story.fence(Some(10_000)).quietly();
    story.refuse(1, 400, "InvalidResourceReference");
    register(&mut story, 4, "new");
    story.answer(2, 200, Payload::None);
    story.answer(3, 200, Payload::None);
    story.refuse(4, 400, "InvalidResourceReference");
    story.refuse(5, 404, "ResourceNotFound");
    expect![[r#"
        t=0.0 call 2 for #1: commit +good
        t=0.0 #4 gives its slot back: shared commit
        t=0.0 #1 done: [done]
        t=0.0 call 3 for #4: commit +new
        t=0.0 #4 done: [done]
        t=0.0 call 4 for #2: commit +bad
        t=0.0 #2 failed InvalidResourceReference (rejected): []
        t=0.0 call 5 for #3: commit -gone
        t=0.0 #3 done: [done]
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn a_transient_failure_is_everybodys() {
    let mut story = Story::new();
    story.fence(None);
    register(&mut story, 1, "a");
    register(&mut story, 2, "b");
    story.fence(Some(10_000)).refuse(1, 503, "ServerBusy");
    expect![[r#"
        t=0.0 #1 gives its slot back: shared commit
        t=0.0 #2 gives its slot back: shared commit
        t=0.0 call 1 for #1: commit +a +b
        t=0.0 #1 failed ServerBusy (transient): []
        t=0.0 #2 failed ServerBusy (transient): []
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn a_lost_commit_is_decided_by_one_list_of_all_pages() {
    let mut story = Story::new();
    story.fence(None);
    register(&mut story, 1, "made");
    register(&mut story, 2, "missing");
    story.plan(3, vec![Step::Clear(cleared("cleared"))]);
    story.plan(4, vec![Step::Clear(cleared("still"))]);
    story.plan(5, vec![Step::Unregister("removed".into())]);
    story.plan(6, vec![Step::Unregister("there".into())]);
    story.fence(Some(10_000)).reply(1, Reply::lost("no answer"));
    let first = vec![registration("MADE"), cleared("cleared")];
    let second = vec![registration("still"), registration("there")];
    story.answer(2, 200, Payload::Registrations(page(first, Some("2"))));
    story.answer(3, 200, Payload::Registrations(page(second, None)));
    expect![[r#"
        t=0.0 #1 gives its slot back: shared commit
        t=0.0 #2 gives its slot back: shared commit
        t=0.0 #3 gives its slot back: shared commit
        t=0.0 #4 gives its slot back: shared commit
        t=0.0 #5 gives its slot back: shared commit
        t=0.0 #6 gives its slot back: shared commit
        t=0.0 call 1 for #1: commit +made +missing +cleared +still -removed -there
        t=0.0 call 2 for #1: list servicegateway/services
        t=0.0 call 3 for #1: list servicegateway/services page 2
        t=0.0 #1 done: [done]
        t=0.0 #2 failed NoAnswer (unknown): []
        t=0.0 #3 done: [done]
        t=0.0 #4 failed NoAnswer (unknown): []
        t=0.0 #5 done: [done]
        t=0.0 #6 failed NoAnswer (unknown): []
        t=0.0 4 registrations read as of 0.0
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn a_lost_commit_that_cannot_be_looked_up_stays_unknown() {
    let mut story = Story::new();
    register(&mut story, 1, "web");
    story.reply(1, Reply::lost("no answer")).refuse(2, 403, "AuthorizationFailed");
    // Accepted, but with nothing to follow: as good as lost.
    register(&mut story, 2, "web");
    story.answer(3, 202, Payload::None);
    story.answer(4, 200, Payload::Registrations(page(vec![registration("web")], None)));
    expect![[r#"
        t=0.0 #1 gives its slot back: shared commit
        t=0.0 call 1 for #1: commit +web
        t=0.0 call 2 for #1: list servicegateway/services
        t=0.0 #1 failed NoAnswer (unknown): []
        t=0.0 #2 gives its slot back: shared commit
        t=0.0 call 3 for #2: commit +web
        t=0.0 call 4 for #2: list servicegateway/services
        t=0.0 #2 done: [done]
        t=0.0 1 registrations read as of 0.0
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn a_commit_that_stays_unknown_says_why_and_what_was_seen() {
    let mut story = Story::new();
    register(&mut story, 1, "web");
    story.reply(1, Reply::lost("connection reset")).refuse(2, 403, "AuthorizationFailed");
    register(&mut story, 2, "web");
    story.accept(3).until(180_000);
    let list = *story.sent.keys().next_back().expect("the registrations are listed");
    story.answer(list.0, 200, Payload::Registrations(page(vec![], None)));
    let told: Vec<String> = story.failures.iter().map(ToString::to_string).collect();
    expect![[r#"
        [
            "NoAnswer (unknown): connection reset; reading the registrations failed: AuthorizationFailed (forbidden): ",
            "OperationTimeout (unknown): the operation did not finish within 180 s; its outcome is unknown; the last poll failed: NoAnswer (unknown): no answer within 65 s; the registration differs from the desired state",
        ]
    "#]]
    .assert_debug_eq(&told);
}

#[test]
fn a_200_with_an_error_inside_is_no_success() {
    let mut story = Story::new();
    register(&mut story, 1, "web");
    story.refuse(1, 200, "InvalidResourceReference");
    expect![[r#"
        t=0.0 #1 gives its slot back: shared commit
        t=0.0 call 1 for #1: commit +web
        t=0.0 #1 failed InvalidResourceReference (rejected): []
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn addresses_that_are_still_mapped_are_told_as_such() {
    let mut story = Story::new();
    story.plan(1, vec![Step::Unregister("web".into())]);
    story.refuse(1, 400, "ServiceWithOverlayMappingsCannotBeDeleted");
    expect![[r#"
        t=0.0 #1 gives its slot back: shared commit
        t=0.0 call 1 for #1: commit -web
        t=0.0 #1 failed ServiceWithOverlayMappingsCannotBeDeleted (still-mapped): []
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn a_throttled_commit_takes_newcomers_along_when_it_is_sent_again() {
    let mut story = Story::new();
    register(&mut story, 1, "a");
    story.throttle(1, Some(5));
    register(&mut story, 2, "b");
    story.until(5_000).answer(2, 200, Payload::None);
    expect![[r#"
        t=0.0 #1 gives its slot back: shared commit
        t=0.0 call 1 for #1: commit +a
        t=0.0 #1 waits: throttled until 5.0
        t=0.0 #2 gives its slot back: shared commit
        t=0.0 #2 waits: throttled until 5.0
        t=5.0 call 2 for #1: commit +a +b
        t=5.0 #1 done: [done]
        t=5.0 #2 done: [done]
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn all_who_ride_in_a_commit_that_a_pause_holds_are_told_also_those_who_join_later() {
    let mut story = Story::new();
    register(&mut story, 1, "a");
    register(&mut story, 2, "b");
    story.throttle(1, Some(60));
    register(&mut story, 3, "c");
    story.until(59_000);
    expect![[r#"
        t=0.0 #1 gives its slot back: shared commit
        t=0.0 call 1 for #1: commit +a
        t=0.0 #2 gives its slot back: shared commit
        t=0.0 #1 waits: throttled until 60.0
        t=0.0 #2 waits: throttled until 60.0
        t=0.0 #3 gives its slot back: shared commit
        t=0.0 #3 waits: throttled until 60.0
    "#]]
    .assert_eq(&story.told());
}
