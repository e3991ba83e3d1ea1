//! Reading an object as its kind: fields that are unknown, values of the wrong type.
//!
//! The real server decodes into Go types; what they have no place for is dropped, with a warning or a
//! refusal as the client wishes, and a value of the wrong type is refused. Missing on purpose: fields
//! that stand twice; our JSON has forgotten the first by then.

use serde_json::Value;

use super::{Field, Struct, Type, named};
use crate::kinds::Kind;
use crate::refusal::Refusal;

/// What to do about unknown fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Strictness {
    /// Drop them.
    Ignore,
    /// Drop them and say so.
    #[default]
    Warn,
    /// Refuse the object.
    Strict,
}

/// What came of reading: fields that had no place.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Reading {
    unknown: Vec<String>,
    wrong: Option<String>,
}

/// Drops unknown fields of an object; their names, to warn of.
pub(crate) fn decode(
    kind: &Kind,
    object: &mut Value,
    strictness: Strictness,
) -> Result<Vec<String>, Refusal> {
    let mut reading = Reading::default();
    let of = named(kind.schema);
    match object {
        Value::Object(fields) => reading.fields(of, fields, "", ""),
        _ => reading.wrong = Some("the object provided is not a JSON object".to_owned()),
    }
    let cannot = |why: String| {
        Refusal::bad_request(format!(
            "{} in version \"{}\" cannot be handled as a {}: {why}",
            kind.kind, kind.version, kind.kind
        ))
    };
    if let Some(wrong) = reading.wrong {
        return Err(cannot(wrong));
    }
    let told: Vec<String> = reading.unknown.iter().map(|path| format!("unknown field \"{path}\"")).collect();
    match strictness {
        Strictness::Strict if !told.is_empty() => {
            Err(cannot(format!("strict decoding error: {}", told.join(", "))))
        }
        Strictness::Warn => Ok(told),
        Strictness::Strict | Strictness::Ignore => Ok(Vec::new()),
    }
}

/// The fields of an object that its kind does not have.
pub(crate) fn unknown(kind: &Kind, object: &Value) -> Result<Vec<String>, Refusal> {
    let mut reading = Reading::default();
    if let Some(mut fields) = object.as_object().cloned() {
        reading.fields(named(kind.schema), &mut fields, "", "");
    }
    match reading.wrong {
        Some(wrong) => Err(Refusal::bad_request(format!(
            "{} in version \"{}\" cannot be handled as a {}: {wrong}",
            kind.kind, kind.version, kind.kind
        ))),
        None => Ok(reading.unknown),
    }
}

impl Reading {
    /// `path` is with indexes, for people; `place` without, as Go says it.
    fn fields(&mut self, of: &Struct, fields: &mut serde_json::Map<String, Value>, path: &str, place: &str) {
        let (mut unknown, mut empty) = (Vec::new(), Vec::new());
        for (name, value) in fields.iter_mut() {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            let place = if place.is_empty() { name.clone() } else { format!("{place}.{name}") };
            match of.fields.get(name.as_str()) {
                Some(field) => {
                    self.value(of, &field.of, value, &path, &place);
                    if says_nothing(field, value) {
                        empty.push(name.clone());
                    }
                }
                None => {
                    unknown.push(name.clone());
                    self.unknown.push(path);
                }
            }
        }
        for name in unknown.into_iter().chain(empty) {
            fields.remove(&name);
        }
    }

    fn value(&mut self, owner: &Struct, of: &Type, value: &mut Value, path: &str, place: &str) {
        if value.is_null() || self.wrong.is_some() {
            return;
        }
        match (of, value) {
            (Type::Any, _) => {}
            (Type::Named(name), Value::Object(fields)) => self.fields(named(name), fields, path, place),
            (Type::List(of), Value::Array(items)) => {
                for (index, item) in items.iter_mut().enumerate() {
                    self.value(owner, of, item, &format!("{path}[{index}]"), place);
                }
            }
            (Type::Map(of), Value::Object(items)) => {
                for (key, item) in items.iter_mut() {
                    self.value(owner, of, item, &format!("{path}.{key}"), place);
                }
            }
            (Type::Text(_), Value::String(_)) | (Type::Bool, Value::Bool(_)) => {}
            (Type::Integer("int32"), Value::Number(number))
                if number.as_i64().is_some_and(|it| i32::try_from(it).is_ok()) => {}
            (Type::Integer("int64"), Value::Number(number)) if number.is_i64() => {}
            (Type::Number, Value::Number(_)) => {}
            (Type::IntOrText | Type::Quantity, Value::String(_) | Value::Number(_)) => {}
            (Type::Time | Type::MicroTime, Value::String(text)) => {
                if text.parse::<jiff::Timestamp>().is_err() {
                    self.wrong = Some(format!(
                        "parsing time \"{text}\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"{text}\" as \
                         \"2006\""
                    ));
                }
            }
            (Type::Bytes, Value::String(text)) => {
                use base64::Engine as _;
                if base64::engine::general_purpose::STANDARD.decode(text.as_bytes()).is_err() {
                    self.wrong = Some("illegal base64 data at input byte 0".to_owned());
                }
            }
            (of, value) => {
                let owner = owner.name.rsplit('.').next().unwrap_or(owner.name);
                self.wrong = Some(format!(
                    "json: cannot unmarshal {} into Go struct field {owner}.{place} of type {}",
                    word(value),
                    go(of)
                ));
            }
        }
    }
}

