//! Who owns which field: `metadata.managedFields`.
//!
//! A write makes its writer the owner of what it changes; who applies owns what the configuration says.

use serde_json::{Value, json};

use super::fields::{self, Set};
use crate::kinds::{Kind, Sub};
use crate::schema::Type;
use crate::store::Write;
use crate::value::{at, list, now, remove, text};

/// Fields of the metadata that nobody owns.
const NOBODYS: [&str; 8] = [
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "generation",
    "managedFields",
    "resourceVersion",
];

/// One manager and its fields.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Entry {
    pub(crate) manager: String,
    pub(crate) is_apply: bool,
    pub(crate) api_version: String,
    pub(crate) part: String,
    pub(crate) time: String,
    pub(crate) set: Set,
}

impl Entry {
    /// The entry of a writer, without fields yet.
    pub(crate) fn of(kind: &Kind, write: &Write, is_apply: bool) -> Entry {
        Entry {
            manager: write.manager.clone(),
            is_apply,
            api_version: kind.api_version(),
            part: write.sub.map_or("", Sub::word).to_owned(),
            time: now(),
            set: Set::default(),
        }
    }

    /// Whether both are of the same writer, writing the same way.
    pub(crate) fn is_of(&self, other: &Entry) -> bool {
        self.manager == other.manager
            && self.is_apply == other.is_apply
            && self.api_version == other.api_version
            && self.part == other.part
    }
}

/// The entries of an object.
pub(crate) fn read(object: &Value) -> Vec<Entry> {
    let entries = list(object, &["metadata", "managedFields"]).iter();
    entries
        .map(|entry| Entry {
            manager: text(entry, &["manager"]).to_owned(),
            is_apply: text(entry, &["operation"]) == "Apply",
            api_version: text(entry, &["apiVersion"]).to_owned(),
            part: text(entry, &["subresource"]).to_owned(),
            time: text(entry, &["time"]).to_owned(),
            set: Set::read(at(entry, &["fieldsV1"])),
        })
        .collect()
}

/// The entries as they are written: those who apply first, then by time and name.
pub(crate) fn write(mut entries: Vec<Entry>) -> Option<Value> {
    entries.retain(|entry| !entry.set.is_empty());
    entries.sort_by(|one, other| {
        let key = |it: &Entry| (!it.is_apply, it.time.clone(), it.manager.clone(), it.part.clone());
        key(one).cmp(&key(other))
    });
    let written: Vec<Value> = entries
        .iter()
        .map(|entry| {
            let mut written = json!({"manager": entry.manager,
                "operation": if entry.is_apply { "Apply" } else { "Update" },
                "apiVersion": entry.api_version, "time": entry.time, "fieldsType": "FieldsV1",
                "fieldsV1": entry.set.write()});
            if !entry.part.is_empty() {
                written["subresource"] = json!(entry.part);
            }
            written
        })
        .collect();
    (!written.is_empty()).then_some(Value::Array(written))
}

/// Takes out of a set what this write cannot own.
pub(crate) fn strip(kind: &Kind, write: &Write, set: &mut Set) {
    set.drop_field(&["apiVersion"]);
    set.drop_field(&["kind"]);
    for field in NOBODYS {
        set.drop_field(&["metadata", field]);
    }
    if let Some(set) = set.inside.get_mut("f:metadata") {
        set.is_here = false;
    }
    if kind.has(Sub::Status) {
        let other = if write.sub == Some(Sub::Status) { "spec" } else { "status" };
        set.drop_field(&[other]);
    }
    set.inside.retain(|_, inside| !inside.is_empty());
    set.is_here = false;
}

/// The owners of a new object's fields: its maker has them all.
pub(crate) fn after_create(kind: &Kind, new: &Value, write: &Write) -> Option<Value> {
    let mut entry = Entry::of(kind, write, false);
    entry.set = fields::compare(&Type::Named(kind.schema), &json!({}), new).changed;
    strip(kind, write, &mut entry.set);
    self::write(vec![entry])
}

/// The owners after an update. `before` has the entries that count so far.
pub(crate) fn after_update(
    kind: &Kind,
    before: &Value,
    old: &Value,
    new: &Value,
    write: &Write,
) -> Option<Value> {
    let mut entries = read(before);
    let mut difference = fields::compare(&Type::Named(kind.schema), old, new);
    strip(kind, write, &mut difference.changed);
    strip(kind, write, &mut difference.gone);
    if difference.changed.is_empty() && difference.gone.is_empty() {
        return at(before, &["metadata"]).get("managedFields").cloned();
    }
    let mine = Entry::of(kind, write, false);
    for entry in entries.iter_mut().filter(|entry| !entry.is_of(&mine)) {
        entry.set.subtract(&difference.changed);
        entry.set.subtract(&difference.gone);
    }
    let place = entries.iter().position(|entry| entry.is_of(&mine));
    let place = place.unwrap_or_else(|| {
        entries.push(mine);
        entries.len() - 1
    });
    let own = &mut entries[place];
    own.set.add(&difference.changed);
    own.set.subtract(&difference.gone);
    if !difference.changed.is_empty() {
        own.time = now();
    }
    self::write(entries)
}

/// Whether a write changes nothing; when somebody wrote the same again is no change.
pub(crate) fn is_same_but_for_times(old: &Value, new: &Value) -> bool {
    if old == new {
        return true;
    }
    let timeless = |object: &Value| {
        let mut object = object.clone();
        let entries = object.pointer_mut("/metadata/managedFields").and_then(Value::as_array_mut);
        for entry in entries.into_iter().flatten() {
            remove(entry, "time");
        }
        object
    };
    timeless(old) == timeless(new)
}
