//! Plans: steps in order, one report, slots given back and asked for.

use std::vec::Vec;

use expect_test::expect;
use sluice_model::azure::Provisioning;
use sluice_model::call::{OperationState, Payload};

use super::story::{Story, provision, public_ip};

#[test]
fn a_service_is_made_step_by_step_and_reported_once() {
    let mut story = Story::new();
    story.plan(1, provision("web"));
    story.until(100).accept(1);
    story.until(2_500).poll(2, OperationState::Succeeded);
    story.until(2_600).answer(3, 200, public_ip("web", Provisioning::Succeeded));
    story.until(2_700).accept(4);
    story.until(9_100).poll(5, OperationState::Succeeded);
    story.until(9_900).answer(6, 200, Payload::None);
    expect![[r#"
        t=0.0 call 1 for #1: put publicIPAddresses/web-pip
        t=2.5 call 2 for #1: poll operations/op1
        t=2.5 call 3 for #1: get publicIPAddresses/web-pip
        t=2.6 call 4 for #1: put loadBalancers/web
        t=9.1 call 5 for #1: poll operations/op4
        t=9.1 #1 gives its slot back: shared commit
        t=9.1 call 6 for #1: commit +web
        t=9.9 #1 done: [Some(198.18.0.1), done, done]
    "#]]
    .assert_eq(&story.told());
    assert_eq!((story.updaters.numbers().writes(), story.updaters.numbers().reads()), (3, 3));
}

#[test]
fn a_plan_without_steps_is_done_at_once() {
    let mut story = Story::new();
    story.plan(1, Vec::new());
    expect![[r#"
        t=0.0 #1 done: []
    "#]]
    .assert_eq(&story.told());
}
