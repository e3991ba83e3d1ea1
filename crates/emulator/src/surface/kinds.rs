//! One room per kind of resource: how its body is read, and how it is shown.
//!
//! Reading turns JSON into the model's body and the document that is kept beside it; showing lays the
//! model's facts over the document. Fields that were left out of a PUT stay as they were, except in load
//! balancers, which a PUT replaces as a whole.

pub(crate) mod gateway;
pub(crate) mod group;
pub(crate) mod load_balancer;
pub(crate) mod nat_gateway;
pub(crate) mod network;
pub(crate) mod public_ip;
pub(crate) mod subnet;

use serde_json::{Map, Value, json};
use sluice_cloud::{Cloud, InlineSubnet, State};
use sluice_model::azure::{ArmId, ETag, Meta, Provisioning, Tags};
use sluice_model::call::Body;

use super::document::{Document, Documents};
use super::fields::{Given, Object};
use super::refused::Refused;
use super::route::Routed;
use super::top::write_tags;

/// What a body has become.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) body: Body,
    pub(crate) document: Document,
    /// The subnets that came inside a network; `None` leaves those that there are.
    pub(crate) subnets: Option<Vec<InlineSubnet>>,
}

/// What one may look at while reading and showing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    pub(crate) cloud: &'a Cloud,
    pub(crate) documents: &'a Documents,
}

impl<'a> View<'a> {
    pub(crate) fn state(&self) -> &'a State {
        self.cloud.state()
    }

    /// The document of a resource that is there.
    pub(crate) fn before(&self, id: &ArmId) -> Option<&'a Document> {
        super::document::exists(self.state(), id).then(|| self.documents.newest(id)).flatten()
    }

    /// The region of a group, resource or subnet.
    pub(crate) fn location(&self, id: &ArmId) -> Option<&'a str> {
        let own = self.before(id).map(|document| document.location.as_str());
        own.or_else(|| Some(self.documents.newest(&id.parent("virtualNetworks")?)?.location.as_str()))
    }

    /// A resource stays where it is.
    pub(crate) fn check_location(&self, routed: &Routed, wanted: &str) -> Result<(), Refused> {
        match self.before(&routed.target) {
            Some(before) if before.location != wanted => {
                let group = routed.group.as_deref().unwrap_or("");
                Err(Refused::other_location(routed.target.name(), group, &before.location, wanted))
            }
            _ => Ok(()),
        }
    }

    /// A reference must lead to the same region; whether it leads anywhere, the model says.
    pub(crate) fn check_region(&self, target: &ArmId, by: &ArmId, location: &str) -> Result<(), Refused> {
        match self.location(target) {
            Some(there) if there != location => Err(Refused::missing_reference(target.as_str(), by.as_str())),
            _ => Ok(()),
        }
    }
}

/// Tags after a PUT: those that were given, or those that there were.
pub(crate) fn tags_after(given: &Given<Tags>, before: Option<&Tags>) -> Tags {
    given.clone().or_keep(before.cloned()).unwrap_or_default()
}

/// The fields of a PUT that nobody here knows, over those of the PUT before: they are kept and come back.
pub(crate) fn keep_others(
    properties: &mut Map<String, Value>,
    before: Option<&Document>,
    given: &Object<'_>,
    known: &[&str],
) {
    let is_known = |key: &str| known.iter().any(|name| name.eq_ignore_ascii_case(key));
    let named = |key: &str| given.raw(key).is_some();
    let kept = before.into_iter().flat_map(|before| &before.properties);
    for (key, value) in kept.filter(|(key, _)| !is_known(key) && !named(key)) {
        properties.insert(key.clone(), value.clone());
    }
    properties.extend(given.others(known));
}

/// `{"id": …}`.
pub(crate) fn reference(id: &ArmId) -> Value {
    json!({ "id": id.as_str() })
}

/// A provisioning state in Azure's word; one that nobody knows is for clients to cope with.
pub(crate) const fn state_word(state: Provisioning) -> &'static str {
    match state {
        Provisioning::Succeeded => "Succeeded",
        Provisioning::Updating => "Updating",
        Provisioning::Deleting => "Deleting",
        Provisioning::Failed => "Failed",
        Provisioning::Unknown => "Reticulating",
    }
}

/// The outside of a shown resource. `type_first` is the order of everything but public IPs.
pub(crate) fn outside(
    id: &ArmId,
    etag: &ETag,
    type_name: &str,
    type_first: bool,
    tags: &Tags,
    document: &Document,
    properties: Map<String, Value>,
) -> Value {
    let mut shown = Map::new();
    shown.insert("name".into(), id.name().into());
    shown.insert("id".into(), id.as_str().into());
    shown.insert("etag".into(), (&*etag.0).into());
    if type_first {
        shown.insert("type".into(), type_name.into());
    }
    shown.insert("location".into(), document.location.as_str().into());
    if let Some(tags) = write_tags(tags) {
        shown.insert("tags".into(), tags);
    }
    if let Some(zones) = &document.zones {
        shown.insert("zones".into(), zones.clone());
    }
    shown.insert("properties".into(), Value::Object(properties));
    if !type_first {
        shown.insert("type".into(), type_name.into());
    }
    if let Some(sku) = &document.sku {
        shown.insert("sku".into(), sku.clone());
    }
    Value::Object(shown)
}

/// The first properties of everything that has them.
pub(crate) fn first_properties(meta: &Meta, guid: Option<&str>) -> Map<String, Value> {
    let mut properties = Map::new();
    properties.insert("provisioningState".into(), state_word(meta.provisioning).into());
    if let Some(guid) = guid {
        properties.insert("resourceGuid".into(), guid.into());
    }
    properties
}

/// A new resource's `resourceGuid`.
pub(crate) fn new_guid(routed: &Routed, view: View<'_>) -> String {
    // What was deleted and comes again is another one, so the count of what was written goes in.
    super::document::guid(&format!("{}#{}", routed.target, view.documents.written()))
}

/// A body of a kind that has nothing but a top and a model's body.
pub(crate) fn draft(body: Body, document: Document) -> Draft {
    Draft { body, document, subnets: None }
}

/// `sku` of a resource that came without a document.
pub(crate) fn usual_sku(name: &str) -> Value {
    json!({ "name": name, "tier": "Regional" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_stays_and_what_is_null_goes() {
        let before = Document {
            properties: json!({ "kept": 1, "cleared": 2, "changed": 3, "known": 4 })
                .as_object()
                .cloned()
                .unwrap(),
            ..Document::default()
        };
        let given = json!({ "cleared": null, "CHANGED": 5, "new": 6, "Known": 7 });
        let mut properties = Map::new();
        keep_others(&mut properties, Some(&before), &Object::body(&given).unwrap(), &["known"]);
        assert_eq!(Value::Object(properties), json!({ "kept": 1, "CHANGED": 5, "new": 6 }));
    }
}
