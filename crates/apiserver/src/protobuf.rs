//! Reads what kubectl sends: `kubectl create` and its like speak protobuf and take JSON for an answer.
//!
//! The fields of every type are a table, `protobuf/messages.txt`: a line with the name of a type, then a line
//! for each field with its number, its name in JSON, and its type. A name with `!` is kept even if it says
//! nothing; `.` has its fields in those of its owner. Types are `s` text, `i` number, `b` truth, `f` fraction,
//! `y` bytes, `t` and `u` times, `q` quantity, `x` number or text, `r` JSON, another type, `*` a list of, `%` a
//! map of.
//!
//! Missing on purpose: writing it. Everybody who reads protobuf reads JSON too.

use std::collections::HashMap;
use std::sync::OnceLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

/// What stands before every object.
const MAGIC: &[u8] = b"k8s\0";

/// A field of a type.
struct Field {
    number: u64,
    /// Empty if its fields are those of its owner.
    name: &'static str,
    /// Whether it is kept even if it says nothing.
    is_kept: bool,
    kind: &'static str,
}

/// The body is not what it says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum Unread {
    /// It is cut off, or no protobuf.
    #[error("the body is not an object in protobuf")]
    Malformed,
    /// It is of a type that is not in the table.
    #[error("the body has an object of a kind that is not known here")]
    Unknown,
}

/// The object of a body.
pub(crate) fn decode(body: &[u8]) -> Result<Value, Unread> {
    let envelope = body.strip_prefix(MAGIC).ok_or(Unread::Malformed)?;
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    each(envelope, |number, part| {
        match number {
            1 => each(part.bytes()?, |number, part| {
                match number {
                    1 => api_version = part.text()?,
                    2 => kind = part.text()?,
                    _ => {}
                }
                Ok(())
            })?,
            2 => raw = part.bytes()?,
            _ => {}
        }
        Ok(())
    })?;
    let mut object = message(&type_of(&api_version, &kind), raw)?;
    object.insert("apiVersion".to_owned(), json!(api_version));
    object.insert("kind".to_owned(), json!(kind));
    Ok(Value::Object(object))
}

fn type_of(api_version: &str, kind: &str) -> String {
    // Options are the same in every group.
    if kind == "DeleteOptions" {
        return "meta.v1.DeleteOptions".to_owned();
    }
    let (group, version) = api_version.split_once('/').unwrap_or(("core", api_version));
    let group = group.split('.').next().unwrap_or(group);
    format!("{group}.{version}.{kind}")
}

fn table() -> &'static HashMap<&'static str, Vec<Field>> {
    static TABLE: OnceLock<HashMap<&'static str, Vec<Field>>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut table: HashMap<&'static str, Vec<Field>> = HashMap::new();
        let mut of = "";
        for line in include_str!("protobuf/messages.txt").lines() {
            let mut words = line.split_whitespace();
            match (words.next(), words.next(), words.next()) {
                (Some(name), None, _) => {
                    of = name;
                    table.entry(name).or_default();
                }
                (Some(number), Some(name), Some(kind)) => {
                    let number = number.parse().expect("the table has numbers first");
                    let field = Field {
                        number,
                        name: name.trim_end_matches('!').trim_start_matches('.'),
                        is_kept: name.ends_with('!'),
                        kind,
                    };
                    table.entry(of).or_default().push(field);
                }
                _ => {}
            }
        }
        table
    })
}

fn message(name: &str, bytes: &[u8]) -> Result<Map<String, Value>, Unread> {
    let fields = table().get(name).ok_or(Unread::Unknown)?;
    let mut object = Map::new();
    each(bytes, |number, part| {
        // A client may be newer than the table; what it says beyond is left out, as an old server does.
        let Some(field) = fields.iter().find(|field| field.number == number) else { return Ok(()) };
        if field.name.is_empty() {
            object.extend(message(field.kind, part.bytes()?)?);
            return Ok(());
        }
        if let Some(item) = field.kind.strip_prefix('*') {
            let list = object.entry(field.name).or_insert_with(|| json!([]));
            let item = value(item, part)?;
            list.as_array_mut().ok_or(Unread::Malformed)?.push(item);
            return Ok(());
        }
        if let Some(item) = field.kind.strip_prefix('%') {
            let (mut key, mut found) = (String::new(), empty(item));
            each(part.bytes()?, |number, part| {
                match number {
                    1 => key = part.text()?,
                    _ => found = value(item, part)?,
                }
                Ok(())
            })?;
            object.entry(field.name).or_insert_with(|| json!({}))[key] = found;
            return Ok(());
        }
        let value = value(field.kind, part)?;
        if field.is_kept || !says_nothing(&value) {
            object.insert(field.name.to_owned(), value);
        }
        Ok(())
    })?;
    Ok(object)
}

