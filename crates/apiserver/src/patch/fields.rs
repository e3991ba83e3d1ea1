//! Sets of fields, as `fieldsV1` writes them: which fields a manager owns, which ones a write changes.
//!
//! `f:name` is a field, `k:{…}` an item of a list by its keys, `v:…` an item of a set, and `.` the
//! thing itself beside what is in it. What is a leaf is said by the table of fields.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::schema::{Field, Shape, Type, named};

/// A set of fields.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Set {
    /// The thing itself belongs to it.
    pub(crate) is_here: bool,
    /// What belongs to it of what is inside.
    pub(crate) inside: BTreeMap<String, Set>,
}

/// What a write changes: fields that are new or other, and fields that are gone.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Difference {
    pub(crate) changed: Set,
    pub(crate) gone: Set,
}

impl Set {
    fn leaf() -> Set {
        Set { is_here: true, inside: BTreeMap::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        !self.is_here && self.inside.is_empty()
    }

    /// From `fieldsV1`.
    pub(crate) fn read(value: &Value) -> Set {
        let mut set = Set::node(value);
        set.is_here = false;
        set
    }

    fn node(value: &Value) -> Set {
        let fields = value.as_object().into_iter().flatten();
        let inside: BTreeMap<String, Set> = fields
            .filter(|(name, _)| *name != ".")
            .map(|(name, value)| (name.clone(), Set::node(value)))
            .collect();
        Set { is_here: inside.is_empty() || value.get(".").is_some(), inside }
    }

    /// As `fieldsV1`.
    pub(crate) fn write(&self) -> Value {
        let mut fields = Map::new();
        if self.is_here && !self.inside.is_empty() {
            fields.insert(".".to_owned(), json!({}));
        }
        fields.extend(self.inside.iter().map(|(name, set)| (name.clone(), set.write())));
        Value::Object(fields)
    }

    pub(crate) fn add(&mut self, other: &Set) {
        self.is_here |= other.is_here;
        for (name, set) in &other.inside {
            self.inside.entry(name.clone()).or_default().add(set);
        }
    }

    pub(crate) fn subtract(&mut self, other: &Set) {
        self.is_here &= !other.is_here;
        for (name, set) in &other.inside {
            if let Some(own) = self.inside.get_mut(name) {
                own.subtract(set);
                if own.is_empty() {
                    self.inside.remove(name);
                }
            }
        }
    }

    pub(crate) fn common(&self, other: &Set) -> Set {
        let both = self.inside.iter().filter_map(|(name, set)| {
            let common = set.common(other.inside.get(name)?);
            (!common.is_empty()).then(|| (name.clone(), common))
        });
        Set { is_here: self.is_here && other.is_here, inside: both.collect() }
    }

    /// Takes a field away, with all inside of it.
    pub(crate) fn drop_field(&mut self, path: &[&str]) {
        match path {
            [] => {}
            [last] => {
                self.inside.remove(&format!("f:{last}"));
            }
            [first, rest @ ..] => {
                let name = format!("f:{first}");
                if let Some(set) = self.inside.get_mut(&name) {
                    set.drop_field(rest);
                    if set.is_empty() {
                        self.inside.remove(&name);
                    }
                }
            }
        }
    }

    /// Paths as people read them: `.spec.containers[name="web"].image`.
    pub(crate) fn paths(&self) -> Vec<String> {
        let mut found = Vec::new();
        self.collect("", &mut found);
        found
    }

    fn collect(&self, path: &str, found: &mut Vec<String>) {
        if self.is_here {
            found.push(path.to_owned());
        }
        for (name, set) in &self.inside {
            set.collect(&format!("{path}{}", step(name)), found);
        }
    }
}

fn step(name: &str) -> String {
    if let Some(field) = name.strip_prefix("f:") {
        return format!(".{field}");
    }
    if let Some(keys) = name.strip_prefix("k:") {
        let keys: Value = serde_json::from_str(keys).unwrap_or_default();
        let pairs: BTreeMap<&String, &Value> = keys.as_object().into_iter().flatten().collect();
        let pairs: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
        return format!("[{}]", pairs.join(","));
    }
    format!("[={}]", name.strip_prefix("v:").unwrap_or(name))
}

/// The name of an item in a set of fields: by its keys, with their defaults.
pub(crate) fn item_name(of: &Type, keys: &[&str], item: &Value) -> String {
    let of = match of {
        Type::Named(name) => Some(named(name)),
        _ => None,
    };
    let sorted: BTreeSet<&&str> = keys.iter().collect();
    let pairs: Vec<String> = sorted
        .into_iter()
        .filter_map(|key| {
            let said = item.get(key).cloned();
            let default = || Some(json!(of?.fields.get(key)?.default?));
            said.or_else(default).map(|value| format!("{}:{value}", json!(key)))
        })
        .collect();
    format!("k:{{{}}}", pairs.join(","))
}

/// The name of an item of a set.
pub(crate) fn value_name(item: &Value) -> String {
    format!("v:{item}")
}

/// The fields that a configuration has an opinion about.
pub(crate) fn applied(of: &Type, field: Option<&Field>, value: &Value) -> Set {
    let inside: BTreeMap<String, Set> = match (of.shape(field), value) {
        (Shape::Struct(it), Value::Object(fields)) => fields
            .iter()
            .map(|(name, value)| {
                let known = it.fields.get(name.as_str());
                let set = known.map_or_else(Set::leaf, |field| applied(&field.of, Some(field), value));
                (format!("f:{name}"), set)
            })
            .collect(),
        (Shape::Map(of), Value::Object(items)) => {
            items.iter().map(|(name, value)| (format!("f:{name}"), applied(of, None, value))).collect()
        }
        (Shape::Keyed(of, keys), Value::Array(items)) => items
            .iter()
            .map(|item| {
                let set = Set { is_here: true, ..applied(of, None, item) };
                (item_name(of, keys, item), set)
            })
            .collect(),
        (Shape::Set, Value::Array(items)) => {
            items.iter().map(|item| (value_name(item), Set::leaf())).collect()
        }
        _ => BTreeMap::new(),
    };
    Set { is_here: inside.is_empty(), inside }
}

/// All of a value: every field, list and item, each for itself.
fn everything(of: &Type, field: Option<&Field>, value: &Value) -> Set {
    let mut set = applied(of, field, value);
    own_all(&mut set);
    set
}

fn own_all(set: &mut Set) {
    set.is_here = true;
    set.inside.values_mut().for_each(own_all);
}

/// What changes from one value to the other.
pub(crate) fn compare(of: &Type, old: &Value, new: &Value) -> Difference {
    let mut difference = Difference::default();
    both(of, None, old, new, &mut difference.changed, &mut difference.gone);
    difference
}

fn either(
    of: &Type,
    field: Option<&Field>,
    old: Option<&Value>,
    new: Option<&Value>,
    changed: &mut Set,
    gone: &mut Set,
) {
    // What is null or an empty text is not there yet.
    let (old, new) = match (old, new) {
        (None, Some(new)) if new.is_null() || new == "" => return,
        (Some(old), None) if old.is_null() || old == "" => return,
        both => both,
    };
    match (old, new) {
        (None, None) => {}
        (None, Some(new)) => *changed = everything(of, field, new),
        (Some(old), None) => *gone = everything(of, field, old),
        (Some(old), Some(new)) => both(of, field, old, new, changed, gone),
    }
}

fn both(of: &Type, field: Option<&Field>, old: &Value, new: &Value, changed: &mut Set, gone: &mut Set) {
    if old == new {
        return;
    }
    match of.shape(field) {
        Shape::Leaf => changed.is_here = true,
        Shape::Struct(it) => {
            for name in names(old, new) {
                match it.fields.get(name.as_str()) {
                    Some(field) => {
                        let (old, new) = (there(field, old.get(name)), there(field, new.get(name)));
                        deeper(&format!("f:{name}"), &field.of, Some(field), old, new, changed, gone);
                    }
                    None => {
                        deeper(
                            &format!("f:{name}"),
                            &Type::Any,
                            None,
                            old.get(name),
                            new.get(name),
                            changed,
                            gone,
                        );
                    }
                }
            }
        }
        Shape::Map(of) => {
            for name in names(old, new) {
                deeper(&format!("f:{name}"), of, None, old.get(name), new.get(name), changed, gone);
            }
        }
        Shape::Keyed(of, keys) => {
            let (old, new) =
                (by_name(old, |it| item_name(of, keys, it)), by_name(new, |it| item_name(of, keys, it)));
            let all: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            for name in all {
                deeper(name, of, None, old.get(name).copied(), new.get(name).copied(), changed, gone);
            }
        }
        Shape::Set => {
            let (old, new) = (by_name(old, value_name), by_name(new, value_name));
            let all: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            for name in all {
                deeper(name, &Type::Any, None, old.get(name).copied(), new.get(name).copied(), changed, gone);
            }
        }
    }
}

fn deeper(
    name: &str,
    of: &Type,
    field: Option<&Field>,
    old: Option<&Value>,
    new: Option<&Value>,
    changed: &mut Set,
    gone: &mut Set,
) {
    let (mut changed_here, mut gone_here) = (Set::default(), Set::default());
    either(of, field, old, new, &mut changed_here, &mut gone_here);
    for (all, here) in [(changed, changed_here), (gone, gone_here)] {
        if !here.is_empty() {
            all.inside.insert(name.to_owned(), here);
        }
    }
}

static EMPTY: std::sync::LazyLock<Value> = std::sync::LazyLock::new(|| json!({}));
static NULL: Value = Value::Null;

/// In Go some fields are there even if nobody wrote them.
fn there<'v>(field: &Field, value: Option<&'v Value>) -> Option<&'v Value> {
    match value {
        None if field.is_always => Some(&EMPTY),
        None if field.is_required && matches!(field.of, Type::List(_)) => Some(&NULL),
        value => value,
    }
}

fn names<'v>(old: &'v Value, new: &'v Value) -> BTreeSet<&'v String> {
    let of = |value: &'v Value| value.as_object().into_iter().flat_map(|fields| fields.keys());
    of(old).chain(of(new)).collect()
}

fn by_name(list: &Value, name: impl Fn(&Value) -> String) -> BTreeMap<String, &Value> {
    list.as_array().into_iter().flatten().map(|item| (name(item), item)).collect()
}
