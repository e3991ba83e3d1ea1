//! Stories of the store.

use serde_json::{Value, json};

use super::*;
use crate::kinds::{CONFIG_MAP, NAMESPACE, POD};

/// A store with the namespace `default`.
pub(crate) fn store() -> Store {
    let store = Store::new();
    let home = json!({"metadata": {"name": "default"}});
    store.create(&NAMESPACE, "", home, &Write::by("test")).unwrap();
    store
}

pub(crate) fn created(store: &Store, kind: &'static Kind, object: Value) -> Value {
    let namespace = if kind.namespaced { "default" } else { "" };
    store.create(kind, namespace, object, &Write::by("test")).unwrap().as_ref().clone()
}

pub(crate) fn refused(store: &Store, kind: &'static Kind, object: Value) -> String {
    let namespace = if kind.namespaced { "default" } else { "" };
    store.create(kind, namespace, object, &Write::by("test")).unwrap_err().message
}

fn note(name: &str, label: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"app": label}}, "data": {"a": "1"}})
}

fn pod(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]}})
}

#[test]
fn a_write_from_an_old_version_is_a_conflict_and_one_without_a_version_is_not() {
    let store = store();
    let first = created(&store, &CONFIG_MAP, note("a", "x"));
    let mut changed = first.clone();
    changed["data"]["a"] = json!("2");
    let write = Write::by("test");
    let second = store.update(&CONFIG_MAP, "default", "a", changed.clone(), &write).unwrap();
    assert_ne!(first["metadata"]["resourceVersion"], second["metadata"]["resourceVersion"]);
    changed["data"]["a"] = json!("3");
    let refusal = store.update(&CONFIG_MAP, "default", "a", changed.clone(), &write).unwrap_err();
    assert_eq!((refusal.code, refusal.reason), (409, "Conflict"));
    assert_eq!(
        refusal.message,
        "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your \
         changes to the latest version and try again"
    );
    crate::value::remove(&mut changed["metadata"], "resourceVersion");
    let third = store.update(&CONFIG_MAP, "default", "a", changed, &write).unwrap();
    assert_eq!(third["data"]["a"], "3");
    assert_eq!(third["metadata"]["uid"], first["metadata"]["uid"]);
}

#[test]
fn a_write_that_changes_nothing_has_no_version_of_its_own() {
    let store = store();
    let first = created(&store, &CONFIG_MAP, note("a", "x"));
    let before = store.version();
    let again = store.update(&CONFIG_MAP, "default", "a", first.clone(), &Write::by("test")).unwrap();
    assert_eq!(*again, first);
    assert_eq!(store.version(), before);
}

#[test]
fn a_dry_run_says_what_would_be_and_leaves_what_is() {
    let store = store();
    let write = Write { dry_run: true, ..Write::by("test") };
    let made = store.create(&CONFIG_MAP, "default", note("a", "x"), &write).unwrap();
    assert_eq!(made["data"]["a"], "1");
    assert_eq!(store.get(&CONFIG_MAP, "default", "a").unwrap_err().code, 404);
    created(&store, &CONFIG_MAP, note("a", "x"));
    let deletion = Deletion { dry_run: true, ..Deletion::default() };
    store.delete(&CONFIG_MAP, "default", "a", &deletion).unwrap();
    store.get(&CONFIG_MAP, "default", "a").unwrap();
}

#[test]
fn a_finalizer_holds_a_deletion_until_it_goes_and_none_may_come() {
    let store = store();
    let mut object = note("a", "x");
    object["metadata"]["finalizers"] = json!(["example.com/hold"]);
    created(&store, &CONFIG_MAP, object);
    let deleted = store.delete(&CONFIG_MAP, "default", "a", &Deletion::default()).unwrap();
    assert!(!deleted.is_gone && deleted.object["metadata"]["deletionTimestamp"].is_string());
    let write = Write::by("test");
    let refusal = store
        .modify(&CONFIG_MAP, "default", "a", &write, |old| {
            let mut new = old.clone();
            new["metadata"]["finalizers"] = json!(["example.com/hold", "example.com/more"]);
            Ok(new)
        })
        .unwrap_err();
    assert!(refusal.message.contains("no new finalizers can be added"), "{refusal}");
    store
        .modify(&CONFIG_MAP, "default", "a", &write, |old| {
            let mut new = old.clone();
            new["metadata"]["finalizers"] = json!([]);
            Ok(new)
        })
        .unwrap();
    assert_eq!(store.get(&CONFIG_MAP, "default", "a").unwrap_err().code, 404);
}

