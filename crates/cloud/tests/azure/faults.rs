//! What goes wrong with one request, and what that leaves behind.

use sluice_cloud::{Config, Fault};
use sluice_model::azure::*;
use sluice_model::call::*;
use std::time::Duration;

use crate::support::*;

fn lag(seconds: u64) -> Fault {
    Fault::LaggingReads { duration: Duration::from_secs(seconds) }
}

#[test]
fn a_refusal_is_given_word_for_word_and_changes_nothing() {
    let mut scene = Scene::new();
    let before = scene.cloud.state().clone();
    let fault = Fault::Refuse {
        status: 429,
        code: "TooManyRequests".into(),
        message: "wait".into(),
        retry_after: Some(Duration::from_secs(17)),
    };
    let answer = scene.send_faulty(&scene.put_ip("a"), fault);
    assert_eq!(code(&answer), refusal(429, "TooManyRequests"));
    assert_eq!(answer.retry_after, Some(Duration::from_secs(17)));
    assert_eq!(*scene.cloud.state(), before);
}

#[test]
fn a_refusal_costs_the_call_and_an_unsent_request_does_not() {
    let mut scene = Scene::with(Config::default());
    let request = scene.put_ip("a");
    let fault = Fault::Refuse { status: 500, code: "X".into(), message: "".into(), retry_after: None };
    assert_eq!(scene.send_faulty(&request, fault).remaining, Some(199));
    let reply = scene.cloud.handle_faulty(scene.now, &request, &Fault::NotSent);
    assert!(matches!(reply, Reply::NotSent(_)));
    assert_eq!(scene.send(&request).remaining, Some(198));
}

#[test]
fn what_is_lost_may_or_may_not_have_been_done() {
    let mut scene = Scene::new();
    let request = scene.put_ip("a");
    assert!(matches!(scene.cloud.handle_faulty(scene.now, &request, &Fault::LostUnapplied), Reply::Lost(_)));
    assert!(scene.cloud.state().public_ips.is_empty());
    assert!(matches!(scene.cloud.handle_faulty(scene.now, &request, &Fault::AppliedButLost), Reply::Lost(_)));
    assert_eq!(scene.cloud.state().public_ips.len(), 1);
}

#[test]
fn an_answer_can_be_a_lie() {
    let mut scene = Scene::new();
    let answer = scene.send_faulty(&scene.put_ip("a"), Fault::AnsweredButNotApplied);
    assert_eq!(answer.status, 201);
    let operation = answer.operation.unwrap();
    assert_eq!(scene.poll(&operation), OperationState::Running);
    assert!(scene.cloud.state().public_ips.is_empty());
    // The lie keeps nobody waiting, and its names are not given away twice.
    let honest = scene.send(&scene.put_ip("a"));
    assert_eq!(honest.status, 201);
    assert_ne!(honest.operation, Some(operation.clone()));
    scene.wait(3);
    assert_eq!(scene.poll(&operation), OperationState::Succeeded);
}

#[test]
fn a_lie_about_a_post_leaves_the_gateway_as_it_was() {
    let mut scene = Scene::new();
    scene.make_service("web");
    let request = scene.locations(vec![at("10.1.0.4", &[("10.2.0.9", &["web"])])]);
    assert_eq!(scene.send_faulty(&request, Fault::AnsweredButNotApplied).status, 202);
    scene.wait(10);
    assert_eq!(scene.cloud.state().locations(&scene.gateway()).count(), 0);
}

#[test]
fn an_endless_operation_keeps_its_resource_until_the_cloud_is_calm() {
    let mut scene = Scene::new();
    let answer = scene.send_faulty(&scene.put_ip("a"), Fault::OperationNeverEnds);
    scene.wait(86_400);
    let operation = answer.operation.unwrap();
    assert_eq!(scene.poll(&operation), OperationState::Running);
    assert_eq!(scene.cloud.next_deadline(), None);
    let again = scene.put_ip("a");
    assert_eq!(scene.refused(&again), refusal(429, "RetryableErrorDueToAnotherOperation"));
    scene.cloud.calm();
    scene.wait(3);
    assert_eq!(scene.poll(&operation), OperationState::Succeeded);
}

