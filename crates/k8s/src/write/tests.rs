//! Writes against a scripted API server: what is sent, and what the engine hears.

use super::*;
use crate::scripted::{Heard, Say, Script};
use crate::strings::{PREDECESSOR_FINALIZER, SERVICE_CONTROLLER_FINALIZER};
use sluice_model::ObjectName;
use sluice_model::kube::{Concern, ConditionKind};
use sluice_model::reason::Reason;

const GET: &str = "GET /api/v1/namespaces/shop/services/web";
const PATCH: &str = "PATCH /api/v1/namespaces/shop/services/web";
const PATCH_STATUS: &str = "PATCH /api/v1/namespaces/shop/services/web/status";

fn uid(number: u128) -> Uid {
    Uid::from_number(number)
}

fn web() -> ObjectRef {
    ObjectRef { uid: uid(7), name: ObjectName::new("shop", "web") }
}

/// The Service as the API server has it at a version, with these finalizers.
fn service(version: u64, finalizers: &[&str]) -> Value {
    let mut service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {
            "name": "web", "namespace": "shop", "uid": uid(7).to_string(),
            "resourceVersion": version.to_string(),
        },
        "spec": {"type": "LoadBalancer"},
        "status": {"loadBalancer": {}},
    });
    if !finalizers.is_empty() {
        service["metadata"]["finalizers"] = json!(finalizers);
    }
    service
}

fn successor(version: u64) -> Value {
    let mut service = service(version, &[]);
    service["metadata"]["uid"] = json!(uid(8).to_string());
    service
}

fn writer(client: Client) -> Writer {
    Writer::new(client, false, "sluice-0".into()).with_clock(|| "2026-11-16T10:00:00Z".parse().unwrap())
}

fn value_of(request: &Heard, path: &str) -> Value {
    let operations = request.body.as_array().unwrap();
    let found = operations.iter().find(|operation| operation["path"] == path);
    found.map_or(Value::Null, |operation| operation["value"].clone())
}

/// Every patch says whom it means and which version it was made from.
fn assert_fenced(request: &Heard, version: &str) {
    assert_eq!(request.content_type, "application/json-patch+json");
    assert_eq!(request.query, "fieldManager=sluice");
    assert_eq!(request.body[0], json!({"op": "test", "path": "/metadata/uid", "value": uid(7).to_string()}));
    let fence = json!({"op": "replace", "path": "/metadata/resourceVersion", "value": version});
    assert_eq!(request.body[1], fence);
}

/// A writer that has seen the Service like this.
fn writer_that_saw(service: &Value, client: Client) -> Writer {
    let seen = LastSeen::default();
    let version = Found(service.clone()).version_number();
    seen.watched(uid(7), version, &service.to_string());
    writer(client).with_last_seen(seen)
}

#[tokio::test]
async fn writes_to_a_service_as_last_seen_are_one_request_each() {
    let ip: IpAddr = "20.1.2.3".parse().unwrap();
    let conditions = [Condition::new(ConditionKind::Serving, true, Reason::Provisioned, Concern::Resources)];
    let mut published = service(43, &["example.com/keep", FINALIZER]);
    published["status"]["loadBalancer"]["ingress"] = json!([{"ip": "20.1.2.3", "ipMode": "VIP"}]);
    let (client, script) = Script::of([
        (PATCH, Say::ok(service(42, &["example.com/keep", FINALIZER]))),
        (PATCH_STATUS, Say::ok(published)),
        (PATCH_STATUS, Say::ok(service(44, &["example.com/keep", FINALIZER]))),
        (PATCH, Say::ok(service(45, &["example.com/keep"]))),
    ]);
    let writer = writer_that_saw(&service(41, &["example.com/keep"]), client);
    assert_eq!(writer.add_finalizer(&web()).await, KubeOutcome::Done { version: 42 });
    let outcome = writer.write_status(&web(), Some(ip), None, &conditions).await;
    assert_eq!(outcome, KubeOutcome::Done { version: 43 });
    assert_eq!(writer.write_status(&web(), None, Some(ip), &[]).await, KubeOutcome::Done { version: 44 });
    assert_eq!(writer.remove_finalizer(&web()).await, KubeOutcome::Done { version: 45 });
    let requests = script.played();
    for (request, version) in requests.iter().zip(["41", "42", "43", "44"]) {
        assert_fenced(request, version);
    }
    assert_eq!(value_of(&requests[0], "/metadata/finalizers"), json!(["example.com/keep", FINALIZER]));
    assert_eq!(requests[2].body[2], json!({"op": "remove", "path": "/status/loadBalancer/ingress"}));
    assert_eq!(value_of(&requests[3], "/metadata/finalizers"), json!(["example.com/keep"]));
}

