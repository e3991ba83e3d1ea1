//! Tables: what `kubectl get` prints.

use std::sync::Arc;

use serde_json::{Value, json};

use super::columns;
use super::query::Query;
use crate::kinds::Kind;
use crate::value::at;

/// What a client wants of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Wish {
    /// The definitions of the columns.
    pub(crate) columns: bool,
    /// With each row: nothing, the metadata, or the whole object.
    pub(crate) include: Include,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Include {
    Nothing,
    Metadata,
    Object,
}

impl Wish {
    pub(crate) fn of(query: &Query, columns: bool) -> Wish {
        let include = match query.text("includeObject") {
            "None" => Include::Nothing,
            "Object" => Include::Object,
            _ => Include::Metadata,
        };
        Wish { columns, include }
    }
}

/// A table of objects.
pub(crate) fn table(kind: &Kind, objects: &[Arc<Value>], wish: &Wish) -> Value {
    let is_scale = objects.iter().any(|object| object["kind"] == "Scale");
    let cells = |object: &Value| {
        if is_scale { columns::scale_cells(object) } else { columns::cells(kind, object) }
    };
    let rows: Vec<Value> = objects.iter().map(|object| row(object, cells(object), wish)).collect();
    let version = match objects {
        [one] => at(one, &["metadata", "resourceVersion"]).clone(),
        _ => Value::Null,
    };
    let columns = if wish.columns {
        let all = if is_scale { columns::scale() } else { columns::of(kind) };
        all.iter().map(columns::Column::defined).collect()
    } else {
        Value::Null
    };
    json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": version},
        "columnDefinitions": columns, "rows": rows})
}

fn row(object: &Value, cells: Vec<Value>, wish: &Wish) -> Value {
    let mut row = json!({"cells": cells});
    match wish.include {
        Include::Nothing => {}
        Include::Metadata => row["object"] = super::shape::metadata_only(object),
        Include::Object => row["object"] = object.clone(),
    }
    row
}
