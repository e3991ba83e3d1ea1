//! Plans: steps in order, one report, and what each answer means for a step.

use std::vec;
use std::vec::Vec;

use expect_test::expect;
use sluice_model::azure::{GatewayBody, LoadBalancer, Provisioning, Tags};
use sluice_model::call::{Answer, Body, OperationState, Payload, Reply};
use sluice_model::{EffectId, Step};

use crate::{StepEnd, StepNote};

use super::story::{
    Story, deprovision, gateway_with, load_balancer, load_balancer_id, managed, managed_ip, meta,
    nat_gateway_id, page, provision, public_ip, public_ip_id, put_load_balancer, put_nat_gateway,
    put_public_ip, registration, scope, subnet,
};

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
        t=0.5 call 2 for #1: poll operations/op1
        t=2.5 call 3 for #1: get publicIPAddresses/web-pip
        t=2.6 call 4 for #1: put loadBalancers/web
        t=3.1 call 5 for #1: poll operations/op4
        t=9.1 #1 gives its slot back: shared commit
        t=9.1 call 6 for #1: commit +web
        t=9.9 #1 done: [Some(198.18.0.1), done, done]
    "#]]
    .assert_eq(&story.told());
    assert_eq!((story.updaters.numbers().writes(), story.updaters.numbers().reads()), (3, 3));
}

