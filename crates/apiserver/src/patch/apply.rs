//! Server-side apply: a manager says what shall be so; what it said before and says no longer goes.

use serde_json::{Value, json};

use super::Patched;
use super::fields::{self, Set, item_name, value_name};
use super::managed::{self, Entry};
use super::strategic::ordered_by;
use crate::kinds::Kind;
use crate::refusal::Refusal;
use crate::schema::{Field, Shape, Type};
use crate::store::Write;
use crate::value::{at, drop_nulls, metadata, name_of, namespace_of, remove};

/// The object that an apply makes where none is, and the owner of its fields.
pub(crate) fn first(
    kind: &Kind,
    name: &str,
    configuration: &Value,
    write: &Write,
) -> Result<(Value, Value), Refusal> {
    let mut object = cleaned(kind, configuration)?;
    metadata(&mut object)["name"] = json!(name);
    let mut entry = Entry::of(kind, write, true);
    entry.set = opinion(kind, &object, write);
    let managed = managed::write(vec![entry]).unwrap_or_else(|| json!([]));
    Ok((object, managed))
}

/// What an apply makes of an object that is there.
pub(crate) fn again(
    kind: &Kind,
    old: &Value,
    configuration: &Value,
    force: bool,
    write: &Write,
) -> Result<Patched, Refusal> {
    let configuration = cleaned(kind, configuration)?;
    let wanted = opinion(kind, &configuration, write);
    let mut entries = managed::read(old);
    let mut mine = Entry::of(kind, write, true);
    let before = match entries.iter().position(|entry| entry.is_of(&mine)) {
        Some(place) => {
            let entry = entries.remove(place);
            mine.time = entry.time;
            entry.set
        }
        None => Set::default(),
    };
    let mut others = Set::default();
    entries.iter().for_each(|entry| others.add(&entry.set));

    let of = Type::Named(kind.schema);
    let mut object = merged(&of, None, old, &configuration);
    prune(&of, None, &mut object, &before, &wanted, &others);
    let changed = fields::compare(&of, old, &object).changed;
    let conflicts: Vec<(usize, Set)> = entries
        .iter()
        .enumerate()
        .map(|(place, entry)| (place, entry.set.common(&changed).common(&wanted)))
        .filter(|(_, common)| !common.is_empty())
        .collect();
    if !conflicts.is_empty() && !force {
        return Err(conflict(&entries, &conflicts));
    }
    for (place, common) in &conflicts {
        entries[*place].set.subtract(common);
    }
    if before != wanted || !changed.is_empty() {
        mine.time = crate::value::now();
    }
    mine.set = wanted;
    entries.push(mine);
    let managed_fields = managed::write(entries).unwrap_or_else(|| json!([]));
    Ok(Patched { object, managed_fields: Some(managed_fields) })
}

/// A configuration without what it may not say, as far as that does no harm.
fn cleaned(kind: &Kind, configuration: &Value) -> Result<Value, Refusal> {
    if at(configuration, &["metadata", "managedFields"]).as_array().is_some_and(|it| !it.is_empty()) {
        return Err(Refusal::bad_request("metadata.managedFields must be nil"));
    }
    let mut configuration = configuration.clone();
    drop_nulls(&mut configuration);
    remove(metadata(&mut configuration), "managedFields");
    let unknown = crate::schema::decode::unknown(kind, &configuration)?;
    if !unknown.is_empty() {
        let problems: Vec<String> =
            unknown.iter().map(|path| format!(".{path}: field not declared in schema")).collect();
        let told = match problems.as_slice() {
            [one] => one.clone(),
            many => format!("errors:\n  {}", many.join("\n  ")),
        };
        let message = format!(
            "failed to create typed patch object ({}/{}; {}/{}, Kind={}): {told}",
            namespace_of(&configuration),
            name_of(&configuration),
            kind.group,
            kind.version,
            kind.kind
        );
        return Err(Refusal::new(500, "", message));
    }
    Ok(configuration)
}

fn opinion(kind: &Kind, configuration: &Value, write: &Write) -> Set {
    let mut set = fields::applied(&Type::Named(kind.schema), None, configuration);
    managed::strip(kind, write, &mut set);
    set
}

fn conflict(entries: &[Entry], conflicts: &[(usize, Set)]) -> Refusal {
    let mut causes = Vec::new();
    let mut told = Vec::new();
    for (place, common) in conflicts {
        let entry = &entries[*place];
        let mut who = format!("\"{}\"", entry.manager);
        if !entry.part.is_empty() {
            who.push_str(&format!(" with subresource \"{}\"", entry.part));
        }
        if !entry.is_apply {
            who.push_str(&format!(" using {}", entry.api_version));
        }
        let paths = common.paths();
        for path in &paths {
            let message = format!("conflict with {who}");
            causes.push(json!({"reason": "FieldManagerConflict", "message": message, "field": path}));
        }
        told.push(match paths.as_slice() {
            [one] => format!("conflict with {who}: {one}"),
            many => format!("conflicts with {who}:\n- {}", many.join("\n- ")),
        });
    }
    let count = causes.len();
    let noun = if count == 1 { "conflict" } else { "conflicts" };
    let message = format!("Apply failed with {count} {noun}: {}", told.join("\n"));
    let mut refusal = Refusal::new(409, "Conflict", message);
    refusal.details.insert("causes".into(), Value::Array(causes));
    refusal
}

