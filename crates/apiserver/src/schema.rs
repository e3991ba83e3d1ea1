//! The fields of every kind: names, types, and how lists and maps are merged.
//!
//! `schema/types.txt` has one line per type, taken from what a real server tells of itself in its
//! OpenAPI documents (names and types; no sentence of it). Everything that must know fields reads it:
//! the check for unknown ones, strategic merge, apply, the owners of fields, and our own OpenAPI.
//!
//! A field is `name[!]:type[(values)][~][=default][@mark…]`. `!`: required. `~`: there even if nobody
//! wrote it, since it is a struct in Go and no pointer. `@map(keys)` and `@set`: how apply merges a list
//! (whole, if it says nothing). `@atomic`: a map that is replaced whole. `@merge` or `@merge(key)`: how a
//! strategic merge treats a list. `@retain`: strategic merge may name the keys that stay.

pub(crate) mod decode;

use std::collections::BTreeMap;
use std::sync::OnceLock;

/// A type of a field.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Type {
    /// Text, perhaps one of a few.
    Text(Vec<&'static str>),
    /// `int32`, `int64`.
    Integer(&'static str),
    /// `number`.
    Number,
    /// `bool`.
    Bool,
    /// A moment, to the second.
    Time,
    /// A moment, to the microsecond.
    MicroTime,
    /// Bytes in base64.
    Bytes,
    /// A number or a text.
    IntOrText,
    /// An amount such as `100m`.
    Quantity,
    /// Anything.
    Any,
    /// A type with a name.
    Named(&'static str),
    /// Many of one type.
    List(Box<Type>),
    /// Many of one type, by name.
    Map(Box<Type>),
}

/// How apply merges a list.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) enum ListKind {
    /// It is one value.
    #[default]
    Whole,
    /// Its items are a set.
    Set,
    /// Its items are told apart by these fields.
    Keyed(Vec<&'static str>),
}

/// A field.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) of: Type,
    pub(crate) is_required: bool,
    pub(crate) is_always: bool,
    pub(crate) default: Option<&'static str>,
    pub(crate) list: ListKind,
    pub(crate) is_atomic: bool,
    /// A strategic merge may name the keys that stay.
    pub(crate) retains: bool,
    /// How a strategic merge treats its list: by this key, or as a set where the key is empty.
    pub(crate) merge: Option<&'static str>,
}

/// A type with a name and fields.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Struct {
    pub(crate) name: &'static str,
    pub(crate) is_atomic: bool,
    pub(crate) fields: BTreeMap<&'static str, Field>,
}

