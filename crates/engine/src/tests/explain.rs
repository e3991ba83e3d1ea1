//! Why is it like this? Everything that a service can wait for has its words.

use std::format;
use std::string::String;
use std::vec::Vec;

use expect_test::expect;

use super::story::{check, told};
use crate::explain::WaitsFor;
use sluice_model::Time;
use sluice_model::key::ServiceKey;
use sluice_model::kube::Kind;

#[test]
pub(super) fn a_timeline_says_what_happened_to_a_service() {
    check(
        "service web applied
         #1 failed AnotherOperationInProgress 409 at register
         tick 3
         #2 done
         service web applied port=81->8081
         #3 failed QuotaExceeded 400
         timeline web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 inspect web: read-registration   because outcome unknown
            #3 provision web: register   because retry due
            t=0.2 NotStarted → CreationInProgress, CreationStarted
            t=0.2 #8 started: Provision, 3 steps
            t=0.3 #8 failed at register: AnotherOperationInProgress
            t=0.3 CreationInProgress → NotStarted, OperationFailed
            t=1.4 #9 started: Inspect, 1 steps
            t=3.5 #9 done
            t=3.5 NotStarted → CreationInProgress, CreationStarted
            t=3.5 #10 started: Provision, 1 steps
            t=3.7 #10 failed at register: QuotaExceeded
            t=3.7 parked: QuotaExceeded
            t=3.7 CreationInProgress → NotStarted, OperationFailed
        "#]],
    );
}

#[test]
pub(super) fn the_timeline_of_a_deletion_says_why_it_moved() {
    check(
        "node node-a 192.168.0.1
         endpoints web 10.0.0.4@node-a
         service web applied
         #1 done
         #2 done
         service web applied deleting
         #3 done
         timeline web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 push 10.0.0.4 to node-a for web   because service became ready
            #3 remove node-a   because addresses changed
            #4 deprovision web: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            t=0.4 NotStarted → CreationInProgress, CreationStarted
            t=0.4 #8 started: Provision, 3 steps
            t=0.5 #8 done
            t=0.5 CreationInProgress → Created, OperationSucceeded
            t=0.5 20.1.2.1 published
            t=0.7 Created → DeletionPending, NoLongerDesired
            t=0.7 IP retracted
            t=0.8 DeletionPending → DeletionInProgress, Drained
            t=0.8 #15 started: Deprovision, 4 steps
        "#]],
    );
}

#[test]
pub(super) fn a_service_that_is_as_it_should_be_waits_for_nothing() {
    check(
        "service web applied
         #1 done
         explain web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            web is Created, wanted, live, 20.1.2.1
        "#]],
    );
}

