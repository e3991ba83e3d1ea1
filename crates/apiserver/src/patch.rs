//! The four ways to change an object in place: JSON patch, merge patch, strategic merge, and apply.

pub(crate) mod apply;
mod fields;
pub(crate) mod managed;
mod strategic;
#[cfg(test)]
mod tests;

use serde_json::{Value, json};

use crate::kinds::Kind;
use crate::refusal::Refusal;
use crate::schema::decode::{Strictness, decode};
use crate::store::Write;

/// A patch.
#[derive(Clone, PartialEq, Debug)]
pub enum Patch {
    /// A list of operations (RFC 6902).
    Json(Value),
    /// An object to lay over (RFC 7386).
    Merge(Value),
    /// An object to lay over, with lists merged by the keys of their items.
    Strategic(Value),
    /// What a manager wants to be so, and nothing else.
    Apply {
        /// The part of the object that the manager has an opinion about.
        configuration: Value,
        /// Take fields from those who have another opinion.
        force: bool,
    },
}

/// What a patch makes of an object.
pub(crate) struct Patched {
    pub(crate) object: Value,
    /// Who owns which field then; only an apply knows.
    pub(crate) managed_fields: Option<Value>,
}

/// Lays a patch over an object.
pub(crate) fn run(kind: &Kind, old: &Value, patch: &Patch, write: &Write) -> Result<Patched, Refusal> {
    let object = match patch {
        Patch::Json(operations) => operate(old, operations)?,
        Patch::Merge(merge) => {
            let mut object = old.clone();
            json_patch::merge(&mut object, merge);
            object
        }
        Patch::Strategic(patch) => strategic::merge(kind.schema, old, patch)?,
        Patch::Apply { configuration, force } => {
            return apply::again(kind, old, configuration, *force, write);
        }
    };
    Ok(Patched { object, managed_fields: None })
}

/// Reads what a patch made as its kind; what to warn of.
pub(crate) fn decoded(
    kind: &Kind,
    object: &mut Value,
    strictness: Strictness,
) -> Result<Vec<String>, Refusal> {
    let whole = object.clone();
    decode(kind, object, strictness).map_err(|refusal| {
        let why = refusal.message.split_once(&format!("cannot be handled as a {}: ", kind.kind));
        let why = why.map_or(refusal.message.as_str(), |(_, why)| why);
        let message = format!("Invalid value: {:?}: {why}", whole.to_string());
        let mut refusal = Refusal::new(422, "Invalid", format!(" \"\" is invalid: patch: {message}"));
        let cause = json!({"reason": "FieldValueInvalid", "message": message, "field": "patch"});
        refusal.details.insert("causes".into(), json!([cause]));
        refusal
    })
}

fn operate(old: &Value, operations: &Value) -> Result<Value, Refusal> {
    if !operations.is_array() {
        let message = "error decoding patch: json: cannot unmarshal object into Go value of type \
                       []handlers.jsonPatchOp";
        return Err(Refusal::bad_request(message));
    }
    let operations: json_patch::Patch = serde_json::from_value(operations.clone())
        .map_err(|problem| Refusal::bad_request(format!("error decoding patch: {problem}")))?;
    if operations.len() > OPERATIONS_MAX {
        let (most, has) = (OPERATIONS_MAX, operations.len());
        let message = format!("The allowed maximum operations in a JSON patch is {most}, got {has}");
        return Err(Refusal::new(
            413,
            "RequestEntityTooLarge",
            format!("Request entity too large: {message}"),
        ));
    }
    // The real server does not say which operation it was either.
    let rejected = || {
        let message = "the server rejected our request due to an error in our request";
        Refusal::new(422, "Invalid", message).with_details()
    };
    let mut object = old.clone();
    let mut carried = 0;
    for operation in operations.iter() {
        use json_patch::PatchOperation::{Add, Copy, Move, Remove, Replace, Test};
        let depth = match operation {
            Add(it) => Size::of(&it.value).depth,
            Replace(it) => Size::of(&it.value).depth,
            Copy(json_patch::CopyOperation { from, .. }) | Move(json_patch::MoveOperation { from, .. }) => {
                let size = Size::of(object.pointer(from.as_str()).ok_or_else(rejected)?);
                carried += size.bytes;
                size.depth
            }
            Remove(_) | Test(_) => 0,
        };
        let place = operation.path().as_str().matches('/').count();
        if carried > CARRIED_BYTES_MAX || place + depth > DEPTH_MAX {
            return Err(rejected());
        }
        json_patch::patch(&mut object, std::slice::from_ref(operation)).map_err(|_| rejected())?;
    }
    Ok(object)
}

/// As many operations as the real server takes.
const OPERATIONS_MAX: usize = 10_000;
/// Copies may add so much, as on the real server; a copy of a copy doubles, and thirty of them fill the memory.
const CARRIED_BYTES_MAX: usize = 3 * 1024 * 1024;
/// As deep as JSON may be that is read. What is deeper can be neither read again nor dropped in safety.
const DEPTH_MAX: usize = 128;

/// How large a value is, about, and how many values stand inside of one another.
struct Size {
    bytes: usize,
    depth: usize,
}

impl Size {
    fn of(value: &Value) -> Size {
        let join = |sum: Size, (name, value): (usize, &Value)| {
            let size = Size::of(value);
            Size { bytes: sum.bytes + name + size.bytes, depth: sum.depth.max(size.depth + 1) }
        };
        let none = Size { bytes: 2, depth: 0 };
        match value {
            Value::Array(items) => items.iter().map(|it| (1, it)).fold(none, join),
            Value::Object(fields) => fields.iter().map(|(name, it)| (name.len() + 4, it)).fold(none, join),
            Value::String(text) => Size { bytes: text.len() + 2, depth: 0 },
            Value::Null | Value::Bool(_) | Value::Number(_) => Size { bytes: 4, depth: 0 },
        }
    }
}
