//! Who owns which field: `metadata.managedFields`.

use serde_json::Value;

use crate::kinds::Kind;
use crate::store::Write;
use crate::value::at;

pub(crate) fn after_create(_: &Kind, _: &Value, _: &Write) -> Option<Value> {
    None
}

pub(crate) fn after_update(_: &Kind, old: &Value, _: &Value, _: &Write) -> Option<Value> {
    at(old, &["metadata"]).get("managedFields").cloned()
}

/// Whether a write changes nothing; when somebody wrote the same again is no change.
pub(crate) fn is_same_but_for_times(old: &Value, new: &Value) -> bool {
    old == new
}
