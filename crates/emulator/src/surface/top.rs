//! What every resource has outside of its `properties`: place, tags, size, zones.
//!
//! The resource manager reads this part and knows every field of it, so an unknown one is refused here.

use std::sync::LazyLock;

use serde_json::{Map, Value};
use sluice_model::azure::Tags;

use super::document::Document;
use super::fields::{Given, Object};
use super::refused::{Refused, printable};
use super::route::{Kind, Routed};

/// What may stand beside `properties`.
const MEMBERS: [&str; 15] = [
    "id",
    "name",
    "type",
    "location",
    "tags",
    "etag",
    "sku",
    "properties",
    "zones",
    "extendedLocation",
    "systemData",
    "kind",
    "managedBy",
    "identity",
    "plan",
];

const TAGS_MAX: usize = 50;
const TAG_NAME_MAX: usize = 512;
const TAG_VALUE_MAX: usize = 256;

static NOTHING: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);

/// The outer part of a body, read.
#[derive(Debug)]
pub(crate) struct Top<'a> {
    /// The region, in Azure's spelling; empty for a subnet.
    pub(crate) location: String,
    pub(crate) tags: Given<Tags>,
    pub(crate) sku: Option<Object<'a>>,
    pub(crate) zones: Option<Value>,
    pub(crate) properties: Object<'a>,
}

impl<'a> Top<'a> {
    /// Reads the body of a PUT.
    pub(crate) fn read(body: &'a Value, routed: &Routed) -> Result<Top<'a>, Refused> {
        let object = Object::body(body)?;
        check_members(&object, &MEMBERS)?;
        check_identity(&object, routed)?;
        let location = match (routed.kind, object.text("location")?) {
            (Kind::Subnet, _) => String::new(),
            (_, None | Some("")) => return Err(Refused::no_location()),
            (kind, Some(location)) => {
                region(location).ok_or_else(|| Refused::bad_location(location, kind.word()))?
            }
        };
        for (name, why) in [
            ("extendedLocation", "Edge zones are not emulated."),
            ("identity", "Identities of resources are not emulated."),
            ("plan", "Plans are not emulated."),
        ] {
            object.refuse(name, why)?;
        }
        let zones = object.texts("zones")?.filter(|zones| !zones.is_empty()).map(Value::from);
        let properties = object.object("properties")?.unwrap_or_else(|| Object::of(&NOTHING, "properties"));
        Ok(Top { location, tags: tags(&object)?, sku: object.object("sku")?, zones, properties })
    }

    /// A document with what is read so far.
    pub(crate) fn document(&self, before: Option<&Document>, guid: String) -> Document {
        Document {
            location: self.location.clone(),
            zones: self.zones.clone().or_else(|| before.and_then(|before| before.zones.clone())),
            guid: before.map_or(guid, |before| before.guid.clone()),
            ..Document::default()
        }
    }

    /// `sku.name` and the whole of `sku`; without one, what was before or the usual one.
    pub(crate) fn sku(
        &self,
        names: &[&'static str],
        usual: &'static str,
        before: Option<&Document>,
        id: &str,
    ) -> Result<(&'static str, Value), Refused> {
        let known = |name: &str| names.iter().copied().find(|it| *it == name);
        let former = before.and_then(Document::sku_name).and_then(known);
        let name = match &self.sku {
            None => former.unwrap_or(usual),
            Some(sku) => {
                if let Some(tier) = sku.text("tier")?.filter(|tier| !tier.eq_ignore_ascii_case("Regional")) {
                    let why = format!("Tier '{}' is not emulated.", printable(tier));
                    return Err(Refused::not_emulated(&sku.at("tier"), &why));
                }
                sku.exact_word("name", names)?.or(former).unwrap_or(usual)
            }
        };
        if former.is_some_and(|former| former != name) {
            return Err(Refused::fixed("The sku", id));
        }
        Ok((name, serde_json::json!({ "name": name, "tier": "Regional" })))
    }
}

/// Reads the body of a PATCH: tags and nothing else.
pub(crate) fn read_tags(body: &Value) -> Result<Given<Tags>, Refused> {
    let object = Object::body(body)?;
    check_members(&object, &["tags"])?;
    tags(&object)
}

fn check_members(object: &Object<'_>, known: &[&str]) -> Result<(), Refused> {
    let is_known = |key: &str| known.iter().any(|member| member.eq_ignore_ascii_case(key));
    match object.map().keys().find(|key| !is_known(key)) {
        None => Ok(()),
        Some(key) => {
            let key = printable(key);
            let why = format!(
                "Could not find member '{key}' on object of type 'ResourceDefinition'. Path '{key}'."
            );
            Err(Refused::content(&why))
        }
    }
}

/// A body that says which resource it is must mean this one.
fn check_identity(object: &Object<'_>, routed: &Routed) -> Result<(), Refused> {
    if let Some(name) = object.text("name")?
        && !name.eq_ignore_ascii_case(routed.target.name())
    {
        let why = format!("The name '{}' in the body is not the one in the URL.", printable(name));
        return Err(Refused::content(&why));
    }
    if let Some(id) = object.text("id")?
        && !id.eq_ignore_ascii_case(routed.target.as_str())
    {
        let why = format!("The id '{}' in the body is not the one in the URL.", printable(id));
        return Err(Refused::content(&why));
    }
    Ok(())
}

fn tags(object: &Object<'_>) -> Result<Given<Tags>, Refused> {
    let Some(raw) = object.raw("tags") else { return Ok(Given::Absent) };
    if raw.is_null() {
        return Ok(Given::Null);
    }
    let Value::Object(map) = raw else {
        return Err(Refused::content("Expected an object. Path 'tags'."));
    };
    if map.len() > TAGS_MAX {
        return Err(Refused::bad_tags(&format!("there are more than {TAGS_MAX}")));
    }
    let mut tags = Tags::new();
    for (name, value) in map {
        let Value::String(value) = value else {
            let why = format!("Expected a string. Path 'tags.{}'.", printable(name));
            return Err(Refused::content(&why));
        };
        let is_odd = |c: char| c.is_control() || "<>%&\\?/".contains(c);
        if name.is_empty() || name.chars().count() > TAG_NAME_MAX || name.contains(is_odd) {
            return Err(Refused::bad_tag_name(name));
        }
        if value.chars().count() > TAG_VALUE_MAX {
            let why = format!("the value of '{name}' is longer than {TAG_VALUE_MAX}");
            return Err(Refused::bad_tags(&why));
        }
        tags.insert(name.as_str().into(), value.as_str().into());
    }
    Ok(Given::Value(tags))
}

/// `East US 2` is `eastus2`.
fn region(text: &str) -> Option<String> {
    let name: String = text.chars().filter(|c| *c != ' ').map(|c| c.to_ascii_lowercase()).collect();
    let fits = (1..=32).contains(&name.len()) && name.chars().all(|c| c.is_ascii_alphanumeric());
    fits.then_some(name)
}

/// Tags as JSON; `None` when there are none, because Azure leaves them out then.
pub(crate) fn write_tags(tags: &Tags) -> Option<Value> {
    let pairs = tags.iter().map(|(name, value)| (name.to_string(), Value::from(&**value)));
    (!tags.is_empty()).then(|| Value::Object(pairs.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_have_one_spelling() {
        assert_eq!(region("East US 2").as_deref(), Some("eastus2"));
        for text in ["", " ", "east/us", "ostküste"] {
            assert_eq!(region(text), None, "{text}");
        }
    }
}
