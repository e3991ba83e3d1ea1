//! Requests that something goes wrong with.

use std::time::Duration;

use serde_json::json;
use sluice_cloud::Fault;

use crate::stage::*;

fn put_ip(stage: &Stage, minutes: u8) -> http::Request<bytes::Bytes> {
    let mut body = public_ip("IPv4");
    body["properties"]["idleTimeoutInMinutes"] = json!(minutes);
    stage.put("publicIPAddresses/web-pip", body)
}

fn minutes(stage: &mut Stage) -> u64 {
    stage.get("publicIPAddresses/web-pip").body["properties"]["idleTimeoutInMinutes"].as_u64().unwrap()
}

#[test]
fn a_request_that_gets_lost_changes_nothing_and_one_whose_answer_gets_lost_does() {
    let mut stage = Stage::new();
    for fault in [Fault::NotSent, Fault::LostUnapplied] {
        assert!(stage.send_faulty(put_ip(&stage, 4), &fault).is_none());
        assert_eq!(stage.get("publicIPAddresses/web-pip").status, 404);
    }
    assert!(stage.send_faulty(put_ip(&stage, 17), &Fault::AppliedButLost).is_none());
    stage.wait(60);
    assert_eq!(minutes(&mut stage), 17, "its document was kept although nobody heard of it");
    assert!(stage.send_faulty(stage.request("GET", "/nowhere", None), &Fault::NotSent).is_none());
}

#[test]
fn what_is_answered_and_not_done_leaves_no_trace() {
    let mut stage = Stage::new();
    let fault = Fault::AnsweredButNotApplied;
    let answer = stage.send_faulty(put_ip(&stage, 17), &fault).unwrap();
    assert_eq!((answer.status, answer.state()), (201, "Updating"));
    assert_eq!(answer.body["properties"]["idleTimeoutInMinutes"], 17);
    assert_eq!(stage.finish(&answer)["status"], "Succeeded");
    assert_eq!(stage.get("publicIPAddresses/web-pip").status, 404);
    stage.done(put_ip(&stage, 4));
    stage.send_faulty(put_ip(&stage, 17), &fault).unwrap();
    assert_eq!(minutes(&mut stage), 4);
    // Nor does a later PUT find it among what it may leave out.
    stage.done(stage.put("publicIPAddresses/web-pip", public_ip("IPv4")));
    assert_eq!(minutes(&mut stage), 4);
    stage.send_faulty(stage.put("", json!({ "location": "eastus", "tags": { "a": "1" } })), &fault).unwrap();
    assert_eq!(stage.get("").body.get("tags"), None);
    let network = stage.send_faulty(stage.put("virtualNetworks/new", network()), &fault).unwrap();
    assert_eq!((network.status, network.state()), (201, "Updating"));
    assert_eq!(stage.get("virtualNetworks/new").status, 404);
    let patch =
        stage.request("PATCH", &stage.path("virtualNetworks/vnet"), Some(json!({ "tags": { "a": "1" } })));
    let patched = stage.send_faulty(patch, &fault).unwrap();
    assert_eq!(patched.body["tags"], json!({ "a": "1" }));
    assert_eq!(stage.get("virtualNetworks/vnet").body.get("tags"), None);
}

#[test]
fn a_read_that_lags_sees_the_old_resource_with_its_old_document() {
    let mut stage = Stage::new();
    stage.done(put_ip(&stage, 4));
    let before = stage.get("publicIPAddresses/web-pip");
    let lag = Fault::LaggingReads { duration: Duration::from_secs(8) };
    stage.send_faulty(put_ip(&stage, 17), &lag).unwrap();
    let lagging = stage.get("publicIPAddresses/web-pip");
    assert_eq!((&lagging.body, lagging.header("etag")), (&before.body, before.header("etag")));
    assert_eq!(stage.get("publicIPAddresses").body["value"][0], before.body);
    stage.wait(60);
    assert_eq!(minutes(&mut stage), 17);
}

#[test]
fn an_ordered_refusal_comes_as_ordered_even_to_a_malformed_request() {
    let mut stage = Stage::new();
    let fault = Fault::Refuse {
        status: 503,
        code: "ServerBusy".into(),
        message: "Try later.".into(),
        retry_after: Some(Duration::from_secs(17)),
    };
    stage.time_factor = 100.0;
    for request in [put_ip(&stage, 4), stage.put("publicIPAddresses/web-pip", json!("nonsense"))] {
        let answer = stage.send_faulty(request, &fault).unwrap();
        assert_eq!(answer.refusal(), (503, "ServerBusy"));
        assert_eq!(answer.header("retry-after"), Some("17"), "who orders it orders real seconds");
    }
    let answer = stage.send_faulty(put_ip(&stage, 4), &Fault::ErrorIn200).unwrap();
    assert_eq!(answer.refusal(), (200, "InternalServerError"));
    assert_eq!(stage.get("publicIPAddresses/web-pip").status, 404);
}

#[test]
fn words_that_nobody_knows_can_be_in_resources_and_polls() {
    let mut stage = Stage::new();
    let fault = Fault::UnknownEnum;
    let answer = stage.send_faulty(put_ip(&stage, 4), &fault).unwrap();
    assert_eq!(answer.state(), "Reticulating");
    let url = answer.header("azure-asyncoperation").unwrap().strip_prefix(ORIGIN).unwrap().to_owned();
    let poll = stage.send_faulty(stage.request("GET", &url, None), &fault).unwrap();
    assert_eq!(poll.body, json!({ "status": "Reticulating" }));
    let subnet = stage.put("virtualNetworks/vnet", network());
    assert_eq!(stage.send_faulty(subnet, &fault).unwrap().state(), "Reticulating");
}

#[test]
fn an_old_post_can_be_answered_at_once() {
    let mut stage = Stage::new();
    let path = stage.path("serviceGateways/gw/updateServices");
    let request = stage.request("POST", &path, Some(json!({ "serviceRequests": [] })));
    let answer = stage.send_faulty(request, &Fault::AnsweredAtOnce).unwrap();
    assert_eq!((answer.status, &answer.body), (200, &json!({ "status": "Succeeded" })));
    let url = answer.header("azure-asyncoperation").unwrap().to_owned();
    assert_eq!(stage.follow(&url).body, json!({ "status": "Succeeded" }), "its operation is over");
}

#[test]
fn provisioning_can_fail_although_the_operation_says_otherwise() {
    let mut stage = Stage::new();
    for tail in ["publicIPAddresses/web-pip", "virtualNetworks/new"] {
        let body = if tail.starts_with("public") { public_ip("IPv4") } else { network() };
        let answer = stage.send_faulty(stage.put(tail, body), &Fault::ProvisioningFails).unwrap();
        assert_eq!(stage.finish(&answer)["status"], "Succeeded", "{tail}");
        assert_eq!(stage.get(tail).state(), "Failed", "{tail}");
    }
}

#[test]
fn every_list_can_fail() {
    let mut stage = Stage::new();
    for path in ["resourceGroups", "providers/Microsoft.Network/locations/eastus/usages"] {
        let path = format!("/subscriptions/{SUBSCRIPTION}/{path}");
        let request = stage.request("GET", &path, None);
        let failed = stage.send_faulty(request, &Fault::FailPage).unwrap();
        assert_eq!(failed.refusal(), (500, "InternalServerError"), "{path}");
    }
}
