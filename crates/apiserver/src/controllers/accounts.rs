//! Every namespace has a service account `default`.

use serde_json::{Value, json};

use super::machine::{Change, Controller, Key, Work};
use super::object::is_going;
use crate::kinds::{Kind, NAMESPACE, SERVICE_ACCOUNT};
use crate::store::{Store, What};
use crate::value::{name_of, namespace_of};

pub(super) struct Accounts;

impl Controller for Accounts {
    const NAME: &'static str = "kube-controller-manager";

    fn follows(&self) -> Vec<&'static Kind> {
        vec![&NAMESPACE, &SERVICE_ACCOUNT]
    }

    fn concerns(&mut self, _: &Store, kind: &'static Kind, _: What, object: &Value) -> Vec<Key> {
        let namespace = if *kind == NAMESPACE { name_of(object) } else { namespace_of(object) };
        vec![(String::new(), namespace.to_owned())]
    }

    fn look(&mut self, store: &Store, (_, namespace): &Key) -> Work {
        let Ok(home) = store.get(&NAMESPACE, "", namespace) else { return Work::default() };
        let has = store.get(&SERVICE_ACCOUNT, namespace, "default").is_ok();
        reconcile(&home, has).into()
    }
}

fn reconcile(namespace: &Value, has_account: bool) -> Vec<Change> {
    if has_account || is_going(namespace) {
        return Vec::new();
    }
    let object = json!({"metadata": {"name": "default", "namespace": name_of(namespace)}});
    vec![Change::Create { kind: &SERVICE_ACCOUNT, object, told: None }]
}
