//! Buckets, windows, quotas, locks and policies.

use sluice_cloud::{Buckets, Config, LockLevel, Quota, Rate, Tamper, Window};
use sluice_model::address::Family;
use sluice_model::azure::*;
use sluice_model::call::*;
use std::time::Duration;

use crate::support::*;

fn throttled() -> Scene {
    let network = Window { writes: 5, reads: 8, length: Duration::from_secs(300) };
    let buckets = Buckets {
        reads: Rate { burst: 3, per_second: 2 },
        writes: Rate { burst: 2, per_second: 1 },
        deletes: Rate { burst: 1, per_second: 1 },
        network: Some(network),
    };
    Scene::with(Config { buckets: Some(buckets), ..Config::default() })
}

#[test]
fn the_defaults_are_azures() {
    let buckets = Config::default().buckets.unwrap();
    assert_eq!(buckets.reads, Rate { burst: 250, per_second: 25 });
    assert_eq!(buckets.writes, Rate { burst: 200, per_second: 10 });
    assert_eq!(buckets.deletes, Rate { burst: 200, per_second: 10 });
    let network = Window { writes: 1_000, reads: 10_000, length: Duration::from_secs(300) };
    assert_eq!(buckets.network, Some(network));
    let quota = Quota::default();
    assert_eq!((quota.load_balancers, quota.public_ips, quota.nat_gateways), (1_000, 1_000, 1_000));
    assert_eq!((quota.public_ips_per_nat_gateway, quota.rules_per_load_balancer), (16, 1_500));
    assert_eq!((quota.virtual_networks, quota.subnets_per_network), (1_000, 3_000));
}

#[test]
fn an_empty_bucket_says_when_to_come_back() {
    let mut scene = throttled();
    assert_eq!(scene.send(&scene.put_ip("a")).remaining, Some(1));
    assert_eq!(scene.send(&scene.put_ip("b")).remaining, Some(0));
    let answer = scene.send(&scene.put_ip("c"));
    assert_eq!(code(&answer), refusal(429, "SubscriptionRequestsThrottled"));
    assert_eq!((answer.retry_after, answer.remaining), (Some(Duration::from_secs(1)), Some(0)));
    assert_eq!(scene.cloud.state().public_ips.len(), 2);

    scene.wait_ms(999);
    assert_eq!(scene.send(&scene.put_ip("c")).status, 429);
    scene.wait_ms(1);
    assert_eq!(scene.send(&scene.put_ip("c")).status, 201);
}

#[test]
fn reads_writes_and_deletes_are_paid_apart() {
    let mut scene = throttled();
    let id = scene.public_ip("a");
    for _ in 0..2 {
        scene.send(&scene.put_ip("a"));
    }
    assert_eq!(scene.send(&scene.put_ip("a")).status, 429);
    assert_eq!(scene.send(&scene.services(vec![])).status, 429);
    assert_eq!(scene.send(&scene.delete(&scene.public_ip("none"))).status, 204);
    assert_eq!(scene.send(&scene.delete(&scene.public_ip("none"))).status, 429);
    for _ in 0..3 {
        assert_eq!(scene.get(&id).status, 200);
    }
    assert_eq!(scene.get(&id).status, 429);
    let poll = Request::bare(Method::Poll, scene.gateway());
    assert_eq!(scene.send(&poll).status, 429);
}

#[test]
fn the_network_provider_has_a_limit_of_its_own() {
    let mut scene = throttled();
    for _ in 0..5 {
        scene.wait(10);
        assert_ne!(scene.send(&scene.put_ip("a")).status, 429);
    }
    scene.wait(10);
    let answer = scene.send(&scene.delete(&scene.public_ip("a")));
    assert_eq!(code(&answer), refusal(429, "TooManyRequests"));
    assert_eq!(answer.retry_after, Some(Duration::from_secs(250)));
    // The other bucket is not empty, and nobody says that it is full.
    assert_eq!(answer.remaining, Some(1));
    let id = scene.public_ip("a");
    assert_eq!(scene.get(&id).status, 200);
    // Groups are the resource manager's own business.
    let group = Request::with(Method::Put, scene.group(), Body::Container);
    assert_eq!(scene.send(&group).status, 200);
    scene.wait(250);
    assert_eq!(scene.send(&scene.delete(&scene.public_ip("a"))).status, 202);
}

#[test]
fn a_refused_call_costs_nothing_and_an_error_costs_as_much_as_a_success() {
    let mut scene = throttled();
    let missing = scene.public_ip("missing");
    for left in [2, 1, 0] {
        assert_eq!(scene.get(&missing).status, 404);
        assert_eq!(scene.cloud.remaining(scene.now, &scene.scope.subscription).unwrap().reads, left);
    }
    for _ in 0..10 {
        assert_eq!(scene.get(&missing).status, 429);
    }
    scene.wait_ms(500);
    assert_eq!(scene.get(&missing).status, 404);
}

