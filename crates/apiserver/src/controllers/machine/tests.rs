//! Claims about the loop: what it survives, and that it misses nothing.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::controllers::replica_sets::ReplicaSets;
use crate::kinds::{CONFIG_MAP, NAMESPACE, POD, REPLICA_SET};

fn make(store: &Store, kind: &'static Kind, object: Value) -> Arc<Value> {
    let namespace = if kind.namespaced { "shop" } else { "" };
    store.create(kind, namespace, object, &Write::by("tester")).unwrap()
}

fn shop(store: &Store) {
    make(store, &NAMESPACE, json!({"metadata": {"name": "shop"}}));
}

/// The clock is paused, so that this takes no time and everybody has done what there was to do.
async fn a_while() {
    tokio::time::sleep(Duration::from_secs(60)).await;
}

/// What the frail one has seen, over all its lives.
#[derive(Default)]
struct Seen {
    looked: Mutex<Vec<String>>,
    has_fallen: AtomicBool,
}

/// Panics at every look at `bad`, and the first time that it hears of `worse`.
struct Frail(Arc<Seen>);

impl Controller for Frail {
    const NAME: &'static str = "frail";

    fn follows(&self) -> Vec<&'static Kind> {
        vec![&CONFIG_MAP]
    }

    fn concerns(&mut self, _: &Store, _: &'static Kind, _: What, object: &Value) -> Vec<Key> {
        let is_worse = name_of(object) == "worse";
        assert!(!is_worse || self.0.has_fallen.swap(true, Ordering::SeqCst), "worse");
        vec![(String::new(), name_of(object).to_owned())]
    }

    fn look(&mut self, _: &Store, key: &Key) -> Work {
        assert_ne!(key.1, "bad");
        self.0.looked.lock().unwrap().push(key.1.clone());
        Work::default()
    }
}

#[tokio::test(start_paused = true)]
async fn a_look_that_panics_costs_its_own_key_and_a_controller_that_panics_begins_anew() {
    let (store, seen) = (Store::new(), Arc::new(Seen::default()));
    shop(&store);
    let mine = seen.clone();
    let _running = tokio::spawn(run(store.clone(), move || Frail(mine.clone())));
    let named = |name: &str| json!({"metadata": {"name": name}});
    make(&store, &CONFIG_MAP, named("bad"));
    make(&store, &CONFIG_MAP, named("good"));
    a_while().await;
    assert_eq!(*seen.looked.lock().unwrap(), ["good"]);
    make(&store, &CONFIG_MAP, named("worse"));
    a_while().await;
    assert_eq!(*seen.looked.lock().unwrap(), ["good", "good", "worse"]);
    make(&store, &CONFIG_MAP, named("last"));
    a_while().await;
    assert_eq!(seen.looked.lock().unwrap().last().unwrap(), "last");
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_went_while_its_controller_was_too_far_behind_is_missed() {
    let store = Store::remembering(3, usize::MAX);
    shop(&store);
    let _running = tokio::spawn(run(store.clone(), || ReplicaSets));
    let spec = json!({"containers": [{"name": "web", "image": "web:1"}]});
    let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": spec});
    let selector = json!({"matchLabels": {"app": "web"}});
    let set = json!({"replicas": 1, "selector": selector, "template": template});
    make(&store, &REPLICA_SET, json!({"metadata": {"name": "web"}, "spec": set}));
    a_while().await;
    let pods = || store.list(&POD, Some("shop"), &Selection::labels("app=web").unwrap()).items;
    let first = pods();
    assert_eq!(first.len(), 1);
    // Nobody else runs between these.
    store.delete(&POD, "shop", name_of(&first[0]), &Deletion::at_once()).unwrap();
    for number in 0..4 {
        make(&store, &POD, json!({"metadata": {"name": format!("other-{number}")}, "spec": spec}));
    }
    a_while().await;
    assert_eq!(pods().len(), 1, "it is replaced");
}
