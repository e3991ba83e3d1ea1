//! Strategic merge: a merge patch that knows which lists have items with keys.
//!
//! The patch may carry orders of its own: `$patch` (replace, delete, merge), `$retainKeys`,
//! `$setElementOrder/list` and `$deleteFromPrimitiveList/list`.

use serde_json::{Map, Value, json};

use crate::refusal::Refusal;
use crate::schema::{Field, Struct, Type, named};

const PATCH: &str = "$patch";
const RETAIN: &str = "$retainKeys";
const ORDER: &str = "$setElementOrder/";
const DELETE: &str = "$deleteFromPrimitiveList/";

/// Lays a patch over an object of a type.
pub(crate) fn merge(schema: &'static str, old: &Value, patch: &Value) -> Result<Value, Refusal> {
    if !patch.is_object() {
        return Err(Refusal::bad_request("the patch is not a JSON object"));
    }
    let merged = value(Some(&Type::Named(schema)), Some(old), patch)?;
    Ok(merged.unwrap_or_else(|| json!({})))
}

/// What a patch makes of a value; `None` when it takes it away.
fn value(of: Option<&Type>, old: Option<&Value>, patch: &Value) -> Result<Option<Value>, Refusal> {
    let Value::Object(patch) = patch else { return Ok(Some(patch.clone()).filter(|it| !it.is_null())) };
    match patch.get(PATCH).and_then(Value::as_str) {
        Some("delete") => return Ok(None),
        Some("replace") => {
            let mut rest = patch.clone();
            rest.remove(PATCH);
            return Ok(Some(Value::Object(rest)));
        }
        Some("merge") | None => {}
        Some(other) => {
            return Err(Refusal::bad_request(format!("Unknown patch type found: {other}")));
        }
    }
    if matches!(of, Some(Type::Any)) {
        return Ok(Some(Value::Object(patch.clone())));
    }
    let mut new = old.and_then(Value::as_object).cloned().unwrap_or_default();
    if let Some(Value::Array(stay)) = patch.get(RETAIN) {
        new.retain(|key, _| stay.iter().any(|it| it == key));
    }
    let of_struct = match of {
        Some(Type::Named(name)) => Some(named(name)),
        _ => None,
    };
    for (key, wanted) in patch {
        if key.starts_with('$') {
            continue;
        }
        let field = of_struct.and_then(|it| it.fields.get(key.as_str()));
        let of_field = match (field, of) {
            (Some(field), _) => Some(&field.of),
            (None, Some(Type::Map(of))) => Some(&**of),
            _ => None,
        };
        let merged = match (wanted, field.and_then(|field| field.merge)) {
            (Value::Null, _) => None,
            (Value::Array(items), Some(by)) => {
                let order = patch.get(&format!("{ORDER}{key}")).and_then(Value::as_array);
                Some(list(field, by, new.get(key), items, order.map(Vec::as_slice))?)
            }
            (Value::Object(_), _) => value(of_field, new.get(key), wanted)?,
            _ => Some(wanted.clone()),
        };
        set(&mut new, key, merged);
    }
    deletions(&mut new, patch);
    reorder_only(of_struct, &mut new, patch);
    Ok(Some(Value::Object(new)))
}

fn set(fields: &mut Map<String, Value>, key: &str, to: Option<Value>) {
    match to {
        Some(to) => {
            fields.insert(key.to_owned(), to);
        }
        None => {
            fields.remove(key);
        }
    }
}

/// `$deleteFromPrimitiveList/finalizers: [a]`.
fn deletions(new: &mut Map<String, Value>, patch: &Map<String, Value>) {
    for (key, gone) in patch {
        let (Some(name), Value::Array(gone)) = (key.strip_prefix(DELETE), gone) else { continue };
        if let Some(Value::Array(items)) = new.get_mut(name) {
            items.retain(|item| !gone.contains(item));
        }
    }
}

/// An order for a list that the patch does not change otherwise.
fn reorder_only(of: Option<&Struct>, new: &mut Map<String, Value>, patch: &Map<String, Value>) {
    for (key, order) in patch {
        let (Some(name), Value::Array(order)) = (key.strip_prefix(ORDER), order) else { continue };
        let by = of.and_then(|it| it.fields.get(name)).and_then(|field| field.merge);
        if let (Some(by), Some(Value::Array(items))) = (by, new.get_mut(name)) {
            let before = items.clone();
            *items = ordered(by, &before, std::mem::take(items), order);
        }
    }
}

/// Merges a list by the key of its items, or as a set.
fn list(
    field: Option<&Field>,
    by: &str,
    old: Option<&Value>,
    patch: &[Value],
    order: Option<&[Value]>,
) -> Result<Value, Refusal> {
    let of_item = match field.map(|field| &field.of) {
        Some(Type::List(of)) => Some(&**of),
        _ => None,
    };
    let before = old.and_then(Value::as_array).cloned().unwrap_or_default();
    let replaces = patch.iter().any(|item| item[PATCH] == "replace" && item.get(by).is_none());
    let mut items = if replaces { Vec::new() } else { before.clone() };
    for item in patch {
        if item[PATCH] == "replace" && item.get(by).is_none() {
            continue;
        }
        if by.is_empty() {
            if !items.contains(item) {
                items.push(item.clone());
            }
            continue;
        }
        let Some(key) = item.get(by) else {
            return Err(Refusal::bad_request(format!(
                "map: {item} does not contain declared merge key: {by}"
            )));
        };
        let place = items.iter().position(|it| it.get(by) == Some(key));
        let merged = value(of_item, place.map(|place| &items[place]), item)?;
        match (place, merged) {
            (Some(place), Some(merged)) => items[place] = merged,
            (Some(place), None) => {
                items.remove(place);
            }
            (None, Some(merged)) => items.push(merged),
            (None, None) => {}
        }
    }
    // Without an order of its own the patch's items come in the order of the patch.
    let order = order.unwrap_or(patch);
    Ok(Value::Array(ordered(by, &before, items, order)))
}

