//! Objects go with their owners: after them, before them, or not at all, as the deletion said.

use std::sync::Arc;

use serde_json::{Value, json};

use super::machine::{Change, Controller, Key, Work};
use super::object::{is_going, uid, without_owners};
use crate::kinds::{KINDS, Kind};
use crate::store::{Deletion, Propagation, Store, What};
use crate::value::{list, metadata, text};

const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";

/// Its keys are UIDs, since an owner is known by nothing else.
pub(super) struct Garbage;

impl Controller for Garbage {
    const NAME: &'static str = "kube-controller-manager";

    fn follows(&self) -> Vec<&'static Kind> {
        KINDS.iter().copied().filter(|kind| kind.allows("list")).collect()
    }

    fn concerns(&mut self, store: &Store, _: &'static Kind, what: What, object: &Value) -> Vec<Key> {
        let mut uids = Vec::new();
        let owners = list(object, &["metadata", "ownerReferences"]);
        if what == What::Deleted {
            for (kind, namespace, name) in store.owned_by(uid(object)) {
                uids.extend(store.get(kind, &namespace, &name).ok().map(|it| uid(&it).to_owned()));
            }
        } else if is_going(object) || !owners.is_empty() {
            uids.push(uid(object).to_owned());
        }
        // An owner may wait for this one.
        if what == What::Deleted || is_going(object) {
            uids.extend(owners.iter().map(|owner| text(owner, &["uid"]).to_owned()));
        }
        uids.into_iter().map(|uid| (String::new(), uid)).collect()
    }

    fn look(&mut self, store: &Store, (_, uid): &Key) -> Work {
        let find = |uid: &str| {
            let (kind, namespace, name) = store.with_uid(uid)?;
            store.get(kind, &namespace, &name).ok().map(|object| (kind, object))
        };
        let Some((kind, object)) = find(uid) else { return Work::default() };
        let dependents = store.owned_by(uid).into_iter();
        let dependents = dependents
            .filter_map(|(kind, namespace, name)| {
                let object = store.get(kind, &namespace, &name).ok()?;
                let owns = !store.owned_by(self::uid(&object)).is_empty();
                Some(Dependent { kind, object, owns })
            })
            .collect();
        let owners = list(&object, &["metadata", "ownerReferences"]).iter();
        let owners = owners.map(|owner| find(text(owner, &["uid"])).map(|(_, owner)| owner)).collect();
        reconcile(&View { kind, object, dependents, owners }).into()
    }
}

struct View {
    kind: &'static Kind,
    object: Arc<Value>,
    dependents: Vec<Dependent>,
    /// For each reference of the object, the owner if it is there.
    owners: Vec<Option<Arc<Value>>>,
}

struct Dependent {
    kind: &'static Kind,
    object: Arc<Value>,
    /// Whether it owns something itself.
    owns: bool,
}

fn reconcile(view: &View) -> Vec<Change> {
    if is_going(&view.object) {
        if has_finalizer(&view.object, ORPHAN) {
            return orphan(view);
        }
        if has_finalizer(&view.object, FOREGROUND) {
            return foreground(view);
        }
        return Vec::new();
    }
    if view.owners.is_empty() {
        return Vec::new();
    }
    let (mut solid, mut waiting, mut absent) = (0, 0, 0);
    for owner in &view.owners {
        match owner {
            None => absent += 1,
            Some(owner) if is_going(owner) && has_finalizer(owner, FOREGROUND) => waiting += 1,
            Some(_) => solid += 1,
        }
    }
    if solid > 0 && absent + waiting > 0 {
        return vec![without_owners(view.kind, &view.object, |place, _| {
            view.owners[place]
                .as_ref()
                .is_none_or(|owner| is_going(owner) && has_finalizer(owner, FOREGROUND))
        })];
    }
    if solid > 0 {
        return Vec::new();
    }
    // What it owns itself goes before it if its owner waits for it.
    let propagation = if waiting > 0 && !view.dependents.is_empty() {
        Propagation::Foreground
    } else {
        Propagation::Background
    };
    let deletion = Deletion { propagation, ..Deletion::default() };
    vec![Change::Delete { kind: view.kind, object: view.object.clone(), deletion }]
}

/// Those that it owns are set free, and it goes.
fn orphan(view: &View) -> Vec<Change> {
    let own = uid(&view.object);
    let freed = view.dependents.iter();
    let mut changes: Vec<Change> = freed
        .map(|it| without_owners(it.kind, &it.object, |_, owner| text(owner, &["uid"]) == own))
        .collect();
    changes.push(without_finalizer(view, ORPHAN));
    changes
}