#[test]
fn a_failed_write_leaves_a_failed_resource_that_can_be_written_again() {
    let mut scene = Scene::new();
    let code_given = Fault::OperationFails { code: "InternalServerError".into() };
    let operation = scene.send_faulty(&scene.put_ip("web-pip"), code_given).operation.unwrap();
    scene.wait(3);
    let OperationState::Failed(error) = scene.poll(&operation) else { panic!() };
    assert_eq!(&*error.code, "InternalServerError");
    let failed = &scene.cloud.state().public_ips[&scene.public_ip("web-pip")];
    assert_eq!((failed.meta.provisioning, failed.address), (Provisioning::Failed, None));

    let user = scene.put_lb("web", &[]);
    assert_eq!(scene.refused(&user), refusal(400, "ReferencedResourceNotProvisioned"));
    scene.done(&scene.put_ip("web-pip"));
    scene.done(&user);
}

#[test]
fn a_failed_or_cancelled_deletion_deletes_nothing() {
    for fault in [Fault::OperationFails { code: "X".into() }, Fault::OperationCanceled] {
        let mut scene = Scene::new();
        scene.done(&scene.put_ip("a"));
        let delete = scene.delete(&scene.public_ip("a"));
        let operation = scene.send_faulty(&delete, fault).operation.unwrap();
        scene.wait(3);
        let state = scene.poll(&operation);
        assert!(matches!(state, OperationState::Failed(_) | OperationState::Canceled(_)), "{state:?}");
        let left = &scene.cloud.state().public_ips[&scene.public_ip("a")];
        assert_eq!(left.meta.provisioning, Provisioning::Failed);
        scene.done(&delete);
    }
}

#[test]
fn a_failed_post_changes_nothing() {
    let mut scene = Scene::new();
    scene.make_lb("web");
    let request = scene.services(vec![write(scene.inbound("web"))]);
    scene.send_faulty(&request, Fault::OperationFails { code: "X".into() });
    scene.wait(3);
    assert_eq!(scene.cloud.state().registrations(&scene.gateway()).count(), 0);
}

#[test]
fn an_operation_can_succeed_and_the_resource_be_failed() {
    let mut scene = Scene::new();
    scene.done(&scene.put_ip("web-pip"));
    let operation = scene.send_faulty(&scene.put_lb("web", &[]), Fault::ProvisioningFails).operation.unwrap();
    scene.wait(8);
    assert_eq!(scene.poll(&operation), OperationState::Succeeded);
    let Payload::LoadBalancer(failed) = scene.get(&scene.load_balancer("web")).payload else { panic!() };
    assert_eq!(failed.meta.provisioning, Provisioning::Failed);
}

#[test]
fn a_lagging_write_is_seen_late() {
    let mut scene = Scene::new();
    let id = scene.public_ip("a");
    scene.send_faulty(&scene.put_ip("a"), lag(5));
    let list = Request::bare(Method::List, scene.scope.collection("publicIPAddresses"));
    assert_eq!(scene.get(&id).status, 404);
    let Payload::PublicIps(page) = scene.send(&list).payload else { panic!() };
    assert_eq!(page.items.len(), 0);
    scene.wait_ms(4_999);
    assert_eq!(scene.get(&id).status, 404);
    scene.wait_ms(1);
    assert_eq!(scene.get(&id).status, 200);
    let Payload::PublicIps(page) = scene.send(&list).payload else { panic!() };
    assert_eq!(page.items.len(), 1);
}

#[test]
fn a_lagging_deletion_shows_the_resource_after_it_is_gone() {
    let mut scene = Scene::new();
    scene.done(&scene.put_ip("a"));
    let id = scene.public_ip("a");
    let operation = scene.send_faulty(&scene.delete(&id), lag(10)).operation.unwrap();
    scene.wait(3);
    assert_eq!(scene.poll(&operation), OperationState::Succeeded);
    assert!(scene.cloud.state().public_ips.is_empty());
    assert_eq!(scene.get(&id).status, 200);
    let list = Request::bare(Method::List, scene.scope.collection("publicIPAddresses"));
    let Payload::PublicIps(page) = scene.send(&list).payload else { panic!() };
    assert_eq!(page.items.len(), 1);
    scene.wait(10);
    assert_eq!(scene.get(&id).status, 404);
}

#[test]
fn no_read_lags_longer_than_ten_seconds() {
    let mut scene = Scene::new();
    let id = scene.public_ip("a");
    scene.send_faulty(&scene.put_ip("a"), lag(3_600));
    scene.wait_ms(9_999);
    assert_eq!(scene.get(&id).status, 404);
    scene.wait_ms(1);
    assert_eq!(scene.get(&id).status, 200);
}

