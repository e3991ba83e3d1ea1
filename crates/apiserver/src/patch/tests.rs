//! Stories of patches, apply and the owners of fields.

use serde_json::{Value, json};

use super::*;
use crate::kinds::{CONFIG_MAP, DEPLOYMENT, SERVICE};
use crate::store::tests::{created, store};
use crate::store::{Store, Write};
use crate::value::{at, list, text};

fn entry(object: &Value, manager: &str) -> Value {
    let all = list(object, &["metadata", "managedFields"]);
    all.iter().find(|it| text(it, &["manager"]) == manager).cloned().unwrap_or_default()
}

fn owned(object: &Value, manager: &str) -> Value {
    entry(object, manager)["fieldsV1"].clone()
}

fn apply(
    store: &Store,
    kind: &'static Kind,
    manager: &str,
    configuration: Value,
    force: bool,
) -> Result<Value, Refusal> {
    let name = text(&configuration, &["metadata", "name"]).to_owned();
    let patch = Patch::Apply { configuration, force };
    let written = store.patch(kind, "default", &name, &patch, &Write::by(manager))?;
    Ok(written.object.as_ref().clone())
}

fn web(replicas: i64) -> Value {
    json!({"metadata": {"name": "web", "labels": {"app": "web"}}, "spec": {"replicas": replicas,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "nginx", "image": "nginx"}]}}}})
}

#[test]
fn a_maker_owns_what_it_wrote_and_what_was_filled_in_and_nothing_that_was_given_out() {
    let store = store();
    let made = created(&store, &DEPLOYMENT, web(2));
    // As a real server answers to `kubectl create deployment`.
    assert_eq!(
        owned(&made, "test"),
        json!({"f:metadata": {"f:labels": {".": {}, "f:app": {}}}, "f:spec": {"f:progressDeadlineSeconds": {},
            "f:replicas": {}, "f:revisionHistoryLimit": {}, "f:selector": {},
            "f:strategy": {"f:rollingUpdate": {".": {}, "f:maxSurge": {}, "f:maxUnavailable": {}}, "f:type": {}},
            "f:template": {"f:metadata": {"f:labels": {".": {}, "f:app": {}}}, "f:spec": {
                "f:containers": {"k:{\"name\":\"nginx\"}": {".": {}, "f:image": {}, "f:imagePullPolicy": {},
                    "f:name": {}, "f:resources": {}, "f:terminationMessagePath": {}, "f:terminationMessagePolicy": {}}},
                "f:dnsPolicy": {}, "f:restartPolicy": {}, "f:schedulerName": {}, "f:securityContext": {},
                "f:terminationGracePeriodSeconds": {}}}}})
    );
    let service = json!({"metadata": {"name": "lb"}, "spec": {"type": "LoadBalancer", "selector": {"a": "b"},
        "ports": [{"port": 80}]}});
    assert_eq!(
        owned(&created(&store, &SERVICE, service), "test"),
        json!({"f:spec": {"f:allocateLoadBalancerNodePorts": {}, "f:externalTrafficPolicy": {},
            "f:internalTrafficPolicy": {}, "f:ports": {".": {}, "k:{\"port\":80,\"protocol\":\"TCP\"}":
                {".": {}, "f:port": {}, "f:protocol": {}, "f:targetPort": {}}},
            "f:selector": {}, "f:sessionAffinity": {}, "f:type": {}}})
    );
}

#[test]
fn who_changes_a_field_takes_it_over() {
    let store = store();
    created(&store, &DEPLOYMENT, web(2));
    let patch =
        Patch::Merge(json!({"spec": {"replicas": 5}, "metadata": {"labels": {"app": null, "x": "y"}}}));
    let object = store.patch(&DEPLOYMENT, "default", "web", &patch, &Write::by("other")).unwrap().object;
    assert_eq!(
        owned(&object, "other"),
        json!({"f:metadata": {"f:labels": {"f:x": {}}}, "f:spec": {"f:replicas": {}}})
    );
    let rest = owned(&object, "test");
    assert!(
        at(&rest, &["f:spec", "f:replicas"]).is_null()
            && at(&rest, &["f:metadata", "f:labels", "f:app"]).is_null()
    );
    assert!(!at(&rest, &["f:spec", "f:template"]).is_null());
}