#[test]
fn a_pod_on_a_node_goes_with_grace_and_one_without_a_node_at_once() {
    let store = store();
    created(&store, &POD, pod("a"));
    let waiting = store.delete(&POD, "default", "a", &Deletion::default()).unwrap();
    assert!(!waiting.is_gone);
    assert_eq!(waiting.object["metadata"]["deletionGracePeriodSeconds"], 30);
    assert!(store.delete(&POD, "default", "a", &Deletion::at_once()).unwrap().is_gone);
    let mut homeless = pod("b");
    crate::value::remove(&mut homeless["spec"], "nodeName");
    created(&store, &POD, homeless);
    assert!(store.delete(&POD, "default", "b", &Deletion::default()).unwrap().is_gone);
}

#[test]
fn a_deletion_with_a_precondition_that_does_not_hold_is_a_conflict() {
    let store = store();
    created(&store, &CONFIG_MAP, note("a", "x"));
    let deletion = Deletion { uid: Some("other".into()), ..Deletion::default() };
    assert_eq!(store.delete(&CONFIG_MAP, "default", "a", &deletion).unwrap_err().code, 409);
    let deletion = Deletion { version: Some("1".into()), ..Deletion::default() };
    assert_eq!(store.delete(&CONFIG_MAP, "default", "a", &deletion).unwrap_err().code, 409);
}

#[test]
fn nothing_is_made_in_a_namespace_that_is_not_there_or_goes() {
    let store = store();
    let write = Write::by("test");
    let refusal = store.create(&CONFIG_MAP, "nowhere", note("a", "x"), &write).unwrap_err();
    assert_eq!(refusal.message, "namespaces \"nowhere\" not found");
    store.delete(&NAMESPACE, "", "default", &Deletion::default()).unwrap();
    let home = store.get(&NAMESPACE, "", "default").unwrap();
    assert_eq!(home["status"]["phase"], "Terminating");
    let refusal = store.create(&CONFIG_MAP, "default", note("a", "x"), &write).unwrap_err();
    assert_eq!(refusal.code, 403);
    let done = store.modify(&NAMESPACE, "", "default", &write.of(Sub::Finalize), |old| {
        let mut new = old.clone();
        new["spec"]["finalizers"] = json!([]);
        Ok(new)
    });
    done.unwrap();
    assert_eq!(store.get(&NAMESPACE, "", "default").unwrap_err().code, 404);
}

#[test]
fn names_are_made_from_a_stem() {
    let store = store();
    let made = created(&store, &CONFIG_MAP, json!({"metadata": {"generateName": "web-"}}));
    let name = text(&made, &["metadata", "name"]);
    assert!(name.starts_with("web-") && name.len() == 9, "{name}");
}

#[tokio::test]
async fn a_watch_tells_what_came_after_its_version_and_sees_through_its_selection() {
    let store = store();
    created(&store, &CONFIG_MAP, note("a", "x"));
    let (listed, mut watcher) = store.follow(&CONFIG_MAP, None, Selection::labels("app=x").unwrap());
    assert_eq!(listed.items.len(), 1);
    created(&store, &CONFIG_MAP, note("b", "y"));
    let write = Write::by("test");
    let relabel = |name: &'static str, label: &'static str| {
        let done = store.modify(&CONFIG_MAP, "default", name, &write, |old| {
            let mut new = old.clone();
            new["metadata"]["labels"]["app"] = json!(label);
            Ok(new)
        });
        done.unwrap()
    };
    relabel("b", "x");
    relabel("a", "z");
    store.delete(&CONFIG_MAP, "default", "b", &Deletion::default()).unwrap();
    let mut seen = Vec::new();
    for _ in 0..3 {
        let happened = watcher.next().await.unwrap();
        assert_eq!(
            happened.object["metadata"]["labels"]["app"], "x",
            "it is shown as it was in the selection"
        );
        assert_eq!(text(&happened.object, &["metadata", "resourceVersion"]), happened.version.to_string());
        seen.push((happened.what, name_of(&happened.object).to_owned()));
    }
    assert_eq!(seen, [(What::Added, "b".into()), (What::Deleted, "a".into()), (What::Deleted, "b".into())]);
    assert_eq!(watcher.bookmark(), Some(store.version()));
}

#[tokio::test]
async fn a_watch_that_sleeps_is_woken_by_a_change_of_its_kind() {
    let store = store();
    let (_, mut watcher) = store.follow(&CONFIG_MAP, Some("default"), Selection::default());
    let next = tokio::spawn(async move { watcher.next().await.unwrap() });
    tokio::task::yield_now().await;
    created(&store, &CONFIG_MAP, note("late", "x"));
    assert_eq!(name_of(&next.await.unwrap().object), "late");
}

