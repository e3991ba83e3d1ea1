//! Operations that take a while, and what they keep others from.

use sluice_cloud::Fault;
use sluice_model::azure::*;
use sluice_model::call::*;
use sluice_model::failure::wait_in_text;
use sluice_model::time::Time;
use std::time::Duration;

use crate::support::*;

#[test]
fn operations_take_as_long_as_the_contract_says() {
    for (kind, least, most) in [
        ("public IP", 2_000, 3_000),
        ("load balancer", 5_000, 8_000),
        ("NAT gateway", 5_000, 8_000),
        ("services", 1_000, 2_000),
        ("locations", 1_000, 2_000),
        ("delete", 1_000, 3_000),
    ] {
        let mut scene = Scene::new();
        scene.done(&scene.put_ip("web-pip"));
        scene.done(&scene.put_ip("blue-pip"));
        scene.wait(1_000);
        let request = match kind {
            "public IP" => scene.put_ip("new"),
            "load balancer" => scene.put_lb("web", &[]),
            "NAT gateway" => scene.put_nat("blue", scene.nat_body("blue")),
            "services" => scene.services(vec![]),
            "locations" => scene.locations(vec![]),
            _ => scene.delete(&scene.public_ip("web-pip")),
        };
        let operation = scene.send(&request).operation.unwrap();
        let took = scene.cloud.next_deadline().unwrap().since(scene.now);
        assert!((least..=most).contains(&took.as_millis()), "{kind} took {took:?}");
        scene.wait_ms(u64::try_from(took.as_millis()).unwrap() - 1);
        assert_eq!(scene.poll(&operation), OperationState::Running);
        scene.wait_ms(1);
        assert_eq!(scene.poll(&operation), OperationState::Succeeded);
        assert_eq!((scene.cloud.next_deadline(), scene.cloud.operations_running()), (None, 0));
    }
}

#[test]
fn the_same_seed_gives_the_same_latencies_and_ids() {
    let run = || {
        let mut scene = Scene::new();
        let answers: Vec<Answer> =
            ["a", "b", "c"].iter().map(|name| scene.send(&scene.put_ip(name))).collect();
        (answers, scene.cloud.next_deadline())
    };
    assert_eq!(run(), run());
}

#[test]
fn a_write_waits_for_the_operation_before_it() {
    let mut scene = Scene::new();
    scene.send(&scene.put_ip("web-pip"));
    let again = scene.put_ip("web-pip");
    let answer = scene.send(&again);
    assert_eq!(code(&answer), refusal(429, "RetryableErrorDueToAnotherOperation"));
    let Payload::Error(error) = answer.payload else { panic!() };
    assert_eq!(wait_in_text(&error.message), Some(Duration::from_secs(3)), "{}", error.message);

    let tags = Request::with(Method::PatchTags, scene.public_ip("web-pip"), Body::Tags(Tags::new()));
    assert_eq!(scene.refused(&tags), refusal(429, "RetryableErrorDueToAnotherOperation"));
    let delete = scene.delete(&scene.public_ip("web-pip"));
    assert_eq!(scene.refused(&delete), refusal(409, "AnotherOperationInProgress"));
    scene.wait(3);
    scene.done(&delete);
}

#[test]
fn the_two_posts_of_a_gateway_do_not_wait_for_each_other() {
    let mut scene = Scene::new();
    assert_eq!(scene.send(&scene.services(vec![])).status, 202);
    assert_eq!(scene.send(&scene.locations(vec![])).status, 202);
    for request in [scene.services(vec![]), scene.locations(vec![])] {
        assert_eq!(scene.refused(&request), refusal(429, "RetryableErrorDueToAnotherOperation"));
    }
    let put = Request::with(Method::Put, scene.gateway(), scene.gateway_body());
    assert_eq!(scene.refused(&put), refusal(429, "RetryableErrorDueToAnotherOperation"));
}