#[test]
fn a_status_is_owned_apart_from_the_rest() {
    let store = store();
    created(&store, &DEPLOYMENT, web(2));
    let write = Write::by("controller").of(crate::kinds::Sub::Status);
    let patch = Patch::Merge(json!({"status": {"replicas": 2}, "spec": {"replicas": 9}}));
    let object = store.patch(&DEPLOYMENT, "default", "web", &patch, &write).unwrap().object;
    assert_eq!(object["spec"]["replicas"], 2);
    assert_eq!(entry(&object, "controller")["subresource"], "status");
    assert_eq!(owned(&object, "controller"), json!({"f:status": {"f:replicas": {}}}));
}

#[test]
fn an_apply_owns_what_it_says_and_takes_away_what_it_says_no_longer() {
    let store = store();
    let first = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": {"x": "1"}},
        "data": {"a": "1", "b": "2"}});
    let made = apply(&store, &CONFIG_MAP, "me", first, false).unwrap();
    assert_eq!(entry(&made, "me")["operation"], "Apply");
    assert_eq!(
        owned(&made, "me"),
        json!({"f:data": {"f:a": {}, "f:b": {}}, "f:metadata": {"f:labels": {"f:x": {}}}})
    );
    let patch = Patch::Merge(json!({"data": {"theirs": "3"}}));
    store.patch(&CONFIG_MAP, "default", "a", &patch, &Write::by("other")).unwrap();
    let second = json!({"metadata": {"name": "a"}, "data": {"a": "1"}});
    let now = apply(&store, &CONFIG_MAP, "me", second.clone(), false).unwrap();
    assert_eq!(now["data"], json!({"a": "1", "theirs": "3"}));
    assert!(now["metadata"].get("labels").is_none());
    let version = store.version();
    apply(&store, &CONFIG_MAP, "me", second, false).unwrap();
    assert_eq!(store.version(), version, "the same again is no change");
}

