//! What a cloud shows of itself, and what can be set while it runs.

use std::time::Duration;

use sluice_cloud::{Buckets, Config, Quota, Rate, Remaining, Tamper};
use sluice_model::azure::*;
use sluice_model::call::*;
use sluice_model::time::Time;

use crate::support::*;

fn usage(scene: &Scene, name: &str) -> (usize, usize) {
    let usages = scene.cloud.usages(&scene.scope.subscription.to_ascii_uppercase());
    let found = usages.iter().find(|it| it.name == name).expect("a known name");
    (found.current, found.limit)
}

#[test]
fn usages_count_every_kind_of_the_subscription_against_its_quota() {
    let mut scene = Scene::new();
    scene.make_lb("web");
    scene.make_nat("blue");
    scene.done(&scene.put_ip("spare"));
    for (name, expected) in [
        ("PublicIPAddresses", (3, 1_000)),
        ("LoadBalancers", (1, 1_000)),
        ("NatGateways", (1, 1_000)),
        ("ServiceGateways", (1, 100)),
        ("VirtualNetworks", (1, 1_000)),
    ] {
        assert_eq!(usage(&scene, name), expected, "{name}");
    }
    scene.done(&scene.delete(&scene.public_ip("spare")));
    scene.cloud.set_quota(Quota { public_ips: 7, ..scene.cloud.quota() });
    assert_eq!(usage(&scene, "PublicIPAddresses"), (2, 7));
    assert!(scene.cloud.usages("another").iter().all(|it| it.current == 0));
    scene.done(&scene.delete(&scene.group()));
    assert_eq!(usage(&scene, "LoadBalancers").0, 0);
}

#[test]
fn a_call_that_others_serve_is_paid_for_all_the_same() {
    let one = Rate { burst: 2, per_second: 1 };
    let buckets = Buckets { reads: one, ..Buckets::default() };
    let mut scene = Scene::with(Config { buckets: Some(buckets), ..Config::default() });
    let subscription = ArmId::new(format!("/subscriptions/{}", scene.scope.subscription));
    let usages = ArmId::new(format!("{subscription}/providers/Microsoft.Network/locations/eastus/usages"));
    assert_eq!(scene.cloud.charge(scene.now, &usages, Method::Get), Ok(Some(1)));
    assert_eq!(scene.cloud.charge(scene.now, &usages, Method::Get), Ok(Some(0)));
    let outcome = scene.cloud.charge(scene.now, &usages, Method::Get).unwrap_err();
    let Reply::Answered(refused) = outcome.reply else { panic!("{outcome:?}") };
    assert_eq!(code(&refused), refusal(429, "SubscriptionRequestsThrottled"));
    assert_eq!(refused.retry_after, Some(Duration::from_secs(1)));
    scene.wait(5);
    let what = sluice_cloud::Forbidden::Everything;
    scene.tamper(Tamper::Forbid { scope: subscription, what });
    let outcome = scene.cloud.charge(scene.now, &usages, Method::Get).unwrap_err();
    let Reply::Answered(refused) = outcome.reply else { panic!("{outcome:?}") };
    assert_eq!(code(&refused), refusal(403, "AuthorizationFailed"));
}

#[test]
fn what_remains_is_told_for_each_bucket() {
    let mut scene = Scene::with(Config::default());
    scene.send(&scene.put_ip("a"));
    scene.get(&scene.public_ip("a"));
    scene.get(&scene.public_ip("a"));
    scene.send(&scene.delete(&scene.public_ip("none")));
    let left = Remaining { reads: 248, writes: 199, deletes: 199 };
    assert_eq!(scene.cloud.remaining(scene.now, &scene.scope.subscription), Some(left));
    // Asking costs nothing.
    assert_eq!(scene.cloud.remaining(scene.now, &scene.scope.subscription), Some(left));
    scene.wait(60);
    let full = Remaining { reads: 250, writes: 200, deletes: 200 };
    assert_eq!(scene.cloud.remaining(scene.now, &scene.scope.subscription), Some(full));
    scene.cloud.set_buckets(None);
    assert_eq!(scene.cloud.remaining(scene.now, &scene.scope.subscription), None);
}

#[test]
fn operations_take_place_in_the_region_that_was_set_last() {
    let mut scene = Scene::new();
    let first = scene.send(&scene.put_ip("a")).operation.unwrap();
    scene.cloud.set_region("westeurope");
    let second = scene.send(&scene.put_ip("b")).operation.unwrap();
    assert_eq!(
        (first.segment("locations"), second.segment("locations")),
        (Some("eastus"), Some("westeurope"))
    );
    for operation in [first, second] {
        assert_eq!(scene.poll(&operation), OperationState::Running);
    }
}

#[test]
fn posts_are_synchronous_from_one_call_to_the_next() {
    let mut scene = Scene::new();
    scene.cloud.set_synchronous_posts(true);
    assert_eq!(scene.send(&scene.services(vec![])).status, 200);
    scene.cloud.set_synchronous_posts(false);
    assert_eq!(scene.send(&scene.services(vec![])).status, 202);
}

#[test]
fn a_running_operation_tells_since_when_and_until() {
    let mut scene = Scene::new();
    scene.wait(7);
    let id = scene.send(&scene.put_ip("a")).operation.unwrap();
    let running: Vec<_> = scene.cloud.running().collect();
    assert_eq!(running.len(), 1);
    assert_eq!((running[0].id, running[0].target), (&id, &scene.public_ip("a")));
    assert_eq!(running[0].since, Time::from_millis(7_000));
    let took = running[0].ends.unwrap().since(running[0].since);
    assert!((2_000..=3_000).contains(&took.as_millis()), "{took:?}");
}

#[test]
fn a_change_that_the_model_does_not_see_takes_its_time() {
    let mut scene = Scene::new();
    scene.done(&scene.put_ip("a"));
    scene.cloud.set_unseen_change(true);
    let answer = scene.send(&scene.put_ip("a"));
    let Payload::PublicIp(it) = answer.payload else { panic!() };
    assert_eq!(it.meta.provisioning, Provisioning::Updating);
    let operation = answer.operation.unwrap();
    assert_eq!(scene.cloud.operation_state(&operation), Some(&OperationState::Running));
    assert_eq!(scene.cloud.at_work(&scene.public_ip("a")), Some(Provisioning::Updating));
    scene.wait(3);
    assert_eq!(scene.cloud.operation_state(&operation), Some(&OperationState::Succeeded));
    assert_eq!(scene.cloud.at_work(&scene.public_ip("a")), None);
    scene.send(&scene.delete(&scene.group()));
    assert_eq!(scene.cloud.at_work(&scene.group()), Some(Provisioning::Deleting));
}
