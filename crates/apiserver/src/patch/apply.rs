//! Server-side apply.

use serde_json::Value;

use super::Patched;
use crate::kinds::Kind;
use crate::refusal::Refusal;
use crate::store::Write;

pub(crate) fn first(_: &Kind, _: &str, _: &Value, _: &Write) -> Result<(Value, Value), Refusal> {
    Err(Refusal::new(415, "UnsupportedMediaType", "apply is not there yet"))
}

pub(crate) fn again(_: &Kind, _: &Value, _: &Value, _: bool, _: &Write) -> Result<Patched, Refusal> {
    Err(Refusal::new(415, "UnsupportedMediaType", "apply is not there yet"))
}
