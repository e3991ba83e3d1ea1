//! Claims about how a Deployment moves its pods, step by step.

use serde_json::json;

use super::sets::{REVISION, replicas};
use super::*;
use crate::controllers::machine::Told;
use crate::controllers::object::managing_reference;
use crate::kinds::Sub;
use crate::value::name_of;

fn deployment(replicas: i64, image: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "uid": "d", "generation": 1,
            "annotations": {"deployment.kubernetes.io/revision": "1", "team": "a"}},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": "web"}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
            "template": template(image),
        },
        "status": {"conditions": [{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}]},
    })
}

fn template(image: &str) -> Value {
    json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": image}]}})
}

fn set(name: &str, image: &str, size: i64, available: i64, wanted: i64, revision: i64) -> Arc<Value> {
    let most = wanted + (wanted + 3) / 4;
    let mut template = template(image);
    template["metadata"]["labels"]["pod-template-hash"] = json!(name);
    Arc::new(json!({
        "metadata": {"name": name, "namespace": "shop", "uid": name,
            "ownerReferences": [managing_reference(&deployment(0, ""))],
            "annotations": {"team": "a", REVISION: revision.to_string(),
                "deployment.kubernetes.io/desired-replicas": wanted.to_string(),
                "deployment.kubernetes.io/max-replicas": most.to_string()}},
        "spec": {"replicas": size, "template": template},
        "status": {"replicas": size, "readyReplicas": available, "availableReplicas": available},
    }))
}

fn view(deployment: Value, sets: Vec<Arc<Value>>) -> View {
    View { deployment: Arc::new(deployment), sets, pods: Vec::new() }
}

/// Names and sizes of the sets that are written.
fn sizes(changes: &[Change]) -> Vec<(String, i64)> {
    let written = changes.iter().filter_map(|change| match change {
        Change::Create { object, .. } | Change::Put { object, sub: None, .. } => {
            Some((name_of(object).to_owned(), replicas(object)))
        }
        _ => None,
    });
    written.collect()
}

fn messages(changes: &[Change]) -> Vec<&str> {
    let told = changes.iter().filter_map(|change| match change {
        Change::Tell(told) | Change::Create { told: Some(told), .. } => Some(told),
        _ => None,
    });
    told.map(|told: &Told| told.message.as_str()).collect()
}

#[test]
fn a_new_deployment_gets_a_set_of_its_size_named_after_its_template() {
    let changes = reconcile(&view(deployment(3, "web:1"), Vec::new()));
    let Change::Create { object, .. } = &changes[0] else { panic!("{changes:?}") };
    let hash = object["metadata"]["labels"]["pod-template-hash"].as_str().unwrap();
    assert_eq!(name_of(object), format!("web-{hash}"));
    assert_eq!(object["spec"]["selector"]["matchLabels"]["pod-template-hash"], hash);
    assert_eq!(object["spec"]["template"]["metadata"]["labels"]["pod-template-hash"], hash);
    assert_eq!(
        object["metadata"]["annotations"],
        json!({"team": "a", REVISION: "1",
        "deployment.kubernetes.io/desired-replicas": "3", "deployment.kubernetes.io/max-replicas": "4"})
    );
    assert_eq!(messages(&changes), [format!("Scaled up replica set web-{hash} from 0 to 3")]);
    let other = reconcile(&view(deployment(3, "web:2"), Vec::new()));
    assert_ne!(sizes(&other)[0].0, sizes(&changes)[0].0);
}

#[test]
fn a_roll_adds_what_surge_allows_and_takes_what_is_spare() {
    // Of four, one more may be there and one may be missing.
    let web = || deployment(4, "web:2");
    let old = |size, available| set("old", "web:1", size, available, 4, 1);
    let new = |size, available| set("new", "web:2", size, available, 4, 2);
    let mut marked = web();
    marked["metadata"]["annotations"][REVISION] = json!("2");
    for (sets, expected) in [
        (vec![old(4, 4), new(0, 0)], vec![("new", 1)]),
        (vec![old(4, 4), new(1, 0)], vec![("old", 3)]),
        (vec![old(3, 3), new(1, 0)], vec![("new", 2)]),
        (vec![old(3, 3), new(2, 0)], vec![]),
        (vec![old(3, 3), new(2, 1)], vec![("old", 2)]),
        (vec![old(0, 0), new(4, 4)], vec![]),
        // Those that never came up are no loss.
        (vec![old(4, 0), new(1, 0)], vec![("old", 3)]),
    ] {
        let told = format!("{:?}", sets.iter().map(|set| replicas(set)).collect::<Vec<_>>());
        let found = sizes(&reconcile(&view(marked.clone(), sets)));
        let expected: Vec<(String, i64)> =
            expected.into_iter().map(|(name, size): (&str, i64)| (name.to_owned(), size)).collect();
        assert_eq!(found, expected, "{told}");
    }
}