#[tokio::test]
async fn a_condition_of_a_service_as_last_seen_names_the_command_with_the_details() {
    let condition =
        Condition::new(ConditionKind::Provisioning, true, Reason::QuotaExceeded, Concern::Resources);
    let (client, script) = Script::of([(PATCH_STATUS, Say::ok(service(42, &[FINALIZER])))]);
    let writer = writer_that_saw(&service(41, &[FINALIZER]), client);
    writer.write_status(&web(), None, None, &[condition]).await;
    let conditions = value_of(&script.played()[0], "/status/conditions");
    let message = conditions[0]["message"].as_str().unwrap();
    assert!(message.contains("`sluice explain service/shop/web`"), "{message}");
}

#[tokio::test]
async fn a_service_that_changed_since_is_read_and_then_patched() {
    let theirs = "example.com/keep";
    for stale in [Say::status(409, "Conflict", "changed"), Say::status(422, "Invalid", "cannot remove")] {
        let is_422 = matches!(stale, Say::Json(422, _));
        // A failed operation looks like bad input until a read shows another version.
        let look = is_422.then(|| (GET, Say::ok(service(50, &[theirs, FINALIZER]))));
        let script = [(PATCH, stale)].into_iter().chain(look).chain([
            (GET, Say::ok(service(50, &[theirs, FINALIZER]))),
            (PATCH, Say::ok(service(51, &[theirs]))),
        ]);
        let (client, script) = Script::of(script);
        let writer = writer_that_saw(&service(41, &[FINALIZER]), client);
        assert_eq!(writer.remove_finalizer(&web()).await, KubeOutcome::Done { version: 51 });
        let requests = script.played();
        let last = requests.last().unwrap();
        assert_fenced(last, "50");
        assert_eq!(value_of(last, "/metadata/finalizers"), json!([theirs]));
    }
}

#[tokio::test]
async fn a_service_as_last_seen_that_needs_no_patch_is_read() {
    let (client, script) = Script::of([(GET, Say::ok(service(42, &[FINALIZER])))]);
    let writer = writer_that_saw(&service(41, &[FINALIZER]), client);
    assert_eq!(writer.add_finalizer(&web()).await, KubeOutcome::Done { version: 42 });
    script.played();

    let mut deleting = service(41, &[]);
    deleting["metadata"]["deletionTimestamp"] = json!("2026-11-16T09:59:00Z");
    let (client, script) = Script::of([(GET, Say::status(404, "NotFound", "gone"))]);
    assert_eq!(writer_that_saw(&deleting, client).add_finalizer(&web()).await, KubeOutcome::Gone);
    script.played();
}

#[tokio::test]
async fn a_successor_of_the_service_as_last_seen_is_never_written_to() {
    let (client, script) =
        Script::of([(PATCH, Say::status(422, "Invalid", "test failed")), (GET, Say::ok(successor(50)))]);
    let writer = writer_that_saw(&service(41, &[FINALIZER]), client);
    assert_eq!(writer.remove_finalizer(&web()).await, KubeOutcome::Gone);
    assert_fenced(&script.played()[0], "41");
}

