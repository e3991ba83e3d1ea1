//! Reads JSON field by field, and says where something is wrong.
//!
//! As the network provider does it: names of fields differ by everything but case, `null` is not the same as
//! nothing, and a value of the wrong type refuses the whole request with the path to it. Fields that nobody
//! asks for are no concern of this module.

use serde_json::{Map, Value};
use sluice_model::azure::ArmId;

use super::refused::{Refused, printable};

/// An object of a request, and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Object<'a> {
    map: &'a Map<String, Value>,
    path: String,
}

/// A field that may be left out, or be set to nothing on purpose.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Given<T> {
    /// It is not there: what was before stays.
    Absent,
    /// It is `null`: what was before goes.
    Null,
    /// It has a value.
    Value(T),
}

impl<T> Given<T> {
    /// The value; without one, what was before or nothing.
    pub(crate) fn or_keep(self, before: Option<T>) -> Option<T> {
        match self {
            Given::Absent => before,
            Given::Null => None,
            Given::Value(value) => Some(value),
        }
    }
}

impl<'a> Object<'a> {
    /// The whole body of a request.
    pub(crate) fn body(value: &'a Value) -> Result<Object<'a>, Refused> {
        match value {
            Value::Object(map) => Ok(Object { map, path: String::new() }),
            other => Err(Refused::content(&format!("Expected an object and found {}.", type_of(other)))),
        }
    }

    pub(crate) fn of(map: &'a Map<String, Value>, path: &str) -> Object<'a> {
        Object { map, path: path.to_owned() }
    }

    pub(crate) fn map(&self) -> &'a Map<String, Value> {
        self.map
    }

    /// The path to a field.
    pub(crate) fn at(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    /// The path to this object.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// The value of a field, `null` included.
    pub(crate) fn raw(&self, name: &str) -> Option<&'a Value> {
        // The exact name first: most clients spell it so, and two spellings of one field are a client's bug.
        self.map.get(name).or_else(|| {
            self.map.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
        })
    }

    fn value(&self, name: &str) -> Option<&'a Value> {
        self.raw(name).filter(|value| !value.is_null())
    }

    fn wrong<T>(&self, name: &str, expected: &str, found: &Value) -> Result<T, Refused> {
        let why = format!("Expected {expected} and found {}.", type_of(found));
        Err(Refused::unreadable(&self.at(name), &why))
    }

