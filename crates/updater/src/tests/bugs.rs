//! Each seeded bug of the updaters shows in a small story: what it does wrong is not done without it.

use std::string::String;
use std::vec;

use sluice_model::Step;
use sluice_model::call::{Answer, OperationState, Payload, Reply};
use sluice_model::effect::Listable;
use sluice_model::seeded::{Bug, Seeded};

use super::story::{Story, error, page, put_load_balancer, registration};
use crate::Config;

/// Tells the story twice; the line is only there with the bug.
fn check(bug: Bug, line: &str, tell: impl Fn(&mut Story)) {
    let told = |seeded: Seeded| -> String {
        let mut story = Story::with(Config::default(), seeded);
        tell(&mut story);
        story.told()
    };
    let (without, with) = (told(Seeded::NONE), told(Seeded::with(bug)));
    assert!(!without.contains(line), "without {bug:?}:\n{without}");
    assert!(with.contains(line), "with {bug:?}:\n{with}");
}

#[test]
fn poll_ok_is_success() {
    check(Bug::PollOkIsSuccess, "#1 done", |story| {
        story.plan(1, vec![put_load_balancer("web")]).accept(1).until(6_500);
        story.poll(2, OperationState::Failed(error("InternalServerError")));
    });
}

#[test]
fn post_ok_is_success() {
    check(Bug::PostOkIsSuccess, "#1 done", |story| {
        story.plan(1, vec![Step::Register(registration("web"))]).refuse(1, 200, "InternalServerError");
    });
}

#[test]
fn ignore_retry_after() {
    check(Bug::IgnoreRetryAfter, "call 2", |story| {
        story.list(1, Listable::PublicIps).throttle(1, Some(10)).until(9_000);
    });
}

#[test]
fn no_budget() {
    check(Bug::NoBudget, "call 300", |story| {
        for id in 1..=300 {
            story.plan(id, vec![put_load_balancer("web")]);
        }
    });
}

#[test]
fn empty_page_ends_list() {
    check(Bug::EmptyPageEndsList, "#1 listed", |story| {
        story.list(1, Listable::PublicIps);
        story.answer(1, 200, Payload::PublicIps(page(vec![], Some("2"))));
    });
}

#[test]
fn twice_in_one_commit() {
    check(Bug::TwiceInOneCommit, "+web +web", |story| {
        story.plan(1, vec![Step::Register(registration("web"))]);
    });
}

#[test]
fn lost_is_success() {
    check(Bug::LostIsSuccess, "#1 done", |story| {
        story.plan(1, vec![put_load_balancer("web")]).reply(1, Reply::lost("no answer"));
    });
}

#[test]
fn send_after_lease() {
    check(Bug::SendAfterLease, "call 1", |story| {
        story.fence(Some(1_000)).until(1_000).plan(1, vec![put_load_balancer("web")]);
    });
}

#[test]
fn a_story_without_trouble_is_the_same_with_most_bugs() {
    let tell = |seeded| {
        let mut story = Story::with(Config::default(), seeded);
        story.plan(1, vec![put_load_balancer("web")]).accept(1).until(6_500);
        story.reply(2, Reply::Answered(Answer::new(200, Payload::Operation(OperationState::Succeeded))));
        story.told()
    };
    for bug in [Bug::PollOkIsSuccess, Bug::PostOkIsSuccess, Bug::IgnoreRetryAfter, Bug::LostIsSuccess] {
        assert_eq!(tell(Seeded::with(bug)), tell(Seeded::NONE), "{bug:?}");
    }
}
