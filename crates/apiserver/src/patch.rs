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
    let mut object = old.clone();
    // The real server does not say which operation it was either.
    json_patch::patch(&mut object, &operations).map_err(|_| {
        let message = "the server rejected our request due to an error in our request";
        Refusal::new(422, "Invalid", message).with_details()
    })?;
    Ok(object)
}