#[test]
fn a_lagging_post_is_seen_late_from_its_effect_on() {
    let mut scene = Scene::new();
    scene.make_service("web");
    let list = Request::bare(Method::List, ArmId::new(format!("{}/addressLocations", scene.gateway())));
    let count = |scene: &mut Scene| match scene.send(&list).payload {
        Payload::Locations(page) => page.items.len(),
        payload => panic!("{payload:?}"),
    };
    scene.send_faulty(&scene.locations(vec![at("10.1.0.4", &[("10.2.0.9", &["web"])])]), lag(5));
    scene.wait(2);
    assert_eq!(scene.cloud.state().locations(&scene.gateway()).count(), 1);
    assert_eq!(count(&mut scene), 0);
    scene.wait(5);
    assert_eq!(count(&mut scene), 1);
}

#[test]
fn of_two_lagging_writes_the_older_state_is_seen_first() {
    let mut scene = Scene::new();
    scene.done(&scene.put_ip("web-pip"));
    scene.send_faulty(&scene.put_lb("web", &[tcp(80, 80)]), lag(10));
    scene.wait(8);
    let id = scene.load_balancer("web");
    scene.send_faulty(&scene.put_lb("web", &[tcp(81, 81)]), lag(10));
    assert_eq!(scene.get(&id).status, 404);
    let list = Request::bare(Method::List, scene.scope.collection("loadBalancers"));
    let Payload::LoadBalancers(page) = scene.send(&list).payload else { panic!() };
    assert_eq!(page.items, []);
    scene.wait(2);
    let Payload::LoadBalancer(seen) = scene.get(&id).payload else { panic!() };
    assert_eq!(seen.rules, [tcp(80, 80)]);
    scene.wait(8);
    let Payload::LoadBalancer(seen) = scene.get(&id).payload else { panic!() };
    assert_eq!(seen.rules, [tcp(81, 81)]);
}

#[test]
fn a_calm_cloud_does_not_lag() {
    let mut scene = Scene::new();
    scene.send_faulty(&scene.put_ip("a"), lag(10));
    scene.cloud.calm();
    let id = scene.public_ip("a");
    assert_eq!(scene.get(&id).status, 200);
}

#[test]
fn unknown_words_stand_where_words_can_be_new() {
    let mut scene = Scene::new();
    scene.make_lb("web");
    let get = Request::bare(Method::Get, scene.load_balancer("web"));
    let Payload::LoadBalancer(seen) = scene.send_faulty(&get, Fault::UnknownEnum).payload else { panic!() };
    assert_eq!(seen.meta.provisioning, Provisioning::Unknown);
    let operation = scene.send(&scene.services(vec![])).operation.unwrap();
    scene.wait(2);
    let poll = Request::bare(Method::Poll, operation);
    let answer = scene.send_faulty(&poll, Fault::UnknownEnum);
    assert_eq!(answer.payload, Payload::Operation(OperationState::Running));
}

#[test]
fn a_200_can_carry_an_error_and_then_nothing_was_done() {
    let mut scene = Scene::new();
    scene.make_lb("web");
    let request = scene.services(vec![write(scene.inbound("web"))]);
    assert_eq!(code(&scene.send_faulty(&request, Fault::ErrorIn200)), refusal(200, "InternalServerError"));
    scene.wait(10);
    assert_eq!(scene.cloud.state().registrations(&scene.gateway()).count(), 0);
}

#[test]
fn a_post_can_be_done_at_once_and_still_name_an_operation() {
    let mut scene = Scene::new();
    scene.make_lb("web");
    let request = scene.services(vec![write(scene.inbound("web"))]);
    let answer = scene.send_faulty(&request, Fault::AnsweredAtOnce);
    assert_eq!(answer.status, 200);
    assert_eq!(scene.cloud.state().registrations(&scene.gateway()).count(), 1);
    assert_eq!(scene.poll(&answer.operation.unwrap()), OperationState::Succeeded);
}

#[test]
fn a_fault_that_does_not_fit_does_nothing() {
    let mut scene = Scene::new();
    for fault in [Fault::FailPage, Fault::ShortPage { items: 0 }, Fault::AnsweredAtOnce] {
        let id = scene.group();
        let answer = scene.send_faulty(&Request::bare(Method::Get, id.clone()), fault);
        assert_eq!((answer.status, answer.payload), (200, Payload::Container(id)));
    }
}
