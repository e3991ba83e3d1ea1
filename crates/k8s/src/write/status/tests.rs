//! What changes in a status, and what of others stays.

use sluice_model::kube::Concern;

use super::*;
use crate::convert::{Selection, Words, published_in, service};

const PROVISIONING: &str = "LoadBalancerProvisioning";
const SERVING: &str = "LoadBalancerServing";
const UID: &str = "0b7ac3b8-6a1f-4d0e-9a53-1f2f6a0c9d11";

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn web() -> ObjectName {
    ObjectName::new("shop", "web")
}

fn condition(kind: ConditionKind, holds: bool, reason: Reason) -> Condition {
    Condition::new(kind, holds, reason, Concern::Resources)
}

fn live() -> [Condition; 2] {
    [
        condition(ConditionKind::Provisioning, false, Reason::Provisioned),
        condition(ConditionKind::Serving, true, Reason::Provisioned),
    ]
}

/// The value that a path gets; `None` when it is not touched, null when it is taken away.
fn set(operations: &[Value], path: &str) -> Option<Value> {
    let operation = operations.iter().find(|operation| operation["path"] == path)?;
    Some(operation.get("value").cloned().unwrap_or(Value::Null))
}

#[test]
fn entries_of_others_stay_with_fields_that_we_do_not_know() {
    let service = json!({"status": {"loadBalancer": {"ingress": [
        {"ip": "9.9.9.9", "ipMode": "Proxy", "ports": [{"port": 1, "protocol": "TCP"}], "new": 1},
        {"hostname": "lb.example.com"},
        {"ip": "20.0.0.1", "ipMode": "VIP"},
    ]}}});
    let changes = operations(
        &service,
        &web(),
        Some(ip("20.1.2.3")),
        Some(ip("20.0.0.1")),
        &[],
        at("2026-11-16T10:00:00Z"),
    );
    assert_eq!(
        set(&changes, "/status/loadBalancer/ingress"),
        Some(json!([
            {"ip": "9.9.9.9", "ipMode": "Proxy", "ports": [{"port": 1, "protocol": "TCP"}], "new": 1},
            {"hostname": "lb.example.com"},
            {"ip": "20.1.2.3", "ipMode": "VIP"},
        ]))
    );
}

#[test]
fn our_entry_is_known_in_any_spelling_and_written_once() {
    let service =
        json!({"status": {"loadBalancer": {"ingress": [{"ip": "2001:DB8:0::1", "ipMode": "VIP"}]}}});
    assert!(
        operations(&service, &web(), Some(ip("2001:db8::1")), None, &[], at("2026-11-16T10:00:00Z"))
            .is_empty()
    );
}

#[test]
fn an_ip_is_not_retracted_while_it_is_published() {
    let service = json!({"status": {"loadBalancer": {"ingress": [{"ip": "20.1.2.3", "ipMode": "VIP"}]}}});
    let both = Some(ip("20.1.2.3"));
    assert!(operations(&service, &web(), both, both, &[], at("2026-11-16T10:00:00Z")).is_empty());
}

#[test]
fn the_last_entry_takes_the_list_with_it() {
    let service = json!({"status": {"loadBalancer": {"ingress": [{"ip": "20.1.2.3"}]}}});
    let changes = operations(&service, &web(), None, Some(ip("20.1.2.3")), &[], at("2026-11-16T10:00:00Z"));
    assert_eq!(changes, [json!({"op": "remove", "path": "/status/loadBalancer/ingress"})]);
}

#[test]
fn a_status_without_anything_gets_its_frame_first() {
    let changes =
        operations(&json!({}), &web(), Some(ip("20.1.2.3")), None, &live(), at("2026-11-16T10:00:00Z"));
    let paths: Vec<&str> = changes.iter().map(|change| change["path"].as_str().unwrap()).collect();
    assert_eq!(
        paths,
        ["/status", "/status/loadBalancer", "/status/loadBalancer/ingress", "/status/conditions"]
    );
}

#[test]
fn conditions_of_others_stay_and_ours_are_merged_by_type() {
    let service = json!({"status": {"conditions": [
        {"type": "Foreign", "status": "True", "reason": "R", "message": "M", "extra": true},
        {"type": SERVING, "status": "False", "reason": "Provisioning", "message": "x",
         "lastTransitionTime": "2026-11-16T08:00:00Z"},
        {"type": PROVISIONING, "status": "False", "reason": "Provisioning", "message": "x",
         "lastTransitionTime": "2026-11-16T08:00:00Z"},
    ]}});
    let changes = operations(&service, &web(), None, None, &live(), at("2026-11-16T10:00:00Z"));
    let conditions = set(&changes, "/status/conditions").unwrap();
    assert_eq!(conditions[0], service["status"]["conditions"][0]);
    // The status of one has changed, that of the other has not.
    assert_eq!(conditions[1]["type"], SERVING);
    assert_eq!(conditions[1]["status"], "True");
    assert_eq!(conditions[1]["lastTransitionTime"], "2026-11-16T10:00:00Z");
    assert_eq!(conditions[2]["type"], PROVISIONING);
    assert_eq!(conditions[2]["reason"], "Provisioned");
    assert_eq!(conditions[2]["lastTransitionTime"], "2026-11-16T08:00:00Z");
    assert_eq!(conditions.as_array().unwrap().len(), 3);
}