/// Those that it owns go first, and it goes when none is left that blocks it.
fn foreground(view: &View) -> Vec<Change> {
    let own = uid(&view.object);
    let blocks = |object: &Value| {
        let owners = list(object, &["metadata", "ownerReferences"]);
        owners.iter().any(|owner| text(owner, &["uid"]) == own && owner["blockOwnerDeletion"] == true)
    };
    if !view.dependents.iter().any(|it| blocks(&it.object)) {
        return vec![without_finalizer(view, FOREGROUND)];
    }
    let staying = view.dependents.iter().filter(|it| !is_going(&it.object));
    staying
        .map(|it| {
            if list(&it.object, &["metadata", "ownerReferences"]).len() > 1 {
                // Whether its other owners are there is seen when it is looked at for that change.
                return without_owners(it.kind, &it.object, |_, owner| text(owner, &["uid"]) == own);
            }
            let propagation = if it.owns { Propagation::Foreground } else { Propagation::Background };
            let deletion = Deletion { propagation, ..Deletion::default() };
            Change::Delete { kind: it.kind, object: it.object.clone(), deletion }
        })
        .collect()
}

fn has_finalizer(object: &Value, finalizer: &str) -> bool {
    list(object, &["metadata", "finalizers"]).iter().any(|it| it == finalizer)
}

fn without_finalizer(view: &View, finalizer: &str) -> Change {
    let mut object = (*view.object).clone();
    let left: Vec<Value> =
        list(&object, &["metadata", "finalizers"]).iter().filter(|it| *it != finalizer).cloned().collect();
    metadata(&mut object)["finalizers"] = json!(left);
    Change::Put { kind: view.kind, sub: None, object }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::{CONFIG_MAP, POD};
    use crate::value::name_of;

    fn object(name: &str, finalizer: &str, owners: &[&str]) -> Arc<Value> {
        let owners: Vec<Value> =
            owners.iter().map(|uid| json!({"uid": uid, "blockOwnerDeletion": true})).collect();
        let mut object = json!({"metadata": {"name": name, "uid": name, "ownerReferences": owners}});
        if !finalizer.is_empty() {
            object["metadata"]["finalizers"] = json!([finalizer, "example.com/other"]);
            object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        Arc::new(object)
    }

    fn view(object: Arc<Value>, dependents: &[(Arc<Value>, bool)], owners: Vec<Option<Arc<Value>>>) -> View {
        let dependents = dependents.iter().cloned();
        let dependents = dependents.map(|(object, owns)| Dependent { kind: &POD, object, owns }).collect();
        View { kind: &CONFIG_MAP, object, dependents, owners }
    }

    #[test]
    fn who_waits_for_dependents_keeps_its_finalizer_and_deletes_them() {
        let owner = || object("owner", FOREGROUND, &[]);
        let dependents = [(object("leaf", "", &["owner"]), false), (object("branch", "", &["owner"]), true)];
        let changes = reconcile(&view(owner(), &dependents, Vec::new()));
        let deleted: Vec<(&str, Propagation)> = changes
            .iter()
            .map(|change| match change {
                Change::Delete { object, deletion, .. } => (name_of(object), deletion.propagation),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(deleted, [("leaf", Propagation::Background), ("branch", Propagation::Foreground)]);
        // One that is going is not deleted again, and still waited for.
        let going = [(object("leaf", FOREGROUND, &["owner"]), false)];
        assert!(reconcile(&view(owner(), &going, Vec::new())).is_empty());
        let changes = reconcile(&view(owner(), &[], Vec::new()));
        let [Change::Put { object, .. }] = &changes[..] else { panic!("{changes:?}") };
        assert_eq!(object["metadata"]["finalizers"], json!(["example.com/other"]));
    }

    #[test]
    fn who_leaves_orphans_sets_them_free_first() {
        let dependents = [(object("leaf", "", &["owner", "friend"]), false)];
        let changes = reconcile(&view(object("owner", ORPHAN, &[]), &dependents, Vec::new()));
        let [Change::Put { object: freed, .. }, Change::Put { object: owner, .. }] = &changes[..] else {
            panic!("{changes:?}")
        };
        assert_eq!(
            freed["metadata"]["ownerReferences"],
            json!([{"uid": "friend", "blockOwnerDeletion": true}])
        );
        assert_eq!(owner["metadata"]["finalizers"], json!(["example.com/other"]));
    }

    #[test]
    fn an_object_goes_when_no_owner_is_left_and_loses_those_that_are_gone() {
        let owned = |owners: &[&str]| object("it", "", owners);
        let there = Some(object("there", "", &[]));
        assert!(reconcile(&view(owned(&["there"]), &[], vec![there.clone()])).is_empty());
        let changes = reconcile(&view(owned(&["gone"]), &[], vec![None]));
        assert!(matches!(&changes[..], [Change::Delete { .. }]), "{changes:?}");
        let changes = reconcile(&view(owned(&["gone", "there"]), &[], vec![None, there]));
        let [Change::Put { object, .. }] = &changes[..] else { panic!("{changes:?}") };
        assert_eq!(
            object["metadata"]["ownerReferences"],
            json!([{"uid": "there", "blockOwnerDeletion": true}])
        );
    }
}
