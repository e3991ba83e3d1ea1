//! Whoever lists and then watches knows what is there: replayed on the list, the events give the next list.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};
use sluice_apiserver::kinds::{CONFIG_MAP, NAMESPACE};
use sluice_apiserver::store::{Deletion, Selection, Store, Watcher, What, Write, key_of};

/// One thing that happens.
#[derive(Clone, Debug)]
enum Step {
    Create { name: u8, label: u8, is_held: bool },
    Relabel { name: u8, label: u8 },
    Write { name: u8, value: u8 },
    Release { name: u8 },
    Delete { name: u8 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (names, labels) = (0u8..4, 0u8..3);
    let step = prop_oneof![
        3 => (names.clone(), labels.clone(), any::<bool>())
            .prop_map(|(name, label, is_held)| Step::Create { name, label, is_held }),
        2 => (names.clone(), labels).prop_map(|(name, label)| Step::Relabel { name, label }),
        2 => (names.clone(), any::<u8>()).prop_map(|(name, value)| Step::Write { name, value }),
        1 => names.clone().prop_map(|name| Step::Release { name }),
        2 => names.prop_map(|name| Step::Delete { name }),
    ];
    prop::collection::vec(step, 1..40)
}

/// Does a step; what cannot be done (no such object, or one already) is refused and changes nothing.
fn run(store: &Store, step: &Step) {
    let write = Write::by("test");
    let change = |name: u8, change: &dyn Fn(&mut Value)| {
        let _ = store.modify(&CONFIG_MAP, "default", &format!("n{name}"), &write, |old| {
            let mut new = old.clone();
            change(&mut new);
            Ok(new)
        });
    };
    match *step {
        Step::Create { name, label, is_held } => {
            let mut object =
                json!({"metadata": {"name": format!("n{name}"), "labels": {"l": label.to_string()}}});
            if is_held {
                object["metadata"]["finalizers"] = json!(["example.com/held"]);
            }
            let _ = store.create(&CONFIG_MAP, "default", object, &write);
        }
        Step::Relabel { name, label } => {
            change(name, &|new| new["metadata"]["labels"] = json!({"l": label.to_string()}));
        }
        Step::Write { name, value } => change(name, &|new| new["data"] = json!({"v": value.to_string()})),
        Step::Release { name } => change(name, &|new| new["metadata"]["finalizers"] = json!([])),
        Step::Delete { name } => {
            let _ = store.delete(&CONFIG_MAP, "default", &format!("n{name}"), &Deletion::default());
        }
    }
}

/// A reader: what it has from a list and from the events since.
struct Reader {
    selection: Selection,
    known: BTreeMap<String, Value>,
    watcher: Watcher,
}

impl Reader {
    fn new(store: &Store, labels: &str) -> Reader {
        let selection = Selection::labels(labels).expect("a good selector");
        let (listed, watcher) = store.follow(&CONFIG_MAP, Some("default"), selection.clone());
        let known = listed.items.iter().map(|it| (key_of(it).1.to_owned(), (**it).clone())).collect();
        Reader { selection, known, watcher }
    }

    fn read(&mut self) {
        let mut last = 0;
        for happened in self.watcher.ready().expect("nothing is forgotten here") {
            assert!(happened.version > last, "events come in their order");
            last = happened.version;
            let name = key_of(&happened.object).1.to_owned();
            let was_known = match happened.what {
                What::Deleted => self.known.remove(&name).is_some(),
                What::Added | What::Modified => {
                    self.known.insert(name.clone(), (*happened.object).clone()).is_some()
                }
            };
            assert_eq!(was_known, happened.what != What::Added, "{name}: {:?}", happened.what);
        }
    }
}

proptest! {
    #[test]
    fn a_list_and_the_events_since_are_the_list_of_now(steps in steps(), read_every in 1usize..8) {
        let store = Store::new();
        let home = json!({"metadata": {"name": "default"}});
        store.create(&NAMESPACE, "", home, &Write::by("test")).expect("it is the first");
        let selectors = ["", "l=0", "l in (0,1)", "l!=2", "!l"];
        let mut readers: Vec<Reader> = selectors.iter().map(|labels| Reader::new(&store, labels)).collect();
        for (index, step) in steps.iter().enumerate() {
            run(&store, step);
            if index % read_every == 0 {
                readers.iter_mut().for_each(Reader::read);
            }
            if index == steps.len() / 2 {
                readers.extend(selectors.iter().map(|labels| Reader::new(&store, labels)));
            }
        }
        for reader in &mut readers {
            reader.read();
            let listed = store.list(&CONFIG_MAP, Some("default"), &reader.selection).items;
            let now: BTreeMap<String, Value> =
                listed.iter().map(|it| (key_of(it).1.to_owned(), (**it).clone())).collect();
            prop_assert_eq!(&reader.known, &now);
            prop_assert_eq!(reader.watcher.bookmark(), Some(store.version()));
        }
    }
}