#[test]
fn another_number_of_replicas_is_given_to_the_only_set_and_shared_by_several() {
    let only = reconcile(&view(deployment(5, "web:1"), vec![set("one", "web:1", 3, 3, 3, 1)]));
    assert_eq!(sizes(&only), [("one".to_owned(), 5)]);
    assert_eq!(messages(&only), ["Scaled up replica set one from 3 to 5"]);
    let sets = vec![set("old", "web:1", 6, 6, 8, 1), set("new", "web:2", 4, 4, 8, 2)];
    let several = reconcile(&view(deployment(16, "web:2"), sets));
    // 16 and a surge of 4 are 20, so both double.
    assert_eq!(sizes(&several), [("old".to_owned(), 12), ("new".to_owned(), 8)]);
}

#[test]
fn going_back_to_an_old_template_uses_its_set_again_with_a_new_revision() {
    let sets = vec![set("one", "web:1", 0, 0, 3, 1), set("two", "web:2", 3, 3, 3, 2)];
    let changes = reconcile(&view(deployment(3, "web:1"), sets));
    let [Change::Put { object, .. }] = &changes[..] else { panic!("{changes:?}") };
    assert_eq!(name_of(object), "one");
    assert_eq!(object["metadata"]["annotations"][REVISION], "3");
    assert_eq!(object["metadata"]["annotations"]["deployment.kubernetes.io/revision-history"], "1");
}

#[test]
fn a_paused_deployment_is_scaled_and_not_rolled() {
    let mut web = deployment(3, "web:2");
    web["spec"]["paused"] = json!(true);
    let paused = reconcile(&view(web.clone(), vec![set("old", "web:1", 3, 3, 3, 1)]));
    assert!(matches!(&paused[..], [Change::Put { sub: Some(Sub::Status), .. }]), "{paused:?}");
    let Change::Put { object, .. } = &paused[0] else { unreachable!() };
    assert_eq!(object["status"]["conditions"][0]["reason"], "DeploymentPaused");
    let still = reconcile(&view(object.clone(), vec![set("old", "web:1", 3, 3, 3, 1)]));
    assert!(sizes(&still).is_empty(), "{still:?}");
    let mut scaled = object.clone();
    scaled["spec"]["replicas"] = json!(4);
    let scaled = reconcile(&view(scaled, vec![set("old", "web:1", 3, 3, 3, 1)]));
    assert_eq!(sizes(&scaled), [("old".to_owned(), 4)]);
}

#[test]
fn more_old_sets_than_are_kept_go_the_oldest_first() {
    let mut web = deployment(1, "web:9");
    web["spec"]["revisionHistoryLimit"] = json!(1);
    web["metadata"]["annotations"][REVISION] = json!("9");
    let mut sets: Vec<Arc<Value>> =
        (1..=3).map(|number| set(&format!("s{number}"), &format!("web:{number}"), 0, 0, 1, number)).collect();
    sets.push(set("new", "web:9", 1, 1, 1, 9));
    let told = reconcile(&view(web, sets.clone()));
    let [Change::Put { object, sub: Some(Sub::Status), .. }] = &told[..] else { panic!("{told:?}") };
    let changes = reconcile(&view(object.clone(), sets));
    let gone: Vec<&str> = changes
        .iter()
        .filter_map(|it| match it {
            Change::Delete { object, .. } => Some(name_of(object)),
            _ => None,
        })
        .collect();
    assert_eq!(gone, ["s1", "s2"]);
}

#[test]
fn numbers_beyond_all_measure_are_taken_for_the_largest() {
    let mut web = deployment(200, "web:2");
    let rolling = json!({"maxSurge": "99999999999999999%", "maxUnavailable": "99999999999999999%"});
    web["spec"]["strategy"]["rollingUpdate"] = rolling;
    let changes = reconcile(&view(web, vec![set("old", "web:1", 200, 200, 200, i64::MAX)]));
    assert_eq!(sizes(&changes)[0].1, 200);
}