#[test]
fn a_teardown_asks_for_a_slot_after_each_shared_commit() {
    let mut story = Story::new();
    story.plan(1, deprovision("web"));
    story.until(500).answer(1, 200, Payload::None);
    story.until(600).resume(1).answer(2, 200, managed(load_balancer("web"))).accept(3);
    story.until(2_600).poll(4, OperationState::Succeeded);
    story.until(3_000).answer(5, 204, Payload::None);
    story.resume(1).answer(6, 200, managed_ip("web")).until(3_100).answer(7, 204, Payload::None);
    expect![[r#"
        t=0.0 #1 gives its slot back: shared commit
        t=0.0 call 1 for #1: commit +web
        t=0.5 #1 wants a slot
        t=0.6 call 2 for #1: get loadBalancers/web
        t=0.6 call 3 for #1: delete loadBalancers/web if 1
        t=1.1 call 4 for #1: poll operations/op3
        t=2.6 #1 gives its slot back: shared commit
        t=2.6 call 5 for #1: commit -web
        t=3.0 #1 wants a slot
        t=3.0 call 6 for #1: get publicIPAddresses/web-pip
        t=3.0 call 7 for #1: delete publicIPAddresses/web-pip if 1
        t=3.1 #1 done: [done, done, done, done]
    "#]]
    .assert_eq(&story.told());
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

#[test]
fn a_step_that_fails_ends_the_plan_and_tells_what_was_done_before() {
    let mut story = Story::new();
    story.plan(1, provision("web"));
    story.answer(1, 201, public_ip("web", Provisioning::Succeeded));
    story.refuse(2, 400, "QuotaExceeded");
    expect![[r#"
        t=0.0 call 1 for #1: put publicIPAddresses/web-pip
        t=0.0 call 2 for #1: put loadBalancers/web
        t=0.0 #1 failed QuotaExceeded (quota): [Some(198.18.0.1)]
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn a_write_that_is_finished_at_once_is_neither_polled_nor_read_back() {
    let mut story = Story::new();
    story.plan(1, vec![put_public_ip("web")]);
    let finished = Answer::new(200, public_ip("web", Provisioning::Succeeded));
    let operation = Some(scope().resource("operations", "1"));
    story.reply(1, Reply::Answered(Answer { operation, ..finished }));
    expect![[r#"
        t=0.0 call 1 for #1: put publicIPAddresses/web-pip
        t=0.0 #1 done: [Some(198.18.0.1)]
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn a_write_without_an_operation_is_watched_in_the_resource_itself() {
    let mut story = Story::new();
    story.plan(1, vec![put_public_ip("web")]);
    story.answer(1, 201, public_ip("web", Provisioning::Updating));
    story.until(2_500).answer(2, 200, public_ip("web", Provisioning::Updating));
    story.until(2_900).answer(3, 200, public_ip("web", Provisioning::Succeeded));
    expect![[r#"
        t=0.0 call 1 for #1: put publicIPAddresses/web-pip
        t=0.5 call 2 for #1: get publicIPAddresses/web-pip
        t=2.6 call 3 for #1: get publicIPAddresses/web-pip
        t=2.9 #1 done: [Some(198.18.0.1)]
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn what_is_not_there_is_deleted() {
    for reply in [
        Reply::Answered(Answer::new(200, Payload::None)),
        Reply::Answered(Answer::new(204, Payload::None)),
        super::story::refused(404, "ResourceNotFound"),
    ] {
        let mut story = Story::new();
        story.plan(1, vec![Step::DeleteNatGateway(nat_gateway_id("blue"))]);
        story.refuse(1, 404, "ResourceNotFound").reply(2, reply);
        assert!(story.told().contains("#1 done: [done]"));
    }
}

#[test]
fn a_public_ip_that_something_uses_stays_and_the_plan_says_so() {
    let mut story = Story::new();
    story.plan(1, vec![Step::DeletePublicIp(public_ip_id("web"))]);
    story.answer(1, 200, managed_ip("web")).refuse(2, 400, "PublicIPAddressCannotBeDeleted");
    story.plan(2, vec![Step::ReleasePublicIp(public_ip_id("web"))]);
    story.answer(3, 200, managed_ip("web"));
    story.answer(4, 200, public_ip("web", Provisioning::Succeeded));
    expect![[r#"
        t=0.0 call 1 for #1: get publicIPAddresses/web-pip
        t=0.0 call 2 for #1: delete publicIPAddresses/web-pip if 1
        t=0.0 #1 failed PublicIPAddressCannotBeDeleted (in-use): []
        t=0.0 call 3 for #2: get publicIPAddresses/web-pip
        t=0.0 call 4 for #2: patch tags of publicIPAddresses/web-pip if 1
        t=0.0 #2 done: [Some(198.18.0.1)]
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn provisioning_that_failed_is_a_failure_wherever_it_shows() {
    let mut story = Story::new();
    story.plan(1, vec![put_load_balancer("web")]);
    let failed = LoadBalancer {
        meta: meta(load_balancer_id("web"), Provisioning::Failed),
        public_ip: None,
        pools: Vec::new(),
        rules: Vec::new(),
        edited: false,
    };
    story.answer(1, 200, Payload::LoadBalancer(failed));
    story.plan(2, vec![put_public_ip("web")]);
    story.accept(2).until(2_500).poll(3, OperationState::Succeeded);
    story.answer(4, 200, public_ip("web", Provisioning::Failed));
    expect![[r#"
        t=0.0 call 1 for #1: put loadBalancers/web
        t=0.0 #1 failed ProvisioningFailed (transient): []
        t=0.0 call 2 for #2: put publicIPAddresses/web-pip
        t=0.5 call 3 for #2: poll operations/op2
        t=2.5 call 4 for #2: get publicIPAddresses/web-pip
        t=2.5 #2 failed ProvisioningFailed (transient): []
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn a_read_that_lags_behind_the_write_is_repeated() {
    let mut story = Story::new();
    story.plan(1, vec![put_public_ip("web")]);
    story.accept(1).until(2_500).poll(2, OperationState::Succeeded);
    story.refuse(3, 404, "ResourceNotFound").until(3_100);
    story.answer(4, 200, public_ip("web", Provisioning::Updating)).until(4_200);
    story.answer(5, 200, public_ip("web", Provisioning::Succeeded));
    expect![[r#"
        t=0.0 call 1 for #1: put publicIPAddresses/web-pip
        t=0.5 call 2 for #1: poll operations/op1
        t=2.5 call 3 for #1: get publicIPAddresses/web-pip
        t=3.0 call 4 for #1: get publicIPAddresses/web-pip
        t=4.1 call 5 for #1: get publicIPAddresses/web-pip
        t=4.2 #1 done: [Some(198.18.0.1)]
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn reads_tell_what_is_there_and_what_is_not() {
    let mut story = Story::new();
    let steps = vec![
        Step::ReadPublicIp(public_ip_id("web")),
        Step::ReadLoadBalancer(load_balancer_id("web")),
        Step::ReadNatGateway(nat_gateway_id("blue")),
        Step::ReadRegistration("WEB".into()),
        Step::ReadRegistration("blue".into()),
    ];
    story.plan(1, steps);
    story.answer(1, 200, public_ip("web", Provisioning::Succeeded));
    story.refuse(2, 404, "ResourceNotFound").refuse(3, 404, "NotFound");
    story.answer(4, 200, Payload::Registrations(page(vec![registration("web")], None)));
    story.answer(5, 200, Payload::Registrations(page(vec![registration("web")], None)));
    expect![[r#"
        t=0.0 call 1 for #1: get publicIPAddresses/web-pip
        t=0.0 call 2 for #1: get loadBalancers/web
        t=0.0 call 3 for #1: get natGateways/blue
        t=0.0 call 4 for #1: list servicegateway/services
        t=0.0 1 registrations read as of 0.0
        t=0.0 call 5 for #1: list servicegateway/services
        t=0.0 #1 done: [Some(198.18.0.1), absent, absent, registration web, absent]
        t=0.0 1 registrations read as of 0.0
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn one_list_serves_all_that_asked_before_it_began() {
    let mut story = Story::new();
    story.plan(1, vec![Step::ReadRegistration("a".into())]);
    story.plan(2, vec![Step::ReadRegistration("b".into())]);
    story.plan(3, vec![Step::ReadRegistration("c".into())]);
    story.answer(1, 200, Payload::Registrations(page(vec![registration("a")], None)));
    story.answer(2, 200, Payload::Registrations(page(vec![registration("c")], None)));
    expect![[r#"
        t=0.0 call 1 for #1: list servicegateway/services
        t=0.0 #1 done: [registration a]
        t=0.0 1 registrations read as of 0.0
        t=0.0 call 2 for #2: list servicegateway/services
        t=0.0 #2 done: [absent]
        t=0.0 #3 done: [registration c]
        t=0.0 1 registrations read as of 0.0
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn a_subnet_is_attached_with_the_rest_as_it_was_and_only_once() {
    let gateway = scope().gateway_id();
    let step = || vec![Step::AttachSubnet { subnet: scope().subnet_id(), gateway: scope().gateway_id() }];
    let mut story = Story::new();
    story.plan(1, step()).answer(1, 200, subnet(None));
    let sent = story.sent.values().next().map(|request| request.body.clone());
    assert!(matches!(sent, Some(Body::Subnet(body))
        if &*body.rest == "as it was" && body.gateway == Some(gateway.clone())));
    story.answer(2, 200, subnet(Some(gateway.clone())));
    story.plan(2, step()).answer(3, 200, subnet(Some(gateway)));
    story.plan(3, step()).answer(4, 200, subnet(None)).refuse(5, 412, "PreconditionFailed");
    // Somebody was faster, and it is read again.
    story.answer(6, 200, subnet(Some(scope().resource("serviceGateways", "another"))));
    expect![[r#"
        t=0.0 call 1 for #1: get subnets/pods
        t=0.0 call 2 for #1: put subnets/pods if e7
        t=0.0 #1 done: [done]
        t=0.0 call 3 for #2: get subnets/pods
        t=0.0 #2 done: [done]
        t=0.0 call 4 for #3: get subnets/pods
        t=0.0 call 5 for #3: put subnets/pods if e7
        t=0.0 call 6 for #3: get subnets/pods
        t=0.0 #3 failed SubnetAttachedElsewhere (rejected): []
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn a_gateway_is_claimed_by_tags_alone_and_keeps_those_that_it_carries() {
    let claim = || vec![Step::ClaimGateway { id: scope().gateway_id(), tags: scope().gateway_tags() }];
    let there = |tags: &[(&str, &str)]| gateway_with(tags, Provisioning::Succeeded);
    let cluster = scope().cluster_id;
    let claimed: &[(&str, &str)] = &[("sluice-cluster", &*cluster), ("team", "network")];
    let mut story = Story::new();
    story.plan(1, claim()).answer(1, 200, there(&[("team", "network")]));
    let sent = story.sent.values().next().map(|request| request.body.clone());
    let merged: Tags = claimed.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    assert_eq!(sent, Some(Body::Tags(merged)));
    story.answer(2, 200, there(claimed));
    story.plan(2, claim()).answer(3, 200, there(claimed));
    story.plan(3, claim()).answer(4, 200, there(&[])).refuse(5, 412, "PreconditionFailed");
    // Somebody was faster, and it is read again.
    story.answer(6, 200, there(&[("sluice-cluster", "another")]));
    story.plan(5, claim()).refuse(7, 404, "ResourceNotFound");
    expect![[r#"
        t=0.0 call 1 for #1: get serviceGateways/servicegateway
        t=0.0 call 2 for #1: patch tags of serviceGateways/servicegateway if 1
        t=0.0 #1 done: [done]
        t=0.0 call 3 for #2: get serviceGateways/servicegateway
        t=0.0 #2 done: [done]
        t=0.0 call 4 for #3: get serviceGateways/servicegateway
        t=0.0 call 5 for #3: patch tags of serviceGateways/servicegateway if 1
        t=0.0 call 6 for #3: get serviceGateways/servicegateway
        t=0.0 #3 failed ClaimedElsewhere (rejected): []
        t=0.0 call 7 for #5: get serviceGateways/servicegateway
        t=0.0 #5 failed ResourceNotFound (not-found): []
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn a_failed_gateway_is_written_back_as_it_was_read() {
    let repair = || vec![Step::RepairGateway(scope().gateway_id())];
    let mut story = Story::new();
    let cluster = scope().cluster_id;
    let claimed = [("sluice-cluster", &*cluster), ("team", "network")];
    story.plan(1, repair()).answer(1, 200, gateway_with(&claimed, Provisioning::Failed));
    let sent = story.sent.values().next().map(|request| request.body.clone());
    assert!(matches!(sent, Some(Body::GatewayAsRead(gateway)) if &*gateway.document == "as it was"));
    story.accept(2).until(10_000).poll(3, OperationState::Succeeded);
    story.plan(2, repair()).answer(4, 200, gateway_with(&[], Provisioning::Succeeded));
    expect![[r#"
        t=0.0 call 1 for #1: get serviceGateways/servicegateway
        t=0.0 call 2 for #1: put serviceGateways/servicegateway if 1
        t=0.5 call 3 for #1: poll operations/op2
        t=10.0 #1 done: [done]
        t=10.0 call 4 for #2: get serviceGateways/servicegateway
        t=10.0 #2 done: [done]
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn a_gateway_and_a_nat_gateway_are_written_and_polled() {
    let mut story = Story::new();
    let body = GatewayBody {
        virtual_network: scope().virtual_network_id(),
        route_target_subnet: scope().subnet_id(),
        route_target_address: None,
        route_target_address_v6: None,
        tags: Tags::new(),
    };
    story.plan(1, vec![Step::PutGateway { id: scope().gateway_id(), body }, put_nat_gateway("blue")]);
    story.accept(1).until(10_000).poll(2, OperationState::Succeeded);
    story.accept(3).until(16_500).poll(4, OperationState::Succeeded);
    expect![[r#"
        t=0.0 call 1 for #1: put serviceGateways/servicegateway
        t=0.5 call 2 for #1: poll operations/op1
        t=10.0 call 3 for #1: put natGateways/blue
        t=10.5 call 4 for #1: poll operations/op3
        t=16.5 #1 done: [done, done]
    "#]]
    .assert_eq(&story.told());
}

#[test]
fn an_answer_that_does_not_fit_fails_for_the_moment_and_breaks_nothing() {
    for (step, status, payload) in [
        (put_load_balancer("web"), 200, public_ip("web", Provisioning::Succeeded)),
        (put_load_balancer("web"), 200, Payload::None),
        (put_public_ip("web"), 200, Payload::Operation(OperationState::Succeeded)),
        (Step::DeletePublicIp(public_ip_id("web")), 200, Payload::Locations(page(Vec::new(), None))),
        (Step::ReadLoadBalancer(load_balancer_id("web")), 200, public_ip("web", Provisioning::Succeeded)),
        (Step::Register(registration("web")), 200, public_ip("web", Provisioning::Succeeded)),
        (
            Step::AttachSubnet { subnet: scope().subnet_id(), gateway: scope().gateway_id() },
            200,
            Payload::None,
        ),
        (Step::RepairGateway(scope().gateway_id()), 200, subnet(None)),
    ] {
        let mut story = Story::new();
        story.plan(1, vec![step]).quietly();
        story.answer(1, status, payload);
        let told = story.told();
        assert!(told.contains("#1 failed UnexpectedAnswer (transient): []"), "{told}");
    }
}

#[test]
fn a_number_that_runs_already_is_not_run_twice() {
    let mut story = Story::new();
    story.plan(1, vec![put_load_balancer("web")]).quietly();
    story.plan(1, vec![put_load_balancer("web")]);
    assert_eq!(story.told(), "\n");
    let effect = sluice_model::Effect {
        id: EffectId(2),
        action: sluice_model::Action::Relist(sluice_model::kube::Kind::Pod),
        cause: sluice_model::effect::Cause::StartUp,
    };
    assert!(!story.updaters.start(story.now, &effect));
}

#[test]
fn every_step_says_when_it_began_how_long_it_took_and_how_it_ended() {
    let mut story = Story::new();
    story.plan(1, provision("web"));
    story.until(100).answer(1, 201, public_ip("web", Provisioning::Succeeded));
    story.until(700).refuse(2, 400, "QuotaExceeded");
    let mut told = std::string::String::new();
    while let Some(note) = story.updaters.next_step_note() {
        let StepNote { effect, number, of, step, at, end } = note;
        told += &std::format!("t={at} {effect} {number}/{of} {step}");
        told += &match end {
            None => " begins\n".into(),
            Some(StepEnd { took, failure: None }) => std::format!(" took {took:?}\n"),
            Some(StepEnd { took, failure: Some(why) }) => std::format!(" took {took:?}: {}\n", why.code),
        };
    }
    expect![[r#"
        t=0.0 #1 1/3 public-ip begins
        t=0.1 #1 1/3 public-ip took 100ms
        t=0.1 #1 2/3 load-balancer begins
        t=0.7 #1 2/3 load-balancer took 600ms: QuotaExceeded
    "#]]
    .assert_eq(&told);
}

#[test]
fn notes_that_nobody_takes_are_dropped_oldest_first() {
    let mut story = Story::new();
    for plan in 1..=5_000 {
        story.plan(plan, vec![put_load_balancer("web")]).quietly();
    }
    let first = story.updaters.next_step_note().expect("the newest are kept");
    assert_eq!(first.effect, EffectId(5_000 - 4_096 + 1));
}
