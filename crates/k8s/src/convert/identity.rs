//! Who an object is: the part without which it cannot be told to anybody.

use sluice_model::{ObjectName, Uid};

use super::words::Words;
use crate::light::Meta;

/// Why an object is skipped, as a sentence.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Unreadable(pub(crate) String);

/// Namespace and name; the namespace is empty for what has none.
pub(crate) fn name(kind: &str, meta: &Meta, words: &mut Words) -> Result<ObjectName, Unreadable> {
    let namespace = meta.namespace.as_deref().unwrap_or_default();
    match meta.name.as_deref() {
        None | Some("") => {
            Err(Unreadable(format!("{kind} in namespace {namespace:?} skipped: it has no name")))
        }
        Some(name) => Ok(ObjectName::new(words.share(namespace), name)),
    }
}

/// The UID.
pub(crate) fn uid(kind: &str, meta: &Meta) -> Result<Uid, Unreadable> {
    Uid::parse(meta.uid.as_deref().unwrap_or_default())
        .map_err(|bad| Unreadable(format!("{} skipped: uid {bad}", label(kind, meta))))
}

/// The resourceVersion as a number, which is how versions are compared.
pub(crate) fn version(kind: &str, meta: &Meta) -> Result<u64, Unreadable> {
    let text = meta.resource_version.as_deref().unwrap_or_default();
    text.parse().map_err(|_| {
        Unreadable(format!("{} skipped: resourceVersion {text:?} is not a number", label(kind, meta)))
    })
}

/// `Pod shop/web-1`, for sentences.
pub(crate) fn label(kind: &str, meta: &Meta) -> String {
    let name = meta.name.as_deref().unwrap_or("?");
    match meta.namespace.as_deref() {
        None | Some("") => format!("{kind} {name}"),
        Some(namespace) => format!("{kind} {namespace}/{name}"),
    }
}
