//! Reading and writing JSON by path, for objects that have no types here.

use serde_json::{Map, Value};

static NOTHING: Value = Value::Null;

/// What is at a path; null where nothing is.
pub(crate) fn at<'a>(value: &'a Value, path: &[&str]) -> &'a Value {
    path.iter().try_fold(value, |value, part| value.get(part)).unwrap_or(&NOTHING)
}

/// The text at a path; empty where none is.
pub(crate) fn text<'a>(value: &'a Value, path: &[&str]) -> &'a str {
    at(value, path).as_str().unwrap_or("")
}

/// The number at a path.
pub(crate) fn number(value: &Value, path: &[&str]) -> Option<i64> {
    at(value, path).as_i64()
}

/// The list at a path; empty where none is.
pub(crate) fn list<'a>(value: &'a Value, path: &[&str]) -> &'a [Value] {
    at(value, path).as_array().map_or(&[], Vec::as_slice)
}

/// Whether nothing is said at a path: missing, null, or empty.
pub(crate) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The fields of an object, which it becomes if it is none.
pub(crate) fn fields(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().expect("it was just made one")
}

/// The object under a name, made if it is not there.
pub(crate) fn object<'a>(value: &'a mut Value, name: &str) -> &'a mut Value {
    let entry = fields(value).entry(name).or_insert(Value::Null);
    fields(entry);
    entry
}

/// Sets a field if nothing is said there.
pub(crate) fn default_to(value: &mut Value, name: &str, default: impl Into<Value>) {
    let fields = fields(value);
    if fields.get(name).is_none_or(|it| it.is_null() || it.as_str() == Some("")) {
        fields.insert(name.to_owned(), default.into());
    }
}

/// Takes a field away.
pub(crate) fn remove(value: &mut Value, name: &str) -> Option<Value> {
    value.as_object_mut().and_then(|fields| fields.remove(name))
}

/// Sets a field, or takes it away when there is nothing to set.
pub(crate) fn set_or_remove(value: &mut Value, name: &str, to: Option<Value>) {
    match to {
        Some(to) => {
            fields(value).insert(name.to_owned(), to);
        }
        None => {
            remove(value, name);
        }
    }
}

/// The metadata of an object.
pub(crate) fn metadata(value: &mut Value) -> &mut Value {
    object(value, "metadata")
}

/// `metadata.name`.
pub(crate) fn name_of(value: &Value) -> &str {
    text(value, &["metadata", "name"])
}

/// `metadata.namespace`.
pub(crate) fn namespace_of(value: &Value) -> &str {
    text(value, &["metadata", "namespace"])
}

/// Now, as Kubernetes writes it.
pub(crate) fn now() -> String {
    seconds_from_now(0)
}

/// In so many seconds, as Kubernetes writes it.
pub(crate) fn seconds_from_now(seconds: i64) -> String {
    let now = jiff::Timestamp::now();
    let then = now.checked_add(jiff::SignedDuration::from_secs(seconds)).unwrap_or(now);
    then.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Takes away what says nothing: nulls everywhere. The real server drops them when it decodes.
pub(crate) fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}
