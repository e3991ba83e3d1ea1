//! What stands behind the store's lock.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::Listed;
use super::selection::terms;
use super::shelf::{Change, Shelf};
use crate::kinds::service::Addresses;
use crate::kinds::{KINDS, Kind, NAMESPACE, SERVICE};
use crate::value::{list, metadata, name_of, namespace_of, text};

/// Versions begin here. Small ones are of an earlier life, as with a server whose disk was compacted: a watch
/// from there is told that it is too late.
const FIRST_VERSION: u64 = 100;
/// Bytes, estimated, of the changes that are remembered for watches. Beyond it the kind with the most forgets its
/// oldest changes; a watch from before them is told `410 Gone`.
pub(crate) const HISTORY_BYTES_MAX: usize = 128 << 20;
/// How many lists are kept for those who read them in pages.
const PAGED_LISTS: usize = 64;

type Key = (usize, String, String);

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) version: u64,
    shelves: Vec<Shelf>,
    history_bytes_max: usize,
    uids: HashMap<String, Key>,
    owned: HashMap<String, BTreeSet<Key>>,
    /// By kind and term: the objects that have it. Lists with a label ask here and not everybody.
    index: HashMap<(usize, String), BTreeSet<(String, String)>>,
    pub(crate) addresses: Addresses,
    pub(crate) pages: Pages,
}

/// An object with its keys in order, even where another crate of the same build has JSON remember the order
/// of insertion: what is printed, hashed or joined must not depend on who wrote first.
fn in_order(mut object: Value) -> Arc<Value> {
    object.sort_all_objects();
    Arc::new(object)
}

/// The place of a kind in the table.
pub(crate) fn index(kind: &Kind) -> usize {
    KINDS.iter().position(|it| *it == kind).expect("every kind stands in the table of kinds")
}

impl State {
    pub(crate) fn new(remembered: usize, history_bytes_max: usize) -> State {
        State {
            history_bytes_max,
            version: FIRST_VERSION,
            shelves: KINDS.iter().map(|_| Shelf::new(remembered, FIRST_VERSION)).collect(),
            uids: HashMap::new(),
            owned: HashMap::new(),
            index: HashMap::new(),
            addresses: Addresses::default(),
            pages: Pages::default(),
        }
    }

    pub(crate) fn shelf(&self, kind: &Kind) -> &Shelf {
        &self.shelves[index(kind)]
    }

    pub(crate) fn find(&self, kind: &Kind, namespace: &str, name: &str) -> Option<Arc<Value>> {
        self.shelf(kind).objects.get(&(namespace.to_owned(), name.to_owned())).cloned()
    }

    /// Whether a namespace is there, and whether it is going.
    pub(crate) fn namespace(&self, name: &str) -> Option<Arc<Value>> {
        self.find(&NAMESPACE, "", name)
    }

    /// Puts an object in its place.
    pub(crate) fn commit(&mut self, kind: &Kind, mut object: Value) -> Arc<Value> {
        self.version += 1;
        metadata(&mut object)["resourceVersion"] = json!(self.version.to_string());
        let object = in_order(object);
        let place = (namespace_of(&object).to_owned(), name_of(&object).to_owned());
        let shelf = &mut self.shelves[index(kind)];
        let before = shelf.objects.insert(place, object.clone());
        let change = Change {
            version: self.version,
            before: before.clone(),
            after: object.clone(),
            is_deletion: false,
        };
        shelf.remember(change);
        self.limit_history();
        self.keep_books(kind, before.as_deref(), Some(&object));
        object
    }

    /// Takes an object away; its last state.
    pub(crate) fn remove(&mut self, kind: &Kind, mut object: Value) -> Arc<Value> {
        self.version += 1;
        metadata(&mut object)["resourceVersion"] = json!(self.version.to_string());
        let object = in_order(object);
        let place = (namespace_of(&object).to_owned(), name_of(&object).to_owned());
        let shelf = &mut self.shelves[index(kind)];
        let before = shelf.objects.remove(&place);
        let change = Change {
            version: self.version,
            before: before.clone(),
            after: object.clone(),
            is_deletion: true,
        };
        shelf.remember(change);
        self.limit_history();
        self.keep_books(kind, before.as_deref(), None);
        object
    }

    fn keep_books(&mut self, kind: &Kind, before: Option<&Value>, after: Option<&Value>) {
        let place =
            |object: &Value| (index(kind), namespace_of(object).to_owned(), name_of(object).to_owned());
        let owners = |object: Option<&Value>| -> BTreeSet<String> {
            let references = object.map_or(&[][..], |it| list(it, &["metadata", "ownerReferences"]));
            references.iter().map(|it| text(it, &["uid"]).to_owned()).collect()
        };
        self.keep_index(index(kind), before, after);
        let (had, has) = (owners(before), owners(after));
        if let Some(before) = before {
            let key = place(before);
            for gone in had.difference(&has) {
                if let Some(owned) = self.owned.get_mut(gone) {
                    owned.remove(&key);
                    if owned.is_empty() {
                        self.owned.remove(gone);
                    }
                }
            }
            if after.is_none() {
                self.uids.remove(text(before, &["metadata", "uid"]));
            }
        }
        if let Some(after) = after {
            let key = place(after);
            for new in has.difference(&had) {
                self.owned.entry(new.clone()).or_default().insert(key.clone());
            }
            if before.is_none() {
                self.uids.insert(text(after, &["metadata", "uid"]).to_owned(), key);
            }
        }
        if *kind == SERVICE {
            self.addresses.book(before, after);
        }
    }

