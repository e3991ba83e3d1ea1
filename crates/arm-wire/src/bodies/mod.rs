//! The bodies of requests and answers, one file per kind, both directions in it.
//!
//! What is written is exact: every field that we mean stands there, cleared references are `null`,
//! arrays are never left out. What is read is an outline: fields that we have no use for are
//! passed over, and of the others each may be missing.

pub(crate) mod container;
pub(crate) mod gateway;
pub(crate) mod load_balancer;
pub(crate) mod locations;
pub(crate) mod nat_gateway;
pub(crate) mod public_ip;
pub(crate) mod services;
pub(crate) mod subnet;
pub(crate) mod text;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sluice_model::azure::{ArmId, ETag, Meta, Provisioning, Tags};
use sluice_model::call::{Page, PageToken};

use crate::excerpt;
use text::{Text, id};

/// Why a body is not what it should be.
#[derive(Debug)]
pub(crate) enum Misread {
    /// It is JSON, but has not what all of its kind have; it may be something else altogether.
    Another(String),
    /// It is no JSON, or has something of a wrong type.
    Malformed(String),
}

/// The outline of one kind of answer.
pub(crate) trait Outline<'a>: Deserialize<'a> {
    /// What it becomes.
    type Model;

    /// Makes the best of it.
    fn model(self) -> Result<Self::Model, Misread>;
}

/// Reads a body that is one of a kind.
pub(crate) fn one<'a, O: Outline<'a>>(body: &'a [u8]) -> Result<O::Model, Misread> {
    parse::<O>(body)?.model()
}

/// Reads a page of a list: all of it or nothing.
pub(crate) fn page<'a, O: Outline<'a>>(body: &'a [u8]) -> Result<Page<O::Model>, Misread> {
    let outline = parse::<PageOutline<O>>(body)?;
    let Some(entries) = outline.value else {
        return Err(Misread::Another(String::from("not a list: \"value\" is missing")));
    };
    let mut items = Vec::with_capacity(entries.len());
    for (at, entry) in entries.into_iter().enumerate() {
        let in_entry = |why: String| format!("value[{at}]: {why}");
        items.push(entry.model().map_err(|misread| match misread {
            Misread::Another(why) | Misread::Malformed(why) => Misread::Malformed(in_entry(why)),
        })?);
    }
    let next = outline.next_link.map(|link| link.0).filter(|link| !link.is_empty());
    Ok(Page { items, next: next.map(PageToken) })
}

/// Reads JSON, and says where it went wrong.
pub(crate) fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Misread> {
    // A byte order mark is no part of JSON, and some servers send one.
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    serde_json::from_slice(body).map_err(|error| {
        Misread::Malformed(format!("{error}, near: {}", excerpt::near(body, error.line(), error.column())))
    })
}

#[derive(Deserialize)]
#[serde(bound = "T: Deserialize<'de>")]
struct PageOutline<T> {
    /// Nothing where a list should be is not the empty one: that would say that there is nothing.
    value: Option<Vec<T>>,
    #[serde(rename = "nextLink")]
    next_link: Option<Text<Arc<str>>>,
}

/// A list inside a resource, which may be missing or `null`, and then is the empty one.
pub(crate) fn list<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Ok(Option::<Vec<T>>::deserialize(deserializer)?.unwrap_or_default())
}

/// What every resource has.
#[derive(Deserialize)]
#[serde(bound = "P: Deserialize<'de>")]
pub(crate) struct Resource<P> {
    id: Option<Text<ArmId>>,
    etag: Option<Text<ETag>>,
    tags: Option<FoundTags>,
    properties: Option<P>,
}

/// Tags as they are read; one without a value is empty.
type FoundTags = BTreeMap<Text<Arc<str>>, Option<Text<Arc<str>>>>;

/// Properties that say how the last write went.
pub(crate) trait Provisioned {
    /// `provisioningState`.
    fn state(&self) -> Option<Provisioning>;
}