#[tokio::test]
async fn the_finalizer_goes_behind_those_of_others() {
    let (client, script) = Script::of([
        (GET, Say::ok(service(41, &["example.com/keep"]))),
        (PATCH, Say::ok(service(42, &["example.com/keep", FINALIZER]))),
    ]);
    assert_eq!(writer(client).add_finalizer(&web()).await, KubeOutcome::Done { version: 42 });
    let requests = script.played();
    assert_fenced(&requests[1], "41");
    assert_eq!(value_of(&requests[1], "/metadata/finalizers"), json!(["example.com/keep", FINALIZER]));
}

#[tokio::test]
async fn a_finalizer_that_is_there_is_not_written_again() {
    let (client, script) = Script::of([(GET, Say::ok(service(41, &[FINALIZER])))]);
    assert_eq!(writer(client).add_finalizer(&web()).await, KubeOutcome::Done { version: 41 });
    script.played();
}

#[tokio::test]
async fn a_write_is_known_under_the_version_that_the_watches_would_tell() {
    let offsets = Offsets::default();
    offsets.set(Kind::Service, 1_000);
    offsets.set(Kind::Pod, 5);
    let (client, script) = Script::of([(GET, Say::ok(service(41, &[FINALIZER])))]);
    let outcome = writer(client).with_offsets(offsets).add_finalizer(&web()).await;
    assert_eq!(outcome, KubeOutcome::Done { version: 1_041 });
    script.played();
}

#[tokio::test]
async fn a_service_that_is_being_deleted_gets_no_finalizer() {
    let mut deleting = service(41, &["example.com/keep"]);
    deleting["metadata"]["deletionTimestamp"] = json!("2026-11-16T09:59:00Z");
    let (client, script) = Script::of([(GET, Say::ok(deleting))]);
    assert_eq!(writer(client).add_finalizer(&web()).await, KubeOutcome::Conflict);
    script.played();
}

#[tokio::test]
async fn a_same_named_successor_is_never_written_to() {
    for _ in 0..3 {
        let (client, script) = Script::of([(GET, Say::ok(successor(50)))]);
        assert_eq!(writer(client).remove_finalizer(&web()).await, KubeOutcome::Gone);
        script.played();
    }
    let (client, script) = Script::of([(GET, Say::status(404, "NotFound", "services \"web\" not found"))]);
    assert_eq!(writer(client).write_status(&web(), None, None, &[]).await, KubeOutcome::Gone);
    script.played();
}

#[tokio::test]
async fn a_successor_that_came_between_read_and_write_is_gone_and_not_refused() {
    let failed_test = "the server rejected our request due to an error in our request";
    let (client, script) = Script::of([
        (GET, Say::ok(service(41, &[]))),
        (PATCH, Say::status(422, "Invalid", failed_test)),
        (GET, Say::ok(successor(50))),
    ]);
    assert_eq!(writer(client).add_finalizer(&web()).await, KubeOutcome::Gone);
    script.played();
}

#[tokio::test]
async fn a_refusal_of_what_has_not_changed_keeps_the_servers_words() {
    let denied = "services \"web\" is forbidden: ValidatingAdmissionPolicy 'x' denied request: no";
    let (client, script) = Script::of([
        (GET, Say::ok(service(41, &[]))),
        (PATCH, Say::status(422, "Invalid", denied)),
        (GET, Say::ok(service(41, &[]))),
    ]);
    assert_eq!(writer(client).add_finalizer(&web()).await, KubeOutcome::Refused(denied.into()));
    script.played();
    let (client, script) = Script::of([
        (GET, Say::ok(service(41, &[]))),
        (PATCH, Say::status(422, "Invalid", denied)),
        (GET, Say::ok(service(42, &[]))),
    ]);
    assert_eq!(writer(client).add_finalizer(&web()).await, KubeOutcome::Conflict);
    script.played();
}

#[tokio::test]
async fn finalizers_of_another_controller_stay_if_the_service_has_its_class_by_now() {
    let mut theirs = service(41, &[FINALIZER, SERVICE_CONTROLLER_FINALIZER]);
    theirs["spec"]["loadBalancerClass"] = json!("example.com/other");
    let (client, script) =
        Script::of([(GET, Say::ok(theirs)), (PATCH, Say::ok(service(42, &[SERVICE_CONTROLLER_FINALIZER])))]);
    let writer = Writer::new(client, true, "sluice-0".into());
    assert_eq!(writer.remove_finalizer(&web()).await, KubeOutcome::Done { version: 42 });
    let requests = script.played();
    assert_eq!(value_of(&requests[1], "/metadata/finalizers"), json!([SERVICE_CONTROLLER_FINALIZER]));
}