/// The value of a map whose entry has none: the zero of its type.
fn empty(kind: &str) -> Value {
    match kind {
        "s" | "y" => json!(""),
        "i" => json!(0),
        "b" => json!(false),
        _ => Value::Null,
    }
}

/// What JSON leaves out where it may; an object without fields is not left out.
fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(is) => !is,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(_) => false,
    }
}

fn value(kind: &str, part: Part<'_>) -> Result<Value, Unread> {
    Ok(match kind {
        "s" => json!(part.text()?),
        "i" => json!(part.number()?),
        "b" => json!(part.number()? != 0),
        "f" => json!(part.fraction()?),
        "y" => json!(STANDARD.encode(part.bytes()?)),
        "t" | "u" => time(kind, part.bytes()?)?,
        "q" => first_text(part.bytes()?)?,
        "x" => number_or_text(part.bytes()?)?,
        "r" => raw(part.bytes()?)?,
        name => Value::Object(message(name, part.bytes()?)?),
    })
}

fn first_text(bytes: &[u8]) -> Result<Value, Unread> {
    let mut found = Value::Null;
    each(bytes, |number, part| {
        if number == 1 {
            found = json!(part.text()?);
        }
        Ok(())
    })?;
    Ok(found)
}

fn number_or_text(bytes: &[u8]) -> Result<Value, Unread> {
    let (mut is_text, mut number_said, mut text_said) = (false, 0, String::new());
    each(bytes, |number, part| {
        match number {
            1 => is_text = part.number()? != 0,
            2 => number_said = part.number()?,
            3 => text_said = part.text()?,
            _ => {}
        }
        Ok(())
    })?;
    // Nothing and zero are the same here, and neither is a port.
    Ok(match (is_text, number_said) {
        (true, _) => json!(text_said),
        (false, number) => json!(number),
    })
}

fn raw(bytes: &[u8]) -> Result<Value, Unread> {
    let mut found = Value::Null;
    each(bytes, |number, part| {
        if number == 1 {
            found = serde_json::from_slice(part.bytes()?).map_err(|_| Unread::Malformed)?;
        }
        Ok(())
    })?;
    Ok(found)
}

fn time(kind: &str, bytes: &[u8]) -> Result<Value, Unread> {
    let (mut seconds, mut nanos, mut is_said) = (0, 0, false);
    each(bytes, |number, part| {
        is_said = true;
        match number {
            1 => seconds = part.number()?,
            2 => nanos = part.number()?,
            _ => {}
        }
        Ok(())
    })?;
    if !is_said {
        return Ok(Value::Null);
    }
    let nanos = i32::try_from(nanos).map_err(|_| Unread::Malformed)?;
    let time = jiff::Timestamp::new(seconds, nanos).map_err(|_| Unread::Malformed)?;
    let form = if kind == "u" { "%Y-%m-%dT%H:%M:%S%.6fZ" } else { "%Y-%m-%dT%H:%M:%SZ" };
    Ok(json!(time.strftime(form).to_string()))
}

/// The value of one field, as it is on the wire.
#[derive(Clone, Copy)]
enum Part<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    Fraction(f64),
}

impl<'a> Part<'a> {
    fn bytes(self) -> Result<&'a [u8], Unread> {
        match self {
            Part::Bytes(bytes) => Ok(bytes),
            Part::Number(_) | Part::Fraction(_) => Err(Unread::Malformed),
        }
    }

    fn text(self) -> Result<String, Unread> {
        std::str::from_utf8(self.bytes()?).map(ToOwned::to_owned).map_err(|_| Unread::Malformed)
    }

    /// Negative numbers are written as large ones.
    fn number(self) -> Result<i64, Unread> {
        match self {
            Part::Number(number) => Ok(number.cast_signed()),
            Part::Bytes(_) | Part::Fraction(_) => Err(Unread::Malformed),
        }
    }

    fn fraction(self) -> Result<f64, Unread> {
        match self {
            Part::Fraction(fraction) => Ok(fraction),
            Part::Number(_) | Part::Bytes(_) => Err(Unread::Malformed),
        }
    }
}

