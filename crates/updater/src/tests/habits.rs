//! How long operations take is learned from what polls have shown, not from what kept polls away.

use std::format;
use std::vec;
use std::vec::Vec;

use sluice_model::call::{Answer, OperationState, Payload, Reply};

use super::story::{Story, put_load_balancer, throttled};
use crate::CallId;

/// Answers every open poll.
fn answer_polls(story: &mut Story, reply: &Reply) {
    let polls: Vec<CallId> = story.sent.keys().copied().collect();
    for call in polls {
        story.reply(call.0, reply.clone());
    }
}

fn state(state: OperationState) -> Reply {
    Reply::Answered(Answer::new(200, Payload::Operation(state)))
}

/// Begins the writes of eight load balancers, all accepted.
fn eight_writes() -> Story {
    let mut story = Story::new();
    for id in 1..=8 {
        story.plan(id, vec![put_load_balancer(&format!("lb{id}"))]).accept(id);
    }
    story
}

/// When the first poll of the next load balancer's write comes, after it was begun.
fn first_poll_ms(story: &mut Story) -> u64 {
    assert!(story.sent.is_empty(), "something is still under way");
    story.plan(99, vec![put_load_balancer("next")]);
    let began = story.now;
    let call = *story.sent.keys().next().expect("the write");
    story.accept(call.0);
    while story.sent.is_empty() {
        let next = story.updaters.next_deadline().expect("a poll");
        story.until(next.as_millis());
    }
    story.now.as_millis() - began.as_millis()
}

#[test]
fn polls_that_told_nothing_teach_nothing() {
    let mut story = eight_writes();
    while story.now.as_millis() < 240_000 {
        answer_polls(&mut story, &Reply::not_sent("no connection"));
        story.until(story.now.as_millis() + 500);
    }
    story.until(260_000);
    answer_polls(&mut story, &state(OperationState::Succeeded));
    assert_eq!(first_poll_ms(&mut story), 500, "as if nothing had been seen");
}

/// Every write was seen running after 0.5 s, and the next poll was planned after 1.25 s.
const MIDDLE_MS: u64 = 875;

#[test]
fn a_pause_of_reads_between_two_polls_is_no_part_of_the_operation() {
    let mut story = eight_writes();
    story.until(500);
    answer_polls(&mut story, &state(OperationState::Running));
    story.until(1_250);
    answer_polls(&mut story, &throttled(Some(240)));
    story.until(250_000);
    answer_polls(&mut story, &state(OperationState::Succeeded));
    assert_eq!(first_poll_ms(&mut story), MIDDLE_MS);
}

#[test]
fn a_closed_fence_is_no_part_of_the_operation() {
    let mut story = eight_writes();
    story.until(500);
    answer_polls(&mut story, &state(OperationState::Running));
    story.fence(None).until(240_000);
    story.fence(Some(u64::MAX)).until(240_001);
    answer_polls(&mut story, &state(OperationState::Succeeded));
    assert_eq!(first_poll_ms(&mut story), MIDDLE_MS);
}