#[tokio::test]
async fn our_finalizer_goes_and_the_inherited_ones_only_from_the_service_controller() {
    let all = [SERVICE_CONTROLLER_FINALIZER, FINALIZER, "example.com/keep", PREDECESSOR_FINALIZER];
    for (service_controller, left) in [
        (false, json!([SERVICE_CONTROLLER_FINALIZER, "example.com/keep", PREDECESSOR_FINALIZER])),
        (true, json!(["example.com/keep"])),
    ] {
        let (client, script) =
            Script::of([(GET, Say::ok(service(41, &all))), (PATCH, Say::ok(service(42, &[])))]);
        let writer = Writer::new(client, service_controller, "sluice-0".into());
        assert_eq!(writer.remove_finalizer(&web()).await, KubeOutcome::Done { version: 42 });
        let requests = script.played();
        assert_fenced(&requests[1], "41");
        assert_eq!(value_of(&requests[1], "/metadata/finalizers"), left);
    }
}

#[tokio::test]
async fn the_last_finalizer_takes_its_list_with_it_and_none_at_all_is_no_write() {
    let (client, script) =
        Script::of([(GET, Say::ok(service(41, &[FINALIZER]))), (PATCH, Say::ok(service(42, &[])))]);
    assert_eq!(writer(client).remove_finalizer(&web()).await, KubeOutcome::Done { version: 42 });
    let operation = json!({"op": "remove", "path": "/metadata/finalizers"});
    assert_eq!(script.played()[1].body[2], operation);

    let (client, script) = Script::of([(GET, Say::ok(service(41, &[SERVICE_CONTROLLER_FINALIZER])))]);
    assert_eq!(writer(client).remove_finalizer(&web()).await, KubeOutcome::Done { version: 41 });
    script.played();
}

#[tokio::test]
async fn the_status_is_written_at_its_subresource_and_then_not_again() {
    let ip: IpAddr = "20.1.2.3".parse().unwrap();
    let conditions = [Condition::new(ConditionKind::Serving, true, Reason::Provisioned, Concern::Resources)];
    let (client, script) = Script::of([
        (GET, Say::ok(service(41, &[FINALIZER]))),
        (PATCH_STATUS, Say::ok(service(42, &[FINALIZER]))),
    ]);
    let outcome = writer(client).write_status(&web(), Some(ip), None, &conditions).await;
    assert_eq!(outcome, KubeOutcome::Done { version: 42 });
    let requests = script.played();
    assert_fenced(&requests[1], "41");
    let ingress = value_of(&requests[1], "/status/loadBalancer/ingress");
    assert_eq!(ingress, json!([{"ip": "20.1.2.3", "ipMode": "VIP"}]));

    let mut written = service(42, &[FINALIZER]);
    written["status"]["loadBalancer"]["ingress"] = ingress;
    written["status"]["conditions"] = value_of(&requests[1], "/status/conditions");
    written["metadata"]["annotations"] = value_of(&requests[1], "/metadata/annotations");
    let (client, script) = Script::of([(GET, Say::ok(written))]);
    // An hour later nothing differs, though the clock does.
    let writer = writer(client).with_clock(|| "2026-11-16T11:00:00Z".parse().unwrap());
    let outcome = writer.write_status(&web(), Some(ip), None, &conditions).await;
    assert_eq!(outcome, KubeOutcome::Done { version: 42 });
    script.played();
}

const ANNOTATION: &str = "/metadata/annotations/sluice.dev~1published-ip";