#[test]
fn a_post_waits_for_a_write_of_its_gateway() {
    let mut scene = Scene::new();
    let Body::Gateway(body) = scene.gateway_body() else { panic!() };
    let tagged = GatewayBody { tags: Tags::from([("a".into(), "b".into())]), ..body };
    scene.send(&Request::with(Method::Put, scene.gateway(), Body::Gateway(tagged)));
    let request = scene.services(vec![]);
    assert_eq!(scene.refused(&request), refusal(429, "RetryableErrorDueToAnotherOperation"));
}

#[test]
fn a_deleted_resource_stays_until_the_operation_ends() {
    let mut scene = Scene::new();
    scene.done(&scene.put_ip("web-pip"));
    let id = scene.public_ip("web-pip");
    let answer = scene.send(&scene.delete(&id));
    assert_eq!((answer.status, &answer.payload), (202, &Payload::None));
    let Payload::PublicIp(going) = scene.get(&id).payload else { panic!() };
    assert_eq!(going.meta.provisioning, Provisioning::Deleting);
    scene.wait(3);
    assert_eq!(scene.poll(&answer.operation.unwrap()), OperationState::Succeeded);
    assert_eq!(code(&scene.get(&id)), refusal(404, "ResourceNotFound"));
}

#[test]
fn nobody_can_refer_to_what_is_going() {
    let mut scene = Scene::new();
    scene.done(&scene.put_ip("web-pip"));
    scene.send(&scene.delete(&scene.public_ip("web-pip")));
    let request = scene.put_lb("web", &[]);
    assert_eq!(scene.refused(&request), refusal(429, "RetryableError"));
}

#[test]
fn a_load_balancer_that_is_registered_while_it_goes_makes_one_of_the_two_fail() {
    let mut scene = Scene::new();
    scene.make_lb("web");
    let register = scene.send(&scene.services(vec![write(scene.inbound("web"))])).operation.unwrap();
    let delete = scene.send(&scene.delete(&scene.load_balancer("web"))).operation.unwrap();
    scene.wait(60);
    let ended = (scene.poll(&register), scene.poll(&delete));
    assert!(matches!(
        ended,
        (OperationState::Succeeded, OperationState::Failed(_))
            | (OperationState::Failed(_), OperationState::Succeeded)
    ));
    let registered = scene.cloud.state().registrations(&scene.gateway()).count();
    assert_eq!(registered, scene.cloud.state().load_balancers.len());
}

#[test]
fn an_operation_is_found_only_by_its_own_id() {
    let mut scene = Scene::new();
    let operation = scene.send(&scene.put_ip("a")).operation.unwrap();
    let other = ArmId::new(operation.as_str().replace("-4", "-5"));
    let poll = Request::bare(Method::Poll, other);
    assert_eq!(scene.refused(&poll), refusal(404, "OperationNotFound"));
    scene.wait(2 * 3_600);
    let poll = Request::bare(Method::Poll, operation);
    assert_eq!(scene.refused(&poll), refusal(404, "OperationNotFound"));
}

#[test]
fn a_clock_that_goes_backwards_undoes_nothing() {
    let mut scene = Scene::new();
    scene.wait(100);
    let operation = scene.send(&scene.put_ip("a")).operation.unwrap();
    scene.wait(3);
    scene.now = Time::ZERO;
    assert_eq!(scene.poll(&operation), OperationState::Succeeded);
    scene.send(&scene.put_ip("b"));
    assert!(scene.cloud.next_deadline().unwrap() >= Time::from_millis(103_000));
}

#[test]
fn a_slow_cloud_is_slow_until_it_is_calmed() {
    let mut scene = Scene::new();
    scene.cloud.slow_by(50);
    scene.send(&scene.put_ip("a"));
    assert!(scene.cloud.next_deadline().unwrap() >= Time::from_millis(100_000));
    scene.send_faulty(&scene.put_ip("b"), Fault::SlowBy(2));
    scene.cloud.calm();
    scene.wait(3);
    assert_eq!(scene.cloud.operations_running(), 0);
    scene.send(&scene.put_ip("c"));
    assert!(scene.cloud.next_deadline().unwrap().since(scene.now) <= Duration::from_secs(3));
}
