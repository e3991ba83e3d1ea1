//! Subnets: one reference is ours, the rest is somebody else's.
//!
//! The rest is kept as the text that came, to the last digit, and goes back as that text. Nothing
//! of it is understood, so nothing of it can be lost.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use sluice_model::azure::{ETag, Subnet, SubnetBody};

use super::text::Text;
use super::{Misread, Outline, Reference, RefersTo, json, required};
use crate::Unwritable;

const PROPERTIES: &str = "properties";
const GATEWAY: &str = "serviceGateway";

/// The body of a PUT: the rest as it was read, with our reference in it, or `null`.
pub(crate) fn written(body: &SubnetBody) -> Result<Vec<u8>, Unwritable> {
    let odd = |why: String| Unwritable(format!("cannot write the subnet back: {why}"));
    let mut document: Fields<'_> =
        serde_json::from_str(&body.rest).map_err(|error| odd(format!("{error}")))?;
    let mut properties = document.inner(PROPERTIES).map_err(odd)?;
    let gateway = raw(&body.gateway.as_ref().map(RefersTo::new));
    properties.put(GATEWAY, &gateway);
    let properties = raw(&properties);
    document.put(PROPERTIES, &properties);
    Ok(json(&document))
}

/// A subnet as it is read.
pub(crate) struct SubnetOutline<'a>(&'a RawValue);

impl<'de: 'a, 'a> Deserialize<'de> for SubnetOutline<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SubnetOutline<'a>, D::Error> {
        <&RawValue>::deserialize(deserializer).map(SubnetOutline)
    }
}

impl<'a> Outline<'a> for SubnetOutline<'a> {
    type Model = Subnet;

    fn model(self) -> Result<Subnet, Misread> {
        let mut document: Fields<'_> = parse(self.0, "the subnet")?;
        let id = document.get("id").map(|id| parse(id, "\"id\"")).transpose()?.flatten();
        let etag = document.get("etag").map(|etag| parse(etag, "\"etag\"")).transpose()?.flatten();
        let mut properties = document.inner(PROPERTIES).map_err(Misread::Malformed)?;
        let gateway = properties.get(GATEWAY).map(|it| parse::<Option<Reference>>(it, "\"serviceGateway\""));
        let gateway = gateway.transpose()?.flatten().and_then(Reference::id);
        properties.drop_all(GATEWAY);
        let properties = raw(&properties);
        if document.get(PROPERTIES).is_some() {
            document.put(PROPERTIES, &properties);
        }
        Ok(Subnet {
            id: required(id)?,
            etag: etag.map_or_else(|| ETag("".into()), |Text(etag)| etag),
            gateway,
            rest: raw(&document).get().into(),
        })
    }
}

fn parse<'a, T: Deserialize<'a>>(raw: &'a RawValue, what: &str) -> Result<T, Misread> {
    serde_json::from_str(raw.get()).map_err(|error| Misread::Malformed(format!("{what}: {error}")))
}

fn raw<T: Serialize>(value: &T) -> alloc::boxed::Box<RawValue> {
    serde_json::value::to_raw_value(value).expect("raw values, references and null are always JSON")
}

/// The fields of an object in the order in which they came, each as the text that it was.
#[derive(Default)]
struct Fields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Fields<'a> {
    fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().rev().find(|(key, _)| key == name).map(|(_, value)| *value)
    }

    /// An object within this one; one that is missing is empty.
    fn inner(&self, name: &str) -> Result<Fields<'a>, String> {
        let Some(inner) = self.get(name) else { return Ok(Fields::default()) };
        let inner: Option<Fields<'a>> =
            serde_json::from_str(inner.get()).map_err(|error| format!("\"{name}\": {error}"))?;
        Ok(inner.unwrap_or_default())
    }

    fn drop_all(&mut self, name: &str) {
        self.0.retain(|(key, _)| key != name);
    }

    /// Puts a field where it was, or at the end.
    fn put(&mut self, name: &'static str, value: &'a RawValue) {
        let at = self.0.iter().position(|(key, _)| key == name).unwrap_or(self.0.len());
        self.drop_all(name);
        self.0.insert(at.min(self.0.len()), (Cow::Borrowed(name), value));
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Fields<'a>, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                let mut fields = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, &'de RawValue>()? {
                    fields.push((Cow::Owned(key), value));
                }
                Ok(Fields(fields))
            }
        }

        deserializer.deserialize_map(Reader)
    }
}

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bodies::one;
    use sluice_model::azure::ArmId;

    const READ: &str = r#"{"name":"pods","id":"/s/pods","etag":"W/\"1\"","properties":{"z":1.10,"serviceGateway":{"id":"/gw"},"big":12345678901234567890123,"a":[ 1, 2 ]},"type":"t"}"#;
    const REST: &str = r#"{"name":"pods","id":"/s/pods","etag":"W/\"1\"","properties":{"z":1.10,"big":12345678901234567890123,"a":[ 1, 2 ]},"type":"t"}"#;

    fn text(body: &SubnetBody) -> String {
        String::from_utf8(written(body).unwrap()).unwrap()
    }

    #[test]
    fn all_but_our_reference_is_kept_to_the_last_digit() {
        let subnet = one::<SubnetOutline<'_>>(READ.as_bytes()).unwrap();
        assert_eq!(subnet.id.as_str(), "/s/pods");
        assert_eq!(&*subnet.etag.0, "W/\"1\"");
        assert_eq!(subnet.gateway, Some(ArmId::new("/gw")));
        assert_eq!(&*subnet.rest, REST);
    }

    #[test]
    fn our_reference_goes_in_and_everything_else_goes_back() {
        let attached = text(&SubnetBody { gateway: Some(ArmId::new("/new")), rest: REST.into() });
        assert_eq!(attached, REST.replace("]}", r#"],"serviceGateway":{"id":"/new"}}"#));
        let detached = text(&SubnetBody { gateway: None, rest: READ.into() });
        assert_eq!(detached, READ.replace(r#"{"id":"/gw"}"#, "null"));
    }

    #[test]
    fn a_subnet_that_was_never_read_can_be_made() {
        let new =
            SubnetBody { gateway: None, rest: r#"{"properties":{"addressPrefix":"10.0.0.0/16"}}"#.into() };
        assert_eq!(text(&new), r#"{"properties":{"addressPrefix":"10.0.0.0/16","serviceGateway":null}}"#);
        assert_eq!(
            text(&SubnetBody { gateway: None, rest: "{}".into() }),
            r#"{"properties":{"serviceGateway":null}}"#
        );
    }

    #[test]
    fn what_is_no_subnet_is_neither_read_nor_written() {
        for rest in ["", "10.0.0.0/16", "[]", "null", r#"{"properties":[]}"#, r#"{"a":1"#] {
            assert!(written(&SubnetBody { gateway: None, rest: rest.into() }).is_err(), "{rest}");
            assert!(one::<SubnetOutline<'_>>(rest.as_bytes()).is_err(), "{rest}");
        }
        for odd in [r#"{"id":3}"#, r#"{"id":"/s","properties":{"serviceGateway":"/gw"}}"#, r#"{"etag":"1"}"#]
        {
            assert!(one::<SubnetOutline<'_>>(odd.as_bytes()).is_err(), "{odd}");
        }
    }
}