    fn keep_index(&mut self, kind: usize, before: Option<&Value>, after: Option<&Value>) {
        let of = |object: Option<&Value>| object.map(terms).unwrap_or_default();
        let (had, has) = (of(before), of(after));
        let Some(object) = after.or(before) else { return };
        let place = (namespace_of(object).to_owned(), name_of(object).to_owned());
        for gone in had.difference(&has) {
            let key = (kind, gone.clone());
            if let Some(places) = self.index.get_mut(&key) {
                places.remove(&place);
                if places.is_empty() {
                    self.index.remove(&key);
                }
            }
        }
        for new in has.difference(&had) {
            self.index.entry((kind, new.clone())).or_default().insert(place.clone());
        }
    }

    /// Where the objects with a term are, in the order of their names.
    pub(crate) fn places(&self, kind: &Kind, term: String) -> Option<&BTreeSet<(String, String)>> {
        self.index.get(&(index(kind), term))
    }

    /// The objects with a term, of a namespace or of all, in the order of their names.
    pub(crate) fn with_term(&self, kind: &Kind, namespace: Option<&str>, term: String) -> Vec<Arc<Value>> {
        let Some(places) = self.places(kind, term) else { return Vec::new() };
        let begin = (namespace.unwrap_or("").to_owned(), String::new());
        let here =
            places.range(begin..).take_while(|(it, _)| namespace.is_none_or(|namespace| it == namespace));
        here.filter_map(|place| self.shelf(kind).objects.get(place).cloned()).collect()
    }

    pub(crate) fn owned_by(&self, uid: &str) -> Vec<(&'static Kind, String, String)> {
        let keys = self.owned.get(uid).into_iter().flatten();
        keys.map(|(kind, namespace, name)| (KINDS[*kind], namespace.clone(), name.clone())).collect()
    }

    pub(crate) fn with_uid(&self, uid: &str) -> Option<(&'static Kind, String, String)> {
        self.uids.get(uid).map(|(kind, namespace, name)| (KINDS[*kind], namespace.clone(), name.clone()))
    }

    /// What all changes that are remembered hold, estimated.
    pub(crate) fn history_bytes(&self) -> usize {
        self.shelves.iter().map(|shelf| shelf.ring_bytes).sum()
    }

    fn limit_history(&mut self) {
        while self.history_bytes() > self.history_bytes_max
            && let Some(largest) = self.shelves.iter_mut().max_by_key(|shelf| shelf.ring_bytes)
        {
            largest.forget_oldest();
        }
    }

    pub(crate) fn forget(&mut self) {
        self.version += 1;
        for shelf in &mut self.shelves {
            shelf.forget(self.version);
        }
        self.pages = Pages::default();
    }
}

/// Lists that are read in pages: all pages show the moment of the first.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    next: u64,
    /// The one to be forgotten next comes first.
    lists: VecDeque<Kept>,
}

#[derive(Debug)]
struct Kept {
    number: u64,
    of: String,
    listed: Listed,
}

/// Where a token leads.
#[derive(Debug)]
pub(crate) struct Page {
    /// Whose list it is: the words that it was kept with.
    pub(crate) of: String,
    pub(crate) listed: Listed,
    pub(crate) offset: usize,
}

impl Pages {
    /// Keeps a list; the token for what begins at an offset.
    pub(crate) fn keep(&mut self, of: String, listed: Listed, offset: usize) -> String {
        self.next += 1;
        if self.lists.len() >= PAGED_LISTS {
            self.lists.pop_front();
        }
        self.lists.push_back(Kept { number: self.next, of, listed });
        Pages::token(self.next, offset)
    }

    fn token(list: u64, offset: usize) -> String {
        URL_SAFE_NO_PAD.encode(format!("{list}/{offset}"))
    }

    fn read(token: &str) -> Option<(u64, usize)> {
        let text = String::from_utf8(URL_SAFE_NO_PAD.decode(token).ok()?).ok()?;
        let (list, offset) = text.split_once('/')?;
        Some((list.parse().ok()?, offset.parse().ok()?))
    }

    /// Takes a list out of the row, to be put back at one of its ends.
    fn taken(&mut self, list: u64) -> Option<Kept> {
        let place = self.lists.iter().position(|it| it.number == list)?;
        self.lists.remove(place)
    }

    /// The page of a token. Its list is remembered longer than those that nobody goes on with.
    pub(crate) fn find(&mut self, token: &str) -> Option<Page> {
        let (list, offset) = Pages::read(token)?;
        let kept = self.taken(list)?;
        let page = Page { of: kept.of.clone(), listed: kept.listed.clone(), offset };
        self.lists.push_back(kept);
        Some(page)
    }

    /// The token of a later page of the same list.
    pub(crate) fn later(token: &str, offset: usize) -> Option<String> {
        Pages::read(token).map(|(list, _)| Pages::token(list, offset))
    }

    /// A list that was read to its end is forgotten first; its reader may have lost the last answer.
    pub(crate) fn read_out(&mut self, token: &str) {
        let kept = Pages::read(token).and_then(|(list, _)| self.taken(list));
        if let Some(kept) = kept {
            self.lists.push_front(kept);
        }
    }
}