#[test]
fn everybody_has_buckets_of_their_own_in_every_subscription() {
    let mut scene = throttled();
    let missing = scene.public_ip("missing");
    let read = |scene: &mut Scene, payer: &str, id: &ArmId| {
        scene.cloud.set_payer(payer);
        scene.get(id).status
    };
    for _ in 0..3 {
        assert_eq!(read(&mut scene, "a", &missing), 404);
    }
    assert_eq!(read(&mut scene, "a", &missing), 429);
    assert_eq!(read(&mut scene, "b", &missing), 404);
    let elsewhere = ArmId::new(missing.as_str().replace(&*scene.scope.subscription, "other"));
    assert_eq!(read(&mut scene, "a", &elsewhere), 404);
    assert_eq!(read(&mut scene, "a", &missing), 429);
}

#[test]
fn nobody_pays_for_somebody_else() {
    let mut scene = throttled();
    for n in 0..20 {
        let id = scene.public_ip(&format!("foreign-{n}"));
        let body = Body::PublicIp(PublicIpBody { family: Family::V4, tags: Tags::new() });
        assert_eq!(scene.tamper(Tamper::Put { id, body }).status, 201);
    }
}

#[test]
fn quotas_are_named() {
    let quota = Quota {
        public_ips: 2,
        load_balancers: 1,
        nat_gateways: 0,
        gateways: 1,
        public_ips_per_nat_gateway: 1,
        rules_per_load_balancer: 2,
        ..Quota::default()
    };
    let mut scene = Scene::with(Config { buckets: None, quota, ..Config::default() });
    scene.make_lb("web");
    scene.done(&scene.put_ip("other-pip"));
    let request = scene.put_ip("third");
    assert_eq!(scene.refused(&request), refusal(400, "PublicIPCountLimitReached"));
    let request = scene.put_lb("other", &[]);
    assert_eq!(scene.refused(&request), refusal(400, "QuotaExceeded"));
    let request = scene.put_nat("blue", NatGatewayBody { public_ips: vec![], ..scene.nat_body("blue") });
    assert_eq!(scene.refused(&request), refusal(400, "QuotaExceeded"));
    let second = scene.scope.resource("serviceGateways", "second");
    let request = Request::with(Method::Put, second, scene.gateway_body());
    assert_eq!(scene.refused(&request), refusal(400, "QuotaExceeded"));
    let rules: Vec<Rule> = (1..=3).map(|port| tcp(port, port)).collect();
    let request = scene.put_lb("web", &rules);
    assert_eq!(scene.refused(&request), refusal(400, "QuotaExceeded"));

    // What is there may still be changed, and a quota can be raised.
    scene.done(&scene.put_lb("web", &[tcp(81, 81)]));
    scene.cloud.set_quota(Quota { nat_gateways: 1, ..quota });
    let two = vec![scene.public_ip("other-pip"), scene.public_ip("more")];
    let request = scene.put_nat("blue", NatGatewayBody { public_ips: two, ..scene.nat_body("blue") });
    assert_eq!(scene.refused(&request), refusal(400, "MaxPublicIpCountLimitReached"));
    scene.done(&scene.put_nat("blue", NatGatewayBody { public_ips: vec![], ..scene.nat_body("blue") }));
}

#[test]
fn a_lock_stops_what_it_is_meant_to_stop() {
    let mut scene = Scene::new();
    scene.done(&scene.put_ip("web-pip"));
    let put = scene.put_ip("web-pip");
    let delete = scene.delete(&scene.public_ip("web-pip"));
    let locked = refusal(409, "ScopeLocked");

    scene.tamper(Tamper::Lock { scope: scene.group(), level: LockLevel::CanNotDelete });
    assert_eq!(scene.refused(&delete), locked);
    scene.done(&put);
    scene.tamper(Tamper::Lock { scope: scene.public_ip("WEB-PIP"), level: LockLevel::ReadOnly });
    assert_eq!(scene.refused(&put), locked);
    scene.done(&scene.put_ip("other"));
    scene.tamper(Tamper::Unlock(scene.public_ip("web-pip")));
    scene.done(&put);
    scene.cloud.calm();
    scene.done(&delete);
}

#[test]
fn a_lock_on_the_gateway_stops_its_posts() {
    let mut scene = Scene::new();
    scene.tamper(Tamper::Lock { scope: scene.gateway(), level: LockLevel::ReadOnly });
    for request in [scene.services(vec![]), scene.locations(vec![])] {
        assert_eq!(scene.refused(&request), refusal(409, "ScopeLocked"));
    }
}

#[test]
fn a_policy_forbids_writing_below_its_scope() {
    let mut scene = Scene::new();
    let collection = scene.scope.collection("publicIPAddresses");
    scene.tamper(Tamper::PolicyDeny(collection.clone()));
    let request = scene.put_ip("web-pip");
    assert_eq!(scene.refused(&request), refusal(403, "RequestDisallowedByPolicy"));
    assert_eq!(scene.send(&scene.delete(&scene.public_ip("web-pip"))).status, 204);
    scene.tamper(Tamper::PolicyAllow(collection));
    scene.done(&request);
}