/// An empty list or map that nobody must have: Go leaves it out. Empty owners of fields mean something.
fn says_nothing(field: &Field, value: &Value) -> bool {
    let is_empty = match (&field.of, value) {
        (Type::List(_), Value::Array(items)) => items.is_empty(),
        (Type::Map(_), Value::Object(items)) => items.is_empty(),
        _ => false,
    };
    is_empty && !field.is_required && field.name != "managedFields"
}

fn word(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "bool".to_owned(),
        Value::Number(number) if number.is_i64() || number.is_u64() => "number".to_owned(),
        Value::Number(number) => format!("number {number}"),
        Value::String(_) => "string".to_owned(),
        Value::Array(_) => "array".to_owned(),
        Value::Object(_) => "object".to_owned(),
    }
}

/// A type as Go calls it.
fn go(of: &Type) -> String {
    match of {
        Type::Text(_) => "string".to_owned(),
        Type::Integer(word) => (*word).to_owned(),
        Type::Number => "float64".to_owned(),
        Type::Bool => "bool".to_owned(),
        Type::Time => "v1.Time".to_owned(),
        Type::MicroTime => "v1.MicroTime".to_owned(),
        Type::Bytes => "[]uint8".to_owned(),
        Type::IntOrText => "intstr.IntOrString".to_owned(),
        Type::Quantity => "resource.Quantity".to_owned(),
        Type::Any => "any".to_owned(),
        Type::Named(name) => format!("v1.{}", name.rsplit('.').next().unwrap_or(name)),
        Type::List(of) => format!("[]{}", go(of)),
        Type::Map(of) => format!("map[string]{}", go(of)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::{CONFIG_MAP, DEPLOYMENT, POD};

    #[test]
    fn unknown_fields_are_dropped_and_told_or_refused() {
        let wanted = json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c"}]}});
        let with = json!({"metadata": {"name": "a", "foo": 1}, "spec": {"containers": [{"name": "c", "imag": "x"}]}});
        let mut object = with.clone();
        let told = decode(&POD, &mut object, Strictness::Warn).unwrap();
        assert_eq!(told, ["unknown field \"metadata.foo\"", "unknown field \"spec.containers[0].imag\""]);
        assert_eq!(object, wanted);
        let mut object = with.clone();
        assert!(decode(&POD, &mut object, Strictness::Ignore).unwrap().is_empty());
        let refusal = decode(&POD, &mut with.clone(), Strictness::Strict).unwrap_err();
        assert_eq!(
            refusal.message,
            "Pod in version \"v1\" cannot be handled as a Pod: strict decoding error: unknown field \
             \"metadata.foo\", unknown field \"spec.containers[0].imag\""
        );
    }

    #[test]
    fn a_value_of_the_wrong_type_is_refused_in_the_words_of_go() {
        for (object, expected) in [
            (
                json!({"spec": {"replicas": "3"}}),
                "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
            ),
            (
                json!({"spec": {"template": {"spec": {"containers": {"a": 1}}}}}),
                "json: cannot unmarshal object into Go struct field PodSpec.spec.template.spec.containers of type \
                 []v1.Container",
            ),
            (
                json!({"spec": {"template": {"spec": {"containers": [{"ports": [{"containerPort": "x"}]}]}}}}),
                "json: cannot unmarshal string into Go struct field \
                 ContainerPort.spec.template.spec.containers.ports.containerPort of type int32",
            ),
        ] {
            let refusal = decode(&DEPLOYMENT, &mut object.clone(), Strictness::Warn).unwrap_err();
            assert!(refusal.message.ends_with(expected), "{refusal}");
        }
        let refusal = decode(&CONFIG_MAP, &mut json!({"data": {"n": 1}}), Strictness::Warn).unwrap_err();
        assert!(refusal.message.ends_with("Go struct field ConfigMap.data of type string"), "{refusal}");
    }
}
