//! One object, or many: in pages, as a table, at a moment.

use std::sync::Arc;

use http::Response;
use serde::Serialize;
use serde_json::{Value, json};

use super::answer::{self, Content};
use super::negotiate::Form;
use super::route::Target;
use super::serve::Asked;
use super::{shape, tables};
use crate::refusal::{Cause, Refusal};
use crate::store::{Listed, Pages, Selection};

/// Answers with one object.
pub(crate) fn get(asked: &Asked<'_>, target: &Target, name: &str) -> Result<Response<Content>, Refusal> {
    let stored = shape::stored(target.kind);
    let namespace = target.namespace.as_deref().unwrap_or("");
    let object = asked.surface.store.get(stored, namespace, name);
    let object = object.map_err(|refusal| shape::renamed(refusal, target.kind, name))?;
    Ok(one(asked, target, 200, &object))
}

/// An object in the form that the client wants.
pub(crate) fn one(asked: &Asked<'_>, target: &Target, code: u16, object: &Arc<Value>) -> Response<Content> {
    let object = shape::shown(target.kind, object);
    let shown = match asked.form {
        Form::Table => tables::table(target.kind, &[object], &tables::Wish::of(&asked.query, true)),
        Form::Metadata => shape::metadata_only(&object),
        Form::Plain | Form::Discovery => return answer::json(code, &*object),
    };
    answer::json(code, &shown)
}

/// Answers with a list.
pub(crate) fn list(asked: &Asked<'_>, target: &Target) -> Result<Response<Content>, Refusal> {
    let query = &asked.query;
    let selection = Selection::parse(target.kind, query.text("labelSelector"), query.text("fieldSelector"))?;
    let limit =
        query.number("limit")?.filter(|limit| *limit > 0).map(|it| usize::try_from(it).unwrap_or(usize::MAX));
    let store = &asked.surface.store;
    let token = query.text("continue");
    let place = format!("{} {}", target.kind.qualified(), target.namespace.as_deref().unwrap_or("*"));
    let (listed, offset) = match token {
        "" => {
            let listed = store.list(shape::stored(target.kind), target.namespace.as_deref(), &selection);
            as_of(asked, &listed)?;
            (listed, 0)
        }
        token => {
            let page = store.page(token).ok_or_else(|| {
                Refusal::expired(
                    "The provided continue parameter is too old to display a consistent list result. You must \
                     start a new list without the continue parameter.",
                )
            })?;
            if page.of != place {
                return Err(Refusal::bad_request("continue key is not valid: it belongs to another list"));
            }
            (page.listed, page.offset)
        }
    };
    let end = limit.map_or(listed.items.len(), |limit| listed.items.len().min(offset.saturating_add(limit)));
    let mut meta = json!({"resourceVersion": listed.version.to_string()});
    let left = listed.items.len() - end;
    if left > 0 {
        let next = Pages::later(token, end);
        meta["continue"] = json!(next.unwrap_or_else(|| store.keep_list(place, listed.clone(), end)));
        if selection.is_everything() {
            meta["remainingItemCount"] = json!(left);
        }
    } else if !token.is_empty() {
        store.list_is_read(token);
    }
    let page = &listed.items[offset.min(end)..end];
    let objects: Vec<Arc<Value>> = page.iter().map(|object| shape::shown(target.kind, object)).collect();
    if matches!(asked.form, Form::Plain | Form::Discovery) {
        let list = List {
            kind: format!("{}List", target.kind.kind),
            api_version: target.kind.api_version(),
            metadata: meta,
            items: objects.iter().map(|object| shape::Typeless(object)).collect(),
        };
        return Ok(answer::json(200, &list));
    }
    Ok(answer::json(200, &listed_as(asked, target, &objects, meta)))
}

/// A list, without copies of its objects; they do not say their kind again.
#[derive(Serialize)]
struct List<'a> {
    kind: String,
    #[serde(rename = "apiVersion")]
    api_version: String,
    metadata: Value,
    items: Vec<shape::Typeless<'a>>,
}

fn listed_as(asked: &Asked<'_>, target: &Target, objects: &[Arc<Value>], meta: Value) -> Value {
    match asked.form {
        Form::Metadata => {
            let items: Vec<Value> = objects.iter().map(|object| shape::metadata_only(object)).collect();
            json!({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": meta,
                "items": items})
        }
        _ => {
            let mut table = tables::table(target.kind, objects, &tables::Wish::of(&asked.query, true));
            table["metadata"] = meta;
            table
        }
    }
}

/// Whether a list shows the moment that the client asks for.
fn as_of(asked: &Asked<'_>, listed: &Listed) -> Result<(), Refusal> {
    let wanted = asked.query.number("resourceVersion")?.unwrap_or(0);
    let how = asked.query.text("resourceVersionMatch");
    if !how.is_empty() && asked.query.text("resourceVersion").is_empty() {
        let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
        let cause = Cause::forbidden("resourceVersionMatch", why);
        return Err(Refusal::invalid_options("ListOptions", &cause));
    }
    match how {
        "" | "NotOlderThan" if wanted <= listed.version => Ok(()),
        "Exact" if wanted == listed.version => Ok(()),
        "Exact" if wanted < listed.version => {
            Err(Refusal::expired("The resourceVersion for the provided list is too old."))
        }
        "" | "NotOlderThan" | "Exact" => Err(too_large(wanted, listed.version)),
        other => {
            let supported = ["Exact", "NotOlderThan", ""];
            let cause = Cause::unsupported("resourceVersionMatch", &json!(other), &supported);
            Err(Refusal::invalid_options("ListOptions", &cause))
        }
    }
}

/// A version that is not there yet.
pub(crate) fn too_large(wanted: u64, current: u64) -> Refusal {
    let message = format!("Timeout: Too large resource version: {wanted}, current: {current}");
    let mut refusal = Refusal::new(504, "Timeout", message);
    refusal.details.insert("retryAfterSeconds".into(), json!(1));
    refusal.details.insert(
        "causes".into(),
        json!([{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]),
    );
    refusal
}
