//! Resource groups: a region and tags.

use serde_json::{Map, Value, json};
use sluice_model::azure::{ArmId, Provisioning};
use sluice_model::call::Body;

use super::super::document::Document;
use super::super::refused::Refused;
use super::super::route::Routed;
use super::super::top::{Top, write_tags};
use super::{Draft, View, draft, state_word, tags_after};

pub(crate) fn read(view: View<'_>, routed: &Routed, top: &Top<'_>) -> Result<Draft, Refused> {
    let before = view.before(&routed.target);
    if let Some(before) = before.filter(|before| before.location != top.location) {
        let name = routed.target.name();
        return Err(Refused::other_group_location(name, &before.location, &top.location));
    }
    let tags = tags_after(&top.tags, before.map(|before| &before.tags));
    Ok(draft(Body::Container, Document { location: top.location.clone(), tags, ..Document::default() }))
}

/// A group has no ETag, and is never seen while it is being made.
pub(crate) fn show(view: View<'_>, id: &ArmId, document: Option<&Document>) -> Value {
    let stranger = Document::of_stranger(id);
    let document = document.unwrap_or(&stranger);
    // The id as it was first spelled.
    let id = view.state().groups.get(id).unwrap_or(id);
    let state = view.cloud.at_work(id).unwrap_or(Provisioning::Succeeded);
    let mut shown = Map::new();
    shown.insert("id".into(), id.as_str().into());
    shown.insert("name".into(), id.name().into());
    shown.insert("type".into(), "Microsoft.Resources/resourceGroups".into());
    shown.insert("location".into(), document.location.as_str().into());
    if let Some(tags) = write_tags(&document.tags) {
        shown.insert("tags".into(), tags);
    }
    shown.insert("properties".into(), json!({ "provisioningState": state_word(state) }));
    Value::Object(shown)
}