/// What a value is made of, for those who walk through it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape<'s> {
    /// A struct with its fields.
    Struct(&'s Struct),
    /// A map of values of one type.
    Map(&'s Type),
    /// A list whose items are told apart by keys.
    Keyed(&'s Type, &'s [&'static str]),
    /// A list that is a set.
    Set,
    /// One value, whatever is in it.
    Leaf,
}

/// All types, by name.
pub(crate) fn types() -> &'static BTreeMap<&'static str, Struct> {
    static TYPES: OnceLock<BTreeMap<&'static str, Struct>> = OnceLock::new();
    TYPES.get_or_init(|| include_str!("schema/types.txt").lines().map(read_struct).collect())
}

/// A type by its name; the table names no type that it does not have (a test holds it to that).
pub(crate) fn named(name: &str) -> &'static Struct {
    types().get(name).expect("the table of fields has every type that is named")
}

impl Type {
    /// What a value of this type, in this field, is made of.
    pub(crate) fn shape<'s>(&'s self, field: Option<&'s Field>) -> Shape<'s> {
        if field.is_some_and(|field| field.is_atomic) {
            return Shape::Leaf;
        }
        match self {
            Type::Named(name) if named(name).is_atomic => Shape::Leaf,
            Type::Named(name) => Shape::Struct(named(name)),
            Type::Map(of) => Shape::Map(of),
            Type::List(of) => match field.map(|field| &field.list) {
                Some(ListKind::Keyed(keys)) => Shape::Keyed(of, keys),
                Some(ListKind::Set) => Shape::Set,
                _ => Shape::Leaf,
            },
            _ => Shape::Leaf,
        }
    }
}

fn read_struct(line: &'static str) -> (&'static str, Struct) {
    let (head, fields) =
        line.split_once(": ").or_else(|| Some((line.strip_suffix(':')?, ""))).unwrap_or((line, ""));
    let (name, is_atomic) = head.strip_suffix("@atomic").map_or((head, false), |name| (name, true));
    let fields = fields.split(' ').filter(|field| !field.is_empty()).map(read_field);
    (name, Struct { name, is_atomic, fields: fields.map(|field| (field.name, field)).collect() })
}

fn read_field(text: &'static str) -> Field {
    let mut parts = text.split('@');
    let (name, of) = parts.next().and_then(|head| head.split_once(':')).unwrap_or((text, "any"));
    let (name, is_required) = name.strip_suffix('!').map_or((name, false), |name| (name, true));
    let (of, default) = of.split_once('=').map_or((of, None), |(of, default)| (of, Some(default)));
    let (of, is_always) = of.strip_suffix('~').map_or((of, false), |of| (of, true));
    let mut field = Field {
        name,
        of: read_type(of),
        is_required,
        is_always,
        default,
        list: ListKind::Whole,
        is_atomic: false,
        retains: false,
        merge: None,
    };
    for mark in parts {
        let (word, inside) = match mark.split_once('(') {
            Some((word, inside)) => (word, inside.trim_end_matches(')')),
            None => (mark, ""),
        };
        match word {
            "map" => field.list = ListKind::Keyed(inside.split(',').collect()),
            "set" => field.list = ListKind::Set,
            "atomic" => field.is_atomic = true,
            "merge" => field.merge = Some(inside),
            "retain" => field.retains = true,
            other => unreachable!("the table of fields has no mark @{other}"),
        }
    }
    field
}

fn read_type(text: &'static str) -> Type {
    if let Some(inside) = text.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
        return Type::List(Box::new(read_type(inside)));
    }
    if let Some(inside) = text.strip_prefix('{').and_then(|it| it.strip_suffix('}')) {
        return Type::Map(Box::new(read_type(inside)));
    }
    match text {
        "string" => Type::Text(Vec::new()),
        "int32" | "int64" => Type::Integer(text),
        "number" => Type::Number,
        "bool" => Type::Bool,
        "time" => Type::Time,
        "microtime" => Type::MicroTime,
        "bytes" => Type::Bytes,
        "intstr" => Type::IntOrText,
        "quantity" => Type::Quantity,
        "any" => Type::Any,
        _ => match text.strip_prefix("string(").and_then(|it| it.strip_suffix(')')) {
            Some(values) => Type::Text(values.split('|').collect()),
            None => Type::Named(text),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::KINDS;

    fn names(of: &Type, found: &mut Vec<&'static str>) {
        match of {
            Type::Named(name) => found.push(name),
            Type::List(of) | Type::Map(of) => names(of, found),
            _ => {}
        }
    }

    #[test]
    fn every_type_that_is_named_is_there() {
        for kind in KINDS {
            named(kind.schema);
        }
        for it in types().values() {
            for field in it.fields.values() {
                let mut found = Vec::new();
                names(&field.of, &mut found);
                for name in found {
                    assert!(types().contains_key(name), "{}.{}: {name}", it.name, field.name);
                }
            }
        }
    }

    #[test]
    fn a_line_is_read_with_all_its_marks() {
        let ports = &named("core.v1.ServiceSpec").fields["ports"];
        assert_eq!(ports.list, ListKind::Keyed(vec!["port", "protocol"]));
        assert_eq!(ports.merge, Some("port"));
        let protocol = &named("core.v1.ServicePort").fields["protocol"];
        assert_eq!(protocol.default, Some("TCP"));
        assert_eq!(protocol.of, Type::Text(vec!["SCTP", "TCP", "UDP"]));
        assert!(named("core.v1.ServicePort").fields["port"].is_required);
        assert!(named("core.v1.Service").fields["spec"].is_always);
        assert!(named("meta.v1.LabelSelector").is_atomic);
        assert!(named("core.v1.ServiceSpec").fields["selector"].is_atomic);
        assert_eq!(named("meta.v1.ObjectMeta").fields["finalizers"].merge, Some(""));
    }
}
