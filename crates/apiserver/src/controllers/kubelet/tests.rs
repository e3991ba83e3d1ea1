//! Claims about the stages of a pod and the addresses that it gets.

use serde_json::json;

use super::*;

fn pod(status: Value, going: bool) -> Value {
    let mut pod = json!({
        "metadata": {"name": "p", "namespace": "shop", "uid": "u"},
        "spec": {"nodeName": "n", "containers": [{"name": "web", "image": "web:1"}]},
        "status": status,
    });
    if going {
        pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        pod["metadata"]["deletionGracePeriodSeconds"] = json!(30);
    }
    pod
}

fn after(pod: &Value) -> Value {
    let node = json!({"status": {"addresses": [{"type": "InternalIP", "address": "10.240.0.4"}]}});
    let view =
        View { pod: Arc::new(pod.clone()), node: Arc::new(node), addresses: vec!["10.244.1.2".to_owned()] };
    match reconcile(&view, Stage::of(pod)).into_iter().next() {
        Some(Change::Put { object, .. }) => object,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_pod_goes_from_placed_to_ready_and_says_so_at_every_step() {
    let placed = pod(json!({"phase": "Pending"}), false);
    assert_eq!(Stage::of(&placed), Stage::Placed);
    let starting = after(&placed);
    assert_eq!(Stage::of(&starting), Stage::Starting);
    assert_eq!(starting["status"]["containerStatuses"][0]["state"]["waiting"]["reason"], "ContainerCreating");
    assert_eq!(starting["status"]["hostIP"], "10.240.0.4");
    let settling = after(&starting);
    assert_eq!(Stage::of(&settling), Stage::Settling);
    assert_eq!(
        (&settling["status"]["podIP"], &settling["status"]["phase"]),
        (&json!("10.244.1.2"), &json!("Running"))
    );
    assert!(!holds(&settling, "Ready"));
    let settled = after(&settling);
    assert_eq!(Stage::of(&settled), Stage::Settled);
    assert!(holds(&settled, "Ready") && holds(&settled, "ContainersReady"));
    assert_eq!(settled["status"]["containerStatuses"][0]["ready"], true);
}

#[test]
fn a_pod_that_stops_serves_no_more_and_then_is_gone() {
    let ready = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}],
        "containerStatuses": [{"name": "web", "ready": true, "state": {"running": {"startedAt": "t"}}}]});
    let stopping = pod(ready, true);
    assert_eq!(Stage::of(&stopping), Stage::Stopping);
    let stopped = after(&stopping);
    assert_eq!(Stage::of(&stopped), Stage::Stopped);
    assert_eq!(stopped["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"], 0);
    let view = View { pod: Arc::new(stopped), node: Arc::new(json!({})), addresses: Vec::new() };
    assert!(matches!(&reconcile(&view, Stage::Stopped)[..], [Change::Delete { deletion, .. }]
        if deletion.grace == Some(0)));
}

#[test]
fn a_short_grace_period_is_kept() {
    let mut short =
        pod(json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}), true);
    assert!(Stage::Stopping.lasts(&short) > Duration::from_secs(1));
    short["metadata"]["deletionGracePeriodSeconds"] = json!(1);
    assert_eq!(Stage::Stopping.lasts(&short), Duration::from_secs(1));
}

#[test]
fn addresses_are_of_the_range_and_not_given_twice_in_a_row() {
    let store = Store::new();
    let mut kubelet = Kubelet::new(Settings::default());
    let node = json!({"metadata": {"name": "n"},
        "spec": {"podCIDRs": ["10.244.1.0/24", "fd00:244:1::/64"]}});
    let pod = pod(json!({}), false);
    let first = kubelet.addresses(&store, &pod, &node).unwrap();
    assert_eq!(first, ["10.244.1.2", "fd00:244:1::2"]);
    let given: BTreeSet<Vec<String>> =
        (0..ROOM - 1).map(|_| kubelet.addresses(&store, &pod, &node).unwrap()).collect();
    assert_eq!(given.len(), 252, "each once");
    assert!(!given.contains(&first));
    assert_eq!(kubelet.addresses(&store, &pod, &node).unwrap(), first, "and then from the start");
}

#[test]
fn a_range_at_the_end_of_all_addresses_has_none_to_give() {
    assert_eq!(address("255.255.255.255/32", FIRST), None);
    assert_eq!(address("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128", FIRST), None);
    assert_eq!(address("10.244.1.0/24", FIRST).as_deref(), Some("10.244.1.2"));
}
