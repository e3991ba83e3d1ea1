//! What exists is read right before it is changed or deleted, and written only as that version.

use std::format;
use std::string::String;
use std::vec;
use std::vec::Vec;

use expect_test::expect;
use sluice_model::Step;
use sluice_model::azure::{Provisioning, Tags};
use sluice_model::call::{Body, Payload, Request};

use super::story::{
    Story, load_balancer, load_balancer_id, managed, managed_ip, nat_gateway_id, public_ip, public_ip_id,
    put_load_balancer, put_nat_gateway, put_public_ip,
};
use crate::CallId;

/// The step, for what exists by the last look.
fn of_existing(mut step: Step) -> Step {
    match &mut step {
        Step::PutPublicIp { exists, .. }
        | Step::PutLoadBalancer { exists, .. }
        | Step::PutNatGateway { exists, .. } => *exists = true,
        _ => {}
    }
    step
}

fn sent(story: &Story, call: u64) -> &Request {
    &story.sent[&CallId(call)]
}

#[test]
fn what_is_made_is_not_read_and_what_exists_is() {
    let mut story = Story::new();
    story.plan(1, vec![put_load_balancer("web")]);
    story.plan(2, vec![of_existing(put_load_balancer("api"))]).answer(2, 200, managed(load_balancer("api")));
    story.plan(3, vec![of_existing(put_nat_gateway("blue"))]);
    story.plan(4, vec![Step::DeletePublicIp(public_ip_id("old"))]).answer(5, 200, managed_ip("old"));
    expect![[r#"
        t=0.0 call 1 for #1: put loadBalancers/web
        t=0.0 call 2 for #2: get loadBalancers/api
        t=0.0 call 3 for #2: put loadBalancers/api if 1
        t=0.0 call 4 for #3: get natGateways/blue
        t=0.0 call 5 for #4: get publicIPAddresses/old-pip
        t=0.0 call 6 for #4: delete publicIPAddresses/old-pip if 1
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn a_write_carries_the_tags_of_others_as_they_are_at_that_moment() {
    let mut story = Story::new();
    let mut step = of_existing(put_public_ip("web"));
    if let Step::PutPublicIp { body, .. } = &mut step {
        body.tags = Tags::from([("sluice-owner".into(), "service/shop/web".into())]);
    }
    story.plan(1, vec![step]).answer(1, 200, managed_ip("web"));
    let Body::PublicIp(body) = &sent(&story, 2).body else { panic!("a public IP is written") };
    let tags: Vec<String> = body.tags.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(tags, ["sluice-cluster=cluster", "sluice-owner=service/shop/web", "theirs=yes"]);
}

#[test]
fn a_resource_that_has_lost_our_tag_is_neither_written_nor_deleted() {
    for step in [of_existing(put_public_ip("web")), Step::DeletePublicIp(public_ip_id("web"))] {
        let mut story = Story::new();
        story.plan(1, vec![step]).answer(1, 200, public_ip("web", Provisioning::Succeeded));
        expect![[r#"
            t=0.0 call 1 for #1: get publicIPAddresses/web-pip
            t=0.0 #1 failed NotManaged (rejected): []
        "#]]
        .assert_eq(&story.told());
    }
    let mut story = Story::new();
    story.plan(1, vec![Step::ReleasePublicIp(public_ip_id("web"))]);
    story.answer(1, 200, public_ip("web", Provisioning::Succeeded)).answer(2, 200, Payload::None);
    assert!(story.told().contains("#1 done: [Some(198.18.0.1)]"));
}

#[test]
fn a_resource_that_changed_after_it_was_read_is_read_again_at_once_three_times() {
    let mut story = Story::new();
    story.plan(1, vec![Step::DeleteLoadBalancer(load_balancer_id("web"))]);
    for call in [1, 3, 5, 7] {
        story.answer(call, 200, managed(load_balancer("web")));
        story.refuse(call + 1, 412, "PreconditionFailed");
    }
    expect![[r#"
        t=0.0 call 1 for #1: get loadBalancers/web
        t=0.0 call 2 for #1: delete loadBalancers/web if 1
        t=0.0 call 3 for #1: get loadBalancers/web
        t=0.0 call 4 for #1: delete loadBalancers/web if 1
        t=0.0 call 5 for #1: get loadBalancers/web
        t=0.0 call 6 for #1: delete loadBalancers/web if 1
        t=0.0 call 7 for #1: get loadBalancers/web
        t=0.0 call 8 for #1: delete loadBalancers/web if 1
        t=0.0 #1 failed PreconditionFailed (transient): []
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn what_a_read_does_not_show_is_deleted_all_the_same_because_reads_can_be_behind() {
    let mut story = Story::new();
    story.plan(1, vec![Step::DeleteNatGateway(nat_gateway_id("blue"))]).refuse(1, 404, "ResourceNotFound");
    story.plan(2, vec![of_existing(put_load_balancer("web"))]).refuse(3, 404, "ResourceNotFound");
    expect![[r#"
        t=0.0 call 1 for #1: get natGateways/blue
        t=0.0 call 2 for #1: delete natGateways/blue
        t=0.0 call 3 for #2: get loadBalancers/web
        t=0.0 call 4 for #2: put loadBalancers/web
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn what_was_just_made_and_is_not_shown_yet_is_not_written_without_its_version() {
    let mut story = Story::new();
    story.plan(1, vec![put_load_balancer("web")]).answer(1, 200, managed(load_balancer("web")));
    story.plan(2, vec![of_existing(put_load_balancer("web"))]).refuse(2, 404, "ResourceNotFound");
    expect![[r#"
        t=0.0 call 1 for #1: put loadBalancers/web
        t=0.0 #1 done: [done]
        t=0.0 call 2 for #2: get loadBalancers/web
        t=0.0 #2 failed ReadLagsBehind (transient): []
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn what_we_have_deleted_ourselves_is_made_again_at_once() {
    let mut story = Story::new();
    story.plan(1, vec![put_load_balancer("web")]).answer(1, 200, managed(load_balancer("web")));
    let delete = Step::DeleteLoadBalancer(load_balancer_id("web"));
    story.plan(2, vec![delete]).answer(2, 200, managed(load_balancer("web"))).answer(3, 204, Payload::None);
    story.plan(3, vec![of_existing(put_load_balancer("web"))]).refuse(4, 404, "ResourceNotFound");
    expect![[r#"
        t=0.0 call 1 for #1: put loadBalancers/web
        t=0.0 #1 done: [done]
        t=0.0 call 2 for #2: get loadBalancers/web
        t=0.0 call 3 for #2: delete loadBalancers/web if 1
        t=0.0 #2 done: [done]
        t=0.0 call 4 for #3: get loadBalancers/web
        t=0.0 call 5 for #3: put loadBalancers/web
    "#]]
    .assert_eq(&story.told());
}
