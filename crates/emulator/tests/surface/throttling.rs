//! Calls are counted.

use std::time::Duration;

use serde_json::json;
use sluice_cloud::{Buckets, Config, Rate, Window};

use crate::stage::*;

fn counted() -> Stage {
    let buckets = Buckets { writes: Rate { burst: 10, per_second: 1 }, ..Buckets::default() };
    Stage::with(Config { buckets: Some(buckets), ..Config::default() })
}

#[test]
fn every_answer_says_what_is_left_in_the_bucket_that_paid() {
    let mut stage = counted();
    let left = |answer: &Answer, word: &str| {
        let own = answer.header(&format!("x-ms-ratelimit-remaining-subscription-{word}")).unwrap().to_owned();
        assert_eq!(
            answer.header(&format!("x-ms-ratelimit-remaining-subscription-global-{word}")),
            Some(&*own)
        );
        own.parse::<u32>().unwrap()
    };
    let reads = [(); 2].map(|()| left(&stage.get("publicIPAddresses"), "reads"));
    assert_eq!(reads[1], reads[0] - 1);
    let write = stage.send(stage.put("publicIPAddresses/web-pip", public_ip("IPv4")));
    assert!(left(&write, "writes") < 10);
    stage.wait(60);
    assert!(left(&stage.delete("publicIPAddresses/web-pip"), "deletes") < 200);
}

#[test]
fn who_asks_too_often_is_told_when_to_come_back_in_real_seconds() {
    for (factor, expected) in [(1.0, "1"), (0.1, "10"), (0.4, "3"), (100.0, "1")] {
        let mut stage = counted();
        stage.time_factor = factor;
        let patch = |stage: &Stage| {
            stage.request("PATCH", &stage.path("virtualNetworks/vnet"), Some(json!({ "tags": {} })))
        };
        let refused = (0..20).map(|_| stage.send(patch(&stage))).find(|answer| answer.status == 429).unwrap();
        assert_eq!(refused.refusal(), (429, "SubscriptionRequestsThrottled"));
        assert_eq!(refused.header("retry-after"), Some(expected), "{factor}");
        let message = refused.body["error"]["message"].as_str().unwrap();
        assert!(message.contains(&format!("'{expected}' seconds")), "{message}");
        stage.wait(1);
        assert_eq!(stage.send(patch(&stage)).status, 200, "after the wait it goes on");
    }
}

#[test]
fn a_wait_is_rounded_up_once() {
    let buckets = Buckets { reads: Rate { burst: 1, per_second: 10 }, ..Buckets::default() };
    for path in ["resourceGroups", "providers/Microsoft.Network/publicIPAddresses"] {
        let mut stage = Stage::empty(Config { buckets: Some(buckets), ..Config::default() });
        stage.time_factor = 0.1;
        let path = format!("/subscriptions/{SUBSCRIPTION}/{path}");
        stage.get_path(&path);
        let refused = stage.get_path(&path);
        // A tenth of an emulated second, ten times as slow.
        assert_eq!((refused.status, refused.header("retry-after")), (429, Some("1")), "{path}");
        let message = refused.body["error"]["message"].as_str().unwrap();
        assert!(message.contains("'1' seconds"), "{message}");
    }
}

#[test]
fn the_networks_own_limit_does_not_pretend_that_the_bucket_is_full() {
    let window = Window { writes: 9, reads: 2, length: Duration::from_secs(300) };
    let buckets = Buckets { network: Some(window), ..Buckets::default() };
    let mut stage = Stage::empty(Config { buckets: Some(buckets), ..Config::default() });
    let path = format!("/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Network/publicIPAddresses");
    let answers = [(); 3].map(|()| stage.get_path(&path));
    assert_eq!(answers[2].refusal(), (429, "TooManyRequests"));
    assert_eq!(answers[2].header("x-ms-ratelimit-remaining-subscription-reads"), Some("248"));
}

#[test]
fn who_asks_too_often_is_in_nobody_elses_way() {
    let one = Rate { burst: 1, per_second: 0 };
    let buckets = Buckets { reads: one, ..Buckets::default() };
    let mut stage = Stage::empty(Config { buckets: Some(buckets), ..Config::default() });
    let mut ask = |who: &str, subscription: &str| {
        stage.surface.set_payer(who);
        stage.get_path(&format!("/subscriptions/{subscription}/resourceGroups")).status
    };
    assert_eq!([ask("a", "s"), ask("a", "S"), ask("b", "s"), ask("a", "t")], [200, 429, 200, 200]);
}

#[test]
fn malformed_requests_cost_as_much_as_any_other() {
    let mut stage = counted();
    let bad =
        |stage: &Stage| stage.put("virtualNetworks/new", json!({ "location": "eastus", "properties": {} }));
    let left = [(); 3].map(|()| {
        let answer = stage.send(bad(&stage));
        assert_eq!(answer.status, 400);
        answer.header("x-ms-ratelimit-remaining-subscription-writes").unwrap().parse::<u32>().unwrap()
    });
    assert_eq!((left[0] - left[1], left[1] - left[2]), (1, 1));
}

#[test]
fn lists_that_the_model_does_not_serve_are_counted_too() {
    let one = Rate { burst: 1, per_second: 0 };
    let buckets = Buckets { reads: one, ..Buckets::default() };
    for path in ["resourceGroups", "providers/Microsoft.Network/locations/eastus/usages"] {
        let mut stage = Stage::empty(Config { buckets: Some(buckets), ..Config::default() });
        let path = format!("/subscriptions/{SUBSCRIPTION}/{path}");
        let statuses = [(); 2].map(|()| stage.get_path(&path).status);
        assert_eq!(statuses, [200, 429], "{path}");
    }
}
