//! What a client wrote, beside what the model makes of it.
//!
//! The model knows what it needs to judge a request. Everything else that a client sends (an idle timeout,
//! zones, a field that we have never heard of) is in the resource's document and comes back as it was sent.
//! A document belongs to an ETag: reads that lag see an old resource, and must see it with its old document.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};
use sluice_cloud::State;
use sluice_model::azure::{ArmId, ETag, Tags};

use crate::answers::guid_of;

/// How many versions of one document are kept; reads lag by a few seconds at most.
const VERSIONS_MAX: usize = 4;

/// A resource as its last writer sent it, with Azure's defaults.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Document {
    /// The region.
    pub(crate) location: String,
    /// Tags of groups and networks; everything else has its tags in the model.
    pub(crate) tags: Tags,
    /// `sku`, if the kind has one.
    pub(crate) sku: Option<Value>,
    /// `zones`, if there are any.
    pub(crate) zones: Option<Value>,
    /// `resourceGuid`.
    pub(crate) guid: String,
    /// Everything of `properties` that the model does not keep.
    pub(crate) properties: Map<String, Value>,
}

impl Document {
    /// A document for a resource that came without one.
    pub(crate) fn of_stranger(id: &ArmId) -> Document {
        Document { location: "eastus".into(), guid: guid(id.as_str()), ..Document::default() }
    }

    /// One of the properties.
    pub(crate) fn property(&self, name: &str) -> Option<&Value> {
        self.properties.get(name)
    }

    /// The text of one of the properties.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.property(name)?.as_str()
    }

    /// `sku.name`.
    pub(crate) fn sku_name(&self) -> Option<&str> {
        self.sku.as_ref()?.get("name")?.as_str()
    }
}

/// All documents.
#[derive(Clone, Debug, Default)]
pub(crate) struct Documents {
    all: BTreeMap<ArmId, Vec<(Option<ETag>, Document)>>,
    /// Whose deletion has begun.
    going: BTreeSet<ArmId>,
    written: u64,
}

impl Documents {
    /// Keeps a document for this version of a resource.
    pub(crate) fn keep(&mut self, id: &ArmId, etag: Option<ETag>, document: Document) {
        self.written = self.written.wrapping_add(1);
        let versions = self.all.entry(id.clone()).or_default();
        versions.push((etag, document));
        if versions.len() > VERSIONS_MAX {
            versions.remove(0);
        }
    }

    /// The document of a version of a resource; of a version that nobody wrote through us, the newest.
    pub(crate) fn of(&self, id: &ArmId, etag: Option<&ETag>) -> Option<&Document> {
        let versions = self.all.get(id)?;
        let exact = versions.iter().rfind(|(of, _)| etag.is_some() && of.as_ref() == etag);
        exact.or(versions.last()).map(|(_, document)| document)
    }

    /// How many documents have ever been kept.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// The newest document of a resource.
    pub(crate) fn newest(&self, id: &ArmId) -> Option<&Document> {
        self.of(id, None)
    }

    /// A deletion has begun; when the resource is gone, so is its document.
    pub(crate) fn expect_end(&mut self, id: &ArmId) {
        self.going.insert(id.clone());
    }

    /// Drops the documents of what has been deleted.
    pub(crate) fn forget_deleted(&mut self, state: &State) {
        let gone: Vec<ArmId> = self.going.iter().filter(|id| !exists(state, id)).cloned().collect();
        for id in gone {
            let below = format!("{id}/");
            self.all.retain(|other, _| *other != id && !begins_with(other, &below));
            self.going.remove(&id);
        }
    }

    /// Drops the documents of everything that is not there.
    pub(crate) fn forget_missing(&mut self, state: &State) {
        self.all.retain(|id, _| exists(state, id));
        self.going.retain(|id| exists(state, id));
    }
}

/// Whether a group or resource is there.
pub(crate) fn exists(state: &State, id: &ArmId) -> bool {
    etag_of(state, id).is_some() || state.groups.contains(id)
}

/// The ETag that a resource has in truth.
pub(crate) fn etag_of<'s>(state: &'s State, id: &ArmId) -> Option<&'s ETag> {
    (state.public_ips.get(id).map(|it| &it.meta.etag))
        .or_else(|| state.load_balancers.get(id).map(|it| &it.meta.etag))
        .or_else(|| state.nat_gateways.get(id).map(|it| &it.meta.etag))
        .or_else(|| state.gateways.get(id).map(|it| &it.meta.etag))
        .or_else(|| state.subnets.get(id).map(|it| &it.etag))
        .or_else(|| state.virtual_networks.get(id))
}

/// Whether an id begins so, whatever its case.
pub(crate) fn begins_with(id: &ArmId, head: &str) -> bool {
    id.as_str().get(..head.len()).is_some_and(|it| it.eq_ignore_ascii_case(head))
}

/// A GUID made of an id: the same for the same one, whatever its case, and different for another.
pub(crate) fn guid(id: &str) -> String {
    guid_of(&id.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(location: &str) -> Document {
        Document { location: location.into(), ..Document::default() }
    }

    #[test]
    fn a_read_that_lags_finds_the_document_of_its_version() {
        let (id, tag) = (ArmId::new("/subscriptions/s/x"), |text: &str| ETag(text.into()));
        let mut documents = Documents::default();
        documents.keep(&id, Some(tag("1")), document("old"));
        documents.keep(&id, Some(tag("2")), document("new"));
        let location = |etag: &str| documents.of(&id, Some(&tag(etag))).map(|it| it.location.as_str());
        assert_eq!(location("1"), Some("old"));
        assert_eq!(location("2"), Some("new"));
        assert_eq!(location("somebody else's"), Some("new"));
        // What the model of the cloud does not know changes without another version.
        documents.keep(&id, Some(tag("2")), document("newest"));
        let location = |etag: &str| documents.of(&id, Some(&tag(etag))).map(|it| it.location.as_str());
        assert_eq!((location("1"), location("2")), (Some("old"), Some("newest")));
        for number in 3..20 {
            documents.keep(&id, Some(tag(&number.to_string())), document("newer"));
        }
        assert_eq!(documents.all[&id].len(), VERSIONS_MAX);
    }

    #[test]
    fn a_guid_has_its_shape_and_does_not_look_at_case() {
        let one = guid("/subscriptions/s/x");
        assert_eq!(one, guid("/SUBSCRIPTIONS/s/X"));
        assert_ne!(one, guid("/subscriptions/s/y"));
        assert_eq!(one.split('-').map(str::len).collect::<Vec<_>>(), [8, 4, 4, 4, 12]);
    }
}