#[test]
pub(super) fn a_service_waits_for_the_gateway() {
    check(
        "azure detaches subnet
         service web known
         lead
         explain web",
        expect![[r#"
            #1 provision gateway: attach-subnet   because start-up
            web is NotStarted, wanted
              waits for the gateway
        "#]],
    );
}

#[test]
pub(super) fn a_service_waits_for_our_finalizer_and_for_kubernetes() {
    check(
        "service web applied nofinalizer
         explain web",
        expect![[r#"
            #1 add finalizer to web   because service applied
            web is NotStarted, wanted
              waits for our finalizer
              waits for a write to Kubernetes
        "#]],
    );
}

#[test]
pub(super) fn a_service_waits_for_its_owner() {
    check(
        "service web applied invalid
         explain web",
        expect![[r#"
            web is NotStarted, wanted
              waits for a change: Internal load balancers (azure-load-balancer-internal) are not supported; remove the annotation
        "#]],
    );
}

#[test]
pub(super) fn a_service_waits_for_its_operation() {
    check(
        "service web applied
         explain web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            web is CreationInProgress, wanted
              waits for operation #1
        "#]],
    );
}

#[test]
pub(super) fn a_service_waits_for_a_slot() {
    check(
        "config slots=1
         service web applied
         service api applied
         explain api",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            api is NotStarted, wanted
              waits for a slot
        "#]],
    );
}

#[test]
pub(super) fn a_service_waits_for_its_next_attempt() {
    check(
        "service web applied
         #1 failed QuotaExceeded 400
         explain web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            web is NotStarted, wanted, parked: QuotaExceeded, 1 failures
              waits for its next attempt at t=515.2: QuotaExceeded
        "#]],
    );
}

#[test]
pub(super) fn a_deletion_waits_for_addresses() {
    check(
        "node node-a 192.168.0.1
         endpoints web 10.0.0.4@node-a
         service web applied
         #1 done
         #2 done
         service web applied deleting
         explain web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 push 10.0.0.4 to node-a for web   because service became ready
            #3 remove node-a   because addresses changed
            web is DeletionPending, not wanted, live, addresses: 0 wanted, 1 programmed, 1 mapped
              waits for 1 addresses
        "#]],
    );
}

#[test]
pub(super) fn a_deletion_waits_for_the_word_of_the_api_server() {
    check(
        "service web applied
         #1 done
         service web vanishes
         services relisted
         explain web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 ask whether web is gone   because service no longer wanted
            web is Created, wanted, live, 20.1.2.1
              waits for the word that its object is gone
        "#]],
    );
}

#[test]
pub(super) fn an_egress_waits_for_the_end_of_its_linger_time() {
    check(
        "config linger=60
         pod p1 egress=blue node=node-a
         #1 done
         #2 done
         pod p1 deleted
         explain blue",
        expect![[r#"
            #1 inspect blue: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because pods came
            #2 provision blue: public-ip, nat-gateway, register   because pods came
            blue is Created, wanted, live, 20.1.2.1
              waits for the end of its linger time at t=60.5
        "#]],
    );
}

#[test]
fn a_service_waits_for_the_lists_of_kubernetes_and_azure() {
    let mut story = super::story::Story::standby(super::story::Story::config());
    story.play("service web applied");
    let waits = story.engine.explain(&story.key("web")).expect("known").waits_for;
    assert_eq!(waits, [WaitsFor::KubernetesLists(Kind::ALL.to_vec()), WaitsFor::AzureListing]);
    story.play("pods relisted\nslices relisted\nhold lists\nlead");
    let waits = story.engine.explain(&story.key("web")).expect("known").waits_for;
    assert_eq!(waits, [WaitsFor::AzureListing]);
}

#[test]
fn what_nobody_knows_has_no_explanation() {
    let story = told("service web applied");
    let nobody = ServiceKey::from_identity("blue").expect("an identity");
    assert_eq!(story.engine.explain(&nobody), None);
}

#[test]
fn a_timeline_keeps_the_latest_moments_and_is_bounded() {
    let mut story = told("service web applied\nplans fail AnotherOperationInProgress 409");
    story.play("#1 failed AnotherOperationInProgress 409\ntick 4000");
    let timeline = story.engine.explain(&story.key("web")).expect("known").timeline;
    assert_eq!(timeline.len(), 24);
    assert!(timeline.iter().all(|(at, _)| *at > Time::from_millis(2_000_000)), "{timeline:?}");
}

#[test]
fn every_input_that_is_not_acted_on_is_remembered_with_the_reason_and_bounded() {
    let mut story = told("service web applied port=81->8081");
    story.play("service web applied stale\nservices relisted stale\npod p1 egress=-x ip=10.1.0.1 node=n");
    let refusals: Vec<String> =
        story.engine.refusals().iter().map(|it| format!("{}: {}", it.what, it.why)).collect();
    expect![[r#"
        [
            "Service at version 1: version 6 has been seen",
            "list of Service at version 1: a newer version has been seen",
            "pod shop/p1: the name does not start with a letter or digit",
        ]
    "#]]
    .assert_debug_eq(&refusals);
    for _ in 0..200 {
        story.play("services relisted stale");
    }
    assert_eq!(story.engine.refusals().len(), 64);
    assert_eq!(story.engine.counters().refusals, 203);
}

#[test]
fn services_are_listed_by_key_with_what_they_have() {
    let story = told(
        "node node-a 192.168.0.1
         pod p1 egress=blue ip=10.1.0.1 node=node-a
         service web applied
         #2 done",
    );
    let all = story.engine.services();
    assert_eq!(all.len(), 2);
    assert!(all.is_sorted_by(|a, b| a.key < b.key));
    assert!(all.iter().any(|it| it.live && it.public_ip.is_some()));
    assert_eq!(story.engine.slots(), (1, 0));
}