/// A configuration laid over what is there.
fn merged(of: &Type, field: Option<&Field>, old: &Value, wanted: &Value) -> Value {
    match (of.shape(field), old, wanted) {
        (Shape::Struct(it), Value::Object(old), Value::Object(wanted)) => {
            let mut new = old.clone();
            for (name, wanted) in wanted {
                let merged = match (it.fields.get(name.as_str()), old.get(name)) {
                    (Some(field), Some(old)) => merged(&field.of, Some(field), old, wanted),
                    _ => wanted.clone(),
                };
                new.insert(name.clone(), merged);
            }
            Value::Object(new)
        }
        (Shape::Map(of), Value::Object(old), Value::Object(wanted)) => {
            let mut new = old.clone();
            for (name, wanted) in wanted {
                let merged =
                    old.get(name).map_or_else(|| wanted.clone(), |old| merged(of, None, old, wanted));
                new.insert(name.clone(), merged);
            }
            Value::Object(new)
        }
        (Shape::Keyed(of, keys), Value::Array(old), Value::Array(wanted)) => {
            let mut new = old.clone();
            for item in wanted {
                let name = item_name(of, keys, item);
                match new.iter().position(|it| item_name(of, keys, it) == name) {
                    Some(place) => new[place] = merged(of, None, &new[place], item),
                    None => new.push(item.clone()),
                }
            }
            let same = |one: &Value, other: &Value| item_name(of, keys, one) == item_name(of, keys, other);
            Value::Array(ordered_by(same, old, new, wanted))
        }
        (Shape::Set, Value::Array(old), Value::Array(wanted)) => {
            let mut new = old.clone();
            new.extend(wanted.iter().filter(|item| !old.contains(item)).cloned());
            Value::Array(ordered_by(|one, other| one == other, old, new, wanted))
        }
        _ => wanted.clone(),
    }
}

/// Takes away what the manager owned, wants no longer, and nobody else owns.
fn prune(of: &Type, field: Option<&Field>, value: &mut Value, before: &Set, wanted: &Set, others: &Set) {
    let step = |name: &str| {
        let of = |set: &Set| set.inside.get(name).cloned();
        (of(before), of(wanted), of(others))
    };
    match (of.shape(field), value) {
        (Shape::Struct(it), Value::Object(fields)) => {
            let mut gone = Vec::new();
            for (name, value) in fields.iter_mut() {
                let known = it.fields.get(name.as_str());
                let of = known.map_or(&Type::Any, |field| &field.of);
                let (before, wanted, others) = step(&format!("f:{name}"));
                let Some(before) = before else { continue };
                if goes(of, known, value, &before, wanted.as_ref(), others.as_ref()) {
                    gone.push(name.clone());
                } else {
                    let (wanted, others) = (wanted.unwrap_or_default(), others.unwrap_or_default());
                    prune(of, known, value, &before, &wanted, &others);
                }
            }
            gone.iter().for_each(|name| {
                fields.remove(name);
            });
        }
        (Shape::Map(of), Value::Object(items)) => {
            items.retain(|name, value| {
                let (before, wanted, others) = step(&format!("f:{name}"));
                !before.is_some_and(|it| goes(of, None, value, &it, wanted.as_ref(), others.as_ref()))
            });
        }
        (Shape::Keyed(of, keys), Value::Array(items)) => items.retain_mut(|item| {
            let (before, wanted, others) = step(&item_name(of, keys, item));
            let Some(before) = before else { return true };
            if wanted.is_none() && others.is_none() {
                return false;
            }
            let (wanted, others) = (wanted.unwrap_or_default(), others.unwrap_or_default());
            prune(of, None, item, &before, &wanted, &others);
            true
        }),
        (Shape::Set, Value::Array(items)) => items.retain(|item| {
            let (before, wanted, others) = step(&value_name(item));
            before.is_none() || wanted.is_some() || others.is_some()
        }),
        _ => {}
    }
}

/// Whether a field goes as a whole: the manager's own, wanted no longer by it, and by nobody else.
fn goes(
    of: &Type,
    field: Option<&Field>,
    value: &Value,
    before: &Set,
    wanted: Option<&Set>,
    others: Option<&Set>,
) -> bool {
    if wanted.is_some() || others.is_some() {
        return false;
    }
    // Of a thing with parts, parts that nobody ever owned (defaults) keep the rest.
    before.is_here || matches!(of.shape(field), Shape::Leaf) || {
        let everything = fields::applied(of, field, value);
        let mut left = everything;
        left.subtract(before);
        left.is_empty()
    }
}