#[tokio::test]
async fn the_annotation_is_written_in_the_patch_of_the_ingress_and_removed_with_it() {
    let ip: IpAddr = "20.1.2.3".parse().unwrap();
    let annotated = |version, annotations: Value| {
        let mut service = service(version, &[FINALIZER]);
        service["metadata"]["annotations"] = annotations;
        service
    };
    let others = json!({"example.com/team": "shop"});
    let ours = json!({"example.com/team": "shop", PUBLISHED_IP: "20.1.2.3"});
    let edited = json!({PUBLISHED_IP: "192.0.2.1"});
    for (before, ingress, path, operation, value) in [
        (Value::Null, Some(ip), "/metadata/annotations", "add", json!({PUBLISHED_IP: "20.1.2.3"})),
        (others, Some(ip), ANNOTATION, "add", json!("20.1.2.3")),
        (edited, Some(ip), ANNOTATION, "add", json!("20.1.2.3")),
        (ours, None, ANNOTATION, "remove", Value::Null),
    ] {
        let mut found = annotated(41, before);
        if ingress.is_none() {
            found["status"]["loadBalancer"]["ingress"] = json!([{"ip": "20.1.2.3", "ipMode": "VIP"}]);
        }
        let (client, script) = Script::of([(PATCH_STATUS, Say::ok(annotated(42, Value::Null)))]);
        let writer = writer_that_saw(&found, client);
        let outcome = writer.write_status(&web(), ingress, Some(ip), &[]).await;
        assert_eq!(outcome, KubeOutcome::Done { version: 42 });
        let requests = script.played();
        let operations = requests[0].body.as_array().unwrap();
        let ingress = operations.iter().position(|it| it["path"] == "/status/loadBalancer/ingress");
        let annotation = operations.iter().find(|it| it["path"] == path).expect(path);
        assert!(ingress.is_some(), "{operations:?}");
        assert_eq!((&annotation["op"], &annotation["value"]), (&json!(operation), &value));
    }
}

/// What the API server answers if a policy of this name rejects a request.
fn denied_by(policy: &str) -> Say {
    let words = format!(
        "services \"web\" is forbidden: ValidatingAdmissionPolicy '{policy}' with binding '{policy}' denied request: not its annotations."
    );
    Say::status(422, "Invalid", &words)
}