    pub(crate) fn text(&self, name: &str) -> Result<Option<&'a str>, Refused> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => self.wrong(name, "a string", other),
        }
    }

    pub(crate) fn flag(&self, name: &str) -> Result<Option<bool>, Refused> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(other) => self.wrong(name, "a boolean", other),
        }
    }

    /// A whole number of a range.
    pub(crate) fn whole(&self, name: &str, least: i64, most: i64) -> Result<Option<i64>, Refused> {
        match self.value(name) {
            None => Ok(None),
            Some(value) => match value.as_i64() {
                Some(number) if (least..=most).contains(&number) => Ok(Some(number)),
                Some(number) => {
                    let message = format!(
                        "Value '{number}' of {} is invalid; allowed is {least} to {most}.",
                        self.at(name)
                    );
                    Err(Refused::provider(400, "InvalidRequestFormat", message))
                }
                None => self.wrong(name, "a whole number", value),
            },
        }
    }

    /// One of a few words; case does not matter, and the answer has ours.
    pub(crate) fn word(&self, name: &str, words: &[&'static str]) -> Result<Option<&'static str>, Refused> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let found = words.iter().find(|word| word.eq_ignore_ascii_case(text));
        found.copied().map(Some).ok_or_else(|| self.no_such_word(name, text, words))
    }

    /// One of a few words, spelled exactly so.
    pub(crate) fn exact_word(
        &self,
        name: &str,
        words: &[&'static str],
    ) -> Result<Option<&'static str>, Refused> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let found = words.iter().find(|word| **word == text);
        found.copied().map(Some).ok_or_else(|| self.no_such_word(name, text, words))
    }

    fn no_such_word(&self, name: &str, text: &str, words: &[&str]) -> Refused {
        let why = format!("Value '{}' is none of {}.", printable(text), words.join(", "));
        Refused::unreadable(&self.at(name), &why)
    }

    pub(crate) fn object(&self, name: &str) -> Result<Option<Object<'a>>, Refused> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::Object(map)) => Ok(Some(Object { map, path: self.at(name) })),
            Some(other) => self.wrong(name, "an object", other),
        }
    }

    /// A list of anything; `null` is an empty one.
    pub(crate) fn list(&self, name: &str) -> Result<Option<&'a [Value]>, Refused> {
        match self.raw(name) {
            None => Ok(None),
            Some(Value::Null) => Ok(Some(&[])),
            Some(Value::Array(values)) => Ok(Some(values)),
            Some(other) => self.wrong(name, "an array", other),
        }
    }

    pub(crate) fn objects(&self, name: &str) -> Result<Option<Vec<Object<'a>>>, Refused> {
        let Some(values) = self.list(name)? else { return Ok(None) };
        let objects = values.iter().enumerate().map(|(at, value)| {
            let field = format!("{name}[{at}]");
            match value {
                Value::Object(map) => Ok(Object { map, path: self.at(&field) }),
                other => self.wrong(&field, "an object", other),
            }
        });
        objects.collect::<Result<_, _>>().map(Some)
    }

    pub(crate) fn texts(&self, name: &str) -> Result<Option<Vec<&'a str>>, Refused> {
        let Some(values) = self.list(name)? else { return Ok(None) };
        let texts = values.iter().enumerate().map(|(at, value)| match value {
            Value::String(text) => Ok(text.as_str()),
            other => self.wrong(&format!("{name}[{at}]"), "a string", other),
        });
        texts.collect::<Result<_, _>>().map(Some)
    }

    /// `{"id": …}`, whatever else may be in it: clients send whole resources as references.
    pub(crate) fn reference(&self, name: &str) -> Result<Given<ArmId>, Refused> {
        match self.raw(name) {
            None => Ok(Given::Absent),
            Some(Value::Null) => Ok(Given::Null),
            Some(Value::Object(map)) => Object { map, path: self.at(name) }.own_id().map(Given::Value),
            Some(other) => self.wrong(name, "an object", other),
        }
    }

    /// A list of references.
    pub(crate) fn references(&self, name: &str) -> Result<Option<Vec<ArmId>>, Refused> {
        let Some(objects) = self.objects(name)? else { return Ok(None) };
        objects.iter().map(Object::own_id).collect::<Result<_, _>>().map(Some)
    }

    /// The id that this object has or refers to.
    pub(crate) fn own_id(&self) -> Result<ArmId, Refused> {
        match self.text("id")? {
            Some(id) => read_id(id, &self.at("id")),
            None => Err(Refused::no_reference_id(&self.path)),
        }
    }

    /// Refuses a field that would have to be emulated, unless there is nothing in it.
    pub(crate) fn refuse(&self, name: &str, why: &str) -> Result<(), Refused> {
        match self.raw(name) {
            None | Some(Value::Null | Value::Bool(false)) => Ok(()),
            Some(Value::Array(values)) if values.is_empty() => Ok(()),
            Some(Value::Object(map)) if map.is_empty() => Ok(()),
            Some(_) => Err(Refused::not_emulated(&self.at(name), why)),
        }
    }

    /// The fields that nobody names here, as they came.
    pub(crate) fn others(&self, known: &[&str]) -> Map<String, Value> {
        let is_known = |key: &str| known.iter().any(|name| name.eq_ignore_ascii_case(key));
        let others = self.map.iter().filter(|(key, value)| !is_known(key) && !value.is_null());
        others.map(|(key, value)| (key.clone(), value.clone())).collect()
    }
}

/// A resource id in a body.
pub(crate) fn read_id(id: &str, path: &str) -> Result<ArmId, Refused> {
    let plain = |c: char| c.is_ascii_graphic() && !"\\%?#<>|\"'".contains(c);
    let is_id = id.len() <= 2_048
        && id.chars().all(plain)
        && !id.contains("//")
        && !id.ends_with('/')
        && id.get(..15).is_some_and(|head| head.eq_ignore_ascii_case("/subscriptions/"));
    if is_id { Ok(ArmId::new(id)) } else { Err(Refused::bad_reference_id(path, id)) }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_of_fields_differ_by_everything_but_case() {
        let body = json!({ "PublicIPAddresses": [{ "ID": "/subscriptions/s/x" }] });
        let object = Object::body(&body).unwrap();
        let ids = object.references("publicIpAddresses").unwrap().unwrap();
        assert_eq!(ids, [ArmId::new("/subscriptions/s/x")]);
    }

    #[test]
    fn nothing_and_null_are_two_things() {
        let body =
            json!({ "gone": null, "there": { "id": "/subscriptions/s" }, "bad": { "id": "x" }, "none": {} });
        let object = Object::body(&body).unwrap();
        assert_eq!(object.reference("never"), Ok(Given::Absent));
        assert_eq!(object.reference("gone"), Ok(Given::Null));
        assert_eq!(object.reference("bad").unwrap_err().code, "LinkedInvalidPropertyId");
        assert_eq!(object.reference("none").unwrap_err().code, "InvalidRequestFormat");
        let before = Some(ArmId::new("/subscriptions/before"));
        assert_eq!(object.reference("never").unwrap().or_keep(before.clone()), before);
        assert_eq!(object.reference("gone").unwrap().or_keep(before), None);
    }

    #[test]
    fn a_wrong_type_is_refused_with_the_path_to_it() {
        let body = json!({ "properties": { "list": [{ "name": 7 }] } });
        let properties = Object::body(&body).unwrap().object("properties").unwrap().unwrap();
        let first = &properties.objects("list").unwrap().unwrap()[0];
        let refused = first.text("name").unwrap_err();
        assert_eq!((refused.status, refused.code.as_str()), (400, "InvalidRequestFormat"));
        assert!(refused.body().to_string().contains("properties.list[0].name"));
    }
}