#[test]
fn another_opinion_is_a_conflict_that_force_decides() {
    let store = store();
    created(&store, &DEPLOYMENT, web(2));
    let mut wanted = json!({"metadata": {"name": "web", "labels": {"app": "x"}}, "spec": {"replicas": 5,
        "template": {"spec": {"containers": [{"name": "nginx", "image": "foo"}]}}}});
    let refusal = apply(&store, &DEPLOYMENT, "me", wanted.clone(), false).unwrap_err();
    assert_eq!(
        refusal.message,
        "Apply failed with 3 conflicts: conflicts with \"test\" using apps/v1:\n- .metadata.labels.app\n\
         - .spec.replicas\n- .spec.template.spec.containers[name=\"nginx\"].image"
    );
    assert_eq!(refusal.details["causes"][1]["field"], ".spec.replicas");
    wanted["metadata"]["labels"] = json!({"z": "x"});
    wanted["spec"]["template"]["spec"]["containers"][0]["ports"] = json!([{"containerPort": 80}]);
    let now = apply(&store, &DEPLOYMENT, "me", wanted.clone(), true).unwrap();
    assert_eq!(now["spec"]["replicas"], 5);
    assert_eq!(
        owned(&now, "me"),
        json!({"f:metadata": {"f:labels": {"f:z": {}}}, "f:spec": {"f:replicas": {}, "f:template": {"f:spec":
            {"f:containers": {"k:{\"name\":\"nginx\"}": {".": {}, "f:image": {}, "f:name": {},
                "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}}}}}}}})
    );
    assert!(at(&owned(&now, "test"), &["f:spec", "f:replicas"]).is_null());
    // What both want the same is shared, without a conflict.
    let same = json!({"metadata": {"name": "web"}, "spec": {"replicas": 5}});
    apply(&store, &DEPLOYMENT, "third", same, false).unwrap();
}

#[test]
fn an_item_of_a_list_goes_with_the_opinion_about_it() {
    let store = store();
    let with =
        |ports: Value| json!({"metadata": {"name": "s"}, "spec": {"selector": {"a": "b"}, "ports": ports}});
    let both = json!([{"name": "a", "port": 80}, {"name": "b", "port": 81}]);
    apply(&store, &SERVICE, "me", with(both), false).unwrap();
    let now = apply(&store, &SERVICE, "me", with(json!([{"name": "a", "port": 80}])), false).unwrap();
    assert_eq!(list(&now, &["spec", "ports"]).len(), 1, "{now}");
    assert_eq!(text(&now["spec"]["ports"][0], &["name"]), "a");
}

#[test]
fn a_field_that_the_kind_does_not_have_cannot_be_applied() {
    let store = store();
    let wrong = json!({"metadata": {"name": "a"}, "dta": {}});
    let refusal = apply(&store, &CONFIG_MAP, "me", wrong, false).unwrap_err();
    assert!(refusal.message.ends_with(".dta: field not declared in schema"), "{refusal}");
}

#[test]
fn operations_that_do_not_fit_are_refused_and_change_nothing() {
    let store = store();
    created(&store, &CONFIG_MAP, json!({"metadata": {"name": "a"}, "data": {"x": "1"}}));
    let run = |operations: Value| {
        store.patch(&CONFIG_MAP, "default", "a", &Patch::Json(operations), &Write::by("me"))
    };
    let done = run(
        json!([{"op": "test", "path": "/data/x", "value": "1"}, {"op": "add", "path": "/data/y", "value": "2"}]),
    );
    assert_eq!(done.unwrap().object["data"], json!({"x": "1", "y": "2"}));
    let refusal =
        run(json!([{"op": "remove", "path": "/data/x"}, {"op": "test", "path": "/data/y", "value": "9"}]));
    assert_eq!(refusal.unwrap_err().code, 422);
    assert_eq!(store.get(&CONFIG_MAP, "default", "a").unwrap()["data"], json!({"x": "1", "y": "2"}));
}

fn operated(operations: &[Value]) -> Result<Value, Refusal> {
    operate(&json!({"data": {"a": "1"}}), &Value::Array(operations.to_vec()))
}

#[test]
fn a_patch_whose_copies_nest_or_double_without_end_is_refused() {
    let nested = vec![json!({"op": "copy", "from": "", "path": "/data"}); 200];
    assert_eq!(operated(&nested).unwrap_err().code, 422);
    operated(&nested[..100]).unwrap();
    let moved = |number: u32| {
        [
            json!({"op": "add", "path": format!("/k{number}"), "value": {}}),
            json!({"op": "move", "from": "/data", "path": format!("/k{number}/x")}),
            json!({"op": "move", "from": format!("/k{number}"), "path": "/data"}),
        ]
    };
    assert_eq!(operated(&(0..200).flat_map(moved).collect::<Vec<_>>()).unwrap_err().code, 422);
    let double = |number: u32| {
        let to = format!("/data/{number}");
        [
            json!({"op": "copy", "from": "/data", "path": "/other"}),
            json!({"op": "move", "from": "/other", "path": to}),
        ]
    };
    assert_eq!(operated(&(0..24).flat_map(double).collect::<Vec<_>>()).unwrap_err().code, 422);
    let many = vec![json!({"op": "test", "path": "/data/a", "value": "1"}); 10_001];
    assert_eq!(operated(&many).unwrap_err().code, 413);
    operated(&many[..10_000]).unwrap();
}

#[test]
fn of_two_first_applies_at_once_one_makes_the_object_and_the_other_finds_it() {
    let store = store();
    for round in 0..300 {
        let together = std::sync::Barrier::new(4);
        let all = std::thread::scope(|scope| {
            let applied = |_| {
                scope.spawn(|| {
                    let configuration = json!({"apiVersion": "v1", "kind": "ConfigMap",
                        "metadata": {"name": format!("map-{round}")}, "data": {"a": "1"}});
                    together.wait();
                    apply(&store, &CONFIG_MAP, "tester", configuration, false)
                })
            };
            let running: Vec<_> = (0..4).map(applied).collect();
            running.into_iter().map(|it| it.join().unwrap()).collect::<Vec<_>>()
        });
        for one in all {
            one.unwrap();
        }
    }
}
