//! Claims about what stands in the slices of a Service, and which slice it stands in.

use serde_json::json;

use super::*;

fn service(ports: Value) -> Arc<Value> {
    Arc::new(json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "web", "namespace": "shop", "uid": "svc", "labels": {"team": "a"}},
        "spec": {"selector": {"app": "web"}, "ports": ports, "ipFamilies": ["IPv4"]},
    }))
}

fn pod(number: usize, ready: bool) -> Arc<Value> {
    Arc::new(json!({
        "metadata": {"name": format!("p{number:03}"), "namespace": "shop", "uid": format!("u{number:03}"),
            "labels": {"app": "web"}},
        "spec": {"nodeName": "n", "containers": [{"ports": [{"name": "http", "containerPort": 8000 + number % 2}]}]},
        "status": {"phase": "Running", "podIPs": [{"ip": format!("10.244.0.{number}")}],
            "conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" }}]},
    }))
}

fn view(pods: Vec<Arc<Value>>, slices: Vec<Arc<Value>>) -> View {
    let zones = [("n".to_owned(), "zone-1".to_owned())].into();
    View {
        service: service(json!([{"port": 80, "targetPort": 8080, "protocol": "TCP"}])),
        pods,
        slices,
        zones,
    }
}

/// The slices as they are after the changes.
fn carried_out(view: &View) -> Vec<Arc<Value>> {
    let mut slices = view.slices.clone();
    for (number, change) in reconcile(view).into_iter().enumerate() {
        match change {
            Change::Create { mut object, .. } => {
                object["metadata"]["name"] = json!(format!("new-{number}"));
                slices.push(Arc::new(object));
            }
            Change::Put { object, .. } => {
                let place = slices.iter().position(|it| name_of(it) == name_of(&object)).unwrap();
                slices[place] = Arc::new(object);
            }
            Change::Delete { object, .. } => slices.retain(|it| name_of(it) != name_of(&object)),
            Change::Tell(_) => {}
        }
    }
    slices
}

fn sizes(slices: &[Arc<Value>]) -> Vec<usize> {
    slices.iter().map(|slice| list(slice, &["endpoints"]).len()).collect()
}

#[test]
fn a_slice_is_written_as_the_real_controller_writes_it() {
    let slices = carried_out(&view(vec![pod(1, true), pod(2, false)], Vec::new()));
    let [slice] = &slices[..] else { panic!("{slices:?}") };
    assert_eq!(slice["addressType"], "IPv4");
    assert_eq!(slice["metadata"]["generateName"], "web-");
    let labels = json!({"team": "a", SERVICE_NAME: "web", MANAGED_BY: MANAGER});
    assert_eq!(slice["metadata"]["labels"], labels);
    assert_eq!(slice["metadata"]["ownerReferences"][0]["uid"], "svc");
    assert_eq!(slice["ports"], json!([{"name": "", "port": 8080, "protocol": "TCP"}]));
    let ready = json!({"addresses": ["10.244.0.1"], "nodeName": "n", "zone": "zone-1",
        "conditions": {"ready": true, "serving": true, "terminating": false},
        "targetRef": {"kind": "Pod", "name": "p001", "namespace": "shop", "uid": "u001"}});
    assert_eq!(slice["endpoints"][0], ready);
    assert_eq!(
        slice["endpoints"][1]["conditions"],
        json!({"ready": false, "serving": false, "terminating": false})
    );
}

#[test]
fn a_slice_has_a_hundred_endpoints_at_most_and_those_that_stay_stay_where_they_are() {
    let pods: Vec<Arc<Value>> = (0..250).map(|number| pod(number, true)).collect();
    let slices = carried_out(&view(pods.clone(), Vec::new()));
    assert_eq!(sizes(&slices), [100, 100, 50]);
    assert!(reconcile(&view(pods.clone(), slices.clone())).is_empty(), "nothing more is to be done");
    // Two of the first slice go: only that slice is written, and nobody moves.
    let fewer: Vec<Arc<Value>> = pods[2..].to_vec();
    let changes = reconcile(&view(fewer, slices.clone()));
    assert!(matches!(&changes[..], [Change::Put { object, .. }] if name_of(object) == name_of(&slices[0])));
}

#[test]
fn a_service_without_endpoints_has_one_empty_slice_which_is_used_again() {
    let empty = carried_out(&view(Vec::new(), Vec::new()));
    assert_eq!(sizes(&empty), [0]);
    assert!(at(&empty[0], &["ports"]).is_null());
    let filled = carried_out(&view(vec![pod(1, true)], empty.clone()));
    assert_eq!((filled.len(), name_of(&filled[0])), (1, name_of(&empty[0])));
    let emptied = carried_out(&view(Vec::new(), filled));
    assert_eq!((sizes(&emptied), name_of(&emptied[0])), (vec![0], name_of(&empty[0])));
}

#[test]
fn pods_that_name_a_port_differently_are_in_different_slices() {
    let mut view = view(vec![pod(1, true), pod(2, true), pod(3, true)], Vec::new());
    view.service = service(json!([{"name": "web", "port": 80, "targetPort": "http", "protocol": "TCP"}]));
    let slices = carried_out(&view);
    let ports: Vec<&Value> = slices.iter().map(|slice| &slice["ports"][0]["port"]).collect();
    assert_eq!((sizes(&slices), ports), (vec![1, 2], vec![&json!(8000), &json!(8001)]));
}

#[test]
fn a_pod_that_terminates_is_not_ready_and_one_that_is_over_is_no_endpoint() {
    let mut going = (*pod(1, true)).clone();
    going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let mut over = (*pod(2, true)).clone();
    over["status"]["phase"] = json!("Succeeded");
    let slices = carried_out(&view(vec![Arc::new(going), Arc::new(over)], Vec::new()));
    assert_eq!(sizes(&slices), [1]);
    let conditions = json!({"ready": false, "serving": true, "terminating": true});
    assert_eq!(slices[0]["endpoints"][0]["conditions"], conditions);
}

#[test]
fn a_service_without_a_selector_is_left_to_others() {
    let mut view = view(vec![pod(1, true)], Vec::new());
    view.service = Arc::new(json!({"metadata": {"name": "web", "namespace": "shop"}, "spec": {"ports": []}}));
    assert!(reconcile(&view).is_empty());
}

#[test]
fn both_families_have_slices_of_their_own() {
    let mut service = (*service(json!([{"port": 80}]))).clone();
    service["spec"]["ipFamilies"] = json!(["IPv4", "IPv6"]);
    let mut dual = (*pod(1, true)).clone();
    dual["status"]["podIPs"] = json!([{"ip": "10.244.0.1"}, {"ip": "fd00::1"}]);
    let mut view = view(vec![Arc::new(dual)], Vec::new());
    view.service = Arc::new(service);
    let slices = carried_out(&view);
    let told: Vec<(&str, &Value)> =
        slices.iter().map(|it| (text(it, &["addressType"]), &it["endpoints"][0]["addresses"][0])).collect();
    assert_eq!(told, [("IPv4", &json!("10.244.0.1")), ("IPv6", &json!("fd00::1"))]);
}