#[test]
fn no_conditions_of_ours_means_that_both_go() {
    let service = json!({"status": {"conditions": [
        {"type": SERVING, "status": "True"}, {"type": "Foreign", "status": "True"}, {"type": PROVISIONING},
    ]}});
    let changes = operations(&service, &web(), None, None, &[], at("2026-11-16T10:00:00Z"));
    assert_eq!(
        changes,
        [json!({
            "op": "add", "path": "/status/conditions", "value": [{"type": "Foreign", "status": "True"}],
        })]
    );
}

#[test]
fn what_is_published_can_be_read_back_whatever_the_reason() {
    let conditions = |reason| [condition(ConditionKind::Serving, false, reason)];
    for reason in Reason::ALL {
        let published = ip("20.1.2.3");
        let changes = operations(
            &json!({}),
            &web(),
            Some(published),
            None,
            &conditions(reason),
            at("2026-11-16T10:00:00Z"),
        );
        let written = set(&changes, "/status/conditions").unwrap();
        let message = written[0]["message"].as_str().unwrap().to_string();
        assert_eq!(published_in(&message), Some(published), "{message}");
        let changes =
            operations(&json!({}), &web(), None, None, &conditions(reason), at("2026-11-16T10:00:00Z"));
        let written = set(&changes, "/status/conditions").unwrap();
        let message = written[0]["message"].as_str().unwrap().to_string();
        assert_eq!(published_in(&message), None, "{message}");
        assert!(message.ends_with('.') && !message.contains("  "), "{message}");
    }
}

#[test]
fn the_message_of_a_problem_names_the_commands_within_1_kib() {
    let message = |name: &str, reason| {
        let name = ObjectName::new(name, name);
        let serving =
            Condition { concern: Concern::Addresses, ..condition(ConditionKind::Serving, false, reason) };
        let published = Some(ip("2001:db8:1111:2222:3333:4444:5555:6666"));
        let changes = operations(&json!({}), &name, published, None, &[serving], at("2026-11-16T10:00:00Z"));
        let written = set(&changes, "/status/conditions").unwrap();
        written[0]["message"].as_str().unwrap().to_string()
    };
    let short = message("web", Reason::QuotaExceeded);
    assert!(
        short.starts_with("Reached at 2001:db8:1111:2222:3333:4444:5555:6666. Some addresses"),
        "{short}"
    );
    let commands = " Details: `sluice explain service/web/web` and `sluice explain SGW0008`.";
    assert!(short.ends_with(commands), "{short}");
    for reason in Reason::ALL {
        for length in [63, 253] {
            let message = message(&"n".repeat(length), reason);
            assert!(message.len() <= 1024, "{message}");
        }
    }
}

#[test]
fn a_message_says_what_is_in_trouble_before_the_reason() {
    let stuck = Condition {
        concern: Concern::Addresses,
        ..condition(ConditionKind::Provisioning, true, Reason::AzureUnavailable)
    };
    let changes = operations(&json!({}), &web(), None, None, &[stuck], at("2026-11-16T10:00:00Z"));
    let written = set(&changes, "/status/conditions").unwrap();
    assert_eq!(
        written[0]["message"],
        "Some addresses are not programmed in Azure. Azure does not answer, answers with errors, or does not complete an operation. Check the error of Azure; if it names no cause, check Azure Service Health and the network between the controller and Azure. Sluice retries until it succeeds. Details: `sluice explain service/shop/web` and `sluice explain SGW0013`."
    );
}

#[test]
fn a_message_with_details_is_read_back_as_it_was_written() {
    let (reason, concern) = (Reason::QuotaExceeded, Concern::Resources);
    let detail = "At most 10 public IPs. Reached at 10.0.0.1.";
    let conditions = [
        Condition {
            message: reason.message(concern, Some(&web()), Some(detail)).into(),
            ..condition(ConditionKind::Provisioning, true, reason)
        },
        condition(ConditionKind::Serving, false, reason),
    ];
    for published in [None, Some(ip("20.1.2.3"))] {
        let changes =
            operations(&json!({}), &web(), published, None, &conditions, at("2026-11-16T10:00:00Z"));
        let written = set(&changes, "/status/conditions").unwrap();
        assert!(written[0]["message"].as_str().unwrap().contains(detail), "{written}");
        let light = serde_json::from_value(json!({
            "metadata": {"uid": UID, "namespace": "shop", "name": "web", "resourceVersion": "7"},
            "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]},
            "status": {"conditions": written},
        }));
        let object = service(&light.unwrap(), &Selection::default(), &mut Words::default()).unwrap();
        assert_eq!(object.conditions, conditions);
        assert_eq!(object.published, published);
    }
}

#[test]
fn the_generation_is_said_where_there_is_one() {
    let with = json!({"metadata": {"generation": 4}});
    let changes = operations(&with, &web(), None, None, &live(), at("2026-11-16T10:00:00Z"));
    assert_eq!(set(&changes, "/status/conditions").unwrap()[0]["observedGeneration"], 4);
    let changes = operations(&json!({}), &web(), None, None, &live(), at("2026-11-16T10:00:00Z"));
    assert_eq!(set(&changes, "/status/conditions").unwrap()[0].get("observedGeneration"), None);
}