/// Items in the order that the patch wants; those that it does not name keep their neighbours.
fn ordered(by: &str, before: &[Value], items: Vec<Value>, order: &[Value]) -> Vec<Value> {
    let same = |one: &Value, other: &Value| {
        if by.is_empty() { one == other } else { one.get(by) == other.get(by) }
    };
    ordered_by(same, before, items, order)
}

/// The same, for items that are told apart in another way.
pub(super) fn ordered_by(
    same: impl Fn(&Value, &Value) -> bool,
    before: &[Value],
    items: Vec<Value>,
    order: &[Value],
) -> Vec<Value> {
    let rank = |item: &Value| order.iter().position(|it| same(it, item));
    let was_at = |item: &Value| before.iter().position(|it| same(it, item));
    let (mut wanted, others): (Vec<Value>, Vec<Value>) = items.into_iter().partition(|it| rank(it).is_some());
    wanted.sort_by_key(|item| rank(item));
    let mut others = others.into_iter().peekable();
    let mut all = Vec::new();
    for item in wanted {
        if let Some(at) = was_at(&item) {
            while let Some(other) = others.next_if(|other| was_at(other).is_some_and(|it| it < at)) {
                all.push(other);
            }
        }
        all.push(item);
    }
    all.extend(others);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deployment(old: Value, patch: Value) -> Value {
        merge("apps.v1.Deployment", &old, &patch).unwrap()
    }

    fn containers(items: Value) -> Value {
        json!({"spec": {"template": {"spec": {"containers": items}}}})
    }

    #[test]
    fn items_are_merged_by_their_key_in_the_order_of_the_patch() {
        let old = containers(
            json!([{"name": "a", "image": "1", "env": [{"name": "X", "value": "1"}]}, {"name": "b"}]),
        );
        let patch = containers(
            json!([{"name": "a", "image": "2", "env": [{"name": "Y", "value": "2"}]}, {"name": "c"}]),
        );
        assert_eq!(
            deployment(old, patch),
            containers(json!([
                {"name": "a", "image": "2", "env": [{"name": "Y", "value": "2"}, {"name": "X", "value": "1"}]},
                {"name": "c"}, {"name": "b"}
            ]))
        );
    }

    #[test]
    fn an_item_is_deleted_and_a_list_replaced_when_the_patch_says_so() {
        let old = containers(json!([{"name": "a"}, {"name": "b"}]));
        let patch = containers(json!([{"name": "a", "$patch": "delete"}]));
        assert_eq!(deployment(old.clone(), patch), containers(json!([{"name": "b"}])));
        let patch = containers(json!([{"name": "z"}, {"$patch": "replace"}]));
        assert_eq!(deployment(old, patch), containers(json!([{"name": "z"}])));
    }

    #[test]
    fn maps_merge_null_takes_away_and_replace_replaces() {
        let old =
            json!({"metadata": {"labels": {"a": "1", "b": "2"}}, "spec": {"replicas": 1, "paused": true}});
        let patch = json!({"metadata": {"labels": {"a": null, "c": "3"}}, "spec": {"paused": null}});
        assert_eq!(
            deployment(old.clone(), patch),
            json!({"metadata": {"labels": {"b": "2", "c": "3"}}, "spec": {"replicas": 1}})
        );
        let patch = json!({"metadata": {"labels": {"$patch": "replace", "z": "9"}}});
        assert_eq!(deployment(old, patch)["metadata"]["labels"], json!({"z": "9"}));
    }

    #[test]
    fn keys_that_are_not_retained_go() {
        let old = json!({"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}});
        let patch = json!({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}});
        assert_eq!(deployment(old, patch), json!({"spec": {"strategy": {"type": "Recreate"}}}));
    }

    #[test]
    fn sets_of_words_grow_and_shrink() {
        let old = json!({"metadata": {"finalizers": ["a", "b"]}});
        let patch =
            json!({"metadata": {"finalizers": ["c", "a"], "$deleteFromPrimitiveList/finalizers": ["b"]}});
        assert_eq!(deployment(old, patch), json!({"metadata": {"finalizers": ["c", "a"]}}));
    }

    #[test]
    fn the_order_is_the_patchs_and_others_keep_their_neighbours() {
        let old = containers(json!([{"name": "a"}, {"name": "live"}, {"name": "b"}]));
        let patch = json!({"spec": {"template": {"spec": {
            "$setElementOrder/containers": [{"name": "b"}, {"name": "a"}, {"name": "c"}],
            "containers": [{"name": "c"}]}}}});
        assert_eq!(
            deployment(old, patch),
            containers(json!([{"name": "live"}, {"name": "b"}, {"name": "a"}, {"name": "c"}]))
        );
    }

    #[test]
    fn lists_without_a_key_are_replaced_and_an_item_without_its_key_is_refused() {
        let old = json!({"spec": {"template": {"spec": {"tolerations": [{"key": "a"}]}}}});
        let patch = json!({"spec": {"template": {"spec": {"tolerations": [{"key": "b"}]}}}});
        assert_eq!(deployment(old, patch.clone()), patch);
        let nameless = containers(json!([{"image": "x"}]));
        assert!(merge("apps.v1.Deployment", &json!({}), &nameless).is_err());
    }

    #[test]
    fn what_is_new_has_no_orders_left_in_it() {
        let patch =
            json!({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}, "$patch": "merge"}});
        assert_eq!(deployment(json!({}), patch), json!({"spec": {"strategy": {"type": "Recreate"}}}));
    }
}