/// Every field of a message, in its order.
fn each<'a>(
    mut bytes: &'a [u8],
    mut see: impl FnMut(u64, Part<'a>) -> Result<(), Unread>,
) -> Result<(), Unread> {
    while !bytes.is_empty() {
        let key = varint(&mut bytes)?;
        let part = match key & 7 {
            0 => Part::Number(varint(&mut bytes)?),
            1 => {
                let (head, rest) = bytes.split_first_chunk::<8>().ok_or(Unread::Malformed)?;
                bytes = rest;
                Part::Fraction(f64::from_le_bytes(*head))
            }
            2 => {
                let length = usize::try_from(varint(&mut bytes)?).map_err(|_| Unread::Malformed)?;
                let (head, rest) = bytes.split_at_checked(length).ok_or(Unread::Malformed)?;
                bytes = rest;
                Part::Bytes(head)
            }
            _ => return Err(Unread::Malformed),
        };
        see(key >> 3, part)?;
    }
    Ok(())
}

fn varint(bytes: &mut &[u8]) -> Result<u64, Unread> {
    let mut number = 0_u64;
    for place in 0..10 {
        let (byte, rest) = bytes.split_first().ok_or(Unread::Malformed)?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f).checked_shl(7 * place).ok_or(Unread::Malformed)?;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(Unread::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        let length = u8::try_from(bytes.len()).unwrap();
        [&[number << 3 | 2, length][..], bytes].concat()
    }

    fn envelope(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
        let meta = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
        [MAGIC, &field(1, &meta), &field(2, raw), &field(3, b""), &field(4, b"")].concat()
    }

    #[test]
    fn an_object_is_read_with_lists_maps_and_what_stands_in_its_owner() {
        let label = field(11, &[field(1, b"app"), field(2, b"web")].concat());
        let meta = field(1, &[field(1, b"web"), field(3, b""), label, field(8, b"")].concat());
        // A number of one byte is its own varint.
        let spec = field(2, &[&[1 << 3, 3][..], &field(4, b"")].concat());
        let read = decode(&envelope("apps/v1", "Deployment", &[meta, spec].concat())).unwrap();
        let expected = json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web", "labels": {"app": "web"}}, "spec": {"replicas": 3, "strategy": {}}});
        assert_eq!(read, expected);
    }

    #[test]
    fn a_port_is_a_number_or_a_name_and_a_time_is_a_text() {
        let named = field(4, &[&[1 << 3, 1][..], &field(3, b"http")].concat());
        let numbered = field(4, &[1 << 3, 0, 2 << 3, 80]);
        for (port, expected) in [(named, json!("http")), (numbered, json!(80))] {
            let service = field(2, &field(1, &[&[3 << 3, 80][..], &port].concat()));
            let read = decode(&envelope("v1", "Service", &service)).unwrap();
            assert_eq!(read["spec"]["ports"], json!([{"port": 80, "targetPort": expected}]));
        }
        let meta = field(1, &field(8, &[1 << 3, 60]));
        let read = decode(&envelope("v1", "ConfigMap", &meta)).unwrap();
        assert_eq!(read["metadata"]["creationTimestamp"], "1970-01-01T00:01:00Z");
    }

    #[test]
    fn what_is_cut_off_or_unknown_is_refused_and_never_panics() {
        let whole = envelope("v1", "ConfigMap", &field(1, &field(1, b"settings")));
        assert!(decode(&whole).is_ok());
        assert_eq!(decode(b"{}"), Err(Unread::Malformed));
        assert_eq!(decode(&envelope("v1", "Gadget", b"")), Err(Unread::Unknown));
        for end in 0..whole.len() {
            let _ = decode(&whole[..end]);
        }
        assert_eq!(decode(&[MAGIC, &[0xff; 32]].concat()), Err(Unread::Malformed));
    }

    #[test]
    fn every_type_that_a_field_names_is_in_the_table() {
        for field in table().values().flatten() {
            let kind = field.kind.trim_start_matches(['*', '%']);
            assert!(kind.len() == 1 || table().contains_key(kind), "{kind}");
        }
        for kind in crate::kinds::KINDS {
            assert!(table().contains_key(type_of(&kind.api_version(), kind.kind).as_str()), "{}", kind.kind);
        }
    }
}