#[test]
fn a_watch_from_before_the_memory_is_gone() {
    let store = Store::remembering(3, usize::MAX);
    store.create(&NAMESPACE, "", json!({"metadata": {"name": "default"}}), &Write::by("test")).unwrap();
    let begin = store.version();
    for index in 0..4 {
        created(&store, &CONFIG_MAP, note(&format!("n{index}"), "x"));
    }
    let refusal = store.watch(&CONFIG_MAP, None, Selection::default(), begin).unwrap_err();
    assert_eq!((refusal.code, refusal.reason), (410, "Expired"));
    store.watch(&CONFIG_MAP, None, Selection::default(), begin + 1).unwrap();
    store.watch(&POD, None, Selection::default(), begin).unwrap();
    store.forget_changes();
    assert_eq!(store.watch(&POD, None, Selection::default(), begin).unwrap_err().code, 410);
}

#[test]
fn a_list_by_label_or_node_is_the_same_as_one_that_asks_everybody() {
    let store = store();
    for (index, label) in ["x", "y", "x", "z", "x"].iter().enumerate() {
        let mut it = pod(&format!("p{index}"));
        it["metadata"]["labels"] = json!({"app": label, "n": index.to_string()});
        it["spec"]["nodeName"] = json!(format!("node-{}", index % 2));
        created(&store, &POD, it);
    }
    let write = Write::by("test");
    let relabelled = store.modify(&POD, "default", "p2", &write, |old| {
        let mut new = old.clone();
        new["metadata"]["labels"]["app"] = json!("y");
        Ok(new)
    });
    relabelled.unwrap();
    store.delete(&POD, "default", "p4", &Deletion::at_once()).unwrap();
    let all = store.list(&POD, None, &Selection::default()).items;
    for (labels, fields) in [
        ("app=x", ""),
        ("app=y", ""),
        ("app=y,n=2", ""),
        ("app=nobody", ""),
        ("app in (x,y)", ""),
        ("", "spec.nodeName=node-0"),
        ("app=y", "spec.nodeName=node-1"),
    ] {
        let selection = Selection::parse(&POD, labels, fields).unwrap();
        let expected: Vec<_> = all.iter().filter(|pod| selection.matches(pod)).cloned().collect();
        for namespace in [None, Some("default")] {
            assert_eq!(store.list(&POD, namespace, &selection).items, expected, "{labels} {fields}");
        }
        assert_eq!(store.count(&POD, &selection), expected.len(), "{labels} {fields}");
    }
    assert!(store.list(&POD, Some("elsewhere"), &Selection::labels("app=y").unwrap()).items.is_empty());
    assert_eq!(store.count(&POD, &Selection::on_node("node-0")), 2);
}

#[test]
fn owners_and_uids_are_found_without_a_search() {
    let store = store();
    let owner = created(&store, &CONFIG_MAP, note("owner", "x"));
    let uid = text(&owner, &["metadata", "uid"]);
    let mut child = note("child", "x");
    child["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}]);
    created(&store, &CONFIG_MAP, child);
    assert_eq!(store.owned_by(uid), [(&CONFIG_MAP, "default".to_owned(), "child".to_owned())]);
    assert_eq!(store.with_uid(uid).unwrap().2, "owner");
    store.delete(&CONFIG_MAP, "default", "child", &Deletion::default()).unwrap();
    assert!(store.owned_by(uid).is_empty());
}

#[test]
fn the_history_has_a_limit_in_bytes_and_an_older_watch_is_gone() {
    let limit = 200_000;
    let store = Store::remembering(1_000, limit);
    created(&store, &NAMESPACE, json!({"metadata": {"name": "default"}}));
    let begin = store.version();
    created(&store, &POD, pod("small"));
    for turn in 0..50 {
        let data = format!("{turn}{}", "x".repeat(10_000));
        let object = json!({"metadata": {"name": "large"}, "data": {"a": data}});
        match turn {
            0 => drop(created(&store, &CONFIG_MAP, object)),
            _ => drop(store.update(&CONFIG_MAP, "default", "large", object, &Write::by("test")).unwrap()),
        }
        let bytes = store.lock().history_bytes();
        assert!(bytes <= limit, "{bytes}");
        assert!(turn < 20 || bytes > limit / 2, "most of it is used: {bytes}");
    }
    assert_eq!(store.watch(&CONFIG_MAP, None, Selection::default(), begin).unwrap_err().code, 410);
    let newest = store.version() - 1;
    let mut newest = store.watch(&CONFIG_MAP, None, Selection::default(), newest).unwrap();
    assert_eq!(newest.ready().unwrap().len(), 1);
    // Kinds with little to remember lose nothing.
    let mut pods = store.watch(&POD, None, Selection::default(), begin).unwrap();
    assert_eq!(pods.ready().unwrap().len(), 1);
    store.forget_changes();
    assert_eq!(store.lock().history_bytes(), 0);
}