impl<P: Provisioned + Default> Resource<P> {
    /// What all resources have in common, and what is this one's own.
    pub(crate) fn split(self) -> Result<(Meta, P), Misread> {
        let properties = self.properties.unwrap_or_default();
        let tags = self.tags.unwrap_or_default().into_iter();
        let meta = Meta {
            id: required(self.id)?,
            tags: tags.map(|(key, value)| (key.0, value.map_or_else(|| "".into(), |it| it.0))).collect(),
            etag: self.etag.map_or_else(|| ETag("".into()), |etag| etag.0),
            provisioning: properties.state().unwrap_or_default(),
        };
        Ok((meta, properties))
    }
}

/// The id that makes a resource of a document.
pub(crate) fn required(found: Option<Text<ArmId>>) -> Result<ArmId, Misread> {
    id(found).ok_or_else(|| Misread::Another(String::from("\"id\" is missing")))
}

/// `{"id": …}`, in either direction.
#[derive(Deserialize)]
pub(crate) struct Reference {
    id: Option<Text<ArmId>>,
}

impl Reference {
    /// The id, if it has one.
    pub(crate) fn id(self) -> Option<ArmId> {
        id(self.id)
    }

    /// The id, or what is wrong.
    pub(crate) fn required(self, of: &str) -> Result<ArmId, Misread> {
        self.id().ok_or_else(|| Misread::Malformed(format!("{of} has no \"id\"")))
    }
}

/// The ids of a list of references; one without an id would be lost silently.
pub(crate) fn ids(references: Vec<Reference>, of: &str) -> Result<Vec<ArmId>, Misread> {
    references.into_iter().map(|reference| reference.required(of)).collect()
}

/// A written reference.
#[derive(Serialize)]
pub(crate) struct RefersTo<'a> {
    id: &'a str,
}

impl<'a> RefersTo<'a> {
    pub(crate) fn new(id: &'a ArmId) -> RefersTo<'a> {
        RefersTo { id: id.as_str() }
    }

    /// Nothing if the id is empty: a field that is left out stays as it is.
    pub(crate) fn known(id: &'a ArmId) -> Option<RefersTo<'a>> {
        (!id.as_str().is_empty()).then(|| RefersTo::new(id))
    }

    pub(crate) fn all(ids: &'a [ArmId]) -> Vec<RefersTo<'a>> {
        ids.iter().map(RefersTo::new).collect()
    }
}

/// A resource as it is written.
#[derive(Serialize)]
pub(crate) struct Written<'a, P> {
    location: &'a str,
    sku: Sku,
    properties: P,
    tags: Labels<'a>,
}

impl<'a, P: Serialize> Written<'a, P> {
    /// The whole of a resource.
    pub(crate) fn json(location: &'a str, sku: Sku, properties: P, tags: &'a Tags) -> Vec<u8> {
        json(&Written { location, sku, properties, tags: Labels(tags) })
    }
}

/// What Azure sells it as.
#[derive(Serialize)]
pub(crate) struct Sku {
    name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tier: Option<&'static str>,
}

impl Sku {
    pub(crate) const STANDARD_V2: Sku = Sku { name: "StandardV2", tier: None };
    /// Case matters.
    pub(crate) const SERVICE: Sku = Sku { name: "Service", tier: None };
    pub(crate) const STANDARD_REGIONAL: Sku = Sku { name: "Standard", tier: Some("Regional") };
}

/// A part of a resource, with a name of its own.
#[derive(Serialize)]
pub(crate) struct Part<'a, P> {
    pub(crate) name: &'a str,
    pub(crate) properties: P,
}

/// Tags as they are written.
pub(crate) struct Labels<'a>(pub(crate) &'a Tags);

impl Serialize for Labels<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (&**key, &**value)))
    }
}

/// The body of a PATCH.
pub(crate) fn tags_json(tags: &Tags) -> Vec<u8> {
    #[derive(Serialize)]
    struct Patch<'a> {
        tags: Labels<'a>,
    }
    json(&Patch { tags: Labels(tags) })
}

/// Writes what can always be written.
pub(crate) fn json<T: Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec(value).expect("texts, numbers and maps with texts for keys are always JSON")
}