fn has_annotation(request: &Heard) -> bool {
    let operations = request.body.as_array().unwrap();
    operations.iter().any(|it| it["path"].as_str().unwrap().starts_with("/metadata/annotations"))
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_rejects_the_annotation_is_reported_once_and_the_status_is_written_without_it() {
    let ip: IpAddr = "20.1.2.3".parse().unwrap();
    let conditions = [Condition::new(ConditionKind::Serving, true, Reason::Provisioned, Concern::Resources)];
    let lease = "GET /apis/coordination.k8s.io/v1/namespaces/sluice-system/leases/sluice";
    let events = "POST /apis/events.k8s.io/v1/namespaces/sluice-system/events";
    let (client, script) = Script::of([
        (PATCH_STATUS, denied_by("sluice-services")),
        (GET, Say::ok(service(41, &[FINALIZER]))),
        (PATCH_STATUS, Say::ok(service(42, &[FINALIZER]))),
        (lease, Say::ok(json!({"metadata": {"name": "sluice", "uid": "lease-uid"}}))),
        (events, Say::ok(json!({"metadata": {"name": "event"}}))),
        (PATCH_STATUS, Say::ok(service(43, &[FINALIZER]))),
        (PATCH_STATUS, Say::ok(service(44, &[FINALIZER]))),
    ]);
    let writer = writer_that_saw(&service(41, &[FINALIZER]), client).with_home("sluice-system", "sluice");
    for version in [42, 43] {
        let outcome = writer.write_status(&web(), Some(ip), None, &conditions).await;
        assert_eq!(outcome, KubeOutcome::Done { version });
    }
    tokio::time::advance(super::ANNOTATION_RETRY).await;
    let outcome = writer.write_status(&web(), Some(ip), None, &conditions).await;
    assert_eq!(outcome, KubeOutcome::Done { version: 44 });
    let requests = script.played();
    assert_eq!([0, 2, 5, 6].map(|at| has_annotation(&requests[at])), [true, false, false, true]);
    // What is written without it can be read back by version 0.1 and later.
    let conditions = value_of(&requests[2], "/status/conditions");
    assert_eq!(read_by_version_0_1(conditions[0]["message"].as_str().unwrap()), Some(ip));
    let told = requests[4].body["note"].as_str().unwrap();
    assert!(told.contains("sluice-services") && told.contains(PUBLISHED_IP), "{told}");
}

/// The rule by which version 0.1 finds the published IP in a condition.
fn read_by_version_0_1(message: &str) -> Option<IpAddr> {
    let (_, rest) = message.split_once("Reached at ")?;
    rest.split_whitespace().next()?.trim_end_matches('.').parse().ok()
}

#[tokio::test]
async fn a_policy_of_others_that_rejects_the_annotation_of_one_service_holds_it_back_from_no_other() {
    let ip: IpAddr = "20.1.2.3".parse().unwrap();
    let webhook = "admission webhook \"validation.example.com\" denied the request: not its annotations";
    for (denial, code) in
        [(denied_by("no-new-annotations"), 422), (Say::status(403, "Forbidden", webhook), 403)]
    {
        // A failed test of the patch is also a 422, so the Service is read again.
        let read = (code == 422).then(|| (GET, Say::ok(service(41, &[FINALIZER]))));
        let (client, script) = Script::of([(PATCH_STATUS, denial)].into_iter().chain(read).chain([
            (PATCH_STATUS, Say::ok(service(42, &[FINALIZER]))),
            (PATCH_STATUS, Say::ok(service(43, &[FINALIZER]))),
        ]));
        let writer = writer_that_saw(&service(41, &[FINALIZER]), client).with_home("sluice-system", "sluice");
        for version in [42, 43] {
            let outcome = writer.write_status(&web(), Some(ip), None, &[]).await;
            assert_eq!(outcome, KubeOutcome::Done { version });
        }
        let mut requests = script.played();
        requests.retain(|request| request.line == PATCH_STATUS);
        assert_eq!([0, 1, 2].map(|at| has_annotation(&requests[at])), [true, false, true]);
    }
}

#[tokio::test]
async fn a_rejection_that_names_no_policy_is_not_blamed_on_the_annotation() {
    let ip: IpAddr = "20.1.2.3".parse().unwrap();
    for (code, words) in [(403, "forbidden: User cannot patch"), (422, "metadata.annotations: Too long")] {
        let patch = (PATCH_STATUS, Say::status(code, "Invalid", words));
        // A failed test of the patch is also a 422, so the Service is read again.
        let read = (code == 422).then(|| (GET, Say::ok(service(41, &[FINALIZER]))));
        let (client, script) = Script::of([patch].into_iter().chain(read));
        let outcome = writer_that_saw(&service(41, &[FINALIZER]), client)
            .write_status(&web(), Some(ip), None, &[])
            .await;
        assert!(matches!(outcome, KubeOutcome::Refused(_)), "{outcome:?}");
        assert!(has_annotation(&script.played()[0]));
    }
}

#[tokio::test]
async fn a_service_that_is_no_load_balancer_any_more_gets_no_ip_but_loses_one() {
    let ip: IpAddr = "20.1.2.3".parse().unwrap();
    let mut changed = service(41, &[FINALIZER]);
    changed["spec"]["type"] = json!("ClusterIP");
    changed["status"]["loadBalancer"]["ingress"] = json!([{"ip": "20.1.2.3"}]);
    let (client, script) = Script::of([(GET, Say::ok(changed.clone()))]);
    assert_eq!(writer(client).write_status(&web(), Some(ip), None, &[]).await, KubeOutcome::Conflict);
    script.played();
    let (client, script) =
        Script::of([(GET, Say::ok(changed)), (PATCH_STATUS, Say::ok(service(42, &[FINALIZER])))]);
    let outcome = writer(client).write_status(&web(), None, Some(ip), &[]).await;
    assert_eq!(outcome, KubeOutcome::Done { version: 42 });
    script.played();
}

#[tokio::test]
async fn what_the_api_server_answers_is_what_the_engine_hears() {
    let forbidden =
        "services \"web\" is forbidden: User \"u\" cannot patch resource \"services\" in API group";
    let refused = format!("patch services denied: {forbidden}; grant this permission to the account");
    for (say, outcome) in [
        (Say::status(409, "Conflict", "changed"), KubeOutcome::Conflict),
        (Say::status(404, "NotFound", "gone"), KubeOutcome::Gone),
        (Say::status(403, "Forbidden", forbidden), KubeOutcome::Refused(refused.as_str().into())),
        (Say::status(400, "BadRequest", "no"), KubeOutcome::Refused("no".into())),
        (Say::status(429, "TooManyRequests", "later"), KubeOutcome::Unavailable),
        (Say::status(503, "ServiceUnavailable", "later"), KubeOutcome::Unavailable),
        (Say::Break, KubeOutcome::Unavailable),
    ] {
        let (client, script) = Script::of([(GET, Say::ok(service(41, &[]))), (PATCH, say)]);
        assert_eq!(writer(client).add_finalizer(&web()).await, outcome);
        script.played();
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_never_comes_is_unavailable() {
    let (client, script) = Script::of([(GET, Say::ok(service(41, &[]))), (PATCH, Say::Hang)]);
    assert_eq!(writer(client).add_finalizer(&web()).await, KubeOutcome::Unavailable);
    script.played();
}

#[tokio::test]
async fn a_lease_that_ran_out_during_the_read_keeps_the_patch_from_being_sent() {
    let (client, script) = Script::of([(GET, Say::ok(service(41, &[])))]);
    let writer = writer(client).with_fence(|| false);
    assert_eq!(writer.add_finalizer(&web()).await, KubeOutcome::Unavailable);
    script.played();
}

#[tokio::test]
async fn a_notice_is_not_begun_either_when_the_lease_may_be_lost() {
    let (client, script) = Script::of([]);
    let notice = Notice {
        about: sluice_model::effect::About::Service(web()),
        warning: true,
        reason: Reason::InvalidSpec,
        text: "no".into(),
    };
    writer(client).with_fence(|| false).notify(&notice).await;
    script.played();
}

#[tokio::test]
async fn existence_is_asked_for_live_and_by_uid_and_only_proof_counts() {
    let mut nameless = service(41, &[]);
    nameless["metadata"].as_object_mut().unwrap().remove("uid");
    let mut odd = service(41, &[]);
    odd["metadata"]["uid"] = json!("who knows");
    let not_a_status = json!({"reason": "NotFound", "message": "no such upstream"});
    for (say, existence) in [
        (Say::ok(service(41, &[])), Existence::Exists),
        (Say::ok(successor(41)), Existence::Gone),
        (Say::status(404, "NotFound", "gone"), Existence::Gone),
        (Say::Text(404, "404 page not found"), Existence::Unclear),
        (Say::Json(404, not_a_status), Existence::Unclear),
        (Say::status(404, "Odd", "nothing here"), Existence::Unclear),
        (Say::ok(nameless), Existence::Unclear),
        (Say::ok(odd), Existence::Unclear),
        (Say::ok(json!({"message": "welcome"})), Existence::Unclear),
        (Say::status(403, "Forbidden", "no"), Existence::Unclear),
        (Say::status(500, "InternalError", "oh"), Existence::Unclear),
    ] {
        let (client, script) = Script::of([(GET, say.clone())]);
        assert_eq!(writer(client).look_for(&web()).await, existence, "{say:?}");
        // A read that names a version may be answered from a cache.
        assert_eq!(script.played()[0].query, "");
    }
}

#[tokio::test]
async fn an_answer_that_does_not_say_who_it_is_about_is_no_ground_to_call_a_service_gone() {
    let (client, script) = Script::of([(GET, Say::ok(json!({"message": "welcome"})))]);
    assert_eq!(writer(client).add_finalizer(&web()).await, KubeOutcome::Unavailable);
    script.played();
}
