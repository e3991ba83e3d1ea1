//! Claims about what `kubectl get` shows of an object.

use super::*;
use crate::kinds::KINDS;

/// What a row shows, without the last column of a short table: the age.
fn shown(kind: &Kind, object: &Value) -> Vec<String> {
    let columns = of(kind);
    let cells = cells(kind, object);
    assert_eq!(columns.len(), cells.len(), "{}", kind.kind);
    let pairs = columns.iter().zip(cells);
    let told = pairs.filter(|(column, _)| !matches!(column.name, "Age" | "Name"));
    told.map(|(_, cell)| cell.as_str().map_or_else(|| cell.to_string(), ToOwned::to_owned)).collect()
}

#[test]
fn every_kind_has_as_many_cells_as_columns_even_if_it_says_nothing() {
    for kind in KINDS {
        let columns = of(kind);
        let cells = cells(kind, &json!({"metadata": {"name": "x"}}));
        assert_eq!(columns.len(), cells.len(), "{}", kind.kind);
        for (column, cell) in columns.iter().zip(&cells) {
            assert_eq!(column.is_number, cell.is_number(), "{} of {}", column.name, kind.kind);
        }
    }
}

#[test]
fn a_pod_is_called_by_what_its_containers_do() {
    let pod = |state: Value, ready: bool| {
        json!({"metadata": {"name": "p"}, "spec": {"nodeName": "n", "containers": [{}]},
            "status": {"phase": "Running", "podIP": "10.244.1.2",
                "containerStatuses": [{"ready": ready, "restartCount": 0, "state": state}]}})
    };
    let running = pod(json!({"running": {}}), true);
    assert_eq!(shown(&POD, &running), ["1/1", "Running", "0", "10.244.1.2", "n", "<none>", "<none>"]);
    let waiting = pod(json!({"waiting": {"reason": "ContainerCreating"}}), false);
    assert_eq!(shown(&POD, &waiting)[..2], ["0/1", "ContainerCreating"]);
    let mut going = running;
    going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert_eq!(shown(&POD, &going)[1], "Terminating");
}

#[test]
fn a_load_balancer_waits_for_its_address_and_then_shows_it() {
    let mut service = json!({"metadata": {"name": "web"}, "spec": {"type": "LoadBalancer",
        "clusterIP": "10.96.0.9", "selector": {"app": "web"},
        "ports": [{"port": 80, "nodePort": 30080, "protocol": "TCP"}, {"port": 81, "protocol": "UDP"}]}});
    let expected = ["LoadBalancer", "10.96.0.9", "<pending>", "80:30080/TCP,81/UDP", "app=web"];
    assert_eq!(shown(&SERVICE, &service), expected);
    service["status"] = json!({"loadBalancer": {"ingress": [{"ip": "20.0.0.4"}]}});
    assert_eq!(shown(&SERVICE, &service)[2], "20.0.0.4");
}

#[test]
fn a_slice_shows_three_endpoints_and_counts_the_rest() {
    let endpoints: Vec<Value> = (1..=5).map(|it| json!({"addresses": [format!("10.0.0.{it}")]})).collect();
    let slice = json!({"metadata": {"name": "s"}, "addressType": "IPv4", "ports": [{"port": 80}],
        "endpoints": endpoints});
    let expected = ["IPv4", "80", "10.0.0.1,10.0.0.2,10.0.0.3 + 2 more..."];
    assert_eq!(shown(&ENDPOINT_SLICE, &slice), expected);
    let empty = json!({"metadata": {"name": "s"}, "addressType": "IPv4"});
    assert_eq!(shown(&ENDPOINT_SLICE, &empty), ["IPv4", "<unset>", "<unset>"]);
}

#[test]
fn a_scale_has_columns_of_its_own() {
    let scale = json!({"metadata": {"name": "web"}, "spec": {"replicas": 2}, "status": {"replicas": 3}});
    assert_eq!(scale_cells(&scale)[..3], [json!("web"), json!(2), json!(3)]);
    assert_eq!(super::scale().len(), scale_cells(&scale).len());
}
